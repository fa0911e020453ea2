"""Read and write lengths of time as texts, such as '4 days' and '06:30:00'."""

from __future__ import annotations

import re
from fractions import Fraction

_SECOND = 1_000_000  # microseconds
_UNITS = {
    "us|µs|microsecond": 1,
    "ms|millisecond": 1000,
    "s|sec|second": _SECOND,
    "m|min|minute": 60 * _SECOND,
    "h|hr|hour": 3600 * _SECOND,
    "d|day": 86400 * _SECOND,
    "w|week": 7 * 86400 * _SECOND,
}
_SIZES = {name: size for names, size in _UNITS.items() for name in names.split("|")}
_TERM = re.compile(
    r"\s*(,?)\s*([+-]?)\s*(?:(\d+):(\d\d):(\d\d(?:\.\d+)?)"
    r"|(\d+(?:\.\d*)?(?:e[+-]?\d{1,3})?)\s*([a-zµ]+))",
    re.IGNORECASE,
)
_ISO = re.compile(r"([+-]?)P(?=.)([\d.WD]*)(?:T([\d.HMS]+))?")


def read_duration(text: str) -> float:
    """Return the microseconds that a text says: units, hours:minutes:seconds, both, or ISO 8601.

    A sign holds for all that follows. Months and years have no length. A ValueError where it is
    no duration.

    >>> [read_duration(text) / 3.6e9 for text in ("4 days 06:00:00", "90 min", "-PT36H")]
    [102.0, 1.5, -36.0]
    """
    text = text.strip()
    if iso := _ISO.fullmatch(text):
        text = " ".join(part or "" for part in iso.groups()).strip()
    total, sign, end = Fraction(0), 1, 0
    while end < len(text) or not end:
        term = _TERM.match(text, end)
        if term is None:
            raise ValueError(f"{text!r:.80} is not a duration")
        comma, signed, hours, minutes, seconds, count, unit = term.groups()
        if signed or (comma and hours):  # Python writes -1 day, 2:00:00 for 22 hours before
            sign = -1 if signed == "-" else 1
        if hours:
            total += sign * _SECOND * (int(hours) * 3600 + int(minutes) * 60 + Fraction(seconds))
        else:
            total += sign * Fraction(count) * _size(unit.lower())
        end = term.end()
    try:
        return float(total)
    except OverflowError:
        raise ValueError(f"{text!r:.80} is too long for a duration") from None


def _size(unit: str) -> int:
    """Return the microseconds of a unit, by any of its names."""
    size = _SIZES.get(unit) or _SIZES.get(unit.removesuffix("s"))
    if size is None:
        raise ValueError(f"{unit!r:.40} is not a unit of time")
    return size


def write_duration(microseconds: float) -> str:
    """Write finite microseconds so that `read_duration` reads the same.

    >>> print(write_duration(345_600_000_000), "|", write_duration(-5_500_000))
    4 days | -00:00:05.5
    """
    if microseconds != int(microseconds):
        return f"{microseconds!r} us"
    sign = "-" if microseconds < 0 else ""
    seconds, rest = divmod(abs(int(microseconds)), _SECOND)
    days, seconds = divmod(seconds, 86400)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    clock += f".{rest:06}".rstrip("0") if rest else ""
    if not days:
        return sign + clock
    whole = f"{sign}{days} day{'s' if days > 1 else ''}"
    return f"{whole} {clock}" if seconds or rest else whole
