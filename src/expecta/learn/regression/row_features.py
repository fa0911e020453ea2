"""Store what each row's values activate as sparse features, and multiply with them on all cores.

Sparse matrices are SciPy's, by rows; one by columns is the transpose of these. Products are
made here, since SciPy's use one thread.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

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
    if work <= MIN_THREADED_WORK:
        multiply(start, matrix.indices, matrix.data, table, out, 0, n_rows)
        return out
    threads = current().n_threads()
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
    gram, sums = normal_sums(matrix, rows, low, high, weight, value)
    below = np.tri(len(gram), k=-1, dtype=np.bool_)
    gram[below] = gram.T[below]
    return gram, sums


def normal_sums(
    matrix: csr_array, rows: Ints, low: int, high: int, weight: Floats, value: Floats
) -> tuple[Floats, Floats]:
    """Return the same with zeros at pairs (i, j) with i > j."""
    n = 1 + high - low
    gram, sums = np.zeros((n, n)), np.zeros((n, value.shape[1]))
    arrays = matrix.indptr, matrix.indices, matrix.data
    add_normal_system(*arrays, rows, low, high, weight, value, gram, sums)
    return gram, sums


class SparseRows(NamedTuple):
    """A sparse matrix by rows: SciPy's class costs more to make than many small ones to use."""

    start: Ints  # (rows + 1,)
    columns: Ints
    data: Floats

    @classmethod
    def of(cls, matrix: csr_array) -> SparseRows:
        """Take SciPy's arrays."""
        return cls(matrix.indptr, matrix.indices, matrix.data)

    @classmethod
    def stacked(cls, parts: Sequence[SparseRows], shifts: Sequence[int] = ()) -> SparseRows:
        """Put the rows of several below each other, each shifted by a number of columns."""
        starts, entries = [np.zeros(1, np.int32)], 0
        for part in parts:
            starts.append(part.start[1:] + np.int32(entries))
            entries += len(part.data)
        pairs = zip(parts, shifts or [0] * len(parts), strict=True)
        columns = [
            part.columns + np.int32(shift) if shift else part.columns for part, shift in pairs
        ]
        data = [part.data for part in parts]
        return cls(np.concatenate(starts), np.concatenate(columns), np.concatenate(data))

    @property
    def rows(self) -> Ints:
        """Row of each number."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def dense(self) -> Floats:
        """Return the same as a square table."""
        n = len(self.start) - 1
        table = np.zeros((n, n))
        table[self.rows, self.columns] = self.data
        return table

    def diagonal(self) -> Floats:
        """Return the diagonal of a square matrix."""
        rows = self.rows
        own = rows == self.columns
        return np.asarray(np.bincount(rows[own], self.data[own], len(self.start) - 1), np.float64)

    def array(self, n_columns: int) -> csr_array:
        """Return SciPy's array."""
        shape = len(self.start) - 1, n_columns
        return csr_array((self.data, self.columns, self.start), shape=shape)


def restricted(by_column: csr_array, columns: Ints, inside: Bools) -> SparseRows:
    """Choose columns of a matrix stored by columns; rows that are not inside become zero."""
    lengths = np.diff(by_column.indptr)[columns]
    end = np.cumsum(lengths)
    entry = np.repeat(by_column.indptr[columns] - end + lengths, lengths)
    entry += np.arange(len(entry), dtype=entry.dtype)
    rows = by_column.indices[entry]
    kept = inside[rows]
    start = np.append(0, np.cumsum(kept))[np.append(0, end)].astype(np.int32)
    return SparseRows(start, rows[kept], by_column.data[entry[kept]])


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


class GroupFeatures(NamedTuple):
    """For every row and variable one feature at most: the group that its value is in.

    Of two groups only the second is a feature. Cuts part groups: those up to one from the others
    where they are in order, else one from the others.
    """

    of_row: Ints  # -1 for none  (rows, variables)
    first: Ints  # feature of a variable  (variables + 1,)
    cumulative: Bools  # whether groups are in order  (variables,)
    n_cuts: Ints  # (variables,)

    @classmethod
    def of(cls, codes: Ints, curves: Sequence[Curve]) -> GroupFeatures:
        """Look up the groups of all values, the variables in the order of the vtree's leaves."""
        groups = np.array([curve.n_groups for curve in curves], np.int64)
        n_features = np.where(groups > 2, groups, groups - 1)
        ordered = np.array([curve.ordered for curve in curves], np.bool_)
        first = np.concatenate([[0], np.cumsum(n_features)])
        of_row = np.empty(codes.shape, np.int32)
        for x, curve in enumerate(curves):
            skipped = groups[x] - n_features[x]
            feature = curve.groups - skipped
            of_row[:, x] = np.where(feature < 0, -1, first[x] + feature)[codes[:, x]]
        return cls(of_row, first, ordered, np.where(ordered | (groups <= 2), groups - 1, groups))


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
    def coarse(self) -> GroupFeatures:
        """A feature per group of values; of two groups the second."""
        return GroupFeatures.of(self.codes, self.curves)

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
