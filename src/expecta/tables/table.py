"""Read a table, whatever it is made of: only this module tells frames from arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin

from expecta.common.arrays import Ints
from expecta.common.errors import DomainError
from expecta.tables.cells import Cells, from_list, from_numpy

SOURCES = ("pandas", "polars", "pyarrow", "dict", "array", "codes")


@dataclass(frozen=True)
class Table:
    """Named columns, or an array whose columns have only positions.

    ``source`` is what the table was: one of `SOURCES`, "codes" for an array of integers.
    """

    source: str
    names: tuple[str, ...]
    n_rows: int
    columns: tuple[Cells, ...] = ()
    array: npt.NDArray[Any] | None = None  # (rows, columns); columns are read when asked for
    text_names: bool = True  # the names were given as texts, not as numbers for example
    one_row: bool = False  # given as a mapping from columns to single values

    @property
    def named(self) -> bool:
        """Whether columns are found by name."""
        return self.array is None

    def column(self, position: int) -> Cells:
        """Return a column by its position."""
        if self.array is None:
            return self.columns[position]
        return from_numpy(self.names[position], self.array[:, position])


class TableTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer of tables with cells of any kind, missing ones included."""

    feature_names_in_: npt.NDArray[np.object_]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def find_columns(table: Table, encoder: TableTransformer) -> list[int]:
    """Return the position of each fitted column in a table: by name, of an array in order.

    For rows that may lack columns see `expecta.tables.row_reader`.
    """
    names = encoder.feature_names_in_.tolist()
    if not table.named:
        if len(table.names) != len(names):
            raise DomainError(
                f"X has {len(table.names)} features, but {type(encoder).__name__} is expecting "
                f"{len(names)} features as input"
            )
        return list(range(len(names)))
    position = {name: i for i, name in enumerate(table.names)}
    for name in names:
        if name not in position:
            raise DomainError(
                f"the table has no column {name!r}; if nothing is known of it, add it with "
                f"None in every row"
            )
    return [position[name] for name in names]


class GivenForm(NamedTuple):
    """A table in a form that has columns, and the way back to the form that was given."""

    columns: Any
    one_row: bool = False
    back: Callable[[Any], Any] = lambda made: made


def as_columns(X: Any) -> GivenForm:
    """Return one row (a mapping to values, a pandas Series), records or a batch as columns.

    Whatever has columns is returned as it is.
    """
    if hasattr(X, "toarray"):
        raise DomainError(
            f"a sparse table such as {type(X).__name__} is not supported: pass X.toarray()"
        )
    if isinstance(X, Mapping):
        if X and not any(map(is_scalar, X.values())):
            return GivenForm(X)
        columns = {k: [v] if is_scalar(v) else v for k, v in X.items()}
        return GivenForm(columns, True, lambda made: {k: made[k][0] for k in made})
    if isinstance(X, Sequence) and X and all(isinstance(row, Mapping) for row in X):
        keys = dict.fromkeys(name for row in X for name in row)
        _check_names(X, keys)
        columns = {name: [row.get(name) for row in X] for name in keys}
        return GivenForm(columns, False, _as_records)
    if isinstance(X, np.ndarray | Sequence | Table):
        return GivenForm(X)
    if (pandas := nw.dependencies.get_pandas()) is not None and isinstance(X, pandas.Series):
        names = _unique(list(X.index))
        columns = {name: [value] for name, value in zip(names, X.tolist(), strict=True)}
        row = {"index": X.index, "name": X.name}
        return GivenForm(columns, False, lambda made: type(X)([v[0] for v in made.values()], **row))
    if (arrow := nw.dependencies.get_pyarrow()) is not None and isinstance(X, arrow.RecordBatch):
        table = arrow.Table.from_batches([X])
        return GivenForm(table, False, lambda made: made.combine_chunks().to_batches()[0])
    return GivenForm(X)


def _check_names(records: Sequence[Mapping[Any, Any]], names: Iterable[Any]) -> None:
    """Refuse names that differ in case only, unless some record has both: one is misspelt."""
    written: dict[str, str] = {}
    for name in names:
        other = written.setdefault(str(name).casefold(), name)
        if other != name and not any(name in row and other in row for row in records):
            raise DomainError(
                f"the records have {other!r:.80} and {name!r:.80}, which differ in upper and lower "
                f"case only; use one name"
            )


def _as_records(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def is_scalar(value: Any) -> bool:
    """Whether a value is one cell, and not a column."""
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        return True
    return isinstance(value, np.ndarray) and value.ndim == 0


def read_table(X: Any) -> Table:
    """Read a table, whatever it is made of.

    A pandas, polars or Arrow frame, an Arrow batch, a dict of columns, a list of records, a
    two-dimensional array; one row as a mapping from columns to values or as a pandas Series.
    """
    if isinstance(X, Table):
        return X
    X, one_row, _ = as_columns(X)
    if isinstance(X, Mapping):
        table = _from_mapping(X)
        return replace(table, n_rows=table.n_rows if X else 1, one_row=True) if one_row else table
    if isinstance(X, np.ndarray | Sequence) and not isinstance(X, str | bytes):
        return _from_array(X)
    return _from_frame(X)


def check_size(table: Table) -> None:
    """Refuse to learn from a table without rows or columns, or from one row of values."""
    if table.one_row and table.names:
        raise DomainError(
            f"column {table.names[0]!r} must be a sequence to learn from; for one row pass [value]"
        )
    shape = f"(shape=({table.n_rows}, {len(table.names)}))"
    if not table.n_rows:
        raise DomainError(f"the table has 0 rows {shape}; an encoder learns from one or more")
    if not table.names:
        raise DomainError(f"the table has 0 feature(s) {shape} while a minimum of 1 is required.")


def _from_array(X: Any) -> Table:
    try:
        array = np.ma.asarray(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
        if array.dtype.kind in "USO" and not isinstance(X, np.ndarray):
            array = np.array(X, dtype=object)  # NumPy would make text of all
    except ValueError:
        raise DomainError("the rows of the table differ in length") from None
    if array.ndim != 2:
        hint = ". Reshape your data: for one row pass [row]" if array.ndim == 1 else ""
        raise DomainError(f"a table has two dimensions, not {array.ndim}{hint}")
    if array.dtype.kind == "c":
        raise DomainError("Complex data not supported: a column holds real numbers")
    if array.dtype.kind in "iub" and isinstance(array, np.ma.MaskedArray):
        array = np.where(np.ma.getmaskarray(array), -1, array.astype(np.int64).data)
    source = "codes" if array.dtype.kind in "iub" else "array"
    names = tuple(f"x{i}" for i in range(array.shape[1]))
    return Table(source, names, len(array), array=array)


def _from_mapping(X: Mapping[Any, Any]) -> Table:
    names = _unique(list(X))
    columns = [_from_values(name, values) for name, values in zip(names, X.values(), strict=True)]
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise DomainError(f"the columns have different lengths: {sorted(lengths)}")
    rows = lengths.pop() if lengths else 0
    return Table("dict", names, rows, tuple(columns), text_names=_texts(X))


def _from_values(name: str, values: Any) -> Cells:
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise DomainError(f"column {name!r} has {values.ndim} dimensions, not one")
        return from_numpy(name, values)
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        series = nw.from_native(values, series_only=True, pass_through=True)
        if isinstance(series, nw.Series):
            return _from_series(name, series)
        raise DomainError(f"column {name!r} must be a sequence, not {values!r:.40}")
    return from_list(name, values)


def _from_frame(X: Any) -> Table:
    if type(X).__name__ == "DataFrame" and type(X).__module__.partition(".")[0] == "pandas":
        names = _unique(list(X.columns))
        columns = tuple(_from_pandas(name, X.iloc[:, i]) for i, name in enumerate(names))
        return Table("pandas", names, len(X), columns, text_names=_texts(X.columns))
    try:
        frame = nw.from_native(X, eager_only=True)
    except nw.exceptions.DuplicateError:
        raise DomainError("two columns have the same name; every column needs its own") from None
    except TypeError:
        if hasattr(X, "__array__"):
            return _from_array(np.asarray(X))
        hint = "; call .collect() on it first" if hasattr(X, "collect") else ""
        raise DomainError(
            f"a table is a pandas, polars or Arrow frame, a dict of columns, a list of records or "
            f"a two-dimensional array, not {type(X).__name__}{hint}"
        ) from None
    names = _unique(list(frame.columns))
    implementation = frame.implementation
    if implementation.is_polars():
        source = "polars"
    else:
        source = "pyarrow" if implementation.is_pyarrow() else "pandas"
    series = zip(names, frame.iter_columns(), strict=True)
    columns = tuple(_from_series(name, column) for name, column in series)
    return Table(source, names, len(frame), columns, text_names=_texts(frame.columns))


def _texts(names: Iterable[Any]) -> bool:
    return all(isinstance(name, str) for name in names)


def _unique(names: list[Any]) -> tuple[str, ...]:
    texts = tuple(str(name) for name in names)
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise DomainError(f"two columns have the name {twice!r}; every column needs its own")
    return texts


def _from_pandas(name: str, series: Any) -> Cells:
    """Read a column of a pandas frame: plain ones at once, which counts where rows are few."""
    dtype = series.dtype
    kind = dtype.kind if isinstance(dtype, np.dtype) else ""
    if kind and kind in "fiub":
        return from_numpy(name, series.to_numpy())
    if kind == "O" or type(dtype).__name__ == "StringDtype":
        return from_list(name, series.tolist(), str(dtype))
    return _from_series(name, nw.from_native(series, series_only=True))


def _from_series(name: str, series: nw.Series[Any]) -> Cells:
    """Read a column of a frame; integers do not pass through floats on the way."""
    dtype = series.dtype
    dtype_name = str(dtype)
    pandas = series.implementation.is_pandas_like()
    if pandas:
        native_type = series.to_native().dtype
        dtype_name = str(native_type)
        if dtype_name == "string[pyarrow]" and type(native_type).__name__ == "ArrowDtype":
            dtype_name = "Arrow string"  # pandas has two types that it spells alike
    if dtype.is_integer() or dtype == nw.Boolean:
        unknown = series.is_null().to_numpy()
        filled = series.fill_null(0 if dtype.is_integer() else False) if unknown.any() else series
        array = filled.to_numpy()
        array = array.astype(np.bool_) if dtype == nw.Boolean else array
        cells = from_numpy(name, array)
        cells = cells.masked(unknown) if unknown.any() else cells
    elif dtype.is_float() or isinstance(dtype, nw.Date | nw.Datetime | nw.Duration):
        zone = dtype.time_zone if isinstance(dtype, nw.Datetime) else None
        cells = from_numpy(name, series.to_numpy(), zone)
    elif pandas and isinstance(dtype, nw.Categorical | nw.Enum):
        native = series.to_native()
        dtype_name = "ordered category" if native.cat.ordered else "category"
        cells = _from_categories(name, list(native.cat.categories), native.cat.codes.to_numpy())
    elif dtype == nw.String and series.implementation.is_pyarrow():
        cells = _from_arrow_texts(name, series.to_native())
    else:
        declared = dtype.categories if isinstance(dtype, nw.Enum) else None
        cells = from_list(name, series.to_list(), dtype_name, declared)
    return replace(cells, dtype="Enum" if isinstance(dtype, nw.Enum) and not pandas else dtype_name)


def _from_arrow_texts(name: str, texts: Any) -> Cells:
    """Read a column of texts as `from_list` does; Python sees each distinct one once."""
    if not len(texts):  # pyarrow 17 cannot combine no chunks of large texts
        return from_list(name, [])
    encoded = texts.dictionary_encode().unify_dictionaries().combine_chunks()
    levels = from_list(name, encoded.dictionary.to_pylist())
    if levels.codes is None:  # nothing is known
        return replace(levels, numbers=np.full(len(texts), np.nan))
    number = np.append(levels.codes, -1).astype(np.int32)
    return replace(levels, codes=number[encoded.indices.fill_null(-1).to_numpy()])


def _from_categories(name: str, categories: list[Any], codes: Ints) -> Cells:
    """Read pandas categories, which may be of any type and have an order."""
    levels = from_list(name, categories, declared=categories)
    assert levels.codes is not None
    number = np.append(levels.codes, -1)[codes]
    return Cells(name, "category", "", None, number, levels.levels, True)
