"""Compute leaf layers under evidence: one table per leaf, for the states that rows use."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Floats
from expecta.common.kernels import kernel
from expecta.engine.layers import WeightedLayers
from expecta.engine.probabilities import leaf_probability
from expecta.engine.state_tables import StateTables

Array = npt.NDArray[Any]


class Leaves(NamedTuple):
    """The evidence states that some rows use, and what leaf layers make of them."""

    states: Array  # see ``probabilities``; variable by variable, in the order of the vtree
    state_at: Array  # (variables,) where the states of a variable begin
    n_states: Array  # (variables,)
    q: Array  # Σ θ e, or the greatest θ e  # (nodes, states) each
    q_exponent: Array
    table_at: Array  # (vtree nodes,) where the values of a leaf layer begin
    scaled: Array  # (vtree nodes,) whether any of these exponents is not zero


class PassRows(NamedTuple):
    """p and rows of evidence, ready for a pass."""

    p: WeightedLayers
    leaves: Leaves
    codes: Array  # number of each row's state in ``leaves``  # (variables, rows)
    lanes: int  # rows that go side by side


def read_rows(
    p: WeightedLayers, tables: StateTables, rows: slice, lanes: int, largest: bool
) -> PassRows:
    """Compute what the leaf layers make of the evidence of some rows.

    Cost: O(cells + leaf edges · states used).
    """
    codes = np.stack([code[rows] for code in tables.evidence.codes]).astype(np.int32)
    columns = (tables.weight, tables.exponent, tables.start, tables.n_states)
    return PassRows(p, _read_leaves(p, *columns, codes, largest), codes, lanes)


@kernel
def _read_leaves(
    p: WeightedLayers,
    weight: Floats,
    exponent: Floats,
    start: Array,
    all_states: Array,
    codes: Array,
    largest: bool,
) -> Leaves:
    """Renumber states in the order in which rows use them, in ``codes`` too."""
    variables, n_rows = codes.shape
    n_states = np.zeros(variables, np.int64)
    state_at = np.zeros(variables, np.int64)
    table_at = np.zeros(len(p.variable), np.int64)
    kept = np.zeros(len(weight), np.int64)  # the cells of states that are used
    end, table_end = 0, 0
    number = np.zeros(all_states.max(), np.int32)
    for v in range(len(p.variable)):
        x, card = p.variable[v], p.cardinality[v]
        table_at[v] = table_end
        if x < 0:
            continue
        state_at[x] = end
        number[: all_states[x]] = -1
        for row in range(n_rows):
            state = codes[x, row]
            if number[state] < 0:
                number[state] = n_states[x]
                n_states[x] += 1
                for k in range(card):
                    kept[end + k] = start[x] + state * card + k
                end += card
            codes[x, row] = number[state]
        table_end += (p.node_start[v + 1] - p.node_start[v]) * n_states[x]
    states = np.zeros(2 * end)
    for k in range(end):
        states[k] = weight[kept[k]]
        states[end + k] = exponent[kept[k]]
    q = np.zeros(table_end)
    q_exponent = np.zeros(table_end)
    scaled = np.zeros(len(p.variable), np.uint8)
    terms = np.zeros(p.cardinality.max())
    for v in range(len(p.variable)):
        x = p.variable[v]
        if x < 0:
            continue
        card = p.cardinality[v]
        for s in range(n_states[x]):
            at = state_at[x] + s * card
            first, end = card, 0  # the values that the state allows
            for value in range(card):
                if states[at + value] > 0.0:
                    first, end = min(first, value), value + 1
            for n in range(p.node_start[v + 1] - p.node_start[v]):
                a, b = p.edge_start[p.node_start[v] + n], p.edge_start[p.node_start[v] + n + 1]
                # the only edge that counts, where it is easily found: a node has one of a value
                if end - first == 1 and b - a == card and p.target[a + first] == first:
                    a, b = a + first, a + end
                to = table_at[v] + n * n_states[x] + s
                q[to], q_exponent[to], has_exponents = leaf_probability(
                    p, a, b, states, at, largest, terms, 0, 1
                )
                scaled[v] |= has_exponents
    return Leaves(states, state_at, n_states, q, q_exponent, table_at, scaled)
