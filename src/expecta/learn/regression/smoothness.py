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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.sparse import csr_array

from expecta.common.arrays import Floats, Ints
from expecta.learn.regression.cholesky import factor, invert_root
from expecta.learn.regression.curves import Curve
from expecta.learn.regression.losses import Loss
from expecta.learn.regression.row_features import FeatureTable, SparseRows, normal_system, product

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

    # Cholesky factors of the model's system, by curvature
    factors: dict[float, Floats] = field(default_factory=dict)

    @cached_property
    def sparse_penalty(self) -> SparseRows:
        """The penalty, sparse."""
        return SparseRows.of(csr_array(self.penalty))


def is_small(curves: Sequence[Curve], n_outputs: int) -> bool:
    """Whether there are so few parameters that strengths can be chosen."""
    n = sum(curve.rich.shape[1] for curve in curves)
    return 0 < n <= MAX_PARAMETERS and n * n_outputs <= MAX_ALL_PARAMETERS


def choose_smoothing(table: FeatureTable, weight: Floats, loss: Loss) -> Smoothing:
    """Fit the additive model of all rows, each table as smooth as the rows say.

    Cost per step and output: the factor of a dense matrix of all parameters and its inverse; and
    rows x features², the few that a row has, once where the curvature is that of squared error.
    """
    y, curves, first = table.y, table.curves, 1 + table.rich.first
    rows = np.flatnonzero(weight > 0).astype(np.int32)
    n, k = int(first[-1]), y.shape[1]
    strengths = [[1.0] * len(curve.forms) for curve in curves]
    size = 1.0
    theta: Floats = np.zeros((n, k))
    theta[0] = loss.start(y, weight)
    g = np.tile(theta[0], (len(y), 1))
    no_values = np.empty((len(y), 0))
    gram, _ = normal_system(table.rich.rows, rows, 0, n - 1, weight, no_values)
    curvatures = _Curvatures(table, rows, weight, loss, gram)
    for _ in range(MAX_STEPS):
        P = _BlockPenalty.of(first, curves, size, strengths)
        theta, g, posteriors = _newton_step(table, weight, loss, curvatures, theta, g, P)
        dispersion = np.ones(k)
        if loss.quadratic:
            free = n - P.trace_with(posteriors[0])
            error = weight @ (y - g) ** 2
            dispersion = np.maximum(error / max(weight.sum() - free, 1.0), 1e-12)
        scaled = theta / np.sqrt(dispersion)
        posterior = [np.mean(blocks, axis=0) for blocks in zip(*posteriors, strict=True)]
        pairs = zip(P.blocks, posterior, strict=True)
        fixed = [np.linalg.inv(own) - left for own, left in pairs][1:]
        before = [size, *itertools.chain(*strengths)]
        for span, curve, own, part in zip(P.spans[1:], curves, strengths, fixed, strict=True):
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
    chosen = _BlockPenalty.of(first, curves, _rounded(size), strengths)
    return Smoothing(np.asarray(scipy.linalg.block_diag(*chosen.blocks)), gram, theta)


class _BlockPenalty(NamedTuple):
    """The penalty of a constant and of all tables, block by block."""

    spans: list[slice]
    blocks: list[Floats]

    @classmethod
    def of(
        cls, first: Ints, curves: Sequence[Curve], size: float, strengths: list[list[float]]
    ) -> _BlockPenalty:
        spans = [slice(0, 1), *(slice(a, b) for a, b in itertools.pairwise(first.tolist()))]
        blocks = [np.array([[FREE]])]
        for curve, own in zip(curves, strengths, strict=True):
            forms = (strength * form for strength, form in zip(own, curve.forms, strict=True))
            blocks.append(sum(forms, size * np.eye(curve.rich.shape[1])))
        return cls(spans, blocks)

    def times(self, theta: Floats) -> Floats:
        """Return Pθ."""
        pairs = zip(self.spans, self.blocks, strict=True)
        return np.concatenate([block @ theta[span] for span, block in pairs])

    def added(self, H: Floats) -> Floats:
        """Return the upper triangle of H + P."""
        total = np.triu(H)
        for span, block in zip(self.spans, self.blocks, strict=True):
            total[span, span] += np.triu(block)
        return total

    def trace_with(self, blocks: list[Floats]) -> float:
        """Return the trace of P times a matrix whose diagonal blocks are given."""
        return float(sum(map(np.vdot, self.blocks, blocks)))


def _rounded(strength: float) -> float:
    """Round to an eighth of a power of two: rows in another order sum up to the last bit alike."""
    return float(2.0 ** (np.round(8 * np.log2(strength)) / 8))


def _renewed(strength: float, fixed: float, squares: float, limits: tuple[float, float]) -> float:
    """Return the next strength of a form, from the parameters that it fixes and their squares."""
    factor = max(float(fixed), 1e-12) / max(float(squares), 1e-300)
    low, high = limits
    return min(max(strength * min(max(factor, 1 / MAX_FACTOR), MAX_FACTOR), low), high)


class _Curvatures(NamedTuple):
    """The second derivatives of the loss by the parameters."""

    table: FeatureTable
    rows: Ints
    weight: Floats
    loss: Loss
    gram: Floats  # weighted sums over pairs of features: the curvature of squared error

    def each(self, g: Floats) -> Iterator[Floats]:
        """Return that of every output; of squared error they are all one."""
        if self.loss.quadratic:
            yield self.gram
            return
        curvature = self.weight[:, None] * self.loss.curvature(self.table.y, g)
        no_values = np.empty((len(g), 0))
        for own in curvature.T:
            rich, last = self.table.rich.rows, len(self.gram) - 1
            weight = np.ascontiguousarray(own)
            yield normal_system(rich, self.rows, 0, last, weight, no_values)[0]


def _newton_step(
    table: FeatureTable,
    weight: Floats,
    loss: Loss,
    curvatures: _Curvatures,
    theta: Floats,
    g: Floats,
    P: _BlockPenalty,
) -> tuple[Floats, Floats, list[list[Floats]]]:
    """Improve every output's parameters.

    Returns these, the predictions, and the diagonal blocks of (H + P)⁻¹ of each H.
    """
    y = table.y
    slope = weight[:, None] * loss.slope(y, g)
    downhill = np.concatenate([slope.sum(axis=0)[None], product(table.rich_by_column, slope)])
    downhill = -(downhill + P.times(theta))
    inverses: list[list[Floats]] = []
    step: Floats = np.empty_like(theta)
    for number, H in enumerate(curvatures.each(g)):
        outputs = slice(None) if loss.quadratic else slice(number, number + 1)
        root = invert_root(factor(P.added(H)))  # its lower triangle is zero
        step[:, outputs] = root @ (root.T @ downhill[:, outputs])
        parts = [root[span, span.start :] for span in P.spans]
        inverses.append([part @ part.T for part in parts])
    towards = step[0] + product(table.rich.rows, step[1:])
    length = np.ones(y.shape[1])

    def value(theta: Floats, g: Floats) -> Floats:
        penalised: Floats = weight @ loss.value(y, g) + 0.5 * np.sum(theta * P.times(theta), axis=0)
        return penalised

    now = value(theta, g)
    for _ in range(MAX_HALVINGS):
        worse = value(theta + length * step, g + length * towards) > now + 1e-12 * np.abs(now)
        if not np.any(worse):
            break
        length[worse] *= 0.5
    return theta + length * step, g + length * towards, inverses
