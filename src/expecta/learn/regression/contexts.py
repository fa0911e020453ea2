"""Keep the parameters of a growing circuit: additive models over contexts, boxes of rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.sparse import csr_array

from expecta.common.arrays import Floats, Ints
from expecta.learn.regression.cholesky import factor
from expecta.learn.regression.curves import Curve
from expecta.learn.regression.row_features import (
    FeatureTable,
    RowFeatures,
    SparseRows,
    normal_sums,
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
        return self.sparse(curves, constant).dense()

    def sparse(self, curves: Sequence[Curve], constant: float) -> SparseRows:
        """Return the same, sparse."""
        lengths: list[Ints] = [np.ones(1, np.int32)]
        indices: list[Ints] = [np.zeros(1, np.int32)]
        data: list[Floats] = [np.array([constant])]
        first = 1
        for curve in curves:
            if not curve.size:
                continue
            form = curve.entries
            lengths.append(form.lengths)
            indices.append(first + form.columns)
            data.append(self.size * form.diagonal + self.bends * form.bends)
            first += curve.size
        start = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int32)
        return SparseRows(start, np.concatenate(indices), np.concatenate(data))

    def times(self, factor: float) -> Shrinkage:
        """Pull a multiple as strongly."""
        return Shrinkage(factor * self.size, factor * self.bends)


@dataclass(eq=False)
class ContextModel:
    """An additive model over a box of rows: a constant, and tables of chosen variables."""

    positions: Ints  # of the variables with a table, in the order of the vtree's leaves
    bases: list[Floats]  # of these tables  (values, parameters) each
    block: SparseRows  # its features by columns: a constant, then those of each table
    gram: Floats | None  # sums over pairs (i, j) of features, i <= j; None where there are too many
    penalty: SparseRows
    theta: Floats  # (parameters, outputs)
    factors: dict[float, Floats] | None = None  # by curvature, where they are worth keeping

    def system(self, curvature: float) -> Floats:
        """Return the system of this context alone, all else fixed, for rows of one curvature.

        It is the Cholesky factor U of the matrix UᵀU, or the diagonal where it would be too large.
        """
        if self.gram is None:
            start = self.block.start
            weight = np.add.reduceat(np.append(self.block.data**2, 0.0), start[:-1])
            weight *= np.diff(start) > 0
            return np.asarray(curvature * weight + self.penalty.diagonal())
        if self.factors is not None and curvature in self.factors:
            return self.factors[curvature]
        matrix = curvature * self.gram
        matrix[self.penalty.rows, self.penalty.columns] += self.penalty.data
        upper = factor(matrix)
        if self.factors is not None:
            self.factors[curvature] = upper
        return upper


class ContextModels:
    """The context models of a growing circuit over one table of features.

    With ``one_curvature`` rows always have the same mean curvature, and systems are kept.
    """

    def __init__(
        self,
        features: RowFeatures,
        curves: Sequence[Curve],
        weight: Floats,
        by_column: csr_array,
        *,
        one_curvature: bool = False,
    ) -> None:
        self.features, self.curves, self.weight = features, curves, weight
        self._by_column, self._one_curvature = by_column, one_curvature
        self.all: list[ContextModel] = []
        self._joined: list[ContextModel] = []  # whose systems are in the buffer, for a curvature
        self._curvature, self._buffer = np.nan, np.empty(0)

    def add(
        self, rows: Ints, positions: Ints, shrinkage: Shrinkage, constant: float, k: int
    ) -> int:
        """Add a context of these rows with tables of these variables; returns its number."""
        first = self.features.first
        ranges = [np.arange(first[position], first[position + 1]) for position in positions]
        columns = np.concatenate([np.zeros(0, np.int64), *ranges])
        inside = np.zeros(len(self.features), np.bool_)
        inside[rows] = True
        hot = np.flatnonzero(inside).astype(np.int32)
        constants = SparseRows(np.array([0, len(hot)], np.int32), hot, np.ones(len(hot)))
        block = SparseRows.stacked([constants, restricted(self._by_column, columns, inside)])
        penalty = shrinkage.sparse([self.curves[position] for position in positions], constant)
        gram = self._gram(rows, columns) if len(columns) < MAX_DENSE else None
        theta = np.zeros((1 + len(columns), k))
        bases = [self.curves[position].basis for position in positions]
        factors: dict[float, Floats] | None = {} if self._one_curvature else None
        self.all.append(ContextModel(positions, bases, block, gram, penalty, theta, factors))
        return len(self.all) - 1

    def add_shared(self, table: FeatureTable, smoothing: Smoothing) -> None:
        """Add the context of all rows, with rich tables as smooth as was chosen."""
        n = np.int32(len(table.y))
        constants = SparseRows(np.array([0, n], np.int32), np.arange(n), np.ones(n))
        rich = SparseRows.of(table.rich_by_column)
        self.all.append(
            ContextModel(
                positions=np.arange(len(table.curves)),
                bases=[curve.rich for curve in table.curves],
                block=SparseRows.stacked([constants, rich]),
                gram=smoothing.gram,
                penalty=smoothing.sparse_penalty,
                theta=smoothing.theta.copy(),
                factors=smoothing.factors if self._one_curvature else None,
            )
        )

    def _gram(self, rows: Ints, columns: Ints) -> Floats:
        """Return weighted sums over pairs of a context's features, its constant first."""
        low, high = (int(columns[0]), int(columns[-1]) + 1) if len(columns) else (0, 0)
        no_values = np.empty((len(self.weight), 0))
        gram, _ = normal_sums(self.features.rows, rows, low, high, self.weight, no_values)
        chosen = np.concatenate([[0], columns - low + 1])
        return np.asarray(gram[chosen[:, None], chosen])

    # -- all contexts as one ----------------------------------------------------------

    @property
    def theta(self) -> Floats:
        """All parameters.  # (parameters, outputs)."""
        return np.concatenate([context.theta for context in self.all])

    @theta.setter
    def theta(self, value: Floats) -> None:
        for context, span in zip(self.all, self._spans, strict=True):
            context.theta = value[span]

    @property
    def _spans(self) -> list[slice]:
        """The parameters of each context."""
        first = np.cumsum([0, *(len(context.theta) for context in self.all)]).tolist()
        return [slice(*pair) for pair in itertools.pairwise(first)]

    def matrix(self) -> csr_array:
        """Return all features by columns."""
        stacked = SparseRows.stacked([context.block for context in self.all])
        return stacked.array(len(self.features))

    def penalty(self) -> csr_array:
        """Return all penalties as one matrix."""
        parts = [context.penalty for context in self.all]
        shifts = [span.start for span in self._spans]
        stacked = SparseRows.stacked(parts, shifts)
        return stacked.array(len(stacked.start) - 1)

    def precondition(self, curvature: Floats) -> Callable[[Floats], Floats]:
        """Solve every context on its own, all outputs by their mean curvature."""
        mean = self._mean(curvature)
        systems = [context.system(mean) for context in self.all]
        spans = self._spans

        def apply(theta: Floats) -> Floats:
            out = np.empty_like(theta)
            for span, system in zip(spans, systems, strict=True):
                if system.ndim == 1:
                    out[span] = theta[span] / system[:, None]
                else:
                    solved, _ = scipy.linalg.lapack.dpotrs(system.T, theta[span], lower=1)
                    out[span] = solved
            return out

        return apply

    def blocks(self, curvature: Floats) -> tuple[Ints, Ints, Floats]:
        """Return the same systems, for a kernel to solve.

        See `newton_kernels.conjugate_gradients`. They are joined in a buffer, in which systems stay
        as long as they are the same.
        """
        mean = self._mean(curvature)
        if mean != self._curvature:
            self._joined, self._curvature = [], mean
        pairs = zip(self._joined, self.all, strict=False)
        same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] is pair[1], pairs))
        sizes = [len(c.theta) ** (1 if c.gram is None else 2) for c in self.all]
        start = np.cumsum([0, *sizes])
        if len(self._buffer) < start[-1]:
            larger = np.empty(2 * int(start[-1]))
            larger[: start[same]] = self._buffer[: start[same]]
            self._buffer = larger
        for number in range(same, len(self.all)):
            system = self.all[number].system(mean)
            self._buffer[start[number] : start[number + 1]] = system.reshape(-1)
        self._joined = list(self.all)
        first = np.cumsum([0, *(len(context.theta) for context in self.all)])
        return first, start, self._buffer

    def _mean(self, curvature: Floats) -> float:
        """Mean curvature of all rows and outputs."""
        return float(curvature.sum() / max(self.weight.sum() * curvature.shape[1], 1e-300))
