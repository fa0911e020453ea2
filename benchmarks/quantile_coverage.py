"""Print which share of new rows lies below each predicted quantile.

    python -m benchmarks.quantile_coverage             six seeds
    python -m benchmarks.quantile_coverage --seeds 1   one, in about two minutes

For targets of several shapes, numbers of rows to calibrate on, and circuits and wrapped models:
the mean over seeds, over rows of which 0, 2 or all 4 columns are unknown. "worst" is the largest
difference between a share and its level at one of these three numbers. A discrete target is a whole
number, and so are its quantiles; a level between the shares below and not above them is met and
printed, else the nearer of the two. Of a circuit the rows are also what it learns from; a wrapped
model, linear or boosted trees, has learned from 1,000 others. Shares of one seed vary by
√(q (1 - q) / n), since n rows say where the quantiles are.
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from expecta import ChowLiu, CircuitRegressor, ExpectedPredictor

LEVELS = np.array([0.05, 0.1, 0.5, 0.9, 0.95])
ROWS = (150, 700, 2500)
LEARNED, NEW = 1000, 2000  # rows that a wrapped model learns from, and that shares are of
UNKNOWN = (0, 2, 4)  # of four columns
TARGETS = {
    "normal": lambda mean, X, rng: mean + rng.normal(size=len(mean)),
    "skewed": lambda mean, X, rng: mean + 2.0 * rng.exponential(size=len(mean)) ** 2,
    "heteroscedastic": lambda mean, X, rng: mean + np.exp(X[:, 2]) * rng.normal(size=len(mean)),
    "heavy-tailed": lambda mean, X, rng: mean + rng.standard_t(3, len(mean)),
    "discrete": lambda mean, X, rng: rng.poisson(np.exp(0.5 * mean)).astype(float),
}


def draw(target: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, 4))
    X[:, 1] = 0.8 * X[:, 0] + 0.6 * X[:, 1]
    mean = X[:, 0] + X[:, 1] * (X[:, 2] > 0)
    return X, TARGETS[target](mean, X, rng)


def circuit(target: str, n: int, rng: np.random.Generator, seed: int) -> CircuitRegressor:
    return CircuitRegressor(density=ChowLiu(), random_state=seed).fit(*draw(target, n, rng))


def wrapped(model: Any, target: str, n: int, rng: np.random.Generator) -> ExpectedPredictor:
    X, y = draw(target, LEARNED, rng)
    return ExpectedPredictor(model.fit(X, y), ChowLiu()).fit(X).calibrate(*draw(target, n, rng))


def linear(target: str, n: int, rng: np.random.Generator, seed: int) -> ExpectedPredictor:
    return wrapped(LinearRegression(), target, n, rng)


def booster(target: str, n: int, rng: np.random.Generator, seed: int) -> ExpectedPredictor:
    trees = HistGradientBoostingRegressor(max_iter=30, max_leaf_nodes=8, random_state=seed)
    return wrapped(trees, target, n, rng)


MODELS = {"circuit": circuit, "linear": linear, "booster": booster}


def shares(model: str, target: str, n: int, seed: int) -> np.ndarray:
    """Return the shares of rows below the quantiles.  # (numbers of unknown columns, levels)"""
    rng = np.random.default_rng([seed, n, list(TARGETS).index(target)])
    fitted = MODELS[model](target, n, rng, seed)
    X, y = draw(target, NEW, rng)
    order = np.argsort(rng.random(X.shape), axis=1)
    rows = [np.where(order < unknown, np.nan, X) for unknown in UNKNOWN]
    quantiles = np.array([fitted.predict_quantiles(H, LEVELS) for H in rows])
    if target != "discrete":
        return np.mean(y[:, None] <= quantiles, axis=1)
    below, not_above = y[:, None] < quantiles, y[:, None] <= quantiles
    return np.clip(LEVELS, np.mean(below, axis=1), np.mean(not_above, axis=1))


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("benchmarks.quantile_coverage", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seeds", type=int, default=6)
    seeds = parser.parse_args(words).seeds
    print(f"share of rows below each quantile, mean over {seeds} seed(s)")
    print(
        f"{'model':8} {'target':15} {'rows':>5}", *(f"{level:6.0%}" for level in LEVELS), " worst"
    )
    for model, n, target in product(MODELS, ROWS, TARGETS):
        share = np.mean([shares(model, target, n, seed) for seed in range(seeds)], axis=0)
        figures = [*share.mean(axis=0), np.abs(share - LEVELS).max()]
        line = f"{model:8} {target:15} {n:5}", *(f"{figure:6.1%}" for figure in figures)
        print(*line, flush=True)


if __name__ == "__main__":
    main()
