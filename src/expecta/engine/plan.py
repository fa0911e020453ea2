"""Compile a circuit pair: everything that does not depend on the rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.circuits.regression import RegressionCircuit
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Floats, Ints
from expecta.engine.layers import Layers, WeightedLayers, layers, weighted_layers
from expecta.engine.pairing import Pairing, no_pairs, pairing


@dataclass(frozen=True, eq=False)
class Plan:
    """A compiled pair, or p alone. Immutable; several threads may use it at once."""

    vtree: Vtree
    cardinalities: Ints
    p: WeightedLayers
    g: Layers
    phi: Floats  # (edges of g, outputs)
    pairs: Pairing
    order: Ints  # a walk of the vtree, children first, that keeps few layers alive

    @classmethod
    def of(cls, p: ProbabilisticCircuit, g: RegressionCircuit | None) -> Plan:
        """Compile. Cost: edges of p times edges of g per vtree node."""
        structure = p.structure if g is None else g.structure
        return cls(
            vtree=p.vtree,
            cardinalities=p.cardinalities,
            p=weighted_layers(p),
            g=layers(structure),
            phi=np.zeros((structure.n_edges, 0)) if g is None else g.weight,
            pairs=no_pairs(p.structure) if g is None else pairing(p.structure, structure),
            order=children_first(p.vtree),
        )

    @cached_property
    def scaled(self) -> bool:
        """Whether a parameter of p has an exponent."""
        return bool(np.any(self.p.exponent))

    @property
    def n_joins(self) -> int:
        """How many pairs of AND gates a row costs."""
        return len(self.pairs.join_left)


def children_first(vtree: Vtree) -> Ints:
    """Order the vtree nodes children first, the larger child before the smaller."""
    order: list[int] = []
    todo = [vtree.root]
    while todo:  # parents first, the smaller child first; then turned round
        v = todo.pop()
        order.append(v)
        if vtree.variable[v] < 0:
            a, b = int(vtree.left[v]), int(vtree.right[v])
            todo += [b, a] if vtree.size[a] < vtree.size[b] else [a, b]
    return np.array(order[::-1])
