"""Write a table of the kind that was read."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Ints
from expecta.common.errors import DomainError
from expecta.tables.column import Column
from expecta.tables.scalars import TIMES

_INTEGER = re.compile(r"u?int(8|16|32|64)", re.IGNORECASE)
_KINDS = {
    bool: "boolean",
    int: "integer",
    float: "number",
    date: "date",
    datetime: "datetime",
    timedelta: "duration",
}
_CALENDAR = np.array(["0001-01-01", "9999-12-31T23:59:59.999999"], "M8[us]")
_UNIT = re.compile(r"'(ms|us|ns)'")


def write_table(
    source: str, columns: list[Column], codes: Ints, rng: np.random.Generator | None
) -> Any:
    """Return a table of a kind from the values of its cells."""
    if source == "codes" and all(column.kind == "code" for column in columns):
        return codes.copy()
    cells = [column.decode(codes[:, i], rng) for i, column in enumerate(columns)]
    columns = [column.plain for column in columns]
    if source in ("array", "codes"):
        return _array(columns, cells, len(codes))
    table = {column.name: _plain(column, cell) for column, cell in zip(columns, cells, strict=True)}
    if source == "dict":
        return table
    try:
        library = import_module(source)
    except ImportError:
        raise DomainError(
            f"the encoder was fitted to a {source} frame and writes one; install {source}"
        ) from None
    if source == "pandas":
        series = {c.name: _pandas(library, c, table[c.name]) for c in columns}
        return library.DataFrame(series, index=library.RangeIndex(len(codes)))
    return _narwhals(library, columns, table)


def _array(columns: list[Column], cells: list[Any], rows: int) -> npt.NDArray[Any]:
    numeric = all(column.kind in ("number", "integer", "code", "unknown") for column in columns)
    out = np.empty((rows, len(columns)), np.float64 if numeric else object)
    for i, (column, cell) in enumerate(zip(columns, cells, strict=True)):
        out[:, i] = cell if numeric else _objects(_plain(column, cell))
    return out


def _plain(column: Column, cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a NumPy column of the type that fits best; missing is NaN, NaT or None."""
    if column.kind == "boolean":
        return cells if any(cell is None for cell in cells) else cells.astype(np.bool_)
    if column.kind in TIMES:
        unknown = np.isnan(cells)
        whole = np.rint(np.clip(np.where(unknown, 0, cells), -(2.0**62), 2.0**62)).astype(np.int64)
        times = whole.astype("m8[us]" if column.kind == "duration" else "M8[us]")
        times[unknown] = "NaT"
        return times.astype("M8[D]") if column.kind == "date" else times
    if column.kind in ("integer", "code") and not np.any(np.isnan(cells)):
        return _integers(cells, _INTEGER.search(column.dtype))
    return cells


def _integers(cells: npt.NDArray[Any], typed: re.Match[str] | None) -> npt.NDArray[Any]:
    dtype = np.dtype(typed[0].lower() if typed else "int64")
    limits = np.iinfo(dtype)
    low, high = float(limits.min), float(limits.max)
    if int(high) > limits.max:  # a float cannot hold the largest 64-bit integer
        high = float(np.nextafter(high, 0))
    return np.clip(cells, low, high).astype(dtype)


def _objects(cells: npt.NDArray[Any]) -> list[Any]:
    """Return Python objects, None where missing; these have times of the years 1 to 9999."""
    if cells.dtype.kind == "M":
        cells = np.clip(cells, *_CALENDAR).astype(cells.dtype)
    missing = np.isnat(cells) if cells.dtype.kind in "mM" else None
    if cells.dtype.kind == "f":
        missing = np.isnan(cells)
    values = cells.tolist()
    if missing is None:
        return list(values)
    return [None if gap else cell for cell, gap in zip(values, missing.tolist(), strict=True)]


def _pandas(pd: Any, column: Column, cells: npt.NDArray[Any]) -> Any:
    """Return a pandas column of the user's type, nullable where something is missing."""
    dtype = column.dtype
    if column.kind in ("integer", "code") and cells.dtype.kind == "f":
        typed = _INTEGER.search(dtype)
        name = (typed[0] if typed else "Int64").lower().replace("int", "Int").replace("u", "U")
        unknown = np.isnan(cells)
        whole = _integers(np.where(unknown, 0.0, cells), typed)
        series = pd.Series(whole).astype(name).mask(unknown)
        return _cast(series, dtype) if typed else series
    if column.kind == "boolean" and cells.dtype.kind == "O":
        return pd.Series(cells, dtype="boolean" if dtype == "bool" else object).pipe(_cast, dtype)
    if dtype.endswith("category") and cells.dtype.kind == "O":
        labels = [*column.values, *([column.labels[-1]] if column.other else [])]
        if len(set(labels)) == len(labels):  # 1 and True are one category to pandas
            ordered = dtype.startswith("ordered")
            return pd.Series(pd.Categorical(cells, categories=labels, ordered=ordered))
    if column.kind == "date":
        return _cast(pd.Series(_objects(cells), dtype=object), dtype)
    series = pd.Series(cells)
    if column.kind == "datetime" and column.zone is not None:
        series = series.dt.tz_localize("UTC").dt.tz_convert(column.zone)
    return _cast(series, dtype) if dtype != "object" else series


def _cast(series: Any, dtype: str) -> Any:
    """Return a pandas column as another type, or as it is where that cannot be."""
    try:
        if dtype == "Arrow string":
            arrow = import_module("pandas").ArrowDtype(import_module("pyarrow").string())
            return series.astype(arrow)
        return series.astype(dtype)
    except Exception:  # pandas has types of several libraries, each with errors of its own
        return series


def _narwhals(
    library: ModuleType, columns: list[Column], table: dict[str, npt.NDArray[Any]]
) -> Any:
    """Return a polars or Arrow table of the user's types."""
    import narwhals as nw

    series = []
    for column in columns:
        stored, wanted = _types(nw, column)
        cells = _objects(table[column.name])
        if stored == nw.String:
            cells = [None if cell is None else str(cell) for cell in cells]
        elif column.kind in ("integer", "code"):
            given = table[column.name].astype(np.float64)
            whole = _integers(np.where(np.isnan(given), 0.0, given), _INTEGER.search(column.dtype))
            cells = [
                None if cell is None else integer
                for cell, integer in zip(cells, whole.tolist(), strict=True)
            ]
        new = nw.new_series(column.name, cells, stored, backend=library)
        try:
            if column.zone is not None:
                new = new.dt.replace_time_zone("UTC").dt.convert_time_zone(column.zone)
            series.append(new if wanted is None else new.cast(wanted))
        except Exception:  # each library has errors of its own
            series.append(new)
    native = {column.name: column.to_native() for column in series}
    return library.DataFrame(native) if library.__name__ == "polars" else library.table(native)


def _types(nw: Any, column: Column) -> tuple[Any, Any]:
    """Return the type to make a column of, and the user's type."""
    unit = _UNIT.search(column.dtype)
    wanted: Any = None
    if re.fullmatch(r"U?Int\d+|Float\d+|Categorical|String", column.dtype):
        wanted = getattr(nw, column.dtype, None)
    elif column.dtype == "Enum":
        wanted = nw.Enum([str(label) for label in column.labels])
    elif unit and column.kind == "datetime":
        wanted = nw.Datetime(unit[1], column.zone)
    elif unit and column.kind == "duration":
        wanted = nw.Duration(unit[1])
    stored = {
        "integer": nw.UInt64 if column.dtype == "UInt64" else nw.Int64,
        "code": nw.Int64,
        "number": nw.Float64,
        "boolean": nw.Boolean,
        "date": nw.Date,
        "datetime": nw.Datetime("us"),
        "duration": nw.Duration("us"),
    }
    kind = column.kind
    if kind == "category":
        types = {type(value) for value in column.values} if not column.other else set()
        kind = _KINDS.get(types.pop(), kind) if len(types) == 1 else kind
    return stored.get(kind, nw.String), wanted
