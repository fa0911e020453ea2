"""Bounds that hold: against the truth in 30 digits, on pairs that are built to break them."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from mpmath import mp, mpf

import certified
from expecta import Pair, RegressionCircuit, Vtree
from expecta.circuits import independent, leaf, linear
from expecta.queries import output_distribution
from expecta.queries.links import LINKS


def check(what, first, last):
    tally = certified.main(what, first, last)
    limit = 1e-8 if what == "pairs" else 1.0
    assert all(worst <= limit for worst, _ in tally.worst.values()), str(tally)


@pytest.mark.parametrize("first", range(0, 160, 40))
def test_no_bound_is_exceeded(first):
    check("some bounds", first, first + 40)


def test_exact_is_exact():
    check("pairs", 0, 100)


@pytest.mark.parametrize(
    ("what", "seed"),
    [
        ("some bounds", 6172),
        ("some bounds", 8035),
        ("some bounds", 8667),
        ("pairs", 3071),
        ("pairs", 4979),
    ],
)
def test_pairs_that_broke_a_bound(what, seed):
    check(what, seed, seed + 1)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["bounds", "pairs"])
def test_ten_thousand_pairs(what, capsys):
    with capsys.disabled():
        check(what, 0, 10_000)


@pytest.mark.parametrize("link", ["logistic", "probit", "tanh"])
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-12])
def test_evidence_that_leaves_g_far_from_its_greatest(link, tol):
    """What is known is improbable, and g given it lies hundreds below what it can be."""
    n = 76
    vtree = Vtree.balanced(n)
    p = independent(vtree, [[0.01, 0.99], *[[0.1, 0.9]] * (n - 1)])
    g = linear(vtree, [[0.0, 60.0], *[[0.0, 146 / 75]] * (n - 1)])
    found = Pair(p, g).expected([[-1] + [0] * (n - 1)], link, tol=tol)
    at = LINKS[link].derivatives(np.array([0.0, 60.0]), 0)[0]
    assert abs(found.value[0] - (0.01 * at[0] + 0.99 * at[1])) <= found.error[0] <= 2.5 * tol


@pytest.mark.parametrize("above", [400.0, 1500.0])
def test_exponentials_far_below_what_g_can_be(above):
    n = 40
    vtree = Vtree.balanced(n)
    p = independent(vtree, [[1e-8, 1 - 1e-8]] * n)
    pair = Pair(p, linear(vtree, [[0.0, 1.0], *[[0.0, above]] * (n - 1)]))
    found = pair.expected([[-1] + [0] * (n - 1)], "exp")
    true = 1e-8 + (1 - 1e-8) * np.e
    assert abs(found.value[0] - true) <= found.error[0] <= 1e-10


def cancelling(size, bias):
    """Two variables whose parameters cancel, and the four values of g in 30 digits."""
    tables = [[size, size + 0.7], [-size, 0.2 - size]]
    vtree = Vtree.balanced(2)
    pair = Pair(independent(vtree, [[0.5, 0.5]] * 2), linear(vtree, tables, bias=bias))
    with mp.workdps(30):
        return pair, [mpf(a) + mpf(b) + mpf(bias) for a in tables[0] for b in tables[1]]


@pytest.mark.parametrize("size", [1e3 / 3, 1e9 / 3, 1e14 / 3])
@pytest.mark.parametrize("bias", [0.1, -1e9 / 7, 1e9 / 7])
def test_exponentials_of_parameters_that_cancel(size, bias):
    pair, values = cancelling(size, bias)
    offset = -np.round(bias)
    found = pair.expected([[-1, -1]], "exp", offset=[offset])
    with mp.workdps(30):
        true = sum(mp.exp(value + mpf(offset)) for value in values) / 4
        assert abs(mpf(found.value[0]) - true) <= found.error[0] <= 1e-13 * true


def test_parameters_too_large_for_any_bound():
    pair, _ = cancelling(1e20, 0.0)
    assert np.isnan(pair.expected([[-1, -1]], "exp").error[0])


@pytest.mark.parametrize("size", [1e3 / 3, 1e9 / 3, 1e11 / 3])
def test_distributions_of_parameters_that_cancel(size):
    pair, values = cancelling(size, 0.1)
    with patch.object(output_distribution, "MAX_ATOMS", 0):
        answer = pair.distribution([[-1, -1]], noise=0.01, tol=1e-12)
    assert not answer.resolution[0]
    assert 0 < answer.error[0] < 1e-11
    at = np.linspace(-0.1, 1.1, 25)
    with mp.workdps(30):
        true = [sum(mp.ncdf((mpf(c) - value) / mpf(0.01)) for value in values) / 4 for c in at]
        error = [abs(mpf(one) - other) for one, other in zip(answer.cdf(at)[0], true, strict=True)]
    assert max(error) <= answer.error[0]


def test_atoms_given_what_is_improbable():
    """The evidence has the log-probability -69,000; what is left open does not mind."""
    n = 101
    vtree = Vtree.balanced(n)
    p = independent(vtree, [[0.3, 0.7], *[[1e-300, 1.0]] * (n - 1)])
    answer = Pair(p, linear(vtree, [[0.0, 1.0]] * n)).distribution([[-1] + [0] * (n - 1)])
    np.testing.assert_allclose(answer.cdf([0.0, 0.5, 1.0])[0], [0.3, 0.3, 1.0], rtol=1e-15)


def test_sums_of_many_terms():
    n = 20_000
    vtree, values = Vtree.balanced(1), np.linspace(0.0, 0.1, n)
    pair = Pair(independent(vtree, [np.full(n, 1 / n)]), linear(vtree, [values]))
    found = pair.expected([[-1]], "exp")
    with mp.workdps(30):
        true = mp.fsum(mp.exp(mpf(value)) for value in values) / n
        assert abs(mpf(found.value[0]) - true) <= found.error[0] <= 1e-11


@pytest.mark.parametrize("share", [1e-6, 1e-24])
def test_moments_where_a_formula_hardly_ever_holds(share):
    vtree = Vtree.balanced(1)
    g = RegressionCircuit.build(vtree, leaf(0, [3.0, None]), [2], bias=1.0)
    moments = Pair(independent(vtree, [[share, 1 - share]]), g).moments([[-1]], 4, central=True)
    second = 9 * share * (1 - share)
    third, fourth = 3 * second * (1 - 2 * share), 9 * second * (1 - 3 * share * (1 - share))
    np.testing.assert_allclose(moments[0], [1, 0, second, third, fourth], rtol=1e-13)


@pytest.mark.parametrize("share", [1e-6, 1e-24])
def test_moments_where_a_formula_hardly_ever_fails(share):
    """What lies off the support by less than rounding counts nowhere."""
    vtree = Vtree.balanced(1)
    g = RegressionCircuit.build(vtree, leaf(0, [3.0, None]), [2], bias=1.0)
    pair = Pair(independent(vtree, [[1 - share, share]]), g)
    seen = share if share > pair.rounding else 0.0
    assert pair.support_probability([[-1]])[0] == pytest.approx(1 - seen, abs=1e-15)
    assert pair.variance([[-1]])[0] == pytest.approx(9 * seen * (1 - seen), abs=1e-14)
    assert pair.range([[-1]])[0][0] == (1.0 if seen else 4.0)
