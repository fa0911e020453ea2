"""The engine: evidence in, the state of the root pair out.

Rows are taken in batches. In a batch, layers below the sharing frontier are computed
once per evidence pattern and kept until their parents are done; above it, blocks of
rows small enough for the cache walk the rest of the vtree. Threads take subtrees in
the first part and ranges of rows in the second; every lane is computed the same way
whatever its neighbours, so answers depend neither on threads nor on batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from expecta.arrays import Floats, Ints
from expecta.evidence import Evidence
from expecta.pair.algebras import scratch, width
from expecta.pair.patterns import number_patterns
from expecta.pair.plan import Plan
from expecta.pair.schedule import Schedule, Sizes, schedule
from expecta.pair.walk import walk
from expecta.settings import Progress, current

__all__ = ["Root", "run"]

MEMORY = 192 * 1024 * 1024  # bytes for the shared layers of a batch
CELLS = 4 * 1024 * 1024  # cells of evidence in a batch
SMALL = 1_000_000  # multiplications below which threads cost more than they bring


class Root(NamedTuple):
    """The root's values, not yet divided by the probability of the evidence."""

    q: Floats  # (rows,) probability of the evidence is q · 2^(256 exponent) · exp(log_scale)
    exponent: Floats  # (rows,)
    log_scale: Floats  # (rows,) logarithm of the greatest weights of soft evidence
    state: Floats  # (width, rows); (0, rows) where the supports of p and g never meet


def run(plan: Plan, algebra: Any, constants: Floats, evidence: Evidence) -> Root:  # noqa: ANN401
    """Walk the pair for every row of the evidence.

    Cost: ``plan.n_joins`` products of states per distinct row at most, less where rows
    agree on the variables below a vtree node.
    """
    sizes = Sizes.of(plan, width(algebra), scratch(algebra))
    tables = _Tables.of(evidence)
    n = len(evidence)
    out = np.empty((int(sizes.rows[-1]), n))
    batch = max(64, CELLS // len(plan.cardinalities))
    with Progress("expected predictions", n) as progress:
        start = 0
        while start < n:
            stop = min(n, start + batch)
            codes = np.stack([code[start:stop] for code in evidence.codes])
            done = _batch(plan, algebra, constants, sizes, tables, codes, out[:, start:stop])
            if done:
                progress.advance(stop - start)
                start = stop
            else:
                batch = (stop - start + 1) // 2
    return Root(out[0], out[1], tables.log_scale(evidence), out[2:])


def _batch(
    plan: Plan,
    algebra: Any,  # noqa: ANN401
    constants: Floats,
    sizes: Sizes,
    tables: _Tables,
    codes: Ints,
    out: Floats,
) -> bool:
    """Fill ``out`` for one batch; false where it would need too much memory."""
    tree, n = plan.vtree, codes.shape[1]
    n_states = np.array([len(table) for table in tables.log])
    patterns = number_patterns(tree.left, tree.right, tree.variable, codes, n_states)
    lanes = sizes.lanes(plan, n)
    todo = schedule(plan, sizes, patterns, tables.log, n, lanes)
    if 8 * todo.shared_size > MEMORY and n > lanes:
        return False
    shared = np.empty(todo.shared_size)
    maps = np.concatenate([patterns.pattern_of.reshape(-1), patterns.children])
    flags = np.zeros(len(tree), np.uint8)

    def do(steps: Ints, first: int, last: int) -> None:
        walk(
            algebra,
            plan.p,
            plan.weights,
            plan.g,
            constants,
            plan.pairs,
            steps,
            np.zeros(todo.local_size),
            todo.room,
            shared,
            flags,
            maps,
            todo.states,
            lanes,
            first,
            last,
        )

    work = sum(todo.group_cost) + todo.upper_cost * n
    threads = current().n_threads() if work > SMALL else 1
    _each(do, [(steps, 0, 1) for steps in _deal(todo, threads)], threads)
    if len(todo.upper):
        part = -(-n // (threads * lanes)) * lanes
        _each(do, [(todo.upper, a, min(n, a + part)) for a in range(0, n, part)], threads)
    root = shared[todo.root_at :][: len(out) * todo.root_lanes].reshape(len(out), -1)
    out[:] = root if len(todo.upper) else root[:, patterns.pattern_of[patterns.row[tree.root]]]
    return True


def _deal(todo: Schedule, threads: int) -> list[Ints]:
    """Deal the shared subtrees out to threads, the costliest first."""
    hands: list[list[Ints]] = [[] for _ in range(threads)]
    load = [0] * threads
    for k in np.argsort(todo.group_cost, kind="stable")[::-1].tolist():
        least = load.index(min(load))
        hands[least].append(todo.groups[k])
        load[least] += todo.group_cost[k]
    return [np.concatenate(hand) for hand in hands if hand]


def _each(
    do: Callable[[Ints, int, int], None], calls: Sequence[tuple[Ints, int, int]], threads: int
) -> None:
    if len(calls) == 1 or threads == 1:
        for call in calls:
            do(*call)
        return
    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(do, *call) for call in calls]:
            future.result()


@dataclass(frozen=True)
class _Tables:
    """Log-weights of every evidence state, the greatest of each taken out."""

    log: list[Floats]  # per variable (states, values)
    top: list[Floats | None]  # per variable (states,); None where all are zero

    @classmethod
    def of(cls, evidence: Evidence) -> _Tables:
        log: list[Floats] = []
        top: list[Floats | None] = []
        with np.errstate(divide="ignore"):
            for table in evidence.states:
                greatest = table.max(axis=1, initial=0.0)
                plain = bool(np.all((greatest == 1.0) | (greatest == 0.0)))
                greatest[greatest == 0.0] = 1.0
                log.append(np.log(table) if plain else np.log(table) - np.log(greatest)[:, None])
                top.append(None if plain else np.log(greatest))
        return cls(log, top)

    def log_scale(self, evidence: Evidence) -> Floats:
        total = np.zeros(len(evidence))
        for top, codes in zip(self.top, evidence.codes, strict=True):
            if top is not None:
                total += top[codes]
        return total
