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
import sys
import time

import numpy as np

from evaluation.circuits import candidates, check, ways
from evaluation.data import DATA, RESULTS, AbsentError, authors_pair, bits
from evaluation.holes import hide_bits as hide
from evaluation.metrics import rmse

FILE = RESULTS / "paper.csv"
NAMES = ("insurance", "abalone", "delta-ailerons", "elevators")
METHODS = ("expected", "mean", "median", "mpe")
PUBLISHED_REPEATS = 10


def learn(data):
    """Learn a pair on each vtree; returns the one of least mean RMSE on the validation rows."""
    found = []
    for one in candidates(data):
        print(
            f"  {one.how}: {sum(one.seconds):.0f} s, log-likelihood "
            f"{one.pair.p.log_prob(data.valid[0]).mean():.2f}; valid RMSE {one.complete:.5g} "
            f"complete, {one.error:.5g} over all percentages",
            flush=True,
        )
        found.append(one)
    best = min(found, key=lambda one: one.error)
    return best.pair, best.how


def authors(data):
    """The authors' pair, if it is there; it must give what they published where none is drawn."""
    try:
        pair = authors_pair(data.name)
    except AbsentError:
        return None
    for percent in (0, 100):
        rows = hide(data.test[0], data.bits[percent])
        for method, way in ways(pair, data.test[0]).items():
            error = rmse(way(rows), data.test[1])
            assert np.isclose(error, data.mean[percent][method], rtol=1e-6), (percent, method)
    return pair


def measure(data, pair, how, repeats):
    """Yield a line of results for each percentage."""
    x, y = data.test
    asked, rival = ways(pair, x), authors(data)
    if rival is not None:
        asked["paired"] = rival.expectation
    for percent, count in data.bits.items():
        n = repeats if 0 < count < x.shape[1] else 1  # else nothing is drawn
        masked = [hide(x, count, percent, repeat) for repeat in range(n)]
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
    if FILE.exists():
        with FILE.open() as file:
            kept = [line for line in csv.DictReader(file) if line["set"] != lines[0]["set"]]
    RESULTS.mkdir(exist_ok=True)
    with FILE.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        for line in kept + lines:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in line.items()})


def main(names, repeats):
    behind, total = [], 0
    for name in names:
        began = time.perf_counter()
        print(f"== {name}", flush=True)
        data = bits(name)
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
