"""The spread of linear models through a link, and of sampled models, against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor
from sklearn.neighbors import KNeighborsRegressor

from expecta import ChowLiu, Encoder, ExpectedPredictor

NAMES = ["a", "b", "c"]


def _table(rng):
    X = pd.DataFrame({name: rng.integers(0, 6, 400).astype(float) for name in NAMES})
    X["b"] = X["a"] + rng.integers(0, 2, 400)
    return X, np.exp(0.3 * X["a"] - 0.2 * X["b"] + 0.1 * X["c"])


def _enumerated(predictor, predict, rows):
    """Mean and spread; known numbers as they are, unknown ones the means of their bins."""
    density = predictor.expected_model.density
    encoder = density.encoder_
    cells = np.array(list(product(*map(range, encoder.cardinalities_))), np.int32)
    weight = np.exp(density.circuit.log_prob(cells))
    means = {name: encoder.columns_[k].means[cells[:, k]] for k, name in enumerate(NAMES)}
    codes = encoder.codes(rows)
    out = []
    for i in range(len(rows)):
        fits = np.all((codes[i] < 0) | (codes[i] == cells), axis=1)
        filled = pd.DataFrame(means)[fits]
        for name in NAMES:
            if not np.isnan(rows[name].iloc[i]):
                filled[name] = rows[name].iloc[i]
        w = weight[fits] / weight[fits].sum()
        f = predict(filled)
        out.append([w @ f, np.sqrt(max(w @ (f - w @ f) ** 2, 0.0))])
    return np.array(out).T


@pytest.mark.parametrize("bins", [3, 12], ids=["wide bins", "a bin for each value"])
@pytest.mark.parametrize(
    "model", [PoissonRegressor(alpha=0.01), GammaRegressor(alpha=0.01), LogisticRegression()]
)
def test_spreads_of_linear_models_through_a_link_are_exact(model, bins):
    rng = np.random.default_rng(0)
    X, y = _table(rng)
    classifies = isinstance(model, LogisticRegression)
    model.fit(X, y > np.median(y) if classifies else y)
    predictor = ExpectedPredictor(model, ChowLiu(encoder=Encoder(max_bins=bins))).fit(X)
    rows = X.mask(rng.random(X.shape) < 0.5).head(60)
    if classifies:
        told = [part[:, 1] for part in predictor.predict_proba(rows, return_std=True)]
        truth = _enumerated(predictor, lambda some: model.predict_proba(some)[:, 1], rows)
        np.testing.assert_allclose(told[0], truth[0], atol=1e-5)
    else:
        told = predictor.predict(rows, return_std=True)
        truth = _enumerated(predictor, model.predict, rows)
        np.testing.assert_allclose(told[0], truth[0], rtol=1e-9)
    np.testing.assert_allclose(told[1] ** 2, truth[1] ** 2, rtol=1e-9, atol=1e-10)
    assert "Spread of the output (return_std): sampled" not in predictor.explain_exactness()


def test_a_rare_value_is_in_the_spread():
    rng = np.random.default_rng(0)
    rare = (rng.random(4000) < 0.01).astype(float)
    X = np.column_stack([rare, rng.integers(0, 3, 4000)]).astype(float)
    model = PoissonRegressor(alpha=1e-6).fit(X, np.exp(3 * rare))
    predictor = ExpectedPredictor(model, ChowLiu()).fit(X)
    _, std = predictor.predict([[np.nan, 0.0]], return_std=True)
    np.testing.assert_allclose(std, predictor.ask({"x1": 0.0}).std, rtol=1e-9)


def test_spreads_of_sampled_models_rest_on_many_samples():
    rng = np.random.default_rng(0)
    X, y = _table(rng)
    model = KNeighborsRegressor().fit(X, y)
    predictor = ExpectedPredictor(model, ChowLiu(encoder=Encoder(max_bins=12))).fit(X)
    rows = X.mask(rng.random(X.shape) < 0.5)
    rows = rows[rows.isna().any(axis=1)].head(40)
    _, std = predictor.predict(rows, return_std=True)
    _, truth = _enumerated(predictor, model.predict, rows)
    off = (std - truth)[truth > 0] / truth[truth > 0]
    assert np.sqrt(np.mean(off**2)) < 0.06  # with 64 samples about 0.2
