"""Where the answers to questions about features change, in raw numbers and to the last bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from expecta.common.arrays import Bools, Floats, Ints
from expecta.readers import Unreadable
from expecta.readers.features import Features
from expecta.readers.forms import Question

__all__ = ["cut_points", "joint_cut_points"]

LEAST = np.iinfo(np.int64).min


def cut_points(
    features: Features,
    column: int,
    feature: int,
    questions: Sequence[Question],
    low: float,
    high: float,
) -> Floats:
    """Return the raw numbers t such that x <= t and x > t answer a question differently.

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
    return joint_cut_points(features, questions, {column: (low, high)})[column]


def joint_cut_points(
    features: Features,
    questions: Sequence[Question],
    ranges: Mapping[int, tuple[float, float]],
) -> dict[int, Floats]:
    """Return the boundaries of several columns at once; see :func:`cut_points`.

    They are found by bisection over the bits of a number, through the user's transformers.
    Cost: 65 calls of these at most, of as many rows as a column has questions.

    Parameters
    ----------
    features
        Where features come from.
    questions
        Questions with a threshold about features that never fall or never rise.
    ranges
        The least and the largest number of each raw column that is asked about.
    """
    for column, (low, high) in ranges.items():
        if not (np.isfinite(low) and np.isfinite(high) and low <= high):
            name = features.columns[column]
            raise ValueError(f"low and high of {name!r} must be finite and in order: {low}, {high}")
    for q in questions:
        if q.among is not None or not features.monotone[q.feature]:
            raise ValueError(
                f"feature {q.feature} is not known to rise or fall, or is asked for no threshold"
            )
        if int(features.source[q.feature]) not in {-1, *ranges}:
            raise ValueError(f"feature {q.feature} is of a column that has no range")
    if not ranges:
        return {}
    feature = np.array([q.feature for q in questions], np.int64)
    at_most = np.array([q.at_most for q in questions], np.float64)
    single = np.array([q.single for q in questions], np.bool_)
    column_of = features.source[feature]

    ends = _ends(features, feature, ranges)
    first, last = (_below(values, at_most, single) for values in ends)
    (todo,) = np.nonzero(first != last)
    range_of = np.array([ranges[int(column)] for column in column_of[todo]]).reshape(-1, 2)
    under, over = _place(range_of[:, 0]), _place(range_of[:, 1])
    while True:
        middle = (under & over) + ((under ^ over) >> 1)  # their mean, which cannot overflow
        (open_,) = np.nonzero(middle != under)
        if not len(open_):
            break
        at = todo[open_]
        found = _asked(features, column_of[at], feature[at], _number(middle[open_]))
        before = _below(found, at_most[at], single[at]) == first[at]
        under[open_[before]] = middle[open_[before]]
        over[open_[~before]] = middle[open_[~before]]
    return {column: np.unique(_number(under[column_of[todo] == column])) for column in ranges}


def _ends(features: Features, feature: Ints, ranges: Mapping[int, tuple[float, float]]) -> Floats:
    """Return what is asked about at both ends of the ranges.  # (2, questions)."""
    try:
        every = features.joint({column: np.array(ends) for column, ends in ranges.items()})
    except ValueError as problem:
        raise Unreadable(
            f"the transformers cannot take the least or the largest number of a column "
            f"({problem}); sampling is used instead"
        ) from problem
    found = every[:, feature]
    for column in features.source[feature[np.isnan(found).any(axis=0)]].tolist():
        low, high = ranges[column]
        raise Unreadable(
            f"column {features.columns[column]!r} is NaN after its transformers at {low} or "
            f"{high}; sampling is used instead"
        )
    return found


def _asked(features: Features, column: Ints, feature: Ints, x: Floats) -> Floats:
    """Return one feature for each number, of all columns at once."""
    rows = int(np.bincount(column).max())
    row = np.empty(len(x), np.int64)
    values = {}
    for number in np.unique(column).tolist():
        (own,) = np.nonzero(column == number)
        row[own] = np.arange(len(own))
        values[number] = np.resize(x[own], rows)  # repeated, where others have more
    return features.joint(values)[row, feature]


def _below(x: Floats, at_most: Floats, single: Bools) -> Bools:
    """Answer one question for each number, as :meth:`Question.ask` does."""
    with np.errstate(over="ignore"):
        rounded = np.where(single, x.astype(np.float32).astype(np.float64), x)
    return np.asarray(rounded <= at_most)


def _place(x: Floats) -> Ints:
    """Return the place of each number among all numbers of 64 bits; that of zero is 0."""
    bits = np.asarray(x, np.float64).view(np.int64)
    return np.where(bits >= 0, bits, LEAST - bits)


def _number(place: Ints) -> Floats:
    """Return the number at each place."""
    return np.where(place >= 0, place, LEAST - place).view(np.float64)
