"""Find the missing cells of a table, and return the same table with those filled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from datetime import UTC
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Bools, Floats, Ints
from expecta.densities import Density
from expecta.tables.cells import Cells
from expecta.tables.estimator_inputs import refuse_infinity
from expecta.tables.number_column import MAX_EXACT
from expecta.tables.table import Table, as_columns, read_table


class Fill(NamedTuple):
    """What goes into the missing of one column."""

    missing: Bools  # (rows,)
    values: npt.NDArray[Any]  # (missing,)
    objects: list[Any]  # the same as Python has them


class Given(NamedTuple):
    """A table as it was given, and which of its cells are unknown."""

    native: Any
    table: Table
    cells: tuple[Cells, ...]
    missing: Bools  # (rows, columns)
    back: Callable[[Any], Any]  # to the form that was given, from one with columns

    @classmethod
    def read(cls, X: Any, density: Density) -> Given:
        """Read a table; integers of arrays are numbers, but codes where the density has codes."""
        coded = hasattr(density, "circuit_") and density.encoder_.source_ == "codes"
        X, one_row, back = as_columns(X)
        if isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "iu" and not coded:
            X = np.where(np.ma.getmaskarray(X), np.nan, X.data)
        table, native = read_table(X), nw.to_native(X, pass_through=True)
        table = replace(table, one_row=one_row)
        if table.array is not None:
            native = np.ma.getdata(table.array)
            if native.dtype.kind in "iu":
                unknown = (native == -1) & coded
                table = read_table(np.where(unknown, np.nan, native.astype(np.float64)))
        cells = tuple(table.column(index) for index in range(len(table.names)))
        numbers = np.array([_numbers(c) for c in cells]).reshape(len(cells), table.n_rows)
        refuse_infinity(table)
        return cls(native, table, cells, np.isnan(numbers.T), back)

    def fill(self, index: int, rows: Ints, answer: npt.NDArray[Any], zone: str | None) -> Fill:
        """Take from the answers for some rows what goes into the missing of a column."""
        missing, cells = self.missing[:, index], self.cells[index]
        values = answer[missing[rows]]
        objects = values.tolist()
        if zone is not None:
            objects = [time.replace(tzinfo=UTC) for time in objects]
        large = cells.kind == "integer" and np.any(np.abs(_numbers(cells)) >= MAX_EXACT)
        if large and values.dtype.kind == "f":  # the known ones would change, made floats
            objects = [round(x) for x in objects]
            values = np.array(objects, object)
        return Fill(missing, values, objects)

    def filled(self, fills: Mapping[int, Fill], order: list[int]) -> Any:
        """Return the table with some columns filled, in the form given; columns in an order."""
        return self.back(self._filled(fills, order))

    def _filled(self, fills: Mapping[int, Fill], order: list[int]) -> Any:
        native = self.native
        if not self.table.named:
            return _into_array(native, fills)
        if isinstance(native, Mapping):
            items = list(native.items())
            found = [(items[i], fills.get(i)) for i in order]
            return {key: _into(old, fill) if fill else copy(old) for (key, old), fill in found}
        frame = nw.from_native(native.copy() if self.table.source == "pandas" else native)
        names, series = frame.columns, []
        for index, fill in fills.items():
            column = _into(frame.get_column(names[index]).to_native(), fill)
            series.append(nw.from_native(column, series_only=True).alias(names[index]))
        if series:
            frame = frame.with_columns(series)  # all at once: each call looks at every column
        return frame.to_native() if order == sorted(order) else frame[:, order].to_native()


def _numbers(cells: Cells) -> Floats:
    """Return the numbers of a column, zeros for categories; NaN where unknown."""
    if cells.numbers is not None:
        return cells.numbers
    assert cells.codes is not None
    return np.where(cells.codes < 0, np.nan, 0.0)


def _into_array(array: npt.NDArray[Any], fills: Mapping[int, Fill]) -> npt.NDArray[Any]:
    """Fill columns of an array, which becomes one of a wider type only where it must."""
    out = array.copy()
    for index, (missing, values, objects) in fills.items():
        old, new = out.dtype.kind, values.dtype.kind
        if old in "iu" and new in "iu":
            wide = int(values.max()) > np.iinfo(out.dtype).max
            out = out.astype(np.int64) if wide else out
        elif old in "iu" and new == "f":
            out = out.astype(np.float64)
        elif not (old == "f" and new in "fiub") and not (old == new and old in "mM"):
            out = out.astype(object)
        out[missing, index] = objects if out.dtype.kind == "O" else values
    return out


def _into(native: Any, fill: Fill) -> Any:
    """Fill a column of a frame or dict; its type stays if it can hold what is filled in."""
    missing, values, objects = fill
    if isinstance(native, np.ndarray):
        return _into_array(np.ma.getdata(native)[:, None], {0: fill})[:, 0]
    if isinstance(native, Sequence):
        rest = iter(objects)
        return [
            next(rest) if is_missing else cell
            for cell, is_missing in zip(native, missing.tolist(), strict=True)
        ]
    series = nw.from_native(native, series_only=True)
    backend, dtype = series.implementation, series.dtype
    fractions = dtype.is_integer() and values.dtype.kind == "f"
    if backend.is_pandas_like():
        return _into_pandas(series.cast(nw.Float64).to_native() if fractions else native, fill)
    if isinstance(dtype, nw.String | nw.Categorical | nw.Enum):
        objects = list(map(str, objects))
    made = nw.new_series("", objects, backend=backend).to_native()
    kind = "dtype" if backend.is_polars() else "type"
    options = {} if backend.is_polars() or dtype.is_integer() else {"safe": False}
    if not fractions:
        with suppress(Exception):  # where it cannot be, the column becomes what is filled in
            made = made.cast(getattr(native, kind), **options)
    series = nw.from_native(native.cast(getattr(made, kind)), series_only=True)
    known = nw.new_series("", ~missing, backend=backend)
    index = np.maximum(np.cumsum(missing) - 1, 0)
    return series.zip_with(known, nw.from_native(made, series_only=True)[index]).to_native()


def _into_pandas(native: Any, fill: Fill) -> Any:
    if native.dtype == "category":
        fresh = dict.fromkeys(one for one in fill.objects if one not in native.cat.categories)
        native = native.cat.add_categories(list(fresh))
    try:
        made = type(native)(fill.objects, dtype=native.dtype)
    except (TypeError, ValueError):  # the column cannot hold it
        native, made = native.astype(object), type(native)(fill.objects, dtype=object)
    out = native.copy()
    out.iloc[np.flatnonzero(fill.missing)] = made.array
    return out.infer_objects() if fill.missing.all() else out
