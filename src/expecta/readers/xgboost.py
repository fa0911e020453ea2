"""Read boosted trees and boosted linear models of XGBoost."""

from __future__ import annotations

import importlib
import json
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.utils.validation import check_is_fitted

from expecta.common.arrays import Floats
from expecta.readers import Unreadable
from expecta.readers.forms import Categories, Form, Linear, Question, Trees
from expecta.readers.library_class import library_class, require_own_code
from expecta.readers.tree_builder import (
    SplitOrLeaf,
    TreeBuilder,
    boosted_link,
    code_notes,
    float_below,
)

ESTIMATORS = frozenset(
    {"XGBModel", "XGBRegressor", "XGBClassifier", "XGBRanker", "XGBRFRegressor", "XGBRFClassifier"}
)
LINKS = {
    **dict.fromkeys(["reg:squarederror", "reg:squaredlogerror", "reg:absoluteerror"], "identity"),
    **dict.fromkeys(["reg:pseudohubererror", "reg:quantileerror", "reg:linear"], "identity"),
    **dict.fromkeys(["rank:ndcg", "rank:map", "rank:pairwise", "binary:logitraw"], "identity"),
    **dict.fromkeys(["binary:logistic", "reg:logistic"], "logistic"),
    **dict.fromkeys(["multi:softprob", "multi:softmax"], "softmax"),
    **dict.fromkeys(["count:poisson", "reg:gamma", "reg:tweedie"], "exp"),
    **dict.fromkeys(["survival:cox", "survival:aft"], "exp"),
}


def read(model: Any, categories: Categories | None = None) -> Form | None:
    """Read a fitted model of XGBoost: an estimator of its scikit-learn interface or a booster.

    Returns None if it is something else. As in its predictions, an estimator that stopped early
    has the trees up to its best iteration, and a booster all. Trees ask numbers with 32 bits.
    A category that it does not know goes left, as a number out of range does in XGBoost.
    Versions before 3.1 do not keep the categories of a frame; there, and for arrays with
    categorical columns, trees see the codes that the model was given.
    """
    learner = _learner(model)
    if learner is None:
        return None
    objective = learner["objective"]["name"]
    if objective not in LINKS:
        raise Unreadable(
            f"{type(model).__name__} has objective {objective!r}, whose predictions are not a "
            "known function of a sum of trees: fit with another objective."
        )
    bias = _bias(learner, LINKS[objective])
    name = library_class(model, "xgboost")
    classifier = name in ("XGBClassifier", "XGBRFClassifier")
    if classifier and int(learner["learner_model_param"].get("num_target", 1)) > 1:
        raise Unreadable(
            f"{type(model).__name__} predicts {len(bias)} classes at once: "
            "fit a classifier for each."
        )
    binary = objective == "binary:logistic" and name == "Booster"
    link, classes = boosted_link(
        model, LINKS[objective], len(bias), classifier=classifier, binary=binary
    )
    booster = learner["gradient_booster"]
    if booster["name"] == "gblinear":
        note = "XGBoost takes a missing value for 0 in a linear model."
        return Form(_linear(model, booster, len(bias)), link, classes, (note,))
    best = getattr(model, "best_iteration", None) if hasattr(model, "get_booster") else None
    listed = _categories(learner)
    categorical = [j for j, kind in enumerate(learner["feature_types"]) if kind == "c"]
    notes = code_notes(categorical, listed)
    return Form(_trees(learner, bias, best), link, classes, notes, listed)


def _learner(model: Any) -> dict[str, Any] | None:
    """Return all that XGBoost would write to a file."""
    booster = model
    name = library_class(model, "xgboost")
    if name in ESTIMATORS:
        check_is_fitted(model)
        if not np.isnan(model.missing):
            raise Unreadable(
                f"{type(model).__name__} has missing={model.missing}, a number that counts as "
                "unknown: put NaN in its place in the data and set_params(missing=np.nan)."
            )
        booster = model.get_booster()
        require_own_code(booster)
    elif name == "Booster":
        booster = model
    else:
        return None
    return json.loads(bytes(booster.save_raw("json")))["learner"]


def _bias(learner: dict[str, Any], link: str) -> Floats:
    """Compute the constant of the margin, which is kept as a prediction."""
    sizes = learner["learner_model_param"]
    n_outputs = max(int(sizes["num_class"]), int(sizes.get("num_target", 1)), 1)
    base = np.atleast_1d(np.float64(json.loads(sizes["base_score"])))  # a vector since 3.1
    if link == "logistic":
        base = logit(base)
    elif link == "exp":
        base = np.log(base)
    return np.repeat(base, n_outputs // len(base))


def _linear(model: Any, booster: dict[str, Any], n_outputs: int) -> Linear:
    """Read a boosted linear model.

    Its constant is asked for: in some versions only the first output's base score counts.
    """
    weights = np.reshape(np.float64(booster["model"]["weights"]), (-1, n_outputs))
    xgboost: Any = importlib.import_module("xgboost")
    origin = xgboost.DMatrix(np.zeros((1, len(weights) - 1)), nthread=1)
    machine = model.get_booster() if hasattr(model, "get_booster") else model
    bias = machine.predict(origin, output_margin=True, validate_features=False)
    return Linear(weights[:-1], np.float64(bias).reshape(n_outputs))


def _tree_model(learner: dict[str, Any]) -> dict[str, Any]:
    """Return the part that holds the trees and the categories of their features."""
    booster = learner["gradient_booster"]
    return (booster["gbtree"] if booster["name"] == "dart" else booster)["model"]


def _trees(learner: dict[str, Any], bias: Floats, best: int | None) -> Trees:
    """Read the trees up to the best iteration, or all."""
    model = _tree_model(learner)
    trees, output_of = model["trees"], model["tree_info"]
    weights = learner["gradient_booster"].get("weight_drop", np.ones(len(trees)))
    if best is not None:
        forest = max(int(model["gbtree_model_param"]["num_parallel_tree"]), 1)
        ends = model.get("iteration_indptr") or np.arange(0, len(trees) + 1, forest * len(bias))
        trees = trees[: ends[best + 1]]
    builder = TreeBuilder(int(learner["learner_model_param"]["num_feature"]), bias)
    for tree, output, weight in zip(trees, output_of, weights, strict=False):
        _add(builder, tree, output, float(weight))
    return builder.build()


def _add(builder: TreeBuilder, tree: dict[str, Any], output: int, weight: float) -> None:
    """Add a tree."""
    left, right = tree["left_children"], tree["right_children"]
    feature, condition = tree["split_indices"], tree["split_conditions"]
    size = int(tree["tree_param"]["size_leaf_vector"])
    segments = zip(tree["categories_segments"], tree["categories_sizes"], strict=True)
    segment_of = dict(zip(tree["categories_nodes"], segments, strict=True))

    def value(node: int) -> Floats:
        if size <= 1:
            return builder.spread(weight * condition[node], output)
        # since 3.2 vectors of leaves are apart, their numbers in place of right children
        apart = "leaf_weights" in tree
        row = right[node] if apart else node
        weights = tree["leaf_weights" if apart else "base_weights"]
        return weight * np.array(weights[row * size : (row + 1) * size])

    def look(node: int) -> SplitOrLeaf[int]:
        if left[node] < 0:
            return value(node)
        default_left = bool(tree["default_left"][node])
        if node not in segment_of:
            at_most = float_below(condition[node], np.float32)
            question = Question(feature[node], at_most, single=True, missing=default_left)
            return question, left[node], right[node]
        first, number = segment_of[node]
        goes_right = frozenset(map(float, tree["categories"][first : first + number]))
        question = Question(feature[node], among=goes_right, missing=not default_left)
        return question, right[node], left[node]

    builder.add(0, look)


def _categories(learner: dict[str, Any]) -> dict[int, list[Any]]:
    """Read the categories of a frame, in the order of their codes."""
    listed: dict[int, list[Any]] = {}
    for feature, encoding in enumerate(_tree_model(learner).get("cats", {}).get("enc", [])):
        values = encoding["values"]
        if "offsets" not in encoding:
            listed[feature] = values
        elif values:
            # it takes lengths for those of bytes, and loses the end of other texts
            if min(values) < 0 or max(values) > 127:
                raise Unreadable(
                    f"XGBoost does not keep the categories of feature {feature}, which have other "
                    "letters than English ones: rename these categories and fit again."
                )
            text = bytes(values).decode("ascii")
            listed[feature] = [text[a:b] for a, b in pairwise(encoding["offsets"])]
    return listed
