"""Any function: conditional samples from the density, with a standard error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from expecta.arrays import Floats, Ints
from expecta.densities.density import Density
from expecta.encoding.tables import Table
from expecta.models.rows import Template
from expecta.settings import Progress

__all__ = ["Sampled", "Sampler"]

FIRST = 64  # draws per row, before it is known how many are needed
AT_ONCE = 100_000  # rows that the model is given at a time


@dataclass(frozen=True, eq=False)
class Sampled:
    """Estimates for each row.  # (rows, outputs)."""

    mean: Floats
    error: Floats  # standard error of the mean
    variance: Floats  # of the function over what is unknown
    draws: Ints  # (rows,)


class Sampler:
    """Averages of a function of complete rows over what is unknown."""

    def __init__(
        self,
        function: Callable[[Any], Floats],
        density: Density,
        template: Template,
        scale: Floats,
    ) -> None:
        self._function, self._density, self._template = function, density, template
        self._scale = scale  # what a relative error is relative to, at least  # (outputs,)

    @property
    def n_outputs(self) -> int:
        """How many numbers the function returns for a row."""
        return len(self._scale)

    def __call__(
        self,
        table: Table,
        rows: Ints,
        codes: Ints,
        rtol: float,
        most: int,
        rng: np.random.Generator,
    ) -> Sampled:
        """Estimate for some rows of a table, ``codes`` being what the density sees of them.

        Draws until the standard error is ``rtol`` times the larger of the estimate and the
        function's spread over training rows, or until there are ``most`` draws.
        """
        n, k = len(rows), len(self._scale)
        count, total, square = np.zeros(n, np.int64), np.zeros((n, k)), np.zeros((n, k))
        shift = np.zeros((n, k))  # the first draw: so that squares do not cancel
        todo, wanted = np.arange(n), np.full(n, min(FIRST, most))
        with Progress("draws", None) as progress:
            while len(todo):
                for some in _batches(todo, wanted[todo]):
                    progress.advance(int(wanted[some].sum()))
                    draws = wanted[some]
                    which = np.repeat(some, draws)
                    drawn = self._density.circuit.sample(
                        int(draws.max()), given=codes[some], seed=rng
                    )
                    keep = np.arange(drawn.shape[1])[None] < draws[:, None]
                    filled = self._template.filled(
                        table, rows[which], drawn[keep], self._density, rng
                    )
                    values = self._function(filled)
                    first = np.cumsum(draws) - draws
                    fresh = count[some] == 0
                    shift[some[fresh]] = values[first[fresh]]
                    values = values - shift[which]
                    np.add.at(total, which, values)
                    np.add.at(square, which, values**2)
                    count[some] += draws
                mean, variance = _statistics(total, square, count)
                allowed = rtol * np.maximum(np.abs(mean + shift), self._scale)
                allowed = np.maximum(allowed, 1e-300)
                need = np.max(np.maximum(variance / allowed**2, self._scale / allowed), axis=1)
                need = np.minimum(np.ceil(need), most).astype(np.int64)
                todo = np.flatnonzero(need > count)
                wanted = np.minimum(need - count, np.maximum(count, FIRST) * 8)
        # what was never drawn has less than about one part in as many draws
        error = np.hypot(np.sqrt(variance / count[:, None]), self._scale / count[:, None])
        return Sampled(mean + shift, error, variance, count)


def _statistics(total: Floats, square: Floats, count: Ints) -> tuple[Floats, Floats]:
    n = np.maximum(count, 1)[:, None]
    mean = total / n
    return mean, np.maximum(square / n - mean**2, 0.0) * n / np.maximum(n - 1, 1)


def _batches(todo: Ints, wanted: Ints) -> list[Ints]:
    """Divide rows so that each part has about as many draws as the model is given at a time."""
    order = np.argsort(-wanted, kind="stable")  # draws of a part are drawn together
    total = np.cumsum(wanted[order])
    parts = np.array_split(order, 1 + int(total[-1]) // AT_ONCE) if len(total) else []
    return [todo[part] for part in parts if len(part)]
