"""Cells unlike the training data are named: by outliers, notes of the command and the service."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from expecta import ChowLiu, DomainError, Encoder, QueryError
from expecta.ask.language.query import Query
from expecta.ask.outliers import outliers
from expecta.tables.estimator_inputs import read_rows
from expecta.tables.unfamiliar_cells import UnfamiliarCounts, unfamiliar_cells

RNG = np.random.default_rng(3)
N = 400
TABLE = pd.DataFrame(
    {
        "age": RNG.integers(20, 71, N),
        "size": RNG.normal(size=N),
        "sex": RNG.choice(["f", "m"], N),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 100, N), "D"),
    }
)
ROWS = pd.DataFrame(
    {
        "age": [45, 150, 72, None],
        "size": [0.1, None, -40.0, 0.0],
        "sex": ["f", "divers", "m", None],
        "day": pd.to_datetime(["2024-02-01", "2024-02-01", "2031-01-01", None]),
    }
)
UNLIKE = [[0, 0, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 0, 0]]  # 72 is near the range


def test_a_range_beyond_the_largest_float_is_near_every_number():
    encoder = Encoder().fit({"x": [-1.2e308, 0.0, 1.2e308]})
    table = read_rows({"x": [1.7e308, -1.7e308, 5.0, None]}, encoder)
    assert not unfamiliar_cells(table, encoder, encoder.codes(table)).any()


def test_new_categories_and_far_numbers_are_found():
    encoder = Encoder().fit(TABLE)
    table = read_rows(ROWS, encoder)
    assert unfamiliar_cells(table, encoder, encoder.codes(table)).astype(int).tolist() == UNLIKE
    counts = UnfamiliarCounts(encoder)
    for _ in range(2):
        counts.add(table, encoder.codes(table))
    assert counts.total == 8
    age, size, sex, day = counts.sentences()
    low, high = TABLE["age"].min(), TABLE["age"].max()
    assert f"({low} to {high}), in 2 rows" in age
    assert age.endswith(": 150")
    assert "-40" in size
    assert "2031-01-01" in day
    assert sex == (
        "column 'sex' has values that are not in the training data, in 2 rows; "
        "they count as unknown: 'divers'"
    )


def test_numbers_in_wide_gaps_are_found():
    table = {"x": [1, 2, 3, 5, 6, 7, 8, 50, 51, 52, 53] * 9, "code": [0, 1, 1] * 33}
    encoder = Encoder(max_bins=3).fit(table)
    rows = read_rows({"x": [4, 13, 30, 44, 45, 8], "code": [0, 1, 0.5, None, 0.15, 1]}, encoder)
    codes = encoder.codes(rows)
    expected = [[0, 0], [0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]
    assert unfamiliar_cells(rows, encoder, codes).astype(int).tolist() == expected
    counts = UnfamiliarCounts(encoder)
    counts.add(rows, codes)
    x, code = counts.sentences()
    assert "far from the training data (1 to 8 and 50 to 53), in 2 rows" in x
    assert "(0 and 1), in 2 rows; each counts as the nearest bin: 0.5, 0.15" in code


@pytest.mark.parametrize("draw", ["normal", "lognormal", "standard_t", "poisson", "exponential"])
def test_gaps_of_ordinary_columns_are_not_wide(draw):
    rng = np.random.default_rng(0)
    options = {"standard_t": (3,), "poisson": (4,)}.get(draw, ())
    flagged = cells = 0
    for _ in range(20):
        x = getattr(rng, draw)(*options, size=(2, 200))
        encoder = Encoder().fit({"x": x[0]})
        inside = x[1][(x[1] >= x[0].min()) & (x[1] <= x[0].max())]
        rows = read_rows({"x": inside}, encoder)
        flagged += int(unfamiliar_cells(rows, encoder, encoder.codes(rows)).sum())
        cells += len(inside)
    assert flagged <= cells / 1000


def test_training_rows_are_familiar():
    encoder = Encoder(missing_is_value=["sex"]).fit(TABLE.mask(RNG.random(TABLE.shape) < 0.1))
    table = read_rows(TABLE.mask(RNG.random(TABLE.shape) < 0.3), encoder)
    assert not unfamiliar_cells(table, encoder, encoder.codes(table)).any()


def test_outliers_name_what_training_did_not_have():
    answer = outliers(ChowLiu().fit(TABLE), ROWS)
    assert answer.unfamiliar.astype(int).tolist() == UNLIKE
    assert np.all(answer.tail[answer.unfamiliar] == 0)
    lines = answer.lines()
    assert set(lines["row"][:2].tolist()) == {1, 2}
    assert "divers" in answer.known[1]
    assert "150" in answer.known[1]
    assert "2 rows with values unlike the training data" in str(answer)
    assert "unlike the training data" not in str(outliers(ChowLiu().fit(TABLE), TABLE.iloc[:5]))


def test_a_number_in_a_gap_between_bins_stands_for_its_bin():
    encoder = Encoder(max_bins=8).fit(TABLE)
    size, age = encoder.column("size"), encoder.column("age")
    middle = (size.highs[:-1] + size.lows[1:]) / 2
    for x in middle.tolist():
        query = Query.read({"size": x}, encoder)
        assert query.approximate == ["a number of 'size' stands for its bin"]
        assert query.evidence(encoder).weights(1)[0].tolist().count(1.0) == 1
    far = Query.read({"size": 40.0}, encoder)
    assert far.approximate == ["no such value in the training data: size = 40"]
    gap = {"x": [1, 2, 3, 5, 6, 7, 8, 50, 51, 52, 53] * 9}
    wide = Encoder(max_bins=3).fit(gap)
    assert "no such value" in Query.read({"x": 30}, wide).approximate[0]
    assert age.step


def test_a_whole_number_in_a_gap_counts_as_the_nearest():
    prices = np.arange(1000, 3000, 10)
    encoder = Encoder(max_bins=6).fit({"price": prices})
    column = encoder.column("price")
    inside = float(column.highs[2])
    nearest = Query.read({"price": inside}, encoder).evidence(encoder).weights(0)
    asked = Query.read({"price": inside + 1}, encoder)
    assert np.array_equal(asked.evidence(encoder).weights(0), nearest)


def test_a_reversed_interval_is_refused():
    encoder = Encoder().fit(TABLE)
    with pytest.raises(DomainError, match=r"reversed; write \(30, 40\)"):
        encoder.where(age=(40, 30))
    with pytest.raises(QueryError, match="reversed"):
        Query.read({"age": (40, 30)}, encoder)
    assert encoder.where(age=(30, 30)).weights(0).sum() > 0


def test_conditioning_on_one_row_keeps_its_numbers():
    density = ChowLiu().fit(TABLE)
    row = TABLE.iloc[[7]][["age", "size"]].assign(sex=None, day=None)
    for facts in (row, row.iloc[0].dropna().to_dict()):
        drawn = density.condition(facts).sample(5, random_state=0)
        assert drawn["age"].tolist() == [row["age"].iloc[0]] * 5
        assert drawn["size"].tolist() == [row["size"].iloc[0]] * 5
    with pytest.raises(DomainError, match="about one row, and 2"):
        density.condition(TABLE.iloc[:2])
