"""Define the two forms that models are read into: linear functions and sums of trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Bools, Floats, Ints

Categories: TypeAlias = Mapping[int, Sequence[Any]]  # by position of the column or feature


@dataclass(frozen=True)
class Question:
    """A yes-or-no question that a tree asks of one feature; yes goes left.

    ``x <= at_most``, or whether x is one of a set of numbers. A library that computes with 32
    bits rounds x before it asks.
    """

    feature: int
    at_most: float = float("nan")
    among: frozenset[float] | None = None
    single: bool = False  # whether x is rounded to 32 bits first
    missing: bool = False  # the answer where x is NaN

    def ask(self, x: Floats) -> Bools:
        """Answer for every number."""
        if self.single:
            with np.errstate(over="ignore"):
                x = x.astype(np.float32).astype(np.float64)
        if self.among is None:
            yes = x <= self.at_most
        else:
            yes = np.isin(x, list(self.among))
        return np.where(np.isnan(x), self.missing, yes)


@dataclass(frozen=True, eq=False)
class Trees:
    """A sum of decision trees: a constant, plus the value of the leaf that x reaches in each."""

    n_features: int
    questions: tuple[Question, ...]  # all different
    start: Ints  # first node of each tree, then their number  # (trees + 1,)
    question: Ints  # -1 at a leaf  # (nodes,)
    left: Ints  # children, counted through all trees; 0 at a leaf  # (nodes,)
    right: Ints
    value: Floats  # of leaves  # (nodes, outputs)
    bias: Floats  # (outputs,)

    def __call__(self, features: Floats) -> Floats:
        """Compute the sum for complete rows, one node after the other.  # (rows, outputs)."""
        total = np.repeat(self.bias[None], len(features), axis=0)
        yes = [q.ask(features[:, q.feature]) for q in self.questions]
        for root in self.start[:-1].tolist():
            todo = [(root, np.arange(len(features)))]
            while todo:
                node, rows = todo.pop()
                question = int(self.question[node])
                if question < 0:
                    total[rows] += self.value[node]
                else:
                    goes_left = yes[question][rows]
                    todo.append((int(self.left[node]), rows[goes_left]))
                    todo.append((int(self.right[node]), rows[~goes_left]))
        return total


@dataclass(frozen=True, eq=False)
class Linear:
    """A constant plus a multiple of each feature."""

    coefficient: Floats  # (features, outputs)
    bias: Floats  # (outputs,)

    def __call__(self, features: Floats) -> Floats:
        """Compute the sum for complete rows.  # (rows, outputs)."""
        return features @ self.coefficient + self.bias

    @property
    def n_features(self) -> int:
        """How many features it has."""
        return len(self.coefficient)


@dataclass(frozen=True, eq=False)
class Form:
    """A model that was read: its margin, and how its outputs come from it.

    The link says how ``predict`` (of a regressor) or ``predict_proba`` (of a classifier)
    comes from the margin: "identity", "exp" (also for counts), "logistic" (one margin, of
    the second class), "softmax", "one-vs-rest" (logistic each, divided by their sum); or
    "none" for a classifier that has margins only.
    """

    margin: Trees | Linear
    link: str = "identity"
    classes: npt.NDArray[np.generic] | None = None  # of a classifier
    notes: Sequence[str] = ()  # what a user should know, a sentence each
    # categories of the features that trees see as positions in these lists, -1 if not listed
    categories: Categories = field(default_factory=dict)
