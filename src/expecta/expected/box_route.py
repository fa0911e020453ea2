"""Sums of trees: boxes, whose expectation is exact for any number of trees."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.engine.boxes import BoxExpectation, BoxSum
from expecta.expected.model_cells import Cells
from expecta.expected.tree_boxes import Written, partition
from expecta.readers.forms import Trees

__all__ = ["Boxes"]

MOST = 200_000  # boxes of a square or a partition, beyond which sampling is used


class Boxes:
    """A margin that is a sum of boxes. Its mean is exact; so are further moments of few trees."""

    def __init__(self, trees: Trees, written: Written, cells: Cells) -> None:
        self._trees, self._cells = trees, cells
        self.sum = written.as_boxes()
        self.first = BoxExpectation(cells.density.circuit, self.sum)

    def mean(self, codes: Ints) -> Floats:
        """E of the margin.  # (rows, outputs)."""
        return self.first(codes)

    @cached_property
    def middle(self) -> Floats:
        """The mean of the margin where nothing is known.  # (1, outputs)."""
        return self.first(np.full((1, len(self._cells.density.columns)), -1, np.int32))

    @cached_property
    def square(self) -> BoxExpectation | None:
        """The expectation of the squared distance from there, where boxes are few enough."""
        # about the overall mean, so that little cancels
        about = self.sum.plus(-self.middle)
        square = about.times(about, MOST)
        return None if square is None else BoxExpectation(self._cells.density.circuit, square)

    @property
    def knows_variance(self) -> bool:
        """Whether pairs of leaves are few enough for the variance to be exact."""
        return self.square is not None

    def variance(self, codes: Ints) -> Floats:
        """Variance of the margin over what is unknown.  # (rows, outputs)."""
        assert self.square is not None
        gap = self.first(codes) - self.middle
        return np.maximum(self.square(codes) - gap**2, 0.0)

    @cached_property
    def _parts(self) -> BoxSum | None:
        return partition(self._trees, self._cells, MOST)

    @property
    def is_small(self) -> bool:
        """Whether the trees cut space into few enough boxes for everything to be exact."""
        return self._parts is not None

    def of(self, function: Callable[[Floats], Floats]) -> BoxExpectation:
        """Return the expectation of a function of the margin, where the trees are few."""
        assert self._parts is not None
        return BoxExpectation(self._cells.density.circuit, self._parts.map(function))
