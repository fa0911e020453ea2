"""Find cells unlike the training data: new categories, and numbers far from all of its."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.text import counted
from expecta.tables.cells import Cells
from expecta.tables.column import Column
from expecta.tables.number_column import NumberColumn
from expecta.tables.table import Table, find_columns

if TYPE_CHECKING:
    from expecta.tables.encoder import Encoder

MAX_SHOWN = 3  # values that a sentence names
MARGIN = 0.1  # of the training range; a number further than it from all is unlike them


def unfamiliar_cells(table: Table, encoder: Encoder, codes: Ints) -> Bools:
    """Whether each known cell has a value unlike those of the training data.  # (rows, variables).

    A category that the training data does not have; or a number or time that is further than a
    tenth of the column's range from every training number, beyond the range or in a gap between
    bins; see `familiar_ranges`. A gap within a bin is not known. Cost: one pass over the cells.
    """
    unlike = np.zeros(codes.shape, np.bool_)
    positions = find_columns(table, encoder)
    for variable, column in enumerate(encoder.columns_):
        unlike[:, variable] = _unlike(table.column(positions[variable]), column, codes[:, variable])
    return unlike


def _unlike(cells: Cells, column: Column, codes: Ints) -> Bools:
    if not isinstance(column.plain, NumberColumn):
        return cells.known & (codes < 0)
    numbers = cells.as_numbers(column.plain.kind, column.plain.zone)
    unlike = ~np.isnan(numbers)
    for low, high in familiar_ranges(column.plain):
        unlike &= (numbers < low) | (numbers > high)
    return unlike


def familiar_ranges(column: NumberColumn) -> list[tuple[float, float]]:
    """Return where a number is near the training numbers.

    That is up to a tenth of their range away, and up to the next whole number in a gap of whole
    ones: where 7 and 9 are known, 8 is no surprise.
    """
    starts, ends, before, after = _training_ranges(column)
    return list(zip((starts - before).tolist(), (ends + after).tolist(), strict=True))


def _training_ranges(column: NumberColumn) -> tuple[Floats, Floats, Floats, Floats]:
    """Return starts and ends of where training numbers lie, and how far before and after is near.

    They are at most five ranges: what is near does not fill the gaps between them. Bins without
    training rows, which thresholds of a model can make, do not count.
    """
    filled = column.counts > 0
    filled = filled if filled.any() else ~filled
    lows, highs = column.lows[filled], column.highs[filled]
    with np.errstate(over="ignore"):  # of a range beyond the largest float every number is near
        margin = MARGIN * (highs[-1] - lows[0])
        gaps = lows[1:] - highs[:-1]
    near = np.maximum(margin, np.where(gaps > column.step, column.step, 0.0))
    wide = gaps > 2 * near
    starts, ends = lows[np.append(True, wide)], highs[np.append(wide, True)]
    return starts, ends, np.append(margin, near[wide]), np.append(near[wide], margin)


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
            f"column {column.name!r} has values far from the training data "
            f"({training_ranges(column.plain)}), in {counted(rows, 'row')}; "
            f"each counts as the nearest bin: {shown}"
        )
    return (
        f"column {column.name!r} has values that are not in the training data, in "
        f"{counted(rows, 'row')}; they count as unknown: {shown}"
    )


def training_ranges(column: NumberColumn) -> str:
    """Write where the training values of a column lie, such as ``1 to 8 and 50 to 53``."""
    starts, ends, *_ = (map(column.text, each.tolist()) for each in _training_ranges(column))
    texts = [
        low if low == high else f"{low} to {high}" for low, high in zip(starts, ends, strict=True)
    ]
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))


def cell_texts(cells: Cells, rows: Ints) -> list[str]:
    """Write the values of some cells."""
    codes, levels = cells.take(rows).as_levels()
    return [str(levels[code]) if code >= 0 else "" for code in codes.tolist()]
