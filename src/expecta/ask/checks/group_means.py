"""Average columns over groups of rows, and under distributions of a density."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from expecta.ask.checks.checked_rows import CheckedRows
from expecta.ask.column_parts import ColumnPart, parts_of_column
from expecta.ask.language.column_sets import written
from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.text import figure, percent
from expecta.tables.column import Column, MissingIsValueColumn
from expecta.tables.number_column import NumberColumn
from expecta.tables.scalars import DAY, TIMES

MAX_RANGES = 8  # of a column of numbers, whose shares of all rows are compared
BLOCK_ROWS = 1 << 14  # of one matrix product


class MeanOf(NamedTuple):
    """What is averaged over groups: a column's numbers, or the share of a value or a part."""

    variable: int
    column: Column
    value: int | ColumnPart | None  # None: the mean of its numbers

    @property
    def numbers(self) -> NumberColumn:
        """The column of numbers that is averaged."""
        assert isinstance(self.column.plain, NumberColumn)
        return self.column.plain

    @property
    def label(self) -> str:
        """The value in words, or a part as a condition; empty for the mean of numbers."""
        if isinstance(self.value, ColumnPart):
            return self.value.text
        return "" if self.value is None else self.column.labels[self.value]

    @property
    def members(self) -> Ints:
        """The values whose share is compared."""
        return self.value.values if isinstance(self.value, ColumnPart) else np.array([self.value])

    def of_rows(self, rows: CheckedRows) -> tuple[Floats, Bools]:
        """Return what is averaged in each row, and where it is known."""
        if self.value is None:
            numbers = rows.numbers[self.variable]
            assert numbers is not None
            return np.nan_to_num(numbers), ~np.isnan(numbers)
        codes = rows.codes[:, self.variable]
        return np.isin(codes, self.members).astype(np.float64), codes >= 0

    def of_posterior(self, posterior: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance under distributions of the column.  # (groups,) each."""
        if self.value is not None:
            share = np.minimum(posterior[:, self.members].sum(axis=1), 1.0)
            return share, share * (1.0 - share)
        column = self.numbers
        part = posterior[:, : column.cardinality]  # what is missing is not a number
        with np.errstate(invalid="ignore"):
            part = part / part.sum(axis=1, keepdims=True)
        mean = part @ column.means
        spread = column.stds**2 + (column.means - mean[:, None]) ** 2
        return mean, np.sum(part * spread, axis=1)

    def text(self, value: float, *, spread: bool = False) -> str:
        """Write a mean or a share in the column's units; a spread has no origin, and two digits."""
        value = float(f"{value:.2g}") if spread else value
        if self.value is not None:
            return percent(value)
        if self.column.kind == "duration" or (spread and self.column.kind in TIMES):
            return f"{figure(value / DAY)} days"
        if self.column.kind in TIMES:
            return written(value, self.column).strip("'")[:16]
        return figure(value)


def means_of(variable: int, column: Column, rows: CheckedRows, max_values: int) -> list[MeanOf]:
    """Return what is averaged of a column: its numbers, or the shares of frequent values."""
    if isinstance(column.plain, NumberColumn):
        means = [MeanOf(variable, column, None)]
        missing = isinstance(column, MissingIsValueColumn)
        return means + [MeanOf(variable, column, column.cardinality - 1)] * missing
    if column.cardinality <= 2:  # the share of one is that of the other
        return [MeanOf(variable, column, 1)] * (column.cardinality == 2)
    counts = np.bincount(rows.codes[:, variable] + 1, rows.weight, column.cardinality + 1)[1:]
    frequent = np.sort(np.argsort(-counts, kind="stable")[:max_values])
    return [MeanOf(variable, column, value) for value in frequent.tolist()]


def shares_of(variable: int, column: Column, share: Floats) -> list[MeanOf]:
    """Return the shares of a column's numbers in eight ranges, about equal under the density."""
    plain = column.plain
    if not isinstance(plain, NumberColumn) or not np.any(share[: plain.cardinality] > 0):
        return []
    parts = parts_of_column(variable, plain, share[: plain.cardinality], MAX_RANGES)
    parts = parts[1:] if len(parts) <= 2 else parts  # the share of one is that of the other
    return [MeanOf(variable, column, part) for part in parts]


class GroupMoments(NamedTuple):
    """Rows known, mean and sum of squares about it of each mean in each group."""

    n: Floats  # (groups, means), in rows of equal weight
    mean: Floats
    squares: Floats

    def with_all_rows(self, others: Sequence[GroupMoments]) -> GroupMoments:
        """Add means that are known over all rows only, which are the first group."""
        padded = []
        for i, each in enumerate(self):
            more = np.zeros((len(each), sum(other.n.shape[1] for other in others)))
            more[:1] = np.concatenate([np.zeros((1, 0)), *(other[i] for other in others)], axis=1)
            padded.append(np.concatenate([each, more], axis=1))
        return GroupMoments(*padded)


def group_moments(
    groups: Sequence[tuple[int, ...]], belongs: Bools, means: Sequence[MeanOf], rows: CheckedRows
) -> GroupMoments:
    """Count, average and spread what is known in the rows of each group."""
    values, known = np.zeros((2, len(rows), len(means)))
    for i, mean in enumerate(means):
        values[:, i], known[:, i] = mean.of_rows(rows)
    total = rows.weight @ known
    center = (rows.weight @ (values * known)) / np.where(total > 0, total, 1.0)
    values = (values - center) * known
    count, sums, squares = np.zeros((3, len(groups), len(means)))
    for block in row_blocks(len(rows)):
        inside = np.empty((len(groups), block.stop - block.start))
        for g, members in enumerate(groups):
            inside[g] = rows.weight[block] * np.all(belongs[block][:, list(members)], axis=1)
        count += inside @ known[block]
        sums += inside @ values[block]
        squares += inside @ values[block] ** 2
    n = np.where(count > 0, count, 1.0)
    about = np.maximum(squares - sums**2 / n, 0.0)
    scale = rows.per_weight
    return GroupMoments(scale * count, center + sums / n, scale * about)


def row_blocks(n: int) -> list[slice]:
    """Return blocks of rows, for matrix products that need little memory."""
    return [slice(start, min(n, start + BLOCK_ROWS)) for start in range(0, n, BLOCK_ROWS)]
