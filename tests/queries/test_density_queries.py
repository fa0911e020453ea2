"""Questions about p alone, against enumeration of all complete rows and closed forms."""

from __future__ import annotations

import itertools
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from expecta import ProbabilisticCircuit, Vtree, naive_bayes, random_probabilistic
from expecta.circuits import independent, leaf, literal, node
from expecta.circuits.evidence import Evidence
from expecta.common.errors import (
    DomainError,
    ImpossibleEvidenceError,
    ImpossibleEvidenceWarning,
    PropertyError,
)
from expecta.common.settings import config_context
from expecta.queries import density_queries as density
from expecta.queries.impossible import check_possible

# -- the slow, obvious truth ----------------------------------------------------------


class Enumerated:
    """log p of every complete row, by recursion over the circuit's arrays."""

    def __init__(self, p):
        s = p.structure
        self.rows = np.array(list(itertools.product(*(range(c) for c in p.cardinalities))))
        done = {}

        def log_value(n):
            if n not in done:
                total = np.full(len(self.rows), -np.inf)
                variable = s.vtree.variable[s.layer_of_node[n]]
                for k in range(s.edge_start[n], s.edge_start[n + 1]):
                    t = s.target[k]
                    if variable >= 0:
                        below = np.where(self.rows[:, variable] == t, 0.0, -np.inf)
                    else:
                        below = log_value(int(s.left[t])) + log_value(int(s.right[t]))
                    total = np.logaddexp(total, p.log_weight[k] + below)
                done[n] = total
            return done[n]

        self.log_p = log_value(s.root)  # (complete rows,)

    def joint(self, evidence):
        """log p(x) e(x).  # (rows, complete rows)"""
        out = np.tile(self.log_p, (len(evidence), 1))
        with np.errstate(divide="ignore"):
            for variable in range(self.rows.shape[1]):
                out += np.log(evidence.weights(variable))[:, self.rows[:, variable]]
        return out

    def number(self, x):
        """Which complete row each of these is."""
        equal = (self.rows == x[:, None]).all(axis=2)
        assert np.all(equal.sum(axis=1) == 1)
        return equal.argmax(axis=1)


def log_sum(a):
    return np.logaddexp.reduce(a, axis=-1)


# -- random circuits and evidence -----------------------------------------------------


def random_circuit(rng, n, kind, units, deterministic, weights):
    """A circuit of up to a thousand complete rows, some of them impossible."""
    vtree = {
        "balanced": lambda: Vtree.random(n, seed=int(rng.integers(2**31))),
        "random": lambda: Vtree.random(n, seed=int(rng.integers(2**31)), balanced=False),
        "right": lambda: Vtree.right_linear(rng.permutation(n).tolist()),
        "left": lambda: Vtree.left_linear(n),
    }[kind]()
    cards = rng.integers(1, 5, n)
    while np.prod(cards) > 1000:
        cards[np.argmax(cards)] -= 1
    p = random_probabilistic(vtree, cards, units=units, deterministic=deterministic, seed=rng)
    if weights == "plain":
        return p
    s = p.structure
    log_weight = p.log_weight.copy()
    if weights == "far apart":  # down to 10^-1000, below what a double can hold
        log_weight = log_weight - rng.choice([0.0, 0.0, 300.0, 2500.0], s.n_edges)
    else:
        log_weight[rng.random(s.n_edges) < 0.3] = -np.inf
    first = s.edge_start[:-1]
    log_weight[first + rng.integers(0, np.diff(s.edge_start))] = 0.0  # no node is left empty
    log_weight -= np.logaddexp.reduceat(log_weight, first)[s.node_of_edge]
    return ProbabilisticCircuit(s, log_weight)


def random_evidence(rng, cards, rows, missing, kinds):
    X = np.where(rng.random((rows, len(cards))) < missing, -1, rng.integers(0, cards))
    evidence = Evidence.rows(X, cards)
    for variable, card in enumerate(cards.tolist()):
        kind = rng.choice(kinds)
        if kind == "set":
            evidence = evidence.among(variable, np.flatnonzero(rng.random(card) < 0.8))
        elif kind == "interval":
            low, high = sorted(rng.integers(0, card, 2).tolist())
            evidence = evidence.between(variable, low, high)
        elif kind == "soft":
            evidence = evidence.likelihood(variable, 5 * rng.random((rows, card)))
        elif kind == "far apart":
            evidence = evidence.likelihood(variable, 10.0 ** rng.uniform(-300, 300, (rows, card)))
    return evidence


@st.composite
def circuits(draw, most=7, weights=("plain", "plain", "some zero", "far apart")):
    return random_circuit(
        np.random.default_rng(draw(st.integers(0, 2**31))),
        draw(st.integers(1, most)),
        draw(st.sampled_from(["balanced", "random", "right", "left"])),
        draw(st.integers(1, 5)),
        draw(st.booleans()),
        draw(st.sampled_from(weights)),
    )


KINDS = [["plain"], ["plain", "set", "interval"], ["plain", "soft"], ["soft", "far apart"]]


@st.composite
def evidences(draw, p, kinds=KINDS):
    return random_evidence(
        np.random.default_rng(draw(st.integers(0, 2**31))),
        p.cardinalities,
        draw(st.integers(1, 9)),
        draw(st.sampled_from([0.0, 0.4, 0.8, 1.0])),
        draw(st.sampled_from(kinds)),
    )


@contextmanager
def impossible_rows_allowed():
    """Impossible rows are part of the random tests; their warning has tests of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImpossibleEvidenceWarning)
        yield


# -- against enumeration --------------------------------------------------------------


@settings(deadline=None, max_examples=250)
@given(st.data())
def test_answers_match_enumeration(data):
    p = data.draw(circuits())
    evidence = data.draw(evidences(p))
    truth = Enumerated(p)
    joint = truth.joint(evidence)
    log_e = log_sum(joint)
    gone = log_e == -np.inf
    with np.errstate(invalid="ignore"):
        posterior = np.exp(joint - log_e[:, None])

    with impossible_rows_allowed():
        log_p = p.log_prob(evidence)
        tables = p.marginals(evidence)
        best = p.mpe(evidence)
    np.testing.assert_allclose(log_p, log_e, rtol=1e-10, atol=1e-10)

    for variable, table in enumerate(tables):
        assert table.shape == (len(evidence), p.cardinalities[variable])
        hot = truth.rows[:, variable, None] == np.arange(p.cardinalities[variable])
        np.testing.assert_allclose(table, posterior @ hot, rtol=1e-10, atol=1e-200)
        np.testing.assert_allclose(table.sum(axis=1)[~gone], 1.0, rtol=1e-14)
        assert np.all(np.isnan(table[gone]))

    assert best.exact == p.properties.deterministic.holds
    assert np.all(best.x[gone] == -1)
    assert np.all(np.isnan(best.log_prob[gone]))
    number = truth.number(best.x[~gone])
    np.testing.assert_allclose(best.log_prob[~gone], truth.log_p[number], rtol=1e-10, atol=1e-10)
    found = joint[~gone, :][np.arange(len(number)), number]
    assert np.all(found > -np.inf)
    if best.exact:
        np.testing.assert_allclose(found, joint[~gone].max(axis=1), rtol=1e-10, atol=1e-10)

    if best.exact:
        with impossible_rows_allowed():
            entropy = p.entropy(evidence)
        bits = np.where(posterior > 0, -posterior * np.log(np.maximum(posterior, 1e-308)), 0.0)
        expected = np.where(gone, np.nan, bits.sum(axis=1))
        np.testing.assert_allclose(entropy, expected, rtol=1e-9, atol=1e-10)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_conditional_matches_enumeration(data):
    p = data.draw(circuits(most=5))
    truth = Enumerated(p)
    of, known = data.draw(evidences(p, KINDS[:3])), data.draw(evidences(p))
    rows = data.draw(st.sampled_from(["same", "one of", "one given"]))
    n = min(len(of), len(known))
    of, known = of[: 1 if rows == "one of" else n], known[: 1 if rows == "one given" else n]
    possible = truth.log_p > -np.inf
    joint = (truth.joint(of) + truth.joint(known))[:, possible] - truth.log_p[possible]
    with np.errstate(invalid="ignore"):
        expected = log_sum(joint) - log_sum(truth.joint(known))
    with impossible_rows_allowed():
        answer = p.log_prob(of, given=known)
    np.testing.assert_allclose(answer, expected, rtol=1e-10, atol=1e-9)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_every_sample_is_possible(data):
    p = data.draw(circuits(most=6))
    evidence = data.draw(evidences(p))
    truth = Enumerated(p)
    joint = truth.joint(evidence)
    evidence = evidence[log_sum(joint) > -np.inf]
    x = p.sample(4, given=evidence, seed=data.draw(st.integers(0, 100)))
    assert x.shape == (len(evidence), 4, p.n_variables)
    for k, row in enumerate(truth.joint(evidence)):
        assert np.all(row[truth.number(x[k])] > -np.inf)


# -- samples --------------------------------------------------------------------------


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("kinds", [None, ["plain"], ["set", "plain"], ["soft", "set"]])
@pytest.mark.parametrize("weights", ["plain", "some zero"])
def test_samples_follow_the_posterior(deterministic, kinds, weights):
    rng = np.random.default_rng(7)
    p = random_circuit(rng, 4, "balanced", 3, deterministic, weights)
    truth = Enumerated(p)
    if kinds is None:
        x = p.sample(20_000, seed=1)[None]
        joint = truth.log_p[None]
    else:
        possible = []
        while len(possible) < 3:
            evidence = random_evidence(rng, p.cardinalities, 40, 0.6, kinds)
            possible = np.flatnonzero(log_sum(truth.joint(evidence)) > -np.inf)
        evidence = evidence[possible[:3]]
        x = p.sample(20_000, given=evidence, seed=1)
        joint = truth.joint(evidence)
    for draws, row in zip(x, joint, strict=True):
        expected = 20_000 * np.exp(row - log_sum(row))
        observed = np.bincount(np.ravel_multi_index(draws.T, p.cardinalities), minlength=len(row))
        assert np.all(observed[expected == 0] == 0)
        common = expected > 5
        observed = np.append(observed[common], observed[~common].sum())
        expected = np.append(expected[common], expected[~common].sum())
        if expected[-1] < 5:  # too rare for a cell of its own
            observed, expected = observed[:-1], expected[:-1]
        if len(expected) > 1:
            assert chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-4


def drawn_slowly(p, known, uniforms):
    """Draw one row, from the root down: at each node the first edge beyond its number."""
    s, row = p.structure, np.array(known)

    def q(n):
        variable = s.vtree.variable[s.layer_of_node[n]]
        parts = []
        for k in range(s.edge_start[n], s.edge_start[n + 1]):
            t = s.target[k]
            below = (
                float(known[variable] in (-1, t)) if variable >= 0 else q(s.left[t]) * q(s.right[t])
            )
            parts.append(np.exp(p.log_weight[k]) * below)
        shares[n] = parts
        return sum(parts)

    shares, chosen = {}, {len(s.vtree) - 1: s.root}
    q(s.root)
    for v in range(len(s.vtree) - 1, -1, -1):
        n = chosen[v]
        sums = np.cumsum(shares[n])
        edge = s.edge_start[n] + int(np.argmax(sums > uniforms[v] * sums[-1]))
        t = s.target[edge]
        if s.vtree.variable[v] >= 0:
            row[s.vtree.variable[v]] = t
        else:
            chosen[s.vtree.left[v]], chosen[s.vtree.right[v]] = s.left[t], s.right[t]
    return row


@settings(max_examples=40)
@given(circuits(most=5, weights=("plain", "some zero")), st.integers(0, 2**31))
def test_draws_are_those_of_a_slow_descent(p, seed):
    rng = np.random.default_rng(seed)
    known = np.where(rng.random((3, p.n_variables)) < 0.5, p.sample(3, seed=rng), -1)
    drawn = p.sample(7, given=known, seed=seed)
    numbers = np.random.default_rng(seed).random((3, 7, len(p.vtree)))
    for row, draws, uniforms in zip(known, drawn, numbers, strict=True):
        for one, own in zip(draws, uniforms, strict=True):
            np.testing.assert_array_equal(one, drawn_slowly(p, row, own))


def test_shapes_of_samples():
    p = random_probabilistic(Vtree.balanced(3), [2, 3, 4], seed=0)
    X = [[0, -1, -1], [-1, 2, -1]]
    assert p.sample(seed=0).shape == (3,)
    assert p.sample(5, seed=0).shape == (5, 3)
    assert p.sample(0, seed=0).shape == (0, 3)
    assert p.sample(given=X, seed=0).shape == (2, 3)
    assert p.sample(5, given=X, seed=0).shape == (2, 5, 3)
    assert p.sample(5, given=np.empty((0, 3)), seed=0).shape == (0, 5, 3)
    assert p.sample(given=X).dtype.kind == "i"
    assert np.all(p.sample(5, given=X, seed=0)[0, :, 0] == 0)
    with pytest.raises(ValueError, match="at least 0"):
        p.sample(-1)


def test_seeds():
    p = random_probabilistic(Vtree.balanced(8), [4] * 8, seed=0)
    x = p.sample(50, seed=3)
    assert np.array_equal(x, p.sample(50, seed=3))
    assert not np.array_equal(x, p.sample(50, seed=4))
    assert not np.array_equal(p.sample(50), p.sample(50))
    assert np.array_equal(x, p.sample(50, seed=np.random.default_rng(3)))
    assert np.array_equal(x, p.sample(50, seed=np.random.PCG64(3)))
    rng = np.random.default_rng(3)  # a generator goes on where it was
    assert np.array_equal(x, np.concatenate([p.sample(20, seed=rng), p.sample(30, seed=rng)]))
    # a draw for each of n rows that say nothing is n draws
    assert np.array_equal(x, p.sample(given=np.full((50, 8), -1), seed=3))


# -- threads and blocks ---------------------------------------------------------------


@pytest.mark.parametrize("weights", ["plain", "far apart"])
@pytest.mark.parametrize("sizes", [(1, 10**6), (7, 300), (64, 1)])
def test_threads_and_blocks_change_nothing(monkeypatch, weights, sizes):
    rng = np.random.default_rng(5)
    p = random_circuit(rng, 7, "random", 4, True, weights)
    evidence = random_evidence(rng, p.cardinalities, 150, 0.5, ["plain", "soft"])
    possible = evidence[p.log_prob(evidence) > -np.inf]

    def answers():
        with impossible_rows_allowed():
            return [
                *p.marginals(evidence),
                *p.mpe(evidence)[:2],
                p.entropy(evidence),
                p.sample(13, given=possible, seed=0),
                p.sample(1000, seed=0),
            ]

    with config_context(threads=1):
        before = answers()
    lanes, cells = sizes
    monkeypatch.setattr(density, "MAX_LANES", lanes)
    monkeypatch.setattr(density, "MAX_CELLS", cells)
    monkeypatch.setattr(density, "MAX_EDGE_VISITS", cells)
    monkeypatch.setattr(density, "MIN_THREADED_VISITS", 0)
    for threads in (1, 2, 5):
        with config_context(threads=threads):
            for old, new in zip(before, answers(), strict=True):
                np.testing.assert_array_equal(old, new)


def test_big_circuits_take_fewer_rows_at_a_time(monkeypatch):
    p = random_probabilistic(Vtree.balanced(4), [3] * 4, seed=0)
    X = p.sample(20, seed=0)
    X[:, 1:] = -1
    before = p.marginals(X)
    monkeypatch.setattr(density, "MAX_BYTES", 1)
    for old, new in zip(before, p.marginals(X), strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_likelihood_for_every_row(monkeypatch):
    rng = np.random.default_rng(1)
    p = random_circuit(rng, 4, "balanced", 4, False, "plain")
    evidence = random_evidence(rng, p.cardinalities, 600, 1.0, ["soft"])
    joint = Enumerated(p).joint(evidence)
    posterior = np.exp(joint - log_sum(joint)[:, None])
    hot = Enumerated(p).rows[:, 0, None] == np.arange(p.cardinalities[0])
    assert len(evidence.states[0]) == 600
    for cells in (density.MAX_CELLS, 1000):
        monkeypatch.setattr(density, "MAX_CELLS", cells)
        np.testing.assert_allclose(p.marginals(evidence)[0], posterior @ hot, rtol=1e-10)


# -- ten thousand variables -----------------------------------------------------------

LENGTH = 10_000


class Chain:
    """A Markov chain of two-valued variables, and its answers by forward and backward sums."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.start = np.array([0.3, 0.7])
        self.step = rng.dirichlet([1.0, 1.0], size=(LENGTH - 1, 2))  # (steps, from, to)
        below = [leaf(LENGTH - 1, self.step[-1, s]) for s in range(2)]
        for i in range(LENGTH - 2, 0, -1):
            values = [literal(i, x) for x in range(2)]
            below = [
                node(*((self.step[i - 1, s, x], values[x], below[x]) for x in range(2)))
                for s in range(2)
            ]
        root = node(*((self.start[x], literal(0, x), below[x]) for x in range(2)))
        self.p = ProbabilisticCircuit.build(Vtree.right_linear(LENGTH), root)

    def messages(self, evidence, reduce):
        """Log-messages to each variable from its left and from its right, by sum or maximum."""
        with np.errstate(divide="ignore"):
            log_e = np.log(np.stack([evidence.weights(v) for v in range(LENGTH)], axis=1))
        log_step = np.log(self.step)
        ahead, back = np.zeros_like(log_e), np.zeros_like(log_e)  # (rows, variables, values)
        ahead[:, 0] = np.log(self.start)
        for i in range(1, LENGTH):
            message = ahead[:, i - 1] + log_e[:, i - 1]
            ahead[:, i] = reduce(message[:, :, None] + log_step[i - 1], axis=1)
        for i in range(LENGTH - 1, 0, -1):
            message = back[:, i] + log_e[:, i]
            back[:, i - 1] = reduce(message[:, None, :] + log_step[i - 1], axis=2)
        return ahead + back + log_e  # log p(x_i, evidence), or the best such


@pytest.fixture(scope="module")
def chain():
    return Chain()


@pytest.fixture(scope="module")
def chain_rows(chain):
    X = chain.p.sample(4, seed=0)
    X[1, ::2] = -1
    X[2, LENGTH // 2 :] = -1
    X[3] = -1
    return X


def test_long_chain(chain, chain_rows):
    evidence = Evidence.rows(chain_rows, chain.p.cardinalities)
    soft = np.array([[1e-3, 1e-5], [1e-30, 1e-31], [1e250, 1e240], [1e-290, 1e-300]])
    for variable in range(0, LENGTH, 1000):
        evidence = evidence.likelihood(variable, soft)
    sums = chain.messages(evidence, np.logaddexp.reduce)
    log_e = log_sum(sums[:, 0])
    assert log_e[0] < -5000
    np.testing.assert_allclose(chain.p.log_prob(evidence), log_e, rtol=1e-12)
    tables = chain.p.marginals(evidence)
    expected = np.exp(sums - log_e[:, None, None])
    for variable, table in enumerate(tables):
        np.testing.assert_allclose(table, expected[:, variable], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-14)
    best = chain.p.mpe(evidence)
    assert best.exact
    np.testing.assert_array_equal(best.x, chain.messages(evidence, np.max).argmax(axis=2))


def test_long_chain_complete_rows(chain, chain_rows):
    x = chain_rows[:1]
    steps = chain.step[np.arange(LENGTH - 1), x[0, :-1], x[0, 1:]]
    expected = np.log(chain.start[x[0, 0]]) + np.log(steps).sum()
    np.testing.assert_allclose(chain.p.log_prob(x)[0], expected, rtol=1e-12)
    best = chain.p.mpe(x)
    np.testing.assert_array_equal(best.x, x)
    np.testing.assert_allclose(best.log_prob, chain.p.log_prob(x))
    np.testing.assert_array_equal(
        np.stack(chain.p.marginals(x), axis=1), x[:, :, None] == np.arange(2)
    )
    assert np.all(np.abs(chain.p.entropy(x)) < 1e-10)
    np.testing.assert_array_equal(chain.p.sample(given=x, seed=0), x)


def test_long_chain_entropy(chain):
    each = -(chain.step * np.log(chain.step)).sum(axis=2)  # (steps, from)
    expected = -(chain.start * np.log(chain.start)).sum()
    belief = chain.start
    for i in range(LENGTH - 1):
        expected += belief @ each[i]
        belief = belief @ chain.step[i]
    assert chain.p.entropy() == pytest.approx(expected, rel=1e-10)


def test_long_mixture_where_one_class_is_far_less_likely():
    # Two classes, a thousand features each: the less likely class is e^-3000 behind, and
    # evidence on the class itself asks for it all the same.
    n = 1000
    conditionals = [np.array([[0.9, 0.1], [0.1, 0.9]])] * n
    p = naive_bayes(Vtree.balanced(n + 1), n, [0.5, 0.5], [*conditionals, None])
    X = np.zeros((3, n + 1), int)
    X[0, n] = -1
    X[1, n] = 1
    X[2, : n // 2] = 1
    X[2, n] = -1
    expected = np.log(0.5) + np.array([n * np.log(0.9), n * np.log(0.1), 0.0])
    expected[2] = n / 2 * (np.log(0.9) + np.log(0.1))
    np.testing.assert_allclose(p.log_prob(X), expected, rtol=1e-12)
    classes = p.marginals(X)[n]
    np.testing.assert_allclose(classes, [[1, 0], [0, 1], [0.5, 0.5]], rtol=1e-10, atol=1e-300)
    assert p.mpe(X).x[:2, n].tolist() == [0, 1]
    assert p.sample(given=X[:2], seed=0)[:, n].tolist() == [0, 1]
    np.testing.assert_allclose(p.entropy(X), [0, 0, np.log(2)], atol=1e-10)


# -- corners --------------------------------------------------------------------------


@pytest.fixture
def small():
    return random_probabilistic(Vtree.balanced(3), [2, 3, 1], deterministic=True, seed=2)


def test_no_rows(small):
    X = np.empty((0, 3))
    assert small.log_prob(X).shape == (0,)
    assert small.log_prob(X, given=X).shape == (0,)
    assert small.log_prob(X, given=[[-1, -1, -1]]).shape == (0,)
    assert [table.shape for table in small.marginals(X)] == [(0, 2), (0, 3), (0, 1)]
    best = small.mpe(X)
    assert best.x.shape == (0, 3)
    assert best.log_prob.shape == (0,)
    assert small.entropy(X).shape == (0,)


def test_nothing_known(small):
    truth = Enumerated(small)
    assert small.log_prob([[-1, -1, -1]])[0] == pytest.approx(0.0, abs=1e-12)
    assert small.mpe([[-1, -1, -1]]).log_prob[0] == pytest.approx(truth.log_p.max())
    entropy = small.entropy()
    assert isinstance(entropy, float)
    assert entropy == pytest.approx(-(np.exp(truth.log_p) @ truth.log_p))
    assert entropy == pytest.approx(small.entropy([[np.nan, None, np.nan]])[0])


def test_everything_known(small):
    truth = Enumerated(small)
    np.testing.assert_allclose(small.log_prob(truth.rows), truth.log_p)
    np.testing.assert_array_equal(small.mpe(truth.rows).x, truth.rows)
    np.testing.assert_array_equal(small.sample(given=truth.rows, seed=0), truth.rows)
    assert np.all(small.entropy(truth.rows) == 0.0)
    for variable, table in enumerate(small.marginals(truth.rows)):
        assert np.array_equal(table.argmax(axis=1), truth.rows[:, variable])
        assert set(table.ravel()) <= {0.0, 1.0}


@pytest.mark.parametrize("card", [1, 2, 5, 100])
def test_one_variable(card):
    table = np.arange(1.0, card + 1) / np.arange(1.0, card + 1).sum()
    p = independent(Vtree.balanced(1), [table])
    X = [[-1], [card - 1]]
    np.testing.assert_allclose(p.log_prob(X), [0.0, np.log(table[-1])], atol=1e-14)
    np.testing.assert_allclose(p.marginals(X)[0], [table, np.eye(card)[-1]])
    assert p.mpe(X).x.tolist() == [[card - 1], [card - 1]]
    assert p.entropy() == pytest.approx(-(table @ np.log(table)), abs=1e-14)
    counts = np.bincount(p.sample(50_000, seed=0)[:, 0], minlength=card)
    assert len(counts) == card
    if card > 1:
        assert chisquare(counts, 50_000 * table).pvalue > 1e-4


def test_soft_evidence_weighs_the_completion():
    p = independent(Vtree.balanced(2), [[0.6, 0.4], [0.9, 0.1]])
    evidence = Evidence.unknown([2, 2]).likelihood(0, [1.0, 10.0])
    best = p.mpe(evidence)
    assert best.x.tolist() == [[1, 0]]  # 0.4 · 10 > 0.6
    assert best.log_prob[0] == pytest.approx(np.log(0.4 * 0.9))
    np.testing.assert_allclose(p.marginals(evidence)[0], [[0.6 / 4.6, 4.0 / 4.6]])
    assert p.log_prob(evidence)[0] == pytest.approx(np.log(4.6))


def test_completion_of_a_mixture_is_a_lower_bound():
    # Three elements agree on x = (1, 1), but each alone prefers another row.
    each = [
        (0.25, leaf(0, [0.0, 1.0]), leaf(1, [0.4, 0.6])),
        (0.25, leaf(0, [0.4, 0.6]), leaf(1, [0.0, 1.0])),
        (0.5, leaf(0, [0.8, 0.2]), leaf(1, [0.8, 0.2])),
    ]
    p = ProbabilisticCircuit.build(Vtree.balanced(2), node(*each))
    best = p.mpe([[-1, -1]])
    assert not best.exact
    assert best.x.tolist() == [[0, 0]]
    assert best.log_prob[0] == pytest.approx(np.log(0.32))
    assert p.log_prob([[1, 1]])[0] == pytest.approx(np.log(0.32))
    with pytest.raises(PropertyError, match="deterministic"):
        p.entropy()


@pytest.mark.parametrize(
    ("X", "says"),
    [
        ([0, 1, 0], "two dimensions"),
        ([[0, 1]], "columns"),
        ([[0, 3, 0]], "row 0 has 3"),
        ([[0, 0.5, 0]], "row 0 has 0.5"),
        ([["a", "b", "c"]], "numbers"),
        (Evidence.unknown([2, 2, 1]), "values"),
    ],
)
@pytest.mark.parametrize("query", ["log_prob", "marginals", "mpe", "entropy", "sample"])
def test_wrong_rows(small, X, says, query):
    with pytest.raises(DomainError, match=says):
        small.sample(given=X) if query == "sample" else getattr(small, query)(X)


def test_wrong_rows_of_conditional(small):
    with pytest.raises(DomainError, match="rows"):
        small.log_prob([[-1] * 3] * 2, given=[[-1] * 3] * 3)
    with pytest.raises(DomainError, match="values"):
        Evidence.unknown([2, 3]).both(Evidence.unknown([2, 2]))


# -- impossible evidence --------------------------------------------------------------


@pytest.fixture
def narrow():
    """x0 = 1 never happens; and x1 is x2."""
    same = node((0.5, literal(1, 0), literal(2, 0)), (0.5, literal(1, 1), literal(2, 1)))
    return ProbabilisticCircuit.build(
        Vtree.from_nested((0, (1, 2))), node((1.0, leaf(0, [1.0, 0.0]), same))
    )


ROWS = np.array([[-1, 0, -1], [1, -1, -1], [0, 1, 1], [-1, 0, 1]])
GONE = np.array([False, True, False, True])


def test_log_prob_of_the_impossible_is_no_surprise(narrow):
    assert (narrow.log_prob(ROWS) == -np.inf).tolist() == GONE.tolist()


@pytest.mark.parametrize("query", ["marginals", "mpe", "entropy"])
def test_impossible_rows_give_nan_and_one_warning(narrow, query):
    with pytest.warns(ImpossibleEvidenceWarning, match="2 of 4 rows") as caught:
        answer = getattr(narrow, query)(ROWS)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    if query == "marginals":
        for table in answer:
            assert np.isnan(table).all(axis=1).tolist() == GONE.tolist()
            assert np.isnan(table).any(axis=1).tolist() == GONE.tolist()
    elif query == "mpe":
        assert answer.x.tolist() == [[0, 0, 0], [-1] * 3, [0, 1, 1], [-1] * 3]
        np.testing.assert_allclose(answer.log_prob, [np.log(0.5), np.nan, np.log(0.5), np.nan])
    else:
        np.testing.assert_allclose(answer, [0, np.nan, 0, np.nan])
    with pytest.raises(ImpossibleEvidenceError, match=r"2 of 4 rows.*row 1"):
        getattr(narrow, query)(ROWS, on_impossible="raise")
    with pytest.raises(ValueError, match="on_impossible"):
        getattr(narrow, query)(ROWS, on_impossible="ignore")


def test_impossible_condition(narrow):
    with pytest.warns(ImpossibleEvidenceWarning, match="2 of 4 rows") as caught:
        answer = narrow.log_prob([[-1, -1, 0]], given=ROWS)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(answer, [0.0, np.nan, -np.inf, np.nan])
    with pytest.warns(ImpossibleEvidenceWarning, match="4 of 4 rows"):
        assert np.all(np.isnan(narrow.log_prob(ROWS, given=ROWS[1:2])))


def test_no_samples_of_the_impossible(narrow):
    with pytest.raises(ImpossibleEvidenceError, match="2 of 4 rows"):
        narrow.sample(3, given=ROWS)
    with pytest.raises(ImpossibleEvidenceError, match="1 of 1 row"):
        narrow.sample(given=Evidence.unknown([2, 2, 2]).among(0, []))


def test_check_possible():
    none = np.zeros(3, bool)
    assert check_possible(none, "nan") is none
    assert check_possible(none, "raise") is none
    with pytest.raises(ValueError, match="'warn'"):
        check_possible(none, "warn")
    with pytest.warns(ImpossibleEvidenceWarning, match="1 of 3 row"):
        assert check_possible(np.arange(3) == 1, "nan").tolist() == [False, True, False]


def test_entropy_near_zero_keeps_its_digits():
    tiny = 3e-26
    p = independent(Vtree.balanced(2), [[tiny, 1.0], [0.5, 0.5]])
    rare = -tiny * np.log(tiny) + tiny  # - (1 - t) log(1 - t) = t to first order
    known = p.entropy([[-1, 0]])
    assert known[0] == pytest.approx(rare, rel=1e-10)


def test_nothing_known_has_probability_one():
    for seed in range(30):
        p = random_probabilistic(Vtree.random(12, seed=seed), units=7, seed=seed)
        assert p.log_prob([[-1] * 12])[0] == 0.0
