"""Go up: compute q of every node of every layer, and from it the share of every edge."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Floats
from expecta.common.kernels import U, kernel
from expecta.engine.layers import WeightedLayers
from expecta.engine.passes.leaves import Leaves, PassRows
from expecta.engine.probabilities import Children, inner_probabilities, leaf_term, power

Array = npt.NDArray[Any]


class Values(NamedTuple):
    """q of every node and its exponent, for a block of lanes."""

    z: Floats  # layer by layer: see the docstring of this folder
    elements: int  # where in z the elements of a layer begin: behind all layers
    scaled: Array  # (vtree nodes,) which layers have exponents that are not zero


@kernel
def make_values(p: WeightedLayers, lanes: int) -> Values:
    """Make room for all layers and, behind them, for the elements of the largest."""
    most = 0
    for v in range(len(p.variable)):
        most = max(most, p.element_start[v + 1] - p.element_start[v])
    elements = 2 * p.node_start[len(p.variable)] * lanes
    z = np.zeros(elements + 2 * most * lanes, np.float64)
    return Values(z, elements, np.zeros(len(p.variable), np.uint8))


@kernel
def up(rows: PassRows, row: int, live: int, values: Values, largest: bool) -> None:
    """Compute q of every layer for ``live`` rows from ``row`` on; further lanes repeat the last."""
    p, leaves, lanes = rows.p, rows.leaves, rows.lanes
    z, scaled = values.z, values.scaled
    state = np.zeros(lanes, np.int64)
    for v in range(len(p.variable)):
        out = 2 * p.node_start[v] * lanes
        x = p.variable[v]
        if x < 0:
            left, right = p.tree_left[v], p.tree_right[v]
            children = Children(
                2 * p.node_start[left] * lanes,
                scaled[left] > 0,
                2 * p.node_start[right] * lanes,
                scaled[right] > 0,
            )
            scaled[v] = inner_probabilities(p, v, z, children, out, values.elements, lanes, largest)
            continue
        scaled[v] = leaves.scaled[v]
        for i in range(lanes):
            state[i] = rows.codes[x, row + min(i, live - 1)]
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
    p: WeightedLayers,
    leaves: Leaves,
    v: int,
    n: int,
    a: int,
    state: int,
    z: Floats,
    i: int,
    lanes: int,
) -> float:
    """Return what part of q of node n its edge a brings, in lane i; zero where q is."""
    first = p.node_start[v]
    q = z[(2 * first + n) * lanes + i]
    if not q > 0.0:
        return 0.0
    k = z[(first + p.node_start[v + 1] + n) * lanes + i]
    if p.variable[v] >= 0:
        at = leaves.state_at[p.variable[v]] + state * p.cardinality[v]
        term, above = leaf_term(p, a, leaves.states, at)
        return term * power(above - k) / q
    e = p.element_start[v] + p.target[a]
    left, right = p.tree_left[v], p.tree_right[v]
    x = (2 * p.node_start[left] + p.left[e]) * lanes + i
    y = (2 * p.node_start[right] + p.right[e]) * lanes + i
    above = p.exponent[a]
    above += z[x + (p.node_start[left + 1] - p.node_start[left]) * lanes]
    above += z[y + (p.node_start[right + 1] - p.node_start[right]) * lanes]
    return p.mantissa[a] * (z[x] * z[y]) * power(above - k) / q
