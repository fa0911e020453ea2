"""Rows to learn a circuit from: complete, or completed several times."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.circuits.regression import RegressionCircuit
from expecta.common.arrays import Floats, Ints
from expecta.learn.regression import Loss


class Seeds(NamedTuple):
    """A seed for each thing that is drawn."""

    density: int
    folds: int
    completions: int
    calibration: int

    @classmethod
    def of(cls, random_state: Any) -> Seeds:
        """Derive them from scikit-learn's kind of seed."""
        if isinstance(random_state, np.random.RandomState | np.random.Generator):
            draw = getattr(random_state, "integers", getattr(random_state, "randint", None))
            random_state = int(draw(2**31 - 1))  # type: ignore[misc]
        rng = np.random.default_rng(random_state)
        return cls(*(int(seed) for seed in rng.integers(2**31 - 1, size=len(cls._fields))))


class Training(NamedTuple):
    """Complete rows to learn a circuit from."""

    codes: Ints  # (rows, variables)
    origin: Ints  # (rows,) row of the table; an incomplete one is completed several times
    weight: Floats  # (rows,)
    fold: Ints | None  # (rows,)
    times: Ints  # (rows,) how many completions the row has

    def given_target(self, y: Floats, g: RegressionCircuit, loss: Loss, before: Floats) -> Floats:
        """Weigh the completions of a row by how well they go with its target.

        A row's known inputs say what its unknown ones may be, and so does its target. The
        weight of a row stays what it was; ``before`` are the weights that g has learned from.
        """
        value = g(self.codes).reshape(len(self.codes), -1)
        target = y[self.origin]
        dispersion = loss.dispersion(target, value, before)
        far = np.sum(loss.value(target, value) / np.maximum(dispersion, 1e-300), axis=1)
        least = np.full(len(y), np.inf)
        np.minimum.at(least, self.origin, far)
        likely = self.weight * np.exp(least[self.origin] - far)
        total = np.bincount(self.origin, likely, len(y))[self.origin]
        return likely / total * self.weight * self.times

    def noise(self, y: Floats, folds: list[RegressionCircuit]) -> float:
        """Size of what circuits leave unexplained of the folds that they did not see."""
        assert self.fold is not None
        residual = np.zeros(len(self.fold))
        for number, g in enumerate(folds):
            out = self.fold == number
            residual[out] = y[self.origin[out]] - g(self.codes[out])
        return size(residual, np.where(self.fold >= 0, self.weight, 0.0))


def completed(p: ProbabilisticCircuit, codes: Ints, n: int, seed: int) -> Ints:
    """Draw completions of rows, n of each; those of probability zero as if nothing were known."""
    rng = np.random.default_rng(seed)
    possible = np.isfinite(p.log_prob(codes))
    evidence = np.where(possible[:, None], codes, -1).astype(np.int32)
    drawn = p.sample(n, given=evidence, seed=rng).reshape(-1, codes.shape[1])
    known = np.repeat(codes, n, axis=0)
    return np.where(known >= 0, known, drawn).astype(np.int32)


def size(values: Floats, weight: Floats) -> float:
    """Root of the weighted mean square, of numbers whose squares may leave the range of floats."""
    most = float(np.abs(values).max(initial=0.0)) or 1.0
    return most * float(np.sqrt(np.average((values / most) ** 2, weights=weight)))
