"""Handle rows as transformers take them: frames of pandas and polars, arrays, sparse matrices."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
from scipy import sparse

from expecta.common.arrays import Floats
from expecta.readers import Unreadable


def is_pandas(data: Any) -> bool:
    """Whether it is a frame or a column of pandas."""
    return nw.dependencies.is_pandas_dataframe(data) or nw.dependencies.is_pandas_series(data)


def is_polars(data: Any) -> bool:
    """Whether it is a frame or a column of polars."""
    return nw.dependencies.is_polars_dataframe(data) or nw.dependencies.is_polars_series(data)


def width(data: Any) -> int:
    """How many columns there are; a single column counts as one."""
    return int(data.shape[1]) if len(data.shape) > 1 else 1


def names(data: Any) -> list[Any] | None:
    """Return the names of the columns, or None if they only have positions."""
    return list(data.columns) if hasattr(data, "columns") else None


@contextmanager
def quietly() -> Iterator[None]:
    """Keep warnings of other libraries back, which would come often."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def transformed(transformer: Any, data: Any) -> Any:
    """Transform as the user's model would, without its warnings, which would come often."""
    copy = data.clone() if is_polars(data) else data.copy()  # it may be overwritten
    with quietly():
        return transformer.transform(copy)


def take(data: Any, rows: npt.NDArray[np.intp]) -> Any:
    """Return the rows at given positions, which may repeat; always a copy."""
    if is_pandas(data):
        return data.iloc[rows].reset_index(drop=True)
    return data[rows]


def pick(data: Any, columns: Sequence[int], flat: bool = False) -> Any:
    """Return columns by position, or a single one as one dimension."""
    if flat and sparse.issparse(data):
        return data[:, [int(columns[0])]].toarray()[:, 0]
    chosen: Any = int(columns[0]) if flat else [int(column) for column in columns]
    return data.iloc[:, chosen] if is_pandas(data) else data[:, chosen]


def types(data: Any, column: int) -> set[str]:
    """Return the names of the Python types in a column."""
    return {type(cell).__name__ for cell in np.asarray(pick(data, [column], flat=True), object)}


def put(data: Any, column: int, values: Any) -> Any:
    """Return the rows with other values in one column, which keeps its type if it can hold them."""
    if len(data.shape) > 1:
        return put_columns(data, {column: values})
    if is_pandas(data):
        return _pandas_series(values, data.dtype)
    if is_polars(data):
        return _polars_series(data.name, values, data.dtype)
    return _fitting(np.asarray(values), data.dtype)


def put_columns(data: Any, columns: Mapping[int, Any]) -> Any:
    """Return the rows with other values in some columns: :func:`put`, of many at once."""
    if is_pandas(data):
        data = data.copy()
        for column, values in columns.items():
            series = _pandas_series(values, data.dtypes.iloc[column])
            data.isetitem(column, series.set_axis(data.index))
        return data
    if is_polars(data):
        names = data.columns
        return data.with_columns(
            _polars_series(names[column], values, data.schema[names[column]])
            for column, values in columns.items()
        )
    if sparse.issparse(data):
        return type(data)(put_columns(data.toarray(), columns))
    fitting = {j: _fitting(np.asarray(values), data.dtype) for j, values in columns.items()}
    # a whole array has one type, so a number that is not an integer changes that of all
    data = data.astype(np.result_type(data.dtype, *(values.dtype for values in fitting.values())))
    for column, values in fitting.items():
        data[:, column] = values
    return data


def marked(values: Any, mark: Any) -> Any:
    """Return values with another mark than None for what is missing, unless that is None."""
    if mark is None or str(getattr(values, "dtype", "object")) != "object":
        return values
    return np.array([mark if value is None else value for value in values], object)


def column(data: Any, position: int, values: Any) -> Any:
    """Return values of one column alone, of the type that it has in the rows."""
    return put(pick(data, [position], flat=True), 0, values)


def numbers(data: Any, columns: Sequence[int] | None = None) -> Floats:
    """Return columns as the numbers that a model computes with.  # (rows, columns).

    A categorical column of a frame counts as the positions of its values among its categories,
    and NaN where it is missing, as in gradient boosting.
    """
    if len(data.shape) == 1:
        data = data.to_frame() if hasattr(data, "to_frame") else data[:, None]
    if columns is not None:
        data = pick(data, columns)
    if sparse.issparse(data):
        return np.asarray(data.toarray(), np.float64)
    if not is_pandas(data) and not is_polars(data):
        return _floats(np.asarray(data))
    out = np.empty(data.shape, np.float64)
    for j in range(width(data)):
        out[:, j] = _frame_column(pick(data, [j], flat=True))
    return out


def _frame_column(series: Any) -> Floats:
    dtype = series.dtype
    if is_polars(series):
        series = series.to_physical() if str(dtype).startswith("Enum") else series
        if not (series.dtype.is_numeric() or str(dtype) == "Boolean"):
            raise _not_numbers(dtype)
        return np.asarray(series.cast(float).fill_null(np.nan).to_numpy(), np.float64)
    if hasattr(series, "cat"):
        codes = series.cat.codes.to_numpy().astype(np.float64)
        return np.where(codes < 0, np.nan, codes)
    if dtype.kind in "iufb":
        return np.asarray(series.to_numpy(np.float64, na_value=np.nan), np.float64)
    return _floats(series.to_numpy())


def _floats(array: npt.NDArray[Any]) -> Floats:
    if array.dtype.kind not in "iufbO":
        raise _not_numbers(array.dtype)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise _not_numbers("text") from None


def _not_numbers(dtype: Any) -> Unreadable:
    return Unreadable(
        f"a column reaches the model as {dtype} and not as numbers; sampling is used instead, "
        f"unless the pipeline encodes it"
    )


def _fitting(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Convert values to a type of NumPy, unless it cannot hold them."""
    if dtype.kind == "O" or dtype == values.dtype:
        return values.astype(dtype)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(dtype)
    if dtype.kind in "iub" and values.dtype.kind in "iubf":
        with np.errstate(invalid="ignore"):
            converted = values.astype(dtype)
        same = np.array_equal(converted, values)
        return converted if same else values.astype(np.float64)
    return values


def _pandas_series(values: Any, dtype: Any) -> Any:
    pandas = nw.dependencies.get_pandas()
    if str(dtype) == "object":  # which text is no longer, once it is guessed
        if getattr(values, "dtype", None) is not None and values.dtype.kind in "mM":
            values = values.astype(object)  # dates and times of Python, as there were
        return pandas.Series(values, dtype=object)
    series = pandas.Series(values)
    kind: Any = getattr(dtype, "numpy_dtype", dtype)  # of a column that may have unknown integers
    if series.dtype != dtype and kind.kind in "iub" and series.dtype.kind in "iubf":
        series = pandas.Series(_fitting(series.to_numpy(), kind))
        return series if series.dtype.kind == "f" else series.astype(dtype)
    return series.astype(dtype)


def _polars_series(name: str, values: Any, dtype: Any) -> Any:
    polars = nw.dependencies.get_polars()
    given = np.asarray(values)
    if (dtype.is_integer() or str(dtype) == "Boolean") and given.dtype.kind in "iubf":
        given = _fitting(given, np.dtype(np.int64))
        series = polars.Series(name, given)
        return series if given.dtype.kind == "f" else series.cast(dtype)
    return polars.Series(name, given.tolist()).cast(dtype)
