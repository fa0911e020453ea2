"""The face that all estimators share: predictions, intervals, questions, and files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length

from expecta.ask.asking import Asking
from expecta.ask.training_outputs import TrainingOutputs
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError, FormatError
from expecta.densities.density import Density
from expecta.estimators.calibration import Calibration, calibrate, least_noise
from expecta.estimators.fit_error import fit_error
from expecta.estimators.training import FOLDS, Seeds, column_curves, size
from expecta.expected.calibrated_distribution import CalibratedDistribution
from expecta.expected.expected_model import ExpectedModel, ModelRows
from expecta.expected.expected_output import ExpectedOutput
from expecta.expected.row_distributions import RowDistributions, interval_levels
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
from expecta.tables.group_sums import GroupSums, TrainingData
from expecta.tables.training_rows import TrainingRows

if TYPE_CHECKING:
    from expecta.ask.checks.density_check import DensityCheck

NOISE_ROWS = 20  # complete rows from which the noise is learned anew

T = TypeVar("T")
_Kept: TypeAlias = WeakKeyDictionary[Any, tuple[tuple[Any, ...], T]]  # what it depends on, and it

_MODELS: _Kept[ExpectedModel] = WeakKeyDictionary()
_REPLICATES: _Kept[list[ExpectedModel]] = WeakKeyDictionary()


def is_classification(estimator: ExpectedEstimator) -> bool:
    """Whether an estimator predicts classes."""
    return estimator._classifies()


def is_regression(estimator: ExpectedEstimator) -> bool:
    """Whether an estimator predicts numbers."""
    return not estimator._classifies()


def _size(residual: Floats, target: Floats) -> float:
    """Return the size of the residuals that are known."""
    known = residual[np.isfinite(residual)]
    return max(size(known, np.ones(len(known))), least_noise(target))


class ExpectedEstimator(Asking, BaseEstimator):  # type: ignore[misc]
    """An estimator whose predictions are expectations over the unknown inputs of each row."""

    density_: Density  # as it learned
    training_rows_: TrainingRows | None  # beside which answers about groups stand
    noise_variance_: NoiseVariance | None = None  # of y by its inputs, where it is not constant
    group_sums_: GroupSums | None = None  # in their place, where a file had no rows
    noise_: float  # standard deviation of y about predictions of complete rows
    calibration_: Calibration
    classes_: npt.NDArray[Any]  # of a classifier
    random_state: Any

    @property
    @abstractmethod
    def encoder_(self) -> Encoder:
        """What the density's variables are to the user."""

    # -- what answers -----------------------------------------------------------------

    @property
    def expected_model(self) -> ExpectedModel:
        """The model and its density: what computes every answer. Kept until ``fit``."""
        return self._keep_until_fit(_MODELS, self._make_expected_model)

    def _keep_until_fit(self, store: _Kept[T], make: Callable[[], T]) -> T:
        """Return what was made of this fit, or make it."""
        key = self._model_key()
        kept = store.get(self)
        if kept is None or kept[0] != key:
            kept = store[self] = key, make()
        return kept[1]

    @abstractmethod
    def _model_key(self) -> tuple[Any, ...]:
        """Return what the expected model depends on; raise where nothing was learned."""

    @abstractmethod
    def _make_expected_model(self) -> ExpectedModel:
        """Return what :attr:`expected_model` keeps."""

    @abstractmethod
    def _classifies(self) -> bool:
        """Whether classes are predicted."""

    def expected_output(self, of: Any = None) -> ExpectedOutput:
        """Return one number that the model outputs, to ask its mean, variance and distribution.

        Parameters
        ----------
        of
            The class, or the index of the output.
        """
        return self.expected_model.output(of)

    def _asked_density(self) -> Density:
        return self.expected_model.density

    # -- predictions ------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False, return_error: bool | str = False) -> Any:
        """Predict the expectation over the unknown inputs; of a classifier, the likeliest class.

        Exact for the model and the density, or within an error that ``return_error`` gives;
        whether the density can be trusted is another question.

        Parameters
        ----------
        X
            Rows in which NaN, None or pd.NA is unknown: a frame, a dict of columns, records, an
            array, or one row as a mapping to values. Absent columns are unknown, with a warning.
        return_std
            Also return the standard deviation of *the model's output* over the unknown
            inputs, zero for a complete row. It is not the uncertainty of y, which
            :meth:`predict_interval` gives. Regression only.
        return_error
            Also return how far off the prediction may be: 0 where it is exact, a bound where
            it is computed, a standard error where it is sampled; of a classifier, that of
            each class's probability. With "fit" instead the standard error over other training
            rows: the predictions' standard deviation over 30 fits to rows of random weights
            (a Bayesian bootstrap), in which the tree, penalties and, of a wrapped model, the
            model itself stay. It is not the uncertainty of y either.

        Returns
        -------
        Predictions, and what else was asked for, in this order. A row of probability zero
        under the density gives NaN and an ImpossibleEvidenceWarning, unless it is complete.
        Cost: one expectation per row with another pattern of values; the standard deviation
        some ten times that.
        """
        model = self.expected_model
        rows = model.rows(X)
        if self._classifies():
            if return_std:
                raise DomainError(
                    "a class has no standard deviation; use predict_proba(X, return_std=True)"
                )
            with OneWarning():
                answers = model.answer(rows)
            labels = self._labels(rows, answers.mean)
            return self._with_error([labels], answers.error, rows, return_error)
        with OneWarning():
            answers = model.answer(rows, std=return_std)
        parts = [answers.mean, *[answers.std] * return_std]
        return self._with_error(parts, answers.error, rows, return_error)

    def _with_error(
        self, parts: list[Any], error: Floats | None, rows: ModelRows, return_error: bool | str
    ) -> Any:
        """Return what was asked for, with the error that was asked for; one output is a column."""
        if return_error not in (True, False, "fit"):
            raise ValueError(f'return_error is True, False or "fit", not {return_error!r:.40}')
        if return_error == "fit":
            replicates = self._keep_until_fit(_REPLICATES, self._replicates)
            parts = [*parts, fit_error(replicates, rows)]
        elif return_error:
            parts = [*parts, error]
        single = not self._classifies() and self.expected_model.n_outputs == 1
        shaped = [part[:, 0] if single else part for part in parts]
        return shaped[0] if len(shaped) == 1 else tuple(shaped)

    @abstractmethod
    def _replicates(self) -> list[ExpectedModel]:
        """Return the model as fits to rows of random weights make it."""

    def _labels(self, rows: ModelRows, scores: Floats) -> npt.NDArray[Any]:
        """Return the class of the greatest score; the first, of a row that is impossible."""
        return self.classes_[np.argmax(scores, axis=1)]

    @available_if(is_classification)  # type: ignore[untyped-decorator]
    def predict_proba(
        self, X: Any, *, return_std: bool = False, return_error: bool | str = False
    ) -> Any:
        """Return the expected probability of each class.  # (rows, classes).

        With ``return_std`` also the standard deviation of the probability over the unknown
        inputs: how far it would move if they were known, zero for a complete row. With
        ``return_error`` also how far off it may be: a bound where it is computed, a
        standard error where it is sampled; with "fit", as in :meth:`predict`. A row of
        probability zero under the density gives NaN and an ImpossibleEvidenceWarning, unless
        it is complete.
        """
        rows = self.expected_model.rows(X)
        with OneWarning():
            answers = self.expected_model.answer(rows, std=return_std)
        parts = [answers.mean, *[answers.std] * return_std]
        return self._with_error(parts, answers.error, rows, return_error)

    @available_if(is_classification)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithm of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            log_proba: Floats = np.log(self.predict_proba(X))
        return log_proba

    def predict_moments(self, X: Any, order: int = 2, *, central: bool = False) -> Floats:
        """Return moments 0 .. order of the margin over the unknown inputs. Exact.

        The margin is what the model adds up before its link: a regressor's prediction, a
        classifier's log-odds. Moments are exact for circuits, additive models and trees that
        are few enough; for others a TypeError says why not.

        Returns
        -------
        array of shape (rows, order + 1), or (rows, outputs, order + 1) for several outputs
        """
        rows = self.expected_model.rows(X)
        with OneWarning():
            moments = self.expected_model.moments(rows, order, central=central)
        return moments[:, 0] if moments.shape[1] == 1 else moments

    def score_samples(self, X: Any) -> Floats:
        """Log-probability, in nats, of the known cells of each row. Exact under the density.

        How like the training rows is a row? Compare with ``score_samples`` of those. The
        density is the one that all answers are about: its bins are as fine as the model's.
        """
        model = self.expected_model
        return model.log_prob(model.rows(X))

    def check_density(
        self, X: Any = None, *, sample_weight: npt.ArrayLike | None = None
    ) -> DensityCheck:
        """Check the density against rows, best held-out ones, which answers can be trusted.

        Predictions with unknown inputs and answers about groups are exact *for the density*: this
        tells how far it agrees with rows, by likelihood, dependence of pairs of columns and
        means over groups; see :meth:`Density.check`.

        Parameters
        ----------
        X
            Rows that the density did not learn from. By default the training rows, where the
            model keeps them: then all looks better than it is, and the answer says so.
        sample_weight
            How much each row of X counts.  # (rows,)

        Returns
        -------
        DensityCheck
            Of the density as it learned, in its own bins, which the model's finer bins share.
            With rows of X, the simple densities that it is compared with learn from the
            training rows, where these are kept. Cost: that of :meth:`Density.check`.
        """
        from expecta.ask.checks.density_check import check_density

        self._model_key()  # complains where nothing was learned
        training = self.training_rows_
        return check_density(self.density_, X, training=training, sample_weight=sample_weight)

    # -- the uncertainty of y ---------------------------------------------------------

    def predict_distribution(
        self, X: Any, *, noise: float | None = None
    ) -> Distribution | RowDistributions:
        """Distribution of y given the known inputs: unknown inputs and residual noise together.

        Calibrated: its quantiles are those of :meth:`predict_quantiles`, as far as rows held
        out can tell. Of a target of few values quantiles are calibrated and probabilities of
        single values are not: where half of all y are 0, ``cdf(0)`` may be far from one half.
        Beyond what rows tell it continues as a normal distribution would, by assumption. With
        ``noise``, or where nothing was calibrated, it is the model's output and normal noise:
        exact for circuits and additive models, given the density, and for others a normal
        distribution of the right mean and variance.

        Parameters
        ----------
        X
            Rows in which NaN, None or pd.NA is unknown: a frame, a dict of columns, records, an
            array, or one row as a mapping to values. Absent columns are unknown, with a warning.
        noise
            Standard deviation of normal noise that is added to the model's output, in place of
            what was calibrated; with 0 it is the distribution of the model's output. A
            classifier has none: it is that of the log-odds.
        """
        model = self.expected_model
        if noise is None and not self._classifies():
            return self._distribution(model.rows(X))
        noise = 0.0 if noise is None else noise
        if not 0 <= noise < np.inf:
            raise DomainError(f"noise is a finite number of at least 0, not {noise!r:.40}")
        with OneWarning():
            return model.distribution(model.rows(X), noise)

    def _distribution(self, rows: ModelRows) -> Distribution | RowDistributions:
        """Return the calibrated distribution of y."""
        self._check_calibrated()
        noise = self.noise_variance_ or self.noise_
        with OneWarning():
            return self.calibration_.distribution(self.expected_model, rows, noise)

    def _check_calibrated(self) -> None:
        if not hasattr(self, "calibration_"):
            raise NotFittedError(
                "where y lies is learned from rows with their y that the model was not fitted to: "
                "call calibrate(X, y) first. Without such rows, predict_distribution(X, noise=s) "
                "takes y to be the model's output and normal noise of standard deviation s"
            )

    @available_if(is_regression)  # type: ignore[untyped-decorator]
    def predict_noise(self, X: Any) -> Floats:
        """Return the standard deviation of y about what the model says of complete inputs.

        It is √E[σ²(x) | what is known], where σ² is the variance of y given the inputs, learned
        from held-out rows: exact for that and the density. Where they show no more than noise of
        one size, it is ``noise_``. The spread of the model's output over unknown inputs
        (``return_std`` of :meth:`predict`) comes beside it: their squares add up to the variance
        of y. Cost: one expectation per row.

        Returns
        -------
        array of shape (rows,)
        """
        model = self.expected_model
        rows = model.rows(X)
        self._check_calibrated()
        with OneWarning():
            if self.noise_variance_ is not None:
                return model.expected_noise(rows, self.noise_variance_)
            impossible = (rows.n_missing > 0) & np.isneginf(model.log_prob(rows))
            return np.where(check_possible(impossible, "nan"), np.nan, self.noise_)

    @available_if(is_regression)  # type: ignore[untyped-decorator]
    def calibrate(self, X: Any, y: Any) -> Self:
        """Learn how far y lies from predictions, on rows that the model was not fitted to.

        They are taken as they are where they are complete, and with columns hidden at random,
        so that intervals hold for every number of unknown columns. ``noise_`` is learned
        anew from 20 complete rows or more, and how it depends on the inputs from 100 or more.
        """
        model = self.expected_model
        rows, target = model.rows(X), read_target(y)
        check_consistent_length(rows.codes, target)
        if not len(target):
            raise DomainError("there are 0 rows to calibrate on; pass one or more")
        if model.n_outputs != 1:
            raise DomainError("intervals are for a single output")
        impossible = (rows.n_missing > 0) & np.isneginf(model.log_prob(rows))
        if np.all(impossible):
            check_possible(impossible, "nan")
            raise DomainError("no row of X is possible under the density; pass rows like X of fit")
        complete = np.flatnonzero(rows.n_missing == 0)
        folds: list[NoiseVariance | None] = []
        seed = Seeds.of(self.random_state).calibration
        part = np.random.default_rng([seed, 1]).permutation(len(target)) % FOLDS
        if len(complete) >= (NOISE_ROWS if hasattr(self, "noise_") else 2):
            residual = self._residuals(rows, complete, target)
            self.noise_ = _size(residual, target)
            folds = self._learn_noise(rows.codes[complete], residual, part[complete])
        elif not hasattr(self, "noise_"):
            self.noise_ = _size(self._residuals(rows, np.arange(len(target)), target), target)
        n = getattr(self, "calibration_rows", None) or model.calibration_rows
        rng = np.random.default_rng(seed)
        model = self.expected_model  # which may depend on the noise
        parts = []
        for number, noise in enumerate(folds or [self.noise_variance_]):
            row = np.flatnonzero(part == number) if folds else np.arange(len(target))
            some = model.hide(rows, row, rows.codes[row] < 0) if folds else rows
            share = -(-n // max(1, len(folds)))
            with OneWarning():
                scores = calibrate(model, some, target[row], row, noise or self.noise_, share, rng)
            parts.append(scores)
        self.calibration_ = replace(Calibration.joined(parts), values=TargetValues.of(target))
        return self

    def _residuals(self, rows: ModelRows, which: Ints, target: Floats) -> Floats:
        """Return y less the prediction; NaN in a row that is impossible, which tells nothing."""
        model = self.expected_model
        asked = model.hide(rows, which, rows.codes[which] < 0)
        return target[which] - model.answer(asked).mean[:, 0]

    def _learn_noise(self, codes: Ints, residual: Floats, fold: Ints) -> list[NoiseVariance | None]:
        """Set ``noise_variance_``; returns that of the rows outside each fold, unless constant.

        Of few rows it keeps its shape, if it had one.
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
        """Return an interval that y lies in with this probability, equal on both sides.

        Its ends are the quantiles (1 - coverage) / 2 and (1 + coverage) / 2 of
        :meth:`predict_quantiles`, which says what is promised of each.

        Returns
        -------
        array of shape (rows, 2)
        """
        return self.predict_quantiles(X, interval_levels(coverage))

    @available_if(is_regression)  # type: ignore[untyped-decorator]
    def predict_quantiles(self, X: Any, q: npt.ArrayLike = (0.05, 0.5, 0.95)) -> Floats:
        """Quantiles of y given the known inputs: unknown inputs and residual noise together.

        Each is calibrated by itself, so that y lies below the quantile q in a share q of rows,
        whatever the shape of the residuals and the number of unknown columns, if these are
        hidden at random and rows are like those that were calibrated on. It holds on average
        over such rows, not for each kind of row. n rows can tell the levels 1 / (n + 1) to
        n / (n + 1): beyond, the quantile is infinite, for a single row all but the median.

        Where the target takes whole numbers only, or ten values or fewer, so do quantiles: at
        least a share q of rows is at or below one, and at most a share q below it.

        Returns
        -------
        array of shape (rows, quantiles)
        """
        wanted = np.atleast_1d(np.asarray(q, np.float64))
        if wanted.ndim != 1 or not np.all((wanted > 0) & (wanted < 1)):
            raise DomainError("quantiles lie between 0 and 1")
        rows = self.expected_model.rows(X)
        with OneWarning():
            distribution = self._distribution(rows)
            quantiles = distribution.quantile(wanted)
        if not isinstance(distribution, CalibratedDistribution):
            return quantiles
        # an impossible row stays unknown
        beyond = distribution.beyond(wanted) & ~np.isnan(quantiles)
        return np.where(beyond, np.where(wanted < 0.5, -np.inf, np.inf), quantiles)

    # -- files ------------------------------------------------------------------------

    @property
    def _training_data(self) -> TrainingData | None:
        """The training rows, or what is kept in their place."""
        return self.group_sums_ if self.training_rows_ is None else self.training_rows_

    def without_rows(self) -> Self:
        """Return the same without training rows: counts and sums over groups in their place.

        They are over groups of one and two columns, of no row or at least five each: enough for
        answers about such groups. Beside them stands how far the density is typically off.
        """
        bare = copy(self)
        if self.training_rows_ is not None:
            bare.group_sums_ = self._sum_groups(self.training_rows_)
            bare.training_rows_ = None
        return bare

    def save(self, path: str | PathLike[str], *, rows: bool = False) -> None:
        """Write the estimator into one file. Atomic.

        The file holds no training rows unless ``rows=True`` asks for them, but counts and sums of
        target and outputs over groups of one and two columns, of no row or at least five each:
        enough for answers about such groups; and how far the density is typically off, which is
        learned now if no question was asked before. Of a model that was fitted elsewhere it holds
        what was read of it, not the model: trees, or a sum of a table or a multiple of each column.
        A model that is sampled cannot be saved.
        """
        from expecta.estimators.estimator_files import ESTIMATOR_FILE

        self._model_key()
        if rows and self.training_rows_ is None:
            raise DomainError(
                "this model has no training rows: it is from a file without them; fit it again"
            )
        saved = copy(self) if rows else self.without_rows()
        saved.group_sums_ = None if rows else saved.group_sums_
        ESTIMATOR_FILE.save(saved, path)

    def _sum_groups(self, rows: TrainingRows) -> GroupSums | None:
        """Sum target and outputs over groups, with how far the density is typically off."""
        n_classes = len(self.classes_) if self._classifies() else None
        n_outputs = self.expected_model.n_outputs
        of: list[Any] = [None]
        if n_outputs > 1:
            of = self.classes_.tolist() if self._classifies() else list(range(n_outputs))
        elif n_classes == 1:
            of = []
        outputs, learned = np.zeros((len(rows), len(of))), np.zeros((len(of), 3))
        for index, which in enumerate(of):
            computed = TrainingOutputs.of(self.expected_output(which))
            assert computed is not None
            outputs[:, index] = computed.outputs
            learned[index] = computed.credibility
        return GroupSums.from_rows(rows, self.encoder_, n_classes, outputs, learned)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read an estimator. Runs no code; a damaged file gives a FormatError."""
        from expecta.estimators.estimator_files import ESTIMATOR_FILE

        estimator = ESTIMATOR_FILE.load(path)
        if not isinstance(estimator, cls):
            kind = type(estimator).__name__
            problem = f"this file holds a model of class {kind}, not {cls.__name__}: "
            raise FormatError(str(path), None, f"{problem}read it with {kind}.load")
        return estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags
