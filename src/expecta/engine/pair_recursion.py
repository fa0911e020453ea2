"""The one recursion, at one layer.

Computed are, for lanes side by side (see ``walk``),

    q[n]      probability of the evidence below, under node n of p
    Z[n, m]   the algebra's state of the pair (n, m), not divided by q[n]

    leaf      Z = Σ_x p_n(x) e(x) 1_m(x) exp(s φ_m(x))
    AND       Z = Z[left, left] · Z[right, right]
    OR        Z = Σ_i θ_i Σ_j exp(s φ_j) Z[i, j]

q and Z of a node share a power of two (see ``probabilities``), so that nothing
underflows at any number of variables.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from expecta.common.arrays import Floats
from expecta.common.kernels import kernel
from expecta.engine.algebras.operations import clear, join, mix, mix_scaled, scale, unit, width
from expecta.engine.layers import Layers
from expecta.engine.pairing import Pairing
from expecta.engine.probabilities import LOG_UNIT, Weights, power, probabilities

__all__ = ["inner", "leaf"]

LEAST = 5e-324  # the smallest float above zero
LOG_LEAST = float(np.log(LEAST))


@kernel
def leaf(
    algebra: Any,
    p: Layers,
    weights: Weights,
    g: Layers,
    c: Floats,
    pairs: Pairing,
    v: int,
    states: Floats,
    at: int,
    start: int,
    live: int,
    z: Floats,
    out: int,
    small: int,
    lanes: int,
) -> bool:
    """Compute a leaf layer for evidence states ``start`` onwards; states hold log-weights."""
    first, last = p.node_start[v], p.node_start[v + 1]
    nodes = last - first
    card = int(states[at])
    size = width(algebra) * lanes
    pair = pairs.pair_start[v]
    scaled = False
    first_state = at + 1 + start * card
    possible = np.zeros(card, np.bool_)  # to some lane; few values are, where most are known
    for i in range(live):
        for x in range(card):
            possible[x] |= states[first_state + i * card + x] > -np.inf
    for n in range(nodes):
        q, exponent = out + n * lanes, out + (nodes + n) * lanes
        edges = range(p.edge_start[first + n], p.edge_start[first + n + 1])
        for i in range(lanes):
            z[q + i] = 0.0
            z[exponent + i] = -np.inf
        for x in range(card):
            for i in range(lanes if possible[x] else 0):
                z[small + x * lanes + i] = 0.0
        for a in edges:
            for i in range(lanes if possible[p.target[a]] else 0):
                log_w = weights.log[a] + states[first_state + min(i, live - 1) * card + p.target[a]]
                z[exponent + i] = max(z[exponent + i], log_w)
        for i in range(lanes):
            top, k = z[exponent + i], 0.0
            if -np.inf < top < -LOG_UNIT:
                k = np.ceil(top / LOG_UNIT)
                scaled = True
            z[exponent + i] = k
        for a in edges:
            for i in range(lanes if possible[p.target[a]] else 0):
                log_w = weights.log[a] + states[first_state + min(i, live - 1) * card + p.target[a]]
                if log_w > -np.inf:
                    log_w -= z[exponent + i] * LOG_UNIT
                    w = np.exp(log_w) if log_w > LOG_LEAST else LEAST  # small is still possible
                    z[small + p.target[a] * lanes + i] = w
                    z[q + i] += w
        while pair < pairs.pair_start[v + 1] and pairs.pair_p[pair] == n:
            to = out + 2 * nodes * lanes + (pair - pairs.pair_start[v]) * size
            clear(algebra, z, to, lanes)
            m = g.node_start[v] + pairs.pair_g[pair]
            for b in range(g.edge_start[m], g.edge_start[m + 1]):
                if possible[g.target[b]]:
                    unit(algebra, c, b, z, to, small + g.target[b] * lanes, lanes)
            pair += 1
    return scaled


@kernel
def inner(
    algebra: Any,
    p: Layers,
    weights: Weights,
    c: Floats,
    pairs: Pairing,
    v: int,
    z: Floats,
    left: int,
    left_scaled: bool,
    right: int,
    right_scaled: bool,
    out: int,
    elements: int,
    halves: int,
    small: int,
    lanes: int,
) -> bool:
    """Compute an inner layer from its two children."""
    nodes = p.node_start[v + 1] - p.node_start[v]
    left_nodes = p.node_start[p.tree_left[v] + 1] - p.node_start[p.tree_left[v]]
    right_nodes = p.node_start[p.tree_right[v] + 1] - p.node_start[p.tree_right[v]]
    scaled = probabilities(
        p, weights, v, z, left, left_scaled, right, right_scaled, out, elements, lanes, False
    )
    size = width(algebra) * lanes
    left_states, right_states = left + 2 * left_nodes * lanes, right + 2 * right_nodes * lanes
    # Arrays are taken out of their tuples once: each access counts references.
    direct, join_start, join_edge = pairs.direct, pairs.join_start, pairs.join_edge
    join_left, join_right = pairs.join_left, pairs.join_right
    mix_start, mix_half, mix_edge = pairs.mix_start, pairs.mix_half, pairs.mix_edge
    mantissa, run = weights.mantissa, pairs.mix_run
    first_half, last_half = pairs.half_start[v], pairs.half_start[v + 1]
    for h in range(first_half, last_half):
        if scaled or not direct[h]:
            to = halves + (h - first_half) * size
            for j in range(join_start[h], join_start[h + 1]):
                x, y = left_states + join_left[j] * size, right_states + join_right[j] * size
                fresh = j == join_start[h]
                join(algebra, c, join_edge[j], z, to, x, y, small, fresh, lanes)
    first_pair, last_pair = pairs.pair_start[v], pairs.pair_start[v + 1]
    for k in range(first_pair, last_pair):
        to = out + 2 * nodes * lanes + (k - first_pair) * size
        a, b = mix_start[k], mix_start[k + 1]
        if not scaled:
            h = first_half + mix_half[a]
            if direct[h]:
                for j in range(join_start[h], join_start[h + 1]):
                    x, y = left_states + join_left[j] * size, right_states + join_right[j] * size
                    fresh = j == join_start[h]
                    join(algebra, c, join_edge[j], z, to, x, y, small, fresh, lanes)
                theta = mantissa[mix_edge[a]]
                if theta != 1.0:
                    scale(algebra, z, to, theta, lanes)
            elif run[k] > 0:
                n = run[k]
                mix(algebra, z, to, n, halves, mix_half, mix_edge, mantissa, a, b, small, lanes)
            continue
        clear(algebra, z, to, lanes)
        exponent = out + (nodes + pairs.pair_p[k]) * lanes
        count = p.element_start[v + 1] - p.element_start[v]
        for j in range(a, b):
            edge = mix_edge[j]
            element = elements + p.target[edge] * lanes
            for i in range(lanes):
                # the element's exponent is kept behind the elements' values
                shift = z[element + count * lanes + i] + weights.exponent[edge] - z[exponent + i]
                z[small + i] = mantissa[edge] * power(shift)
            mix_scaled(algebra, z, to, halves + mix_half[j] * size, small, small + lanes, lanes)
    return scaled
