"""Part B: tables with missing values, against what else can be done about them.

Settings are SCENARIO/MISSING: "i" trains on complete rows, "ii" has missing values of the same kind
in training and test rows, "iii" trains with 10% of the cells missing at random and tests where
being missing depends on the value. A table with missing values of its own is taken as it is
("real"). "groups", "uncertainty" and "density" ask what else the same fit answers. All methods run
on one core.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from threadpoolctl import threadpool_limits

from expecta import config_context

from . import data
from .cells import Cells, Key
from .data import AbsentError, Task
from .group_errors import SOURCES, group_errors
from .methods import MODELS, RETRAINED, TARGET, WAYS, Setting
from .metrics import LEVELS, classification, losses, rmse, uncertainty

FIRST_SEED = 10
SEEDS = ((1500, 5), (1 << 62, 2))  # up to so many rows of a table, so many seeds
SETTINGS = {  # training rows, test rows
    "i/none": ("none", "none"),
    "i/MCAR 20%": ("none", "MCAR 20%"),
    "i/MCAR 50%": ("none", "MCAR 50%"),
    "i/MAR 50%": ("none", "MAR 50%"),
    "groups": ("none", "none"),
    "density": ("none", "none"),
    "uncertainty/none": ("none", "none"),
    "uncertainty/MCAR 50%": ("none", "MCAR 50%"),
    "ii/MCAR 30%": ("MCAR 30%", "MCAR 30%"),
    "iii/MNAR 50%": ("MCAR 10%", "MNAR 50%"),
    "real": ("none", "none"),
}
AS_IT_IS = ("real", "groups", "density")  # of a table with missing values of its own
QUICK = {"sets": ("insurance", "wine"), "rows": (400, 100, 1000)}  # and two models


@lru_cache(maxsize=1)
def task(name: str, seed: int, rows: tuple[int, int, int]) -> Task:
    return data.task(name, seed, rows)


@lru_cache(maxsize=1)  # what methods share is made once, and forgotten with the setting
def setting(
    name: str, seed: int, holes: tuple[str, str], rows: tuple[int, int, int], quick: bool
) -> Setting:
    return Setting(task(name, seed, rows), *holes, seed, quick)


def measure(which: tuple, scenario: str, method: str) -> dict[str, float]:
    """The figures of one cell."""
    with threadpool_limits(1), config_context(threads=1):
        one = setting(*which)
        if scenario == "groups":
            make = partial(group_errors, one.circuit(), one.task, one.seed)
            return one.piece("groups", make=make)[method]
        if scenario == "density":
            return density_facts(one)
        if scenario.startswith("uncertainty"):
            edges = np.unique(np.quantile(one.task.y, np.arange(1, 10) / 10))
            return uncertainty(quantiles(one, method), one.task.y_test, edges)
        return _predicted(one, method)


def _predicted(one: Setting, method: str) -> dict[str, float]:
    told, y = one.predict(method), one.task.y_test
    regression = one.task.kind == "regression"
    figures = {"RMSE": rmse(told, y)} if regression else classification(told, y)
    name, _, way = method.partition(" + ")
    if way not in ("", "expected"):  # row by row, so that chance can be told from a difference
        ours = losses(one.predict(f"{name} + expected"), y)
        more = losses(told, y) - ours
        unit = ours.mean() * (2 if regression else 1)  # a share of the RMSE or of the log-loss
        figures["more than expected"] = more.mean() / unit
        figures["its error"] = more.std() / len(y) ** 0.5 / unit
    return figures


def quantiles(one: Setting, method: str) -> np.ndarray:
    """Quantiles of the target at LEVELS, of the circuit or by conformalised LightGBM."""
    if method == "circuit":
        return one.circuit().predict_quantiles(one.test, LEVELS)
    try:
        from ..interval_strata import QuantileRegression, Rows
    except ImportError:
        raise AbsentError("no lightgbm") from None
    rng = np.random.default_rng(one.seed)
    rows = Rows(one.task.X, one.task.y)
    used = one.piece("fit", "quantiles", make=lambda: QuantileRegression(rows, rng))
    return used.quantiles(one.test, float(one.gone.mean()), rng)


def density_facts(one: Setting) -> dict[str, float]:
    """What kind of table it is, and how the density agrees with its held-out rows."""
    X, check = one.task.X, one.density().check(one.task.rest)
    categories = sum(X[name].dtype.kind not in "iuf" for name in X)
    facts = {"rows": len(X), "columns": X.shape[1], "categories": categories / X.shape[1]}
    facts["missing"] = float(X.isna().to_numpy().mean())
    told = check.likelihood
    for name, gain, error in zip(told.names[1:], told.gain[1:], told.error[1:], strict=True):
        facts |= {f"nats above {name}": float(gain), f"error above {name}": float(error)}
    for name, part in (("pairs", check.pairs), ("groups", check.groups)):
        facts[f"{name} compared"] = len(part.beyond)
        facts[f"{name} beyond chance"] = int(part.beyond.sum())
        facts[f"{name} large"] = int((part.beyond & part.large).sum())
    return facts


def methods(name: str, scenario: str) -> list[str]:
    """All that have an answer; the target tells nothing of training rows that are complete."""
    if scenario == "groups":
        return list(SOURCES)
    if scenario == "density":
        return ["density"]
    if scenario.startswith("uncertainty"):
        return ["circuit", "conformal"] if data.is_regression(name) else []
    if scenario == "i/none":
        return ["circuit", *(f"{one} + expected" for one in MODELS)]
    ways = [*WAYS, RETRAINED if scenario.startswith("i/") else TARGET]
    pairs = [f"{one} + {way}" for one in MODELS for way in ways]
    return ["circuit", *(pair for pair in pairs if pair != "linear + native")]


def block(key: Key) -> int:
    """What comes first: two models as trained, then with missing values, circuits, other models."""
    model = key.method.split(" + ")[0]
    if model in MODELS:
        return 3 if model in MODELS[2:] else int(not key.setting.startswith("i/"))
    return 0 if key.setting == "density" else 2


def work(cells: Cells, quick: bool, only: list[str], seeds: int | None = None):
    """Yield every cell and how to compute it: a block of all tables before the next block,

    and all blocks before a seed is added.
    """
    rows = QUICK["rows"] if quick else data.MAX_ROWS
    groups = only or (QUICK["sets"] if quick else ["all"])
    found: list[tuple[int, int, Key, Callable[[], dict[str, float]]]] = []
    for name in dict.fromkeys(name for group in groups for name in data.names(group)):
        real = data.is_incomplete(name)
        for k in range(1 if quick else seeds or seeds_of(name)):
            for scenario, holes in SETTINGS.items():
                if (scenario not in AS_IT_IS) if real else scenario == "real":
                    continue
                which = (name, FIRST_SEED + k, holes, rows, quick)
                for method in methods(name, scenario):
                    key = Key("B", name, method, scenario, FIRST_SEED + k)
                    if not (quick and block(key) == 3):
                        found.append(
                            (k, block(key), key, partial(measure, which, scenario, method))
                        )
    yield from (one[2:] for one in sorted(found, key=lambda one: one[:2]))


def seeds_of(name: str) -> int:
    """More for small tables."""
    sizes = {"diabetes": 442, "breast cancer": 569, "wine": 178, "affairs": 6366, "election": 944}
    sizes |= {"insurance": 1338, "abalone": 4177, "delta-ailerons": 7129, "elevators": 16599}
    n = sizes[name] if name in sizes else int(data.listed()[name]["rows"])
    return next(count for most, count in SEEDS if n <= most)
