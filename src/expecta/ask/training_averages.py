"""Average target and output over the training rows of groups: over the rows, or from sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from expecta.ask.column_parts import ColumnGroups
from expecta.ask.credibility import RowMoments
from expecta.ask.language.query import Query
from expecta.ask.training_outputs import TrainingOutputs
from expecta.ask.uncertain_members import uncertain_sums
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
    """Training rows of a group, the average of their target, moments of the model's output."""

    rows: int | None
    mean: Average | None
    output: RowMoments | None = None
    remarks: tuple[str, ...] = ()


class TrainingAverages(NamedTuple):
    """The same of several groups."""

    rows: Ints | None
    means: Floats | None
    output: RowMoments | None = None
    remarks: tuple[str, ...] = ()


def training_average(subject: ExpectedOutput, query: Query) -> TrainingAverage:
    """Count the training rows that meet a condition, and average their target."""
    training = subject.training_rows
    if training is None:
        return TrainingAverage(None, None)
    if isinstance(training, GroupSums):
        totals = _totals(training, query, subject.encoder, ())
        if totals is None:
            return TrainingAverage(None, None, None, (NOT_KEPT,))
        remarks = () if totals.exact[0] else (BY_SHARE,)
        average = training.average(totals, 0, subject.of_class)
        moments = _moments_of_totals(training, totals, np.zeros(1, np.int64), subject)
        return TrainingAverage(round(float(totals.rows[0])), average, moments, remarks)
    inside = query.matches(training) & (training.weight > 0)
    average = training.average(inside, subject.of_class)
    moments = _moments(subject, query, (), np.where(inside, 0, -1), 1)
    return TrainingAverage(int(np.count_nonzero(inside)), average, moments)


def _moments(
    subject: ExpectedOutput, query: Query, cuts: Sequence[ColumnGroups], group: Ints, n_groups: int
) -> RowMoments | None:
    """Return moments of the output over the training rows of each group, -1 for none.

    Rows that may belong to a group move its mean.
    """
    outputs = TrainingOutputs.of(subject)
    if outputs is None:
        return None
    uncertain = uncertain_sums(subject, query, cuts, group, n_groups)
    inside = np.flatnonzero(group >= 0)
    group, weight, value = group[inside], outputs.weight[inside], outputs.values[inside]
    sums: Floats = np.zeros((4, n_groups))
    for i, part in enumerate((weight, weight**2, weight * value, weight * value**2)):
        sums[i] = np.bincount(group, part, n_groups)
    moments = RowMoments.from_sums(*sums)
    total = np.where(sums[0] > 0, sums[0] + uncertain.weight, np.nan)
    mean = np.where(uncertain.weight > 0, (sums[2] + uncertain.output) / total, moments.mean)
    return moments._replace(mean=mean + outputs.center)


def _moments_of_totals(
    sums: GroupSums, totals: GroupTotals, parts: Ints, subject: ExpectedOutput
) -> RowMoments | None:
    """Return moments of the output over some parts; None where there are no sums of outputs."""
    output = subject.context.output
    if output >= len(sums.output_center):
        return None
    of_output = totals.output_sums[:, output], totals.output_squares[:, output]
    columns = (totals.weight, totals.weight_squares, *of_output)
    moments = RowMoments.from_sums(*(column[parts] for column in columns))
    return moments._replace(mean=moments.mean + sums.output_center[output])


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
            return TrainingAverages(None, None, None, (NOT_KEPT,))
        rows = np.rint(totals.rows[wanted]).astype(np.int64)
        for line, part in enumerate(wanted.tolist()):
            mean = training.average(totals, part, subject.of_class)
            average[line] = np.nan if mean is None else mean.mean
        moments = _moments_of_totals(training, totals, wanted, subject)
        remarks = () if totals.exact[wanted].all() else (BY_SHARE,)
        return TrainingAverages(rows, average, moments, remarks)
    groups = np.stack([cut.group_of(training) for cut in cuts])
    inside = np.all(groups >= 0, axis=0) & (training.weight > 0)
    inside &= given.matches(training)
    group = np.ravel_multi_index(tuple(groups[:, inside]), sizes)
    n_groups = int(np.prod(sizes))
    rows = np.bincount(group, minlength=n_groups)[wanted]
    of_row = np.full(len(training), -1)
    of_row[inside] = group
    moments = _moments(subject, given, cuts, of_row, n_groups)
    outcome = training.outcome(subject.of_class)
    if outcome is not None:
        weight = training.weight[inside]
        total, weights = (
            np.bincount(group, values, minlength=n_groups)[wanted]
            for values in (weight * outcome[inside], weight)
        )
        np.divide(total, weights, out=average, where=rows > 1)
    if moments is not None:
        moments = RowMoments(*(part[wanted] for part in moments))
    return TrainingAverages(rows, average, moments)


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
