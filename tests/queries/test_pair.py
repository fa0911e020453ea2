"""The pair against enumeration: hundreds of random circuits, every kind of evidence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expecta import (
    Evidence,
    LatentTree,
    Pair,
    RegressionCircuit,
    Vtree,
    config_context,
    random_probabilistic,
    random_regression,
)
from expecta.circuits import independent, linear
from expecta.circuits.structure import Structure
from expecta.common.errors import DomainError, FormatError
from strategies import circuit_pairs, evidences
from truth import Truth, draw

many = settings(max_examples=250, deadline=None)
some = settings(max_examples=60, deadline=None)


def close(found, true, size, tolerance=1e-10):
    """Relative to the size of what was summed: E|g|^k, not E[g^k], which may cancel."""
    assert np.all(np.abs(found - true) <= tolerance * size + 1e-300)


def outputs_last(pair, values):
    return values if pair.g.n_outputs > 1 else values[:, None]


@st.composite
def cases(draw, most=6, outputs=None):
    p, g = draw(circuit_pairs(most, outputs))
    return p, g, draw(evidences(p))


@given(cases())
@many
def test_moments(case):
    p, g, evidence = case
    truth = Truth(p, g)
    posterior = truth.posterior(evidence)
    pair = Pair(p, g)
    order = 6
    found = outputs_last(pair, pair.moments(evidence, order))
    for k in range(order + 1):
        size = posterior @ np.abs(np.abs(truth.g - g.bias) + np.abs(g.bias)) ** k
        close(found[:, :, k], posterior @ truth.g**k, size)
    expectation = outputs_last(pair, pair.expectation(evidence))
    close(expectation, posterior @ truth.g, posterior @ np.abs(truth.g - g.bias) + abs(g.bias))


@given(cases())
@many
def test_central_moments(case):
    p, g, evidence = case
    truth = Truth(p, g)
    posterior = truth.posterior(evidence)
    mean = posterior @ truth.g
    pair = Pair(p, g)
    found = outputs_last(pair, pair.moments(evidence, 6, central=True))
    for k in range(7):
        deviation = truth.g[None] - mean[:, None]  # (rows, complete rows, outputs)
        true = np.einsum("rc,rco->ro", posterior, deviation**k)
        size = np.einsum("rc,rco->ro", posterior, np.abs(deviation) ** k)
        rounding = (1e-14 * (np.abs(truth.g).max() + np.abs(g.bias).max())) ** k
        close(found[:, :, k], true, size + rounding / 1e-10)
    variance = outputs_last(pair, pair.variance(evidence))
    close(variance, found[:, :, 2], np.abs(variance))
    assert np.all(variance >= 0)


@given(cases())
@many
def test_probabilities_and_range(case):
    p, g, evidence = case
    truth = Truth(p, g)
    weights, posterior = truth.weights(evidence), truth.posterior(evidence)
    pair = Pair(p, g)
    assert pair.log_prob(evidence) == pytest.approx(
        np.log(weights.sum(axis=1)), rel=1e-10, abs=1e-10
    )
    close(pair.support_probability(evidence), posterior @ truth.holds, 1.0)
    low, high = (outputs_last(pair, bound) for bound in pair.range(evidence))
    possible = weights > 0
    for r in range(len(evidence)):
        scale = np.abs(truth.g).max() + np.abs(g.bias).max()
        assert low[r] == pytest.approx(truth.g[possible[r]].min(axis=0), abs=1e-12 * scale)
        assert high[r] == pytest.approx(truth.g[possible[r]].max(axis=0), abs=1e-12 * scale)


@given(cases(), st.lists(st.floats(-30, 30), min_size=1, max_size=20))
@some
def test_characteristic_function(case, frequencies):
    p, g, evidence = case
    truth = Truth(p, g)
    t = np.array(frequencies) / max(1.0, np.abs(truth.g).max())
    true = np.einsum("rc,cot->rot", truth.posterior(evidence), np.exp(1j * truth.g[:, :, None] * t))
    pair = Pair(p, g)
    close(outputs_last(pair, pair.characteristic(evidence, t)), true, 1.0)
    close(outputs_last(pair, pair.characteristic(evidence, t[0])), true[:, :, 0], 1.0)


@given(cases())
@some
def test_prediction_of_complete_rows(case):
    p, g, _ = case
    truth = Truth(p, g)
    found = g(truth.rows)
    scale = np.abs(truth.g - g.bias).max() + np.abs(g.bias).max()
    assert np.allclose(
        found if g.n_outputs > 1 else found[:, None], truth.g, rtol=0, atol=1e-12 * scale
    )


@given(st.integers(0, 2**31), st.integers(1, 700), st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_same_answer_for_any_batch_and_threads(seed, rows, threads):
    rng = np.random.default_rng(seed)
    vtree = Vtree.random(12, seed=seed)
    p = random_probabilistic(vtree, units=4, deterministic=seed % 2 == 0, seed=rng)
    g = random_regression(vtree, units=4, outputs=1 + seed % 2, seed=rng)
    pair = Pair(p, g)
    X = np.where(rng.random((rows, 12)) < 0.5, -1, draw(p, rows, rng))
    with config_context(threads=threads):
        together = pair.moments(X, 3)
    with config_context(threads=1):
        alone = np.concatenate([pair.moments(X[i : i + 1], 3) for i in range(0, rows, 37)])
        cut = np.concatenate([pair.moments(part, 3) for part in np.array_split(X, min(rows, 5))])
    assert np.array_equal(together, cut)
    assert np.array_equal(together[::37], alone)


@pytest.fixture(scope="module", params=[8, 7])
def dense(request):
    """Layers where every node of p sums the same elements: matrix products, with leftovers."""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 2, (60, 1))
    table = np.where(rng.random((60, 5)) < 0.7, x, rng.integers(0, 3, (60, 5)))
    p = LatentTree(states=request.param, random_state=0).fit(table).circuit
    g = random_regression(p.vtree, p.cardinalities, units=5, outputs=2, seed=5)
    pair = Pair(p, g)
    assert pair.plan.pairs.mix_run.max() == request.param // 4 * 4
    return pair


def test_dense_layers(dense):
    rng = np.random.default_rng(6)
    truth = Truth(dense.p, dense.g)
    X = np.where(rng.random((70, 5)) < 0.6, -1, draw(dense.p, 70, rng))
    posterior = truth.posterior(Evidence.rows(X, dense.p.cardinalities))
    size = posterior @ np.abs(truth.g)
    close(dense.expectation(X), posterior @ truth.g, size)
    close(dense.moments(X, 2)[:, :, 2], posterior @ truth.g**2, posterior @ truth.g**2)
    turned = posterior @ np.exp(0.7j * truth.g)
    close(dense.characteristic(X, 0.7), turned, 1.0)
    low, high = dense.range(X)
    for row, found in enumerate(zip(low, high, strict=True)):
        values = truth.g[posterior[row] > 0]
        np.testing.assert_allclose(found, [values.min(axis=0), values.max(axis=0)], atol=1e-12)


def test_dense_layers_for_any_batch_and_threads(dense):
    rng = np.random.default_rng(7)
    X = np.where(rng.random((500, 5)) < 0.5, -1, draw(dense.p, 500, rng))
    with config_context(threads=3):
        together, turned = dense.expectation(X), dense.characteristic(X, [0.3, 2.0])
    for part in (slice(0, 1), slice(3, 80), slice(80, 500)):
        assert np.array_equal(together[part], dense.expectation(X[part]))
        assert np.array_equal(turned[part], dense.characteristic(X[part], [0.3, 2.0]))


def test_rows_that_are_all_alike_or_nearly():
    vtree = Vtree.random(10, seed=3)
    pair = Pair(
        random_probabilistic(vtree, units=4, seed=3), random_regression(vtree, units=4, seed=3)
    )
    rng = np.random.default_rng(3)
    few = np.where(rng.random((7, 10)) < 0.5, -1, rng.integers(0, 2, (7, 10)))
    alone = pair.moments(few, 3)
    kind = rng.integers(0, 7, 500)
    assert np.array_equal(pair.moments(few[kind], 3), alone[kind])
    assert np.array_equal(
        pair.characteristic(few[kind], [0.3, 2.0]), pair.characteristic(few, [0.3, 2.0])[kind]
    )
    soft = Evidence.rows(few, pair.p.cardinalities).likelihood(0, [0.3, 3.0])
    assert np.array_equal(pair.log_prob(soft[kind]), pair.log_prob(soft)[kind])


def test_a_file_with_a_pair_beyond_reason(tmp_path, monkeypatch):
    vtree = Vtree.balanced(4)
    pair = Pair(random_probabilistic(vtree, seed=0), random_regression(vtree, seed=0))
    pair.save(tmp_path / "pair")
    assert repr(Pair.load(tmp_path / "pair")) == repr(pair)
    monkeypatch.setattr("expecta.queries.pair.MAX_CELLS", 10)
    with pytest.raises(FormatError, match="too large"):
        Pair.load(tmp_path / "pair")
    with pytest.raises(DomainError, match="that large"):
        pair.save(tmp_path / "other")


@given(data=st.data(), shift=st.floats(-5, 5))
@some
def test_an_offset_moves_g(data, shift):
    p, g = data.draw(circuit_pairs(most=4))
    moved = RegressionCircuit(g.structure, g.weight, g.bias + shift, link=g.link)
    evidence = data.draw(evidences(p, 4))
    offset = np.full((len(evidence), g.n_outputs), shift)
    for link, method in (
        ("logistic", "spectral"),
        ("tanh", "spectral"),
        ("exp", "spectral"),
        ("logistic", "taylor"),
    ):
        found = Pair(p, g).expected(
            evidence, link, method=method, offset=offset, order=3, on_impossible="nan"
        )
        want = Pair(p, moved).expected(evidence, link, method=method, order=3, on_impossible="nan")
        np.testing.assert_allclose(found.value, want.value, rtol=1e-8, atol=4e-9)


def test_offsets_have_the_shape_of_rows():
    vtree = Vtree.balanced(2)
    pair = Pair(independent(vtree, [[0.5, 0.5]] * 2), linear(vtree, [[0, 1], [0, 2]]))
    alike = pair.expected([[-1, 0], [-1, 1]], offset=[1.0, -1.0]).value  # 1 or 2, either way
    assert alike == pytest.approx([(1 / (1 + np.exp(-1)) + 1 / (1 + np.exp(-2))) / 2] * 2)
    with pytest.raises(ValueError, match="offset has a finite number"):
        pair.expected([[-1, 0]], offset=[1.0, 2.0])


def test_a_circuit_is_merged_once(monkeypatch):
    vtree = Vtree.balanced(6)
    p, g = random_probabilistic(vtree, units=3, seed=0), random_regression(vtree, seed=0)
    asked, merged = [], Structure.merged
    monkeypatch.setattr(
        Structure, "merged", lambda self, *a, **b: (asked.append(self), merged(self, *a, **b))[1]
    )
    pairs = [Pair(p, g.merged()) for _ in range(3)]
    assert sum(structure is p.structure for structure in asked) == 1
    assert pairs[0].p.merged() is pairs[2].p.merged()
    assert g.merged().merged() == g.merged()


def test_nodes_that_cannot_be_equal_are_not_compared():
    vtree = Vtree.balanced(6)
    p, g = random_probabilistic(vtree, units=3, seed=0), linear(vtree, [[0.0, 1.0]] * 6)
    for structure, parameter in ((p.structure, p.log_weight), (g.structure, g.weight)):
        assert not any(structure._alike_nodes(np.array(parameter).reshape(-1, 1).view(np.int64)))
        same, edges = structure.merged(parameter)
        assert same is structure
        assert np.array_equal(edges, np.arange(structure.n_edges))


@given(st.integers(0, 2**31), st.booleans())
@some
def test_merging_is_what_comparing_all_nodes_gives(seed, alike):
    """Against a slow merge of the same circuit: nodes are equal if all below them is."""
    rng = np.random.default_rng(seed)
    vtree = Vtree.random(5, seed=rng)
    p = random_probabilistic(vtree, units=3, seed=rng)
    s = p.structure
    weight = rng.integers(2, size=s.n_edges).astype(float) if alike else rng.random(s.n_edges)
    keep = rng.random(s.n_edges) < (1.0 if rng.random() < 0.5 else 0.9)
    keep[s.edge_start[:-1]] = True
    made, edges = s.merged(weight, keep)
    below: dict[int, object] = {}

    def key(structure, weight, keep, n, known):
        if n not in known:
            parts = range(structure.edge_start[n], structure.edge_start[n + 1])
            known[n] = (
                structure.layer_of_node[n],
                tuple(
                    (
                        weight[e],
                        int(structure.target[e])
                        if structure.edge_at_leaf[e]
                        else tuple(
                            key(structure, weight, keep, int(side[structure.target[e]]), known)
                            for side in (structure.left, structure.right)
                        ),
                    )
                    for e in parts
                    if keep[e]
                ),
            )
        return known[n]

    every = np.ones(made.n_edges, bool)
    root = key(made, weight[edges], every, made.root, below)
    assert root == key(s, weight, keep, s.root, {})
    assert len(below) == made.n_nodes  # the root reaches all of them
    if keep.all():
        assert len(set(below.values())) == made.n_nodes  # and no two are equal
