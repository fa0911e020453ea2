"""The data sets, and what the paper's authors published about them."""

from __future__ import annotations

import csv
import os
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import (
    fetch_openml,
    load_breast_cancer,
    load_diabetes,
    load_wine,
)
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
    """A table to learn and to test on; ``kind`` is "regression" or "classification"."""

    name: str
    kind: str
    X: pd.DataFrame
    y: np.ndarray
    test: pd.DataFrame
    y_test: np.ndarray
    learned: dict[str, dict[Any, Any]] = field(default_factory=lambda: defaultdict(dict))
    """What was learned from rows with these holes, for all tests of it."""


FROM_SKLEARN = {
    "diabetes": ("regression", load_diabetes),
    "breast cancer": ("classification", load_breast_cancer),
    "wine": ("classification", load_wine),
}
FROM_STATSMODELS = {"affairs": ("fair", "affairs"), "election": ("anes96", "vote")}  # name, target
FROM_OPENML = {  # name here: kind, name there, version
    "adult": ("classification", "adult", 2),
    "credit-g": ("classification", "credit-g", 1),
    "cpu_act": ("regression", "cpu_act", 1),
}
TABLES = (*TARGETS, *FROM_SKLEARN, *FROM_STATSMODELS, *FROM_OPENML)
AT_MOST = (4000, 500)  # training and test rows


def task(name: str, seed: int, at_most: tuple[int, int] = AT_MOST) -> Task:
    """A table, its rows dealt by the seed: 70% to learn from, the rest to test on."""
    kind, X, y = _whole(name)
    known = X.notna().all(axis=1).to_numpy()  # holes are made here, where the truth is known
    X, y = X[known], y[known]
    classes = y if kind == "classification" else None
    X, test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=classes)
    n, m = at_most
    X, test = X.iloc[:n].reset_index(drop=True), test.iloc[:m].reset_index(drop=True)
    return Task(name, kind, X, y[:n], test, y_test[:m])


def _whole(name: str) -> tuple[str, pd.DataFrame, np.ndarray]:
    if name in TARGETS:
        table = pd.read_csv(path("tables", f"{name}.csv"))
        return "regression", table, table.pop(TARGETS[name]).to_numpy(float)
    if name in FROM_SKLEARN:
        kind, read = FROM_SKLEARN[name]
        X, y = read(return_X_y=True, as_frame=True)
        return kind, X.astype(float), y.to_numpy(float if kind == "regression" else int)
    if name in FROM_STATSMODELS:
        return _statsmodels(name)
    return _openml(name)


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


@lru_cache(maxsize=1)
def _fetched(name: str, version: int) -> Any:
    """A table of OpenML, or why there is none: it is asked for once."""
    try:
        return fetch_openml(name, version=version, as_frame=True, n_retries=1)
    except (OSError, ValueError) as error:
        return error


def _openml(name: str) -> tuple[str, pd.DataFrame, np.ndarray]:
    """From the data folder if it has the table (target last), else from OpenML."""
    kind, theirs, version = FROM_OPENML[name]
    here = DATA / "tables" / f"{name}.csv"
    if here.exists():
        table = pd.read_csv(here)
        target = table.pop(table.columns[-1])
    else:
        bunch = _fetched(theirs, version)
        if isinstance(bunch, Exception):
            raise AbsentError(f"neither in the data folder nor on OpenML ({bunch})")
        table, target = bunch.data, bunch.target
    table = pd.DataFrame(
        {
            column: table[column].astype(float)
            if pd.api.types.is_numeric_dtype(table[column])
            else table[column].astype(object)
            for column in table
        }
    )
    if kind == "regression":
        return kind, table, target.to_numpy(float)
    return kind, table, pd.factorize(target, sort=True)[0]
