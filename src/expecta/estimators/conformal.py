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

from expecta.arrays import Floats, Ints

__all__ = ["Calibration", "hidden"]

ENOUGH = 600.0  # rows that a quantile is taken over, where there are as many


@dataclass(frozen=True, eq=False)
class Calibration:
    """How far from the middle of their predicted distribution rows lay.

    Parameters
    ----------
    missing
        How many columns of each row were unknown.  # (rows,)
    distance
        |2 F(y) - 1| of each row.  # (rows,)
    """

    missing: Ints
    distance: Floats

    @classmethod
    def joined(cls, parts: Sequence[Calibration]) -> Calibration:
        """Put the rows of several together."""
        return cls(
            np.concatenate([np.zeros(0, np.int64), *(part.missing for part in parts)]),
            np.concatenate([np.zeros(0), *(part.distance for part in parts)]),
        )

    def level(self, missing: Ints, coverage: Floats) -> Floats:
        """Return u_c for numbers of unknown columns and coverages.  # (numbers, coverages)."""
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
        for reach in range(1, int(np.max(gap)) + 2):
            weight = per_row * np.maximum(0.0, 1.0 - gap / reach)
            if weight.sum() >= ENOUGH:
                break
        order = np.argsort(self.distance, kind="stable")
        # the row asked about counts too, beyond all others: that is what makes it conformal
        share = np.cumsum(weight[order]) / (weight.sum() + 1.0)
        at = np.searchsorted(share, coverage - 1e-12)
        return np.append(self.distance[order], 1.0)[at]


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
