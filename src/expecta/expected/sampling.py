"""Means by sampling, until they are known well enough."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from expecta.common.arrays import Floats, Ints

__all__ = ["estimate", "in_parts"]

FIRST = 256  # draws of each row, before it is known how many are needed
AT_ONCE = 100_000  # rows that a model is given at a time


def estimate(
    draw: Callable[[Ints, int, np.random.Generator], Floats],
    n_rows: int,
    scale: float,
    rtol: float,
    most: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Estimate the mean of each row, and its standard error.

    ``draw(rows, n, rng)`` returns n numbers for each row. Draws until the standard error is
    ``rtol`` times the larger of the mean and ``scale``, or until there are ``most`` draws.
    """
    count, mean, square = np.zeros((3, n_rows))
    todo, n = np.arange(n_rows), max(2, min(FIRST, most))
    while len(todo):
        values = draw(todo, n, rng)
        own = values.mean(axis=1)
        gap, before = own - mean[todo], count[todo]
        total = before + n
        square[todo] += np.sum((values - own[:, None]) ** 2, axis=1) + gap**2 * before * n / total
        mean[todo] += gap * n / total
        count[todo] = total
        variance = square[todo] / (total - 1.0)
        allowed = np.maximum(rtol * np.maximum(np.abs(mean[todo]), scale), 1e-300)
        with np.errstate(over="ignore"):
            need = np.minimum(np.ceil(variance / allowed**2), most)
        todo = todo[need > total]
        n = int(min(max(need.max() - total[0], 1), 8 * total[0]))
    # what was never drawn has less than about one part in as many draws
    error = np.hypot(np.sqrt(square / np.maximum(count - 1, 1) / count), scale / count)
    return mean, error


def in_parts(n_rows: int, draws: int) -> list[Ints]:
    """Divide rows so that a model is not given more at a time than it can hold."""
    parts = 1 + n_rows * draws // AT_ONCE
    return [part for part in np.array_split(np.arange(n_rows), parts) if len(part)]
