"""Compute the entropy of a deterministic p given evidence, bottom-up."""

from __future__ import annotations

import numpy as np

from expecta.common.arrays import Bools, Floats
from expecta.common.kernels import kernel
from expecta.engine.passes.leaves import PassRows
from expecta.engine.passes.upward import make_values, share, up


@kernel
def entropies(
    rows: PassRows, out: Floats, start: int, impossible: Bools, first: int, last: int
) -> None:
    """Write the posterior entropy of a deterministic p for rows ``first`` to ``last``.

    H[n] = Σ share · (H[left] + H[right] − log share) over the edges of n: their rows
    are disjoint, so that choosing an edge is part of choosing a row. All terms are
    positive, and nothing cancels.
    """
    p, leaves, codes, lanes = rows.p, rows.leaves, rows.codes, rows.lanes
    values = make_values(p, lanes)
    z, root = values.z, len(p.variable) - 1
    h = np.zeros(p.node_start[root + 1] * lanes, np.float64)
    for row in range(first, last, lanes):
        live = min(lanes, last - row)
        up(rows, row, live, values, False)
        for v in range(root + 1):
            x, first_node = p.variable[v], p.node_start[v]
            left, right = p.tree_left[v], p.tree_right[v]
            for n in range(p.node_start[v + 1] - first_node):
                for i in range(live):
                    state = codes[x, row + i] if x >= 0 else 0
                    # The largest share comes last: near one, its logarithm is that of the others.
                    total, others, largest, below_largest = 0.0, 0.0, 0.0, 0.0
                    for a in range(p.edge_start[first_node + n], p.edge_start[first_node + n + 1]):
                        part = share(p, leaves, v, n, a, state, z, i, lanes)
                        below = 0.0
                        if x < 0:
                            e = p.element_start[v] + p.target[a]
                            below += h[(p.node_start[left] + p.left[e]) * lanes + i]
                            below += h[(p.node_start[right] + p.right[e]) * lanes + i]
                        if part > largest:
                            part, largest = largest, part
                            below, below_largest = below_largest, below
                        if part > 0.0:
                            total += part * (below - np.log(part))
                            others += part
                    if largest > 0.0:
                        log = np.log1p(-others) if others < 0.5 else np.log(largest)
                        total += largest * (below_largest - log)
                    h[(first_node + n) * lanes + i] = total
        for i in range(live):
            out[start + row + i] = h[p.node_start[root] * lanes + i]
            impossible[start + row + i] = not z[2 * p.node_start[root] * lanes + i] > 0.0
