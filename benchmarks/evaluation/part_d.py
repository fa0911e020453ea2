"""Part D: how fast the engine is. A figure is kept only after its outputs were checked.

Settings are marks (the authors' tasks), first (a fresh process), mnist, rows, sizes, orders, and
those of `speeds`. Marks are CPU seconds of the code published with the paper for the same task, on
a 2-core machine of the same kind.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from functools import cache, partial
from pathlib import Path

import numpy as np

from expecta import Pair, Vtree, config_context, random_probabilistic, random_regression

from . import data, speeds
from .cells import Cells, Key
from .clock import measure, memory_peak
from .slow import expectation as slow_expectation

THEIRS = {  # CPU seconds
    ("insurance", "expectation"): 17.9,
    ("insurance", "second moment"): 28.6,
    ("abalone", "expectation"): 31.8,
    ("abalone", "second moment"): 42.3,
    ("insurance", "20% missing"): 109.0,
}
BYTES = {"expectation": 3 * 8 * 2, "second moment": 3 * 8 * 3, "20% missing": 48}  # for a join
ROWS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)
SIZES = ((2, 4), (4, 4), (8, 4), (16, 4), (32, 4), (16, 8), (16, 16), (16, 32))
FEW = ("expectation", "10 rows", "100 rows", "2 by 4 units", "4 by 4 units", "compare")  # quick
ORDERS = (1, 2, 3, 4, 5, 6, 8)


@cache
def read(name: str):
    """The authors' pair, their test rows, and the reference values."""
    split = np.load(data.path("splits", f"{name}.npz"))
    return data.authors_pair(name), split, np.load(data.path("reference", f"{name}.npz"))


def hide(x: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    """Hide a share of the cells."""
    return np.where(np.random.default_rng(seed).random(x.shape) < share, -1, x.astype(np.int8))


@cache
def bandwidth() -> float:
    """Bytes per second read plus written by a large copy on one core."""
    source = np.ones(16 * 1024 * 1024)
    target = np.empty_like(source)
    return 2 * source.nbytes / measure(lambda: np.copyto(target, source))["wall seconds"]


def check(found: np.ndarray, true: np.ndarray, what: str) -> float:
    """Refuse to go on with wrong outputs."""
    worst = float(np.max(np.abs(found - true) / np.maximum(np.abs(true), 1e-300)))
    if not worst < 1e-9:
        raise ValueError(f"{what}: outputs are off by {worst:.1e}, no figure is given")
    return worst


def mark(name: str, task: str) -> dict[str, float]:
    """The authors' own tasks: time, memory, and the ratio to their code."""
    pair, split, true = read(name)
    if task == "20% missing":
        X = hide(np.tile(split["x_valid"], (10, 1)), 0.2)
        some = np.arange(0, len(X), 623)
        slow = np.array([slow_expectation(pair.p, pair.g, X[i])[0] for i in some])
        worst = check(pair.expectation(X)[some], slow, f"{name}, {task}")
    else:
        X = np.where(true["missing"], -1, split["x_test"].astype(np.int8))
    if task == "second moment":
        worst = check(pair.moments(X, 2)[:, 2], true["second"], f"{name}, {task}")
        found = measure(lambda: pair.moments(X, 2)[:, 2])
    else:
        if task == "expectation":
            worst = check(pair.expectation(X), true["first"], f"{name}, {task}")
        found = measure(lambda: pair.expectation(X))
    joins = pair.plan.n_joins * len(X) / found["wall seconds"]
    theirs = THEIRS[name, task]
    return found | {
        "rows": len(X),
        "pairs per second": joins,
        "traffic over a copy on one core": joins * BYTES[task] / bandwidth(),
        "theirs CPU seconds": theirs,
        "ratio": theirs / found["CPU seconds"],
        "checked to": worst,
    }


FIRST = """
import time; start = time.perf_counter()
import numpy as np
from expecta import Pair, ProbabilisticCircuit, RegressionCircuit, Vtree
folder, name, rows = {folder!r}, {name!r}, np.load({rows!r})
vtree = Vtree.load(f"{{folder}}/{{name}}.vtree")
p = ProbabilisticCircuit.load(f"{{folder}}/{{name}}.psdd", vtree)
g = RegressionCircuit.load(f"{{folder}}/{{name}}.glc", vtree)
ready = time.perf_counter()
pair = Pair(p, g); pair.expectation(rows)
print(ready - start, time.perf_counter() - ready)
"""


def first(name: str) -> dict[str, float]:
    """The first call in a fresh process, machine code cached: what a service start costs."""
    _, split, true = read(name)
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.npy"
        x = split["x_test"][: len(true["missing"])].astype(np.int8)
        np.save(rows, np.where(true["missing"], -1, x))
        circuits = str(data.path("circuits", name))
        code = FIRST.format(folder=circuits, name=name, rows=str(rows))
        runs = [
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            for _ in range(4)
        ][1:]
    times = np.array([[float(t) for t in run.stdout.split()] for run in runs]).min(axis=0)
    return {"rows": len(x), "import and read": times[0], "compile and first call": times[1]}


def mnist(n: int) -> dict[str, float]:
    """Ten classes, half of the pixels missing."""
    pair, split, true = read("mnist")
    x = split["x_test"]
    some = np.where(true["missing"], -1, x[:100].astype(np.int8))
    worst = check(pair.expectation(some), true["first"], "mnist")
    X = hide(x[:n], 0.5)
    found, peak = measure(lambda: pair.expectation(X), 3), memory_peak()
    right = np.mean(pair.expectation(X).argmax(axis=1) == split["y_test"][:n])
    found["MB more at the peak"] = peak()
    return found | {"rows": n, "accuracy": float(right), "checked to": worst}


def rows(n: int) -> dict[str, float]:
    """Cost per row against the number of rows (abalone, half missing, one thread)."""
    pair, split, _ = read("abalone")
    whole = hide(np.tile(split["x_train"], (4, 1))[:10_000], 0.5)
    with config_context(threads=1):
        check(pair.expectation(whole[:n]), pair.expectation(whole)[:n], f"{n} rows")
        found = measure(lambda: pair.expectation(whole[:n]))
    return found | {"rows": n, "microseconds per row": 1e6 * found["CPU seconds"] / n}


def size(p_units: int, g_units: int) -> dict[str, float]:
    """Cost against the sum over vtree nodes of edges of p times edges of g (one thread)."""
    vtree = Vtree.balanced(60)
    p = random_probabilistic(vtree, [3] * 60, units=p_units, seed=0)
    g = random_regression(vtree, [3] * 60, units=g_units, seed=0)
    start = time.perf_counter()
    pair = Pair(p, g)
    compiled = time.perf_counter() - start
    a, b = (np.diff(s.edge_start[s.node_start]).astype(float) for s in (p.structure, g.structure))
    X = hide(np.random.default_rng(0).integers(0, 3, (5000, 60)), 0.5)
    if p_units <= 8:
        true = np.array([slow_expectation(p, g, x)[0] for x in X[:2]])
    else:
        true = pair.moments(X[:2], 1)[:, 1]
    check(pair.expectation(X[:2]), true, "sizes")
    with config_context(threads=1):
        found = measure(lambda: pair.expectation(X))
    joins = pair.plan.n_joins
    return found | {
        "edges times edges": float(a @ b),
        "joins": joins,
        "compile seconds": compiled,
        "nanoseconds per join and row": 1e9 * found["CPU seconds"] / joins / len(X),
    }


def order(k: int) -> dict[str, float]:
    """Cost against the order of the moments (insurance, one thread)."""
    pair, split, true = read("insurance")
    X = np.where(true["missing"], -1, split["x_test"].astype(np.int8))
    with config_context(threads=1):
        check(pair.moments(X, k)[:, k], pair.moments(X, 8)[:, k], f"order {k}")
        found = measure(lambda: pair.moments(X, k) if k > 1 else pair.expectation(X))
    return found | {"order": k}


def work(cells: Cells | None, quick: bool, only: list[str]):
    """Yield every cell and how to compute it."""
    items = [
        *((name, task, "marks", partial(mark, name, task)) for name, task in THEIRS),
        *((name, "first", "first", partial(first, name)) for name in ("insurance", "abalone")),
        ("mnist", "first", "first", partial(first, "mnist")),
        *(("mnist", f"{n} rows", "mnist", partial(mnist, n)) for n in (100, 1000, 10_000)),
        *(("abalone", f"{n} rows", "rows", partial(rows, n)) for n in ROWS),
        *(("random", f"{p} by {g} units", "sizes", partial(size, p, g)) for p, g in SIZES),
        *(("insurance", f"order {k}", "orders", partial(order, k)) for k in ORDERS),
        *speeds.items(),
    ]
    for name, method, setting, do in items:
        if quick and not (method in FEW or setting == "orders"):
            continue
        if not only or name in only:
            yield Key("D", name, method, setting, 0), do
