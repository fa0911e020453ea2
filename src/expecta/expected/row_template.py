"""Rows to predict: as the density sees them, and as the model takes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import DomainError
from expecta.densities.density import Density
from expecta.readers import frames
from expecta.tables.cells import Cells
from expecta.tables.column import Column
from expecta.tables.table import Table

__all__ = ["Template"]

Array = npt.NDArray[Any]
KEPT = 50  # complete rows


class Template:
    """Complete rows of the kind that the model takes; others are made like them."""

    def __init__(self, rows: Any, columns: tuple[str, ...], holed: frozenset[str]) -> None:
        self.rows, self.columns = rows, columns
        self.holed = holed  # columns in which a hole is a value
        self._order = columns  # of the table that was learned from
        self._rare: dict[int, tuple[Array, Floats]] = {}  # categories that a density takes together
        self.marks: dict[int, Any] = {}  # what the user has for these holes, by place

    @classmethod
    def of(
        cls, X: Any, table: Table, names: Sequence[str] | None, holed: Collection[str]
    ) -> Template:
        """Take complete rows of a training table, and the columns that the model names.

        Rows are complete that have holes only where these are values (``holed``).
        """
        columns = table.names if names is None or not table.named else tuple(names)
        found = cls(X, columns, frozenset(holed))
        found._order = table.names
        whole = np.flatnonzero(found.known(table).all(axis=1))[:KEPT]
        if not len(whole):
            raise DomainError(
                "no row is complete, and a column that the model asks for is all unknown"
            )
        if isinstance(X, Mapping):
            X = {name: np.asarray(values) for name, values in X.items()}
            X = nw.dependencies.get_pandas().DataFrame(X)
        elif not (frames.is_pandas(X) or frames.is_polars(X)):
            X = np.asarray(X)
        places = found.places(table)
        found.rows = frames.pick(frames.take(X, whole), places)
        for place, name in enumerate(columns):
            gone = np.flatnonzero(~table.column(places[place]).known)
            if name in holed and len(gone):
                one = frames.pick(frames.take(X, gone[:1]), [places[place]], flat=True)
                found.marks[place] = np.asarray(one, object)[0]
        return found

    def keep_rare(self, table: Table, density: Density) -> None:
        """Note the categories that a density takes together, and how often rows have them."""
        for place, at in enumerate(self.places(table)):
            column = density.encoder_.column(self.columns[place]).plain
            if column.other:
                cells = table.column(at)
                codes, levels = cells.as_levels()
                rare = np.flatnonzero(column.encode(cells) == len(column.values))
                kinds, counts = np.unique(codes[rare], return_counts=True)
                names = np.empty(len(levels), object)
                names[:] = levels
                self._rare[place] = names[kinds], counts / counts.sum()

    def places(self, table: Table) -> list[int]:
        """Find the columns of a table: by name, or those of an array by place."""
        if not table.named:
            if len(table.names) != len(self._order):
                raise DomainError(
                    f"there are {len(table.names)} columns, and the density learned from "
                    f"{len(self._order)}: {', '.join(self._order[:5])} ..."
                )
            return [self._order.index(name) for name in self.columns]
        absent = [name for name in self.columns if name not in table.names]
        if absent:
            raise DomainError(
                f"there is no column {absent[0]!r}; pass a column of None if it is unknown"
            )
        return [table.names.index(name) for name in self.columns]

    def known(self, table: Table) -> Bools:
        """Whether each cell is known, or a hole that is a value.  # (rows, columns)."""
        places = self.places(table)
        found = [
            table.column(at).known | (name in self.holed)
            for name, at in zip(self.columns, places, strict=True)
        ]
        return np.stack(found, axis=1)

    def column(self, table: Table, at: int) -> Array:
        """Return the values of a column of a table, None or NaN where they are unknown."""
        return _values(table.column(at))

    def complete(self, table: Table, rows: Ints) -> Any:
        """Return rows of a table without holes as the model takes them."""
        found = frames.take(self.rows, np.zeros(len(rows), np.int64))
        for place, at in enumerate(self.places(table)):
            values = _values(table.column(at))[rows]
            found = frames.put(found, place, frames.marked(values, self.marks.get(place)))
        return found

    def filled(
        self, table: Table, rows: Ints, codes: Ints, density: Density, rng: np.random.Generator
    ) -> Any:
        """Return rows as the model takes them, their holes filled with values of a density.

        Parameters
        ----------
        table
            Rows with holes.
        rows
            Which of them, each as often as it is needed.  # (draws,)
        codes
            Values of the density's variables.  # (draws, variables)
        density
            What the codes speak of; a number is drawn within its bin.
        rng
            Random numbers for that.
        """
        found = frames.take(self.rows, np.zeros(len(rows), np.int64))
        for place, at in enumerate(self.places(table)):
            variable = density.encoder_.variable(self.columns[place])
            cells, column = table.column(at), density.encoder_.columns_[variable]
            values = _drawn(column, codes[:, variable], rng)
            if place in self._rare:
                rare, share = self._rare[place]
                some = codes[:, variable] == len(column.values)
                values[some] = rng.choice(rare, np.count_nonzero(some), p=share)
            known = cells.known[rows]
            if known.any():
                own = _values(cells)
                if own.dtype.kind != values.dtype.kind:
                    values = values.astype(object)
                values[known] = own[rows[known]]
            found = frames.put(found, place, frames.marked(values, self.marks.get(place)))
        return found


def _values(cells: Cells) -> Array:
    """Return the cells as they were; None where a category is unknown."""
    if cells.numbers is not None:
        return _times(cells.kind, cells.numbers)
    assert cells.codes is not None
    table = np.empty(len(cells.levels) + 1, object)
    table[:] = [*cells.levels, None]
    return table[cells.codes]


def _drawn(column: Column, codes: Ints, rng: np.random.Generator) -> Array:
    values: Array = column.decode(codes, rng)
    return values if values.dtype == object else _times(column.kind, values)


def _times(kind: str, numbers: Array) -> Array:
    if kind not in ("date", "datetime", "duration"):
        return numbers.copy()
    unit = "m8[us]" if kind == "duration" else "M8[us]"
    whole = np.where(np.isnan(numbers), 0, numbers).astype(np.int64).astype(unit)
    return np.where(np.isnan(numbers), np.array("NaT", unit), whole)
