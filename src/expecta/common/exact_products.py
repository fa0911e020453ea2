"""Recover what a product of two floats loses to rounding."""

from __future__ import annotations

from expecta.common.arrays import Floats


def product_error(a: Floats | float, b: Floats | float) -> Floats | float:
    """Return a · b less its float, exactly (Dekker), for factors up to 1e300.

    >>> float(product_error(0.1, 3.0))  # 0.1 is above a tenth, and 0.1 * 3.0 above that
    -2.7755575615628914e-17
    """
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return ((a_high * b_high - a * b) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a: Floats | float) -> tuple[Floats | float, Floats | float]:
    """Split into two numbers of half the digits each."""
    scaled = 134217729.0 * a  # 2^27 + 1
    high = scaled - (scaled - a)
    return high, a - high
