"""Define what is minimised: squared error, or the logistic loss of each output on its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from expecta.common.arrays import Floats


class Loss(NamedTuple):
    """A loss of targets y at predictions g, convex in g; all are (rows, outputs)."""

    value: Callable[[Floats, Floats], Floats]  # y, g -> the loss of every row and output
    slope: Callable[[Floats, Floats], Floats]  # y, g -> its derivative by g
    curvature: Callable[[Floats, Floats], Floats]  # y, g -> its second derivative by g
    # y, g, weight -> variance of the slope in units of the curvature, per output
    dispersion: Callable[[Floats, Floats, Floats], Floats]
    start: Callable[[Floats, Floats], Floats]  # y, weight -> the best constant g, per output
    quadratic: bool  # whether the curvature is constant


def _log_odds(y: Floats, weight: Floats) -> Floats:
    """Compute the log-odds of the share of ones, half a row of either kind added."""
    ones = weight @ y
    return np.asarray(np.log((ones + 0.5) / (weight.sum() - ones + 0.5)))


def _logistic_curvature(y: Floats, g: Floats) -> Floats:
    p = expit(g)
    return np.asarray(p * (1.0 - p))


LOSSES = {
    "squared": Loss(  # half the squared error
        value=lambda y, g: 0.5 * (y - g) ** 2,
        slope=lambda y, g: g - y,
        curvature=lambda y, g: np.ones_like(g),
        dispersion=lambda y, g, weight: np.average((y - g) ** 2, axis=0, weights=weight),
        start=lambda y, weight: np.average(y, axis=0, weights=weight),
        quadratic=True,
    ),
    "logistic": Loss(  # minus the log-likelihood of y in {0, 1} with log-odds g, output by output
        value=lambda y, g: np.logaddexp(0.0, g) - y * g,
        slope=lambda y, g: expit(g) - y,
        curvature=_logistic_curvature,
        # a binary y has no other variance than its probability's
        dispersion=lambda y, g, weight: np.ones(y.shape[1]),
        start=_log_odds,
        quadratic=False,
    ),
}
