"""Probabilities of evidence under p's nodes, that never underflow.

A probability is q · 2^(256 k) with a whole exponent k for every node and lane, which is
lowered whenever q would fall below 2^-256. No logarithm is taken above the leaves, and
while all k are zero (the usual case) no work is spent on them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Floats
from expecta.common.kernels import U, kernel
from expecta.engine.layers import Layers

__all__ = ["LOG_UNIT", "TINY", "UNIT", "Weights", "power", "probabilities"]

Array = npt.NDArray[Any]

UNIT = 2.0**256
TINY = 2.0**-256
LOG_UNIT = 256 * float(np.log(2.0))


class Weights(NamedTuple):
    """p's parameters as the walk reads them: θ = mantissa · 2^(256 exponent)."""

    mantissa: Array  # (edges,)
    exponent: Array  # (edges,)
    log: Array  # (edges,)
    scaled: Array  # (vtree nodes,) whether any exponent of an inner layer is not zero


@kernel
def power(k: float) -> float:
    """Return 2^(256 k) for a whole k; what is too small to matter is zero.

    So is what is too large: the exponent of a positive term is above that of its node
    by three at most, and a term of zero may have any.
    """
    if k == 0.0:
        return 1.0
    if abs(k) > 3.0:
        return 0.0
    return float(UNIT**k)


@kernel
def probabilities(
    p: Layers,
    weights: Weights,
    v: int,
    z: Floats,
    left: int,
    left_scaled: bool,
    right: int,
    right_scaled: bool,
    out: int,
    elements: int,
    lanes: int,
    largest: bool,
) -> bool:
    """Compute q of an inner layer, and its exponents; true where these are not all zero.

    With ``largest`` the sum over edges is a maximum: the most probable completion.
    """
    first, last = p.node_start[v], p.node_start[v + 1]
    nodes = last - first
    left_nodes = p.node_start[p.tree_left[v] + 1] - p.node_start[p.tree_left[v]]
    right_nodes = p.node_start[p.tree_right[v] + 1] - p.node_start[p.tree_right[v]]
    e0, e1 = p.element_start[v], p.element_start[v + 1]
    count = e1 - e0
    p_left, p_right, edge_start, target = p.left, p.right, p.edge_start, p.target
    mantissa = weights.mantissa
    for e in range(count):
        x, y = U(left + p_left[e0 + e] * lanes), U(right + p_right[e0 + e] * lanes)
        to = U(elements + e * lanes)
        for i in range(U(lanes)):
            z[to + i] = z[x + i] * z[y + i]
    scaled = left_scaled or right_scaled or weights.scaled[v] > 0
    if not scaled:
        least = np.inf
        for n in range(nodes):
            to, exponent = U(out + n * lanes), U(out + (nodes + n) * lanes)
            for i in range(U(lanes)):
                z[to + i] = 0.0
                z[exponent + i] = 0.0
            for a in range(edge_start[first + n], edge_start[first + n + 1]):
                x, w = U(elements + target[a] * lanes), mantissa[a]
                if largest:
                    for i in range(U(lanes)):
                        z[to + i] = max(z[to + i], w * z[x + i])
                else:
                    for i in range(U(lanes)):
                        z[to + i] += w * z[x + i]
            for i in range(U(lanes)):
                least = min(least, z[to + i] if z[to + i] > 0.0 else 1.0)
        if least >= TINY:
            return False
    for e in range(count):
        x = left + (left_nodes + p.left[e0 + e]) * lanes
        y = right + (right_nodes + p.right[e0 + e]) * lanes
        to = elements + (count + e) * lanes
        for i in range(lanes):
            z[to + i] = z[x + i] + z[y + i]
    for n in range(nodes):
        edges = range(p.edge_start[first + n], p.edge_start[first + n + 1])
        for i in range(lanes):
            # Bring every term into [2^-256, 1], then to the greatest exponent among them.
            top = -np.inf
            for a in edges:
                term, k = _term(z, elements, count, p.target[a], i, lanes, weights, a)
                if term > 0.0:
                    top = max(top, k)
            total = 0.0
            for a in edges:
                term, k = _term(z, elements, count, p.target[a], i, lanes, weights, a)
                if term > 0.0:
                    term *= power(k - top)
                    total = max(total, term) if largest else total + term
            z[out + n * lanes + i] = total
            z[out + (nodes + n) * lanes + i] = top if total > 0.0 else 0.0
    return True


@kernel
def _term(
    z: Floats,
    elements: int,
    count: int,
    element: int,
    i: int,
    lanes: int,
    weights: Weights,
    a: int,
) -> tuple[float, float]:
    """Return θ q of an edge as a number in [2^-256, 1] and an exponent."""
    term = z[elements + element * lanes + i]
    k = z[elements + (count + element) * lanes + i] + weights.exponent[a]
    if term > 0.0:
        while term < TINY:
            term *= UNIT
            k -= 1.0
        term *= weights.mantissa[a]
        while term < TINY:
            term *= UNIT
            k -= 1.0
    return term, k
