"""Declare what a file holds of an encoder: its options, and what it learned of every column."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from expecta.common.errors import DomainError
from expecta.files.schema import Array, Choice, Kind, Many, Maybe, Record, Scalar, Value
from expecta.tables.category_column import CategoryColumn
from expecta.tables.column import LARGEST_CODE, CodeColumn, Column, MissingIsValueColumn
from expecta.tables.encoder import Encoder
from expecta.tables.encoder_options import EncoderOptions
from expecta.tables.number_column import NumberColumn
from expecta.tables.scalars import DAY, TIMES, canonical, key, time_zone
from expecta.tables.table import SOURCES

_CLASSES: dict[str, type[Column]] = {
    **dict.fromkeys(("category", "boolean"), CategoryColumn),
    **dict.fromkeys(("integer", "number", *TIMES), NumberColumn),
    "code": CodeColumn,
    "unknown": Column,
}
_OPTIONS = tuple(Encoder().get_params(deep=False))
_SHARED = {
    "name": Scalar(str),
    "dtype": Scalar(str),
    "counts": Array("float64", "values", low=0),
    "missing": Maybe(Scalar(float, low=0)),  # weight of missing cells, where these are a value
}
_FIELDS = {
    CategoryColumn: {
        "values": Many(Value(canonical, max_depth=0)),
        "other": Scalar(bool),
        "grouped": Many(Value(canonical, max_depth=0)),
    },
    NumberColumn: {
        "step": Scalar(float, low=0, high=DAY),
        "zone": Maybe(Scalar(str)),
        "edges": Array("float64", "values-1", increasing=True),
        "means": Array("float64", "values"),
        "stds": Array("float64", "values", low=0),
        "lows": Array("float64", "values"),
        "highs": Array("float64", "values"),
    },
}


def _column(kind: str, missing: float | None, **learned: Any) -> Column:
    """Return a column, or complain of what makes no sense."""
    n_values, name = len(learned["counts"]), learned["name"]
    if n_values > {"unknown": 1, "code": LARGEST_CODE + 1}.get(kind, n_values) or n_values == 0:
        raise DomainError(f"column {name!r:.60} has {n_values} values, too few or too many")
    if "values" in learned:
        learned["values"] = tuple(learned["values"])
        learned["grouped"] = tuple(learned["grouped"])
        _check_categories(name, kind, n_values, learned["values"], learned["other"])
        both = [key(value) for value in (*learned["values"], *learned["grouped"])]
        if len(set(both)) < len(both) or (learned["grouped"] and not learned["other"]):
            raise DomainError(f"a rare category of column {name!r:.60} is another too")
    if "edges" in learned:
        edges, means, lows, highs = (learned[key] for key in ("edges", "means", "lows", "highs"))
        ordered = np.all((lows <= means) & (means <= highs))
        if not (ordered and np.all(lows[1:] >= edges) and np.all(highs[:-1] < edges)):
            raise DomainError(f"the bins of column {name!r:.60} are not in order")
        if learned["zone"] is not None and (kind != "datetime" or len(learned["zone"]) > 99):
            raise DomainError(f"column {name!r:.60} has a time zone of no use")
        if learned["zone"] is not None:
            time_zone(learned["zone"])
    column = _CLASSES[kind](kind=kind, cardinality=n_values, **learned)
    return column if missing is None else MissingIsValueColumn.from_known(column, missing)


def _check_categories(
    name: str, kind: str, n_values: int, values: tuple[Any, ...], other: bool
) -> None:
    if len(values) + other != n_values:
        raise DomainError(f"column {name!r:.60} has {n_values} values, {len(values)} categories")
    if any(value is None or value != value for value in values):
        raise DomainError(f"a category of column {name!r:.60} is missing")
    if len({key(value) for value in values}) < len(values):
        raise DomainError(f"two categories of column {name!r:.60} are the same")
    if kind == "boolean" and not (values == (False, True) and key(values[0])[0] == "bool"):
        raise DomainError(f"the Boolean column {name!r:.60} has other values than it should")


def _column_parts(column: Column) -> dict[str, Any]:
    parts = {field.name: getattr(column.plain, field.name) for field in fields(Column)}
    return {**parts, "missing": None if column.plain is column else column.counts[-1]}


def _encoder(
    options: dict[str, Any], source: str, notes: list[str], columns: list[Column]
) -> Encoder:
    kinds = EncoderOptions.from_params(options).kinds
    names = {column.name for column in columns}
    if not columns or len(names) < len(columns):
        raise DomainError("there are no columns, or two columns have the same name")
    if source == "codes" and any(c.kind != "code" and c.name not in kinds for c in columns):
        raise DomainError("an integer array has a column that is not one of integers")
    encoder = Encoder(**options)
    encoder._set(source, columns, notes)
    return encoder


def _encoder_parts(encoder: Encoder) -> dict[str, Any]:
    return {
        "options": encoder.get_params(deep=False),
        "source": encoder.source_,
        "notes": encoder.notes_,
        "columns": encoder.columns_,
    }


ENCODER = Record(
    {
        "options": Record(dict.fromkeys(_OPTIONS, Value(canonical))),
        "source": Scalar(str, choices=SOURCES),
        "notes": Many(Scalar(str)),
        "columns": Many(
            Choice(
                "kind",
                {
                    kind: Record(
                        {**_SHARED, **_FIELDS.get(cls, {})}, partial(_column, kind), _column_parts
                    )
                    for kind, cls in _CLASSES.items()
                },
                name_of=lambda column: str(column.kind),
            )
        ),
    },
    _encoder,
    _encoder_parts,
)
ENCODER_FILE = Kind("encoder", ENCODER)
