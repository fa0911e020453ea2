"""Reads boosted trees of CatBoost."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from expecta.common.arrays import Floats
from expecta.readers import Unreadable
from expecta.readers.forms import Form, Question
from expecta.readers.tree_builder import Builder, SplitOrLeaf, comes_from

__all__ = ["feature_values", "read"]

LOGISTIC = ("Logloss", "CrossEntropy", "Focal")
EXPONENTIAL = ("Poisson", "Tweedie")
WHY_NOT = {
    "MultiClassOneVsAll": "whose probabilities do not sum to 1: use 'MultiClass'",
    "MultiLogloss": "which is of several classes at once: fit a classifier for each",
    "MultiCrossEntropy": "which is of several classes at once: fit a classifier for each",
    "RMSEWithUncertainty": "which predicts a variance too: use 'RMSE'",
}


def read(model: Any, values: Mapping[int, Sequence[Any]] | None = None) -> Form | None:
    """Read a fitted model of CatBoost; None if it is something else.

    Parameters
    ----------
    model
        The model. Its categorical features must be one-hot encoded: see ``one_hot_max_size``.
    values
        The categories of categorical features, by number of the feature. CatBoost only keeps
        hashes of them, so they are needed if trees use such features. Trees see places in
        these lists. Other categories than these are taken for ones that it does not know.
    """
    if not comes_from(model, "catboost", "CatBoost"):
        return None
    if not model.is_fitted():
        raise NotFittedError(f"This {type(model).__name__} is not fitted: call fit first.")
    name = type(model).__name__
    if model.get_text_feature_indices() or model.get_embedding_feature_indices():
        raise Unreadable(
            f"{name} has text or embedding features, which are no numbers: fit without them."
        )
    dump = _dump(model)
    loss = dump["model_info"]["params"]["loss_function"]["type"]
    if loss in WHY_NOT:
        raise Unreadable(f"{name} has loss_function {loss!r}, {WHY_NOT[loss]}.")
    scale, bias = dump["scale_and_bias"]
    builder = Builder(len(model.feature_names_), np.atleast_1d(np.float64(bias)))
    asker = _Asker(name, dump, _hashes(model, values or {}))
    for tree in dump.get("oblivious_trees", []):
        _add_oblivious(builder, tree, scale, asker)
    for tree in dump.get("trees", []):
        _add(builder, tree, scale, asker)
    link, classes = "identity", None
    if loss in LOGISTIC or loss == "MultiClass":
        link, classes = "softmax" if loss == "MultiClass" else "logistic", model.classes_
    elif comes_from(model, "catboost", "CatBoostClassifier"):
        link, classes = "none", model.classes_
    elif loss in EXPONENTIAL and comes_from(model, "catboost", "CatBoostRegressor"):
        link = "exp"  # the plain class predicts margins
    return Form(builder.build(), link, None if classes is None else np.asarray(classes))


def feature_values(
    model: Any, values: Mapping[int, Sequence[Any]] | None = None
) -> dict[int, list[Any]]:
    """List the categories of categorical features, of those that are given."""
    if not comes_from(model, "catboost", "CatBoost"):
        return {}
    features, given = model.get_cat_feature_indices(), values or {}
    return {feature: list(given[feature]) for feature in features if feature in given}


def _dump(model: Any, **options: Any) -> dict[str, Any]:
    """Return all that CatBoost would write to a file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json", **options)
        dump: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return dump


def _hashes(model: Any, values: Mapping[int, Sequence[Any]]) -> dict[int, dict[int, float]]:
    """Find the place of each hash among the categories of each feature."""
    features = [feature for feature in model.get_cat_feature_indices() if feature in values]
    if not features:
        return {}
    texts = {feature: [_text(value) for value in values[feature]] for feature in features}
    rows = np.full((max(map(len, texts.values())), len(model.feature_names_)), 0, dtype=object)
    for feature in model.get_cat_feature_indices():
        rows[:, feature] = ""
    for feature, listed in texts.items():
        rows[: len(listed), feature] = listed
    catboost: Any = importlib.import_module("catboost")
    pool = catboost.Pool(
        rows.tolist(),
        cat_features=model.get_cat_feature_indices(),
        feature_names=model.feature_names_,
    )
    # with data, it writes their hashes along
    hashes = _dump(model, pool=pool)["features_info"]["cat_features_hash"]
    code = {each["value"]: int(each["hash"]) for each in hashes}
    return {
        feature: {code[text]: float(place) for place, text in enumerate(listed)}
        for feature, listed in texts.items()
    }


def _text(value: Any) -> str:
    """Write a category as CatBoost does, which takes whole numbers and text."""
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value) if whole else value)


class _Asker:
    """Reads questions. CatBoost goes right where x is greater, or is the category."""

    def __init__(
        self, name: str, dump: dict[str, Any], hashes: dict[int, dict[int, float]]
    ) -> None:
        features = dump["features_info"]
        self._name, self._hashes = name, hashes
        self._float = {each["feature_index"]: each for each in features.get("float_features", [])}
        self._cat = {
            each["feature_index"]: each["flat_feature_index"]
            for each in features.get("categorical_features", [])
        }

    def __call__(self, split: dict[str, Any]) -> tuple[Question, bool]:
        """Return a question, and whether yes goes to CatBoost's right."""
        if split["split_type"] == "FloatFeature":
            about = self._float[split["float_feature_index"]]
            greater = about["nan_value_treatment"] == "AsTrue"
            question = Question(
                about["flat_feature_index"],
                float(split["border"]),
                single=True,
                missing=not greater,
            )
            return question, False
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
                "give its categories as values."
            )
        place = self._hashes[feature].get(int(split["value"]) & 0xFFFFFFFF)
        return Question(feature, among=frozenset(() if place is None else (place,))), True


def _add_oblivious(builder: Builder, tree: dict[str, Any], scale: float, asker: _Asker) -> None:
    """Add a tree that asks the same at all nodes of a depth."""
    splits = [asker(split) for split in tree.get("splits") or []]
    leaves = scale * np.reshape(np.float64(tree["leaf_values"]), (2 ** len(splits), -1))

    def look(node: tuple[int, int]) -> SplitOrLeaf[tuple[int, int]]:
        depth, leaf = node
        if depth < len(splits):
            question, yes_is_right = splits[depth]
            low, high = (depth + 1, leaf), (depth + 1, leaf | 1 << depth)
            return (question, high, low) if yes_is_right else (question, low, high)
        value: Floats = leaves[leaf]
        return value

    builder.add((0, 0), look)


def _add(builder: Builder, tree: dict[str, Any], scale: float, asker: _Asker) -> None:
    """Add any other tree."""

    def look(node: dict[str, Any]) -> SplitOrLeaf[dict[str, Any]]:
        if "split" not in node:
            return scale * np.atleast_1d(np.float64(node["value"]))
        question, yes_is_right = asker(node["split"])
        sides = ("right", "left") if yes_is_right else ("left", "right")
        return question, node[sides[0]], node[sides[1]]

    builder.add(tree, look)
