"""Part B in short: lines of docs/results.md, and the losses of single tables as text."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from .claim_figures import HALVES, MISSING, TRAINED, arranged, statistics
from .tables import count_tables


def printed(file: Path, sets: set[str]) -> str:
    """Losses of some tables, as text: mean over seeds."""
    frame = pd.read_parquet(file)
    cells = arranged(frame[frame["set"].isin(sets)])
    grid = cells.pivot_table(index=["set", "method"], columns="setting", values="loss", sort=False)
    return grid.to_string(float_format=lambda value: f"{value:.4g}", na_rep="")


def part_b(frame: pd.DataFrame) -> str:
    """The part of docs/results.md: where the rest is."""
    n = frame["set"].nunique()
    return (
        f"{n} tables. What is claimed of them: [claims](claims.md). Where others are better: "
        "[losses](losses.md).\n"
    )


def in_short(frame: pd.DataFrame) -> list[str]:
    """How part B ended, in lines."""
    lines = []
    figures_ = statistics(frame).set_index(["set", "method", "setting", "metric"])["value"]
    figures_ = figures_.sort_index()
    for half in HALVES:
        for training in (TRAINED, MISSING):
            if (half, "all", training, "tables") in figures_.index:
                here = figures_[half].xs(training, level="setting")
                ranks = here.xs("middle", level="metric").drop("expected").sort_values()
                best = ranks.index[0]
                lines.append(
                    f"{training.capitalize()}, {HALVES[half]}, "
                    f"{count_tables(here['all', 'tables'])}: the expectation has mean rank "
                    f"{here['expected', 'middle']:.2f} of {len(ranks) + 1} ways; {best} "
                    f"{ranks.iloc[0]:.2f}, with {here[best, 'more, middle']:+.1%} loss."
                )
    return lines
