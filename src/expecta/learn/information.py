"""Compute the mutual information of every pair of columns."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.kernels import helper, kernel
from expecta.common.settings import current
from expecta.common.threads import run_on_threads

CHUNK_ROWS = 1 << 14  # of one matrix product: float32 counts them exactly
MAX_COMBINATIONS = 1 << 22  # of the values of two columns
MAX_VALUES = 4096  # of all columns together, for the table of all pairs of values
MAX_STEPS, MIN_ROWS = 1 << 32, 1000  # of counting; rows below which none are left out
MAX_CELLS = 1 << 30  # of the tables of all pairs, beyond which only the strongest are made
N_GROUPS, N_PARTNERS = 4, 8  # of values of a column; pairs of each column that are counted in full
PRODUCT_COST = 0.03  # of a multiply-add in a matrix product, in steps of counting


def mutual_information(
    codes: Ints, cardinalities: Ints, weight: Floats | None = None, *, pseudo_count: float = 1.0
) -> Floats:
    """Return the mutual information in nats of every pair of columns; the diagonal is zero.

    Parameters
    ----------
    codes
        Values of each row, -1 where unknown. A pair is counted over the rows in which
        both are known.  # (rows, variables)
    cardinalities
        Number of values of each variable.  # (variables,)
    weight
        How often each row counts.  # (rows,)
    pseudo_count
        Rows that are added to every pair, spread evenly over its values: two columns
        that were never seen together, or seldom, appear unrelated. So do two whose values
        have over four million combinations: no table has rows to tell.

    Returns
    -------
    array of shape (variables, variables)
        Symmetric. Cost: rows x variables² / 2 steps of counting, or where columns have
        few values a matrix product, rows x (all values)²; at most some seconds. Where it would
        be more, rows are sampled, a thousand at least; and of thousands of columns only the
        pairs that tell most by groups of their values are counted value by value, the others
        have the information of the groups, which is less.

    Examples
    --------
    >>> same = np.array([[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]])
    >>> mutual_information(same, np.array([2, 2, 2]), pseudo_count=0).round(3).tolist()
    [[0.0, 0.693, 0.0], [0.693, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    pairs = len(cardinalities) * (len(cardinalities) - 1) // 2
    if weight is not None and np.all(weight == 1.0):
        weight = None  # counts that float32 holds
    n_values = int(np.sum(cardinalities))
    cells = pairs * (n_values / len(cardinalities)) ** 2
    product_steps = PRODUCT_COST * n_values**2
    by_product = product_steps < pairs and n_values <= MAX_VALUES
    max_rows = max(MIN_ROWS, int(MAX_STEPS / max(product_steps if by_product else pairs, 1)))
    if len(codes) > max_rows:
        rows = np.sort(np.random.default_rng(0).choice(len(codes), max_rows, replace=False))
        codes, weight = codes[rows], None if weight is None else weight[rows]
    if by_product:
        out = _by_product(codes, cardinalities, weight, pseudo_count)
    elif cells > MAX_CELLS:
        out = _by_groups(codes, cardinalities, weight, pseudo_count)
    else:
        out = _by_counting(codes, cardinalities, weight, pseudo_count)
    np.fill_diagonal(out, 0.0)
    return out


def edge_information(
    codes: Ints, cardinalities: Ints, weight: Floats, *, pseudo_count: float = 0.0
) -> Floats:
    """Return the mutual information of every pair, corrected for chance.

    Of independent columns with a and b values that occur, N rows show (a - 1)(b - 1) / 2N nats
    on average: a pair of many values seems to be related. What is left may be negative.

    Parameters are those of :func:`mutual_information`.
    """
    information = mutual_information(codes, cardinalities, weight, pseudo_count=pseudo_count)
    known = codes >= 0
    occur = [len(np.unique(x[k])) for x, k in zip(codes.T, known.T, strict=True)]
    free = np.maximum(np.array(occur) - 1.0, 0.0)
    rows = known.T.astype(np.float64) @ (known * weight[:, None])
    information -= np.outer(free, free) / (2.0 * np.maximum(rows, 1.0))
    np.fill_diagonal(information, 0.0)
    return information


def _by_product(
    codes: Ints, cardinalities: Ints, weight: Floats | None, pseudo_count: float
) -> Floats:
    """Count all pairs of values at once: the product of the one-hot rows with themselves."""
    cards = cardinalities.astype(np.int64)
    start = np.concatenate([[0], np.cumsum(cards)])
    joint = np.zeros((start[-1], start[-1]))
    dtype = np.float32 if weight is None else np.float64
    for begin in range(0, len(codes), CHUNK_ROWS):
        part = codes[begin : begin + CHUNK_ROWS].astype(np.int64)
        rows, variables = np.nonzero(part >= 0)
        hot = np.zeros((len(part), start[-1]), dtype)
        hot[rows, start[variables] + part[rows, variables]] = 1.0
        scaled = hot if weight is None else hot * weight[begin : begin + CHUNK_ROWS, None]
        joint += hot.T @ scaled
    joint += pseudo_count / np.outer(np.repeat(cards, cards), np.repeat(cards, cards))

    # Per pair: total T, joint n_ab, sums n_a and n_b over the rows that know both.
    n_a = np.add.reduceat(joint, start[:-1], axis=1)  # (values, variables)
    total = np.add.reduceat(n_a, start[:-1], axis=0)
    both = np.add.reduceat(np.add.reduceat(_x_log_x(joint), start[:-1], axis=0), start[:-1], axis=1)
    first = np.add.reduceat(_x_log_x(n_a), start[:-1], axis=0)
    # pairs that are never known together have no information
    known = np.where(total > 0, total, 1.0)
    return np.asarray(np.maximum(0.0, (both - first - first.T) / known + np.log(known)))


def _by_counting(
    codes: Ints, cardinalities: Ints, weight: Floats | None, pseudo_count: float
) -> Floats:
    n = len(cardinalities)
    columns = np.ascontiguousarray(codes.T, np.int32)
    out = np.zeros((n, n))
    weights = np.ones(len(codes)) if weight is None else np.asarray(weight, np.float64)
    cards = cardinalities.astype(np.int64)
    # Row i of the triangle has n - i pairs: deal the rows out like cards.
    threads = current().n_threads()
    calls = [(columns, cards, weights, pseudo_count, out, k, threads) for k in range(threads)]
    run_on_threads(_count_pairs, calls, threads)
    out += out.T
    return out


def _by_groups(
    codes: Ints, cardinalities: Ints, weight: Floats | None, pseudo_count: float
) -> Floats:
    """Count pairs by groups of values, and for each column the strongest by values."""
    n = len(cardinalities)
    cards = cardinalities.astype(np.int64)
    coarse, groups = np.empty_like(codes), np.minimum(cards, N_GROUPS)
    for x, (card, n_groups) in enumerate(zip(cards.tolist(), groups.tolist(), strict=True)):
        count = np.bincount(codes[:, x] + 1, weight, card + 1)[1:]
        rank = (np.cumsum(count) - 0.5 * count) / max(float(count.sum()), 1e-300)
        group = np.minimum(rank * n_groups, n_groups - 1) if card > n_groups else np.arange(card)
        coarse[:, x] = np.append(group.astype(codes.dtype), -1)[codes[:, x]]
    out = _by_counting(coarse, groups, weight, pseudo_count)
    partners = np.argpartition(out, -min(N_PARTNERS, n), axis=1)[:, -N_PARTNERS:]
    first = np.repeat(np.arange(n), partners.shape[1])
    second = partners.reshape(-1)
    chosen = np.unique(np.sort(np.stack([first, second], axis=1)[first != second], axis=1), axis=0)
    columns = np.ascontiguousarray(codes.T, np.int32)
    weights = np.ones(len(codes)) if weight is None else np.asarray(weight, np.float64)
    exact = np.zeros(len(chosen))
    cuts = np.linspace(0, len(chosen), 8 * current().n_threads() + 1).astype(np.int64)
    calls = [
        (columns, cards, weights, pseudo_count, chosen[a:b], exact[a:b]) for a, b in pairwise(cuts)
    ]
    run_on_threads(_count_chosen, calls, current().n_threads())
    a, b = chosen.T
    out[a, b] = out[b, a] = np.maximum(exact, out[a, b])
    return out


@kernel
def _count_pairs(
    columns: Ints,
    cards: Ints,
    weight: Floats,
    pseudo_count: float,
    out: Floats,
    first: int,
    step: int,
) -> None:
    """Fill rows first, first + step, ... of the upper triangle."""
    n = len(columns)
    for i in range(first, n, step):
        for j in range(i + 1, n):
            out[i, j] = _of_pair(columns[i], columns[j], cards[i], cards[j], weight, pseudo_count)


@kernel
def _count_chosen(
    columns: Ints, cards: Ints, weight: Floats, pseudo_count: float, chosen: Ints, out: Floats
) -> None:
    """Compute the information of chosen pairs."""
    for k in range(len(chosen)):
        i, j = chosen[k, 0], chosen[k, 1]
        out[k] = _of_pair(columns[i], columns[j], cards[i], cards[j], weight, pseudo_count)


@helper
def _of_pair(x: Ints, y: Ints, a: int, b: int, weight: Floats, pseudo_count: float) -> float:
    """Compute the information of two columns; zero where no rows could tell."""
    if (a + 1) * (b + 1) > MAX_COMBINATIONS:
        return 0.0
    table = np.full((a + 1) * (b + 1), pseudo_count / (a * b))
    for r in range(len(x)):  # the last row and column take what is unknown
        u = x[r] if x[r] >= 0 else a
        v = y[r] if y[r] >= 0 else b
        table[u * (b + 1) + v] += weight[r]
    joint = table.reshape(a + 1, b + 1)[:a, :b]
    total = joint.sum()
    if total <= 0.0:
        return 0.0
    sums = 0.0
    for u in range(a):
        n_u = joint[u].sum()
        if n_u > 0.0:
            sums -= n_u * np.log(n_u)
        for v in range(b):
            if joint[u, v] > 0.0:
                sums += joint[u, v] * np.log(joint[u, v])
    for v in range(b):
        n_v = joint[:, v].sum()
        if n_v > 0.0:
            sums -= n_v * np.log(n_v)
    return max(0.0, sums / total + np.log(total))


def _x_log_x(x: Floats) -> Floats:
    return np.asarray(x * np.log(np.where(x > 0, x, 1.0)))
