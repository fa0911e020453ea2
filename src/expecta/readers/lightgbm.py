"""Read boosted trees of LightGBM."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from expecta.readers import Unreadable
from expecta.readers.forms import Categories, Form, Question
from expecta.readers.library_class import library_class, require_own_code
from expecta.readers.tree_builder import (
    SplitOrLeaf,
    TreeBuilder,
    boosted_link,
    code_notes,
    float_below,
)

MAX_ZERO = float(np.float32(1e-35))  # LightGBM takes numbers up to this for 0
ESTIMATORS = frozenset({"LGBMModel", "LGBMRegressor", "LGBMClassifier", "LGBMRanker"})
LINKS = {
    **dict.fromkeys(["regression", "regression_l1", "huber", "fair", "quantile"], "identity"),
    **dict.fromkeys(["mape", "lambdarank", "rank_xendcg", "custom"], "identity"),
    **dict.fromkeys(["poisson", "gamma", "tweedie"], "exp"),
    **dict.fromkeys(["binary", "cross_entropy"], "logistic"),
    "multiclass": "softmax",
}


def read(model: Any, categories: Categories | None = None) -> Form | None:
    """Read a fitted model of LightGBM: an estimator of its scikit-learn interface or a booster.

    Returns None if it is something else. As in its predictions, trees after the best iteration
    do not count. The margin of two classes includes the parameter sigmoid. Categorical columns
    of arrays have no lists of categories: trees see them as they are.
    """
    booster = _booster(model)
    if booster is None:
        return None
    dump = booster.dump_model()
    # such as "binary sigmoid:1"; nothing if it is the user's own function
    objective, *options = dump.get("objective", "custom").split()
    reason = _unreadable(model, dump, objective, options)
    if reason:
        raise Unreadable(f"{type(model).__name__} {reason}")
    n_outputs = dump["num_tree_per_iteration"]
    classifier = library_class(model, "lightgbm") == "LGBMClassifier"
    binary = objective == "binary" and booster is model
    link, classes = boosted_link(
        model, LINKS[objective], n_outputs, classifier=classifier, binary=binary
    )
    scale = _option(options, "sigmoid") if objective == "binary" else 1.0
    trees = dump["tree_info"]
    if dump.get("average_output"):
        scale *= n_outputs / max(len(trees), 1)
    builder = TreeBuilder(dump["max_feature_idx"] + 1, np.zeros(n_outputs))
    for number, tree in enumerate(trees):
        _add(builder, tree["tree_structure"], number % n_outputs, scale)
    categorical = _categorical(booster)
    listed = _categories(booster, categorical)
    return Form(builder.build(), link, classes, code_notes(categorical, listed), listed)


def _booster(model: Any) -> Any:
    """Return what computes the predictions, or None if it is another library's."""
    name = library_class(model, "lightgbm")
    if name in ESTIMATORS:
        check_is_fitted(model)
        require_own_code(model.booster_)
        return model.booster_
    return model if name == "Booster" else None


def _unreadable(model: Any, dump: dict[str, Any], objective: str, options: list[str]) -> str:
    """Say what keeps a model from being read, if anything does."""
    if objective == "multiclassova":
        return (
            "has objective 'multiclassova', whose probabilities do not sum to 1: use 'multiclass'."
        )
    if "sqrt" in options:
        return "has reg_sqrt, which squares a sum of trees: fit without it."
    if objective not in LINKS:
        return (
            f"has objective {objective!r}, whose predictions are not a known function of a sum of "
            "trees: fit with another objective."
        )
    if any("leaf_coeff" in _first_leaf(tree["tree_structure"]) for tree in dump["tree_info"]):
        return "has linear_tree, so leaves are linear models: fit without it."
    if hasattr(model, "get_params") and model.get_params().get("pred_early_stop"):
        return "has pred_early_stop, which leaves out trees: set it to False."
    return ""


def _first_leaf(node: dict[str, Any]) -> dict[str, Any]:
    """Go left to a leaf."""
    while "left_child" in node:
        node = node["left_child"]
    return node


def _option(options: list[str], name: str) -> float:
    """Find a number among options such as "sigmoid:1"."""
    numbers = dict(option.split(":") for option in options if ":" in option)
    return float(numbers.get(name, 1.0))


def _add(builder: TreeBuilder, root: dict[str, Any], output: int, scale: float) -> None:
    """Add a tree."""

    def look(node: dict[str, Any]) -> SplitOrLeaf[dict[str, Any]]:
        if "left_child" not in node:
            return builder.spread(scale * float(node["leaf_value"]), output)
        return _question(node), node["left_child"], node["right_child"]

    builder.add(root, look)


def _question(node: dict[str, Any]) -> Question:
    """Read the question at a node."""
    feature = node["split_feature"]
    if node["decision_type"] == "==":
        among = frozenset(float(number) for number in node["threshold"].split("||"))
        return Question(feature, among=among)  # NaN goes right, whatever the missing type
    threshold, missing = float(node["threshold"]), bool(node["default_left"])
    zero = threshold >= 0.0
    if abs(threshold) <= MAX_ZERO:
        threshold = MAX_ZERO if zero else float_below(-MAX_ZERO)
    if node["missing_type"] == "None":
        missing = zero  # a missing value counts as 0
    elif node["missing_type"] == "Zero" and missing != zero:
        raise Unreadable(
            "A LightGBM model with zero_as_missing sends 0 elsewhere than its neighbours: "
            "put NaN in place of 0 in the data and fit without zero_as_missing."
        )
    return Question(feature, threshold, missing=missing)


def _categorical(booster: Any) -> list[int]:
    """List the categorical features, which only the text of a model tells."""
    text = str(booster.model_to_string(num_iteration=1))  # the same for all iterations
    match = re.search(r"^\[categorical_feature: ([\d,]+)\]$", text, re.MULTILINE)
    return sorted(int(feature) for feature in match[1].split(",")) if match else []


def _categories(booster: Any, features: list[int]) -> dict[int, list[Any]]:
    """Read the categories of a frame, in the order of their codes."""
    lists = booster.pandas_categorical or []
    if not lists:
        return {}
    if len(lists) != len(features):
        raise Unreadable(
            f"A LightGBM model has {len(lists)} categorical columns of a frame but treats "
            f"{len(features)} as categories, and does not tell which: make ordered categories "
            "whole numbers, leave categorical_feature out, and fit again."
        )
    return dict(zip(features, map(list, lists), strict=True))
