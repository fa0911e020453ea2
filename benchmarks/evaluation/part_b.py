"""Part B: holes in cells of tables, against what else can be done about them.

Settings are SCENARIO/HOLES: "i" trains on complete rows and tests with holes, "ii" has the same
holes in both, "iii" trains with 10% of the cells hidden at random and tests with holes that
depend on what is seen (MAR) or hidden (MNAR). All methods run on one core.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
from threadpoolctl import threadpool_limits

from expecta import config_context

from . import data
from .cells import Cells, Key
from .data import Task
from .methods import MODELS, WAYS, Setting
from .metrics import classification, intervals, losses, rmse

SEEDS = (0, 1, 2)
SCENARIOS = {
    **{f"i/MCAR {rate}%": ("none", f"MCAR {rate}%") for rate in (10, 30, 50, 70, 90)},
    **{f"ii/{holes}": (holes, holes) for holes in ("MCAR 30%", "MAR 50%", "MNAR 50%")},
    **{f"iii/{holes}": ("MCAR 10%", holes) for holes in ("MAR 50%", "MNAR 50%")},
}
INTERVALS = ("i/MCAR 50%", "ii/MCAR 30%", "iii/MAR 50%")  # they take as long as all else
QUICK = {
    "sets": ("insurance", "wine"),
    "scenarios": ("i/MCAR 50%", "ii/MCAR 30%", "iii/MNAR 50%"),
    "models": ("boosting", "linear"),
    "rows": (400, 100),
}


@lru_cache(maxsize=1)
def task(name: str, seed: int, rows: tuple[int, int]) -> Task:
    return data.task(name, seed, rows)


@lru_cache(maxsize=1)  # what methods share is made once, and forgotten with the setting
def setting(name: str, seed: int, scenario: str, rows: tuple[int, int], quick: bool) -> Setting:
    return Setting(task(name, seed, rows), *SCENARIOS[scenario], seed, quick)


def measure(which: tuple, method: str) -> dict[str, float]:
    with threadpool_limits(1), config_context(threads=1):
        return _measure(which, method)


def _measure(which: tuple, method: str) -> dict[str, float]:
    one = setting(*which)
    told, found = one.predict(method)
    y = one.task.y_test
    if one.task.kind == "classification":
        found |= classification(told, y)
    else:
        found["RMSE"] = rmse(told, y)
        quantiles = one.quantiles(method, told) if which[2] in INTERVALS else None
        if quantiles is not None:
            found |= intervals(quantiles, y, np.count_nonzero(one.gone, axis=1))
    name, _, way = method.partition(" + ")
    if way not in ("", "expected"):  # row by row, so that chance can be told from a difference
        ours, _ = one.predict(f"{name} + expected")
        more = losses(told, y) - losses(ours, y)
        found |= {"more than expected": more.mean(), "its error": more.std() / len(y) ** 0.5}
    return found


def methods(scenario: str, quick: bool) -> list[str]:
    """All that has an answer; the target tells nothing of training rows that are complete."""
    models = QUICK["models"] if quick else MODELS
    pairs = [f"{one} + {way}" for one in models for way in WAYS]
    left = ["linear + native"]
    if SCENARIOS[scenario][0] == "none":
        left += [pair for pair in pairs if pair.endswith("target")]
    return ["circuit", *(pair for pair in pairs if pair not in left)]


def work(cells: Cells, quick: bool, only: list[str]):
    """Yield every cell and how to compute it; all sets once before any is repeated."""
    rows = QUICK["rows"] if quick else data.AT_MOST
    for seed in (0,) if quick else SEEDS:
        for name in QUICK["sets"] if quick and not only else data.TABLES:
            if only and name not in only:
                continue
            for scenario in QUICK["scenarios"] if quick else SCENARIOS:
                which = (name, seed, scenario, rows, quick)
                for method in methods(scenario, quick):
                    yield Key("B", name, method, scenario, seed), partial(measure, which, method)
