"""Learn a PSDD: search until held-out rows say stop, and fill in what is unknown."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.engine.plan import Plan
from expecta.learn.psdd.fit_psdd import distinct, fit_parameters, maximise, pruned, routed
from expecta.learn.psdd.greedy_search import GreedySearch
from expecta.learn.psdd.growing_circuit import GrowingCircuit
from expecta.learn.psdd.smoothing import export, log_likelihoods, set_pull
from expecta.queries.density_queries import log_prob

GROWTH = 1.03  # the held-out rows are looked at whenever the circuit has grown so much
PULL_STEP = 1.5  # the weight of priors is tuned in such steps
SPREAD = 8  # completions that stand for a row with unknown cells during the search
ROUNDS = 2  # searches on data with unknown cells, each on completions by the one before


class SearchStep(NamedTuple):
    """The state of a search at one time; mean log-likelihoods in nats per row."""

    edges: int  # those of literals, which carry no parameter, left out
    train: float
    valid: float  # NaN without held-out rows


class LearnedPSDD(NamedTuple):
    """What a search has found."""

    circuit: ProbabilisticCircuit  # the best on the held-out rows
    history: list[SearchStep]


class SearchLimits(NamedTuple):
    """When a search ends."""

    prices: list[float]
    max_edges: float
    deadline: float
    patience: int


Report = Callable[[int, int, float], None]


def learn_psdd(
    start: ProbabilisticCircuit,
    codes: Ints,
    *,
    weight: Floats | None = None,
    valid: Ints | None = None,
    valid_weight: Floats | None = None,
    pseudo_count: float = 1.0,
    pull: float = 10.0,
    first_price: float = 8.0,
    last_price: float | None = None,
    max_edges: int | None = None,
    max_seconds: float | None = None,
    patience: int = 8,
    seed: int | None = None,
    report: Report | None = None,
) -> LearnedPSDD:
    """Grow a deterministic circuit by splits and clones until held-out rows say stop.

    A split divides an edge by the value of a variable below it, a clone gives one of a
    node's parents a copy of the node. Either way, what lies below is copied only where
    the two parts of the rows differ enough to pay for it, and shared elsewhere: that is
    decided for all nodes below at once. Operations come by gain in training
    log-likelihood less a price per added edge, and the price falls.

    Parameters
    ----------
    start
        Deterministic, over the vtree of the result, and allowing all rows: the fully
        factorised circuit, or a Chow-Liu tree. Its parameters are fitted anew.
    codes
        Rows of values; -1 is unknown.  # (rows, variables)
    weight
        How often each row counts. Gains are in nats of weighted rows.  # (rows,)
    valid, valid_weight
        Held-out rows and how often each counts: the search ends when they become less
        likely, and returns the circuit that was best on them. The weight of the priors
        is tuned on them too.
    pseudo_count
        Rows that are added to every node of ``start``, spread evenly over its edges.
    pull
        Rows that are added to every copy, spread like the distribution of the node it
        is a copy of. Where tuning starts, if there are held-out rows.
    first_price, last_price
        What an edge must gain, in nats, at first and at last; halved in between. The
        last price is 1 (Akaike's criterion), or a quarter if there are held-out rows.
    max_edges, max_seconds
        Bounds on the number of parameters and on the time of the search.
    patience
        How many looks at the held-out rows, one for every 3 % of growth, may pass
        without a new best.
    seed
        For completions of rows with unknown cells; nothing else is random.
    report
        Called at every look with the number of operations, the number of edges and the
        mean held-out log-likelihood (NaN without).

    Returns
    -------
    LearnedPSDD
        The circuit and the history of the search.

    Notes
    -----
    A row with unknown cells is no reason to guess them: during the search it counts as
    several completions of a fraction each, drawn from its posterior under the current
    model (at first ``start``), and the search is repeated with the model it found
    (structural EM). The parameters of the result are fitted by EM to the rows as they
    are, and held-out rows with unknown cells are scored by their exact marginals.

    Cost: rows x vtree nodes to set up, 8 bytes each. Scoring a place costs (layers
    below) x (its rows) x (values to divide by), on the lighter side of each division;
    an operation costs its rows x the layers below, and the edges of what is copied.
    Rows that are equal are merged first.

    Examples
    --------
    >>> from expecta import Vtree
    >>> from expecta.circuits.constructions import independent
    >>> start = independent(Vtree.balanced(2), [[0.5, 0.5], [0.5, 0.5]])
    >>> same = np.repeat([[0, 0], [1, 1]], 50, axis=0)
    >>> p = learn_psdd(start, same, pseudo_count=0.0, pull=0.0).circuit
    >>> np.exp(p.log_prob([[0, 0], [0, 1]])).round(3).tolist()
    [0.5, 0.0]
    """
    start.properties.require_deterministic("growing a PSDD")
    _check(pseudo_count=pseudo_count, pull=pull)
    start = pruned(start.normalised())
    cards = start.structure.cardinalities
    rows, weights = distinct(codes, weight, cards)
    if not len(rows):
        raise DomainError("learning needs at least one row of positive weight")
    if valid is None:
        valid, valid_weight = np.empty((0, len(cards)), np.int32), None
    held, held_weights = distinct(valid, valid_weight, cards)
    last = last_price if last_price is not None else (0.25 if len(held) else 1.0)
    limits = SearchLimits(
        _prices(first_price, last),
        np.inf if max_edges is None else max_edges,
        np.inf if max_seconds is None else time.monotonic() + max_seconds,
        patience,
    )
    guard = HeldOutRows(held, held_weights)
    if np.all(rows >= 0):
        state, history = _search(start, rows, weights, guard, pseudo_count, pull, limits, report)
        return LearnedPSDD(export(state)[0], history)
    rng = np.random.default_rng(seed)
    model = fit_parameters(start, rows, weights, pseudo_count)
    judges = (held, held_weights) if len(held) else (rows, weights)
    history, best, best_score = [], model, -np.inf
    for _ in range(ROUNDS):
        filled, shares = _completions(model, rows, weights, rng)
        state, steps = _search(start, filled, shares, guard, pseudo_count, pull, limits, report)
        history += steps
        grown, prior = export(state)
        model = maximise(grown, rows, weights, prior, max_iterations=20, tolerance=1e-4)
        score = _mean(model, *judges)
        if score > best_score:
            best, best_score = model, score
        if time.monotonic() > limits.deadline:
            break
    return LearnedPSDD(best, history)


def _mean(circuit: ProbabilisticCircuit, codes: Ints, weight: Floats) -> float:
    return float(np.average(log_prob(Plan.of(circuit, None), codes), weights=weight))


class HeldOutRows:
    """The held-out rows: those with unknown cells are scored on the circuit itself."""

    def __init__(self, codes: Ints, weight: Floats) -> None:
        complete = np.all(codes >= 0, axis=1)
        self.complete, self.weight = codes[complete], weight[complete]
        self._others, self._others_weight = codes[~complete], weight[~complete]
        self.total = float(np.sum(weight))

    def score(self, state: GrowingCircuit, of_complete: float) -> float:
        """Return the mean log-likelihood of all held-out rows, NaN if there are none."""
        if self.total == 0.0:
            return float("nan")
        if len(self._others):
            logs = log_prob(Plan.of(export(state)[0], None), self._others)
            of_complete += float(np.sum(self._others_weight * logs))
        return of_complete / self.total


def _search(
    start: ProbabilisticCircuit,
    rows: Ints,
    weights: Floats,
    guard: HeldOutRows,
    pseudo_count: float,
    pull: float,
    limits: SearchLimits,
    report: Report | None,
) -> tuple[GrowingCircuit, list[SearchStep]]:
    """Grow from ``start`` on complete rows; returns the best state and the history."""
    edge_at = routed(start.structure, np.concatenate([rows, guard.complete]))
    state = GrowingCircuit(
        start.structure, rows, weights, guard.complete, guard.weight, edge_at, pseudo_count, pull
    )
    search = GreedySearch(state, limits.prices[0])
    total = float(np.sum(weights))
    history: list[SearchStep] = []
    edges = state.live_edges()
    best, best_valid, worse = state.snapshot(), -np.inf, 0

    def look() -> bool:
        """Score the held-out rows; tells whether the search may go on."""
        nonlocal best, best_valid, worse
        valid = _tune(state, guard)
        history.append(SearchStep(edges, log_likelihoods(state).train / total, valid))
        if report is not None:
            report(search.operations, edges, valid)
        worse = worse + 1 if valid <= best_valid else 0
        if worse == 0 and not np.isnan(valid):
            best, best_valid = state.snapshot(), valid
        return worse <= limits.patience

    looked_at, done = edges, 0
    go_on = look()
    for price in limits.prices:
        if not go_on:
            break
        if price != search.price:
            search.set_price(price)
        while go_on:
            outcome = search.step(limits.max_edges - edges, limits.deadline)
            if outcome is None:
                break
            edges += round(outcome.cost)
            if edges > GROWTH * looked_at:
                looked_at, done = edges, search.operations
                go_on = look()
        if go_on and done < search.operations:
            done = search.operations
            go_on = look()
        go_on = go_on and time.monotonic() < limits.deadline
    return (best if guard.total else state), history


def _tune(state: GrowingCircuit, guard: HeldOutRows) -> float:
    """Move the weight of the priors a step up or down if held-out rows become more likely."""
    here, pull = guard.score(state, log_likelihoods(state).held_out), state.pull
    if np.isnan(here) or pull == 0.0:
        return here
    for factor in (PULL_STEP, 1.0 / PULL_STEP):
        set_pull(state, pull * factor)
        there = guard.score(state, log_likelihoods(state).held_out)
        if there > here:
            return there
    set_pull(state, pull)
    return here


def _completions(
    model: ProbabilisticCircuit, rows: Ints, weights: Floats, rng: np.random.Generator
) -> tuple[Ints, Floats]:
    """Draw completions of the rows with unknown cells, each of a fraction of the weight."""
    known = np.all(rows >= 0, axis=1)
    drawn = np.asarray(model.sample(SPREAD, given=rows[~known], seed=int(rng.integers(2**31))))
    filled = np.concatenate([rows[known], drawn.reshape(-1, rows.shape[1])])
    shares = np.concatenate([weights[known], np.repeat(weights[~known] / SPREAD, SPREAD)])
    return distinct(filled, shares, model.structure.cardinalities)


def _prices(first: float, last: float) -> list[float]:
    if not 0 < last <= first:
        raise ValueError(f"prices fall from first_price={first} to last_price={last} > 0")
    prices = [first]
    while prices[-1] > last:
        prices.append(max(last, prices[-1] / 2.0))
    return prices


def _check(**amounts: float) -> None:
    for name, value in amounts.items():
        if not value >= 0:
            raise ValueError(f"{name} must be a number >= 0, not {value!r}")
