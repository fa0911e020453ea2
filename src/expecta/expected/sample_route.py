"""Any function: conditional samples from the density, with a standard error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.settings import Progress
from expecta.densities.density import Density
from expecta.expected.row_template import Template
from expecta.tables.table import Table

__all__ = ["Control", "Sampled", "Sampler"]

FIRST = 64  # draws per row, before it is known how many are needed
AT_ONCE = 100_000  # rows that the model is given at a time


@dataclass(frozen=True, eq=False)
class Sampled:
    """Estimates for each row.  # (rows, outputs)."""

    mean: Floats
    error: Floats  # standard error of the mean
    variance: Floats  # of the function over what is unknown
    draws: Ints  # (rows,)


@dataclass(frozen=True, eq=False)
class Control:
    """A function of the outputs whose mean is known: what it explains needs no draws."""

    function: Callable[[Floats], Floats]  # of outputs, in as many columns; NaN where unknown
    mean: Floats  # (rows, outputs)


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
        control: Control | None = None,
    ) -> Sampled:
        """Estimate for some rows of a table, ``codes`` being what the density sees of them.

        Draws until the standard error is ``rtol`` times the larger of the estimate and the
        function's spread over training rows, or until there are ``most`` draws. What a
        ``control`` explains of the draws is known, and does not count as error.
        """
        n, k = len(rows), len(self._scale)
        count, sums = np.zeros(n, np.int64), np.zeros((5, n, k))
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
                    beside = np.zeros_like(values)
                    if control is not None:
                        beside = control.function(values) - control.mean[which]
                    values = values - shift[which]
                    for each, more in zip(
                        sums, (values, values**2, beside, beside**2, values * beside), strict=True
                    ):
                        each[some] += np.add.reduceat(more, first)
                    count[some] += draws
                mean, variance, left = _statistics(sums, count)
                allowed = rtol * np.maximum(np.abs(mean + shift), self._scale)
                allowed = np.maximum(allowed, 1e-140)  # whose square is a number too
                need = np.max(np.maximum(left / allowed**2, self._scale / allowed), axis=1)
                need = np.minimum(np.ceil(need), most).astype(np.int64)
                todo = np.flatnonzero(need > count)
                wanted = np.minimum(need - count, np.maximum(count, FIRST) * 8)
        # what was never drawn has less than about one part in as many draws
        error = np.hypot(np.sqrt(left / count[:, None]), self._scale / count[:, None])
        return Sampled(mean + shift, error, variance, count)


def _statistics(sums: Floats, count: Ints) -> tuple[Floats, Floats, Floats]:
    """Return the mean, the variance, and what the control leaves of it."""
    n = np.maximum(count, 1)[:, None]
    mean, square, beside, besides, both = sums / n
    variance = np.maximum(square - mean**2, 0.0)
    spread = np.maximum(besides - beside**2, 0.0)
    together = both - mean * beside
    # a control that was lost in some draw, or never varies, explains nothing
    useful = np.isfinite(together) & (spread > 1e-12 * np.maximum(besides, 1e-300))
    slope = np.where(useful, together / np.where(useful, spread, 1.0), 0.0)
    fair = n / np.maximum(n - 1, 1)
    mean = mean - slope * np.where(useful, beside, 0.0)
    left = np.maximum(variance - slope * np.where(useful, together, 0.0), 0.0)
    return mean, variance * fair, left * n / np.maximum(n - 2, 1)


def _batches(todo: Ints, wanted: Ints) -> list[Ints]:
    """Divide rows so that each part has about as many draws as the model is given at a time."""
    order = np.argsort(-wanted, kind="stable")  # draws of a part are drawn together
    total = np.cumsum(wanted[order])
    parts = np.array_split(order, 1 + int(total[-1]) // AT_ONCE) if len(total) else []
    return [todo[part] for part in parts if len(part)]
