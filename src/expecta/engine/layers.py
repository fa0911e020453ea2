"""A circuit's structure as kernels read it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.circuits.structure import Structure
from expecta.common.arrays import Ints

__all__ = ["Layers", "layers"]

Array = npt.NDArray[Any]


class Layers(NamedTuple):
    """A structure as a kernel reads it: children and elements counted within their layer."""

    tree_left: Array
    tree_right: Array
    variable: Array
    node_start: Array
    element_start: Array
    left: Array
    right: Array
    edge_start: Array
    target: Array


def layers(structure: Structure) -> Layers:
    """Turn global numbers into numbers within the layer."""
    s, tree = structure, structure.vtree

    def local(values: Ints, start: Ints) -> Array:
        return np.ascontiguousarray(values - start, dtype=np.int32)

    layer = s.layer_of_element
    first = np.where(s.edge_at_leaf, 0, s.element_start[s.layer_of_node[s.node_of_edge]])
    return Layers(
        tree.left,
        tree.right,
        tree.variable,
        s.node_start,
        s.element_start,
        local(s.left, s.node_start[tree.left[layer]]),
        local(s.right, s.node_start[tree.right[layer]]),
        s.edge_start,
        local(s.target, first),
    )
