"""Single records have the codes that they have in a table."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expecta import Encoder
from expecta.tables.record_encoder import RecordEncoder

TABLE = pd.DataFrame(
    {
        "size": [0.5, 1.25, 3.0, -2.0, 8.5] * 8,
        "count": [0, 1, 2, 3, 40] * 8,
        "place": ["north", "south", "1", "east", "other"] * 8,
        "level": [1, 2, 3, 2, 1] * 8,
        "paid": [True, False, True, True, False] * 8,
        "rare": [f"r{i % 9}" for i in range(40)],
    }
)
ENCODER = Encoder(max_bins=4, categorical=["level"], max_categories=6).fit(TABLE)
NUMBERS = st.none() | st.floats(-1e6, 1e6) | st.sampled_from([*ENCODER.columns_[0].edges.tolist()])
CATEGORIES = st.none() | st.sampled_from(
    ["north", "1", "", "nowhere", "r0", "r8", 1, 2.0, 2.5, 7, True, False, 0, -0.0]
)


@settings(max_examples=60, deadline=None)
@given(records=st.lists(st.tuples(NUMBERS, NUMBERS, *[CATEGORIES] * 4), max_size=4))
def test_codes_are_those_of_a_table(records):
    table = {name: [row[i] for row in records] for i, name in enumerate(TABLE.columns)}
    found = RecordEncoder.of(ENCODER).codes(records)
    assert found.tolist() == ENCODER.codes(table).tolist()


@pytest.mark.parametrize(
    "options",
    [{"na": [-2.0]}, {"unseen": "error"}, {"missing_is_value": ["paid"]}, {"numeric": ["size"]}],
)
def test_what_needs_a_table(options):
    assert RecordEncoder.of(Encoder(**options).fit(TABLE)) is None
    times = TABLE.assign(size=pd.Timestamp("2024-01-01") + pd.to_timedelta(TABLE["count"], "D"))
    assert RecordEncoder.of(Encoder().fit(times)) is None
