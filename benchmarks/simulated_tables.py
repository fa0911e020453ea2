"""Draw large tables with a seed: numbers and categories that depend on each other, some missing."""

from __future__ import annotations

import numpy as np
import pandas as pd

N_CAUSES = 3  # hidden numbers that all columns depend on, a few each
MISSING_SHARE = 0.05  # of the cells of every third column


def simulate(n_rows: int, n_columns: int, seed: int = 0):
    """Draw a table, a target and a class for each of its rows.

    Of every five columns three are numbers, one of them skewed and one rounded, and two are
    categories. The target is a sum of curves of six columns, one product, a jump between two
    categories, and normal noise of a third of its spread.
    """
    rng = np.random.default_rng(seed)
    causes = rng.normal(size=(n_rows, N_CAUSES))
    columns = {}
    signals = np.empty((n_rows, min(n_columns, 6)))
    for column in range(n_columns):
        loading = rng.normal(size=N_CAUSES) * (rng.random(N_CAUSES) < 0.6)
        z = causes @ loading + rng.normal(size=n_rows)
        z /= np.sqrt(1 + loading @ loading)
        if column < signals.shape[1]:
            signals[:, column] = z
        kind = column % 5
        if kind == 0:
            cells = pd.Series(z)
        elif kind == 1:
            cells = pd.Series(np.exp(z))
        elif kind == 2:
            cells = pd.Series(np.round(10 * z))
        else:
            n_values = 2 + int(rng.integers(6)) if kind == 3 else 12
            cuts = np.sort(rng.normal(size=n_values - 1))
            names = np.array([f"v{value:02}" for value in rng.permutation(n_values)], object)
            cells = pd.Series(names[np.searchsorted(cuts, z)])
        if column % 3 == 0:
            cells[rng.random(n_rows) < MISSING_SHARE] = None
        columns[f"x{column}"] = cells
    a, b, c, d, e, f = np.resize(signals.T, (6, n_rows))
    mean = a + np.sin(2 * b) + 0.5 * np.abs(c) + a * b / 2 + (d > 0.3) * (1 + e) + 0.3 * f
    y = mean + rng.normal(size=n_rows) * mean.std() / 3
    return pd.DataFrame(columns), y, np.where(y > np.median(y), "high", "low")
