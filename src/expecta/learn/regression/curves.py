"""Define what a variable's table may be: a number per category, or a smooth curve over bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from expecta.common.arrays import Floats, Ints

MAX_KNOTS = 12  # of a curve: it is straight between them
MAX_GROUPS = 16  # of values, that splits are sought between
RANK_SHARE = 0.5  # knots are this far apart by rank, the rest by value: outliers stretch less


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
    def of(
        cls, counts: Floats, positions: Floats | None = None, *, knots: int = MAX_KNOTS
    ) -> Curve:
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

    @classmethod
    def none(cls, n: int) -> Curve:
        """Return the curve of a variable of n values that has no table and is not split on."""
        return cls(np.zeros((n, 0)), np.zeros((0, 0)), np.zeros(n, np.int64), True)

    @property
    def size(self) -> int:
        """How many parameters a table has."""
        return len(self.penalty)

    @property
    def n_groups(self) -> int:
        """How many groups the values fall in."""
        return 1 + int(np.max(self.groups, initial=0))


def _hats(counts: Floats, positions: Floats, knots: int) -> tuple[Floats, Floats]:
    """Straight pieces between knots at quantiles, and the sum of their squared bends."""
    rank = (np.cumsum(counts) - 0.5 * counts) / max(counts.sum(), 1e-300)
    if len(positions) <= knots:
        at = positions
    else:
        inner = np.interp(np.linspace(0, 1, knots)[1:-1], rank, positions)
        at = np.unique(np.concatenate([positions[:1], inner, positions[-1:]]))
    basis = np.stack([np.interp(positions, at, hat) for hat in np.eye(len(at))], axis=1)
    by_value = (at - at[0]) / (at[-1] - at[0])
    by_rank = np.linspace(0, 1, len(at))
    gap = np.diff(RANK_SHARE * by_rank + (1 - RANK_SHARE) * by_value)
    bends = np.zeros((max(len(at) - 2, 0), len(at)))
    for k, row in enumerate(bends):
        a, b = gap[k], gap[k + 1]
        row[k : k + 3] = np.array([1 / a, -1 / a - 1 / b, 1 / b]) * min(a, b)
    return basis, bends.T @ bends


def _quantiles(counts: Floats) -> Ints:
    """Group neighbouring values into groups of about equal weight."""
    n = len(counts)
    if n <= MAX_GROUPS:
        return np.arange(n)
    rank = (np.cumsum(counts) - 0.5 * counts) / max(counts.sum(), 1e-300)
    coarse = np.minimum((rank * MAX_GROUPS).astype(np.int64), MAX_GROUPS - 1)
    return np.asarray(np.unique(coarse, return_inverse=True)[1])


def _frequent(counts: Floats) -> Ints:
    """Give the most frequent categories a group each, and all others the last."""
    n = len(counts)
    if n <= MAX_GROUPS:
        return np.arange(n)
    groups = np.full(n, MAX_GROUPS - 1)
    groups[np.argsort(-counts, kind="stable")[: MAX_GROUPS - 1]] = np.arange(MAX_GROUPS - 1)
    return groups
