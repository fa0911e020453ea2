"""Show how far a long call is: bars, and stages with an estimate of the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from expecta.common.settings import current

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.status import Status

Method = TypeVar("Method", bound=Callable[..., Any])

SHOWN_AFTER = 1.0  # seconds


class StageTime(NamedTuple):
    """What a stage took, in seconds."""

    wall: float
    cpu: float  # of all threads


_open: ContextVar[Stages | None] = ContextVar("expecta_stages", default=None)
_record: ContextVar[dict[str, StageTime] | None] = ContextVar("expecta_record", default=None)


@contextmanager
def record_stages() -> Iterator[dict[str, StageTime]]:
    """Record what the stages of calls take inside a ``with`` block, by their names."""
    record: dict[str, StageTime] = {}
    token = _record.set(record)
    try:
        yield record
    finally:
        _record.reset(token)


def begin_stage(name: str) -> None:
    """Begin a stage of the call that goes on, if it has such a one."""
    stages = _open.get()
    if stages is not None and name in stages.shares:
        stages.begin(name)


def in_stages(shares: Mapping[str, float]) -> Callable[[Method], Method]:
    """Make a method show its stages, of which the first begins at once; see :class:`Stages`."""

    def decorate(method: Method) -> Method:
        @wraps(method)
        def staged(self: Any, *args: Any, **options: Any) -> Any:
            with Stages(type(self).__name__, shares) as stages:
                stages.begin(next(iter(shares)))
                return method(self, *args, **options)

        return cast(Method, staged)

    return decorate


class Progress:
    """A progress bar that appears once a call has taken a second, where it is wanted.

    ``total`` is how much there is to do, ``None`` if nobody knows.
    """

    def __init__(self, label: str, total: int | None) -> None:
        self._label, self._total = label, total
        self._shown = current().shows_progress()
        self._started = time.monotonic()
        self._done = 0
        self._bar: Bar | None = None
        self._stages = _open.get()

    def __enter__(self) -> Progress:
        return self

    def advance(self, amount: int = 1, label: str | None = None) -> None:
        """Count some of the total as done; a label says what has been reached."""
        self._done += amount
        if self._stages is not None:  # which have one line for all
            of = "" if self._total is None else f" of {self._total:,}"
            self._stages.note(label or f"{self._label} {self._done:,}{of}")
            return
        if not self._shown:
            return
        if self._bar is None and time.monotonic() - self._started > 1.0:
            from rich.console import Console
            from rich.progress import Progress as Bar

            self._bar = Bar(transient=True, console=Console(stderr=True))
            self._task = self._bar.add_task(self._label, total=self._total)
            self._bar.start()
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, description=label or self._label)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


class Stages:
    """The stages of one call, shown where someone looks once it has taken a second.

    In a terminal one line is rewritten; elsewhere, in a notebook or where progress was asked
    for, each stage is a line. The time left is an estimate: what is done took the share of
    the whole that is given for it, and so will the rest.

    Parameters
    ----------
    label
        What the call is.
    shares
        About what share of the time each stage takes, in their order.
    """

    def __init__(self, label: str, shares: Mapping[str, float]) -> None:
        self._label, self.shares = label, shares
        self._shown = current().shows_progress() or (current().progress is None and _in_notebook())
        self._name: str | None = None
        self._status: Status | None = None
        self._token: Token[Stages | None] | None = None
        self._begun = self._wall = time.perf_counter()
        self._cpu = time.process_time()

    def __enter__(self) -> Stages:
        if _open.get() is None:  # a call within a call is part of its stage
            self._token = _open.set(self)
        return self

    def begin(self, name: str) -> None:
        """Begin a stage, which ends the one before; what is past does not begin again."""
        names = list(self.shares)
        if self._name is None or names.index(name) > names.index(self._name):
            self._end()
            self._name = name
            self.note()

    def note(self, detail: str = "") -> None:
        """Show the stage, with what has been reached in it."""
        if not self._shown or self._token is None or self._name is None:
            return
        elapsed = time.perf_counter() - self._begun
        if elapsed < SHOWN_AFTER:
            return
        names = list(self.shares)
        at = names.index(self._name)
        done, whole = sum(list(self.shares.values())[:at]), sum(self.shares.values())
        text = f"{self._label}: {self._name} ({at + 1} of {len(names)}), {elapsed:.0f} s so far"
        if done > 0:
            spent = self._wall - self._begun  # before this stage
            left = max(0.0, spent * whole / done - elapsed)
            text += f", about {left:.0f} s left"
        if sys.stderr.isatty():
            self._rewrite(f"{text} {detail}")
        elif not detail:
            print(text, file=sys.stderr, flush=True)

    def _rewrite(self, text: str) -> None:
        if self._status is None:
            from rich.console import Console

            self._status = Console(stderr=True).status(text)
            self._status.start()
        else:
            self._status.update(text)

    def _end(self) -> None:
        """Record the stage that went on."""
        wall, cpu = time.perf_counter(), time.process_time()
        record = _record.get()
        if record is not None and self._name is not None and self._token is not None:
            before = record.get(self._name, StageTime(0.0, 0.0))
            record[self._name] = StageTime(
                before.wall + wall - self._wall, before.cpu + cpu - self._cpu
            )
        self._wall, self._cpu = wall, cpu

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()
        if self._status is not None:
            self._status.stop()
        if self._token is not None:
            _open.reset(self._token)


def _in_notebook() -> bool:
    """Whether a notebook's kernel runs this."""
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"
