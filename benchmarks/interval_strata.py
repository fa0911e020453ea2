"""Print how often 90% intervals hold in strata that people look at, their widths and their CRPS.

    python -m benchmarks.interval_strata                      all tables, three seeds
    python -m benchmarks.interval_strata --tables insurance   one of them

Strata are the deciles of the prediction and of the width of the interval, and each number of
unknown columns; all seeds together, and only strata of 300 rows or more. The standard error of a
stratum's share ("chance") counts its rows and those that intervals were calibrated on, by how
its share differs between seeds; "beyond" are the strata that are more than two of them outside.
Of whole numbers an interval can hold some shares only: "claimed" is what intervals would hold if
their distribution were right, by deciles of the prediction.

Two thirds of a table are learned from. Cells of the others are unknown at random, none or three in
ten. Beside the circuit stands conformalised quantile regression with LightGBM: a model for each
level, learned from three quarters of the same rows, and each level moved by what the last quarter,
with as many unknown cells as the rows asked about, says that it is off. CRPS is twice the mean
pinball loss over 19 levels, in units of that of the target's own quantiles.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor

from expecta import CircuitRegressor
from expecta.datasets.data_files import folder

LEVELS = np.round(np.arange(0.05, 0.96, 0.05), 2)
ENDS = [0, len(LEVELS) - 1]  # of an interval of 90%
UNKNOWN = (0.0, 0.3)  # shares of cells
BY = ("prediction", "width", "unknown")
LIMITS = (0.86, 0.94)  # that the share of a stratum is to lie between
MIN_ROWS = 300  # of a stratum
MAX_TABLE_ROWS = 6000


class Rows(NamedTuple):
    """Rows and their targets."""

    X: pd.DataFrame
    y: np.ndarray


def houses(rng: np.random.Generator) -> Rows:
    """Prices that are skewed: the noise is a share of the price, more in some places."""
    n = 6000
    grade = np.clip(np.round(rng.normal(7.5, 1.2, n)), 3, 13)
    size = np.exp(7.0 + 0.22 * (grade - 7.5) + 0.3 * rng.normal(size=n))
    zip_code = rng.choice(40, n, p=rng.dirichlet(np.full(40, 1.5)))
    place = rng.normal(0.0, 0.35, 40)[zip_code]
    age = rng.gamma(2.0, 20.0, n).round()
    view = rng.random(n) < 0.03
    log = 12.0 + 0.5 * np.log(size / 1500) + 0.12 * (grade - 7.5) + place - 0.002 * age + 0.5 * view
    y = np.exp(log + (0.12 + 0.1 * (zip_code % 3 == 0)) * rng.normal(size=n))
    table = {"grade": grade, "size": size.round(), "zip": zip_code.astype(str), "age": age}
    return Rows(pd.DataFrame({**table, "view": np.where(view, "yes", "no")}), y.round())


def simulated(noise: str, rng: np.random.Generator) -> Rows:
    """Return four numbers, two of them dependent, and noise of some kind."""
    X = rng.normal(size=(4000, 4))
    X[:, 1] = 0.8 * X[:, 0] + 0.6 * X[:, 1]
    mean, z = X[:, 0] + X[:, 1] * (X[:, 2] > 0), rng.normal(size=len(X))
    y = {
        "normal": mean + z,
        "heteroscedastic": mean + np.exp(X[:, 2]) * z,
        "skewed": mean + 2.0 * rng.exponential(size=len(X)) ** 2,
        "multiplicative": np.exp(0.6 * mean + 0.4 * z),
    }[noise]
    return Rows(pd.DataFrame(X, columns=list("abcd")), y)


def real(name: str) -> Rows:
    """Return a table of the data folder."""
    table = pd.read_csv(Path(folder() or "", "tables", f"{name}.csv"))
    table = table.dropna(axis=1, how="all")
    target = table.columns[-1]
    return Rows(table.drop(columns=target), table[target].to_numpy(float))


SIMULATED = ("normal", "heteroscedastic", "skewed", "multiplicative")
REAL = ("insurance", "abalone", "delta-ailerons", "elevators")
TABLES = ("houses", *SIMULATED, *REAL)


def load(name: str, rng: np.random.Generator) -> Rows:
    if name == "houses":
        return houses(rng)
    return simulated(name, rng) if name in SIMULATED else real(name)


def masked(X: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    return X.mask(rng.random(X.shape) < share)


class QuantileRegression:
    """LightGBM, a model for each level; NaN are its own to deal with."""

    def __init__(self, rows: Rows, rng: np.random.Generator) -> None:
        self._kinds = {
            name: pd.CategoricalDtype(sorted(set(column)))
            for name, column in rows.X.items()
            if not pd.api.types.is_numeric_dtype(column)
        }
        order = rng.permutation(len(rows.y))
        held, kept = np.split(order, [len(order) // 4])
        X = self._frame(rows.X)
        self._models = [
            LGBMRegressor(
                objective="quantile",
                alpha=level,
                n_estimators=150,
                learning_rate=0.07,
                num_leaves=15,
                verbose=-1,
                n_jobs=1,
            ).fit(X.iloc[kept], rows.y[kept])
            for level in LEVELS
        ]
        self._held = Rows(rows.X.iloc[held], rows.y[held])

    def _frame(self, X: pd.DataFrame) -> pd.DataFrame:
        return X.astype(self._kinds)

    def _raw(self, X: pd.DataFrame) -> np.ndarray:
        frame = self._frame(X)
        return np.stack([model.predict(frame) for model in self._models], axis=1)

    def quantiles(self, X: pd.DataFrame, share: float, rng: np.random.Generator) -> np.ndarray:
        off = self._held.y[:, None] - self._raw(masked(self._held.X, share, rng))
        n = len(off)
        at = LEVELS * (n + 1)
        rank = np.where(LEVELS < 0.5, np.floor(at), np.ceil(at)).astype(int)
        moved = np.sort(off, axis=0)[np.clip(rank, 1, n) - 1, np.arange(len(LEVELS))]
        return np.sort(self._raw(X) + moved, axis=1)


class Figures(NamedTuple):
    """What is kept of each test row of a method."""

    inside: np.ndarray
    claimed: np.ndarray  # probability of the interval by its own distribution
    width: np.ndarray
    loss: np.ndarray  # twice the mean pinball loss, in units of that of the target's quantiles
    prediction: np.ndarray
    unknown: np.ndarray

    def strata(self) -> Iterator[tuple[str, int, np.ndarray]]:
        """Yield the strata, and which rows are in each."""
        for name, by in zip(BY, (self.prediction, self.width), strict=False):
            order = np.argsort(by + 0.0, kind="stable")
            for number, part in enumerate(np.array_split(order, 10)):
                yield name, number, part
        for number in np.unique(self.unknown).tolist():
            yield BY[-1], number, np.flatnonzero(self.unknown == number)


class Stratum(NamedTuple):
    """Share of a stratum's rows that are inside, what was claimed, and the share's variance."""

    by: str
    share: float
    claimed: float
    variance: float


def strata(parts: list[Figures]) -> list[Stratum]:
    """Return the strata of all seeds that have enough rows together."""
    rows: dict[tuple[str, int], list[tuple[np.ndarray, np.ndarray]]] = {}
    for part in parts:
        for name, number, which in part.strata():
            pair = part.inside[which], part.claimed[which]
            rows.setdefault((name, number), []).append(pair)
    found = []
    for (name, _), pairs in rows.items():
        inside, claimed = (np.concatenate(one) for one in zip(*pairs, strict=True))
        n, share, k = len(inside), inside.mean(), len(pairs)
        if n < MIN_ROWS:
            continue
        variance = share * (1 - share) / n
        if k > 1:
            off = np.array([one.sum() - share * len(one) for one, _ in pairs])
            variance = off @ off / n**2 * k / (k - 1)
        found.append(Stratum(name, float(share), float(claimed.mean()), float(variance)))
    return found


def pinball(quantiles: np.ndarray, y: np.ndarray) -> np.ndarray:
    gap = y[:, None] - quantiles
    return 2.0 * np.mean(np.maximum(LEVELS * gap, (LEVELS - 1) * gap), axis=1)


def figures(
    test: Rows,
    quantiles: np.ndarray,
    ends: np.ndarray,
    claimed: np.ndarray,
    prediction: np.ndarray,
    unit: float,
) -> Figures:
    low, high = ends.T
    inside = (low <= test.y) & (test.y <= high)
    loss = pinball(quantiles, test.y) / unit
    unknown = test.X.isna().sum(axis=1).to_numpy()
    return Figures(inside, claimed, high - low, loss, prediction, unknown)


def claimed_share(model: CircuitRegressor, X: pd.DataFrame, ends: np.ndarray) -> np.ndarray:
    """Return the probability of each interval by the model's own distribution."""
    both = np.stack([np.nextafter(ends[:, 0], -np.inf), ends[:, 1]], axis=1)
    return np.diff(model.predict_distribution(X).cdf(both), axis=1)[:, 0]


def run(table: str, seeds: int, methods: list[str]) -> dict[tuple[str, float], list[Figures]]:
    """Return the figures of each seed, by method and share of unknown cells."""
    collected: dict[tuple[str, float], list[Figures]] = {}
    for seed in range(seeds):
        rng = np.random.default_rng([seed, TABLES.index(table)])
        rows = load(table, rng)
        order = rng.permutation(len(rows.y))[:MAX_TABLE_ROWS]
        new, old = np.split(order, [len(order) // 3])
        training = Rows(rows.X.iloc[old].reset_index(drop=True), rows.y[old])
        test = Rows(rows.X.iloc[new].reset_index(drop=True), rows.y[new])
        own = np.tile(np.quantile(training.y, LEVELS), (len(test.y), 1))
        unit = float(pinball(own, test.y).mean())
        hidden = {share: masked(test.X, share, rng) for share in UNKNOWN}
        models: dict[str, Any] = {}
        if "circuit" in methods:
            start = time.process_time()
            models["circuit"] = CircuitRegressor(random_state=seed).fit(*training)
            print(f"# {table} {seed}: fit {time.process_time() - start:.1f} s of CPU", flush=True)
        if "lightgbm" in methods:
            models["lightgbm"] = QuantileRegression(training, rng)
        for (name, model), share in ((pair, share) for pair in models.items() for share in UNKNOWN):
            X = hidden[share]
            if name == "circuit":
                quantiles, prediction = model.predict_quantiles(X, LEVELS), model.predict(X)
                ends = model.predict_interval(X, 0.9)
                claimed = claimed_share(model, X, ends)
            else:
                quantiles = model.quantiles(X, share, rng)
                prediction, ends = quantiles[:, len(LEVELS) // 2], quantiles[:, ENDS]
                claimed = np.full(len(test.y), 0.9)
            part = figures(Rows(X, test.y), quantiles, ends, claimed, prediction, unit)
            collected.setdefault((name, share), []).append(part)
    return collected


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("benchmarks.interval_strata", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--methods", nargs="+", default=["circuit", "lightgbm"])
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args(words)
    warnings.simplefilter("ignore")
    heads = ("all", *(f"by {name}" for name in BY), "claimed", "chance", "out of 86-94", "beyond")
    heads += ("width", "CRPS")
    print(f"{'table':15} {'method':9} {'unknown':>7}", *(f"{head:>13}" for head in heads))
    for table in given.tables:
        for (method, share), parts in run(table, given.seeds, given.methods).items():
            line = f"{table:15} {method:9} {share:7.0%}"
            print(line, *(f"{cell:>13}" for cell in summary(parts)), flush=True)


def summary(parts: list[Figures]) -> list[str]:
    """Return what is printed of all seeds."""
    every, found = Figures(*map(np.concatenate, zip(*parts, strict=True))), strata(parts)
    ranges = [between([one.share for one in found if one.by == name]) for name in BY]
    claimed = between([one.claimed for one in found if one.by == BY[0]])
    chance = float(np.sqrt(np.mean([one.variance for one in found]))) if found else np.nan
    beside = np.array([max(LIMITS[0] - one.share, one.share - LIMITS[1]) for one in found])
    return [
        f"{every.inside.mean():.1%}",
        *ranges,
        claimed,
        f"{chance:.1%}",
        f"{np.count_nonzero(beside > 0)} of {len(found)}",
        f"{np.count_nonzero(beside > 2.0 * chance)}",
        f"{every.width.mean():.4g}",
        f"{every.loss.mean():.4f}",
    ]


def between(shares: list[float]) -> str:
    return f"{min(shares):.1%}-{max(shares):.1%}" if shares else ""


if __name__ == "__main__":
    main()
