"""Distributions of a number, one for each row: what a pair's `Distribution` answers, for others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from expecta.common.arrays import Floats
from expecta.common.errors import DomainError
from expecta.queries.output_distribution import Distribution


class RowDistributions(ABC):
    """A distribution for each row of a batch, asked of all rows at once.

    A question is a number, a list of m, or an array (rows, m) with different numbers for
    each row; answers have shape (rows,) or (rows, m).
    """

    @abstractmethod
    def cdf(self, c: npt.ArrayLike) -> Floats:
        """P(y <= c)."""

    @abstractmethod
    def density(self, y: npt.ArrayLike) -> Floats:
        """Density of y."""

    @abstractmethod
    def quantile(self, q: npt.ArrayLike) -> Floats:
        """Least c with P(y <= c) >= q."""

    def above(self, c: npt.ArrayLike) -> Floats:
        """P(y > c)."""
        return 1.0 - self.cdf(c)

    def interval(self, coverage: float = 0.9) -> tuple[Floats, Floats]:
        """Return the ends of the central interval that holds y with this probability."""
        ends = self.quantile(interval_levels(coverage))
        return ends[..., 0], ends[..., 1]


class NormalDistribution(RowDistributions):
    """Normal distributions with each row's mean and standard deviation.

    An approximation by two moments, for models whose whole distribution is not computed. A
    row whose standard deviation is 0 is known for certain.
    """

    def __init__(self, mean: Floats, std: Floats) -> None:
        self.mean, self.std = mean, std  # (rows,) each

    def cdf(self, c: npt.ArrayLike) -> Floats:
        """P(y <= c)."""

        def answer(at: Floats, mean: Floats, std: Floats) -> Floats:
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(std > 0, ndtr((at - mean) / std), at >= mean)

        return self._ask(c, answer)

    def density(self, y: npt.ArrayLike) -> Floats:
        """Density of y; needs a standard deviation above 0."""
        if np.any(self.std <= 0):
            raise DomainError("a row that is known for certain has no density: ask for the cdf")

        def answer(at: Floats, mean: Floats, std: Floats) -> Floats:
            return np.exp(-0.5 * ((at - mean) / std) ** 2) / (std * np.sqrt(2 * np.pi))

        return self._ask(y, answer)

    def quantile(self, q: npt.ArrayLike) -> Floats:
        """Least c with P(y <= c) >= q."""
        return self._ask(check_levels(q), lambda at, mean, std: mean + std * ndtri(at))

    def _ask(
        self, question: npt.ArrayLike, answer: Callable[[Floats, Floats, Floats], Floats]
    ) -> Floats:
        at = np.asarray(question, np.float64)
        table = np.atleast_1d(at)
        known = np.where(np.isnan(self.mean), np.nan, 1.0)[:, None]
        out = known * answer(table, self.mean[:, None], self.std[:, None])
        return out if at.ndim else out[:, 0]


class ShiftedDistribution(RowDistributions):
    """A pair's distributions in another unit, with a number added to each row."""

    def __init__(self, base: Distribution, shift: Floats, unit: float = 1.0) -> None:
        self.base, self.shift, self.unit = base, shift, unit  # shift: (rows,)

    def cdf(self, c: npt.ArrayLike) -> Floats:
        """P(y <= c)."""
        return self._moved(c, self.base.cdf)

    def density(self, y: npt.ArrayLike) -> Floats:
        """Density of y; needs noise."""
        return self._moved(y, self.base.density) / self.unit

    def quantile(self, q: npt.ArrayLike) -> Floats:
        """Least c with P(y <= c) >= q."""
        answer = self.unit * self.base.quantile(q)
        return answer + (self.shift[:, None] if answer.ndim == 2 else self.shift)

    def _moved(self, question: npt.ArrayLike, ask: Callable[[npt.ArrayLike], Floats]) -> Floats:
        at = np.asarray(question, np.float64)
        answer = ask((np.atleast_1d(at) - self.shift[:, None]) / self.unit)
        return answer if at.ndim else answer[:, 0]


def interval_levels(coverage: float) -> tuple[float, float]:
    """Return the levels of the ends of an interval: of 0.9, just 0.05 and 0.95."""
    if not 0 < coverage < 1:
        raise DomainError(f"coverage must be between 0 and 1, both excluded, not {coverage!r:.40}")
    outside = (1 - coverage) / 2
    low = round(outside, 15) or outside
    return low, 1 - low


def check_levels(q: npt.ArrayLike) -> Floats:
    """Return levels of quantiles."""
    levels = np.asarray(q, np.float64)
    if not np.all((levels >= 0) & (levels <= 1)):
        raise DomainError(f"a quantile level must be between 0 and 1, not {q!r:.60}")
    return levels
