"""What a table of one variable may be: a number per category, or a smooth curve over bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from expecta.common.arrays import Floats, Ints

__all__ = ["Curve"]

KNOTS = 12  # of a curve: it is straight between them
GROUPS = 16  # of values, at most, that splits are sought between
BY_RANK = 0.5  # knots are this far apart by rank, the rest by value: outliers stretch less


@dataclass(frozen=True, eq=False)
class Curve:
    """The tables that a variable can have: ``basis @ parameters``.

    Attributes
    ----------
    basis
        What each parameter adds to each value.  # (values, parameters)
    penalty
        Quadratic form of what is not wanted of the parameters: bends of a curve between
        neighbouring bins, size of a category's number.  # (parameters, parameters)
    groups
        Group of each value; splits part groups.  # (values,)
    ordered
        Whether groups are in order, so that a threshold parts them.
    """

    basis: Floats
    penalty: Floats
    groups: Ints
    ordered: bool

    @classmethod
    def of(cls, counts: Floats, positions: Floats | None = None, *, knots: int = KNOTS) -> Curve:
        """Make the curve of a variable from its values' weights and, if ordered, positions.

        >>> Curve.of(np.ones(5), np.arange(5.0), knots=3).basis.tolist()[1]
        [0.5, 0.5, 0.0]
        """
        n = len(counts)
        if n <= 2:  # one number says it all: what the second value adds to the first
            return cls(np.eye(n)[:, 1:], np.zeros((n - 1, n - 1)), np.arange(n), True)
        if positions is None:
            return cls(np.eye(n), np.eye(n), _frequent(counts), False)
        return cls(*_hats(counts, positions, knots), _quantiles(counts), True)

    @property
    def size(self) -> int:
        """How many parameters a table has."""
        return len(self.penalty)

    @property
    def n_groups(self) -> int:
        """How many groups the values fall in."""
        most: int = np.max(self.groups, initial=0).item()
        return most + 1


def _hats(counts: Floats, positions: Floats, knots: int) -> tuple[Floats, Floats]:
    """Straight pieces between knots at quantiles, and the sum of their squared bends."""
    rank = (np.cumsum(counts) - 0.5 * counts) / max(counts.sum(), 1e-300)
    if len(positions) <= knots:
        at = positions
    else:
        inner = np.interp(np.linspace(0, 1, knots)[1:-1], rank, positions)
        at = np.unique(np.concatenate([positions[:1], inner, positions[-1:]]))
    basis = np.stack([np.interp(positions, at, one) for one in np.eye(len(at))], axis=1)
    by_value = (at - at[0]) / (at[-1] - at[0])
    by_rank = np.linspace(0, 1, len(at))
    gap = np.diff(BY_RANK * by_rank + (1 - BY_RANK) * by_value)
    bends = np.zeros((max(len(at) - 2, 0), len(at)))
    for k, row in enumerate(bends):
        near, far = gap[k], gap[k + 1]
        row[k : k + 3] = np.array([1 / near, -1 / near - 1 / far, 1 / far]) * min(near, far)
    return basis, bends.T @ bends


def _quantiles(counts: Floats) -> Ints:
    """Group neighbouring values into at most so many groups of about equal weight."""
    n = len(counts)
    if n <= GROUPS:
        return np.arange(n)
    rank = (np.cumsum(counts) - 0.5 * counts) / max(counts.sum(), 1e-300)
    coarse = np.minimum((rank * GROUPS).astype(np.int64), GROUPS - 1)
    found: Ints = np.unique(coarse, return_inverse=True)[1]
    return found


def _frequent(counts: Floats) -> Ints:
    """Give the most frequent categories a group each, and all others the last."""
    n = len(counts)
    if n <= GROUPS:
        return np.arange(n)
    groups = np.full(n, GROUPS - 1)
    groups[np.argsort(-counts, kind="stable")[: GROUPS - 1]] = np.arange(GROUPS - 1)
    return groups
