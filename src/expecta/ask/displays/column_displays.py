"""Draw what columns do: parts of a population, dependence, and what to ask for."""

from __future__ import annotations

from typing import Any

import numpy as np

from expecta.ask.dependence import Dependence
from expecta.ask.displays.display import (
    ACCENT,
    BLUE,
    Display,
    label_rows,
    number_axis,
    output_axis,
    percent_axis,
    rows_size,
    shorten,
    spread_ends,
)
from expecta.ask.groups import NORMAL_95
from expecta.ask.next_question import NextQuestion
from expecta.ask.split import Split
from expecta.common.arrays import Floats, Ints
from expecta.common.text import figure, percent

MAX_ROWS = 30  # of labels
MAX_NAME_LETTERS = 24  # of a column, in a legend


class SplitDisplay(Display[Split]):
    """The mean of a model's output over each part of a population, with its spread.

    Parts in which fewer than five training rows are expected are hollow; where there are
    more than thirty parts, the largest are shown.

    Parameters
    ----------
    answer
        What is shown.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from expecta import CircuitRegressor, Independent
    >>> rows = {"age": [20, 30, 40, 50] * 10, "sex": ["f", "m"] * 20}
    >>> model = CircuitRegressor(density=Independent(), calibration_rows=0)
    >>> model = model.fit(rows, [1.0, 2.0, 3.0, 4.0] * 10)
    >>> display = SplitDisplay.from_estimator(model, "sex", ax=Figure().subplots())
    >>> type(display.answer).__name__
    'Split'
    """

    question = "split"

    def shown(self) -> list[int]:
        """Return the indices of the parts that are shown."""
        return list(map(int, _largest(self.answer.share)))

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        return rows_size(len(self.shown()))

    def draw(self, ax: Any) -> None:
        """Draw a dot for each part."""
        split, shown = self.answer, self.shown()
        y = np.arange(len(shown))
        mean, std = split.mean[shown], split.std[shown]
        low, high = spread_ends(mean, std, split.is_probability)
        ax.hlines(y, low, high, color=BLUE, alpha=0.35, lw=5)
        half = NORMAL_95 * split.standard_error[shown]
        ax.hlines(y, *spread_ends(mean, half, split.is_probability), color=BLUE, lw=1.2)
        rare = np.zeros(len(shown), bool) if split.rare is None else split.rare[shown]
        for rows, face, label in ((~rare, BLUE, "mean ± spread"), (rare, "white", "rare group")):
            if np.any(rows):
                ax.plot(mean[rows], y[rows], "o", mfc=face, mec=BLUE, label=label, zorder=3)
        if split.rows_mean is not None:
            style = {"color": ACCENT, "ms": 11, "mew": 2, "label": "training rows' average"}
            ax.plot(split.rows_mean[shown], y, "|", **style)
        label_rows(ax, [", ".join(column[i] for column in split.labels) for i in shown])
        more = "" if len(shown) == len(split) else f", {len(shown)} largest of {len(split)} groups"
        self.title(ax, f"Model's output by {', '.join(split.columns)}{more}")
        ax.set_xlabel(shorten(f"model's output: {split.name}"))
        output_axis(ax.xaxis, split.is_probability)
        self.legend(ax)


class DependenceDisplay(Display[Dependence]):
    """A model's output by one column: with what goes with it, and the column alone.

    Where a column has more than thirty categories, the most frequent are shown.

    Parameters
    ----------
    answer
        What is shown.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from expecta import CircuitRegressor, Independent
    >>> rows = {"age": [20, 30, 40, 50] * 10, "sex": ["f", "m"] * 20}
    >>> model = CircuitRegressor(density=Independent(), calibration_rows=0)
    >>> model = model.fit(rows, [1.0, 2.0, 3.0, 4.0] * 10)
    >>> display = DependenceDisplay.from_estimator(model, "age", ax=Figure().subplots())
    >>> type(display.answer).__name__
    'Dependence'
    """

    question = "dependence"

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        labels = self.answer.labels
        return (6.4, 4.0) if self.answer.at is not None else rows_size(min(len(labels), MAX_ROWS))

    def draw(self, ax: Any) -> None:
        """Draw both curves, or a pair of dots for each category."""
        self.title(ax, f"Model's output by {self.answer.column}")
        name = shorten(self.answer.column, MAX_NAME_LETTERS)
        given, alone = f"given {name}", f"{name} alone changed"
        if self.answer.at is None:
            self._dots(ax, given, alone)
        else:
            self._curves(ax, self.answer.at, given, alone)
        self.legend(ax)

    def _curves(self, ax: Any, at: Floats, given: str, alone: str) -> None:
        answer = self.answer
        low, high = spread_ends(answer.mean, answer.std, answer.is_probability)
        ax.fill_between(at, low, high, color=BLUE, alpha=0.18, lw=0, label="± spread")
        marker = "o" if len(at) < 12 else None
        ax.plot(at, answer.mean, color=BLUE, marker=marker, label=given)
        ax.plot(at, answer.partial, "--", color=ACCENT, marker=marker, mfc="white", label=alone)
        ax.set_xlabel(shorten(answer.column))
        ax.set_ylabel(shorten(f"model's output: {answer.name}"))
        output_axis(ax.yaxis, answer.is_probability)
        if _are_numbers(answer.labels):
            number_axis(ax.xaxis, answer.column, at)
        else:  # times, in the words of their labels
            ticks = 4 if ax.figure.get_figwidth() > 6 else 2
            index = np.unique(np.linspace(0, len(at) - 1, ticks).astype(int))
            ax.set_xticks(at[index], [answer.labels[i].split(" to ")[0] for i in index])

    def _dots(self, ax: Any, given: str, alone: str) -> None:
        answer, shown = self.answer, _largest(self.answer.share)
        y, mean, std = np.arange(len(shown)), answer.mean[shown], answer.std[shown]
        low, high = spread_ends(mean, std, answer.is_probability)
        ax.hlines(y, low, high, color=BLUE, alpha=0.25, lw=5, label="± spread")
        ax.plot(mean, y, "o", color=BLUE, label=given)
        ax.plot(answer.partial[shown], y, "D", mfc="white", mec=ACCENT, label=alone)
        label_rows(ax, [answer.labels[i] for i in shown])
        ax.set_xlabel(shorten(f"model's output: {answer.name}"))
        output_axis(ax.xaxis, answer.is_probability)


class NextQuestionDisplay(Display[NextQuestion]):
    """How much of the variance each unknown column would settle.

    Parameters
    ----------
    answer
        What is shown.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from expecta import CircuitRegressor, Independent
    >>> rows = {"age": [20, 30, 40, 50] * 10, "sex": ["f", "m"] * 20}
    >>> model = CircuitRegressor(density=Independent(), calibration_rows=0)
    >>> model = model.fit(rows, [1.0, 2.0, 3.0, 4.0] * 10)
    >>> display = NextQuestionDisplay.from_estimator(model, ax=Figure().subplots())
    >>> type(display.answer).__name__
    'NextQuestion'
    """

    question = "next_question"

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        return rows_size(min(len(self.answer.columns), MAX_ROWS))

    def draw(self, ax: Any) -> None:
        """Draw a bar for each column."""
        answer = self.answer
        names, shares = answer.columns[:MAX_ROWS], answer.share[:MAX_ROWS]
        ax.barh(np.arange(len(names)), shares, color=BLUE, height=0.62)
        for row, share in enumerate(shares.tolist()):
            price = "" if answer.cost is None else f", costs {figure(float(answer.cost[row]))}"
            inside = share > 0.6
            ax.text(
                share - 0.01 if inside else share + 0.01,
                row,
                f"{percent(share)}, ± {figure(float(answer.remaining[row]))} left{price}",
                va="center",
                ha="right" if inside else "left",
                color="white" if inside else "black",
                fontsize="small",
            )
        label_rows(ax, names)
        ax.set_xlim(0, 1)
        percent_axis(ax.xaxis)
        self.title(ax, f"What would settle {answer.name}, given {answer.given}")
        ax.set_xlabel("share of the variance that it takes away")


def _largest(share: Floats) -> Ints:
    """Return the indices of the largest groups, in their own order."""
    return np.sort(np.argsort(-share, kind="stable")[:MAX_ROWS])


def _are_numbers(labels: tuple[str, ...]) -> bool:
    """Whether labels of groups are numbers, not times."""
    try:
        float(labels[0].split(" to ")[0])
    except ValueError:
        return False
    return True
