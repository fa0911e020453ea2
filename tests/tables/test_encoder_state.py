"""Encoders from damaged or hostile files: a FormatError, or an encoder that works."""

from __future__ import annotations

import copy
import datetime as dt
import json

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings

from expecta import FormatError
from expecta.tables import Encoder
from expecta.tables.table import SOURCES

TABLE = {
    "text": ["b", None, "a", "b"],
    "many": ["p", "q", "q", "r"],
    "flag": [True, False, None, True],
    "whole": [3, 1, None, 3],
    "real": [0.5, None, -1.25, 7.0],
    "time": [
        dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        None,
        None,
        dt.datetime(2025, 1, 1, tzinfo=dt.UTC),
    ],
    "day": [dt.date(2024, 1, 1), None, dt.date(2024, 1, 2), None],
    "mixed": [1, "1", dt.date(2024, 1, 1), dt.timedelta(1)],
    "nothing": [None] * 4,
}
FITTED = Encoder(
    max_categories=5,
    bins={"real": [-2, 0, 9], "day": [dt.date(2023, 1, 1), "2024-01-02", "2026-01-01"]},
    thresholds={"whole": np.array([1.5])},
    kinds={"text": "category"},
).fit(TABLE)
HEADER, ARRAYS = FITTED.state()
FRAMES = {
    "dict": HEADER,
    "pandas": Encoder(**FITTED.get_params()).fit(pd.DataFrame(TABLE)).state()[0],
    "polars": Encoder(**FITTED.get_params())
    .fit(pl.DataFrame({**TABLE, "mixed": ["1", "2", "3", "4"]}))
    .state()[0],
}
DTYPES = [
    "category",
    "Enum",
    "Int8",
    "date",
    "string[pyarrow]",
    "datetime64[ns, UTC]",
    "Arrow string",
]


def works(encoder):
    """Use everything that an encoder offers."""
    table = {name: TABLE.get(name, [None] * 4) for name in encoder.feature_names_in_}
    try:
        codes = encoder.transform(table)
    except ValueError:  # a column of another kind may not like these cells; it says so
        codes = np.full((4, len(encoder.columns_)), -1)
    assert codes.shape == (4, len(encoder.columns_))
    assert np.all((codes >= -1) & (codes < encoder.cardinalities_))
    back = encoder.inverse_transform(codes, random_state=0)
    assert len(back[encoder.feature_names_in_[0]] if isinstance(back, dict) else back) == 4
    for column in encoder.columns_:
        assert len(column.labels) == column.cardinality
    assert encoder.summary()
    assert encoder.where().n_rows == 1
    header, arrays = encoder.state()
    again = Encoder.from_state("again", json.loads(json.dumps(header)), arrays)
    assert again.cardinalities_.tolist() == encoder.cardinalities_.tolist()


def attempt(header, arrays):
    try:
        encoder = Encoder.from_state("some file", header, arrays)
    except FormatError:
        return
    works(encoder)


def test_the_state_is_json_and_three_types():
    text = json.dumps(HEADER, allow_nan=False)
    assert {array.dtype.name for array in ARRAYS.values()} <= {"int32", "int64", "float64"}
    works(Encoder.from_state("f", json.loads(text), ARRAYS))


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["category", "number", "code", "unknown", "pandas", "codes", "inf", "Int64"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["date", "datetime", "duration", "float", "map", "x"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=6,
)


def places(node, path=()):
    """All places in a JSON document."""
    yield path
    if isinstance(node, dict | list):
        for name, child in node.items() if isinstance(node, dict) else enumerate(node):
            yield from places(child, (*path, name))


PLACES = list(places(HEADER))


@settings(max_examples=400)
@given(st.sampled_from(PLACES), junk, st.booleans())
def test_headers_of_junk(place, value, remove):
    header = copy.deepcopy(HEADER)
    if not place:
        header = value
    else:
        node = header
        for name in place[:-1]:
            node = node[name]
        if remove:
            del node[place[-1]]
        else:
            node[place[-1]] = value
    attempt(header, ARRAYS)


@settings(max_examples=300)
@given(st.sampled_from(sorted(ARRAYS)), st.data())
def test_arrays_of_junk(name, data):
    array = ARRAYS[name].copy()
    how = data.draw(
        st.sampled_from(["value", "shorter", "longer", "type", "shape", "gone", "swap"])
    )
    arrays = dict(ARRAYS)
    if how == "value":
        number = data.draw(st.integers(-5, 2**31 - 1) if name == "cardinalities" else st.floats())
        array[data.draw(st.integers(0, len(array) - 1))] = number
    elif how == "swap":
        order = data.draw(st.permutations(range(len(array))))
        array = array[list(order)]
    elif how == "shorter":
        array = array[:-1]
    elif how == "longer":
        array = np.append(array, array[-1:])
    elif how == "type":
        array = array.astype(data.draw(st.sampled_from([np.int64, np.float64, np.float32])))
    elif how == "shape":
        array = array[:, None]
    arrays[name] = array
    if how == "gone":
        del arrays[name]
    attempt(HEADER, arrays)


@settings(max_examples=100)
@given(st.integers(0, 8), st.integers(0, 8), st.sampled_from(["kind", "name", "values", "dtype"]))
def test_columns_that_trade_places(first, second, field):
    header = copy.deepcopy(HEADER)
    columns = header["columns"]
    columns[first][field] = columns[second][field]
    attempt(header, ARRAYS)


@settings(max_examples=200)
@given(
    st.sampled_from(sorted(FRAMES)),
    st.integers(0, 8),
    st.sampled_from(["dtype", "kind", "zone", "source"]),
    st.sampled_from([*DTYPES, *SOURCES, "number", "code", "UTC", "No/Where", "+25:99"]) | junk,
)
def test_types_that_are_not_those_of_the_values(frame, column, field, value):
    header = copy.deepcopy(FRAMES[frame])
    if field == "source":
        header["source"] = value
    else:
        header["columns"][column][field] = value
    attempt(header, ARRAYS)


@pytest.mark.parametrize(
    ("problem", "change"),
    {
        "its header has other entries": lambda h: h.pop("notes"),
        "its notes are not a list": lambda h: h.update(notes="all well"),
        "its table is of the kind 'excel'": lambda h: h.update(source="excel"),
        "parameters are not those": lambda h: h["params"].update(eval="1"),
        "unseen is": lambda h: h["params"].update(unseen="explode"),
        "is of the kind 'secret'": lambda h: h["columns"][0].update(kind="secret"),
        "two columns have the same name": lambda h: h["columns"][0].update(name="real"),
        "has the time zone": lambda h: h["columns"][5].update(zone="../../etc/passwd\n"),
        "the step of column": lambda h: h["columns"][3].update(step=-1),
        "two categories of column 'text' are the same": lambda h: h["columns"][0].update(
            values=["a", "a"]
        ),
        "a category of column 'text' is missing": lambda h: h["columns"][0].update(
            values=["a", None]
        ),
        "has 2 values and 3 categories": lambda h: h["columns"][0]["values"].append("z"),
        "the Boolean column 'flag' has other values": lambda h: h["columns"][2].update(
            values=[0, 1]
        ),
        "columns and their numbers of values differ": lambda h: h["columns"].pop(),
        "is no value": lambda h: h["columns"][0].update(values=["a", {"date": "tomorrow"}]),
        "too long": lambda h: h["columns"][0].update(name="a" * 10**6),
        "an integer array has a column": lambda h: h.update(source="codes"),
    }.items(),
)
def test_what_is_wrong_is_said(problem, change):
    header = copy.deepcopy(HEADER)
    change(header)
    with pytest.raises(FormatError, match=problem):
        Encoder.from_state("f", header, ARRAYS)
    assert Encoder.from_state("f", HEADER, ARRAYS)


def test_deep_documents_do_not_recurse():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    header = {**HEADER, "params": {**HEADER["params"], "bins": deep}}
    with pytest.raises(FormatError):
        Encoder.from_state("f", header, ARRAYS)
