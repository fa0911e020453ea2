"""Find the raw thresholds at which a feature changes a tree's answer, exact to the last bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from expecta.common.arrays import Bools, Floats, Ints
from expecta.readers import Unreadable
from expecta.readers.features import Features
from expecta.readers.forms import Question

MIN_INT = np.iinfo(np.int64).min
MAX_PARTS, MAX_ROWS = 64, 20_000  # of a call of the transformers


def cut_points(
    features: Features,
    column: int,
    feature: int,
    questions: Sequence[Question],
    low: float,
    high: float,
) -> Floats:
    """Return the raw numbers t such that x <= t and x > t answer a question differently.

    They are found through the user's transformers, whose calls cost more than their rows: each
    divides the bits of a number that are left into up to 64 parts. Cost: at most 12 calls for up to
    300 questions, of up to 20,000 rows each.

    Parameters
    ----------
    features
        Where features come from.
    column
        A raw column of numbers.
    feature
        One of its features, which never falls or never rises.
    questions
        Questions with a threshold about this feature.
    low, high
        The least and the largest raw number that matters, both finite.

    Returns
    -------
    Floats
        The boundaries, ascending and each once. A question that has the same answer from low
        to high has none.

    Raises
    ------
    Unreadable
        If the transformers refuse low or high, or make NaN of it.

    >>> features = Features.read([], np.zeros((1, 1)))
    >>> cut_points(features, 0, 0, [Question(0, 2.5), Question(0, 9.0)], -1.0, 5.0).tolist()
    [2.5]
    """
    if features.source[feature] != column or any(q.feature != feature for q in questions):
        raise ValueError(f"questions must be about feature {feature}, which is of column {column}")
    name = features.columns[column]
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        raise ValueError(f"low and high of {name!r} must be finite and in order: {low}, {high}")
    if not features.monotone[feature] or any(q.among is not None for q in questions):
        raise ValueError(
            f"feature {feature} is not known to rise or fall, or is asked for no threshold"
        )
    at_most = np.array([q.at_most for q in questions], np.float64)
    single = np.array([q.single for q in questions], np.bool_)
    index = int(np.searchsorted(features.of(column), feature))  # among the column's features
    try:
        ends = features.values(column, np.array([low, high]))[:, index]
    except ValueError as problem:
        raise Unreadable(
            f"the transformers cannot take the least or the largest number of a column "
            f"({problem}); sampling is used instead"
        ) from problem
    if np.isnan(ends).any():
        raise Unreadable(
            f"column {name!r} is NaN after its transformers at {low} or {high}; sampling is used "
            f"instead"
        )
    first, last = (_below(np.full(len(at_most), end), at_most, single) for end in ends)
    (todo,) = np.nonzero(first != last)
    lower, upper = (np.repeat(_rank(np.array([end])), len(todo)) for end in (low, high))
    while True:
        gap = upper.view(np.uint64) - lower.view(np.uint64)  # wraps round, which is right
        (open_,) = np.nonzero(gap > 1)
        if not len(open_):
            break
        parts = np.uint64(min(MAX_PARTS, max(2, MAX_ROWS // len(open_))))
        whole, rest = np.divmod(gap[open_], parts)
        steps = np.arange(1, parts, dtype=np.uint64)[:, None]
        inner = lower[open_].view(np.uint64) + whole * steps + rest * steps // parts
        # (parts + 1, questions)
        points = np.vstack([lower[open_], inner.view(np.int64), upper[open_]])
        values = features.values(column, _number(points[1:-1].ravel()))[:, index]
        at = np.tile(todo[open_], len(points) - 2)
        after = (_below(values, at_most[at], single[at]) != first[at]).reshape(-1, len(open_))
        place = np.where(after.any(axis=0), after.argmax(axis=0), len(after))
        lower[open_], upper[open_] = points[np.stack([place, place + 1]), np.arange(len(open_))]
    return np.unique(_number(lower))


def domain_ends(status: Callable[[float], object], points: Sequence[float]) -> list[float]:
    """Return the numbers t such that something differs between t and the next number.

    Parameters
    ----------
    status
        What a number has, such as whether a feature of it is NaN.
    points
        Numbers, ascending; a change and its return between two neighbours is not found.

    Returns
    -------
    list of float
        To the last bit, ascending. Cost: 64 calls for each.

    >>> domain_ends(lambda x: x >= 0.0, [-1.0, 2.0])
    [-5e-324]
    """
    ends: list[float] = []
    todo = list(pairwise(points))
    while todo:
        low, high = todo.pop()
        at_low = status(low)
        if low >= high or at_low == status(high):
            continue
        lower, upper = (int(_rank(np.array([end]))[0]) for end in (low, high))
        while upper - lower > 1:
            middle = (lower + upper) // 2
            if status(_value(middle)) == at_low:
                lower = middle
            else:
                upper = middle
        ends.append(_value(lower))
        todo.append((_value(upper), high))
    return sorted(ends)


def _value(rank: int) -> float:
    return float(_number(np.array([rank], np.int64))[0])


def _below(x: Floats, at_most: Floats, single: Bools) -> Bools:
    """Answer one question for each number, as :meth:`Question.ask` does."""
    with np.errstate(over="ignore"):
        rounded = np.where(single, x.astype(np.float32).astype(np.float64), x)
    return np.asarray(rounded <= at_most)


def _rank(x: Floats) -> Ints:
    """Return the rank of each number among all numbers of 64 bits; that of zero is 0."""
    bits = np.asarray(x, np.float64).view(np.int64)
    return np.where(bits >= 0, bits, MIN_INT - bits)


def _number(rank: Ints) -> Floats:
    """Return the number of each rank."""
    return np.where(rank >= 0, rank, MIN_INT - rank).view(np.float64)
