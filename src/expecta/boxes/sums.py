"""A function as a weighted sum of boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from expecta.arrays import Bools, Floats, Ints

__all__ = ["BoxSum"]

CHUNK = 1 << 16  # boxes that are cut with others at a time


@dataclass(frozen=True, eq=False)
class BoxSum:
    """The sum of the values of the boxes that x lies in.

    A box allows a set of values of each variable. Every variable lists its sets, all
    different and none of them empty; the first allows everything.
    """

    sets: tuple[Bools, ...]  # of each variable  # (sets, values)
    box: Ints  # number of the set that each box has of each variable  # (boxes, variables)
    value: Floats  # (boxes, outputs)

    def __call__(self, codes: Ints) -> Floats:
        """Compute the sum for complete rows, box by box.  # (rows, outputs)."""
        total = np.zeros((len(codes), self.value.shape[1]))
        for box, value in zip(self.box, self.value, strict=True):
            inside = np.ones(len(codes), bool)
            for variable in np.flatnonzero(box):
                inside &= self.sets[variable][box[variable], codes[:, variable]]
            total[inside] += value
        return total

    @property
    def n_boxes(self) -> int:
        """How many boxes there are."""
        return len(self.box)

    @classmethod
    def of(cls, boxes: Sequence[dict[int, Bools]], value: Floats, cardinalities: Ints) -> BoxSum:
        """Build from the sets of each box, by variable; a variable without a set is free."""
        lists = [_Sets(int(card)) for card in cardinalities]
        box = np.zeros((len(boxes), len(lists)), np.int32)
        for i, one in enumerate(boxes):
            for variable, allowed in one.items():
                box[i, variable] = lists[variable].number(allowed)
        return cls(tuple(one.table() for one in lists), box, value).merged()

    def merged(self) -> BoxSum:
        """Add up the values of equal boxes."""
        box, which = np.unique(self.box, axis=0, return_inverse=True)
        value = np.zeros((len(box), self.value.shape[1]))
        np.add.at(value, which.ravel(), self.value)
        return replace(self, box=box, value=value)

    def map(self, change: Callable[[Floats], Floats]) -> BoxSum:
        """Return the sum with other values. That of a function only if no boxes overlap."""
        return replace(self, value=change(self.value))

    def joined(self, other: BoxSum) -> BoxSum:
        """Add another sum over the same variables."""
        lists = [_Sets(one.shape[1], one) for one in self.sets]
        theirs = other.box.copy()
        for v, (known, new) in enumerate(zip(lists, other.sets, strict=True)):
            theirs[:, v] = np.array([known.number(allowed) for allowed in new])[other.box[:, v]]
        box, value = np.concatenate([self.box, theirs]), np.concatenate([self.value, other.value])
        return BoxSum(tuple(one.table() for one in lists), box, value).merged()

    def plus(self, constant: Floats) -> BoxSum:
        """Add a constant: the value of the box that holds everything."""
        everything = np.zeros((1, self.box.shape[1]), np.int32)
        box, value = np.concatenate([everything, self.box]), np.concatenate([constant, self.value])
        return replace(self, box=box, value=value).merged()

    def times(self, other: BoxSum, most: int, *, add: bool = False) -> BoxSum | None:
        """Multiply, box by box; None if more than ``most`` boxes come out.

        With ``add`` values are added, not multiplied: the sum of two functions whose boxes
        cover everything, as one with the same property.
        """
        lists = [_Sets(len(one[0]), one) for one in self.sets]
        table = [
            lists[v].meets(self.sets[v], other.sets[v]) for v in range(len(lists))
        ]  # (sets of ours, sets of theirs) -> number, -1 if they do not meet
        boxes, values = [self.box[:0]], [self.value[:0]]
        count, step = 0, max(CHUNK // max(other.n_boxes, 1), 1)
        for at in range(0, self.n_boxes, step):
            ours = self.box[at : at + step]
            i, j = np.divmod(np.arange(len(ours) * other.n_boxes), max(other.n_boxes, 1))
            for v in np.flatnonzero(self.box.any(axis=0) & other.box.any(axis=0)):
                meet = table[v][ours[i, v], other.box[j, v]] >= 0
                i, j = i[meet], j[meet]
            box = np.stack(
                [table[v][ours[i, v], other.box[j, v]] for v in range(len(lists))], axis=1
            )
            a, b = self.value[at + i], other.value[j]
            boxes.append(box.astype(np.int32))
            values.append(a + b if add else a * b)
            count += len(box)
            if count > most:
                return None
        made = BoxSum(
            tuple(one.table() for one in lists), np.concatenate(boxes), np.concatenate(values)
        )
        return made if add else made.merged()


class _Sets:
    """Sets of the values of a variable, each with a number."""

    def __init__(self, cardinality: int, start: Bools | None = None) -> None:
        everything = np.ones((1, cardinality), bool)
        self._rows = list(everything if start is None else start)
        self._numbers = {row.tobytes(): i for i, row in enumerate(self._rows)}

    def number(self, allowed: Bools) -> int:
        """Return the number of a set, a new one if need be."""
        key = allowed.tobytes()
        if key not in self._numbers:
            self._numbers[key] = len(self._rows)
            self._rows.append(allowed)
        return self._numbers[key]

    def meets(self, ours: Bools, theirs: Bools) -> Ints:
        """Give numbers to what each two sets have in common; -1 if that is nothing."""
        out = np.full((len(ours), len(theirs)), -1, np.int32)
        for i, one in enumerate(ours):
            both = one & theirs
            for j in np.flatnonzero(both.any(axis=1)).tolist():
                out[i, j] = self.number(both[j])
        return out

    def table(self) -> Bools:
        """Return all sets.  # (sets, values)."""
        return np.array(self._rows)
