"""Hold a circuit while it grows: pools of nodes and edges, and the way of every row.

A complete row reaches exactly one node of each layer of a deterministic circuit and
follows one of its edges. So the whole of the data is an edge per layer and row, and
every count is a sum over the rows of a node. Nodes own a stretch of their layer's
list of rows; their edges are linked lists, so that an edge can be added or taken
away without renumbering anything.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np

from expecta.circuits.structure import Structure
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Floats, Ints
from expecta.common.kernels import kernel


class VtreeArrays(NamedTuple):
    """The vtree and the values of its variables, as a kernel sees them."""

    left: Ints
    right: Ints
    parent: Ints
    size: Ints
    variable: Ints
    leaf_of: Ints
    cards: Ints


class NodePools(NamedTuple):
    """Pools of nodes and of edges; those in use come first."""

    layer: Ints  # (nodes,)
    head: Ints  # first edge of a node  # (nodes,)
    size: Ints  # number of its edges  # (nodes,)
    refs: Ints  # number of edges that lead to it, each side for itself  # (nodes,)
    row_start: Ints  # its stretch of the layer's list of rows  # (nodes,)
    row_count: Ints  # (nodes,)
    pull: Floats  # weight of its prior, in rows  # (nodes,)
    following: Ints  # the next edge of the same node, -1 after the last  # (edges,)
    owner: Ints  # (edges,)
    left: Ints  # left node; at a leaf the value  # (edges,)
    right: Ints  # right node; at a leaf -1  # (edges,)
    flow: Floats  # weight of the training rows that follow the edge  # (edges,)
    held: Floats  # the same for held-out rows  # (edges,)
    prior: Floats  # what smoothing pulls the probabilities towards  # (edges,)
    origin: Ints  # the edge it was copied or split from, -1 at the start  # (edges,)
    base: Floats  # the origin's weight then; after a split the new edge's  # (edges,)
    whole: Floats  # -1 for a copy; after a split the weight that was divided  # (edges,)


NODE_POOLS = 7  # the fields up to ``pull``


class RoutedRows(NamedTuple):
    """The data: training rows first, then held-out ones."""

    codes: Ints  # (variables, rows)
    weight: Floats  # zero for held-out rows  # (rows,)
    held: Floats  # zero for training rows  # (rows,)
    edge_at: Ints  # the edge that a row follows in each layer  # (vtree nodes, rows)
    order: Ints  # all rows, those of a node side by side  # (vtree nodes, rows)


class CircuitArrays(NamedTuple):
    """A growing circuit as kernels see it."""

    tree: VtreeArrays
    nodes: NodePools
    rows: RoutedRows
    literal_start: Ints  # the first nodes are literals, one per variable and value


class GrowingCircuit:
    """A deterministic circuit that operations change, with the rows that flow through it.

    Parameters
    ----------
    structure
        The circuit to start from.
    codes, weight
        Training rows without unknown cells, distinct for speed, and their weights.
    held_codes, held_weight
        Held-out rows without unknown cells; may be none.
    edge_at
        The edge of ``structure`` that each row (training, then held-out) follows in
        each layer.  # (vtree nodes, rows)
    pseudo_count, pull
        Weight of the prior, in rows, of the nodes it starts with (spread evenly over
        their edges) and of copies (spread like the original's distribution).

    Notes
    -----
    A row takes 8 bytes per vtree node. Leaves that allow one value only (literals) are
    shared in a layer, own no rows and count as no edges: they carry no parameter.
    """

    def __init__(
        self,
        structure: Structure,
        codes: Ints,
        weight: Floats,
        held_codes: Ints,
        held_weight: Floats,
        edge_at: Ints,
        pseudo_count: float,
        pull: float,
    ) -> None:
        s = structure
        self.vtree: Vtree = s.vtree
        self.pull = pull
        self.tree = VtreeArrays(
            np.array(s.vtree.left),
            np.array(s.vtree.right),
            np.array(s.vtree.parent),
            np.array(s.vtree.size),
            np.array(s.vtree.variable),
            np.array(s.vtree.leaf_of),
            np.array(s.cardinalities),
        )
        n_train, n_held = len(codes), len(held_codes)
        cards = s.cardinalities
        smallest = np.uint8 if int(np.max(cards)) <= 256 else np.int32
        self.rows = RoutedRows(
            np.ascontiguousarray(np.concatenate([codes, held_codes]).T.astype(smallest)),
            np.concatenate([weight, np.zeros(n_held)]),
            np.concatenate([np.zeros(n_train), held_weight]),
            np.array(edge_at, np.int32, order="C"),
            np.empty(edge_at.shape, np.int32),
        )
        # literals: the first nodes of the pool, one per variable and value
        self.literal_start = np.concatenate([[0], np.cumsum(cards)]).astype(np.int64)
        literals = int(self.literal_start[-1])
        self.n_nodes = literals + s.n_nodes
        self.n_edges = literals + s.n_edges
        self.nodes = NodePools._make(
            [np.zeros(self.n_nodes, np.int32) for _ in range(6)]
            + [np.full(self.n_nodes, float(pseudo_count))]
            + [np.full(self.n_edges, -1, np.int32) for _ in range(4)]
            + [np.zeros(self.n_edges) for _ in range(3)]
            + [np.full(self.n_edges, -1, np.int32)]
            + [np.zeros(self.n_edges) for _ in range(2)]
        )
        self._write_literals(literals)
        self._write(s, literals)
        self.start_nodes, self.start_edges = self.n_nodes, self.n_edges

    def _write_literals(self, literals: int) -> None:
        nodes, cards = self.nodes, self.tree.cards
        variable = np.repeat(np.arange(len(cards)), cards)
        nodes.layer[:literals] = self.tree.leaf_of[variable]
        nodes.head[:literals] = nodes.owner[:literals] = np.arange(literals)
        nodes.size[:literals] = 1
        nodes.left[:literals] = np.arange(literals) - self.literal_start[variable]
        nodes.prior[:literals] = 1.0

    def _write(self, s: Structure, literals: int) -> None:
        nodes, rows = self.nodes, self.rows
        mine, edges = slice(literals, self.n_nodes), slice(literals, self.n_edges)
        nodes.layer[mine] = s.layer_of_node
        nodes.head[mine] = literals + s.edge_start[:-1]
        nodes.size[mine] = np.diff(s.edge_start)
        nodes.following[edges] = literals + 1 + np.arange(s.n_edges)
        nodes.following[literals + s.edge_start[1:] - 1] = -1
        nodes.owner[edges] = literals + s.node_of_edge
        # a leaf of one value is the literal it equals
        node_at = literals + np.arange(s.n_nodes)
        variable = s.vtree.variable[s.layer_of_node]
        single = (variable >= 0) & (np.diff(s.edge_start) == 1)
        node_at[single] = self.literal_start[variable[single]] + s.target[s.edge_start[:-1][single]]
        self.root = int(node_at[s.root])
        nodes.refs[self.root] = 1
        leaf = s.edge_at_leaf
        target = s.target
        inner = np.where(leaf, 0, target)
        pairs = (s.left, s.right) if s.n_elements else (np.zeros(1, np.int64),) * 2
        nodes.left[edges] = np.where(leaf, target, node_at[pairs[0][inner]])
        nodes.right[edges] = np.where(leaf, -1, node_at[pairs[1][inner]])
        for child in (s.left[target[~leaf]], s.right[target[~leaf]]):
            np.add.at(nodes.refs, node_at[child], 1)
        edge_at_of = literals + np.arange(s.n_edges)
        of_single = single[s.node_of_edge]
        edge_at_of[of_single] = node_at[s.node_of_edge[of_single]]  # a literal's edge is its number
        rows.edge_at[:] = edge_at_of[rows.edge_at]
        for v in range(len(self.vtree)):
            nodes.flow[:] += np.bincount(rows.edge_at[v], rows.weight, self.n_edges)
            nodes.held[:] += np.bincount(rows.edge_at[v], rows.held, self.n_edges)
            node = nodes.owner[rows.edge_at[v]]
            rows.order[v] = np.argsort(node, kind="stable")
            here, start, count = np.unique(
                node[rows.order[v]], return_index=True, return_counts=True
            )
            nodes.row_start[here], nodes.row_count[here] = start, count
        nodes.prior[edges] = 1.0 / np.diff(s.edge_start)[s.node_of_edge]

    @property
    def arrays(self) -> CircuitArrays:
        """The circuit as kernels see it, until pools grow."""
        return CircuitArrays(self.tree, self.nodes, self.rows, self.literal_start)

    def reserve(self, nodes: int, edges: int) -> None:
        """Make room for so many more nodes and edges; doubling keeps the cost linear."""
        if self.n_nodes + nodes > len(self.nodes.layer):
            self._grow(0, NODE_POOLS, max(2 * len(self.nodes.layer), self.n_nodes + nodes))
        if self.n_edges + edges > len(self.nodes.owner):
            last = len(self.nodes)
            self._grow(NODE_POOLS, last, max(2 * len(self.nodes.owner), self.n_edges + edges))

    def _grow(self, first: int, last: int, size: int) -> None:
        grown = list(self.nodes)
        for field in range(first, last):
            old = grown[field]
            grown[field] = np.concatenate([old, np.zeros(size - len(old), old.dtype)])
        self.nodes = NodePools._make(grown)

    def rows_of(self, node: int) -> Ints:
        """Return the rows that reach a node, training and held-out."""
        start = self.nodes.row_start[node]
        count = self.nodes.row_count[node]
        return self.rows.order[self.nodes.layer[node], start : start + count]

    def snapshot(self) -> GrowingCircuit:
        """Copy the circuit and its counts, without the ways of the rows."""
        out = copy(self)
        out.nodes = NodePools._make(
            pool[: self.n_nodes if field < NODE_POOLS else self.n_edges].copy()
            for field, pool in enumerate(self.nodes)
        )
        return out

    def context(self, node: int, layer: int, edge: int) -> tuple[Ints, Ints]:
        """Return the training and the held-out rows of a node that follow an edge in a layer."""
        mine = self.rows_of(node)
        mine = mine[self.rows.edge_at[layer, mine] == edge]
        held = self.rows.weight[mine] == 0
        return mine[~held], mine[held]

    def alive(self) -> Ints:
        """Return the nodes that the root reaches, literals included."""
        return np.flatnonzero(self.nodes.refs[: self.n_nodes] > 0)

    def live_edges(self) -> int:
        """Count the edges of the nodes that are in use, literals left out."""
        nodes = self.alive()
        return int(np.sum(self.nodes.size[nodes[nodes >= self.literal_start[-1]]]))


@kernel
def edges_of(nodes: NodePools, node: int) -> Ints:
    """Return the edges of a node."""
    out = np.empty(nodes.size[node], np.int64)
    e = nodes.head[node]
    for i in range(len(out)):
        out[i] = e
        e = nodes.following[e]
    return out
