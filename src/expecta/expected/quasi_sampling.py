"""Average a function of a margin over completions of rows, at quasi-random points.

A completion takes one number in [0, 1) per vtree node. Each row has REPLICATES shifted copies of
one net of Sobol points, of which the spread of their means tells the error. Shifts depend on a
row's evidence and the seed alone, so that its answer does not depend on what else is asked; and
the expected margin is known, so that what it explains of the output needs no points.

References
----------
A. B. Owen, "Monte Carlo theory, methods and examples", 2013, chapters 8 and 17.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DeviceError
from expecta.common.kernels import kernel
from expecta.common.progress import Progress
from expecta.common.row_random import Words, row_keys, scrambled
from expecta.common.settings import current
from expecta.common.threads import run_on_threads
from expecta.engine.cuda import choice
from expecta.expected.leaf_masks import LeafMasks
from expecta.expected.sampling import SampledMeans

REPLICATES = 16
FIRST_POINTS = 8  # of each replicate, more until the error is small enough
MAX_GROWTH = 8  # of the points at a time: how many are needed is not well known yet
SAMPLES_FOR_SPREAD = 2048  # at least, where the spread is asked for: within about 2%
MAX_DIMENSIONS = 128  # of the net, from the root down; the numbers of further nodes are random
SAMPLES_AT_ONCE = 1 << 17
SAMPLES_PER_SLOPE = 8  # at least, so that what the margin explains is not chance
BITS = 30  # of a number
MIN_THREADED_NUMBERS = 1 << 17
MIN_CARD_WORK = 1e5  # samples times trees from which device="auto" takes a card: docs/gpu.md


@dataclass(frozen=True, eq=False)
class MarginFunction:
    """A function of a model's margins, whose expectation is asked.

    Attributes
    ----------
    margin
        Margins of complete rows of values, of which so many after each other belong together.
    respond
        The outputs of margins.
    explains
        Whether outputs are explained by margins, whose expectation is known.
    trees, link
        The same function as trees and the name of a link, where it is one.
    """

    margin: Callable[[Ints, int], Floats]
    respond: Callable[[Floats], Floats]
    explains: bool
    trees: LeafMasks | None = None
    link: str = ""


def quasi_means(
    circuit: ProbabilisticCircuit,
    codes: Ints,
    expected: Floats,
    function: MarginFunction,
    scale: Floats,
    rtol: float,
    max_samples: int,
    seed: int,
    *,
    min_samples: int = 0,
) -> SampledMeans:
    """Estimate the mean output of each row, which must be possible.

    Points are added until the standard error is ``rtol`` times the larger of the estimate and
    ``scale``, and there are ``min_samples``; or until a row has ``max_samples``.

    Parameters
    ----------
    codes
        Values of the circuit's variables, -1 where unknown; no two rows need be equal.
        # (rows, variables)
    expected
        The expected margin of each row.  # (rows, margins)
    scale
        What a relative error is relative to, at least.  # (outputs,)
    """
    n_replicates = int(np.clip(max_samples // FIRST_POINTS, 4, REPLICATES))
    most = max(1, max_samples // n_replicates)
    least = -(-min_samples // n_replicates)
    mean, error, variance = np.zeros((3, len(codes), len(scale)))
    points = np.zeros(len(codes), np.int64)  # of each replicate, so far
    wanted = np.full(len(codes), min(FIRST_POINTS, most))
    todo = np.arange(len(codes))
    centre = function.respond(expected)  # so that squares do not cancel
    sampling = _Sampling(
        circuit, codes, row_keys(codes, seed), n_replicates, function, centre, expected
    )
    sums = _Sums.zeros(len(codes), n_replicates, len(scale), expected.shape[1])
    with Progress("samples", None) as progress:
        while len(todo):
            steps = np.stack([points[todo], wanted[todo]], axis=1)
            if sampling.add_on_card(sums, todo, steps):
                progress.advance(n_replicates * int(np.diff(steps).sum()))
            else:
                for begin, end in np.unique(steps, axis=0).tolist():
                    some = todo[np.all(steps == (begin, end), axis=1)]
                    sampling.add(sums, some, sampling.net(end)[begin:], progress)
            points[todo] = wanted[todo]
            estimate, spread, variance[todo] = sums.take(todo).estimate(
                points[todo], function.explains
            )
            mean[todo] = estimate + centre[todo]
            # what was never drawn has less than about one part in as many samples
            n_samples = n_replicates * points[todo, None]
            error[todo] = np.hypot(spread, scale / n_samples)
            allowed = np.maximum(rtol * np.maximum(np.abs(mean[todo]), scale), 1e-140)
            # so many that spread² samples / need + scale² / need² is what is allowed, squared
            half = 0.5 * (spread / allowed) ** 2 * n_samples
            need = np.max(half + np.hypot(half, scale / allowed), axis=1) / n_replicates
            need = np.clip(need, least, MAX_GROWTH * points[todo])
            wanted[todo] = np.minimum(_round_up(need), most)
            todo = todo[points[todo] < np.minimum(need, most)]
    return SampledMeans(mean, error, variance, n_replicates * points)


def _round_up(points: Floats) -> Ints:
    """Round up to one of few numbers, at most a third apart, so that rows go on together."""
    power = 2.0 ** np.floor(np.log2(points))
    return (power * np.ceil(4 * points / power) / 4).astype(np.int64)


def _draw(circuit: ProbabilisticCircuit, codes: Ints, numbers: Floats) -> Ints:
    """Complete each row as often as there are numbers for.  # (numbers, variables)."""
    return circuit.sample_at(len(numbers) // len(codes), codes, lambda a, b: numbers[a:b])


class _Sampling(NamedTuple):
    """What is averaged over completions of which rows."""

    circuit: ProbabilisticCircuit
    codes: Ints
    keys: Words
    replicates: int
    function: MarginFunction
    centre: Floats  # less which outputs, and margins, are added up
    expected: Floats

    def add(self, sums: _Sums, some: Ints, net: Words, progress: Progress) -> None:
        """Add points of some rows to their sums."""
        n, function = self.replicates * len(net), self.function
        for rows in np.array_split(some, 1 + n * len(some) // SAMPLES_AT_ONCE):
            if not len(rows):
                continue
            numbers = _shifted(net, self.keys[rows], self.replicates)
            drawn = _draw(self.circuit, self.codes[rows], numbers)
            margin = function.margin(drawn, n)
            gap = function.respond(margin) - np.repeat(self.centre[rows], n, axis=0)
            sums.add(rows, gap, margin - np.repeat(self.expected[rows], n, axis=0))
            progress.advance(len(rows) * n)

    def net(self, points: int) -> Words:
        """Return so many points for all rows."""
        return _net(1 << (points - 1).bit_length(), len(self.circuit.vtree))[:points]

    def add_on_card(self, sums: _Sums, some: Ints, points: Ints) -> bool:
        """Do it on a card, where the settings say so; False where not, or where it failed.

        Of each row go the points from one to another.  # points: (some, 2)
        """
        trees, link = self.function.trees, self.function.link
        if trees is None:
            return False
        work = float(np.sum(np.diff(points)) * self.replicates) * trees.words.shape[1]
        if not choice.wanted(lambda: work > MIN_CARD_WORK):
            return False
        from expecta.expected.card_points import LINKS, MAX_MARGINS, RowPoints, points_on_card

        if link not in LINKS or len(trees.bias) > MAX_MARGINS:
            return False
        net, of_rows = self.net(int(points[:, 1].max())), (self.centre[some], self.expected[some])
        asked = RowPoints(self.codes[some], self.keys[some], net, points, self.replicates, *of_rows)
        try:
            parts = points_on_card(self.circuit, trees, link, asked)
        except DeviceError as problem:
            choice.failed_on_card(problem)
            return False
        sums.add_parts(some, *parts)
        return True


class _Sums(NamedTuple):
    """Sums over the points of each row: of outputs y and margins b, less constants of the row."""

    y: Floats  # (replicates, outputs, rows)
    b: Floats  # (replicates, margins, rows)
    yy: Floats  # (outputs, rows)
    by: Floats  # (margins, outputs, rows)
    bb: Floats  # (margins, margins, rows)

    @classmethod
    def zeros(cls, rows: int, replicates: int, outputs: int, margins: int) -> _Sums:
        shapes = [
            (replicates, outputs),
            (replicates, margins),
            (outputs,),
            (margins, outputs),
            (margins, margins),
        ]
        return cls(*(np.zeros((*shape, rows)) for shape in shapes))

    def take(self, rows: Ints) -> _Sums:
        return _Sums(*(part[..., rows] for part in self))

    def add(self, rows: Ints, y: Floats, b: Floats) -> None:
        n, replicates = len(rows), len(self.y)
        y, b = (part.reshape(n, -1, part.shape[1]) for part in (y, b))
        for total, part in ((self.y, y), (self.b, b)):
            each = part.reshape(n, replicates, -1, part.shape[2]).sum(axis=2)
            total[..., rows] += np.moveaxis(each, 0, 2)
        self.yy[..., rows] += np.einsum("rik,rik->kr", y, y)
        turned = b.transpose(0, 2, 1)
        self.by[..., rows] += np.moveaxis(turned @ y, 0, 2)
        self.bb[..., rows] += np.moveaxis(turned @ b, 0, 2)

    def add_parts(self, rows: Ints, first: Floats, products: Floats) -> None:
        """Add sums of y and b, by replicate, and of yy, by and bb.  # (..., rows)."""
        outputs, at = self.y.shape[1], 0
        self.y[..., rows] += first[:, :outputs]
        self.b[..., rows] += first[:, outputs:]
        for total in (self.yy, self.by, self.bb):
            shape = total.shape[:-1]
            size = int(np.prod(shape))
            total[..., rows] += products[at : at + size].reshape(*shape, -1)
            at += size

    def estimate(self, points: Ints, explains: bool) -> tuple[Floats, Floats, Floats]:
        """Return means of y, their standard errors, and the variances of y.  # (rows, outputs)."""
        replicates, margins = self.b.shape[:2]
        n = replicates * points
        means = self.y / points
        mean = means.mean(axis=0)
        variance = np.maximum(self.yy / n - mean**2, 0.0) * (n / np.maximum(n - 1, 1))
        lost, unseen = 0, np.zeros_like(mean)
        if explains:
            lost = margins + 1
            beside = self.b / points
            b = beside.mean(axis=0)
            bb = np.moveaxis(self.bb / n - b[:, None] * b, 2, 0)
            by = np.moveaxis(self.by / n - b[:, None] * mean, 2, 0)
            # margins that move together, or not at all, leave no equation to solve
            size = np.trace(bb, axis1=1, axis2=2)[:, None, None]
            ridge = np.where(size > 1e-200, 1e-12 * size, 1.0)
            slope = np.linalg.solve(bb + ridge * np.eye(margins), by)
            slope[n < SAMPLES_PER_SLOPE * margins] = 0.0
            slope = np.ascontiguousarray(np.moveaxis(slope, 0, 2))
            change = np.einsum("jmr,mkr->jkr", beside, slope)
            means = means - change
            # a change beyond its own error: something rare was missed, which a slope misjudges
            unseen = np.abs(change.mean(axis=0)) - 2.0 * np.sqrt(change.var(axis=0) / replicates)
        # t-distributed with replicates - 1 degrees of freedom, whose variance is this much more
        wide = (replicates - 1) / (replicates - 3) * n / np.maximum(n - lost, 1)
        error = np.sqrt(means.var(axis=0, ddof=1) / replicates * wide)
        return means.mean(axis=0).T, np.hypot(error, np.maximum(unseen, 0.0)).T, variance.T


def distinct_rows(codes: Ints) -> tuple[Ints, Ints]:
    """Return the different rows of evidence, in some order, and which of them each row is."""
    _, first, which = np.unique(row_keys(codes, 0), return_index=True, return_inverse=True)
    rows = codes[first]
    if not np.array_equal(rows[which], codes):  # two rows with one key
        rows, which = np.unique(codes, axis=0, return_inverse=True)
    return rows, which.ravel()


def _shifted(net: Words, keys: Words, replicates: int) -> Floats:
    """Return the points of each row, replicate by replicate.  # (rows · points, dimensions)."""
    dimensions = net.shape[1]
    which = scrambled(np.arange(replicates * dimensions, dtype=np.uint64))
    shift = (scrambled(keys[:, None] ^ which) >> np.uint64(64 - BITS)).reshape(-1, dimensions)
    numbers = np.empty((len(shift) * len(net), dimensions))
    parts = min(current().n_threads(), len(shift)) if numbers.size > MIN_THREADED_NUMBERS else 1
    cuts = [len(shift) * part // parts for part in range(parts + 1)]
    run_on_threads(partial(_shift, net, shift, numbers), list(pairwise(cuts)), parts)
    return numbers


@kernel
def _shift(net: Words, shift: Words, numbers: Floats, first: int, last: int) -> None:
    """Write the points of some copies of a net, as numbers between 0 and 1."""
    points, dimensions = net.shape
    for copy in range(first, last):
        for point in range(points):
            for d in range(dimensions):
                word = np.int32(shift[copy, d] ^ net[point, d])
                numbers[copy * points + point, d] = (word + 0.5) * 0.5**BITS


@lru_cache(maxsize=8)
def _net(points: int, dimensions: int) -> Words:
    """Return so many first points of a scrambled Sobol sequence, the last dimension the best.

    Their number is a power of two; more of them do not change the first.
    """
    from scipy.stats.qmc import Sobol

    rng = np.random.default_rng(0)
    best = min(dimensions, MAX_DIMENSIONS)
    sobol = Sobol(best, bits=BITS, rng=rng).random(points)
    words = np.empty((points, dimensions), np.uint64)
    words[:, dimensions - best :] = (sobol * 2.0**BITS).astype(np.uint64)[:, ::-1]
    for d in range(dimensions - best):  # a generator each
        draws = np.random.default_rng([1, d]).integers(0, 1 << BITS, points)
        words[:, d] = draws.astype(np.uint64)
    words.flags.writeable = False
    return words
