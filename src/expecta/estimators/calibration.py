"""Calibrate intervals: predicted distributions, corrected on rows held out.

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

from expecta.common.arrays import Bools, Floats, Ints
from expecta.estimators.training import size
from expecta.expected.expected_model import ExpectedModel, ModelRows

QUANTILE_ROWS = 600  # that a quantile is taken over, where there are as many
CALIBRATION_TOL = 1e-4  # error of probabilities: of a share of some thousand rows


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
        numbers, which = np.unique(missing, return_inverse=True)
        levels = np.stack([self._quantiles(int(number), coverage) for number in numbers])
        return levels[which]

    def _quantiles(self, number: int, coverage: Floats) -> Floats:
        """Weighted quantiles of the distance, rows weighted by how near their number is."""
        gap = np.abs(self.missing - number)
        # a number of unknown columns with more rows than the one asked about counts as much
        own = np.count_nonzero(gap == 0) or QUANTILE_ROWS
        per_row = np.minimum(1.0, own / np.bincount(self.missing)[self.missing])
        enough = min(QUANTILE_ROWS, len(np.unique(self.row)))
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


def calibrate(
    model: ExpectedModel,
    rows: ModelRows,
    y: Floats,
    row: Ints,
    noise: float,
    n: int,
    rng: np.random.Generator,
) -> Calibration:
    """Compute how far from the middle of their predicted distribution targets lie.

    Complete rows, which cost nothing, are used as they are, and all with columns hidden in
    n ways; ``row`` says which row each is. Cost: one distribution for each of these.
    """
    if n == 0 or not len(rows.codes):
        return Calibration.joined([])
    picked, left = hide_columns(rows.codes, n, rng, model.fixed_columns)
    possible = np.isfinite(model.density.circuit.log_prob(left))
    picked, left = picked[possible], left[possible]
    complete = np.flatnonzero(rows.n_missing == 0)
    parts = []
    for which, hidden in ((picked, left < 0), (complete, rows.codes[complete] < 0)):
        asked = model.hide(rows, which, hidden)
        share = model.cdf(asked, y[which], noise, CALIBRATION_TOL)
        parts.append(Calibration(asked.n_missing, np.abs(2.0 * share - 1.0), row[which]))
    return Calibration.joined(parts)


def hide_columns(
    codes: Ints, n: int, rng: np.random.Generator, fixed: Bools | None = None
) -> tuple[Ints, Ints]:
    """Hide columns at random: about n rows, as many for each number of unknown columns.

    Returns which rows they are, and what is left of them. A row that has fewer known columns
    than it should is left out. With nothing known all rows are one: they are there once each.
    Columns that are ``fixed`` stay as they are.
    """
    rows, columns = codes.shape
    picked, left = [], []
    for number in range(1, columns + 1):
        size = -(-n // columns) if number < columns else rows
        rounds = [rng.permutation(rows) for _ in range(-(-size // max(rows, 1)))]
        chosen = np.concatenate([np.zeros(0, np.int64), *rounds])[:size]
        chosen = chosen[np.count_nonzero(codes[chosen] < 0, axis=1) <= number]
        # known columns in random order, after the unknown ones
        rank = np.where(codes[chosen] < 0, -1.0, rng.random((len(chosen), columns)))
        hidden = np.argsort(np.argsort(rank, axis=1, kind="stable"), axis=1) < number
        if fixed is not None:
            hidden &= ~fixed
        picked.append(chosen)
        left.append(np.where(hidden, -1, codes[chosen]).astype(np.int32))
    return np.concatenate(picked), np.concatenate(left)


def least_noise(target: Floats) -> float:
    """Noise of a perfect fit, which is no certainty."""
    most = float(np.abs(target).max())
    spread = size(target - target.mean(), np.ones(len(target)))
    return max(1e-9 * (spread or most), float(np.spacing(most))) or 1e-9
