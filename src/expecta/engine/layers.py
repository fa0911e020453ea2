"""Write a circuit as the flat arrays that kernels read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.circuits.structure import Structure
from expecta.common.arrays import Floats, Ints
from expecta.common.exact_products import product_error

Array = npt.NDArray[Any]

UNIT = 2.0**256  # numbers out of range are kept as a number near one times a power of this
TINY = 2.0**-256
LOG_UNIT = 256 * float(np.log(2.0))
_LOG_UNIT_LOST = 256 * 2.3190468138462996e-17  # by which log 2 exceeds its float


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


class WeightedLayers(NamedTuple):
    """The same for p, with its parameters: θ = mantissa · 2^(256 exponent)."""

    tree_left: Array
    tree_right: Array
    variable: Array
    node_start: Array
    element_start: Array
    left: Array
    right: Array
    edge_start: Array
    target: Array
    cardinality: Array  # (vtree nodes,) number of values of a leaf's variable; above: 0
    mantissa: Array  # (edges,)
    exponent: Array  # (edges,)
    has_exponents: Array  # (vtree nodes,) whether any exponent of an inner layer is not zero


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


def weighted_layers(p: ProbabilisticCircuit) -> WeightedLayers:
    """Write p, its edges in the order of its structure."""
    s, tree = p.structure, p.vtree
    mantissa, exponent = _scaled(p.log_weight)
    lowest = np.minimum.reduceat(exponent, s.edge_start[s.node_start[:-1]])
    return WeightedLayers(
        *layers(s),
        cardinality=np.where(tree.variable >= 0, s.cardinalities[tree.variable], 0),
        mantissa=mantissa,
        exponent=exponent,
        has_exponents=((lowest < 0) & (tree.variable < 0)).astype(np.uint8),
    )


def scaled_exp(logarithm: Floats, exponent: Floats) -> Floats:
    """Return exp(logarithm) / 2^(256 exponent) to the last digits, however large both are.

    The whole exponent is nearly the logarithm over that of 2^256.
    """
    reduced = logarithm - exponent * LOG_UNIT  # exact, but for what the product loses
    lost = product_error(exponent, LOG_UNIT) + exponent * _LOG_UNIT_LOST
    return np.exp(reduced) * np.exp(-lost)


def number_and_exponent(logarithm: Floats) -> tuple[Floats, Floats]:
    """Return exp(logarithm) as a number near one and the exponent of 2^256."""
    exponent = np.rint(logarithm / LOG_UNIT)
    with np.errstate(over="ignore", invalid="ignore"):
        return scaled_exp(logarithm, exponent), exponent


def _scaled(log_weight: Floats) -> tuple[Floats, Floats]:
    """Return mantissa and exponent of weights of at most about one."""
    finite = np.where(log_weight > -np.inf, log_weight, 0.0)
    exponent = np.minimum(np.ceil(finite / LOG_UNIT), 0.0) + 0.0
    return scaled_exp(log_weight, exponent), exponent
