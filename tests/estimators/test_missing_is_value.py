"""Columns in which a hole is a value: of the encoder, of the density, and of the model."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from expecta import (
    ChowLiu,
    CircuitRegressor,
    Density,
    DomainError,
    Encoder,
    ExpectedPredictor,
    QueryError,
)
from expecta.tables.encoder_files import ENCODER_FILE

HOLED = ["dose", "ward"]


def table(n=300, seed=0, mark=None):
    """A dose that is missing in the old, and a ward that is missing in the young."""
    rng = np.random.default_rng(seed)
    age = rng.integers(2, 6, n) * 10.0
    dose = np.where(rng.random(n) < (age - 10) / 60, np.nan, rng.integers(0, 4, n) / 2)
    ward = np.array(["east", "west"], object)[rng.integers(0, 2, n)]
    ward[rng.random(n) < (60 - age) / 80] = mark
    y = np.where(np.isnan(dose), 5.0, dose) + age / 10 * (ward == "east")
    frame = pd.DataFrame({"age": age, "dose": dose})
    return frame.assign(ward=pd.Series(ward, dtype=object)), y


def models():
    one_hot = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["ward"]), remainder="passthrough"
    )
    native = [HistGradientBoostingRegressor(max_iter=8), RandomForestRegressor(5, max_depth=4)]
    found = {type(one).__name__: make_pipeline(one_hot, one) for one in native}
    found["ridge"] = make_pipeline(one_hot, SimpleImputer(add_indicator=True), Ridge())
    try:
        from xgboost import XGBRegressor
    except ImportError:
        return found
    return found | {"xgboost": make_pipeline(one_hot, XGBRegressor(n_estimators=8, max_depth=3))}


def enumerated(model, expected, rows):
    """E over the age, the obvious way: each age through the model."""
    density = expected.wrapped_.density
    encoder = density.encoder_
    ages = np.arange(encoder.cardinalities_[0])
    found = []
    for code, (_, row) in zip(encoder.codes(rows), rows.iterrows(), strict=True):
        every = np.tile(code, (len(ages), 1))
        every[:, 0] = ages
        weight = np.exp(density.circuit.log_prob(every))
        frame = pd.DataFrame([row] * len(ages)).reset_index(drop=True)
        frame["age"] = encoder.columns_[0].means
        frame = frame.astype({"dose": float, "ward": rows.ward.dtype})
        found.append(weight @ model.predict(frame) / weight.sum())
    return np.array(found)


@pytest.mark.parametrize("mark", [None, np.nan], ids=["None", "NaN"])
@pytest.mark.parametrize("name", models())
def test_holes_are_seen_by_the_model(name, mark):
    X, y = table(mark=mark)
    model = models()[name].fit(X, y)
    expected = ExpectedPredictor(model, ChowLiu(), missing_is_value=HOLED).fit(X)
    assert expected.wrapped_.route is not None
    np.testing.assert_allclose(expected.predict(X), model.predict(X), rtol=1e-9)
    rows = X.iloc[:20].assign(age=np.nan)
    tol = 1e-6 if name == "xgboost" else 1e-8
    truth = enumerated(model, expected, rows)
    np.testing.assert_allclose(expected.predict(rows), truth, rtol=tol)
    assert "dose, ward" in expected.explain_exactness()


def test_a_hole_tells_of_other_columns():
    X, y = table(2000)
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["ward"]), remainder="passthrough"),
        HistGradientBoostingRegressor(max_iter=30),
    ).fit(X, y)
    expected = ExpectedPredictor(model, missing_is_value=HOLED).fit(X)
    density = expected.density_
    old = density.condition(dose="missing").marginal("age").mean
    assert old == pytest.approx(X.age[X.dose.isna()].mean(), rel=0.05)
    without = ExpectedPredictor(model).fit(X)
    hidden = X.assign(age=np.nan)
    exact = np.mean((expected.predict(hidden) - y) ** 2)
    assert exact < 0.9 * np.mean((without.predict(hidden) - y) ** 2)


def test_intervals_hide_no_column_whose_holes_are_values():
    X, y = table(800)
    model = models()["HistGradientBoostingRegressor"].fit(X[:400], y[:400])
    expected = ExpectedPredictor(model, ChowLiu(), missing_is_value=HOLED).fit(X[:400])
    ends = expected.calibrate(X[400:], y[400:]).predict_interval(X.assign(age=np.nan))
    assert 0.8 < np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])) <= 1


def test_a_learned_density_must_agree():
    X, y = table()
    model = models()["ridge"].fit(X, y)
    with pytest.raises(DomainError, match=r"missing_is_value names \['dose'\]; let them agree"):
        ExpectedPredictor(model, ChowLiu().fit(X), missing_is_value=["dose"]).fit(X)
    learned = ChowLiu(encoder=Encoder(missing_is_value=HOLED)).fit(X)
    with pytest.raises(DomainError, match="let them agree"):
        ExpectedPredictor(model, learned).fit(X)


def test_encoder_and_files(tmp_path):
    X, y = table()
    encoder = Encoder(missing_is_value=HOLED).fit(X)
    codes = encoder.transform(X)
    assert codes.min() == 0
    gone = codes[:, 1] == encoder.cardinalities_[1] - 1
    np.testing.assert_array_equal(gone, X.dose.isna())
    back = encoder.inverse_transform(codes)
    pd.testing.assert_frame_equal(back.fillna({"ward": "-"}), X.fillna({"ward": "-"}), False)
    assert encoder.column("dose").labels[-1] == "missing"
    assert encoder.column("dose").counts[-1] == gone.sum()
    assert encoder.where(dose="missing").weights(1)[0].tolist() == [0, 0, 0, 0, 1]
    assert encoder.where(dose=(0, 1)).weights(1)[0].tolist() == [1, 1, 1, 0, 0]
    with pytest.raises(DomainError, match="may be missing, which is not a number"):
        encoder.values("dose")
    again = ENCODER_FILE.from_bytes("f", ENCODER_FILE.to_bytes(encoder))
    np.testing.assert_array_equal(again.transform(X), codes)

    density = ChowLiu(encoder=Encoder(max_bins=2, missing_is_value=HOLED)).fit(X)
    fine = density.refined(X, thresholds={"dose": [0.6]})
    for facts in ({"dose": "missing"}, {"ward": "missing"}):
        np.testing.assert_allclose(
            fine.condition(facts).marginal("age").mean,
            density.condition(facts).marginal("age").mean,
            rtol=1e-9,
        )
    fine.save(tmp_path / "density")
    np.testing.assert_array_equal(
        Density.load(tmp_path / "density").score_samples(X), fine.score_samples(X)
    )
    model = CircuitRegressor(density=ChowLiu(encoder=Encoder(missing_is_value=HOLED)))
    assert model.fit(X, y).score(X, y) > 0.95


def test_refusals():
    with pytest.raises(ValueError, match="missing_is_value names the column 'x0' of an integer"):
        Encoder(missing_is_value=["x0"]).fit(np.array([[0, 1], [1, -1]]))
    with pytest.raises(ValueError, match="missing_is_value names the column 'nosuch'"):
        Encoder(missing_is_value=["nosuch"]).fit({"a": [1.0]})
    with pytest.raises(ValueError, match="a list of names"):
        Encoder(missing_is_value="a").fit({"a": [1.0]})


def test_questions_about_groups():
    X, y = table(600)
    model = models()["HistGradientBoostingRegressor"].fit(X, y)
    expected = ExpectedPredictor(model, ChowLiu(), missing_is_value=HOLED).fit(X, y)
    gone, there = expected.ask(dose="missing"), expected.ask("dose >= 0")
    assert gone.rows == X.dose.isna().sum()
    assert there.rows == X.dose.notna().sum()
    assert gone.share + there.share == pytest.approx(1)
    assert gone.mean == pytest.approx(model.predict(X)[X.dose.isna()].mean(), rel=0.05)
    assert expected.ask("dose < 0.6 and ward != 'missing'").rows == np.sum(
        (X.dose < 0.6) & X.ward.notna()
    )
    coarse = ChowLiu(encoder=Encoder(max_bins=2, missing_is_value=HOLED))
    circuit = CircuitRegressor(density=coarse, max_bins=2).fit(X, y)
    with pytest.raises(QueryError, match="must be whole bins"):
        circuit.ask("dose < 0.2")
    assert circuit.ask(dose="missing").rows == gone.rows
    row = {"age": 40.0, "dose": None, "ward": "east"}
    assert list(expected.next_question(row).columns) in (["dose"], [])
    values = expected.shapley(X.head(2))
    np.testing.assert_allclose(
        values.base + values.values.sum(axis=1), expected.predict(X.head(2)), rtol=1e-9
    )
    drawn = ExpectedPredictor(
        Plain(model), ChowLiu(), missing_is_value=HOLED, max_samples=20_000
    ).fit(X)
    both = [one.ask(ward="west") for one in (drawn, expected)]
    assert abs(both[0].density_mean - both[1].density_mean) < 5 * both[0].numerical_error


class Plain:
    """A model whose inside nobody knows."""

    def __init__(self, model):
        self.model = model
        self.feature_names_in_ = model.feature_names_in_

    def predict(self, X):
        return self.model.predict(X)
