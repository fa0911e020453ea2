"""Number the part of a growing circuit that some rows reach, with its counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.kernels import kernel
from expecta.learn.psdd.growing_circuit import CircuitArrays


class ReachedCircuit(NamedTuple):
    """The rows that meet somewhere and what they reach below, numbered compactly.

    Edges and nodes that the rows reach have a number in the context; literals have
    none, for nothing can be gained there.
    """

    low: int  # the layers low .. high are those below
    high: int
    rows: Ints
    weight: Floats  # of each row
    at: Ints  # the edge that each row follows, -1 for a literal  # (layers, rows)
    edge: Ints  # pool number of each edge
    node_of: Ints  # node of each edge
    left: Ints  # left node of each edge, -1 if it is a literal or has no number
    right: Ints
    here: Floats  # weight of the context's rows on each edge
    node: Ints  # pool number of each node
    size: Ints  # its number of edges
    total: Floats  # weight of all its rows
    inside: Floats  # weight of the context's
    all_terms: Floats  # sum of x log x of the weights of its edges, all rows
    in_terms: Floats  # the same for the context's rows
    out_terms: Floats  # and for the others


@kernel
def xlogx(x: float) -> float:
    """Return x log x, zero at zero (and for what rounding leaves of it)."""
    return x * np.log(x) if x > 1e-12 else 0.0


@kernel
def reached_circuit(
    circuit: CircuitArrays, number: Ints, which: Ints, scale: float, low: int, high: int
) -> ReachedCircuit:
    """Give numbers to what the rows ``which`` reach in the layers ``low`` to ``high``.

    ``number`` is scratch, -1 for every edge and node of the pools. Each row counts
    ``scale`` times its weight, for when it stands for others. Cost: layers x rows.
    """
    nodes, rows, literals = circuit.nodes, circuit.rows, circuit.literal_start[-1]
    n, layers = len(which), high - low + 1
    at = np.empty((layers, n), np.int32)
    weight = scale * rows.weight[which]
    room = 64
    edge = np.empty(room, np.int64)
    edges = 0
    for w in range(low, high + 1):
        for i in range(n):
            e = rows.edge_at[w, which[i]]
            if e < literals:
                at[w - low, i] = -1
                continue
            if number[e] < 0:
                if edges == room:
                    grown = np.empty(2 * room, np.int64)
                    grown[:room] = edge
                    edge, room = grown, 2 * room
                number[e] = edges
                edge[edges] = e
                edges += 1
            at[w - low, i] = number[e]
    here = np.zeros(edges)
    for k in range(layers):
        for i in range(n):
            if at[k, i] >= 0:
                here[at[k, i]] += weight[i]
    for k in range(edges):
        number[edge[k]] = -1
    # the same scratch now numbers nodes
    node_of = np.empty(edges, np.int64)
    node = np.empty(edges, np.int64)
    n_nodes = 0
    for k in range(edges):
        m = nodes.owner[edge[k]]
        if number[m] < 0:
            number[m] = n_nodes
            node[n_nodes] = m
            n_nodes += 1
        node_of[k] = number[m]
    left = np.full(edges, -1, np.int64)
    right = np.full(edges, -1, np.int64)
    for k in range(edges):
        if nodes.right[edge[k]] >= 0:
            left[k] = number[nodes.left[edge[k]]]
            right[k] = number[nodes.right[edge[k]]]
    size = np.empty(n_nodes, np.int64)
    total, inside = np.zeros(n_nodes), np.zeros(n_nodes)
    terms = np.zeros((3, n_nodes))
    for m in range(n_nodes):
        size[m] = nodes.size[node[m]]
        e = nodes.head[node[m]]
        while e >= 0:
            total[m] += nodes.flow[e]
            terms[0, m] += xlogx(nodes.flow[e])
            terms[2, m] += xlogx(nodes.flow[e])
            e = nodes.following[e]
    for k in range(edges):
        m = node_of[k]
        inside[m] += here[k]
        terms[1, m] += xlogx(here[k])
        all_of = nodes.flow[edge[k]]
        terms[2, m] += xlogx(all_of - here[k]) - xlogx(all_of)
    for m in range(n_nodes):
        number[node[m]] = -1
    return ReachedCircuit(
        low,
        high,
        which,
        weight,
        at,
        edge[:edges],
        node_of,
        left,
        right,
        here,
        node[:n_nodes],
        size,
        total,
        inside,
        terms[0],
        terms[1],
        terms[2],
    )
