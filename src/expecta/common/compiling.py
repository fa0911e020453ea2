"""Compile beside the work that goes on: by a process of its own, and with a word to who waits."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from typing import Any

from numba.core import event

from expecta.common.kernels import is_cached
from expecta.common.settings import current

WITHIN = "EXPECTA_COMPILES"  # set where a process was started to compile
MAX_WAIT = 300.0  # seconds for another process, before this one compiles itself
ABOUT = "expecta: compiling for this machine, once; it takes about half a minute"

_started: dict[str, subprocess.Popen[bytes]] = {}


def compile_beside(kernel: Any, statement: str) -> None:
    """Start a process that compiles a kernel by running a statement, where that saves time.

    It does where the kernel is neither in use nor in the cache, there is a cache, and a second
    core. The kernel's first call waits for it, by :func:`await_compiled`.
    """
    if statement in _started or WITHIN in os.environ or current().n_threads() < 2:
        return
    if is_cached(kernel) is not False or getattr(sys, "frozen", False) or not sys.executable:
        return
    try:
        process = start_process(statement)
    except OSError:  # no process is to be had: the kernel is compiled where it is called
        return
    _started[statement] = process
    atexit.register(process.kill)


def start_process(statement: str) -> subprocess.Popen[bytes]:
    """Start a process that runs a statement silently, with the modules of this one."""
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", statement],
        env={
            **os.environ,
            WITHIN: "1",
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def await_compiled() -> None:
    """Wait for the processes that were started; what they could not do is done in this one."""
    while _started:
        _, process = _started.popitem()
        try:
            process.wait(MAX_WAIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        atexit.unregister(process.kill)


class _Announcement(event.Listener):  # type: ignore[misc]
    """Says once that the package compiles, where progress is shown."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: Any) -> None:
        """Say so when a kernel of the package is compiled."""
        kernel = event.data["dispatcher"].py_func
        if (
            not self.said
            and kernel.__module__.startswith("expecta.")
            and current().shows_progress()
        ):
            self.said = True
            print(ABOUT, file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        """Say nothing: there is more to come."""


event.register("numba:compile", _Announcement())
