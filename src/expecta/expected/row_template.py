"""Make rows that the model takes: complete ones, or with missing cells filled from a density."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import DomainError
from expecta.common.row_random import RowRandom
from expecta.densities.density import Density
from expecta.readers import frames
from expecta.tables.cells import Cells
from expecta.tables.column import Column
from expecta.tables.number_column import NumberColumn
from expecta.tables.scalars import TIMES, time_zone
from expecta.tables.table import Table

Array = npt.NDArray[Any]
KEPT_ROWS = 100  # complete rows, spread over the table; extremes come in addition
MAX_TIMES = 10_000  # training times that draws are among
MAX_EXTREMES = 400  # rows that are kept for the value that they have in some column


class RowTemplate:
    """Complete rows of the kind that the model takes; others are made like them."""

    def __init__(
        self,
        rows: Any,
        columns: tuple[str, ...],
        order: tuple[str, ...],
        missing_is_value: frozenset[str],
    ) -> None:
        self.rows, self.columns = rows, columns
        self.order = order  # of the columns of the table that was learned from
        self.missing_is_value = missing_is_value  # columns whose missing cells the model sees
        self.marks: dict[int, Any] = {}  # what the user writes in these cells, by column
        self.kept: Ints = np.zeros(0, np.int64)  # which rows of the training table these are
        # kind and time zone of columns whose numbers were something else to the user
        self._kinds: dict[int, tuple[str, str | None]] = {}
        self._seen: dict[int, Floats] = {}  # times of training rows, in order
        self._rare: dict[int, tuple[Array, Floats]] = {}  # categories that a density merges

    @classmethod
    def of(
        cls, X: Any, table: Table, names: Sequence[str] | None, missing_is_value: Collection[str]
    ) -> RowTemplate:
        """Take complete rows of a training table, and the columns that the model names.

        Missing cells of columns in ``missing_is_value`` count as known.
        """
        columns = table.names if names is None or not table.named else tuple(names)
        template = cls(X, columns, table.names, frozenset(missing_is_value))
        complete = representative_rows(table, template.complete_rows(table), KEPT_ROWS)
        if not len(complete):
            raise DomainError(
                "no row is complete, and a column that the model needs has no known value"
            )
        if isinstance(X, Mapping):
            X = {name: np.asarray(values) for name, values in X.items()}
            X = nw.dependencies.get_pandas().DataFrame(X)
        elif isinstance(X, list) and X and isinstance(X[0], Mapping):
            X = nw.dependencies.get_pandas().DataFrame(X, columns=table.names)
        elif nw.dependencies.is_pyarrow_table(X):
            X = X.to_pandas()
        elif not (frames.is_pandas(X) or frames.is_polars(X)):
            X = np.asarray(X)
        indices = template.indices(table)
        template.kept = complete
        template.rows = frames.pick(frames.take(X, complete.astype(np.intp)), indices)
        for column, (name, index) in enumerate(zip(columns, indices, strict=True)):
            cells = table.column(index)
            if cells.kind in TIMES or (cells.kind == "integer" and cells.dtype == "object"):
                template._kinds[column] = cells.kind, cells.zone
            missing = np.flatnonzero(~cells.known)
            if name in missing_is_value and len(missing):
                cell = frames.pick(frames.take(X, missing[:1]), [index], flat=True)
                template.marks[column] = np.asarray(cell, object)[0]
        return template

    def keep_seen(self, table: Table, density: Density) -> None:
        """Note the times of rows, and the categories that a density takes together.

        A model that takes times for categories knows no other time.
        """
        for i, index in enumerate(self.indices(table)):
            column = density.encoder_.column(self.columns[i]).plain
            if isinstance(column, NumberColumn) and column.kind in TIMES:
                numbers = np.sort(table.column(index).as_numbers(column.kind, column.zone))
                numbers = numbers[~np.isnan(numbers)]
                self._seen[i] = numbers[evenly(len(numbers), MAX_TIMES)]
            if column.other:
                cells = table.column(index)
                codes, levels = cells.as_levels()
                rare = np.flatnonzero(column.encode(cells) == len(column.values))
                kinds, counts = np.unique(codes[rare], return_counts=True)
                names = np.empty(len(levels), object)
                names[:] = levels
                self._rare[i] = names[kinds], counts / counts.sum()

    def indices(self, table: Table) -> list[int]:
        """Find the columns of a table: by name, or those of an array by position."""
        if not table.named:
            if len(table.names) != len(self.order):
                raise DomainError(
                    f"there are {len(table.names)} columns, and the density learned from "
                    f"{len(self.order)}: {', '.join(self.order[:5])} ..."
                )
            return _positions(self.columns, self.order)
        absent = set(self.columns).difference(table.names)
        if absent:
            first = next(name for name in self.columns if name in absent)
            raise DomainError(
                f"there is no column {first!r}; pass a column of None if it is unknown"
            )
        return _positions(self.columns, table.names)

    def known(self, table: Table) -> Bools:
        """Whether each cell is known, or a missing value that is a value.  # (rows, columns)."""
        indices = self.indices(table)
        rows_out = [
            table.column(index).known | (name in self.missing_is_value)
            for name, index in zip(self.columns, indices, strict=True)
        ]
        return np.stack(rows_out, axis=1)

    def complete_rows(self, table: Table) -> Bools:
        """Whether no cell of a row is missing, unless that is a value.  # (rows,)."""
        return np.all(self.known(table), axis=1)

    def column(self, table: Table, column: int) -> Array:
        """Return the values of a column as the model takes them, None or NaN where unknown."""
        return self._values(column, table.column(self.indices(table)[column]))

    def _values(self, column: int, cells: Cells) -> Array:
        if column in self._kinds:  # whatever form they have here
            return self.restored(column, cells.as_numbers(*self._kinds[column]))
        if cells.numbers is not None:
            return cells.numbers.copy()
        assert cells.codes is not None
        table = np.empty(len(cells.levels) + 1, object)
        table[:] = [*cells.levels, None]
        return table[cells.codes]

    def restored(self, column: int, values: Array) -> Array:
        """Return numbers of a column as the model takes them, and other values as they are."""
        if column not in self._kinds or values.dtype == object:
            return values
        kind, zone = self._kinds[column]
        if kind in TIMES:
            return _times(kind, zone, values)
        return np.array([_integer(x) for x in values.tolist()], object)

    def complete(self, table: Table, rows: Ints) -> Any:
        """Return rows of a table without missing cells as the model takes them."""
        columns = {
            i: frames.marked(self._values(i, table.column(index))[rows], self.marks.get(i))
            for i, index in enumerate(self.indices(table))
        }
        return frames.put_columns(frames.take(self.rows, np.zeros(len(rows), np.intp)), columns)

    def filled(
        self,
        table: Table,
        rows: Ints,
        codes: Ints,
        density: Density,
        rng: np.random.Generator | RowRandom,
    ) -> Any:
        """Return rows as the model takes them, their missing cells filled with values of a density.

        Parameters
        ----------
        table
            Rows with missing cells.
        rows
            Which of them, each as often as it is needed.  # (draws,)
        codes
            Values of the density's variables.  # (draws, variables)
        density
            What the codes speak of; a number is drawn within its bin.
        rng
            Random numbers for that.
        """
        columns = {}
        for i, index in enumerate(self.indices(table)):
            variable = density.encoder_.variable(self.columns[i])
            cells, column = table.column(index), density.encoder_.columns_[variable]
            drawn = column.decode(codes[:, variable], rng)
            if i in self._seen:
                drawn = _among(self._seen[i], column.plain, codes[:, variable], drawn, rng)
            values = self.restored(i, drawn)
            if i in self._rare:
                rare, share = self._rare[i]
                some = codes[:, variable] == len(column.values)
                which = np.searchsorted(np.cumsum(share), rng.random(len(some))[some], "right")
                values[some] = np.asarray(rare)[np.minimum(which, len(rare) - 1)]
            # a category that the density does not know counts as unknown
            known = (cells.known & (column.encode(cells) >= 0))[rows]
            if known.any():
                own = self._values(i, cells)
                if own.dtype.kind != values.dtype.kind:
                    values = values.astype(object)
                values[known] = own[rows[known]]
            columns[i] = frames.marked(values, self.marks.get(i))
        return frames.put_columns(frames.take(self.rows, np.zeros(len(rows), np.intp)), columns)


def _positions(names: Sequence[str], among: Sequence[str]) -> list[int]:
    position = {name: i for i, name in enumerate(among)}
    return [position[name] for name in names]


def representative_rows(table: Table, complete: Bools, n: int) -> Ints:
    """Return complete rows spread over a table, and with extreme values of every column.

    The first complete row is among them. Of a column of numbers they have the least and the
    largest, of others each value; these rows are at most ``MAX_EXTREMES``.
    """
    rows = np.flatnonzero(complete)
    if not len(rows):
        return rows
    chosen = [rows[evenly(len(rows), n)]]
    extremes: list[Ints] = []
    for index in range(len(table.names)):
        cells = table.column(index)
        if cells.numbers is not None:
            numbers = np.where(cells.known[rows], cells.numbers[rows], cells.numbers[rows][0])
            extremes.append(rows[[np.argmin(numbers), np.argmax(numbers)]])
        else:
            levels, _ = cells.as_levels()
            extremes.append(rows[np.unique(levels[rows], return_index=True)[1]])
    if extremes:
        extreme = np.unique(np.concatenate(extremes))
        chosen.append(extreme[evenly(len(extreme), MAX_EXTREMES)])
    return np.unique(np.concatenate(chosen))


def evenly(size: int, n: int) -> Ints:
    """Return at most n positions among so many, evenly spread, the first and the last included."""
    return np.unique(np.linspace(0, size - 1, min(n, size)).astype(np.int64))


def _among(
    seen: Floats,
    column: Column,
    codes: Ints,
    drawn: Floats,
    rng: np.random.Generator | RowRandom,
) -> Floats:
    """Return numbers that were seen in the bins, and those drawn where there are none."""
    bins = column.encode(Cells(column.name, column.kind, "", seen, zone=column.zone))
    first, last = (np.searchsorted(bins, codes, side) for side in ("left", "right"))
    chosen = first + rng.integers(0, np.maximum(last - first, 1))
    return np.where(last > first, seen[np.minimum(chosen, len(seen) - 1)], drawn)


def _times(kind: str, zone: str | None, numbers: Floats) -> Array:
    """Return times from microseconds: those of NumPy, or objects where they have a time zone."""
    unknown = np.isnan(numbers)
    whole = np.where(unknown, 0, numbers).astype(np.int64)
    naive = whole.astype("m8[us]" if kind == "duration" else "M8[us]")
    if zone is not None:
        there = [time.replace(tzinfo=UTC).astimezone(time_zone(zone)) for time in naive.tolist()]
        return np.array([None if gap else t for t, gap in zip(there, unknown, strict=True)], object)
    naive[unknown] = "NaT"
    return naive.astype("M8[D]") if kind == "date" else naive


def _integer(x: float) -> int | float | None:
    """Return a whole number as an integer, whose text is another than that of a float."""
    return None if np.isnan(x) else int(x) if x.is_integer() else x
