"""The spread of a class's probability over unknown inputs, by enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from expecta import ChowLiu, CircuitClassifier
from truth import complete_rows, probability


@pytest.mark.parametrize("classes", [2, 3])
def test_spread_of_probabilities_is_that_of_all_completions(classes):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (300, 3))
    y = np.minimum(X[:, 0] + (rng.random(300) < 0.3), classes - 1)
    names = np.array(["no", "yes", "why"])[y]
    model = CircuitClassifier(density=ChowLiu(), max_splits=2).fit(X.astype(str), names)
    rows = np.array([[0, -1, 2], [-1, -1, -1], [1, 2, 0], [-1, 1, -1]])
    table = np.where(rows < 0, None, rows.astype(str)).astype(object)
    _, std = model.predict_proba(table, return_std=True)
    p, g = model.pair_.p, model.pair_.g
    every = complete_rows(p.cardinalities)
    weight = np.array([probability(p, x) for x in every])
    each = expit(g(every).reshape(len(every), -1))
    each = each / each.sum(axis=1, keepdims=True) if classes > 2 else np.hstack([1 - each, each])
    codes = model.encoder_.transform(table)
    for row, spread in zip(codes, std, strict=True):
        posterior = weight * np.all((row < 0) | (every == row), axis=1)
        posterior /= posterior.sum()
        variance = posterior @ each**2 - (posterior @ each) ** 2
        tolerance = 1e-7 if classes == 2 else 0.02  # several classes are sampled
        np.testing.assert_allclose(spread, np.sqrt(np.maximum(variance, 0)), atol=tolerance)
