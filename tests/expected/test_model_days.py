"""Trees over dates are exact for whole days, and sampled for times of the day."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from expecta import ExpectedPredictor, Independent


def _since(frame):
    return frame.apply(lambda day: (day - pd.Timestamp("2014-01-01")).dt.days)


def _month(frame):
    return frame.apply(lambda day: day.dt.month)


@pytest.mark.parametrize("feature", [pytest.param(_since, marks=pytest.mark.slow), _month])
def test_trees_over_days_are_exact(feature):
    rng = np.random.default_rng(0)
    day = pd.Timestamp("2014-01-01") + pd.to_timedelta(rng.integers(0, 200, 150), unit="D")
    frame = pd.DataFrame({"day": day, "x": rng.integers(0, 3, 150).astype(float)})
    prepare = make_column_transformer(
        (FunctionTransformer(feature), ["day"]), remainder="passthrough"
    )
    trees = HistGradientBoostingRegressor(max_iter=4, min_samples_leaf=5)
    target = _month(frame[["day"]])["day"] % 3 + frame["x"]
    model = make_pipeline(prepare, trees).fit(frame, target)
    expected = ExpectedPredictor(model, Independent()).fit(frame)
    assert expected.wrapped_.route is not None
    # independent columns: the mean over what the unknown one could be
    share = expected.density_.marginal("x").probabilities
    levels = frame["x"].drop_duplicates().sort_values().to_numpy()
    for date in ("2014-03-31", "2014-04-01", "2014-06-30", "2014-08-01", "2013-12-31"):
        rows = pd.DataFrame({"day": pd.Timestamp(date), "x": levels})
        wanted = share @ model.predict(rows)
        assert expected.predict({"day": pd.Timestamp(date), "x": None})[0] == pytest.approx(wanted)
    means = model.predict(frame.assign(x=1.0))
    nothing = expected.predict({"day": None, "x": 1.0})[0]
    assert nothing == pytest.approx(means.mean(), rel=0.05)


def test_trees_over_times_of_the_day_say_that_they_are_sampled():
    day = pd.Timestamp("2014-01-01") + pd.to_timedelta(np.arange(80) * 7, unit="h")
    frame = pd.DataFrame({"day": day})
    hours = FunctionTransformer(lambda frame: frame.apply(lambda day: day.dt.hour))
    model = make_pipeline(hours, HistGradientBoostingRegressor(max_iter=2)).fit(frame, day.hour)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told = ExpectedPredictor(model, Independent()).fit(frame).explain_exactness()
    assert "which are not whole days" in told
    assert "sampling is used instead" in told
