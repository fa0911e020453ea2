"""How well and how fast densities are learned, against published and measured rivals.

    python benchmarks/densities.py [tables] [sets] [speed] [holes] [chunks] [only=MODEL ...]

Models are chosen on the validation rows and reported on the test rows. `tables` and `sets`
append to benchmarks/results/densities.csv, one line per model, and skip what is there.
Needs the data in EXPECTA_DATA, by default ../shared/data.
"""

from __future__ import annotations

import csv
import os
import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from expecta import PSDD, ChowLiu, Independent, LatentTree
from expecta.learn.information import mutual_information
from expecta.learn.trees.expectation import Table, expected_counts, log_likelihoods
from expecta.learn.trees.layout import Layout
from expecta.learn.trees.start import prototype_start
from expecta.learn.trees.tree import Tree

HERE = Path(__file__).parent
os.environ.setdefault("EXPECTA_DATA", str(HERE.parent.parent / "shared" / "data"))
DATA = Path(os.environ["EXPECTA_DATA"])
RESULTS = HERE / "results" / "densities.csv"

# Mean test log-likelihoods: the mark to reach, and the authors' own circuits.
TABLES = {
    "insurance": (-8.65, -10.70),
    "abalone": (-9.40, -9.63),
    "delta-ailerons": (-7.82, -9.60),
    "elevators": (-17.46, -27.35),
    "mnist": (-106.5, -132.7),
    "fmnist": (-148.0, -237.7),
}
# Published: Strudel (one circuit), and a mixture of four hidden Chow-Liu trees.
SETS = {
    "nltcs": (-6.06, -6.00),
    "msnbc": (-6.05, -6.06),
    "kdd": (-2.17, -2.14),
    "plants": (-13.56, -14.27),
    "baudio": (-42.29, -39.77),
    "jester": (-55.25, -52.38),
    "tretail": (-10.99, -10.86),
    "pumsb_star": (-25.67, -23.65),
    "kosarek": (-10.92, -10.60),
    "msweb": (-10.07, -9.91),
    "tmovie": (-59.57, -50.54),
    "cwebkb": (-159.9, -150.8),
    "cr52": (-92.0, -85.9),
    "c20ng": (-160.9, -153.6),
    "bbc": (-258.4, -249.0),
    "ad": (-16.4, -16.1),
}
IMAGES = ("mnist", "fmnist")
STATES = (8, 16, 32, 64)
ONLY = [a.removeprefix("only=") for a in sys.argv[1:] if a.startswith("only=")]


def splits(name):
    folder = "splits" if name in TABLES else "density"
    with np.load(DATA / folder / f"{name}.npz") as file:
        return [file[part].astype(np.int8) for part in ("x_train", "x_valid", "x_test")]


def models(name):
    yield "independent", Independent()
    yield "chow-liu", ChowLiu(pseudo_count=1.0)
    yield "latent tree", LatentTree(states=(16, 32) if name in IMAGES else STATES)
    if name not in IMAGES:
        yield "psdd", PSDD(max_seconds=540)
    if name in TABLES and name not in IMAGES:
        yield "psdd from independent", PSDD(start="independent", max_seconds=540)


def done():
    if not RESULTS.exists():
        return {}
    with RESULTS.open() as file:
        return {(line["set"], line["model"]): line for line in csv.DictReader(file)}


def learn(names):
    RESULTS.parent.mkdir(exist_ok=True)
    for name in names:
        train, valid, test = splits(name)
        for label, model in models(name):
            if ONLY and label not in ONLY:
                continue
            if (name, label) in done():
                continue
            began = time.perf_counter()
            model.fit(train, valid)
            seconds = time.perf_counter() - began
            check(model.circuit, test)
            line = {
                "set": name,
                "model": label,
                "valid": f"{model.score(valid):.4f}",
                "test": f"{model.score(test):.4f}",
                "parameters": model.circuit.structure.n_edges,
                "seconds": f"{seconds:.1f}",
                "how": model.learned_.how,
            }
            fresh = not RESULTS.exists()
            with RESULTS.open("a", newline="") as file:
                writer = csv.DictWriter(file, list(line))
                if fresh:
                    writer.writeheader()
                writer.writerow(line)
            print("  ".join(map(str, line.values())), flush=True)


def check(circuit, test):
    """Refuse a score of anything but a normalised distribution."""
    verdict = circuit.properties.normalised
    assert verdict.holds, verdict
    assert np.all(np.isfinite(circuit.log_prob(test)))


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
