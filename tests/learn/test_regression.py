"""Learning regression circuits: each part against the slow and obvious, then what is learned."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from expecta import RegressionCircuit, Vtree, config_context
from expecta.circuits import leaf
from expecta.circuits import node as circuit_node
from expecta.learn.regression import LOSSES, Curve, grow, row_features, screening
from expecta.learn.regression import growth as growth_module
from expecta.learn.regression.curves import MAX_GROUPS
from expecta.learn.regression.gates import LeafNode, additive_circuit, every_element
from expecta.learn.regression.growth import FREE, Growth
from expecta.learn.regression.held_out_trials import HeldOutLosses, Trial, smallest
from expecta.learn.regression.newton import Problem, minimise
from expecta.learn.regression.row_features import (
    FeatureTable,
    RowFeatures,
    normal_system,
    pair_sums,
    product,
    restricted,
    transposed,
)
from expecta.learn.regression.screening import ScreenedFeatures
from expecta.learn.regression.splits import GrowthOptions, Proposal, SplitSide
from strategies import vtrees

seeds = st.integers(0, 2**31)


def sparse(matrix):
    """Store a dense matrix by rows."""
    return csr_array(matrix)


def dense(matrix):
    return matrix.toarray()


def random_matrix(rng, rows, columns):
    """Half empty, with some rows and columns that are wholly so."""
    matrix = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < 0.5)
    matrix[rng.random(rows) < 0.2] = 0.0
    matrix[:, rng.random(columns) < 0.2] = 0.0
    return matrix


# -- sparse matrices ------------------------------------------------------------------------


@given(seeds, st.integers(1, 30), st.integers(1, 12), st.integers(1, 4))
@settings(max_examples=40)
def test_products_and_parts(seed, n, width, k):
    rng = np.random.default_rng(seed)
    A = random_matrix(rng, n, width)
    stored = sparse(A)
    assert np.array_equal(dense(stored), A)
    table = rng.normal(size=(width, k))
    assert np.allclose(product(stored, table), A @ table)
    assert np.array_equal(dense(transposed(stored)), A.T)
    assert np.allclose(product(transposed(stored), A), A.T @ A)
    columns = np.flatnonzero(rng.random(width) < 0.5)
    inside = rng.random(n) < 0.7
    chosen = restricted(transposed(stored), columns, inside)
    assert np.array_equal(dense(chosen.array(n)), (A * inside[:, None]).T[columns])


@given(seeds, st.integers(1, 30), st.integers(1, 12), st.integers(1, 3))
@settings(max_examples=40)
def test_sums_over_rows(seed, n, width, k):
    rng = np.random.default_rng(seed)
    A = random_matrix(rng, n, width)
    rows = np.flatnonzero(rng.random(n) < 0.7)
    low, high = sorted(rng.integers(0, width + 1, 2).tolist())
    weight, value = rng.random(n), rng.normal(size=(n, k))
    B = A[rows, low:high]
    pairs = pair_sums(sparse(A), rows, low, high, value)
    assert np.allclose(pairs, np.einsum("ni,nj,nk->ijk", B, B, value[rows]))
    C = np.column_stack([np.ones(len(rows)), B])
    gram, sums = normal_system(sparse(A), rows, low, high, weight, value)
    assert np.allclose(gram, C.T @ (weight[rows, None] * C))
    assert np.allclose(sums, C.T @ value[rows])


@pytest.mark.parametrize("k", [1, 3])
def test_threads_give_the_same_bits(monkeypatch, k):
    monkeypatch.setattr(row_features, "MIN_THREADED_WORK", 0)
    rng = np.random.default_rng(0)
    for n, width in ((500, 40), (3, 5), (1, 1)):
        A = sparse(random_matrix(rng, n, width))
        table = rng.normal(size=(width, k))
        with config_context(threads=1):
            one = product(A, table)
        for threads in (2, 5):
            with config_context(threads=threads):
                assert np.array_equal(product(A, table), one)
    nothing = sparse(np.zeros((4, 3)))
    with config_context(threads=2):
        assert np.array_equal(product(nothing, np.ones((3, k))), np.zeros((4, k)))


@given(seeds)
@settings(max_examples=20)
def test_features_of_values(seed):
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 5, 4)
    bases = [random_matrix(rng, card, int(rng.integers(0, 4))) for card in cards]
    codes = rng.integers(0, cards, (9, 4)).astype(np.int32)
    made = RowFeatures(codes, bases)
    wanted = np.hstack([basis[column] for basis, column in zip(bases, codes.T, strict=True)])
    assert len(made) == 9
    assert np.array_equal(dense(made.rows), wanted)
    assert made.first.tolist() == np.cumsum([0, *(basis.shape[1] for basis in bases)]).tolist()


# -- Newton's method ------------------------------------------------------------------------


@st.composite
def systems(draw):
    """Features, targets, weights and a penalty, all dense."""
    rng = np.random.default_rng(draw(seeds))
    n, width, k = draw(st.integers(1, 40)), draw(st.integers(1, 10)), draw(st.integers(1, 3))
    A = random_matrix(rng, n, width)
    weight = rng.choice([0.0, 0.5, 1.0, 4.0], n) if draw(st.booleans()) else np.ones(n)
    root = rng.normal(size=(width, width))
    P = 0.3 * root @ root.T + draw(st.sampled_from([0.05, 1.0])) * np.eye(width)
    return A, rng.normal(size=(n, k)), weight, P, rng


def minimised(A, y, weight, P, loss, start=None, exact=False):
    def precondition(curvature):
        if not exact:
            return lambda theta: theta
        H = A.T @ (curvature.mean(axis=1)[:, None] * A) + P
        return lambda theta: np.linalg.solve(H, theta)

    by_row = sparse(A)
    problem = Problem(
        by_row, transposed(by_row), y, weight, LOSSES[loss], lambda theta: P @ theta, precondition
    )
    start = np.zeros((A.shape[1], y.shape[1])) if start is None else start
    return minimise(problem, start, tolerance=1e-11)


@given(systems(), st.booleans())
@settings(max_examples=40)
def test_ridge_against_normal_equations(system, exact):
    A, y, weight, P, rng = system
    wanted = np.linalg.solve(A.T @ (weight[:, None] * A) + P, A.T @ (weight[:, None] * y))
    start = rng.normal(size=wanted.shape)
    found = minimised(A, y, weight, P, "squared", start, exact)
    assert np.allclose(found, wanted, rtol=1e-8, atol=1e-8)


@given(systems(), st.booleans())
@settings(max_examples=40)
def test_logistic_against_a_dense_method(system, exact):
    A, y, weight, P, rng = system
    y = (y > 0).astype(float)
    found = minimised(A, y, weight, P, "logistic", rng.normal(size=(len(P), y.shape[1])), exact)
    p = 1 / (1 + np.exp(-A @ found))
    slope = A.T @ (weight[:, None] * (p - y)) + P @ found
    assert np.all(np.abs(slope) <= 1e-7 * (1 + weight.sum()))
    for theta, column in zip(found.T, y.T, strict=True):

        def value(theta, column=column):
            g = A @ theta
            return weight @ (np.logaddexp(0, g) - column * g) + 0.5 * theta @ P @ theta

        def gradient(theta, column=column):
            return A.T @ (weight * (1 / (1 + np.exp(-A @ theta)) - column)) + P @ theta

        other = scipy.optimize.minimize(
            value, np.zeros(len(P)), jac=gradient, method="BFGS", options={"gtol": 1e-9}
        )
        assert value(theta) <= other.fun + 1e-10 * (1 + abs(other.fun))
        assert np.allclose(theta, other.x, rtol=1e-5, atol=1e-5)


@given(seeds)
@settings(max_examples=20)
def test_losses_and_their_derivatives(seed):
    rng = np.random.default_rng(seed)
    y, g = rng.integers(0, 2, (6, 2)).astype(float), rng.normal(scale=3, size=(6, 2))
    weight = rng.random(6) + 0.1
    for loss in LOSSES.values():
        step = 1e-6
        slope = (loss.value(y, g + step) - loss.value(y, g - step)) / (2 * step)
        assert np.allclose(loss.slope(y, g), slope, atol=1e-6)
        curvature = (loss.slope(y, g + step) - loss.slope(y, g - step)) / (2 * step)
        assert np.allclose(loss.curvature(y, g), curvature, atol=1e-6)
        assert loss.dispersion(y, g, weight).shape == (2,)
        assert loss.start(y, weight).shape == (2,)
    assert np.allclose(LOSSES["squared"].start(y, weight), np.average(y, axis=0, weights=weight))


# -- curves ---------------------------------------------------------------------------------


@given(seeds, st.integers(3, 60), st.booleans())
@settings(max_examples=40)
def test_curves(seed, n, even):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 9, n).astype(float) + (rng.random() < 0.5)
    positions = np.arange(float(n)) if even else np.cumsum(rng.random(n) + 1e-3)
    curve = Curve.of(counts, positions)
    assert curve.basis.shape == (n, curve.size)
    assert np.allclose(curve.basis.sum(axis=1), 1.0)
    assert np.all(curve.basis >= 0)
    line = np.linalg.lstsq(curve.basis, positions, rcond=None)[0]
    assert np.allclose(curve.basis @ line, positions)
    # what is free of penalty: a constant and one slope
    assert np.allclose(curve.penalty, curve.penalty.T)
    values = np.linalg.eigvalsh(curve.penalty)
    assert np.all(values[:2] < 1e-9 * values[-1])
    assert np.all(values[2:] > 1e-9 * values[-1])
    assert np.allclose(curve.penalty @ np.ones(curve.size), 0.0)
    if even and n <= 12:
        assert np.allclose(curve.penalty @ line, 0.0)
    assert curve.ordered
    assert np.all(np.diff(curve.groups) >= 0)
    assert np.array_equal(np.unique(curve.groups), np.arange(curve.n_groups))
    assert curve.n_groups <= MAX_GROUPS


@given(seeds, st.integers(3, 60))
@settings(max_examples=30)
def test_categories(seed, n):
    counts = np.random.default_rng(seed).integers(0, 50, n).astype(float)
    curve = Curve.of(counts)
    assert np.array_equal(curve.basis, np.eye(n))
    assert np.array_equal(curve.penalty, np.eye(n))
    assert not curve.ordered
    assert curve.n_groups == min(n, MAX_GROUPS)
    alone = np.bincount(curve.groups)[curve.groups] == 1
    if n > MAX_GROUPS:
        assert counts[alone].min() >= counts[~alone].max()


def test_small_variables():
    for positions in (None, np.arange(2.0)):
        curve = Curve.of(np.ones(2), positions)
        assert curve.basis.tolist() == [[0.0], [1.0]]
        assert curve.groups.tolist() == [0, 1]
    constant = Curve.of(np.ones(1))
    assert (constant.size, constant.basis.shape, constant.n_groups) == (0, (1, 0), 1)


# -- growth ---------------------------------------------------------------------------------


def curves_of(cards, rng):
    return [
        Curve.of(rng.random(card) + 0.1, np.arange(float(card)) if rng.random() < 0.5 else None)
        for card in cards
    ]


@st.composite
def growths(draw, most=6, logistic=False):
    """A circuit that has been split at random, and the rows and variables of every context."""
    vtree = draw(vtrees(most))
    rng = np.random.default_rng(draw(seeds))
    n, k = draw(st.integers(1, 60)), draw(st.integers(1, 3))
    cards = rng.integers(1, 6, vtree.n_variables)
    codes = rng.integers(0, cards, (n, len(cards)))
    y = rng.normal(size=(n, k))
    weight = rng.choice([0.0, 1.0, 2.0], n) if draw(st.booleans()) else np.ones(n)
    weight[0] = 1.0
    loss = LOSSES["logistic" if logistic else "squared"]
    y = (y > 0).astype(float) if logistic else y
    table = FeatureTable(codes, vtree, curves_of(cards, rng), y)
    growth = Growth(table, weight, loss, draw(st.sampled_from([0.3, 3.0])), GrowthOptions())
    contexts = [(np.arange(n), np.arange(len(cards)))]
    for _ in range(draw(st.integers(0, 5))):
        contexts += split_somewhere(growth, rng)
    return growth, codes, contexts


def split_somewhere(growth, rng):
    """Split a random element on a random variable; returns the contexts that were added."""
    elements = list(every_element(growth.root))
    if not elements:  # a single variable
        return []
    node, element = elements[rng.integers(len(elements))]
    first, last = growth.table.spans[node.v]
    place = int(rng.integers(first, last))
    allowed = rng.random(len(growth.table.curves[place].basis)) < 0.5
    hot = allowed[growth.table.codes[element.rows, place]]
    parts = tuple(
        SplitSide(values, np.flatnonzero(rng.random(last - first) < 0.4) + first)
        for values in (allowed, ~allowed)
    )
    rows = element.rows
    growth._apply(node, element, Proposal(1.0, place, parts))
    return [(rows[side], part.positions) for side, part in zip((hot, ~hot), parts, strict=True)]


@given(growths())
@settings(max_examples=60)
def test_the_circuit_says_what_the_boxes_say(grown):
    growth, codes, _ = grown
    growth.fit()
    circuit = growth.circuit()
    assert circuit.properties.deterministic.holds
    assert circuit.covers_everything
    assert np.allclose(circuit(codes).reshape(growth.g.shape), growth.g, rtol=1e-9, atol=1e-9)


@given(growths())
@settings(max_examples=30)
def test_elements_know_their_rows(grown):
    """Every row is hot in one element of each node that it reaches, and in no other."""
    growth, _, _ = grown
    codes, order = growth.table.codes, growth.table.order.tolist()
    hot = {}

    def below(node, row):
        if isinstance(node, LeafNode):
            return bool(node.allowed[codes[row, order.index(node.variable)]])
        found = [e for e in node.elements if below(e.left, row) and below(e.right, row)]
        assert len(found) <= 1
        return bool(found)

    def reach(node, row):
        if isinstance(node, LeafNode):
            return
        for e in node.elements:
            if below(e.left, row) and below(e.right, row):
                hot.setdefault(id(e), set()).add(row)
                reach(e.left, row)
                reach(e.right, row)

    for row in range(len(codes)):
        assert below(growth.root, row)
        reach(growth.root, row)
    for _, element in every_element(growth.root):
        assert set(element.rows.tolist()) == hot.get(id(element), set())


def dense_problem(growth, contexts, penalty):
    """Features and penalty of all contexts, as one would write them down."""
    table, options = growth.table, growth.options
    columns, penalties = [], []
    for number, (rows, positions) in enumerate(contexts):
        inside = np.isin(np.arange(len(table.y)), rows)[:, None]
        shrinkage = options.context if number else options.shared
        columns.append(inside)
        penalties.append([[penalty * shrinkage.size if number else FREE]])
        for place in positions:
            curve = table.curves[place]
            columns.append(inside * curve.basis[table.codes[:, place]])
            size, bends = penalty * shrinkage.size, penalty * shrinkage.bends
            penalties.append(size * np.eye(curve.size) + bends * curve.penalty)
    return np.hstack(columns).astype(float), scipy.linalg.block_diag(*penalties)


def penalised_loss(growth):
    """What a fit of all parameters makes least, per output."""
    theta = growth.contexts.theta
    loss = growth.weight @ growth.loss.value(growth.table.y, growth.g)
    return loss + 0.5 * np.sum(theta * (growth.contexts.penalty() @ theta), axis=0)


@given(growths() | growths(logistic=True), st.booleans())
@settings(max_examples=40)
def test_compiled_steps_are_those_of_products(grown, exact):
    """Small problems are solved by one kernel, large ones by products on threads.

    A rough solution stops where rounding may decide; its loss tells no more than a drop.
    """
    growth, _, _ = grown
    parameters, losses = [], []
    for limit in (row_features.MIN_THREADED_WORK, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(row_features, "MIN_THREADED_WORK", limit)
            growth.contexts.theta = np.zeros_like(growth.contexts.theta)
            growth.fit()
            growth.fit(last=True, exact=exact)
        parameters.append(growth.contexts.theta)
        losses.append(penalised_loss(growth))
    if exact:
        assert np.allclose(*parameters, rtol=1e-6, atol=1e-7)
    assert np.allclose(*losses, rtol=1e-9 if exact else 1e-4, atol=1e-12)


def test_contexts_of_many_parameters_have_a_diagonal_for_a_system(monkeypatch):
    monkeypatch.setattr("expecta.learn.regression.contexts.MAX_DENSE", 2)
    rng = np.random.default_rng(0)
    codes, y = rng.integers(0, 5, (80, 3)), rng.normal(size=(80, 2))
    found = []
    for limit in (row_features.MIN_THREADED_WORK, -1):
        monkeypatch.setattr(row_features, "MIN_THREADED_WORK", limit)
        table = FeatureTable(codes, Vtree.balanced(3), [Curve.of(np.ones(5))] * 3, y)
        growth = Growth(table, np.ones(80), LOSSES["squared"], 1.0, GrowthOptions())
        growth.fit(last=True)
        (context,) = growth.contexts.all
        assert context.system(1.0).shape == (16,)
        found.append(growth.g)
    A, P = dense_problem(growth, [(np.arange(80), np.arange(3))], 1.0)
    H = A.T @ A + P
    assert np.allclose(context.system(1.0), np.diag(H))
    assert np.allclose(found, A @ np.linalg.solve(H, A.T @ y))


@given(growths(), st.sampled_from([0.3, 3.0]))
@settings(max_examples=30)
def test_squared_loss_is_least(grown, penalty):
    growth, _, contexts = grown
    again = Growth(growth.table, growth.weight, growth.loss, penalty, growth.options)
    again.contexts.all = [again.contexts.all[0]]
    for rows, positions in contexts[1:]:
        own = again._shrinkage
        again.contexts.add(rows, positions, own, own.size, growth.table.y.shape[1])
    again.fit(last=True)
    A, P = dense_problem(growth, contexts, penalty)
    weight, y = growth.weight[:, None], growth.table.y
    theta = np.linalg.solve(A.T @ (weight * A) + P, A.T @ (weight * y))
    assert np.allclose(again.g, A @ theta, atol=1e-6)
    assert np.allclose(again.contexts.theta, theta, atol=1e-5)


@given(growths(logistic=True))
@settings(max_examples=30)
def test_logistic_loss_is_least(grown):
    growth, _, contexts = grown
    growth.fit(last=True)
    penalty = growth._shrinkage.size / growth.options.context.size
    A, P = dense_problem(growth, contexts, penalty)
    theta = growth.contexts.theta
    assert np.allclose(A @ theta, growth.g)
    p = 1 / (1 + np.exp(-growth.g))
    slope = A.T @ (growth.weight[:, None] * (p - growth.table.y)) + P @ theta
    assert np.max(np.abs(slope)) < 1e-6 * (1 + growth.weight.sum())


def test_what_a_split_does_not_touch_is_shared():
    n, d = 50, 32
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (n, d))
    table = FeatureTable(
        codes, Vtree.balanced(d), [Curve.of(np.ones(2))] * d, rng.normal(size=(n, 1))
    )
    growth = Growth(table, np.ones(n), LOSSES["squared"], 1.0, GrowthOptions())
    node, element = next(iter(every_element(growth.root)))
    allowed = np.array([True, False])
    before = {id(one) for one, _ in every_element(growth.root)}
    left, right = element.left, element.right
    parts = (
        SplitSide(allowed, np.array([20])),
        SplitSide(~allowed, np.array([], int)),
    )
    growth._apply(node, element, Proposal(1.0, 3, parts))
    first, second = growth.root.elements
    assert first.left is not left
    assert second.left is not left
    assert first.right is not right  # it has a table of its own for variable 20
    assert second.right is right
    after = {id(one) for one, _ in every_element(growth.root)}
    depth = 5
    assert len(after - before) <= 3 * (depth - 1)  # inner nodes on three paths to a leaf
    growth.fit()
    assert growth.circuit().structure.n_nodes <= 2 * d - 1 + 3 * depth


# -- the learner ----------------------------------------------------------------------------


def learn(X, y, cards, *, ordered=(), vtree=None, max_splits=8, penalties=(1.0, 3.0), **options):
    curves = [
        Curve.of(np.ones(card), np.arange(float(card)) if variable in ordered else None)
        for variable, card in enumerate(cards)
    ]
    with threadpool_limits(1):  # as estimators do: the systems are small
        return grow(
            X,
            y.reshape(len(X), -1),
            vtree=Vtree.balanced(len(cards)) if vtree is None else vtree,
            curves=curves,
            max_splits=max_splits,
            penalties=penalties,
            **options,
        )


def interacting(n=600, seed=0):
    """The product of a category and a number, an exclusive or, and noise."""
    rng = np.random.default_rng(seed)
    cards = [3, 10, 2, 2, 4]
    X = rng.integers(0, cards, (n, 5))
    y = np.array([-1.0, 0.0, 1.0])[X[:, 0]] * (X[:, 1] - 4.5) / 3
    y = y + (X[:, 2] ^ X[:, 3]) + 0.1 * rng.normal(size=n)
    return X, y / y.std(), cards


def test_an_exclusive_or_is_found():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (400, 4))
    y = (X[:, 0] ^ X[:, 3]) * 2.0 - 1.0 + 0.1 * rng.normal(size=400)
    grown = learn(X, y, [2] * 4, fold=np.arange(400) % 4)
    assert grown.held_out < 0.1 * grown.additive
    assert np.mean((grown.circuit(X) - y) ** 2) < 0.02


def test_a_product_is_found():
    rng = np.random.default_rng(1)
    X = rng.integers(0, [3, 10, 2], (500, 3))
    y = np.array([-1.0, 0.0, 1.0])[X[:, 0]] * (X[:, 1] - 4.5) / 3 + 0.1 * rng.normal(size=500)
    grown = learn(X, y, [3, 10, 2], ordered=[1], fold=np.arange(500) % 4)
    assert grown.held_out < 0.1 * grown.additive
    assert np.mean((grown.circuit(X) - y) ** 2) < 0.05


def test_a_penalty_beyond_those_given_is_found():
    X, y, cards = interacting()
    options = {"ordered": [1], "fold": np.arange(600) % 4}
    grown = learn(X, y, cards, penalties=(100.0, 300.0), **options)
    alone = learn(X, y, cards, penalties=(100.0,), **options)
    assert alone.penalty == 100.0
    assert grown.penalty < 50.0
    assert grown.held_out == grown.tried[grown.penalty][grown.n_splits]
    assert grown.held_out < 0.8 * alone.held_out
    assert grown.additive == alone.additive


@pytest.mark.parametrize("seed", range(3))
def test_what_is_additive_stays_so(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, [3, 10, 2, 5], (500, 4))
    y = np.sin(X[:, 1] / 2) + X[:, 2] + rng.normal(size=3)[X[:, 0]] + 0.5 * rng.normal(size=500)
    grown = learn(X, y / y.std(), [3, 10, 2, 5], ordered=[1, 3], fold=np.arange(500) % 4)
    assert grown.n_splits <= 1
    assert grown.held_out >= 0.98 * grown.additive


def test_the_shape_of_the_vtree_matters_little():
    X, y, cards = interacting()
    fold = np.where(np.arange(600) % 4 == 0, 0, -1)
    shapes = [
        Vtree.balanced(5),
        Vtree.right_linear([4, 2, 0, 3, 1]),
        Vtree.left_linear(5),
        Vtree.random(5, seed=3, balanced=False),
    ]
    grown = [learn(X, y, cards, ordered=[1], vtree=vtree, fold=fold) for vtree in shapes]
    assert np.allclose([one.additive for one in grown], grown[0].additive, rtol=1e-2)
    losses = [one.held_out for one in grown]
    assert max(losses) < 1.5 * min(losses)
    assert max(losses) < 0.3 * grown[0].additive


@pytest.mark.parametrize("most", [0, 1, 3])
def test_no_more_splits_than_allowed(most):
    X, y, cards = interacting()
    for fold in (None, np.arange(600) % 2):
        grown = learn(X, y, cards, ordered=[1], max_splits=most, fold=fold)
        assert grown.n_splits <= most
        assert all(size <= most for tried in grown.tried.values() for size in tried)
    if not most:  # one node per vtree node
        assert grown.circuit.structure.n_nodes == 9


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_weights_are_repetitions(loss):
    X, y, cards = interacting(300)
    y = (y > 0).astype(float) if loss == "logistic" else y
    weight = np.random.default_rng(1).integers(0, 4, 300)
    options = {"ordered": [1], "loss": loss, "max_splits": 3, "penalties": [2.0]}
    weighted = learn(X, y, cards, weight=weight.astype(float), **options)
    repeated = learn(np.repeat(X, weight, axis=0), np.repeat(y, weight), cards, **options)
    assert weighted.circuit.structure.same_as(repeated.circuit.structure)
    assert np.allclose(weighted.circuit(X), repeated.circuit(X), atol=1e-5)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_same_for_any_number_of_threads(monkeypatch, loss):
    monkeypatch.setattr(row_features, "MIN_THREADED_WORK", 0)
    X, y, cards = interacting(300)
    y = np.stack([y > 0, y > 1], axis=1).astype(float) if loss == "logistic" else y
    found = []
    for threads in (1, 2, 1):
        with config_context(threads=threads):
            fold = np.arange(300) % 2
            found.append(learn(X, y, cards, ordered=[1], loss=loss, fold=fold, max_splits=6))
    assert found[0].circuit == found[1].circuit == found[2].circuit
    assert found[0].tried == found[1].tried


def test_many_variables():
    """Cheap splits go first; those of parts are looked at late, and as well as ever."""
    n, d = 600, 80
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (n, d))
    y = ((X[:, 0] ^ X[:, 1]) + 2 * (X[:, 6] ^ X[:, 7]) + X[:, 40] * X[:, 2] > 1).astype(float)
    assert GrowthOptions.of(LOSSES["logistic"], d).frugal
    table = FeatureTable(X, Vtree.balanced(d), [Curve.of(np.ones(2))] * d, y[:, None])
    found = []
    for threads in (1, 2):
        with config_context(threads=threads), threadpool_limits(1):
            options = GrowthOptions.of(LOSSES["logistic"], d)
            growth = Growth(table, np.ones(n), LOSSES["logistic"], 0.1, options)
            growth.fit()
            assert np.mean((growth.g[:, 0] > 0) == y) < 0.9
            while growth.n_splits < 40 and growth.step(40 - growth.n_splits):
                pass
            found.append(growth.circuit())
        assert np.mean((growth.g[:, 0] > 0) == y) > 0.99
        assert np.allclose(found[-1](X), growth.g[:, 0])
        best = growth.made[0][0][1]
        assert best.position in (6, 7)
        assert all(len(part.positions) < 5 for part in best.sides)  # not all eighty
    assert found[0] == found[1]


def test_wide_elements_are_estimated_from_some_rows(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (400, 4))
    y = (X[:, 0] ^ X[:, 3]) * 2.0 - 1.0
    monkeypatch.setattr("expecta.learn.regression.split_sums.MAX_WORK", 1000)  # rows x variables²
    grown = learn(X, y, [2] * 4, fold=np.arange(400) % 4)
    assert grown.held_out < 0.1 * grown.additive


def test_three_classes():
    rng = np.random.default_rng(0)
    X = rng.integers(0, [3, 4, 2, 2], (500, 4))
    y = (X[:, 0] + X[:, 2]) % 3
    grown = learn(X, np.eye(3)[y], [3, 4, 2, 2], loss="logistic", fold=np.arange(500) % 4)
    assert grown.circuit.link == "logistic"
    assert grown.circuit.n_outputs == 3
    assert grown.held_out < 0.5 * grown.additive
    assert np.mean(np.argmax(grown.circuit(X), axis=1) == y) > 0.98


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_hardly_any_rows(n, loss):
    rng = np.random.default_rng(n)
    cards = [1, 2, 3]
    X = rng.integers(0, cards, (n, 3))
    y = rng.integers(0, 2, n).astype(float)
    for fold in (None, np.arange(n) % 2) if n > 1 else (None,):
        grown = learn(X, y, cards, ordered=[2], loss=loss, fold=fold)
        assert grown.n_splits == 0 or fold is None
        assert np.all(np.isfinite(grown.circuit(X)))
        assert grown.circuit.covers_everything


def test_variables_with_one_value():
    rng = np.random.default_rng(0)
    cards = [1, 2, 1, 2, 1]
    X = rng.integers(0, cards, (200, 5))
    y = (X[:, 1] ^ X[:, 3]) - 0.5 + 0.1 * rng.normal(size=200)
    grown = learn(X, y, cards, ordered=[0], fold=np.arange(200) % 2)
    assert grown.held_out < 0.2 * grown.additive
    only = learn(X[:, :1], y, cards[:1])
    assert only.circuit(X[:, :1]) == pytest.approx(y.mean(), abs=1e-4)


def test_circuits_of_folds_did_not_see_them():
    X, y, cards = interacting(300)
    fold = np.arange(300) % 2
    options = {
        "ordered": [1],
        "fold": fold,
        "keep_folds": True,
        "max_splits": 0,
        "penalties": [1.0],
    }
    grown = learn(X, y, cards, **options)
    again = learn(X, y + 100.0 * (fold == 1), cards, **options)
    assert len(grown.folds) == 2
    assert again.folds[1] == grown.folds[1]
    assert again.folds[0] != grown.folds[0]


@pytest.mark.parametrize(
    ("gain", "noise", "least", "taken"),
    [
        (0.05, 10.0, 0, 2),  # more than a hundredth of the loss, though within a standard error
        (0.005, 10.0, 0, 0),  # neither
        (0.005, 0.01, 0, 2),  # more than a standard error
        (0.005, 10.0, 1, 1),  # no smaller than it was
    ],
)
def test_the_smallest_circuit_close_to_the_best_is_taken(gain, noise, least, taken):
    rng = np.random.default_rng(0)
    other = rng.normal(0, noise, 400)
    of_size = {
        size: HeldOutLosses(1.0 - share * gain + sign * (other - other.mean()), np.ones(400))
        for size, share, sign in ((0, 0, 0), (1, 0, 0), (2, 1, 1))
    }

    class Grown(Trial):
        def __init__(self):
            self.losses = {size: held_out.mean for size, held_out in of_size.items()}
            self._of_rows = of_size

    assert smallest([Grown()], least) == taken


def test_a_growth_without_splits_makes_no_gates(monkeypatch):
    X, y, cards = interacting(60)
    made = []
    monkeypatch.setattr(
        growth_module, "additive_circuit", lambda *given: made.append(additive_circuit(*given))
    )
    grown = learn(X, y, cards, max_splits=0)
    assert not made
    monkeypatch.undo()
    monkeypatch.setattr(Growth, "circuit", circuit_of_gates)
    assert learn(X, y, cards, max_splits=0).circuit == grown.circuit


def circuit_of_gates(growth, link="identity"):
    """Write an additive circuit gate by gate."""
    (context,) = growth.contexts.all
    tables, start = {}, 1
    for place, basis in zip(context.positions, context.bases, strict=True):
        tables[growth.table.order[place]] = basis @ context.theta[start : start + basis.shape[1]]
        start += basis.shape[1]

    def build(node):
        if isinstance(node, LeafNode):
            return leaf(node.variable, list(tables[node.variable]))
        (element,) = node.elements
        return circuit_node((0.0, build(element.left), build(element.right)))

    table = growth.table
    return RegressionCircuit.build(
        table.vtree, build(growth.root), table.cardinalities, bias=context.theta[0], link=link
    )


def test_variables_are_ordered_once_for_each_set_of_rows(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(3, size=(80, 12))
    y = (X[:, 0] - X[:, 1] + rng.normal(size=80))[:, None]
    monkeypatch.setattr(screening, "MAX_VARIABLES", 10)
    monkeypatch.setattr(screening, "N_KEPT", (2, 4, 8))
    weights, order = [], ScreenedFeatures._strongest
    monkeypatch.setattr(
        ScreenedFeatures,
        "_strongest",
        lambda self, weight: (weights.append(weight.tobytes()), order(self, weight))[1],
    )
    learn(X, y, [3] * 12, fold=np.arange(80) % 4, max_splits=0)
    assert len(weights) == len(set(weights)) == 5
