"""Walk over the layers of a vtree: which layer, for which lanes, from where to where.

A *lane* is a row, or an evidence pattern that several rows share.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Floats
from expecta.common.kernels import U, kernel, plain_helper
from expecta.engine.algebra_kinds import AlgebraKind
from expecta.engine.layers import WeightedLayers
from expecta.engine.operands import Operands, Room
from expecta.engine.pair_recursion import inner, leaf
from expecta.engine.pairing import Pairing
from expecta.engine.probabilities import Children

Array = npt.NDArray[Any]

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


class Memory(NamedTuple):
    """The arrays that a batch of rows is computed in."""

    shared: Floats  # layers that all threads read
    flags: Array  # (vtree nodes,) which shared layers have exponents
    maps: Array  # which shared lane each row, or each pattern of a layer above, takes
    states: Floats  # evidence states of the leaves (see ``probabilities``)
    room: Array  # where a thread's memory has the two expanded children, the elements, the
    # halves, a layer on its way to ``shared``, and the small vectors


@kernel
def walk(
    kind: AlgebraKind,
    pair: Operands,
    steps: Array,
    memory: Memory,
    local: Floats,
    lanes: int,
    first_row: int,
    last_row: int,
) -> None:
    """Do the steps for each block of ``lanes`` rows from ``first_row`` to ``last_row``.

    ``local`` is this thread's own memory.
    """
    p, pairs, shared, flags = pair.p, pair.pairs, memory.shared, memory.flags
    room, maps, states = memory.room, memory.maps, memory.states
    at = np.zeros(2, np.int64)
    scaled = np.zeros(2, np.bool_)
    lane_of = np.zeros(lanes, np.int32)
    local_flags = np.zeros(len(p.variable), np.uint8)
    possible = np.zeros(np.max(p.cardinality), np.bool_)  # values of a leaf
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
                out = room[4] if stride > 0 else steps[step, OUT]
                here = Room(out, room[2], room[3], room[5])
                if p.variable[v] >= 0:
                    first_state = steps[step, STATES] + start * p.cardinality[v]
                    has_exponents = leaf(
                        kind, pair, v, states, first_state, live, possible, local, here, lanes
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
                            vectors = _vectors(kind.width, p, pairs, child)
                            for k in range(vectors):  # one lane for each of the block
                                a, b = U(at[side] + k * child_stride), U(room[side] + k * lanes)
                                for i in range(U(lanes)):
                                    local[b + i] = shared[a + U(lane_of[i])]
                            at[side] = room[side]
                            scaled[side] = flags[child] > 0
                    children = Children(at[0], scaled[0], at[1], scaled[1])
                    has_exponents = inner(kind, pair, v, local, children, here, lanes)
                if stride == 0:
                    local_flags[v] = has_exponents
                else:
                    if has_exponents:
                        flags[v] = 1
                    for k in range(_vectors(kind.width, p, pairs, v)):
                        to = U(steps[step, OUT] + k * stride + base + start)
                        o = U(out + k * lanes)
                        for i in range(U(live)):
                            shared[to + i] = local[o + i]


@plain_helper
def _vectors(width: int, p: WeightedLayers, pairs: Pairing, v: int) -> int:
    """Count the vectors of a layer: q, exponent of q, and the states of its pairs."""
    nodes = p.node_start[v + 1] - p.node_start[v]
    return int(2 * nodes + (pairs.pair_start[v + 1] - pairs.pair_start[v]) * width)
