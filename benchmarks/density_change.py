"""Compare expected predictions under the default density with those of another copy of the package.

    python -m benchmarks.density_change --before ../other                     the even lines
    python -m benchmarks.density_change --before ../other --tables wine nine  these tables

For each table and seed both copies learn a density from the same training rows, and predict the
same test rows with half of the cells hidden at random, by the same linear model and boosting
("i/MCAR 50%" of the evaluation's part B). Printed is the loss of this copy, more or less (−) than
that of the other, with the standard error of the paired difference over test rows; over seeds the
mean, and the larger of the error over rows and that over seeds. A line over all tables closes. Rows
of each copy are kept in build/density_change.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
HOLES = "MCAR 50%"
MODELS = ("linear", "boosting")


def compute_losses(table: str, seed: int, out: Path) -> None:
    """The losses of each test row, by model, with the expecta of this process."""
    from threadpoolctl import threadpool_limits

    from benchmarks.evaluation import data
    from benchmarks.evaluation.methods import Setting
    from benchmarks.evaluation.metrics import losses
    from expecta import config_context

    with threadpool_limits(1), config_context(threads=1):
        one = Setting(data.task(table, seed), "none", HOLES, seed, quick=False)
        rows = {m: losses(one.predict(f"{m} + expected"), one.task.y_test) for m in MODELS}
    rows["regression"] = np.array(one.task.kind == "regression")
    np.savez(out, **rows)


def rows_of(copy: str, root: Path, table: str, seed: int) -> dict[str, np.ndarray] | None:
    """The losses of one copy, from its file or from a new process; None where it failed."""
    file = ROOT / "build" / "density_change" / copy / f"{table}-{seed}.npz"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        path = os.pathsep.join([str(root.resolve() / "src"), str(ROOT)])
        code = "import sys; from pathlib import Path; from benchmarks.density_change import *; "
        code += "compute_losses(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))"
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, table, str(seed), str(file)],
            env=dict(os.environ, PYTHONPATH=path),
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            print(f"{table}, seed {seed}, {copy}: {done.stderr.strip().splitlines()[-1]}")
            return None
    with np.load(file) as kept:
        return dict(kept)


def compare(table: str, seeds: range, before: Path) -> dict[str, float]:
    """Print a table's line; return the change of each model's loss."""
    changes: dict[str, list[tuple[float, float]]] = {name: [] for name in MODELS}
    for seed in seeds:
        pair = [rows_of(*one, table, seed) for one in (("now", ROOT), ("before", before))]
        if None in pair:
            return {}
        now, old = pair
        for name in MODELS:
            unit = old[name].mean() * (2 if now["regression"] else 1)  # of the RMSE or log-loss
            more = (now[name] - old[name]) / unit
            changes[name].append((more.mean(), more.std() / len(more) ** 0.5))
    means, line = {}, [f"{table:24}"]
    for name, told in changes.items():
        mean, rows_error = np.array(told).T
        seeds_error = mean.std(ddof=1) / len(mean) ** 0.5 if len(mean) > 1 else 0.0
        error = max(np.sqrt(np.mean(rows_error**2) / len(mean)), seeds_error)
        means[name] = float(mean.mean())
        worse = "  worse" if means[name] > max(0.01, 2 * error) else ""
        line.append(f"{name} {100 * means[name]:+6.1f} ± {100 * error:4.1f}%{worse:7}")
    print(*line, flush=True)
    return means


def main(words: list[str] | None = None) -> None:
    from benchmarks.evaluation import data

    parser = argparse.ArgumentParser("benchmarks.density_change", description=__doc__)
    parser.add_argument("--before", type=Path, required=True, help="a checkout to compare with")
    parser.add_argument("--tables", nargs="*", default=["even"], help="names, odd, even or nine")
    parser.add_argument("--seeds", type=int, default=1, help="from 10 on")
    options = parser.parse_args(words)
    tables = [name for group in options.tables for name in data.names(group)]
    changes = [compare(name, range(10, 10 + options.seeds), options.before) for name in tables]
    for name in MODELS:
        told = np.array([one[name] for one in changes if one])
        error = told.std(ddof=1) / len(told) ** 0.5 if len(told) > 1 else np.nan
        median = 100 * np.median(told)
        mean = f"{100 * told.mean():+.1f} ± {100 * error:.1f}%"
        print(f"{len(told)} tables, {name}: {mean}, median {median:+.1f}%")


if __name__ == "__main__":
    main()
