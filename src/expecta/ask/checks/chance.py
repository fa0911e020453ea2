"""Tell what differs beyond chance, when many things are compared at once."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from expecta.common.arrays import Bools, Floats, Ints

FALSE_DISCOVERIES = 0.05  # expected share, at most, of what is said to differ
MIN_P = 1e-300


def beyond_chance(p: Floats, share: float = FALSE_DISCOVERIES) -> Bools:
    """Return which differences are beyond chance, by their p-values; NaN is none.

    Benjamini and Hochberg: of those returned, a share of at most 5% is expected to be chance,
    and where nothing differs the probability that any is returned is at most 5%.

    >>> beyond_chance(np.array([0.001, 0.04, 0.3, np.nan])).tolist()
    [True, False, False, False]
    """
    beyond = np.zeros(len(p), np.bool_)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    passed = np.flatnonzero(p[order] <= share * np.arange(1, len(order) + 1) / max(len(order), 1))
    if len(passed):
        beyond[order[: passed[-1] + 1]] = True
    return beyond


def standard_errors(p: Floats) -> Floats:
    """Return how many standard errors a normal difference with this p-value is from zero.

    >>> standard_errors(np.array([1.0, 0.05])).round(2).tolist()
    [0.0, 1.96]
    """
    apart: Floats = -ndtri(np.maximum(p, MIN_P) / 2)
    return np.maximum(apart, 0.0)


def worst_first(what: str, size: Floats, apart: Floats, beyond: Bools) -> Ints:
    """Return indices, the worst first: beyond chance by size and the rest by errors, or all."""
    if what not in ("size", "errors"):
        raise ValueError(f"sort by 'size' or 'errors', not {what!r:.40}")
    far = np.nan_to_num(apart, nan=-1.0)
    key = np.where(beyond, np.abs(size), 0.0) if what == "size" else far
    return np.lexsort((-far, -key, ~beyond if what == "size" else np.zeros(len(far))))
