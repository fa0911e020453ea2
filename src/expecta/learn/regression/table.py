"""The rows to learn from, as features that all growths on them share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Floats, Ints
from expecta.learn.regression.curves import Curve
from expecta.learn.regression.features import Features, Sparse

__all__ = ["Table"]


class Table:
    """Complete rows and their targets, with features that all growths on them share."""

    def __init__(self, codes: Ints, vtree: Vtree, curves: Sequence[Curve], y: Floats) -> None:
        self.vtree, self.y = vtree, y
        self.order = vtree.variable[vtree.variable >= 0]  # variables as the leaves have them
        self.curves = [curves[x] for x in self.order]
        self.codes = np.ascontiguousarray(codes[:, self.order], np.int32)
        self.fine = Features(self.codes, [curve.basis for curve in self.curves])
        self.cardinalities = np.array([len(curve.basis) for curve in curves])

    @cached_property
    def by_column(self) -> Sparse:
        """The features by columns."""
        return self.fine.rows.transposed()

    @cached_property
    def coarse(self) -> Features:
        """A feature per group of values; of two groups the second."""
        bases = [np.eye(curve.n_groups)[curve.groups] for curve in self.curves]
        return Features(self.codes, [b[:, 1:] if b.shape[1] <= 2 else b for b in bases])

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """Which leaves are below each vtree node: a range."""
        found: list[tuple[int, int]] = []
        n = 0
        for v, x in enumerate(self.vtree.variable.tolist()):
            if x >= 0:
                found.append((n, n + 1))
                n += 1
            else:
                found.append((found[self.vtree.left[v]][0], found[self.vtree.right[v]][1]))
        return found
