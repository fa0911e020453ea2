"""Read and write tables in files: CSV, Parquet, Arrow, JSON lines."""

from __future__ import annotations

import csv
import io
import re
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from expecta.cli.csv_options import csv_options
from expecta.cli.output import note
from expecta.common.atomic_files import replacing_file
from expecta.common.errors import DomainError
from expecta.common.file_input import known_size, read_bytes, read_stream

FORMATS = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "json",
    ".ndjson": "json",
}
GROUP_ROWS = 1 << 18  # that Parquet and Arrow keep together
PACKED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
RAGGED = "give every line as many cells as the header, and texts with commas quotes"
SEPARATORS = (";", "\t", "|")  # beside the comma, found out by the header
DATE_TIMES = r"^\d{8}T\d{6}$", "%Y%m%dT%H%M%S"  # of ISO, which Arrow does not infer
COMMAS = r"^[-+]?\d+(,\d+)?$"
MAYBE_ZEROS = re.compile(rb'(?:^|[,;\t\n\r"])0\d')
ZEROS = r"^0\d+$"


def read(
    path: str, texts: Iterable[str] = (), numbers: Collection[str] = (), na: Iterable[str] = ()
) -> Any:
    """Read a table; ``-`` is CSV from standard input.

    Types of CSV columns are inferred (numbers, dates, Booleans, text), except those that are
    to be ``texts``. An empty cell, NA, NaN and null are unknown, and so is what ``na`` and the
    option ``--na`` name. Digits with leading zeros are text, unless they are to be ``numbers``.
    """
    return read_both(path, texts, numbers, na)[0]


def read_both(
    path: str, texts: Iterable[str] = (), numbers: Collection[str] = (), na: Iterable[str] = ()
) -> tuple[Any, CsvText | None]:
    """Read a table as ``read`` does, and return the text of CSV beside it."""
    import pyarrow as pa

    file = None if path == "-" else TableFile.of(path)
    kind = "csv" if path == "-" else read_format(path)
    try:
        if file is not None and kind not in ("csv", "tsv"):
            return check_table(path, read_binary(file, kind)), None
        data = file.unpacked() if file else read_stream(sys.stdin.buffer, "standard input")
        text = CsvText.check(data, "\t" if kind == "tsv" else ",", path, na)
        table = check_table(path, text.typed(texts, numbers))
        tell_unnamed(text)
        return table, text
    except (pa.ArrowException, OSError) as problem:
        raise unreadable(path, kind, problem) from None


def unreadable(path: str, kind: str, problem: Exception) -> DomainError:
    """Return the error for a table that Arrow does not read."""
    lines = str(problem).splitlines() or [type(problem).__name__]
    first = lines[0].removesuffix(".")
    remedy = RAGGED if "columns, got" in first else f"check that it is {kind}, as its ending says"
    return DomainError(f"{path} cannot be read as {kind}: {first}; {remedy}")


@dataclass(frozen=True)
class TableFile:
    """A file that can be read twice; what a pipe held is kept in ``data``."""

    path: str
    data: bytes | None

    @classmethod
    def of(cls, path: str) -> TableFile:
        """Return a file; there is an error where there is none, or where it may not be read."""
        if not known_size(path):
            return cls(path, read_bytes(path))
        Path(path).open("rb").close()
        return cls(path, None)

    def open(self) -> Any:
        """Open it as it is."""
        import pyarrow as pa

        return pa.OSFile(self.path) if self.data is None else pa.BufferReader(self.data)

    def unpacked(self) -> bytes:
        """Return the contents, unpacked."""
        import pyarrow as pa

        packing = PACKED.get(Path(self.path).suffix.lower())
        with pa.input_stream(self.open(), compression=packing) as stream:
            return bytes(stream.read())


def is_table(path: str) -> bool:
    """Whether a name ends as that of a table."""
    return _ending(path, packed=True) in FORMATS


def _ending(path: str, *, packed: bool) -> str:
    endings = [ending.lower() for ending in Path(path).suffixes[-2:]]
    if packed and len(endings) == 2 and endings[-1] in PACKED:
        endings = endings[:1]
    return endings[-1] if endings else ""


def read_format(path: str) -> str:
    """Return the format of a table by its ending; refuse what is none."""
    kind = FORMATS.get(_ending(path, packed=True))
    if kind is None:
        known = ", ".join(FORMATS)
        raise DomainError(
            f"{path}: the kind of table is not known from its name, which may end in {known}"
        )
    return kind


def read_binary(file: TableFile, kind: str) -> Any:
    """Read a table that is no CSV."""
    import pyarrow as pa

    if kind == "parquet":
        from pyarrow import parquet

        return parquet.read_table(file.open())
    if kind == "json":
        from pyarrow import json

        return json.read_json(pa.BufferReader(file.unpacked()))
    with suppress(pa.ArrowInvalid), file.open() as stream:
        return pa.ipc.open_file(stream).read_all()
    with file.open() as stream:
        return pa.ipc.open_stream(stream).read_all()


def check_table(path: str, table: Any) -> Any:
    """Return a table that has rows, and columns whose names differ."""
    check_names(path, table)
    check_rows(path, table)
    return table


def check_names(path: str, table: Any) -> None:
    """Refuse columns of the same name."""
    names = table.column_names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DomainError(
            f"{path} has several columns {twice[0]!r}; give each column a different name"
        )


def check_rows(path: str, table: Any) -> None:
    """Refuse a table without rows."""
    if not table.column_names or not table.num_rows:
        raise DomainError(f"{path} has no rows; check that it is the right file")


def write_format(path: str) -> str:
    """Return the format that a table is written in by its ending; refuse others."""
    written = "csv" if path == "-" else FORMATS.get(_ending(path, packed=False))
    if written is None or written == "json":
        known = ", ".join(ending for ending, kind in FORMATS.items() if kind != "json")
        raise DomainError(f"{path}: a table that is written may end in {known}")
    return written


def write(table: Any, path: str) -> None:
    """Write a table by the ending of its name; ``-`` is CSV on standard output. Atomic."""
    with table_writer(path) as writer:
        writer.write(table)


@contextmanager
def table_writer(path: str) -> Iterator[TableWriter]:
    """Write a table piece by piece; a file has all of it or is as it was. See `write`."""
    import pyarrow as pa

    kind = write_format(path)
    to_file = path != "-"
    try:
        with replacing_file(path) if to_file else nullcontext(sys.stdout.buffer) as sink:
            writer = TableWriter(sink, kind)
            yield writer
            writer.close()
    except pa.ArrowException as problem:
        raise DomainError(f"a {kind} file cannot hold this: {problem}; try .parquet") from None


class TableWriter:
    """Writes tables one after the other, which have the columns of the first."""

    def __init__(self, sink: Any, kind: str) -> None:
        self.kind, self._sink = kind, sink
        self._waiting: list[Any] = []  # tables that are no group of rows yet
        self._writer: Any = None
        self._header = True

    def write(self, table: Any) -> None:
        """Write further rows."""
        if self.kind in ("csv", "tsv"):
            delimiter = "\t" if self.kind == "tsv" else ","
            self._sink.write(_csv_bytes(_plain(table), delimiter, header=self._header))
            self._header = False
            return
        self._waiting.append(table)
        if sum(waiting.num_rows for waiting in self._waiting) >= GROUP_ROWS:
            self._write_group()

    def _write_group(self) -> None:
        import pyarrow as pa

        table = pa.concat_tables(self._waiting)
        self._waiting = []
        if self._writer is None and self.kind == "parquet":
            from pyarrow import parquet

            self._writer = parquet.ParquetWriter(self._sink, table.schema)
        elif self._writer is None:
            self._writer = pa.ipc.new_file(self._sink, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        """Write what is left, and the end."""
        if self._waiting:
            self._write_group()
        if self._writer is not None:
            self._writer.close()
        self._sink.flush()


def _plain(table: Any) -> Any:
    """Return a table whose categories are texts, which CSV can hold."""
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = table.column(i).cast(field.type.value_type)
            table = table.set_column(i, field.name, column)
    return table


# -- CSV ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CsvText:
    """The bytes of a CSV file, the delimiter of its cells, and what in them means unknown.

    ``decimal`` is None where it is to be found out: a comma where semicolons separate the cells,
    and there are numbers with commas and none with points.
    """

    data: bytes
    delimiter: str
    na: tuple[str, ...] = ()
    decimal: str | None = None

    @classmethod
    def check(cls, data: bytes, delimiter: str, path: str, na: Iterable[str] = ()) -> CsvText:
        """Check that there is a table of text; other separators than commas are noticed."""
        if not data.strip():
            raise DomainError(
                f"{path}: the table is empty, without header and rows; check that it is the right "
                f"file"
            )
        try:
            data.decode()
        except UnicodeDecodeError:
            known = "utf-16" if data[:2] in (BOM_UTF16_LE, BOM_UTF16_BE) else "latin1"
            raise DomainError(
                f"{path}: the table is not UTF-8 text; convert it: iconv -f {known} -t utf-8"
            ) from None
        options = csv_options()
        if options.separator is not None:
            delimiter = options.separator
        elif delimiter == ",":
            delimiter = max((",", *SEPARATORS), key=lambda sign: _header(data, sign))
        return cls(data, delimiter, (*options.na, *na), options.decimal)

    def typed(self, texts: Iterable[str] = (), numbers: Collection[str] = ()) -> Any:
        """Infer types, except of ``texts``; digits with leading zeros are texts too.

        Columns that are to be ``numbers`` are so with leading zeros. Columns without a name
        get one.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        table = self.with_decimal(texts)._read(texts, missing=True)
        if "" in table.column_names:
            table = table.rename_columns(
                [name or f"column_{i}" for i, name in enumerate(table.column_names, start=1)]
            )
        table = _with_times(table, texts)
        if not MAYBE_ZEROS.search(self.data):
            return table
        written = self.as_written(table.column_names)
        for i, field in enumerate(table.schema):
            cells = written.column(i)
            if field.name in numbers or not pa.types.is_integer(field.type):
                continue
            if pc.any(pc.match_substring_regex(cells, ZEROS)).as_py():
                known = pc.is_valid(table.column(i))
                texts = pc.if_else(known, cells, pa.scalar(None, pa.string()))
                table = table.set_column(i, field.name, texts)
        return table

    def with_decimal(self, texts: Iterable[str] = ()) -> CsvText:
        """Return the text with its decimal sign, if that is found out to be a comma."""
        open_ = self.decimal is None and self.delimiter == ";"
        if not open_ or not _has_commas(self._read(texts, missing=True)):
            return self
        note("numbers are read with decimal commas; if they have none: --decimal .")
        return replace(self, decimal=",")

    @property
    def header(self) -> list[str]:
        """The names of the columns, as they are written."""
        lines = io.TextIOWrapper(io.BytesIO(self.data), "utf-8-sig", newline="")
        return next(filter(None, csv.reader(lines, delimiter=self.delimiter)))

    def as_written(self, names: list[str] | None = None) -> Any:
        """Return every cell as the text that it is, and the header too unless it is given."""
        table = self._read(self.header, missing=False)
        return table if names is None else table.rename_columns(names)

    def _read(self, texts: Iterable[str], *, missing: bool) -> Any:
        import pyarrow as pa
        from pyarrow import csv as reader

        return reader.read_csv(
            pa.BufferReader(self.data),
            # threads that outlive an error can abort the program at its end
            read_options=reader.ReadOptions(use_threads=False),
            parse_options=reader.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=_header(self.data, self.delimiter) > 0,  # else a missing cell
            ),
            convert_options=reader.ConvertOptions(
                strings_can_be_null=missing,
                column_types=dict.fromkeys(texts, pa.string()),
                null_values=[*reader.ConvertOptions().null_values, *self.na],
                decimal_point=self.decimal or ".",
            ),
        )


def _has_commas(table: Any) -> bool:
    """Whether some columns of texts are numbers with decimal commas, and none has points."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if any(map(pa.types.is_floating, table.schema.types)):
        return False
    for column in table.columns:
        if pa.types.is_string(column.type) and column.null_count < len(column):
            commas = pc.match_substring(column, ",")
            written = pc.match_substring_regex(column, COMMAS)
            if pc.any(commas).as_py() and pc.all(written).as_py():
                return True
    return False


def _with_times(table: Any, texts: Iterable[str]) -> Any:
    """Read columns of texts such as 20141013T000000 as times."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pattern, form = DATE_TIMES
    for i, field in enumerate(table.schema):
        column = table.column(i)
        if not pa.types.is_string(field.type) or field.name in set(texts):
            continue
        if (
            column.null_count < len(column)
            and pc.all(pc.match_substring_regex(column, pattern)).as_py()
        ):
            with suppress(pa.ArrowInvalid):  # digits that are no time
                table = table.set_column(i, field.name, pc.strptime(column, form, "us"))
    return table


def tell_unnamed(text: CsvText) -> None:
    """Note the columns without a name, and what they are called."""
    for i, name in enumerate(text.header, start=1):
        if not name:
            note(f"column {i} of the table has no name; it is called column_{i}")


def _header(data: bytes, delimiter: str) -> int:
    """Count a delimiter in the first line."""
    return data.split(b"\n", 1)[0].count(delimiter.encode())


def _csv_bytes(table: Any, delimiter: str, *, header: bool) -> bytes:
    """Write texts and numbers as CSV, with quotes where they are needed only."""
    import pyarrow as pa

    sink = io.StringIO()
    writer = csv.writer(sink, delimiter=delimiter, lineterminator="\n")
    if header:
        writer.writerow(table.column_names)
    columns = [column.cast(pa.string()).to_pylist() for column in table.columns]
    writer.writerows(zip(*columns, strict=True))
    return sink.getvalue().encode()
