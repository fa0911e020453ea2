"""Name the cell that a model refuses, where its library says only that it refuses rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from expecta.common.arrays import Ints
from expecta.common.errors import DomainError
from expecta.expected.row_template import RowTemplate
from expecta.readers import frames
from expecta.tables.table import Table

MAX_TRIED = 100  # rows, to find one that the model takes


def refusal(template: RowTemplate, table: Table, column: int, row: int) -> DomainError:
    """Return the error of a cell that the model refuses."""
    cell = template.column(table, column)[row]
    where = f" of row {row}" if table.n_rows > 1 else ""
    return DomainError(
        f"the model refuses {cell!s:.80} in column {template.columns[column]!r}{where}, "
        f"as it would in a complete row"
    )


def ask_complete(
    ask: Callable[[Any], Any], template: RowTemplate, table: Table, which: Ints
) -> Any:
    """Ask a model about complete rows of a table; the error names the first cell that it refuses.

    Where it refuses all rows, or rows for no single cell, the error is its own. Cost: where it
    refuses some, a prediction for each halving of the rows, and for each column.
    """
    try:
        return ask(template.complete(table, which))
    except DomainError:
        raise
    except ValueError as problem:
        if (cell := _refused_cell(ask, template, table, which)) is None:
            raise
        raise refusal(template, table, *cell) from problem


def _refused_cell(
    ask: Callable[[Any], Any], template: RowTemplate, table: Table, which: Ints
) -> tuple[int, int] | None:
    """Return the column and the row of the first cell that a model refuses, if one alone is why."""

    def takes(rows: Any) -> bool:
        try:
            with frames.quietly():
                ask(rows)
        except ValueError:
            return False
        return True

    taken, refused = 0, len(which)  # how many of the first rows it takes, and refuses
    while refused - taken > 1:
        middle = (taken + refused) // 2
        if takes(template.complete(table, which[:middle])):
            taken = middle
        else:
            refused = middle
    bad = which[refused - 1]
    tried = which[:MAX_TRIED]
    good = next((row for row in tried if takes(template.complete(table, np.array([row])))), None)
    if good is None:
        return None
    for column in range(len(template.columns)):
        cell = template.column(table, column)[[bad]]
        if not takes(frames.put(template.complete(table, np.array([good])), column, cell)):
            return column, int(bad)
    return None
