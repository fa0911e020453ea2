"""Classes in files: numbers, Booleans or texts as JSON."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.common.errors import DomainError

__all__ = ["read_classes", "written_classes"]

_TYPES = {"b": bool, "i": int, "u": int, "f": float, "U": str, "O": str}
_DTYPE = re.compile(r"\|b1|[<>|](i|u)[1248]|[<>]f[248]|[<>]U\d{1,8}|\|O")
CHARACTERS = 1 << 24  # of texts of one width


def written_classes(classes: npt.NDArray[Any]) -> dict[str, Any]:
    """Return classes as JSON: numbers, Booleans or texts."""
    values = [str(one) if isinstance(one, str) else one for one in classes.tolist()]
    found = {"dtype": classes.dtype.str, "values": values}
    try:
        read_classes(found)
    except (ValueError, OverflowError):
        raise DomainError(
            f"a file holds classes that are integers, floats, Booleans or texts, and these are "
            f"of type {type(values[0]).__name__} ({classes.dtype}); rename them, or use pickle"
        ) from None
    return found


def read_classes(given: object) -> npt.NDArray[Any]:
    """Return classes from JSON, or raise a ValueError or OverflowError."""
    if not isinstance(given, dict) or set(given) != {"dtype", "values"}:
        raise ValueError("classes without a type or values")
    spelt, values = given["dtype"], given["values"]
    if not isinstance(spelt, str) or not _DTYPE.fullmatch(spelt):
        raise ValueError("classes of an unknown type")
    kind = spelt[1]
    if not isinstance(values, list) or not all(type(value) is _TYPES[kind] for value in values):
        raise ValueError("classes of another type than it says")
    if not values or not all(a < b for a, b in pairwise(values)):
        raise ValueError("classes out of order")
    if kind == "U" and len(values) * int(spelt[2:]) > CHARACTERS:
        raise ValueError("classes that are too long")
    with np.errstate(over="ignore"):
        made = np.array(values, np.dtype(spelt))
    if made.tolist() != values:
        raise ValueError("classes that do not fit their type")
    return made
