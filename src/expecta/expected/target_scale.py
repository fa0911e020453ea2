"""The scale that a circuit learns a target on: the target itself, or its logarithm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from expecta.common.arrays import Floats


@dataclass(frozen=True)
class TargetScale:
    """An increasing function from what a circuit adds up, its margin, to the target.

    Parameters
    ----------
    origin
        y = origin + exp(margin), which is above the origin; None where y is the margin.
    """

    origin: float | None = None

    def value(self, margin: Floats) -> Floats:
        """Return the target of margins; infinite where it is no number."""
        if self.origin is None:
            return margin
        with np.errstate(over="ignore"):
            return self.origin + np.exp(margin)

    def margin(self, y: Floats) -> Floats:
        """Return the margin of targets; minus infinity at the origin and below."""
        if self.origin is None:
            return y
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(y - self.origin, 0.0))

    def slope(self, y: Floats) -> Floats:
        """Return the derivative of the margin by y; 0 where there is no such y."""
        if self.origin is None:
            return np.ones_like(y)
        above = y - self.origin
        return np.divide(1.0, above, out=np.zeros_like(above), where=above > 0)


PLAIN = TargetScale()
