"""How a model's output goes with one column: what is seen with it, and what it does alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from expecta.arrays import Floats, Ints
from expecta.encoding.numbers import NumberColumn
from expecta.errors import DomainError
from expecta.evidence import Evidence
from expecta.explore.questions.groups import Population
from expecta.explore.questions.showing import Shown, number
from expecta.explore.questions.split import cut
from expecta.explore.subjects.subject import Subject

if TYPE_CHECKING:
    from expecta.explore.displays import DependenceDisplay

__all__ = ["Dependence", "dependence"]

POINTS = 50  # groups of cells of numbers
ALIKE = 0.01  # of the range of means: less is no difference


@dataclass(frozen=True, eq=False)
class Dependence(Shown):
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

    def plot(self, ax: Any = None) -> DependenceDisplay:  # noqa: ANN401
        """Draw it, on axes of yours or on new ones; needs matplotlib."""
        from expecta.explore.displays import DependenceDisplay

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


def dependence(subject: Subject, column: str, given: Any, grid: Any) -> Dependence:  # noqa: ANN401
    """Follow a model's output along a column; see :meth:`Asking.dependence`."""
    population = Population.of(subject, given)
    variable = subject.encoder.variable(column)
    part = population.weight / population.weight.sum()
    cells = part @ subject.circuit.marginals(population.evidence)[variable]
    values, labels = _values(subject, str(column), cells, grid)
    groups = [((variable, one),) for one in values]
    evidence = population.within(groups)
    weight = _weight(subject, evidence, population)
    mean, error = subject.averages(evidence, weight)
    std = np.sqrt(subject.spreads(evidence, weight)[0])
    alone = subject.apart(column)
    apart = _weighed(population.evidence, variable, values, cells)
    partial, loose = alone.averages(apart, _weight(alone, apart, population))
    number_column = isinstance(subject.encoder.columns_[variable], NumberColumn)
    own = subject.encoder.columns_[variable].means
    return Dependence(
        subject.name,
        str(column),
        population.written,
        tuple(labels),
        np.array([_mean(cells[one], own[one]) for one in values]) if number_column else None,
        weight.sum(axis=1) / population.weight.sum(),
        mean,
        error,
        std,
        partial,
        loose,
        subject.exactness,
        population.approximate,
    )


def _values(
    subject: Subject,
    name: str,
    cells: Floats,
    grid: Any,  # noqa: ANN401
) -> tuple[list[Ints], list[str]]:
    """Return the values of the column in each group of the grid, and their labels."""
    column = subject.encoder.column(name)
    if grid is None or isinstance(grid, int):
        if grid is not None and grid < 1:
            raise DomainError(f"grid is a number of points from 1 on, or values, not {grid}")
        found = cut(subject, name, cells, POINTS if grid is None else grid)
        return found.values, list(found.labels)
    codes = list(dict.fromkeys(column.code(value) for value in grid))
    if not codes:
        raise DomainError("grid has no values")
    return [np.array([code]) for code in codes], [column.labels[code] for code in codes]


def _weighed(evidence: Evidence, variable: int, values: list[Ints], cells: Floats) -> Evidence:
    """Give the cells of each group the weight that they have in the population.

    Where the column is independent and uniform, they have no other.
    """
    weights = np.zeros((len(values), len(cells)))
    for group, one in enumerate(values):
        weights[group, one] = cells[one] / (cells[one].max() or 1.0)
    parts = len(evidence)
    rows = np.tile(np.arange(parts), len(values))
    return evidence[rows].likelihood(variable, np.repeat(weights, parts, axis=0))


def _weight(subject: Subject, evidence: Evidence, population: Population) -> Floats:
    """Return the probability of each part of each group, of the population's size."""
    log_prob = subject.circuit.log_prob(evidence) - population.scale
    weight: Floats = np.exp(log_prob).reshape(-1, len(population.weight))
    return weight


def _mean(weight: Floats, values: Floats) -> float:
    total = weight.sum()
    return float(weight @ values / total) if total > 0 else float(values.mean())
