"""Recalibrate predicted distributions: signed scores of y, and the levels that rows gave them.

The score of y in a row is z = Φ⁻¹(F(y)), with F the row's predicted distribution: how many
standard deviations y lies above the median, if F is normal. F is computed within a tolerance, and
nobody knows its far tails; beyond ``FAR`` standard deviations a score grows in proportion to y.
A score increases with y, so that any distribution G of scores gives one of y, G(score(y)), with
quantiles score⁻¹(G⁻¹(q)). If F were right G would be normal; it is taken from held-out rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from expecta.common.arrays import Bools, Floats, Ints
from expecta.expected.row_distributions import RowDistributions, check_levels
from expecta.queries.output_distribution import Distribution

FAR = 3.0  # standard deviations beyond which scores are in proportion to y
SCORE_TOL = 1e-4  # error of F: at FAR, 0.02 of a score
ROUNDING = 1e-12  # of a level
NEAR = 1e-9  # a score this close below another, relatively, has reached it


@dataclass(frozen=True, eq=False)
class ScoreDistribution:
    """The distribution G of scores that held-out rows show.

    Straight between the sorted scores of n rows, whose levels are 1/(n+1) … n/(n+1): a new row
    lies in each of the n + 1 gaps between them with the same probability, if rows are
    exchangeable. Beyond the first and last G continues as a normal distribution, by assumption.

    Parameters
    ----------
    score, level
        Sorted scores, and G of each.  # (scores,) each
    n
        How many rows they are worth.
    """

    score: Floats
    level: Floats
    n: float

    def quantile(self, q: Floats) -> Floats:
        """Least score that G gives the level q."""
        z, (low, high) = ndtri(q), ndtri(self.level[[0, -1]])
        inside = np.interp(q, self.level, self.score)
        return inside + np.minimum(z - low, 0.0) + np.maximum(z - high, 0.0)

    def cdf(self, score: Floats) -> Floats:
        """G of a score."""
        low, high = ndtri(self.level[[0, -1]])
        score = score + NEAR * (1.0 + np.abs(score))  # equal rows have equal scores: steps of G
        below, above = score - self.score[0], score - self.score[-1]
        inside = np.interp(score, self.score, self.level)
        tails = ndtr(np.where(below < 0, low + below, high + above))
        return np.where((below < 0) | (above > 0), tails, inside)

    def density(self, score: Floats) -> Floats:
        """Slope of G about a score, over a window that is narrower the more rows there are."""
        half = max(self.n, 1.0) ** -0.2
        return (self.cdf(score + half) - self.cdf(score - half)) / (2.0 * half)

    @property
    def least(self) -> float:
        """The least level that n rows can tell; the greatest is 1 minus that."""
        return 1.0 / (self.n + 1.0)


class _Tails(NamedTuple):
    """Where the score of some rows is -FAR and FAR, and what a unit of it is beyond."""

    low: Floats  # (rows, 1)
    high: Floats  # (rows, 1)
    unit: Floats  # (rows, 1)

    @classmethod
    def of(cls, base: Distribution | RowDistributions, far: Bools) -> _Tails:
        """Solve for the rows of a table that have a number which is far."""
        asked = np.any(far, axis=1, keepdims=True)
        ends = base.quantile(np.where(asked, ndtr([-FAR, FAR]), [0.0, 1.0]))  # which cost nothing
        low, high = (np.where(asked, end[:, None], np.nan) for end in ends.T)
        return cls(low, high, (high - low) / (2.0 * FAR))


def scores(base: Distribution | RowDistributions, y: Floats) -> Floats:
    """Return the score of each y in its row's distribution.  # (rows, numbers)."""
    z = ndtri(base.cdf(y))
    far = np.abs(z) > FAR
    if not np.any(far):
        return z
    low, high, unit = _Tails.of(base, far)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        above = FAR + np.maximum(y - high, 0.0) / unit
        below = np.minimum(y - low, 0.0) / unit - FAR
    return np.where(z > FAR, above, np.where(z < -FAR, below, z))


class CalibratedDistribution(RowDistributions):
    """Predicted distributions, whose levels are those that held-out rows showed.

    Parameters
    ----------
    base
        The predicted distribution of each row.
    of_scores, which
        Distributions of scores, and which of them each row has.  # (rows,)
    """

    def __init__(
        self,
        base: Distribution | RowDistributions,
        of_scores: list[ScoreDistribution],
        which: Ints,
    ) -> None:
        self.base, self.of_scores, self._which = base, of_scores, which

    def cdf(self, c: npt.ArrayLike) -> Floats:
        """P(y <= c)."""
        at = np.asarray(c, np.float64)
        score = scores(self.base, self._table(at))
        return self._shaped(at, self._each(ScoreDistribution.cdf, score))

    def density(self, y: npt.ArrayLike) -> Floats:
        """Slope of the cdf over a window: n^(-1/5) standard deviations to each side, of n rows."""
        at = np.asarray(y, np.float64)
        table = self._table(at)
        score = scores(self.base, table)
        slope = self.base.density(table) * np.sqrt(2 * np.pi)
        far = np.abs(score) > FAR
        slope *= np.exp(0.5 * np.where(far, 0.0, score) ** 2)
        if np.any(far):
            slope = np.where(far, 1.0 / _Tails.of(self.base, far).unit, slope)
        return self._shaped(at, self._each(ScoreDistribution.density, score) * slope)

    def quantile(self, q: npt.ArrayLike) -> Floats:
        """Least c with P(y <= c) >= q."""
        at = check_levels(q)
        score = self._each(ScoreDistribution.quantile, self._table(at))
        near = np.clip(score, -FAR, FAR)
        answer = self.base.quantile(ndtr(near))
        far = near != score
        if np.any(far):
            unit = _Tails.of(self.base, far).unit
            answer = np.where(far, answer + (score - near) * unit, answer)
        return self._shaped(at, answer)

    def beyond(self, q: Floats) -> Bools:
        """Which levels the held-out rows cannot tell, for each row.  # (rows, levels)."""
        least = np.array([one.least for one in self.of_scores])[self._which, None] - ROUNDING
        return (q < least) | (q > 1.0 - least)

    def _table(self, question: Floats) -> Floats:
        """Return a question as one list of numbers for each row."""
        rows, table = len(self._which), np.atleast_1d(question)
        return np.broadcast_to(table, (rows, table.shape[-1])) if table.ndim < 2 else table

    def _shaped(self, question: Floats, answer: Floats) -> Floats:
        return answer if question.ndim else answer[:, 0]

    def _each(self, ask: Callable[[ScoreDistribution, Floats], Floats], table: Floats) -> Floats:
        """Ask the distribution of scores of each row."""
        out = np.empty(table.shape)
        order = np.argsort(self._which, kind="stable")
        start = np.cumsum([0, *np.bincount(self._which, minlength=len(self.of_scores))])
        for one, (first, last) in zip(self.of_scores, pairwise(start), strict=True):
            rows = order[first:last]
            out[rows] = ask(one, table[rows])
        return out
