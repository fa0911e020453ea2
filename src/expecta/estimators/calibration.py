"""Calibrate predicted distributions of y: their scores on rows held out.

The predicted distribution F of y given what is known includes the unknown inputs and normal
residual noise. It is not quite right, and y need not be symmetric about it. So rows that training
did not see tell which level each score has (`expected/calibrated_distribution.py`; a conformal
predictive distribution), each tail by its own rows. How wrong F is depends on how much is
unknown, on how wide F is and on where it lies: rows that are alike in these count most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

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
from expecta.expected.target_distribution import TargetDistribution
from expecta.expected.target_scale import PLAIN, TargetScale
from expecta.expected.target_values import ANY_NUMBER, TargetValues
from expecta.learn.regression.noise_variance import NoiseVariance
from expecta.queries.output_distribution import Distribution

WIDTH_LEVELS = np.array([0.1, 0.9])  # of the interval that tells how wide a distribution is
CELLS = 10  # of ranks of centres and of widths each
DISTANCES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7)  # in ranks, that rows count over
LOCAL_ROWS = 200  # that rows of a cell are worth at least, where there are as many
BACKGROUND = 0.05  # share that all rows have of the weight, alike or not
QUANTILE_ROWS = 600  # that a quantile is taken over, where there are as many
MAX_NUMBERS = 64  # of unknown columns that rows are hidden for, spread over all numbers
MAX_SCORE = 1e100  # in standard deviations: so far off that multiples of it are numbers too
UNCALIBRATED_TOL = 1e-12  # error of probabilities where no rows limit the levels


class Place(NamedTuple):
    """Where predicted distributions lie, and how wide they are.  # (rows,) each.

    Middle and width of the interval that holds 80%.
    """

    centre: Floats
    width: Floats

    @classmethod
    def of(cls, base: Distribution | RowDistributions) -> Place:
        """Ask predicted distributions."""
        low, high = base.quantile(WIDTH_LEVELS).T
        return cls(0.5 * (low + high), high - low)

    def rounded(self) -> Place:
        """Return the same with widths that are equal where they differ by rounding."""
        with np.errstate(divide="ignore"):
            return Place(self.centre, np.round(np.log(self.width), 6))


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
    centre, width
        Where the predicted distribution lay, and how wide it was; see `Place`.  # (rows,) each
    values
        What y can be: quantiles are among it.
    scale
        What y is of the number that the distributions are of.
    """

    missing: Ints
    score: Floats
    row: Ints
    centre: Floats
    width: Floats
    values: TargetValues = ANY_NUMBER
    scale: TargetScale = PLAIN

    @classmethod
    def joined(cls, parts: Sequence[Calibration]) -> Calibration:
        """Put the rows of several together."""
        missing = np.concatenate([np.zeros(0, np.int64), *(part.missing for part in parts)])
        score = np.concatenate([np.zeros(0), *(part.score for part in parts)])
        row = np.concatenate([np.zeros(0, np.int64), *(part.row for part in parts)])
        centre = np.concatenate([np.zeros(0), *(part.centre for part in parts)])
        width = np.concatenate([np.zeros(0), *(part.width for part in parts)])
        order = np.argsort(score, kind="stable")
        return cls(missing[order], score[order], row[order], centre[order], width[order])

    def in_unit(self, unit: float, origin: float) -> Calibration:
        """Return the same for a target that was divided by a unit, about an origin."""
        return replace(self, centre=self.centre * unit + origin, width=self.width * unit)

    def distribution(
        self, model: ExpectedModel, rows: ModelRows, noise: float | NoiseVariance
    ) -> TargetDistribution:
        """Distribution of y for each row; the predicted one where there are no scores."""
        if not len(self.score):
            base = model.target_distribution(rows, noise, UNCALIBRATED_TOL)
            return TargetDistribution(base, self.scale)
        base = model.target_distribution(rows, noise, SCORE_TOL)
        place, cell = Place.of(base), np.zeros(len(rows.codes), np.int64)
        numbers = rows.n_missing
        for number in np.unique(numbers).tolist():
            here = numbers == number
            alike = self.alike(number)
            cell[here] = alike.cells(Place(place.centre[here], place.width[here]))
        cells, which = np.unique(numbers * CELLS**2 + cell, return_inverse=True)
        pairs = zip(*np.divmod(cells, CELLS**2), strict=True)
        of_scores = [self.alike(int(number)).of_scores(int(cell)) for number, cell in pairs]
        calibrated = CalibratedDistribution(base, of_scores, which)
        return TargetDistribution(calibrated, self.scale, self.values)

    def alike(self, number: int) -> AlikeScores:
        """Return the scores of rows with about a number of unknown columns.

        Rows are weighted by how near their number is; the nearest number that there is stands
        for one that there is not.
        """
        number = int(self.missing[np.argmin(np.abs(self.missing - number))])
        if number not in self._kept:
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
            place = Place(self.centre[near], self.width[near])
            self._kept[number] = AlikeScores(self.score[near], weight, place, distinct)
        return self._kept[number]

    @cached_property
    def _kept(self) -> dict[int, AlikeScores]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made again when it is asked about."""
        return {name: value for name, value in vars(self).items() if name != "_kept"}


class AlikeScores:
    """Scores of rows with about as many unknown columns, and by where and how wide they are.

    Centre and width count by their ranks among these rows. Ranks are parted into cells; for a cell
    rows count by how near their ranks are to its middle, over a distance at which they are worth
    enough rows, and all rows count a little.

    Parameters
    ----------
    score, weight, place
        Of rows, sorted by score.  # (scores,) each
    n_rows
        How many rows they are of.
    """

    def __init__(self, score: Floats, weight: Floats, place: Place, n_rows: int) -> None:
        self._score, self._weight, self._n_rows = score, weight, n_rows
        self._sorted = [np.sort(part) for part in place.rounded()]
        self._ranks = self._rank(place)
        self._of_cells: dict[int, ScoreDistribution] = {}

    def _rank(self, place: Place) -> list[Floats]:
        """Return the share of these rows below each number, half of those equal to it."""
        ranks: list[Floats] = []
        for known, asked in zip(self._sorted, place.rounded(), strict=True):
            ends = [np.searchsorted(known, asked, side) for side in ("left", "right")]
            ranks.append((ends[0] + ends[1]) / (2.0 * len(known)))
        return ranks

    def cells(self, place: Place) -> Ints:
        """Return the cell of each row."""
        ranks = np.minimum(np.stack(self._rank(place)) * CELLS, CELLS - 1).astype(np.int64)
        return ranks[0] * CELLS + ranks[1]

    def of_scores(self, cell: int) -> ScoreDistribution:
        """Distribution of scores in a cell."""
        if cell not in self._of_cells:
            self._of_cells[cell] = self._make(*divmod(cell, CELLS))
        return self._of_cells[cell]

    def _make(self, *cell: int) -> ScoreDistribution:
        weight = self._weight
        gaps = [np.abs(r - (k + 0.5) / CELLS) for r, k in zip(self._ranks, cell, strict=True)]
        for distance in DISTANCES:
            kernel = np.maximum(1.0 - np.maximum(*gaps) / distance, 0.0)
            kernel /= max(float(np.average(kernel, weights=weight)), 1e-9)
            local = weight * (BACKGROUND + (1.0 - BACKGROUND) * kernel)
            if _worth(local, self._n_rows / len(weight)) >= LOCAL_ROWS:
                weight = local
                break
        total = float(weight.sum())
        n = min(float(self._n_rows), float(self._weight.sum()))
        worth = n if weight is self._weight else min(n, _worth(weight, self._n_rows / len(weight)))
        # the row asked about counts too, in any of the gaps: that is what makes it conformal
        level = np.cumsum(weight) - 0.5 * weight + 0.5 * total / worth
        return ScoreDistribution(self._score, level / (total * (1.0 + 1.0 / worth)), n)


def _worth(weight: Floats, share: float) -> float:
    """How many rows of equal weight say as much."""
    return share * float(weight.sum() ** 2 / np.sum(weight**2))


def calibrate(
    model: ExpectedModel,
    rows: ModelRows,
    y: Floats,
    row: Ints,
    noise: float | NoiseVariance,
    n: int,
    rng: np.random.Generator,
) -> Calibration:
    """Compute the scores of targets in their predicted distributions.

    Complete rows, which cost nothing, are used as they are, and all with columns hidden in
    n ways; ``row`` says which row each is. Of a target whose values have neighbours, y is a
    number between the borders of its value (:meth:`TargetValues.spread`): then as many scores
    lie below the border of a value as targets are at most that value, and its probability is
    calibrated too. Cost: one distribution for each of these.
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
        base = model.target_distribution(asked, noise, SCORE_TOL)
        score, place = scores(base, y[which, None])[:, 0], Place.of(base)
        known = ~np.isnan(score)
        score = np.clip(score[known], -MAX_SCORE, MAX_SCORE)
        at = place.centre[known], place.width[known]
        parts.append(Calibration(asked.n_missing[known], score, row[which[known]], *at))
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
    """Noise of a perfect fit, which is not a certainty."""
    most = float(np.abs(target).max())
    spread = size(target - target.mean(), np.ones(len(target)))
    return max(1e-9 * (spread or most), float(np.spacing(most))) or 1e-9
