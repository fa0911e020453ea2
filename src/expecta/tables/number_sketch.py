"""Summarise numbers by few buckets: the same however the rows are divided over chunks.

The bits of floats, read as integers, are in the order of the floats: a bucket is all floats that
have the same leading bits. A sketch leaves off as few trailing bits as it must to have at most
`MAX_BUCKETS` buckets that are not empty. No part of the rows needs more bits left off than all of
them: so whatever is merged in whatever order, the buckets and their weights come out the same. Up
to `MAX_BUCKETS` distinct numbers are all kept apart, and nothing is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.tables.bins import Sample

MAX_BUCKETS = 1 << 16
FIELDS = ("keys", "mass", "mean", "low", "high")


@dataclass(frozen=True, eq=False)
class NumberSketch:
    """Buckets of numbers, in order: their weight, mean, least and largest number.

    ``shift`` is how many bits are left off. The share of the weight below a number is known up to
    the bucket that it falls in: `rank_error` says how much that is at most.
    """

    shift: int
    keys: Ints  # the leading bits, which increase
    mass: Floats
    mean: Floats
    low: Floats
    high: Floats

    @classmethod
    def from_numbers(cls, numbers: Floats, weight: Floats | None = None) -> NumberSketch:
        """Summarise numbers; what is missing, infinite or has no weight is left out."""
        sample = Sample.from_numbers(numbers, weight)
        values = sample.values
        return cls(0, _ordered_bits(values), sample.mass, values, values, values)._shrunk()

    def __add__(self, other: NumberSketch) -> NumberSketch:
        shift = max(self.shift, other.shift)
        parts = self._coarser(shift), other._coarser(shift)
        arrays = [np.concatenate([getattr(part, name) for part in parts]) for name in FIELDS]
        order = np.argsort(arrays[0], kind="stable")
        joined = NumberSketch(shift, *(array[order] for array in arrays))
        return joined._coarser(shift)._shrunk()

    def _shrunk(self) -> NumberSketch:
        """Leave off as few more bits as make the buckets few enough."""
        if len(self.keys) <= MAX_BUCKETS:
            return self
        low, high = self.shift, 64  # too few, and enough
        while high - low > 1:
            middle = (low + high) // 2
            few = _n_distinct(self.keys, middle - self.shift) <= MAX_BUCKETS
            low, high = (low, middle) if few else (middle, high)
        return self._coarser(high)

    def _coarser(self, shift: int) -> NumberSketch:
        """Join the buckets that agree in the bits that are left."""
        if not len(self.keys):
            return NumberSketch(shift, *(getattr(self, n) for n in FIELDS))
        keys = self.keys >> min(shift - self.shift, 63)
        first = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
        if len(first) == len(keys):
            return NumberSketch(shift, keys, self.mass, self.mean, self.low, self.high)
        mass = np.add.reduceat(self.mass, first)
        share = self.mass / np.repeat(mass, np.diff(np.append(first, len(keys))))
        low, high = np.minimum.reduceat(self.low, first), np.maximum.reduceat(self.high, first)
        mean = np.clip(np.add.reduceat(share * self.mean, first), low, high)
        return NumberSketch(shift, keys[first], mass, mean, low, high)

    @property
    def rank_error(self) -> float:
        """The largest share of the weight in a bucket of several numbers: 0 where none has."""
        several = self.low < self.high
        return float(np.max(self.mass[several], initial=0.0) / max(self.mass.sum(), 1e-300))

    @property
    def ends(self) -> Sample:
        """The ends of all buckets, with half of the weight each: what edges are chosen by."""
        return self._sample(0.5 * self.mass)

    @property
    def moments(self) -> Sample:
        """The ends of all buckets, weighted so that means are those of the numbers."""
        width = np.where(self.high > self.low, self.high / 2 - self.low / 2, 1.0)
        upper = (self.mean / 2 - self.low / 2) / width
        return self._sample(self.mass * np.clip(upper, 0.0, 1.0))

    def _sample(self, upper: Floats) -> Sample:
        """Return the ends as a sample; ``upper`` is the weight of the upper ones."""
        several = self.low < self.high
        values = np.stack([self.low, self.high], axis=1)
        lower = np.where(several, self.mass - upper, self.mass)
        mass = np.stack([lower, upper], axis=1)
        kept = np.stack([np.ones_like(several), several], axis=1)
        return Sample(values[kept], mass[kept])


def _ordered_bits(values: Floats) -> Ints:
    """Return integers that are in the order of the floats; minus zero is zero already."""
    bits = np.ascontiguousarray(values, np.float64).view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))


def _n_distinct(keys: Ints, shift: int) -> int:
    return int(np.count_nonzero(np.diff(keys >> min(shift, 63)))) + 1
