"""Sum over a set of rows what splits of elements with these rows promise, once for all of them.

An element lies at a vtree node and sees the variables below. Elements often have the same rows:
at the start all of them have all rows. Their sums over pairs of features are then parts of those
of the element that sees most.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from expecta.common.arrays import Bools, Floats, Ints
from expecta.learn.regression.row_features import FeatureTable, normal_sums
from expecta.learn.regression.split_kernels import promised_drop, rank_cuts, score_cuts

Sums: TypeAlias = tuple[Floats, Floats]  # slopes, and pairs (i, j) of features with i <= j
MAX_WORK = 2e9  # rows x variables², beyond which the estimates are made from a part of the rows
ROUNDING = 1e-9  # of weights
MAX_KEPT = 1 << 24  # numbers of sums that are kept


class SplitTarget(NamedTuple):
    """What splits are to lower: the second-order expansion of the loss, one curvature for all."""

    slope: Floats  # weight times the slope  (rows, outputs)
    weight: Floats
    curvature: float  # mean over rows and outputs
    dispersion: float  # sum over outputs
    pull: float  # of a parameter to zero


class Cut(NamedTuple):
    """A way to part the values of a variable."""

    position: int  # of the variable
    group: int  # groups up to this one, or it alone


def row_step(n_rows: int, n_variables: int) -> int:
    """Return how many rows a row stands for where cuts are compared."""
    return 1 + int(n_rows * n_variables**2 / MAX_WORK)


class SplitSums:
    """Sums over a set of rows, for elements that see some of a range of variables."""

    def __init__(
        self, table: FeatureTable, target: SplitTarget, rows: Ints, first: int, last: int
    ) -> None:
        self._table, self._target, self._rows = table, target, rows
        self._first, self._last = first, last
        self._step = row_step(len(rows), last - first)
        self._sides: dict[Cut, tuple[int, int, bool, Sums]] = {}
        self._n_kept = 0

    def covers(self, first: int, last: int) -> bool:
        """Whether an element that sees such a range can use these sums."""
        inside = self._first <= first and last <= self._last
        return inside and row_step(len(self._rows), last - first) == self._step

    def system(self, first: int, last: int) -> Sums:
        """Return the sums for a constant and the tables of a range of variables."""
        return self._part(self._everything, self._first, first, last)

    def sides(self, cut: Cut, first: int, last: int) -> tuple[Sums, Sums]:
        """Return the sums of the rows inside a cut and of those outside."""
        low, inside_is_small, sums = self._small_side(cut, first, last)
        slope, pairs = self._part(sums, low, first, last)
        both = self.system(first, last)
        large = both[0] - slope, both[1] - pairs
        return ((slope, pairs), large) if inside_is_small else (large, (slope, pairs))

    def drop(self, cut: Cut, first: int, last: int, penalty: Floats, roots: Floats) -> float:
        """Return the drop of both sides' quadratics at their minima, and set ``roots``.

        See `promised_drop`; the smaller side comes first.
        """
        low, _, small = self._small_side(cut, first, last)
        at = self._table.fine.first
        both_at, small_at = (1 + int(at[first] - at[start]) for start in (self._first, low))
        curvature = self._target.curvature
        everything = self._everything
        return promised_drop(everything, both_at, small, small_at, penalty, curvature, roots)

    def _small_side(self, cut: Cut, first: int, last: int) -> tuple[int, bool, Sums]:
        """Return of a cut's smaller side: variable that its sums begin with, if it is inside, sums.

        Only that side is summed up, the larger is what it leaves.
        """
        if cut in self._sides:
            low, high, inside_is_small, sums = self._sides[cut]
            if first >= low and last <= high:
                return low, inside_is_small, sums
        hot = self.allowed(cut)[self._table.codes[self._rows, cut.position]]
        inside_is_small = bool(2 * np.count_nonzero(hot) <= len(hot))
        rows = self._rows[hot if inside_is_small else ~hot]
        sums = self._system(rows, first, last)
        if self._n_kept + sums[1].size <= MAX_KEPT:
            self._n_kept += sums[1].size
            self._sides[cut] = first, last, inside_is_small, sums
        return first, inside_is_small, sums

    def allowed(self, cut: Cut) -> Bools:
        """Return the values of its variable that are inside a cut."""
        curve = self._table.curves[cut.position]
        if curve.n_groups == 2:
            return np.asarray(curve.groups == 1)
        ordered = curve.ordered
        return np.asarray(curve.groups <= cut.group if ordered else curve.groups == cut.group)

    def best_cuts(self, first: int, last: int, min_rows: float, n: int) -> list[Cut]:
        """Rank all cuts of a range of variables as if features were orthogonal."""
        cut_first, scores, weight = self._scores
        best = np.empty(n, np.int64)
        # a row's completions weigh one together, but for rounding
        least = (1 - ROUNDING) * min_rows
        cuts = int(cut_first[first]), int(cut_first[last])
        tables = first - self._first, last - self._first
        best = best[: rank_cuts(scores, weight, cuts, tables, least, best)]
        position = np.searchsorted(cut_first, best, "right") - 1
        groups = best - cut_first[position]
        return [Cut(*pair) for pair in zip(position.tolist(), groups.tolist(), strict=True)]

    @cached_property
    def _everything(self) -> Sums:
        return self._system(self._rows, self._first, self._last)

    @cached_property
    def _scores(self) -> tuple[Ints, Floats, Floats]:
        """First cut of each variable; what cuts promise, by table; the rows' weight inside.

        # (variables + 1,), (cuts, 1 + variables), (cuts + 1,)
        """
        coarse, target = self._table.coarse, self._target
        low, high = self._first, self._last
        n_cuts = np.where(np.arange(len(coarse.n_cuts)) < low, 0, coarse.n_cuts)
        cut_first = np.concatenate([[0], np.cumsum(n_cuts)])
        n, k = int(cut_first[high]), target.slope.shape[1]
        width = 1 + int(coarse.first[high] - coarse.first[low])
        most = int(np.diff(coarse.first[low : high + 1]).max(initial=0))
        both = self._step * np.concatenate([target.slope, target.weight[:, None]], axis=1)
        weight, scores = np.empty(n + 1), np.empty((n, 1 + high - low))
        score_cuts(
            coarse.of_row,
            coarse.first,
            coarse.cumulative,
            self._rows[:: self._step],
            low,
            high,
            both,
            (target.curvature, target.pull, target.dispersion),
            (
                np.empty((most, k + 1, width)),
                np.empty((k + 1, width)),
                np.empty((k + 1, width)),
                np.empty((2, width)),
            ),
            weight,
            scores,
        )
        return cut_first, scores, weight

    def _system(self, rows: Ints, first: int, last: int) -> Sums:
        fine, target = self._table.fine, self._target
        low, high = int(fine.first[first]), int(fine.first[last])
        pairs, slope = normal_sums(fine.rows, rows, low, high, target.weight, target.slope)
        return slope, pairs

    def _part(self, sums: Sums, start: int, first: int, last: int) -> Sums:
        """Return the constant's and a range of variables' part of sums that begin with another."""
        of = self._table.fine.first
        a, b = 1 + int(of[first] - of[start]), 1 + int(of[last] - of[start])
        slope, pairs = sums
        if a == 1:
            return slope[:b], pairs[:b, :b]
        part = np.empty((1 + b - a, 1 + b - a))
        part[0, 0], part[0, 1:] = pairs[0, 0], pairs[0, a:b]
        part[1:, 0], part[1:, 1:] = 0.0, pairs[a:b, a:b]
        return np.concatenate([slope[:1], slope[a:b]]), part
