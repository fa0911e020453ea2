"""What a division of rows promises: the gain of copying what pays, from counts alone.

An operation divides the rows of a context into A and the rest. Wherever below the
two behave differently it pays to give A a copy of the node; elsewhere A and the rest
go on sharing it. A copy of a node is worth its own gain in log-likelihood, less the
price of its edges, plus what the copies below it are worth, which only it makes
possible. One pass over the counts, children before parents, tells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.kernels import kernel
from expecta.learn.psdd.state import Nodes, Rows, Tree

__all__ = ["Context", "Worth", "close", "open_context", "promise", "xlogx"]


class Context(NamedTuple):
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


class Worth(NamedTuple):
    """For each node of a context, what a copy of it for A is worth; zeroed between uses."""

    a: Floats  # weight of A on each edge
    total: Floats  # weight of A in each node
    gain: Floats  # in log-likelihood, the copies below included
    cost: Floats  # in edges
    below: Floats  # net gain of the copies below alone
    terms: Floats  # scratch, four per node
    kinds: Ints  # scratch, two per node
    edges: Ints  # touched edges
    nodes: Ints  # touched nodes


@kernel
def xlogx(x: float) -> float:
    """Return x log x, zero at zero (and for what rounding leaves of it)."""
    return x * np.log(x) if x > 1e-12 else 0.0


@kernel
def open_context(
    nodes: Nodes,
    rows: Rows,
    number: Ints,
    which: Ints,
    scale: float,
    low: int,
    high: int,
    literals: int,
) -> Context:
    """Give numbers to what the rows ``which`` reach in the layers ``low`` to ``high``.

    ``number`` is scratch, -1 for every edge and node of the pools. Each row counts
    ``scale`` times its weight, for when it stands for others. Cost: layers x rows.
    """
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
    return Context(
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


@kernel
def promise(
    tree: Tree,
    nodes: Nodes,
    context: Context,
    worth: Worth,
    chosen: Ints,
    variable: int,
    price: float,
) -> tuple[int, int]:
    """Work out, for each node of the context, what a copy for the rows ``chosen`` is worth.

    ``chosen`` are positions in the context. Rows on either side of the division differ
    in ``variable``, if that is not -1: the nodes on the way to its leaf must be copied.
    Returns how many edges and nodes were touched; call :func:`close` before the next
    use. Cost: layers x chosen rows.
    """
    n_edges, n_nodes = 0, 0
    leaf = tree.leaf_of[variable] if variable >= 0 else -1
    a = worth.a
    for w in range(context.low, context.high + 1):
        first_edge, first_node = n_edges, n_nodes
        for i in chosen:
            k = context.at[w - context.low, i]
            if k < 0:
                continue
            if a[k] == 0.0:
                worth.edges[n_edges] = k
                n_edges += 1
            a[k] += context.weight[i]
        for t in range(first_edge, n_edges):
            k = worth.edges[t]
            m = context.node_of[k]
            if worth.total[m] == 0.0:
                worth.nodes[n_nodes] = m
                n_nodes += 1
            worth.total[m] += a[k]
            own, rest = context.here[k], context.here[k] - a[k]
            every = nodes.flow[context.edge[k]]
            worth.terms[4 * m] += xlogx(a[k])
            worth.terms[4 * m + 1] += xlogx(rest) - xlogx(own)
            worth.terms[4 * m + 2] += xlogx(every - a[k]) - xlogx(every)
            worth.kinds[2 * m] += 1
            if rest <= 1e-9 * own:
                worth.kinds[2 * m + 1] += 1
            for child in (context.left[k], context.right[k]):
                if child < 0 or worth.total[child] == 0.0:
                    continue
                net = worth.gain[child] - price * worth.cost[child]
                if net > 0.0 or worth.kinds[2 * child] < 0:
                    share = a[k] / worth.total[child]
                    worth.gain[m] += share * worth.gain[child]
                    worth.cost[m] += share * worth.cost[child]
                    worth.below[m] += share * net
        must = leaf >= 0 and w - tree.size[w] < leaf <= w
        for t in range(first_node, n_nodes):
            m = worth.nodes[t]
            _settle(context, worth, m, must, tree.variable[w] >= 0, price)
    return n_edges, n_nodes


@kernel
def _settle(context: Context, worth: Worth, m: int, must: bool, leaf: bool, price: float) -> None:
    """Add the own gain and cost of the best way to copy a node."""
    size, total, inside = context.size[m], context.total[m], context.inside[m]
    mine = worth.total[m]
    rest, outside = inside - mine, total - inside
    every = context.all_terms[m] - xlogx(total)
    of_a = worth.terms[4 * m] - xlogx(mine)
    of_rest = context.in_terms[m] + worth.terms[4 * m + 1] - xlogx(rest)
    of_outside = context.out_terms[m] - xlogx(outside)
    others = outside > 1e-9 * total
    apart = of_a + of_rest - every
    if others:
        apart += of_outside
    if must and rest > 1e-9 * inside:
        kept = worth.kinds[2 * m] + size - worth.kinds[2 * m + 1]
        if leaf:  # a leaf of one value is a literal, which costs nothing
            kept = max(0, worth.kinds[2 * m] - 1) + max(0, size - worth.kinds[2 * m] - 1)
        worth.gain[m] += apart
        worth.cost[m] += kept if others else kept - size
        worth.kinds[2 * m] = -1  # it must be copied
        return
    copies = 1.0
    gain = of_a + context.all_terms[m] + worth.terms[4 * m + 2] - xlogx(total - mine) - every
    if others and rest > 1e-9 * inside and apart - gain > price * size:
        gain, copies = apart, 2.0
    if not others and rest <= 1e-9 * inside:  # all its rows are in A: nothing to divide
        gain, copies = 0.0, 0.0
        worth.gain[m], worth.cost[m], worth.below[m] = 0.0, 0.0, 0.0
    worth.gain[m] += gain
    worth.cost[m] += copies * size


@kernel
def close(worth: Worth, edges: int, nodes: int) -> None:
    """Zero what :func:`promise` touched."""
    worth.a[worth.edges[:edges]] = 0.0
    for t in range(nodes):
        m = worth.nodes[t]
        worth.total[m] = 0.0
        worth.gain[m] = 0.0
        worth.cost[m] = 0.0
        worth.below[m] = 0.0
        worth.terms[4 * m : 4 * m + 4] = 0.0
        worth.kinds[2 * m : 2 * m + 2] = 0
