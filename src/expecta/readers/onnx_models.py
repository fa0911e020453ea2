"""Read tree ensembles and linear models of ONNX files."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError, FormatError
from expecta.readers.forms import Form, Linear, Question
from expecta.readers.onnx_messages import OnnxGraph, OnnxNode, read_graph
from expecta.readers.tree_builder import SplitOrLeaf, TreeBuilder, float_below

MODELS = {
    *("TreeEnsembleRegressor", "TreeEnsembleClassifier", "LinearRegressor", "LinearClassifier"),
}
# what may stand before and after a model, and changes none of its numbers
NEUTRAL = {"Cast", "Identity", "ZipMap", "Concat", "Normalizer", "Reshape", "ArrayFeatureExtractor"}
MAX_OUTPUTS, MAX_FEATURES = 10_000, 1_000_000
MODES = {  # the operator, whether a strict one is meant, and whether yes is no
    "BRANCH_LEQ": (False, False),
    "BRANCH_LT": (True, False),
    "BRANCH_GTE": (True, True),
    "BRANCH_GT": (False, True),
}


def read_onnx(path: str, data: bytes) -> tuple[Form, list[str] | None]:
    """Return the form of a model, and the names of its columns where it has some.

    Numbers are rounded to 32 bits before a tree asks for them, as ONNX does. Before the model may
    stand a ``Scaler`` of a linear one, and what puts columns together; after it, what names
    classes.

    Raises
    ------
    FormatError
        If it is no ONNX file.
    DomainError
        If its graph does anything else.
    """
    graph = read_graph(path, data)
    models = [node for node in graph.nodes if node.kind in MODELS]
    known = MODELS | NEUTRAL | {"Scaler"}
    others = Counter(n.kind for n in graph.nodes if n.kind not in known and not _is_one(n, graph))
    if len(models) != 1 or others:
        odd = ", ".join(others) if others else f"{len(models)} models"
        raise DomainError(
            f"{path}: the graph has {odd}; what is read is one {' or '.join(sorted(MODELS))} "
            f"with casts, labels and a scaler of linear models around it"
        )
    (node,) = models
    normalised = any(one.kind == "Normalizer" for one in graph.nodes)
    try:
        columns = _columns(graph, node)
        if node.kind.startswith("Linear"):
            form = _linear(node, normalised)
        else:
            form = _trees(node, sum(columns.values()), normalised, path)
        form = _scaled(form, graph, path)
    except (ArithmeticError, KeyError, IndexError, TypeError, AttributeError) as problem:
        raise FormatError(path, None, f"the ONNX file is damaged ({problem!r:.100})") from None
    except ValueError as problem:
        if isinstance(problem, DomainError):
            raise
        raise FormatError(path, None, f"the ONNX file is damaged ({problem!r:.100})") from None
    named = all(size == 1 for size in columns.values()) and len(columns) > 1
    return form, list(columns) if named else None


def _is_one(node: OnnxNode, graph: OnnxGraph) -> bool:
    """Whether a node multiplies by one."""
    factors = [graph.constants.get(name) for name in node.inputs]
    return node.kind == "Mul" and any(f is not None and np.all(f == 1.0) for f in factors)


def _columns(graph: OnnxGraph, model: OnnxNode) -> dict[str, int]:
    """Return the inputs in the order in which the model sees them."""
    made = {name: node for node in graph.nodes for name in node.outputs}
    columns: dict[str, int] = {}
    todo = list(model.inputs[:1])
    for _ in range(100_000):
        if not todo:
            break
        name = todo.pop(0)
        if name in graph.inputs:
            columns[name] = graph.inputs[name]
        elif name in made:
            todo = [*made[name].inputs, *todo]
    return columns


def _classes(node: OnnxNode) -> Any:
    for name in ("classlabels_strings", "classlabels_ints", "classlabels_int64s"):
        if node.attributes.get(name) is not None:
            return node.attributes[name]
    raise DomainError("the classes of the ONNX model have no labels")


def _link(post: str, n_outputs: int, n_classes: int, normalised: bool) -> str:
    """Return the link of a classifier, by how its scores become probabilities."""
    if post == "NONE":
        return "identity"
    if post == "SOFTMAX" and n_outputs == n_classes:
        return "softmax"
    if post == "LOGISTIC" and n_outputs == 1:
        return "logistic"
    if post == "LOGISTIC" and normalised:
        return "one-vs-rest"
    raise DomainError(f"the post_transform {post!r} of the ONNX model is not read")


def _linear(node: OnnxNode, normalised: bool) -> Form:
    given = node.attributes
    post = given.get("post_transform") or "NONE"
    bias = given.get("intercepts")
    classes = _classes(node) if node.kind == "LinearClassifier" else None
    n_outputs = len(bias) if bias is not None else given.get("targets", 1)
    weights = np.reshape(given["coefficients"], (n_outputs, -1)).T
    bias = np.zeros(n_outputs) if bias is None else bias
    if classes is None:
        if post != "NONE":
            raise DomainError(f"the post_transform {post!r} of the ONNX model is not read")
        return Form(Linear(np.ascontiguousarray(weights), bias))
    opposed = n_outputs == 2 and np.array_equal(weights[:, 0], -weights[:, 1])
    if post == "LOGISTIC" and opposed and bias[0] == -bias[1]:
        weights, bias = weights[:, 1:], bias[1:]
    if post == "NONE":
        return Form(Linear(np.ascontiguousarray(weights), bias), "none", classes)
    link = _link(post, len(bias), len(classes), normalised)
    return Form(Linear(np.ascontiguousarray(weights), bias), link, classes)


def _trees(node: OnnxNode, n_features: int, normalised: bool, path: str) -> Form:
    given = node.attributes
    classifier = node.kind == "TreeEnsembleClassifier"
    classes = _classes(node) if classifier else None
    leaf = "class" if classifier else "target"
    outputs: Ints = given[f"{leaf}_ids"]
    n_features = max(n_features, int(np.max(given["nodes_featureids"], initial=0)) + 1)
    single = classes is not None and len(classes) == 2 and len(np.unique(outputs)) == 1
    n_outputs = 1 if single else len(classes) if classes is not None else given["n_targets"]
    if not 0 < n_outputs <= MAX_OUTPUTS or n_features > MAX_FEATURES:
        raise DomainError(f"{path}: the model has {n_outputs} outputs of {n_features} features")
    outputs = np.zeros_like(outputs) if single else outputs
    base = given.get("base_values")
    bias = np.zeros(n_outputs) if base is None else np.resize(base[-n_outputs:], n_outputs)
    scale = 1.0
    if given.get("aggregate_function", "SUM") == "AVERAGE":
        scale = 1.0 / len(np.unique(given["nodes_treeids"]))
    elif given.get("aggregate_function", "SUM") != "SUM":
        raise DomainError(f"{path}: only sums and averages of trees are read")
    builder = TreeBuilder(n_features, bias)
    _add_trees(builder, given, leaf, outputs, scale, path)
    trees = builder.build()
    post = given.get("post_transform") or "NONE"
    if classes is None:
        if post != "NONE":
            raise DomainError(f"the post_transform {post!r} of the ONNX model is not read")
        return Form(trees)
    if single and post == "NONE":  # the probability of the second class
        both = np.array([-1.0, 1.0])
        value, constant = trees.value @ both[None], np.array([1.0, 0.0]) + trees.bias @ both[None]
        return Form(replace(trees, value=value, bias=constant), "identity", classes)
    return Form(trees, _link(post, n_outputs, len(classes), normalised), classes)


def _add_trees(
    builder: TreeBuilder, given: dict[str, Any], leaf: str, outputs: Ints, scale: float, path: str
) -> None:
    """Add the trees; nodes are found by the numbers of tree and node."""
    ids = list(zip(given["nodes_treeids"].tolist(), given["nodes_nodeids"].tolist(), strict=True))
    place = {key: i for i, key in enumerate(ids)}
    values: dict[int, Floats] = {}
    leaves = zip(
        *(given[f"{leaf}_{name}"].tolist() for name in ("treeids", "nodeids", "weights")),
        outputs.tolist(),
        strict=True,
    )
    for tree, number, weight, output in leaves:
        at = place[tree, number]
        values[at] = values.get(at, 0.0) + builder.spread(scale * weight, output)
    modes, feature = given["nodes_modes"], given["nodes_featureids"]
    threshold, missing = given["nodes_values"], given.get("nodes_missing_value_tracks_true")
    seen: set[int] = set()

    def look(at: int) -> SplitOrLeaf[int]:
        if at in seen:
            raise DomainError(f"{path}: a node of a tree is reached twice")
        seen.add(at)
        mode = str(modes[at])
        if mode == "LEAF":
            return values.get(at, np.zeros(len(builder.bias)))
        tree = ids[at][0]
        yes, no = (place[tree, int(given[f"nodes_{w}nodeids"][at])] for w in ("true", "false"))
        follows = missing is not None and bool(missing[at])
        x = float(threshold[at])
        if mode in ("BRANCH_EQ", "BRANCH_NEQ"):
            yes, no = (yes, no) if mode == "BRANCH_EQ" else (no, yes)
            follows = follows == (mode == "BRANCH_EQ")
            among = frozenset([x])
            return Question(int(feature[at]), among=among, single=True, missing=follows), yes, no
        if mode not in MODES:
            raise DomainError(f"{path}: a tree asks by {mode}, which is not read")
        strict, turned = MODES[mode]
        x = float_below(x, np.float32) if strict else x
        question = Question(int(feature[at]), x, single=True, missing=follows != turned)
        return (question, no, yes) if turned else (question, yes, no)

    children = {
        place[key[0], int(given[f"nodes_{w}nodeids"][i])]
        for i, key in enumerate(ids)
        if str(modes[i]) != "LEAF"
        for w in ("true", "false")
    }
    for root in range(len(ids)):
        if root not in children:
            builder.add(root, look)


def _scaled(form: Form, graph: OnnxGraph, path: str) -> Form:
    """Put scalers of the columns into the coefficients of a linear model."""
    for node in graph.nodes:
        if node.kind != "Scaler":
            continue
        if not isinstance(form.margin, Linear):
            raise DomainError(
                f"{path}: trees behind a Scaler are not read; leave it out, as trees do not need it"
            )
        offset, scale = node.attributes["offset"], node.attributes["scale"]
        weights = form.margin.coefficient * np.reshape(scale, (-1, 1))
        bias = form.margin.bias - np.resize(offset, len(weights)) @ weights
        form = Form(Linear(weights, bias), form.link, form.classes)
    return form
