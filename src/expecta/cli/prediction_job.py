"""Predict for tables in files, batch by batch, and write each in one step."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

import numpy as np

from expecta.batches.predict_batches import BatchPredictor, with_columns
from expecta.cli import table_files
from expecta.cli.kept_parts import RECORD, KeptParts, complete_parts, joined_parts
from expecta.cli.models import column_types
from expecta.cli.output import note
from expecta.cli.table_streams import StreamBatch, TableStream, table_paths
from expecta.common.atomic_files import replace_file
from expecta.common.errors import BatchError, DomainError
from expecta.common.file_input import read_bytes
from expecta.common.progress import Progress
from expecta.estimators.expected_estimator import ExpectedEstimator
from expecta.tables.unfamiliar_cells import UnfamiliarCounts

UNKNOWN_FOLDER = "__HIVE_DEFAULT_PARTITION__"  # which stands for null in names of folders


class PredictionJob:
    """Predicts for the tables of one command, and notes at its end what is odd about their rows.

    Parameters
    ----------
    model
        An estimator that has learned.
    asked
        What to predict; see `predict_rows`.
    files
        From each output to the table that it is for.
    folder
        The folder of the tables; ``column=value`` in the names of folders below it is known of
        their rows. None for a single table, which must have rows.
    """

    def __init__(
        self,
        model: ExpectedEstimator,
        asked: Mapping[str, Any],
        files: Mapping[str, str],
        folder: str | None,
    ) -> None:
        self.model, self.asked, self.folder = model, asked, folder
        self.names: list[str] = []  # of the columns that are added
        self.n_rows = self._n_infinite = 0
        self._unlike = UnfamiliarCounts(model.expected_model.density.encoder_)
        counts = [self._stream(path, output).n_rows for output, path in files.items()]
        known = [count for count in counts if count is not None]
        self._progress = Progress("predict", sum(known) if len(known) == len(counts) else None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.__exit__(kind, error, trace)
        if error is not None:
            return
        for sentence in self._unlike.sentences():
            note(sentence)
        if self._n_infinite:
            note(
                f"the interval is infinite in {self._n_infinite} row(s): there are too few "
                f"training rows for {self.asked['interval']:.0%} intervals; learn from more, or "
                f"lower the coverage"
            )

    def documents(self, path: str) -> list[dict[str, Any]]:
        """Return the predictions for a table as records, all of them in memory."""
        tables = self._tables(self._stream(path, "-"))
        return [row for table in tables for row in table.select(self.names).to_pylist()]

    def write(self, path: str, output: str, key: Mapping[str, Any], *, resume: bool) -> None:
        """Write a table with predictions, a file in one step.

        Predictions for a table of more rows than a part has are kept part by part beside the
        output, until it is written. With ``resume`` those that are kept already are used, if
        they are of the same key and table.
        """
        stream = self._stream(path, output)
        size = int(key["part_rows"])
        if output == "-" or stream.n_rows is None:
            tables = self._tables(stream)
            parts = None
        else:
            parts = KeptParts(output, {**key, "table": file_state(path)}, resume=resume)
            long = stream.n_rows > size
            tables = self._tables_by_parts(stream, parts, size) if long else self._tables(stream)
        with table_files.table_writer(output) as writer:
            for table in tables:
                writer.write(table)
        if parts is not None:
            parts.remove()

    def _stream(self, path: str, output: str) -> TableStream:
        typed = table_files.write_format(output) not in ("csv", "tsv")
        return TableStream(path, *column_types(self.model), typed=typed)

    def _tables(self, stream: TableStream) -> Iterator[Any]:
        """Predict for one batch after the other."""
        predictor = BatchPredictor(self.model, **self.asked)
        for batch in self._checked(stream):
            yield self._joined(batch, self._predict(predictor, stream, batch))

    def _tables_by_parts(self, stream: TableStream, parts: KeptParts, size: int) -> Iterator[Any]:
        """Predict for what is not kept yet; then read the table again, for the output."""
        predictor = BatchPredictor(self.model, **self.asked)

        def skip(batch: StreamBatch) -> None:
            predictor.skip(batch.rows)
            self._progress.advance(batch.rows.num_rows)

        complete_parts(
            self._checked(stream),
            parts,
            size,
            lambda batch: self._predict(predictor, stream, batch),
            skip,
        )
        for batch, added in joined_parts(stream, parts):
            yield self._joined(batch, added)

    def _checked(self, stream: TableStream) -> Iterator[StreamBatch]:
        """Read batches; a table needs names that differ, and rows if it is the only one."""
        empty = self.folder is None
        for number, batch in enumerate(stream.batches()):
            if not number:
                table_files.check_names(stream.path, batch.written)
            empty = empty and not batch.written.num_rows
            yield batch
        if empty:
            table_files.check_rows(stream.path, batch.written)

    def _predict(self, predictor: BatchPredictor, stream: TableStream, batch: StreamBatch) -> Any:
        rows = self._with_folders(stream.path, batch.rows)
        try:
            read, predicted = predictor(rows)
        except BatchError as problem:
            row = "" if problem.row is None else f", row {predictor.n_rows + problem.row}"
            raise DomainError(f"{stream.path}{row}: {problem.problem}") from None
        self._unlike.add(read.table, read.codes)
        if predicted.interval is not None:
            infinite = np.isinf(predicted.interval).any(axis=1)
            self._n_infinite += int(np.count_nonzero(infinite))
        self._progress.advance(rows.num_rows)
        return predicted.to_arrow()

    def _joined(self, batch: StreamBatch, added: Any) -> Any:
        table = with_columns(batch.written, added)
        self.names = table.column_names[-added.num_columns :]
        self.n_rows += table.num_rows
        return table

    def _with_folders(self, path: str, rows: Any) -> Any:
        """Return rows with the model's columns that only the names of folders tell."""
        import pyarrow as pa

        if self.folder is None:
            return rows
        there = set(rows.column_names)
        wanted = {column.name for column in self.model.encoder_.columns_} - there
        for part in Path(path).relative_to(self.folder).parts[:-1]:
            name, equals, value = part.partition("=")
            if equals and name in wanted:
                known = None if value == UNKNOWN_FOLDER else unquote(value)
                cells = pa.repeat(pa.scalar(known, pa.string()), rows.num_rows)
                rows = rows.append_column(name, cells)
        return rows


def fingerprint(path: str | PathLike[str]) -> str:
    """Return a text that tells the contents of a file from others."""
    return hashlib.sha256(read_bytes(path)).hexdigest()


def file_state(path: str) -> list[int]:
    """Return size and time of change of a file."""
    status = Path(path).stat()
    return [status.st_size, status.st_mtime_ns]


def begin_folder(
    folder: str, output: str, key: Mapping[str, Any], *, resume: bool
) -> dict[str, str]:
    """Make a folder of outputs ready; return from each output that is missing to its table.

    The folder records what the outputs are of. With ``resume`` those that are there stay,
    unless their tables have changed since; without it none may be there.
    """
    root = Path(output)
    if output == "-" or root.is_file():
        raise DomainError(f"{folder} is a folder: give a folder for its predictions too: -o FOLDER")
    if _is_within(root, Path(folder)) or _is_within(Path(folder), root):
        raise DomainError(f"{output} and {folder} contain each other; choose another folder")
    files: dict[str, str] = {}
    for path in table_paths(folder):
        name, full = _written_name(path), str(Path(folder) / path)
        if name in files:
            raise DomainError(
                f"{files[name]} and {full} would both be written to {name}; rename one"
            )
        files[name] = full
    before = _begun(root / RECORD)
    there = [name for name in files if (root / name).exists()]
    if there and not (resume and before):
        raise DomainError(
            f"{output} already contains {there[0]}; choose another folder, or continue with "
            f"--resume"
        )
    if resume and before and before["key"] != json.loads(json.dumps(key)):
        raise DomainError(
            f"{output} was begun with another model or other options; choose another folder"
        )
    states = {name: file_state(path) for name, path in files.items()}
    for name in there:
        if before["tables"].get(name) != states[name]:
            (root / name).unlink()
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
    replace_file(str(root / RECORD), json.dumps({"key": key, "tables": states}).encode())
    missing = {name: path for name, path in files.items() if not (root / name).exists()}
    return {str(root / name): path for name, path in missing.items()}


def _begun(record: Path) -> Any:
    """Return what a folder of outputs says of itself; None where it says nothing."""
    if not record.is_file():
        return None
    try:
        before = json.loads(record.read_text("utf-8"))
        if before.keys() >= {"key", "tables"}:
            return before
    except (ValueError, AttributeError):
        pass
    raise DomainError(f"{record} is damaged; choose another folder, or delete this one")


def _is_within(path: Path, other: Path) -> bool:
    return path.resolve().is_relative_to(other.resolve())


def _written_name(path: str) -> str:
    """Return the name of the output for a table: the same, without packing; JSON as Parquet."""
    while Path(path).suffix.lower() in table_files.PACKED:
        path = path.removesuffix(Path(path).suffix)
    if table_files.read_format(path) == "json":
        path = str(Path(path).with_suffix(".parquet"))
    return path
