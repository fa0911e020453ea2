"""Number patterns of evidence: rows that agree below a vtree node share the work there.

A layer's values depend on a row's evidence below it only. Patterns of evidence are
numbered bottom-up: a pattern of a node is a pair of patterns of its children. A
node is *shared* while its patterns are few against the rows; above, every row is a
pattern of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.common.kernels import helper, kernel

Array = npt.NDArray[Any]

MAX_SHARE = 0.5  # a node is shared while its patterns are at most this part of the rows,
CACHED_PATTERNS = 256  # and either so few that a vector of them stays in the first cache,
WORTH_FETCHING = 1 / 16  # or at most this part of the rows, worth fetching from afar


class Patterns(NamedTuple):
    """Distinct evidence below each vtree node."""

    number: Array  # (vtree nodes,) number of patterns; 0: the node is not shared
    row: Array  # (vtree nodes,) the row of ``pattern_of`` with the node's numbers
    pattern_of: Array  # (variables, rows) valid for shared nodes whose parent is not
    child_at: Array  # (vtree nodes,) where in ``children`` the node's patterns begin
    children: Array  # left pattern of each pattern, then right pattern of each; leaf: states


def distinct_rows(
    left: Array, right: Array, variable: Array, codes: Array, n_states: Array
) -> tuple[Array, Array] | None:
    """Find rows that agree everywhere, if that leaves half of them at most.

    Returns a row of each kind and the kind of each row; ``codes`` is overwritten. Cost:
    O(vtree nodes · rows), much less where rows differ.
    """
    limit = codes.shape[1] // 2
    patterns = Patterns(*_number(left, right, variable, codes, n_states, limit))
    if not 0 < patterns.number[-1] <= limit:
        return None
    kind = patterns.pattern_of[patterns.row[-1]]
    return np.unique(kind, return_index=True)[1], kind


def number_patterns(
    left: Array, right: Array, variable: Array, codes: Array, n_states: Array
) -> Patterns:
    """Give patterns their numbers; ``codes`` (variables, rows) is overwritten.

    Cost: O(vtree nodes · rows).
    """
    n = codes.shape[1]
    limit = int(min(MAX_SHARE * n, max(CACHED_PATTERNS, WORTH_FETCHING * n)))
    return Patterns(*_number(left, right, variable, codes, n_states, limit))


@kernel
def _number(
    left: Array, right: Array, variable: Array, codes: Array, n_states: Array, limit: int
) -> tuple[Array, ...]:
    n_rows = codes.shape[1]
    count = np.zeros(len(variable), np.int64)
    row = np.zeros(len(variable), np.int64)
    child_at = np.zeros(len(variable), np.int64)
    children = np.zeros(n_states.sum() + 2 * limit * (codes.shape[0] - 1), np.int32)
    end = 0
    dense = np.zeros(max(4 * n_rows + 1024, n_states.max()), np.int32)
    size = 1
    while size < 2 * limit + 2:
        size *= 2
    keys = np.zeros(size, np.int64)
    numbers = np.zeros(size, np.int32)
    for v in range(len(variable)):
        child_at[v] = end
        if variable[v] >= 0:
            row[v] = variable[v]
            ids = codes[row[v]]
            dense[: n_states[variable[v]]] = -1
            n_patterns = 0
            for r in range(n_rows):
                state = ids[r]
                if dense[state] < 0:
                    dense[state] = n_patterns
                    children[end + n_patterns] = state
                    n_patterns += 1
                ids[r] = dense[state]
            count[v] = n_patterns
            end += n_patterns
            continue
        a, b = left[v], right[v]
        if count[a] == 0 or count[b] == 0 or max(count[a], count[b]) > limit:
            continue
        ids, others = codes[row[a]], codes[row[b]]
        n_patterns = 0
        if count[a] * count[b] <= len(dense):
            dense[: count[a] * count[b]] = -1
            for r in range(n_rows):
                key = ids[r] * count[b] + others[r]
                if dense[key] < 0:
                    if n_patterns == limit:
                        n_patterns += 1
                        break
                    dense[key] = n_patterns
                    children[end + n_patterns] = r
                    n_patterns += 1
        else:
            keys[:] = -1
            for r in range(n_rows):
                key = ids[r] * count[b] + others[r]
                slot = _slot(key, keys)
                if keys[slot] < 0:
                    if n_patterns == limit:
                        n_patterns += 1
                        break
                    keys[slot] = key
                    numbers[slot] = n_patterns
                    children[end + n_patterns] = r
                    n_patterns += 1
        if n_patterns > limit:
            continue
        # the first row of each pattern tells its children's patterns
        for k in range(n_patterns):
            children[end + n_patterns + k] = others[children[end + k]]
            children[end + k] = ids[children[end + k]]
        if count[a] * count[b] <= len(dense):
            for r in range(n_rows):
                ids[r] = dense[ids[r] * count[b] + others[r]]
        else:
            for r in range(n_rows):
                ids[r] = numbers[_slot(ids[r] * count[b] + others[r], keys)]
        row[v] = row[a]
        count[v] = n_patterns
        end += 2 * n_patterns
    return count, row, codes, child_at, children


@helper
def _slot(key: int, keys: Array) -> int:
    """Find a key's slot in an open-addressing table, or the free slot it would take."""
    mask = len(keys) - 1
    slot = (key * 0x9E3779B97F4A7C1 >> 20) & mask
    while keys[slot] >= 0 and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot
