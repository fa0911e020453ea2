"""The page of part D: speed."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from . import figures
from .cells import LAST
from .tables import number, table, wide

WHAT = {
    "marks": "The authors' own tasks with their own circuits, on all cores, beside CPU seconds of "
    "the code published with the paper on a machine of the same kind; traffic is the bytes of "
    "the joins, over what a copy moves in the same time",
    "first": "Seconds of the first call in a fresh process, with machine code in the cache",
    "mnist": "Ten classes at once, half of the pixels hidden, on all cores",
    "rows": "Against the number of rows, half of the bits hidden, one thread",
    "sizes": "Against the sizes of circuits over 60 variables, 5,000 rows, one thread",
    "orders": "Moments up to an order, one thread",
    "chunks": "By how many MB memory rises while chunks of 20,000 rows are learned from",
    "models": "Exact expectations of XGBoost, half of the columns hidden, on all cores: seconds "
    "to predict, and to write the trees as boxes before; beside them, seconds of sampling from "
    "the same density until the standard error is 1% of the prediction, or of the spread of the "
    "output (that of 200 rows, times five)",
    "questions": "Of a fitted circuit that was asked before",
    "estimators": "A circuit, and (theirs) scikit-learn's boosted trees after chained equations "
    "of ten rounds; half of the cells that are predicted from are hidden",
    "learning": "Seconds of a step of EM over all rows; as a share of what NumPy needs for the "
    "matrix products alone, with and without sharing between equal rows",
}
AXES = {"rows": "rows", "sizes": "joins", "orders": "order"}


def part_d(frame: pd.DataFrame, folder: Path) -> str:
    text, panels = "", {}
    for setting, here in wide(frame[frame["metric"] != LAST]).groupby("setting", sort=False):
        here = here.drop(columns="setting").dropna(axis=1, how="all")
        text += f"\n### {setting.capitalize()}\n\n{WHAT[setting]}.\n\n" + table(here, 3)
        axis = AXES.get(setting)
        if axis and len(here) > 1:
            panels[f"cost against {axis}"] = here[[axis, "CPU seconds"]]
    if panels:
        figures.scaling(panels, folder / "scaling.svg")
        text = f"![scaling]({folder.name}/scaling.svg)\n" + text
    return text


def in_short(frame: pd.DataFrame) -> list[str]:
    """How much less time than the authors' code."""
    ratios = frame[(frame["setting"] == "marks") & (frame["metric"] == "ratio")]["value"]
    if not len(ratios):
        return []
    least, most = number(ratios.min(), 3), number(ratios.max(), 3)
    return [f"The authors' tasks: {least} to {most} times less CPU time than their code took."]
