"""Encode columns of categories and Booleans."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.common.text import suggestion
from expecta.tables.cells import Cells
from expecta.tables.column import Column
from expecta.tables.scalars import Scalar, canonical, key, number

IDENTIFIER_SHARE = 0.9  # share of distinct values from which a column names rows


@dataclass(frozen=True, eq=False)
class CategoryColumn(Column):
    """A column whose values are categories, in their declared or natural order."""

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A readable text for every value; that for the others is no category's."""
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

    def _find(self, level: Scalar) -> int | None:
        if self.kind == "boolean" and not isinstance(level, bool) and level in (0, 1):
            level = bool(level)
        return self._code_of.get(key(level))

    def has(self, value: Any) -> bool:
        """Whether a value is one of the categories."""
        return self._find(canonical(value)) is not None

    def encode(self, cells: Cells, *, unseen: str = "unknown") -> Ints:
        """Return the category of every cell; one never seen is "other" if that is a value."""
        codes, levels = cells.as_levels()
        rest = len(self.values) if self.other else -1
        known = [self._find(level) for level in levels]
        if unseen == "error" and rest < 0 and None in known:
            used = set(np.unique(codes).tolist())
            for number_, level in enumerate(levels):
                if known[number_] is None and number_ in used:
                    raise DomainError(
                        f"column {self.name!r} has the value {level!r}, which training did not; "
                        f"use unseen='unknown' to treat it as missing; "
                        + suggestion(level, self.labels, "known are")
                    )
        table = np.array([rest if code is None else code for code in known] + [-1], np.int32)
        return table[codes]

    def decode(self, codes: Ints, rng: np.random.Generator | None) -> Any:
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
        code = self._find(canonical(value))
        if code is None and isinstance(value, str) and value in self.labels:
            code = self.labels.index(value)
        if code is None:
            rest = f" of its own; it may be one of {self.labels[-1]!r}" if self.other else ""
            raise DomainError(
                f"column {self.name!r} has no value {value!r}{rest}; "
                + suggestion(value, self.labels, "it takes")
            )
        return code


def fit_categories(
    cells: Cells, weight: Floats | None, max_categories: int, notes: list[str]
) -> CategoryColumn:
    """Learn a column's categories: the most frequent, and one value for all further ones."""
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
    rows = int(np.sum(known if weight is None else known & (weight > 0)))
    used = int(np.sum(counts > 0))
    other = len(levels) > max_categories
    if other:
        if used > max_categories and used > IDENTIFIER_SHARE * rows:
            kept = np.zeros(0, np.int64)
            notes.append(
                f"column {name!r} has a distinct value in nearly every row, like an identifier; "
                f"it is one value 'other' and carries no information"
            )
        else:
            kept = np.sort(np.argsort(-counts, kind="stable")[: max_categories - 1])
            notes.append(
                f"column {name!r} has {len(levels)} categories; the {max_categories - 1} most "
                f"frequent are kept and the rest are one value 'other'"
            )
        rest = counts.sum() - counts[kept].sum()
        levels = tuple(levels[i] for i in kept.tolist())
        counts = np.append(counts[kept], max(rest, 0.0))
    elif used == 1:
        notes.append(f"column {name!r} has the same value in every row")
    elif cells.declared and used < len(levels):
        notes.append(
            f"column {name!r} declares {len(levels) - used} categories that do not occur in it"
        )
    return CategoryColumn(name, kind, cells.dtype, len(counts), counts, levels, other)
