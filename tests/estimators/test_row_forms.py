"""Every verb takes rows in every form, and gives the same answer for all of them."""

from __future__ import annotations

from copy import copy
from datetime import UTC, date, datetime
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression

from expecta import (
    ChowLiu,
    CircuitClassifier,
    CircuitModel,
    CircuitRegressor,
    ConditionalMeanImputer,
    DomainError,
    Encoder,
    ExpectedPredictor,
    MissingColumnsWarning,
    MPEImputer,
    QueryError,
    config_context,
)
from expecta.tables.table import read_table

N = 120
TABLE = {
    "age": [20 + 7 * i % 50 for i in range(N)],
    "bmi": [18.5 + 3.25 * i % 20 for i in range(N)],
    "smoker": ["yes" if i * i % 7 < 3 else "no" for i in range(N)],
    "day": [date(2024, 1 + i % 3, 1 + i % 5) for i in range(N)],
}
COST = np.array(TABLE["age"]) + 2 * np.array(TABLE["bmi"])
COST += 30 * (np.array(TABLE["smoker"]) == "yes")
NUMBERS = {"age": TABLE["age"], "bmi": TABLE["bmi"]}
ROW = {"age": 41, "bmi": None, "smoker": "yes", "day": date(2024, 1, 1)}


def forms(names):
    """The row in every form, for a model of these columns."""
    row = {name: ROW[name] for name in names}
    missing = pd.DataFrame([row]).convert_dtypes()
    missing["bmi"] = pd.array([pd.NA], "Float64")
    if "day" in row:
        missing["day"] = pd.to_datetime([row["day"]])
    return {
        "pandas": pd.DataFrame([row]),
        "pandas, NaN": pd.DataFrame([{**row, "bmi": np.nan}]),
        "pandas, pd.NA": missing,
        "pandas, further columns in another order": pd.DataFrame([{**row, "x": 1.0, "id": "a"}])[
            ["id", *reversed(names), "x"]
        ],
        "polars": pl.DataFrame([row]).with_columns(pl.col("bmi").cast(pl.Float64)),
        "polars, no type": pl.DataFrame([row]),
        "Arrow table": pa.Table.from_pylist([row]),
        "Arrow batch": pa.RecordBatch.from_pylist([row]),
        "dict of lists": {name: [cell] for name, cell in row.items()},
        "dict of arrays": {name: np.array([cell]) for name, cell in row.items()},
        "dict of pandas columns": dict(pd.DataFrame([row]).items()),
        "dict of values": row,
        "dict of NumPy's values": {**row, "age": np.int64(41), "bmi": np.float64("nan")},
        "what is known": {name: cell for name, cell in row.items() if cell is not None},
        "records": [row],
        "Series": pd.Series(row),
        "row of a frame": pd.DataFrame([row]).iloc[0],
        "list of rows": [list(row.values())],
        "array": np.array([list(row.values())], object),
    }


VERBS = {
    "predict": lambda m, X: m.predict(X, return_error=True),
    "predict with std": lambda m, X: m.predict(X, return_std=True),
    "predict_proba": lambda m, X: m.predict_proba(X),
    "predict_interval": lambda m, X: m.predict_interval(X, 0.8),
    "predict_quantiles": lambda m, X: m.predict_quantiles(X, [0.3, 0.7]),
    "predict_distribution": lambda m, X: m.predict_distribution(X).quantile([0.25, 0.75]),
    "predict_moments": lambda m, X: m.predict_moments(X),
    "score_samples": lambda m, X: m.score_samples(X),
    "Density.score_samples": lambda m, X: m.density_.score_samples(X),
    "Density.condition": lambda m, X: m.density_.condition(X).marginal("bmi").probabilities,
    "Density.mpe": lambda m, X: list(m.density_.mpe(X)["bmi"]),
    "ask": lambda m, X: m.ask(X).to_dict(),
    "split": lambda m, X: m.split("bmi", given=X).to_dict(),
    "next_question": lambda m, X: m.next_question(X).to_dict(),
    "stability": lambda m, X: m.stability(X, 0.5).to_dict(),
    "sufficient": lambda m, X: m.sufficient(X, 0.5, probability=0.6).to_dict(),
    "shapley": lambda m, X: m.shapley(X).to_dict(),
    "outliers": lambda m, X: m.outliers(X).to_dict(),
}
OF_REGRESSORS = {"predict with std", "predict_interval", "predict_quantiles"}
OF_CLASSIFIERS = {"predict_proba"}


@cache
def make(kind):
    if kind == "regressor":
        return CircuitRegressor(density=ChowLiu(), max_splits=2).fit(TABLE, COST)
    if kind == "classifier":
        return CircuitClassifier(density=ChowLiu(), max_splits=2).fit(TABLE, COST > 100)
    frame = pd.DataFrame(NUMBERS)
    if kind == "wrapped classifier":
        inner = LogisticRegression().fit(frame, COST > 100)
        return ExpectedPredictor(inner, density=ChowLiu()).fit(frame, COST > 100)
    inner = HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=5).fit(frame, COST)
    model = ExpectedPredictor(inner, density=ChowLiu()).fit(frame, COST)
    return model.calibrate(frame, COST)


@pytest.fixture(
    scope="module", params=["regressor", "classifier", "wrapped trees", "wrapped classifier"]
)
def model(request):
    return make(request.param)


@pytest.mark.parametrize("verb", VERBS)
def test_a_row_has_one_answer_in_every_form(model, verb):
    if verb in (OF_REGRESSORS if hasattr(model, "classes_") else OF_CLASSIFIERS):
        return
    every = forms(model.density_.columns)
    ask = VERBS[verb]
    wanted = ask(model, every["pandas"])
    for form, row in every.items():
        np.testing.assert_equal(ask(model, row), wanted, err_msg=form)


def test_calibration_takes_rows_in_every_form():
    model = copy(make("regressor"))
    model.calibration_rows = 10
    frame = pd.DataFrame(TABLE)
    ends = {
        name: model.calibrate(X, COST).predict_interval(ROW).tolist()
        for name, X in {
            "pandas": frame,
            "polars": pl.DataFrame(TABLE),
            "records": frame.to_dict("records"),
            "batch": pa.RecordBatch.from_pydict(TABLE),
            "array": frame.to_numpy(object),
        }.items()
    }
    assert len({str(end) for end in ends.values()}) == 1


@pytest.mark.parametrize("imputer", [MPEImputer, ConditionalMeanImputer])
def test_imputers_return_the_form_that_they_are_given(imputer):
    fitted = imputer(ChowLiu()).fit(TABLE)
    every = forms(list(TABLE))
    bmi = fitted.transform(every["dict of lists"])["bmi"][0]
    assert fitted.transform(every["dict of values"]) == {**ROW, "bmi": bmi}
    assert fitted.transform(every["records"]) == [{**ROW, "bmi": bmi}]
    assert fitted.transform(every["Series"]).to_dict() == {**ROW, "bmi": bmi}
    batch = fitted.transform(every["Arrow batch"])
    assert isinstance(batch, pa.RecordBatch)
    assert batch.to_pylist() == [{**ROW, "bmi": bmi}]
    with pytest.raises(DomainError, match="X has 2 features"):
        fitted.transform({"age": 41, "smoker": "yes"})


# -- several rows, absent and misspelt columns ---------------------------------------------


@pytest.fixture(scope="module")
def regressor():
    return make("regressor")


def test_a_question_about_one_row_says_so(regressor):
    two = pd.DataFrame([ROW, ROW])
    for ask in (
        lambda: regressor.next_question(two),
        lambda: regressor.ask(two),
        lambda: regressor.sufficient(two, 100.0),
        lambda: regressor.sufficient(two.to_dict("list"), 100.0),
        lambda: regressor.next_question(two[:0]),
    ):
        with pytest.raises(DomainError, match=r"about one row, and [02] are given"):
            ask()
    with pytest.raises(QueryError, match="not int"):
        regressor.ask(5)


def test_lists_and_intervals_stay_conditions(regressor):
    wide = regressor.next_question({"age": (30, 50), "smoker": ["yes", "no"]})
    assert wide.given == "30 <= age <= 50"
    assert "age" in wide.columns
    assert regressor.next_question({}).given == "all rows"


@pytest.mark.parametrize(
    "lacking",
    [
        pd.DataFrame({"smoker": ["yes"], "age": [41]}),
        pl.DataFrame({"smoker": ["yes"], "age": [41]}),
        {"smoker": ["yes"], "age": [41]},
        [{"smoker": "yes", "age": 41}],
        pa.table({"smoker": ["yes"], "age": [41]}),
    ],
    ids=lambda rows: type(rows).__name__,
)
def test_an_absent_column_is_unknown_and_said_once(regressor, lacking):
    wanted = regressor.predict({"smoker": "yes", "age": 41})
    with pytest.warns(MissingColumnsWarning, match="no columns 'bmi', 'day': missing") as seen:
        answer = regressor.predict(lacking)
    assert answer == wanted
    assert len(seen) == 1
    assert seen[0].filename == __file__
    with config_context(columns="strict"), pytest.raises(DomainError, match="no column 'bmi', 'd"):
        regressor.predict(lacking)


def test_misspelt_columns_are_refused(regressor):
    whole = pd.DataFrame([ROW])
    for wrong, right in {"Age": "age", "smokr": "smoker", "BMI": "bmi"}.items():
        with pytest.raises(DomainError, match=f"no column '{wrong}'; did you mean '{right}'"):
            regressor.predict(whole.rename(columns={right: wrong}))
        with pytest.raises(DomainError, match=f"did you mean '{right}'"):
            regressor.shapley({wrong: ROW[right] or 20.0})
    regressor.predict(whole.assign(Age=3, smokr="x"))  # further columns beside the right ones
    with pytest.raises(DomainError, match="no column 'weather'; there is 'age'"):
        regressor.predict({"age": 41, "weather": "rain"})
    with pytest.raises(DomainError, match="none of the model's columns"):
        regressor.predict({"x": [1], "y": [2]})
    with pytest.raises(ValueError, match="columns is 'unknown' or 'strict', not 'loose'"):
        config_context(columns="loose").__enter__()


def test_records_whose_names_differ_in_case_are_refused():
    with pytest.raises(DomainError, match="'age' and 'Age', which differ in upper and lower case"):
        read_table([{"age": 40, "bmi": 20.0}, {"Age": 30}])
    both = read_table([{"a": 1, "A": 2}, {"a": 1}])
    assert both.names == ("a", "A")


def test_a_series_with_a_name_twice_is_refused(regressor):
    with pytest.raises(DomainError, match="two columns have the name 'age'"):
        regressor.predict(pd.Series([41, 42], index=["age", "age"]))


# -- missing values that are values --------------------------------------------------------


@pytest.fixture(scope="module")
def tested():
    """Models in which a test that was not made tells of its result."""
    rng = np.random.default_rng(0)
    ill = rng.random(300) < 0.3
    test = np.where(
        rng.random(300) < np.where(ill, 0.9, 0.2), ill + rng.normal(0, 0.2, 300), np.nan
    )
    table = {"age": rng.integers(20, 60, 300), "test": test}
    encoder = Encoder(missing_is_value=["test"])
    cost = 50.0 * ill + table["age"]
    return CircuitRegressor(density=ChowLiu(), encoder=encoder, max_splits=4).fit(table, cost)


def test_the_next_question_sees_that_a_value_is_missing(tested):
    for row in (
        {"age": 40, "test": None},
        {"age": [40], "test": [None]},
        {"age": 40},
        pd.DataFrame({"age": [40], "test": [np.nan]}),
        {"age": None, "test": None},
        {"age": None, "test": 1.0},
    ):
        answer = tested.next_question(row)
        assert answer.value == pytest.approx(tested.predict(row)[0], rel=1e-12)
        assert "test" not in answer.columns
    assert "test" in tested.next_question("age == 40").columns
    assert tested.ask(test=None).mean == tested.ask("test == 'missing'").mean
    assert tested.ask(test=None).mean != pytest.approx(tested.ask().mean, rel=1e-3)
    both = tested.ask(test=[None, "missing"])
    assert both.share == tested.ask("test == 'missing'").share


# -- times, codes and bits -----------------------------------------------------------------


def test_times_of_a_row_are_facts():
    hours = [datetime(2024, 1, 1, i % 7, tzinfo=UTC) for i in range(70)]
    table = pl.DataFrame({"hour": hours, "x": [i % 2 for i in range(70)]})
    model = CircuitRegressor(density=ChowLiu(), max_splits=2).fit(table, np.arange(70.0) % 7)
    for answer in (model.ask(table[3]), model.ask(table[3].to_pandas())):
        assert answer.query == model.ask(hour=hours[3], x=1).query
        assert answer.share > 0
    stamps = np.array([hours[3].replace(tzinfo=None)], "M8[ns]")
    plain = CircuitRegressor(density=ChowLiu(), max_splits=2)
    plain.fit(table.with_columns(pl.col("hour").dt.replace_time_zone(None)), np.arange(70.0) % 7)
    assert plain.ask(hour=stamps).share == plain.ask(hour=stamps[0]).share > 0


def test_codes_and_bits():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (80, 3))
    model = CircuitRegressor(density=ChowLiu()).fit(codes, codes @ [1.0, 2.0, 4.0])
    row = np.array([[1, -1, 0]])
    assert model.ask(row).mean == pytest.approx(model.ask(x0=1, x2=0).mean)
    assert model.next_question(row).columns == ("x1",)
    of_circuits = CircuitModel(model.pair_, model.encoder_)
    assert of_circuits.next_question(row).columns == ("x1",)
    density = model.ask(row, population="density").mean
    assert of_circuits.ask(row).mean == pytest.approx(density)
