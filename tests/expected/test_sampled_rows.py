"""Sampled answers of models that are only asked: each row by itself."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from expecta import ChowLiu, Encoder, ExpectedPredictor, config_context
from expecta.common.row_random import RowRandom, row_keys


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=200), "b": rng.gamma(2.0, size=200)})
    X["n"] = rng.integers(0, 40, 200)
    return X, X["a"] + X["b"] * (X["n"] > 20)


@pytest.mark.parametrize("model", [KNeighborsRegressor(5), KNeighborsClassifier(5)])
def test_an_answer_does_not_depend_on_what_else_is_asked(table, model):
    X, y = table
    y = y > 1 if isinstance(model, KNeighborsClassifier) else y
    predictor = ExpectedPredictor(model.fit(X, y), density=ChowLiu(), random_state=0).fit(X)
    ask = getattr(predictor, "predict_proba", predictor.predict)
    rows = X.mask(np.random.default_rng(1).random(X.shape) < 0.5)[:40]
    every, error = ask(rows, return_error=True)
    order = np.random.default_rng(2).permutation(40)
    np.testing.assert_array_equal(ask(rows.iloc[order]), every[order])
    np.testing.assert_array_equal(
        np.concatenate([ask(rows[i : i + 1]) for i in range(8)]), every[:8]
    )
    with config_context(threads=1):
        np.testing.assert_array_equal(ask(rows), every)
    other = ExpectedPredictor(model, density=ChowLiu(), random_state=1).fit(X)
    others = getattr(other, "predict_proba", other.predict)(rows)
    unknown = rows.isna().any(axis=1).to_numpy()
    assert np.any(others[unknown] != every[unknown])
    assert np.all(np.abs(others - every) <= 6 * np.maximum(error, 1e-12))


def test_numbers_of_draws_are_even_and_new_at_every_call():
    codes = np.repeat(np.arange(20)[:, None], 200, axis=0)
    draws = RowRandom(row_keys(np.arange(4000)[:, None], 7))
    first, second = draws.random(4000), draws.random(4000)
    assert kstest(first, "uniform").pvalue > 0.001
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.06
    same = RowRandom(row_keys(np.arange(4000)[:, None], 7)[100:200])
    np.testing.assert_array_equal(same.random(100), first[100:200])
    assert len(np.unique(row_keys(codes, 7))) == 20
    assert draws.integers(3, np.full(4000, 5)).tolist().count(3) == pytest.approx(2000, abs=200)


def test_numbers_within_bins_are_those_of_the_beta_distribution(table):
    column = Encoder(max_bins=4).fit(table[0]).columns_[1]
    code = np.full(4000, 3)  # the long tail
    drawn = column.decode(code, RowRandom(row_keys(np.arange(4000)[:, None], 0)))
    usual = column.decode(code, np.random.default_rng(0))
    assert kstest(drawn, usual).pvalue > 0.001
    assert drawn.mean() == pytest.approx(column.means[3], rel=0.03)
