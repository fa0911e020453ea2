"""Compiled conjugate gradients, for problems too small to share out among threads."""

from __future__ import annotations

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.kernels import U, helper, kernel


@kernel
def conjugate_gradients(
    features: tuple[Ints, Ints, Floats],
    penalty: tuple[Ints, Ints, Floats],
    blocks: tuple[Ints, Ints, Floats],
    curvature: Floats,
    goal: Floats,
    max_iterations: int,
    residual: Floats,
    solution: Floats,
) -> None:
    """Solve (AᵀCA + P) x = residual for every output, until no residual's norm is above its goal.

    Parameters
    ----------
    features, penalty
        A by rows, and P: where rows start, columns, numbers.
    blocks
        The system that gradients are preconditioned with, which is block-diagonal: first parameter
        of each block, where its numbers start, these numbers. They are the upper triangle U of
        UᵀU, the block, or if as many as its parameters its diagonal.
    curvature
        C.  # (outputs, rows)
    goal
        For each output.  # (outputs,)
    residual
        The right side; overwritten.  # (outputs, parameters)
    solution
        Set to x.  # (outputs, parameters)
    """
    k, n = residual.shape
    near, image, towards = np.empty((k, n)), np.empty((k, n)), np.empty((k, n))
    power, now = np.empty(k), np.empty(k)
    solution[:] = 0.0
    for c in range(k):
        _solve_blocks(blocks, residual[c], near[c])
        power[c] = _product(residual[c], near[c])
    towards[:] = near
    for _ in range(max_iterations):
        small = True
        for c in range(k):
            small = small and np.sqrt(_product(residual[c], residual[c])) <= goal[c]
        if small:
            return
        for c in range(k):
            _multiply(penalty, towards[c], image[c])
            _add_curved(features, curvature[c], towards[c], image[c])
            bend = _product(towards[c], image[c])
            length = power[c] / bend if bend > 0.0 else 0.0
            _add(solution[c], length, towards[c])
            _add(residual[c], -length, image[c])
            _solve_blocks(blocks, residual[c], near[c])
            now[c] = _product(residual[c], near[c])
            turn = now[c] / power[c] if power[c] > 0.0 else 0.0
            power[c] = now[c]
            for i in range(U(n)):
                towards[c, i] = near[c, i] + turn * towards[c, i]


@helper
def _product(a: Floats, b: Floats) -> float:
    """Return the product of two vectors."""
    total = 0.0
    for i in range(U(len(a))):
        total += a[i] * b[i]
    return total


@helper
def _add(to: Floats, factor: float, vector: Floats) -> None:
    """Add a multiple of a vector."""
    for i in range(U(len(to))):
        to[i] += factor * vector[i]


@helper
def _add_curved(
    features: tuple[Ints, Ints, Floats], curvature: Floats, theta: Floats, out: Floats
) -> None:
    """Add AᵀCAθ, in one pass over the rows."""
    start, indices, data = features
    for row in range(len(start) - 1):
        if curvature[row] == 0.0:  # held out
            continue
        first, last = U(start[row]), U(start[row + 1])
        total = 0.0
        for entry in range(first, last):
            total += data[entry] * theta[U(indices[entry])]
        total *= curvature[row]
        for entry in range(first, last):
            out[U(indices[entry])] += data[entry] * total


@helper
def _multiply(matrix: tuple[Ints, Ints, Floats], theta: Floats, out: Floats) -> None:
    """Set ``out`` to a sparse matrix times θ."""
    start, indices, data = matrix
    for row in range(len(start) - 1):
        total = 0.0
        for entry in range(U(start[row]), U(start[row + 1])):
            total += data[entry] * theta[U(indices[entry])]
        out[row] = total


@helper
def _solve_blocks(blocks: tuple[Ints, Ints, Floats], wanted: Floats, out: Floats) -> None:
    """Solve the block-diagonal system, block by block."""
    first, start, numbers = blocks
    out[:] = wanted
    for block in range(len(first) - 1):
        own = numbers[start[block] : start[block + 1]]
        x = out[first[block] : first[block + 1]]
        n = len(x)
        if len(own) < n * n:
            for i in range(n):
                x[i] /= own[i]
            continue
        for i in range(n):
            row = own[i * n : (i + 1) * n]
            x[i] /= row[i]
            _add(x[i + 1 :], -x[i], row[i + 1 :])
        for i in range(n - 1, -1, -1):
            row = own[i * n : (i + 1) * n]
            x[i] = (x[i] - _product(row[i + 1 :], x[i + 1 :])) / row[i]
