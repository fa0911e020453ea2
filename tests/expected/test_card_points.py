"""Sampled means on a card against those here, on a card or on the host's emulation of one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor

from expecta import ExpectedPredictor, LatentTree, Vtree, config_context, random_probabilistic
from expecta.circuits import independent
from expecta.common.errors import DeviceError
from expecta.engine.boxes import BoxExpectation, BoxSum
from expecta.engine.cuda import card_work
from expecta.expected import card_points, quasi_sampling
from expecta.expected.leaf_masks import LeafMasks
from expecta.expected.quasi_sampling import MarginFunction, quasi_means
from expecta.readers.forms import Form
from expecta.readers.model_links import apply_link
from host_device import HostDevice, LostDevice, need_compiler
from leaf_boxes import random_boxes


def _trees(rng, cards, count, outputs):
    """Trees of random cuts over random variables; every fifth has over 64 leaves, a few one."""
    trees = []
    for number in range(count):
        boxes = random_boxes(rng, cards, 90 if number % 5 == 4 else rng.integers(0, 9))
        values = rng.normal(size=(len(boxes), outputs)) * (rng.random(outputs) < 0.6)
        trees.append(list(zip(boxes, values, strict=True)))
    bias, cards = rng.normal(size=outputs), np.asarray(cards)
    boxes, values = zip(*(leaf for leaves in trees for leaf in leaves), strict=True)
    total = BoxSum.of(boxes, np.array(values), cards).plus(bias[None])
    return LeafMasks.of(trees, bias, cards), total


def _rows(rng, cards, count, unknown):
    codes = rng.integers(0, cards, (count, len(cards))).astype(np.int32)
    codes[rng.random(codes.shape) < unknown] = -1
    codes[0], codes[-1] = -1, rng.integers(0, cards)
    return np.unique(codes, axis=0)


def _function(trees, link, outputs, explains=True):
    classes = np.arange(2) if outputs == 2 and len(trees.bias) == 1 else None
    form = Form(None, link, classes)
    return MarginFunction(trees, lambda margin: apply_link(form, margin), explains, trees, link)


def _means(p, codes, trees, link, outputs, samples=500, **options):
    masks, boxes = trees
    function = _function(masks, link, outputs, **options)
    expected = BoxExpectation(p, boxes)(codes)
    scale = np.full(outputs, 0.1)
    return quasi_means(p, codes, expected, function, scale, 1e-3, samples, 7)


def _check(*given, **options):
    here = _means(*given, **options)
    with config_context(device="cuda"):
        there = _means(*given, **options)
    assert np.all(np.isfinite(here.mean))
    assert np.any(here.variance > 0)
    np.testing.assert_array_equal(there.samples, here.samples)
    np.testing.assert_allclose(there.mean, here.mean, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(there.error, here.error, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(there.variance, here.variance, rtol=1e-8, atol=1e-10)
    return there


LINKED = [
    ("identity", 1, 1),
    ("identity", 3, 3),
    ("exp", 2, 2),
    ("logistic", 1, 1),
    ("logistic", 1, 2),
    ("softmax", 3, 3),
    ("one-vs-rest", 1, 2),
    ("one-vs-rest", 3, 3),
]


@pytest.mark.parametrize(("link", "margins", "outputs"), LINKED)
@pytest.mark.parametrize("deterministic", [True, False])
def test_the_same_points_give_the_same_means(device, link, margins, outputs, deterministic):
    seed = 10 * margins + outputs
    rng = np.random.default_rng(seed)
    n = [1, 5, 8][seed % 3]
    cards = rng.integers(1, 7, n)
    vtree = Vtree.random(n, seed=seed)
    p = random_probabilistic(vtree, cards, units=4, seed=rng, deterministic=deterministic)
    trees = _trees(rng, cards, 12, margins)
    codes = _rows(rng, cards, 6, 0.5)
    _check(p, codes, trees, link, outputs, explains=link != "identity")


def test_many_draws_are_divided_and_rows_tiled(device, monkeypatch):
    """Over blocks, and over the turns of one: the same bits."""
    rng = np.random.default_rng(0)
    cards = np.array([4, 3, 5, 2])
    p = random_probabilistic(Vtree.random(4, seed=1), cards, units=3, seed=rng)
    trees, codes = _trees(rng, cards, 7, 1), _rows(rng, cards, 4, 0.6)
    monkeypatch.setattr(card_points, "DRAWS_PER_BLOCK", 40)
    want = _check(p, codes, trees, "logistic", 2)
    monkeypatch.setattr(card_points, "MAX_SUMS", 1)
    monkeypatch.setattr(card_points, "MAX_BLOCKS", 2)
    got = _check(p, codes, trees, "logistic", 2)
    alone = _check(p, codes[:1], trees, "logistic", 2)
    np.testing.assert_array_equal(got.mean, want.mean)
    np.testing.assert_array_equal(alone.mean, want.mean[:1])


def test_the_order_of_threads_changes_nothing(monkeypatch):
    """Threads between two barriers in the other order: the same bits, so no races."""
    need_compiler()
    rng = np.random.default_rng(3)
    cards = rng.integers(2, 6, 6)
    p = random_probabilistic(Vtree.random(6, seed=3), cards, units=5, seed=rng, deterministic=False)
    trees, codes = _trees(rng, cards, 30, 2), _rows(rng, cards, 5, 0.5)
    found = []
    for descending in (False, True):
        host = HostDevice(descending=descending)
        monkeypatch.setattr(card_work, "cuda_device", lambda process, host=host: host)
        with config_context(device="cuda"):
            found.append(_means(p, codes, trees, "exp", 2).mean)
    np.testing.assert_array_equal(*found)


def test_probabilities_that_no_float_holds(device):
    """Rare values on the way up, and in the parameters themselves."""
    rng = np.random.default_rng(0)
    for n, chance in ((40, 1e-60), (4, 1e-200)):
        rare, even = [1 - 2 * chance, chance, chance], [0.4, 0.3, 0.3]
        asked = {0, n // 2, n - 1}
        p = independent(Vtree.balanced(n), [even if v in asked else rare for v in range(n)])
        cards = np.full(n, 3)
        codes = np.full((2, n), 1, np.int32)
        codes[0, [0, n // 2]] = -1
        codes[1, -1] = -1
        _check(p, codes, _trees(rng, cards, 30, 1), "logistic", 1)
    p = random_probabilistic(Vtree.balanced(4), [3] * 4, units=3, seed=0, deterministic=False)
    shrunk = rng.choice([0.0, -150.0, -800.0], len(p.log_weight))
    codes = _rows(rng, p.cardinalities, 8, 0.6)
    p = type(p)(p.structure, p.log_weight + shrunk).normalised()
    _check(p, codes, _trees(rng, [3] * 4, 9, 1), "exp", 1)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4)).round(1)
    X[:, 3] += X[:, 0]
    return pd.DataFrame(X, columns=list("abcd"))


def test_a_wrapped_booster_has_the_same_probabilities(device, frame):
    """Of three classes, and the spread of a forest."""
    y = np.digitize(frame["a"] * frame["b"] + frame["c"], [-0.5, 0.5])
    density = LatentTree(states=3, restarts=1, max_epochs=3)
    model = GradientBoostingClassifier(n_estimators=9, random_state=0).fit(frame, y)
    expected = ExpectedPredictor(model, density, max_samples=200).fit(frame)
    unknown = frame[:6].mask(np.random.default_rng(1).random((6, 4)) < 0.5)
    here = expected.predict_proba(unknown)
    with config_context(device="cuda"):
        np.testing.assert_allclose(expected.predict_proba(unknown), here, rtol=1e-9)
    forest = RandomForestRegressor(20, random_state=0).fit(frame, frame["a"] * frame["b"])
    spread = ExpectedPredictor(forest, density, max_samples=200).fit(frame)
    assert spread.wrapped_.route.margin.square is None  # so that it is sampled
    here = spread.predict(unknown[:2], return_std=True)
    with config_context(device="cuda"):
        there = spread.predict(unknown[:2], return_std=True)
    np.testing.assert_allclose(there, here, rtol=1e-9, atol=1e-12)


def test_a_card_that_fails_is_an_error_or_the_processor(monkeypatch):
    need_compiler()
    host = LostDevice()
    monkeypatch.setattr(card_work, "cuda_device", lambda process: host)
    rng = np.random.default_rng(0)
    p = random_probabilistic(Vtree.random(3, seed=1), [4, 3, 2], units=2, seed=rng)
    trees, codes = _trees(rng, [4, 3, 2], 4, 1), _rows(rng, [4, 3, 2], 4, 0.6)
    given = p, codes, trees, "logistic", 1
    with config_context(device="cuda"), pytest.raises(DeviceError, match="off the bus"):
        _means(*given)
    want = _means(*given).mean
    with config_context(device="auto"):  # too few to pay: the processor, without a word
        np.testing.assert_array_equal(_means(*given).mean, want)
    monkeypatch.setattr(quasi_sampling, "MIN_CARD_WORK", 0)
    with config_context(device="auto"), pytest.warns(RuntimeWarning, match="off the bus"):
        np.testing.assert_array_equal(_means(*given).mean, want)


def test_rooms_that_fit_into_no_memory_are_refused(monkeypatch):
    need_compiler()
    host = HostDevice(1 << 12)
    monkeypatch.setattr(card_work, "cuda_device", lambda process: host)
    rng = np.random.default_rng(0)
    p = random_probabilistic(Vtree.random(3, seed=1), [4, 3, 2], units=2, seed=rng)
    trees, codes = _trees(rng, [4, 3, 2], 4, 1), _rows(rng, [4, 3, 2], 4, 0.6)
    with config_context(device="cuda"), pytest.raises(DeviceError, match="more memory"):
        _means(p, codes, trees, "logistic", 1)
