"""Go down with flows: the probability of being visited, spread over all edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Bools, Floats
from expecta.common.kernels import U, helper, kernel
from expecta.engine.layers import LOG_UNIT
from expecta.engine.passes.leaves import PassRows
from expecta.engine.passes.upward import Values, make_values, up
from expecta.engine.probabilities import leaf_term, power

Array = npt.NDArray[Any]


@kernel
def posteriors(
    rows: PassRows,
    out: Floats,
    out_at: Array,
    start: int,
    impossible: Bools,
    first: int,
    last: int,
) -> None:
    """Write the posterior of every variable for the rows ``first`` to ``last``.

    That of variable x goes to ``out[out_at[x]:]`` as (all rows, values), where row 0 is
    row ``start`` of all.
    """
    p, lanes = rows.p, rows.lanes
    values = make_values(p, lanes)
    root = len(p.variable) - 1
    top = p.node_start[root] * lanes
    flow = np.zeros(p.node_start[root + 1] * lanes, np.float64)
    posterior = np.zeros(p.cardinality.max() * lanes, np.float64)
    no_totals = np.zeros(0)
    for row in range(first, last, lanes):
        live = min(lanes, last - row)
        up(rows, row, live, values, False)
        flow[:] = 0.0
        for i in range(lanes):
            possible = values.z[2 * top + i] > 0.0
            flow[top + i] = 1.0 if possible else 0.0
            if i < live:
                impossible[start + row + i] = not possible
        for v in range(root, -1, -1):
            x = p.variable[v]
            if x < 0:
                _spread(rows, v, values, flow, no_totals)
                continue
            _spread_leaf(rows, row, live, v, values.z, flow, posterior, no_totals)
            card = p.cardinality[v]
            for i in range(live):
                # All flow meets at every leaf. What it lacks of one is rounding on the way.
                total = 0.0
                for k in range(card):
                    total += posterior[k * lanes + i]
                to = out_at[x] + (start + row + i) * card
                for k in range(card):
                    out[to + k] = posterior[k * lanes + i] / total if total > 0.0 else 0.0


@kernel
def edge_flows(rows: PassRows, weight: Floats, totals: Floats, log_prob: Floats) -> None:
    """Add to ``totals`` what of all rows is expected to follow each edge.

    A row counts ``weight`` times; an impossible one follows no edge. The log-probability
    of each row goes to ``log_prob``, the greatest weights of soft evidence left aside.
    """
    p, lanes = rows.p, rows.lanes
    values = make_values(p, lanes)
    root = len(p.variable) - 1
    top = p.node_start[root] * lanes
    flow = np.zeros(p.node_start[root + 1] * lanes, np.float64)
    posterior = np.zeros(p.cardinality.max() * lanes, np.float64)
    for row in range(0, len(weight), lanes):
        live = min(lanes, len(weight) - row)
        up(rows, row, live, values, False)
        flow[:] = 0.0
        for i in range(live):
            q = values.z[2 * top + i]
            log_prob[row + i] = np.log(q) + LOG_UNIT * values.z[2 * top + lanes + i]
            flow[top + i] = weight[row + i] if q > 0.0 else 0.0
        for v in range(root, -1, -1):
            if p.variable[v] < 0:
                _spread(rows, v, values, flow, totals)
            else:
                _spread_leaf(rows, row, live, v, values.z, flow, posterior, totals)


@helper
def _divide(rows: PassRows, v: int, z: Floats, flow: Floats) -> None:
    """Divide the flow of every node of a layer by its q, the power of two left aside."""
    first, lanes = rows.p.node_start[v], rows.lanes
    for n in range(rows.p.node_start[v + 1] - first):
        f, q = U((first + n) * lanes), U((2 * first + n) * lanes)
        for i in range(U(lanes)):
            flow[f + i] = flow[f + i] / z[q + i] if z[q + i] > 0.0 else 0.0


@helper
def _spread(rows: PassRows, v: int, values: Values, flow: Floats, totals: Floats) -> None:
    """Hand the flow of a layer's nodes down to the nodes of its children.

    What follows each edge is added to ``totals``, unless that is empty.
    """
    p, z, elements, lanes = rows.p, values.z, values.elements, rows.lanes
    scaled, count_edges = values.scaled[v] > 0, len(totals) > 0
    first, e0 = p.node_start[v], p.element_start[v]
    nodes, count = p.node_start[v + 1] - first, p.element_start[v + 1] - e0
    left, right = p.node_start[p.tree_left[v]], p.node_start[p.tree_right[v]]
    left_nodes = p.node_start[p.tree_left[v] + 1] - left
    right_nodes = p.node_start[p.tree_right[v] + 1] - right
    _divide(rows, v, z, flow)
    at = U(elements)
    for i in range(U(count * lanes)):
        z[at + i] = 0.0
    for n in range(nodes):
        f = U((first + n) * lanes)
        exponents = (2 * first + nodes + n) * lanes
        for a in range(p.edge_start[first + n], p.edge_start[first + n + 1]):
            to, w = U(elements + p.target[a] * lanes), p.mantissa[a]
            if not scaled:
                for i in range(U(lanes)):
                    z[to + i] += w * flow[f + i]
                if not count_edges:
                    continue
            # With exponents the product with q of the element must come first: the two
            # factors apart may be out of range.
            e = e0 + p.target[a]
            x = (2 * left + p.left[e]) * lanes
            y = (2 * right + p.right[e]) * lanes
            total = 0.0
            for i in range(lanes):
                part = w * (z[x + i] * z[y + i]) * flow[(first + n) * lanes + i]
                if scaled:
                    k = p.exponent[a] - z[exponents + i]
                    k += z[x + left_nodes * lanes + i] + z[y + right_nodes * lanes + i]
                    part = w * (z[x + i] * z[y + i]) * power(k) * flow[(first + n) * lanes + i]
                    z[elements + p.target[a] * lanes + i] += part
                total += part
            if count_edges:
                totals[a] += total
    for e in range(count):
        at = U(elements + e * lanes)
        if not scaled:
            x = U((2 * left + p.left[e0 + e]) * lanes)
            y = U((2 * right + p.right[e0 + e]) * lanes)
            for i in range(U(lanes)):
                z[at + i] *= z[x + i] * z[y + i]
        f, g = U((left + p.left[e0 + e]) * lanes), U((right + p.right[e0 + e]) * lanes)
        for i in range(U(lanes)):
            flow[f + i] += z[at + i]
        for i in range(U(lanes)):
            flow[g + i] += z[at + i]


@helper
def _spread_leaf(
    rows: PassRows,
    row: int,
    live: int,
    v: int,
    z: Floats,
    flow: Floats,
    posterior: Floats,
    totals: Floats,
) -> None:
    """Add up the flow that reaches each value of a leaf's variable, lane by lane.

    What follows each edge is added to ``totals``, unless that is empty.
    """
    p, leaves, codes, lanes = rows.p, rows.leaves, rows.codes, rows.lanes
    first, x, card = p.node_start[v], p.variable[v], p.cardinality[v]
    nodes, scaled = p.node_start[v + 1] - first, leaves.scaled[v] > 0
    _divide(rows, v, z, flow)
    posterior[: card * lanes] = 0.0
    for n in range(nodes):
        f = U((first + n) * lanes)
        for a in range(p.edge_start[first + n], p.edge_start[first + n + 1]):
            if not scaled and len(totals) == 0:  # the evidence's weights come last
                to, w = U(p.target[a] * lanes), p.mantissa[a]
                for i in range(U(lanes)):
                    posterior[to + i] += w * flow[f + i]
                continue
            for i in range(live):
                at = leaves.state_at[x] + codes[x, row + i] * card
                term, k = leaf_term(p, a, leaves.states, at)
                term *= power(k - z[(2 * first + nodes + n) * lanes + i])
                part = term * flow[(first + n) * lanes + i]
                posterior[p.target[a] * lanes + i] += part
                if len(totals) > 0:
                    totals[a] += part
    if not scaled and len(totals) == 0:
        for i in range(live):
            at = leaves.state_at[x] + codes[x, row + i] * card
            for k in range(card):
                posterior[k * lanes + i] *= leaves.states[at + k]
