"""Average target and output over the training rows of groups: over the rows, or from sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from expecta.ask.column_parts import ColumnGroups
from expecta.ask.credibility import RowMoments
from expecta.ask.language.query import Query
from expecta.ask.training_outputs import TrainingOutputs
from expecta.ask.uncertain_members import (
    LeftOut,
    UncertainSums,
    uncertain_sums,
    uncertain_totals,
)
from expecta.common.arrays import Floats, Ints
from expecta.expected.expected_output import ExpectedOutput
from expecta.tables.encoder import Encoder
from expecta.tables.group_sums import GroupSums, GroupTable, GroupTotals
from expecta.tables.training_rows import Average

ROUNDING = 1e-9  # of a weight: below, no row lacks a column
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
        query = Query.read(query, subject.encoder)
        table = _table(training, query, ())
        totals = None if table is None else _totals(training, table, query, subject.encoder, ())
        if table is None or totals is None:
            return TrainingAverage(None, None, None, (NOT_KEPT,))
        remarks = () if totals.exact[0] else (BY_SHARE,)
        average = training.average(totals, 0, subject.of_class)
        left_out = _left_out(training, table, totals, query, (), subject)
        uncertain = uncertain_totals(subject, left_out, query, ())
        moments = _moments_of_totals(training, totals, uncertain, np.zeros(1, np.int64), subject)
        return TrainingAverage(round(float(totals.rows[0])), average, moments, remarks)
    inside = query.matches(training) & (training.weight > 0)
    average = training.average(inside, subject.of_class)
    moments = _moments(subject, query, (), np.where(inside, 0, -1), 1)
    return TrainingAverage(int(np.count_nonzero(inside)), average, moments)


def _moments(
    subject: ExpectedOutput, query: Query, cuts: Sequence[ColumnGroups], group: Ints, n_groups: int
) -> RowMoments | None:
    """Return moments of the output over the training rows of each group, -1 for none."""
    outputs = TrainingOutputs.of(subject)
    if outputs is None:
        return None
    uncertain = uncertain_sums(subject, query, cuts, group, n_groups)
    inside = np.flatnonzero(group >= 0)
    group, weight, value = group[inside], outputs.weight[inside], outputs.values[inside]
    sums: Floats = np.zeros((4, n_groups))
    for i, part in enumerate((weight, weight**2, weight * value, weight * value**2)):
        sums[i] = np.bincount(group, part, n_groups)
    return _with_uncertain(sums, uncertain, outputs.center)


def _with_uncertain(sums: Floats, uncertain: UncertainSums, center: float) -> RowMoments:
    """Return moments by sums of weights, their squares, outputs and their squares.

    Rows that may belong to a group move its mean.
    """
    moments = RowMoments.from_sums(*sums)
    total = np.where(sums[0] > 0, sums[0] + uncertain.weight, np.nan)
    mean = np.where(uncertain.weight > 0, (sums[2] + uncertain.output) / total, moments.mean)
    noise = np.nan_to_num(uncertain.sampling_variance(mean, total)) * moments.size
    return moments._replace(mean=mean + center, variance=moments.variance + noise)


def _moments_of_totals(
    sums: GroupSums,
    totals: GroupTotals,
    uncertain: UncertainSums,
    parts: Ints,
    subject: ExpectedOutput,
) -> RowMoments | None:
    """Return moments of the output over some parts; None where there are no sums of outputs."""
    output = subject.context.output
    if output >= len(sums.output_center):
        return None
    of_output = totals.output_sums[:, output], totals.output_squares[:, output]
    columns = np.stack([totals.weight, totals.weight_squares, *of_output])[:, parts]
    uncertain = UncertainSums(*(column[parts] for column in uncertain))
    return _with_uncertain(columns, uncertain, float(sums.output_center[output]))


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
        given = Query.read(given, subject.encoder)
        table = _table(training, given, cuts)
        totals = None if table is None else _totals(training, table, given, subject.encoder, cuts)
        if table is None or totals is None:
            return TrainingAverages(None, None, None, (NOT_KEPT,))
        rows = np.rint(totals.rows[wanted]).astype(np.int64)
        for line, part in enumerate(wanted.tolist()):
            mean = training.average(totals, part, subject.of_class)
            average[line] = np.nan if mean is None else mean.mean
        left_out = _left_out(training, table, totals, given, cuts, subject)
        uncertain = uncertain_totals(subject, left_out, given, cuts)
        moments = _moments_of_totals(training, totals, uncertain, wanted, subject)
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


def _table(sums: GroupSums, query: Query, cuts: Sequence[ColumnGroups]) -> GroupTable | None:
    """Return the sums over cells of the columns that matter; None for more than two."""
    named = {variable for box in query.boxes for variable, _ in box}
    return sums.tables.get(tuple(sorted(named | {cut.variable for cut in cuts})))


def _left_out(
    sums: GroupSums,
    table: GroupTable,
    totals: GroupTotals,
    query: Query,
    cuts: Sequence[ColumnGroups],
    subject: ExpectedOutput,
) -> LeftOut | None:
    """Return what is known of rows that lack a column of a table; None if there are none.

    Of two columns it is known where one divides a condition on the other, which rows meet or not.
    """
    output = subject.context.output
    if output >= len(sums.output_center):
        return None
    if len(table.variables) == 1:
        base, among = sums.tables[()], Query.read(None, subject.encoder)
        before = float(base.weight[0]), float(base.output_sums[0, output])
        inside = float(table.weight.sum()), float(table.output_sums[:, output].sum())
    else:
        other = _table(sums, query, ())
        if len(cuts) != 1 or other is None or len(other.variables) != 1:
            return None
        met = _totals(sums, other, query, subject.encoder, ())
        if met is None or cuts[0].variable in other.variables:
            return None
        among = query
        before = float(met.weight[0]), float(met.output_sums[0, output])
        inside = float(totals.weight.sum()), float(totals.output_sums[:, output].sum())
    weight, total = before[0] - inside[0], before[1] - inside[1]
    return LeftOut(weight, total, among) if weight > ROUNDING * before[0] else None


def _totals(
    sums: GroupSums,
    table: GroupTable,
    query: Query,
    encoder: Encoder,
    cuts: Sequence[ColumnGroups],
) -> GroupTotals | None:
    """Return the totals of a condition within the groups of columns; None for too many."""
    variables = table.variables
    sizes = [encoder.columns_[v].cardinality for v in variables]
    if np.prod(sizes) > MAX_CODES:
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
