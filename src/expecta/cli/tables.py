"""Tables in files: CSV, Parquet, Arrow, JSON lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from expecta.errors import DomainError

__all__ = ["fresh_name", "read", "write", "write_format"]

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
PACKED = (".gz", ".bz2", ".zst")


def read(path: str, texts: Iterable[str] = ()) -> Any:  # noqa: ANN401
    """Read a table; ``-`` is CSV from standard input.

    Types of CSV columns are inferred (numbers, dates, Booleans, text), except those that are
    to be ``texts``. An empty cell, NA, NaN and null are unknown.
    """
    import pyarrow as pa

    known = "-" if path == "-" else _present(path)
    kind = "csv" if path == "-" else _format(path, packed=True)
    try:
        if known == "-":
            table = _read_csv(sys.stdin.buffer.read(), ",", texts)
        elif kind in ("csv", "tsv"):
            with pa.input_stream(known) as stream:
                table = _read_csv(stream.read(), "\t" if kind == "tsv" else ",", texts)
        else:
            table = _read_binary(known, kind)
    except pa.ArrowException as problem:
        first = str(problem).splitlines()[0]
        raise DomainError(f"{path} is not a table that can be read as {kind}: {first}") from None
    return _checked(path, table)


def _present(path: str) -> str:
    """Return a path at which a file is; complain otherwise."""
    with Path(path).open("rb"):
        return path


def _format(path: str, *, packed: bool) -> str:
    endings = Path(path).suffixes[-2:]
    if packed and len(endings) == 2 and endings[-1].lower() in PACKED:
        endings = endings[:1]
    found = FORMATS.get(endings[-1].lower()) if endings else None
    if found is None:
        known = ", ".join(FORMATS)
        raise DomainError(f"{path}: what kind of table is this? Its name may end in {known}")
    return found


def _read_csv(data: bytes, delimiter: str, texts: Iterable[str]) -> Any:  # noqa: ANN401
    import pyarrow as pa
    from pyarrow import csv

    if not data.strip():
        raise DomainError("the table is empty: it has no header and no rows; is it the right file?")
    if delimiter == "," and _header(data, ";") > _header(data, ","):
        delimiter = ";"
    try:
        data.decode()
    except UnicodeDecodeError:
        raise DomainError(
            "the table is not UTF-8 text; convert it, such as: iconv -f latin1 -t utf-8"
        ) from None
    return csv.read_csv(
        pa.BufferReader(data),
        parse_options=csv.ParseOptions(
            delimiter=delimiter,
            newlines_in_values=True,
            ignore_empty_lines=_header(data, delimiter) > 0,  # of one column it is a hole
        ),
        convert_options=csv.ConvertOptions(
            strings_can_be_null=True, column_types=dict.fromkeys(texts, pa.string())
        ),
    )


def _header(data: bytes, delimiter: str) -> int:
    """Count a delimiter in the first line."""
    return data.split(b"\n", 1)[0].count(delimiter.encode())


def _read_binary(path: str, kind: str) -> Any:  # noqa: ANN401
    import pyarrow as pa

    if kind == "parquet":
        from pyarrow import parquet

        return parquet.read_table(path)
    if kind == "json":
        from pyarrow import json

        with pa.input_stream(path) as stream:
            return json.read_json(stream)
    with suppress(pa.ArrowInvalid), pa.OSFile(path) as file:
        return pa.ipc.open_file(file).read_all()
    with pa.OSFile(path) as file:
        return pa.ipc.open_stream(file).read_all()


def _checked(path: str, table: Any) -> Any:  # noqa: ANN401
    names = table.column_names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DomainError(f"{path} has several columns {twice[0]!r}; give each a name of its own")
    if not names or not table.num_rows:
        raise DomainError(f"{path} has no rows; is it the right file?")
    return table


def write_format(path: str) -> str:
    """Return the format that a table is written in by its ending; complain of others."""
    found = "csv" if path == "-" else _format(path, packed=False)
    if found == "json":
        raise DomainError(f"{path}: tables are written as .csv, .tsv, .parquet or .arrow")
    return found


def write(table: Any, path: str) -> None:  # noqa: ANN401
    """Write a table by the ending of its name; ``-`` is CSV on standard output. Atomic."""
    import pyarrow as pa

    from expecta.circuits.files.atomic import replace_file

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


def _write_to(sink: Any, table: Any, kind: str) -> None:  # noqa: ANN401
    import pyarrow as pa

    if kind == "parquet":
        from pyarrow import parquet

        parquet.write_table(table, sink)
    elif kind == "arrow":
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    else:
        from pyarrow import csv

        options = csv.WriteOptions(delimiter="\t" if kind == "tsv" else ",")
        csv.write_csv(_plain(table), sink, options)


def _plain(table: Any) -> Any:  # noqa: ANN401
    """Return a table whose categories are texts, which CSV can hold."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = table.column(place).cast(field.type.value_type)
            table = table.set_column(place, field.name, column)
    return table


def fresh_name(wanted: str, taken: Iterable[str]) -> str:
    """Return a name for a column that is not taken."""
    used, name, number = set(taken), wanted, 2
    while name in used:
        name, number = f"{wanted}_{number}", number + 1
    return name
