"""How good predictions are, and how ranks and their doubt are told."""

from __future__ import annotations

import warnings

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
    """Log-loss (probabilities at least 1e-6), Brier score, accuracy and AUC, y from 0."""
    if not np.all(np.isfinite(p)):
        raise ValueError("a probability is not finite")
    p = p / p.sum(axis=1, keepdims=True)
    true = np.eye(p.shape[1])[y]
    found = {
        "log-loss": float(np.mean(losses(p, y))),
        "Brier": float(np.mean(np.sum((p - true) ** 2, axis=1))),
        "accuracy": float(np.mean(p.argmax(axis=1) == y)),
    }
    if len(np.unique(y)) == p.shape[1]:
        found["AUC"] = float(
            roc_auc_score(y, p[:, 1]) if p.shape[1] == 2 else roc_auc_score(y, p, multi_class="ovr")
        )
    return found


def crps(quantiles: np.ndarray, y: np.ndarray) -> float:
    """Continuous ranked probability score from quantiles at LEVELS: twice the pinball loss."""
    gap = y[:, None] - quantiles
    return float(2 * np.mean(np.maximum(LEVELS * gap, (LEVELS - 1) * gap)))


def intervals(quantiles: np.ndarray, y: np.ndarray, missing: np.ndarray) -> dict[str, float]:
    """CRPS; and coverage and width of 90% intervals, for every number of holes."""
    low, high = quantiles[:, 0], quantiles[:, -1]
    inside = (low <= y) & (y <= high)
    found = {
        "CRPS": crps(quantiles, y),
        "coverage": float(inside.mean()),
        "width": float(np.mean(high - low)),
    }
    for k in np.unique(missing):
        rows = missing == k
        found |= {f"coverage@{k}": float(inside[rows].mean()), f"rows@{k}": int(rows.sum())}
        found[f"width@{k}"] = float(np.mean((high - low)[rows]))
    return found


def bootstrap(ranks: pd.DataFrame, draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Mean over the rows (data sets) of each column, with a 95% interval.

    The intervals are percentiles of a bootstrap over the rows.
    """
    values = ranks.to_numpy()
    picked = np.random.default_rng(seed).integers(0, len(values), (draws, len(values)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a draw may lack all figures of a column
        low, high = np.nanpercentile(np.nanmean(values[picked], axis=1), [2.5, 97.5], axis=0)
    found = pd.DataFrame({"rank": ranks.mean(), "low": low, "high": high})
    found["95%"] = [f"{a:.1f} to {b:.1f}" for a, b in zip(low, high, strict=True)]
    return found
