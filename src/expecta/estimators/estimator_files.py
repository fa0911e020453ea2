"""Estimators in files: the pair, the density behind it and what was chosen, in one container.

The pair is written as `Pair.save` does, its encoding beside it, and the density that was
learned under names of its own. Of the parameters ``density``, ``vtree`` and ``encoder`` only
whether they were given: what comes back is the density itself where it had learned before,
else one like it that is yet to learn; its vtree; and an encoder like its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.circuits.regression import RegressionCircuit
from expecta.common.arrays import within
from expecta.common.atomic_files import replace_file
from expecta.common.checks import check_integer, check_number
from expecta.common.errors import DomainError, ExpectaError, FormatError
from expecta.densities import PSDD, Density
from expecta.densities.density_files import from_parts, parts_of, plain
from expecta.estimators.base import CircuitEstimator
from expecta.estimators.class_labels import read_classes, written_classes
from expecta.estimators.classifier import CircuitClassifier
from expecta.estimators.conformal import Calibration
from expecta.estimators.regressor import CircuitRegressor
from expecta.files.container import Container
from expecta.files.native import NativeFile, circuit_arrays, opened
from expecta.queries.pair import Pair
from expecta.queries.spectral import check_tolerance
from expecta.tables import Encoder
from expecta.tables.estimator_inputs import MAX_TARGET, check_penalties
from expecta.tables.refine_bins import coarse_codes
from expecta.tables.training_rows import TrainingRows

__all__ = ["load", "save"]

Arrays = dict[str, npt.NDArray[Any]]

_CLASSES: dict[str, type[CircuitEstimator]] = {
    kind.__name__: kind for kind in (CircuitRegressor, CircuitClassifier)
}
_SHARED = {"class", "parameters", "named", "penalty", "n_splits", "link", "density", "encoder"}
GREATEST = {"identity": 1e3 * MAX_TARGET, "logistic": 1e5}  # |g| that makes sense, by link
TABLE = 1 << 28  # pairs of nodes: bounds what a hostile file can make us allocate


def save(estimator: CircuitEstimator, path: str | PathLike[str], rows: bool) -> None:
    """Write an estimator into one file, with its training rows or without. Atomic."""
    kind = type(estimator).__name__
    if _CLASSES.get(kind) is not type(estimator):
        raise DomainError(f"a {kind} has no file format; pickle it")
    p, g, parameters = estimator.pair_.p, estimator.pair_.g, _parameters(estimator)
    try:
        _check_parameters(parameters, estimator.density_)
        _check_size(p, g)
    except (TypeError, ValueError) as problem:
        raise DomainError(f"a file holds no such model: {problem}") from None
    density, density_arrays = parts_of(estimator.density_)
    encoder, encoder_arrays = estimator.encoder_.state()
    header = {
        "class": kind,
        "parameters": parameters,
        "named": hasattr(estimator, "feature_names_in_"),
        "penalty": float(estimator.penalty_),
        "n_splits": int(estimator.n_splits_),
        "link": g.link,
        "density": density,
        "encoder": encoder,
    }
    arrays: Arrays = circuit_arrays(p.vtree, p, g)
    arrays |= {f"density.{name}": array for name, array in density_arrays.items()}
    arrays |= {f"encoder.{name}": array for name, array in encoder_arrays.items()}
    tried = [(a, b, c) for a, found in estimator.validation_.items() for b, c in found.items()]
    arrays["validation"] = np.array(tried, np.float64).reshape(-1, 3)
    if isinstance(estimator, CircuitRegressor):
        header["noise"] = estimator.noise_
        arrays |= vars(estimator.calibration_)
    elif isinstance(estimator, CircuitClassifier):
        header["classes"] = written_classes(estimator.classes_)
    seen = estimator.training_rows_ if rows else None
    header["seen"] = None if seen is None else seen.name
    header["target"] = estimator.target_name_
    arrays |= {} if seen is None else {f"seen.{n}": one for n, one in seen.to_arrays().items()}
    replace_file(os.fspath(path), Container("estimator", header, arrays).to_bytes())


def load(path: str | PathLike[str]) -> CircuitEstimator:
    """Read an estimator that :func:`save` wrote; anything else gives a FormatError."""
    return _Reader(os.fspath(path), Path(path).read_bytes()).estimator()


def _parameters(estimator: CircuitEstimator) -> dict[str, Any]:
    """Return the constructor's parameters as JSON."""
    given = estimator.get_params(deep=False)
    if given["density"] is not None:
        given["density"] = "learned" if given["density"] is estimator.density_ else "to learn"
    for name in ("vtree", "encoder"):
        given[name] = given[name] is not None
    return {name: plain(value) for name, value in given.items()}


def _check_size(p: ProbabilisticCircuit, g: RegressionCircuit) -> None:
    """Complain of numbers and sizes that nobody learns and that queries would choke on."""
    most = np.zeros(len(g.vtree))
    layer = g.structure.layer_of_node[g.structure.node_of_edge]
    np.maximum.at(most, layer, np.abs(g.weight).max(axis=1))
    with np.errstate(over="ignore"):
        if not most.sum() + np.abs(g.bias).max() < GREATEST[g.link]:
            raise ValueError("its circuit has numbers that are too large")
    nodes, others = np.diff(g.structure.node_start), np.diff(p.structure.node_start)
    values = np.append(g.cardinalities, 0)[g.vtree.variable]
    if nodes.astype(float) @ (others + np.diff(p.structure.element_start) + values + nodes) > TABLE:
        raise ValueError("its circuits are too large")


def _check_parameters(given: Mapping[str, Any], density: Density) -> None:
    """Complain of parameters as a file has them, with the words of ``fit``."""
    for name, least in (("max_bins", 2), ("max_splits", 0), ("completions", 1)):
        check_integer(name, given[name], least)
    for name in {"random_state", "calibration_rows"} & set(given):
        if given[name] is not None:
            check_integer(name, given[name], 0)
    check_penalties(given["penalties"])
    if "tol" in given:
        check_tolerance(check_number("tol", given["tol"]))
    learned = given["density"] == "learned"
    if not learned and (given["density"] not in (None, "to learn") or type(density) is Density):
        raise ValueError("density was not learned as it says")
    if type(given["vtree"]) is not bool or type(given["encoder"]) is not bool:
        raise ValueError("vtree and encoder are given or not")
    if given["vtree"] and not isinstance(density, PSDD):
        raise ValueError(f"a {type(density).__name__} takes no vtree")
    if learned and (given["vtree"] or given["encoder"]):
        raise ValueError("vtree and encoder are those of the density")


class _Reader:
    """Checks a file piece by piece; every complaint is a FormatError about it."""

    def __init__(self, path: str, data: bytes) -> None:
        self._path = path
        if not Container.recognises(data):
            raise FormatError(path, None, "this is not a file that an estimator's save wrote")
        container = opened(path, data, "estimator")
        self._header, self._arrays = container.header, dict(container.arrays)

    def estimator(self) -> CircuitEstimator:
        header, kind = self._header, self._header.get("class")
        if not isinstance(kind, str) or kind not in _CLASSES:
            self._fail(f"its class is {kind!r:.40}")
        own = {"noise" if kind == "CircuitRegressor" else "classes"}
        if set(header) - {"seen", "target"} != _SHARED | own:
            self._fail("its header has other entries than it should")
        kinds = [isinstance(header[name], dict) for name in ("density", "encoder")]
        if not all(kinds) or type(header["named"]) is not bool:
            self._fail("it does not say what its columns are")
        density = from_parts(self._path, header["density"], self._prefixed("density."))
        encoder = Encoder.from_state(self._path, header["encoder"], self._prefixed("encoder."))
        found = _CLASSES[kind](**self._parameters(_CLASSES[kind], density))
        found.density_ = density
        found.n_features_in_ = len(density.columns)
        if header["named"]:
            found.feature_names_in_ = np.array(density.columns, object)
        found.penalty_ = self._number("penalty", GREATEST["identity"])
        found.n_splits_ = self._make(lambda: check_integer("n_splits", header["n_splits"], 0))
        found.validation_ = self._validation()
        if isinstance(found, CircuitRegressor):
            found.noise_ = self._number("noise", MAX_TARGET)
            found.calibration_ = self._calibration(found.n_features_in_)
            link, outputs = "identity", 1
        elif isinstance(found, CircuitClassifier):
            found.classes_ = self._make(lambda: read_classes(header["classes"]))
            k = len(found.classes_)
            link, outputs = "logistic", k if k > 2 else 1
        rows = self._prefixed("seen.")
        self._pair(found, encoder, link, outputs)
        found.training_rows_ = self._seen(rows, encoder, getattr(found, "classes_", None))
        found.target_name_ = self._target(found.training_rows_)
        return found

    # -- parts ------------------------------------------------------------------------

    def _parameters(self, kind: type[CircuitEstimator], density: Density) -> dict[str, Any]:
        """Return the constructor's parameters."""
        given = self._header["parameters"]
        if not isinstance(given, dict) or set(given) != set(kind().get_params(deep=False)):
            self._fail("its parameters are not those of its class")
        self._make(lambda: _check_parameters(given, density))
        penalties = check_penalties(given["penalties"])
        fresh: Any = density if given["density"] == "learned" else clone(density)
        return {
            **given,
            "penalties": tuple(penalties) if isinstance(given["penalties"], list) else penalties[0],
            "density": None if given["density"] is None else fresh,
            "vtree": density.vtree if given["vtree"] and isinstance(density, PSDD) else None,
            "encoder": clone(density.encoder_) if given["encoder"] else None,
        }

    def _pair(self, found: CircuitEstimator, encoder: Encoder, link: str, outputs: int) -> None:
        """Set the pair and its encoding, which are to fit the density and each other."""
        if self._header["link"] != link:
            self._fail(f"the link of its circuit is not {link!r}")
        container = Container("estimator", {"link": link}, self._arrays)
        p, g = NativeFile(self._path, container, ("vtree", "p", "g")).pair()
        coarse = found.density_.encoder_
        found.refined_ = self._make(lambda: Density(p, encoder))
        self._make(lambda: coarse_codes(encoder, coarse))
        if p.vtree != found.density_.circuit.vtree or encoder.source_ != coarse.source_:
            self._fail("its pair belongs to another density")
        if g.n_outputs != outputs:
            self._fail(f"its circuit has {g.n_outputs} outputs, not {outputs}")
        self._make(lambda: _check_size(p, g))
        with np.errstate(over="ignore"):
            found.pair_ = self._make(lambda: Pair(p, g))

    def _seen(
        self, arrays: Arrays, encoder: Encoder, classes: npt.NDArray[Any] | None
    ) -> TrainingRows | None:
        """Return the training rows; files may be without."""
        name = self._header.get("seen")
        if name is None and not arrays:
            return None
        several = None if classes is None else len(classes)
        found: TrainingRows = self._make(
            lambda: TrainingRows.from_arrays(arrays, name, encoder, several)
        )
        return found

    def _target(self, seen: TrainingRows | None) -> str:
        """Return what the target is called; older files say so of their rows alone."""
        name = self._header.get("target", "prediction" if seen is None else seen.name)
        if not isinstance(name, str):
            self._fail("its target has no name")
        return name

    def _validation(self) -> dict[float, dict[int, float]]:
        tried = self._take("validation", "float64", 2)
        good = tried.shape[1] == 3 and np.all(np.isfinite(tried)) and not np.any(tried[:, :2] < 0)
        if not good or np.any(np.rint(tried[:, 1]) != tried[:, 1]):
            self._fail("the losses that were tried make no sense")
        found: dict[float, dict[int, float]] = {}
        for penalty, size, loss in tried.tolist():
            found.setdefault(penalty, {})[int(size)] = loss
        return found

    def _calibration(self, columns: int) -> Calibration:
        missing, row = self._take("missing", "int64"), self._take("row", "int64")
        distance = self._take("distance", "float64")
        alike = len(missing) == len(distance) == len(row)
        if not alike or not within(missing, 0, columns + 1):
            self._fail("its calibration has numbers of columns that make no sense")
        if not np.all((distance >= 0) & (distance <= 1)):
            self._fail("a distance of its calibration is not between 0 and 1")
        return Calibration(missing, distance, row)

    # -- checks -----------------------------------------------------------------------

    def _prefixed(self, prefix: str) -> Arrays:
        names = [name for name in self._arrays if name.startswith(prefix)]
        return {name.removeprefix(prefix): self._arrays.pop(name) for name in names}

    def _take(self, name: str, dtype: str, rank: int = 1) -> npt.NDArray[Any]:
        array = self._arrays.pop(name, None)
        if array is None or array.dtype != np.dtype(dtype) or array.ndim != rank:
            self._fail(f"the array {name!r} is not {dtype} of {rank} dimension(s)")
        return array

    def _number(self, name: str, most: float) -> float:
        value = self._header[name]
        if type(value) not in (int, float) or not 0 < value <= most:
            self._fail(f"its {name} is not a number above 0")
        return float(value)

    def _make(self, build: Callable[[], Any]) -> Any:
        try:
            return build()
        except (ExpectaError, TypeError, ValueError, OverflowError) as problem:
            self._fail(str(problem))

    def _fail(self, problem: str) -> NoReturn:
        raise FormatError(self._path, None, f"the file is damaged: {problem}")
