"""Bars and dots with a label each, one line below the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from expecta.report.figures.canvas import TALL, WIDTH, Canvas, Scale, fit, letters, ticks
from expecta.report.html import Html

__all__ = ["Bar", "Dot", "bars", "dots"]

STEP = 23.0  # from line to line
LABEL = 132.0  # widest label beside its line


@dataclass(frozen=True)
class Bar:
    """A label (and a second line of it), a value as it is drawn and as it is written, a mark."""

    label: str
    value: float
    written: str
    mark: float | None = None
    below: str = ""


@dataclass(frozen=True)
class Dot:
    """A label, a value with its spread, another beside it, and a mark; hollow where rare."""

    label: str
    value: float
    spread: float
    other: float | None = None
    mark: float | None = None
    hollow: bool = False


def bars(rows: Sequence[Bar], label: str, *, whole: float | None = None) -> Html:
    """Draw bars from zero; a mark is a line across its bar.

    Labels stand beside the bars, or above them where they are long. ``whole`` is the end of
    the scale, by default the longest bar.
    """
    above = max(letters(row.label) for row in rows) > LABEL or any(row.below for row in rows)
    lines = max(1 + bool(row.below) for row in rows) if above else 0
    step = STEP + TALL * lines + (4 if above else 0)
    left = 0.0 if above else max(letters(row.label) for row in rows) + 8
    room = max(letters(row.written) for row in rows) + 8
    ends = [row.value for row in rows] + [row.mark for row in rows if row.mark is not None]
    low, high = min(0.0, *ends), max(0.0, *ends) if whole is None else whole
    if not high > low:
        high = low + 1.0
    scale = Scale(low, high, left + (room if low < 0 else 0.0), WIDTH - room)
    canvas = Canvas(step * len(rows) + 4)
    for place, row in enumerate(rows):
        y = step * place
        if above:
            canvas.text(0, y + 11, fit(row.label, WIDTH), "ink", row.label)
            if row.below:
                canvas.text(0, y + 11 + TALL, fit(row.below, WIDTH), "", row.below)
        else:
            canvas.text(left - 8, y + 14, row.label, "end ink")
        y += TALL * lines
        start, end = sorted((scale(0.0), scale(row.value)))
        canvas.rect(start, y + 4, max(end - start, 1.0), 13, "a" if row.value >= 0 else "b")
        if low < 0:
            canvas.line(scale(0.0), y + 1, scale(0.0), y + 20, "axis")
        if row.mark is not None:
            x = scale(row.mark)
            canvas.line(x, y + 1, x, y + 20, "mark")
            end = max(end, x)
        if row.value >= 0:
            canvas.text(end + 5, y + 14, row.written, "ink")
        else:
            canvas.text(start - 5, y + 14, row.written, "end ink")
    return canvas.svg(label)


def dots(rows: Sequence[Dot], label: str, *, share: bool = False) -> Html:
    """Draw a dot and its spread for each label; another value is a diamond, a mark a line.

    Labels stand beside the dots, or above them where they are long.
    """
    widest = max(letters(row.label) for row in rows)
    above = widest > LABEL
    left, step = (6.0, STEP + TALL + 2) if above else (widest + 10, STEP)
    spans = [(row.value - row.spread, row.value + row.spread) for row in rows]
    marks = [np.nan if row.mark is None else row.mark for row in rows]
    others = [np.nan if row.other is None else row.other for row in rows]
    scale = Scale.over([*np.ravel(spans), *marks, *others], left, WIDTH - 6)
    if share:
        scale = Scale(max(scale.low, -0.02), min(scale.high, 1.02), left, WIDTH - 6)
    bottom = step * len(rows) + 4
    canvas = Canvas(bottom + TALL + 6)
    canvas.across(scale, 0, bottom, ticks(scale.low, scale.high, 4, share=share))
    for place, row in enumerate(rows):
        y = step * (place + 1) - 11
        if above:
            canvas.text(0, y - 12, fit(row.label, WIDTH), "ink", row.label)
        else:
            canvas.text(left - 10, y + 4, row.label, "end ink")
        low, high = scale(row.value - row.spread), scale(row.value + row.spread)
        canvas.rect(low, y - 4, high - low, 8, "band")
        if row.mark is not None and np.isfinite(row.mark):
            canvas.line(scale(row.mark), y - 8, scale(row.mark), y + 8, "mark")
        if row.other is not None:
            canvas.diamond(scale(row.other), y, "hollow-b")
        canvas.dot(scale(row.value), y, "hollow-a" if row.hollow else "a")
    return canvas.svg(label)
