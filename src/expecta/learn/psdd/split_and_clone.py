"""Score, plan and carry out the two operations: split and clone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from expecta.common.arrays import Bools, Floats, Ints
from expecta.learn.psdd.copy_plan import (
    DividedRows,
    clear,
    expect,
    grown_scratch,
    mark_support,
    new_scratch,
    padded,
    plan,
    request,
)
from expecta.learn.psdd.copy_writing import divide_edge, lead_elsewhere, write_copies
from expecta.learn.psdd.divisions import best_clone, best_split, new_worth, promise
from expecta.learn.psdd.growing_circuit import GrowingCircuit
from expecta.learn.psdd.reached_circuit import ReachedCircuit, reached_circuit, xlogx

MAX_SHORTLIST = 100  # variables that an edge keeps, by what they promise at first
MAX_SCREENED_ROWS = 3000  # beyond so many, variables are screened on a part of the rows, ...
MAX_FINALISTS = 16  # ... and so many variables are tried on all


class SplitEdge(NamedTuple):
    """Divide an edge by whether a variable has one of the values ``low .. high - 1``."""

    edge: int
    variable: int
    low: int
    high: int


class CloneNode(NamedTuple):
    """Give one of the edges that lead to a node a copy of it."""

    node: int
    edge: int


class Outcome(NamedTuple):
    """What an operation gains in training log-likelihood and costs in edges."""

    gain: float
    cost: float


class Acceptance(NamedTuple):
    """What an operation must net, at what price per edge, and may cost."""

    price: float
    min_net: float
    max_cost: float


NOTHING = Outcome(0.0, 1.0)


class Operations:
    """The two operations on a state, with the scratch they work in.

    When an edge is first scored all variables below it are tried; from then on, and for
    all that is copied or split from it, those that promised most. Where there are many
    rows, most variables are tried on an evenly spaced part of them only.
    """

    def __init__(self, state: GrowingCircuit) -> None:
        self.state = state
        self._position = np.full(len(state.rows.weight), -1, np.int64)
        self._number = np.empty(0, np.int64)
        self._shortlist: dict[int, Ints] = {}
        self._work = new_scratch(len(state.vtree))
        self._fit_scratch()

    def _fit_scratch(self) -> None:
        """Make the scratch as large as the pools, keeping what it holds."""
        nodes, edges = len(self.state.nodes.layer), len(self.state.nodes.owner)
        self._work = grown_scratch(self._work, nodes, edges)
        self._number = padded(self._number, max(nodes, edges), -1)

    # -- scores -----------------------------------------------------------------------

    def best_split(self, edge: int, price: float) -> tuple[Outcome, SplitEdge | None]:
        """Find the best split of an edge of an inner node, by gain less price x edges."""
        s = self.state
        v = self._layer(edge)
        train, _ = s.context(int(s.nodes.owner[edge]), v, edge)
        if len(train) < 2:
            return NOTHING, None
        variables = self._promising(edge, v)
        step = 1 + (len(train) - 1) // MAX_SCREENED_ROWS
        if len(variables) > (MAX_SHORTLIST if step == 1 else MAX_FINALISTS):
            outcome, split, nets = self._try(edge, train[::step], step, variables, price)
            order = np.argsort(-nets, kind="stable")
            if len(variables) > MAX_SHORTLIST:
                self._shortlist[edge] = variables[np.sort(order[:MAX_SHORTLIST])]
            if step == 1:
                return outcome, split
            variables = variables[np.sort(order[:MAX_FINALISTS])]
        outcome, split, _ = self._try(edge, train, 1, variables, price)
        return outcome, split

    def _try(
        self, edge: int, train: Ints, step: int, variables: Ints, price: float
    ) -> tuple[Outcome, SplitEdge | None, Floats]:
        """Find the best split of an edge on some variables, and what each of them nets."""
        s, v = self.state, self._layer(edge)
        context = self._open(train, int(v - s.tree.size[v] + 1), v - 1, step)
        children = _number_of(context, s.nodes.left[edge]), _number_of(context, s.nodes.right[edge])
        worth, nets = new_worth(context), np.full(len(variables), -np.inf)
        gain, cost, x, low, high = best_split(
            s.arrays, context, worth, children, variables, nets, price
        )
        return Outcome(gain, cost), SplitEdge(edge, x, low, high) if x >= 0 else None, nets

    def _promising(self, edge: int, v: int) -> Ints:
        """Return the variables to split an edge on: all below, or its origin's shortlist."""
        s = self.state
        of = edge
        while of >= 0:
            if of in self._shortlist:
                return self._shortlist[of]
            of = int(s.nodes.origin[of])
        below = s.tree.variable[v - s.tree.size[v] + 1 : v]
        return below[below >= 0]

    def best_clone(self, node: int, price: float) -> tuple[Outcome, CloneNode | None]:
        """Find the edge into a node for which a copy of its own gains most."""
        s = self.state
        w = int(s.nodes.layer[node])
        mine = s.rows_of(node)
        train = mine[s.rows.weight[mine] > 0]
        if len(train) < 2:
            return NOTHING, None
        context = self._open(train, int(w - s.tree.size[w] + 1), w)
        gain, cost, edge = best_clone(
            s.arrays, context, new_worth(context), _number_of(context, node), price
        )
        return Outcome(gain, cost), CloneNode(node, edge) if edge >= 0 else None

    # -- carrying out -----------------------------------------------------------------

    def perform(
        self, what: SplitEdge | CloneNode, price: float, min_net: float, max_cost: float = np.inf
    ) -> tuple[Outcome, bool]:
        """Plan an operation exactly and, if it nets ``min_net`` or more, carry it out.

        The net is the gain less price x cost; nothing is done that costs more than
        ``max_cost``. Returns the outcome and whether it was
        done. Cost: layers below x rows of the context, and the rows of copied nodes.
        """
        accept = Acceptance(price, min_net, max_cost)
        if isinstance(what, SplitEdge):
            return self._split(what, accept)
        return self._clone(what, accept)

    def _split(self, what: SplitEdge, accept: Acceptance) -> tuple[Outcome, bool]:
        s, work = self.state, self._work
        e, v = what.edge, self._layer(what.edge)
        train, held = s.context(int(s.nodes.owner[e]), v, e)
        inside = self._inside(what, train)
        weight = s.rows.weight[train]
        a, total = float(np.sum(weight[inside])), float(np.sum(weight))
        if not 0 < np.count_nonzero(inside) < len(train):
            return NOTHING, False
        lighter = a <= 0.5 * total
        low, high = int(v - s.tree.size[v] + 1), v - 1
        known = self._look_ahead(train, inside == lighter, what.variable, low, high, accept.price)
        which = np.concatenate([train, held])
        side = np.where(self._inside(what, which) == lighter, 0, 1)
        work.values[:] = what.low, what.high, 0 if lighter else 1
        left, right = int(s.nodes.left[e]), int(s.nodes.right[e])
        toward = left if s.tree.leaf_of[what.variable] <= s.tree.left[v] else right
        marked = mark_support(s.tree, s.nodes, work, toward, what.variable)
        for child in (left, right):
            work.change[child] -= 1
            for of_side in (0, 1):
                request(s.nodes, work, child, of_side)
        of_edge = Outcome(float(xlogx(a) + xlogx(total - a) - xlogx(total)), 1.0)
        outcome, done = self._finish(of_edge, DividedRows(which, side, low, high), v, accept)
        if done:
            divide_edge(s.nodes, s.rows, self._work, e, which, side, s.n_edges)
            s.n_edges += 1
        self._clear(low, high, marked, known)
        return outcome, done

    def _clone(self, what: CloneNode, accept: Acceptance) -> tuple[Outcome, bool]:
        s, work = self.state, self._work
        n, w = what.node, int(s.nodes.layer[what.node])
        above = int(s.tree.parent[w])
        train, held = s.context(n, above, what.edge)
        if s.nodes.refs[n] < 2 or not len(train):
            return NOTHING, False
        mine = s.rows_of(n)
        mine = mine[s.rows.weight[mine] > 0]
        low = int(w - s.tree.size[w] + 1)
        moved = s.rows.edge_at[above, mine] == what.edge
        known = self._look_ahead(mine, moved, -1, low, w, accept.price)
        which = np.concatenate([train, held])
        side = np.zeros(len(which), np.int64)
        work.change[n] -= 1
        request(s.nodes, work, n, 0)
        divided = DividedRows(which, side, low, w)
        outcome, done = self._finish(Outcome(0.0, 0.0), divided, above, accept)
        if done:
            lead_elsewhere(s.nodes, self._work, what.edge, n)
        self._clear(low, w, 0, known)
        return outcome, done

    def _finish(
        self,
        of_edge: Outcome,
        divided: DividedRows,
        tops: int,
        accept: Acceptance,
    ) -> tuple[Outcome, bool]:
        """Decide on the copies below what was requested, and write them if they pay."""
        s = self.state
        gain, cost, new_nodes, new_edges, active = plan(
            s.arrays, self._work, divided, tops, accept.price
        )
        outcome = Outcome(of_edge.gain + gain, of_edge.cost + cost)
        net = outcome.gain - accept.price * outcome.cost
        if net < accept.min_net or outcome.cost > accept.max_cost:
            return outcome, False
        s.reserve(new_nodes, new_edges + 1)
        self._fit_scratch()
        s.n_nodes, s.n_edges = write_copies(
            s.arrays, self._work, divided, active, self._position, s.pull, s.n_nodes, s.n_edges
        )
        return outcome, True

    # -- helpers ----------------------------------------------------------------------

    def _layer(self, edge: int) -> int:
        return int(self.state.nodes.layer[self.state.nodes.owner[edge]])

    def _inside(self, what: SplitEdge, which: Ints) -> Bools:
        values = self.state.rows.codes[what.variable, which]
        return (values >= what.low) & (values < what.high)

    def _open(self, train: Ints, low: int, high: int, step: int = 1) -> ReachedCircuit:
        return reached_circuit(self.state.arrays, self._number, train, float(step), low, high)

    def _look_ahead(
        self, train: Ints, chosen: Bools, variable: int, low: int, high: int, price: float
    ) -> Ints:
        """Note the promise of copies below each node; returns the nodes noted."""
        s = self.state
        context = self._open(train, low, high)
        worth = new_worth(context)
        _, touched = promise(
            s.tree, s.nodes, context, worth, np.flatnonzero(chosen), variable, price
        )
        expect(context, worth, self._work, touched)
        return context.node

    def _clear(self, low: int, high: int, marked: int, known: Ints) -> None:
        clear(self.state.nodes, self._work, low, high, marked)
        self._work.ahead[known] = 0.0
        self._work.reach[known] = 0.0


def _number_of(context: ReachedCircuit, node: int) -> int:
    at = np.flatnonzero(context.node == node)
    return int(at[0]) if len(at) else -1
