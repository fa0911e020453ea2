"""Tables in files: CSV, Parquet, Arrow, JSON lines."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from expecta.cli.csvs import CsvText, as_text
from expecta.common.errors import DomainError

__all__ = ["fresh_name", "is_table", "read", "read_both", "write", "write_format"]

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
RAGGED = "give every line as many cells as the header, and texts with commas quotes"


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

    if path != "-":
        _present(path)
    kind = "csv" if path == "-" else _format(path, packed=True)
    try:
        if kind not in ("csv", "tsv"):
            return _checked(path, _read_binary(path, kind)), None
        text = CsvText.of(_bytes(path), "\t" if kind == "tsv" else ",", path)
        return _checked(path, text.typed(texts, numbers)), text
    except (pa.ArrowException, OSError) as problem:
        said = str(problem)
        first = said.splitlines()[0].removesuffix(".") if said else type(problem).__name__
        remedy = RAGGED if "columns, got" in first else f"is it {kind}, and is its ending right?"
        raise DomainError(f"{path} cannot be read as {kind}: {first}; {remedy}") from None


def _bytes(path: str) -> bytes:
    """Read a file, unpacked; ``-`` is standard input."""
    import pyarrow as pa

    if path == "-":
        return sys.stdin.buffer.read()
    with pa.input_stream(path) as stream:
        found: bytes = stream.read()
    return found


def is_table(path: str) -> bool:
    """Whether a name ends as that of a table."""
    return _ending(path, packed=True) in FORMATS


def _present(path: str) -> None:
    """Complain unless there is a file."""
    with Path(path).open("rb"):
        pass


def _ending(path: str, *, packed: bool) -> str:
    endings = [one.lower() for one in Path(path).suffixes[-2:]]
    if packed and len(endings) == 2 and endings[-1] in PACKED:
        endings = endings[:1]
    return endings[-1] if endings else ""


def _format(path: str, *, packed: bool) -> str:
    found = FORMATS.get(_ending(path, packed=packed))
    if found is None:
        known = ", ".join(FORMATS)
        raise DomainError(f"{path}: what kind of table is this? Its name may end in {known}")
    return found


def _read_binary(path: str, kind: str) -> Any:
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


def _checked(path: str, table: Any) -> Any:
    names = table.column_names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DomainError(f"{path} has several columns {twice[0]!r}; give each a name of its own")
    if not names or not table.num_rows:
        raise DomainError(f"{path} has no rows; is it the right file?")
    return table


def write_format(path: str) -> str:
    """Return the format that a table is written in by its ending; complain of others."""
    found = "csv" if path == "-" else FORMATS.get(_ending(path, packed=False))
    if found is None or found == "json":
        known = ", ".join(ending for ending, kind in FORMATS.items() if kind != "json")
        raise DomainError(f"{path}: a table that is written may end in {known}")
    return found


def write(table: Any, path: str) -> None:
    """Write a table by the ending of its name; ``-`` is CSV on standard output. Atomic."""
    import pyarrow as pa

    from expecta.common.atomic_files import replace_file

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
        sink.write(as_text(_plain(table), "\t" if kind == "tsv" else ","))


def _plain(table: Any) -> Any:
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
