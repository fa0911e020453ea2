"""Large tables: what is decided on a part of the rows or columns is said, and still predicts."""

import numpy as np
import pytest

from expecta import ChowLiu, CircuitClassifier, CircuitRegressor, Encoder
from expecta.estimators import circuit_estimator, regressor
from expecta.expected import learned_circuit
from expecta.learn.regression import screening


def table(n: int, columns: int):
    """Draw rows with some missing values, of which the first two columns decide the target."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, columns))
    y = X[:, 0] + 2.0 * (X[:, 1] > 0) + 0.2 * rng.normal(size=n)
    return np.where(rng.random(X.shape) < 0.05, np.nan, X), y


def small(kind, **options):
    return kind(density=ChowLiu(encoder=Encoder(max_bins=6)), max_splits=2, **options)


@pytest.fixture
def many_rows(monkeypatch):
    monkeypatch.setattr(circuit_estimator, "MAX_ROWS", 600)
    monkeypatch.setattr(circuit_estimator, "MANY_ROWS", 400)
    monkeypatch.setattr(circuit_estimator, "DECISION_ROWS", 300)


def test_many_rows(many_rows):
    X, y = table(900, 3)
    model = small(CircuitRegressor, calibration_rows=50).fit(X[:700], y[:700])
    assert model.subsampled_ == (
        "the circuit learned from 600 of 700 rows",
        "splits and penalty of the circuit were chosen on 300 of 600 rows",
    )
    error = model.predict(X[700:]) - y[700:]
    assert np.mean(error**2) < 0.25 * np.var(y)
    low, high = model.predict_interval(X[700:], 0.9).T
    assert 0.8 < np.mean((y[700:] >= low) & (y[700:] <= high)) < 0.98
    again = small(CircuitRegressor, calibration_rows=50).fit(X[:700], y[:700])
    assert np.array_equal(again.predict(X), model.predict(X))


def test_many_rows_of_classes(many_rows):
    X, y = table(900, 3)
    model = small(CircuitClassifier).fit(X[:700], y[:700] > 1)
    assert len(model.subsampled_) == 2
    assert np.mean(model.predict(X[700:]) == (y[700:] > 1)) > 0.85


def test_many_columns(monkeypatch):
    X, y = table(160, 24)
    monkeypatch.setattr(screening, "MAX_VARIABLES", 20)
    monkeypatch.setattr(circuit_estimator, "MAX_VARIABLES", 20)
    monkeypatch.setattr(circuit_estimator, "MAX_ALL_BINS", 200)
    monkeypatch.setattr(screening, "N_KEPT", (2, 8))
    model = small(CircuitRegressor, calibration_rows=0).fit(X[:120], y[:120])
    bins, kept = model.subsampled_
    assert bins == "the circuit tells 8 bins of a number apart, not 256, since there are 24 columns"
    assert kept.startswith("the circuit has the 2 of 24 columns that say most")
    used = [np.ptp(model.circuit_(np.eye(24, dtype=int)[[x, x]] * [[0], [5]])) for x in range(24)]
    assert set(np.flatnonzero(used)) == {0, 1}
    error = model.predict(X[120:]) - y[120:]
    assert np.mean(error**2) < 0.4 * np.var(y)


def test_many_columns_are_calibrated_on_few_predictions(monkeypatch):
    X, y = table(60, 5)
    monkeypatch.setattr(regressor, "MAX_VARIABLES", 4)
    monkeypatch.setattr(learned_circuit, "MAX_VARIABLES", 4)
    monkeypatch.setattr(learned_circuit, "CALIBRATION_ROWS", (20, 2000))
    model = small(CircuitRegressor).fit(X, y)
    (said,) = model.subsampled_
    assert said.startswith("intervals are calibrated on 20 predictions with unknown columns, since")
    assert len(model.calibration_.score) < 200


def test_a_small_table_is_not_subsampled():
    X, y = table(60, 2)
    assert small(CircuitRegressor, calibration_rows=0).fit(X, y).subsampled_ == ()
