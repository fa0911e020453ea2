"""Durations as texts: what is written is read as the same, as other libraries read and write it."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from expecta.tables.durations import read_duration, write_duration

MICROSECOND = dt.timedelta(microseconds=1)


@given(st.timedeltas())
@example(dt.timedelta(days=-1, hours=2))
@example(dt.timedelta(0))
def test_what_is_written_is_read_as_the_same(duration):
    microseconds = duration / MICROSECOND
    assert read_duration(write_duration(microseconds)) == microseconds
    assert read_duration(str(duration)) == microseconds


@given(st.floats(-1e15, 1e15))
def test_parts_of_a_microsecond_are_kept(microseconds):
    assert read_duration(write_duration(microseconds)) == microseconds


@given(st.timedeltas(dt.timedelta(-9999), dt.timedelta(9999)))
def test_texts_of_pandas_are_read(duration):
    cell = pd.Timedelta(duration)
    for text in (str(cell), abs(cell).isoformat()):
        assert read_duration(text) == pd.Timedelta(text).to_pytimedelta() / MICROSECOND


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("36 hours", 36),
        ("90 min", 1.5),
        (" 1.5 Days ", 36),
        ("2w 1d", 360),
        ("4 days 06:00:00", 102),
        ("-4 days 06:00:00", -102),
        ("-1 days +02:00:00", -22),
        ("+1 hr -30 m", 0.5),
        ("P1DT12H", 36),
        ("-PT30M", -0.5),
    ],
)
def test_units(text, hours):
    assert read_duration(text) == hours * 3.6e9


@pytest.mark.parametrize(
    "text", ["", " ", "4", "P", "PT", "P1M", "1 year", "06:30", "4 days!", "days", "9" * 400 + " s"]
)
def test_what_is_no_duration(text):
    with pytest.raises(ValueError, match=r"duration|unit"):
        read_duration(text)
