"""Questions about p alone: probabilities, marginals, completions, samples, entropy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.circuits.evidence import Evidence, Rows, as_evidence
from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.settings import Progress, current
from expecta.common.threads import run_on_threads
from expecta.engine.algebras import Expectation, constants
from expecta.engine.passes import Leaves, complete, draw, entropies, posteriors, read_leaves
from expecta.engine.plan import Plan
from expecta.engine.probabilities import LOG_UNIT
from expecta.engine.run import run
from expecta.queries.impossible import check_possible

__all__ = [
    "MostProbable",
    "conditional_log_prob",
    "entropy",
    "log_prob",
    "marginals",
    "mpe",
    "sample",
]

LANES = 64  # rows side by side: fewer waste vector units, more overflow the cache
MEMORY = 128 * 1024 * 1024  # bytes that the layers of these rows may take on a thread
CELLS = 4 * 1024 * 1024  # cells of evidence, or random numbers, at a time
WORK = 2_000_000_000  # edges times rows at a time: about a second
MANY_STATES = 256  # of a variable: more than values and a few sets need
SMALL = 1_000_000  # edges times rows below which threads cost more than they bring


class MostProbable(NamedTuple):
    """The most probable completion of each row."""

    x: Ints  # (rows, variables); -1 where the evidence is impossible
    log_prob: Floats  # (rows,) log p(x), likelihoods of soft evidence left aside
    exact: bool  # whether no completion is more probable


def log_prob(plan: Plan, X: Rows) -> Floats:
    """Log-probability of the evidence of each row; ``-inf`` where it is impossible.  # (rows,)."""
    evidence = as_evidence(X, plan.cardinalities)
    numbers = Expectation(outputs=0)
    root = run(plan, numbers, constants(numbers, plan.phi), evidence)
    with np.errstate(divide="ignore"):
        log_q: Floats = np.log(root.q)
    return log_q + root.exponent * LOG_UNIT + root.log_scale


def conditional_log_prob(plan: Plan, X: Rows, given: Rows) -> Floats:
    """Log-probability of one piece of evidence given another; one row goes with all.  # (rows,)."""
    wanted, known = as_evidence(X, plan.cardinalities), as_evidence(given, plan.cardinalities)
    joint = log_prob(plan, wanted.both(known))
    condition = np.broadcast_to(log_prob(plan, known), joint.shape)
    gone = check_possible(condition == -np.inf, "nan")
    out = np.full(joint.shape, np.nan)
    out[~gone] = joint[~gone] - condition[~gone]
    return out


def marginals(plan: Plan, X: Rows, on_impossible: str) -> list[Floats]:
    """Posterior of every variable given each row, soft evidence included.  # (rows, values) each.

    Cost: two passes over p's edges per row.
    """
    evidence = as_evidence(X, plan.cardinalities)
    n, cards = len(evidence), plan.cardinalities.astype(np.int64)
    start = np.concatenate([[0], np.cumsum(n * cards)])
    flat = np.empty(start[-1])
    impossible = _each_part(plan, evidence, "marginals", posteriors, flat, start)
    out = [
        flat[a:b].reshape(n, card)
        for a, b, card in zip(start[:-1], start[1:], cards.tolist(), strict=True)
    ]
    gone = check_possible(impossible, on_impossible)
    if np.any(gone):
        for table in out:
            table[gone] = np.nan
    return out


def mpe(plan: Plan, X: Rows, exact: bool, on_impossible: str) -> MostProbable:
    """Most probable completion of each row: the x that maximises p(x) e(x).

    e(x) is one or zero for values, sets and intervals. Soft evidence weighs the values
    of x by its likelihoods, so that x is the most probable row *after* seeing it;
    ``log_prob`` is log p(x) alone in any case. ``exact`` says whether p is
    deterministic. Cost: a pass over p's edges per row.
    """
    evidence = as_evidence(X, plan.cardinalities)
    x = np.full((len(evidence), len(plan.cardinalities)), -1, np.int64)
    impossible = _each_part(plan, evidence, "completions", complete, x, largest=True)
    gone = check_possible(impossible, on_impossible)
    log_p = log_prob(plan, x)
    log_p[gone] = np.nan
    return MostProbable(x, log_p, exact)


def sample(plan: Plan, n: int | None, given: Rows | None, seed: Any) -> Ints:
    """Draw ``n`` complete rows from p given each row of evidence.  # (rows, n, variables).

    Without evidence the first axis is gone, with ``n=None`` the axis of draws. A draw
    takes one random number per vtree node, in the order of rows and draws, so that
    neither threads nor memory change what a seed gives. Cost: a pass over p's edges
    per row of evidence, and per draw the vtree.
    """
    per_row = 1 if n is None else n
    if per_row < 0:
        raise ValueError(f"the number of draws is at least 0, not {n}")
    cards = plan.cardinalities
    evidence = Evidence.unknown(cards) if given is None else as_evidence(given, cards)
    rng = np.random.default_rng(seed)
    total = len(evidence) * per_row
    out = np.empty((total, len(cards)), np.int64)
    impossible = np.zeros(len(evidence), np.bool_)
    tables = _Tables.of(evidence)
    step = max(1, CELLS // max(len(plan.vtree), _cells(plan, evidence)))
    with Progress("samples", total) as progress:
        for start in range(0, total, step):
            stop = min(total, start + step)
            first_row, last_row = start // per_row, -(-stop // per_row)
            part = _part(plan, evidence, tables, first_row, last_row, False)
            uniforms = rng.random((stop - start, len(plan.vtree)))
            do = partial(
                draw,
                plan.p,
                plan.weights,
                part.leaves,
                part.codes,
                part.lanes,
                uniforms,
                per_row,
                start - first_row * per_row,
                out[start:stop],
                impossible[first_row:last_row],
            )
            edges = len(plan.p.target) * (last_row - first_row)
            _share_out(do, stop - start, edges + len(plan.vtree) * (stop - start))
            progress.advance(stop - start)
    check_possible(impossible, "raise")
    shape = (() if given is None else (len(evidence),)) + (() if n is None else (n,))
    return out.reshape(*shape, len(cards))


def entropy(plan: Plan, X: Rows | None, on_impossible: str) -> float | Floats:
    """Entropy in nats of a deterministic p given each row, or given nothing.

    Cost: a pass over p's edges per row, with a logarithm each.
    """
    nothing = Evidence.unknown(plan.cardinalities)
    evidence = nothing if X is None else as_evidence(X, plan.cardinalities)
    out = np.empty(len(evidence))
    impossible = _each_part(plan, evidence, "entropies", entropies, out)
    out[check_possible(impossible, on_impossible)] = np.nan
    return float(out[0]) if X is None else out


# -- rows to passes -------------------------------------------------------------------


class _Part(NamedTuple):
    """A range of rows, ready for a pass."""

    leaves: Leaves
    codes: Ints  # (variables, rows)
    lanes: int


@dataclass(frozen=True)
class _Tables:
    """All states of all variables: weight · 2^(256 exponent), the greatest of a state near one.

    Posteriors do not change when the weights of a state are all divided by a number.
    """

    state_start: Ints  # (variables + 1,)
    weight_start: Ints  # (variables + 1,)
    weight: Floats  # variable by variable, (states, values)
    exponent: Floats

    @classmethod
    def of(cls, evidence: Evidence) -> _Tables:
        n_states = [len(table) for table in evidence.states]
        weight = np.concatenate([table.reshape(-1) for table in evidence.states])
        greatest = np.concatenate(
            [np.repeat(t.max(axis=1, initial=0.0), t.shape[1]) for t in evidence.states]
        )
        exponent = np.zeros_like(weight)
        uneven = ~((greatest == 1.0) | (greatest == 0.0)) | ((weight > 0) & (weight < 2.0**-256))
        if np.any(uneven):
            # Weights may lie 600 decimal orders apart: divide fractions, subtract powers.
            fraction, power = np.frexp(weight[uneven])
            top_fraction, top_power = np.frexp(greatest[uneven])
            power = np.where(fraction > 0, power - top_power, 0)
            exponent[uneven] = -(-power // 256)
            weight[uneven] = np.ldexp(fraction / top_fraction, power + -power // 256 * 256)
        return cls(
            state_start=np.concatenate([[0], np.cumsum(n_states)]),
            weight_start=np.concatenate([[0], np.cumsum([t.size for t in evidence.states])]),
            weight=weight,
            exponent=exponent,
        )


def _part(
    plan: Plan, evidence: Evidence, tables: _Tables, start: int, stop: int, largest: bool
) -> _Part:
    codes = np.stack([code[start:stop] for code in evidence.codes]).astype(np.int32)
    leaves = read_leaves(
        plan.p,
        plan.weights,
        plan.cardinalities,
        tables.state_start,
        tables.weight_start,
        tables.weight,
        tables.exponent,
        codes,
        largest,
    )
    return _Part(leaves, codes, _lanes(plan, stop - start))


def _lanes(plan: Plan, n_rows: int) -> int:
    """Choose how many rows go side by side."""
    size = 8 * (3 * int(plan.p.node_start[-1]) + 2 * int(np.diff(plan.p.element_start).max()))
    return max(1, min(LANES, MEMORY // size, n_rows))


def _cells(plan: Plan, evidence: Evidence) -> int:
    """Count the numbers to hold per row: a state per variable, and what leaves make of it.

    The latter are few, unless there are about as many states as rows.
    """
    leaf = plan.vtree.leaf_of
    nodes = plan.p.node_start[leaf + 1] - plan.p.node_start[leaf]
    many = np.array([len(table) for table in evidence.states]) > MANY_STATES
    return len(nodes) + int((nodes + plan.cardinalities)[many].sum())


def _each_part(
    plan: Plan,
    evidence: Evidence,
    label: str,
    visit: Callable[..., None],
    *out: npt.NDArray[Any],
    largest: bool = False,
) -> Bools:
    """Let a pass visit all rows, some at a time, on every thread; return which are impossible."""
    n, edges = len(evidence), len(plan.p.target)
    impossible = np.zeros(n, np.bool_)
    tables = _Tables.of(evidence)
    step = max(64, min(CELLS // _cells(plan, evidence), WORK // edges))
    with Progress(label, n) as progress:
        for start in range(0, n, step):
            rows = min(n - start, step)
            part = _part(plan, evidence, tables, start, start + rows, largest)
            circuit = (plan.p, plan.weights, part.leaves, part.codes, part.lanes)
            _share_out(partial(visit, *circuit, *out, start, impossible), rows, edges * rows)
            progress.advance(rows)
    return impossible


def _share_out(do: Callable[[int, int], None], n: int, work: int) -> None:
    """Call ``do(first, last)`` for ranges of 0 .. n, one for each thread."""
    threads = min(n, current().n_threads()) if work > SMALL else 1
    cuts = [n * k // threads for k in range(threads + 1)]
    run_on_threads(do, list(pairwise(cuts)), threads)
