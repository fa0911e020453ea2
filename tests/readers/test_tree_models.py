"""Readers of tree models: forms must compute what the libraries compute, row by row."""

from __future__ import annotations

import json
import subprocess
import sys
from textwrap import dedent

import numpy as np
import pandas as pd
import pytest
from sklearn import ensemble, tree
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from threadpoolctl import threadpool_limits

from expecta.readers import (
    Unreadable,
    catboost,
    ebm,
    lightgbm,
    sklearn_trees,
    xgboost,
)
from expecta.readers.forms import Form, Linear, Question, Trees
from expecta.readers.model_links import apply_link
from expecta.readers.tree_builder import TreeBuilder, category_positions

pytestmark = pytest.mark.usefixtures("one_thread")
READERS = [catboost, ebm, lightgbm, sklearn_trees, xgboost]
ROWS = 300


@pytest.fixture(scope="module")
def one_thread():
    with threadpool_limits(1):
        yield


def numbers(seed: int = 0, holes: bool = False):
    """Four columns of numbers, some with few values; and NaNs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, 4))
    X[:, 2] = np.round(X[:, 2] * 2)
    X[:, 3] = rng.integers(0, 2, ROWS)
    if holes:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X


def table(seed: int = 0, holes: bool = True) -> pd.DataFrame:
    """A frame with a column of numbers and categories that are text and numbers."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=ROWS),
            "kind": pd.Categorical(rng.choice(["d", "a", "c", "b", "e"], ROWS)),
            "grade": pd.Categorical(rng.choice([30, 10, 20, 40], ROWS)),
            "width": rng.normal(size=ROWS),
        }
    )
    if holes:
        frame.loc[rng.random(ROWS) < 0.1, "size"] = np.nan
        frame.loc[rng.random(ROWS) < 0.1, "kind"] = np.nan
    return frame


def target(X, task: str, seed: int = 1):
    """Something to learn: real, positive, two classes (of text) or three."""
    rng = np.random.default_rng(seed)
    if isinstance(X, pd.DataFrame):
        X = np.column_stack(
            [
                X["size"],
                X["kind"].astype(object).map({"a": 0.5, "b": -1.0, "c": 2.0, "d": 0.0, "e": -2.0}),
                X["grade"].astype(float) % 30 / 10,
                X["width"],
            ]
        )
    X = np.nan_to_num(X, nan=0.7)
    y = X[:, 0] + X[:, 1] * (X[:, 2] > 0) + X[:, 3] + rng.normal(size=len(X)) / 5
    if task == "real":
        return 10.0 + y
    if task == "positive":
        return np.exp(y / 3)
    if task == "share":
        return 1.0 / (1.0 + np.exp(-y))
    if task == "two":
        return (y > 0).astype(int)
    if task == "text":
        return np.where(y > 0, "yes", "no")
    return np.digitize(y, [-0.5, 0.8])


def at_thresholds(form: Form, X, n: int = 60):
    """Rows with values at thresholds, next to them, and between numbers of 32 bits."""
    rng = np.random.default_rng(5)
    asked = [q for q in form.margin.questions if q.among is None and np.isfinite(q.at_most)]
    rows = [X]
    for q in [asked[i] for i in rng.permutation(len(asked))[:n]]:
        t = np.float64(q.at_most)
        with np.errstate(over="ignore"):
            t32 = np.float32(q.at_most)
            up, down = np.nextafter(t32, [np.inf, -np.inf], dtype=np.float32)
        values = [t, np.nextafter(t, np.inf), np.nextafter(t, -np.inf), t32, up, down]
        values += [(float(t32) + float(up)) / 2, 0.7 * float(t32) + 0.3 * float(up)]
        values = [value for value in values if np.isfinite(value)]
        some = X[rng.integers(0, len(X), len(values))].copy()
        some[:, q.feature] = values
        rows.append(some)
    return np.concatenate(rows)


def same(found, expected, tolerance: float) -> None:
    expected = np.asarray(expected, np.float64)
    expected = expected.reshape(len(expected), -1)
    assert found.shape == expected.shape
    np.testing.assert_allclose(
        found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max()
    )


def sound(form: Form) -> None:
    """Check that trees are what `Trees` says."""
    trees = form.margin
    assert isinstance(trees, Trees)
    keys = [(q.feature, repr(q.at_most), q.among, q.single, q.missing) for q in trees.questions]
    assert len(set(keys)) == len(keys)
    assert all(0 <= q.feature < trees.n_features for q in trees.questions)
    inner = trees.question >= 0
    children = np.concatenate([trees.left[inner], trees.right[inner]])
    roots = trees.start[:-1]
    # every node is a root or the child of one node
    assert sorted([*children, *roots]) == list(range(len(trees.question)))
    assert not trees.value[inner].any()
    assert not trees.left[~inner].any()


def agrees(form, X, margin, answer, tolerance, at=True) -> None:
    """Check margins and answers on rows and at thresholds; functions take features."""
    sound(form)
    rows = at_thresholds(form, X) if at else X
    found = form.margin(rows)
    if margin is not None:
        same(found, margin(rows), tolerance)
    if answer is not None:
        same(apply_link(form, found), answer(rows), tolerance)


def answer_of(model):
    return model.predict_proba if hasattr(model, "predict_proba") else model.predict


def coded(frame: pd.DataFrame, lists: dict[int, list]):
    """The features that trees see of a frame."""
    columns = [
        category_positions(frame.iloc[:, j].astype(object), lists[j])
        if j in lists
        else frame.iloc[:, j].to_numpy(np.float64)
        for j in range(frame.shape[1])
    ]
    return np.column_stack(columns)


# --- scikit-learn ---------------------------------------------------------------------------


def few(kind, **options):
    return kind(n_estimators=8, max_depth=5, random_state=0, **options)


SKLEARN = {
    "tree": lambda task: (
        tree.DecisionTreeRegressor(max_depth=6)
        if task == "real"
        else tree.DecisionTreeClassifier(max_depth=6)
    ),
    "extra tree": lambda task: (
        tree.ExtraTreeRegressor(max_depth=6, random_state=0)
        if task == "real"
        else tree.ExtraTreeClassifier(max_depth=6, random_state=0)
    ),
    "forest": lambda task: few(
        ensemble.RandomForestRegressor if task == "real" else ensemble.RandomForestClassifier
    ),
    "extra trees": lambda task: few(
        ensemble.ExtraTreesRegressor if task == "real" else ensemble.ExtraTreesClassifier
    ),
    "bags": lambda task: (
        ensemble.BaggingRegressor(n_estimators=5, max_features=0.6, random_state=0)
        if task == "real"
        else ensemble.BaggingClassifier(
            n_estimators=5, max_features=3, bootstrap_features=True, random_state=0
        )
    ),
    "bags of forests": lambda task: (
        ensemble.BaggingRegressor(few(ensemble.RandomForestRegressor), n_estimators=2)
        if task == "real"
        else ensemble.BaggingClassifier(few(ensemble.RandomForestClassifier), n_estimators=2)
    ),
}


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("task", ["real", "text", "three"])
@pytest.mark.parametrize("kind", SKLEARN)
def test_averages_of_sklearn(kind, task, holes):
    X = numbers(holes=holes)
    model = SKLEARN[kind](task).fit(X, target(X, task))
    form = sklearn_trees.read(model)
    answer = answer_of(model)
    agrees(form, X, answer, answer, 1e-12)
    assert form.link == "identity"
    assert (form.classes is None) == (task == "real")
    assert form.classes is None or list(form.classes) == list(model.classes_)


def test_several_outputs_of_a_forest():
    X = numbers()
    Y = np.column_stack([target(X, "real"), target(X, "positive")])
    model = few(ensemble.RandomForestRegressor).fit(X, Y)
    agrees(sklearn_trees.read(model), X, model.predict, model.predict, 1e-12)


class WithoutWeights(tree.DecisionTreeClassifier):
    """A tree that is given the rows of its bag, not weights of all."""

    def fit(self, X, y):
        return super().fit(X, y)


def test_bags_that_miss_a_class():
    X = numbers()
    model = ensemble.BaggingClassifier(WithoutWeights(), n_estimators=9, max_samples=2)
    model.set_params(random_state=0).fit(X, target(X, "three"))
    assert all(len(member.classes_) < 3 for member in model.estimators_)
    agrees(sklearn_trees.read(model), X, None, model.predict_proba, 1e-12)


@pytest.mark.parametrize("init", [None, "zero"])
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber", "quantile"])
def test_gradient_boosting_of_numbers(loss, init):
    X = numbers()
    model = few(ensemble.GradientBoostingRegressor, loss=loss, init=init, subsample=0.8)
    model.fit(X, target(X, "real"))
    agrees(sklearn_trees.read(model), X, model.predict, model.predict, 1e-12)


@pytest.mark.parametrize("init", [None, "zero", DummyClassifier(strategy="uniform")])
@pytest.mark.parametrize("task", ["text", "three"])
def test_gradient_boosting_of_classes(task, init):
    X = numbers()
    model = few(ensemble.GradientBoostingClassifier, init=init).fit(X, target(X, task))
    form = sklearn_trees.read(model)
    agrees(form, X, model.decision_function, model.predict_proba, 1e-12)
    assert form.link == ("logistic" if task == "text" else "softmax")


def test_exponential_loss_doubles_the_margin():
    X = numbers()
    model = few(ensemble.GradientBoostingClassifier, loss="exponential").fit(X, target(X, "two"))
    form = sklearn_trees.read(model)
    agrees(form, X, lambda X: 2 * model.decision_function(X), model.predict_proba, 1e-12)


@pytest.mark.parametrize("task", ["text", "three"])
def test_adaboost(task):
    X = numbers()
    model = ensemble.AdaBoostClassifier(tree.DecisionTreeClassifier(max_depth=2), n_estimators=9)
    model.fit(X, target(X, task))
    factor = 1 if task == "text" else 2  # classes - 1
    agrees(
        sklearn_trees.read(model),
        X,
        lambda X: model.decision_function(X) / factor,
        model.predict_proba,
        1e-12,
    )


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "poisson", "gamma"])
def test_histogram_boosting_of_numbers(loss, holes):
    X = numbers(holes=holes)
    model = ensemble.HistGradientBoostingRegressor(loss=loss, max_iter=8)
    model.fit(X, target(X, "positive"))
    form = sklearn_trees.read(model)
    agrees(form, X, lambda X: model._raw_predict(X), model.predict, 1e-12)
    assert form.link == ("exp" if loss in ("poisson", "gamma") else "identity")


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("task", ["text", "three"])
def test_histogram_boosting_of_classes(task, holes):
    X = numbers(holes=holes)
    model = ensemble.HistGradientBoostingClassifier(max_iter=8, early_stopping=True)
    model.fit(X, target(X, task))
    agrees(sklearn_trees.read(model), X, model.decision_function, model.predict_proba, 1e-12)


@pytest.mark.parametrize("task", ["real", "two", "three"])
def test_histogram_boosting_of_categories(task):
    frame = table()
    kind = ensemble.HistGradientBoostingRegressor
    if task != "real":
        kind = ensemble.HistGradientBoostingClassifier
    model = kind(max_iter=10, min_samples_leaf=3).fit(frame, target(frame, task))
    form = sklearn_trees.read(model)
    lists = form.categories
    assert lists == {1: ["a", "b", "c", "d", "e"], 2: [10, 20, 30, 40]}
    assert any(q.among is not None for q in form.margin.questions)
    # a category that it has not seen counts as missing
    strange = frame.astype({"kind": object, "grade": object})
    strange.loc[:20, "kind"] = "z"
    strange.loc[:40, "grade"] = 77
    for rows in (frame, strange):
        same(apply_link(form, form.margin(coded(rows, lists))), answer_of(model)(rows), 1e-12)


def test_histogram_boosting_of_numbers_that_are_categories():
    X = numbers(holes=True)
    model = ensemble.HistGradientBoostingRegressor(
        max_iter=10, min_samples_leaf=3, categorical_features=[2, 3]
    ).fit(X, target(X, "real"))
    form = sklearn_trees.read(model)
    lists = form.categories
    assert list(lists) == [2, 3]
    assert lists[2] == sorted(set(X[~np.isnan(X[:, 2]), 2]))
    same(form.margin(coded(pd.DataFrame(X), lists)), model.predict(X), 1e-12)


UNREADABLE = {
    "median": (
        lambda: ensemble.AdaBoostRegressor(n_estimators=2).fit(
            numbers(), target(numbers(), "real")
        ),
        "median",
    ),
    "init": (
        lambda: few(ensemble.GradientBoostingRegressor, init=LinearRegression()).fit(
            numbers(), target(numbers(), "real")
        ),
        "init",
    ),
    "random init": (
        lambda: few(
            ensemble.GradientBoostingClassifier, init=DummyClassifier(strategy="stratified")
        ).fit(numbers(), target(numbers(), "two")),
        "init",
    ),
    "several classes": (
        lambda: few(ensemble.RandomForestClassifier).fit(
            numbers(), np.column_stack([target(numbers(), "two"), target(numbers(), "three")])
        ),
        "2 classes at once",
    ),
    "bags": (
        lambda: ensemble.BaggingClassifier(LogisticRegression(), n_estimators=2).fit(
            numbers(), target(numbers(), "two")
        ),
        "LogisticRegression",
    ),
    "bags of boosting": (
        lambda: ensemble.BaggingClassifier(
            few(ensemble.GradientBoostingClassifier), n_estimators=2
        ).fit(numbers(), target(numbers(), "two")),
        "GradientBoostingClassifier",
    ),
    "adaptive": (
        lambda: ensemble.AdaBoostClassifier(LogisticRegression(), n_estimators=2).fit(
            numbers(), target(numbers(), "two")
        ),
        "decision trees",
    ),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_unreadable_of_sklearn(case):
    model, reason = UNREADABLE[case]
    with pytest.raises(Unreadable, match=reason):
        sklearn_trees.read(model())


# --- XGBoost --------------------------------------------------------------------------------


@pytest.fixture
def xgb():
    return pytest.importorskip("xgboost")


def boosted(kind, **options):
    return kind(**{"n_estimators": 8, "max_depth": 4, "n_jobs": 1, "random_state": 0} | options)


def agrees_with_xgb(model, X, form=None) -> Form:
    form = form or xgboost.read(model)
    answer = answer_of(model) if form.link != "none" else None
    agrees(form, X, lambda X: model.predict(X, output_margin=True), answer, 1e-6)
    return form


@pytest.mark.parametrize("base", [None, 0.3])
@pytest.mark.parametrize(
    ("objective", "link"),
    [
        ("reg:squarederror", "identity"),
        ("reg:squaredlogerror", "identity"),
        ("reg:absoluteerror", "identity"),
        ("reg:pseudohubererror", "identity"),
        ("reg:logistic", "logistic"),
        ("binary:logistic", "logistic"),
        ("count:poisson", "exp"),
        ("reg:gamma", "exp"),
        ("reg:tweedie", "exp"),
        ("survival:cox", "exp"),
    ],
)
def test_objectives_of_xgboost(xgb, objective, link, base):
    X = numbers(holes=True)
    model = boosted(xgb.XGBRegressor, objective=objective, base_score=base)
    model.fit(X, target(X, "share"))
    assert agrees_with_xgb(model, X).link == link


@pytest.mark.parametrize("base", [None, 0.3])
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("task", ["two", "three"])
def test_classes_of_xgboost(xgb, task, holes, base):
    X = numbers(holes=holes)
    model = boosted(xgb.XGBClassifier, base_score=base).fit(X, target(X, task))
    form = agrees_with_xgb(model, X)
    assert form.link == ("logistic" if task == "two" else "softmax")
    assert form.classes.tolist() == list(range(2 if task == "two" else 3))


@pytest.mark.parametrize(
    "options",
    [
        {"booster": "dart", "rate_drop": 0.5},
        {"objective": "reg:quantileerror", "quantile_alpha": [0.2, 0.8]},
        {"grow_policy": "lossguide", "tree_method": "exact"},
        {"num_parallel_tree": 3, "subsample": 0.5},
    ],
    ids=str,
)
def test_options_of_xgboost(xgb, options):
    X = numbers(holes=True)
    agrees_with_xgb(boosted(xgb.XGBRegressor, **options).fit(X, target(X, "real")), X)


def test_other_estimators_of_xgboost(xgb):
    X = numbers(holes=True)
    agrees_with_xgb(boosted(xgb.XGBRFRegressor).fit(X, target(X, "real")), X)
    agrees_with_xgb(boosted(xgb.XGBRFClassifier).fit(X, target(X, "three")), X)
    ranker = boosted(xgb.XGBRanker).fit(X, target(X, "three"), qid=np.arange(ROWS) // 10)
    agrees(xgboost.read(ranker), X, ranker.predict, ranker.predict, 1e-6)


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_several_outputs_of_xgboost(xgb, strategy):
    X = numbers()
    Y = np.column_stack([target(X, "real"), target(X, "positive"), X[:, 0]])
    agrees_with_xgb(boosted(xgb.XGBRegressor, multi_strategy=strategy).fit(X, Y), X)
    model = boosted(xgb.XGBClassifier, multi_strategy=strategy).fit(X, target(X, "three"))
    agrees_with_xgb(model, X)


@pytest.mark.parametrize("options", [{}, {"num_parallel_tree": 2}, {"booster": "dart"}], ids=str)
@pytest.mark.parametrize("task", ["real", "three"])
def test_early_stopping_of_xgboost(xgb, task, options):
    X, y = numbers(), target(numbers(), task)
    kind = xgb.XGBRegressor if task == "real" else xgb.XGBClassifier
    model = boosted(kind, n_estimators=60, early_stopping_rounds=3, learning_rate=0.9, **options)
    model.fit(X[:200], y[:200], eval_set=[(X[200:], y[200:])], verbose=False)
    booster = model.get_booster()
    assert model.best_iteration + 1 < booster.num_boosted_rounds()
    agrees_with_xgb(model, X)
    # a booster itself uses all trees
    form = xgboost.read(booster)
    agrees(form, X, lambda X: booster.predict(xgb.DMatrix(X), output_margin=True), None, 1e-6)


def test_boosters_of_xgboost(xgb):
    X = numbers(holes=True)
    for objective, task in [("binary:logistic", "two"), ("multi:softmax", "three")]:
        options = {"objective": objective, "max_depth": 3, "nthread": 1}
        options |= {"num_class": 3} if task == "three" else {}
        booster = xgb.train(options, xgb.DMatrix(X, target(X, task)), 5)
        form = xgboost.read(booster)
        same(form.margin(X), booster.predict(xgb.DMatrix(X), output_margin=True), 1e-6)
        found, said = apply_link(form, form.margin(X)), booster.predict(xgb.DMatrix(X))
        same(found[:, 1:] if task == "two" else found.argmax(axis=1)[:, None], said, 1e-6)


def test_survival_times_of_xgboost(xgb):
    X = numbers(holes=True)
    times = target(X, "positive")
    data = xgb.DMatrix(X, label_lower_bound=times, label_upper_bound=times)
    booster = xgb.train({"objective": "survival:aft", "nthread": 1, "max_depth": 3}, data, 5)
    form = xgboost.read(booster)
    same(form.margin(X), booster.predict(data, output_margin=True), 1e-6)
    same(apply_link(form, form.margin(X)), booster.predict(data), 1e-6)


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_files_of_older_versions_of_xgboost(xgb, strategy, monkeypatch):
    X = numbers(holes=True)
    model = boosted(xgb.XGBClassifier, base_score=0.3, multi_strategy=strategy)
    model.fit(X, target(X, "three"))
    written = json.loads(model.get_booster().save_raw("json"))
    learner = written["learner"]
    learner["learner_model_param"]["base_score"] = "3E-1"
    del learner["learner_model_param"]["num_target"]
    del learner["gradient_booster"]["model"]["cats"]
    for each in learner["gradient_booster"]["model"]["trees"]:
        each.pop("leaf_weights", None)
    monkeypatch.setattr(xgboost, "_learner", lambda _: learner)
    form = xgboost.read(model.get_booster())
    same(form.margin(X), model.predict(X, output_margin=True), 1e-6)


@pytest.mark.parametrize("task", ["real", "two", "three"])
def test_linear_models_of_xgboost(xgb, task):
    X = numbers()
    kind = xgb.XGBRegressor if task == "real" else xgb.XGBClassifier
    model = kind(booster="gblinear", n_estimators=8, n_jobs=1).fit(X, target(X, task))
    form = xgboost.read(model)
    assert isinstance(form.margin, Linear)
    same(form.margin(X), model.predict(X, output_margin=True), 1e-6)
    same(apply_link(form, form.margin(X)), answer_of(model)(X), 1e-6)
    assert "0" in form.notes[0]


@pytest.mark.parametrize("onehot", [1, 100])
@pytest.mark.parametrize("task", ["real", "two"])
def test_categories_of_xgboost(xgb, task, onehot):
    frame = table()
    kind = xgb.XGBRegressor if task == "real" else xgb.XGBClassifier
    model = boosted(kind, enable_categorical=True, max_cat_to_onehot=onehot)
    model.fit(frame, target(frame, task))
    form = xgboost.read(model)
    lists = form.categories
    assert lists == {1: ["a", "b", "c", "d", "e"], 2: [10, 20, 30, 40]}
    assert any(q.among is not None for q in form.margin.questions)
    X = coded(frame, lists)
    same(form.margin(X), model.predict(frame, output_margin=True), 1e-6)
    same(apply_link(form, form.margin(X)), answer_of(model)(frame), 1e-6)


def test_codes_of_xgboost(xgb):
    X = numbers(holes=True)
    X[:, 2] += 10 - np.nanmin(X[:, 2])
    model = boosted(
        xgb.XGBRegressor, enable_categorical=True, max_cat_to_onehot=1, feature_types=list("qqcq")
    ).fit(X, target(X, "real"))
    form = xgboost.read(model)
    assert form.categories == {}
    assert "[2]" in form.notes[0]
    X[:9, 2] = [0, 1, 3, 50, 60, 70, 80, 90, 100]  # codes that it has not seen
    same(form.margin(X), model.predict(X), 1e-6)


def test_what_xgboost_cannot_say(xgb):
    X = numbers()
    raw = boosted(xgb.XGBClassifier, objective="binary:logitraw", base_score=0.3)
    assert agrees_with_xgb(raw.fit(X, target(X, "two")), X).link == "none"
    hinge = boosted(xgb.XGBClassifier, objective="binary:hinge").fit(X, target(X, "two"))
    with pytest.raises(Unreadable, match="hinge"):
        xgboost.read(hinge)
    labels = np.column_stack([target(X, "two"), X[:, 3]])
    with pytest.raises(Unreadable, match="2 classes at once"):
        xgboost.read(boosted(xgb.XGBClassifier).fit(X, labels))
    with pytest.raises(Unreadable, match="missing=0"):
        xgboost.read(boosted(xgb.XGBRegressor, missing=0.0).fit(X, target(X, "real")))
    frame = table().assign(kind=lambda frame: frame["kind"].cat.rename_categories({"a": "été"}))
    model = boosted(xgb.XGBRegressor, enable_categorical=True).fit(frame, frame["width"])
    with pytest.raises(Unreadable, match="rename"):
        xgboost.read(model)


# --- LightGBM -------------------------------------------------------------------------------


@pytest.fixture
def lgb():
    return pytest.importorskip("lightgbm")


def leafy(kind, **options):
    few = {"n_estimators": 8, "num_leaves": 12, "min_child_samples": 5}
    return kind(**few | {"n_jobs": 1, "verbose": -1, "random_state": 0} | options)


def raw_of(model):
    return lambda X: model.predict(X, raw_score=True)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names", "ignore:.*'eval_set'")
class TestLightGBM:
    @pytest.mark.parametrize("holes", [False, True])
    @pytest.mark.parametrize(
        ("objective", "link"),
        [
            ("regression", "identity"),
            ("regression_l1", "identity"),
            ("huber", "identity"),
            ("fair", "identity"),
            ("quantile", "identity"),
            ("mape", "identity"),
            ("poisson", "exp"),
            ("gamma", "exp"),
            ("tweedie", "exp"),
            ("cross_entropy", "logistic"),
        ],
    )
    def test_objectives(self, lgb, objective, link, holes):
        X = numbers(holes=holes)
        model = leafy(lgb.LGBMRegressor, objective=objective).fit(X, target(X, "share"))
        form = lightgbm.read(model)
        agrees(form, X, raw_of(model), model.predict, 1e-12)
        assert form.link == link

    @pytest.mark.parametrize("sigmoid", [1.0, 2.5])
    def test_two_classes(self, lgb, sigmoid):
        X = numbers(holes=True)
        model = leafy(lgb.LGBMClassifier, sigmoid=sigmoid).fit(X, target(X, "text"))
        form = lightgbm.read(model)
        agrees(form, X, lambda X: sigmoid * raw_of(model)(X), model.predict_proba, 1e-12)
        assert form.classes.tolist() == ["no", "yes"]
        form = lightgbm.read(model.booster_)
        same(apply_link(form, form.margin(X))[:, 1:], model.booster_.predict(X), 1e-12)

    def test_three_classes(self, lgb):
        X = numbers(holes=True)
        model = leafy(lgb.LGBMClassifier).fit(X, target(X, "three"))
        agrees(lightgbm.read(model), X, raw_of(model), model.predict_proba, 1e-12)
        form = lightgbm.read(model.booster_)
        agrees(form, X, None, model.booster_.predict, 1e-12)
        assert form.classes.tolist() == [0, 1, 2]

    @pytest.mark.parametrize(
        "options",
        [
            {"use_missing": False},
            {"boosting_type": "dart", "drop_rate": 0.5},
            {"extra_trees": True, "max_bin": 8},
        ],
        ids=str,
    )
    @pytest.mark.parametrize("task", ["real", "three"])
    def test_options(self, lgb, options, task):
        X = numbers(holes=True)
        kind = lgb.LGBMRegressor if task == "real" else lgb.LGBMClassifier
        model = leafy(kind, **options).fit(X, target(X, task))
        agrees(lightgbm.read(model), X, raw_of(model), answer_of(model), 1e-12)

    @pytest.mark.parametrize("task", ["real", "text", "three"])
    def test_random_forest(self, lgb, task):
        X = numbers(holes=True)
        kind = lgb.LGBMRegressor if task == "real" else lgb.LGBMClassifier
        model = leafy(kind, boosting_type="rf", bagging_freq=1, bagging_fraction=0.5)
        model.fit(X, target(X, task))
        # raw scores are sums, though predictions come from means
        agrees(lightgbm.read(model), X, lambda X: raw_of(model)(X) / 8, answer_of(model), 1e-12)

    def test_nans_that_training_did_not_see(self, lgb):
        X = numbers()
        model = leafy(lgb.LGBMRegressor).fit(X, target(X, "real"))
        agrees(lightgbm.read(model), numbers(holes=True), model.predict, None, 1e-12)

    def test_ranker(self, lgb):
        X = numbers()
        model = leafy(lgb.LGBMRanker).fit(X, target(X, "three"), group=[10] * (ROWS // 10))
        agrees(lightgbm.read(model), X, raw_of(model), model.predict, 1e-12)

    @pytest.mark.parametrize("task", ["real", "three"])
    def test_early_stopping(self, lgb, task):
        X, y = numbers(), target(numbers(), task)
        kind = lgb.LGBMRegressor if task == "real" else lgb.LGBMClassifier
        model = leafy(kind, n_estimators=80, learning_rate=0.8)
        stop = lgb.early_stopping(3, verbose=False)
        model.fit(X[:200], y[:200], eval_set=[(X[200:], y[200:])], callbacks=[stop])
        assert 0 < model.best_iteration_ < 80
        agrees(lightgbm.read(model), X, raw_of(model), answer_of(model), 1e-12)

    @pytest.mark.parametrize("task", ["real", "two", "three"])
    def test_categories(self, lgb, task):
        frame = table()
        kind = lgb.LGBMRegressor if task == "real" else lgb.LGBMClassifier
        model = leafy(kind, min_data_per_group=1, cat_smooth=1.0)
        model.fit(frame, target(frame, task))
        form = lightgbm.read(model)
        lists = form.categories
        assert lists == {1: ["a", "b", "c", "d", "e"], 2: [10, 20, 30, 40]}
        assert any(q.among is not None for q in form.margin.questions)
        strange = frame.assign(kind=frame["kind"].cat.rename_categories({"a": "z"}))
        for rows in (frame, strange):
            X = coded(rows, lists)
            same(form.margin(X), raw_of(model)(rows), 1e-12)
            same(apply_link(form, form.margin(X)), answer_of(model)(rows), 1e-12)
        loaded = lgb.Booster(model_str=model.booster_.model_to_string())
        assert lightgbm.read(loaded).categories == lists

    def test_categories_that_are_numbers(self, lgb):
        X = numbers()
        X[:, 2] -= X[:, 2].min()
        model = leafy(lgb.LGBMRegressor, min_data_per_group=1, cat_smooth=1.0)
        model.fit(X, target(X, "real"), categorical_feature=[2])
        form = lightgbm.read(model)
        assert form.categories == {}
        assert "[2]" in form.notes[0]
        X[:5, 2] = [np.nan, 50, -1, 1000, 3]
        same(form.margin(X), model.predict(X), 1e-12)

    def test_zero_as_missing(self, lgb):
        X = np.abs(numbers()) + 1.0
        X[::5] = 0.0
        y = X.sum(axis=1)
        model = leafy(lgb.LGBMRegressor, zero_as_missing=True, num_leaves=2).fit(X, y)
        agrees(lightgbm.read(model), numbers(holes=True), model.predict, None, 1e-12)
        model = leafy(lgb.LGBMRegressor, zero_as_missing=True).fit(X, np.where(X[:, 0], y, 30.0))
        with pytest.raises(Unreadable, match="zero_as_missing"):
            lightgbm.read(model)

    def test_own_objective(self, lgb):
        X = numbers()

        def loss(y, margin):
            return margin - y, np.ones_like(margin)

        model = leafy(lgb.LGBMRegressor, objective=loss).fit(X, target(X, "real"))
        agrees(lightgbm.read(model), X, model.predict, model.predict, 1e-12)
        model = leafy(lgb.LGBMClassifier, objective=loss).fit(X, target(X, "two"))
        assert lightgbm.read(model).link == "none"

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ({"reg_sqrt": True}, "reg_sqrt"),
            ({"linear_tree": True}, "linear_tree"),
            ({"objective": "cross_entropy_lambda"}, "cross_entropy_lambda"),
            ({"pred_early_stop": True}, "pred_early_stop"),
        ],
        ids=str,
    )
    def test_unreadable(self, lgb, options, reason):
        X = numbers()
        model = leafy(lgb.LGBMRegressor, **options).fit(X, target(X, "share"))
        with pytest.raises(Unreadable, match=reason):
            lightgbm.read(model)

    def test_probabilities_that_do_not_sum_to_one(self, lgb):
        X = numbers()
        model = leafy(lgb.LGBMClassifier, objective="multiclassova").fit(X, target(X, "three"))
        assert np.ptp(model.predict_proba(X).sum(axis=1)) > 1e-3
        with pytest.raises(Unreadable, match="sum to 1"):
            lightgbm.read(model)

    def test_ordered_categories(self, lgb):
        frame = table()
        frame["grade"] = frame["grade"].cat.as_ordered()
        model = leafy(lgb.LGBMRegressor).fit(frame, target(frame, "real"))
        with pytest.raises(Unreadable, match="ordered"):
            lightgbm.read(model)


# --- CatBoost -------------------------------------------------------------------------------


@pytest.fixture
def cat():
    return pytest.importorskip("catboost")


def calm(kind, **options):
    quiet = {"verbose": 0, "allow_writing_files": False, "thread_count": 1, "random_seed": 0}
    return kind(**{"iterations": 8, "depth": 4} | quiet | options)


def formula_of(model):
    return lambda X: model.predict(X, prediction_type="RawFormulaVal")


class TestCatBoost:
    @pytest.mark.parametrize(
        ("loss", "link"),
        [
            ("RMSE", "identity"),
            ("MAE", "identity"),
            ("Quantile:alpha=0.3", "identity"),
            ("Huber:delta=1", "identity"),
            ("MultiQuantile:alpha=0.2,0.8", "identity"),
            ("Poisson", "exp"),
            ("Tweedie:variance_power=1.5", "exp"),
        ],
    )
    def test_losses(self, cat, loss, link):
        X = numbers()
        model = calm(cat.CatBoostRegressor, loss_function=loss).fit(X, target(X, "positive"))
        form = catboost.read(model)
        agrees(form, X, formula_of(model), model.predict, 1e-12)
        assert form.link == link

    @pytest.mark.parametrize("policy", ["SymmetricTree", "Depthwise", "Lossguide"])
    @pytest.mark.parametrize("nan_mode", ["Min", "Max"])
    @pytest.mark.parametrize("task", ["real", "text", "three"])
    def test_policies(self, cat, task, nan_mode, policy):
        X = numbers(holes=True)
        kind = cat.CatBoostRegressor if task == "real" else cat.CatBoostClassifier
        model = calm(kind, grow_policy=policy, nan_mode=nan_mode).fit(X, target(X, task))
        form = catboost.read(model)
        agrees(form, X, formula_of(model), answer_of(model), 1e-12)
        if task == "text":
            assert form.classes.tolist() == ["no", "yes"]

    def test_nans_that_training_did_not_see(self, cat):
        X = numbers()
        model = calm(cat.CatBoostRegressor).fit(X, target(X, "real"))
        agrees(catboost.read(model), numbers(holes=True), model.predict, None, 1e-12)

    @pytest.mark.parametrize(
        "loss", ["Logloss", "CrossEntropy", "Focal:focal_alpha=.3;focal_gamma=2"]
    )
    def test_two_classes(self, cat, loss):
        X = numbers()
        model = calm(cat.CatBoostClassifier, loss_function=loss).fit(X, target(X, "two"))
        agrees(catboost.read(model), X, formula_of(model), model.predict_proba, 1e-12)

    def test_best_model_and_scale(self, cat):
        X, y = numbers(), target(numbers(), "real")
        model = calm(cat.CatBoostRegressor, iterations=80, learning_rate=0.9, use_best_model=True)
        model.fit(X[:200], y[:200], eval_set=(X[200:], y[200:]))
        assert model.tree_count_ < 80
        model.set_scale_and_bias(0.5, 3.0)
        agrees(catboost.read(model), X, model.predict, model.predict, 1e-12)

    def test_plain_models_and_several_outputs(self, cat):
        X = numbers()
        model = cat.CatBoost(
            {"loss_function": "Poisson", "iterations": 4, "verbose": 0, "thread_count": 1}
            | {"allow_writing_files": False}
        ).fit(X, target(X, "positive"))
        agrees(catboost.read(model), X, model.predict, model.predict, 1e-12)
        Y = np.column_stack([target(X, "real"), target(X, "positive")])
        model = calm(cat.CatBoostRegressor, loss_function="MultiRMSE").fit(X, Y)
        agrees(catboost.read(model), X, model.predict, model.predict, 1e-12)

    @pytest.mark.parametrize("policy", ["SymmetricTree", "Lossguide"])
    def test_categories(self, cat, policy):
        frame = table(holes=False)
        model = calm(cat.CatBoostRegressor, one_hot_max_size=10, grow_policy=policy)
        model.fit(frame, target(frame, "real"), cat_features=["kind", "grade"])
        with pytest.raises(Unreadable, match="hashes"):
            catboost.read(model)
        values = {1: ["e", "d", "c", "b", "a"], 2: [10.0, 20.0, 30.0, 40.0]}
        form = catboost.read(model, values)
        lists = form.categories
        assert lists == values
        assert any(q.among is not None for q in form.margin.questions)
        strange = frame.astype({"kind": object, "grade": object})
        strange.loc[:20, "kind"] = "z"
        strange.loc[:40, "grade"] = 77
        for rows in (frame, strange):
            same(form.margin(coded(rows, lists)), model.predict(rows), 1e-12)

    def test_unreadable(self, cat):
        X, frame = numbers(), table(holes=False)
        model = calm(cat.CatBoostRegressor, one_hot_max_size=1)
        model.fit(frame, target(frame, "real"), cat_features=["kind", "grade"])
        with pytest.raises(Unreadable, match="one_hot_max_size"):
            catboost.read(model)
        model = calm(cat.CatBoostRegressor, loss_function="RMSEWithUncertainty")
        with pytest.raises(Unreadable, match="variance"):
            catboost.read(model.fit(X, target(X, "real")))
        model = calm(cat.CatBoostClassifier, loss_function="MultiClassOneVsAll")
        model.fit(X, target(X, "three"))
        assert np.ptp(model.predict_proba(X).sum(axis=1)) > 1e-3
        with pytest.raises(Unreadable, match="sum to 1"):
            catboost.read(model)
        model = calm(cat.CatBoostClassifier, loss_function="MultiLogloss")
        with pytest.raises(Unreadable, match="several classes"):
            catboost.read(model.fit(X, np.column_stack([X[:, 3], target(X, "two")]).astype(int)))
        words = pd.DataFrame({"text": ["a b", "b c", "c d", "d a"] * 75, "number": X[:, 0]})
        model = calm(cat.CatBoostClassifier)
        model.fit(words, target(X, "two"), text_features=["text"])
        with pytest.raises(Unreadable, match="text"):
            catboost.read(model)
        with pytest.raises(NotFittedError):
            catboost.read(cat.CatBoostRegressor())


# --- explainable boosting machines ----------------------------------------------------------


@pytest.fixture
def glassbox():
    pytest.importorskip("interpret")
    return pytest.importorskip("interpret.glassbox")


def glassy(kind, **options):
    few = {"outer_bags": 1, "max_rounds": 30, "interactions": 3, "n_jobs": 1}
    return kind(**few | {"max_bins": 40, "max_interaction_bins": 8} | options)


@pytest.mark.filterwarnings(
    "ignore:Missing values",
    "ignore:For multi",
    "ignore:Interactions",
    "ignore:Detected multiclass",
)
class TestExplainableBoosting:
    @pytest.mark.parametrize("holes", [False, True])
    @pytest.mark.parametrize("task", ["real", "positive", "text", "three"])
    def test_numbers(self, glassbox, task, holes):
        X = numbers(holes=holes)
        if task in ("real", "positive"):
            objective = "rmse" if task == "real" else "poisson_deviance"
            model = glassy(glassbox.ExplainableBoostingRegressor, objective=objective)
        else:
            model = glassy(glassbox.ExplainableBoostingClassifier)
        model.feature_types = ["continuous"] * 4
        model.fit(X, target(X, task))
        form = ebm.read(model)
        agrees(form, X, lambda X: model._predict_score(X), answer_of(model), 1e-12)
        # unknown values have their bin, whether training saw some or not
        same(form.margin(numbers(1, True)), model._predict_score(numbers(1, True)), 1e-12)
        links = {"real": "identity", "positive": "exp", "text": "logistic", "three": "softmax"}
        assert form.link == links[task]

    @pytest.mark.parametrize("task", ["real", "two"])
    def test_categories(self, glassbox, task):
        frame = table()
        frame["grade"] = frame["grade"].astype(float)
        kind = glassbox.ExplainableBoostingRegressor
        if task == "two":
            kind = glassbox.ExplainableBoostingClassifier
        kinds = ["continuous", "nominal", "nominal", "continuous"]
        terms = [[0], [1], [2], [3], [0, 1], [1, 2], [0, 1, 3]]
        model = glassy(kind, feature_types=kinds, interactions=terms[4:])
        model.fit(frame, target(frame, task))
        assert [list(term) for term in model.term_features_] == terms
        form = ebm.read(model)
        lists = form.categories
        sound(form)
        assert set(lists) == {1, 2}
        assert lists[1] == ["a", "b", "c", "d", "e"]
        assert [float(text) for text in lists[2]] == [10, 20, 30, 40]  # "10" or "10.0", by version
        strange = frame.astype({"kind": object})
        strange.loc[:20, "kind"] = "z"
        strange.loc[10:40, "grade"] = 77.0
        for rows in (frame, strange):
            X = coded(rows, lists)
            same(form.margin(X), model._predict_score(rows), 1e-12)
            same(apply_link(form, form.margin(X)), answer_of(model)(rows), 1e-12)

    def test_unreadable(self, glassbox):
        X = numbers()
        model = glassy(glassbox.ExplainableBoostingRegressor).fit(X, target(X, "real"))
        model.link_ = "vlogit"
        with pytest.raises(Unreadable, match="vlogit"):
            ebm.read(model)


# --- all ------------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", READERS)
def test_readers_leave_other_models_alone(reader):
    model = LinearRegression().fit(numbers(), target(numbers(), "real"))
    assert reader.read(model) is None
    assert reader.read("a text") is None


def test_no_library_is_needed():
    code = """
        import sys
        for name in ("catboost", "interpret", "lightgbm", "xgboost"):
            sys.modules[name] = None  # as if it were not installed
        from expecta.readers import catboost, ebm, lightgbm, sklearn_trees, xgboost
        for reader in (catboost, ebm, lightgbm, sklearn_trees, xgboost):
            assert reader.read(1.0) is None
    """
    subprocess.run([sys.executable, "-c", dedent(code)], check=True)


def test_positions_of_categories():
    assert category_positions([2, 1.0, 5, "1"], [1, 2]).tolist() == [1, 0, -1, -1]
    assert category_positions([1.0, 1, "1", True, 1.5], ["1", "True"]).tolist() == [0, 0, 0, 1, -1]
    assert np.isnan(category_positions([None, np.nan, pd.NaT, pd.NA], ["a"])).all()
    assert category_positions([None], ["a", None]).tolist() == [1]


def test_models_that_are_not_fitted():
    with pytest.raises(NotFittedError):
        sklearn_trees.read(ensemble.RandomForestRegressor())


def test_builder_shares_questions_and_adds_up_constants():
    builder = TreeBuilder(2, np.array([1.0]))
    asked = [Question(0, among=frozenset({1.0})), Question(0, among=frozenset({1.0}))]
    for question in asked:
        builder.add(0, lambda node, q=question: (q, 1, 2) if node == 0 else np.array([node]))
    builder.add(0, lambda node: np.array([10.0]))
    trees = builder.build()
    assert len(trees.questions) == 1
    assert trees.start.tolist() == [0, 3, 6]
    assert trees(np.array([[1.0, 0.0], [2.0, 0.0]])).tolist() == [[13.0], [15.0]]


def test_links():
    margin = np.array([[0.3, -1.0]])
    nothing = TreeBuilder(1, np.zeros(2)).build()
    assert apply_link(Form(nothing, "one-vs-rest"), margin).sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="margins only"):
        apply_link(Form(nothing, "none"), margin)
    with pytest.raises(ValueError, match="probit"):
        apply_link(Form(nothing, "probit"), margin)
