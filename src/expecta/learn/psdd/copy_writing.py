"""Carry an operation out: write the copies and move rows over to them."""

from __future__ import annotations

import numpy as np

from expecta.common.arrays import Ints
from expecta.common.kernels import helper, kernel
from expecta.learn.psdd.copy_plan import MIXED, CopyScratch, DividedRows, allows
from expecta.learn.psdd.growing_circuit import CircuitArrays, NodePools, RoutedRows, VtreeArrays
from expecta.learn.psdd.smoothing import split_share


@helper
def resolve(work: CopyScratch, node: int, side: int) -> int:
    """Return the version of a node for a side: its copy, or the node itself."""
    return work.new_node[side, node] if work.new_node[side, node] >= 0 else node


@kernel
def write_copies(
    circuit: CircuitArrays,
    work: CopyScratch,
    divided: DividedRows,
    active: Ints,
    position: Ints,
    pull: float,
    n_nodes: int,
    n_edges: int,
) -> tuple[int, int]:
    """Write the copies that a plan has decided on, behind the nodes and edges in use.

    Returns the new numbers of nodes and edges. ``position`` is -1 for every row. Cost:
    the edges of the nodes touched and all rows of those copied.
    """
    tree, nodes, rows = circuit.tree, circuit.nodes, circuit.rows
    which, side, low, high = divided.which, divided.side, divided.low, divided.high
    literals = circuit.literal_start[-1]
    for w in range(low, high + 1):
        m = work.first[w]
        while m >= 0:
            for s in range(2):
                if (work.made[m] >> s) & 1:
                    value = _only_value(tree, nodes, work, m, s)
                    if value >= 0:
                        work.new_node[s, m] = circuit.literal_start[tree.variable[w]] + value
                    else:
                        work.new_node[s, m] = n_nodes
                        n_nodes += 1
            m = work.link[m]
    for i in range(len(which)):
        position[which[i]] = i
    for w in range(low, high + 1):
        m = work.first[w]
        while m >= 0:
            nodes.refs[m] += work.change[m]
            for s in range(2):
                if not (work.made[m] >> s) & 1:
                    nodes.refs[m] += work.asked[s, m]
                elif work.new_node[s, m] < literals:
                    _join_literal(nodes, work, m, s)
                else:
                    n_edges = _write_copy(tree, nodes, work, m, s, pull, n_edges)
            if work.made[m]:
                _take_away(nodes, work, m)
                _move_rows(nodes, rows, work, m, side, active[w - low], position, literals)
            m = work.link[m]
    for w in range(low, high + 1):
        if work.first[w] < 0:
            continue
        for i in range(len(which)):
            if active[w - low, i]:
                e = rows.edge_at[w, which[i]]
                if work.new_edge[side[i], e] >= 0:
                    rows.edge_at[w, which[i]] = work.new_edge[side[i], e]
    for i in range(len(which)):
        position[which[i]] = -1
    return n_nodes, n_edges


@helper
def _only_value(tree: VtreeArrays, nodes: NodePools, work: CopyScratch, m: int, side: int) -> int:
    """Return the value of the literal that a version of a leaf is, -1 if it is none."""
    if tree.variable[nodes.layer[m]] < 0 or not work.made[m] & MIXED:
        return -1
    kept, value = 0, -1
    e = nodes.head[m]
    while e >= 0:
        if allows(nodes, work, e, side):
            kept += 1
            value = nodes.left[e]
        e = nodes.following[e]
    return value if kept == 1 else -1


@helper
def _join_literal(nodes: NodePools, work: CopyScratch, m: int, side: int) -> None:
    literal = work.new_node[side, m]
    nodes.refs[literal] += work.asked[side, m]
    e = nodes.head[m]
    while e >= 0:
        if nodes.left[e] == nodes.left[literal]:
            nodes.flow[literal] += work.flow[side, e]
            nodes.held[literal] += work.held[side, e]
            work.new_edge[side, e] = literal
        e = nodes.following[e]


@helper
def _write_copy(
    tree: VtreeArrays,
    nodes: NodePools,
    work: CopyScratch,
    m: int,
    side: int,
    pull: float,
    n_edges: int,
) -> int:
    """Write a node's copy; its prior is the original's distribution as it was."""
    copy = work.new_node[side, m]
    mixed = work.made[m] & MIXED
    mass, kept = 0.0, 0
    start = n_edges
    e = nodes.head[m]
    while e >= 0:
        if not mixed or allows(nodes, work, e, side):
            k = n_edges
            n_edges += 1
            kept += 1
            nodes.owner[k] = copy
            if tree.variable[nodes.layer[m]] >= 0:
                nodes.left[k], nodes.right[k] = nodes.left[e], -1
            else:
                nodes.left[k] = resolve(work, nodes.left[e], side)
                nodes.right[k] = resolve(work, nodes.right[e], side)
            nodes.flow[k] = work.flow[side, e]
            nodes.held[k] = work.held[side, e]
            nodes.origin[k], nodes.base[k], nodes.whole[k] = e, nodes.flow[e], -1.0
            nodes.prior[k] = nodes.flow[e] + nodes.pull[m] * nodes.prior[e]
            mass += nodes.prior[k]
            nodes.following[k] = k + 1
            work.new_edge[side, e] = k
        e = nodes.following[e]
    nodes.following[n_edges - 1] = -1
    for k in range(start, n_edges):
        nodes.prior[k] = nodes.prior[k] / mass if mass > 0.0 else 1.0 / kept
    nodes.pull[copy] = pull
    nodes.layer[copy] = nodes.layer[m]
    nodes.head[copy] = start
    nodes.size[copy] = kept
    nodes.refs[copy] = work.asked[side, m]
    return n_edges


@helper
def _take_away(nodes: NodePools, work: CopyScratch, m: int) -> None:
    """Leave an original the weight of the rows that stay with it."""
    e = nodes.head[m]
    while e >= 0:
        for s in range(2):
            if (work.made[m] >> s) & 1:
                nodes.flow[e] = max(0.0, nodes.flow[e] - work.flow[s, e])
                nodes.held[e] = max(0.0, nodes.held[e] - work.held[s, e])
        e = nodes.following[e]


@helper
def _move_rows(
    nodes: NodePools,
    rows: RoutedRows,
    work: CopyScratch,
    m: int,
    side: Ints,
    active: Ints,
    position: Ints,
    literals: int,
) -> None:
    """Sort a node's stretch of rows: those that stay, those of side A, those of side B."""
    start, count = nodes.row_start[m], nodes.row_count[m]
    order = rows.order[nodes.layer[m]]
    moved = np.empty(count, order.dtype)
    ends = np.zeros(4, np.int64)
    for group in range(3):
        ends[group + 1] = ends[group]
        for t in range(start, start + count):
            i = position[order[t]]
            goes = 0
            if i >= 0 and active[i] and (work.made[m] >> side[i]) & 1:
                goes = 1 + side[i]
            if goes == group:
                moved[ends[group + 1]] = order[t]
                ends[group + 1] += 1
    order[start : start + count] = moved
    nodes.row_count[m] = ends[1]
    for s in range(2):
        copy = work.new_node[s, m]
        if (work.made[m] >> s) & 1 and copy >= literals:
            nodes.row_start[copy] = start + ends[1 + s]
            nodes.row_count[copy] = ends[2 + s] - ends[1 + s]


@kernel
def divide_edge(
    nodes: NodePools,
    rows: RoutedRows,
    work: CopyScratch,
    edge: int,
    which: Ints,
    side: Ints,
    n_edges: int,
) -> None:
    """Put a new edge beside one that is split: the new one is side A, the old one side B."""
    owner = nodes.owner[edge]
    new = n_edges
    left, right = nodes.left[edge], nodes.right[edge]
    a, held = 0.0, 0.0
    for i in range(len(which)):
        if side[i] == 0:
            a += rows.weight[which[i]]
            held += rows.held[which[i]]
            rows.edge_at[nodes.layer[owner], which[i]] = new
    share = split_share(a, nodes.flow[edge], nodes.pull[owner])
    nodes.origin[new], nodes.base[new], nodes.whole[new] = edge, a, nodes.flow[edge]
    nodes.owner[new] = owner
    nodes.following[new] = nodes.following[edge]
    nodes.following[edge] = new
    nodes.size[owner] += 1
    nodes.left[new], nodes.right[new] = resolve(work, left, 0), resolve(work, right, 0)
    nodes.left[edge], nodes.right[edge] = resolve(work, left, 1), resolve(work, right, 1)
    nodes.flow[new], nodes.held[new] = a, held
    nodes.flow[edge] = max(0.0, nodes.flow[edge] - a)
    nodes.held[edge] = max(0.0, nodes.held[edge] - held)
    nodes.prior[new] = nodes.prior[edge] * share
    nodes.prior[edge] *= 1.0 - share


@kernel
def lead_elsewhere(nodes: NodePools, work: CopyScratch, edge: int, node: int) -> None:
    """Let an edge lead to the copy of a node, for side A, instead of to the node."""
    if nodes.left[edge] == node:
        nodes.left[edge] = resolve(work, node, 0)
    else:
        nodes.right[edge] = resolve(work, node, 0)
