"""Complete rows by draws that depend on a row's evidence and the seed alone."""

from __future__ import annotations

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.common.arrays import Ints
from expecta.common.row_random import RowRandom, row_keys, scrambled


class RowDraws:
    """Completions of rows, new ones at every call: the same whatever other rows are drawn."""

    def __init__(self, circuit: ProbabilisticCircuit, codes: Ints, seed: int) -> None:
        self.circuit, self.codes = circuit, codes
        self.keys = row_keys(codes, seed)
        self.n_drawn = np.zeros(len(codes), np.int64)  # of each row, so far

    def __call__(self, rows: Ints, counts: Ints) -> tuple[Ints, RowRandom]:
        """Draw so many for each of some rows, one row after the other, and numbers for their cells.

        # (sum of counts, variables)
        """
        n, n_nodes = int(counts.max()), len(self.circuit.vtree)
        number = self.n_drawn[rows, None] + np.arange(n)
        self.n_drawn[rows] += counts
        keys = scrambled(scrambled(number.view(np.uint64)) ^ self.keys[rows, None])
        random = RowRandom(keys.ravel())
        drawn = self.circuit.sample_at(
            n, self.codes[rows], lambda a, b: random.uniform(n_nodes, slice(a, b))
        )
        wanted = np.arange(n) < counts[:, None]
        return drawn[wanted.ravel()], RowRandom(keys[wanted], n_nodes)
