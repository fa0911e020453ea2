"""The contract of all estimators: the same verbs, signatures, defaults, errors and files."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PowerTransformer, StandardScaler

from expecta import (
    ChowLiu,
    CircuitClassifier,
    CircuitRegressor,
    DomainError,
    ExpectedPredictor,
    ImpossibleEvidenceWarning,
)

RNG = np.random.default_rng(3)
N = 160
X = pd.DataFrame({"a": RNG.normal(size=N).round(2), "b": RNG.integers(0, 4, N).astype(float)})
X["c"] = (X["a"] + RNG.normal(size=N)).round(2)
NUMBER = 8.0 + X["a"] * 2 + X["b"] + RNG.normal(0, 0.3, N)
TWO = np.where(X["a"] + 0.3 * X["b"] > 0.4, "yes", "no")
THREE = np.array(["low", "mid", "top"])[np.digitize(NUMBER, [8.5, 10.5])]
MISSING = X.mask(np.random.default_rng(1).random(X.shape) < 0.4)

MAKERS = {
    "CircuitRegressor": lambda: CircuitRegressor(density=ChowLiu(), max_splits=2),
    "CircuitRegressor, logarithm": lambda: CircuitRegressor(
        density=ChowLiu(), max_splits=2, target_transform="log"
    ),
    "CircuitClassifier": lambda: CircuitClassifier(density=ChowLiu(), max_splits=2),
    "ExpectedPredictor, regression": lambda: ExpectedPredictor(
        LinearRegression().fit(X, NUMBER), ChowLiu()
    ),
    "ExpectedPredictor, classification": lambda: ExpectedPredictor(
        HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=4).fit(X, TWO), ChowLiu()
    ),
}
REGRESSION = [name for name in MAKERS if "Regress" in name or "regression" in name]
CLASSIFICATION = [name for name in MAKERS if name not in REGRESSION]
EVERY = [
    *("predict", "predict_moments", "predict_distribution", "score_samples", "save", "load"),
    "score",
    *("ask", "compare", "split", "dependence", "next_question", "stability", "sufficient"),
    *("shapley", "disparities", "outliers", "expected_output", "check_density"),
]
ONLY_REGRESSION = ["calibrate", "predict_interval", "predict_noise", "predict_quantiles"]
ONLY_CLASSIFICATION = ["predict_proba", "predict_log_proba"]


@pytest.fixture(scope="module")
def fitted():
    models = {}
    for name, make in MAKERS.items():
        model = make().fit(X, NUMBER if name in REGRESSION else TWO)
        if name in REGRESSION and not hasattr(model, "calibration_"):
            model.calibrate(X, NUMBER)
        models[name] = model
    return models


@pytest.mark.parametrize("name", MAKERS)
def test_verbs_signatures_and_defaults(fitted, name):
    model = fitted[name]
    verbs = EVERY + (ONLY_REGRESSION if name in REGRESSION else ONLY_CLASSIFICATION)
    others = ONLY_CLASSIFICATION if name in REGRESSION else ONLY_REGRESSION
    first = fitted["CircuitRegressor" if name in REGRESSION else "CircuitClassifier"]
    for verb in verbs:
        ours = inspect.signature(getattr(model, verb)).parameters
        theirs = inspect.signature(getattr(first, verb)).parameters
        shared = {key: ours[key].default for key in ours if key in theirs}
        assert shared == {key: theirs[key].default for key in shared}, verb
        assert set(ours) <= set(theirs), verb  # a circuit's predict_proba also has Taylor's
    for verb in others:
        with pytest.raises(AttributeError, match=verb):
            getattr(model, verb)
    assert model.get_params()["random_state"] == 0
    assert model.get_params().get("tol", 1e-9) == 1e-9


@pytest.mark.parametrize("name", MAKERS)
def test_nothing_is_answered_before_fit(name):
    model = MAKERS[name]()
    for ask in (
        lambda: model.predict(MISSING),
        lambda: model.score_samples(MISSING),
        lambda: model.predict_moments(MISSING),
        *([lambda: model.predict_noise(MISSING)] if name in REGRESSION else []),
        lambda: model.ask(),
        lambda: model.outliers(MISSING),
        lambda: model.check_density(),
        lambda: model.check_density(MISSING),
        lambda: model.save("nowhere"),
    ):
        with pytest.raises(NotFittedError):
            ask()


@pytest.mark.parametrize("name", [name for name in MAKERS if name not in REGRESSION])
def test_spread_of_probabilities(fitted, name):
    model = fitted[name]
    complete = ~MISSING.isna().any(axis=1).to_numpy()
    probability, std = model.predict_proba(MISSING, return_std=True)
    np.testing.assert_array_equal(probability, model.predict_proba(MISSING))
    assert std.shape == probability.shape
    assert np.all(std[complete] == 0)
    assert np.any(std[~complete] > 0)
    assert np.all(std**2 <= probability * (1 - probability) + 1e-9)  # as of any number in [0, 1]
    *_, error = model.predict_proba(MISSING, return_std=True, return_error=True)
    assert error.shape == std.shape


@pytest.mark.parametrize("name", REGRESSION)
def test_regression(fitted, name):
    model = fitted[name]
    mean, std, error = model.predict(MISSING, return_std=True, return_error=True)
    complete = ~MISSING.isna().any(axis=1).to_numpy()
    assert mean.shape == std.shape == error.shape == (N,)
    assert np.all(std[complete] == 0)
    assert np.all(std[~complete] > 0)
    assert np.all(error == 0)
    np.testing.assert_allclose(mean, model.predict(MISSING), rtol=1e-12)
    moments = model.predict_moments(MISSING, 2, central=True)
    if model.target_scale_.origin is None:  # else they are of the logarithm
        np.testing.assert_allclose(np.sqrt(moments[:, 2]), std, rtol=1e-7, atol=1e-7)
    interval = model.predict_interval(MISSING, coverage=0.8)
    quantiles = model.predict_quantiles(MISSING, [0.1, 0.9])
    np.testing.assert_array_equal(interval, quantiles)
    covered = (interval[:, 0] <= NUMBER) & (interval[:, 1] >= NUMBER)
    assert 0.7 < covered.mean() < 0.95
    distribution = model.predict_distribution(MISSING)
    low, high = distribution.interval(0.8)
    assert np.all(low < high)
    level = distribution.cdf(distribution.quantile(0.3)[:, None])[:, 0]
    np.testing.assert_allclose(level, 0.3, atol=1 / N)  # scores held out may be alike
    np.testing.assert_allclose(distribution.above(1.0), 1 - distribution.cdf(1.0))
    output = model.predict_distribution(MISSING, noise=0.0)
    assert np.all(output.cdf(mean[:, None] + 1e-9)[complete] == 1)
    for coverage in (0.0, 1.0, -1, 2):
        with pytest.raises(DomainError, match="coverage"):
            model.predict_interval(MISSING, coverage=coverage)
    with pytest.raises(DomainError, match="between 0 and 1"):
        model.predict_quantiles(MISSING, [0.5, 1.0])
    with pytest.raises(DomainError, match="no rows"):
        model.calibrate(X[:0], NUMBER[:0])


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_classification(fitted, name):
    model = fitted[name]
    labels, label_error = model.predict(MISSING, return_error=True)
    probability, error = model.predict_proba(MISSING, return_error=True)
    assert probability.shape == error.shape == label_error.shape == (N, 2)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    np.testing.assert_array_equal(labels, model.classes_[probability.argmax(axis=1)])
    np.testing.assert_array_equal(labels, model.predict(MISSING))
    np.testing.assert_allclose(model.predict_log_proba(MISSING), np.log(probability))
    with pytest.raises(DomainError, match="no standard deviation"):
        model.predict(MISSING, return_std=True)
    # of the log-odds, whose moments are known
    distribution = model.predict_distribution(MISSING)
    moments = model.predict_moments(MISSING, 2, central=False)
    middle = distribution.quantile(0.5)
    assert middle.shape == (N,)
    assert np.all(np.abs(middle - moments[:, 1]) <= np.sqrt(moments[:, 2]) + 1e-9)


@pytest.mark.parametrize("name", MAKERS)
def test_questions_and_predictions_are_one_answer(fitted, name):
    model = fitted[name]
    everyone = model.ask()
    nothing = X[:1].astype(float) * np.nan
    if name in REGRESSION:
        predicted, std = (part[0] for part in model.predict(nothing, return_std=True))
        assert everyone.std == pytest.approx(std, rel=1e-9)
    else:
        predicted = model.predict_proba(nothing)[0, 1]
    assert everyone.density_mean == pytest.approx(predicted, rel=1e-6)
    # what ask calls the share of a row is what score_samples says of it
    row = {"a": float(X["a"][0]), "b": float(X["b"][0]), "c": None}
    score = model.score_samples(pd.DataFrame({key: [value] for key, value in row.items()}))
    output = model.expected_output()
    table = output.table(pd.DataFrame({key: [value] for key, value in row.items()}))
    assert output.probability(output.encoder.evidence(table)) == pytest.approx(np.exp(score))
    assert model.expected_output() is output


@pytest.mark.parametrize("name", MAKERS)
def test_files(fitted, name, tmp_path):
    model = fitted[name]
    path = tmp_path / "model.expecta"
    model.save(path, rows=True)
    loaded = type(model).load(path)
    assert_same(model, loaded, name in REGRESSION)
    assert loaded.ask(a=(0, None)).rows == model.ask(a=(0, None)).rows
    model.save(path)
    assert type(model).load(path).training_rows_ is None
    loaded.save(path)
    assert_same(loaded, type(model).load(path), name in REGRESSION)


def assert_same(model, loaded, regression, rtol=1e-9):
    """Compare all that is predicted, also of complete rows."""
    for rows in (MISSING, X):
        if regression:
            for a, b in zip(
                model.predict(rows, return_std=True),
                loaded.predict(rows, return_std=True),
                strict=True,
            ):
                np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)
        else:
            np.testing.assert_allclose(
                model.predict_proba(rows), loaded.predict_proba(rows), rtol=rtol, atol=rtol
            )
            np.testing.assert_array_equal(model.predict(rows), loaded.predict(rows))
        np.testing.assert_allclose(model.score_samples(rows), loaded.score_samples(rows))
    if hasattr(model, "calibration_"):
        np.testing.assert_allclose(
            model.predict_interval(MISSING), loaded.predict_interval(MISSING), rtol=1e-6, atol=1e-6
        )
    of = None if regression or len(model.classes_) == 2 else model.classes_[0]
    assert loaded.ask(of=of).mean == pytest.approx(model.ask(of=of).mean, rel=1e-9)
    ours, theirs = (one.ask(of=of).exactness.splitlines() for one in (model, loaded))
    differ = [a for a, b in zip(ours, theirs, strict=True) if a != b]
    assert all("Complete rows" in line for line in differ)  # the model itself is not in the file


@pytest.mark.parametrize(
    ("wrapped", "target"),
    [
        (RandomForestRegressor(n_estimators=4, max_depth=3, random_state=0), NUMBER),
        (PoissonRegressor(), NUMBER - NUMBER.min()),
        (make_pipeline(StandardScaler(), LogisticRegression()), TWO),
        (LogisticRegression(), THREE),
        (HistGradientBoostingClassifier(max_iter=4, max_leaf_nodes=4), THREE),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_was_read_of_a_model_is_saved(wrapped, target, tmp_path):
    model = ExpectedPredictor(wrapped.fit(X, target), ChowLiu(), max_samples=2000).fit(X, target)
    model.save(tmp_path / "model")
    loaded = ExpectedPredictor.load(tmp_path / "model")
    regression = not hasattr(model, "classes_")
    several = not regression and len(model.classes_) > 2
    if not several:  # what is sampled is drawn from the form, not from the model
        assert_same(model, loaded, regression)
    else:
        np.testing.assert_allclose(model.predict_proba(X), loaded.predict_proba(X), rtol=1e-6)
        np.testing.assert_allclose(
            model.decision_function(MISSING), loaded.decision_function(MISSING)
        )
    with pytest.raises(DomainError, match="not in the file"):
        loaded.model.predict(X)
    with pytest.raises(DomainError, match="not in the file"):
        loaded.fit(X)


def test_a_loaded_predictor_needs_no_library(tmp_path):
    xgboost = pytest.importorskip("xgboost")
    booster = xgboost.XGBRegressor(n_estimators=5, max_depth=3).fit(X, NUMBER)
    model = ExpectedPredictor(booster, ChowLiu()).fit(X)
    model.save(tmp_path / "model")
    code = (
        "import sys; sys.modules['xgboost'] = None\n"
        "from expecta import ExpectedPredictor\n"
        f"model = ExpectedPredictor.load({str(tmp_path / 'model')!r})\n"
        "print(repr(float(model.predict({'a': [0.5], 'b': [None], 'c': [None]})[0])))\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = model.predict({"a": [0.5], "b": [None], "c": [None]})[0]
    assert float(out.stdout) == pytest.approx(expected, rel=1e-9)


def test_what_cannot_be_saved_says_so(tmp_path):
    sampled = ExpectedPredictor(KNeighborsRegressor().fit(X, NUMBER), ChowLiu()).fit(X)
    with pytest.raises(DomainError, match="samples the KNeighborsRegressor itself"):
        sampled.save(tmp_path / "model")
    bent = make_pipeline(PowerTransformer(), LinearRegression()).fit(X, NUMBER)
    with pytest.raises(DomainError, match="not a multiple of it"):
        ExpectedPredictor(bent, ChowLiu()).fit(X).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("name", MAKERS)
def test_impossible_rows_warn_and_are_unknown(name):
    model = MAKERS[name]()
    frame = X.assign(b=np.where(X["a"] > 0, 1.0, 0.0))
    model.set_params(density=ChowLiu(pseudo_count=0))
    model.fit(frame, NUMBER if name in REGRESSION else TWO)
    row = pd.DataFrame({"a": [float(frame["a"].max())], "b": [0.0], "c": [None]})
    with pytest.warns(ImpossibleEvidenceWarning):
        answer = model.predict(row) if name in REGRESSION else model.predict_proba(row)
    assert np.all(np.isnan(answer))


def test_what_is_sampled_of_a_saved_model_is_its_own(tmp_path):
    """A known number far from the mean of its bin counts as it is."""
    rng = np.random.default_rng(1)
    table = rng.normal(size=(400, 2))
    target = np.digitize(0.3 * table[:, 0] + 2 * table[:, 1] + rng.normal(0, 0.5, 400), [-1, 1])
    rows = [[8.0, np.nan], [0.3, np.nan], [np.nan, -0.4]]
    several = ExpectedPredictor(LogisticRegression().fit(table, target), ChowLiu()).fit(table)
    several.save(tmp_path / "model")
    ours, error = several.predict_proba(rows, return_error=True)
    theirs, other = ExpectedPredictor.load(tmp_path / "model").predict_proba(
        rows, return_error=True
    )
    assert np.all(np.abs(ours - theirs) < 5 * np.hypot(error, other))
    counts = rng.poisson(np.exp(0.5 * table.sum(axis=1)))
    poisson = ExpectedPredictor(PoissonRegressor(alpha=0.01).fit(table, counts), ChowLiu())
    poisson.fit(table).save(tmp_path / "model")
    loaded = ExpectedPredictor.load(tmp_path / "model")
    std = poisson.predict(rows, return_std=True)[1]
    np.testing.assert_allclose(loaded.predict(rows, return_std=True)[1], std, rtol=0.1)


def categories():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"c": rng.choice(list("xyz"), N), "z": rng.normal(size=N).round(2)})
    return table, (table["c"] == "x") * 2.0 + table["z"]


def encoded(model, handle_unknown="ignore"):
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown=handle_unknown), ["c"]), remainder="passthrough"
    )
    return make_pipeline(columns, model)


@pytest.mark.parametrize("wrapped", [KNeighborsRegressor(), PoissonRegressor()])
def test_an_unseen_category_is_unknown_where_samples_are_drawn(wrapped):
    table, target = categories()
    inner = encoded(wrapped, "error").fit(table, target - target.min())
    model = ExpectedPredictor(inner, ChowLiu()).fit(table)
    unseen = model.predict(pd.DataFrame({"c": ["new"], "z": [None]}), return_std=True)
    unknown = model.predict(pd.DataFrame({"c": [None], "z": [None]}), return_std=True)
    np.testing.assert_allclose(unseen, unknown, rtol=0.1)


def test_an_unseen_category_of_a_saved_model_is_unknown(tmp_path):
    table, target = categories()
    inner = encoded(LogisticRegression()).fit(table, target > 0.5)
    model = ExpectedPredictor(inner, ChowLiu()).fit(table)
    model.save(tmp_path / "model")
    loaded = ExpectedPredictor.load(tmp_path / "model")
    unseen = loaded.predict_proba(pd.DataFrame({"c": ["new"], "z": [0.3]}))
    unknown = model.predict_proba(pd.DataFrame({"c": [None], "z": [0.3]}))
    np.testing.assert_allclose(unseen, unknown, rtol=1e-9)
    assert "not in the file" in loaded.explain_exactness()
    assert "the model's own answer" in model.explain_exactness()
    assert "SavedModel('Pipeline')" in repr(loaded)


def test_fit_forgets_the_calibration_of_another_model():
    model = ExpectedPredictor(LinearRegression().fit(X, NUMBER), ChowLiu()).fit(X)
    model.calibrate(X, NUMBER)
    model.set_params(model=LinearRegression().fit(X, 1000 * NUMBER)).fit(X)
    with pytest.raises(NotFittedError, match="calibrate"):
        model.predict_interval(X)


@pytest.mark.parametrize("name", MAKERS)
def test_numbers_that_make_no_sense(fitted, name):
    row = {"a": [np.inf], "b": [None], "c": [None]}
    with pytest.raises(DomainError, match="infinite"):
        fitted[name].predict(row)
    with pytest.raises(DomainError, match="noise"):
        fitted[name].predict_distribution(MISSING, noise=-1.0)


@pytest.mark.parametrize("name", MAKERS)
def test_the_density_is_checked_by_the_training_rows_or_by_others(fitted, name, tmp_path):
    model = fitted[name]
    own = model.check_density()
    assert own.in_sample
    assert own.n_rows == len(model.training_rows_)
    assert own.pairs.columns == tuple(model.density_.columns)
    other = model.check_density(X.iloc[::2] if hasattr(X, "iloc") else X[::2])
    assert not other.in_sample
    assert "from the training rows" in other.likelihood.how
    model.save(tmp_path / "m")
    without = type(model).load(tmp_path / "m")
    with pytest.raises(DomainError, match="no training rows"):
        without.check_density()
    assert without.check_density(MISSING).n_rows == len(MISSING)
