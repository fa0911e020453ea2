"""Turn one probability per class, each against the rest, into shares that sum to one."""

from __future__ import annotations

import numpy as np

from expecta.common.arrays import Floats


def class_shares(value: Floats, error: Floats) -> tuple[Floats, Floats]:
    """Divide probabilities by their sum; all classes are alike where none is likely.

    Parameters
    ----------
    value, error
        The probability of each class against the rest and a bound on its error; a single
        column is the probability of the second of two classes.  # (rows, classes)

    Returns
    -------
    Shares of the classes, and a bound on their error.  # (rows, classes) each
    """
    if value.shape[1] == 1:
        return np.concatenate([1.0 - value, value], axis=1), np.repeat(error, 2, axis=1)
    total = value.sum(axis=1, keepdims=True)
    even = np.where(np.isnan(value), np.nan, 1.0 / value.shape[1])
    share = np.divide(value, total, out=even, where=total > 0)
    # (v + e) / (t + s) - v / t with |s| <= Σ e
    slack = error.sum(axis=1, keepdims=True)
    unsure = np.where(np.isnan(error), np.nan, 1.0)
    bound = np.divide(error + share * slack, total - slack, out=unsure, where=total > slack)
    return share, np.minimum(bound, 1.0)


def loss_of_shares(share: Floats) -> float:
    """Return the log-loss, each class against the rest, of predicting the classes' own shares.

    Of two classes it is their entropy.  # share: (classes,)
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nan_to_num(share * np.log(share))
        entropy -= np.nan_to_num((1 - share) * np.log1p(-share))
    return float(entropy[1:].sum() if len(share) == 2 else entropy.sum())
