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
import sys
import time

import numpy as np

from evaluation.circuits import PENALTY, SPLITS, check_images, classifier
from evaluation.data import DATA, RESULTS, published
from expecta import using


def authors(name: str) -> dict[int, float]:
    lines = [line for line in published(name) if line["method"] == "taylor1"]
    return {int(line["percent"]): float(line["mean"]) for line in lines}


def run(name: str, splits: int, states: int, images: int, spectral: int) -> None:
    splits = splits or SPLITS[name]
    split = np.load(DATA / "splits" / f"{name}.npz")
    X = np.concatenate([split["x_train"], split["x_valid"]])
    y = np.concatenate([split["y_train"], split["y_valid"]])
    test, y_test = split["x_test"], split["y_test"]
    start = time.perf_counter()
    model = classifier(X, y, splits=splits, states=states)
    spent = time.perf_counter() - start
    print(f"\n{name}: learned in {spent:.0f} s, {model.n_splits_} splits, {model.circuit_}")
    print({size: round(loss, 4) for size, loss in model.validation_[PENALTY].items()})
    print(f"density {model.density_.learned_.score:.2f} nats held out, {states} states")
    complete = np.mean(model.predict(test) == y_test)
    print(f"test accuracy on complete images {complete:.2%}", flush=True)
    check_images(model.pair_, test)
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
