"""A model of another library comes to the command line by its file."""

from __future__ import annotations

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from commands import bad, good, parsed
from expecta import ExpectedPredictor

N = 150
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"age": RNG.integers(20, 60, N), "size": RNG.normal(size=N).round(2)})
TABLE["kind"] = np.where(RNG.random(N) < 0.3, "a", "b")
TABLE["cost"] = TABLE["age"] * 2 + TABLE["size"] + 5 * (TABLE["kind"] == "a")
NUMBERS = ["age", "size"]


@pytest.fixture
def folder(tmp_path):
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path


def test_a_pipeline_is_wrapped_and_asked(folder):
    prepare = make_column_transformer((OneHotEncoder(), ["kind"]), (StandardScaler(), NUMBERS))
    pipeline = make_pipeline(prepare, LinearRegression())
    pipeline.fit(TABLE.drop(columns="cost"), TABLE["cost"])
    joblib.dump(pipeline, folder / "m.joblib")
    words = "wrap", folder / "m.joblib", folder / "t.csv", "-t", "cost", "-o", folder / "m.expecta"
    assert "--trust" in bad(*words)
    told = good(*words, "--trust", "--calibrate", folder / "t.csv")
    assert "exact" in told
    assert "--force" in bad(*words, "--trust")
    (row,) = parsed("predict", folder / "m.expecta", "-", stdin="age,kind\n40,a\n")["rows"]
    expected = ExpectedPredictor.load(folder / "m.expecta")
    assert row["cost_predicted"] == expected.predict({"age": 40, "kind": "a"})[0]
    good("ask", folder / "m.expecta", "kind == 'a' and age < 40")


def test_models_that_were_fitted_to_arrays(folder):
    X, y = TABLE[NUMBERS].to_numpy(float), TABLE["cost"].to_numpy() > 80
    pairs = {
        "a": RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, TABLE["cost"]),
        "b": make_pipeline(StandardScaler(), GradientBoostingClassifier(n_estimators=3)).fit(X, y),
    }
    TABLE[NUMBERS].to_csv(folder / "n.csv", index=False)
    for name, model in pairs.items():
        joblib.dump(model, folder / f"{name}.joblib")
        file = folder / f"{name}.expecta"
        good("wrap", folder / f"{name}.joblib", folder / "n.csv", "--trust", "-o", file)
        (row,) = parsed("predict", file, "-", stdin="age,size\n40,0.5\n")["rows"]
        assert row[next(iter(row))] == pytest.approx(model.predict([[40.0, 0.5]])[0], rel=1e-12)
    words = "wrap", folder / "a.joblib", folder / "t.csv", "--trust", "-o", folder / "c.expecta"
    assert "has 4 columns, and the model takes 2" in bad(*words)


def test_what_cannot_be_wrapped(folder):
    nearest = KNeighborsRegressor().fit(TABLE[NUMBERS], TABLE["cost"])
    joblib.dump(nearest, folder / "m.joblib")
    words = "wrap", folder / "m.joblib", folder / "t.csv", "--trust", "-o", folder / "m.expecta"
    assert "can only be sampled" in bad(*words)
    assert "--target" in bad(*words, "--calibrate", folder / "t.csv")
    assert "did you mean 'cost'" in bad(*words, "-t", "costs")
    assert "not a model that can be read" in bad(*words[:1], folder / "t.csv", *words[2:])
