"""Run numbered cases in processes that may die, and count what becomes of them."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

BLOCK = 500  # cases that are given to a worker at once
MAX_SECONDS = 5.0  # of one case, of processor time: other programs may run
MAX_WALL_SECONDS = 300.0
START_SECONDS = 3600.0  # until a worker is ready, on a busy machine
MAX_BYTES = 1 << 30  # of one worker, beyond what it has when it starts
MAX_KEPT = 100  # failures of which the input is kept


def worker_of(attack, seed, build):
    """Return a function of a case's number: its outcome in a word, or an exception."""
    if attack == "files":
        from .mutations import FileAttack

        return FileAttack(seed, build)
    from .query_texts import QueryAttack

    return QueryAttack(seed)


def work(attack, seed, build):
    """Read blocks from standard input; write each case's number as it begins, then the counts."""
    import resource
    import warnings

    out = os.dup(1)
    os.dup2(2, 1)  # what a case prints is no answer
    case_of = worker_of(attack, seed, build)
    for case in range(-1, -41, -1):  # compile and import before memory is limited
        with suppress(Exception):  # it is told when it has a number
            case_of(case)
    used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (used + MAX_BYTES, used + MAX_BYTES))
    os.write(out, b"ready\n")
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        first, last = map(int, line.split())
        counts, failures = Counter(), []
        for case in range(first, last):
            os.write(out, b"%d\n" % case)
            try:
                counts[case_of(case)] += 1
            except Exception as problem:
                trace = traceback.format_exception(problem)
                what = f"{type(problem).__name__}: {problem!s:.300}"
                failures.append({"case": case, "what": what, "where": "".join(trace)[-2500:]})
                counts["failure"] += 1
        os.write(out, json.dumps({"counts": counts, "failures": failures}).encode() + b"\n")


class Worker:
    """A process that works through blocks, and is watched."""

    def __init__(self, attack, seed):
        words = [sys.executable, "-m", "benchmarks.hostile", attack, "--worker", "--seed", seed]
        self.process = subprocess.Popen(
            [str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.waiting = b""
        if self.line(START_SECONDS, START_SECONDS) != b"ready":
            raise RuntimeError("a worker does not start")

    def seconds(self):
        """Return the processor time that the process has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def line(self, seconds=MAX_SECONDS, wall_seconds=MAX_WALL_SECONDS):
        """Return the next line; None at the end; TimeoutError after too much work."""
        begun, started = None, time.monotonic()
        while b"\n" not in self.waiting:
            if not select.select([self.process.stdout], [], [], 1.0)[0]:
                begun = self.seconds() if begun is None else begun
                waited = time.monotonic() - started
                if self.seconds() - begun > seconds or waited > wall_seconds:
                    raise TimeoutError
                continue
            data = os.read(self.process.stdout.fileno(), 65_536)
            if not data:
                return None
            self.waiting += data
        line, _, self.waiting = self.waiting.partition(b"\n")
        return line

    def block(self, first, last):
        """Work through cases; return counts, failures, and the number of the next case."""
        self.process.stdin.write(b"%d %d\n" % (first, last))
        self.process.stdin.flush()
        case = first
        while True:
            try:
                line = self.line()
            except TimeoutError:
                what = f"more than {MAX_SECONDS:g} s"
                break
            if line is None:
                what = f"the process ended with {self.process.wait()}"
                break
            if line.startswith(b"{"):
                found = json.loads(line)
                return Counter(found["counts"]), found["failures"], last
            case = int(line)
        self.stop()
        return Counter(failure=1), [{"case": case, "what": what, "where": ""}], case + 1

    def stop(self):
        """End the process; one that still answers removes its files."""
        with suppress(OSError):
            self.process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Run:
    """An attack, how far it has come, and what it found; kept in a file."""

    def __init__(self, attack, seed, build, *, fresh=False):
        self.attack, self.seed, self.build = attack, seed, build
        self.path = build / f"{attack}-{seed}.json"
        self.lock = threading.Lock()
        self.state = {"done": [], "counts": {}, "failures": [], "seconds": 0.0}
        if self.path.exists() and not fresh:
            self.state = json.loads(self.path.read_text())

    def finish(self, count, processes):
        """Run the cases up to a number, in whole blocks, that were not run yet; return failures."""
        self.build.mkdir(parents=True, exist_ok=True)
        self.told = time.monotonic()
        blocks = iter(sorted(set(range(-(-count // BLOCK))) - set(self.state["done"])))
        with ThreadPoolExecutor(processes) as pool:
            for work in [pool.submit(self._work, blocks) for _ in range(processes)]:
                work.result()
        self._tell()
        for failure in self.state["failures"][:MAX_KEPT]:
            print(f"  case {failure['case']}: {failure['what']}")
        return len(self.state["failures"])

    def _work(self, blocks):
        worker = None
        while True:
            with self.lock:
                block = next(blocks, None)
            if block is None:
                break
            begun = time.monotonic()
            first, last = block * BLOCK, (block + 1) * BLOCK
            counts, failures = Counter(), []
            while first < last:
                worker = worker or Worker(self.attack, self.seed)
                more, wrong, after = worker.block(first, last)
                if worker.process.poll() is not None:
                    worker = None
                    more["not counted"] += after - 1 - first  # died after these
                counts += more
                failures += wrong
                first = after
            self._keep(block, counts, failures, time.monotonic() - begun)
        if worker is not None:
            worker.stop()

    def _keep(self, block, counts, failures, seconds):
        with self.lock:
            state = self.state
            state["done"] = sorted([*state["done"], block])
            state["counts"] = dict(Counter(state["counts"]) + counts)
            state["failures"] += failures
            state["seconds"] += seconds
            beside = self.path.with_suffix(".new")
            beside.write_text(json.dumps(state))
            beside.replace(self.path)
            if time.monotonic() - self.told > 60:
                self._tell()

    def _tell(self):
        self.told = time.monotonic()
        counts = self.state["counts"]
        shown = ", ".join(f"{number:,} {what}" for what, number in sorted(counts.items()))
        total, failed = sum(counts.values()), len(self.state["failures"])
        print(
            f"{self.attack}, seed {self.seed}: {total:,} cases ({shown}), {failed} failures, "
            f"{self.state['seconds']:,.0f} s",
            flush=True,
        )
