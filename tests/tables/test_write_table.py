"""Tables of the kind that was read, from values of their cells."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime

import numpy as np
import polars as pl
import pytest

from expecta import Encoder
from expecta.tables.write_table import write_table


@pytest.mark.parametrize("kind", [datetime, date])
@pytest.mark.parametrize("source", ["polars", "pyarrow"])
def test_times_beyond_the_calendar_become_its_ends(kind, source):
    table = pl.DataFrame({"time": [kind(2020, 1, 1), kind(2021, 1, 1)] * 20})
    column = Encoder().fit(table).columns_[0]
    far = replace(column, lows=column.lows - 2.0**61, highs=column.highs + 2.0**61)
    codes = np.repeat(np.arange(far.cardinality, dtype=np.int32), 20)[:, None]
    times = write_table(source, [far], codes, np.random.default_rng(0))["time"]
    assert {1, 9999} <= {
        cell.year for cell in list(times.to_pylist() if source == "pyarrow" else times)
    }
