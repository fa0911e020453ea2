"""Grow a circuit: split where the loss promises to drop most, then fit all parameters anew."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from expecta.circuits import builders
from expecta.circuits.constructions import linear
from expecta.circuits.regression import RegressionCircuit
from expecta.common.arrays import Floats
from expecta.learn.regression.contexts import ContextModels
from expecta.learn.regression.gates import (
    Element,
    LeafNode,
    OrNode,
    SplitPart,
    additive_circuit,
    every_element,
    n_copied,
    split,
)
from expecta.learn.regression.losses import Loss
from expecta.learn.regression.newton import BlockForm, Problem, minimise
from expecta.learn.regression.row_features import FeatureTable, product, transposed
from expecta.learn.regression.smoothness import Smoothing
from expecta.learn.regression.split_sums import SplitTarget
from expecta.learn.regression.splits import (
    GrowthOptions,
    Penalty,
    Proposal,
    SplitRequest,
    SplitSearch,
)

EXACT_GRADIENT = 1e-10  # relative norm, of the last fit
MIN_DROP, N_STEPS = 3e-4, 2  # of the others: share of the loss that a step must promise; steps
VAST_ENTRIES, VAST_DROP = 1 << 25, 1e-4  # beyond so many numbers a last fit stops earlier
COPY_COST = 0.1  # of an element that a split copies, in parameters
FREE = 1e-6  # pull on the overall constant: none to speak of


Splits: TypeAlias = list[list[tuple[int, Proposal]]]  # of every round, by index of the element


class _Estimate(NamedTuple):
    """The best split of an element, and in which round it was looked for."""

    round: int
    element: Element  # kept, so that its identity is not given to another
    proposal: Proposal | None
    worth: float = 0.0  # what it is ranked by


class Growth:
    """One circuit growing on the rows of a table that have weight; the others look on."""

    def __init__(
        self,
        table: FeatureTable,
        weight: Floats,
        loss: Loss,
        penalty: float,
        options: GrowthOptions,
        smoothing: Smoothing | None = None,
    ) -> None:
        self.table, self.weight, self.loss, self.options = table, weight, loss, options
        self._shrinkage, shared = options.context.times(penalty), options.shared.times(penalty)
        self.contexts = ContextModels(
            table.fine, table.curves, weight, table.by_column, one_curvature=loss.quadratic
        )
        n, k = table.y.shape
        all_rows = np.arange(n, dtype=np.int32)
        if smoothing is not None:
            self.contexts.add_shared(table, smoothing)
        else:
            self.contexts.add(all_rows, np.arange(len(table.curves)), shared, FREE, k)
            self.contexts.all[0].theta[0] = loss.start(table.y, weight)
        self.made: Splits = []
        self._estimates: dict[int, _Estimate] = {}  # by identity of the element
        self._penalties: dict[tuple[int, int], Penalty] = {}  # by range of variables

    def fit(self, *, last: bool = False, exact: bool = True) -> None:
        """Fit all parameters, starting from where they are; sets ``g``, the predictions.

        The last fit is exact, or where that is not asked or there are very many features within
        a drop of a ten-thousandth; the others are rough.
        """
        by_column = self.contexts.matrix()
        by_row = transposed(by_column)
        vast = int(by_row.indptr[-1]) * self.table.y.shape[1] > VAST_ENTRIES
        penalty = self.contexts.penalty()
        problem = Problem(
            by_row,
            by_column,
            self.table.y,
            self.weight,
            self.loss,
            lambda theta: product(penalty, theta),
            self.contexts.precondition,
            blocks=BlockForm(penalty, self.contexts.blocks),
        )
        if not last:
            limits: dict[str, Any] = {"min_drop": MIN_DROP, "max_steps": N_STEPS}
        else:
            limits = {"min_drop": VAST_DROP} if vast or not exact else {"tolerance": EXACT_GRADIENT}
        self.contexts.theta = theta = minimise(problem, self.contexts.theta, **limits)
        self.g = product(by_row, theta)

    # -- splits -----------------------------------------------------------------------

    @cached_property
    def root(self) -> LeafNode | OrNode:
        """The gates, additive until they are split."""
        return additive_circuit(self.table.vtree, self.table.cardinalities, len(self.table.y))

    @property
    def n_splits(self) -> int:
        """How many splits were made."""
        return sum(map(len, self.made))

    def step(self, max_splits: int) -> int:
        """Make the best splits, at most so many, and fit; returns how many were made."""
        chosen = self._choose(min(max_splits, self.options.max_batch))
        self._split(chosen)
        if chosen:
            self.fit()
        return len(chosen)

    def replay(self, made: Splits, max_splits: int) -> None:
        """Make the first splits that another growth made, on any rows of the same variables."""
        for chosen in made:
            self._split(chosen[: max_splits - self.n_splits])

    def _split(self, chosen: Sequence[tuple[int, Proposal]]) -> None:
        if not chosen:
            return
        elements = list(every_element(self.root))
        for index, proposal in chosen:
            self._apply(*elements[index], proposal)
        self.made.append(list(chosen))

    def _choose(self, max_splits: int) -> list[tuple[int, Proposal]]:
        """Pick splits of elements that do not overlap, best first.

        Promises of earlier rounds serve as estimates: only those at the top are renewed.
        """
        search, now = self._search(), len(self.made)
        elements = list(every_element(self.root))
        before = self._estimates

        def estimate(indices: Sequence[int]) -> None:
            """Look for the best splits of elements."""
            chosen = [elements[index] for index in indices]
            requests = [SplitRequest(e.rows, *self.table.spans[node.v]) for node, e in chosen]
            for (_, e), proposal in zip(chosen, search.propose(requests), strict=True):
                worth = 0.0 if proposal is None else self._worth(e, proposal)
                self._estimates[id(e)] = _Estimate(now, e, proposal, worth)

        def estimate_of(index: int) -> _Estimate:
            return self._estimates[id(elements[index][1])]

        def ranked() -> list[tuple[float, int]]:
            worths = ((estimate_of(index).worth, -index) for index in range(len(elements)))
            return sorted((worth, index) for worth, index in worths if worth > 0)

        self._estimates = {id(e): before[id(e)] for _, e in elements if id(e) in before}
        if self.options.frugal:  # a part is worth its share of the whole, until it is looked at
            for _, e in elements:
                if e.copy_of is not None and id(e) not in before and id(e.copy_of) in before:
                    whole = before[id(e.copy_of)]
                    share = len(e.rows) / max(len(e.rows) + len(e.copy_of.rows), 1)
                    worth = share * whole.worth
                    self._estimates[id(e)] = _Estimate(-1, e, whole.proposal, worth)
        estimate([index for index, (_, e) in enumerate(elements) if id(e) not in self._estimates])
        first = ranked()[-max_splits:]
        threshold = self.options.min_share * first[-1][0] if first else 0.0
        top = (-index for worth, index in first if worth >= threshold)
        estimate([index for index in top if estimate_of(index).round < now])
        waiting = ranked()
        chosen: list[tuple[int, Proposal]] = []
        best = 0.0
        while waiting and len(chosen) < max_splits:
            worth, index = waiting.pop()
            index = -index
            if worth < self.options.min_share * best:
                break
            if any(self._overlap(*elements[index], *elements[other]) for other, _ in chosen):
                continue
            current_estimate = estimate_of(index)
            if current_estimate.round < now:
                estimate([index])
                if estimate_of(index).worth > 0:
                    bisect.insort(waiting, (estimate_of(index).worth, -index))
            elif current_estimate.proposal is not None:
                chosen.append((index, current_estimate.proposal))
                best = max(best, worth)
        return chosen

    def _worth(self, element: Element, proposal: Proposal) -> float:
        """Compute what splits are ranked by: the drop, or the drop per number that it costs.

        A split costs the parameters of its tables and the elements that it copies.
        """
        if not self.options.frugal:
            return proposal.net
        cost = 0.0
        for side in proposal.sides:
            cost += 1 + sum(self.table.curves[x].size for x in side.positions.tolist())
            changed = sorted({proposal.position, *side.positions.tolist()})
            cost += COPY_COST * n_copied(element, lambda v: self._touches(v, changed))  # noqa: B023
        return proposal.net / cost

    def _touches(self, v: int, positions: list[int]) -> bool:
        """Whether a leaf at one of these positions, in order, lies below a vtree node."""
        first, last = self.table.spans[v]
        return bisect.bisect_left(positions, first) < bisect.bisect_left(positions, last)

    def _overlap(self, node: OrNode, element: Element, other: OrNode, taken: Element) -> bool:
        """Whether two elements share variables and rows."""
        (a, b), (c, d) = self.table.spans[node.v], self.table.spans[other.v]
        if b <= c or d <= a:
            return False
        return len(np.intersect1d(element.rows, taken.rows, assume_unique=True)) > 0

    def _search(self) -> SplitSearch:
        y, weight = self.table.y, self.weight
        curvature = self.loss.curvature(y, self.g)
        return SplitSearch(
            table=self.table,
            options=self.options,
            target=SplitTarget(
                slope=weight[:, None] * self.loss.slope(y, self.g),
                weight=weight,
                curvature=float(np.average(curvature.mean(axis=1), weights=weight)),
                dispersion=float(self.loss.dispersion(y, self.g, weight).sum()),
                pull=self._shrinkage.size,
            ),
            shrinkage=self._shrinkage,
            penalties=self._penalties,
        )

    def _apply(self, node: OrNode, element: Element, proposal: Proposal) -> None:
        """Split an element as proposed, with a new context on either side."""
        table, parts = self.table, []
        for side in proposal.sides:
            rows = element.rows[side.allowed[table.codes[element.rows, proposal.position]]]
            inside = np.zeros(len(table.codes), np.bool_)
            inside[rows] = True
            k, size = table.y.shape[1], self._shrinkage.size
            context = self.contexts.add(rows, side.positions, self._shrinkage, size, k)
            tables = frozenset(table.order[side.positions].tolist())
            parts.append(SplitPart(side.allowed, inside, context, tables))
        split(node, element, int(table.order[proposal.position]), parts)

    # -- the circuit ------------------------------------------------------------------

    def circuit(self, link: str = "identity") -> RegressionCircuit:
        """Return the circuit as it is."""
        tables: dict[tuple[int, int], Floats] = {}  # (context, variable) -> table
        constants = [context.theta[0] for context in self.contexts.all]
        for number, context in enumerate(self.contexts.all):
            start = 1
            for position, basis in zip(context.positions.tolist(), context.bases, strict=True):
                theta = context.theta[start : start + basis.shape[1]]
                tables[number, int(self.table.order[position])] = basis @ theta
                start += basis.shape[1]
        if len(self.contexts.all) == 1:  # nothing is split
            of_variable = [tables[0, x] for x in range(len(self.table.order))]
            return linear(self.table.vtree, of_variable, bias=constants[0], link=link).merged()
        built: dict[int, builders.Leaf | builders.SketchedOr] = {}

        def build(node: LeafNode | OrNode) -> builders.Leaf | builders.SketchedOr:
            if id(node) in built:
                return built[id(node)]
            if isinstance(node, LeafNode):
                table = np.sum([tables[c, node.variable] for c in node.contexts], axis=0)
                values = np.flatnonzero(node.allowed).tolist()
                gate: builders.Leaf | builders.SketchedOr = builders.Leaf(
                    node.variable, tuple((value, table[value]) for value in values)
                )
            else:
                zero = np.zeros_like(constants[0])
                gate = builders.SketchedOr(
                    tuple(
                        (
                            sum((constants[c] for c in e.contexts), zero),
                            build(e.left),
                            build(e.right),
                        )
                        for e in node.elements
                    )
                )
            built[id(node)] = gate
            return gate

        return RegressionCircuit.build(
            self.table.vtree,
            build(self.root),
            self.table.cardinalities.tolist(),
            bias=constants[0],
            link=link,
        ).merged()
