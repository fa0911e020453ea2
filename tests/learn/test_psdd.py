"""PSDDs: whatever data they grow on, they stay deterministic, and their counts stay right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expecta import PSDD, ProbabilisticCircuit, Vtree, random_probabilistic
from expecta.circuits.constructions import independent
from expecta.common.errors import DomainError, PropertyError
from expecta.learn.psdd import fit_parameters, learn_psdd
from expecta.learn.psdd.fit_psdd import counted, distinct, routed
from expecta.learn.psdd.greedy_search import GreedySearch
from expecta.learn.psdd.growing_circuit import GrowingCircuit, edges_of
from expecta.learn.psdd.smoothing import export, log_likelihoods, set_pull
from expecta.learn.psdd.split_and_clone import Operations, SplitEdge
from strategies import vtrees
from truth import complete_rows, probability


def factorised(vtree, cards):
    return independent(vtree, [np.full(c, 1 / c) for c in cards])


@st.composite
def problems(draw, most=6, unknown=False):
    """A deterministic circuit to start from, rows with dependencies, and weights."""
    vtree = draw(vtrees(most))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    cards = rng.integers(1, 6, vtree.n_variables)
    while np.prod(cards) > 800:
        cards[np.argmax(cards)] -= 1
    start = factorised(vtree, cards)
    if draw(st.booleans()):
        start = random_probabilistic(vtree, cards, units=3, deterministic=True, seed=rng)
    centres = rng.integers(0, cards, (3, len(cards)))
    n = draw(st.sampled_from([1, 2, 30, 120]))
    rows = centres[rng.integers(0, 3, n)]
    rows = np.where(rng.random(rows.shape) < 0.2, rng.integers(0, cards, rows.shape), rows)
    keep = np.isfinite(start.log_prob(rows))
    if not np.any(keep):
        start, keep = factorised(vtree, cards), np.ones(n, bool)
    rows = rows[keep]
    if unknown:
        rows = np.where(rng.random(rows.shape) < 0.25, -1, rows)
    weight = rng.choice([0.5, 1.0, 2.5], len(rows)) if draw(st.booleans()) else np.ones(len(rows))
    return start, rows, weight, rng


def allows(s, row, without):
    """Whether a structure still allows a complete row when one of its edges is taken away."""
    true = np.zeros(s.n_nodes, bool)
    for n in range(s.n_nodes):
        variable = s.vtree.variable[s.layer_of_node[n]]
        for e in range(s.edge_start[n], s.edge_start[n + 1]):
            if e != without:
                t = s.target[e]
                hot = row[variable] == t if variable >= 0 else true[s.left[t]] and true[s.right[t]]
                true[n] |= hot
    return true[s.root]


def state_of(start, rows, weight, held=None, pseudo_count=0.0, pull=0.0):
    cards = start.structure.cardinalities
    rows, weight = distinct(rows, weight, cards)
    held, held_weight = distinct(rows[:0] if held is None else held, None, cards)
    edge_at = routed(start.structure, np.concatenate([rows, held]))
    return GrowingCircuit(
        start.structure, rows, weight, held, held_weight, edge_at, pseudo_count, pull
    )


def check(p, start):
    assert p.properties.deterministic
    assert p.properties.normalised
    assert p.structure.vtree == start.structure.vtree
    assert np.array_equal(p.structure.cardinalities, start.structure.cardinalities)


def check_counts(state):
    """Every count and every list of the state, against the circuit routed from scratch."""
    nodes, rows, literals = state.nodes, state.rows, int(state.literal_start[-1])
    circuit, _ = export(state)
    s, codes = circuit.structure, rows.codes.T.astype(int)
    flow = counted(s, codes, rows.weight)
    held = counted(s, codes, rows.held)
    alive = state.alive()
    alive = alive[np.argsort(nodes.layer[alive], kind="stable")]
    edges = np.concatenate([edges_of(nodes, int(n)) for n in alive])
    assert np.allclose(nodes.flow[edges], flow)
    assert np.allclose(nodes.held[edges], held)
    assert np.array_equal(edges[routed(s, codes)], rows.edge_at)
    inner = nodes.right[edges] >= 0
    children = np.concatenate([nodes.left[edges[inner]], nodes.right[edges[inner]], [state.root]])
    assert np.array_equal(np.bincount(children, minlength=state.n_nodes)[alive], nodes.refs[alive])
    for n in alive[alive >= literals]:
        reached = np.flatnonzero(nodes.owner[rows.edge_at[nodes.layer[n]]] == n)
        assert np.array_equal(np.sort(state.rows_of(int(n))), reached)
    assert state.live_edges() == np.sum(nodes.size[alive[alive >= literals]])


@settings(max_examples=400)
@given(problems(), st.sampled_from([0.01, 0.3, 2.0]))
def test_every_operation_does_what_its_plan_says(problem, price):
    start, rows, weight, rng = problem
    held = rows[rng.random(len(rows)) < 0.3]
    state = state_of(start, rows, weight, held)
    search = GreedySearch(state, price)
    before, edges = log_likelihoods(state).best, state.live_edges()
    for _ in range(25):
        outcome = search.step()
        if outcome is None:
            break
        after = log_likelihoods(state).best
        assert after - before == pytest.approx(outcome.gain, abs=1e-8)
        assert state.live_edges() - edges == outcome.cost
        assert outcome.gain >= -1e-9  # training rows never become less likely
        assert outcome.gain > price * outcome.cost
        before, edges = after, state.live_edges()
    check_counts(state)
    p, _ = export(state)
    check(p, start)
    total = np.sum(weight * p.log_prob(rows))
    assert total == pytest.approx(log_likelihoods(state).best, abs=1e-7)


@settings(max_examples=60)
@given(problems(), st.sampled_from([0.0, 0.7]))
def test_any_split_at_all_keeps_the_circuit_right(problem, price):
    start, rows, weight, rng = problem
    state = state_of(start, rows, weight, pseudo_count=1.0, pull=2.0)
    do = Operations(state)
    for _ in range(12):
        variable = int(rng.integers(len(state.tree.cards)))
        low, high = np.sort(rng.integers(0, state.tree.cards[variable] + 1, 2)).tolist()
        leaf = state.tree.leaf_of[variable]
        v = int(state.nodes.layer[rng.choice(state.alive())])
        if state.tree.variable[v] >= 0 or not v - state.tree.size[v] < leaf <= v:
            continue
        edge = int(state.rows.edge_at[v, rng.integers(len(state.rows.weight))])
        before = log_likelihoods(state).best
        outcome, done = do.perform(SplitEdge(edge, variable, low, high), price, -np.inf)
        if done:
            assert log_likelihoods(state).best - before == pytest.approx(outcome.gain, abs=1e-8)
    check_counts(state)
    check(export(state)[0], start)


@settings(max_examples=40)
@given(problems())
def test_the_best_split_is_the_best_of_all(problem):
    start, rows, weight, _ = problem
    state = state_of(start, rows, weight)
    do = Operations(state)
    v = len(state.vtree) - 1
    if state.tree.variable[v] >= 0:
        return
    edge = int(state.rows.edge_at[v, 0])
    outcome, what = do.best_split(edge, 0.0)
    for variable, card in enumerate(state.tree.cards):
        for value in range(card):
            exact, _ = do.perform(SplitEdge(edge, variable, value, value + 1), 0.0, np.inf)
            if len(state.alive()) == len(state.vtree):  # nothing shared: estimates are exact
                assert exact.gain <= outcome.gain + 1e-8
    if what is not None and start.structure.n_elements == len(state.vtree) // 2:
        assert do.perform(what, 0.0, np.inf)[0].gain == pytest.approx(outcome.gain)


@settings(max_examples=60)
@given(problems(), st.booleans())
def test_result_is_a_deterministic_distribution(problem, with_valid):
    start, rows, weight, rng = problem
    valid = rows[rng.random(len(rows)) < 0.4] if with_valid else None
    found = learn_psdd(start, rows, weight=weight, valid=valid, last_price=0.1)
    check(found.circuit, start)
    everything = complete_rows(found.circuit.structure.cardinalities)
    assert np.exp(found.circuit.log_prob(everything)).sum() == pytest.approx(1.0)
    assert np.all(np.isfinite(found.circuit.log_prob(rows)))
    if with_valid and len(valid):
        best = max(step.valid for step in found.history)
        assert found.circuit.log_prob(valid).mean() == pytest.approx(best)


@settings(max_examples=40)
@given(problems())
def test_weights_are_repeated_rows(problem):
    start, rows, _, rng = problem
    times = rng.integers(0, 4, len(rows))
    times[0] = 2
    repeated = np.repeat(rows, times, axis=0)
    weight = times.astype(float)
    once = learn_psdd(start, rows, weight=weight, valid=rows, valid_weight=weight, last_price=0.2)
    again = learn_psdd(start, repeated, valid=repeated, last_price=0.2)
    assert once.circuit == again.circuit
    assert np.allclose(once.history, again.history, equal_nan=True)


@settings(max_examples=60)
@given(problems(), st.sampled_from([0.0, 1.0, 3.0]))
def test_fitted_parameters_are_relative_frequencies(problem, pseudo_count):
    start, rows, weight, _ = problem
    p = fit_parameters(start, rows, weight, pseudo_count)
    s = p.structure
    check(p, start)
    # a row follows an edge where the circuit without it no longer allows the row
    flow = np.zeros(s.n_edges)
    for row, w in zip(rows, weight, strict=True):
        for k in range(s.n_edges):
            flow[k] += w * (not allows(s, row, without=k))
    size = np.diff(s.edge_start)[s.node_of_edge]
    total = np.bincount(s.node_of_edge, flow)[s.node_of_edge]
    if pseudo_count == 0:
        expected = flow[total > 0] / total[total > 0]
    else:
        expected = (flow + pseudo_count / size) / (total + pseudo_count)
    known = total + pseudo_count > 0
    assert np.allclose(np.exp(p.log_weight)[known], expected)


@settings(max_examples=60)
@given(problems(unknown=True))
def test_em_climbs_and_unknown_cells_are_summed_out(problem):
    start, rows, weight, _ = problem
    before = -np.inf
    for iterations in (1, 2, 4, 8):
        p = fit_parameters(start, rows, weight, 0.0, max_iterations=iterations, tolerance=0.0)
        now = np.sum(weight * p.log_prob(rows))
        assert now >= before - 1e-7
        before = now
    everything = complete_rows(p.structure.cardinalities)
    truth = np.array([probability(p, x) for x in everything])
    agree = (rows[:, None, :] == everything) | (rows[:, None, :] == -1)
    expected = np.all(agree, axis=2) @ truth
    assert np.allclose(np.exp(p.log_prob(rows)), expected)


@settings(max_examples=12)
@given(problems(unknown=True))
def test_rows_with_unknown_cells(problem):
    start, rows, weight, _ = problem
    found = learn_psdd(start, rows, weight=weight, valid=rows, last_price=0.5, seed=3)
    check(found.circuit, start)
    assert np.all(np.isfinite(found.circuit.log_prob(rows)))
    again = learn_psdd(start, rows, weight=weight, valid=rows, last_price=0.5, seed=3)
    assert np.allclose(found.circuit.log_prob(rows), again.circuit.log_prob(rows))


def mixture(n, seed, cards=(2, 2, 3, 5, 2, 4)):
    rng = np.random.default_rng(seed)
    tables = [rng.dirichlet(np.full(c, 0.3), 3) for c in cards]
    z = rng.integers(0, 3, n)
    return np.stack([[rng.choice(len(t[k]), p=t[k]) for k in z] for t in tables], axis=1)


def test_unknown_cells_cost_little():
    rows = mixture(1500, 0)
    rng = np.random.default_rng(1)
    start = factorised(Vtree.balanced(6), [2, 2, 3, 5, 2, 4])
    train, valid, test = rows[:600], rows[600:900], rows[900:]
    holes = np.where(rng.random(train.shape) < 0.2, -1, train)
    hidden = np.where(rng.random(valid.shape) < 0.2, -1, valid)
    score = [
        fitted.log_prob(test).mean()
        for fitted in (
            fit_parameters(start, train),
            learn_psdd(start, holes, valid=hidden, seed=0).circuit,
            learn_psdd(start, train, valid=valid).circuit,
        )
    ]
    assert score[2] > score[0] + 0.8
    assert score[1] > score[2] - 0.1


def test_history_and_report_go_together():
    rows = mixture(400, 5)
    start = factorised(Vtree.balanced(6), [2, 2, 3, 5, 2, 4])
    seen = []
    found = learn_psdd(start, rows[:300], valid=rows[300:], report=lambda *what: seen.append(what))
    assert [(step.edges, step.valid) for step in found.history] == [what[1:] for what in seen]
    assert [what[0] for what in seen] == sorted(what[0] for what in seen)
    assert found.history[-1].edges > found.history[0].edges == start.structure.n_edges


def test_bounds_on_size_and_time():
    rows = mixture(400, 5)
    start = factorised(Vtree.balanced(6), [2, 2, 3, 5, 2, 4])
    free = learn_psdd(start, rows, last_price=0.1)
    small = learn_psdd(start, rows, last_price=0.1, max_edges=40)
    assert free.history[-1].edges > 40
    assert max(step.edges for step in small.history) <= 40
    none = learn_psdd(start, rows, max_seconds=0.0).circuit
    assert np.allclose(none.log_prob(rows), fit_parameters(start, rows).log_prob(rows))


def test_pull_can_be_changed_and_changed_back():
    state = state_of(
        factorised(Vtree.balanced(6), [2, 2, 3, 5, 2, 4]), mixture(300, 2), None, None, 1.0, 4.0
    )
    search = GreedySearch(state, 0.5)
    while search.step() is not None:
        pass
    prior = state.nodes.prior[: state.n_edges].copy()
    set_pull(state, 30.0)
    other = log_likelihoods(state)
    assert not np.allclose(prior, state.nodes.prior[: state.n_edges])
    fresh = state.snapshot()
    set_pull(fresh, 4.0)
    assert np.allclose(prior, fresh.nodes.prior[: state.n_edges])
    set_pull(fresh, 30.0)
    assert log_likelihoods(fresh) == pytest.approx(other)


def test_a_constant_column_a_single_variable_and_one_row():
    constant = np.stack([np.zeros(50, int), np.arange(50) % 2], axis=1)
    p = learn_psdd(factorised(Vtree.balanced(2), [1, 2]), constant).circuit
    assert np.exp(p.log_prob([[0, 1]])) == pytest.approx(0.5)
    p = learn_psdd(factorised(Vtree.balanced(2), [3, 2]), constant, pseudo_count=0.0).circuit
    assert np.exp(p.log_prob([[0, 1]])) == pytest.approx(0.5)
    p = learn_psdd(factorised(Vtree.balanced(1), [3]), np.array([[2], [2], [0]])).circuit
    assert np.exp(p.log_prob([[2]])) == pytest.approx((2 + 1 / 3) / 4)
    p = learn_psdd(factorised(Vtree.balanced(3), [2, 2, 2]), np.array([[1, 0, 1]])).circuit
    assert np.exp(p.log_prob([[1, 0, 1]])) == pytest.approx(0.75**3)
    p = learn_psdd(factorised(Vtree.balanced(2), [2, 2]), np.array([[-1, -1]])).circuit
    assert np.exp(p.log_prob([[1, 0]])) == pytest.approx(0.25, abs=0.02)


def test_what_is_refused():
    start = factorised(Vtree.balanced(2), [2, 2])
    rows = np.array([[0, 1]])
    with pytest.raises(DomainError, match="variable 1 takes the values"):
        learn_psdd(start, np.array([[0, 2]]))
    with pytest.raises(DomainError, match="integers of shape"):
        learn_psdd(start, np.array([[0.5, 1.0]]))
    with pytest.raises(DomainError, match="weight has"):
        learn_psdd(start, rows, weight=np.array([-1.0]))
    with pytest.raises(DomainError, match="at least one row"):
        learn_psdd(start, rows[:0])
    with pytest.raises(ValueError, match="prices fall"):
        learn_psdd(start, rows, first_price=1.0, last_price=2.0)
    with pytest.raises(ValueError, match="pseudo_count"):
        fit_parameters(start, rows, pseudo_count=-1.0)
    with pytest.raises(DomainError, match="impossible"):
        learn_psdd(independent(Vtree.balanced(2), [[1.0, 0.0], [0.5, 0.5]]), np.array([[1, 1]]))
    mixed = random_probabilistic(Vtree.balanced(2), [2, 2], units=3, seed=0)
    assert isinstance(mixed, ProbabilisticCircuit)
    assert not mixed.properties.deterministic
    with pytest.raises(PropertyError, match="deterministic"):
        learn_psdd(mixed, rows)


@pytest.mark.parametrize(
    ("name", "mark"), [("insurance", -10.70), ("delta-ailerons", -9.60), ("abalone", -9.63)]
)
def test_the_papers_tables_from_scratch(data, name, mark):
    table = np.load(data / "splits" / f"{name}.npz")
    train, valid, test = (table[f"x_{part}"].astype(int) for part in ("train", "valid", "test"))
    start = factorised(Vtree.balanced(train.shape[1]), [2] * train.shape[1])
    p = learn_psdd(start, train, valid=valid).circuit
    assert p.properties.deterministic
    assert p.log_prob(test).mean() > mark


def test_a_vtree_of_ones_own_is_used_whatever_the_start():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(200, 5)).astype(np.int32)
    vtree = Vtree.random(5, seed=3)
    density = PSDD(vtree=vtree).fit(X)
    assert density.circuit.vtree == vtree
    assert "independent" in density.learned_.how
