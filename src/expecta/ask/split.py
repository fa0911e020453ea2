"""A population divided by some columns: what a model says about each part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from expecta.ask.ask_group import FEW
from expecta.ask.language.query import Query
from expecta.ask.populations import Population
from expecta.ask.printed_answer import PrintedAnswer
from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import DomainError
from expecta.expected.expected_output import ExpectedOutput
from expecta.tables.column import Column
from expecta.tables.number_column import NumberColumn
from expecta.tables.training_rows import TrainingRows

if TYPE_CHECKING:
    from expecta.ask.displays import SplitDisplay

__all__ = ["Cut", "Split", "cut", "split"]

MOST = 10_000  # groups


@dataclass(frozen=True, eq=False)
class Cut:
    """A column divided into groups of neighbouring cells, or of single categories."""

    variable: int
    column: Column
    group: Ints  # of each value of the column
    labels: tuple[str, ...]

    @property
    def values(self) -> list[Ints]:
        """The values of the column in each group."""
        return [np.flatnonzero(self.group == place) for place in range(len(self.labels))]

    def place(self, seen: TrainingRows) -> Ints:
        """Return the group of each training row, -1 where it is unknown."""
        codes = seen.codes(self.column, self.variable)
        return np.where(codes < 0, -1, self.group[codes])


def cut(subject: ExpectedOutput, name: str, shares: Floats, bins: int) -> Cut:
    """Divide a column: categories one by one, numbers into groups of about equal share.

    Where a hole of a number is a value, it is a group of its own.
    """
    variable = subject.encoder.variable(name)
    column = subject.encoder.columns_[variable]
    used = np.flatnonzero(shares > 0)
    numbers = used
    if isinstance(column.plain, NumberColumn):
        numbers = used[used < column.plain.cardinality]
    if not isinstance(column.plain, NumberColumn) or len(numbers) <= bins:
        place = np.arange(len(used))
    else:
        # the middle of a cell's share says which of the equal groups it belongs to
        share = shares[numbers]
        middle = (np.cumsum(share) - 0.5 * share) / share.sum()
        raw = np.minimum((middle * bins).astype(np.int64), bins - 1)
        raw = np.append(raw, np.full(len(used) - len(numbers), bins))
        place = np.unique(raw, return_inverse=True)[1].ravel()
    labels = tuple(_label(column, used[place == one]) for one in range(int(place[-1]) + 1))
    near = np.minimum(np.searchsorted(used, np.arange(len(shares))), len(used) - 1)
    return Cut(variable, column, place[near], labels)  # what is impossible goes along


def _label(column: Column, values: Ints) -> str:
    """Write a group of neighbouring values."""
    first, last = column.labels[int(values[0])], column.labels[int(values[-1])]
    if len(values) == 1:
        return first
    return f"{first.split(' to ')[0]} to {last.split(' to ')[-1]}"


@dataclass(frozen=True, eq=False)
class Split(PrintedAnswer):
    """What a model says about each part of a population.

    Attributes
    ----------
    name, given
        What the model's output is called, and the population.
    columns, labels
        What it is divided by, and for each column the label of each group.
    share
        Probability of each group within the population.
    mean, error, std
        Expectation of the model's output over each group, its error, and the spread of the
        output over the group: not the uncertainty of y.
    rows, rows_mean
        Training rows in each group, and the plain average of their target, NaN for fewer than
        two; None if they were not kept.
    rare
        Whether the density expects fewer than five training rows in a group.
    exactness, remarks
        What is exact; what to bear in mind.
    """

    name: str
    given: str
    columns: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    share: Floats
    mean: Floats
    error: Floats
    std: Floats
    rows: Ints | None
    rows_mean: Floats | None
    rare: Bools | None
    exactness: str
    remarks: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.share)

    def plot(self, ax: Any = None) -> SplitDisplay:
        """Draw it, on axes of yours or on new ones; needs matplotlib."""
        from expecta.ask.displays import SplitDisplay

        return SplitDisplay(self).plot(ax)

    def head(self) -> list[str]:
        """Return the sentence before the table."""
        return [f"{self.name} by {', '.join(self.columns)} where {self.given}"]

    def lines(self) -> Mapping[str, Sequence[Any]]:
        """Return a line for each group."""
        found: dict[str, Any] = dict(zip(self.columns, self.labels, strict=True))
        own: dict[str, Any] = {
            "share": self.share,
            "mean": self.mean,
            "error": self.error,
            "std": self.std,
        }
        if self.rows is not None and self.rows_mean is not None and self.rare is not None:
            own |= {"rows": self.rows, "rows_mean": self.rows_mean, "rare": self.rare}
        # a column may have the name of what is computed
        return found | {
            name if name not in found else f"{name} of group": one for name, one in own.items()
        }

    def notes(self) -> list[str]:
        """Return the sentences after it."""
        return list(self.remarks)


def split(subject: ExpectedOutput, columns: Sequence[str], given: Any, bins: int) -> Split:
    """Divide a population; see :meth:`Asking.split`."""
    names = [str(name) for name in columns]
    if not names or len(set(names)) < len(names):
        raise DomainError("name one column or more to divide by, each once")
    if not isinstance(bins, int) or bins < 1:
        raise DomainError(f"bins is a whole number from 1 on, not {bins!r:.40}")
    population = Population.of(subject, given)
    marginals = subject.circuit.marginals(population.evidence)
    part = population.weight / population.weight.sum()
    cuts = [
        cut(subject, name, part @ marginals[subject.encoder.variable(name)], bins) for name in names
    ]
    total = int(np.prod([float(len(one.labels)) for one in cuts]))
    if total > MOST:
        raise DomainError(
            f"these columns make {total} groups, more than {MOST}; name fewer, or use fewer bins"
        )
    places = np.array(list(product(*(range(len(one.labels)) for one in cuts))))
    groups = [
        tuple((one.variable, one.values[i]) for one, i in zip(cuts, row, strict=True))
        for row in places.tolist()
    ]
    evidence = population.within(groups)
    weight = np.exp(subject.circuit.log_prob(evidence) - population.scale)
    weight = weight.reshape(len(groups), -1)
    found = weight.sum(axis=1) > 0
    places, weight = places[found], weight[found]
    evidence = evidence[np.repeat(found, weight.shape[1])]
    mean, error = subject.averages(evidence, weight)
    share = np.exp(population.scale) * weight.sum(axis=1)
    rows, average, rare = _beside(subject, given, cuts, places, share)
    return Split(
        subject.name,
        population.written,
        tuple(names),
        tuple(tuple(one.labels[i] for i in places[:, k]) for k, one in enumerate(cuts)),
        weight.sum(axis=1) / population.weight.sum(),
        mean,
        error,
        np.sqrt(subject.spreads(evidence, weight)[0]),
        rows,
        average,
        rare,
        subject.exactness,
        population.approximate,
    )


def _beside(
    subject: ExpectedOutput, given: Any, cuts: Sequence[Cut], places: Ints, share: Floats
) -> tuple[Ints | None, Floats | None, Bools | None]:
    """Count the training rows in each group, and average their target."""
    seen = subject.seen
    if seen is None:
        return None, None, None
    sizes = [len(one.labels) for one in cuts]
    own = np.stack([one.place(seen) for one in cuts])
    inside = np.all(own >= 0, axis=0) & (seen.weight > 0)
    inside &= Query.of(given, subject.encoder).matches(seen.to_table(subject.encoder))
    number = np.ravel_multi_index(tuple(own[:, inside]), sizes)
    asked = np.ravel_multi_index(tuple(places.T), sizes)
    rows = np.bincount(number, minlength=int(np.prod(sizes)))[asked]
    outcome = seen.outcome(subject.of_class)
    average: Floats = np.full(len(asked), np.nan)
    if outcome is not None:
        weight = seen.weight[inside]
        total = np.bincount(number, weight, minlength=int(np.prod(sizes)))[asked]
        value = np.bincount(number, weight * outcome[inside], minlength=int(np.prod(sizes)))[asked]
        np.divide(value, total, out=average, where=rows > 1)
    return rows, average, share * len(seen) < FEW
