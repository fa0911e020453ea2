"""Pictures of results, as SVG."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import matplotlib.ticker
import numpy as np
import pandas as pd
from scipy.stats import studentized_range

styled = mpl.rc_context(
    {
        "svg.hashsalt": "expecta",  # the same picture is the same file
        "svg.fonttype": "none",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "savefig.bbox": "tight",
    }
)
COLOURS = {
    "expected": "#0b5394",
    "taylor1": "#0b5394",
    "mpe": "#674ea7",
    "mean": "#e69138",
    "median": "#6aa84f",
    "mice": "#cc0000",
    "monte-carlo": "#888888",
}


def save(figure: plt.Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def grid(panels: int, wide: float, high: float) -> tuple[plt.Figure, np.ndarray]:
    """Panels in lines of three, each so many inches."""
    columns = min(3, panels)
    lines = -(-panels // columns)
    size = (wide * columns, high * lines)
    figure, axes = plt.subplots(lines, columns, figsize=size, squeeze=False, layout="constrained")
    for ax in axes.flat[panels:]:
        ax.set_visible(False)
    return figure, axes


@styled
def curves(frame: pd.DataFrame, path: Path, *, metric: str, published: pd.DataFrame) -> None:
    """A panel for each set and pair of circuits: a metric against the share that is missing.

    Bands are one standard deviation over the repeats; crosses are what was published.
    """
    panels = sorted(set(zip(frame["set"], frame["circuits"], strict=True)))
    figure, axes = grid(len(panels), 3.4, 2.7)
    for (name, whose), ax in zip(panels, axes.flat, strict=False):
        here = frame[(frame["set"] == name) & (frame["circuits"] == whose)]
        for method, line in here.groupby("method", sort=False):
            line = line.sort_values("percent")
            colour = COLOURS.get(method, "black")
            top = 3 if method in ("expected", "taylor1") else 2  # draws lie on the expectation
            style = {"ms": 2, "lw": 1.3, "color": colour, "zorder": top}
            ax.plot(line["percent"], line["mean"], "o-", **style, label=method)
            spread = line["std"].fillna(0)
            low, high = line["mean"] - spread, line["mean"] + spread
            ax.fill_between(line["percent"], low, high, color=colour, alpha=0.15, lw=0)
            true = published[(published["dataset"] == name) & (published["method"] == method)]
            ax.plot(true["percent"], true["mean"], "x", color=colour, ms=3.5, mew=0.8)
        ax.set_title(f"{name}, circuits {'of the authors' if whose == 'authors' else 'learned'}")
        ax.set_xlabel("% missing")
        ax.set_ylabel(metric)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7)
    save(figure, path)


@styled
def critical_difference(panels: dict[str, pd.Series], path: Path) -> None:
    """Mean ranks of ways with bootstrap intervals, and Nemenyi's critical difference as a bar.

    A panel for each part of the list; each has figures by way and metric.
    """
    wide = (3.6 * len(panels), 2.6)
    figure, axes = plt.subplots(1, len(panels), figsize=wide, squeeze=False, layout="constrained")
    for (title, told), ax in zip(panels.items(), axes.flat, strict=True):
        ranks = told.xs("middle", level="metric").sort_values()
        n, k = told["all", "tables"], len(ranks)
        for place, way in enumerate(ranks.index):
            colour = "#0b5394" if way == "expected" else "#888888"
            ends = [told[way, "low"], told[way, "high"]]
            ax.plot(ends, [place, place], color=colour, lw=1.5)
            ax.plot(ranks[way], place, "o", color=colour, ms=4)
        apart = studentized_range.ppf(0.95, k, np.inf) / 2**0.5 * (k * (k + 1) / (6 * n)) ** 0.5
        ax.plot([ranks.iloc[0], ranks.iloc[0] + apart], [-0.9, -0.9], color="black", lw=2)
        ax.annotate("critical difference", (ranks.iloc[0], -1.15), fontsize=7)
        ax.set_yticks(range(k), ranks.index)
        ax.set_ylim(k - 0.5, -1.9)
        ax.set_xlabel("mean rank (1 is best), interval")
        ax.set_title(f"{title}, {n:.0f} tables")
    save(figure, path)


@styled
def scaling(panels: dict[str, pd.DataFrame], path: Path) -> None:
    """Cost against size, both logarithmic; each frame has columns x and y named by their labels."""
    figure, axes = plt.subplots(
        1, len(panels), figsize=(3.4 * len(panels), 2.6), squeeze=False, layout="constrained"
    )
    for (title, frame), ax in zip(panels.items(), axes.flat, strict=True):
        x, y = frame.columns
        frame = frame.sort_values(x)
        ax.loglog(frame[x], frame[y], "o-", ms=3, color="#0b5394")
        ax.set_title(title)
        ax.set_xlabel(x)
        ax.set_ylabel(y)
        for axis, values in ((ax.xaxis, frame[x]), (ax.yaxis, frame[y])):
            steps = (1,) if np.ptp(np.log10(values)) > 2 else (1, 2, 5)
            axis.set_major_locator(mpl.ticker.LogLocator(subs=steps))
            axis.set_major_formatter(lambda value, _: f"{value:,g}")
            axis.set_minor_locator(mpl.ticker.NullLocator())
    save(figure, path)
