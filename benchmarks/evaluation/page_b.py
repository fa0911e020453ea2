"""The page of part B: tables with holes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from . import figures
from .cells import LAST
from .metrics import bootstrap
from .page_losses import OURS, losses
from .tables import table, wide

SCENARIOS = {
    "i": "trained on complete rows, tested with holes",
    "ii": "the same holes in training and test rows",
    "iii": "shift: 10% of the training cells at random, other holes in the test rows",
}
HOLES = """
MCAR 30% hides each cell with that probability. MAR 50% and MNAR 50% hide half of the columns of
half of the rows (`pyampute`), chosen by what stays seen or by what is hidden; which columns go
together is one of four patterns, in ii the same four for training and test rows.
"""
METHODS = """
A method is a model (scikit-learn's histogram boosting, XGBoost, LightGBM, ridge or logistic
regression, with their defaults) and a way to deal with holes. Cells are hidden, not bits. Ways:

- `circuit`: `CircuitRegressor` or `CircuitClassifier`, which need nothing else.
- `expected`: `ExpectedPredictor` with a latent tree. Where training rows have holes, the mean of
  five, each of a model fitted to one completion of these rows, drawn given their known cells and
  their target.
- `monte carlo`: the same models averaged over draws from the same density until the time that the
  expectation took is over, but at least ten; often these take longer.
- `native`: NaN as the model takes it. `mean`, `median`, `neighbours`, `chained` (scikit-learn's
  `IterativeImputer`), `forest` (the same with extremely randomised trees): filled in, fitted on the
  training rows, columns scaled to unit variance. `multiple`: the mean over 20 draws of chained
  equations; where training rows have holes, each of a model of its own, fitted to such a draw of
  these rows. `multiple, target`: the draws of training rows see their target.
- `indicator`: means and marks for holes; where training rows are complete the model is fitted to
  them and to a copy with holes *as the test rows have them*, which the others do not see.

Where training rows have holes, `expected` and `monte carlo` are thus means of five models, both
kinds of `multiple` of twenty, and all others are single models; of the imputers only those of
`expected`, `monte carlo` and `multiple, target` see the target of training rows.

Rows are dealt 70 to 30 by each seed, at most 4,000 to learn from and 500 to test on. Rows of the
source that have holes of their own are left out. All methods run on one core. What is fitted to the
same training rows is fitted once for all tests of it. The defaults of our encoder and latent tree
(bins by the number of rows, four states among those tried, the threshold for noise) were chosen
with test losses of seed 0 of wine, diabetes, insurance, breast cancer and election in view.
"""


def main_metric(cells: pd.DataFrame) -> pd.DataFrame:
    """One number for each cell, less is better: RMSE or log-loss."""
    both = cells.reindex(columns=["RMSE", "log-loss"])
    return cells.assign(**both, loss=both["RMSE"].fillna(both["log-loss"]))


def arranged(frame: pd.DataFrame) -> pd.DataFrame:
    """A line for each cell, with its loss and what its method and setting are made of."""
    cells = main_metric(wide(frame))
    keys = ["set", "method", "setting"]
    cells["seeds"] = cells[keys].merge(frame.groupby(keys)["seed"].nunique().reset_index())["seed"]
    cells["scenario"] = cells["setting"].str.split("/").str[0]
    cells["way"] = cells["method"].str.split(" + ", regex=False).str[-1]
    cells["model"] = cells["method"].str.split(" + ", regex=False).str[0]
    return cells


def part_b(frame: pd.DataFrame, folder: Path) -> str:
    cells = arranged(frame)
    text = "".join(f"- **{key}**: {what}.\n" for key, what in SCENARIOS.items())
    text += HOLES + METHODS
    text += "\n### Ranks of ways, whatever the model\n\n" + way_ranks(cells)
    text += "\n### Ranks of methods\n\n" + rank_tables(cells, folder)
    text += "\n### Where we lose\n\n" + losses(cells, as_trained(cells))
    text += "\n### Against the exact answer\n\n" + enumeration(cells)
    text += "\n### Intervals\n\n" + interval_tables(frame, folder)
    return text + "\n### Every figure\n" + every_figure(cells)


def every_figure(cells: pd.DataFrame) -> str:
    text = (
        "Brier scores, AUC, accuracies, times to fit and to predict are in "
        "benchmarks/results/evaluation/B.parquet (`pandas.read_parquet`).\n"
    )
    for name, here in cells.groupby("set", sort=False):
        what = "RMSE" if here["RMSE"].notna().any() else "log-loss"
        grid = here.pivot_table(index="method", columns="setting", values="loss", sort=False)
        text += f"\n<details><summary>{name}, {what}</summary>\n\n"
        text += table(grid.reset_index()) + "\n</details>\n"
    text += "\nMilliseconds a row and seconds to fit, median over sets and settings:\n\n"
    return text + costs(cells)


def costs(cells: pd.DataFrame) -> str:
    names = ["milliseconds per row", "fit seconds"]
    grid = cells.groupby("method", sort=False)[names].median()
    return table(grid.sort_values(names[0]).reset_index(), 2)


def as_trained(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells of models that were fitted to complete rows, and left so."""
    return cells[(cells["scenario"] == "i") & ~cells["way"].isin(["indicator", "circuit"])]


def ways(cells: pd.DataFrame) -> tuple[int, pd.DataFrame]:
    """How many sets, and the ranks of ways among those of the same model."""
    grid = cells.pivot_table(index=["set", "setting", "model"], columns="way", values="loss")
    places = grid.rank(axis=1)
    found = bootstrap(places.groupby("set").mean())
    found["best in"] = [f"{(places[way] == 1).sum()} of {len(grid)}" for way in found.index]
    ratio = np.log(grid.div(grid["expected"], axis=0)).groupby("set").mean().mean()
    found["loss over expected"] = np.exp(ratio)
    sets = grid.index.get_level_values(0).nunique()
    return sets, found.sort_values("rank").reset_index(names="way").drop(columns=["low", "high"])


def by_training(cells: pd.DataFrame) -> dict[str, pd.DataFrame]:
    holes = cells[(cells["scenario"] != "i") & (cells["way"] != "circuit")]
    found = {
        "Models as they were trained (i)": as_trained(cells),
        "Models trained with holes (ii and iii)": holes,
    }
    return {title: here for title, here in found.items() if "expected" in set(here["way"])}


def way_ranks(cells: pd.DataFrame) -> str:
    """Each way against the others with the same model, and against the expectation."""
    text = (
        "Ranks among the ways of the same model, by RMSE or log-loss, mean over models and "
        "settings within a set, then over sets, with 95% intervals of a bootstrap over sets; how "
        "often a way is the best; and its loss over that of the expectation, geometric mean.\n"
    )
    for title, here in by_training(cells).items():
        sets, found = ways(here)
        text += f"\n{title}, sets: {sets}\n\n" + table(found, 3)
    return text


def in_short(frame: pd.DataFrame) -> list[str]:
    """How part B ended, in lines."""
    lines = []
    for title, here in by_training(arranged(frame)).items():
        sets, found = ways(here)
        own = found[found["way"] == "expected"].iloc[0]
        line = (
            f"{title}, {sets} sets: the expectation has mean rank {own['rank']:.2f} of "
            f"{len(found)} ways and is the best in {own['best in']} settings of a set and a model"
        )
        for _, rival in found[found["way"] != "expected"].head(2).iterrows():
            line += f"; {rival['way']} {rival['rank']:.2f} and {rival['best in']}, with "
            line += f"{rival['loss over expected']:.3f} times its loss"
        lines.append(line + ".")
    return lines


def rank_tables(cells: pd.DataFrame, folder: Path) -> str:
    found, text = {}, ""
    for scenario, here in cells.groupby("scenario"):
        grid = here.pivot_table(index=["set", "setting"], columns="method", values="loss")
        ranked = grid.rank(axis=1).groupby("set").mean()  # a data set counts once
        complete = ranked.dropna(axis=1)
        left = sorted(set(grid.columns) - set(complete.columns))
        ranked = bootstrap(complete).sort_values("rank", kind="stable")
        found[f"scenario {scenario}, data sets: {len(complete)}"] = ranked
        if left:
            text += f"Not ranked in {scenario}, as some set has no figure: {', '.join(left)}.\n\n"
    figures.ranks(found, folder / "ranks.svg", OURS)
    text += f"![ranks]({folder.name}/ranks.svg)\n\n"
    text += (
        "By RMSE or log-loss, mean over settings within a set, then over sets; 95% intervals are a "
        "bootstrap over sets, and say little where sets are few.\n"
    )
    for title, ranked in found.items():
        shown = ranked.reset_index(names="method")
        text += f"\n{title}\n\n" + table(shown[["method", "rank", "95%"]], 3)
    return text


def enumeration(cells: pd.DataFrame) -> str:
    """How far from sums over all completions."""
    if "error against enumeration" not in cells:
        return "Not run.\n"
    here = cells.dropna(subset="error against enumeration")
    here = here.assign(of=here["RMSE"].isna().map({True: "probabilities", False: "numbers"}))
    found = here.groupby(["of", "model", "way"], sort=False)["error against enumeration"]
    shown = found.agg(["count", "median", "max"]).reset_index()
    return (
        "Greatest difference from the sum over all completions, for the rows that have few of "
        "them (at most 10 rows of a setting), in standard deviations of the predictions. XGBoost "
        "adds its trees up in 32 bits; probabilities of boosted trees, and of linear models of "
        "three classes (wine), have no exact form and are sampled, 1,000 draws at most. Monte "
        "Carlo had the time of the expectation.\n\n"
        + table(shown.rename(columns={"count": "settings"}), 2)
    )


def interval_tables(frame: pd.DataFrame, folder: Path) -> str:
    here = frame[frame["metric"].isin(["CRPS", "coverage", "width"])]
    if not len(here):
        return "Not run.\n"
    by = frame[frame["metric"].str.contains("@")].copy()
    parts = by["metric"].str.split("@", expand=True)
    by["what"], by["holes"] = parts[0], parts[1].astype(int)
    grid = by.pivot_table(
        index=["set", "method", "setting", "seed", "holes"], columns="what", values="value"
    ).reset_index()
    for what in ("coverage", "width"):
        grid[what] *= grid["rows"]
    pooled = grid.groupby(["set", "method", "holes"])[["coverage", "width", "rows"]].sum()
    for what in ("coverage", "width"):
        pooled[what] /= pooled["rows"]
    pooled = pooled.reset_index()
    text = ""
    for what in ("coverage", "width"):
        figures.by_holes(pooled[pooled["rows"] >= 20], what, folder / f"{what}.svg")
        text += f"![{what}]({folder.name}/{what}.svg)\n\n"
    text += (
        "All scenarios together, by the number of holes in a row (at least 20 rows), 90% "
        "intervals. A circuit's own intervals know nothing of the holes to come. Those of expected "
        "predictions are calibrated, and those of the others are quantiles of the residuals, on "
        "rows that were held out, with holes like those of the test rows; both for each number of "
        "holes, from the rows that have about as many.\n\n"
    )
    return text + table(wide(here).drop(columns=[LAST], errors="ignore"))
