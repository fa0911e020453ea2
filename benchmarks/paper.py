"""The paper's regression with missing bits, on its authors' splits, with circuits learned here.

    python benchmarks/paper.py [insurance abalone delta-ailerons elevators] [repeats=10]

So many bits of every test row are hidden, uniformly, anew for every repeat; figures are means
over the repeats of the RMSE of `expected`, the exact expected prediction, and of predictions
with the test set's `mean` or `median` in place of a hidden bit, or the most probable completion
(`mpe`). In brackets is what the authors published, by circuits and masks of their own; `paired`
is their circuits under our masks, where they published these. Circuits learn from the training
rows and are chosen on the validation rows. Outputs are checked before they are printed, and
written to benchmarks/results/paper.csv. Needs the data in EXPECTA_DATA, by default
../shared/data.
"""

from __future__ import annotations

import csv
import os
import sys
import time
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from threadpoolctl import threadpool_limits

from expecta import PSDD, Pair, ProbabilisticCircuit, RegressionCircuit, Vtree, independent
from expecta.learn.regression import Curve, grow

HERE = Path(__file__).parent
DATA = Path(os.environ.get("EXPECTA_DATA", HERE.parent.parent / "shared" / "data"))
RESULTS = HERE / "results" / "paper.csv"
NAMES = ("insurance", "abalone", "delta-ailerons", "elevators")
METHODS = ("expected", "mean", "median", "mpe")
SEEDS = (0, 1, 2)  # of random vtrees to choose from
PUBLISHED_REPEATS = 10


def load(name):
    """Read the three parts, and the authors' curves: by percentage, then by method."""
    data = SimpleNamespace(name=name, bits={}, mean=defaultdict(dict), std=defaultdict(dict))
    with np.load(DATA / "splits" / f"{name}.npz") as file:
        for part in ("train", "valid", "test"):
            x, y = file[f"x_{part}"].astype(np.int8), file[f"y_{part}"].astype(np.float64)
            setattr(data, part, (x, y))
    with (DATA / "reference" / "paper_figures.csv").open() as file:
        for line in csv.DictReader(file):
            if line["dataset"] == name:
                percent, method = int(line["percent"]), line["method"]
                data.bits[percent] = int(line["bits_missing"])
                data.mean[percent][method] = float(line["mean"])
                data.std[percent][method] = float(line["std"])
    return data


def densities(n_bits):
    """Distributions to choose from: what differs is the vtree."""
    found = {"Chow-Liu": PSDD(), "bottom-up": PSDD(start="independent")}
    trees = {f"random {seed}": Vtree.random(n_bits, seed=seed) for seed in SEEDS}
    return found | {key: PSDD(start="independent", vtree=tree) for key, tree in trees.items()}


def regression(data, vtree):
    """Learn g from the training rows; penalty and splits are those best on the validation rows."""
    (x, y), (x_valid, y_valid) = data.train, data.valid
    middle, unit = y.mean(), y.std()
    with threadpool_limits(1):
        grown = grow(
            np.concatenate([x, x_valid]).astype(np.int32),
            (np.concatenate([y, y_valid])[:, None] - middle) / unit,
            vtree=vtree,
            curves=[Curve.of(np.bincount(bit, minlength=2).astype(np.float64)) for bit in x.T],
            fold=np.repeat([-1, 0], [len(y), len(y_valid)]),
            keep_folds=True,
        )
    g = grown.folds[0]  # has not seen the validation rows
    how = f"penalty {grown.penalty:g}, {grown.n_splits} splits"
    return RegressionCircuit(g.structure, g.weight * unit, g.bias * unit + middle), how


def learn(data):
    """Learn a pair on each vtree; returns the one of least mean RMSE on the validation rows."""
    x, y = data.valid
    best = np.inf
    for label, density in densities(x.shape[1]).items():
        began = time.perf_counter()
        p = density.fit(data.train[0], x).circuit
        g, how = regression(data, p.vtree)
        pair, seconds = Pair(p, g), time.perf_counter() - began
        masked = (hide(x, bits, percent) for percent, bits in data.bits.items())
        errors = [rmse(pair.expectation(rows), y) for rows in masked]
        print(
            f"  {label}: {seconds:.0f} s, log-likelihood {p.log_prob(x).mean():.2f}, {how}; "
            f"valid RMSE {errors[0]:.5g} complete, {np.mean(errors):.5g} over all percentages",
            flush=True,
        )
        if np.mean(errors) < best:
            best, chosen = np.mean(errors), (pair, f"{label} vtree, {how}")
    return chosen


def hide(x, bits, *seed):
    """Hide so many bits of every row, uniformly."""
    order = np.argsort(np.random.default_rng(seed).random(x.shape), axis=1)
    return np.where(order < bits, -1, x).astype(np.int8)


def rmse(predicted, y):
    assert np.all(np.isfinite(predicted))
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


def ways(pair, x):
    """The methods to predict rows with hidden bits by, for a test set."""
    p, g, mean, median = pair.p, pair.g, x.mean(axis=0), np.median(x, axis=0).astype(np.int8)
    # a circuit at a fraction of a bit is its expectation with bits independent
    apart = Pair(independent(g.vtree, np.stack([1 - mean, mean], axis=1)), g)
    return {
        "expected": pair.expectation,
        "mean": apart.expectation,
        "median": lambda rows: g(np.where(rows < 0, median, rows)),
        "mpe": lambda rows: g(p.mpe(rows).x),
    }


def authors(data):
    """The authors' pair, if it is there; it must give what they published where none is drawn."""
    folder = DATA / "circuits" / data.name
    if not folder.exists():
        return None
    vtree = Vtree.read(folder / f"{data.name}.vtree")
    p = ProbabilisticCircuit.read(folder / f"{data.name}.psdd", vtree)
    pair = Pair(p, RegressionCircuit.read(folder / f"{data.name}.glc", vtree))
    for percent in (0, 100):
        rows = hide(data.test[0], data.bits[percent])
        for method, way in ways(pair, data.test[0]).items():
            error = rmse(way(rows), data.test[1])
            assert np.isclose(error, data.mean[percent][method], rtol=1e-6), (percent, method)
    return pair


def check(pair, x):
    """Compare expectations with sums over all completions, and with means of draws."""
    p, g, n = pair.p, pair.g, x.shape[1]
    rng = np.random.default_rng(0)
    for row in x[:5].copy():
        bits = rng.choice(n, 10, replace=False)
        row[bits] = -1
        every = np.repeat(row[None], 2**10, axis=0)
        every[:, bits] = np.arange(2**10)[:, None] >> np.arange(10) & 1
        share = np.exp(p.log_prob(every) - p.log_prob(row[None]))
        assert np.isclose(share.sum(), 1.0)
        assert np.isclose(pair.expectation(row[None])[0], share @ g(every), rtol=1e-9)
    rows = hide(x[:20], n // 2, 0)
    drawn = g(p.sample(2000, given=rows, seed=0).reshape(-1, n)).reshape(20, 2000)
    error = drawn.std(axis=1) / 2000**0.5 + 1e-9 * np.abs(drawn).max()
    assert np.all(np.abs(drawn.mean(axis=1) - pair.expectation(rows)) < 5 * error)


def measure(data, pair, how, repeats):
    """Yield a line of results for each percentage."""
    x, y = data.test
    asked, rival = ways(pair, x), authors(data)
    if rival is not None:
        asked["paired"] = rival.expectation
    for percent, bits in data.bits.items():
        n = repeats if 0 < bits < x.shape[1] else 1  # else nothing is drawn
        masked = [hide(x, bits, percent, repeat) for repeat in range(n)]
        errors = {key: [rmse(way(rows), y) for rows in masked] for key, way in asked.items()}
        mean, std = np.mean(errors["expected"]), np.std(errors["expected"])
        published, spread = data.mean[percent]["expected"], data.std[percent]["expected"]
        line = {"set": data.name, "percent": percent, "repeats": n, "std": std}
        line["ratio"] = mean / published
        line["noise"] = np.hypot(std / n**0.5, spread / PUBLISHED_REPEATS**0.5) / published
        line["paired"] = np.mean(errors.get("paired", np.nan))
        for key in METHODS:
            line[key], line[f"published {key}"] = np.mean(errors[key]), data.mean[percent][key]
        yield {**line, "how": how}


def show(lines):
    first = lines[0]
    print(f"complete rows: {first['expected']:.5g} ({first['published expected']:.5g})\n")
    print("| % | expected | ratio | paired | mean | median | mpe |\n|" + " --- |" * 7)
    for one in lines:
        cells = [f"{one[key]:.5g} ({one[f'published {key}']:.5g})" for key in METHODS]
        cells[0] = f"{one['expected']:.5g} ± {one['std']:.2g} ({one['published expected']:.5g})"
        cells[1:1] = [f"{one['ratio']:.4f} ± {one['noise']:.4f}", f"{one['paired']:.5g}"]
        print(f"| {one['percent']} | " + " | ".join(cells) + " |")


def write(lines):
    """Write results, and keep those of the sets that were not measured."""
    kept = []
    if RESULTS.exists():
        with RESULTS.open() as file:
            kept = [line for line in csv.DictReader(file) if line["set"] != lines[0]["set"]]
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        for line in kept + lines:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in line.items()})


def main(names, repeats):
    behind, total = [], 0
    for name in names:
        began = time.perf_counter()
        print(f"== {name}", flush=True)
        data = load(name)
        pair, how = learn(data)
        check(pair, data.test[0])
        lines = list(measure(data, pair, how, repeats))
        print(f"chosen: {how}; in all {time.perf_counter() - began:.0f} s")
        show(lines)
        write(lines)
        behind += [f"{name} {one['percent']}%" for one in lines if one["ratio"] > 1]
        total += len(lines)
    worse = ", ".join(behind) or "none"
    print(f"\nno worse than published at {total - len(behind)} of {total} points; worse: {worse}")


if __name__ == "__main__":
    options = [a for a in sys.argv[1:] if a.startswith("repeats=")]
    named = [a for a in sys.argv[1:] if a not in options]
    if not set(named) <= set(NAMES):
        sys.exit(f"data sets are {', '.join(NAMES)}")
    if not (DATA / "splits").exists():
        print(f"skipped: no data in {DATA}; set EXPECTA_DATA")
        sys.exit()
    main(named or NAMES, int((options or ["repeats=10"])[-1].removeprefix("repeats=")))
