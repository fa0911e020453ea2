"""Evidence: states of variables and each row's state."""

from __future__ import annotations

import numpy as np
import pytest

from expecta import Evidence


@pytest.mark.parametrize("values", [3, 64, 65, 300])
def test_rows_of_values(values):
    X = np.random.default_rng(0).integers(-1, values, (50, 2))
    evidence = Evidence.rows(X, [values, values])
    for variable in range(2):
        x = X[:, variable, None]
        weights = evidence.weights(variable)
        np.testing.assert_array_equal(weights, (x == np.arange(values)) | (x < 0))
