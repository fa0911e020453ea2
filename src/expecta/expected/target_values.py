"""Keep quantiles among the values that a target takes: not below zero, whole numbers, or few."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from expecta.common.arrays import Floats

MAX_FEW = 10  # distinct values, such as those of a rating
MIN_ROWS = 5  # for each of few values, on average
MIN_SIGN_ROWS = 20  # of which none is negative, for a target that is never
KINDS = ("numbers", "positive", "counts", "whole", "few")


@dataclass(frozen=True, eq=False)
class TargetValues:
    """What kind of numbers a target is.

    Between two neighbouring values lies a border, in their middle. A distribution of all numbers
    becomes one of values by giving each what lies between its borders.

    Parameters
    ----------
    kind
        "numbers" of any kind, "positive" ones or zero, "counts" (whole, none negative), "whole" or
        "few".
    values
        The values, in order, where they are few.
    """

    kind: str
    values: Floats

    @classmethod
    def of(cls, target: Floats) -> TargetValues:
        """Find out from training rows. Whole numbers are few only where there are ten or fewer."""
        values = np.unique(target)
        if len(values) <= MAX_FEW and MIN_ROWS * len(values) <= len(target):
            return cls("few", values)
        whole = bool(np.all(values == np.rint(values)))
        never = values[0] >= 0 and (whole or len(target) >= MIN_SIGN_ROWS)
        if whole:
            return cls("counts" if never else "whole", np.zeros(0))
        return cls("positive" if never else "numbers", np.zeros(0))

    @property
    def any_number(self) -> bool:
        """Whether all numbers are values."""
        return self.kind == "numbers"

    def nearest(self, y: Floats) -> Floats:
        """Return the nearest value, the lesser of two; NaN stays."""
        if self.kind == "few":
            return np.where(np.isnan(y), np.nan, self.values[np.searchsorted(self._borders, y)])
        if self.kind == "positive":
            return np.maximum(y, 0.0)
        nearest = np.ceil(y - 0.5)
        return np.maximum(nearest, 0.0) if self.kind == "counts" else nearest + 0.0

    @property
    def discrete(self) -> bool:
        """Whether values have neighbours, and a border between each two."""
        return self.kind not in ("numbers", "positive")

    def spread(self, y: Floats, rng: np.random.Generator) -> Floats:
        """Draw numbers that are nearest to the given values: evenly between the borders of each.

        The least and greatest of few values reach as far outwards as inwards.
        """
        if not self.discrete or (self.kind == "few" and len(self.values) == 1):
            return y
        share = rng.random(np.shape(y)) - 0.5
        if self.kind != "few":
            return y + share
        gap = np.diff(self.values)
        side = np.searchsorted(self.values, y) + (share > 0) - 1
        return y + share * gap[np.clip(side, 0, len(gap) - 1)]

    def neighbour(self, value: Floats, step: int) -> Floats:
        """Return the next value, or the one before (-1); the last stays."""
        if self.kind != "few":
            return self.nearest(value + step)
        place = np.searchsorted(self.values, value) + step
        return np.where(
            np.isnan(value), np.nan, self.values[np.clip(place, 0, len(self.values) - 1)]
        )

    def border(self, c: Floats) -> Floats:
        """Return the border above the greatest value that is not above c, infinite at the ends."""
        if self.any_number:
            return c
        if self.kind == "few":
            borders = np.concatenate([[-np.inf], self._borders, [np.inf]])
            return borders[np.searchsorted(self.values, c, side="right")]
        above = c if self.kind == "positive" else np.floor(c) + 0.5
        return above if self.kind == "whole" else np.where(c < 0, -np.inf, above)

    @property
    def _borders(self) -> Floats:
        return self.values[:-1] + 0.5 * np.diff(self.values)


ANY_NUMBER = TargetValues("numbers", np.zeros(0))
