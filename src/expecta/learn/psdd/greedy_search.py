"""Search greedily: the operation that nets most comes next, at a price per edge that falls.

An operation is worth its gain in training log-likelihood less the price of the edges
it adds. While the price is high only what pays very well is copied, and the rest stays
shared; when nothing pays any more the price falls. So operations come roughly by gain
per added edge, yet the best ones are not made of crumbs.
"""

from __future__ import annotations

import heapq
import time
from typing import NamedTuple

import numpy as np

from expecta.learn.psdd.growing_circuit import GrowingCircuit, edges_of
from expecta.learn.psdd.split_and_clone import CloneNode, Operations, Outcome, SplitEdge

MIN_WEIGHT = 4.0  # of the rows of an edge or node, for an operation to be looked for
SLACK = 0.8  # an operation whose score is out of date is done if it nets so much of the next


class Offer(NamedTuple):
    """A target to operate on, in the queue by what it nets, or may net at most."""

    minus_net: float
    target: int  # an edge to split, or ~node to clone
    scored_at: int  # number of operations then; -1 while the net is only a bound
    what: SplitEdge | CloneNode | None


class GreedySearch:
    """The queue of all operations on a state.

    Parameters
    ----------
    state
        Changed in place.
    price
        What an edge must gain in log-likelihood, in nats.

    Notes
    -----
    A target enters the queue with a bound on what it can gain, log 2 per row, and is
    scored when it comes first. Scores go out of date when operations touch the same
    nodes; they are made exact when they come first again. Ties go to the older target,
    so that a search can be repeated to the bit.
    """

    def __init__(self, state: GrowingCircuit, price: float) -> None:
        self.state = state
        self.operations = 0
        self._do = Operations(state)
        self.set_price(price)

    def set_price(self, price: float) -> None:
        """Change the price and consider every target anew."""
        self.price = price
        self._queue: list[Offer] = []
        literals = int(self.state.literal_start[-1])
        for node in self.state.alive().tolist():
            if node >= literals:
                self._offer_node(node)

    def step(self, max_cost: float = np.inf, deadline: float = np.inf) -> Outcome | None:
        """Carry out the operation that nets most; None when none nets anything.

        Operations that would add more than ``max_cost`` edges are left out. None, too,
        when the (monotonic) clock passes the deadline first.
        """
        while self._queue and time.monotonic() < deadline:
            offer = heapq.heappop(self._queue)
            if not self._stands(offer.target):
                continue
            if offer.what is None:
                self._score(offer.target)
                continue
            min_net = 1e-9
            if offer.scored_at != self.operations and self._queue:
                min_net = max(min_net, -SLACK * self._queue[0].minus_net)
            first = self.state.n_nodes
            outcome, done = self._do.perform(offer.what, self.price, min_net, max_cost)
            if done:
                self.operations += 1
                self._offer_again(offer.what, first)
                return outcome
            net = outcome.gain - self.price * outcome.cost
            if net > 0.0 and offer.scored_at != self.operations and outcome.cost <= max_cost:
                heapq.heappush(self._queue, Offer(-net, offer.target, -1, None))
        return None

    def _stands(self, target: int) -> bool:
        """Whether a target is still there to operate on."""
        nodes = self.state.nodes
        if target < 0:
            return bool(nodes.refs[~target] > 1)
        return bool(nodes.refs[nodes.owner[target]] > 0 and nodes.flow[target] >= MIN_WEIGHT)

    def _score(self, target: int) -> None:
        outcome, what = (
            self._do.best_clone(~target, self.price)
            if target < 0
            else self._do.best_split(target, self.price)
        )
        if what is not None:
            net = outcome.gain - self.price * outcome.cost
            heapq.heappush(self._queue, Offer(-net, target, self.operations, what))

    def _offer(self, target: int, weight: float) -> None:
        if weight >= MIN_WEIGHT:
            heapq.heappush(self._queue, Offer(-weight * float(np.log(2.0)), target, -1, None))

    def _offer_node(self, node: int) -> None:
        nodes = self.state.nodes
        edges = edges_of(nodes, node).tolist()
        weights = [float(nodes.flow[e]) for e in edges]
        if self.state.tree.variable[nodes.layer[node]] < 0:
            for edge, weight in zip(edges, weights, strict=True):
                self._offer(edge, weight)
        if nodes.refs[node] > 1:
            self._offer(~node, sum(weights))

    def _offer_again(self, what: SplitEdge | CloneNode, first: int) -> None:
        """Queue what an operation has changed: its target, and the nodes from ``first`` on."""
        s = self.state
        if isinstance(what, SplitEdge):
            for edge in (what.edge, s.n_edges - 1):
                self._offer(edge, float(s.nodes.flow[edge]))
        else:
            edges = edges_of(s.nodes, what.node).tolist()
            self._offer(~what.node, sum(float(s.nodes.flow[e]) for e in edges))
        for node in range(first, s.n_nodes):
            self._offer_node(node)
