"""How well and how fast densities are learned, against published and measured rivals.

    python benchmarks/densities.py [tables] [sets] [speed] [holes] [chunks] [only=MODEL ...]

Models are chosen on the validation rows and reported on the test rows. `tables` and `sets`
append to benchmarks/results/densities.csv, one line per model, and skip what is there.
Needs the data in EXPECTA_DATA, by default ../shared/data.
"""

from __future__ import annotations

import csv
import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

from evaluation.data import DATA, RESULTS
from evaluation.part_c import SETS, TABLES, models, splits
from evaluation.part_c import learn as score
from expecta import ChowLiu, LatentTree
from expecta.learn.information import mutual_information
from expecta.learn.trees.expectation import Table, expected_counts, log_likelihoods
from expecta.learn.trees.layout import Layout
from expecta.learn.trees.start import prototype_start
from expecta.learn.trees.tree import Tree

FILE = RESULTS / "densities.csv"

ONLY = [a.removeprefix("only=") for a in sys.argv[1:] if a.startswith("only=")]


def done():
    if not FILE.exists():
        return {}
    with FILE.open() as file:
        return {(line["set"], line["model"]): line for line in csv.DictReader(file)}


def learn(names):
    RESULTS.mkdir(exist_ok=True)
    for name in names:
        for label, model in models(name):
            if ONLY and label not in ONLY:
                continue
            if (name, label) in done():
                continue
            found = score(name, model)
            line = {
                "set": name,
                "model": label,
                "valid": f"{found['valid']:.4f}",
                "test": f"{found['test']:.4f}",
                "parameters": found["parameters"],
                "seconds": f"{found['seconds']:.1f}",
                "how": model.learned_.how,
            }
            fresh = not FILE.exists()
            with FILE.open("a", newline="") as file:
                writer = csv.DictWriter(file, list(line))
                if fresh:
                    writer.writeheader()
                writer.writerow(line)
            print("  ".join(map(str, line.values())), flush=True)


def show(marks, headings):
    lines = done()
    labels = list(dict.fromkeys(label for name, label in lines if name in marks))
    print("\n| set | " + " | ".join(headings + tuple(labels)) + " |")
    print("| --- " * (1 + len(headings) + len(labels)) + "|")
    for name, figures in marks.items():
        ours = [lines.get((name, label), {}).get("test", "") for label in labels]
        print("| " + " | ".join([name, *map(str, figures), *ours]) + " |")


def tables():
    learn(TABLES)
    show(TABLES, ("mark", "authors"))


def sets():
    learn(SETS)
    show(SETS, ("Strudel", "4 hidden trees"))
    lines = done()
    both = [name for name in SETS if (name, "latent tree") in lines]
    ours = {name: float(lines[name, "latent tree"]["test"]) for name in both}
    behind = [name for name, score in ours.items() if score < SETS[name][0]]
    near = [name for name, score in ours.items() if score >= SETS[name][1] * 1.01]
    ahead = [name for name, score in ours.items() if score > SETS[name][1]]
    print(f"\nlatent tree: behind Strudel on {behind or 'none'}")
    print(f"within 1% of the mixture on {len(near)} of {len(ours)}, ahead of it on {len(ahead)}")


def speed():
    """Time to the best held-out score, and an epoch against NumPy's matrix products."""
    train, valid, test = splits("elevators")
    LatentTree(states=2, max_epochs=1).fit(train[:600])  # compiles
    for _ in range(3):
        began = time.perf_counter()
        model = LatentTree(states=16).fit(train, valid)
        print(
            f"elevators, K = 16: {time.perf_counter() - began:.2f} s to valid "
            f"{model.score(valid):.3f}, test {model.score(test):.3f}"
        )
    for name, states in (("elevators", 16), ("elevators", 32), ("mnist", 16), ("mnist", 32)):
        epoch(name, states)


def epoch(name, states):
    train, _, _ = splits(name)
    cards = np.full(train.shape[1], 2, np.int32)
    tree = Tree.greatest(mutual_information(train, cards))
    layout = Layout(tree, np.full(len(cards), states, np.int32), cards)
    weight = np.ones(len(train))
    even = [np.full(2, 0.5)] * len(cards)
    shared = Table(tree, cards, train, weight)
    alone = Table(tree, cards, train, weight, limit=2)
    theta = prototype_start(layout, even, shared, np.random.default_rng(0))
    first, second = expected_counts(layout, theta, shared), expected_counts(layout, theta, alone)
    assert np.allclose(first.counts, second.counts, rtol=1e-8, atol=1e-8)
    likelihoods = log_likelihoods(layout, theta, shared)
    assert np.allclose(likelihoods, log_likelihoods(layout, theta, alone))
    rng = np.random.default_rng(0)
    rows, square = rng.random((len(train), states)), rng.random((states, states))
    into, small = np.empty_like(rows), np.empty_like(square)

    def products():
        for _ in range(len(cards)):
            np.matmul(rows, square, out=into)
            np.matmul(rows.T, into, out=small)
            np.matmul(rows, square, out=into)

    times = {}
    for label, call in {
        "shared": lambda: expected_counts(layout, theta, shared),
        "not shared": lambda: expected_counts(layout, theta, alone),
        "NumPy, all cores": products,
    }.items():
        times[label] = least(call)
    with threadpool_limits(1):
        times["NumPy, one core"] = least(products)
    numpy = times["NumPy, all cores"]
    print(
        f"{name}, K = {states}: an epoch {times['shared']:.3f} s, {times['shared'] / numpy:.2f} of "
        f"NumPy's time for the products ({numpy:.3f} s; one core "
        f"{times['NumPy, one core']:.3f}); without sharing {times['not shared'] / numpy:.2f}"
    )


def least(call, repeats=5):
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return min(found)


def holes():
    """Hide 30% of the training cells, three times; score complete test rows."""
    for name in list(TABLES)[:4]:
        train, valid, test = splits(name)
        for label, model in (("latent tree", LatentTree()), ("chow-liu", ChowLiu())):
            whole = model.fit(train, valid).score(test)
            drops = []
            for seed in range(3):
                hidden = np.random.default_rng(seed).random(train.shape) < 0.3
                score = model.fit(np.where(hidden, -1, train), valid).score(test)
                drops.append(f"{score:.3f} ({score / whole - 1:+.1%})")
            print(f"{name}, {label}: complete {whole:.3f}, 30% hidden {', '.join(drops)}")


def chunks():
    """Peak memory while chunks of rows come one after the other."""
    import resource

    rng = np.random.default_rng(0)
    model = LatentTree(states=16)
    for n in range(1, 61):
        hidden = rng.integers(8, size=(20_000, 1))
        model.partial_fit(((hidden + rng.integers(3, size=(20_000, 100))) % 8 > 3).astype(np.int8))
        if n in (2, 20, 60):
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"{n * 20_000:>9,} rows of 100 columns in chunks: peak {peak:.0f} MB")


if __name__ == "__main__":
    parts = {f.__name__: f for f in (tables, sets, speed, holes, chunks)}
    if not (DATA / "splits").exists():
        print(f"skipped: no data in {DATA}; set EXPECTA_DATA")
        sys.exit()
    for part in [a for a in sys.argv[1:] if a in parts] or parts:
        print(f"== {part}")
        parts[part]()
