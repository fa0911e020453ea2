"""Hold rows out: how well circuits do on them while they grow, and at other penalties."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from expecta.common.arrays import Floats
from expecta.common.threads import map_on_threads
from expecta.learn.regression.growth import Growth

PATIENCE = 3  # rounds without a better held-out loss
MIN_PROGRESS = 1e-3  # share by which it must fall to count as better
# the smallest circuit this close to the best is taken: so many standard errors, and this share
CLOSE_TO_BEST, CLOSE_SHARE = 1.0, 0.01
CLEARLY_BETTER = 2.0  # standard errors: by so many another penalty must be better at the end
PENALTY_STEP, MAX_STEPS = 3.0, 4  # factor between penalties that are tried later, and how many


class HeldOutLosses(NamedTuple):
    """The loss of every held-out row, and how much the row counts."""

    losses: Floats
    weight: Floats

    @classmethod
    def of(cls, parts: Iterable[HeldOutLosses]) -> HeldOutLosses:
        """Join the rows of several folds."""
        return cls(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    @property
    def mean(self) -> float:
        """The mean loss."""
        return float(np.average(self.losses, weights=self.weight))

    def excess(self, other: HeldOutLosses) -> float:
        """How much larger the mean is than other losses of these rows, in standard errors."""
        share = self.weight / self.weight.sum()
        gap = self.losses - other.losses
        mean = float(share @ gap)
        return mean / max(float(np.linalg.norm(share * (gap - mean))), 1e-300)


def climb(refit: Callable[[float], list[Trial]], penalty: float) -> tuple[float, list[Trial]]:
    """Go from a penalty to smaller ones, or else larger, while the loss falls beyond noise."""
    best = refit(penalty)
    for factor in (1 / PENALTY_STEP, PENALTY_STEP):
        start = penalty
        for _ in range(MAX_STEPS):
            now = refit(penalty * factor)
            if held_out_of(best).excess(held_out_of(now)) <= CLEARLY_BETTER:
                break
            penalty, best = penalty * factor, now
        if penalty != start:
            break
    return penalty, best


class Trial:
    """A growth without some rows, and their mean loss after each number of splits."""

    def __init__(self, growth: Growth, weight: Floats) -> None:
        self.growth, self._weight = growth, weight
        self._waited = 0  # rounds since the best loss
        self.losses: dict[int, float] = {}
        self._of_rows: dict[int, HeldOutLosses] = {}
        self._score()

    def run(self, max_splits: int) -> None:
        """Grow until the loss has not fallen for some rounds."""
        growth = self.growth
        while self._waited < PATIENCE and growth.n_splits < max_splits:
            if not growth.step(max_splits - growth.n_splits):
                self._waited = PATIENCE
                return
            self._score()

    def _score(self) -> None:
        held_out = _held_out(self.growth, self._weight)
        now = held_out.mean
        best = min(self.losses.values(), default=np.inf)
        self._waited = 0 if now < best * (1 - MIN_PROGRESS) else self._waited + 1
        self.losses[self.growth.n_splits] = now
        self._of_rows[self.growth.n_splits] = held_out

    def reached(self, size: int) -> int:
        """Return how many splits there were when so many were allowed, or at the start."""
        return max((s for s in self.losses if s <= size), default=min(self.losses))

    def held_out(self, size: int) -> HeldOutLosses:
        """Return the held-out rows' losses when so many splits were allowed."""
        return self._of_rows[self.reached(size)]


def _held_out(growth: Growth, weight: Floats) -> HeldOutLosses:
    """Return the losses of the rows that a growth was not fitted to."""
    rows = (growth.weight == 0) & (weight > 0)
    losses = growth.loss.value(growth.table.y[rows], growth.g[rows]).sum(axis=1)
    return HeldOutLosses(losses, weight[rows])


def mean_losses(trials: list[Trial], max_splits: int) -> dict[int, float]:
    """Run trials; return the mean loss after each number of splits.

    A trial that stopped counts as it was when it stopped.
    """
    map_on_threads(lambda trial: trial.run(max_splits), trials)
    sizes = sorted({size for trial in trials for size in trial.losses})
    losses = [[trial.losses[trial.reached(size)] for size in sizes] for trial in trials]
    return dict(zip(sizes, np.mean(losses, axis=0).tolist(), strict=True))


def held_out_of(trials: list[Trial], size: int | None = None) -> HeldOutLosses:
    """Return the losses of all trials' held-out rows, now or when so many splits were allowed."""
    return HeldOutLosses.of(t.held_out(t.growth.n_splits if size is None else size) for t in trials)


def smallest(trials: list[Trial], least: int) -> int:
    """Return the smallest number of splits whose loss differs from the best by noise at most.

    Of few rows the noise is large: there it is a hundredth of the loss at most.
    """
    sizes = sorted({max(size, least) for trial in trials for size in trial.losses})
    of_size = {size: held_out_of(trials, size) for size in sizes}
    best = min(of_size.values(), key=lambda held_out: held_out.mean)
    limit = (1 + CLOSE_SHARE) * best.mean
    return next(
        size
        for size, now in of_size.items()
        if now.mean <= limit and now.excess(best) <= CLOSE_TO_BEST
    )
