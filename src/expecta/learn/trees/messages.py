"""Pass messages through a tree: likelihoods up, expected counts down.

Up, node v sends its parent the likelihood of all that is seen below, for every state of
the parent: with λ_v = B_v[:, x_v] · Π_c m_c over its children c,

    m_v = A_v λ_v

Down comes W_v, the posterior of the parent's state divided by m_v. Then A_v ∘ (W_v λ_vᵀ)
are the expected counts of transitions, λ_v ∘ (A_vᵀ W_v) is the posterior of v's state,
and dividing that by m_c is W_c for a child. Each step is one matrix product over a block
of rows: three of them per node, K² multiply-adds per row each. Where rows share patterns
(see :mod:`.patterns`) a block of patterns takes the place of the rows.

A row of λ that becomes tiny is scaled up, and its logarithm kept.

EM has these passes of its own, beside those of ``engine/passes``: the parameters are two
matrices per node and change with every batch, so that there is no circuit to compile, and
all that is kept of the rows are sums of counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.kernels import helper, kernel
from expecta.learn.trees.patterns import SharedPatterns

MIN_LIKELIHOOD = 2.0**-64  # below it a row of λ is scaled


class TreeTables(NamedTuple):
    """A model's tree and tables, as the passes need them."""

    child_start: Ints  # (nodes + 1,) into children
    children: Ints
    states: Ints
    above: Ints  # states of the parent
    theta: Floats
    a_start: Ints  # (nodes + 1,) into θ: (above, states)
    leaf: Floats
    leaf_start: Ints  # (nodes + 1,) into leaf: (cardinality + 1, states), the last for "unknown"


class SharedMessages(NamedTuple):
    """The messages of the shared nodes, a row per pattern."""

    lam: Floats
    lam_start: Ints
    message: Floats
    inverse: Floats  # one over the message
    message_start: Ints
    log_scale: Floats  # (patterns,)


class TreePass(NamedTuple):
    """A model's tables, the patterns that rows share, and the messages of these."""

    tables: TreeTables
    patterns: SharedPatterns
    shared: SharedMessages


class DownSums(NamedTuple):
    """What the pass down adds up."""

    down: Floats  # over rows: what comes down to each pattern
    counts: Floats  # of transitions, still to be multiplied by θ
    leaf: Floats  # of values, value by value, with a last row for missing ones


class BlockBuffers(NamedTuple):
    """Room for the messages of a block of rows through the nodes that are not shared."""

    lam: Floats
    lam_start: Ints
    message: Floats
    message_start: Ints
    scratch: Ints  # (rows,)
    buffer: Floats


@kernel
def patterns_up(tree: TreePass) -> None:
    """Send messages up through the shared nodes."""
    tables, patterns, shared = tree
    log_scale = shared.log_scale
    index = np.empty(_largest(patterns.start), np.int64)
    for v in range(len(tables.states)):
        if not patterns.shared[v]:
            continue
        k = tables.states[v]
        first, n = patterns.start[v], patterns.start[v + 1] - patterns.start[v]
        lam = _view(shared.lam, shared.lam_start[v], n, k)
        scale = log_scale[first : first + n]
        scale[:] = 0.0
        for i in range(n):
            index[i] = patterns.value[first + i]
        _begin(lam, tables.leaf[tables.leaf_start[v] : tables.leaf_start[v + 1]], index)
        _scale(lam, scale)
        n_children = tables.child_start[v + 1] - tables.child_start[v]
        for j in range(n_children):
            c = tables.children[tables.child_start[v] + j]
            for i in range(n):
                index[i] = patterns.child[patterns.child_start[v] + i * n_children + j]
            sent = shared.message[shared.message_start[c] : shared.message_start[c + 1]]
            _times(lam, sent, index)
            for i in range(n):
                scale[i] += log_scale[patterns.start[c] + index[i]]
            _scale(lam, scale)
        _send(tables, v, lam, _view(shared.message, shared.message_start[v], n, tables.above[v]))


@helper
def rows_up(
    tree: TreePass, columns: Ints, rows: Ints, block: BlockBuffers, log_likelihood: Floats
) -> None:
    """Send messages up through the nodes that are not shared, for one block of rows."""
    tables, patterns, shared = tree
    n = len(rows)
    index = block.scratch
    log_likelihood[:] = 0.0
    root = len(tables.states) - 1
    for v in range(root + 1):
        if patterns.shared[v]:
            continue
        k = tables.states[v]
        lam = _view(block.lam, block.lam_start[v], n, k)
        for i in range(n):
            index[i] = columns[v, rows[i]]
        _begin(lam, tables.leaf[tables.leaf_start[v] : tables.leaf_start[v + 1]], index)
        _scale(lam, log_likelihood)
        for j in range(tables.child_start[v], tables.child_start[v + 1]):
            c = tables.children[j]
            if patterns.shared[c]:
                of_row = patterns.of_row[patterns.boundary[c]]
                for i in range(n):
                    index[i] = of_row[rows[i]]
                    log_likelihood[i] += shared.log_scale[patterns.start[c] + index[i]]
                _times(lam, shared.message[shared.message_start[c] :], index)
            else:
                flat = lam.reshape(n * k)
                from_child = block.message[block.message_start[c] :]
                for i in range(n * k):
                    flat[i] *= from_child[i]
            _scale(lam, log_likelihood)
        _send(tables, v, lam, _view(block.message, block.message_start[v], n, tables.above[v]))
    if patterns.shared[root]:
        of_row = patterns.of_row[patterns.boundary[root]]
        for i in range(n):
            a = of_row[rows[i]]
            likelihood = shared.message[shared.message_start[root] + a]
            log_likelihood[i] = shared.log_scale[patterns.start[root] + a] + np.log(likelihood)
    else:
        for i in range(n):
            log_likelihood[i] += np.log(block.message[block.message_start[root] + i])


@helper
def rows_down(
    tree: TreePass,
    columns: Ints,
    rows: Ints,
    weight: Floats,
    block: BlockBuffers,
    sums: DownSums,
) -> None:
    """Send posteriors down through the nodes that are not shared; what reaches others adds up."""
    tables, patterns, shared = tree
    down, counts, leaf_counts = sums
    n = len(rows)
    index, buffer = block.scratch, block.buffer
    root = len(tables.states) - 1
    if patterns.shared[root]:
        of_row = patterns.of_row[patterns.boundary[root]]
        for i in range(n):
            at = shared.message_start[root] + of_row[rows[i]]
            down[at] += weight[rows[i]] * shared.inverse[at]
        return
    at = block.message_start[root]
    for i in range(n):
        likelihood = block.message[at + i]
        block.message[at + i] = weight[rows[i]] / likelihood if likelihood > 0.0 else 0.0
    for v in range(root, -1, -1):
        if patterns.shared[v]:
            continue
        k, above = tables.states[v], tables.above[v]
        lam = _view(block.lam, block.lam_start[v], n, k)
        from_parent = _view(block.message, block.message_start[v], n, above)
        np.dot(from_parent.T, lam, _view(buffer, 0, above, k))
        transitions = counts[tables.a_start[v] : tables.a_start[v + 1]]
        for i in range(above * k):
            transitions[i] += buffer[i]
        _posterior(tables, v, from_parent, lam, _view(buffer, 0, n, k))
        for i in range(n):
            index[i] = columns[v, rows[i]]
        _add(leaf_counts[tables.leaf_start[v] : tables.leaf_start[v + 1]], lam, index)
        flat = lam.reshape(n * k)
        for j in range(tables.child_start[v], tables.child_start[v + 1]):
            c = tables.children[j]
            if patterns.shared[c]:
                of_row = patterns.of_row[patterns.boundary[c]]
                for i in range(n):
                    index[i] = of_row[rows[i]]
                a, b = shared.message_start[c], shared.message_start[c + 1]
                _add_divided(down[a:b], lam, shared.inverse[a:b], index)
            else:
                further = block.message[block.message_start[c] :]
                for i in range(n * k):
                    further[i] = flat[i] / further[i] if further[i] > 0.0 else 0.0


@kernel
def patterns_down(tree: TreePass, buffer: Floats, sums: DownSums) -> None:
    """Send posteriors down through the shared nodes, all rows of a pattern at once."""
    tables, patterns, shared = tree
    down, counts, leaf_counts = sums
    index = np.empty(_largest(patterns.start), np.int64)
    for v in range(len(tables.states) - 1, -1, -1):
        if not patterns.shared[v]:
            continue
        k, above = tables.states[v], tables.above[v]
        first, n = patterns.start[v], patterns.start[v + 1] - patterns.start[v]
        lam = _view(shared.lam, shared.lam_start[v], n, k)
        from_parent = _view(down, shared.message_start[v], n, above)
        np.dot(from_parent.T, lam, _view(counts, tables.a_start[v], above, k))
        _posterior(tables, v, from_parent, lam, _view(buffer, 0, n, k))
        for i in range(n):
            index[i] = patterns.value[first + i]
        _add(leaf_counts[tables.leaf_start[v] : tables.leaf_start[v + 1]], lam, index[:n])
        n_children = tables.child_start[v + 1] - tables.child_start[v]
        for j in range(n_children):
            c = tables.children[tables.child_start[v] + j]
            for i in range(n):
                index[i] = patterns.child[patterns.child_start[v] + i * n_children + j]
            a, b = shared.message_start[c], shared.message_start[c + 1]
            _add_divided(down[a:b], lam, shared.inverse[a:b], index)


# -- steps ----------------------------------------------------------------------------


@helper
def _largest(start: Ints) -> int:
    """Return the largest difference: NumPy's functions for it take seconds to compile."""
    most = 0
    for k in range(len(start) - 1):
        most = max(most, start[k + 1] - start[k])
    return most


@helper
def _view(flat: Floats, start: int, n: int, k: int) -> Floats:
    """View a stretch of a flat array as a table."""
    return flat[start : start + n * k].reshape(n, k)


@helper
def _begin(lam: Floats, table: Floats, index: Ints) -> None:
    """Set each row to a row of a table."""
    n, k = lam.shape
    for i in range(n):
        at = index[i] * k
        for s in range(k):
            lam[i, s] = table[at + s]


@helper
def _times(lam: Floats, table: Floats, index: Ints) -> None:
    """Multiply each row by a row of a table."""
    n, k = lam.shape
    for i in range(n):
        at = index[i] * k
        for s in range(k):
            lam[i, s] *= table[at + s]


@helper
def _scale(lam: Floats, log_scale: Floats) -> None:
    """Scale the rows whose greatest number is tiny."""
    n, k = lam.shape
    for i in range(n):
        greatest = 0.0
        for s in range(k):
            greatest = max(greatest, lam[i, s])
        if 0.0 < greatest < MIN_LIKELIHOOD:
            log_scale[i] += np.log(greatest)
            for s in range(k):
                lam[i, s] /= greatest


@helper
def _send(tables: TreeTables, v: int, lam: Floats, out: Floats) -> None:
    """Set the message to the parent: a matrix product."""
    transitions = _view(tables.theta, tables.a_start[v], tables.above[v], tables.states[v])
    np.dot(lam, transitions.T, out)


@helper
def _posterior(
    tables: TreeTables, v: int, from_parent: Floats, lam: Floats, buffer: Floats
) -> None:
    """Turn λ into the posterior of the state."""
    transitions = _view(tables.theta, tables.a_start[v], tables.above[v], tables.states[v])
    np.dot(from_parent, transitions, buffer)
    n, k = lam.shape
    for i in range(n):
        for s in range(k):
            lam[i, s] *= buffer[i, s]


@helper
def _add(table: Floats, lam: Floats, index: Ints) -> None:
    """Add each row to a row of a table."""
    n, k = lam.shape
    for i in range(n):
        at = index[i] * k
        for s in range(k):
            table[at + s] += lam[i, s]


@helper
def _add_divided(table: Floats, lam: Floats, inverse: Floats, index: Ints) -> None:
    """Add each row, divided by a row of another table, to a row of a table."""
    n, k = lam.shape
    for i in range(n):
        at = index[i] * k
        for s in range(k):
            table[at + s] += lam[i, s] * inverse[at + s]
