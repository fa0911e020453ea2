"""The figures of part B that claims are made of: ranks, paired losses, groups, uncertainty."""

from __future__ import annotations

import numpy as np
import pandas as pd

from . import data
from .methods import TARGET, WAYS
from .metrics import bootstrap, median_share

HALVES = {"even": "even lines", "odd": "odd lines", "nine": "the nine"}
TRAINED, MISSING = "models as they were trained", "missing values in training"
SIGNIFICANT = 2.0  # standard errors
SPLIT_AT = {"rows": 1000, "categories": 0.5, "nats above independent columns": 1.0}
SPLITS = {
    "rows": ("under 1,000 training rows", "1,000 training rows or more"),
    "categories": ("more numbers than categories", "as many categories as numbers or more"),
    "nats above independent columns": (
        "weak dependence (under one nat a row)",
        "stronger dependence",
    ),
}
KEYS = ["half", "set", "setting", "seed", "model"]


def arranged(frame: pd.DataFrame) -> pd.DataFrame:
    """A line for each prediction cell and seed, with its loss (RMSE or log-loss), model and way."""
    keys = ["set", "method", "setting", "seed"]
    cells = frame.pivot_table(index=keys, columns="metric", values="value", sort=False)
    names = ["RMSE", "log-loss", "more than expected", "its error"]
    cells = cells.reindex(columns=dict.fromkeys([*cells.columns, *names])).reset_index()
    cells["loss"] = cells["RMSE"].fillna(cells["log-loss"])
    cells = cells.dropna(subset="loss")
    cells[["model", "way"]] = [
        ["circuit", "circuit"] if one == "circuit" else one.split(" + ") for one in cells["method"]
    ]
    training = cells["setting"].str.match("i/").map({True: TRAINED, False: MISSING})
    halves = {name: data.half(name) for name in cells["set"].unique()}
    return cells.assign(training=training, half=cells["set"].map(halves))


def ranked_ways(cells: pd.DataFrame, training: str) -> pd.DataFrame:
    """Losses of the ways that are ranked: columns are ways, lines are table, seed, setting, model.

    Ways that fit the model anew to missing values as the test rows have them are not among them.
    """
    ways = [*WAYS, *([TARGET] if training == MISSING else [])]
    here = cells[(cells["training"] == training) & cells["way"].isin(ways)]
    grid = here.pivot_table(index=KEYS, columns="way", values="loss")
    if "expected" not in grid or grid.shape[1] == 1:
        return pd.DataFrame()
    known = grid.notna().sum(axis=1)  # a cell may be left to compute
    return grid[known == known.groupby("model").transform("max")]


def paired(cells: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """How much larger the loss of a way is than that of the expectation, row by row of the test.

    A share of the expectation's loss, with its standard error: settings and models of a table and a
    seed share test rows, so their errors are averaged, and only those of seeds fall with number.
    """
    here = cells[~cells["way"].isin(["circuit", "expected"])].dropna(subset="more than expected")
    groups = here.groupby([*by, "way"], sort=False)
    pairs = groups[["more than expected", "its error"]].mean().join(groups["seed"].nunique())
    pairs["its error"] /= np.sqrt(pairs["seed"])
    return pairs.rename(columns={"more than expected": "more", "its error": "error"}).reset_index()


def statistics(frame: pd.DataFrame) -> pd.DataFrame:
    """All figures of the pages: set is a part of the list, then method, setting, metric, value."""
    lines: list[tuple[str, str, str, str, float]] = []
    cells = arranged(frame)
    for half, here in cells.groupby("half"):
        for training in (TRAINED, MISSING):
            lines += _rank_lines(half, training, here)
        lines += _circuit_lines(half, here)
        lines += _probability_lines(half, here)
    rest = wide_by_seed(frame)
    checks = rest[rest["setting"] == "density"].groupby("set").mean(numeric_only=True)
    for name, value in SPLIT_AT.items():
        if name in checks:
            large = cells["set"].map(checks[name] >= value)
            for split, is_large in zip(SPLITS[name], (False, True), strict=True):
                for half, here in cells[large == is_large].groupby("half"):
                    lines += _rank_lines(half, TRAINED, here, f", {split}")
    for half, here in rest.groupby("half"):
        lines += _group_lines(half, here[here["setting"] == "groups"])
        lines += _uncertainty_lines(half, here[here["setting"].str.startswith("uncertainty")])
    return pd.DataFrame(lines, columns=["set", "method", "setting", "metric", "value"])


def wide_by_seed(frame: pd.DataFrame) -> pd.DataFrame:
    """Cells that are no predictions: a column for each metric."""
    here = frame[frame["setting"].str.match("groups|uncertainty|density")]
    keys = ["set", "method", "setting", "seed"]
    cells = here.pivot_table(index=keys, columns="metric", values="value", sort=False).reset_index()
    return cells.assign(half=[data.half(name) for name in cells["set"]])


def _rank_lines(half, training, cells, of=""):
    """Ranks, losses over that of the expectation, and tables won and lost; ``of`` names a part."""
    grid = ranked_ways(cells, training)
    if not len(grid):
        return
    cells = cells[cells["training"] == training]
    training += of
    by_table = grid.rank(axis=1).groupby("set").mean()
    ranks = bootstrap(by_table)
    ratios = np.log(grid.div(grid["expected"], axis=0)).groupby("set").mean()
    share = median_share(ratios)
    pairs = paired(cells, ["set"])
    yield half, "all", training, "tables", len(by_table)
    for way in ranks.index:
        for metric in ("middle", "low", "high"):
            yield half, way, training, metric, ranks.loc[way, metric]
            yield half, way, training, f"more, {metric}", share.loc[way, metric]
        here = pairs[pairs["way"] == way]
        far = here["more"] / here["error"]
        yield half, way, training, "wins", (far > SIGNIFICANT).sum()
        yield half, way, training, "ties", (far.abs() <= SIGNIFICANT).sum()
        yield half, way, training, "losses", (far < -SIGNIFICANT).sum()
    others = by_table.drop(columns="expected")
    second = others[others.mean().idxmin()]
    lead = bootstrap((second - by_table["expected"]).to_frame("lead")).loc["lead"]
    for metric in ("middle", "low", "high"):
        yield half, str(second.name), training, f"behind, {metric}", lead[metric]


def _circuit_lines(half, cells):
    """The loss of circuits as a share of that of other models, best ways among them."""
    grid = cells.pivot_table(index=["set", "setting", "seed"], columns="method", values="loss")
    for rival in [name for name in grid if name != "circuit"]:
        for setting, here in grid.groupby("setting"):
            if "circuit" not in here or rival not in here:
                continue
            ratio = np.log(here["circuit"] / here[rival]).groupby("set").mean().dropna()
            if len(ratio):
                share = median_share(ratio.to_frame("r"))
                for metric in ("middle", "low", "high"):
                    yield half, rival, f"circuit, {setting}", metric, share.loc["r", metric]
                yield half, rival, f"circuit, {setting}", "tables", len(ratio)


def _probability_lines(half, cells):
    here = cells[cells["log-loss"].notna()]
    for (method, setting), group in here.groupby(["method", "setting"]):
        for metric in ("log-loss", "Brier", "AUC", "calibration error"):
            by_table = group.groupby("set")[metric].mean().dropna()
            if len(by_table):
                yield half, method, f"probabilities, {setting}", metric, by_table.mean()
        tables = group["set"].nunique()
        yield half, method, f"probabilities, {setting}", "tables", tables


def _group_lines(half, cells):
    for source, here in cells[cells["groups"] > 0].groupby("method") if len(cells) else ():
        weight = here["groups"]
        yield half, source, "groups", "tables", here["set"].nunique()
        yield half, source, "groups", "groups", weight.sum()
        yield half, source, "groups", "median error", here["median error"].median()
        beyond = np.average(here["beyond three"], weights=weight)
        yield half, source, "groups", "beyond three", beyond
        told = here.dropna(subset="right signs") if "right signs" in here else here.iloc[:0]
        if len(told):
            right = np.average(told["right signs"], weights=told["signs"])
            yield half, source, "groups", "right signs", right
            yield half, source, "groups", "signs", told["signs"].sum()


def _uncertainty_lines(half, cells):
    for setting, here in cells.groupby("setting"):
        numbers = here.drop(columns=["half", "setting"])
        grid = numbers.pivot_table(index=["set", "seed"], columns="method")
        if "conformal" not in here["method"].values or "circuit" not in here["method"].values:
            continue
        grid = grid.dropna(subset=[("CRPS", "circuit"), ("CRPS", "conformal")])
        ratio = np.log(grid["CRPS", "circuit"] / grid["CRPS", "conformal"]).groupby("set").mean()
        share = median_share(ratio.to_frame("r"))
        for metric in ("middle", "low", "high"):
            yield half, "circuit", setting, f"CRPS, {metric}", share.loc["r", metric]
        yield half, "circuit", setting, "tables", len(ratio)
        yield half, "circuit", setting, "CRPS, better", (ratio < 0).sum()
        for metric in ("coverage", "below", "above", "least coverage of a decile", "log score"):
            for method in ("circuit", "conformal"):
                value = grid[metric, method].groupby("set").mean().mean()
                yield half, method, setting, metric, value
