"""Encoded rows and how often each counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.learn.merge_rows import merge_rows

__all__ = ["Rows"]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of values, -1 where unknown, with weights."""

    codes: Ints  # (rows, variables)
    weight: Floats  # (rows,)

    def __getitem__(self, rows: Ints) -> Rows:
        return Rows(self.codes[rows], self.weight[rows])

    def merged(self) -> Rows:
        """Make equal rows one, with their weights added, and drop rows without weight."""
        return Rows(*merge_rows(self.codes, self.weight))

    def value_counts(self, cardinalities: Ints) -> list[Floats]:
        """Count the known values of each column.  # (values,) each."""
        return [
            np.bincount(column + 1, self.weight, card + 1)[1:].astype(np.float64)
            for column, card in zip(self.codes.T, cardinalities.tolist(), strict=True)
        ]
