"""Hold sets of the values of a variable, as runs of neighbours."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from expecta.common.arrays import Bools, Ints

Runs = tuple[int, ...]  # low, high, low, high, ...: low <= x < high, ascending and apart


def runs(allowed: Bools) -> Runs:
    """Return a set as runs.

    >>> runs(np.array([True, False, True, True]))
    (0, 1, 2, 4)
    """
    edge = np.flatnonzero(np.diff(allowed.astype(np.int8), prepend=0, append=0))
    return tuple(edge.tolist())


def intersection(a: Runs, b: Runs) -> Runs:
    """Return what two sets have in common.

    >>> intersection((0, 5), (3, 9)), intersection((0, 3, 6, 9), (2, 7))
    ((3, 5), (2, 3, 6, 7))
    >>> intersection((0, 2), (2, 4))
    ()
    """
    if len(a) == 2 and len(b) == 2:
        low, high = max(a[0], b[0]), min(a[1], b[1])
        return (low, high) if low < high else ()
    shared: list[int] = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i], b[j]), min(a[i + 1], b[j + 1])
        if low < high:
            shared += (low, high)
        if a[i + 1] <= b[j + 1]:
            i += 2
        else:
            j += 2
    return tuple(shared)


def inside(allowed: Runs, codes: Ints) -> Bools:
    """Whether each value is in a set."""
    return np.searchsorted(np.array(allowed), codes, side="right") % 2 == 1


def meet(ours: Iterable[Runs], theirs: Iterable[Runs]) -> Bools:
    """Whether each two sets, none of them empty, have a value in common.  # (ours, theirs)."""
    our_sets, (their_start, their_low, their_high) = list(ours), list_runs(theirs)
    meets = np.empty((len(our_sets), len(their_start) - 1), np.bool_)
    for row, allowed in enumerate(our_sets):
        touch = np.zeros(len(their_low), np.bool_)
        for low, high in zip(allowed[::2], allowed[1::2], strict=True):
            touch |= (low < their_high) & (their_low < high)
        meets[row] = np.logical_or.reduceat(touch, their_start[:-1])
    return meets


def list_runs(sets: Iterable[Runs]) -> tuple[Ints, Ints, Ints]:
    """Return where the runs of each set begin in a list, and then their lows and highs."""
    all_sets = list(sets)
    start = np.append(0, np.cumsum([len(allowed) // 2 for allowed in all_sets]))
    ends = np.array([end for allowed in all_sets for end in allowed], np.int64)
    return start, ends[::2], ends[1::2]


class SetNumbers:
    """Different sets of the values of a variable, each with a number; 0 is everything."""

    def __init__(self, known: Iterable[Runs]) -> None:
        self._numbers = {allowed: number for number, allowed in enumerate(known)}

    def number(self, allowed: Runs) -> int:
        """Return the number of a set, a new one if need be."""
        return self._numbers.setdefault(allowed, len(self._numbers))

    def all(self) -> tuple[Runs, ...]:
        """Return all sets in the order of their numbers."""
        return tuple(self._numbers)
