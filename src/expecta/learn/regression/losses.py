"""What is minimised: squared error, or the logistic loss of each output on its own."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from expecta.common.arrays import Floats

__all__ = ["LOSSES", "Logistic", "Loss", "Squared"]


class Loss(ABC):
    """A loss of targets y at predictions g, convex in g.  # all (rows, outputs)."""

    quadratic = False  # whether the curvature is constant

    @abstractmethod
    def value(self, y: Floats, g: Floats) -> Floats:
        """Compute the loss of every row and output."""

    @abstractmethod
    def slope(self, y: Floats, g: Floats) -> Floats:
        """Differentiate by g."""

    @abstractmethod
    def curvature(self, y: Floats, g: Floats) -> Floats:
        """Differentiate by g twice."""

    @abstractmethod
    def dispersion(self, y: Floats, g: Floats, weight: Floats) -> Floats:
        """Compute the variance of the slope in units of the curvature, per output."""

    @abstractmethod
    def start(self, y: Floats, weight: Floats) -> Floats:
        """Find the best constant g, per output."""


class Squared(Loss):
    """Half the squared error."""

    quadratic = True

    def value(self, y: Floats, g: Floats) -> Floats:
        """Compute the loss of every row and output."""
        return 0.5 * (y - g) ** 2

    def slope(self, y: Floats, g: Floats) -> Floats:
        """Differentiate by g."""
        return g - y

    def curvature(self, y: Floats, g: Floats) -> Floats:
        """Differentiate by g twice."""
        return np.ones_like(g)

    def dispersion(self, y: Floats, g: Floats, weight: Floats) -> Floats:
        """Compute the variance of the residuals."""
        found: Floats = np.average((y - g) ** 2, axis=0, weights=weight)
        return found

    def start(self, y: Floats, weight: Floats) -> Floats:
        """Return the mean."""
        found: Floats = np.average(y, axis=0, weights=weight)
        return found


class Logistic(Loss):
    """Minus the log-likelihood of y in {0, 1} with log-odds g, one output against the rest."""

    def value(self, y: Floats, g: Floats) -> Floats:
        """Compute the loss of every row and output."""
        return np.logaddexp(0.0, g) - y * g

    def slope(self, y: Floats, g: Floats) -> Floats:
        """Differentiate by g."""
        return _probability(g) - y

    def curvature(self, y: Floats, g: Floats) -> Floats:
        """Differentiate by g twice."""
        p = _probability(g)
        return p * (1.0 - p)

    def dispersion(self, y: Floats, g: Floats, weight: Floats) -> Floats:
        """Return one: a binary y has no other variance than its probability's."""
        return np.ones(y.shape[1])

    def start(self, y: Floats, weight: Floats) -> Floats:
        """Compute the log-odds of the share of ones, half a row of either kind added."""
        total = weight.sum()
        ones = weight @ y
        found: Floats = np.log((ones + 0.5) / (total - ones + 0.5))
        return found


def _probability(g: Floats) -> Floats:
    from scipy.special import expit

    found: Floats = expit(g)
    return found


LOSSES: dict[str, Loss] = {"squared": Squared(), "logistic": Logistic()}
