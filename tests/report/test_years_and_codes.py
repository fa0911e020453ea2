"""Years and codes have no marks of thousands, and probabilities no spread below zero."""

from __future__ import annotations

import numpy as np

from expecta import Encoder
from expecta.ask.displays.display import spread_ends
from expecta.report.population import range_text


def test_years_and_codes_are_written_plainly():
    table = {"yr_built": [1900, 2015], "zipcode": [98001, 98199], "sqft": [1000, 9000]}
    texts = [
        range_text(column, float(column.lows.min()), float(column.highs.max()))
        for column in Encoder().fit(table).columns_
    ]
    assert texts == ["1900 to 2015", "98001 to 98199", "1,000 to 9,000"]


def test_the_spread_of_probabilities_stays_between_0_and_1():
    low, high = spread_ends(np.array([0.1, 0.9]), np.array([0.3, 0.3]), True)
    assert np.allclose([low, high], [[0.0, 0.6], [0.4, 1.0]])
    low, _ = spread_ends(np.array([0.1]), np.array([0.3]), False)
    assert np.allclose(low, -0.2)
