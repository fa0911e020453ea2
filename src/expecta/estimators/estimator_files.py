"""Declare what a file holds of an estimator: its pair, the density behind it, what was chosen.

Of the parameters ``density``, ``vtree`` and ``encoder`` only whether they were given: what comes
back is the density itself where it had learned before, else one like it that is yet to learn;
its vtree; and an encoder like its own.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.circuits.regression import RegressionCircuit
from expecta.common.arrays import Floats, Ints
from expecta.common.checks import check_number
from expecta.common.errors import DomainError
from expecta.densities import PSDD, Density
from expecta.densities.density_files import DENSITY
from expecta.estimators.calibration import MAX_SCORE, Calibration
from expecta.estimators.circuit_estimator import CircuitEstimator
from expecta.estimators.classifier import CircuitClassifier
from expecta.estimators.predictor_files import predictor_record, read_noise_variance
from expecta.estimators.regressor import CircuitRegressor
from expecta.expected.target_scale import TargetScale
from expecta.expected.target_values import KINDS, TargetValues
from expecta.files.circuit_files import PAIR
from expecta.files.schema import Array, Choice, Field, Kind, Maybe, Record, Scalar, Value
from expecta.queries.pair import Pair
from expecta.queries.spectral import check_tolerance
from expecta.tables import Encoder
from expecta.tables.encoder_files import ENCODER
from expecta.tables.estimator_inputs import MAX_TARGET, check_penalties
from expecta.tables.group_sums import GROUP_SUMS, GroupSums
from expecta.tables.refine_bins import coarse_codes
from expecta.tables.training_rows import TRAINING_ROWS, TrainingRows

# |g| that makes sense, by link
MAX_OUTPUT = {"identity": 1e3 * MAX_TARGET, "logistic": 1e5, "exp": 700.0}
MAX_LOG_NOISE = 20.0  # standard deviation of a logarithm
MAX_CELLS = 1 << 28  # pairs of nodes: bounds what a hostile file can make us allocate
MAX_CHARACTERS = 1 << 24  # of all classes that are texts of one width
ABOVE_ZERO = sys.float_info.min

# -- classes: numbers, Booleans or texts ----------------------------------------------

_CLASS_TYPES = {"b": bool, "i": int, "u": int, "f": float, "U": str, "O": str}
_CLASS_DTYPE = re.compile(r"\|b1|[<>|](i|u)[1248]|[<>]f[248]|[<>]U\d{1,8}|\|O")


def _classes(dtype: str, values: Any) -> npt.NDArray[Any]:
    if not _CLASS_DTYPE.fullmatch(dtype):
        raise ValueError("classes of an unknown type")
    kind = dtype[1]
    if not isinstance(values, list) or any(type(v) is not _CLASS_TYPES[kind] for v in values):
        raise ValueError("classes of another type than it says")
    if not values or not all(a < b for a, b in pairwise(values)):
        raise ValueError("classes out of order")
    if kind == "U" and len(values) * int(dtype[2:]) > MAX_CHARACTERS:
        raise ValueError("classes that are too long")
    if kind in "iu" and (values[0] < np.iinfo(dtype).min or values[-1] > np.iinfo(dtype).max):
        raise ValueError("classes that do not fit their type")
    with np.errstate(over="ignore"):
        classes = np.array(values, np.dtype(dtype))
    if classes.tolist() != values:
        raise ValueError("classes that do not fit their type")
    return classes


def _classes_parts(classes: npt.NDArray[Any]) -> dict[str, Any]:
    values = [str(value) if isinstance(value, str) else value for value in classes.tolist()]
    try:
        _classes(classes.dtype.str, values)
    except (ValueError, OverflowError):
        raise DomainError(
            f"a file holds classes that are integers, floats, Booleans or texts, and these are "
            f"of type {type(values[0]).__name__} ({classes.dtype}); rename them, or use pickle"
        ) from None
    return {"dtype": classes.dtype.str, "values": values}


# -- what both kinds share ------------------------------------------------------------

_PARAMETERS: dict[str, Field] = {
    "density": Maybe(Scalar(str, choices=("learned", "to learn"))),
    "vtree": Scalar(bool),  # whether there was one
    "encoder": Scalar(bool),
    "max_bins": Scalar(int, low=2),
    "max_splits": Maybe(Scalar(int, low=0)),  # null is "auto"
    "penalties": Value(max_depth=1),
    "completions": Scalar(int, low=1),
    "random_state": Maybe(Scalar(int, low=0)),
}
_SHARED: dict[str, Field] = {
    "named": Scalar(bool),
    "penalty": Scalar(float, low=ABOVE_ZERO, high=MAX_OUTPUT["identity"]),
    "n_splits": Scalar(int, low=0),
    "validation": Record(
        {
            "penalty": Array("float64", "trials", low=0),
            "n_splits": Array("int64", "trials", low=0),
            "loss": Array("float64", "trials"),
        }
    ),
    "density": DENSITY,
    "encoder": ENCODER,
    "pair": PAIR,
    "training_rows": Maybe(TRAINING_ROWS),
    "group_sums": Maybe(GROUP_SUMS),
    "target": Scalar(str),
}


def _check_parameters(given: Mapping[str, Any], density: Density) -> None:
    """Complain of parameters as a file has them, with the words of ``fit``."""
    check_penalties(given["penalties"])
    if "tol" in given:
        check_tolerance(check_number("tol", given["tol"]))
    learned = given["density"] == "learned"
    if not learned and type(density) is Density:
        raise ValueError("density was not learned as it says")
    if given["vtree"] and not isinstance(density, PSDD):
        raise ValueError(f"a {type(density).__name__} takes no vtree")
    if learned and (given["vtree"] or given["encoder"]):
        raise ValueError("vtree and encoder are those of the density")


def _check_size(p: ProbabilisticCircuit, g: RegressionCircuit, link: str) -> None:
    """Complain of numbers and sizes that nobody learns and that queries would choke on."""
    largest = np.zeros(len(g.vtree))
    layer = g.structure.layer_of_node[g.structure.node_of_edge]
    np.maximum.at(largest, layer, np.abs(g.weight).max(axis=1))
    with np.errstate(over="ignore"):
        if not largest.sum() + np.abs(g.bias).max() < MAX_OUTPUT[link]:
            raise ValueError("its circuit has numbers that are too large")
    nodes, others = np.diff(g.structure.node_start), np.diff(p.structure.node_start)
    values = np.append(g.cardinalities, 0)[g.vtree.variable]
    others = others + np.diff(p.structure.element_start) + values + nodes
    if nodes.astype(float) @ others > MAX_CELLS:
        raise ValueError("its circuits are too large")


def _link(model: Any, g: RegressionCircuit) -> str:
    """Return what a model's output is of its circuit."""
    return g.link if model.target_scale_.origin is None else "exp"


def _estimator_parts(model: Any) -> dict[str, Any]:
    parameters = model.get_params(deep=False)
    if parameters["max_splits"] == "auto":
        parameters["max_splits"] = None
    if parameters["density"] is not None:
        learned = parameters["density"] is model.density_
        parameters["density"] = "learned" if learned else "to learn"
    for name in ("vtree", "encoder"):
        parameters[name] = parameters[name] is not None
    try:
        _check_parameters(parameters, model.density_)
        _check_size(model.pair_.p, model.pair_.g, _link(model, model.pair_.g))
    except (TypeError, ValueError) as problem:
        raise DomainError(f"a file cannot hold this estimator: {problem}") from None
    trials = [(p, n, loss) for p, losses in model.validation_.items() for n, loss in losses.items()]
    penalty, n_splits, loss = zip(*trials, strict=True) if trials else ((), (), ())
    return {
        "parameters": parameters,
        "named": hasattr(model, "feature_names_in_"),
        "penalty": model.penalty_,
        "n_splits": model.n_splits_,
        "validation": {"penalty": penalty, "n_splits": n_splits, "loss": loss},
        "density": model.density_,
        "encoder": model.encoder_,
        "pair": (model.pair_.p, model.pair_.g),
        "training_rows": model.training_rows_,
        "group_sums": model.group_sums_,
        "target": model.target_name_,
        "origin": model.target_scale_.origin,
        "mean_excess": model.mean_excess_,
        "noise": getattr(model, "noise_", None),
        "target_spread": getattr(model, "target_spread_", None),
        "log_noise": model.log_noise_,
        "noise_variance": model.noise_variance_,
        "calibration": getattr(model, "calibration_", None),
        "classes": getattr(model, "classes_", None),
    }


def _estimator(
    kind: type[CircuitEstimator],
    parameters: dict[str, Any],
    density: Density,
    encoder: Encoder,
    pair: tuple[ProbabilisticCircuit, RegressionCircuit],
    validation: dict[str, npt.NDArray[Any]],
    training_rows: dict[str, Any] | None,
    group_sums: dict[str, Any] | None,
    **learned: Any,
) -> CircuitEstimator:
    """Return an estimator that has learned, or complain of what does not fit together."""
    (p, g), coarse = pair, density.encoder_
    _check_parameters(parameters, density)
    model = kind(**_given(parameters, density))
    model.density_, model.refined_ = density, Density(p, encoder)
    model.n_features_in_ = len(density.columns)
    if learned["named"]:
        model.feature_names_in_ = np.array(density.columns, object)
    model.penalty_, model.n_splits_ = learned["penalty"], learned["n_splits"]
    model.validation_ = {}
    for penalty, size, loss in zip(*(trial.tolist() for trial in validation.values()), strict=True):
        model.validation_.setdefault(penalty, {})[size] = loss
    coarse_codes(encoder, coarse)
    if p.vtree != density.circuit.vtree or encoder.source_ != coarse.source_:
        raise DomainError("its pair belongs to another density")
    link, n_outputs, n_classes = "identity", 1, None
    if isinstance(model, CircuitRegressor):
        scale = model.target_scale_ = TargetScale(learned["origin"])
        model.noise_, model.log_noise_ = learned["noise"], learned["log_noise"]
        model.target_spread_ = learned["target_spread"]
        model.calibration_ = replace(learned["calibration"], scale=scale)
        model.noise_variance_ = read_noise_variance(
            learned["noise_variance"], encoder, model.log_noise_ or model.noise_
        )
        if (model.log_noise_ is None) != (scale.origin is None):
            raise DomainError("its noise is on another scale than its circuit")
        excess = learned["mean_excess"]
        if excess is not None and scale.origin is None:
            raise DomainError("its circuit is of a mean on a logarithmic scale that there is not")
        model.mean_excess_ = read_noise_variance(excess, encoder, excess and excess["unit"])
        if excess is not None and excess["unit"] * excess["constant"] ** 0.5 > MAX_LOG_NOISE:
            raise DomainError("its mean is too far above its median")
        if np.any(model.calibration_.missing > model.n_features_in_):
            raise DomainError("its calibration has rows of more missing columns than there are")
    elif isinstance(model, CircuitClassifier):
        model.classes_ = learned["classes"]
        link, n_classes = "logistic", len(model.classes_)
        n_outputs = n_classes if n_classes > 2 else 1
    if g.link != link or g.n_outputs != n_outputs:
        raise DomainError(
            f"its circuit has the link {g.link} and {g.n_outputs} outputs, "
            f"not {link} and {n_outputs}"
        )
    _check_size(p, g, _link(model, g))
    model.pair_, model.training_rows_ = Pair(p, g), None
    if training_rows is not None:
        if training_rows["target"] is None:
            raise DomainError("its training rows have no target")
        model.training_rows_ = TrainingRows.from_file(training_rows, encoder, n_classes)
    if group_sums is not None:
        model.group_sums_ = GroupSums.from_file(group_sums, encoder, n_classes)
        if not len(model.group_sums_.center):
            raise DomainError("its sums of training rows have no target")
    model.target_name_ = learned["target"]
    return model


def _given(parameters: dict[str, Any], density: Density) -> dict[str, Any]:
    """Return the constructor's parameters."""
    penalties = check_penalties(parameters["penalties"])
    several = isinstance(parameters["penalties"], list)
    fresh: Any = density if parameters["density"] == "learned" else clone(density)
    return {
        **parameters,
        "max_splits": "auto" if parameters["max_splits"] is None else parameters["max_splits"],
        "penalties": tuple(penalties) if several else penalties[0],
        "density": None if parameters["density"] is None else fresh,
        "vtree": density.vtree if parameters["vtree"] and isinstance(density, PSDD) else None,
        "encoder": clone(density.encoder_) if parameters["encoder"] else None,
    }


def _calibration(
    missing: Ints,
    score: Floats,
    row: Ints,
    centre: Floats,
    width: Floats,
    target: str,
    values: Floats,
) -> Calibration:
    """Return a calibration, or complain of scores that are not sorted."""
    if np.any(np.diff(score) < 0):
        raise ValueError("the scores of its calibration are not sorted")
    if (target == "few") != (len(values) > 0):
        raise ValueError("the values of its target are missing, or are not few")
    return Calibration(missing, score, row, centre, width, TargetValues(target, values))


def _calibration_parts(calibration: Calibration) -> dict[str, Any]:
    values = calibration.values
    return {**vars(calibration), "target": values.kind, "values": values.values}


def _record(kind: type[CircuitEstimator], parameter: dict[str, Field], **own: Field) -> Record:
    parameters = Record({**_PARAMETERS, **parameter})
    fields: dict[str, Field] = {"parameters": parameters, **_SHARED, **own}
    return Record(fields, partial(_estimator, kind), _estimator_parts)


_CALIBRATION = Record(
    {
        "missing": Array("int64", "rows", low=0),
        "score": Array("float64", "rows", low=-MAX_SCORE, high=MAX_SCORE),
        "row": Array("int64", "rows"),
        "centre": Array("float64", "rows"),
        "width": Array("float64", "rows", low=0),
        "target": Scalar(str, choices=KINDS),
        "values": Array("float64", "values", increasing=True),
    },
    _calibration,
    _calibration_parts,
)
_NOISE_VARIANCE = Record(
    {
        "unit": Scalar(float, low=ABOVE_ZERO, high=MAX_TARGET),
        "constant": Scalar(float, low=1e-9, high=1e9),
        "added": Array("float64", "added", low=0, high=1e9),
    },
    dict,
    lambda noise: {
        "unit": noise.unit,
        "constant": noise.constant,
        "added": np.concatenate(noise.tables),
    },
)
_CLASSES = Record({"dtype": Scalar(str), "values": Value(max_depth=1)}, _classes, _classes_parts)
_NOISE = Scalar(float, low=ABOVE_ZERO, high=MAX_TARGET)
_TARGET_SPREAD = Scalar(float, low=0, high=MAX_TARGET)
ESTIMATOR_FILE = Kind(
    "estimator",
    Choice(
        "class",
        {
            "CircuitRegressor": _record(
                CircuitRegressor,
                {
                    "calibration_rows": Maybe(Scalar(int, low=0)),
                    "target_transform": Maybe(Scalar(str, choices=("auto", "log"))),
                },
                origin=Maybe(Scalar(float, low=-MAX_TARGET, high=MAX_TARGET)),
                mean_excess=Maybe(_NOISE_VARIANCE),
                noise=_NOISE,
                target_spread=_TARGET_SPREAD,
                log_noise=Maybe(Scalar(float, low=ABOVE_ZERO, high=MAX_LOG_NOISE)),
                noise_variance=Maybe(_NOISE_VARIANCE),
                calibration=_CALIBRATION,
            ),
            "CircuitClassifier": _record(
                CircuitClassifier,
                {"tol": Scalar(float)},
                classes=_CLASSES,
            ),
            "ExpectedPredictor": predictor_record(
                _CALIBRATION, _CLASSES, _NOISE, _TARGET_SPREAD, _NOISE_VARIANCE
            ),
        },
    ),
)
