"""Intervals that hold what they say: predicted distributions, calibrated on rows held out.

The predicted distribution F of y given what is known includes the unknown inputs and
Gaussian residual noise. If F were right, u = |2 F(y) - 1| would be uniform. It is not
quite, so an interval of coverage c runs between the quantiles (1 - u_c) / 2 and
(1 + u_c) / 2 of F, with u_c the c-quantile of u over rows that training did not see
(distributional conformal prediction). How wrong F is depends on how much is unknown:
rows with about as many unknown columns count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import erf

from expecta.circuits.regression import RegressionCircuit
from expecta.common.arrays import Floats, Ints
from expecta.estimators.training import size
from expecta.queries.pair import Pair

__all__ = ["Calibration", "affordable", "distances", "hidden", "in_units", "least_noise"]

ENOUGH = 600  # rows that a quantile is taken over, where there are as many
AFFORDED = 30_000_000  # joins of gates that held-out predictions may come to: some seconds
ROWS = (1000, 10_000)  # and how many predictions that is, at least and at most
COARSE = 1e-4  # error of probabilities in calibration: of a share of some thousand rows


@dataclass(frozen=True, eq=False)
class Calibration:
    """How far from the middle of their predicted distribution rows lay.

    Parameters
    ----------
    missing
        How many columns of each row were unknown.  # (rows,)
    distance
        |2 F(y) - 1| of each row.  # (rows,)
    row
        Which row it is: one with columns hidden in several ways is still one.  # (rows,)
    """

    missing: Ints
    distance: Floats
    row: Ints

    @classmethod
    def joined(cls, parts: Sequence[Calibration]) -> Calibration:
        """Put the rows of several together."""
        return cls(
            np.concatenate([np.zeros(0, np.int64), *(part.missing for part in parts)]),
            np.concatenate([np.zeros(0), *(part.distance for part in parts)]),
            np.concatenate([np.zeros(0, np.int64), *(part.row for part in parts)]),
        )

    def level(self, missing: Ints, coverage: Floats) -> Floats:
        """Return u_c for numbers of unknown columns and coverages.  # (numbers, coverages).

        It is 1 where there are too few rows to tell.
        """
        if not len(self.distance):
            return np.broadcast_to(coverage, (len(missing), len(coverage))).copy()
        numbers, place = np.unique(missing, return_inverse=True)
        found = np.stack([self._quantiles(int(number), coverage) for number in numbers])
        return found[place]

    def _quantiles(self, number: int, coverage: Floats) -> Floats:
        """Weighted quantiles of the distance, rows weighted by how near their number is."""
        gap = np.abs(self.missing - number)
        # a number of unknown columns with more rows than the one asked about counts as much
        own = np.count_nonzero(gap == 0) or ENOUGH
        per_row = np.minimum(1.0, own / np.bincount(self.missing)[self.missing])
        enough = min(ENOUGH, len(np.unique(self.row)))
        for reach in range(1, int(np.max(gap)) + 2):
            distinct = len(np.unique(self.row[gap < reach]))
            if distinct >= enough:
                break
        weight = per_row * np.maximum(0.0, 1.0 - gap / reach)
        order = np.argsort(self.distance, kind="stable")
        # the row asked about counts too, beyond all others: that is what makes it conformal
        share = np.cumsum(weight[order]) / (weight.sum() * (1.0 + 1.0 / distinct))
        at = np.searchsorted(share, coverage - 1e-12)
        return np.append(self.distance[order], 1.0)[at]


def affordable(pair: Pair) -> int:
    """How many held-out predictions take no more than some seconds."""
    return int(np.clip(AFFORDED // max(pair.plan.n_joins, 1), *ROWS))


def distances(
    pair: Pair,
    noise: float,
    codes: Ints,
    y: Floats,
    row: Ints,
    n: int,
    rng: np.random.Generator,
) -> Calibration:
    """How far from the middle of their predicted distribution targets lie.

    Complete rows, which cost nothing, are used as they are, and all with columns hidden in
    n ways. Cost: that of some thirty frequencies for each of these.
    """
    if n == 0 or not len(codes):
        return Calibration.joined([])
    picked, left = hidden(codes, n, rng)
    possible = np.isfinite(pair.log_prob(left))
    picked, left = picked[possible], left[possible]
    share = pair.distribution(left, noise=noise, tol=COARSE).cdf(y[picked][:, None])[:, 0]
    missing = np.count_nonzero(left < 0, axis=1)
    some = Calibration(missing, np.abs(2.0 * share - 1.0), row[picked])
    complete = np.all(codes >= 0, axis=1)
    near = erf(np.abs(y[complete] - pair.g(codes[complete])) / noise / 2**0.5)
    known = Calibration(np.zeros(len(near), np.int64), near, row[complete])
    return Calibration.joined([some, known])


def hidden(codes: Ints, n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Hide columns at random: about n rows, as many for each number of unknown columns.

    Returns which rows they are, and what is left of them. A row that has fewer known columns
    than it should is left out. With nothing known all rows are one: they are there once each.
    """
    rows, columns = codes.shape
    picked, found = [], []
    for number in range(1, columns + 1):
        each = -(-n // columns) if number < columns else rows
        rounds = [rng.permutation(rows) for _ in range(-(-each // max(rows, 1)))]
        some = np.concatenate([np.zeros(0, np.int64), *rounds])[:each]
        some = some[np.count_nonzero(codes[some] < 0, axis=1) <= number]
        # known columns in random order, after the unknown ones
        rank = np.where(codes[some] < 0, -1.0, rng.random((len(some), columns)))
        gone = np.argsort(np.argsort(rank, axis=1, kind="stable"), axis=1) < number
        picked.append(some)
        found.append(np.where(gone, -1, codes[some]).astype(np.int32))
    return np.concatenate(picked), np.concatenate(found)


def least_noise(target: Floats) -> float:
    """Noise of a perfect fit, which is no certainty."""
    most = float(np.abs(target).max())
    spread = size(target - target.mean(), np.ones(len(target)))
    return max(1e-9 * (spread or most), float(np.spacing(most))) or 1e-9


def in_units(pair: Pair, noise: float) -> tuple[Pair, float, float]:
    """Return a pair about its bias and in a unit near its size; the bias, and the unit.

    What is asked of it loses no digits to a y far from zero, nor underflows.
    """
    g = pair.g
    unit = 2.0 ** float(np.ceil(np.log2(max(float(np.abs(g.weight).max()), noise))))
    about = Pair(pair.p, RegressionCircuit(g.structure, g.weight / unit))
    return about, float(g.bias[0]), unit
