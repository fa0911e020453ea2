"""Choose by held-out rows how far to grow and how much to shrink; then grow on all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from expecta.circuits.regression import RegressionCircuit
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Floats, Ints
from expecta.common.threads import map_on_threads
from expecta.learn.regression.curves import Curve
from expecta.learn.regression.growth import Growth, Splits
from expecta.learn.regression.held_out_trials import (
    Trial,
    climb,
    held_out_of,
    mean_losses,
    smallest,
)
from expecta.learn.regression.losses import LOSSES
from expecta.learn.regression.row_features import FeatureTable
from expecta.learn.regression.screening import ScreenedFeatures
from expecta.learn.regression.smoothness import Smoothing, choose_smoothing, is_small
from expecta.learn.regression.splits import GrowthOptions

TRIAL_SPLITS = 8  # by which penalties are compared
MAX_PHASES = 4  # penalties that one circuit grows at, one after the other


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
    the fold has not fallen for a few rounds. The penalty of least mean held-out loss, and the
    smallest number of splits that differs from the best by noise at most, are then used on all
    rows. How smooth the tables are that all rows share is chosen by these rows, column by
    column. Of over a thousand variables only the strongest have
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
        Multiples of the default penalty of contexts to choose from. With several, the penalty moves
        on from there once the splits are made, as long as the held-out loss clearly falls, and
        splits go on at the new one.
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
    trials: dict[float, list[Trial]] = {}
    tried: dict[float, dict[int, float]] = {}
    penalty, n_splits = penalties[0], max_splits
    if like is not None:
        features.n_kept = like.n_kept
        penalty, n_splits, tried = like.penalty, like.n_splits, like.tried

    smoothings: dict[bytes, Smoothing | None] = {}

    def begin(rows: Floats, penalty: float) -> Growth:
        """Start a growth on rows of such weights; how smooth its tables are, only these decide."""
        table, key = features.table(rows), rows.tobytes()
        if key not in smoothings:
            few = features.n_kept is None and is_small(table.curves, y.shape[1])
            smoothings[key] = choose_smoothing(table, rows, chosen_loss) if few else None
        return Growth(table, rows, chosen_loss, penalty, options, smoothings[key])

    if like is None and numbers:

        def start(penalty: float) -> list[Trial]:
            def begun(part: Floats) -> Trial:
                growth = begin(part, penalty)
                growth.fit()
                return Trial(growth, weight)

            return map_on_threads(begun, parts)

        features.choose(lambda: mean_losses(start(penalties[len(penalties) // 2]), 0)[0])
        if features.n_kept is not None and len(codes) < codes.shape[1]:
            max_splits = 0  # no split can be told from noise
        for penalty in penalties:
            trials[penalty] = start(penalty)
            tried[penalty] = mean_losses(trials[penalty], min(TRIAL_SPLITS, max_splits))
            report(f"penalty {penalty:g}: held out {min(tried[penalty].values()):.4g}")
        penalty = min(penalties, key=lambda penalty: min(tried[penalty].values()))

    def refitted(
        rows: Floats,
        made: Splits,
        penalty: float,
        theta: Floats | None = None,
        *,
        exact: bool = exact,
    ) -> Growth:
        """Fit all parameters after splits that are known."""
        growth = begin(rows, penalty)
        growth.replay(made, n_splits)
        if theta is not None:
            growth.contexts.theta = theta
        growth.fit(last=True, exact=exact)
        return growth

    made: list[Splits] = []
    thetas: list[Floats | None] = [None] * len(parts)  # where fits without a fold begin
    phases: list[tuple[float, int]] = []  # penalties, and up to how many splits each was used

    def refit(penalty: float) -> list[Trial]:
        def of_fold(number: int) -> Trial:
            before = thetas[number]
            growth = refitted(parts[number], made[number], penalty, before, exact=False)
            return Trial(growth, weight)

        refits = map_on_threads(of_fold, range(len(parts)))
        thetas[:] = [trial.growth.contexts.theta for trial in refits]
        return refits

    growing = trials.get(penalty, [])
    while growing:
        tried[penalty] |= mean_losses(growing, max_splits)
        size = smallest(growing, n_splits if phases else 0)
        if phases and size == n_splits:
            break
        n_splits = size
        made, thetas[:] = [trial.growth.made for trial in growing], [None] * len(parts)
        phases.append((penalty, n_splits))
        if not n_splits or len(penalties) == 1:
            break
        before, (penalty, growing) = penalty, climb(refit, penalty)
        tried.setdefault(penalty, {})[n_splits] = held_out_of(growing).mean
        if penalty == before or len(phases) == MAX_PHASES:
            break

    def again(rows: Floats, made: Splits | None) -> Growth:
        theta = thetas[0] if len(thetas) == 1 else None
        if like is not None and like.n_kept is None:
            theta = like.theta
        growth, phase = None, penalty
        if made is None:
            made, theta = [], None
            for phase, size in phases or [(penalty, n_splits)]:
                growth = begin(rows, phase)
                growth.replay(made, size)
                if theta is not None:
                    growth.contexts.theta = theta
                growth.fit()
                while growth.n_splits < size and growth.step(size - growth.n_splits):
                    report(f"{growth.n_splits} of {size} splits")
                made, theta = growth.made, growth.contexts.theta
        report(f"all parameters of {n_splits} splits")
        if growth is None or phase != penalty:
            return refitted(rows, made, penalty, theta)
        growth.fit(last=True, exact=exact)
        return growth

    # the structure found without a single fold will do; of several none is that of all rows
    splits = like.splits if like is not None else made[0] if len(made) == 1 else None

    def last_fit(number: int | None) -> Growth:
        """Fit without a fold, or on all rows."""
        if number is None:
            return again(weight, splits)
        return refitted(parts[number], made[number], penalty, thetas[number])

    final, *others = map_on_threads(last_fit, [None, *(range(len(parts)) if keep_folds else ())])
    return GrownCircuit(
        circuit=final.circuit(link),
        penalty=penalty,
        n_splits=n_splits,
        held_out=tried.get(penalty, {}).get(n_splits, float("nan")),
        additive=tried.get(phases[0][0], {}).get(0, float("nan")) if phases else float("nan"),
        tried=tried,
        folds=[growth.circuit(link) for growth in others],
        splits=final.made,
        theta=final.contexts.theta,
        n_kept=features.n_kept,
    )
