"""Write a function as a weighted sum of boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.engine.boxes.value_sets import Runs, SetNumbers, inside, intersection, meet

BOXES_AT_ONCE = 1 << 16  # boxes that are cut with others at a time
MAX_PAIRS_PER_BOX = 100  # pairs of boxes to look at for each that may come out


@dataclass(frozen=True, eq=False)
class BoxSum:
    """The sum of the values of the boxes that x lies in.

    A box allows a set of values of each variable. Every variable lists its sets, all
    different and none of them empty; the first allows everything.
    """

    sets: tuple[tuple[Runs, ...], ...]  # of each variable
    box: Ints  # number of the set that each box has of each variable  # (boxes, variables)
    value: Floats  # (boxes, outputs)

    def __call__(self, codes: Ints) -> Floats:
        """Compute the sum for complete rows, box by box.  # (rows, outputs)."""
        total = np.zeros((len(codes), self.value.shape[1]))
        for box, value in zip(self.box, self.value, strict=True):
            fits = np.ones(len(codes), bool)
            for variable in np.flatnonzero(box):
                fits &= inside(self.sets[variable][box[variable]], codes[:, variable])
            total[fits] += value
        return total

    @property
    def n_boxes(self) -> int:
        """How many boxes there are."""
        return len(self.box)

    @classmethod
    def of(cls, boxes: Sequence[dict[int, Runs]], value: Floats, cardinalities: Ints) -> BoxSum:
        """Build from the sets of each box, by variable; a variable without a set is free."""
        lists = [SetNumbers([(0, int(card))]) for card in cardinalities]
        box = np.zeros((len(boxes), len(lists)), np.int32)
        for i, sets in enumerate(boxes):
            for variable, allowed in sets.items():
                box[i, variable] = lists[variable].number(allowed)
        return cls(tuple(numbers.all() for numbers in lists), box, value).merged()

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
        lists = [SetNumbers(known) for known in self.sets]
        theirs = other.box.copy()
        for v, (known, new) in enumerate(zip(lists, other.sets, strict=True)):
            theirs[:, v] = np.array([known.number(allowed) for allowed in new])[other.box[:, v]]
        box, value = np.concatenate([self.box, theirs]), np.concatenate([self.value, other.value])
        return BoxSum(tuple(numbers.all() for numbers in lists), box, value).merged()

    def plus(self, constant: Floats) -> BoxSum:
        """Add a constant: the value of the box that holds everything."""
        everything = np.zeros((1, self.box.shape[1]), np.int32)
        box, value = np.concatenate([everything, self.box]), np.concatenate([constant, self.value])
        return replace(self, box=box, value=value).merged()

    def times(self, other: BoxSum, max_boxes: int, *, add: bool = False) -> BoxSum | None:
        """Multiply, box by box; None if more than ``max_boxes`` boxes come out.

        With ``add`` values are added, not multiplied: the sum of two functions whose boxes
        cover everything, as one with the same property.
        """
        if self.n_boxes * other.n_boxes > MAX_PAIRS_PER_BOX * max_boxes:
            return None
        shared = np.flatnonzero(self.box.any(axis=0) & other.box.any(axis=0)).tolist()
        touch = {v: meet(self.sets[v], other.sets[v]) for v in shared}
        pairs = []
        count, step = 0, max(BOXES_AT_ONCE // max(other.n_boxes, 1), 1)
        for at in range(0, self.n_boxes, step):
            ours = self.box[at : at + step]
            i, j = np.divmod(np.arange(len(ours) * other.n_boxes), max(other.n_boxes, 1))
            for v in shared:
                both = touch[v][ours[i, v], other.box[j, v]]
                i, j = i[both], j[both]
            pairs.append((at + i, j))
            count += len(i)
            if count > max_boxes:
                return None
        i = np.concatenate([np.zeros(0, np.int64), *(ours for ours, _ in pairs)])
        j = np.concatenate([np.zeros(0, np.int64), *(theirs for _, theirs in pairs)])
        sets, box = [], np.empty((len(i), len(self.sets)), np.int32)
        for v, (mine, theirs) in enumerate(zip(self.sets, other.sets, strict=True)):
            known = SetNumbers(mine[:1])
            keys, which = np.unique(
                self.box[i, v].astype(np.int64) * len(theirs) + other.box[j, v], return_inverse=True
            )
            halves = (divmod(key, len(theirs)) for key in keys.tolist())
            numbers = [known.number(intersection(mine[a], theirs[b])) for a, b in halves]
            box[:, v] = np.array(numbers, np.int32)[which.ravel()]
            sets.append(known.all())
        x, y = self.value[i], other.value[j]
        made = BoxSum(tuple(sets), box, x + y if add else x * y)
        return made if add else made.merged()
