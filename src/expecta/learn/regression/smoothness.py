"""Choose how smooth the table of each column is, by restricted maximum likelihood.

The additive model of all rows is one of random effects: the parameters of a column's table are
normal, with precision P = size · identity + Σ strength · form of the curve. Strengths are found by
the fixed point of Fellner and Schall (Wood and Fasiolo, "A generalized Fellner-Schall method for
smoothing parameter optimization", 2017), with one Newton step of the parameters per step of it::

    strength ← strength · (tr(P⁻¹ form) - tr((H + P)⁻¹ form)) / (θᵀ form θ / dispersion)

summed over outputs; H is the curvature of the loss. The size is chosen likewise, one for all
columns. A form that explains nothing grows without bound: an atom then is where the curve is,
and a curve is straight.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.sparse import csr_array

from expecta.common.arrays import Floats, Ints
from expecta.learn.regression.curves import Curve
from expecta.learn.regression.losses import Loss
from expecta.learn.regression.row_features import FeatureTable, normal_system, product

MAX_PARAMETERS = 800  # of an output, beyond which nothing is chosen
MAX_ALL_PARAMETERS = 2400  # of all outputs
MAX_STEPS = 20  # of the fixed point
MIN_CHANGE = 0.05  # of the logarithm of a strength, below which it stands
MAX_FACTOR = 30.0  # by which a strength changes in a step
STRENGTHS, SIZES = (1e-3, 1e7), (1e-2, 1e3)  # least and largest
FREE = 1e-6  # pull on the overall constant: none to speak of
MAX_HALVINGS = 8  # of a step


@dataclass(frozen=True, eq=False)
class Smoothing:
    """The additive model of all rows, and the penalty that was chosen for it."""

    penalty: Floats  # (parameters, parameters)
    gram: Floats  # weighted sums over pairs of features
    theta: Floats  # a constant, then the parameters of each table  (parameters, outputs)

    @property
    def sparse_penalty(self) -> csr_array:
        """The penalty, sparse."""
        return csr_array(self.penalty)


def is_small(curves: Sequence[Curve], n_outputs: int) -> bool:
    """Whether there are so few parameters that strengths can be chosen."""
    n = sum(curve.rich.shape[1] for curve in curves)
    return 0 < n <= MAX_PARAMETERS and n * n_outputs <= MAX_ALL_PARAMETERS


def choose_smoothing(table: FeatureTable, weight: Floats, loss: Loss) -> Smoothing:
    """Fit the additive model of all rows, each table as smooth as the rows say.

    Cost per step and output: rows x features², the few that a row has, and the inverse of a dense
    matrix of all parameters.
    """
    y, curves, first = table.y, table.curves, 1 + table.rich.first
    rows = np.flatnonzero(weight > 0).astype(np.int32)
    n, k = int(first[-1]), y.shape[1]
    spans = [slice(a, b) for a, b in itertools.pairwise(first.tolist())]
    strengths = [[1.0] * len(curve.forms) for curve in curves]
    size = 1.0
    theta: Floats = np.zeros((n, k))
    theta[0] = loss.start(y, weight)
    g = np.tile(theta[0], (len(y), 1))
    for _ in range(MAX_STEPS):
        P = _penalty(curves, size, strengths)
        theta, g, posteriors = _newton_step(table, rows, weight, loss, theta, g, P)
        dispersion = np.ones(k)
        if loss.quadratic:
            free = [n - float(np.sum(posterior * P)) for posterior in posteriors]
            error = weight @ (y - g) ** 2
            dispersion = np.maximum(error / np.maximum(weight.sum() - free, 1.0), 1e-12)
        scaled, posterior = theta / np.sqrt(dispersion), np.mean(posteriors, axis=0)
        fixed = [np.linalg.inv(P[span, span]) - posterior[span, span] for span in spans]
        before = [size, *itertools.chain(*strengths)]
        for span, curve, own, part in zip(spans, curves, strengths, fixed, strict=True):
            of = scaled[span]
            own[:] = [
                _renewed(s, k * np.sum(part * form), np.sum(of * (form @ of)), STRENGTHS)
                for s, form in zip(own, curve.forms, strict=True)
            ]
        size = _renewed(size, k * sum(map(np.trace, fixed)), np.sum(scaled[1:] ** 2), SIZES)
        after = [size, *itertools.chain(*strengths)]
        if np.max(np.abs(np.log(after) - np.log(before))) < MIN_CHANGE:
            break
    strengths = [[_rounded(strength) for strength in own] for own in strengths]
    P = _penalty(curves, _rounded(size), strengths)
    gram, _ = normal_system(table.rich.rows, rows, 0, n - 1, weight, np.empty((len(y), 0)))
    return Smoothing(P, gram, theta)


def _penalty(curves: Sequence[Curve], size: float, strengths: list[list[float]]) -> Floats:
    """Return the penalty of a constant and of all tables."""
    blocks = [np.array([[FREE]])]
    for curve, own in zip(curves, strengths, strict=True):
        forms = (strength * form for strength, form in zip(own, curve.forms, strict=True))
        blocks.append(sum(forms, size * np.eye(curve.rich.shape[1])))
    return np.asarray(scipy.linalg.block_diag(*blocks))


def _rounded(strength: float) -> float:
    """Round to an eighth of a power of two: rows in another order sum up to the last bit alike."""
    return float(2.0 ** (np.round(8 * np.log2(strength)) / 8))


def _renewed(strength: float, fixed: float, squares: float, limits: tuple[float, float]) -> float:
    """Return the next strength of a form, from the parameters that it fixes and their squares."""
    factor = max(float(fixed), 1e-12) / max(float(squares), 1e-300)
    low, high = limits
    return min(max(strength * min(max(factor, 1 / MAX_FACTOR), MAX_FACTOR), low), high)


def _newton_step(
    table: FeatureTable,
    rows: Ints,
    weight: Floats,
    loss: Loss,
    theta: Floats,
    g: Floats,
    P: Floats,
) -> tuple[Floats, Floats, list[Floats]]:
    """Improve every output's parameters; returns these, the predictions, and (H + P)⁻¹ of each."""
    features, y = table.rich.rows, table.y
    slope, curvature = weight[:, None] * loss.slope(y, g), weight[:, None] * loss.curvature(y, g)
    inverses, steps = [], []
    for k in range(y.shape[1]):
        H, sums = normal_system(features, rows, 0, len(P) - 1, curvature[:, k], slope[:, [k]])
        inverses.append(scipy.linalg.inv(H + P, assume_a="pos", check_finite=False))
        steps.append(-inverses[-1] @ (sums[:, 0] + P @ theta[:, k]))
    step = np.stack(steps, axis=1)
    towards = step[0] + product(features, step[1:])
    length = np.ones(y.shape[1])

    def value(theta: Floats, g: Floats) -> Floats:
        penalised: Floats = weight @ loss.value(y, g) + 0.5 * np.sum(theta * (P @ theta), axis=0)
        return penalised

    now = value(theta, g)
    for _ in range(MAX_HALVINGS):
        worse = value(theta + length * step, g + length * towards) > now + 1e-12 * np.abs(now)
        if not np.any(worse):
            break
        length[worse] *= 0.5
    return theta + length * step, g + length * towards, inverses
