"""Structural properties: decided once, checked before each query that needs them.

Smoothness, decomposability and a common vtree are what :class:`Structure` is made
of; a circuit without them cannot be built. Determinism and normalisation depend on
the circuit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from expecta.arrays import Bools, Floats, Ints
from expecta.circuits.structure import Structure
from expecta.errors import PropertyError

__all__ = ["Properties", "Verdict", "determinism", "normalisation"]

NORMALISATION_TOLERANCE = 1e-8
EXACT_ELEMENTS = 5_000  # beyond so many in a layer, overlap between its nodes is assumed


@dataclass(frozen=True)
class Verdict:
    """Whether a property holds, and if not, why: which node fails it."""

    holds: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.holds


@dataclass(frozen=True)
class Properties:
    """What is known of a circuit's structure."""

    deterministic: Verdict
    normalised: Verdict
    smooth: bool = True
    decomposable: bool = True
    structured: bool = True

    def require_deterministic(self, query: str) -> None:
        """Raise unless every OR node has at most one element that any row satisfies."""
        if not self.deterministic:
            raise PropertyError(
                f"{query} needs a deterministic circuit, and in this one "
                f"{self.deterministic.reason}"
            )

    def require_normalised(self) -> None:
        """Raise unless every node's weights sum to one."""
        if not self.normalised:
            raise PropertyError(
                f"this circuit is not a distribution: {self.normalised.reason}; call .normalised()"
            )


def normalisation(structure: Structure, log_weight: Floats) -> Verdict:
    """Decide whether the weights of every node sum to one."""
    total = np.exp(np.logaddexp.reduceat(log_weight, structure.edge_start[:-1]))
    worst = int(np.argmax(np.abs(total - 1)))
    if abs(total[worst] - 1) <= NORMALISATION_TOLERANCE:
        return Verdict(True)
    return Verdict(False, f"the weights of {structure.name_of(worst)} sum to {total[worst]:.6g}")


def determinism(structure: Structure, live: Bools) -> Verdict:
    """Decide whether no row satisfies two live edges of one node.

    Two elements of a layer share a row exactly when their left nodes do and their
    right nodes do, so overlap is decided bottom-up for all pairs of nodes of a
    layer, in time (elements of the layer)². A layer of more than ``EXACT_ELEMENTS``
    elements is checked itself, but its nodes count as overlapping for the layers
    above, which is sound: "deterministic" is never said wrongly.
    """
    s = structure
    overlap: list[Bools | None] = [None] * len(s.vtree)  # None: any two nodes may overlap
    for v in range(len(s.vtree)):
        first, last = int(s.node_start[v]), int(s.node_start[v + 1])
        edges = slice(int(s.edge_start[first]), int(s.edge_start[last]))
        owner = (s.node_of_edge[edges] - first)[live[edges]]
        if s.vtree.variable[v] >= 0:  # two values never meet
            values = np.zeros((last - first, s.cardinalities[s.vtree.variable[v]]), np.float32)
            values[owner, s.target[edges][live[edges]]] = 1.0
            overlap[v] = (values @ values.T) > 0
            continue
        target = s.target[edges][live[edges]]
        for node in np.flatnonzero(np.bincount(owner) > 1):
            mine = target[owner == node]
            met = _meet(s, v, mine, overlap)
            np.fill_diagonal(met, False)
            if np.any(met) or len(np.unique(mine)) < len(mine):
                name = s.name_of(first + int(node))
                return Verdict(False, f"{name} has two edges that one row can satisfy")
        elements = np.arange(s.element_start[v], s.element_start[v + 1])
        if len(elements) <= EXACT_ELEMENTS:
            chosen = np.zeros((last - first, len(elements)), np.float32)
            chosen[owner, target - elements[0]] = 1.0
            meets = _meet(s, v, elements, overlap).astype(np.float32)
            overlap[v] = (chosen @ meets @ chosen.T) > 0
        overlap[s.vtree.left[v]] = overlap[s.vtree.right[v]] = None  # no longer needed
    return Verdict(True)


def _meet(s: Structure, v: int, elements: Ints, overlap: list[Bools | None]) -> Bools:
    """Whether any two of these elements of a layer have a row in common."""
    out = np.ones((len(elements), len(elements)), np.bool_)
    for children, child in ((s.left, s.vtree.left[v]), (s.right, s.vtree.right[v])):
        below = overlap[child]
        if below is not None:
            local = children[elements] - int(s.node_start[child])
            out &= below[np.ix_(local, local)]
    return out
