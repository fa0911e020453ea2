"""Load models from files, and read rows for them."""

from __future__ import annotations

import csv
from datetime import datetime, timedelta
from pathlib import Path
from shlex import quote
from typing import Any

from expecta.cli import table_files
from expecta.cli.output import note
from expecta.common.errors import DomainError, FormatError
from expecta.common.file_input import read_bytes
from expecta.common.text import missing_sentence, suggestion
from expecta.densities import Density
from expecta.estimators.expected_estimator import ExpectedEstimator
from expecta.files.container import Container
from expecta.tables.category_column import CategoryColumn
from expecta.tables.column import Column
from expecta.tables.estimator_inputs import read_inputs
from expecta.tables.estimator_inputs import read_rows as read_estimator_rows
from expecta.tables.row_reader import arrow_columns
from expecta.tables.table import Table
from expecta.tables.unfamiliar_cells import UnfamiliarCounts


def load(path: Path) -> ExpectedEstimator:
    """Read a model that ``expecta fit``, or an estimator's ``save``, wrote."""
    if str(path) == "-":
        raise DomainError("models cannot be read from standard input; give the name of a file")
    try:
        return ExpectedEstimator.load(path)
    except FormatError:
        if not table_files.is_table(str(path)):
            raise
        raise DomainError(f"{path} is a table; give the model first, then the table") from None


def load_density(path: Path) -> Density | None:
    """Read a density that was saved by itself; None where a file holds something else."""
    if not path.is_file():
        return None
    data = read_bytes(path)
    if not Container.recognises(data) or Container.from_bytes(str(path), data).kind != "density":
        return None
    return Density.load(path)


def load_for(path: Path, of: str | None) -> ExpectedEstimator:
    """Read a model of which one class is asked about, if it has classes."""
    model = load(path)
    classes = getattr(model, "classes_", None)
    if classes is None:
        if of is not None:
            raise DomainError(f"this model predicts numbers, not classes; leave --of {of} out")
        return model
    labels = [str(label) for label in classes.tolist()]
    if of is None and len(labels) > 2:
        raise DomainError(
            f"there are {len(labels)} classes; name one: --of {quote(labels[0])}; "
            + suggestion("", labels)
        )
    if of is not None and of not in labels:
        near = [label for label in labels if label.lower() == of.lower()] or [of]
        raise DomainError(f"--of: there is no class {of!r}; {suggestion(near[0], labels)}")
    return model


def read_rows(model: ExpectedEstimator | Density, path: str) -> Any:
    """Read a table as the model takes it."""
    table, _ = table_files.read_both(path, *column_types(model))
    rows, missing = arrow_columns(table, [column.name for column in model.encoder_.columns_])
    if missing:
        note(missing_sentence(missing))
    _note_unfamiliar(model, read_inputs(model.encoder_.read(rows)))
    return rows


def _note_unfamiliar(model: ExpectedEstimator | Density, rows: Table) -> None:
    """Say which values of rows are unlike the training data, and what they count as."""
    unlike = UnfamiliarCounts(model.encoder_)
    unlike.add(rows, model.encoder_.codes(rows))
    for sentence in unlike.sentences():
        note(sentence)


def column_types(model: ExpectedEstimator | Density) -> tuple[list[str], list[str], list[str]]:
    """Return the columns of a model that are texts, its others, and what means unknown."""
    columns = model.encoder_.columns_
    texts = [column.name for column in columns if _is_text(column)]
    numbers = [column.name for column in columns if column.name not in texts]
    return texts, numbers, [str(value) for value in model.encoder_.na or ()]


def _is_text(column: Column) -> bool:
    """Whether all values of a column were texts: then its cells are, even if they look not."""
    values = column.values
    return isinstance(column, CategoryColumn) and all(isinstance(value, str) for value in values)


def row_of(model: ExpectedEstimator, text: str) -> dict[str, Any]:
    """Read one row, written as ``age=40,smoker=yes``; what it does not name is unknown."""
    row: dict[str, Any] = {}
    for part in next(csv.reader([text], skipinitialspace=True), []):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise DomainError(
                f"{part!r} is not a known value; write a row as age=40,smoker=yes, decimals with a "
                f"point"
            )
        if name in row:
            raise DomainError(f"column {name!r} is named twice in the row; name it once")
        column = model.encoder_.column(name)
        row[name] = None if value in ("", "?") else _value(column.plain, value)
    if not row:
        raise DomainError("the row is empty; write it as age=40,smoker=yes")
    _note_unfamiliar(model, read_estimator_rows(row, model.encoder_))
    return row


def _value(column: Column, text: str) -> Any:
    """Return the cell that is written; an error where the column has no such value."""
    if isinstance(column, CategoryColumn):
        same = {label.lower(): label for label in column.labels}
        text = text if text in column.labels else same.get(text.lower(), text)
        code = column.code(text)
        return column.values[code] if code < len(column.values) else text
    if text.lower() == "nan":
        return None
    value = column.to_number(text)
    if column.kind == "duration":
        return timedelta(microseconds=value)
    return datetime.fromisoformat(text) if column.kind in ("date", "datetime") else value
