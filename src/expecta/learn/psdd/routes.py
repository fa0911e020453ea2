"""The way of a complete row through a deterministic circuit: one edge in every layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.circuits.structure import Structure
from expecta.common.arrays import Ints
from expecta.common.kernels import kernel

__all__ = ["routes"]

Array = npt.NDArray[Any]


def routes(structure: Structure, codes: Ints) -> Ints:
    """Return the edge that each complete row follows in each layer.

    Parameters
    ----------
    structure
        That of a deterministic circuit.
    codes
        Rows without unknown cells.  # (rows, variables)

    Returns
    -------
    array of shape (vtree nodes, rows)
        Edge numbers; -1 in all layers for a row that the circuit does not allow.
        Cost: edges x rows / 64, and vtree nodes x rows.
    """
    s = structure
    out = np.full((len(s.vtree), len(codes)), -1, np.int32)
    _route(
        np.array(s.vtree.variable),
        np.array(s.node_start),
        np.array(s.edge_start),
        np.array(s.target),
        np.array(s.left),
        np.array(s.right),
        np.ascontiguousarray(codes.T.astype(np.int32)),
        int(np.max(s.cardinalities)),
        out,
    )
    return out


@kernel
def _route(
    variable: Array,
    node_start: Array,
    edge_start: Array,
    target: Array,
    left: Array,
    right: Array,
    codes: Array,
    most_values: int,
    out: Array,
) -> None:
    """Take 64 rows at a time, one bit each: up for what is satisfied, down for what is meant."""
    n_nodes, n_rows, root = len(edge_start) - 1, codes.shape[1], len(variable) - 1
    satisfied = np.zeros(n_nodes, np.uint64)
    reached = np.zeros(n_nodes, np.uint64)
    zero, one = np.uint64(0), np.uint64(1)
    has_value = np.zeros(max(most_values, 1), np.uint64)
    for first in range(0, n_rows, 64):
        live = min(64, n_rows - first)
        for v in range(root + 1):
            x = variable[v]
            if x >= 0:
                for i in range(live):
                    has_value[codes[x, first + i]] |= one << np.uint64(i)
            for n in range(node_start[v], node_start[v + 1]):
                bits = zero
                for e in range(edge_start[n], edge_start[n + 1]):
                    t = target[e]
                    if x >= 0:
                        bits |= has_value[t]
                    else:
                        bits |= satisfied[left[t]] & satisfied[right[t]]
                satisfied[n] = bits
            if x >= 0:
                for i in range(live):
                    has_value[codes[x, first + i]] = zero
        reached[:] = zero
        reached[n_nodes - 1] = satisfied[n_nodes - 1]
        for v in range(root, -1, -1):
            x = variable[v]
            for n in range(node_start[v], node_start[v + 1]):
                if reached[n] == zero:
                    continue
                for e in range(edge_start[n], edge_start[n + 1]):
                    t = target[e]
                    if x >= 0:
                        for i in range(live):
                            if codes[x, first + i] == t and (reached[n] >> np.uint64(i)) & one:
                                out[v, first + i] = e
                        continue
                    bits = reached[n] & satisfied[left[t]] & satisfied[right[t]]
                    if bits == zero:
                        continue
                    reached[left[t]] |= bits
                    reached[right[t]] |= bits
                    for i in range(live):
                        if (bits >> np.uint64(i)) & one:
                            out[v, first + i] = e
