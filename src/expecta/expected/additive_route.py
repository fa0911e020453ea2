"""Models that add up one function per column: a circuit, and all that pairs answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from expecta.circuits.constructions import linear
from expecta.common.arrays import Floats, Ints
from expecta.expected.model_cells import Cells
from expecta.expected.row_template import Template
from expecta.queries.pair import Pair
from expecta.readers.forms import Linear
from expecta.tables.table import Table

__all__ = ["Additive", "write_linear"]


class Additive:
    """A margin that is a table per column. Every moment is exact, for any number of outputs.

    Where the model tells numbers of one bin apart, a table has the mean over the training
    numbers of the bin, and a known number adds what it adds to the model, to the last bit.
    """

    def __init__(
        self, bias: Floats, tables: Sequence[Floats], cells: Cells, exact: Linear | None
    ) -> None:
        self.tables, self._cells, self._exact = tables, cells, exact
        p = cells.density.circuit
        self.pair = Pair(p, linear(p.vtree, tables, bias=bias))

    def offset(self, codes: Ints, table: Table, rows: Ints, template: Template) -> Floats:
        """Return what known numbers add beyond the mean of their bin.  # (rows, outputs).

        ``codes`` are those of some rows of the table.
        """
        total = np.zeros((len(codes), self.pair.g.n_outputs))
        if self._exact is None:
            return total
        features = self._cells.features
        for place, at in enumerate(template.places(table)):
            own = features.of(place)
            variable = int(self._cells.variable[place])
            seen = np.flatnonzero(codes[:, variable] >= 0)
            if not len(own) or not len(seen):
                continue
            values = template.column(table, at)[rows[seen]]
            adds = features.values(place, values) @ self._exact.coefficient[own]
            total[seen] += adds - self.tables[variable][codes[seen, variable]]
        return total

    def mean(self, codes: Ints) -> Floats:
        """E of the margin.  # (rows, outputs)."""
        return self.pair.expectation(codes).reshape(len(codes), -1)

    def central(self, codes: Ints, order: int) -> tuple[Floats, Floats]:
        """Mean of the margin, and its moments about it.  # (rows, outputs, order + 1)."""
        k = self.pair.g.n_outputs
        about = self.pair.moments(codes, order, central=True).reshape(len(codes), k, order + 1)
        return self.mean(codes), about


def write_linear(form: Linear, cells: Cells, X: Table, template: Template) -> Additive:
    """Write a linear model over the bins of a density: their means over the training rows."""
    encoder, features = cells.density.encoder_, cells.features
    tables = [np.zeros((int(card), len(form.bias))) for card in encoder.cardinalities_]
    bias = form.bias.astype(np.float64).copy()
    constant = np.flatnonzero(features.source < 0)
    if len(constant):
        bias = bias + features(features.rows)[0, constant] @ form.coefficient[constant]
    codes = encoder.codes(X)
    for place, at in enumerate(template.places(X)):
        own = features.of(place)
        if not len(own):
            continue
        variable = int(cells.variable[place])
        examples = features.values(place, cells.examples[place]) @ form.coefficient[own]
        rows = np.flatnonzero(codes[:, variable] >= 0)
        adds = features.values(place, template.column(X, at)[rows]) @ form.coefficient[own]
        count = np.bincount(codes[rows, variable], minlength=len(examples))
        for k in range(len(form.bias)):
            total = np.bincount(codes[rows, variable], adds[:, k], minlength=len(examples))
            mean = total / np.maximum(count, 1)
            tables[variable][:, k] = np.where(count > 0, mean, examples[:, k])
    return Additive(bias, tables, cells, form)
