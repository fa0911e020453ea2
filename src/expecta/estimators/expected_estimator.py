"""The face that all estimators share: predictions, questions and files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from os import PathLike
from shlex import quote
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from expecta.ask.asking import Asking
from expecta.ask.training_outputs import TrainingOutputs
from expecta.common.arrays import Floats
from expecta.common.errors import DomainError, FormatError
from expecta.densities.density import Density
from expecta.estimators.fit_error import fit_error
from expecta.estimators.target_uncertainty import TargetUncertainty
from expecta.expected.expected_model import ExpectedModel, ModelRows
from expecta.expected.expected_output import ExpectedOutput
from expecta.queries.impossible import OneWarning
from expecta.tables.group_sums import GroupSums, TrainingData
from expecta.tables.training_rows import TrainingRows

if TYPE_CHECKING:
    from expecta.ask.checks.density_check import DensityCheck

T = TypeVar("T")
_Kept: TypeAlias = WeakKeyDictionary[Any, tuple[tuple[Any, ...], T]]  # what it depends on, and it

_MODELS: _Kept[ExpectedModel] = WeakKeyDictionary()
_REPLICATES: _Kept[list[ExpectedModel]] = WeakKeyDictionary()


def is_classification(estimator: ExpectedEstimator) -> bool:
    """Whether an estimator predicts classes."""
    return estimator._classifies()


class ExpectedEstimator(TargetUncertainty, Asking, BaseEstimator):  # type: ignore[misc]
    """An estimator whose predictions are expectations over the unknown inputs of each row."""

    density_: Density  # as it learned
    training_rows_: TrainingRows | None  # beside which answers about groups stand
    group_sums_: GroupSums | None = None  # in their place, where a file had no rows
    classes_: npt.NDArray[Any]  # of a classifier

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

    def expected_output(self, of: Any = None) -> ExpectedOutput:
        """Return one output of the model, for its mean, variance and distribution.

        Parameters
        ----------
        of
            The class, or the index of the output.
        """
        model, target = self.expected_model, self.target_name_
        about = "leave it out: the answer is about its mean, spread and quantiles"
        if self._classifies() and len(self.classes_):
            label = str(self.classes_[-1])
            about = f"leave it out, and choose a class by of={label!r}, or --of {quote(label)}"
        self.encoder_.elsewhere = {
            target: f"{target!r} is the target, and conditions are about inputs; {about}"
        }
        return model.output(of)

    def _asked_density(self) -> Density:
        return self.expected_model.density

    # -- predictions ------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False, return_error: bool | str = False) -> Any:
        """Predict the expectation over the unknown inputs; for a classifier, the likeliest class.

        Exact, given the model and the learned density, or within the error that ``return_error``
        returns. Whether the density can be trusted is a separate question: :meth:`check_density`.

        Parameters
        ----------
        X
            Rows, in which NaN, None and pd.NA are missing values: a frame, a dict of columns,
            records, an array, or one row as a mapping to values. Absent columns are missing in
            every row, with a warning.
        return_std
            Also return the standard deviation of *the model's output* over the unknown
            inputs, zero for a complete row. It is not the uncertainty of y, which
            :meth:`predict_interval` gives. Regression only.
        return_error
            Also return the numerical error of the prediction: 0 where it is exact, a bound where
            it is approximated, a standard error where it is sampled; for a classifier, that of
            each class's probability. With "fit", return instead the standard error due to the
            training data: the standard deviation of the prediction over 30 fits with random
            weights of the rows (a Bayesian bootstrap), in which the bins, the penalties and, for
            a wrapped model, the model itself and the tree are fixed. It is not the uncertainty of
            y either. Cost: at the first call about four fits.

        Returns
        -------
        Predictions, then the optional results in this order. A row of probability zero under the
        density gives NaN and an ImpossibleEvidenceWarning, unless it is complete. Cost: one
        expectation per distinct row; the standard deviation about ten times that.
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
        """Return the models of fits with random weights of the rows."""

    def _labels(self, rows: ModelRows, scores: Floats) -> npt.NDArray[Any]:
        """Return the class of the largest score; the first class for an impossible row."""
        return self.classes_[np.argmax(scores, axis=1)]

    @available_if(is_classification)  # type: ignore[untyped-decorator]
    def predict_proba(
        self, X: Any, *, return_std: bool = False, return_error: bool | str = False
    ) -> Any:
        """Return the expected probability of each class.  # (rows, classes).

        With ``return_std`` also the standard deviation of the probability over the unknown
        inputs: how much it would change if they were known, zero for a complete row. With
        ``return_error`` also its numerical error: a bound where it is approximated, a
        standard error where it is sampled; with "fit", as in :meth:`predict`. A row of
        probability zero under the density gives NaN and an ImpossibleEvidenceWarning, unless
        it is complete.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        return_std
            Whether to return the spread over the unknown inputs too.
        return_error
            Whether to return the error too; ``"fit"``: over other training rows.
        """
        rows = self.expected_model.rows(X)
        with OneWarning():
            answers = self.expected_model.answer(rows, std=return_std)
        parts = [answers.mean, *[answers.std] * return_std]
        return self._with_error(parts, answers.error, rows, return_error)

    @available_if(is_classification)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.

        Returns
        -------
        array
            Nats.  # (rows, classes)
        """
        with np.errstate(divide="ignore"):
            log_proba: Floats = np.log(self.predict_proba(X))
        return log_proba

    def predict_moments(self, X: Any, order: int = 2, *, central: bool = False) -> Floats:
        """Return moments 0 .. order of the margin over the unknown inputs. Exact.

        The margin is what the model adds up before its link: a regressor's prediction, or its
        logarithm if that is the scale it was learned on (``target_scale_``); a classifier's
        log-odds. Moments are exact for circuits, additive models and trees that
        are few enough; for others a TypeError says why not.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        order
            The highest moment.
        central
            Whether about the mean.

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

        Compare it with the values of training rows to see how unusual a row is. The density is
        that of all answers, with bins as fine as the model's.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.

        Returns
        -------
        array
            Nats.  # (rows,)
        """
        model = self.expected_model
        return model.log_prob(model.rows(X))

    def check_density(
        self, X: Any = None, *, sample_weight: npt.ArrayLike | None = None
    ) -> DensityCheck:
        """Check the density against rows, preferably held-out ones: which answers to trust.

        Predictions with missing inputs and answers about groups are exact *given the density*.
        This compares the density with rows: likelihood, dependence of pairs of columns, and means
        over groups; see :meth:`Density.check`.

        Parameters
        ----------
        X
            Rows that the density did not learn from. By default the training rows, where the
            model has them; these make the density look better than it is, and the answer says so.
        sample_weight
            Weight of each row of X.  # (rows,)

        Returns
        -------
        DensityCheck
            About the density in its own bins, not the model's finer ones. The simpler densities
            that it is compared with learn from the training rows, where the model has them.
            Cost: that of :meth:`Density.check`.
        """
        from expecta.ask.checks.density_check import check_density

        self._model_key()  # complains where nothing was learned
        training = self.training_rows_
        return check_density(self.density_, X, training=training, sample_weight=sample_weight)

    # -- files ------------------------------------------------------------------------

    @property
    def _training_data(self) -> TrainingData | None:
        """The training rows, or the sums stored instead."""
        return self.group_sums_ if self.training_rows_ is None else self.training_rows_

    def without_rows(self) -> Self:
        """Return a copy without training rows, with counts and sums over groups instead.

        These are over groups by one and two columns, of at least five rows each: enough for
        answers about such groups. The typical error of the density is stored with them.
        """
        bare = copy(self)
        if self.training_rows_ is not None:
            bare.group_sums_ = self._sum_groups(self.training_rows_)
            bare.training_rows_ = None
        return bare

    def save(self, path: str | PathLike[str], *, rows: bool = False) -> None:
        """Write the estimator into one file. Atomic.

        Unless ``rows=True``, the file has no training rows, but counts and sums of target and
        outputs over groups by one and two columns, of at least five rows each: enough for answers
        about such groups; and the typical error of the density, which is learned now if no
        question was asked before. For a model of another library it has the structure that was
        read (trees, or a table or a slope per column), not the model itself. A model that can
        only be sampled cannot be saved.

        Parameters
        ----------
        path
            The file.
        rows
            Whether to keep the training rows in the file.
        """
        from expecta.estimators.estimator_files import ESTIMATOR_FILE

        self._model_key()
        if rows and self.training_rows_ is None:
            raise DomainError("this model was read from a file without training rows; fit it again")
        saved = copy(self) if rows else self.without_rows()
        saved.group_sums_ = None if rows else saved.group_sums_
        ESTIMATOR_FILE.save(saved, path)

    def _sum_groups(self, rows: TrainingRows) -> GroupSums | None:
        """Sum target and outputs over groups, with the typical error of the density."""
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
        """Read an estimator. Runs no code; a damaged file gives a FormatError.

        Parameters
        ----------
        path
            The file.
        """
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
