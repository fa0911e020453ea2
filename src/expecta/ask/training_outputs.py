"""Compute a model's outputs over its training rows once, and how far the density is off there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from expecta.ask.credibility import Credibility
from expecta.ask.typical_error import CodedOutputs, learn_credibility
from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.expected.expected_output import ExpectedOutput
from expecta.tables.group_sums import GroupSums
from expecta.tables.number_column import NumberColumn
from expecta.tables.training_rows import TrainingRows

MAX_DRAWS = 20_000  # samples from the density that its typical error is learned from
MAX_SAMPLED_DRAWS = 8192  # of a model that is sampled, and so perhaps slow
MAX_CELLS = 1 << 22  # of all samples
MAX_LEARNED_ROWS = 20_000  # training rows that it is learned from


@dataclass(frozen=True, eq=False)
class TrainingOutputs:
    """The model's outputs over its training rows.

    Attributes
    ----------
    subject, rows, codes
        The output, the rows, and their values of the density, -1 where unknown.
    outputs
        The expected output of each row, the model's own where it is complete; of a model that is
        sampled, that of one sample of the row. NaN for rows that the model refuses or that are
        impossible.
    """

    subject: ExpectedOutput
    rows: TrainingRows
    codes: Ints
    outputs: Floats

    @classmethod
    def of(cls, subject: ExpectedOutput) -> TrainingOutputs | None:
        """Compute outputs at the first question; None where training rows were not kept.

        Cost: a prediction for each training row.
        """
        if not isinstance(subject.training_rows, TrainingRows):
            return None
        if "training outputs" not in subject.kept:
            subject.kept["training outputs"] = cls._compute(subject, subject.training_rows)
        outputs: TrainingOutputs = subject.kept["training outputs"]
        return outputs

    @classmethod
    def _compute(cls, subject: ExpectedOutput, rows: TrainingRows) -> TrainingOutputs:
        table = rows.to_table(subject.encoder)
        codes = subject.encoder.codes(table)
        taken = rows.weight > 0
        for variable, value in subject.context.refused:
            taken &= codes[:, variable] != value
        outputs: Floats = np.full(len(rows), np.nan)
        complete = np.all(codes >= 0, axis=1)
        asked = np.flatnonzero(taken & complete if subject.samples_mean else taken)
        try:
            hidden = np.zeros((len(asked), codes.shape[1]), np.bool_)
            outputs[asked] = subject.mean_of_rows(table, asked, hidden)[0]
        except DomainError:  # the model refuses some of them: there is no mean over rows
            return cls(subject, rows, codes, outputs)
        if subject.samples_mean:
            asked = np.flatnonzero(taken & ~complete)
            evidence = Evidence.rows(codes[asked], subject.encoder.cardinalities_)
            outputs[asked] = subject.draws(evidence, 1, subject.sampling.rng())[:, 0]
        return cls(subject, rows, codes, outputs)

    @cached_property
    def weight(self) -> Floats:
        """How much each row counts: 0 where there is no output."""
        return np.where(np.isnan(self.outputs), 0.0, self.rows.weight)

    def log_prob(self, rows: Ints) -> Floats:
        """Log-probability of what is known of some rows, computed once for each."""
        log_prob = self._log_prob
        new = rows[np.isnan(log_prob[rows])]
        if len(new):
            log_prob[new] = self.subject.circuit.log_prob(self.codes[new])
        return log_prob[rows]

    @cached_property
    def _log_prob(self) -> Floats:
        return np.full(len(self.codes), np.nan)

    @cached_property
    def values(self) -> Floats:
        """The outputs less their mean, 0 where there is none: squares of these do not cancel."""
        return np.where(self.weight > 0, self.outputs - self.center, 0.0)

    @cached_property
    def center(self) -> float:
        """The mean of the outputs; 0 without any."""
        total = self.weight.sum()
        return float(np.nansum(self.weight * self.outputs) / total) if total > 0 else 0.0

    @cached_property
    def credibility(self) -> Credibility:
        """How far the density is typically off, learned at the first question.

        Cost: at most 20,000 samples from the density, the output for each, and 320 groups.
        """
        subject = self.subject
        used = np.flatnonzero(self.weight > 0)
        n_rows = len(used)
        if n_rows > MAX_LEARNED_ROWS:
            rng = np.random.default_rng(0)
            used = np.sort(rng.choice(used, MAX_LEARNED_ROWS, replace=False))
        rows = CodedOutputs(self.codes[used], self.outputs[used], self.weight[used])
        draws = density_draws(subject)
        ordered = [isinstance(column.plain, NumberColumn) for column in subject.encoder.columns_]
        return learn_credibility(rows, draws, ordered, n_rows)


def density_draws(subject: ExpectedOutput) -> CodedOutputs:
    """Return samples from the density and the output for each, drawn at the first question."""
    if "draws" not in subject.kept:
        rng, cardinalities = np.random.default_rng(1), subject.encoder.cardinalities_
        n = MAX_SAMPLED_DRAWS if subject.samples_mean else MAX_DRAWS
        n = max(1, min(n, MAX_CELLS // len(cardinalities)))
        unknown = subject.taken(Evidence.unknown(cardinalities))
        codes = subject.circuit.sample(n, given=unknown, seed=rng)[0]
        subject.kept["draws"] = CodedOutputs(codes, subject.outputs(codes, rng), np.ones(n))
    draws: CodedOutputs = subject.kept["draws"]
    return draws


def credibility_of(subject: ExpectedOutput) -> Credibility | None:
    """Return how far the density is typically off; None where nothing is known of rows."""
    training = subject.training_rows
    if isinstance(training, GroupSums):
        learned = training.credibility
        index = subject.context.output
        return None if index >= len(learned) else Credibility(*learned[index].tolist())
    outputs = TrainingOutputs.of(subject)
    return None if outputs is None else outputs.credibility
