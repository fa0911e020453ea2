"""All parameters at once: Newton's method, its systems by preconditioned conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from expecta.common.arrays import Floats
from expecta.learn.regression.features import Sparse
from expecta.learn.regression.losses import Loss

__all__ = ["Problem", "minimise"]

STEPS = 40  # of Newton's method, at most
INNER = 500, 10  # iterations of conjugate gradients per step, at most; for a rough solution
ENOUGH = 1e-4  # share of the promised drop that a step must bring
HALVINGS = 30
ROUGH = 0.1  # share of the residual that is left where a rough solution is enough
FAR = 50.0  # of a row, at most: where a loss is nearly straight its curvature promises too much
LEAST = 1e-9  # curvature of a row, where a loss is flat


class Problem(NamedTuple):
    """A convex loss of a sparse linear model, with a quadratic penalty."""

    by_row: Sparse  # (rows, parameters)
    by_column: Sparse  # its transpose
    y: Floats  # (rows, outputs)
    weight: Floats  # (rows,)
    loss: Loss
    penalty: Callable[[Floats], Floats]  # θ -> Pθ
    precondition: Callable[[Floats], Callable[[Floats], Floats]]  # curvature -> (θ -> ~H⁻¹θ)
    offset: Floats | float = 0.0  # of the predictions  (rows, outputs)

    def value(self, theta: Floats, g: Floats) -> Floats:
        """Penalised loss, per output."""
        found: Floats = self.weight @ self.loss.value(self.y, g)
        found += 0.5 * np.sum(theta * self.penalty(theta), axis=0)
        return found


def minimise(
    problem: Problem,
    theta: Floats,
    *,
    tolerance: float = 1e-8,
    enough: float = 0.0,
    steps: int = STEPS,
) -> Floats:
    """Find the parameters of least penalised loss, from ``theta`` or zero, whichever is better.

    Stops when the gradient has fallen to ``tolerance`` of its norm at zero, or when a step
    promised a drop of less than ``enough`` of the loss; if that is more than none, steps are
    found roughly. An iteration of conjugate gradients
    costs two products with the features.  # (parameters, outputs)
    """
    weight = problem.weight[:, None]
    g = problem.offset + problem.by_row @ theta
    zero = np.zeros_like(g) + problem.offset
    at_zero = problem.loss.slope(problem.y, zero)
    size = np.linalg.norm(problem.by_column @ (weight * at_zero), axis=0) + 1e-300
    bad = problem.value(theta, g) > problem.value(np.zeros_like(theta), zero)
    theta, g = np.where(bad, 0.0, theta), np.where(bad, zero, g)
    now = problem.value(theta, g)
    before = np.inf
    rough = enough > 0
    for _ in range(steps):
        by_g = problem.loss.slope(problem.y, g)
        slope = problem.by_column @ (weight * by_g) + problem.penalty(theta)
        far = float(np.max(np.linalg.norm(slope, axis=0) / size))
        if far <= tolerance or (far >= 0.999 * before and far < 1e3 * tolerance):
            break
        before = far
        curvature = problem.loss.curvature(problem.y, g)
        if not problem.loss.quadratic:
            curvature = np.maximum(curvature, np.maximum(np.abs(by_g) / FAR, LEAST))
        curvature *= weight
        # a quadratic could be solved at once; others are solved as well as the step deserves
        share = tolerance / far
        share = 0.5 * share if problem.loss.quadratic else min(max(far, 0.1 * share), 0.1)
        share = max(share, ROUGH) if rough else share
        step = _solve(problem, curvature, -slope, share, INNER[rough])
        towards = problem.by_row @ step
        promised = np.sum(step * slope, axis=0)  # negative: the step goes down
        length = np.ones(len(promised))
        for _ in range(HALVINGS):  # each output has its own length: they are separate problems
            value = problem.value(theta + length * step, g + length * towards)
            worse = value > now + ENOUGH * length * promised + 1e-12 * np.abs(now)
            if not np.any(worse):
                break
            length[worse] *= 0.5
        theta, g = theta + length * step, g + length * towards
        now = problem.value(theta, g)
        if -0.5 * promised.sum() < enough * now.sum():
            break
    return theta


def _solve(
    problem: Problem, curvature: Floats, wanted: Floats, tolerance: float, most: int
) -> Floats:
    """Solve (AᵀCA + P) x = wanted for every output, to a share of the residual's norm."""
    precondition = problem.precondition(curvature)
    x = np.zeros_like(wanted)
    residual = wanted.copy()
    towards = near = precondition(residual)
    power = np.sum(residual * near, axis=0)
    goal = tolerance * np.linalg.norm(wanted, axis=0)
    for _ in range(most):
        if np.all(np.linalg.norm(residual, axis=0) <= goal):
            break
        image = problem.by_column @ (curvature * (problem.by_row @ towards))
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
