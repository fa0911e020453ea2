"""Count the values of every pair of columns; counts of chunks add up to those of all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.kernels import kernel

MAX_CELLS = 1 << 24  # of all pairs together: 128 megabytes


@dataclass(frozen=True, eq=False)
class PairCounts:
    """How often each two values of two columns, and each value of one, occur together.

    Attributes
    ----------
    cardinalities
        Number of values of each column.
    single
        Counts of the values, one column after the other.
    pairs
        Tables of the pairs (0, 1), (0, 2), ..., one after the other, by rows; over the rows that
        know both.
    """

    cardinalities: Ints
    single: Floats
    pairs: Floats

    @staticmethod
    def n_cells(cardinalities: Ints) -> int:
        """Return how many cells the tables of all pairs have."""
        cards = cardinalities.astype(np.int64)
        return int((cards.sum() ** 2 - (cards**2).sum()) // 2)

    @classmethod
    def of(cls, codes: Ints, cardinalities: Ints, weight: Floats) -> PairCounts:
        """Count rows of values, -1 where unknown. Cost: rows x variables² / 2 steps."""
        cards = cardinalities.astype(np.int64)
        columns = np.ascontiguousarray(codes.T, np.int32)
        single = [
            np.bincount(column + 1, weight, card + 1)[1:]
            for column, card in zip(columns, cards.tolist(), strict=True)
        ]
        pairs = np.zeros(cls.n_cells(cards))
        _count_all_pairs(columns, cards, np.asarray(weight, np.float64), pairs)
        return cls(cards, np.concatenate(single).astype(np.float64), pairs)

    def __add__(self, other: PairCounts) -> PairCounts:
        return PairCounts(self.cardinalities, self.single + other.single, self.pairs + other.pairs)

    @property
    def tables(self) -> dict[tuple[int, int], Floats]:
        """The table of each pair."""
        out, start, cards = {}, 0, self.cardinalities.tolist()
        for i, j in combinations(range(len(cards)), 2):
            size = cards[i] * cards[j]
            out[i, j] = self.pairs[start : start + size].reshape(cards[i], cards[j])
            start += size
        return out

    @property
    def values(self) -> list[Floats]:
        """The counts of each column's values."""
        return np.split(self.single, np.cumsum(self.cardinalities)[:-1])

    def joined(self, groups: Sequence[Ints]) -> PairCounts:
        """Join values to groups, given for each column the group of every value."""
        hot = [np.eye(int(group.max()) + 1)[group] for group in groups]
        pairs = [hot[i].T @ table @ hot[j] for (i, j), table in self.tables.items()]
        single = [counts @ one for counts, one in zip(self.values, hot, strict=True)]
        return PairCounts(
            np.array([one.shape[1] for one in hot], np.int64),
            np.concatenate(single),
            np.concatenate([np.zeros(0), *(table.ravel() for table in pairs)]),
        )

    def mutual_information(self, pseudo_count: float = 1.0) -> Floats:
        """Return the information of every pair; see `expecta.learn.information`."""
        n = len(self.cardinalities)
        out = np.zeros((n, n))
        for (i, j), counts in self.tables.items():
            joint = counts + pseudo_count / counts.size
            total = float(joint.sum())
            if total > 0:
                parts = _x_log_x(joint), _x_log_x(joint.sum(axis=1)), _x_log_x(joint.sum(axis=0))
                both, first, second = (float(part.sum()) for part in parts)
                out[i, j] = out[j, i] = max(0.0, (both - first - second) / total + np.log(total))
        return out

    def edge_information(self, pseudo_count: float = 0.0) -> Floats:
        """Return the information of every pair, corrected for chance."""
        out = self.mutual_information(pseudo_count)
        free = np.array([max(np.count_nonzero(counts) - 1.0, 0.0) for counts in self.values])
        for (i, j), counts in self.tables.items():
            out[i, j] -= free[i] * free[j] / (2.0 * max(float(counts.sum()), 1.0))
            out[j, i] = out[i, j]
        return out


def _x_log_x(x: Floats) -> Floats:
    return np.asarray(x * np.log(np.where(x > 0, x, 1.0)))


@kernel
def _count_all_pairs(columns: Ints, cards: Ints, weight: Floats, out: Floats) -> None:
    """Add rows to the tables of all pairs."""
    start = 0
    for i in range(len(columns)):
        for j in range(i + 1, len(columns)):
            x, y, b = columns[i], columns[j], cards[j]
            for r in range(len(weight)):
                if x[r] >= 0 and y[r] >= 0:
                    out[start + x[r] * b + y[r]] += weight[r]
            start += cards[i] * b
