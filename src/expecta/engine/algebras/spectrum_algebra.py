"""Compute with complex numbers: E[e 1_m exp(i t g)], the characteristic function.

A channel is one output of g at one frequency t.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from expecta.common.arrays import Complexes, Floats
from expecta.common.exact_products import product_error
from expecta.common.kernels import U

BLOCK = 8  # frequencies that a turn is multiplied for


class Spectrum(NamedTuple):
    """One complex number per channel; a join costs two complex products per channel."""

    channels: int


CUDA = """
static DEVICE INLINE void product(real* t, const real* x, const real* y, const real* c) {
  UNROLL
  for (int k = 0; k < 2 * CHANNELS; k += 2) {
    real a = x[k] * y[k] - x[k + 1] * y[k + 1], b = x[k] * y[k + 1] + x[k + 1] * y[k];
    t[k] = c[k] * a - c[k + 1] * b;
    t[k + 1] = c[k] * b + c[k + 1] * a;
  }
}
static DEVICE INLINE void point(real* t, const real* c) {
  UNROLL
  for (int k = 0; k < 2 * CHANNELS; ++k) t[k] = c[k];
}
"""


def constants(
    algebra: Spectrum, phi: Floats, t: Floats, further: Complexes | None = None
) -> Floats:
    """Return exp(i t φ) as real and imaginary parts, outputs outermost.

    ``further`` is exp(i (t - t[0]) φ) where that is known, which saves most of the time.
    """
    assert algebra.channels == phi.shape[1] * len(t)
    if further is None:
        factor = turn(phi[:, :, None], t)
    else:
        factor = turn(phi, t[:1])[:, :, None] * further
    return factor.view(np.float64).reshape(len(phi), -1)


def turn(a: Floats, t: Floats) -> Complexes:
    """Return exp(i a t) to the last digits, however large the phase.

    A phase counts modulo 2π, so that a large one loses as many digits as it has turns. What the
    product loses is recovered exactly, and multiplied on afterwards. Of many frequencies that are
    evenly spaced, a few are turned and multiplied with each other: that takes a fifth of the time.
    """
    if np.ndim(t) == 1 and len(t) > BLOCK**2 and a.shape[-1:] == (1,) and evenly_spaced(t):
        blocks, within = turn(a, t[::BLOCK]), turn(a, t[:BLOCK] - t[0])
        product = blocks[..., None] * within[..., None, :]
        return product.reshape(*blocks.shape[:-1], -1)[..., : len(t)]
    lost = product_error(a, t)
    # a first order is all that counts, to the last bit, up to phases of a hundred million
    back = 1.0 + 1j * lost if np.abs(lost).max(initial=0.0) < 1e-8 else np.exp(1j * lost)
    return np.exp(1j * (a * t)) * back


def evenly_spaced(t: Floats) -> bool:
    """Whether all numbers are the first and multiples of a distance, without rounding."""
    return len(t) > 1 and np.array_equal(t, t[0] + (t[1] - t[0]) * np.arange(len(t)))


def width(algebra: Spectrum) -> int:
    """Count the numbers that a pair holds per lane."""
    return 2 * algebra.channels


def join(
    algebra: Spectrum,
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
    """Add exp(i t φ_e) · z[x] · z[y] to z[out], or set it."""
    for k in range(algebra.channels):
        cr, ci = c[e, 2 * k], c[e, 2 * k + 1]
        o, oi = U(out + 2 * k * lanes), U(out + (2 * k + 1) * lanes)
        a, ai = U(x + 2 * k * lanes), U(x + (2 * k + 1) * lanes)
        b, bi = U(y + 2 * k * lanes), U(y + (2 * k + 1) * lanes)
        if fresh:  # two loops and not a test inside one, which would not be vectorised
            for i in range(U(lanes)):
                real = z[a + i] * z[b + i] - z[ai + i] * z[bi + i]
                imag = z[a + i] * z[bi + i] + z[ai + i] * z[b + i]
                z[o + i] = cr * real - ci * imag
                z[oi + i] = cr * imag + ci * real
        else:
            for i in range(U(lanes)):
                real = z[a + i] * z[b + i] - z[ai + i] * z[bi + i]
                imag = z[a + i] * z[bi + i] + z[ai + i] * z[b + i]
                z[o + i] += cr * real - ci * imag
                z[oi + i] += cr * imag + ci * real


def unit(algebra: Spectrum, c: Floats, e: int, z: Floats, out: int, w: int, lanes: int) -> None:
    """Add w · exp(i t φ_e) to z[out]."""
    a = U(w)
    for k in range(2 * algebra.channels):
        o, f = U(out + k * lanes), c[e, k]
        for i in range(U(lanes)):
            z[o + i] += f * z[a + i]
