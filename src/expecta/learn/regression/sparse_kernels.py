"""Compiled loops of learning: products with sparse features, and sums over pairs of them."""

from __future__ import annotations

from expecta.common.arrays import Floats, Ints
from expecta.common.kernels import helper, kernel


@kernel
def multiply(
    indptr: Ints, indices: Ints, data: Floats, table: Floats, out: Floats, begin: int, end: int
) -> None:
    """Set rows ``begin:end`` of ``out`` to a sparse matrix times ``table``."""
    width = table.shape[1]
    if width == 1:
        for row in range(begin, end):
            total = 0.0
            for entry in range(indptr[row], indptr[row + 1]):
                total += data[entry] * table[indices[entry], 0]
            out[row, 0] = total
        return
    for row in range(begin, end):
        for k in range(width):
            out[row, k] = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            index, amount = indices[entry], data[entry]
            for k in range(width):
                out[row, k] += amount * table[index, k]


@helper
def _first(indices: Ints, begin: int, end: int, minimum: int) -> int:
    """Return the position of the first of sorted indices that is at least ``minimum``."""
    while begin < end:
        middle = (begin + end) // 2
        if indices[middle] < minimum:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def add_pairs(
    indptr: Ints,
    indices: Ints,
    data: Floats,
    rows: Ints,
    low: int,
    high: int,
    weight: Floats,
    out: Floats,
) -> None:
    """Add to ``out[i, j, k]`` the sum over rows of features i <= j times weight k."""
    width = weight.shape[1]
    for row in rows:
        begin = _first(indices, indptr[row], indptr[row + 1], low)
        end = _first(indices, begin, indptr[row + 1], high)
        for a in range(begin, end):
            i = indices[a] - low
            for b in range(a, end):
                j = indices[b] - low
                amount = data[a] * data[b]
                for k in range(width):
                    out[i, j, k] += amount * weight[row, k]


@kernel
def add_normal_system(
    indptr: Ints,
    indices: Ints,
    data: Floats,
    rows: Ints,
    low: int,
    high: int,
    weight: Floats,
    value: Floats,
    gram: Floats,
    sums: Floats,
) -> None:
    """Add up, over rows, weighted pairs of features and values times features.

    The first feature is a constant, those in ``low:high`` follow. Of pairs (i, j) only those
    with i <= j are written.
    """
    outputs = value.shape[1]
    for row in rows:
        begin = _first(indices, indptr[row], indptr[row + 1], low)
        end = _first(indices, begin, indptr[row + 1], high)
        gram[0, 0] += weight[row]
        for k in range(outputs):
            sums[0, k] += value[row, k]
        for a in range(begin, end):
            i = indices[a] - low + 1
            gram[0, i] += data[a] * weight[row]
            for k in range(outputs):
                sums[i, k] += data[a] * value[row, k]
            for b in range(a, end):
                gram[i, indices[b] - low + 1] += data[a] * data[b] * weight[row]
