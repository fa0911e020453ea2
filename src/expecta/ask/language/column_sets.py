"""Represent sets of values of one column exactly: intervals of numbers, or some categories."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeAlias

import numpy as np

from expecta.common.arrays import Bools, Floats
from expecta.tables.column import Column
from expecta.tables.durations import write_duration
from expecta.tables.scalars import TIMES, on_the_clock

Cut: TypeAlias = tuple[float, int]  # a number, and whether the cut is before (0) or after it (1)
_FULL: tuple[tuple[Cut, Cut], ...] = (((-inf, 0), (inf, 1)),)
_CLOSED = {(0, 1): "both", (0, 0): "left", (1, 1): "right", (1, 0): "neither"}


@dataclass(frozen=True)
class Intervals:
    """A set of numbers: a union of intervals, in increasing order, that do not touch.

    An interval runs from a cut to a cut, and a cut lies just before or just after a number;
    so ends belong to it or not. Times are microseconds.

    >>> young, old = Intervals.between(0, 18, "left"), Intervals.between(65, None)
    >>> print((young | old).text("age"), "|", (~young).text("age"))
    0 <= age < 18 or age >= 65 | age < 0 or age >= 18
    """

    pieces: tuple[tuple[Cut, Cut], ...]

    @classmethod
    def between(cls, low: float | None, high: float | None, closed: str = "both") -> Intervals:
        """Return the numbers between two ends; None is not an end."""
        ends = {name: sides for sides, name in _CLOSED.items()}[closed]
        start = (-inf, 0) if low is None else (low, ends[0])
        end = (inf, 1) if high is None else (high, ends[1])
        return cls(((start, end),) if start < end else ())

    @classmethod
    def points(cls, numbers: Iterable[float]) -> Intervals:
        """Return a set of single numbers."""
        return cls(tuple(((x, 0), (x, 1)) for x in sorted(set(numbers))))

    def __and__(self, other: Intervals) -> Intervals:
        pieces, ours, theirs = [], 0, 0
        while ours < len(self.pieces) and theirs < len(other.pieces):
            (a, b), (c, d) = self.pieces[ours], other.pieces[theirs]
            start, end = max(a, c), min(b, d)
            if start < end:
                pieces.append((start, end))
            ours, theirs = ours + (b <= d), theirs + (d <= b)
        return Intervals(tuple(pieces))

    def __invert__(self) -> Intervals:
        cuts = [_FULL[0][0], *(cut for piece in self.pieces for cut in piece), _FULL[0][1]]
        gaps = zip(cuts[::2], cuts[1::2], strict=True)
        return Intervals(tuple((start, end) for start, end in gaps if start < end))

    def __or__(self, other: Intervals) -> Intervals:
        return ~(~self & ~other)

    def __bool__(self) -> bool:
        return bool(self.pieces)

    @property
    def full(self) -> bool:
        """Whether every number is in it."""
        return self.pieces == _FULL

    @property
    def order(self) -> tuple[Any, ...]:
        """What sets of one column are sorted by."""
        return self.pieces

    def contains(self, numbers: Floats) -> Bools:
        """Whether each number is in it; NaN is in none."""
        cuts = [cut for piece in self.pieces for cut in piece]
        before = [value for value, after in cuts if not after]
        after = [value for value, after in cuts if after]
        passed = np.searchsorted(before, numbers, "right") + np.searchsorted(after, numbers, "left")
        return passed % 2 == 1  # all cuts, an even number, lie before NaN

    @property
    def length(self) -> int:
        """What it costs to meet another set."""
        return len(self.pieces)

    def binned(self, column: Column) -> Intervals:
        """Return the set with a bin in place of a single number that bins cannot tell apart.

        That is any number between those of its bin, but a whole one among whole ones. A whole
        number in the gap between two bins counts as the nearest of its bin. A number that its bin
        does not reach stays, and is in no bin.
        """
        edges = [-inf, *column.edges.tolist(), inf]
        kept, whole = [], Intervals(())
        for start, end in self.pieces:
            if start[0] != end[0] or not within_bin(column, start[0]):
                kept.append((start, end))
                continue
            bin_ = int(np.searchsorted(column.edges, start[0], side="right"))
            low, high = float(column.lows[bin_]), float(column.highs[bin_])
            if column.step and not low <= start[0] <= high:
                whole |= Intervals.points([low if start[0] < low else high])
            elif column.step or low == high:
                kept.append((start, end))
            else:
                last = int(bin_ == column.cardinality - 1)
                whole |= Intervals((((edges[bin_], 0), (edges[bin_ + 1], last)),))
        return Intervals(tuple(kept)) | whole

    def absent(self, column: Column) -> list[str]:
        """Return the single numbers of it that no training row can have had, in words."""
        return [
            written(start[0], column)
            for start, end in self.pieces
            if start[0] == end[0] and not within_bin(column, start[0])
        ]

    def weights(self, column: Column) -> Floats:
        """Return the share of each bin that lies in it, as `Column.between` counts."""
        total: Floats = np.zeros(column.cardinality)
        for (low, after), (high, upto) in self.pieces:
            total += column.between(low, high, closed=_CLOSED[after, upto])
        return np.minimum(total, 1.0)

    def text(self, name: str, column: Column | None = None) -> str:
        """Write it as a condition on a column."""
        if len(self.pieces) > 1 and all(start[0] == end[0] for start, end in self.pieces):
            return f"{name} in ({', '.join(written(x, column) for (x, _), _ in self.pieces)})"
        return " or ".join(_interval(name, *piece, column) for piece in self.pieces) or "nothing"


@dataclass(frozen=True)
class ValueSet:
    """Some of a column's categories, or of its bins where "missing" is a value, by code."""

    members: frozenset[int]
    size: int
    lacking: tuple[str, ...] = field(default=(), compare=False)  # numbers that have no bin
    rare: tuple[str, ...] = field(default=(), compare=False)  # categories that share a code

    def __and__(self, other: ValueSet) -> ValueSet:
        return ValueSet(self.members & other.members, self.size)

    def __invert__(self) -> ValueSet:
        return ValueSet(frozenset(range(self.size)) - self.members, self.size)

    def __or__(self, other: ValueSet) -> ValueSet:
        lacking = self.lacking + other.lacking
        return ValueSet(self.members | other.members, self.size, lacking, self.rare + other.rare)

    def __bool__(self) -> bool:
        return bool(self.members)

    @property
    def full(self) -> bool:
        """Whether every category is in it."""
        return len(self.members) == self.size

    @property
    def order(self) -> tuple[Any, ...]:
        """What sets of one column are sorted by."""
        return tuple(sorted(self.members))

    @property
    def length(self) -> int:
        """What it costs to meet another set."""
        return 1

    def contains(self, numbers: Floats) -> Bools:
        """Whether each value, by number, is in it; NaN is in none."""
        return np.isin(numbers, list(self.members))

    def absent(self, column: Column) -> list[str]:
        """Return the numbers that were asked for and that no training row can have had."""
        return list(self.lacking)

    def binned(self, column: Column) -> ValueSet:
        """Return the set: categories are told apart."""
        return self

    def weights(self, column: Column) -> Floats:
        """Return one for each category in it, else zero."""
        return np.isin(np.arange(self.size), list(self.members)).astype(np.float64)

    def text(self, name: str, column: Column) -> str:
        """Write it as a condition on a column."""
        if column.plain is not column and len(column.lows):
            return self._numbers(name, column)
        known = [column.labels[i] for i in sorted(self.members)]
        if column.kind in ("boolean", "code"):
            known = [word.lower() for word in known]
        else:
            known = [_quoted(word) for word in known]
        return f"{name} == {known[0]}" if len(known) == 1 else f"{name} in ({', '.join(known)})"

    def _numbers(self, name: str, column: Column) -> str:
        """Write bins by their training data, where "missing" is a value; several in parentheses."""
        pieces: list[str] = []
        bins = [i for i in sorted(self.members) if i < len(column.lows)]
        starts = [i for i in bins if i - 1 not in self.members]
        ends = [i for i in bins if i + 1 not in self.members or i + 1 == len(column.lows)]
        for first, last in zip(starts, ends, strict=True):
            piece = (float(column.lows[first]), 0), (float(column.highs[last]), 1)
            pieces.append(_interval(name, *piece, column))
        pieces += [f"{name} == {number}" for number in self.lacking]
        if len(column.lows) in self.members:
            pieces.append(f"{name} == {_quoted(column.labels[-1])}")
        return f"({' or '.join(pieces)})" if len(pieces) > 1 else (pieces or ["nothing"])[0]


Subset: TypeAlias = Intervals | ValueSet


def within_bin(column: Column, number: float) -> bool:
    """Whether a number lies in the range of its bin's training data, or in a gap beside it.

    A gap between two bins counts up to the width of the bin's own data. Where all of these were
    whole, the number must be whole too.
    """
    bin_ = int(np.searchsorted(column.edges, number, side="right"))
    if column.step and float(number) % column.step != 0:
        return False
    low, high = float(column.lows[bin_]), float(column.highs[bin_])
    if not low <= number <= high and column.lows[0] < number < column.highs[-1]:
        low, high = low - (high - low), high + (high - low)
    return low <= number <= high


def _interval(name: str, start: Cut, end: Cut, column: Column | None) -> str:
    """Write one interval."""
    (low, after), (high, upto) = start, end
    if low == high:
        return f"{name} == {written(low, column)}"
    below, above = ("<", "<=")[upto], (">=", ">")[after]
    if high == inf:
        return "anything" if low == -inf else f"{name} {above} {written(low, column)}"
    if low == -inf:
        return f"{name} {below} {written(high, column)}"
    return f"{written(low, column)} {('<=', '<')[after]} {name} {below} {written(high, column)}"


def written(value: float, column: Column | None) -> str:
    """Write a number so that it is read as the same, a time as a quoted text."""
    if abs(value) == inf:
        return "1e999" if value > 0 else "-1e999"
    if column is not None and column.kind == "duration":
        return _quoted(write_duration(value))
    if column is None or column.kind not in TIMES:
        return str(int(value)) if abs(value) < 1e15 and value == int(value) else repr(float(value))
    text = str(np.datetime64(int(on_the_clock(value, column.zone)), "us"))
    return _quoted(text.removesuffix("T00:00:00.000000").removesuffix(".000000"))


def _quoted(text: str) -> str:
    """Write a text so that it is read as the same."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
