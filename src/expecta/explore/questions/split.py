"""A population divided by some columns: what a model says about each part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from expecta.arrays import Bools, Floats, Ints
from expecta.encoding.columns import Column
from expecta.encoding.numbers import NumberColumn
from expecta.errors import DomainError
from expecta.explore.language.query import Query
from expecta.explore.questions.asked import FEW
from expecta.explore.questions.groups import Population
from expecta.explore.questions.showing import Shown
from expecta.explore.seen import Seen
from expecta.explore.subjects.subject import Subject

if TYPE_CHECKING:
    from expecta.explore.displays import SplitDisplay

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

    def place(self, seen: Seen) -> Ints:
        """Return the group of each training row, -1 where it is unknown."""
        values = seen.columns[self.variable]
        if not isinstance(self.column, NumberColumn):
            return np.where(values < 0, -1, self.group[values])
        cell = np.searchsorted(self.column.edges, values, side="right")
        return np.where(np.isnan(values), -1, self.group[np.minimum(cell, len(self.group) - 1)])


def cut(subject: Subject, name: str, shares: Floats, bins: int) -> Cut:
    """Divide a column: categories one by one, numbers into groups of about equal share."""
    variable = subject.encoder.variable(name)
    column = subject.encoder.columns_[variable]
    if not isinstance(column, NumberColumn) or np.count_nonzero(shares) <= bins:
        used = np.flatnonzero(shares > 0)
        group = np.searchsorted(used, np.arange(len(shares)))  # what is impossible goes along
        group = np.minimum(group, len(used) - 1)
        return Cut(variable, column, group, tuple(column.labels[value] for value in used.tolist()))
    # the middle of a cell's share says which of the equal groups it belongs to
    middle = np.cumsum(shares) - 0.5 * shares
    raw = np.minimum((middle / shares.sum() * bins).astype(np.int64), bins - 1)
    group = np.unique(raw, return_inverse=True)[1].ravel()
    labels = []
    for place in range(int(group.max()) + 1):
        cells = np.flatnonzero((group == place) & (shares > 0))
        low = column.labels[int(cells[0])].split(" to ")[0]
        high = column.labels[int(cells[-1])].split(" to ")[-1]
        labels.append(low if low == high else f"{low} to {high}")
    return Cut(variable, column, group, tuple(labels))


@dataclass(frozen=True, eq=False)
class Split(Shown):
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

    def plot(self, ax: Any = None) -> SplitDisplay:  # noqa: ANN401
        """Draw it, on axes of yours or on new ones; needs matplotlib."""
        from expecta.explore.displays import SplitDisplay

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


def split(subject: Subject, columns: Sequence[str], given: Any, bins: int) -> Split:  # noqa: ANN401
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
    subject: Subject,
    given: Any,  # noqa: ANN401
    cuts: Sequence[Cut],
    places: Ints,
    share: Floats,
) -> tuple[Ints | None, Floats | None, Bools | None]:
    """Count the training rows in each group, and average their target."""
    seen = subject.seen
    if seen is None:
        return None, None, None
    sizes = [len(one.labels) for one in cuts]
    own = np.stack([one.place(seen) for one in cuts])
    inside = np.all(own >= 0, axis=0) & (seen.weight > 0)
    inside &= Query.of(given, subject.encoder).matches(seen.table(subject.encoder))
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
