"""Keep the parameters of a growing circuit: additive models over contexts, boxes of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse import csr_array

from expecta.common.arrays import Floats, Ints
from expecta.learn.regression.curves import Curve
from expecta.learn.regression.row_features import (
    FeatureTable,
    RowFeatures,
    normal_system,
    restricted,
)
from expecta.learn.regression.smoothness import Smoothing

MAX_DENSE = 1200  # parameters of a context up to which its system is solved exactly


@dataclass(frozen=True)
class Shrinkage:
    """How strongly parameters are pulled to zero, and curves to straight lines."""

    size: float
    bends: float

    def of(self, curves: Sequence[Curve], constant: float) -> Floats:
        """Return the quadratic form of a constant and the tables of variables, dense."""
        parts = [self.size * np.eye(curve.size) + self.bends * curve.penalty for curve in curves]
        return np.asarray(scipy.linalg.block_diag([[constant]], *parts))

    def sparse(self, curves: Sequence[Curve], constant: float) -> csr_array:
        """Return the same, sparse."""
        parts = [self.size * np.eye(curve.size) + self.bends * curve.penalty for curve in curves]
        blocks = [np.array([[constant]]), *(part for part in parts if len(part))]
        matrix = csr_array(scipy.sparse.block_diag(blocks, format="csr"))
        matrix.eliminate_zeros()
        return matrix

    def times(self, factor: float) -> Shrinkage:
        """Pull a multiple as strongly."""
        return Shrinkage(factor * self.size, factor * self.bends)


@dataclass(eq=False)
class ContextModel:
    """An additive model over a box of rows: a constant, and tables of chosen variables."""

    positions: Ints  # of the variables with a table, in the order of the vtree's leaves
    bases: list[Floats]  # of these tables  (values, parameters) each
    block: csr_array  # its features by columns: a constant, then those of each table
    gram: Floats | None  # sums over pairs of features; None where there are too many
    penalty: csr_array
    theta: Floats  # (parameters, outputs)

    def system(self, curvature: float) -> Callable[[Floats], Floats]:
        """Return the solution of this context alone, all else fixed, for rows of one curvature."""
        if self.gram is None:
            start = self.block.indptr
            weight = np.add.reduceat(np.append(self.block.data**2, 0.0), start[:-1])
            weight *= np.diff(start) > 0
            diagonal = curvature * weight + self.penalty.diagonal()
            return lambda theta: theta / diagonal[:, None]
        matrix = curvature * self.gram + self.penalty.toarray()
        # there are very many small systems: SciPy's own checks would cost more than the solutions
        factor, failed = scipy.linalg.lapack.dpotrf(matrix, lower=1)
        if failed:
            raise np.linalg.LinAlgError("the system of a context is not positive definite")
        return lambda theta: np.asarray(scipy.linalg.lapack.dpotrs(factor, theta, lower=1)[0])


class ContextModels:
    """The context models of a growing circuit over one table of features."""

    def __init__(
        self, features: RowFeatures, curves: Sequence[Curve], weight: Floats, by_column: csr_array
    ) -> None:
        self.features, self.curves, self.weight = features, curves, weight
        self._by_column = by_column
        self.all: list[ContextModel] = []

    def add(
        self, rows: Ints, positions: Ints, shrinkage: Shrinkage, constant: float, k: int
    ) -> int:
        """Add a context of these rows with tables of these variables; returns its number."""
        first = self.features.first
        ranges = [np.arange(first[position], first[position + 1]) for position in positions]
        columns = np.concatenate([np.zeros(0, np.int64), *ranges])
        inside = np.zeros(len(self.features), np.bool_)
        inside[rows] = True
        constants = csr_array(inside[None].astype(np.float64))
        tables = restricted(self._by_column, columns, inside)
        block = scipy.sparse.vstack([constants, tables], format="csr")
        penalty = shrinkage.sparse([self.curves[position] for position in positions], constant)
        gram = self._gram(rows, columns) if len(columns) < MAX_DENSE else None
        theta = np.zeros((1 + len(columns), k))
        bases = [self.curves[position].basis for position in positions]
        self.all.append(ContextModel(positions, bases, block, gram, penalty, theta))
        return len(self.all) - 1

    def add_shared(self, table: FeatureTable, smoothing: Smoothing) -> None:
        """Add the context of all rows, with rich tables as smooth as was chosen."""
        constants = csr_array(np.ones((1, len(table.y))))
        block = scipy.sparse.vstack([constants, table.rich_by_column], format="csr")
        self.all.append(
            ContextModel(
                positions=np.arange(len(table.curves)),
                bases=[curve.rich for curve in table.curves],
                block=block,
                gram=smoothing.gram,
                penalty=smoothing.sparse_penalty,
                theta=smoothing.theta.copy(),
            )
        )

    def _gram(self, rows: Ints, columns: Ints) -> Floats:
        """Return weighted sums over pairs of a context's features, its constant first."""
        low, high = (int(columns[0]), int(columns[-1]) + 1) if len(columns) else (0, 0)
        no_values = np.empty((len(self.weight), 0))
        gram, _ = normal_system(self.features.rows, rows, low, high, self.weight, no_values)
        chosen = np.concatenate([[0], columns - low + 1])
        return np.asarray(gram[np.ix_(chosen, chosen)])

    # -- all contexts as one ----------------------------------------------------------

    @property
    def theta(self) -> Floats:
        """All parameters.  # (parameters, outputs)."""
        return np.concatenate([context.theta for context in self.all])

    @theta.setter
    def theta(self, value: Floats) -> None:
        cuts = np.cumsum([len(context.theta) for context in self.all])[:-1]
        for context, theta in zip(self.all, np.split(value, cuts), strict=True):
            context.theta = theta

    def matrix(self) -> csr_array:
        """Return all features by columns."""
        return scipy.sparse.vstack([context.block for context in self.all], format="csr")

    def penalty(self) -> Callable[[Floats], Floats]:
        """Return all penalties as one product."""
        matrix = scipy.sparse.block_diag([context.penalty for context in self.all], format="csr")
        return lambda theta: matrix @ theta

    def precondition(self, curvature: Floats) -> Callable[[Floats], Floats]:
        """Solve every context on its own, all outputs by their mean curvature."""
        mean = curvature.sum() / max(self.weight.sum() * curvature.shape[1], 1e-300)
        systems = [context.system(mean) for context in self.all]
        cuts = np.cumsum([len(context.theta) for context in self.all])[:-1]

        def apply(theta: Floats) -> Floats:
            parts = np.split(theta, cuts)
            return np.concatenate([solve(part) for solve, part in zip(systems, parts, strict=True)])

        return apply
