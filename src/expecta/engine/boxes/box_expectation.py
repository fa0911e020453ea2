"""Compute the expectation of a sum of boxes under a circuit, given what is known of each row."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DeviceError
from expecta.common.progress import Progress
from expecta.common.settings import current
from expecta.common.threads import one_blas_thread, run_on_threads
from expecta.engine.boxes.box_layout import mixing, parts
from expecta.engine.boxes.box_recursion import expect, unconditional
from expecta.engine.boxes.box_sums import BoxSum
from expecta.engine.cuda.choice import failed_on_card, wanted
from expecta.engine.plan import children_first

BLOCK_ROWS = 64  # per call of the kernel
CALLS_PER_ROUND = 16  # of each thread, after which progress is shown
MIN_CARD_BOXES = 2e4  # rows times boxes from which device="auto" takes a card: docs/gpu.md


class BoxExpectation:
    """A sum of boxes, compiled for one circuit. Exact for any sum, overlapping boxes included."""

    def __init__(self, p: ProbabilisticCircuit, boxes: BoxSum) -> None:
        self.boxes = boxes
        self._parts, self._value = parts(boxes, p.vtree, children_first(p.vtree))
        self._take(p)

    def _take(self, p: ProbabilisticCircuit) -> None:
        self._p = mixing(p, children_first(p.vtree))
        self._at = np.append(0, np.cumsum(np.diff(self._parts.start) * self._p.n_nodes))

    def under(self, p: ProbabilisticCircuit) -> BoxExpectation:
        """Return the same sum for another circuit over the same vtree and values.

        Cost: sorting the circuit's edges; the boxes are not written anew.
        """
        other = copy(self)
        other.__dict__.pop("_prior", None)
        other._take(p)
        return other

    @cached_property
    def _prior(self) -> Any:
        return unconditional(self._p, self._parts, self._at)

    @property
    def n_parts(self) -> int:
        """How many different parts the boxes have, over all vtree nodes."""
        return int(self._parts.start[-1])

    def __call__(self, codes: Ints) -> Floats:
        """Compute the expectation for rows of codes, -1 where unknown.  # (rows, outputs).

        Equal rows are computed once, and so are vtree nodes below which neighbours among the
        sorted rows agree. Cost per row: for every other vtree node the parts that the known
        values allow and that differ in what is unknown, times the edges of p there.
        """
        found = self._on_card(codes)
        return self._compute(codes, 1) if found is None else found

    def _on_card(self, codes: Ints) -> Floats | None:
        """Compute it on a card, where the settings say so; None where not, or where it failed."""
        n_boxes = len(self._value)
        size = float(len(codes)) * n_boxes
        if (
            not len(codes)
            or len(self._p.variable) == 1
            or not wanted(lambda: size > MIN_CARD_BOXES)
        ):
            return None
        from expecta.engine.boxes.card_boxes import MAX_BOXES, boxes_on_card

        if n_boxes > MAX_BOXES:
            return None
        compiled = (self._p, self._parts, self._value, self._prior, self._at)
        try:
            return boxes_on_card(self, *compiled, codes)
        except DeviceError as problem:
            failed_on_card(problem)
        return None

    def mean_and_central(self, codes: Ints, order: int) -> Floats:
        """Compute 1, the mean, C_2 .. C_order of boxes of which no two overlap.

        They must cover everything. Moments are about the mean from the start, so that they do
        not cancel. Cost: that of the expectation.  # (rows, outputs, order + 1)
        """
        outputs = self._value.shape[1]
        moments = self._compute(codes, max(order, 2)).reshape(len(codes), outputs, -1)
        first = np.where(np.isnan(moments[:, :, :1]), np.nan, 1.0)
        return np.concatenate([first, moments], axis=2)[:, :, : order + 1]

    def variance(self, codes: Ints) -> Floats:
        """Compute the variance, where no two boxes overlap and they cover everything."""
        return self.mean_and_central(codes, 2)[:, :, 2]

    def _compute(self, codes: Ints, order: int) -> Floats:
        if len(self._p.variable) == 1:
            return self._alone(codes[:, 0], order)
        # in the order of the walk, so that neighbours agree on whole parts of the vtree
        walked = self._p.variable[self._p.order]
        walked = walked[walked >= 0]
        distinct, which = np.unique(codes[:, walked], axis=0, return_inverse=True)
        rows = np.empty((len(distinct), len(walked)), np.int32)
        rows[:, walked] = distinct
        out = np.empty((len(rows), self._value.shape[1] * order))
        prior, threads = self._prior, current().n_threads()

        def compute(begin: int) -> None:
            end = min(begin + BLOCK_ROWS, len(rows))
            expect(self._p, self._parts, self._value, prior, self._at, rows, begin, end, order, out)

        begins = range(0, len(rows), BLOCK_ROWS)
        with Progress("rows", len(rows)) as progress, one_blas_thread():
            for at in range(0, len(begins), threads * CALLS_PER_ROUND):
                now = begins[at : at + threads * CALLS_PER_ROUND]
                run_on_threads(compute, [(begin,) for begin in now], threads)
                progress.advance(min(len(rows), now[-1] + BLOCK_ROWS) - now[0])
        return out[which.ravel()]

    def _alone(self, codes: Ints, order: int) -> Floats:
        """Compute the same where there is a single variable, so that nothing is joined."""
        values, share = self.boxes(np.arange(len(self._p.leaf))[:, None]), self._p.leaf[:, None]
        possible = share[:, 0] > 0
        weight, centre = share[possible] / share.sum(), values[possible][:1]
        gap = values[possible] - centre
        mean = np.sum(weight * gap, axis=0)
        central = [np.sum(weight * (gap - mean) ** k, axis=0) for k in range(2, order + 1)]
        known = np.where(possible[:, None], values, np.nan)
        spread = [np.where(possible[:, None], 0.0 * values, np.nan)] * (order - 1)
        known_moments = np.stack([known, *spread], axis=2)
        unknown = np.stack([centre[0] + mean, *central], axis=1)
        return np.append(known_moments, unknown[None], axis=0).reshape(len(share) + 1, -1)[codes]
