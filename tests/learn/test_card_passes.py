"""EM's passes on a card against those here, on a card or on the host's emulation of one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from expecta import LatentTree, config_context
from expecta.common.errors import DeviceError
from expecta.engine.cuda import card_work
from expecta.learn.trees.expectation import TreeRows, expected_counts, log_likelihoods
from expecta.learn.trees.layout import TreeLayout
from expecta.learn.trees.tree import RootedTree
from host_device import HostDevice, LostDevice, need_compiler

STATES = [1, 3, 70]  # at most, at each node: one thread per lane, and several


def _model(seed, n, states, rows, limit=256, zeros=0.0):
    """A random tree of nodes with any number of states, and rows with holes and weights."""
    rng = np.random.default_rng(seed)
    parent = [int(rng.integers(v + 1, n)) for v in range(n - 1)] + [-1]
    tree = RootedTree(rng.permutation(n), np.array(parent))
    cards = rng.integers(1, 5, n).astype(np.int32)
    sizes = np.append(rng.integers(1, states + 1, n - 1), states).astype(np.int32)
    layout = TreeLayout(tree, sizes, cards[tree.variable])
    counts = rng.gamma(0.7, size=layout.size) + 1e-3
    counts[rng.random(layout.size) < zeros] = 0.0
    codes = rng.integers(0, cards, (rows, n)).astype(np.int32)
    codes[rng.random(codes.shape) < 0.2] = -1
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], rows)
    table = TreeRows(tree, cards, codes, weight, limit)
    return layout, layout.normalised(counts), table, np.flatnonzero(rng.random(rows) < 0.5)


def _answers(layout, theta, table, some):
    return (
        log_likelihoods(layout, theta, table),
        expected_counts(layout, theta, table).counts,
        expected_counts(layout, theta, table, some).counts,
        expected_counts(layout, theta, table, some).log_likelihood,
    )


@pytest.mark.parametrize("states", STATES)
def test_passes_are_those_of_the_processor(device, states):
    """Nodes that rows share and others, zeros, holes, weights, parts of the rows, and tiles."""
    for seed, limit in enumerate([2, 4, 256]):
        for memory in (1 << 26, 1 << 16):
            device.memory = memory
            n = [1, 7, 9][(seed + states) % 3]
            model = _model(seed, n, states, 150, limit, zeros=0.2 * (seed == 1))
            here = _answers(*model)
            with config_context(device="cuda"):
                there = _answers(*model)
            for a, b in zip(here, there, strict=True):
                np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-12)


def test_the_order_of_threads_changes_nothing(monkeypatch):
    """Threads between two barriers in the other order: the same bits, so no races."""
    need_compiler()
    model = _model(5, 8, 70, 100, limit=16)
    found = []
    for descending in (False, True):
        host = HostDevice(descending=descending)
        monkeypatch.setattr(card_work, "cuda_device", lambda process, host=host: host)
        with config_context(device="cuda"):
            found.append(_answers(*model))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_nothing_underflows_in_a_long_tree(device):
    n = 200
    tree = RootedTree(np.arange(n), np.append(np.arange(1, n), -1))
    cards = np.full(n, 40, np.int32)
    layout = TreeLayout(tree, np.full(n, 3, np.int32), cards)
    rng = np.random.default_rng(0)
    theta = layout.normalised(rng.gamma(0.5, size=layout.size) + 1e-9)
    table = TreeRows(tree, cards, rng.integers(0, 40, (5, n)).astype(np.int32), np.ones(5), 2)
    here = _answers(layout, theta, table, np.array([1, 3]))
    assert here[0].max() < -760  # no float64 holds such a probability
    for precision, within in (("float64", 1e-11), ("float32", 1e-4)):
        with config_context(device="cuda", precision=precision):
            there = _answers(layout, theta, table, np.array([1, 3]))
        for a, b in zip(here, there, strict=True):
            np.testing.assert_allclose(b, a, rtol=within, atol=within)


def test_float32_is_good_to_four_digits(device):
    model = _model(3, 9, 3, 150, limit=16)
    here = _answers(*model)
    with config_context(device="cuda", precision="float32"):
        there = _answers(*model)
    for a, b in zip(here, there, strict=True):
        assert np.linalg.norm(b - a) <= 1e-5 * np.linalg.norm(a)
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-4)


def test_a_learner_learns_the_same(device):
    """Numbers, categories and holes: clamped states beside others, several starts and sizes."""
    rng = np.random.default_rng(1)
    kind = rng.integers(3, size=40)
    frame = pd.DataFrame({"x": kind + rng.normal(0, 0.3, 40), "y": kind - rng.normal(0, 1, 40)})
    frame["kind"] = np.array(["a", "b", "c"])[kind]
    frame.loc[rng.random(40) < 0.2, "x"] = np.nan
    learner = LatentTree(states=2, restarts=2, max_epochs=3)
    here = learner.fit(frame).score_samples(frame)
    with config_context(device="cuda"):
        there = learner.fit(frame)
    np.testing.assert_allclose(there.score_samples(frame), here, rtol=1e-9)


def test_a_card_that_fails_is_an_error_or_the_processor(monkeypatch):
    need_compiler()
    host = LostDevice()
    monkeypatch.setattr(card_work, "cuda_device", lambda process: host)
    layout, theta, table, _ = _model(0, 7, 3, 50)
    with config_context(device="cuda"), pytest.raises(DeviceError, match="off the bus"):
        expected_counts(layout, theta, table)
    want = expected_counts(layout, theta, table).counts
    with config_context(device="auto"):  # too small to pay: the processor, without a word
        np.testing.assert_array_equal(expected_counts(layout, theta, table).counts, want)
    monkeypatch.setattr("expecta.learn.trees.expectation.step_pays", lambda *given: True)
    with config_context(device="auto"), pytest.warns(RuntimeWarning, match="off the bus"):
        np.testing.assert_array_equal(expected_counts(layout, theta, table).counts, want)
