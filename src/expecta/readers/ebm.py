"""Read explainable boosting machines of interpret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from expecta.common.arrays import Floats
from expecta.readers import Unreadable
from expecta.readers.forms import Categories, Form, Question
from expecta.readers.library_class import library_class
from expecta.readers.tree_builder import SplitOrLeaf, TreeBuilder, float_below

LINKS = {"identity": "identity", "log": "exp", "logit": "logistic", "mlogit": "softmax"}
NAMES = (
    "ExplainableBoostingClassifier",
    "ExplainableBoostingRegressor",
    "DPExplainableBoostingClassifier",
    "DPExplainableBoostingRegressor",
)


def read(model: Any, categories: Categories | None = None) -> Form | None:
    """Read a fitted explainable boosting machine; None if it is something else.

    Each of its tables becomes a tree that searches for the bin of the first feature, then of
    the next. Missing values have a bin of their own: a question that is true of all numbers
    finds them. Trees see the positions of the categories of nominal features, which are text.
    """
    if library_class(model, "interpret") not in NAMES:
        return None
    check_is_fitted(model)
    if model.link_ not in LINKS:
        raise Unreadable(
            f"{type(model).__name__} has link {model.link_!r}, whose predictions are not a known "
            "function of a sum: fit with another objective and two classes or more."
        )
    bias = np.atleast_1d(np.float64(model.intercept_))
    builder = TreeBuilder(len(model.bins_), bias)
    listed = {
        feature: list(levels[0])
        for feature, levels in enumerate(model.bins_)
        if isinstance(levels[0], dict)
    }
    for features, scores in zip(model.term_features_, model.term_scores_, strict=True):
        # a feature may have coarser bins for interactions
        axes = [
            _axis(feature, levels[min(len(levels), len(features)) - 1], listed.get(feature, []))
            for feature, levels in ((feature, model.bins_[feature]) for feature in features)
        ]
        table = np.reshape(scores, (*scores.shape[: len(axes)], len(bias)))
        builder.add(_Node(table, tuple(axes)), _look)
    classes = getattr(model, "classes_", None)
    return Form(builder.build(), LINKS[model.link_], classes, categories=listed)


@dataclass(frozen=True, eq=False)
class _Axis:
    """A feature of a table: its cuts, or which categories are in which bin from 1 on."""

    feature: int
    cuts: Floats
    bins: tuple[frozenset[float], ...] = ()


def _axis(feature: int, bins: Any, listed: list[str]) -> _Axis:
    """Read the bins of a feature."""
    if not isinstance(bins, dict):
        return _Axis(feature, bins)
    inside: list[set[float]] = [set() for _ in range(max(bins.values(), default=0))]
    for position, value in enumerate(listed):
        if value in bins:
            inside[bins[value] - 1].add(float(position))
    return _Axis(feature, np.zeros(0), tuple(map(frozenset, inside)))


@dataclass(frozen=True, eq=False)
class _Node:
    """A part of a table: of the first axis, the bins from low to high, once that is decided.

    A table has the bin of missing values first and the bin of unknown categories last.
    """

    table: Floats  # (bins, ..., outputs)
    axes: tuple[_Axis, ...]
    known: bool = False  # whether x is not missing
    listed: bool = False  # nor an unknown category
    low: int = 1
    high: int = 0

    def inside(self, number: int) -> _Node:
        """Go on to the next axis, in a bin of this one."""
        return _Node(self.table[number], self.axes[1:])

    def all_alike(self, low: int, high: int) -> bool:
        """Whether it does not matter in which bin of a range x is."""
        return bool(np.all(self.table[low:high] == self.table[low]))


def _look(node: _Node) -> SplitOrLeaf[_Node]:
    """See what to ask next in a part of a table."""
    if not node.axes:
        return node.table
    axis, last = node.axes[0], len(node.table) - 1
    if not node.known:
        if node.all_alike(0, last if not axis.bins else last + 1):
            return _look(node.inside(0))
        within = _Node(node.table, node.axes, known=True, listed=not axis.bins, high=last)
        return Question(axis.feature, np.inf), within, node.inside(0)
    if not node.listed:
        within = _Node(node.table, node.axes, known=True, listed=True, high=last)
        listed = frozenset().union(*axis.bins)
        return Question(axis.feature, among=listed), within, node.inside(last)
    if node.all_alike(node.low, node.high):
        return _look(node.inside(node.low))
    middle = _middle(node)
    lower = _Node(node.table, node.axes, True, True, node.low, middle)
    upper = _Node(node.table, node.axes, True, True, middle, node.high)
    if axis.bins:
        among = frozenset().union(*axis.bins[node.low - 1 : middle - 1])
        return Question(axis.feature, among=among), lower, upper
    return Question(axis.feature, float_below(axis.cuts[middle - 2])), lower, upper


def _middle(node: _Node) -> int:
    """Choose a bin that differs from the one before, as near to the middle as can be."""
    steps = range(node.low + 1, node.high)
    apart = [step for step in steps if np.any(node.table[step] != node.table[step - 1])]
    return min(apart, key=lambda step: abs(2 * step - node.low - node.high))
