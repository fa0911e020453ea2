"""Lay out a file of Expecta's own format: a safetensors file of named arrays and a JSON header.

Its metadata are ``expecta``, the version of the format, ``kind``, what the file holds,
and ``header``, a JSON object of what is not an array.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors

from expecta.common.errors import FormatError

VERSION = 5

# As safetensors spells types -> as NumPy does. Others have no use in our files.
_TYPES = {"I32": "<i4", "I64": "<i8", "F64": "<f8"}
_NAMES = {np.dtype(spelt).newbyteorder("="): name for name, spelt in _TYPES.items()}
_LENGTH = 8  # bytes that say how long the header is


@dataclass(frozen=True)
class Container:
    """Named arrays, and what they are."""

    kind: str
    header: Mapping[str, Any]
    arrays: Mapping[str, npt.NDArray[Any]]

    @staticmethod
    def recognises(data: bytes) -> bool:
        """Whether the bytes start like a safetensors file, which no text file does."""
        return data[_LENGTH : _LENGTH + 1] == b"{" and b"\0" in data[:_LENGTH]

    def to_bytes(self) -> bytes:
        """Lay the file out by hand: the library writes its metadata in random order.

        The same contents give the same bytes, so that files can be compared and cached.
        """
        header: dict[str, Any] = {
            "__metadata__": {
                "expecta": str(VERSION),
                "kind": self.kind,
                "header": json.dumps(self.header, sort_keys=True),
            }
        }
        # Wide types first keeps every array aligned to its own width.
        order = sorted(self.arrays, key=lambda name: (-self.arrays[name].itemsize, name))
        pieces = []
        end = 0
        for name in order:
            array = self.arrays[name]
            start, end = end, end + array.nbytes
            header[name] = {
                "dtype": _NAMES[array.dtype],
                "shape": list(array.shape),
                "data_offsets": [start, end],
            }
            pieces.append(array.astype(_TYPES[_NAMES[array.dtype]], copy=False).tobytes())
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(_LENGTH, "little") + text + b"".join(pieces)

    @classmethod
    def from_bytes(cls, path: str, data: bytes) -> Container:
        """Take a file apart; the arrays are views into memory that nobody else holds."""

        def damaged(problem: str) -> FormatError:
            return FormatError(path, None, f"the file is damaged: {problem}")

        length = int.from_bytes(data[:_LENGTH], "little")
        if length > len(data) - _LENGTH:
            raise damaged("its header is cut off")
        outer = _json_object(data[_LENGTH : _LENGTH + length])
        if outer is None:
            raise damaged("its header is not JSON")
        metadata = outer.get("__metadata__")
        if not isinstance(metadata, dict) or "expecta" not in metadata:
            raise FormatError(path, None, "this is a safetensors file that Expecta did not write")
        if not all(isinstance(value, str) for value in metadata.values()):
            raise damaged("its metadata are not all text")
        version = metadata["expecta"]
        if not (version.isascii() and version.isdigit() and len(version) < 10 and int(version)):
            raise damaged(f"its version is {version!r:.40}")
        if int(version) != VERSION:
            advice = "upgrade expecta" if int(version) > VERSION else "save it again"
            raise FormatError(
                path,
                None,
                f"the file has version {int(version)} of the format, and this Expecta reads "
                f"version {VERSION}: {advice}",
            )
        if set(metadata) != {"expecta", "kind", "header"}:
            raise damaged("its metadata are not a version, a kind and a header")
        header = _json_object(metadata["header"].encode("utf-8", "surrogatepass"))
        if header is None:
            raise damaged("its header is not a JSON object")
        try:
            tensors = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
        except Exception as error:  # the library promises no particular exception
            raise damaged(f"{error!s:.200}") from None
        arrays = {}
        for name, tensor in tensors:
            if tensor["dtype"] not in _TYPES:
                raise damaged(f"array {name!r:.60} has the type {tensor['dtype']}, of no use here")
            flat = np.frombuffer(tensor["data"], _TYPES[tensor["dtype"]])
            try:
                arrays[name] = flat.reshape(tensor["shape"])
            except (ValueError, OverflowError):
                raise damaged(f"array {name!r:.60} has no valid shape") from None
        return cls(metadata["kind"], header, arrays)


def _json_object(text: bytes) -> dict[str, Any] | None:
    """Read a JSON object, None if it is none or says the same name twice."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a name appears twice")
        return dict(pairs)

    try:
        value = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
