"""Count training rows with missing cells in groups that they may belong to, by probability.

Such a row belongs to a group with the probability of the group given its known cells, and adds what
the model is expected to output given both: exact under the density. It adds to the mean over the
rows of the group, not to their number: what it says of its missing cells comes from the density.
Where only sums over groups of rows are kept, such rows are known by their number and mean output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from expecta.ask.column_parts import ColumnGroups
from expecta.ask.language.query import Query
from expecta.ask.populations import Facts, Population
from expecta.ask.training_outputs import TrainingOutputs
from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import ImpossibleEvidenceError
from expecta.expected.expected_output import ExpectedOutput
from expecta.tables.encoder import Encoder

MAX_EXPECTATIONS = 100_000  # of one question: beyond, some rows at random stand for all
MAX_PAIRS = 10_000_000  # of rows and parts of groups, for which it is asked whether they may meet


class UncertainSums(NamedTuple):
    """Weights of rows that may belong to groups, and weighted outputs.  # (groups,) each.

    Outputs are less the center of `TrainingOutputs`. The others are the sums' variances and
    covariance where some rows stand for all, otherwise zero.
    """

    weight: Floats
    output: Floats
    weight_variance: Floats
    covariance: Floats
    output_variance: Floats

    @classmethod
    def of(cls, n_groups: int, *sums: Floats) -> UncertainSums:
        """Take the first few; the others are zero."""
        return cls(*sums, *np.zeros((len(cls._fields) - len(sums), n_groups)))

    def sampling_variance(self, mean: Floats, total: Floats) -> Floats:
        """Return what it adds to the variance of means, which divide sums by total weights."""
        spread = self.output_variance - 2 * mean * self.covariance + mean**2 * self.weight_variance
        return np.asarray(np.maximum(spread, 0.0) / total**2)


class LeftOut(NamedTuple):
    """Rows that are in no cell of a table of sums, as its column is missing: known by totals.

    Outputs are less the center of the sums; ``among`` is a condition that these rows meet.
    """

    weight: float
    output: float
    among: Query


def uncertain_totals(
    subject: ExpectedOutput, rows: LeftOut | None, query: Query, cuts: Sequence[ColumnGroups]
) -> UncertainSums:
    """Estimate `uncertain_sums` of rows that are known by their totals.

    They are in a group by its probability, with an output as far from their mean as that of the
    group is from the mean among all such rows: over all groups of the column they sum to what
    they are.  Cost: where there are such rows, an expectation for each group.
    """
    sizes = [len(cut.labels) for cut in cuts]
    n_groups = int(np.prod(sizes, dtype=np.int64))
    nothing = UncertainSums.of(n_groups)
    if rows is None or subject.samples_mean:
        return nothing
    groups: list[Facts] = []
    for group in range(n_groups):
        index = np.unravel_index(group, sizes) if sizes else ()
        pairs = zip(cuts, index, strict=True)
        groups.append(tuple((cut.variable, cut.values[int(i)]) for cut, i in pairs))
    try:
        population = Population.read(subject, query)
    except ImpossibleEvidenceError:
        return nothing
    every = Population.read(subject, rows.among)
    share, mean, _ = population.means(subject, groups)
    part = np.exp(population.scale - every.scale) * population.weight.sum() / every.weight.sum()
    (middle,) = every.means(subject, [()]).value
    weight = rows.weight * part * share
    output = weight * (rows.output / rows.weight + np.nan_to_num(mean - middle))
    return UncertainSums.of(n_groups, weight, output)


class _Part(NamedTuple):
    """A box that is a part of a group, as the rows see it."""

    group: int
    facts: list[tuple[int, Bools, Floats]]  # variables, which rows are inside, weights of values


def uncertain_sums(
    subject: ExpectedOutput, query: Query, cuts: Sequence[ColumnGroups], sure: Ints, n_groups: int
) -> UncertainSums:
    """Sum over rows that may belong to the groups of columns within a condition.

    ``sure`` is the group that each row is in for certain, or -1.  Cost: an expectation for each
    row with missing cells that matter and each box of each group that it may be in; of more than
    100,000, rows at random stand for all, and what that adds to the variance is told.
    """
    nothing = UncertainSums.of(n_groups)
    outputs = TrainingOutputs.of(subject)
    if outputs is None or subject.samples_mean:
        return nothing
    named = {variable for box in query.boxes for variable, _ in box} | {c.variable for c in cuts}
    codes = outputs.codes
    missing = np.any(codes[:, sorted(named)] < 0, axis=1) if named else np.zeros(0, np.bool_)
    if not np.any(missing):
        return nothing
    rows = np.flatnonzero(missing & (sure < 0) & (outputs.weight > 0))
    n_rows, n_parts = len(rows), len(query.boxes) * n_groups
    if not n_rows or not 0 < n_parts <= MAX_PAIRS:
        return nothing
    rows = np.random.default_rng(0).permutation(rows)[: MAX_PAIRS // n_parts]
    parts = _parts(outputs, query, cuts, rows)
    may = np.array([_may_belong(facts, codes[rows]) for _, facts in parts], np.bool_)
    n = int(np.searchsorted(np.cumsum(may.sum(axis=0)), MAX_EXPECTATIONS, "right"))
    if not np.any(may[:, :n]):
        return nothing
    part, row = np.nonzero(may[:, :n])
    times, rows = n_rows / n, rows[:n]  # how many rows each stands for
    evidence = _within_parts(codes[rows[row]], part, parts, subject.encoder)
    mean, log_prob = subject.mean_and_log_prob(subject.taken(evidence))
    weight = np.exp(log_prob - outputs.log_prob(rows)[row]) * times * outputs.weight[rows[row]]
    output = weight * np.where(weight > 0, mean - outputs.center, 0.0)
    group = np.array([each.group for each in parts])[part]
    chance = 1.0 - 1.0 / times  # of a row to be left out
    squares = (chance * a * b for a, b in ((weight, weight), (weight, output), (output, output)))
    sums: Floats = np.zeros((5, n_groups))
    for i, values in enumerate((weight, output, *squares)):
        sums[i] = np.bincount(group, values, n_groups)
    return UncertainSums(*sums)


def _may_belong(facts: list[tuple[int, Bools, Floats]], codes: Ints) -> Bools:
    may = np.ones(len(codes), np.bool_)
    for variable, inside, _ in facts:
        may &= inside | (codes[:, variable] < 0)
    return may


def _within_parts(codes: Ints, part: Ints, parts: Sequence[_Part], encoder: Encoder) -> Evidence:
    """Return the evidence of rows, whose missing cells are within a part each: all at once."""
    evidence = Evidence.rows(codes, encoder.cardinalities_)
    states, of_row = list(evidence.states), list(evidence.codes)
    for variable in sorted({variable for _, facts in parts for variable, _, _ in facts}):
        inside = np.ones((len(parts), states[variable].shape[1]))
        for k, (_, facts) in enumerate(parts):
            for named, _, weights in facts:
                if named == variable:
                    inside[k] *= weights
        n, unknown = len(states[variable]), codes[:, variable] < 0
        states[variable] = np.concatenate([states[variable], inside])
        of_row[variable] = np.where(unknown, n + part, of_row[variable]).astype(np.int32)
    return Evidence(tuple(states), tuple(of_row), len(codes))


def _parts(
    outputs: TrainingOutputs, query: Query, cuts: Sequence[ColumnGroups], rows: Ints
) -> list[_Part]:
    """Return the boxes of the condition within each group of the columns."""
    encoder = outputs.subject.encoder
    boxes: list[list[tuple[int, Bools, Floats]]] = []
    for box in query.boxes:
        facts = []
        for variable, subset in box:
            numbers = query.numbers(outputs.rows, variable)[rows]
            facts.append(
                (variable, subset.contains(numbers), subset.weights(encoder.columns_[variable]))
            )
        boxes.append(facts)
    codes = outputs.codes[rows]
    sizes = [len(cut.labels) for cut in cuts]
    parts = []
    for group in range(int(np.prod(sizes, dtype=np.int64))):
        own = []
        for cut, index in zip(cuts, np.unravel_index(group, sizes) if sizes else (), strict=True):
            of_value = cut.group == index
            inside = of_value[codes[:, cut.variable]]
            own.append((cut.variable, inside, of_value.astype(np.float64)))
        parts += [_Part(group, [*facts, *own]) for facts in boxes]
    return parts
