"""The pass up: q of every node of every layer, and from it the share of every edge."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Floats
from expecta.common.kernels import U, kernel
from expecta.engine.layers import Layers
from expecta.engine.passes.leaves import Leaves, leaf_term
from expecta.engine.probabilities import Weights, power, probabilities

__all__ = ["room", "share", "up"]

Array = npt.NDArray[Any]


@kernel
def room(p: Layers, lanes: int) -> tuple[Floats, int]:
    """Make room for all layers and, behind them, for the elements of the largest."""
    most = 0
    for v in range(len(p.variable)):
        most = max(most, p.element_start[v + 1] - p.element_start[v])
    elements = 2 * p.node_start[len(p.variable)] * lanes
    return np.zeros(elements + 2 * most * lanes, np.float64), elements


@kernel
def up(
    p: Layers,
    weights: Weights,
    leaves: Leaves,
    codes: Array,
    row: int,
    live: int,
    z: Floats,
    elements: int,
    scaled: Array,
    lanes: int,
    largest: bool,
) -> None:
    """Compute q of every layer for ``live`` rows from ``row`` on; further lanes repeat the last.

    ``scaled`` tells afterwards which layers have exponents that are not zero.
    """
    state = np.zeros(lanes, np.int64)
    for v in range(len(p.variable)):
        out = 2 * p.node_start[v] * lanes
        x = p.variable[v]
        if x < 0:
            left, right = p.tree_left[v], p.tree_right[v]
            scaled[v] = probabilities(
                p,
                weights,
                v,
                z,
                2 * p.node_start[left] * lanes,
                scaled[left] > 0,
                2 * p.node_start[right] * lanes,
                scaled[right] > 0,
                out,
                elements,
                lanes,
                largest,
            )
            continue
        scaled[v] = leaves.scaled[v]
        for i in range(lanes):
            state[i] = codes[x, row + min(i, live - 1)]
        nodes = p.node_start[v + 1] - p.node_start[v]
        for n in range(nodes):
            table = U(leaves.table_at[v] + n * leaves.n_states[x])
            q, exponent = U(out + n * lanes), U(out + (nodes + n) * lanes)
            for i in range(U(lanes)):
                z[q + i] = leaves.q[table + U(state[i])]
            if scaled[v] > 0:
                for i in range(U(lanes)):
                    z[exponent + i] = leaves.q_exponent[table + U(state[i])]
            else:
                for i in range(U(lanes)):
                    z[exponent + i] = 0.0


@kernel
def share(
    p: Layers,
    weights: Weights,
    leaves: Leaves,
    v: int,
    n: int,
    a: int,
    state: int,
    z: Floats,
    i: int,
    lanes: int,
) -> float:
    """Return what part of q of node n its edge a brings, in one lane; zero where q is."""
    first = p.node_start[v]
    q = z[(2 * first + n) * lanes + i]
    if not q > 0.0:
        return 0.0
    nodes = p.node_start[v + 1] - first
    k = z[(2 * first + nodes + n) * lanes + i]
    if p.variable[v] >= 0:
        term, above = leaf_term(p, weights, leaves, v, a, state)
        at_leaf: float = term * power(above - k) / q
        return at_leaf
    e = p.element_start[v] + p.target[a]
    left, right = p.tree_left[v], p.tree_right[v]
    x = (2 * p.node_start[left] + p.left[e]) * lanes + i
    y = (2 * p.node_start[right] + p.right[e]) * lanes + i
    above = weights.exponent[a]
    above += z[x + (p.node_start[left + 1] - p.node_start[left]) * lanes]
    above += z[y + (p.node_start[right + 1] - p.node_start[right]) * lanes]
    inner: float = weights.mantissa[a] * (z[x] * z[y]) * power(above - k) / q
    return inner
