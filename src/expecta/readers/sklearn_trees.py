"""Read trees, forests, boosted and bagged trees of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from expecta.common.arrays import Floats, Ints
from expecta.readers import Unreadable
from expecta.readers.forms import Categories, Form, Question, Trees
from expecta.readers.library_class import library_class, require_own_code
from expecta.readers.tree_builder import SplitOrLeaf, TreeBuilder

TREES = frozenset(
    {"DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor"}
)
FORESTS = frozenset(
    {"RandomForestClassifier", "RandomForestRegressor"}
    | {"ExtraTreesClassifier", "ExtraTreesRegressor"}
)
BOOSTED = frozenset({"GradientBoostingClassifier", "GradientBoostingRegressor"})
BINNED = frozenset({"HistGradientBoostingClassifier", "HistGradientBoostingRegressor"})
BAGS = frozenset({"BaggingClassifier", "BaggingRegressor"})
ADAPTIVE = frozenset({"AdaBoostClassifier", "AdaBoostRegressor"})


def read(model: Any, categories: Categories | None = None) -> Form | None:
    """Read a fitted model of scikit-learn that is made of trees.

    Returns None if it is something else. Classes of forests and trees have probabilities for
    margins.
    """
    readers: list[tuple[frozenset[str], Callable[[Any], Form]]] = [
        (TREES, lambda tree: _forest(tree, [tree])),
        (FORESTS, lambda forest: _forest(forest, forest.estimators_)),
        (BOOSTED, _boosted),
        (BINNED, _binned),
        (BAGS, _bagged),
        (ADAPTIVE, _adaptive),
    ]
    name = library_class(model)
    for names, reader in readers:
        if name in names:
            check_is_fitted(model)
            return reader(model)
    return None


def _forest(model: Any, members: list[Any]) -> Form:
    """Read the mean of trees."""
    classes = getattr(model, "classes_", None)
    if classes is not None and model.n_outputs_ > 1:
        raise Unreadable(
            f"{type(model).__name__} predicts {model.n_outputs_} classes at once: "
            "fit a classifier for each."
        )
    n_outputs = model.n_outputs_ if classes is None else len(classes)
    builder = TreeBuilder(model.n_features_in_, np.zeros(n_outputs))
    require_own_code(*members, *(member.tree_ for member in members))
    for member in members:
        # (nodes, outputs, 1) of a regressor, (nodes, 1, classes) of a classifier
        value = member.tree_.value.reshape(-1, n_outputs) / len(members)
        _add(builder, member.tree_, value)
    return Form(builder.build(), classes=classes)


def _add(builder: TreeBuilder, tree: Any, value: Floats) -> None:
    """Add a tree with given values of its nodes."""
    left, right = tree.children_left.tolist(), tree.children_right.tolist()
    feature, threshold = tree.feature.tolist(), tree.threshold.tolist()
    missing = tree.missing_go_to_left.astype(bool).tolist()

    def look(node: int) -> SplitOrLeaf[int]:
        if left[node] >= 0:
            question = Question(feature[node], threshold[node], single=True, missing=missing[node])
            return question, left[node], right[node]
        return value[node]

    builder.add(0, look)


def _boosted(model: Any) -> Form:
    """Read gradient boosting, which starts from a constant."""
    init = model.init_
    dummy = library_class(init)
    steady = dummy == "DummyRegressor" or (
        dummy == "DummyClassifier" and init.strategy != "stratified"
    )
    if not (steady or isinstance(init, str)):
        raise Unreadable(
            f"{type(model).__name__} starts from init={init!r}, which is not a constant: "
            "leave init out, or use 'zero'."
        )
    classes = getattr(model, "classes_", None)
    # exponential loss makes expit(2 margin) of a margin
    factor = 2.0 if model.loss == "exponential" else 1.0
    bias = model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32))[0]
    require_own_code(model._loss, *(member.tree_ for member in model.estimators_.flat))
    builder = TreeBuilder(model.n_features_in_, factor * bias)
    for stage in model.estimators_:
        for output, member in enumerate(stage):
            value = np.zeros((member.tree_.node_count, len(bias)))
            value[:, output] = factor * model.learning_rate * member.tree_.value[:, 0, 0]
            _add(builder, member.tree_, value)
    return Form(builder.build(), _link(classes, len(bias)), classes)


def _link(classes: Any, n_outputs: int) -> str:
    """Name the link of boosting."""
    if classes is None:
        return "identity"
    return "logistic" if n_outputs == 1 else "softmax"


def _binned(model: Any) -> Form:
    """Read histogram gradient boosting, which has its own trees."""
    bias = np.ravel(model._baseline_prediction)
    builder = TreeBuilder(model.n_features_in_, bias)
    listed: dict[int, list[Any]] = {}
    columns = np.arange(model.n_features_in_)
    if model.is_categorical_ is not None:
        # trees have the categorical columns first
        columns = np.argsort(~model.is_categorical_, kind="stable")
        encoder = model._preprocessor.named_transformers_["encoder"]
        require_own_code(model._preprocessor, encoder)
        for feature, values in zip(columns.tolist(), encoder.categories_, strict=False):
            # NaN, the last if any, is not a category
            listed[feature] = [value for value in values.tolist() if value == value]
    require_own_code(model._loss, *(member for stage in model._predictors for member in stage))
    for stage in model._predictors:
        for output, member in enumerate(stage):
            _add_binned(builder, member, output, columns, listed)
    classes = getattr(model, "classes_", None)
    link = "exp" if model.loss in ("poisson", "gamma") else _link(classes, len(bias))
    return Form(builder.build(), link, classes, categories=listed)


def _add_binned(
    builder: TreeBuilder, member: Any, output: int, columns: Ints, listed: Categories
) -> None:
    """Add a tree of histogram gradient boosting."""
    nodes, bits = member.nodes, member.raw_left_cat_bitsets

    def look(index: int) -> SplitOrLeaf[int]:
        node = nodes[index]
        if node["is_leaf"]:
            return builder.spread(node["value"], output)
        feature = int(columns[node["feature_idx"]])
        left, right = int(node["left"]), int(node["right"])
        missing = bool(node["missing_go_to_left"])
        if not node["is_categorical"]:
            return Question(feature, float(node["num_threshold"]), missing=missing), left, right
        words = bits[node["bitset_idx"]]
        goes_left = [bool(words[i // 32] >> (i % 32) & 1) for i in range(len(listed[feature]))]
        # categories it does not know go where missing ones go: ask for those that do not
        others = frozenset(float(i) for i, is_left in enumerate(goes_left) if is_left != missing)
        children = (right, left) if missing else (left, right)
        return Question(feature, among=others), *children

    builder.add(0, look)


def _bagged(model: Any) -> Form:
    """Read the mean of models that each see some of the features."""
    classes = getattr(model, "classes_", None)
    n_members = len(model.estimators_)
    builder = TreeBuilder(model.n_features_in_, np.zeros(1 if classes is None else len(classes)))
    for member, features in zip(model.estimators_, model.estimators_features_, strict=True):
        form = read(member)
        if (
            form is None
            or not isinstance(form.margin, Trees)
            or form.link != "identity"
            or form.categories
        ):
            raise Unreadable(
                f"{type(model).__name__} takes the mean of {type(member).__name__} models, "
                "whose predictions are not sums of trees: bag decision trees instead."
            )
        # labels were replaced by numbers of classes, and a member may have missed some
        outputs = np.zeros(1, np.int64) if classes is None else np.asarray(form.classes, np.int64)
        builder.include(form.margin, 1.0 / n_members, np.asarray(features), outputs)
    return Form(builder.build(), classes=classes)


def _adaptive(model: Any) -> Form:
    """Read AdaBoost: the votes of trees, weighted."""
    if library_class(model) == "AdaBoostRegressor":
        raise Unreadable(
            "AdaBoostRegressor predicts a weighted median of its trees, which is not a sum: "
            "use gradient boosting or a forest."
        )
    n_classes = model.n_classes_
    if n_classes == 1 or not all(library_class(member) in TREES for member in model.estimators_):
        raise Unreadable(
            "AdaBoostClassifier is read if it has decision trees and at least two classes: "
            "set estimator to a DecisionTreeClassifier."
        )
    # with two classes the margin is the second's vote less the first's; with more, probabilities
    # come from softmax(votes / (classes - 1))
    vote = (n_classes * np.eye(n_classes) - 1.0) / (n_classes - 1) ** 2
    if n_classes == 2:
        vote = vote[:, 1:] - vote[:, :1]
    builder = TreeBuilder(model.n_features_in_, np.zeros(vote.shape[1]))
    require_own_code(*(member.tree_ for member in model.estimators_))
    total = model.estimator_weights_.sum()
    for member, weight in zip(model.estimators_, model.estimator_weights_, strict=False):
        winner = member.classes_[np.argmax(member.tree_.value[:, 0], axis=1)]
        _add(builder, member.tree_, weight / total * vote[np.searchsorted(model.classes_, winner)])
    return Form(builder.build(), _link(model.classes_, vote.shape[1]), model.classes_)
