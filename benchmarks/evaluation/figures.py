"""Pictures of results, as SVG."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt
import matplotlib.ticker
import numpy as np
import pandas as pd

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
def ranks(found: dict[str, pd.DataFrame], path: Path, ours: tuple[str, ...]) -> None:
    """Mean ranks with their intervals, a panel for each scenario; ours are dark."""
    tall = max(len(table) for table in found.values())
    figure, axes = plt.subplots(
        1, len(found), figsize=(4.2 * len(found), 0.6 + 0.2 * tall), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for (title, table), ax in zip(found.items(), axes.flat, strict=True):
        for place, (method, line) in enumerate(table.iterrows()):
            own = method.split(" + ")[-1] in ours
            colour = "#0b5394" if own else "#999999"
            ax.plot([line["low"], line["high"]], [place, place], color=colour, lw=1.5)
            ax.plot(line["rank"], place, "o", color=colour, ms=4)
        ax.set_yticks(range(len(table)), table.index)
        ax.invert_yaxis()
        ax.set_xlabel("mean rank over data sets (1 is best), 95%")
        ax.set_title(title)
    save(figure, path)


@styled
def by_holes(frame: pd.DataFrame, what: str, path: Path) -> None:
    """Coverage or width of 90% intervals against the number of holes; a panel for each set."""
    names = list(dict.fromkeys(frame["set"]))
    figure, axes = grid(len(names), 3.2, 2.4)
    methods = sorted(set(frame["method"]), key=lambda one: (one != "circuit", one))
    for name, ax in zip(names, axes.flat, strict=False):
        for number, method in enumerate(methods):
            line = frame[(frame["set"] == name) & (frame["method"] == method)].sort_values("holes")
            ax.plot(line["holes"], line[what], "o-", ms=2.5, color=f"C{number}", label=method)
        if what == "coverage":
            ax.axhline(0.9, color="black", lw=0.6, ls=":")
            ax.set_ylim(min(0.5, frame[what].min()) - 0.02, 1.02)
        ax.set_title(name)
        ax.set_xlabel("holes in the row")
        ax.set_ylabel(
            "covered by 90% intervals" if what == "coverage" else "width of 90% intervals"
        )
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
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
