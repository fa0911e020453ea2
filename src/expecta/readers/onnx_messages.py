"""Read the messages that an ONNX file is made of, without the library: a graph of nodes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from expecta.common.errors import FormatError

FLOAT, INT64 = 1, 7  # types of tensors
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5  # how a field of a message is written


@dataclass(frozen=True)
class OnnxNode:
    """One operation of a graph: its inputs, outputs and attributes by name."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OnnxGraph:
    """The operations of a model, its inputs with the number of columns of each, and constants."""

    nodes: tuple[OnnxNode, ...]
    inputs: dict[str, int]
    constants: dict[str, Any]


def read_graph(path: str, data: bytes) -> OnnxGraph:
    """Return the graph of a file; a damaged one gives a FormatError. Runs no code."""
    try:
        graph = next(value for number, value in _fields(data) if number == 7)
        nodes, inputs, constants = [], {}, {}
        for number, value in _fields(graph):
            if number == 1:
                nodes.append(_node(value))
            elif number == 5:
                constants[_text(value, 8)] = _tensor(value)
            elif number == 11:
                inputs[_text(value, 1)] = _columns(value)
    except (StopIteration, IndexError, ValueError, TypeError, struct.error, UnicodeDecodeError):
        raise FormatError(path, None, "this is not an ONNX file, or it is damaged") from None
    given = {name: columns for name, columns in inputs.items() if name not in constants}
    return OnnxGraph(tuple(nodes), given, constants)


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Return the number and the contents of each field of a message."""
    view, at = memoryview(data), 0
    while at < len(view):
        tag, at = _varint(view, at)
        number, how = tag >> 3, tag & 7
        value: Any
        if how == VARINT:
            value, at = _varint(view, at)
        elif how in (FIXED64, FIXED32):
            size = 8 if how == FIXED64 else 4
            value, at = view[at : at + size], at + size
        elif how == LENGTH:
            size, at = _varint(view, at)
            value, at = view[at : at + size], at + size
        else:
            raise ValueError(how)
        if at > len(view):
            raise ValueError(at)
        yield number, value


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = view[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError(at)


def _text(message: Any, wanted: int) -> str:
    return next((bytes(v).decode() for number, v in _fields(message) if number == wanted), "")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _node(message: Any) -> OnnxNode:
    parts: dict[int, list[Any]] = {}
    for number, value in _fields(message):
        parts.setdefault(number, []).append(value)
    names = [tuple(bytes(value).decode() for value in parts.get(n, [])) for n in (1, 2)]
    (kind,) = parts[4]
    attributes = dict(map(_attribute, parts.get(5, [])))
    return OnnxNode(bytes(kind).decode(), names[0], names[1], attributes)


def _attribute(message: Any) -> tuple[str, Any]:
    """Return the name and the value of an attribute: a number, a text, or an array of these."""
    name, value = "", None
    floats, ints, texts = [], [], []
    for number, part in _fields(message):
        if number == 1:
            name = bytes(part).decode()
        elif number == 2:
            value = struct.unpack("<f", part)[0]
        elif number == 3:
            value = _signed(part)
        elif number == 4:
            value = bytes(part).decode()
        elif number == 5:
            value = _tensor(part)
        elif number == 7:
            floats.append(np.frombuffer(part, "<f4"))
        elif number == 8:
            ints += [part] if isinstance(part, int) else _varints(part)
        elif number == 9:
            texts.append(bytes(part).decode())
    if floats:
        return name, np.concatenate(floats).astype(np.float64)
    if ints:
        return name, np.array([_signed(one) for one in ints], np.int64)
    return name, np.array(texts) if texts else value


def _varints(data: Any) -> list[int]:
    values, at, view = [], 0, memoryview(data)
    while at < len(view):
        value, at = _varint(view, at)
        values.append(value)
    return values


def _tensor(message: Any) -> Any:
    """Return a tensor of floats or integers, flat; None for others."""
    kind, raw, numbers = 0, b"", [np.zeros(0)]
    for number, part in _fields(message):
        if number == 2:
            kind = part
        elif number == 4:
            numbers.append(np.frombuffer(part, "<f4").astype(np.float64))
        elif number == 7:
            values = [part] if isinstance(part, int) else _varints(part)
            numbers.append(np.array([_signed(one) for one in values], np.float64))
        elif number == 9:
            raw = bytes(part)
    if kind not in (FLOAT, INT64):
        return None
    if raw:
        return np.frombuffer(raw, "<f4" if kind == FLOAT else "<i8").astype(np.float64)
    return np.concatenate(numbers)


def _columns(message: Any) -> int:
    """Return the last dimension of an input, 0 where it is not known."""
    last = 0
    for number, kind in _fields(message):
        if number != 2:
            continue
        for _, tensor in _fields(kind):
            for part, shape in _fields(tensor):
                if part == 2:
                    sizes = [dict(_fields(dim)).get(1, 0) for _, dim in _fields(shape)]
                    last = sizes[-1] if sizes else 0
    return int(last)
