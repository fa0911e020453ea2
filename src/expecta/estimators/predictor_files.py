"""Declare what a file holds of an ExpectedPredictor: what was read of its model, no code of it.

A loaded predictor answers by the form that was read (trees, or a sum of one function per column),
without the model's library. What is sampled from the model itself cannot be stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.densities import Density
from expecta.densities.density_files import DENSITY
from expecta.engine.boxes import Runs
from expecta.estimators.expected_predictor import ExpectedPredictor
from expecta.expected.additive_margin import AdditiveMargin
from expecta.expected.compiled_trees import Branch, CompiledTrees
from expecta.expected.exact_route import ExactRoute
from expecta.expected.row_template import RowTemplate
from expecta.expected.wrap_model import ModelCalls, tree_margin_of
from expecta.expected.wrapped_model import WrappedModel
from expecta.files.schema import Array, Choice, Field, Many, Maybe, Record, Scalar, Value
from expecta.learn.regression.noise_variance import NoiseVariance
from expecta.readers.forms import Form, Linear, Trees
from expecta.tables import Encoder
from expecta.tables.column import Column
from expecta.tables.group_sums import GROUP_SUMS, GroupSums
from expecta.tables.number_column import NumberColumn
from expecta.tables.training_rows import TRAINING_ROWS, TrainingRows

LINKS = ("identity", "exp", "logistic", "softmax", "one-vs-rest", "none")
MAX_NUMBER = 1e146  # of a model that was read: sums of its square are numbers too
NUMBERS = ("integer", "number")  # kinds of columns whose values a slope can multiply
MAX_NOISE_RATIO = 1e8  # of variances for different inputs: more than anything learned
AFFINE_TOL = 1e-12  # relative to the largest term of a column


class SavedModel:
    """Stands for a model that was read and saved: its form answers, the model is not there."""

    def __init__(self, name: str, classes: npt.NDArray[Any] | None, margins_only: bool) -> None:
        self.name = name
        if classes is not None:
            self.classes_ = classes
            setattr(self, "decision_function" if margins_only else "predict_proba", self.predict)

    def __repr__(self) -> str:
        return f"SavedModel({self.name!r})"

    def predict(self, X: Any) -> NoReturn:
        """Refuse: a file holds what was read of a model, not the model."""
        raise DomainError(
            f"the {self.name} itself is not in the file; ask the ExpectedPredictor that was loaded"
        )


class AffineTerms:
    """What numbers add to a linear model: a slope and an intercept of each column."""

    def __init__(self, slope: Floats, intercept: Floats, affine: npt.NDArray[np.bool_]) -> None:
        self.slope, self.intercept, self.affine = slope, intercept, affine  # (columns, outputs)

    def __call__(self, column: int, values: npt.NDArray[Any]) -> Floats | None:
        """Return the terms of raw values; None where the table of the column says it all."""
        if not self.affine[column]:
            return None
        return values.astype(np.float64)[:, None] * self.slope[column] + self.intercept[column]

    @classmethod
    def of(cls, margin: AdditiveMargin, columns: list[Column]) -> AffineTerms:
        """Take the terms of columns of numbers, if each is a multiple of the number."""
        if isinstance(margin.terms, cls):  # from a file: the same again, to the last bit
            return margin.terms
        outputs = margin.pair.g.n_outputs
        slope, intercept = np.zeros((2, len(columns), outputs))
        affine = np.zeros(len(columns), np.bool_)
        for i, column in enumerate(columns):
            if margin.terms is None or not isinstance(column.plain, NumberColumn):
                continue
            x = np.unique(np.concatenate([column.plain.lows, column.plain.highs]))
            if column.plain is not column or column.kind not in NUMBERS:
                raise DomainError(f"a file cannot hold what column {column.name!r} adds")
            terms = margin.terms(i, x)
            if terms is None:
                continue
            if len(x) > 1:
                slope[i] = (terms[-1] - terms[0]) / (x[-1] - x[0])
            intercept[i], affine[i] = terms[0] - slope[i] * x[0], True
            scale = np.abs(terms).max() + np.abs(slope[i]).max() * np.abs(x).max()
            if not np.allclose(x[:, None] * slope[i] + intercept[i], terms, 0, AFFINE_TOL * scale):
                raise DomainError(
                    f"a file cannot hold this model: what column {column.name!r} adds is "
                    f"not a multiple of it (a transformer comes before); use pickle"
                )
        return cls(slope, intercept, affine)


# -- margins --------------------------------------------------------------------------

_NUMBERS = {"low": -MAX_NUMBER, "high": MAX_NUMBER}
_TREES = Record(
    {
        "start": Array("int64", "trees+1", low=0),
        "question": Array("int64", "nodes", low=-1),
        "left": Array("int64", "nodes", low=0),
        "right": Array("int64", "nodes", low=0),
        "value": Array("float64", "nodes", "margins", **_NUMBERS),  # type: ignore[arg-type]
        "bias": Array("float64", "margins", **_NUMBERS),  # type: ignore[arg-type]
        "variable": Array("int64", "questions", low=-1),
        "yes": Many(Array("int64", None, low=0)),
        "no": Many(Array("int64", None, low=0)),
    }
)
_LINEAR = Record(
    {
        "bias": Array("float64", "margins", **_NUMBERS),  # type: ignore[arg-type]
        "tables": Many(Array("float64", None, "margins", **_NUMBERS)),  # type: ignore[arg-type]
        "slope": Array("float64", "columns", "margins", **_NUMBERS),  # type: ignore[arg-type]
        "intercept": Array("float64", "columns", "margins", **_NUMBERS),  # type: ignore[arg-type]
        "affine": Array("int64", "columns", low=0, high=1),
    }
)


def _margin_parts(model: WrappedModel) -> dict[str, Any]:
    assert model.route is not None
    form, margin = model.route.form, model.route.margin
    if isinstance(form.margin, Trees):
        compiled = margin.compiled
        assert compiled is not None
        trees = compiled.trees
        names = ("start", "question", "left", "right", "value", "bias")
        return {
            **{name: getattr(trees, name) for name in names},
            "variable": np.array([branch[0] for branch in compiled.branches], np.int64),
            "yes": [np.array(branch[1], np.int64) for branch in compiled.branches],
            "no": [np.array(branch[2], np.int64) for branch in compiled.branches],
        }
    assert isinstance(margin, AdditiveMargin)
    encoder = model.density.encoder_
    terms = AffineTerms.of(margin, [encoder.column(name) for name in model.template.columns])
    return {
        "bias": margin.pair.g.bias,
        "tables": margin.tables,
        "slope": terms.slope,
        "intercept": terms.intercept,
        "affine": terms.affine.astype(np.int64),
    }


def _compiled_trees(parts: Mapping[str, Any], cardinalities: Ints) -> CompiledTrees:
    """Return trees as they were compiled, or complain of what is not a tree."""
    start, question, left, right = (parts[name] for name in ("start", "question", "left", "right"))
    nodes, inner = np.arange(len(question)), question >= 0
    if start[0] != 0 or start[-1] != len(nodes) or np.any(np.diff(start) < 1):
        raise ValueError("its trees do not follow each other")
    end = np.repeat(start[1:], np.diff(start))
    for child in (left, right):
        if np.any(inner & ((child <= nodes) | (child >= end))):
            raise ValueError("a node of its trees has no such child")
    if np.any(question >= len(parts["variable"])):
        raise ValueError("a node of its trees has no question")
    branches = []
    for variable, yes, no in zip(
        parts["variable"].tolist(), parts["yes"], parts["no"], strict=True
    ):
        if variable >= len(cardinalities):
            raise ValueError("a question is about no column")
        card = int(cardinalities[variable]) if variable >= 0 else 1
        branches.append(_branch(variable, tuple(yes.tolist()), tuple(no.tolist()), card))
    trees = Trees(
        0, (), start, question, left, right, parts["value"], np.asarray(parts["bias"], np.float64)
    )
    return CompiledTrees(trees, tuple(branches), cardinalities)


def _branch(variable: int, yes: Runs, no: Runs, cardinality: int) -> Branch:
    """Return a question whose two sets of values are all values of its variable."""
    runs = sorted([*zip(yes[::2], yes[1::2], strict=True), *zip(no[::2], no[1::2], strict=True)])
    ends = [0, *(end for run in runs for end in run), cardinality]
    if any(low >= high for low, high in runs) or ends[::2] != ends[1::2]:
        raise ValueError("the answers to a question are not all values of its column")
    if any(a >= b for side in (yes, no) for a, b in pairwise(side)):
        raise ValueError("the answers to a question are out of order")
    return variable, yes, no


def _margin(
    link: str, parts: Mapping[str, Any], density: Density, columns: tuple[str, ...]
) -> ExactRoute:
    cardinalities = density.encoder_.cardinalities_
    if "start" in parts:
        compiled = _compiled_trees(parts, cardinalities)
        form = Form(compiled.trees, link)
        return ExactRoute(form, tree_margin_of(density, form, compiled))
    if [len(table) for table in parts["tables"]] != cardinalities.tolist():
        raise ValueError("its tables are not those of its columns")
    if len(parts["affine"]) != len(columns):
        raise ValueError("its slopes are not those of its columns")
    kinds = [density.encoder_.column(name).kind for name in columns]
    if any(a and kind not in NUMBERS for a, kind in zip(parts["affine"], kinds, strict=True)):
        raise ValueError("a slope is of a column that has no numbers")
    terms = AffineTerms(parts["slope"], parts["intercept"], parts["affine"] > 0)
    form = Form(Linear(np.zeros((0, 1)), np.zeros(1)), link)
    return ExactRoute(form, AdditiveMargin(density, parts["bias"], parts["tables"], columns, terms))


# -- predictors -----------------------------------------------------------------------


def _parts(predictor: Any) -> dict[str, Any]:
    model: WrappedModel = predictor.expected_model
    if model.route is None:
        raise DomainError(
            f"a file cannot hold this estimator: it samples the {model.name} itself, of which "
            f"nothing was read; use pickle"
        )
    given = predictor.density
    flag = None if given is None else "learned" if given is predictor.density_ else "to learn"
    names = ("rtol", "max_samples", "tol", "random_state")
    return {
        "parameters": {**{name: getattr(predictor, name) for name in names}, "density": flag},
        "named": hasattr(predictor, "feature_names_in_"),
        "model": model.name,
        "columns": list(model.template.columns),
        "order": list(model.template.order),
        "missing_is_value": sorted(model.template.missing_is_value),
        "link": model.route.form.link,
        "notes": list(model.route.form.notes),
        "tried": list(model.route.tried),
        "checked_rows": model.route.checked_rows,
        "refused": np.array(model.route.refused, np.int64).reshape(-1, 2),
        "classes": model.classes,
        "largest_wins": predictor._calls.largest_wins,
        "scale": model.scale,
        "density": predictor.density_,
        "fine": Density(model.density.circuit, model.density.encoder_),
        "margin": model,
        "training_rows": predictor.training_rows_,
        "group_sums": predictor.group_sums_,
        "noise": getattr(predictor, "noise_", None),
        "target_spread": getattr(predictor, "target_spread_", None),
        "noise_variance": predictor.noise_variance_,
        "calibration": getattr(predictor, "calibration_", None),
    }


def _texts(name: str, values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} is not a list of texts")
    return tuple(values)


def _refused(pairs: Ints, density: Density) -> tuple[tuple[int, int], ...]:
    cardinalities = density.encoder_.cardinalities_
    if np.any(pairs[:, 0] >= len(cardinalities)) or np.any(
        pairs[:, 1] >= cardinalities[pairs[:, 0]]
    ):
        raise ValueError("it refuses values that its columns do not have")
    return tuple((int(variable), int(value)) for variable, value in pairs)


def _predictor(
    parameters: dict[str, Any],
    density: Density,
    fine: Density,
    margin: Mapping[str, Any],
    training_rows: dict[str, Any] | None,
    group_sums: dict[str, Any] | None,
    **learned: Any,
) -> ExpectedPredictor:
    """Return a predictor that answers by what was read, or complain of what does not fit."""
    classes, link, scale = learned["classes"], learned["link"], learned["scale"]
    columns, order = (_texts(name, learned[name]) for name in ("columns", "order"))
    fixed = _texts("missing_is_value", learned["missing_is_value"])
    if (
        set(order) != set(fine.columns)
        or not columns
        or not set(columns) <= set(order)
        or len(set(order)) != len(order)
    ):
        raise ValueError("its columns are not those of its density")
    if density.columns != fine.columns:
        raise ValueError("its two densities are of other columns")
    if {c.name for c in fine.encoder_.columns_ if c.plain is not c} != set(fixed):
        raise ValueError("its missing values are not those of its density")
    route = _margin(link, margin, fine, columns)
    route = route._replace(
        form=Form(route.form.margin, link, classes, _texts("notes", learned["notes"])),
        tried=_texts("tried", learned["tried"]),
        checked_rows=learned["checked_rows"],
        refused=_refused(learned["refused"], fine),
    )
    _check_outputs(route, classes, scale)
    margins_only = classes is not None and link == "none"
    saved = SavedModel(learned["model"], classes, margins_only)
    given = parameters.pop("density")
    fresh: Any = density if given == "learned" else clone(density) if given else None
    names = list(fixed) or None
    predictor = ExpectedPredictor(saved, fresh, missing_is_value=names, **parameters)
    predictor.density_, predictor.n_features_in_ = density, len(order)
    if learned["named"]:
        predictor.feature_names_in_ = np.array(order, object)
    if classes is not None:
        predictor.classes_ = classes
    predictor._calls = ModelCalls(saved)
    predictor._calls.largest_wins = learned["largest_wins"]
    predictor.training_rows_ = None
    n_classes = None if classes is None else len(classes)
    if training_rows is not None:
        rows = TrainingRows.from_file(training_rows, fine.encoder_, n_classes)
        predictor.training_rows_ = rows
    if group_sums is not None:
        predictor.group_sums_ = GroupSums.from_file(group_sums, fine.encoder_, n_classes)
    predictor.template_ = RowTemplate(None, columns, order, frozenset(fixed))
    predictor.wrapped_ = WrappedModel(
        learned["model"],
        fine,
        predictor.template_,
        None,
        scale,
        route,
        classes=classes,
        margins_only=margins_only,
        training_rows=predictor._training_data,
        **parameters,
    )
    noise, calibration = learned["noise"], learned["calibration"]
    spread = learned["target_spread"]
    if not (noise is None) == (calibration is None) == (spread is None):
        raise ValueError("its calibration has no noise, or its noise no calibration or target")
    if calibration is not None:
        if np.any(calibration.missing > len(order)):
            raise ValueError("its calibration has rows of more missing columns than there are")
        predictor.noise_, predictor.target_spread_ = noise, spread
        predictor.calibration_ = calibration
    variance = learned["noise_variance"]
    predictor.noise_variance_ = read_noise_variance(variance, fine.encoder_, noise)
    return predictor


def read_noise_variance(
    parts: dict[str, Any] | None, encoder: Encoder, noise: float | None
) -> NoiseVariance | None:
    """Return the variance of y by its inputs, or complain of other columns or of its size."""
    if parts is None:
        return None
    ends = np.cumsum(encoder.cardinalities_)
    if len(parts["added"]) != ends[-1]:
        raise ValueError("its noise belongs to other columns")
    tables = tuple(np.split(parts["added"], ends[:-1]))
    constant, most = parts["constant"], sum(float(table.max()) for table in tables)
    if noise is None or not most <= MAX_NOISE_RATIO * constant:
        raise ValueError("its noise depends too much on the inputs")
    if not 1 / MAX_NOISE_RATIO <= parts["unit"] / noise <= MAX_NOISE_RATIO:
        raise ValueError("its noise is of two sizes")
    return NoiseVariance(constant, tables, parts["unit"])


def _check_outputs(route: ExactRoute, classes: npt.NDArray[Any] | None, scale: Floats) -> None:
    """Complain of a link that does not go with the margin, the classes or the outputs."""
    form, margin = route.form, route.margin
    n_margins = margin.mean(np.full((1, margin.n_variables), -1, np.int32)).shape[1]
    n_outputs = n_margins
    if form.link == "logistic":
        n_outputs = 2 if classes is not None else n_margins
    several = form.link in ("softmax", "one-vs-rest")
    good = len(scale) == n_outputs and (not several or classes is not None)
    if classes is not None:
        good = good and form.link != "exp"
        good = good and (n_margins == len(classes) or (n_margins == 1 and len(classes) == 2))
    if not good or (form.link == "logistic" and classes is not None and n_margins != 1):
        raise ValueError("its link does not go with its outputs")
    if classes is not None and form.link == "identity":
        _check_shares(form.margin)


def _check_shares(trees: Trees | Linear) -> None:
    """Complain of trees whose leaves are probabilities of classes, and do not sum to one."""
    if isinstance(trees, Linear):
        raise ValueError("a sum of columns is not a probability")
    leaf = trees.question < 0
    total = np.where(leaf, trees.value.sum(axis=1), np.nan)
    first = [total[start:end][leaf[start:end]][0] for start, end in pairwise(trees.start.tolist())]
    expected = np.repeat(first, np.diff(trees.start))
    good = np.allclose(total[leaf], expected[leaf], rtol=1e-8) and np.all(trees.value[leaf] >= 0)
    if not good or not np.isclose(np.sum(first) + np.sum(trees.bias), 1.0, rtol=1e-8):
        raise ValueError("the probabilities of its classes do not sum to one")


def predictor_record(
    calibration: Field, classes: Field, noise: Field, spread: Field, variance: Field
) -> Record:
    """Return the declaration, given those of what other estimators have too."""
    parameters: dict[str, Field] = {
        "rtol": Scalar(float, low=0),
        "max_samples": Scalar(int, low=1),
        "tol": Scalar(float, low=1e-15, high=0.1),
        "random_state": Maybe(Scalar(int, low=0)),
        "density": Maybe(Scalar(str, choices=("learned", "to learn"))),
    }
    margin = Choice(
        "margin",
        {
            "trees": Record(_TREES.fields, dict, _margin_parts),
            "linear": Record(_LINEAR.fields, dict, _margin_parts),
        },
        lambda model: "trees" if isinstance(model.route.form.margin, Trees) else "linear",
    )
    return Record(
        {
            "parameters": Record(parameters),
            "named": Scalar(bool),
            "model": Scalar(str),
            "columns": Value(max_depth=1),
            "order": Value(max_depth=1),
            "missing_is_value": Value(max_depth=1),
            "link": Scalar(str, choices=LINKS),
            "notes": Value(max_depth=1),
            "tried": Value(max_depth=1),
            "checked_rows": Scalar(int, low=0),
            "refused": Array("int64", "refused", 2, low=0),
            "classes": Maybe(classes),
            "largest_wins": Scalar(bool),
            "scale": Array("float64", "outputs", low=0, high=MAX_NUMBER),
            "density": DENSITY,
            "fine": DENSITY,
            "margin": margin,
            "training_rows": Maybe(TRAINING_ROWS),
            "group_sums": Maybe(GROUP_SUMS),
            "noise": Maybe(noise),
            "target_spread": Maybe(spread),
            "noise_variance": Maybe(variance),
            "calibration": Maybe(calibration),
        },
        _predictor,
        _parts,
    )
