"""What a card brings: walks of the authors' circuits, boxes, and EM, checked, beside the CPU.

    python -m benchmarks.cards --out walks.csv               needs a card and the reference data
    python -m benchmarks.cards --spectral --grid --out grid.csv   classes, and where a card pays
    python -m benchmarks.cards --grade --out grade.csv       the choice of a device, by that grid
    python -m benchmarks.cards --boxes --out boxes.csv       a wrapped booster
    python -m benchmarks.cards --draws --out draws.csv       boosted probabilities, by sampling
    python -m benchmarks.cards --learning --fits --pyjuice --out learning.csv
    python -m benchmarks.cards --table --out table.csv       a large table from end to end
    python -m benchmarks.cards --store walks.csv boxes.csv   into benchmarks/results/cards.parquet

A line has the milliseconds of a call from NumPy to NumPy, of its launches alone (the rows on the
card, from the second call on one graph), and of the same call on two threads of the processor, with
the greatest relative difference between both. The processor does a part of many rows, or one call
of a long one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from expecta import (
    Evidence,
    ExpectedPredictor,
    LatentTree,
    Pair,
    ProbabilisticCircuit,
    RegressionCircuit,
    Vtree,
    config_context,
    random_probabilistic,
    random_regression,
)
from expecta.engine.algebras import Expectation, Extremes, Moments, Spectrum, constants, width
from expecta.engine.compile_walk import compile_walk
from expecta.engine.cuda import cuda_run
from expecta.engine.cuda.choice import WalkWork, pays
from expecta.engine.plan import Plan
from expecta.engine.run import Root, run_each
from expecta.learn.information import mutual_information
from expecta.learn.trees.em import prototype_start
from expecta.learn.trees.expectation import TreeRows, expected_counts
from expecta.learn.trees.layout import TreeLayout
from expecta.learn.trees.tree import RootedTree


def median_ms(work: Callable[[], Any], least: int = 5, seconds: float = 0.8) -> float:
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
        walk.pair
        for _, walks in cuda_run._kept[plan].values()
        for walk in walks.values()
        if walk
        and not walk.too_small
        and walk.pair.real == real
        and walk.pair.whole_width == width(algebra)
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


def record(name: str, precision: str, off: float, **times: float) -> None:
    """Print and keep one task in one precision."""
    words = "  ".join(f"{method} {value:10.3f}" for method, value in times.items())
    ratio = times["processor"] / times["call"]
    print(f"{name:46s} {precision}  {words} ms  ratio {ratio:7.1f}  off {off:.1e}", flush=True)
    for method, value in times.items():
        records.append((name, method, precision, "ms", value))
    records.append((name, "difference", precision, "relative", off))


compiled = cache(compile_walk)


def on_processor(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return an answer of the processor and its milliseconds: of one call, where it is long."""
    compiled()
    with config_context(progress=False, threads=2):
        start = time.perf_counter()
        answer = work()
        took = 1e3 * (time.perf_counter() - start)
        return answer, took if took > 3000 else median_ms(work, least=3)


def line(
    name: str, plan: Plan, algebra: Any, tables: list[Any], evidence: Evidence, most: int = 20_000
) -> None:
    """Print one task in both precisions; the processor does so many rows at most."""
    given = [lambda t=t: t for t in tables]
    part = evidence[: min(len(evidence), most)]
    here, cpu = on_processor(lambda: run_each(plan, algebra, given, part))
    cpu *= len(evidence) / len(part)
    for precision in ("float64", "float32"):
        with config_context(device="cuda", precision=precision, progress=False):
            there = run_each(plan, algebra, given, evidence)
            call = median_ms(lambda: run_each(plan, algebra, given, evidence))
            walk = launches_ms(plan, algebra, evidence, precision)
        some = [Root(*(x[..., : len(part)] for x in root)) for root in there]
        off = difference(here, some)
        record(name, precision, off, call=call, launches=walk, processor=cpu)


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


GRID_ROWS = (1, 4, 16, 64, 256, 1_024, 4_096, 16_384)
GRID_ALGEBRAS = {
    "expectation": Expectation,
    "variance": partial(Moments, 2),
    "range": Extremes,
    "4 frequencies": lambda outputs: Spectrum(4 * outputs),
}
MAX_GRID_PRODUCTS = 2e9  # on the processor: about half a second


class GridCase(NamedTuple):
    """A model, an algebra and so many rows."""

    name: str
    plan: Plan
    algebra: Any
    table: Any
    rows: Evidence

    @property
    def task(self) -> str:
        """Return what results call it."""
        return f"grid: {self.name}, {len(self.rows):,} rows"


def grid_cases(data: Path) -> Iterator[GridCase]:
    """Yield circuits from two variables to 784, in four algebras, for up to 16,384 rows."""
    models = {name: read(data, name) for name in ("insurance", "abalone", "mnist")}
    for n, units in ((2, 2), (3, 2), (4, 3), (6, 3), (10, 4), (20, 6), (40, 8)):
        vtree, cards = Vtree.balanced(n), np.full(n, 6)
        p = random_probabilistic(vtree, cards, units=units, seed=0)
        models[f"{n} columns"] = p, random_regression(vtree, cards, units=units, seed=0)
    for name, (p, g) in models.items():
        plan, rng = Plan.of(p, g), np.random.default_rng(0)
        for word, make in GRID_ALGEBRAS.items():
            a = make(g.n_outputs)
            t = [0.1 * np.arange(1, 5)] if isinstance(a, Spectrum) else []
            table = constants(a, g.weight, *t)
            for n in GRID_ROWS:
                if WalkWork.of(plan, a, 1, n)[0].products > MAX_GRID_PRODUCTS:
                    continue
                if "columns" in name:
                    X = rng.integers(0, 6, (n, p.n_variables))
                    X = np.where(rng.random(X.shape) < 0.3, -1, X)
                    evidence = Evidence.rows(X, p.cardinalities)
                else:
                    evidence = rows(data, name, p, n)
                yield GridCase(f"{name}, {word}", plan, a, table, evidence)


def grid(data: Path) -> None:
    """Measure where a card is faster, on two threads of the processor beside it."""
    for case in grid_cases(data):
        given = [lambda t=case.table: t]
        work = partial(run_each, case.plan, case.algebra, given, case.rows)
        for device, method in (("cuda", "call"), ("cpu", "processor")):
            with config_context(device=device, progress=False, threads=2):
                ms = median_ms(work, least=3, seconds=0.02)
            records.append((case.task, method, "grid", "ms", ms))
            print(f"{case.task:50s} {method:10s} {ms:9.3f} ms", flush=True)


def grade(data: Path, frame: pd.DataFrame) -> None:
    """Tell how often the choice of a device is right, by times of a grid, and from when it pays."""
    times = frame[frame["setting"] == "grid"].set_index(["set", "method"])["value"]
    right, lost, pays_from = [], [], {}
    for case in grid_cases(data):
        card, cpu = times[case.task, "call"], times[case.task, "processor"]
        with config_context(threads=2):
            chosen = pays(case.plan, case.algebra, 1, len(case.rows))
        right.append(chosen == (card < cpu))
        lost.append((card if chosen else cpu) / min(card, cpu) - 1)
        if not right[-1]:
            print(f"{case.task:50s} card {card:9.3f}, processor {cpu:9.3f} ms: wrong")
        name = case.name
        if cpu < card:
            pays_from[name] = np.inf
        elif pays_from.get(name, np.inf) == np.inf:
            pays_from[name] = len(case.rows)
    print(f"right in {sum(right)} of {len(right)} cases; lost at most {max(lost):.0%}")
    for metric, value in (("right", np.mean(right)), ("cases", len(right)), ("lost", max(lost))):
        records.append(("grid", "auto", "choice", metric, float(value)))
    for name, n in pays_from.items():
        model, _, word = name.rpartition(", ")
        records.append((model, word, "pays from", "rows", float(n)))


def learning(data: Path, name: str, sizes: list[int]) -> None:
    """Print what a step of EM takes, over all training images and over batches of them."""
    images = np.load(data / "splits" / f"{name}.npz")["x_train"].astype(np.int32)
    cards = np.full(images.shape[1], 2, np.int32)
    tree = RootedTree.greatest(mutual_information(images, cards))
    for n in (512, 4_096, len(images)):
        table = TreeRows(tree, cards, images[:n], np.ones(n))
        for states in sizes:
            layout = TreeLayout(tree, np.full(len(cards), states, np.int32), cards)
            even = [np.full(2, 0.5)] * len(cards)
            theta = prototype_start(layout, even, table, np.random.default_rng(0))
            step = partial(expected_counts, layout, theta, table)
            # minutes on the processor: a part of the rows
            part = n if states * np.sqrt(n) < 20_000 else 512 if states > 256 else n // 10
            here, cpu = on_processor(partial(step, np.arange(part)))
            cpu *= n / part
            for precision in ("float64", "float32"):
                with config_context(device="cuda", precision=precision):
                    there = step(np.arange(part))
                    card = median_ms(step, least=3, seconds=0.2)
                off = np.linalg.norm(there.counts - here.counts) / np.linalg.norm(here.counts)
                task = f"EM on {name}, {n:,} rows, K = {states}"
                record(task, precision, float(off), call=card, processor=cpu)


def fits(data: Path, name: str, sizes: list[int]) -> None:
    """Print what learning a tree takes from start to end, and its likelihood of test images."""
    images = np.load(data / "splits" / f"{name}.npz")
    for states in sizes:
        with config_context(device="cuda", precision="float32", progress=False):
            start = time.perf_counter()
            tree = LatentTree(states=states).fit(images["x_train"])
            took = time.perf_counter() - start
            nats = float(np.mean(tree.score_samples(images["x_test"])))
        keep_fit(f"LatentTree on {name}, K = {states}", "fit", "float32", took, nats)


def keep_fit(task: str, method: str, setting: str, seconds: float, nats: float) -> None:
    """Print and keep what a model took and how likely it finds test images."""
    print(f"{task:46s} {setting:16s} {method} {seconds:8.2f} s, {nats:8.2f} nats", flush=True)
    records.append((task, method, setting, "s", seconds))
    records.append((task, method, setting, "nats", nats))


def pyjuice(data: Path, name: str, sizes: list[int], budget: float) -> None:
    """Print the same of PyJuice's hidden Chow-Liu trees, as long as the budget of seconds lasts.

    An epoch is EM's step over all images, in batches of the better of two sizes. Then 15 epochs of
    steps after each batch of 512, of a size that falls from 0.9 to 0.05, for the best of several
    pseudo-counts.
    """
    if find_spec("matplotlib") is None:  # which only drawings need
        for missing in ("matplotlib", "matplotlib.pyplot"):
            sys.modules[missing] = ModuleType(missing)
    try:
        import pyjuice as juice
        import torch
    except ImportError as problem:
        print(f"no PyJuice: {problem}")
        return
    device, batch, end = torch.device("cuda:0"), 512, time.perf_counter() + budget
    images = np.load(data / "splits" / f"{name}.npz")
    train, test = (
        torch.tensor(images[part].astype(np.int64)).to(device) for part in ("x_train", "x_test")
    )

    def compiled(states: int) -> Any:
        torch.manual_seed(0)
        nodes = juice.structures.HCLT(
            train.float(), num_latents=states, input_node_params={"num_cats": 2}
        )
        circuit = juice.compile(nodes, verbose=False)
        circuit.to(device)
        return circuit

    def expect(circuit: Any, rows: Any, memory: float) -> None:
        with torch.no_grad():
            circuit(rows)
            circuit.backward(rows, flows_memory=memory)

    def epoch(circuit: Any, batch: int) -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        circuit.init_param_flows(flows_memory=0.0)
        for first in range(0, len(train), batch):
            expect(circuit, train[first : first + batch], 1.0)
        circuit.mini_batch_em(step_size=1.0, pseudocount=0.1)
        torch.cuda.synchronize()
        return time.perf_counter() - start

    def likelihood(circuit: Any) -> float:
        with torch.no_grad():
            parts = [circuit(test[i : i + batch]) for i in range(0, len(test), batch)]
        return float(torch.cat(parts).mean())

    for states in sizes:
        circuit = compiled(states)
        times = {size: min(epoch(circuit, size) for _ in range(3)) for size in (4096, batch)}
        took = times[batch]
        task = f"PyJuice on {name}, K = {states}"
        keep_fit(task, "epoch", "float32", min(times.values()), likelihood(circuit))
        best = (-np.inf, 0.0, 0.0)
        for pseudocount in (0.1, 1.0, 0.01):
            if time.perf_counter() + 18 * took > end:
                print(f"{task}: pseudo-count {pseudocount} left out, no time")
                continue
            circuit = compiled(states)
            torch.cuda.synchronize()
            start, steps, step = time.perf_counter(), 15 * (len(train) // batch), 0
            for _ in range(15):
                order = torch.randperm(len(train), device=device)
                for first in range(0, len(train) - batch + 1, batch):
                    expect(circuit, train[order[first : first + batch]], 0.0)
                    size = 0.9 + (0.05 - 0.9) * step / steps
                    circuit.mini_batch_em(step_size=size, pseudocount=pseudocount)
                    step += 1
            torch.cuda.synchronize()
            seconds = time.perf_counter() - start
            nats = likelihood(circuit)
            print(f"{task}: pseudo-count {pseudocount}: {seconds:.1f} s, {nats:.2f} nats")
            best = max(best, (nats, seconds, pseudocount))
        if best[1]:
            keep_fit(task, "15 epochs", "float32", best[1], best[0])


def boxes(many: int) -> None:
    """Print means of a booster of 300 trees of depth 6, for rows with unknown values."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 3)) @ rng.normal(size=(3, 12)) + rng.normal(size=(4_000, 12))
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3:6].max(axis=1)
    booster = HistGradientBoostingRegressor(max_iter=300, max_depth=6, max_leaf_nodes=64)
    density = LatentTree(states=64, restarts=1, max_epochs=5)
    with config_context(progress=False):
        predictor = ExpectedPredictor(booster.fit(X, y), density=density).fit(X)
    model: Any = predictor.expected_model
    mean = model.route.margin.first
    print(f"{mean.boxes.n_boxes:,} boxes, {mean.n_parts:,} parts")
    known = model.rows(X).codes
    for share, counts in ((0.2, (1, 10, 100, 1_000, 100_000, many)), (0.5, (100_000,))):
        for n in counts:
            codes = known[rng.integers(len(known), size=n)]
            codes[rng.random(codes.shape) < share] = -1
            part = codes[:1_000]
            here, cpu = on_processor(partial(mean, part))
            with config_context(device="cuda", progress=False):
                there = mean(codes)
                card = median_ms(partial(mean, codes), least=3)
            off = float(np.max(np.abs(there[: len(part)] - here)) / np.max(np.abs(here)))
            cpu *= n / len(part)
            record(
                f"booster, {n:,} rows, {share:.0%} unknown",
                "float64",
                off,
                call=card,
                processor=cpu,
            )
    n = 100_000
    rows = X[rng.integers(len(X), size=n)]
    rows[rng.random(rows.shape) < 0.2] = np.nan
    here, cpu = on_processor(lambda: predictor.predict(rows[:1_000]))
    with config_context(device="cuda", progress=False):
        there = predictor.predict(rows)
        card = median_ms(lambda: predictor.predict(rows), least=2)
    off = float(np.max(np.abs(there[:1_000] - here)) / np.max(np.abs(here)))
    record(f"booster, predict, {n:,} rows", "float64", off, call=card, processor=cpu * n / 1_000)


def draws() -> None:
    """Print probabilities of boosters of 300 rounds, sampled for rows with a fifth unknown."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 3)) @ rng.normal(size=(3, 12)) + rng.normal(size=(4_000, 12))
    margin = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3:6].max(axis=1)
    density = LatentTree(states=64, restarts=1, max_epochs=5)
    booster = HistGradientBoostingClassifier(max_iter=300, max_depth=6, early_stopping=False)
    for classes in (2, 4):
        y = np.digitize(margin, np.quantile(margin, np.arange(1, classes) / classes))
        with config_context(device="cuda", progress=False):
            predictor = ExpectedPredictor(booster.fit(X, y), density).fit(X)
        model: Any = predictor.expected_model
        masks = model.route.margin.masks
        print(f"{masks.words.shape[1]:,} words of trees, {len(masks.words):,} values")
        known = model.rows(X).codes
        asked = known[rng.integers(len(known), size=100_000)]
        asked[rng.random(asked.shape) < 0.2] = -1
        took: dict[int, tuple[Any, float]] = {}
        model._quasi_sampled(asked[:3], True, False)  # compiled by now
        for n in (1, 10, 300, 10_000, 100_000):
            codes = asked[:n]
            part = codes[:300]
            if len(part) not in took:
                took[len(part)] = on_processor(partial(model._quasi_sampled, part, True, False))
            here, cpu = took[len(part)]
            with config_context(device="cuda", progress=False):
                work = partial(model._quasi_sampled, codes, True, False)
                there = work()
                card = median_ms(work, least=1)
            off = float(np.max(np.abs(there.mean[: len(part)] - here.mean)))
            print(f"{there.samples.mean():.0f} samples a row")
            cpu *= n / len(part)
            task = f"{classes} classes, {n:,} row{'s' * (n > 1)}"
            record(task, "float64", off, call=card, processor=cpu)


def table(n: int) -> None:
    """Print what a large table takes: read, encoded, predicted, with intervals."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    rng = np.random.default_rng(0)
    names = [f"x{k}" for k in range(30)]
    mix = rng.normal(size=(4, 30))

    def draw(rows: int) -> Any:
        X = rng.normal(size=(rows, 4)) @ mix + rng.normal(size=(rows, 30))
        return pd.DataFrame(X.round(2), columns=names)

    X = draw(5_000)
    y = X["x0"] * X["x1"] + np.sin(2 * X["x2"]) + X[names[3:9]].max(axis=1)
    booster = HistGradientBoostingRegressor(max_iter=300, max_depth=6).fit(X[:4_000], y[:4_000])
    density = LatentTree(states=32, restarts=1, max_epochs=5)
    with config_context(device="cuda", progress=False), TemporaryDirectory() as folder:
        predictor = ExpectedPredictor(booster, density).fit(X[:4_000])
        predictor.calibrate(X[4_000:], y[4_000:])
        model: Any = predictor.expected_model
        frame = draw(n)
        frame = frame.mask(rng.random(frame.shape) < 0.2)
        path = Path(folder) / "rows.parquet"
        frame.to_parquet(path)
        steps: dict[str, Callable[[Any], Any]] = {
            "read": lambda given: pd.read_parquet(path),
            "encode": model.rows,
            "predict": predictor.predict,
            "intervals": predictor.predict_interval,
        }
        for step, work in steps.items():
            work(frame[:100])  # compiled by now
            start = time.perf_counter()
            there = work(frame)
            took = 1e3 * (time.perf_counter() - start)
            task = f"{step}, {n:,} rows of 30 columns"
            if step in ("read", "encode"):  # by the processor, whatever the device
                print(f"{task:46s} {took:.0f} ms", flush=True)
                records.append((task, "call", "float64", "ms", took))
                continue
            with config_context(device="cpu", threads=2):
                work(frame[:10])  # compiled by now
                here, cpu = on_processor(partial(work, frame[:100]))
            off = float(np.max(np.abs(here - there[:100])) / np.max(np.abs(here)))
            record(task, "float64", off, call=took, processor=cpu * n / 100)
        own_predict(X[:4_000], y[:4_000], frame)


def own_predict(X: pd.DataFrame, y: pd.Series, frame: pd.DataFrame) -> None:
    """Print what XGBoost's own prediction takes of the same rows, which averages nothing."""
    try:
        import cupy
        import xgboost
    except ImportError as problem:
        print(f"no XGBoost: {problem}")
        return
    booster = xgboost.XGBRegressor(n_estimators=300, max_depth=6, device="cuda").fit(X, y)
    there = cupy.asarray(frame.to_numpy(np.float32))

    def on_the_card() -> None:
        booster.predict(there)
        cupy.cuda.Device().synchronize()

    for where, work in (("a frame", lambda: booster.predict(frame)), ("the card", on_the_card)):
        took = median_ms(work, least=3)
        task = f"XGBoost's own predict, {len(frame):,} rows of {where}"
        print(f"{task:46s} {took:.0f} ms", flush=True)
        records.append((task, "call", "float64", "ms", took))


def spectral(data: Path) -> None:
    """Print probabilities of ten classes of images by the spectral method, each within 1e-6."""
    pair = Pair(*read(data, "mnist"))
    evidence = rows(data, "mnist", pair.p, 10_000)
    part = evidence[:200]
    work = partial(pair.expected, link="logistic", tol=1e-6)
    here, cpu = on_processor(lambda: work(part))
    with config_context(device="cuda", progress=False):
        there = work(evidence)
        card = median_ms(lambda: work(evidence), least=3)
    off = float(np.max(np.abs(there.value[: len(part)] - here.value)))
    print(f"errors are at most {np.max(there.error):.1e}")
    task = "mnist, probabilities of ten classes, 10,000 images"
    record(task, "float64", off, call=card, processor=cpu * len(evidence) / len(part))


def _and_wait(pair: Pair, there: Any) -> Any:
    answer: Any = pair.expectation(there)
    answer.device.synchronize()
    return answer


def on_the_card(data: Path) -> None:
    """Print expectations of rows that lie on the card, answered there."""
    import cupy

    for name, n in (("insurance", 1), ("insurance", 1_870), ("mnist", 10_000)):
        pair = Pair(*read(data, name))
        evidence = rows(data, name, pair.p, n)
        X = np.stack(evidence.codes, axis=1).astype(float)
        there = cupy.asarray(np.where(evidence.cardinalities == X, np.nan, X))
        here, cpu = on_processor(partial(pair.expectation, evidence[:1_000]))

        work = partial(_and_wait, pair, there)
        with config_context(progress=False):
            off = float(np.max(np.abs(work().get()[:1_000] - here)) / np.max(np.abs(here)))
            card = median_ms(work)
        word = "images" if name == "mnist" else "row" if n == 1 else "rows"
        task = f"{name}, {n:,} {word} on the card"
        record(task, "float64", off, call=card, processor=cpu * n / min(n, 1_000))


def walks(data: Path) -> None:
    """Print the walks."""
    for name, sizes in (("insurance", (1, 100, 1_870, 1_000_000)), ("abalone", (670, 100_000))):
        p, g = read(data, name)
        plan = Plan.of(p, g)
        a = Expectation(g.n_outputs)
        for n in sizes:
            task = f"{name}, {n:,} row{'s' * (n > 1)}"
            line(task, plan, a, [constants(a, g.weight)], rows(data, name, p, n))
        if name == "insurance":
            some = rows(data, name, p, 1_870)
            m = Moments(2, 1)
            line("insurance, variance, 1,870 rows", plan, m, [constants(m, g.weight)], some)
            for n, t in ((4, 1e-4 * np.arange(1, 5)), (64, 1e-5 * np.arange(1, 65))):
                s = Spectrum(n)
                task = f"insurance, spectrum at {n} frequencies, 1,870 rows"
                line(task, plan, s, [constants(s, g.weight, t)], some, most=7_480 // n)
    p, g = read(data, "mnist")
    a = Expectation(g.n_outputs)
    evidence = rows(data, "mnist", p, 10_000)
    line("mnist, ten classes, 10,000 images", Plan.of(p, g), a, [constants(a, g.weight)], evidence)
    vtree = Vtree.balanced(64)
    p = random_probabilistic(vtree, np.full(64, 8), units=32, deterministic=False, seed=0)
    a = Expectation(0)
    plan = Plan.of(p, None)
    rng = np.random.default_rng(0)
    X = np.where(rng.random((2_000, 64)) < 0.2, -1, rng.integers(0, 8, (2_000, 64)))
    evidence = Evidence.rows(X, p.cardinalities)
    line("latent p, 64 columns, K = 32, 2,000 rows", plan, a, [constants(a, plan.phi)], evidence)


COLUMNS = ["set", "method", "setting", "metric", "value"]
RESULTS = Path(__file__).parent / "results" / "cards.parquet"


def store(paths: list[Path]) -> None:
    """Put what was measured elsewhere into the file of results, in place of the same tasks."""
    new = pd.concat([pd.read_csv(path) for path in paths])
    old = pd.read_parquet(RESULTS)
    keys = ["set", "setting"]
    again = pd.MultiIndex.from_frame(old[keys]).isin(pd.MultiIndex.from_frame(new[keys]))
    pd.concat([old[~again], new[COLUMNS]], ignore_index=True).to_parquet(RESULTS)


def main() -> None:
    """Print the tables that are asked for, by default that of the walks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--grid", action="store_true", help="where a card pays")
    parser.add_argument("--grade", action="store_true", help="the choice, by a stored grid")
    parser.add_argument("--spectral", action="store_true", help="classes, and rows on the card")
    parser.add_argument("--boxes", action="store_true", help="a wrapped booster")
    parser.add_argument("--draws", action="store_true", help="probabilities of wrapped boosters")
    parser.add_argument(
        "--rows", type=int, default=1_000_000, help="of --table, and of the longest line of --boxes"
    )
    parser.add_argument("--name", default="mnist", help="of the images")
    parser.add_argument("--states", type=int, nargs="+", default=[32, 64, 256], help="per node")
    parser.add_argument("--budget", type=float, default=400.0, help="seconds for PyJuice")
    parser.add_argument("--table", action="store_true", help="a large table from end to end")
    parser.add_argument("--learning", action="store_true", help="steps of EM")
    parser.add_argument("--fits", action="store_true", help="trees from start to end")
    parser.add_argument("--pyjuice", action="store_true", help="PyJuice's steps and fits")
    parser.add_argument("--out", type=Path, help="a CSV file for what is measured")
    parser.add_argument("--store", type=Path, nargs="+", help="CSV files to take into the results")
    given = parser.parse_args()
    if given.store:
        store(given.store)
        return
    parts = {
        "grade": lambda: grade(given.data, pd.read_parquet(RESULTS)),
        "grid": lambda: grid(given.data),
        "spectral": lambda: (spectral(given.data), on_the_card(given.data)),
        "boxes": lambda: boxes(given.rows),
        "draws": draws,
        "table": lambda: table(given.rows),
        "learning": lambda: learning(given.data, given.name, given.states),
        "fits": lambda: fits(given.data, given.name, given.states),
        "pyjuice": lambda: pyjuice(given.data, given.name, given.states, given.budget),
    }
    asked = [name for name in parts if getattr(given, name)]
    try:
        for name in asked:
            parts[name]()
        if not asked:
            walks(given.data)
    finally:  # what is there is worth keeping
        if given.out:
            pd.DataFrame(records, columns=COLUMNS).to_csv(given.out, index=False)


if __name__ == "__main__":
    main()
