"""Choose which element to split on what, by the promised drop of the penalised loss."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import scipy.linalg

from expecta.common.arrays import Bools, Floats, Ints
from expecta.learn.regression.contexts import Shrinkage
from expecta.learn.regression.losses import Loss
from expecta.learn.regression.row_features import FeatureTable, normal_system, pair_sums

System: TypeAlias = tuple[Floats, Floats, Floats]  # slope, curvature, penalty
SHARED, CONTEXT = Shrinkage(0.1, 1.0), Shrinkage(3.0, 10.0)
MANY_VARIABLES = 64  # beyond which a split of all is dear
N_FINALISTS = 4  # splits of an element whose drop is computed, not only estimated
MAX_WORK = 2e9  # rows x variables², beyond which the estimates are made from a part of the rows


@dataclass(frozen=True, eq=False)
class SplitSide:
    """One side of a proposed split."""

    allowed: Bools  # values of the variable
    positions: Ints  # of the variables that deserve a table


@dataclass(frozen=True, eq=False)
class Proposal:
    """A split of an element: its promised drop less what noise alone would promise."""

    net: float
    position: int  # of the variable split on
    sides: tuple[SplitSide, ...]


@dataclass(frozen=True)
class GrowthOptions:
    """How to grow a circuit."""

    frugal: bool = False  # whether drops are compared per parameter that they cost
    min_rows: int = 20  # on either side of a split
    price: float = 1.0  # drop that a split must promise, in units of what noise promises
    table_price: float = 1.5  # the same for one table of it to be copied, not shared
    max_batch: int = 64  # splits per round
    min_share: float = 0.7  # of the round's best drop, that further splits must promise
    shared: Shrinkage = SHARED  # of the tables that all rows have
    context: Shrinkage = CONTEXT  # of those of a context

    @classmethod
    def of(cls, loss: Loss, n_variables: int) -> GrowthOptions:
        """Return the options that served well for a kind of problem.

        A logistic loss bends less than a squared one, so it takes more to be shrunk as much, and
        then bears more tables. Where no split can see all variables, many elements can be split
        at once.
        """
        options = cls()
        if not loss.quadratic:
            shared, context = Shrinkage(1.0, 3.0), Shrinkage(9.0, 30.0)
            options = replace(options, price=0.3, table_price=0.7, shared=shared, context=context)
        if n_variables > MANY_VARIABLES and loss.quadratic:
            options = replace(options, max_batch=128, min_share=0.05)
        elif n_variables > MANY_VARIABLES:
            options = replace(options, max_batch=256, min_share=0.3, frugal=True)
        return options


@dataclass(eq=False)
class SplitSearch:
    """Looks for splits, with the slope of the loss as it stands.

    The loss is taken as its second-order expansion with one curvature for all rows of an
    output. For squared error that is exact.
    """

    table: FeatureTable
    options: GrowthOptions
    weight: Floats
    shrinkage: Shrinkage
    slope: Floats  # weight times the slope  (rows, outputs)
    curvature: float  # mean over rows and outputs
    dispersion: float  # sum over outputs
    _penalties: dict[tuple[int, int], Floats] = field(default_factory=dict)

    def propose(self, rows: Ints, first: int, last: int) -> Proposal | None:
        """Find the best split of an element hot on ``rows`` over variables ``first:last``.

        Cost: rows x features², the few that a row has, and a dense system for each finalist.
        """
        known = rows[self.weight[rows] > 0]
        if len(known) < 2 * self.options.min_rows:
            return None
        everything = self._system(known, first, last)
        best, drop = None, 0.0
        for position, allowed in self._screen(known, first, last):
            sides = self._sides(known, position, allowed, first, last, everything)
            promised = sum(_drop(*side) for side in sides)
            if promised > drop:
                best, drop = (position, allowed, sides), promised
        if best is None:
            return None
        position, allowed, sides = best
        net = drop - self.options.price * sum(self._noise(*side) for side in sides)
        if net <= 0:
            return None
        proposed = (
            SplitSide(allowed, self._tables(sides[0], first, last)),
            SplitSide(~allowed, self._tables(sides[1], first, last)),
        )
        return Proposal(net, position, proposed)

    def _sides(
        self, rows: Ints, position: int, allowed: Bools, first: int, last: int, both: System
    ) -> tuple[System, System]:
        """Return the systems of the rows with an allowed value and of the others.

        Only the smaller is summed up, the larger is what it leaves.
        """
        hot = allowed[self.table.codes[rows, position]]
        hot_is_smaller = 2 * np.count_nonzero(hot) <= len(hot)
        small = self._system(rows[hot if hot_is_smaller else ~hot], first, last)
        large = (both[0] - small[0], both[1] - small[1], both[2])
        return (small, large) if hot_is_smaller else (large, small)

    def _screen(self, rows: Ints, first: int, last: int) -> list[tuple[int, Bools]]:
        """Rank all splits as if features were orthogonal; returns the best few."""
        low, high = int(self.table.coarse.first[first]), int(self.table.coarse.first[last])
        step = 1 + int(len(rows) * (last - first) ** 2 / MAX_WORK)  # a row stands for so many
        rows = rows[::step]
        both = step * np.concatenate([self.slope, self.weight[:, None]], axis=1)
        pairs = pair_sums(
            self.table.coarse.rows, rows, low, high, both
        )  # (features, features, outputs + 1)
        total = np.concatenate([both[rows].sum(axis=0)[None], np.einsum("iik->ik", pairs)])
        scored: list[tuple[float, int, Bools]] = []
        for position in range(first, last):
            curve = self.table.curves[position]
            begin, end = self.table.coarse.first[position : position + 2] - low
            inside = np.empty((end - begin, *total.shape))  # (cuts, 1 + features, outputs + 1)
            inside[:, 0] = total[1 + begin : 1 + end]
            inside[:, 1:] = pairs[begin:end]
            if curve.n_groups == 2:
                groups = np.array([[False, True]])
            elif curve.ordered:
                inside = np.cumsum(inside, axis=0)[:-1]
                groups = np.tri(curve.n_groups, dtype=np.bool_)[:-1]
            else:
                groups = np.eye(curve.n_groups, dtype=np.bool_)
            if not len(inside):
                continue
            weight = inside[:, 0, -1]
            enough = np.minimum(weight, total[0, -1] - weight) >= self.options.min_rows
            score = self._estimate(inside) + self._estimate(total - inside)
            values = groups[:, curve.groups]
            scored += [(float(score[i]), position, values[i]) for i in np.flatnonzero(enough)]
        scored.sort(key=lambda cut: -cut[0])
        return [(position, allowed) for _, position, allowed in scored[:N_FINALISTS]]

    def _estimate(self, inside: Floats) -> Floats:
        """Estimate the drop of every cut as if features were orthogonal, less that of noise."""
        weight = self.curvature * np.maximum(inside[:, :, -1], 0.0)
        share = 1.0 / (weight + self.shrinkage.size)
        drop = np.sum(inside[:, :, :-1] ** 2, axis=2) * share
        return np.asarray(np.sum(drop - self.dispersion * weight * share, axis=1))

    def _system(self, rows: Ints, first: int, last: int) -> System:
        """Return slope, curvature and penalty of a constant and a range of variables' tables."""
        low, high = int(self.table.fine.first[first]), int(self.table.fine.first[last])
        gram, slope = normal_system(self.table.fine.rows, rows, low, high, self.weight, self.slope)
        key = (first, last)
        if key not in self._penalties:
            curves = self.table.curves[first:last]
            self._penalties[key] = self.shrinkage.of(curves, self.shrinkage.size)
        return slope, self.curvature * gram, self._penalties[key]

    def _noise(self, slope: Floats, gram: Floats, penalty: Floats) -> float:
        """Return the drop to expect of noise: half the slope's variance per free parameter."""
        factor, _ = scipy.linalg.lapack.dpotrf(gram + penalty, lower=1)
        inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=1)
        twice = np.tril(inverse, -1) * penalty
        fixed = 2.0 * twice.sum() + np.sum(np.diag(inverse) * np.diag(penalty))
        return 0.5 * self.dispersion * (len(gram) - float(fixed))

    def _tables(self, system: System, first: int, last: int) -> Ints:
        """Choose the variables whose table, on its own, promises more than noise."""
        slope, gram, penalty = system
        start = 1 + self.table.fine.first[first : last + 1] - self.table.fine.first[first]
        chosen = []
        for position, a, b in zip(range(first, last), start[:-1], start[1:], strict=True):
            if b > a:
                alone = slope[a:b], gram[a:b, a:b], penalty[a:b, a:b]
                if _drop(*alone) > self.options.table_price * self._noise(*alone):
                    chosen.append(position)
        return np.array(chosen, np.int64)


def _drop(slope: Floats, gram: Floats, penalty: Floats) -> float:
    """Return the drop of the quadratic at its minimum."""
    solved = scipy.linalg.lapack.dposv(gram + penalty, slope, lower=1)[1]
    return 0.5 * float(np.sum(slope * solved))
