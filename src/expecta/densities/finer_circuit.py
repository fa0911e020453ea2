"""Divide the values of a circuit's variables into finer ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit, log_of
from expecta.common.arrays import Floats, Ints


def finer_circuit(
    circuit: ProbabilisticCircuit, lookup: Sequence[Ints], shares: Sequence[Floats]
) -> ProbabilisticCircuit:
    """Divide the values of each variable into finer ones, by shares that depend on nothing else.

    ``lookup`` says for each variable which old value every new one belongs to, in order;
    ``shares`` are the probabilities of the new values given the old. Determinism and
    normalisation stay as they are. Cost: linear in the edges of the new circuit.

    >>> from expecta import Vtree
    >>> from expecta.circuits import leaf
    >>> p = ProbabilisticCircuit.build(Vtree.balanced(1), leaf(0, [0.4, 0.6]))
    >>> q = finer_circuit(p, [np.array([0, 1, 1])], [np.array([1.0, 0.25, 0.75])])
    >>> np.exp(q.log_prob([[0], [1], [2]])).round(9).tolist()
    [0.4, 0.15, 0.45]
    """
    s = circuit.structure
    # The values of all variables one after the other, old and new.
    old_start = np.append(0, np.cumsum(s.cardinalities))
    new_start = np.append(0, np.cumsum([len(old) for old in lookup]))
    old_value = np.concatenate([a + b for a, b in zip(lookup, old_start[:-1], strict=True)])
    parts = np.bincount(old_value, minlength=old_start[-1])
    first = np.cumsum(parts) - parts
    leaf = s.edge_at_leaf
    variable = s.vtree.variable[s.layer_of_node[s.node_of_edge]]
    value = s.target + old_start[variable]  # of edges at leaves
    copies = np.ones(s.n_edges, np.int64)
    copies[leaf] = parts[value[leaf]]
    edge_start = np.append(0, np.cumsum(copies))
    edge = np.repeat(np.arange(s.n_edges), copies)
    target, log_weight, leaf = s.target[edge], circuit.log_weight[edge], leaf[edge]
    old_edge = edge[leaf]
    new_value = first[value[old_edge]] + np.flatnonzero(leaf) - edge_start[old_edge]
    target[leaf] = new_value - new_start[variable[old_edge]]
    log_weight[leaf] += log_of(np.concatenate(shares))[new_value]
    structure = replace(
        s,
        cardinalities=np.diff(new_start),
        edge_start=edge_start[s.edge_start],
        target=target,
    )
    return ProbabilisticCircuit(structure, log_weight)
