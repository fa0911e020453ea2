"""Compute one layer of a pair: the one recursion.

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

from typing import Any, NamedTuple

import numpy as np

from expecta.common.arrays import Floats
from expecta.common.kernels import helper
from expecta.engine.algebras.algebra_operations import (
    clear,
    join,
    mix,
    mix_scaled,
    scale,
    unit,
    width,
)
from expecta.engine.layers import Layers, WeightedLayers
from expecta.engine.pairing import Pairing
from expecta.engine.probabilities import Children, inner_probabilities, leaf_probability, power


class Operands(NamedTuple):
    """A compiled pair, and g's parameters as an algebra reads them."""

    p: WeightedLayers
    g: Layers
    constants: Floats  # (edges of g, ...)
    pairs: Pairing


class Room(NamedTuple):
    """Where in a thread's memory a layer and the vectors it is computed with begin."""

    out: int
    elements: int
    halves: int
    small: int


@helper
def leaf(
    algebra: Any,
    pair: Operands,
    v: int,
    states: Floats,
    first_state: int,
    live: int,
    z: Floats,
    room: Room,
    lanes: int,
) -> bool:
    """Compute a leaf layer for ``live`` evidence states from ``first_state`` on.

    Further lanes repeat the last.
    """
    p, g, pairs = pair.p, pair.g, pair.pairs
    first = p.node_start[v]
    nodes = p.node_start[v + 1] - first
    card = p.cardinality[v]
    size = width(algebra) * lanes
    next_pair = pairs.pair_start[v]
    scaled = False
    possible = np.zeros(card, np.bool_)  # to some lane; few values are, where most are known
    for i in range(live):
        for x in range(card):
            possible[x] |= states[first_state + i * card + x] > 0.0
    for n in range(nodes):
        q, exponent = room.out + n * lanes, room.out + (nodes + n) * lanes
        for x in range(card):
            for i in range(live if possible[x] else 0):
                z[room.small + x * lanes + i] = 0.0
        for i in range(live):
            z[q + i], z[exponent + i], has_exponents = leaf_probability(
                p, first + n, states, first_state + i * card, False, z, room.small + i, lanes
            )
            scaled |= has_exponents
        for i in range(live, lanes):
            z[q + i], z[exponent + i] = z[q + live - 1], z[exponent + live - 1]
            for x in range(card):
                if possible[x]:
                    at = room.small + x * lanes
                    z[at + i] = z[at + live - 1]
        while next_pair < pairs.pair_start[v + 1] and pairs.pair_p[next_pair] == n:
            to = room.out + 2 * nodes * lanes + (next_pair - pairs.pair_start[v]) * size
            clear(algebra, z, to, lanes)
            m = g.node_start[v] + pairs.pair_g[next_pair]
            for b in range(g.edge_start[m], g.edge_start[m + 1]):
                if possible[g.target[b]]:
                    at = room.small + g.target[b] * lanes
                    unit(algebra, pair.constants, b, z, to, at, lanes)
            next_pair += 1
    return scaled


@helper
def inner(
    algebra: Any,
    pair: Operands,
    v: int,
    z: Floats,
    children: Children,
    room: Room,
    lanes: int,
) -> bool:
    """Compute an inner layer from its two children."""
    p, c, pairs = pair.p, pair.constants, pair.pairs
    out, elements, halves, small = room.out, room.elements, room.halves, room.small
    nodes = p.node_start[v + 1] - p.node_start[v]
    left_nodes = p.node_start[p.tree_left[v] + 1] - p.node_start[p.tree_left[v]]
    right_nodes = p.node_start[p.tree_right[v] + 1] - p.node_start[p.tree_right[v]]
    scaled = inner_probabilities(p, v, z, children, out, elements, lanes, False)
    size = width(algebra) * lanes
    left_states = children.left + 2 * left_nodes * lanes
    right_states = children.right + 2 * right_nodes * lanes
    # Arrays are taken out of their tuples once: each access counts references.
    direct, join_start, join_edge = pairs.direct, pairs.join_start, pairs.join_edge
    join_left, join_right = pairs.join_left, pairs.join_right
    mix_start, mix_half, mix_edge = pairs.mix_start, pairs.mix_half, pairs.mix_edge
    mantissa, run = p.mantissa, pairs.mix_run
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
                shift = z[element + count * lanes + i] + p.exponent[edge] - z[exponent + i]
                z[small + i] = mantissa[edge] * power(shift)
            mix_scaled(algebra, z, to, halves + mix_half[j] * size, small, small + lanes, lanes)
    return scaled
