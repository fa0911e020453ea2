"""Compute the probability of evidence under every node of p's layers, without underflow.

A probability is q · 2^(256 k) with a whole exponent k for every node and lane, which is
lowered whenever q would fall below 2^-256. No logarithm is taken, and while all k are
zero (the usual case) no work is spent on them. The walk of a pair and the passes over p
alone both go up by the two functions of this file. An array of evidence states has the
weights of all states over the values of their variables, and behind them all exponents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from expecta.common.arrays import Floats
from expecta.common.kernels import U, kernel, plain_helper
from expecta.engine.layers import TINY, UNIT, WeightedLayers

SMALLEST = 5e-324  # the smallest float above zero


class Children(NamedTuple):
    """Where the two child layers of an inner layer begin, and whether they have exponents."""

    left: int
    left_scaled: bool
    right: int
    right_scaled: bool


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


@plain_helper
def leaf_term(p: WeightedLayers, a: int, states: Floats, at: int) -> tuple[float, float]:
    """Return θ e of a leaf's edge as a number and an exponent, for the state at ``at``."""
    x = at + p.target[a]
    return p.mantissa[a] * states[x], p.exponent[a] + states[x + len(states) // 2]


@plain_helper
def leaf_probability(
    p: WeightedLayers,
    first: int,
    end: int,
    states: Floats,
    at: int,
    largest: bool,
    terms: Floats,
    out: int,
    stride: int,
) -> tuple[float, float, bool]:
    """Compute q of a leaf's node for the state at ``at``: Σ θ e, or the greatest θ e.

    The node's edges are ``first`` to ``end``, of which those of impossible values may be left out.

    Returns q, its exponent, and whether any exponent is not zero. The terms of the
    possible values x go to ``terms[out + x · stride]``, over the power of two of q; however
    small against q, they are above zero.
    """
    top, lowest = -np.inf, 0.0
    for a in range(first, end):
        term, k = leaf_term(p, a, states, at)
        if term > 0.0:
            lowest = min(lowest, k)
            if term < TINY:
                k -= 1.0
            top = max(top, k)
    total = 0.0
    for a in range(first, end):
        term, k = leaf_term(p, a, states, at)
        if term > 0.0:
            term = max(term * power(k - top), SMALLEST)
            terms[out + p.target[a] * stride] = term
            total = max(total, term) if largest else total + term
    if total == 0.0:
        return 0.0, 0.0, False
    return total, top, lowest < 0.0 or top < 0.0


@plain_helper
def inner_probabilities(
    p: WeightedLayers,
    v: int,
    z: Floats,
    children: Children,
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
    left, right = children.left, children.right
    left_nodes = p.node_start[p.tree_left[v] + 1] - p.node_start[p.tree_left[v]]
    right_nodes = p.node_start[p.tree_right[v] + 1] - p.node_start[p.tree_right[v]]
    e0, e1 = p.element_start[v], p.element_start[v + 1]
    count = e1 - e0
    # Arrays are taken out of their tuples once: each access counts references.
    p_left, p_right, edge_start, target = p.left, p.right, p.edge_start, p.target
    mantissa = p.mantissa
    for e in range(count):
        x, y = U(left + p_left[e0 + e] * lanes), U(right + p_right[e0 + e] * lanes)
        to = U(elements + e * lanes)
        for i in range(U(lanes)):
            z[to + i] = z[x + i] * z[y + i]
    if not (children.left_scaled or children.right_scaled or p.has_exponents[v] > 0):
        lowest = np.inf
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
                lowest = min(lowest, z[to + i] if z[to + i] > 0.0 else 1.0)
        if lowest >= TINY:
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
                term, k = _term(p, a, z, elements + p.target[a] * lanes + i, count * lanes)
                if term > 0.0:
                    top = max(top, k)
            total = 0.0
            for a in edges:
                term, k = _term(p, a, z, elements + p.target[a] * lanes + i, count * lanes)
                if term > 0.0:
                    term *= power(k - top)
                    total = max(total, term) if largest else total + term
            z[out + n * lanes + i] = total
            z[out + (nodes + n) * lanes + i] = top if total > 0.0 else 0.0
    return True


@plain_helper
def _term(
    p: WeightedLayers, a: int, z: Floats, element: int, to_exponent: int
) -> tuple[float, float]:
    """Return θ q of an edge as a number in [2^-256, 1] and an exponent."""
    term = z[element]
    k = z[element + to_exponent] + p.exponent[a]
    if term > 0.0:
        while term < TINY:
            term *= UNIT
            k -= 1.0
        term *= p.mantissa[a]
        while term < TINY:
            term *= UNIT
            k -= 1.0
    return term, k
