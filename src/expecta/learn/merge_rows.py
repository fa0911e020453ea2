"""Rows that are equal are learned from once, with their weights added."""

from __future__ import annotations

import numpy as np

from expecta.common.arrays import Floats, Ints

__all__ = ["merge_rows"]

LEAST_SAVING = 0.9  # rows are merged where that leaves fewer than this share


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
    if len(first) > LEAST_SAVING * len(codes):
        return codes, weight
    order = np.argsort(first)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    group = place[group.reshape(-1)]
    kept = codes[first[order]]
    if not np.array_equal(kept[group], codes):
        return codes, weight
    return kept, np.bincount(group, weight).astype(np.float64)
