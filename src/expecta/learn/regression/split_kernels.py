"""Compiled loops of the search for splits: scores of all cuts, and what each table promises."""

from __future__ import annotations

import math

import numpy as np

from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.kernels import U, helper, kernel, plain_helper


@kernel
def score_cuts(
    of_row: Ints,
    first: Ints,
    cumulative: Bools,
    rows: Ints,
    low: int,
    high: int,
    both: Floats,
    strengths: tuple[float, float, float],
    buffers: tuple[Floats, Floats, Floats, Floats],
    weight: Floats,
    scores: Floats,
) -> None:
    """Estimate what cuts of the variables ``low:high`` promise, as if features were orthogonal.

    Sums over pairs of features are made for one variable at a time, by a single pass over the rows.

    Parameters
    ----------
    of_row
        The feature of each variable that a row has, -1 for none.  # (rows, variables)
    first
        Feature that each variable begins with.  # (variables + 1,)
    cumulative
        Whether a cut has all groups up to one, or one alone.  # (variables,)
    both
        Slopes and, last, the weight.  # (rows, outputs + 1)
    strengths
        Curvature, pull to zero and dispersion.
    buffers
        Room: for the groups of a variable, for the rows inside a cut, for all, for squares.
        # (groups, outputs + 1, 1 + features), (outputs + 1, 1 + features) twice, (2, 1 + features)
    weight
        Set to the weight of the rows inside each cut, and last that of all.  # (cuts + 1,)
    scores
        Set to the drop of the loss that the constant and the table of each variable promise, less
        that of noise.  # (cuts, 1 + variables)
    """
    groups, inside, total, squares = buffers
    base, width, k = first[low], first[high] - first[low], both.shape[1] - 1
    total[:] = 0.0
    for row in rows:
        _add_row(of_row, row, low, high, base, both, total)
    weight[-1] = total[k, 0]
    cut = 0
    for v in range(low, high):
        n = first[v + 1] - first[v]
        for g in range(n):
            groups[g] = 0.0
        for row in rows if n else rows[:0]:
            feature = of_row[row, v]
            if feature >= 0:
                _add_row(of_row, row, low, high, base, both, groups[feature - first[v]])
        inside[:] = 0.0
        for g in range(n - 1 if cumulative[v] and n > 1 else n):
            for c in range(k + 1):
                for f in range(1 + width):
                    before = inside[c, f] if cumulative[v] else 0.0
                    inside[c, f] = before + groups[g, c, f]
            weight[cut] = inside[k, 0]
            _promises(inside, total, strengths, squares)
            scores[cut, 0] = squares[0, 0]
            for u in range(low, high):
                promised = 0.0
                for f in range(first[u] - base, first[u + 1] - base):
                    promised += squares[0, 1 + f]
                scores[cut, 1 + u - low] = promised
            cut += 1


@helper
def _add_row(
    of_row: Ints, row: int, low: int, high: int, base: int, both: Floats, out: Floats
) -> None:
    """Add a row's slopes and weight to its features', a constant first."""
    for c in range(both.shape[1]):
        amount = both[row, c]
        out[c, 0] += amount
        for u in range(low, high):
            feature = of_row[row, u]
            if feature >= 0:
                out[c, 1 + feature - base] += amount


@helper
def _promises(
    inside: Floats,
    total: Floats,
    strengths: tuple[float, float, float],
    squares: Floats,
) -> None:
    """Set the first row of ``squares`` to what each feature promises on both sides of a cut."""
    curvature, pull, dispersion = strengths
    k, width = inside.shape[0] - 1, inside.shape[1]
    squares[:] = 0.0
    for c in range(k):
        for f in range(width):
            squares[0, f] += inside[c, f] ** 2
            squares[1, f] += (total[c, f] - inside[c, f]) ** 2
    for f in range(width):
        own, other = inside[k, f], total[k, f] - inside[k, f]
        own = curvature * own if own > 0.0 else 0.0
        other = curvature * other if other > 0.0 else 0.0
        squares[0, f] = (squares[0, f] - dispersion * own) / (own + pull) + (
            squares[1, f] - dispersion * other
        ) / (other + pull)


@kernel
def rank_cuts(
    scores: Floats,
    weight: Floats,
    cuts: tuple[int, int],
    tables: tuple[int, int],
    least: float,
    best: Ints,
) -> int:
    """Set ``best`` to the cuts of largest score, the first of equal ones first; return how many.

    Parameters
    ----------
    scores, weight
        As `score_cuts` sets them; scores are finite.
    cuts, tables
        Ranges, without their ends, of the cuts, and of the tables whose promises count.
    least
        Weight that there must be on either side.
    """
    n, total = 0, weight[-1]
    value = np.empty(len(best))
    for cut in range(cuts[0], cuts[1]):
        if not min(weight[cut], total - weight[cut]) >= least:
            continue
        score = scores[cut, 0]
        for t in range(tables[0], tables[1]):
            score += scores[cut, 1 + t]
        at = n
        while at > 0 and score > value[at - 1]:
            at -= 1
        if at == len(best):
            continue
        n = min(n + 1, len(best))
        for k in range(n - 1, at, -1):
            value[k], best[k] = value[k - 1], best[k - 1]
        value[at], best[at] = score, cut
    return n


@kernel
def promised_drop(
    both: tuple[Floats, Floats],
    both_at: int,
    small: tuple[Floats, Floats],
    small_at: int,
    penalty: Floats,
    curvature: float,
    roots: Floats,
) -> float:
    """Return the drop of the quadratics of both sides of a cut at their minima.

    Cost: n³/3 for each side, of n parameters; NaN where a system is not positive definite.

    Parameters
    ----------
    both, small
        Slopes, and sums over pairs (i, j) of features with i <= j, of all rows and of those of one
        side. The first feature is a constant.
    both_at, small_at
        Where in these the other features begin.
    penalty
        The quadratic form of the parameters.  # (parameters, parameters)
    roots
        Set to the Cholesky factor U of the matrix UᵀU of the small side, then to that of the
        other; zeros below.
        # (2, parameters, parameters)
    """
    n, k = len(penalty), both[0].shape[1]
    slope, drop = np.empty((n, k)), 0.0
    for side in range(2):
        root = roots[side]
        for i in range(n):
            a = both_at + i - 1 if i > 0 else 0
            b = small_at + i - 1 if i > 0 else 0
            for c in range(k):
                slope[i, c] = small[0][b, c] if side == 0 else both[0][a, c] - small[0][b, c]
            for j in range(i):
                root[i, j] = 0.0
            for j in range(i, n):
                e = both_at + j - 1 if j > 0 else 0
                f = small_at + j - 1 if j > 0 else 0
                pair = small[1][b, f] if side == 0 else both[1][a, e] - small[1][b, f]
                root[i, j] = curvature * pair + penalty[i, j]
        _factor(root, slope)
        for i in range(n):
            for c in range(k):
                drop += 0.5 * slope[i, c] ** 2
    return drop


@plain_helper
def _factor(matrix: Floats, slopes: Floats) -> None:
    """Replace a matrix by its Cholesky factor U, UᵀU = matrix, and slopes by U⁻ᵀ times them.

    Four rows above at a time: a row is read and written a quarter as often.
    """
    n, k = U(len(matrix)), U(slopes.shape[1])
    for i in range(n):
        r = U(0)
        while r + U(4) <= i:
            p, q, s = r + U(1), r + U(2), r + U(3)
            a, b, c, d = matrix[r, i], matrix[p, i], matrix[q, i], matrix[s, i]
            for j in range(i, n):
                matrix[i, j] -= (
                    a * matrix[r, j] + b * matrix[p, j] + c * matrix[q, j] + d * matrix[s, j]
                )
            for j in range(k):
                slopes[i, j] -= (
                    a * slopes[r, j] + b * slopes[p, j] + c * slopes[q, j] + d * slopes[s, j]
                )
            r += U(4)
        while r < i:
            a = matrix[r, i]
            for j in range(i, n):
                matrix[i, j] -= a * matrix[r, j]
            for j in range(k):
                slopes[i, j] -= a * slopes[r, j]
            r += U(1)
        pivot = 1.0 / math.sqrt(matrix[i, i])
        for j in range(i, n):
            matrix[i, j] *= pivot
        for j in range(k):
            slopes[i, j] *= pivot


@kernel
def tables_beyond_noise(
    gram: Floats,
    slope: Floats,
    penalty: Floats,
    first: Ints,
    strengths: tuple[float, float, float],
    kept: Bools,
) -> None:
    """Say of each table whether on its own it promises more than a price times that of noise.

    Parameters
    ----------
    gram
        Sums over pairs of parameters; only (i, j) with i <= j are read.
    slope, penalty
        Of the parameters.  # (parameters, outputs), (parameters, parameters)
    first
        Parameter that each table begins with.  # (tables + 1,)
    strengths
        Curvature, price and dispersion.
    kept
        Where to say so.  # (tables,)
    """
    curvature, price, dispersion = strengths
    for t in range(len(kept)):
        a, n = first[t], first[t + 1] - first[t]
        matrix, slopes = penalty[a : a + n, a : a + n].copy(), slope[a : a + n].copy()
        solved = matrix.copy()
        for i in range(n):
            for j in range(i, n):
                matrix[i, j] += curvature * gram[a + i, a + j]
        drop, fixed = 0.0, 0.0
        _reduce(matrix, solved, slopes)
        for i in range(n):
            for c in range(slopes.shape[1]):
                drop += 0.5 * slopes[i, c] ** 2
        for i in range(n - 1, -1, -1):
            for j in range(n):
                solved[i, j] /= matrix[i, i]
            for r in range(i):
                if matrix[r, i] != 0.0:
                    for j in range(n):
                        solved[r, j] -= matrix[r, i] * solved[i, j]
            fixed += solved[i, i]
        kept[t] = n > 0 and drop > price * (0.5 * dispersion * (n - fixed))


@helper
def _reduce(matrix: Floats, solved: Floats, slopes: Floats) -> None:
    """Replace a matrix by its Cholesky factor U, UᵀU = matrix, and others by U⁻ᵀ times them."""
    n = len(matrix)
    for i in range(n):
        pivot = math.sqrt(matrix[i, i])
        for j in range(i, n):
            matrix[i, j] /= pivot
        for j in range(n):
            solved[i, j] /= pivot
        for c in range(slopes.shape[1]):
            slopes[i, c] /= pivot
        for r in range(i + 1, n):
            factor = matrix[i, r]
            if factor == 0.0:  # categories are orthogonal
                continue
            for j in range(r, n):
                matrix[r, j] -= factor * matrix[i, j]
            for j in range(n):
                solved[r, j] -= factor * solved[i, j]
            for c in range(slopes.shape[1]):
                slopes[r, c] -= factor * slopes[i, c]
