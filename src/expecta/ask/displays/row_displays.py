"""Draw rows: what their columns add, whether decisions stand, how unlikely they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from expecta.ask.decisions import Stability
from expecta.ask.disparities import Disparities
from expecta.ask.displays.display import (
    ACCENT,
    BLUE,
    GREY,
    Display,
    label_rows,
    percent_axis,
    rows_size,
    shorten,
    thousands_axis,
)
from expecta.ask.outliers import Outliers
from expecta.ask.shapley import Shapley
from expecta.common.arrays import Floats
from expecta.common.text import brief, figure

MAX_ROWS = 15  # columns, groups or rows


class ShapleyDisplay(Display[Shapley]):
    """What each column adds: steps from the base for one row, a swarm for several.

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
    >>> ax = Figure().subplots()
    >>> display = ShapleyDisplay.from_estimator(model, {"age": 20, "sex": "f"}, ax=ax)
    >>> type(display.answer).__name__
    'Shapley'
    """

    question = "shapley"

    def _order(self) -> list[int]:
        size = np.nan_to_num(np.abs(self.answer.values), nan=-1.0).mean(axis=0)
        known = ~np.all(np.isnan(self.answer.values), axis=0)
        return [i for i in np.argsort(-size, kind="stable").tolist() if known[i]]

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        return rows_size(min(len(self._order()), MAX_ROWS) + 1)

    def draw(self, ax: Any) -> None:
        """Draw the steps of the row, or dots for all."""
        answer = self.answer
        ax.set_xlabel(shorten(f"model's output: {answer.name}"))
        if len(answer.prediction) == 1:
            self._steps(ax)
        else:
            self._swarm(ax)
        thousands_axis(ax.xaxis)

    def _steps(self, ax: Any) -> None:
        answer, order = self.answer, self._order()
        values = answer.values[0, order]
        labels = [f"{answer.columns[i]} = {answer.known[0][i]}" for i in order]
        if len(order) > MAX_ROWS:
            labels = [*labels[: MAX_ROWS - 1], f"{len(order) - MAX_ROWS + 1} other columns"]
            values = np.append(values[: MAX_ROWS - 1], values[MAX_ROWS - 1 :].sum())
        start = answer.base + np.cumsum(values) - values
        ends = np.concatenate([[answer.base], start + values])
        colours = [BLUE if value >= 0 else ACCENT for value in values.tolist()]
        ax.barh(np.arange(len(values)), values, left=start, color=colours, height=0.62)
        room = 0.01 * float(np.ptp(ends) or 1.0)
        for row, (begin, value) in enumerate(zip(start, values, strict=True)):
            right = max(begin, begin + value) + room
            ax.text(right, row, figure(value, signed=True), va="center", fontsize="small")
            if row + 1 < len(values):
                ax.plot([begin + value] * 2, [row - 0.31, row + 1.31], color=GREY, lw=0.7)
        ax.axvline(answer.base, color=GREY, ls=":", lw=1.2)
        ax.margins(x=0.14)
        label_rows(ax, labels)
        self.title(
            ax,
            f"Model's output: {figure(float(answer.prediction[0]))}, from "
            f"{figure(answer.base)} if nothing is known",
        )

    def _swarm(self, ax: Any) -> None:
        answer, order = self.answer, self._order()[:MAX_ROWS]
        for row, column in enumerate(order):
            values = answer.values[:, column]
            values = values[~np.isnan(values)]
            ax.plot(values, row + _swarmed(values), "o", ms=3.5, color=BLUE, alpha=0.55, mew=0)
        ax.axvline(0, color=GREY, lw=1)
        label_rows(ax, [answer.columns[i] for i in order])
        self.title(ax, f"What each column adds, {len(answer.prediction)} rows")
        ax.set_xlabel(shorten(f"added to the model's output: {answer.name}"))


def _swarmed(values: Floats) -> Floats:
    """Return heights that keep near values apart: equal ones fan out, above and below in turn."""
    span = float(np.ptp(values)) if len(values) else 0.0
    cell = np.zeros(len(values), np.int64)
    if span > 0:
        cell = ((values - values.min()) / span * 60).astype(np.int64)
    height = np.zeros(len(values))
    for number in np.unique(cell):
        same = np.flatnonzero(cell == number)
        turn = np.arange(len(same))
        height[same] = np.where(turn % 2, 1, -1) * (turn + 1) // 2
    tallest = float(np.abs(height).max(initial=6.0))
    return 0.36 / tallest * height


class StabilityDisplay(Display[Stability]):
    """How likely decisions stand: a bar for each of a few rows, or a dot for each of many.

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
    >>> ax = Figure().subplots()
    >>> display = StabilityDisplay.from_estimator(model, {"age": None, "sex": "f"}, 2.5, ax=ax)
    >>> type(display.answer).__name__
    'Stability'
    """

    question = "stability"

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        few = len(self.answer.value) <= MAX_ROWS
        return rows_size(len(self.answer.value)) if few else (6.4, 4.0)

    def draw(self, ax: Any) -> None:
        """Draw the probabilities."""
        answer = self.answer
        name, threshold = shorten(answer.name, 30), figure(answer.threshold)
        few = len(answer.value) <= MAX_ROWS
        for decided, colour, sign in (
            (answer.decision, BLUE, "≥"),
            (~answer.decision, ACCENT, "<"),
        ):
            rows, label = np.flatnonzero(decided), f"{name} {sign} {threshold}"
            if not len(rows):
                continue
            if few:
                ax.barh(rows, answer.probability[rows], color=colour, height=0.62, label=label)
            else:
                ax.plot(
                    answer.value[rows],
                    answer.probability[rows],
                    "o",
                    color=colour,
                    ms=4,
                    label=label,
                )
        percent_axis(ax.xaxis if few else ax.yaxis)
        if few:
            values = answer.value.tolist()
            label_rows(ax, [f"row {i}: {figure(value)}" for i, value in enumerate(values)])
            ax.set_xlim(0, 1)
            ax.set_xlabel("probability that the decision stands once all is known")
        else:
            ax.axvline(answer.threshold, color=GREY, ls=":")
            ax.set_ylim(0, 1.03)
            ax.set_xlabel(shorten(f"expected output: {answer.name}"))
            ax.set_ylabel("decision stands with")
            thousands_axis(ax.xaxis)
        self.title(ax, f"Decision by the expected output: {name} ≥ {threshold}?")
        self.legend(ax)


class DisparitiesDisplay(Display[Disparities]):
    """The groups in which disclosing a sensitive attribute moves the expected output most.

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
    >>> ax = Figure().subplots()
    >>> display = DisparitiesDisplay.from_estimator(model, "sex", ax=ax)
    >>> type(display.answer).__name__
    'Disparities'
    """

    question = "disparities"

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        return 8.0, 1.4 + 0.5 * max(2, min(len(self.answer.gap), MAX_ROWS))

    def draw(self, ax: Any) -> None:
        """Draw a bar for each gap."""
        answer = self.answer
        gaps = answer.gap[:MAX_ROWS]
        ax.barh(np.arange(len(gaps)), gaps, color=np.where(gaps >= 0, BLUE, ACCENT), height=0.5)
        ends = zip(answer.without.tolist(), answer.value.tolist(), gaps.tolist(), strict=False)
        for row, (start, end, gap) in enumerate(ends):
            at, text = (max(gap, 0.0), row), f"{figure(start)} → {figure(end)}"
            offset = {"xytext": (5, 0), "textcoords": "offset points"}
            ax.annotate(text, at, **offset, va="center", ha="left", fontsize="small")
        pairs = zip(answer.group[:MAX_ROWS], answer.disclosed[:MAX_ROWS], strict=True)
        label_rows(ax, [f"{brief(group)}\n{brief(disclosed)}" for group, disclosed in pairs])
        ax.tick_params(axis="y", labelsize="small")
        ax.axvline(0, color=GREY, lw=1)
        low, high = gaps.min(initial=0.0), gaps.max(initial=0.0)
        room = 1.9 / ax.figure.get_figwidth()  # the part of the axis that the texts need
        span = float(high - low) or 1.0
        ax.set_xlim(low - 0.05 * span, high + span * room / (1 - room))
        ax.set_xlabel(shorten(f"change of the expected output: {answer.name}"))
        self.title(ax, "Where an attribute moves the model's output most")
        thousands_axis(ax.xaxis)


class OutliersDisplay(Display[Outliers]):
    """The rows that are least like the density, and the column that makes each so.

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
    >>> ax = Figure().subplots()
    >>> display = OutliersDisplay.from_estimator(model, {"age": 20, "sex": "f"}, ax=ax)
    >>> type(display.answer).__name__
    'Outliers'
    """

    question = "outliers"

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        return rows_size(min(len(self.answer.surprise), MAX_ROWS))

    def draw(self, ax: Any) -> None:
        """Draw how rare rows as unlikely are, on a logarithmic axis."""
        from matplotlib.ticker import FuncFormatter

        answer, lines = self.answer, self.answer.lines()
        smallest = 1.0 / answer.samples
        rows = lines["row"][:MAX_ROWS]
        surprise = np.maximum(lines["surprise"][:MAX_ROWS], smallest)
        error = lines["error"][:MAX_ROWS]
        y = np.arange(len(rows))
        low = np.maximum(surprise - error, 0.5 * smallest)
        ax.hlines(y, low, surprise + error, color=BLUE, lw=2, alpha=0.5)
        ax.plot(surprise, y, "o", color=BLUE)
        labels = [
            f"row {row}: {column} = {value}" if column else f"row {row}: nothing is known"
            for row, column, value in zip(rows, lines["column"], lines["value"], strict=False)
        ]
        label_rows(ax, labels)
        ax.set_xscale("log")
        ax.set_xlim(0.45 * smallest, 1.3)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{100 * x:g}%"))
        ax.set_xlabel("share of the population that is at most as likely")
        self.title(ax, "Least likely rows, and their oddest column")
