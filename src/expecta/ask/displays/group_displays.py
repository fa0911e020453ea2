"""Draw the distribution of a model's output over one group, and over two."""

from __future__ import annotations

from typing import Any

import numpy as np

from expecta.ask.displays.display import (
    ACCENT,
    BLUE,
    GREY,
    Display,
    output_axis,
    percent_axis,
    shorten,
)
from expecta.ask.groups import Comparison, Group
from expecta.ask.language.query import where
from expecta.common.text import figure

MAX_POINTS = 61  # of a distribution


class GroupDisplay(Display[Group]):
    """The distribution of a model's output over a group, with mean and quantiles.

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
    >>> display = GroupDisplay.from_estimator(model, sex="f", ax=ax)
    >>> type(display.answer).__name__
    'Group'
    """

    question = "ask"

    def draw(self, ax: Any) -> None:
        """Draw the shares of the group by output."""
        group = self.answer
        if not np.isfinite(group.mean):
            self.title(ax, "Model's output")
            _nothing(ax, group)
            return
        _shares(ax, group, BLUE, "")
        levels = list(group.quantiles)
        low, high = group.quantiles[levels[0]], group.quantiles[levels[-1]]
        ax.axvline(group.mean, color=ACCENT, label=f"mean {figure(group.mean)}")
        ax.axvspan(
            low, high, color=GREY, alpha=0.12, lw=0, label=f"{levels[0]:.0%} to {levels[-1]:.0%}"
        )
        if 0.5 in group.quantiles:
            middle = group.quantiles[0.5]
            ax.axvline(middle, color=GREY, ls="--", label=f"median {figure(middle)}")
        self.title(ax, f"Model's output{where(group.query)}")
        _finish(ax, group)
        self.legend(ax)


class ComparisonDisplay(Display[Comparison]):
    """The distributions of a model's output over two groups.

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
    >>> display = ComparisonDisplay.from_estimator(model, "sex == 'f'", "sex == 'm'", ax=ax)
    >>> type(display.answer).__name__
    'Comparison'
    """

    question = "compare"

    def draw(self, ax: Any) -> None:
        """Draw the shares of both groups by output."""
        a, b = self.answer.a, self.answer.b
        distributions = [group.distribution for group in (a, b)]
        if any(distribution is None for distribution in distributions):
            self.title(ax, "Model's output")
            _nothing(ax, a)
            return
        ends = [one.curve(2)[0] for one in distributions if one is not None]
        grid = np.linspace(np.min(ends), np.max(ends), MAX_POINTS)
        for group, colour, line in ((a, BLUE, "-"), (b, ACCENT, "--")):
            label = f"{shorten(group.query, 36)}, mean {figure(group.mean)}"
            _shares(ax, group, colour, label, grid, line)
            ax.axvline(group.mean, color=colour, ls=line, lw=1)
        self.title(ax, f"Model's output: means {figure(abs(self.answer.difference))} apart")
        _finish(ax, a)
        self.legend(ax)


def _shares(
    ax: Any, group: Group, colour: str, label: str, grid: Any = None, line: str = "-"
) -> None:
    distribution = group.distribution
    assert distribution is not None
    at, below = distribution.curve(MAX_POINTS) if grid is None else (grid, distribution.cdf(grid))
    mass = np.diff(below)
    ax.stairs(mass, at, fill=True, color=colour, alpha=0.25, lw=0)
    ax.stairs(mass, at, color=colour, lw=1.4, ls=line, label=label or None)


def _finish(ax: Any, group: Group) -> None:
    ax.set_xlabel(shorten(f"model's output: {group.name}"))
    ax.set_ylabel("share of the group")
    percent_axis(ax.yaxis)
    ax.set_ylim(bottom=0)
    output_axis(ax.xaxis, group.is_probability)


def _nothing(ax: Any, group: Group) -> None:
    """Say that there is no distribution."""
    _finish(ax, group)
    ax.text(0.5, 0.5, "a group has probability zero", ha="center", transform=ax.transAxes)
