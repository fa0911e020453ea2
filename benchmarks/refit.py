"""New parameters for the authors' circuits, against the parameters that they have.

    python benchmarks/refit.py [insurance abalone mnist ...]

The structure is theirs. Parameters are fitted to the training rows, the penalty is the one of
least mean loss on the validation rows, and the test rows are looked at once, at the end.
Sets without a circuit are skipped. Needs the data in EXPECTA_DATA, by default ../shared/data.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

from expecta import RegressionCircuit, Vtree, fit_parameters

HERE = Path(__file__).parent
os.environ.setdefault("EXPECTA_DATA", str(HERE.parent.parent / "shared" / "data"))
DATA = Path(os.environ["EXPECTA_DATA"])

SETS = ("insurance", "abalone", "delta-ailerons", "elevators", "mnist", "fmnist")
PENALTIES = (0.1, 1.0, 10.0, 100.0)  # the defaults
IMAGES = (1.0, 10.0, 100.0)  # each takes minutes
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
    penalties = IMAGES if theirs.link == "logistic" else PENALTIES
    began = time.perf_counter()
    ours = fit_parameters(theirs, *rows["train"], valid=rows["valid"], penalties=penalties)
    seconds = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    for label, g in (("theirs", theirs), ("new", ours)):
        figures = " | ".join(f"{figure(g, *rows[part]):.8g}" for part in PARTS)
        cost = f"{seconds:.1f} | {memory:.1f}" if g is ours else " | "
        print(f"| {name} | {label} | {figures} | {cost} |", flush=True)


if __name__ == "__main__":
    if not (DATA / "splits").exists():
        sys.exit(f"skipped: no data in {DATA}; set EXPECTA_DATA")
    print("| set | parameters | train | valid | test | seconds | GB at most |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in sys.argv[1:] or SETS:
        refit(name)
