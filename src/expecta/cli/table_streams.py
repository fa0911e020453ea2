"""Read tables batch by batch: Parquet, Arrow and CSV in constant memory, JSON lines as a whole."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from expecta.cli import table_files
from expecta.cli.csv_options import csv_options
from expecta.cli.table_files import CsvText, TableFile
from expecta.common.errors import DomainError

BATCH_ROWS = 1 << 16
BLOCK_BYTES = 1 << 22  # of CSV
# A cell in quotes after a separator, with lines and quotes in it; the last may not have ended.
QUOTED = rb'(?<![^%b\r\n])"(?:[^"]++|"")*+(?:"|\Z)'
HEAD = re.compile(rb"(?:\xef\xbb\xbf)?[\r\n]*[^\r\n]+(?:\r\n|\n|\r)")
WIDER = (("int64", "double"), ("date32[day]", "timestamp[s]", "timestamp[ns]"))  # by inference


class StreamBatch(NamedTuple):
    """Rows as they are written again, and as a model reads them."""

    written: Any
    rows: Any


@dataclass(frozen=True)
class TableStream:
    """A table in a file, or CSV from standard input (``-``), as batches.

    Parameters
    ----------
    path
        The file.
    texts, numbers
        Columns that are texts, or numbers, whatever their cells look like; CSV only.
    na
        Further texts that mean unknown; CSV only.
    typed
        Whether cells of CSV are written with their types; else as the text that they are.
    """

    path: str
    texts: Collection[str] = ()
    numbers: Collection[str] = ()
    na: Collection[str] = ()
    typed: bool = False
    _piped: list[IO[bytes]] = field(default_factory=list)  # what a pipe held, to be read again

    @cached_property
    def kind(self) -> str:
        """The format."""
        return "csv" if self.path == "-" else table_files.read_format(self.path)

    @property
    def is_text(self) -> bool:
        """Whether it is CSV."""
        return self.kind in ("csv", "tsv")

    @cached_property
    def file(self) -> TableFile:
        """The file, which is there and can be read."""
        return TableFile.of(self.path)

    @cached_property
    def n_rows(self) -> int | None:
        """How many rows there are; of CSV at most, of pipes None."""
        if self.path == "-" or self.file.data is not None:
            return None
        with self._readable():
            if self.kind == "parquet":
                from pyarrow import parquet

                return int(parquet.read_metadata(self.file.open()).num_rows)
            if self.is_text:
                with self._bytes() as stream:
                    return sum(block.count(b"\n") for block in iter_blocks(stream))
        return None

    def batches(self) -> Iterator[StreamBatch]:
        """Read the table from its start, in batches of at most `BATCH_ROWS` rows or so."""
        with self._readable():
            if self.is_text:
                yield from self._csv_batches()
                return
            for batch in self._binary_batches():
                for first in range(0, max(batch.num_rows, 1), BATCH_ROWS):
                    part = batch.slice(first, BATCH_ROWS)
                    yield StreamBatch(part, part)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, OSError) as problem:
            if isinstance(problem, OSError) and problem.filename is not None:
                raise
            raise table_files.unreadable(self.path, self.kind, problem) from None

    def _binary_batches(self) -> Iterator[Any]:
        """Read Parquet, Arrow or JSON lines as tables; one without rows gives one."""
        import pyarrow as pa

        if self.kind == "json":
            yield table_files.read_binary(self.file, self.kind)
            return
        with self.file.open() as stream:
            schema, batches = (_parquet if self.kind == "parquet" else _ipc)(stream)
            first = next(batches, None)
            yield schema.empty_table() if first is None else pa.Table.from_batches([first])
            for batch in batches:
                yield pa.Table.from_batches([batch])

    # -- CSV --------------------------------------------------------------------------

    def _csv_batches(self) -> Iterator[StreamBatch]:
        types = self._types() if self.typed else None
        for number, text in enumerate(self._texts()):
            if not number:
                table_files.tell_unnamed(text)
            rows = text.typed(self.texts, self.numbers)
            if types is None:
                yield StreamBatch(text.as_written(), rows)
            else:
                yield StreamBatch(_with_types(rows, text, types), rows)

    def _texts(self) -> Iterator[CsvText]:
        """Read blocks of whole lines, each with the header; there is one at least."""
        delimiter = "\t" if self.kind == "tsv" else ","
        decimal = None
        with self._bytes() as stream:
            for data in csv_blocks(stream):
                text = CsvText.check(data, delimiter, self.path, self.na)
                text = replace(text, decimal=text.decimal or decimal).with_decimal(self.texts)
                decimal = text.decimal  # which one block may tell, and the next not
                yield text

    def _types(self) -> dict[str, Any]:
        """Infer the types of columns over all blocks, in a reading of their own."""
        types: dict[str, Any] = {}
        for text in self._texts():
            schema = text.typed(self.texts, self.numbers).schema
            types = {f.name: _wider(types.get(f.name, f.type), f.type) for f in schema}
        return types

    @contextmanager
    def _bytes(self) -> Iterator[Any]:
        """Open the text; what comes by a pipe is kept in a temporary file if it is read twice."""
        import pyarrow as pa

        if self.path != "-":
            packing = table_files.PACKED.get(Path(self.path).suffix.lower())
            with pa.input_stream(self.file.open(), compression=packing) as stream:
                yield stream
        elif not self.typed:
            yield sys.stdin.buffer
        else:
            if not self._piped:
                self._piped.append(TemporaryFile())  # noqa: SIM115 closed with the stream
                for block in iter_blocks(sys.stdin.buffer):
                    self._piped[0].write(block)
            self._piped[0].seek(0)
            yield self._piped[0]


def _parquet(stream: Any) -> tuple[Any, Iterator[Any]]:
    from pyarrow import parquet

    file = parquet.ParquetFile(stream)
    return file.schema_arrow, file.iter_batches(BATCH_ROWS, use_threads=False)


def _ipc(stream: Any) -> tuple[Any, Iterator[Any]]:
    import pyarrow as pa

    try:
        file = pa.ipc.open_file(stream)
    except pa.ArrowInvalid:
        stream.seek(0)
        reader = pa.ipc.open_stream(stream)
        return reader.schema, iter(reader)
    return file.schema, map(file.get_batch, range(file.num_record_batches))


def iter_blocks(stream: Any) -> Iterator[bytes]:
    """Read a stream of bytes to its end, a block at a time."""
    while block := stream.read(BLOCK_BYTES):
        yield bytes(block)


def csv_blocks(stream: Any) -> Iterator[bytes]:
    """Read CSV in blocks of whole lines, each with the header before it; there is one at least.

    A line is whole where no cell in quotes goes on.
    """
    separators = "".join((",", *table_files.SEPARATORS, csv_options().separator or ""))
    quoted = re.compile(QUOTED % re.escape(separators).encode())
    head, rest, begun = b"", b"", False
    for block in iter_blocks(stream):
        rest += block
        end = _last_line(rest, quoted)
        if end and not head:
            head = _head(rest[:end], quoted)
            rest, end = rest[len(head) :], end - len(head)
        if end:
            begun = True
            yield head + rest[:end]
            rest = rest[end:]
    if not begun or rest:
        yield head + rest


def _masked(data: bytes, quoted: re.Pattern[bytes]) -> bytes:
    """Return text of the same length in which cells in quotes have no lines."""
    if b'"' not in data:
        return data
    return quoted.sub(lambda cell: b'"' * len(cell[0]), data)


def _last_line(data: bytes, quoted: re.Pattern[bytes]) -> int:
    """Return where the last whole line ends; 0 where there is none."""
    masked = _masked(data, quoted)
    end = masked.rfind(b"\n") + 1
    return end or masked.rfind(b"\r", 0, -1) + 1  # of a file without any \n


def _head(data: bytes, quoted: re.Pattern[bytes]) -> bytes:
    match = HEAD.match(_masked(data, quoted))
    return data[: match.end()] if match else b""


def _wider(first: Any, second: Any) -> Any:
    """Return the type that Arrow infers of cells of two types: the wider, else text."""
    import pyarrow as pa

    if first.equals(second) or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    for chain in WIDER:
        if str(first) in chain and str(second) in chain:
            return max(first, second, key=lambda one: chain.index(str(one)))
    return pa.string()


def _with_types(table: Any, text: CsvText, types: dict[str, Any]) -> Any:
    """Return cells with the types of all blocks; a text is as it was written."""
    import pyarrow as pa
    import pyarrow.compute as pc

    written = None
    for i, column in enumerate(table.schema):
        wanted = types[column.name]
        cells = table.column(i)
        if column.type.equals(wanted):
            continue
        if pa.types.is_string(wanted) and not pa.types.is_null(column.type):
            written = written or text.as_written(table.column_names)
            cells = pc.if_else(cells.is_valid(), written.column(i), pa.scalar(None, wanted))
        else:
            cells = cells.cast(wanted)
        table = table.set_column(i, column.name, cells)
    return table


def table_paths(folder: str) -> list[str]:
    """Return the tables in a folder and those below it, relative to it, in order.

    Names that begin with a dot or an underscore are not tables, as for other readers of Parquet.
    """
    root = Path(folder)
    paths = sorted(
        path.relative_to(root)
        for path in root.rglob("*")
        if path.is_file() and table_files.is_table(path.name)
    )
    shown = [path for path in paths if not any(part[0] in "._" for part in path.parts)]
    if not shown:
        raise DomainError(
            f"{folder} contains no tables, such as .parquet files; check that it is the right "
            f"folder"
        )
    return [str(path) for path in shown]
