"""What happens at the edges: bad input, impossible rows, nothing known, very many variables."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from expecta import (
    Evidence,
    Pair,
    ProbabilisticCircuit,
    RegressionCircuit,
    Vtree,
    config_context,
    random_probabilistic,
    random_regression,
)
from expecta.circuits import independent, leaf, linear, literal, node
from expecta.common.errors import (
    DomainError,
    ImpossibleEvidenceError,
    ImpossibleEvidenceWarning,
    PropertyError,
    StructureError,
    VtreeMismatchError,
)


@pytest.fixture(scope="module")
def pair():
    vtree = Vtree.balanced(3)
    p = independent(vtree, [[0.5, 0.5], [0.2, 0.3, 0.5], [1.0, 0.0]])
    return Pair(p, linear(vtree, [[0, 1], [0, 10, 20], [0, 100]], bias=5))


# -- input in the caller's terms --------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([0, 1, 0], r"two dimensions, not 1: for one row pass \[row\]"),
        ([[0, 1]], "2 columns, the circuit 3 variables"),
        ([[0, 3, 0]], r"row 0 has 3 for variable 1, which takes the values 0 \.\. 2"),
        ([[0, 1, 0], [0, 0.5, 0]], r"row 1 has 0\.5 for variable 1"),
        ([[0, -2, 0]], "row 0 has -2 for variable 1"),
        ([[0.0, -1.0, np.nan]], "-1 means unknown only among integers"),
        ([[0, np.inf, 0]], "row 0 has inf"),
        ([["a", "b", "c"]], "must hold numbers"),
        ([[0, "x", None]], "row 0 has 'x' for variable 1"),
        ([[0j, 1j, 0j]], "must hold numbers"),
    ],
)
def test_bad_rows(pair, X, message):
    with pytest.raises(DomainError, match=message):
        pair.expectation(np.array(X, dtype=object) if "x" in np.ravel(X) else X)


def test_every_way_to_say_unknown(pair):
    pandas = type("NAType", (), {})()
    ways = [
        np.array([[1, -1, 0]], np.int8),
        np.array([[1, np.nan, 0]]),
        np.array([[1, np.nan, 0]], np.float32),
        np.array([[1, None, 0]], object),
        np.array([[1, pandas, 0]], object),
        Evidence.unknown([2, 3, 2]).known(0, 1).known(2, 0),
    ]
    assert {float(pair.expectation(X)[0]) for X in ways} == {19.0}


def test_booleans_and_unsigned_are_values():
    vtree = Vtree.balanced(2)
    g = linear(vtree, [[0, 1], [0, 10]])
    assert g(np.array([[True, False]])).tolist() == [1.0]
    assert g(np.array([[0, 1]], np.uint8)).tolist() == [10.0]


def test_empty_table(pair):
    nothing = np.empty((0, 3))
    assert pair.expectation(nothing).shape == (0,)
    assert pair.moments(nothing, 4).shape == (0, 5)
    assert pair.variance(nothing).shape == (0,)
    assert pair.characteristic(nothing, [1.0, 2.0]).shape == (0, 2)
    assert pair.expected(nothing).value.shape == (0,)
    assert [bound.shape for bound in pair.range(nothing)] == [(0,), (0,)]
    assert pair.g(nothing).shape == (0,)


def test_impossible_rows(pair):
    X = [[0, 0, 1], [0, 0, 0], [1, 1, 1]]
    with pytest.warns(ImpossibleEvidenceWarning, match="2 of 3 rows have probability zero") as seen:
        found = pair.expectation(X)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert np.isnan(found).tolist() == [True, False, True]
    for call in (
        lambda **k: pair.moments(X, 2, **k)[:, 1],
        lambda **k: pair.moments(X, 2, central=True, **k)[:, 2],
        lambda **k: pair.variance(X, **k),
        lambda **k: pair.std(X, **k),
        lambda **k: pair.support_probability(X, **k),
        lambda **k: pair.range(X, **k)[0],
        lambda **k: pair.characteristic(X, 1.0, **k),
        lambda **k: pair.expected(X, **k).value,
        lambda **k: pair.expected(X, method="taylor", **k).value,
        lambda **k: pair.distribution(X, **k).cdf(0.0),
    ):
        with pytest.warns(ImpossibleEvidenceWarning, match="2 of 3"):
            assert np.isnan(call()).tolist() == [True, False, True]
        with pytest.raises(ImpossibleEvidenceError, match="the first is row 0"):
            call(on_impossible="raise")
    assert pair.log_prob(X).tolist()[0] == -np.inf
    with pytest.raises(ValueError, match='"nan" or "raise"'):
        pair.expectation(X, on_impossible="ignore")


def test_an_empty_set_is_impossible(pair):
    evidence = Evidence.unknown(pair.p.cardinalities).among(1, [])
    with pytest.warns(ImpossibleEvidenceWarning, match="1 of 1 row has"):
        assert np.isnan(pair.expectation(evidence)).all()


def test_predictions_need_complete_rows(pair):
    with pytest.raises(DomainError, match=r"row 1 does not say what variable 1 is.*expectation"):
        pair.g([[0, 0, 0], [0, -1, 0]])


def test_evidence_about_other_variables(pair):
    with pytest.raises(DomainError, match=r"\(2, 2\) values, the circuit about .* \(2, 3, 2\)"):
        pair.expectation(Evidence.unknown([2, 2]))
    with pytest.raises(DomainError, match="no variable 7"):
        Evidence.unknown([2, 2]).known(7, 0)
    with pytest.raises(DomainError, match=r"0 \.\. 1"):
        Evidence.unknown([2, 2]).known(0, 2)
    with pytest.raises(DomainError, match="empty"):
        Evidence.unknown([2, 5]).between(1, 3, 2)
    with pytest.raises(DomainError, match="shape"):
        Evidence.unknown([2, 5]).likelihood(1, [1, 2])
    with pytest.raises(DomainError, match=">= 0"):
        Evidence.unknown([2, 5]).likelihood(0, [1, -2])
    with pytest.raises(DomainError, match="3 facts for 2 rows"):
        Evidence.unknown([2, 5], rows=2).known(0, [0, 1, 0])


# -- circuits that do not qualify -------------------------------------------------------


def test_different_vtrees_are_sharp_p_hard():
    p = random_probabilistic(Vtree.right_linear(4), seed=0)
    g = random_regression(Vtree.balanced(4), seed=0)
    with pytest.raises(VtreeMismatchError, match=r"#P-hard.*p\.sample"):
        Pair(p, g)
    with pytest.raises(VtreeMismatchError, match="how many values"):
        Pair(
            random_probabilistic(Vtree.balanced(2), [2, 3], seed=0),
            random_regression(Vtree.balanced(2), [3, 2], seed=0),
        )


def test_a_function_must_be_deterministic():
    vtree = Vtree.from_nested((0, 1))
    both = node((1.0, leaf(0, [1, 1]), literal(1, 0)), (2.0, literal(0, 0), leaf(1, [0, 0])))
    g = RegressionCircuit.build(vtree, both)
    assert not g.properties.deterministic
    p = independent(vtree, [[0.5, 0.5]] * 2)
    message = r"deterministic circuit, and in this one node 4 .*vtree node 2, variables 0, 1"
    with pytest.raises(PropertyError, match=message):
        Pair(p, g)
    with pytest.raises(PropertyError, match=message):
        g([[0, 0]])


def test_a_distribution_must_be_normalised():
    vtree = Vtree.from_nested((0, 1))
    p = independent(vtree, [[0.5, 0.4], [2.0, 1.0]])
    with pytest.raises(PropertyError, match=r"sum to .*call \.normalised\(\)"):
        Pair(p, linear(vtree, [[0, 1], [0, 1]]))
    with pytest.raises(PropertyError, match="not a distribution"):
        p.log_prob([[0, 0]])
    found = np.exp(p.normalised().log_prob([[0, 0]]))
    assert found[0] == pytest.approx(5 / 9 * 2 / 3)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        (node((1.0, literal(1, 0), literal(0, 0))), "not decomposable"),
        (node((1.0, literal(0, 0), node((1.0, literal(1, 0), literal(2, 0))))), "single variable"),
        (literal(0, 0), "not decomposable"),
        (node((1.0, literal(0, 5), literal(1, 0))), r"outside 0 \.\. 1"),
        (node(), "at least one edge"),
        (node((1.0, leaf(0, [None, None]), literal(1, 0))), "at least one edge"),
        (node((-1.0, literal(0, 0), literal(1, 0))), "numbers >= 0"),
        (node((0.0, literal(0, 0), literal(1, 0))), "only zero weights"),
        (node((float("nan"), literal(0, 0), literal(1, 0))), "numbers >= 0"),
    ],
)
def test_formulas_that_are_no_circuit(formula, message):
    with pytest.raises(StructureError, match=message):
        ProbabilisticCircuit.build(Vtree.from_nested((0, 1)), formula, [2, 2])


@pytest.mark.parametrize("nested", [(0, (1, 1)), (0, 2), (0, 1, 2), (0, "a"), (), (0, True)])
def test_trees_that_are_no_vtree(nested):
    with pytest.raises(StructureError):
        Vtree.from_nested(nested)


def test_circuits_cannot_be_changed(pair):
    for array in (
        pair.p.log_weight,
        pair.g.weight,
        pair.g.bias,
        pair.p.structure.left,
        pair.p.vtree.left,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


# -- many variables ---------------------------------------------------------------------


def chain(n, seed=0):
    """A Markov chain over n Boolean variables as a circuit over a right-linear vtree."""
    rng = np.random.default_rng(seed)
    first, moves = rng.dirichlet([2, 2]), rng.dirichlet([2, 2], (n, 2))
    # node k at a suffix is the distribution of the suffix given that its predecessor is k
    suffix = [leaf(n - 1, list(moves[n - 1][k])) for k in range(2)]
    for v in range(n - 2, 0, -1):
        suffix = [
            node(*((moves[v][k][x], literal(v, x), suffix[x]) for x in range(2))) for k in range(2)
        ]
    root = node(*((first[x], literal(0, x), suffix[x]) for x in range(2)))
    return ProbabilisticCircuit.build(Vtree.right_linear(n), root), first, moves


def forward_backward(first, moves, X):
    """log p(X) and the posterior P(x_v = 1 | X), by the textbook recursion."""
    n = X.shape[1]
    seen = np.where(X[..., None] < 0, 1.0, X[..., None] == np.arange(2))  # (rows, n, 2)
    ahead, back = np.zeros(seen.shape), np.ones(seen.shape)
    log = np.zeros(len(X))
    for v in range(n):
        ahead[:, v] = (first if v == 0 else ahead[:, v - 1] @ moves[v]) * seen[:, v]
        total = ahead[:, v].sum(axis=1, keepdims=True)
        log += np.log(total[:, 0])
        ahead[:, v] /= total
    for v in range(n - 2, -1, -1):
        back[:, v] = (back[:, v + 1] * seen[:, v + 1]) @ moves[v + 1].T
        back[:, v] /= back[:, v].sum(axis=1, keepdims=True)
    posterior = ahead * back
    return log, posterior[..., 1] / posterior.sum(axis=2)


def test_ten_thousand_variables():
    n = 10_000
    p, first, moves = chain(n)
    rng = np.random.default_rng(1)
    weights = rng.normal(size=n)
    g = linear(p.vtree, [[0.0, w] for w in weights], bias=3.0)
    full = rng.integers(0, 2, (4, n))
    X = np.concatenate(
        [full, np.where(rng.random(full.shape) < 0.5, -1, full), -np.ones((1, n), int)]
    )
    pair = Pair(p, g)
    log, posterior = forward_backward(first, moves, X)
    assert log.min() < -5000  # far below what a float holds
    assert pair.log_prob(X) == pytest.approx(log, rel=1e-10, abs=1e-9)
    mean = 3.0 + posterior @ weights
    assert pair.expectation(X) == pytest.approx(mean, rel=1e-10)
    assert pair.expectation(full) == pytest.approx(g(full), rel=1e-10)
    assert np.all(pair.variance(full) == 0)
    # variance of the unconditional sum, from the chain's covariances
    variance = pair.variance(X[-1:])
    assert variance[0] == pytest.approx(chain_variance(first, moves, weights), rel=1e-9)
    low, high = pair.range(X)
    known = np.where(X == 1, weights, 0.0).sum(axis=1)
    free = np.where(X < 0, weights, 0.0)
    assert low == pytest.approx(3.0 + known + np.minimum(free, 0).sum(axis=1), rel=1e-10)
    assert high == pytest.approx(3.0 + known + np.maximum(free, 0).sum(axis=1), rel=1e-10)


def chain_variance(first, moves, weights):
    """Var of Σ w_v x_v: E and E[·²] of the partial sums, jointly with the last state."""
    mass, one, two = first.copy(), first * [0, weights[0]], first * [0, weights[0] ** 2]
    for v in range(1, len(weights)):
        mass, one, two = mass @ moves[v], one @ moves[v], two @ moves[v]
        w = np.array([0, weights[v]])
        centre = one.sum()  # keep the sums centred: no cancellation
        two = two - 2 * centre * one + centre**2 * mass
        one = one - centre * mass
        two = two + 2 * w * one + w**2 * mass
        one = one + w * mass
        # moments are now about `centre`; forget it, variance does not mind a shift
    return two.sum() - one.sum() ** 2


@pytest.mark.parametrize("log_tiny", [-200.0, -800.0, -3000.0])
def test_tiny_weights_do_not_underflow(log_tiny):
    """Only the branch of weight exp(log_tiny) is possible once variable 0 is known."""
    vtree = Vtree.right_linear(4)
    rest = node((1.0, leaf(1, [0.25, 0.75]), node((1.0, leaf(2, [0.5, 0.5]), leaf(3, [0.5, 0.5])))))
    built = ProbabilisticCircuit.build(
        vtree, node((0.5, literal(0, 0), rest), (0.5, literal(0, 1), rest))
    )
    log_weight = built.log_weight.copy()
    log_weight[-2:] = [log_tiny, 0.0]
    p = ProbabilisticCircuit(built.structure, log_weight)
    pair = Pair(p, linear(vtree, [[3, 0], [0, 1], [0, 0], [0, 0]]))
    X = [[0, -1, -1, -1], [0, 1, 0, 1], [-1, -1, -1, -1]]
    assert pair.log_prob(X) == pytest.approx(
        [log_tiny, log_tiny + np.log(0.75 / 4), 0.0], rel=1e-12
    )
    assert pair.expectation(X) == pytest.approx([3.75, 4.0, 0.75], rel=1e-12)
    assert pair.variance(X) == pytest.approx([0.1875, 0.0, 0.1875], rel=1e-12)
    assert pair.characteristic(X, 0.7)[0] == pytest.approx(
        0.25 * np.exp(0.7j * 3) + 0.75 * np.exp(0.7j * 4), rel=1e-12
    )
    low, high = pair.range(X)
    assert low.tolist() == [3, 4, 0]
    assert high.tolist() == [4, 4, 4]


def test_soft_evidence_of_any_size():
    vtree = Vtree.balanced(3)
    pair = Pair(independent(vtree, [[0.5, 0.5]] * 3), linear(vtree, [[0, 1]] * 3))
    for scale in (1e-300, 1.0, 1e300):
        evidence = Evidence.unknown([2] * 3).likelihood(0, [scale, 3 * scale])
        assert pair.expectation(evidence)[0] == pytest.approx(0.75 + 1.0, rel=1e-12)
        assert pair.log_prob(evidence)[0] == pytest.approx(np.log(scale) + np.log(2), rel=1e-12)


# -- how it runs ------------------------------------------------------------------------


def test_one_pair_in_several_threads():
    vtree = Vtree.random(20, seed=0)
    pair = Pair(
        random_probabilistic(vtree, units=6, seed=0), random_regression(vtree, units=5, seed=0)
    )
    rng = np.random.default_rng(0)
    tables = [
        np.where(rng.random((400, 20)) < 0.5, -1, rng.integers(0, 2, (400, 20))) for _ in range(8)
    ]
    alone = [pair.moments(X, 2) for X in tables]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda X: pair.moments(X, 2), tables))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


def test_progress_bar_appears_only_on_request(capsys, monkeypatch, pair):
    clock = iter(range(0, 10_000, 5))
    monkeypatch.setattr("expecta.common.progress.time.monotonic", lambda: next(clock))
    pair.expectation([[0, 0, 0]])
    assert capsys.readouterr().out == ""
    shown = []
    monkeypatch.setattr("rich.progress.Progress.start", lambda self: shown.append(self))
    with config_context(progress=True):
        pair.expectation([[0, 0, 0], [0, 1, 0]])
    assert len(shown) == 1


def test_import_is_light():
    heavy = ["numba", "scipy", "matplotlib", "torch", "fastapi", "rich", "sklearn", "pandas"]
    code = f"import sys, expecta; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_import_is_fast():
    code = (
        "import time, numpy; start = time.perf_counter(); import expecta; "
        "print(time.perf_counter() - start)"
    )
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)
        for _ in range(5)
    ]
    assert min(times) < 0.3
