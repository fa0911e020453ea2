"""A sheet to draw on, scales, and axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import floor, log10

import numpy as np

from expecta.report.html import Html, tag

__all__ = ["WIDTH", "Canvas", "Scale", "fit", "letters", "ticks"]

WIDTH = 340.0  # of every picture, which a phone shows at about this size
LETTER = 7.6  # mean width of a letter, of 12 units of height, in a wide typeface
WIDE, NARROW = "%@&mwMW…<=>+~�", " .,:;'|!ijlrtfI()[]"
TALL = 14.0  # a line of text


@dataclass(frozen=True)
class Scale:
    """A range of numbers, and where they lie on the sheet."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return where a number lies; what is beyond the range lies at its end."""
        value = min(max(value, self.low), self.high)
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    @classmethod
    def over(
        cls, values: Sequence[float] | object, start: float, end: float, *, room: float = 0.04
    ) -> Scale:
        """Return a scale over all finite numbers, with some room on both sides."""
        given = np.asarray(values, np.float64).ravel()
        given = given[np.isfinite(given)]
        low, high = (float(given.min()), float(given.max())) if len(given) else (0.0, 1.0)
        margin = room * (high - low)
        if not margin > 1e-9 * max(abs(low), abs(high)):
            margin = 0.05 * max(abs(low), abs(high)) or 0.5
        return cls(low - margin, high + margin, start, end)


@dataclass
class Canvas:
    """Shapes, in the order in which they are drawn."""

    height: float
    parts: list[Html] = field(default_factory=list)

    def line(self, x1: float, y1: float, x2: float, y2: float, class_: str) -> None:
        """Draw a straight line."""
        ends = {"x1": _at(x1), "y1": _at(y1), "x2": _at(x2), "y2": _at(y2)}
        self.parts.append(tag("line", **ends, class_=class_))

    def rect(self, x: float, y: float, width: float, height: float, class_: str) -> None:
        """Draw a rectangle."""
        sides = {"width": _at(max(width, 0.0)), "height": _at(max(height, 0.0))}
        self.parts.append(tag("rect", x=_at(x), y=_at(y), **sides, class_=class_))

    def dot(self, x: float, y: float, class_: str, radius: float = 4.0) -> None:
        """Draw a disk."""
        self.parts.append(tag("circle", cx=_at(x), cy=_at(y), r=_at(radius), class_=class_))

    def diamond(self, x: float, y: float, class_: str, size: float = 5.0) -> None:
        """Draw a square on its corner."""
        corners = [(x, y - size), (x + size, y), (x, y + size), (x - size, y)]
        self.path(corners, class_, close=True)

    def path(
        self, points: Sequence[tuple[float, float]], class_: str, *, close: bool = False
    ) -> None:
        """Draw straight lines from point to point."""
        if points:
            d = "M" + "L".join(f"{_at(x)} {_at(y)}" for x, y in points) + "Z" * close
            self.parts.append(tag("path", d=d, class_=class_))

    def text(self, x: float, y: float, said: str, class_: str = "", full: str = "") -> None:
        """Write a text; ``full`` is what it stands for where it is cut."""
        title = [tag("title", full)] if full and full != said else []
        self.parts.append(tag("text", said, *title, x=_at(x), y=_at(y), class_=class_ or None))

    def across(
        self, scale: Scale, top: float, bottom: float, labels: list[tuple[float, str]]
    ) -> None:
        """Draw an axis below, with lines up from its ticks; labels without room are left out."""
        taken = -np.inf
        for value, label in labels:
            x = scale(value)
            self.line(x, top, x, bottom, "grid")
            half = letters(label) / 2
            middle = min(max(x, half), WIDTH - half)
            if middle - half > taken:
                self.text(middle, bottom + TALL + 2, label, "middle")
                taken = middle + half
        self.line(scale.start, bottom, scale.end, bottom, "axis")

    def up(self, scale: Scale, left: float, right: float, labels: list[tuple[float, str]]) -> None:
        """Draw an axis on the left, with lines across from its ticks."""
        for value, label in labels:
            y = scale(value)
            self.line(left, y, right, y, "grid")
            self.text(left - 6, y + 4, label, "end")

    def svg(self, label: str) -> Html:
        """Return the picture; ``label`` is what those hear who do not see it."""
        box = f"0 0 {WIDTH:g} {_at(self.height)}"
        return tag("svg", *self.parts, viewBox=box, role="img", aria_label=label)


def ticks(
    low: float, high: float, most: int = 5, *, share: bool = False
) -> list[tuple[float, str]]:
    """Return round numbers in a range, up to so many, and how they are written.

    >>> ticks(3.2, 1480, 4)
    [(500.0, '500'), (1000.0, '1,000')]
    >>> ticks(0, 0.4, 4, share=True)
    [(0.0, '0%'), (0.1, '10%'), (0.2, '20%'), (0.3, '30%'), (0.4, '40%')]
    """
    raw = (high - low) / most
    size = 10.0 ** floor(log10(raw))
    step = next(one * size for one in (1, 2, 2.5, 5, 10) if one * size >= raw * (1 - 1e-9))
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    values = [float(f"{k * step:.12g}") + 0.0 for k in np.arange(first, last + 1)]
    return [(value, _written(value, step, share)) for value in values]


def _written(value: float, step: float, share: bool) -> str:
    if share:
        value, step = 100 * value, 100 * step
    if abs(value) >= 1e9 or step < 1e-4:
        return f"{value:.4g}" + "%" * share
    digits = max(0, 1 - floor(log10(step) + 1e-9))  # one more than a step of 2.5 may need
    text = f"{value:,.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text + "%" * share


def letters(text: str) -> float:
    """Return about how wide a text is; letters of the Far East are twice as wide."""
    return LETTER * sum(_width(letter) for letter in text)


def _width(letter: str) -> float:
    if ord(letter) > 0x2E7F:
        return 2.0
    return 1.5 if letter in WIDE else 0.6 if letter in NARROW else 1.0


def fit(text: str, width: float) -> str:
    """Cut a text to a width."""
    if letters(text) <= width:
        return text
    kept = text
    while kept and letters(kept + "…") > width:
        kept = kept[:-1]
    return kept.rstrip() + "…"


def _at(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")
