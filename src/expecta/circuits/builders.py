"""Build circuits by hand: write the formula, get the layers.

The same two words serve both kinds of circuit. ``leaf`` is a node over one
variable, ``node`` an OR gate over ``(parameter, left, right)``. In a
probabilistic circuit the parameters are probabilities, in a regression circuit
the values that are added where the wire is hot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from expecta.circuits.structure import Structure
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Ints
from expecta.common.errors import StructureError
from expecta.common.text import shortened

Parameter: TypeAlias = "float | Sequence[float]"


@dataclass(frozen=True, eq=False)
class Leaf:
    """A node over one variable: a parameter for each value it allows."""

    variable: int
    values: tuple[tuple[int, Parameter | None], ...]


@dataclass(frozen=True, eq=False)
class SketchedOr:
    """An OR node over elements."""

    elements: tuple[tuple[Parameter, Leaf | SketchedOr, Leaf | SketchedOr], ...]


def leaf(variable: int, parameters: Sequence[Parameter | None]) -> Leaf:
    """Make a node over one variable; ``None`` forbids a value.

    Parameters
    ----------
    variable
        The number of the variable.
    parameters
        One number per value: a probability, or what the value adds to g.

    Returns
    -------
    Leaf
        To be used in `node`.

    Examples
    --------
    >>> leaf(2, [0.5, 0.5]).values
    ((0, 0.5), (1, 0.5))
    """
    allowed = tuple((value, p) for value, p in enumerate(parameters) if p is not None)
    return Leaf(variable, allowed)


def literal(variable: int, value: int) -> Leaf:
    """Make the node that allows one value only, at no cost in either kind of circuit.

    Parameters
    ----------
    variable
        The number of the variable.
    value
        The one value that is possible.

    Returns
    -------
    Leaf
        To be used in `node`.

    Examples
    --------
    >>> from expecta import ProbabilisticCircuit, Vtree
    >>> certain = node((1.0, literal(0, 1), literal(1, 0)))
    >>> ProbabilisticCircuit.build(Vtree.from_nested((0, 1)), certain).log_prob([[1, 0]]).tolist()
    [0.0]
    """
    return Leaf(variable, ((value, None),))


def node(*elements: tuple[Parameter, Leaf | SketchedOr, Leaf | SketchedOr]) -> SketchedOr:
    """Make an OR node over ``(parameter, left, right)`` elements.

    Parameters
    ----------
    *elements
        For each element its parameter, left part and right part.

    Returns
    -------
    SketchedOr
        To be used in `node` and ``build``.

    Examples
    --------
    >>> from expecta import ProbabilisticCircuit, Vtree
    >>> root = node((0.3, literal(0, 1), leaf(1, [0.5, 0.5])), (0.7, literal(0, 0), literal(1, 1)))
    >>> p = ProbabilisticCircuit.build(Vtree.from_nested((0, 1)), root)
    >>> p.properties.deterministic.holds
    True
    """
    for element in elements:
        if not isinstance(element, tuple) or len(element) != 3:
            raise StructureError(f"an element is (parameter, left, right), not {element!r}")
        if not all(isinstance(child, Leaf | SketchedOr) for child in element[1:]):
            raise StructureError("an element's left and right are nodes: leaf, literal or node")
    return SketchedOr(elements)


def assemble(
    vtree: Vtree, root: Leaf | SketchedOr, cardinalities: Sequence[int] | Ints | None
) -> tuple[Structure, list[Parameter | None]]:
    """Lay a formula out along a vtree; returns the structure and each edge's parameter.

    A sub-formula used twice (the same object) becomes one node.
    """
    draft = Draft(vtree, cardinalities)
    number: dict[int, int] = {}  # id of a formula -> its number in the draft
    todo: list[tuple[Leaf | SketchedOr, int, bool]] = [(root, vtree.root, False)]
    while todo:
        item, v, children_done = todo.pop()
        if id(item) in number:
            continue
        if isinstance(item, Leaf):
            number[id(item)] = draft.add_leaf(v, item.variable, item.values)
        elif children_done:
            edges = [(number[id(a)], number[id(b)], w) for w, a, b in item.elements]
            number[id(item)] = draft.add_node(v, edges)
        elif vtree.variable[v] >= 0:
            raise StructureError(
                f"an inner node stands where the vtree has the single variable {vtree.variable[v]}"
            )
        else:
            todo.append((item, v, True))
            for _, a, b in item.elements:
                todo += [(a, int(vtree.left[v]), False), (b, int(vtree.right[v]), False)]
    return draft.finish(number[id(root)])


class Draft:
    """A circuit being written down, children before parents.

    Nodes are known by the number that ``add_leaf`` and ``add_node`` return.
    """

    def __init__(self, vtree: Vtree, cardinalities: Sequence[int] | Ints | None = None) -> None:
        self.vtree = vtree
        self._cardinalities = cardinalities
        self._layer: list[int] = []
        self._edges: list[Sequence[tuple[int, ...]]] = []  # (value,) or (left, right)
        self._parameters: list[list[Parameter | None]] = []

    def add_leaf(
        self, v: int, variable: int, values: Sequence[tuple[int, Parameter | None]]
    ) -> int:
        """Add a node over one variable, with a parameter for each value it allows."""
        if self.vtree.variable[v] != variable:
            here = shortened(self.vtree.variables_below(v))
            raise StructureError(
                f"a leaf over variable {variable} stands where the vtree has variables "
                f"[{here}]: the circuit is not decomposable along it"
            )
        return self._add(v, [(value,) for value, _ in values], [p for _, p in values])

    def add_node(self, v: int, elements: Sequence[tuple[int, int, Parameter | None]]) -> int:
        """Add an OR node over elements ``(left, right, parameter)``."""
        for left, right, _ in elements:
            for side, child, expected in (
                ("left", left, self.vtree.left[v]),
                ("right", right, self.vtree.right[v]),
            ):
                if self._layer[child] != expected:
                    below = shortened(self.vtree.variables_below(self._layer[child]))
                    wanted = shortened(self.vtree.variables_below(int(expected)))
                    raise StructureError(
                        f"an element's {side} node is over variables [{below}] where the "
                        f"vtree has [{wanted}]: the circuit is not smooth and decomposable "
                        f"along this vtree"
                    )
        return self._add(v, [(a, b) for a, b, _ in elements], [p for _, _, p in elements])

    def _add(
        self, v: int, edges: Sequence[tuple[int, ...]], parameters: list[Parameter | None]
    ) -> int:
        if not edges:
            raise StructureError("a node needs at least one edge")
        self._layer.append(v)
        self._edges.append(edges)
        self._parameters.append(parameters)
        return len(self._layer) - 1

    def finish(self, root: int) -> tuple[Structure, list[Parameter | None]]:
        """Return the structure below ``root`` and the parameter of each of its edges."""
        layers = self._reached_layers(root)
        number = {n: i for i, n in enumerate(n for layer in layers for n in layer)}
        cards = np.full(self.vtree.n_variables, 2)
        if self._cardinalities is not None:
            cards = np.asarray(self._cardinalities)
        element_start, edge_start = [0], [0]
        elements: dict[tuple[int, int], int] = {}
        target: list[int] = []
        parameters: list[Parameter | None] = []
        for v, layer in enumerate(layers):
            for n in layer:
                if self.vtree.variable[v] >= 0:
                    values = [value for (value,) in self._edges[n]]
                    target += values
                    if self._cardinalities is None:
                        variable = self.vtree.variable[v]
                        cards[variable] = max(cards[variable], 1 + max(values))
                else:
                    for a, b in self._edges[n]:
                        key = (number[a], number[b])
                        target.append(elements.setdefault(key, len(elements)))
                parameters += self._parameters[n]
                edge_start.append(len(target))
            element_start.append(len(elements))
        joined = np.array(list(elements), np.int64).reshape(-1, 2)
        structure = Structure(
            vtree=self.vtree,
            cardinalities=cards,
            node_start=np.concatenate([[0], np.cumsum([len(layer) for layer in layers])]),
            element_start=np.array(element_start),
            left=joined[:, 0],
            right=joined[:, 1],
            edge_start=np.array(edge_start),
            target=np.array(target, np.int64),
        )
        return structure, parameters

    def _reached_layers(self, root: int) -> list[list[int]]:
        if self._layer[root] != self.vtree.root:
            raise StructureError("the root node does not stand at the root of the vtree")
        reached = {root}
        todo = [root]
        while todo:
            n = todo.pop()
            if self.vtree.variable[self._layer[n]] < 0:
                for child in {c for edge in self._edges[n] for c in edge} - reached:
                    reached.add(child)
                    todo.append(child)
        layers: list[list[int]] = [[] for _ in range(len(self.vtree))]
        for n in sorted(reached):
            layers[self._layer[n]].append(n)
        return layers
