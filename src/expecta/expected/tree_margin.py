"""Compute expectations of sums of trees: boxes, whose mean is exact for any number of trees."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from expecta.circuits.evidence import Evidence
from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.common.arrays import Floats, Ints
from expecta.common.trust import Trust
from expecta.densities.density import Density
from expecta.engine.boxes import BoxExpectation, BoxSum
from expecta.engine.boxes.box_sums import MAX_PAIRS_PER_BOX
from expecta.expected.compiled_trees import CompiledTrees
from expecta.expected.distributions import NEAR, AtomDistribution, OutputDistribution
from expecta.expected.expected_output import Answer, ExpectedOutput, OutputContext
from expecta.expected.leaf_masks import LeafMasks
from expecta.expected.margin import Margin, explain_response
from expecta.expected.sampled_output import CompleteOutputs, SampledOutput
from expecta.expected.soft_evidence import SoftBoxes, split_codes
from expecta.readers.forms import Form
from expecta.readers.model_links import apply_link

MAX_BOXES = 200_000  # of a square or a partition; beyond, sampling is used
MIN_SHARE = 1e-6  # of a square, below which what is left of it has too few digits
MAX_LEVELS = 4096  # values of a distribution
MAX_NUMBERS = 1 << 24  # boxes times levels to hold at once


class TreeMargin(Margin):
    """A margin that is a sum of boxes. Its mean is exact; so is all else of few trees."""

    compiled: CompiledTrees
    values_decide = True

    def __init__(self, density: Density, compiled: CompiledTrees) -> None:
        self.circuit, self.compiled = density.circuit, compiled
        self.n_variables = self.circuit.n_variables
        self.sum = compiled.written.as_boxes()
        self.first = BoxExpectation(self.circuit, self.sum)

    def mean(self, codes: Ints) -> Floats:
        """E of the margin. Exact, given the density.  # (rows, outputs)."""
        return self.first(codes)

    def of_values(self, codes: Ints, per_block: int = 1) -> Floats:
        """Return margins of complete rows of values.  # (rows, outputs)."""
        masks = self.masks
        return self.mean(codes) if masks is None else masks(codes, per_block)

    @cached_property
    def masks(self) -> LeafMasks | None:  # type: ignore[override]
        """The trees for complete rows."""
        return self.compiled.masks()

    @cached_property
    def _about(self) -> BoxSum:
        """The margin less its mean where nothing is known: no constant is left to cancel."""
        unknown = np.full((1, self.n_variables), -1, np.int32)
        rest = self.compiled.given(unknown[0])
        return rest.plus(-BoxExpectation(self.circuit, rest)(unknown))

    @cached_property
    def _gap(self) -> BoxExpectation:
        return BoxExpectation(self.circuit, self._about)

    @cached_property
    def square(self) -> BoxExpectation | None:
        """The expectation of the squared distance from there, where boxes are few enough."""
        square = self._about.times(self._about, MAX_BOXES)
        return None if square is None else BoxExpectation(self.circuit, square)

    @cached_property
    def _partition(self) -> BoxSum | None:
        return self.compiled.partition(MAX_BOXES)

    @property
    def is_small(self) -> bool:
        """Whether the trees cut space into few enough boxes for everything to be exact."""
        return self._partition is not None

    def of(self, function: Callable[[Floats], Floats]) -> BoxExpectation:
        """Return the expectation of a function of the margin, where the trees are few."""
        assert self._partition is not None
        constant = self.compiled.constant
        values = self._partition.map(lambda rest: function(rest + constant))
        return BoxExpectation(self.circuit, values)

    def central_moments(self, codes: Ints, order: int) -> Floats:
        """Moments of the margin about its mean, where the trees are few. Exact."""
        if not self.is_small:
            raise TypeError(
                "exact moments are not available for this many trees; predict(return_std=True) has "
                "the spread"
            )
        assert self._partition is not None
        moments = BoxExpectation(self.circuit, self._partition).mean_and_central(codes, order)
        moments[:, :, 1:2] *= 0.0
        return moments

    def response(
        self, form: Form, codes: Ints, offset: Floats, tol: float
    ) -> tuple[Floats, Floats] | None:
        """E[link(margin)], exact where the trees are few; None where they are not."""
        if not self.is_small:
            return None
        value = self.of(lambda margin: apply_link(form, margin))(codes)
        return value, np.zeros_like(value)

    def variance(self, form: Form, codes: Ints, offset: Floats) -> Floats | None:
        """Variance of the output. Exact where boxes are few enough, else None."""
        if form.link == "identity":
            if self.square is None:
                return None
            return self.margin_variance(codes, lambda boxes, rows: boxes(codes[rows]))
        if not self.is_small:
            return None
        return self.of(lambda margin: apply_link(form, margin)).variance(codes)

    def margin_variance(self, codes: Ints, ask: Callable[[BoxExpectation, Ints], Floats]) -> Floats:
        """Variance of the margin, where the square is known. Exact.  # (rows, outputs).

        ``ask`` answers an expectation for some rows. Where a row's mean is so far from the
        overall mean that their squares cancel, the trees are written anew given the row.
        """
        assert self.square is not None
        rows = np.arange(len(codes))
        square = ask(self.square, rows)
        variance = square - ask(self._gap, rows) ** 2
        used = np.flatnonzero(self.sum.box.any(axis=0))
        rest: dict[bytes, BoxSum] = {}
        for row in np.flatnonzero(np.any(variance < MIN_SHARE * square, axis=1)).tolist():
            key = codes[row, used].tobytes()
            if key not in rest:
                rest[key] = self.compiled.given(codes[row])
            variance[row] = 0.0
            if np.any(rest[key].value):
                centre = ask(BoxExpectation(self.circuit, rest[key]), rows[[row]])
                about = rest[key].plus(-centre)
                again = about.times(about, MAX_PAIRS_PER_BOX * MAX_BOXES)
                assert again is not None  # no more pairs than the square has
                variance[row] = ask(BoxExpectation(self.circuit, again), rows[[row]])[0]
        return np.maximum(variance, 0.0)

    def expected_output(
        self, context: OutputContext, form: Form, output: int, tol: float, sample: CompleteOutputs
    ) -> ExpectedOutput:
        """Answer about one output; what is not exact is sampled."""
        return BoxOutput(context, sample, output, self, form)

    def explain(self, form: Form, tol: float, exact: str) -> list[str]:
        """Say what the margin is, what is exact of it, and of the output, in three sentences."""
        small = self._small(form)
        computed = f"E[{form.link}(margin)]: {exact}, the trees are few." if small else None
        return [
            f"a sum of {self.sum.n_boxes} boxes; the mean of a sum is the sum of means.",
            f"Mean of the margin: {exact}.",
            explain_response(form, exact, computed),
        ]

    def response_trust(self, form: Form) -> Trust:
        """How far E[link(margin)] can be trusted."""
        return Trust.EXACT if self._small(form) else Trust.SAMPLED

    def spread_trust(self, form: Form) -> Trust:
        """How far :meth:`variance` can be trusted."""
        known = self.square is not None if form.link == "identity" else self._small(form)
        return Trust.EXACT if known else Trust.SAMPLED

    def _small(self, form: Form) -> bool:
        return form.link not in ("identity", "none") and self.is_small


class BoxOutput(SampledOutput):
    """One output of a sum of trees, whose leaves are boxes: exact as far as boxes are few."""

    def __init__(
        self,
        context: OutputContext,
        sample: CompleteOutputs,
        output: int,
        margin: TreeMargin,
        form: Form,
    ) -> None:
        super().__init__(context, sample, output)
        self._margin, self._form = margin, form
        self._is_margin = form.link in ("identity", "none")
        self._soft = SoftBoxes(context.circuit, margin.circuit)
        self.samples_mean = not self._is_margin and not margin.is_small

    @cached_property
    def samples_variance(self) -> bool:  # type: ignore[override]
        """Whether the variance is sampled: boxes are too many."""
        exact = self._is_margin and self._margin.square is not None
        return not exact and not self._margin.is_small

    def with_density(self, circuit: ProbabilisticCircuit) -> BoxOutput:
        """Return the same model over another density of the same variables."""
        context = self.context.with_density(circuit)
        return BoxOutput(context, self._sample, self._output, self._margin, self._form)

    def _value(self, margin: Floats) -> Floats:
        """Return the output of margins.  # (boxes, 1)."""
        values = margin if self._is_margin else apply_link(self._form, margin)
        return values[:, [self._output]]

    @cached_property
    def _first(self) -> tuple[BoxExpectation, int]:
        if self._is_margin:
            return self._margin.first, self._output
        return self._margin.of(self._value), 0

    def _mean(self, evidence: Evidence) -> Answer:
        if self.samples_mean:
            return super()._mean(evidence)
        first, column = self._first
        mean = self._soft(first, evidence)[:, column]
        return mean, np.zeros_like(mean)

    def _mean_and_variance(self, evidence: Evidence) -> tuple[Floats, Floats, Floats, Floats]:
        if self.samples_variance:
            return super()._mean_and_variance(evidence)
        mean, error = self._mean(evidence)
        if self._is_margin and self._margin.square is not None:
            codes = split_codes(evidence)[0]
            variance = self._margin.margin_variance(
                codes, lambda boxes, rows: self._soft(boxes, evidence[rows])
            )[:, self._output]
        else:
            variance = self._soft.variance(self._margin.of(self._value), evidence)[:, 0]
        return mean, error, variance, np.zeros_like(mean)

    def _variance(self, evidence: Evidence) -> Answer:
        if self.samples_variance:
            return super()._variance(evidence)
        return self._mean_and_variance(evidence)[2:]

    def _above(self, evidence: Evidence, threshold: float) -> Answer:
        if not self._margin.is_small:
            return super()._above(evidence, threshold)
        lowest = threshold - NEAR * abs(threshold)
        reached = self._margin.of(lambda margin: (self._value(margin) >= lowest).astype(np.float64))
        share = np.clip(self._soft(reached, evidence)[:, 0], 0.0, 1.0)
        return share, np.zeros_like(share)

    def _distribution(self, evidence: Evidence, weight: Floats) -> OutputDistribution:
        if not self._margin.is_small:
            return super()._distribution(evidence, weight)
        atoms, values, resolution = self._atoms
        mass = np.maximum(weight @ self._soft(atoms, evidence), 0.0)
        return AtomDistribution(values, mass, resolution)

    @cached_property
    def _atoms(self) -> tuple[BoxExpectation, Floats, float]:
        """Probability of each value of the output, or of ranges where these are too many."""
        value = self._margin.of(self._value).boxes.value[:, 0]
        limit = max(64, min(MAX_LEVELS, MAX_NUMBERS // len(value)))
        levels, resolution = np.unique(value), 0.0
        if len(levels) > limit:
            edges = np.linspace(levels[0], levels[-1], limit + 1)
            levels, resolution = 0.5 * (edges[1:] + edges[:-1]), float(0.5 * (edges[1] - edges[0]))
        middles = 0.5 * (levels[1:] + levels[:-1])

        def indicator(margin: Floats) -> Floats:
            level = np.searchsorted(middles, self._value(margin)[:, 0])
            return np.asarray(level[:, None] == np.arange(len(levels)), np.float64)

        return self._margin.of(indicator), levels, resolution
