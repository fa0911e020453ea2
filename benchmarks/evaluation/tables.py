"""Results read from files, and tables of them in Markdown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from .cells import FIELDS


def load(folder: Path, part: str) -> pd.DataFrame:
    """A part's results, one line for each metric of each cell."""
    file = folder / f"{part}.parquet"
    return pd.read_parquet(file) if file.exists() else pd.DataFrame(columns=FIELDS)


def wide(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds, a column for each metric."""
    keys = ["set", "method", "setting"]
    grid = frame.pivot_table(index=keys, columns="metric", values="value", sort=False)
    return frame[keys].drop_duplicates().merge(grid.reset_index())  # in the order of the file


def table(frame: pd.DataFrame, digits: int = 4) -> str:
    """Markdown; numbers with so many digits."""

    def cell(value: object) -> str:
        if isinstance(value, float | np.floating):
            return "" if np.isnan(value) else number(float(value), digits)
        return str(value)

    lines = ["| " + " | ".join(map(str, frame.columns)) + " |"]
    lines.append("|" + " --- |" * len(frame.columns))
    lines += ["| " + " | ".join(map(cell, line)) + " |" for line in frame.itertuples(index=False)]
    return "\n".join(lines) + "\n"


def number(value: float, digits: int = 4) -> str:
    """Significant digits, thousands with commas."""
    if value and abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def count_tables(n: float) -> str:
    return "1 table" if n == 1 else f"{n:.0f} tables"
