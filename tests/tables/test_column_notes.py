"""Columns that look odd are named once, with the option that settles it; and it does."""

from __future__ import annotations

import datetime as dt
import re
from ast import literal_eval

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression

from expecta import ChowLiu, CircuitRegressor, Encoder, ExpectedPredictor, QueryError

N = 60
I = np.arange(N)  # noqa: E741
ODD = {
    "?": ("hours", [("?" if i % 9 == 0 else str(20 + i % 7)) for i in I], "number"),
    "dates": ("sold", [f"2014{1 + i % 12:02d}{1 + i % 28:02d}T000000" for i in I], "date"),
    "day/month": ("seen", [f"{1 + i % 28:02d}/{1 + i % 12:02d}/2014" for i in I], "date"),
    "month/day": ("met", [f"{1 + i % 12:02d}/{1 + i % 28:02d}/2014" for i in I], "date"),
    "whole dates": ("built", [20140100 + 1 + i % 28 for i in I], "date"),
    "codes": ("zipcode", [98001 + 3 * (i % 5) for i in I], "category"),
    "codes by digits": ("place", [10400 + i % 3 for i in I], "category"),
    "commas": ("price", [f"{i},5" for i in I], "number"),
    "? among commas": ("wage", [("?" if i % 9 == 0 else f"{i},5") for i in I], "number"),
    "number texts": ("count", [str(i % 7) for i in I], "number"),
    "leading zeros": ("plate", [f"{i % 7:03d}" for i in I], "number"),
    "-999": ("rain", [-999.0 if i % 10 == 0 else i / 7 for i in I], "number"),
    "-999 beside thousands": ("cells", [-999 if i % 10 == 0 else 70 * i for i in I], "integer"),
    "999": ("days", [999 if i % 3 else i % 20 for i in I], "integer"),
}


def options_of(note):
    """Return the options that a note tells of, in Python."""
    given = re.findall(r"(\w+)=(\[[^\]]*\]|\{[^}]*\}|'.')", note)
    return {name: literal_eval(value) for name, value in given}


@pytest.mark.parametrize("case", ODD)
def test_the_option_of_a_note_settles_it(case):
    name, cells, kind = ODD[case]
    table = {name: cells, "calm": [["a", "b", "c"][i % 3] for i in I]}
    plain = Encoder().fit(table)
    assert len(plain.notes_) == 1, plain.notes_
    assert repr(name) in plain.notes_[0]
    settled = Encoder(**options_of(plain.notes_[0])).fit(table)
    assert settled.notes_ == []
    assert settled.columns_[0].kind == kind
    if "999" in case or "?" in case:
        marked = [cell in ("?", -999, 999) for cell in cells]
        assert (settled.transform(table)[:, 0] < 0).tolist() == marked
    for frame in (pd.DataFrame(table), pl.DataFrame(table)):
        assert np.array_equal(settled.transform(frame), settled.transform(table))


def test_columns_alike_share_a_note():
    table = {f"c{i}": ["?", "a", "b"] * 20 for i in range(7)}
    notes = Encoder().fit({**table, "x": ["none", "some"] * 30}).notes_
    assert notes == [
        "'?' is a category of columns 'c0', 'c1', 'c2', 'c3' and 3 more; if it means missing: "
        "na=['?'], or --na '?'",
        "'none' is a category of column 'x'; if it means missing: na=['none'], or --na none",
    ]
    one_row = Encoder().fit({f"c{i}": [i] for i in range(21)}).notes_
    assert one_row == [
        "columns 'c0', 'c1', 'c2', 'c3' and 17 more have the same value in every row"
    ]


def test_plain_columns_have_no_notes():
    table = {
        "age": 18 + I % 50,
        "year": 1900 + I % 90,
        "salary": 20_000 + 997 * I,
        "temperature": -1 + I % 3,
        "score": 90 + I % 10,
        "text": [f"word {i % 7}" for i in I],
        "size": [["S", "M", "L"][i % 3] for i in I],
        "version": [["1.0", "2.0"][i % 2] for i in I],
        "day": [dt.date(2024, 1, 1 + i % 28) for i in I],
    }
    assert Encoder().fit(table).notes_ == []


def test_what_means_missing_does_so_everywhere():
    encoder = Encoder(na=["?", -999], dates={"d": "%d.%m.%Y"}, decimal=",", numeric=["n"])
    table = {
        "c": ["a", "?", "b", "a"],
        "x": [1.0, -999.0, 2.0, 3.0],
        "d": ["31.12.2023", "?", "1.1.2024", "2.1.2024"],
        "n": ["1.000,5", "2", "?", "3"],
    }
    encoder.fit(table)
    wanted = [[0, 0, 0, 2], [-1, -1, -1, 0], [1, 1, 1, -1], [0, 2, 2, 1]]
    assert encoder.transform(table).tolist() == wanted
    assert encoder.transform(pd.DataFrame(table)).tolist() == wanted
    rows = [list(row) for row in zip(*table.values(), strict=True)]
    named = [dict(zip(table, row, strict=True)) for row in rows]
    assert encoder.transform(named).tolist() == wanted
    array = Encoder(na=["?", -999], dates={"x2": "%d.%m.%Y"}, decimal=",", numeric=["x3"]).fit(rows)
    assert array.transform(rows).tolist() == wanted
    floats = Encoder(na=[-999]).fit(np.array([[1.0], [-999.0], [2.0]]))
    assert floats.transform(np.array([[-999.0], [2.0]])).tolist() == [[-1], [1]]
    assert encoder.columns_[3].means.tolist() == [2.0, 3.0, 1000.5]
    declared = pd.DataFrame({"c": pd.Categorical(["a", "?"], ["?", "a", "b"])})
    assert Encoder(na=["?"]).fit(declared).columns_[0].values == ("a", "b")


def test_more_categories_where_rows_bear_it():
    few, many = [f"z{i % 70}" for i in range(500)], [f"z{i % 70}" for i in range(2000)]
    assert Encoder().fit({"zip": few}).cardinalities_.tolist() == [64]
    assert Encoder().fit({"zip": many}).cardinalities_.tolist() == [70]
    [note] = Encoder().fit({"zip": few}).notes_
    assert "to keep all: max_categories=70, or --max-categories 70; if they identify rows" in note
    assert Encoder(max_categories=70).fit({"zip": few}).notes_ == []


def test_what_means_missing_does_so_for_models():
    marked = pd.DataFrame({"x": np.where(I % 7, I / 3, -999.0), "c": np.where(I % 5, "a", "?")})
    plain = marked.mask((marked == -999.0) | (marked == "?"))
    encoder = Encoder(na=["?", -999])
    models = [
        CircuitRegressor(density=ChowLiu(encoder=one), max_splits=1).fit(table, I % 9)
        for one, table in ((encoder, marked), (Encoder(), plain))
    ]
    first, second = (model.predict(marked.assign(c="a")) for model in models)
    assert np.array_equal(models[0].predict(marked), models[1].predict(plain))
    assert np.array_equal(first, models[1].predict(plain.assign(c="a")))
    assert not np.array_equal(first, second)
    inner = LinearRegression().fit(pd.DataFrame({"x": I / 3}), I)
    wrapped = ExpectedPredictor(inner, ChowLiu(encoder=Encoder(na=[-999]))).fit(marked[["x"]])
    assert np.allclose(wrapped.predict({"x": -999.0}), wrapped.predict({"x": None}))


def test_a_rare_category_is_asked_with_those_that_share_its_value():
    zips = [f"z{i % 60}" for i in range(500)] + [f"r{i}" for i in range(9)]
    y = np.arange(len(zips)) % 7.0
    model = CircuitRegressor(density=ChowLiu(), max_splits=0).fit({"zip": zips}, y)
    answer, other = model.ask("zip == 'r3'"), model.ask("zip == 'other'")
    assert answer.mean == other.mean
    assert "'r3' of 'zip' shares the value 'other' with the 6 rarest categories" in str(answer)
    assert "shares" not in str(other)
    with pytest.raises(QueryError, match=r"no value 'r33'.*did you mean 'r3'"):
        model.ask("zip == 'r33'")
    assert model.predict({"zip": "r3"}) == model.predict({"zip": "r4"})
