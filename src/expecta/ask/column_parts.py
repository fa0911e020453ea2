"""The parts that a column falls into when groups are made: categories, or quarters of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

import numpy as np

from expecta.ask.language.column_sets import Chosen, Intervals
from expecta.ask.language.conditions import quoted
from expecta.ask.populations import Population
from expecta.common.arrays import Floats, Ints
from expecta.expected.expected_output import ExpectedOutput
from expecta.tables.column import Column
from expecta.tables.number_column import NumberColumn
from expecta.tables.scalars import TIMES

__all__ = ["Part", "parts_of"]

QUARTERS = 4  # parts of a column of numbers
DIGITS = 6  # of the ends of a part


@dataclass(frozen=True)
class Part:
    """Some values of a variable, and how they are called."""

    variable: int
    members: tuple[int, ...]
    text: str

    @property
    def values(self) -> Ints:
        """The values as an array."""
        return np.array(self.members, np.int64)


def parts_of(subject: ExpectedOutput, population: Population) -> list[list[Part]]:
    """Return the parts of every column that the population can be in.

    A category is a part of its own, and so is a number where up to four bins have data. The
    bins of other numbers make four parts of about equal share of the population, fewer where
    a bin has more than that.
    """
    weight = population.weight / population.weight.sum()
    posterior = subject.circuit.marginals(population.evidence)
    return [
        _parts(variable, column, weight @ posterior[variable])
        for variable, column in enumerate(subject.encoder.columns_)
    ]


def _parts(variable: int, column: Column, share: Floats) -> list[Part]:
    used = np.flatnonzero(share > 0)
    if not isinstance(column, NumberColumn):
        return [Part(variable, (i,), _text(column, used[[k]])) for k, i in enumerate(used.tolist())]
    filled = column.counts[used] > 0
    place = np.maximum(np.cumsum(filled) - 1, 0)  # a bin without data goes with the one before
    if place[-1] >= QUARTERS:
        middle = np.cumsum(share[used]) - 0.5 * share[used]
        place = np.minimum((middle * QUARTERS).astype(np.int64), QUARTERS - 1)
    parts = []
    for one in np.unique(place).tolist():
        some = place == one
        seen = used[some & filled] if np.any(some & filled) else used[some]
        parts.append(Part(variable, tuple(used[some].tolist()), _text(column, seen)))
    return parts


def _text(column: Column, values: Ints) -> str:
    """Write a part as a condition on what was seen in it."""
    name = quoted(column.name)
    if not isinstance(column, NumberColumn):
        return Chosen(frozenset(values.tolist()), column.cardinality).text(name, column)
    ends = float(column.lows[values[0]]), float(column.highs[values[-1]])
    if column.kind not in TIMES:
        ends = _short(column, ends, (int(values[0]), int(values[-1])))
    return Intervals.between(*ends).text(name, column)


def _short(column: Column, ends: tuple[float, float], bins: tuple[int, int]) -> tuple[float, float]:
    """Round the ends of a part outwards, to digits that still tell it from its neighbours."""
    before = column.highs[bins[0] - 1] if bins[0] > 0 else -np.inf
    after = column.lows[bins[1] + 1] if bins[1] + 1 < len(column.lows) else np.inf
    for digits in range(DIGITS, 17):
        low, high = (
            float(Context(prec=digits, rounding=way).create_decimal(repr(end)))
            for end, way in zip(ends, (ROUND_FLOOR, ROUND_CEILING), strict=True)
        )
        if before < low and high < after:
            return low, high
    return ends
