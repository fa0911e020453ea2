"""Tables that lie on a card: read, checked and answered there, as NumPy's are here."""

from __future__ import annotations

import numpy as np
import pytest

from expecta import (
    Evidence,
    Pair,
    Vtree,
    config_context,
    random_probabilistic,
    random_regression,
)
from expecta.circuits import independent
from expecta.common.errors import DomainError, ImpossibleEvidenceWarning
from expecta.engine.cuda import card_work, cuda_run
from host_device import CardArray, HostDevice, LostDevice, need_compiler


def _pair(seed, outputs=2, coverage=1.0, n=6, card=4):
    rng = np.random.default_rng(seed)
    vtree, cards = Vtree.random(n, seed=seed), np.full(n, card)
    p = random_probabilistic(vtree, cards, units=4, deterministic=bool(seed % 2), seed=rng)
    g = random_regression(vtree, cards, units=3, outputs=outputs, coverage=coverage, seed=rng)
    return Pair(p, g), rng


def _there(device, X):
    """Return a table on the device, and what brings an answer back."""
    if isinstance(device, HostDevice):
        return CardArray(X), lambda answer: answer.array
    return device.cupy.asarray(X), lambda answer: answer.get()


QUESTIONS = {
    "expectation": lambda pair, X: pair.expectation(X),
    "moments": lambda pair, X: pair.moments(X, 3),
    "central": lambda pair, X: pair.moments(X, 4, central=True),
    "variance": lambda pair, X: pair.variance(X),
    "std": lambda pair, X: pair.std(X),
    "support": lambda pair, X: pair.support_probability(X),
    "least": lambda pair, X: pair.range(X)[0],
    "greatest": lambda pair, X: pair.range(X)[1],
    "log_prob": lambda pair, X: pair.log_prob(X),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_answers_lie_where_the_table_does(device, name):
    for seed, outputs in ((0, 1), (1, 2), (2, 1), (3, 2)):
        pair, rng = _pair(seed, outputs, coverage=[1.0, 0.7][seed % 2])
        for rows in (1, 40, 5_000):
            X = np.where(rng.random((rows, 6)) < 0.4, np.nan, rng.integers(0, 4, (rows, 6)))
            there, back = _there(device, X)
            answer = QUESTIONS[name](pair, there)
            assert type(answer) is type(there)
            want = QUESTIONS[name](pair, X)
            np.testing.assert_allclose(back(answer), want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", QUESTIONS)
def test_large_tables_of_numpy_are_read_on_the_card(device, name, monkeypatch):
    """Also in pieces, and by the processor where the card fails."""
    monkeypatch.setattr(cuda_run, "MAX_SENT", 1 << 16)
    pair, rng = _pair(3, coverage=0.7)
    X = np.where(rng.random((6_000, 6)) < 0.4, np.nan, rng.integers(0, 4, (6_000, 6)))
    want = QUESTIONS[name](pair, X)
    monkeypatch.setattr(Evidence, "rows", None)  # which would read it here
    with config_context(device="cuda"):
        answer = QUESTIONS[name](pair, X)
    assert isinstance(answer, np.ndarray)
    np.testing.assert_allclose(answer, want, rtol=1e-10, atol=1e-12)


def test_a_large_table_is_read_here_where_the_card_fails(monkeypatch):
    need_compiler()
    host = LostDevice()
    monkeypatch.setattr(card_work, "cuda_device", lambda process: host)
    monkeypatch.setattr("expecta.engine.cuda.choice.pays", lambda *given: True)
    pair, rng = _pair(3)
    X = rng.integers(0, 4, (6_000, 6))
    with config_context(device="auto"), pytest.warns(RuntimeWarning, match="off the bus"):
        answer = pair.expectation(X)
    np.testing.assert_array_equal(answer, pair.expectation(X))


@pytest.mark.parametrize(
    "kind", ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "u4", "b1", "turned", "every second"]
)
def test_any_numbers_in_any_order_of_memory(device, kind):
    pair, rng = _pair(1)
    X = rng.integers(0, 2, (50, 6))
    if kind in ("turned", "every second") or kind[0] in "fi":
        X[rng.random(X.shape) < 0.4] = -1
    want = pair.expectation(X)
    if kind == "turned":
        X = np.asfortranarray(X)
    elif kind == "every second":
        X = np.repeat(X, 2, axis=0)[::2]
    else:
        X = np.where(X < 0, np.nan, X).astype(kind) if kind[0] == "f" else X.astype(kind)
    there, back = _there(device, X)
    np.testing.assert_allclose(back(pair.expectation(there)), want, rtol=1e-12)


@pytest.mark.parametrize("value", [4.0, -1.0, 0.5, np.inf, -np.inf, 1e300])
def test_a_cell_that_holds_no_value_is_named(device, value):
    pair, rng = _pair(2)
    X = rng.integers(0, 4, (3_000, 6)).astype(float)
    X[2_999, 0] = X[1_234, 3] = value
    there, _ = _there(device, X)
    with pytest.raises(DomainError) as here:
        pair.expectation(X)
    with pytest.raises(DomainError) as problem:
        pair.expectation(there)
    assert str(problem.value) == str(here.value)
    assert "row 1234" in str(problem.value)
    X[value == X] = 0
    there, back = _there(device, X)  # nothing of the error is kept
    np.testing.assert_allclose(back(pair.expectation(there)), pair.expectation(X), rtol=1e-12)


def test_a_table_of_another_shape_or_of_no_numbers_is_refused(device):
    pair, _ = _pair(2)
    for X, says in ((np.zeros((3, 5)), "6 columns"), (np.zeros(6), "6 columns")):
        with pytest.raises(DomainError, match=says):
            pair.expectation(_there(device, X)[0])
    with pytest.raises(DomainError, match="must hold numbers"):
        pair.expectation(_there(device, np.zeros((3, 6), complex))[0])
    with pytest.raises(DomainError, match="take arrays on a card"):
        pair.distribution(_there(device, np.zeros((3, 6)))[0])


def test_no_rows_have_no_answers(device):
    pair, _ = _pair(2)
    there, back = _there(device, np.zeros((0, 6)))
    assert back(pair.expectation(there)).shape == (0, 2)


def test_impossible_rows_are_unknown_and_warned_of(device):
    vtree, cards = Vtree.balanced(2), [2, 2]
    p = independent(vtree, [[1.0, 0.0], [0.5, 0.5]])
    pair = Pair(p, random_regression(vtree, np.array(cards), units=2, seed=0))
    there, back = _there(device, np.array([[0.0, np.nan], [1.0, 0.0]]))
    with pytest.warns(ImpossibleEvidenceWarning, match="1 of 2 rows"):
        answer = back(pair.expectation(there))
    assert np.isfinite(answer[0])
    assert np.isnan(answer[1])


def test_what_would_underflow_goes_again_with_exponents(device):
    n = 1500
    vtree, rng = Vtree.balanced(n), np.random.default_rng(0)
    p = random_probabilistic(vtree, np.full(n, 10), units=1, seed=rng)
    X = rng.integers(0, 10, (40, n))
    there, back = _there(device, X)
    np.testing.assert_allclose(back(p.log_prob(there)), p.log_prob(X), rtol=1e-12)
