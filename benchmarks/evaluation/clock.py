"""Time and memory of a call."""

from __future__ import annotations

import time
from pathlib import Path


def measure(do, repeats: int = 7) -> dict[str, float]:
    """Least wall and CPU seconds of a call that has run before."""
    do()
    walls, cpus = [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        do()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
        if sum(walls) > 20:
            break
    return {"wall seconds": min(walls), "CPU seconds": min(cpus)}


def memory_peak():
    """Forget the peak of memory so far; returns what tells how far it rose since, in MB."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:  # not on this machine
        return lambda: float("nan")
    before = memory("VmRSS")
    return lambda: max(0.0, memory("VmHWM") - before)


def memory(field: str) -> float:
    """One field of the process's memory report, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise KeyError(field)


def times(call, repeats: int) -> list[float]:
    """Seconds of each of several calls."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return found
