"""Define ``expecta serve``: answer over HTTP for models in files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from expecta.common.errors import DomainError


def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="Files that `expecta fit` wrote; NAME=FILE gives one another name than its own.",
            show_default=False,
        ),
    ],
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 is all of them.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    workers: Annotated[int, typer.Option(min=1, help="Processes that share the port.")] = 1,
    token_file: Annotated[
        Path | None,
        typer.Option(help="A file with the token that clients must send; or set EXPECTA_TOKEN."),
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="EXPECTA_TOKEN", hidden=True, show_envvar=False)
    ] = None,
    rows: Annotated[
        bool,
        typer.Option("--rows", help="Show averages of training rows, if a file has them."),
    ] = False,
    origin: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="Another page that browsers may ask from; repeatable."),
    ] = None,
    max_rows: Annotated[
        int, typer.Option(min=1, help="Maximum number of rows of a request that is not a stream.")
    ] = 10_000,
    max_bytes: Annotated[int, typer.Option(min=1, help="Maximum size of its body, in bytes.")] = 16
    << 20,
    max_requests: Annotated[
        int,
        typer.Option(min=1, help="Maximum number at a time; further ones are answered with 429."),
    ] = 512,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Maximum number of seconds per question.")
    ] = 30.0,
    reload: Annotated[
        float, typer.Option(min=0, help="Seconds between checks for changed files; 0 for never.")
    ] = 1.0,
) -> None:
    """Answer over HTTP: predictions, questions, cards and reports of models.

    A file that is replaced is read anew. A page for people is at /, the API's at /docs.
    """
    try:
        from expecta.serve.serve_options import ServeOptions
        from expecta.serve.server import run
    except ModuleNotFoundError as missing:
        raise DomainError(f"a service needs {missing.name}: pip install 'expecta[serve]'") from None
    if token_file is not None:
        token = token_file.read_text("utf-8").strip()
    if token is not None and not token.strip():
        raise DomainError("the token is empty; write one, such as by: openssl rand -hex 32")
    options = ServeOptions(
        token=token,
        rows=rows,
        origins=tuple(origin or ()),
        max_rows=max_rows,
        max_bytes=max_bytes,
        max_requests=max_requests,
        timeout=timeout,
        reload_seconds=reload,
    )
    run(named_models(models), options, host=host, port=port, workers=workers)


def named_models(given: list[str]) -> dict[str, Path]:
    """Return files by name: that before ``=``, or the file's own without its ending."""
    named: dict[str, Path] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            name, path = Path(text).stem, text
        if not Path(path).is_file():
            raise DomainError(f"there is no file {path}; check its name")
        if name in named:
            raise DomainError(f"two models have the name {name!r}; rename one: other={path}")
        if not name or "/" in name:
            raise DomainError(f"a model's name has letters and no '/', unlike {name!r:.60}")
        named[name] = Path(path)
    return named
