"""Bounds that hold: against the truth in 30 digits, on pairs that are built to break them."""

from __future__ import annotations

import numpy as np
import pytest

import certified
from expecta import Pair, Vtree
from expecta.circuits import independent, linear
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
