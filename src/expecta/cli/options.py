"""Define the arguments and options that several commands have."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from expecta.cli.output import writable

ENDINGS = (".png", ".svg", ".pdf")


class PopulationChoice(StrEnum):
    """What means over groups are taken over."""

    BOTH = "both"
    ROWS = "rows"
    DENSITY = "density"


def _plot(path: Path | None) -> Path | None:
    if path is not None and path.suffix.lower() not in ENDINGS:
        raise typer.BadParameter(f"a plot ends in {', '.join(ENDINGS)}, not {path.name}")
    return None if path is None else writable(path)


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document, and nothing else.")]
Model = Annotated[
    Path, typer.Argument(help="A model that `expecta fit` wrote.", show_default=False)
]
Of = Annotated[
    str | None,
    typer.Option(metavar="CLASS", help="The class whose probability the question is about."),
]
Plot = Annotated[
    Path | None,
    typer.Option(metavar="FILE", callback=_plot, help="Draw the answer: .png, .svg or .pdf."),
]
Query = Annotated[
    str | None,
    typer.Argument(
        help="A group, such as \"smoker == 'yes' and age < 30\"; by default all rows.",
        show_default=False,
    ),
]
Given = Annotated[
    str | None,
    typer.Option(metavar="QUERY", help="The population, such as \"sex == 'female'\"."),
]
Population = Annotated[
    PopulationChoice,
    typer.Option(help="The source of means: the learned density, the training rows, or both."),
]
Row = Annotated[
    str | None,
    typer.Option(metavar="ROW", help="Known values of one row, such as age=40,smoker=yes."),
]
TableOrFolder = Annotated[
    str,
    typer.Argument(
        help="Rows: .csv, .tsv, .parquet, .arrow, .feather, .jsonl; - is CSV from standard input. "
        "Or a folder of such files.",
        show_default=False,
    ),
]
Table = Annotated[
    str,
    typer.Argument(
        help="Rows: .csv, .tsv, .parquet, .arrow, .feather, .jsonl; - is CSV from standard input.",
        show_default=False,
    ),
]
