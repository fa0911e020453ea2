"""Start a service in processes of its own, for benchmarks and tests, and end it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[1]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _environment() -> dict[str, str]:
    paths = [str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


class Process:
    """A server: its address, its process, and its log."""

    def __init__(self, words: list[str], log: Path, ready: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = log
        words = [sys.executable, "-m", *words, "--port", str(self.port)]
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                words, env=_environment(), stdout=out, stderr=subprocess.STDOUT
            )
        self._wait(self.url + ready)

    def _wait(self, address: str, seconds: float = 180.0) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            try:
                if httpx.get(address, timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        self.process.kill()
        raise RuntimeError(f"the server did not start:\n{self.log.read_text()[-4000:]}")

    def children(self) -> list[int]:
        """The processes that it started."""
        task = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(word) for word in task.read_text().split()]

    def memory(self) -> dict[int, int]:
        """Resident bytes of the processes that it started, or of itself where there are none."""
        sizes = {}
        for process in self.children() or [self.process.pid]:
            with suppress(FileNotFoundError, ProcessLookupError):
                pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
                sizes[process] = pages * os.sysconf("SC_PAGE_SIZE")
        return sizes

    def cpu_seconds(self) -> float:
        """CPU time that the process has taken, of all its threads."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> int:
        """Tell it to end, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@contextmanager
def service(folder: Path, models, *options):
    """Run ``expecta serve`` until the block ends."""
    words = ["expecta.cli", "serve", *(f"{name}={path}" for name, path in models.items())]
    process = Process([*words, *map(str, options)], folder / "service.log", "/health/ready")
    try:
        yield process
    finally:
        if process.process.poll() is None:
            process.stop()


@contextmanager
def bare_service(folder: Path):
    """Run a FastAPI endpoint that returns a constant: the limit of what a service can do."""
    process = Process(["benchmarks.bare_endpoint"], folder / "bare.log", "/constant")
    try:
        yield process
    finally:
        process.stop()
