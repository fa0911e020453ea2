"""Divide a population by some columns, and describe a model's output over each part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from expecta.ask.column_parts import divide_column
from expecta.ask.groups import RARE_ROWS
from expecta.ask.language.query import Query, where
from expecta.ask.populations import Population
from expecta.ask.printed_answer import PrintedAnswer
from expecta.ask.source_means import check_population, disagreements, source_means
from expecta.ask.training_averages import training_average, training_averages
from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import DomainError, TooManyGroupsError
from expecta.expected.expected_output import ExpectedOutput

MAX_GROUPS = 10_000


@dataclass(frozen=True, eq=False)
class Split(PrintedAnswer):
    """What a model says about each part of a population.

    Attributes
    ----------
    name, is_probability, given
        What the model's output is called, whether it is a probability, and the population.
    columns, labels
        What it is divided by, and for each column the label of each group.
    share
        Probability of each group within the population.
    population, mean, standard_error
        What means are over: the density, the training rows, or both; expectation of the model's
        output over each group, and its standard error. By both, the mean of the groups by share
        is that of the population, unless no output varies within the groups.
    density_mean, numerical_error, rows_output, rows_error, std
        As in `Group`, of each group.
    rows, rows_mean
        Training rows in each group, and the plain average of their target, NaN for fewer than
        two; None if neither they nor sums over such groups were kept.
    rare
        Whether the density expects fewer than five training rows in a group.
    exactness, remarks
        What is exact; what to bear in mind.
    """

    name: str
    is_probability: bool
    given: str
    columns: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    population: str
    share: Floats
    mean: Floats
    standard_error: Floats
    density_mean: Floats
    numerical_error: Floats
    rows_output: Floats
    rows_error: Floats
    std: Floats
    rows: Ints | None
    rows_mean: Floats | None
    rare: Bools | None
    exactness: str
    remarks: tuple[str, ...]

    display = "SplitDisplay"

    def __len__(self) -> int:
        return len(self.share)

    def head(self) -> list[str]:
        """Return the sentence before the table."""
        return [f"{self.name} by {' and '.join(self.columns)}{where(self.given)}"]

    def lines(self) -> Mapping[str, Sequence[Any]]:
        """Return a line for each group."""
        groups: dict[str, Any] = dict(zip(self.columns, self.labels, strict=True))
        names = ["share", "mean", "standard_error", "density_mean", "numerical_error"]
        if self.rows is not None:
            names += ["rows_output", "rows", "rows_mean"]
        names.append("std")
        if self.rare is not None:
            names.append("rare")
        # a column may have the name of what is computed
        return groups | {
            name if name not in groups else f"{name} of group": getattr(self, name)
            for name in names
        }


def split(
    subject: ExpectedOutput,
    columns: Sequence[str],
    given: Any,
    bins: int,
    population: str = "both",
) -> Split:
    """Divide a population; see :meth:`Asking.split`."""
    check_population(population, subject)
    names = [str(name) for name in columns]
    if not names or len(set(names)) < len(names):
        raise DomainError("give one or more columns to group by, each once")
    if not isinstance(bins, int) or bins < 1:
        raise DomainError(f"bins must be a whole number of at least 1, not {bins!r:.40}")
    whole = Population.read(subject, given)
    marginals = whole.marginals(subject)
    cuts = [
        divide_column(subject.encoder, name, marginals[subject.encoder.variable(name)], bins)
        for name in names
    ]
    total = int(np.prod([float(len(cut.labels)) for cut in cuts]))
    if total > MAX_GROUPS:
        raise TooManyGroupsError(
            f"these columns make {total} groups, more than {MAX_GROUPS}; name fewer, or use fewer "
            f"bins"
        )
    index = np.array(list(product(*(range(len(cut.labels)) for cut in cuts))))  # (groups, columns)
    groups = [
        tuple((cut.variable, cut.values[i]) for cut, i in zip(cuts, row, strict=True))
        for row in index.tolist()
    ]
    evidence = whole.within(groups)
    weight = whole.weights(subject, evidence)
    possible = weight.sum(axis=1) > 0
    index, weight = index[possible], weight[possible]
    evidence = evidence[np.repeat(possible, weight.shape[1])]
    summary = subject.describe_groups(evidence, weight)
    share = np.exp(whole.scale) * weight.sum(axis=1)
    condition = Query.read(given, subject.encoder)
    seen = training_averages(subject, condition, cuts, index)
    of_density = summary.mean, summary.error, summary.variance
    means = source_means(subject, population, *of_density, seen.output, share)
    if population == "both":
        mean = whole_mean(subject, whole, condition)
        part = weight.sum(axis=1) / whole.weight.sum()
        means = means.agree_with_whole(part, mean, subject.is_probability)
    labels = tuple(tuple(cut.labels[i] for i in index[:, k]) for k, cut in enumerate(cuts))
    names_of_groups = [", ".join(parts) for parts in zip(*labels, strict=True)]
    training = subject.training_rows
    rare = None if training is None else share * len(training) < RARE_ROWS
    return Split(
        subject.name,
        subject.is_probability,
        whole.written,
        tuple(names),
        labels,
        population,
        weight.sum(axis=1) / whole.weight.sum(),
        means.mean,
        means.standard_error,
        means.density_mean,
        summary.error,
        means.rows_output,
        means.rows_error,
        np.sqrt(summary.variance),
        seen.rows,
        seen.means,
        rare,
        subject.exactness,
        (*whole.approximate, *seen.remarks, *disagreements(means, names_of_groups)),
    )


def whole_mean(subject: ExpectedOutput, whole: Population, condition: Query) -> float:
    """Return the mean over a population by both sources, as `ask` has it; over all rows, once."""
    all_rows = len(condition.boxes) == 1 and not condition.boxes[0]
    if all_rows and "whole mean" in subject.kept:
        return float(subject.kept["whole mean"])
    mean, error, variance, _ = subject.describe_groups(whole.evidence, whole.weight[None])
    share = np.array([np.exp(whole.scale) * whole.weight.sum()])
    output = training_average(subject, condition).output
    means = source_means(subject, "both", mean, error, variance, output, share)
    if all_rows:
        subject.kept["whole mean"] = float(means.mean[0])
    return float(means.mean[0])
