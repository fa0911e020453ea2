"""Run work on several threads: kernels run without the GIL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def run_on_threads(do: Callable[..., None], calls: Sequence[tuple[Any, ...]], threads: int) -> None:
    """Call ``do`` with each tuple of arguments, on as many threads."""
    if len(calls) <= 1 or threads == 1:
        for call in calls:
            do(*call)
        return
    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(do, *call) for call in calls]:
            future.result()
