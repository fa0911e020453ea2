"""Expected flows: how much of a row with unknown cells follows each edge.

A row with unknown cells stands for all its completions, each as likely as the circuit
says. Its flow through an edge is the share of the completions that follow the edge.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.circuits.structure import Structure
from expecta.common.arrays import Floats, Ints
from expecta.common.kernels import kernel
from expecta.common.settings import current
from expecta.common.threads import run_on_threads

__all__ = ["expected_flows", "log_likelihoods"]

Array = npt.NDArray[Any]

PARTS = 8  # sums over rows are made in so many parts, whatever the number of threads


class Layers(NamedTuple):
    """A structure as the kernels see it."""

    variable: Array
    node_start: Array
    edge_start: Array
    target: Array
    left: Array
    right: Array


def expected_flows(
    structure: Structure, log_weight: Floats, codes: Ints, weight: Floats
) -> tuple[Floats, float]:
    """Return the flow of all rows through each edge, and their log-likelihood.

    Parameters
    ----------
    structure, log_weight
        A normalised circuit.
    codes
        Rows; -1 is unknown.  # (rows, variables)
    weight
        How often each row counts.  # (rows,)

    Notes
    -----
    Cost: two passes over the circuit per row, on all threads. In logarithms, so that
    no row is too unlikely. The same for any number of threads.
    """
    parts = max(1, min(PARTS, len(codes)))
    flows = np.zeros((parts, structure.n_edges))
    logs = np.zeros(len(codes))
    bounds = np.linspace(0, len(codes), parts + 1).astype(np.int64).tolist()
    layers = _layers(structure)
    codes, log_weight = np.ascontiguousarray(codes, np.int32), np.array(log_weight)
    calls = [
        (layers, log_weight, codes[a:b], weight[a:b], True, flows[k], logs[a:b])
        for k, (a, b) in enumerate(pairwise(bounds))
    ]
    run_on_threads(_flow, calls, current().n_threads())
    return np.sum(flows, axis=0), float(np.sum(weight * logs))


def log_likelihoods(structure: Structure, log_weight: Floats, codes: Ints) -> Floats:
    """Return the log-probability of each row, unknown cells summed out.  # (rows,)."""
    out = np.zeros(len(codes))
    nothing = np.zeros(0)
    codes = np.ascontiguousarray(codes, np.int32)
    _flow(_layers(structure), np.array(log_weight), codes, out, False, nothing, out)
    return out


def _layers(s: Structure) -> Layers:
    parts = (s.vtree.variable, s.node_start, s.edge_start, s.target, s.left, s.right)
    return Layers(*(np.array(part) for part in parts))


@kernel
def _flow(
    layers: Layers,
    log_weight: Floats,
    codes: Ints,
    weight: Floats,
    down: bool,
    flows: Floats,
    logs: Floats,
) -> None:
    n_nodes, root = len(layers.edge_start) - 1, len(layers.variable) - 1
    q = np.empty(n_nodes)
    flow = np.empty(n_nodes)
    for row in range(len(codes)):
        for v in range(root + 1):
            for n in range(layers.node_start[v], layers.node_start[v + 1]):
                q[n] = _log_q(layers, log_weight, codes[row], v, n, q)
        logs[row] = q[n_nodes - 1]
        if not down or q[n_nodes - 1] == -np.inf:
            continue
        flow[:] = 0.0
        flow[n_nodes - 1] = weight[row]
        for v in range(root, -1, -1):
            x = layers.variable[v]
            for n in range(layers.node_start[v], layers.node_start[v + 1]):
                if flow[n] == 0.0:
                    continue
                for e in range(layers.edge_start[n], layers.edge_start[n + 1]):
                    t = layers.target[e]
                    if x >= 0:
                        if codes[row, x] < 0 or codes[row, x] == t:
                            flows[e] += flow[n] * np.exp(log_weight[e] - q[n])
                        continue
                    left, right = layers.left[t], layers.right[t]
                    term = log_weight[e] + q[left] + q[right]
                    if term > -np.inf:
                        part = flow[n] * np.exp(term - q[n])
                        flows[e] += part
                        flow[left] += part
                        flow[right] += part


@kernel
def _log_q(layers: Layers, log_weight: Floats, codes: Ints, v: int, node: int, q: Floats) -> float:
    """Return the log-probability of what a row knows below a node."""
    first, last = layers.edge_start[node], layers.edge_start[node + 1]
    x = layers.variable[v]
    most, total = -np.inf, 0.0
    for e in range(first, last):
        t = layers.target[e]
        if x < 0:
            term = log_weight[e] + q[layers.left[t]] + q[layers.right[t]]
        elif codes[x] < 0 or codes[x] == t:
            term = log_weight[e]
        else:
            continue
        if term == -np.inf:
            continue
        if term <= most:
            total += np.exp(term - most)
        else:
            total = total * np.exp(most - term) + 1.0
            most = term
    return most + np.log(total) if total > 0.0 else -np.inf
