"""Down with flows: the probability of being visited, spread over all edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Bools, Floats
from expecta.common.kernels import U, kernel
from expecta.engine.layers import Layers
from expecta.engine.passes.leaves import Leaves, leaf_term
from expecta.engine.passes.upward import room, up
from expecta.engine.probabilities import Weights, power

__all__ = ["posteriors"]

Array = npt.NDArray[Any]


@kernel
def posteriors(
    p: Layers,
    weights: Weights,
    leaves: Leaves,
    codes: Array,
    lanes: int,
    out: Floats,
    out_at: Array,
    start: int,
    impossible: Bools,
    first: int,
    last: int,
) -> None:
    """Write the posterior of every variable for the rows ``first`` to ``last`` of the codes.

    That of variable x goes to ``out[out_at[x]:]`` as (all rows, values), where the
    first row of the codes is row ``start``.
    """
    z, elements = room(p, lanes)
    root = len(p.variable) - 1
    n_nodes = p.node_start[root + 1]
    scaled = np.zeros(len(p.variable), np.uint8)
    flow = np.zeros(n_nodes * lanes, np.float64)
    posterior = np.zeros(leaves.cardinalities.max() * lanes, np.float64)
    for row in range(first, last, lanes):
        live = min(lanes, last - row)
        up(p, weights, leaves, codes, row, live, z, elements, scaled, lanes, False)
        flow[:] = 0.0
        for i in range(lanes):
            possible = z[2 * p.node_start[root] * lanes + i] > 0.0
            flow[p.node_start[root] * lanes + i] = 1.0 if possible else 0.0
            if i < live:
                impossible[start + row + i] = not possible
        for v in range(root, -1, -1):
            _divide(p, v, z, flow, lanes)
            x = p.variable[v]
            if x < 0:
                _spread(p, weights, v, z, elements, scaled[v] > 0, flow, lanes)
                continue
            _spread_leaf(p, weights, leaves, codes, row, live, v, z, flow, posterior, lanes)
            card = leaves.cardinalities[x]
            for i in range(live):
                # All flow meets at every leaf. What it lacks of one is rounding on the way.
                total = 0.0
                for k in range(card):
                    total += posterior[k * lanes + i]
                to = out_at[x] + (start + row + i) * card
                for k in range(card):
                    out[to + k] = posterior[k * lanes + i] / total if total > 0.0 else 0.0


@kernel
def _divide(p: Layers, v: int, z: Floats, flow: Floats, lanes: int) -> None:
    """Divide the flow of every node of a layer by its q, the power of two left aside."""
    first = p.node_start[v]
    for n in range(p.node_start[v + 1] - first):
        f, q = U((first + n) * lanes), U((2 * first + n) * lanes)
        for i in range(U(lanes)):
            flow[f + i] = flow[f + i] / z[q + i] if z[q + i] > 0.0 else 0.0


@kernel
def _spread(
    p: Layers,
    weights: Weights,
    v: int,
    z: Floats,
    elements: int,
    scaled: bool,
    flow: Floats,
    lanes: int,
) -> None:
    """Hand the flow of a layer's nodes, divided by q, down to the nodes of its children."""
    first, e0 = p.node_start[v], p.element_start[v]
    nodes, count = p.node_start[v + 1] - first, p.element_start[v + 1] - e0
    left, right = p.node_start[p.tree_left[v]], p.node_start[p.tree_right[v]]
    left_nodes = p.node_start[p.tree_left[v] + 1] - left
    right_nodes = p.node_start[p.tree_right[v] + 1] - right
    at = U(elements)
    for i in range(U(count * lanes)):
        z[at + i] = 0.0
    for n in range(nodes):
        f = U((first + n) * lanes)
        own = (2 * first + nodes + n) * lanes
        for a in range(p.edge_start[first + n], p.edge_start[first + n + 1]):
            to, w = U(elements + p.target[a] * lanes), weights.mantissa[a]
            if not scaled:
                for i in range(U(lanes)):
                    z[to + i] += w * flow[f + i]
                continue
            # With exponents the product with q of the element must come first: the two
            # factors apart may be out of range.
            e = e0 + p.target[a]
            x = (2 * left + p.left[e]) * lanes
            y = (2 * right + p.right[e]) * lanes
            for i in range(lanes):
                k = weights.exponent[a] - z[own + i]
                k += z[x + left_nodes * lanes + i] + z[y + right_nodes * lanes + i]
                part = w * (z[x + i] * z[y + i]) * power(k)
                z[elements + p.target[a] * lanes + i] += part * flow[(first + n) * lanes + i]
    for e in range(count):
        at = U(elements + e * lanes)
        if not scaled:
            x = U((2 * left + p.left[e0 + e]) * lanes)
            y = U((2 * right + p.right[e0 + e]) * lanes)
            for i in range(U(lanes)):
                z[at + i] *= z[x + i] * z[y + i]
        f, g = U((left + p.left[e0 + e]) * lanes), U((right + p.right[e0 + e]) * lanes)
        for i in range(U(lanes)):
            flow[f + i] += z[at + i]
        for i in range(U(lanes)):
            flow[g + i] += z[at + i]


@kernel
def _spread_leaf(
    p: Layers,
    weights: Weights,
    leaves: Leaves,
    codes: Array,
    row: int,
    live: int,
    v: int,
    z: Floats,
    flow: Floats,
    posterior: Floats,
    lanes: int,
) -> None:
    """Add up the flow, divided by q, that reaches each value of a leaf's variable."""
    first, x = p.node_start[v], p.variable[v]
    nodes, card = p.node_start[v + 1] - first, leaves.cardinalities[x]
    posterior[: card * lanes] = 0.0
    for n in range(nodes):
        f = U((first + n) * lanes)
        for a in range(p.edge_start[first + n], p.edge_start[first + n + 1]):
            to, w = U(p.target[a] * lanes), weights.mantissa[a]
            if leaves.scaled[v] == 0:
                for i in range(U(lanes)):
                    posterior[to + i] += w * flow[f + i]
                continue
            for i in range(live):
                term, k = leaf_term(p, weights, leaves, v, a, codes[x, row + i])
                part = term * power(k - z[(2 * first + nodes + n) * lanes + i])
                posterior[p.target[a] * lanes + i] += part * flow[(first + n) * lanes + i]
    if leaves.scaled[v] == 0:
        for i in range(live):
            at = leaves.weight_at[x] + codes[x, row + i] * card
            for k in range(card):
                posterior[k * lanes + i] *= leaves.weight[at + k]
