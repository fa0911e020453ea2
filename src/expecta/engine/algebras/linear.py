"""Define what algebras have in common: states that are vectors, and sums of vectors."""

from __future__ import annotations

from typing import Any

from expecta.common.arrays import Floats, Ints
from expecta.common.kernels import U
from expecta.engine.algebras.algebra_operations import width
from expecta.engine.algebras.tile import ACROSS, DOWN, tile


def scratch(algebra: Any) -> int:
    """Count the numbers per lane that ``join`` and ``mix`` need beside: none."""
    return 0


def clear(algebra: Any, z: Floats, out: int, lanes: int) -> None:
    """Set z[out] to the empty sum."""
    o = U(out)
    for i in range(U(width(algebra) * lanes)):
        z[o + i] = 0.0


def mix(
    algebra: Any,
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
    """Set z[out] to Σ θ z[half], four terms at a time so that z[out] is rarely touched.

    A run of states that sum the same halves is a matrix product; those beyond the first take
    the edges that follow. Halves are put side by side for it, one number of a state at a time.
    """
    size = width(algebra) * lanes
    if run > 1 and lanes == 1:  # narrower than a tile: the same sums, in the same order
        for r in range(run):
            e = edge[first] + r * (edge[last] - edge[first])
            for k in range(size):
                total = 0.0
                for a in range(last - first):
                    total += theta[U(e) + a] * z[U(base + half[first + a] * size + k)]
                z[out + r * size + k] = total
        return
    if run > 1:
        terms, step = last - first, edge[last] - edge[first]
        for k in range(width(algebra)):
            for a in range(terms):
                o, x = U(tmp) + a * U(lanes), U(base + half[first + a] * size + k * lanes)
                for i in range(U(lanes)):
                    z[o + i] = z[x + i]
            for i in range(0, lanes, ACROSS):
                for r in range(0, run, DOWN):
                    to, e = out + r * size + k * lanes + i, edge[first] + r * step
                    tile(z, to, size, tmp + i, lanes, theta, e, step, terms)
        return
    o = U(out)
    left_over = first + (last - first) % U(4)
    for a in range(first, left_over):
        t, x = theta[U(edge[a])], U(base + half[a] * size)
        if a == first:
            for i in range(U(size)):
                z[o + i] = t * z[x + i]
        else:
            for i in range(U(size)):
                z[o + i] += t * z[x + i]
    for a in range(left_over, last, U(4)):
        b, c, d = a + U(1), a + U(2), a + U(3)
        t0, x0 = theta[U(edge[a])], U(base + half[a] * size)
        t1, x1 = theta[U(edge[b])], U(base + half[b] * size)
        t2, x2 = theta[U(edge[c])], U(base + half[c] * size)
        t3, x3 = theta[U(edge[d])], U(base + half[d] * size)
        if a == first:
            for i in range(U(size)):
                z[o + i] = (t0 * z[x0 + i] + t1 * z[x1 + i]) + (t2 * z[x2 + i] + t3 * z[x3 + i])
        else:
            for i in range(U(size)):
                z[o + i] += (t0 * z[x0 + i] + t1 * z[x1 + i]) + (t2 * z[x2 + i] + t3 * z[x3 + i])


def mix_scaled(algebra: Any, z: Floats, out: int, x: int, w: int, tmp: int, lanes: int) -> None:
    """Add w · z[x] to z[out], with a weight per lane."""
    for k in range(width(algebra)):
        o, a, b = U(out + k * lanes), U(x + k * lanes), U(w)
        for i in range(U(lanes)):
            z[o + i] += z[b + i] * z[a + i]


def scale(algebra: Any, z: Floats, out: int, theta: float, lanes: int) -> None:
    """Multiply z[out] by θ."""
    o = U(out)
    for i in range(U(width(algebra) * lanes)):
        z[o + i] *= theta
