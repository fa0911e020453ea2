"""Load models from files, and read rows for them."""

from __future__ import annotations

import csv
from datetime import datetime, timedelta
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from expecta.cli import table_files
from expecta.cli.output import note
from expecta.common.errors import DomainError, FormatError
from expecta.common.text import suggestion
from expecta.estimators.expected_estimator import ExpectedEstimator
from expecta.tables.category_column import CategoryColumn
from expecta.tables.column import Column
from expecta.tables.row_reader import arrow_columns

MAX_SHOWN = 3  # unseen values that a note names


def load(path: Path) -> ExpectedEstimator:
    """Read a model that ``expecta fit``, or an estimator's ``save``, wrote."""
    if str(path) == "-":
        raise DomainError("models are not read from standard input; name the model's file")
    try:
        return ExpectedEstimator.load(path)
    except FormatError:
        if not table_files.is_table(str(path)):
            raise
        raise DomainError(f"{path} is a table; the model comes first: MODEL, then TABLE") from None


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


def read_rows(model: ExpectedEstimator, path: str, *, typed: bool = False) -> tuple[Any, Any]:
    """Read a table, and return it as it was written and as the model takes it.

    Of CSV every cell is the text that was in the file, so that it can be written again, unless
    the table is to be ``typed``.
    """
    columns = model.encoder_.columns_
    texts = [column.name for column in columns if _is_text(column)]
    numbers = [column.name for column in columns if column.name not in texts]
    table, text = table_files.read_both(path, texts, numbers)
    return table if typed or text is None else text.as_written(), _aligned(model, table)


def _is_text(column: Column) -> bool:
    """Whether all values of a column were texts: then its cells are, even if they look not."""
    values = column.values
    return isinstance(column, CategoryColumn) and all(isinstance(value, str) for value in values)


def _aligned(model: ExpectedEstimator, table: Any) -> Any:
    """Return the model's columns of an Arrow table; those that it lacks are unknown."""
    names = [column.name for column in model.encoder_.columns_]
    rows, missing = arrow_columns(table, names)
    if missing:
        note(f"the table has no column {', '.join(map(repr, missing))}: unknown in every row")
    _tell_unseen(model, rows)
    return rows


def _tell_unseen(model: ExpectedEstimator, table: Any) -> None:
    """Note categories that are not in the training data: they count as unknown."""
    codes = model.encoder_.codes(table)
    for variable, column in enumerate(model.encoder_.columns_):
        cells = table.column(variable)
        odd = (codes[:, variable] < 0) & np.asarray(cells.is_valid())
        if not isinstance(column, CategoryColumn) or not np.any(odd):
            continue
        values = list(dict.fromkeys(str(cells[i].as_py()) for i in np.flatnonzero(odd).tolist()))
        more = ", ..." if len(values) > MAX_SHOWN else ""
        note(
            f"column {column.name!r} has values that are not in the training data, in "
            f"{np.count_nonzero(odd)} row(s); they count as unknown: "
            f"{', '.join(map(repr, values[:MAX_SHOWN]))}{more}"
        )


def row_of(model: ExpectedEstimator, text: str) -> dict[str, Any]:
    """Read one row, written as ``age=40,smoker=yes``; what it does not name is unknown."""
    row: dict[str, Any] = {}
    for part in next(csv.reader([text], skipinitialspace=True), []):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise DomainError(f"{part!r} is not a fact; write a row as age=40,smoker=yes")
        if name in row:
            raise DomainError(f"column {name!r} is named twice in the row; name it once")
        column = model.encoder_.column(name)
        row[name] = None if value in ("", "?") else _value(column.plain, value)
    if not row:
        raise DomainError("the row says nothing; write it as age=40,smoker=yes")
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
