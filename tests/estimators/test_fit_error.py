"""Standard errors from the fit: of predictions with other training rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from expecta import (
    CircuitClassifier,
    CircuitRegressor,
    DomainError,
    ExpectedPredictor,
    Independent,
)


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return {"x": x, "k": rng.integers(0, 2, n)}, x + rng.normal(size=n)


UNKNOWN = {"x": [np.nan, 0.5], "k": [1, np.nan]}


def fitted(kind, n):
    X, y = table(n)
    if kind == "regressor":
        return CircuitRegressor(random_state=0, calibration_rows=0).fit(X, y)
    return CircuitClassifier(random_state=0).fit(X, y > 0)


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_the_error_of_a_mean_is_that_of_statistics(missing):
    rng = np.random.default_rng(1)
    y = rng.normal(5.0, 2.0, size=400)
    x = np.where(rng.random(400) < missing, np.nan, rng.integers(2, size=400))
    model = CircuitRegressor(random_state=0, calibration_rows=0).fit({"k": [0] * 400, "x": x}, y)
    _, error = model.predict({"k": [None], "x": [None]}, return_error="fit")
    assert error[0] == pytest.approx(y.std(ddof=1) / 20, rel=0.4)  # 30 replicates: 13% each way


@pytest.mark.parametrize("kind", ["regressor", "classifier"])
def test_more_rows_leave_less_error(kind):
    errors = []
    for n in (100, 1600):
        model = fitted(kind, n)
        predict = model.predict if kind == "regressor" else model.predict_proba
        mean, error = predict(UNKNOWN, return_error="fit")
        assert np.shape(error) == np.shape(mean)
        assert np.all(error > 0)
        assert np.array_equal(error, predict(UNKNOWN, return_error="fit")[1])
        errors.append(error.reshape(2, -1)[:, 0])
    assert np.all(errors[1] < 0.7 * errors[0])


def test_errors_come_after_what_else_was_asked_for():
    mean, std, error = fitted("regressor", 100).predict(UNKNOWN, True, "fit")
    assert mean.shape == std.shape == error.shape == (2,)
    labels, error = fitted("classifier", 100).predict(UNKNOWN, return_error="fit")
    assert labels.shape == (2,)
    assert error.shape == (2, 2)


def test_a_wrapped_model_stays_and_its_density_varies():
    X, y = table(300)
    rows = np.column_stack([X["x"], X["k"]])
    model = ExpectedPredictor(LinearRegression().fit(rows, y)).fit(rows, y)
    _, error = model.predict([[0.5, 1.0], [np.nan, 1.0]], return_error="fit")
    assert error[0] == 0
    assert 0.02 < error[1] < 0.2  # 1/sqrt(150) for the mean of x in the group


@pytest.mark.parametrize("complete", [True, False])
def test_a_wrapped_model_need_not_use_all_columns(complete):
    X, y = table(200)
    model = LinearRegression().fit(pd.DataFrame({"x": X["x"]}), y)
    if not complete:
        X["x"] = np.where(np.arange(200) % 2, X["x"], np.nan)
        X["k"] = np.where(np.arange(200) % 2, np.nan, X["k"])
    predictor = ExpectedPredictor(model, random_state=0).fit(pd.DataFrame(X))
    _, error = predictor.predict(UNKNOWN, return_error="fit")
    assert error[0] > 0.01
    assert error[1] == 0.0  # all that the model uses is known


def test_a_density_that_was_given_stays():
    X, y = table(200)
    given = Independent().fit(X)
    model = CircuitRegressor(density=given, random_state=0, calibration_rows=0).fit(X, y)
    model.predict(UNKNOWN, return_error="fit")
    replicates = model._replicates()
    assert all(one.density.circuit is model.refined_.circuit for one in replicates)


def test_a_given_density_of_a_wrapped_model_stays():
    """So nothing varies, whatever rows the predictor is fitted to."""
    X, y = table(400)
    model, density = LinearRegression().fit(pd.DataFrame(X), y), Independent().fit(X)
    other, _ = table(30, seed=1)
    predictor = ExpectedPredictor(model, density).fit(other)
    _, error = predictor.predict(UNKNOWN, return_error="fit")
    assert np.all(error == 0)


def test_what_rows_hardly_tell_is_chosen_anew():
    """Whether columns depend on each other, and which scale fits a slightly skewed target."""
    rng = np.random.default_rng(0)
    X = {"x": rng.normal(size=150), "k": rng.integers(0, 3, 150)}
    y = 5 + X["x"] + 0.6 * X["k"] + rng.gamma(1.5, 1.2, size=150)
    model = CircuitRegressor(random_state=0, calibration_rows=0).fit(X, y)
    replicates = model._replicates()
    assert len({one.scale for one in replicates}) == 2
    assert len({one.density.circuit.structure.n_nodes for one in replicates}) > 1
    assert {one.scale for one in replicates[10:20]} == {one.scale for one in replicates[:10]}
    known = model.predict({"x": [0.0], "k": [1]})
    means = np.array([one.answer(one.rows({"x": [0.0], "k": [1]})).mean for one in replicates])
    assert np.all(np.abs(means - known) < 1.0)  # on whatever scale, a mean of y
    plain = CircuitRegressor(random_state=0, calibration_rows=0, target_transform=None).fit(X, y)
    assert {one.scale.origin for one in plain._replicates()} == {None}


def test_what_cannot_be_known_is_refused(tmp_path):
    model = fitted("regressor", 60)
    with pytest.raises(ValueError, match='True, False or "fit"'):
        model.predict(UNKNOWN, return_error="fits")
    model.save(tmp_path / "m.expecta")
    with pytest.raises(DomainError, match="a file does not hold"):
        CircuitRegressor.load(tmp_path / "m.expecta").predict(UNKNOWN, return_error="fit")
    X, _ = table(60)
    constant = CircuitClassifier(random_state=0).fit(X, ["a"] * 60)
    with pytest.raises(DomainError, match="one class"):
        constant.predict_proba(UNKNOWN, return_error="fit")
