"""Where to cut a column of numbers.

A column is cut at inner edges ``e_0 < e_1 < ...``: value ``j`` of the variable stands for
``e_(j-1) <= x < e_j``, and the first and last bins have no outer end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Bools, Floats
from expecta.tables.histogram import adaptive_cuts

__all__ = ["METHODS", "Sample", "cut"]

METHODS = ("quantile", "width", "adaptive")
FALLBACK = 10  # equal-width bins where the adaptive rule finds no structure


@dataclass(frozen=True)
class Sample:
    """Distinct finite numbers in order, and the weight of each."""

    values: Floats
    mass: Floats

    @classmethod
    def of(cls, numbers: Floats, weight: Floats | None) -> Sample:
        """Gather what a column holds; what is missing, infinite or has no weight is left out."""
        kept = np.isfinite(numbers) if weight is None else np.isfinite(numbers) & (weight > 0)
        found = numbers[kept] + 0.0  # minus zero is zero
        if weight is None:
            values, counts = np.unique(found, return_counts=True)
            return cls(values, np.asarray(counts, np.float64))
        values, inverse = np.unique(found, return_inverse=True)
        return cls(values, np.asarray(np.bincount(inverse, weight[kept], len(values)), np.float64))


def cut(
    sample: Sample,
    method: str | npt.ArrayLike,
    most: int,
    thresholds: Sequence[float] | Floats = (),
) -> Floats:
    """Return the inner edges for a column, those for the thresholds among them.

    ``x <= t`` and ``x > t`` never share a bin for a threshold t: its edge is the next
    float after t. An edge of our own that tells no more training values apart than
    some threshold does is left out.
    """
    if isinstance(method, str):
        edges = {"quantile": _quantile, "width": _width, "adaptive": _adaptive}[method](
            sample, most
        )
    else:
        edges = np.asarray(method, np.float64)[1:-1]
    if not len(thresholds):
        return edges
    wanted = np.nextafter(np.unique(np.asarray(thresholds, np.float64)), np.inf)
    wanted = wanted[np.isfinite(wanted)]
    if isinstance(method, str):
        place = np.searchsorted(sample.values, edges)
        edges = edges[~np.isin(place, np.searchsorted(sample.values, wanted))]
    return np.union1d(edges, wanted)


def _between(sample: Sample, last: Bools) -> Floats:
    """Return an edge after every value that is the last of its bin."""
    end = np.flatnonzero(last[:-1])
    low, high = sample.values[end], sample.values[end + 1]
    middle = low / 2 + high / 2
    return np.where(middle > low, middle, high)


def _quantile(sample: Sample, most: int) -> Floats:
    """Cut into bins of about equal weight.

    A value that weighs as much as a bin gets one of its own, and the rest share what bins
    are left; so no bin is empty, and a heavy value does not use up the resolution.
    """
    size = len(sample.values)
    if size <= most:
        return _between(sample, np.ones(size, np.bool_))
    if most == 1:
        return np.zeros(0)
    heavy = np.zeros(size, np.bool_)
    while True:
        rest = np.where(heavy, 0.0, sample.mass)
        left = most - int(heavy.sum())
        share = rest.sum() / left
        fresh = ~heavy & (sample.mass > share)
        if not np.any(fresh):
            break
        heavy |= fresh
    slot = np.floor((np.cumsum(rest) - rest / 2) / share)
    last = np.append(heavy[1:] | heavy[:-1] | (slot[1:] != slot[:-1]), True)
    ends = np.flatnonzero(last)
    starts = np.append(0, ends[:-1] + 1)
    weight = np.add.reduceat(sample.mass, starts).tolist()
    alone = heavy[starts].tolist()
    kept = ends.tolist()
    while len(kept) > most:  # heavy values split bins in two: join the lightest neighbours
        cost = [(alone[i] or alone[i + 1], weight[i] + weight[i + 1]) for i in range(len(kept) - 1)]
        i = cost.index(min(cost))
        weight[i : i + 2] = [weight[i] + weight[i + 1]]
        alone[i : i + 2] = [alone[i] or alone[i + 1]]
        del kept[i]
    final = np.zeros(size, np.bool_)
    final[kept] = True
    return _between(sample, final)


def _width(sample: Sample, most: int) -> Floats:
    """Cut the range into bins of equal width; some may hold nothing."""
    low, high = sample.values[0], sample.values[-1]
    part = np.arange(1, most) / most
    edges: Floats = np.unique(low * (1 - part) + high * part)
    inner: Floats = edges[(edges > low) & (edges <= high)]
    return inner


def _adaptive(sample: Sample, most: int) -> Floats:
    """Cut where the penalised likelihood says; ten equal bins where it says nothing."""
    cuts = adaptive_cuts(sample.values, sample.mass, most)
    return _width(sample, min(FALLBACK, most)) if cuts is None else cuts
