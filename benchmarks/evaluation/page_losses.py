"""docs/losses.md: where another way is better than ours, and what was tested about why."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from .claim_figures import HALVES, MISSING, SIGNIFICANT, TRAINED, arranged, paired, wide_by_seed
from .methods import RETRAINED
from .tables import table

FILE = "evaluation/lost.parquet"
BY = ["half", "set", "training", "setting", "model"]
WHY = """\
A loss is listed where it is beyond two standard errors, row by row over the test rows of a table;
of ways that are equally good, chance alone would list one in forty.
What was tested of each:

- *the model*: a circuit, or the expectation of another model under the same density, is at least as
  good as the winner. So predictions that good can be made under the density, by another model.
- *the density*: no model under the density is as good as the winner, and
  [`density.check`](densities.md#can-i-trust-answers-under-this-density) on held-out rows names
  pairs of columns, or groups, that it has wrong beyond chance; the table says how many, on average
  over the divisions of a table.
- *not explained*: neither. The density agrees with held-out rows in all that was compared.
"""
WHEN = """
## A model trained again

`retrained` is fitted to the training rows and a copy with missing values as the test rows have
them: it knows beforehand what will be missing, and how often. Where you know that too and may train
again, compare it with `expected`, which leaves the model as it is:
"""


def causes(frame: pd.DataFrame) -> pd.DataFrame:
    """Every model of a table and every other way: how much better it is, and what explains that."""
    cells = arranged(frame)
    pairs = paired(cells, BY)
    keys = [*BY[:4], "seed"]
    grid = cells.assign(method=cells["model"] + " + " + cells["way"]).pivot_table(
        index=keys, columns="method", values="loss"
    )
    checks = wide_by_seed(frame)
    checks = checks[checks["setting"] == "density"].groupby("set").mean(numeric_only=True)
    pairs["errors"] = pairs["more"] / pairs["error"]
    pairs["cause"] = [
        _cause(line, grid.loc[line.half, line.set, line.training, line.setting], checks)
        if line.errors < -SIGNIFICANT
        else ""
        for line in pairs.itertuples()
    ]
    return pairs.rename(columns={"way": "better"})


def _cause(line, grid: pd.DataFrame, checks: pd.DataFrame) -> str:
    winner = np.log(grid[f"{line.model} + {line.way}"])
    ours = [name for name in grid if name.endswith(("+ circuit", "+ expected"))]
    ratios = {name: (np.log(grid[name]) - winner).mean() for name in ours}
    best = min(ratios, key=lambda name: ratios[name])
    if ratios[best] <= 0:
        name = best.removeprefix("circuit + ")
        return f"the model: {name} has {np.expm1(ratios[best]):+.1%}"
    if line.set not in checks.index:
        return "density not checked"
    check = checks.loc[line.set]
    wrong = check["pairs beyond chance"], check["groups beyond chance"]
    if max(wrong) > 0:
        pairs, groups = check["pairs compared"], check["groups compared"]
        return (
            f"the density: {round(wrong[0], 1):g} of {pairs:.0f} pairs, "
            f"{round(wrong[1], 1):g} of {groups:.0f} groups are off"
        )
    return "not explained"


def lost(causes_: pd.DataFrame) -> pd.DataFrame:
    """Lines as figures: set, method, setting, metric, value."""
    told = causes_.assign(method=causes_["model"] + " + " + causes_["better"])
    return told.melt(["set", "method", "setting"], ["more", "error", "errors"], "metric", "value")


def losses(causes_: pd.DataFrame) -> str:
    """The page."""
    text = (
        "# Losses\n\nWritten by `python -m benchmarks.evaluation page` from "
        "benchmarks/results/evaluation; not to be edited. What is claimed, and how it was "
        "measured: [claims](claims.md). All comparisons, won and lost, are in "
        "[results/comparisons.csv](results/comparisons.csv).\n\n" + WHY
    )
    as_it_is = causes_[causes_["better"] != RETRAINED]
    for training in (TRAINED, MISSING):
        here = as_it_is[as_it_is["training"] == training]
        text += f"\n## {training.capitalize()}\n\n"
        if not len(here):
            text += "Not run.\n"
            continue
        worst = here[here["errors"] < -SIGNIFICANT].sort_values(["half", "set", "more"])
        counts = here.assign(lost=here["errors"] < -SIGNIFICANT, won=here["errors"] > SIGNIFICANT)
        by_half = counts.groupby("half")[["won", "lost"]].agg(["sum", "count"])
        for half in [half for half in HALVES if half in by_half.index]:
            (won, n), (below, _) = (by_half.loc[half, name] for name in ("won", "lost"))
            text += (
                f"{HALVES[half].capitalize()}: of {n} comparisons of a table, setting, model and "
                f"other way, `expected` wins {won} beyond two standard errors and loses "
                f"{below}.\n\n"
            )
        if len(worst):
            text += f"<!-- measured: {FILE} -->\n" + _table(worst) + "<!-- end -->\n"
    again = causes_[causes_["better"] == RETRAINED]
    text += WHEN
    if len(again):
        text += "\n" + _retrained(again)
    return text


def _table(lines: pd.DataFrame) -> str:
    shown = [
        (
            f"{line.set} ({HALVES[line.half]}), {line.setting}, {line.model}, `{line.better}`",
            f"{line.more:.1%}",
            f"{line.error:.1%}",
            f"`{line.cause}`",
        )
        for line in lines.itertuples()
    ]
    names = ["table, setting, model, better way", "its loss", "standard error", "cause"]
    return table(pd.DataFrame(shown, columns=names))


def _retrained(lines: pd.DataFrame) -> str:
    text = ""
    for (half, model), here in lines.groupby(["half", "model"], sort=False):
        won, below = (here["errors"] > SIGNIFICANT).sum(), (here["errors"] < -SIGNIFICANT).sum()
        text += (
            f"- {model}, {HALVES[half]}: of {len(here)} tables and settings, better than "
            f"`expected` beyond two standard errors on {below}, worse on {won}.\n"
        )
    return text


def write_comparisons(causes_: pd.DataFrame, file: Path) -> None:
    """All comparisons as CSV."""
    file.parent.mkdir(parents=True, exist_ok=True)
    names = ["half", "set", "setting", "model", "better", "more", "error", "seed", "cause"]
    shown = causes_[names].rename(columns={"better": "way", "seed": "seeds"})
    shown.to_csv(file, index=False, float_format="%.5f", lineterminator="\n")
