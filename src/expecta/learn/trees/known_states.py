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
    by_state: Floats  # the transitions once more: (states, states of the parent)
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
        turned = [layout.transitions(theta, node).T.ravel() for node in range(len(states))]
        lists, a_start = layout.tree.child_lists, layout.a_start
        by_state = np.concatenate(turned)
        return cls(layout.tree.parent, *lists, states, theta, a_start, by_state, start)


@kernel
def visit_known(
    tree: VisibleTree,
    columns: Ints,
    rows: Ints,
    weight: Floats,
    learn: bool,
    transitions: Floats,
    by_state: Floats,
    values: Floats,
    log_likelihood: Floats,
) -> None:
    """Set the log-likelihoods of rows; add their expected transitions, and their known values.

    Transitions from unknown to known are added to ``by_state``, laid out like that of the tree.
    What is known goes node by node, so that one table remains in the cache.
    """
    theta, states, start, a_start = tree.theta, tree.states, tree.start, tree.a_start
    n_nodes = len(states)
    cells = np.zeros(n_nodes, np.int64)
    lam, sent = np.empty(start[n_nodes]), np.empty(a_start[n_nodes])
    is_complete = np.ones(len(rows), np.bool_)
    log_likelihood[:] = 0.0
    for v in range(n_nodes):
        p, k = tree.parent[v], states[v]
        above = states[p] if p >= 0 else 1
        for i in range(len(rows)):
            x, y = columns[v, rows[i]], columns[p, rows[i]] if p >= 0 else 0
            if x >= k:
                is_complete[i] = False
            elif y < above:
                log_likelihood[i] += np.log(theta[a_start[v] + y * k + x])
    for i in range(len(rows)):
        if is_complete[i]:
            continue
        for v in range(n_nodes):
            cells[v] = columns[v, rows[i]]
        log_likelihood[i] += _up(tree, cells, lam, sent)
        if learn and log_likelihood[i] > -np.inf:
            _down(tree, cells, lam, sent, weight[rows[i]], transitions, by_state)
    for v in range(n_nodes if learn else 0):
        p, k = tree.parent[v], states[v]
        above = states[p] if p >= 0 else 1
        for i in range(len(rows)):
            x, y = columns[v, rows[i]], columns[p, rows[i]] if p >= 0 else 0
            if x < k and log_likelihood[i] > -np.inf:
                values[start[v] + x] += weight[rows[i]]
                if y < above:
                    transitions[a_start[v] + y * k + x] += weight[rows[i]]


@helper
def _up(tree: VisibleTree, cells: Ints, lam: Floats, sent: Floats) -> float:
    """Add log L of a row's unknown nodes; set their λ, and the messages between them."""
    theta, total = tree.theta, 0.0
    for v in range(len(cells)):
        k, x, p = tree.states[v], cells[v], tree.parent[v]
        known_above = p < 0 or cells[p] < tree.states[p]
        row = tree.a_start[v] + (cells[p] * k if p >= 0 and known_above else 0)
        if x < k:
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
    a, greatest = tree.a_start[c], 0.0
    for z in range(len(lam)):
        if cells[c] < tree.states[c]:
            lam[z] *= tree.by_state[a + cells[c] * len(lam) + z]
        else:
            lam[z] *= sent[a + z]
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
    by_state: Floats,
) -> None:
    """Add counts at a row's unknown nodes; turn their λ into the weight of each state."""
    theta = tree.theta
    for v in range(len(cells) - 1, -1, -1):
        k, x, p, a = tree.states[v], cells[v], tree.parent[v], tree.a_start[v]
        known_above = p < 0 or cells[p] < tree.states[p]
        row = a + (cells[p] * k if p >= 0 and known_above else 0)
        if x < k:
            if not known_above:
                above = lam[tree.start[p] : tree.start[p + 1]]
                for y in range(len(above)):
                    by_state[a + x * len(above) + y] += above[y]
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
