"""Count categories in bounded memory, with a stated error where they are very many."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.tables.scalars import Scalar, key

MAX_TRACKED = 1 << 16  # categories of a column that are counted


@dataclass(frozen=True, eq=False)
class CategorySketch:
    """The weight of each category.

    Exact for up to `MAX_TRACKED` categories, however the rows are divided over chunks. Of more the
    lightest are left out (Misra and Gries 1982, merged as Agarwal et al. 2012 do): then each weight
    is too small by at most ``error``, which is at most the weight of all rows over `MAX_TRACKED`.
    """

    counts: dict[tuple[str, Scalar], tuple[Scalar, float]] = field(default_factory=dict)
    error: float = 0.0
    more: bool = False  # categories were left out

    @classmethod
    def from_levels(
        cls, codes: Ints, levels: tuple[Scalar, ...], weight: Floats | None
    ) -> CategorySketch:
        """Count the categories of cells, by their numbers; -1 is missing."""
        known = codes >= 0
        masses = np.bincount(codes[known], None if weight is None else weight[known], len(levels))
        pairs = zip(levels, masses.tolist(), strict=True)
        return cls({key(level): (level, float(m)) for level, m in pairs if m > 0})._shrunk()

    def __add__(self, other: CategorySketch) -> CategorySketch:
        counts = dict(self.counts)
        for name, (level, mass) in other.counts.items():
            counts[name] = level, mass + (counts[name][1] if name in counts else 0.0)
        error, more = self.error + other.error, self.more or other.more
        return CategorySketch(counts, error, more)._shrunk()

    def _shrunk(self) -> CategorySketch:
        if len(self.counts) <= MAX_TRACKED:
            return self
        masses = np.array([mass for _, mass in self.counts.values()])
        cut = float(np.partition(masses, -(MAX_TRACKED + 1))[-(MAX_TRACKED + 1)])
        kept = {n: (level, m - cut) for n, (level, m) in self.counts.items() if m > cut}
        return CategorySketch(kept, self.error + cut, True)
