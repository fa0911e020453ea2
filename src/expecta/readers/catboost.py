"""Read boosted trees of CatBoost."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from expecta.readers import Unreadable
from expecta.readers.forms import Categories, Form, Question
from expecta.readers.library_class import library_class
from expecta.readers.tree_builder import SplitOrLeaf, TreeBuilder

ESTIMATORS = frozenset({"CatBoost", "CatBoostRegressor", "CatBoostClassifier", "CatBoostRanker"})
LOGISTIC = ("Logloss", "CrossEntropy", "Focal")
EXPONENTIAL = ("Poisson", "Tweedie")
WHY_NOT = {
    "MultiClassOneVsAll": "whose probabilities do not sum to 1: use 'MultiClass'",
    "MultiLogloss": "which is of several classes at once: fit a classifier for each",
    "MultiCrossEntropy": "which is of several classes at once: fit a classifier for each",
    "RMSEWithUncertainty": "which predicts a variance too: use 'RMSE'",
}


def read(model: Any, categories: Categories | None = None) -> Form | None:
    """Read a fitted model of CatBoost; None if it is something else.

    Parameters
    ----------
    model
        The model. Its categorical features must be one-hot encoded: see ``one_hot_max_size``.
    categories
        The categories of categorical features, by number of the feature. CatBoost only keeps
        hashes of them, so they are needed if trees use such features. Other categories than
        these are taken for ones that it does not know.
    """
    kind = library_class(model, "catboost")
    if kind not in ESTIMATORS:
        return None
    if not model.is_fitted():
        raise NotFittedError(f"This {type(model).__name__} is not fitted: call fit first.")
    name = type(model).__name__
    if model.get_text_feature_indices() or model.get_embedding_feature_indices():
        raise Unreadable(
            f"{name} has text or embedding features, which are not numbers: fit without them."
        )
    dump = _dump(model)
    loss = dump["model_info"]["params"]["loss_function"]["type"]
    if loss in WHY_NOT:
        raise Unreadable(f"{name} has loss_function {loss!r}, {WHY_NOT[loss]}.")
    scale, bias = dump["scale_and_bias"]
    builder = TreeBuilder(len(model.feature_names_), np.atleast_1d(np.float64(bias)))
    features, given = model.get_cat_feature_indices(), categories or {}
    listed = {feature: list(given[feature]) for feature in features if feature in given}
    splits = _SplitReader(name, dump, _hashes(model, listed))
    for tree in dump.get("oblivious_trees", []):
        _add_oblivious(builder, tree, scale, splits)
    for tree in dump.get("trees", []):
        _add(builder, tree, scale, splits)
    link, classes = "identity", None
    if loss in LOGISTIC or loss == "MultiClass":
        link, classes = "softmax" if loss == "MultiClass" else "logistic", model.classes_
    elif kind == "CatBoostClassifier":
        link, classes = "none", model.classes_
    elif loss in EXPONENTIAL and kind == "CatBoostRegressor":
        link = "exp"  # the plain class predicts margins
    classes = None if classes is None else np.asarray(classes)
    return Form(builder.build(), link, classes, categories=listed)


def _dump(model: Any, **options: Any) -> dict[str, Any]:
    """Return all that CatBoost would write to a file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json", **options)
        dump: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return dump


def _hashes(model: Any, listed: dict[int, list[Any]]) -> dict[int, dict[int, float]]:
    """Return the position of each hash among the categories of each feature."""
    if not listed:
        return {}
    texts = {feature: [_text(value) for value in values] for feature, values in listed.items()}
    rows = np.full((max(map(len, texts.values())), len(model.feature_names_)), 0, dtype=object)
    for feature in model.get_cat_feature_indices():
        rows[:, feature] = ""
    for feature, values in texts.items():
        rows[: len(values), feature] = values
    catboost: Any = importlib.import_module("catboost")
    pool = catboost.Pool(
        rows.tolist(),
        cat_features=model.get_cat_feature_indices(),
        feature_names=model.feature_names_,
    )
    # with data, it writes their hashes along
    hashes = _dump(model, pool=pool)["features_info"]["cat_features_hash"]
    hash_of = {entry["value"]: int(entry["hash"]) for entry in hashes}
    return {
        feature: {hash_of[text]: float(position) for position, text in enumerate(values)}
        for feature, values in texts.items()
    }


def _text(value: Any) -> str:
    """Write a category as CatBoost does, which takes whole numbers and text."""
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value) if whole else value)


class _SplitReader:
    """Reads splits. CatBoost goes right where x is greater, or is the category."""

    def __init__(
        self, name: str, dump: dict[str, Any], hashes: dict[int, dict[int, float]]
    ) -> None:
        features = dump["features_info"]
        self._name, self._hashes = name, hashes
        self._float = {
            entry["feature_index"]: entry for entry in features.get("float_features", [])
        }
        self._cat = {
            entry["feature_index"]: entry["flat_feature_index"]
            for entry in features.get("categorical_features", [])
        }

    def __call__(self, split: dict[str, Any]) -> tuple[Question, bool]:
        """Return a question, and whether yes goes to CatBoost's right."""
        if split["split_type"] == "FloatFeature":
            column = self._float[split["float_feature_index"]]
            missing = column["nan_value_treatment"] != "AsTrue"
            feature, border = column["flat_feature_index"], float(split["border"])
            return Question(feature, border, single=True, missing=missing), False
        if split["split_type"] != "OneHotFeature":
            raise Unreadable(
                f"{self._name} has {split['split_type']} features, which are statistics of the "
                "training data: set one_hot_max_size to the greatest number of categories and "
                "max_ctr_complexity to 0, or encode categories before."
            )
        feature = self._cat[split["cat_feature_index"]]
        if feature not in self._hashes:
            raise Unreadable(
                f"{self._name} only keeps hashes of the categories of feature {feature}: "
                "give its categories."
            )
        position = self._hashes[feature].get(int(split["value"]) & 0xFFFFFFFF)
        return Question(feature, among=frozenset(() if position is None else (position,))), True


def _add_oblivious(
    builder: TreeBuilder, tree: dict[str, Any], scale: float, splits: _SplitReader
) -> None:
    """Add a tree that asks the same at all nodes of a depth."""
    levels = [splits(split) for split in tree.get("splits") or []]
    leaves = scale * np.reshape(np.float64(tree["leaf_values"]), (2 ** len(levels), -1))

    def look(node: tuple[int, int]) -> SplitOrLeaf[tuple[int, int]]:
        depth, leaf = node
        if depth < len(levels):
            question, yes_is_right = levels[depth]
            low, high = (depth + 1, leaf), (depth + 1, leaf | 1 << depth)
            return (question, high, low) if yes_is_right else (question, low, high)
        return leaves[leaf]

    builder.add((0, 0), look)


def _add(builder: TreeBuilder, tree: dict[str, Any], scale: float, splits: _SplitReader) -> None:
    """Add any other tree."""

    def look(node: dict[str, Any]) -> SplitOrLeaf[dict[str, Any]]:
        if "split" not in node:
            return scale * np.atleast_1d(np.float64(node["value"]))
        question, yes_is_right = splits(node["split"])
        sides = ("right", "left") if yes_is_right else ("left", "right")
        return question, node[sides[0]], node[sides[1]]

    builder.add(tree, look)
