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
from expecta.common.kernels import helper, kernel
from expecta.engine.algebras.tile import DOWN
from expecta.engine.layers import Layers, layers

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


class Meetings(NamedTuple):
    """Tables (nodes or elements of p, nodes of g) of all layers, one after the other.

    0: supports never meet, 1: they meet, 2: and a pair above asks for it.
    """

    pair_at: Array  # (vtree nodes + 1,) where the table of a layer begins
    half_at: Array  # (vtree nodes + 1,)
    pair_state: Array
    half_state: Array


def pairing(p: Structure, g: Structure) -> Pairing:
    """Find the pairs of nodes that the expectation of g under p needs.

    Cost: edges of p times edges of g per vtree node, in time; nodes times nodes in bytes.
    """
    return _pairing(layers(p), layers(g))


def no_pairs(p: Structure) -> Pairing:
    """Return the empty pairing: p alone."""
    start, none = np.zeros(1, np.int64), np.zeros(0, np.int32)
    starts, direct = np.zeros(len(p.vtree) + 1, np.int64), np.zeros(0, np.uint8)
    return Pairing(
        starts, starts, none, none, start, none, none, none, direct, start, none, none, none
    )


@kernel
def _pairing(p: Layers, g: Layers) -> Pairing:
    n_layers = len(p.variable)
    pair_at = np.zeros(n_layers + 1, np.int64)
    half_at = np.zeros(n_layers + 1, np.int64)
    for v in range(n_layers):
        n_g = g.node_start[v + 1] - g.node_start[v]
        pair_at[v + 1] = pair_at[v] + (p.node_start[v + 1] - p.node_start[v]) * n_g
        half_at[v + 1] = half_at[v] + (p.element_start[v + 1] - p.element_start[v]) * n_g
    pair_state = np.zeros(pair_at[n_layers], np.uint8)
    half_state = np.zeros(half_at[n_layers], np.uint8)
    meetings = Meetings(pair_at, half_at, pair_state, half_state)
    for v in range(n_layers):
        _meet(p, g, v, meetings)
    if pair_state[-1] == 1:
        pair_state[-1] = 2
    for v in range(n_layers - 1, -1, -1):
        if p.variable[v] < 0:
            _ask(p, g, v, meetings)
    return _write_pairs(p, g, meetings)


@helper
def _meet(p: Layers, g: Layers, v: int, meetings: Meetings) -> None:
    """Decide which pairs of layer v have a common row, given the layers below."""
    pair_at, half_at = meetings.pair_at, meetings.half_at
    pair_state, half_state = meetings.pair_state, meetings.half_state
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


@helper
def _ask(p: Layers, g: Layers, v: int, meetings: Meetings) -> None:
    """Pass the demand for pairs of layer v on to its halves and to the layers below."""
    pair_at, half_at = meetings.pair_at, meetings.half_at
    pair_state, half_state = meetings.pair_state, meetings.half_state
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


@helper
def _write_pairs(p: Layers, g: Layers, meetings: Meetings) -> Pairing:
    """Give numbers to what is asked for, then list it: one pass to count, one to fill."""
    pair_at, half_at = meetings.pair_at, meetings.half_at
    pair_state, half_state = meetings.pair_state, meetings.half_state
    n_layers = len(p.variable)
    pair_number = np.full(len(pair_state), -1, np.int32)
    half_number = np.full(len(half_state), -1, np.int32)
    pair_start = np.zeros(n_layers + 1, np.int64)
    half_start = np.zeros(n_layers + 1, np.int64)
    for v in range(n_layers):
        n_g = g.node_start[v + 1] - g.node_start[v]
        n_p = p.node_start[v + 1] - p.node_start[v]
        count = 0
        for k in range(n_p * n_g):
            n, m = _position(k, n_p, n_g, p.variable[v] >= 0)
            if pair_state[pair_at[v] + n * n_g + m] == 2:
                pair_number[pair_at[v] + n * n_g + m] = count
                count += 1
        pair_start[v + 1] = pair_start[v] + count
        n_p = p.element_start[v + 1] - p.element_start[v]
        count = 0
        for k in range(n_p * n_g):
            i, m = _position(k, n_p, n_g, False)
            if half_state[half_at[v] + i * n_g + m] == 2:
                half_number[half_at[v] + i * n_g + m] = count
                count += 1
        half_start[v + 1] = half_start[v] + count
    n_pairs, n_halves = pair_start[n_layers], half_start[n_layers]
    pair_p = np.zeros(n_pairs, np.int32)
    pair_g = np.zeros(n_pairs, np.int32)
    mix_start = np.zeros(n_pairs + 1, np.int64)
    join_start = np.zeros(n_halves + 1, np.int64)
    mix_half = np.zeros(0, np.int32)
    mix_edge = np.zeros(0, np.int32)
    join_left = np.zeros(0, np.int32)
    join_right = np.zeros(0, np.int32)
    join_edge = np.zeros(0, np.int32)
    for filling in range(2):
        n_mixes, n_joins, pair, half = 0, 0, 0, 0
        for v in range(n_layers):
            p0, g0 = p.node_start[v], g.node_start[v]
            n_g = g.node_start[v + 1] - g0
            n_p = p.node_start[v + 1] - p0
            for k in range(n_p * n_g):
                n, m = _position(k, n_p, n_g, p.variable[v] >= 0)
                if pair_number[pair_at[v] + n * n_g + m] < 0:
                    continue
                pair_p[pair] = n
                pair_g[pair] = m
                if p.variable[v] < 0:
                    for a in range(p.edge_start[p0 + n], p.edge_start[p0 + n + 1]):
                        h = half_number[half_at[v] + p.target[a] * n_g + m]
                        if h >= 0:
                            if filling:
                                mix_half[n_mixes] = h
                                mix_edge[n_mixes] = a
                            n_mixes += 1
                pair += 1
                mix_start[pair] = n_mixes
            if p.variable[v] >= 0:
                continue
            left, right = p.tree_left[v], p.tree_right[v]
            left_g = g.node_start[left + 1] - g.node_start[left]
            right_g = g.node_start[right + 1] - g.node_start[right]
            first_p, first_g = p.element_start[v], g.element_start[v]
            n_p = p.element_start[v + 1] - first_p
            for k in range(n_p * n_g):
                i, m = _position(k, n_p, n_g, False)
                if half_number[half_at[v] + i * n_g + m] < 0:
                    continue
                left_row = pair_at[left] + p.left[first_p + i] * left_g
                right_row = pair_at[right] + p.right[first_p + i] * right_g
                for b in range(g.edge_start[g0 + m], g.edge_start[g0 + m + 1]):
                    j = first_g + g.target[b]
                    x = pair_number[left_row + g.left[j]]
                    y = pair_number[right_row + g.right[j]]
                    if x >= 0 and y >= 0:
                        if filling:
                            join_left[n_joins] = x
                            join_right[n_joins] = y
                            join_edge[n_joins] = b
                        n_joins += 1
                half += 1
                join_start[half] = n_joins
        if not filling:
            mix_half = np.zeros(n_mixes, np.int32)
            mix_edge = np.zeros(n_mixes, np.int32)
            join_left = np.zeros(n_joins, np.int32)
            join_right = np.zeros(n_joins, np.int32)
            join_edge = np.zeros(n_joins, np.int32)
    return Pairing(
        pair_start,
        half_start,
        pair_p,
        pair_g,
        mix_start,
        mix_half,
        mix_edge,
        _runs(pair_start, mix_start, mix_half, mix_edge),
        _direct(pair_start, half_start, mix_start, mix_half),
        join_start,
        join_left,
        join_right,
        join_edge,
    )


@helper
def _position(k: int, n_p: int, n_g: int, by_p: bool) -> tuple[int, int]:
    """Return what of p and of g comes k-th.

    At a leaf pairs of one node of p share the weights of its values; above, pairs of one node
    of g sum the same halves. What is shared stays in the first cache if they come in a row.
    """
    if by_p:
        return k // n_g, k % n_g
    return k % n_p, k // n_p


@helper
def _runs(pair_start: Array, mix_start: Array, mix_half: Array, mix_edge: Array) -> Array:
    """Find pairs that sum the same halves, their edges of p in a row: a dense layer of p."""
    run = np.zeros(len(mix_start) - 1, np.int32)
    for v in range(len(pair_start) - 1):
        k = pair_start[v]
        while k < pair_start[v + 1]:
            first, terms = mix_start[k], mix_start[k + 1] - mix_start[k]
            alike = terms > 1
            count = 0
            while alike and k + count < pair_start[v + 1]:
                a, b = mix_start[k + count], mix_start[k + count + 1]
                alike = b - a == terms
                step = mix_edge[first + terms] - mix_edge[first] if count else 0
                for j in range(terms if alike else 0):
                    alike &= mix_half[a + j] == mix_half[first + j]
                    alike &= mix_edge[a + j] == mix_edge[first] + count * step + j
                count += alike
            run[k] = max(1, count - count % DOWN)
            k += run[k]
    return run


@helper
def _direct(pair_start: Array, half_start: Array, mix_start: Array, mix_half: Array) -> Array:
    """Find the halves that need no memory of their own."""
    uses = np.zeros(half_start[-1], np.int32)
    for v in range(len(pair_start) - 1):
        for k in range(pair_start[v], pair_start[v + 1]):
            for j in range(mix_start[k], mix_start[k + 1]):
                # a pair with several edges counts twice, so that its halves are never direct
                several = 1 if mix_start[k + 1] - mix_start[k] == 1 else 2
                uses[half_start[v] + mix_half[j]] += several
    return (uses == 1).astype(np.uint8)
