"""Sums of boxes: against enumeration on random circuits, and where numbers are small."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expecta import ProbabilisticCircuit, Vtree, config_context, random_probabilistic
from expecta.circuits import independent, leaf
from expecta.engine.boxes import BoxExpectation, BoxSum, box_layout, runs
from strategies import circuit_pairs
from truth import complete_rows, probability


@st.composite
def sums(draw, cardinalities, most=12, outputs=2):
    boxes, values = [], []
    number = st.floats(-3, 3, allow_nan=False)
    for _ in range(draw(st.integers(0, most))):
        box = {}
        for variable, card in enumerate(cardinalities.tolist()):
            if draw(st.booleans()):
                allowed = np.array(draw(st.lists(st.booleans(), min_size=card, max_size=card)))
                if allowed.any():
                    box[variable] = runs(allowed)
        boxes.append(box)
        values.append(draw(st.lists(number, min_size=outputs, max_size=outputs)))
    return BoxSum.of(boxes, np.array(values).reshape(-1, outputs), cardinalities)


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_expectations_agree_with_enumeration(data):
    p, _ = data.draw(circuit_pairs())
    boxes = data.draw(sums(p.cardinalities))
    every = complete_rows(p.cardinalities)
    chance = np.array([probability(p, x) for x in every])
    value = boxes(every)
    rows = np.array(
        data.draw(
            st.lists(
                st.tuples(*(st.integers(-1, card - 1) for card in p.cardinalities.tolist())),
                min_size=1,
                max_size=6,
            )
        ),
        np.int32,
    )
    limit = data.draw(st.sampled_from([0, box_layout.MAX_LISTED_PARTS]))
    with patch.object(box_layout, "MAX_LISTED_PARTS", limit):
        found = BoxExpectation(p, boxes)(rows)
    for row, answer in zip(rows, found, strict=True):
        fits = np.all((every == row) | (row < 0), axis=1)
        total = chance[fits].sum()
        if total == 0:
            assert np.isnan(answer).all()
        else:
            obvious = chance[fits] @ value[fits] / total
            scale = np.abs(boxes.value).sum() + 1e-300
            np.testing.assert_allclose(answer, obvious, rtol=1e-10, atol=1e-13 * scale)


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_moments_about_the_mean(data):
    """Those of boxes that do not overlap, whatever is added to all values."""
    p, _ = data.draw(circuit_pairs(most=4))
    every = complete_rows(p.cardinalities)
    chance = np.array([probability(p, x) for x in every])
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    value = rng.integers(-9, 9, (len(every), 2)) / 8 + data.draw(st.sampled_from([0, 2.0**40]))
    cards = p.cardinalities.tolist()
    cells = [{v: (int(x[v]), int(x[v]) + 1) for v in range(len(cards))} for x in every]
    partition = BoxExpectation(p, BoxSum.of(cells, value, p.cardinalities))
    row = np.array([data.draw(st.integers(-1, card - 1)) for card in cards], np.int32)
    found = partition.mean_and_central(row[None], 4)[0]
    fits = np.all((every == row) | (row < 0), axis=1)
    if chance[fits].sum() == 0:
        assert np.isnan(found).all()
        return
    weight = chance[fits] / chance[fits].sum()
    gap = value[fits] - value[fits][0]
    gap -= weight @ gap
    assert found[:, 0].tolist() == [1.0, 1.0]
    np.testing.assert_allclose(found[:, 1], weight @ value[fits], rtol=1e-12, atol=1e-12)
    for k in range(2, 5):
        np.testing.assert_allclose(found[:, k], weight @ gap**k, rtol=1e-9, atol=1e-12)
    assert np.array_equal(partition.variance(row[None])[0], found[:, 2])


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_products_and_sums_of_boxes(data):
    p, _ = data.draw(circuit_pairs(most=4))
    one, two = data.draw(sums(p.cardinalities, 5)), data.draw(sums(p.cardinalities, 5))
    every = complete_rows(p.cardinalities)
    product = one.times(two, 10_000)
    np.testing.assert_allclose(product(every), one(every) * two(every), atol=1e-12)
    np.testing.assert_allclose(one.joined(two)(every), one(every) + two(every), atol=1e-12)
    np.testing.assert_allclose(one.plus(np.ones((1, 2)))(every), one(every) + 1, atol=1e-12)
    if product.n_boxes:
        assert one.times(two, product.n_boxes - 1) is None


def test_the_same_for_any_number_of_threads_and_rows():
    rng = np.random.default_rng(0)
    p = independent(Vtree.balanced(5), [[0.2, 0.3, 0.5]] * 5)
    boxes = BoxSum.of(
        [
            {int(v): runs(rng.random(3) < 0.7) for v in rng.choice(5, 3, replace=False)}
            for _ in range(50)
        ],
        rng.normal(size=(50, 1)),
        p.cardinalities,
    )
    codes = rng.integers(-1, 3, (300, 5)).astype(np.int32)
    with config_context(threads=1):
        alone = BoxExpectation(p, boxes)(codes)
    with config_context(threads=4):
        np.testing.assert_array_equal(BoxExpectation(p, boxes)(codes), alone)
    parts = [BoxExpectation(p, boxes)(codes[i : i + 7]) for i in range(0, 300, 7)]
    np.testing.assert_array_equal(np.concatenate(parts), alone)


def test_one_variable():
    p = ProbabilisticCircuit.build(Vtree.balanced(1), leaf(0, [0.2, 0.3, 0.5]))
    boxes = BoxSum.of([{0: (0, 1, 2, 3)}, {}], np.array([[10.0], [1.0]]), p.cardinalities)
    np.testing.assert_allclose(
        BoxExpectation(p, boxes)(np.array([[-1], [1], [2]])), [[8], [1], [11]]
    )


@pytest.mark.parametrize("chance", [0.5, 1e-200])
def test_ten_thousand_variables(chance):
    n = 10_000
    p = independent(Vtree.balanced(n), [[1 - chance, chance]] * n)
    no, yes = (0, 1), (1, 2)
    boxes = BoxSum.of([{0: yes, n - 1: yes}, {5: no}], np.array([[1.0], [10.0]]), p.cardinalities)
    codes = np.ones((2, n), np.int32)
    codes[0, [0, 5, n - 1]] = -1
    found = BoxExpectation(p, boxes)(codes)
    np.testing.assert_allclose(found[:, 0], [chance**2 + 10 * (1 - chance), 1.0], rtol=1e-10)


def test_many_parts():
    """So many pairs of halves that they are told apart by hashing."""
    rng = np.random.default_rng(0)
    vtree = Vtree.right_linear(4)
    p = random_probabilistic(vtree, [12] * 4, seed=0)
    boxes = BoxSum.of(
        [{v: runs(rng.random(12) < 0.6) for v in range(4)} for _ in range(400)],
        rng.normal(size=(400, 1)),
        p.cardinalities,
    )
    every = complete_rows(p.cardinalities)
    chance, value = np.exp(p.log_prob(every)), boxes(every)
    codes = np.array([[-1, -1, -1, 3], [-1, -1, 5, -1], [2, -1, -1, 7], [-1, 4, -1, -1]], np.int32)
    found = BoxExpectation(p, boxes)(codes)
    for row, answer in zip(codes, found, strict=True):
        fits = np.all((every == row) | (row < 0), axis=1)
        obvious = chance[fits] @ value[fits] / chance[fits].sum()
        np.testing.assert_allclose(answer, obvious, rtol=1e-10)
