"""Go down with choices: one edge per visited node, the best or a random one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Bools, Floats
from expecta.common.kernels import U, helper, kernel
from expecta.engine.passes.leaves import PassRows
from expecta.engine.passes.upward import make_values, share, up

Array = npt.NDArray[Any]

ROUNDING = 1e-9  # of a part, by which a search begins too early rather than too late


@kernel
def complete(
    rows: PassRows, out: Array, start: int, impossible: Bools, first: int, last: int
) -> None:
    """Write the most probable completion of the rows ``first`` to ``last``.

    The leaves must hold greatest probabilities; row 0 is ``out[start]``.
    """
    p, leaves, codes, lanes = rows.p, rows.leaves, rows.codes, rows.lanes
    values = make_values(p, lanes)
    z, root = values.z, len(p.variable) - 1
    chosen = np.zeros(root + 1, np.int64)
    for row in range(first, last, lanes):
        live = min(lanes, last - row)
        up(rows, row, live, values, True)
        for i in range(live):
            impossible[start + row + i] = not z[2 * p.node_start[root] * lanes + i] > 0.0
            if impossible[start + row + i]:
                continue
            chosen[root] = 0
            for v in range(root, -1, -1):
                x, n = p.variable[v], chosen[v]
                state = codes[x, row + i] if x >= 0 else 0
                best, greatest = 0, -1.0
                node = p.node_start[v] + n
                for a in range(p.edge_start[node], p.edge_start[node + 1]):
                    part = share(p, leaves, v, n, a, state, z, i, lanes)
                    if part > greatest:
                        best, greatest = a, part
                if x >= 0:
                    out[start + row + i, x] = p.target[best]
                else:
                    e = p.element_start[v] + p.target[best]
                    chosen[p.tree_left[v]] = p.left[e]
                    chosen[p.tree_right[v]] = p.right[e]


@kernel
def _single_values(rows: PassRows) -> Array:
    """Return the value of each state that allows one, and -1 of others.  # (variables, states)."""
    p, leaves = rows.p, rows.leaves
    only = np.full((len(rows.codes), leaves.n_states.max()), -1, np.int64)
    for v in range(len(p.variable)):
        x = p.variable[v]
        if x < 0:
            continue
        for state in range(leaves.n_states[x]):
            at = leaves.state_at[x] + state * p.cardinality[v]
            count = 0
            for value in range(p.cardinality[v]):
                if leaves.states[at + value] > 0.0:
                    count += 1
                    only[x, state] = value
            if count > 1:
                only[x, state] = -1
    return only


@kernel
def draw(
    rows: PassRows,
    uniforms: Floats,
    per_row: int,
    skipped: int,
    out: Array,
    impossible: Bools,
    first: int,
    last: int,
) -> None:
    """Write the draws ``first`` to ``last``; ``per_row`` of them belong to each row.

    The first row lacks its first ``skipped`` draws. Draw d takes its random numbers,
    one per vtree node, from ``uniforms[d]``, so that it does not matter who draws it.
    Where a row leaves nothing to choose below a node, draws do not go there.
    """
    p, leaves, codes, lanes = rows.p, rows.leaves, rows.codes, rows.lanes
    values = make_values(p, lanes)
    z, root = values.z, len(p.variable) - 1
    only = _single_values(rows)
    is_open = np.zeros(root + 1, np.bool_)
    # Node by node, so that what is asked of one remains in the cache.
    chosen = np.zeros((root + 1, min(per_row, last - first)), np.int32)
    # Running sums of the shares of a node's edges, made when a row first comes by; those of a
    # leaf depend on its state alone, which many rows share. And where to look for a number.
    sums = np.zeros(p.edge_start[p.node_start[root + 1]], np.float64)
    guide = np.zeros(len(sums), np.int32)
    seen = np.full(p.node_start[root + 1], -1, np.int64)
    first_row, last_row = (first + skipped) // per_row, -(-(last + skipped) // per_row)
    for row in range(first_row, last_row, lanes):
        live = min(lanes, last_row - row)
        up(rows, row, live, values, False)
        for i in range(live):
            if not z[2 * p.node_start[root] * lanes + i] > 0.0:
                impossible[row + i] = True
                continue
            d0 = max(first, (row + i) * per_row - skipped)
            d1 = min(last, (row + i + 1) * per_row - skipped)
            for v in range(root + 1):
                x = p.variable[v]
                if x < 0:
                    is_open[v] = is_open[p.tree_left[v]] or is_open[p.tree_right[v]]
                    continue
                value = only[x, codes[x, row + i]]
                is_open[v] = value < 0
                for d in range(d0, d1 if value >= 0 else d0):
                    out[d, x] = value
            for v in range(root, -1, -1):
                if not is_open[v]:
                    continue
                x = p.variable[v]
                state = codes[x, row + i] if x >= 0 else 0
                key = state if x >= 0 else row + i
                first_node, first_element = p.node_start[v], p.element_start[v]
                left, right = p.tree_left[v], p.tree_right[v]
                for d in range(U(d1 - d0)):
                    n = 0 if v == root else chosen[U(v), d]
                    node = U(first_node + n)
                    a, b = p.edge_start[node], p.edge_start[node + U(1)]
                    if seen[node] != key:
                        seen[node] = key
                        total = 0.0
                        for k in range(a, b):
                            total += share(p, leaves, v, n, k, state, z, i, lanes)
                            sums[k] = total
                        _write_guide(sums, a, b, guide)
                    # The first running sum above u; an edge of share zero never is.
                    uniform, edge, end = uniforms[U(d0) + d, U(v)], U(a), U(b - 1)
                    u = uniform * sums[end]
                    edge = U(guide[edge + U(uniform * (b - a))])
                    while edge < end and sums[edge] <= u:
                        edge += U(1)
                    if x >= 0:
                        out[U(d0) + d, U(x)] = p.target[edge]
                    else:
                        e = U(first_element + p.target[edge])
                        chosen[U(left), d] = p.left[e]
                        chosen[U(right), d] = p.right[e]


@helper
def _write_guide(sums: Array, a: int, b: int, guide: Array) -> None:
    """Cut [0, 1) in as many parts as there are edges; write where the search for each begins."""
    at, parts = a, (b - a) / sums[b - 1]
    for part in range(b - a):
        while at < b - 1 and sums[at] * parts <= part - ROUNDING:
            at += 1
        guide[a + part] = at
