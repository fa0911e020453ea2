"""Numbers that somebody else's model returns: circuits, boxes, or the model itself asked."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from expecta.circuits.evidence import Evidence
from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.common.arrays import Floats, Ints
from expecta.engine.boxes import BoxExpectation
from expecta.expected.about import About, Answer
from expecta.expected.box_route import Boxes
from expecta.expected.distributions import NEAR, AtomDistribution, OutputDistribution
from expecta.expected.expected_output import ExpectedOutput
from expecta.expected.model_answers import Answers
from expecta.expected.pair_output import PairOutput, one_output
from expecta.expected.softened import Softened
from expecta.readers.links import apply_link

__all__ = ["BoxOutput", "SampledOutput", "output_of"]

NUMBERS = 1 << 24  # values of boxes and levels to hold at once
LEVELS = 4096  # of a distribution


class SampledOutput(ExpectedOutput):
    """A model that is asked about draws. All is sampled, but the share of a group."""

    def __init__(self, about: About, answers: Answers, output: int) -> None:
        super().__init__(about)
        self.answers, self.output = answers, output

    def under(self, circuit: ProbabilisticCircuit) -> ExpectedOutput:
        """Return the same model over another density of the same variables."""
        return type(self)(self.about.under(circuit), self.answers, self.output)

    def outputs(self, codes: Ints, rng: np.random.Generator) -> Floats:
        """Return the model's number for complete rows of values; numbers are drawn in bins."""
        return self.answers.outputs(codes, rng)[:, self.output]


class BoxOutput(SampledOutput):
    """A sum of trees, whose leaves are boxes: exact as far as boxes are few enough."""

    def __init__(self, about: About, answers: Answers, output: int) -> None:
        super().__init__(about, answers, output)
        assert isinstance(answers.route, Boxes)
        self.route = answers.route
        self.soft = Softened(about.circuit, answers.density.circuit)

    @property
    def plain(self) -> bool:
        """Whether the output is the sum itself."""
        form = self.answers.form
        return self.answers.margins_only or (form is not None and form.link == "identity")

    @property
    def sampled(self) -> bool:
        """Whether means are sampled."""
        return not self.plain and not self.route.is_small

    def _value(self, margin: Floats) -> Floats:
        """Return the output of margins.  # (boxes, 1)."""
        form = self.answers.form
        assert form is not None
        return (margin if self.plain else apply_link(form, margin))[:, [self.output]]

    @cached_property
    def _first(self) -> tuple[BoxExpectation, int]:
        return (self.route.first, self.output) if self.plain else (self.route.of(self._value), 0)

    @cached_property
    def _second(self) -> tuple[BoxExpectation, int, float]:
        """Expectation of the squared distance from a middle, and that."""
        if self.plain and self.route.square is not None:
            return self.route.square, self.output, float(self.route.middle[0, self.output])
        nothing = Evidence.unknown(self.encoder.cardinalities_)
        middle = float(self._mean(nothing)[0][0])
        return self.route.of(lambda margin: (self._value(margin) - middle) ** 2), 0, middle

    def _mean(self, evidence: Evidence) -> Answer:
        if self.sampled:
            return super()._mean(evidence)
        first, place = self._first
        found = self.soft(first, evidence)[:, place]
        return found, np.zeros_like(found)

    def _variance(self, evidence: Evidence) -> Answer:
        exact = self.plain and self.route.knows_variance
        if not exact and not self.route.is_small:
            return super()._variance(evidence)
        second, place, middle = self._second
        gap = self._mean(evidence)[0] - middle
        found = np.maximum(self.soft(second, evidence)[:, place] - gap**2, 0.0)
        return found, np.zeros_like(found)

    def _above(self, evidence: Evidence, threshold: float) -> Answer:
        if not self.route.is_small:
            return super()._above(evidence, threshold)
        least = threshold - NEAR * abs(threshold)
        reached = self.route.of(lambda margin: (self._value(margin) >= least).astype(np.float64))
        found = np.clip(self.soft(reached, evidence)[:, 0], 0.0, 1.0)
        return found, np.zeros_like(found)

    def _law(self, evidence: Evidence, weight: Floats) -> OutputDistribution:
        if not self.route.is_small:
            return super()._law(evidence, weight)
        atoms, values, resolution = self._atoms
        return AtomDistribution(
            values, np.maximum(weight @ self.soft(atoms, evidence), 0.0), resolution
        )

    @cached_property
    def _atoms(self) -> tuple[BoxExpectation, Floats, float]:
        """Probability of each value of the output, or of ranges where these are too many."""
        value = self._value(self.route.of(lambda margin: margin).boxes.value)[:, 0]
        most = max(64, min(LEVELS, NUMBERS // len(value)))
        levels, resolution = np.unique(value), 0.0
        if len(levels) > most:
            edges = np.linspace(levels[0], levels[-1], most + 1)
            levels, resolution = 0.5 * (edges[1:] + edges[:-1]), float(0.5 * (edges[1] - edges[0]))
        middles = 0.5 * (levels[1:] + levels[:-1])

        def place(margin: Floats) -> Floats:
            at = np.searchsorted(middles, self._value(margin)[:, 0])
            return np.asarray(at[:, None] == np.arange(len(levels)), np.float64)

        return self.route.of(place), levels, resolution


def output_of(about: About, answers: Answers, output: int) -> ExpectedOutput:
    """Choose what answers for an output of a model."""
    form, route = answers.form, answers.route
    if form is None or route is None:
        return SampledOutput(about, answers, output)
    if isinstance(route, Boxes):
        return BoxOutput(about, answers, output)
    pair = route.pair
    if form.link == "identity" or answers.margins_only:
        return PairOutput(about, one_output(pair, output), "identity", answers.tol)
    if form.link == "exp":
        return PairOutput(about, one_output(pair, output), "exp", answers.tol)
    if form.link == "logistic":
        first = form.classes is not None and output == 0
        return PairOutput(
            about, one_output(pair, 0, -1.0 if first else 1.0), "logistic", answers.tol
        )
    return SampledOutput(about, answers, output)
