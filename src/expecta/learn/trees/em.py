"""Expectation maximisation for tree-shaped models: batches first, then all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from expecta.arrays import Floats
from expecta.learn.trees.expectation import Table, expected_counts, log_likelihoods
from expecta.learn.trees.layout import Layout

__all__ = ["Model", "Schedule", "climb", "held_out", "settle"]

FIRST_STEP, LAST_STEP = 0.5, 0.1  # weight of a new batch against the counts so far


@dataclass(frozen=True)
class Schedule:
    """How long to learn, and when to stop."""

    max_epochs: int = 100  # over all rows at once
    batch_epochs: int = 4  # before that, in batches
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


def settle(
    layout: Layout,
    starts: Sequence[Floats],
    prior: Floats,
    table: Table,
    valid: Table,
    schedule: Schedule,
    rng: np.random.Generator,
    report: Callable[[float], None],
) -> Model:
    """Learn in batches from each start, and return the one with the best held-out score.

    Stepwise EM: each batch moves the counts by a step, annealed from 0.5 to 0.1, and the
    parameters are those of the counts so far.
    """
    n_batches = max(1, len(table) // schedule.rows_per_batch(len(table)))
    steps = np.geomspace(FIRST_STEP, LAST_STEP, n_batches * schedule.batch_epochs).tolist()
    best: Model | None = None
    for theta in starts:
        counts = None
        history = []
        for epoch in range(schedule.batch_epochs):
            order = rng.permutation(len(table))
            for batch in range(n_batches):
                found = expected_counts(layout, theta, table, np.sort(order[batch::n_batches]))
                if found.weight > 0:
                    fresh = found.counts * (table.weight.sum() / found.weight)
                    step = steps[epoch * n_batches + batch]
                    counts = fresh if counts is None else (1 - step) * counts + step * fresh
                    theta = layout.normalised(counts + prior)
            history.append(held_out(layout, theta, valid))
            report(history[-1])
        score = history[-1] if history else held_out(layout, theta, valid)
        if best is None or score > best.score:
            best = Model(layout, theta, score, history)
    assert best is not None
    return best


def climb(
    model: Model,
    prior: Floats,
    table: Table,
    valid: Table,
    schedule: Schedule,
    report: Callable[[float], None],
) -> Model:
    """Take full steps of EM until the held-out score stops rising; return the best model.

    A step never lowers the likelihood of the rows times the prior.
    """
    best, theta, waited = model, model.theta, 0
    history = list(model.history)
    for _ in range(schedule.max_epochs):
        counts = expected_counts(model.layout, theta, table).counts
        theta = model.layout.normalised(counts + prior)
        score = held_out(model.layout, theta, valid)
        history.append(score)
        report(score)
        waited = 0 if score > best.score + schedule.tolerance * abs(best.score) else waited + 1
        if score > best.score:
            best = Model(model.layout, theta, score, history)
        if waited >= schedule.patience:
            break
    return best._replace(history=history)
