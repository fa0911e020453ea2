"""Answers about groups against rows that were held out, in standard errors of their mean."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd

from expecta import QueryError
from expecta.ask.language.query import Query

from .data import Task

SOURCES = ("both", "rows", "density", "averages")
MIN_ROWS = 30  # of a group, among training rows and among held-out rows
MAX_PAIRS = 60  # groups by two columns
MAX_LEVELS = 8  # values of a column that groups are made of


def facts_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Groups by one column: each frequent value, or each quarter of the numbers."""
    groups: list[dict[str, Any]] = []
    for name, cells in table.items():
        known = cells.dropna()
        values = known.value_counts().index[:MAX_LEVELS]
        if not pd.api.types.is_numeric_dtype(cells) or known.nunique() <= MAX_LEVELS:
            groups += [{name: value} for value in values]
        else:
            cuts = np.unique(np.quantile(known, [0, 0.25, 0.5, 0.75, 1]))
            groups += [{name: (float(a), float(b))} for a, b in pairwise(cuts)]
    return groups


def group_errors(model: Any, task: Task, seed: int) -> dict[str, dict[str, float]]:
    """For each source: median error, share beyond three, signs of differences between groups.

    The truth is the mean of the target over held-out rows. A group by one column is compared
    with all rows: "right signs" is how often the answer lies on the side where the held-out mean
    lies, where that is two standard errors away. "averages" are those of the training target.
    """
    of = int(np.bincount(task.y).argmax()) if task.kind == "classification" else None
    y, held = (values if of is None else values == of for values in (task.y, task.y_rest))
    y, held = np.asarray(y, float), np.asarray(held, float)
    single = facts_of(task.X)
    pairs = [a | b for a, b in combinations(single, 2) if a.keys() != b.keys()]
    pick = np.random.default_rng(seed).permutation(len(pairs))
    errors: list[list[float]] = []
    signs: list[list[bool]] = []
    asked = 0
    for facts in [*single, *(pairs[k] for k in pick)]:
        if len(facts) > 1 and asked == MAX_PAIRS:
            break
        try:
            query = Query.read(facts, model.encoder_)
        except QueryError:  # a category so rare that the density knows it as one of others
            continue
        inside, there = query.matches(task.X), query.matches(task.rest)
        spread = held[there].std(ddof=1) if there.sum() >= MIN_ROWS else 0.0
        if inside.sum() < MIN_ROWS or spread == 0.0:
            continue
        asked += len(facts) > 1
        group = model.ask(query, of=of)
        answers = np.array([group.mean, group.rows_output, group.density_mean, y[inside].mean()])
        truth, error = held[there].mean(), spread / np.sqrt(there.sum())
        errors.append(list(np.abs(answers - truth) / error))
        if len(facts) == 1 and abs(truth - held.mean()) > 2 * error:
            signs.append(list((answers > y.mean()) == (truth > held.mean())))
    if not errors:
        return {source: {"groups": 0.0} for source in SOURCES}
    table, right = np.array(errors), np.array(signs).reshape(-1, len(SOURCES))
    return {
        source: {
            "groups": float(len(table)),
            "median error": float(np.median(table[:, k])),
            "beyond three": float(np.mean(table[:, k] > 3)),
            "signs": float(len(right)),
        }
        | ({"right signs": float(right[:, k].mean())} if len(right) else {})
        for k, source in enumerate(SOURCES)
    }
