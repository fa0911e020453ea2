"""Make onnx_files.npz, which tests read: models as ONNX, and what onnxruntime answers for them.

In an environment of its own: pip install skl2onnx onnxmltools onnxruntime lightgbm xgboost-cpu;
then python benchmarks/make_onnx_files.py.
"""

from __future__ import annotations

from pathlib import Path

import lightgbm
import numpy as np
import onnxmltools
import onnxruntime
import skl2onnx
import xgboost
from onnxmltools.convert.common.data_types import FloatTensorType as OtherFloats
from skl2onnx.common.data_types import FloatTensorType
from sklearn import ensemble, linear_model, tree
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3)).round(2)
y = X[:, 0] * 3 + np.where(X[:, 1] > 0, 2.0, -1.0) * X[:, 2]
two, three = np.where(y > 0, "yes", "no"), np.digitize(y, [-1.0, 1.0])
few = {"max_depth": 3, "random_state": 0}
MODELS = {
    "least squares": (linear_model.LinearRegression(), y),
    "logistic": (linear_model.LogisticRegression(), two),
    "logistic, three": (linear_model.LogisticRegression(), three),
    "logistic, scaled": (make_pipeline(StandardScaler(), linear_model.LogisticRegression()), two),
    "tree": (tree.DecisionTreeRegressor(**few), y),
    "forest": (ensemble.RandomForestRegressor(5, **few), y),
    "forest, two": (ensemble.RandomForestClassifier(5, **few), two),
    "forest, three": (ensemble.RandomForestClassifier(5, **few), three),
    "boosting": (ensemble.GradientBoostingRegressor(n_estimators=5, **few), y),
    "boosting, two": (ensemble.GradientBoostingClassifier(n_estimators=5, **few), two),
    "boosting, three": (ensemble.GradientBoostingClassifier(n_estimators=5, **few), three),
    "histograms": (ensemble.HistGradientBoostingRegressor(max_iter=5, **few), y),
    "histograms, two": (ensemble.HistGradientBoostingClassifier(max_iter=5, **few), two),
    "XGBoost": (xgboost.XGBRegressor(n_estimators=5, **few), y),
    "XGBoost, two": (xgboost.XGBClassifier(n_estimators=5, **few), (y > 0).astype(int)),
    "XGBoost, three": (xgboost.XGBClassifier(n_estimators=5, **few), three),
    "LightGBM": (lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, **few), y),
    "LightGBM, two": (lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, **few), (y > 0) * 1),
}


def convert(name, model):
    if name.startswith("XGB"):
        return onnxmltools.convert_xgboost(model, initial_types=[("X", OtherFloats([None, 3]))])
    if name.startswith("Light"):
        types = [("X", OtherFloats([None, 3]))]
        return onnxmltools.convert_lightgbm(model, initial_types=types, zipmap=False)
    options = {"zipmap": False} if hasattr(model, "classes_") else None
    options = {id(model): options} if options else None
    types = [("X", FloatTensorType([None, 3]))]
    return skl2onnx.convert_sklearn(model, initial_types=types, options=options)


made = {"X": X}
for name, (model, target) in MODELS.items():
    try:
        file = convert(name, model.fit(X, target)).SerializeToString()
    except Exception as problem:
        print(name, "is left out:", repr(problem)[:200])
        continue
    session = onnxruntime.InferenceSession(file)
    outputs = session.run(None, {session.get_inputs()[0].name: X.astype(np.float32)})
    made[f"{name}.file"] = np.frombuffer(file, np.uint8)
    made[f"{name}.output"] = np.asarray(outputs[-1], np.float64).reshape(len(X), -1)
named = [(name, FloatTensorType([None, 1])) for name in ("a", "b", "c")]
scaled = ColumnTransformer([("scaled", StandardScaler(), [0, 1, 2])])
linear = make_pipeline(scaled, linear_model.LinearRegression()).fit(X, y)
linear = skl2onnx.convert_sklearn(linear, initial_types=named)
made["named.file"] = np.frombuffer(linear.SerializeToString(), np.uint8)
path = Path(__file__).parents[1] / "tests" / "readers" / "onnx_files.npz"
np.savez_compressed(path, **made)
