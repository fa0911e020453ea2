"""Answer questions about p alone: probabilities, marginals, completions, samples, entropy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.circuits.evidence import Evidence, Rows, as_evidence
from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.progress import Progress
from expecta.common.settings import current
from expecta.common.threads import run_on_threads
from expecta.engine.algebras import Expectation, constants
from expecta.engine.layers import LOG_UNIT
from expecta.engine.passes import complete, draw, entropies, posteriors, read_rows
from expecta.engine.passes import edge_flows as visit_edges
from expecta.engine.plan import Plan
from expecta.engine.run import Root, run
from expecta.engine.state_tables import StateTables
from expecta.queries.card_answers import rows_of, same_kind
from expecta.queries.impossible import check_possible

MAX_LANES = 64  # rows side by side: fewer waste vector units, more overflow the cache
MAX_BYTES = 128 * 1024 * 1024  # bytes that the layers of these rows may take on a thread
MAX_CELLS = 4 * 1024 * 1024  # cells of evidence, or random numbers, at a time
MAX_EDGE_VISITS = 2_000_000_000  # edges times rows at a time: about a second
MANY_STATES = 256  # of a variable: more than values and a few sets need
MIN_THREADED_VISITS = 1_000_000  # edges times rows below which threads cost more than they bring
FLOW_PARTS = 8  # sums over rows that flows are added up from


class MostProbable(NamedTuple):
    """The most probable completion of each row.

    Parameters
    ----------
    x
        The completion, -1 where the evidence is impossible.  # (rows, variables)
    log_prob
        log p(x), likelihoods of soft evidence left aside.  # (rows,)
    exact
        Whether no completion is more probable.

    Examples
    --------
    >>> from expecta import Vtree
    >>> from expecta.circuits import independent
    >>> p = independent(Vtree.balanced(2), [[0.2, 0.8], [0.6, 0.4]])
    >>> best = p.mpe([[-1, 1]])
    >>> best.x.tolist(), best.exact
    ([[1, 1]], True)
    """

    x: Ints  # (rows, variables); -1 where the evidence is impossible
    log_prob: Floats  # (rows,) log p(x), likelihoods of soft evidence left aside
    exact: bool  # whether no completion is more probable


def log_prob(plan: Plan, X: Rows) -> Floats:
    """Log-probability of the evidence of each row; ``-inf`` where it is impossible.  # (rows,)."""
    answer: Floats = same_kind(log_of(plan, _probability(plan, X)), X)
    return answer


def log_of(plan: Plan, root: Root) -> Floats:
    """Return the logarithm of the probability at a root.  # (rows,)."""
    # what cannot be told from one is one: nothing known has the probability one
    certain = np.abs(root.q - 1.0) <= 4 * np.finfo(np.float64).eps * (16 + len(plan.vtree))
    with np.errstate(divide="ignore"):
        log_q: Floats = np.log(np.where(certain, 1.0, root.q))
    return log_q + root.exponent * LOG_UNIT + root.log_scale


def scaled_prob(plan: Plan, x: Ints) -> tuple[Floats, Ints]:
    """Probability of complete rows as a fraction and a power of two, however small it is."""
    root = _probability(plan, x)
    fraction, power = np.frexp(root.q)
    return fraction, power + 256 * root.exponent.astype(np.int64)


def _probability(plan: Plan, X: Rows) -> Root:
    """Run the plain recursion: the probability of the evidence of each row."""
    numbers = Expectation(outputs=0)
    return run(plan, numbers, constants(numbers, plan.phi), rows_of(X, plan.cardinalities))


def conditional_log_prob(plan: Plan, X: Rows, given: Rows) -> Floats:
    """Log-probability of one piece of evidence given another; one row goes with all.  # (rows,)."""
    wanted, known = as_evidence(X, plan.cardinalities), as_evidence(given, plan.cardinalities)
    joint = log_prob(plan, wanted.both(known))
    condition = np.broadcast_to(log_prob(plan, known), joint.shape)
    is_impossible = check_possible(condition == -np.inf, "nan")
    out = np.full(joint.shape, np.nan)
    out[~is_impossible] = joint[~is_impossible] - condition[~is_impossible]
    return out


def marginals(plan: Plan, X: Rows, on_impossible: str) -> list[Floats]:
    """Posterior of every variable given each row, soft evidence included.  # (rows, values) each.

    Cost: two passes over p's edges per row.
    """
    evidence = as_evidence(X, plan.cardinalities)
    n, cards = len(evidence), plan.cardinalities.astype(np.int64)
    start = np.concatenate([[0], np.cumsum(n * cards)])
    flat = np.empty(start[-1])
    impossible = _visit_rows(plan, evidence, "marginals", posteriors, flat, start)
    out = [
        flat[a:b].reshape(n, card)
        for a, b, card in zip(start[:-1], start[1:], cards.tolist(), strict=True)
    ]
    is_impossible = check_possible(impossible, on_impossible)
    if np.any(is_impossible):
        for table in out:
            table[is_impossible] = np.nan
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
    impossible = _visit_rows(plan, evidence, "completions", complete, x, largest=True)
    is_impossible = check_possible(impossible, on_impossible)
    log_p = log_prob(plan, x)
    log_p[is_impossible] = np.nan
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
    out = sample_at(plan, per_row, evidence, lambda a, b: rng.random((b - a, len(plan.vtree))))
    shape = (() if given is None else (len(evidence),)) + (() if n is None else (n,))
    return out.reshape(*shape, len(cards))


def sample_at(plan: Plan, per_row: int, given: Rows, numbers: Callable[[int, int], Floats]) -> Ints:
    """Draw by given numbers in [0, 1): ``numbers(a, b)`` has those of the draws a to b.

    Draws are those of the first row, then of the second, and so on; each takes a number per
    vtree node, and the same number makes the same choice.  # (rows · per_row, variables)
    """
    evidence = as_evidence(given, plan.cardinalities)
    total = len(evidence) * per_row
    out = np.empty((total, len(plan.cardinalities)), np.int64)
    impossible = np.zeros(len(evidence), np.bool_)
    tables = StateTables.of(evidence)
    step = max(1, MAX_CELLS // max(len(plan.vtree), _cells(plan, evidence)))
    with Progress("samples", total) as progress:
        for start in range(0, total, step):
            stop = min(total, start + step)
            first_row, last_row = start // per_row, -(-stop // per_row)
            rows = slice(first_row, last_row)
            lanes = _lanes(plan, last_row - first_row)
            do = partial(
                draw,
                read_rows(plan.p, tables, rows, lanes, largest=False),
                numbers(start, stop),
                per_row,
                start - first_row * per_row,
                out[start:stop],
                impossible[rows],
            )
            edges = len(plan.p.target) * (last_row - first_row)
            _share_out(do, stop - start, edges + len(plan.vtree) * (stop - start))
            progress.advance(stop - start)
    check_possible(impossible, "raise")
    return out


def edge_flows(plan: Plan, X: Rows, weight: Floats) -> tuple[Floats, Floats]:
    """How much of the rows is expected to follow each edge of p, and log p of each row.

    A row counts ``weight`` times and stands for all its completions, each as likely as p
    says. Sums are made in so many parts whatever the number of threads, and so are the
    same for any number. Cost: two passes over p's edges per row.  # (edges,), (rows,)
    """
    evidence = as_evidence(X, plan.cardinalities)
    tables = StateTables.of(evidence)
    cuts = np.linspace(0, len(evidence), FLOW_PARTS + 1).astype(np.int64).tolist()
    totals = np.zeros((FLOW_PARTS, len(plan.p.target)))
    log_p = np.empty(len(evidence))

    def add(part: int, start: int, stop: int) -> None:
        rows = slice(start, stop)
        ready = read_rows(plan.p, tables, rows, _lanes(plan, stop - start), False)
        visit_edges(ready, weight[rows], totals[part], log_p[rows])

    parts = [(k, a, b) for k, (a, b) in enumerate(pairwise(cuts)) if a < b]
    run_on_threads(add, parts, current().n_threads())
    return totals.sum(axis=0), log_p + tables.log_scale()


def entropy(plan: Plan, X: Rows | None, on_impossible: str) -> float | Floats:
    """Entropy in nats of a deterministic p given each row, or given nothing.

    Cost: a pass over p's edges per row, with a logarithm each.
    """
    nothing = Evidence.unknown(plan.cardinalities)
    evidence = nothing if X is None else as_evidence(X, plan.cardinalities)
    out = np.empty(len(evidence))
    impossible = _visit_rows(plan, evidence, "entropies", entropies, out)
    out[check_possible(impossible, on_impossible)] = np.nan
    return float(out[0]) if X is None else out


# -- rows to passes -------------------------------------------------------------------


def _lanes(plan: Plan, n_rows: int) -> int:
    """Choose how many rows go side by side."""
    size = 8 * (3 * int(plan.p.node_start[-1]) + 2 * int(np.diff(plan.p.element_start).max()))
    return max(1, min(MAX_LANES, MAX_BYTES // size, n_rows))


def _cells(plan: Plan, evidence: Evidence) -> int:
    """Count the numbers to hold per row: a state per variable, and what leaves make of it.

    The latter are few, unless there are about as many states as rows.
    """
    leaf = plan.vtree.leaf_of
    nodes = plan.p.node_start[leaf + 1] - plan.p.node_start[leaf]
    many = np.array([len(table) for table in evidence.states]) > MANY_STATES
    return len(nodes) + int((nodes + plan.cardinalities)[many].sum())


def _visit_rows(
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
    tables = StateTables.of(evidence)
    step = max(64, min(MAX_CELLS // _cells(plan, evidence), MAX_EDGE_VISITS // edges))
    with Progress(label, n) as progress:
        for start in range(0, n, step):
            count = min(n - start, step)
            rows = slice(start, start + count)
            ready = read_rows(plan.p, tables, rows, _lanes(plan, count), largest)
            _share_out(partial(visit, ready, *out, start, impossible), count, edges * count)
            progress.advance(count)
    return impossible


def _share_out(do: Callable[[int, int], None], n: int, work: int) -> None:
    """Call ``do(first, last)`` for ranges of 0 .. n, one for each thread."""
    threads = min(n, current().n_threads()) if work > MIN_THREADED_VISITS else 1
    cuts = [n * k // threads for k in range(threads + 1)]
    run_on_threads(do, list(pairwise(cuts)), threads)
