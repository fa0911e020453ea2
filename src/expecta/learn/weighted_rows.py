"""Hold encoded rows and how often each counts; equal rows are learned from once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from expecta.common.arrays import Floats, Ints

MAX_SHARE = 0.9  # rows are merged where that leaves at most this share of them


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows of values, -1 where unknown, with weights."""

    codes: Ints  # (rows, variables)
    weight: Floats  # (rows,)

    def __getitem__(self, rows: Ints) -> WeightedRows:
        return WeightedRows(self.codes[rows], self.weight[rows])

    def merged(self) -> WeightedRows:
        """Make equal rows one, with their weights added, and drop rows without weight."""
        return WeightedRows(*merge_rows(self.codes, self.weight))

    def value_counts(self, cardinalities: Ints) -> list[Floats]:
        """Count the known values of each column.  # (values,) each."""
        return [
            np.bincount(column + 1, self.weight, card + 1)[1:].astype(np.float64)
            for column, card in zip(self.codes.T, cardinalities.tolist(), strict=True)
        ]


def merge_rows(codes: Ints, weight: Floats) -> tuple[Ints, Floats]:
    """Make equal rows one, where that saves much, and drop rows without weight.

    Rows stay in the order of their first appearance. Cost: rows x variables.
    """
    codes, weight = codes[weight > 0], weight[weight > 0]
    # Equal rows have equal fingerprints; that the reverse holds is checked, not hoped.
    salt = np.random.default_rng(0).integers(-(2**62), 2**62, codes.shape[1])
    with np.errstate(over="ignore"):
        fingerprint = codes.astype(np.int64) @ salt
    _, first, group = np.unique(fingerprint, return_index=True, return_inverse=True)
    if len(first) > MAX_SHARE * len(codes):
        return codes, weight
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    group = rank[group.reshape(-1)]
    distinct = codes[first[order]]
    if not np.array_equal(distinct[group], codes):
        return codes, weight
    return distinct, np.bincount(group, weight).astype(np.float64)
