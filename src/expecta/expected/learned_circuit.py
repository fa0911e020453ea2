"""Answer for circuits that were learned together with their density: all on one pair."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from expecta.circuits.evidence import Evidence
from expecta.circuits.regression import RegressionCircuit
from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import DomainError
from expecta.common.trust import Trust
from expecta.densities.density import Density
from expecta.expected.expected_model import ExpectedModel, ModelRows, RowAnswers, class_index
from expecta.expected.expected_output import BINS_NOTE, ExpectedOutput, OutputContext
from expecta.expected.pair_output import ClassShareOutput, PairOutput, one_output
from expecta.expected.row_distributions import (
    NormalDistribution,
    RowDistributions,
    ShiftedDistribution,
)
from expecta.expected.sampling import Sampling
from expecta.expected.target_distribution import TargetDistribution
from expecta.expected.target_scale import PLAIN, TargetScale
from expecta.learn.regression import MAX_VARIABLES
from expecta.learn.regression.noise_variance import NoiseVariance
from expecta.queries.impossible import check_possible
from expecta.queries.one_vs_rest import class_shares
from expecta.queries.output_distribution import Distribution
from expecta.queries.pair import Pair
from expecta.tables.group_sums import TrainingData
from expecta.tables.table import Table

MAX_JOINS = 30_000_000  # of gates, that held-out predictions may come to: some seconds
CALIBRATION_ROWS = (1000, 10_000)  # and how many predictions that is, at least and at most

_REGRESSION = (
    f"{Trust.EXACT.capitalize()}, given the learned density: mean, standard deviation and "
    f"share. Quantiles: {Trust.EXACT} for groups of few bins, else {Trust.WITHIN} their error. "
    f"{BINS_NOTE}"
)
_TWO_CLASSES = (
    f"{Trust.WITHIN.capitalize()} a bound, given the learned density: mean and standard deviation. "
    f"Share: {Trust.EXACT}. Quantiles: {Trust.EXACT} for groups of few bins, else {Trust.WITHIN} "
    f"their error. {BINS_NOTE}"
)
_SEVERAL_CLASSES = (
    f"{Trust.WITHIN.capitalize()} a bound, given the learned density: the mean. It is the ratio of "
    f"expected one-against-the-rest probabilities, as predict_proba has it. Spread, quantiles and "
    f"thresholds: {Trust.SAMPLED}, with a standard error. Share: {Trust.EXACT}. {BINS_NOTE}"
)


class ScaledPair(NamedTuple):
    """A pair about its bias and in a unit near its size: g = centre + unit * scaled g.

    What is asked of it loses no digits to a y far from zero, nor underflows.
    """

    pair: Pair
    centre: float
    unit: float


class LearnedCircuit(ExpectedModel):
    """A density and a regression or logistic circuit over one vtree.

    Parameters
    ----------
    pair, density
        The circuits, and the density whose circuit the pair has.
    read
        Reads rows that a user gave.
    name, training_rows
        What the output is called, and the training rows, if they were kept.
    classes
        Of a classifier: σ(g) is the probability of the second of two, or of each of several
        against the rest.
    tol
        Error of expected probabilities.
    noise
        Standard deviation of y about g, which numbers are scaled by if g hardly varies.
    is_scaled
        Whether g is about 0 and of about unit size already.
    scale, excess
        Of a regressor: what its output is of g; and, on a logarithmic scale, how far the
        logarithm g of the mean of y given all inputs lies above the middle of log y.
    """

    def __init__(
        self,
        pair: Pair,
        density: Density,
        read: Callable[[Any], Table],
        *,
        name: str,
        training_rows: TrainingData | None,
        classes: npt.NDArray[Any] | None = None,
        tol: float = 1e-9,
        noise: float = 1e-300,
        is_scaled: bool = False,
        scale: TargetScale = PLAIN,
        excess: NoiseVariance | None = None,
    ) -> None:
        super().__init__()
        self.scale, self._excess = scale, excess
        self._noise, self._is_scaled = noise, is_scaled
        self.pair, self.density, self._read = pair, density, read
        self._name, self._training_rows, self.classes, self._tol = name, training_rows, classes, tol
        self.n_outputs = 1 if classes is None else len(classes)
        self.calibration_rows = affordable_rows(pair)

    def read(self, X: Any) -> Table:
        """Read rows that a user gave."""
        return self._read(X)

    def hide(self, rows: ModelRows, which: Ints, hidden: Bools) -> ModelRows:
        """Return some of the rows with further cells unknown to the density."""
        codes = np.where(hidden, -1, rows.codes[which])
        return ModelRows(rows.table, codes.astype(np.int32))

    @cached_property
    def middle(self) -> RegressionCircuit:
        """What y is on its scale but for noise: g, less its excess on a logarithmic scale."""
        return self.pair.g if self._excess is None else self._excess.added(self.pair.g, -1.0)

    @cached_property
    def scaled(self) -> ScaledPair:
        """The same pair about its bias and in a unit near its size."""
        g = self.middle
        if self._is_scaled:
            return ScaledPair(self.pair, 0.0, 1.0)
        unit = 2.0 ** float(np.ceil(np.log2(max(float(np.abs(g.weight).max()), self._noise))))
        scaled = Pair(self.pair.p, RegressionCircuit(g.structure, g.weight / unit))
        return ScaledPair(scaled, float(g.bias[0]), unit)

    # -- rows -------------------------------------------------------------------------

    def answer(self, rows: ModelRows, *, std: bool = False) -> RowAnswers:
        """Compute the expectation of g, or of the probability of each class."""
        if self.classes is not None:
            mean, error = self.probabilities(rows)
            return RowAnswers(mean, error, self.probability_std(rows) if std else mean * np.nan)
        complete, asked = _split(rows)
        mean, spread = np.zeros((2, len(asked)))
        some, all_ = bool(complete.any()), bool(complete.all())
        if some:
            mean[complete] = self.scale.value(self.pair.g(rows.codes[complete]))
        if not all_:
            if std:
                expected, deviation = self._expectation_and_std(asked)
                spread = np.where(complete, spread, deviation)
            else:
                expected = self._expectation(asked)
            mean = np.where(complete, mean, expected) if some else expected
        return RowAnswers(mean[:, None], np.zeros_like(mean)[:, None], spread[:, None])

    def _expectation(self, codes: Ints) -> Floats:
        """Compute the expectation of a regressor's output. Exact.  # (rows,)."""
        if self.scale.origin is None:
            return self.pair.expectation(codes)
        return self.scale.origin + self.pair.expected(codes, "exp").value

    def _expectation_and_std(self, codes: Ints) -> tuple[Floats, Floats]:
        """Compute it with the spread of the output over the unknown inputs.  # (rows,) each."""
        if self.scale.origin is None:
            return self.pair.expectation(codes), self.scaled.unit * self.scaled.pair.std(codes)
        output = self.output()
        assert isinstance(output, PairOutput)
        evidence = Evidence.rows(codes, self.pair.p.cardinalities)
        mean, _, variance, _ = output.mean_and_variance(evidence)
        check_possible(np.isnan(mean), "nan")
        return mean, np.sqrt(variance)

    def probabilities(
        self, rows: ModelRows, method: str = "spectral", order: int = 1
    ) -> tuple[Floats, Floats]:
        """Compute the expected probability of each class, and a bound on its error."""
        assert self.classes is not None
        if len(self.classes) == 1:
            return np.ones((len(rows.codes), 1)), np.zeros((len(rows.codes), 1))
        complete, asked = _split(rows)
        value = np.empty((len(asked), self.pair.g.n_outputs))
        error = np.zeros_like(value)
        if np.any(complete):
            value[complete] = expit(self.pair.g(rows.codes[complete])).reshape(-1, value.shape[1])
        if not np.all(complete):
            expected = self.pair.expected(
                asked, "logistic", method=method, tol=self._tol, order=order
            )
            value[~complete] = expected.value.reshape(value.shape)[~complete]
            error[~complete] = expected.error.reshape(value.shape)[~complete]
        return class_shares(np.clip(value, 0.0, 1.0), error)

    def probability_std(self, rows: ModelRows) -> Floats:
        """Compute the spread of each class's probability over the unknown inputs.

        Within a bound for two classes, sampled for more.  # (rows, classes)
        """
        assert self.classes is not None
        spread = np.zeros((len(rows.codes), len(self.classes)))
        complete, asked = _split(rows)
        if len(self.classes) == 1 or np.all(complete):
            return spread
        evidence = Evidence.rows(asked[~complete], self.pair.p.cardinalities)
        for k in range(1 if len(self.classes) == 2 else 0, len(self.classes)):
            output = self.output(self.classes.tolist()[k])
            spread[~complete, k] = np.sqrt(output.variance(evidence)[0])
        if len(self.classes) == 2:
            spread[:, 0] = spread[:, 1]
        return spread

    def moments(self, rows: ModelRows, order: int, *, central: bool) -> Floats:
        """Compute moments of g over the unknown inputs. Exact.  # (rows, outputs, order + 1)."""
        complete, asked = _split(rows)
        outputs = self.pair.g.n_outputs
        moments = self.pair.moments(asked, order, central=central)
        moments = moments.reshape(len(asked), outputs, order + 1)
        g = self.pair.g(rows.codes[complete]).reshape(-1, outputs, 1)
        moments[complete] = (0.0 * g if central else g) ** np.arange(order + 1)
        return moments

    def distribution(self, rows: ModelRows, noise: float) -> Distribution | RowDistributions:
        """Distribution of g plus normal noise; the circuit alone answers complete rows.

        On a logarithmic scale, of the output times the exponential of that noise.
        """
        complete, asked = _split(rows)
        distribution = self.pair.distribution(asked, noise=noise)
        distribution = distribution.pinned(complete, self.pair.g(rows.codes[complete]))
        if self.scale.origin is None:
            return distribution
        return TargetDistribution(distribution, self.scale)

    def target_distribution(
        self, rows: ModelRows, noise: float | NoiseVariance, tol: float
    ) -> RowDistributions:
        """Distribution of g + noise, within ``tol``; computed of the scaled pair."""
        pair, centre, unit = self.scaled
        complete, asked = _split(rows)
        full = rows.codes[complete]
        std = noise.std(full) if isinstance(noise, NoiseVariance) else None
        if np.all(complete):
            g = self.middle(rows.codes)
            return NormalDistribution(g, np.full(len(g), noise) if std is None else std)
        if isinstance(noise, NoiseVariance):
            base = self.noisy_pair(noise).noisy_distribution(asked, tol=tol)
        else:
            base = pair.distribution(asked, noise=noise / unit, tol=tol)
        base = base.pinned(complete, pair.g(full), None if std is None else std / unit)
        return ShiftedDistribution(base, np.full(len(complete), centre), unit)

    def target_centre(self, rows: ModelRows) -> Floats:
        """Return the mean of :meth:`target_distribution`. Exact.  # (rows,)."""
        if self.scale.origin is None:
            return super().target_centre(rows)
        complete, asked = _split(rows)
        centre = self.scaled.centre + self.scaled.unit * self.scaled.pair.expectation(asked)
        centre[complete] = self.middle(rows.codes[complete])
        return centre

    def expected_noise(self, rows: ModelRows, noise: float | NoiseVariance) -> Floats:
        """√E[Var(y | x) | what is known]; NaN if impossible.  # (rows,).

        On a logarithmic scale y is log-normal given x, so that the variance is exp(2g) (exp(σ²) −
        1): a difference of two expected exponentials, each exact, given the density.
        """
        if self.scale.origin is None:
            return super().expected_noise(rows, noise)
        complete, asked = _split(rows)
        full, g = rows.codes[complete], one_output(self.pair, 0, 2.0).g
        squared = Pair(self.pair.p, g).expected(asked, "exp").value
        if isinstance(noise, NoiseVariance):
            more = Pair(self.pair.p, noise.added(g)).expected(asked, "exp").value
            variance, std = np.maximum(more - squared, 0.0), noise.std(full)
        else:
            variance, std = np.expm1(noise**2) * squared, np.full(len(full), noise)
        expected: Floats = np.sqrt(variance)
        with np.errstate(over="ignore"):
            expected[complete] = np.exp(self.pair.g(full)) * np.sqrt(np.expm1(std**2))
        return expected

    def noise_unit(self, noise: NoiseVariance) -> float:
        """Return the unit of y in :meth:`noisy_pair`."""
        return self.scaled.unit

    def _make_noisy_pair(self, noise: NoiseVariance) -> Pair:
        pair, _, unit = self.scaled
        return Pair(pair.p, noise.scaled(1.0 / unit).beside(pair.g))

    # -- groups -----------------------------------------------------------------------

    def explain_exactness(self) -> str:
        """Say what is exact of an output, what is not, and why."""
        if self.classes is None:
            return _REGRESSION
        return _TWO_CLASSES if len(self.classes) == 2 else _SEVERAL_CLASSES

    def _make_output(self, of: Any) -> ExpectedOutput:
        index, name = None, self._name
        if self.classes is not None:
            index = class_index(self.classes, of)
            name = f"P({self.classes[index]})"
        elif of is not None:
            raise DomainError(f"a regressor has one output; leave of={of!r:.40} out")
        context = OutputContext(
            name,
            index,
            self.density.encoder_,
            self.pair.p,
            self._training_rows,
            self._read,
            Sampling(scale=0.1),
            self.explain_exactness(),
            output=index or 0,
        )
        if self.classes is None and self.scale.origin is not None:
            return PairOutput(context, self.pair, "exp", self._tol, self.scale.origin)
        if self.classes is None:
            return PairOutput(context, self.pair, "identity", self._tol)
        if len(self.classes) > 2:
            return ClassShareOutput(context, self.pair, self._tol)
        sign = 1.0 if index == 1 else -1.0
        return PairOutput(context, one_output(self.pair, 0, sign), "logistic", self._tol)


def affordable_rows(pair: Pair) -> int:
    """How many held-out predictions take no more than some seconds.

    Of very many columns the least: what each costs beside its gates grows with them.
    """
    if pair.p.n_variables > MAX_VARIABLES:
        return CALIBRATION_ROWS[0]
    return int(np.clip(MAX_JOINS // max(pair.plan.n_joins, 1), *CALIBRATION_ROWS))


def _split(rows: ModelRows) -> tuple[Bools, Ints]:
    """Return which rows are complete, and the codes without theirs.

    A pair then finds no complete row impossible, and counts rows as the user does.
    """
    complete: Bools = np.all(rows.codes >= 0, axis=1)
    if not complete.any():
        return complete, rows.codes
    return complete, np.where(complete[:, None], -1, rows.codes).astype(np.int32)
