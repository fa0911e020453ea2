"""Compute with power series up to s^k about a moving centre: moments that do not cancel (MC2).

Raw moments of g lose what is small: the variance against the squared mean, and any
g(x) that is small against the parameters it sums. So every pair holds its own mean
and its moments about that mean. An AND gate adds means and multiplies series
(Proposition 4); a sum over edges first moves both sides to their common mean, the
rule for merging samples. A complete row has variance exactly zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.kernels import U, plain_helper
from expecta.engine.algebras.algebra_operations import scale as weigh


class Moments(NamedTuple):
    """Probability, and per output the mean and C_k / k! for k = 2 .. order (order >= 2).

    A join costs O(order² · outputs).
    """

    order: int
    outputs: int


CUDA = """
#define OWN_SUMS
#define IS_MASS(i) ((i) == 0)
static DEVICE INLINE void clear(real* acc) {
  UNROLL
  for (int i = 0; i < WIDTH; ++i) acc[i] = 0;
}
static DEVICE INLINE void product(real* t, const real* x, const real* y, const real* c) {
  t[0] = x[0] * y[0];
  UNROLL
  for (int output = 0; output < CHANNELS; ++output) {
    const real *a = x + output * ORDER, *b = y + output * ORDER;  // a[k] is C_k / k!
    real* o = t + output * ORDER;
    o[1] = a[1] + b[1] + c[output];
    UNROLL
    for (int k = 2; k <= ORDER; ++k) {
      real s = a[k] + b[k];
      UNROLL
      for (int j = 2; j < k - 1; ++j) s += a[j] * b[k - j];
      o[k] = s;
    }
  }
}
static DEVICE INLINE void point(real* t, const real* c) {
  clear(t);
  t[0] = 1;
  UNROLL
  for (int output = 0; output < CHANNELS; ++output) t[1 + output * ORDER] = c[output];
}
static DEVICE INLINE void add(real* acc, real w, const real* t) {
  real more = w * t[0], total = acc[0] + more;
  real share = total > 0 ? more / total : (real)0, rest = total > 0 ? acc[0] / total : (real)0;
  UNROLL
  for (int output = 0; output < CHANNELS; ++output) {
    real* o = acc + output * ORDER;
    const real* a = t + output * ORDER;
    real delta = a[1] - o[1], back = -share * delta, ahead = rest * delta;
    UNROLL
    for (int k = ORDER; k > 1; --k) {
      real first = (real)1 / (k * (k - 1));
      real b = first * back * back + o[2], f = first * ahead * ahead + a[2];
      UNROLL
      for (int j = 3; j <= k; ++j) {
        real factor = (real)1 / (k - j + 1);
        b = factor * b * back + o[j];
        f = factor * f * ahead + a[j];
      }
      o[k] = rest * b + share * f;
    }
    o[1] += share * delta;
  }
  acc[0] = total;
}
"""


def constants(algebra: Moments, phi: Floats) -> Floats:
    """Return φ itself: it only moves the mean."""
    return np.array(phi, order="C")


def width(algebra: Moments) -> int:
    """Count the numbers that a pair holds per lane."""
    return 1 + algebra.order * algebra.outputs


def scratch(algebra: Moments) -> int:
    """Count the numbers needed beside: a state of one output, and six vectors to merge."""
    return 1 + algebra.order + 6


def join(
    algebra: Moments,
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
    """Merge z[x] · z[y], its mean moved by φ_e, into z[out], or set it."""
    order = algebra.order
    x0, y0, o0 = U(x), U(y), U(out)
    t0 = o0 if fresh else U(tmp)
    for i in range(U(lanes)):
        z[t0 + i] = z[x0 + i] * z[y0 + i]
    for output in range(algebra.outputs):
        first = 1 + output * order
        to = out + first * lanes if fresh else tmp + lanes
        phi = c[e, output]
        t, a, b = U(to), U(x + first * lanes), U(y + first * lanes)
        for i in range(U(lanes)):
            z[t + i] = z[a + i] + z[b + i] + phi
        for k in range(2, order + 1):  # C_0 = 1 and C_1 = 0 on both sides
            t = U(to + (k - 1) * lanes)
            a, b = U(x + (first + k - 1) * lanes), U(y + (first + k - 1) * lanes)
            for i in range(U(lanes)):
                z[t + i] = z[a + i] + z[b + i]
            for j in range(2, k - 1):
                a, b = U(x + (first + j - 1) * lanes), U(y + (first + k - j - 1) * lanes)
                for i in range(U(lanes)):
                    z[t + i] += z[a + i] * z[b + i]
        if not fresh:
            free = tmp + (1 + order) * lanes
            _merge(order, z, out, out + first * lanes, 1.0, -1, tmp, tmp + lanes, free, lanes)
    if not fresh:
        for i in range(U(lanes)):
            z[o0 + i] += z[t0 + i]


def mix(
    algebra: Moments,
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
    """Set z[out], and the rest of its run, to θ-weighted mixtures of the halves."""
    size, terms = (1 + algebra.order * algebra.outputs) * lanes, last - first
    for r in range(run):
        to, start = out + r * size, first + r * terms
        o, b = U(to), U(base + half[start] * size)
        for i in range(U(size)):
            z[o + i] = z[b + i]
        weigh(algebra, z, to, theta[edge[start]], lanes)
        for a in range(start + 1, start + terms):
            x, t = base + half[a] * size, theta[edge[a]]
            for output in range(algebra.outputs):
                at = (1 + output * algebra.order) * lanes
                _merge(algebra.order, z, to, to + at, t, -1, x, x + at, tmp, lanes)
            b = U(x)
            for i in range(U(lanes)):
                z[o + i] += t * z[b + i]


def mix_scaled(algebra: Moments, z: Floats, out: int, x: int, w: int, tmp: int, lanes: int) -> None:
    """Merge z[x] with a weight per lane into z[out]."""
    for output in range(algebra.outputs):
        at = (1 + output * algebra.order) * lanes
        _merge(algebra.order, z, out, out + at, 1.0, w, x, x + at, tmp, lanes)
    o, a, b = U(out), U(w), U(x)
    for i in range(U(lanes)):
        z[o + i] += z[a + i] * z[b + i]


def scale(algebra: Moments, z: Floats, out: int, theta: float, lanes: int) -> None:
    """Multiply the mass at z[out] by θ; mean and moments stay."""
    o = U(out)
    for i in range(U(lanes)):
        z[o + i] *= theta


def unit(algebra: Moments, c: Floats, e: int, z: Floats, out: int, w: int, lanes: int) -> None:
    """Merge one value of a leaf: a point mass at φ_e."""
    order = algebra.order
    for output in range(algebra.outputs):
        first, phi = 1 + output * order, c[e, output]
        for i in range(lanes):
            at = out + first * lanes + i
            old, new = z[out + i], z[w + i]
            if new > 0.0:
                share, rest = new / (old + new), old / (old + new)
                delta = phi - z[at]
                for k in range(order, 1, -1):
                    a, b = 1.0, 1.0
                    for j in range(1, k + 1):
                        a *= -share * delta / (k - j + 1)
                        b *= rest * delta / (k - j + 1)
                        if j >= 2:
                            a += z[at + (j - 1) * lanes]
                    z[at + (k - 1) * lanes] = rest * a + share * b
                z[at] += share * delta
    o, mass = U(out), U(w)
    for i in range(U(lanes)):
        z[o + i] += z[mass + i]


@plain_helper
def _merge(
    order: int,
    z: Floats,
    mass: int,
    out: int,
    theta: float,
    w: int,
    other_mass: int,
    x: int,
    tmp: int,
    lanes: int,
) -> None:
    """Merge the mean and moments at x into those at out; the caller adds the masses.

    The new mass is θ times z[other_mass], and times z[w] unless w is negative.
    """
    old_mass, new_mass, weight = U(mass), U(other_mass), U(max(w, 0))
    o, a = U(out), U(x)
    if order == 2 and w < 0:  # the common case
        o2, a2 = U(out + lanes), U(x + lanes)
        for i in range(U(lanes)):
            old, new = z[old_mass + i], theta * z[new_mass + i]
            total = old + new if old + new > 0.0 else 1.0
            share, rest = new / total, old / total
            delta = z[a + i] - z[o + i]
            z[o2 + i] = rest * z[o2 + i] + share * z[a2 + i] + 0.5 * share * rest * delta * delta
            z[o + i] += share * delta
        return
    # Vectors of both shares, of both means as seen from the common one, and of two sums
    shares, rests, back, ahead = U(tmp), U(tmp + lanes), U(tmp + 2 * lanes), U(tmp + 3 * lanes)
    b, f = U(tmp + 4 * lanes), U(tmp + 5 * lanes)
    for i in range(U(lanes)):
        z[f + i] = theta * z[new_mass + i]
    if w >= 0:
        for i in range(U(lanes)):
            z[f + i] *= z[weight + i]
    for i in range(U(lanes)):
        old, new = z[old_mass + i], z[f + i]
        total = old + new if old + new > 0.0 else 1.0
        share, rest = new / total, old / total
        delta = z[a + i] - z[o + i]
        z[shares + i] = share
        z[rests + i] = rest
        z[back + i] = -share * delta
        z[ahead + i] = rest * delta
    for k in range(order, 1, -1):
        # Σ_j C_j/j! d^(k-j)/(k-j)! by Horner's rule; C_0 = 1 and C_1 = 0
        start = 1.0 / (k * (k - 1))
        oj, aj = U(out + lanes), U(x + lanes)
        for i in range(U(lanes)):
            z[b + i] = start * z[back + i] * z[back + i] + z[oj + i]
            z[f + i] = start * z[ahead + i] * z[ahead + i] + z[aj + i]
        for j in range(3, k + 1):
            factor = 1.0 / (k - j + 1)
            oj, aj = U(out + (j - 1) * lanes), U(x + (j - 1) * lanes)
            for i in range(U(lanes)):
                z[b + i] = factor * z[b + i] * z[back + i] + z[oj + i]
                z[f + i] = factor * z[f + i] * z[ahead + i] + z[aj + i]
        ok = U(out + (k - 1) * lanes)
        for i in range(U(lanes)):
            z[ok + i] = z[rests + i] * z[b + i] + z[shares + i] * z[f + i]
    for i in range(U(lanes)):
        z[o + i] -= z[back + i]
