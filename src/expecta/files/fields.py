"""Declare single parts of a file: scalars and free values of its JSON header, and arrays."""

from __future__ import annotations

import math
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

MAX_CHARACTERS = 65_536  # of a text
MAX_DEPTH = 4  # levels of lists and mappings in a free value
ABSENT: Any = object()  # the JSON of what is not in the header, such as an array

_LIMITS = {int: (-math.inf, math.inf), float: (-sys.float_info.max, sys.float_info.max)}
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
_TAGS: dict[str, Callable[[Any], Any]] = {  # of values that JSON lacks
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "duration": lambda microseconds: timedelta(microseconds=microseconds),
    "float": float,
}
_SIZE = re.compile(r"(\w+?)([+-]\d+)?")


class FieldError(Exception):
    """A value that is not as its field is declared."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name!r:.200} {problem}" if name else problem)


@dataclass
class Store:
    """The arrays of a file, and the sizes known so far; reading an array takes it away."""

    arrays: dict[str, npt.NDArray[Any]]
    sizes: MutableMapping[str, int] = field(default_factory=dict)


class Field(ABC):
    """One part of a file: how it is written, and what it has to be when it is read."""

    @abstractmethod
    def write(self, value: Any, name: str, store: Store) -> Any:
        """Store the arrays of a value and return its JSON, or raise a FieldError."""

    @abstractmethod
    def read(self, json: Any, name: str, store: Store) -> Any:
        """Return the value of a field, or raise a FieldError."""

    @staticmethod
    def refuse(name: str, value: Any, expected: str) -> NoReturn:
        """Say what a value is, and what it should be."""
        if value is ABSENT:
            raise FieldError(name, f"is missing: it is {expected}")
        plain = value is None or isinstance(value, str | int | float)
        shown = f"{value!r:.60}" if plain else f"a {type(value).__name__}"
        raise FieldError(name, f"is {shown}, not {expected}")


@dataclass(frozen=True)
class Scalar(Field):
    """True or False, a whole number, a number or a text.

    Parameters
    ----------
    type
        bool, int, float or str.
    low, high
        The least and the largest number allowed. A float is finite unless its limits are not;
        JSON has an infinity as a text.
    choices
        The texts allowed, if not all.
    """

    type: type
    low: float | None = None
    high: float | None = None
    choices: Sequence[str] = ()

    def write(self, value: Any, name: str, store: Store) -> Any:
        """Return a value that is checked as in reading."""
        value = self.read(value.item() if isinstance(value, np.generic) else value, name, store)
        infinite = isinstance(value, float) and not math.isfinite(value)
        return str(value) if infinite else value

    def read(self, json: Any, name: str, store: Store) -> Any:
        """Return a value of the type and within the limits."""
        value = json
        if self.type is float and type(json) is int:
            value = float(json) if abs(json) < 2**1000 else math.nan
        elif self.type is float and isinstance(json, str) and json in ("inf", "-inf"):
            value = float(json)
        good = type(value) is self.type
        if good and self.type in _LIMITS:
            low, high = _LIMITS[self.type]
            good = (low if self.low is None else self.low) <= value
            good = good and value <= (high if self.high is None else self.high)
        elif good and self.type is str:
            if len(value) > MAX_CHARACTERS:
                raise FieldError(name, f"is too long: more than {MAX_CHARACTERS:,} characters")
            good = not self.choices or value in self.choices
        return value if good else self.refuse(name, json, self._expected())

    def _expected(self) -> str:
        words = f"one of {', '.join(self.choices)}" if self.choices else _WORDS[self.type]
        words += "" if self.low is None else f" of at least {self.low:g}"
        return words if self.high is None else f"{words} and at most {self.high:g}"


@dataclass(frozen=True)
class Value(Field):
    """Any value of texts, numbers, times and None, and lists and mappings of these.

    Parameters
    ----------
    plain
        Turns a value to be written into one of these types.
    max_depth
        How many levels of lists and mappings there may be.
    """

    plain: Callable[[Any], Any] = lambda value: value
    max_depth: int = MAX_DEPTH

    def write(self, value: Any, name: str, store: Store) -> Any:
        """Return a value as JSON; what JSON lacks is an object of one tag."""
        if isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in "mM":
            value = value.tolist()
        if isinstance(value, Mapping):
            return {"map": [[str(k), self.write(v, name, store)] for k, v in value.items()]}
        if isinstance(value, list | tuple | set | frozenset | range | np.ndarray):
            return [self.write(item, name, store) for item in value]
        value = value if value is None else self.plain(value)
        if isinstance(value, datetime):
            return {"datetime": value.isoformat()}
        if isinstance(value, date):
            return {"date": value.isoformat()}
        if isinstance(value, timedelta):
            return {"duration": value // timedelta(microseconds=1)}
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        if not isinstance(value, str | int | float | None):
            self.refuse(name, value, "a value that a file holds")
        return value

    def read(self, json: Any, name: str, store: Store) -> Any:
        """Return the value that JSON stands for."""
        return self._read(json, name, self.max_depth)

    def _read(self, json: Any, name: str, depth: int) -> Any:
        if json is None or isinstance(json, str | int):
            return json
        if isinstance(json, float) and math.isfinite(json):
            return json
        if isinstance(json, list) and depth:
            return [self._read(item, name, depth - 1) for item in json]
        if isinstance(json, dict) and len(json) == 1:
            [(tag, content)] = json.items()
            try:
                if tag in _TAGS:
                    return _TAGS[tag](content)
                if tag == "map" and depth and all(isinstance(key, str) for key, _ in content):
                    return {key: self._read(item, name, depth - 1) for key, item in content}
            except (TypeError, ValueError, OverflowError):
                pass
        self.refuse(name, json, "a value that a file holds")


class Array(Field):
    """An array.

    Parameters
    ----------
    dtype
        "int32", "int64" or "float64".
    shape
        A size for each dimension: a number; a name such as "rows" or "bins-1", which stands for
        the same size in all of a record and the records in it; or None for any size.
    low, high
        The least and the largest number allowed, if there are limits.
    finite
        Whether infinities and NaN are refused.
    increasing
        Whether every number has to be larger than the one before.
    """

    def __init__(
        self,
        dtype: str,
        *shape: int | str | None,
        low: float | None = None,
        high: float | None = None,
        finite: bool = True,
        increasing: bool = False,
    ) -> None:
        self.dtype, self.shape = np.dtype(dtype), shape
        self.low, self.high, self.finite, self.increasing = low, high, finite, increasing

    def write(self, value: Any, name: str, store: Store) -> Any:
        """Store an array, checked as in reading."""
        store.arrays[name] = self.checked(np.asarray(value, self.dtype), name, store)
        return ABSENT

    def read(self, json: Any, name: str, store: Store) -> npt.NDArray[Any]:
        """Take an array from the store."""
        if (json is not ABSENT and json is not None) or name not in store.arrays:
            self.refuse(name, json, f"an array of type {self.dtype}")
        return self.checked(store.arrays.pop(name), name, store)

    def checked(self, array: npt.NDArray[Any], name: str, store: Store) -> npt.NDArray[Any]:
        """Return an array that is as declared, or raise a FieldError."""
        if array.dtype != self.dtype or array.ndim != len(self.shape):
            raise FieldError(
                name,
                f"must be {self.dtype} of {len(self.shape)} dimension(s), "
                f"not {array.dtype} of {array.ndim}",
            )
        for length, size in zip(array.shape, self.shape, strict=True):
            expected = length if size is None else size
            if isinstance(expected, str):
                symbol, offset = _SIZE.fullmatch(expected).groups("0")  # type: ignore[union-attr]
                if length < int(offset):
                    raise FieldError(name, f"has a dimension of {length}, too small")
                expected = store.sizes.setdefault(symbol, length - int(offset)) + int(offset)
            if expected != length:
                raise FieldError(name, f"has a dimension of {length}, which must be {expected}")
        if self.finite and not np.all(np.isfinite(array)):
            raise FieldError(name, "holds a number that is not finite")
        if self.low is not None and not np.all(array >= self.low):
            raise FieldError(name, f"holds a number that is out of range: below {self.low:g}")
        if self.high is not None and not np.all(array <= self.high):
            raise FieldError(name, f"holds a number that is out of range: above {self.high:g}")
        if self.increasing and not np.all(array[1:] > array[:-1]):
            raise FieldError(name, "holds numbers that do not increase")
        return array
