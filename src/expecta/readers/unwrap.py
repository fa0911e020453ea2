"""Take a model out of what it is wrapped in: pipelines, searches, transformed targets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from expecta.common.arrays import Floats
from expecta.readers import Unreadable
from expecta.readers.feature_sources import does_nothing
from expecta.readers.forms import Form, Linear
from expecta.readers.library_class import library_class

SEARCHES = {"GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV"}
ENSEMBLES = {"VotingRegressor", "VotingClassifier", "StackingRegressor", "StackingClassifier"}


@dataclass(frozen=True, eq=False)
class TargetTransform:
    """A multiple of a regressor's output or of its exponential, plus a shift.

    Parameters
    ----------
    factor, shift
        For each output, or for all.
    exponential
        Whether the exponential is taken first.
    """

    factor: Floats = field(default_factory=lambda: np.ones(1))
    shift: Floats = field(default_factory=lambda: np.zeros(1))
    exponential: bool = False

    def after(self, inner: TargetTransform) -> TargetTransform:
        """Return this transformation applied to the result of another."""
        if self.exponential:
            if np.any(inner.factor != 1) or np.any(inner.shift != 0) or inner.exponential:
                raise Unreadable("the target is transformed twice; sampling is used instead")
            return self
        factor, shift = self.factor * inner.factor, self.factor * inner.shift + self.shift
        return TargetTransform(factor, shift, inner.exponential)

    def applied(self, form: Form) -> Form:
        """Return the form of the model whose target was transformed.

        >>> form = Form(Linear(np.array([[3.0]]), np.array([1.0])))
        >>> double = TargetTransform(np.array([2.0]), np.array([10.0]))
        >>> double.applied(form).margin(np.array([[1.0]]))
        array([[18.]])
        """
        factor, shift, link = self.factor, self.shift, form.link
        if self.exponential and link == "identity":
            link = "exp"
        elif self.exponential:
            raise Unreadable("the target is an exponential twice; sampling is used instead")
        if np.all(factor == 1) and np.all(shift == 0):
            return replace(form, link=link)
        margin = form.margin
        if link == "exp" and np.all(factor > 0) and np.all(shift == 0):
            return replace(
                form, link=link, margin=replace(margin, bias=margin.bias + np.log(factor))
            )
        if link != "identity":
            raise Unreadable(
                f"a target moved after the link {link!r} has no form; sampling is used instead"
            )
        bias = margin.bias * factor + shift
        if isinstance(margin, Linear):
            return replace(form, margin=Linear(margin.coefficient * factor, bias))
        return replace(form, margin=replace(margin, value=margin.value * factor, bias=bias))


@dataclass(frozen=True, eq=False)
class Unwrapped:
    """A model taken apart: transformers of its inputs in order, the model, and its target."""

    steps: tuple[Any, ...]
    model: Any
    target: TargetTransform


def unwrap(model: Any) -> Unwrapped:
    """Take a fitted model out of pipelines, searches, frozen estimators and target transformers.

    Raises
    ------
    Unreadable
        If what it is wrapped in changes more than that.

    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> model = make_pipeline(StandardScaler(), LinearRegression()).fit([[0.0], [2.0]], [1.0, 2.0])
    >>> unwrap(model).model
    LinearRegression()
    """
    steps: list[Any] = []
    target = TargetTransform()
    while True:
        name = library_class(model)
        if name == "Pipeline":
            *before, (_, last) = model.steps
            if does_nothing(last):
                raise Unreadable("the pipeline ends without a model; add one, and fit it again")
            steps += [step for _, step in before if not does_nothing(step)]
            model = last
        elif name == "FrozenEstimator":
            model = model.estimator
        elif name in SEARCHES:
            if not hasattr(model, "best_estimator_"):
                raise Unreadable(f"{name} has no best model; fit it with refit=True")
            model = model.best_estimator_
        elif name == "TransformedTargetRegressor":
            check_is_fitted(model)
            target = target.after(_inverse(model.transformer_))
            model = model.regressor_
        elif name == "CalibratedClassifierCV" or name in ENSEMBLES:
            raise Unreadable(f"{name} combines several functions; sampling is used instead")
        else:
            return Unwrapped(tuple(steps), model, target)


def _inverse(transformer: Any) -> TargetTransform:
    """Return how a prediction comes from that of a transformed target."""
    name = library_class(transformer)
    if name == "Pipeline":
        inverse = TargetTransform()
        for _, step in transformer.steps:  # the first to be applied is the last to be undone
            if not does_nothing(step):
                inverse = inverse.after(_inverse(step))
        return inverse
    if name == "FunctionTransformer" and not transformer.inv_kw_args:
        if transformer.inverse_func is None:
            return TargetTransform()
        if transformer.inverse_func is np.exp:
            return TargetTransform(exponential=True)
    if name == "StandardScaler":
        mean = transformer.mean_ if transformer.with_mean else None  # it has one in any case
        return TargetTransform(_or(transformer.scale_, 1.0), _or(mean, 0.0))
    if name == "RobustScaler":
        return TargetTransform(_or(transformer.scale_, 1.0), _or(transformer.center_, 0.0))
    if name == "MaxAbsScaler":
        return TargetTransform(_or(transformer.scale_, 1.0))
    if name == "MinMaxScaler":
        return TargetTransform(1.0 / transformer.scale_, -transformer.min_ / transformer.scale_)
    raise Unreadable(
        f"the target was transformed by {type(transformer).__name__}, which is not a straight "
        f"line; sampling is used instead"
    )


def _or(value: Any, default: float) -> Floats:
    return np.array([default]) if value is None else np.asarray(value, np.float64)
