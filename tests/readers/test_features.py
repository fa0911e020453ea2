"""Where features come from, through transformers of all kinds."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from sklearn import feature_selection as choose
from sklearn import preprocessing as prep
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.linear_model import Lasso
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline

from expecta.common.errors import DomainError
from expecta.readers import Unreadable, frames
from expecta.readers.features import Features

ROWS = 80
RNG = np.random.default_rng(0)
NUMBERS = np.stack(
    [
        RNG.normal(size=ROWS) * 30 - 5,
        RNG.gamma(2.0, size=ROWS) + 0.1,
        np.round(RNG.uniform(1, 9, size=ROWS)),
        RNG.uniform(size=ROWS),
    ],
    axis=1,
)
HOLES = np.where(RNG.random(NUMBERS.shape) < [0.2, 0.0, 0.3, 0.0], np.nan, NUMBERS)
LETTERS = np.array(["u", "v", "w", "z"])[RNG.choice(4, p=[0.5, 0.3, 0.17, 0.03], size=ROWS)]
TARGET = NUMBERS @ [0.001, 1.0, 0.0, 0.0]
FRAME = pd.DataFrame(
    {
        "a": NUMBERS[:, 0],
        "b": NUMBERS[:, 1],
        "c": NUMBERS[:, 2].astype(int),
        "d": np.where(np.arange(ROWS) % 5 == 3, np.nan, NUMBERS[:, 3]),
        "e": LETTERS,
        "f": pd.Categorical(LETTERS[::-1]),
        "g": NUMBERS[:, 0] > 0,
    }
)


def fit(step, rows, y=TARGET):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return step.fit(rows, y)


def dense(output):
    output = output.toarray() if hasattr(output, "toarray") else output
    return np.asarray(output, np.float64)


def through(steps, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in steps:
            rows = step.transform(rows)
    return dense(rows)


def shuffled(rows, place):
    if isinstance(rows, np.ndarray):
        rows = rows.copy()
        rows[:, place] = rows[::-1, place]
        return rows
    name = rows.columns[place]
    if isinstance(rows, pl.DataFrame):
        return rows.with_columns(rows[name].reverse())
    return rows.assign(**{name: rows[name].array[::-1]})


def column_of(rows, place):
    return rows[:, place] if isinstance(rows, np.ndarray) else rows[rows.columns[place]].to_list()


def check(steps, rows):
    """Compare with the transformers themselves: all at once, column by column, one shuffled."""
    features = Features.read(steps, rows)
    out = through([step for step in steps if step != "passthrough"], rows)
    assert features.n_features == out.shape[1]
    np.testing.assert_array_equal(features(rows), out)
    for j in range(len(features.columns)):
        own = features.of(j)
        values = column_of(rows, j)
        np.testing.assert_array_equal(features.values(j, values), out[:, own])
        changed = features(shuffled(rows, j)) != features(rows)
        both_nan = np.isnan(features(shuffled(rows, j))) & np.isnan(features(rows))
        changed = np.any(changed & ~both_nan, axis=0)
        assert np.all(features.source[changed] == j)
        known = [v for v in values if isinstance(v, int | float) and v == v]
        if known and not isinstance(values[0], bool):
            line = np.sort(np.append(known, np.linspace(min(known), max(known), 200)))
            signs = features.monotone[own]
            if signs.any():
                rise = np.diff(features.values(j, line)[:, signs != 0], axis=0)
                assert np.all(rise * signs[signs != 0] >= 0)
    return features


SPLINES = prep.SplineTransformer(n_knots=4)
KBINS = {"strategy": "quantile", "quantile_method": "averaged_inverted_cdf", "n_bins": 3}
ONE_TO_ONE = [
    prep.StandardScaler(),
    prep.StandardScaler(with_mean=False),
    prep.MinMaxScaler(clip=True),
    prep.MaxAbsScaler(),
    prep.RobustScaler(),
    prep.PowerTransformer(),
    prep.QuantileTransformer(n_quantiles=20),
    prep.QuantileTransformer(n_quantiles=20, output_distribution="normal"),
    prep.Binarizer(threshold=0.5),
    prep.KBinsDiscretizer(encode="ordinal", **KBINS),
    prep.FunctionTransformer(),
    prep.FunctionTransformer(np.arcsinh),
    prep.FunctionTransformer(special.expit, validate=True),
    FrozenEstimator(prep.StandardScaler().fit(NUMBERS)),
    prep.PolynomialFeatures(degree=1, include_bias=False),
]


@pytest.mark.parametrize("step", ONE_TO_ONE, ids=str)
def test_one_to_one(step):
    features = check([fit(step, NUMBERS)], NUMBERS)
    assert features.source.tolist() == [0, 1, 2, 3]
    assert features.monotone.tolist() == [1, 1, 1, 1]
    assert features.columns == ("x0", "x1", "x2", "x3")
    assert not features.tried
    if not isinstance(step, FrozenEstimator):
        frame = FRAME[["a", "b", "c"]]
        assert check([fit(step, frame)], frame).columns == ("a", "b", "c")


@pytest.mark.parametrize(
    ("step", "source", "monotone"),
    [
        (SPLINES, [0] * 6 + [1] * 6, [0] * 12),
        (prep.SplineTransformer(n_knots=3, include_bias=False), [0] * 4 + [1] * 4, [0] * 8),
        (prep.SplineTransformer(n_knots=3, sparse_output=True), [0] * 5 + [1] * 5, [0] * 10),
        (prep.KBinsDiscretizer(**KBINS), [0] * 3 + [1] * 3, [-1, 0, 1] * 2),
        (prep.FunctionTransformer(np.negative), [0, 1], [-1, -1]),
        (prep.FunctionTransformer(np.square), [0, 1], [0, 0]),
        (choose.VarianceThreshold(0.5), [0, 1], [1, 1]),
        (choose.SelectKBest(choose.f_regression, k=1), [1], [1]),
        (choose.GenericUnivariateSelect(choose.f_regression, mode="k_best", param=1), [1], [1]),
        (choose.SelectFromModel(Lasso(alpha=0.01), max_features=1), [1], [1]),
        (choose.RFE(Lasso(alpha=0.01), n_features_to_select=1), [1], [1]),
        (FeatureUnion([("s", prep.StandardScaler()), ("p", "passthrough"), ("x", "drop")],
                      transformer_weights={"s": -2.0}), [0, 1, 0, 1], [-1, -1, 1, 1]),
    ],
)  # fmt: skip
def test_other_shapes(step, source, monotone):
    for rows in (NUMBERS[:, :2], FRAME[["a", "b"]]):
        features = check([fit(step, rows)], rows)
        assert features.source.tolist() == source
        assert features.monotone.tolist() == monotone


def test_powers_of_one_column():
    rows = NUMBERS[:, :1]
    features = check([fit(prep.PolynomialFeatures(degree=3), rows)], rows)
    assert features.source.tolist() == [-1, 0, 0, 0]
    assert features.monotone.tolist() == [1, 1, 0, 1]
    assert features.of(0).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "step",
    [
        prep.OneHotEncoder(),
        prep.OneHotEncoder(drop="first", sparse_output=False),
        prep.OneHotEncoder(drop="if_binary"),
        prep.OneHotEncoder(min_frequency=10, handle_unknown="infrequent_if_exist"),
        prep.OneHotEncoder(max_categories=2, drop="first"),
        prep.OneHotEncoder(handle_unknown="ignore"),
        prep.OrdinalEncoder(),
        prep.OrdinalEncoder(max_categories=3),
        prep.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        prep.TargetEncoder(random_state=0),
    ],
    ids=str,
)
def test_encoders(step):
    frame = FRAME[["e", "c", "f", "g"]]
    features = check([fit(step, frame)], frame)
    assert np.all(np.diff(features.source) >= 0)
    assert set(features.source) == {0, 1, 2, 3}
    assert not features.monotone.any()
    letters = np.stack([LETTERS, LETTERS[::-1]], axis=1)
    check([fit(step, letters)], letters)
    check([fit(step, letters.astype(object))], letters.astype(object))


def test_target_encoder_of_several_classes():
    rows = np.stack([LETTERS, LETTERS[::-1]], axis=1)
    labels = np.digitize(TARGET, np.quantile(TARGET, [0.3, 0.6]))
    features = check([prep.TargetEncoder(random_state=0).fit(rows, labels)], rows)
    assert features.source.tolist() == [0, 0, 0, 1, 1, 1]


def test_unknown_categories():
    step = prep.OneHotEncoder(handle_unknown="ignore").fit(FRAME[["e"]])
    features = Features.read([step], FRAME[["e"]])
    assert features.values(0, ["u", "new"]).tolist() == [[1, 0, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent", "constant"])
def test_imputer(strategy):
    step = SimpleImputer(strategy=strategy, add_indicator=True)
    features = check([fit(step, HOLES)], HOLES[~np.isnan(HOLES).any(axis=1)])
    assert features.source.tolist() == [0, 1, 2, 3, 0, 2]
    assert features.monotone.tolist() == [1] * 6
    unknown = features.values(0, [np.nan, 3.0])
    np.testing.assert_array_equal(unknown, [[step.statistics_[0], 1.0], [3.0, 0.0]])


@pytest.mark.parametrize("keep", [False, True])
def test_imputer_of_an_empty_column(keep):
    holes = HOLES.copy()
    holes[:, 1] = np.nan
    step = fit(SimpleImputer(add_indicator=True, keep_empty_features=keep), holes)
    features = check([step], NUMBERS)
    kept = [0, 1, 2, 3] if keep else [0, 2, 3]
    assert features.source.tolist() == [*kept, 0, 1, 2]


def test_numbers_that_mean_unknown():
    holes = np.nan_to_num(HOLES, nan=-1.0)
    imputed = check([fit(SimpleImputer(missing_values=-1.0, add_indicator=True), holes)], NUMBERS)
    assert not imputed.monotone.any()
    marks = check([fit(MissingIndicator(missing_values=-1.0), holes)], holes)
    assert marks.source.tolist() == [0, 2]
    assert not marks.monotone.any()


def test_missing_indicator():
    assert check([fit(MissingIndicator(), HOLES)], NUMBERS).source.tolist() == [0, 2]
    every = check([fit(MissingIndicator(features="all"), HOLES)], HOLES)
    assert every.source.tolist() == [0, 1, 2, 3]


def selected(X):
    return X[["a", "b"]] * [2.0, 3.0]


def test_functions_of_users():
    rows = FRAME[["a", "b"]]
    features = check([fit(prep.FunctionTransformer(selected), rows)], rows)
    assert features.source.tolist() == [0, 1]
    assert features.monotone.tolist() == [0, 0]
    assert "'selected'" in features.tried[0]
    sizes = prep.FunctionTransformer(lambda X: np.c_[X, X**2, -X])
    features = check([fit(sizes, NUMBERS[:, :1])], NUMBERS[:, :1])
    assert features.source.tolist() == [0, 0, 0]
    lower = prep.FunctionTransformer(lambda X: X.apply(lambda s: s.str.upper()))
    letters = FRAME[["e"]].assign(h=LETTERS[::-1])
    steps = make_pipeline(lower, prep.OneHotEncoder())
    assert check([fit(steps, letters)], letters).source.tolist() == [0] * 4 + [1] * 4
    halved = fit(prep.FunctionTransformer(lambda X: X / 2, accept_sparse=True), NUMBERS)
    one_hot = fit(prep.OneHotEncoder(), letters)
    assert check([one_hot, halved], letters).source.tolist() == [0] * 4 + [1] * 4


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X: X[:, ::-1], "mixes columns"),
        (lambda X: X[:, :1] / X[:, 1:], "mixes columns"),
        (lambda X: X - X.mean(axis=0), "other rows"),
        (lambda X: X / X.sum(axis=1, keepdims=True), "mixes columns"),
        (lambda X: X / (len(X) - 1 or X.missing), "single rows"),
    ],
)
def test_functions_that_mix(function, message):
    step = prep.FunctionTransformer(function)
    with pytest.raises(Unreadable, match=message):
        Features.read([step.fit(NUMBERS[:, :2])], NUMBERS[:, :2])


def test_functions_need_rows_to_be_tried_on():
    step = prep.FunctionTransformer(lambda X: X + 1).fit(NUMBERS)
    with pytest.raises(Unreadable, match="two or more"):
        Features.read([step], NUMBERS[:1])
    assert Features.read([prep.FunctionTransformer(np.log1p)], NUMBERS[:1]).n_features == 4


def numeric_step(draw):
    step = draw(
        st.sampled_from(
            [
                prep.StandardScaler(),
                prep.MinMaxScaler(),
                prep.RobustScaler(),
                prep.PowerTransformer(),
                prep.QuantileTransformer(n_quantiles=10),
                prep.KBinsDiscretizer(encode="onehot-dense", **KBINS),
                prep.KBinsDiscretizer(encode="ordinal", **KBINS),
                prep.FunctionTransformer(np.cbrt),
                SPLINES,
                choose.VarianceThreshold(),
                "passthrough",
            ]
        )
    )
    imputer = SimpleImputer(add_indicator=draw(st.booleans()))
    return Pipeline([("i", imputer), ("s", step)])


def text_step(draw):
    encoder = draw(
        st.sampled_from(
            [
                prep.OneHotEncoder(handle_unknown="ignore", sparse_output=False),
                prep.OneHotEncoder(min_frequency=5, drop="first", sparse_output=False),
                prep.OrdinalEncoder(),
                prep.TargetEncoder(random_state=0),
            ]
        )
    )
    return Pipeline([("i", SimpleImputer(strategy="most_frequent")), ("s", encoder)])


@st.composite
def column_transformers(draw):
    """Parts over columns chosen by name, number, slice, mask or function, some of them twice."""
    ways = {
        "names": (["b", "a"], numeric_step),
        "one": (["d"], numeric_step),
        "numbers": ([2, -4], numeric_step),
        "slice": (slice(0, 3), numeric_step),
        "labels": (slice("a", "c"), numeric_step),
        "mask": ([True, False, False, True] + [False] * 3, numeric_step),
        "function": (make_column_selector(dtype_include="float64"), numeric_step),
        "none": ([], numeric_step),
        "text": (["e", "f"], text_step),
        "last": ([-2], text_step),
        "dropped": (["g"], lambda draw: "drop"),
        "kept": (["b"], lambda draw: "passthrough"),
    }
    names = draw(st.lists(st.sampled_from(list(ways)), min_size=1, max_size=4, unique=True))
    parts = [(name, ways[name][1](draw), ways[name][0]) for name in names]
    everything = [("text", text_step(draw), ["e", "f"]), *(p for p in parts if p[0] != "text")]
    whole = draw(st.booleans())
    weights = draw(st.sampled_from([None, {"names": -3.0, "one": 0.5}]))
    found = ColumnTransformer(
        everything if whole else parts,
        remainder=("passthrough" if whole and "last" not in names else "drop"),
        sparse_threshold=draw(st.sampled_from([0.0, 1.0])),
        transformer_weights=weights,
    )
    return found.set_output(transform=draw(st.sampled_from(["default", "pandas"])))


@given(column_transformers(), st.booleans())
@settings(max_examples=25)
def test_column_transformers(parts, scaled):
    fit(parts, FRAME)
    steps = [parts]
    if through(steps, FRAME).shape[1] == 0:
        return
    if scaled:
        steps.append(fit(SimpleImputer(), parts.transform(FRAME)))
    features = check(steps, FRAME)
    assert features.columns == tuple("abcdefg")


def test_columns_are_found_by_name():
    parts = ColumnTransformer([("s", prep.StandardScaler(), ["c", "a"])]).fit(FRAME)
    features = check([parts], FRAME[["b", "c", "d", "a"]])
    assert features.source.tolist() == [1, 3]


def test_remainder_with_a_transformer_and_an_array():
    parts = ColumnTransformer(
        [
            ("bins", prep.KBinsDiscretizer(**KBINS), [1]),
            ("flat", prep.FunctionTransformer(wide), 0),
        ],
        remainder=prep.StandardScaler(),
    )
    features = check([fit(parts, NUMBERS)], NUMBERS)
    assert features.source.tolist() == [1, 1, 1, 0, 0, 2, 3]
    assert features.tried


def wide(column):
    return np.stack([column, column**2], axis=1)


def test_nested():
    inner = ColumnTransformer([("s", prep.StandardScaler(), ["q__b"])], remainder="passthrough")
    outer = ColumnTransformer([("q", prep.MinMaxScaler(), ["b", "a"])], remainder="drop")
    model = Pipeline([("o", outer.set_output(transform="pandas")), ("no", None), ("i", inner)])
    features = check([fit(model, FRAME)], FRAME)
    assert features.source.tolist() == [1, 0]


def test_polars():
    frame = pl.DataFrame({"a": NUMBERS[:, 0], "c": NUMBERS[:, 2].astype(int), "e": LETTERS})
    parts = ColumnTransformer(
        [("n", prep.StandardScaler(), ["c", "a"]), ("t", prep.OrdinalEncoder(), ["e"])]
    )
    features = check([fit(parts, frame)], frame)
    assert features.source.tolist() == [1, 0, 2]
    fit(parts.set_output(transform="polars"), frame)
    function = prep.FunctionTransformer(lambda X: X * 2).fit(frame)
    assert check([parts, function], frame).source.tolist() == [1, 0, 2]
    half = features.values(1, [2.5])
    np.testing.assert_array_equal(half, [[(2.5 - frame["c"].mean()) / frame["c"].std(ddof=0)]])


def test_no_steps():
    features = check(["passthrough"], NUMBERS)
    assert features.steps == ()
    frame = FRAME[["a", "c", "g"]]
    assert check([], frame).source.tolist() == [0, 1, 2]
    assert check([], pl.from_pandas(frame)).source.tolist() == [0, 1, 2]
    features = Features.read([], FRAME[["a", "f"]])
    assert features.values(1, ["v", "u", None]).ravel().tolist()[:2] == [1.0, 0.0]
    assert np.isnan(features.values(1, [None])).all()
    assert features.values(0, []).shape == (0, 1)


def test_types_of_columns():
    """A column keeps its type, unless it is one of integers and the number is none."""
    single = NUMBERS.astype(np.float32)
    assert Features.read([], single).values(0, [0.1]).item() == np.float32(0.1)
    assert Features.read([], NUMBERS.astype(int)).values(0, [0.1, 2.0]).ravel().tolist() == [0.1, 2]
    frame = pd.DataFrame(
        {
            "i": pd.array([1, 2], "Int64"),
            "b": pd.array([True, False], "boolean"),
            "f": np.array([1, 2], np.float32),
            "o": np.array([1, 2], object),
        }
    )
    for place in range(4):
        features = Features.read([], frame)
        assert features.values(place, [1, 0]).ravel().tolist() == [1.0, 0.0]
        assert features.values(place, np.array([1.0, 0.5])).ravel().tolist() == [1.0, 0.5]
        assert np.isnan(features.values(place, [1.0, np.nan])[1, 0])
    assert frames.put(frame, 0, [3.0, 4.0]).dtypes.equals(frame.dtypes)
    assert frames.put(frame, 1, [1, 0]).dtypes.equals(frame.dtypes)
    letters = np.array([["u"], ["v"]])
    assert frames.put(letters, 0, ["longer", "v"]).tolist() == [["longer"], ["v"]]


def test_polars_types():
    frame = pl.DataFrame(
        {"i": [1, 2], "b": [True, False], "s": pl.Series(["x", "y"], dtype=pl.Enum(["y", "x"]))}
    )
    features = Features.read([], frame)
    assert features(frame).tolist() == [[1.0, 1.0, 1.0], [2.0, 0.0, 0.0]]
    assert features.values(0, [1.0, 0.5]).ravel().tolist() == [1.0, 0.5]
    assert features.values(2, ["x"]).tolist() == [[1.0]]
    assert np.isnan(features.values(0, [1, None])[1, 0])


class Custom(prep.StandardScaler):
    def transform(self, X):
        return np.cumsum(X, axis=1)


@pytest.mark.parametrize(
    "step",
    [
        PCA(),
        prep.PolynomialFeatures(),
        prep.Normalizer(),
        KNNImputer(),
        Custom(),
        FeatureUnion([("s", prep.StandardScaler()), ("p", PCA())]),
        ColumnTransformer([("s", prep.StandardScaler(), [0]), ("p", PCA(), [1, 2])]),
        make_pipeline(prep.StandardScaler(), prep.Normalizer()),
    ],
    ids=lambda step: type(step).__name__,
)
def test_refusals(step):
    with pytest.raises(Unreadable, match="sampling is used instead"):
        Features.read([fit(step, NUMBERS)], NUMBERS)


def test_features_are_numbers():
    for rows in (FRAME, pl.from_pandas(FRAME), LETTERS[:, None], LETTERS[:, None].astype(object)):
        with pytest.raises(Unreadable, match="not as numbers"):
            Features.read([], rows)
    with pytest.raises(Unreadable, match="not as numbers"):
        Features.read([], pd.DataFrame({"t": pd.to_datetime(["2020-01-01"])}))
    with pytest.raises(DomainError, match="no rows"):
        Features.read([], NUMBERS[:0])


def in_place(X):
    X *= 2.0
    return X


def test_transformers_that_overwrite_their_input():
    steps = [
        fit(prep.StandardScaler(copy=False), NUMBERS.copy()),
        prep.FunctionTransformer(in_place).fit(NUMBERS),
    ]
    rows, frame = NUMBERS.copy(), FRAME[["a", "b"]].copy()
    features = Features.read(steps, rows)
    scaled = (NUMBERS - NUMBERS.mean(axis=0)) / NUMBERS.std(axis=0)
    np.testing.assert_allclose(features(rows), 2.0 * scaled, atol=1e-12)
    np.testing.assert_array_equal(features.values(1, rows[:, 1]), features(rows)[:, [1]])
    np.testing.assert_array_equal(rows, NUMBERS)
    Features.read([prep.FunctionTransformer(in_place).fit(frame)], frame)(frame)
    assert frame.equals(FRAME[["a", "b"]])
