"""Holes: which bits of a row are hidden, or which cells of a table."""

from __future__ import annotations

import logging
import warnings

import numpy as np
import pandas as pd

from .data import AbsentError


def hide_bits(x: np.ndarray, count: int, *seed: int) -> np.ndarray:
    """Hide so many bits of every row, uniformly: the paper's protocol. Hidden is -1."""
    order = np.argsort(np.random.default_rng(seed).random(x.shape), axis=1)
    return np.where(order < count, -1, x).astype(np.int8)


def at_random(X: pd.DataFrame, rate: float, rng: np.random.Generator) -> np.ndarray:
    """Every cell with the same probability (MCAR)."""
    return rng.random(X.shape) < rate


def depending(
    X: pd.DataFrame, mechanism: str, share: float, seed: int, patterns: int
) -> np.ndarray:
    """Half of the columns of so many rows, chosen by what is seen (MAR) or hidden (MNAR).

    Which columns go together depends on the seed of patterns only: there are four ways.
    """
    try:
        from pyampute.ampute import MultivariateAmputation
    except ImportError:
        raise AbsentError("no pyampute, so holes at random only") from None
    rng = np.random.default_rng(seed)
    numbers = pd.DataFrame({name: pd.factorize(X[name], sort=True)[0] for name in X}).astype(float)
    numbers += 1e-6 * rng.normal(size=numbers.shape)  # it cannot standardise constants
    half = X.shape[1] // 2
    pick = np.random.default_rng(patterns)
    together = [
        {
            "incomplete_vars": sorted(pick.choice(X.shape[1], half, replace=False).tolist()),
            "mechanism": mechanism,
        }
        for _ in range(4)
    ]
    ampute = MultivariateAmputation(prop=share, patterns=together, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            return np.isnan(ampute.fit_transform(numbers.to_numpy()))
        finally:
            logging.disable(logging.NOTSET)


def masks(X: pd.DataFrame, holes: str, seed: int, patterns: int) -> np.ndarray:
    """Holes by name: "none", "MCAR 30%", "MAR 50%", "MNAR 90%"."""
    if holes == "none":
        return np.zeros(X.shape, bool)
    mechanism, percent = holes.removesuffix("%").split()
    if mechanism == "MCAR":
        return at_random(X, float(percent) / 100, np.random.default_rng(seed))
    return depending(X, mechanism, float(percent) / 100, seed, patterns)


def hide(X: pd.DataFrame, gone: np.ndarray) -> pd.DataFrame:
    """The table with these cells unknown: NaN among numbers, None among words."""
    return pd.DataFrame(
        {
            name: X[name].astype(float).mask(gone[:, k])
            if X[name].dtype.kind in "iuf"
            else np.where(gone[:, k], None, X[name].astype(object))
            for k, name in enumerate(X)
        }
    )


def patterns_for(gone: np.ndarray, rows: int, seed: int = 0) -> np.ndarray:
    """The same patterns of holes for other rows, drawn with replacement."""
    return gone[np.random.default_rng(seed).integers(0, len(gone), rows)]
