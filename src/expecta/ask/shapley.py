"""Compute conditional Shapley values of a row's known columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.special import comb

from expecta.ask.language.query import Query, build_evidence
from expecta.ask.populations import cell_labels
from expecta.ask.printed_answer import PrintedAnswer
from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import DomainError
from expecta.common.text import counted, number
from expecta.expected.expected_output import Answer, ExpectedOutput

MAX_COLUMNS = 16  # known columns up to which all coalitions are asked
MAX_SAMPLED_COLUMNS = 12  # the same, where the mean of each is sampled
PAIRS = 8  # of permutations and their reverses, at a time
MAX_BATCH = 1 << 16  # coalitions at a time

Coalitions: TypeAlias = Callable[[Ints, Bools], Answer]


@dataclass(frozen=True, eq=False)
class Shapley(PrintedAnswer):
    """What each known column of each row adds to the expected output.

    Attributes
    ----------
    name
        What is predicted.
    columns
        The columns, in the table's order.
    base
        The expected output when nothing is known.
    prediction
        The expected output of each row: the base and the row's values add up to it.  # (rows,)
    values, error
        Shapley value of each column, NaN where it is unknown, and its error.  # (rows, columns)
    known
        What each row has in each column, as text; empty where unknown.
    exact
        Whether all coalitions of a row's columns were asked.  # (rows,)
    """

    name: str
    columns: tuple[str, ...]
    base: float
    prediction: Floats
    values: Floats
    error: Floats
    known: tuple[tuple[str, ...], ...]
    exact: Bools
    exactness: str

    display = "ShapleyDisplay"

    def lines(self) -> dict[str, Any]:
        """Return a line per row and known column, the largest first."""
        sizes = np.where(np.isnan(self.values), -1.0, np.abs(self.values))
        order = np.argsort(-sizes, axis=1, kind="stable")
        rows = np.repeat(np.arange(len(order)), order.shape[1])
        known = sizes[rows, order.ravel()] >= 0
        rows, columns = rows[known], order.ravel()[known]
        pairs = list(zip(rows.tolist(), columns.tolist(), strict=True))
        return {
            "row": rows.tolist(),
            "column": [self.columns[column] for _, column in pairs],
            "known": [self.known[row][column] for row, column in pairs],
            "adds": self.values[rows, columns],
            "error": self.error[rows, columns],
        }

    def head(self) -> list[str]:
        """Return the sentence before the table."""
        row = f", {number(self.prediction[0])} for the row" if len(self.prediction) == 1 else ""
        return [f"{self.name}: {number(self.base)} when nothing is known{row}"]

    def notes(self) -> list[str]:
        """Return the sentences after it."""
        estimated = int(np.count_nonzero(~self.exact))
        if not estimated:
            return []
        return [
            f"Estimated from permutations of the columns, with standard errors: "
            f"{counted(estimated, 'row')}."
        ]


def shapley(
    subject: ExpectedOutput,
    rows: Any,
    random_state: int = 0,
    rtol: float = 0.01,
    permutations: int = 512,
) -> Shapley:
    """Compute conditional Shapley values; see :meth:`Asking.shapley`.

    All coalitions of up to 16 columns are asked, of up to 12 where means are sampled. Orders of
    more columns are drawn until all errors are ``rtol`` times the row's largest value, or until
    there are ``permutations``.
    """
    table = subject.table(rows)
    codes = subject.encoder.codes(table)
    known = codes >= 0
    values, error = np.full((2, *codes.shape), np.nan)
    size = known.sum(axis=1)
    most = MAX_SAMPLED_COLUMNS if subject.samples_mean else MAX_COLUMNS

    def expect(rows: Ints, told: Bools) -> Answer:
        """Compute the expected output of rows of which only some columns are told."""
        return subject.mean_of_rows(table, rows, ~told)

    for k in np.unique(size[size <= most]).tolist():
        alike = np.flatnonzero(size == k)
        for part in np.array_split(alike, 1 + (len(alike) << k) // MAX_BATCH):
            if len(part):
                columns = np.nonzero(known[part])[1].reshape(len(part), k)
                at = part[:, None], columns
                values[at], error[at] = _all_coalitions(
                    expect, part, columns, codes.shape[1], subject.samples_mean
                )
    rng = np.random.default_rng(random_state)
    for row in np.flatnonzero(size > most).tolist():
        told = known[row]
        values[row, told], error[row, told] = _orders(expect, row, told, rng, rtol, permutations)
    prediction, _ = expect(np.arange(len(codes)), known)
    base, _ = expect(np.zeros(min(1, len(codes)), int), np.zeros_like(known[:1]))
    return Shapley(
        subject.name,
        tuple(subject.columns),
        float(base[0]) if len(base) else np.nan,
        prediction,
        values,
        error,
        cell_labels(subject.encoder, codes),
        size <= most,
        subject.exactness,
    )


def shapley_of_facts(subject: ExpectedOutput, facts: Mapping[str, Any]) -> Shapley:
    """Share the expected output of a group among its facts: values, sets and intervals of columns.

    The value of a coalition is E[output | the facts in it], as `ask` has it, so that base and
    values add up to the group's mean. As exact as means are; with up to 16 facts, of which each is
    about one column. Cost: 2^facts expectations.
    """
    encoder = subject.encoder
    given = {encoder.variable(name): encoder.column(name).weights(facts[name]) for name in facts}
    weights = {variable: part for variable, part in given.items() if part is not None}
    width = len(subject.columns)
    if len(weights) > MAX_COLUMNS:
        raise DomainError(f"{len(weights)} facts are more than {MAX_COLUMNS}; give fewer")

    def expect(rows: Ints, told: Bools) -> Answer:
        parts = [[(v, weights[v]) for v in np.flatnonzero(mask).tolist()] for mask in told]
        evidence = build_evidence(encoder.cardinalities_.tolist(), parts)
        return subject.mean(subject.taken(evidence))

    columns = np.array([sorted(weights)], np.int64)
    known = np.zeros((1, width), np.bool_)
    known[0, columns[0]] = True
    values, error = np.full((2, 1, width), np.nan)
    row = np.zeros(1, np.int64)
    values[known], error[known] = (
        part[0] for part in _all_coalitions(expect, row, columns, width, subject.samples_mean)
    )
    texts = {encoder.variable(n): str(Query.read({n: facts[n]}, encoder)) for n in facts}
    return Shapley(
        subject.name,
        tuple(subject.columns),
        float(expect(row, ~known & False)[0][0]),
        expect(row, known)[0],
        values,
        error,
        (tuple(texts[v] if v in weights else "" for v in range(width)),),
        np.ones(1, np.bool_),
        subject.exactness,
    )


def _all_coalitions(
    expect: Coalitions, rows: Ints, columns: Ints, width: int, sampled: bool
) -> tuple[Floats, Floats]:
    """Compute the values of rows with k known columns, from all coalitions.  # (rows, k)."""
    k = columns.shape[1]
    masks = np.arange(1 << k)
    member = (masks[:, None] >> np.arange(k)) & 1 == 1  # (coalitions, k)
    told = np.zeros((len(rows), len(masks), width), np.bool_)
    np.put_along_axis(told, np.repeat(columns[:, None], len(masks), 1), member[None], axis=2)
    answer = expect(np.repeat(rows, len(masks)), told.reshape(-1, width))
    worth, loose = (part.reshape(len(rows), -1) for part in answer)
    size = member.sum(axis=1)
    values, error = np.zeros((2, *columns.shape))
    for i in range(k):
        without = masks[~member[:, i]]
        weight = 1.0 / (k * comb(k - 1, size[without]))
        values[:, i] = (worth[:, without | 1 << i] - worth[:, without]) @ weight
        both = np.stack([loose[:, without | 1 << i], loose[:, without]])
        bound = np.sqrt((both**2).sum(axis=0) @ weight**2) if sampled else both.sum(axis=0) @ weight
        error[:, i] = bound
    return values, error


def _orders(
    expect: Coalitions,
    row: int,
    known: Bools,
    rng: np.random.Generator,
    rtol: float,
    permutations: int,
) -> tuple[Floats, Floats]:
    """Estimate the values of one row; an order and its reverse are one observation."""
    k = int(known.sum())
    batches: list[Floats] = []
    while True:
        orders = np.array([rng.permutation(k) for _ in range(PAIRS)])
        orders = np.stack([orders, orders[:, ::-1]], axis=1).reshape(-1, k)
        rank = np.argsort(orders, axis=1)
        member = rank[:, None, :] < np.arange(k + 1)[:, None]  # (orders, k + 1, k)
        told = np.zeros((len(orders) * (k + 1), len(known)), np.bool_)
        told[:, known] = member.reshape(-1, k)
        worth, _ = expect(np.full(len(told), row), told)
        added = np.take_along_axis(np.diff(worth.reshape(len(orders), k + 1), axis=1), rank, axis=1)
        batches.append(added.reshape(PAIRS, 2, k).mean(axis=1))
        pairs = np.concatenate(batches)
        mean = pairs.mean(axis=0)
        error = pairs.std(axis=0, ddof=1) / np.sqrt(len(pairs))
        if not error.max() > rtol * np.abs(mean).max() or 2 * len(pairs) >= permutations:
            return mean, error
