"""Write the pairs that matter as flat lists: joins, halves and pairs, layer by layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.common.kernels import kernel
from expecta.engine.algebras.tile import DOWN
from expecta.engine.layers import Layers

__all__ = ["write_pairs"]

Array = npt.NDArray[Any]


@kernel
def write_pairs(
    p: Layers,
    g: Layers,
    pair_at: Array,
    half_at: Array,
    pair_state: Array,
    half_state: Array,
) -> tuple[Array, ...]:
    """Give numbers to what is asked for, then list it: one pass to count, one to fill."""
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
    return (
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


@kernel
def _position(k: int, n_p: int, n_g: int, by_p: bool) -> tuple[int, int]:
    """Return what of p and of g comes k-th.

    At a leaf pairs of one node of p share the weights of its values; above, pairs of one node
    of g sum the same halves. What is shared stays in the first cache if they come in a row.
    """
    if by_p:
        return k // n_g, k % n_g
    return k % n_p, k // n_p


@kernel
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


@kernel
def _direct(pair_start: Array, half_start: Array, mix_start: Array, mix_half: Array) -> Array:
    """Find the halves that need no memory of their own."""
    uses = np.zeros(half_start[-1], np.int32)
    for v in range(len(pair_start) - 1):
        for k in range(pair_start[v], pair_start[v + 1]):
            for j in range(mix_start[k], mix_start[k + 1]):
                # a pair with several edges counts twice, so that its halves are never direct
                several = 1 if mix_start[k + 1] - mix_start[k] == 1 else 2
                uses[half_start[v] + mix_half[j]] += several
    direct: Array = (uses == 1).astype(np.uint8)
    return direct
