"""Numbers far apart: tiny masses, huge parameters, wide ranges, large nodes."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from mpmath import mp, mpc, mpf
from scipy.special import expit

import expecta.circuits.properties as properties
from expecta import (
    Evidence,
    Pair,
    ProbabilisticCircuit,
    RegressionCircuit,
    Vtree,
    naive_bayes,
    random_probabilistic,
    random_regression,
)
from expecta.circuits import independent, leaf, linear, literal, node
from expecta.common.errors import DomainError, PropertyError
from expecta.engine.algebras.spectrum_algebra import evenly_spaced, turn
from expecta.engine.layers import number_and_exponent
from expecta.queries.spectral import few_digits


def coins(n, p=0.5):
    return independent(Vtree.balanced(n), [[1 - p, p]] * n)


def test_a_component_that_is_far_behind():
    """A mixture whose components differ by thousands of nats: moments stay finite and right."""
    rng = np.random.default_rng(0)
    n, k = 1500, 10
    vtree = Vtree.balanced(n + 1)
    q = rng.uniform(0.05, 0.95, (k, n))
    tables = [np.stack([1 - q[:, i], q[:, i]], axis=1) for i in range(n)]
    p = naive_bayes(vtree, n, np.full(k, 1 / k), [*tables, None])
    weights = rng.normal(size=n)
    pair = Pair(p, linear(vtree, [*([0.0, w] for w in weights), [0.0] * k]))
    full = p.sample(300, seed=0)
    X = np.where(rng.random(full.shape) < 0.1, -1, full)
    X[:, -1] = -1
    std = pair.std(X)
    assert np.all(np.isfinite(std))
    # given the class, inputs are independent; the posterior of the class by Bayes' rule
    log = np.zeros((len(X), k))
    for i in range(n):
        seen = X[:, i]
        log += np.where(
            seen[:, None] < 0, 0.0, np.log(np.where(seen[:, None] == 1, q[:, i], 1 - q[:, i]))
        )
    posterior = np.exp(log - log.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    unknown = X[:, :-1] < 0
    fixed = np.where(X[:, :-1] == 1, weights, 0.0).sum(axis=1)
    mean = np.stack([fixed + unknown @ (weights * q[c]) for c in range(k)], axis=1)
    spread = np.stack([unknown @ (weights**2 * q[c] * (1 - q[c])) for c in range(k)], axis=1)
    centre = (posterior * mean).sum(axis=1)
    variance = (posterior * (spread + (mean - centre[:, None]) ** 2)).sum(axis=1)
    assert std**2 == pytest.approx(variance, rel=1e-10)


def test_a_function_that_misses_little_probability():
    vtree = Vtree.from_nested((0, 1))
    part = node((0.0, literal(0, 0), leaf(1, [1e9, 1e9])))
    g = RegressionCircuit.build(vtree, part, [2, 2], bias=-3.0)
    for miss in (1e-3, 1e-9, 5e-13):
        pair = Pair(independent(vtree, [[1 - miss, miss], [0.5, 0.5]]), g)
        assert pair.variance([[-1, -1]])[0] == pytest.approx(miss * (1 - miss) * 1e18, rel=1e-3)
        assert pair.range([[-1, -1]])[0][0] == -3.0
    g = RegressionCircuit.build(
        vtree, node((0.0, literal(0, 0), leaf(1, [-30.0, -29.0]))), [2, 2], bias=20.0
    )
    miss = 9e-13
    pair = Pair(independent(vtree, [[1 - miss, miss], [0.5, 0.5]]), g)
    true = (1 - miss) * 0.5 * (np.exp(-10) + np.exp(-9)) + miss * np.exp(20)
    found = pair.expected([[-1, -1]], "exp")
    assert abs(found.value[0] - true) <= found.error[0]
    true = (1 - miss) * 0.5 * (expit(-10) + expit(-9)) + miss * expit(20)
    found = pair.expected([[-1, -1]], tol=1e-14)
    assert abs(found.value[0] - true) <= found.error[0]


def test_distribution_where_nothing_unknown_matters():
    n = 14
    vtree = Vtree.balanced(n)
    X = [[-1] * n]
    for tables in ([[0.0, 0.0]] * n, [[0.0, 1e-20], *[[1.0, 1.0]] * (n - 1)]):
        pair = Pair(coins(n), linear(vtree, tables))
        found = pair.distribution(X)
        at = pair.range(X)[1]
        assert found.cdf(at)[0] == 1.0
        assert found.cdf(at - 1e-6)[0] == 0.0
        assert found.quantile(0.3)[0] == at[0]


@pytest.mark.parametrize("size", [1e4, 1e6, 1e8])
def test_parameters_that_cancel_keep_the_bounds(size):
    """g is small, its parameters and its bias are not."""
    n = 16
    vtree = Vtree.balanced(n)
    rng = np.random.default_rng(0)
    steps = rng.normal(size=n) / 8
    tables = [[size, size + s] for s in steps]
    pair = Pair(coins(n), linear(vtree, tables, bias=-size * n))
    true = np.zeros(1)
    for s in steps:  # values of all completions, without the cancelling part
        true = np.concatenate([true, true + ((size + s) - size)])
    X = [[-1] * n]
    slack = 4e-16 * size * n  # of g itself, which no algorithm can give back
    found = pair.expected(X, tol=1e-12)
    assert abs(found.value[0] - expit(true).mean()) <= found.error[0] + slack
    assert pair.std(X)[0] == pytest.approx(true.std(), rel=1e-6)
    noisy = pair.distribution(X, noise=0.05)
    from scipy.special import ndtr

    for c in (-0.3, 0.2):
        cdf = ndtr((c - true) / 0.05).mean()
        assert abs(noisy.cdf(c)[0] - cdf) <= noisy.error[0] + 8 * slack / 0.05


def test_exponentials_of_every_size():
    vtree = Vtree.from_nested((0, 1))
    X = [[-1, -1]]
    p = independent(vtree, [[0.5, 0.5]] * 2)
    for low, bias, true in ((-400.0, 700.0, np.exp(-100.0)), (1000.0, -2000.0, 1.0)):
        found = Pair(p, linear(vtree, [[low, low]] * 2, bias=bias)).expected(X, "exp")
        assert found.value[0] == pytest.approx(true, rel=1e-12)
    wide = Pair(p, linear(vtree, [[0.0, 5000.0], [0.0, 1.0]]))
    found = wide.expected([[1, -1], [0, -1]], "exp").value
    assert found[0] == np.inf
    assert found[1] <= 1.0 + np.e


def test_a_range_too_wide_to_integrate():
    n = 16
    wide = Pair(coins(n), linear(Vtree.balanced(n), [[-1e10, 1e10]] * n))
    with pytest.raises(DomainError, match=r"frequencies.*divide g by a constant"):
        wide.expected([[-1] * n])
    far = Pair(
        coins(n, 0.1),
        linear(Vtree.balanced(n), [[1e4, 1e4], *[[0, 10.0]] * (n - 1)], bias=-1e4 - 20),
    )
    true = sum(
        math.comb(n - 1, k) * 0.1**k * 0.9 ** (n - 1 - k) * expit(10.0 * k - 20) for k in range(n)
    )
    found = far.expected([[-1] * n])
    assert abs(found.value[0] - true) <= found.error[0] + 1e-12


def test_high_powers_stay_in_range():
    vtree = Vtree.balanced(2)
    pair = Pair(coins(2), linear(vtree, [[0.0, 1e60], [0.0, 3e60]]))
    assert np.all(pair.moments([[1, 0]], 8, central=True)[:, 2:] == 0)
    assert pair.moments([[-1, -1]], 4)[0, 4] == pytest.approx((1 + 81 + 256) / 4 * 1e240)
    with pytest.raises(TypeError):
        pair.moments([[1, 0]], 2.0)


def test_unlikely_is_not_impossible():
    vtree = Vtree.balanced(2)
    pair = Pair(coins(2), linear(vtree, [[0, 1], [0, 10]]))
    evidence = Evidence.unknown([2, 2]).likelihood(0, [1e-200, 1e200])
    assert [bound[0] for bound in pair.range(evidence)] == [0.0, 11.0]


def test_likelihoods_that_leave_the_range_of_floats():
    start = Evidence.unknown([2, 2])
    for weights in ([1e300, 1e299], [1e-300, 1.4e-300]):
        with pytest.raises(DomainError, match="divide them by a constant"):
            start.likelihood(0, weights).likelihood(0, weights)


def test_evidence_that_is_no_evidence():
    with pytest.raises(DomainError, match="takes the values"):
        Evidence.unknown([2]).among(0, [1.9])
    with pytest.raises(DomainError, match="takes the values"):
        Evidence.unknown([3]).known(0, [[0, 1, 2]])
    with pytest.raises(DomainError, match="names no state"):
        Evidence((np.ones((1, 2)),), (np.array([3]),), 1)
    with pytest.raises(DomainError, match="differ in length"):
        Evidence.rows([[0, 1], [0]], [2, 2])
    rows = Evidence.rows([[0, 1], [-1, 0]], [2, 2])
    assert [len(row) for row in rows] == [1, 1]
    assert rows[-1].weights(0).tolist() == [[1.0, 1.0]]


def test_masked_and_mixed_cells_are_unknown():
    pair = Pair(coins(2), linear(Vtree.balanced(2), [[0, 1], [0, 10]]))
    masked = np.ma.MaskedArray([[1, 1]], mask=[[False, True]])
    assert pair.expectation(masked)[0] == 6.0
    assert pair.expectation(np.array([[True, -1]], object))[0] == 6.0


def test_a_root_with_many_elements():
    """The shape of a decision tree: one element per leaf of the tree."""
    bits = 13
    vtree = Vtree.from_nested((Vtree.balanced(bits).nested(), bits))
    from expecta.circuits.builders import Draft

    draft = Draft(vtree)
    sides = [draft.add_leaf(int(vtree.leaf_of[bits]), bits, [(x, None)]) for x in (0, 1)]
    made = {}

    def box(v, first, count, number):
        """The node that fixes ``count`` variables from ``first`` on to a number's bits."""
        key = (v, number)
        if key not in made:
            if count == 1:
                made[key] = draft.add_leaf(v, first, [(number, None)])
            else:
                half = count // 2
                low = box(int(vtree.left[v]), first, half, number >> (count - half))
                rest = number & ((1 << (count - half)) - 1)
                high = box(int(vtree.right[v]), first + half, count - half, rest)
                made[key] = draft.add_node(v, [(low, high, None)])
        return made[key]

    left = int(vtree.left[vtree.root])
    elements = [(box(left, 0, bits, k), side, None) for k in range(1 << bits) for side in sides]
    structure, _ = draft.finish(draft.add_node(vtree.root, elements))
    g = RegressionCircuit(structure, np.zeros(structure.n_edges))
    assert g.properties.deterministic
    assert g.covers_everything


def test_determinism_that_cannot_be_decided_is_said_so(monkeypatch):
    monkeypatch.setattr(properties, "MAX_EXACT_EDGES", 1)
    undecided = 0
    for seed in range(40):
        vtree = Vtree.random(6, seed=seed)
        g = random_regression(vtree, units=4, seed=seed)
        if not g.properties.deterministic:
            undecided += 1
            with pytest.raises(PropertyError, match="could not be decided"):
                Pair(random_probabilistic(vtree, seed=seed), g)
    assert undecided


def test_edges_of_weight_zero_do_not_count():
    vtree = Vtree.from_nested((0, 1))
    p = ProbabilisticCircuit.build(
        vtree,
        node(
            (0.5, literal(0, 0), leaf(1, [0.5, 0.5])),
            (0.5, literal(0, 1), literal(1, 0)),
            (0.0, literal(0, 1), leaf(1, [0.5, 0.5])),
        ),
    )
    assert p.properties.deterministic


def test_copies_are_as_good_as_the_original():
    vtree = Vtree.random(6, seed=0)
    pair = Pair(random_probabilistic(vtree, seed=0), random_regression(vtree, outputs=2, seed=0))
    X = np.where(np.arange(18).reshape(3, 6) % 2, -1, 1)
    for twin in (pickle.loads(pickle.dumps(pair)), copy.deepcopy(pair)):
        assert np.array_equal(twin.moments(X, 3), pair.moments(X, 3))
        assert twin.p == pair.p
        assert twin.g == pair.g
        with pytest.raises(ValueError, match="read-only"):
            twin.g.weight[0] = 1.0


@pytest.mark.parametrize("tol", [0.0, -1.0, float("nan"), 5.0, 1e-17])
def test_tolerances_that_make_no_sense(tol):
    pair = Pair(coins(2), linear(Vtree.balanced(2), [[0, 1], [0, 10]]))
    with pytest.raises(ValueError, match="tol must lie between"):
        pair.expected([[-1, -1]], tol=tol)
    with pytest.raises(ValueError, match="tol must lie between"):
        pair.distribution([[-1, -1]], tol=tol)


@pytest.mark.parametrize("size", [1.0, 1e9])
def test_phases_at_evenly_spaced_frequencies(size):
    """They are products of a few, to the same digits."""
    a = size * np.random.default_rng(0).normal(size=(3, 1))
    t = (np.arange(150) + 0.5) * few_digits(0.0371)
    assert evenly_spaced(t)
    assert not evenly_spaced(t * np.pi)
    turned, one_by_one = turn(a, t), np.stack([turn(a[:, 0], at) for at in t], axis=1)
    assert np.abs(turned - one_by_one).max() < 2e-15
    with mp.workdps(60):
        for k in range(150):
            assert abs(mp.expj(mpf(a[1, 0]) * mpf(t[k])) - mpc(turned[1, k])) < 2e-15


@pytest.mark.parametrize("size", [1.0, 1e4, 1e9, 1e15])
def test_phases_and_exponents_of_any_size(size):
    """A phase counts modulo 2π and an exponent as a whole number: size takes no digits."""
    rng = np.random.default_rng(0)
    a, t = size * rng.normal(size=20), rng.normal(size=20)
    turned, (number, exponent) = turn(a, t), number_and_exponent(a)
    with mp.workdps(60):
        for k in range(20):
            assert abs(mp.expj(mpf(a[k]) * mpf(t[k])) - mpc(turned[k])) < 1e-15
            true = mp.exp(mpf(a[k]) - 256 * mpf(exponent[k]) * mp.log(2))
            assert abs(mpf(number[k]) / true - 1) < 1e-15
