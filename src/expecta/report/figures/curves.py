"""Distributions, curves along a column, and what was said against what was seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from expecta.common.arrays import Floats
from expecta.report.figures.canvas import TALL, WIDTH, Canvas, Scale, letters, ticks
from expecta.report.html import Html

__all__ = ["curves", "histogram", "reliability"]

HEIGHT = 190.0
Labels = list[tuple[float, str]]


def histogram(
    edges: Floats,
    mass: Floats,
    label: str,
    *,
    beside: Floats | None = None,
    middle: float | None = None,
    ends: tuple[float, float] | None = None,
    share: bool = False,
    named: Labels | None = None,
) -> Html:
    """Draw shares as steps.

    ``beside`` has other shares, drawn as a line; ``middle`` is marked, ``ends`` shaded.
    ``named`` has the ticks below where they are no numbers.
    """
    top, bottom = 6.0, HEIGHT - TALL - 6
    most = max(float(mass.max()), 0.0 if beside is None else float(beside.max())) or 1.0
    y = Scale(0.0, 1.06 * most, bottom, top)
    sides = ticks(y.low, y.high, 3, share=True)
    left = max(letters(text) for _, text in sides) + 8
    x = Scale(float(edges[0]), float(edges[-1]), left, WIDTH - 6)
    canvas = Canvas(HEIGHT)
    if ends is not None:
        canvas.rect(x(ends[0]), top, x(ends[1]) - x(ends[0]), bottom - top, "shade")
    canvas.up(y, left, WIDTH - 6, sides)
    below = ticks(x.low, x.high, 5, share=share) if named is None else named
    canvas.path(
        [(x.start, bottom), *_steps(x, y, edges, mass), (x.end, bottom)], "area", close=True
    )
    canvas.across(x, bottom, bottom, below)
    if beside is not None:
        canvas.path(_steps(x, y, edges, beside), "line-b")
    if middle is not None:
        canvas.line(x(middle), top, x(middle), bottom, "mark")
    return canvas.svg(label)


def _steps(x: Scale, y: Scale, edges: Floats, mass: Floats) -> list[tuple[float, float]]:
    both = zip(edges[:-1].tolist(), edges[1:].tolist(), mass.tolist(), strict=True)
    return [point for low, high, one in both for point in ((x(low), y(one)), (x(high), y(one)))]


def curves(
    at: Floats,
    mean: Floats,
    spread: Floats,
    other: Floats,
    label: str,
    *,
    share: bool = False,
    named: Labels | None = None,
) -> Html:
    """Draw a curve with a band about it, and another that is dashed."""
    top, bottom = 6.0, HEIGHT - TALL - 6
    y = Scale.over([*(mean - spread), *(mean + spread), *other], bottom, top)
    if share:
        y = Scale(max(y.low, -0.02), min(y.high, 1.02), bottom, top)
    sides = ticks(y.low, y.high, 4, share=share)
    left = max((letters(text) for _, text in sides), default=0.0) + 8
    x = Scale.over(at, left, WIDTH - 6, room=0.0 if len(at) > 1 else 0.05)
    canvas = Canvas(HEIGHT)
    canvas.up(y, left, WIDTH - 6, sides)
    across = [x(one) for one in at.tolist()]
    upper = [y(one) for one in (mean + spread).tolist()]
    lower = [y(one) for one in (mean - spread).tolist()]
    outline = [*zip(across, upper, strict=True), *reversed(list(zip(across, lower, strict=True)))]
    canvas.path(outline, "band", close=True)
    canvas.across(x, bottom, bottom, ticks(x.low, x.high, 5) if named is None else named)
    for values, class_ in ((mean, "line-a"), (other, "line-b dash")):
        points = list(zip(across, (y(one) for one in values.tolist()), strict=True))
        canvas.path(points, class_)
        if len(points) < 12:
            for point in points:
                canvas.dot(*point, "a" if values is mean else "hollow-b", 3.0)
    return canvas.svg(label)


def reliability(series: Sequence[tuple[Floats, Floats, str]], label: str) -> Html:
    """Draw shares that were seen against those that were said, and the diagonal."""
    top, bottom, left = 6.0, 236.0, 42.0
    x, y = Scale(0.0, 1.0, left, WIDTH - 60), Scale(0.0, 1.0, bottom, top)
    canvas = Canvas(bottom + TALL + 6)
    canvas.up(y, left, x.end, ticks(0.0, 1.0, 4, share=True))
    canvas.across(x, top, bottom, ticks(0.0, 1.0, 4, share=True))
    canvas.line(x(0), y(0), x(1), y(1), "axis dash")
    for said, seen, class_ in series:
        pairs = zip(said.tolist(), seen.tolist(), strict=True)
        points = [(x(a), y(b)) for a, b in pairs if np.isfinite(b)]
        canvas.path(points, f"line-{class_}")
        for point in points:
            canvas.dot(*point, class_, 3.0)
    return canvas.svg(label)
