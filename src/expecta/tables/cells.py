"""Hold one column as it was given: numbers, or categories by number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import DomainError
from expecta.tables.scalars import DAY, Scalar, canonical, is_missing, key, natural_order, number

# Microseconds in the units of NumPy's times; the finer ones as a divisor.
_UNITS = {"s": 10**6, "ms": 10**3, "us": 1, "m": 60 * 10**6, "h": 3600 * 10**6, "D": DAY}


@dataclass(frozen=True)
class Cells:
    """The cells of one column.

    Numbers and times are floats, missing NaN, times in microseconds; everything else is
    the number of a level, missing -1. ``kind`` is what the cells look like; a column in
    which all is missing is of kind "unknown".
    """

    name: str
    kind: str
    dtype: str
    numbers: Floats | None = None
    codes: Ints | None = None
    levels: tuple[Scalar, ...] = ()
    declared: bool = False  # the levels are the user's, in the user's order
    zone: str | None = None
    rounded: bool = False  # different integers became the same number

    def __len__(self) -> int:
        cells = self.numbers if self.codes is None else self.codes
        return 0 if cells is None else len(cells)

    @property
    def known(self) -> Bools:
        """Whether each cell is known."""
        if self.numbers is not None:
            return ~np.isnan(self.numbers)
        assert self.codes is not None
        return self.codes >= 0

    def masked(self, mask: Bools) -> Cells:
        """Return the cells with some of them missing."""
        if self.numbers is not None:
            return replace(self, numbers=np.where(mask, np.nan, self.numbers))
        assert self.codes is not None
        return replace(self, codes=np.where(mask, -1, self.codes))

    def take(self, rows: Ints) -> Cells:
        """Return the cells of some rows, which may repeat."""
        if self.numbers is not None:
            return replace(self, numbers=self.numbers[rows])
        assert self.codes is not None
        return replace(self, codes=self.codes[rows])

    def as_numbers(self, kind: str, zone: str | None = None) -> Floats:
        """Return the cells as numbers of a kind; text is read as numbers or ISO dates."""
        times = ("date", "datetime")
        if self.numbers is not None:
            alike = self.kind in (kind, "unknown") or (kind in times and self.kind in times)
            if not alike and (kind in (*times, "duration") or self.kind in (*times, "duration")):
                raise DomainError(f"column {self.name!r} holds {self.kind}s, not {kind}s")
            if (self.zone is None) != (zone is None) and kind == "datetime" == self.kind:
                raise DomainError(
                    f"the times of column {self.name!r} have "
                    f"{'no' if self.zone is None else 'a'} time zone, unlike those it was fitted to"
                )
            return self.numbers
        assert self.codes is not None
        try:
            table = [number(level, kind, zone) for level in self.levels]
        except DomainError as problem:
            raise DomainError(
                f"column {self.name!r} holds {kind}s: {problem}; what is unknown is None or NaN, "
                f"or a marker named by Encoder(na=[...]) or --na"
            ) from None
        return np.array([*table, np.nan])[self.codes]

    def as_levels(self) -> tuple[Ints, tuple[Scalar, ...]]:
        """Return the cells as categories: the number of each and what they are."""
        if self.numbers is None:
            assert self.codes is not None
            return self.codes, self.levels
        if self.kind in ("date", "datetime", "duration"):
            unit = "m8[us]" if self.kind == "duration" else "M8[us]"
            cells = np.where(np.isnan(self.numbers), 0, self.numbers).astype(np.int64).astype(unit)
            used, codes = np.unique(cells, return_inverse=True)
            levels: list[Any] = (used.astype("M8[D]") if self.kind == "date" else used).tolist()
        else:
            used, codes = np.unique(self.numbers + 0.0, return_inverse=True)
            levels = [value if np.isnan(value) else canonical(value) for value in used.tolist()]
        codes = np.where(np.isnan(self.numbers), -1, codes.reshape(-1))
        return codes, tuple(levels)


def from_numpy(name: str, array: npt.NDArray[Any], zone: str | None = None) -> Cells:
    """Read a column that NumPy holds."""
    if isinstance(array, np.ma.MaskedArray):
        plain = from_numpy(name, array.filled() if array.dtype.kind in "fiub" else array.data)
        return plain.masked(np.ma.getmaskarray(array))
    dtype = str(array.dtype)
    if array.dtype.kind == "b":
        return Cells(name, "boolean", dtype, None, array.astype(np.int32), (False, True))
    if array.dtype.kind in "iu":
        numbers = array.astype(np.float64)
        return Cells(name, "integer", dtype, numbers, rounded=_rounded(array, numbers))
    if array.dtype.kind == "f":
        return Cells(name, "number", dtype, array.astype(np.float64))
    if array.dtype.kind in "mM":
        unit = np.datetime_data(array.dtype)
        kind = "duration" if array.dtype.kind == "m" else "datetime"
        if kind == "datetime" and unit[0] == "D":
            kind = "date"
        return Cells(name, kind, dtype, _microseconds(array, unit), zone=zone)
    if array.dtype.kind in "OUSTVc":
        return from_list(name, array.tolist(), dtype)
    raise DomainError(
        f"column {name!r} has the type {array.dtype}, which is not supported; convert it to "
        f"numbers, texts or times"
    )


def _microseconds(array: npt.NDArray[Any], unit: tuple[str, int]) -> Floats:
    """Return NumPy's times in microseconds; a finer time keeps its fraction."""
    name, count = unit
    if name not in _UNITS and name not in ("ns", "ps", "fs", "as"):  # weeks, months, years
        array = array.astype(array.dtype.str[:2] + "8[D]")
        name, count = "D", 1
    raw = array.astype(np.int64)
    if name in _UNITS:
        out = raw.astype(np.float64) * (_UNITS[name] * count)
    else:
        divisor = 10 ** {"ns": 3, "ps": 6, "fs": 9, "as": 12}[name]
        whole, part = np.divmod(raw, divisor)
        out = (whole.astype(np.float64) + part / divisor) * count
    out[np.isnat(array)] = np.nan
    return out


def from_list(
    name: str, cells: Sequence[Any], dtype: str = "object", declared: Sequence[Any] | None = None
) -> Cells:
    """Read Python objects: numbers, Booleans and times where all are, else categories.

    A few types hold all the cells, so that what depends on the type is asked once of each.
    """
    kinds = {cls: _kind(cls) for cls in set(map(type, cells))}
    if any(kind in ("number", "missing", "time", "datetime") for kind in kinds.values()):
        unknown = np.fromiter(map(is_missing, cells), np.bool_, len(cells))
    else:
        unknown = np.zeros(len(cells), np.bool_)
    known = [cell for cell, missing in zip(cells, unknown.tolist(), strict=True) if not missing]
    if not known and declared is None:
        return Cells(name, "unknown", dtype, np.full(len(cells), np.nan))
    present = {kinds[cls] for cls in set(map(type, known))}
    if "time" in present and declared is None:
        known = [canonical(cell) for cell in known]
        present = {_kind(type(cell)) for cell in known}
    if present in ({"integer", "number"}, {"date", "datetime"}):
        present = {"number"} if "number" in present else {"datetime"}
    kind = present.pop() if len(present) == 1 and declared is None else "category"
    if kind in ("category", "boolean"):
        codes = np.full(len(cells), -1, np.int32)
        codes[~unknown], levels = _factorise(known, declared)
        if kind == "boolean":
            codes[~unknown] = np.array([int(level is True) for level in levels])[codes[~unknown]]
            levels = (False, True)
        return Cells(name, kind, dtype, None, codes, levels, declared is not None)
    zone = _zone(name, known) if kind == "datetime" else None
    numbers = np.full(len(cells), np.nan)
    numbers[~unknown] = [number(cell, kind, zone) for cell in known]
    rounded = kind == "integer" and _rounded(known, numbers[~unknown])
    return Cells(name, kind, dtype, numbers, zone=zone, rounded=rounded)


def _rounded(integers: Sequence[Any] | npt.NDArray[Any], numbers: Floats) -> bool:
    """Whether different integers became the same number."""
    if np.max(np.abs(numbers), initial=0.0) <= 2.0**53:
        return False
    return len(np.unique(numbers)) < len(set(np.asarray(integers).tolist()))


def _kind(cls: type) -> str:
    """Return the kind of column that cells of a Python type make."""
    if cls.__name__ in ("NoneType", "NAType", "NaTType", "MaskedConstant"):
        return "missing"
    for bases, kind in (
        ((bool, np.bool_), "boolean"),
        ((str, bytes), "category"),
        ((np.datetime64, np.timedelta64), "time"),
        ((Integral,), "integer"),
        ((float, np.floating, Decimal), "number"),
        ((datetime,), "datetime"),
        ((date,), "date"),
        ((timedelta,), "duration"),
    ):
        if issubclass(cls, bases):
            return kind
    return "category"


def _factorise(known: list[Any], declared: Sequence[Any] | None) -> tuple[Ints, tuple[Scalar, ...]]:
    """Give the categories numbers, in their declared or natural order."""
    texts = all(cls is str for cls in set(map(type, known)))
    number_of: dict[Any, int] = {}
    keys = known if texts else [key(canonical(cell)) for cell in known]
    first = [number_of.setdefault(cell, len(number_of)) for cell in keys]
    levels: list[Scalar] = list(number_of) if texts else [value for _, value in number_of]
    if declared is None:
        order = natural_order(levels)
    else:
        order = list({key(value): value for value in map(canonical, declared)}.values())
    position = {key(value): i for i, value in enumerate(order)}
    codes = np.array([position[key(value)] for value in levels], np.int32)
    return codes[np.array(first, np.int64)] if first else codes, tuple(order)


def _zone(name: str, known: list[Any]) -> str | None:
    aware = {cell.tzinfo is not None for cell in known if isinstance(cell, datetime)}
    if len(aware) > 1 or (True in aware and not all(isinstance(c, datetime) for c in known)):
        raise DomainError(f"some times of column {name!r} have a time zone and some have none")
    return "UTC" if True in aware else None
