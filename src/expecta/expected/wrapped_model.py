"""Answer for somebody else's model: exactly where its form allows it, by sampling where not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import DomainError
from expecta.common.trust import Trust
from expecta.densities.density import Density
from expecta.expected.additive_margin import AdditiveMargin
from expecta.expected.exact_route import (
    ExactRoute,
    explain_route,
    explain_rows,
    short_exactness,
)
from expecta.expected.expected_model import ExpectedModel, ModelRows, RowAnswers, class_index
from expecta.expected.expected_output import BINS_NOTE, Answer, ExpectedOutput, OutputContext
from expecta.expected.quasi_sampling import (
    SAMPLES_FOR_SPREAD,
    MarginFunction,
    distinct_rows,
    quasi_means,
)
from expecta.expected.refusals import ask_complete, check_far, check_values
from expecta.expected.row_distributions import (
    NormalDistribution,
    RowDistributions,
    ShiftedDistribution,
)
from expecta.expected.row_draws import RowDraws
from expecta.expected.row_template import RowTemplate
from expecta.expected.sampled_output import SampledOutput
from expecta.expected.sampling import ControlVariate, SampledMeans, Sampling, sample_means
from expecta.learn.regression.noise_variance import NoiseVariance
from expecta.queries.impossible import OneWarning, check_possible
from expecta.queries.moments import shift_moments
from expecta.queries.pair import Pair
from expecta.readers.model_links import apply_link, centre_margins, invert_link
from expecta.tables.cells import Cells
from expecta.tables.estimator_inputs import read_rows
from expecta.tables.group_sums import TrainingData
from expecta.tables.table import Table

CALIBRATION_ROWS = 2000  # predictions with hidden columns that intervals are calibrated on


class WrappedModel(ExpectedModel):
    """A model that was fitted elsewhere, and a density of its raw inputs.

    Parameters
    ----------
    name
        What the model is called.
    density
        The density, fine enough for the model's thresholds where it was read.
    template
        Rows as the model takes them.
    ask_model
        The model itself: all outputs of complete rows.  # (rows, outputs)
    scale
        Spread of the outputs over training rows.  # (outputs,)
    route
        What was read of the model; None where its inside is not known, and ``why`` not.
    classes, margins_only
        Of a classifier: its classes, and whether it has margins and no probabilities.
    training_rows
        The training rows, or sums over groups of them, if either was kept.
    tol
        Error of expected probabilities where they are computed.
    sampling
        How many samples are drawn where they are not; ``random_state`` None draws anew at
        every call.
    """

    calibration_rows = CALIBRATION_ROWS

    def __init__(
        self,
        name: str,
        density: Density,
        template: RowTemplate,
        ask_model: Callable[[Any], Floats] | None,
        scale: Floats,
        route: ExactRoute | None,
        *,
        why: str = "",
        classes: npt.NDArray[Any] | None = None,
        margins_only: bool = False,
        training_rows: TrainingData | None = None,
        tol: float = 1e-9,
        rtol: float = 0.01,
        max_samples: int = 10_000,
        random_state: int | None = 0,
    ) -> None:
        super().__init__()
        self.name, self.density, self.template, self.route = name, density, template, route
        self._ask_model, self.scale, self.why = ask_model, scale, why
        self.classes, self.margins_only = classes, margins_only
        self.training_rows, self.tol = training_rows, tol
        self._rtol, self._max_samples, self._random_state = rtol, max_samples, random_state
        self.n_outputs = len(scale)

    def read(self, X: Any) -> Table:
        """Read rows that a user gave."""
        return read_rows(X, self.density.encoder_, "ExpectedPredictor")

    def hide(self, rows: ModelRows, which: Ints, hidden: Bools) -> ModelRows:
        """Return some of the rows with further cells unknown.  # hidden: (which, variables)."""
        table, columns = rows.table, []
        for index, name in enumerate(table.names):
            cells = table.column(index).take(which)
            if name in self.density.columns:
                cells = cells.masked(hidden[:, self.density.columns.index(name)])
            columns.append(cells)
        masked = replace(table, n_rows=len(which), columns=tuple(columns), array=None)
        return ModelRows(masked, self.density.encoder_.codes(masked))

    # -- rows -------------------------------------------------------------------------

    def complete_rows(self, rows: ModelRows) -> Bools:
        """Which rows the model itself answers; of one that was saved, the form.  # (rows,)."""
        complete = self.template.complete_rows(rows.table)
        if self._ask_model is None:  # to a form, an unseen category is unknown
            variables = [self.density.encoder_.variable(name) for name in self.template.columns]
            complete &= np.all(rows.codes[:, variables] >= 0, axis=1)
        return complete

    def complete_outputs(self, rows: ModelRows, which: Ints) -> Floats:
        """Return all outputs of complete rows: the model's own, or those of its form."""
        if self._ask_model is not None:
            outputs: Floats = ask_complete(self._ask_model, self.template, rows.table, which)
            return outputs
        return self.form_outputs(rows, which)

    def form_outputs(self, rows: ModelRows, which: Ints) -> Floats:
        """Return all outputs of complete rows as what was read of the model says."""
        return self.respond(self._margin(rows, which))

    def respond(self, margin: Floats) -> Floats:
        """Return all outputs of margins of complete rows."""
        assert self.route is not None
        return margin if self.margins_only else apply_link(self.route.form, margin)

    def sample_outputs(self, codes: Ints, rng: np.random.Generator) -> Floats:
        """Return all outputs for values of the density; numbers are drawn in bins."""
        if self.values_decide or self._ask_model is None:
            assert self.route is not None
            return self.respond(self.route.margin.of_values(codes))
        return self._ask_model(self.fill(codes, rng))

    def fill(self, codes: Ints, rng: np.random.Generator) -> Any:
        """Return values of the density as rows that the model takes; numbers are drawn in bins."""
        unknown = np.full(1, np.nan)
        cells = [Cells(name, "unknown", "", numbers=unknown) for name in self.density.columns]
        table = Table("dict", tuple(self.density.columns), 1, tuple(cells))
        which = np.zeros(len(codes), np.int64)
        return self.template.filled(table, which, codes, self.density, rng)

    def answer(self, rows: ModelRows, *, std: bool = False) -> RowAnswers:
        """Compute the expected outputs of each row, and their spread if it is asked for."""
        answers = self._answer(rows, std=std)
        check_possible(np.any(np.isnan(answers.mean), axis=1), "nan")
        return answers

    def _answer(self, rows: ModelRows, *, std: bool = False) -> RowAnswers:
        self._check_taken(rows)
        complete = self.complete_rows(rows)
        mean, error, spread = np.zeros((3, len(complete), self.n_outputs))
        which = np.flatnonzero(complete)
        if len(which):
            mean[which] = self.complete_outputs(rows, which)
        which = np.flatnonzero(~complete)
        possible = np.isfinite(self.density.circuit.log_prob(rows.codes[which]))
        for part in (mean, error, spread):
            part[which[~possible]] = np.nan
        which = which[possible]
        if not len(which):
            return RowAnswers(mean, error, spread)
        codes, offset = rows.codes[which], self._offset(rows, which)
        expected = self._expected(codes, offset)
        variance = self._variance(codes, offset) if std else None
        if expected is None or (std and variance is None):
            sampled = self._sampled(rows, which, with_control=expected is None, spread=std)
            if expected is None:
                # what a control variate explains is taken of each class apart
                shares = self.has_probabilities and self.route is not None
                total = sampled.mean.sum(axis=1, keepdims=True) if shares else 1.0
                expected = sampled.mean / total, sampled.error
            variance = sampled.variance
        mean[which], error[which] = expected
        if variance is not None:
            spread[which] = np.sqrt(variance)
        return RowAnswers(mean, error, spread)

    def _check_taken(self, rows: ModelRows) -> None:
        """Complain of known numbers that the model itself refuses, as it would of complete rows."""
        if self.route is not None:
            check_values(self.route.refused, self.density.columns, self.template, rows)
            if self._ask_model is not None:  # it is asked about complete rows anyway
                incomplete = ~self.complete_rows(rows)
                check_far(self._ask_model, self.template, rows, self.density.encoder_, incomplete)

    @property
    def has_probabilities(self) -> bool:
        """Whether outputs are probabilities of classes."""
        return self.classes is not None and not self.margins_only

    def _expected(self, codes: Ints, offset: Floats) -> tuple[Floats, Floats | float] | None:
        """Compute expected outputs, with a bound on their error, where that can be done."""
        if self.route is None:
            return None
        form, margin = self.route.form, self.route.margin
        if form.link == "identity" or self.margins_only:
            return margin.mean(codes) + offset, 0.0
        return margin.response(form, codes, offset, self.tol)

    def _variance(self, codes: Ints, offset: Floats) -> Floats | None:
        if self.route is None:
            return None
        return self.route.margin.variance(self.route.form, codes, offset)

    def _sampled(
        self, rows: ModelRows, which: Ints, *, with_control: bool, spread: bool = False
    ) -> SampledMeans:
        """Sample all outputs; with the known margin for a control their means need fewer samples.

        Their spread does not, where it is asked for.
        """
        if self.values_decide:
            return self._quasi_sampled(rows.codes[which], with_control, spread)
        codes, offset = rows.codes[which], self._offset(rows, which)
        completions = RowDraws(self.density.circuit, codes, self._seed())

        def draw(some: Ints, counts: Ints) -> Floats:
            drawn, numbers = completions(some, counts)
            of_draw = np.repeat(some, counts)
            if self._ask_model is None:
                assert self.route is not None
                return self.respond(self.route.margin.mean(drawn) + offset[of_draw])
            filled = self.template.filled(rows.table, which[of_draw], drawn, self.density, numbers)
            return self._ask_model(filled)

        control = None
        if with_control and self.route is not None:
            form = self.route.form
            if form.link in ("logistic", "softmax", "exp"):
                margin = centre_margins(form, self._margin(rows, which))
                control = ControlVariate(partial(invert_link, form), margin)
        least = SAMPLES_FOR_SPREAD if spread else 0
        return sample_means(
            draw, len(which), self.scale, self._rtol, self._max_samples, control, min_samples=least
        )

    @property
    def values_decide(self) -> bool:
        """Whether what was read of the model needs no more than the density's values."""
        return self.route is not None and self.route.margin.values_decide

    def _quasi_sampled(self, codes: Ints, with_control: bool, spread: bool) -> SampledMeans:
        """Sample what was read of the model; equal rows once, and each by its evidence alone."""
        assert self.route is not None
        distinct, which = distinct_rows(codes)
        margin = self.route.margin
        link = "identity" if self.margins_only else self.route.form.link
        sampled = quasi_means(
            self.density.circuit,
            distinct,
            margin.mean(distinct),
            MarginFunction(margin.of_values, self.respond, with_control, margin.masks, link),
            self.scale,
            self._rtol,
            self._max_samples,
            self._seed(),
            min_samples=SAMPLES_FOR_SPREAD if spread else 0,
        )
        return sampled.take(which)

    def _seed(self) -> int:
        seed = self._random_state
        return int(np.random.default_rng().integers(1 << 62)) if seed is None else seed

    def margin(self, rows: ModelRows) -> Floats:
        """Compute the expected margin of each row. Exact.  # (rows, outputs)."""
        if self.route is None:
            raise TypeError(f"there is no margin: {self.why}")
        self._check_taken(rows)
        with OneWarning():
            margin = self._margin(rows, np.arange(len(rows.codes)))
            check_possible(np.any(np.isnan(margin), axis=1), "nan")
        return margin

    def _margin(self, rows: ModelRows, which: Ints) -> Floats:
        assert self.route is not None
        return self.route.margin.mean(rows.codes[which]) + self._offset(rows, which)

    def _offset(self, rows: ModelRows, which: Ints) -> Floats:
        """Return what known numbers add beyond the mean of their bin.  # (rows, 1 or outputs)."""
        margin = None if self.route is None else self.route.margin
        if not isinstance(margin, AdditiveMargin):
            return np.zeros((len(which), 1))
        return margin.offset(rows.table, which, rows.codes[which], self.template)

    def moments(self, rows: ModelRows, order: int, *, central: bool) -> Floats:
        """Compute moments of the margin, or raise a TypeError.  # (rows, outputs, order + 1)."""
        if self.route is None:
            raise TypeError(f"moments are not known exactly: {self.why}")
        self._check_taken(rows)
        with OneWarning():
            moments = self.route.margin.central_moments(rows.codes, order)
            check_possible(np.any(np.isnan(moments), axis=(1, 2)), "nan")
            return moments if central else shift_moments(moments, self.margin(rows))

    def distribution(self, rows: ModelRows, noise: float) -> RowDistributions:
        """Distribution of a regressor's output, or a classifier's margin, plus normal noise.

        Exact for a model that adds up a function of each column, if its output is the sum or
        it is a classifier; for all others a normal distribution of the right mean and
        variance, an approximation.
        """
        on_margin = self.classes is not None
        additive = self._additive(on_margin)
        if additive is not None:
            return self._margin_distribution(additive, rows, noise, self.tol)
        if on_margin:
            margin = self.margin(rows)
            _check_single(margin.shape[1])
            variance = self.moments(rows, 2, central=True)[:, 0, 2]
            spread = np.sqrt(np.maximum(variance, 0.0))
            return NormalDistribution(margin[:, 0], np.hypot(spread, noise))
        _check_single(self.n_outputs)
        answers = self.answer(rows, std=True)
        return NormalDistribution(answers.mean[:, 0], np.hypot(answers.std[:, 0], noise))

    def target_distribution(
        self, rows: ModelRows, noise: float | NoiseVariance, tol: float
    ) -> RowDistributions:
        """Distribution of a regressor's output plus noise, as exact as :meth:`distribution`."""
        if not isinstance(noise, NoiseVariance):
            return self.distribution(rows, noise)
        additive = self._additive(on_margin=False)
        if additive is not None:
            return self._margin_distribution(additive, rows, noise, self.tol)
        answers = self.answer(rows, std=True)
        spread = np.hypot(answers.std[:, 0], self.expected_noise(rows, noise))
        return NormalDistribution(answers.mean[:, 0], spread)

    def noise_unit(self, noise: NoiseVariance) -> float:
        """Return the unit of y in :meth:`noisy_pair`."""
        return noise.unit if self._additive(on_margin=False) is None else 1.0

    def _make_noisy_pair(self, noise: NoiseVariance) -> Pair:
        additive = self._additive(on_margin=False)
        if additive is None:
            return super()._make_noisy_pair(noise)
        return Pair(additive.pair.p, noise.beside(additive.pair.g))

    def _additive(self, on_margin: bool) -> AdditiveMargin | None:
        """Return the margin, if it is a sum over columns and what a distribution is asked of."""
        route = self.route
        if route is None or not (on_margin or route.form.link == "identity"):
            return None
        if not isinstance(route.margin, AdditiveMargin):
            return None
        _check_single(route.margin.pair.g.n_outputs)
        return route.margin

    def _margin_distribution(
        self, margin: AdditiveMargin, rows: ModelRows, noise: float | NoiseVariance, tol: float
    ) -> RowDistributions:
        on_margin = self.classes is not None
        self._check_taken(rows)
        complete = self.complete_rows(rows)
        codes = np.where(complete[:, None], -1, rows.codes).astype(np.int32)
        shift = self._offset(rows, np.arange(len(codes)))[:, 0]
        shift[complete] = 0.0
        which = np.flatnonzero(complete)
        at: Floats = np.zeros(0)
        if len(which):
            at = (self._margin if on_margin else self.complete_outputs)(rows, which)[:, 0]
        if not isinstance(noise, NoiseVariance):
            base = margin.distribution(codes, noise, tol)
            return ShiftedDistribution(base.pinned(complete, at), shift)
        base = self.noisy_pair(noise).noisy_distribution(codes, tol=tol)
        full = ModelRows(rows.table, rows.codes[complete])
        std = self.expected_noise(full, noise)
        return ShiftedDistribution(base.pinned(complete, at, std), shift)

    def explain_exactness(self) -> str:
        """Say what is exact, what is not, and why, a sentence in each line."""
        lines = explain_route(self.name, self.route, self.why, self.tol)
        return "\n".join([*lines, *explain_rows(self.template, self._ask_model is not None)])

    @property
    def trust(self) -> Trust:
        """How far the mean of the margin can be trusted, or of the output where it is sampled."""
        return Trust.SAMPLED if self.route is None else self.route.trust

    # -- groups -----------------------------------------------------------------------

    def _make_output(self, of: Any) -> ExpectedOutput:
        index = None if self.classes is None else class_index(self.classes, of)
        output = self._regression_output(of) if index is None else index
        if self.classes is not None and self.margins_only and self.n_outputs == 1:
            if index != 1:
                raise DomainError(
                    f"the model has one margin, for {self.classes[1]!r}; leave of out"
                )
            output = 0

        def mean_of_rows(table: Table, which: Ints, hidden: Bools) -> Answer:
            rows = ModelRows(table, self.density.encoder_.codes(table))
            answers = self._answer(self.hide(rows, which, hidden))
            return answers.mean[:, output], answers.error[:, output]

        def check(table: Table) -> None:
            rows = ModelRows(table, self.density.encoder_.codes(table))
            self._check_taken(rows)
            self._offset(rows, np.arange(table.n_rows))  # complains of what is not a number

        context = OutputContext(
            self._output_name(index, output),
            index,
            self.density.encoder_,
            self.density.circuit,
            self.training_rows,
            self.read,
            Sampling(
                self._rtol, self._max_samples, float(self.scale[output]), self._random_state or 0
            ),
            f"{short_exactness(self.route)}\n{self.explain_exactness()}\nOf groups: {BINS_NOTE}",
            # a hidden cell would be a value, where a missing one is
            None if np.any(self.fixed_columns) else mean_of_rows,
            is_margin=self.margins_only,
            refused=() if self.route is None else self.route.refused,
            check=None if self.route is None else check,
            output=output,
        )
        if self.route is None:
            return SampledOutput(context, self.sample_outputs, output)
        form, margin = self.route.form, self.route.margin
        return margin.expected_output(context, form, output, self.tol, self.sample_outputs)

    def _regression_output(self, of: Any) -> int:
        """Return which output of a regressor is asked about."""
        if of is None and self.n_outputs == 1:
            return 0
        if isinstance(of, int) and 0 <= of < self.n_outputs:
            return of
        raise DomainError(
            f"the model has {self.n_outputs} output(s); name one by its index, of=0 to "
            f"of={self.n_outputs - 1}"
        )

    def _output_name(self, index: int | None, output: int) -> str:
        """Return what the number is called."""
        if index is not None and self.classes is not None:
            return f"{'margin of ' if self.margins_only else 'P'}({self.classes[index]})"
        name = self.training_rows.name if self.training_rows else "prediction"
        return name if self.n_outputs == 1 else f"{name} {output}"


def _check_single(n_margins: int) -> None:
    """Refuse several margins, which have no single distribution."""
    if n_margins != 1:
        raise DomainError("there are several margins; predict_moments has those of each")
