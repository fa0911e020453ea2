"""The one recursion, as a walk over layers of lanes.

A *lane* is a row, or an evidence pattern that several rows share. For every layer
the walk computes, lane by lane side by side,

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
import numpy.typing as npt

from expecta.arrays import Floats
from expecta.pair.algebras.operations import (
    clear,
    join,
    mix,
    mix_scaled,
    scale,
    unit,
    width,
)
from expecta.pair.compiled import U, kernel
from expecta.pair.pairing import Layers, Pairing
from expecta.pair.probabilities import LOG_UNIT, Weights, power, probabilities

__all__ = ["STEP_FIELDS", "walk"]

Array = npt.NDArray[Any]

LEAST = 5e-324  # the smallest float above zero
LOG_LEAST = float(np.log(LEAST))

# One step of a walk computes one layer. Fields of a row of ``steps``:
VERTEX = 0  # the vtree node
LANES = 1  # number of lanes, or -1: those of the block of rows
OUT = 2  # where the layer goes
OUT_STRIDE = 3  # lanes per row of the shared array it goes to, or 0: it stays local
CHILD = 4  # fields of the left child; those of the right child follow
CHILD_AT, CHILD_STRIDE, CHILD_MAP = 0, 1, 2  # stride 0: the child is local, lane for lane
CHILD_FIELDS = 3
STATES = CHILD  # at a leaf: where its evidence states begin
STEP_FIELDS = CHILD + 2 * CHILD_FIELDS


@kernel
def walk(
    algebra: Any,  # noqa: ANN401
    p: Layers,
    weights: Weights,
    g: Layers,
    c: Floats,
    pairs: Pairing,
    steps: Array,
    local: Floats,
    room: Array,
    shared: Floats,
    flags: Array,
    maps: Array,
    states: Floats,
    lanes: int,
    first_row: int,
    last_row: int,
) -> None:
    """Do the steps for each block of ``lanes`` rows from ``first_row`` to ``last_row``.

    ``local`` is this thread's memory; ``room`` says where in it the two expanded children,
    the elements, the halves, a layer on its way to ``shared``, and the small vectors live.
    ``flags`` tells which layers have exponents.
    """
    element_room, half_room, out_room, small_room = room[2], room[3], room[4], room[5]
    at = np.zeros(2, np.int64)
    scaled = np.zeros(2, np.bool_)
    lane_of = np.zeros(lanes, np.int32)
    local_flags = np.zeros(len(p.variable), np.uint8)
    for row in range(first_row, last_row, lanes):
        for step in range(len(steps)):
            v = steps[step, VERTEX]
            stride = steps[step, OUT_STRIDE]
            total = steps[step, LANES]
            base = 0
            if total < 0:
                total = min(lanes, last_row - row)
                base = row
            if stride > 0:
                flags[v] = 0
            for start in range(0, total, lanes):
                live = min(lanes, total - start)
                out = out_room if stride > 0 else steps[step, OUT]
                if p.variable[v] >= 0:
                    has_exponents = _leaf(
                        algebra,
                        p,
                        weights,
                        g,
                        c,
                        pairs,
                        v,
                        states,
                        steps[step, STATES],
                        start,
                        live,
                        local,
                        out,
                        small_room,
                        lanes,
                    )
                else:
                    for side in range(2):
                        field = CHILD + side * CHILD_FIELDS
                        child = p.tree_left[v] if side == 0 else p.tree_right[v]
                        child_stride = steps[step, field + CHILD_STRIDE]
                        at[side] = steps[step, field + CHILD_AT]
                        scaled[side] = local_flags[child] > 0
                        if child_stride > 0:
                            first = steps[step, field + CHILD_MAP] + base + start
                            for i in range(lanes):
                                lane_of[i] = maps[first + min(i, live - 1)]
                            rows = _rows(algebra, p, pairs, child)
                            _expand(
                                shared,
                                at[side],
                                child_stride,
                                lane_of,
                                local,
                                room[side],
                                rows,
                                lanes,
                            )
                            at[side] = room[side]
                            scaled[side] = flags[child] > 0
                    has_exponents = _inner(
                        algebra,
                        p,
                        weights,
                        c,
                        pairs,
                        v,
                        local,
                        at[0],
                        scaled[0],
                        at[1],
                        scaled[1],
                        out,
                        element_room,
                        half_room,
                        small_room,
                        lanes,
                    )
                if stride == 0:
                    local_flags[v] = has_exponents
                else:
                    if has_exponents:
                        flags[v] = 1
                    for k in range(_rows(algebra, p, pairs, v)):
                        to = U(steps[step, OUT] + k * stride + base + start)
                        o = U(out + k * lanes)
                        for i in range(U(live)):
                            shared[to + i] = local[o + i]


@kernel
def _rows(algebra: Any, p: Layers, pairs: Pairing, v: int) -> int:  # noqa: ANN401
    """Count the vectors of a layer: q, exponent of q, and the states of its pairs."""
    nodes = p.node_start[v + 1] - p.node_start[v]
    return int(2 * nodes + (pairs.pair_start[v + 1] - pairs.pair_start[v]) * width(algebra))


@kernel
def _expand(
    shared: Floats,
    source: int,
    stride: int,
    lane_of: Array,
    local: Floats,
    to: int,
    rows: int,
    lanes: int,
) -> None:
    """Copy a shared layer to local memory, one lane for each of the block."""
    for k in range(rows):
        a, b = U(source + k * stride), U(to + k * lanes)
        for i in range(U(lanes)):
            local[b + i] = shared[a + U(lane_of[i])]


@kernel
def _leaf(
    algebra: Any,  # noqa: ANN401
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
    for n in range(nodes):
        q, exponent = out + n * lanes, out + (nodes + n) * lanes
        edges = range(p.edge_start[first + n], p.edge_start[first + n + 1])
        for x in range(card * lanes):
            z[small + x] = 0.0
        for i in range(lanes):
            row = at + 1 + (start + min(i, live - 1)) * card
            top = -np.inf
            for a in edges:
                top = max(top, weights.log[a] + states[row + p.target[a]])
            k = 0.0
            if -np.inf < top < -LOG_UNIT:
                k = np.ceil(top / LOG_UNIT)
                scaled = True
            z[exponent + i] = k
            total = 0.0
            for a in edges:
                log_w = weights.log[a] + states[row + p.target[a]] - k * LOG_UNIT
                # too small for a float is still possible
                w = np.exp(log_w) if log_w > LOG_LEAST or log_w == -np.inf else LEAST
                z[small + p.target[a] * lanes + i] = w
                total += w
            z[q + i] = total
        while pair < pairs.pair_start[v + 1] and pairs.pair_p[pair] == n:
            to = out + 2 * nodes * lanes + (pair - pairs.pair_start[v]) * size
            clear(algebra, z, to, lanes)
            m = g.node_start[v] + pairs.pair_g[pair]
            for b in range(g.edge_start[m], g.edge_start[m + 1]):
                unit(algebra, c, b, z, to, small + g.target[b] * lanes, lanes)
            pair += 1
    return scaled


@kernel
def _inner(
    algebra: Any,  # noqa: ANN401
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
    mantissa = weights.mantissa
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
            else:
                mix(algebra, z, to, halves, mix_half, mix_edge, mantissa, a, b, small, lanes)
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
