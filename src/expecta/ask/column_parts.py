"""Divide columns into the parts that groups are made of: categories, or ranges of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

import numpy as np

from expecta.ask.language.column_sets import Intervals, ValueSet
from expecta.ask.language.conditions import quoted
from expecta.ask.populations import Population
from expecta.common.arrays import Bools, Floats, Ints
from expecta.expected.expected_output import ExpectedOutput
from expecta.tables.column import Column
from expecta.tables.encoder import Encoder
from expecta.tables.number_column import NumberColumn
from expecta.tables.scalars import TIMES
from expecta.tables.training_rows import TrainingRows

MAX_PARTS = 4  # of a column of numbers
DIGITS = 6  # of the ends of a part


@dataclass(frozen=True, eq=False)
class ColumnGroups:
    """A column divided into groups of neighbouring bins, or of single categories."""

    variable: int
    column: Column
    group: Ints  # of each value of the column
    labels: tuple[str, ...]

    @property
    def values(self) -> list[Ints]:
        """The values of the column in each group."""
        return [np.flatnonzero(self.group == group) for group in range(len(self.labels))]

    def group_of(self, rows: TrainingRows) -> Ints:
        """Return the group of each training row, -1 where it is unknown."""
        codes = rows.codes(self.column, self.variable)
        return np.where(codes < 0, -1, self.group[codes])


def divide_column(encoder: Encoder, name: str, share: Floats, n_groups: int) -> ColumnGroups:
    """Divide a column: categories one by one, numbers into groups of about equal share.

    Where "missing" is a value of a column of numbers, it is a group of its own. A bin of a column
    of whole numbers that holds none, such as 18.5, goes along with its neighbour.
    """
    variable = encoder.variable(name)
    column = encoder.columns_[variable]
    used = np.flatnonzero((share > 0) & _holds_values(column))
    if not len(used):
        used = np.flatnonzero(share > 0)
    numbers = used
    if isinstance(column.plain, NumberColumn):
        numbers = used[used < column.plain.cardinality]
    group = np.arange(len(used))
    if isinstance(column.plain, NumberColumn) and len(numbers) > n_groups:
        equal = _equal_shares(share[numbers], n_groups)
        equal = np.append(equal, np.full(len(used) - len(numbers), n_groups))
        group = np.unique(equal, return_inverse=True)[1].ravel()
    labels = tuple(_label(column, used[group == i]) for i in range(int(group[-1]) + 1))
    near = np.minimum(np.searchsorted(used, np.arange(len(share))), len(used) - 1)
    return ColumnGroups(variable, column, group[near], labels)  # what is impossible goes along


def _holds_values(column: Column) -> Bools:
    """Whether each value is one that the column can have: a model's thresholds cut off others."""
    holds = np.ones(column.cardinality, np.bool_)
    plain = column.plain
    if isinstance(plain, NumberColumn) and plain.kind == "integer":
        bins = slice(plain.cardinality)
        holds[bins] = (np.ceil(plain.lows) <= plain.highs) | (plain.counts > 0)
    return holds


def _equal_shares(share: Floats, n_groups: int) -> Ints:
    """Return the group of each bin: that of the equal shares which the middle of its own is in."""
    middle = (np.cumsum(share) - 0.5 * share) / share.sum()
    return np.minimum((middle * n_groups).astype(np.int64), n_groups - 1)


def _label(column: Column, values: Ints) -> str:
    """Write a group of neighbouring values."""
    first, last = column.labels[int(values[0])], column.labels[int(values[-1])]
    if len(values) == 1:
        return first
    return f"{first.split(' to ')[0]} to {last.split(' to ')[-1]}"


@dataclass(frozen=True)
class ColumnPart:
    """Some values of a variable, and how they are called."""

    variable: int
    members: tuple[int, ...]
    text: str

    @property
    def values(self) -> Ints:
        """The values as an array."""
        return np.array(self.members, np.int64)


def column_parts(subject: ExpectedOutput, population: Population) -> list[list[ColumnPart]]:
    """Return the parts of every column that the population can be in.

    A category is a part of its own, and so is a number where up to four bins have data. The
    bins of other numbers make four parts of about equal share of the population, fewer where
    a bin has more than that.
    """
    shares = population.marginals(subject)
    return [
        parts_of_column(variable, column, shares[variable])
        for variable, column in enumerate(subject.encoder.columns_)
    ]


def parts_of_column(
    variable: int, column: Column, share: Floats, max_parts: int = MAX_PARTS
) -> list[ColumnPart]:
    """Return the parts of one column whose values have these shares; see `column_parts`."""
    used = np.flatnonzero(share > 0)
    if not isinstance(column, NumberColumn):
        single = used[:, None]
        return [ColumnPart(variable, tuple(c.tolist()), _text(column, c)) for c in single]
    filled = column.counts[used] > 0
    part = np.maximum(np.cumsum(filled) - 1, 0)  # a bin without data joins the one before
    if part[-1] >= max_parts:
        part = _equal_shares(share[used], max_parts)
    parts = []
    for i in np.unique(part).tolist():
        bins = used[part == i]
        parts.append(part_of_bins(variable, column, bins))
    return parts


def part_of_bins(variable: int, column: NumberColumn, bins: Ints) -> ColumnPart:
    """Return neighbouring bins as one part, named by the training data in it."""
    with_data = bins[column.counts[bins] > 0]
    text = _text(column, with_data if len(with_data) else bins)
    return ColumnPart(variable, tuple(bins.tolist()), text)


def _text(column: Column, values: Ints) -> str:
    """Write a part as a condition on the training data in it."""
    name = quoted(column.name)
    if not isinstance(column, NumberColumn):
        return ValueSet(frozenset(values.tolist()), column.cardinality).text(name, column)
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
