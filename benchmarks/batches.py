"""Print what tables larger than memory take: scoring, learning, workers, and runs that are killed.

    python -m benchmarks.batches score learn               20 million rows in 900 MB
    python -m benchmarks.batches scale                     one worker of Dask, and two
    python -m benchmarks.batches kills --count 20          kill -9, and --resume
    python -m benchmarks.batches score learn --rows 200000
    python -m benchmarks.batches record --log LOG          lines that were printed, into results

Rows are like those of the insurance table, made by seed, a fifth of the cells unknown, in Parquet
files of a million rows in build/batches. Scoring and learning run in a process whose private
memory the system limits (RLIMIT_DATA), beside the same with rows in memory. Wall seconds mean
something on an idle machine only: the load is printed beside them, and CPU seconds.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import parquet

from expecta import CircuitRegressor, LatentTree
from expecta.datasets import load_insurance

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "batches"
FILE_ROWS = 1_000_000
MISSING_SHARE = 0.2
LIMIT = 900 << 20  # bytes of private memory, fewer than the rows would take
BATCH_ROWS = 1 << 16


def insurance_like(n: int, seed: int) -> pa.Table:
    """Rows of the insurance table at random, numbers moved a little, cells unknown."""
    people = load_insurance(as_frame="dict")
    rng = np.random.default_rng(seed)
    which = rng.integers(0, len(people["age"]), n)
    columns = {}
    for name, values in people.items():
        if name == "charges":
            continue
        cells = np.asarray(values)[which]
        if name == "bmi":
            cells = cells + rng.normal(0, 0.5, n)
        unknown = rng.random(n) < MISSING_SHARE
        if cells.dtype.kind in "OU":
            kinds, codes = np.unique(cells.astype(str), return_inverse=True)
            texts = pa.DictionaryArray.from_arrays(pa.array(codes, mask=unknown), kinds.tolist())
            columns[name] = texts.cast(pa.string())
        else:
            columns[name] = pa.array(cells, mask=unknown)
    return pa.table(columns)


def make_rows(rows: int) -> Path:
    """Write the rows, unless they are there."""
    folder = FOLDER / f"rows-{rows}"
    folder.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, rows, FILE_ROWS)):
        path = folder / f"{number:03}.parquet"
        if not path.exists():
            table = insurance_like(min(FILE_ROWS, rows - first), number)
            parquet.write_table(table, path.with_suffix(".tmp"))
            path.with_suffix(".tmp").rename(path)
    return folder


def make_model() -> Path:
    """Learn from the insurance table, unless that was done."""
    path = FOLDER / "charges.expecta"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        people = load_insurance(as_frame="pandas")
        CircuitRegressor().fit(people.drop(columns="charges"), people["charges"]).save(path)
    return path


def limited(words: list[str], limit: int | None = LIMIT) -> dict[str, float]:
    """Run a command of this file in a process of limited memory; return what it took."""
    begun = time.perf_counter()

    def limit_memory() -> None:
        if limit:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    process = subprocess.Popen(words, preexec_fn=limit_memory, cwd=ROOT)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(words[:4])} failed with status {status}")
    return {
        "wall_s": time.perf_counter() - begun,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024,
    }


def show(what: str, rows: int, took: dict[str, float]) -> None:
    load = os.getloadavg()[0]
    print(
        f"{what:<34} {rows:>11,} rows  {took['wall_s']:7.1f} s  {took['cpu_s']:7.1f} CPU s  "
        f"{rows / took['wall_s']:>11,.0f} rows/s  peak {took['peak_mb']:6,.0f} MB  load {load:.1f}",
        flush=True,
    )


def python(*words: object) -> list[str]:
    return [sys.executable, *map(str, words)]


def score(rows: int) -> None:
    source, model = make_rows(rows), make_model()
    target = FOLDER / "predicted"
    shutil.rmtree(target, ignore_errors=True)
    in_arrow = rows / min(rows, FILE_ROWS) * parquet.read_table(source / "000.parquet").nbytes
    print(f"{rows:,} rows are {in_arrow / 2**20:,.0f} MB in memory; limit {LIMIT >> 20:,} MB")
    words = python("-m", "expecta.cli", "predict", model, source, "-o", target)
    took = limited(words)
    check_last(source, target)
    show("expecta predict, a folder", rows, took)
    some = min(rows, 2 * FILE_ROWS)
    took = limited(python("-m", "benchmarks.batches", "in-memory-score", "--rows", some), None)
    show("predict, rows in memory", some, took)


def check_last(source: Path, target: Path) -> None:
    """Compare the predictions of the last file with the library's."""
    last = sorted(source.glob("*.parquet"))[-1]
    predicted = parquet.read_table(target / last.name)
    want = CircuitRegressor.load(make_model()).predict(parquet.read_table(last))
    if not np.array_equal(predicted["charges_predicted"], want, equal_nan=True):
        raise SystemExit(f"the predictions of {last.name} are not those of the library")
    if len(list(target.glob("*.parquet"))) != len(list(source.glob("*.parquet"))):
        raise SystemExit("not every file has its predictions")


def in_memory_score(rows: int) -> None:
    table = ds.dataset(make_rows(rows)).to_table().slice(0, rows)
    CircuitRegressor.load(make_model()).predict(table)


def learn(rows: int) -> None:
    make_rows(rows)
    words = python("-m", "benchmarks.batches", "learn-batches", "--rows", rows)
    show("LatentTree.fit_batches", rows, limited(words))
    some = min(rows, FILE_ROWS)
    took = limited(python("-m", "benchmarks.batches", "in-memory-learn", "--rows", some), None)
    show("LatentTree.fit, rows in memory", some, took)


def read_batches(folder: Path) -> Iterator[pa.RecordBatch]:
    """Read Parquet files one after the other, a batch at a time."""
    for path in sorted(folder.glob("*.parquet")):
        with parquet.ParquetFile(path) as file:
            yield from file.iter_batches(BATCH_ROWS, use_threads=False)


def learn_batches(rows: int) -> None:
    print(LatentTree().fit_batches(partial(read_batches, make_rows(rows))).learned_)


def in_memory_learn(rows: int) -> None:
    print(LatentTree().fit(ds.dataset(make_rows(rows)).to_table()).learned_)


# -- workers ------------------------------------------------------------------------------


def scale(rows: int, repeats: int = 3) -> None:
    """One worker and two, in turn; then what does not get faster with more of them."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    import dask
    from expecta.dask import predict
    from expecta.dask.shared_model import SharedModel

    source, model = make_rows(rows), CircuitRegressor.load(make_model())
    times: dict[int, list[float]] = {1: [], 2: []}
    frame = dd.read_parquet(source, split_row_groups=True)
    shared = SharedModel.of(model)
    for _ in range(repeats):
        for workers in times:
            with (
                LocalCluster(
                    n_workers=workers, threads_per_worker=1, dashboard_address=None
                ) as cluster,
                Client(cluster) as client,
            ):
                client.run(_warm, shared)
                work = predict(model, frame).sum()
                begun = time.perf_counter()
                dask.compute(work)
                times[workers].append(time.perf_counter() - begun)
    best = {workers: min(taken) for workers, taken in times.items()}
    efficiency = best[1] / (2 * best[2])
    print(f"{rows:,} rows, {frame.npartitions} partitions; load {os.getloadavg()[0]:.1f}")
    print(f"1 worker {best[1]:.2f} s, 2 workers {best[2]:.2f} s: efficiency {efficiency:.0%}")

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        begun = time.perf_counter()
        dask.compute(*[dask.delayed(_nothing)(i, dask_key_name=f"n-{i}") for i in range(2000)])
        per_task = (time.perf_counter() - begun) / 2000
        begun = time.perf_counter()
        client.scatter(shared, broadcast=True)
        broadcast = (time.perf_counter() - begun) / 2
    begun = time.perf_counter()
    shared.load()
    load = time.perf_counter() - begun
    one = predict(model, frame.partitions[0]).compute(scheduler="synchronous")
    begun = time.perf_counter()
    one.to_parquet(FOLDER / "one.parquet")
    write = time.perf_counter() - begun
    n_tasks = frame.npartitions
    work = best[1] / n_tasks
    print(
        f"per task: {work * 1e3:.1f} ms of work, {per_task * 1e3:.2f} ms of the scheduler, "
        f"{write * 1e3:.1f} ms to write; model {len(shared.data) / 2**20:.2f} MB, "
        f"{broadcast * 1e3:.1f} ms to send to a worker, {load * 1e3:.1f} ms to load there"
    )
    for tasks in (n_tasks, 100 * n_tasks):
        for workers in (2, 8, 64):
            wall = max(tasks * work / workers, tasks * per_task) + workers * broadcast + load
            print(
                f"  {tasks:>6,} tasks on {workers:>2} workers: {tasks * work / wall / workers:.0%}"
            )


def _warm(shared: object) -> None:
    shared.load().predict(insurance_like(1000, 0))


def _nothing(number: int) -> int:
    return number


# -- kills --------------------------------------------------------------------------------


def kills(rows: int, count: int) -> None:
    """Kill runs at random moments; what is left goes on, and ends as an undisturbed run does."""
    model, folder = make_model(), FOLDER / "kills"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "in").mkdir(parents=True)
    for number in range(4):
        parquet.write_table(insurance_like(rows // 4, number), folder / "in" / f"{number}.parquet")
    words = python("-m", "expecta.cli", "predict", model, folder / "in", "--part-rows", rows // 40)
    begun = time.perf_counter()
    subprocess.run([*words, "-o", str(folder / "whole")], check=True, cwd=ROOT)
    undisturbed = time.perf_counter() - begun
    rng = random.Random(0)
    killed = finished = 0
    while killed < count:
        shutil.rmtree(folder / "out", ignore_errors=True)
        resume: list[str] = []
        while True:
            process = subprocess.Popen([*words, "-o", str(folder / "out"), *resume], cwd=ROOT)
            try:
                process.wait(rng.uniform(0.3, 1.0) * undisturbed if killed < count else None)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                killed += 1
                resume = ["--resume"] if (folder / "out" / "_expecta.json").exists() else []
                continue
            assert process.returncode == 0
            break
        finished += 1
        for path in sorted((folder / "whole").glob("*.parquet")):
            found = parquet.read_table(folder / "out" / path.name)
            assert found.equals(parquet.read_table(path)), path.name
        assert not list((folder / "out").glob(".*"))
    print(f"killed {killed} times; {finished} outputs, all equal to that of an undisturbed run")


# -- results ------------------------------------------------------------------------------

LINE = re.compile(
    r"(?P<what>.{34}) +(?P<rows>[\d,]+) rows +[\d.]+ s +(?P<cpu_s>[\d.]+) CPU s +[\d,]+ rows/s +"
    r"peak +(?P<peak_mb>[\d,]+) MB  load (?P<load>[\d.]+)"
)
MEMORY = re.compile(r"(?P<rows>[\d,]+) rows are (?P<mb>[\d,]+) MB in memory; limit (?P<limit>\d+)")
KILLED = re.compile(r"killed (?P<kills>\d+) times; (?P<outputs>\d+) outputs, all equal")
SCALED = re.compile(
    r"1 worker (?P<one>[\d.]+) s, 2 workers (?P<two>[\d.]+) s: efficiency (?P<share>\d+)%"
)
TASK = re.compile(
    r"per task: (?P<work>[\d.]+) ms of work, (?P<scheduler>[\d.]+) ms of the scheduler, "
    r"(?P<write>[\d.]+) ms to write; model (?P<model_mb>[\d.]+) MB, (?P<send>[\d.]+) ms to send"
)
EXPECTED = re.compile(r" (?P<tasks>\d+) tasks on +(?P<workers>\d+) workers: (?P<share>\d+)%")


def record(log: Path) -> None:
    """Write what runs printed into benchmarks/results/batches.parquet, which the guide quotes."""
    lines: list[tuple[str, str, str, float]] = []

    def add(what: str, setting: str, **numbers: str) -> None:
        lines.extend((what, setting, k, float(v.replace(",", ""))) for k, v in numbers.items())

    for text in log.read_text().splitlines():
        if found := LINE.search(text):
            numbers = found.groupdict()
            what = numbers.pop("what").strip()
            add(what, numbers["rows"], **numbers)
            rate = float(numbers["rows"].replace(",", "")) / float(numbers["cpu_s"])
            lines.append((what, numbers["rows"], "rows_per_cpu_s", round(rate, -3)))
        elif found := MEMORY.search(text):
            add("rows in memory", found["rows"], **found.groupdict())
        elif found := KILLED.search(text):
            add("kill -9 and --resume", found["kills"], **found.groupdict())
        elif found := SCALED.search(text):
            add("workers of Dask", "measured", one=found["one"], two=found["two"])
            lines.append(("workers of Dask", "measured", "efficiency", int(found["share"]) / 100))
        elif found := TASK.search(text):
            add("a task of Dask, ms", "measured", **found.groupdict())
        elif found := EXPECTED.search(text):
            setting = f"{found['tasks']} tasks, {found['workers']} workers"
            lines.append(("workers of Dask", setting, "efficiency", int(found["share"]) / 100))
    table = pd.DataFrame(lines, columns=["set", "setting", "metric", "value"])
    table.insert(1, "method", "expecta")
    path = ROOT / "benchmarks" / "results" / "batches.parquet"
    if path.exists():  # what was measured again takes the old figures' part
        old = pd.read_parquet(path)
        table = pd.concat([old[~old["set"].isin(table["set"])], table], ignore_index=True)
    table.to_parquet(path)
    print(f"{len(table)} numbers of {table['set'].nunique()} measurements")


COMMANDS = {
    "score": score,
    "learn": learn,
    "scale": scale,
    "in-memory-score": in_memory_score,
    "in-memory-learn": in_memory_learn,
    "learn-batches": learn_batches,
}


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("benchmarks.batches", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("commands", nargs="+", choices=[*COMMANDS, "kills", "record"])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--log", type=Path)
    given = parser.parse_args(words)
    for command in given.commands:
        if command == "kills":
            kills(min(given.rows, 400_000), given.count)
        elif command == "record":
            record(given.log)
        else:
            COMMANDS[command](given.rows)


if __name__ == "__main__":
    main()
