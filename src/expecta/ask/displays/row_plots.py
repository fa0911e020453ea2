"""Pictures of rows: what their columns add, whether decisions stand, how odd they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from expecta.ask.decisions import Stability
from expecta.ask.disparities import Disparities
from expecta.ask.displays.axes import (
    ACCENT,
    BLUE,
    GREY,
    Display,
    even,
    line_up,
    short,
    thousands,
)
from expecta.ask.outliers import Outliers
from expecta.ask.shapley import Shapley
from expecta.common.arrays import Floats
from expecta.common.text import brief, figure

__all__ = ["DisparitiesDisplay", "OutliersDisplay", "ShapleyDisplay", "StabilityDisplay"]

MOST = 15  # columns, groups or rows


class ShapleyDisplay(Display[Shapley]):
    """What each column adds: steps from the base for one row, a swarm for several."""

    question = "shapley"

    def _order(self) -> list[int]:
        size = np.nan_to_num(np.abs(self.answer.values), nan=-1.0).mean(axis=0)
        known = ~np.all(np.isnan(self.answer.values), axis=0)
        return [i for i in np.argsort(-size, kind="stable").tolist() if known[i]]

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        return even(min(len(self._order()), MOST) + 1)

    def draw(self, ax: Any) -> None:
        """Draw the steps of the row, or dots for all."""
        found = self.answer
        ax.set_xlabel(short(f"model's output: {found.name}"))
        if len(found.prediction) == 1:
            self._steps(ax)
        else:
            self._swarm(ax)
        thousands(ax.xaxis)

    def _steps(self, ax: Any) -> None:
        found, order = self.answer, self._order()
        values = found.values[0, order]
        labels = [f"{found.columns[i]} = {found.known[0][i]}" for i in order]
        if len(order) > MOST:
            labels = [*labels[: MOST - 1], f"{len(order) - MOST + 1} other columns"]
            values = np.append(values[: MOST - 1], values[MOST - 1 :].sum())
        start = found.base + np.cumsum(values) - values
        ends = np.concatenate([[found.base], start + values])
        colours = [BLUE if value >= 0 else ACCENT for value in values.tolist()]
        ax.barh(np.arange(len(values)), values, left=start, color=colours, height=0.62)
        room = 0.01 * float(np.ptp(ends) or 1.0)
        for place, (begin, value) in enumerate(zip(start, values, strict=True)):
            right = max(begin, begin + value) + room
            ax.text(right, place, figure(value, signed=True), va="center", fontsize="small")
            if place + 1 < len(values):
                ax.plot([begin + value] * 2, [place - 0.31, place + 1.31], color=GREY, lw=0.7)
        ax.axvline(found.base, color=GREY, ls=":", lw=1.2)
        ax.margins(x=0.14)
        line_up(ax, labels)
        self.title(
            ax,
            f"Model's output: {figure(float(found.prediction[0]))}, from "
            f"{figure(found.base)} if nothing is known",
        )

    def _swarm(self, ax: Any) -> None:
        found, order = self.answer, self._order()[:MOST]
        for place, column in enumerate(order):
            values = found.values[:, column]
            values = values[~np.isnan(values)]
            ax.plot(values, place + _swarmed(values), "o", ms=3.5, color=BLUE, alpha=0.55, mew=0)
        ax.axvline(0, color=GREY, lw=1)
        line_up(ax, [found.columns[i] for i in order])
        self.title(ax, f"What each column adds, {len(found.prediction)} rows")
        ax.set_xlabel(short(f"added to the model's output: {found.name}"))


def _swarmed(values: Floats) -> Floats:
    """Return heights that keep near values apart: those of one place fan out in turn."""
    span = float(np.ptp(values)) if len(values) else 0.0
    cell = np.zeros(len(values), np.int64)
    if span > 0:
        cell = ((values - values.min()) / span * 60).astype(np.int64)
    height = np.zeros(len(values))
    for one in np.unique(cell):
        same = np.flatnonzero(cell == one)
        turn = np.arange(len(same))
        height[same] = np.where(turn % 2, 1, -1) * (turn + 1) // 2
    most = np.abs(height).max(initial=0.0)
    found: Floats = 0.36 * height / max(most, 6.0)
    return found


class StabilityDisplay(Display[Stability]):
    """How likely decisions stand: a bar for each of a few rows, or a dot for each of many."""

    question = "stability"

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        few = len(self.answer.value) <= MOST
        return even(len(self.answer.value)) if few else (6.4, 4.0)

    def draw(self, ax: Any) -> None:
        """Draw the probabilities."""
        from matplotlib.ticker import PercentFormatter

        found = self.answer
        name, threshold = short(found.name, 30), figure(found.threshold)
        few = len(found.value) <= MOST
        said = "probability that the decision stands once all is known"
        for some, colour, sign in ((found.decision, BLUE, "≥"), (~found.decision, ACCENT, "<")):
            rows, label = np.flatnonzero(some), f"{name} {sign} {threshold}"
            if not len(rows):
                continue
            if few:
                ax.barh(rows, found.probability[rows], color=colour, height=0.62, label=label)
            else:
                ax.plot(
                    found.value[rows], found.probability[rows], "o", color=colour, ms=4, label=label
                )
        axis = ax.xaxis if few else ax.yaxis
        axis.set_major_formatter(PercentFormatter(1.0))
        if few:
            values = found.value.tolist()
            line_up(ax, [f"row {i}: {figure(value)}" for i, value in enumerate(values)])
            ax.set_xlim(0, 1)
            ax.set_xlabel(said)
        else:
            ax.axvline(found.threshold, color=GREY, ls=":")
            ax.set_ylim(0, 1.03)
            ax.set_xlabel(short(f"expected output: {found.name}"))
            ax.set_ylabel("decision stands with")
            thousands(ax.xaxis)
        self.title(ax, f"Decision by the expected output: {name} ≥ {threshold}?")
        self.legend(ax)


class DisparitiesDisplay(Display[Disparities]):
    """The groups in which disclosing a sensitive attribute moves the expected output most."""

    question = "disparities"

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        return 8.0, 1.4 + 0.5 * max(2, min(len(self.answer.gap), MOST))

    def draw(self, ax: Any) -> None:
        """Draw a bar for each gap."""
        found = self.answer
        gaps = found.gap[:MOST]
        place = np.arange(len(gaps))
        ax.barh(place, gaps, color=np.where(gaps >= 0, BLUE, ACCENT), height=0.5)
        ends = zip(found.without.tolist(), found.value.tolist(), gaps.tolist(), strict=False)
        for row, (start, end, gap) in enumerate(ends):
            ax.annotate(
                f"{figure(start)} → {figure(end)}",
                (gap, row),
                (5 if gap >= 0 else -5, 0),
                textcoords="offset points",
                va="center",
                ha="left" if gap >= 0 else "right",
                fontsize="small",
            )
        line_up(ax, [""] * len(gaps))
        pairs = zip(found.group[:MOST], found.disclosed[:MOST], strict=True)
        labels = [f"{short(brief(group), 48)}\n{short(brief(what), 48)}" for group, what in pairs]
        ax.set_yticks(place, labels, fontsize="small")
        ax.axvline(0, color=GREY, lw=1)
        ax.margins(x=0.42)
        ax.set_xlabel(short(f"change of the expected output: {found.name}"))
        self.title(ax, "Where an attribute moves the model's output most")
        thousands(ax.xaxis)


class OutliersDisplay(Display[Outliers]):
    """The rows that are least like the density, and the column that makes each so."""

    question = "outliers"

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        return even(min(len(self.answer.surprise), MOST))

    def draw(self, ax: Any) -> None:
        """Draw how rare rows as unlikely are, on a logarithmic axis."""
        from matplotlib.ticker import FuncFormatter

        found, lines = self.answer, self.answer.lines()
        least = 1.0 / found.samples
        rows = lines["row"][:MOST]
        surprise = np.maximum(lines["surprise"][:MOST], least)
        error = lines["error"][:MOST]
        place = np.arange(len(rows))
        low = np.maximum(surprise - error, 0.5 * least)
        ax.hlines(place, low, surprise + error, color=BLUE, lw=2, alpha=0.5)
        ax.plot(surprise, place, "o", color=BLUE)
        labels = [
            f"row {row}: {column} = {value}" if column else f"row {row}: nothing is seen"
            for row, column, value in zip(rows, lines["column"], lines["value"], strict=False)
        ]
        line_up(ax, labels)
        ax.set_xscale("log")
        ax.set_xlim(0.45 * least, 1.3)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{100 * x:g}%"))
        ax.set_xlabel("share of the population that is at most as likely")
        self.title(ax, "Least likely rows, and their oddest column")
