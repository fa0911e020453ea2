"""Summaries of chunks: the encoder of all rows, however these are divided."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from expecta import DomainError, Encoder
from expecta.tables import category_sketch, number_sketch
from expecta.tables.category_sketch import CategorySketch
from expecta.tables.number_sketch import NumberSketch

NUMBERS = st.one_of(st.floats(-1e300, 1e300), st.integers(-5, 5).map(float), st.just(float("nan")))
OPTIONS = [{}, {"max_categories": 2}, {"missing_is_value": ["bmi"]}]
CUTS = st.lists(st.integers(0, 60), max_size=5)


def chunks(rows, cuts):
    ends = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    return [rows[a:b] for a, b in pairwise(ends)]


def total(parts):
    first, *others = parts
    for other in others:
        first = first + other
    return first


def same(a, b):
    assert a.shift == b.shift
    for name in ("keys", "low", "high"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    assert np.allclose(a.mass, b.mass, rtol=1e-12)
    assert np.allclose(a.mean, b.mean, rtol=1e-12, atol=1e-300)


@settings(max_examples=60, deadline=None)
@given(numbers=st.lists(NUMBERS, max_size=60), cuts=CUTS, buckets=st.integers(1, 40))
def test_numbers_have_the_same_buckets_however_they_are_divided(numbers, cuts, buckets):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(number_sketch, "MAX_BUCKETS", buckets)
        array = np.array(numbers, np.float64)
        parts = [NumberSketch.from_numbers(part) for part in chunks(array, cuts)]
        whole = NumberSketch.from_numbers(array)
        same(total(parts), whole)
        same(total(parts[::-1]), whole)
        assert len(whole.keys) <= max(buckets, 2)  # below and above zero, at least
        assert whole.mass.sum() == np.count_nonzero(np.isfinite(array))
        for sample in (whole.ends, whole.moments):
            assert np.all(np.diff(sample.values) > 0)
            assert sample.mass.sum() == pytest.approx(whole.mass.sum())


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), cuts=CUTS)
@example(seed=0, cuts=[30])
def test_edges_are_within_the_stated_error(seed, cuts):
    """The rows below each edge are those of the encoder of all rows, up to the error."""
    rng = np.random.default_rng(seed)
    numbers = rng.lognormal(size=400) if seed % 2 else rng.standard_normal(400)
    encoder = Encoder(max_bins=8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(number_sketch, "MAX_BUCKETS", 100)
        parts = [encoder.sketch({"x": part}) for part in chunks(numbers, cuts) if len(part)]
        sketch = total(parts)
    found = Encoder(max_bins=8).fit_sketch(sketch).columns_[0]
    want = Encoder(max_bins=8).fit({"x": numbers}).columns_[0]
    again = Encoder(max_bins=8).fit_sketch(sketch).columns_[0]
    assert np.array_equal(found.edges, again.edges)
    assert len(found.edges) == len(want.edges)
    error = sketch.errors()["x"]
    assert 0 < error < 0.1
    below = [np.mean(numbers[:, None] < edges, axis=0) for edges in (found.edges, want.edges)]
    assert np.all(np.abs(below[0] - below[1]) <= error + 1 / 400)
    assert (found.lows[0], found.highs[-1]) == (numbers.min(), numbers.max())
    assert found.counts @ found.means == pytest.approx(numbers.sum(), rel=1e-9, abs=1e-6)


TABLE = pd.DataFrame(
    {
        "age": [31, 54, 60, 18, 18, 40] * 10,
        "bmi": [21.5, None, 30.25, 19.0, 40.125, 33.0] * 10,
        "smoker": ["no", "yes", None, "no", "no", "yes"] * 10,
        "vip": [True, False, True, True, False, False] * 10,
        "since": pd.date_range("2020-01-01", periods=60, freq="D"),
        "seen": pd.date_range("2020-01-01", periods=60, freq="h"),
        "grade": pd.Categorical(list("abc") * 20, categories=list("cbad"), ordered=True),
        "empty": [None] * 60,
    }
)


@settings(max_examples=15, deadline=None)
@given(cuts=CUTS, options=st.sampled_from(OPTIONS))
def test_an_encoder_is_that_of_all_rows(cuts, options):
    encoder = Encoder(**options)
    parts = [encoder.sketch(part) for part in chunks(TABLE, cuts)]
    found, want = encoder.fit_sketch(total(parts)), Encoder(**options).fit(TABLE)
    assert found.feature_names_in_.tolist() == want.feature_names_in_.tolist()
    assert np.array_equal(found.codes(TABLE), want.codes(TABLE))
    for ours, theirs in zip(found.columns_, want.columns_, strict=True):
        assert (ours.kind, ours.labels) == (theirs.kind, theirs.labels)
        assert np.array_equal(ours.counts, theirs.counts)
        if hasattr(theirs.plain, "step"):
            assert ours.plain.step == theirs.plain.step
            assert np.array_equal(ours.plain.edges, theirs.plain.edges)
            assert np.allclose(ours.plain.stds, theirs.plain.stds, rtol=1e-9)


def test_weights_count():
    weight = np.arange(60.0)
    encoder = Encoder()
    parts = [encoder.sketch(TABLE[a : a + 20], weight[a : a + 20]) for a in (0, 20, 40)]
    found, want = encoder.fit_sketch(total(parts)), Encoder().fit(TABLE, sample_weight=weight)
    for ours, theirs in zip(found.columns_, want.columns_, strict=True):
        assert np.allclose(ours.counts, theirs.counts, rtol=1e-12)


def test_whole_numbers_and_others_are_numbers():
    encoder = Encoder()
    sketch = encoder.sketch({"x": [1, 2, 3]}) + encoder.sketch({"x": [1.5]})
    column = encoder.fit_sketch(sketch).columns_[0]
    assert (column.kind, column.step) == ("number", 0.0)
    sketch = encoder.sketch({"x": [None]}) + encoder.sketch({"x": [1, 2]})
    assert encoder.fit_sketch(sketch).columns_[0].kind == "integer"


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ({"x": [1, 2]}, {"x": ["a", "b"]}, "column 'x' holds categories here and integers"),
        ({"x": [1]}, {"y": [1]}, "column 'x', unlike"),
        ({"x": [1], "y": [1]}, {"x": [1]}, "it has no column 'y'"),
    ],
)
def test_chunks_that_do_not_fit_together(first, second, why):
    encoder = Encoder()
    with pytest.raises(DomainError, match=why):
        encoder.sketch(first) + encoder.sketch(second)


def test_arrays_of_codes_are_refused():
    with pytest.raises(DomainError, match="named columns"):
        Encoder().sketch(np.zeros((2, 2), int))


@settings(max_examples=40, deadline=None)
@given(values=st.lists(st.integers(0, 20), min_size=1, max_size=80), cuts=CUTS)
def test_many_categories_are_counted_within_the_stated_error(values, cuts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(category_sketch, "MAX_TRACKED", 5)
        levels = tuple(range(21))
        parts = [
            CategorySketch.from_levels(np.array(part, np.int64), levels, None)
            for part in chunks(values, cuts)
        ]
        sketch = total(parts)
    counts = np.bincount(values, minlength=21)
    assert len(sketch.counts) <= 5
    assert sketch.error <= len(values) / 5
    found = dict(sketch.counts.values())
    for level, count in enumerate(counts.tolist()):
        assert found.get(level, 0.0) <= count <= found.get(level, 0.0) + sketch.error
    if len(set(values)) <= 5:
        assert found == {level: c for level, c in enumerate(counts.tolist()) if c}
