"""Read tables from text and arrays from a folder."""

from __future__ import annotations

import csv
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.common.data_frames import Columns

VARIABLE = "EXPECTA_DATA"


def folder() -> Path | None:
    """Return the folder of data sets that the environment names, if it names one."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


def check_name(name: str, known: Collection[str]) -> None:
    """Refuse the name of a data set that does not exist."""
    if name not in known:
        raise ValueError(f"there is no data set {name!r:.60}; there are {', '.join(known)}")


def existing(path: Path) -> Path:
    """Return the path of a file; an error where there is none."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path} in the folder that {VARIABLE} names")
    return path


def load_arrays(path: Path) -> Columns:
    """Read the arrays of an .npz file, which cannot run code."""
    with np.load(existing(path), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def read_csv(lines: Iterable[str]) -> Columns:
    """Read a table with a header; a column is of integers or floats where all cells are."""
    rows = list(csv.reader(lines))
    return {name: _column([row[i] for row in rows[1:]]) for i, name in enumerate(rows[0])}


def _column(cells: list[str]) -> npt.NDArray[Any]:
    for dtype, read in ((np.int64, int), (np.float64, float)):
        try:
            return np.array([read(cell) for cell in cells], dtype)
        except ValueError:
            continue
    return np.array(cells, object)
