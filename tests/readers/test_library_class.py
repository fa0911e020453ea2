"""Whether an object runs its library's own code: classes, instances, and parts of models."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import all_estimators

from expecta.readers import Unreadable, library_class
from expecta.readers.features import Features
from expecta.readers.read_model import read

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = X[:, 0] * X[:, 1] + X[:, 2]
LABELS = (Y > 0).astype(int)


def others():
    """Models of the other four libraries, those that are installed."""
    makers = {
        "xgboost": lambda m: m.XGBRegressor(n_estimators=3, n_jobs=1),
        "lightgbm": lambda m: m.LGBMRegressor(n_estimators=3, n_jobs=1, verbose=-1),
        "catboost": lambda m: m.CatBoostRegressor(
            iterations=3, verbose=0, thread_count=1, allow_writing_files=False
        ),
        "interpret.glassbox": lambda m: m.ExplainableBoostingRegressor(
            max_rounds=5, outer_bags=1, interactions=0, n_jobs=1
        ),
    }
    for name, make in makers.items():
        module = pytest.importorskip(name)
        yield make(module)


SKLEARN = [
    LinearRegression(),
    Ridge(),
    DecisionTreeRegressor(max_depth=3),
    RandomForestRegressor(3, max_depth=3),
    GradientBoostingRegressor(n_estimators=3),
    HistGradientBoostingRegressor(max_iter=3),
    BaggingRegressor(DecisionTreeRegressor(max_depth=2), 3),
]
MODELS = [*SKLEARN, *others()]


def parameters(model):
    deep = {} if type(model).__name__.startswith("CatBoost") else {"deep": False}
    return model.get_params(**deep)


def derived(model, **defined):
    """Return a fitted model of a class that is derived from its own."""
    kind = type(type(model).__name__, (type(model),), {"__module__": "mine", **defined})
    return kind(**parameters(model)).fit(X, Y)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_models_of_five_libraries_run_their_own_code(model):
    model.fit(X, Y).predict(X)
    assert library_class.what_is_changed(model) is None
    assert library_class.untested_version(model) is None
    read(model, {})
    # neither a class that only fits or prints otherwise, nor names that the library has not
    read(derived(model, fit=lambda self, X, y: super(type(self), self).fit(X, y), colour="red"), {})


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_no_class_of_scikit_learn_is_taken_for_a_changed_one():
    estimators = [kind() for _, kind in all_estimators() if not needs_arguments(kind)]
    assert len(estimators) > 150
    assert [library_class.what_is_changed(one) for one in estimators] == [None] * len(estimators)
    assert [library_class.library_class(one) for one in estimators] == [
        type(one).__name__ for one in estimators
    ]


def needs_arguments(kind):
    try:
        kind()
    except TypeError:
        return True
    return False


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_changed_models_are_not_read(model):
    def predict(self, X):
        return np.zeros(len(X))

    for defined in ({"predict": predict}, {"__getattribute__": object.__getattribute__}):
        with pytest.raises(Unreadable, match="defines"):
            read(derived(model, **defined), {})
    mixin = type("Mixin", (), {"__module__": "mine", "predict": predict})
    kind = type("Mixed", (mixin, type(model)), {"__module__": "mine"})
    with pytest.raises(Unreadable, match="Mixin defines predict itself"):
        read(kind(**parameters(model)).fit(X, Y), {})
    patched = derived(model)
    patched.predict = types.MethodType(predict, patched)
    with pytest.raises(Unreadable, match="has a predict of its own"):
        read(patched, {})


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_method_that_was_replaced_in_the_library(model, monkeypatch):
    owner = next(kind for kind in type(model).__mro__ if "predict" in vars(kind))
    monkeypatch.setattr(owner, "predict", lambda self, X: np.zeros(len(X)))
    with pytest.raises(Unreadable, match="predict of the class"):
        read(model.fit(X, Y), {})


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (RandomForestRegressor(), "_validate_X_predict"),
        (DecisionTreeRegressor(), "_validate_X_predict"),
        (GradientBoostingRegressor(), "_raw_predict"),
        (HistGradientBoostingRegressor(max_iter=3), "_raw_predict"),
        (Ridge(), "_decision_function"),
    ],
)
def test_methods_that_predict_calls(model, name):
    def own(self, *arguments, **options):
        return getattr(super(type(self), self), name)(*arguments, **options)

    with pytest.raises(Unreadable, match=f"defines {name} itself"):
        read(derived(model, **{name: own}), {})


def zeros(X, *rest, **options):
    return np.zeros(len(X))


def patch(owner, name="predict"):
    setattr(owner, name, zeros)


PARTS = {
    "a tree of a forest": (RandomForestRegressor(3), lambda m: patch(m.estimators_[1])),
    "a tree of a bag": (BaggingRegressor(n_estimators=3), lambda m: patch(m.estimators_[1])),
    "a part of histogram boosting": (
        HistGradientBoostingRegressor(max_iter=3),
        lambda m: setattr(m, "_loss", types.SimpleNamespace()),
    ),
    "a start of boosting": (GradientBoostingRegressor(), lambda m: patch(m.init_)),
    "the last step": (make_pipeline(StandardScaler(), Ridge()), lambda m: patch(m[-1])),
    "a pipeline": (make_pipeline(StandardScaler(), Ridge()), patch),
    "a target": (TransformedTargetRegressor(Ridge()), patch),
    "its regressor": (TransformedTargetRegressor(Ridge()), lambda m: patch(m.regressor_)),
}


@pytest.mark.parametrize("part", PARTS)
def test_changed_parts_of_models(part):
    model, change = PARTS[part]
    change(model.fit(X, Y))
    with pytest.raises(Unreadable):
        read(model, {})


def test_changed_votes():
    model = AdaBoostClassifier(n_estimators=3).fit(X, LABELS)
    read(model, {})
    patch(model.estimators_[0])
    with pytest.raises(Unreadable):
        read(model, {})


def test_changed_boosters():
    for model in others():
        model.fit(X, Y)
        booster = getattr(model, "_Booster", None)
        if booster is not None:
            patch(booster)
            with pytest.raises(Unreadable, match="has a predict of its own"):
                read(model, {})


@pytest.mark.parametrize("way", ["class", "instance", "step"])
def test_changed_transformers_are_not_followed(way):
    class Halved(StandardScaler):
        def transform(self, X):
            return super().transform(X) / 2

    step = (Halved if way == "class" else StandardScaler)().fit(X)
    if way != "class":
        patch(step, "transform")
    steps = [Pipeline([("scaler", step)])] if way == "step" else [step]
    with pytest.raises(Unreadable):
        Features.read(steps, X)


def test_combinations_of_models_are_not_read():
    models = [
        VotingRegressor([("a", Ridge()), ("b", LinearRegression())]).fit(X, Y),
        CalibratedClassifierCV(LogisticRegression(), cv=2).fit(X, LABELS),
    ]
    for model in models:
        with pytest.raises(Unreadable, match="combines several"):
            read(model, {})


def test_an_estimator_of_ones_own():
    class Mine(RegressorMixin, BaseEstimator):
        def predict(self, X):
            return np.zeros(len(X))

    with pytest.raises(Unreadable, match="structure of a Mine is not known"):
        read(Mine(), {})


def test_versions(monkeypatch):
    model = LinearRegression().fit(X, Y)
    monkeypatch.setattr(sys.modules["sklearn"], "__version__", "2.0.dev0")
    assert library_class.untested_version(model) == "sklearn 2.0.dev0"
    monkeypatch.setattr(sys.modules["sklearn"], "__version__", "unknown")
    assert library_class.untested_version(model) == "sklearn unknown"
    assert library_class.untested_version(object()) is None
