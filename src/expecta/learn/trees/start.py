"""Where learning a tree starts from, and what it is pulled towards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.learn.trees.expectation import Table
from expecta.learn.trees.layout import Layout

__all__ = ["prior_counts", "prototype_start", "visible_prior"]

STICK = 0.8  # probability of staying in the same state from parent to child, at the start
SHARP = 0.5  # weight of the prototype's own value against the column's distribution


def prior_counts(layout: Layout, marginals: Sequence[Floats], pseudo_count: float) -> Floats:
    """Return counts to add: to transitions evenly, to values as in the whole column.

    ``marginals`` are the distributions of the columns, in the order of the tree's nodes.
    """
    prior = np.empty(layout.size)
    for node, marginal in enumerate(marginals):
        layout.transitions(prior, node)[:] = pseudo_count / layout.states[node]
        layout.values(prior, node)[:] = pseudo_count * marginal
    return prior


def visible_prior(layout: Layout, marginals: Sequence[Floats], pseudo_count: float) -> Floats:
    """Return counts to add where the states are the values: these stay what they are."""
    prior = np.empty(layout.size)
    for node, marginal in enumerate(marginals):
        layout.transitions(prior, node)[:] = pseudo_count * marginal
        layout.values(prior, node)[:] = np.eye(len(marginal))
    return prior


def prototype_start(
    layout: Layout, marginals: Sequence[Floats], table: Table, rng: np.random.Generator
) -> Floats:
    """Start as a mixture with a random row for each state.

    State k of every variable is that of prototype k: a value is the prototype's or one of
    the column's, and neighbours mostly share their state. EM begins with clusters of rows
    and finds local states from there; from random tables it ends in far worse optima.
    """
    theta = np.empty(layout.size)
    states = int(np.max(layout.states))
    chance = table.weight / table.weight.sum()
    enough = np.count_nonzero(chance) >= states
    rows = rng.choice(len(table), states, replace=not enough, p=chance)
    for node, marginal in enumerate(marginals):
        k, above = int(layout.states[node]), int(layout.above[node])
        values = layout.values(theta, node)
        values[:] = marginal
        own: Ints = table.columns[node, rows[:k]]
        known = own < len(marginal)
        values[known] *= 1.0 - SHARP
        values[np.flatnonzero(known), own[known]] += SHARP
        transitions = layout.transitions(theta, node)
        transitions[:] = 1.0 / k
        if above == k:
            transitions[:] = (1.0 - STICK) / k + STICK * np.eye(k)
    return theta
