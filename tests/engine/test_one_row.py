"""A row alone: the kept walk gives what a batch with that row gives, to the last bit."""

from __future__ import annotations

import gc

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from expecta import Evidence, Pair, Vtree, random_probabilistic, random_regression
from expecta.engine import one_row
from strategies import circuit_pairs, evidences


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_row_alone_and_in_a_batch(data):
    p, g = data.draw(circuit_pairs())
    evidence = data.draw(evidences(p))
    pair = Pair(p, g)
    together = evidence[np.repeat(np.arange(len(evidence)), 2)]  # a batch, of two rows at least
    answers = (
        pair.expectation,
        lambda e: pair.moments(e, 2, central=True),
        lambda e: pair.moments(e, 3, central=True),
        p.log_prob,
        lambda e: pair.range(e)[0],
        lambda e: pair.range(e)[1],
        lambda e: pair.expected(e, "exp").value,
        lambda e: pair.support_probability(e),
    )
    for answer in answers:
        alone = [answer(evidence[i : i + 1]) for i in range(len(evidence))]
        assert np.array_equal(np.concatenate(alone), answer(together)[::2], equal_nan=True)


def test_a_row_alone_where_layers_of_p_are_dense():
    """Sums that a batch takes as products of matrices."""
    cards = [3, 2, 4, 3, 2]
    for seed in range(4):
        vtree = Vtree.random(5, seed=seed)
        p = random_probabilistic(vtree, cards, units=6, seed=seed)
        pair = Pair(p, random_regression(vtree, cards, units=3, outputs=1 + seed % 2, seed=seed))
        assert np.any(pair.plan.pairs.mix_run > 1)
        rows = p.sample(4, seed=seed)
        rows[np.random.default_rng(seed).random(rows.shape) < 0.5] = -1
        together = np.repeat(rows, 2, axis=0)
        for answer in (pair.expectation, pair.std):
            alone = np.concatenate([answer(rows[i : i + 1]) for i in range(4)])
            assert np.array_equal(alone, answer(together)[::2])
        # NumPy multiplies complex numbers of a row and of several in different ways
        turned = [pair.characteristic(rows[i : i + 1], 1.5) for i in range(4)]
        expected = pair.characteristic(together, 1.5)[::2]
        np.testing.assert_allclose(np.concatenate(turned), expected, rtol=0, atol=1e-15)


def test_one_row_of_codes_is_the_evidence_of_several():
    cards = [3, 100, 2]
    for row in ([-1, 99, 0], [2, -1, 1], [0, 0, -1], [-1, -1, -1]):
        alone = Evidence.rows(np.array([row]), cards)
        together = Evidence.rows(np.array([row, row]), cards)
        for v in range(3):
            assert np.array_equal(alone.weights(v), together.weights(v)[:1])


def test_what_is_kept_goes_with_its_plan():
    gc.collect()
    before = len(one_row._kept)
    vtree = Vtree.right_linear(3)
    p = random_probabilistic(vtree, [2, 3, 2], units=2, seed=0)
    pair = Pair(p, random_regression(vtree, [2, 3, 2], units=2, seed=0))
    pair.expectation(np.array([[-1, 1, 0]]))
    assert len(one_row._kept) == before + 1
    del pair
    gc.collect()
    assert len(one_row._kept) == before
