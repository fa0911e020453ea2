"""Compute the states of a layer's pairs in one algebra, from those below."""

from __future__ import annotations

from typing import Any

from expecta.common.arrays import Bools, Floats
from expecta.common.kernels import U, plain_helper
from expecta.engine.algebras.algebra_operations import (
    clear,
    join,
    mix,
    mix_scaled,
    scale,
    unit,
    width,
)
from expecta.engine.operands import Operands, Room
from expecta.engine.probabilities import Children, power


@plain_helper
def states_of_node(
    algebra: Any,
    pair: Operands,
    v: int,
    n: int,
    next_pair: int,
    possible: Bools,
    z: Floats,
    room: Room,
    lanes: int,
) -> int:
    """Compute the pairs of a leaf's node n, of which ``next_pair`` is the first.

    The weights of the values are in the small vectors. Returns the pair after them.
    """
    p, g, pairs = pair.p, pair.g, pair.pairs
    nodes = p.node_start[v + 1] - p.node_start[v]
    size = width(algebra) * lanes
    while next_pair < pairs.pair_start[v + 1] and pairs.pair_p[next_pair] == n:
        to = room.out + 2 * nodes * lanes + (next_pair - pairs.pair_start[v]) * size
        clear(algebra, z, to, lanes)
        m = g.node_start[v] + pairs.pair_g[next_pair]
        for b in range(g.edge_start[m], g.edge_start[m + 1]):
            if possible[g.target[b]]:
                at = room.small + g.target[b] * lanes
                unit(algebra, pair.constants, b, z, to, at, lanes)
        next_pair += 1
    return next_pair


@plain_helper
def states_of_layer(
    algebra: Any,
    pair: Operands,
    v: int,
    z: Floats,
    children: Children,
    room: Room,
    scaled: bool,
    lanes: int,
) -> None:
    """Compute the pairs of an inner layer; ``scaled`` says that probabilities have exponents."""
    p, c, pairs = pair.p, pair.constants, pair.pairs
    out, elements, halves, small = room.out, room.elements, room.halves, room.small
    nodes = p.node_start[v + 1] - p.node_start[v]
    left_nodes = p.node_start[p.tree_left[v] + 1] - p.node_start[p.tree_left[v]]
    right_nodes = p.node_start[p.tree_right[v] + 1] - p.node_start[p.tree_right[v]]
    size = width(algebra) * lanes
    left_states = children.left + 2 * left_nodes * lanes
    right_states = children.right + 2 * right_nodes * lanes
    direct, join_start, join_edge = pairs.direct, pairs.join_start, pairs.join_edge
    join_left, join_right = pairs.join_left, pairs.join_right
    mix_start, mix_half, mix_edge = pairs.mix_start, pairs.mix_half, pairs.mix_edge
    mantissa, run = p.mantissa, pairs.mix_run
    first_half, last_half = U(pairs.half_start[v]), U(pairs.half_start[v + 1])
    to = halves
    for h in range(first_half, last_half):
        if scaled or not direct[h]:
            start = U(join_start[h])
            for j in range(start, U(join_start[h + U(1)])):
                x, y = left_states + join_left[j] * size, right_states + join_right[j] * size
                join(algebra, c, join_edge[j], z, to, x, y, small, j == start, lanes)
        to += size
    to = out + 2 * nodes * lanes - size
    for k in range(U(pairs.pair_start[v]), U(pairs.pair_start[v + 1])):
        to += size
        a, b = U(mix_start[k]), U(mix_start[k + U(1)])
        if not scaled:
            h = first_half + U(mix_half[a])
            if direct[h]:
                start = U(join_start[h])
                for j in range(start, U(join_start[h + U(1)])):
                    x, y = left_states + join_left[j] * size, right_states + join_right[j] * size
                    join(algebra, c, join_edge[j], z, to, x, y, small, j == start, lanes)
                theta = mantissa[U(mix_edge[a])]
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
