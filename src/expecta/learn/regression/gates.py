"""Hold the circuit while it grows: nodes and elements that can be split, and shared meanwhile.

Nothing here knows of numbers: a leaf and an element list the *contexts* whose parameters
they add up, the elements know which rows of the table they are hot on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Bools, Ints


@dataclass(eq=False)
class LeafNode:
    """A node over one variable: the values it allows, and the contexts whose tables it adds."""

    variable: int
    allowed: Bools
    contexts: tuple[int, ...]


@dataclass(eq=False)
class Element:
    """An AND gate: two nodes, the rows it is hot on, the contexts whose constants it adds."""

    left: LeafNode | OrNode
    right: LeafNode | OrNode
    rows: Ints
    contexts: tuple[int, ...] = ()
    copy_of: Element | None = None  # the element whose part it is, if it is no more than that


@dataclass(eq=False)
class OrNode:
    """An OR node at an inner vtree node, over elements of which one is hot at most."""

    v: int
    elements: list[Element]


def additive_circuit(vtree: Vtree, cardinalities: Ints, n_rows: int) -> LeafNode | OrNode:
    """Make the additive circuit, one node per vtree node; every leaf adds context 0."""
    rows = np.arange(n_rows, dtype=np.int32)
    nodes: list[LeafNode | OrNode] = []
    for v, x in enumerate(vtree.variable.tolist()):
        if x >= 0:
            nodes.append(LeafNode(x, np.ones(cardinalities[x], np.bool_), (0,)))
        else:
            left, right = nodes[vtree.left[v]], nodes[vtree.right[v]]
            nodes.append(OrNode(v, [Element(left, right, rows)]))
    return nodes[-1]


def every_element(root: LeafNode | OrNode) -> Iterator[tuple[OrNode, Element]]:
    """Return every element once, with its node."""
    visited = {id(root)}
    todo = [root]
    while todo:
        node = todo.pop()
        if isinstance(node, LeafNode):
            continue
        for element in node.elements:
            yield node, element
            for child in (element.left, element.right):
                if id(child) not in visited:
                    visited.add(id(child))
                    todo.append(child)


def n_copied(element: Element, touches: Callable[[int], bool]) -> int:
    """Count the elements below one that a split copies: those of vtree nodes that it touches."""
    visited: set[int] = set()
    todo: list[LeafNode | OrNode] = [element.left, element.right]
    count = 0
    while todo:
        node = todo.pop()
        if isinstance(node, LeafNode) or id(node) in visited or not touches(node.v):
            continue
        visited.add(id(node))
        count += len(node.elements)
        todo += [side for e in node.elements for side in (e.left, e.right)]
    return count


class SplitPart(NamedTuple):
    """One part of an element that is split."""

    allowed: Bools  # values of the variable that is split on
    inside: Bools  # whether each row of the table is in the part
    context: int  # that it adds
    tables: frozenset[int]  # variables that have a table in the context


def split(node: OrNode, element: Element, variable: int, parts: Iterable[SplitPart]) -> None:
    """Replace an element by one per part; what a part does not touch it shares."""
    index = node.elements.index(element)
    new = []
    for part in parts:
        copier = _Copier(variable, part)
        left, right = copier.copy(element.left), copier.copy(element.right)
        if left is not None and right is not None:
            rows = element.rows[part.inside[element.rows]]
            new.append(Element(left, right, rows, (*element.contexts, part.context)))
    node.elements[index : index + 1] = new


class _Copier:
    """Copies what is below an element into a part of it."""

    def __init__(self, variable: int, part: SplitPart) -> None:
        self._variable, self._part = variable, part
        self._done: dict[int, LeafNode | OrNode | None] = {}

    def copy(self, node: LeafNode | OrNode) -> LeafNode | OrNode | None:
        """Return the node in the part: itself if nothing changes, None if it is impossible."""
        if id(node) not in self._done:
            copied = self._leaf(node) if isinstance(node, LeafNode) else self._inner(node)
            self._done[id(node)] = copied
        return self._done[id(node)]

    def _leaf(self, node: LeafNode) -> LeafNode | None:
        restricted = node.variable == self._variable
        has_table = node.variable in self._part.tables
        if not restricted and not has_table:
            return node
        allowed = node.allowed & self._part.allowed if restricted else node.allowed
        contexts = (*node.contexts, self._part.context) if has_table else node.contexts
        return LeafNode(node.variable, allowed, contexts) if np.any(allowed) else None

    def _inner(self, node: OrNode) -> OrNode | None:
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
        inside = self._part.inside
        copies = [Element(a, b, e.rows[inside[e.rows]], e.contexts, e) for a, b, e in elements]
        for e in node.elements:  # others may share the node: the part's rows no longer reach it
            e.rows = e.rows[~inside[e.rows]]
        return OrNode(node.v, copies) if copies else None
