"""Choose the scale that a circuit learns a skewed target on: y itself, or log(y − origin).

On a logarithmic scale y = origin + exp(m(x) + e), with normal e of variance σ²(x): its median is
origin + exp(m) and its mean origin + exp(m + κ σ²/2), κ = 1. Residuals are not quite normal, so
that κ is what makes the mean right on average over held-out rows. m + κ σ²/2 is a circuit again,
and the expectation of its exponential given what is known is exact. Chosen is the scale of greatest
held-out likelihood of y, if that is beyond chance and the means err no more than on y itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from expecta.circuits.regression import RegressionCircuit
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.estimators.training import FOLDS, Training, size
from expecta.expected.target_scale import PLAIN, TargetScale
from expecta.expected.target_values import MAX_FEW
from expecta.learn.regression.curves import Curve
from expecta.learn.regression.noise_variance import CodedRows, NoiseVariance, learn_noise

SMALLEST_SPREAD = 1e-290  # of a target: a millionth of it is a number too
EPSILON = float(np.finfo(np.float64).eps)
MIN_ROWS = 100  # below which no scale is chosen
MIN_SKEWNESS = 0.5  # of a target that another scale is tried for
ORIGIN = 0.1  # how far below the least y its origin is, if not all are positive, of the median's
MAX_TIES = 0.01  # share of rows at the least y: zeros of a payment are no end of a log-normal's
MIN_GAIN = 2.0  # standard errors by which held-out likelihood must rise
MAX_LOSS = 1.0  # standard errors by which held-out squared errors of means may
MAX_EXCESS = 4.0  # of κ: tails so heavy that no mean is known


class ScaledTarget(NamedTuple):
    """A target on a scale, about its mean and in units of its spread there."""

    scale: TargetScale
    centre: float
    unit: float
    y: Floats

    @classmethod
    def of(cls, scale: TargetScale, target: Floats, weight: Floats) -> ScaledTarget:
        """Scale a target."""
        margin = scale.margin(target)
        centre = float(np.average(margin, weights=weight))
        unit = size(margin - centre, weight)
        if unit <= 8 * EPSILON * abs(centre):  # a constant target has no unit
            unit = abs(centre) or 1.0
        elif unit < SMALLEST_SPREAD:
            raise DomainError(f"y varies by {unit:.1g} only; divide it by a unit of that size")
        return cls(scale, centre, unit, (margin - centre) / unit)

    def scaled(self, y: Floats) -> Floats:
        """Return other targets on the same scale."""
        return (self.scale.margin(y) - self.centre) / self.unit


def candidate_scales(transform: str | None, target: Floats, weight: Floats) -> list[TargetScale]:
    """Return the scales to try for a target, y's own first."""
    if transform not in ("auto", "log", None):
        raise DomainError(f'target_transform is "auto", "log" or None, not {transform!r:.40}')
    used = target[weight > 0]
    least = float(used.min())
    if transform == "log":
        if not least > 0:
            raise DomainError(
                f"y has {least:.6g}, which has no logarithm; with target_transform='auto' the "
                f"origin of the logarithm is chosen too, and None leaves y as it is"
            )
        return [TargetScale(0.0)]
    if transform is None or len(used) < MIN_ROWS or len(np.unique(used)) <= MAX_FEW:
        return [PLAIN]
    gap = (used - used.mean()) / (np.std(used) or 1.0)
    median = float(np.median(used))
    if np.mean(gap**3) < MIN_SKEWNESS or np.mean(used == least) > MAX_TIES:
        return [PLAIN]
    return [PLAIN, TargetScale(0.0 if least > 0 else least - ORIGIN * (median - least))]


class HeldOutFit(NamedTuple):
    """How well circuits that were learned on a scale predict folds left out."""

    weight: Floats
    loss: Floats  # minus the log-likelihood of each row's y
    residual: Floats  # y less its mean
    excess: NoiseVariance | None  # of the logarithm of the mean above the middle, if it is one

    @property
    def noise(self) -> float:
        """Standard deviation of y about its mean."""
        return size(self.residual, self.weight)


def judge_scale(
    target: Floats,
    scaled: ScaledTarget,
    training: Training,
    folds: list[RegressionCircuit],
    curves: Sequence[Curve],
    seed: int,
) -> HeldOutFit:
    """Judge the circuits of folds on rows that they did not learn from, and learn the excess.

    Cost: that of `learn_noise`.
    """
    assert training.fold is not None
    out = np.flatnonzero(training.fold >= 0)
    codes, weight, fold = training.codes[out], training.weight[out], training.fold[out]
    g: Floats = np.zeros(len(out))
    for number, circuit in enumerate(folds):
        g[fold == number] = circuit(codes[fold == number])
    y = target[training.origin[out]]
    residual = scaled.y[training.origin[out]] - g
    if len(folds) == 1:
        fold = _parts(training.origin[out], seed)
    rows = CodedRows(codes, curves)
    learned = learn_noise(rows, [rows] * (int(fold.max()) + 1), residual, weight, fold)
    variance: Floats = np.zeros(len(out))
    for number, noise in enumerate(learned.folds):
        inside = fold == number
        if noise is None:
            variance[inside] = max(size(residual[~inside], weight[~inside]), 1e-9) ** 2
        else:
            variance[inside] = noise.std(codes[inside]) ** 2
    with np.errstate(divide="ignore"):
        loss = 0.5 * (np.log(variance) + residual**2 / variance) + np.log(scaled.unit)
        loss -= np.log(scaled.scale.slope(y))
    if scaled.scale.origin is None:
        return HeldOutFit(weight, loss, scaled.unit * residual, None)
    middle, above = scaled.centre + scaled.unit * g, y - scaled.scale.origin
    half = 0.5 * scaled.unit**2 * variance
    kappa = _kappa(middle, half, above, weight)
    noise = learned.variance
    if noise is None:
        constant = float(np.average(variance, weights=weight))
        noise = NoiseVariance(1.0, tuple(np.zeros(len(c.groups)) for c in curves), constant**0.5)
    excess = noise.scaled(scaled.unit * np.sqrt(0.5 * kappa))
    return HeldOutFit(weight, loss, above - np.exp(middle + kappa * half), excess)


def _parts(origin: Ints, seed: int) -> Ints:
    """Cut the rows of one fold into several, those of one row of the table together."""
    rows, place = np.unique(origin, return_inverse=True)
    part: Ints = np.random.default_rng([seed, 2]).permutation(len(rows)) % FOLDS
    return part[place]


def _kappa(middle: Floats, half: Floats, above: Floats, weight: Floats) -> float:
    """Return κ with which exp(middle + κ half) is as large as y on average, by halving."""
    low, high = 1e-3, MAX_EXCESS
    top = float(middle.max())  # nothing overflows
    wanted = float(weight @ (above * np.exp(-top)))
    for _ in range(40):
        kappa = 0.5 * (low + high)
        if weight @ np.exp(middle - top + kappa * half) < wanted:
            low = kappa
        else:
            high = kappa
    return 0.5 * (low + high)


def is_better(fit: HeldOutFit, plain: HeldOutFit) -> bool:
    """Whether a scale makes held-out y likelier than their own, and their means err no more.

    Both beyond chance.
    """
    unit = max(plain.noise, fit.noise)  # squares of no number overflow
    likelier = _standard_errors(plain.loss - fit.loss, fit.weight)
    worse = _standard_errors((fit.residual / unit) ** 2 - (plain.residual / unit) ** 2, fit.weight)
    return likelier > MIN_GAIN and worse < MAX_LOSS


def _standard_errors(difference: Floats, weight: Floats) -> float:
    """Return the mean in units of its standard error."""
    mean = float(np.average(difference, weights=weight))
    error = float(np.sqrt(np.sum((weight * (difference - mean)) ** 2)) / weight.sum())
    return mean / error if error > 0 else 0.0
