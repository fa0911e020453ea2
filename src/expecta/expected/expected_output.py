"""Answer about one number that a model outputs, given evidence: mean, variance, distribution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from expecta.circuits.evidence import Evidence
from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.common.arrays import Bools, Floats, Ints
from expecta.expected.distributions import OutputDistribution, SampledDistribution
from expecta.expected.sampling import Sampling, row_batches, sample_means
from expecta.tables import Encoder
from expecta.tables.group_sums import TrainingData
from expecta.tables.table import Table

Answer: TypeAlias = tuple[Floats, Floats]  # values and their errors

BINS_NOTE = "A number counts as its bin of the density, and an interval that cuts a bin as a share."


class GroupSummary(NamedTuple):
    """Mean and variance of an output over groups, with their errors.  # (groups,) each."""

    mean: Floats
    error: Floats
    variance: Floats
    variance_error: Floats


@dataclass(frozen=True, eq=False)
class OutputContext:
    """What is known of an output, whatever computes its expectation.

    Attributes
    ----------
    name, of_class, is_margin
        What the number is called; the index of the class whose probability it is, if so, and
        whether it is that class's margin instead.
    encoder, circuit
        The density: what its variables are to the user, and the distribution.
    training_rows
        The training rows, or sums over groups of them, if either was kept.
    read
        Reads rows that a user gave, as the model's ``predict`` does.
    sampling
        How many samples are drawn where something is not computed.
    exactness
        What is exact, in a sentence or a few.
    mean_of_rows
        The expectation for rows of a table with further cells hidden, where a model tells
        numbers apart that the density does not.
    refused
        Variables, and values of theirs that the model does not take.
    check
        Complains of rows in which known numbers are among what the model refuses.
    output
        The index of the output among all that the model has.
    """

    name: str
    of_class: int | None
    encoder: Encoder
    circuit: ProbabilisticCircuit
    training_rows: TrainingData | None
    read: Callable[[Any], Table]
    sampling: Sampling
    exactness: str
    mean_of_rows: Callable[[Table, Ints, Bools], Answer] | None = None
    is_margin: bool = False
    refused: tuple[tuple[int, int], ...] = ()
    check: Callable[[Table], None] | None = None
    output: int = 0

    def with_density(self, circuit: ProbabilisticCircuit) -> OutputContext:
        """Return the same for another density, which only codes can be asked of."""
        return replace(self, circuit=circuit, mean_of_rows=None)


class ExpectedOutput(ABC):
    """One number that a model outputs, over a density of its inputs.

    Answers come with an error: a bound where they are computed, a standard error where they
    are sampled, and 0 where they are exact to rounding, given the density; ``exactness`` says
    which. Evidence of probability zero gives NaN, without a warning. This class samples;
    those that derive from it compute what they can.

    Attributes
    ----------
    name, of_class, encoder, circuit, training_rows, sampling, exactness
        As in :class:`OutputContext`.
    samples_mean, samples_variance
        Whether these are sampled: their errors are then standard errors of independent
        samples, not bounds.
    kept
        What questions compute once.
    """

    samples_mean = True
    samples_variance = True

    def __init__(self, context: OutputContext) -> None:
        self.context = context
        self.name, self.of_class, self.exactness = context.name, context.of_class, context.exactness
        self.encoder, self.circuit = context.encoder, context.circuit
        self.training_rows, self.sampling = context.training_rows, context.sampling
        self.kept: dict[str, Any] = {}

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self.encoder.feature_names_in_.tolist()

    @property
    def is_probability(self) -> bool:
        """Whether the number is the probability of a class."""
        return self.of_class is not None and not self.context.is_margin

    @abstractmethod
    def outputs(self, codes: Ints, rng: np.random.Generator) -> Floats:
        """Return the model's number for complete rows of the density's values.  # (rows,)."""

    @abstractmethod
    def with_density(self, circuit: ProbabilisticCircuit) -> ExpectedOutput:
        """Return the same model over another density of the same variables."""

    def table(self, X: Any) -> Table:
        """Read rows that a user gave, as the model's ``predict`` does."""
        return self.context.read(X)

    def check(self, table: Table) -> None:
        """Complain of known numbers that the model refuses, as its ``predict`` does."""
        if self.context.check is not None:
            self.context.check(table)

    def taken(self, evidence: Evidence) -> Evidence:
        """Return evidence without the values that the model refuses."""
        for variable, value in self.context.refused:
            allowed = np.arange(self.encoder.cardinalities_[variable]) != value
            evidence = evidence.likelihood(variable, allowed)
        return evidence

    # -- rows of evidence -------------------------------------------------------------

    def probability(self, evidence: Evidence) -> Floats:
        """Probability of each row of evidence. Exact, given the density.  # (rows,)."""
        return np.exp(self.circuit.log_prob(evidence))

    def mean(self, evidence: Evidence) -> Answer:
        """Compute the expectation of the output given each row of evidence, and its error."""
        return self._where(self._possible(evidence), evidence, self._mean)

    def mean_and_log_prob(self, evidence: Evidence) -> Answer:
        """Compute the expectation, NaN where impossible, and log p of each row of evidence."""
        log_prob = self.circuit.log_prob(evidence)
        return self._where(np.isfinite(log_prob), evidence, self._mean)[0], log_prob

    def variance(self, evidence: Evidence) -> Answer:
        """Variance of the model's output over the unknown inputs, and its error."""
        return self._where(self._possible(evidence), evidence, self._variance)

    def above(self, evidence: Evidence, threshold: float) -> Answer:
        """P(output >= threshold | evidence), and its error."""
        possible = self._possible(evidence)
        return self._where(possible, evidence, lambda rows: self._above(rows, threshold))

    def draws(self, evidence: Evidence, n: int, rng: np.random.Generator) -> Floats:
        """Return outputs of the model on conditional samples.  # (rows, n)."""
        possible = self._possible(evidence)
        out = np.full((len(evidence), n), np.nan)
        if n and np.any(possible):
            out[possible] = self._draws(evidence[possible], n, rng)
        return out

    def mean_of_rows(self, table: Table, rows: Ints, hidden: Bools) -> Answer:
        """Compute the expectation for rows of a table with further cells hidden, and its error.

        ``hidden`` has a column for each variable of the density.  # (rows, variables)
        Complete rows have the model's own answer.
        """
        if self.context.mean_of_rows is not None:
            return self.context.mean_of_rows(table, rows, hidden)
        codes = np.where(hidden, -1, self.encoder.codes(table)[rows])
        complete = np.all(codes >= 0, axis=1)
        value, error = np.zeros((2, len(codes)))
        if np.any(complete):
            value[complete] = self.outputs(codes[complete], self.sampling.rng())
        if not np.all(complete):
            incomplete = Evidence.rows(codes[~complete], self.encoder.cardinalities_)
            value[~complete], error[~complete] = self.mean(incomplete)
        return value, error

    # -- groups: rows of evidence, mixed by weight ------------------------------------

    def group_means(self, evidence: Evidence, weight: Floats) -> Answer:
        """Compute the expectation over groups that are made up of rows of evidence, and its error.

        Parameters
        ----------
        evidence
            The parts of the first group, then those of the second, and so on.
        weight
            The probability of each part of each group, up to a factor; those of weight zero
            do not count, and a group without any gives NaN.  # (groups, parts)
        """
        return self.mix_terms(*self._terms_where(weight.ravel() > 0, evidence), weight)

    def terms(self, evidence: Evidence) -> Answer:
        """Compute what :meth:`mix_terms` takes of each row of evidence, and its error.

        Both have shape (rows, terms).
        """
        return self._terms_where(self._possible(evidence), evidence)

    def mix_terms(self, terms: Floats, error: Floats, weight: Floats) -> Answer:
        """Compute what :meth:`group_means` returns from the terms of the rows of evidence."""
        return self._mixed(terms.reshape(weight.shape), error.reshape(weight.shape), weight)

    def describe_groups(self, evidence: Evidence, weight: Floats) -> GroupSummary:
        """Compute mean and variance over such groups in one pass, with their errors."""
        shape, used = weight.shape, weight.ravel() > 0
        parts = np.full((4, len(evidence)), np.nan)
        if np.any(used):
            parts[:, used] = np.stack(self._mean_and_variance(evidence[used]))
        mean, error, variance, variance_error = (part.reshape(shape) for part in parts)
        share = normalised_weights(weight)
        centre = np.sum(share * np.where(share > 0, mean, 0.0), axis=1, keepdims=True)
        within = np.where(share > 0, variance + (mean - centre) ** 2, 0.0)
        loose = np.where(share > 0, variance_error, 0.0)
        return GroupSummary(
            *self._group_mean(evidence, weight, mean, error),
            np.sum(share * within, axis=1),
            np.sum(share * loose, axis=1),
        )

    def distribution(self, evidence: Evidence, weight: Floats) -> OutputDistribution:
        """Distribution of the model's output over rows of evidence that make up a group.

        The rows are mixed by weight; those of weight zero do not count, and at least one
        must count.
        """
        used = weight > 0
        return self._distribution(evidence[used], weight[used] / weight[used].sum())

    def with_independent(self, column: str, weights: Floats | None = None) -> ExpectedOutput:
        """Return the same model where a column is independent of all others, and uniform.

        Given a value of the column, the expectation is then the partial dependence on it:
        the others keep the distribution that they have whatever the column is. With weights
        of the column's values, it is the distribution that they have given these. Exact.
        """
        variable, circuit = self.encoder.variable(column), self.circuit
        if weights is not None:
            unknown = Evidence.unknown(self.encoder.cardinalities_)
            circuit = circuit.condition(unknown.likelihood(variable, weights))
        return self.with_density(_independent(circuit, variable))

    # -- by sampling ------------------------------------------------------------------

    def _mean(self, evidence: Evidence) -> Answer:
        s = self.sampling
        rng = s.rng()

        def draw(rows: Ints, counts: Ints) -> Floats:
            codes = self.circuit.sample(int(counts.max()), given=evidence[rows], seed=rng)
            keep = np.arange(codes.shape[1])[None] < counts[:, None]
            return self.outputs(codes[keep], rng)[:, None]

        scale = np.array([s.scale])
        sampled = sample_means(draw, len(evidence), scale, s.rtol, s.max_samples)
        return sampled.mean[:, 0], sampled.error[:, 0]

    def _variance(self, evidence: Evidence) -> Answer:
        values = self._draws(evidence, self.sampling.fixed, self.sampling.rng())
        n = values.shape[1]
        gap = values - values.mean(axis=1, keepdims=True)
        variance = np.sum(gap**2, axis=1) / (n - 1)
        fourth = np.mean(gap**4, axis=1)
        return variance, np.sqrt(np.maximum(fourth - variance**2, 0.0) / n)

    def _mean_and_variance(self, evidence: Evidence) -> tuple[Floats, Floats, Floats, Floats]:
        return *self._mean(evidence), *self._variance(evidence)

    def _above(self, evidence: Evidence, threshold: float) -> Answer:
        values = self._draws(evidence, self.sampling.fixed, self.sampling.rng())
        n = values.shape[1]
        share = np.mean(values >= threshold, axis=1)
        return share, np.hypot(np.sqrt(share * (1 - share) / n), 1.0 / n)

    def _distribution(self, evidence: Evidence, weight: Floats) -> OutputDistribution:
        # as many samples of each row as its weight asks for, so that all count alike
        n = self.sampling.fixed
        ends = np.round(np.append(0.0, np.cumsum(weight)) * n).astype(np.int64)
        rows = np.repeat(np.arange(len(weight)), ends[1:] - ends[:-1])
        return SampledDistribution(self._draws(evidence[rows], 1, self.sampling.rng())[:, 0])

    def _draws(self, evidence: Evidence, n: int, rng: np.random.Generator) -> Floats:
        out = np.empty((len(evidence), n))
        for rows in row_batches(np.arange(len(evidence)), np.full(len(evidence), n)):
            codes = self.circuit.sample(n, given=evidence[rows], seed=rng)
            out[rows] = self.outputs(codes.reshape(-1, codes.shape[-1]), rng).reshape(-1, n)
        return out

    # ---------------------------------------------------------------------------------

    def _possible(self, evidence: Evidence) -> Bools:
        return np.isfinite(self.circuit.log_prob(evidence))

    def _where(
        self, used: Bools, evidence: Evidence, answer: Callable[[Evidence], Answer]
    ) -> Answer:
        """Answer for some rows of evidence; the others have NaN."""
        if np.all(used) and len(evidence):
            return answer(evidence)
        value, error = np.full((2, len(evidence)), np.nan)
        if np.any(used):
            value[used], error[used] = answer(evidence[used])
        return value, error

    def _terms_where(self, used: Bools, evidence: Evidence) -> Answer:
        mean, error = self._where(used, evidence, self._mean)
        return mean[:, None], error[:, None]

    def _group_mean(
        self, evidence: Evidence, weight: Floats, mean: Floats, error: Floats
    ) -> Answer:
        """Return the means of groups, from those of their parts.  # (groups, parts)."""
        return self._mixed(mean, error, weight)

    def _mixed(self, mean: Floats, error: Floats, weight: Floats) -> Answer:
        """Mix means of parts; errors of samples are independent, bounds add up."""
        share = normalised_weights(weight)
        mean, error = (np.where(share > 0, part, 0.0) for part in (mean, error))
        if self.samples_mean:
            loose = np.sqrt(np.sum(share**2 * error**2, axis=1))
        else:
            loose = np.sum(share * error, axis=1)
        return np.sum(share * mean, axis=1), loose


def normalised_weights(weight: Floats) -> Floats:
    """Return weights that sum to one in every row, NaN where all are zero."""
    total = weight.sum(axis=1, keepdims=True)
    return np.divide(weight, total, out=np.full(weight.shape, np.nan), where=total > 0)


def _independent(circuit: ProbabilisticCircuit, variable: int) -> ProbabilisticCircuit:
    """Make every unit of a variable uniform: it is then independent of all others."""
    s = circuit.structure
    layer = int(np.flatnonzero(s.vtree.variable == variable)[0])
    first, last = int(s.node_start[layer]), int(s.node_start[layer + 1])
    begin, end = int(s.edge_start[first]), int(s.edge_start[last])
    card, units = int(s.cardinalities[variable]), last - first
    more = card * units - (end - begin)
    values = np.tile(np.arange(card), units)
    inner = begin + card * np.arange(units)
    structure = replace(
        s,
        edge_start=np.concatenate([s.edge_start[:first], inner, s.edge_start[last:] + more]),
        target=np.concatenate([s.target[:begin], values, s.target[end:]]),
    )
    even = np.full(card * units, -np.log(card))
    log_weight = np.concatenate([circuit.log_weight[:begin], even, circuit.log_weight[end:]])
    return ProbabilisticCircuit(structure, log_weight).merged()
