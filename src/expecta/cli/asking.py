"""Questions about groups: ask, compare, split, dependence, next, audit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from expecta.cli.options import Given, Json, Model, Of, Plot, Query, Row
from expecta.cli.output import answer
from expecta.common.errors import DomainError

__all__ = ["COMMANDS"]


def ask(
    model: Model, query: Query = None, of: Of = None, plot: Plot = None, json: Json = False
) -> None:
    """Describe what the model says of a group: mean, spread, quantiles, share.

    Mean, standard deviation and share are exact for the model and its density; for classes
    mean and standard deviation are within a bound.
    """
    from expecta.cli.models import load_for

    answer(load_for(model, of).ask(query, of=of), json, plot)


def compare(
    model: Model,
    a: Annotated[str, typer.Argument(help="A group, such as \"smoker == 'yes'\".")],
    b: Annotated[str, typer.Argument(help="Another, such as \"smoker == 'no'\".")],
    of: Of = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Compare two groups: difference, ratio, and who is above whom."""
    from expecta.cli.models import load_for

    answer(load_for(model, of).compare(a, b, of=of), json, plot)


def split(
    model: Model,
    columns: Annotated[
        list[str], typer.Argument(metavar="COL...", help="What to divide by.", show_default=False)
    ],
    given: Given = None,
    bins: Annotated[int, typer.Option(min=1, help="Groups that numbers are cut into.")] = 4,
    of: Of = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Divide a population by one column or more, and describe each part."""
    from expecta.cli.models import load_for

    answer(load_for(model, of).split(*columns, given=given, bins=bins, of=of), json, plot)


def dependence(
    model: Model,
    column: Annotated[str, typer.Argument(metavar="COL", show_default=False)],
    given: Given = None,
    grid: Annotated[
        int | None, typer.Option(min=2, help="Groups that numbers are cut into, by default 50.")
    ] = None,
    of: Of = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Follow the model along a column: with what goes with it, and alone."""
    from expecta.cli.models import load_for

    answer(load_for(model, of).dependence(column, given=given, grid=grid, of=of), json, plot)


def next_(
    model: Model,
    query: Query = None,
    row: Row = None,
    cost: Annotated[
        str | None,
        typer.Option(metavar="COSTS", help="What it costs to know columns: age=1,bmi=20."),
    ] = None,
    of: Of = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Rank the unknown columns by how much knowing them would settle the prediction."""
    from expecta.cli.models import load_for, row_of

    if query is not None and row is not None:
        raise DomainError("a query and --row both say what is known; give one of them")
    estimator = load_for(model, of)
    known: Any = query if row is None else row_of(estimator, row)
    prices = None if cost is None else _costs(cost)
    answer(estimator.next_question(known, cost=prices, of=of), json, plot)


def _costs(text: str) -> dict[str, float]:
    """Read ``age=1,bmi=20``."""
    found = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        try:
            if not equals:
                raise ValueError
            found[name] = float(value)
        except ValueError:
            raise DomainError(f"{part!r} is no cost; write costs as age=1,bmi=20") from None
    return found


def audit(
    model: Model,
    sensitive: Annotated[
        list[str], typer.Option(metavar="COL", help="A sensitive column; repeatable.")
    ],
    delta: Annotated[
        float | None, typer.Option(min=0, help="Least gap to report; by default the largest 20.")
    ] = None,
    size: Annotated[int, typer.Option(min=0, help="Most facts that make a group.")] = 2,
    given: Given = None,
    of: Of = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Search groups in which a sensitive column moves the prediction; demographic parity."""
    from expecta.cli.models import load_for

    found = load_for(model, of).disparities(sensitive, delta=delta, size=size, given=given, of=of)
    answer(found, json, plot)


COMMANDS: dict[str, Callable[..., None]] = {
    "ask": ask,
    "compare": compare,
    "split": split,
    "dependence": dependence,
    "next": next_,
    "audit": audit,
}
