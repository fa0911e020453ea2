"""Hold encoded rows and how often each counts; equal rows are learned from once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.learn.information import edge_information, mutual_information
from expecta.learn.pair_counts import PairCounts

MAX_SHARE = 0.9  # rows are merged where that leaves at most this share of them


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows of values, -1 where unknown, with weights."""

    codes: Ints  # (rows, variables)
    weight: Floats  # (rows,)
    pairs: PairCounts | None = None  # of all rows, where these are a sample

    def __getitem__(self, rows: Ints) -> WeightedRows:
        return WeightedRows(self.codes[rows], self.weight[rows])

    def merged(self) -> WeightedRows:
        """Make equal rows one, with their weights added, and drop rows without weight."""
        return WeightedRows(*merge_rows(self.codes, self.weight))

    def mutual_information(self, cardinalities: Ints) -> Floats:
        """Return the mutual information of every pair of columns, of all rows."""
        if self.pairs is not None:
            return self.pairs.mutual_information()
        return mutual_information(self.codes, cardinalities, self.weight)

    def edge_information(self, groups: Sequence[Ints], *, pseudo_count: float) -> Floats:
        """Return that of all rows, corrected for chance, with values joined to groups."""
        if self.pairs is not None:
            return self.pairs.joined(groups).edge_information(pseudo_count)
        coarse = np.empty_like(self.codes)
        for variable, group in enumerate(groups):
            coarse[:, variable] = np.append(group, -1)[self.codes[:, variable]]
        cards = np.array([int(group.max()) + 1 for group in groups], np.int32)
        return edge_information(coarse, cards, self.weight, pseudo_count=pseudo_count)

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
