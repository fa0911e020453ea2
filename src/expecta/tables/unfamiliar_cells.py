"""Find cells unlike the training data: new categories, and numbers far beyond its range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from expecta.common.arrays import Bools, Ints
from expecta.common.text import counted
from expecta.tables.cells import Cells
from expecta.tables.column import Column
from expecta.tables.number_column import NumberColumn
from expecta.tables.table import Table, find_columns

if TYPE_CHECKING:
    from expecta.tables.encoder import Encoder

MAX_SHOWN = 3  # values that a sentence names
MARGIN = 0.1  # of the training range, beyond which a number is unlike the training data


def unfamiliar_cells(table: Table, encoder: Encoder, codes: Ints) -> Bools:
    """Whether each known cell has a value unlike those of the training data.  # (rows, variables).

    A category that the training data does not have; or a number or time that is beyond its range
    by more than a tenth of that range. Cost: one pass over the cells.
    """
    unlike = np.zeros(codes.shape, np.bool_)
    positions = find_columns(table, encoder)
    for variable, column in enumerate(encoder.columns_):
        unlike[:, variable] = _unlike(table.column(positions[variable]), column, codes[:, variable])
    return unlike


def _unlike(cells: Cells, column: Column, codes: Ints) -> Bools:
    if not isinstance(column.plain, NumberColumn):
        return cells.known & (codes < 0)
    low, high = familiar_range(column.plain)
    numbers = cells.as_numbers(column.plain.kind, column.plain.zone)
    return (numbers < low) | (numbers > high)


def familiar_range(column: NumberColumn) -> tuple[float, float]:
    """Return the range of a column's training numbers, wider by a tenth of it at both ends."""
    low, high = _range(column)
    return low - MARGIN * (high - low), high + MARGIN * (high - low)


def _range(column: NumberColumn) -> tuple[float, float]:
    """Return the least and the largest training number.

    Bins without training rows, which thresholds of a model can make, do not count.
    """
    filled = column.counts > 0
    filled = filled if filled.any() else ~filled
    return float(column.lows[filled].min()), float(column.highs[filled].max())


class UnfamiliarCounts:
    """Counts cells unlike the training data over many rows, to name them in a few sentences."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._rows: list[int] = [0] * len(encoder.columns_)
        self._values: list[dict[str, None]] = [{} for _ in encoder.columns_]

    def add(self, table: Table, codes: Ints) -> None:
        """Count those in some rows, which have the codes given."""
        unlike = unfamiliar_cells(table, self._encoder, codes)
        positions = find_columns(table, self._encoder)
        for variable in np.flatnonzero(unlike.any(axis=0)).tolist():
            rows = np.flatnonzero(unlike[:, variable])
            self._rows[variable] += len(rows)
            values = self._values[variable]
            for text in cell_texts(table.column(positions[variable]), rows[: 2 * MAX_SHOWN]):
                if len(values) <= MAX_SHOWN:
                    values[text] = None

    @property
    def total(self) -> int:
        """How many cells were counted."""
        return sum(self._rows)

    def sentences(self) -> list[str]:
        """Return a sentence for each column that has such cells."""
        columns = zip(self._encoder.columns_, self._rows, self._values, strict=True)
        return [unfamiliar_sentence(*each) for each in columns if each[1]]


def unfamiliar_sentence(column: Column, rows: int, values: dict[str, None]) -> str:
    """Write which values of a column are unlike the training data, and what they count as."""
    more = ", ..." if len(values) > MAX_SHOWN else ""
    shown = ", ".join(map(repr, list(values)[:MAX_SHOWN])) + more
    if isinstance(column.plain, NumberColumn):
        shown = shown.replace("'", "")
        return (
            f"column {column.name!r} has values far beyond the training data "
            f"({training_range(column.plain)}), in {counted(rows, 'row')}; "
            f"each counts as the nearest bin: {shown}"
        )
    return (
        f"column {column.name!r} has values that are not in the training data, in "
        f"{counted(rows, 'row')}; they count as unknown: {shown}"
    )


def training_range(column: NumberColumn) -> str:
    """Write the least and the largest training value of a column."""
    low, high = _range(column)
    return f"{column.text(low)} to {column.text(high)}"


def cell_texts(cells: Cells, rows: Ints) -> list[str]:
    """Write the values of some cells."""
    codes, levels = cells.take(rows).as_levels()
    return [str(levels[code]) if code >= 0 else "" for code in codes.tolist()]
