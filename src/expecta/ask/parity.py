"""Compare the expected output between the values of a sensitive column: demographic parity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from expecta.ask.column_parts import ColumnPart
from expecta.ask.populations import Facts, GroupMeans, Population
from expecta.ask.printed_answer import PrintedAnswer
from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Floats
from expecta.common.text import counted, number
from expecta.expected.expected_output import ExpectedOutput
from expecta.tables.table import Table

EVERYONE = "everyone"


@dataclass(frozen=True, eq=False)
class Parity(PrintedAnswer):
    """How much the expected output differs between the values of a sensitive column.

    Attributes
    ----------
    column, values
        The sensitive column and its values.
    within
        The groups compared within: everyone, then each part of each other column.
    mean, error, share
        Expected output, its error and the share of each value; NaN means where the share is
        too small.  # (groups, values)
    difference
        The largest mean less the smallest, in each group.  # (groups,)
    of_rows
        Whether these are averages over a table's rows, not expectations under the density.
    unknown
        In how many of these rows the sensitive column was unknown.
    """

    column: str
    values: tuple[str, ...]
    within: tuple[str, ...]
    mean: Floats
    error: Floats
    share: Floats
    difference: Floats
    of_rows: bool
    unknown: int

    def lines(self) -> dict[str, object]:  # type: ignore[override]
        """Return a line per group."""
        columns: dict[str, object] = {"within": list(self.within), "difference": self.difference}
        return columns | {value: self.mean[:, i] for i, value in enumerate(self.values)}

    def head(self) -> list[str]:
        """Return the sentence before the table."""
        return [f"Parity of {self.column}{' over the rows' if self.of_rows else ''}"]

    def notes(self) -> list[str]:
        """Return how unknown values count."""
        if not self.unknown:
            return []
        return [
            f"No value of {self.column} in {counted(self.unknown, 'row')}; each counts towards "
            f"every value with its posterior probability."
        ]

    def sentences(self) -> list[str]:
        """Return it in a few lines: everyone, and the group where it is worst."""
        means = ", ".join(
            f"{value}: {number(mean)}"
            for value, mean in zip(self.values, self.mean[0], strict=True)
        )
        sentence = f"{self.head()[0]}: difference {number(self.difference[0])} ({means})"
        worst = int(np.argmax(np.nan_to_num(self.difference, nan=-1.0)))
        if worst:
            largest = number(self.difference[worst])
            sentence += f"; the largest is within {self.within[worst]}: {largest}"
        return [f"{sentence}.", *self.notes()]


def parity_within(
    subject: ExpectedOutput,
    population: Population,
    variable: int,
    parts: list[list[ColumnPart]],
    others: list[int],
    min_share: float,
) -> Parity:
    """Compare E[f | group, value] between values, for everyone and each part of other columns.

    As exact as means are. Values whose share with the group is below ``min_share`` are left out.
    """
    groups, values = _groups(parts, others), parts[variable]
    facts: list[Facts] = []
    for group in groups:
        fact = () if group is None else ((group.variable, group.values),)
        facts += [(*fact, (value.variable, value.values)) for value in values]
    means = population.means(subject, facts)
    share, mean, error = (part.reshape(len(groups), len(values)) for part in means)
    small = (share < min_share) | (share == 0)
    mean, error = np.where(small, np.nan, mean), np.where(small, np.nan, error)
    return _parity(subject, values, groups, GroupMeans(share, mean, error), None)


def parity_of_rows(
    subject: ExpectedOutput,
    table: Table,
    variable: int,
    parts: list[list[ColumnPart]],
    others: list[int],
) -> Parity:
    """Compare the mean prediction of a table's rows between values of a sensitive column.

    A row in which the value is unknown counts for each with its exact posterior probability
    given the rest of the row. Within a part of another column are the rows known to be in it.
    """
    codes = subject.encoder.codes(table)
    rows = np.arange(len(codes))
    value, error = subject.mean_of_rows(table, rows, np.zeros(codes.shape, np.bool_))
    values = parts[variable]
    weight = np.stack([np.isin(codes[:, variable], part.values) for part in values], axis=1)
    weight = weight.astype(np.float64)
    evidence = Evidence.rows(codes, subject.encoder.cardinalities_)
    possible = np.isfinite(subject.circuit.log_prob(evidence))
    unknown = (codes[:, variable] < 0) & possible
    if np.any(unknown):
        posterior = subject.circuit.marginals(evidence[unknown])[variable]
        for i, part in enumerate(values):
            weight[unknown, i] = posterior[:, part.values].sum(axis=1)
    weight[np.isnan(value)] = 0.0
    value, error = np.nan_to_num(value), np.nan_to_num(error)
    groups = _groups(parts, others)
    member = np.ones((len(groups), len(codes)))
    for i, group in enumerate(groups):
        if group is not None:
            member[i] = np.isin(codes[:, group.variable], group.values)
    share = member @ weight
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (member * value) @ weight / share
        loose = (member * error) @ weight / share
    means = GroupMeans(share / max(len(codes), 1), mean, loose)
    return _parity(subject, values, groups, means, int(unknown.sum()))


def _groups(parts: list[list[ColumnPart]], others: list[int]) -> list[ColumnPart | None]:
    """Return the groups to compare within: everyone, and each part of other columns."""
    return [None, *(part for other in others for part in parts[other])]


def _parity(
    subject: ExpectedOutput,
    values: list[ColumnPart],
    groups: list[ColumnPart | None],
    means: GroupMeans,
    unknown: int | None,
) -> Parity:
    known = np.isfinite(means.value)
    high = np.where(known, means.value, -np.inf).max(axis=1)
    low = np.where(known, means.value, np.inf).min(axis=1)
    column = subject.encoder.columns_[values[0].variable]
    labels = [
        column.labels[part.members[0]] if len(part.members) == 1 else part.text for part in values
    ]
    return Parity(
        column.name,
        tuple(labels),
        tuple(EVERYONE if group is None else group.text for group in groups),
        means.value,
        means.error,
        means.share,
        np.where(known.any(axis=1), high - low, np.nan),
        unknown is not None,
        unknown or 0,
    )
