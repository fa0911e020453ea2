"""The best division of a context: every variable and value below, or every parent."""

from __future__ import annotations

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.kernels import kernel
from expecta.learn.psdd.scores import Context, Worth, close, promise, xlogx
from expecta.learn.psdd.state import Nodes, Rows, Tree

__all__ = ["best_clone", "best_split"]

CUTS = 7  # at most so many thresholds of an ordered variable are tried


@kernel
def best_split(
    tree: Tree,
    nodes: Nodes,
    rows: Rows,
    context: Context,
    worth: Worth,
    left: int,
    right: int,
    variables: Ints,
    nets: Floats,
    price: float,
) -> tuple[float, float, int, int, int]:
    """Find the variable and the values that an edge is best split on.

    ``left`` and ``right`` are the edge's nodes by their numbers in the context, -1 for a
    literal. For each of the ``variables`` are tried each value against the rest, and
    below against above for up to ``CUTS`` thresholds that cut the rows into parts of
    about equal weight. The best that a variable nets goes to ``nets``, which stays as it
    is where there is nothing to divide.

    Returns
    -------
    gain, cost, variable (-1 if none), first value, last value + 1. Cost: layers x rows
    on the lighter side, for each division that is tried.
    """
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
            histogram[1 + rows.codes[x, context.rows[i]]] += context.weight[i]
        last_cut = 0
        passed = 0.0
        for k in range(2 * card):
            low, high = k, k + 1
            if k >= card:  # thresholds: values 0 .. high - 1 against the rest
                low, high = 0, k - card + 1
                passed += histogram[high]
                cut = int(passed / total * (CUTS + 1))
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
                if (low <= rows.codes[x, context.rows[i]] < high) == lighter:
                    chosen[m] = i
                    m += 1
            edges, touched = promise(tree, nodes, context, worth, chosen[:m], x, price)
            gain = xlogx(inside) + xlogx(total - inside) - xlogx(total)
            cost = 1.0
            for child in (left, right):
                if child >= 0 and worth.total[child] > 0.0:
                    net = worth.gain[child] - price * worth.cost[child]
                    if net > 0.0 or worth.kinds[2 * child] < 0:
                        gain += worth.gain[child]
                        cost += worth.cost[child]
            close(worth, edges, touched)
            net = gain - price * cost
            nets[t] = max(nets[t], net)
            if net > best_net:
                best_gain, best_cost, best_net = gain, cost, net
                best_variable, best_low, best_high = x, low, high
    return best_gain, best_cost, best_variable, best_low, best_high


@kernel
def best_clone(
    tree: Tree,
    nodes: Nodes,
    rows: Rows,
    context: Context,
    worth: Worth,
    node: int,
    price: float,
) -> tuple[float, float, int]:
    """Find the edge into a node, of weight up to a half, that best gets a copy for itself.

    ``node`` is the node's number in the context. Returns gain, cost and the edge (-1 if
    none). Cost: layers x rows.
    """
    n = len(context.rows)
    above = tree.parent[context.high]
    via = rows.edge_at[above][context.rows]
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
            close(worth, edges, touched)
            net = gain - price * cost
            if net > best_net:
                best_gain, best_cost, best_net, best_edge = gain, cost, net, edge
        start = end
    return best_gain, best_cost, best_edge
