"""Reads boosted trees and boosted linear models of XGBoost."""

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
from expecta.readers.forms import Form, Linear, Question, Trees
from expecta.readers.tree_builder import Builder, SplitOrLeaf, below, comes_from

__all__ = ["feature_values", "read"]

LINKS = {
    "reg:squarederror": "identity",
    "reg:squaredlogerror": "identity",
    "reg:absoluteerror": "identity",
    "reg:pseudohubererror": "identity",
    "reg:quantileerror": "identity",
    "reg:linear": "identity",
    "rank:ndcg": "identity",
    "rank:map": "identity",
    "rank:pairwise": "identity",
    "binary:logitraw": "identity",
    "binary:logistic": "logistic",
    "reg:logistic": "logistic",
    "multi:softprob": "softmax",
    "multi:softmax": "softmax",
    "count:poisson": "exp",
    "reg:gamma": "exp",
    "reg:tweedie": "exp",
    "survival:cox": "exp",
    "survival:aft": "exp",
}


def read(model: Any) -> Form | None:
    """Read a fitted model of XGBoost: an estimator of its scikit-learn interface or a booster.

    Returns None if it is something else. As in its predictions, an estimator that stopped early
    has the trees up to its best iteration, and a booster all. Trees ask numbers with 32 bits.
    A category that it does not know goes left, as a number out of range does in XGBoost.
    """
    learner = _learner(model)
    if learner is None:
        return None
    objective = learner["objective"]["name"]
    if objective not in LINKS:
        raise Unreadable(
            f"{type(model).__name__} has objective {objective!r}, whose predictions are no known "
            "function of a sum of trees: fit with another objective."
        )
    bias = _bias(learner, LINKS[objective])
    classifies = comes_from(model, "xgboost", "XGBClassifier")
    if classifies and int(learner["learner_model_param"].get("num_target", 1)) > 1:
        raise Unreadable(
            f"{type(model).__name__} predicts {len(bias)} classes at once: "
            "fit a classifier for each."
        )
    link, classes = LINKS[objective], None
    if classifies:
        classes = np.asarray(model.classes_)
        link = link if link in ("logistic", "softmax") else "none"
    elif link == "softmax":
        classes = np.arange(len(bias))
    elif objective == "binary:logistic" and comes_from(model, "xgboost", "Booster"):
        classes = np.arange(2)
    booster = learner["gradient_booster"]
    if booster["name"] == "gblinear":
        note = "XGBoost takes an unknown value for 0 in a linear model."
        return Form(_linear(model, booster, len(bias)), link, classes, (note,))
    best = getattr(model, "best_iteration", None) if hasattr(model, "get_booster") else None
    return Form(_trees(learner, bias, best), link, classes, _notes(learner))


def feature_values(model: Any) -> dict[int, list[Any]]:
    """List the categories of features that were categorical in a frame.

    Trees see places in these lists. Versions before 3.1 do not keep them; there, and for arrays
    with categorical columns, trees see the codes that the model was given.
    """
    learner = _learner(model)
    return {} if learner is None else _categories(learner)


def _learner(model: Any) -> dict[str, Any] | None:
    """Return all that XGBoost would write to a file."""
    booster = model
    if comes_from(model, "xgboost", "XGBModel"):
        check_is_fitted(model)
        if not np.isnan(model.missing):
            raise Unreadable(
                f"{type(model).__name__} has missing={model.missing}, a number that counts as "
                "unknown: put NaN in its place in the data and set_params(missing=np.nan)."
            )
        booster = model.get_booster()
    elif not comes_from(model, "xgboost", "Booster"):
        return None
    learner: dict[str, Any] = json.loads(bytes(booster.save_raw("json")))["learner"]
    return learner


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


def _trees(learner: dict[str, Any], bias: Floats, best: int | None) -> Trees:
    """Read the trees up to the best iteration, or all."""
    booster = learner["gradient_booster"]
    model = booster["gbtree"]["model"] if booster["name"] == "dart" else booster["model"]
    trees, output_of = model["trees"], model["tree_info"]
    weights = booster.get("weight_drop", np.ones(len(trees)))
    if best is not None:
        forest = max(int(model["gbtree_model_param"]["num_parallel_tree"]), 1)
        ends = model.get("iteration_indptr") or np.arange(0, len(trees) + 1, forest * len(bias))
        trees = trees[: ends[best + 1]]
    builder = Builder(int(learner["learner_model_param"]["num_feature"]), bias)
    for tree, output, weight in zip(trees, output_of, weights, strict=False):
        _add(builder, tree, output, float(weight))
    return builder.build()


def _add(builder: Builder, tree: dict[str, Any], output: int, weight: float) -> None:
    """Add a tree."""
    left, right = tree["left_children"], tree["right_children"]
    feature, condition = tree["split_indices"], tree["split_conditions"]
    size = int(tree["tree_param"]["size_leaf_vector"])
    listed = dict(
        zip(
            tree["categories_nodes"],
            zip(tree["categories_segments"], tree["categories_sizes"], strict=True),
            strict=True,
        )
    )

    def value(node: int) -> Floats:
        if size <= 1:
            return builder.spread(weight * condition[node], output)
        # since 3.2 vectors of leaves are apart, their numbers in place of right children
        apart = "leaf_weights" in tree
        row = right[node] if apart else node
        found = tree["leaf_weights" if apart else "base_weights"][row * size : (row + 1) * size]
        return weight * np.array(found)

    def look(node: int) -> SplitOrLeaf[int]:
        if left[node] < 0:
            return value(node)
        default_left = bool(tree["default_left"][node])
        if node not in listed:
            most = below(condition[node], np.float32)
            question = Question(feature[node], most, single=True, missing=default_left)
            return question, left[node], right[node]
        first, number = listed[node]
        goes_right = frozenset(map(float, tree["categories"][first : first + number]))
        question = Question(feature[node], among=goes_right, missing=not default_left)
        return question, right[node], left[node]

    builder.add(0, look)


def _categories(learner: dict[str, Any]) -> dict[int, list[Any]]:
    """Read the categories of a frame, in the order of their codes."""
    booster = learner["gradient_booster"]
    model = booster["gbtree"]["model"] if booster["name"] == "dart" else booster["model"]
    found: dict[int, list[Any]] = {}
    for feature, kept in enumerate(model.get("cats", {}).get("enc", [])):
        values = kept["values"]
        if "offsets" not in kept:
            found[feature] = values
        elif values:
            # it takes lengths for those of bytes, and loses the end of other texts
            if min(values) < 0 or max(values) > 127:
                raise Unreadable(
                    f"XGBoost does not keep the categories of feature {feature}, which have other "
                    "letters than English ones: rename these categories and fit again."
                )
            ends, text = kept["offsets"], bytes(values).decode("ascii")
            found[feature] = [text[a:b] for a, b in pairwise(ends)]
    return found


def _notes(learner: dict[str, Any]) -> tuple[str, ...]:
    """Warn of categories that are codes."""
    kinds = [place for place, kind in enumerate(learner["feature_types"]) if kind == "c"]
    codes = [place for place in kinds if place not in _categories(learner)]
    if not codes:
        return ()
    return (f"Features {codes} hold categories as whole numbers, the codes of the training data.",)
