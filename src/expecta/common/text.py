"""Write numbers and suggestions for people to read."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

# what HTML and XML forbid, and what turns the direction of a text around
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def number(value: float) -> str:
    """Write a number with about five digits."""
    if value is None or not np.isfinite(value):
        return "" if value is None or np.isnan(value) else str(value)
    return f"{value:,.0f}" if 1e5 <= abs(value) < 1e12 else f"{value:.5g}"


def counted(count: int, noun: str) -> str:
    """Write how many there are.

    >>> counted(1, "row"), counted(2000, "row"), counted(0, "column")
    ('1 row', '2,000 rows', 'no columns')
    """
    if not count:
        return f"no {noun}s"
    return f"{count:,} {noun}{'s' * (count > 1)}"


def missing_sentence(columns: Sequence[str]) -> str:
    """Write which columns a table does not have.

    >>> missing_sentence(["age", "sex"])
    "the table has no columns 'age', 'sex': missing in every row"
    """
    names = ", ".join(map(repr, columns))
    return f"the table has no column{'s' * (len(columns) > 1)} {names}: missing in every row"


def shortened(values: Sequence[object] | npt.NDArray[Any], most: int = 6) -> str:
    """List the first of some values.

    >>> shortened([3, 1, 4, 1, 5], most=3)
    '3, 1, 4, ...'
    """
    return ", ".join(map(str, values[:most])) + (", ..." if len(values) > most else "")


def suggestion(wanted: object, known: Collection[str], what: str = "there is") -> str:
    """Return what there is to choose from, and what was probably meant."""
    names, text = list(known), str(wanted)
    padded = [name for name in names if text.isdigit() and name.lstrip("0") == text.lstrip("0")]
    close = padded or get_close_matches(text, names, n=1)
    meant = f" (did you mean {close[0]!r}?)" if close else ""
    shown = ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")
    return f"{what} {shown}{meant}"


def figure(value: float, *, signed: bool = False) -> str:
    """Write a number with four digits or without decimals, thousands apart.

    >>> figure(13309.2), figure(0.123456), figure(-3.0), figure(518.34, signed=True)
    ('13,309', '0.1235', '-3', '+518.3')
    """
    if not np.isfinite(value):
        return "—" if np.isnan(value) else str(value)
    sign = "+" if signed else ""
    if 1000 <= abs(value) < 1e12:
        return f"{value:{sign},.0f}"
    return f"{value:{sign}.4g}"


def percent(share: float) -> str:
    """Write a share with about three digits; a tiny one is not written as zero.

    >>> percent(0.7474), percent(0.0125), percent(2e-5), percent(0.0)
    ('74.7%', '1.25%', '<0.01%', '0%')
    """
    if not np.isfinite(share):
        return "—"
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    if share < 1e-4:
        return "<0.01%"
    return f"{share:.1%}" if share >= 0.1 else f"{share:.2%}"


def brief(condition: str) -> str:
    """Write a condition with at most four digits of each number, to be read but not asked.

    >>> brief("0.7572898177990453 <= x < 12 and y == 'b'")
    "0.7573 <= x < 12 and y == 'b'"
    """
    return re.sub(r"\d+\.\d{4,}(e[+-]?\d+)?", lambda found: f"{float(found[0]):.4g}", condition)


def printable(text: str) -> str:
    """Return a text with a replacement character for all that cannot be shown.

    >>> printable("a" + chr(0) + "b")
    'a�b'
    """
    return _UNPRINTABLE.sub("\ufffd", text)
