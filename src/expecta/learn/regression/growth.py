"""A circuit that grows: split where most is promised, then fit all parameters anew."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from expecta.circuits import builders
from expecta.circuits.regression import RegressionCircuit
from expecta.common.arrays import Floats
from expecta.common.settings import current
from expecta.common.threads import run_on_threads
from expecta.learn.regression.boxes import Boxes, Shrinkage, allowed_rows
from expecta.learn.regression.gates import (
    Element,
    Inner,
    Leaf,
    every_element,
    first_circuit,
    n_copied,
    split,
)
from expecta.learn.regression.losses import Loss
from expecta.learn.regression.newton import Problem, minimise
from expecta.learn.regression.splits import Proposal, Scout
from expecta.learn.regression.table import Table

__all__ = ["Growth", "Options"]

SHARED, OWN = Shrinkage(0.1, 1.0), Shrinkage(3.0, 10.0)
EXACT = 1e-9  # gradient of the last fit
ENOUGH, STEPS = 3e-4, 2  # of the others: share of the loss that a step must promise; steps
VAST, VAST_ENOUGH = 1 << 25, 1e-4  # numbers of a product, beyond which a last fit stops earlier
MANY = 64  # variables, beyond which a split of all is dear
COPY = 0.1  # what an element costs that a split copies, in parameters
FREE = 1e-6  # pull on the overall constant: none to speak of


@dataclass(frozen=True)
class Options:
    """How to grow."""

    frugal: bool = False  # whether drops are compared per parameter that they cost
    min_rows: int = 20  # on either side of a split
    price: float = 1.0  # drop that a split must promise, in units of what noise promises
    choosy: float = 1.5  # the same for one table of it to be copied, not shared
    batch: int = 64  # splits per round, at most
    within: float = 0.7  # share of the round's best drop that further splits must promise
    shared: Shrinkage = SHARED  # of the tables that all rows have
    own: Shrinkage = OWN  # of those of a box

    @classmethod
    def of(cls, loss: Loss, n_variables: int) -> Options:
        """Return what served well for a kind of problem.

        A logistic loss bends less than a squared one, so it takes more to be shrunk as much, and
        then bears more tables. Where no split can see all variables there are many places to
        split at once.
        """
        options = cls()
        if not loss.quadratic:
            shared, own = Shrinkage(1.0, 3.0), Shrinkage(9.0, 30.0)
            options = replace(options, price=0.3, choosy=0.7, shared=shared, own=own)
        if n_variables > MANY and loss.quadratic:
            options = replace(options, batch=128, within=0.05)
        elif n_variables > MANY:
            options = replace(options, batch=256, within=0.3, frugal=True)
        return options


class _Look(NamedTuple):
    """What a look at an element found, and in which round that was."""

    when: int
    element: Element  # kept, so that its identity is not given to another
    proposal: Proposal | None
    worth: float = 0.0  # what it is ranked by


class Growth:
    """One circuit growing on the rows of a table that have weight; the others look on."""

    def __init__(
        self,
        table: Table,
        weight: Floats,
        loss: Loss,
        penalty: float,
        options: Options,
    ) -> None:
        self.table, self.weight, self.loss, self.options = table, weight, loss, options
        self._own = Shrinkage(penalty * options.own.size, penalty * options.own.bends)
        shared = Shrinkage(penalty * options.shared.size, penalty * options.shared.bends)
        self.boxes = Boxes(table.fine, table.curves, weight, table.by_column)
        n, k = table.y.shape
        everything = np.arange(n, dtype=np.int32)
        self.boxes.add(everything, np.arange(len(table.curves)), shared, FREE, k)
        self.boxes.all[0].theta[0] = loss.start(table.y, weight)
        self.root = first_circuit(table.vtree, table.cardinalities, n)
        self.made: list[list[tuple[int, Proposal]]] = []  # splits by round, elements by place
        self._looked: dict[int, _Look] = {}

    def fit(self, *, last: bool = False) -> None:
        """Fit all parameters, starting from where they are; sets ``g``, the predictions.

        The last fit is exact, or where there are very many features within a drop of a
        ten-thousandth; the others are rough.
        """
        by_column = self.boxes.matrix()
        by_row = by_column.transposed()
        vast = by_row.start[-1] * self.table.y.shape[1] > VAST
        problem = Problem(
            by_row,
            by_column,
            self.table.y,
            self.weight,
            self.loss,
            self.boxes.penalty(),
            self.boxes.precondition,
        )
        if not last:
            limits: dict[str, Any] = {"enough": ENOUGH, "steps": STEPS}
        else:
            limits = {"enough": VAST_ENOUGH} if vast else {"tolerance": EXACT}
        self.boxes.theta = theta = minimise(problem, self.boxes.theta, **limits)
        self.g: Floats = by_row @ theta

    # -- splits -----------------------------------------------------------------------

    @property
    def n_splits(self) -> int:
        """How many splits were made."""
        return sum(map(len, self.made))

    def step(self, most: int) -> int:
        """Make the best splits, at most so many, and fit; returns how many were made."""
        chosen = self._choose(min(most, self.options.batch))
        self._split(chosen)
        if chosen:
            self.fit()
        return len(chosen)

    def replay(self, made: Sequence[Sequence[tuple[int, Proposal]]], most: int) -> None:
        """Make the first splits that another growth on the same table made."""
        for chosen in made:
            self._split(chosen[: most - self.n_splits])

    def _split(self, chosen: Sequence[tuple[int, Proposal]]) -> None:
        if not chosen:
            return
        elements = list(every_element(self.root))
        for place, proposal in chosen:
            self._apply(*elements[place], proposal)
        self.made.append(list(chosen))

    def _choose(self, most: int) -> list[tuple[int, Proposal]]:
        """Pick splits of elements that do not overlap, best first.

        Promises of earlier rounds serve as estimates: only those at the top are renewed.
        """
        scout, now = self._scout(), len(self.made)
        elements = list(every_element(self.root))
        known = self._looked

        def look(place: int) -> None:
            node, element = elements[place]
            found = scout.propose(element.rows, *self.table.spans[node.v])
            worth = 0.0 if found is None else self._worth(element, found)
            self._looked[id(element)] = _Look(now, element, found, worth)

        self._looked = {id(e): known[id(e)] for _, e in elements if id(e) in known}
        if self.options.frugal:  # a part is worth its share of the whole, until it is looked at
            for _, e in elements:
                if e.like is not None and id(e) not in known and id(e.like) in known:
                    whole = known[id(e.like)]
                    share = len(e.rows) / max(len(e.rows) + len(e.like.rows), 1)
                    self._looked[id(e)] = _Look(-1, e, whole.proposal, share * whole.worth)
        new = [(place,) for place, (_, e) in enumerate(elements) if id(e) not in self._looked]
        run_on_threads(look, new, current().n_threads())

        def ranked() -> list[tuple[float, int]]:
            looks = enumerate(self._looked[id(element)] for _, element in elements)
            return sorted((seen.worth, -place) for place, seen in looks if seen.worth > 0)

        first = ranked()[-most:]
        top = (-place for worth, place in first if worth >= self.options.within * first[-1][0])
        stale = [(place,) for place in top if self._looked[id(elements[place][1])].when < now]
        run_on_threads(look, stale, current().n_threads())
        waiting = ranked()
        chosen: list[tuple[int, Proposal]] = []
        best = 0.0
        while waiting and len(chosen) < most:
            worth, place = waiting.pop()
            place = -place
            if worth < self.options.within * best:
                break
            if any(self._overlap(*elements[place], *elements[other]) for other, _ in chosen):
                continue
            seen = self._looked[id(elements[place][1])]
            if seen.when < now:
                look(place)
                seen = self._looked[id(elements[place][1])]
                if seen.worth > 0:
                    bisect.insort(waiting, (seen.worth, -place))
            elif seen.proposal is not None:
                chosen.append((place, seen.proposal))
                best = max(best, worth)
        return chosen

    def _worth(self, element: Element, proposal: Proposal) -> float:
        """Compute what splits are ranked by: the drop, or the drop per number that it costs.

        A split costs the parameters of its tables and the elements that it copies.
        """
        if not self.options.frugal:
            return proposal.net
        cost = 0.0
        for part in proposal.parts:
            cost += 1 + sum(self.table.curves[x].size for x in part.places.tolist())
            changed = sorted({proposal.place, *part.places.tolist()})
            cost += COPY * n_copied(element, lambda v: self._touches(v, changed))  # noqa: B023
        return proposal.net / cost

    def _touches(self, v: int, places: list[int]) -> bool:
        """Whether one of some places, in order, lies below a vtree node."""
        first, last = self.table.spans[v]
        return bisect.bisect_left(places, first) < bisect.bisect_left(places, last)

    def _overlap(self, node: Inner, element: Element, other: Inner, taken: Element) -> bool:
        """Whether two elements share variables and rows."""
        (a, b), (c, d) = self.table.spans[node.v], self.table.spans[other.v]
        if b <= c or d <= a:
            return False
        return len(np.intersect1d(element.rows, taken.rows, assume_unique=True)) > 0

    def _scout(self) -> Scout:
        y, weight = self.table.y, self.weight
        curvature = self.loss.curvature(y, self.g)
        return Scout(
            codes=self.table.codes,
            curves=self.table.curves,
            fine=self.table.fine,
            coarse=self.table.coarse,
            weight=weight,
            shrinkage=self._own,
            constant=self._own.size,
            min_rows=self.options.min_rows,
            price=self.options.price,
            choosy=self.options.choosy,
            slope=weight[:, None] * self.loss.slope(y, self.g),
            curvature=float(np.average(curvature.mean(axis=1), weights=weight)),
            dispersion=float(self.loss.dispersion(y, self.g, weight).sum()),
        )

    def _apply(self, node: Inner, element: Element, proposal: Proposal) -> None:
        parts = []
        for part in proposal.parts:
            inside = allowed_rows(self.table.codes, element.rows, proposal.place, part.allowed)
            k = self.table.y.shape[1]
            box = self.boxes.add(part.rows, part.places, self._own, self._own.size, k)
            tables = frozenset(self.table.order[part.places].tolist())
            parts.append((part.allowed, inside, box, tables))
        split(node, element, int(self.table.order[proposal.place]), tuple(parts))

    # -- the circuit ------------------------------------------------------------------

    def circuit(self, link: str = "identity") -> RegressionCircuit:
        """Return the circuit as it is."""
        tables: dict[tuple[int, int], Floats] = {}  # (box, variable) -> table
        constants = [box.theta[0] for box in self.boxes.all]
        for number, box in enumerate(self.boxes.all):
            at = 1
            for place in box.places.tolist():
                curve = self.table.curves[place]
                part = box.theta[at : at + curve.size]
                tables[number, int(self.table.order[place])] = curve.basis @ part
                at += curve.size
        made: dict[int, builders.Leaf | builders.Choice] = {}

        def convert(node: Leaf | Inner) -> builders.Leaf | builders.Choice:
            if id(node) not in made:
                if isinstance(node, Leaf):
                    table = np.sum([tables[box, node.variable] for box in node.boxes], axis=0)
                    values = np.flatnonzero(node.allowed).tolist()
                    made[id(node)] = builders.Leaf(
                        node.variable, tuple((value, table[value]) for value in values)
                    )
                else:
                    zero = np.zeros_like(constants[0])
                    made[id(node)] = builders.Choice(
                        tuple(
                            (sum((constants[box] for box in e.boxes), zero), left, right)
                            for e in node.elements
                            for left, right in [(convert(e.left), convert(e.right))]
                        )
                    )
            return made[id(node)]

        return RegressionCircuit.build(
            self.table.vtree,
            convert(self.root),
            self.table.cardinalities.tolist(),
            bias=constants[0],
            link=link,
        ).merged()
