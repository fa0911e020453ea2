"""Choose how smooth the table of each column is, by restricted maximum likelihood.

The additive model of all rows is one of random effects: the parameters of a column's table are
normal, with precision P = size · identity + Σ strength · form of the curve. Strengths are found by
the fixed point of Fellner and Schall (Wood and Fasiolo, "A generalized Fellner-Schall method for
smoothing parameter optimization", 2017), with one Newton step of the parameters per step of it::

    strength ← strength · (tr(P⁻¹ form) - tr((H + P)⁻¹ form)) / (θᵀ form θ / dispersion)

summed over outputs; H is the curvature of the loss. The size is chosen likewise, one for all
columns. It converges slowly, so each logarithm is extrapolated (Aitken): a step that is a factor
shorter than the one before goes on to where steps of that factor would end. A form that explains
nothing grows without bound: an atom then is where the curve is, and a curve is straight.
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
MAX_STEPS = 10  # of the fixed point
MIN_CHANGE = 0.05  # of the logarithm of a strength, below which it stands
MAX_STEP = float(np.log(30.0))  # of the logarithm of a strength
MAX_SHRINKING = 2 / 3  # factor between steps: a step is three times as long at most
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
    theta: Floats = np.zeros((n, k))
    theta[0] = loss.start(y, weight)
    g = np.tile(theta[0], (len(y), 1))
    no_values = np.empty((len(y), 0))
    gram, _ = normal_system(table.rich.rows, rows, 0, n - 1, weight, no_values)
    curvatures = _Curvatures(table, rows, weight, loss, gram)
    logs, step = np.zeros((2, 1 + sum(len(curve.forms) for curve in curves)))
    limits = np.log([SIZES, *[STRENGTHS] * (len(logs) - 1)]).T
    for _ in range(MAX_STEPS):
        P = _BlockPenalty.of(first, curves, np.exp(logs))
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
        explained = [(sum(map(np.trace, fixed)), np.sum(scaled[1:] ** 2))]  # by size and forms
        for span, curve, part in zip(P.spans[1:], curves, fixed, strict=True):
            of = scaled[span]
            explained += [(np.sum(part * form), np.sum(of * (form @ of))) for form in curve.forms]
        degrees, squares = np.array(explained).T
        ratio = np.maximum(k * degrees, 1e-12) / np.maximum(squares, 1e-300)
        before, step = step, np.clip(np.log(ratio), -MAX_STEP, MAX_STEP)
        shrinks = np.divide(step, before, out=np.zeros_like(step), where=before != 0.0)
        longer = step / (1.0 - np.clip(shrinks, 0.0, MAX_SHRINKING))
        moved = np.clip(logs + np.clip(longer, -MAX_STEP, MAX_STEP), *limits)
        still = np.max(np.abs(moved - logs)) < MIN_CHANGE
        logs = moved
        if still:
            break
    chosen = _BlockPenalty.of(first, curves, _rounded(np.exp(logs)))
    return Smoothing(np.asarray(scipy.linalg.block_diag(*chosen.blocks)), gram, theta)


class _BlockPenalty(NamedTuple):
    """The penalty of a constant and of all tables, block by block."""

    spans: list[slice]
    blocks: list[Floats]

    @classmethod
    def of(cls, first: Ints, curves: Sequence[Curve], strengths: Floats) -> _BlockPenalty:
        """Make it of the size's strength and those of all forms, curve by curve."""
        spans = [slice(0, 1), *(slice(a, b) for a, b in itertools.pairwise(first.tolist()))]
        size, *each = strengths.tolist()
        of_form = iter(each)
        blocks = [np.array([[FREE]])]
        for curve in curves:
            forms = (next(of_form) * form for form in curve.forms)
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


def _rounded(strengths: Floats) -> Floats:
    """Round to an eighth of a power of two: rows in another order sum up to the last bit alike."""
    return np.asarray(2.0 ** (np.round(8 * np.log2(strengths)) / 8))


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
