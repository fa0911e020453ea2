"""Whether probabilities and intervals hold what they say, on rows of yours."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from expecta.ask.displays.axes import ACCENT, BLUE, GREY, Display
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError

__all__ = ["Calibration", "CalibrationDisplay", "binned", "covered"]

LEVELS = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
Z = 1.959963984540054  # of a 95% interval


class Calibration(NamedTuple):
    """What was said and what was seen, with 95% intervals (Wilson's) of the latter."""

    name: str
    said: Floats
    seen: Floats
    low: Floats
    high: Floats
    rows: Ints
    of_intervals: bool


def binned(
    probability: npt.ArrayLike, happened: npt.ArrayLike, name: str, bins: int
) -> Calibration:
    """Compare predicted probabilities with what happened, in bins of about equal size.

    Rows with the same probability share a bin. Cost: sorting them.
    """
    predicted, outcome = np.asarray(probability, np.float64), np.asarray(happened, np.float64)
    good = np.isfinite(predicted)
    predicted, outcome = predicted[good], outcome[good]
    if not len(predicted):
        raise DomainError("there are no rows with a predicted probability")
    edges = np.unique(np.quantile(predicted, np.linspace(0, 1, bins + 1)[1:-1]))
    cell = np.unique(np.searchsorted(edges, predicted), return_inverse=True)[1].ravel()
    rows = np.bincount(cell)
    said = np.bincount(cell, predicted) / rows
    return _wilson(name, said, np.bincount(cell, outcome) / rows, rows, False)


def covered(estimator: Any, X: Any, y: npt.ArrayLike) -> Calibration:
    """Count how many targets lie in ``predict_interval``, at coverages from 10% to 95%."""
    target = np.asarray(y, np.float64)
    inside = [
        np.mean((target >= ends[:, 0]) & (target <= ends[:, 1]))
        for ends in (estimator.predict_interval(X, coverage=float(level)) for level in LEVELS)
    ]
    rows = np.full(len(LEVELS), len(target))
    return _wilson("intervals", LEVELS, np.array(inside), rows, True)


def _wilson(name: str, said: Floats, seen: Floats, rows: Ints, intervals: bool) -> Calibration:
    middle = (seen + Z**2 / (2 * rows)) / (1 + Z**2 / rows)
    half = Z * np.sqrt(seen * (1 - seen) / rows + Z**2 / (4 * rows**2)) / (1 + Z**2 / rows)
    return Calibration(name, said, seen, middle - half, middle + half, rows, intervals)


class CalibrationDisplay(Display[Calibration]):
    """Predicted probabilities against what happened, or coverage of intervals."""

    @classmethod
    def from_estimator(  # type: ignore[override]
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        of: Any = None,
        bins: int = 10,
        ax: Any = None,
    ) -> Self:
        """Predict rows, best ones that training did not see, and draw how well that holds.

        ``of`` names the class of a classifier, by default the second of two.
        """
        classes = getattr(estimator, "classes_", None)
        if classes is None:
            return cls.from_answer(covered(estimator, X, y), ax=ax)
        from expecta.expected.classes import class_index

        place = class_index(classes, of)
        happened = np.asarray(y) == classes[place]
        found = binned(estimator.predict_proba(X)[:, place], happened, f"P({classes[place]})", bins)
        return cls.from_answer(found, ax=ax)

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        return 4.8, 4.8

    def draw(self, ax: Any) -> None:
        """Draw what was seen against what was said."""
        from matplotlib.ticker import PercentFormatter

        found = self.answer
        ax.plot([0, 1], [0, 1], color=GREY, ls=":", label="as said")
        ax.vlines(found.said, found.low, found.high, color=BLUE, alpha=0.4, lw=2)
        ax.plot(found.said, found.seen, "o-", color=BLUE, ms=5, lw=1, label="seen, 95% interval")
        off = (found.low > found.said) | (found.high < found.said)
        if np.any(off):
            ax.plot(found.said[off], found.seen[off], "o", color=ACCENT, label="off", zorder=3)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(PercentFormatter(1.0))
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        ax.legend(frameon=False, loc="upper left")
        if found.of_intervals:
            self.title(ax, f"Coverage of intervals, {found.rows[0]:,} rows")
            ax.set_xlabel("coverage asked for")
            ax.set_ylabel("share of rows covered")
        else:
            self.title(ax, f"Calibration of {found.name}, {found.rows.sum():,} rows")
            ax.set_xlabel("predicted probability")
            ax.set_ylabel("share in which it happened")
