"""Compare means and shares over groups of rows with those under a density."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from scipy.special import ndtr, stdtr

from expecta.ask.checks.chance import beyond_chance, standard_errors, worst_first
from expecta.ask.checks.checked_rows import CheckedRows
from expecta.ask.checks.group_means import (
    GroupMoments,
    MeanOf,
    group_moments,
    means_of,
    row_blocks,
    shares_of,
)
from expecta.ask.checks.group_posteriors import group_posteriors
from expecta.ask.column_parts import ColumnPart, part_of_bins, parts_of_column
from expecta.ask.printed_answer import PrintedAnswer, plain
from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.text import brief
from expecta.densities.density import Density
from expecta.tables.column import Column
from expecta.tables.number_column import NumberColumn
from expecta.tables.scalars import DAY, TIMES

MIN_ROWS = 20.0  # of a group in which a column is known
MIN_EXPECTED = 5.0  # rows with a category, and without
MAX_END_SHARE = 0.1  # of a column's rows, among its lowest or highest numbers
MAX_GROUPS, MIN_GROUPS = 400, 40  # of two columns: the largest
MAX_VISITS = 200_000_000  # edges of the circuit times groups
MAX_VALUES = 16  # of a column, whose shares are compared: the most frequent
MANY_COLUMNS = 30  # beyond which fewer values of each are compared
LARGE = 0.2  # standard deviations of a column: a difference of means that matters
EVERYONE = "all rows"


@dataclass(frozen=True, eq=False)
class GroupCheck(PrintedAnswer):
    """Means and shares of columns over groups, in rows and under a density; the worst first.

    Attributes
    ----------
    groups, conditions
        Every group as a condition that ``ask`` takes, and of how many columns it is: none for
        all rows, one or two.  # (groups,)
    means, center, unit
        What is averaged, its mean over all rows under the density, and its standard deviation.
    group, mean
        Indices of the group and of what is averaged, for each comparison.
    count
        Rows of the group in which the column is known.
    density, rows
        The mean of a column of numbers in its own unit (times in days since 1970), or the share of
        a value. That of the density takes each bin at the mean of its training numbers.
    error
        Standard error of the rows' mean, by the larger of the spreads in rows and density.
    size
        Rows less density, in standard deviations of the column.
    apart
        How many standard errors the two are apart.
    beyond
        Whether that is beyond chance: of such comparisons at most 5% are expected to be chance,
        among those of all rows, of groups by one column and of groups by two.
    """

    groups: tuple[str, ...]
    conditions: Ints
    means: tuple[MeanOf, ...]
    center: Floats
    unit: Floats
    group: Ints
    mean: Ints
    count: Floats
    density: Floats
    rows: Floats
    error: Floats
    size: Floats
    apart: Floats
    beyond: Bools
    remarks: tuple[str, ...] = ()
    exactness: str = (
        "Sums over the density are exact; those over rows have the standard errors shown."
    )

    display = "GroupCheckDisplay"

    def head(self) -> list[str]:
        """Return the sentence before the table."""
        n = len(self.groups)
        return [
            f"{len(self.size):,} means and shares over {n:,} groups, "
            f"{int(self.beyond.sum()):,} beyond chance"
        ]

    @property
    def large(self) -> Bools:
        """Which differ beyond chance, and by 0.2 standard deviations of the column or more."""
        return self.beyond & (np.abs(self.size) >= LARGE)

    def of_size(self, conditions: int) -> GroupCheck:
        """Return the comparisons over groups by so many columns; 0 is all rows."""
        return self._take(np.flatnonzero(self.conditions[self.group] == conditions))

    def sorted_by(self, what: str = "size") -> GroupCheck:
        """Return them by "size" of what is beyond chance, or by standard "errors" apart."""
        return self._take(worst_first(what, self.size, self.apart, self.beyond))

    def _take(self, order: Ints) -> GroupCheck:
        parts = {name: getattr(self, name)[order] for name in _PER_COMPARISON}
        return replace(self, **parts)

    def lines(self) -> Mapping[str, Sequence[Any]]:
        """Return a line for each comparison."""
        days = np.array([DAY if _in_days(mean) else 1.0 for mean in self.means])
        unit = days[self.mean] if len(days) else np.ones(0)
        return {
            "group": [self.groups[i] for i in self.group.tolist()],
            "rows in it": self.count.tolist(),
            "column": [self.means[i].column.name for i in self.mean.tolist()],
            "value": [self.means[i].label for i in self.mean.tolist()],
            "density": (self.density / unit).tolist(),
            "rows": (self.rows / unit).tolist(),
            "se": (self.error / unit).tolist(),
            "size": self.size.tolist(),
            "apart": self.apart.tolist(),
            "beyond chance": self.beyond.tolist(),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the table as what JSON holds; NaN is None."""
        return {**plain(self.lines()), "remarks": plain(self.remarks)}

    def name(self, index: int) -> str:
        """Say what is compared: the mean of a column or the share of a value, and the group."""
        mean, group = self.means[self.mean[index]], self.groups[self.group[index]]
        if isinstance(mean.value, ColumnPart):
            return brief(mean.label)
        of = "" if mean.value is None else f" = {mean.label}"
        return f"{mean.column.name}{of}" + ("" if group == EVERYONE else f" where {brief(group)}")

    def sentence(self, index: int) -> str:
        """Say how one mean or share differs, in the column's units."""
        mean = self.means[self.mean[index]]
        density, rows = (mean.text(float(x[index])) for x in (self.density, self.rows))
        error = mean.text(float(self.error[index]), spread=True)
        return f"{self.name(index)}: density {density}, rows {rows} ± {error}"


_PER_COMPARISON = (
    *("group", "mean", "count", "density", "rows", "error", "size", "apart", "beyond"),
)


def _in_days(mean: MeanOf) -> bool:
    return mean.value is None and mean.column.kind in TIMES


def check_groups(
    density: Density, rows: CheckedRows, variables: Sequence[int], noise: float
) -> GroupCheck:
    """Compare means and shares over all rows, and over groups by one column and by two.

    Over all rows also the shares of eight ranges of each column of numbers: its distribution.
    Categories are groups as they are, numbers in four parts, and by themselves their lowest and
    highest (20 rows or more, up to a tenth); of groups by two columns those that have most rows,
    at most 400. Cost: two passes over the density's circuit for each group, and over the rows a
    matrix product, groups by means.
    """
    columns = density.encoder_.columns_
    whole = group_posteriors(density, [[]], variables, "groups")
    parts = [part for v in variables for part in parts_of_column(v, columns[v], whole[v][0])]
    n_paired, known = len(parts), {(part.variable, part.members) for part in parts}
    ends = (part for v in variables for part in _ends(v, columns[v], rows))
    parts += [part for part in ends if (part.variable, part.members) not in known]
    max_values = MAX_VALUES if len(variables) <= MANY_COLUMNS else MAX_VALUES // 4
    means = [m for v in variables for m in means_of(v, columns[v], rows, max_values)]
    belongs = _membership(parts, rows)
    max_groups = max(MIN_GROUPS, min(MAX_GROUPS, MAX_VISITS // density.circuit.structure.n_edges))
    groups, remarks = _choose_groups(parts, n_paired, belongs, rows, max_groups)
    facts = [[(parts[i].variable, _indicator(parts[i], columns)) for i in g] for g in groups]
    posteriors = group_posteriors(density, facts, variables, "groups")
    moments = group_moments(groups, belongs, means, rows)
    ranges = [shares for v in variables if (shares := shares_of(v, columns[v], whole[v][0]))]
    every = [group_moments([()], belongs, shares, rows) for shares in ranges]
    moments, means = moments.with_all_rows(every), [*means, *chain.from_iterable(ranges)]
    expected, variance = np.zeros((2, len(groups), len(means)))
    for i, mean in enumerate(means):
        expected[:, i], variance[:, i] = mean.of_posterior(posteriors[mean.variable])
    return _compare(parts, groups, means, moments, expected, variance, noise, remarks)


def _membership(parts: Sequence[ColumnPart], rows: CheckedRows) -> Bools:
    """Return whether each row is in each part.  # (rows, parts)."""
    belongs = np.zeros((len(rows), len(parts)), np.bool_)
    for i, part in enumerate(parts):
        belongs[:, i] = np.isin(rows.codes[:, part.variable], part.values)
    return belongs


def _ends(variable: int, column: Column, rows: CheckedRows) -> list[ColumnPart]:
    """Return the lowest and the highest numbers of a column: as few bins as have rows enough."""
    if not isinstance(column, NumberColumn):
        return []
    codes, bins = rows.codes[:, variable], np.arange(column.cardinality)
    counts = rows.per_weight * np.bincount(codes + 1, rows.weight, len(bins) + 1)[1:]
    parts = []
    for order in (bins, bins[::-1]):
        total = np.cumsum(counts[order])
        end = int(np.searchsorted(total, MIN_ROWS)) + 1
        if end <= len(bins) and total[end - 1] <= MAX_END_SHARE * total[-1]:
            parts.append(part_of_bins(variable, column, np.sort(order[:end])))
    return parts


def _choose_groups(
    parts: Sequence[ColumnPart],
    n_paired: int,
    belongs: Bools,
    rows: CheckedRows,
    max_groups: int,
) -> tuple[list[tuple[int, ...]], list[str]]:
    """Return groups as indices of parts: all rows, each part, and the largest pairs of parts."""
    both = np.zeros((len(parts), len(parts)))
    for block in row_blocks(len(rows)):
        hot = belongs[block].astype(np.float64)
        both += (hot * rows.weight[block, None]).T @ hot
    both *= rows.per_weight
    variable = np.array([part.variable for part in parts], np.int64)
    single = [(i,) for i in range(len(parts)) if both[i, i] >= MIN_ROWS]
    enough = np.triu(both >= MIN_ROWS, 1) & (variable[:, None] != variable)
    first, second = np.nonzero(enough[:n_paired, :n_paired])
    largest = np.argsort(-both[first, second], kind="stable")[:max_groups]
    pairs = list(zip(first[largest].tolist(), second[largest].tolist(), strict=True))
    remarks = []
    if len(first) > len(pairs):
        remarks.append(
            f"Of {len(first):,} groups by two columns with at least {MIN_ROWS:g} rows, the "
            f"{len(pairs):,} largest were compared."
        )
    return [(), *single, *pairs], remarks


def _compare(
    parts: Sequence[ColumnPart],
    groups: Sequence[tuple[int, ...]],
    means: Sequence[MeanOf],
    moments: GroupMoments,
    expected: Floats,
    variance: Floats,
    noise: float,
    remarks: Sequence[str],
) -> GroupCheck:
    """Compare what enough rows tell of, and find what is beyond chance."""
    n = moments.n
    # Rows that happen to be alike have too small a spread, and a mean off the same way.
    spread = np.maximum(moments.squares / np.maximum(n - 1.0, 1.0), variance)
    is_share = np.array([mean.value is not None for mean in means], np.bool_)
    share = np.where(np.abs(moments.mean - 0.5) < np.abs(expected - 0.5), moments.mean, expected)
    rare = is_share & (n * np.minimum(share, 1.0 - share) < MIN_EXPECTED)
    own = np.zeros(n.shape, np.bool_)  # a group says all of its own columns
    for g, members in enumerate(groups):
        for i in members:
            own[g] |= np.array([mean.variable == parts[i].variable for mean in means], np.bool_)
    group, mean = np.nonzero((n >= MIN_ROWS) & ~rare & ~own & np.isfinite(expected))
    at = group, mean
    gap = moments.mean[at] - expected[at]
    error = np.sqrt(spread[at] / n[at])
    unit = np.sqrt((variance[0] + moments.squares[0] / np.maximum(n[0], 1.0)) / 2)
    unit = np.where(unit > 0, unit, np.where(expected[0] != 0, np.abs(expected[0]), 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.nan_to_num(np.abs(gap) / (error * np.sqrt(noise)), nan=0.0, posinf=1e9)
    p = 2.0 * np.where(is_share[mean], ndtr(-distance), stdtr(n[at] - 1.0, -distance))
    conditions = np.array([len(members) for members in groups], np.int64)
    beyond = np.zeros(len(p), np.bool_)
    for size in range(3):
        family = conditions[group] == size
        beyond[family] = beyond_chance(p[family])
    texts = tuple(" and ".join(parts[i].text for i in members) or EVERYONE for members in groups)
    check = GroupCheck(
        texts,
        conditions,
        tuple(means),
        expected[0],
        unit,
        group,
        mean,
        n[at],
        expected[at],
        moments.mean[at],
        error,
        gap / unit[mean],
        standard_errors(p),
        beyond,
        tuple(remarks),
    )
    return check.sorted_by("size")


def _indicator(part: ColumnPart, columns: Sequence[Column]) -> Floats:
    weights = np.zeros(columns[part.variable].cardinality)
    weights[part.values] = 1.0
    return weights
