"""Turn conditions over several columns into disjoint boxes.

A condition is a decision diagram: a node asks one column, and its branches are disjoint
sets of that column's values that cover all of them. Equal nodes are one, columns are asked
in one order and branches of a node differ, so equal conditions are equal diagrams; and the
paths to "true" are boxes that do not meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np

from expecta.ask.language.column_sets import Subset
from expecta.common.arrays import Bools, Floats

MAX_DEPTH = 200  # columns that hang together
MAX_WORK = 300_000  # pairs of branches that are tried, or intervals in them


class TooManyCasesError(Exception):
    """A condition has more cases than are worth asking."""


@dataclass(frozen=True, eq=False)
class Node:
    """A column, and what follows for each of its values."""

    variable: int
    branches: tuple[tuple[Subset, Diagram], ...]


Diagram: TypeAlias = bool | Node
Box: TypeAlias = tuple[tuple[int, Subset], ...]  # a set for each column that matters, in order


class Diagrams:
    """Makes diagrams of which equal ones are the same object."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[int, tuple[tuple[Subset, Diagram], ...]], Node] = {}
        self._done: dict[tuple[str, Diagram, Diagram], Diagram] = {}
        self._work = 0

    def fact(self, variable: int, subset: Subset) -> Diagram:
        """Return that a column is in a set."""
        if not subset or subset.full:
            return bool(subset)
        return self._node(variable, {True: subset, False: ~subset})

    def join(self, word: str, parts: Sequence[Diagram]) -> Diagram:
        """Return that all ("and") or any ("or") of several conditions hold.

        The last columns come first, so that each further condition meets few nodes.
        """
        last = sorted(parts, key=lambda d: -d.variable if isinstance(d, Node) else -np.inf)
        return reduce(lambda a, b: self._both(word, b, a, 0), last)

    def _both(self, word: str, a: Diagram, b: Diagram, depth: int) -> Diagram:
        strong = word == "or"  # decides alone
        if a is strong or b is strong:
            return strong
        if isinstance(a, bool) or a is b:
            return b
        if isinstance(b, bool):
            return a
        key = (word, a, b)
        if key not in self._done:
            if depth > MAX_DEPTH:
                raise TooManyCasesError
            self._done[key] = self._split(word, a, b, depth)
        return self._done[key]

    def _split(self, word: str, a: Node, b: Node, depth: int) -> Diagram:
        """Join two diagrams value by value of the first column of either."""
        if a.variable > b.variable:
            a, b = b, a
        by_child: dict[Diagram, Subset] = {}
        for ours, left in a.branches:
            same = a.variable == b.variable
            for theirs, right in b.branches if same else ((ours, b),):
                self._work += 1 + ours.length + theirs.length
                if self._work > MAX_WORK:
                    raise TooManyCasesError
                subset: Subset = ours & theirs if same else ours  # type: ignore[operator]
                if subset:
                    child = self._both(word, left, right, depth + 1)
                    known = by_child.get(child)
                    by_child[child] = subset if known is None else known | subset  # type: ignore[operator]
        return self._node(a.variable, by_child)

    def _node(self, variable: int, by_child: dict[Diagram, Subset]) -> Diagram:
        if len(by_child) == 1:
            return next(iter(by_child))
        branches = sorted(((s, d) for d, s in by_child.items()), key=lambda branch: branch[0].order)
        key = (variable, tuple(branches))
        return self._nodes.setdefault(key, Node(*key))


def boxes(diagram: Diagram, max_boxes: int) -> list[Box]:
    """Return the disjoint boxes of a condition; `TooManyCasesError` beyond ``max_boxes``."""
    out: list[Box] = []
    left: list[tuple[Diagram, Box]] = [(diagram, ())]
    while left:
        at, box = left.pop()
        if at is True:
            out.append(box)
            if len(out) > max_boxes:
                raise TooManyCasesError
        elif isinstance(at, Node):
            further = [(below, (*box, (at.variable, subset))) for subset, below in at.branches]
            left.extend(reversed(further))
    return out


def certain(diagram: Diagram, columns: dict[int, Floats], rows: int) -> Bools:
    """Whether each row meets a condition, whatever its missing values (NaN) are.

    ``columns`` has the numbers of each column that matters.
    """
    nodes: set[Node] = set()
    left = [diagram]
    while left:
        at = left.pop()
        if isinstance(at, Node) and at not in nodes:
            nodes.add(at)
            left.extend(below for _, below in at.branches)
    holds: dict[Diagram, Bools] = {b: np.full(rows, b) for b in (False, True)}
    for node in sorted(nodes, key=lambda n: -n.variable):  # what follows comes first
        numbers = columns[node.variable]
        always = np.isnan(numbers)
        once = np.zeros(rows, np.bool_)
        for subset, below in node.branches:
            once |= subset.contains(numbers) & holds[below]
            always &= holds[below]
        holds[node] = once | always
    return holds[diagram]
