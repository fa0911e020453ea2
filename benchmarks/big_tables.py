"""Print what the stages of fit take on large simulated tables, in seconds.

    python -m benchmarks.big_tables                        200,000 x 20 and 200 x 5,000
    python -m benchmarks.big_tables --sizes 1338x6 400x21  tables of other sizes
    python -m benchmarks.big_tables --models regressor     one of the estimators

Wall seconds mean something on an idle machine only: the load is printed beside them. A fit of a
small table comes first, so that no compilation is measured.
"""

from __future__ import annotations

import argparse
import os
import resource

from sklearn.ensemble import HistGradientBoostingRegressor

from expecta import CircuitClassifier, CircuitRegressor, ExpectedPredictor
from expecta.common.progress import record_stages

from .simulated_tables import simulate

MODELS = ("regressor", "classifier", "predictor")


def fit(model: str, size: tuple[int, int], seed: int = 0):
    """Fit one estimator to a simulated table; returns it and the seconds of each stage."""
    X, y, label = simulate(*size, seed)
    with record_stages() as seconds:
        if model == "regressor":
            return CircuitRegressor().fit(X, y), seconds
        if model == "classifier":
            return CircuitClassifier().fit(X, label), seconds
    numbers = X.select_dtypes("number")
    booster = HistGradientBoostingRegressor(max_iter=50, random_state=0).fit(numbers, y)
    with record_stages() as seconds:
        return ExpectedPredictor(booster).fit(numbers), seconds


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("benchmarks.big_tables", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--sizes", nargs="+", default=["200000x20", "200x5000"], metavar="NxM")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    given = parser.parse_args(words)
    for model in given.models:
        fit(model, (150, 8))
        for size in given.sizes:
            n_rows, n_columns = map(int, size.split("x"))
            fitted, seconds = fit(model, (n_rows, n_columns))
            wall, cpu = (sum(times) for times in zip(*seconds.values(), strict=True))
            print(f"{model} {n_rows:,} x {n_columns:,}: {wall:.1f} s, {cpu:.1f} s of CPU")
            for name, stage in seconds.items():
                print(f"  {name:12} {stage.wall:7.1f} s {stage.cpu:7.1f} s of CPU")
            for note in getattr(fitted, "subsampled_", ()):
                print(f"  {note}")
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
            print(f"  peak memory so far {peak:,} MB, load {load:.1f}", flush=True)


if __name__ == "__main__":
    main()
