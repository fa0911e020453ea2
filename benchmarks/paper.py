"""The paper's regression with missing bits, on its authors' splits, with circuits learned here.

    python benchmarks/paper.py [insurance abalone delta-ailerons elevators] [repeats=10]

In every test row so many of the bits are hidden, uniformly, anew for every repeat; the figure
is the RMSE of the expected prediction, its mean over the repeats. `theirs` is what the authors
published, each with masks of its own; `paired` is their circuits under our masks, where they
published these. Circuits learn from the training rows, and everything about them is chosen on
the validation rows. `mean` and `median` put the test set's in place of a hidden bit, `mpe` the
most probable completion, all under our circuits. Outputs are checked before they are printed,
and written to benchmarks/results/paper.csv. Needs the data in EXPECTA_DATA, by default
../shared/data.
"""

from __future__ import annotations

import csv
import os
import sys
import time
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
SEEDS = (0, 1, 2)  # of random vtrees to choose from


def load(name):
    """Return the three parts, and by percentage: bits hidden, the authors' mean and std."""
    data = SimpleNamespace(name=name, published={})
    with np.load(DATA / "splits" / f"{name}.npz") as file:
        for part in ("train", "valid", "test"):
            x, y = file[f"x_{part}"].astype(np.int8), file[f"y_{part}"].astype(np.float64)
            setattr(data, part, (x, y))
    with (DATA / "reference" / "paper_figures.csv").open() as file:
        for line in csv.DictReader(file):
            if (line["dataset"], line["method"]) == (name, "expected"):
                figures = int(line["bits_missing"]), float(line["mean"]), float(line["std"])
                data.published[int(line["percent"])] = figures
    return data


# -- learning -------------------------------------------------------------------------


def densities(n_bits):
    """Distributions to choose from: what differs is the vtree."""
    yield "Chow-Liu", PSDD()
    yield "bottom-up", PSDD(start="independent")
    for seed in SEEDS:
        vtree = Vtree.random(n_bits, seed=seed)
        yield f"random {seed}", PSDD(start="independent", vtree=vtree)


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
    for label, density in densities(x.shape[1]):
        began = time.perf_counter()
        p = density.fit(data.train[0], x).circuit
        middle = time.perf_counter()
        g, how = regression(data, p.vtree)
        pair = Pair(p, g)
        seconds = f"{middle - began:.0f} + {time.perf_counter() - middle:.0f} s"
        masks = (hide(x, bits, percent) for percent, (bits, _, _) in data.published.items())
        errors = [rmse(pair.expectation(rows), y) for rows in masks]
        print(
            f"  {label}: log-likelihood {p.log_prob(x).mean():.2f}, {how}, {seconds}; "
            f"valid RMSE {errors[0]:.5g} complete, {np.mean(errors):.5g} over all percentages",
            flush=True,
        )
        if np.mean(errors) < best:
            best, chosen = np.mean(errors), (pair, f"{label}, {how}")
    return chosen


# -- asking ---------------------------------------------------------------------------


def hide(x, bits, *seed):
    """Hide so many bits of every row, uniformly."""
    order = np.argsort(np.random.default_rng(seed).random(x.shape), axis=1)
    return np.where(order < bits, -1, x).astype(np.int8)


def rmse(predicted, y):
    assert np.all(np.isfinite(predicted))
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


def methods(data, pair):
    """What to predict rows with hidden bits by."""
    mean = data.test[0].mean(axis=0)
    median = np.median(data.test[0], axis=0).astype(np.int8)
    # a circuit at a fraction of a bit is its expectation with bits independent
    apart = Pair(independent(pair.g.vtree, np.stack([1 - mean, mean], axis=1)), pair.g)
    found = {
        "ours": pair.expectation,
        "mean": apart.expectation,
        "median": lambda rows: pair.g(np.where(rows < 0, median, rows)),
        "mpe": lambda rows: pair.g(pair.p.mpe(rows).x),
    }
    folder = DATA / "circuits" / data.name
    if folder.exists():
        vtree = Vtree.read(folder / f"{data.name}.vtree")
        p = ProbabilisticCircuit.read(folder / f"{data.name}.psdd", vtree)
        g = RegressionCircuit.read(folder / f"{data.name}.glc", vtree)
        found["paired"] = Pair(p, g).expectation
    return found


def check(data, pair):
    """Expectations against sums over all completions, and against draws."""
    x = data.test[0]
    p, g, n = pair.p, pair.g, x.shape[1]
    rng = np.random.default_rng(0)
    for row in x[:5]:
        row = row.copy()
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
    asked = methods(data, pair)
    for percent, (bits, published, spread) in data.published.items():
        # nothing is drawn where no bit is hidden, or every one
        times = repeats if 0 < bits < x.shape[1] else 1
        masks = [hide(x, bits, percent, repeat) for repeat in range(times)]
        errors = {key: [rmse(ask(rows), y) for rows in masks] for key, ask in asked.items()}
        if "paired" in errors and times == 1:  # read and asked as the authors did
            assert np.isclose(errors["paired"][0], published)
        noise = np.hypot(np.std(errors["ours"]) / times**0.5, spread / 10**0.5)
        yield {
            "set": data.name,
            "percent": percent,
            "ours": np.mean(errors["ours"]),
            "std": np.std(errors["ours"]),
            "theirs": published,
            "ratio": np.mean(errors["ours"]) / published,
            "noise": noise / published,  # standard error of the ratio, from both's masks
            **{
                key: np.mean(errors.get(key, np.nan)) for key in ("paired", "mean", "median", "mpe")
            },
            "repeats": times,
            "how": how,
        }


def show(lines):
    print("\n| % | ours | theirs | ratio | paired | mean | median | mpe |" + "\n|" + " --- |" * 8)
    for line in lines:
        rest = " | ".join(f"{line[key]:.5g}" for key in ("paired", "mean", "median", "mpe"))
        print(
            f"| {line['percent']} | {line['ours']:.5g} ± {line['std']:.2g} | {line['theirs']:.5g} "
            f"| {line['ratio']:.4f} ± {line['noise']:.4f} | {rest} |"
        )


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
    every = []
    for name in names:
        began = time.perf_counter()
        print(f"== {name}", flush=True)
        data = load(name)
        pair, how = learn(data)
        check(data, pair)
        lines = list(measure(data, pair, how, repeats))
        print(f"chosen: {how}")
        print(f"complete rows: {lines[0]['ours']:.5g}, theirs {lines[0]['theirs']:.5g}")
        show(lines)
        write(lines)
        every += lines
        print(f"{time.perf_counter() - began:.0f} s\n", flush=True)
    behind = [f"{one['set']} {one['percent']}%" for one in every if one["ratio"] > 1]
    print(
        f"no worse than theirs at {len(every) - len(behind)} of {len(every)} points; "
        f"behind at {', '.join(behind) or 'none'}"
    )


if __name__ == "__main__":
    options = [a for a in sys.argv[1:] if a.startswith("repeats=")]
    named = [a for a in sys.argv[1:] if a not in options]
    if not set(named) <= set(NAMES):
        sys.exit(f"data sets are {', '.join(NAMES)}")
    if not (DATA / "splits").exists():
        sys.exit(f"skipped: no data in {DATA}; set EXPECTA_DATA")
    main(named or NAMES, int((options or ["repeats=10"])[-1].removeprefix("repeats=")))
