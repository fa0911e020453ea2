"""From the growing state to an immutable circuit."""

from __future__ import annotations

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit, log_of
from expecta.circuits.structure import Structure
from expecta.common.arrays import Floats, Ints
from expecta.common.kernels import kernel
from expecta.learn.psdd.state import Nodes, State

__all__ = ["export"]


def export(state: State) -> tuple[ProbabilisticCircuit, Floats]:
    """Return the circuit with smoothed probabilities, and the prior weight of its edges.

    Cost: linear in the edges, but for sorting them.
    """
    alive = state.alive()
    order = np.argsort(state.nodes.layer[alive], kind="stable")
    nodes = alive[order]
    number = np.full(state.n_nodes, -1, np.int64)
    number[nodes] = np.arange(len(nodes))
    layer = state.nodes.layer[nodes].astype(np.int64)
    size = state.nodes.size[nodes].astype(np.int64)
    edges = _edges(state.nodes, nodes, int(np.sum(size)))
    owner = number[state.nodes.owner[edges]]
    left, right = state.nodes.left[edges].astype(np.int64), state.nodes.right[edges]
    inner = right >= 0
    target = left.copy()
    # equal elements of a layer are one
    pair = number[left[inner]] * len(nodes) + number[right[inner]]
    by_layer = layer[owner[inner]]
    sorting = np.lexsort((pair, by_layer))
    pair_sorted = pair[sorting]
    fresh = np.ones(len(pair), np.bool_)
    fresh[1:] = pair_sorted[1:] != pair_sorted[:-1]
    element = np.empty(len(pair), np.int64)
    element[sorting] = np.cumsum(fresh) - 1
    target[inner] = element
    first = sorting[fresh]
    layers = len(state.vtree)
    structure = Structure(
        vtree=state.vtree,
        cardinalities=state.tree.cards,
        node_start=_starts(layer, layers),
        element_start=_starts(by_layer[first], layers),
        left=pair[first] // len(nodes),
        right=pair[first] % len(nodes),
        edge_start=np.concatenate([[0], np.cumsum(size)]),
        target=target,
    )
    counts, prior = state.nodes.flow[edges], state.nodes.prior[edges]
    pull = state.nodes.pull[state.nodes.owner[edges]]
    total = np.add.reduceat(counts, structure.edge_start[:-1])[owner] + pull
    share = np.divide(counts + pull * prior, total, out=prior.copy(), where=total > 0)
    # literals hold one edge; whatever their count, its probability is one
    share[size[owner] == 1] = 1.0
    return ProbabilisticCircuit(structure, log_of(share)), pull * prior


def _starts(layer: Ints, layers: int) -> Ints:
    return np.concatenate([[0], np.cumsum(np.bincount(layer, minlength=layers))])


@kernel
def _edges(nodes: Nodes, which: Ints, n_edges: int) -> Ints:
    """Return the edges of some nodes, one after the other."""
    out = np.empty(n_edges, np.int64)
    k = 0
    for n in which:
        e = nodes.head[n]
        while e >= 0:
            out[k] = e
            k += 1
            e = nodes.following[e]
    return out
