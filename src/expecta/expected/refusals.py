"""Name the cell that a model refuses, where its library says only that it refuses rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from expecta.common.arrays import Bools, Ints
from expecta.common.errors import DomainError
from expecta.expected.expected_model import ModelRows
from expecta.expected.row_template import RowTemplate
from expecta.readers import frames
from expecta.tables import Encoder
from expecta.tables.number_column import NumberColumn
from expecta.tables.scalars import TIMES
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


def check_values(
    refused: Iterable[tuple[int, int]],
    columns: Sequence[str],
    template: RowTemplate,
    rows: ModelRows,
) -> None:
    """Complain of known values of a density's columns that the model does not take."""
    for variable, value in refused:
        (wrong,) = np.nonzero(rows.codes[:, variable] == value)
        if len(wrong):
            column = template.columns.index(columns[variable])
            raise refusal(template, rows.table, column, int(wrong[0]))


def check_far(
    ask: Callable[[Any], Any],
    template: RowTemplate,
    rows: ModelRows,
    encoder: Encoder,
    which: Bools,
) -> None:
    """Complain of numbers beyond the training rows that the model refuses, in some of the rows.

    Its transformers may do so in a column that it makes no use of. Cost: one prediction for
    each such number.
    """
    for column, name in enumerate(template.columns if np.any(which) else ()):
        known = encoder.column(name).plain
        numbers = rows.table.column(template.indices(rows.table)[column]).numbers
        if numbers is None or not isinstance(known, NumberColumn) or known.kind in TIMES:
            continue
        (far,) = np.nonzero(((numbers < known.lows[0]) | (numbers > known.highs[-1])) & which)
        far = far[np.unique(numbers[far], return_index=True)[1]]

        def takes(some: Ints, column: int = column, numbers: Any = numbers) -> bool:
            first = frames.take(template.rows, np.zeros(len(some), np.intp))
            return _takes(ask, frames.put(first, column, numbers[some]))

        if len(far) and not takes(far):
            each = [row for row in far if not takes(np.array([row]))]
            raise refusal(template, rows.table, column, int([*each, *far][0]))


def _takes(ask: Callable[[Any], Any], rows: Any) -> bool:
    """Whether the model takes rows."""
    try:
        with frames.quietly():
            ask(rows)
    except ValueError:
        return False
    return True


def _refused_cell(
    ask: Callable[[Any], Any], template: RowTemplate, table: Table, which: Ints
) -> tuple[int, int] | None:
    """Return the column and the row of the first cell that a model refuses, if one alone is why."""
    taken, refused = 0, len(which)  # how many of the first rows it takes, and refuses
    while refused - taken > 1:
        middle = (taken + refused) // 2
        if _takes(ask, template.complete(table, which[:middle])):
            taken = middle
        else:
            refused = middle
    bad = which[refused - 1]
    tried = which[:MAX_TRIED]
    good = next(
        (row for row in tried if _takes(ask, template.complete(table, np.array([row])))), None
    )
    if good is None:
        return None
    for column in range(len(template.columns)):
        cell = template.column(table, column)[[bad]]
        if not _takes(ask, frames.put(template.complete(table, np.array([good])), column, cell)):
            return column, int(bad)
    return None
