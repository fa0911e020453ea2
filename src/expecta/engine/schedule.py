"""Schedule a batch: which layer is computed when, and where it is kept."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.engine.plan import Plan
from expecta.engine.row_patterns import Patterns
from expecta.engine.state_tables import StateTables
from expecta.engine.walk import (
    CHILD,
    CHILD_AT,
    CHILD_FIELDS,
    CHILD_MAP,
    CHILD_STRIDE,
    LANES,
    OUT,
    OUT_STRIDE,
    STATES,
    STEP_FIELDS,
    VERTEX,
)

CACHE_BYTES = 2 * 1024 * 1024  # that a block of rows should need at a typical layer
MIN_LANES, MAX_LANES = 16, 48


@dataclass(frozen=True)
class Sizes:
    """How much a plan's layers hold and cost per lane, in an algebra of some width."""

    rows: Ints  # vectors of each layer: q, its exponent, and the states of its pairs
    halves: Ints  # vectors of each layer's halves
    elements: Ints  # vectors of each layer's elements of p: probability and exponent
    cost: Ints  # multiplications of each layer
    small: int  # vectors for a leaf's values, the halves of a run, or the algebra's own use

    @classmethod
    def of(cls, plan: Plan, width: int, scratch: int) -> Sizes:
        """Measure a plan."""
        p, pairs = plan.p, plan.pairs
        rows = 2 * np.diff(p.node_start) + width * np.diff(pairs.pair_start)
        joins = np.diff(pairs.join_start[pairs.half_start])
        mixes = np.diff(pairs.mix_start[pairs.pair_start])
        edges = np.diff(p.edge_start[p.node_start])
        mixed = np.diff(pairs.mix_start)[pairs.mix_run > 1]
        return cls(
            rows=rows,
            halves=width * np.diff(pairs.half_start),
            elements=2 * np.diff(p.element_start),
            cost=width * (3 * joins + mixes) + 2 * edges + rows,
            small=max(int(np.max(plan.cardinalities)), scratch, int(np.max(mixed, initial=1))),
        )

    def lanes(self, plan: Plan, n_rows: int) -> int:
        """Choose how many rows walk side by side: as many as the cache holds."""
        inner = plan.vtree.variable < 0
        if not np.any(inner):
            return 8
        children = self.rows[plan.vtree.left[inner]] + self.rows[plan.vtree.right[inner]]
        vectors = children + self.rows[inner] + self.halves[inner] + self.elements[inner]
        typical = float(np.average(vectors, weights=self.cost[inner]))
        fit = int(CACHE_BYTES / (8 * typical)) // 8 * 8
        return min(max(MIN_LANES, min(MAX_LANES, fit)), -(-n_rows // 8) * 8)


@dataclass
class Schedule:
    """Steps for the shared part and for the part above it, and the memory they need."""

    groups: list[Ints]  # steps of one shared subtree each  # (steps, STEP_FIELDS)
    group_cost: list[int]
    upper: Ints  # steps for every block of rows  # (steps, STEP_FIELDS)
    upper_cost: int  # per row
    shared_size: int  # numbers in the shared array
    local_size: int  # numbers in each thread's own array
    room: Ints  # where in it the working vectors begin
    states: Floats  # the leaves' evidence states
    root_at: int  # where the root layer is in the shared array
    root_lanes: int


@dataclass
class _Space:
    """First-fit allocation in one long array."""

    end: int = 0
    free: list[tuple[int, int]] = field(default_factory=list)  # (start, size), by start

    def take(self, size: int) -> int:
        for i, (at, room) in enumerate(self.free):
            if room > size:
                self.free[i] = at + size, room - size
                return at
            if room == size:
                del self.free[i]
                return at
        self.end += size
        return self.end - size

    def give(self, at: int, size: int) -> None:
        free = self.free
        i = bisect.bisect_left(free, (at, 0))
        if i < len(free) and free[i][0] == at + size:
            size += free.pop(i)[1]
        if i and sum(free[i - 1]) == at:
            free[i - 1] = free[i - 1][0], free[i - 1][1] + size
        else:
            free.insert(i, (at, size))


@dataclass
class _Memory:
    """Where each layer is kept, and where the layers of one shared subtree end."""

    at: Ints  # (vtree nodes,)
    cuts: list[int]  # among the shared layers, in order
    shared_size: int
    local_size: int


def schedule(
    plan: Plan,
    sizes: Sizes,
    patterns: Patterns,
    tables: StateTables,
    n_rows: int,
    lanes: int,
) -> Schedule:
    """Put the layers in order and give each its place. Cost: linear in the vtree."""
    memory = _memory(plan, sizes.rows, patterns.number, n_rows, lanes)
    steps = _steps(plan, patterns, tables, memory.at, n_rows)
    shared = patterns.number[plan.order] > 0
    groups = np.split(steps[shared], memory.cuts[:-1]) if memory.cuts else []
    largest = int(np.max(sizes.rows))
    needed = [largest, largest, int(np.max(sizes.elements)), int(np.max(sizes.halves)), largest]
    room = memory.local_size + lanes * np.concatenate([[0], np.cumsum(needed)])
    above = steps[~shared]
    return Schedule(
        groups=groups,
        group_cost=[int((sizes.cost[g[:, VERTEX]] * g[:, LANES]).sum()) for g in groups],
        upper=above,
        upper_cost=int(sizes.cost[above[:, VERTEX]].sum()),
        shared_size=memory.shared_size,
        local_size=int(room[-1]) + lanes * sizes.small,
        room=room,
        states=_states(plan, patterns, tables),
        root_at=int(memory.at[plan.vtree.root]),
        root_lanes=int(patterns.number[plan.vtree.root]) or n_rows,
    )


def _memory(plan: Plan, rows: Ints, number: Ints, n_rows: int, lanes: int) -> _Memory:
    """Give each layer its place, which is free again once its parent is done."""
    tree = plan.vtree
    left, right, parent = tree.left.tolist(), tree.right.tolist(), tree.parent.tolist()
    count, inner = number.tolist(), (tree.variable < 0).tolist()
    size = (rows * np.where(number > 0, number, lanes)).tolist()
    at, cuts, n_shared = [0] * len(tree), [], 0
    space, slots = _Space(), _Space()
    for v in plan.order.tolist():
        if count[v]:
            at[v] = space.take(size[v])
            if inner[v]:
                space.give(at[left[v]], size[left[v]])
                space.give(at[right[v]], size[right[v]])
            n_shared += 1
            if parent[v] < 0 or not count[parent[v]]:  # a shared subtree is complete
                cuts.append(n_shared)
                space = _Space(space.end)
        else:
            at[v] = slots.take(size[v]) if parent[v] >= 0 else space.take(int(rows[v]) * n_rows)
            for c in (left[v], right[v]):
                if not count[c]:
                    slots.give(at[c], size[c])
    return _Memory(np.array(at), cuts, space.end, slots.end)


def _steps(plan: Plan, patterns: Patterns, tables: StateTables, at: Ints, n_rows: int) -> Ints:
    """Write what the walk reads of each layer, in order.  # (steps, STEP_FIELDS)."""
    tree, v, number = plan.vtree, plan.order, patterns.number
    count, child_at = number[v], patterns.child_at[v]
    steps = np.zeros((len(v), STEP_FIELDS), np.int64)
    steps[:, VERTEX] = v
    steps[:, LANES] = np.where(count > 0, count, -1)
    steps[:, OUT] = at[v]
    steps[:, OUT_STRIDE] = np.where((count > 0) | (tree.parent[v] >= 0), count, n_rows)
    inner = tree.variable[v] < 0
    v, count, child_at = v[inner], count[inner], child_at[inner]
    maps_of_patterns = patterns.pattern_of.size  # pattern_of comes first in the maps
    for side, children in enumerate((tree.left[v], tree.right[v])):
        # a pattern knows its children's patterns
        where = np.where(
            count > 0,
            maps_of_patterns + child_at + side * count,
            patterns.row[children] * n_rows,
        )
        first = CHILD + CHILD_FIELDS * side
        steps[inner, first + CHILD_AT] = at[children]
        steps[inner, first + CHILD_STRIDE] = number[children]
        steps[inner, first + CHILD_MAP] = np.where(number[children] > 0, where, 0)
    leaves = plan.order[~inner]
    cells = number[leaves] * tables.n_values[tree.variable[leaves]]
    steps[~inner, STATES] = np.cumsum(cells) - cells  # where the states of its evidence begin
    return steps


def _states(plan: Plan, patterns: Patterns, tables: StateTables) -> Floats:
    """Return the weights of the states that leaves take, in order, and then their exponents."""
    variable = plan.vtree.variable[plan.order]
    leaves, variables = plan.order[variable >= 0], variable[variable >= 0].tolist()
    first, number = patterns.child_at[leaves], patterns.number[leaves]
    start, n_states = tables.start.tolist(), tables.n_states.tolist()
    used = [
        (x, patterns.children[a:b])
        for x, a, b in zip(variables, first.tolist(), (first + number).tolist(), strict=True)
    ]

    def some(cells: Floats) -> list[Floats]:
        return [
            cells[start[x] : start[x + 1]].reshape(n_states[x], -1)[states].reshape(-1)
            for x, states in used
        ]

    weights = some(tables.weight)
    if tables.scaled:
        return np.concatenate(weights + some(tables.exponent))
    return np.concatenate([*weights, np.zeros(sum(map(len, weights)))])
