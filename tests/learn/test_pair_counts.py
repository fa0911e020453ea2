"""Counts of pairs by chunks: the information of all rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expecta.learn.information import edge_information, mutual_information
from expecta.learn.pair_counts import PairCounts
from expecta.learn.weighted_rows import WeightedRows


def rows(seed, n=80):
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 6, rng.integers(1, 5)).astype(np.int32)
    codes = rng.integers(-1, cards, (n, len(cards))).astype(np.int32)
    return codes, cards, rng.integers(0, 3, n).astype(np.float64)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), cuts=st.lists(st.integers(0, 80), max_size=4))
def test_counts_of_chunks_add_up(seed, cuts):
    codes, cards, weight = rows(seed)
    ends = [0, *sorted(cuts), 80]
    parts = [PairCounts.of(codes[a:b], cards, weight[a:b]) for a, b in pairwise(ends)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    whole = PairCounts.of(codes, cards, weight)
    assert np.array_equal(total.pairs, whole.pairs)
    assert np.array_equal(total.single, whole.single)
    for (i, j), table in whole.tables.items():
        both = (codes[:, i] >= 0) & (codes[:, j] >= 0)
        assert table.sum() == weight[both].sum()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), pseudo_count=st.sampled_from([0.0, 1.0]))
def test_information_is_that_of_the_rows(seed, pseudo_count):
    codes, cards, weight = rows(seed)
    codes, weight = codes[weight > 0], weight[weight > 0]
    counts = PairCounts.of(codes, cards, weight)
    want = mutual_information(codes, cards, weight, pseudo_count=pseudo_count)
    assert counts.mutual_information(pseudo_count) == pytest.approx(want, abs=1e-12)
    want = edge_information(codes, cards, weight, pseudo_count=pseudo_count)
    assert counts.edge_information(pseudo_count) == pytest.approx(want, abs=1e-12)
    groups = [np.arange(card) // 2 for card in cards.tolist()]
    one = WeightedRows(codes, weight).edge_information(groups, pseudo_count=pseudo_count)
    other = WeightedRows(codes[:1], weight[:1], counts)
    found = other.edge_information(groups, pseudo_count=pseudo_count)
    assert found == pytest.approx(one, abs=1e-12)
