"""Write boxes along a vtree: parts that are equal are one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Floats, Ints
from expecta.engine.boxes.box_sums import BoxSum
from expecta.engine.boxes.value_sets import Runs, list_runs
from expecta.engine.layers import layers

Array = npt.NDArray[Any]

MAX_LISTED_PARTS = 256  # of a layer, that are all looked at


class Parts(NamedTuple):
    """What boxes ask of the variables below each vtree node. Part 0 asks nothing.

    Above a leaf a part is a part of the left child and one of the right.
    """

    start: Array  # layer v has the parts start[v] : start[v + 1]
    left: Array  # within the layer of the left child; at a leaf unused
    right: Array
    of_box: Array  # the part that each part of the root, a box, has of a layer: see of_box_at
    of_box_at: Array  # where the list of layer v begins, -1 for a layer of few parts
    asked_at: Array  # where the list of what each box asks begins
    asked: Array  # parts of leaves, counted through all layers
    run_at: Array  # where the runs of values begin that each part of a leaf allows
    low: Array  # of runs: low <= x < high
    high: Array


class Mixing(NamedTuple):
    """A circuit p as the kernel reads it, by element: which nodes it adds to, and how much."""

    tree_left: Array
    tree_right: Array
    variable: Array
    order: Array  # children first
    n_nodes: Array  # of p, in each layer
    leaf: Array  # weights at leaves: value by node, one layer after the other
    leaf_at: Array
    element_at: Array
    left: Array  # nodes that an element joins
    right: Array
    run_at: Array  # an element adds to runs of neighbouring nodes
    run_node: Array  # the first of them
    weight_at: Array  # where the weights of a run begin, and then where they all end
    weight: Array
    dense: Array  # whether every element of a layer adds to every node: weights are a matrix


def parts(boxes: BoxSum, vtree: Vtree, order: Ints) -> tuple[Parts, Floats]:
    """Write boxes along a vtree; returns the values of the parts at the root as well.

    Cost: sorting the boxes once per vtree node.
    """
    n = len(vtree.variable)
    halves: list[Array] = [np.zeros((0, 2), np.int32)] * n
    allowed: list[list[Runs]] = [[] for _ in range(n)]
    leaf: dict[int, Ints] = {}  # of the part that each box has of a variable
    kept: list[tuple[int, Ints]] = []  # the same for layers of many parts
    number: dict[int, Ints] = {}  # of the part that each box has at a vtree node
    everything = np.zeros((1, boxes.box.shape[1]), np.int32)
    box = np.concatenate([everything, boxes.box])  # so that part 0 is there, and comes first
    for v in order.tolist():
        variable = int(vtree.variable[v])
        if variable >= 0:
            used, number[v] = np.unique(box[:, variable], return_inverse=True)
            halves[v] = np.zeros((len(used), 2), np.int32)
            leaf[v] = number[v]
            allowed[v] = [boxes.sets[variable][number] for number in used.tolist()]
        else:
            a, b = number.pop(int(vtree.left[v])), number.pop(int(vtree.right[v]))
            width = int(b.max()) + 1
            keys, number[v] = np.unique(a * np.int64(width) + b, return_inverse=True)
            halves[v] = np.stack(np.divmod(keys, width), axis=1).astype(np.int32)
            allowed[v] = [()] * len(keys)
            if len(keys) > MAX_LISTED_PARTS and v != vtree.root:
                kept.append((v, number[v]))
    root = number[vtree.root]
    value = np.zeros((int(root.max()) + 1, boxes.value.shape[1]))
    np.add.at(value, root[1:], boxes.value)
    _, root_boxes = np.unique(root, return_index=True)  # a box for each part of the root
    start = _starts(halves)
    of_box_at = np.full(n, -1)
    of_box_at[[v for v, _ in kept]] = len(root_boxes) * np.arange(len(kept))
    asked = [(np.flatnonzero(part[root_boxes]), v, part[root_boxes]) for v, part in leaf.items()]
    asker = np.concatenate([who for who, _, _ in asked])
    by_box = np.argsort(asker, kind="stable")
    many = [part[root_boxes].astype(np.int32) for _, part in kept]
    both = np.concatenate(halves)
    run_at, low, high = list_runs(runs for layer in allowed for runs in layer)
    return Parts(
        start=start,
        left=np.ascontiguousarray(both[:, 0]),
        right=np.ascontiguousarray(both[:, 1]),
        of_box=np.concatenate([np.zeros(0, np.int32), *many]),
        of_box_at=of_box_at,
        asked_at=np.searchsorted(asker[by_box], np.arange(len(root_boxes) + 1)),
        asked=np.concatenate([start[v] + part[who] for who, v, part in asked])[by_box],
        run_at=run_at,
        low=low,
        high=high,
    ), value


def mixing(p: ProbabilisticCircuit, order: Ints) -> Mixing:
    """Write a circuit by element. Cost: sorting its edges."""
    s, tree, local = p.structure, p.structure.vtree, layers(p.structure)
    n_nodes = np.diff(s.node_start)
    node, weight = s.node_of_edge, np.exp(p.log_weight)
    layer = s.layer_of_node[node]
    node = node - s.node_start[layer]
    cards = np.where(tree.variable >= 0, s.cardinalities[tree.variable], 0)
    leaf_at = np.append(0, np.cumsum(cards * n_nodes))
    leaf = np.zeros(leaf_at[-1])
    here = s.edge_at_leaf
    cell = leaf_at[layer] + local.target * n_nodes[layer] + node
    np.add.at(leaf, cell[here], weight[here])
    above = np.flatnonzero(~here)
    above = above[np.lexsort((node[above], s.target[above]))]
    element, node, weight = s.target[above], node[above], weight[above]
    new = np.ones(len(above), bool)  # whether an edge begins a run
    new[1:] = (np.diff(element) != 0) | (np.diff(node) != 1)
    begins = np.flatnonzero(new)
    n_elements = np.diff(s.element_start)
    edges = np.bincount(layer[~here], minlength=len(n_nodes))
    return Mixing(
        tree.left,
        tree.right,
        tree.variable,
        order.astype(np.int64),
        n_nodes,
        leaf,
        leaf_at,
        s.element_start,
        local.left,
        local.right,
        np.searchsorted(element[begins], np.arange(s.n_elements + 1)),
        node[begins],
        np.append(begins, len(above)),
        weight,
        (edges > 0) & (edges == n_elements * n_nodes),
    )


def _starts(lists: list[Array]) -> Array:
    return np.append(0, np.cumsum([len(items) for items in lists])).astype(np.int64)
