"""How fast the engine is: every figure is printed only after its outputs were checked.

    python benchmarks/engine.py            all parts
    python benchmarks/engine.py marks      only the named parts

Marks are CPU seconds of the code published with the paper for the same task, on a
2-core machine of the same kind; ratios are theirs over ours, CPU time over CPU time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from expecta import (
    Pair,
    ProbabilisticCircuit,
    RegressionCircuit,
    Vtree,
    random_probabilistic,
    random_regression,
    using,
)
from slow import expectation as slow_expectation

DATA = Path(os.environ.get("EXPECTA_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))
console = Console(width=118)
BYTES = {"expectation": 3 * 8 * 2, "second moment": 3 * 8 * 3}  # read two states, write one


def read(name):
    """The authors' pair, their test rows, and the reference values."""
    folder = DATA / "circuits" / name
    vtree = Vtree.read(folder / f"{name}.vtree")
    p = ProbabilisticCircuit.read(folder / f"{name}.psdd", vtree)
    pair = Pair(p, RegressionCircuit.read(folder / f"{name}.glc", vtree))
    split = np.load(DATA / "splits" / f"{name}.npz")
    return pair, split, np.load(DATA / "reference" / f"{name}.npz")


def hide(x, share, seed=0):
    """Hide a share of the cells."""
    return np.where(np.random.default_rng(seed).random(x.shape) < share, -1, x.astype(np.int8))


def measure(do, repeats=7):
    """Least wall and CPU seconds of a call that has run before, and its peak memory in MB."""
    do()
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = memory("VmRSS")
    walls, cpus = [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        do()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
        if sum(walls) > 20:
            break
    return min(walls), min(cpus), max(0.0, memory("VmHWM") - before)


def memory(field):
    """One field of the process's memory report, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise KeyError(field)


def bandwidth():
    """Bytes per second read plus written by a large copy on one core."""
    source = np.ones(16 * 1024 * 1024)
    target = np.empty_like(source)
    wall, _, _ = measure(lambda: np.copyto(target, source))
    return 2 * source.nbytes / wall


def check(found, true, what):
    """Refuse to go on with wrong outputs."""
    worst = float(np.max(np.abs(found - true) / np.maximum(np.abs(true), 1e-300)))
    if not worst < 1e-9:
        raise SystemExit(f"{what}: outputs are off by {worst:.1e}, no figure is given")
    return worst


def marks():
    """The authors' own tasks: time, memory, and the ratio to their code."""
    copy = bandwidth()
    table = Table(
        "task",
        "rows",
        "wall s",
        "CPU s",
        "pairs/s",
        "peak MB",
        "traffic / copy",
        "theirs CPU s",
        "ratio",
        "checked to",
        title=f"The authors' circuits and tasks (copy bandwidth of one core {copy / 1e9:.1f} GB/s)",
    )
    for name, first, second in (("insurance", 17.9, 28.6), ("abalone", 31.8, 42.3)):
        pair, split, true = read(name)
        X = np.where(true["missing"], -1, split["x_test"].astype(np.int8))
        for task, theirs, do, values in (
            ("expectation", first, lambda q=pair, X=X: q.expectation(X), "first"),
            ("second moment", second, lambda q=pair, X=X: q.moments(X, 2)[:, 2], "second"),
        ):
            worst = check(do(), true[values], f"{name} {task}")
            add(
                table,
                f"{name}, {task}",
                pair,
                len(X),
                measure(do),
                copy,
                BYTES[task],
                theirs,
                worst,
            )
    pair, split, _ = read("insurance")
    X = hide(np.tile(split["x_valid"], (10, 1)), 0.2)
    some = np.arange(0, len(X), 623)
    slow = [slow_expectation(pair.p, pair.g, X[i])[0] for i in some]
    worst = check(pair.expectation(X)[some], np.array(slow), "insurance, 20% missing")
    timing = measure(lambda: pair.expectation(X))
    add(table, "insurance, 20% missing", pair, len(X), timing, copy, 48, 109.0, worst)
    console.print(table)
    console.print("Juice, as published for the last task: 11.2 s on a CPU,")
    console.print("0.44 s cold and 0.039 s warm on a GPU.")


def add(table, task, pair, rows, timing, copy, size, theirs, worst):
    """Add a row of figures to a table."""
    wall, cpu, peak = timing
    work = pair.plan.n_joins * rows
    table.add_row(
        task,
        f"{rows:,}",
        f"{wall:.4f}",
        f"{cpu:.4f}",
        f"{work / wall:.2e}",
        f"{peak:.0f}",
        f"{work * size / wall / copy:.1f}",
        "" if theirs is None else f"{theirs}",
        "" if theirs is None else f"{theirs / cpu:,.0f} x",
        f"{worst:.0e}",
    )


FIRST = """
import time; start = time.perf_counter()
import numpy as np
from expecta import Pair, ProbabilisticCircuit, RegressionCircuit, Vtree
folder, name, rows = {folder!r}, {name!r}, np.load({rows!r})
vtree = Vtree.read(f"{{folder}}/{{name}}.vtree")
p = ProbabilisticCircuit.read(f"{{folder}}/{{name}}.psdd", vtree)
g = RegressionCircuit.read(f"{{folder}}/{{name}}.glc", vtree)
ready = time.perf_counter()
pair = Pair(p, g); pair.expectation(rows)
print(ready - start, time.perf_counter() - ready)
"""


def first():
    """The first call in a fresh process, machine code cached: what a service start costs."""
    table = Table(
        "circuits",
        "rows",
        "import and read files, s",
        "compile the pair and first call, s",
        title="First call in a fresh process",
    )
    for name in ("insurance", "abalone", "mnist"):
        _, split, true = read(name)
        with tempfile.TemporaryDirectory() as folder:
            rows = Path(folder) / "rows.npy"
            x = split["x_test"][: len(true["missing"])].astype(np.int8)
            np.save(rows, np.where(true["missing"], -1, x))
            code = FIRST.format(folder=str(DATA / "circuits" / name), name=name, rows=str(rows))
            runs = [
                subprocess.run(
                    [sys.executable, "-c", code], capture_output=True, text=True, check=True
                )
                for _ in range(4)
            ][1:]
        times = np.array([[float(t) for t in run.stdout.split()] for run in runs]).min(axis=0)
        table.add_row(name, str(len(x)), f"{times[0]:.2f}", f"{times[1]:.2f}")
    console.print(table)


def mnist():
    """Ten classes, ten thousand images, half of the pixels missing."""
    pair, split, true = read("mnist")
    x = split["x_test"]
    X100 = np.where(true["missing"], -1, x[:100].astype(np.int8))
    worst = check(pair.expectation(X100), true["first"], "mnist")
    table = Table(
        "rows", "wall s", "CPU s", "ms per row", "peak MB", "accuracy", "checked to",
        title="MNIST, 10 classes, half of the pixels missing",
    )  # fmt: skip
    for n in (100, 1000, 10_000):
        X = hide(x[:n], 0.5)
        wall, cpu, peak = measure(lambda X=X: pair.expectation(X), 3)
        right = np.mean(pair.expectation(X).argmax(axis=1) == split["y_test"][:n])
        table.add_row(
            f"{n:,}", f"{wall:.3f}", f"{cpu:.3f}", f"{1e3 * wall / n:.3f}", f"{peak:.0f}",
            f"{right:.1%}", f"{worst:.0e}",
        )  # fmt: skip
    console.print(table)


def rows():
    """Cost per row against the number of rows."""
    pair, split, _ = read("abalone")
    table = Table(
        "rows", "CPU s", "microseconds per row", title="Cost against rows (abalone, half missing)"
    )
    whole = hide(np.tile(split["x_train"], (4, 1))[:10_000], 0.5)
    with using(threads=1):
        full = pair.expectation(whole)
        for n in (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000):
            check(pair.expectation(whole[:n]), full[:n], f"{n} rows")
            _, cpu, _ = measure(lambda n=n: pair.expectation(whole[:n]))
            table.add_row(f"{n:,}", f"{cpu:.5f}", f"{1e6 * cpu / n:,.1f}")
    console.print(table)


def sizes():
    """Cost against the sum over vtree nodes of edges of p times edges of g."""
    table = Table(
        "units of p", "units of g", "Σ edges·edges", "joins", "compile s", "CPU s, 5,000 rows",
        "nanoseconds per join and row",
        title="Cost against circuit size (random dense p, 60 variables)",
    )  # fmt: skip
    vtree = Vtree.balanced(60)
    for p_units, g_units in ((2, 4), (4, 4), (8, 4), (16, 4), (32, 4), (16, 8), (16, 16), (16, 32)):
        p = random_probabilistic(vtree, [3] * 60, units=p_units, seed=0)
        g = random_regression(vtree, [3] * 60, units=g_units, seed=0)
        start = time.perf_counter()
        pair = Pair(p, g)
        compiled = time.perf_counter() - start
        a, b = (
            np.diff(s.edge_start[s.node_start]).astype(float) for s in (p.structure, g.structure)
        )
        X = hide(np.random.default_rng(0).integers(0, 3, (5000, 60)), 0.5)
        check(
            pair.expectation(X[:2]),
            np.array([slow_expectation(p, g, x)[0] for x in X[:2]]) if p_units <= 8
            else pair.moments(X[:2], 1)[:, 1],
            "sizes",
        )  # fmt: skip
        with using(threads=1):
            _, cpu, _ = measure(lambda X=X, q=pair: q.expectation(X))
        joins = pair.plan.n_joins
        table.add_row(
            str(p_units), str(g_units), f"{a @ b:,.0f}", f"{joins:,}", f"{compiled:.3f}",
            f"{cpu:.4f}", f"{1e9 * cpu / joins / 5000:.2f}",
        )  # fmt: skip
    console.print(table)


def orders():
    """Cost against the order of the moments."""
    pair, split, true = read("insurance")
    X = np.where(true["missing"], -1, split["x_test"].astype(np.int8))
    high = pair.moments(X, 8)
    table = Table(
        "order k", "CPU s", "CPU s / (k+1)²", title="Cost against the order (insurance, 215 rows)"
    )
    with using(threads=1):
        for k in (1, 2, 3, 4, 5, 6, 8):
            check(pair.moments(X, k)[:, k], high[:, k], f"order {k}")
            _, cpu, _ = measure(lambda k=k: pair.moments(X, k) if k > 1 else pair.expectation(X))
            table.add_row(str(k), f"{cpu:.4f}", f"{cpu / (k + 1) ** 2:.5f}")
    console.print(table)


PARTS = {f.__name__: f for f in (marks, first, mnist, rows, sizes, orders)}


def main():
    """Run the named parts, or all."""
    named = sys.argv[1:] or list(PARTS)
    unknown = [name for name in named if name not in PARTS]
    if unknown:
        raise SystemExit(f"there is no part {unknown[0]!r}: choose among {', '.join(PARTS)}")
    for name in named:
        if name != "sizes" and not (DATA / "reference").is_dir():
            console.print(f"skipped {name}: no reference data at {DATA} (set EXPECTA_DATA)")
            continue
        PARTS[name]()


if __name__ == "__main__":
    main()
