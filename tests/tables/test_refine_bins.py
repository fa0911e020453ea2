"""Finer bins: the same distribution over the old ones, and what lies inside them."""

from __future__ import annotations

import datetime as dt
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expecta import (
    PSDD,
    ChowLiu,
    Density,
    DomainError,
    Encoder,
    Evidence,
    Independent,
    LatentTree,
    random_probabilistic,
)
from expecta.densities.finer_circuit import finer_circuit
from expecta.tables.refine_bins import coarse_codes, refine_encoder
from strategies import vtrees

LEARNERS = {
    "Independent": Independent,
    "ChowLiu": ChowLiu,
    "LatentTree": lambda **k: LatentTree(states=2, restarts=1, max_epochs=3, **k),
    "PSDD": lambda **k: PSDD(patience=2, max_parameters=300, **k),
}
NUMBERS = ("integer", "number", "date", "datetime", "duration")
DAY = dt.date(2024, 2, 28)
NOON = dt.datetime(2024, 2, 28, 12, 30)


def column(kind, rng, rows):
    """Some cells of a kind, a few of them missing."""
    whole = rng.integers(-40, 40, rows).tolist()
    cells = {
        "whole": whole,
        "ties": rng.choice([0.5, 0.5, 0.5, 2.0, 3.25], rows).tolist(),
        "real": (rng.standard_normal(rows) * 10.0 ** rng.integers(-3, 4)).tolist(),
        "skew": np.exp(2 * rng.standard_normal(rows)).tolist(),
        "constant": [7.5] * rows,
        "date": [DAY + dt.timedelta(i) for i in whole],
        "datetime": [NOON + dt.timedelta(hours=i) for i in whole],
        "duration": [dt.timedelta(minutes=i) for i in whole],
        "category": rng.choice(["a", "b", "c"], rows).tolist(),
        "boolean": (rng.random(rows) < 0.3).tolist(),
    }[kind]
    holes = rng.choice([0.0, 0.2])
    known = int(rng.integers(rows))  # at least one is
    return [
        None if hole and i != known else cell
        for i, (cell, hole) in enumerate(zip(cells, rng.random(rows) < holes, strict=True))
    ]


KINDS = (
    *("whole", "ties", "real", "skew", "constant"),
    *("date", "datetime", "duration", "category", "boolean"),
)


@st.composite
def tables(draw, most=3):
    """A table, and the generator that made it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=most))
    rows = draw(st.integers(1, 60))
    return {f"{kind} {i}": column(kind, rng, rows) for i, kind in enumerate(kinds)}, rng


@st.composite
def cases(draw, most=3):
    """A table, a density with few bins, and how to refine it."""
    table, rng = draw(tables(most))
    method = draw(st.sampled_from(["quantile", "quantile", "width", "adaptive"]))
    encoder = Encoder(max_bins=draw(st.integers(1, 5)), bins=method)
    density = LEARNERS[draw(st.sampled_from(sorted(LEARNERS)))](encoder=encoder).fit(table)
    bins = draw(st.integers(1, 12))
    thresholds = {}
    for one in density.encoder_.columns_:
        if one.kind in NUMBERS and draw(st.booleans()):
            low, high = one.lows[0], one.highs[-1]
            inside = rng.uniform(low - 1, high + 1, draw(st.integers(1, 4)))
            known = rng.choice(np.concatenate([one.lows, one.highs, one.edges]), 2)
            thresholds[one.name] = [*inside.tolist(), *known.tolist()]
    X = draw(st.sampled_from([table, table, None]))
    return table, density, X, {"max_bins": bins, "thresholds": thresholds}


def states(cards):
    """Every complete row."""
    return np.array(list(itertools.product(*map(range, cards))))


def within(fine, coarse, row):
    """The evidence that a fine row lies in the cell of a coarse one."""
    evidence = Evidence.unknown(fine.encoder_.cardinalities_)
    for variable, lookup in enumerate(coarse_codes(fine.encoder_, coarse.encoder_)):
        if row[variable] >= 0:
            weights = (lookup == row[variable]).astype(np.float64)
            evidence = evidence.likelihood(variable, weights)
    return evidence


# -- the same distribution over old bins ----------------------------------------------------


@settings(max_examples=50)
@given(cases())
def test_cells_have_the_probability_they_had(case):
    table, coarse, X, options = case
    fine = coarse.refined(X, **options)
    assert type(fine) is Density
    assert fine.circuit.properties.normalised
    rows = np.unique(coarse.encoder_.transform(table), axis=0)[:8]
    for row in rows:
        expected = np.exp(coarse.circuit.log_prob(row[None]))
        found = np.exp(fine.circuit.log_prob(within(fine, coarse, row)))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    # and one by one, where there are few
    if np.prod(fine.encoder_.cardinalities_.astype(float)) <= 3000:
        every = states(fine.encoder_.cardinalities_)
        lookup = coarse_codes(fine.encoder_, coarse.encoder_)
        old = np.column_stack([places[every[:, v]] for v, places in enumerate(lookup)])
        total = np.zeros(coarse.encoder_.cardinalities_)
        np.add.at(total, tuple(old.T), np.exp(fine.circuit.log_prob(every)))
        expected = np.exp(coarse.circuit.log_prob(states(total.shape))).reshape(total.shape)
        np.testing.assert_allclose(total, expected, rtol=1e-12, atol=1e-15)


def widths(fine, coarse, v):
    """The part of its old bin that each new one has, by width; none has nothing."""
    new, old = fine.encoder_.columns_[v], coarse.encoder_.columns_[v]
    if not len(new.edges):
        return np.ones(1)
    ends = [min(old.lows[0], new.edges[0]), *new.edges, max(old.highs[-1], new.edges[-1])]
    wide, places = np.diff(ends), coarse_codes(fine.encoder_, coarse.encoder_)[v]
    whole = np.bincount(places, wide)[places]
    return np.maximum(wide / np.where(whole > 0, whole, 1), 1e-9)


@settings(max_examples=50)
@given(cases())
def test_a_new_bin_has_the_share_of_its_numbers_whatever_else_is_known(case):
    table, coarse, _, options = case
    fine = coarse.refined(table, **options)
    new, old = fine.encoder_.transform(table), coarse.encoder_.transform(table)
    lookup = coarse_codes(fine.encoder_, coarse.encoder_)
    log_share = np.zeros(len(new))
    for v, places in enumerate(lookup):
        if fine.encoder_.columns_[v].kind not in NUMBERS:
            continue
        counts = np.bincount(new[new[:, v] >= 0, v], minlength=len(places)).astype(float)
        held = np.bincount(places, counts)
        extra = np.bincount(places, 0.5 * widths(fine, coarse, v) * (counts == 0))
        filled = (held > 0)[places] & (counts > 0)
        share = np.where(filled, counts / np.maximum((held + extra)[places], 1), 1.0)
        log_share += np.append(np.log(share), 0.0)[new[:, v]]
    expected = coarse.circuit.log_prob(old) + log_share
    np.testing.assert_allclose(fine.circuit.log_prob(new), expected, rtol=1e-11, atol=1e-11)


@settings(max_examples=50)
@given(vtrees(5), st.integers(0, 2**31), st.booleans())
def test_any_circuit_divides(vtree, seed, deterministic):
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 4, vtree.n_variables)
    p = random_probabilistic(vtree, cards, units=3, deterministic=deterministic, seed=rng)
    parts = [rng.integers(1, 4, card) for card in cards]
    lookup = [np.repeat(np.arange(len(one)), one) for one in parts]
    shares = [np.concatenate([rng.dirichlet(np.ones(k)) for k in one]) for one in parts]
    q = finer_circuit(p, lookup, shares)
    assert q.properties.normalised
    assert bool(q.properties.deterministic) == bool(p.properties.deterministic)
    rows = np.column_stack([rng.integers(0, len(one), 50) for one in lookup])
    old = np.column_stack([one[rows[:, v]] for v, one in enumerate(lookup)])
    share = sum(np.log(one)[rows[:, v]] for v, one in enumerate(shares))
    np.testing.assert_allclose(q.log_prob(rows), p.log_prob(old) + share, rtol=1e-12, atol=1e-12)


def test_zero_probabilities_and_conditions_stay():
    table = {"x": [1.0, 2.0, 3.0, 10.0, 11.0, 12.0], "c": ["a", "a", "a", "b", "b", "b"]}
    coarse = ChowLiu(pseudo_count=0, encoder=Encoder(max_bins=2)).fit(table)
    fine = coarse.condition(c="a").refined(table, max_bins=6)
    expected = [1 / 3] * 3 + [0.0] * 3
    np.testing.assert_allclose(fine.marginal("x").probabilities, expected, atol=1e-15)
    again = coarse.refined(table, max_bins=6).condition(c="a")
    np.testing.assert_allclose(
        fine.marginal("x").probabilities, again.marginal("x").probabilities, atol=1e-15
    )


# -- the encoder ----------------------------------------------------------------------------


@settings(max_examples=50)
@given(cases())
def test_bins_lie_in_the_old_ones(case):
    table, coarse, X, options = case
    fine = coarse.refined(X, **options).encoder_
    again = coarse.refined(X, **options).encoder_
    lookup = coarse_codes(fine, coarse.encoder_)
    new, old = fine.transform(table), coarse.encoder_.transform(table)
    for v, (one, before) in enumerate(zip(fine.columns_, coarse.encoder_.columns_, strict=True)):
        np.testing.assert_array_equal(np.append(lookup[v], -1)[new[:, v]], old[:, v])
        if before.kind not in NUMBERS:
            assert one is before
            continue
        assert np.all(np.isin(before.edges, one.edges))
        assert (one.step, one.kind, one.zone) == (before.step, before.kind, before.zone)
        np.testing.assert_array_equal(one.edges, again.columns_[v].edges)
        wanted = np.nextafter(options["thresholds"].get(one.name, []), np.inf)
        assert np.all(np.isin(wanted, one.edges))
        # to the last bit, and beyond all that was seen
        edges = np.concatenate([one.edges, before.edges, one.lows, one.highs])
        probes = np.concatenate(
            [edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf), [-np.inf, np.inf]]
        )
        place = np.searchsorted(one.edges, probes, side="right")
        expected = np.searchsorted(before.edges, probes, side="right")
        np.testing.assert_array_equal(lookup[v][place], expected)
        if one.kind in ("integer", "number"):
            asked = [one.code(probe) for probe in probes]
            np.testing.assert_array_equal(asked, place)
        # what is known of a bin
        assert np.all(one.lows[1:] >= one.edges)
        assert np.all(one.highs[:-1] < one.edges)
        assert np.all((one.lows <= one.means) & (one.means <= one.highs) & (one.stds >= 0))
        np.testing.assert_allclose(np.bincount(lookup[v], one.counts), before.counts, rtol=1e-12)
        assert len(one.labels) == one.cardinality


@settings(max_examples=50)
@given(cases(most=1))
def test_there_are_no_more_bins_than_asked_for(case):
    table, coarse, _, options = case
    before = coarse.encoder_.columns_[0]
    if before.kind not in NUMBERS:
        return
    [plain] = coarse.refined(table, max_bins=options["max_bins"]).encoder_.columns_
    assert plain.cardinality <= max(options["max_bins"], before.cardinality)
    if options["max_bins"] <= before.cardinality:
        assert plain is before
    distinct = len({cell for cell in next(iter(table.values())) if cell is not None})
    empty = np.count_nonzero(before.counts == 0)
    if distinct + empty <= options["max_bins"]:
        assert plain.cardinality == distinct + empty
        filled = plain.counts > 0
        assert np.all(plain.lows[filled] == plain.highs[filled])
    [both] = coarse.refined(table, **options).encoder_.columns_
    added = len(options["thresholds"].get(both.name, []))
    assert both.cardinality <= max(options["max_bins"], before.cardinality) + added


def test_integers_are_kept_apart_and_heavy_numbers_stand_alone():
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 200, 3000)
    coarse = Independent().fit({"n": numbers})
    [fine] = coarse.refined({"n": numbers}).encoder_.columns_
    assert fine.cardinality == len(np.unique(numbers))
    assert np.array_equal(fine.means, np.unique(numbers))
    assert np.all(fine.stds == 0)
    assert fine.labels == tuple(map(str, np.unique(numbers)))
    # one number of a hundred weighs as much as ten bins: it has one, the rest share the others
    mixed = np.append(rng.random(9000), np.full(1000, 0.5))
    coarse = Independent(encoder=Encoder(max_bins=4)).fit({"x": mixed})
    [fine] = coarse.refined({"x": mixed}, max_bins=100).encoder_.columns_
    alone = fine.lows == fine.highs
    assert fine.means[alone].tolist() == [0.5]
    assert 90 <= fine.cardinality <= 100
    assert fine.counts[~alone].max() <= 1.5 * np.median(fine.counts)


def test_heavy_bins_are_cut_finer():
    edges = [0.0, 0.9, 1.0]  # nine tenths and one
    numbers = np.random.default_rng(1).random(5000)
    coarse = Independent(encoder=Encoder(bins=edges)).fit({"x": numbers})
    [fine] = coarse.refined({"x": numbers}, max_bins=100).encoder_.columns_
    assert fine.cardinality == 100
    assert np.bincount(
        coarse_codes(coarse.refined({"x": numbers}, max_bins=100).encoder_, coarse.encoder_)[0]
    )[0] in range(87, 94)
    assert fine.counts.max() < 1.3 * fine.counts.min()
    # equal bins, and fewer new ones than to halve each: what there is is used
    even = np.arange(64.0)
    coarse = Independent(encoder=Encoder(max_bins=8)).fit({"x": even})
    assert coarse.refined({"x": even}, max_bins=11).encoder_.cardinalities_.tolist() == [11]


def test_weights_say_where_to_cut():
    x = np.arange(100.0)
    weight = np.where(x < 50, 1.0, 9.0)
    coarse = Independent(encoder=Encoder(max_bins=1)).fit({"x": x}, sample_weight=weight)
    fine = coarse.refined({"x": x}, max_bins=10, sample_weight=weight)
    assert np.sum(fine.encoder_.columns_[0].edges < 49.6) == 1
    np.testing.assert_allclose(fine.marginal("x").probabilities, 0.1, atol=0.03)
    # a weight of two is a row twice, a weight of zero none, and the unit does not matter
    twice = {"x": np.append(x, x[50:])}
    once = np.where(x < 50, 1.0, 2.0)
    options = {"max_bins": 10, "thresholds": {"x": [200.0, 30.5, 30.6]}}
    expected = coarse.refined(twice, **options)
    for rows, weights in (
        (x, once),
        (np.append(x, 1000.0), np.append(once, 0.0)),
    ):
        found = coarse.refined({"x": rows}, sample_weight=weights, **options)
        [a], [b] = found.encoder_.columns_, expected.encoder_.columns_
        np.testing.assert_array_equal(a.edges, b.edges)
        np.testing.assert_allclose(a.means, b.means, rtol=1e-3)
    tiny = coarse.refined({"x": x}, sample_weight=1e-9 * once, **options)
    large = coarse.refined({"x": x}, sample_weight=once, **options)
    np.testing.assert_allclose(
        tiny.marginal("x").probabilities, large.marginal("x").probabilities, rtol=1e-9
    )


# -- thresholds -----------------------------------------------------------------------------


def test_thresholds_divide_to_the_last_bit():
    numbers = np.random.default_rng(2).random(500)
    coarse = Independent(encoder=Encoder(max_bins=4)).fit({"x": numbers})
    t = np.array([0.1, 0.3, numbers[7], 1.5, -2.0, 0.0])
    for X in ({"x": numbers}, None):
        fine = coarse.refined(X, thresholds={"x": t}, max_bins=16).encoder_
        below, above = fine.transform({"x": t}), fine.transform({"x": np.nextafter(t, np.inf)})
        assert np.all(below[:, 0] + 1 == above[:, 0])


def test_a_threshold_replaces_a_cut_that_says_no_more():
    x = np.arange(8.0)
    coarse = Independent(encoder=Encoder(max_bins=2)).fit({"x": x})
    [fine] = coarse.refined({"x": x}, max_bins=8, thresholds={"x": [1.25]}).encoder_.columns_
    assert fine.cardinality == 8
    assert 1.5 not in fine.edges
    [fine] = coarse.refined({"x": x}, max_bins=8, thresholds={"x": [1.25, 1.75]}).encoder_.columns_
    assert fine.cardinality == 9  # nothing lies between: that bin does not count
    assert fine.means[2] == pytest.approx(1.5)


def test_dates_are_thresholds_of_dates():
    days = [DAY + dt.timedelta(i) for i in range(40)]
    coarse = Independent(encoder=Encoder(max_bins=2)).fit({"day": days})
    for X in (None, {"day": days}):
        fine = coarse.refined(X, max_bins=2, thresholds={"day": ["2024-03-05", days[30]]})
        codes = fine.encoder_.transform({"day": days})[:, 0]
        assert np.flatnonzero(np.diff(codes)).tolist() == [6, 19, 30]
        [one] = fine.encoder_.columns_
        assert one.step > 0
        assert one.labels[0] == "2024-02-28 to 2024-03-05"
        assert one.labels[1].startswith("2024-03-06")
        np.testing.assert_allclose(np.bincount(codes) / 40, fine.marginal("day").probabilities)
        drawn = fine.sample(50, random_state=1)["day"]
        assert drawn.min() >= np.datetime64(days[0])
        assert drawn.max() <= np.datetime64(days[-1])


def test_without_a_table_numbers_lie_as_in_conditions():
    x = np.append((np.arange(8_000) + 0.5) / 800, [0.0, 10.0, 20.0, 30.0])  # even to 10
    coarse = Independent(encoder=Encoder(bins=[0, 10.5, 40])).fit({"x": x})
    fine = coarse.refined(thresholds={"x": [2.5]})
    shares = fine.marginal("x").probabilities / coarse.marginal("x").probabilities[[0, 0, 1]]
    np.testing.assert_allclose(shares, [0.25, 0.75, 1.0], rtol=1e-3)
    # as facts about the old bins have it
    p = coarse.score_samples(coarse.encoder_.where(x=(None, 2.5)))
    np.testing.assert_allclose(
        fine.score_samples(fine.encoder_.where(x=(None, 2.5))), p, rtol=1e-12
    )
    [one] = fine.encoder_.columns_
    assert one.highs[0] == 2.5
    assert one.lows[0] == 0
    assert one.highs[1] == 10
    np.testing.assert_allclose(one.stds[:2], np.array([2.5, 7.5]) / np.sqrt(12))
    np.testing.assert_allclose(one.means[:2], [1.25, 6.25], rtol=1e-3)
    assert one.means[2] == coarse.encoder_.columns_[0].means[1]
    # nothing lies beyond the ends, and still it is not impossible
    beyond = coarse.refined(thresholds={"x": [100.0]})
    count = coarse.encoder_.columns_[0].counts[1]
    share = beyond.marginal("x").probabilities[2] / coarse.marginal("x").probabilities[1]
    assert share == pytest.approx(0.5e-9 / count)
    assert coarse.refined().encoder_.columns_ == coarse.encoder_.columns_
    assert coarse.refined().circuit == coarse.circuit
    # whole numbers are counted
    coarse = Independent(encoder=Encoder(max_bins=1)).fit({"n": [1, 2, 5, 6]})
    shares = coarse.refined(thresholds={"n": [1, 4.5]}).marginal("n").probabilities
    pieces = [(None, 1), (2, 4), (5, None)]
    column = coarse.encoder_.columns_[0]
    np.testing.assert_allclose(shares, [column.between(*piece)[0] for piece in pieces])
    coarse = Independent(encoder=Encoder(bins=[0, 5, 10])).fit({"n": [1, 2, 5, 6, 7, 8, 9]})
    fine = coarse.refined(thresholds={"n": [6]})
    [one] = fine.encoder_.columns_
    assert one.labels == ("1 to 2", "5 to 6", "7 to 9")
    np.testing.assert_allclose(one.stds[1:], [np.std([5, 6]), np.std([7, 8, 9])])
    share = fine.marginal("n").probabilities[1] / coarse.marginal("n").probabilities[1]
    assert share == pytest.approx(2 / 5)


def test_old_bins_that_the_table_does_not_reach_are_cut_too():
    x = np.arange(1.0, 9.0)
    coarse = Independent(encoder=Encoder(bins=[0, 4.5, 10])).fit({"x": x})
    fine = coarse.refined({"x": [1.0, 1.0, 2.0]}, thresholds={"x": [6.5]})
    shares = fine.marginal("x").probabilities / coarse.marginal("x").probabilities[[0, 0, 1, 1]]
    np.testing.assert_allclose(shares, [2 / 3, 1 / 3, 1 / 2, 1 / 2])
    # and a bin that is not cut keeps what it was
    [one] = coarse.refined({"x": [1.0, 1.0, 2.0, 5.0]}).encoder_.columns_
    assert (one.means[2], one.lows[2], one.highs[2]) == (6.5, 5.0, 8.0)
    assert one.stds[2] == coarse.encoder_.columns_[0].stds[1]


def test_an_empty_bin_between_whole_numbers_can_be_cut():
    table = {"n": [10, 28]}
    coarse = Independent(encoder=Encoder(bins="width", max_bins=4)).fit(table)
    for X in (table, None):
        fine = coarse.refined(X, thresholds={"n": [20]})  # in the third, which holds nothing
        [one] = fine.encoder_.columns_
        assert one.counts.tolist() == [1, 0, 0, 0, 1]
        assert one.step == 1.0
        shares = (
            fine.marginal("n").probabilities / coarse.marginal("n").probabilities[[0, 1, 2, 2, 3]]
        )
        np.testing.assert_allclose(shares, [1, 1, 0.1, 0.9, 1])  # its middle is 21.25
    # numbers that are not whole are none of the steps
    [one] = coarse.refined({"n": [10.0, 10.5, 28.0]}).encoder_.columns_
    assert one.step == 0.0


def test_options_are_those_of_an_encoder_that_would_cut_as_fine():
    table = {0: np.arange(50.0), 1: np.arange(50.0)}
    coarse = Independent(encoder=Encoder(max_bins=2, thresholds={"0": [3.5]})).fit(table)
    fine = coarse.refined(table, max_bins=6, thresholds={0: [7.5], "1": np.array([1.5])}).encoder_
    assert np.nextafter(7.5, 8) in fine.columns_[0].edges
    assert fine.max_bins == 6
    assert fine.thresholds == {"0": [3.5, 7.5], "1": [1.5]}
    assert coarse.encoder_.thresholds == {"0": [3.5]}
    assert coarse.refined().encoder_.max_bins == 2
    assert Independent().fit(table).refined(table).encoder_.thresholds is None


# -- means ----------------------------------------------------------------------------------


@settings(max_examples=50)
@given(cases())
def test_means_and_spreads_stay(case):
    table, coarse, _, options = case
    fine = coarse.refined(table, max_bins=options["max_bins"])
    for one in coarse.encoder_.columns_:
        if one.kind in NUMBERS:
            old, new = coarse.marginal(one.name), fine.marginal(one.name)
            spread = float(np.max(one.highs) - np.min(one.lows))
            assert new.mean == pytest.approx(old.mean, rel=1e-12, abs=1e-12 * spread)
            assert new.std == pytest.approx(old.std, rel=1e-6, abs=1e-6 * spread)


@settings(max_examples=50)
@given(cases())
def test_means_of_old_bins_stay_as_far_as_bins_allow(case):
    _, coarse, X, options = case
    fine, shares = refine_encoder(coarse.encoder_, X, **options)
    for v, places in enumerate(coarse_codes(fine, coarse.encoder_)):
        one, before = fine.columns_[v], coarse.encoder_.columns_[v]
        np.testing.assert_allclose(np.bincount(places, shares[v]), 1.0, rtol=1e-12)
        assert np.all(shares[v] > 0)
        if one.kind in NUMBERS:
            least, mean, most = (
                np.bincount(places, shares[v] * x) for x in (one.lows, one.means, one.highs)
            )
            expected = np.clip(before.means, least, most)
            far = max(1.0, float(np.max(np.abs([one.lows, one.highs]))))
            np.testing.assert_allclose(mean, expected, rtol=1e-12, atol=1e-13 * far)


def test_means_average_to_the_old_mean_where_they_can():
    skew = np.append(np.linspace(0, 4, 90), np.linspace(4, 10, 10))
    coarse = Independent(encoder=Encoder(max_bins=1)).fit({"x": skew})
    mean = coarse.marginal("x").mean
    assert mean < 4
    for X, t in (({"x": skew}, [3.0, 12.0, -5.0]), (None, [9.0]), (None, [0.5, 9.5])):
        fine = coarse.refined(X, max_bins=7, thresholds={"x": t})
        assert fine.marginal("x").mean == pytest.approx(mean, rel=1e-12)
    low = Independent(encoder=Encoder(max_bins=1)).fit({"x": [0.0, 10.0, *[0.1] * 50]})
    fine = low.refined(thresholds={"x": [5.0]})
    assert fine.marginal("x").mean == pytest.approx(low.marginal("x").mean)


# -- a density like any other -----------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_files_samples_and_facts(name, tmp_path):
    rng = np.random.default_rng(3)
    table = {kind: column(kind, rng, 80) for kind in KINDS}
    coarse = LEARNERS[name](encoder=Encoder(max_bins=3)).fit(pd.DataFrame(table))
    thresholds = {"real": [0.0], "date": [DAY], "whole": np.array([3.5, 99.0])}
    fine = coarse.refined(pd.DataFrame(table), max_bins=9, thresholds=thresholds)
    assert bool(fine.circuit.properties.deterministic) == bool(
        coarse.circuit.properties.deterministic
    )
    fine.save(tmp_path / "fine")
    back = Density.load(tmp_path / "fine")
    np.testing.assert_array_equal(back.score_samples(table), fine.score_samples(table))
    assert back.circuit == fine.circuit
    assert back.encoder_.max_bins == 9
    drawn = fine.sample(300, random_state=4)
    pd.testing.assert_frame_equal(drawn, back.sample(300, random_state=4))
    assert list(drawn.columns) == list(KINDS)
    shares = np.bincount(
        fine.encoder_.transform(drawn)[:, 2], minlength=fine.encoder_.cardinalities_[2]
    )
    assert np.max(np.abs(shares / 300 - fine.marginal("real").probabilities)) < 0.12
    given = fine.condition(whole=(None, 3), category="a")
    assert given.marginal("whole").probabilities.sum() == pytest.approx(1)
    assert np.isfinite(fine.score(table))
    assert not fine.mpe(drawn).isna().any().any()
    once_more = fine.refined(pd.DataFrame(table), max_bins=9, thresholds=thresholds)
    assert np.array_equal(once_more.encoder_.cardinalities_, fine.encoder_.cardinalities_)
    np.testing.assert_allclose(
        once_more.score_samples(table), fine.score_samples(table), rtol=1e-12
    )


def test_without_numbers_nothing_changes():
    table = {"c": ["a", "b", "a", None], "b": [True, False, None, True], "none": [None] * 4}
    coarse = ChowLiu().fit(table)
    for X in (table, None):
        fine = coarse.refined(X, thresholds={"b": [0.5], "none": [3]})
        assert fine.circuit == coarse.circuit
        assert fine.encoder_.columns_ == coarse.encoder_.columns_
    codes = np.array([[0, 2], [1, 0], [-1, 1]])
    coarse = ChowLiu().fit(codes)
    assert coarse.refined(codes).circuit == coarse.circuit


def test_arrays_are_read_by_place_and_missing_columns_named():
    X = np.random.default_rng(5).random((50, 2))
    coarse = ChowLiu(encoder=Encoder(max_bins=2)).fit(X)
    fine = coarse.refined(X, max_bins=5)
    assert fine.encoder_.cardinalities_.tolist() == [5, 5]
    named = {"x1": X[:, 1], "x0": X[:, 0], "more": X[:, 0]}
    np.testing.assert_array_equal(
        coarse.refined(named, max_bins=5).score_samples(X), fine.score_samples(X)
    )
    with pytest.raises(DomainError, match="no column 'x1'"):
        coarse.refined({"x0": X[:, 0]})


def test_extreme_numbers():
    huge = [-1.7e308, -1e300, 0.0, 5e-324, 1e-300, 1.0, 1e300, 1.7e308]
    for x in (huge, [*huge, np.inf, -np.inf], [1e16, 1e16 + 2, 1e16 + 4], [5e-324, 0.0, -5e-324]):
        coarse = Independent(encoder=Encoder(max_bins=2)).fit({"x": x})
        for X in ({"x": x}, None):
            fine = coarse.refined(X, max_bins=5, thresholds={"x": [0.0, 1.7e308, -1.7e308, 2.0]})
            [one] = fine.encoder_.columns_
            assert np.all(np.isfinite([one.means, one.stds, one.lows, one.highs]))
            assert np.all((one.lows <= one.means) & (one.means <= one.highs))
            assert np.all(np.isfinite(fine.score_samples({"x": x})))
    x = np.arange(100.0)
    weight = 10.0 ** -np.linspace(0, 300, 100)
    coarse = Independent(encoder=Encoder(max_bins=3)).fit({"x": x}, sample_weight=weight)
    fine = coarse.refined({"x": x}, max_bins=9, sample_weight=weight)
    assert fine.encoder_.cardinalities_.tolist() == [9]
    assert np.all(np.isfinite(fine.score_samples({"x": x})))


def test_errors_name_what_was_meant():
    table = {"income": [1.0, 2.0, 5.0], "city": ["a", "b", "a"]}
    coarse = Independent().fit(table)
    with pytest.raises(DomainError, match="did you mean 'income'"):
        coarse.refined(table, thresholds={"incme": [1.0]})
    with pytest.raises(DomainError, match="'city' holds categories"):
        coarse.refined(table, thresholds={"city": [1.0]})
    with pytest.raises(ValueError, match="max_bins is a whole number of at least 1"):
        coarse.refined(table, max_bins=0)
    with pytest.raises(ValueError, match="thresholds maps names"):
        coarse.refined(table, thresholds=[1.0])
    with pytest.raises(ValueError, match="must be finite"):
        coarse.refined(table, thresholds={"income": [np.nan]})
    with pytest.raises(ValueError, match="not a number"):
        coarse.refined(table, thresholds={"income": ["much"]})
    with pytest.raises(DomainError, match="pass X too"):
        coarse.refined(sample_weight=[1.0])
    with pytest.raises(DomainError, match="3 finite numbers"):
        coarse.refined(table, sample_weight=[1.0])
    with pytest.raises(DomainError, match="all weights are zero"):
        coarse.refined(table, sample_weight=[0.0] * 3)
    with pytest.raises(DomainError, match="0 rows"):
        coarse.refined({"income": [], "city": []})
    with pytest.raises(DomainError, match="not a number"):
        coarse.refined({"income": ["x", "y"], "city": ["a", "b"]})
    with pytest.raises(ValueError, match="has not learned"):
        Independent().refined(table)


def test_encoders_that_are_not_finer_are_refused():
    table = {"x": [1.0, 2.0, 5.0], "c": ["a", "b", "a"]}
    coarse, fine = Encoder(max_bins=2).fit(table), Encoder(max_bins=3).fit(table)
    other = Encoder().fit({"x": [1.0, 2.0, 5.0], "c": ["a", "b", "z"]})
    assert [places.tolist() for places in coarse_codes(coarse, coarse)] == [[0, 1], [0, 1]]
    with pytest.raises(DomainError, match="'x' are not finer"):
        coarse_codes(coarse, fine)
    with pytest.raises(DomainError, match="'c' are not finer"):
        coarse_codes(other, Encoder().fit(table))
    with pytest.raises(DomainError, match="different columns"):
        coarse_codes(fine, Encoder().fit({"x": [1.0]}))
    again, shares = refine_encoder(coarse, table, 3)
    assert [share.tolist() for share in shares][1] == [1.0, 1.0]
    assert again is not coarse
    assert coarse.cardinalities_.tolist() == [2, 2]
    assert coarse.max_bins == 2


def test_finer_bins_have_a_number():
    density = ChowLiu().fit({"x": np.arange(30.0)})
    for bins in (None, 0, 2.5):
        with pytest.raises(ValueError, match="max_bins is a whole number of at least 1"):
            density.refined({"x": np.arange(30.0)}, max_bins=bins)
