"""The spread of outputs that hardly vary, against 40 digits."""

from __future__ import annotations

import re
from itertools import product

import mpmath
import numpy as np
import pytest

from expecta import CircuitModel, Encoder, Evidence, Pair, Vtree, random_probabilistic
from expecta.ask.groups import ask
from expecta.circuits.constructions import linear
from expecta.circuits.regression import RegressionCircuit
from expecta.expected.link_variance import variance_about_mean
from expecta.expected.pair_output import PairOutput
from expecta.queries.links import mean_and_square_of_exp

N = 5
EVERY = np.array(list(product([0, 1], repeat=N)))
ROWS = np.array([[-1] * N, [1, -1, -1, 0, -1]])
LINKS = {"exp": mpmath.exp, "logistic": lambda x: 1 / (1 + mpmath.exp(-x))}


def make(mean, spread, seed):
    """A pair whose g is near a mean, the tables that it adds up, and evidence."""
    p = random_probabilistic(Vtree.balanced(N), seed=seed)
    tables = spread * np.random.default_rng(seed).normal(size=(N, 2))
    return Pair(p, linear(p.vtree, tables, bias=mean)), tables, Evidence.rows(ROWS, [2] * N)


def truth(pair, tables, link):
    """Means and variances of the output given each row, by enumeration of what is unknown."""
    out = []
    with mpmath.workdps(40):
        mpf = [[mpmath.mpf(float(x)) for x in table] for table in tables]
        bias = mpmath.mpf(float(pair.g.bias[0]))
        log_prob = pair.p.log_prob(EVERY)
        for known in ROWS:
            which = np.flatnonzero(np.all((known < 0) | (known == EVERY), axis=1)).tolist()
            weight = [mpmath.exp(float(log_prob[i])) for i in which]
            rows = [zip(mpf, EVERY[i].tolist(), strict=True) for i in which]
            values = [LINKS[link](bias + mpmath.fsum(t[x] for t, x in row)) for row in rows]
            mean = mpmath.fdot(weight, values) / mpmath.fsum(weight)
            squares = [(value - mean) ** 2 for value in values]
            out.append((float(mean), float(mpmath.fdot(weight, squares) / mpmath.fsum(weight))))
    return np.array(out).T


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("mean", [-30.0, -3.0, 0.0, 0.7, 12.0])
@pytest.mark.parametrize("spread", [1e-9, 1e-6, 1e-3, 0.02, 0.1, 0.5])
def test_the_variance_is_within_its_bound(link, mean, spread):
    for seed in range(4):
        pair, tables, evidence = make(mean, spread, seed)
        _, variance = truth(pair, tables, link)
        about, bound = variance_about_mean(pair, evidence, link, *pair.range(evidence))
        used = np.isfinite(bound)
        assert np.all(np.abs(about - variance)[used] <= bound[used] + 1e-12 * variance[used])
        if spread <= 1e-3:
            np.testing.assert_allclose(about, variance, rtol=1e-9)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("spread", [1e-9, 1e-7, 1e-6])
def test_the_spread_of_outputs_a_million_times_as_large(link, spread):
    """Squares less the squared mean have no digit of it."""
    encoder = Encoder().fit(EVERY)
    for seed in range(3):
        pair, tables, evidence = make(0.3, spread, seed)
        context = CircuitModel(pair, encoder).expected_output().context
        summary = PairOutput(context, pair, link, 1e-9).describe_groups(evidence, np.ones((2, 1)))
        mean, variance = truth(pair, tables, link)
        assert np.all(mean > 1e5 * np.sqrt(variance))
        np.testing.assert_allclose(summary.mean, mean, rtol=1e-11)
        np.testing.assert_allclose(np.sqrt(summary.variance), np.sqrt(variance), rtol=1e-6)
        assert np.all(summary.variance_error <= 1e-6 * variance)


def test_a_spread_that_is_hardly_known_is_said():
    pair, tables, _ = make(-20.0, 2.0, 0)
    context = CircuitModel(pair, Encoder().fit(EVERY)).expected_output().context
    group = ask(PairOutput(context, pair, "logistic", 1e-9))
    _, variance = truth(pair, tables, "logistic")
    (said,) = [remark for remark in group.remarks if "standard deviation" in remark]
    low, high = map(float, re.findall(r"[\d.e-]*\d", said))
    assert low <= np.sqrt(variance[0]) <= high


@pytest.mark.parametrize("spread", [0.01, 3.0, 400.0])
def test_mean_and_square_of_exponentials_are_those_of_two_pairs(spread):
    pair, _, evidence = make(-5.0, spread, 1)
    g = pair.g
    double = Pair(pair.p, RegressionCircuit(g.structure, 2.0 * g.weight, 2.0 * g.bias))
    mean, square = mean_and_square_of_exp(pair, evidence)
    assert np.array_equal(mean[:, 0], pair.expected(evidence, "exp").value)
    np.testing.assert_allclose(square[:, 0], double.expected(evidence, "exp").value, rtol=1e-13)


@pytest.mark.parametrize("link", ["identity", *LINKS])
@pytest.mark.parametrize("spread", [0.01, 1.0])
def test_mean_and_variance_of_a_row_alone_and_beside_one_that_is_impossible(link, spread):
    pair, _, _ = make(0.5, spread, 2)
    context = CircuitModel(pair, Encoder().fit(EVERY)).expected_output().context
    output = PairOutput(context, pair, link, 1e-9)
    three = Evidence.rows(ROWS[[0, 1, 0]], [2] * N)
    three = three.likelihood(3, [[1.0, 1.0], [1.0, 0.5], [0.0, 0.0]])
    together = np.stack(output.mean_and_variance(three))
    assert np.all(np.isnan(together) == [False, False, True])
    for row in range(2):
        alone = np.stack(output.mean_and_variance(three[row : row + 1]))
        np.testing.assert_allclose(alone[:, 0], together[:, row], rtol=1e-12, atol=1e-300)
    np.testing.assert_array_equal(np.stack(output.variance(three)), together[2:])
    np.testing.assert_allclose(output.mean(three)[0], together[0], atol=2e-9)
