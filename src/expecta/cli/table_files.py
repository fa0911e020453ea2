"""Read and write tables in files: CSV, Parquet, Arrow, JSON lines."""

from __future__ import annotations

import csv
import io
import re
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from expecta.cli.output import note
from expecta.common.atomic_files import replace_file
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
PACKED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
RAGGED = "give every line as many cells as the header, and texts with commas quotes"
MAYBE_ZEROS = re.compile(rb'(?:^|[,;\t\n\r"])0\d')
ZEROS = r"^0\d+$"


def read(path: str, texts: Iterable[str] = (), numbers: Collection[str] = ()) -> Any:
    """Read a table; ``-`` is CSV from standard input.

    Types of CSV columns are inferred (numbers, dates, Booleans, text), except those that are
    to be ``texts``. An empty cell, NA, NaN and null are unknown. Digits with leading zeros
    are text, unless they are to be ``numbers``.
    """
    return read_both(path, texts, numbers)[0]


def read_both(
    path: str, texts: Iterable[str] = (), numbers: Collection[str] = ()
) -> tuple[Any, CsvText | None]:
    """Read a table as ``read`` does, and return the text of CSV beside it."""
    import pyarrow as pa

    file = None if path == "-" else TableFile.of(path)
    kind = "csv" if path == "-" else _format(path, packed=True)
    try:
        if file is not None and kind not in ("csv", "tsv"):
            return _checked(path, _read_binary(file, kind)), None
        data = file.unpacked() if file else read_stream(sys.stdin.buffer, "standard input")
        text = CsvText.check(data, "\t" if kind == "tsv" else ",", path)
        return _checked(path, text.typed(texts, numbers)), text
    except (pa.ArrowException, OSError) as problem:
        lines = str(problem).splitlines() or [type(problem).__name__]
        first = lines[0].removesuffix(".")
        remedy = RAGGED if "columns, got" in first else f"is it {kind}, and is its ending right?"
        raise DomainError(f"{path} cannot be read as {kind}: {first}; {remedy}") from None


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


def _format(path: str, *, packed: bool) -> str:
    kind = FORMATS.get(_ending(path, packed=packed))
    if kind is None:
        known = ", ".join(FORMATS)
        raise DomainError(f"{path}: what kind of table is this? Its name may end in {known}")
    return kind


def _read_binary(file: TableFile, kind: str) -> Any:
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


def _checked(path: str, table: Any) -> Any:
    names = table.column_names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DomainError(f"{path} has several columns {twice[0]!r}; give each a name of its own")
    if not names or not table.num_rows:
        raise DomainError(f"{path} has no rows; is it the right file?")
    return table


def write_format(path: str) -> str:
    """Return the format that a table is written in by its ending; refuse others."""
    written = "csv" if path == "-" else FORMATS.get(_ending(path, packed=False))
    if written is None or written == "json":
        known = ", ".join(ending for ending, kind in FORMATS.items() if kind != "json")
        raise DomainError(f"{path}: a table that is written may end in {known}")
    return written


def write(table: Any, path: str) -> None:
    """Write a table by the ending of its name; ``-`` is CSV on standard output. Atomic."""
    import pyarrow as pa

    kind = write_format(path)
    sink = pa.BufferOutputStream()
    try:
        _write_to(sink, table, kind)
    except pa.ArrowException as problem:
        raise DomainError(f"a {kind} file cannot hold this: {problem}; try .parquet") from None
    data = sink.getvalue().to_pybytes()
    if path == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        replace_file(path, data)


def _write_to(sink: Any, table: Any, kind: str) -> None:
    import pyarrow as pa

    if kind == "parquet":
        from pyarrow import parquet

        parquet.write_table(table, sink)
    elif kind == "arrow":
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    else:
        sink.write(_csv_bytes(_plain(table), "\t" if kind == "tsv" else ","))


def _plain(table: Any) -> Any:
    """Return a table whose categories are texts, which CSV can hold."""
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = table.column(i).cast(field.type.value_type)
            table = table.set_column(i, field.name, column)
    return table


def fresh_name(wanted: str, taken: Iterable[str]) -> str:
    """Return a name for a column that is not taken."""
    used, name, number = set(taken), wanted, 2
    while name in used:
        name, number = f"{wanted}_{number}", number + 1
    return name


# -- CSV ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CsvText:
    """The bytes of a CSV file, and the delimiter of its cells."""

    data: bytes
    delimiter: str

    @classmethod
    def check(cls, data: bytes, delimiter: str, path: str) -> CsvText:
        """Check that there is a table of text; semicolons are noticed."""
        if not data.strip():
            raise DomainError(
                f"{path}: the table is empty, without header and rows; is it the right file?"
            )
        try:
            data.decode()
        except UnicodeDecodeError:
            known = "utf-16" if data[:2] in (BOM_UTF16_LE, BOM_UTF16_BE) else "latin1"
            raise DomainError(
                f"{path}: the table is not UTF-8 text; convert it: iconv -f {known} -t utf-8"
            ) from None
        if delimiter == "," and _header(data, ";") > _header(data, ","):
            delimiter = ";"
        return cls(data, delimiter)

    def typed(self, texts: Iterable[str] = (), numbers: Collection[str] = ()) -> Any:
        """Infer types, except of ``texts``; digits with leading zeros are texts too.

        Columns that are to be ``numbers`` are so with leading zeros. Columns without a name
        get one.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        table = self._read(texts, missing=True)
        if "" in table.column_names:
            table = table.rename_columns(_names(table.column_names))
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

    def as_written(self, names: list[str] | None = None) -> Any:
        """Return every cell as the text that it is, and the header too unless it is given."""
        lines = io.TextIOWrapper(io.BytesIO(self.data), "utf-8-sig", newline="")
        header = next(filter(None, csv.reader(lines, delimiter=self.delimiter)))
        table = self._read(header, missing=False)
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
                strings_can_be_null=missing, column_types=dict.fromkeys(texts, pa.string())
            ),
        )


def _header(data: bytes, delimiter: str) -> int:
    """Count a delimiter in the first line."""
    return data.split(b"\n", 1)[0].count(delimiter.encode())


def _names(names: list[str]) -> list[str]:
    """Give columns without a name one: ``column_1`` for the first."""
    for i, name in enumerate(names, start=1):
        if not name:
            note(f"column {i} of the table has no name; it is called column_{i}")
    return [name or f"column_{i}" for i, name in enumerate(names, start=1)]


def _csv_bytes(table: Any, delimiter: str) -> bytes:
    """Write texts and numbers as CSV, with quotes where they are needed only."""
    import pyarrow as pa

    sink = io.StringIO()
    writer = csv.writer(sink, delimiter=delimiter, lineterminator="\n")
    writer.writerow(table.column_names)
    columns = [column.cast(pa.string()).to_pylist() for column in table.columns]
    writer.writerows(zip(*columns, strict=True))
    return sink.getvalue().encode()
