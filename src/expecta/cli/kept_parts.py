"""Keep predictions of a long table part by part, so that a run that was stopped can go on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from expecta.cli.table_streams import StreamBatch, TableStream
from expecta.common.atomic_files import replace_file, replacing_file

RECORD = "_expecta.json"  # what outputs are of; readers of Parquet skip the name


class KeptParts:
    """Predictions for the first rows of a table, in a folder beside the file they are for.

    Parameters
    ----------
    output
        The file that all of them are for.
    key
        What they depend on: those of another key are of no use, and removed.
    resume
        Whether to go on with those that are there.
    """

    def __init__(self, output: str, key: Mapping[str, Any], *, resume: bool) -> None:
        self.folder = Path(output).with_name(f".{Path(output).name}.parts")
        self._key = json.dumps(key, sort_keys=True)
        if self.folder.exists() and not (resume and self._read_key() == self._key):
            shutil.rmtree(self.folder)

    def _read_key(self) -> str | None:
        path = self.folder / RECORD
        return path.read_text("utf-8") if path.is_file() else None

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06}.arrow"

    def rows(self, number: int) -> int | None:
        """Return how many rows a part has; None where it is not there."""
        return self.read(number).num_rows if self._path(number).is_file() else None

    def read(self, number: int) -> Any:
        """Return a part."""
        import pyarrow as pa

        with pa.OSFile(str(self._path(number))) as file:
            return pa.ipc.open_file(file).read_all()

    def write(self, number: int, table: Any) -> None:
        """Keep a part, in one step."""
        import pyarrow as pa

        if not self.folder.exists():
            self.folder.mkdir()
            replace_file(str(self.folder / RECORD), self._key.encode())
        with (
            replacing_file(str(self._path(number))) as file,
            pa.ipc.new_file(file, table.schema) as writer,
        ):
            writer.write_table(table)

    def remove(self) -> None:
        """Remove them all."""
        shutil.rmtree(self.folder, ignore_errors=True)


def complete_parts(
    batches: Iterable[StreamBatch],
    parts: KeptParts,
    size: int,
    predict: Callable[[StreamBatch], Any],
    skip: Callable[[StreamBatch], None],
) -> None:
    """Predict for the rows whose parts are not there yet, ``size`` rows or some more each.

    Batches are the same whenever a table is read, and parts are whole batches.
    """
    import pyarrow as pa

    number, skipped = 0, 0
    waiting: list[Any] = []
    left = parts.rows(0)
    for batch in batches:
        if left is not None:
            skip(batch)
            skipped += batch.rows.num_rows
            if skipped >= left:
                number, skipped = number + 1, 0
                left = parts.rows(number)
            continue
        waiting.append(predict(batch))
        if sum(table.num_rows for table in waiting) >= size:
            parts.write(number, pa.Table.from_batches(waiting))
            number, waiting = number + 1, []
            left = parts.rows(number)
    if waiting:
        parts.write(number, pa.Table.from_batches(waiting))


def joined_parts(stream: TableStream, parts: KeptParts) -> Iterator[tuple[StreamBatch, Any]]:
    """Read a table again, each batch with the predictions that were kept of it."""
    number, at, part = -1, 0, None
    for batch in stream.batches():
        if part is None or at == part.num_rows:
            number, at, part = number + 1, 0, parts.read(number + 1)
        rows = batch.rows.num_rows
        yield batch, part.slice(at, rows)
        at += rows
