"""Rank the unknown columns by how much knowing them would settle the output."""

from __future__ import annotations

from collections.abc import Mapping, Set, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np

from expecta.ask.language.bit_encoder import BitEncoder
from expecta.ask.language.query import Query, where
from expecta.ask.populations import Facts, Population
from expecta.ask.printed_answer import PrintedAnswer
from expecta.common.arrays import Floats
from expecta.common.errors import DomainError
from expecta.common.text import number
from expecta.expected.expected_output import ExpectedOutput
from expecta.tables import Encoder
from expecta.tables.table import is_scalar


@dataclass(frozen=True, eq=False)
class NextQuestion(PrintedAnswer):
    """How much each unknown column would tell, the most telling first.

    Attributes
    ----------
    name, given
        What is predicted, and what is known.
    value, std
        The expected output now, and its spread over the unknown columns.
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

    display = "NextQuestionDisplay"

    @property
    def best(self) -> str | None:
        """The column to ask for; None where nothing is unknown."""
        return self.columns[0] if self.columns else None

    def lines(self) -> dict[str, Any]:
        """Return a line per column."""
        columns: dict[str, Any] = {
            "column": list(self.columns),
            "share of variance": self.share,
            "remaining std": self.remaining,
            "reduction of variance": self.reduction,
            "error": self.error,
        }
        if self.cost is not None:
            columns |= {"cost": self.cost, "reduction per cost": self.gain}
        return columns

    def head(self) -> list[str]:
        """Return the sentence before the table."""
        return [
            f"{self.name}{where(self.given)}: {number(self.value)}, "
            f"standard deviation {number(self.std)}"
        ]

    def notes(self) -> list[str]:
        """Return the sentences after it."""
        return [] if self.columns else ["No unknown column affects the output."]


def next_question(
    subject: ExpectedOutput, given: Any = None, cost: Mapping[str, float] | None = None
) -> NextQuestion:
    """Rank the unknown columns; see :meth:`Asking.next_question`."""
    read = Population.from_row if is_row(given, subject.encoder) else Population.read
    population = read(subject, given)
    values = population.possible
    unknown = [variable for variable, codes in enumerate(values) if len(codes) > 1]
    groups: list[Facts] = [
        ((variable, values[variable][[i]]),)
        for variable in unknown
        for i in range(len(values[variable]))
    ]
    share, value, error_ = population.means(subject, [(), *groups])
    variance, _ = population.variance(subject)
    names = [subject.columns[variable] for variable in unknown]
    reduction, error = np.zeros((2, len(unknown)))
    start = 1  # after everyone
    for i, variable in enumerate(unknown):
        rows = slice(start, start + len(values[variable]))
        reduction[i], error[i] = _variance(
            share[rows], value[rows], error_[rows], subject.samples_mean
        )
        start = rows.stop
    gains, prices = reduction, None
    if cost is not None:
        prices = _prices(subject, cost)[unknown]
        gains = gains / prices
    order = np.argsort(-gains, kind="stable")
    reduced = reduction[order]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(variance > 0, np.clip(reduced / variance, 0.0, 1.0), 0.0)
    return NextQuestion(
        subject.name,
        population.written,
        float(value[0]),
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


def is_row(given: Any, encoder: Encoder) -> bool:
    """Whether one row is given, and not a condition: a table, or a mapping to single cells.

    Sets of values, intervals and lists of several values are a condition, and so is nothing.
    """
    if given is None or isinstance(given, str | Query):
        return False
    if not isinstance(given, Mapping):
        return True
    return (
        bool(given)
        and not isinstance(encoder, BitEncoder)  # its columns are not its variables
        and all(is_scalar(fact) or _is_one_cell(fact) for fact in given.values())
    )


def _is_one_cell(fact: Any) -> bool:
    return isinstance(fact, Sized) and not isinstance(fact, tuple | Set) and len(fact) == 1


def _variance(share: Floats, mean: Floats, error: Floats, sampled: bool) -> tuple[float, float]:
    """Return the variance of means that have some probability each, and its error."""
    used = share > 0
    part, mean, error = share[used] / share[used].sum(), mean[used], error[used]
    gap = mean - part @ mean
    if sampled:  # the error of each mean adds to how much they vary
        bias = (part - part**2) @ error**2
        loose = np.sqrt(part**2 @ ((2 * gap * error) ** 2 + 2 * error**4))
        return max(float(part @ gap**2 - bias), 0.0), float(loose)
    return float(part @ gap**2), float(part @ (2 * np.abs(gap) * error + error**2))


def _prices(subject: ExpectedOutput, cost: Mapping[str, float]) -> Floats:
    prices = np.ones(len(subject.columns))
    for name, price in cost.items():
        prices[subject.encoder.variable(name)] = price
    if not np.all(np.isfinite(prices) & (prices > 0)):
        raise DomainError(
            "a cost must be a finite number above zero; leave out columns that are known"
        )
    return prices
