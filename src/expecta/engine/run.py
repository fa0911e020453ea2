"""Run a compiled pair: evidence in, the state of the root pair out.

Rows are taken in batches. In a batch, layers below the sharing frontier are computed
once per evidence pattern and kept until their parents are done; above it, blocks of
rows small enough for the cache walk the rest of the vtree. Threads take subtrees in
the first part and ranges of rows in the second; every lane is computed the same way
whatever its neighbours, so answers depend neither on threads nor on batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Floats, Ints
from expecta.common.compiling import await_compiled, compile_beside
from expecta.common.errors import DeviceError
from expecta.common.progress import Progress
from expecta.common.settings import current
from expecta.common.threads import run_on_threads
from expecta.engine.algebra_kinds import AlgebraKind
from expecta.engine.algebras import scratch, width
from expecta.engine.cuda.choice import failed_on_card, on_card
from expecta.engine.cuda.rows_on_card import RowsOnCard
from expecta.engine.one_row import walk_one_row
from expecta.engine.operands import Operands
from expecta.engine.plan import Plan
from expecta.engine.row_patterns import distinct_rows, number_patterns
from expecta.engine.schedule import Schedule, Sizes, schedule
from expecta.engine.state_tables import StateTables
from expecta.engine.walk import Memory, walk

MAX_SHARED_BYTES = 192 * 1024 * 1024  # bytes for the shared layers of a batch
MAX_CELLS = 4 * 1024 * 1024  # cells of evidence in a batch
MAX_PRODUCTS = 16_000_000_000  # multiplications in a batch: a second or so until the bar moves
MIN_THREADED_PRODUCTS = 1_000_000  # multiplications below which threads cost more than they bring


def prepare_walk() -> None:
    """Have the walk compiled while other work goes on, if it is not."""
    compile_beside(walk, "from expecta.engine.compile_walk import compile_walk; compile_walk()")


class Root(NamedTuple):
    """The root's values, not yet divided by the probability of the evidence."""

    q: Floats  # (rows,) probability of the evidence is q · 2^(256 exponent) · exp(log_scale)
    exponent: Floats  # (rows,)
    log_scale: Floats  # (rows,) logarithm of the greatest weights of soft evidence
    state: Floats  # (width, rows); (0, rows) where the supports of p and g never meet


def run(plan: Plan, algebra: Any, constants: Floats, evidence: Evidence | RowsOnCard) -> Root:
    """Walk the pair for every row of the evidence.

    Cost: ``plan.n_joins`` products of states per distinct row at most, less where rows
    agree on the variables below a vtree node.
    """
    return run_each(plan, algebra, [lambda: constants], evidence)[0]


def run_each(
    plan: Plan,
    algebra: Any,
    constants: Sequence[Callable[[], Floats]],
    evidence: Evidence | RowsOnCard,
) -> list[Root]:
    """Walk the pair once for each table of constants; patterns and schedule are common to all.

    Rows that lie on a card are walked there, whatever the settings, and so are roots.
    """
    if isinstance(evidence, RowsOnCard) and evidence.there:
        return _run_on_card(plan, algebra, constants, evidence)
    if on_card(plan, algebra, len(constants), len(evidence)):
        try:
            return _run_on_card(plan, algebra, constants, evidence)
        except DeviceError as problem:
            failed_on_card(problem)
    if isinstance(evidence, RowsOnCard):
        evidence = evidence.evidence
    n = len(evidence)
    if n == 1 and (one := walk_one_row(plan, algebra, constants, evidence)) is not None:
        return [Root(root[:1], root[1:2], np.zeros(1), root[2:, None]) for root in one]
    equal = _equal_rows(plan, evidence)
    if equal is not None:
        first, kind = equal
        roots = run_each(plan, algebra, constants, evidence[first])
        return [Root(*(part[..., kind] for part in root)) for root in roots]
    sizes = Sizes.of(plan, width(algebra), scratch(algebra))
    tables = StateTables.of(evidence)
    out = np.empty((len(constants), int(sizes.rows[-1]), n))
    per_row = max(1, int(sizes.cost.sum()))
    batch = max(64, min(MAX_CELLS // len(plan.cardinalities), MAX_PRODUCTS // per_row))
    with Progress("rows", n * len(constants)) as progress:
        start = 0
        while start < n:
            stop = min(n, start + batch)
            ready = _Batch.of(plan, sizes, tables, evidence, start, stop)
            if ready is None:
                batch = (stop - start + 1) // 2
                continue
            shared = np.empty(ready.todo.shared_size)
            for table, root in zip(constants, out, strict=True):
                ready.walk(plan, algebra, table(), shared, root[:, start:stop])
                progress.advance(stop - start)
            start = stop
    log_scale = tables.log_scale()
    return [Root(root[0], root[1], log_scale, root[2:]) for root in out]


def _run_on_card(
    plan: Plan,
    algebra: Any,
    constants: Sequence[Callable[[], Floats]],
    evidence: Evidence | RowsOnCard,
) -> list[Root]:
    from expecta.engine.cuda.cuda_run import run_on_card

    tables = StateTables.of(evidence)
    roots = run_on_card(plan, algebra, constants, tables)
    if isinstance(evidence, RowsOnCard):  # whose states have weights of 0 and 1
        return [Root(q, exponent, np.zeros_like(q), state) for q, exponent, state in roots]
    log_scale = tables.log_scale()
    return [Root(q, exponent, log_scale, state) for q, exponent, state in roots]


def _equal_rows(plan: Plan, evidence: Evidence) -> tuple[Ints, Ints] | None:
    """Find rows that are equal, where that pays and fits in memory."""
    tree = plan.vtree
    if not 16 <= len(evidence) <= 16 * MAX_CELLS // len(plan.cardinalities):
        return None
    codes = np.stack(evidence.codes).astype(np.int32)
    n_states = np.array([len(table) for table in evidence.states])
    return distinct_rows(tree.left, tree.right, tree.variable, codes, n_states)


@dataclass(frozen=True)
class _Batch:
    """Some rows, ready to walk."""

    todo: Schedule
    maps: Ints  # pattern numbers of rows and of patterns' children
    root_pattern: Ints | None  # (rows,) where the root itself is shared
    lanes: int
    n_rows: int

    @classmethod
    def of(
        cls,
        plan: Plan,
        sizes: Sizes,
        tables: StateTables,
        evidence: Evidence,
        start: int,
        stop: int,
    ) -> _Batch | None:
        """Find the patterns and make the schedule; None where it needs too much memory."""
        tree, n = plan.vtree, stop - start
        codes = np.stack([code[start:stop] for code in evidence.codes]).astype(np.int32)
        patterns = number_patterns(tree.left, tree.right, tree.variable, codes, tables.n_states)
        lanes = sizes.lanes(plan, n)
        todo = schedule(plan, sizes, patterns, tables, n, lanes)
        if 8 * todo.shared_size > MAX_SHARED_BYTES and n > lanes:
            return None
        maps = np.concatenate([patterns.pattern_of.reshape(-1), patterns.children])
        shared = not len(todo.upper)
        root_pattern = patterns.pattern_of[patterns.row[tree.root]] if shared else None
        return cls(todo, maps, root_pattern, lanes, n)

    def walk(
        self, plan: Plan, algebra: Any, constants: Floats, shared: Floats, out: Floats
    ) -> None:
        """Fill ``out`` (vectors of the root layer, rows); ``shared`` is memory to work in."""
        todo, lanes, n = self.todo, self.lanes, self.n_rows
        flags = np.zeros(len(plan.vtree), np.uint8)

        memory = Memory(shared, flags, self.maps, todo.states, todo.room)
        await_compiled()
        pair, kind = Operands(plan.p, plan.g, constants, plan.pairs), AlgebraKind.of(algebra)

        def do(steps: Ints, first: int, last: int) -> None:
            walk(kind, pair, steps, memory, np.zeros(todo.local_size), lanes, first, last)

        work = sum(todo.group_cost) + todo.upper_cost * n
        threads = current().n_threads() if work > MIN_THREADED_PRODUCTS else 1
        run_on_threads(do, [(steps, 0, 1) for steps in _deal(todo, threads)], threads)
        if len(todo.upper):
            part = -(-n // (threads * lanes)) * lanes
            run_on_threads(
                do, [(todo.upper, a, min(n, a + part)) for a in range(0, n, part)], threads
            )
        root = shared[todo.root_at :][: len(out) * todo.root_lanes].reshape(len(out), -1)
        out[:] = root if self.root_pattern is None else root[:, self.root_pattern]


def _deal(todo: Schedule, threads: int) -> list[Ints]:
    """Deal the shared subtrees out to threads, the costliest first."""
    hands: list[list[Ints]] = [[] for _ in range(threads)]
    load = [0] * threads
    for k in np.argsort(todo.group_cost, kind="stable")[::-1].tolist():
        lightest = load.index(min(load))
        hands[lightest].append(todo.groups[k])
        load[lightest] += todo.group_cost[k]
    return [np.concatenate(hand) for hand in hands if hand]
