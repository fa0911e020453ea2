"""Hold the rows that a density is checked against: codes, numbers and weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from expecta.ask.checks.chance import beyond_chance
from expecta.common.arrays import Bools, Floats, Ints
from expecta.densities.density import Density
from expecta.tables import Encoder
from expecta.tables.estimator_inputs import read_rows, read_weights
from expecta.tables.table import find_columns
from expecta.tables.training_rows import TrainingRows

FEW_UNSEEN = 0.01  # of the known cells of a column: values that training did not have


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """Rows as a density's encoder reads them.

    Attributes
    ----------
    codes
        Values, -1 where unknown.  # (rows, variables)
    numbers
        Of columns of numbers and times what the cells hold, NaN where unknown; of others None.
    weight
        How much each row counts.  # (rows,)
    known
        Whether each cell has a value, be it one that training did not have.  # (rows, variables)
    """

    codes: Ints
    numbers: tuple[Floats | None, ...]
    weight: Floats
    known: Bools

    @classmethod
    def read(cls, X: Any, encoder: Encoder, sample_weight: npt.ArrayLike | None) -> CheckedRows:
        """Read a table; rows without weight are left out."""
        table = read_rows(X, encoder, "the density")
        weight = read_weights(sample_weight, table.n_rows)
        rows = TrainingRows.from_table(table, encoder, None, weight, "")
        codes = encoder.codes(table)
        known = [table.column(position).known for position in find_columns(table, encoder)]
        return cls._of(codes, rows, weight, np.column_stack(known))

    @classmethod
    def of_training(cls, rows: TrainingRows, encoder: Encoder) -> CheckedRows:
        """Take the rows that an estimator keeps."""
        pairs = enumerate(encoder.columns_)
        codes = np.column_stack([rows.codes(column, variable) for variable, column in pairs])
        return cls._of(codes, rows, rows.weight, codes >= 0)  # what was unseen is not kept

    @classmethod
    def _of(cls, codes: Ints, rows: TrainingRows, weight: Floats, known: Bools) -> CheckedRows:
        numbers = tuple(c if c.dtype == np.float64 else None for c in rows.columns)
        return cls(codes, numbers, weight, known).where(weight > 0)

    def __len__(self) -> int:
        return len(self.weight)

    def where(self, which: Bools | Ints) -> CheckedRows:
        """Return some of the rows."""
        numbers = tuple(None if each is None else each[which] for each in self.numbers)
        return CheckedRows(self.codes[which], numbers, self.weight[which], self.known[which])

    def sample(self, n: int) -> CheckedRows:
        """Return so many rows at random, always the same; all if there are no more."""
        if len(self) <= n:
            return self
        return self.where(np.sort(np.random.default_rng(0).choice(len(self), n, replace=False)))

    @cached_property
    def size(self) -> float:
        """How many rows of equal weight tell as much (Kish)."""
        squares = float(self.weight @ self.weight)
        return float(self.weight.sum()) ** 2 / squares if squares else 0.0

    @property
    def per_weight(self) -> float:
        """How many rows of equal weight one unit of weight is worth."""
        total = float(self.weight.sum())
        return self.size / total if total else 0.0

    def unseen_shares(self) -> tuple[Floats, Bools]:
        """Return the share of each column's known cells whose values training did not have.

        And whether that is more than 1% beyond chance.  # (variables,) each
        """
        unseen = self.known & (self.codes < 0)
        known, count = (self.per_weight * (self.weight @ cells) for cells in (self.known, unseen))
        p = np.ones(len(count))
        some = count > 0
        rest = np.maximum(known - count, 0.0)
        p[some] = betainc(count[some], rest[some] + 1.0, FEW_UNSEEN)  # binomial: so many or more
        return count / np.where(known > 0, known, 1.0), beyond_chance(p)

    def are_training_rows(self, encoder: Encoder) -> bool:
        """Whether every value of every column is as frequent as in training.

        Rows learned from are recognised by this, and other rows hardly ever agree.
        """
        if not len(self):
            return False
        return all(
            np.allclose(np.bincount(code + 1, self.weight, column.cardinality + 1)[1:], counts)
            for code, column, counts in (
                (self.codes[:, v], column, column.counts)
                for v, column in enumerate(encoder.columns_)
                if column.kind != "unknown"
            )
        )


def noise_ratio(rows: CheckedRows, density: Density, in_sample: bool) -> float:
    """Return by how much chance in the training rows adds to the variance of a difference.

    What a density learned from N rows has a variance of its own, as M rows to check it have: that
    of the difference is 1 + M / N times that of the rows. Rows learned from are the same rows.
    """
    if in_sample:
        return 1.0
    learned = max((float(column.counts.sum()) for column in density.encoder_.columns_), default=0)
    return 1.0 + rows.size / learned if learned > 0 else 1.0
