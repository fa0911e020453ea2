"""Learn tree-shaped models by expectation maximisation: batches first, then all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.learn.trees.expectation import TreeRows, expected_counts, log_likelihoods
from expecta.learn.trees.layout import TreeLayout
from expecta.learn.trees.tree_priors import TreePrior

MIN_BATCHES = 10  # from which on rows are learned in batches, before the steps over all
MIN_STEP = 0.1  # weight of the last batch against the counts so far
HEAT_EPOCHS = 8  # over all rows, until half of the starts are left
STAY_PROBABILITY = 0.8  # of the same state at parent and child, at the start
PROTOTYPE_SHARE = 0.5  # of the prototype's own value against the column's distribution


@dataclass(frozen=True)
class EMSchedule:
    """How long to learn, and when to stop."""

    max_epochs: int = 100  # over all rows at once, at least one
    batch_epochs: int = 4  # in batches before that, if there are at least ten of them
    batch_size: int | None = None
    first_step: float = 0.5  # weight of the first batches against the counts so far
    patience: int = 4  # epochs without a better score
    tolerance: float = 1e-4  # relative gain that counts as better

    def rows_per_batch(self, n_rows: int) -> int:
        """Return the size of a batch: by default a twentieth of the rows, within limits."""
        return self.batch_size or max(256, min(4096, n_rows // 20))


class EMProblem(NamedTuple):
    """What all starts learn from, and how."""

    prior: TreePrior
    rows: TreeRows
    held_out: TreeRows | None  # None: the score is that of the rows themselves
    schedule: EMSchedule
    report: Callable[..., None]  # told the score after each epoch


class TreeModel(NamedTuple):
    """A tree-shaped model, its score, and how it was reached."""

    layout: TreeLayout
    theta: Floats
    score: float  # mean log-likelihood of the held-out rows, or of the rows before the last step
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
    """Learn in batches: each moves the counts by a step that is annealed to 0.1.

    The parameters are those of the counts so far (stepwise EM).
    """
    rows, schedule = problem.rows, problem.schedule
    n_batches = len(rows) // schedule.rows_per_batch(len(rows))
    epochs = schedule.batch_epochs if n_batches >= MIN_BATCHES else 0
    steps = iter(np.geomspace(schedule.first_step, MIN_STEP, n_batches * epochs).tolist())
    counts = None
    history = []
    for _ in range(epochs):
        order = rng.permutation(len(rows))
        total = 0.0
        for batch in range(n_batches):
            expected = expected_counts(layout, theta, rows, np.sort(order[batch::n_batches]))
            scale, step = rows.weight.sum() / expected.weight, next(steps)
            if counts is None:
                counts = expected.counts * scale
            else:
                counts *= 1 - step
                counts += (step * scale) * expected.counts
            theta = problem.prior.maximise(counts, theta)
            total += expected.log_likelihood
        history.append(_score(layout, theta, problem, total / rows.weight.sum()))
        problem.report(history[-1])
    return TreeModel(layout, theta, history[-1] if history else -np.inf, history)


def climb(model: TreeModel, problem: EMProblem) -> TreeModel:
    """Take full steps of EM until the score stops rising; return the best model.

    A start that has not learned yet is no candidate, however lucky its score.
    """
    schedule = problem.schedule
    best = model if model.history else model._replace(score=-np.inf)
    theta, waited = model.theta, 0
    history = list(model.history)
    for _ in range(max(1, schedule.max_epochs)):
        expected = expected_counts(model.layout, theta, problem.rows)
        theta = problem.prior.maximise(expected.counts, theta)
        score = _score(model.layout, theta, problem, expected.log_likelihood / expected.weight)
        history.append(score)
        problem.report(score)
        goal = best.score + schedule.tolerance * abs(best.score) if best.history else -np.inf
        waited = 0 if score > goal else waited + 1
        if score > best.score:
            best = TreeModel(model.layout, theta, score, history)
        if waited >= schedule.patience:
            break
    return best._replace(history=history)


def _score(layout: TreeLayout, theta: Floats, problem: EMProblem, before: float) -> float:
    """Score parameters on held-out rows; else by the rows before the step, which is free."""
    if problem.held_out is None:
        return before
    return mean_log_likelihood(layout, theta, problem.held_out)


# -- where learning starts from -------------------------------------------------------


def prototype_start(
    layout: TreeLayout, marginals: Sequence[Floats], rows: TreeRows, rng: np.random.Generator
) -> Floats:
    """Start as a mixture with a random row for each state that all variables share.

    State k of every variable is that of prototype k: a value is the prototype's or one of
    the column's, and neighbours mostly share their state. EM begins with clusters of rows
    and finds local states from there; from random tables it ends in far worse optima. Clamped
    states emit the prototype's value alone, and one further state every value.
    """
    theta = np.empty(layout.size)
    shared = layout.shared
    chance = rows.weight / rows.weight.sum()
    enough = np.count_nonzero(chance) >= shared
    prototypes = rng.choice(len(rows), shared, replace=not enough, p=chance)
    for node, marginal in enumerate(marginals):
        k, card = int(layout.states[node]), len(marginal)
        values = layout.values(theta, node)
        codes: Ints = rows.columns[node, prototypes].astype(np.int64)
        known = codes < card
        if k > shared:
            codes = np.where(known, codes, rng.choice(card, shared, p=marginal))
            values[:] = np.eye(card)[np.append(codes, np.arange(k - shared) % card)]
        else:
            values[:] = marginal
            values[known] *= 1.0 - PROTOTYPE_SHARE
            values[np.flatnonzero(known), codes[known]] += PROTOTYPE_SHARE
        transitions = layout.transitions(theta, node)
        transitions[:] = 1.0 / k
        if len(transitions) > 1:
            same = np.arange(shared)
            transitions[same] *= 1.0 - STAY_PROBABILITY
            transitions[same, same] += STAY_PROBABILITY
    return theta
