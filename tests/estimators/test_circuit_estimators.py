"""Estimators: expectations that are exact, intervals that hold, and scikit-learn's contract."""

from __future__ import annotations

import datetime as dt
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import expecta
from expecta import (
    PSDD,
    ChowLiu,
    CircuitClassifier,
    CircuitRegressor,
    Density,
    DomainError,
    Encoder,
    Evidence,
    ImpossibleEvidenceWarning,
    Independent,
    LatentTree,
    Pair,
    Vtree,
    random_regression,
)
from expecta.estimators.calibration import (
    MAX_NUMBERS,
    QUANTILE_ROWS,
    Calibration,
    hide_columns,
)
from expecta.estimators.training import Seeds
from expecta.tables.estimator_inputs import read_inputs
from truth import Truth, complete_rows

QUICK = {"max_bins": 8, "max_splits": 4, "penalties": (3.0,), "random_state": 0}


def regressor(**changed):
    options = {"density": ChowLiu(encoder=Encoder(max_bins=4)), "calibration_rows": 60}
    return CircuitRegressor(**{**QUICK, **options, **changed})


def classifier(**changed):
    options = {"density": ChowLiu(encoder=Encoder(max_bins=4))}
    return CircuitClassifier(**{**QUICK, **options, **changed})


def mixed(n=240, seed=0):
    """Columns of many kinds that depend on one another, and a target with an interaction."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    flag = rng.random(n) < 0.2 + 0.3 * group
    real = group + rng.normal(size=n)
    whole = rng.poisson(2 + 2 * flag)
    y = 2.0 * flag * (real > 1) + real + (group == 1) + 0.3 * rng.normal(size=n)
    table = {
        "text": [["red", "green", "blue"][k] for k in group],
        "flag": flag.tolist(),
        "real": real.tolist(),
        "whole": whole.tolist(),
    }
    return table, y


TABLE, Y = mixed()
THREE = np.array(["low", "middle", "high"])[np.digitize(Y, [0.5, 3.0])]


def holed(table, rows, share=0.5, seed=1):
    """The first rows of a table, a share of the cells unknown."""
    rng = np.random.default_rng(seed)
    return {
        name: [None if rng.random() < share else value for value in column[:rows]]
        for name, column in table.items()
    }


HOLED = holed(TABLE, 40)
NOTHING = {name: [None] for name in TABLE}
LEARNERS = {
    "ChowLiu": ChowLiu,
    "Independent": Independent,
    "LatentTree": lambda **k: LatentTree(**{"states": 2, "restarts": 1, "max_epochs": 3, **k}),
    "PSDD": lambda **k: PSDD(**{"max_parameters": 200, "patience": 2, **k}),
}
learners = pytest.mark.parametrize("name", sorted(LEARNERS))


# -- the contract of scikit-learn -----------------------------------------------------

FOLDS = "folds are drawn by row: a row of weight 2 is in one fold, a row twice may be in two"


@parametrize_with_checks(
    [
        CircuitRegressor(density=ChowLiu(), calibration_rows=20, penalties=(3.0,)),
        CircuitClassifier(density=Independent(), penalties=(3.0,)),
        CircuitRegressor(density=LEARNERS["LatentTree"](), calibration_rows=20, penalties=(3.0,)),
    ]
)
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite fits things that scikit-learn warns about
        check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [CircuitRegressor(calibration_rows=50)],
    expected_failed_checks=lambda model: {"check_sample_weight_equivalence_on_dense_data": FOLDS},
)
def test_scikit_learn_contract_of_the_defaults(estimator, check):
    test_scikit_learn_contract(estimator, check)


def test_pipelines_and_searches():
    frame = pd.DataFrame(TABLE)
    columns = ColumnTransformer(
        [("kind", OneHotEncoder(), ["text", "flag"]), ("size", StandardScaler(), ["real", "whole"])]
    )
    through = make_pipeline(columns, regressor()).fit(frame, Y)
    assert through.score(frame, Y) > 0.7
    numbers = frame[["real", "whole"]].mask(np.random.default_rng(0).random((len(Y), 2)) < 0.2)
    filled = make_pipeline(SimpleImputer(), regressor()).fit(numbers, Y)
    assert filled.score(numbers, Y) > 0.2
    search = GridSearchCV(
        regressor(calibration_rows=0),
        {"max_splits": [0, 2], "density": [Independent(), ChowLiu()], "density__pseudo_count": [1]},
        cv=2,
        error_score="raise",
    ).fit(frame, Y)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    assert search.predict(frame.mask(frame.notna())).shape == (len(Y),)
    scores = cross_val_score(classifier(), frame, THREE, cv=3, error_score="raise")
    assert scores.mean() > 0.6
    assert cross_val_score(classifier(), frame, Y > 1, scoring="roc_auc", cv=2).min() > 0.8


def test_parameters_clones_and_pictures():
    model = regressor(density=LatentTree(states=2))
    assert model.get_params()["density__states"] == 2
    model.set_params(density__states=3, max_splits=1)
    assert (model.density.states, model.max_splits) == (3, 1)
    copy = clone(model.set_params(density=ChowLiu()).fit(TABLE, Y))
    with pytest.raises(NotFittedError):
        copy.predict(TABLE)
    assert repr(copy) == repr(model)
    assert "CircuitRegressor" in model._repr_html_()
    assert "density" in classifier(density=ChowLiu().fit(TABLE))._repr_html_()
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(bins=3)


def test_clones_forget_what_a_density_learned_but_not_a_plain_one():
    learned = ChowLiu(encoder=Encoder(max_bins=4)).fit(TABLE)
    assert not hasattr(clone(regressor(density=learned)).density, "circuit_")
    plain = learned.condition(flag=True)
    again = clone(regressor(density=plain)).fit(TABLE, Y)
    assert again.density_.circuit == plain.circuit


@pytest.mark.parametrize("make", [regressor, classifier])
def test_pickles(make):
    model = make().fit(TABLE, THREE if make is classifier else Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(HOLED), model.predict(HOLED))
    assert again.refined_.circuit is again.pair_.p


@pytest.mark.parametrize("name", ["ChowLiu", "LatentTree"])
def test_a_seed_gives_the_same_model_on_any_number_of_threads(name):
    table = holed(TABLE, len(Y), 0.2)
    found = []
    for threads in (1, 2):
        with expecta.config_context(threads=threads):
            a = regressor(density=LEARNERS[name]()).fit(table, Y)
            b = classifier(density=LEARNERS[name]()).fit(table, THREE)
            found.append([a.predict(HOLED), a.predict_interval(HOLED), b.predict_proba(HOLED)])
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9)
    a.set_params(random_state=1).fit(table, Y)  # other completions, other folds
    assert not np.allclose(a.predict(HOLED), found[0][0], rtol=1e-9)
    assert np.corrcoef(a.predict(HOLED), found[0][0])[0, 1] > 0.9


@pytest.mark.parametrize("seed", [np.random.RandomState, np.random.default_rng])
def test_seeds_of_other_kinds(seed):
    one, two = (regressor(random_state=seed(5)).fit(TABLE, Y) for _ in range(2))
    np.testing.assert_array_equal(one.predict(HOLED), two.predict(HOLED))


# -- expectations are exact -----------------------------------------------------------


class Enumerated:
    """All completions of rows with their probabilities, gate by gate."""

    def __init__(self, model, X):
        p = model.refined_.circuit
        self.truth = Truth(p, model.circuit_)
        self.evidence = Evidence.rows(model.encoder_.codes(X), p.cardinalities)
        self.share = self.truth.posterior(self.evidence)

    def mean(self, values):
        return self.share @ values


@learners
@pytest.mark.parametrize("seed", [1, 2])
def test_predictions_match_enumeration(name, seed):
    table, y = mixed(seed=seed)
    model = regressor(density=LEARNERS[name](encoder=Encoder(max_bins=3)), max_bins=6).fit(table, y)
    assert model.n_splits_ > 0  # or nothing would be tested but sums
    assert np.prod(model.encoder_.cardinalities_) > np.prod(model.density_.encoder_.cardinalities_)
    rows = holed(table, 30, seed=seed)
    truth = Enumerated(model, rows)
    g = truth.truth.g[:, 0]
    mean, std = model.predict(rows, return_std=True)
    np.testing.assert_allclose(mean, truth.mean(g), rtol=1e-9)
    spread = np.sqrt(truth.mean(g**2) - truth.mean(g) ** 2 + 1e-30)
    np.testing.assert_allclose(std, spread, rtol=1e-6, atol=1e-6)
    for k, found in enumerate(model.predict_moments(rows, 3).T):
        np.testing.assert_allclose(found, truth.mean(g**k), rtol=1e-9, atol=1e-9)
    about = (g[None, :] - mean[:, None])[..., None] ** np.arange(4)
    expected = np.einsum("rx,rxk->rk", truth.share, about)
    found = model.predict_moments(rows, 3, central=True)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@learners
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_probabilities_match_enumeration(name, classes):
    table, y = mixed(seed=classes)
    labels = np.digitize(y, [1.0, 2.0, 4.0][: classes - 1])
    density = LEARNERS[name](encoder=Encoder(max_bins=3))
    model = classifier(density=density, max_bins=6).fit(table, labels)
    rows = holed(table, 30, seed=classes)
    truth = Enumerated(model, rows)
    expected = truth.mean(expit(truth.truth.g))
    if classes == 2:
        expected = np.concatenate([1 - expected, expected], axis=1)
    expected /= expected.sum(axis=1, keepdims=True)
    found, error = model.predict_proba(rows, return_error=True)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(rows), np.argmax(expected, axis=1))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(rows)), expected, atol=1e-9)
    moments = model.predict_moments(rows, 1).reshape(30, -1, 2)
    np.testing.assert_allclose(moments[:, :, 1], truth.mean(truth.truth.g), rtol=1e-9, atol=1e-9)
    assert error.shape == found.shape
    assert np.all(np.abs(found - expected) <= error + 1e-12)
    coarse = clone(model).set_params(tol=1e-3).fit(table, labels)
    found, error = coarse.predict_proba(rows, return_error=True)
    assert np.all(np.abs(found - expected) <= error + 1e-12)
    assert error.max() > 1e-6
    found, error = model.predict_proba(rows, method="taylor", order=3, return_error=True)
    assert np.all(np.abs(found - expected) <= error + 1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_taylor_of_order_one_is_the_link_at_the_mean(classes):
    labels = THREE if classes == 3 else Y > 1
    model = classifier().fit(TABLE, labels)
    at = expit(model.predict_moments(HOLED, 1)[..., 1])
    expected = np.stack([1 - at, at], axis=1) if classes == 2 else at
    expected = expected / expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(HOLED, method="taylor"), expected, rtol=1e-9)
    assert np.abs(expected - model.predict_proba(HOLED)).max() > 1e-3  # it is not exact
    with pytest.raises(ValueError, match="spectral"):
        model.predict_proba(HOLED, method="sampling")


def booleans(n, columns, seed):
    rng = np.random.default_rng(seed)
    X = np.zeros((n, columns), np.int64)
    X[:, 0] = rng.integers(2, size=n)
    for j in range(1, columns):
        X[:, j] = np.where(rng.random(n) < 0.3, rng.integers(2, size=n), X[:, j - 1])
    return X, rng


ALL_14 = complete_rows([2] * 14)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("classes", [2, 4])
def test_fourteen_unknown_booleans(classes, seed):
    X, rng = booleans(200, 14, seed)
    labels = rng.integers(classes, size=200)
    density = ChowLiu() if seed % 2 else LEARNERS["LatentTree"]()
    model = classifier(density=density, max_splits=0).fit(X, labels)
    assert model.encoder_.cardinalities_.tolist() == [2] * 14
    p = model.refined_.circuit
    outputs = 1 if classes == 2 else classes
    scale = [0.3, 1.0, 3.0][seed % 3]
    g = random_regression(p.vtree, [2] * 14, units=3, outputs=outputs, scale=scale, seed=seed)
    rows = np.where(rng.random((12, 14)) < np.linspace(0.3, 1.0, 12)[:, None], -1, X[:12])
    rows[-1] = -1
    weight = np.exp(p.log_prob(ALL_14))
    fits = np.all((rows[:, None] < 0) | (rows[:, None] == ALL_14), axis=2)
    share = fits * weight
    share /= share.sum(axis=1, keepdims=True)
    for circuit in (model.circuit_, g):  # what was learned, and one that nobody would learn
        model.pair_ = Pair(p, circuit)
        value = share @ expit(circuit(ALL_14).reshape(len(ALL_14), outputs))
        expected = np.concatenate([1 - value, value], axis=1) if classes == 2 else value
        expected = expected / expected.sum(axis=1, keepdims=True)
        found, error = model.predict_proba(rows, return_error=True)
        np.testing.assert_allclose(found, expected, atol=1e-9)
        assert np.all(np.abs(found - expected) <= error + 1e-13)
        bare = model.pair_.expected(rows, tol=model.tol)
        assert np.all(np.abs(bare.value - value.reshape(bare.value.shape)) <= bare.error)
        assert bare.error.max() <= model.tol * (1 + 1e-3)


def test_complete_rows_are_the_circuit_and_have_no_spread():
    model = regressor().fit(TABLE, Y)
    mean, std = model.predict(TABLE, return_std=True)
    np.testing.assert_array_equal(mean, model.circuit_(model.encoder_.codes(TABLE)))
    np.testing.assert_array_equal(std, 0.0)
    unknown = np.any(model.encoder_.codes(HOLED) < 0, axis=1)
    np.testing.assert_array_equal(model.predict(HOLED, return_std=True)[1] > 0, unknown)
    central = model.predict_moments(TABLE, 2, central=True)
    np.testing.assert_array_equal(central, np.tile([1.0, 0.0, 0.0], (len(Y), 1)))


def test_nothing_known_gives_the_mean_over_the_density():
    model = regressor().fit(TABLE, Y)
    p = model.refined_.circuit
    every = complete_rows(p.cardinalities)
    expected = np.exp(p.log_prob(every)) @ model.circuit_(every)
    assert model.predict(NOTHING) == pytest.approx(expected, rel=1e-9)
    assert model.predict(NOTHING) == pytest.approx(Y.mean(), abs=0.1)
    np.testing.assert_allclose(model.score_samples(NOTHING), 0.0, atol=1e-9)


def test_score_samples_is_the_density_s():
    model = regressor().fit(TABLE, Y)
    np.testing.assert_array_equal(model.score_samples(HOLED), model.refined_.score_samples(HOLED))
    odd = {"text": ["red", "red"], "flag": [False, True], "real": [0.0, 9.0], "whole": [2, 9]}
    likely, unlikely = model.score_samples(odd)
    assert likely > unlikely


# -- tables of any kind ---------------------------------------------------------------


def pandas_frame(table):
    kinds = {"text": "str", "flag": "boolean", "real": "float64", "whole": "Int64"}
    return pd.DataFrame({name: pd.Series(table[name], dtype=k) for name, k in kinds.items()})


def test_frames_dicts_and_arrays_agree():
    expected = regressor().fit(TABLE, Y).predict(HOLED)
    rows = np.array(list(zip(*TABLE.values(), strict=True)), object)
    some = np.array(list(zip(*HOLED.values(), strict=True)), object)
    pairs = {
        "pandas": (pandas_frame(TABLE), pandas_frame(HOLED)),
        "objects": (pd.DataFrame(TABLE, dtype=object), pd.DataFrame(HOLED, dtype=object)),
        "polars": (pl.DataFrame(TABLE), pl.DataFrame(HOLED)),
        "arrow": (pl.DataFrame(TABLE).to_arrow(), pl.DataFrame(HOLED).to_arrow()),
        "array": (rows, some),
        "lists": (rows.tolist(), some.tolist()),
        "mixed": (pl.DataFrame(TABLE), pandas_frame(HOLED)),
        "by place": (TABLE, some),
    }
    for kind, (train, test) in pairs.items():
        model = regressor().fit(train, Y)
        np.testing.assert_allclose(model.predict(test), expected, rtol=1e-9, err_msg=kind)
        assert hasattr(model, "feature_names_in_") == (kind not in ("array", "lists"))
        assert model.n_features_in_ == 4


def test_unknown_is_unknown_however_it_is_written():
    model = classifier().fit(pandas_frame(TABLE), THREE)
    known = {"flag": [True], "real": [0.3], "whole": [2]}
    answers = [
        model.predict_proba({"text": [None], **known}),
        model.predict_proba({"text": [float("nan")], **known}),
        model.predict_proba({"text": np.array([np.nan], object), **known}),
        model.predict_proba(pd.DataFrame({"text": [pd.NA], **known})),
        model.predict_proba(pd.DataFrame({"text": pd.Series([None], dtype="str"), **known})),
        model.predict_proba(pl.DataFrame({"text": pl.Series([None], dtype=pl.String), **known})),
        model.predict_proba(np.array([[None, True, 0.3, 2]], object)),
    ]
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer, answers[0])
    numbers = regressor().fit(np.array([TABLE["real"], TABLE["whole"]], float).T, Y)
    masked = np.ma.masked_array([[0.3, 7.0]], [[False, True]])
    for row in ([[0.3, np.nan]], [[0.3, None]], masked):
        assert numbers.predict(row) == numbers.predict([[0.3, np.nan]])
    assert numbers.predict([[0.3, np.nan]]) != numbers.predict([[0.3, 7.0]])


def test_the_order_of_columns_and_further_ones_do_not_matter():
    model = regressor().fit(pd.DataFrame(TABLE), Y)
    turned = {name: HOLED[name] for name in ("whole", "text", "real", "flag")}
    np.testing.assert_array_equal(model.predict(turned), model.predict(HOLED))
    more = {"id": list(range(40)), **turned}
    np.testing.assert_array_equal(model.predict(more), model.predict(HOLED))
    np.testing.assert_array_equal(model.feature_names_in_, list(TABLE))
    assert regressor().fit(turned, Y[:40]).feature_names_in_[0] == "whole"


def test_names_are_forgotten_with_the_next_table():
    model = regressor().fit({"real": TABLE["real"]}, Y)
    model.fit(np.array([TABLE["real"]]).T, Y)
    assert not hasattr(model, "feature_names_in_")


def test_times_wide_integers_booleans_and_categories():
    rng = np.random.default_rng(0)
    n = 200
    step = rng.integers(6, size=n)
    table = {
        "day": [dt.date(2024, 1, 1) + dt.timedelta(int(k)) for k in step],
        "moment": [
            dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=int(k)) for k in step
        ],
        "span": [dt.timedelta(minutes=int(k)) for k in step],
        "wide": (2**62 + 10**15 * step).tolist(),
        "flag": (step > 2).tolist(),
        "level": pd.Categorical([["a", "b", "c"][k // 2] for k in step], ordered=True),
    }
    frame = pd.DataFrame(table)
    y = step + 0.1 * rng.normal(size=n)
    model = regressor(density=Independent(), max_splits=0, penalties=(0.01,)).fit(frame, y)
    np.testing.assert_allclose(model.predict(frame), step, atol=0.5)
    for name in table:  # each says something on its own
        alone = regressor(density=ChowLiu()).fit(frame, y)
        some = frame.copy()
        for other in set(table) - {name}:
            some[other] = None
        assert np.corrcoef(alone.predict(some), y)[0, 1] > 0.8, name


def test_integers_of_arrays_are_numbers_and_zeros_and_ones_are_codes():
    rng = np.random.default_rng(0)
    X = rng.integers(-5, 50, size=(200, 2))
    numbers = regressor(density=Independent()).fit(X, X[:, 0])
    assert [column.kind for column in numbers.encoder_.columns_] == ["number"] * 2
    np.testing.assert_array_equal(numbers.predict(X), numbers.predict(X.astype(float)))
    high, low = numbers.predict([[49, 0], [-5, 0]])
    assert high > 30 > 10 > low  # -1 is a number among others
    codes = regressor(density=Independent()).fit(X % 2, X[:, 0] % 2)
    assert [column.kind for column in codes.encoder_.columns_] == ["code"] * 2
    unknown = codes.predict(np.array([[-1, 0]]))
    assert unknown == codes.predict([[np.nan, 0.0]])
    assert codes.predict([[0, 0]]) < unknown < codes.predict([[1, 0]])
    np.testing.assert_array_equal(codes.predict(X % 2 == 1), codes.predict(X % 2))
    flags = classifier(density=Independent()).fit(X % 2 == 1, X[:, 0] % 2)
    assert flags.score(X % 2 == 1, X[:, 0] % 2) == 1.0


# -- edges ----------------------------------------------------------------------------


def test_one_row():
    model = regressor().fit({"a": [1.0], "b": ["x"]}, [3.0])
    assert model.predict({"a": [1.0, None, 9.0], "b": ["x", None, "y"]}).tolist() == [3.0] * 3
    for row in ({"a": [None], "b": [None]}, {"a": [1.0], "b": ["x"]}):
        assert model.predict_interval(row, 0.1).tolist() == [[-np.inf, np.inf]]  # who knows
    assert model.noise_ == 3.0
    assert model.set_params(calibration_rows=0).fit([[1.0]], [0.0]).noise_ == 1.0
    assert np.all(np.isfinite(model.predict_interval([[np.nan]])))
    model = classifier().fit([[1.0]], ["only"])
    assert model.predict([[np.nan], [5.0]]).tolist() == ["only"] * 2


def test_one_column():
    x = np.linspace(0, 1, 100)
    model = regressor(max_bins=32).fit(x[:, None], 3 * x)
    assert model.predict([[0.5], [np.nan]]) == pytest.approx([1.5, 1.5], abs=0.1)
    assert classifier().fit(x[:, None], x > 0.5).predict([[0.1], [0.9]]).tolist() == [False, True]


@pytest.mark.parametrize("value", [7.0, 0.0, -1e12])
def test_a_constant_target(value):
    model = regressor().fit(TABLE, np.full(len(Y), value))
    np.testing.assert_allclose(model.predict(HOLED), value, rtol=1e-9)
    assert np.abs(model.predict(HOLED, return_std=True)[1]).max() <= 1e-9 * abs(value)
    ends = model.predict_interval(HOLED)
    np.testing.assert_allclose(ends, value, rtol=1e-6, atol=1e-6)
    assert np.all(ends[:, 0] <= ends[:, 1])
    assert model.noise_ > 0  # certain, but not beyond all doubt


@pytest.fixture(scope="module")
def plain():
    return regressor().fit(TABLE, Y)


@pytest.mark.parametrize("unit", [1e-285, 1e-200, 1e-30, 1e30, 1e140])
def test_the_unit_of_the_target_does_not_matter(plain, unit):
    model = regressor().fit(TABLE, Y * unit)
    assert model.noise_ / unit == pytest.approx(plain.noise_, rel=1e-6)
    for ask in (CircuitRegressor.predict, CircuitRegressor.predict_interval):
        np.testing.assert_allclose(ask(model, HOLED) / unit, ask(plain, HOLED), rtol=1e-6)
    spread = [one.predict(HOLED, return_std=True)[1] for one in (model, plain)]
    np.testing.assert_allclose(spread[0] / unit, spread[1], rtol=1e-6)
    model.calibrate(TABLE, Y * unit)
    again = clone(plain).fit(TABLE, Y).calibrate(TABLE, Y)
    np.testing.assert_allclose(
        model.predict_interval(HOLED) / unit, again.predict_interval(HOLED), rtol=1e-6
    )


@pytest.mark.parametrize("offset", [1e6, 1.7e9, 1e10, 1e15])
def test_where_the_target_lies_does_not_matter(offset):
    grid = np.round(Y * 8) / 8  # survives every offset
    near, far = regressor().fit(TABLE, grid), regressor().fit(TABLE, grid + offset)
    rounding = 4 * np.spacing(offset) + 1e-6
    for ask in (CircuitRegressor.predict, CircuitRegressor.predict_interval):
        np.testing.assert_allclose(ask(far, HOLED) - offset, ask(near, HOLED), atol=rounding)
    assert far.noise_ == pytest.approx(near.noise_, rel=0.03)
    near.calibrate(TABLE, grid)
    far.calibrate(TABLE, grid + offset)
    widths = [np.diff(one.predict_interval(HOLED), axis=1) for one in (near, far)]
    # calibration divides rounded residuals by spreads that may be smaller than others'
    np.testing.assert_allclose(*widths, rtol=0.03, atol=4 * rounding)


def test_a_perfect_fit_far_from_zero_is_narrow():
    x = np.tile(np.arange(4.0), 30)
    widths = [
        np.diff(regressor().fit(x[:, None], x + offset).predict_interval([[2.0]]))[0, 0]
        for offset in (0.0, 1.7e9)
    ]
    assert widths[1] == pytest.approx(widths[0], rel=1e-3, abs=1e-5)


def test_columns_that_say_nothing():
    table = {"real": TABLE["real"], "constant": ["x"] * len(Y), "number": [5.0] * len(Y)}
    table["unknown"] = [None] * len(Y)
    model = regressor().fit(table, Y)
    bare = {name: [None, None] for name in table} | {"real": [0.5, None]}
    said = {**bare, "constant": ["x", "never seen"], "number": [5.0, 9.0], "unknown": [1, 2]}
    np.testing.assert_allclose(model.predict(said), model.predict(bare), rtol=1e-9)
    blank = {name: [None] * len(Y) for name in table}
    nothing = regressor().fit(blank, Y)
    np.testing.assert_allclose(nothing.predict(bare), Y.mean(), atol=1e-3)
    shares = classifier().fit(blank, THREE).predict_proba(bare)[0]
    np.testing.assert_allclose(shares, np.unique(THREE, return_counts=True)[1] / len(Y), atol=0.02)


def test_huge_numbers_in_columns():
    X = np.array([TABLE["real"], TABLE["whole"]], float).T
    model = regressor().fit(X, Y)
    huge = regressor().fit(X * 1e307, Y)
    np.testing.assert_allclose(huge.predict(X * 1e307), model.predict(X), rtol=1e-6)


def test_tiny_numbers_in_columns():
    x = np.arange(60.0)[:, None]
    for unit in (1e-310, 1e-200):
        tiny = regressor(max_bins=64).fit(x * unit, x[:, 0])
        expected = regressor(max_bins=64).fit(x, x[:, 0]).predict(x)
        np.testing.assert_allclose(tiny.predict(x * unit), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("weight", [1e-200, 1e9])
def test_weights_of_any_size_give_numbers(weight):
    every = np.full(len(Y), weight)
    every[0] *= 100
    assert np.all(np.isfinite(regressor().fit(TABLE, Y, sample_weight=every).predict(HOLED)))
    found = classifier().fit(TABLE, THREE, sample_weight=every).predict_proba(HOLED)
    assert np.all(np.isfinite(found))


def test_classes_keep_their_type():
    for labels, kind in (
        (pd.Series(Y > 1, dtype="boolean"), "b"),
        (pd.array(Y > 1, dtype="boolean"), "b"),
        (np.array(Y > 1, object), "b"),
        ((Y > 1).tolist(), "b"),
        (pd.Series(Y > 1).astype("Int64"), "i"),
        (pl.Series((Y > 1).astype(int)), "i"),
        (pd.Series(np.where(Y > 1, "a", "b"), dtype="string"), "O"),
        (np.where(Y > 1, "a", "b").tolist(), "U"),
    ):
        model = classifier(density=Independent(), max_splits=0).fit(TABLE, labels)
        assert model.classes_.dtype.kind == kind
        assert model.predict(HOLED).dtype == model.classes_.dtype


def test_names_that_are_no_texts_are_no_feature_names():
    frame = pd.DataFrame({0: TABLE["real"], 1: TABLE["whole"]})
    model = regressor().fit(frame, Y)
    assert not hasattr(model, "feature_names_in_")
    turned = model.predict(frame[[1, 0]])  # but columns are found by them
    np.testing.assert_array_equal(turned, model.predict(frame))
    mixed_names = {0: TABLE["real"], "b": TABLE["whole"]}
    assert not hasattr(regressor().fit(mixed_names, Y), "feature_names_in_")


def test_a_density_notes_integers_that_become_one_float():
    table = {
        "id": [2**60 + 16 * i for i in range(60)],
        "wide": [2**60 + 2**12 * i for i in range(60)],
    }
    notes = [note for note in ChowLiu().fit(table).encoder_.notes_ if "2^53" in note]
    assert notes == ["column 'id' has integers beyond 2^53 that become the same float"]
    assert regressor().fit({"wide": table["wide"]}, np.arange(60)).noise_ > 0


def test_unseen_categories_are_unknown():
    model = regressor().fit(TABLE, Y)
    row = {"text": ["pink"], "flag": [True], "real": [0.3], "whole": [2]}
    assert model.predict(row) == model.predict({**row, "text": [None]})
    strict = regressor(encoder=Encoder(unseen="error")).fit(TABLE, Y)
    with pytest.raises(DomainError, match="pink"):
        strict.predict(row)


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_as_many_classes_as_rows():
    table = {name: column[:30] for name, column in TABLE.items()}
    model = classifier(max_splits=0, density=Independent()).fit(table, np.arange(30))
    found = model.predict_proba(HOLED)
    assert found.shape == (40, 30)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_a_single_class():
    model = classifier().fit(TABLE, ["yes"] * len(Y))
    found, error = model.predict_proba(HOLED, return_error=True)
    np.testing.assert_array_equal(found, np.ones((40, 1)))
    np.testing.assert_array_equal(error, np.zeros((40, 1)))
    assert model.predict(HOLED).tolist() == ["yes"] * 40
    assert (model.n_splits_, model.validation_) == (0, {})


def test_tables_that_cannot_be_learned_from():
    def refuses(why, X=TABLE, y=Y, make=regressor, **kwargs):
        with pytest.raises(DomainError, match=why):
            make().fit(X, y, **kwargs)

    infinite = {**TABLE, "real": [np.inf, *TABLE["real"][1:]]}
    refuses("'real' has an infinite number .* in row 0", infinite)
    refuses("infinite", np.array([TABLE["real"], [-np.inf, *TABLE["real"][1:]]]).T)
    for bad in (np.nan, np.inf, -np.inf):
        refuses("unknown or infinite", y=np.where(Y > 2, bad, Y))
        refuses("unknown or infinite", y=np.where(Y > 2, bad, 1.0), make=classifier)
    for missing in (None, pd.NA, np.nan):
        refuses("unknown", y=[missing, *THREE[1:]], make=classifier)
    refuses("unknown", y=pd.Series([None, *Y[1:]], dtype="Float64"))
    refuses("unknown", y=pl.Series([None, *Y[1:].tolist()]))
    refuses("unknown", y=pl.Series([None, *THREE[1:].tolist()]), make=classifier)
    refuses("column of numbers", y=THREE)
    refuses("column of numbers", y=np.stack([Y, Y], axis=1))
    refuses("all strings or all numbers", y=np.array(["a", 1] * 120, object), make=classifier)
    refuses("beyond 1e\\+146", y=Y * 1e160)
    refuses("y varies by .* divide it", y=Y * 1e-295)
    refuses("strings and numbers|numbers and strings", y=["a", 1] * 120, make=classifier)
    refuses("Booleans and numbers", y=[True, 2] * 120, make=classifier)
    refuses("Booleans and numbers", y=np.array([True, 2] * 120, object), make=classifier)
    for kind in ("M8[D]", "m8[s]"):
        times = np.arange(240).astype(kind)
        refuses("dates and durations", y=times)
        refuses("dates and durations", y=pd.Series(times))
        times[3] = "NaT"
        refuses("unknown values", y=times, make=classifier)
    refuses("'id' has integers beyond", {"id": [2**60 + 16 * i for i in range(240)]})
    refuses("'id' has integers beyond", pd.DataFrame({"id": 2**60 + 16 * np.arange(240)}))
    refuses("'x0' has integers beyond", 2**60 + 16 * np.arange(240)[:, None])
    refuses("240 rows and y has 7", y=Y[:7])
    refuses("240 rows and y has 7", y=THREE[:7], make=classifier)
    refuses("two columns have the name", pd.DataFrame(np.zeros((240, 2)), columns=["a", "a"]))
    refuses("name '1'", {1: Y, "1": Y})
    refuses("0 rows", {"a": []}, [])
    refuses("0 feature", np.zeros((240, 0)))
    refuses("two dimensions", TABLE["real"])
    for weight in (np.zeros(240),):
        refuses("all weights are zero", sample_weight=weight)
        refuses("all weights are zero", y=THREE, make=classifier, sample_weight=weight)
    for weight in (np.full(240, 1e10), np.append(np.ones(239), 1e308), np.full(240, 1e308)):
        refuses("weights sum to more than 1e\\+12", sample_weight=weight)
        refuses("weights sum", y=THREE, make=classifier, sample_weight=weight)
    for weight in (-np.ones(240), np.ones(7), np.full(240, np.nan), ["a"] * 240, 1.0):
        refuses("sample_weight must be 240 finite numbers", sample_weight=weight)
    with pytest.raises(ValueError, match="continuous"):
        classifier().fit(TABLE, Y)
    for make in (regressor, classifier):
        with pytest.raises(ValueError, match=r"y is None|requires y"):
            make().fit(TABLE, None)


def test_questions_that_cannot_be_asked():
    model = regressor().fit(TABLE, Y)
    with (
        expecta.config_context(columns="strict"),
        pytest.raises(DomainError, match="no column 'text'"),
    ):
        model.predict({name: HOLED[name] for name in ("flag", "real", "whole")})
    with pytest.raises(DomainError, match="X has 2 features, but CircuitRegressor is expecting 4"):
        model.predict([[1, 2]])
    with pytest.raises(DomainError, match="X has 2 features, but CircuitRegressor is expecting 4"):
        model.score_samples([[1, 2]])
    with pytest.raises(DomainError, match="infinite"):
        model.predict({**HOLED, "real": [np.inf] * 40})
    for labels in (THREE, ["one"] * len(Y)):
        judge = classifier().fit(TABLE, labels)
        for rows in (TABLE, HOLED):  # complete rows, which need neither, and others
            with pytest.raises(ValueError, match='"spectral" or "taylor"'):
                judge.predict_proba(rows, method="tailor")
            with pytest.raises(ValueError, match="order is a whole number"):
                judge.predict_proba(rows, method="taylor", order=-1)
    for coverage in (0.0, 1.0, -1, np.nan):
        with pytest.raises(DomainError, match="between 0 and 1"):
            model.predict_interval(HOLED, coverage)
    for q in (0.0, [0.5, 1.0], [[0.5]], [np.nan]):
        with pytest.raises(DomainError, match="between 0 and 1"):
            model.predict_quantiles(HOLED, q)
    with pytest.raises(DomainError, match="no rows to calibrate"):
        model.calibrate({name: [] for name in TABLE}, [])
    with pytest.raises(ValueError, match="inconsistent"):
        model.calibrate(TABLE, Y[:5])


UNFITTED = [
    (CircuitRegressor, name)
    for name in ("predict", "predict_moments", "predict_distribution", "predict_quantiles")
] + [
    (CircuitClassifier, name)
    for name in ("predict", "predict_proba", "predict_log_proba", "predict_distribution")
]


@pytest.mark.parametrize(("kind", "ask"), [*UNFITTED, (CircuitRegressor, "score_samples")])
def test_nothing_is_answered_before_learning(kind, ask):
    with pytest.raises(NotFittedError):
        getattr(kind(), ask)(HOLED)
    with pytest.raises(NotFittedError):
        CircuitRegressor().calibrate(TABLE, Y)


def test_no_rows_to_predict():
    nothing = {name: [] for name in TABLE}
    model = regressor().fit(TABLE, Y)
    assert [one.shape for one in model.predict(nothing, return_std=True)] == [(0,), (0,)]
    assert model.predict_interval(nothing).shape == (0, 2)
    assert model.predict_quantiles(nothing, [0.1, 0.2, 0.3]).shape == (0, 3)
    assert model.predict_moments(nothing, 3).shape == (0, 4)
    assert model.predict_distribution(nothing).cdf([0.0, 1.0]).shape == (0, 2)
    assert model.score_samples(nothing).shape == (0,)
    for labels in (Y > 1, THREE):
        model = classifier().fit(TABLE, labels)
        k = len(model.classes_)
        assert model.predict(nothing).shape == (0,)
        assert model.predict_proba(nothing).shape == (0, k)
        assert model.predict_log_proba(nothing).shape == (0, k)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"max_bins": 1}, ValueError),
        ({"max_bins": 2.5}, ValueError),
        ({"max_splits": -1}, ValueError),
        ({"max_splits": "many"}, ValueError),
        ({"completions": 0}, ValueError),
        ({"penalties": ()}, ValueError),
        ({"penalties": (1.0, -1.0)}, ValueError),
        ({"penalties": (np.inf,)}, ValueError),
        ({"penalties": "strong"}, ValueError),
        ({"penalties": [[1.0], [2.0, 3.0]]}, ValueError),
        ({"calibration_rows": -1}, ValueError),
        ({"calibration_rows": 1.5}, ValueError),
        ({"random_state": -1}, ValueError),
        ({"density": "ChowLiu"}, TypeError),
        ({"density": ChowLiu}, TypeError),
        ({"density": Encoder()}, TypeError),
        ({"encoder": 32}, TypeError),
        ({"vtree": "bottom-up"}, DomainError),  # a Chow-Liu tree has its own
        ({"density": None, "vtree": "sideways"}, ValueError),
        ({"density": None, "vtree": Vtree.balanced(3)}, ValueError),
    ],
)
def test_parameters_that_make_no_sense(changed, error):
    name = next(reversed(changed))
    with pytest.raises(error, match=f"{name}|non-negative"):
        regressor(**changed).fit(TABLE, Y)


@pytest.mark.parametrize("tol", [0, 0.5, 1, -1e-9, np.nan, "small", None])
def test_tolerances_that_make_no_sense(tol):
    with pytest.raises(ValueError, match="tol"):
        classifier(tol=tol).fit(TABLE, THREE)


# -- densities, vtrees and encoders that were given -----------------------------------


def test_a_density_that_has_learned_is_used_as_it_is():
    density = ChowLiu(encoder=Encoder(max_bins=5)).fit(TABLE)
    model = regressor(density=density).fit(TABLE, Y)
    assert model.density_ is density
    plain = Density(density.circuit, density.encoder_)
    np.testing.assert_array_equal(
        regressor(density=plain).fit(TABLE, Y).predict(HOLED), model.predict(HOLED)
    )
    for more in ({"encoder": Encoder()}, {"vtree": "bottom-up"}):
        with pytest.raises(DomainError, match="leave vtree and encoder out"):
            regressor(density=density, **more).fit(TABLE, Y)
    with pytest.raises(DomainError, match="no column"):
        regressor(density=density).fit({"a": Y}, Y)


def test_a_density_that_is_to_learn_is_not_touched():
    density = ChowLiu(encoder=Encoder(max_bins=5))
    model = regressor(density=density).fit(TABLE, Y)
    assert not hasattr(density, "circuit_")
    assert hasattr(model.density_, "circuit_")
    assert model.density_.encoder_.column("real").cardinality == 5
    assert model.encoder_.column("real").cardinality == 8


def test_a_given_vtree_is_the_vtree():
    vtree = Vtree.right_linear([3, 1, 0, 2])
    small = PSDD(max_parameters=150, patience=2)
    for density in (None, small):
        model = regressor(density=density, vtree=vtree, encoder=Encoder(max_bins=3)).fit(TABLE, Y)
        assert isinstance(model.density_, PSDD)
        assert model.pair_.p.vtree == model.circuit_.vtree == vtree
    named = regressor(density=small, vtree="top-down", encoder=Encoder(max_bins=3)).fit(TABLE, Y)
    assert named.density_.vtree == "top-down"
    assert small.vtree == "bottom-up"


def test_a_given_encoder_reads_the_table():
    encoder = Encoder(max_bins=3, categorical=["whole"])
    model = regressor(density=LatentTree(states=2, max_epochs=2), encoder=encoder).fit(TABLE, Y)
    assert model.encoder_.column("whole").kind == "category"
    assert model.density_.encoder_.column("real").cardinality == 3
    assert not hasattr(encoder, "columns_")


def test_impossible_rows():
    same = ["a", "b"] * 60
    table = {"one": same, "two": same, "three": ["x", "y", "y"] * 40}
    odd = {"one": ["a", "a", "a"], "two": ["b", None, "b"], "three": ["x", None, None]}
    y = np.arange(120) % 2
    certain = {"density": ChowLiu(pseudo_count=0)}
    model = regressor(**certain).fit(table, y)
    assert model.score_samples(odd).tolist()[::2] == [-np.inf, -np.inf]
    with pytest.warns(ImpossibleEvidenceWarning, match="1 of 3 .* first is row 2"):
        mean = model.predict(odd)
    assert np.isfinite(mean).tolist() == [True, True, False]
    assert mean[0] == model.circuit_(model.encoder_.codes(odd)[:1])[0]
    with pytest.warns(ImpossibleEvidenceWarning):
        std = model.predict(odd, return_std=True)[1]
    assert np.isnan(std).tolist() == [False, False, True]
    with pytest.warns(ImpossibleEvidenceWarning):
        ends = model.predict_interval(odd)
    assert np.isfinite(ends[:, 0]).tolist() == [True, True, False]
    assert ends[0, 0] < mean[0] < ends[0, 1]
    with pytest.warns(ImpossibleEvidenceWarning, match="1 of 3 .* first is row 2"):
        calibrated = model.predict_distribution(odd).quantile(0.5)
    with pytest.warns(ImpossibleEvidenceWarning, match="1 of 3 .* first is row 2"):
        middle = model.predict_distribution(odd, noise=1.0).quantile(0.5)
    assert middle[0] == pytest.approx(mean[0], abs=1e-9)
    np.testing.assert_array_equal(np.isfinite(middle), np.isfinite(calibrated))
    assert np.isfinite(middle).tolist() == [True, True, False]
    with pytest.warns(ImpossibleEvidenceWarning):
        moments = model.predict_moments(odd, 1)
    np.testing.assert_allclose(moments[:, 1], mean, rtol=1e-9)
    for labels in (y, np.arange(120) % 3):
        model = classifier(**certain).fit(table, labels)
        with pytest.warns(ImpossibleEvidenceWarning, match="1 of 3 .* first is row 2"):
            found, error = model.predict_proba(odd, return_error=True)
        assert np.isnan(found).any(axis=1).tolist() == [False, False, True]
        assert np.isnan(found[2]).all()
        assert np.isnan(error[2]).all()
        np.testing.assert_allclose(found[:2].sum(axis=1), 1.0)
        with pytest.warns(ImpossibleEvidenceWarning):
            assert model.predict(odd)[2] == model.classes_[0]
        with pytest.warns(ImpossibleEvidenceWarning, match="1 of 3 .* first is row 2"):
            middle = model.predict_distribution(odd).quantile(0.5)
        g = model.circuit_(model.encoder_.codes(odd)[:1])
        np.testing.assert_allclose(middle[:1], g, rtol=1e-9)


def test_rows_that_a_given_density_finds_impossible_may_train():
    density = ChowLiu(encoder=Encoder(max_bins=4)).fit(TABLE).condition(flag=True)
    model = regressor(density=density).fit(holed(TABLE, len(Y), 0.1), Y)  # and does not warn
    row = {"text": [None], "flag": [True], "real": [0.3], "whole": [None]}
    assert model.predict(row) == model.predict({**row, "flag": [None]})
    assert len(model.calibration_.score) > 60


# -- weights --------------------------------------------------------------------------


def test_weights_of_twice_the_size_change_little():
    one, two = (regressor().fit(TABLE, Y, sample_weight=w) for w in (None, np.full(len(Y), 2.0)))
    gap = one.predict(HOLED) - two.predict(HOLED)
    assert np.sqrt(np.mean(gap**2)) < 0.15 * Y.std()


def test_rows_of_weight_zero_might_as_well_be_absent():
    rng = np.random.default_rng(0)
    nonsense = {
        "text": ["pink"] * 60,
        "flag": [True] * 60,
        "real": rng.normal(size=60).tolist(),
        "whole": [3] * 60,
    }
    both = {name: TABLE[name] + nonsense[name] for name in TABLE}
    weight = np.append(np.ones(len(Y)), np.zeros(60))
    for make, y, wrong in ((regressor, Y, np.full(60, 1e6)), (classifier, THREE, ["high"] * 60)):
        model = make().fit(both, np.append(y, wrong), sample_weight=weight)
        alone = make().fit(TABLE, y)
        ask = "predict" if make is regressor else "predict_proba"
        gap = getattr(model, ask)(HOLED) - getattr(alone, ask)(HOLED)
        assert np.abs(gap).max() < (1.0 if make is regressor else 0.3)
        assert np.sqrt(np.mean(gap**2)) < (0.3 if make is regressor else 0.1)
    heavy = regressor().fit(TABLE, Y, sample_weight=np.where(np.array(TABLE["flag"]), 1.0, 0.0))
    assert heavy.predict(NOTHING) == pytest.approx(Y[TABLE["flag"]].mean(), abs=0.15)


# -- holes in training ----------------------------------------------------------------


def chained(seed, n, kind):
    """Four columns that follow one factor, and a target that all of them make."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, 4))
    if kind == "texts":
        cut = np.digitize(X, [-1, 0, 1])
        texts = np.array(["tiny", "small", "large", "vast"], object)[cut]
        y = cut.sum(axis=1) + 2.0 * (cut[:, 0] > 1) * (cut[:, 1] > 1)
        return texts, y + 0.3 * rng.normal(size=n), rng
    y = X.sum(axis=1) + 2.0 * (X[:, 0] > 0) * (X[:, 1] > 0)
    return X, y + 0.3 * rng.normal(size=n), rng


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["numbers", "texts"])
def test_training_with_holes_beats_filling_them(kind, seed):
    """Columns that stand in for one another, of which 40 % is hidden completely at random.

    A model of rows that were filled with means, or the most frequent, learns to count each
    known column for the unknown ones too, and is then wrong where all are known. Test RMSE
    of complete rows over these seeds: with completions 0.58 to 0.66 (numbers) and 0.57 to
    0.64 (texts); filled 0.96 to 1.17 and 0.88 to 1.30; without holes 0.40 to 0.43 and 0.30
    to 0.32. Where a single column makes the target the two are about as good: completions
    do not look at the target.
    """
    X, y, rng = chained(seed, 400, kind)
    Z, truth, _ = chained(seed + 100, 1000, kind)
    gone = rng.random(X.shape) < 0.4
    model = CircuitRegressor(
        density=ChowLiu(), max_splits=8, penalties=(3.0,), calibration_rows=0, random_state=0
    )
    if kind == "numbers":
        holes = np.where(gone, np.nan, X)
        filled = SimpleImputer().fit_transform(holes)
    else:
        holes = np.where(gone, None, X)
        filled = SimpleImputer(strategy="most_frequent", missing_values=None).fit_transform(holes)

    def error(train):
        return np.sqrt(np.mean((clone(model).fit(train, y).predict(Z) - truth) ** 2))

    assert error(holes) < 0.85 * error(filled)


def test_completions_share_the_weight_and_the_fold_of_their_row():
    table = holed(TABLE, len(Y), 0.2, seed=5)
    model = regressor(completions=3).fit(table, Y)
    codes = model.encoder_.codes(table)
    weight = np.arange(len(Y)) % 4 + 0.5
    weight[5] = 0.0
    strata = np.zeros(len(Y), int)
    codes = model.encoder_.codes(read_inputs(table))
    training = model._training(codes, weight, strata, Seeds.of(0))
    np.testing.assert_allclose(np.bincount(training.origin, training.weight), weight)
    times = np.bincount(training.origin, minlength=len(Y))
    np.testing.assert_array_equal(times, np.where(codes.min(axis=1) < 0, 3, 1) * (weight > 0))
    known = codes[training.origin]
    np.testing.assert_array_equal(training.codes[known >= 0], known[known >= 0])
    assert training.codes.min() >= 0
    assert np.all(training.codes < model.encoder_.cardinalities_)
    assert len({(a, b) for a, b in zip(training.origin, training.fold, strict=True)}) == 239
    assert np.bincount(training.fold[np.unique(training.origin, return_index=True)[1]]).min() >= 47


# -- intervals ------------------------------------------------------------------------


def uneven(seed, n):
    """Noise that is small for most rows and large for some: far from normal."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 1] += X[:, 0]
    y = X[:, 0] + X[:, 1] + np.where(X[:, 2] > 1, 3.0, 0.1) * rng.normal(size=n)
    return X, y, rng


def covered(model, X, y, coverage=0.9):
    low, high = model.predict_interval(X, coverage).T
    return np.mean((low <= y) & (y <= high))


def tolerance(rows, coverage=0.9, calibrated=QUANTILE_ROWS):
    """Four standard errors of a share of rows, whose level was learned from some rows too."""
    return 4 * np.sqrt(coverage * (1 - coverage) * (1 / rows + 1 / calibrated))


def test_rows_to_calibrate_on():
    codes = np.arange(60).reshape(20, 3) % 4
    codes[0] = -1
    picked, left = hide_columns(codes, 21, np.random.default_rng(0))
    missing = np.count_nonzero(left < 0, axis=1)
    assert set(np.bincount(missing)[:3]) <= {0, 6, 7}
    assert sorted(picked[missing == 3]) == list(range(20))  # nothing known: all of them, once
    assert np.all((left == codes[picked]) | (left < 0))


def test_some_numbers_of_very_many_columns_stand_for_all():
    codes = np.zeros((30, 2000), np.int32)
    picked, left = hide_columns(codes, 700, np.random.default_rng(0))
    missing = np.count_nonzero(left < 0, axis=1)
    numbers = np.unique(missing)
    assert len(numbers) == MAX_NUMBERS
    assert {1, 2000} <= set(numbers.tolist())
    assert len(picked) < 800
    score = np.random.default_rng(1).normal(size=len(picked))
    zero = np.zeros(len(picked))
    calibration = Calibration.joined([Calibration(missing, score, picked, zero, zero)])
    between = int(numbers[10] + 3)  # of which there are no rows
    assert calibration.alike(between) is calibration.alike(int(numbers[10]))
    assert calibration.alike(between).of_scores(0).n > 10


@pytest.fixture(scope="module")
def noisy():
    X, y, _ = uneven(0, 1200)
    enough = 4 * int(QUANTILE_ROWS)  # for each number of unknown columns
    return regressor(
        density=ChowLiu(encoder=Encoder(max_bins=12)), max_bins=24, calibration_rows=enough
    ).fit(X, y)


@pytest.mark.parametrize("unknown", range(5))
def test_intervals_cover_whatever_is_unknown(noisy, unknown):
    X, y, rng = uneven(1, 800)
    X[np.argsort(rng.random(X.shape), axis=1) < unknown] = np.nan
    for coverage in (0.5, 0.9):
        found = covered(noisy, X, y, coverage)
        assert found == pytest.approx(coverage, abs=tolerance(800, coverage))


def test_intervals_cover_where_training_had_holes():
    X, y, rng = uneven(2, 1000)
    H = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    model = regressor(density=ChowLiu(encoder=Encoder(max_bins=8)), calibration_rows=800)
    model.fit(H[:600], y[:600])
    assert covered(model, H[600:], y[600:]) == pytest.approx(0.9, abs=tolerance(400))


@pytest.mark.parametrize(("n", "seeds", "least"), [(15, 10, 0.85), (60, 6, 0.85)])
def test_intervals_from_few_rows_cover(n, seeds, least):
    found = np.zeros((seeds, 3))
    for seed in range(seeds):
        X, y, rng = uneven(seed, n + 400)
        model = regressor(calibration_rows=200, random_state=seed).fit(X[:n], y[:n])
        hide = np.argsort(rng.random((400, 4)), axis=1)
        for k, unknown in enumerate((0, 2, 4)):
            found[seed, k] = covered(model, np.where(hide < unknown, np.nan, X[n:]), y[n:])
    assert found.mean(axis=0).min() > least


def test_what_calibration_cannot_tell_has_no_ends():
    X, y, _ = uneven(8, 30)
    model = regressor(calibration_rows=200).fit(X, y)
    rows = np.where(np.arange(4) < [[0], [2], [4]], np.nan, X[:3])
    assert np.all(np.isfinite(model.predict_interval(rows, 29 / 31 - 1e-9)))
    ends = model.predict_interval(rows, 29 / 31 + 1e-9)
    np.testing.assert_array_equal(ends, [[-np.inf, np.inf]] * 3)
    middle = model.predict_quantiles(rows, [0.001, 0.5, 0.9999])
    np.testing.assert_array_equal(middle[:, ::2], ends)
    assert np.all(np.isfinite(middle[:, 1]))
    # the distribution goes on, by assumption
    far = model.predict_distribution(rows).quantile([0.001, 1 / 31, 30 / 31, 0.9999])
    assert np.all(np.diff(far, axis=1) > 0)


def test_far_quantiles_are_not_cut_off():
    X, y, _ = uneven(9, 60)
    model = regressor(calibration_rows=0).fit(X, y)
    rows = np.where(np.arange(4) < [[0], [2], [4]], np.nan, X[:3])
    ends = model.predict_interval(rows, 1 - 2e-7)
    expected = model.predict_distribution(rows, noise=model.noise_).quantile([1e-7, 1 - 1e-7])
    np.testing.assert_allclose(ends, expected, rtol=0.01)
    assert np.all(np.diff(ends, axis=1) > np.diff(model.predict_interval(rows, 0.9999), axis=1))


def test_intervals_widen_with_what_is_unknown(noisy):
    X = uneven(3, 60)[0]
    widths = []
    for unknown in (0, 2, 4):
        H = X.copy()
        H[:, :unknown] = np.nan
        widths.append(np.diff(noisy.predict_interval(H), axis=1).mean())
    assert widths[0] < widths[1] < 1.001 * widths[2]


def test_calibrating_anew_restores_coverage(noisy):
    model = pickle.loads(pickle.dumps(noisy))
    X, y, rng = uneven(4, 2400)
    y += 8.0 * rng.normal(size=len(y))
    assert covered(model, X[1200:], y[1200:]) < 0.6
    assert model.calibrate(X[:1200], y[:1200]) is model
    for unknown in (0, 2):
        X[:, :unknown] = np.nan
        found = covered(model, X[1200:], y[1200:])
        assert found == pytest.approx(0.9, abs=tolerance(1200))
    np.testing.assert_array_equal(model.predict(X), noisy.predict(X))


def test_calibrating_after_none():
    X, y, _ = uneven(5, 800)
    model = regressor(calibration_rows=0).fit(X[:300], y[:300])
    assert len(model.calibration_.score) == 0
    assert np.all(np.isfinite(model.predict_interval(X[:9])))
    z = 1.6448536269514722  # complete rows are normal, with the noise that was learned
    mean, noise = model.predict(X[:9]), model.predict_noise(X[:9])
    expected = np.stack([mean - z * noise, mean + z * noise], axis=1)
    np.testing.assert_allclose(model.predict_interval(X[:9]), expected, rtol=1e-6, atol=1e-6)
    model.calibrate(X[300:600], y[300:600])
    assert len(model.calibration_.score) > 300
    assert covered(model, X[600:], y[600:]) == pytest.approx(0.9, abs=tolerance(200))


def test_the_distribution_of_the_output_and_noise(noisy):
    X = uneven(7, 30)[0]
    mean = noisy.predict(X)
    normal = noisy.predict_distribution(X, noise=2.0)
    np.testing.assert_allclose(normal.quantile(0.5), mean, atol=1e-9)
    np.testing.assert_allclose(normal.quantile(0.8413447460685429) - mean, 2.0, rtol=1e-9)
    X[:, 0] = np.nan
    bare = noisy.predict_distribution(X, noise=0.0)
    assert np.all(bare.cdf(noisy.predict(X)[:, None])[:, 0] > 0)
    np.testing.assert_allclose(bare.cdf(1e6), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(bare.cdf(-1e6), 0.0)
    logits = classifier().fit(TABLE, THREE).predict_distribution(HOLED)
    assert logits.cdf(0.0).shape == (40, 3)


def test_noise_is_what_held_out_rows_show():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = X @ [1.0, 2.0, 3.0] + 2.0 * rng.normal(size=500)
    model = regressor(max_bins=32, calibration_rows=0).fit(X, y)
    assert model.noise_ == pytest.approx(2.0, rel=0.25)
    assert set(model.validation_) == {3.0}
    assert model.n_splits_ in model.validation_[3.0]
    assert model.penalty_ == 3.0


@pytest.mark.parametrize("n", [2, 3, 5, 19, 20])
@pytest.mark.parametrize("learner", [CircuitRegressor, CircuitClassifier])
def test_few_rows_with_missing_cells_are_learned_from(learner, n):
    rng = np.random.default_rng(n)
    table = {"a": rng.normal(size=n), "b": rng.integers(0, 2, n).astype(float)}
    table["a"][0] = table["b"][-1] = np.nan
    y = np.arange(n) % 2
    model = learner(random_state=0).fit(table, y)
    answer = (
        model.predict_proba(table)[:, 1] if learner is CircuitClassifier else model.predict(table)
    )
    assert np.all((answer > -1.0) & (answer < 2.0))
