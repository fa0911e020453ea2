"""Models from files answer as they did before, and no code runs unless it is trusted."""

from __future__ import annotations

import pickle
from contextlib import suppress
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from expecta.common.errors import DomainError, FormatError
from expecta.readers.model_files import load_model
from expecta.readers.onnx_models import read_onnx
from expecta.readers.read_model import read

pytest.importorskip("polars")  # CatBoost imports it, and it sets a variable of the environment
ONNX = np.load(Path(__file__).with_name("onnx_files.npz"))
NAMES = sorted(name.removesuffix(".output") for name in ONNX if name.endswith(".output"))
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(200, 3)).round(2), columns=["a", "b", "c"])
Y = FRAME["a"] * 2 + np.where(FRAME["b"] > 0, FRAME["c"], 0)


@pytest.mark.parametrize("name", NAMES)
def test_onnx_answers_as_its_runtime_does(name, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(ONNX[f"{name}.file"].tobytes())
    model = load_model(path)
    answers = getattr(model, "predict_proba", model.predict)(ONNX["X"]).reshape(len(ONNX["X"]), -1)
    assert np.allclose(answers, ONNX[f"{name}.output"], 1e-4, 1e-5)
    assert read(model, {}).form.margin is model.form.margin


def test_onnx_of_named_columns():
    form, names = read_onnx("model", ONNX["named.file"].tobytes())
    assert names == ["a", "b", "c"]
    assert form.margin.n_features == 3


def test_damaged_onnx_is_refused():
    data = ONNX["forest.file"].tobytes()
    rng = np.random.default_rng(1)
    for _ in range(200):
        cut = bytearray(data[: rng.integers(1, len(data))] if rng.random() < 0.5 else data)
        for place in rng.integers(0, len(cut), 3):
            cut[place] = rng.integers(0, 256)
        with suppress(FormatError, DomainError):
            read_onnx("model.onnx", bytes(cut))
    with pytest.raises(FormatError, match="not an ONNX file"):
        read_onnx("model.onnx", b"\x00\x01")


def test_boosters_from_files(tmp_path):
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    few = {"n_estimators": 4, "max_depth": 3}
    models = {
        "a.json": xgboost.XGBRegressor(**few).fit(FRAME, Y),
        "b.ubj": xgboost.XGBClassifier(**few).fit(FRAME, Y > 0),
        "c.txt": lightgbm.LGBMRegressor(**few, verbose=-1).fit(FRAME, Y),
        "d.txt": lightgbm.LGBMClassifier(**few, verbose=-1).fit(FRAME, Y > 0),
        "e.txt": lightgbm.LGBMClassifier(**few, verbose=-1).fit(FRAME, np.digitize(Y, [-1, 1])),
    }
    for name, model in models.items():
        save = model.save_model if name[0] in "ab" else model.booster_.save_model
        save(str(tmp_path / name))
        again = load_model(tmp_path / name)
        method = "predict_proba" if hasattr(model, "classes_") else "predict"
        assert np.allclose(getattr(again, method)(FRAME), getattr(model, method)(FRAME), 1e-6)
        assert list(again.feature_names_in_) == ["a", "b", "c"]
        assert read(again, {}).form.margin.n_features == 3


def test_catboost_from_files(tmp_path):
    catboost = pytest.importorskip("catboost")
    few = {"iterations": 4, "depth": 2, "verbose": 0, "allow_writing_files": False}
    for model, target in (
        (catboost.CatBoostRegressor(**few), Y),
        (catboost.CatBoostClassifier(**few), np.where(Y > 0, "yes", "no")),
    ):
        model.fit(FRAME, target)
        method = "predict_proba" if hasattr(model, "predict_proba") else "predict"
        for form in ("cbm", "json"):
            path = tmp_path / f"m.{form}"
            model.save_model(str(path), format=form)
            again = load_model(path)
            assert np.allclose(getattr(again, method)(FRAME), getattr(model, method)(FRAME))


def test_pickles_are_read_only_if_trusted(tmp_path):
    model = LinearRegression().fit(FRAME, Y)
    joblib.dump(model, tmp_path / "m.joblib")
    with pytest.raises(DomainError, match="trust=True, or --trust"):
        load_model(tmp_path / "m.joblib")
    assert np.allclose(load_model(tmp_path / "m.joblib", trust=True).coef_, model.coef_)
    target = tmp_path / "ran"
    for name in ("m.json", "m.onnx", "m.txt", "m.skops", "m.cbm", "m.ubj"):

        class Harm:
            def __reduce__(self):
                return target.write_text, ("ran",)

        (tmp_path / name).write_bytes(pickle.dumps(Harm()))
        with pytest.raises((DomainError, FormatError)):
            load_model(tmp_path / name)
    assert not target.exists()
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(DomainError, match="not a model that can be read"):
        load_model(tmp_path / "a.json")
