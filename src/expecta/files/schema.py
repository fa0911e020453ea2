"""Declare what a kind of file holds, once: the declaration writes it, and reads and checks it.

A kind of file is a tree of fields. Numbers, texts and the like go into the file's JSON header,
arrays beside it, under the names of the fields that lead to them, joined by dots::

    CURVE = Record({"name": Scalar(str), "x": Array("float64", "points", increasing=True),
                    "y": Array("float64", "points")}, make=Curve)
    CURVES = Kind("curves", Record({"unit": Maybe(Scalar(str)), "curves": Many(CURVE)}))
    CURVES.save(value, path)
    value = CURVES.load(path)

Whatever is wrong with a file is one FormatError of one sentence. Reading runs no code from the
file, and allocates in proportion to the file's size, never to a number in it.
"""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from expecta.common.atomic_files import replace_file
from expecta.common.errors import DomainError, ExpectaError, FormatError
from expecta.common.file_input import read_bytes
from expecta.files.container import Container
from expecta.files.fields import ABSENT, Array, Field, FieldError, Scalar, Store, Value

__all__ = ["Array", "Choice", "Field", "Kind", "Many", "Maybe", "Record", "Scalar", "Value"]

# What reads each kind of file: told to whoever has a file of another kind than expected.
LOADERS = {
    "vtree": "Vtree.load",
    "probabilistic circuit": "ProbabilisticCircuit.load",
    "regression circuit": "RegressionCircuit.load",
    "pair": "Pair.load",
    "encoder": "Encoder.load",
    "density": "Density.load",
    "estimator": "CircuitRegressor.load, CircuitClassifier.load or ExpectedPredictor.load",
}


class Record(Field):
    """Named fields.

    Parameters
    ----------
    fields
        What there is, by name; what is absent, or there beside it, is refused.
    make
        Makes the value of the fields, passed as keywords; by default a dict of them. An error
        that it raises says what is wrong with the file.
    parts
        Takes a value apart, into a mapping from names; by default its attributes.
    """

    def __init__(
        self,
        fields: Mapping[str, Field],
        make: Callable[..., Any] = dict,
        parts: Callable[[Any], Mapping[str, Any]] | None = None,
    ) -> None:
        self.fields, self.make, self.parts = fields, make, parts

    def write(self, value: Any, name: str, store: Store) -> Any:
        """Write every field; no JSON is left of a record of arrays alone."""
        parts = value if self.parts is None else self.parts(value)
        if not isinstance(parts, Mapping):
            parts = {key: getattr(value, key) for key in self.fields}
        inside, json = Store(store.arrays, ChainMap({}, store.sizes)), {}
        for key, inner in self.fields.items():
            json[key] = inner.write(parts[key], _joined(name, key), inside)
        return {key: entry for key, entry in json.items() if entry is not ABSENT} or ABSENT

    def read(self, json: Any, name: str, store: Store) -> Any:
        """Read every field, and make the value of them."""
        given = {} if json is ABSENT or json is None else json
        if not isinstance(given, dict):
            self.refuse(name, given, "a record")
        if unknown := set(given) - set(self.fields):
            raise FieldError(_joined(name, f"{min(unknown):.60}"), "is an unknown entry")
        inside = Store(store.arrays, ChainMap({}, store.sizes))
        values = {
            key: inner.read(given.get(key, ABSENT), _joined(name, key), inside)
            for key, inner in self.fields.items()
        }
        try:
            with np.errstate(all="ignore"):
                return self.make(**values)
        except (ExpectaError, TypeError, ValueError, LookupError, ArithmeticError) as problem:
            raise FieldError(name, f"is wrong: {problem}" if name else str(problem)) from None


class Choice(Field):
    """One of several records, whose name is an entry of its own.

    Parameters
    ----------
    tag
        What the entry is called.
    records
        The records by name.
    name_of
        Says which of them a value is; by default its class's name.
    """

    def __init__(
        self,
        tag: str,
        records: Mapping[str, Record],
        name_of: Callable[[Any], str] = lambda value: type(value).__name__,
    ) -> None:
        self.tag, self.records, self.name_of = tag, records, name_of

    def write(self, value: Any, name: str, store: Store) -> Any:
        """Write a record and its name."""
        chosen = self.name_of(value)
        if chosen not in self.records:
            raise FieldError(name, f"a {chosen} has no file format; pickle it")
        json = self.records[chosen].write(value, name, store)
        return {self.tag: chosen, **({} if json is ABSENT else json)}

    def read(self, json: Any, name: str, store: Store) -> Any:
        """Read the record that is named."""
        if not isinstance(json, dict):
            self.refuse(name, json, "a record")
        chosen = json.get(self.tag, ABSENT)
        if not isinstance(chosen, str) or chosen not in self.records:
            self.refuse(_joined(name, self.tag), chosen, f"one of {', '.join(self.records)}")
        rest = {key: entry for key, entry in json.items() if key != self.tag}
        return self.records[chosen].read(rest, name, store)


@dataclass(frozen=True)
class Maybe(Field):
    """A field, or None."""

    inner: Field

    def write(self, value: Any, name: str, store: Store) -> Any:
        """Write None, or the field."""
        is_array = isinstance(self.inner, Array)
        if value is None:
            return ABSENT if is_array else None
        json = self.inner.write(value, name, store)
        return {} if json is ABSENT and not is_array else json

    def read(self, json: Any, name: str, store: Store) -> Any:
        """Read None, or the field."""
        if json is ABSENT and not isinstance(self.inner, Array):
            self.refuse(name, json, "a value or null")
        absent = json is None or json is ABSENT
        if absent and name not in store.arrays:
            return None
        return self.inner.read(json, name, store)


@dataclass(frozen=True)
class Many(Field):
    """A list of a field's values; their arrays are kept one after the other, with the sizes."""

    inner: Field

    def write(self, value: Any, name: str, store: Store) -> Any:
        """Write every value, and join their arrays."""
        json, parts = [], []
        for i, item in enumerate(value):
            part, where = Store({}, store.sizes), f"{name}[{i}]"
            entry = self.inner.write(item, where, part)
            json.append(None if entry is ABSENT else entry)
            parts.append({key[len(where) + 1 :]: array for key, array in part.arrays.items()})
        for key in sorted({key for part in parts for key in part}):
            sizes = [len(part[key]) if key in part else -1 for part in parts]
            pieces = [part[key] for part in parts if key in part]
            store.arrays[_joined(name, key)] = np.concatenate(pieces)
            store.arrays[_joined(f"{name}:sizes", key)] = np.array(sizes, np.int64)
        return json

    def read(self, json: Any, name: str, store: Store) -> list[Any]:
        """Divide the arrays, and read every value."""
        if not isinstance(json, list):
            self.refuse(name, json, "a list")
        parts = [Store({}, store.sizes) for _ in json]
        begin = f"{name}:sizes"
        for listed in [key for key in store.arrays if key == begin or key.startswith(f"{begin}.")]:
            key = listed[len(begin) + 1 :]
            sizes = Array("int64", len(json), low=-1).read(ABSENT, listed, store)
            whole = store.arrays.pop(_joined(name, key), np.zeros(0))
            length = len(np.atleast_1d(whole))
            used = np.minimum(np.maximum(sizes, 0), length + 1)  # no sum of these overflows
            if whole.ndim == 0 or np.sum(used) != length:
                raise FieldError(listed, "does not add up to the array that it divides")
            ends = np.cumsum(used)
            for i in np.flatnonzero(sizes >= 0).tolist():
                parts[i].arrays[_joined(f"{name}[{i}]", key)] = whole[ends[i] - used[i] : ends[i]]
        return [
            _read_all(self.inner, item, f"{name}[{i}]", part)
            for i, (item, part) in enumerate(zip(json, parts, strict=True))
        ]


def _joined(name: str, inside: str) -> str:
    return f"{name}.{inside}" if name and inside else name or inside


def _read_all(schema: Field, json: Any, name: str, store: Store) -> Any:
    """Read a field that all arrays belong to."""
    value = schema.read(json, name, store)
    if store.arrays:
        raise FieldError(name, f"there is an unknown array {min(store.arrays)!r:.60}")
    return value


@dataclass(frozen=True)
class Kind:
    """A kind of file in Expecta's own format.

    Parameters
    ----------
    name
        What it holds, such as "density"; `LOADERS` says what reads it.
    schema
        The field that the whole file is.
    """

    name: str
    schema: Field

    def save(self, value: Any, path: str | PathLike[str]) -> None:
        """Write a file. Atomic.

        It is read first: what would be refused later is refused now. Costs what `load` costs.
        """
        data = self.to_bytes(value)
        try:
            self.from_bytes(os.fspath(path), data)
        except FormatError as refused:
            problem = refused.problem.removeprefix("the file is damaged: ")
            raise self._cannot_hold(problem) from None
        replace_file(os.fspath(path), data)

    def load(self, path: str | PathLike[str]) -> Any:
        """Read a file; one that is damaged, hostile or of another kind gives a FormatError."""
        return self.from_bytes(os.fspath(path), read_bytes(path))

    def to_bytes(self, value: Any) -> bytes:
        """Return the contents of a file; a value that has no place in one is a DomainError."""
        store = Store({})
        try:
            header = self.schema.write(value, "", store)
            return Container(self.name, {} if header is ABSENT else header, store.arrays).to_bytes()
        except ExpectaError:
            raise
        except (FieldError, ValueError, OverflowError, RecursionError) as problem:
            raise self._cannot_hold(problem) from None

    def _cannot_hold(self, problem: object) -> DomainError:
        return DomainError(f"a file cannot hold this {self.name}: {problem}")

    def from_bytes(self, path: str, data: bytes) -> Any:
        """Read the contents of a file; ``path`` is what messages call it."""
        wanted = _with_article(self.name)
        if not Container.recognises(data):
            problem = f"this is not a file of Expecta's own format, and {wanted} is expected"
            raise FormatError(path, None, problem)
        container = Container.from_bytes(path, data)
        if container.kind not in LOADERS:
            problem = f"the file is damaged: its kind is {container.kind!r:.40}"
            raise FormatError(path, None, problem)
        if container.kind != self.name:
            problem = (
                f"this file holds {_with_article(container.kind)}, not {wanted}: "
                f"read it with {LOADERS[container.kind]}"
            )
            raise FormatError(path, None, problem)
        try:
            store = Store(dict(container.arrays))
            return _read_all(self.schema, dict(container.header), "", store)
        except FieldError as problem:
            text = " ".join(str(problem).split())
            raise FormatError(path, None, f"the file is damaged: {text:.400}") from None


def _with_article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
