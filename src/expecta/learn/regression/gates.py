"""The circuit while it grows: nodes and elements that can be split, and shared meanwhile.

Nothing here knows of numbers: a leaf and an element list the *boxes* whose parameters
they add up, the elements know which rows of the table they are hot on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Bools, Ints

__all__ = ["Element", "Inner", "Leaf", "every_element", "first_circuit", "n_copied", "split"]


@dataclass(eq=False)
class Leaf:
    """A node over one variable: the values it allows, and the boxes whose tables it adds."""

    variable: int
    allowed: Bools
    boxes: tuple[int, ...]


@dataclass(eq=False)
class Element:
    """An AND gate: two nodes, the rows it is hot on, the boxes whose constants it adds."""

    left: Leaf | Inner
    right: Leaf | Inner
    rows: Ints
    boxes: tuple[int, ...] = ()
    like: Element | None = None  # the element that it is a part of, if it is no more than that


@dataclass(eq=False)
class Inner:
    """An OR node at an inner vtree node, over elements of which one is hot at most."""

    v: int
    elements: list[Element]


def first_circuit(vtree: Vtree, cardinalities: Ints, n_rows: int) -> Leaf | Inner:
    """Make the additive circuit, one node per vtree node; every leaf adds box 0."""
    rows = np.arange(n_rows, dtype=np.int32)
    made: list[Leaf | Inner] = []
    for v, x in enumerate(vtree.variable.tolist()):
        if x >= 0:
            made.append(Leaf(x, np.ones(cardinalities[x], np.bool_), (0,)))
        else:
            left, right = made[vtree.left[v]], made[vtree.right[v]]
            made.append(Inner(v, [Element(left, right, rows)]))
    return made[-1]


def every_element(root: Leaf | Inner) -> Iterator[tuple[Inner, Element]]:
    """Return every element once, with its node."""
    seen = {id(root)}
    todo = [root]
    while todo:
        node = todo.pop()
        if isinstance(node, Leaf):
            continue
        for element in node.elements:
            yield node, element
            for child in (element.left, element.right):
                if id(child) not in seen:
                    seen.add(id(child))
                    todo.append(child)


def n_copied(element: Element, touches: Callable[[int], bool]) -> int:
    """Count the elements below one that a split copies: those of vtree nodes that it touches."""
    seen: set[int] = set()
    todo: list[Leaf | Inner] = [element.left, element.right]
    count = 0
    while todo:
        node = todo.pop()
        if isinstance(node, Leaf) or id(node) in seen or not touches(node.v):
            continue
        seen.add(id(node))
        count += len(node.elements)
        todo += [side for e in node.elements for side in (e.left, e.right)]
    return count


def split(
    node: Inner,
    element: Element,
    variable: int,
    parts: tuple[tuple[Bools, Bools, int, frozenset[int]], ...],
) -> None:
    """Replace an element by one per part.

    A part is the values that it allows ``variable``, the rows inside it, the box that it
    adds and the variables that have a table in it. What a part does not touch it shares.
    """
    place = node.elements.index(element)
    new = []
    for allowed, inside, box, tables in parts:
        copier = _Copier(variable, allowed, inside, box, tables)
        left, right = copier.copy(element.left), copier.copy(element.right)
        if left is not None and right is not None:
            rows = element.rows[inside[element.rows]]
            new.append(Element(left, right, rows, (*element.boxes, box)))
    node.elements[place : place + 1] = new


class _Copier:
    """Copies what is below an element into a part of it."""

    def __init__(
        self, variable: int, allowed: Bools, inside: Bools, box: int, tables: frozenset[int]
    ) -> None:
        self._variable, self._allowed, self._inside = variable, allowed, inside
        self._box, self._tables = box, tables
        self._done: dict[int, Leaf | Inner | None] = {}

    def copy(self, node: Leaf | Inner) -> Leaf | Inner | None:
        """Return the node in the part: itself if nothing changes, None if it is impossible."""
        if id(node) not in self._done:
            made = self._leaf(node) if isinstance(node, Leaf) else self._inner(node)
            self._done[id(node)] = made
        return self._done[id(node)]

    def _leaf(self, node: Leaf) -> Leaf | None:
        restricted = node.variable == self._variable
        has_table = node.variable in self._tables
        if not restricted and not has_table:
            return node
        allowed = node.allowed & self._allowed if restricted else node.allowed
        boxes = (*node.boxes, self._box) if has_table else node.boxes
        return Leaf(node.variable, allowed, boxes) if np.any(allowed) else None

    def _inner(self, node: Inner) -> Inner | None:
        elements = []
        same = True
        for e in node.elements:
            left, right = self.copy(e.left), self.copy(e.right)
            if left is None or right is None:
                same = False
                continue
            same = same and left is e.left and right is e.right
            elements.append((left, right, e))
        if same:
            return node
        copies = [Element(a, b, e.rows[self._inside[e.rows]], e.boxes, e) for a, b, e in elements]
        for e in node.elements:  # others may share the node: the part's rows no longer reach it
            e.rows = e.rows[~self._inside[e.rows]]
        return Inner(node.v, copies) if copies else None
