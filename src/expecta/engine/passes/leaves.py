"""Leaf layers under evidence: one table per leaf, for the evidence states that rows use."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Floats
from expecta.common.kernels import kernel
from expecta.engine.layers import Layers
from expecta.engine.probabilities import TINY, UNIT, Weights, power

__all__ = ["Leaves", "leaf_term", "read_leaves"]

Array = npt.NDArray[Any]


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
                term, k = leaf_term(p, weights, leaves, v, a, s)
                least = min(least, k)
                total = max(total, term) if largest else total + term
            if least == 0.0 and (total >= TINY or total == 0.0):
                leaves.q[at] = total
                continue
            leaves.scaled[v] = 1
            top = -np.inf
            for a in edges:
                term, k = leaf_term(p, weights, leaves, v, a, s)
                if term > 0.0:
                    while term < TINY:
                        term *= UNIT
                        k -= 1.0
                    top = max(top, k)
            total = 0.0
            for a in edges:
                term, k = leaf_term(p, weights, leaves, v, a, s)
                if term > 0.0:
                    term *= power(k - top)
                    total = max(total, term) if largest else total + term
            if top > -np.inf:
                leaves.q[at] = total
                leaves.q_exponent[at] = top


@kernel
def leaf_term(
    p: Layers, weights: Weights, leaves: Leaves, v: int, a: int, state: int
) -> tuple[float, float]:
    """Return θ e of a leaf's edge as a number and an exponent."""
    x = p.variable[v]
    at = leaves.weight_at[x] + state * leaves.cardinalities[x] + p.target[a]
    return (
        weights.mantissa[a] * leaves.weight[at],
        weights.exponent[a] + leaves.weight_exponent[at],
    )
