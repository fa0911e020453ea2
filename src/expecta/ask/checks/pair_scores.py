"""Measure how two columns depend on each other, in rows and under a density.

The table of a pair under the density is first given the rows' own shares of each column
(iterative proportional fitting, which keeps odds ratios), so that only dependence is compared.
Then every column has scores a(x) of mean 0 and variance 1 over the rows: numbers their normal
score, categories an indicator each (of two, the second's). The matrix C = E[a(x) b(y)ᵀ] says how
two columns depend on each other, and its size |C| / √min(ranks) is the correlation of normal
scores of two numbers, the correlation ratio of a number and a category, and Cramér's V of two
categories. The difference D of the two matrices has the covariance Σ / n, that of a(x) b(y)ᵀ less
what x and y say alone, and n Dᵀ Σ⁺ D is chi-squared where the density is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtri

from expecta.ask.checks.checked_rows import CheckedRows
from expecta.common.arrays import Floats, Ints
from expecta.tables import Encoder
from expecta.tables.column import Column
from expecta.tables.number_column import NumberColumn

MAX_NUMBER_GROUPS = 16  # of bins of a column, of about equal shares
MAX_VALUE_GROUPS = 8  # of categories: the most frequent, and the others together
MIN_VALUE_ROWS = 10.0  # of a category that is not one of the others
MIN_PAIR_ROWS = 20.0  # in which both columns are known
RAKING_STEPS = 100
SCREENED_ROWS = 1000  # by which the columns to compare are chosen
MIN_VARIANCE = 1e-9  # of scores, relative to one
RIDGE = 1e-10  # in equations that have many solutions


class ScoredColumn(NamedTuple):
    """A column for pairs: its values in groups, with scores of each."""

    group: Ints  # of each value
    score: Floats | None  # of each group, of numbers; NaN where "missing" is a value
    known: Ints  # group of each row, -1 where unknown

    @property
    def size(self) -> int:
        """How many groups there are."""
        return int(self.group.max(initial=-1)) + 1

    def onto(self) -> Floats:
        """Return which values are in which group.  # (values, groups)."""
        return (self.group[:, None] == np.arange(self.size)).astype(np.float64)

    @classmethod
    def of(cls, column: Column, codes: Ints, weight: Floats) -> ScoredColumn:
        """Group the values of a column by their shares in the rows."""
        counts = np.bincount(codes + 1, weight, column.cardinality + 1)[1:].astype(np.float64)
        plain, score = column.plain, None
        if isinstance(plain, NumberColumn):
            bins = plain.cardinality
            group = _equal_groups(counts[:bins], MAX_NUMBER_GROUPS)
            mass = np.bincount(group, counts[:bins])
            middle = (np.cumsum(mass) - mass / 2 + 1e-9) / (mass.sum() + 2e-9)
            score = np.append(ndtri(middle), [np.nan] * (column.cardinality - bins))
            group = np.append(group, group.max() + 1 + np.arange(column.cardinality - bins))
        else:
            group = _frequent_groups(counts)
        return cls(group, score, np.append(group, -1)[codes])

    def scores(self, share: Floats) -> tuple[Floats, int]:
        """Return orthogonal scores of groups with these shares, and their rank.  # (groups, k)."""
        used = share > 0
        if self.score is None and used.sum() == 2:
            first, second = np.flatnonzero(used)
            scores = np.zeros((len(share), 1))
            scores[first] = -np.sqrt(share[second] / share[first])
            scores[second] = np.sqrt(share[first] / share[second])
            return scores, 1
        if self.score is None:
            root = np.sqrt(share)
            hot = np.diag(1.0 / np.where(used, root, np.inf))
            return hot - np.where(used[:, None], root, 0.0), int(used.sum()) - 1
        missing = np.isnan(self.score)
        columns = [np.where(missing, 0.0, self.score), missing.astype(np.float64)]
        whitened: list[Floats] = []
        for values in columns if np.any(missing) else columns[:1]:
            values = values - share @ values
            for other in whitened:
                values = values - (share * other) @ values * other
            variance = float(share @ values**2)
            if variance > MIN_VARIANCE:
                whitened.append(values / np.sqrt(variance))
        return np.array(whitened).reshape(-1, len(share)).T, len(whitened)


def _equal_groups(counts: Floats, n_groups: int) -> Ints:
    """Join neighbouring bins to groups of about equal weight."""
    if len(counts) <= n_groups:
        return np.arange(len(counts))
    middle = (np.cumsum(counts) - counts / 2) / max(float(counts.sum()), 1e-300)
    group = np.minimum((middle * n_groups).astype(np.int64), n_groups - 1)
    return np.unique(group, return_inverse=True)[1].ravel()


def _frequent_groups(counts: Floats) -> Ints:
    """Let frequent values be groups, and all others one; that one is no rarer than they are."""
    order = np.argsort(-counts, kind="stable")
    frequent = order[counts[order] >= MIN_VALUE_ROWS]
    if len(frequent) > MAX_VALUE_GROUPS or len(frequent) < len(counts):
        frequent = frequent[: MAX_VALUE_GROUPS - 1]
    rest = np.setdiff1d(order, frequent)
    if len(rest) and counts[rest].sum() < MIN_VALUE_ROWS:
        frequent = frequent[:-1]
    group = np.full(len(counts), len(frequent))
    group[np.sort(frequent)] = np.arange(len(frequent))
    return group


class PairDifference(NamedTuple):
    """What one pair comes to."""

    rows: float
    density: float
    difference: float
    error: float
    p: float


NOT_COMPARED = PairDifference(*[np.nan] * 5)


def compare_tables(
    counts: Floats, joint: Floats, a: ScoredColumn, b: ScoredColumn, noise: float
) -> PairDifference:
    """Compare a pair's table of rows with that of a density, at the rows' own shares.

    Parameters
    ----------
    counts
        Rows of each combination of groups.  # (groups of a, groups of b)
    joint
        Its probability under the density.
    noise
        By how much the variance of the difference is larger than that of the rows.
    """
    n = float(counts.sum())
    if n < MIN_PAIR_ROWS:
        return NOT_COMPARED
    seen = counts / n
    expected = _rake(joint, seen)
    share_a, share_b = seen.sum(axis=1), seen.sum(axis=0)
    (score_a, rank_a), (score_b, rank_b) = a.scores(share_a), b.scores(share_b)
    rank = min(rank_a, rank_b)
    if rank < 1:
        return NOT_COMPARED
    in_rows, in_density = (score_a.T @ table @ score_b for table in (seen, expected))
    product = np.einsum("ik,jl->ijkl", score_a, score_b).reshape(*seen.shape, -1)
    covariance = _own_covariance(product, (seen + expected) / 2)
    gap = (in_rows - in_density).ravel()
    values, vectors = np.linalg.eigh(covariance) if gap.size > 1 else (covariance[0], np.eye(1))
    free = values > MIN_VARIANCE * max(1.0, float(values[-1]))
    chi_squared = n / noise * float(np.sum((vectors[:, free].T @ gap) ** 2 / values[free]))
    p = float(chdtrc(max(int(free.sum()), 1), chi_squared))
    chance = float(np.trace(covariance)) / n
    error = float(np.sqrt(chance / rank))
    if gap.size == 1:
        return PairDifference(float(in_rows[0, 0]), float(in_density[0, 0]), gap.item(), error, p)
    by_chance = rank_a * rank_b / n  # of |C|² where the columns are independent
    squares = np.sum(in_rows**2) - by_chance, np.sum(in_density**2), gap @ gap - chance
    in_both = np.sqrt(np.maximum(squares, 0.0) / rank).tolist()
    return PairDifference(in_both[0], in_both[1], in_both[2], error, p)


def _rake(joint: Floats, seen: Floats) -> Floats:
    """Scale rows and columns of a density's table until it has the shares that were seen."""
    share_a, share_b = seen.sum(axis=1), seen.sum(axis=0)
    table = joint + 1e-9 * np.outer(share_a, share_b)  # what is impossible is seen nevertheless
    for _ in range(RAKING_STEPS):
        down = table.sum(axis=1)
        table = table * (share_a / np.where(down > 0, down, 1.0))[:, None]
        across = table.sum(axis=0)
        if np.max(np.abs(across - share_b)) < 1e-10:
            break
        table = table * (share_b / np.where(across > 0, across, 1.0))
    return table


def _own_covariance(product: Floats, weight: Floats) -> Floats:
    """Covariance of functions of x and y, less their best sums of functions of x and of y."""
    across, down = weight.sum(axis=1), weight.sum(axis=0)
    normal = np.block([[np.diag(across), weight], [weight.T, np.diag(down)]])
    weighted = weight[:, :, None] * product
    sums = np.concatenate([weighted.sum(axis=1), weighted.sum(axis=0)])
    normal[np.diag_indices(len(normal))] += RIDGE  # a constant may be in either part
    parts = np.linalg.solve(normal, sums)
    rest = product - parts[: len(across), None] - parts[None, len(across) :]
    flat = rest.reshape(weight.size, -1)
    return np.asarray((flat * weight.reshape(-1, 1)).T @ flat)


def strongest_pairs(
    encoder: Encoder, rows: CheckedRows, variables: Sequence[int]
) -> list[tuple[int, int]]:
    """Return each column with the one that it depends on most in the rows, the strongest first.

    By the correlation of normal scores, and of the indicators of the two most frequent values of
    categories; unknown cells count as the mean. For many columns: a matrix product, of 1,000 rows
    at most.
    """
    rows = rows.sample(SCREENED_ROWS)
    scores, owner = [], []
    for v in variables:
        codes = rows.codes[:, v]
        column = ScoredColumn.of(encoder.columns_[v], codes, rows.weight)
        values = np.eye(column.size)[:, :2] if column.score is None else column.score[:, None]
        cells = np.where(column.known[:, None] < 0, np.nan, values[column.known])
        cells = cells - np.nanmean(cells, axis=0) if np.any(column.known >= 0) else cells
        cells = np.nan_to_num(cells)
        norm = np.sqrt(np.sum(cells**2, axis=0))
        scores += list((cells / np.where(norm > 0, norm, 1.0)).T)
        owner += [v] * cells.shape[1]
    table, of = np.array(scores, np.float32), np.array(owner)
    best, partner = np.zeros(len(of)), np.zeros(len(of), np.int64)
    for start in range(0, len(of), SCREENED_ROWS):
        block = slice(start, start + SCREENED_ROWS)
        size = np.abs(table[block] @ table.T)
        size[of[block, None] == of] = -1.0
        partner[block] = of[np.argmax(size, axis=1)]
        best[block] = np.max(size, axis=1)
    order = np.argsort(-best, kind="stable").tolist()
    return [(int(of[i]), int(partner[i])) for i in order]
