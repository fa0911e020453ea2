"""How a model's output goes with one column: what is seen with it, and what it does alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from expecta.ask.language.column_sets import within_bin, written
from expecta.ask.language.conditions import quoted
from expecta.ask.populations import Population
from expecta.ask.printed_answer import PrintedAnswer
from expecta.ask.split import cut
from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.common.text import number
from expecta.expected.expected_output import Answer, ExpectedOutput
from expecta.tables.column import Column
from expecta.tables.number_column import NumberColumn
from expecta.tables.scalars import number as number_of

if TYPE_CHECKING:
    from expecta.ask.displays import DependenceDisplay

__all__ = ["Dependence", "dependence"]

POINTS = 50  # groups of cells of numbers
ALIKE = 0.01  # of the range of means: less is no difference


@dataclass(frozen=True, eq=False)
class Dependence(PrintedAnswer):
    """A model's output by the values of one column.

    Attributes
    ----------
    name, column, given
        What the model's output is called, the column, and the population.
    labels, at
        The values, in words; for numbers also where they lie: the mean of their cells, None
        for categories.
    share
        Probability of each value within the population.
    mean, error, std
        E[output | column = value]: the others are what goes with the value. Its error, and the
        spread of the output about it: not the uncertainty of y.
    partial, partial_error
        Partial dependence: the others are as they are in the whole population.
    exactness, remarks
        What is exact; what to bear in mind.
    """

    name: str
    column: str
    given: str
    labels: tuple[str, ...]
    at: Floats | None
    share: Floats
    mean: Floats
    error: Floats
    std: Floats
    partial: Floats
    partial_error: Floats
    exactness: str
    remarks: tuple[str, ...]

    @property
    def difference(self) -> str:
        """A sentence on how the two differ."""
        gap = self.mean - self.partial
        both = np.concatenate([self.mean, self.partial])
        worst = int(np.nanargmax(np.abs(gap))) if np.any(np.isfinite(gap)) else 0
        if not np.isfinite(gap[worst]) or abs(gap[worst]) <= ALIKE * np.nanmax(np.abs(both)):
            return (
                f"Among those with a value of {self.column}, {self.name} is what it would be if "
                f"{self.column} alone were changed, within {ALIKE:.0%}: other columns that go with "
                f"it matter little."
            )
        return (
            f"Where {self.column} is {self.labels[worst]}, {self.name} is "
            f"{number(abs(float(gap[worst])))} {'more' if gap[worst] > 0 else 'less'} than if "
            f"{self.column} alone were changed for everyone: other columns go with it."
        )

    def plot(self, ax: Any = None) -> DependenceDisplay:
        """Draw it, on axes of yours or on new ones; needs matplotlib."""
        from expecta.ask.displays import DependenceDisplay

        return DependenceDisplay(self).plot(ax)

    def head(self) -> list[str]:
        """Return the sentence before the table."""
        return [f"{self.name} by {self.column} where {self.given}"]

    def lines(self) -> Mapping[str, Sequence[Any]]:
        """Return a line for each value."""
        at = {} if self.at is None else {"at": self.at.tolist()}
        return {
            "value": self.labels,
            **at,
            "share": self.share.tolist(),
            "mean": self.mean.tolist(),
            "std": self.std.tolist(),
            "partial": self.partial.tolist(),
        }

    def notes(self) -> list[str]:
        """Return the sentences after it."""
        return [self.difference, *self.remarks]


def dependence(subject: ExpectedOutput, column: str, given: Any, grid: Any) -> Dependence:
    """Follow a model's output along a column; see :meth:`Asking.dependence`."""
    population = Population.of(subject, given)
    variable = subject.encoder.variable(column)
    part = population.weight / population.weight.sum()
    cells = part @ subject.circuit.marginals(population.evidence)[variable]
    values, labels, absent = _values(subject, str(column), cells, grid)
    groups = [((variable, one),) for one in values]
    evidence = population.within(groups)
    weight = _weight(subject, evidence, population)
    mean, error = subject.averages(evidence, weight)
    std = np.sqrt(subject.spreads(evidence, weight)[0])
    partial, loose = _partial(subject, str(column), population, _weighed(values, cells))
    at = None
    if isinstance(subject.encoder.columns_[variable], NumberColumn):
        own = subject.encoder.columns_[variable].means
        at = np.array([_mean(cells[one], own[one]) for one in values])
        at[list(absent)] = list(absent.values())
    lacking = [f"no training row has {quoted(str(column))} = {labels[i]}" for i in absent]
    return Dependence(
        subject.name,
        str(column),
        population.written,
        tuple(labels),
        at,
        weight.sum(axis=1) / population.weight.sum(),
        mean,
        error,
        std,
        partial,
        loose,
        subject.exactness,
        (*population.approximate, *lacking),
    )


def _values(
    subject: ExpectedOutput, name: str, cells: Floats, grid: Any
) -> tuple[list[Ints], list[str], dict[int, float]]:
    """Return the values of the column in each group of the grid, and their labels.

    Also the numbers of the grid that no training row can have had, by place: they have no value.
    """
    column = subject.encoder.column(name)
    if grid is None or isinstance(grid, int):
        if grid is not None and grid < 1:
            raise DomainError(f"grid is a number of points from 1 on, or values, not {grid}")
        found = cut(subject, name, cells, POINTS if grid is None else grid)
        return found.values, list(found.labels), {}
    asked = list(dict.fromkeys(_place(column, value) for value in grid))
    if not asked:
        raise DomainError("grid has no values")
    return (
        [np.array([code] if at is None else [], np.int64) for code, at in asked],
        [column.labels[code] if at is None else written(at, column) for code, at in asked],
        {place: at for place, (_, at) in enumerate(asked) if at is not None},
    )


def _place(column: Column, value: Any) -> tuple[int, float | None]:
    """Return the value of something that the user says, and the number if no bin reaches it."""
    code = column.code(value)
    if isinstance(column.plain, NumberColumn) and code < column.plain.cardinality:
        at = number_of(value, column.kind, column.zone)
        if not within_bin(column, at):
            return code, at
    return code, None


def _weighed(values: list[Ints], cells: Floats) -> Floats:
    """Return the weight of each cell in each group: that in the population, if it has any."""
    weights = np.zeros((len(values), len(cells)))
    for group, one in enumerate(values):
        most = cells[one].max(initial=0.0)
        weights[group, one] = cells[one] / most if most > 0 else 1.0
    return weights


def _partial(
    subject: ExpectedOutput, column: str, population: Population, weights: Floats
) -> Answer:
    """Compute the partial dependence where the column has the weights of each group.

    What the population says of the column itself is about others that go with it: each such
    fact has a density in which the column is independent of the others given the fact.
    """
    variable, evidence = subject.encoder.variable(column), population.evidence
    states, codes = evidence.states[variable], evidence.codes[variable]
    groups, parts = len(weights), len(evidence)
    found: dict[int, tuple[Floats, Floats]] = {}
    for state in np.unique(codes).tolist():
        said = states[state]
        alone = subject.apart(column, None if np.all(said == said[0]) else said)
        rows = np.flatnonzero(codes == state)
        asked = _set(evidence[np.tile(rows, groups)], variable, np.repeat(weights, len(rows), 0))
        value, error = alone.terms(asked)
        found[state] = value.reshape(groups, len(rows), -1), error.reshape(groups, len(rows), -1)
    k = next(iter(found.values()))[0].shape[-1]
    terms, errors = np.zeros((2, groups, parts, k))
    for state, (value, error) in found.items():
        terms[:, codes == state], errors[:, codes == state] = value, error
    possible = np.any(weights > 0, axis=1, keepdims=True)
    shares = population.weight * possible
    return subject.mixed(terms.reshape(-1, k), errors.reshape(-1, k), shares)


def _set(evidence: Evidence, variable: int, weights: Floats) -> Evidence:
    """Replace what evidence says of a variable."""
    states, codes = list(evidence.states), list(evidence.codes)
    states[variable] = np.ones((1, weights.shape[1]))
    codes[variable] = np.zeros(len(evidence), np.int32)
    freed = Evidence(tuple(states), tuple(codes), len(evidence))
    return freed.likelihood(variable, weights)


def _weight(subject: ExpectedOutput, evidence: Evidence, population: Population) -> Floats:
    """Return the probability of each part of each group, of the population's size."""
    log_prob = subject.circuit.log_prob(evidence) - population.scale
    weight: Floats = np.exp(log_prob).reshape(-1, len(population.weight))
    return weight


def _mean(weight: Floats, values: Floats) -> float:
    total = weight.sum()
    if total > 0:
        return float(weight @ values / total)
    return float(values.mean()) if len(values) else np.nan
