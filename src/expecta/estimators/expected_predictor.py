"""The expected prediction of a model that was fitted elsewhere."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from expecta.ask.asking import Asking
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError, ImpossibleEvidenceWarning
from expecta.densities import LatentTree
from expecta.densities.density import Density
from expecta.estimators.conformal import Calibration, hidden, least_noise
from expecta.estimators.imputers import ConditionalSampler
from expecta.estimators.predictor_output import of_predictor
from expecta.expected.exactness import explained
from expecta.expected.expected_output import ExpectedOutput
from expecta.expected.model_answers import Answer, Answers, classifies
from expecta.expected.row_template import Template
from expecta.tables import Encoder
from expecta.tables.table import Table, read_table
from expecta.tables.training_rows import TrainingRows

__all__ = ["ExpectedPredictor"]

TRIED = 2000  # training rows that the model's own spread is taken over
CALIBRATED = 2000  # predictions with hidden columns that intervals are calibrated on


def _classifies(self: ExpectedPredictor) -> bool:
    return classifies(self.model)


def _regresses(self: ExpectedPredictor) -> bool:
    return not classifies(self.model)


class ExpectedPredictor(Asking, BaseEstimator):  # type: ignore[misc]
    """What a fitted model predicts if some inputs are unknown: the expectation over them.

    The model stays as it is. ``fit`` learns a joint distribution of its raw inputs;
    predictions average the model over what the unknown inputs of a row could be, given
    its known ones. For linear models, trees and their ensembles, alone or behind
    transformers of single columns, that average is exact for the model and the density;
    for all others it is sampled, with a standard error. :meth:`explain_exactness` says which.
    Complete rows get the model's own answer. Assumed: given what is seen, *that* a value
    is missing carries no information.

    Parameters
    ----------
    model
        A fitted regressor or classifier of scikit-learn, XGBoost, LightGBM, CatBoost or
        interpret, a pipeline that ends in one, or anything with ``predict``.
    density
        A :class:`~expecta.Density` of the raw columns, learned or yet to learn; by default a
        :class:`~expecta.LatentTree`.
    rtol
        Where samples are drawn: standard error to reach, relative to the larger of the
        prediction and the spread of predictions over training rows.
    max_samples
        At most so many draws per row.
    missing_is_value
        Names of columns in which a hole is a value, as it was for the model: nothing is
        averaged over there, and the model is told that it is missing. For models that were
        fitted to rows whose holes carry information.
    tol
        Error of expected probabilities where they are computed by the spectral method.
    random_state
        Seed of the density's learning and of draws.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]] * 10)
    >>> model = LinearRegression().fit(X, X[:, 0] + 10 * X[:, 1])
    >>> expected = ExpectedPredictor(model).fit(X)
    >>> expected.predict([[np.nan, np.nan], [2.0, np.nan], [2.0, 2.0]]).round(1).tolist()
    [16.5, 21.9, 22.0]
    """

    density_: Density  # as it learned
    template_: Template
    answers_: Answers
    training_rows_: TrainingRows | None
    calibration_: Calibration

    def __init__(
        self,
        model: Any,
        density: Density | None = None,
        *,
        rtol: float = 0.01,
        max_samples: int = 10_000,
        tol: float = 1e-6,
        missing_is_value: Sequence[str] | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.model = model
        self.density = density
        self.rtol = rtol
        self.max_samples = max_samples
        self.tol = tol
        self.missing_is_value = missing_is_value
        self.random_state = random_state
        _refuse(model)

    def __sklearn_clone__(self) -> ExpectedPredictor:
        """Return the same, yet to learn: the model stays fitted."""
        params = self.get_params(deep=False)
        density = params.pop("density")
        learned = density is not None and hasattr(density, "circuit_")
        return ExpectedPredictor(
            density=density if learned or density is None else clone(density), **params
        )

    def __sklearn_tags__(self) -> Any:
        """Say what kind of estimator it is: that of the model, and holes are welcome."""
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier" if _classifies(self) else "regressor"
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.target_tags.required = False
        return tags

    def fit(
        self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> ExpectedPredictor:
        """Learn the density of the raw columns, complete or not; the model learns nothing.

        ``y`` is not learned from: it is kept with ``training_rows_``, so that answers about
        groups stand beside plain averages. Cost: that of the density, and of writing the model
        over it.
        """
        table = read_table(X)
        given = self.density
        if given is not None and not isinstance(given, Density):
            raise TypeError(f"density is a Density, learned or not, or None; not {given!r:.80}")
        if given is not None and hasattr(given, "circuit_"):
            self.density_ = given
        else:
            self.density_ = self._unfitted().fit(X, sample_weight=sample_weight)
        holed = {c.name for c in self.density_.encoder_.columns_ if c.plain is not c}
        if holed != set(self.missing_is_value or ()):
            raise DomainError(
                f"a hole is a value to the density in the columns {sorted(holed)}, and "
                f"missing_is_value names {sorted(self.missing_is_value or ())}; let them agree"
            )
        self.n_features_in_ = len(table.names)
        if table.named:
            self.feature_names_in_ = np.array(table.names, object)
        if _classifies(self):
            self.classes_ = np.asarray(self.model.classes_)
        names = getattr(self.model, "feature_names_in_", None)
        tried, whole = self._tried(X, table, holed)
        self.template_ = Template.of(tried, whole, names, holed)
        self.template_.keep_rare(table, self.density_)
        self.answers_ = Answers(
            self.model, self.density_, whole, X, self.template_, self.tol, TRIED
        )
        classes = getattr(self, "classes_", None)
        encoder = self.answers_.density.encoder_
        self.training_rows_ = TrainingRows.from_inputs(table, encoder, y, sample_weight, classes)
        return self

    def _tried(self, X: Any, table: Table, holed: Collection[str]) -> tuple[Any, Table]:
        """Return the rows, or draws for their unknown cells where none is complete."""
        cells = zip(table.names, map(table.column, range(len(table.names))), strict=True)
        known = [one.known for name, one in cells if name not in holed]
        if not known or np.any(np.all(known, axis=0)):
            return X, table
        sampler = ConditionalSampler(self.density_, random_state=self.random_state)
        drawn = sampler.fit_transform(X)
        return drawn, read_table(drawn)

    def _unfitted(self) -> Any:
        """Return the density to learn."""
        if self.density is None:
            density = LatentTree(random_state=self.random_state)
        else:
            density = clone(self.density)
        if self.missing_is_value:
            encoder = Encoder() if density.encoder is None else density.encoder
            density.encoder = encoder.set_params(missing_is_value=self.missing_is_value)
        return density

    # -- asking -----------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False, return_error: bool = False) -> Any:
        """Predict the expectation over what is unknown; of a classifier, the likeliest class.

        Parameters
        ----------
        X
            Rows with holes: NaN, None or pd.NA.
        return_std
            Also return the standard deviation of *the model's output* over the unknown
            inputs, zero for a complete row: not the uncertainty of y. Regressors only.
        return_error
            Also return the standard error of the prediction: zero where it is exact.

        Returns
        -------
        Predictions, and what else was asked for, in this order. A row that is impossible
        under the density gives NaN and an ImpossibleEvidenceWarning, unless it is complete.
        """
        if _classifies(self):
            if return_std:
                raise ValueError("a class has no standard deviation; use predict_proba")
            found = self._answer(X, spread=False)
            best = self.answers.labels(read_table(X), found.mean, self.classes_)
            return (best, found.error) if return_error else best
        found = self._answer(X, spread=return_std)
        out = [found.mean]
        if return_std:
            out.append(np.sqrt(found.variance))
        if return_error:
            out.append(found.error)
        shaped = [one[:, 0] if one.shape[1] == 1 else one for one in out]
        return shaped[0] if len(shaped) == 1 else tuple(shaped)

    @available_if(_classifies)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, return_error: bool = False) -> Any:
        """Return the expected probability of each class.  # (rows, classes).

        With ``return_error`` also how far off it may be: a bound where it is computed, a
        standard error where it is sampled; see :meth:`explain_exactness`.
        """
        if self.answers.margins_only:
            raise AttributeError(
                f"{type(self.model).__name__} has no probabilities; use decision_function"
            )
        found = self._answer(X, spread=False)
        return (found.mean, found.error) if return_error else found.mean

    def decision_function(self, X: Any) -> Floats:
        """Return the expected margin: what the model adds up, before its link. Exact.

        Raises a TypeError for a model whose inside is not known.
        """
        margin = self.answers.margin(*self._rows(X))
        return margin[:, 0] if margin.shape[1] == 1 else margin

    def predict_moments(self, X: Any, order: int = 2, *, central: bool = False) -> Floats:
        """Return M_0 .. M_order of the margin given what is known, where they are exact.

        They are for additive models, and for trees that are few enough; else a TypeError
        says why not. The last axis counts the order.  # (rows, [outputs,] order + 1)
        """
        found = self.answers.moments(*self._rows(X), order, central)
        return found[:, 0] if found.shape[1] == 1 else found

    @available_if(_regresses)  # type: ignore[untyped-decorator]
    def calibrate(self, X: Any, y: npt.ArrayLike) -> ExpectedPredictor:
        """Learn how far y lies from predictions, from rows that the model was not fitted to.

        They are taken as they are and with further columns hidden at random, so that
        :meth:`predict_interval` holds for every number of unknown columns.
        """
        target = np.asarray(y, np.float64).ravel()
        table = read_table(X)
        if len(target) != table.n_rows:
            raise DomainError(f"X has {table.n_rows} rows and y {len(target)}")
        if not np.all(np.isfinite(target)):
            raise DomainError("y has an unknown or infinite number; leave these rows out")
        whole = self._answer(table, spread=True)
        if whole.mean.shape[1] != 1:
            raise DomainError("intervals are for a single output")
        codes = self.answers.codes(table)
        rng = np.random.default_rng(self.random_state)
        picked, left = hidden(codes, CALIBRATED, rng)
        kept = [c.plain is not c for c in self.answers.density.encoder_.columns_]
        left[:, kept] = codes[picked][:, kept]
        masked = self.answers.masked(table, picked, left < 0)
        parts = self._answer(masked, spread=True)
        residual = target - whole.mean[:, 0]
        complete = np.all(codes >= 0, axis=1)
        used = residual[complete] if np.count_nonzero(complete) > 1 else residual
        used = used[np.isfinite(used)]  # a row that is impossible tells nothing
        if not len(used):
            raise DomainError("no row of X is possible under the density; pass rows like X of fit")
        self.noise_ = max(float(np.sqrt(np.mean(used**2))), least_noise(target))
        gap = np.append(residual, target[picked] - parts.mean[:, 0])
        spread = np.sqrt(np.append(whole.variance, parts.variance) + self.noise_**2)
        missing = np.count_nonzero(np.concatenate([codes, left]) < 0, axis=1)
        row = np.append(np.arange(len(codes)), picked)
        fine = np.isfinite(gap)
        distance = np.abs(2 * ndtr(gap / spread) - 1)
        self.calibration_ = Calibration(missing[fine], distance[fine], row[fine])
        return self

    @available_if(_regresses)  # type: ignore[untyped-decorator]
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Return an interval for *y* that holds it with this probability.  # (rows, 2).

        It runs about the expected prediction; its width comes from the spread of the model's
        output over what is unknown and the residuals of the rows of :meth:`calibrate`, by
        number of unknown columns. What it covers is y of new rows like those. The ends are
        infinite where the rows are too few to tell.
        """
        if not hasattr(self, "calibration_"):
            raise NotFittedError(
                "intervals for y need rows with their y that the model was not fitted to; call "
                "calibrate(X, y) first"
            )
        if not 0 < coverage < 1:
            raise ValueError(f"coverage lies between 0 and 1, not {coverage!r}")
        table, codes = self._rows(X)
        found = self._answer(table, spread=True)
        missing = np.count_nonzero(codes < 0, axis=1)
        level = self.calibration_.level(missing, np.array([coverage]))[:, 0]
        spread = np.sqrt(found.variance[:, 0] + self.noise_**2)
        half = spread * ndtri((1 + level) / 2)
        return np.stack([found.mean[:, 0] - half, found.mean[:, 0] + half], axis=1)

    def explain_exactness(self) -> str:
        """Say in words what is exact for this model, what is not, and why."""
        return explained(self.answers, type(self.model).__name__)

    # ---------------------------------------------------------------------------------

    @property
    def answers(self) -> Answers:
        """How this model is answered for."""
        if not hasattr(self, "answers_"):
            raise NotFittedError("this ExpectedPredictor has no density yet; call fit(X) first")
        return self.answers_

    def _learned(self) -> object:
        return self.answers

    def _make_output(self, of: Any) -> ExpectedOutput:
        return of_predictor(self, of)

    def _rows(self, X: Any) -> tuple[Table, Ints]:
        answers, table = self.answers, read_table(X)
        return table, answers.codes(table)

    def _answer(self, X: Any, *, spread: bool) -> Answer:
        answers = self.answers
        table, codes = self._rows(X)
        seed = self.random_state if self.random_state is not None else np.random.SeedSequence()
        rng = np.random.default_rng(seed)
        found = answers.respond(table, codes, self.rtol, self.max_samples, rng, spread=spread)
        gone = int(np.count_nonzero(np.isnan(found.mean).any(axis=1)))
        if gone:
            warnings.warn(
                f"{gone} row(s) have probability zero under the density; they give NaN",
                ImpossibleEvidenceWarning,
                stacklevel=3,
            )
        return found


def _refuse(model: Any) -> None:
    """Refuse what cannot be answered for, at once."""
    name = type(model).__name__
    if isinstance(model, type):
        raise TypeError(f"model is a fitted model, not the class {model.__name__}; call its fit")
    if not callable(getattr(model, "predict", None)):
        raise TypeError(f"a {name} has no predict; pass a fitted regressor or classifier")
    if name == "Booster" and type(model).__module__.startswith("xgboost"):
        raise TypeError("an XGBoost Booster takes no tables; load_model it in an XGBRegressor")
    if classifies(model) and isinstance(getattr(model, "classes_", None), list):
        raise TypeError(f"this {name} has several targets; wrap one of them in an object")
    if isinstance(model, BaseEstimator):
        if not (is_classifier(model) or is_regressor(model)):
            raise TypeError(
                f"a {name} neither classifies nor predicts numbers; pass a fitted regressor or "
                f"classifier, or wrap its score in an object with predict"
            )
        try:
            check_is_fitted(model)
        except NotFittedError:
            raise DomainError(f"this {name} is not fitted; call its fit before") from None
    scores = any(hasattr(model, one) for one in ("predict_proba", "decision_function"))
    if classifies(model) and not scores:
        raise TypeError(
            f"this {name} has classes and no probabilities or margins of them; pass one that has "
            f"predict_proba, such as a VotingClassifier with voting='soft'"
        )
