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

from expecta.common.arrays import Bools, Floats
from expecta.common.kernels import plain_helper
from expecta.engine.algebra_kinds import AlgebraKind, inner_states, leaf_states
from expecta.engine.operands import Operands, Room
from expecta.engine.probabilities import Children, inner_probabilities, leaf_probability


@plain_helper
def leaf(
    kind: AlgebraKind,
    pair: Operands,
    v: int,
    states: Floats,
    first_state: int,
    live: int,
    possible: Bools,
    z: Floats,
    room: Room,
    lanes: int,
) -> bool:
    """Compute a leaf layer for ``live`` evidence states from ``first_state`` on.

    Further lanes repeat the last. ``possible`` is to hold which values some lane may have: few,
    where most are known.
    """
    p = pair.p
    first = p.node_start[v]
    nodes = p.node_start[v + 1] - first
    card = p.cardinality[v]
    scaled = False
    for x in range(card):
        possible[x] = False
    for i in range(live):
        for x in range(card):
            possible[x] |= states[first_state + i * card + x] > 0.0
    next_pair = pair.pairs.pair_start[v]
    for n in range(nodes):
        q, exponent = room.out + n * lanes, room.out + (nodes + n) * lanes
        for x in range(card):
            for i in range(live if possible[x] else 0):
                z[room.small + x * lanes + i] = 0.0
        a, b = p.edge_start[first + n], p.edge_start[first + n + 1]
        for i in range(live):
            z[q + i], z[exponent + i], has_exponents = leaf_probability(
                p, a, b, states, first_state + i * card, False, z, room.small + i, lanes
            )
            scaled |= has_exponents
        for i in range(live, lanes):
            z[q + i], z[exponent + i] = z[q + live - 1], z[exponent + live - 1]
            for x in range(card):
                if possible[x]:
                    at = room.small + x * lanes
                    z[at + i] = z[at + live - 1]
        next_pair = leaf_states(kind, pair, v, n, next_pair, possible, z, room, lanes)
    return scaled


@plain_helper
def inner(
    kind: AlgebraKind,
    pair: Operands,
    v: int,
    z: Floats,
    children: Children,
    room: Room,
    lanes: int,
) -> bool:
    """Compute an inner layer from its two children."""
    scaled = inner_probabilities(pair.p, v, z, children, room.out, room.elements, lanes, False)
    inner_states(kind, pair, v, z, children, room, scaled, lanes)
    return scaled
