"""Define what a variable's table may be: a number per category, or a smooth curve over bins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from expecta.common.arrays import Bools, Floats, Ints

MAX_KNOTS = 12  # of a curve: it is straight between them
RICH_KNOTS = 24  # of one that all rows share
MAX_RICH = 64  # parameters of its table, those of atoms included
MIN_ATOM_ROWS = 5  # of a value that has a parameter of its own
MAX_GROUPS = 16  # of values, that splits are sought between
RANK_SHARE = 0.5  # knots are this far apart by rank, the rest by value: outliers stretch less


class PenaltyEntries(NamedTuple):
    """Entries of two quadratic forms of a table's parameters, row by row."""

    lengths: Ints  # entries of each row
    columns: Ints
    diagonal: Floats  # of the identity
    bends: Floats  # of the curve's penalty


@dataclass(frozen=True, eq=False)
class Curve:
    """The tables that a variable can have: ``basis @ parameters``, or ``rich @ parameters``.

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
    rich
        As ``basis``, of the table that all rows share: with more knots, and a parameter of its own
        for each atom, a single number that carries enough rows.
    forms
        As ``penalty``, of ``rich``: each will have a strength of its own.
    """

    basis: Floats
    penalty: Floats
    groups: Ints
    ordered: bool
    rich: Floats
    forms: tuple[Floats, ...]

    @classmethod
    def of(
        cls,
        counts: Floats,
        positions: Floats | None = None,
        *,
        knots: int = MAX_KNOTS,
        single: Bools | None = None,
        max_rich: int = MAX_RICH,
    ) -> Curve:
        """Make the curve of a variable from its values' weights and, if ordered, positions.

        There may be one value more than positions: it lies nowhere on the curve. ``single`` says
        which values stand for a single number, of at most ``max_rich`` parameters of ``rich``.

        >>> Curve.of(np.ones(5), np.arange(5.0), knots=3).basis.tolist()[1]
        [0.5, 0.5, 0.0]
        """
        n = len(counts)
        if n <= 2:  # one number says it all: what the second value adds to the first
            one, none = np.eye(n)[:, 1:], np.zeros((n - 1, n - 1))
            return cls(one, none, np.arange(n), True, one, ())
        if positions is None or len(positions) < 3:
            every = np.eye(n)
            return cls(every, every, _frequent(counts), False, every, (every,))
        m = len(positions)
        basis, penalty = _hats(counts[:m], positions, knots)
        extra = np.eye(n - m)
        groups = _quantiles(counts[:m])
        groups = np.append(groups, np.full(n - m, groups[-1] + 1))
        rich, bends = basis, penalty
        atoms: Ints = np.zeros(0, np.int64)
        if max_rich > knots and single is not None:
            rich, bends = _hats(counts[:m], positions, min(RICH_KNOTS, max_rich))
            atoms = _atoms(counts[:m], single, max_rich - rich.shape[1])
        own = np.eye(len(atoms))
        forms = [block_diag(bends, 0.0 * own, 0.0 * extra)]
        if len(atoms):
            forms.append(block_diag(0.0 * bends, own, 0.0 * extra))
        return cls(
            block_diag(basis, extra),
            block_diag(penalty, extra),
            groups,
            True,
            block_diag(np.hstack([rich, np.eye(m)[:, atoms]]), extra),
            tuple(forms),
        )

    @classmethod
    def none(cls, n: int) -> Curve:
        """Return the curve of a variable of n values that has no table and is not split on."""
        nothing = np.zeros((n, 0))
        return cls(nothing, np.zeros((0, 0)), np.zeros(n, np.int64), True, nothing, ())

    @property
    def size(self) -> int:
        """How many parameters a table has."""
        return len(self.penalty)

    @cached_property
    def n_groups(self) -> int:
        """How many groups the values fall in."""
        return 1 + int(np.max(self.groups, initial=0))

    @cached_property
    def entries(self) -> PenaltyEntries:
        """Where the identity and the penalty are not zero, and what they are there."""
        one = np.eye(self.size)
        row, column = np.nonzero((one != 0.0) | (self.penalty != 0.0))
        lengths = np.bincount(row, minlength=self.size).astype(np.int32)
        diagonal, bends = one[row, column], self.penalty[row, column]
        return PenaltyEntries(lengths, column.astype(np.int32), diagonal, bends)


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


def _atoms(counts: Floats, single: Bools, n: int) -> Ints:
    """Return the values that carry most rows, of those that stand for a single number."""
    able = np.flatnonzero(single & (counts >= MIN_ATOM_ROWS))
    heaviest = able[np.argsort(-counts[able], kind="stable")]
    return np.asarray(np.sort(heaviest[: max(n, 0)]))


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
