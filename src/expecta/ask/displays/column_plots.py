"""Pictures of what columns do: parts of a population, dependence, and what to ask for."""

from __future__ import annotations

from typing import Any

import numpy as np

from expecta.ask.dependence import Dependence
from expecta.ask.displays.axes import (
    ACCENT,
    BLUE,
    Display,
    even,
    line_up,
    outputs,
    short,
    thousands,
)
from expecta.ask.next_question import NextQuestion
from expecta.ask.split import Split
from expecta.common.text import figure, percent

__all__ = ["DependenceDisplay", "NextQuestionDisplay", "SplitDisplay"]

MOST = 30  # lines of labels


class SplitDisplay(Display[Split]):
    """The mean of a model's output over each part of a population, with its spread.

    Parts in which fewer than five training rows are expected are hollow; where there are
    more than thirty parts, the largest are shown.
    """

    question = "split"

    def shown(self) -> list[int]:
        """Return which parts are shown."""
        order = np.argsort(-self.answer.share, kind="stable")[:MOST]
        found: list[int] = np.sort(order).tolist()
        return found

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        return even(len(self.shown()))

    def draw(self, ax: Any) -> None:
        """Draw a dot for each part."""
        found, shown = self.answer, self.shown()
        place = np.arange(len(shown))
        mean, std = found.mean[shown], found.std[shown]
        ax.hlines(place, mean - std, mean + std, color=BLUE, alpha=0.35, lw=5)
        rare = np.zeros(len(shown), bool) if found.rare is None else found.rare[shown]
        for some, face, label in ((~rare, BLUE, "mean ± spread"), (rare, "white", "rare group")):
            if np.any(some):
                ax.plot(
                    mean[some], place[some], "o", mfc=face, mec=BLUE, label=label, ls="", zorder=3
                )
        if found.rows_mean is not None:
            ax.plot(
                found.rows_mean[shown],
                place,
                "|",
                color=ACCENT,
                ms=11,
                mew=2,
                label="training rows' average",
                ls="",
            )
        labels = [", ".join(column[i] for column in found.labels) for i in shown]
        line_up(ax, labels)
        more = "" if len(shown) == len(found) else f", {len(shown)} largest of {len(found)} groups"
        self.title(ax, f"Model's output by {', '.join(found.columns)}{more}")
        ax.set_xlabel(short(f"model's output: {found.name}"))
        outputs(ax.xaxis, found.name)
        self.legend(ax)


class DependenceDisplay(Display[Dependence]):
    """A model's output by one column: with what goes with it, and the column alone."""

    question = "dependence"

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        return (6.4, 4.0) if self.answer.at is not None else even(len(self.answer.labels))

    def draw(self, ax: Any) -> None:
        """Draw both curves, or a pair of dots for each category."""
        found = self.answer
        self.title(ax, f"Model's output by {found.column}")
        if found.at is None:
            self._dots(ax)
        else:
            self._curves(ax, found.at)
        self.legend(ax)

    def _curves(self, ax: Any, at: Any) -> None:
        found = self.answer
        low, high = found.mean - found.std, found.mean + found.std
        ax.fill_between(at, low, high, color=BLUE, alpha=0.18, lw=0, label="± spread")
        marker = "o" if len(at) < 12 else None
        ax.plot(at, found.mean, color=BLUE, marker=marker, label=f"given {short(found.column, 24)}")
        ax.plot(
            at,
            found.partial,
            color=ACCENT,
            ls="--",
            marker=marker,
            mfc="white",
            label=f"{short(found.column, 24)} alone changed",
        )
        ax.set_xlabel(short(found.column))
        ax.set_ylabel(short(f"model's output: {found.name}"))
        outputs(ax.yaxis, found.name)
        if numeric(found.labels):
            thousands(ax.xaxis)
        else:  # times, in the words of their labels
            some = np.unique(np.linspace(0, len(at) - 1, 4).astype(int))
            ax.set_xticks(at[some], [found.labels[i].split(" to ")[0] for i in some])

    def _dots(self, ax: Any) -> None:
        found = self.answer
        place = np.arange(len(found.labels))
        low, high = found.mean - found.std, found.mean + found.std
        ax.hlines(place, low, high, color=BLUE, alpha=0.25, lw=5, label="± spread")
        ax.plot(found.mean, place, "o", color=BLUE, label=f"given {short(found.column, 24)}", ls="")
        ax.plot(
            found.partial,
            place,
            "D",
            mfc="white",
            mec=ACCENT,
            label=f"{short(found.column, 24)} alone changed",
            ls="",
        )
        line_up(ax, found.labels)
        ax.set_xlabel(short(f"model's output: {found.name}"))
        outputs(ax.xaxis, found.name)


class NextQuestionDisplay(Display[NextQuestion]):
    """How much of the variance each unknown column would settle."""

    question = "next_question"

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        return even(min(len(self.answer.columns), MOST))

    def draw(self, ax: Any) -> None:
        """Draw a bar for each column."""
        from matplotlib.ticker import PercentFormatter

        found = self.answer
        names, share = found.columns[:MOST], found.share[:MOST]
        ax.barh(np.arange(len(names)), share, color=BLUE, height=0.62)
        for place, one in enumerate(share.tolist()):
            price = "" if found.cost is None else f", costs {figure(float(found.cost[place]))}"
            text = f"{percent(one)}, ± {figure(float(found.remaining[place]))} left{price}"
            inside = one > 0.6
            ax.text(
                one - 0.01 if inside else one + 0.01,
                place,
                text,
                va="center",
                ha="right" if inside else "left",
                color="white" if inside else "black",
                fontsize="small",
            )
        line_up(ax, names)
        ax.set_xlim(0, 1)
        ax.xaxis.set_major_formatter(PercentFormatter(1.0))
        self.title(ax, f"What would settle {found.name}, given {found.given}")
        ax.set_xlabel("share of the output's variance that knowing it takes away")


def numeric(labels: tuple[str, ...]) -> bool:
    """Whether labels of groups are numbers, not times."""
    try:
        float(labels[0].split(" to ")[0])
    except ValueError:
        return False
    return True
