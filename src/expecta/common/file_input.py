"""Read whole files, and never without end: devices are refused, pipes are read up to a limit."""

from __future__ import annotations

import os
import stat
from os import PathLike
from typing import BinaryIO

from expecta.common.errors import FormatError

MAX_STREAM_BYTES = 1 << 30  # of what does not say how long it is: a pipe, a file of /proc
CHUNK_BYTES = 1 << 20


def read_bytes(path: str | PathLike[str]) -> bytes:
    """Return what a file or a pipe holds; a device, or more than it may hold, is a FormatError."""
    size = known_size(path)
    with open(path, "rb") as file:
        return file.read() if size else read_stream(file, os.fspath(path))


def known_size(path: str | PathLike[str]) -> int:
    """Return the size of a file, 0 where it is unknown; a device is a FormatError.

    It is refused before it is opened, which may do something to it.
    """
    status = os.stat(path)
    if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        raise FormatError(os.fspath(path), None, "this is a device, not a file")
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def read_stream(stream: BinaryIO, name: str) -> bytes:
    """Read to the end of what may have none; ``name`` is what messages call it."""
    data = bytearray()
    while chunk := stream.read(CHUNK_BYTES):
        data += chunk
        if len(data) > MAX_STREAM_BYTES:
            problem = f"more than {MAX_STREAM_BYTES >> 30} GiB were read without an end"
            raise FormatError(name, None, f"{problem}: save it, and give the file's name")
    return bytes(data)
