"""Read tables from text and arrays from a folder, and hand tables out as frames."""

from __future__ import annotations

import csv
import os
from collections.abc import Collection, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Columns", "as_frame", "check_name", "folder", "installed", "load_arrays", "read_csv"]

Columns: TypeAlias = dict[str, npt.NDArray[Any]]

VARIABLE = "EXPECTA_DATA"


def folder() -> Path | None:
    """Return the folder of data sets that the environment names, if it names one."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


def installed(library: str) -> bool:
    """Whether a library can be imported."""
    try:
        import_module(library)
    except ImportError:
        return False
    return True


def check_name(name: str, known: Collection[str]) -> None:
    """Refuse a data set that there is not."""
    if name not in known:
        raise ValueError(f"there is no data set {name!r:.60}; there are {', '.join(known)}")


def load_arrays(path: Path) -> Columns:
    """Read the arrays of an .npz file, which cannot run code."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path} in the folder that {VARIABLE} names")
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def read_csv(lines: Iterable[str]) -> Columns:
    """Read a table with a header; a column is of integers or floats where all cells are."""
    rows = list(csv.reader(lines))
    return {name: _column([row[place] for row in rows[1:]]) for place, name in enumerate(rows[0])}


def _column(cells: list[str]) -> npt.NDArray[Any]:
    for dtype, read in ((np.int64, int), (np.float64, float)):
        try:
            return np.array([read(cell) for cell in cells], dtype)
        except ValueError:
            continue
    return np.array(cells, object)


def as_frame(columns: Columns, kind: str | None) -> Any:  # noqa: ANN401
    """Return a table as a pandas or polars frame or a dict; None is the first there is."""
    if kind not in (None, "pandas", "polars", "dict"):
        raise ValueError(f"as_frame is 'pandas', 'polars' or 'dict', not {kind!r:.60}")
    if kind is None:
        kind = next((name for name in ("pandas", "polars") if installed(name)), "dict")
    if kind == "dict":
        return columns
    plain = {name: v.tolist() if v.dtype.kind == "O" else v for name, v in columns.items()}
    return import_module(kind).DataFrame(plain)
