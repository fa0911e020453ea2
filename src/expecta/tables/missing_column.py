"""Encode columns in which "missing" is a value of its own."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.tables.cells import Cells
from expecta.tables.column import Column

__all__ = ["MissingIsValueColumn"]


@dataclass(frozen=True, eq=False)
class MissingIsValueColumn(Column):
    """A column whose last value is that the cell is missing; the others are those of ``known``."""

    known: Column = None  # type: ignore[assignment]

    @classmethod
    def from_known(cls, known: Column, weight: float) -> MissingIsValueColumn:
        """Add "missing" to a column's values; ``weight`` is that of missing training cells."""
        attributes = {field.name: getattr(known, field.name) for field in fields(Column)}
        attributes["cardinality"] = known.cardinality + 1
        attributes["counts"] = np.append(known.counts, weight)
        return cls(**attributes, known=known)

    @property
    def missing(self) -> int:
        """The value of a missing cell."""
        return self.known.cardinality

    @property
    def plain(self) -> Column:
        """The column of what is not missing."""
        return self.known

    @property
    def ordered(self) -> bool:
        """Whether what is not missing has an order."""
        return self.known.ordered

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A readable text for every value; that for the missing is no other's."""
        text, known = "missing", self.known.labels
        while text in known:
            text += " value"
        return (*known, text)

    def encode(self, cells: Cells, *, unseen: str = "unknown") -> Ints:
        """Return the value of every cell; only a category that training did not have is -1."""
        codes = self.known.encode(cells, unseen=unseen)
        codes[~cells.known] = self.missing
        return codes

    def decode(self, codes: Ints, rng: np.random.Generator | None) -> Any:
        """Return cells for values: NaN or None where it is missing or unknown."""
        return self.known.decode(np.where(codes == self.missing, -1, codes), rng)

    def numeric(self) -> Floats:
        """Refuse: what is missing is no number."""
        raise DomainError(f"column {self.name!r} may be missing, which is no number")

    def code(self, value: Any) -> int:
        """Return the code of a value that the user gives, such as "missing"."""
        if isinstance(value, str) and value == self.labels[-1]:
            return self.missing
        return self.known.code(value)

    def between(self, low: Any, high: Any, *, closed: str = "both") -> Floats:
        """Return the share of each value between two ends: none of the missing."""
        return np.append(self.known.between(low, high, closed=closed), 0.0)
