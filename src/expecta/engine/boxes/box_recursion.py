"""Compute the probability of many boxes at once, row by row.

This is an evidence pass of its own, beside that of ``engine/probabilities``: for each row
most boxes are dead, as a known value lies outside of them, and many of the others are alike.
What is computed differs from row to row, so that rows cannot go side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.common.kernels import U, helper, kernel
from expecta.engine.boxes.box_layout import Mixing, Parts

Array = npt.NDArray[Any]

SMALL_PROBABILITY = 1e-100  # a layer whose probabilities are below is scaled
BLOCK_PAIRS = 64  # pairs of halves that are multiplied together
MAX_TABLE_PAIRS = 1 << 14  # pairs of halves up to which they are told apart by a table


@kernel
def unconditional(p: Mixing, parts: Parts, at: Array) -> Array:
    """Compute every part's probability given each node of p, where nothing is known."""
    out = np.zeros(at[-1])
    both = np.empty(BLOCK_PAIRS * max(1, np.max(np.diff(p.element_at))))
    for v in p.order:
        if p.variable[v] >= 0:
            _leaf(p, parts, v, out, at[v])
            continue
        left_child, right_child = p.tree_left[v], p.tree_right[v]
        layer = slice(parts.start[v], parts.start[v + 1])
        pair_left = at[left_child] + parts.left[layer].astype(np.int64) * p.n_nodes[left_child]
        pair_right = at[right_child] + parts.right[layer].astype(np.int64) * p.n_nodes[right_child]
        _join(p, v, out, out, pair_left, pair_right, both, out, at[v])
    return out


@helper
def _leaf(p: Mixing, parts: Parts, v: int, out: Array, at: int) -> None:
    """Add up the weights of the values that each part allows, from sums over pairs, of pairs..."""
    width = p.n_nodes[v]
    cards = (p.leaf_at[v + 1] - p.leaf_at[v]) // width
    tree = np.empty((2 * cards, width))
    tree[cards:] = p.leaf[p.leaf_at[v] : p.leaf_at[v + 1]].reshape(cards, width)
    for k in range(cards - 1, 0, -1):
        tree[k] = tree[2 * k] + tree[2 * k + 1]
    for u in range(parts.start[v + 1] - parts.start[v]):
        total = out[at + u * width : at + (u + 1) * width]
        for run in range(parts.run_at[parts.start[v] + u], parts.run_at[parts.start[v] + u + 1]):
            low, high = cards + parts.low[run], cards + parts.high[run]
            while low < high:
                if low & 1:
                    total += tree[low]
                    low += 1
                if high & 1:
                    high -= 1
                    total += tree[high]
                low >>= 1
                high >>= 1


@helper
def _mix(
    p: Mixing, v: int, left: Array, a: int, right: Array, b: int, out: Array, here: int
) -> None:
    """Join two halves, and sum over the elements of p."""
    for n in range(p.n_nodes[v]):
        out[here + n] = 0.0
    for q in range(p.element_at[v], p.element_at[v + 1]):
        both = left[a + p.left[q]] * right[b + p.right[q]]
        if both != 0.0:
            for run in range(p.run_at[q], p.run_at[q + 1]):
                first = p.weight_at[run]
                to = here + p.run_node[run]
                for n in range(p.weight_at[run + 1] - first):
                    out[U(to + n)] += p.weight[U(first + n)] * both


@helper
def _join(
    p: Mixing,
    v: int,
    left: Array,
    right: Array,
    pair_left: Array,
    pair_right: Array,
    both: Array,
    out: Array,
    at: int,
) -> None:
    """Compute the vectors of a layer from pairs of halves: a product of matrices, if dense."""
    width = p.n_nodes[v]
    if not p.dense[v]:
        for k in range(len(pair_left)):
            _mix(p, v, left, pair_left[k], right, pair_right[k], out, at + k * width)
        return
    first = p.element_at[v]
    height = p.element_at[v + 1] - first
    begin = p.weight_at[p.run_at[first]]
    weight = p.weight[begin : begin + height * width].reshape(height, width)
    for start in range(0, len(pair_left), BLOCK_PAIRS):
        n = min(BLOCK_PAIRS, len(pair_left) - start)
        for k in range(n):
            a, b = pair_left[start + k], pair_right[start + k]
            for q in range(height):
                x, y = left[a + p.left[first + q]], right[b + p.right[first + q]]
                both[U(k * height + q)] = x * y
        here = at + start * width
        np.dot(
            both[: n * height].reshape(n, height),
            weight,
            out[here : here + n * width].reshape(n, width),
        )


@kernel
def expect(
    p: Mixing,
    parts: Parts,
    value: Array,
    prior: Array,
    at: Array,
    codes: Array,
    begin: int,
    end: int,
    order: int,
    out: Array,
) -> None:
    """Write the expectation of the sum of boxes for some rows; NaN where they are impossible.

    With an order above 1, for boxes of which no two overlap, each output has its mean and the
    moments about it up to that order, one after the other.

    For a row most parts are dead, as a known value lies outside of them, and many are
    alike, as they differ in what they ask of known values only. ``rep`` tells for each
    part which of the vectors of its layer is its own, -1 for none. Of a layer with more
    parts than boxes are alive only those of living boxes are looked at.
    """
    n_layers = len(p.variable)
    work = np.empty(at[-1])
    rep = np.empty(parts.start[-1], np.int32)
    seen = np.full(parts.start[-1], -1, np.int32)  # the row that a part was last looked at for
    count = np.empty(n_layers, np.int64)
    known = np.empty(n_layers, np.uint8)  # whether a value below is known
    new = np.empty(n_layers, np.uint8)  # whether values below differ from those of the last row
    whole = np.zeros(n_layers, np.uint8)  # whether all parts were looked at
    alive = np.empty(len(value), np.int64)
    share = np.empty(len(value))
    most = np.max(np.diff(parts.start))
    pair_left = np.empty(most, np.int64)
    pair_right = np.empty(most, np.int64)
    both = np.empty(BLOCK_PAIRS * max(1, np.max(np.diff(p.element_at))))
    table = np.zeros(MAX_TABLE_PAIRS, np.int64)
    size = 1
    while size < 2 * most:
        size *= 2
    hash_key = np.zeros(size, np.int64)
    hash_id = np.zeros(size, np.int64)
    stamp = np.int64(0)
    root = p.order[n_layers - 1]
    for r in range(begin, end):
        for v in range(n_layers):
            if p.variable[v] >= 0:
                x = codes[r, p.variable[v]]
                new[v] = r == begin or x != codes[r - 1, p.variable[v]]
                if new[v]:
                    known[v] = x >= 0
                    count[v] = _place_value(p, parts, v, x, rep, work, at[v])
        n_alive = _alive(parts, rep, alive)
        for v in p.order[: n_layers - 1]:
            if p.variable[v] >= 0:
                continue
            left_child, right_child = p.tree_left[v], p.tree_right[v]
            new[v] = new[left_child] | new[right_child]
            if whole[v] and not new[v]:  # as it was for the row before
                continue
            n_parts = parts.start[v + 1] - parts.start[v]
            known[v] = known[left_child] | known[right_child]
            reps = rep[parts.start[v] : parts.start[v + 1]]
            whole[v] = not known[v] or n_parts <= n_alive or parts.of_box_at[v] < 0
            if not known[v]:
                count[v] = n_parts
                for u in range(n_parts):
                    reps[u] = u
                continue
            left_reps = rep[parts.start[left_child] : parts.start[left_child + 1]]
            right_reps = rep[parts.start[right_child] : parts.start[right_child + 1]]
            lefts = parts.left[parts.start[v] : parts.start[v + 1]]
            rights = parts.right[parts.start[v] : parts.start[v + 1]]
            looked = seen[parts.start[v] : parts.start[v + 1]]
            n_right = count[right_child]
            dense = count[left_child] * n_right <= MAX_TABLE_PAIRS
            looks = n_parts if whole[v] else n_alive
            mask = np.int64(1)
            while mask < 2 * looks:
                mask *= 2
            mask -= 1
            stamp += 1
            n_pairs = 0
            for k in range(looks):
                u = k
                if not whole[v]:
                    u = parts.of_box[parts.of_box_at[v] + alive[k]]
                    if looked[u] == r:
                        continue
                    looked[u] = r
                i, j = left_reps[lefts[u]], right_reps[rights[u]]
                if i < 0 or j < 0:
                    reps[u] = -1
                    continue
                key = i * n_right + j
                number = n_pairs
                if dense:
                    known_as = table[key]
                    if known_as >> 32 == stamp:
                        number = known_as & 0xFFFFFFFF
                    else:
                        table[key] = (stamp << 32) | n_pairs
                else:
                    tag = (stamp << 40) ^ key
                    slot = (key * np.int64(0x9E3779B97F4A7C1)) >> 20 & mask
                    while hash_key[slot] != tag and hash_key[slot] >> 40 == stamp:
                        slot = (slot + 1) & mask
                    if hash_key[slot] == tag:
                        number = hash_id[slot]
                    else:
                        hash_key[slot] = tag
                        hash_id[slot] = n_pairs
                reps[u] = number
                if number == n_pairs:
                    pair_left[n_pairs] = at[left_child] + i * p.n_nodes[left_child]
                    pair_right[n_pairs] = at[right_child] + j * p.n_nodes[right_child]
                    n_pairs += 1
            left = work if known[left_child] else prior
            right = work if known[right_child] else prior
            _join(p, v, left, right, pair_left[:n_pairs], pair_right[:n_pairs], both, work, at[v])
            count[v] = n_pairs
            _scale(work, at[v], p.n_nodes[v], n_pairs)
        left_child, right_child = p.tree_left[root], p.tree_right[root]
        left = work if known[left_child] else prior
        right = work if known[right_child] else prior
        _shares(p, parts, left, right, at, rep, alive[:n_alive], root, share)
        if order == 1:
            _sum_up(value, alive[:n_alive], share, out[r])
        else:
            _moments(value, alive[:n_alive], share, order, out[r])


@helper
def _place_value(p: Mixing, parts: Parts, v: int, x: int, rep: Array, work: Array, at: int) -> int:
    """Find the parts of a leaf that a value lies in; returns how many vectors the leaf has."""
    first, n_parts = parts.start[v], parts.start[v + 1] - parts.start[v]
    if x < 0:
        for u in range(n_parts):
            rep[first + u] = u
        return int(n_parts)
    for u in range(first, first + n_parts):
        rep[u] = -1
        for run in range(parts.run_at[u], parts.run_at[u + 1]):
            if parts.low[run] <= x < parts.high[run]:
                rep[u] = 0
    width = p.n_nodes[v]
    for n in range(width):
        work[at + n] = p.leaf[p.leaf_at[v] + x * width + n]
    _scale(work, at, width, 1)
    return 1


@helper
def _alive(parts: Parts, rep: Array, alive: Array) -> int:
    """List the boxes that no known value lies outside of; returns their number."""
    n_alive = 0
    for box in range(len(alive)):
        lives = True
        for k in range(parts.asked_at[box], parts.asked_at[box + 1]):
            if rep[parts.asked[k]] < 0:
                lives = False
                break
        if lives:
            alive[n_alive] = box
            n_alive += 1
    return n_alive


@helper
def _scale(work: Array, at: int, width: int, count: int) -> None:
    """Make the vectors of a layer larger, if the first part's, which asks nothing, is small."""
    most = 0.0
    for n in range(width):
        most = max(most, work[at + n])
    if 0.0 < most < SMALL_PROBABILITY:
        for k in range(at, at + width * count):
            work[k] /= most


@helper
def _shares(
    p: Mixing,
    parts: Parts,
    left: Array,
    right: Array,
    at: Array,
    rep: Array,
    alive: Array,
    root: int,
    share: Array,
) -> None:
    """Compute the probability of each living box at the root, together with what is known."""
    a, b = p.tree_left[root], p.tree_right[root]
    for i in range(len(alive)):
        k = parts.start[root] + alive[i]
        x = at[a] + rep[parts.start[a] + parts.left[k]] * p.n_nodes[a]
        y = at[b] + rep[parts.start[b] + parts.right[k]] * p.n_nodes[b]
        share[i] = 0.0
        for q in range(p.element_at[root], p.element_at[root + 1]):
            for run in range(p.run_at[q], p.run_at[q + 1]):  # the root is a single node
                weight = p.weight[p.weight_at[run]]
                share[i] += weight * left[x + p.left[q]] * right[y + p.right[q]]


@helper
def _sum_up(value: Array, alive: Array, share: Array, out: Array) -> None:
    """Add up the boxes, divided by the probability of what is known: the share of the first."""
    out[:] = 0.0
    for i in range(len(alive)):
        for k in range(len(out)):
            out[k] += share[i] * value[alive[i], k]
    for k in range(len(out)):
        out[k] = out[k] / share[0] if share[0] > 0.0 else np.nan


@helper
def _moments(value: Array, alive: Array, share: Array, order: int, out: Array) -> None:
    """Compute the mean and moments about it, of distances from a living box: nothing cancels."""
    first = min(1, len(alive) - 1)  # the box that holds everything is none of several
    total = 0.0
    for i in range(first, len(alive)):
        total += share[i]
    out[:] = 0.0 if total > 0.0 else np.nan
    for k in range(value.shape[1] if total > 0.0 else 0):
        moments = out[k * order : (k + 1) * order]
        centre = value[alive[first], k]
        mean = 0.0
        for i in range(first, len(alive)):
            mean += share[i] * (value[alive[i], k] - centre)
        mean /= total
        for i in range(first, len(alive)):
            gap = value[alive[i], k] - centre - mean
            power = gap * share[i] / total
            for j in range(1, order):
                power *= gap
                moments[j] += power
        moments[0] = centre + mean
