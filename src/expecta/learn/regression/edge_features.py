"""Store the edges that rows make hot as sparse features of a circuit's parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse
from scipy.sparse import csr_array

from expecta.circuits.structure import Structure
from expecta.common.arrays import Floats, Ints
from expecta.learn.psdd.fit_psdd import routes
from expecta.learn.regression.row_features import transposed

BATCH_ROWS = 4096  # that are routed at a time


def _hot(structure: Structure, codes: Ints) -> Iterator[tuple[slice, Ints]]:
    """Route the rows batch by batch: the edge of every layer, -1 off the support."""
    for first in range(0, len(codes), BATCH_ROWS):
        batch = slice(first, first + BATCH_ROWS)
        yield batch, routes(structure, codes[batch])  # (layers, rows)


def predict(structure: Structure, weight: Floats, bias: Floats, codes: Ints) -> Floats:
    """Add up hot edges.  # (rows, outputs)."""
    out = np.tile(bias, (len(codes), 1))
    weight = np.concatenate([weight, np.zeros_like(bias)[None]])  # the last is that of edge -1
    for batch, edges in _hot(structure, codes):
        for edge in edges:
            out[batch] += weight[edge]
    return out


@dataclass(frozen=True, eq=False)
class EdgeFeatures:
    """Hot edges as features: how the edge of each layer differs from the layer's usual one.

    The parameters are, in this order: the bias, if there are rows off the support; its sum
    with the usual edges, if there are rows on it; the differences.
    """

    by_row: csr_array
    by_column: csr_array
    some_off: bool
    usual: Ints  # edge of most rows in each layer; none if no row is on the support  (layers,)
    edges: Ints  # the other edges that a row makes hot
    layer: Ints  # of these
    n_edges: int

    @classmethod
    def of(cls, structure: Structure, codes: Ints) -> EdgeFeatures:
        """Route the rows twice: to count, and to write down."""
        count = np.zeros(structure.n_edges + 1, np.int64)  # the last: rows off the support
        for _, edges in _hot(structure, codes):
            count += np.bincount(edges.reshape(-1) % len(count), minlength=len(count))
        layer = structure.layer_of_node[structure.node_of_edge]
        some_off, n_layers = bool(count[-1]), len(structure.vtree)
        best = np.lexsort((-count[:-1], layer))
        usual = best[np.searchsorted(layer, np.arange(n_layers))]
        usual = usual[count[usual] > 0]
        count[usual] = 0
        others = np.flatnonzero(count[:-1])
        constants = some_off + (len(usual) > 0)
        column = np.full(len(count), -1, np.int32)
        column[others] = constants + np.arange(len(others))
        parts = []
        for _, edges in _hot(structure, codes):
            constant = (edges[-1] >= 0) & some_off
            columns = np.concatenate([constant[:, None], column[edges.T]], axis=1)
            kept = columns >= 0
            start = np.append(0, np.cumsum(np.count_nonzero(kept, axis=1)))
            shape = len(kept), constants + len(others)
            parts.append(csr_array((np.ones(start[-1]), columns[kept], start), shape=shape))
        by_row = scipy.sparse.vstack(parts, format="csr")
        by_column = transposed(by_row)
        return cls(by_row, by_column, some_off, usual, others, layer[others], structure.n_edges)

    # -- between parameters of edges and differences ----------------------------------

    @property
    def constants(self) -> int:
        """How many of the parameters are no differences."""
        return int(self.by_column.shape[0]) - len(self.edges)

    @cached_property
    def share(self) -> Floats:
        """One out of how many edges of each layer that rows make hot.  # (layers,)."""
        return np.asarray(1.0 / (1.0 + np.bincount(self.layer, minlength=len(self.usual))))

    @cached_property
    def _mean(self) -> csr_array:
        """Mean difference of each layer as a matrix."""
        at = self.layer, self.constants + np.arange(len(self.layer))
        shape = len(self.usual), self.by_column.shape[0]
        return csr_array((self.share[self.layer], at), shape=shape)

    def differences(self, weight: Floats, bias: Floats) -> Floats:
        """Put the parameters of edges as differences.  # (parameters, outputs)."""
        usual = weight[self.usual]
        constants = [bias, bias + usual.sum(axis=0)][not self.some_off : 1 + (len(usual) > 0)]
        return np.concatenate([constants, weight[self.edges] - usual[self.layer]])

    def parameters(self, theta: Floats) -> tuple[Floats, Floats]:
        """Find the parameters of edges, and bias, of least squares among those that agree."""
        usual = self._excess(theta) * self.share[:, None] - self._mean @ theta
        weight = np.zeros((self.n_edges, theta.shape[1]))
        weight[self.usual] = usual
        weight[self.edges] = theta[self.constants :] + usual[self.layer]
        return weight, theta[0] if self.some_off else theta[0] - usual.sum(axis=0)

    def ridge(self, theta: Floats) -> Floats:
        """Differentiate half the sum of their squares."""
        out = np.zeros_like(theta)
        out[self.constants :] = theta[self.constants :] - (self._mean @ theta)[self.layer]
        if self.constants == 2:
            excess = self._excess(theta)
            out[:2] = np.stack([-excess, excess])
            out[2:] += self.share[self.layer, None] * excess
        return out

    def ridge_diagonal(self) -> Floats:
        """Differentiate twice, each parameter on its own.  # (parameters, 1)."""
        share = self.share[self.layer]
        if self.constants < 2:
            return np.concatenate([[0.0], 1.0 - share])[:, None]
        free = 1.0 / self.share.sum()
        return np.concatenate([[free, free], 1.0 - share + free * share**2])[:, None]

    def _excess(self, theta: Floats) -> Floats:
        """Compute what no shift between bias and layers takes away, per unit of ``share``."""
        if self.constants < 2:  # bias and usual edges are one parameter, or there is no edge
            return np.zeros(theta.shape[1])
        excess = theta[1] - theta[0] + (self._mean @ theta).sum(axis=0)
        return np.asarray(excess / self.share.sum())
