"""Choose by held-out rows how far to grow and how much to shrink; then grow on all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from expecta.circuits.regression import RegressionCircuit
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Floats, Ints
from expecta.learn.regression.curves import Curve
from expecta.learn.regression.growth import Growth, Splits
from expecta.learn.regression.losses import LOSSES
from expecta.learn.regression.row_features import FeatureTable
from expecta.learn.regression.screening import ScreenedFeatures
from expecta.learn.regression.splits import GrowthOptions

PATIENCE = 3  # rounds without a better held-out loss
MIN_PROGRESS = 1e-3  # share by which it must fall to count as better
CLOSE_TO_BEST = 1e-2  # the smallest circuit within this share of the best loss is taken
TRIAL_SPLITS = 8  # by which penalties are compared


@dataclass(frozen=True, eq=False)
class GrownCircuit:
    """A learned circuit, and what was found on the way."""

    circuit: RegressionCircuit
    penalty: float
    n_splits: int
    held_out: float  # mean loss of held-out rows, at that penalty and size
    additive: float  # the same without a split
    tried: dict[float, dict[int, float]] = field(repr=False)  # penalty -> splits -> held-out loss
    folds: list[RegressionCircuit] = field(repr=False)  # circuits that did not see their fold
    splits: Splits = field(repr=False)
    theta: Floats = field(repr=False)  # parameters of all contexts, in order
    n_kept: int | None = None  # variables with tables, where they are not all


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
    options: GrowthOptions | None = None,
    keep_folds: bool = False,
    like: GrownCircuit | None = None,
    exact: bool = True,
    report: Callable[[str], None] = lambda what: None,
) -> GrownCircuit:
    """Learn a regression or logistic circuit over a vtree from complete rows.

    For every penalty and fold a circuit grows on the other folds' rows until the loss on
    the fold has not fallen for a few rounds. The penalty and number of splits of least mean
    held-out loss are then used on all rows. Of over a thousand variables only the strongest have
    tables; how many is chosen likewise.

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
    like
        A circuit from other rows of the same table: its penalty and splits are taken, and its
        parameters fitted from where they are. No folds then.
    exact
        Whether parameters are fitted to rounding, or within a drop of a ten-thousandth.
    report
        Told what goes on.
    """
    chosen_loss = LOSSES[loss]
    options = options or GrowthOptions.of(chosen_loss, codes.shape[1])
    weight = np.ones(len(codes)) if weight is None else weight
    whole = FeatureTable(codes, vtree, curves, y)
    features = ScreenedFeatures(whole, curves, chosen_loss, options.context.size)
    link = "logistic" if loss == "logistic" else "identity"
    numbers = [] if fold is None else [f for f in np.unique(fold).tolist() if f >= 0]
    parts = [np.where(fold == f, 0.0, weight) for f in numbers]
    trials: dict[float, list[_Trial]] = {}
    tried: dict[float, dict[int, float]] = {}
    penalty, n_splits = penalties[0], max_splits
    if like is not None:
        features.n_kept = like.n_kept
        penalty, n_splits, tried = like.penalty, like.n_splits, like.tried
    elif numbers:

        def start(penalty: float) -> list[_Trial]:
            made = (Growth(features.table(p), p, chosen_loss, penalty, options) for p in parts)
            return [_Trial(growth, weight) for growth in made]

        features.choose(lambda: _mean_losses(start(penalties[len(penalties) // 2]), 0)[0])
        if features.n_kept is not None and len(codes) < codes.shape[1]:
            max_splits = 0  # no split can be told from noise
        for penalty in penalties:
            trials[penalty] = start(penalty)
            tried[penalty] = _mean_losses(trials[penalty], min(TRIAL_SPLITS, max_splits))
            report(f"penalty {penalty:g}: held out {min(tried[penalty].values()):.4g}")
        penalty = min(penalties, key=lambda penalty: min(tried[penalty].values()))
        tried[penalty] = _mean_losses(trials[penalty], max_splits)
        best = min(tried[penalty].values())
        close = best * (1 + CLOSE_TO_BEST)
        n_splits = min(size for size, loss in tried[penalty].items() if loss <= close)

    def again(rows: Floats, made: Splits | None) -> Growth:
        growth = Growth(features.table(rows), rows, chosen_loss, penalty, options)
        if made is not None:
            growth.replay(made, n_splits)
        else:
            growth.fit()
            while growth.n_splits < n_splits and growth.step(n_splits - growth.n_splits):
                report(f"{growth.n_splits} of {n_splits} splits")
        if like is not None and like.n_kept is None:
            growth.contexts.theta = like.theta
        report(f"all parameters of {n_splits} splits")
        growth.fit(last=True, exact=exact)
        return growth

    made = [trial.growth.made for trial in trials[penalty]] if trials else []
    folds = []
    if keep_folds:
        folds = [again(*part).circuit(link) for part in zip(parts, made, strict=True)]
    losses = tried.get(penalty, {})
    # the structure found without a single fold will do; of several none is that of all rows
    splits = like.splits if like is not None else made[0] if len(made) == 1 else None
    final = again(weight, splits)
    return GrownCircuit(
        circuit=final.circuit(link),
        penalty=penalty,
        n_splits=n_splits,
        held_out=losses.get(n_splits, float("nan")),
        additive=losses.get(0, float("nan")),
        tried=tried,
        folds=folds,
        splits=final.made,
        theta=final.contexts.theta,
        n_kept=features.n_kept,
    )


class _Trial:
    """A growth without some rows, and their mean loss after each number of splits."""

    def __init__(self, growth: Growth, weight: Floats) -> None:
        self.growth, self._weight = growth, weight
        growth.fit()
        self._held_out = (growth.weight == 0) & (weight > 0)
        self._waited = 0  # rounds since the best loss
        self.losses: dict[int, float] = {}
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
        y, g = self.growth.table.y[self._held_out], self.growth.g[self._held_out]
        losses = self.growth.loss.value(y, g).sum(axis=1)
        now = float(np.average(losses, weights=self._weight[self._held_out]))
        best = min(self.losses.values(), default=np.inf)
        self._waited = 0 if now < best * (1 - MIN_PROGRESS) else self._waited + 1
        self.losses[self.growth.n_splits] = now


def _mean_losses(trials: list[_Trial], max_splits: int) -> dict[int, float]:
    """Run trials; return the mean loss after each number of splits.

    A trial that stopped counts as it was when it stopped.
    """
    for trial in trials:
        trial.run(max_splits)
    sizes = sorted({size for trial in trials for size in trial.losses})
    losses = [
        [trial.losses[max(s for s in trial.losses if s <= size)] for size in sizes]
        for trial in trials
    ]
    return dict(zip(sizes, np.mean(losses, axis=0).tolist(), strict=True))
