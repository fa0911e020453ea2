"""Answer about outputs that a circuit computes, through an increasing link, on a pair."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from expecta.circuits.evidence import Evidence
from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.circuits.regression import RegressionCircuit
from expecta.common.arrays import Bools, Floats, Ints
from expecta.expected.distributions import ExactDistribution, OutputDistribution
from expecta.expected.expected_output import (
    Answer,
    ExpectedOutput,
    OutputContext,
    normalised_weights,
)
from expecta.expected.link_variance import mean_and_variance_of_link
from expecta.queries.moments import expectation_and_log_prob, extremes_of, mean_and_central
from expecta.queries.one_vs_rest import class_shares
from expecta.queries.pair import Pair

QUANTILE_TOL = 1e-3  # of probabilities that quantiles are read from
PROBABILITY_TOL = 1e-6  # of probabilities


class IncreasingLink(NamedTuple):
    """An increasing function of g, and its inverse."""

    apply: Callable[[Floats], Floats]
    invert: Callable[[Floats], Floats]


def _log(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(values, 0.0))


LINKS = {
    "identity": IncreasingLink(lambda x: x, lambda x: x),
    "logistic": IncreasingLink(expit, lambda x: logit(np.clip(x, 0.0, 1.0))),
    "exp": IncreasingLink(np.exp, _log),
}


def one_output(pair: Pair, output: int, factor: float = 1.0) -> Pair:
    """Return one output of a pair, times a factor."""
    g = pair.g
    if g.n_outputs == 1 and factor == 1.0:
        return pair
    weight = factor * g.weight[:, [output]]
    return Pair(
        pair.p, RegressionCircuit(g.structure, weight, factor * g.bias[[output]], link=g.link)
    )


class PairOutput(ExpectedOutput):
    """origin + link(g) for a circuit g with one output.

    Means and variances are exact, or within ``tol`` and 1e-10 where the link is logistic;
    probabilities and quantiles within the resolution of `expecta.Distribution`.
    """

    samples_mean = samples_variance = False

    def __init__(
        self, context: OutputContext, pair: Pair, link: str, tol: float, origin: float = 0.0
    ) -> None:
        super().__init__(context)
        self.pair, self.link, self.tol, self.origin = pair, link, tol, origin

    def _apply(self, g: Floats) -> Floats:
        return self.origin + LINKS[self.link].apply(g)

    def _invert(self, output: Floats) -> Floats:
        return LINKS[self.link].invert(output - self.origin)

    def with_density(self, circuit: ProbabilisticCircuit) -> PairOutput:
        """Return the same model over another density of the same variables."""
        context = self.context.with_density(circuit)
        return PairOutput(context, Pair(circuit, self.pair.g), self.link, self.tol, self.origin)

    def outputs(self, codes: Ints, rng: np.random.Generator) -> Floats:
        """Return the model's number for complete rows of values."""
        return self._apply(self.pair.g(codes))

    def _mean(self, evidence: Evidence) -> Answer:
        if self.link == "identity":
            mean = self.pair.expectation(evidence)
            return mean, np.zeros_like(mean)
        mean, error = self.pair.expected(evidence, self.link, tol=self.tol)
        return self.origin + mean, error if self.link == "logistic" else 0.0 * mean

    def mean_and_log_prob(self, evidence: Evidence) -> Answer:
        """Compute the expectation, NaN where impossible, and log p of each row of evidence."""
        if self.link != "identity":
            return super().mean_and_log_prob(evidence)
        mean, log_prob = expectation_and_log_prob(self.pair, evidence)
        return mean[:, 0], log_prob

    def variance(self, evidence: Evidence) -> Answer:
        """Variance of the model's output over the unknown inputs, and its error."""
        return self.mean_and_variance(evidence)[2:]

    def mean_and_variance(self, evidence: Evidence) -> tuple[Floats, Floats, Floats, Floats]:
        """Mean and variance with their errors; NaN where impossible, without a warning."""
        if self.link == "identity":
            moments, impossible = mean_and_central(self.pair, evidence, 2)
            moments[impossible] = np.nan
            exact = np.where(impossible, np.nan, 0.0)
            return moments[:, 0, 1], exact, moments[:, 0, 2], exact
        low, high, impossible = extremes_of(self.pair, evidence)
        if not np.any(impossible):
            return self._about_link(evidence, low[:, 0], high[:, 0])
        parts, possible = np.full((4, len(evidence)), np.nan), ~impossible
        if np.any(possible):
            ends = low[possible, 0], high[possible, 0]
            parts[:, possible] = np.stack(self._about_link(evidence[possible], *ends))
        return parts[0], parts[1], parts[2], parts[3]

    def _mean_and_variance(self, evidence: Evidence) -> tuple[Floats, Floats, Floats, Floats]:
        return self.mean_and_variance(evidence)

    def _about_link(
        self, evidence: Evidence, low: Floats, high: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Compute mean and variance through a link, of g in a range that is known."""
        mean, error, variance, bound = mean_and_variance_of_link(
            self.pair, evidence, self.link, low, high
        )
        return self.origin + mean, error, variance, bound

    def _above(self, evidence: Evidence, threshold: float) -> Answer:
        rows = self.pair.distribution(evidence, tol=PROBABILITY_TOL)
        low, high = self.pair.range(evidence)
        at = self._invert(np.full(len(low), float(threshold)))
        # a threshold that is a value but for rounding is reached
        rounding = 1e-12 * (np.nan_to_num(np.abs(at)) + high - low)
        at = np.clip(at - rounding, low - 1.0, high)
        points = at[:, None] + rows.resolution[:, None] * np.array([-1.0, 0.0, 1.0])
        lower, below, upper = rows.cdf(points).T
        certain = (at < low) | (at >= high)
        below = np.where(at < low, 0.0, np.where(at >= high, 1.0, below))
        error = np.maximum(upper - below, below - lower) + rows.error
        return 1.0 - below, np.where(certain, 0.0, error)

    def _distribution(self, evidence: Evidence, weight: Floats) -> OutputDistribution:
        rows = self.pair.distribution(evidence, tol=QUANTILE_TOL)
        low, high = self.pair.range(evidence)
        ends = float(low.min()), float(high.max())
        return ExactDistribution(rows, weight, *ends, self._apply, self._invert)


class ClassShareOutput(ExpectedOutput):
    """σ(g) of one class over the sum of all classes' σ(g): one against the rest, divided.

    The mean is the ratio of expectations, as ``predict_proba`` has it. All else is sampled,
    and about the ratio itself, whose own mean may differ a little.
    """

    samples_mean = False

    def __init__(self, context: OutputContext, pair: Pair, tol: float) -> None:
        super().__init__(context)
        assert context.of_class is not None
        self.pair, self.tol, self._class = pair, tol, context.of_class

    def with_density(self, circuit: ProbabilisticCircuit) -> ClassShareOutput:
        """Return the same model over another density of the same variables."""
        pair = Pair(circuit, self.pair.g)
        return ClassShareOutput(self.context.with_density(circuit), pair, self.tol)

    def outputs(self, codes: Ints, rng: np.random.Generator) -> Floats:
        """Return the model's number for complete rows of values."""
        each = expit(self.pair.g(codes))
        return self._share(each, np.zeros_like(each))[0]

    def mix_terms(self, terms: Floats, error: Floats, weight: Floats) -> Answer:
        """Return ratios of the expectations over the rows that make up each group."""
        share = normalised_weights(weight)[:, :, None]
        return self._share(
            *(
                np.sum(share * np.where(share > 0, part.reshape(*weight.shape, -1), 0.0), axis=1)
                for part in (terms, error)
            )
        )

    def _mean(self, evidence: Evidence) -> Answer:
        return self._share(*self.pair.expected(evidence, "logistic", tol=self.tol))

    def _terms_where(self, used: Bools, evidence: Evidence) -> Answer:
        """Return the expectations of all classes, and their errors."""
        value, error = np.full((2, len(evidence), self.pair.g.n_outputs), np.nan)
        if np.any(used):
            value[used], error[used] = self.pair.expected(evidence[used], "logistic", tol=self.tol)
        return value, error

    def _group_mean(
        self, evidence: Evidence, weight: Floats, mean: Floats, error: Floats
    ) -> Answer:
        if weight.shape[1] == 1:  # a single part is the group
            return mean[:, 0], error[:, 0]
        return self.group_means(evidence, weight)

    def _share(self, value: Floats, error: Floats) -> Answer:
        shares, bound = class_shares(value, error)
        return shares[:, self._class], bound[:, self._class]
