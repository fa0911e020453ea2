"""Encode columns of categories and Booleans."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.common.row_random import RowRandom
from expecta.common.text import suggestion
from expecta.tables.cells import Cells
from expecta.tables.column import Column
from expecta.tables.column_notes import ColumnNotes
from expecta.tables.scalars import Scalar, canonical, key, number

IDENTIFIER_SHARE = 0.9  # share of distinct values from which a column names rows
DEFAULT_CATEGORIES = 64, 256  # smallest and largest default of max_categories
ROWS_PER_CATEGORY = 25  # rows for each category beyond the smallest default
MAX_GROUPED = 10_000  # names of rare categories that are kept


@dataclass(frozen=True, eq=False)
class CategoryColumn(Column):
    """A column whose values are categories, in their declared or natural order."""

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A readable text for every value; that for the others is not a category's."""
        texts = [str(value) for value in self.values]
        times = Counter(texts)
        labels = [
            text if times[text] == 1 else repr(value)
            for text, value in zip(texts, self.values, strict=True)
        ]
        if self.other:
            rest = "other"
            while rest in labels or rest in times:
                rest += " values"
            labels.append(rest)
        return tuple(labels)

    @cached_property
    def _code_of(self) -> dict[tuple[str, Scalar], int]:
        return {key(value): code for code, value in enumerate(self.values)}

    def find(self, level: Scalar) -> int | None:
        """Return the code of a category, in its canonical form; None where there is none."""
        if self.kind == "boolean" and not isinstance(level, bool) and level in (0, 1):
            level = bool(level)
        code = self._code_of.get(key(level))
        if code is None and isinstance(level, int | float | str):
            code = self._code_of_text.get(_code_text(level))
        return code

    @cached_property
    def _code_of_text(self) -> dict[str, int]:
        """Codes by text, where categories are of one type: 501, 501.0 and "501" are one category.

        A table from one file has codes as numbers, the same from another as texts.
        """
        if len({key(value)[0] for value in self.values}) != 1:
            return {}
        return {_code_text(value): code for code, value in enumerate(self.values)}

    @cached_property
    def _grouped(self) -> frozenset[tuple[str, Scalar]]:
        return frozenset(map(key, self.grouped))

    def is_grouped(self, value: Any) -> bool:
        """Whether a value is a category of training that has no code of its own."""
        return key(canonical(value)) in self._grouped

    def has(self, value: Any) -> bool:
        """Whether a value is one of the categories."""
        return self.find(canonical(value)) is not None

    def encode(self, cells: Cells, *, unseen: str = "unknown") -> Ints:
        """Return the category of every cell; one never seen is "other" if that is a value."""
        codes, levels = cells.as_levels()
        rest = len(self.values) if self.other else -1
        known = [self.find(level) for level in levels]
        if unseen == "error" and rest < 0 and None in known:
            used = set(np.unique(codes).tolist())
            for number_, level in enumerate(levels):
                if known[number_] is None and number_ in used:
                    raise DomainError(
                        f"column {self.name!r} has the value {level!r}, which is not in the "
                        f"training data; use unseen='unknown' to treat it as missing; "
                        + suggestion(level, self.labels, "known are")
                    )
        table = np.array([rest if code is None else code for code in known] + [-1], np.int32)
        return table[codes]

    def decode(self, codes: Ints, rng: np.random.Generator | RowRandom | None) -> Any:
        """Return the categories, None where unknown."""
        rest = [self.labels[-1]] if self.other else []
        table = np.empty(self.cardinality + 1, object)
        table[:] = [*self.values, *rest, None]
        return table[codes]

    def numeric(self) -> Floats:
        """Return the number that each value is, where all of them are numbers."""
        if self.other or not all(isinstance(value, int | float) for value in self.values):
            return super().numeric()
        return np.array([number(value, "number") for value in self.values])

    def code(self, value: Any) -> int:
        """Return the value for a category, or for the text that the labels show for it."""
        code = self.find(canonical(value))
        if code is None and isinstance(value, str) and value in self.labels:
            code = self.labels.index(value)
        if code is None and self.is_grouped(value):
            code = len(self.values)
        if code is None:
            known = [*self.labels, *map(str, self.grouped)]
            raise DomainError(
                f"column {self.name!r} has no value {value!r}; "
                + suggestion(value, known, "it takes")
            )
        return code


def _code_text(value: Scalar) -> str:
    """Write a category as a code: whole numbers without a decimal point."""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else str(value)  # type: ignore[arg-type]


def fit_categories(
    cells: Cells,
    weight: Floats | None,
    max_categories: int | None,
    notes: ColumnNotes,
    rows: int | None = None,
) -> CategoryColumn:
    """Learn a column's categories: the most frequent, and one value for all further ones.

    ``rows`` says how many rows the cells are of, where they are not one of each.
    """
    codes, levels = cells.as_levels()
    known = codes >= 0
    counts = np.bincount(
        codes[known], None if weight is None else weight[known], len(levels)
    ).astype(np.float64)
    kind = "boolean" if cells.kind == "boolean" else "category"
    name = cells.name
    if kind == "category" and not cells.declared:
        seen = counts > 0
        levels = tuple(level for level, used in zip(levels, seen.tolist(), strict=True) if used)
        counts = counts[seen]
    if rows is None:
        rows = int(np.sum(known if weight is None else known & (weight > 0)))
    used = int(np.sum(counts > 0))
    if max_categories is None:
        max_categories = int(np.clip(rows // ROWS_PER_CATEGORY, *DEFAULT_CATEGORIES))
    other = len(levels) > max_categories
    grouped: tuple[Scalar, ...] = ()
    if other:
        if used > max_categories and used > IDENTIFIER_SHARE * rows:
            kept = np.zeros(0, np.int64)
            notes.add("identifier", name)
        else:
            kept = np.sort(np.argsort(-counts, kind="stable")[: max_categories - 1])
            if not notes.has(name):  # nor is it perhaps no column of categories
                notes.add("many", name, f"{len(levels)}, {max_categories - 1}")
            order = np.argsort(-counts, kind="stable")[max_categories - 1 :]
            grouped = tuple(levels[i] for i in order[:MAX_GROUPED].tolist() if counts[i] > 0)
        rest = counts.sum() - counts[kept].sum()
        levels = tuple(levels[i] for i in kept.tolist())
        counts = np.append(counts[kept], max(rest, 0.0))
    elif used == 1:
        notes.add("constant", name)
    elif cells.declared and used < len(levels):
        notes.add("declared", name, str(len(levels) - used))
    return CategoryColumn(name, kind, cells.dtype, len(counts), counts, levels, other, grouped)
