"""Run work on several threads, which are kept: kernels run without the GIL."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from expecta.common.settings import current

T = TypeVar("T")
R = TypeVar("R")


class _KeptThreads:
    """The threads of this process that help the one that calls; as many as were ever asked for."""

    def __init__(self) -> None:
        self._lock, self._n = Lock(), 0
        self._pool: ThreadPoolExecutor | None = None

    def help(self, work: Callable[[], None], n: int) -> list[Future[None]]:
        """Start work on up to n threads, each in a copy of the caller's context."""
        with self._lock:
            if self._pool is None or self._n < n:
                if self._pool is not None:
                    self._pool.shutdown(wait=False)  # what was started goes on
                self._pool, self._n = ThreadPoolExecutor(n, "expecta"), n
            try:
                return [self._pool.submit(copy_context().run, work) for _ in range(n)]
            except RuntimeError:  # the interpreter is about to end: no new threads
                return []


_threads = _KeptThreads()


def _forget() -> None:
    """Begin anew in a forked process, which has none of its parent's threads."""
    global _threads
    _threads = _KeptThreads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def run_on_threads(do: Callable[..., None], calls: Sequence[tuple[Any, ...]], threads: int) -> None:
    """Call ``do`` with each tuple of arguments, on as many threads, the calling one among them.

    Threads are kept between calls, and have the settings of the caller. A call may come from
    within another: who calls works too, and waits for nothing that has not begun. An error
    ends it, once what has begun is done; of several it is that of the first call, as on one thread.
    """
    threads = min(threads, len(calls))
    if threads <= 1:
        for call in calls:
            do(*call)
        return
    waiting = deque(enumerate(calls))
    failed: dict[int, Exception] = {}

    def work() -> None:
        try:
            while waiting:
                try:
                    number, call = waiting.popleft()
                except IndexError:  # another thread took the last
                    return
                try:
                    do(*call)
                except Exception as error:  # calls before this one have begun, and may fail too
                    failed[number] = error
                    waiting.clear()
        except BaseException:
            waiting.clear()
            raise

    helpers = _threads.help(work, threads - 1)
    try:
        work()
    finally:
        begun = [helper for helper in helpers if not helper.cancel()]
        errors = [helper.exception() for helper in begun]
    for error in errors:
        if error is not None:
            raise error
    if failed:
        raise failed.pop(min(failed))


def one_blas_thread() -> Any:
    """Keep matrix products on the thread that asks for them: rows are shared out already."""
    return _libraries().limit(limits=1, user_api="blas")


@cache
def _libraries() -> Any:
    """Find the libraries of this process once: to look for them costs more than many an answer."""
    import scipy.linalg.cython_blas  # noqa: F401  # whose products kernels compute with
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def map_on_threads(do: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return what ``do`` makes of each item, on as many threads as the settings allow."""
    results: dict[int, R] = {}

    def fill(number: int, item: T) -> None:
        results[number] = do(item)

    run_on_threads(fill, list(enumerate(items)), current().n_threads())
    return [results[number] for number in range(len(results))]
