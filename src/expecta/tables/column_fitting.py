"""Learn the values of one column, by its kind and the options on it, from cells or a summary."""

from __future__ import annotations

import numpy as np

from expecta.common.arrays import Floats
from expecta.tables.category_column import fit_categories
from expecta.tables.cells import Cells
from expecta.tables.column import CodeColumn, Column, as_codes
from expecta.tables.column_notes import ColumnNotes
from expecta.tables.encoder_options import EncoderOptions
from expecta.tables.number_column import fit_number_sketch, fit_numbers
from expecta.tables.scalars import DAY, key, natural_order
from expecta.tables.table import Table
from expecta.tables.table_sketch import ColumnSketch


def fit_codes(table: Table, options: EncoderOptions, weight: Floats | None) -> dict[str, Column]:
    """Learn the columns of an integer array that are no other kind, blocks of rows at a time."""
    assert table.array is not None
    names = [name for name in table.names if name not in options.kinds]
    if not names:
        return {}
    kept = [name not in options.kinds for name in table.names]
    codes = as_codes(table.array if all(kept) else table.array[:, kept], None, names, "error")
    cards = np.max(codes, axis=0) + 1
    cards = np.maximum(cards, 2 if np.max(cards) <= 2 else 1)
    start = np.append(0, np.cumsum(cards + 1))  # an entry before each column's for the unknown
    counts = np.zeros(start[-1])
    for first in range(0, len(codes), 4096):
        block = codes[first : first + 4096] + (start[:-1] + 1)
        part = None if weight is None else np.repeat(weight[first : first + 4096], len(cards))
        counts += np.bincount(block.ravel(), part, start[-1])
    dtype = str(table.array.dtype)
    return {
        name: CodeColumn(name, "code", dtype, card, counts[begin + 1 : begin + 1 + card])
        for name, card, begin in zip(names, cards.tolist(), start[:-1].tolist(), strict=True)
    }


def fit_column(
    cells: Cells, options: EncoderOptions, weight: Floats | None, notes: ColumnNotes
) -> Column:
    """Learn one column by its kind."""
    kind = options.kinds.get(cells.name, cells.kind)
    if kind == cells.kind and cells.name not in options.kinds:
        notes.judge(cells)
    if kind == "number" and cells.kind == "integer":
        kind = "integer"
    if kind == "date":
        kind = _date_kind(cells)
    if kind in ("category", "boolean"):
        known = cells.as_levels()[0] >= 0
        if np.any(known if weight is None else known & (weight > 0)):
            return fit_categories(cells, weight, options.max_categories, notes)
    elif cells.kind != "unknown":
        zone = cells.zone
        method, cuts = options.method(cells.name, kind, zone), options.cuts(cells.name, kind, zone)
        column = fit_numbers(cells, kind, weight, method, options.max_bins, cuts, notes)
        if column is not None:
            return column
    notes.add("empty", cells.name)
    return Column(cells.name, "unknown", cells.dtype, 1, np.zeros(1))


def fit_column_sketch(sketch: ColumnSketch, options: EncoderOptions, notes: ColumnNotes) -> Column:
    """Learn one column by its kind, from a summary."""
    name, kind = sketch.name, sketch.kind
    if sketch.categories is not None:
        counts = sketch.categories.counts
        levels = sketch.levels or tuple(natural_order([level for level, _ in counts.values()]))
        if kind == "boolean":
            levels = (False, True)
        mass = np.array([counts.get(key(level), (level, 0.0))[1] for level in levels])
        codes = np.arange(len(levels), dtype=np.int32)
        cells = Cells(name, kind, sketch.dtype, None, codes, levels, sketch.declared)
        return fit_categories(cells, mass, options.max_categories, notes, sketch.known_rows)
    if sketch.numbers is not None and len(sketch.numbers.mass):
        if options.kinds.get(name) == "date" and sketch.zone is None:
            kind = "date" if sketch.stepped else "datetime"
        zone = sketch.zone
        method, cuts = options.method(name, kind, zone), options.cuts(name, kind, zone)
        return fit_number_sketch(sketch, kind, method, options.max_bins, cuts, notes)
    notes.add("empty", name)
    return Column(name, "unknown", sketch.dtype, 1, np.zeros(1))


def _date_kind(cells: Cells) -> str:
    """Return whether a column of dates has times of the day."""
    if cells.kind in ("date", "unknown") or cells.zone is not None:
        return "datetime" if cells.zone is not None else "date"
    numbers = cells.as_numbers("datetime")
    days = numbers[np.isfinite(numbers)] / DAY
    return "date" if np.all(days == np.floor(days)) else "datetime"
