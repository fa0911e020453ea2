"""Draw whether probabilities and intervals hold what they promise, on rows of yours."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from expecta.ask.displays.display import ACCENT, BLUE, GREY, Display, percent_axis
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError

COVERAGES = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
Z = 1.959963984540054  # of a 95% interval


class CalibrationCurve(NamedTuple):
    """Predicted and observed shares, with 95% intervals (Wilson's) of the latter."""

    name: str
    predicted: Floats
    observed: Floats
    low: Floats
    high: Floats
    rows: Ints
    of_intervals: bool


def probability_calibration(
    probability: npt.ArrayLike, happened: npt.ArrayLike, name: str, bins: int
) -> CalibrationCurve:
    """Compare predicted probabilities with what happened, in bins of about equal size.

    Rows with the same probability share a bin. Cost: sorting them.
    """
    predicted, outcome = np.asarray(probability, np.float64), np.asarray(happened, np.float64)
    finite = np.isfinite(predicted)
    predicted, outcome = predicted[finite], outcome[finite]
    if not len(predicted):
        raise DomainError("there are no rows with a predicted probability")
    edges = np.unique(np.quantile(predicted, np.linspace(0, 1, bins + 1)[1:-1]))
    cell = np.unique(np.searchsorted(edges, predicted), return_inverse=True)[1].ravel()
    rows = np.bincount(cell)
    return _with_intervals(
        name, np.bincount(cell, predicted) / rows, np.bincount(cell, outcome) / rows, rows, False
    )


def interval_calibration(
    coverage: Floats, covered: npt.ArrayLike, rows: int, name: str = "intervals"
) -> CalibrationCurve:
    """Compare the coverage that intervals promise with the share of rows that they cover."""
    counts = np.full(len(coverage), rows)
    return _with_intervals(name, coverage, np.asarray(covered, np.float64), counts, True)


def _with_intervals(
    name: str, predicted: Floats, observed: Floats, rows: Ints, of_intervals: bool
) -> CalibrationCurve:
    middle = (observed + Z**2 / (2 * rows)) / (1 + Z**2 / rows)
    half = Z * np.sqrt(observed * (1 - observed) / rows + Z**2 / (4 * rows**2)) / (1 + Z**2 / rows)
    ends = middle - half, middle + half
    return CalibrationCurve(name, predicted, observed, *ends, rows, of_intervals)


class CalibrationDisplay(Display[CalibrationCurve]):
    """Predicted probabilities against what happened, or coverage of intervals.

    Parameters
    ----------
    answer
        What is shown.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from expecta import CircuitClassifier, Independent
    >>> rows, y = {"age": [20, 30, 40, 50] * 10}, ["no", "no", "yes", "yes"] * 10
    >>> model = CircuitClassifier(density=Independent()).fit(rows, y)
    >>> display = CalibrationDisplay.from_estimator(model, rows, y, ax=Figure().subplots())
    >>> type(display.answer).__name__
    'CalibrationCurve'
    """

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
        """Predict rows, best held-out ones, and draw how well that holds.

        ``of`` names the class of a classifier, by default the second of two.

        Parameters
        ----------
        estimator
            A model that has learned.
        X
            Rows that training did not have.
        y
            Their target.
        of
            The class, of a classifier.
        bins
            Into how many groups predictions are divided.
        ax
            Matplotlib's axes; None makes a new figure.
        """
        classes = getattr(estimator, "classes_", None)
        if classes is None:
            target = np.asarray(y, np.float64)
            ends = [estimator.predict_interval(X, coverage=float(level)) for level in COVERAGES]
            covered = [
                np.mean((target >= low) & (target <= high)) for low, high in (e.T for e in ends)
            ]
            return cls.from_answer(interval_calibration(COVERAGES, covered, len(target)), ax=ax)
        from expecta.expected.expected_model import class_index

        index = class_index(classes, of)
        happened, name = np.asarray(y) == classes[index], f"P({classes[index]})"
        probability = estimator.predict_proba(X)[:, index]
        return cls.from_answer(probability_calibration(probability, happened, name, bins), ax=ax)

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        return 4.8, 5.2

    def draw(self, ax: Any) -> None:
        """Draw the observed against the predicted shares."""
        curve = self.answer
        x, y = curve.predicted, curve.observed
        ax.plot([0, 1], [0, 1], color=GREY, ls=":", label="as predicted")
        ax.vlines(x, curve.low, curve.high, color=BLUE, alpha=0.4, lw=2)
        ax.plot(x, y, "o-", color=BLUE, ms=5, lw=1, label="observed, 95% interval")
        off = (curve.low > x) | (curve.high < x)
        if np.any(off):
            ax.plot(x[off], y[off], "o", color=ACCENT, label="off", zorder=3)
        percent_axis(ax.xaxis)
        percent_axis(ax.yaxis)
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        self.legend(ax)
        if curve.of_intervals:
            self.title(ax, f"Coverage of {curve.name}, {curve.rows[0]:,} rows")
            ax.set_xlabel("coverage asked for")
            ax.set_ylabel("share of rows covered")
        else:
            self.title(ax, f"Calibration of {curve.name}, {curve.rows.sum():,} rows")
            ax.set_xlabel("predicted probability")
            ax.set_ylabel("share in which it happened")
