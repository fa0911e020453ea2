"""Average a function over conditional samples until the standard error is small enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.progress import Progress

FIRST_SAMPLES = 64  # per row, before it is known how many are needed
FIXED_SAMPLES = 4096  # per row, for spreads and distributions
MAX_BATCH_ROWS = 100_000  # rows that a model is given at a time

Draw: TypeAlias = Callable[[Ints, Ints], Floats]


@dataclass(frozen=True)
class Sampling:
    """How many samples are drawn where something is not computed.

    Attributes
    ----------
    rtol
        Standard error of a mean to reach, relative to the larger of the mean and ``scale``.
    max_samples
        Largest number of samples per row of evidence.
    scale
        Spread of the model's output.
    random_state
        Seed: the same question has the same answer.
    """

    rtol: float = 0.01
    max_samples: int = 10_000
    scale: float = 1.0
    random_state: int = 0

    @property
    def fixed(self) -> int:
        """Samples per row for a spread or a distribution."""
        return max(2, min(FIXED_SAMPLES, self.max_samples))

    def rng(self) -> np.random.Generator:
        """Return random numbers, the same for every question."""
        return np.random.default_rng(self.random_state)


@dataclass(frozen=True, eq=False)
class SampledMeans:
    """Estimates for each row.  # (rows, outputs)."""

    mean: Floats
    error: Floats  # standard error of the mean
    variance: Floats  # of the function over the unknown inputs
    samples: Ints  # (rows,)

    def take(self, rows: Ints) -> SampledMeans:
        """Return some of the rows."""
        return SampledMeans(
            self.mean[rows], self.error[rows], self.variance[rows], self.samples[rows]
        )


@dataclass(frozen=True, eq=False)
class ControlVariate:
    """A function of the outputs whose mean is known: what it explains needs no samples."""

    function: Callable[[Floats], Floats]  # of outputs, in as many columns; NaN where unknown
    mean: Floats  # (rows, outputs)


def sample_means(
    draw: Draw,
    n_rows: int,
    scale: Floats,
    rtol: float,
    max_samples: int,
    control: ControlVariate | None = None,
    *,
    min_samples: int = 0,
) -> SampledMeans:
    """Estimate the mean of each row by sampling.

    Draws until the standard error is ``rtol`` times the larger of the estimate and
    ``scale``, and there are ``min_samples``; or until a row has ``max_samples``.

    Parameters
    ----------
    draw
        ``draw(rows, counts)`` returns so many outputs of each of these rows, one row
        after the other.  # (sum of counts, outputs)
    scale
        What a relative error is relative to, at least.  # (outputs,)
    control
        What it explains of the samples is known, and does not count as error.
    """
    count, sums = np.zeros(n_rows, np.int64), np.zeros((5, n_rows, len(scale)))
    shift = np.zeros((n_rows, len(scale)))  # the first sample: so that squares do not cancel
    todo = np.arange(n_rows)
    wanted = np.full(n_rows, max(2, min(FIRST_SAMPLES, max_samples)))
    with Progress("samples", None) as progress:
        while len(todo):
            for rows in row_batches(todo, wanted[todo]):
                counts = wanted[rows]
                progress.advance(int(counts.sum()))
                values = draw(rows, counts)
                row = np.repeat(rows, counts)
                first = np.cumsum(counts) - counts
                fresh = count[rows] == 0
                shift[rows[fresh]] = values[first[fresh]]
                beside = np.zeros_like(values)
                if control is not None:
                    beside = control.function(values) - control.mean[row]
                values = values - shift[row]
                products = (values, values**2, beside, beside**2, values * beside)
                for total, product in zip(sums, products, strict=True):
                    total[rows] += np.add.reduceat(product, first)
                count[rows] += counts
            mean, variance, unexplained = _statistics(sums, count)
            allowed = rtol * np.maximum(np.abs(mean + shift), scale)
            allowed = np.maximum(allowed, 1e-140)  # whose square is a number too
            need = np.max(np.maximum(unexplained / allowed**2, scale / allowed), axis=1)
            need = np.clip(np.ceil(need), min_samples, max_samples).astype(np.int64)
            todo = np.flatnonzero(need > count)
            wanted = np.minimum(need - count, np.maximum(count, FIRST_SAMPLES) * 8)
    # what was never drawn has less than about one part in as many samples
    error = np.hypot(np.sqrt(unexplained / count[:, None]), scale / count[:, None])
    return SampledMeans(mean + shift, error, variance, count)


def _statistics(sums: Floats, count: Ints) -> tuple[Floats, Floats, Floats]:
    """Return the mean, the variance, and what the control leaves of it."""
    n = np.maximum(count, 1)[:, None]
    mean, square, beside, beside_square, product = sums / n
    variance = np.maximum(square - mean**2, 0.0)
    spread = np.maximum(beside_square - beside**2, 0.0)
    covariance = product - mean * beside
    # a control that was lost in some sample, or never varies, explains nothing
    useful = np.isfinite(covariance) & (spread > 1e-12 * np.maximum(beside_square, 1e-300))
    slope = np.where(useful, covariance / np.where(useful, spread, 1.0), 0.0)
    mean = mean - slope * np.where(useful, beside, 0.0)
    unexplained = np.maximum(variance - slope * np.where(useful, covariance, 0.0), 0.0)
    unbiased = n / np.maximum(n - 1, 1)
    return mean, variance * unbiased, unexplained * n / np.maximum(n - 2, 1)


def row_batches(rows: Ints, counts: Ints) -> list[Ints]:
    """Divide rows so that a batch has about as many samples as a model is given at a time."""
    order = np.argsort(-counts, kind="stable")  # samples of a batch are drawn together
    total = np.cumsum(counts[order])
    parts = np.array_split(order, 1 + int(total[-1]) // MAX_BATCH_ROWS) if len(total) else []
    return [rows[part] for part in parts if len(part)]
