"""Which unknown column to ask for next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from expecta.ask.populations import Facts, Population
from expecta.ask.printed_answer import PrintedAnswer
from expecta.common.arrays import Floats
from expecta.common.errors import DomainError
from expecta.common.text import number
from expecta.expected.expected_output import ExpectedOutput

if TYPE_CHECKING:
    from expecta.ask.displays import NextQuestionDisplay

__all__ = ["NextQuestion", "next_question"]


@dataclass(frozen=True, eq=False)
class NextQuestion(PrintedAnswer):
    """How much each unknown column would tell, the most telling first.

    Attributes
    ----------
    name, given
        What is predicted, and what is known.
    value, std
        The expected output now, and its spread over what is unknown.
    columns
        The unknown columns; the arrays below are in their order.
    reduction, error
        Expected reduction of the variance once the column is known, and its error.
    share
        The same as a share of the variance now.
    remaining
        Root of the expected variance that remains.
    cost, gain
        What each column costs, and the reduction per unit of cost.
    """

    name: str
    given: str
    value: float
    std: float
    columns: tuple[str, ...]
    reduction: Floats
    error: Floats
    share: Floats
    remaining: Floats
    cost: Floats | None
    gain: Floats
    exactness: str

    @property
    def best(self) -> str | None:
        """The column to ask for; None where nothing is unknown."""
        return self.columns[0] if self.columns else None

    def lines(self) -> dict[str, Any]:
        """Return a line per column."""
        found: dict[str, Any] = {
            "column": list(self.columns),
            "share of variance": self.share,
            "remaining std": self.remaining,
            "reduction of variance": self.reduction,
            "error": self.error,
        }
        if self.cost is not None:
            found |= {"cost": self.cost, "reduction per cost": self.gain}
        return found

    def plot(self, ax: Any = None) -> NextQuestionDisplay:
        """Draw it, on axes of yours or on new ones; needs matplotlib."""
        from expecta.ask.displays import NextQuestionDisplay

        return NextQuestionDisplay(self).plot(ax)

    def head(self) -> list[str]:
        """Say what is known now."""
        return [
            f"{self.name} given {self.given}: {number(self.value)}, "
            f"standard deviation {number(self.std)}"
        ]

    def notes(self) -> list[str]:
        """Say what is exact."""
        return [] if self.columns else ["Nothing that matters is unknown."]


def next_question(
    subject: ExpectedOutput, given: Any = None, cost: Mapping[str, float] | None = None
) -> NextQuestion:
    """Rank the unknown columns by how much knowing them is expected to settle the output.

    The expected reduction of the variance is Var(E[f | what is known, column]) over the
    values that the column may have: exact for the model and the density where means are
    (see ``exactness``), else with a standard error, of which the bias that sampling adds is
    taken away. A number would become known up to its bin.

    Parameters
    ----------
    subject
        What is predicted.
    given
        What is known: a mapping from columns to facts, a condition as text, or a table with
        one row. A column of which a set or an interval is known counts as unknown.
    cost
        What it costs to know each column, above zero; 1 for those not named.

    Returns
    -------
    NextQuestion
        By reduction, or by reduction per cost where costs are given. Cost: one batch of
        expectations, a row for each value of each unknown column.
    """
    population = Population.of(subject, given)
    values = population.possible
    places = [place for place, one in enumerate(values) if len(one) > 1]
    groups: list[Facts] = [
        ((place, values[place][[i]]),) for place in places for i in range(len(values[place]))
    ]
    found = population.means(subject, [(), *groups])
    variance, _ = population.variance(subject)
    names = [subject.columns[place] for place in places]
    reduction, error = np.zeros((2, len(places)))
    start = 1  # after everyone
    for i, place in enumerate(places):
        rows = slice(start, start + len(values[place]))
        reduction[i], error[i] = _spread(
            found.share[rows], found.value[rows], found.error[rows], subject.sampled
        )
        start = rows.stop
    gains, prices = reduction, None
    if cost is not None:
        prices = _prices(subject, cost)[places]
        gains = gains / prices
    order = np.argsort(-gains, kind="stable")
    reduced = reduction[order]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(variance > 0, np.clip(reduced / variance, 0.0, 1.0), 0.0)
    return NextQuestion(
        subject.name,
        population.written,
        float(found.value[0]),
        float(np.sqrt(variance)),
        tuple(names[i] for i in order.tolist()),
        reduced,
        error[order],
        share,
        np.sqrt(np.maximum(variance - reduced, 0.0)),
        None if prices is None else prices[order],
        gains[order],
        subject.exactness,
    )


def _spread(share: Floats, mean: Floats, error: Floats, sampled: bool) -> tuple[float, float]:
    """Return the variance of means that have some probability each, and its error."""
    used = share > 0
    part, mean, error = share[used] / share[used].sum(), mean[used], error[used]
    gap = mean - part @ mean
    if sampled:  # the error of each mean adds to how much they vary
        own = (part - part**2) @ error**2
        loose = np.sqrt(part**2 @ ((2 * gap * error) ** 2 + 2 * error**4))
        return max(float(part @ gap**2 - own), 0.0), float(loose)
    return float(part @ gap**2), float(part @ (2 * np.abs(gap) * error + error**2))


def _prices(subject: ExpectedOutput, cost: Mapping[str, float]) -> Floats:
    prices = np.ones(len(subject.columns))
    for name, price in cost.items():
        prices[subject.encoder.variable(name)] = price
    if not np.all(np.isfinite(prices) & (prices > 0)):
        raise DomainError("a cost is a finite number above zero; leave columns you have out")
    return prices
