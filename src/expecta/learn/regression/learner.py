"""How far to grow and how much to shrink, by rows held out; then once more on all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from expecta.circuits.regression import RegressionCircuit
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Floats, Ints
from expecta.learn.regression.curves import Curve
from expecta.learn.regression.growth import Growth, Options
from expecta.learn.regression.losses import LOSSES
from expecta.learn.regression.table import Table

__all__ = ["Grown", "grow"]

PATIENCE = 3  # rounds without a better held-out loss
PROGRESS = 1e-3  # share by which it must fall to count as better
ENOUGH = 1e-2  # the smallest circuit within this share of the best loss is taken
FIRST = 8  # splits by which penalties are compared


@dataclass(frozen=True, eq=False)
class Grown:
    """A learned circuit, and what was found on the way."""

    circuit: RegressionCircuit
    penalty: float
    n_splits: int
    held_out: float  # mean loss of held-out rows, at that penalty and size
    additive: float  # the same without a split
    tried: dict[float, dict[int, float]] = field(repr=False)  # penalty -> splits -> held-out loss
    folds: list[RegressionCircuit] = field(repr=False)  # circuits that did not see their fold


def grow(
    codes: Ints,
    y: Floats,
    *,
    vtree: Vtree,
    curves: Sequence[Curve],
    loss: str = "squared",
    weight: Floats | None = None,
    fold: Ints | None = None,
    penalties: Sequence[float] = (1.0, 3.0, 10.0),
    max_splits: int = 64,
    options: Options | None = None,
    keep_folds: bool = False,
    report: Callable[[str], None] = lambda what: None,
) -> Grown:
    """Learn a regression or logistic circuit over a vtree from complete rows.

    For every penalty and fold a circuit grows on the other folds' rows until the loss on
    the fold has not fallen for a few rounds. The penalty and number of splits of least mean
    held-out loss are then used on all rows.

    Parameters
    ----------
    codes
        Values of the variables, all known.  # (rows, variables)
    y
        Targets, of about unit variance; 0 or 1 for the logistic loss.  # (rows, outputs)
    vtree, curves
        The tree, and for each variable what its tables may be.
    loss
        "squared" or "logistic" (every output on its own).
    weight
        How much each row counts.  # (rows,)
    fold
        Which fold each row is held out in, -1 for none; without it nothing is held out, and
        the first penalty and ``max_splits`` are used as they are.  # (rows,)
    penalties
        Multiples of the default penalty to choose from.
    max_splits
        At most so many splits.
    keep_folds
        Whether to return the folds' circuits at the size that was chosen.
    report
        Told what goes on.
    """
    chosen_loss = LOSSES[loss]
    options = options or Options.of(chosen_loss, codes.shape[1])
    weight = np.ones(len(codes)) if weight is None else weight
    table = Table(codes, vtree, curves, y)
    link = "logistic" if loss == "logistic" else "identity"
    numbers = [] if fold is None else [f for f in np.unique(fold).tolist() if f >= 0]
    parts = [np.where(fold == f, 0.0, weight) for f in numbers]
    trials: dict[float, list[_Trial]] = {}
    tried: dict[float, dict[int, float]] = {}
    penalty, n_splits = penalties[0], max_splits
    if numbers:
        for penalty in penalties:
            trials[penalty] = [
                _Trial(Growth(table, rows, chosen_loss, penalty, options), weight) for rows in parts
            ]
            tried[penalty] = _together(trials[penalty], min(FIRST, max_splits))
            report(f"penalty {penalty:g}: held out {min(tried[penalty].values()):.4g}")
        penalty = min(penalties, key=lambda one: min(tried[one].values()))
        tried[penalty] = _together(trials[penalty], max_splits)
        best = min(tried[penalty].values())
        n_splits = min(size for size, it in tried[penalty].items() if it <= best * (1 + ENOUGH))

    def again(rows: Floats, made: Growth | None) -> RegressionCircuit:
        growth = Growth(table, rows, chosen_loss, penalty, options)
        if made is not None:
            growth.replay(made.made, n_splits)
        else:
            growth.fit()
            while growth.n_splits < n_splits and growth.step(n_splits - growth.n_splits):
                report(f"{growth.n_splits} of {n_splits} splits")
        report(f"all parameters of {n_splits} splits")
        growth.fit(last=True)
        return growth.circuit(link)

    growths = [trial.growth for trial in trials[penalty]] if numbers else []
    folds = [again(*one) for one in zip(parts, growths, strict=True)] if keep_folds else []
    found = tried.get(penalty, {})
    return Grown(
        # the structure found without a single fold will do; of several none is that of all rows
        circuit=again(weight, growths[0] if len(growths) == 1 else None),
        penalty=penalty,
        n_splits=n_splits,
        held_out=found.get(n_splits, float("nan")),
        additive=found.get(0, float("nan")),
        tried=tried,
        folds=folds,
    )


class _Trial:
    """A growth without some rows, and their mean loss after each number of splits."""

    def __init__(self, growth: Growth, weight: Floats) -> None:
        self.growth, self._weight = growth, weight
        growth.fit()
        self._out = (growth.weight == 0) & (weight > 0)
        self._since = 0
        self.found: dict[int, float] = {}
        self._look()

    def run(self, max_splits: int) -> None:
        """Grow until the loss has not fallen for some rounds."""
        growth = self.growth
        while self._since < PATIENCE and growth.n_splits < max_splits:
            if not growth.step(max_splits - growth.n_splits):
                self._since = PATIENCE
                return
            self._look()

    def _look(self) -> None:
        y, g = self.growth.table.y[self._out], self.growth.g[self._out]
        losses = self.growth.loss.value(y, g).sum(axis=1)
        now = float(np.average(losses, weights=self._weight[self._out]))
        best = min(self.found.values(), default=np.inf)
        self._since = 0 if now < best * (1 - PROGRESS) else self._since + 1
        self.found[self.growth.n_splits] = now


def _together(trials: list[_Trial], max_splits: int) -> dict[int, float]:
    """Run trials; returns the mean loss after each number of splits.

    A trial that stopped counts as it was when it stopped.
    """
    for trial in trials:
        trial.run(max_splits)
    sizes = sorted({size for trial in trials for size in trial.found})
    losses = [
        [trial.found[max(s for s in trial.found if s <= size)] for size in sizes]
        for trial in trials
    ]
    return dict(zip(sizes, np.mean(losses, axis=0).tolist(), strict=True))
