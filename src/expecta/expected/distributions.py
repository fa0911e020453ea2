"""The distribution of a model's output over a group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from expecta.common.arrays import Floats
from expecta.queries.output_distribution import Distribution

GRID_POINTS = 63  # that divide the range of all quantiles at once, as 6 halvings would,
HALVINGS = 14, 58  # and halvings of what is left: where it is blurred, and where not
NEAR = 1e-12  # a threshold this close to a value, relatively, is that value


class OutputDistribution(ABC):
    """A distribution on the line."""

    @abstractmethod
    def cdf(self, at: Floats) -> Floats:
        """P(output <= at).  # (points,)."""

    @abstractmethod
    def quantiles(self, q: Floats) -> tuple[Floats, Floats]:
        """Return the least numbers with P(output <= number) >= q, and their errors."""

    def curve(self, points: int = 101) -> tuple[Floats, Floats]:
        """Return a grid over nearly all of the distribution, and its cdf there."""
        low, high = self.quantiles(np.array([0.001, 0.999]))[0]
        margin = 0.05 * (high - low) or 0.5 * (abs(low) or 1.0)
        grid = np.linspace(low - margin, high + margin, points)
        return grid, self.cdf(grid)


class AtomDistribution(OutputDistribution):
    """Some numbers, each with a probability; ``resolution`` is how far a number may be off."""

    def __init__(self, values: Floats, probability: Floats, resolution: float = 0.0) -> None:
        order = np.argsort(values, kind="stable")
        self._values, self._resolution = values[order], resolution
        self._below = np.append(0.0, np.cumsum(probability[order]))
        self._below /= self._below[-1]

    def cdf(self, at: Floats) -> Floats:
        """P(output <= at)."""
        return self._below[np.searchsorted(self._values, at, side="right")]

    def quantiles(self, q: Floats) -> tuple[Floats, Floats]:
        """Return quantiles; exact, but for the resolution."""
        return self._at(q), np.full(len(q), self._resolution)

    def _at(self, q: Floats) -> Floats:
        place = np.searchsorted(self._below[1:] + 1e-12, q)  # rounding is not a step
        return self._values[np.minimum(place, len(self._values) - 1)]


class SampledDistribution(AtomDistribution):
    """Draws that all count alike."""

    def __init__(self, values: Floats) -> None:
        super().__init__(values, np.full(len(values), 1.0 / len(values)))

    def quantiles(self, q: Floats) -> tuple[Floats, Floats]:
        """Return quantiles, and half the range that one standard error of q covers."""
        step = np.sqrt(q * (1 - q) / len(self._values))
        ends = [self._at(np.clip(q + side * step, 0.0, 1.0)) for side in (-1, 1)]
        return self._at(q), 0.5 * (ends[1] - ends[0])


class ExactDistribution(OutputDistribution):
    """Rows of a pair's distribution, mixed by weight and seen through an increasing link."""

    def __init__(
        self,
        rows: Distribution,
        weight: Floats,
        low: float,
        high: float,
        link: Callable[[Floats], Floats],
        inverse: Callable[[Floats], Floats],
    ) -> None:
        self._rows, self._weight = rows, weight
        self._low, self._high = low, high  # what g can be
        self._link, self._inverse = link, inverse
        self._shift = float(rows.resolution.max(initial=0.0))
        self._error = float(weight @ rows.error)

    def cdf(self, at: Floats) -> Floats:
        """P(output <= at), within the error and resolution of the rows."""
        points = self._inverse(at)
        size = np.abs(np.where(np.isfinite(points), points, 0.0))
        return self._mixed(points + NEAR * (size + self._high - self._low))

    def _mixed(self, points: Floats) -> Floats:
        found: Floats = self._weight @ self._rows.cdf(np.clip(points, self._low, self._high))
        return np.where(points >= self._high, 1.0, np.where(points < self._low, 0.0, found))

    def quantiles(self, q: Floats) -> tuple[Floats, Floats]:
        """Return quantiles by halving; their errors from those of the probabilities."""
        levels = np.concatenate([q, q - self._error, q + self._error])
        ends: Floats = np.linspace(self._low, self._high, GRID_POINTS + 2)
        below = np.maximum.accumulate(self._mixed(ends[1:-1]))
        first = np.searchsorted(below, levels - 1e-12)
        low, high = ends[first], ends[first + 1]
        for _ in range(HALVINGS[self._shift == 0]):
            half = 0.5 * (low + high)
            enough = self._mixed(half) >= levels - 1e-12
            low, high = np.where(enough, low, half), np.where(enough, half, high)
        found, least, most = high.reshape(3, -1)
        middle = self._link(found)
        below = middle - self._link(least - self._shift)
        error = np.maximum(below, self._link(most + self._shift) - middle)
        return middle, error if self._shift or self._error else 0.0 * error
