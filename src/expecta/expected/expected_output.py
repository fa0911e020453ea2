"""What questions are asked about: one number that a model returns, over a density."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from expecta.circuits.evidence import Evidence
from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.common.arrays import Bools, Floats, Ints
from expecta.expected.about import About, Answer
from expecta.expected.distributions import OutputDistribution, SampledDistribution
from expecta.expected.sampling import estimate, in_parts
from expecta.tables.table import Table

__all__ = ["Answer", "ExpectedOutput", "parted"]


class ExpectedOutput(ABC):
    """One number that a model returns, over a density of its inputs.

    Answers come with an error: a bound where they are computed, a standard error where they
    are sampled, and 0 where they are exact to rounding; ``exactness`` says which. Evidence of
    probability zero gives NaN, without a warning. This class samples; those that derive from
    it compute what they can.

    Attributes
    ----------
    name
        What the number is called.
    encoder, circuit
        The density: what its variables are to the user, and the distribution.
    seen
        The training rows, if they were kept.
    of_class
        The place of the class whose probability the number is, None for other numbers.
    exactness
        What is exact, in a sentence or a few.
    """

    def __init__(self, about: About) -> None:
        self.about = about
        self.name, self.of_class, self.exactness = about.name, about.of_class, about.exactness
        self.encoder, self.circuit, self.seen = about.encoder, about.circuit, about.seen
        self.sampling = about.sampling

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        names: list[str] = self.encoder.feature_names_in_.tolist()
        return names

    # -- what there is to ask ---------------------------------------------------------

    @abstractmethod
    def outputs(self, codes: Ints, rng: np.random.Generator) -> Floats:
        """Return the model's number for complete rows of the density's values.  # (rows,)."""

    @abstractmethod
    def under(self, circuit: ProbabilisticCircuit) -> ExpectedOutput:
        """Return the same model over another density of the same variables."""

    def table(self, X: Any) -> Table:
        """Read rows that a user gave, as the model's ``predict`` does."""
        return self.about.read(X)

    def share(self, evidence: Evidence) -> Floats:
        """Probability of each row of evidence. Exact.  # (rows,)."""
        return np.exp(self.circuit.log_prob(evidence))

    def mean(self, evidence: Evidence) -> Answer:
        """Compute the expectation of the output given each row of evidence, and its error."""
        return self._asked(evidence, self._mean)

    def variance(self, evidence: Evidence) -> Answer:
        """Variance of the model's output over what is unknown, and its error."""
        return self._asked(evidence, self._variance)

    def above(self, evidence: Evidence, threshold: float) -> Answer:
        """P(output >= threshold | evidence), and its error."""
        return self._asked(evidence, lambda possible: self._above(possible, threshold))

    def averages(self, evidence: Evidence, weight: Floats) -> Answer:
        """Compute the expectation over groups that are made up of rows of evidence, and its error.

        Parameters
        ----------
        evidence
            The parts of the first group, then those of the second, and so on.
        weight
            How much each part of each group counts; those of weight zero do not, and a group
            without any gives NaN.  # (groups, parts)
        """
        return self.mixed(*self.terms(evidence), weight)

    def terms(self, evidence: Evidence) -> Answer:
        """Compute what :meth:`mixed` takes of each row of evidence, and its error.  # (rows, k)."""
        mean, error = self.mean(evidence)
        return mean[:, None], error[:, None]

    def mixed(self, terms: Floats, error: Floats, weight: Floats) -> Answer:
        """Compute what :meth:`averages` returns from the terms of the rows of evidence."""
        part = parted(weight)
        mean, loose = (np.where(part > 0, one.reshape(weight.shape), 0.0) for one in (terms, error))
        square = np.sqrt(np.sum(part**2 * loose**2, axis=1))
        return np.sum(part * mean, axis=1), (
            square if self.sampled else np.sum(part * loose, axis=1)
        )

    def average(self, evidence: Evidence, weight: Floats) -> tuple[float, float]:
        """Compute the same for a single group, of parts with these weights."""
        mean, error = self.averages(evidence, weight[None])
        return float(mean[0]), float(error[0])

    def spreads(self, evidence: Evidence, weight: Floats) -> Answer:
        """Compute the variance of the output over such groups, and its error."""
        mean = self.mean(evidence)[0].reshape(weight.shape)
        within, error = (one.reshape(weight.shape) for one in self.variance(evidence))
        part = parted(weight)
        mean, within, error = (np.where(part > 0, one, 0.0) for one in (mean, within, error))
        gap = mean - np.sum(part * mean, axis=1, keepdims=True)
        return np.sum(part * (within + gap**2), axis=1), np.sum(part * error, axis=1)

    def law(self, evidence: Evidence, weight: Floats) -> OutputDistribution:
        """Distribution of the model's output over rows of evidence that make up a group.

        The rows are mixed by weight; those of weight zero do not count, and one is needed
        that does.
        """
        used = weight > 0
        return self._law(evidence[used], weight[used] / weight[used].sum())

    def quantiles(self, evidence: Evidence, weight: Floats, q: Floats) -> Answer:
        """Quantiles of the model's output over such a group, and their errors.  # (levels,)."""
        levels = np.asarray(q, np.float64)
        if not np.any(weight > 0):
            return np.full(len(levels), np.nan), np.full(len(levels), np.nan)
        return self.law(evidence, weight).quantiles(levels)

    def draws(self, evidence: Evidence, n: int, rng: np.random.Generator) -> Floats:
        """Return outputs of the model on conditional samples.  # (rows, n)."""
        possible = self._possible(evidence)
        out = np.full((len(evidence), n), np.nan)
        if n and np.any(possible):
            out[possible] = self._draws(evidence[possible], n, rng)
        return out

    def of_table(self, table: Table, rows: Ints, hidden: Bools) -> Answer:
        """Compute the expectation for rows of a table with further cells hidden, and its error.

        ``hidden`` has a column for each variable of the density.  # (rows, variables)
        Complete rows have the model's own answer.
        """
        if self.about.own is not None:
            return self.about.own(table, rows, hidden)
        codes = np.where(hidden, -1, self.encoder.codes(table)[rows])
        complete = np.all(codes >= 0, axis=1)
        value, error = np.zeros((2, len(codes)))
        if np.any(complete):
            value[complete] = self.outputs(codes[complete], self.sampling.rng())
        if not np.all(complete):
            holes = Evidence.rows(codes[~complete], self.encoder.cardinalities_)
            value[~complete], error[~complete] = self.mean(holes)
        return value, error

    def apart(self, column: str, weights: Floats | None = None) -> ExpectedOutput:
        """Return the same model where a column is independent of all others, and uniform.

        Given a value of the column, the expectation is then the partial dependence on it:
        the others keep the distribution that they have whatever the column is. With weights
        of the column's values, it is the distribution that they have given these. Exact.
        """
        variable, circuit = self.encoder.variable(column), self.circuit
        if weights is not None:
            nothing = Evidence.unknown(self.encoder.cardinalities_)
            circuit = circuit.condition(nothing.likelihood(variable, weights))
        return self.under(_independent(circuit, variable))

    # -- by sampling ------------------------------------------------------------------

    def _mean(self, evidence: Evidence) -> Answer:
        asked = self.sampling
        return estimate(
            lambda rows, n, rng: self._draws(evidence[rows], n, rng),
            len(evidence),
            asked.scale,
            asked.rtol,
            asked.most,
            asked.rng(),
        )

    def _variance(self, evidence: Evidence) -> Answer:
        values = self._draws(evidence, self.sampling.fixed, self.sampling.rng())
        n = values.shape[1]
        gap = values - values.mean(axis=1, keepdims=True)
        variance = np.sum(gap**2, axis=1) / (n - 1)
        fourth = np.mean(gap**4, axis=1)
        return variance, np.sqrt(np.maximum(fourth - variance**2, 0.0) / n)

    def _above(self, evidence: Evidence, threshold: float) -> Answer:
        values = self._draws(evidence, self.sampling.fixed, self.sampling.rng())
        n = values.shape[1]
        share = np.mean(values >= threshold, axis=1)
        return share, np.hypot(np.sqrt(share * (1 - share) / n), 1.0 / n)

    def _law(self, evidence: Evidence, weight: Floats) -> OutputDistribution:
        # as many draws of each row as its weight asks for, so that all draws count alike
        n = self.sampling.fixed
        ends = np.round(np.append(0.0, np.cumsum(weight)) * n).astype(np.int64)
        times = ends[1:] - ends[:-1]
        rows = np.repeat(np.arange(len(times)), times)
        return SampledDistribution(self._draws(evidence[rows], 1, self.sampling.rng())[:, 0])

    def _draws(self, evidence: Evidence, n: int, rng: np.random.Generator) -> Floats:
        out = np.empty((len(evidence), n))
        for rows in in_parts(len(evidence), n):
            codes = self.circuit.sample(n, given=evidence[rows], seed=rng)
            flat = codes.reshape(-1, codes.shape[-1])
            out[rows] = self.outputs(flat, rng).reshape(-1, n)
        return out

    # ---------------------------------------------------------------------------------

    @property
    def sampled(self) -> bool:
        """Whether errors of means are standard errors of independent draws, not bounds."""
        return type(self)._mean is ExpectedOutput._mean

    @property
    def samples_variance(self) -> bool:
        """Whether variances are those of random draws, not computed."""
        return type(self)._variance is ExpectedOutput._variance

    @property
    def is_probability(self) -> bool:
        """Whether the number is the probability of a class, not its margin."""
        return self.of_class is not None and not self.about.is_margin

    def _possible(self, evidence: Evidence) -> Bools:
        return np.isfinite(self.circuit.log_prob(evidence))

    def _asked(self, evidence: Evidence, ask: Callable[[Evidence], Answer]) -> Answer:
        possible = self._possible(evidence)
        if np.all(possible) and len(evidence):
            return ask(evidence)
        value, error = np.full((2, len(evidence)), np.nan)
        if np.any(possible):
            value[possible], error[possible] = ask(evidence[possible])
        return value, error


def parted(weight: Floats) -> Floats:
    """Return weights that sum to one in every row, NaN where all are zero."""
    total = weight.sum(axis=1, keepdims=True)
    found: Floats = np.full(weight.shape, np.nan)
    np.divide(weight, total, out=found, where=total > 0)
    return found


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
