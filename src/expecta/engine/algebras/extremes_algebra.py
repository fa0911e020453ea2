"""Compute the least and the greatest: (min, max) for sums over edges, + for AND gates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.kernels import U
from expecta.engine.algebras.algebra_operations import mix_scaled as widen


class Extremes(NamedTuple):
    """The least and the greatest value of g per output; (inf, -inf) where nothing is possible."""

    outputs: int


CUDA = """
#define OWN_SUMS
#define IS_MASS(i) false
static DEVICE INLINE void clear(real* acc) {
  UNROLL
  for (int k = 0; k < 2 * CHANNELS; k += 2) {
    acc[k] = INFINITY;
    acc[k + 1] = -INFINITY;
  }
}
static DEVICE INLINE void product(real* t, const real* x, const real* y, const real* c) {
  UNROLL
  for (int k = 0; k < 2 * CHANNELS; ++k) t[k] = x[k] + y[k] + c[k / 2];
}
static DEVICE INLINE void point(real* t, const real* c) {
  UNROLL
  for (int k = 0; k < 2 * CHANNELS; ++k) t[k] = c[k / 2];
}
static DEVICE INLINE void add(real* acc, real, const real* t) {
  UNROLL
  for (int k = 0; k < 2 * CHANNELS; k += 2) {
    acc[k] = t[k] < acc[k] ? t[k] : acc[k];
    acc[k + 1] = t[k + 1] > acc[k + 1] ? t[k + 1] : acc[k + 1];
  }
}
"""


def constants(algebra: Extremes, phi: Floats) -> Floats:
    """Return φ itself."""
    return np.array(phi, order="C")


def width(algebra: Extremes) -> int:
    """Count the numbers that a pair holds per lane."""
    return 2 * algebra.outputs


def clear(algebra: Extremes, z: Floats, out: int, lanes: int) -> None:
    """Set z[out] to "nothing is possible"."""
    for k in range(algebra.outputs):
        for i in range(lanes):
            z[out + 2 * k * lanes + i] = np.inf
            z[out + (2 * k + 1) * lanes + i] = -np.inf


def join(
    algebra: Extremes,
    c: Floats,
    e: int,
    z: Floats,
    out: int,
    x: int,
    y: int,
    tmp: int,
    fresh: bool,
    lanes: int,
) -> None:
    """Widen z[out] by z[x] + z[y] + φ_e, or set it."""
    for k in range(algebra.outputs):
        phi = c[e, k]
        o, a, b = U(out + 2 * k * lanes), U(x + 2 * k * lanes), U(y + 2 * k * lanes)
        for i in range(U(lanes)):
            least = z[a + i] + z[b + i] + phi
            z[o + i] = least if fresh else min(z[o + i], least)
        o, a, b = o + U(lanes), a + U(lanes), b + U(lanes)
        for i in range(U(lanes)):
            greatest = z[a + i] + z[b + i] + phi
            z[o + i] = greatest if fresh else max(z[o + i], greatest)


def mix(
    algebra: Extremes,
    z: Floats,
    out: int,
    run: int,
    base: int,
    half: Ints,
    edge: Ints,
    theta: Floats,
    first: int,
    last: int,
    tmp: int,
    lanes: int,
) -> None:
    """Set z[out] to the widest range among the halves; θ > 0 plays no part.

    So all of a run are equal.
    """
    size = 2 * algebra.outputs * lanes
    o, a = U(out), U(base + half[first] * size)
    for i in range(U(size)):
        z[o + i] = z[a + i]
    for k in range(first + 1, last):
        widen(algebra, z, out, base + half[k] * size, 0, tmp, lanes)
    for r in range(1, run):
        a = U(out + r * size)
        for i in range(U(size)):
            z[a + i] = z[o + i]


def mix_scaled(
    algebra: Extremes, z: Floats, out: int, x: int, w: int, tmp: int, lanes: int
) -> None:
    """Widen z[out] by z[x]."""
    for k in range(algebra.outputs):
        o, a = U(out + 2 * k * lanes), U(x + 2 * k * lanes)
        for i in range(U(lanes)):
            z[o + i] = min(z[o + i], z[a + i])
        o, a = o + U(lanes), a + U(lanes)
        for i in range(U(lanes)):
            z[o + i] = max(z[o + i], z[a + i])


def scale(algebra: Extremes, z: Floats, out: int, theta: float, lanes: int) -> None:
    """Leave z[out] as it is: what is possible does not depend on θ > 0."""


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
