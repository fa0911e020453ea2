"""Compute expected counts of a tree-shaped model over rows, on every core.

EM has a pass of its own, not the circuit engine's evidence pass: it needs sums of sufficient
statistics over all rows, not an answer per row, so that rows with the same pattern are added
up before they go down the tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DeviceError
from expecta.common.kernels import kernel
from expecta.common.settings import current
from expecta.common.threads import one_blas_thread, run_on_threads
from expecta.engine.cuda.choice import failed_on_card, step_pays, wanted
from expecta.learn.trees.known_states import VisibleTree, visit_known
from expecta.learn.trees.layout import TreeLayout
from expecta.learn.trees.messages import (
    BlockBuffers,
    DownSums,
    SharedMessages,
    TreePass,
    TreeTables,
    patterns_down,
    patterns_up,
    rows_down,
    rows_up,
)
from expecta.learn.trees.patterns import SharedPatterns, find_patterns
from expecta.learn.trees.tree import RootedTree

BLOCK_BYTES = 1 << 21  # that the messages of a block of rows may take
MAX_PARTS = 8  # in which sums over rows are made, whatever the number of threads ...
MIN_PART_ROWS = 256  # ... of at least so many rows
MAX_PART_BYTES = 1 << 27  # of all parts together


@dataclass(frozen=True, eq=False)
class Counts:
    """Sufficient statistics: expected counts laid out like θ, and the rows they are of."""

    counts: Floats
    weight: float
    log_likelihood: float = 0.0  # of the rows, under the parameters that they were counted with

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.counts + other.counts,
            self.weight + other.weight,
            self.log_likelihood + other.log_likelihood,
        )

    @classmethod
    def zero(cls, layout: TreeLayout) -> Counts:
        """Return the counts of no rows."""
        return cls(np.zeros(layout.size), 0.0)


@dataclass(frozen=True, eq=False)
class TreeRows:
    """Rows of values, prepared for the passes of one tree.

    Parameters
    ----------
    tree
        The tree.
    cardinalities
        Number of values of each variable.  # (variables,)
    codes
        Values of each row, -1 where unknown.  # (rows, variables)
    weight
        How often each row counts.  # (rows,)
    limit
        Greatest number of patterns of a shared node.
    """

    tree: RootedTree
    cardinalities: Ints
    codes: Ints
    weight: Floats
    limit: int = 256

    @cached_property
    def columns(self) -> Ints:
        """Values at each node of the tree, the cardinality for unknown.  # (nodes, rows)."""
        cards = self.cardinalities[self.tree.variable]
        dtype = np.int16 if np.max(cards) < 2**15 else np.int32
        columns: Ints = np.ascontiguousarray(self.codes.T[self.tree.variable], dtype)
        unknown = columns < 0
        if np.any(unknown):
            columns = np.where(unknown, cards[:, None].astype(dtype), columns)
        return columns

    @cached_property
    def patterns(self) -> SharedPatterns:
        """The patterns that rows share."""
        cards = self.cardinalities[self.tree.variable]
        return find_patterns(self.tree, self.columns, cards, self.limit)

    def __len__(self) -> int:
        return len(self.weight)


def log_likelihoods(layout: TreeLayout, theta: Floats, table: TreeRows) -> Floats:
    """Compute log-likelihoods. Cost: that of `expected_counts`, or a third of it.  # (rows,)."""
    visible = VisibleTree.read(layout, theta)
    if visible is not None:
        return _visit_known(visible, table, np.arange(len(table)), learn=False)[2]
    found = _on_card(layout, theta, table, np.arange(len(table)), learn=False)
    if found is not None:
        return found[1]
    with one_blas_thread():
        return _Run(layout, theta, table).up(np.arange(len(table)))


def expected_counts(
    layout: TreeLayout, theta: Floats, table: TreeRows, rows: Ints | None = None
) -> Counts:
    """Return expected counts under θ, over all rows or those given by their indices.

    Missing values are summed out. The result is the same for any number of threads. Cost:
    3 K² multiply-adds per row and node for K states; where the states are the values, a few
    for a known value, and K for an unknown one between known ones.
    """
    rows = np.arange(len(table)) if rows is None else rows
    visible = VisibleTree.read(layout, theta)
    if visible is not None:
        transitions, known, log_likelihood = _visit_known(visible, table, rows, learn=True)
        counts: Floats = np.zeros(layout.size)
        counts[: len(transitions)] = transitions
        for node, (a, b) in enumerate(pairwise(visible.start.tolist())):
            np.fill_diagonal(layout.values(counts, node), known[a:b])
    else:
        found = _on_card(layout, theta, table, rows, learn=True)
        if found is None:
            with one_blas_thread():
                sums, likelihoods = _Run(layout, theta, table).down(rows)
            transitions = sums.counts * theta[: len(sums.counts)]
            found = np.concatenate([transitions, sums.leaf[layout.value_index]]), likelihoods
        counts, log_likelihood = found
    weight = table.weight[rows]
    total = float(weight[weight > 0] @ log_likelihood[weight > 0])
    return Counts(counts, float(np.sum(weight)), total)


def _visit_known(
    tree: VisibleTree, table: TreeRows, rows: Ints, *, learn: bool
) -> tuple[Floats, Floats, Floats]:
    """Return expected transitions, counts of known values, and the rows' log-likelihoods."""
    size = int(tree.a_start[-1]) if learn else 0
    sizes = [size, size, int(tree.start[-1]) if learn else 0]
    # sums of a part are worth making where visiting its rows takes longer
    n_parts = max(1, min(MAX_PARTS, len(rows) * len(tree.states) // max(1024, size // 4)))
    cuts = [len(rows) * part // n_parts for part in range(n_parts + 1)]
    sums = [np.zeros((n_parts, size)) for size in sizes]
    log_likelihood, given = np.empty(len(rows)), (table.weight, learn)
    calls = [
        (tree, table.columns, rows[a:b], *given, *(s[k] for s in sums), log_likelihood[a:b])
        for k, (a, b) in enumerate(pairwise(cuts))
    ]
    run_on_threads(visit_known, calls, current().n_threads())
    transitions, by_state, values = (part.sum(axis=0) for part in sums)
    for (a, b), k in zip(pairwise(tree.a_start.tolist()), tree.states.tolist(), strict=True):
        if learn:
            transitions[a:b].reshape(-1, k)[:] += by_state[a:b].reshape(k, -1).T
    return transitions, values, log_likelihood


def _on_card(
    layout: TreeLayout, theta: Floats, table: TreeRows, rows: Ints, *, learn: bool
) -> tuple[Floats, Floats] | None:
    """Do the same on a card, where the settings say so; None where they do not, or it failed."""
    states = len(rows) * float(np.sum(layout.states))
    parameters = float(np.sum(layout.above.astype(float) * layout.states))
    products = 3 * len(rows) * parameters
    if not len(rows) or not wanted(lambda: step_pays(parameters, states, products)):
        return None
    from expecta.learn.trees.card_passes import passes_on_card

    try:
        return passes_on_card(layout, theta, table, rows, learn=learn)
    except DeviceError as problem:
        failed_on_card(problem)
    return None


class _Run:
    """One pair of passes: the model's tables and the messages of the patterns."""

    def __init__(self, layout: TreeLayout, theta: Floats, table: TreeRows) -> None:
        self._table, self._size = table, layout.size
        tables, patterns = _tables(layout, theta), table.patterns
        count = np.diff(patterns.start)
        lam_start = np.concatenate([[0], np.cumsum(count * tables.states)])
        message_start = np.concatenate([[0], np.cumsum(count * tables.above)])
        message = np.empty(int(message_start[-1]))
        shared = SharedMessages(
            lam=np.empty(int(lam_start[-1])),
            lam_start=lam_start,
            message=message,
            inverse=message,  # is not read on the way up
            message_start=message_start,
            log_scale=np.empty(len(patterns.value)),
        )
        self.tree = TreePass(tables, patterns, shared)
        patterns_up(self.tree)

    def up(self, rows: Ints) -> Floats:
        """Return the log-likelihoods of rows."""
        no_sums = DownSums(*[np.zeros((self._n_parts(rows), 0))] * 3)
        return self._visit(rows, no_sums, learn=False)

    def down(self, rows: Ints) -> tuple[DownSums, Floats]:
        """Return the sums over rows, through all nodes, and the rows' log-likelihoods."""
        tables, patterns, shared = self.tree
        message = shared.message
        inverse = np.divide(1.0, message, out=np.zeros_like(message), where=message > 0)
        self.tree = TreePass(tables, patterns, shared._replace(inverse=inverse))
        sizes = (len(shared.message), int(tables.a_start[-1]), len(tables.leaf))
        parts = DownSums(*(np.zeros((self._n_parts(rows), size)) for size in sizes))
        log_likelihood = self._visit(rows, parts, learn=True)
        sums = DownSums(*(part.sum(axis=0) for part in parts))
        buffer = np.empty(int(np.max(np.diff(patterns.start) * tables.states)))
        patterns_down(self.tree, buffer, sums)  # once for all rows
        return sums, log_likelihood

    def _visit(self, rows: Ints, sums: DownSums, learn: bool) -> Floats:
        """Pass over the rows in parts, one for each row of the sums."""
        n_parts = len(sums.counts)
        cuts = [len(rows) * part // n_parts for part in range(n_parts + 1)]
        log_likelihood = np.empty(len(rows))
        columns, weight = self._table.columns, self._table.weight
        calls = []
        for part, (first, last) in enumerate(pairwise(cuts)):
            own_sums = DownSums(*(array[part] for array in sums))
            out = log_likelihood[first:last]
            calls.append((self.tree, columns, rows[first:last], weight, learn, own_sums, out))
        run_on_threads(_visit, calls, current().n_threads())
        return log_likelihood

    def _n_parts(self, rows: Ints) -> int:
        """Choose in how many parts to add up: a matter of sizes, never of threads."""
        by_memory = max(2, MAX_PART_BYTES // (8 * self._size))
        return max(1, min(MAX_PARTS, len(rows) // MIN_PART_ROWS, by_memory))


@kernel
def _visit(
    tree: TreePass,
    columns: Ints,
    rows: Ints,
    weight: Floats,
    learn: bool,
    sums: DownSums,
    log_likelihood: Floats,
) -> None:
    """Visit a part of the rows, a block at a time."""
    tables, patterns, _ = tree
    nodes = len(tables.states)
    lam_start, message_start = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    lam, message, widest, largest = 0, 0, 0, 0
    for v in range(nodes):
        lam_start[v], message_start[v] = lam, message
        if not patterns.shared[v]:
            lam += tables.states[v]
            message += tables.above[v]
            widest = max(widest, tables.states[v])
            largest = max(largest, tables.states[v] * tables.above[v])
    size = max(16, min(512, BLOCK_BYTES // (8 * (lam + message + 1)), len(rows)))
    block = BlockBuffers(
        np.empty(lam * size),
        lam_start * size,
        np.empty(message * size),
        message_start * size,
        np.empty(size, np.int64),
        np.empty(max(widest * size, largest)),
    )
    for first in range(0, len(rows), size):
        part = rows[first : first + size]
        likelihoods = log_likelihood[first : first + size]
        rows_up(tree, columns, part, block, likelihoods)
        if learn:
            rows_down(tree, columns, part, weight, block, sums)


def _tables(layout: TreeLayout, theta: Floats) -> TreeTables:
    child_start, children = layout.tree.child_lists
    return TreeTables(
        child_start=child_start,
        children=children,
        states=layout.states.astype(np.int64),
        above=layout.above.astype(np.int64),
        theta=theta,
        a_start=layout.a_start,
        leaf=np.append(theta, 1.0)[layout.leaf_index],  # 1 for an unknown value
        leaf_start=layout.leaf_start,
    )
