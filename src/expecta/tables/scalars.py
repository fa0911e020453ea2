"""Compare and convert single cells: what is missing, what is the same, what number it is."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from expecta.common.errors import DomainError
from expecta.tables.durations import read_duration

Scalar: TypeAlias = str | bool | int | float | date | datetime | timedelta

DAY = 86_400_000_000  # microseconds, the unit of everything that is a time
TIMES = ("date", "datetime", "duration")  # kinds of columns that are times underneath
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_WRITTEN = {  # what to write for a time
    "date": "; write '2024-05-31'",
    "datetime": "; write '2024-05-31 12:00'",
    "duration": "; write it with its unit, such as '4 days', '90 min' or '06:30:00'",
}
_MISSING = {"NoneType", "NAType", "NaTType", "MaskedConstant"}


def is_missing(value: object) -> bool:
    """Whether a cell says nothing: None, NaN, pd.NA, NaT, masked."""
    if type(value).__name__ in _MISSING:
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, float | np.floating | np.datetime64 | np.timedelta64):
        return bool(value != value)
    return False


def canonical(value: object) -> Scalar:
    """Return the plain Python value of a cell; an object of no known type becomes its text.

    A whole float is the same category as the integer: libraries turn one into the other
    as soon as a column has a missing cell.
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, np.timedelta64):  # which NumPy counts among the integers
        value = value.astype("m8[us]").item()
    elif isinstance(value, numbers.Integral):
        return int(value)
    elif isinstance(value, np.datetime64):
        value = value.astype("M8[us]").item()
    elif isinstance(value, float | np.floating | Decimal):
        return _whole(float(value))
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime(warn=False)
    elif hasattr(value, "to_pytimedelta"):
        value = value.to_pytimedelta()
    if isinstance(value, date | timedelta):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def _whole(value: float) -> int | float:
    return int(value) if math.isfinite(value) and value == int(value) else value


def key(value: Scalar) -> tuple[str, Scalar]:
    """Return what tells categories apart: 1, True and "1" are three, 1 and 1.0 are one."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number", value
    return type(value).__name__, value


def natural_order(values: Iterable[Scalar]) -> list[Scalar]:
    """Sort categories by value where they are of one type, by their text where they are not."""
    levels = list(values)
    try:
        if len({key(value)[0] for value in levels}) <= 1:
            return sorted(levels)
    except TypeError:  # times with and without a time zone
        pass
    return sorted(levels, key=lambda value: (str(value), key(value)[0]))


def microseconds(value: date | timedelta, zone: str | None) -> float:
    """Return a time as microseconds, since 1970 (in UTC where it has a time zone) or in all."""
    if isinstance(value, timedelta):
        return float(value / _MICROSECOND)
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if zone is None and value.tzinfo is not None:
        raise DomainError(f"{value} has a time zone and the column has none")
    if zone is not None:
        aware = value if value.tzinfo is not None else value.replace(tzinfo=time_zone(zone))
        return float((aware - _EPOCH.replace(tzinfo=UTC)) / _MICROSECOND)
    return float((value - _EPOCH) / _MICROSECOND)


def on_the_clock(value: float, zone: str | None) -> float:
    """Return microseconds since 1970 in UTC as those that a clock in a time zone shows."""
    if zone is None:
        return value
    try:
        there = (_EPOCH.replace(tzinfo=UTC) + value * _MICROSECOND).astimezone(time_zone(zone))
    except OverflowError:  # beyond the years that have a calendar
        return value
    return microseconds(there.replace(tzinfo=None), None)


def time_zone(name: str) -> tzinfo:
    """Return a time zone by its name, or by its distance from UTC such as UTC+01:00."""
    fixed = re.fullmatch(r"(?:UTC)?([+-])(\d\d):?(\d\d)", name)
    try:
        if fixed is None:
            return ZoneInfo(name)
        ahead = timedelta(hours=int(fixed[2]), minutes=int(fixed[3]))
        return timezone(ahead if fixed[1] == "+" else -ahead)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise DomainError(f"there is no time zone {name!r:.80} on this machine") from None


def number(value: Any, kind: str, zone: str | None = None) -> float:
    """Return the number that a cell of a numeric or time column is underneath.

    Text is read as a number, an ISO date or a duration; what is missing is NaN. A plain number is
    no time, as it has no unit; infinity is, and 0 is a duration.
    """
    if is_missing(value):
        return math.nan
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = canonical(value)
    try:
        if kind not in TIMES:
            if isinstance(value, date | timedelta):
                raise ValueError
            return float(value) + 0.0
        if isinstance(value, str):
            if kind == "duration":
                return read_duration(value)
            value = datetime.fromisoformat(value)
        if isinstance(value, timedelta if kind == "duration" else date):
            return microseconds(value, zone)
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
            raise ValueError
        if not math.isinf(value) and (value != 0 or kind != "duration"):
            raise ValueError
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except DomainError:
        raise
    except (TypeError, ValueError):
        wanted = "number" if kind not in TIMES else kind
        raise DomainError(f"{value!r:.80} is not a {wanted}{_WRITTEN.get(kind, '')}") from None
