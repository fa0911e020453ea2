"""Run computations beside the event loop: one lane at a time, with a limit on what waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from expecta.common.settings import config_context
from expecta.queries.impossible import no_warning
from expecta.serve.problems import ProblemError, busy, problem_of

T = TypeVar("T")
SHORT = 0.005  # seconds: what takes less runs on the event loop, without a thread
MAX_SHORT_ROWS = 256
GATHER = 0.001  # seconds that a batch waits to be as large as the one before
SMOOTHING = 0.2  # weight of the newest batch in the mean time


class ComputeLane:
    """One thread, and a limit on what waits for it.

    Parameters
    ----------
    limit
        How many computations run or wait; a further one is refused with 429.
    timeout
        Seconds after which the caller is told 503. What has begun is finished, for nobody; what
        has not is left out.
    threads
        That kernels run on; None for one per core.
    """

    def __init__(self, limit: int, timeout: float, threads: int | None) -> None:
        self.limit, self.timeout, self.threads = limit, timeout, threads
        self.waiting = 0
        self._pool = ThreadPoolExecutor(1, "expecta-serve")

    async def run(self, work: Callable[[], T], *, timeout: float | None = None) -> T:
        """Compute on the lane's thread; errors of the library become problems."""
        if self.waiting >= self.limit:
            raise busy(f"{self.waiting} computations are waiting already")
        self.waiting += 1
        future = self._pool.submit(self.quietly, work)
        future.add_done_callback(lambda _: self._done())
        limit = self.timeout if timeout is None else timeout
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), limit)
        except TimeoutError:
            raise ProblemError(
                503,
                f"there is no answer within {limit:g} seconds; ask for less, or start the service "
                f"with a longer --timeout",
                {"Retry-After": "1"},
            ) from None

    def _done(self) -> None:
        self.waiting -= 1

    def quietly(self, work: Callable[[], T], threads: int | None = None) -> T:
        """Compute here and now: without warnings, and with errors as problems."""
        with config_context(threads=threads or self.threads, progress=False), no_warning():
            try:
                return work()
            except Exception as error:
                raise problem_of(error) from error

    def close(self) -> None:
        """Let go of the thread, once what has begun is done."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class MicroBatches:
    """Gathers rows of concurrent requests, and computes them together.

    Whatever has arrived when the last batch is done is the next one: a single request waits for
    nothing, and many share the cost of a call. Where the last batch was larger than what waits, its
    clients are given a millisecond to come again. Requests with other options are other batches.

    Parameters
    ----------
    compute
        Answers for rows of cells, one answer for each, given options.
    lane
        Where long batches run; short ones run on the event loop.
    max_rows
        Of a batch.
    """

    def __init__(
        self,
        compute: Callable[[list[list[Any]], Any], list[Any]],
        lane: ComputeLane,
        max_rows: int = 1024,
    ) -> None:
        self._compute, self._lane, self._max_rows = compute, lane, max_rows
        self._pending: dict[Any, list[tuple[list[list[Any]], asyncio.Future[list[Any]]]]] = {}
        self._seconds: dict[Any, float] = {}  # that batches took of late, by options
        self._is_busy = False
        self._n_waiting, self._last = 0, 1  # requests that wait, and those of the last batch
        self._timer: asyncio.Handle | None = None

    async def answer(self, rows: list[list[Any]], options: Any) -> list[Any]:
        """Return an answer for each row."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Any]] = loop.create_future()
        self._pending.setdefault(options, []).append((rows, future))
        self._n_waiting += 1
        if not self._is_busy:
            self._is_busy = True
            self._gather()
        elif self._timer is not None and self._n_waiting >= self._last:
            self._timer.cancel()
            self._gather()
        return await future

    def _gather(self) -> None:
        """Compute soon: after a moment, if the last batch was larger than what waits now."""
        loop = asyncio.get_running_loop()
        self._timer = None
        if self._n_waiting >= self._last:
            loop.call_soon(self._next)
        else:
            self._timer = loop.call_later(GATHER, self._next)

    def _next(self) -> None:
        """Compute the batch that has waited longest."""
        self._timer = None
        if not self._pending:
            self._is_busy = False
            return
        options = next(iter(self._pending))
        waiting, n_rows = self._pending.pop(options), 0
        batch: list[Any] = []
        while waiting and (not batch or n_rows + len(waiting[0][0]) <= self._max_rows):
            batch.append(waiting.pop(0))
            n_rows += len(batch[-1][0])
        if waiting:
            self._pending[options] = waiting
        self._last = len(batch)
        self._n_waiting -= len(batch)
        loop = asyncio.get_running_loop()
        if n_rows <= MAX_SHORT_ROWS and self._seconds.get(options, 1.0) < SHORT:
            self._settle(batch, self._run(batch, options, threads=1))
            loop.call_soon(self._resume)
        else:
            self._task = loop.create_task(self._on_thread(batch, options))

    async def _on_thread(self, batch: list[Any], options: Any) -> None:
        try:
            answers = await self._lane.run(lambda: self._run(batch, options))
        except ProblemError as problem:
            answers = [problem] * len(batch)
        self._settle(batch, answers)
        self._resume()

    def _resume(self) -> None:
        """Go on with what has arrived meanwhile."""
        if self._pending:
            self._gather()
        else:
            self._is_busy = False

    def _run(self, batch: list[Any], options: Any, threads: int | None = None) -> list[Any]:
        """Return the answers, or the problem, of each request."""
        start = time.perf_counter()
        try:
            rows = [row for rows, _ in batch for row in rows]
            answers = self._lane.quietly(lambda: self._compute(rows, options), threads)
        except Exception as error:
            if len(batch) > 1:  # one of them is at fault; the others have their answers
                return [part for one in batch for part in self._run([one], options, threads)]
            return [error]
        spent = time.perf_counter() - start
        before = self._seconds.get(options, spent)
        if len(self._seconds) > 1000:
            self._seconds.clear()
        # What other programs on the machine take of the time is not the batch's: a moment in which
        # they run counts little.
        self._seconds[options] = before + SMOOTHING * (min(spent, 2 * before) - before)
        parts, first = [], 0
        for given, _ in batch:
            parts.append(answers[first : first + len(given)])
            first += len(given)
        return parts

    @staticmethod
    def _settle(batch: list[Any], answers: list[Any]) -> None:
        for (_, future), answer in zip(batch, answers, strict=True):
            if future.done():  # its client is gone
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
