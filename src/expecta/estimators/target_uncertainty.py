"""What all estimators say of the target itself: unknown inputs and residual noise together."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length

from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.estimators.calibration import Calibration, calibrate, least_noise
from expecta.estimators.training import FOLDS, Seeds, column_curves, size
from expecta.expected.expected_model import ExpectedModel, ModelRows
from expecta.expected.row_distributions import RowDistributions, interval_levels
from expecta.expected.target_distribution import TargetDistribution
from expecta.expected.target_scale import PLAIN, TargetScale
from expecta.expected.target_values import TargetValues
from expecta.learn.regression.noise_variance import (
    KNOTS,
    MIN_ROWS,
    CodedRows,
    NoiseVariance,
    learn_noise,
)
from expecta.queries.impossible import OneWarning, check_possible
from expecta.queries.output_distribution import Distribution
from expecta.tables import Encoder
from expecta.tables.estimator_inputs import read_target

NOISE_ROWS = 20  # complete rows from which the noise is learned anew


def is_regression(estimator: TargetUncertainty) -> bool:
    """Whether an estimator predicts numbers."""
    return not estimator._classifies()


def _size(residual: Floats, target: Floats) -> float:
    """Return the size of the residuals that are known."""
    known = residual[np.isfinite(residual)]
    return max(size(known, np.ones(len(known))), least_noise(target))


def _above(y: Floats, origin: float | None) -> Floats:
    """Return targets; those that a logarithmic scale does not reach as the least that it does."""
    if origin is None or np.all(y > origin):
        return y
    if not np.any(y > origin):
        raise DomainError(
            f"no y is above {origin:.6g}, and the model was fitted on a logarithmic scale of y "
            f"above that; pass rows like those of fit, or fit with target_transform=None"
        )
    return np.maximum(y, y[y > origin].min())


def _within_limits(distribution: TargetDistribution, q: Floats, quantiles: Floats) -> Floats:
    """Return quantiles; those that rows cannot tell are the least or greatest y there can be."""
    low, high = distribution.limits
    beyond = distribution.beyond(q) & ~np.isnan(quantiles)  # an impossible row stays unknown
    return np.where(beyond, np.where(q < 0.5, low, high), quantiles)


class TargetUncertainty:
    """The verbs of estimators that give distribution, quantiles and intervals of y."""

    noise_: float  # standard deviation of y about predictions of complete rows
    target_spread_: float  # standard deviation of y over the same rows
    noise_variance_: NoiseVariance | None = None  # of y by its inputs, where it is not constant
    target_scale_: TargetScale = PLAIN  # that the circuit and its calibration are on
    log_noise_: float | None = None  # on a logarithmic scale, where there is one
    calibration_: Calibration
    random_state: Any

    @property
    @abstractmethod
    def encoder_(self) -> Encoder:
        """What the density's variables are to the user."""

    @property
    @abstractmethod
    def expected_model(self) -> ExpectedModel:
        """The model and its density: what computes every answer."""

    @property
    def explained_variance_(self) -> float:
        """Share of the variance of y that predictions explain, in the rows of ``noise_``.

        At most 1; below 0 where the mean of y would predict better; NaN where y does not vary.

        Examples
        --------
        >>> from expecta import CircuitRegressor
        >>> hours = [1.0, 2.0, 3.0, 4.0, 5.0] * 8
        >>> marks = [10.0 * h + (-1) ** i for i, h in enumerate(hours)]
        >>> model = CircuitRegressor(random_state=0).fit({"hours": hours}, marks)
        >>> round(model.explained_variance_, 2)
        0.99
        """
        if not self.target_spread_ > 0:
            return float("nan")
        return 1.0 - (self.noise_ / self.target_spread_) ** 2

    @abstractmethod
    def _classifies(self) -> bool:
        """Whether classes are predicted."""

    def predict_distribution(
        self, X: Any, *, noise: float | None = None
    ) -> Distribution | RowDistributions:
        """Return the distribution of y given the known inputs.

        Calibrated: its quantiles are those of :meth:`predict_quantiles`, as far as rows held
        out can tell, and so are the probabilities of single values of a target that takes few,
        or whole numbers only. Beyond what rows tell it continues as a normal distribution would,
        by assumption. With ``noise``, or where nothing was calibrated, it is the model's output
        and normal noise (on a logarithmic scale, the output times its exponential): exact for
        circuits and additive models, given the density, and for others a normal distribution of
        the right mean and variance.

        Parameters
        ----------
        X
            Rows, in which NaN, None and pd.NA are missing values: a frame, a dict of columns,
            records, an array, or one row as a mapping to values. Absent columns are missing in
            every row, with a warning.
        noise
            Standard deviation of normal noise added to the model's output, instead of the
            calibrated noise; with 0, the result is the distribution of the model's output. For a
            classifier the distribution is that of the log-odds, without noise.

        Returns
        -------
        Distribution or RowDistributions
            With ``cdf``, ``quantile``, ``above`` and ``interval``.
        """
        model = self.expected_model
        if noise is None and not self._classifies():
            return self._distribution(model.rows(X))
        noise = 0.0 if noise is None else noise
        if not 0 <= noise < np.inf:
            raise DomainError(f"noise is a finite number of at least 0, not {noise!r:.40}")
        with OneWarning():
            return model.distribution(model.rows(X), noise)

    def _distribution(self, rows: ModelRows) -> TargetDistribution:
        """Return the calibrated distribution of y."""
        self._check_calibrated()
        with OneWarning():
            return self.calibration_.distribution(self.expected_model, rows, self._noise)

    @property
    def _noise(self) -> float | NoiseVariance:
        """The noise on the model's scale."""
        return self.noise_variance_ or self.log_noise_ or self.noise_

    def _check_calibrated(self) -> None:
        if not hasattr(self, "calibration_"):
            raise NotFittedError(
                "intervals of y are learned from rows, with y, that the model was not fitted to: "
                "call calibrate(X, y) first. Without such rows, predict_distribution(X, noise=s) "
                "takes y to be the model's output and normal noise of standard deviation s"
            )

    @available_if(is_regression)  # type: ignore[untyped-decorator]
    def predict_noise(self, X: Any) -> Floats:
        """Return the standard deviation of the residual noise: of y given complete inputs.

        It is √E[σ²(x) | what is known], where σ² is the variance of y given the inputs, learned
        from held-out rows: exact for that and the density. Where they show no more than noise of
        one size, it is ``noise_``, unless the circuit was learned on a logarithmic scale
        (``target_scale_``): then it is that of a log-normal y. The spread of the model's output
        over unknown inputs (``return_std`` of :meth:`predict`) comes beside it: their squares add
        up to the variance of y. Cost: one expectation per row.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.

        Returns
        -------
        array of shape (rows,)
        """
        model = self.expected_model
        rows = model.rows(X)
        self._check_calibrated()
        with OneWarning():
            return model.expected_noise(rows, self._noise)

    @available_if(is_regression)  # type: ignore[untyped-decorator]
    def calibrate(self, X: Any, y: Any) -> Self:
        """Learn the distribution of prediction errors on rows that the model was not fitted to.

        They are taken as they are where they are complete, and with columns hidden at random,
        so that intervals hold for every number of unknown columns. ``noise_`` is learned
        anew from 20 complete rows or more, and how it depends on the inputs from 100 or more.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        y
            Their target.  # (rows,)

        Returns
        -------
        self
            The same, calibrated.
        """
        model = self.expected_model
        rows, given = model.rows(X), read_target(y)
        check_consistent_length(rows.codes, given)
        if not len(given):
            raise DomainError("there are no rows to calibrate on; pass at least one")
        if model.n_outputs != 1:
            raise DomainError("intervals are for a single output")
        impossible = (rows.n_missing > 0) & np.isneginf(model.log_prob(rows))
        if np.all(impossible):
            check_possible(impossible, "nan")
            raise DomainError("no row of X is possible under the density; pass rows like X of fit")
        scale = self.target_scale_
        target = scale.margin(_above(given, scale.origin))
        complete = np.flatnonzero(rows.n_missing == 0)
        folds: list[NoiseVariance | None] = []
        seed = Seeds.of(self.random_state).calibration
        part = np.random.default_rng([seed, 1]).permutation(len(target)) % FOLDS
        if len(complete) >= (NOISE_ROWS if hasattr(self, "noise_") else 2):
            residual = self._residuals(rows, complete, target)
            self.noise_ = _size(residual, target)
            if scale != PLAIN:
                self.log_noise_ = self.noise_
                asked = model.hide(rows, complete, rows.codes[complete] < 0)
                self.noise_ = _size(given[complete] - model.answer(asked).mean[:, 0], given)
            self.target_spread_ = float(np.std(given[complete]))
            folds = self._learn_noise(rows.codes[complete], residual, part[complete])
        elif not hasattr(self, "noise_"):
            self.noise_ = _size(self._residuals(rows, np.arange(len(target)), target), target)
            self.target_spread_ = float(np.std(given))
        n = getattr(self, "calibration_rows", None) or model.calibration_rows
        rng = np.random.default_rng(seed)
        values = TargetValues.of(given)
        given = values.spread(given, np.random.default_rng([seed, 2]))
        target = scale.margin(_above(given, scale.origin))
        model = self.expected_model  # which may depend on the noise
        parts = []
        for number, noise in enumerate(folds or [self.noise_variance_]):
            row = np.flatnonzero(part == number) if folds else np.arange(len(target))
            some = model.hide(rows, row, rows.codes[row] < 0) if folds else rows
            share = -(-n // max(1, len(folds)))
            with OneWarning():
                scores = calibrate(model, some, target[row], row, noise or self._noise, share, rng)
            parts.append(scores)
        self.calibration_ = replace(Calibration.joined(parts), values=values, scale=scale)
        return self

    def _residuals(self, rows: ModelRows, which: Ints, target: Floats) -> Floats:
        """Return y less what is expected; NaN in a row that is impossible, which tells nothing."""
        model = self.expected_model
        asked = model.hide(rows, which, rows.codes[which] < 0)
        return target[which] - model.target_centre(asked)

    def _learn_noise(self, codes: Ints, residual: Floats, fold: Ints) -> list[NoiseVariance | None]:
        """Set ``noise_variance_``; return that of the rows outside each fold, unless constant.

        With few rows only its size is learned again, if it had been learned before.
        """
        before = self.noise_variance_
        if before is not None and len(codes) < MIN_ROWS:
            ratio = residual / before.std(codes)
            self.noise_variance_ = before.scaled(size(ratio, np.ones(len(ratio))))
            return []
        rows = CodedRows(codes, column_curves(self.encoder_, knots=KNOTS))
        learned = learn_noise(rows, [rows] * FOLDS, residual, np.ones(len(residual)), fold)
        self.noise_variance_ = learned.variance
        return [] if learned.variance is None else learned.folds

    @available_if(is_regression)  # type: ignore[untyped-decorator]
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Return an interval that contains y with this probability, with equal tails.

        Its ends are the quantiles (1 - coverage) / 2 and (1 + coverage) / 2 of
        :meth:`predict_quantiles`, which says what is promised of each. Where the target takes
        whole numbers only, or few values, a quantile belongs to the interval only if more than
        half of its probability would: so that it holds about as much as it should on average,
        not in every row.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        coverage
            The share that an interval is to hold.

        Returns
        -------
        array of shape (rows, 2)
        """
        levels = np.array(interval_levels(coverage))
        with OneWarning():
            distribution = self._distribution(self.expected_model.rows(X))
            ends = np.stack(distribution.interval(coverage), axis=1)
        return _within_limits(distribution, levels, ends)

    @available_if(is_regression)  # type: ignore[untyped-decorator]
    def predict_quantiles(self, X: Any, q: npt.ArrayLike = (0.05, 0.5, 0.95)) -> Floats:
        """Return quantiles of y given the known inputs, with the residual noise.

        Each is calibrated separately, so that y is below the quantile q in a share q of rows, for
        any shape of the residuals and any number of missing columns, if these are missing at
        random and rows are like the calibration rows. This holds on average over such rows, not
        for each kind of row. n rows determine the levels 1 / (n + 1) to n / (n + 1); beyond these
        the quantile is infinite.

        Where the target has only whole numbers, or at most ten values, so have the quantiles: at
        least a share q of rows is at or below one, and at most a share q below it.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        q
            Levels between 0 and 1.

        Returns
        -------
        array of shape (rows, quantiles)
        """
        wanted = np.atleast_1d(np.asarray(q, np.float64))
        if wanted.ndim != 1 or not np.all((wanted > 0) & (wanted < 1)):
            raise DomainError(
                f"quantile levels must be between 0 and 1, both excluded, not {q!r:.60}; no rows "
                f"can tell where y ends"
            )
        rows = self.expected_model.rows(X)
        with OneWarning():
            distribution = self._distribution(rows)
            quantiles = distribution.quantile(wanted)
        return _within_limits(distribution, wanted, quantiles)
