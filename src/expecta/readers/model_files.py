"""Read fitted models from files: formats that run no code, and pickles that are trusted."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from expecta.common.arrays import Floats
from expecta.common.errors import DomainError
from expecta.common.file_input import read_bytes
from expecta.readers import lightgbm
from expecta.readers.forms import Categories, Form
from expecta.readers.onnx_models import read_onnx

PICKLES = (".joblib", ".pkl", ".pickle")


class FormModel:
    """A model that is nothing but its form: what was read of a file.

    Parameters
    ----------
    form
        Its margin and link.
    names
        The names of its columns, where the file has some.
    """

    def __init__(self, form: Form, names: list[str] | None = None) -> None:
        self.form = form
        if names is not None:
            self.feature_names_in_ = np.array(names, object)
        self.n_features_in_ = form.margin.n_features
        if form.classes is not None:
            self.classes_ = form.classes
            self.predict_proba = self._probabilities

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the outputs of rows, or their classes."""
        if self.form.classes is None:
            outputs = self._outputs(X)
            return outputs[:, 0] if outputs.shape[1] == 1 else outputs
        return self.form.classes[np.argmax(self._probabilities(X), axis=1)]

    def _probabilities(self, X: Any) -> Floats:
        outputs = self._outputs(X)
        return np.hstack([1.0 - outputs, outputs]) if outputs.shape[1] == 1 else outputs

    def _outputs(self, X: Any) -> Floats:
        margin = self.form.margin(np.asarray(X, np.float64))
        link = self.form.link
        if link == "exp":
            return np.exp(margin)
        if link == "softmax":
            return np.asarray(softmax(margin, axis=1))
        if link in ("logistic", "one-vs-rest"):
            each: Floats = expit(margin)
            return each if link == "logistic" else each / each.sum(axis=1, keepdims=True)
        return margin


def read(model: Any, categories: Categories | None = None) -> Form | None:
    """Return the form of a `FormModel`; None if it is something else."""
    return model.form if type(model) is FormModel else None


def load_model(path: str | Path, *, trust: bool = False) -> Any:
    """Read a fitted model from a file.

    XGBoost's JSON and UBJ, LightGBM's text, CatBoost's ``.cbm`` and JSON, ONNX's tree ensembles and
    linear models, and skops run no code. A pickle or joblib file can run any, so that it is read
    with ``trust`` only: where you know who made it. The library of the model must be installed,
    but for ONNX.

    Raises
    ------
    DomainError
        If it is none of these, or is a pickle that is not trusted.
    """
    path = Path(path)
    ending = path.suffix.lower()
    data = read_bytes(str(path))
    if ending in PICKLES or data[:2] in (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"):
        return _unpickled(path, trust)
    if ending == ".skops":
        return _from_skops(path, trust)
    if ending == ".onnx":
        return FormModel(*read_onnx(str(path), data))
    if data[:4] == b"CBM1":
        return _catboost(path, "cbm")
    if data[:5] == b"tree\n" or data[:6] == b"tree\r\n":
        return _lightgbm(path)
    if ending == ".ubj":
        return _xgboost(path)
    if data.lstrip()[:1] == b"{":
        keys = _keys(path, data)
        if "learner" in keys:
            return _xgboost(path)
        if "features_info" in keys:
            return _catboost(path, "json")
    raise DomainError(
        f"{path} is not a model that can be read: XGBoost's .json or .ubj, LightGBM's text, "
        f"CatBoost's .cbm or .json, .onnx, .skops, or with trust .joblib and .pkl"
    )


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise DomainError(f"the model needs {name.split('.')[0]}; install it") from None


def _unpickled(path: Path, trust: bool) -> Any:
    if not trust:
        raise DomainError(
            f"{path} is a pickle, which can run any code when it is read; if you know who made it, "
            f"say trust=True, or --trust"
        )
    return _library("joblib").load(path)


def _from_skops(path: Path, trust: bool) -> Any:
    skops = _library("skops.io")
    unknown = skops.get_untrusted_types(file=path)
    if unknown and not trust:
        raise DomainError(
            f"{path} has objects of types that skops does not know: {', '.join(unknown[:5])}; if "
            f"you know who made it, say trust=True, or --trust"
        )
    return skops.load(path, trusted=unknown)


def _keys(path: Path, data: bytes) -> set[str]:
    try:
        return set(json.loads(data))
    except ValueError:
        raise DomainError(f"{path} is not JSON, or it is damaged") from None


def _xgboost(path: Path) -> Any:
    xgboost = _library("xgboost")
    booster = _loaded(path, "XGBoost", lambda: xgboost.Booster(model_file=str(path)))
    config = json.loads(booster.save_config())
    objective = str(config["learner"]["objective"]["name"])
    classes = objective.startswith(("binary:", "multi:"))
    model = xgboost.XGBClassifier() if classes else xgboost.XGBRegressor()
    model.load_model(str(path))
    return model


def _lightgbm(path: Path) -> Any:
    """Return a booster; of a classifier its form, as a booster has no classes."""
    library = _library("lightgbm")
    booster = _loaded(path, "LightGBM", lambda: library.Booster(model_file=str(path)))
    form, names = lightgbm.read(booster), booster.feature_name()
    assert form is not None
    named = None if all(n == f"Column_{i}" for i, n in enumerate(names)) else names
    if form.classes is not None and not form.categories:
        return FormModel(form, named)
    if named is not None:
        booster.feature_names_in_ = np.array(named, object)
    return booster


def _catboost(path: Path, form: str) -> Any:
    catboost = _library("catboost")
    model = catboost.CatBoost()
    _loaded(path, "CatBoost", lambda: model.load_model(str(path), format=form))
    classes = len(np.atleast_1d(model.classes_)) > 0
    model = catboost.CatBoostClassifier() if classes else catboost.CatBoostRegressor()
    model.load_model(str(path), format=form)
    return model


def _loaded(path: Path, library: str, load: Any) -> Any:
    try:
        return load()
    except Exception as problem:
        first = (str(problem).splitlines() or [type(problem).__name__])[0]
        raise DomainError(f"{path} cannot be read by {library}: {first:.200}") from None
