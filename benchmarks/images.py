"""Classify binary images with missing pixels, against the authors' circuits.

    python benchmarks/images.py [mnist] [fmnist] [splits=N] [states=N] [images=N] [spectral=N]

A `CircuitClassifier` learns from the authors' training and validation images and a copy of each
that is shifted by a pixel, then classifies test images with 0 to 90% of their pixels missing,
by Taylor's formula of first order as the paper does, and some of them by the spectral method.
The density learns from the images as they are. The figures beside are the authors' own
(reference/paper_figures.csv). An image and its copy may be on either side of what the learner
holds out, so how far to grow is set here (splits=), not found there.
"""

from __future__ import annotations

import csv
import os
import sys
import time
from pathlib import Path

import numpy as np

from expecta import CircuitClassifier, LatentTree, using

DATA = Path(os.environ.get("EXPECTA_DATA", Path(__file__).parents[2] / "shared" / "data"))
RESULTS = Path(__file__).parent / "results"
PENALTY = 3.0  # of 1, 1.5, 3, 4 and 10, on mnist; see docs/estimators.md
SPLITS = {"mnist": 900, "fmnist": 350}
SIDE = 28


def authors(name: str) -> dict[int, float]:
    with (DATA / "reference" / "paper_figures.csv").open() as file:
        return {
            int(line["percent"]): float(line["mean"])
            for line in csv.DictReader(file)
            if line["dataset"] == name and line["method"] == "taylor1"
        }


def shifted(images: np.ndarray, seed: int = 0) -> np.ndarray:
    """Move each image by one pixel, up, down, left or right."""
    framed = np.pad(images.reshape(-1, SIDE, SIDE), ((0, 0), (1, 1), (1, 1)))
    moves = np.random.default_rng(seed).integers(0, 4, len(images))
    out = np.empty_like(images)
    for move, (down, right) in enumerate([(0, 1), (2, 1), (1, 0), (1, 2)]):
        these = moves == move
        moved = framed[these, down : down + SIDE, right : right + SIDE]
        out[these] = moved.reshape(-1, SIDE * SIDE)
    return out


def check(model: CircuitClassifier, rows: np.ndarray) -> None:
    """Compare a few expectations with enumeration: 10 pixels hidden."""
    rng = np.random.default_rng(1)
    for row in rows[:2]:
        hidden = rng.choice(784, 10, replace=False)
        every = np.repeat(row[None], 1024, axis=0).astype(np.int32)
        every[:, hidden] = (np.arange(1024)[:, None] >> np.arange(10)) & 1
        log_p = model.refined_.circuit.log_prob(every)
        weight = np.exp(log_p - log_p.max())
        sigma = 1 / (1 + np.exp(-model.circuit_(every)))
        obvious = weight @ sigma / weight.sum()
        masked = row.astype(np.int32)[None].copy()
        masked[0, hidden] = -1
        found = model.pair_.expected(masked, "logistic", tol=1e-9).value[0]
        assert np.allclose(found, obvious, rtol=0, atol=3e-9), np.abs(found - obvious).max()


def run(name: str, splits: int, states: int, images: int, spectral: int) -> None:
    splits = splits or SPLITS[name]
    split = np.load(DATA / "splits" / f"{name}.npz")
    X = np.concatenate([split["x_train"], split["x_valid"]])
    y = np.concatenate([split["y_train"], split["y_valid"]])
    test, y_test = split["x_test"], split["y_test"]
    start = time.perf_counter()
    model = CircuitClassifier(
        density=LatentTree(states=states, tree="balanced", random_state=0).fit(X),
        max_splits=splits,
        penalties=[PENALTY],
        tol=1e-6,
        random_state=0,
    ).fit(np.concatenate([X, shifted(X)]), np.concatenate([y, y]))
    spent = time.perf_counter() - start
    print(f"\n{name}: learned in {spent:.0f} s, {model.n_splits_} splits, {model.circuit_}")
    print({size: round(loss, 4) for size, loss in model.validation_[PENALTY].items()})
    print(f"density {model.density_.learned_.score:.2f} nats held out, {states} states")
    complete = np.mean(model.predict(test) == y_test)
    print(f"test accuracy on complete images {complete:.2%}", flush=True)
    check(model, test)
    lines = [
        {"dataset": name, "percent": 0, "taylor1": complete, "images": len(test), "seconds": spent}
    ]
    theirs = authors(name)
    rng = np.random.default_rng(0)
    print("missing  taylor1  authors  ms/image   spectral  taylor1 on the same  ms/image")
    for percent in range(10, 100, 10):
        some = rng.permutation(len(test))[:images]
        rows = test[some].astype(np.int32)
        hide = np.argsort(rng.random(rows.shape), axis=1) < round(percent * 7.84)
        rows[hide] = -1
        start = time.perf_counter()
        p = model.predict_proba(rows, method="taylor", order=1)
        taylor_time = 1000 * (time.perf_counter() - start) / images
        good = p.argmax(axis=1) == y_test[some]
        start = time.perf_counter()
        q = model.predict_proba(rows[:spectral])
        spectral_time = 1000 * (time.perf_counter() - start) / max(spectral, 1)
        exact = np.mean(q.argmax(axis=1) == y_test[some[:spectral]])
        print(
            f"{percent:6}%  {good.mean():7.2%}  {theirs[percent]:7.2%}  {taylor_time:8.1f}   "
            f"{exact:8.2%}  {good[:spectral].mean():19.2%}  {spectral_time:8.0f}"
            f"   greatest difference {np.abs(p[:spectral] - q).max():.3f}",
            flush=True,
        )
        line = {"dataset": name, "percent": percent, "taylor1": good.mean(), "images": images}
        line |= {"authors": theirs[percent], "spectral": exact, "spectral_images": spectral}
        lines.append(line | {"taylor1_same": good[:spectral].mean()})
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"{name}.csv").open("w", newline="") as file:
        names = list(dict.fromkeys(key for line in lines for key in line))
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    options = {"splits": 0, "states": 8, "images": 10000, "spectral": 50}
    sets = []
    for word in sys.argv[1:]:
        key, _, value = word.partition("=")
        if value:
            options[key] = int(value)
        else:
            sets.append(word)
    if not DATA.exists():
        print(f"skipped: no data at {DATA}; set EXPECTA_DATA")
        sys.exit()
    with using(progress=False):
        for name in sets or ["mnist", "fmnist"]:
            run(name, **options)
