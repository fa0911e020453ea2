"""Write a tree-shaped model as a circuit over the vtree of its tree."""

from __future__ import annotations

from functools import partial

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit, log_of
from expecta.circuits.structure import Structure
from expecta.common.arrays import Floats, Ints
from expecta.learn.trees.layout import TreeLayout
from expecta.learn.trees.tree import joined_in_pairs


def tree_circuit(layout: TreeLayout, theta: Floats) -> ProbabilisticCircuit:
    """Build the circuit of p(x), with a node per state in every layer.

    At variable u the vtree joins X_u and the vtrees of its children, two by two. These layers
    have a node per state of u that joins one node of either side; the topmost mixes
    them into a node per state of u's *parent*, by the transitions. A variable without
    children needs no layer for that: its leaf takes the product of the two tables.
    """
    layers = _Layers()
    top: list[int] = []  # layer of T(u) for each node u of the tree
    for u, children in enumerate(layout.tree.children):
        transitions, values = layout.transitions(theta, u), layout.values(theta, u)
        if not children:
            top.append(layers.add(transitions @ values))
            continue
        parts = [layers.add(values), *(top[child] for child in children)]
        left, right = joined_in_pairs(parts, partial(layers.join, np.eye(len(values))))
        top.append(layers.join(transitions, left, right))
    cards = np.empty(len(top), np.int64)
    cards[layout.tree.variable] = layout.cardinalities
    return layers.circuit(layout, cards, top)


class _Layers:
    """Layers in the order they are made, until their positions in the vtree are known."""

    def __init__(self) -> None:
        self.weights: list[Floats] = []  # (nodes, elements or values)
        self.sides: list[tuple[int, int] | None] = []

    def add(self, weights: Floats, sides: tuple[int, int] | None = None) -> int:
        """Add a leaf, or a layer that joins two others; returns its number."""
        self.weights.append(weights)
        self.sides.append(sides)
        return len(self.sides) - 1

    def join(self, weights: Floats, left: int, right: int) -> int:
        return self.add(weights, (left, right))

    def circuit(self, layout: TreeLayout, cards: Ints, top: list[int]) -> ProbabilisticCircuit:
        vtree = layout.tree.vtree
        layer_at = np.empty(len(vtree), np.int64)  # vtree node -> layer here
        todo = [(vtree.root, top[-1])]
        while todo:
            v, layer = todo.pop()
            layer_at[v] = layer
            sides = self.sides[layer]
            if sides is not None:
                todo += [(int(vtree.left[v]), sides[0]), (int(vtree.right[v]), sides[1])]
        tables = [self.weights[layer] for layer in layer_at.tolist()]
        inner = vtree.variable < 0
        node_start = np.concatenate([[0], np.cumsum([len(table) for table in tables])])
        n_elements = [t.shape[1] if i else 0 for t, i in zip(tables, inner, strict=True)]
        element_start = np.concatenate([[0], np.cumsum(n_elements)])
        left, right, target, weight, per_node = [], [], [], [], []
        for v, table in enumerate(tables):
            rows, columns = np.nonzero(table)
            first = element_start[v] if inner[v] else 0
            target.append(first + columns)
            weight.append(table[rows, columns])
            per_node.append(np.bincount(rows, minlength=len(table)))
            if inner[v]:
                units = np.arange(table.shape[1])
                left.append(node_start[vtree.left[v]] + units)
                right.append(node_start[vtree.right[v]] + units)
        no_element = [np.zeros(0, np.int64)]
        structure = Structure(
            vtree=vtree,
            cardinalities=cards,
            node_start=node_start,
            element_start=element_start,
            left=np.concatenate(left or no_element),
            right=np.concatenate(right or no_element),
            edge_start=np.concatenate([[0], np.cumsum(np.concatenate(per_node))]),
            target=np.concatenate(target),
        )
        return ProbabilisticCircuit(structure, log_of(np.concatenate(weight))).normalised()
