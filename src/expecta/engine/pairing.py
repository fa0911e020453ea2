"""Find which pairs of nodes matter: the compile step of a circuit pair.

The recursion of the paper visits pairs (n, m) of a node of p and a node of g of
one layer. Most pairs are never needed: their supports do not meet, or no pair
above asks for them. Here both are found once, in time s_v t_v per vtree node v
(edges of p times edges of g, Theorem 1), and what is left is written as flat
lists of

    joins   (left pair, right pair, edge of g)   AND gates, grouped into
    halves  (element of p, node of g)            sums over g's edges, grouped into
    pairs   (node of p, node of g)               sums over p's edges.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.circuits.structure import Structure
from expecta.common.kernels import kernel
from expecta.engine.layers import Layers, layers
from expecta.engine.pair_lists import write_pairs

__all__ = ["Pairing", "no_pairs", "pairing"]

Array = npt.NDArray[Any]


class Pairing(NamedTuple):
    """The pairs that matter, layer by layer."""

    pair_start: Array  # (vtree nodes + 1,)
    half_start: Array  # (vtree nodes + 1,)
    pair_p: Array  # (pairs,) node of p within its layer
    pair_g: Array  # (pairs,) node of g within its layer
    mix_start: Array  # (pairs + 1,)
    mix_half: Array  # (mixes,) half within its layer
    mix_edge: Array  # (mixes,) edge of p
    mix_run: Array  # (pairs,) how many pairs from here on are a matrix product; 0 within one
    direct: Array  # (halves,) whether the half is all of one pair, and of that pair only
    join_start: Array  # (halves + 1,)
    join_left: Array  # (joins,) pair within the left layer
    join_right: Array  # (joins,) pair within the right layer
    join_edge: Array  # (joins,) edge of g


def pairing(p: Structure, g: Structure) -> Pairing:
    """Find the pairs of nodes that the expectation of g under p needs.

    Cost: edges of p times edges of g per vtree node, in time; nodes times nodes in bytes.
    """
    return Pairing(*_pairing(layers(p), layers(g)))


def no_pairs(p: Structure) -> Pairing:
    """Return the empty pairing: p alone."""
    start, none = np.zeros(1, np.int64), np.zeros(0, np.int32)
    starts, direct = np.zeros(len(p.vtree) + 1, np.int64), np.zeros(0, np.uint8)
    return Pairing(
        starts, starts, none, none, start, none, none, none, direct, start, none, none, none
    )


@kernel
def _pairing(p: Layers, g: Layers) -> tuple[Array, ...]:
    n_layers = len(p.variable)
    pair_at = np.zeros(n_layers + 1, np.int64)  # where the (n, m) table of a layer begins
    half_at = np.zeros(n_layers + 1, np.int64)
    for v in range(n_layers):
        n_g = g.node_start[v + 1] - g.node_start[v]
        pair_at[v + 1] = pair_at[v] + (p.node_start[v + 1] - p.node_start[v]) * n_g
        half_at[v + 1] = half_at[v] + (p.element_start[v + 1] - p.element_start[v]) * n_g
    # 0: supports never meet, 1: they meet, 2: and a pair above asks for it
    pair_state = np.zeros(pair_at[n_layers], np.uint8)
    half_state = np.zeros(half_at[n_layers], np.uint8)
    for v in range(n_layers):
        _meet(p, g, v, pair_at, half_at, pair_state, half_state)
    if pair_state[-1] == 1:
        pair_state[-1] = 2
    for v in range(n_layers - 1, -1, -1):
        if p.variable[v] < 0:
            _ask(p, g, v, pair_at, half_at, pair_state, half_state)
    return write_pairs(p, g, pair_at, half_at, pair_state, half_state)


@kernel
def _meet(
    p: Layers,
    g: Layers,
    v: int,
    pair_at: Array,
    half_at: Array,
    pair_state: Array,
    half_state: Array,
) -> None:
    """Decide which pairs of layer v have a common row, given the layers below."""
    p0, p1 = p.node_start[v], p.node_start[v + 1]
    g0, g1 = g.node_start[v], g.node_start[v + 1]
    n_g = g1 - g0
    if p.variable[v] >= 0:
        most = 0
        for a in range(p.edge_start[p0], p.edge_start[p1]):
            most = max(most, p.target[a])
        seen_by = np.full(most + 1, -1, np.int64)  # the last node of p that allows a value
        for n in range(p0, p1):
            for a in range(p.edge_start[n], p.edge_start[n + 1]):
                seen_by[p.target[a]] = n
            for m in range(g0, g1):
                for b in range(g.edge_start[m], g.edge_start[m + 1]):
                    if g.target[b] <= most and seen_by[g.target[b]] == n:
                        pair_state[pair_at[v] + (n - p0) * n_g + m - g0] = 1
                        break
        return
    left, right = p.tree_left[v], p.tree_right[v]
    left_at, right_at = pair_at[left], pair_at[right]
    left_g = g.node_start[left + 1] - g.node_start[left]
    right_g = g.node_start[right + 1] - g.node_start[right]
    first_p, first_g = p.element_start[v], g.element_start[v]
    for i in range(p.element_start[v + 1] - first_p):
        left_row = left_at + p.left[first_p + i] * left_g
        right_row = right_at + p.right[first_p + i] * right_g
        for m in range(g0, g1):
            for b in range(g.edge_start[m], g.edge_start[m + 1]):
                j = first_g + g.target[b]
                if pair_state[left_row + g.left[j]] and pair_state[right_row + g.right[j]]:
                    half_state[half_at[v] + i * n_g + m - g0] = 1
                    break
    for n in range(p0, p1):
        row = pair_at[v] + (n - p0) * n_g
        for a in range(p.edge_start[n], p.edge_start[n + 1]):
            half_row = half_at[v] + p.target[a] * n_g
            for m in range(n_g):
                pair_state[row + m] |= half_state[half_row + m]


@kernel
def _ask(
    p: Layers,
    g: Layers,
    v: int,
    pair_at: Array,
    half_at: Array,
    pair_state: Array,
    half_state: Array,
) -> None:
    """Pass the demand for pairs of layer v on to its halves and to the layers below."""
    p0 = p.node_start[v]
    g0 = g.node_start[v]
    n_g = g.node_start[v + 1] - g0
    for n in range(p0, p.node_start[v + 1]):
        row = pair_at[v] + (n - p0) * n_g
        for a in range(p.edge_start[n], p.edge_start[n + 1]):
            half_row = half_at[v] + p.target[a] * n_g
            for m in range(n_g):
                if pair_state[row + m] == 2 and half_state[half_row + m] == 1:
                    half_state[half_row + m] = 2
    left, right = p.tree_left[v], p.tree_right[v]
    left_g = g.node_start[left + 1] - g.node_start[left]
    right_g = g.node_start[right + 1] - g.node_start[right]
    first_p, first_g = p.element_start[v], g.element_start[v]
    for i in range(p.element_start[v + 1] - first_p):
        left_row = pair_at[left] + p.left[first_p + i] * left_g
        right_row = pair_at[right] + p.right[first_p + i] * right_g
        for m in range(n_g):
            if half_state[half_at[v] + i * n_g + m] == 2:
                for b in range(g.edge_start[g0 + m], g.edge_start[g0 + m + 1]):
                    j = first_g + g.target[b]
                    x, y = left_row + g.left[j], right_row + g.right[j]
                    if pair_state[x] and pair_state[y]:
                        pair_state[x] = 2
                        pair_state[y] = 2
