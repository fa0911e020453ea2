"""Expected predictions of fitted models: against the models and against enumeration."""

import itertools
import pickle
import re
import warnings
from datetime import UTC, datetime, time, timedelta
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone, is_classifier
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.datasets import make_regression
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    ElasticNet,
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.metrics import r2_score
from sklearn.model_selection import FixedThresholdClassifier, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from expecta import (
    ChowLiu,
    DomainError,
    Encoder,
    ExpectedPredictor,
    ImpossibleEvidenceWarning,
    LatentTree,
    config_context,
)
from expecta.common.trust import Trust
from expecta.expected.wrap_model import classifies
from expecta.readers import read_model, sklearn_trees

NUMBERS = ["a", "b", "c"]
WORDS = ["colour", "size"]


def table(n=160, seed=0, kind="mixed"):
    """Few distinct values that depend on one another, so that they can be enumerated."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, n) * 1.5 - 1
    b = np.where(rng.random(n) < 0.7, a, rng.integers(0, 3, n) * 0.7)
    c = np.round(rng.normal(size=n) + a)
    colour = np.array(["red", "green", "blue"])[rng.integers(0, 3, n)]
    size = np.where(a > 1, "large", np.where(rng.random(n) < 0.5, "small", "large"))
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "colour": colour, "size": size})
    y = a * b - c + (colour == "red") * a + 0.1 * rng.normal(size=n)
    columns = {"numeric": NUMBERS, "categorical": WORDS, "mixed": NUMBERS + WORDS}[kind]
    return frame[columns], y


def prepared(kind, rng, for_trees):
    """A pipeline step that makes numbers of the columns, another one each time."""
    numbers = rng.choice(4)
    number = [
        StandardScaler(),
        QuantileTransformer(n_quantiles=20),
        PowerTransformer(),
        "passthrough" if for_trees else SplineTransformer(n_knots=3),
    ][numbers]
    word = [
        OneHotEncoder(handle_unknown="ignore"),
        OrdinalEncoder(),
        TargetEncoder(),
    ][rng.choice(3)]
    parts = []
    if kind != "categorical":
        parts.append(("numbers", number, NUMBERS))
    if kind != "numeric":
        parts.append(("words", word, WORDS))
    return ColumnTransformer(parts, sparse_threshold=0)


def density_for(seed):
    return LatentTree(states=3, random_state=0) if seed % 2 else ChowLiu()


def holes(frame, rng, rows=12):
    some = frame.iloc[:rows].copy().astype(object)
    hide = rng.random(some.shape) < 0.5
    hide[0] = True
    some[hide] = None
    return some


def enumerated(model, expected, some, output):
    """The obvious way: every value of the density through the model."""
    density = expected.wrapped_.density
    encoder = density.encoder_
    every = np.array(list(itertools.product(*(range(c) for c in encoder.cardinalities_))))
    log_p = density.circuit.log_prob(every.astype(np.int32))
    raw = encoder.inverse_transform(every)
    values = output(model, raw[list(some.columns)].astype(expected.template_.rows.dtypes))
    codes = encoder.codes(some)
    found = []
    for row in codes:
        fits = np.all((every == row) | (row < 0), axis=1)
        weight = np.exp(log_p[fits] - log_p[fits].max())
        found.append(weight @ values[fits] / weight.sum())
    return np.array(found)


def of(method):
    def output(model, frame):
        return np.asarray(getattr(model, method)(frame), float).reshape(len(frame), -1)

    return output


TREES = {
    "tree": DecisionTreeRegressor(max_depth=4),
    "forest": RandomForestRegressor(8, random_state=0, max_depth=5),
    "bag": BaggingRegressor(DecisionTreeRegressor(max_depth=3), 5, random_state=0),
    "boost": GradientBoostingRegressor(n_estimators=15, random_state=0),
    "stumps": GradientBoostingRegressor(n_estimators=15, max_depth=1, random_state=0),
    "hist": HistGradientBoostingRegressor(max_iter=15, min_samples_leaf=5),
}
LINES = {"least squares": LinearRegression(), "net": ElasticNet(alpha=0.01), "ridge": Ridge()}


@pytest.mark.parametrize("kind", ["numeric", "categorical", "mixed"])
@pytest.mark.parametrize("name", [*TREES, *LINES])
def test_regressors_agree_with_enumeration(name, kind):
    seed = sum(map(ord, name + kind))
    rng = np.random.default_rng(seed)
    frame, y = table(seed=seed, kind=kind)
    model = clone({**TREES, **LINES}[name])
    model = make_pipeline(prepared(kind, rng, name in TREES), model).fit(frame, y)
    expected = ExpectedPredictor(model, density_for(seed)).fit(frame)
    assert expected.wrapped_.route is not None, expected.wrapped_.why
    np.testing.assert_allclose(expected.predict(frame), model.predict(frame), rtol=1e-9, atol=1e-12)
    some = holes(frame, rng)
    obvious = enumerated(model, expected, some, of("predict"))
    scale = np.abs(y).max()
    np.testing.assert_allclose(expected.predict(some), obvious[:, 0], rtol=1e-8, atol=1e-8 * scale)
    margin = expected.decision_function(some)
    np.testing.assert_allclose(margin, obvious[:, 0], rtol=1e-8, atol=1e-8 * scale)
    squares = enumerated(model, expected, some, lambda m, f: of("predict")(m, f) ** 2)
    mean, std, error = expected.predict(some, return_std=True, return_error=True)
    assert not error.any()
    np.testing.assert_allclose(
        std, np.sqrt(np.maximum(squares - obvious**2, 0))[:, 0], rtol=1e-6, atol=1e-6 * scale
    )
    np.testing.assert_allclose(mean, obvious[:, 0], rtol=1e-8, atol=1e-8 * scale)


CLASSIFIERS = {
    "tree": DecisionTreeClassifier(max_depth=4),
    "forest": RandomForestClassifier(8, max_depth=4, random_state=0),
    "extra": ExtraTreesClassifier(8, max_depth=4, random_state=0),
    "boost": GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0),
    "hist": HistGradientBoostingClassifier(max_iter=3, max_depth=2, min_samples_leaf=5),
    "ada": AdaBoostClassifier(n_estimators=4, random_state=0),
    "logistic": LogisticRegression(),
    "one against the rest": SGDClassifier(loss="log_loss", random_state=0),
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", ["numeric", "mixed"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_agree_with_enumeration(name, kind, classes):
    seed = sum(map(ord, name + kind)) + classes
    rng = np.random.default_rng(seed)
    frame, y = table(seed=seed, kind=kind)
    y = np.array(["low", "middle", "top"])[
        np.digitize(y, np.quantile(y, [0.5, 0.8])[: classes - 1])
    ]
    model = make_pipeline(prepared(kind, rng, True), clone(CLASSIFIERS[name])).fit(frame, y)
    expected = ExpectedPredictor(model, density_for(seed), tol=1e-10).fit(frame)
    assert is_classifier(expected)
    np.testing.assert_allclose(
        expected.predict_proba(frame), model.predict_proba(frame), atol=1e-12
    )
    assert expected.wrapped_.route is not None, expected.wrapped_.why
    some = holes(frame, rng)
    obvious = enumerated(model, expected, some, of("predict_proba"))
    found, error = expected.predict_proba(some, return_error=True)
    if name in ("logistic", "one against the rest") and classes > 2:  # sampled
        assert np.all(np.abs(found - obvious) <= 6 * error + 1e-12)
        assert "sampled" in expected.explain_exactness()
    else:
        np.testing.assert_allclose(found, obvious, atol=1e-8)
    assert set(expected.predict(some)) <= set(model.classes_)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost", "interpret.glassbox"])
@pytest.mark.parametrize("kind", ["numeric", "mixed"])
def test_libraries_agree_with_enumeration(library, kind):
    module = pytest.importorskip(library)
    seed = len(library) + len(kind)
    rng = np.random.default_rng(seed)
    frame, y = table(seed=seed, kind=kind)
    words = [] if kind == "numeric" else WORDS
    if library != "catboost":
        frame = frame.astype(dict.fromkeys(words, "category"))
    model = {
        "xgboost": lambda: module.XGBRegressor(
            n_estimators=10, max_depth=3, n_jobs=1, enable_categorical=True
        ),
        "lightgbm": lambda: module.LGBMRegressor(
            n_estimators=10, min_child_samples=5, verbose=-1, n_jobs=1
        ),
        "catboost": lambda: module.CatBoostRegressor(
            iterations=10,
            depth=3,
            verbose=0,
            cat_features=words,
            one_hot_max_size=9,
            allow_writing_files=False,
            thread_count=1,
        ),
        "interpret.glassbox": lambda: module.ExplainableBoostingRegressor(
            outer_bags=2, max_rounds=50, interactions=1, n_jobs=1
        ),
    }[library]().fit(frame, y)
    expected = ExpectedPredictor(model, density_for(seed)).fit(frame)
    assert expected.wrapped_.route is not None, expected.wrapped_.why
    np.testing.assert_array_equal(expected.predict(frame), model.predict(frame))
    some = holes(frame, rng)
    obvious = enumerated(model, expected, some, of("predict"))
    tolerance = 1e-6 if library == "xgboost" else 1e-8  # it predicts with 32 bits
    scale = np.abs(y).max()
    np.testing.assert_allclose(expected.predict(some), obvious[:, 0], atol=tolerance * scale)


@pytest.mark.parametrize("form", [pa.Table.from_pandas, pl.from_pandas, "records", "list"])
def test_every_form_of_a_table_can_be_learned_from(form):
    frame, y = table()
    model = make_pipeline(prepared("mixed", np.random.default_rng(1), False), Ridge()).fit(frame, y)
    frame.loc[:5, "a"], frame.loc[3:9, "colour"] = np.nan, None
    other = frame.to_dict(form) if isinstance(form, str) else form(frame)
    wanted = ExpectedPredictor(model, density=ChowLiu()).fit(frame).predict(frame)
    found = ExpectedPredictor(model, density=ChowLiu()).fit(other).predict(other)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_numbers_that_are_categories():
    frame, y = table(300, kind="numeric")
    frame["c"] = frame["c"].clip(-3, 3) + 3
    y = y + 5 * np.isin(frame["c"], [1, 4])
    model = HistGradientBoostingRegressor(
        max_iter=10, min_samples_leaf=5, categorical_features=["c"]
    ).fit(frame, y)
    expected = ExpectedPredictor(model, ChowLiu()).fit(frame)
    assert expected.wrapped_.route is not None, expected.wrapped_.why
    some = holes(frame, np.random.default_rng(0))
    obvious = enumerated(model, expected, some, of("predict"))[:, 0]
    np.testing.assert_allclose(expected.predict(some), obvious, rtol=1e-8, atol=1e-8)


# -- what is sampled ------------------------------------------------------------------


def test_any_model_is_sampled_within_its_standard_error():
    frame, y = table(kind="numeric")
    rng = np.random.default_rng(1)
    model = KNeighborsRegressor(3).fit(frame, y)
    expected = ExpectedPredictor(model, ChowLiu(), rtol=0.015).fit(frame)
    assert "sampled" in expected.explain_exactness()
    some = holes(frame, rng)
    obvious = enumerated(model, expected, some, of("predict"))[:, 0]
    squares = enumerated(model, expected, some, lambda m, f: of("predict")(m, f) ** 2)[:, 0]
    mean, std, error = expected.predict(some, return_std=True, return_error=True)
    assert np.all(np.abs(mean - obvious) <= 5 * error)
    assert np.all(error <= 0.01508 * np.maximum(np.abs(mean), y.std()))
    np.testing.assert_allclose(std, np.sqrt(squares - obvious**2), rtol=0.2, atol=0.02)
    again = expected.predict(some, return_std=True)
    np.testing.assert_array_equal(mean, again[0])  # the same draws
    with pytest.raises(TypeError, match="KNeighborsRegressor is not known"):
        expected.decision_function(some)


def test_steps_that_mix_columns_are_sampled():
    frame, y = table(kind="numeric")
    model = make_pipeline(PCA(2), Ridge()).fit(frame, y)
    expected = ExpectedPredictor(model, ChowLiu(), rtol=0.01).fit(frame)
    assert "PCA" in expected.explain_exactness()
    some = holes(frame, np.random.default_rng(2))
    obvious = enumerated(model, expected, some, of("predict"))[:, 0]
    mean, error = expected.predict(some, return_error=True)
    assert np.all(np.abs(mean - obvious) <= 5 * error)


def test_many_trees_have_an_exact_mean_and_sampled_probabilities():
    frame, y = table(400, kind="mixed")
    y = y > np.median(y)
    rng = np.random.default_rng(3)
    encoder = make_column_transformer((OneHotEncoder(), WORDS), remainder="passthrough")
    boost = GradientBoostingClassifier(n_estimators=60, max_depth=3, random_state=0)
    model = make_pipeline(encoder, boost).fit(frame, y)
    expected = ExpectedPredictor(model, ChowLiu(), rtol=0.02).fit(frame)
    some = holes(frame, rng)
    margin = enumerated(model, expected, some, of("decision_function"))
    np.testing.assert_allclose(expected.decision_function(some), margin[:, 0], rtol=1e-8, atol=1e-8)
    proba, error = expected.predict_proba(some, return_error=True)
    obvious = enumerated(model, expected, some, of("predict_proba"))
    assert np.all(np.abs(proba - obvious) <= 5 * error + 1e-12)
    np.testing.assert_allclose(proba.sum(axis=1), 1)


# -- what is exact, and what only looks so --------------------------------------------


class Clipped(HistGradientBoostingRegressor):
    def predict(self, X):
        return np.maximum(super().predict(X), 0.0)


def sorted_table(n=600):
    """Rows in the order of the first column, so that the first rows are unlike the last."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X = X[np.argsort(-X[:, 0])]
    return X, X[:, 0] + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n)


def changed(way):
    X, y = sorted_table()
    model = (Clipped if way == "class" else HistGradientBoostingRegressor)(max_iter=15).fit(X, y)
    if way == "instance":
        model.predict = lambda rows: np.maximum(type(model).predict(model, rows), 0.0)
    return model, X


@pytest.mark.parametrize("way", ["class", "instance"])
def test_a_model_that_predicts_otherwise_than_its_library_is_sampled(way):
    model, X = changed(way)
    expected = ExpectedPredictor(model, ChowLiu()).fit(X)
    assert expected.expected_model.trust is Trust.SAMPLED
    assert "predict" in expected.explain_exactness().splitlines()[0]
    mean, error = expected.predict(np.full((1, 3), np.nan), return_error=True)
    assert error[0] > 0
    assert abs(mean[0] - model.predict(X).mean()) <= 5 * error[0] + 0.02


def mixes_few(X):
    """Mix columns, but only in rows that few training rows are like."""
    X = np.asarray(X, float).copy()
    X[:, 1] += np.where(X[:, 0] < -1.5, X[:, 2], 0.0)
    return X


def test_a_function_that_mixes_columns_in_some_rows_is_sampled():
    X, y = sorted_table()
    model = make_pipeline(FunctionTransformer(mixes_few), LinearRegression()).fit(X, y)
    expected = ExpectedPredictor(model, ChowLiu()).fit(X)
    assert expected.expected_model.trust is Trust.SAMPLED
    assert "mixes columns" in expected.explain_exactness()


def by_column(X):
    return np.asarray(X, float) ** 2


def test_what_was_tried_is_called_checked():
    X, y = sorted_table()
    model = make_pipeline(FunctionTransformer(by_column), LinearRegression()).fit(X, y)
    expected = ExpectedPredictor(model, ChowLiu()).fit(X)
    assert expected.expected_model.trust is Trust.CHECKED
    n = expected.expected_model.route.checked_rows
    assert n >= 256
    for text in (expected.explain_exactness(), expected.ask().exactness):
        assert f"checked on {n} rows" in text
        assert "'by_column'" in text
        assert "exact" not in text
    known = make_pipeline(FunctionTransformer(np.square), LinearRegression()).fit(X, y)
    assert ExpectedPredictor(known, ChowLiu()).fit(X).expected_model.trust is Trust.EXACT


def test_a_version_that_is_not_known_is_checked(monkeypatch, tmp_path):
    X, y = sorted_table()
    model = LinearRegression().fit(X, y)
    monkeypatch.setattr("sklearn.__version__", "2.1")
    expected = ExpectedPredictor(model, ChowLiu()).fit(X)
    assert "sklearn 2.1 is newer" in expected.explain_exactness()
    expected.save(tmp_path / "model.expecta")
    loaded = ExpectedPredictor.load(tmp_path / "model.expecta")
    assert loaded.expected_model.trust is Trust.CHECKED
    ours, theirs = (one.explain_exactness().splitlines() for one in (expected, loaded))
    differ = [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
    assert [one.split(":")[0] for pair in differ for one in pair] == ["Complete rows"] * 2

    def unlike(model, categories=None):
        raise AttributeError("no attribute 'coef_'")  # whatever a new version names otherwise

    monkeypatch.setattr(read_model, "READERS", (unlike,))
    expected = ExpectedPredictor(model, ChowLiu()).fit(X)
    assert expected.expected_model.trust is Trust.SAMPLED
    assert "no attribute 'coef_'" in expected.explain_exactness()


def test_a_reading_that_is_wrong_for_one_leaf_is_found(monkeypatch):
    X, y = sorted_table()
    model = DecisionTreeRegressor(max_leaf_nodes=40, random_state=0).fit(X, y)
    few = X[:30]  # which reach few of the leaves

    def wrong(model, categories=None, read=sklearn_trees.read):
        form = read(model, categories)
        if form is not None:
            form.margin.value[np.flatnonzero(form.margin.question < 0)[-1]] += 1.0
        return form

    readers = tuple(wrong if one is sklearn_trees.read else one for one in read_model.READERS)
    assert ExpectedPredictor(model, ChowLiu()).fit(few).expected_model.trust is Trust.EXACT
    monkeypatch.setattr(read_model, "READERS", readers)
    with pytest.warns(UserWarning, match="does not predict what it does"):
        expected = ExpectedPredictor(model, ChowLiu()).fit(few)
    assert "does not predict what it does" in expected.explain_exactness()


DOMAINS = {
    "log": FunctionTransformer(np.log),
    "log1p": FunctionTransformer(np.log1p),
    "arccosh": FunctionTransformer(np.arccosh),
    "box-cox": PowerTransformer("box-cox"),
}


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("boosted", [True, False])
def test_known_numbers_outside_of_a_domain(name, boosted, tmp_path):
    rng = np.random.default_rng(0)
    d = rng.gamma(2.0, size=300) + 1.1
    b = np.round(np.log(d) + rng.normal(size=300), 1)
    X = np.column_stack([d, b])
    forest = RandomForestRegressor(4, max_depth=4, random_state=0)
    model = HistGradientBoostingRegressor(max_iter=8) if boosted else forest
    steps = make_column_transformer((clone(DOMAINS[name]), [0]), remainder="passthrough")
    model = make_pipeline(steps, model).fit(X, 2 * np.log(d) + b)
    expected = ExpectedPredictor(model, ChowLiu()).fit(X)
    assert expected.expected_model.trust is Trust.EXACT
    expected.save(tmp_path / "model.expecta")
    loaded = ExpectedPredictor.load(tmp_path / "model.expecta")
    density = expected.expected_model.density
    other = density.encoder_.columns_[1]
    answers = []
    for known in (-1.0, 0.0, 1e-9, 0.999, 1e9):
        row = np.array([[known, np.nan]])
        code = density.encoder_.codes(row)[0, 0]
        every = np.array([[code, k] for k in range(other.cardinality)], np.int32)
        weight = np.exp(density.circuit.log_prob(every))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                values = model.predict(np.column_stack([np.full(len(every), known), other.means]))
            except ValueError:
                for one in (expected, loaded):
                    with pytest.raises(DomainError, match=f"refuses {known}"):
                        one.predict(row)
                continue
        answers.append(weight @ values / weight.sum())
        for one in (expected, loaded):
            np.testing.assert_allclose(one.predict(row), answers[-1], rtol=1e-9)
            np.testing.assert_allclose(one.predict_moments(row)[0, 1], answers[-1], rtol=1e-9)
    assert len(set(np.round(answers, 6))) >= 2


@pytest.mark.parametrize("transformer", ["log", "box-cox"])
@pytest.mark.parametrize(
    "model",
    [GradientBoostingRegressor(n_estimators=8), LinearRegression()],
    ids=["trees", "linear"],
)
def test_questions_refuse_what_predict_refuses(transformer, model, tmp_path):
    rng = np.random.default_rng(0)
    d = rng.gamma(2.0, size=300) + 1.1
    frame = pd.DataFrame({"d": d, "b": np.round(np.log(d) + rng.normal(size=300), 1)})
    steps = make_column_transformer((clone(DOMAINS[transformer]), ["d"]), remainder="passthrough")
    model = make_pipeline(steps, clone(model)).fit(frame, frame["d"] + frame["b"])
    expected = ExpectedPredictor(model, ChowLiu()).fit(frame)
    models, trees = [expected], not isinstance(model[-1], LinearRegression)
    if trees:
        expected.save(tmp_path / "model.expecta")
        models.append(ExpectedPredictor.load(tmp_path / "model.expecta"))
    row = pd.DataFrame({"d": [-1.0], "b": [np.nan]})
    for one in models:
        assert one.expected_model.trust is Trust.EXACT
        with pytest.raises(ValueError, match=r"'d'|Box-Cox") as refusal:
            one.predict(row)
        for question in (one.ask, one.next_question):
            for given in (row, {"d": -1.0}, "d == -1", "d == -1 and b > 0"):
                with pytest.raises(ValueError, match=re.escape(str(refusal.value))):
                    question(given)
    if trees and transformer == "log":  # trees are cut where the logarithm begins
        for one in models:
            with pytest.raises(DomainError, match="the model refuses all of these"):
                one.ask("d < 0")
            seen = [g.mean for g in (one.ask("d < 1.5"), one.ask("0 < d < 1.5"))]
            np.testing.assert_allclose(seen[0], seen[1], rtol=1e-12)


@pytest.mark.filterwarnings("ignore:invalid value encountered in log")
@pytest.mark.parametrize("row", [0, 17, 149])
def test_the_cell_that_a_model_refuses_is_named(row):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(1, 5, (150, 2)), columns=["z", "x"])
    model = make_pipeline(FunctionTransformer(np.log), LinearRegression()).fit(X, X.x)
    wrong = X.copy()
    wrong.loc[row, "x"] = -1.0
    refused = rf"the model refuses -1\.0 in column 'x' of row {row}"
    with pytest.raises(DomainError, match=refused):
        ExpectedPredictor(model, density=ChowLiu()).fit(wrong)
    predictor = ExpectedPredictor(model, density=ChowLiu()).fit(X)
    with pytest.raises(DomainError, match=refused):
        predictor.predict(wrong)
    with pytest.raises(ValueError, match="Input X contains NaN"):  # all rows: its own error
        predictor.predict(wrong.assign(x=-1.0))


def test_a_question_about_a_number_that_a_model_refuses_speaks_of_no_row():
    X = pd.DataFrame({"x": np.arange(60.0), "z": np.arange(60.0) % 7})
    predictor = ExpectedPredictor(DecisionTreeRegressor().fit(X, X.x), density=ChowLiu()).fit(X)
    with pytest.raises(DomainError, match=r"refuses 1e\+39 in column 'x'") as problem:
        predictor.ask("x == 1e39")
    assert "row 0" not in str(problem.value)
    assert "transformer" not in str(problem.value)


def test_a_number_is_refused_in_a_column_that_no_tree_asks_about():
    X = np.random.default_rng(0).gamma(2.0, size=(200, 3))
    tree = DecisionTreeRegressor(max_leaf_nodes=6, random_state=0)
    model = make_pipeline(PowerTransformer("box-cox"), tree).fit(X, X[:, 1] > 1.0)
    expected = ExpectedPredictor(model, ChowLiu()).fit(X)
    assert expected.expected_model.trust is Trust.EXACT
    rows = np.array([[1.0, 2.0, np.nan], [9e9, np.nan, 1.0], [-1.0, 2.0, np.nan]])
    np.testing.assert_array_equal(expected.predict(rows[:1]), [1.0])
    assert np.isfinite(expected.predict(rows[:2])).all()
    with pytest.raises(DomainError, match=r"refuses -1\.0 in column 'x0' of row 2"):
        expected.predict(rows)


def test_no_group_is_made_of_what_lies_between_whole_numbers():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"n": rng.integers(0, 6, 300), "b": rng.normal(size=300)})
    model = HistGradientBoostingRegressor(max_iter=20).fit(frame, frame["n"] * frame["b"])
    expected = ExpectedPredictor(model, ChowLiu()).fit(frame)
    assert "0.5" in expected.expected_model.density.encoder_.column("n").labels
    assert expected.dependence("n").labels == ("0", "1", "2", "3", "4", "5")
    groups = expected.split("n", bins=3)
    assert groups.labels == (("0 to 1", "2 to 3", "4 to 5"),)
    np.testing.assert_allclose(groups.share.sum(), 1.0, rtol=1e-9)


def test_probabilities_that_do_not_sum_to_one_stay_as_they_are():
    frame, y = table(kind="numeric")
    model = LogisticRegression().fit(frame, y > 0)
    model.predict_proba = lambda X: 0.5 * LogisticRegression.predict_proba(model, X)
    expected = ExpectedPredictor(model, ChowLiu(), rtol=0.02).fit(frame)
    np.testing.assert_allclose(
        expected.predict_proba(holes(frame, np.random.default_rng(0))).sum(1), 0.5
    )


# -- times and other objects ----------------------------------------------------------

DAYS = np.random.default_rng(0).integers(0, 400, 300)
MOMENTS = [datetime(2020, 1, 1, 9) + timedelta(days=int(day)) for day in DAYS]
TIME_COLUMNS = {
    "dates": pd.Series([moment.date() for moment in MOMENTS], dtype=object),
    "datetimes": pd.Series(MOMENTS, dtype=object),
    "aware": pd.Series([moment.replace(tzinfo=UTC) for moment in MOMENTS], dtype=object),
    "datetime64": pd.Series(pd.to_datetime(MOMENTS)),
    "zoned": pd.Series(pd.to_datetime(MOMENTS).tz_localize("Europe/Berlin")),
    "durations": pd.Series(pd.to_timedelta(DAYS, unit="h")),
    "integers": pd.Series(DAYS.tolist(), dtype=object),
}


@pytest.mark.parametrize("kind", TIME_COLUMNS)
@pytest.mark.parametrize("trees", [True, False])
def test_models_that_take_times_for_categories(kind, trees):
    """Days fall together in bins, and the encoder refuses times that it was not fitted to."""
    b = np.random.default_rng(1).normal(size=300)
    frame = pd.DataFrame({"d": TIME_COLUMNS[kind], "b": b})
    known = OrdinalEncoder() if kind != "integers" else FunctionTransformer(_lengths)
    steps = make_column_transformer((known, ["d"]), remainder="passthrough")
    inner = RandomForestRegressor(3, max_depth=4, random_state=0) if trees else LinearRegression()
    model = make_pipeline(steps, inner).fit(frame, DAYS / 50 + b)
    expected = ExpectedPredictor(model, ChowLiu(), rtol=0.1).fit(frame)
    np.testing.assert_allclose(expected.predict(frame), model.predict(frame), rtol=1e-12)
    some = frame.iloc[:6].copy()
    some.loc[[0, 1], "b"] = np.nan
    some.loc[2, "d"] = None
    answers = expected.predict(some)
    assert np.all(np.isfinite(answers))
    np.testing.assert_allclose(answers[3:], model.predict(frame.iloc[3:6]), rtol=1e-12)
    if kind == "dates":  # whatever form they come in
        np.testing.assert_array_equal(
            expected.predict(some.astype({"d": "datetime64[s]"})), answers
        )
    if kind != "integers":
        mean = expected.predict(pd.DataFrame({"d": [None], "b": [0.5]}))
        own = model.predict(frame.assign(b=0.5))
        assert abs(mean[0] - own.mean()) < 0.3 * own.std()
    assert np.isfinite(expected.ask().mean)


def _lengths(column):
    return column.astype(str).map(len)


@pytest.mark.parametrize("kind", ["time", "bytes"])
@pytest.mark.parametrize("ignore", [True, False])
def test_objects_that_cannot_be_made_again_are_refused(kind, ignore):
    cells = [time(int(day) % 24) if kind == "time" else b"%d" % (day % 5) for day in DAYS]
    frame = pd.DataFrame({"d": pd.Series(cells, dtype=object), "b": np.arange(300.0)})
    encoder = OneHotEncoder(handle_unknown="ignore" if ignore else "error")
    steps = make_column_transformer((encoder, ["d"]), remainder="passthrough")
    model = make_pipeline(steps, LinearRegression()).fit(frame, DAYS)
    with pytest.raises(DomainError, match=rf"in column 'd' \({kind}\); make these texts"):
        ExpectedPredictor(model, ChowLiu()).fit(frame)


# -- what users do --------------------------------------------------------------------


def test_tables_of_all_kinds_give_the_same():
    pl = pytest.importorskip("polars")
    frame, y = table(kind="numeric")
    model = RandomForestRegressor(5, random_state=0).fit(frame.to_numpy(), y)
    by_array = ExpectedPredictor(model, ChowLiu()).fit(frame.to_numpy())
    some = holes(frame, np.random.default_rng(0)).astype(float)
    answer = by_array.predict(some.to_numpy())
    named = RandomForestRegressor(5, random_state=0).fit(frame, y)
    by_frame = ExpectedPredictor(named, ChowLiu()).fit(frame)
    np.testing.assert_allclose(by_frame.predict(some), answer, rtol=1e-12)
    np.testing.assert_allclose(by_frame.predict(some[["c", "b", "a"]]), answer, rtol=1e-12)
    np.testing.assert_allclose(by_frame.predict(pl.from_pandas(some)), answer, rtol=1e-12)
    unknown = {name: [None if v != v else v for v in some[name]] for name in NUMBERS}
    np.testing.assert_allclose(by_frame.predict(unknown), answer, rtol=1e-12)
    with config_context(threads=1):
        np.testing.assert_allclose(by_frame.predict(some), answer, rtol=1e-12)
    parts = [by_frame.predict(some.iloc[[i]])[0] for i in range(len(some))]
    np.testing.assert_allclose(parts, answer, rtol=1e-12)


def test_columns_that_the_model_does_not_take_still_tell_something():
    frame, y = table(400)
    model = Ridge().fit(frame[["a", "c"]], y)
    expected = ExpectedPredictor(model, ChowLiu()).fit(frame)
    row = frame.iloc[[0, 0]].copy()
    row["a"] = np.nan
    row["b"] = [frame["b"].min(), frame["b"].max()]
    low, high = expected.predict(row)
    assert low != high
    np.testing.assert_allclose(expected.predict(frame), model.predict(frame[["a", "c"]]))


def test_the_demonstration():
    rng = np.random.default_rng(0)
    n = 5000
    x = np.where(rng.random(n) < 0.7, rng.random(n), -10 * rng.random(n))
    X, y = np.c_[x, rng.normal(size=n)], x**2
    row = np.array([[np.nan, 0.3]])
    for model in (
        RandomForestRegressor(10, min_samples_leaf=5, random_state=0),
        HistGradientBoostingRegressor(max_iter=50),
        LinearRegression(),
    ):
        expected = ExpectedPredictor(model.fit(X, y)).fit(X)
        assert expected.predict(row)[0] == pytest.approx(model.predict(X).mean(), rel=0.02)


def test_all_is_unknown_or_impossible_or_unseen():
    frame, y = table()
    model = make_pipeline(prepared("mixed", np.random.default_rng(0), True), TREES["tree"])
    model.fit(frame, y)
    density = ChowLiu(pseudo_count=0).fit(frame)
    expected = ExpectedPredictor(model, density).fit(frame)
    nothing = pd.DataFrame({name: [None] for name in frame})
    prior = enumerated(model, expected, nothing, of("predict"))
    np.testing.assert_allclose(expected.predict(nothing), prior[:, 0], rtol=1e-9)
    never = frame.iloc[[0]].copy().astype(object)
    never["a"], never["size"], never["c"] = frame["a"].max(), "small", None
    with pytest.warns(ImpossibleEvidenceWarning):
        assert np.isnan(expected.predict(never)).all()
    unseen = frame.iloc[[0]].astype(object)
    unseen["colour"] = "mauve"
    without = unseen.copy()
    without["colour"] = None
    np.testing.assert_allclose(
        expected.predict(unseen.assign(b=None)), expected.predict(without.assign(b=None))
    )
    assert expected.predict(frame.iloc[:0]).shape == (0,)


def test_intervals_cover_y():
    X, y = make_regression(1500, 4, n_informative=4, noise=10.0, random_state=0)
    model = GradientBoostingRegressor(random_state=0).fit(X[:500], y[:500])
    expected = ExpectedPredictor(model, LatentTree(states=4, random_state=0), rtol=0.05)
    expected.fit(X[:500])
    with pytest.raises(NotFittedError, match="calibrate"):
        expected.predict_interval(X[:1])
    expected.calibrate(X[500:1000], y[500:1000])
    rng = np.random.default_rng(0)
    for unknown in (0, 2, 4):
        rows = X[1000:].copy()
        rows[np.argsort(rng.random(rows.shape), axis=1) < unknown] = np.nan
        low, high = expected.predict_interval(rows, 0.9).T
        assert 0.84 < np.mean((low <= y[1000:]) & (y[1000:] <= high)) < 0.96


def test_calibration_passes_over_impossible_rows():
    frame, y = table(kind="mixed")
    model = make_pipeline(prepared("mixed", np.random.default_rng(0), True), TREES["tree"])
    model.fit(frame, y)
    expected = ExpectedPredictor(model, ChowLiu(pseudo_count=0).fit(frame)).fit(frame)
    rows = frame.astype(object)
    rows["colour"] = None  # no row is complete
    rows.loc[0, ["a", "size"]] = [frame["a"].max(), "small"]  # and one is impossible
    with pytest.warns(ImpossibleEvidenceWarning):
        expected.calibrate(rows, y)
    assert np.isfinite(expected.noise_)
    with pytest.warns(ImpossibleEvidenceWarning), pytest.raises(DomainError, match="possible"):
        expected.calibrate(rows.iloc[:1], y[:1])


def test_moments():
    frame, y = table(kind="numeric")
    some = holes(frame, np.random.default_rng(0))
    for model in (Ridge(), DecisionTreeRegressor(max_depth=3)):
        expected = ExpectedPredictor(model.fit(frame, y), ChowLiu()).fit(frame)
        found = expected.predict_moments(some, 3)
        for k in range(4):
            obvious = enumerated(model, expected, some, lambda m, f, k=k: of("predict")(m, f) ** k)
            np.testing.assert_allclose(found[:, k], obvious[:, 0], rtol=1e-7, atol=1e-7)
        central = expected.predict_moments(some, 2, central=True)
        spread = expected.predict(some, return_std=True)[1]
        np.testing.assert_allclose(central[:, 2], spread**2, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("shift", [1e6, 1e9, -1e12])
@pytest.mark.parametrize("kind", ["tree", "boosted", "forest"])
def test_moments_do_not_cancel(kind, shift):
    """Targets far from zero have the spread of those near it."""
    frame, y = table(kind="numeric")
    y = np.round(y * 1024) / 1024  # so that adding the shift loses little
    some = holes(frame, np.random.default_rng(0))
    make = {
        "tree": lambda: DecisionTreeRegressor(max_depth=3, random_state=0),
        "boosted": lambda: GradientBoostingRegressor(
            init="zero", n_estimators=3, max_depth=2, learning_rate=1.0, random_state=0
        ),
        "forest": lambda: RandomForestRegressor(3, max_depth=2, random_state=0),
    }[kind]
    answers, spreads = [], []
    for add in (0.0, shift):
        model = make().fit(frame, y)
        for tree in np.ravel(getattr(model, "estimators_", [model]))[:1]:
            tree.tree_.value[:] += add * (1 if kind != "forest" else 3)
        expected = ExpectedPredictor(model, ChowLiu()).fit(frame)
        answers.append(expected.predict_moments(some, 3, central=True))
        mean, std = expected.predict(some, return_std=True)
        assert abs(mean - add).max() < 1e-6 * abs(add) + 100
        spreads.append(std)
    loss = 4e-16 * abs(shift)  # what the leaves themselves have lost
    np.testing.assert_allclose(answers[1], answers[0], rtol=1e-9, atol=100 * loss)
    np.testing.assert_allclose(spreads[1], spreads[0], rtol=1e-9, atol=100 * loss)
    np.testing.assert_allclose(spreads[0] ** 2, answers[0][:, 2], rtol=1e-9, atol=1e-20)


@pytest.mark.parametrize("few", [True, False])
def test_the_spread_of_rows_far_from_the_mean(few):
    """A known column moves the output by millions, what is unknown by less than one."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (400, 3)).astype(float)
    y = np.where(X[:, 0] > 1, 4.0**12, -(4.0**12)) + X[:, 1] / 8 * (X[:, 2] > 1)
    if few:
        model = DecisionTreeRegressor(random_state=0)
    else:
        model = GradientBoostingRegressor(n_estimators=40, max_depth=3, random_state=0)
    expected = ExpectedPredictor(model.fit(X, y), ChowLiu()).fit(X)
    rows = np.array([[0, np.nan, np.nan], [3, np.nan, 2], [3, 1, np.nan], [1, np.nan, 0]])
    spread = expected.predict(rows, return_std=True)[1]
    density = expected.density_ if hasattr(expected, "density_") else expected.density
    for row, std in zip(rows, spread, strict=True):
        grid = np.array(list(itertools.product(*([x] if x == x else range(4) for x in row))))
        weight = np.exp(density.score_samples(grid))
        output = model.predict(grid)
        output -= output[0]
        mean = np.average(output, weights=weight)
        true = np.sqrt(np.average((output - mean) ** 2, weights=weight))
        assert std == pytest.approx(true, rel=1e-6, abs=1e-7)
        group = {f"x{k}": int(x) for k, x in enumerate(row) if x == x}
        assert expected.ask(group).std == pytest.approx(true, rel=1e-6, abs=1e-7)


def test_counts_and_margins():
    frame, y = table(kind="numeric")
    some = holes(frame, np.random.default_rng(0))
    model = PoissonRegressor().fit(frame, np.exp(y / 5).round())
    expected = ExpectedPredictor(model, ChowLiu()).fit(frame)
    obvious = enumerated(model, expected, some, of("predict"))[:, 0]
    np.testing.assert_allclose(expected.predict(some), obvious, rtol=1e-9)
    model = RidgeClassifier().fit(frame, y > 0)
    expected = ExpectedPredictor(model, ChowLiu()).fit(frame)
    margin = enumerated(model, expected, some, of("decision_function"))[:, 0]
    np.testing.assert_allclose(expected.decision_function(some), margin, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(expected.predict(some), margin > 0)
    with pytest.raises(AttributeError, match="no probabilities"):
        expected.predict_proba(some)


def test_models_stay_as_they_are():
    frame, y = table(kind="numeric")
    model = HuberRegressor().fit(frame, y)
    expected = ExpectedPredictor(FrozenEstimator(model), ChowLiu()).fit(frame)
    again = clone(expected)
    assert again.model is expected.model
    assert not hasattr(again, "wrapped_")
    some = holes(frame, np.random.default_rng(0))
    np.testing.assert_allclose(again.fit(frame).predict(some), expected.predict(some))
    copied = pickle.loads(pickle.dumps(expected))
    np.testing.assert_array_equal(copied.predict(some), expected.predict(some))


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (Ridge(), "not fitted"),
        (Ridge, "not the class Ridge"),
        (StandardScaler(), "no predict"),
        (KMeans(2).fit([[0.0], [1.0]]), "neither classifies"),
        ("ridge", "no predict"),
    ],
)
def test_what_cannot_be_answered_for_is_refused_at_once(model, problem):
    with pytest.raises((TypeError, DomainError), match=problem):
        ExpectedPredictor(model)


def test_errors_say_what_to_do():
    frame, y = table(kind="numeric")
    model = Ridge().fit(frame, y)
    with pytest.raises(NotFittedError, match=r"call fit\(X\) first"):
        ExpectedPredictor(model).predict(frame)
    with pytest.raises(TypeError, match="density must be a Density"):
        ExpectedPredictor(model, "latent").fit(frame)
    expected = ExpectedPredictor(model, ChowLiu()).fit(frame)
    with config_context(columns="strict"), pytest.raises(DomainError, match="column 'b'"):
        expected.predict(frame[["a", "c"]])
    with pytest.raises(DomainError, match="no row is complete"):
        ExpectedPredictor(model, ChowLiu()).fit(frame.mask(np.eye(len(frame), 3) < 2))


@pytest.mark.parametrize("kind", ["numeric", "mixed"])
def test_no_training_row_need_be_complete(kind):
    frame, y = table(kind=kind)
    words = list(frame.select_dtypes(exclude="number"))
    coded = make_column_transformer((OneHotEncoder(), words), remainder="passthrough")
    model = make_pipeline(coded, Ridge()).fit(frame, y)
    gone = np.arange(frame.size).reshape(frame.shape) % (frame.shape[1] + 1) < 2
    assert gone.any(axis=1).all()
    holed = frame.mask(gone)
    expected = ExpectedPredictor(model, ChowLiu(), random_state=0).fit(holed)
    truth = enumerated(model, expected, holed[:9], of("predict"))[:, 0]
    np.testing.assert_allclose(expected.predict(holed[:9]), truth, rtol=1e-8)
    for make in (pl.from_pandas, dict):
        same = ExpectedPredictor(model, ChowLiu(), random_state=0).fit(make(holed))
        np.testing.assert_allclose(same.predict(make(holed[:9])), truth, rtol=1e-8)


@pytest.mark.filterwarnings("ignore:l1_reg")  # of shap's before 0.47
def test_shapley_values_are_those_of_conditional_expectations():
    shap = pytest.importorskip("shap")
    frame, y = table(kind="mixed")
    X = np.column_stack([frame[NUMBERS], pd.factorize(frame["colour"])[0]])
    model = GradientBoostingRegressor(n_estimators=10, random_state=0).fit(X, y)
    expected = ExpectedPredictor(model, ChowLiu()).fit(X)

    @cache
    def worth(r, known):
        hidden = np.full((1, 4), np.nan)
        hidden[0, list(known)] = X[r, list(known)]
        return expected.predict(hidden)[0]

    obvious = np.zeros((2, 4))
    for r, order in itertools.product(range(2), itertools.permutations(range(4))):
        for k, column in enumerate(order):
            gain = worth(r, frozenset(order[: k + 1])) - worth(r, frozenset(order[:k]))
            obvious[r, column] += gain / 24
    nothing = np.full((1, 4), np.nan)
    kernel = shap.KernelExplainer(expected.predict, nothing)
    np.testing.assert_allclose(kernel.shap_values(X[:2], silent=True), obvious, atol=1e-8)
    exact = shap.explainers.Exact(expected.predict, shap.maskers.Independent(nothing))
    np.testing.assert_allclose(exact(X[:2]).values, obvious, atol=1e-8)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_known_margin_explains_part_of_the_draws(classes):
    X, y = table(kind="numeric")
    model = GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0)
    model.fit(X, np.digitize(y, np.quantile(y, np.arange(1, classes) / classes)))
    expected = ExpectedPredictor(model, ChowLiu()).fit(X)
    answers = expected.wrapped_
    rows = answers.rows(holes(X, np.random.default_rng(0)).astype(float))
    exact = expected.predict_proba(rows.table)
    assert answers.route.margin.is_small  # so that this is no sample
    answers._max_samples, answers._rtol = 100_000, 0.1 * answers._rtol
    draws = []
    for with_control in (True, False):
        found = answers._sampled(rows, np.arange(12), with_control=with_control)
        assert np.all(np.abs(found.mean - exact) < 5 * found.error + 1e-12)
        draws.append(found.samples.mean())
    assert draws[0] < 0.5 * draws[1]


class Bare:
    """Nothing but predict, and for two classes predict_proba."""

    def predict(self, X):
        return np.asarray(X, float).max(axis=1)


class BareClassifier(Bare):
    classes_ = np.array(["low", "high"])

    def predict_proba(self, X):
        high = 1 / (1 + np.exp(-super().predict(X)))
        return np.stack([1 - high, high], axis=1)

    def predict(self, X):
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]


def test_anything_with_predict_is_sampled():
    X = table(kind="numeric")[0]
    some = holes(X, np.random.default_rng(0)).astype(float)
    expected = ExpectedPredictor(Bare(), ChowLiu()).fit(X)
    mean, error = expected.predict(some, return_error=True)
    truth = enumerated(Bare(), expected, some, of("predict"))[:, 0]
    assert np.all(np.abs(mean - truth) <= 5 * error + 1e-12)
    expected = ExpectedPredictor(BareClassifier(), ChowLiu()).fit(X)
    mean, error = expected.predict_proba(some, return_error=True)
    truth = enumerated(BareClassifier(), expected, some, of("predict_proba"))
    assert np.all(np.abs(mean - truth) <= 5 * error + 1e-12)
    assert set(expected.predict(some)) <= {"low", "high"}


class OlderRegressor(Bare):
    """As CatBoost's before 1.2.8: no tags, and an attribute of classifiers."""

    _estimator_type = "regressor"
    classes_ = None


@pytest.mark.parametrize("model", [Bare(), OlderRegressor(), LinearRegression()])
def test_models_of_numbers_have_no_classes(model):
    assert not classifies(model)


@pytest.mark.parametrize("model", [BareClassifier(), LogisticRegression()])
def test_models_of_classes_have_classes(model):
    assert classifies(model)


def test_rare_categories_are_drawn_as_they_are():
    rng = np.random.default_rng(0)
    which = rng.integers(0, 40, 1500)
    frame = pd.DataFrame({"g": np.char.add("g", which.astype(str)), "x": rng.normal(size=1500)})
    y = which * 1.0
    one_hot = make_column_transformer((OneHotEncoder(), ["g"]), remainder="passthrough")
    model = make_pipeline(one_hot, RandomForestRegressor(3, random_state=0)).fit(frame, y)
    expected = ExpectedPredictor(model, ChowLiu(encoder=Encoder(max_categories=5))).fit(frame)
    assert expected.wrapped_.route is None  # the density takes most of them together
    row = pd.DataFrame({"g": [None], "x": [0.5]})
    mean, error = expected.predict(row, return_error=True)
    assert abs(mean[0] - model.predict(frame.assign(x=0.5)).mean()) < 5 * error[0] + 0.2


def test_no_probability_where_no_value_can_be():
    frame = pd.DataFrame({"i": np.arange(60) % 12, "x": np.arange(60) % 2})
    model = DecisionTreeRegressor().fit(frame, np.where(frame.i >= 11, 1000.0, 0.0))
    expected = ExpectedPredictor(model, ChowLiu(encoder=Encoder(max_bins=32))).fit(frame)
    found = expected.predict(pd.DataFrame({"i": [None], "x": [None]}))
    share = expected.density_.marginal("i").probabilities[-1]
    assert found[0] == pytest.approx(1000 * share, rel=1e-6)


def test_arrays_are_in_the_order_of_fit():
    frame, y = table(kind="numeric")
    model = LinearRegression().fit(frame[["c", "a", "b"]], y)
    expected = ExpectedPredictor(model, ChowLiu()).fit(frame)
    some = holes(frame, np.random.default_rng(0)).astype(float)
    np.testing.assert_allclose(expected.predict(some.to_numpy()), expected.predict(some))
    np.testing.assert_allclose(expected.predict(frame.to_numpy()), expected.predict(frame))


def test_classes_that_are_not_of_the_largest_probability():
    frame, y = table(kind="numeric")
    three = np.digitize(y, np.quantile(y, [0.4, 0.7]))
    model = FixedThresholdClassifier(LogisticRegression(), threshold=0.1).fit(frame, three > 1)
    expected = ExpectedPredictor(model, ChowLiu()).fit(frame)
    np.testing.assert_array_equal(expected.predict(frame), model.predict(frame))
    some = holes(frame, np.random.default_rng(0)).astype(float)
    with pytest.raises(TypeError, match="use predict_proba and your rule"):
        expected.predict(some)
    assert expected.predict_proba(some).shape == (len(some), 2)
    pairs = SVC(decision_function_shape="ovo").fit(
        frame, np.digitize(y, np.quantile(y, [0.2, 0.5, 0.7]))
    )
    with pytest.raises(TypeError, match="decision_function_shape='ovr'"):
        ExpectedPredictor(pairs, ChowLiu()).fit(frame)
    both = np.stack([three > 0, three > 1], axis=1)
    with pytest.raises(TypeError, match="several targets"):
        ExpectedPredictor(RandomForestClassifier(3).fit(frame, both))
    several = MLPClassifier(max_iter=5000, random_state=0).fit(frame.iloc[:20], both[:20])
    with pytest.raises(TypeError, match="several labels"):
        ExpectedPredictor(several, ChowLiu()).fit(frame)
    hard = VotingClassifier([("a", LogisticRegression())], voting="hard").fit(frame, three)
    with pytest.raises(TypeError, match="voting='soft'"):
        ExpectedPredictor(hard)


def test_integers_that_may_be_missing_and_have_a_value_for_it():
    rng = np.random.default_rng(0)
    h = pd.array([None if r < 0.3 else int(r * 10) for r in rng.random(200)], dtype="Int64")
    frame = pd.DataFrame({"h": h, "a": rng.integers(0, 3, 200) * 1.0})
    model = HistGradientBoostingRegressor(max_iter=3).fit(frame, frame.h.fillna(20).to_numpy(float))
    expected = ExpectedPredictor(model, ChowLiu(), missing_is_value=["h"]).fit(frame)
    np.testing.assert_allclose(expected.predict(frame), model.predict(frame), rtol=1e-9)


def test_draws_of_whole_numbers_are_whole():
    rng = np.random.default_rng(0)
    z = rng.integers(0, 500, 2000).astype(float)
    frame = pd.DataFrame({"z": z, "x": rng.normal(size=2000)})

    class Whole:
        def predict(self, X):
            return np.asarray(X["z"] % 1 != 0, float)

    expected = ExpectedPredictor(Whole(), ChowLiu()).fit(frame)
    assert expected.predict(frame.assign(z=np.nan).head(3)).tolist() == [0.0] * 3


def test_classes_without_scores_are_refused():
    class Labels(Bare):
        classes_ = np.array([0, 1])

    with pytest.raises(TypeError, match="no probabilities or margins"):
        ExpectedPredictor(Labels())


def test_a_bare_booster_is_refused():
    xgboost = pytest.importorskip("xgboost")
    X, y = table(kind="numeric")
    model = xgboost.XGBRegressor(n_estimators=2).fit(X, y)
    with pytest.raises(TypeError, match="load_model it in an XGBRegressor"):
        ExpectedPredictor(model.get_booster())


# -- fitting again, scores and warnings -----------------------------------------------


def test_a_fit_that_fails_leaves_everything_as_it_was():
    frame, y = table(kind="numeric")
    model = Ridge().fit(frame, y)
    expected = ExpectedPredictor(model, ChowLiu()).fit(frame, y)
    expected.calibrate(frame, y)
    before = dict(vars(expected))
    some = holes(frame, np.random.default_rng(0))
    answers = expected.predict(some)
    for wrong in (frame[["a", "b"]], frame.assign(c=np.nan), frame.assign(c="red")):
        with pytest.raises((ValueError, TypeError)):
            expected.fit(wrong, y)
        assert vars(expected) == before
    with pytest.raises(ValueError, match="y"):
        expected.fit(frame, y[:-1])
    assert vars(expected) == before
    np.testing.assert_array_equal(expected.predict(some), answers)
    assert not hasattr(expected.fit(frame, y), "calibration_")


def test_scores_are_those_of_scikit_learn():
    frame, y = table(kind="numeric")
    some = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.2)
    expected = ExpectedPredictor(Ridge().fit(frame, y), ChowLiu()).fit(some, y)
    weight = np.arange(len(y))
    assert expected.score(some, y, weight) == r2_score(
        y, expected.predict(some), sample_weight=weight
    )
    assert len(cross_val_score(expected, some, y, cv=2)) == 2
    labels = np.where(y > 0, "high", "low")
    expected = ExpectedPredictor(LogisticRegression().fit(frame, labels), ChowLiu()).fit(some)
    assert expected.score(some, labels) == np.mean(expected.predict(some) == labels)


@pytest.mark.parametrize("kind", ["linear", "trees", "sampled"])
def test_impossible_rows_are_warned_of_once(kind):
    X = np.array([[0.0, 0.0, 1.0], [1.0, 1.0, 2.0]] * 20)
    y = X[:, 0] + X[:, 2]
    model = {
        "linear": LinearRegression(),
        "trees": DecisionTreeRegressor(max_depth=2),
        "sampled": KNeighborsRegressor(1),
    }[kind].fit(X, y)
    expected = ExpectedPredictor(model, ChowLiu(pseudo_count=0)).fit(X).calibrate(X, y)
    rows = np.array([[0.0, 1.0, np.nan], [0.0, np.nan, np.nan]])
    verbs = [
        lambda: expected.predict(rows),
        lambda: expected.predict(rows, return_std=True, return_error=True),
        lambda: expected.predict_interval(rows),
        lambda: expected.predict_distribution(rows),
    ]
    if kind != "sampled":
        verbs += [
            lambda: expected.predict_moments(rows),
            lambda: expected.predict_moments(rows, central=True),
            lambda: expected.decision_function(rows),
        ]
    for verb in verbs:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            verb()
        assert [one.category for one in caught] == [ImpossibleEvidenceWarning]
        assert str(caught[0].message).startswith("1 of 2 rows has probability zero")
        assert caught[0].filename == __file__
