"""Sparse features: what each row's values activate, and products with them on all cores."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.settings import current
from expecta.common.threads import run_on_threads
from expecta.learn.regression.kernels import (
    count_entries,
    fill_entries,
    multiply,
    normal_system,
    pairwise,
    pick,
)

ALONE = 1 << 19  # multiply-adds below which a second thread costs more than it brings

__all__ = ["Features", "Sparse", "joined"]


@dataclass(frozen=True, eq=False)
class Sparse:
    """A matrix stored by rows, or by columns: the transpose of one stored by rows."""

    start: Ints  # entries of row i are start[i] : start[i + 1]
    index: Ints
    amount: Floats
    width: int  # of columns

    def __len__(self) -> int:
        return len(self.start) - 1

    def __matmul__(self, table: Floats) -> Floats:
        """Multiply with a dense table, each row by one thread.  # (columns, k) -> (rows, k)."""
        out = np.empty((len(self), table.shape[1]))
        work = int(self.start[-1]) * table.shape[1]
        threads = current().n_threads() if work > ALONE else 1
        cuts = np.searchsorted(self.start, np.linspace(0, self.start[-1], threads + 1)[1:-1])
        bounds = [0, *cuts.tolist(), len(self)]
        calls = [
            (self.start, self.index, self.amount, table, out, a, b)
            for a, b in itertools.pairwise(bounds)
            if b > a
        ]
        run_on_threads(multiply, calls, threads)
        return out

    def transposed(self) -> Sparse:
        """Return the transpose, stored by rows."""
        shape = (len(self), self.width)
        turned = scipy.sparse.csr_array((self.amount, self.index, self.start), shape=shape).tocsc()
        return Sparse(turned.indptr, turned.indices, turned.data, len(self))

    def pairs(self, rows: Ints, low: int, high: int, weight: Floats) -> Floats:
        """Sum pairs of columns in ``low:high`` over rows.  # (columns, columns, weights)."""
        out = np.zeros((high - low, high - low, weight.shape[1]))
        pairwise(self.start, self.index, self.amount, rows, low, high, weight, out)
        below = np.tril_indices(high - low, -1)
        out[below] = out[below[::-1]]
        return out

    def system(
        self, rows: Ints, low: int, high: int, weight: Floats, value: Floats
    ) -> tuple[Floats, Floats]:
        """Sum over rows pairs of columns, and columns times values; a constant comes first.

        Returns arrays of shape (1 + columns, 1 + columns) and (1 + columns, values).
        """
        n = 1 + high - low
        gram, sums = np.zeros((n, n)), np.zeros((n, value.shape[1]))
        arrays = self.start, self.index, self.amount
        normal_system(*arrays, rows, low, high, weight, value, gram, sums)
        return np.triu(gram) + np.triu(gram, 1).T, sums

    def picked(self, columns: Ints, rows: Bools) -> Sparse:
        """Of a matrix by columns keep some columns, and some rows: the others are zero."""
        given = (self.start, self.index, self.amount, columns, rows)
        start = np.empty(len(columns) + 1, self.start.dtype)
        nothing = np.empty(0, self.index.dtype), np.empty(0)
        n = pick(*given, start, *nothing)
        index, amount = np.empty(n, self.index.dtype), np.empty(n)
        if n:
            pick(*given, start, index, amount)
        return Sparse(start, index, amount, self.width)


def joined(parts: Sequence[Sparse]) -> Sparse:
    """Stack matrices one below the other."""
    shift = np.cumsum([0, *(part.start[-1] for part in parts)])
    starts = [part.start[:-1] + by for part, by in zip(parts, shift[:-1], strict=True)]
    return Sparse(
        np.concatenate([*starts, shift[-1:]]),
        np.concatenate([part.index for part in parts]),
        np.concatenate([part.amount for part in parts]),
        parts[0].width,
    )


class Features:
    """The features of a table of values: for every row a few of each variable's.

    Parameters
    ----------
    codes
        Values, with no unknown ones, the variables in the order of the vtree's leaves.
        # (rows, variables)
    bases
        What features the values of each variable have.  # (values, features) each
    """

    def __init__(self, codes: Ints, bases: Sequence[Floats]) -> None:
        self.first = np.cumsum([0, *(basis.shape[1] for basis in bases)])  # feature of a variable
        stacked = scipy.sparse.csr_array(scipy.sparse.block_diag(bases, format="csr"))
        stacked.eliminate_zeros()
        value = np.cumsum([0, *(len(basis) for basis in bases)])
        per_row = np.zeros(len(codes) + 1, np.int64)
        count_entries(codes, value, stacked.indptr, per_row[1:])
        start = np.cumsum(per_row)
        index, amount = np.empty(start[-1], np.int32), np.empty(start[-1])
        fill_entries(
            codes, value, stacked.indptr, stacked.indices, stacked.data, start, index, amount
        )
        self.rows = Sparse(start, index, amount, int(self.first[-1]))

    def __len__(self) -> int:
        return len(self.rows)
