"""The variance of y by its inputs, learned from residuals."""

from __future__ import annotations

import numpy as np
import pytest

from expecta import Pair, Vtree, random_probabilistic, random_regression
from expecta.learn.regression.curves import Curve
from expecta.learn.regression.noise_variance import CodedRows, NoiseVariance, learn_noise

VALUES = 32


def learned(std, n=1500, seed=0):
    """Learn from normal residuals with a standard deviation by the codes of five columns."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, VALUES, (n, 5))
    curves = [Curve.of(np.ones(VALUES), np.arange(float(VALUES)), knots=8)] * 4
    curves.append(Curve.of(np.ones(VALUES)))  # categories
    rows = CodedRows(codes, curves)
    residual = std(codes) * rng.normal(size=n)
    noise = learn_noise(rows, [rows] * 5, residual, np.ones(n), np.arange(n) % 5)
    new = rng.integers(0, VALUES, (4000, 5))
    return noise, new, std(new)


def test_what_the_noise_depends_on_is_found():
    noise, new, std = learned(lambda x: np.exp(x[:, 2] / VALUES) + (x[:, 4] == 3))
    assert noise.variance is not None
    assert len(noise.folds) == 5
    guess = noise.variance.std(new)
    assert np.sqrt(np.mean(np.log(guess / std) ** 2)) < 0.15
    assert np.corrcoef(np.log(guess), np.log(std))[0, 1] > 0.8


@pytest.mark.parametrize("seed", range(3))
def test_noise_far_above_the_mean_is_not_pulled_down(seed):
    """Squared residuals vary most where the noise is large: that is no reason to doubt them."""

    def std(x):
        return np.exp(4.0 * (x[:, 0] / VALUES) ** 3)

    noise, new, truth = learned(std, seed=seed)
    top = truth >= np.quantile(truth, 0.9)
    guess = noise.variance.std(new)[top]
    assert np.sqrt(np.mean(guess**2) / np.mean(truth[top] ** 2)) > 0.62


@pytest.mark.parametrize("seed", range(4))
def test_noise_of_one_size_is_left_alone(seed):
    def std(x):
        return np.full(len(x), 3.0)

    assert learned(std, seed=seed)[0] == (None, [None] * 5)
    assert learned(lambda x: 1.0 + x[:, 0], n=60)[0].variance is None  # too few rows to tell


def test_no_parameter_is_negative():
    noise = learned(lambda x: 1.0 + x[:, 0] * (x[:, 1] > 9), n=300)[0].variance
    assert noise.constant > 0
    assert all(np.all(np.isfinite(table) & (table >= 0)) for table in noise.tables)


def test_a_multiple_of_the_target_has_that_multiple_squared():
    one, _, _ = learned(lambda x: 1.0 + x[:, 0])
    other, new, _ = learned(lambda x: 1e6 * (1.0 + x[:, 0]))
    np.testing.assert_allclose(other.variance.std(new), 1e6 * one.variance.std(new), rtol=1e-9)


def test_it_is_a_second_output_of_any_circuit():
    rng = np.random.default_rng(1)
    cards = [2, 3, 4, 2]
    vtree = Vtree.random(4, seed=2)
    p = random_probabilistic(vtree, cards, units=3, seed=3)
    g = random_regression(vtree, cards, seed=4)
    noise = NoiseVariance(0.5, tuple(rng.random(c) for c in cards))
    both = noise.beside(g)
    X = np.stack([rng.integers(0, c, 50) for c in cards], axis=1)
    np.testing.assert_allclose(both(X)[:, 0], g(X), rtol=1e-12)
    np.testing.assert_allclose(both(X)[:, 1], noise(X), rtol=1e-12)
    np.testing.assert_allclose(noise.circuit(vtree)(X), noise(X), rtol=1e-12)
    X[rng.random(X.shape) < 0.5] = -1
    alone = Pair(p, noise.circuit(vtree)).expectation(X)
    np.testing.assert_allclose(Pair(p, both).expectation(X)[:, 1], alone, rtol=1e-12)
