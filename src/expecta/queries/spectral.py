"""Turn characteristic functions into expectations of step-like functions, with error bounds.

Let ε be noise with distribution function F and real characteristic function ψ, and x a
random variable with characteristic function φ. Then

    E[F(x)] = P(ε <= x) = 1/2 + (1/π) ∫_0^∞ Im φ(t) ψ(t) / t dt.

Logistic noise makes this the expectation of a sigmoid, normal noise that of a probit or
a point of a distribution function. The midpoint rule with step h errs in two ways. Where
|x| <= reach, aliasing is an alternating sum that begins with P(ε > 2π/h - reach); and
cutting the sum after N terms leaves less than (1/π) ∫_Nh^∞ ψ(t) / t dt, the integrand
being bounded by a convex function. Both are made smaller than half the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from expecta.common.arrays import Floats
from expecta.common.errors import DomainError

MAX_FREQUENCIES = 200_000
DIGITS = 30  # binary, of the distance between frequencies
PHASE_ROUNDING = 2e-15  # of a phase, per unit of reach


@dataclass(frozen=True)
class Noise:
    """What the rule needs to know of the noise."""

    weight: Callable[[Floats], Floats]  # ψ(t) / (π t)
    tail: Callable[[float], float]  # u with P(ε > u) = probability
    cut: Callable[[float], float]  # T with (1/π) ∫_T^∞ ψ(t)/t dt = error


def _logistic_weight(t: Floats) -> Floats:
    return 1.0 / np.sinh(np.pi * t)


def _normal_weight(t: Floats) -> Floats:
    return np.exp(-0.5 * t * t) / (np.pi * t)


def _normal_tail(probability: float) -> float:
    from scipy.special import ndtri

    return -float(ndtri(probability))


def _normal_cut(error: float) -> float:
    from scipy.special import exp1  # no root finder: importing scipy.optimize takes longer

    low, high = 1e-3, 37.0
    while low < (middle := 0.5 * (low + high)) < high:  # what is left out falls as t grows
        low, high = (middle, high) if exp1(0.5 * middle**2) > 2 * np.pi * error else (low, middle)
    return low


LOGISTIC = Noise(
    weight=_logistic_weight,
    tail=lambda probability: float(np.log1p(-probability) - np.log(probability)),
    cut=lambda error: float(
        np.log((1 + np.exp(-np.pi * error)) / -np.expm1(-np.pi * error)) / np.pi
    ),
)
NORMAL = Noise(weight=_normal_weight, tail=_normal_tail, cut=_normal_cut)


class Quadrature(NamedTuple):
    """E[F(x)] is 1/2 + Σ weight · Im φ(t), within ``error``."""

    t: Floats
    weight: Floats
    step: float
    error: float
    frequency: Floats  # t in x's own units: evenly spaced to the last digit


def quadrature(
    noise: Noise, reach: float, tol: float, rounding: float, unit: float = 1.0
) -> Quadrature:
    """Choose frequencies for |x| <= reach: about (reach + log 1/tol) · log 1/tol of them.

    ``rounding`` bounds that of a characteristic function, beside that of a phase; x is in units
    of the noise, which ``unit`` is the width of.
    """
    spacing = few_digits(2 * np.pi / (reach + noise.tail(tol / 2)) / unit)
    step = spacing * unit
    count = int(np.ceil(noise.cut(tol / 2) / step))
    if count > MAX_FREQUENCIES:
        raise DomainError(
            f"g ranges so widely (up to {reach:.3g} in units of the link or the noise) that "
            f"{count:.3g} frequencies would be needed; divide g by a constant, use more noise, "
            f'or method="taylor"'
        )
    number = np.arange(count) + 0.5
    t = number * step
    weight = step * noise.weight(t)
    rounded = float(np.sum(weight * (rounding + PHASE_ROUNDING * t * reach)))
    return Quadrature(t, weight, step, tol + rounded, number * spacing)


def few_digits(step: float) -> float:
    """Round down to 30 binary digits, so that multiples and their sums are exact."""
    fraction, power = np.frexp(step)
    return float(np.ldexp(np.floor(np.ldexp(fraction, DIGITS)), power - DIGITS))


def check_tolerance(tol: float) -> None:
    """Refuse a tolerance that is none, or that floats cannot meet."""
    if not 1e-15 <= tol <= 0.1:
        raise ValueError(f"tol must lie between 1e-15 and 0.1, not {tol}")


def coarse(reach: Floats, steps: int = 2) -> Floats:
    """Round up to one of a few values, so that many rows share their frequencies.

    There are so many steps to twice the value. A row's value depends on the row alone: answers
    do not depend on the batch.
    """
    return np.exp2(np.ceil(steps * np.log2(np.maximum(reach, 1e-300))) / steps)
