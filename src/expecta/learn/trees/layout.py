"""Lay out the parameters of a tree-shaped model in one array.

Every variable x of the tree has a state z: hidden, or x itself. The model is

    p(x) = Σ_z  Π_v  A_v[z_parent(v), z_v] · B_v[z_v, x_v]

with a table A_v of transitions (the root's has a single row, its prior) and a table
B_v of values per state. The four tree models differ in states alone:

    independent     one state each
    naive Bayes     a star; the states are the values
    Chow-Liu        the tree of greatest information; the states are the values
    latent tree     the same tree; K hidden states each, and at a column of few values beside
                    numbers one more for each value

All tables lie in one flat array θ, row after row. Expected counts have the same layout,
so that learning is a sum of such arrays and one division.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.learn.trees.tree import RootedTree


@dataclass(frozen=True, eq=False)
class TreeLayout:
    """The tables of a model over a tree, laid out one after the other.

    Parameters
    ----------
    tree
        The tree.
    states
        Number of states at each node of the tree.  # (nodes,)
    cardinalities
        Number of values at each node of the tree.  # (nodes,)
    """

    tree: RootedTree
    states: Ints
    cardinalities: Ints

    @cached_property
    def shared(self) -> int:
        """Number of states that every node has: K."""
        return int(np.min(self.states))

    @cached_property
    def above(self) -> Ints:
        """Number of states of each node's parent; one above the root.  # (nodes,)."""
        return np.append(self.states, 1)[self.tree.parent]

    @cached_property
    def a_start(self) -> Ints:
        """Where each node's transitions start.  # (nodes + 1,)."""
        return np.concatenate([[0], np.cumsum(self.above.astype(np.int64) * self.states)])

    @cached_property
    def b_start(self) -> Ints:
        """Where each node's values start.  # (nodes + 1,)."""
        sizes = self.states.astype(np.int64) * self.cardinalities
        return self.a_start[-1] + np.concatenate([[0], np.cumsum(sizes)])

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return int(self.b_start[-1])

    @cached_property
    def row_start(self) -> Ints:
        """Where each row of a table, a distribution, starts.  # (distributions,)."""
        lengths = np.concatenate(
            [np.repeat(self.states, self.above), np.repeat(self.cardinalities, self.states)]
        )
        return np.concatenate([[0], np.cumsum(lengths.astype(np.int64))[:-1]])

    @cached_property
    def row_length(self) -> Ints:
        """How long each row is.  # (distributions,)."""
        return np.diff(self.row_start, append=self.size)

    def transitions(self, theta: Floats, node: int) -> Floats:
        """View the transitions into a node.  # (states of the parent, states)."""
        flat = theta[self.a_start[node] : self.a_start[node + 1]]
        return flat.reshape(int(self.above[node]), int(self.states[node]))

    def values(self, theta: Floats, node: int) -> Floats:
        """View the values of a node.  # (states, values)."""
        flat = theta[self.b_start[node] : self.b_start[node + 1]]
        return flat.reshape(int(self.states[node]), int(self.cardinalities[node]))

    @cached_property
    def leaf_start(self) -> Ints:
        """Where each node's likelihoods start: a row of states for each value.  # (nodes + 1,).

        The last row of a node is that of an unknown value.
        """
        sizes = (self.cardinalities.astype(np.int64) + 1) * self.states
        return np.concatenate([[0], np.cumsum(sizes)])

    @cached_property
    def leaf_index(self) -> Ints:
        """Which parameter each likelihood is; ``size`` for those of unknown values."""
        index = np.full(int(self.leaf_start[-1]), self.size)
        for node, (states, card) in enumerate(zip(self.states, self.cardinalities, strict=True)):
            first, b = int(self.leaf_start[node]), int(self.b_start[node])
            n = int(states) * int(card)
            own = np.arange(b, b + n).reshape(int(states), int(card))
            index[first : first + n] = own.T.reshape(-1)
        return index

    @cached_property
    def value_index(self) -> Ints:
        """Where among the likelihoods each parameter of values is: the inverse."""
        known = np.flatnonzero(self.leaf_index < self.size)
        index = np.empty(len(known), np.int64)
        index[self.leaf_index[known] - self.a_start[-1]] = known
        return index

    def normalised(self, counts: Floats) -> Floats:
        """Divide every row by its sum; a row of zeros becomes even."""
        total = np.repeat(np.add.reduceat(counts, self.row_start), self.row_length)
        even = 1.0 / np.repeat(self.row_length, self.row_length)
        return np.where(total > 0, counts / np.where(total > 0, total, 1.0), even)
