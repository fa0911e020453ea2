"""Count where states are the values: a known cell says its node's state, so little is summed.

Known nodes cut the tree into parts whose probabilities multiply. An edge between two known nodes
is one number, and is counted once. Only at an unknown node v are there sums over its states z:
with y the parent's value and x_c those of the known children,

    λ_v[z] = Π_c A_c[z, x_c]        L_v = Σ_z A_v[y, z] λ_v[z]

and the posterior of z is A_v[y, z] λ_v[z] / L_v. Where the parent is unknown too, messages are
those of :mod:`.messages`: K² multiply-adds for an edge, against K at others, for K states.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.kernels import helper, kernel
from expecta.learn.trees.layout import TreeLayout
from expecta.learn.trees.messages import MIN_LIKELIHOOD


class VisibleTree(NamedTuple):
    """A model whose states are the values, as the pass needs it."""

    parent: Ints
    child_start: Ints  # (nodes + 1,) into children
    children: Ints
    states: Ints
    theta: Floats
    a_start: Ints  # (nodes + 1,) into θ: (states of the parent, states)
    start: Ints  # where each node's states start, one node after the other  # (nodes + 1,)

    @classmethod
    def read(cls, layout: TreeLayout, theta: Floats) -> VisibleTree | None:
        """Return the tables of a model; None where its states are not its values."""
        if not np.array_equal(layout.states, layout.cardinalities):
            return None
        for node, states in enumerate(layout.states.tolist()):
            if not np.array_equal(layout.values(theta, node), np.eye(states)):
                return None
        states = layout.states.astype(np.int64)
        start = np.concatenate([[0], np.cumsum(states)])
        lists = layout.tree.child_lists
        return cls(layout.tree.parent, *lists, states, theta, layout.a_start, start)


@kernel
def visit_known(
    tree: VisibleTree,
    columns: Ints,
    rows: Ints,
    weight: Floats,
    learn: bool,
    transitions: Floats,
    values: Floats,
    log_likelihood: Floats,
) -> None:
    """Set the log-likelihoods of rows; add their expected transitions, and their known values."""
    n_nodes = len(tree.states)
    cells = np.zeros(n_nodes, np.int64)
    lam, sent = np.empty(tree.start[n_nodes]), np.empty(tree.a_start[n_nodes])
    for i in range(len(rows)):
        for v in range(n_nodes):
            cells[v] = columns[v, rows[i]]
        log_likelihood[i] = _up(tree, cells, lam, sent)
        if learn and log_likelihood[i] > -np.inf:
            _down(tree, cells, lam, sent, weight[rows[i]], transitions, values)


@helper
def _up(tree: VisibleTree, cells: Ints, lam: Floats, sent: Floats) -> float:
    """Return a row's log-likelihood; set λ of unknown nodes, and messages between them."""
    theta, total = tree.theta, 0.0
    for v in range(len(cells)):
        k, x, p = tree.states[v], cells[v], tree.parent[v]
        known_above = p < 0 or cells[p] < tree.states[p]
        row = tree.a_start[v] + (cells[p] * k if p >= 0 and known_above else 0)
        if x < k:
            if known_above:
                total += np.log(theta[row + x])
            continue
        here = lam[tree.start[v] : tree.start[v + 1]]
        here[:] = 1.0
        for j in range(tree.child_start[v], tree.child_start[v + 1]):
            total += _times_child(tree, tree.children[j], cells, here, sent)
        if known_above:
            likelihood = 0.0
            for z in range(k):
                likelihood += theta[row + z] * here[z]
            total += np.log(likelihood)
        else:
            for y in range(tree.states[p]):
                likelihood = 0.0
                for z in range(k):
                    likelihood += theta[row + y * k + z] * here[z]
                sent[row + y] = likelihood
    return total


@helper
def _times_child(tree: VisibleTree, c: int, cells: Ints, lam: Floats, sent: Floats) -> float:
    """Multiply λ of a node by what a child says; return the logarithm of what it is scaled by."""
    a, k, greatest = tree.a_start[c], tree.states[c], 0.0
    for z in range(len(lam)):
        lam[z] *= tree.theta[a + z * k + cells[c]] if cells[c] < k else sent[a + z]
        greatest = max(greatest, lam[z])
    if not 0.0 < greatest < MIN_LIKELIHOOD:
        return 0.0
    for z in range(len(lam)):
        lam[z] /= greatest
    return np.log(greatest)


@helper
def _down(
    tree: VisibleTree,
    cells: Ints,
    lam: Floats,
    sent: Floats,
    weight: float,
    transitions: Floats,
    values: Floats,
) -> None:
    """Add a row's counts; turn λ of unknown nodes into the weight of each state."""
    theta = tree.theta
    for v in range(len(cells) - 1, -1, -1):
        k, x, p, a = tree.states[v], cells[v], tree.parent[v], tree.a_start[v]
        known_above = p < 0 or cells[p] < tree.states[p]
        row = a + (cells[p] * k if p >= 0 and known_above else 0)
        if x < k:
            values[tree.start[v] + x] += weight
            if known_above:
                transitions[row + x] += weight
            else:
                above = lam[tree.start[p] : tree.start[p + 1]]
                for y in range(len(above)):
                    transitions[a + y * k + x] += above[y]
            continue
        here = lam[tree.start[v] : tree.start[v + 1]]
        if known_above:
            likelihood = 0.0
            for z in range(k):
                here[z] *= theta[row + z]
                likelihood += here[z]
            for z in range(k):
                here[z] *= weight / likelihood
                transitions[row + z] += here[z]
            continue
        above = lam[tree.start[p] : tree.start[p + 1]]
        for y in range(len(above)):
            above_likelihood = sent[a + y]
            sent[a + y] = above[y] / above_likelihood if above_likelihood > 0.0 else 0.0
        for z in range(k):
            share = 0.0
            for y in range(len(above)):
                count = theta[a + y * k + z] * sent[a + y] * here[z]
                transitions[a + y * k + z] += count
                share += count
            here[z] = share
