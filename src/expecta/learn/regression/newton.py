"""Fit all parameters at once: Newton's method, by preconditioned conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from expecta.common.arrays import Floats, Ints
from expecta.learn.regression import row_features
from expecta.learn.regression.losses import Loss
from expecta.learn.regression.newton_kernels import conjugate_gradients
from expecta.learn.regression.row_features import SparseRows, product

MAX_STEPS = 40  # of Newton's method
MAX_ITERATIONS, MAX_ROUGH_ITERATIONS = 500, 10  # of conjugate gradients per step
MIN_PROGRESS = 1e-4  # share of the promised drop that a step must bring
MAX_HALVINGS = 30  # of a step
ROUGH_RESIDUAL = 0.1  # share of it that is left where a rough solution is enough
MAX_MOVE = 50.0  # of a row: where a loss is nearly straight its curvature promises too much
MIN_CURVATURE = 1e-9  # of a row, where a loss is flat


class BlockForm(NamedTuple):
    """A penalty as a matrix, and a block-diagonal preconditioner as arrays."""

    penalty: csr_array
    systems: Callable[[Floats], tuple[Ints, Ints, Floats]]  # curvature -> the blocks' systems


class Problem(NamedTuple):
    """A convex loss of a sparse linear model, with a quadratic penalty."""

    by_row: csr_array  # (rows, parameters)
    by_column: csr_array  # its transpose
    y: Floats  # (rows, outputs)
    weight: Floats  # (rows,)
    loss: Loss
    penalty: Callable[[Floats], Floats]  # θ -> Pθ
    precondition: Callable[[Floats], Callable[[Floats], Floats]]  # curvature -> (θ -> ~H⁻¹θ)
    offset: Floats | float = 0.0  # of the predictions  (rows, outputs)
    blocks: BlockForm | None = None  # penalty and preconditioner once more, for a kernel

    @property
    def is_small(self) -> bool:
        """Whether a product with the features is made by a single thread."""
        work = int(self.by_row.indptr[-1]) * self.y.shape[1]
        return work <= row_features.MIN_THREADED_WORK

    def value(self, theta: Floats, g: Floats) -> Floats:
        """Return the penalised loss, per output."""
        loss: Floats = self.weight @ self.loss.value(self.y, g)
        loss += 0.5 * np.sum(theta * self.penalty(theta), axis=0)
        return loss


def minimise(
    problem: Problem,
    theta: Floats,
    *,
    tolerance: float = 1e-8,
    min_drop: float = 0.0,
    max_steps: int = MAX_STEPS,
) -> Floats:
    """Find the parameters of least penalised loss, from ``theta`` or zero, whichever is better.

    Stops when the gradient has fallen to ``tolerance`` of its norm at zero, or when a step
    promised a drop of less than ``min_drop`` of the loss; if that is more than 0, steps are
    found roughly. An iteration of conjugate gradients costs two products with the features.
    # (parameters, outputs)
    """
    weight = problem.weight[:, None]
    g = problem.offset + product(problem.by_row, theta)
    zero = np.zeros_like(g) + problem.offset
    at_zero = problem.loss.slope(problem.y, zero)
    size = np.linalg.norm(product(problem.by_column, weight * at_zero), axis=0) + 1e-300
    bad = problem.value(theta, g) > problem.value(np.zeros_like(theta), zero)
    theta, g = np.where(bad, 0.0, theta), np.where(bad, zero, g)
    now = problem.value(theta, g)
    before = np.inf
    rough = min_drop > 0
    for _ in range(max_steps):
        by_g = problem.loss.slope(problem.y, g)
        slope = product(problem.by_column, weight * by_g) + problem.penalty(theta)
        norm = float(np.max(np.linalg.norm(slope, axis=0) / size))
        if norm <= tolerance or (norm >= 0.999 * before and norm < 1e3 * tolerance):
            break
        before = norm
        curvature = problem.loss.curvature(problem.y, g)
        if not problem.loss.quadratic:
            curvature = np.maximum(curvature, np.maximum(np.abs(by_g) / MAX_MOVE, MIN_CURVATURE))
        curvature *= weight
        # a quadratic could be solved at once; others are solved as well as the step deserves
        share = tolerance / norm
        share = 0.5 * share if problem.loss.quadratic else min(max(norm, 0.1 * share), 0.1)
        share = max(share, ROUGH_RESIDUAL) if rough else share
        iterations = MAX_ROUGH_ITERATIONS if rough else MAX_ITERATIONS
        step = _solve(problem, curvature, -slope, share, iterations)
        towards = product(problem.by_row, step)
        promised = np.sum(step * slope, axis=0)  # negative: the step goes down
        length = np.ones(len(promised))
        for _ in range(MAX_HALVINGS):  # each output has its own length: they are separate problems
            value = problem.value(theta + length * step, g + length * towards)
            worse = value > now + MIN_PROGRESS * length * promised + 1e-12 * np.abs(now)
            if not np.any(worse):
                break
            length[worse] *= 0.5
        theta, g = theta + length * step, g + length * towards
        now = problem.value(theta, g)
        if -0.5 * promised.sum() < min_drop * now.sum():
            break
    return theta


def _solve(
    problem: Problem, curvature: Floats, wanted: Floats, tolerance: float, max_iterations: int
) -> Floats:
    """Solve (AᵀCA + P) x = wanted for every output, to a share of the residual's norm."""
    if problem.blocks is not None and problem.is_small:
        solution = np.empty_like(wanted.T, order="C")
        conjugate_gradients(
            SparseRows.of(problem.by_row),
            SparseRows.of(problem.blocks.penalty),
            problem.blocks.systems(curvature),
            np.ascontiguousarray(curvature.T),
            tolerance * np.linalg.norm(wanted, axis=0),
            max_iterations,
            np.array(wanted.T, order="C"),
            solution,
        )
        return np.ascontiguousarray(solution.T)
    precondition = problem.precondition(curvature)
    x = np.zeros_like(wanted)
    residual = wanted.copy()
    towards = near = precondition(residual)
    power = np.sum(residual * near, axis=0)
    goal = tolerance * np.linalg.norm(wanted, axis=0)
    for _ in range(max_iterations):
        if np.all(np.linalg.norm(residual, axis=0) <= goal):
            break
        image = product(problem.by_column, curvature * product(problem.by_row, towards))
        image += problem.penalty(towards)
        bend = np.sum(towards * image, axis=0)
        length = np.divide(power, bend, out=np.zeros_like(power), where=bend > 0)
        x += length * towards
        residual -= length * image
        near = precondition(residual)
        after = np.sum(residual * near, axis=0)
        turn = np.divide(after, power, out=np.zeros_like(power), where=power > 0)
        towards = near + turn * towards
        power = after
    return x
