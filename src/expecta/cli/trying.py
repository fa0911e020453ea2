"""Define ``expecta demo`` and ``expecta bench``."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from expecta.cli.options import Json
from expecta.cli.output import document, say

__all__ = ["COMMANDS"]


class Length(StrEnum):
    """How long to measure."""

    quick = "quick"
    full = "full"


def demo(
    folder: Annotated[
        Path | None,
        typer.Argument(help="Where to keep what it writes; by default a temporary folder."),
    ] = None,
    json: Json = False,
) -> None:
    """Learn what people cost an insurer, predict with missing values, and ask questions."""
    import tempfile

    from expecta.cli.demo import run

    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="expecta-demo-"))
    results = run(folder, (lambda text: None) if json else say)
    if json:
        document(results)


def bench(
    length: Annotated[
        Length, typer.Argument(help="quick: a smaller model, some seconds.")
    ] = Length.full,
    json: Json = False,
) -> None:
    """Time questions on this machine beside sampling, and check that both agree."""
    from expecta.cli.bench import format_times, measure

    times = measure(length is Length.quick)
    if json:
        document(times)
    else:
        say(format_times(times))
    if not all(line["agrees"] for line in times["measured"]):
        raise typer.Exit(1)


COMMANDS: dict[str, Callable[..., None]] = {"demo": demo, "bench": bench}
