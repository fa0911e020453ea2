"""Define the commands that ask a model about groups and rows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expecta.cli.deferred_modules import defer
from expecta.cli.options import (
    Given,
    Json,
    Model,
    Of,
    Plot,
    Population,
    PopulationChoice,
    Query,
    Row,
    Table,
)
from expecta.cli.output import answer
from expecta.common.errors import DomainError

if TYPE_CHECKING:
    from expecta.estimators.expected_estimator import ExpectedEstimator

BOTH = PopulationChoice.BOTH


def ask(
    model: Model,
    query: Query = None,
    of: Of = None,
    population: Population = BOTH,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Describe the model's output over a group: mean, spread, quantiles, share.

    The mean combines training rows and density, with a standard error. Standard deviation,
    quantiles and share are the density's.
    """
    answer(_load(model, of).ask(query, of=of, population=population.value), json, plot)


def compare(
    model: Model,
    a: Annotated[str, typer.Argument(help="A group, such as \"smoker == 'yes'\".")],
    b: Annotated[str, typer.Argument(help="Another, such as \"smoker == 'no'\".")],
    of: Of = None,
    population: Population = BOTH,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Compare two groups: difference with its standard error, ratio, and P(a > b)."""
    answer(_load(model, of).compare(a, b, of=of, population=population.value), json, plot)


def split(
    model: Model,
    columns: Annotated[
        list[str], typer.Argument(metavar="COL...", help="Columns to group by.", show_default=False)
    ],
    given: Given = None,
    bins: Annotated[int, typer.Option(min=1, help="Groups that numbers are cut into.")] = 4,
    of: Of = None,
    population: Population = BOTH,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Divide a population by one column or more, and describe each part."""
    options: dict[str, Any] = {"given": given, "bins": bins, "of": of}
    options["population"] = population.value
    answer(_load(model, of).split(*columns, **options), json, plot)


def dependence(
    model: Model,
    column: Annotated[str, typer.Argument(metavar="COL", show_default=False)],
    given: Given = None,
    grid: Annotated[
        int | None, typer.Option(min=2, help="Groups that numbers are cut into, by default 50.")
    ] = None,
    of: Of = None,
    population: Population = BOTH,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Follow the model along a column: with the columns that vary with it, and alone."""
    options: dict[str, Any] = {"given": given, "grid": grid, "of": of}
    options["population"] = population.value
    answer(_load(model, of).dependence(column, **options), json, plot)


def next_(
    model: Model,
    query: Query = None,
    row: Row = None,
    cost: Annotated[
        str | None,
        typer.Option(
            metavar="COSTS", help="The cost of learning the value of a column: age=1,bmi=20."
        ),
    ] = None,
    of: Of = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Rank the unknown columns by how much knowing them would settle the prediction."""
    if query is not None and row is not None:
        raise DomainError("a query and --row both describe what is known; give only one of them")
    estimator = _load(model, of)
    known: Any = query if row is None else _rows(estimator, None, row)
    prices = None if cost is None else _costs(cost)
    answer(estimator.next_question(known, cost=prices, of=of), json, plot)


def _costs(text: str) -> dict[str, float]:
    """Read ``age=1,bmi=20``."""
    costs = {}
    for part in text.split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        try:
            costs[name] = float(value)
        except ValueError:
            raise DomainError(f"{part!r} is not a cost; write costs as age=1,bmi=20") from None
    return costs


def audit(
    model: Model,
    sensitive: Annotated[
        list[str], typer.Option(metavar="COL", help="A sensitive column; repeatable.")
    ],
    delta: Annotated[
        float | None,
        typer.Option(
            min=0, help="Smallest gap to report; by default the 20 gaps with the most evidence."
        ),
    ] = None,
    size: Annotated[
        int, typer.Option(min=0, help="Maximum number of conditions that define a group.")
    ] = 2,
    given: Given = None,
    of: Of = None,
    population: Population = BOTH,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Search groups in which a sensitive column moves the prediction; demographic parity."""
    options: dict[str, Any] = {"delta": delta, "size": size, "given": given, "of": of}
    options["population"] = population.value
    answer(_load(model, of).disparities(sensitive, **options), json, plot)


# -- rows ---------------------------------------------------------------------------------

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
        raise typer.BadParameter(f"{value} is not a finite number; write one, such as 0.5")
    return value


Threshold = Annotated[
    float,
    typer.Option(
        metavar="T",
        callback=_finite,
        help='The decision is "yes" for predictions of at least this value.',
    ),
]


def explain(
    model: Model,
    table: MaybeTable = None,
    row: Which = None,
    of: Of = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the random orders of many columns.")
    ] = 0,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Share each prediction out among the known columns: conditional Shapley values."""
    estimator = _load(model, of)
    answer(estimator.shapley(_rows(estimator, table, row), of=of, random_state=seed), json, plot)


def sufficient(
    model: Model,
    threshold: Threshold,
    table: MaybeTable = None,
    row: Which = None,
    probability: Annotated[
        float, typer.Option(help="The probability that the decision must have.")
    ] = 0.95,
    of: Of = None,
    json: Json = False,
) -> None:
    """Find a smallest set of a row's known columns that is sufficient for its decision."""
    estimator = _load(model, of)
    rows = _rows(estimator, table, row)
    if table is not None and rows.num_rows > 1:
        raise DomainError(f"the table has {rows.num_rows} rows; choose one by its index: --row 0")
    answer(estimator.sufficient(rows, threshold, probability=probability, of=of), json)


def stability(
    model: Model,
    table: Table,
    threshold: Threshold,
    of: Of = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Tell how likely each row's decision stands once every input is known."""
    estimator = _load(model, of)
    answer(estimator.stability(_rows(estimator, table), threshold, of=of), json, plot)


def outliers(model: Model, table: Table, plot: Plot = None, json: Json = False) -> None:
    """Tell how unlike the training rows each row is, and which of its cells is oddest."""
    estimator = _load(model, classes=False)
    answer(estimator.outliers(_rows(estimator, table)), json, plot)


class Part(StrEnum):
    """What of a check is printed in full."""

    PAIRS = "pairs"
    GROUPS = "groups"
    LIKELIHOOD = "likelihood"


def check(
    model: Model,
    table: Annotated[
        str | None,
        typer.Argument(
            help="Rows that the model did not learn from; by default its training rows, if stored.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[
        Part | None, typer.Option(help="Print these comparisons, the worst first.")
    ] = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Check the density against rows: which answers can be trusted, what is off, what to do."""
    density = _models().load_density(model)
    if density is not None and table is not None:
        checked = density.check(_models().read_rows(density, table))
    else:
        estimator = None if density is not None else _load(model, classes=False)
        if table is None and (estimator is None or estimator.training_rows_ is None):
            raise DomainError(
                f"{model} has no training rows (fit --rows stores them); give a table of rows to "
                f"check its density against"
            )
        assert estimator is not None
        checked = estimator.check_density(None if table is None else _rows(estimator, table))
    answer(checked if show is None else getattr(checked, show.value), json, plot)


def _rows(model: Any, table: str | None, row: str | None = None) -> Any:
    """Return the rows of a table, one of them, or one that is written down."""
    numbered = row is not None and re.fullmatch(r"\s*[-+]?\d+\s*", row)
    if row is not None and not numbered:
        if table is not None:
            raise DomainError(
                f"the row {row!r} is given in full, so no table is needed; leave {table} out, or "
                f"give the index of a row"
            )
        return _models().row_of(model, row)
    if table is None:
        raise DomainError("no rows are given; give a table, or one row: --row age=40,smoker=yes")
    rows = _models().read_rows(model, table)
    if row is None:
        return rows
    if not 0 <= int(row) < rows.num_rows:
        raise DomainError(f"there is no row {row}; rows have the indices 0 to {rows.num_rows - 1}")
    return rows.slice(int(row), 1)


def _load(path: Path, of: str | None = None, *, classes: bool = True) -> ExpectedEstimator:
    return _models().load_for(path, of) if classes else _models().load(path)


def _models() -> Any:
    """Import what reads models only now: help appears at once, and most questions need no more."""
    defer("scipy.stats", "pandas")
    from expecta.cli import models

    return models


COMMANDS: dict[str, Callable[..., None]] = {
    "ask": ask,
    "compare": compare,
    "split": split,
    "dependence": dependence,
    "next": next_,
    "audit": audit,
    "explain": explain,
    "stability": stability,
    "sufficient": sufficient,
    "outliers": outliers,
    "check": check,
}
