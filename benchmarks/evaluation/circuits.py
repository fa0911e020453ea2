"""Learn pairs of circuits on bits, and predict with hidden bits in the ways of the paper."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from expecta import PSDD, LatentTree, Pair, RegressionCircuit, Vtree
from expecta.circuits import independent
from expecta.learn.regression import Curve, GrownCircuit, grow

from .data import AbsentError
from .holes import hide_bits
from .metrics import rmse

SEEDS = (0, 1, 2)  # of random vtrees to choose from
DRAWS = 100  # of Monte Carlo, for a row

# -- regression -----------------------------------------------------------------------


def densities(n_bits: int) -> dict[str, PSDD]:
    """Distributions to choose from: what differs is the vtree."""
    found = {"Chow-Liu": PSDD(), "bottom-up": PSDD(start="independent")}
    trees = {f"random {seed}": Vtree.random(n_bits, seed=seed) for seed in SEEDS}
    return found | {key: PSDD(start="independent", vtree=tree) for key, tree in trees.items()}


def regression(data: SimpleNamespace, vtree: Vtree) -> tuple[RegressionCircuit, str]:
    """Learn g from the training rows; penalty and splits are those best on the validation rows."""
    (x, y), (x_valid, y_valid) = data.train, data.valid
    middle, unit = y.mean(), y.std()
    with threadpool_limits(1):
        grown = grow(
            np.concatenate([x, x_valid]).astype(np.int32),
            (np.concatenate([y, y_valid])[:, None] - middle) / unit,
            vtree=vtree,
            curves=[Curve.of(np.bincount(bit, minlength=2).astype(np.float64)) for bit in x.T],
            fold=np.repeat([-1, 0], [len(y), len(y_valid)]),
            keep_folds=True,
        )
    g = grown.folds[0]  # has not seen the validation rows
    how = f"penalty {grown.penalty:g}, {grown.n_splits} splits"
    return RegressionCircuit(g.structure, g.weight * unit, g.bias * unit + middle), how


def candidates(data: SimpleNamespace, only: list[str] | None = None):
    """Learn a pair on each vtree; yields what it is and its mean RMSE on validation rows."""
    x, y = data.valid
    for label, density in densities(x.shape[1]).items():
        if only and label not in only:
            continue
        began = time.perf_counter()
        p = density.fit(data.train[0], x).circuit
        learned = time.perf_counter()
        g, how = regression(data, p.vtree)
        pair, end = Pair(p, g), time.perf_counter()
        masked = (hide_bits(x, bits, percent) for percent, bits in data.bits.items())
        errors = [rmse(pair.expectation(rows), y) for rows in masked]
        yield SimpleNamespace(
            pair=pair,
            how=f"{label} vtree, {how}",
            seconds=(learned - began, end - learned),
            error=float(np.mean(errors)),
        )


def best_pair(data: SimpleNamespace, folder: Path, only: list[str] | None = None) -> Pair:
    """The candidate of least error on validation rows, kept in a folder once it is learned."""
    file = folder / f"{data.name}.expecta"
    if not file.exists():
        best = min(candidates(data, only), key=lambda one: one.error)
        best.pair.save(file)
        (folder / f"{data.name}.txt").write_text(best.how, "utf-8")
    return Pair.load(file)


# -- the ways -------------------------------------------------------------------------


def ways(pair: Pair, x: np.ndarray) -> dict:
    """The paper's methods to predict rows with hidden bits; mean and median are the test set's."""
    p, g, mean, median = pair.p, pair.g, x.mean(axis=0), np.median(x, axis=0).astype(np.int8)
    # a circuit at a fraction of a bit is its expectation with bits independent
    apart = Pair(independent(g.vtree, np.stack([1 - mean, mean], axis=1)), g)
    return {
        "expected": pair.expectation,
        "mean": apart.expectation,
        "median": lambda rows: g(np.where(rows < 0, median, rows)),
        "mpe": lambda rows: g(p.mpe(rows).x),
    }


def monte_carlo(pair: Pair, rows: np.ndarray, seed: int, draws: int = DRAWS) -> np.ndarray:
    """Mean of g over independent draws given what is known."""
    drawn = pair.p.sample(draws, given=rows, seed=seed)
    return pair.g(drawn.reshape(-1, rows.shape[1])).reshape(len(rows), draws).mean(axis=1)


def chained_equations():
    """statsmodels' table for chained equations."""
    try:
        from statsmodels.imputation.mice import MICEData
    except ImportError:
        raise AbsentError("no statsmodels, so no MICE") from None
    return MICEData


def mice(rows: np.ndarray, seed: int) -> np.ndarray:
    """One pass of statsmodels' chained equations over these rows, bits hidden as -1.

    A column of which no row knows a value cannot be imputed there.
    """
    if np.any(np.all(rows < 0, axis=0)):
        raise AbsentError("MICE needs a known value in every column")
    table = np.where(rows < 0, np.nan, rows).astype(float)
    frame = pd.DataFrame(table, columns=[f"x{k}" for k in range(rows.shape[1])])
    np.random.seed(seed)  # noqa: NPY002  (statsmodels draws from the global state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = chained_equations()(frame)
        data.update_all(1)
    return data.data[frame.columns].to_numpy().round().astype(np.int8)


def check(pair: Pair, x: np.ndarray) -> None:
    """Compare expectations with sums over all completions, and with means of draws."""
    p, g, n = pair.p, pair.g, x.shape[1]
    rng = np.random.default_rng(0)
    for row in x[:5].copy():
        bits = rng.choice(n, 10, replace=False)
        row[bits] = -1
        every = np.repeat(row[None], 2**10, axis=0)
        every[:, bits] = np.arange(2**10)[:, None] >> np.arange(10) & 1
        share = np.exp(p.log_prob(every) - p.log_prob(row[None]))
        assert np.isclose(share.sum(), 1.0)
        assert np.isclose(pair.expectation(row[None])[0], share @ g(every), rtol=1e-9)
    rows = hide_bits(x[:20], n // 2, 0)
    drawn = g(p.sample(2000, given=rows, seed=0).reshape(-1, n)).reshape(20, 2000)
    error = drawn.std(axis=1) / 2000**0.5 + 1e-9 * np.abs(drawn).max()
    assert np.all(np.abs(drawn.mean(axis=1) - pair.expectation(rows)) < 5 * error)


# -- images ---------------------------------------------------------------------------

SIDE = 28
PENALTIES = (1.0, 3.0, 10.0)  # to choose from; the choice moves on by factors of three
TRIAL_SPLITS = 64  # with which copies and penalties are compared
MAX_SPLITS = 1000  # of a circuit of images


def shifted(images: np.ndarray, seed: int = 0) -> np.ndarray:
    """Move each image by one pixel, up, down, left or right."""
    framed = np.pad(images.reshape(-1, SIDE, SIDE), ((0, 0), (1, 1), (1, 1)))
    moves = np.random.default_rng(seed).integers(0, 4, len(images))
    out = np.empty_like(images)
    for move, (down, right) in enumerate([(0, 1), (2, 1), (1, 0), (1, 2)]):
        these = moves == move
        moved = framed[these, down : down + SIDE, right : right + SIDE]
        out[these] = moved.reshape(-1, SIDE * SIDE)
    return out


def image_pair(
    train: tuple[np.ndarray, np.ndarray],
    valid: tuple[np.ndarray, np.ndarray],
    *,
    states: int,
    max_splits: int,
) -> tuple[Pair, list[dict[str, float]]]:
    """Learn from images; the recipe is the one of least loss on validation images.

    It is whether a shifted copy of each training image is learned from too and the penalty, both
    compared at few splits, and the number of splits. With the recipe, parameters are fitted to
    training and validation images, and their copies. Also returns what was tried.
    """
    X, y = (np.concatenate(part) for part in zip(train, valid, strict=True))
    density = LatentTree(states=states, tree="balanced", random_state=0).fit(X)
    vtree, tried = density.circuit.vtree, []

    def learn(copies: bool, n_splits: int, penalties: Sequence[float]) -> GrownCircuit:
        images = np.concatenate([train[0], shifted(train[0])]) if copies else train[0]
        labels = np.concatenate([train[1]] * (1 + copies))
        fold = np.repeat([-1, 0], [len(labels), len(valid[1])])
        grown = grow_on_images(
            np.concatenate([images, valid[0]]),
            np.concatenate([labels, valid[1]]),
            vtree=vtree,
            fold=fold,
            max_splits=n_splits,
            penalties=penalties,
        )
        for penalty, losses in grown.tried.items():
            for splits, loss in losses.items():
                line = {"copies": copies, "penalty": penalty, "splits": splits, "loss": loss}
                tried.append(line | {"at most": n_splits})
        return grown

    few = min(TRIAL_SPLITS, max_splits)
    plain, copied = (learn(copies, few, PENALTIES) for copies in (False, True))
    copies = copied.held_out < plain.held_out
    grown = learn(copies, max_splits, [(copied if copies else plain).penalty])
    rows = (np.concatenate([X, shifted(X)]), np.concatenate([y, y])) if copies else (X, y)
    g = grow_on_images(*rows, vtree=vtree, like=grown, penalties=[grown.penalty]).circuit
    chosen = {"copies": copies, "penalty": grown.penalty, "splits": grown.n_splits}
    return Pair(density.circuit, g), [chosen | {"loss": grown.held_out}, *tried]


def grow_on_images(images: np.ndarray, labels: np.ndarray, **options) -> GrownCircuit:
    """Learn a logistic circuit of ten classes, one against the rest."""
    counts = [np.bincount(pixel, minlength=2).astype(np.float64) for pixel in images.T]
    with threadpool_limits(1):
        return grow(
            images.astype(np.int32),
            np.eye(10)[labels],
            loss="logistic",
            curves=[Curve.of(count) for count in counts],
            exact=False,
            **options,
        )


def check_images(pair: Pair, rows: np.ndarray) -> None:
    """Compare a few expectations with enumeration: 10 pixels hidden."""
    rng = np.random.default_rng(1)
    for row in rows[:2]:
        hidden = rng.choice(784, 10, replace=False)
        every = np.repeat(row[None], 1024, axis=0).astype(np.int32)
        every[:, hidden] = (np.arange(1024)[:, None] >> np.arange(10)) & 1
        log_p = pair.p.log_prob(every)
        weight = np.exp(log_p - log_p.max())
        sigma = 1 / (1 + np.exp(-pair.g(every)))
        obvious = weight @ sigma / weight.sum()
        masked = row.astype(np.int32)[None].copy()
        masked[0, hidden] = -1
        found = pair.expected(masked, "logistic", tol=1e-9).value[0]
        assert np.allclose(found, obvious, rtol=0, atol=3e-9), np.abs(found - obvious).max()
