"""Average the target over the training rows of groups: over the rows, or from sums over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from expecta.ask.column_parts import ColumnGroups
from expecta.ask.language.query import Query
from expecta.common.arrays import Floats, Ints
from expecta.expected.expected_output import ExpectedOutput
from expecta.tables.encoder import Encoder
from expecta.tables.group_sums import GroupSums, GroupTotals
from expecta.tables.training_rows import Average

MAX_CODES = 1 << 22  # combinations of two columns' values that are looked through
NOT_KEPT = (
    "Training rows are not in the model's file, and its sums are over groups of one or two "
    "columns; to keep the rows: save(path, rows=True) or expecta fit --rows."
)
BY_SHARE = (
    "Training rows are not in the model's file: their number and average are approximate, from "
    "sums over groups of values, which count by their share."
)


class TrainingAverage(NamedTuple):
    """Training rows of a group, the average of their target, and what to bear in mind."""

    rows: int | None
    mean: Average | None
    remarks: tuple[str, ...] = ()


class TrainingAverages(NamedTuple):
    """The same of several groups."""

    rows: Ints | None
    means: Floats | None
    remarks: tuple[str, ...] = ()


def training_average(subject: ExpectedOutput, query: Query) -> TrainingAverage:
    """Count the training rows that meet a condition, and average their target."""
    training = subject.training_rows
    if training is None:
        return TrainingAverage(None, None)
    if isinstance(training, GroupSums):
        totals = _totals(training, query, subject.encoder, ())
        if totals is None:
            return TrainingAverage(None, None, (NOT_KEPT,))
        remarks = () if totals.exact[0] else (BY_SHARE,)
        average = training.average(totals, 0, subject.of_class)
        return TrainingAverage(round(float(totals.rows[0])), average, remarks)
    inside = query.matches(training) & (training.weight > 0)
    average = training.average(inside, training.outcome(subject.of_class))
    return TrainingAverage(int(np.count_nonzero(inside)), average)


def training_averages(
    subject: ExpectedOutput, given: Query, cuts: Sequence[ColumnGroups], index: Ints
) -> TrainingAverages:
    """Count the training rows of the groups of columns within a population; average their target.

    ``index`` says which groups of the columns each line is of.  # (lines, columns)
    """
    training = subject.training_rows
    if training is None:
        return TrainingAverages(None, None)
    sizes = [len(cut.labels) for cut in cuts]
    wanted = np.ravel_multi_index(tuple(index.T), sizes)
    average: Floats = np.full(len(wanted), np.nan)
    if isinstance(training, GroupSums):
        totals = _totals(training, given, subject.encoder, cuts)
        if totals is None:
            return TrainingAverages(None, None, (NOT_KEPT,))
        rows = np.rint(totals.rows[wanted]).astype(np.int64)
        for line, part in enumerate(wanted.tolist()):
            mean = training.average(totals, part, subject.of_class)
            average[line] = np.nan if mean is None else mean.mean
        return TrainingAverages(rows, average, () if totals.exact[wanted].all() else (BY_SHARE,))
    groups = np.stack([cut.group_of(training) for cut in cuts])
    inside = np.all(groups >= 0, axis=0) & (training.weight > 0)
    inside &= given.matches(training)
    group = np.ravel_multi_index(tuple(groups[:, inside]), sizes)
    rows = np.bincount(group, minlength=int(np.prod(sizes)))[wanted]
    outcome = training.outcome(subject.of_class)
    if outcome is not None:
        weight = training.weight[inside]
        total, weights = (
            np.bincount(group, values, minlength=int(np.prod(sizes)))[wanted]
            for values in (weight * outcome[inside], weight)
        )
        np.divide(total, weights, out=average, where=rows > 1)
    return TrainingAverages(rows, average)


def _totals(
    sums: GroupSums, query: Query, encoder: Encoder, cuts: Sequence[ColumnGroups]
) -> GroupTotals | None:
    """Return the totals of a condition within the groups of columns; None for more than two."""
    query = Query.read(query, encoder)
    named = {variable for box in query.boxes for variable, _ in box}
    variables = tuple(sorted(named | {cut.variable for cut in cuts}))
    table = sums.tables.get(variables)
    sizes = [encoder.columns_[v].cardinality for v in variables]
    if table is None or np.prod(sizes) > MAX_CODES:
        return None
    share: Floats = np.zeros(sizes)
    for box in query.boxes:
        facts = dict(box)
        inside: Floats = np.ones(())
        for v, size in zip(variables, sizes, strict=True):
            weights = facts[v].weights(encoder.columns_[v]) if v in facts else np.ones(size)
            inside = np.multiply.outer(inside, weights)
        share += inside
    part = np.zeros(sizes, np.int64)
    for cut in cuts:
        shape = [-1 if v == cut.variable else 1 for v in variables]
        part = part * len(cut.labels) + cut.group.reshape(shape)
    n_parts = int(np.prod([len(cut.labels) for cut in cuts]))
    counts = [sums.counts[v] for v in variables]
    return table.divide(counts, part, np.minimum(share, 1.0), n_parts)
