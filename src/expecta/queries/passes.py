"""Passes over p that need all its layers at once: up, then down again.

A block of rows goes side by side, a *lane* each. The pass up keeps q of every node,
the probability (or the greatest probability) of the evidence below it, with its
power of two, 2^(256 k) for k per node and lane, as the walk of a pair does. The
posterior probability of an edge of node n, once n is chosen, is then

    θ q[element] / q[n]

and this *share* is all that a pass down needs: it spreads the probability of being
visited over the edges (marginals), follows one of them (samples, most probable
completions), or is averaged (entropy).

Layer v has its values at ``2 · node_start[v] · lanes`` of the array z: first the
lanes of q of every node, then those of their exponents.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.arrays import Bools, Floats
from expecta.pair.compiled import U, kernel
from expecta.pair.pairing import Layers
from expecta.pair.walk import Weights, probabilities

__all__ = [
    "Leaves",
    "complete",
    "draw",
    "entropies",
    "posteriors",
    "read_leaves",
]

Array = npt.NDArray[Any]

UNIT = 2.0**256
TINY = 2.0**-256


class Leaves(NamedTuple):
    """The evidence states that some rows use, and what leaf layers make of them."""

    cardinalities: Array  # (variables,)
    weight_at: Array  # (variables,) where the weights of a variable's states begin
    weight: Array  # e(x) = weight · 2^(256 weight_exponent)  # (states, values) each
    weight_exponent: Array
    table_at: Array  # (vtree nodes,) where the values of a leaf layer begin
    q: Array  # Σ θ e, or the greatest θ e  # (nodes, states) each
    q_exponent: Array
    n_states: Array  # (variables,)
    scaled: Array  # (vtree nodes,) whether any of these exponents is not zero


# -- leaves ---------------------------------------------------------------------------


@kernel
def read_leaves(
    p: Layers,
    weights: Weights,
    cardinalities: Array,
    state_start: Array,
    weight_start: Array,
    weight: Floats,
    weight_exponent: Floats,
    codes: Array,
    largest: bool,
) -> Leaves:
    """Compute what the leaf layers make of the evidence of rows with these codes.

    ``codes`` (variables, rows) is overwritten: states are renumbered in the order in
    which rows use them. Cost: O(cells + leaf edges · states used).
    """
    variables, n_rows = codes.shape
    used_start = np.zeros(variables + 1, np.int64)
    most = 0
    for x in range(variables):
        states = state_start[x + 1] - state_start[x]
        used_start[x + 1] = used_start[x] + min(states, n_rows)
        most = max(most, states)
    used = np.zeros(used_start[variables], np.int32)
    n_states = np.zeros(variables, np.int64)
    number = np.zeros(most, np.int32)
    weight_at = np.zeros(variables, np.int64)
    end = 0
    for x in range(variables):
        number[: state_start[x + 1] - state_start[x]] = -1
        found = 0
        for row in range(n_rows):
            state = codes[x, row]
            if number[state] < 0:
                number[state] = found
                used[used_start[x] + found] = state
                found += 1
            codes[x, row] = number[state]
        n_states[x] = found
        weight_at[x] = end
        end += found * cardinalities[x]
    used_weight = np.zeros(end, np.float64)
    used_exponent = np.zeros(end, np.float64)
    for x in range(variables):
        card = cardinalities[x]
        for s in range(n_states[x]):
            source = weight_start[x] + used[used_start[x] + s] * card
            for k in range(card):
                used_weight[weight_at[x] + s * card + k] = weight[source + k]
                used_exponent[weight_at[x] + s * card + k] = weight_exponent[source + k]
    table_at = np.zeros(len(p.variable), np.int64)
    end = 0
    for v in range(len(p.variable)):
        table_at[v] = end
        if p.variable[v] >= 0:
            end += (p.node_start[v + 1] - p.node_start[v]) * n_states[p.variable[v]]
    q = np.zeros(end, np.float64)
    q_exponent = np.zeros(end, np.float64)
    scaled = np.zeros(len(p.variable), np.uint8)
    leaves = Leaves(
        cardinalities,
        weight_at,
        used_weight,
        used_exponent,
        table_at,
        q,
        q_exponent,
        n_states,
        scaled,
    )
    for v in range(len(p.variable)):
        if p.variable[v] >= 0:
            _leaf_table(p, weights, leaves, v, largest)
    return leaves


@kernel
def _leaf_table(p: Layers, weights: Weights, leaves: Leaves, v: int, largest: bool) -> None:
    first = p.node_start[v]
    states = leaves.n_states[p.variable[v]]
    for n in range(p.node_start[v + 1] - first):
        edges = range(p.edge_start[first + n], p.edge_start[first + n + 1])
        for s in range(states):
            at = leaves.table_at[v] + n * states + s
            total, least = 0.0, 0.0
            for a in edges:
                term, k = _leaf_term(p, weights, leaves, v, a, s)
                least = min(least, k)
                total = max(total, term) if largest else total + term
            if least == 0.0 and (total >= TINY or total == 0.0):
                leaves.q[at] = total
                continue
            leaves.scaled[v] = 1
            top = -np.inf
            for a in edges:
                term, k = _leaf_term(p, weights, leaves, v, a, s)
                if term > 0.0:
                    while term < TINY:
                        term *= UNIT
                        k -= 1.0
                    top = max(top, k)
            total = 0.0
            for a in edges:
                term, k = _leaf_term(p, weights, leaves, v, a, s)
                if term > 0.0:
                    term *= _power(k - top)
                    total = max(total, term) if largest else total + term
            if top > -np.inf:
                leaves.q[at] = total
                leaves.q_exponent[at] = top


@kernel
def _leaf_term(
    p: Layers, weights: Weights, leaves: Leaves, v: int, a: int, state: int
) -> tuple[float, float]:
    """Return θ e of a leaf's edge as a number and an exponent."""
    x = p.variable[v]
    at = leaves.weight_at[x] + state * leaves.cardinalities[x] + p.target[a]
    return (
        weights.mantissa[a] * leaves.weight[at],
        weights.exponent[a] + leaves.weight_exponent[at],
    )


# -- up -------------------------------------------------------------------------------


@kernel
def _room(p: Layers, lanes: int) -> tuple[Floats, int]:
    """Make room for all layers and, behind them, for the elements of the largest."""
    most = 0
    for v in range(len(p.variable)):
        most = max(most, p.element_start[v + 1] - p.element_start[v])
    elements = 2 * p.node_start[len(p.variable)] * lanes
    return np.zeros(elements + 2 * most * lanes, np.float64), elements


@kernel
def _up(
    p: Layers,
    weights: Weights,
    leaves: Leaves,
    codes: Array,
    row: int,
    live: int,
    z: Floats,
    elements: int,
    scaled: Array,
    lanes: int,
    largest: bool,
) -> None:
    """Compute q of every layer for ``live`` rows from ``row`` on; further lanes repeat the last.

    ``scaled`` tells afterwards which layers have exponents that are not zero.
    """
    state = np.zeros(lanes, np.int64)
    for v in range(len(p.variable)):
        out = 2 * p.node_start[v] * lanes
        x = p.variable[v]
        if x < 0:
            left, right = p.tree_left[v], p.tree_right[v]
            scaled[v] = probabilities(
                p,
                weights,
                v,
                z,
                2 * p.node_start[left] * lanes,
                scaled[left] > 0,
                2 * p.node_start[right] * lanes,
                scaled[right] > 0,
                out,
                elements,
                0,
                lanes,
                largest,
            )
            continue
        scaled[v] = leaves.scaled[v]
        for i in range(lanes):
            state[i] = codes[x, row + min(i, live - 1)]
        nodes = p.node_start[v + 1] - p.node_start[v]
        for n in range(nodes):
            table = U(leaves.table_at[v] + n * leaves.n_states[x])
            q, exponent = U(out + n * lanes), U(out + (nodes + n) * lanes)
            for i in range(U(lanes)):
                z[q + i] = leaves.q[table + U(state[i])]
            if scaled[v] > 0:
                for i in range(U(lanes)):
                    z[exponent + i] = leaves.q_exponent[table + U(state[i])]
            else:
                for i in range(U(lanes)):
                    z[exponent + i] = 0.0


@kernel
def _power(k: float) -> float:
    """Return 2^(256 k) for a whole k; what is too small to matter is zero.

    So is what is too large: exponents of a node and of a positive term differ by three
    upwards at most, and a term of zero may have any.
    """
    if k == 0.0:
        return 1.0
    if abs(k) > 3.0:
        return 0.0
    return float(UNIT**k)


@kernel
def _share(
    p: Layers,
    weights: Weights,
    leaves: Leaves,
    v: int,
    n: int,
    a: int,
    state: int,
    z: Floats,
    i: int,
    lanes: int,
) -> float:
    """Return what part of q of node n its edge a brings, in one lane; zero where q is."""
    first = p.node_start[v]
    q = z[(2 * first + n) * lanes + i]
    if not q > 0.0:
        return 0.0
    nodes = p.node_start[v + 1] - first
    k = z[(2 * first + nodes + n) * lanes + i]
    if p.variable[v] >= 0:
        term, above = _leaf_term(p, weights, leaves, v, a, state)
        share: float = term * _power(above - k) / q
        return share
    e = p.element_start[v] + p.target[a]
    left, right = p.tree_left[v], p.tree_right[v]
    x = (2 * p.node_start[left] + p.left[e]) * lanes + i
    y = (2 * p.node_start[right] + p.right[e]) * lanes + i
    above = weights.exponent[a]
    above += z[x + (p.node_start[left + 1] - p.node_start[left]) * lanes]
    above += z[y + (p.node_start[right + 1] - p.node_start[right]) * lanes]
    share = weights.mantissa[a] * (z[x] * z[y]) * _power(above - k) / q
    return share


# -- down: flows ----------------------------------------------------------------------


@kernel
def posteriors(
    p: Layers,
    weights: Weights,
    leaves: Leaves,
    codes: Array,
    lanes: int,
    out: Floats,
    out_at: Array,
    start: int,
    impossible: Bools,
    first: int,
    last: int,
) -> None:
    """Write the posterior of every variable for the rows ``first`` to ``last`` of the codes.

    That of variable x goes to ``out[out_at[x]:]`` as (all rows, values), where the
    first row of the codes is row ``start``.
    """
    z, elements = _room(p, lanes)
    root = len(p.variable) - 1
    n_nodes = p.node_start[root + 1]
    scaled = np.zeros(len(p.variable), np.uint8)
    flow = np.zeros(n_nodes * lanes, np.float64)
    posterior = np.zeros(leaves.cardinalities.max() * lanes, np.float64)
    for row in range(first, last, lanes):
        live = min(lanes, last - row)
        _up(p, weights, leaves, codes, row, live, z, elements, scaled, lanes, False)
        flow[:] = 0.0
        for i in range(lanes):
            possible = z[2 * p.node_start[root] * lanes + i] > 0.0
            flow[p.node_start[root] * lanes + i] = 1.0 if possible else 0.0
            if i < live:
                impossible[start + row + i] = not possible
        for v in range(root, -1, -1):
            _divide(p, v, z, flow, lanes)
            x = p.variable[v]
            if x < 0:
                _spread(p, weights, v, z, elements, scaled[v] > 0, flow, lanes)
                continue
            _spread_leaf(p, weights, leaves, codes, row, live, v, z, flow, posterior, lanes)
            card = leaves.cardinalities[x]
            for i in range(live):
                # All flow meets at every leaf. What it lacks of one is rounding on the way.
                total = 0.0
                for k in range(card):
                    total += posterior[k * lanes + i]
                to = out_at[x] + (start + row + i) * card
                for k in range(card):
                    out[to + k] = posterior[k * lanes + i] / total if total > 0.0 else 0.0


@kernel
def _divide(p: Layers, v: int, z: Floats, flow: Floats, lanes: int) -> None:
    """Divide the flow of every node of a layer by its q, the power of two left aside."""
    first = p.node_start[v]
    for n in range(p.node_start[v + 1] - first):
        f, q = U((first + n) * lanes), U((2 * first + n) * lanes)
        for i in range(U(lanes)):
            flow[f + i] = flow[f + i] / z[q + i] if z[q + i] > 0.0 else 0.0


@kernel
def _spread(
    p: Layers,
    weights: Weights,
    v: int,
    z: Floats,
    elements: int,
    scaled: bool,
    flow: Floats,
    lanes: int,
) -> None:
    """Hand the flow of a layer's nodes, divided by q, down to the nodes of its children."""
    first, e0 = p.node_start[v], p.element_start[v]
    nodes, count = p.node_start[v + 1] - first, p.element_start[v + 1] - e0
    left, right = p.node_start[p.tree_left[v]], p.node_start[p.tree_right[v]]
    left_nodes = p.node_start[p.tree_left[v] + 1] - left
    right_nodes = p.node_start[p.tree_right[v] + 1] - right
    at = U(elements)
    for i in range(U(count * lanes)):
        z[at + i] = 0.0
    for n in range(nodes):
        f = U((first + n) * lanes)
        own = (2 * first + nodes + n) * lanes
        for a in range(p.edge_start[first + n], p.edge_start[first + n + 1]):
            to, w = U(elements + p.target[a] * lanes), weights.mantissa[a]
            if not scaled:
                for i in range(U(lanes)):
                    z[to + i] += w * flow[f + i]
                continue
            # With exponents the product with q of the element must come first: the two
            # factors apart may be out of range.
            e = e0 + p.target[a]
            x = (2 * left + p.left[e]) * lanes
            y = (2 * right + p.right[e]) * lanes
            for i in range(lanes):
                k = weights.exponent[a] - z[own + i]
                k += z[x + left_nodes * lanes + i] + z[y + right_nodes * lanes + i]
                part = w * (z[x + i] * z[y + i]) * _power(k)
                z[elements + p.target[a] * lanes + i] += part * flow[(first + n) * lanes + i]
    for e in range(count):
        at = U(elements + e * lanes)
        if not scaled:
            x = U((2 * left + p.left[e0 + e]) * lanes)
            y = U((2 * right + p.right[e0 + e]) * lanes)
            for i in range(U(lanes)):
                z[at + i] *= z[x + i] * z[y + i]
        f, g = U((left + p.left[e0 + e]) * lanes), U((right + p.right[e0 + e]) * lanes)
        for i in range(U(lanes)):
            flow[f + i] += z[at + i]
        for i in range(U(lanes)):
            flow[g + i] += z[at + i]


@kernel
def _spread_leaf(
    p: Layers,
    weights: Weights,
    leaves: Leaves,
    codes: Array,
    row: int,
    live: int,
    v: int,
    z: Floats,
    flow: Floats,
    posterior: Floats,
    lanes: int,
) -> None:
    """Add up the flow, divided by q, that reaches each value of a leaf's variable."""
    first, x = p.node_start[v], p.variable[v]
    nodes, card = p.node_start[v + 1] - first, leaves.cardinalities[x]
    posterior[: card * lanes] = 0.0
    for n in range(nodes):
        f = U((first + n) * lanes)
        for a in range(p.edge_start[first + n], p.edge_start[first + n + 1]):
            to, w = U(p.target[a] * lanes), weights.mantissa[a]
            if leaves.scaled[v] == 0:
                for i in range(U(lanes)):
                    posterior[to + i] += w * flow[f + i]
                continue
            for i in range(live):
                term, k = _leaf_term(p, weights, leaves, v, a, codes[x, row + i])
                part = term * _power(k - z[(2 * first + nodes + n) * lanes + i])
                posterior[p.target[a] * lanes + i] += part * flow[(first + n) * lanes + i]
    if leaves.scaled[v] == 0:
        for i in range(live):
            at = leaves.weight_at[x] + codes[x, row + i] * card
            for k in range(card):
                posterior[k * lanes + i] *= leaves.weight[at + k]


# -- down: one edge per node ----------------------------------------------------------


@kernel
def complete(
    p: Layers,
    weights: Weights,
    leaves: Leaves,
    codes: Array,
    lanes: int,
    out: Array,
    start: int,
    impossible: Bools,
    first: int,
    last: int,
) -> None:
    """Write the most probable completion of the rows ``first`` to ``last`` of the codes.

    ``leaves`` must hold greatest probabilities; row 0 of the codes is ``out[start]``.
    """
    z, elements = _room(p, lanes)
    root = len(p.variable) - 1
    scaled = np.zeros(root + 1, np.uint8)
    chosen = np.zeros(root + 1, np.int64)
    for row in range(first, last, lanes):
        live = min(lanes, last - row)
        _up(p, weights, leaves, codes, row, live, z, elements, scaled, lanes, True)
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
                    share = _share(p, weights, leaves, v, n, a, state, z, i, lanes)
                    if share > greatest:
                        best, greatest = a, share
                if x >= 0:
                    out[start + row + i, x] = p.target[best]
                else:
                    e = p.element_start[v] + p.target[best]
                    chosen[p.tree_left[v]] = p.left[e]
                    chosen[p.tree_right[v]] = p.right[e]


@kernel
def draw(
    p: Layers,
    weights: Weights,
    leaves: Leaves,
    codes: Array,
    lanes: int,
    uniforms: Floats,
    per_row: int,
    skipped: int,
    out: Array,
    impossible: Bools,
    first: int,
    last: int,
) -> None:
    """Write the draws ``first`` to ``last``; ``per_row`` of them belong to each row of the codes.

    The first row lacks its first ``skipped`` draws. Draw d takes its random numbers,
    one per vtree node, from ``uniforms[d]``, so that it does not matter who draws it.
    """
    z, elements = _room(p, lanes)
    root = len(p.variable) - 1
    scaled = np.zeros(root + 1, np.uint8)
    chosen = np.zeros(root + 1, np.int64)
    # Running sums of the shares of a node's edges, made when a row first comes by.
    sums = np.zeros(p.edge_start[p.node_start[root + 1]], np.float64)
    seen = np.full(p.node_start[root + 1], -1, np.int64)
    first_row, last_row = (first + skipped) // per_row, -(-(last + skipped) // per_row)
    for row in range(first_row, last_row, lanes):
        live = min(lanes, last_row - row)
        _up(p, weights, leaves, codes, row, live, z, elements, scaled, lanes, False)
        for i in range(live):
            if not z[2 * p.node_start[root] * lanes + i] > 0.0:
                impossible[row + i] = True
                continue
            d0 = max(first, (row + i) * per_row - skipped)
            d1 = min(last, (row + i + 1) * per_row - skipped)
            for d in range(d0, d1):
                chosen[root] = 0
                for v in range(root, -1, -1):
                    x, n = p.variable[v], chosen[v]
                    node = p.node_start[v] + n
                    a, b = p.edge_start[node], p.edge_start[node + 1]
                    if seen[node] != row + i:
                        seen[node] = row + i
                        state = codes[x, row + i] if x >= 0 else 0
                        total = 0.0
                        for edge in range(a, b):
                            total += _share(p, weights, leaves, v, n, edge, state, z, i, lanes)
                            sums[edge] = total
                    # The first running sum above u; an edge of share zero never is.
                    u = uniforms[d, v] * sums[b - 1]
                    while b - a > 1:
                        middle = (a + b - 1) // 2
                        if sums[middle] > u:
                            b = middle + 1
                        else:
                            a = middle + 1
                    if x >= 0:
                        out[d, x] = p.target[a]
                    else:
                        e = p.element_start[v] + p.target[a]
                        chosen[p.tree_left[v]] = p.left[e]
                        chosen[p.tree_right[v]] = p.right[e]


# -- entropy --------------------------------------------------------------------------


@kernel
def entropies(
    p: Layers,
    weights: Weights,
    leaves: Leaves,
    codes: Array,
    lanes: int,
    out: Floats,
    start: int,
    impossible: Bools,
    first: int,
    last: int,
) -> None:
    """Write the posterior entropy of a deterministic p for rows ``first`` to ``last``.

    H[n] = Σ share · (H[left] + H[right] − log share) over the edges of n: their rows
    are disjoint, so that choosing an edge is part of choosing a row. All terms are
    positive, and nothing cancels.
    """
    z, elements = _room(p, lanes)
    root = len(p.variable) - 1
    scaled = np.zeros(root + 1, np.uint8)
    h = np.zeros(p.node_start[root + 1] * lanes, np.float64)
    for row in range(first, last, lanes):
        live = min(lanes, last - row)
        _up(p, weights, leaves, codes, row, live, z, elements, scaled, lanes, False)
        for v in range(root + 1):
            x, own = p.variable[v], p.node_start[v]
            for n in range(p.node_start[v + 1] - own):
                for i in range(live):
                    state = codes[x, row + i] if x >= 0 else 0
                    total = 0.0
                    for a in range(p.edge_start[own + n], p.edge_start[own + n + 1]):
                        share = _share(p, weights, leaves, v, n, a, state, z, i, lanes)
                        if not share > 0.0:
                            continue
                        below = 0.0
                        if x < 0:
                            e = p.element_start[v] + p.target[a]
                            left, right = p.tree_left[v], p.tree_right[v]
                            below += h[(p.node_start[left] + p.left[e]) * lanes + i]
                            below += h[(p.node_start[right] + p.right[e]) * lanes + i]
                        total += share * (below - np.log(min(share, 1.0)))
                    h[(own + n) * lanes + i] = total
        for i in range(live):
            out[start + row + i] = h[p.node_start[root] * lanes + i]
            impossible[start + row + i] = not z[2 * p.node_start[root] * lanes + i] > 0.0
