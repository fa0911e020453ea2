"""Find the patterns of values that rows share below each node of a tree.

A node's message depends on a row's values below that node only. Low in the tree there
are few different combinations, *patterns*, however many rows: a node whose patterns are
few is *shared*, and works on patterns instead of rows. Its sufficient
statistics are linear in what comes down from its parent, so the way down first adds up
all rows of a pattern: sharing changes no result beyond rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from expecta.common.arrays import Bools, Ints
from expecta.learn.trees.tree import RootedTree


class SharedPatterns(NamedTuple):
    """Patterns of a table of rows; nodes are those of the tree."""

    shared: Bools  # (nodes,)
    start: Ints  # patterns of node v: start[v] : start[v + 1]  # (nodes + 1,)
    value: Ints  # value at the node, of each pattern
    child_start: Ints  # (nodes + 1,) into child
    child: Ints  # per pattern, the pattern of each child of the node
    boundary: Ints  # row of ``of_row``, -1 unless shared under a node that is not  # (nodes,)
    of_row: Ints  # pattern of each row at the boundary  # (boundary nodes, rows)


def find_patterns(
    tree: RootedTree, columns: Ints, cardinalities: Ints, limit: int
) -> SharedPatterns:
    """Find the patterns, from the leaves up, to where they are more than ``limit``.

    Parameters
    ----------
    tree
        The tree.
    columns
        Values at each node, the node's cardinality where unknown.  # (nodes, rows)
    cardinalities
        Of each node.  # (nodes,)
    limit
        A node with more patterns is not shared.

    Notes
    -----
    Cost: nodes x rows, less above the shared nodes.
    """
    n, n_rows = columns.shape
    shared = np.zeros(n, np.bool_)
    values: list[Ints] = []
    below: list[Ints] = []
    ids: dict[int, Ints] = {}  # of shared nodes whose parent is yet to come
    count = np.zeros(n, np.int64)
    of_row: list[Ints] = []
    id_type = np.int16 if limit < 2**15 else np.int32
    boundary = np.full(n, -1, np.int32)
    empty = np.zeros(0, np.int32)
    for v, children in enumerate(tree.children):
        combined = None
        if all(shared[c] for c in children) and cardinalities[v] < limit:
            parts_of = [(ids[c], int(count[c])) for c in children]
            combined = _combine(columns[v], int(cardinalities[v]) + 1, parts_of, limit)
        if combined is None:
            for c in children:
                if shared[c]:
                    boundary[c] = len(of_row)
                    of_row.append(ids.pop(c).astype(id_type))
            values.append(empty)
            below.append(empty)
            continue
        for c in children:
            del ids[c]
        shared[v] = True
        ids[v], parts = combined
        count[v] = len(parts)
        values.append(parts[:, 0].astype(np.int32))
        below.append(parts[:, 1:].reshape(-1).astype(np.int32))
    if shared[-1]:  # all rows are few patterns: the root is the boundary
        boundary[-1] = len(of_row)
        of_row.append(ids[n - 1].astype(id_type))
    return SharedPatterns(
        shared=shared,
        start=np.concatenate([[0], np.cumsum(count)]),
        value=np.concatenate(values),
        child_start=np.concatenate([[0], np.cumsum([len(b) for b in below])]),
        child=np.concatenate(below),
        boundary=boundary,
        of_row=np.stack(of_row) if of_row else np.zeros((0, n_rows), np.int16),
    )


def _combine(
    values: Ints, n_values: int, children: list[tuple[Ints, int]], limit: int
) -> tuple[Ints, Ints] | None:
    """Find the combinations that occur; return each row's, and the parts of each.

    A column alone keeps all its values, so that other rows have the same patterns.
    """
    parts = np.arange(n_values)[:, None]
    ids = values.astype(np.int64)
    for further, n_further in children:
        ids = ids * n_further + further
        occurs = np.zeros(len(parts) * n_further, np.bool_)
        occurs[ids] = True
        keys = np.flatnonzero(occurs)
        if len(keys) > limit:
            return None
        number = np.cumsum(occurs) - 1
        ids = number[ids]
        parts = np.column_stack([parts[keys // n_further], keys % n_further])
    return ids, parts
