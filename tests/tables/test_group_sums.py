"""Sums over groups of training rows, against the rows one by one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expecta import Encoder
from expecta.tables import group_sums
from expecta.tables.group_sums import MIN_ROWS, GroupSums
from expecta.tables.table import read_table
from expecta.tables.training_rows import TrainingRows


def world(seed, n=200, classes=None, weighted=True):
    """A table with missing cells and rare values, its training rows and its encoder."""
    rng = np.random.default_rng(seed)
    hidden = rng.random((4, n)) < 0.08
    table = {
        "number": np.where(hidden[0], np.nan, rng.normal(size=n).round(1)),
        "whole": np.where(hidden[1], np.nan, rng.geometric(0.3, n)),
        "text": [
            None if h else t for h, t in zip(hidden[2], rng.choice(list("aabbbcd"), n), strict=True)
        ],
        "rare": [f"{k}" if k < 9 else "common" for k in rng.integers(0, 60, n)],
    }
    encoder = Encoder(max_bins=40).fit(table)
    y = rng.normal(1e6, 2.0, n) if classes is None else rng.integers(classes, size=n) * 1.0
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], n) if weighted else np.ones(n)
    return encoder, TrainingRows.from_table(read_table(table), encoder, y, weight, "y")


def outputs_of(training, n_outputs=2):
    """What a model says of each row."""
    return np.random.default_rng(7).normal(1e6, 2.0, (len(training), n_outputs))


def sums_of(encoder, training, classes=None):
    outputs = outputs_of(training)
    return GroupSums.from_rows(training, encoder, classes, outputs, np.ones((2, 3)))


def codes_of(encoder, training):
    return [training.codes(column, v) for v, column in enumerate(encoder.columns_)]


@pytest.mark.parametrize("classes", [None, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_tables_are_the_sums_of_their_rows(seed, classes):
    encoder, training = world(seed, classes=classes)
    sums = sums_of(encoder, training, classes)
    codes, used = codes_of(encoder, training), training.weight > 0
    assert len(sums) == len(training)
    assert set(combinations(range(4), 1)) < set(sums.tables)
    assert len(sums.tables) > 5
    for variables, table in sums.tables.items():
        inside = used.copy()
        for v in variables:
            inside &= codes[v] >= 0
        assert table.rows.sum() == inside.sum()
        for cell in range(len(table.rows)):
            rows = inside.copy()
            shape = [group.max() + 1 for group in table.groups]
            for v, group, k in zip(
                variables, table.groups, np.unravel_index(cell, shape), strict=True
            ):
                rows &= np.isin(codes[v], np.flatnonzero(group == k))
            w = training.weight[rows]
            assert table.rows[cell] == rows.sum()
            np.testing.assert_allclose(table.weight[cell], w.sum())
            np.testing.assert_allclose(table.weight_squares[cell], w @ w)
            for k in range(classes or 1):
                y = training.outcome(None if classes is None else k)[rows] - sums.center[k]
                np.testing.assert_allclose(table.sums[cell, k], w @ y, atol=1e-9)
                np.testing.assert_allclose(table.squares[cell, k], w @ y**2, atol=1e-9)
            output = outputs_of(training)[rows] - sums.output_center
            np.testing.assert_allclose(table.output_sums[cell], w @ output, atol=1e-9)
            np.testing.assert_allclose(table.output_squares[cell], w @ output**2, atol=1e-9)


@given(st.integers(0, 10**6), st.integers(5, 400), st.sampled_from([None, 2]))
@settings(max_examples=40)
def test_no_cell_has_few_rows_nor_does_a_difference_of_cells(seed, n, classes):
    encoder, training = world(seed, n, classes)
    sums = sums_of(encoder, training, classes)
    if sums is None:
        assert np.count_nonzero(training.weight) < MIN_ROWS
        return
    for variables, table in sums.tables.items():
        assert not np.any((table.rows > 0) & (table.rows < MIN_ROWS))
        for v, group in zip(variables, table.groups, strict=True) if len(variables) == 2 else ():
            # every group is made of whole groups of the column by itself
            fine = sums.tables[v,].groups[0]
            np.testing.assert_array_equal(fine >= 0, group >= 0)
            for k in range(fine.max() + 1):
                assert len(set(group[fine == k])) == 1


def test_sizes_are_bounded(monkeypatch):
    rng = np.random.default_rng(0)
    table = {f"x{i}": rng.normal(size=300) for i in range(40)}
    encoder = Encoder(max_bins=300).fit(table)
    training = TrainingRows.from_table(
        read_table(table), encoder, rng.normal(size=300), np.ones(300), "y"
    )
    sums = sums_of(encoder, training)
    numbers = sum(5 * table.rows.size for key, table in sums.tables.items() if len(key) == 2)
    assert 0 < numbers <= group_sums.MAX_NUMBERS
    assert max(len(sums.tables[v,].rows) for v in range(40)) <= group_sums.MAX_GROUPS
    monkeypatch.setattr(group_sums, "MAX_WORK", 40 * 39 // 2 * 300 - 1)
    assert len(sums_of(encoder, training).tables) == 41
    assert group_sums._pair_groups(100_000, 10, 1) < 2


@pytest.mark.parametrize("seed", range(5))
def test_parts_of_whole_cells_are_exact(seed):
    encoder, training = world(seed)
    sums, codes = sums_of(encoder, training), codes_of(encoder, training)
    rng = np.random.default_rng(seed)
    for variables, table in sums.tables.items():
        counts = [sums.counts[v] for v in variables]
        of_cell = rng.integers(-1, 3, len(table.rows))
        part = np.where(table.cell >= 0, of_cell[table.cell], rng.integers(-1, 3))
        totals = table.divide(counts, part, np.ones(part.shape), 3)
        assert np.all(totals.exact)
        row_part = np.full(len(training), int(part)) if not variables else -np.ones(len(training))
        if variables:
            known = np.all([codes[v] >= 0 for v in variables], axis=0)
            row_part[known] = part[tuple(codes[v][known] for v in variables)]
        for k in range(3):
            rows = (row_part == k) & (training.weight > 0)
            assert totals.rows[k] == pytest.approx(rows.sum())
            ours, theirs = sums.average(totals, k, None), training.average(rows, None)
            assert (ours is None) == (theirs is None)
            if ours is not None:
                np.testing.assert_allclose(
                    [ours.mean - 1e6, ours.low - 1e6, ours.high - 1e6],
                    [theirs.mean - 1e6, theirs.low - 1e6, theirs.high - 1e6],
                    atol=1e-7,
                )


def test_parts_that_divide_cells_count_by_share():
    encoder, training = world(0)
    sums = sums_of(encoder, training)
    table = sums.tables[0,]
    one, n = np.zeros(len(table.cell), int), len(table.cell)
    whole = table.divide([sums.counts[0]], one, np.ones(n), 1)
    half = table.divide([sums.counts[0]], one, np.full(n, 0.5), 1)
    assert whole.exact[0]
    assert not half.exact[0]
    assert half.rows[0] == pytest.approx(0.5 * whole.rows[0])
    both = table.divide([sums.counts[0]], np.arange(n) % 2, np.ones(n), 2)
    assert not both.exact.any()
    assert both.rows.sum() == pytest.approx(whole.rows[0])
    assert both.sums.sum() == pytest.approx(whole.sums.sum())


def test_a_row_that_has_all_the_weight():
    _, training = world(0)
    weight = np.zeros(len(training))
    weight[:2] = 1.0, 1e-20
    heavy = TrainingRows(training.columns, training.target, weight, "y")
    average = heavy.average(weight > 0, None)
    assert average.mean == pytest.approx(training.target[0])
    assert np.isnan(average.low)


def test_without_a_target_there_are_counts_only():
    encoder, training = world(0)
    bare = TrainingRows(training.columns, None, training.weight, "y")
    sums = sums_of(encoder, bare)
    table = sums.tables[()]
    totals = table.divide([], np.zeros((), int), np.ones(()), 1)
    assert totals.rows[0] == np.count_nonzero(training.weight)
    assert sums.average(totals, 0, None) is None


def test_the_interval_of_a_share_stays_between_zero_and_one():
    """Wilson's interval, by its own equation: |share - p| = z sqrt(p (1 - p) / n) at both ends."""
    from expecta.tables.training_rows import average_from_sums

    for hits, n in ((0, 3), (1, 9), (7, 7), (40, 100)):
        found = average_from_sums(n, n, float(hits), float(hits), 0.0, True)
        assert found.mean == pytest.approx(hits / n)
        assert 0.0 <= found.low <= found.mean <= found.high <= 1.0
        assert found.high > found.low
        for end in (found.low, found.high):
            if 0.0 < end < 1.0:
                width = 1.959963984540054 * np.sqrt(end * (1 - end) / n)
                assert abs(hits / n - end) == pytest.approx(width, rel=1e-9)
