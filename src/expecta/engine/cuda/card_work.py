"""Do work on the card of this process: one piece at a time, and what becomes of its failures."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from threading import RLock
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from expecta.common.errors import DeviceError
from expecta.engine.cuda.devices import CudaDevice, Device

MIN_MEMORY = 1 << 20  # bytes

Result = TypeVar("Result")

_lock = RLock()
_processes: set[int] = set()
_kept: list[WeakKeyDictionary[Any, Any]] = []


def kept_on_card() -> WeakKeyDictionary[Any, Any]:
    """Return a place for what stays on the card between calls, until its memory is full."""
    _kept.append(WeakKeyDictionary())
    return _kept[-1]


@cache
def cuda_device(process: int) -> CudaDevice:
    """Return the card of a process; a fork of a process that used one has none."""
    if any(before != process for before in _processes):
        raise DeviceError(
            "a forked process cannot use the card of its parent: start it by 'spawn' "
            "(multiprocessing.get_context), or use device='cpu'"
        )
    device = CudaDevice()
    _processes.add(process)
    return device


def on_the_card(work: Callable[[Device], Result]) -> Result:
    """Do work on the card; where its memory is full, again with half of what was allowed.

    Whatever else fails is a `DeviceError`, never a part of a result.
    """
    device = cuda_device(os.getpid())
    with _lock:
        while True:
            try:
                return work(device)
            except device.full:
                _forget()
                device.memory //= 2
                if device.memory < MIN_MEMORY:
                    raise DeviceError("the card's memory is full; use device='cpu'") from None
            except device.failures as problem:
                _forget()
                raise DeviceError(f"the card failed ({problem}); use device='cpu'") from None


def _forget() -> None:
    for kept in _kept:
        kept.clear()
