"""Sums of boxes on a card against those here, on a card or on the host's emulation of one."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from expecta import ChowLiu, ExpectedPredictor, Vtree, config_context, random_probabilistic
from expecta.circuits import independent
from expecta.common.errors import DeviceError
from expecta.engine.boxes import BoxExpectation, BoxSum, card_boxes, runs
from expecta.engine.cuda import card_work
from host_device import HostDevice, LostDevice, need_compiler


def _boxes(rng, cards, count, asked, outputs):
    """Boxes that ask of some variables each: runs of values with gaps, and some of them equal."""
    sets = [[runs(rng.random(card) < 0.7) for _ in range(3)] for card in cards]
    sets = [[some for some in mine if some] for mine in sets]
    boxes = [
        {
            int(v): sets[v][rng.integers(len(sets[v]))]
            for v in rng.choice(len(cards), rng.integers(asked + 1), replace=False)
            if sets[v]
        }
        for _ in range(count)
    ]
    return BoxSum.of(boxes, rng.normal(size=(count, outputs)), np.array(cards))


def _sum(seed, n=7, count=60, units=5, **options):
    rng = np.random.default_rng(seed)
    vtree = Vtree.right_linear(n) if seed % 3 == 0 else Vtree.random(n, seed=seed)
    cards = rng.integers(1, 6, n)
    p = random_probabilistic(vtree, cards, units=units, seed=rng, **options)
    return p, _boxes(rng, cards, count, min(n, 4), 1 + seed % 3), rng


def _rows(rng, cards, count, unknown):
    codes = rng.integers(0, cards, (count, len(cards))).astype(np.int32)
    codes[rng.random(codes.shape) < unknown] = -1
    codes[0], codes[-1] = -1, rng.integers(0, cards)
    return codes


def _check(device, p, boxes, codes):
    here = BoxExpectation(p, boxes)(codes)
    with config_context(device="cuda"):
        there = BoxExpectation(p, boxes)(codes)
    scale = np.abs(boxes.value).sum(axis=0)
    np.testing.assert_array_equal(np.isnan(there), np.isnan(here))
    assert (np.abs(there - here) <= 1e-13 * scale + 1e-12 * np.abs(here))[~np.isnan(here)].all()
    return there


@pytest.mark.parametrize("deterministic", [True, False])
def test_boxes_of_random_circuits(device, deterministic):
    for seed in range(8):
        p, boxes, rng = _sum(seed, deterministic=deterministic)
        _check(device, p, boxes, _rows(rng, p.cardinalities, 20, [0.2, 0.5, 0.8][seed % 3]))


def test_rows_that_need_more_memory_go_again(device, monkeypatch):
    """And rows in tiles: the same bits."""
    p, boxes, rng = _sum(4, count=1500, units=3, deterministic=False)
    codes = _rows(rng, p.cardinalities, 9, 0.5)
    want = _check(device, p, boxes, codes)
    device.memory = 1 << 22
    monkeypatch.setattr(card_boxes, "MAX_TILE", 4)
    launched = []
    launch = type(device).launch

    def counted(self, kernel, grid, arguments):
        launched.append(grid)
        launch(self, kernel, grid, arguments)

    monkeypatch.setattr(type(device), "launch", counted)
    np.testing.assert_array_equal(_check(device, p, boxes, codes), want)
    assert len(launched) > 3  # tiles of four rows


def test_the_order_of_threads_changes_nothing(monkeypatch):
    """Threads between two barriers in the other order: the same bits, so no races."""
    need_compiler()
    p, boxes, rng = _sum(1, n=9, count=300)
    codes = _rows(rng, p.cardinalities, 12, 0.5)
    found = []
    for descending in (False, True):
        host = HostDevice(descending=descending)
        monkeypatch.setattr(card_work, "cuda_device", lambda process, host=host: host)
        with config_context(device="cuda"):
            found.append(BoxExpectation(p, boxes)(codes))
    np.testing.assert_array_equal(*found)


def test_small_probabilities_are_scaled_and_impossible_rows_are_nan(device):
    n, chance = 400, 1e-200
    p = independent(Vtree.balanced(n), [[1 - chance, chance, 0.0]] * n)
    no, yes = (0, 1), (1, 2)
    boxes = BoxSum.of([{0: yes, n - 1: yes}, {5: no}], np.array([[1.0], [10.0]]), p.cardinalities)
    codes = np.ones((3, n), np.int32)
    codes[0, [0, 5, n - 1]] = -1
    codes[2, 3] = 2
    found = _check(device, p, boxes, codes)
    np.testing.assert_allclose(found[:2, 0], [10 * (1 - chance), 1.0], rtol=1e-10)
    assert np.isnan(found[2, 0])


@pytest.mark.parametrize("halves", [16, 64])
@pytest.mark.parametrize("deterministic", [True, False])
def test_what_does_not_fit_into_shared_memory_is_elsewhere(
    device, monkeypatch, deterministic, halves
):
    """Hash tables of many boxes, and the products of wide layers."""
    monkeypatch.setattr(card_boxes, "NEAR", 32)
    monkeypatch.setattr(card_boxes, "HALVES", halves)
    p, boxes, rng = _sum(4, deterministic=deterministic)
    assert np.diff(p.structure.element_start).max() > halves / 16
    assert 2 * boxes.n_boxes > 32
    _check(device, p, boxes, _rows(rng, p.cardinalities, 20, 0.5))


def test_a_wrapped_forest_predicts_the_same(device):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)).round(1)
    forest = RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, X[:, 0] * X[:, 1])
    predictor = ExpectedPredictor(forest, density=ChowLiu()).fit(X)
    X[rng.random(X.shape) < 0.4] = np.nan
    here = predictor.predict(X)
    with config_context(device="cuda"):
        np.testing.assert_allclose(predictor.predict(X), here, rtol=1e-11)


def test_a_card_that_fails_is_an_error_or_the_processor(monkeypatch):
    need_compiler()
    host = LostDevice()
    monkeypatch.setattr(card_work, "cuda_device", lambda process: host)
    p, boxes, rng = _sum(1)
    codes = _rows(rng, p.cardinalities, 9, 0.5)
    with config_context(device="cuda"), pytest.raises(DeviceError, match="off the bus"):
        BoxExpectation(p, boxes)(codes)
    want = BoxExpectation(p, boxes)(codes)
    with config_context(device="auto"):  # too few to pay: the processor, without a word
        np.testing.assert_array_equal(BoxExpectation(p, boxes)(codes), want)
    monkeypatch.setattr("expecta.engine.boxes.box_expectation.MIN_CARD_BOXES", 0)
    with config_context(device="auto"), pytest.warns(RuntimeWarning, match="off the bus"):
        np.testing.assert_array_equal(BoxExpectation(p, boxes)(codes), want)


def test_boxes_that_fit_into_no_memory_are_refused(monkeypatch):
    need_compiler()
    host = HostDevice(1 << 12)
    monkeypatch.setattr(card_work, "cuda_device", lambda process: host)
    p, boxes, rng = _sum(4, count=1500)
    with config_context(device="cuda"), pytest.raises(DeviceError, match="more memory"):
        BoxExpectation(p, boxes)(_rows(rng, p.cardinalities, 9, 0.5))
