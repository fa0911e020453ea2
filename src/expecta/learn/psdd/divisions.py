"""Score divisions of rows: the gain of copying what pays, from counts alone.

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
from expecta.common.kernels import helper, kernel
from expecta.learn.psdd.growing_circuit import CircuitArrays, NodePools, VtreeArrays
from expecta.learn.psdd.reached_circuit import ReachedCircuit, xlogx

MAX_CUTS = 7  # thresholds of an ordered variable that are tried


class CopyWorth(NamedTuple):
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


def new_worth(context: ReachedCircuit) -> CopyWorth:
    """Make room for what copies of the nodes of a context are worth."""
    edges, nodes = len(context.edge), len(context.node)
    return CopyWorth(
        a=np.zeros(edges),
        total=np.zeros(nodes),
        gain=np.zeros(nodes),
        cost=np.zeros(nodes),
        below=np.zeros(nodes),
        terms=np.zeros(4 * nodes),
        kinds=np.zeros(2 * nodes, np.int64),
        edges=np.zeros(edges, np.int64),
        nodes=np.zeros(nodes, np.int64),
    )


@kernel
def promise(
    tree: VtreeArrays,
    nodes: NodePools,
    context: ReachedCircuit,
    worth: CopyWorth,
    chosen: Ints,
    variable: int,
    price: float,
) -> tuple[int, int]:
    """Work out, for each node of the context, what a copy for the rows ``chosen`` is worth.

    ``chosen`` are positions in the context. Rows on either side of the division differ
    in ``variable``, if that is not -1: the nodes on the way to its leaf must be copied.
    Returns how many edges and nodes were touched; call ``_close`` before the next
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
            here, rest = context.here[k], context.here[k] - a[k]
            every = nodes.flow[context.edge[k]]
            worth.terms[4 * m] += xlogx(a[k])
            worth.terms[4 * m + 1] += xlogx(rest) - xlogx(here)
            worth.terms[4 * m + 2] += xlogx(every - a[k]) - xlogx(every)
            worth.kinds[2 * m] += 1
            if rest <= 1e-9 * here:
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


@helper
def _settle(
    context: ReachedCircuit, worth: CopyWorth, m: int, must: bool, leaf: bool, price: float
) -> None:
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


@helper
def _close(worth: CopyWorth, edges: int, nodes: int) -> None:
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


@kernel
def best_split(
    circuit: CircuitArrays,
    context: ReachedCircuit,
    worth: CopyWorth,
    children: tuple[int, int],
    variables: Ints,
    nets: Floats,
    price: float,
) -> tuple[float, float, int, int, int]:
    """Find the variable and the values that an edge is best split on.

    ``children`` are the edge's nodes by their numbers in the context, -1 for a literal.
    For each of the ``variables`` are tried each value against the rest, and
    below against above for up to ``MAX_CUTS`` thresholds that cut the rows into parts of
    about equal weight. The best that a variable nets goes to ``nets``, which stays as it
    is where there is nothing to divide.

    Returns
    -------
    gain, cost, variable (-1 if none), first value, last value + 1. Cost: layers x rows
    on the lighter side, for each division that is tried.
    """
    tree, nodes, codes = circuit.tree, circuit.nodes, circuit.rows.codes
    n = len(context.rows)
    total = context.weight.sum()
    chosen = np.empty(n, np.int64)
    best_gain, best_cost, best_net = 0.0, 1.0, 0.0
    best_variable, best_low, best_high = -1, 0, 0
    for t in range(len(variables)):
        x = variables[t]
        card = tree.cards[x]
        histogram = np.zeros(card + 1)
        for i in range(n):
            histogram[1 + codes[x, context.rows[i]]] += context.weight[i]
        last_cut = 0
        passed = 0.0
        for k in range(2 * card):
            low, high = k, k + 1
            if k >= card:  # thresholds: values 0 .. high - 1 against the rest
                low, high = 0, k - card + 1
                passed += histogram[high]
                cut = int(passed / total * (MAX_CUTS + 1))
                if card <= 3 or high < 2 or high > card - 2 or cut == last_cut:
                    continue
                last_cut = cut
            elif card == 2 and k == 1:
                continue
            inside = 0.0
            for value in range(low, high):
                inside += histogram[1 + value]
            if inside <= 0.0 or inside >= total * (1 - 1e-12):
                continue
            lighter = inside <= 0.5 * total
            m = 0
            for i in range(n):
                if (low <= codes[x, context.rows[i]] < high) == lighter:
                    chosen[m] = i
                    m += 1
            edges, touched = promise(tree, nodes, context, worth, chosen[:m], x, price)
            gain = xlogx(inside) + xlogx(total - inside) - xlogx(total)
            cost = 1.0
            for child in children:
                if child >= 0 and worth.total[child] > 0.0:
                    net = worth.gain[child] - price * worth.cost[child]
                    if net > 0.0 or worth.kinds[2 * child] < 0:
                        gain += worth.gain[child]
                        cost += worth.cost[child]
            _close(worth, edges, touched)
            net = gain - price * cost
            nets[t] = max(nets[t], net)
            if net > best_net:
                best_gain, best_cost, best_net = gain, cost, net
                best_variable, best_low, best_high = x, low, high
    return best_gain, best_cost, best_variable, best_low, best_high


@kernel
def best_clone(
    circuit: CircuitArrays, context: ReachedCircuit, worth: CopyWorth, node: int, price: float
) -> tuple[float, float, int]:
    """Find the edge into a node, of weight up to a half, that best gets a copy for itself.

    ``node`` is the node's number in the context. Returns gain, cost and the edge (-1 if
    none). Cost: layers x rows.
    """
    tree, nodes, n = circuit.tree, circuit.nodes, len(context.rows)
    via = circuit.rows.edge_at[tree.parent[context.high]][context.rows]
    order = np.argsort(via, kind="mergesort")
    best_gain, best_cost, best_net, best_edge = 0.0, 1.0, 0.0, -1
    start = 0
    while start < n:
        end = start
        edge = via[order[start]]
        while end < n and via[order[end]] == edge:
            end += 1
        if end - start < n:
            edges, touched = promise(tree, nodes, context, worth, order[start:end], -1, price)
            gain, cost = worth.gain[node], worth.cost[node]
            _close(worth, edges, touched)
            net = gain - price * cost
            if net > best_net:
                best_gain, best_cost, best_net, best_edge = gain, cost, net, edge
        start = end
    return best_gain, best_cost, best_edge
