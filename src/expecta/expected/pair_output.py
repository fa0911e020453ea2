"""Numbers that a circuit computes, through an increasing link: pairs answer for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from expecta.circuits.evidence import Evidence
from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.circuits.regression import RegressionCircuit
from expecta.common.arrays import Floats, Ints
from expecta.expected.about import About, Answer
from expecta.expected.distributions import ExactDistribution, OutputDistribution
from expecta.expected.expected_output import ExpectedOutput, parted
from expecta.expected.logistic_slope import expected_slope
from expecta.queries.pair import Pair

__all__ = ["Link", "PairOutput", "Shares", "one_output"]

FINE = 1e-12  # error of expectations that variances are made of
COARSE = 1e-3  # of probabilities that quantiles are read from
MIDDLE = 1e-6  # of probabilities


@dataclass(frozen=True)
class Link:
    """An increasing function of g, and back."""

    name: str
    there: Callable[[Floats], Floats]
    back: Callable[[Floats], Floats]


def _log(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        found: Floats = np.log(np.maximum(values, 0.0))
    return found


LINKS = {
    "identity": Link("identity", lambda x: x, lambda x: x),
    "logistic": Link("logistic", expit, lambda x: logit(np.clip(x, 0.0, 1.0))),
    "exp": Link("exp", np.exp, _log),
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
    """link(g) for a circuit g with one output.

    Means and variances are exact, or within ``tol`` and 1e-10 where the link is logistic;
    probabilities and quantiles within the resolution of `expecta.Distribution`.
    """

    def __init__(self, about: About, pair: Pair, link: str, tol: float) -> None:
        super().__init__(about)
        self.pair, self.link, self.tol = pair, LINKS[link], tol

    def under(self, circuit: ProbabilisticCircuit) -> PairOutput:
        """Return the same model over another density of the same variables."""
        pair = Pair(circuit, self.pair.g)
        return PairOutput(self.about.under(circuit), pair, self.link.name, self.tol)

    def _mean(self, evidence: Evidence) -> Answer:
        if self.link.name == "identity":
            found = self.pair.expectation(evidence)
            return found, np.zeros_like(found)
        value, error = self.pair.expected(evidence, self.link.name, tol=self.tol)
        return (value, error) if self.link.name == "logistic" else (value, 0.0 * value)

    def _variance(self, evidence: Evidence) -> Answer:
        if self.link.name == "identity":
            found = self.pair.variance(evidence)
            return found, np.zeros_like(found)
        if self.link.name == "logistic":
            first, loose = self.pair.expected(evidence, "logistic", tol=FINE)
            slope, off = expected_slope(self.pair, evidence, FINE)
            found, error = first - slope - first**2, 3.0 * loose + off
        else:
            twice = one_output(self.pair, 0, 2.0)
            first = self.pair.expected(evidence, "exp").value
            second = twice.expected(evidence, "exp").value
            found, error = second - first**2, np.asarray(1e-12 * second)
        # a number between two ends varies by a quarter of their distance squared at most
        low, high = self.pair.range(evidence)
        most = 0.25 * (self.link.there(high) - self.link.there(low)) ** 2
        return np.clip(found, 0.0, most), np.minimum(error, most)

    def _above(self, evidence: Evidence, threshold: float) -> Answer:
        rows = self.pair.distribution(evidence, tol=MIDDLE)
        low, high = self.pair.range(evidence)
        at: Floats = self.link.back(np.full(len(low), float(threshold)))
        # a threshold that is a value but for rounding is reached
        at = np.clip(at - 1e-12 * (np.abs(at) + high - low), low - 1.0, high)
        points = at[:, None] + rows.resolution[:, None] * np.array([-1.0, 0.0, 1.0])
        least, found, most = rows.cdf(points).T
        sure = (at < low) | (at >= high)
        found = np.where(at < low, 0.0, np.where(at >= high, 1.0, found))
        error = np.maximum(most - found, found - least) + rows.error
        return 1.0 - found, np.where(sure, 0.0, error)

    def _law(self, evidence: Evidence, weight: Floats) -> OutputDistribution:
        rows = self.pair.distribution(evidence, tol=COARSE)
        low, high = self.pair.range(evidence)
        ends = float(low.min()), float(high.max())
        return ExactDistribution(rows, weight, *ends, self.link.there, self.link.back)

    def outputs(self, codes: Ints, rng: np.random.Generator) -> Floats:
        """Return the model's number for complete rows of values."""
        return self.link.there(self.pair.g(codes))


class Shares(ExpectedOutput):
    """σ(g) of one class over the sum of all classes' σ(g): one against the rest, divided.

    The mean is the ratio of expectations, as ``predict_proba`` has it. All else is sampled,
    and about the ratio itself, whose own mean may differ a little.
    """

    def __init__(self, about: About, pair: Pair, tol: float) -> None:
        super().__init__(about)
        self.pair, self.tol = pair, tol

    def under(self, circuit: ProbabilisticCircuit) -> Shares:
        """Return the same model over another density of the same variables."""
        return Shares(self.about.under(circuit), Pair(circuit, self.pair.g), self.tol)

    def outputs(self, codes: Ints, rng: np.random.Generator) -> Floats:
        """Return the model's number for complete rows of values."""
        return self._ratio(expit(self.pair.g(codes)))

    def _ratio(self, each: Floats) -> Floats:
        """Return the share of the class; all are alike where none is likely."""
        total = each.sum(axis=1)
        found: Floats = np.where(np.isnan(total), np.nan, 1.0 / each.shape[1])
        np.divide(each[:, self._place], total, out=found, where=total > 0)
        return found

    @property
    def _place(self) -> int:
        assert self.of_class is not None
        return self.of_class

    def _mean(self, evidence: Evidence) -> Answer:
        value, error = self.pair.expected(evidence, "logistic", tol=self.tol)
        return self._ratio(value), self._loose(value, error)

    def terms(self, evidence: Evidence) -> Answer:
        """Return the expectations of all classes, and their errors."""
        value, error = np.full((2, len(evidence), self.pair.g.n_outputs), np.nan)
        used = self._possible(evidence)
        if np.any(used):
            value[used], error[used] = self.pair.expected(evidence[used], "logistic", tol=self.tol)
        return value, error

    def mixed(self, terms: Floats, error: Floats, weight: Floats) -> Answer:
        """Return ratios of the expectations over the rows that make up each group."""
        part = parted(weight)[:, :, None]
        value, loose = (
            np.sum(part * np.where(part > 0, one.reshape(*weight.shape, -1), 0.0), axis=1)
            for one in (terms, error)
        )
        return self._ratio(value), self._loose(value, loose)

    def _loose(self, value: Floats, error: Floats) -> Floats:
        """Bound the error of the ratio."""
        slack = error.sum(axis=1)
        room = np.maximum(value.sum(axis=1) - slack, 1e-300)
        bound: Floats = np.minimum((error[:, self._place] + slack) / room, 1.0)
        return bound
