"""New parameters for a given structure: the optimum of the problem that is stated."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

import expecta
from expecta import RegressionCircuit, Vtree, config_context, random_regression
from expecta.circuits import leaf, linear, literal, node
from expecta.common.errors import DomainError, PropertyError
from expecta.learn.regression import edge_features, edge_parameters, fit_parameters
from expecta.learn.regression.row_features import product
from strategies import vtrees
from truth import complete_rows, prediction


def hot_edges(g, x):
    """The edges that a row makes hot, gate by gate; none off the support."""
    s = g.structure

    def below(n):
        variable = s.vtree.variable[s.layer_of_node[n]]
        for k in range(s.edge_start[n], s.edge_start[n + 1]):
            t = s.target[k]
            if variable >= 0:
                if x[variable] == t:
                    return [k]
                continue
            left, right = below(s.left[t]), below(s.right[t])
            if left and right:
                return [k, *left, *right]
        return []

    return below(s.root)


def design(g, X):
    """A constant, and every edge.  # (rows, 1 + edges)."""
    out = np.zeros((len(X), 1 + g.structure.n_edges))
    out[:, 0] = 1.0
    for row, x in zip(out, X, strict=True):
        row[[1 + k for k in hot_edges(g, x)]] = 1.0
    return out


def ridge(A, y, weight, penalty):
    P = penalty * np.eye(A.shape[1])
    P[0, 0] = 0.0
    return np.linalg.solve(A.T @ (weight[:, None] * A) + P, A.T @ (weight[:, None] * y))


def logistic(A, y, weight, penalty):
    """One output after the other, by a dense trust-region method."""
    P = penalty * np.eye(A.shape[1])
    P[0, 0] = 0.0

    def solve(y):
        def value(theta):
            g = A @ theta
            return weight @ (np.logaddexp(0, g) - y * g) + 0.5 * theta @ P @ theta

        def slope(theta):
            return A.T @ (weight * (1 / (1 + np.exp(-A @ theta)) - y)) + P @ theta

        def bend(theta):
            p = 1 / (1 + np.exp(-A @ theta))
            return A.T @ ((weight * p * (1 - p))[:, None] * A) + P

        start = np.zeros(A.shape[1])
        return scipy.optimize.minimize(
            value, start, jac=slope, hess=bend, method="trust-exact", options={"gtol": 1e-11}
        ).x

    return np.stack([solve(column) for column in y.T], axis=1)


def agree(g, theta, scale=1.0):
    assert np.allclose(g.bias, theta[0], rtol=1e-6, atol=1e-6 * scale)
    assert np.allclose(g.weight, theta[1:], rtol=1e-6, atol=1e-6 * scale)


@st.composite
def problems(draw, coverage=(1.0, 1.0, 0.6)):
    """A circuit, rows of its variables, targets around some function, and weights."""
    vtree = draw(vtrees(5))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    cards = rng.integers(1, 5, vtree.n_variables)
    g = random_regression(
        vtree,
        cards,
        units=draw(st.integers(1, 5)),
        outputs=draw(st.integers(1, 3)),
        coverage=draw(st.sampled_from(coverage)),
        seed=rng,
    )
    n = draw(st.sampled_from([1, 2, 7, 40]))
    X = rng.integers(0, cards, (n, len(cards)))
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], n) if draw(st.booleans()) else np.ones(n)
    weight[0] = 1.0
    return g, X, weight, draw(st.sampled_from([0.03, 1.0, 20.0])), rng


# -- the features ---------------------------------------------------------------------------


@given(problems())
@settings(max_examples=30)
def test_differences_say_the_same_as_edges(problem):
    g, X, _, _, rng = problem
    found = edge_features.EdgeFeatures.of(g.structure, X)
    theta = found.differences(g.weight, g.bias)
    predicted = np.array([prediction(g, x)[0] for x in X])
    assert np.allclose(product(found.by_row, theta), predicted)
    assert np.allclose(edge_features.predict(g.structure, g.weight, g.bias, X), predicted)
    theta = rng.normal(size=theta.shape)
    weight, bias = found.parameters(theta)
    assert np.allclose(design(g, X) @ np.vstack([bias, weight]), product(found.by_row, theta))
    layer = g.structure.layer_of_node[g.structure.node_of_edge]
    total = np.array([weight[layer == v].sum(axis=0) for v in range(len(g.vtree))])
    assert np.allclose(total, total[0])  # what layers have in common is the least that it can be
    assert found.some_off or np.allclose(total, 0.0)


@given(problems())
@settings(max_examples=30)
def test_the_penalty_is_that_of_all_edges(problem):
    g, X, _, _, rng = problem
    found = edge_features.EdgeFeatures.of(g.structure, X)
    theta = rng.normal(size=(found.by_row.shape[1], 2))
    weight, _ = found.parameters(theta)
    assert np.allclose(np.sum(theta * found.ridge(theta), axis=0), np.sum(weight**2, axis=0))
    full = found.ridge(np.eye(len(theta)))
    assert np.allclose(full, full.T)
    assert np.allclose(np.diag(full), found.ridge_diagonal()[:, 0])


def test_few_rows_at_a_time_are_all_rows(monkeypatch):
    g = random_regression(Vtree.balanced(5), coverage=0.7, outputs=2, seed=0)
    X = np.random.default_rng(0).integers(0, 2, (50, 5))
    whole = edge_features.EdgeFeatures.of(g.structure, X)
    monkeypatch.setattr(edge_features, "BATCH_ROWS", 7)
    parts = edge_features.EdgeFeatures.of(g.structure, X)
    for one, other in ((whole.by_row, parts.by_row), (whole.by_column, parts.by_column)):
        assert np.array_equal(one.indptr, other.indptr)
        assert np.array_equal(one.indices, other.indices)
    predicted = np.array([prediction(g, x)[0] for x in X])
    assert np.allclose(edge_features.predict(g.structure, g.weight, g.bias, X), predicted)


# -- the optimum ----------------------------------------------------------------------------


@given(problems(), st.booleans(), st.booleans())
@settings(max_examples=50)
def test_ridge_against_normal_equations(problem, warm, dense):
    g, X, weight, penalty, rng = problem
    y = rng.normal(3.0, 2.0, (len(X), g.n_outputs))
    with pytest.MonkeyPatch.context() as patch:
        if not dense:
            patch.setattr(edge_parameters, "MAX_DENSE", 0)
            patch.setattr(edge_parameters, "EXACT_GRADIENT", 1e-9)
        fitted = fit_parameters(g, X, y, penalties=[penalty], sample_weight=weight, warm=warm)
    agree(fitted, ridge(design(g, X), y, weight, penalty), 10.0)
    assert fitted.structure is g.structure
    assert fitted.link == "identity"


@given(problems(), st.booleans(), st.booleans())
@settings(max_examples=30)
def test_logistic_against_a_dense_method(problem, warm, dense):
    g, X, weight, penalty, rng = problem
    y = rng.random((len(X), g.n_outputs)) * 0.9 + 0.05  # so that there is an optimum
    with pytest.MonkeyPatch.context() as patch:
        if not dense:
            patch.setattr(edge_parameters, "MAX_DENSE", 0)
            patch.setattr(edge_parameters, "EXACT_GRADIENT", 1e-9)
        fitted = fit_parameters(
            g, X, y, loss="logistic", penalties=[penalty], sample_weight=weight, warm=warm
        )
    theta = logistic(design(g, X), y, weight, penalty)
    agree(fitted, theta, 100.0)
    assert fitted.link == "logistic"


@given(problems(coverage=(0.3,)))
@settings(max_examples=20)
def test_rows_off_the_support(problem):
    g, X, weight, penalty, rng = problem
    y = rng.normal(size=(len(X), g.n_outputs))
    fitted = fit_parameters(g, X, y, penalties=[penalty], sample_weight=weight)
    agree(fitted, ridge(design(g, X), y, weight, penalty))
    every = complete_rows(g.cardinalities)
    off = np.array([not prediction(g, x)[1] for x in every])
    assert np.all(fitted(every[off]).reshape(-1, g.n_outputs) == fitted.bias)


def test_no_row_on_the_support():
    g = RegressionCircuit.build(Vtree.balanced(2), node((1.0, literal(0, 1), literal(1, 1))))
    fitted = fit_parameters(g, [[0, 0], [0, 1]], [2.0, 4.0])
    assert np.allclose(fitted.bias, 3.0)
    assert not np.any(fitted.weight)


def test_edges_that_no_row_makes_hot_are_zero():
    g = linear(Vtree.balanced(2), [[5.0, 5.0, 5.0], [1.0, 2.0]])
    fitted = fit_parameters(g, [[0, 0], [1, 1], [1, 0]], [1.0, 2.0, 4.0], penalties=[1.0])
    cold = design(fitted, [[0, 0], [1, 1], [1, 0]])[:, 1:].sum(axis=0) == 0
    assert np.count_nonzero(cold) == 1
    assert np.all(fitted.weight[cold] == 0)


@pytest.mark.parametrize("link", ["identity", "logistic"])
def test_the_start_and_threads_do_not_matter(link):
    g = random_regression(Vtree.balanced(6), outputs=3, units=5, scale=3.0, seed=1)
    g = RegressionCircuit(g.structure, g.weight, g.bias, link=link)
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (200, 6))
    y = rng.random((200, 3)).round()
    warm, cold = (fit_parameters(g, X, y, warm=warm) for warm in (True, False))
    assert np.allclose(warm.weight, cold.weight, atol=1e-6)
    assert np.allclose(warm.bias, cold.bias, atol=1e-6)
    with config_context(threads=1):
        one = fit_parameters(g, X, y)
    with config_context(threads=2):
        two = fit_parameters(g, X, y)
    assert one == two


# -- classes and held-out rows --------------------------------------------------------------


def test_classes_are_one_against_the_rest():
    g = random_regression(Vtree.balanced(4), [3, 2, 2, 3], outputs=3, seed=0)
    g = RegressionCircuit(g.structure, g.weight, g.bias, link="logistic")
    rng = np.random.default_rng(1)
    X = rng.integers(0, g.cardinalities, (80, 4))
    y = (X[:, 0] + (rng.random(80) < 0.1)) % 3
    one = fit_parameters(g, X, y, penalties=[1.0])
    other = fit_parameters(g, X, np.eye(3)[y], penalties=[1.0])
    assert one == other
    assert one.link == "logistic"
    assert np.mean(np.argmax(one(X), axis=1) == y) > 0.8


def test_a_class_that_no_row_has():
    g = linear(Vtree.balanced(2), [np.zeros((2, 3)), np.zeros((2, 3))], link="logistic")
    X = complete_rows([2, 2])
    fitted = fit_parameters(g, X, X[:, 0])
    assert np.all(fitted(X)[:, 2] < -5)
    assert np.array_equal(np.argmax(fitted(X), axis=1), X[:, 0])


@given(problems(), st.booleans())
@settings(max_examples=20)
def test_held_out_rows_choose_the_penalty(problem, is_logistic):
    g, X, weight, _, rng = problem
    y = rng.random((len(X), g.n_outputs)) * 0.8 + 0.1
    held = rng.integers(0, g.cardinalities, (30, g.n_variables))
    wanted = rng.random((30, g.n_outputs)) * 0.8 + 0.1
    loss = "logistic" if is_logistic else "squared"
    penalties = (1.0, 0.1, 10.0, 1000.0)

    def missed(circuit):
        out = circuit(held).reshape(wanted.shape)
        return np.mean(expecta.learn.regression.LOSSES[loss].value(wanted, out))

    each = [
        fit_parameters(g, X, y, loss=loss, penalties=[p], sample_weight=weight) for p in penalties
    ]
    chosen = fit_parameters(
        g, X, y, loss=loss, penalties=penalties, valid=(held, wanted), sample_weight=weight
    )
    assert missed(chosen) <= min(map(missed, each)) * (1 + 1e-3)
    first = fit_parameters(g, X, y, loss=loss, penalties=penalties, sample_weight=weight)
    assert np.allclose(first.weight, each[0].weight, atol=1e-9)


def test_of_equals_the_stronger_penalty(monkeypatch):
    g = linear(Vtree.balanced(2), [[0.0, 1.0], [0.0, 1.0]])
    X = complete_rows([2, 2])
    tried = []
    fit = edge_parameters._fit

    def watched(wires, y, weight, loss, offset, penalty, theta, tolerance):
        tried.append(penalty)
        return fit(wires, y, weight, loss, offset, penalty, theta, tolerance)

    monkeypatch.setattr(edge_parameters, "_fit", watched)
    fit_parameters(g, X, np.zeros(4), valid=(X, np.zeros(4)), warm=False, penalties=(1.0, 7.0, 2.0))
    assert tried == [7.0, 2.0, 1.0, 7.0]


@given(problems())
@settings(max_examples=40)
def test_towards_the_given_parameters(problem):
    """What is left over is fitted by the same ridge regression; no other edge moves."""
    g, X, weight, penalty, rng = problem
    y = rng.normal(size=(len(X), g.n_outputs))
    A = design(g, X)
    given = np.vstack([g.bias, g.weight])
    wanted = given + ridge(A, y - A @ given, weight, penalty)
    options = {"loss": "squared", "penalties": [penalty], "sample_weight": weight}
    agree(fit_parameters(g, X, y, towards="given", **options), wanted)
    bound = fit_parameters(g, X, y, towards="given", **options | {"penalties": [1e12]})
    assert np.allclose(bound.weight, g.weight, atol=1e-9)


def test_a_start_far_on_the_wrong_side():
    """Where the logistic loss is flat, and where it is straight."""
    vtree, X = Vtree.balanced(2), complete_rows([2, 2])
    y = np.array([0.0, 1.0, 1.0, 1.0])
    want = fit_parameters(linear(vtree, [[0, 0], [0, 0]]), X, y, loss="logistic", penalties=[1.0])
    for far in (800.0, -800.0, 1e5):
        g = linear(vtree, [[far, 0.0], [0.0, -2 * far]], bias=far)
        assert np.allclose(
            fit_parameters(g, X, y, loss="logistic", penalties=[1.0])(X), want(X), atol=1e-6
        )
    g = linear(vtree, [[40.0, 0.0], [0.0, 60.0]])
    sure = fit_parameters(g, X, np.ones(4), loss="logistic", penalties=[500.0])(X)
    assert np.all(np.isfinite(sure))
    assert np.all(sure > 10)  # no finite bias is the best


# -- what is refused ------------------------------------------------------------------------


def test_what_is_refused():
    g = linear(Vtree.balanced(2), [[0.0, 1.0], [0.0, 1.0]])
    X, y = complete_rows([2, 2]), np.arange(4.0)
    for bad, words in (
        ({"X": X[:, :1]}, "shape"),
        ({"X": X.astype(float)}, "integers"),
        ({"X": X - 1}, "complete"),
        ({"X": X + 1}, "cardinality"),
        ({"X": X[:0], "y": y[:0]}, "no row"),
        ({"y": y[:3]}, "shape"),
        ({"y": np.full(4, np.nan)}, "finite"),
        ({"y": ["1", "2", "3", "4"]}, "numbers"),
        ({"y": y, "loss": "logistic"}, "between 0 and 1"),
        ({"sample_weight": [1.0, 1.0]}, "sample_weight"),
        ({"sample_weight": [-1.0, 1.0, 1.0, 1.0]}, "sample_weight"),
        ({"sample_weight": np.zeros(4)}, "no row"),
        ({"valid": (X[:0], y[:0])}, "held out"),
    ):
        with pytest.raises(DomainError, match=words):
            fit_parameters(g, **{"X": X, "y": y, **bad})
    for bad in ({"loss": "hinge"}, {"penalties": []}, {"penalties": [0.0]}, {"towards": "one"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            fit_parameters(g, X, y, **bad)
    many = linear(Vtree.balanced(2), [np.zeros((2, 3))] * 2, link="logistic")
    with pytest.raises(DomainError, match=r"0 \.\. 2"):
        fit_parameters(many, X, [0, 1, 2, 3])
    both = leaf(0, [1.0, 1.0])
    loose = RegressionCircuit.build(
        Vtree.balanced(2), node((1.0, both, literal(1, 0)), (2.0, both, leaf(1, [0.0, 0.0])))
    )
    with pytest.raises(PropertyError, match="deterministic"):
        fit_parameters(loose, X, y)


# -- the authors' circuits ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "theirs"), [("insurance", 22561306.7238), ("abalone", 6.76249617)]
)
def test_the_authors_circuits(data, name, theirs):
    folder = data / "circuits" / name
    g = RegressionCircuit.load(folder / f"{name}.glc", Vtree.load(folder / f"{name}.vtree"))
    with np.load(data / "splits" / f"{name}.npz") as file:
        rows = {part: file[part] for part in file}
    valid = rows["x_valid"], rows["y_valid"]
    fitted = fit_parameters(g, rows["x_train"], rows["y_train"], valid=valid)

    def missed(circuit, part):
        return np.mean((circuit(rows[f"x_{part}"]) - rows[f"y_{part}"]) ** 2)

    assert missed(g, "test") == pytest.approx(theirs)
    assert missed(fitted, "valid") < missed(g, "valid")
    assert missed(fitted, "test") < 1.01 * theirs  # who is ahead hangs on the penalties
