"""The expected slope of the logistic function, which the variance of a probability needs.

With σ' = σ (1 - σ) the variance of σ(g) is E[σ] - E[σ'] - E[σ]². The slope σ' is the density
of the logistic distribution, whose characteristic function is π t / sinh(π t), hence

    E[σ'(g)] = ∫_0^∞ Re φ(t) · t / sinh(π t) dt

for the characteristic function φ of g. The midpoint rule errs as in `queries.spectral`: where
|x| <= reach, aliasing is an alternating sum on either side that begins with σ'(2π/h - reach),
which is less than P(ε > 2π/h - reach); and cutting the sum at T leaves less than (T + 1/π) times
what `Noise.cut` bounds.
"""

from __future__ import annotations

import numpy as np

from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Floats
from expecta.queries.exponentials import likely
from expecta.queries.pair import Pair
from expecta.queries.spectral import LOGISTIC, coarse, quadrature


def expected_slope(
    pair: Pair, evidence: Evidence, tol: float, offset: Floats | float = 0.0
) -> tuple[Floats, Floats]:
    """E[σ'(g + offset)] for a pair with one output and possible evidence, and a bound on its error.

    Cost: that of E[σ(g)] within ``tol``; the error is about ten times ``tol``.
    """
    low, high = (end[:, None] for end in pair.range(evidence))
    low, high = likely(pair, evidence, low, high, np.ones(len(evidence)), tol)
    shift = np.broadcast_to(offset, len(evidence))
    low, high = low + shift[:, None], high + shift[:, None]
    slack = pair.rounding * pair.parameter_size[0]
    reach = coarse(np.maximum(np.abs(low), np.abs(high))[:, 0] + slack)
    value, error = np.empty((2, len(evidence)))
    for group in np.unique(reach):
        rows = np.flatnonzero(reach == group)
        rule = quadrature(LOGISTIC, float(group), tol, pair.rounding)
        end = rule.t[-1] + 0.5 * rule.step
        phi = pair.characteristic(evidence[rows], rule.t)
        if np.any(shift):
            phi = phi * np.exp(1j * shift[rows, None] * rule.t)
        value[rows] = phi.real @ (rule.weight * rule.t)
        # aliasing on two sides; what is cut off; rounding; and what lies beyond the reach
        error[rows] = tol + 0.51 * tol * (end + 1 / np.pi) + end * (rule.error - tol) + tol
    return value, error
