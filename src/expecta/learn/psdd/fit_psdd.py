"""Fit the probabilities of a deterministic circuit whose structure is given.

A complete row follows one edge in every layer: 64 rows at a time, one bit each, find their
edges without arithmetic. Rows with unknown cells go through the passes of the engine.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from expecta.circuits.evidence import as_evidence
from expecta.circuits.probabilistic import ProbabilisticCircuit, log_of
from expecta.circuits.structure import Structure
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.common.kernels import kernel
from expecta.engine.plan import Plan
from expecta.learn.weighted_rows import merge_rows
from expecta.queries.density_queries import edge_flows


def fit_parameters(
    circuit: ProbabilisticCircuit,
    codes: Ints,
    weight: Floats | None = None,
    pseudo_count: float = 1.0,
    *,
    max_iterations: int = 50,
    tolerance: float = 1e-5,
) -> ProbabilisticCircuit:
    """Return the circuit with the probabilities that make the rows most likely.

    Complete rows give them in closed form: how many rows follow each edge, out of those
    that reach its node. Rows with unknown cells are spread over their completions as
    the circuit has it, again and again (EM), beginning with the circuit's own
    probabilities.

    Parameters
    ----------
    circuit
        Deterministic; edges of probability zero stay so, and are dropped.
    codes
        Rows; -1 is unknown.  # (rows, variables)
    weight
        How often each row counts.  # (rows,)
    pseudo_count
        Rows that are added to every node, spread evenly over its edges.
    max_iterations, tolerance
        EM ends after so many iterations, or when one gains less than this many nats
        per row.

    Notes
    -----
    Cost: edges x distinct rows / 64 when all are complete; else, for each iteration and
    incomplete row, two passes over the circuit.

    Examples
    --------
    >>> from expecta import Vtree
    >>> from expecta.circuits.constructions import independent
    >>> p = independent(Vtree.balanced(2), [[0.5, 0.5], [0.5, 0.5]])
    >>> p = fit_parameters(p, np.array([[1, 0], [1, 1], [0, 1], [1, -1]]), pseudo_count=0)
    >>> [table[0].round(2).tolist() for table in p.marginals([[-1, -1]])]
    [[0.25, 0.75], [0.33, 0.67]]
    """
    circuit.properties.require_deterministic("fitting its parameters in closed form")
    if not pseudo_count >= 0:
        raise ValueError(f"pseudo_count must be a number >= 0, not {pseudo_count!r}")
    circuit = pruned(circuit.normalised())
    s = circuit.structure
    per_node = np.diff(s.edge_start)[s.node_of_edge]
    rows, weights = distinct(codes, weight, s.cardinalities)
    return maximise(circuit, rows, weights, pseudo_count / per_node, max_iterations, tolerance)


def maximise(
    circuit: ProbabilisticCircuit,
    codes: Ints,
    weight: Floats,
    prior: Floats,
    max_iterations: int,
    tolerance: float,
) -> ProbabilisticCircuit:
    """Fit the parameters to rows, with so many rows added to each edge (``prior``)."""
    s = circuit.structure
    complete = np.all(codes >= 0, axis=1)
    fixed = prior + counted(s, codes[complete], weight[complete])
    codes, weight = codes[~complete], weight[~complete]
    if not len(codes):
        return ProbabilisticCircuit(s, _shares(s, fixed, circuit.log_weight))
    evidence, last = as_evidence(codes, s.cardinalities), -np.inf
    for _ in range(max_iterations):
        flows, log_p = edge_flows(Plan.of(circuit, None), evidence, weight)
        if np.any(log_p == -np.inf):
            raise DomainError("a row is impossible in the circuit whose parameters are fitted")
        with np.errstate(invalid="ignore"):  # zero times the logarithm of zero
            log_likelihood = float(weight @ log_p + np.nansum(fixed * circuit.log_weight))
        circuit = ProbabilisticCircuit(s, _shares(s, fixed + flows, circuit.log_weight))
        if log_likelihood - last < tolerance * float(np.sum(weight)):
            break
        last = log_likelihood
    return circuit


def counted(structure: Structure, codes: Ints, weight: Floats) -> Floats:
    """Return the weight of the complete rows that follow each edge.  # (edges,)."""
    out = np.zeros(structure.n_edges)
    if len(codes):
        for edges in routed(structure, codes):
            out += np.bincount(edges, weight, structure.n_edges)
    return out


def routed(structure: Structure, codes: Ints) -> Ints:
    """Return the edge each complete row follows in each layer, or say which row has none."""
    out = routes(structure, codes)
    lost = np.flatnonzero(out[-1] < 0)
    if len(lost):
        raise DomainError(
            f"the row {codes[lost[0]].tolist()} is impossible in the given circuit; "
            f"begin with one that allows all rows"
        )
    return out


def pruned(circuit: ProbabilisticCircuit) -> ProbabilisticCircuit:
    """Drop edges of probability zero and what only they lead to."""
    live = circuit.log_weight > -np.inf
    structure, edges = circuit.structure.merged(np.arange(len(live)), live)
    return ProbabilisticCircuit(structure, circuit.log_weight[edges])


def distinct(codes: Ints, weight: Floats | None, cardinalities: Ints) -> tuple[Ints, Floats]:
    """Check rows of codes and merge equal ones; rows of weight zero are left out."""
    rows = np.asarray(codes)
    if rows.ndim != 2 or rows.shape[1] != len(cardinalities) or rows.dtype.kind not in "iu":
        raise DomainError(
            f"codes are integers of shape (rows, {len(cardinalities)}), "
            f"not {rows.dtype} of shape {rows.shape}"
        )
    rows = rows.astype(np.int32)
    bad = (rows < -1) | (rows >= cardinalities)
    if np.any(bad):
        x = int(np.flatnonzero(np.any(bad, axis=0))[0])
        raise DomainError(f"variable {x} takes the values 0 .. {cardinalities[x] - 1}, or -1")
    weights = np.ones(len(rows)) if weight is None else np.asarray(weight, np.float64)
    if weights.shape != (len(rows),) or not np.all(np.isfinite(weights) & (weights >= 0)):
        raise DomainError(f"weight has a number >= 0 for each of the {len(rows)} rows")
    return merge_rows(rows, weights)


def _shares(s: Structure, counts: Floats, otherwise: Floats) -> Floats:
    """Return log shares of the edges of each node; nodes that count nothing stay."""
    total = np.add.reduceat(counts, s.edge_start[:-1])[s.node_of_edge]
    share = np.divide(counts, total, out=np.exp(otherwise), where=total > 0)
    return log_of(share)


def routes(structure: Structure, codes: Ints) -> Ints:
    """Return the edge that each complete row follows in each layer.

    Parameters
    ----------
    structure
        That of a deterministic circuit.
    codes
        Rows without unknown cells.  # (rows, variables)

    Returns
    -------
    array of shape (vtree nodes, rows)
        Edge numbers; -1 in all layers for a row that the circuit does not allow.
        Cost: edges x rows / 64, and vtree nodes x rows.
    """
    s = structure
    out = np.full((len(s.vtree), len(codes)), -1, np.int32)
    arrays = (s.vtree.variable, s.node_start, s.edge_start, s.target, s.left, s.right)
    columns = np.ascontiguousarray(codes.T.astype(np.int32))
    _route(GlobalLayers(*map(np.array, arrays)), columns, int(np.max(s.cardinalities)), out)
    return out


class GlobalLayers(NamedTuple):
    """A structure as the kernel sees it, its nodes and elements counted through all layers."""

    variable: Ints
    node_start: Ints
    edge_start: Ints
    target: Ints
    left: Ints
    right: Ints


@kernel
def _route(layers: GlobalLayers, codes: Ints, most_values: int, out: Ints) -> None:
    """Take 64 rows at a time, one bit each: up for what is satisfied, down for what is meant."""
    variable, node_start, edge_start = layers.variable, layers.node_start, layers.edge_start
    target, left, right = layers.target, layers.left, layers.right
    n_nodes, n_rows, root = len(edge_start) - 1, codes.shape[1], len(variable) - 1
    satisfied = np.zeros(n_nodes, np.uint64)
    reached = np.zeros(n_nodes, np.uint64)
    zero, one = np.uint64(0), np.uint64(1)
    has_value = np.zeros(max(most_values, 1), np.uint64)
    for first in range(0, n_rows, 64):
        live = min(64, n_rows - first)
        for v in range(root + 1):
            x = variable[v]
            if x >= 0:
                for i in range(live):
                    has_value[codes[x, first + i]] |= one << np.uint64(i)
            for n in range(node_start[v], node_start[v + 1]):
                bits = zero
                for e in range(edge_start[n], edge_start[n + 1]):
                    t = target[e]
                    if x >= 0:
                        bits |= has_value[t]
                    else:
                        bits |= satisfied[left[t]] & satisfied[right[t]]
                satisfied[n] = bits
            if x >= 0:
                for i in range(live):
                    has_value[codes[x, first + i]] = zero
        reached[:] = zero
        reached[n_nodes - 1] = satisfied[n_nodes - 1]
        for v in range(root, -1, -1):
            x = variable[v]
            for n in range(node_start[v], node_start[v + 1]):
                if reached[n] == zero:
                    continue
                for e in range(edge_start[n], edge_start[n + 1]):
                    t = target[e]
                    if x >= 0:
                        for i in range(live):
                            if codes[x, first + i] == t and (reached[n] >> np.uint64(i)) & one:
                                out[v, first + i] = e
                        continue
                    bits = reached[n] & satisfied[left[t]] & satisfied[right[t]]
                    if bits == zero:
                        continue
                    reached[left[t]] |= bits
                    reached[right[t]] |= bits
                    for i in range(live):
                        if (bits >> np.uint64(i)) & one:
                            out[v, first + i] = e
