"""Boosted classifiers: draws by our own kernel, and answers that depend on the row alone."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

from expecta import ChowLiu, ExpectedPredictor, config_context
from expecta.engine.boxes import BoxSum
from expecta.expected import quasi_sampling
from expecta.expected.leaf_masks import LeafMasks
from expecta.expected.quasi_sampling import MarginFunction, quasi_means
from leaf_boxes import random_boxes


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 6, n).astype(float)
    b = np.round(a + rng.normal(size=n))
    c = rng.normal(size=n).round(1)
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "d": rng.integers(0, 4, n).astype(float)})
    return frame, a * c + b - (frame["d"] > 1) * b


def with_unknowns(frame, seed=1, share=0.5):
    rng = np.random.default_rng(seed)
    return frame.mask(rng.random(frame.shape) < share)


@pytest.fixture(scope="module")
def classifier():
    frame, y = table()
    model = GradientBoostingClassifier(n_estimators=60, random_state=0)
    model.fit(frame, np.digitize(y, np.quantile(y, [0.3, 0.7])))
    return ExpectedPredictor(model, ChowLiu()).fit(frame), frame


@st.composite
def random_trees(draw):
    """Random trees over few values, each by the boxes of its leaves; some have over 64."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    cards = rng.integers(1, 30, rng.integers(1, 5))
    outputs = int(rng.integers(1, 4))
    trees = []
    for _ in range(rng.integers(1, 6)):
        boxes = random_boxes(rng, cards, rng.integers(0, 90))
        values = rng.normal(size=(len(boxes), outputs)) * (rng.random(outputs) < 0.7)
        trees.append(list(zip(boxes, values, strict=True)))
    codes = np.stack([rng.integers(0, card, 40) for card in cards], axis=1)
    return trees, rng.normal(size=outputs), cards, codes


@given(random_trees(), st.integers(1, 50))
def test_masks_find_the_leaf_of_every_tree(case, per_block):
    trees, bias, cards, codes = case
    codes[: len(codes) // 2, 0] = codes[0, 0]  # what a block agrees on
    expected = np.repeat(bias[None], len(codes), axis=0)
    for leaves in trees:
        values = np.array([value for _, value in leaves])
        expected += BoxSum.of([box for box, _ in leaves], values, cards)(codes)
    masks = LeafMasks.of(trees, bias, cards)
    np.testing.assert_allclose(masks(codes, per_block), expected, rtol=1e-10, atol=1e-12)


def test_masks_agree_with_a_model_of_large_trees():
    frame, y = table(2000)
    model = DecisionTreeRegressor(random_state=0).fit(frame, y)
    wrapped = ExpectedPredictor(model, ChowLiu()).fit(frame).wrapped_
    margin = wrapped.route.margin
    assert max(np.bincount(margin.masks.output)) > 1  # several words to a tree
    rows = wrapped.rows(frame)
    np.testing.assert_allclose(margin.of_values(rows.codes, 7)[:, 0], model.predict(frame))


def test_a_row_has_one_answer_whatever_else_is_asked(classifier):
    expected, frame = classifier
    some = with_unknowns(frame[:60])
    proba = expected.predict_proba(some)
    order = np.random.default_rng(0).permutation(60)
    np.testing.assert_array_equal(expected.predict_proba(some.iloc[order]), proba[order])
    for row in range(5):
        np.testing.assert_array_equal(expected.predict_proba(some.iloc[[row]])[0], proba[row])
    twice = pd.concat([some[:3], some[:3]])
    np.testing.assert_array_equal(expected.predict_proba(twice), proba[[0, 1, 2, 0, 1, 2]])
    with config_context(threads=1):
        np.testing.assert_array_equal(expected.predict_proba(some), proba)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


@pytest.mark.parametrize("collide", [False, True])
def test_equal_rows_are_found_though_keys_collide(monkeypatch, collide):
    if collide:
        monkeypatch.setattr(quasi_sampling, "row_keys", lambda codes, seed: codes[:, 0] % 2)
    codes = np.random.default_rng(0).integers(-1, 3, (50, 3))
    rows, which = quasi_sampling.distinct_rows(codes)
    assert len(rows) == len(np.unique(codes, axis=0)) < 50
    np.testing.assert_array_equal(rows[which], codes)


def test_seeds_draw_other_points(classifier):
    expected, frame = classifier
    wrapped = expected.wrapped_
    codes = wrapped.rows(with_unknowns(frame[:10], share=0.7)).codes
    wrapped._random_state = 1
    other = wrapped._quasi_sampled(codes, True, False)
    wrapped._random_state = 0
    mine = wrapped._quasi_sampled(codes, True, False)
    assert not np.array_equal(mine.mean, other.mean)
    assert np.all(np.abs(mine.mean - other.mean) <= 6 * np.hypot(mine.error, other.error))


def test_the_model_is_not_asked_about_samples(classifier):
    expected, frame = classifier
    wrapped = expected.wrapped_
    before = wrapped._ask_model
    some = with_unknowns(frame[:8])
    some = some[some.isna().any(axis=1)]
    proba = expected.predict_proba(some)
    wrapped._ask_model = None
    np.testing.assert_array_equal(expected.predict_proba(some), proba)
    wrapped._ask_model = before


@pytest.mark.parametrize("explains", [True, False])
@pytest.mark.parametrize("max_samples", [1, 40, 300, 10_000])
def test_errors_are_those_that_are_made(explains, max_samples):
    """Against the exact answer, of few enough trees."""
    frame, y = table()
    model = GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=0)
    model.fit(frame, y > np.median(y))
    expected = ExpectedPredictor(model, ChowLiu()).fit(frame)
    wrapped = expected.wrapped_
    margin = wrapped.route.margin
    assert margin.is_small
    codes = np.unique(wrapped.rows(with_unknowns(frame, share=0.6)).codes, axis=0)
    codes = codes[(codes < 0).any(axis=1)]
    exact = margin.response(wrapped.route.form, codes, 0.0, 1e-9)[0]
    sampled = quasi_means(
        wrapped.density.circuit,
        codes,
        margin.mean(codes),
        MarginFunction(margin.of_values, wrapped.respond, explains),
        wrapped.scale,
        0.01,
        max_samples,
        0,
    )
    z = (sampled.mean - exact) / sampled.error
    assert np.all(np.abs(z) < 6)
    assert np.sqrt(np.mean(z**2)) < 1.2
    assert np.all(sampled.samples <= max(max_samples, 4))
    if max_samples == 10_000:
        assert np.all(sampled.error <= 0.0101 * np.maximum(exact, wrapped.scale))
        variance = margin.variance(wrapped.route.form, codes, 0.0)
        np.testing.assert_allclose(np.sqrt(sampled.variance), np.sqrt(variance), atol=0.05)


def test_spreads_of_many_trees_have_enough_samples():
    frame, y = table()
    model = GradientBoostingRegressor(n_estimators=100, random_state=0).fit(frame, y)
    expected = ExpectedPredictor(model, ChowLiu(), rtol=0.5).fit(frame)
    some = with_unknowns(frame[:20])
    mean, std = expected.predict(some, return_std=True)
    wrapped = expected.wrapped_
    codes = wrapped.rows(some).codes
    drawn = wrapped.density.circuit.sample(20_000, given=codes, seed=5)
    values = wrapped.route.margin.of_values(drawn.reshape(-1, 4), 20_000).reshape(20, -1)
    np.testing.assert_allclose(std, values.std(axis=1), rtol=0.1, atol=1e-6)
    np.testing.assert_allclose(mean, values.mean(axis=1), atol=6 * values.std() / 140)
