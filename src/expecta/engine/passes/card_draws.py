"""Put p on a card for draws: what :mod:`.choices` reads here; ``draws.cu`` draws there."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.common.arrays import Ints
from expecta.engine.cuda.devices import Device
from expecta.engine.layers import WeightedLayers, weighted_layers

Array = npt.NDArray[Any]


class CardCircuit:
    """The layers of p on a device.

    Attributes
    ----------
    lists
        Arguments of a kernel, up to the sums of leaves; the sizes of a block's room follow.
    numbers
        How many numbers of 8 bytes the room of a block takes, and how many of 4.
    scaled
        Whether parameters have exponents.
    """

    def __init__(self, device: Device, circuit: ProbabilisticCircuit) -> None:
        p = weighted_layers(circuit)
        put, n = device.put, len(p.variable)
        width = np.diff(p.node_start)
        edge_at = p.edge_start[p.node_start]
        leaf, value_edge, values_at = p.variable >= 0, *_edges_by_value(p)
        fields = [
            p.variable,
            np.where(leaf, 0, p.tree_left),
            np.where(leaf, 0, p.tree_right),
            p.node_start[:-1],
            width,
            p.element_start[:-1],
            np.diff(p.element_start),
            values_at,
        ]
        most_edges = int(np.diff(edge_at)[~leaf].max(initial=1))
        most_elements = int(np.diff(p.element_start).max(initial=1))
        n_nodes = int(p.node_start[-1])
        self.scaled = bool(np.any(p.exponent != 0.0))
        self.code = np.dtype(np.int16 if p.cardinality.max() < 1 << 15 else np.int32)
        weights = put(p.edge_start.astype(np.int32)), put(p.mantissa), put(p.exponent)
        sums = [device.empty(size, np.float64) for size in (n_nodes, n_nodes, len(p.target))]
        self._sum_leaves = (
            put(np.flatnonzero(np.repeat(leaf, width)).astype(np.int32)),
            np.int32(width[leaf].sum()),
            *weights,
            *sums,
        )
        self.lists = (
            put(np.stack(fields, 1).astype(np.int64)),
            np.int32(n),
            put(np.stack([p.left, p.right], 1).astype(np.int32)),
            weights[0],
            put(p.target.astype(np.int32)),
            *weights[1:],
            put(value_edge),
            *sums,
            *(np.int64(size) for size in (n_nodes, most_elements, most_edges)),
        )
        self.numbers = 2 * n_nodes + 2 * most_elements + most_edges, n + n_nodes
        self.n_layers = n

    def sum_leaves(self, device: Device, kernel: Any) -> None:
        """Compute what leaves are where nothing is known, once."""
        device.launch(kernel, (-(-int(self._sum_leaves[1]) // 256), 1, 1), self._sum_leaves)


def _edges_by_value(p: WeightedLayers) -> tuple[Array, Ints]:
    """List the edge of each value and node of leaves, -1 if none, and where each leaf begins."""
    width = np.diff(p.node_start)
    size = np.where(p.variable >= 0, width * p.cardinality, 0)
    at = np.append(0, np.cumsum(size))
    node = np.repeat(np.arange(len(p.edge_start) - 1), np.diff(p.edge_start))
    layer = np.repeat(np.arange(len(width)), width)[node]
    edge = np.flatnonzero(p.variable[layer] >= 0)
    node, layer = node[edge], layer[edge]
    table = np.full(max(1, int(at[-1])), -1, np.int32)
    table[at[layer] + p.target[edge] * width[layer] + node - p.node_start[layer]] = edge
    return table, at[:-1]
