"""Which element to split on what: the promised drop of the penalised loss."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import scipy.linalg

from expecta.common.arrays import Bools, Floats, Ints
from expecta.learn.regression.boxes import Shrinkage
from expecta.learn.regression.curves import Curve
from expecta.learn.regression.features import Features

__all__ = ["Part", "Proposal", "Scout"]

System: TypeAlias = tuple[Floats, Floats, Floats]  # slope, curvature, penalty
FINALISTS = 4  # splits of an element whose drop is computed, not only estimated
MOST = 2e9  # rows x variables², beyond which the estimates are made from some of the rows


@dataclass(frozen=True, eq=False)
class Part:
    """One side of a split."""

    allowed: Bools  # values of the variable
    rows: Ints
    places: Ints  # of the variables that deserve a table


@dataclass(frozen=True, eq=False)
class Proposal:
    """A split of an element: its promised drop less what noise alone would promise."""

    net: float
    place: int  # of the variable split on
    parts: tuple[Part, ...]


@dataclass(eq=False)
class Scout:
    """Looks for splits, with the slope of the loss as it stands.

    The loss is taken as its second-order expansion with one curvature for all rows of an
    output. For squared error that is exact.
    """

    codes: Ints  # in the order of the vtree's leaves  (rows, variables)
    curves: list[Curve]
    fine: Features
    coarse: Features  # one feature per group of values
    weight: Floats
    shrinkage: Shrinkage
    constant: float
    min_rows: int
    price: float  # of a parameter, in units of what noise promises it
    choosy: float  # the same for a table to be copied
    slope: Floats  # weight times the slope  (rows, outputs)
    curvature: float  # mean over rows and outputs
    dispersion: float  # sum over outputs
    _penalties: dict[tuple[int, int], Floats] = field(default_factory=dict)

    def propose(self, rows: Ints, first: int, last: int) -> Proposal | None:
        """Find the best split of an element hot on ``rows`` over variables ``first:last``.

        Cost: rows x features², the few that a row has, and a dense system for each finalist.
        """
        known = rows[self.weight[rows] > 0]
        if len(known) < 2 * self.min_rows:
            return None
        everything = self._system(known, first, last)
        best, drop = None, 0.0
        for place, allowed in self._screen(known, first, last):
            sides = self._sides(known, place, allowed, first, last, everything)
            promised = sum(_drop(*side) for side in sides)
            if promised > drop:
                best, drop = (place, allowed, sides), promised
        if best is None:
            return None
        place, allowed, sides = best
        net = drop - self.price * sum(self._noise(*side) for side in sides)
        if net <= 0:
            return None
        hot = allowed[self.codes[rows, place]]
        parts = (
            Part(allowed, rows[hot], self._tables(sides[0], first, last)),
            Part(~allowed, rows[~hot], self._tables(sides[1], first, last)),
        )
        return Proposal(net, place, parts)

    def _sides(
        self, rows: Ints, place: int, allowed: Bools, first: int, last: int, both: System
    ) -> tuple[System, System]:
        """Return the systems of the rows with an allowed value and of the others.

        Only the smaller is summed up, the larger is what it leaves.
        """
        hot = allowed[self.codes[rows, place]]
        few = 2 * np.count_nonzero(hot) <= len(hot)
        small = self._system(rows[hot if few else ~hot], first, last)
        large = (both[0] - small[0], both[1] - small[1], both[2])
        return (small, large) if few else (large, small)

    def _screen(self, rows: Ints, first: int, last: int) -> list[tuple[int, Bools]]:
        """Rank all splits as if features were orthogonal; returns the best few."""
        low, high = int(self.coarse.first[first]), int(self.coarse.first[last])
        step = 1 + int(len(rows) * (last - first) ** 2 / MOST)  # a row stands for so many
        rows = rows[::step]
        both = step * np.concatenate([self.slope, self.weight[:, None]], axis=1)
        pairs = self.coarse.rows.pairs(rows, low, high, both)  # (features, features, outputs + 1)
        total = np.concatenate([both[rows].sum(axis=0)[None], np.einsum("iik->ik", pairs)])
        found: list[tuple[float, int, Bools]] = []
        for place in range(first, last):
            curve = self.curves[place]
            begin, end = self.coarse.first[place] - low, self.coarse.first[place + 1] - low
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
            good = np.minimum(weight, total[0, -1] - weight) >= self.min_rows
            score = self._estimate(inside) + self._estimate(total - inside)
            values = groups[:, curve.groups]
            found += [(float(score[i]), place, values[i]) for i in np.flatnonzero(good)]
        found.sort(key=lambda one: -one[0])
        return [(place, allowed) for _, place, allowed in found[:FINALISTS]]

    def _estimate(self, inside: Floats) -> Floats:
        """Drop of every cut if features were orthogonal, less that of noise."""
        weight = self.curvature * np.maximum(inside[:, :, -1], 0.0)
        share = 1.0 / (weight + self.shrinkage.size)
        drop = np.sum(inside[:, :, :-1] ** 2, axis=2) * share
        found: Floats = np.sum(drop - self.dispersion * weight * share, axis=1)
        return found

    def _system(self, rows: Ints, first: int, last: int) -> System:
        """Return slope, curvature and penalty of a constant and a range of variables' tables."""
        low, high = int(self.fine.first[first]), int(self.fine.first[last])
        gram, slope = self.fine.rows.system(rows, low, high, self.weight, self.slope)
        key = (first, last)
        if key not in self._penalties:
            self._penalties[key] = self.shrinkage.of(self.curves[first:last], self.constant)
        return slope, self.curvature * gram, self._penalties[key]

    def _noise(self, slope: Floats, gram: Floats, penalty: Floats) -> float:
        """Drop to expect if the slope were noise: half of its variance per free parameter."""
        factor, _ = scipy.linalg.lapack.dpotrf(gram + penalty, lower=1)
        inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=1)
        twice = np.tril(inverse, -1) * penalty
        fixed = 2.0 * twice.sum() + np.sum(np.diag(inverse) * np.diag(penalty))
        return 0.5 * self.dispersion * (len(gram) - float(fixed))

    def _tables(self, system: System, first: int, last: int) -> Ints:
        """Choose the variables whose table, on its own, promises more than noise."""
        slope, gram, penalty = system
        start = 1 + self.fine.first[first : last + 1] - self.fine.first[first]
        chosen = []
        for place, a, b in zip(range(first, last), start[:-1], start[1:], strict=True):
            if b > a:
                alone = slope[a:b], gram[a:b, a:b], penalty[a:b, a:b]
                if _drop(*alone) > self.choosy * self._noise(*alone):
                    chosen.append(place)
        return np.array(chosen, np.int64)


def _drop(slope: Floats, gram: Floats, penalty: Floats) -> float:
    """Drop of the quadratic at its least."""
    solved = scipy.linalg.lapack.dposv(gram + penalty, slope, lower=1)[1]
    return 0.5 * float(np.sum(slope * solved))
