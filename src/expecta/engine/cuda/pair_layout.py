"""Write a plan as a card reads it: flat lists of sums, level by level of the vtree.

The joins of a pair, over g's edges and over p's, are one list of terms. Where pairs share halves
(a dense layer of p) the halves are summed first, and pairs that sum the same ones are taken
together. Subtrees with few combinations of evidence states are tables: their lanes are those
combinations, numbered in mixed radix, and rows above look theirs up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Bools, Ints
from expecta.engine.plan import Plan

Array = npt.NDArray[Any]

LARGE = 8  # terms of a sum from which a block of threads adds them together

# Fields of a layer, as `walk.cu` names them
OUT, OUT_STRIDE, LEFT, LEFT_STRIDE, LEFT_MAP, RIGHT, RIGHT_STRIDE, RIGHT_MAP = range(8)
Q_OUT, Q_LEFT, Q_RIGHT, RADIX, HALVES = range(8, 13)
FIELDS = 14


class Sums(NamedTuple):
    """Sums of one phase, sorted by level, small ones before large ones."""

    record: Array  # (sums, 4) layer, first term, last, number in its layer; halves: -1 - number
    node: Array  # (sums,) node of p
    small: Ints  # (levels + 1,) where the small sums of a level begin
    large: Ints


class Nodes(NamedTuple):
    """Nodes of p, sorted by level."""

    record: Array  # (nodes, 4) layer, first edge, last, number in its layer
    start: Ints  # (levels + 1,)


class LeafCells(NamedTuple):
    """Nodes and pairs of leaves, a cell for every state of evidence."""

    node_cell: Array  # (cells, 4) first edge, last, where the weights of the state begin, 0
    node: Array  # (cells, 3) layer, node in its layer, state
    pair_cell: Array  # (cells, 4) first meeting, last, where the weights begin, states
    pair: Array  # (cells, 4) layer, pair in its layer, state, node
    meetings: Array  # (meetings, 2) edge of p, edge of g


@dataclass(frozen=True)
class Stage:
    """What is computed for tables, or for rows: each in levels from below."""

    nodes: Nodes
    first: Sums  # pairs with all their terms, and halves of dense layers
    late: Sums  # pairs of dense layers that are in no run
    run_layer: Ints  # (runs,) sorted by level
    runs: Array  # (runs, 5) first pair, pairs, terms, first edge, edges per pair
    run_start: Ints  # (levels + 1,)
    lanes: Ints  # (levels,) the most lanes of a table; 0 for rows

    @property
    def n_levels(self) -> int:
        """Count the levels."""
        return len(self.lanes)


@dataclass(frozen=True)
class PairLayout:
    """A plan's lists for evidence with so many states per variable. Cost: the plan's arrays."""

    plan: Plan
    patterns: Ints  # (layers,) lanes of a table; 0: lanes are rows
    two_steps: Bools  # (layers,) whether halves are summed first
    terms: Array  # (terms, 4) left pair (or half), right pair (or -1), edge of p (or -1), of g
    tables: Stage
    rows: Stage
    leaves: LeafCells
    frontier: Ints  # (subtrees,) tables that rows look up
    subtree_start: Ints  # (subtrees + 1,)
    subtree_variables: Array  # (..., 2) variable, its states
    edge_nodes: Array  # (edges of p, 2) nodes of the children that the edge's element joins

    @classmethod
    def of(cls, plan: Plan, n_states: Ints, max_patterns: int) -> PairLayout:
        """Write the lists."""
        tree, p, pairs = plan.vtree, plan.p, plan.pairs
        n, leaf = len(tree), tree.variable >= 0
        patterns = np.zeros(n, np.int64)
        level = np.full((2, n), -1)  # of tables, of rows
        for v in range(n):
            if leaf[v]:
                patterns[v] = n_states[tree.variable[v]]
                continue
            a, b = tree.left[v], tree.right[v]
            product = int(patterns[a]) * int(patterns[b])
            patterns[v] = product if product <= max_patterns else 0
            kind = 0 if patterns[v] else 1
            level[kind, v] = 1 + max(level[kind, a], level[kind, b])
        layer_of_pair = np.repeat(np.arange(n), np.diff(pairs.pair_start))
        n_terms = np.diff(pairs.mix_start)
        layer_of_mix = np.repeat(layer_of_pair, n_terms)
        half_of_mix = pairs.half_start[layer_of_mix] + pairs.mix_half
        n_joins = np.diff(pairs.join_start)
        two_steps = _dense_layers(plan, layer_of_pair, layer_of_mix, n_joins[half_of_mix])
        terms, sums = _sums(plan, two_steps, layer_of_pair, layer_of_mix, half_of_mix)
        node_layer = np.repeat(np.arange(n), np.diff(p.node_start))
        node = np.arange(len(node_layer)) - p.node_start[node_layer]
        nodes = np.stack([node_layer, p.edge_start[:-1], p.edge_start[1:], node], 1)
        edge_layer = np.repeat(node_layer, np.diff(p.edge_start))
        element = np.where(leaf[edge_layer], 0, p.element_start[edge_layer] + p.target)
        children = np.stack([p.left[element], p.right[element]], 1) if len(p.left) else None
        runs = _runs(plan, two_steps, layer_of_pair)
        stages = [
            _stage(kind, level[kind], patterns, nodes[~leaf[node_layer]], sums, runs)
            for kind in range(2)
        ]
        tables = patterns > 0
        root = tree.root
        parent = np.full(n, -1)
        for side in (tree.left, tree.right):
            parent[side[~leaf]] = np.flatnonzero(~leaf)
        frontier = np.flatnonzero(tables & ((np.arange(n) == root) | ~tables[parent]))
        variables = [_variables(tree, int(v)) for v in frontier]
        flat = np.concatenate(variables)
        return cls(
            plan=plan,
            patterns=patterns,
            two_steps=two_steps,
            terms=terms,
            tables=stages[0],
            rows=stages[1],
            leaves=_leaves(plan, patterns, n_states),
            frontier=frontier,
            subtree_start=np.cumsum([0, *(len(some) for some in variables)]),
            subtree_variables=np.stack([flat, n_states[flat]], 1),
            edge_nodes=np.zeros((len(p.target), 2)) if children is None else children,
        )

    def layers(self, tile: int, vectors: int) -> tuple[Array, int, int]:
        """Place the layers for tiles of so many rows and states of so many vectors.

        Returns the layers' fields, and the sizes of all states and all probabilities.
        """
        tree, pairs = self.plan.vtree, self.plan.pairs
        lanes = np.where(self.patterns > 0, self.patterns, tile)
        n_pairs, n_nodes = np.diff(pairs.pair_start), np.diff(self.plan.p.node_start)
        n_halves = np.where(self.two_steps, np.diff(pairs.half_start), 0)
        states = np.cumsum([0, *(lanes * (n_pairs + n_halves) * vectors)])
        probabilities = np.cumsum([0, *(lanes * n_nodes)])
        fields = np.zeros((len(tree), FIELDS), np.int64)
        fields[:, OUT], fields[:, OUT_STRIDE] = states[:-1], lanes
        fields[:, HALVES] = states[:-1] + lanes * n_pairs * vectors
        fields[:, Q_OUT] = probabilities[:-1]
        fields[:, [LEFT_MAP, RIGHT_MAP]] = -1
        inner = np.flatnonzero(tree.variable < 0)
        subtree = np.full(len(tree), -1)
        subtree[self.frontier] = np.arange(len(self.frontier))
        for side, at, stride, map_at, q in (
            (tree.left, LEFT, LEFT_STRIDE, LEFT_MAP, Q_LEFT),
            (tree.right, RIGHT, RIGHT_STRIDE, RIGHT_MAP, Q_RIGHT),
        ):
            child = side[inner]
            fields[inner, at], fields[inner, stride] = fields[child, OUT], lanes[child]
            fields[inner, q] = fields[child, Q_OUT]
            fields[inner, map_at] = subtree[child]
        table = inner[self.patterns[inner] > 0]
        fields[table, RADIX] = self.patterns[tree.right[table]]
        return fields, int(states[-1]), int(probabilities[-1])


def _dense_layers(plan: Plan, layer_of_pair: Ints, layer_of_mix: Ints, n_joins: Ints) -> Bools:
    """Find the layers whose halves are worth summing first."""
    n, pairs = len(plan.vtree), plan.pairs
    n_terms = np.diff(pairs.mix_start)
    in_runs = np.bincount(layer_of_pair, np.where(pairs.mix_run > 1, pairs.mix_run, 0) * n_terms, n)
    mixes = np.bincount(layer_of_mix, minlength=n)
    joins = pairs.join_start[pairs.half_start[1:]] - pairs.join_start[pairs.half_start[:-1]]
    at_once = np.bincount(layer_of_mix, n_joins, n)
    return (in_runs > 0.5 * mixes) | (at_once > 2 * (joins + mixes))


def _sums(
    plan: Plan, two_steps: Bools, layer_of_pair: Ints, layer_of_mix: Ints, half_of_mix: Ints
) -> tuple[Array, tuple[Array, Array, Array, Array]]:
    """List the terms, and the sums of the first and the late phase with their nodes."""
    pairs = plan.pairs
    n, n_pairs = len(plan.vtree), len(pairs.pair_p)
    inner = (plan.vtree.variable < 0)[layer_of_pair]
    number = np.arange(n_pairs) - pairs.pair_start[layer_of_pair]

    def joins(start: Ints, count: Ints, edge: Ints) -> Array:
        """Write joins ``start .. start + count`` of several sums, one after the other."""
        j = _ranges(start, count)
        columns = [pairs.join_left[j], pairs.join_right[j], np.repeat(edge, count)]
        return np.stack([*columns, pairs.join_edge[j]], 1)

    n_joins = np.diff(pairs.join_start)
    at_once = np.where(two_steps[layer_of_mix], 0, n_joins[half_of_mix])
    first = joins(pairs.join_start[half_of_mix], at_once, pairs.mix_edge)
    start = np.cumsum([0, *at_once])[pairs.mix_start]
    whole = inner & ~two_steps[layer_of_pair]
    record = np.stack([layer_of_pair, start[:-1], start[1:], number], 1)[whole]
    # halves of dense layers
    layer_of_half = np.repeat(np.arange(n), np.diff(pairs.half_start))
    half = np.flatnonzero(two_steps[layer_of_half])
    second = joins(pairs.join_start[half], n_joins[half], np.full(len(half), -1))
    end = len(first) + np.cumsum([0, *n_joins[half]])
    own = half - pairs.half_start[layer_of_half[half]]
    halves = np.stack([layer_of_half[half], end[:-1], end[1:], -1 - own], 1)
    # pairs of dense layers in no run
    late = np.flatnonzero(inner & two_steps[layer_of_pair] & (pairs.mix_run == 1))
    count = pairs.mix_start[late + 1] - pairs.mix_start[late]
    mix = _ranges(pairs.mix_start[late], count)
    none = np.full(len(mix), -1)
    third = np.stack([pairs.mix_half[mix], none, pairs.mix_edge[mix], none], 1)
    at = len(first) + len(second) + np.cumsum([0, *count])
    rest = np.stack([layer_of_pair[late], at[:-1], at[1:], number[late]], 1)
    node = np.concatenate([pairs.pair_p[whole], np.zeros(len(half), np.int32)])
    terms = np.concatenate([first, second, third])
    return terms, (np.concatenate([record, halves]), node, rest, pairs.pair_p[late])


def _runs(plan: Plan, two_steps: Bools, layer_of_pair: Ints) -> tuple[Ints, Array]:
    """List the runs of dense layers."""
    pairs = plan.pairs
    k = np.flatnonzero((pairs.mix_run > 1) & two_steps[layer_of_pair])
    edge = pairs.mix_edge[pairs.mix_start[k]]
    step = pairs.mix_edge[pairs.mix_start[k + 1]] - edge if len(k) else edge
    terms = pairs.mix_start[k + 1] - pairs.mix_start[k]
    return layer_of_pair[k], np.stack([k, pairs.mix_run[k], terms, edge, step], 1)


def _stage(
    kind: int,
    level: Ints,
    patterns: Ints,
    nodes: Array,
    sums: tuple[Array, Array, Array, Array],
    runs: tuple[Ints, Array],
) -> Stage:
    """Take what belongs to tables (0) or rows (1), sorted by level."""
    mine = (patterns > 0) == (kind == 0)
    n_levels = int(level.max(initial=-1)) + 1

    def by_level(layer: Ints) -> tuple[Ints, Ints]:
        some = np.flatnonzero(mine[layer])
        some = some[np.argsort(level[layer[some]], kind="stable")]
        return some, np.searchsorted(level[layer[some]], np.arange(n_levels + 1))

    def sorted_sums(record: Array, node: Array) -> Sums:
        size = record[:, 2] - record[:, 1]
        parts, starts, begin = [], [], 0
        for chosen in (size <= LARGE, size > LARGE):
            which = np.flatnonzero(chosen)
            some, start = by_level(record[which, 0])
            parts.append(which[some])
            starts.append(start + begin)
            begin += len(some)
        order = np.concatenate(parts)
        return Sums(record[order], node[order], *starts)

    some, start = by_level(nodes[:, 0])
    run, run_start = by_level(runs[0])
    lanes = np.zeros(n_levels, np.int64)
    if kind == 0:
        inner = np.flatnonzero(level >= 0)
        np.maximum.at(lanes, level[inner], patterns[inner])
    return Stage(
        Nodes(nodes[some], start),
        sorted_sums(sums[0], sums[1]),
        sorted_sums(sums[2], sums[3]),
        runs[0][run],
        runs[1][run],
        run_start,
        lanes,
    )


def _leaves(plan: Plan, patterns: Ints, n_states: Ints) -> LeafCells:
    """List nodes and pairs of leaves, times the states of evidence."""
    tree, p, pairs, cards = plan.vtree, plan.p, plan.pairs, plan.cardinalities
    weights_at = np.cumsum([0, *(n_states * cards)])
    node_cell, node, pair_cell, pair, meetings = [], [], [], [], []
    n_meetings = 0
    for v in np.flatnonzero(tree.variable >= 0).tolist():
        x, states = tree.variable[v], np.arange(patterns[v])
        begin = weights_at[x] + states * cards[x]
        nodes = np.arange(p.node_start[v], p.node_start[v + 1])
        edges = p.edge_start[nodes], p.edge_start[nodes + 1]
        node_cell.append(_cells(*edges, begin, np.zeros(1, int)))
        node.append(_cells(np.full(len(nodes), v), nodes - nodes[0], states))
        k = np.arange(pairs.pair_start[v], pairs.pair_start[v + 1])
        if len(k):
            of_p = _edge_of_value(p, v, cards[x])[pairs.pair_p[k]]
            of_g = _edge_of_value(plan.g, v, cards[x])[pairs.pair_g[k]]
            which, value = np.nonzero((of_p >= 0) & (of_g >= 0))
            meetings.append(np.stack([of_p[which, value], of_g[which, value]], 1))
            start = n_meetings + np.searchsorted(which, np.arange(len(k) + 1))
            n_meetings += len(which)
            pair_cell.append(_cells(start[:-1], start[1:], begin, patterns[v : v + 1]))
            own = _cells(np.full(len(k), v), k - k[0], states)
            of_node = np.repeat(pairs.pair_p[k], len(states))
            pair.append(np.concatenate([own, of_node[:, None]], 1))
    return LeafCells(
        np.concatenate(node_cell),
        np.concatenate(node),
        _stacked(pair_cell, 4),
        _stacked(pair, 4),
        _stacked(meetings, 2),
    )


def _cells(first: Ints, second: Ints, state: Ints, same: Ints | None = None) -> Array:
    """Write two numbers of each item beside each of the states, and a number that all share."""
    columns = [np.repeat(first, len(state)), np.repeat(second, len(state))]
    columns.append(np.tile(state, len(first)))
    if same is not None:
        columns.append(np.repeat(same, len(columns[0])))
    return np.stack(columns, 1)


def _edge_of_value(layers: Any, v: int, card: int) -> Ints:
    """Return the edge of each node of a leaf layer for each value, or -1.  # (nodes, values)."""
    first, last = layers.node_start[v], layers.node_start[v + 1]
    edges = np.arange(layers.edge_start[first], layers.edge_start[last])
    node = np.repeat(np.arange(last - first), np.diff(layers.edge_start[first : last + 1]))
    table = np.full((last - first, card), -1)
    table[node, layers.target[edges]] = edges
    return table


def _variables(tree: Any, v: int) -> Ints:
    """Return the variables below a vtree node, from left to right."""
    out: list[int] = []
    todo = [v]
    while todo:
        u = todo.pop()
        if tree.variable[u] >= 0:
            out.append(int(tree.variable[u]))
        else:
            todo += [int(tree.right[u]), int(tree.left[u])]
    return np.array(out)


def _ranges(start: Ints, count: Ints) -> Ints:
    """Return ``start .. start + count`` of each, one after the other."""
    end = np.cumsum(count)
    return np.arange(end[-1] if len(end) else 0) + np.repeat(start - (end - count), count)


def _stacked(parts: list[Array], width: int) -> Array:
    return np.concatenate(parts) if parts else np.zeros((0, width), np.int64)
