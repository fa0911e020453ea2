"""Compute the probabilities of a growing circuit from its counts, pulled towards priors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit, log_of
from expecta.circuits.structure import Structure, starts_of
from expecta.common.arrays import Floats, Ints
from expecta.common.kernels import helper, kernel
from expecta.learn.psdd.growing_circuit import GrowingCircuit, NodePools


def export(state: GrowingCircuit) -> tuple[ProbabilisticCircuit, Floats]:
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
        node_start=starts_of(layer, layers),
        element_start=starts_of(by_layer[first], layers),
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


def set_pull(state: GrowingCircuit, pull: float) -> None:
    """Change the weight of the priors of copies, and with it the priors themselves.

    A copy's prior is the smoothed distribution of its origin at the time, which had
    an origin of its own: the history is gone through again. Cost: the pool's edges.
    """
    state.pull = pull
    state.nodes.pull[state.start_nodes : state.n_nodes] = pull
    _replay(state.nodes, state.start_edges, state.n_edges, pull)


class LogLikelihoods(NamedTuple):
    """Log-likelihoods of the rows, from the counts of all nodes; sums, not means."""

    best: float  # of training rows, under their own relative frequencies
    train: float  # of training rows, under the smoothed probabilities
    held_out: float


def log_likelihoods(state: GrowingCircuit) -> LogLikelihoods:
    """Compute the log-likelihoods of training and held-out rows. Cost: the live edges."""
    totals = np.zeros(3)
    _log_likelihoods(state.nodes, state.alive(), totals)
    return LogLikelihoods(*totals.tolist())


@kernel
def _edges(nodes: NodePools, which: Ints, n_edges: int) -> Ints:
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


@helper
def _smoothed(nodes: NodePools, edge: int, total: float) -> float:
    """Return the probability of an edge whose node has so much training weight in all."""
    pull = nodes.pull[nodes.owner[edge]]
    p: float = nodes.prior[edge]
    if total + pull > 0.0:
        p = (nodes.flow[edge] + pull * p) / (total + pull)
    return p


@kernel
def _replay(nodes: NodePools, first: int, last: int, pull: float) -> None:
    """Derive the priors anew, in the order in which copies and splits were made."""
    # the prior of an edge before its splits is what it and all that was split off share
    for k in range(last - 1, first - 1, -1):
        if nodes.whole[k] >= 0.0:
            nodes.prior[nodes.origin[k]] += nodes.prior[k]
    k = first
    while k < last:
        origin = nodes.origin[k]
        if nodes.whole[k] >= 0.0:
            share = split_share(nodes.base[k], nodes.whole[k], nodes.pull[nodes.owner[k]])
            nodes.prior[k] = nodes.prior[origin] * share
            nodes.prior[origin] *= 1.0 - share
            k += 1
            continue
        source = nodes.pull[nodes.owner[origin]]
        end, mass = k, 0.0
        while end < last and nodes.owner[end] == nodes.owner[k] and nodes.whole[end] < 0.0:
            nodes.prior[end] = nodes.base[end] + source * nodes.prior[nodes.origin[end]]
            mass += nodes.prior[end]
            end += 1
        for e in range(k, end):
            nodes.prior[e] = nodes.prior[e] / mass if mass > 0.0 else 1.0 / (end - k)
        k = end


@helper
def split_share(a: float, whole: float, pull: float) -> float:
    """Return how much of a split edge's prior goes to the part with weight ``a``."""
    return (a + 0.5 * pull) / (whole + pull) if whole + pull > 0.0 else 0.5


@kernel
def _log_likelihoods(nodes: NodePools, which: Ints, totals: Floats) -> None:
    for n in which:
        total = 0.0
        e = nodes.head[n]
        while e >= 0:
            total += nodes.flow[e]
            e = nodes.following[e]
        e = nodes.head[n]
        while e >= 0:
            count = nodes.flow[e]
            if count > 0.0:
                totals[0] += count * np.log(count / total)
            if count > 0.0 or nodes.held[e] > 0.0:
                p = _smoothed(nodes, e, total)
                if count > 0.0:
                    totals[1] += count * np.log(p)
                if nodes.held[e] > 0.0:
                    totals[2] += nodes.held[e] * np.log(p)
            e = nodes.following[e]
