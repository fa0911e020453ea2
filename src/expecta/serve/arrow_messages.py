"""Tell the messages of an Arrow stream apart, before they have arrived as a whole."""

from __future__ import annotations

import struct

from expecta.serve.problems import ProblemError

CONTINUATION = 0xFFFFFFFF  # what a message begins with
SCHEMA, DICTIONARY, BATCH = 1, 2, 3  # kinds of messages
END = struct.pack("<II", CONTINUATION, 0)


def read_message(metadata: bytes) -> tuple[int, int, bool]:
    """Return the kind of an Arrow message, the bytes of its body, and whether it is compressed.

    A message is a flatbuffer, of which these three fields are read; pyarrow reads no stream before
    it is there as a whole.
    """
    try:
        message = FlatTable.root(metadata)
        kind = message.scalar(1, "<B")
        header = message.table(2)
        batch = header.table(1) if header is not None and kind == DICTIONARY else header
        is_compressed = kind in (DICTIONARY, BATCH) and batch is not None and batch.has(3)
        length = message.scalar(3, "<q")
    except (struct.error, IndexError):
        raise ProblemError(400, "an Arrow message cannot be read") from None
    if length < 0:
        raise ProblemError(400, "an Arrow message has a negative length")
    return kind, length, is_compressed


class FlatTable:
    """A table of a flatbuffer: fields by number."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data, self._at = data, position
        self._fields = position - struct.unpack_from("<i", data, position)[0]
        if position < 0 or self._fields < 0:
            raise IndexError
        self._size = struct.unpack_from("<H", data, self._fields)[0]

    @classmethod
    def root(cls, data: bytes) -> FlatTable:
        """Return the table that a flatbuffer is."""
        return cls(data, struct.unpack_from("<I", data)[0])

    def _offset(self, field: int) -> int:
        entry = 4 + 2 * field
        if entry + 2 > self._size:
            return 0
        return int(struct.unpack_from("<H", self._data, self._fields + entry)[0])

    def has(self, field: int) -> bool:
        """Whether a field is there."""
        return self._offset(field) != 0

    def scalar(self, field: int, form: str) -> int:
        """Return a number; 0 where it is not there."""
        offset = self._offset(field)
        return int(struct.unpack_from(form, self._data, self._at + offset)[0]) if offset else 0

    def table(self, field: int) -> FlatTable | None:
        """Return a table within the table."""
        offset = self._offset(field)
        if not offset:
            return None
        at = self._at + offset
        return FlatTable(self._data, at + struct.unpack_from("<I", self._data, at)[0])
