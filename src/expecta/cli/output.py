"""Print answers and JSON on standard output, notes on standard error; draw plots into files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

import typer

from expecta.ask.printed_answer import PrintedAnswer, plain
from expecta.common.atomic_files import replace_file, same_file
from expecta.common.errors import DomainError, FormatError, QueryError


def say(text: str = "") -> None:
    """Print a line of the answer."""
    typer.echo(text)


def note(text: str) -> None:
    """Print a remark beside the answer."""
    typer.echo(f"note: {text}", err=True)


def document(value: Any) -> None:
    """Print one JSON document; NaN is null."""
    typer.echo(json.dumps(plain(value), ensure_ascii=False, allow_nan=False))


def answer(result: PrintedAnswer, as_json: bool, plot: Path | None = None) -> None:
    """Print an answer, and draw it where a file is given."""
    if plot is not None:
        draw_plot(result, plot)
    if as_json:
        document(result)
        return
    say(str(result))
    if plot is not None:
        note(f"the plot is in {plot}")


def draw_plot(result: PrintedAnswer, path: Path) -> None:
    """Draw an answer into a file, by the ending of its name."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise DomainError("plots need matplotlib: pip install 'expecta[plots]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, picture = result.plot().figure_, BytesIO()
    figure.savefig(picture, format=path.suffix[1:].lower(), dpi=150, bbox_inches="tight")
    plt.close(figure)
    replace_file(str(path), picture.getvalue())


def writable(path: str | Path) -> Path:
    """Return a path that a file can be written to; an error comes before the work is done."""
    path = Path(path)
    folder = path.parent
    if str(path) == "-":
        raise DomainError("this cannot be written to standard output; give the name of a file")
    if path.is_dir():
        raise DomainError(
            f"{path} is a folder; give the name of a file in it, such as {path / 'out'}"
        )
    if not folder.is_dir():
        raise DomainError(f"there is no folder {folder}; make it first: mkdir -p {folder}")
    return path


def refuse_overwriting(output: str | Path, inputs: Iterable[str | Path | None]) -> None:
    """Complain of an output that is one of the inputs, also by another name."""
    for given in inputs:
        if given is not None and Path(given).is_file() and same_file(output, given):
            raise DomainError(
                f"this would overwrite {given}, which is an input; choose another name"
            )


def one_line(problem: BaseException | str) -> str:
    """Return what is wrong and what to do as one line."""
    text = " ".join(_message(problem).split())
    return text or type(problem).__name__


def _message(problem: BaseException | str) -> str:
    if isinstance(problem, QueryError) and problem.query is not None:
        return f"{problem.problem} (at character {problem.position + 1} of: {problem.query})"
    if isinstance(problem, FormatError) and "upgrade expecta" not in problem.problem:
        return f"{problem}; write the file again, or choose another"
    if isinstance(problem, FileNotFoundError) and problem.filename is not None:
        return f"there is no file {problem.filename}; check its name"
    if isinstance(problem, IsADirectoryError) and problem.filename is not None:
        return f"{problem.filename} is a folder; give the name of a file in it"
    if isinstance(problem, OSError) and problem.filename is not None:
        return (
            f"{problem.filename}: {problem.strerror}; choose another file, or change its "
            f"permissions"
        )
    if isinstance(problem, ImportError) and "pip install" not in str(problem):
        return f"{problem}; install it: pip install 'expecta[cli,plots]'"
    if isinstance(problem, str | Warning | ValueError | TypeError | ImportError):
        return str(problem)
    return f"unexpected {type(problem).__name__}: {problem}; for details run: expecta --debug ..."
