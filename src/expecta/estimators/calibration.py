"""Calibrate predicted distributions of y: their scores on rows held out.

The predicted distribution F of y given what is known includes the unknown inputs and Gaussian
residual noise. It is not quite right, and y need not be symmetric about it. So rows that training
did not see tell which level each score has (`expected/calibrated_distribution.py`; a conformal
predictive distribution), each tail by its own rows. How wrong F is depends on how much is
unknown: rows with about as many unknown columns count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from expecta.common.arrays import Bools, Floats, Ints
from expecta.estimators.training import size
from expecta.expected.calibrated_distribution import (
    SCORE_TOL,
    CalibratedDistribution,
    ScoreDistribution,
    scores,
)
from expecta.expected.expected_model import ExpectedModel, ModelRows
from expecta.expected.row_distributions import RowDistributions
from expecta.expected.target_values import ANY_NUMBER, TargetValues
from expecta.queries.output_distribution import Distribution

QUANTILE_ROWS = 600  # that a quantile is taken over, where there are as many
MAX_NUMBERS = 64  # of unknown columns that rows are hidden for, spread over all numbers
MAX_SCORE = 1e100  # in standard deviations: so far off that multiples of it are numbers too
UNCALIBRATED_TOL = 1e-12  # error of probabilities where no rows limit the levels


@dataclass(frozen=True, eq=False)
class Calibration:
    """Scores of y in their predicted distributions, sorted.

    Parameters
    ----------
    missing
        How many columns of each row were unknown.  # (rows,)
    score
        How far above the median y was, in standard deviations of a normal distribution;
        sorted.  # (rows,)
    row
        Which row it is: one with columns hidden in several ways is still one.  # (rows,)
    values
        What y can be: quantiles are among it.
    """

    missing: Ints
    score: Floats
    row: Ints
    values: TargetValues = ANY_NUMBER

    @classmethod
    def joined(cls, parts: Sequence[Calibration]) -> Calibration:
        """Put the rows of several together."""
        missing = np.concatenate([np.zeros(0, np.int64), *(part.missing for part in parts)])
        score = np.concatenate([np.zeros(0), *(part.score for part in parts)])
        row = np.concatenate([np.zeros(0, np.int64), *(part.row for part in parts)])
        order = np.argsort(score, kind="stable")
        return cls(missing[order], score[order], row[order])

    def distribution(
        self, model: ExpectedModel, rows: ModelRows, noise: float
    ) -> Distribution | RowDistributions:
        """Distribution of y for each row; the predicted one where there are no scores."""
        if not len(self.score):
            return model.target_distribution(rows, noise, UNCALIBRATED_TOL)
        base = model.target_distribution(rows, noise, SCORE_TOL)
        numbers, which = np.unique(rows.n_missing, return_inverse=True)
        of_scores = [self.of_scores(k) for k in numbers.tolist()]
        return CalibratedDistribution(base, of_scores, which, self.values)

    def of_scores(self, number: int) -> ScoreDistribution:
        """Distribution of scores of rows with a number of unknown columns.

        Rows are weighted by how near their number is; the nearest number that there is stands
        for one that there is not.
        """
        number = self.missing[np.argmin(np.abs(self.missing - number))]
        gap = np.abs(self.missing - number)
        # a number of unknown columns with more rows than the one asked about counts as much
        own = np.count_nonzero(gap == 0)
        per_row = np.minimum(1.0, own / np.bincount(self.missing)[self.missing])
        enough = min(QUANTILE_ROWS, len(np.unique(self.row)))
        for reach in (np.unique(gap) + 1).tolist():
            distinct = len(np.unique(self.row[gap < reach]))
            if distinct >= enough:
                break
        near = gap < reach
        weight = per_row[near] * (1.0 - gap[near] / reach)
        total = float(weight.sum())
        n = min(float(distinct), total)
        # the row asked about counts too, in any of the gaps: that is what makes it conformal
        level = (np.cumsum(weight) - 0.5 * weight + 0.5 * total / n) / (total * (1.0 + 1.0 / n))
        return ScoreDistribution(self.score[near], level, n)


def calibrate(
    model: ExpectedModel,
    rows: ModelRows,
    y: Floats,
    row: Ints,
    noise: float,
    n: int,
    rng: np.random.Generator,
) -> Calibration:
    """Compute the scores of targets in their predicted distributions.

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
        score = scores(model.target_distribution(asked, noise, SCORE_TOL), y[which, None])[:, 0]
        known = ~np.isnan(score)
        score = np.clip(score[known], -MAX_SCORE, MAX_SCORE)
        parts.append(Calibration(asked.n_missing[known], score, row[which[known]]))
    return Calibration.joined(parts)


def hide_columns(
    codes: Ints, n: int, rng: np.random.Generator, fixed: Bools | None = None
) -> tuple[Ints, Ints]:
    """Hide columns at random: about n rows, as many for each number of unknown columns.

    Of very many columns, evenly spread numbers stand for those between them. Returns which
    rows they are, and what is left of them. A row that has fewer known columns than it should
    is left out. With nothing known all rows are one: they are there once each. Columns that
    are ``fixed`` stay as they are.
    """
    rows, columns = codes.shape
    picked, left = [], []
    numbers = np.linspace(1, columns, min(columns, MAX_NUMBERS)).round().astype(int).tolist()
    for number in numbers:
        size = -(-n // len(numbers)) if number < columns else rows
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
