"""Follow a model's output along one column: with the columns that vary with it, and alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from expecta.ask.column_parts import ColumnGroups, divide_column
from expecta.ask.language.column_sets import within_bin, written
from expecta.ask.language.query import Query, no_such_value, where
from expecta.ask.populations import Population
from expecta.ask.printed_answer import PrintedAnswer
from expecta.ask.source_means import check_population, disagreements, source_means
from expecta.ask.split import whole_mean
from expecta.ask.training_averages import training_averages
from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.common.text import number
from expecta.expected.expected_output import Answer, ExpectedOutput
from expecta.tables.column import Column
from expecta.tables.encoder import Encoder
from expecta.tables.number_column import NumberColumn

MAX_POINTS = 50  # groups of bins of numbers
ALIKE = 0.01  # of the largest mean: less is not a difference


@dataclass(frozen=True, eq=False)
class Dependence(PrintedAnswer):
    """A model's output by the values of one column.

    Attributes
    ----------
    name, is_probability, column, given
        What the model's output is called, whether it is a probability, the column, and the
        population.
    labels, at
        The values, in words; for numbers also where they lie: the mean of their bins, None
        for categories.
    share
        Probability of each value within the population.
    population, mean, standard_error
        What means are over: the density, the training rows, or both. E[output | column = value]:
        the other columns vary with the value. Its standard error. By both, the mean of all values
        by share is that of the population.
    density_mean, numerical_error, rows_output, rows, std
        As in `Group`, of each value.
    partial, partial_error
        Partial dependence, and its numerical error: the other columns are as in the whole
        population. Always under the density.
    exactness, remarks
        What is exact; what to bear in mind.
    """

    name: str
    is_probability: bool
    column: str
    given: str
    labels: tuple[str, ...]
    at: Floats | None
    population: str
    share: Floats
    mean: Floats
    standard_error: Floats
    density_mean: Floats
    numerical_error: Floats
    rows_output: Floats
    rows: Ints | None
    std: Floats
    partial: Floats
    partial_error: Floats
    exactness: str
    remarks: tuple[str, ...]

    display = "DependenceDisplay"

    @property
    def difference(self) -> str:
        """A sentence on how the two differ under the density."""
        gap = self.density_mean - self.partial
        both = np.concatenate([self.density_mean, self.partial])
        worst = int(np.nanargmax(np.abs(gap))) if np.any(np.isfinite(gap)) else 0
        if not np.isfinite(gap[worst]) or abs(gap[worst]) <= ALIKE * np.nanmax(np.abs(both)):
            return (
                f"The expectation of {self.name} by {self.column} and its partial dependence "
                f"differ by less than {ALIKE:.0%}: other columns that vary with {self.column} "
                f"matter little."
            )
        return (
            f"Where {self.column} is {self.labels[worst]}, the difference between the expectation "
            f"of {self.name} and its partial dependence is {number(float(gap[worst]))}: other "
            f"columns vary with {self.column}."
        )

    def head(self) -> list[str]:
        """Return the sentence before the table."""
        return [f"{self.name} by {self.column}{where(self.given)}"]

    def lines(self) -> Mapping[str, Sequence[Any]]:
        """Return a line for each value."""
        at = {} if self.at is None else {"at": self.at.tolist()}
        return {
            "value": self.labels,
            **at,
            "share": self.share.tolist(),
            "mean": self.mean.tolist(),
            "standard_error": self.standard_error.tolist(),
            "density_mean": self.density_mean.tolist(),
            "rows_output": self.rows_output.tolist(),
            **({} if self.rows is None else {"rows": self.rows.tolist()}),
            "std": self.std.tolist(),
            "partial": self.partial.tolist(),
        }

    def notes(self) -> list[str]:
        """Return the sentences after it."""
        return [self.difference, *self.remarks]


def dependence(
    subject: ExpectedOutput, column: str, given: Any, grid: Any, population: str = "both"
) -> Dependence:
    """Follow a model's output along a column; see :meth:`Asking.dependence`."""
    check_population(population, subject)
    whole = Population.read(subject, given)
    column, variable = str(column), subject.encoder.variable(column)
    bin_shares = whole.marginals(subject)[variable]
    values, labels, absent = _grid(subject.encoder, column, bin_shares, grid)
    evidence = whole.within([((variable, group),) for group in values])
    weight = whole.weights(subject, evidence)
    mean, error, variance, _ = subject.describe_groups(evidence, weight)
    within = weight.sum(axis=1) / whole.weight.sum()
    share = np.exp(whole.scale) * weight.sum(axis=1)
    condition = Query.read(given, subject.encoder)
    cut = _groups(subject.encoder, variable, values, labels)
    seen = training_averages(subject, condition, [cut], np.arange(len(labels))[:, None])
    means = source_means(subject, population, mean, error, variance, seen.output, share)
    if population == "both":
        of_whole = whole_mean(subject, whole, condition)
        means = means.agree_with_whole(within, of_whole, subject.is_probability)
    partial, partial_error = _partial(subject, column, whole, _weights(values, bin_shares))
    at = None
    if isinstance(subject.encoder.columns_[variable], NumberColumn):
        numbers = subject.encoder.columns_[variable].means
        at = np.array([_mean(bin_shares[group], numbers[group]) for group in values])
        at[list(absent)] = list(absent.values())
    lacking = [no_such_value(column, [labels[i]]) for i in absent]
    return Dependence(
        subject.name,
        subject.is_probability,
        column,
        whole.written,
        tuple(labels),
        at,
        population,
        within,
        means.mean,
        means.standard_error,
        means.density_mean,
        error,
        means.rows_output,
        seen.rows,
        np.sqrt(variance),
        partial,
        partial_error,
        subject.exactness,
        (*whole.approximate, *lacking, *seen.remarks, *disagreements(means, labels)),
    )


def _groups(encoder: Encoder, variable: int, values: list[Ints], labels: list[str]) -> ColumnGroups:
    """Return the grid as groups of a column's codes, -1 for those that are in none."""
    column = encoder.columns_[variable]
    group = np.full(column.cardinality, -1)
    for i, codes in enumerate(values):
        group[codes] = i
    return ColumnGroups(variable, column, group, tuple(labels))


def _grid(
    encoder: Encoder, name: str, bin_shares: Floats, grid: Any
) -> tuple[list[Ints], list[str], dict[int, float]]:
    """Return the values of the column in each group of the grid, and their labels.

    Also the numbers of the grid that no training row can have had, by index: they have no value.
    """
    column = encoder.column(name)
    if grid is None or isinstance(grid, int):
        if grid is not None and grid < 1:
            raise DomainError(
                f"grid must be a number of points of at least 1, or values, not {grid}"
            )
        groups = divide_column(encoder, name, bin_shares, MAX_POINTS if grid is None else grid)
        return groups.values, list(groups.labels), {}
    points = list(dict.fromkeys(_point(column, value) for value in grid))
    if not points:
        raise DomainError("grid has no values")
    return (
        [np.array([code] if at is None else [], np.int64) for code, at in points],
        [column.labels[code] if at is None else written(at, column) for code, at in points],
        {i: at for i, (_, at) in enumerate(points) if at is not None},
    )


def _point(column: Column, value: Any) -> tuple[int, float | None]:
    """Return the code of a value that the user gives, and the number if it is in no bin."""
    code = column.code(value)
    if isinstance(column.plain, NumberColumn) and code < column.plain.cardinality:
        at = column.to_number(value)
        if not within_bin(column, at):
            return code, at
    return code, None


def _weights(values: list[Ints], bin_shares: Floats) -> Floats:
    """Return the weight of each bin in each group: that in the population, if it has any."""
    weights = np.zeros((len(values), len(bin_shares)))
    for group, codes in enumerate(values):
        largest = bin_shares[codes].max(initial=0.0)
        weights[group, codes] = bin_shares[codes] / largest if largest > 0 else 1.0
    return weights


def _partial(
    subject: ExpectedOutput, column: str, population: Population, weights: Floats
) -> Answer:
    """Compute the partial dependence where the column has the weights of each group.

    What the population says of the column itself is about others that vary with it: each such
    fact has a density in which the column is independent of the others given the fact.
    """
    variable, evidence = subject.encoder.variable(column), population.evidence
    states, codes = evidence.states[variable], evidence.codes[variable]
    groups, parts = len(weights), len(evidence)
    by_state: dict[int, tuple[Floats, Floats]] = {}
    for state in np.unique(codes).tolist():
        fact = states[state]
        alone = subject.with_independent(column, None if np.all(fact == fact[0]) else fact)
        rows = np.flatnonzero(codes == state)
        further = np.repeat(weights, len(rows), 0)
        value, error = alone.terms(_replace(evidence[np.tile(rows, groups)], variable, further))
        by_state[state] = value.reshape(groups, len(rows), -1), error.reshape(groups, len(rows), -1)
    k = next(iter(by_state.values()))[0].shape[-1]
    terms, errors = np.zeros((2, groups, parts, k))
    for state, (value, error) in by_state.items():
        terms[:, codes == state], errors[:, codes == state] = value, error
    possible = np.any(weights > 0, axis=1, keepdims=True)
    shares = population.weight * possible
    return subject.mix_terms(terms.reshape(-1, k), errors.reshape(-1, k), shares)


def _replace(evidence: Evidence, variable: int, weights: Floats) -> Evidence:
    """Replace what evidence says of a variable."""
    states, codes = list(evidence.states), list(evidence.codes)
    states[variable] = np.ones((1, weights.shape[1]))
    codes[variable] = np.zeros(len(evidence), np.int32)
    freed = Evidence(tuple(states), tuple(codes), len(evidence))
    return freed.likelihood(variable, weights)


def _mean(weight: Floats, values: Floats) -> float:
    total = weight.sum()
    if total > 0:
        return float(weight @ values / total)
    return float(values.mean()) if len(values) else np.nan
