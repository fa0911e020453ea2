"""Treat rows whose evidence has probability zero by one rule, for all queries."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import numpy as np

from expecta.common.arrays import Bools
from expecta.common.errors import ImpossibleEvidenceError, ImpossibleEvidenceWarning

PACKAGE = str(Path(__file__).parent.parent) + os.sep


def check_possible(impossible: Bools, on_impossible: str) -> Bools:
    """Warn once about impossible rows, or raise; returns which rows they are.

    ``on_impossible`` is ``"nan"`` (the caller puts NaN there) or ``"raise"``.
    """
    if on_impossible not in ("nan", "raise"):
        raise ValueError(f'on_impossible is "nan" or "raise", not {on_impossible!r}')
    count = int(np.count_nonzero(impossible))
    if count:
        rows = "row has" if count == 1 else "rows have"
        message = (
            f"{count} of {len(impossible)} {rows} probability zero under p, "
            f"the first is row {int(np.argmax(impossible))}"
        )
        if on_impossible == "raise":
            raise ImpossibleEvidenceError(message)
        warnings.warn(
            f"{message}; given the impossible nothing is expected (NaN)",
            ImpossibleEvidenceWarning,
            level_of_caller(),
        )
    return impossible


def level_of_caller() -> int:
    """Count the frames from the one that warns up to the first outside this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
