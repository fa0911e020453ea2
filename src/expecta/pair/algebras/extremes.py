"""Least and greatest: (min, max) for sums over edges, + for AND gates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from expecta.arrays import Floats, Ints
from expecta.pair.algebras.operations import mix_scaled as widen

__all__ = ["Extremes", "clear", "constants", "join", "mix", "mix_scaled", "scratch", "unit", "width"]


class Extremes(NamedTuple):
    """The least and the greatest value of g per output; (inf, -inf) where nothing is possible."""

    outputs: int


def constants(algebra: Extremes, phi: Floats) -> Floats:
    """Return φ itself."""
    return np.ascontiguousarray(phi)


def width(algebra: Extremes) -> int:
    """Count the numbers that a pair holds per lane."""
    return 2 * algebra.outputs


def scratch(algebra: Extremes) -> int:
    """Count the numbers that ``join`` needs beside."""
    return 0


def clear(algebra: Extremes, z: Floats, out: int, lanes: int) -> None:
    """Set z[out] to "nothing is possible"."""
    for k in range(algebra.outputs):
        for i in range(lanes):
            z[out + 2 * k * lanes + i] = np.inf
            z[out + (2 * k + 1) * lanes + i] = -np.inf


def join(
    algebra: Extremes, c: Floats, e: int, z: Floats, out: int, x: int, y: int, tmp: int, lanes: int
) -> None:
    """Widen z[out] by z[x] + z[y] + φ_e."""
    for k in range(algebra.outputs):
        phi = c[e, k]
        low = 2 * k * lanes
        high = low + lanes
        for i in range(lanes):
            z[out + low + i] = min(z[out + low + i], z[x + low + i] + z[y + low + i] + phi)
            z[out + high + i] = max(z[out + high + i], z[x + high + i] + z[y + high + i] + phi)


def mix(
    algebra: Extremes,
    z: Floats,
    out: int,
    base: int,
    half: Ints,
    edge: Ints,
    theta: Floats,
    first: int,
    last: int,
    lanes: int,
) -> None:
    """Set z[out] to the widest range among the halves; θ > 0 plays no part."""
    size = 2 * algebra.outputs * lanes
    for i in range(size):
        z[out + i] = z[base + half[first] * size + i]
    for a in range(first + 1, last):
        widen(algebra, z, out, base + half[a] * size, 0, lanes)


def mix_scaled(algebra: Extremes, z: Floats, out: int, x: int, w: int, lanes: int) -> None:
    """Widen z[out] by z[x]."""
    for k in range(algebra.outputs):
        low = 2 * k * lanes
        high = low + lanes
        for i in range(lanes):
            z[out + low + i] = min(z[out + low + i], z[x + low + i])
            z[out + high + i] = max(z[out + high + i], z[x + high + i])


def unit(algebra: Extremes, c: Floats, e: int, z: Floats, out: int, w: int, lanes: int) -> None:
    """Widen z[out] by φ_e where the value is possible."""
    for k in range(algebra.outputs):
        phi = c[e, k]
        low = out + 2 * k * lanes
        high = low + lanes
        for i in range(lanes):
            if z[w + i] > 0.0:
                z[low + i] = min(z[low + i], phi)
                z[high + i] = max(z[high + i], phi)
