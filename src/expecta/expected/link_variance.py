"""Compute the mean and the variance of link(g), with bounds on their errors.

E[link(g)²] − E[link(g)]² loses all digits where the spread is small beside the mean. Where g hardly
varies, the variance comes from moments of g about its mean. With h = g − E[g] and link(E[g] + h) =
Σ c_k h^k, it is Σ c_j c_k (C_{j+k} − C_j C_k), whose first term, c_1² C_2, is nearly all of it.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, factorial

from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Floats
from expecta.queries.links import mean_and_square_of_exp
from expecta.queries.logistic_slope import expected_slope
from expecta.queries.moments import mean_and_central
from expecta.queries.pair import Pair

TERMS = 8  # of the series
REACH = 0.5  # how far g may be from its mean
RADIUS = np.pi / 2  # |logistic(z)| is at most e^Re(z) where |Im(z)| is no larger
ROUNDING = 1e-13  # relative
VARIANCE_TOL = 1e-12  # error of expectations that variances are made of


def mean_and_variance_of_link(
    pair: Pair,
    evidence: Evidence,
    link: str,
    low: Floats,
    high: Floats,
    offset: Floats | float = 0.0,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Mean and variance of exp or logistic of g + offset, of g with one output, with their errors.

    ``low`` and ``high`` are the range of g given each row, which must be possible.
    """
    shift = np.broadcast_to(offset, len(evidence))
    if link == "logistic":
        mean, error = pair.expected(evidence, "logistic", tol=VARIANCE_TOL, offset=shift)
        slope, slope_error = expected_slope(pair, evidence, VARIANCE_TOL, shift)
        variance, loose = mean - slope - mean**2, 3.0 * error + slope_error
    else:
        mean, square = (part[:, 0] for part in mean_and_square_of_exp(pair, evidence))
        mean, square = mean * np.exp(shift), square * np.exp(2.0 * shift)
        error = 0.0 * mean
        variance, loose = square - mean**2, np.asarray(1e-12 * square)
    low, high = low + shift, high + shift
    about, bound = variance_about_mean(pair, evidence, link, low, high, shift)
    better = bound < loose
    variance, loose = np.where(better, about, variance), np.where(better, bound, loose)
    # a number between two ends varies by a quarter of their distance squared at most
    apply = expit if link == "logistic" else np.exp
    limit = 0.25 * (apply(high) - apply(low)) ** 2
    return mean, error, np.clip(variance, 0.0, limit), np.minimum(loose, limit)


def variance_about_mean(
    pair: Pair,
    evidence: Evidence,
    link: str,
    low: Floats,
    high: Floats,
    shift: Floats | float = 0.0,
) -> tuple[Floats, Floats]:
    """Variance of exp or logistic of g + shift, of g with one output, and a bound on its error.

    ``low`` and ``high`` are the range of g + shift given each row.
    The bound is infinite where g may be further than REACH from its mean. Cost: that of
    2 TERMS moments, for the other rows.
    """
    variance, bound = np.full((2, len(evidence)), np.inf)
    (near,) = np.nonzero(high - low <= 2.0 * REACH)
    if not len(near):
        return variance, bound
    moments = mean_and_central(pair, evidence[near], 2 * TERMS)[0][:, 0]
    mean = moments[:, 1] + np.broadcast_to(shift, len(evidence))[near]
    reach = np.maximum(high[near] - mean, mean - low[near])
    moments[:, 1] = 0.0
    if link == "exp":
        k = np.arange(1, TERMS + 1)
        coefficient = np.exp(mean)[:, None] / factorial(k)
        # Σ_{k > TERMS} reach^(k-1) / k!, at most
        rest = np.exp(mean + reach) * reach**TERMS / factorial(TERMS + 1)
    else:
        # logistic(g) and 1 - logistic(g) = logistic(-g) have one variance; near 0 no digit is lost
        flipped = mean > 0
        moments[flipped, 1::2] *= -1.0
        mean = -np.abs(mean)
        coefficient = _logistic_series(mean)
        ratio = reach / RADIUS  # by Cauchy, |c_k| <= e^(mean + RADIUS) / RADIUS^k
        rest = np.exp(mean + RADIUS) / RADIUS * ratio**TERMS / np.maximum(1.0 - ratio, 0.5)
    j = np.arange(1, TERMS + 1)
    covariance = moments[:, j[:, None] + j] - moments[:, j, None] * moments[:, None, j]
    about = np.einsum("rj,rjk,rk->r", coefficient, covariance, coefficient)
    about = np.maximum(about, 0.0)
    # what is left out is at most rest |h|, whose variance is at most rest² C_2
    spread = rest * np.sqrt(np.maximum(moments[:, 2], 0.0))
    ok = reach <= REACH
    variance[near] = np.where(ok, about, np.inf)
    loose = 2.0 * np.sqrt(about) * spread + spread**2 + ROUNDING * about
    bound[near] = np.where(ok, loose, np.inf)
    return variance, bound


def _logistic_series(at: Floats) -> Floats:
    """Return c_1 .. c_TERMS of logistic(at + h), at <= 0, from s' = s (1 - s).  # (rows, TERMS)."""
    s, rest = [expit(at)], [expit(-at)]  # of logistic, and of 1 - logistic
    for k in range(TERMS):
        product = sum(s[i] * rest[k - i] for i in range(k + 1))
        s.append(product / (k + 1))
        rest.append(-s[-1])
    return np.stack(s[1:], axis=1)
