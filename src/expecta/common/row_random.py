"""Random numbers that depend on a row and the seed alone, whatever else is drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Floats, Ints

Words = npt.NDArray[np.uint64]


def row_keys(codes: Ints, seed: int) -> Words:
    """Return a number of each row of evidence that looks random.  # (rows,)."""
    keys = np.full(len(codes), seed % (1 << 64), np.uint64)
    for column in codes.T:
        keys = scrambled(keys + column.astype(np.int64).view(np.uint64))
    return keys


def scrambled(x: Words) -> Words:
    """Scramble the bits of numbers: the generator SplitMix64 at these states."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@dataclass
class RowRandom:
    """Random numbers for each of several draws, by its key: other ones at every call.

    It has what is used of `numpy.random.Generator`, with a number for each draw.
    """

    keys: Words  # of the draws
    used: int = 0  # numbers of each draw, so far

    def uniform(self, n: int, draws: slice = slice(None)) -> Floats:
        """Return n numbers in [0, 1) of some draws, and do not use them up.  # (draws, n)."""
        which = scrambled(np.arange(self.used, self.used + n, dtype=np.uint64))
        bits = scrambled(self.keys[draws, None] ^ which) >> np.uint64(11)
        return np.asarray(bits * 2.0**-53)

    def random(self, size: int) -> Floats:
        """Return a number in [0, 1) for each draw."""
        assert size == len(self.keys)
        numbers = self.uniform(1)[:, 0]
        self.used += 1
        return numbers

    def integers(self, low: int, high: Ints) -> Ints:
        """Return an integer from low to below high for each draw."""
        return low + np.floor(self.random(len(high)) * (high - low)).astype(np.int64)
