"""Compute shares and means of many groups within a population at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from expecta.ask.language.query import Query, build_evidence, row_text
from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError, ImpossibleEvidenceError
from expecta.expected.expected_output import ExpectedOutput
from expecta.tables import Encoder
from expecta.tables.row_reader import check_one_row
from expecta.tables.table import Table

Facts: TypeAlias = tuple[tuple[int, Ints], ...]  # variables, and the values they are among


def read_one_row(subject: ExpectedOutput, row: Any) -> Table:
    """Read one row, as ``predict`` does."""
    table = check_one_row(subject.table(row))
    subject.check(table)
    return table


def cell_labels(encoder: Encoder, codes: Ints) -> tuple[tuple[str, ...], ...]:
    """Return a text for every cell, empty where it is unknown."""
    return tuple(
        tuple(
            column.labels[code] if code >= 0 else ""
            for column, code in zip(encoder.columns_, row, strict=True)
        )
        for row in codes.tolist()
    )


class GroupMeans(NamedTuple):
    """Groups' shares of a population, expectations and their errors.  # (groups,) each."""

    share: Floats
    value: Floats
    error: Floats


@dataclass(frozen=True, eq=False)
class Population:
    """The rows that meet a condition: disjoint evidence, and the probability of each.

    Probabilities are divided by e^``scale``, the largest of them, so that none underflows.
    """

    evidence: Evidence
    weight: Floats
    scale: float
    written: str
    approximate: tuple[str, ...] = ()

    @classmethod
    def read(cls, subject: ExpectedOutput, given: Any) -> Population:
        """Read a group: a condition (text, facts, a query, None), or a table with one row."""
        query = Query.read(given, subject.encoder)
        if subject.context.check is not None and (known := query.known_numbers):
            row = {name: [known.get(name)] for name in subject.columns}
            subject.check(subject.table(row))
        evidence, notes = query.evidence(subject.encoder), query.approximate
        return cls.from_evidence(subject, evidence, str(query), notes)

    @classmethod
    def from_row(cls, subject: ExpectedOutput, row: Any) -> Population:
        """Read one row as ``predict`` does: a number is its bin, a missing value may be a value."""
        table = read_one_row(subject, row)
        evidence = subject.encoder.evidence(table)
        return cls.from_evidence(subject, evidence, row_text(table, subject.encoder))

    @classmethod
    def from_evidence(
        cls, subject: ExpectedOutput, evidence: Evidence, written: str, notes: Sequence[str] = ()
    ) -> Population:
        """Take disjoint evidence, and what it is called; values that the model refuses are out."""
        given, evidence = evidence, subject.taken(evidence)
        log_prob = subject.circuit.log_prob(evidence)
        scale = float(log_prob.max())
        if scale == -np.inf:
            if evidence is not given and np.any(np.isfinite(subject.circuit.log_prob(given))):
                raise DomainError(
                    f"{written}: the model refuses all of these values, as its predict does; ask "
                    f"about a larger group"
                )
            raise ImpossibleEvidenceError(
                f"{written}: this has probability zero under the learned density, so there is no "
                f"answer; ask about a larger group"
            )
        weight = np.exp(log_prob - scale)
        used = weight > 0
        return cls(evidence[used], weight[used], scale, written, tuple(notes))

    @property
    def possible(self) -> list[Ints]:
        """The values that each variable may still have."""
        pairs = zip(self.evidence.states, self.evidence.codes, strict=True)
        return [
            np.flatnonzero(np.any(states[np.unique(codes)] > 0, axis=0)) for states, codes in pairs
        ]

    def marginals(self, subject: ExpectedOutput) -> list[Floats]:
        """Return the probability of each value of each variable within the population."""
        part = self.weight / self.weight.sum()
        return [part @ posterior for posterior in subject.circuit.marginals(self.evidence)]

    def within(self, groups: Sequence[Facts]) -> Evidence:
        """Return evidence for each part of each group, one group after the other."""
        parts, cards = len(self.weight), self.evidence.cardinalities.tolist()
        rows = [[(v, _indicator(codes, cards[v])) for v, codes in group] for group in groups]
        further = build_evidence(cards, rows)[np.repeat(np.arange(len(groups)), parts)]
        return self.evidence[np.tile(np.arange(parts), len(groups))].both(further)

    def shares(self, subject: ExpectedOutput, groups: Sequence[Facts]) -> Floats:
        """Return the probability of each group within the population. Exact."""
        if not groups:
            return np.zeros(0)
        return self.weights(subject, self.within(groups)).sum(axis=1) / self.weight.sum()

    def weights(self, subject: ExpectedOutput, evidence: Evidence) -> Floats:
        """Return the probability of each part of each group, as scaled.  # (groups, parts)."""
        scaled: Floats = np.exp(subject.circuit.log_prob(evidence) - self.scale)
        return scaled.reshape(-1, len(self.weight))

    def means(self, subject: ExpectedOutput, groups: Sequence[Facts]) -> GroupMeans:
        """Compute shares and expectations of groups; those of share zero have NaN.

        Cost: one batch of as many rows as groups, times the parts of the population.
        """
        if not groups:
            return GroupMeans(*np.zeros((3, 0)))
        evidence = self.within(groups)
        weight = self.weights(subject, evidence)
        value, error = subject.group_means(evidence, weight)
        return GroupMeans(weight.sum(axis=1) / self.weight.sum(), value, error)

    def variance(self, subject: ExpectedOutput) -> tuple[float, float]:
        """Compute the variance of the output over the population, and its error."""
        summary = subject.describe_groups(self.evidence, self.weight[None])
        return float(summary.variance[0]), float(summary.variance_error[0])


def _indicator(codes: Ints, cardinality: int) -> Floats:
    weights = np.zeros(cardinality)
    weights[codes] = 1.0
    return weights
