"""Where another way of part B is better than ours, and why."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .tables import number, table

OURS = ("circuit", "expected")
NEITHER = ("monte carlo",)  # our density, not our way
LEAST = 0.005  # a loss to all other methods is told where it is more than this share
WHY = """\
By RMSE or log-loss; Monte Carlo, which has our density, is left out here. A loss within two
standard errors of the difference (row by row, over the same test rows) is *undecided*. Otherwise,
with complete training rows, the sums are not to blame, as the next section shows; what is left
is that the model is not the mean of y given the inputs, or that the learned density is not that of
the inputs. It is put down to *the model* where our best prediction (a circuit, or the expectation
of another model with the same density) is as good as the winner, and the winner's way is no better
for that other model. Else it is put down to *the density*; where training rows have holes, this
means the density or the completions that it drew for training.

"""


def losses(cells: pd.DataFrame, as_trained: pd.DataFrame) -> str:
    """Plainly, for every model: the best other way where it is better than the expectation."""
    text = WHY + "#### Models as they were trained (i)\n\n" + lost_table(as_trained, cells)
    text += "\n#### Models trained with holes (ii and iii)\n\n"
    text += lost_table(cells[cells["scenario"] != "i"], cells)
    text += "\n#### The best of all methods, models fitted anew among them\n\n"
    lines, total = [], 0
    for (name, setting), here in cells.groupby(["set", "setting"], sort=False):
        here = here.dropna(subset="loss").set_index("method")
        own, other = here[here["way"].isin(OURS)]["loss"], others(here)["loss"]
        total += 1
        if other.min() < own.min() * (1 - LEAST):
            ours, theirs = (f"{one.idxmin()} {number(one.min())}" for one in (own, other))
            lines.append((name, setting, ours, theirs, f"{own.min() / other.min() - 1:.1%}"))
    text += (
        f"Another method is better than the best of ours (the circuit, or the expectation of any "
        f"model) in {len(lines)} of {total} settings of a "
        f"set, by more than {LEAST:.1%} of RMSE or log-loss.\n\n"
    )
    names = ["set", "setting", "ours", "better", "we lose by"]
    return text + (table(pd.DataFrame(lines, columns=names)) if lines else "")


def others(cells: pd.DataFrame) -> pd.DataFrame:
    return cells[~cells["way"].isin((*OURS, *NEITHER))]


def lost_table(cells: pd.DataFrame, every: pd.DataFrame) -> str:
    lines, total = [], 0
    for (name, setting, model), here in cells.groupby(["set", "setting", "model"], sort=False):
        own, other = here[here["way"] == "expected"], others(here).dropna(subset="loss")
        if not len(own) or not len(other):
            continue
        total += 1
        ours, best = own["loss"].iloc[0], other.loc[other["loss"].idxmin()]
        if best["loss"] < ours:
            error = best.get("its error", np.nan) / best["seeds"] ** 0.5
            apart = -best.get("more than expected", np.nan) / error
            there = every[(every["set"] == name) & (every["setting"] == setting)]
            why = reason(apart, best, there)
            share = ours / best["loss"] - 1
            words = number(ours), f"{best['way']} {number(best['loss'])}", f"{share:.1%}"
            lines.append((share, (name, setting, model, *words, apart, why)))
    text = duels(cells) + (
        f"Monte Carlo apart, the expectation is first among the ways of a model in "
        f"{total - len(lines)} of {total} settings of a set and a model. It is not in these:\n\n"
    )
    names = ["set", "setting", "model", "expected", "better", "by", "standard errors", "why"]
    lines = [line for _, line in sorted(lines, key=lambda one: -one[0])]
    return text + (table(pd.DataFrame(lines, columns=names), 2) if lines else "")


def reason(apart: float, rival: pd.Series, there: pd.DataFrame) -> str:
    """What was checked of a loss; see WHY."""
    if not apart > 2:
        return "undecided"
    ours = there[there["way"].isin(OURS)]
    best = ours.loc[ours["loss"].idxmin()]
    same = there[(there["model"] == best["model"]) & (there["way"] == rival["way"])]["loss"]
    if best["loss"] <= min([rival["loss"], *same]):
        return f"the model: {best['method']} has {number(best['loss'])}"
    return "the density"


def duels(cells: pd.DataFrame) -> str:
    """For each set and other way: in how many settings and models the expectation is better."""
    grid = cells.pivot_table(index=["set", "setting", "model"], columns="way", values="loss")
    told = {}
    for way in [way for way in grid if way not in OURS]:
        both = grid[["expected", way]].dropna()
        won = (both["expected"] < both[way]).groupby("set").agg(["sum", "count"])
        told[way] = won["sum"].astype(str) + " of " + won["count"].astype(str)
    shown = pd.DataFrame(told).fillna("").loc[list(dict.fromkeys(cells["set"]))]
    return (
        "How often the expectation is better, over settings and models:\n\n"
        + table(shown.reset_index(names="set"))
        + "\n"
    )
