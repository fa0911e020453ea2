"""Learn tree-shaped models by expectation maximisation: batches first, then all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.learn.trees.expectation import TreeRows, expected_counts, log_likelihoods
from expecta.learn.trees.layout import TreeLayout

BATCH_EPOCHS = 4  # in batches, before the steps over all rows ...
MIN_BATCHES = 10  # ... if there are so many of them
FIRST_STEP, LAST_STEP = 0.5, 0.1  # weight of a new batch against the counts so far
HEAT_EPOCHS = 8  # over all rows, until half of the starts are left
STAY_PROBABILITY = 0.8  # of the same state at parent and child, at the start
PROTOTYPE_SHARE = 0.5  # of the prototype's own value against the column's distribution


@dataclass(frozen=True)
class EMSchedule:
    """How long to learn, and when to stop."""

    max_epochs: int = 100  # over all rows at once, at least one
    batch_size: int | None = None
    patience: int = 4  # epochs without a better held-out score
    tolerance: float = 1e-4  # relative gain that counts as better

    def rows_per_batch(self, n_rows: int) -> int:
        """Return the size of a batch: by default a twentieth of the rows, within limits."""
        return self.batch_size or max(256, min(4096, n_rows // 20))


class EMProblem(NamedTuple):
    """What all starts learn from, and how."""

    prior: Floats  # counts to add, laid out like θ
    rows: TreeRows
    held_out: TreeRows
    schedule: EMSchedule
    report: Callable[..., None]  # told the held-out score after each epoch


class TreeModel(NamedTuple):
    """A tree-shaped model, its held-out score, and how it was reached."""

    layout: TreeLayout
    theta: Floats
    score: float  # mean log-likelihood of the held-out rows
    history: list[float]  # the score after each epoch


def mean_log_likelihood(layout: TreeLayout, theta: Floats, rows: TreeRows) -> float:
    """Return the mean log-likelihood of rows, by their weights."""
    return float(np.average(log_likelihoods(layout, theta, rows), weights=rows.weight))


def learn(
    layout: TreeLayout, starts: Sequence[Floats], problem: EMProblem, rng: np.random.Generator
) -> TreeModel:
    """Learn from the best of several starts.

    All of them learn in batches, if the rows are many; then the better half goes on with a
    few steps over all rows, and so on, until one is left, which goes on to the end.
    """
    models = [_settle(layout, theta, problem, rng) for theta in starts]
    epochs = min(HEAT_EPOCHS, problem.schedule.max_epochs)
    heat = problem._replace(schedule=replace(problem.schedule, max_epochs=epochs))
    while len(models) > 1:
        models = [climb(model, heat) for model in models]
        models.sort(key=lambda model: -model.score)
        models = models[: len(models) // 2]
    return climb(models[0], problem)


def _settle(
    layout: TreeLayout, theta: Floats, problem: EMProblem, rng: np.random.Generator
) -> TreeModel:
    """Learn in batches: each moves the counts by a step, annealed from 0.5 to 0.1.

    The parameters are those of the counts so far (stepwise EM).
    """
    rows = problem.rows
    n_batches = len(rows) // problem.schedule.rows_per_batch(len(rows))
    epochs = BATCH_EPOCHS if n_batches >= MIN_BATCHES else 0
    steps = iter(np.geomspace(FIRST_STEP, LAST_STEP, n_batches * epochs).tolist())
    counts = None
    history = []
    for _ in range(epochs):
        order = rng.permutation(len(rows))
        for batch in range(n_batches):
            expected = expected_counts(layout, theta, rows, np.sort(order[batch::n_batches]))
            new = expected.counts * (rows.weight.sum() / expected.weight)
            step = next(steps)
            counts = new if counts is None else (1 - step) * counts + step * new
            theta = layout.normalised(counts + problem.prior)
        history.append(mean_log_likelihood(layout, theta, problem.held_out))
        problem.report(history[-1])
    score = history[-1] if history else mean_log_likelihood(layout, theta, problem.held_out)
    return TreeModel(layout, theta, score, history)


def climb(model: TreeModel, problem: EMProblem) -> TreeModel:
    """Take full steps of EM until the held-out score stops rising; return the best model.

    A step never lowers the likelihood of the rows times the prior. A start that has not
    learned yet is no candidate, however lucky its score.
    """
    schedule = problem.schedule
    best = model if model.history else model._replace(score=-np.inf)
    theta, waited = model.theta, 0
    history = list(model.history)
    for _ in range(max(1, schedule.max_epochs)):
        counts = expected_counts(model.layout, theta, problem.rows).counts
        theta = model.layout.normalised(counts + problem.prior)
        score = mean_log_likelihood(model.layout, theta, problem.held_out)
        history.append(score)
        problem.report(score)
        goal = best.score + schedule.tolerance * abs(best.score) if best.history else -np.inf
        waited = 0 if score > goal else waited + 1
        if score > best.score:
            best = TreeModel(model.layout, theta, score, history)
        if waited >= schedule.patience:
            break
    return best._replace(history=history)


# -- where learning starts from, and what it is pulled towards ------------------------


def prior_counts(layout: TreeLayout, marginals: Sequence[Floats], pseudo_count: float) -> Floats:
    """Return counts to add: to transitions evenly, to values as in the whole column.

    ``marginals`` are the distributions of the columns, in the order of the tree's nodes.
    """
    prior = np.empty(layout.size)
    for node, marginal in enumerate(marginals):
        layout.transitions(prior, node)[:] = pseudo_count / layout.states[node]
        layout.values(prior, node)[:] = pseudo_count * marginal
    return prior


def visible_prior(layout: TreeLayout, marginals: Sequence[Floats], pseudo_count: float) -> Floats:
    """Return counts to add where the states are the values: these stay what they are."""
    prior = np.empty(layout.size)
    for node, marginal in enumerate(marginals):
        layout.transitions(prior, node)[:] = pseudo_count * marginal
        layout.values(prior, node)[:] = np.eye(len(marginal))
    return prior


def prototype_start(
    layout: TreeLayout, marginals: Sequence[Floats], rows: TreeRows, rng: np.random.Generator
) -> Floats:
    """Start as a mixture with a random row for each state.

    State k of every variable is that of prototype k: a value is the prototype's or one of
    the column's, and neighbours mostly share their state. EM begins with clusters of rows
    and finds local states from there; from random tables it ends in far worse optima.
    """
    theta = np.empty(layout.size)
    states = int(np.max(layout.states))
    chance = rows.weight / rows.weight.sum()
    enough = np.count_nonzero(chance) >= states
    prototypes = rng.choice(len(rows), states, replace=not enough, p=chance)
    for node, marginal in enumerate(marginals):
        k, above = int(layout.states[node]), int(layout.above[node])
        values = layout.values(theta, node)
        values[:] = marginal
        codes: Ints = rows.columns[node, prototypes[:k]]
        known = codes < len(marginal)
        values[known] *= 1.0 - PROTOTYPE_SHARE
        values[np.flatnonzero(known), codes[known]] += PROTOTYPE_SHARE
        transitions = layout.transitions(theta, node)
        transitions[:] = 1.0 / k
        if above == k:
            transitions[:] = (1.0 - STAY_PROBABILITY) / k + STAY_PROBABILITY * np.eye(k)
    return theta
