"""Summarise a table column by column, so that summaries of its chunks add up to that of all.

An encoder learned from a summary has the edges and categories that it learns from the rows: the
same to the last bit where a column has at most 65,536 distinct values, else within a stated error;
and the same however the rows are divided.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from expecta.common.arrays import Floats
from expecta.common.errors import DomainError
from expecta.tables.category_sketch import CategorySketch
from expecta.tables.cells import Cells
from expecta.tables.encoder_options import EncoderOptions
from expecta.tables.number_sketch import NumberSketch
from expecta.tables.scalars import DAY, TIMES, Scalar
from expecta.tables.table import Table

WIDER = (frozenset({"integer", "number"}), "number"), (frozenset({"date", "datetime"}), "datetime")


@dataclass(frozen=True, eq=False)
class ColumnSketch:
    """What a column holds.

    Attributes
    ----------
    name, kind, dtype, zone, levels, declared, rounded
        Those of its `Cells`; ``levels`` where they are declared.
    rows, known_rows, missing
        How many rows there are, how many of them are known, and the weight of the others.
    numbers, categories
        What is known, as one of the two; None of a column in which all is missing.
    stepped
        Whether all numbers are whole; of times, whole days.
    """

    name: str
    kind: str
    dtype: str
    rows: int
    known_rows: int
    missing: float
    numbers: NumberSketch | None = None
    categories: CategorySketch | None = None
    zone: str | None = None
    levels: tuple[Scalar, ...] = ()
    declared: bool = False
    rounded: bool = False
    stepped: bool = True

    @classmethod
    def of(cls, cells: Cells, options: EncoderOptions, weight: Floats | None) -> ColumnSketch:
        """Summarise cells of the kind that they have or that the options say."""
        kind = options.kinds.get(cells.name, cells.kind)
        if kind == "number" and cells.kind == "integer":
            kind = "integer"
        if kind == "date" and cells.kind != "date":
            kind = "datetime"
        counted = cells.known if weight is None else cells.known & (weight > 0)
        missing = ~cells.known
        total = float(np.count_nonzero(missing) if weight is None else weight[missing].sum())
        sketch = cls(
            cells.name, kind, cells.dtype, len(cells), int(np.count_nonzero(counted)), total
        )
        if cells.kind == "unknown" or not np.any(counted):
            return replace(sketch, kind="unknown")
        if kind in ("category", "boolean"):
            codes, levels = cells.as_levels()
            counts = CategorySketch.from_levels(codes, levels, weight)
            order = levels if cells.declared else ()
            return replace(sketch, categories=counts, levels=order, declared=cells.declared)
        zone = cells.zone if kind == "datetime" else None
        numbers = cells.as_numbers(kind, zone)
        grid = numbers[counted] / (DAY if kind in TIMES else 1)
        return replace(
            sketch,
            numbers=NumberSketch.from_numbers(numbers, weight),
            zone=zone,
            rounded=cells.rounded,
            stepped=bool(np.all(grid == np.floor(grid))),
        )

    def __add__(self, other: ColumnSketch) -> ColumnSketch:
        sums: dict[str, Any] = {
            name: getattr(self, name) + getattr(other, name)
            for name in ("rows", "known_rows", "missing")
        }
        if "unknown" in (self.kind, other.kind):
            return replace(other if self.kind == "unknown" else self, **sums)
        kinds = frozenset({self.kind, other.kind})
        wider = [kind for both, kind in WIDER if kinds <= both]
        if len(kinds) > 1 and not wider:
            raise DomainError(
                f"column {self.name!r} holds {_plural(other.kind)} here and {_plural(self.kind)} "
                f"in other batches; give all the same type, or name it in categorical or numeric"
            )
        if self.zone != other.zone or self.levels != other.levels:
            what = "time zone" if self.zone != other.zone else "declared categories"
            raise DomainError(f"column {self.name!r} differs in {what} from other batches")
        if self.numbers is not None and other.numbers is not None:
            sums["numbers"] = self.numbers + other.numbers
        if self.categories is not None and other.categories is not None:
            sums["categories"] = self.categories + other.categories
        rounded, stepped = self.rounded or other.rounded, self.stepped and other.stepped
        widest = other if wider and other.kind == wider[0] else self
        return replace(widest, **sums, rounded=rounded, stepped=stepped)


def _plural(kind: str) -> str:
    return {"category": "categories"}.get(kind, f"{kind}s")


@dataclass(frozen=True, eq=False)
class TableSketch:
    """What a table holds, by column; add those of its chunks up."""

    source: str
    columns: tuple[ColumnSketch, ...]
    rows: int

    @classmethod
    def of(cls, table: Table, options: EncoderOptions, weight: Floats | None) -> TableSketch:
        """Summarise a table."""
        if table.source == "codes":
            raise DomainError("batches are tables with named columns, not arrays of integers")
        cells = (table.column(position) for position in range(len(table.names)))
        columns = tuple(ColumnSketch.of(one, options, weight) for one in cells)
        return cls(table.source, columns, table.n_rows)

    def __add__(self, other: TableSketch) -> TableSketch:
        names = {column.name: column for column in other.columns}
        mine = [column.name for column in self.columns]
        if set(mine) != set(names):
            odd = sorted(set(mine) ^ set(names))[0]
            there = "has a" if odd in names else "has no"
            raise DomainError(f"it {there} column {odd!r}, unlike other batches")
        columns = tuple(column + names[column.name] for column in self.columns)
        return TableSketch(self.source, columns, self.rows + other.rows)

    def errors(self) -> dict[str, float]:
        """Return, by column, the share of rows that its edges or counts may be off by."""
        out: dict[str, Any] = {}
        for column in self.columns:
            if column.numbers is not None:
                out[column.name] = column.numbers.rank_error
            elif column.categories is not None:
                total = sum(mass for _, mass in column.categories.counts.values())
                out[column.name] = column.categories.error / max(total, 1e-300)
        return out
