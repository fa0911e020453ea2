"""Build sums of trees node by node: what readers of trees share.

Trees see the user's features in the order of the model's columns, as they are, except for
those that ``Form.categories`` has a list for. Of these they see the position of the value in
the list, or -1 if it is not there: see :func:`category_positions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Floats, Ints
from expecta.readers.forms import Question, Trees

Node = TypeVar("Node")
SplitOrLeaf: TypeAlias = tuple[Question, Node, Node] | Floats  # a split, or the value of a leaf


class TreeBuilder:
    """Collects trees, node by node, and questions without repeating them.

    Parameters
    ----------
    n_features
        How many features the model has.
    bias
        The constant.  # (outputs,)
    """

    def __init__(self, n_features: int, bias: Floats) -> None:
        self.n_features = n_features
        self.bias = np.array(bias, dtype=np.float64)
        self._numbers: dict[tuple[object, ...], int] = {}
        self._questions: list[Question] = []
        self._start = [0]
        self._question: list[int] = []
        self._child: list[list[int]] = []
        self._value: list[Floats] = []

    def add(self, root: Node, look: Callable[[Node], SplitOrLeaf[Node]]) -> None:
        """Add a tree, given its root and a function that returns the split or leaf at a node."""
        first = look(root)
        if not isinstance(first, tuple):
            self.bias += first  # a tree that is one leaf is a constant
            return
        no_value = np.zeros(len(self.bias))
        todo: list[tuple[SplitOrLeaf[Node], int, int]] = [(first, -1, 0)]
        while todo:
            at_node, parent, side = todo.pop()
            node = len(self._question)
            if parent >= 0:
                self._child[parent][side] = node
            self._child.append([0, 0])
            if isinstance(at_node, tuple):
                question, left, right = at_node
                self._question.append(self._number(question))
                self._value.append(no_value)
                todo += [(look(right), node, 1), (look(left), node, 0)]
            else:
                self._question.append(-1)
                self._value.append(at_node)
        self._start.append(len(self._question))

    def include(self, trees: Trees, scale: float, features: Ints, outputs: Ints) -> None:
        """Add the trees of a model that sees some of the features and has some outputs."""

        def look(node: int) -> SplitOrLeaf[int]:
            number = int(trees.question[node])
            if number < 0:
                return self.spread(scale * trees.value[node], outputs)
            question = trees.questions[number]
            moved = replace(question, feature=int(features[question.feature]))
            return moved, int(trees.left[node]), int(trees.right[node])

        self.bias += self.spread(scale * trees.bias, outputs)
        for root in trees.start[:-1].tolist():
            self.add(root, look)

    def spread(self, value: Floats | float, outputs: Ints | int) -> Floats:
        """Put a value into its outputs; the others are 0."""
        out = np.zeros(len(self.bias))
        out[outputs] = value
        return out

    def build(self) -> Trees:
        """Return all that was added."""
        child = np.array(self._child, dtype=np.int64).reshape(-1, 2)
        return Trees(
            n_features=self.n_features,
            questions=tuple(self._questions),
            start=np.array(self._start, dtype=np.int64),
            question=np.array(self._question, dtype=np.int64),
            left=np.ascontiguousarray(child[:, 0]),
            right=np.ascontiguousarray(child[:, 1]),
            value=np.array(self._value, dtype=np.float64).reshape(-1, len(self.bias)),
            bias=self.bias,
        )

    def _number(self, question: Question) -> int:
        """Find the number of a question, a new one for a new question."""
        # not the question itself: NaN, its threshold if there is none, differs from NaN
        about: object = question.at_most if question.among is None else question.among
        key = (question.feature, about, question.single, question.missing)
        number = self._numbers.setdefault(key, len(self._questions))
        if number == len(self._questions):
            self._questions.append(question)
        return number


def boosted_link(
    model: Any, link: str, n_outputs: int, *, classifier: bool, binary: bool
) -> tuple[str, npt.NDArray[np.generic] | None]:
    """Return the link and the classes of a booster.

    ``link`` is that of its objective. A classifier has labels, and probabilities only if the
    link gives some; a booster by itself numbers its classes, two if it is ``binary``.
    """
    if classifier:
        has_probabilities = link in ("logistic", "softmax")
        return link if has_probabilities else "none", np.asarray(model.classes_)
    if link == "softmax":
        return link, np.arange(n_outputs)
    return link, np.arange(2) if binary else None


def code_notes(categorical: Iterable[int], listed: Iterable[int]) -> tuple[str, ...]:
    """Warn of categorical features without a list of categories: they are seen as codes."""
    codes = sorted(set(categorical) - set(listed))
    if not codes:
        return ()
    return (f"Features {codes} hold categories as whole numbers, the codes of the training data.",)


def float_below(threshold: float, kind: type[np.floating[Any]] = np.float64) -> float:
    """Return the greatest number below a threshold: x < threshold is x <= that."""
    return float(np.nextafter(kind(threshold), kind(-np.inf)))


def category_positions(values: Iterable[Any], listed: Sequence[Any]) -> Floats:
    """Return the position of each value in a list of categories: NaN if missing, -1 if not listed.

    Some libraries list all categories as text. There the number 3.0 is found as "3", or as "3.0".

    >>> category_positions(["b", None, "c"], ["a", "b"]).tolist()
    [1.0, nan, -1.0]
    >>> category_positions([3.0, 4], ["3", "4"]).tolist()
    [0.0, 1.0]
    """
    known = {value: float(position) for position, value in enumerate(listed)}
    all_text = all(isinstance(value, str) for value in listed)

    def position(value: Any) -> float:
        if value in known:
            return known[value]
        # pandas' NA is neither the same as itself nor different
        if value is None or type(value).__name__ == "NAType" or value != value:
            return float("nan")
        if not all_text:
            return -1.0
        whole = isinstance(value, float | np.floating) and float(value).is_integer()
        as_text = known.get(str(value), -1.0)
        return known.get(str(int(value)), as_text) if whole else as_text

    return np.array([position(value) for value in values], dtype=np.float64)
