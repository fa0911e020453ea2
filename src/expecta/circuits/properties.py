"""Decide structural properties: once, checked before each query that needs them.

Smoothness, decomposability and a common vtree are what :class:`Structure` is made
of; a circuit without them cannot be built. Determinism and normalisation depend on
the circuit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from expecta.circuits.structure import Structure
from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import PropertyError

NORMALISATION_TOLERANCE = 1e-8
MAX_EXACT_EDGES = 12_000  # of a layer; beyond, overlap between its nodes is assumed


@dataclass(frozen=True)
class Verdict:
    """Whether a property holds, and if not, why: which node fails it."""

    holds: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.holds


@dataclass(frozen=True)
class Properties:
    """What is known of a circuit's structure.

    Parameters
    ----------
    deterministic
        Whether at most one element of each node is possible, with the reason if not.
    normalised
        Whether the weights of each node add up to one.
    smooth
        Whether all elements of a node have the same variables.
    decomposable
        Whether the two parts of an element share no variable.
    structured
        Whether all follow one vtree.

    Examples
    --------
    >>> from expecta import Vtree, random_probabilistic
    >>> properties = random_probabilistic(Vtree.balanced(4), seed=0).properties
    >>> properties.normalised.holds, properties.deterministic.holds
    (True, False)
    """

    deterministic: Verdict
    normalised: Verdict
    smooth: bool = True
    decomposable: bool = True
    structured: bool = True

    def require_deterministic(self, query: str) -> None:
        """Raise unless every OR node has at most one element that any row satisfies.

        Parameters
        ----------
        query
            What needs it, for the message.
        """
        if not self.deterministic:
            raise PropertyError(
                f"{query} needs a deterministic circuit, and in this one "
                f"{self.deterministic.reason}"
            )

    def require_normalised(self) -> None:
        """Raise unless every node's weights sum to one."""
        require_normalised(self.normalised)


def require_normalised(verdict: Verdict) -> None:
    """Raise unless every node's weights sum to one."""
    if not verdict:
        raise PropertyError(
            f"this circuit is not a distribution: {verdict.reason}; call .normalised()"
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
    layer, in time (edges of the layer)². A layer of more than ``MAX_EXACT_EDGES``
    edges is checked itself, but its nodes count as overlapping for the layers
    above, which is sound: "deterministic" is never said wrongly.
    """
    # Parameters play no part: nodes with the same edges are one. What is not live goes.
    s, edges = structure.merged(keep=live)
    overlap: list[Bools | None] = [None] * len(s.vtree)  # None: any two nodes may overlap
    assumed = False
    n_nodes, n_edges = np.diff(s.node_start), np.diff(s.edge_start[s.node_start])
    # a single node overlaps with itself, and with one edge nothing can be wrong in it
    looked_at = np.where(s.vtree.variable >= 0, n_nodes > 1, n_edges > 1)
    for v in np.flatnonzero(looked_at).tolist():
        first, last = int(s.node_start[v]), int(s.node_start[v + 1])
        mine = slice(int(s.edge_start[first]), int(s.edge_start[last]))
        owner, target = s.node_of_edge[mine] - first, s.target[mine]
        if s.vtree.variable[v] >= 0:  # two values never meet
            chosen = np.zeros((last - first, s.cardinalities[s.vtree.variable[v]]), np.float32)
            chosen[owner, target] = 1.0
            overlap[v] = (chosen @ chosen.T) > 0
            continue
        for node in np.flatnonzero(np.bincount(owner) > 1).tolist():
            if _any_meet(s, v, target[owner == node], overlap):
                origin = structure.node_of_edge[edges[s.edge_start[first + node]]]
                name = structure.name_of(int(origin))
                if assumed:
                    return Verdict(False, f"it could not be decided whether {name} is")
                return Verdict(False, f"{name} has two edges that one row can satisfy")
        if len(target) <= MAX_EXACT_EDGES:
            starts = s.edge_start[first:last] - s.edge_start[first]
            meets = _meet(s, v, target, target, overlap)
            meets = np.logical_or.reduceat(meets, starts, axis=0)
            overlap[v] = np.logical_or.reduceat(meets, starts, axis=1)
        else:
            assumed = True
        overlap[s.vtree.left[v]] = overlap[s.vtree.right[v]] = None  # no longer needed
    return Verdict(True)


def _any_meet(s: Structure, v: int, elements: Ints, overlap: list[Bools | None]) -> bool:
    """Whether two of a node's elements have a row in common, some of them at a time."""
    step = max(1, 20_000_000 // len(elements))
    for start in range(0, len(elements), step):
        block = elements[start : start + step]
        met = _meet(s, v, block, elements, overlap)
        met[np.arange(len(block)), start + np.arange(len(block))] = False
        if np.any(met):
            return True
    return False


def _meet(s: Structure, v: int, elements: Ints, others: Ints, overlap: list[Bools | None]) -> Bools:
    """Whether elements of a layer have a row in common.  # (elements, others)."""
    out = np.ones((len(elements), len(others)), np.bool_)
    for children, child in ((s.left, s.vtree.left[v]), (s.right, s.vtree.right[v])):
        below = overlap[child]
        if below is not None:
            first = int(s.node_start[child])
            out &= below[np.ix_(children[elements] - first, children[others] - first)]
    return out
