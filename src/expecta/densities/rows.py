"""Encoded rows and how often each counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from expecta.arrays import Floats, Ints
from expecta.errors import DomainError

__all__ = ["Rows", "weights_for"]

LEAST_SAVING = 0.9  # equal rows are merged where that leaves fewer than this share


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of values, -1 where unknown, with weights."""

    codes: Ints  # (rows, variables)
    weight: Floats  # (rows,)

    def __getitem__(self, rows: Ints) -> Rows:
        return Rows(self.codes[rows], self.weight[rows])

    def merged(self) -> Rows:
        """Make equal rows one, with their weights added, and drop rows without weight."""
        codes, weight = self.codes[self.weight > 0], self.weight[self.weight > 0]
        # Equal rows have equal fingerprints; that the reverse holds is checked, not hoped.
        salt = np.random.default_rng(0).integers(-(2**62), 2**62, codes.shape[1])
        with np.errstate(over="ignore"):
            fingerprint = codes.astype(np.int64) @ salt
        _, first, group = np.unique(fingerprint, return_index=True, return_inverse=True)
        if len(first) > LEAST_SAVING * len(codes):
            return Rows(codes, weight)
        order = np.argsort(first)  # rows keep the order of their first appearance
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        group = place[group.reshape(-1)]
        kept = codes[first[order]]
        if not np.array_equal(kept[group], codes):
            return Rows(codes, weight)
        return Rows(kept, np.bincount(group, weight).astype(np.float64))

    def value_counts(self, cardinalities: Ints) -> list[Floats]:
        """Count the known values of each column.  # (values,) each."""
        return [
            np.bincount(column + 1, self.weight, card + 1)[1:].astype(np.float64)
            for column, card in zip(self.codes.T, cardinalities.tolist(), strict=True)
        ]


def weights_for(given: npt.ArrayLike | None, rows: int) -> Floats:
    """Read sample weights; none is one each."""
    if given is None:
        return np.ones(rows)
    weight = np.asarray(given, np.float64)
    if weight.shape != (rows,) or not np.all(np.isfinite(weight) & (weight >= 0)):
        raise DomainError(f"sample_weight must be {rows} finite numbers of at least 0")
    return weight
