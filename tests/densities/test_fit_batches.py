"""Learning by chunks: what is learned from all rows at once, however they are divided."""

from __future__ import annotations

import tracemalloc
from contextlib import closing
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expecta import (
    PSDD,
    BatchError,
    ChowLiu,
    DomainError,
    Encoder,
    Independent,
    LatentTree,
    NaiveBayes,
)
from expecta.densities import row_chunks
from expecta.densities.row_chunks import BatchSource, ChunkSummary, row_priorities
from expecta.densities.tree_learner import chunk_counts
from expecta.learn.trees.expectation import expected_counts
from expecta.learn.weighted_rows import WeightedRows


def table(n=600, seed=0, missing=0.1):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "a": rng.normal(z, 0.4).round(2),
            "b": np.where(rng.random(n) < 0.8, z, rng.integers(0, 3, n)).astype(str),
            "c": rng.normal(-z, 1.0).round(1),
            "d": rng.random(n) < 0.3,
        }
    )
    return frame.mask(rng.random(frame.shape) < missing)


def divided(frame, cuts):
    ends = [0, *sorted(cuts), len(frame)]
    return [frame.iloc[a:b] for a, b in pairwise(ends)]


@pytest.fixture
def small_samples(monkeypatch):
    """Let a few hundred rows be more than a sample, and a chunk fifty."""
    monkeypatch.setattr(row_chunks, "SAMPLE_ROWS", 200)
    monkeypatch.setattr(row_chunks, "CHUNK_CELLS", 200)


@pytest.mark.parametrize("density", [ChowLiu(), LatentTree(states=3, restarts=1), PSDD()])
def test_few_rows_are_learned_as_from_one_table(density, monkeypatch):
    frame = table(120)
    want = type(density)(**density.get_params()).fit(frame)
    found = density.fit_batches(divided(frame, [7, 7, 60]))
    assert np.array_equal(found.encoder_.codes(frame), want.encoder_.codes(frame))
    assert np.array_equal(found.score_samples(frame), want.score_samples(frame))


@settings(max_examples=8, deadline=None)
@given(cuts=st.lists(st.integers(0, 600), max_size=5), chunk=st.integers(20, 700))
def test_a_step_of_em_is_the_sum_over_chunks(cuts, chunk):
    """Expected counts of any chunks are those of all rows, to 1e-12 of the largest."""
    frame = table()
    model = LatentTree(states=3, restarts=1, max_epochs=2).fit(frame.iloc[:200])
    codes = model.encoder_.codes(frame)
    rows = model._tree_rows(model.tree_, WeightedRows(codes, np.ones(600)))
    want = expected_counts(model._layout_, model._theta, rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_chunks, "CHUNK_CELLS", 4 * chunk)
        step = partial(chunk_counts, layout=model._layout_, theta=model._theta)
        with closing(BatchSource(divided(frame, cuts)).encoded(model.encoder_)) as chunks:
            found = chunks.total(step)
    largest = np.abs(want.counts).max()
    assert np.allclose(found.counts, want.counts, rtol=1e-12, atol=1e-12 * largest)
    assert found.weight == want.weight
    assert found.log_likelihood == pytest.approx(want.log_likelihood, rel=1e-12)
    prior = model._prior(model._layout_)
    ours, theirs = (prior.maximise(counts.counts, model._theta) for counts in (found, want))
    assert np.allclose(ours, theirs, rtol=0, atol=1e-12)


DENSITIES = {
    "chow-liu": ChowLiu(),
    "naive bayes": NaiveBayes(),
    "independent": Independent(),
    "latent": LatentTree(states=3, restarts=1),
    "balanced": LatentTree(states=(2, 4), restarts=1, tree="balanced"),
    "psdd": PSDD(max_parameters=300),
}


@pytest.mark.parametrize("name", list(DENSITIES))
def test_many_rows_give_one_model_however_they_are_divided(name, small_samples, monkeypatch):
    frame = table()
    first = DENSITIES[name].fit_batches(divided(frame, [100, 300]))
    scores = first.score_samples(frame)
    theta = getattr(first, "_theta", None)
    monkeypatch.setattr(row_chunks, "CHUNK_CELLS", 700)
    again = DENSITIES[name].fit_batches(lambda: iter(divided(frame, [1, 2, 2, 599])))
    assert np.allclose(again.score_samples(frame), scores, rtol=1e-9)
    if theta is not None:
        assert np.allclose(again._theta, theta, rtol=0, atol=1e-10)
    assert again.learned_.held_out_rows == 67
    if name == "psdd":  # which learns from the sample alone
        assert again.learned_.rows == 133
        assert "from a sample" in again.learned_.how
        return
    assert again.learned_.rows == 533
    in_memory = type(again)(**again.get_params()).fit(frame)
    assert again.score(frame) == pytest.approx(in_memory.score(frame), abs=0.3)


def test_a_tree_of_counts_is_that_of_all_rows(small_samples):
    """Without missing values, counting chunks is counting rows."""
    frame = table(missing=0.0)
    found, want = ChowLiu().fit_batches(divided(frame, [250])), ChowLiu().fit(frame)
    assert np.array_equal(found.tree_.variable, want.tree_.variable)
    assert np.allclose(found.score_samples(frame), want.score_samples(frame), rtol=1e-9)
    assert "2 steps over all rows" in found.learned_.how


def test_a_density_of_chunks_goes_on(small_samples):
    frame = table()
    density = ChowLiu().fit_batches(divided(frame, [300]))
    before = density.score(frame)
    density.partial_fit(frame.iloc[:50])
    assert density.score(frame) == pytest.approx(before, abs=0.05)


def test_too_many_combinations_are_left_to_the_sample(small_samples, monkeypatch):
    frame = table()
    monkeypatch.setattr(row_chunks, "MAX_CELLS", 10)
    assert ChowLiu().fit_batches([frame]).score(frame) > ChowLiu().fit(frame).learned_.independent


@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(0, 300), max_size=4), seed=st.integers(0, 2**62))
def test_samples_do_not_depend_on_chunks(cuts, seed):
    codes = np.random.default_rng(1).integers(0, 3, (300, 2)).astype(np.int32)
    cards = np.array([3, 3], np.int32)
    ends = [0, *sorted(cuts), 300]
    parts = [ChunkSummary.of(codes[a:b], a, cards, seed, 40) for a, b in pairwise(ends)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    whole = ChunkSummary.of(codes, 0, cards, seed, 40)
    ours, theirs = total.sample(), whole.sample()
    assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
    assert np.count_nonzero(ours[1]) == 14


def test_random_numbers_of_rows_are_even():
    numbers = row_priorities(0, 100_000, 7)
    assert len(np.unique(numbers)) == 100_000
    counts = np.bincount((numbers >> np.uint64(60)).astype(int), minlength=16)
    assert np.all(np.abs(counts - 6250) < 5 * np.sqrt(6250))
    assert np.array_equal(row_priorities(500, 10, 7), numbers[500:510])
    assert not np.array_equal(row_priorities(0, 10, 8), numbers[:10])


# -- batches at fault ---------------------------------------------------------------------


def test_batches_that_cannot_be_learned_from():
    good = pa.table({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]})
    with pytest.raises(BatchError, match="batch 1: it has no column 'b'"):
        ChowLiu().fit_batches([good, good.drop_columns("b")])
    texts = good.set_column(0, "a", pa.array(["1", "many", "3"]))
    with pytest.raises(BatchError, match="batch 1: column 'a' holds categories here and numbers"):
        ChowLiu().fit_batches([good, texts])
    with pytest.raises(BatchError, match="batch 1, row 1: column 'a'"):
        ChowLiu(encoder=Encoder(numeric=["a"])).fit_batches([good, texts])
    with pytest.raises(DomainError, match="no rows"):
        ChowLiu().fit_batches([good.slice(0, 0)])
    with pytest.raises(DomainError, match="no rows"):
        ChowLiu().fit_batches([])
    with pytest.raises(DomainError, match="read more than once"):
        ChowLiu().fit_batches(iter([good]))


def test_types_that_fit_and_empty_batches():
    whole = pa.table({"a": [1, 2, 3], "b": ["x", "y", "x"]})
    cut = pa.table({"a": [1.5, None, 3.0], "b": ["new", "y", None]})
    found = ChowLiu().fit_batches([whole.slice(0, 0), whole, cut, cut.slice(0, 0)])
    assert found.encoder_.columns_[0].kind == "number"
    assert found.encoder_.columns_[1].labels == ("new", "x", "y")


def test_memory_does_not_grow_with_the_rows(monkeypatch):
    monkeypatch.setattr(row_chunks, "SAMPLE_ROWS", 500)
    monkeypatch.setattr(row_chunks, "CHUNK_CELLS", 4000)
    one = table(1000)

    def peak(count):
        tracemalloc.start()
        ChowLiu().fit_batches([one] * count)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak(2)
    assert peak(24) < 1.3 * peak(6)
