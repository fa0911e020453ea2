"""Compute with power series up to s: the probability of a pair and its expectations (EC2).

A pair holds Pr(n, m) = E[e 1_m] and, for each output, E[e 1_m g]. Without outputs
only the probability is left: plain numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from expecta.common.arrays import Floats
from expecta.common.kernels import U


class Expectation(NamedTuple):
    """Probability, and the expectation of each output; a join costs 1 + 4 outputs products."""

    outputs: int


CUDA = """
static DEVICE INLINE void product(real* t, const real* x, const real* y, const real* c) {
  t[0] = x[0] * y[0];
  UNROLL
  for (int k = 0; k < CHANNELS; ++k) t[1 + k] = c[k] * t[0] + (x[0] * y[1 + k] + x[1 + k] * y[0]);
}
static DEVICE INLINE void point(real* t, const real* c) {
  t[0] = 1;
  UNROLL
  for (int k = 0; k < CHANNELS; ++k) t[1 + k] = c[k];
}
"""


def constants(algebra: Expectation, phi: Floats) -> Floats:
    """Return φ itself."""
    return np.array(phi[:, : algebra.outputs], order="C")


def width(algebra: Expectation) -> int:
    """Count the numbers that a pair holds per lane."""
    return 1 + algebra.outputs


def join(
    algebra: Expectation,
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
    """Add (1 + s φ_e) · z[x] · z[y] to z[out], or set it (Propositions 1 and 2)."""
    o0, x0, y0 = U(out), U(x), U(y)
    if fresh:  # two loops and not a test inside one, which would not be vectorised
        for i in range(U(lanes)):
            z[o0 + i] = z[x0 + i] * z[y0 + i]
    else:
        for i in range(U(lanes)):
            z[o0 + i] += z[x0 + i] * z[y0 + i]
    for k in range(1, 1 + algebra.outputs):
        phi = c[U(e), U(k - 1)]
        o, a, b = U(out + k * lanes), U(x + k * lanes), U(y + k * lanes)
        if fresh:
            for i in range(U(lanes)):
                u, v = z[x0 + i], z[y0 + i]
                z[o + i] = phi * (u * v) + (u * z[b + i] + z[a + i] * v)
        else:
            for i in range(U(lanes)):
                u, v = z[x0 + i], z[y0 + i]
                z[o + i] += phi * (u * v) + (u * z[b + i] + z[a + i] * v)


def unit(algebra: Expectation, c: Floats, e: int, z: Floats, out: int, w: int, lanes: int) -> None:
    """Add w · (1 + s φ_e) to z[out]."""
    o, a = U(out), U(w)
    for i in range(U(lanes)):
        z[o + i] += z[a + i]
    for k in range(1, 1 + algebra.outputs):
        o, phi = U(out + k * lanes), c[U(e), U(k - 1)]
        for i in range(U(lanes)):
            z[o + i] += phi * z[a + i]
