"""Choose which element to split on what, by the promised drop of the penalised loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.settings import current
from expecta.common.threads import run_on_threads
from expecta.learn.regression.cholesky import invert_factored
from expecta.learn.regression.contexts import Shrinkage
from expecta.learn.regression.losses import Loss
from expecta.learn.regression.row_features import FeatureTable
from expecta.learn.regression.split_kernels import tables_beyond_noise
from expecta.learn.regression.split_sums import SplitSums, SplitTarget

SHARED, CONTEXT = Shrinkage(0.1, 1.0), Shrinkage(3.0, 10.0)
MANY_VARIABLES = 64  # beyond which a split of all is dear
N_FINALISTS = 4  # splits of an element whose drop is computed, not only estimated
MIN_THREADED_WORK = 1 << 25  # multiply-adds; below, a second thread costs more than it brings


@dataclass(frozen=True, eq=False)
class SplitSide:
    """One side of a proposed split."""

    allowed: Bools  # values of the variable
    positions: Ints  # of the variables that deserve a table


@dataclass(frozen=True, eq=False)
class Proposal:
    """A split of an element: its promised drop less what noise alone would promise."""

    net: float
    position: int  # of the variable split on
    sides: tuple[SplitSide, ...]


class Penalty(NamedTuple):
    """The quadratic form of a constant and of some tables."""

    matrix: Floats
    twice: Floats  # its pairs (i, j) with i < j twice, those with i > j zero


@dataclass(frozen=True)
class GrowthOptions:
    """How to grow a circuit."""

    frugal: bool = False  # whether drops are compared per parameter that they cost
    min_rows: int = 20  # on either side of a split
    price: float = 1.0  # drop that a split must promise, in units of what noise promises
    table_price: float = 1.5  # the same for one table of it to be copied, not shared
    max_batch: int = 64  # splits per round
    min_share: float = 0.7  # of the round's best drop, that further splits must promise
    shared: Shrinkage = SHARED  # of the tables that all rows have
    context: Shrinkage = CONTEXT  # of those of a context

    @classmethod
    def of(cls, loss: Loss, n_variables: int) -> GrowthOptions:
        """Return the options that served well for a kind of problem.

        A logistic loss bends less than a squared one, so it takes more to be shrunk as much, and
        then bears more tables. Where no split can see all variables, many elements can be split
        at once.
        """
        options = cls()
        if not loss.quadratic:
            shared, context = Shrinkage(1.0, 3.0), Shrinkage(9.0, 30.0)
            options = replace(options, price=0.3, table_price=0.7, shared=shared, context=context)
        if n_variables > MANY_VARIABLES and loss.quadratic:
            options = replace(options, max_batch=128, min_share=0.05)
        elif n_variables > MANY_VARIABLES:
            options = replace(options, max_batch=256, min_share=0.3, frugal=True)
        return options


class SplitRequest(NamedTuple):
    """An element to split: the rows it is hot on, and the range of variables it sees."""

    rows: Ints
    first: int
    last: int


@dataclass(eq=False)
class SplitSearch:
    """Looks for splits, with the slope of the loss as it stands.

    The loss is taken as its second-order expansion with one curvature for all rows of an
    output. For squared error that is exact.
    """

    table: FeatureTable
    options: GrowthOptions
    target: SplitTarget
    shrinkage: Shrinkage
    penalties: dict[tuple[int, int], Penalty] = field(default_factory=dict)  # kept between searches

    def propose(self, requests: Sequence[SplitRequest]) -> list[Proposal | None]:
        """Find the best split of each element.

        Cost: for each set of rows that several may share, rows x features², the few that a row
        has; for each element a dense system for each finalist.
        """
        groups: dict[bytes, list[int]] = {}
        known = [request.rows[self.target.weight[request.rows] > 0] for request in requests]
        enough = 2 * self.options.min_rows
        for number, rows in enumerate(known):
            if len(rows) >= enough:
                groups.setdefault(rows.tobytes(), []).append(number)
        proposals: list[Proposal | None] = [None] * len(requests)
        size = self.table.fine.first
        n_threads, work = current().n_threads(), 0
        for rows, (_, first, last) in zip(known, requests, strict=True):
            work += len(rows) * (last - first) ** 2 + int(size[last] - size[first]) ** 3
        if work < MIN_THREADED_WORK:
            n_threads = 1

        def propose_alike(numbers: Sequence[int]) -> None:
            sums: list[SplitSums] = []
            calls: list[tuple[int, SplitSums]] = []
            for number in sorted(numbers, key=lambda n: requests[n].first - requests[n].last):
                _, *span = requests[number]
                suited = next((one for one in sums if one.covers(*span)), None)
                if suited is None:
                    suited = SplitSums(self.table, self.target, known[number], *span)
                    sums.append(suited)
                calls.append((number, suited))
            run_on_threads(propose_one, calls, n_threads)

        def propose_one(number: int, sums: SplitSums) -> None:
            _, *span = requests[number]
            proposals[number] = self._best(sums, *span)

        run_on_threads(propose_alike, [(numbers,) for numbers in groups.values()], n_threads)
        return proposals

    def _best(self, sums: SplitSums, first: int, last: int) -> Proposal | None:
        best, drop, penalty = None, 0.0, self._penalty(first, last)
        for cut in sums.best_cuts(first, last, self.options.min_rows, N_FINALISTS):
            roots = np.empty((2, *penalty.matrix.shape))
            promised = sums.drop(cut, first, last, penalty.matrix, roots)
            if promised > drop:
                best, drop = (cut, roots), promised
        if best is None:
            return None
        cut, roots = best
        net = drop - self.options.price * sum(self._noise(root, penalty) for root in roots)
        if net <= 0:
            return None
        allowed = sums.allowed(cut)
        inside, outside = sums.sides(cut, first, last)
        proposed = (
            SplitSide(allowed, self._tables(*inside, penalty, first, last)),
            SplitSide(~allowed, self._tables(*outside, penalty, first, last)),
        )
        return Proposal(net, cut.position, proposed)

    def _penalty(self, first: int, last: int) -> Penalty:
        """Return the penalty of a constant and a range of variables' tables."""
        key = (first, last)
        if key not in self.penalties:
            matrix = self.shrinkage.of(self.table.curves[first:last], self.shrinkage.size)
            twice = np.tril(matrix) + np.tril(matrix, -1)
            self.penalties[key] = Penalty(matrix, np.ascontiguousarray(twice.T))
        return self.penalties[key]

    def _noise(self, upper: Floats, penalty: Penalty) -> float:
        """Return the drop to expect of noise: half the slope's variance per free parameter."""
        fixed = float(np.vdot(invert_factored(upper), penalty.twice))
        return 0.5 * self.target.dispersion * (len(upper) - fixed)

    def _tables(
        self, slope: Floats, pairs: Floats, penalty: Penalty, first: int, last: int
    ) -> Ints:
        """Choose the variables whose table, on its own, promises more than noise."""
        start = 1 + self.table.fine.first[first : last + 1] - self.table.fine.first[first]
        kept = np.empty(last - first, np.bool_)
        strengths = self.target.curvature, self.options.table_price, self.target.dispersion
        pairs, slope = np.ascontiguousarray(pairs), np.ascontiguousarray(slope)
        tables_beyond_noise(pairs, slope, penalty.matrix, start, strengths, kept)
        return first + np.flatnonzero(kept)
