"""New parameters for the authors' circuits, against the parameters that they have.

    python benchmarks/refit.py [insurance abalone mnist ...]

The structure is theirs. Parameters are fitted to the training rows, shrunk to zero or to those
that they have (images: the latter alone, as each takes minutes); the penalty is the one of least
mean loss on the validation rows, and the test rows are looked at once, at the end.
Sets without a circuit are skipped. Needs the data in EXPECTA_DATA, by default ../shared/data.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from evaluation.data import DATA
from expecta import RegressionCircuit, Vtree, fit_parameters

SETS = ("insurance", "abalone", "delta-ailerons", "elevators", "mnist", "fmnist")
PENALTIES = (0.1, 1.0, 10.0, 100.0)  # the defaults
IMAGES = (30.0, 300.0, 3000.0)
PARTS = ("train", "valid", "test")


def figure(g, X, y):
    """Accuracy of the largest output, or mean squared error."""
    if g.link == "logistic":
        return np.mean(np.argmax(g(X), axis=1) == y)
    return np.mean((g(X) - y) ** 2)


def refit(name):
    folder = DATA / "circuits" / name
    if not folder.is_dir():
        print(f"| {name} | skipped: no circuit in {folder.name} |")
        return
    theirs = RegressionCircuit.read(folder / f"{name}.glc", Vtree.read(folder / f"{name}.vtree"))
    with np.load(DATA / "splits" / f"{name}.npz") as file:
        rows = {part: (file[f"x_{part}"], file[f"y_{part}"]) for part in PARTS}
    images = theirs.link == "logistic"
    lines = [("theirs", theirs, " | ")]
    for towards in ("given",) if images else ("zero", "given"):
        began = time.perf_counter()
        new = fit_parameters(
            theirs,
            *rows["train"],
            valid=rows["valid"],
            penalties=IMAGES if images else PENALTIES,
            towards=towards,
        )
        seconds = time.perf_counter() - began
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        lines.append((f"new, towards {towards}", new, f"{seconds:.1f} | {memory:.1f}"))
    for label, g, cost in lines:
        figures = " | ".join(f"{figure(g, *rows[part]):.8g}" for part in PARTS)
        print(f"| {name} | {label} | {figures} | {cost} |", flush=True)


if __name__ == "__main__":
    if not (DATA / "splits").exists():
        print(f"skipped: no data in {DATA}; set EXPECTA_DATA")
        sys.exit()
    print("| set | parameters | train | valid | test | seconds | GB at most |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in sys.argv[1:] or SETS:
        refit(name)
