"""Numbers and times of a column, in words."""

from __future__ import annotations

import numpy as np

from expecta.common.text import figure
from expecta.tables.number_column import NumberColumn

__all__ = ["is_time", "named", "when"]

SECOND, MINUTE, LONG = 1_000_000, 60_000_000, 4 * 86_400_000_000  # in microseconds


def is_time(column: NumberColumn) -> bool:
    """Whether a column has dates, times or durations."""
    return column.kind in ("date", "datetime", "duration")


def when(column: NumberColumn, low: float, high: float) -> str:
    """Write a range of numbers or times; a single one where they are the same."""
    first, last = (column._text(one, 4) if is_time(column) else figure(one) for one in (low, high))
    return first if first == last else f"{first} to {last}"


def named(column: NumberColumn, low: float, high: float) -> list[tuple[float, str]] | None:
    """Return ticks of an axis of times; None for numbers, which need no names."""
    if not is_time(column):
        return None
    at = np.linspace(low, high, 7)[1::2] if high > low else np.array([low])
    unit = SECOND if column.kind == "duration" and high - low > MINUTE else 1
    texts = [column._text(unit * round(one / unit), 4) for one in at.tolist()]
    if column.kind != "duration" and high - low > LONG:
        texts = [text[:10] for text in texts]  # the day
    return list(zip(at.tolist(), texts, strict=True))
