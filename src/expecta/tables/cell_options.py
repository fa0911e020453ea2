"""Read cells as the encoder's options say: what means missing, decimal signs, formats of dates."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.common.errors import DomainError
from expecta.tables.cells import Cells
from expecta.tables.scalars import Scalar, microseconds
from expecta.tables.table import Table

DECIMALS = (".", ",")


@dataclass(frozen=True)
class CellOptions:
    """What cells mean that do not say it themselves.

    Attributes
    ----------
    na
        Texts and numbers that mean missing.
    decimal
        The decimal sign of numbers that are texts.
    numeric
        Columns of numbers, in which texts may have thousands apart, such as 1,234.5.
    dates
        Columns of dates, and the format of those that are not ISO's.
    """

    na: tuple[Scalar, ...] = ()
    decimal: str = "."
    numeric: frozenset[str] = frozenset()
    dates: Mapping[str, str | None] | None = None

    def read(self, table: Table, numeric: Collection[str] = ()) -> Table:
        """Return a table with all of it done; ``numeric`` are further columns of numbers.

        Codes of an integer array stay as they are. Doing it twice changes nothing.
        """
        numeric = self.numeric.union(numeric)
        if table.source == "codes" or not (
            self.na or self.dates or self.decimal != "." or numeric & set(table.names)
        ):
            return table
        array = table.array
        if array is not None and array.dtype.kind == "f":
            marked = np.isin(array, self._numbers)
            return replace(table, array=np.where(marked, np.nan, array)) if marked.any() else table
        columns = tuple(
            self._read(table.column(i), name in numeric) for i, name in enumerate(table.names)
        )
        if array is None:
            return replace(table, columns=columns)
        cells = np.empty(array.shape, object)
        for i, column in enumerate(columns):
            cells[:, i] = _objects(column, array[:, i])
        return replace(table, array=cells)

    @property
    def _numbers(self) -> list[float]:
        return [number for number in map(_as_number, self.na) if number is not None]

    def _read(self, cells: Cells, numeric: bool) -> Cells:
        if self.na:
            cells = self._without_markers(cells)
        if self.dates is not None and cells.name in self.dates:
            return _read_dates(cells, self.dates[cells.name])
        texts = cells.codes is not None and all(isinstance(level, str) for level in cells.levels)
        if texts and cells.levels and (numeric or self.decimal != "."):
            return self._read_numbers(cells, numeric)
        return cells

    def _without_markers(self, cells: Cells) -> Cells:
        """Make cells missing that hold what means missing."""
        if cells.numbers is not None:
            marked = np.isin(cells.numbers, self._numbers)
            plain = cells.kind in ("integer", "number") and marked.any()
            return cells.masked(marked) if plain else cells
        assert cells.codes is not None
        texts, numbers = set(map(str, self.na)), set(self._numbers)
        number_like = [_as_number(level) for level in cells.levels]
        marked = np.array(
            [
                str(level).strip() in texts or (number is not None and number in numbers)
                for level, number in zip(cells.levels, number_like, strict=True)
            ],
            np.bool_,
        )
        if not marked.any() or cells.kind == "boolean":
            return cells
        place = np.append(np.where(marked, -1, np.cumsum(~marked) - 1), -1)
        kept = tuple(level for level, out in zip(cells.levels, marked, strict=True) if not out)
        if not kept and not cells.declared:
            return Cells(cells.name, "unknown", cells.dtype, np.full(len(cells), np.nan))
        return replace(cells, codes=place[cells.codes].astype(np.int32), levels=kept)

    def _read_numbers(self, cells: Cells, numeric: bool) -> Cells:
        """Read texts as numbers: those of numeric columns, and those with this decimal sign."""
        assert cells.codes is not None
        apart = "," if self.decimal == "." else "."
        written = number_pattern(self.decimal)
        texts = [str(level).strip() for level in cells.levels]
        if not all(map(written.fullmatch, texts)):
            return cells
        if not numeric and not any(self.decimal in text for text in texts):
            return cells
        plain = [text.replace(apart, "").replace(self.decimal, ".") for text in texts]
        numbers = np.array([*map(float, plain), np.nan])[cells.codes]
        return Cells(cells.name, "number", cells.dtype, numbers)


def number_pattern(decimal: str) -> re.Pattern[str]:
    """Return what numbers look like as texts, thousands apart or not."""
    sign, apart = (re.escape(mark) for mark in (decimal, "," if decimal == "." else "."))
    whole = rf"(?:\d{{1,3}}(?:{apart}\d{{3}})+|\d+)"
    return re.compile(rf"[-+]?(?:{whole}(?:{sign}\d*)?|{sign}\d+)(?:[eE][-+]?\d+)?")


def read_date(text: str, form: str | None) -> datetime:
    """Read a date or time: an ISO text, or one of a format of ``strptime``."""
    return datetime.fromisoformat(text) if form is None else datetime.strptime(text, form)


def _read_dates(cells: Cells, form: str | None) -> Cells:
    """Read texts, or whole numbers such as 20240531, as dates."""
    if cells.kind not in ("category", "integer", "number"):
        return cells
    codes, levels = cells.as_levels()
    times = []
    for level in levels:
        try:
            if isinstance(level, date):
                time = level if isinstance(level, datetime) else datetime(*level.timetuple()[:3])
            else:
                time = read_date("" if level != level else str(level).strip(), form)
        except ValueError:
            if level != level:
                continue  # the last of numbers, which is not a level of any cell
            wanted = "written as 2024-05-31" if form is None else f"of the format {form!r}"
            raise DomainError(
                f"column {cells.name!r} holds dates: {level!r:.60} is not a date {wanted}; write "
                f"it so, or fit with its format: dates={{{cells.name!r}: '%d/%m/%Y'}}, or "
                f"--date {cells.name}=%d/%m/%Y"
            ) from None
        times.append(time)
    zoned = {time.tzinfo is not None for time in times}
    if len(zoned) > 1:
        raise DomainError(
            f"some times of column {cells.name!r} have a time zone and some have none"
        )
    zone = "UTC" if True in zoned else None
    numbers = np.array([*(microseconds(time, zone) for time in times), np.nan])[codes]
    return Cells(cells.name, "datetime", cells.dtype, numbers, zone=zone)


def _as_number(value: Any) -> float | None:
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def _objects(column: Cells, given: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a column of an array with what was read of it."""
    cells = given.astype(object)
    if column.numbers is not None and column.kind == "number":
        cells[:] = column.numbers
    elif column.numbers is not None and column.kind == "datetime":
        cells[:] = np.where(column.known, column.numbers, 0).astype("M8[us]").astype(object)
    cells[~column.known] = None
    return cells
