"""The expected prediction of a model that was fitted elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from expecta.common.arrays import Floats
from expecta.common.errors import DomainError
from expecta.common.progress import Progress, begin_stage, in_stages
from expecta.densities import LatentTree
from expecta.densities.density import Density
from expecta.estimators.expected_estimator import ExpectedEstimator, is_classification
from expecta.estimators.fit_error import REPLICATES, relearned, replicate_weights
from expecta.estimators.imputers import ConditionalSampler
from expecta.expected.expected_model import ExpectedModel, ModelRows
from expecta.expected.row_template import RowTemplate
from expecta.expected.wrap_model import ModelCalls, classifies, largest_class, wrap_model
from expecta.expected.wrapped_model import WrappedModel
from expecta.tables import Encoder
from expecta.tables.table import Table, read_table
from expecta.tables.training_rows import TrainingRows


class ExpectedPredictor(ExpectedEstimator):
    """Predict with a fitted model when some of its inputs are unknown.

    The model is not changed. ``fit`` learns a joint distribution of its raw inputs; predictions
    average the model over the possible values of the unknown inputs of a row, given the known
    ones. For linear models, trees and their ensembles, alone or after transformers of single
    columns, that average is exact, given the learned density; for other models it is sampled,
    with a standard error. :meth:`explain_exactness` says which. Complete rows get the model's
    own prediction. Assumed: given the known values, missingness carries no information.

    Parameters
    ----------
    model
        A fitted regressor or classifier of scikit-learn, XGBoost, LightGBM, CatBoost or
        interpret, a pipeline that ends in one, or any object with ``predict``.
    density
        A :class:`~expecta.Density` of the raw columns, learned or yet to learn; by default a
        :class:`~expecta.LatentTree`.
    rtol
        For sampled predictions: the standard error to reach, relative to the larger of the
        prediction and the standard deviation of predictions over training rows.
    max_samples
        Maximum number of samples per row.
    tol
        Error of expected probabilities computed by the spectral method.
    missing_is_value
        Names of columns whose missing values carry information, as they did for the model: they
        are not averaged over, and the model gets them as missing.
    random_state
        Seed of learning the density and of sampling.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]] * 10)
    >>> model = LinearRegression().fit(X, X[:, 0] + 10 * X[:, 1])
    >>> expected = ExpectedPredictor(model).fit(X)
    >>> expected.predict([[np.nan, np.nan], [2.0, np.nan], [2.0, 2.0]]).round(1).tolist()
    [16.7, 21.6, 22.0]
    """

    template_: RowTemplate
    wrapped_: WrappedModel  # what was read of the model, over the density

    def __init__(
        self,
        model: Any,
        density: Density | None = None,
        *,
        rtol: float = 0.01,
        max_samples: int = 10_000,
        tol: float = 1e-9,
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
        """Return an unfitted copy, with the fitted model."""
        params = self.get_params(deep=False)
        density = params.pop("density")
        learned = density is not None and hasattr(density, "circuit_")
        return ExpectedPredictor(
            density=density if learned or density is None else clone(density), **params
        )

    def __sklearn_tags__(self) -> Any:
        """Say what kind of estimator it is: that of the model."""
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier" if self._classifies() else "regressor"
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.target_tags.required = False
        return tags

    @in_stages({"reading": 3, "density": 80, "model": 17})
    def fit(
        self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> ExpectedPredictor:
        """Learn the density of the raw columns, which may have missing values.

        ``y`` is not learned from: it is kept with ``training_rows_``, so that answers about
        groups stand beside plain averages. If something fails, all stays as it was. Cost: that
        of the density, and of writing the model over it.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        y
            The target, for plain averages beside answers; the model does not learn from it.
        sample_weight
            How much each row counts.  # (rows,)

        Returns
        -------
        self
            The same, which has learned.
        """
        if getattr(self, "wrapped_", None) is not None and self.template_.rows is None:
            raise DomainError(
                "the model itself is not in the file: wrap it again where it is available"
            )
        table = read_table(X)
        given = self.density
        if given is not None and not isinstance(given, Density):
            raise TypeError(
                f"density must be a Density, learned or not, or None, not {given!r:.80}"
            )
        if given is not None and hasattr(given, "circuit_"):
            density = given
        else:
            begin_stage("density")
            density = self._unfitted().fit(X, sample_weight=sample_weight)
        begin_stage("model")
        table = density.encoder_.read(table)
        fixed = {c.name for c in density.encoder_.columns_ if c.plain is not c}
        if fixed != set(self.missing_is_value or ()):
            raise DomainError(
                f"a missing value is a value to the density in the columns {sorted(fixed)}, and "
                f"missing_is_value names {sorted(self.missing_is_value or ())}; let them agree"
            )
        names = getattr(self.model, "feature_names_in_", None)
        complete, table_of_complete = self._some_complete(X, table, density, fixed)
        template = RowTemplate.of(complete, table_of_complete, names, fixed)
        template.keep_seen(table, density)
        calls = ModelCalls(self.model)
        wrapped = self._wrap(calls, density, table_of_complete, X, template)
        wrapped.training_rows = TrainingRows.from_inputs(
            table, wrapped.density.encoder_, y, sample_weight, calls.classes
        )
        # all at once, and nothing of what was learned before
        learned = ("noise_", "target_spread_", "noise_variance_", "calibration_")
        for name in (*learned, "feature_names_in_", "classes_"):
            self.__dict__.pop(name, None)
        self.density_, self.template_, self.wrapped_ = density, template, wrapped
        self._calls, self.training_rows_ = calls, wrapped.training_rows
        self._drawn = None if table_of_complete is table else table_of_complete
        self.n_features_in_ = len(table.names)
        if table.named:
            self.feature_names_in_ = np.array(table.names, object)
        if calls.classes is not None:
            self.classes_ = calls.classes
        return self

    def _wrap(
        self, calls: ModelCalls, density: Density, table: Table, X: Any, template: RowTemplate
    ) -> WrappedModel:
        return wrap_model(
            calls,
            density,
            table,
            X,
            template,
            tol=self.tol,
            rtol=self.rtol,
            max_samples=self.max_samples,
            random_state=self.random_state,
        )

    def _replicates(self) -> list[ExpectedModel]:
        """Return the model over its density as other weights of training rows make that."""
        rows, template = self.training_rows_, self.template_
        if rows is None or template.rows is None:
            raise DomainError(
                'return_error="fit" needs the training rows and the model itself, which a file '
                "does not hold; call it on the predictor you fitted"
            )
        table = rows.to_table(self.encoder_)
        codes = self.density_.encoder_.codes(table)
        complete = table if self._drawn is None else self._drawn
        models: list[ExpectedModel] = []
        with Progress("replicates", REPLICATES) as progress:
            for times in replicate_weights(len(rows), self.random_state):
                density = self.density_
                if density is not self.density:  # one that was given stays as it is
                    density = relearned(density, codes, rows.weight * times)
                models.append(self._wrap(self._calls, density, complete, table, template))
                progress.advance()
        return models

    def _some_complete(
        self, X: Any, table: Table, density: Density, fixed: Collection[str]
    ) -> tuple[Any, Table]:
        """Return the rows, or draws for their unknown cells where none is complete."""
        cells = zip(table.names, map(table.column, range(len(table.names))), strict=True)
        known = [one.known for name, one in cells if name not in fixed]
        if not known or np.any(np.all(known, axis=0)):
            return X, table
        sampler = ConditionalSampler(density, random_state=self.random_state)
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

    @available_if(is_classification)  # type: ignore[untyped-decorator]
    def predict_proba(
        self, X: Any, *, return_std: bool = False, return_error: bool | str = False
    ) -> Any:
        """Return the expected probability of each class.  # (rows, classes).

        With ``return_std`` also the standard deviation of the probability over the unknown
        inputs. With ``return_error`` also its numerical error: a bound where it is approximated,
        a standard error where it is sampled; see :meth:`explain_exactness`.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        return_std
            Whether to return the spread over the unknown inputs too.
        return_error
            Whether to return the error too; ``"fit"``: over other training rows.
        """
        if self.expected_model.margins_only:
            raise AttributeError(
                f"{self.expected_model.name} has no probabilities; use decision_function"
            )
        return super().predict_proba(X, return_std=return_std, return_error=return_error)

    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return R² of the predictions, or the accuracy of a classifier, as scikit-learn does.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        y
            Target or classes.  # (rows,)
        sample_weight
            How much each row counts.  # (rows,)
        """
        from sklearn.metrics import accuracy_score, r2_score

        metric = accuracy_score if self._classifies() else r2_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))

    def decision_function(self, X: Any) -> Floats:
        """Return the expected margin: the model's sum before its link.

        As exact as :meth:`explain_exactness` says. Raises a TypeError for a model whose inside is
        not known.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        """
        margin = self.expected_model.margin(self.expected_model.rows(X))
        return margin[:, 0] if margin.shape[1] == 1 else margin

    def explain_exactness(self) -> str:
        """Say in words what is exact for this model, what is not, and why.

        Returns
        -------
        str
            A line for each kind of answer.
        """
        return self.expected_model.explain_exactness()

    # ---------------------------------------------------------------------------------

    @property
    def expected_model(self) -> WrappedModel:
        """The model and its density: what computes every answer."""
        self._model_key()
        return self.wrapped_

    @property
    def encoder_(self) -> Encoder:
        """What the density's variables are to the user."""
        return self.expected_model.density.encoder_

    @property
    def target_name_(self) -> str:
        """What the model's output is called: as y of ``fit`` was, if it had a name."""
        data = self._training_data
        return "prediction" if data is None else data.name

    def _model_key(self) -> tuple[Any, ...]:
        if not hasattr(self, "wrapped_"):
            raise NotFittedError("this ExpectedPredictor is not fitted yet; call fit(X) first")
        return ()

    def _make_expected_model(self) -> WrappedModel:
        return self.wrapped_

    def _classifies(self) -> bool:
        return classifies(self.model)

    def _labels(self, rows: ModelRows, scores: Floats) -> npt.NDArray[Any]:
        """Return classes: the model's own for complete rows, else those of the largest score."""
        calls, template = self._calls, self.template_
        complete = template.complete_rows(rows.table)
        if not calls.largest_wins and not complete.all():
            raise TypeError(
                f"the class that this {calls.name} predicts is not that of the largest "
                f"probability; use predict_proba and your rule"
            )
        labels = largest_class(scores, self.classes_)
        if complete.any() and template.rows is not None:
            labels[complete] = calls.labels(template.complete(rows.table, np.flatnonzero(complete)))
        return labels


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
