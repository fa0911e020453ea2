"""Walk a single row: its steps and memory are the same for every row, so a plan keeps them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Floats, Ints
from expecta.common.compiling import await_compiled
from expecta.engine.algebra_kinds import AlgebraKind
from expecta.engine.algebras import scratch, width
from expecta.engine.operands import Operands
from expecta.engine.plan import Plan
from expecta.engine.row_patterns import number_patterns
from expecta.engine.schedule import Sizes, schedule
from expecta.engine.state_tables import StateTables
from expecta.engine.walk import Memory, walk

_kept: WeakKeyDictionary[Plan, dict[tuple[int, int], RowWalk]] = WeakKeyDictionary()


def walk_one_row(
    plan: Plan, algebra: Any, constants: Sequence[Callable[[], Floats]], evidence: Evidence
) -> list[Floats] | None:
    """Walk one row for each table of constants: what `_Batch.walk` computes, to the last bit.

    None where a state has weights other than 0 and 1. Cost beside the walk: linear in the values
    of all variables.  # (vectors of the root layer,) each
    """
    sizes = width(algebra), scratch(algebra)
    walks = _kept.setdefault(plan, {})
    ready = walks.get(sizes)
    if ready is None:
        ready = walks[sizes] = RowWalk.of(plan, *sizes)
    return ready(plan, algebra, constants, evidence)


@dataclass(frozen=True)
class RowWalk:
    """Steps and memory of a walk of one row."""

    steps: Ints
    maps: Ints
    room: Ints
    variables: list[int]  # of the leaves, in the order of the steps
    n_shared: int
    n_local: int
    root: slice  # the root layer in the shared array

    @classmethod
    def of(cls, plan: Plan, width: int, scratch: int) -> RowWalk:
        """Make the schedule of a row of which nothing is known, which is that of all rows."""
        tree, sizes = plan.vtree, Sizes.of(plan, width, scratch)
        tables = StateTables.of(Evidence.unknown(plan.cardinalities))
        codes = np.zeros((len(plan.cardinalities), 1), np.int32)
        patterns = number_patterns(tree.left, tree.right, tree.variable, codes, tables.n_states)
        todo = schedule(plan, sizes, patterns, tables, 1, 1)
        variables = tree.variable[plan.order]
        return cls(
            np.concatenate([*todo.groups, todo.upper]),
            np.concatenate([patterns.pattern_of.reshape(-1), patterns.children]),
            todo.room,
            variables[variables >= 0].tolist(),
            todo.shared_size,
            todo.local_size,
            slice(todo.root_at, todo.root_at + int(sizes.rows[-1])),
        )

    def __call__(
        self,
        plan: Plan,
        algebra: Any,
        constants: Sequence[Callable[[], Floats]],
        evidence: Evidence,
    ) -> list[Floats] | None:
        """Walk; see `walk_one_row`."""
        weight = np.concatenate([evidence.states[v][evidence.codes[v][0]] for v in self.variables])
        if not np.all((weight == 0.0) | (weight == 1.0)):
            return None
        states = np.concatenate([weight, np.zeros(len(weight))])  # weights, and their exponents
        shared, flags = np.empty(self.n_shared), np.zeros(len(plan.vtree), np.uint8)
        memory = Memory(shared, flags, self.maps, states, self.room)
        await_compiled()
        kind = AlgebraKind.of(algebra)
        out: list[Floats] = []
        for table in constants:
            pair = Operands(plan.p, plan.g, table(), plan.pairs)
            walk(kind, pair, self.steps, memory, np.zeros(self.n_local), 1, 0, 1)
            out.append(shared[self.root].copy())
        return out
