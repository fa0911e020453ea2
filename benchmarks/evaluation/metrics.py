"""How good predictions are, and how ranks and their doubt are told."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

LEAST = 1e-6  # probability of a class that a loss is computed for
LEVELS = np.arange(0.05, 0.96, 0.05)  # of quantiles that the CRPS is computed from


def rmse(predicted: np.ndarray, y: np.ndarray) -> float:
    if not np.all(np.isfinite(predicted)):
        raise ValueError("a prediction is not finite")
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


def losses(told: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of each row: squared error, or minus the logarithm of the probability of its class."""
    if told.ndim == 1:
        return (told - y) ** 2
    own = told[np.arange(len(y)), y] / told.sum(axis=1)
    return -np.log(np.clip(own, LEAST, None))


def classification(p: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Log-loss (probabilities at least 1e-6), Brier score, accuracy, AUC, calibration; y from 0."""
    if not np.all(np.isfinite(p)):
        raise ValueError("a probability is not finite")
    p = p / p.sum(axis=1, keepdims=True)
    true = np.eye(p.shape[1])[y]
    found = {
        "log-loss": float(np.mean(losses(p, y))),
        "Brier": float(np.mean(np.sum((p - true) ** 2, axis=1))),
        "accuracy": float(np.mean(p.argmax(axis=1) == y)),
        "calibration error": calibration_error(p, y),
    }
    if len(np.unique(y)) == p.shape[1]:
        found["AUC"] = float(
            roc_auc_score(y, p[:, 1]) if p.shape[1] == 2 else roc_auc_score(y, p, multi_class="ovr")
        )
    return found


def calibration_error(p: np.ndarray, y: np.ndarray, bins: int = 10) -> float:
    """Mean gap between probability and share over ten bins of as many rows.

    Of two classes the probability is that of the second, of more that of the likeliest.
    """
    told, true = (p[:, 1], y == 1) if p.shape[1] == 2 else (p.max(axis=1), y == p.argmax(axis=1))
    parts = np.array_split(np.argsort(told, kind="stable"), bins)
    gaps = [len(rows) * abs(told[rows].mean() - true[rows].mean()) for rows in parts if len(rows)]
    return float(sum(gaps) / len(y))


def crps(quantiles: np.ndarray, y: np.ndarray) -> float:
    """Continuous ranked probability score from quantiles at LEVELS: twice the pinball loss."""
    gap = y[:, None] - quantiles
    return float(2 * np.mean(np.maximum(LEVELS * gap, (LEVELS - 1) * gap)))


def log_score(quantiles: np.ndarray, y: np.ndarray, edges: np.ndarray) -> float:
    """Minus the mean log-probability of the class of y between ``edges``.

    Distributions are read from their quantiles, linear between them; beyond the outermost, where
    5% lie, they fall exponentially, by half over the distance to the third.
    """
    below = np.empty((len(y), len(edges)))
    for row, told in enumerate(quantiles):
        inside = np.interp(edges, np.maximum.accumulate(told + 1e-12 * np.arange(19)), LEVELS)
        for end, sign, scale in ((0, -1, told[2] - told[0]), (-1, 1, told[-1] - told[-3])):
            out = sign * (edges - told[end]) / max(scale, 1e-12)
            tail = LEVELS[0] * 0.5 ** np.maximum(out, 0)
            inside = np.where(out > 0, tail if sign < 0 else 1 - tail, inside)
        below[row] = inside
    shares = np.diff(below, axis=1, prepend=0.0, append=1.0)
    own = shares[np.arange(len(y)), np.searchsorted(edges, y)]
    return float(-np.mean(np.log(np.maximum(own, 1e-4))))


def uncertainty(quantiles: np.ndarray, y: np.ndarray, edges: np.ndarray) -> dict[str, float]:
    """CRPS, log score, coverage of 90% intervals in all, by tail, and by decile of their width."""
    low, high = quantiles[:, 0], quantiles[:, -1]
    inside = (low <= y) & (y <= high)
    deciles = [inside[part].mean() for part in np.array_split(np.argsort(high - low), 10)]
    return {
        "CRPS": crps(quantiles, y),
        "log score": log_score(quantiles, y, edges),
        "coverage": float(inside.mean()),
        "below": float(np.mean(y < low)),
        "above": float(np.mean(y > high)),
        "least coverage of a decile": float(min(deciles)),
        "width": float(np.mean(high - low)),
    }


def bootstrap(
    values: pd.DataFrame, draws: int = 2000, seed: int = 0, statistic: Any = np.nanmean
) -> pd.DataFrame:
    """Mean, or median, over the rows (data sets) of each column, with a 95% interval.

    The intervals are percentiles of a bootstrap over the rows.
    """
    cells = values.to_numpy()
    picked = np.random.default_rng(seed).integers(0, len(cells), (draws, len(cells)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a draw may lack all figures of a column
        low, high = np.nanpercentile(statistic(cells[picked], axis=1), [2.5, 97.5], axis=0)
        middle = statistic(cells, axis=0)
    return pd.DataFrame({"middle": middle, "low": low, "high": high}, index=values.columns)


def median_share(logs: pd.DataFrame) -> pd.DataFrame:
    """Median over data sets of a ratio less one, from its logarithm, with a 95% interval.

    A median, as ratios of log-losses near zero are of any size.
    """
    return np.expm1(bootstrap(logs, statistic=np.nanmedian))
