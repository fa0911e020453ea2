"""The probability of many boxes at once, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.boxes.layout import Mixing, Parts
from expecta.pair.compiled import U, kernel

__all__ = ["expect", "unconditional"]

Array = npt.NDArray[Any]

SMALL = 1e-100  # probabilities of a layer below this are scaled
AT_ONCE = 64  # pairs of halves that are multiplied together
DENSE = 1 << 14  # pairs of halves up to which they are told apart by a table


@kernel
def unconditional(p: Mixing, parts: Parts, at: Array) -> Array:
    """Compute every part's probability given each node of p, where nothing is known."""
    out = np.zeros(at[-1])
    for v in p.order:
        width = p.n_nodes[v]
        for u in range(parts.start[v + 1] - parts.start[v]):
            here = at[v] + u * width
            if p.variable[v] >= 0:
                cards = (p.leaf_at[v + 1] - p.leaf_at[v]) // width
                for x in range(cards):
                    if parts.member[parts.member_at[v] + u * cards + x]:
                        for n in range(width):
                            out[here + n] += p.leaf[p.leaf_at[v] + x * width + n]
            else:
                k = parts.start[v] + u
                a = at[p.tree_left[v]] + parts.left[k] * p.n_nodes[p.tree_left[v]]
                b = at[p.tree_right[v]] + parts.right[k] * p.n_nodes[p.tree_right[v]]
                _mix(p, v, out, a, out, b, out, here)
    return out


@kernel
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


@kernel
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
    for some in range(0, len(pair_left), AT_ONCE):
        n = min(AT_ONCE, len(pair_left) - some)
        for k in range(n):
            a, b = pair_left[some + k], pair_right[some + k]
            for q in range(height):
                x, y = left[a + p.left[first + q]], right[b + p.right[first + q]]
                both[U(k * height + q)] = x * y
        here = at + some * width
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
    out: Array,
) -> None:
    """Write the expectation of the sum of boxes for some rows; NaN where they are impossible.

    For a row most parts are dead, as a known value lies outside of them, and many are
    alike, as they differ in what they ask of known values only. ``rep`` tells for each
    part which of the vectors of its layer is its own, -1 for none.
    """
    n_layers = len(p.variable)
    work = np.empty(at[-1])
    rep = np.empty(parts.start[-1], np.int32)
    count = np.empty(n_layers, np.int64)
    known = np.empty(n_layers, np.uint8)  # whether a value below is known
    new = np.empty(n_layers, np.uint8)  # whether values below differ from those of the last row
    table = np.zeros(DENSE, np.int64)
    hash_key = np.zeros(1, np.int64)
    hash_id = np.zeros(1, np.int64)
    stamp = np.int64(0)
    most = 0
    for v in range(n_layers):
        most = max(most, parts.start[v + 1] - parts.start[v])
    pair_left = np.empty(most, np.int64)
    pair_right = np.empty(most, np.int64)
    both = np.empty(AT_ONCE * max(1, np.max(np.diff(p.element_at))))
    n_out = value.shape[1]
    root = p.order[n_layers - 1]
    for r in range(begin, end):
        for v in p.order[: n_layers - 1]:
            if p.variable[v] >= 0:
                new[v] = r == begin or codes[r, p.variable[v]] != codes[r - 1, p.variable[v]]
            else:
                new[v] = new[p.tree_left[v]] | new[p.tree_right[v]]
            if not new[v]:  # as it was for the row before
                continue
            n_parts = parts.start[v + 1] - parts.start[v]
            width = p.n_nodes[v]
            reps = rep[parts.start[v] : parts.start[v + 1]]
            if p.variable[v] >= 0:
                x = codes[r, p.variable[v]]
                known[v] = x >= 0
                if x < 0:
                    count[v] = n_parts
                    for u in range(n_parts):
                        reps[u] = u
                else:
                    cards = (p.leaf_at[v + 1] - p.leaf_at[v]) // width
                    count[v] = 1
                    for u in range(n_parts):
                        inside = parts.member[parts.member_at[v] + u * cards + x]
                        reps[u] = 0 if inside else -1
                    for n in range(width):
                        work[at[v] + n] = p.leaf[p.leaf_at[v] + x * width + n]
                    _scale(work, at[v], width, 1)
                continue
            one, two = p.tree_left[v], p.tree_right[v]
            known[v] = known[one] | known[two]
            if not known[v]:
                count[v] = n_parts
                for u in range(n_parts):
                    reps[u] = u
                continue
            left = work if known[one] else prior
            right = work if known[two] else prior
            left_reps = rep[parts.start[one] : parts.start[one + 1]]
            right_reps = rep[parts.start[two] : parts.start[two + 1]]
            n_right = count[two]
            pairs = count[one] * n_right
            dense = pairs <= DENSE
            stamp += 1
            if not dense:
                size = 1
                while size < 2 * min(pairs, n_parts):
                    size *= 2
                if len(hash_key) < size:
                    hash_key = np.zeros(size, np.int64)
                    hash_id = np.zeros(size, np.int64)
                mask = np.int64(len(hash_key) - 1)
            found = 0
            first = parts.first[parts.first_at[v] : parts.first_at[v + 1]]
            halves = parts.right[parts.start[v] : parts.start[v + 1]]
            for a in range(len(first) - 1):
                i = left_reps[a]
                if i < 0:
                    for u in range(first[a], first[a + 1]):
                        reps[u] = -1
                    continue
                for u in range(first[a], first[a + 1]):
                    j = right_reps[halves[u]]
                    if j < 0:
                        reps[u] = -1
                        continue
                    key = i * n_right + j
                    own = found
                    if dense:
                        seen = table[key]
                        if seen >> 32 == stamp:
                            own = seen & 0xFFFFFFFF
                        else:
                            table[key] = (stamp << 32) | found
                    else:
                        tag = (stamp << 40) ^ key
                        slot = (key * np.int64(0x9E3779B97F4A7C1)) >> 20 & mask
                        while hash_key[slot] != tag and hash_key[slot] >> 40 == stamp:
                            slot = (slot + 1) & mask
                        if hash_key[slot] == tag:
                            own = hash_id[slot]
                        else:
                            hash_key[slot] = tag
                            hash_id[slot] = found
                    reps[u] = own
                    if own == found:
                        pair_left[found] = at[one] + i * p.n_nodes[one]
                        pair_right[found] = at[two] + j * p.n_nodes[two]
                        found += 1
            _join(p, v, left, right, pair_left[:found], pair_right[:found], both, work, at[v])
            count[v] = found
            _scale(work, at[v], width, found)
        _sum_up(p, parts, value, prior, at, work, rep, known, root, out[r], n_out)


@kernel
def _scale(work: Array, at: int, width: int, count: int) -> None:
    """Make the vectors of a layer larger, if the first part's, which asks nothing, is small."""
    most = 0.0
    for n in range(width):
        most = max(most, work[at + n])
    if 0.0 < most < SMALL:
        for k in range(at, at + width * count):
            work[k] /= most


@kernel
def _sum_up(
    p: Mixing,
    parts: Parts,
    value: Array,
    prior: Array,
    at: Array,
    work: Array,
    rep: Array,
    known: Array,
    root: int,
    out: Array,
    n_out: int,
) -> None:
    """Add up the boxes at the root, divided by the probability of what is known."""
    one, two = p.tree_left[root], p.tree_right[root]
    left = work if known[one] else prior
    right = work if known[two] else prior
    total = 0.0
    out[:] = 0.0
    first = parts.first_at[root]
    for a in range(parts.first_at[root + 1] - first - 1):
        i = rep[parts.start[one] + a]
        if i < 0:
            continue
        x = at[one] + i * p.n_nodes[one]
        for u in range(parts.first[first + a], parts.first[first + a + 1]):
            j = rep[parts.start[two] + parts.right[parts.start[root] + u]]
            if j < 0:
                continue
            y = at[two] + j * p.n_nodes[two]
            share = 0.0
            for q in range(p.element_at[root], p.element_at[root + 1]):
                for run in range(p.run_at[q], p.run_at[q + 1]):  # the root is a single node
                    weight = p.weight[p.weight_at[run]]
                    share += weight * left[x + p.left[q]] * right[y + p.right[q]]
            if u == 0:
                total = share
            for k in range(n_out):
                out[k] += share * value[u, k]
    for k in range(n_out):
        out[k] = out[k] / total if total > 0.0 else np.nan
