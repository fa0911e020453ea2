"""What a card brings: walks of the authors' circuits, and steps of EM, checked, beside the CPU.

``python -m benchmarks.cards`` needs a card and the reference data. A line has the milliseconds of a
call from NumPy to NumPy, of its launches alone (the rows on the card, from the second call on one
graph), and of the same call on the processor, with the greatest relative difference between both.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from expecta import (
    Evidence,
    ProbabilisticCircuit,
    RegressionCircuit,
    Vtree,
    config_context,
    random_probabilistic,
    random_regression,
)
from expecta.engine.algebras import Expectation, Moments, Spectrum, constants, width
from expecta.engine.cuda import cuda_run
from expecta.engine.cuda.choice import pays
from expecta.engine.plan import Plan
from expecta.engine.run import Root, run_each
from expecta.learn.information import mutual_information
from expecta.learn.trees.em import prototype_start
from expecta.learn.trees.expectation import TreeRows, expected_counts
from expecta.learn.trees.layout import TreeLayout
from expecta.learn.trees.tree import RootedTree


def median_ms(work: Callable[[], Any], least: int = 5, seconds: float = 0.5) -> float:
    """Return the median time of a call, in milliseconds, after one to warm up."""
    work()
    times: list[float] = []
    while len(times) < least or sum(times) < seconds:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
        if sum(times) > 20 * seconds:
            break
    return 1e3 * float(np.median(times))


def launches_ms(plan: Plan, algebra: Any, evidence: Evidence, precision: str) -> float:
    """Return what the launches of the latest walk take on the card, per call."""
    real = np.dtype(precision)
    pair = [
        pair
        for pair in cuda_run._kept[plan].values()
        if not pair.too_small and pair.real == real and pair.whole_width == width(algebra)
    ][-1]
    events, n = pair.device.cupy.cuda, len(evidence)
    chunks = min(pair.chunks, pair.n_chunks)

    def work() -> None:
        for start in range(0, n, pair.tile):
            pair.walk_rows(pair.lanes(min(pair.tile, n - start)), chunks)

    times = []
    for _ in range(12):
        first, last = events.Event(), events.Event()
        first.record(pair.device.stream)
        work()
        last.record(pair.device.stream)
        last.synchronize()
        times.append(events.get_elapsed_time(first, last))
    return float(np.median(times[2:]))


def difference(here: list[Root], there: list[Root]) -> float:
    """Return the greatest difference relative to the greatest number of a row."""
    worst = 0.0
    for a, b in zip(here, there, strict=True):
        worst = max(worst, float(np.max(np.abs(a.q - b.q) / np.maximum(a.q, 1e-300))))
        if len(a.state):
            size = np.abs(a.state).max(axis=0)
            worst = max(worst, float((np.abs(a.state - b.state) / np.maximum(size, 1e-300)).max()))
    return worst


records: list[tuple[str, str, str, str, float]] = []  # as files of results have them


def line(name: str, plan: Plan, algebra: Any, tables: list[Any], evidence: Evidence) -> None:
    """Print one task in both precisions."""
    given = [lambda t=t: t for t in tables]
    part = evidence[: min(len(evidence), 20_000)]
    for precision in ("float64", "float32"):
        with config_context(device="cuda", precision=precision, progress=False):
            there = run_each(plan, algebra, given, evidence)
            call = median_ms(lambda: run_each(plan, algebra, given, evidence))
            walk = launches_ms(plan, algebra, evidence, precision)
        with config_context(progress=False, threads=2):
            here = run_each(plan, algebra, given, part)
            cpu = median_ms(lambda: run_each(plan, algebra, given, part), least=3)
        cpu *= len(evidence) / len(part)
        some = [Root(*(x[..., : len(part)] for x in root)) for root in there]
        off = difference(here, some)
        print(
            f"{name:44s} {precision}  call {call:9.3f}  launches {walk:9.3f}  "
            f"cpu {cpu:9.1f} ms  ratio {cpu / call:6.1f}  difference {off:.1e}",
            flush=True,
        )
        for method, value in (("call", call), ("launches", walk), ("processor", cpu)):
            records.append((name, method, precision, "ms", value))
        records.append((name, "difference", precision, "relative", off))


def read(data: Path, name: str) -> tuple[ProbabilisticCircuit, RegressionCircuit]:
    """Read a pair that the authors learned."""
    base = data / "circuits" / name
    vtree = Vtree.load(base / f"{name}.vtree")
    p = ProbabilisticCircuit.load(base / f"{name}.psdd", vtree)
    return p, RegressionCircuit.load(base / f"{name}.glc", vtree)


def rows(data: Path, name: str, p: ProbabilisticCircuit, n: int, missing: float = 0.2) -> Evidence:
    """Draw test rows with some values unknown."""
    rng = np.random.default_rng(0)
    X = np.load(data / "splits" / f"{name}.npz")["x_test"].astype(int)
    X = X[rng.integers(len(X), size=n)] if n != len(X) else X
    return Evidence.rows(np.where(rng.random(X.shape) < missing, -1, X), p.cardinalities)


def grid(data: Path) -> None:
    """Print where a card was faster, what `device="auto"` would have chosen, and the costs."""
    right, total = 0, 0
    records = []
    models = {name: read(data, name) for name in ("insurance", "abalone", "mnist")}
    for n, units in ((6, 3), (15, 6), (40, 8)):
        vtree, cards = Vtree.balanced(n), np.full(n, 6)
        p = random_probabilistic(vtree, cards, units=units, seed=0)
        models[f"random {n}"] = p, random_regression(vtree, cards, units=units, seed=0)
    for name, (p, g) in models.items():
        plan = Plan.of(p, g)
        rng = np.random.default_rng(0)
        for algebra in (Expectation(g.n_outputs), Moments(2, g.n_outputs)):
            table = constants(algebra, g.weight)
            for n in (1, 8, 64, 512, 4_096, 32_768):
                if "random" in name:
                    X = rng.integers(0, 6, (n, p.n_variables))
                    X = np.where(rng.random(X.shape) < 0.3, -1, X)
                    evidence = Evidence.rows(X, p.cardinalities)
                else:
                    evidence = rows(data, name, p, n)
                times = []
                for device in ("cuda", "cpu"):
                    with config_context(device=device, progress=False, threads=2):
                        given = [lambda t=table: t]
                        work = partial(run_each, plan, algebra, given, evidence)
                        times.append(median_ms(work, least=3, seconds=0.1))
                with config_context(threads=2):
                    chosen = pays(plan, algebra, 1, n)
                right += chosen == (times[0] < times[1])
                total += 1
                numbers = (plan.n_joins + len(plan.p.target)) * width(algebra) * n
                records.append((n, numbers, *times))
                print(
                    f"{name:12s} {algebra!r:34s} {n:6d} rows  cuda {times[0]:8.3f}  "
                    f"cpu {times[1]:9.3f} ms  {'card' if chosen else 'processor'}",
                    flush=True,
                )
    print(f"right in {right} of {total}")
    n, numbers, *times = np.array(records).T
    for name, t in zip(("cuda", "cpu"), times, strict=True):
        A = np.stack([np.ones_like(n), n, numbers], 1) / t[:, None]
        fit, *_ = np.linalg.lstsq(A, np.ones_like(t), rcond=None)
        print(name, "ms per call, per row, per number of joins:", fit)


def learning(data: Path, name: str, sizes: tuple[int, ...], rows: int | None = None) -> None:
    """Print what a step of EM over all training images takes, for each number of states."""
    images = np.load(data / "splits" / f"{name}.npz")["x_train"][:rows].astype(np.int32)
    cards = np.full(images.shape[1], 2, np.int32)
    tree = RootedTree.greatest(mutual_information(images, cards))
    table = TreeRows(tree, cards, images, np.ones(len(images)))
    for states in sizes:
        layout = TreeLayout(tree, np.full(len(cards), states, np.int32), cards)
        even = [np.full(2, 0.5)] * len(cards)
        theta = prototype_start(layout, even, table, np.random.default_rng(0))
        step = partial(expected_counts, layout, theta, table)
        with config_context(threads=2):
            here = step().counts
            cpu = median_ms(step, least=1, seconds=0.1)
        task = f"EM on {name}, {len(images):,} rows, K = {states}"
        for precision in ("float64", "float32"):
            with config_context(device="cuda", precision=precision):
                there = step().counts
                card = median_ms(step, least=3)
            off = float(np.linalg.norm(there - here) / np.linalg.norm(here))
            print(
                f"{task:44s} {precision}  step {card:9.2f}  cpu {cpu:9.1f} ms  "
                f"ratio {cpu / card:6.1f}  difference {off:.1e}",
                flush=True,
            )
            for method, value in (("call", card), ("processor", cpu)):
                records.append((task, method, precision, "ms", value))
            records.append((task, "difference", precision, "relative", off))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--grid", action="store_true", help="where a card pays")
    parser.add_argument("--learning", action="store_true", help="steps of EM alone")
    parser.add_argument("--out", action="store_true", help="write benchmarks/results/cards.parquet")
    given = parser.parse_args()
    data = given.data
    if given.grid:
        grid(data)
        return
    learning(data, "mnist", (32, 64, 256))
    if given.learning:
        return
    for name, sizes in (("insurance", (1, 100, 1_870, 1_000_000)), ("abalone", (670, 100_000))):
        p, g = read(data, name)
        plan = Plan.of(p, g)
        a = Expectation(g.n_outputs)
        for n in sizes:
            line(f"{name}, {n:,} rows", plan, a, [constants(a, g.weight)], rows(data, name, p, n))
        if name == "insurance":
            some = rows(data, name, p, 1_870)
            m = Moments(2, 1)
            line(f"{name}, variance, 1,870", plan, m, [constants(m, g.weight)], some)
            s = Spectrum(4)
            t = np.array([1e-4, 2e-4, 3e-4, 4e-4])
            line(f"{name}, spectrum of 4", plan, s, [constants(s, g.weight, t)], some)
            s = Spectrum(64)
            t = np.arange(1, 65) * 1e-5
            line(f"{name}, spectrum of 64", plan, s, [constants(s, g.weight, t)], some)
    p, g = read(data, "mnist")
    a = Expectation(g.n_outputs)
    line(
        "mnist, ten classes, images",
        Plan.of(p, g),
        a,
        [constants(a, g.weight)],
        rows(data, "mnist", p, 10_000),
    )
    vtree = Vtree.balanced(64)
    p = random_probabilistic(vtree, np.full(64, 8), units=32, deterministic=False, seed=0)
    a = Expectation(0)
    plan = Plan.of(p, None)
    rng = np.random.default_rng(0)
    X = np.where(rng.random((2_000, 64)) < 0.2, -1, rng.integers(0, 8, (2_000, 64)))
    evidence = Evidence.rows(X, p.cardinalities)
    line("latent p, 64 columns, K = 32, 2,000", plan, a, [constants(a, plan.phi)], evidence)
    if given.out:
        columns = ["set", "method", "setting", "metric", "value"]
        path = Path(__file__).parent / "results" / "cards.parquet"
        pd.DataFrame(records, columns=columns).to_parquet(path)


if __name__ == "__main__":
    main()
