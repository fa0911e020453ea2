"""Combine the density's mean over a group with that of the model over the training rows in it.

For a group of n training rows over which the model's output has the variance v, let::

    f_r = truth + e          Var e = s² = v / n, chance in the rows
    f_d = truth + b + u      Var u = s² n / (n + 100), chance that the density learned
                             b, its bias: Student's t with 4 degrees of freedom and the
                             squared scale β v / (n + 30)

The density learns from the same rows, and by maximum likelihood: Cov(e, u) = Var u, as for every
efficient estimate (Hausman 1978). So f_r - f_d has the variance b² + s² - Var u, and the best
weight of the rows, the variance that is left and what the typical bias β is follow from it::

    mean = f_d + w (f_r - f_d)     w = b² / (b² + s² - Var u)
    variance = w (s² - Var u) + Var u

mixed over the scale of the bias, given how far f_r is from f_d. Where rows and density are far
apart the bias is probably large, and the rows decide.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammainccinv

from expecta.common.arrays import Floats

BORROWED_ROWS = 100.0  # that chance in the density is averaged over, beside those of the group
BIAS_ROWS = 30.0  # groups smaller than this have about the same bias
SPREAD_ROWS = 4.0  # that the density's variance counts for beside the rows'
_NODES = 15
# squared scales of equal probability: 1 / Gamma(2, 2), which makes a normal Student's t
SCALES: Floats = 2.0 / gammainccinv(2.0, (np.arange(_NODES) + 0.5) / _NODES)[:, None]
TAIL = 2.0  # the variance of that t, in squared scales


class RowMoments(NamedTuple):
    """Rows of equal weight, mean and variance of the model's output.  # (groups,) each.

    The mean is NaN without rows, and the variance 0 for fewer than two.
    """

    size: Floats
    mean: Floats
    variance: Floats

    @classmethod
    def from_sums(
        cls, weight: Floats, weight_squares: Floats, sums: Floats, squares: Floats
    ) -> RowMoments:
        """Make moments of sums over rows: of weights, of their squares, of weighted outputs, ..."""
        some = weight > 0
        total = np.where(some, weight, 1.0)
        size = np.where(some, total**2 / np.where(some, weight_squares, 1.0), 0.0)
        mean = sums / total
        spread = np.maximum(squares / total - mean**2, 0.0)
        several = size > 1.0
        spread = np.where(several, spread / (1.0 - 1.0 / np.where(several, size, 2.0)), 0.0)
        return cls(size, np.where(some, mean, np.nan), spread)

    @property
    def error(self) -> Floats:
        """The standard error of each mean by the rows alone; NaN for fewer than two."""
        several = self.size > 1.0
        size = np.where(several, self.size, 1.0)
        return np.where(several, np.sqrt(self.variance / size), np.nan)


class CombinedMeans(NamedTuple):
    """Means of groups by both sources.  # (groups,) each.

    Attributes
    ----------
    mean, error
        The combined mean, and its standard error.
    weight
        The weight of the rows in it.
    density_error
        The standard error of the density's mean, by what is typical of it.
    rows_variance
        What chance in the rows alone adds to the variance; the density and what both share adds
        the rest.
    apart
        How many standard errors of chance the two sources are apart; NaN without rows.
    """

    mean: Floats
    error: Floats
    weight: Floats
    density_error: Floats
    rows_variance: Floats
    apart: Floats


def difference_errors(
    variance_a: Floats,
    rows_a: Floats,
    variance_b: Floats,
    rows_b: Floats,
    overlap: Floats,
    shared: float,
) -> Floats:
    """Return the standard error of the difference between the means of two groups.

    From the variance of each mean, and the part of it that is chance in the rows. ``overlap`` is
    the probability of both groups over the root of the product of each, 1 for equal ones;
    ``shared`` the correlation of the density's errors in disjoint groups.
    """
    density_a, density_b = variance_a - rows_a, variance_b - rows_b
    alike = overlap + (1.0 - overlap) * shared
    variance = density_a + density_b - 2.0 * alike * np.sqrt(density_a * density_b)
    variance = variance + rows_a + rows_b - 2.0 * overlap * np.sqrt(rows_a * rows_b)
    return np.sqrt(np.maximum(variance, 0.0))


class Credibility(NamedTuple):
    """How far the density's means over groups are typically off, as learned.

    Attributes
    ----------
    bias
        β of this module: 0 where the density is always right, about 1 where it tells no more
        than the rows of a group do.
    spread
        The variance of the output over the rows of a group, relative to the density's.
    shared
        Correlation of the density's errors in two disjoint groups that differ in one column.
    """

    bias: float
    spread: float
    shared: float = 0.0

    def combine(self, mean: Floats, variance: Floats, rows: RowMoments) -> CombinedMeans:
        """Combine means and variances under the density with those over rows."""
        n, spread = rows.size, self._spread(variance, rows)
        some = n > 0
        chance = spread / np.where(some, n, 1.0)
        learned = spread / (n + BORROWED_ROWS)
        free = np.where(some, chance - learned, 0.0)
        gap = np.where(some, rows.mean - mean, 0.0)
        scale = self._bias(variance, n)  # (nodes, groups)
        posterior, total = _posterior(gap, scale + free)
        each = np.divide(scale, total, out=np.ones_like(scale), where=total > 0)
        weight = np.where(some, np.sum(posterior * each, axis=0), 0.0)
        left = each * free + (each - weight) ** 2 * gap**2
        density_error = np.sqrt(TAIL * self.bias * variance / (n + BIAS_ROWS) + learned)
        error = np.sqrt(np.sum(posterior * left, axis=0) + learned)
        error = np.where(some, error, density_error)
        apart = np.divide(
            gap, np.sqrt(chance), out=np.where(gap == 0, 0.0, np.inf), where=chance > 0
        )
        return CombinedMeans(
            mean + weight * gap,
            error,
            weight,
            density_error,
            weight**2 * free,
            np.where(some, apart, np.nan),
        )

    def density_error(self, variance: Floats, n: Floats) -> Floats:
        """Return the standard error of means under the density, for groups of about n rows."""
        squared = TAIL * self.bias / (n + BIAS_ROWS) + self.spread / (n + BORROWED_ROWS)
        return np.sqrt(variance * squared)

    def log_likelihood(
        self, gap: Floats, gap_variance: Floats, variance: Floats, rows: RowMoments, n: Floats
    ) -> float:
        """Return how probable gaps between rows and density are, up to a constant.

        ``gap_variance`` is what else adds to them, and ``n`` how many rows the density learned
        from in each group, of which ``rows`` may be a part.
        """
        spread = self._spread(variance, rows)
        free = spread / rows.size - spread / (n + BORROWED_ROWS) + gap_variance
        total = self._bias(variance, n) + free
        return float(np.sum(np.log(np.mean(_normal(gap, total), axis=0) + 1e-300)))

    def _spread(self, variance: Floats, rows: RowMoments) -> Floats:
        """Return the variance over the rows, towards that under the density for few."""
        more = np.maximum(rows.size - 1.0, 0.0)
        pooled = SPREAD_ROWS * self.spread * variance + more * rows.variance
        return pooled / (SPREAD_ROWS + more)

    def _bias(self, variance: Floats, n: Floats) -> Floats:
        """Return the squared bias at each node.  # (nodes, groups)."""
        return SCALES * (self.bias * variance / (n + BIAS_ROWS))


def _normal(gap: Floats, variance: Floats) -> Floats:
    safe = np.where(variance > 0, variance, 1.0)
    return np.where(variance > 0, np.exp(-0.5 * gap**2 / safe) / np.sqrt(safe), 0.0)


def _posterior(gap: Floats, total: Floats) -> tuple[Floats, Floats]:
    """Return the probability of each node given the gaps, and the variances.  # (nodes, groups)."""
    safe = np.where(total > 0, total, 1.0)
    log = np.where(total > 0, -0.5 * (gap**2 / safe + np.log(safe)), 0.0)
    posterior = np.exp(log - log.max(axis=0))
    return posterior / posterior.sum(axis=0), total
