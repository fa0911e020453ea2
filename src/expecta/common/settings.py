"""Set how calls run: threads, progress, and which rows are refused, for a stretch of code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from operator import index


@dataclass(frozen=True)
class Settings:
    """Number of threads (``None``: one per core at hand) and whether to show progress.

    ``progress=None`` shows it where someone looks: when messages go to a terminal, and the
    stages of ``fit`` in a notebook too. ``columns`` says what becomes of rows that lack a
    column: "unknown" or "strict".
    """

    threads: int | None = None
    progress: bool | None = None
    columns: str = "unknown"

    def n_threads(self) -> int:
        """Resolve the number of threads."""
        if self.threads is not None:
            return self.threads
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1

    def shows_progress(self) -> bool:
        """Resolve whether to show progress."""
        return sys.stderr.isatty() if self.progress is None else self.progress


_settings: ContextVar[Settings] = ContextVar("expecta_settings", default=Settings())  # noqa: B039


def current() -> Settings:
    """Return the settings in force."""
    return _settings.get()


@contextmanager
def config_context(
    *, threads: int | None = None, progress: bool | None = None, columns: str | None = None
) -> Iterator[Settings]:
    """Change the settings for the calls inside a ``with`` block.

    No answer depends on them; ``columns="strict"`` refuses rows that lack a column of the model,
    which is otherwise unknown in every row, with a `MissingColumnsWarning`. The settings hold for
    the thread (or task) that enters the block, not for threads of your own that it starts.

    >>> with config_context(threads=1) as settings:
    ...     settings.n_threads()
    1
    """
    if threads is not None and (isinstance(threads, bool) or index(threads) < 1):
        raise ValueError(f"threads must be a whole number of at least 1, not {threads!r}")
    if columns not in (None, "unknown", "strict"):
        raise ValueError(f"columns is 'unknown' or 'strict', not {columns!r:.60}")
    old = current()
    new = replace(
        old,
        threads=old.threads if threads is None else threads,
        progress=old.progress if progress is None else progress,
        columns=old.columns if columns is None else columns,
    )
    token = _settings.set(new)
    try:
        yield new
    finally:
        _settings.reset(token)
