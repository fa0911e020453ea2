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
    column: "unknown" or "strict". ``device`` is "cpu", "cuda", or "auto" (a card where one is
    there and pays), ``precision`` that of states on a card.
    """

    threads: int | None = None
    progress: bool | None = None
    columns: str = "unknown"
    device: str = "cpu"
    precision: str = "float64"

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
    *,
    threads: int | None = None,
    progress: bool | None = None,
    columns: str | None = None,
    device: str | None = None,
    precision: str | None = None,
) -> Iterator[Settings]:
    """Change the settings for the calls inside a ``with`` block.

    No answer depends on them. The settings hold for the thread (or task) that enters the block,
    not for threads of your own that it starts. What is None stays as it was.

    Parameters
    ----------
    threads
        How many threads kernels run on.
    progress
        Whether to show how far long calls are.
    columns
        ``"strict"`` refuses rows that lack a column of the model, which is otherwise unknown in
        every row, with a `MissingColumnsWarning` (``"unknown"``).
    device
        ``"cuda"`` computes circuits, means of wrapped trees, and the passes of EM over trees, on a
        card (``pip install 'expecta[gpu]'``), ``"auto"`` where one is there and a model of the cost
        says that it pays, ``"cpu"`` never.
    precision
        ``"float32"`` is good to about 1e-5 relative on a card; ``"float64"``.

    Yields
    ------
    Settings
        Those inside the block.

    Examples
    --------
    >>> with config_context(threads=1) as settings:
    ...     settings.n_threads()
    1
    """
    if threads is not None and (isinstance(threads, bool) or index(threads) < 1):
        raise ValueError(f"threads must be a whole number of at least 1, not {threads!r}")
    if columns not in (None, "unknown", "strict"):
        raise ValueError(f"columns is 'unknown' or 'strict', not {columns!r:.60}")
    if device not in (None, "cpu", "cuda", "auto"):
        raise ValueError(f"device is 'cpu', 'cuda' or 'auto', not {device!r:.60}")
    if precision not in (None, "float64", "float32"):
        raise ValueError(f"precision is 'float64' or 'float32', not {precision!r:.60}")
    old = current()
    new = replace(
        old,
        threads=old.threads if threads is None else threads,
        progress=old.progress if progress is None else progress,
        columns=old.columns if columns is None else columns,
        device=old.device if device is None else device,
        precision=old.precision if precision is None else precision,
    )
    token = _settings.set(new)
    try:
        yield new
    finally:
        _settings.reset(token)
