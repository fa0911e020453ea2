"""Hold the shape that probabilistic and regression circuits share, as flat arrays.

A circuit over a vtree is a layer of OR nodes per vtree node. An OR node at an
inner vtree node chooses among *elements*, AND gates of a left and a right node;
an OR node at a vtree leaf chooses among the *values* of its variable. Either
choice is an *edge*, and every edge carries a parameter: θ in a probabilistic
circuit, φ in a regression circuit. Layers are stored one after the other, so
that a whole circuit is six integer arrays, whatever its size.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Bools, Ints, frozen, within
from expecta.common.errors import StructureError
from expecta.common.text import shortened

MAX_CARDINALITY = 1 << 16  # bounds what a hostile file can make us allocate


@dataclass(frozen=True, eq=False)
class Structure:
    """Nodes, elements and edges of a circuit, layer by layer along a vtree.

    Smoothness and structured decomposability hold by construction: an element's
    left (right) node must lie in the layer of the left (right) child.

    Parameters
    ----------
    vtree
        The vtree that the circuit decomposes along.
    cardinalities
        Number of values of each variable.  # (variables,)
    node_start
        Layer ``v`` has the nodes ``node_start[v] : node_start[v + 1]``.  # (vtree nodes + 1,)
    element_start
        And the elements ``element_start[v] : element_start[v + 1]``.  # (vtree nodes + 1,)
    left, right
        The two nodes that an element joins.  # (elements,)
    edge_start
        Node ``n`` has the edges ``edge_start[n] : edge_start[n + 1]``.  # (nodes + 1,)
    target
        What an edge leads to: an element, or at a leaf a value.  # (edges,)

    Examples
    --------
    >>> from expecta.circuits import independent
    >>> structure = independent(Vtree.balanced(2), [[0.5, 0.5]] * 2).structure
    >>> structure.n_edges
    5
    """

    vtree: Vtree
    cardinalities: Ints
    node_start: Ints
    element_start: Ints
    left: Ints
    right: Ints
    edge_start: Ints
    target: Ints

    def __post_init__(self) -> None:
        for name in ("node_start", "element_start", "edge_start"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.int64, 1, name))
        for name in ("cardinalities", "left", "right", "target"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.int32, 1, name))
        self._check()

    def __reduce__(self) -> tuple[Any, ...]:  # through the constructor: checked and frozen
        return Structure, tuple(getattr(self, field.name) for field in fields(self))

    # -- sizes ------------------------------------------------------------------------

    @property
    def n_variables(self) -> int:
        """How many variables the circuit speaks of."""
        return len(self.cardinalities)

    @property
    def n_nodes(self) -> int:
        """How many OR nodes there are, those at the leaves included."""
        return len(self.edge_start) - 1

    @property
    def n_elements(self) -> int:
        """How many AND gates there are; equal gates of a layer are stored once."""
        return len(self.left)

    @property
    def n_edges(self) -> int:
        """How many wires enter OR nodes, and so how many parameters there are per output."""
        return len(self.target)

    @property
    def root(self) -> int:
        """The root's node number: the last."""
        return self.n_nodes - 1

    @cached_property
    def layer_of_node(self) -> Ints:
        """The vtree node that each node belongs to.  # (nodes,)."""
        return np.repeat(np.arange(len(self.vtree)), np.diff(self.node_start))

    @cached_property
    def layer_of_element(self) -> Ints:
        """The vtree node that each element belongs to.  # (elements,)."""
        return np.repeat(np.arange(len(self.vtree)), np.diff(self.element_start))

    @cached_property
    def node_of_edge(self) -> Ints:
        """The node that each edge enters.  # (edges,)."""
        return np.repeat(np.arange(self.n_nodes), np.diff(self.edge_start))

    @cached_property
    def edge_at_leaf(self) -> Bools:
        """Whether an edge leads to a value rather than to an element.  # (edges,)."""
        return self.vtree.variable[self.layer_of_node[self.node_of_edge]] >= 0

    def name_of(self, node: int) -> str:
        """Say which node this is, for messages.

        Parameters
        ----------
        node
            Its number.

        Returns
        -------
        str
            Where it is, in words.
        """
        layer = int(self.layer_of_node[node])
        variables = shortened(self.vtree.variables_below(layer))
        where = int(node - self.node_start[layer])
        return f"node {node} (number {where} at vtree node {layer}, variables {variables})"

    # -- checks -----------------------------------------------------------------------

    def _check(self) -> None:
        tree = self.vtree
        if self.n_variables != tree.n_variables:
            raise StructureError(
                f"{self.n_variables} cardinalities for a vtree of {tree.n_variables} variables"
            )
        if not within(self.cardinalities, 1, MAX_CARDINALITY + 1):
            raise StructureError(f"a variable has 1 to {MAX_CARDINALITY} values")
        _check_starts(self.node_start, len(tree), len(self.edge_start) - 1, "node_start")
        _check_starts(self.element_start, len(tree), self.n_elements, "element_start")
        _check_starts(self.edge_start, self.n_nodes, self.n_edges, "edge_start")
        if len(self.left) != len(self.right):
            raise StructureError("left and right differ in length")
        if np.any(np.diff(self.node_start) == 0):
            empty = int(np.flatnonzero(np.diff(self.node_start) == 0)[0])
            raise StructureError(
                f"vtree node {empty} has no circuit node: the circuit is not smooth"
            )
        if self.node_start[-1] - self.node_start[-2] != 1:
            raise StructureError("the layer of the vtree's root must hold one node, the root")
        if np.any(np.diff(self.edge_start) == 0):
            empty = int(np.flatnonzero(np.diff(self.edge_start) == 0)[0])
            raise StructureError(f"{self.name_of(empty)} has no edges")
        at_leaf = tree.variable >= 0
        if np.any(np.diff(self.element_start)[at_leaf]):
            raise StructureError("a vtree leaf has no elements")
        for side, children, tree_children in (
            ("left", self.left, tree.left),
            ("right", self.right, tree.right),
        ):
            layer = tree_children[self.layer_of_element]
            low, high = self.node_start[layer], self.node_start[layer + 1]
            bad = np.flatnonzero((children < low) | (children >= high))
            if len(bad):
                raise StructureError(
                    f"element {bad[0]} takes its {side} node from outside the {side} child of its "
                    f"vtree node: the circuit is not smooth and decomposable along the vtree"
                )
        layer = self.layer_of_node[self.node_of_edge]
        card = np.append(self.cardinalities, 0)[tree.variable[layer]]
        low = np.where(self.edge_at_leaf, 0, self.element_start[layer])
        high = np.where(self.edge_at_leaf, card, self.element_start[layer + 1])
        bad = np.flatnonzero((self.target < low) | (self.target >= high))
        if len(bad):
            node = int(self.node_of_edge[bad[0]])
            raise StructureError(
                f"{self.name_of(node)} has an edge to {int(self.target[bad[0]])}, "
                f"outside {int(low[bad[0]])} .. {int(high[bad[0]]) - 1}"
            )
        self._check_values_differ()

    def _check_values_differ(self) -> None:
        leaf_edges = np.flatnonzero(self.edge_at_leaf)
        keys = self.node_of_edge[leaf_edges] * MAX_CARDINALITY + self.target[leaf_edges]
        unique, counts = np.unique(keys, return_counts=True)
        if np.any(counts > 1):
            node, value = divmod(int(unique[np.argmax(counts > 1)]), MAX_CARDINALITY)
            raise StructureError(f"{self.name_of(node)} lists value {value} twice")

    # -- the same structure, smaller --------------------------------------------------

    def merged(
        self, parameter: npt.NDArray[Any] | None = None, keep: Bools | None = None
    ) -> tuple[Structure, Ints]:
        """Merge nodes that are equal, bottom-up, and drop what the root does not reach.

        Returns the structure and, for each of its edges, the edge of this one whose parameter
        it takes. Cost: linear in the edges, and nodes are compared one by one in layers
        only where two may be equal by their parameters.

        Parameters
        ----------
        parameter
            What edges of equal nodes have in common, bit by bit, in numbers of 64 bits; None
            for nothing.  # (edges, ...)
        keep
            Edges to keep; None keeps all.  # (edges,)

        Returns
        -------
        tuple
            The structure, and an edge of this one for each of its edges.
        """
        if keep is None:
            keep = np.ones(self.n_edges, np.bool_)
        if parameter is None:
            parameter = np.zeros((self.n_edges, 0))
        tree = self.vtree
        left, right = tree.left.tolist(), tree.right.tolist()
        # Node -> its representative; element -> its representative.
        node_rep = np.arange(self.n_nodes)
        element_rep = np.arange(self.n_elements)
        parameter = np.ascontiguousarray(parameter).reshape(self.n_edges, -1)
        nodes_alike = self._alike_nodes(parameter.view(np.int64))
        elements_alike = _layers_with_equal(
            self.layer_of_element, self.left.astype(np.int64) * self.n_nodes + self.right, len(tree)
        )
        fewer = [False] * len(tree)  # whether nodes of a layer were merged
        for v in range(len(tree)):
            if elements_alike[v] or (left[v] >= 0 and (fewer[left[v]] or fewer[right[v]])):
                elements = np.arange(self.element_start[v], self.element_start[v + 1])
                pair = node_rep[self.left[elements]] * self.n_nodes + node_rep[self.right[elements]]
                _, first, inverse = np.unique(pair, return_index=True, return_inverse=True)
                element_rep[elements] = elements[first[inverse]]
            if not nodes_alike[v]:
                continue
            seen: dict[tuple[bytes, bytes], int] = {}
            for n in range(self.node_start[v], self.node_start[v + 1]):
                a, b = int(self.edge_start[n]), int(self.edge_start[n + 1])
                targets = self.target[a:b] if left[v] < 0 else element_rep[self.target[a:b]]
                key = (targets.tobytes() + keep[a:b].tobytes(), parameter[a:b].tobytes())
                node_rep[n] = seen.setdefault(key, n)
            fewer[v] = len(seen) < self.node_start[v + 1] - self.node_start[v]
        return self._select(node_rep, element_rep, keep)

    def _alike_nodes(self, bits: Ints) -> list[bool]:
        """Whether two nodes of a layer may have the same parameters, by sums of their bits."""
        salt = np.random.default_rng(0).integers(-(2**62), 2**62, bits.shape[1])
        with np.errstate(over="ignore"):
            sums = np.add.reduceat(bits @ salt, self.edge_start[:-1])
            sums += np.diff(self.edge_start)
        return _layers_with_equal(self.layer_of_node, sums, len(self.vtree))

    def _select(self, node_rep: Ints, element_rep: Ints, keep: Bools) -> tuple[Structure, Ints]:
        """Keep what the root reaches through representatives and kept edges."""
        tree = self.vtree
        if self._all_used(node_rep, element_rep, keep):
            return self, np.arange(self.n_edges)
        node_used = np.zeros(self.n_nodes, np.bool_)
        element_used = np.zeros(self.n_elements, np.bool_)
        node_used[self.root] = True
        for v in range(tree.root, -1, -1):
            if tree.variable[v] >= 0:
                continue
            a, b = self.edge_start[self.node_start[v]], self.edge_start[self.node_start[v + 1]]
            live = node_used[self.node_of_edge[a:b]] & keep[a:b]
            used = element_rep[self.target[a:b][live]]
            element_used[used] = True
            node_used[node_rep[self.left[used]]] = True
            node_used[node_rep[self.right[used]]] = True
        nodes, elements = np.flatnonzero(node_used), np.flatnonzero(element_used)
        edges = np.flatnonzero(node_used[self.node_of_edge] & keep)
        new_node = np.cumsum(node_used) - 1
        new_element = np.cumsum(element_used) - 1
        at_leaf = self.edge_at_leaf[edges]
        target = self.target[edges].copy()
        target[~at_leaf] = new_element[element_rep[target[~at_leaf]]]
        per_node = np.bincount(new_node[self.node_of_edge[edges]], minlength=len(nodes))
        structure = Structure(
            vtree=tree,
            cardinalities=self.cardinalities,
            node_start=starts_of(self.layer_of_node[nodes], len(tree)),
            element_start=starts_of(self.layer_of_element[elements], len(tree)),
            left=new_node[node_rep[self.left[elements]]],
            right=new_node[node_rep[self.right[elements]]],
            edge_start=np.concatenate([[0], np.cumsum(per_node)]),
            target=target,
        )
        return structure, edges

    def _all_used(self, node_rep: Ints, element_rep: Ints, keep: Bools) -> bool:
        """Whether nothing is merged or dropped, and all nodes and elements have a use.

        Uses lie above what they use, so that all of them then lead to the root.
        """
        node_used = np.zeros(self.n_nodes, np.bool_)
        element_used = np.zeros(self.n_elements, np.bool_)
        node_used[self.left] = node_used[self.right] = node_used[self.root] = True
        element_used[self.target[~self.edge_at_leaf]] = True
        same = np.array_equal(node_rep, np.arange(self.n_nodes)) and np.array_equal(
            element_rep, np.arange(self.n_elements)
        )
        return bool(same and keep.all() and node_used.all() and element_used.all())

    def same_as(self, other: Structure) -> bool:
        """Whether two structures are equal, array by array.

        Parameters
        ----------
        other
            Another structure.
        """
        return self.vtree == other.vtree and all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
            if field.name != "vtree"
        )


class Circuit:
    """What both kinds of circuit have: a structure whose edges carry parameters."""

    structure: Structure

    @property
    def vtree(self) -> Vtree:
        """The vtree the circuit decomposes along."""
        return self.structure.vtree

    @property
    def cardinalities(self) -> Ints:
        """Number of values of each variable."""
        return self.structure.cardinalities

    @property
    def n_variables(self) -> int:
        """How many variables the circuit is over."""
        return self.structure.n_variables


def starts_of(layer: Ints, n_layers: int) -> Ints:
    """Return where each layer begins in a list sorted by layer, and where the list ends."""
    return np.concatenate([[0], np.cumsum(np.bincount(layer, minlength=n_layers))])


def _layers_with_equal(layer: Ints, number: Ints, n_layers: int) -> list[bool]:
    """Whether some number comes twice in each layer."""
    order = np.lexsort((number, layer))
    again = (np.diff(layer[order]) == 0) & (np.diff(number[order]) == 0)
    return np.asarray(np.bincount(layer[order][1:][again], minlength=n_layers) > 0).tolist()


def _check_starts(start: Ints, n: int, total: int, name: str) -> None:
    # compared, not subtracted: differences of hostile numbers wrap around
    if len(start) != n + 1 or start[0] != 0 or start[-1] != total or np.any(start[1:] < start[:-1]):
        raise StructureError(f"{name} must rise from 0 to {total} in {n} steps")
