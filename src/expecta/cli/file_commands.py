"""Define the commands on files (inspect, draw, report, convert), and demo and bench."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from expecta.cli.deferred_modules import defer
from expecta.cli.options import Json, Model
from expecta.cli.output import document, note, refuse_overwriting, say, writable

AnyFile = Annotated[
    Path,
    typer.Argument(
        help="A model, a density, a pair, a circuit (.psdd, .glc) or a vtree (.vtree).",
        show_default=False,
    ),
]
VtreeFile = Annotated[
    Path | None,
    typer.Option(
        "--vtree-file", help="The vtree of a .psdd or .glc; by default the .vtree beside it."
    ),
]


class FilePart(StrEnum):
    """A part of a file."""

    p = "p"
    g = "g"
    vtree = "vtree"


def inspect(file: AnyFile, vtree_file: VtreeFile = None, json: Json = False) -> None:
    """Describe what is in a file: kind, columns, sizes, versions, whether rows are in it."""
    defer("scipy.stats", "pandas")
    from expecta.cli.contents import read

    description = read(file, vtree_file).described()
    if json:
        document(description)
        return
    columns = description.pop("columns", [])
    for name, value in description.items():
        say(f"{name.replace('_', ' ')}: {_shown(value)}")
    for column in columns:
        say(f"  {column['name']}: {column['kind']}, {column['values']} values")


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def draw(
    file: AnyFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The picture: .svg, .pdf, .png, or .dot.")
    ],
    vtree: Annotated[bool, typer.Option("--vtree", help="Draw the vtree only.")] = False,
    part: Annotated[
        FilePart, typer.Option(help="p: the distribution; g: the function.")
    ] = FilePart.g,
    vtree_file: VtreeFile = None,
    json: Json = False,
) -> None:
    """Draw a circuit or its vtree; a large circuit as a summary."""
    from expecta.cli.contents import read

    path = writable(output)
    drawing = read(file, vtree_file).drawing("vtree" if vtree else part.value)
    drawing.save(path)
    _written([str(path)], drawing.title, json)


def report(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page: .html.")],
    title: Annotated[str | None, typer.Option(help="Its title.")] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL", help="A sensitive column: how much the output depends on it; repeatable."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write a page about a model: what it learned, and what it predicts for which groups."""
    from expecta.cli.models import load

    path = writable(output)
    estimator = load(model)
    from expecta.report import write_report

    write_report(estimator, path, title=title, sensitive=sensitive)
    _written([str(path)], "report", json)


def convert(
    source: AnyFile,
    output: Annotated[
        Path,
        typer.Argument(
            help="By its ending: .vtree, .psdd, .glc; any other is Expecta's own.",
            show_default=False,
        ),
    ],
    part: Annotated[
        FilePart | None,
        typer.Option(help="The part of the file to write, for Expecta's own format."),
    ] = None,
    vtree_file: VtreeFile = None,
    json: Json = False,
) -> None:
    """Write a circuit in another format; the text formats with their vtree beside them."""
    from expecta.cli.contents import TEXT, read

    path = writable(output)
    if source.suffix.lower() in TEXT:
        refuse_overwriting(path, [source.with_suffix(".vtree")])
    written = read(source, vtree_file).written(path, None if part is None else part.value)
    _written(written, "converted", json)


def _written(paths: list[str], what: str, as_json: bool) -> None:
    if as_json:
        document({"written": paths, "what": what})
    else:
        note(f"{what}, written to {', '.join(paths)}")


class Length(StrEnum):
    """How long to measure."""

    quick = "quick"
    full = "full"


def demo(
    folder: Annotated[
        Path | None,
        typer.Argument(help="The folder to write to; by default a temporary one."),
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


def warm_up(json: Json = False) -> None:
    """Compile everything for this machine once, on all cores, so that no later call waits."""
    from expecta.estimators.warm_up import warm_up

    seconds = warm_up()
    if json:
        document({"seconds": seconds})
    else:
        say(f"Compiled, in {seconds:.0f} s.")


FILE_COMMANDS: dict[str, Callable[..., None]] = {
    "inspect": inspect,
    "draw": draw,
    "report": report,
    "convert": convert,
}
TRY_COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo,
    "bench": bench,
    "warm-up": warm_up,
}
