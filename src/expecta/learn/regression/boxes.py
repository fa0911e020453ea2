"""Additive models over boxes of rows: the parameters of a growing circuit and their fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse

from expecta.common.arrays import Bools, Floats, Ints
from expecta.learn.regression.curves import Curve
from expecta.learn.regression.features import Features, Sparse, joined

__all__ = ["Box", "Boxes", "Shrinkage"]

DENSE = 1200  # parameters of a box up to which its own system is solved exactly


@dataclass(frozen=True)
class Shrinkage:
    """How strongly parameters are pulled to zero, and curves to straight lines."""

    size: float
    bends: float

    def of(self, curves: Sequence[Curve], constant: float) -> Floats:
        """Quadratic form for a constant and the tables of some variables, dense."""
        parts = [self.size * np.eye(curve.size) + self.bends * curve.penalty for curve in curves]
        found: Floats = scipy.linalg.block_diag([[constant]], *parts)
        return found


@dataclass(eq=False)
class Box:
    """An additive model over some rows: a constant, and a table for each of some variables."""

    places: Ints  # of the variables, in the order of the vtree's leaves
    block: Sparse  # its features by columns: a constant, then those of each table
    gram: Floats | None  # sums over pairs of features; None where there are too many
    penalty: scipy.sparse.csr_array
    theta: Floats  # (parameters, outputs)

    def system(self, curvature: float) -> Callable[[Floats], Floats]:
        """Return the solution of this box alone, all else fixed, for rows of one curvature."""
        if self.gram is None:
            weight = np.add.reduceat(
                np.append(self.block.amount**2, 0.0), self.block.start[:-1]
            ) * (np.diff(self.block.start) > 0)
            diagonal = curvature * weight + self.penalty.diagonal()
            return lambda theta: theta / diagonal[:, None]
        matrix = curvature * self.gram + self.penalty.toarray()
        factor = scipy.linalg.cho_factor(matrix, check_finite=False)
        return lambda theta: scipy.linalg.cho_solve(factor, theta, check_finite=False)


class Boxes:
    """The boxes of a growing circuit over one table of features."""

    def __init__(
        self, features: Features, curves: Sequence[Curve], weight: Floats, by_column: Sparse
    ) -> None:
        self.features, self.curves, self.weight = features, curves, weight
        self._by_column = by_column
        self.all: list[Box] = []

    def add(self, rows: Ints, places: Ints, shrinkage: Shrinkage, constant: float, k: int) -> int:
        """Add a box over some rows with tables for some variables; returns its number."""
        first = self.features.first
        ranges = [np.arange(first[place], first[place + 1]) for place in places]
        columns = np.concatenate([np.zeros(0, np.int64), *ranges])
        inside = np.zeros(len(self.features), np.bool_)
        inside[rows] = True
        ones = Sparse(
            np.array([0, len(rows)], self._by_column.start.dtype),
            np.sort(rows).astype(self._by_column.index.dtype),
            np.ones(len(rows)),
            self._by_column.width,
        )
        block = joined([ones, self._by_column.picked(columns, inside)])
        penalty = shrinkage.of([self.curves[place] for place in places], constant)
        gram = self._gram(rows, columns) if len(columns) < DENSE else None
        theta = np.zeros((1 + len(columns), k))
        self.all.append(Box(places, block, gram, scipy.sparse.csr_array(penalty), theta))
        return len(self.all) - 1

    def _gram(self, rows: Ints, columns: Ints) -> Floats:
        """Weighted sums over pairs of a box's features, its constant first."""
        low, high = (int(columns[0]), int(columns[-1]) + 1) if len(columns) else (0, 0)
        nothing = np.empty((len(self.weight), 0))
        gram, _ = self.features.rows.system(rows, low, high, self.weight, nothing)
        chosen = np.concatenate([[0], columns - low + 1])
        found: Floats = gram[np.ix_(chosen, chosen)]
        return found

    # -- all boxes as one -------------------------------------------------------------

    @property
    def theta(self) -> Floats:
        """All parameters.  # (parameters, outputs)."""
        return np.concatenate([box.theta for box in self.all])

    @theta.setter
    def theta(self, value: Floats) -> None:
        cuts = np.cumsum([len(box.theta) for box in self.all])[:-1]
        for box, theta in zip(self.all, np.split(value, cuts), strict=True):
            box.theta = theta

    def matrix(self) -> Sparse:
        """All features by columns."""
        return joined([box.block for box in self.all])

    def penalty(self) -> Callable[[Floats], Floats]:
        """All penalties as one product."""
        matrix = scipy.sparse.block_diag([box.penalty for box in self.all], format="csr")
        return lambda theta: matrix @ theta

    def precondition(self, curvature: Floats) -> Callable[[Floats], Floats]:
        """Solve every box on its own, all outputs by their mean curvature."""
        mean = curvature.sum() / max(self.weight.sum() * curvature.shape[1], 1e-300)
        systems = [box.system(mean) for box in self.all]
        cuts = np.cumsum([len(box.theta) for box in self.all])[:-1]

        def apply(theta: Floats) -> Floats:
            parts = np.split(theta, cuts)
            return np.concatenate([solve(part) for solve, part in zip(systems, parts, strict=True)])

        return apply


def allowed_rows(codes: Ints, rows: Ints, place: int, allowed: Bools) -> Bools:
    """Which rows of all are among ``rows`` and have an allowed value of a variable."""
    inside = np.zeros(len(codes), np.bool_)
    inside[rows] = allowed[codes[rows, place]]
    return inside
