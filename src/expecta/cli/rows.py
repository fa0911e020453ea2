"""Questions about rows: explain, sufficient, stability, outliers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Annotated, Any

import typer

from expecta.cli.options import Json, Model, Of, Plot, Table
from expecta.cli.output import answer
from expecta.common.errors import DomainError

__all__ = ["COMMANDS"]

MaybeTable = Annotated[
    str | None,
    typer.Argument(help="Rows, as `expecta predict` takes them.", show_default=False),
]
Which = Annotated[
    str | None,
    typer.Option(
        "--row", metavar="ROW", help="A row of the table, from 0; or one like age=40,smoker=yes."
    ),
]


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no number to compare with; write one, such as 0.5")
    return value


Threshold = Annotated[
    float,
    typer.Option(
        metavar="T", callback=_finite, help='The decision is "yes" from this prediction on.'
    ),
]


def explain(
    model: Model,
    table: MaybeTable = None,
    row: Which = None,
    of: Of = None,
    seed: Annotated[int, typer.Option(min=0, help="Of what is drawn beyond 12 columns.")] = 0,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Share each prediction out among the known columns: conditional Shapley values."""
    from expecta.cli.models import load_for

    estimator = load_for(model, of)
    answer(estimator.shapley(_rows(estimator, table, row), of=of, seed=seed), json, plot)


def sufficient(
    model: Model,
    threshold: Threshold,
    table: MaybeTable = None,
    row: Which = None,
    probability: Annotated[float, typer.Option(help="How surely the decision is to stand.")] = 0.95,
    of: Of = None,
    json: Json = False,
) -> None:
    """Find a smallest set of a row's known columns that is enough for its decision."""
    from expecta.cli.models import load_for

    estimator = load_for(model, of)
    found = _rows(estimator, table, row)
    if table is not None and found.num_rows > 1:
        raise DomainError(f"which of the {found.num_rows} rows? Add its number, from 0: --row 0")
    answer(estimator.sufficient(found, threshold, probability=probability, of=of), json)


def stability(
    model: Model,
    table: Table,
    threshold: Threshold,
    of: Of = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Tell how likely each row's decision stands once all is known."""
    from expecta.cli.models import load_for, read_rows

    estimator = load_for(model, of)
    _, rows = read_rows(estimator, table)
    answer(estimator.stability(rows, threshold, of=of), json, plot)


def outliers(model: Model, table: Table, plot: Plot = None, json: Json = False) -> None:
    """Tell how unlike the training rows each row is, and which of its cells is oddest."""
    from expecta.cli.models import load, read_rows

    estimator = load(model)
    _, rows = read_rows(estimator, table)
    answer(estimator.outliers(rows), json, plot)


def _rows(model: Any, table: str | None, row: str | None) -> Any:
    """Return the rows to explain: of a table, one of them, or one that is written down."""
    from expecta.cli.models import read_rows, row_of

    numbered = row is not None and re.fullmatch(r"\s*[-+]?\d+\s*", row)
    if row is not None and not numbered:
        if table is not None:
            raise DomainError(
                f"the row {row!r} is written down, so no table is needed; leave {table} out, or "
                f"give the number of a row"
            )
        return row_of(model, row)
    if table is None:
        raise DomainError("which rows? Name a table, or write one: --row age=40,smoker=yes")
    _, rows = read_rows(model, table)
    if row is None:
        return rows
    if not 0 <= int(row) < rows.num_rows:
        raise DomainError(f"there is no row {row}; rows are numbered 0 to {rows.num_rows - 1}")
    return rows.slice(int(row), 1)


COMMANDS: dict[str, Callable[..., None]] = {
    "explain": explain,
    "stability": stability,
    "sufficient": sufficient,
    "outliers": outliers,
}
