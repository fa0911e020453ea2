"""The container of Expecta's own format: a safetensors file of named arrays.

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

__all__ = ["VERSION", "Container"]

VERSION = 1

# As safetensors spells types -> as NumPy does. Others have no use in a circuit.
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

        The same circuit gives the same bytes, so that files can be compared and cached.
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
        metadata = _metadata(path, data)
        _check_version(path, metadata)
        kind = metadata.get("kind", "")
        try:
            header = json.loads(metadata.get("header", ""))
        except (ValueError, RecursionError):
            header = None
        if not isinstance(header, dict):
            raise FormatError(path, None, "the file is damaged: its header is not a JSON object")
        try:
            tensors = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
        except Exception as error:  # the library promises no particular exception
            raise FormatError(path, None, f"the file is damaged: {error}") from None
        arrays = {}
        for name, tensor in tensors:
            if tensor["dtype"] not in _TYPES:
                raise FormatError(
                    path, None, f"array {name!r:.60} has the type {tensor['dtype']}, of no use here"
                )
            flat = np.frombuffer(tensor["data"], _TYPES[tensor["dtype"]])
            try:
                arrays[name] = flat.reshape(tensor["shape"])
            except (ValueError, OverflowError):
                raise FormatError(path, None, f"array {name!r:.60} has no valid shape") from None
        return cls(kind, header, arrays)


def _metadata(path: str, data: bytes) -> dict[str, str]:
    """Read the metadata of the header, whose length is not to be trusted."""
    length = int.from_bytes(data[:_LENGTH], "little")
    if length > len(data) - _LENGTH:
        raise FormatError(path, None, "the file is cut off or damaged: its header is incomplete")
    try:
        header = json.loads(data[_LENGTH : _LENGTH + length].decode())
    except (ValueError, RecursionError):
        raise FormatError(path, None, "the file is damaged: its header is not JSON") from None
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or "expecta" not in metadata:
        raise FormatError(path, None, "this is a safetensors file that Expecta did not write")
    if not all(isinstance(value, str) for value in metadata.values()):
        raise FormatError(path, None, "the file is damaged: its metadata are not all text")
    return metadata


def _check_version(path: str, metadata: dict[str, str]) -> None:
    version = metadata["expecta"]
    if not (version.isascii() and version.isdigit() and 0 < len(version) < 10 and int(version) > 0):
        raise FormatError(path, None, f"the file is damaged: its version is {version!r:.40}")
    if int(version) > VERSION:
        raise FormatError(
            path,
            None,
            f"the file has version {int(version)} of the format, and this Expecta reads up to "
            f"{VERSION}: upgrade expecta",
        )
