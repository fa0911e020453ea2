"""Count, average and spread the output over many groups with an attribute, in matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from expecta.ask.credibility import RowMoments
from expecta.ask.populations import Facts
from expecta.ask.training_outputs import TrainingOutputs, density_draws
from expecta.common.arrays import Bools, Floats, Ints
from expecta.expected.expected_output import ExpectedOutput
from expecta.tables.group_sums import GroupSums

PRIOR_DRAWS = 20.0  # that the variance over everyone counts for, where a group has few samples


class CaseMoments(NamedTuple):
    """Of each case the variance under the density, and what is known of its training rows."""

    variance: Floats
    output: RowMoments | None
    rows: Floats  # NaN where they are not known
    rows_mean: Floats  # average of the target


def case_moments(
    subject: ExpectedOutput, given: Sequence[Facts], facts: Sequence[Facts], inside: Bools | None
) -> CaseMoments:
    """Describe cases: conjunctions of facts, made of a group's and of an attribute's.

    ``inside`` says which training rows are in the population, None for all.
    Cost: a look at each sample and each training row for each case.
    """
    draws = density_draws(subject)
    center = draws.outputs.mean()
    values = np.stack([np.ones(len(draws.outputs)), draws.outputs - center])
    values = np.concatenate([values, values[1:] ** 2])
    n, total, squares = _sums(draws.codes, values, given, facts)
    whole = float(values[2].mean() - values[1].mean() ** 2)
    size = np.maximum(n, 1.0)
    about = np.maximum(squares / size - (total / size) ** 2, 0.0)
    variance = (n * about + PRIOR_DRAWS * whole) / (n + PRIOR_DRAWS)
    unknown = np.full(len(facts), np.nan)
    training = subject.training_rows
    if isinstance(training, GroupSums):
        if inside is not None:
            return CaseMoments(variance, None, unknown, unknown)
        return CaseMoments(variance, *_from_sums(subject, training, given, facts))
    outputs = TrainingOutputs.of(subject)
    if outputs is None or training is None:
        return CaseMoments(variance, None, unknown, unknown)
    weight = outputs.weight if inside is None else outputs.weight * inside
    outcome = training.outcome(subject.of_class)
    value = outputs.values
    columns = [weight, weight**2, weight * value, weight * value**2, (weight > 0) * 1.0]
    if outcome is not None:
        columns.append(weight * outcome)
    sums = _sums(outputs.codes, np.stack(columns), given, facts)
    moments = RowMoments.from_sums(*sums[:4])
    moments = moments._replace(mean=moments.mean + outputs.center)
    average = unknown
    if outcome is not None:
        several = sums[4] > 1
        average = np.where(several, sums[-1] / np.where(several, sums[0], 1.0), np.nan)
    return CaseMoments(variance, moments, sums[4], average)


def _sums(codes: Ints, values: Floats, groups: Sequence[Facts], facts: Sequence[Facts]) -> Floats:
    """Sum values over the rows of each case, group by group.  # (values, cases)."""
    attributes: dict[tuple[tuple[int, bytes], ...], int] = {}
    which, at = [], []
    masks: list[Floats] = []
    by_group: dict[tuple[tuple[int, bytes], ...], int] = {}
    kept: list[Facts] = []
    for group, attribute in zip(groups, facts, strict=True):
        key = _key(attribute)
        if key not in attributes:
            attributes[key] = len(masks)
            masks.append(is_inside(codes, attribute).astype(np.float64))
        group_key = _key(group)
        if group_key not in by_group:
            by_group[group_key] = len(kept)
            kept.append(group)
        which.append(attributes[key])
        at.append(by_group[group_key])
    matrix = np.array(masks).reshape(len(masks), len(codes))
    totals: Floats = np.empty((len(kept), len(masks), len(values)))
    for i, group in enumerate(kept):
        totals[i] = matrix @ (values * is_inside(codes, group)).T
    return totals[at, which].T.reshape(len(values), -1)


def _key(facts: Facts) -> tuple[tuple[int, bytes], ...]:
    return tuple((variable, values.tobytes()) for variable, values in facts)


def is_inside(codes: Ints, facts: Facts) -> Bools:
    """Whether each row of codes meets facts for certain."""
    inside = np.ones(len(codes), np.bool_)
    for variable, values in facts:
        inside &= np.isin(codes[:, variable], values)
    return inside


def _from_sums(
    subject: ExpectedOutput, sums: GroupSums, groups: Sequence[Facts], facts: Sequence[Facts]
) -> tuple[RowMoments | None, Floats, Floats]:
    """Return what a file's sums say of the cases of one or two columns; NaN for others."""
    output, sizes = subject.context.output, subject.encoder.cardinalities_.tolist()
    known: Floats = np.zeros((4, len(facts)))
    rows, average = np.full((2, len(facts)), np.nan)
    if output >= len(sums.output_center):
        return None, rows, average
    for i, pair in enumerate(zip(groups, facts, strict=True)):
        case = sorted((fact for part in pair for fact in part), key=lambda fact: fact[0])
        variables = tuple(variable for variable, _ in case)
        table = sums.tables.get(variables)
        if table is None:
            continue
        part = np.full([sizes[v] for v in variables], -1)
        part[np.ix_(*(values for _, values in case))] = 0
        counts = [sums.counts[v] for v in variables]
        totals = table.divide(counts, part, np.ones(part.shape), 1)
        known[:, i] = (
            totals.weight[0],
            totals.weight_squares[0],
            totals.output_sums[0, output],
            totals.output_squares[0, output],
        )
        mean = sums.average(totals, 0, subject.of_class)
        rows[i], average[i] = np.rint(totals.rows[0]), np.nan if mean is None else mean.mean
    moments = RowMoments.from_sums(*known)
    return moments._replace(mean=moments.mean + sums.output_center[output]), rows, average
