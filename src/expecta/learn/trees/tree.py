"""Define the rooted tree over the variables that every tree-shaped model has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order

from expecta.circuits.vtree import Nested, Vtree
from expecta.common.arrays import Floats, Ints, frozen, within
from expecta.common.errors import StructureError

Part = TypeVar("Part")


@dataclass(frozen=True, eq=False)
class RootedTree:
    """A rooted tree whose nodes are the variables, one each.

    Nodes are numbered with children before parents, the root last.

    Parameters
    ----------
    variable
        The variable at each node.  # (nodes,)
    parent
        The parent of each node, -1 at the root.  # (nodes,)

    Examples
    --------
    >>> RootedTree.star(4, 2)
    RootedTree(2 -> 0, 2 -> 1, 2 -> 3)
    """

    variable: Ints
    parent: Ints

    def __post_init__(self) -> None:
        for name in ("variable", "parent"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.int32, 1, name))
        n = len(self.variable)
        if n == 0 or not np.array_equal(np.sort(self.variable), np.arange(n)):
            raise StructureError("a tree has one node for each of the variables 0 .. n-1")
        above = self.parent[:-1]
        if len(self.parent) != n or self.parent[-1] != -1 or not within(above, 0, n):
            raise StructureError("a tree's root comes last, and every other node has a parent")
        if np.any(above <= np.arange(n - 1)):
            raise StructureError("a tree's nodes come before their parents")

    @classmethod
    def star(cls, n: int, root: int) -> RootedTree:
        """Hang all variables under one of them."""
        others = [x for x in range(n) if x != root]
        return cls(np.array([*others, root]), np.array([n - 1] * (n - 1) + [-1]))

    @classmethod
    def greatest(cls, information: Floats) -> RootedTree:
        """Chow and Liu's tree: the spanning tree of greatest information, rooted at its centre.

        The centre is the node from which the farthest is nearest. Cost: variables².
        """
        n = len(information)
        links = _greatest_links(information)
        order, before = _walk(links, _walk(links, 0)[0][-1])  # from one end of a longest path ...
        path = [order[-1]]  # ... back from its other end
        while before[path[-1]] >= 0:
            path.append(before[path[-1]])
        order, above = _walk(links, path[len(path) // 2])
        variable = np.array(order[::-1])
        node = np.empty(n, np.int64)
        node[variable] = np.arange(n)
        return cls(variable, np.array([node[above[x]] if above[x] >= 0 else -1 for x in variable]))

    @classmethod
    def promoted(cls, vtree: Vtree, information: Floats) -> RootedTree:
        """Put at every node of a vtree the variable that tells most about the others below it.

        Of a balanced vtree this makes a tree that is as deep as the vtree.
        """
        below: list[Ints] = []
        for x, left, right in zip(vtree.variable, vtree.left, vtree.right, strict=True):
            both = [np.array([x])] if x >= 0 else [below[left], below[right]]
            below.append(np.concatenate(both))
        free = np.ones(vtree.n_variables, np.bool_)
        chosen: list[tuple[int, int]] = []  # variable, position of its parent in this list
        todo = [(vtree.root, -1)]
        while todo:
            v, above = todo.pop()
            left_over = below[v][free[below[v]]]
            if len(left_over):
                between = information[np.ix_(left_over, left_over)]
                best = int(left_over[np.argmax(between.sum(axis=0))])
                free[best] = False
                sides = (vtree.right[v], vtree.left[v]) if vtree.variable[v] < 0 else ()
                todo += [(int(side), len(chosen)) for side in sides]
                chosen.append((best, above))
        last = len(chosen) - 1
        parent = [last - above if above >= 0 else -1 for _, above in reversed(chosen)]
        return cls(np.array([x for x, _ in reversed(chosen)]), np.array(parent))

    @cached_property
    def children(self) -> list[list[int]]:
        """The children of each node."""
        out: list[list[int]] = [[] for _ in self.variable]
        for node, above in enumerate(self.parent[:-1].tolist()):
            out[above].append(node)
        return out

    @cached_property
    def child_lists(self) -> tuple[Ints, Ints]:
        """The children of all nodes one after the other, and where each node's start."""
        start = np.concatenate([[0], np.cumsum([len(below) for below in self.children])])
        return start, np.array([child for below in self.children for child in below], np.int64)

    @cached_property
    def vtree(self) -> Vtree:
        """The vtree of the tree: a variable and the vtrees of its children, joined evenly."""
        below: list[Nested] = []
        for variable, children in zip(self.variable.tolist(), self.children, strict=True):
            parts: list[Nested] = [variable, *(below[child] for child in children)]
            parts = joined_in_pairs(parts, lambda a, b: (a, b))
            below.append((parts[0], parts[1]) if len(parts) == 2 else parts[0])
        return Vtree.from_nested(below[-1])

    def __len__(self) -> int:
        return len(self.variable)

    def __repr__(self) -> str:
        if len(self) > 12:
            return f"RootedTree({len(self)} variables)"
        pairs = zip(self.parent[:-1], self.variable[:-1], strict=True)
        return f"RootedTree({', '.join(f'{self.variable[a]} -> {x}' for a, x in pairs)})"


def joined_in_pairs(parts: list[Part], join: Callable[[Part, Part], Part]) -> list[Part]:
    """Join neighbours in pairs, again and again, until two are left (or one was given)."""
    while len(parts) > 2:
        pairs = [join(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[len(parts) // 2 * 2 :]
    return parts


def _greatest_links(information: Floats) -> coo_array:
    """Return the spanning tree of greatest information as a matrix of ones (Prim 1957)."""
    n = len(information)
    link, best = np.zeros(n, np.int64), information[0].copy()  # of each variable with the tree
    outside = np.ones(n, np.bool_)
    outside[0] = False
    for _ in range(n - 1):
        new = int(np.argmax(np.where(outside, best, -np.inf)))
        outside[new] = False
        closer = outside & (information[new] > best)
        link[closer], best[closer] = new, information[new, closer]
    return coo_array((np.ones(n - 1), (link[1:], np.arange(1, n))), (n, n))


def _walk(links: object, start: int) -> tuple[Sequence[int], Sequence[int]]:
    """Walk a tree from a node: the nodes in order of distance, and each one's predecessor."""
    order, above = breadth_first_order(links, start, directed=False)
    return order.tolist(), above.tolist()
