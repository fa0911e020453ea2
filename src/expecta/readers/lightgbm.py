"""Reads boosted trees of LightGBM."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from expecta.readers import Unreadable
from expecta.readers.forms import Form, Question
from expecta.readers.tree_builder import Builder, SplitOrLeaf, below, comes_from

__all__ = ["feature_values", "read"]

TINY = float(np.float32(1e-35))  # LightGBM takes numbers up to this for 0
LINKS = {
    "regression": "identity",
    "regression_l1": "identity",
    "huber": "identity",
    "fair": "identity",
    "quantile": "identity",
    "mape": "identity",
    "lambdarank": "identity",
    "rank_xendcg": "identity",
    "custom": "identity",
    "poisson": "exp",
    "gamma": "exp",
    "tweedie": "exp",
    "binary": "logistic",
    "cross_entropy": "logistic",
    "multiclass": "softmax",
}


def read(model: Any) -> Form | None:
    """Read a fitted model of LightGBM: an estimator of its scikit-learn interface or a booster.

    Returns None if it is something else. As in its predictions, trees after the best iteration
    do not count. The margin of two classes includes the parameter sigmoid.
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
    link, classes = LINKS[objective], None
    n_outputs = dump["num_tree_per_iteration"]
    if comes_from(model, "lightgbm", "LGBMClassifier"):
        classes = np.asarray(model.classes_)
        link = link if link in ("logistic", "softmax") else "none"
    elif link == "softmax":
        classes = np.arange(n_outputs)
    elif objective == "binary" and booster is model:
        classes = np.arange(2)
    scale = _option(options, "sigmoid") if objective == "binary" else 1.0
    trees = dump["tree_info"]
    if dump.get("average_output"):
        scale *= n_outputs / max(len(trees), 1)
    builder = Builder(dump["max_feature_idx"] + 1, np.zeros(n_outputs))
    for number, tree in enumerate(trees):
        _add(builder, tree["tree_structure"], number % n_outputs, scale)
    codes = [place for place in _categorical(booster) if place not in _values(booster)]
    note = f"Features {codes} hold categories as whole numbers."
    return Form(builder.build(), link, classes, (note,) if codes else ())


def feature_values(model: Any) -> dict[int, list[Any]]:
    """List the categories of features that were categorical in a frame.

    Trees see places in these lists. Categorical columns of arrays have none: trees see them as
    they are.
    """
    booster = _booster(model)
    return {} if booster is None else _values(booster)


def _booster(model: Any) -> Any:
    """Return what computes the predictions, or None if it is another library's."""
    if comes_from(model, "lightgbm", "LGBMModel"):
        check_is_fitted(model)
        return model.booster_
    return model if comes_from(model, "lightgbm", "Booster") else None


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
            f"has objective {objective!r}, whose predictions are no known function of a sum of "
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
    found = dict(option.split(":") for option in options if ":" in option)
    return float(found.get(name, 1.0))


def _add(builder: Builder, root: dict[str, Any], output: int, scale: float) -> None:
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
    if abs(threshold) <= TINY:
        threshold = TINY if zero else below(-TINY)
    if node["missing_type"] == "None":
        missing = zero  # an unknown value counts as 0
    elif node["missing_type"] == "Zero" and missing != zero:
        raise Unreadable(
            "A LightGBM model with zero_as_missing sends 0 elsewhere than its neighbours: "
            "put NaN in place of 0 in the data and fit without zero_as_missing."
        )
    return Question(feature, threshold, missing=missing)


def _categorical(booster: Any) -> list[int]:
    """List the categorical features, which only the text of a model tells."""
    found = re.search(r"^\[categorical_feature: ([\d,]+)\]$", _text(booster), re.MULTILINE)
    return sorted(int(feature) for feature in found[1].split(",")) if found else []


def _text(booster: Any) -> str:
    """Write a model with one iteration, for what is the same for all."""
    return str(booster.model_to_string(num_iteration=1))


def _values(booster: Any) -> dict[int, list[Any]]:
    """Read the categories of a frame, in the order of their codes."""
    lists, features = booster.pandas_categorical or [], _categorical(booster)
    if not lists:
        return {}
    if len(lists) != len(features):
        raise Unreadable(
            f"A LightGBM model has {len(lists)} categorical columns of a frame but treats "
            f"{len(features)} as categories, and does not tell which: make ordered categories "
            "whole numbers, leave categorical_feature out, and fit again."
        )
    return dict(zip(features, map(list, lists), strict=True))
