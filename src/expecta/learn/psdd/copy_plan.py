"""Decide on the copies that a division of rows makes, from the top down and exactly.

A node is asked for in up to two versions, for the rows of side A and of side B, by
copies above it; whoever else leads to it keeps the original. The node grants a copy
where that pays. What is promised here is what happens: the gain is the change of the
training log-likelihood, the cost the number of edges added.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Floats, Ints
from expecta.common.kernels import helper, kernel
from expecta.learn.psdd.divisions import CopyWorth
from expecta.learn.psdd.growing_circuit import CircuitArrays, NodePools, VtreeArrays
from expecta.learn.psdd.reached_circuit import ReachedCircuit, xlogx

MIXED = 4  # beside the bits 1 and 2, for copies made: the node is divided by value
DEAD = 8  # nothing leads to the original any more


class CopyScratch(NamedTuple):
    """Scratch of one operation, as large as the pools; zero (-1 for links) between uses."""

    flow: Floats  # training weight of both sides on each edge  # (2, edges)
    held: Floats  # held-out weight  # (2, edges)
    new_edge: Ints  # (2, edges)
    asked: Ints  # how many edges ask for the version of a side  # (2, nodes)
    new_node: Ints  # (2, nodes)
    change: Ints  # of the number of references to the original  # (nodes,)
    made: Ints  # bits: see above  # (nodes,)
    support: Ints  # bits: which sides the values of the divided variable allow  # (nodes,)
    ahead: Floats  # net gain that copies below promise  # (nodes,)
    reach: Floats  # for how much weight of side A  # (nodes,)
    link: Ints  # the nodes asked for, a list per layer  # (nodes,)
    first: Ints  # (layers,)
    walk: Ints  # nodes on the way to the divided variable  # (nodes,)
    values: Ints  # the divided variable's values from, to (excluded), and their side  # (3,)


REAL = {"flow", "held", "ahead", "reach"}
PER_EDGE = {"flow", "held", "new_edge"}
PER_SIDE = PER_EDGE | {"asked", "new_node"}
LINKS = {"new_edge", "new_node", "link"}
POOLS = [name for name in CopyScratch._fields if name not in ("first", "values")]


def new_scratch(layers: int) -> CopyScratch:
    """Make scratch for no nodes and edges."""
    pools = {
        name: np.empty((2, 0) if name in PER_SIDE else 0, float if name in REAL else np.int64)
        for name in POOLS
    }
    return CopyScratch(first=np.full(layers, -2, np.int64), values=np.zeros(3, np.int64), **pools)


def grown_scratch(work: CopyScratch, nodes: int, edges: int) -> CopyScratch:
    """Make scratch as large as pools of nodes and edges, keeping what it holds."""
    sizes = {name: edges if name in PER_EDGE else nodes for name in POOLS}
    fills = {name: -1 if name in LINKS else 0 for name in POOLS}
    pools = {name: padded(getattr(work, name), sizes[name], fills[name]) for name in POOLS}
    return work._replace(**pools)


def padded(old: npt.NDArray[Any], size: int, fill: int) -> npt.NDArray[Any]:
    """Return an array whose last axis has at least a size, filled up."""
    if old.shape[-1] >= size:
        return old
    new = np.full((*old.shape[:-1], size), fill, old.dtype)
    new[..., : old.shape[-1]] = old
    return new


class DividedRows(NamedTuple):
    """Rows of a context, training and held-out, their sides, and the layers below."""

    which: Ints
    side: Ints  # 0 or 1 for each row
    low: int  # layers low .. high
    high: int


@kernel
def request(nodes: NodePools, work: CopyScratch, node: int, side: int) -> None:
    """Ask for the version of a node for a side."""
    if work.link[node] == -1:
        layer = nodes.layer[node]
        work.link[node] = work.first[layer]
        work.first[layer] = node
    work.asked[side, node] += 1


@kernel
def mark_support(
    tree: VtreeArrays, nodes: NodePools, work: CopyScratch, top: int, variable: int
) -> int:
    """Mark which sides the values allow that nodes from ``top`` down give to a variable.

    Returns how many nodes were marked. Cost: their edges.
    """
    leaf = tree.leaf_of[variable]
    work.walk[0] = top
    work.support[top] = 16  # seen
    known = 1
    at = 0
    while at < known:
        m = work.walk[at]
        at += 1
        w = nodes.layer[m]
        e = nodes.head[m] if w != leaf else -1
        while e >= 0:
            child = nodes.left[e] if leaf <= tree.left[w] else nodes.right[e]
            if work.support[child] == 0:
                work.support[child] = 16
                work.walk[known] = child
                known += 1
            e = nodes.following[e]
    for at in range(known - 1, -1, -1):  # layer by layer, so children come later
        m = work.walk[at]
        w = nodes.layer[m]
        bits = 0
        e = nodes.head[m]
        while e >= 0:
            if w == leaf:
                bits |= 1 << _side_of(work, nodes.left[e])
            else:
                bits |= work.support[nodes.left[e] if leaf <= tree.left[w] else nodes.right[e]]
            e = nodes.following[e]
        work.support[m] = bits
    return known


@helper
def _side_of(work: CopyScratch, value: int) -> int:
    side: int = work.values[2]
    return side if work.values[0] <= value < work.values[1] else 1 - side


@kernel
def expect(context: ReachedCircuit, worth: CopyWorth, work: CopyScratch, n_nodes: int) -> None:
    """Note what the copies below each node promise, to look ahead by."""
    for t in range(n_nodes):
        k = worth.nodes[t]
        work.ahead[context.node[k]] = worth.below[k]
        work.reach[context.node[k]] = worth.total[k]


@kernel
def plan(
    circuit: CircuitArrays, work: CopyScratch, divided: DividedRows, tops: int, price: float
) -> tuple[float, float, int, int, Ints]:
    """Decide on copies for what has been requested.

    Parameters
    ----------
    tops
        Parent of the topmost layers.
    price
        What an edge must gain to be worth having.

    Returns
    -------
    gain, cost, most new nodes, most new edges, and whether each row asks for a version
    of its own in each layer.  # (layers, rows)
    """
    tree, nodes, rows = circuit.tree, circuit.nodes, circuit.rows
    literals = circuit.literal_start[-1]
    which, side, low, high = divided.which, divided.side, divided.low, divided.high
    n = len(which)
    active = np.zeros((high - low + 1, n), np.uint8)
    gain, cost = 0.0, 0.0
    new_nodes, new_edges = 0, 0
    for w in range(high, low - 1, -1):
        if work.first[w] < 0:
            continue
        above = tree.parent[w]
        for i in range(n):
            if above != tops:
                m = nodes.owner[rows.edge_at[above, which[i]]]
                if active[above - low, i] == 0 or not (work.made[m] >> side[i]) & 1:
                    continue
            active[w - low, i] = 1
            e = rows.edge_at[w, which[i]]
            work.flow[side[i], e] += rows.weight[which[i]]
            work.held[side[i], e] += rows.held[which[i]]
        m = work.first[w]
        while m >= 0:
            if m >= literals:
                more, edges = _decide(tree, nodes, work, m, price)
                gain += more
                cost += edges
                for s in range(2):
                    if (work.made[m] >> s) & 1:
                        new_nodes += 1
                        new_edges += nodes.size[m]
            m = work.link[m]
    return gain, cost, new_nodes, new_edges, active


@helper
def _decide(
    tree: VtreeArrays, nodes: NodePools, work: CopyScratch, m: int, price: float
) -> tuple[float, float]:
    """Grant a node's versions, or not; ask for those of its children that follow from it."""
    refs = nodes.refs[m] + work.change[m]
    size = nodes.size[m]
    terms = np.zeros(6)  # A, B, neither, not A, not B, all
    totals = np.zeros(6)
    e = nodes.head[m]
    while e >= 0:
        c, a, b = nodes.flow[e], work.flow[0, e], work.flow[1, e]
        for k, x in enumerate((a, b, c - a - b, c - a, c - b, c)):
            terms[k] += xlogx(x)
            totals[k] += x
        e = nodes.following[e]
    for k in range(6):
        terms[k] -= xlogx(totals[k])
    if work.support[m] == 3:
        made = 3 | MIXED | (DEAD if refs == 0 else 0)
        work.made[m] = made
        gain = terms[0] + terms[1] + terms[2] - terms[5]
        return gain, _pass_on(tree, nodes, work, m) - (size if refs == 0 else 0)
    a, b = work.asked[0, m] > 0, work.asked[1, m] > 0
    if refs == 0:  # the larger side takes the original over
        if a and (not b or totals[0] > totals[1]):
            a = False
        else:
            b = False
    best, made, gain = 0.0, 0, 0.0
    ahead, reach = work.ahead[m], work.reach[m]
    for option in range(1, 4):
        if (option & 1 and not a) or (option & 2 and not b):
            continue
        if option == 1:
            more = terms[0] + terms[3] - terms[5]
        elif option == 2:
            more = terms[1] + terms[4] - terms[5]
        else:
            more = terms[0] + terms[1] + terms[2] - terms[5]
        copies = 2.0 if option == 3 else 1.0
        net = more - price * copies * size
        if reach > 0.0:
            net += ahead * min(1.0, totals[0] / reach)
        if net > best:
            best, made, gain = net, option, more
    work.made[m] = made
    return gain, _pass_on(tree, nodes, work, m)


@helper
def _pass_on(tree: VtreeArrays, nodes: NodePools, work: CopyScratch, m: int) -> float:
    """Ask for children on behalf of a node's copies; returns the edges of the copies."""
    made, w = work.made[m], nodes.layer[m]
    leaf = tree.variable[w] >= 0
    cost = 0.0
    for side in range(2):
        if not (made >> side) & 1:
            continue
        kept = 0
        e = nodes.head[m]
        while e >= 0:
            if not made & MIXED or allows(nodes, work, e, side):
                kept += 1
                if not leaf:
                    request(nodes, work, nodes.left[e], side)
                    request(nodes, work, nodes.right[e], side)
            e = nodes.following[e]
        if not (leaf and made & MIXED and kept == 1):  # that is a literal
            cost += kept
    if made & DEAD and not leaf:
        e = nodes.head[m]
        while e >= 0:
            work.change[nodes.left[e]] -= 1
            work.change[nodes.right[e]] -= 1
            e = nodes.following[e]
    return cost


@helper
def allows(nodes: NodePools, work: CopyScratch, edge: int, side: int) -> bool:
    """Whether an edge of a node that is divided by value remains on a side."""
    if nodes.right[edge] < 0:
        return _side_of(work, nodes.left[edge]) == side
    bits = work.support[nodes.left[edge]] | work.support[nodes.right[edge]]
    return bool((bits >> side) & 1)


@kernel
def clear(nodes: NodePools, work: CopyScratch, low: int, high: int, marked: int) -> None:
    """Make the scratch ready for the next operation."""
    for w in range(low, high + 1):
        m = work.first[w]
        while m >= 0:
            after = work.link[m]
            e = nodes.head[m]
            while e >= 0:
                work.flow[:, e] = 0.0
                work.held[:, e] = 0.0
                work.new_edge[:, e] = -1
                e = nodes.following[e]
            work.asked[:, m] = 0
            work.new_node[:, m] = -1
            work.change[m] = 0
            work.made[m] = 0
            work.link[m] = -1
            m = after
        work.first[w] = -2
    for t in range(marked):
        work.support[work.walk[t]] = 0
