"""EM for tree-shaped models, against enumeration of hidden states and log-space recursion."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from expecta import config_context
from expecta.learn.trees.circuit import tree_circuit
from expecta.learn.trees.em import (
    EMProblem,
    EMSchedule,
    TreeModel,
    climb,
    learn,
    mean_log_likelihood,
    prototype_start,
)
from expecta.learn.trees.expectation import Counts, TreeRows, expected_counts, log_likelihoods
from expecta.learn.trees.known_states import VisibleTree
from expecta.learn.trees.layout import TreeLayout
from expecta.learn.trees.tree import RootedTree
from expecta.learn.trees.tree_priors import AddedCounts, LatentPrior

LIMITS = [2, 4, 256]

# -- the slow, obvious truth ----------------------------------------------------------


def enumerated(layout, theta, codes, weight):
    """Likelihood of each row, and expected counts of all of them, by summing over all states."""
    tree, n = layout.tree, len(layout.tree)
    counts, likelihoods = np.zeros(layout.size), []
    for row, w in zip(codes, weight, strict=True):
        joint = {}
        for z in itertools.product(*(range(k) for k in layout.states)):
            p = 1.0
            for v in range(n):
                above = z[tree.parent[v]] if v < n - 1 else 0
                p *= layout.transitions(theta, v)[above, z[v]]
                if row[tree.variable[v]] >= 0:
                    p *= layout.values(theta, v)[z[v], row[tree.variable[v]]]
            joint[z] = p
        total = sum(joint.values())
        likelihoods.append(total)
        for z, p in joint.items():
            for v in range(n) if p > 0 else ():
                above = z[tree.parent[v]] if v < n - 1 else 0
                layout.transitions(counts, v)[above, z[v]] += w * p / total
                if row[tree.variable[v]] >= 0:
                    layout.values(counts, v)[z[v], row[tree.variable[v]]] += w * p / total
    return np.array(likelihoods), counts


def in_logarithms(layout, theta, codes):
    """Log-likelihoods of many variables, node by node in logarithms."""
    with np.errstate(divide="ignore"):
        log_theta = np.log(theta)
    up = {}
    for v, children in enumerate(layout.tree.children):
        own = layout.values(log_theta, v)[:, codes[:, layout.tree.variable[v]]].T
        for c in children:
            own = own + up.pop(c)
        up[v] = np.logaddexp.reduce(own[:, None] + layout.transitions(log_theta, v), axis=2)
    return up[len(layout.tree) - 1][:, 0]


# -- random models and rows -----------------------------------------------------------


def random_tree(rng, n):
    parent = [int(rng.integers(v + 1, n)) for v in range(n - 1)] + [-1]
    return RootedTree(rng.permutation(n), np.array(parent))


def chain(n):
    return RootedTree(np.arange(n), np.append(np.arange(1, n), -1))


def random_theta(rng, layout, zeros=0.0):
    counts = rng.gamma(0.7, size=layout.size) + 1e-3
    counts[rng.random(layout.size) < zeros] = 0.0
    return layout.normalised(counts)


def shown(layout, theta):
    """The same transitions, with each state a value."""
    for node, states in enumerate(layout.states):
        layout.values(theta, node)[:] = np.eye(states)
    return theta


def random_rows(rng, cards, rows, missing):
    codes = rng.integers(0, cards, (rows, len(cards))).astype(np.int32)
    codes[rng.random(codes.shape) < missing] = -1
    return codes


class Problem:
    """A small random model, and rows with holes and weights; without states, these are values."""

    def __init__(self, rng, n, states, rows, missing, zeros, limit):
        self.tree = random_tree(rng, n)
        cards = rng.integers(1, 5, n).astype(np.int32)
        self.cards = cards
        of_nodes = cards[self.tree.variable]
        sizes = rng.integers(1, states + 1, n).astype(np.int32) if states else of_nodes
        self.layout = TreeLayout(self.tree, sizes, of_nodes)
        self.theta = random_theta(rng, self.layout, zeros)
        if not states:
            self.theta = shown(self.layout, self.theta)
        self.codes = random_rows(rng, cards, rows, missing)
        self.weight = rng.choice([0.0, 0.5, 1.0, 3.0], rows)
        self.limit, self.rng = limit, rng

    @property
    def table(self):
        return TreeRows(self.tree, self.cards, self.codes, self.weight, self.limit)


@st.composite
def problems(draw, zeros=(0.0, 0.0, 0.4), rows=25, fewest=0):
    return Problem(
        np.random.default_rng(draw(st.integers(0, 2**31))),
        draw(st.integers(1, 4)),
        draw(st.integers(fewest, 3)),
        draw(st.integers(1, rows)),
        draw(st.sampled_from([0.0, 0.3, 1.0])),
        draw(st.sampled_from(zeros)),
        draw(st.sampled_from(LIMITS)),
    )


# -- one pair of passes ---------------------------------------------------------------


@settings(max_examples=120)
@given(problems())
def test_passes_match_enumeration(problem):
    p = problem
    likelihoods, counts = enumerated(p.layout, p.theta, p.codes, p.weight)
    with np.errstate(divide="ignore"):
        truth = np.log(likelihoods)
    found = log_likelihoods(p.layout, p.theta, p.table)
    np.testing.assert_allclose(found, truth, rtol=1e-10, atol=1e-12)
    expected = expected_counts(p.layout, p.theta, p.table)
    np.testing.assert_allclose(expected.counts, counts, rtol=1e-10, atol=1e-13)
    assert expected.weight == pytest.approx(p.weight.sum())
    counted = p.weight > 0
    assert expected.log_likelihood == pytest.approx(p.weight[counted] @ truth[counted])

    rows = np.flatnonzero(p.rng.random(len(p.codes)) < 0.5)
    expected = expected_counts(p.layout, p.theta, p.table, rows)
    _, counts = enumerated(p.layout, p.theta, p.codes[rows], p.weight[rows])
    np.testing.assert_allclose(expected.counts, counts, rtol=1e-10, atol=1e-13)
    assert expected.weight == pytest.approx(p.weight[rows].sum())


@settings(max_examples=60)
@given(problems())
def test_the_circuit_is_the_same_distribution(problem):
    p = problem
    circuit = tree_circuit(p.layout, p.theta)
    assert circuit.cardinalities.tolist() == p.cards.tolist()
    assert circuit.properties.normalised.holds
    found = log_likelihoods(p.layout, p.theta, p.table)
    np.testing.assert_allclose(circuit.log_prob(p.codes), found, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("limit", [2, 4, 30, 256, 40_000])
@pytest.mark.parametrize("n", [1, 6])
def test_threads_change_nothing_and_sharing_only_the_last_bits(limit, n):
    rng = np.random.default_rng(0)
    tree, cards = random_tree(rng, n), rng.integers(1, 5, n).astype(np.int32)
    layout = TreeLayout(tree, rng.integers(1, 6, n).astype(np.int32), cards[tree.variable])
    theta, codes = random_theta(rng, layout), random_rows(rng, cards, 3000, 0.2)
    table = TreeRows(tree, cards, codes, rng.random(3000), limit)
    plain = TreeRows(tree, cards, codes, table.weight, 1)  # nothing is shared
    assert not np.any(plain.patterns.shared)
    some = rng.permutation(3000)[:2100]

    def answers(table):
        return [
            log_likelihoods(layout, theta, table),
            expected_counts(layout, theta, table).counts,
            expected_counts(layout, theta, table, some).counts,
        ]

    with config_context(threads=1):
        one = answers(table)
        for old, new in zip(answers(plain), one, strict=True):
            np.testing.assert_allclose(new, old, rtol=1e-11)
    for threads in (2, 3, 8):
        with config_context(threads=threads):
            for old, new in zip(one, answers(table), strict=True):
                np.testing.assert_array_equal(new, old)


def test_states_that_are_values_are_counted_as_others_are(monkeypatch):
    """The pass for known states against the messages of all states; for any number of threads."""
    rng = np.random.default_rng(1)
    tree, cards = random_tree(rng, 9), rng.integers(1, 12, 9).astype(np.int32)
    layout = TreeLayout(tree, cards[tree.variable], cards[tree.variable])
    theta = shown(layout, random_theta(rng, layout, zeros=0.1))
    table = TreeRows(tree, cards, random_rows(rng, cards, 3000, 0.3), rng.random(3000))
    some = rng.permutation(3000)[:2100]

    def answers():
        return [
            log_likelihoods(layout, theta, table),
            expected_counts(layout, theta, table).counts,
            expected_counts(layout, theta, table, some).counts,
        ]

    found = []
    for threads in (1, 3):
        with config_context(threads=threads):
            found.append(answers())
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    with monkeypatch.context() as patch:
        patch.setattr(VisibleTree, "read", lambda *_: None)
        for fast, slow in zip(found[0], answers(), strict=True):
            np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-12)
    theta[layout.b_start[0]] *= 0.5  # a state that is not its value for certain
    assert layout.states[0] == 1 or VisibleTree.read(layout, theta) is None


def test_counts_of_parts_add_up():
    problem = Problem(np.random.default_rng(3), 4, 3, 24, 0.3, 0.0, 256)
    layout, theta, table = problem.layout, problem.theta, problem.table
    whole = expected_counts(layout, theta, table)
    parts = [expected_counts(layout, theta, table, np.arange(a, 24, 3)) for a in range(3)]
    total = parts[0] + parts[1] + parts[2]
    assert isinstance(total, Counts)
    np.testing.assert_allclose(total.counts, whole.counts, rtol=1e-12, atol=1e-14)
    assert total.weight == pytest.approx(whole.weight)
    assert total.weight == pytest.approx(whole.weight)


def test_no_rows_count_nothing():
    problem = Problem(np.random.default_rng(3), 4, 3, 9, 0.3, 0.0, 256)
    none = np.zeros(0, np.int64)
    found = expected_counts(problem.layout, problem.theta, problem.table, none)
    assert found.weight == 0.0
    assert not np.any(found.counts)
    empty = TreeRows(problem.tree, problem.cards, problem.codes[:0], problem.weight[:0])
    assert not np.any(expected_counts(problem.layout, problem.theta, empty).counts)
    assert log_likelihoods(problem.layout, problem.theta, empty).shape == (0,)


@pytest.mark.parametrize("card", [40, 300, 33_000])
@pytest.mark.parametrize("limit", [2, 256])
def test_columns_of_many_values(card, limit):
    rng = np.random.default_rng(card)
    tree, cards = chain(3), np.array([card, 2, card], np.int32)
    layout = TreeLayout(tree, np.full(3, 2, np.int32), cards)
    theta, codes = random_theta(rng, layout), random_rows(rng, cards, 60, 0.2)
    codes[0] = cards - 1
    table = TreeRows(tree, cards, codes, np.ones(60), limit)
    likelihoods, counts = enumerated(layout, theta, codes, np.ones(60))
    np.testing.assert_allclose(log_likelihoods(layout, theta, table), np.log(likelihoods))
    np.testing.assert_allclose(
        expected_counts(layout, theta, table).counts, counts, rtol=1e-10, atol=1e-13
    )


# -- far from one ---------------------------------------------------------------------


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("states", [1, 3])
@pytest.mark.parametrize("shape", ["chain", "star", "random", "brush"])
def test_thousands_of_rare_values_do_not_underflow(shape, states, limit):
    rng = np.random.default_rng(0)
    n, card = 2000, 50
    brush = np.append(np.repeat(np.arange(1960, 2000), 49)[: n - 40], np.arange(1961, 2000))
    tree = {
        "chain": lambda: chain(n),
        "star": lambda: RootedTree.star(n, 7),
        "random": lambda: random_tree(rng, n),
        "brush": lambda: RootedTree(rng.permutation(n), np.append(brush, -1)),
    }[shape]()
    cards = np.full(n, card, np.int32)
    layout = TreeLayout(tree, np.full(n, states, np.int32), cards)
    theta = random_theta(rng, layout)
    codes = random_rows(rng, cards, 6, 0.0)
    table = TreeRows(tree, cards, codes, np.ones(6), limit)
    truth = in_logarithms(layout, theta, codes)
    assert np.all(truth < -8000)  # far below what a double can hold
    np.testing.assert_allclose(log_likelihoods(layout, theta, table), truth, rtol=1e-10)
    counts = expected_counts(layout, theta, table)
    assert counts.weight == len(truth)
    for v in (0, n // 2, n - 1):
        assert layout.transitions(counts.counts, v).sum() == pytest.approx(6)
        seen = np.bincount(codes[:, tree.variable[v]], minlength=card)
        np.testing.assert_allclose(layout.values(counts.counts, v).sum(axis=0), seen, atol=1e-9)


def test_thousands_of_known_values_around_an_unknown_one_do_not_underflow():
    rng = np.random.default_rng(0)
    n, card = 2000, 20
    tree, cards = RootedTree.star(n, 7), np.full(n, card, np.int32)
    layout = TreeLayout(tree, cards, cards)
    theta = shown(layout, random_theta(rng, layout))
    codes = random_rows(rng, cards, 6, 0.0)
    codes[:, 7] = -1
    table = TreeRows(tree, cards, codes, np.ones(6))
    by_value = np.log(layout.transitions(theta, n - 1)) + sum(
        np.log(layout.transitions(theta, v)[:, codes[:, x]].T)
        for v, x in enumerate(tree.variable[:-1].tolist())
    )
    truth = np.logaddexp.reduce(by_value, axis=1)
    assert np.all(truth < -5000)
    np.testing.assert_allclose(log_likelihoods(layout, theta, table), truth, rtol=1e-10)
    share = np.exp(by_value - truth[:, None])
    counts = expected_counts(layout, theta, table).counts
    np.testing.assert_allclose(layout.transitions(counts, n - 1)[0], share.sum(axis=0))
    np.testing.assert_allclose(layout.transitions(counts, 0).sum(axis=1), share.sum(axis=0))


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("small", [1e-100, 1e-160, 1e-250, 1e-300])
def test_tiny_parameters_do_not_underflow(small, limit):
    # a row that only the rare state explains, with a rare value in each of three columns
    layout = TreeLayout(chain(3), np.full(3, 2, np.int32), np.full(3, 3, np.int32))
    theta = np.empty(layout.size)
    for v in range(3):
        layout.transitions(theta, v)[:] = [[1.0, small], [small, 1.0]][: int(layout.above[v])]
        layout.values(theta, v)[:] = [[1.0, 0.0, 0.0], [0.0, 1.0, small]]
    codes = np.array([[2, 2, 2], [0, 2, 0], [1, 1, 0], [1, 2, 1]], np.int32)
    table = TreeRows(layout.tree, np.full(3, 3, np.int32), codes, np.ones(4), limit)
    truth = in_logarithms(layout, theta, codes)
    assert np.all(np.isfinite(truth))
    np.testing.assert_allclose(log_likelihoods(layout, theta, table), truth, rtol=1e-10)
    # each row has one explanation
    counts = expected_counts(layout, theta, table).counts
    expected = np.zeros_like(counts)
    for row in (codes > 0).astype(int):
        for v, z in enumerate(row):
            layout.transitions(expected, v)[row[v + 1] if v < 2 else 0, z] += 1
    expected[layout.a_start[-1] :] = counts[layout.a_start[-1] :]
    np.testing.assert_allclose(counts, expected, atol=1e-9)


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("weight", [1.0, 1e-3, 1e9])
def test_impossible_rows_count_for_nothing(limit, weight):
    same = np.array([[1.0, 0.0], [0.0, 1.0]])
    layout = TreeLayout(chain(3), np.full(3, 2, np.int32), np.full(3, 2, np.int32))
    theta = np.empty(layout.size)
    for v in range(3):
        layout.values(theta, v)[:] = same
        layout.transitions(theta, v)[:] = same[: int(layout.above[v])]
    layout.transitions(theta, 2)[:] = [1.0, 0.0]  # all columns are 0, always
    codes = np.array([[0, 0, 0], [1, 1, 1], [0, 1, -1], [-1, -1, 1], [-1, 0, -1]], np.int32)
    table = TreeRows(layout.tree, np.full(3, 2, np.int32), codes, np.full(5, weight), limit)
    gone = [False, True, True, True, False]
    found = log_likelihoods(layout, theta, table)
    np.testing.assert_array_equal(found, np.where(gone, -np.inf, 0.0))
    _, truth = enumerated(layout, theta, codes, table.weight)
    counts = expected_counts(layout, theta, table)
    np.testing.assert_allclose(counts.counts, truth, rtol=1e-12)


# -- steps of EM ----------------------------------------------------------------------


def penalised(layout, theta, table, prior):
    known = prior > 0
    weight = table.weight > 0
    found = log_likelihoods(layout, theta, table)
    return table.weight[weight] @ found[weight] + prior[known] @ np.log(theta[known])


@settings(max_examples=60)
@given(problems(zeros=(0.0,), fewest=1), st.sampled_from(["none", "flat", "random"]))
def test_a_step_never_lowers_the_likelihood(problem, kind):
    p = problem
    prior = {
        "none": lambda: np.zeros(p.layout.size),
        "flat": lambda: np.full(p.layout.size, 0.1),
        "random": lambda: p.rng.random(p.layout.size) * (p.rng.random(p.layout.size) < 0.5),
    }[kind]()
    theta, table = p.theta, p.table
    now = penalised(p.layout, theta, table, prior)
    for _ in range(4):
        counts = expected_counts(p.layout, theta, table).counts
        theta = AddedCounts(p.layout, prior).maximise(counts, theta)
        before, now = now, penalised(p.layout, theta, table, prior)
        assert now >= before - 1e-9 * (1 + abs(before))


def test_a_step_does_raise_the_likelihood():
    problem = Problem(np.random.default_rng(8), 4, 3, 200, 0.1, 0.0, 256)
    none = AddedCounts(problem.layout, np.zeros(problem.layout.size))
    schedule = EMSchedule(max_epochs=30, patience=30)
    table = problem.table
    start = TreeModel(
        problem.layout,
        problem.theta,
        mean_log_likelihood(problem.layout, problem.theta, table),
        [],
    )
    scores = []
    model = climb(start, EMProblem(none, table, table, schedule, scores.append))
    assert model.score > start.score + 0.01
    assert scores == model.history
    assert len(scores) == 30
    assert np.all(np.diff([start.score, *scores]) >= -1e-12)
    assert model.score == max(scores) == mean_log_likelihood(model.layout, model.theta, table)


def test_climbing_stops_and_returns_the_best():
    problem = Problem(np.random.default_rng(1), 4, 3, 30, 0.0, 0.0, 256)
    table, layout = problem.table, problem.layout
    other = TreeRows(
        problem.tree, problem.cards, problem.codes[::-1] % 2 % problem.cards, table.weight
    )
    start = TreeModel(layout, problem.theta, mean_log_likelihood(layout, problem.theta, other), [])
    none = AddedCounts(layout, np.zeros(layout.size))
    model = climb(start, EMProblem(none, table, other, EMSchedule(patience=3), lambda _: None))
    assert len(model.history) < 100
    assert model.score == max(model.history)
    assert model.score == mean_log_likelihood(layout, model.theta, other)
    lucky = start._replace(score=0.0)  # a start that has not learned is no candidate
    once = climb(lucky, EMProblem(none, table, other, EMSchedule(max_epochs=1), lambda _: None))
    assert once.history == [once.score] != [0.0]


@pytest.mark.parametrize("batch_size", [None, 40, 10_000])
def test_learning_finds_the_clusters(batch_size):
    rng = np.random.default_rng(2)
    cluster = rng.integers(0, 2, 600)
    codes = np.where(rng.random((600, 5)) < 0.1, 1 - cluster[:, None], cluster[:, None])
    tree, cards = random_tree(rng, 5), np.full(5, 2, np.int32)
    layout = TreeLayout(tree, np.full(5, 2, np.int32), cards)
    table = TreeRows(tree, cards, codes.astype(np.int32), np.ones(600))
    marginals = [np.full(2, 0.5)] * 5
    prior = LatentPrior(layout, marginals, np.zeros(5, int), 0.5, 0.0, no_spikes(marginals))
    starts = [prototype_start(layout, marginals, table, rng) for _ in range(3)]
    for theta in starts:
        np.testing.assert_allclose(layout.normalised(theta), theta)
    scores = []
    schedule = EMSchedule(batch_size=batch_size)
    model = learn(layout, starts, EMProblem(prior, table, table, schedule, scores.append), rng)
    assert set(model.history) <= set(scores)
    assert model.score == mean_log_likelihood(layout, model.theta, table) == max(model.history)
    assert model.score > 5 * np.log(0.5) + 1.0
    np.testing.assert_allclose(layout.normalised(model.theta), model.theta)


def test_without_held_out_rows_the_score_is_that_of_the_rows_before_the_step():
    problem = Problem(np.random.default_rng(8), 4, 3, 200, 0.1, 0.0, 256)
    table, layout = problem.table, problem.layout
    none = AddedCounts(layout, np.zeros(layout.size))
    start = TreeModel(layout, problem.theta, -np.inf, [])
    model = climb(start, EMProblem(none, table, None, EMSchedule(max_epochs=2), lambda _: None))
    assert model.history[0] == pytest.approx(mean_log_likelihood(layout, problem.theta, table))
    theta = none.maximise(expected_counts(layout, problem.theta, table).counts, problem.theta)
    assert model.history[1] == pytest.approx(mean_log_likelihood(layout, theta, table))


# -- priors ---------------------------------------------------------------------------


def test_added_counts():
    layout = TreeLayout(chain(2), np.array([2, 3]), np.array([2, 3]))
    marginals = [np.array([0.25, 0.75]), np.array([0.5, 0.3, 0.2])]
    prior = AddedCounts.visible(layout, marginals, 6.0).counts
    np.testing.assert_allclose(layout.transitions(prior, 0), np.tile([1.5, 4.5], (3, 1)))
    np.testing.assert_allclose(layout.values(prior, 0), np.eye(2))
    even = layout.normalised(np.zeros(layout.size))
    np.testing.assert_allclose(layout.values(even, 1), np.full((3, 3), 1 / 3))
    single = TreeLayout(chain(2), np.array([1, 1]), np.array([2, 3]))
    theta = AddedCounts.single(single, marginals, 2.0).maximise(np.zeros(7), np.zeros(7))
    np.testing.assert_allclose(theta, [1.0, 1.0, *marginals[0], *marginals[1]])


def no_spikes(marginals):
    return [np.zeros(len(marginal), bool) for marginal in marginals]


def smooth_table(counts, marginal, ordered, pseudo_count, smoothing):
    """The table of a smooth leaf by its formulas, with distributions of SciPy."""
    share = marginal[:ordered] / marginal[:ordered].sum()
    edges = norm.ppf(np.append(0.0, np.cumsum(share)).clip(0, 1))
    edges[-1] = np.inf
    scores = -np.diff(norm.pdf(edges)) / share
    bins, rows = counts[:, :ordered], counts[:, :ordered].sum(axis=1, keepdims=True)
    mean = (bins @ scores)[:, None] / (rows + 0.1)
    within = (bins * (scores - mean) ** 2).sum(axis=1, keepdims=True)
    spread = np.sqrt((within + 4 * max(within.sum() / rows.sum(), 1e-4)) / (rows + 4))
    curve = np.diff(norm.cdf((edges - mean) / spread), axis=1)
    others = counts[:, ordered:]
    total = rows + others.sum(axis=1, keepdims=True)
    added = smoothing * np.hstack([curve * rows / total, others / total])
    table = counts + pseudo_count * marginal + added
    return table / table.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("ordered", [9, 8])
@pytest.mark.parametrize("smoothing", [0.0, 100.0])
def test_smooth_leaves_are_drawn_to_normal_curves_of_their_own(ordered, smoothing):
    rng = np.random.default_rng(ordered)
    layout = TreeLayout(chain(2), np.array([4, 4]), np.array([9, 3]))
    marginals = [rng.dirichlet(np.full(9, 5.0)), np.array([0.5, 0.3, 0.2])]
    prior = LatentPrior(
        layout, marginals, np.array([ordered, 0]), 2.0, smoothing, no_spikes(marginals)
    )
    counts = rng.gamma(1.0, 4.0, layout.size)
    theta = prior.maximise(counts, np.zeros(layout.size))
    np.testing.assert_allclose(layout.normalised(theta), theta)
    np.testing.assert_allclose(
        layout.values(theta, 0),
        smooth_table(layout.values(counts, 0), marginals[0], ordered, 2.0, smoothing),
        rtol=1e-9,
    )
    plain = layout.values(counts, 1) + 2.0 * marginals[1]
    np.testing.assert_allclose(layout.values(theta, 1), plain / plain.sum(axis=1, keepdims=True))
    share = layout.transitions(counts, 0).sum(axis=0) + 0.1 / 4
    towards = 0.5 * np.eye(4) + 0.5 * share / share.sum()
    moves = layout.transitions(counts, 0) + 2.0 * towards
    np.testing.assert_allclose(
        layout.transitions(theta, 0), moves / moves.sum(axis=1, keepdims=True), rtol=1e-12
    )


@pytest.mark.parametrize("spike", [0, 4, 7])
def test_spikes_are_no_part_of_the_curve(spike):
    """They are as values beside the bins, wherever they lie among them."""
    rng = np.random.default_rng(spike)
    layout = TreeLayout(chain(1), np.array([4]), np.array([9]))
    marginal, counts = rng.dirichlet(np.full(9, 5.0)), rng.gamma(1.0, 4.0, layout.size)
    spikes = [np.arange(9) == spike]
    theta = LatentPrior(layout, [marginal], np.array([8]), 2.0, 100.0, spikes).maximise(
        counts, np.zeros(layout.size)
    )
    order = np.array([*[b for b in range(8) if b != spike], spike, 8])
    expected = smooth_table(layout.values(counts, 0)[:, order], marginal[order], 7, 2.0, 100.0)
    np.testing.assert_allclose(layout.values(theta, 0)[:, order], expected, rtol=1e-9)


def test_leaves_yield_where_rows_are_many_and_no_value_is_impossible():
    layout = TreeLayout(chain(1), np.array([2]), np.array([12]))
    marginals = [np.full(12, 1 / 12)]
    prior = LatentPrior(layout, marginals, np.array([12]), 2.0, 100.0, no_spikes(marginals))
    counts = np.zeros(layout.size)
    layout.values(counts, 0)[0, [0, 11]] = 1e9  # far from normal
    layout.values(counts, 0)[1, 0] = 1e3
    theta = prior.maximise(counts, counts)
    np.testing.assert_allclose(layout.values(theta, 0)[0, [0, 11]], 0.5, rtol=1e-6)
    assert np.all(theta > 0)


def test_clamped_states_keep_their_values():
    rng = np.random.default_rng(0)
    tree, cards = chain(3), np.array([3, 10, 2], np.int32)
    layout = TreeLayout(tree, np.array([4 + 3, 4, 4 + 2], np.int32), cards)
    codes = random_rows(rng, cards, 300, 0.1)
    table = TreeRows(tree, cards, codes, np.ones(300))
    marginals = [np.full(c, 1 / c) for c in cards]
    prior = LatentPrior(layout, marginals, np.array([0, 10, 0]), 2.0, 100.0, no_spikes(marginals))
    theta = first = prototype_start(layout, marginals, table, rng)
    np.testing.assert_allclose(layout.normalised(theta), theta)
    for _ in range(5):
        theta = prior.maximise(expected_counts(layout, theta, table).counts, theta)
    for node in (0, 2):
        values = layout.values(theta, node)
        np.testing.assert_array_equal(values, layout.values(first, node))
        np.testing.assert_array_equal(
            np.sort(values, axis=1)[:, -2:], np.tile([0, 1], (len(values), 1))
        )
        np.testing.assert_array_equal(values[4:], np.eye(cards[node]))
    assert np.all(np.isfinite(log_likelihoods(layout, theta, table)))


def test_clamped_neighbours_match_the_rows():
    """At a fixed point the joint distribution of two clamped columns is that of the rows."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2, 2000)
    codes = np.column_stack(
        [x, np.where(rng.random(2000) < 0.3, 1 - x, x), rng.integers(0, 9, 2000)]
    )
    tree, cards = chain(3), np.array([2, 2, 9], np.int32)
    layout = TreeLayout(tree, np.array([4, 4, 2], np.int32), cards)
    table = TreeRows(tree, cards, codes.astype(np.int32), np.ones(2000))
    marginals = [np.full(c, 1 / c) for c in cards]
    prior = LatentPrior(layout, marginals, np.array([0, 0, 9]), 0.0, 100.0, no_spikes(marginals))
    start = prototype_start(layout, marginals, table, rng)
    schedule = EMSchedule(max_epochs=300, tolerance=1e-9)
    model = learn(layout, [start], EMProblem(prior, table, None, schedule, lambda _: None), rng)
    circuit = tree_circuit(layout, model.theta)
    pairs = np.array([[a, b, -1] for a in range(2) for b in range(2)])
    share = [np.mean(np.all(codes[:, :2] == pair[:2], axis=1)) for pair in pairs]
    np.testing.assert_allclose(np.exp(circuit.log_prob(pairs)), share, atol=2e-3)
