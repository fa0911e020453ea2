"""Read linear models of scikit-learn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from expecta.common.arrays import Floats
from expecta.readers import Unreadable
from expecta.readers.forms import Categories, Form, Linear
from expecta.readers.library_class import library_class

# By name, since versions differ in which of them exist.
REGRESSORS = frozenset(
    {"LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV"}
    | {"Lars", "LarsCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "BayesianRidge"}
    | {"MultiTaskLasso", "MultiTaskLassoCV", "MultiTaskElasticNet", "MultiTaskElasticNetCV"}
    | {"OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV", "ARDRegression"}
    | {"HuberRegressor", "TheilSenRegressor", "QuantileRegressor", "SGDRegressor"}
    | {"PassiveAggressiveRegressor", "LinearSVR"}
)
LOG_LINKED = frozenset({"PoissonRegressor", "GammaRegressor", "TweedieRegressor"})
LEAST_SQUARES = frozenset({"PLSRegression", "PLSCanonical", "CCA"})
KERNELS = frozenset({"SVR", "NuSVR", "SVC", "NuSVC"})
CLASSIFIERS = frozenset(
    {"LogisticRegression", "LogisticRegressionCV", "SGDClassifier", "Perceptron", "LinearSVC"}
    | {"PassiveAggressiveClassifier", "RidgeClassifier", "RidgeClassifierCV"}
    | {"LinearDiscriminantAnalysis"}
)
COUNTS = frozenset({"MultinomialNB", "ComplementNB"})


def read(model: Any, categories: Categories | None = None) -> Form | None:
    """Read a fitted linear model.

    The model is an estimator, without pipelines around it. Returns None if it is not linear,
    and raises Unreadable if it is so in part only.

    >>> from sklearn.linear_model import LinearRegression
    >>> form = read(LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0]))
    >>> form.margin.coefficient.round(9).tolist(), form.margin.bias.round(9).tolist()
    ([[2.0]], [1.0])
    """
    name = library_class(model)
    if name == "RANSACRegressor":
        check_is_fitted(model)
        return read(model.estimator_)
    if name in REGRESSORS:
        return Form(_linear(model))
    if name in LOG_LINKED:
        return Form(_linear(model), link="exp" if _log_linked(model) else "identity")
    if name in LEAST_SQUARES:
        return Form(_least_squares(model))
    if name == "KernelRidge" and model.kernel == "linear":
        check_is_fitted(model)
        dual = _dense(model.dual_coef_).reshape(len(model.dual_coef_), -1)
        return Form(Linear(_dense(model.X_fit_).T @ dual, np.zeros(dual.shape[1])))
    if name in KERNELS:
        return _kernel(model)
    if name in CLASSIFIERS:
        return _classifier(model, str(name))
    if name in COUNTS:
        return _counts(model, str(name))
    return None


def _dense(values: Any) -> Floats:
    values = values.toarray() if sparse.issparse(values) else values
    return np.asarray(values, np.float64)


def _linear(model: Any) -> Linear:
    """Read coefficients, which are a row for each output, or one row."""
    check_is_fitted(model)
    coefficient = np.atleast_2d(_dense(model.coef_)).T
    bias = np.broadcast_to(_dense(model.intercept_).ravel(), (coefficient.shape[1],))
    return Linear(np.ascontiguousarray(coefficient), bias.copy())


def _log_linked(model: Any) -> bool:
    link = getattr(model, "link", "log")
    return bool(link == "log" or (link == "auto" and model.power > 0))


def _least_squares(model: Any) -> Linear:
    """Read partial least squares, whose intercept is at the mean of training."""
    check_is_fitted(model)
    coefficient = _dense(model.coef_).T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns without names
        bias = model.predict(np.zeros((1, len(coefficient))))
    return Linear(np.ascontiguousarray(coefficient), _dense(bias).ravel())


def _kernel(model: Any) -> Form | None:
    """Read a support vector machine, which is linear if its kernel is."""
    if model.kernel != "linear":
        return None
    check_is_fitted(model)
    classes = getattr(model, "classes_", None)
    if classes is None:
        return Form(_linear(model))
    if len(classes) > 2:
        raise Unreadable(
            f"{type(model).__name__} takes a vote between pairs of its {len(classes)} classes, "
            f"which is not linear; sampling is used instead, unless it is a LinearSVC"
        )
    return Form(_linear(model), "none", classes, _calibrated(model))


def _calibrated(model: Any) -> tuple[str, ...]:
    if not getattr(model, "probability", False):
        return ()
    return (f"The probabilities of {type(model).__name__} are not read, only its margin.",)


def _classifier(model: Any, name: str) -> Form:
    margin, classes = _linear(model), np.asarray(model.classes_)
    outputs = len(margin.bias)
    binarizer = getattr(model, "_label_binarizer", None)
    if str(getattr(binarizer, "y_type_", "")).startswith("multilabel"):
        raise Unreadable(f"{name} was fitted to several labels at once; fit one for each of them")
    if outputs != (1 if len(classes) == 2 else len(classes)):
        raise Unreadable(
            f"{name} has {outputs} margins for {len(classes)} classes; sampling is used instead"
        )
    if name == "LinearDiscriminantAnalysis":
        return Form(margin, "logistic" if outputs == 1 else "softmax", classes)
    if name in ("LogisticRegression", "LogisticRegressionCV"):
        # Before version 1.8 classes could be separated one against the rest.
        way = getattr(model, "multi_class", "auto")
        if outputs == 1 and way == "multinomial":
            doubled = Linear(2.0 * margin.coefficient, 2.0 * margin.bias)
            return Form(doubled, "logistic", classes)
        rest = way in ("ovr", "warn") or (way != "multinomial" and model.solver == "liblinear")
        many = "one-vs-rest" if rest else "softmax"
        return Form(margin, "logistic" if outputs == 1 else many, classes)
    if name == "SGDClassifier" and model.loss == "log_loss":
        return Form(margin, "logistic" if outputs == 1 else "one-vs-rest", classes)
    notes: tuple[str, ...] = ()
    if name == "SGDClassifier" and model.loss == "modified_huber":
        notes = ("The probabilities of loss='modified_huber' are not read, only the margin.",)
    return Form(margin, "none", classes, notes)


def _counts(model: Any, name: str) -> Form:
    """Read a naive Bayes model of counts, whose log probabilities are linear in them."""
    check_is_fitted(model)
    coefficient, bias = _dense(model.feature_log_prob_).T, _dense(model.class_log_prior_)
    classes = np.asarray(model.classes_)
    if len(classes) < 2:
        raise Unreadable(f"{name} was fitted to one class, so its prediction is known")
    if name == "ComplementNB":
        bias = np.zeros(len(classes))
    if len(classes) > 2:
        return Form(Linear(np.ascontiguousarray(coefficient), bias), "softmax", classes)
    second = Linear(coefficient[:, 1:] - coefficient[:, :1], bias[1:] - bias[:1])
    return Form(second, "logistic", classes)
