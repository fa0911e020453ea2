"""Rows with missing cells count in groups by the probability that they belong to them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from expecta import ChowLiu, CircuitRegressor, Encoder
from expecta.ask import uncertain_members
from expecta.ask.language.query import Query
from expecta.ask.uncertain_members import uncertain_sums

N = 240


@pytest.fixture(scope="module")
def case():
    """A model of rows with missing cells, all complete rows of values, and each row's share."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=N), "b": rng.choice(list("xyz"), N)})
    X["c"] = np.where(rng.random(N) < 0.7, X["b"], rng.choice(list("xyz"), N))
    y = X["a"] + 3.0 * (X["b"] == "x") + 0.3 * rng.normal(size=N)
    X = X.mask(rng.random(X.shape) < 0.3)
    density = ChowLiu(encoder=Encoder(max_bins=4))
    model = CircuitRegressor(
        density=density, max_bins=6, max_splits=2, penalties=(3.0,), calibration_rows=0
    ).fit(X, y)
    every = np.array(list(product(*map(range, model.encoder_.cardinalities_))), np.int32)
    known = model.encoder_.codes(model.encoder_.read(X))
    share = np.exp(model.refined_.circuit.log_prob(every))[None] * np.all(
        (known[:, None] < 0) | (known[:, None] == every[None]), axis=2
    )
    return model, X, model.circuit_(every), every, share / share.sum(axis=1, keepdims=True)


def asked_of(model, group):
    """What `uncertain_sums` is asked of one group."""
    subject = model.expected_output()
    query = Query.read(group, subject.encoder)
    inside = query.matches(subject.training_rows)
    return subject, query, (), np.where(inside, 0, -1), 1


def mean_over_rows(case, inside):
    """Mean of the output over rows, each counting by the share of its completions inside."""
    _, _, g, _, share = case
    weight = share * inside
    return float((weight @ g).sum() / weight.sum())


@pytest.mark.parametrize(
    ("query", "inside"),
    [
        ("b == 'x'", lambda a, b, c: b == 0),
        ("b == 'x' and c != 'x'", lambda a, b, c: (b == 0) & (c != 0)),
        ("b == 'x' or c == 'y'", lambda a, b, c: (b == 0) | (c == 1)),
        (None, lambda a, b, c: b >= 0),
    ],
)
def test_the_mean_over_rows_agrees_with_enumeration(case, query, inside):
    model, _, _, every, share = case
    group = model.ask(query)
    allowed = inside(*every.T)
    assert group.rows_output == pytest.approx(mean_over_rows(case, allowed), rel=1e-9)
    certain = np.count_nonzero(share @ allowed > 1 - 1e-9)
    assert group.rows == certain
    alone = model.ask(query, population="rows")
    assert alone.mean == group.rows_output


def test_an_interval_that_cuts_a_bin_counts_known_numbers_by_themselves(case):
    model, X, g, every, share = case
    edge = 0.5 * (X["a"].min() + X["a"].max()) + 0.123
    group = model.ask(f"a > {edge} and b == 'x'")
    column = model.encoder_.columns_[0]
    weights = np.where(X["a"].isna().to_numpy()[:, None], column.between(edge, None), 1.0)
    out = (X["a"] <= edge).to_numpy()
    weight = share * weights[:, every[:, 0]] * (every[:, 1] == 0) * ~out[:, None]
    assert group.rows_output == pytest.approx((weight @ g).sum() / weight.sum(), rel=1e-9)


def test_the_parts_of_a_split_agree(case):
    model, _, _, every, _ = case
    parts = model.split("b", population="rows").to_frame()
    for value, mean in zip("xyz", parts["mean"].to_numpy(), strict=True):
        code = model.encoder_.columns_[1].code(value)
        assert mean == pytest.approx(mean_over_rows(case, every[:, 1] == code), rel=1e-9)
        assert mean == pytest.approx(model.ask(f"b == '{value}'", population="rows").mean, rel=1e-9)
    for value in "xy":
        code, other = (model.encoder_.columns_[i].code(value) for i in (1, 2))
        inside = (every[:, 1] == code) & (every[:, 2] == other)
        within = model.split("b", given=f"c == '{value}'", population="rows").to_frame()
        found = within["mean"].to_numpy()[list("xyz").index(value)]
        assert found == pytest.approx(mean_over_rows(case, inside), rel=1e-9)


def test_of_many_rows_some_stand_for_all(case, monkeypatch):
    model, X, *_ = case
    group = "b == 'x'"
    exact = model.ask(group).rows_output
    sums = uncertain_sums(*asked_of(model, group))
    most = int(0.9 * np.count_nonzero(X["b"].isna()))
    monkeypatch.setattr(uncertain_members, "MAX_EXPECTATIONS", most)
    some = uncertain_sums(*asked_of(model, group))
    assert some.weight[0] != sums.weight[0]
    assert some.weight[0] == pytest.approx(sums.weight[0], rel=0.1)
    certain = model.predict(X[X["b"] == "x"]).mean()
    assert abs(model.ask(group).rows_output - exact) < 0.5 * abs(certain - exact)


def test_the_error_has_what_rows_that_stand_for_others_add(monkeypatch):
    far = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"a": rng.choice(list("uvwxyz"), 3000), "b": rng.normal(size=3000)})
        y = 2.0 * X["b"] + (X["a"] == "u") + 0.3 * rng.normal(size=3000)
        X["a"] = X["a"].mask(rng.random(3000) < 0.5)
        model = CircuitRegressor(density=ChowLiu(), max_splits=0, calibration_rows=0).fit(X, y)
        splits = []
        for most in (10**6, 600):
            monkeypatch.setattr(uncertain_members, "MAX_EXPECTATIONS", most)
            splits.append(model.split("a", population="rows"))
        every, some = splits
        added = np.sqrt(some.standard_error**2 - every.standard_error**2)
        far.append((some.mean - every.mean) / added)
    assert 0.6 < np.sqrt(np.mean(np.square(far))) < 1.5


@pytest.mark.parametrize("population", ["rows", "both"])
def test_parts_by_sums_in_a_file_agree_with_the_whole(tmp_path, population):
    """Rows that lack the column have other outputs: without them all parts lie below the whole."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("xyz"), 900), "b": rng.choice(list("pq"), 900)})
    y = 10.0 * (X["b"] == "p") + (X["a"] == "x") + 0.3 * rng.normal(size=900)
    X["a"] = X["a"].mask((X["b"] == "p") & (rng.random(900) < 0.8))
    model = CircuitRegressor(density=ChowLiu(), max_splits=0, calibration_rows=0).fit(X, y)
    model.save(tmp_path / "m")
    loaded = CircuitRegressor.load(tmp_path / "m")
    for given in (None, "b == 'p'"):
        whole, parts, of_rows = (
            loaded.ask(given, population="rows").rows_output,
            loaded.split("a", given=given, population=population),
            model.split("a", given=given, population=population),
        )
        assert parts.rows_output @ parts.share == pytest.approx(whole, rel=0.02)
        np.testing.assert_allclose(parts.mean, of_rows.mean, atol=0.5)
    parts = loaded.split("a", population="rows")
    for value, mean in zip(*parts.labels, parts.mean, strict=True):
        assert loaded.ask(f"a == '{value}'", population="rows").mean == pytest.approx(mean)
