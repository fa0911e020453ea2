"""The walk on a card against the walk here: every algebra, every kind of evidence.

Without a card the card's kernels are compiled by the host's compiler and run thread by thread; with
one (``pytest -m gpu``) the same checks run on it.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd
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
from expecta.common.errors import DeviceError
from expecta.engine.algebras import (
    Expectation,
    Exponential,
    Extremes,
    Moments,
    Spectrum,
    constants,
)
from expecta.engine.cuda import card_work, cuda_run
from expecta.engine.cuda.choice import pays
from expecta.engine.cuda.pair_layout import PairLayout
from expecta.engine.plan import Plan
from expecta.engine.run import run_each
from host_device import HostDevice, LostDevice, need_compiler

ALGEBRAS = {
    "expectation": lambda phi: (Expectation(2), constants(Expectation(2), phi)),
    "probability": lambda phi: (Expectation(0), constants(Expectation(0), phi)),
    "variance": lambda phi: (Moments(2, 2), constants(Moments(2, 2), phi)),
    "moments": lambda phi: (Moments(4, 2), constants(Moments(4, 2), phi)),
    "spectrum": lambda phi: (
        Spectrum(10),
        constants(Spectrum(10), phi, np.array([0.1, -1.0, 2.5, 7.0, 40.0])),
    ),
    "exponential": lambda phi: (
        Exponential(4),
        constants(Exponential(4), phi, np.array([0.7, -300.0])),
    ),
    "extremes": lambda phi: (Extremes(2), constants(Extremes(2), phi)),
}


def _pair(seed, most=9, **units):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, most))
    kind = rng.integers(3)
    vtree = Vtree.right_linear(n) if kind == 0 else Vtree.random(n, seed=seed, balanced=kind == 1)
    cards = rng.integers(1, 5, n)
    p = random_probabilistic(
        vtree,
        cards,
        units=units.get("p", int(rng.integers(1, 9))),
        deterministic=bool(rng.integers(2)),
        seed=rng,
    )
    coverage = [1.0, 0.7][rng.integers(2)]
    units_g = int(rng.integers(1, 6))
    g = random_regression(vtree, cards, units=units_g, outputs=2, coverage=coverage, seed=rng)
    return p, g, rng


def _evidence(p, rng, rows):
    """Known, unknown, sets and likelihoods from 1e-300 to 1e300."""
    cards = p.cardinalities
    X = np.where(rng.random((rows, len(cards))) < 0.5, -1, rng.integers(0, 120, len(cards)) % cards)
    evidence = Evidence.rows(X, cards)
    v = int(rng.integers(len(cards)))
    kind = rng.integers(4)
    if kind == 1:
        evidence = evidence.among(v, {int(rng.integers(cards[v])), 0})
    elif kind == 2:
        evidence = evidence.likelihood(v, rng.random((rows, int(cards[v]))))
    elif kind == 3:
        evidence = evidence.likelihood(v, 10.0 ** rng.uniform(-140, 140, (rows, int(cards[v]))))
    return evidence


def _agree(here, there, moments, within):
    """Whether two roots agree, relative to the greatest number of each kind in a row."""
    possible = here.q > 0
    np.testing.assert_array_equal(there.q > 0, possible)
    np.testing.assert_allclose(there.exponent[possible], here.exponent[possible], atol=0)
    np.testing.assert_allclose(there.q, here.q, rtol=within, atol=0)
    assert there.state.shape == here.state.shape
    if len(here.state):
        if moments:  # of what cannot be, means say nothing
            possible = here.state[0] > 0
        a, b = here.state[:, possible], there.state[:, possible]
        size = np.abs(np.where(np.isfinite(a), a, 0.0)).max(axis=0, initial=0.0)
        with np.errstate(invalid="ignore"):  # infinite minus infinite: equal
            assert ((a == b) | (np.abs(a - b) <= within * size)).all()


@pytest.mark.parametrize("name", ALGEBRAS)
def test_every_algebra_on_random_pairs(device, name):
    for seed in range(12):
        p, g, rng = _pair(seed)
        evidence = _evidence(p, rng, [1, 40][seed % 2])
        plan = Plan.of(p, g)
        algebra, table = ALGEBRAS[name](g.weight)
        other = ALGEBRAS[name](0.5 * g.weight)[1]
        tables = [lambda t=table: t, lambda t=other: t]
        here = run_each(plan, algebra, tables, evidence)
        with config_context(device="cuda"):
            there = run_each(plan, algebra, tables, evidence)
        for a, b in zip(here, there, strict=True):
            _agree(a, b, isinstance(algebra, Moments), 1e-12)
            np.testing.assert_array_equal(a.log_scale, b.log_scale)


def _known(evidence, v, card, rows, rng):
    return evidence


def _sets(evidence, v, card, rows, rng):
    return evidence.among(v, set(rng.integers(0, card, 2).tolist()))


def _intervals(evidence, v, card, rows, rng):
    low, high = np.sort(rng.integers(-1, card + 1, 2))
    return evidence.between(v, min(int(low), card - 1), max(int(high), 0))


def _weights(evidence, v, card, rows, rng):
    return evidence.likelihood(v, rng.random((min(rows, 50), card))[np.arange(rows) % 50])


@pytest.mark.parametrize("dense", [False, True], ids=["sparse", "dense"])
@pytest.mark.parametrize("facts", [_known, _sets, _intervals, _weights])
@pytest.mark.parametrize("name", ALGEBRAS)
def test_every_algebra_with_every_kind_of_evidence(device, name, facts, dense):
    """On a card 672 circuits, and batches from one row to thousands."""
    sizes = [3] if isinstance(device, HostDevice) else [1, 2, 31, 33, 700, 5_000] * 2
    for seed, rows in enumerate(sizes):
        rng = np.random.default_rng(100 + seed)
        n = int(rng.integers(3, 10))
        vtree, cards = Vtree.random(n, seed=seed, balanced=bool(seed % 2)), rng.integers(1, 6, n)
        units = 10 if dense else int(rng.integers(2, 6))
        p = random_probabilistic(vtree, cards, units=units, deterministic=not dense, seed=rng)
        g = random_regression(vtree, cards, units=2, outputs=2, coverage=0.9, seed=rng)
        X = np.where(rng.random((rows, n)) < 0.4, -1, rng.integers(0, 99, (rows, n)) % cards)
        evidence = Evidence.rows(X, cards)
        for v in rng.choice(n, 2, replace=False).tolist():
            evidence = facts(evidence, v, int(cards[v]), rows, rng)
        plan = Plan.of(p, g)
        algebra, table = ALGEBRAS[name](g.weight)
        here = run_each(plan, algebra, [lambda t=table: t], evidence)[0]
        with config_context(device="cuda"):
            there = run_each(plan, algebra, [lambda t=table: t], evidence)[0]
        _agree(here, there, isinstance(algebra, Moments), 1e-12)


def test_many_rows_come_in_tiles(device):
    """Some in memory that the processor writes while the device computes."""
    p, g, rng = _pair(5)
    emulated = isinstance(device, HostDevice)  # thread by thread: a million rows would take hours
    for rows in (5_000,) if emulated else (5_000, 1_000_000):
        evidence = _evidence(p, rng, rows)
        for name in ("expectation", "variance"):
            algebra, table = ALGEBRAS[name](g.weight)
            plan = Plan.of(p, g)
            here = run_each(plan, algebra, [lambda t=table: t], evidence)[0]
            with config_context(device="cuda"):
                there = run_each(plan, algebra, [lambda t=table: t], evidence)[0]
            _agree(here, there, name == "variance", 1e-12)


def test_tables_grow_with_use_as_far_as_memory_goes(device, monkeypatch):
    """Few rows have small tables, until the same question was asked of many."""
    small, large = 9, 1 << 16
    monkeypatch.setattr(cuda_run, "TABLES", ((100, large), (0, small)))
    monkeypatch.setattr(cuda_run, "MANY_REUSED", 10)
    p, g, rng = _pair(2)
    algebra, first = ALGEBRAS["expectation"](g.weight)

    def ask(plan: Plan, table: np.ndarray) -> set[int]:
        X = rng.integers(-1, p.cardinalities, (4, p.n_variables))
        evidence = Evidence.rows(X, p.cardinalities)
        here = run_each(plan, algebra, [lambda: table], evidence)[0]
        with config_context(device="cuda"):
            there = run_each(plan, algebra, [lambda: table], evidence)[0]
        _agree(here, there, False, 1e-12)
        ((_, walks),) = cuda_run._kept[plan].values()
        return {lanes for lanes, walk in walks.items() if walk}

    plan = Plan.of(p, g)
    assert [ask(plan, first) for _ in range(5)] == [{small}] * 3 + [{small, large}] * 2
    for k in range(4):  # ever new constants, so that tables are made for each call
        ask(plan, first * (k + 2))
        ((reuse, _),) = cuda_run._kept[plan].values()
        assert reuse.rows == 4
    monkeypatch.setattr(device, "memory", 1 << 12)
    plan = Plan.of(p, g)
    assert [ask(plan, first) for _ in range(5)] == [{small}] * 5


def test_tables_of_dense_circuits_stay_small(device, monkeypatch):
    monkeypatch.setattr(cuda_run, "TABLES", ((100, 1 << 16), (0, 9)))
    monkeypatch.setattr(cuda_run, "MANY_REUSED", 10)
    p, g, _ = _pair(5)  # with runs
    algebra, table = ALGEBRAS["expectation"](g.weight)
    plan, evidence = Plan.of(p, g), Evidence.rows(np.full((20, p.n_variables), -1), p.cardinalities)
    with config_context(device="cuda"):
        for _ in range(3):
            run_each(plan, algebra, [lambda: table], evidence)
    ((_, walks),) = cuda_run._kept[plan].values()
    assert list(walks) == [9]


@pytest.mark.parametrize("model", ["insurance", "abalone", "mnist"])
def test_the_authors_circuits(device, data, model):
    base = data / "circuits" / model
    vtree = Vtree.load(base / f"{model}.vtree")
    p = ProbabilisticCircuit.load(base / f"{model}.psdd", vtree)
    g = RegressionCircuit.load(base / f"{model}.glc", vtree)
    plan, rng = Plan.of(p, g), np.random.default_rng(0)
    X = np.load(data / "splits" / f"{model}.npz")["x_test"].astype(int)
    X = X[: 2 if isinstance(device, HostDevice) else 600]
    evidence = Evidence.rows(np.where(rng.random(X.shape) < 0.2, -1, X), p.cardinalities)
    for algebra in (Expectation(g.n_outputs), Moments(2, g.n_outputs), Extremes(g.n_outputs)):
        table = constants(algebra, g.weight)
        here = run_each(plan, algebra, [lambda t=table: t], evidence)[0]
        with config_context(device="cuda"):
            there = run_each(plan, algebra, [lambda t=table: t], evidence)[0]
        _agree(here, there, isinstance(algebra, Moments), 1e-12)


def test_dense_layers_are_summed_in_runs(device):
    """A latent tree: pairs share halves, so these are summed first."""
    rng = np.random.default_rng(3)
    vtree = Vtree.balanced(6)
    cards = np.full(6, 3)
    p = random_probabilistic(vtree, cards, units=12, deterministic=False, seed=rng)
    g = random_regression(vtree, cards, units=2, outputs=2, seed=rng)
    plan = Plan.of(p, g)
    layout = PairLayout.of(plan, np.full(6, 4), 243)
    assert layout.two_steps.any()
    evidence = _evidence(p, rng, 33)
    for name in ("expectation", "variance"):
        algebra, table = ALGEBRAS[name](g.weight)
        here = run_each(plan, algebra, [lambda t=table: t], evidence)[0]
        with config_context(device="cuda"):
            there = run_each(plan, algebra, [lambda t=table: t], evidence)[0]
        _agree(here, there, name == "variance", 1e-12)


def test_nothing_underflows_on_a_long_chain(device):
    """A product of 1,500 probabilities of 0.1 has no float of its own."""
    n = 1500
    vtree = Vtree.balanced(n)
    rng = np.random.default_rng(0)
    p = random_probabilistic(vtree, np.full(n, 10), units=1, seed=rng)
    g = random_regression(vtree, np.full(n, 10), units=1, outputs=2, seed=rng)
    X = rng.integers(0, 10, (3, n)).astype(float)
    X[1, ::2] = np.nan
    plan = Plan.of(p, g)
    for name in ("expectation", "variance", "extremes"):
        algebra, table = ALGEBRAS[name](g.weight)
        evidence = Evidence.rows(X, p.cardinalities)
        here = run_each(plan, algebra, [lambda t=table: t], evidence)[0]
        assert here.exponent.min() < -10
        with config_context(device="cuda"):
            there = run_each(plan, algebra, [lambda t=table: t], evidence)[0]
        _agree(here, there, name == "variance", 1e-11)


def test_public_answers_are_the_same(device):
    p, g, rng = _pair(8)
    pair = Pair(p, g)
    evidence = _evidence(p, rng, 7)

    def answers():
        return (
            pair.expectation(evidence, on_impossible="nan"),
            pair.variance(evidence, on_impossible="nan"),
            pair.moments(evidence, 3, on_impossible="nan"),
            p.log_prob(evidence),
        )

    here = answers()
    with config_context(device="cuda"):
        for a, b in zip(here, answers(), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-12)


def test_float32_is_good_to_five_digits(device):
    for seed in range(6):
        p, g, rng = _pair(seed)
        pair = Pair(p, g)
        X = np.where(rng.random((20, p.n_variables)) < 0.5, -1, 0)
        here = pair.expectation(X, on_impossible="nan")
        with config_context(device="cuda", precision="float32"):
            there = pair.expectation(X, on_impossible="nan")
        scale = np.abs(g.weight).max() * p.n_variables
        np.testing.assert_allclose(there, here, atol=1e-5 * scale)


def test_tiles_and_chunks_change_nothing(monkeypatch):
    """Rows in tiles of 32 and one chunk of channels at a time: the same bits."""
    need_compiler()
    p, g, rng = _pair(5)
    evidence = _evidence(p, rng, 100)
    algebra, table = ALGEBRAS["spectrum"](g.weight)
    roots = []
    for memory in (1 << 26, 1 << 12):
        host = HostDevice(memory)
        monkeypatch.setattr(card_work, "cuda_device", lambda process, host=host: host)
        with config_context(device="cuda"):
            plan = Plan.of(p, g)
            roots.append(run_each(plan, algebra, [lambda t=table: t], evidence)[0])
    for a, b in zip(*roots, strict=True):
        np.testing.assert_array_equal(a, b)


def test_one_question_after_the_other(device):
    """What is kept between calls is of the same model, whatever rows and constants came before."""
    p, g, rng = _pair(7)
    plan = Plan.of(p, g)
    algebra, table = ALGEBRAS["expectation"](g.weight)
    table = table.copy()
    for rows in (40, 3, 33, 4_200, 5, 1, 40):
        X = np.where(rng.random((rows, p.n_variables)) < 0.5, -1, 0)
        evidence = Evidence.rows(X, p.cardinalities)
        for _ in range(3):  # launched, captured, replayed
            here = run_each(plan, algebra, [lambda t=table: t], evidence)[0]
            with config_context(device="cuda"):
                there = run_each(plan, algebra, [lambda t=table: t], evidence)[0]
            _agree(here, there, False, 1e-12)
        table *= 1.5


class _Full(HostDevice):
    def empty(self, size, dtype):
        raise MemoryError


@pytest.mark.parametrize(("kind", "says"), [(_Full, "memory is full"), (LostDevice, "off the bus")])
def test_a_card_that_fails_is_an_error_or_the_processor(monkeypatch, kind, says):
    need_compiler()
    host = kind()
    monkeypatch.setattr(card_work, "cuda_device", lambda process: host)
    p, g, _ = _pair(5)
    X = np.full((4000, p.n_variables), -1)
    want = Pair(p, g).expectation(X)
    with config_context(device="cuda"), pytest.raises(DeviceError, match=says):
        Pair(p, g).expectation(X)
    monkeypatch.setattr("expecta.engine.cuda.choice.pays", lambda *given: True)
    with config_context(device="auto"), pytest.warns(RuntimeWarning, match=says):
        np.testing.assert_array_equal(Pair(p, g).expectation(X), want)


def test_the_choice_of_a_device_is_right_where_it_was_measured(data):
    """By times of a card and of a processor that are kept, not by times of this machine."""
    from benchmarks import cards

    cards.records.clear()
    cards.grade(data, pd.read_parquet(cards.RESULTS))
    graded = {metric: value for name, _, _, metric, value in cards.records if name == "grid"}
    assert graded["cases"] >= 300
    assert graded["right"] >= 0.95


def test_small_work_stays_on_the_processor():
    """One row of a tiny circuit; many rows of a large one go to the card."""
    small, large = (
        Plan.of(*_pair(5, most=most, p=units)[:2]) for most, units in ((3, 1), (40, 20))
    )
    with config_context(threads=2):
        assert not pays(small, Expectation(2), 1, 1)
        assert pays(large, Expectation(2), 1, 10_000)


def test_without_a_card_one_is_told_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # as where it is not installed
    card_work.cuda_device.cache_clear()
    p, g, _ = _pair(5)
    with config_context(device="cuda"), pytest.raises(DeviceError, match="device='cpu'"):
        Pair(p, g).expectation([[-1] * p.n_variables])
    with warnings.catch_warnings(), config_context(device="auto"):
        warnings.simplefilter("error")  # where none is there, none was promised
        for rows in (10, 40_000):  # the latter a card would read
            X = np.full((rows, p.n_variables), -1)
            np.testing.assert_allclose(
                Pair(p, g).expectation(X)[-1], Pair(p, g).expectation(X[:1])[0]
            )


def test_the_settings_are_checked():
    with pytest.raises(ValueError, match="device is"), config_context(device="gpu"):
        pass
    with pytest.raises(ValueError, match="precision is"), config_context(precision="half"):
        pass
