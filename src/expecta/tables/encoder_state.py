"""What an encoder learned as JSON and arrays, and back; nothing in a file is trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import within
from expecta.common.errors import DomainError, FormatError
from expecta.tables.category_column import CategoryColumn
from expecta.tables.column import LARGEST_CODE, CodeColumn, Column
from expecta.tables.encoder_options import EncoderOptions
from expecta.tables.missing_column import MissingIsValueColumn
from expecta.tables.number_column import NumberColumn
from expecta.tables.scalars import DAY, TIMES, canonical, key, time_zone
from expecta.tables.table import SOURCES

__all__ = ["read_state", "write_state"]

_CLASSES: dict[str, type[Column]] = {
    "category": CategoryColumn,
    "boolean": CategoryColumn,
    "integer": NumberColumn,
    "number": NumberColumn,
    **dict.fromkeys(TIMES, NumberColumn),
    "code": CodeColumn,
    "unknown": Column,
}
_PARAMS = {
    *("max_bins", "bins", "max_categories", "kinds", "thresholds", "unseen", "missing_is_value")
}
_FIELDS = {"name", "kind", "dtype", "values", "other", "step", "zone", "missing"}
_BINNED = ("means", "stds", "lows", "highs")
_LONGEST = 65_536  # characters of a name or a type
_DEEPEST = 4  # levels of lists and mappings in a parameter


def write_state(
    params: Mapping[str, Any], source: str, columns: list[Column], notes: list[str]
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return a header for JSON and the arrays, those of all columns one after the other."""
    header = {
        "params": {name: _to_json(value) for name, value in params.items()},
        "source": source,
        "notes": list(notes),
        "columns": [
            {
                "name": column.name,
                "kind": column.kind,
                "dtype": column.dtype,
                "values": [_to_json(value) for value in column.values],
                "other": column.other,
                "step": column.step,
                "zone": column.zone,
                "missing": float(column.counts[-1]) if column.plain is not column else None,
            }
            for column in columns
        ],
    }
    columns = [column.plain for column in columns]
    arrays: dict[str, npt.NDArray[Any]] = {
        "cardinalities": np.array([column.cardinality for column in columns], np.int32)
    }
    for name in ("counts", "edges", *_BINNED):
        parts = [getattr(column, name) for column in columns]
        arrays[name] = np.concatenate(parts).astype(np.float64)
    return header, arrays


def read_state(
    path: str, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> tuple[dict[str, Any], str, list[Column], list[str]]:
    """Return parameters, source, columns and notes, or raise a FormatError."""
    return _Reader(path).read(header, arrays)


def _to_json(value: Any) -> Any:
    """Return a value as JSON; times, and floats that JSON lacks, are named by a tag."""
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {"map": [[str(name), _to_json(one)] for name, one in value.items()]}
    if isinstance(value, list | tuple | set | frozenset | range):
        return [_to_json(one) for one in value]
    plain = canonical(value)
    if isinstance(plain, datetime):
        return {"datetime": plain.isoformat()}
    if isinstance(plain, date):
        return {"date": plain.isoformat()}
    if isinstance(plain, timedelta):
        return {"duration": plain // timedelta(microseconds=1)}
    if isinstance(plain, float) and not math.isfinite(plain):
        return {"float": str(plain)}
    return plain


def _shown(value: object) -> str:
    """Return something from a file for a message; what is nested may be too deep to write."""
    return f"{value!r:.60}" if isinstance(value, str | float) else type(value).__name__


class _Reader:
    """Checks a state piece by piece; every complaint is a FormatError about the file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def read(
        self, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> tuple[dict[str, Any], str, list[Column], list[str]]:
        if not isinstance(header, Mapping) or set(header) != {
            "params",
            "source",
            "notes",
            "columns",
        }:
            self._fail("its header has other entries than it should")
        notes = header["notes"]
        if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
            self._fail("its notes are not a list of texts")
        if header["source"] not in SOURCES:
            self._fail(f"its table is of the kind {_shown(header['source'])}")
        params = self._params(header["params"])
        columns = self._columns(header["columns"], self._arrays(arrays))
        if header["source"] == "codes" and any(
            column.kind != "code" and column.name not in (params["kinds"] or {})
            for column in columns
        ):
            self._fail("an integer array has a column that is not one of integers")
        return params, header["source"], columns, list(notes)

    def _fail(self, problem: str) -> NoReturn:
        raise FormatError(self._path, None, f"the encoder is damaged: {problem}")

    def _params(self, given: object) -> dict[str, Any]:
        if isinstance(given, Mapping):
            given = {"missing_is_value": None, **given}
        if not isinstance(given, Mapping) or set(given) != _PARAMS:
            self._fail("its parameters are not those of an encoder")
        params = {name: self._value(value, 0) for name, value in given.items()}
        try:
            EncoderOptions.from_params(params)
        except (ValueError, TypeError) as problem:
            self._fail(str(problem))
        return params

    def _value(self, given: object, depth: int) -> Any:
        """Return a value from JSON, the tagged ones included."""
        if given is None or isinstance(given, str | bool | int):
            return given
        if isinstance(given, float) and math.isfinite(given):
            return given
        if isinstance(given, list) and depth < _DEEPEST:
            return [self._value(one, depth + 1) for one in given]
        if isinstance(given, Mapping) and len(given) == 1:
            [(tag, content)] = given.items()
            try:
                if tag == "datetime":
                    return datetime.fromisoformat(content)
                if tag == "date":
                    return date.fromisoformat(content)
                if tag == "duration" and type(content) is int:
                    return timedelta(microseconds=content)
                if tag == "float" and content in ("inf", "-inf", "nan"):
                    return float(content)
                if tag == "map" and isinstance(content, list) and depth < _DEEPEST:
                    names = [name for name, _ in content]
                    if all(isinstance(name, str) for name in names):
                        return {name: self._value(one, depth + 1) for name, one in content}
            except (TypeError, ValueError, OverflowError):
                pass
        self._fail(f"{_shown(given)} is no value")

    def _arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        wanted = ("cardinalities", "counts", "edges", *_BINNED)
        if set(arrays) != set(wanted):
            self._fail("its arrays are not those of an encoder")
        for name in wanted:
            dtype = np.int32 if name == "cardinalities" else np.float64
            if arrays[name].dtype != dtype or arrays[name].ndim != 1:
                self._fail(f"the array {name!r} must be {np.dtype(dtype)} of 1 dimension")
            if not np.all(np.isfinite(arrays[name])):
                self._fail(f"the array {name!r} holds a number that is not finite")
        return {
            name: np.array(arrays[name], arrays[name].dtype.newbyteorder("=")) for name in wanted
        }

    def _columns(self, given: object, arrays: dict[str, npt.NDArray[Any]]) -> list[Column]:
        cards = arrays.pop("cardinalities")
        if not isinstance(given, list) or not given or len(given) != len(cards):
            self._fail("its columns and their numbers of values differ in number")
        if not within(cards, 1, 2**31 - 1):
            self._fail("a column has no values")
        place = dict.fromkeys(arrays, 0)

        def take(name: str, size: int) -> npt.NDArray[Any]:
            start = place[name]
            place[name] = start + size
            if place[name] > len(arrays[name]):
                self._fail(f"the array {name!r} is too short")
            return arrays[name][start : start + size].copy()

        columns: list[Column] = []
        for one, card in zip(given, cards.tolist(), strict=True):
            one = {"missing": None, **one} if isinstance(one, Mapping) else one
            fields = self._fields(one, card)
            fields["counts"] = take("counts", card)
            cls = _CLASSES[fields["kind"]]
            if cls is NumberColumn:
                fields["edges"] = take("edges", card - 1)
                fields |= {name: take(name, card) for name in _BINNED}
                self._check_bins(fields)
            if np.any(fields["counts"] < 0):
                self._fail(f"a count of column {fields['name']!r:.60} is negative")
            column, missing = cls(**fields), one["missing"]
            if missing is not None:
                if type(missing) is not float or not 0 <= missing < math.inf:
                    self._fail(f"{_shown(missing)} cells of column {column.name!r:.60} are missing")
                column = MissingIsValueColumn.from_known(column, missing)
            columns.append(column)
        if any(place[name] != len(arrays[name]) for name in arrays):
            self._fail("its arrays are longer than its columns")
        if len({column.name for column in columns}) < len(columns):
            self._fail("two columns have the same name")
        return columns

    def _fields(self, given: object, card: int) -> dict[str, Any]:
        """Check what is not an array."""
        if not isinstance(given, Mapping) or set(given) != _FIELDS:
            self._fail("a column has other entries than it should")
        name, kind, dtype, zone = (given[field] for field in ("name", "kind", "dtype", "zone"))
        if not isinstance(name, str) or not isinstance(dtype, str):
            self._fail("the name or the type of a column is no text")
        if max(len(name), len(dtype)) > _LONGEST:
            self._fail("the name or the type of a column is too long")
        if not isinstance(kind, str) or kind not in _CLASSES:
            self._fail(f"column {name!r:.60} is of the kind {_shown(kind)}")
        if zone is not None:
            self._check_zone(name, kind, zone)
        step, other, values = given["step"], given["other"], given["values"]
        if type(step) not in (int, float) or not 0 <= step <= DAY:
            self._fail(f"the step of column {name!r:.60} is {_shown(step)}")
        if not isinstance(other, bool) or not isinstance(values, list):
            self._fail(f"the categories of column {name!r:.60} are no list")
        values = tuple(self._value(value, _DEEPEST) for value in values)
        self._check_categories(name, kind, card, values, other)
        return {
            "name": name,
            "kind": kind,
            "dtype": dtype,
            "cardinality": card,
            "values": values,
            "other": other,
            "step": float(step),
            "zone": zone,
        }

    def _check_zone(self, name: str, kind: str, zone: object) -> None:
        try:
            if kind == "datetime" and isinstance(zone, str) and len(zone) < 100:
                time_zone(zone)
                return
        except DomainError:
            pass
        self._fail(f"column {name!r:.60} has the time zone {_shown(zone)}")

    def _check_categories(
        self, name: str, kind: str, card: int, values: tuple[Any, ...], other: bool
    ) -> None:
        if _CLASSES[kind] is CategoryColumn:
            if len(values) + other != card:
                self._fail(f"column {name!r:.60} has {card} values and {len(values)} categories")
            if any(value is None or value != value for value in values):
                self._fail(f"a category of column {name!r:.60} is missing")
            if len({key(value) for value in values}) < len(values):
                self._fail(f"two categories of column {name!r:.60} are the same")
            if kind == "boolean" and not (values == (False, True) and key(values[0])[0] == "bool"):
                self._fail(f"the Boolean column {name!r:.60} has other values than it should")
        elif values or other:
            self._fail(f"column {name!r:.60} has categories and is of the kind {kind!r}")
        if card > {"unknown": 1, "code": LARGEST_CODE + 1}.get(kind, card):
            self._fail(f"column {name!r:.60} has too many values")

    def _check_bins(self, fields: dict[str, Any]) -> None:
        edges, means, lows, highs = (fields[name] for name in ("edges", "means", "lows", "highs"))
        good = (
            np.all(edges[1:] > edges[:-1])
            and np.all((lows <= means) & (means <= highs))
            and np.all(lows[1:] >= edges)
            and np.all(highs[:-1] < edges)
            and np.all(fields["stds"] >= 0)
        )
        if not good:
            self._fail(f"the bins of column {fields['name']!r:.60} are not in order")
