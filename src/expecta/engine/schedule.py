"""Schedule a batch: which layer is computed when, and where it is kept."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.engine.plan import Plan
from expecta.engine.row_patterns import Patterns
from expecta.engine.state_tables import StateTables
from expecta.engine.walk import STEP_FIELDS

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
    free: list[list[int]] = field(default_factory=list)  # [start, size], by start

    def take(self, size: int) -> int:
        for i, (at, room) in enumerate(self.free):
            if room >= size:
                self.free[i] = [at + size, room - size]
                return at
        self.end += size
        return self.end - size

    def give(self, at: int, size: int) -> None:
        holes = sorted([*(h for h in self.free if h[1]), [at, size]])
        self.free = []
        for hole in holes:
            if self.free and sum(self.free[-1]) == hole[0]:
                self.free[-1][1] += hole[1]
            else:
                self.free.append(hole)


def schedule(
    plan: Plan,
    sizes: Sizes,
    patterns: Patterns,
    tables: StateTables,
    n_rows: int,
    lanes: int,
) -> Schedule:
    """Put the layers in order and give each its place. Cost: linear in the vtree."""
    tree = plan.vtree
    rows, count = sizes.rows.tolist(), patterns.number.tolist()
    left, right, variable = tree.left.tolist(), tree.right.tolist(), tree.variable.tolist()
    parent = tree.parent.tolist()
    maps_of_patterns = patterns.pattern_of.size  # pattern_of comes first in the maps
    at: list[int] = [0] * len(tree)
    space, slots = _Space(), _Space()
    weights: list[Floats] = []
    exponents: list[Floats] = []
    states_end = 0
    group: list[list[int]] = []
    groups: list[Ints] = []
    upper: list[list[int]] = []

    def child(v: int, c: int, side: int) -> list[int]:
        if not count[c]:
            return [at[c], 0, 0]
        if count[v]:  # a pattern knows its children's patterns
            where = maps_of_patterns + int(patterns.child_at[v]) + side * count[v]
        else:
            where = int(patterns.row[c]) * n_rows
        return [at[c], count[c], where]

    for v in plan.order.tolist():
        lane_count = count[v] or -1
        if variable[v] >= 0:
            first = int(patterns.child_at[v])
            used = tables.some(variable[v], patterns.children[first : first + count[v]])
            source = [states_end, 0, 0, 0, 0, 0]
            weights.append(used[0])
            exponents.append(used[1])
            states_end += used[0].size
        else:
            source = child(v, left[v], 0) + child(v, right[v], 1)
        if count[v]:
            at[v] = space.take(rows[v] * count[v])
            group.append([v, lane_count, at[v], count[v], *source])
            if variable[v] < 0:
                for c in (left[v], right[v]):
                    space.give(at[c], rows[c] * count[c])
            if parent[v] < 0 or not count[parent[v]]:  # a shared subtree is complete
                groups.append(np.array(group))
                group = []
                space = _Space(space.end)
        else:
            is_root = parent[v] < 0
            at[v] = space.take(rows[v] * n_rows) if is_root else slots.take(rows[v] * lanes)
            upper.append([v, lane_count, at[v], n_rows if is_root else 0, *source])
            for c in (left[v], right[v]):
                if not count[c]:
                    slots.give(at[c], rows[c] * lanes)
    largest = max(rows)
    needed = [largest, largest, int(np.max(sizes.elements)), int(np.max(sizes.halves)), largest]
    room = slots.end + lanes * np.concatenate([[0], np.cumsum(needed)])
    above = np.array(upper, np.int64).reshape(-1, STEP_FIELDS)
    return Schedule(
        groups=groups,
        group_cost=[int((sizes.cost[g[:, 0]] * g[:, 1]).sum()) for g in groups],
        upper=above,
        upper_cost=int(sizes.cost[above[:, 0]].sum()),
        shared_size=space.end,
        local_size=int(room[-1]) + lanes * sizes.small,
        room=room,
        states=np.concatenate(weights + exponents),
        root_at=at[tree.root],
        root_lanes=count[tree.root] or n_rows,
    )
