"""Compute with positive numbers of any size: E[e 1_m exp(λ g)] for some real λ per channel.

A number is v · 2^(256 k) with a whole exponent k of its own, so that exp(λ g) neither
overflows nor underflows, however far g lies from zero, and no logarithm is taken. What is
lost is what ``probabilities`` drops: values of a probability below 1e-200 given the evidence.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.kernels import plain_helper
from expecta.engine.algebras.algebra_operations import clear as empty
from expecta.engine.layers import TINY, UNIT, number_and_exponent
from expecta.engine.probabilities import power


class Exponential(NamedTuple):
    """A number and its exponent per channel, which is one output of g at one λ."""

    channels: int


CUDA = """
#define OWN_SUMS
#define IS_MASS(i) false
static DEVICE INLINE void near_one(double& number, double& exponent) {
  if (number > 0) {
    while (number < TINY) { number *= UNIT; exponent -= 1; }
    while (number >= UNIT && number < INFINITY) { number *= TINY; exponent += 1; }
  }
}
static DEVICE INLINE void clear(real* acc) {
  UNROLL
  for (int k = 0; k < 2 * CHANNELS; ++k) acc[k] = 0;
}
static DEVICE INLINE void product(real* t, const real* x, const real* y, const real* c) {
  UNROLL
  for (int k = 0; k < 2 * CHANNELS; k += 2) {
    double number = x[k] * y[k], exponent = x[k + 1] + y[k + 1] + c[k + 1];
    near_one(number, exponent);
    number *= c[k];
    near_one(number, exponent);
    t[k] = number;
    t[k + 1] = exponent;
  }
}
static DEVICE INLINE void point(real* t, const real* c) {
  UNROLL
  for (int k = 0; k < 2 * CHANNELS; ++k) t[k] = c[k];
}
static DEVICE INLINE void add(real* acc, real w, const real* t) {
  UNROLL
  for (int k = 0; k < 2 * CHANNELS; k += 2) {
    double number = w, exponent = t[k + 1];
    near_one(number, exponent);
    number *= t[k];
    if (number > 0) {
      near_one(number, exponent);
      if (acc[k] > 0) {
        double top = acc[k + 1] > exponent ? acc[k + 1] : exponent;
        number = number * power(exponent - top) + acc[k] * power(acc[k + 1] - top);
        exponent = top;
      }
      near_one(number, exponent);
      acc[k] = number;
      acc[k + 1] = exponent;
    }
  }
}
"""


def constants(algebra: Exponential, phi: Floats, rates: Floats) -> Floats:
    """Return exp(λ φ) as numbers and exponents, outputs outermost."""
    assert algebra.channels == phi.shape[1] * len(rates)
    logarithm = (phi[:, :, None] * rates).reshape(len(phi), -1)
    return np.stack(number_and_exponent(logarithm), axis=2).reshape(len(phi), -1)


def width(algebra: Exponential) -> int:
    """Count the numbers that a pair holds per lane."""
    return 2 * algebra.channels


def join(
    algebra: Exponential,
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
    """Add exp(λ φ_e) · z[x] · z[y] to z[out], or set it."""
    if fresh:
        empty(algebra, z, out, lanes)
    for k in range(algebra.channels):
        factor, exponent = c[e, 2 * k], c[e, 2 * k + 1]
        for i in range(lanes):
            a, b = x + 2 * k * lanes + i, y + 2 * k * lanes + i
            term, scale = _near_one(z[a] * z[b], z[a + lanes] + z[b + lanes] + exponent)
            _add(z, out + 2 * k * lanes + i, lanes, factor * term, scale)


def mix(
    algebra: Exponential,
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
    """Set z[out], and the rest of its run, to θ-weighted sums of the halves."""
    size, terms = 2 * algebra.channels * lanes, last - first
    for r in range(run):
        to, start = out + r * size, first + r * terms
        empty(algebra, z, to, lanes)
        for a in range(start, start + terms):
            x, t = base + half[a] * size, theta[edge[a]]
            for k in range(algebra.channels):
                for i in range(lanes):
                    at = x + 2 * k * lanes + i
                    _add(z, to + 2 * k * lanes + i, lanes, t * z[at], z[at + lanes])


def mix_scaled(
    algebra: Exponential, z: Floats, out: int, x: int, w: int, tmp: int, lanes: int
) -> None:
    """Add w · z[x] to z[out], with a weight per lane."""
    for k in range(algebra.channels):
        for i in range(lanes):
            at = x + 2 * k * lanes + i
            weight, scale = _near_one(z[w + i], z[at + lanes])
            _add(z, out + 2 * k * lanes + i, lanes, weight * z[at], scale)


def scale(algebra: Exponential, z: Floats, out: int, theta: float, lanes: int) -> None:
    """Multiply z[out] by θ."""
    for k in range(algebra.channels):
        for i in range(lanes):
            at = out + 2 * k * lanes + i
            z[at], z[at + lanes] = _near_one(theta * z[at], z[at + lanes])


def unit(algebra: Exponential, c: Floats, e: int, z: Floats, out: int, w: int, lanes: int) -> None:
    """Add w · exp(λ φ_e) to z[out]."""
    for k in range(algebra.channels):
        for i in range(lanes):
            weight, scale = _near_one(z[w + i], c[e, 2 * k + 1])
            _add(z, out + 2 * k * lanes + i, lanes, c[e, 2 * k] * weight, scale)


@plain_helper
def _near_one(number: float, exponent: float) -> tuple[float, float]:
    """Bring a number into [2^-256, 2^256)."""
    if number > 0.0:
        while number < TINY:
            number *= UNIT
            exponent -= 1.0
        while UNIT <= number < np.inf:
            number *= TINY
            exponent += 1.0
    return number, exponent


@plain_helper
def _add(z: Floats, at: int, lanes: int, number: float, exponent: float) -> None:
    """Add a number and exponent to those at ``at``."""
    if number > 0.0:
        number, exponent = _near_one(number, exponent)
        if z[at] > 0.0:
            top = max(z[at + lanes], exponent)
            number = number * power(exponent - top) + z[at] * power(z[at + lanes] - top)
            exponent = top
        z[at], z[at + lanes] = _near_one(number, exponent)
