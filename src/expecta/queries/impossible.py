"""Treat rows whose evidence has probability zero by one rule, for all queries."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import numpy as np

from expecta.common.arrays import Bools
from expecta.common.errors import ImpossibleEvidenceError, ImpossibleEvidenceWarning

_MESSAGES: ContextVar[list[str] | None] = ContextVar("messages", default=None)
PACKAGE = str(Path(__file__).parent.parent) + os.sep


def check_possible(impossible: Bools, on_impossible: str) -> Bools:
    """Warn once about impossible rows, or raise; returns which rows they are.

    ``on_impossible`` is ``"nan"`` (the caller puts NaN there) or ``"raise"``.
    """
    if on_impossible not in ("nan", "raise"):
        raise ValueError(f'on_impossible is "nan" or "raise", not {on_impossible!r}')
    count = int(np.count_nonzero(impossible))
    if count:
        rows, have = "row" if len(impossible) == 1 else "rows", "has" if count == 1 else "have"
        message = (
            f"{count} of {len(impossible)} {rows} {have} probability zero under p, "
            f"the first is row {int(np.argmax(impossible))}"
        )
        if on_impossible == "raise":
            raise ImpossibleEvidenceError(message)
        _warn(f"{message}; their expectation is undefined (NaN)")
    return impossible


class OneWarning:
    """A context in which impossible rows are warned of once, at its end, by the first message.

    For questions that ask several queries about the same rows. Contexts may be nested: the
    outermost warns.
    """

    def __enter__(self) -> OneWarning:
        self._outer = _MESSAGES.get()
        if self._outer is None:
            _MESSAGES.set([])
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._outer is None:
            messages = _MESSAGES.get()
            _MESSAGES.set(None)
            if messages and kind is None:
                _warn(messages[0])


@contextmanager
def no_warning() -> Iterator[None]:
    """Say nothing of impossible rows, for callers that tell of them in their own words."""
    token = _MESSAGES.set([])
    try:
        yield
    finally:
        _MESSAGES.reset(token)


def _warn(message: str) -> None:
    messages = _MESSAGES.get()
    if messages is None:
        warnings.warn(message, ImpossibleEvidenceWarning, level_of_caller())
    else:
        messages.append(message)


def level_of_caller() -> int:
    """Count the frames from the one that warns up to the first outside this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
