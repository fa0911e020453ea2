"""Expectation maximisation for tree-shaped models: batches first, then all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from expecta.common.arrays import Floats
from expecta.learn.trees.expectation import Table, expected_counts, log_likelihoods
from expecta.learn.trees.layout import Layout

__all__ = ["Model", "Schedule", "climb", "held_out", "learn"]

BATCH_EPOCHS = 4  # in batches, before the steps over all rows ...
LEAST_BATCHES = 10  # ... if there are so many of them
FIRST_STEP, LAST_STEP = 0.5, 0.1  # weight of a new batch against the counts so far
HEAT = 8  # steps over all rows until half of the starts are left


@dataclass(frozen=True)
class Schedule:
    """How long to learn, and when to stop."""

    max_epochs: int = 100  # over all rows at once, at least one
    batch_size: int | None = None
    patience: int = 4  # epochs without a better held-out score
    tolerance: float = 1e-4  # relative gain that counts as better

    def rows_per_batch(self, n_rows: int) -> int:
        """Return the size of a batch: by default a twentieth of the rows, within limits."""
        return self.batch_size or max(256, min(4096, n_rows // 20))


class Model(NamedTuple):
    """A tree-shaped model, its held-out score, and how it was reached."""

    layout: Layout
    theta: Floats
    score: float  # mean log-likelihood of the held-out rows
    history: list[float]  # the score after each epoch


def held_out(layout: Layout, theta: Floats, table: Table) -> float:
    """Mean log-likelihood of some rows."""
    return float(np.average(log_likelihoods(layout, theta, table), weights=table.weight))


def learn(
    layout: Layout,
    starts: Sequence[Floats],
    prior: Floats,
    table: Table,
    valid: Table,
    schedule: Schedule,
    rng: np.random.Generator,
    report: Callable[[float], None],
) -> Model:
    """Learn from the best of several starts.

    All of them learn in batches, if the rows are many; then the better half goes on with a
    few steps over all rows, and so on, until one is left, which goes on to the end.
    """
    models = [_settle(layout, s, prior, table, valid, schedule, rng, report) for s in starts]
    heat = replace(schedule, max_epochs=min(HEAT, schedule.max_epochs))
    while len(models) > 1:
        models = [climb(model, prior, table, valid, heat, report) for model in models]
        models.sort(key=lambda model: -model.score)
        models = models[: len(models) // 2]
    return climb(models[0], prior, table, valid, schedule, report)


def _settle(
    layout: Layout,
    theta: Floats,
    prior: Floats,
    table: Table,
    valid: Table,
    schedule: Schedule,
    rng: np.random.Generator,
    report: Callable[[float], None],
) -> Model:
    """Learn in batches: each moves the counts by a step, annealed from 0.5 to 0.1.

    The parameters are those of the counts so far (stepwise EM).
    """
    n_batches = len(table) // schedule.rows_per_batch(len(table))
    epochs = BATCH_EPOCHS if n_batches >= LEAST_BATCHES else 0
    steps = iter(np.geomspace(FIRST_STEP, LAST_STEP, n_batches * epochs).tolist())
    counts = None
    history = []
    for _ in range(epochs):
        order = rng.permutation(len(table))
        for batch in range(n_batches):
            found = expected_counts(layout, theta, table, np.sort(order[batch::n_batches]))
            fresh = found.counts * (table.weight.sum() / found.weight)
            step = next(steps)
            counts = fresh if counts is None else (1 - step) * counts + step * fresh
            theta = layout.normalised(counts + prior)
        history.append(held_out(layout, theta, valid))
        report(history[-1])
    score = history[-1] if history else held_out(layout, theta, valid)
    return Model(layout, theta, score, history)


def climb(
    model: Model,
    prior: Floats,
    table: Table,
    valid: Table,
    schedule: Schedule,
    report: Callable[[float], None],
) -> Model:
    """Take full steps of EM until the held-out score stops rising; return the best model.

    A step never lowers the likelihood of the rows times the prior. A start that has not
    learned yet is no candidate, however lucky its score.
    """
    best = model if model.history else model._replace(score=-np.inf)
    theta, waited = model.theta, 0
    history = list(model.history)
    for _ in range(max(1, schedule.max_epochs)):
        counts = expected_counts(model.layout, theta, table).counts
        theta = model.layout.normalised(counts + prior)
        score = held_out(model.layout, theta, valid)
        history.append(score)
        report(score)
        least = best.score + schedule.tolerance * abs(best.score) if best.history else -np.inf
        waited = 0 if score > least else waited + 1
        if score > best.score:
            best = Model(model.layout, theta, score, history)
        if waited >= schedule.patience:
            break
    return best._replace(history=history)
