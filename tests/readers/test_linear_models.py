"""Linear models of scikit-learn, read and compared with what they compute themselves."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, softmax
from sklearn import cross_decomposition, linear_model, naive_bayes, svm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.isotonic import IsotonicRegression
from sklearn.kernel_ridge import KernelRidge
from sklearn.tree import DecisionTreeRegressor

from expecta.readers import Unreadable
from expecta.readers.linear_models import read

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4)) * [1.0, 3.0, 0.5, 2.0] + [0.0, 5.0, -1.0, 0.2]
SCORE = X @ [1.0, -0.4, 2.0, 0.0] + RNG.normal(size=120) * 0.3
Y = SCORE + 0.5
POSITIVE = np.exp(0.2 * SCORE) + 0.1
MANY = np.stack([SCORE, -SCORE + X[:, 3]], axis=1)
BINARY = np.array(["no", "yes"])[(np.median(SCORE) < SCORE).astype(int)]
THREE = np.array(["a", "b", "c"])[np.digitize(SCORE, np.quantile(SCORE, [0.3, 0.6]))]


def fitted(model, y, rows=X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence, and of classes that will go
        return model.fit(rows, y)


def made(name, **options):
    found = getattr(linear_model, name, None)
    if found is None:
        pytest.skip(f"this scikit-learn has no {name}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return found(**options)


def linked(form, rows=X):
    margin = form.margin(rows)
    if form.link == "exp":
        return np.exp(margin)
    if form.link == "softmax":
        return softmax(margin, axis=1)
    if form.link == "logistic":
        return np.concatenate([expit(-margin), expit(margin)], axis=1)
    if form.link == "one-vs-rest":
        return expit(margin) / expit(margin).sum(axis=1, keepdims=True)
    return margin


def check(model, link, rows=X):
    form = read(model)
    assert form is not None
    assert form.link == link
    classes = getattr(model, "classes_", None)
    if classes is None:
        assert form.classes is None
        predicted = model.predict(rows).reshape(len(rows), -1)
        np.testing.assert_allclose(linked(form, rows), predicted, rtol=1e-10, atol=1e-10)
        return form
    assert form.classes.tolist() == classes.tolist()
    if hasattr(model, "decision_function"):
        margin = model.decision_function(rows).reshape(len(rows), -1)
        np.testing.assert_allclose(form.margin(rows), margin, rtol=1e-10, atol=1e-10)
    if link != "none":
        np.testing.assert_allclose(linked(form, rows), model.predict_proba(rows), atol=1e-10)
    return form


SINGLE = {
    "LinearRegression": {},
    "Ridge": {},
    "RidgeCV": {},
    "Lasso": {"alpha": 0.1},
    "LassoCV": {"cv": 3},
    "LassoLars": {"alpha": 0.01},
    "LassoLarsCV": {"cv": 3},
    "LassoLarsIC": {},
    "Lars": {},
    "LarsCV": {"cv": 3},
    "ElasticNet": {"alpha": 0.1},
    "ElasticNetCV": {"cv": 3},
    "OrthogonalMatchingPursuit": {},
    "OrthogonalMatchingPursuitCV": {"cv": 3},
    "BayesianRidge": {},
    "ARDRegression": {},
    "HuberRegressor": {"max_iter": 1000},
    "TheilSenRegressor": {"max_subpopulation": 100, "random_state": 0},
    "RANSACRegressor": {"random_state": 0},
    "QuantileRegressor": {"alpha": 0.01},
    "SGDRegressor": {"random_state": 0, "average": True},
    "PassiveAggressiveRegressor": {"random_state": 0},
}


@pytest.mark.parametrize("name", list(SINGLE))
def test_regressors(name):
    check(fitted(made(name, **SINGLE[name]), Y), "identity")


@pytest.mark.parametrize(
    "name",
    [
        "LinearRegression",
        "Ridge",
        "Lars",
        "LassoLars",
        "Lasso",
        "OrthogonalMatchingPursuit",
        "MultiTaskLasso",
        "MultiTaskElasticNet",
        "RANSACRegressor",
    ],
)
def test_several_outputs(name):
    form = check(fitted(made(name), MANY), "identity")
    assert form.margin.bias.shape == (2,)


def test_several_outputs_chosen_by_cross_validation():
    check(fitted(made("MultiTaskLassoCV", cv=2, alphas=5), MANY), "identity")
    check(fitted(made("MultiTaskElasticNetCV", cv=2, alphas=5), MANY), "identity")


def test_without_intercept_and_with_a_column_of_targets():
    check(fitted(linear_model.Lasso(alpha=0.1, fit_intercept=False), Y), "identity")
    check(fitted(linear_model.LinearRegression(fit_intercept=False), Y[:, None]), "identity")


@pytest.mark.parametrize(
    ("model", "link"),
    [
        (linear_model.PoissonRegressor(), "exp"),
        (linear_model.GammaRegressor(), "exp"),
        (linear_model.TweedieRegressor(power=1.5), "exp"),
        (linear_model.TweedieRegressor(power=0), "identity"),
        (linear_model.TweedieRegressor(power=0, link="log"), "exp"),
        (linear_model.TweedieRegressor(power=2, link="identity", alpha=100.0), "identity"),
    ],
)
def test_generalised_linear_models(model, link):
    check(fitted(model, POSITIVE), link)


def test_support_vector_regression():
    check(fitted(svm.LinearSVR(random_state=0), Y), "identity")
    check(fitted(svm.SVR(kernel="linear"), Y), "identity")
    check(fitted(svm.NuSVR(kernel="linear"), Y), "identity")
    assert read(fitted(svm.SVR(), Y)) is None


def test_partial_least_squares():
    check(fitted(cross_decomposition.PLSRegression(), Y), "identity")
    check(fitted(cross_decomposition.PLSRegression(scale=False), MANY), "identity")
    check(fitted(cross_decomposition.PLSCanonical(), MANY), "identity")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    named = cross_decomposition.PLSRegression().fit(frame, Y)
    np.testing.assert_allclose(read(named).margin(X)[:, 0], named.predict(frame), atol=1e-10)


def test_kernel_ridge():
    check(fitted(KernelRidge(kernel="linear"), Y), "identity")
    check(fitted(KernelRidge(kernel="linear"), MANY), "identity")
    assert read(fitted(KernelRidge(kernel="rbf"), Y)) is None


@pytest.mark.parametrize(
    ("model", "binary", "many"),
    [
        (linear_model.LogisticRegression(), "logistic", "softmax"),
        (linear_model.SGDClassifier(loss="log_loss", random_state=0), "logistic", "one-vs-rest"),
        (linear_model.SGDClassifier(random_state=0), "none", "none"),
        (linear_model.SGDClassifier(loss="modified_huber", random_state=0), "none", "none"),
        (linear_model.Perceptron(random_state=0), "none", "none"),
        (linear_model.RidgeClassifier(), "none", "none"),
        (linear_model.RidgeClassifierCV(), "none", "none"),
        (svm.LinearSVC(random_state=0), "none", "none"),
        (svm.LinearSVC(random_state=0, multi_class="crammer_singer"), "none", "none"),
        (LinearDiscriminantAnalysis(), "logistic", "softmax"),
        (LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.3), "logistic", "softmax"),
        (LinearDiscriminantAnalysis(solver="eigen"), "logistic", "softmax"),
    ],
)
def test_classifiers(model, binary, many):
    check(fitted(model, BINARY), binary)
    form = check(fitted(model, THREE), many)
    assert form.margin.bias.shape == (3,)
    assert bool(form.notes) == (getattr(model, "loss", "") == "modified_huber")


def test_logistic_regression_of_other_kinds():
    check(fitted(linear_model.LogisticRegression(solver="liblinear"), BINARY), "logistic")
    check(fitted(made("LogisticRegressionCV", Cs=3, cv=3), THREE), "softmax")
    check(fitted(made("LogisticRegressionCV", Cs=3, cv=3), BINARY), "logistic")
    check(fitted(made("PassiveAggressiveClassifier", random_state=0), THREE), "none")


def test_ways_of_several_classes_that_older_versions_have():
    model = fitted(linear_model.LogisticRegression(), THREE)
    model.multi_class = "ovr"
    assert read(model).link == "one-vs-rest"
    model.multi_class = "multinomial"
    assert read(model).link == "softmax"
    model.multi_class, model.solver = "deprecated", "liblinear"
    assert read(model).link == "one-vs-rest"
    model = fitted(linear_model.LogisticRegression(), BINARY)
    model.multi_class = "multinomial"  # a softmax over the margin and its negative
    margin = model.decision_function(X)
    np.testing.assert_allclose(linked(read(model)), softmax(np.c_[-margin, margin], axis=1))


def test_support_vector_classifier():
    check(fitted(svm.SVC(kernel="linear"), BINARY), "none")
    check(fitted(svm.NuSVC(kernel="linear"), BINARY), "none")
    assert read(fitted(svm.SVC(kernel="linear", probability=True), BINARY)).notes
    assert read(fitted(svm.SVC(), BINARY)) is None
    with pytest.raises(Unreadable, match="pairs"):
        read(fitted(svm.SVC(kernel="linear"), THREE))


@pytest.mark.parametrize("model", [naive_bayes.MultinomialNB(), naive_bayes.ComplementNB()])
def test_naive_bayes_of_counts(model):
    counts = RNG.poisson(np.exp(0.3 * X - 0.3 * X.mean(axis=0)))
    check(fitted(model, BINARY, counts), "logistic", counts)
    check(fitted(model, THREE, counts), "softmax", counts)
    with pytest.raises(Unreadable, match="one class"):
        read(fitted(model, np.zeros(len(X)), counts))


def test_sparse_coefficients_and_rows():
    model = fitted(linear_model.SGDClassifier(penalty="l1", random_state=0), THREE)
    check(model.sparsify(), "none")
    model = fitted(svm.SVR(kernel="linear"), Y, sparse.csr_matrix(X))
    assert sparse.issparse(model.coef_)
    check(model, "identity")


def test_what_is_not_linear():
    assert read(fitted(DecisionTreeRegressor(), Y)) is None
    assert read(IsotonicRegression().fit(X[:, 0], Y)) is None
    assert read(fitted(naive_bayes.GaussianNB(), BINARY)) is None
    ransac = linear_model.RANSACRegressor(DecisionTreeRegressor(), min_samples=60, random_state=0)
    assert read(fitted(ransac, Y)) is None
    assert read("text") is None


def test_refusals():
    with pytest.raises(NotFittedError):
        read(linear_model.Ridge())
    labels = np.stack([SCORE > 0, X[:, 0] > 0, X[:, 1] > 5], axis=1).astype(int)
    with pytest.raises(Unreadable, match="several labels"):
        read(fitted(linear_model.RidgeClassifier(), labels))


def test_classes_of_users():
    class Same(linear_model.Ridge):
        """Adds nothing."""

    class Other(linear_model.Ridge):
        def predict(self, X):
            return np.abs(super().predict(X))

    check(fitted(Same(), Y), "identity")
    assert read(fitted(Other(), Y)) is None
