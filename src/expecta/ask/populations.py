"""Populations and what is asked about them: shares and means, many groups at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from expecta.ask.language.query import Query
from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError, ImpossibleEvidenceError
from expecta.expected.expected_output import ExpectedOutput
from expecta.tables import Encoder
from expecta.tables.table import Table, read_table

__all__ = ["Facts", "Means", "Population", "one_row", "spread_out", "table_of"]

Facts: TypeAlias = tuple[tuple[int, Ints], ...]  # variables, and the values they are among


def table_of(subject: ExpectedOutput, rows: Any) -> Table:
    """Read rows: a table as ``predict`` takes it, or one row as a mapping from columns."""
    return subject.table(spread_out(subject.encoder, rows))


def spread_out(encoder: Encoder, rows: Any) -> Any:
    """Return one row, a mapping from columns to values, as a table; a table as it is.

    Columns that the row does not name are unknown.
    """
    if not isinstance(rows, Mapping) or any(_is_column(value) for value in rows.values()):
        return rows
    for name in rows:
        encoder.variable(name)  # complains of a name that is none
    return {name: [rows.get(name)] for name in encoder.feature_names_in_.tolist()}


def _is_column(value: object) -> bool:
    """Whether a mapping's value is a column of cells, not one cell."""
    return hasattr(value, "__len__") and not isinstance(value, str | bytes)


def one_row(subject: ExpectedOutput, row: Any) -> Table:
    """Read one row: a mapping from columns, or a table with one row."""
    table = table_of(subject, row)
    if table.n_rows != 1:
        raise DomainError(f"one row is asked about, and the table has {table.n_rows}")
    return table


@dataclass(frozen=True, eq=False)
class Means:
    """Groups' shares of a population, expectations and their errors.  # (groups,) each."""

    share: Floats
    value: Floats
    error: Floats


@dataclass(frozen=True, eq=False)
class Population:
    """Those who meet a condition: disjoint rows of evidence, and the probability of each.

    Probabilities are divided by e^``scale``, the largest of them, so that none underflows.
    """

    evidence: Evidence
    weight: Floats
    scale: float
    written: str
    approximate: tuple[str, ...] = ()

    @classmethod
    def of(cls, subject: ExpectedOutput, given: Any) -> Population:
        """Read a condition (text, facts, a query, None), or a table with one row."""
        notes: list[str] = []
        if given is None or isinstance(given, str | Query | Mapping):
            query = Query.of(given, subject.encoder)
            evidence, written, notes = query.parts(subject.encoder), str(query), query.approximate
        else:
            table = read_table(given)
            if table.n_rows != 1:
                raise DomainError(f"one row is asked about, and the table has {table.n_rows}")
            evidence, written = subject.encoder.evidence(subject.table(given)), "the row"
        log_prob = subject.circuit.log_prob(evidence)
        scale = float(log_prob.max())
        if scale == -np.inf:
            raise ImpossibleEvidenceError(
                f"{written}: this has probability zero under the density, so there is nothing to "
                f"say about it; ask for a wider group"
            )
        weight = np.exp(log_prob - scale)
        used = weight > 0
        return cls(evidence[used], weight[used], scale, written, tuple(notes))

    @property
    def possible(self) -> list[Ints]:
        """The values that each variable may still have."""
        found: list[Ints] = []
        for states, codes in zip(self.evidence.states, self.evidence.codes, strict=True):
            found.append(np.flatnonzero(np.any(states[np.unique(codes)] > 0, axis=0)))
        return found

    def within(self, groups: Sequence[Facts]) -> Evidence:
        """Return evidence for each part of each group, one group after the other."""
        parts, cards = len(self.weight), self.evidence.cardinalities.tolist()
        rows = np.tile(np.arange(parts), len(groups))
        asked: list[dict[bytes, int]] = [{} for _ in cards]
        states: list[list[Floats]] = [[np.ones(card)] for card in cards]
        codes = np.zeros((len(cards), len(groups)), np.int32)
        for group, facts in enumerate(groups):
            for variable, values in facts:
                place = asked[variable].setdefault(values.tobytes(), len(states[variable]))
                if place == len(states[variable]):
                    weights = np.zeros(cards[variable])
                    weights[values] = 1.0
                    states[variable].append(weights)
                codes[variable, group] = place
        further = Evidence(
            tuple(map(np.array, states)),
            tuple(np.repeat(code, parts) for code in codes),
            len(rows),
        )
        return self.evidence[rows].both(further)

    def shares(self, subject: ExpectedOutput, groups: Sequence[Facts]) -> Floats:
        """Return the probability of each group within the population. Exact."""
        if not groups:
            return np.zeros(0)
        found = self._weights(subject, self.within(groups))
        shares: Floats = found.sum(axis=1) / self.weight.sum()
        return shares

    def _weights(self, subject: ExpectedOutput, evidence: Evidence) -> Floats:
        """Return the probability of each part of each group.  # (groups, parts)."""
        found: Floats = np.exp(subject.circuit.log_prob(evidence) - self.scale)
        return found.reshape(-1, len(self.weight))

    def means(self, subject: ExpectedOutput, groups: Sequence[Facts]) -> Means:
        """Compute shares and expectations of groups; those of share zero have NaN.

        Cost: one batch of as many rows as groups, times the parts of the population.
        """
        if not groups:
            return Means(*np.zeros((3, 0)))
        evidence = self.within(groups)
        weight = self._weights(subject, evidence)
        value, error = subject.averages(evidence, weight)
        return Means(weight.sum(axis=1) / self.weight.sum(), value, error)

    def variance(self, subject: ExpectedOutput) -> tuple[float, float]:
        """Compute the variance of the output over the population, and its error."""
        value, error = subject.spreads(self.evidence, self.weight[None])
        return float(value[0]), float(error[0])
