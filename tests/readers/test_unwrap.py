"""Models taken out of pipelines, searches and transformed targets."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import preprocessing as prep
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import StackingRegressor, VotingClassifier, VotingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline, make_pipeline

from expecta.readers import Unreadable
from expecta.readers.features import Features
from expecta.readers.forms import Form, Question, Trees
from expecta.readers.linear_models import read
from expecta.readers.unwrap import TargetTransform, unwrap

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) * [1.0, 5.0, 0.1]
Y = 100.0 + X @ [1.0, 2.0, 30.0] + RNG.normal(size=60)
MANY = np.stack([Y, 5.0 - 2.0 * Y + X[:, 0]], axis=1)
LABELS = (Y > 100).astype(int)


def check(model, rows=X):
    """Compare with the model itself."""
    parts = unwrap(model)
    form = parts.target.applied(read(parts.model))
    found = form.margin(Features.read(parts.steps, rows)(rows))
    found = np.exp(found) if form.link == "exp" else found
    predicted = model.predict(rows).reshape(len(rows), -1)
    np.testing.assert_allclose(found, predicted, rtol=1e-10, atol=1e-10)
    return parts


def test_pipelines():
    inner = Pipeline([("no", "passthrough"), ("m", LinearRegression())])
    model = Pipeline([("s", prep.StandardScaler()), ("none", None), ("inner", inner)]).fit(X, Y)
    assert [type(step).__name__ for step in check(model).steps] == ["StandardScaler"]
    bare = LinearRegression().fit(X, Y)
    assert check(bare).model is bare
    with pytest.raises(Unreadable, match="ends without a model"):
        unwrap(make_pipeline(prep.StandardScaler(), "passthrough").fit(X))


def test_frozen():
    scaler = FrozenEstimator(prep.StandardScaler().fit(X))
    final = FrozenEstimator(LinearRegression().fit(scaler.transform(X), Y))
    check(make_pipeline(scaler, final).fit(X, Y))


def test_searches():
    pipeline = make_pipeline(prep.StandardScaler(), PoissonRegressor())
    choices = {"poissonregressor__alpha": [0.1, 1.0]}
    check(GridSearchCV(pipeline, choices, cv=2).fit(X, Y))
    check(RandomizedSearchCV(pipeline, choices, n_iter=2, cv=2, random_state=0).fit(X, Y))
    with pytest.raises(Unreadable, match="refit=True"):
        unwrap(GridSearchCV(pipeline, choices, cv=2, refit=False).fit(X, Y))


@pytest.mark.parametrize("y", [Y, MANY])
@pytest.mark.parametrize(
    "transformer",
    [
        None,
        prep.StandardScaler(),
        prep.StandardScaler(with_mean=False),
        prep.StandardScaler(with_std=False),
        prep.RobustScaler(),
        prep.RobustScaler(with_centering=False, with_scaling=False),
        prep.MinMaxScaler(feature_range=(-1, 3)),
        prep.MaxAbsScaler(),
        make_pipeline(prep.StandardScaler(), "passthrough", prep.MinMaxScaler()),
    ],
    ids=str,
)
def test_targets_on_a_straight_line(transformer, y):
    inner = make_pipeline(prep.StandardScaler(), LinearRegression())
    model = TransformedTargetRegressor(inner, transformer=transformer, check_inverse=False)
    check(model.fit(X, y))
    twice = TransformedTargetRegressor(model, transformer=prep.StandardScaler())
    check(twice.fit(X, y))


def test_targets_with_an_exponential():
    scaled = prep.FunctionTransformer(np.log, np.exp)
    check(
        TransformedTargetRegressor(LinearRegression(), func=np.log, inverse_func=np.exp).fit(X, Y)
    )
    check(TransformedTargetRegressor(LinearRegression(), transformer=scaled).fit(X, Y))
    after = make_pipeline(prep.MaxAbsScaler(), scaled)
    parts = check(TransformedTargetRegressor(LinearRegression(), transformer=after).fit(X, Y))
    assert parts.target.exponential
    counts = TransformedTargetRegressor(PoissonRegressor(), transformer=prep.MaxAbsScaler())
    check(counts.fit(X, Y))


@pytest.mark.parametrize(
    "transformer",
    [
        prep.PowerTransformer(),
        prep.QuantileTransformer(n_quantiles=5),
        prep.FunctionTransformer(np.log1p, np.expm1),
        make_pipeline(prep.FunctionTransformer(np.log, np.exp), prep.StandardScaler()),
    ],
    ids=str,
)
def test_other_targets(transformer):
    model = TransformedTargetRegressor(LinearRegression(), transformer=transformer).fit(X, Y)
    with pytest.raises(Unreadable, match="sampling is used instead"):
        unwrap(model)


def test_targets_of_other_links():
    counts = read(PoissonRegressor().fit(X, Y))
    with pytest.raises(Unreadable, match="twice"):
        TargetTransform(exponential=True).applied(counts)
    with pytest.raises(Unreadable, match="'exp'"):
        TargetTransform(shift=np.array([1.0])).applied(counts)
    with pytest.raises(Unreadable, match="'exp'"):
        TargetTransform(factor=np.array([-1.0])).applied(counts)


def test_targets_of_trees():
    stump = Trees(
        1,
        (Question(0, 0.5),),
        np.array([0, 3]),
        np.array([0, -1, -1]),
        np.array([1, 0, 0]),
        np.array([2, 0, 0]),
        np.array([[0.0], [1.0], [2.0]]),
        np.array([10.0]),
    )
    form = TargetTransform(np.array([3.0]), np.array([-1.0])).applied(Form(stump))
    assert form.margin(np.array([[0.0], [1.0]])).tolist() == [[32.0], [35.0]]


def test_refusals():
    several = [("a", LinearRegression()), ("b", LinearRegression())]
    models = [
        VotingRegressor(several).fit(X, Y),
        StackingRegressor(several, cv=2).fit(X, Y),
        VotingClassifier([("a", LogisticRegression())]).fit(X, LABELS),
        CalibratedClassifierCV(LogisticRegression(), cv=2).fit(X, LABELS),
    ]
    for model in models:
        with pytest.raises(Unreadable, match="sampling is used instead"):
            unwrap(make_pipeline(prep.StandardScaler(), FrozenEstimator(model)).fit(X, LABELS))


def test_pipelines_of_users_stay_closed():
    class Other(Pipeline):
        def predict(self, X):
            return -super().predict(X)

    model = Other([("s", prep.StandardScaler()), ("m", LinearRegression())]).fit(X, Y)
    assert unwrap(model).model is model
