"""Read rows for what was fitted: the one reader of every verb, whatever form rows have."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from expecta.common.errors import DomainError, MissingColumnsWarning
from expecta.common.settings import current
from expecta.common.text import missing_sentence, suggestion
from expecta.tables.cells import Cells
from expecta.tables.table import Table, find_columns

if TYPE_CHECKING:
    from expecta.tables.encoder import Encoder

NEAR = 0.75  # from this similarity on a name is taken for a misspelt one
_PACKAGE = str(Path(__file__).parents[1])


def with_all_columns(table: Table, columns: list[str]) -> Table:
    """Return rows with every column that a model knows; those they lack are unknown.

    A table that lacks some gives a `MissingColumnsWarning`, and one row that is a mapping to
    values does not: what it does not name is meant to be unknown. Further columns of a table are
    ignored, unless one of them looks like a column that is not there; of one row all are refused.
    Columns of arrays are found by position, and left to `find_columns`.
    """
    if not table.named or list(table.names) == columns:
        return table
    absent = absent_columns(table.names, columns, one_row=table.one_row)
    if not absent:
        return table
    if not table.one_row:
        _warn(missing_sentence(absent))
    nothing = np.full(table.n_rows, np.nan)
    cells = (Cells(name, "unknown", "object", nothing) for name in absent)
    return replace(table, names=(*table.names, *absent), columns=(*table.columns, *cells))


def absent_columns(
    given: Collection[str], columns: list[str], *, one_row: bool = False
) -> list[str]:
    """Return the columns that rows lack; refuse misspelt names, and rows that have none."""
    there = set(given)
    absent = [name for name in columns if name not in there]
    if not absent and not one_row:
        return []
    known = set(columns)
    further = [name for name in given if name not in known]
    plain = {name.casefold(): name for name in absent}
    for name in further:
        near = get_close_matches(name.casefold(), plain, n=1, cutoff=NEAR)
        if near:
            raise DomainError(
                f"there is no column {name!r:.80}; did you mean {plain[near[0]]!r}? "
                f"Rename it, or leave it out"
            )
        if one_row:
            raise DomainError(f"there is no column {name!r:.80}; {suggestion(name, columns)}")
    if len(absent) == len(columns) and not one_row:
        raise DomainError(
            "the table has none of the model's columns; "
            + suggestion(next(iter(given), ""), columns, "they are")
        )
    if absent and current().columns == "strict":
        they = "it is unknown, add it" if len(absent) == 1 else "they are unknown, add them"
        raise DomainError(
            f"the table has no column {', '.join(map(repr, absent))}; if {they} with None in "
            f"every row"
        )
    return absent


def arrow_columns(table: Any, columns: list[str]) -> tuple[Any, list[str]]:
    """Return a model's columns of an Arrow table or batch, and those that it lacks: all null."""
    import pyarrow as pa

    absent = absent_columns(table.schema.names, columns)
    nothing = pa.nulls(table.num_rows)  # of no type, which a column of any kind takes
    return pa.table({n: nothing if n in absent else table.column(n) for n in columns}), absent


def check_one_row(table: Table) -> Table:
    """Return a table with one row; an error where there are several."""
    if table.n_rows != 1:
        raise DomainError(
            f"this question is about one row, and {table.n_rows} are given; ask about one at a time"
        )
    return table


def row_facts(table: Table, encoder: Encoder) -> dict[str, Any]:
    """Return the cells of one row as facts, None where they are unknown."""
    facts: dict[str, Any] = {}
    names = encoder.feature_names_in_.tolist()
    for name, position in zip(names, find_columns(table, encoder), strict=True):
        cells = table.column(position)
        (code,), levels = cells.as_levels()
        value = levels[code] if code >= 0 else None
        if cells.zone is not None and isinstance(value, datetime):
            value = value.replace(tzinfo=UTC)
        facts[name] = None if table.source == "codes" and value == -1 else value
    return facts


def first_bad_row(read: Callable[[int, int], Any], n_rows: int) -> int | None:
    """Return the first row that cannot be read; None where the reason is in no row.

    ``read(first, count)`` reads some of the rows. Cost: the logarithm of their number.
    """

    def reads(first: int, count: int) -> bool:
        try:
            read(first, count)
        except DomainError:
            return False
        return True

    if not n_rows or not reads(0, 0):
        return None
    good, bad = 0, n_rows  # rows from the start that can be read, and cannot
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if reads(0, middle) else (good, middle)
    return None if reads(good, 1) else good


def _warn(message: str) -> None:
    """Warn where the package was called from."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, MissingColumnsWarning, stacklevel=level)
