"""Store what each row's values activate as sparse features, and multiply with them on all cores.

Sparse matrices are SciPy's, by rows; one by columns is the transpose of these. Products are
made here, since SciPy's use one thread.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import scipy.sparse
from scipy.sparse import csr_array

from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.settings import current
from expecta.common.threads import run_on_threads
from expecta.learn.regression.curves import Curve
from expecta.learn.regression.sparse_kernels import add_normal_system, add_pairs, multiply

MIN_THREADED_WORK = 1 << 19  # multiply-adds; below, a second thread costs more than it brings
BATCH_ROWS = 1 << 14  # rows whose features are made at a time: bounds the memory


def product(matrix: csr_array, table: Floats) -> Floats:
    """Multiply with a dense table, each row by one thread.  # (columns, k) -> (rows, k)."""
    start, n_rows = matrix.indptr, matrix.shape[0]
    out = np.empty((n_rows, table.shape[1]))
    work = int(start[-1]) * table.shape[1]
    threads = current().n_threads() if work > MIN_THREADED_WORK else 1
    cuts = np.searchsorted(start, np.linspace(0, start[-1], threads + 1)[1:-1])
    calls = [
        (start, matrix.indices, matrix.data, table, out, first, last)
        for first, last in itertools.pairwise([0, *cuts.tolist(), n_rows])
        if last > first
    ]
    run_on_threads(multiply, calls, threads)
    return out


def transposed(matrix: csr_array) -> csr_array:
    """Return the transpose, stored by rows."""
    return matrix.T.tocsr()


def pair_sums(matrix: csr_array, rows: Ints, low: int, high: int, weight: Floats) -> Floats:
    """Sum pairs of columns in ``low:high`` over rows.  # (columns, columns, weights)."""
    out = np.zeros((high - low, high - low, weight.shape[1]))
    add_pairs(matrix.indptr, matrix.indices, matrix.data, rows, low, high, weight, out)
    below = np.tril_indices(high - low, -1)
    out[below] = out[below[::-1]]
    return out


def normal_system(
    matrix: csr_array, rows: Ints, low: int, high: int, weight: Floats, value: Floats
) -> tuple[Floats, Floats]:
    """Sum over rows pairs of columns, and columns times values; a constant comes first.

    Returns arrays of shape (1 + columns, 1 + columns) and (1 + columns, values).
    """
    n = 1 + high - low
    gram, sums = np.zeros((n, n)), np.zeros((n, value.shape[1]))
    arrays = matrix.indptr, matrix.indices, matrix.data
    add_normal_system(*arrays, rows, low, high, weight, value, gram, sums)
    return np.triu(gram) + np.triu(gram, 1).T, sums


def restricted(by_column: csr_array, columns: Ints, inside: Bools) -> csr_array:
    """Choose columns of a matrix stored by columns; rows that are not inside become zero."""
    chosen = by_column[columns]
    kept = inside[chosen.indices]
    start = np.append(0, np.cumsum(kept))[chosen.indptr]
    return csr_array((chosen.data[kept], chosen.indices[kept], start), shape=chosen.shape)


class RowFeatures:
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
        some = np.flatnonzero(np.diff(self.first)).tolist() or [0]
        bases, codes = [bases[x] for x in some], codes[:, some]
        of_value = csr_array(scipy.sparse.block_diag(bases, format="csr"))
        of_value.eliminate_zeros()
        first_value = np.cumsum([0, *(len(basis) for basis in bases[:-1])])
        width, batches = len(bases), range(0, max(len(codes), 1), BATCH_ROWS)
        self.rows = scipy.sparse.vstack(
            [
                _joined(of_value[(codes[at : at + BATCH_ROWS] + first_value).reshape(-1)], width)
                for at in batches
            ],
            format="csr",
        )

    def __len__(self) -> int:
        return int(self.rows.shape[0])


def _joined(matrix: csr_array, n: int) -> csr_array:
    """Make one row of every n rows, which have no column in common."""
    shape = matrix.shape[0] // n, matrix.shape[1]
    return csr_array((matrix.data, matrix.indices, matrix.indptr[::n]), shape=shape)


class FeatureTable:
    """Complete rows and their targets, with features that all growths on them share."""

    def __init__(self, codes: Ints, vtree: Vtree, curves: Sequence[Curve], y: Floats) -> None:
        self.vtree, self.y = vtree, y
        self.order = vtree.variable[vtree.variable >= 0]  # variables as the leaves have them
        self.curves = [curves[x] for x in self.order]
        self.codes = np.ascontiguousarray(codes[:, self.order], np.int32)
        self.fine = RowFeatures(self.codes, [curve.basis for curve in self.curves])
        self.cardinalities = np.array([len(curve.basis) for curve in curves])

    def with_curves(self, curves: Sequence[Curve]) -> FeatureTable:
        """Return the same rows with other tables allowed."""
        codes = np.empty_like(self.codes)
        codes[:, self.order] = self.codes
        return FeatureTable(codes, self.vtree, curves, self.y)

    @cached_property
    def by_column(self) -> csr_array:
        """The features by columns."""
        return transposed(self.fine.rows)

    @cached_property
    def rich(self) -> RowFeatures:
        """The features of the tables that all rows share."""
        return RowFeatures(self.codes, [curve.rich for curve in self.curves])

    @cached_property
    def rich_by_column(self) -> csr_array:
        """The same by columns."""
        return transposed(self.rich.rows)

    @cached_property
    def coarse(self) -> RowFeatures:
        """A feature per group of values; of two groups the second."""
        bases = [np.eye(curve.n_groups)[curve.groups] for curve in self.curves]
        return RowFeatures(self.codes, [b[:, 1:] if b.shape[1] <= 2 else b for b in bases])

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """The range of leaves below each vtree node."""
        spans: list[tuple[int, int]] = []
        n_leaves = 0
        for v, x in enumerate(self.vtree.variable.tolist()):
            if x >= 0:
                spans.append((n_leaves, n_leaves + 1))
                n_leaves += 1
            else:
                spans.append((spans[self.vtree.left[v]][0], spans[self.vtree.right[v]][1]))
        return spans
