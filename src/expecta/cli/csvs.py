"""CSV text as tables: with types for a model, and as it was written."""

from __future__ import annotations

import csv
import io
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from expecta.cli.output import note
from expecta.common.errors import DomainError

__all__ = ["CsvText", "as_text"]

MAYBE_ZEROS = re.compile(rb'(?:^|[,;\t\n\r"])0\d')
ZEROS = r"^0\d+$"


@dataclass(frozen=True)
class CsvText:
    """The bytes of a CSV file, and what divides its cells."""

    data: bytes
    delimiter: str

    @classmethod
    def of(cls, data: bytes, delimiter: str, path: str) -> CsvText:
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
        table = self._read(texts, holes=True)
        if "" in table.column_names:
            table = table.rename_columns(_names(table.column_names))
        if not MAYBE_ZEROS.search(self.data):
            return table
        written = self.as_written(table.column_names)
        for place, field in enumerate(table.schema):
            if field.name not in numbers and _has_zeros(field.type, written.column(place)):
                cells = _without_holes(written.column(place), table.column(place))
                table = table.set_column(place, field.name, cells)
        return table

    def as_written(self, names: list[str] | None = None) -> Any:
        """Return every cell as the text that it is, and the header too unless it is given."""
        lines = io.TextIOWrapper(io.BytesIO(self.data), "utf-8-sig", newline="")
        header = next(filter(None, csv.reader(lines, delimiter=self.delimiter)))
        table = self._read(header, holes=False)
        return table if names is None else table.rename_columns(names)

    def _read(self, texts: Iterable[str], *, holes: bool) -> Any:
        import pyarrow as pa
        from pyarrow import csv as reader

        return reader.read_csv(
            pa.BufferReader(self.data),
            # threads that outlive an error can abort the program at its end
            read_options=reader.ReadOptions(use_threads=False),
            parse_options=reader.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=_header(self.data, self.delimiter) > 0,  # else it is a hole
            ),
            convert_options=reader.ConvertOptions(
                strings_can_be_null=holes, column_types=dict.fromkeys(texts, pa.string())
            ),
        )


def _header(data: bytes, delimiter: str) -> int:
    """Count a delimiter in the first line."""
    return data.split(b"\n", 1)[0].count(delimiter.encode())


def _names(names: list[str]) -> list[str]:
    """Give columns without a name one: ``column_1`` for the first."""
    found = list(names)
    for place, name in enumerate(names):
        if not name:
            found[place] = f"column_{place + 1}"
            note(f"column {place + 1} of the table has no name; it is called {found[place]}")
    return found


def _has_zeros(kind: Any, written: Any) -> bool:
    """Whether a column that looks like integers has some that begin with zeros."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_integer(kind):
        return False
    return bool(pc.any(pc.match_substring_regex(written, ZEROS)).as_py())


def _without_holes(written: Any, typed: Any) -> Any:
    """Return texts where a column has values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(pc.is_valid(typed), written, pa.scalar(None, pa.string()))


def as_text(table: Any, delimiter: str) -> bytes:
    """Write texts and numbers as CSV, with quotes where they are needed only."""
    import pyarrow as pa

    sink = io.StringIO()
    writer = csv.writer(sink, delimiter=delimiter, lineterminator="\n")
    writer.writerow(table.column_names)
    columns = [column.cast(pa.string()).to_pylist() for column in table.columns]
    writer.writerows(zip(*columns, strict=True))
    return sink.getvalue().encode()
