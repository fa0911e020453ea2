"""Filling holes from a density: the right values, and nothing else touched."""

from __future__ import annotations

import datetime as dt
import itertools
import pickle
import warnings
from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from expecta import (
    PSDD,
    ChowLiu,
    Density,
    DomainError,
    Encoder,
    Evidence,
    ImpossibleEvidenceWarning,
    Independent,
    LatentTree,
    NaiveBayes,
)
from expecta.estimators import ConditionalMeanImputer, ConditionalSampler, MPEImputer

ALL = (MPEImputer, ConditionalMeanImputer, ConditionalSampler)
every = pytest.mark.parametrize("make", ALL)


def quick():
    return LatentTree(states=2, restarts=1, max_epochs=5, random_state=0)


def mixed(n=120, holes=0.2, seed=0):
    """A column of every kind; all follow a hidden group."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    hours = [dt.timedelta(hours=float(h)) for h in group * 24 + rng.random(n)]
    table = {
        "text": [["red", "green", "blue"][k] for k in group],
        "flag": [bool(k == 1) for k in group],
        "whole": (group * 10 + rng.integers(4, size=n)).tolist(),
        "real": (group + rng.random(n)).tolist(),
        "day": [dt.date(2024, 1, 1) + dt.timedelta(int(k)) for k in group * 5],
        "time": [dt.datetime(2024, 1, 1) + h for h in hours],
        "zoned": [dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + h for h in hours],
        "span": hours,
    }
    for column in table.values():
        for row in np.flatnonzero(rng.random(n) < holes):
            column[row] = None
    return table


MIXED = mixed()
SMALL = Encoder(max_bins=4)


def pandas_frame(table):
    index = pd.Index([f"row {i // 2}" for i in range(len(table["text"]))])  # not unique
    kinds = {
        "text": "str",
        "flag": "boolean",
        "whole": "Int64",
        "real": "float64",
        "day": object,
        "time": "datetime64[ns]",
        "zoned": "datetime64[us, Europe/Berlin]",
        "span": "timedelta64[ns]",
    }
    columns = {
        name: pd.Series(table[name], dtype=kind).set_axis(index) for name, kind in kinds.items()
    }
    return pd.DataFrame(columns).assign(
        category=columns["text"].astype("category"),
        ordered=pd.Categorical(table["text"], ["red", "green", "blue"], ordered=True),
        single=columns["real"].astype("float32"),
        arrow=columns["whole"].astype("int64[pyarrow]"),
        objects=columns["whole"].astype(object),
    )


def polars_frame(table):
    return pl.DataFrame(table, schema_overrides={"whole": pl.Int16}).with_columns(
        pl.col("text").cast(pl.Categorical).alias("category"),
        pl.col("text").cast(pl.Enum(["red", "green", "blue"])).alias("enum"),
        pl.col("real").cast(pl.Float32).alias("single"),
        pl.col("real").cast(pl.Decimal(10, 2)).alias("decimal"),
        pl.col("time").cast(pl.Datetime("ns")).alias("fine"),
        pl.col("time").cast(pl.Datetime("ms")).alias("coarse"),
        pl.col("zoned").dt.convert_time_zone("Europe/Berlin").alias("berlin"),
    )


TABLES = {
    "dict": MIXED,
    "pandas": pandas_frame(MIXED),
    "polars": polars_frame(MIXED),
    "arrow": polars_frame(MIXED).to_arrow(),
    "objects": np.array(list(zip(*MIXED.values(), strict=True)), object),
    "floats": np.array([MIXED["real"], MIXED["whole"]], float).T,
}
kinds = pytest.mark.parametrize("kind", list(TABLES))
FITTED = {}  # each imputer, after a table


def cells_of(table):
    """A table as columns of cells, None where unknown."""
    if isinstance(table, np.ndarray):
        columns = [column.tolist() for column in table.T]
    elif isinstance(table, dict):
        columns = [list(column) for column in table.values()]
    elif isinstance(table, pa.Table):
        columns = [column.to_pylist() for column in table.columns]
    else:
        columns = [table[name].to_list() for name in table.columns]
    return [
        [None if one is None or one is pd.NA or one != one else one for one in c] for c in columns
    ]


def same_where_known(before, after, floats=False):
    """Whether what was known is the same, type included but for floats; and nothing is unknown."""
    for old, new in zip(cells_of(before), cells_of(after), strict=True):
        assert all(one is not None for one in new)
        for a, b in zip(old, new, strict=True):
            assert a is None or repr(a) == repr(b) or (floats and type(a) is int and a == b)


def types_of(table):
    if isinstance(table, pa.Table):
        return dict(zip(table.schema.names, table.schema.types, strict=True))
    return dict(table.dtypes) if isinstance(table, pd.DataFrame) else dict(table.schema)


# -- the contract of scikit-learn -----------------------------------------------------


@parametrize_with_checks(
    [
        MPEImputer(),
        MPEImputer(ChowLiu()),
        ConditionalMeanImputer(quick()),
        ConditionalSampler(quick()),
    ]
)
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite fits things that numerical code warns about
        check(estimator)


# -- the right values -----------------------------------------------------------------


def small_table(n=300):
    """Two categories and two numbers, the second of which has several numbers in a bin."""
    rng = np.random.default_rng(1)
    a = rng.integers(3, size=n)
    b = np.where(rng.random(n) < 0.3, rng.integers(2, size=n), a % 2)
    few = np.where(rng.random(n) < 0.3, rng.integers(4, size=n), a + b)
    many = few + rng.normal(size=n)
    return {
        "a": [["x", "y", "z"][k] for k in a],
        "b": [bool(k) for k in b],
        "few": few.tolist(),
        "many": many.tolist(),
    }


TRAIN = small_table()
ENCODER = Encoder(bins={"many": [-9.0, 0.5, 2.0, 9.0]})
HOLED = {  # every pattern of holes
    name: [TRAIN[name][row] if known else None for row, known in enumerate(column)]
    for name, column in zip(
        TRAIN, np.array([*itertools.product([True, False], repeat=4)]).T, strict=True
    )
}


class Truth:
    """All complete rows of a density with their probabilities."""

    def __init__(self, density):
        self.density = density
        cards = density.encoder_.cardinalities_
        self.rows = np.array(list(itertools.product(*map(range, cards))))
        self.p = np.exp(density.circuit.log_prob(self.rows))

    def given(self, codes):
        fits = np.all((codes < 0) | (codes == self.rows), axis=1)
        return np.where(fits, self.p, 0.0) / self.p[fits].sum()

    def marginal(self, codes, variable):
        card = self.density.encoder_.cardinalities_[variable]
        return np.bincount(self.rows[:, variable], self.given(codes), card)


def bin_means():
    numbers = np.array(TRAIN["many"])
    place = np.digitize(numbers, [0.5, 2.0])
    return np.array([numbers[place == k].mean() for k in range(3)])


@pytest.mark.parametrize("learner", [ChowLiu, quick, lambda: PSDD(max_parameters=150)])
def test_means_match_enumeration(learner):
    density = learner().set_params(encoder=ENCODER)
    imputer = ConditionalMeanImputer(density).fit(TRAIN)
    done, truth = imputer.transform(HOLED), Truth(imputer.density_)
    numbers = {2: np.arange(5.0)[: len(set(TRAIN["few"]))], 3: bin_means()}
    values = {0: ["x", "y", "z"], 1: [False, True]}
    seen = 0
    for row, codes in enumerate(imputer.density_.encoder_.transform(HOLED)):
        for variable, name in enumerate(TRAIN):
            if HOLED[name][row] is not None:
                assert done[name][row] == HOLED[name][row]
                continue
            shares = truth.marginal(codes, variable)
            if variable in numbers:
                assert type(done[name][row]) is float
                assert done[name][row] == pytest.approx(shares @ numbers[variable], rel=1e-9)
            else:
                assert done[name][row] == values[variable][int(np.argmax(shares))]
            seen += 1
    assert seen == 4 * 8


@pytest.mark.parametrize("learner", [ChowLiu, NaiveBayes, lambda: PSDD(max_parameters=150)])
def test_most_probable_completions_match_enumeration(learner):
    imputer = MPEImputer(learner().set_params(encoder=ENCODER)).fit(TRAIN)
    done, truth = imputer.transform(HOLED), Truth(imputer.density_)
    encoder = imputer.density_.encoder_
    for codes, found in zip(encoder.transform(HOLED), encoder.transform(done), strict=True):
        assert np.all((codes < 0) | (codes == found))
        shares = truth.given(codes)
        assert shares[np.all(truth.rows == found, axis=1)] == pytest.approx(shares.max(), rel=1e-9)
    for number in done["many"]:  # a number in a hole is the mean of its bin
        assert number in TRAIN["many"] or np.isclose(number, bin_means(), rtol=1e-12).any()
    assert all(type(number) is int for number in done["few"])


def test_completions_are_joint_and_means_are_not():
    # The pairs (0, 0) 40%, (1, 1) 30%, (1, 2) 30%: most probable together is a = 0, alone a = 1.
    codes = np.repeat([[0, 0], [1, 1], [1, 2]], [40, 30, 30], axis=0)
    density = ChowLiu(pseudo_count=0).fit(codes)
    holes = np.full((1, 2), -1)
    assert MPEImputer(density).fit(codes).transform(holes).tolist() == [[0, 0]]
    assert ConditionalMeanImputer(density).fit(codes).transform(holes).tolist() == [[1, 0]]


def test_means_of_times():
    table = {
        "group": ["a", "a", "b"] * 20,
        "day": [dt.date(2024, 1, 1), dt.date(2024, 1, 4), dt.date(2024, 3, 1)] * 20,
        "time": [dt.datetime(2024, 1, 1, h) for h in (0, 1, 9)] * 20,
        "span": [dt.timedelta(hours=h) for h in (0, 1, 9)] * 20,
    }
    imputer = ConditionalMeanImputer(NaiveBayes("group", pseudo_count=0)).fit(table)
    done = imputer.transform({"group": ["a"], "day": [None], "time": [None], "span": [None]})
    assert done["day"] in ([dt.date(2024, 1, 2)], [dt.date(2024, 1, 3)])  # half a day is rounded
    assert abs(done["time"][0] - dt.datetime(2024, 1, 1, 0, 30)) < dt.timedelta(milliseconds=1)
    assert abs(done["span"][0] - dt.timedelta(minutes=30)) < dt.timedelta(milliseconds=1)


def test_means_in_parts(monkeypatch):
    imputer = ConditionalMeanImputer(quick()).fit(TABLES["floats"])
    whole = imputer.transform(TABLES["floats"])
    monkeypatch.setattr("expecta.estimators.imputers.SHARES", 100)  # a row or two at a time
    np.testing.assert_array_equal(imputer.transform(TABLES["floats"]), whole)


def test_draws_have_the_conditional_distribution():
    n = 4000
    sampler = ConditionalSampler(ChowLiu(encoder=ENCODER), random_state=0).fit(TRAIN)
    table = {"a": ["y"] * n, "b": [None] * n, "few": [None] * n, "many": [None] * n}
    done, truth = sampler.transform(table), Truth(sampler.density_)
    assert done["a"] == ["y"] * n
    codes = sampler.density_.encoder_.transform(done)
    shares = truth.given(np.array([1, -1, -1, -1]))
    for row, share in zip(truth.rows, shares, strict=True):
        found = np.mean(np.all(codes == row, axis=1))  # of all four columns together
        # 4.5 standard errors: one of 40 sound cells fails for one seed in 3,500
        assert abs(found - share) <= 4.5 * np.sqrt(share * (1 - share) / n) + 1e-12
    apart = np.ones(len(truth.rows))
    for variable in range(4):
        apart *= truth.marginal(np.array([1, -1, -1, -1]), variable)[truth.rows[:, variable]]
    assert np.abs(apart - shares).max() > 0.03  # so that drawing cell by cell would be seen
    numbers, training = np.array(done["many"]), np.array(TRAIN["many"])
    assert len(set(numbers.tolist())) > 0.9 * n  # within their bins, not the bins' means
    for k, mean in enumerate(bin_means()):
        inside, like = numbers[codes[:, 3] == k], training[np.digitize(training, [0.5, 2.0]) == k]
        assert like.min() <= inside.min() <= inside.max() <= like.max()
        assert inside.mean() == pytest.approx(mean, abs=5 * like.std() / np.sqrt(len(inside)))


def test_what_depends_on_each_other_still_does():
    rng = np.random.default_rng(0)
    a = rng.normal(size=2000)
    table = np.column_stack([a, a + 0.1 * rng.normal(size=2000), rng.normal(size=2000)])
    hidden = table.copy()
    hidden[:, :2] = np.nan
    density = ChowLiu(encoder=Encoder(max_bins=8))
    drawn = ConditionalSampler(density, random_state=0).fit(table).transform(hidden)
    assert np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1] > 0.85
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 2])[0, 1]) < 0.1
    assert np.array_equal(drawn[:, 2], table[:, 2])


def test_many_draws():
    sampler = ConditionalSampler(ChowLiu(encoder=SMALL), random_state=3).fit(MIXED)
    tables = sampler.draws(MIXED, 5)
    assert len(tables) == 5
    for table in tables:
        same_where_known(MIXED, table)
    assert len({repr(table) for table in tables}) == 5
    assert sampler.draws(MIXED, 1) == [sampler.transform(MIXED)]
    assert sampler.draws(MIXED, 5) == tables
    assert sampler.draws(MIXED, 0) == []
    with pytest.raises(ValueError, match="n is a whole number"):
        sampler.draws(MIXED, -1)
    complete = sampler.transform(MIXED)
    assert sampler.draws(complete, 2) == [complete, complete]


def test_seeds():
    holes = np.full((50, 2), np.nan)
    table = TABLES["floats"]
    one, other = (ConditionalSampler(ChowLiu(), random_state=k).fit(table) for k in (1, 2))
    fresh = ConditionalSampler(ChowLiu()).fit(table)
    assert np.array_equal(one.transform(holes), one.transform(holes))
    assert not np.array_equal(one.transform(holes), other.transform(holes))
    assert not np.array_equal(fresh.transform(holes), fresh.transform(holes))
    same, again, else_ = (MPEImputer(random_state=k).fit(table).density_ for k in (1, 1, 2))
    assert same.random_state == 1
    assert same.circuit == again.circuit
    assert same.circuit != else_.circuit


# -- what comes back ------------------------------------------------------------------


@every
@kinds
def test_known_cells_stay_and_holes_go(make, kind):
    table = TABLES[kind]
    before = pickle.dumps(cells_of(table))
    imputer = make(ChowLiu(encoder=SMALL), random_state=0).fit(table)
    done = imputer.transform(table)
    assert type(done) is type(table)
    assert pickle.dumps(cells_of(table)) == before  # what was given is as it was
    if kind == "floats":
        assert done.dtype == float
    if kind == "pandas":
        assert done.index.equals(table.index)
    mean = make is ConditionalMeanImputer
    frame = kind in ("pandas", "polars", "arrow")
    if frame:
        was, now = types_of(table), types_of(done)
        assert list(now) == list(was)
        changed = {name for name in was if now[name] != was[name]}
        assert changed == ({"whole", "arrow"} & {*was} if mean else set())
        assert not mean or str(now["whole"]) in ("Float64", "double")
    same_where_known(table, done, floats=mean and frame)
    assert cells_of(imputer.transform(done)) == cells_of(done)


numbers = st.floats(-1e6, 1e6) | st.just(float("nan")) | st.just(-0.0)


@settings(max_examples=30)
@given(arrays(np.float64, st.tuples(st.integers(1, 12), st.just(2)), elements=numbers))
def test_any_array(table):
    for imputer in FITTED["floats"]:
        done = imputer.transform(table)
        known = ~np.isnan(table)
        assert np.array_equal(done[known].view(np.int64), table[known].view(np.int64))
        assert not np.any(np.isnan(done))


rows = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.none() | st.sampled_from(["red", "green", "blue", "violet", "nan", ""]),
            "flag": st.none() | st.booleans(),
            "whole": st.none() | st.integers(-(2**62), 2**62) | st.integers(0, 40),
            "real": st.none() | st.floats(-1e300, 1e300),
            "day": st.none() | st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)),
            "time": st.none() | st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),
            "zoned": st.none()
            | st.datetimes(
                dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1), timezones=st.just(dt.UTC)
            ),
            "span": st.none() | st.timedeltas(dt.timedelta(-9999), dt.timedelta(9999)),
        }
    ),
    min_size=1,
    max_size=8,
)
SCHEMA = {
    "text": pl.String,
    "flag": pl.Boolean,
    "whole": pl.Int64,
    "real": pl.Float64,
    "day": pl.Date,
    "time": pl.Datetime("us"),
    "zoned": pl.Datetime("us", "UTC"),
    "span": pl.Duration("us"),
}


@pytest.fixture(scope="module", autouse=True)
def fitted():
    for kind, table in (("floats", TABLES["floats"]), ("dict", MIXED)):
        FITTED[kind] = [make(ChowLiu(encoder=SMALL), random_state=0).fit(table) for make in ALL]
    yield
    FITTED.clear()


@settings(max_examples=30)
@given(rows)
def test_any_table(records):
    table = {name: [record[name] for record in records] for name in SCHEMA}
    polars = pl.DataFrame(table, schema=SCHEMA)
    types = {"text": "str", "flag": "boolean", "whole": "Int64", "real": "Float64"}
    types |= {"time": "datetime64[us]", "zoned": "datetime64[us, UTC]", "span": "timedelta64[us]"}
    types |= {"day": object}
    pandas = pd.DataFrame({name: pd.Series(table[name], dtype=types[name]) for name in table})
    for imputer in FITTED["dict"]:
        same_where_known(table, imputer.transform(table))
        for frame in (polars, pandas, polars.to_arrow()):
            done = imputer.transform(frame)
            assert type(done) is type(frame)
            for name, old, new in zip(table, cells_of(frame), cells_of(done), strict=True):
                assert all(one is not None for one in new)
                known = [(a, b) for a, b in zip(old, new, strict=True) if a is not None]
                assert all(a == b for a, b in known), name


@every
def test_columns_in_another_order(make):
    names = list(reversed(MIXED))
    imputer = make(ChowLiu(encoder=SMALL), random_state=0).fit(TABLES["polars"].select(*MIXED))
    for table in (
        {name: MIXED[name] for name in names},
        TABLES["polars"].select(names),
        TABLES["arrow"].select(names),
        TABLES["pandas"][names],
    ):
        done = imputer.transform(table)
        assert list(done) == names if isinstance(done, dict) else list(types_of(done)) == names
        straight = imputer.transform({name: table[name] for name in MIXED})
        for name in MIXED:
            assert list(map(str, done[name])) == list(map(str, straight[name]))


@every
def test_set_output(make):
    table = pd.DataFrame(
        {"a": [1.0, 2.0, 3.0] * 9, "b": [1.0, np.nan, 3.0] * 9}, index=range(5, 32)
    )
    imputer = make(ChowLiu(), random_state=0).fit(table)
    assert imputer.get_feature_names_out().tolist() == ["a", "b"]
    plain = imputer.transform(table)
    imputer.set_output(transform="pandas")
    pd.testing.assert_frame_equal(imputer.transform(table), plain)
    pd.testing.assert_frame_equal(imputer.transform(table[["b", "a"]]), plain)  # never mislabelled
    from_array = imputer.transform(table.to_numpy())
    assert list(from_array) == ["a", "b"]
    assert np.array_equal(from_array, plain)
    swapped = imputer.transform({"b": table["b"].tolist(), "a": table["a"].tolist()})
    assert np.array_equal(swapped, plain)
    imputer.set_output(transform="polars")
    assert imputer.transform(pl.from_pandas(table)[:, ["b", "a"]]).equals(pl.from_pandas(plain))
    with config_context(transform_output="pandas"):  # which the encoder within must not hear
        found = make(ChowLiu(), random_state=0).fit(table.to_numpy()).transform(table.to_numpy())
    assert list(found) == ["x0", "x1"]
    assert np.array_equal(found, plain)


def test_frames_of_narwhals():
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, np.nan]}, index=[4, 5])
    imputer = MPEImputer(Independent()).fit(nw.from_native(table))
    assert imputer.feature_names_in_.tolist() == ["a", "b"]
    pd.testing.assert_frame_equal(
        imputer.transform(nw.from_native(table)), table.fillna({"b": 1.0})
    )


def test_names():
    imputer = MPEImputer(ChowLiu())
    table = pd.DataFrame({"a": [1.0, np.nan], "b": ["u", "v"]})
    assert imputer.fit(table).feature_names_in_.tolist() == ["a", "b"]
    assert imputer.n_features_in_ == 2
    assert imputer.fit({"a": [1, None]}).feature_names_in_.tolist() == ["a"]
    assert not hasattr(imputer.fit([[1.0, 2.0, 3.0]]), "feature_names_in_")
    assert imputer.n_features_in_ == 3
    assert imputer.get_feature_names_out().tolist() == ["x0", "x1", "x2"]
    numbered = pd.DataFrame([[1.0, 5.0], [1.0, np.nan]])
    assert not hasattr(imputer.fit(numbered), "feature_names_in_")
    assert imputer.transform(numbered[[1, 0]]).columns.tolist() == [1, 0]
    assert imputer.transform(numbered[[1, 0]]).to_numpy().tolist() == [[5.0, 1.0], [5.0, 1.0]]
    by_place = imputer.fit(numbered.to_numpy()).transform(numbered.set_axis(["p", "q"], axis=1))
    assert by_place["q"].tolist() == [5.0, 5.0]


def test_types_that_cannot_hold_the_filling():
    # Text where training had text, but here every cell is missing and the column has no type.
    table = {"t": ["u", "v"] * 20, "n": [1, 300] * 20, "x": [0.5, 1.5] * 20}
    imputer = MPEImputer(ChowLiu()).fit(table)
    empty = pd.DataFrame({"t": [np.nan], "n": [None], "x": [1.5]})
    done = imputer.transform(empty)
    assert (done["t"][0], done["n"][0], done["x"][0]) == ("v", 300, 1.5)
    assert done["n"].dtype == "int64"
    for frame in (
        pl.DataFrame(empty.to_dict("list")),
        pa.table({"t": [None], "n": [None], "x": [1.5]}),
    ):
        done = imputer.transform(pl.DataFrame(frame).with_columns(pl.lit(None).alias("t")))
        assert done.row(0) == ("v", 300, 1.5)
    arrow = imputer.transform(pa.table({"t": [None], "n": [None], "x": [1.5]}))
    assert arrow.to_pylist() == [{"t": "v", "n": 300, "x": 1.5}]
    narrow = pl.DataFrame(
        {"t": ["v", "u"], "n": [None, 1], "x": [1.5, 0.5]}, schema_overrides={"n": pl.Int8}
    )
    assert imputer.transform(narrow)["n"].to_list() == [300, 1]
    assert imputer.transform(narrow.to_arrow())["n"].to_pylist() == [300, 1]
    signs = imputer.transform(narrow.with_columns(pl.Series("t", [None, "u"], pl.Enum(["u"]))))
    assert signs["t"].to_list() == ["v", "u"]
    kept = pd.DataFrame({"t": pd.Categorical([None, "u"]), "n": [300, 1], "x": [1.5, 0.5]})
    done = imputer.transform(kept)["t"]
    assert done.tolist() == ["v", "u"]
    assert done.dtype == pd.CategoricalDtype(["u", "v"])
    mixed_up = pd.DataFrame({"t": [np.nan, 1.0], "n": [300, 1], "x": [1.5, 0.5]})
    assert imputer.transform(mixed_up)["t"].tolist() == ["v", 1.0]
    several = MPEImputer(ChowLiu()).fit({"t": ["u", 1] * 20, "x": [0.0, 1.0] * 20})
    texts = several.transform(
        pl.DataFrame({"t": [None, None], "x": [0.0, 1.0]}, {"t": pl.String, "x": pl.Float64})
    )
    assert texts["t"].to_list() == ["u", "1"]


def test_arrays_of_other_types():
    objects = np.array([["u", 1, True], ["v", 2, False]] * 20, object)
    imputer = MPEImputer(ChowLiu()).fit(objects)
    done = imputer.transform([[None, 2, np.nan], ["u", float("nan"), True]])
    assert done.dtype == object
    assert done.tolist() == [["v", 2, False], ["u", 1, True]]
    floats = imputer.transform(np.array([[np.nan, 2.0, 0.0]]))
    assert floats.tolist() == [["v", 2.0, 0.0]]
    times = np.array([["2024-01-01", "2024-02-01"], ["2024-01-02", "2024-02-02"]] * 10, "M8[D]")
    holed = times.copy()
    holed[0, 1] = "NaT"
    done = MPEImputer(ChowLiu()).fit(times).transform(holed)
    assert done.dtype == times.dtype
    assert np.array_equal(done, times)
    masked = np.ma.masked_equal(np.array([[1, 10], [2, 20]] * 10), 20)
    done = MPEImputer(ChowLiu()).fit([[1, 10], [2, 20]] * 10).transform(masked)
    assert type(done) is np.ndarray
    assert done.tolist() == [[1, 10], [2, 20]] * 10
    bools = np.array([[True, False], [False, True]] * 10)
    done = MPEImputer(ChowLiu()).fit(bools).transform(bools)
    assert done.dtype == bool
    assert np.array_equal(done, bools)
    columns = {
        "a": np.ma.masked_equal([1.0, 9.0], 9.0),
        "b": pd.Series(["u", None]),
        "c": pl.Series([1, None]),
    }
    fitted = MPEImputer(ChowLiu()).fit({"a": [1.0, 1.0], "b": ["u", "u"], "c": [1, 1]})
    done = fitted.transform(columns)
    assert [type(column) for column in done.values()] == [np.ndarray, pd.Series, pl.Series]
    assert [list(column) for column in done.values()] == [[1.0, 1.0], ["u", "u"], [1, 1]]


def test_integers_of_arrays_are_numbers():
    table = np.array([[-1, 1000], [-1, 1000], [70_000, 2000]] * 20)  # -1 is no hole here
    imputer = ConditionalMeanImputer(ChowLiu()).fit(table)
    assert imputer.density_.encoder_.columns_[0].kind == "number"
    done = imputer.transform(table)
    assert done.dtype == table.dtype
    assert np.array_equal(done, table)
    assert imputer.transform([[np.nan, 1000]])[0, 0] == pytest.approx(-1, abs=3000)
    assert MPEImputer(ChowLiu()).fit(table.tolist()).transform([[np.nan, 2000]]).tolist() == [
        [70_000, 2000]
    ]


@every
@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_integers_of_arrays_are_codes_where_the_density_has_codes(make, dtype):
    codes = np.array([[0, 0, 2], [1, 1, 0]] * 20)
    for density in (
        ChowLiu(pseudo_count=0).fit(codes),
        Density.condition(ChowLiu(pseudo_count=0).fit(codes)),
    ):
        imputer = make(density, random_state=0).fit(codes)
        assert imputer.density_ is density
        holed = np.array([[-1, 0, -1], [1, -1, 0], [0, 0, 2], [9, 1, -1]], dtype)
        done = imputer.transform(holed)
        assert done.dtype == dtype
        assert done.tolist() == [[0, 0, 2], [1, 1, 0], [0, 0, 2], [9, 1, 0]]
        assert imputer.transform([[np.nan, 0.0, np.nan]]).tolist() == [[0.0, 0.0, 2.0]]
    numbers = ChowLiu(encoder=Encoder(numeric=["x2"])).fit(codes + np.array([0, 0, 5]))
    done = make(numbers, random_state=0).fit(codes).transform(np.array([[1, 1, -1]], dtype))
    assert done[0, :2].tolist() == [1, 1]
    assert 5.0 <= done[0, 2] < (6.0 if make is not ConditionalSampler else 7.1)
    assert done.dtype == (float if make is ConditionalMeanImputer else dtype)
    wide = make(ChowLiu(pseudo_count=0).fit(codes * 100), random_state=0).fit(codes * 100)
    assert wide.transform(np.array([[0, 0, -1]], np.int8)).tolist() == [[0, 0, 200]]


def test_large_integers_stay():
    large = [2**60 + 1, 2**60 + 3, 2**60 + 5]
    table = pd.DataFrame({"n": pd.Series([*large, None] * 5, dtype="Int64"), "b": ["u"] * 20})
    done = ConditionalMeanImputer(Independent()).fit(table).transform(table)["n"]
    assert done.dtype == "Int64"
    assert done[:3].tolist() == large
    assert done[3] == pytest.approx(2**60, rel=1e-9)


# -- odd tables -----------------------------------------------------------------------


@every
def test_a_category_that_training_did_not_have(make):
    imputer = make(ChowLiu(encoder=SMALL), random_state=0).fit(MIXED)
    row = {name: [column[0]] * 2 for name, column in MIXED.items()}
    row |= {"text": ["violet", None], "real": [None, 1.5]}
    done = imputer.transform(row)
    assert done["text"][0] == "violet"
    assert done["text"][1] in ("red", "green", "blue")
    assert np.isfinite(done["real"][0])


def test_rare_categories_are_other():
    table = {"t": ["a"] * 9 + list("bcdefghijkl") * 3, "x": [0.0] * 9 + [1.0] * 33}
    for frame in (table, pd.DataFrame(table).astype({"t": "category"}), pl.DataFrame(table)):
        imputer = MPEImputer(ChowLiu(encoder=Encoder(max_categories=3))).fit(frame)
        holed = {"t": [None, "k"], "x": [1.0, 0.0]}
        if not isinstance(frame, dict):
            holed = type(frame)(holed)
        done = imputer.transform(holed)
        assert list(done["t"]) == ["other", "k"]


def impossible():
    """A density under which (0, 1) cannot be."""
    codes = np.array([[0, 0, 0], [0, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1], [1, 1, 1]])
    return ChowLiu(pseudo_count=0).fit(codes), codes


@every
def test_rows_that_cannot_be_are_filled_as_if_nothing_were_known(make):
    density, codes = impossible()
    imputer = make(density, random_state=0).fit(codes)
    with pytest.warns(
        ImpossibleEvidenceWarning, match="2 of 3 rows.*the first is row 1.*as if"
    ) as w:
        done = imputer.transform(np.array([[0, 0, -1], [0, 1, -1], [0, 1, 1], [0, 1, -1]]))
    assert w[0].filename == __file__
    assert done[:, :2].tolist() == [[0, 0], [0, 1], [0, 1], [0, 1]]
    assert done[0].tolist() == [0, 0, 0]
    assert done[2].tolist() == [0, 1, 1]
    with config_context(transform_output="polars"), pytest.warns(ImpossibleEvidenceWarning):
        assert imputer.transform(np.array([[0, 1, -1]])).columns == ["x0", "x1", "x2"]
    if make is ConditionalSampler:
        with pytest.warns(ImpossibleEvidenceWarning):
            many = imputer.transform(np.tile([[0, 1, -1]], (4000, 1)))[:, 2]
        # what the column is without evidence, half and half; 4.5 standard errors
        assert many.mean() == pytest.approx(0.5, abs=4.5 * 0.5 / 4000**0.5)
    else:
        nothing = imputer.transform(np.array([[-1, -1, -1]]))[0, 2]
        assert done[1, 2] == done[3, 2] == nothing


def test_a_mean_where_the_row_cannot_be():
    table = {"a": [0.0, 0.0, 1.0, 1.0], "b": ["u", "u", "v", "v"], "x": [1.0, 2.0, 5.0, 8.0]}
    imputer = ConditionalMeanImputer(ChowLiu(pseudo_count=0).fit(table)).fit(table)
    with pytest.warns(ImpossibleEvidenceWarning):
        done = imputer.transform({"a": [0.0, 0.0], "b": ["v", "u"], "x": [None, None]})
    assert done["x"] == pytest.approx([4.0, 1.5])


@every
@kinds
def test_rows_of_which_nothing_is_known(make, kind):
    imputer = make(ChowLiu(encoder=SMALL), random_state=0).fit(TABLES[kind])
    width = imputer.n_features_in_
    if kind == "floats":
        holes = np.full((3, width), np.nan)
    elif kind == "objects":
        holes = np.full((3, width), None)
    elif kind == "dict":
        holes = {name: [None] * 3 for name in MIXED}
    elif kind == "pandas":
        holes = TABLES[kind].reset_index(drop=True).reindex([-1, -2, -3])
    else:
        holes = TABLES["polars"].clear(3)
        holes = holes if kind == "polars" else holes.to_arrow()
    done = imputer.transform(holes)
    columns = cells_of(done)
    assert len(columns) == width
    assert all(one is not None for column in columns for one in column)
    if make is not ConditionalSampler:  # all three rows alike
        assert all(column[0] == column[1] == column[2] for column in columns)
    if kind == "pandas" and make is MPEImputer:
        objects = holes.dtypes.astype(str) == "object"  # which say nothing where nothing is known
        assert (done.dtypes == holes.dtypes)[~objects].all()
        assert done["objects"].dtype == "int64"


@every
def test_an_empty_column_at_transform(make):
    imputer = make(ChowLiu(encoder=SMALL), random_state=0).fit(MIXED)
    for name in MIXED:
        done = imputer.transform({**MIXED, name: [None] * 120})
        assert all(one is not None for one in done[name])
        frame = TABLES["polars"].select(*MIXED).with_columns(pl.lit(None).alias(name))
        assert imputer.transform(frame)[name].null_count() == 0


@every
def test_a_column_of_which_training_knew_nothing_stays_empty(make):
    table = pd.DataFrame({"gone": [np.nan] * 30, "x": [1.0, 2.0, np.nan] * 10})
    done = make(ChowLiu(), random_state=0).fit(table).transform(table)
    assert done["gone"].isna().all()
    assert done["x"].notna().all()
    done = make(ChowLiu(), random_state=0).fit(table.to_numpy()).transform(table.to_numpy())
    assert np.isnan(done[:, 0]).all()


@every
@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (2, 1), (30, 1)])
def test_small_tables(make, shape):
    table = np.arange(np.prod(shape), dtype=float).reshape(shape)
    imputer = make(random_state=0).fit(table)
    assert np.array_equal(imputer.transform(table), table)
    done = imputer.transform(np.full((2, shape[1]), np.nan))
    assert np.all((done >= table.min(axis=0)) & (done <= table.max(axis=0)))


@every
def test_constant_columns(make):
    table = {"c": [7.3] * 30, "d": ["only"] * 30, "x": list(range(30))}
    done = (
        make(quick(), random_state=0)
        .fit(table)
        .transform({"c": [None, 5.0], "d": [None, None], "x": [3, 4]})
    )
    assert done == {"c": [7.3, 5.0], "d": ["only", "only"], "x": [3, 4]}


@every
def test_no_rows(make):
    for kind, table in TABLES.items():
        imputer = make(ChowLiu(encoder=SMALL)).fit(table)
        none = {name: [] for name in table} if kind == "dict" else table[:0]
        done = imputer.transform(none)
        assert type(done) is type(table)
        assert cells_of(done) == [[] for _ in range(imputer.n_features_in_)]
        with pytest.raises(ValueError, match="0 rows"):
            imputer.fit(none)


@every
def test_complete_rows_ask_nothing(make, monkeypatch):
    table = TABLES["floats"]
    imputer = make(ChowLiu(), random_state=0).fit(table)
    complete = table[~np.isnan(table).any(axis=1)]
    asked = []
    evidence = Evidence.rows

    def rows(codes, cards):
        asked.append(len(codes))
        return evidence(codes, cards)

    monkeypatch.setattr(Evidence, "rows", rows)
    done = imputer.transform(complete)
    assert np.array_equal(done, complete)
    assert not np.shares_memory(done, complete)
    assert asked == []
    imputer.transform(np.vstack([complete, [[np.nan, 1.0]]]))
    assert set(asked) == {1}


def test_frames_come_back_as_copies():
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, np.nan]})
    imputer = MPEImputer(ChowLiu()).fit(table)
    for one in (table, table.dropna(), {"a": [1.0], "b": [2.0]}):
        done = imputer.transform(one)
        if isinstance(one, dict):
            done["a"][0] = 77.0
        else:
            done.loc[0, "a"] = 77.0
        assert one["a"][0] == 1.0


# -- what is refused ------------------------------------------------------------------


@every
def test_what_is_refused(make):
    table = TABLES["pandas"][["real", "whole"]]
    imputer = make(ChowLiu())
    with pytest.raises(NotFittedError):
        imputer.transform(table)
    imputer.fit(table)
    with pytest.raises(DomainError, match=f"X has 1 features, but {make.__name__} is expecting 2"):
        imputer.transform(table[["real"]])
    with pytest.raises(DomainError, match="X has 3 features"):
        imputer.transform(table.assign(more=1))
    with pytest.raises(DomainError, match=r"no column 'whole'.*did you mean 'hole'"):
        imputer.transform(table.rename(columns={"whole": "hole"}))
    for infinite in (table.assign(real=np.inf), {"real": [1.0, -np.inf], "whole": [1, 2]}):
        for ask in (imputer.transform, imputer.fit):
            with pytest.raises(ValueError, match=r"column 'real' .*\(inf\) in row \d"):
                ask(infinite)
    with pytest.raises(ValueError, match="Complex"):
        imputer.fit(np.ones((3, 2), complex))
    with pytest.raises(ValueError, match="sample_weight"):
        imputer.fit(table, sample_weight=[1.0])
    for wrong in (ChowLiu, "ChowLiu", 3):
        with pytest.raises(TypeError, match="density must be a Density"):
            make(wrong).fit(table)
    with pytest.raises(DomainError, match="no column 'text'"):
        make(ChowLiu().fit(TABLES["pandas"][["real", "text"]])).fit(table)
    with pytest.raises(DomainError, match=r"X has 2 features, but .* is expecting 1"):
        make(ChowLiu().fit(TABLES["pandas"][["real"]])).fit(table)


# -- densities and pipelines ----------------------------------------------------------


def test_whose_density():
    table = TABLES["floats"]
    assert type(MPEImputer().fit(table).density_) is LatentTree
    learner = ChowLiu(pseudo_count=0.5)
    imputer = MPEImputer(learner).fit(table)
    assert not hasattr(learner, "circuit_")  # what was given stays as it was
    assert imputer.density_.pseudo_count == 0.5
    learned = ChowLiu().fit(table)
    imputer = MPEImputer(learned).fit(table[:5])
    assert imputer.density_ is learned
    assert clone(imputer).fit(table[:5]).density_ is not learned  # scikit-learn's clone forgets
    plain = learned.condition()
    assert MPEImputer(plain).fit(table).density_ is plain
    again = clone(MPEImputer(plain)).fit(table[:5]).density_
    assert again.circuit == plain.circuit
    swapped = MPEImputer(ChowLiu().fit({"b": [5, 6] * 20, "a": ["u", "v"] * 20}))
    swapped.fit({"a": ["u"], "b": [5]})
    assert swapped.transform({"a": [None, "v"], "b": [5, None]}) == {"a": ["u", "v"], "b": [5, 6]}
    by_place = MPEImputer(learned).fit(pd.DataFrame(table, columns=["p", "q"]))
    holed = pd.DataFrame({"q": [np.nan], "p": [1.5]})
    expected = imputer.transform(np.array([[1.5, np.nan]]))
    assert by_place.transform(holed)["q"][0] == expected[0, 1]


def test_weights_count():
    table = {"x": ["a", "b", "b"] * 20}
    unknown = {"x": [None]}
    assert MPEImputer(ChowLiu()).fit(table).transform(unknown) == {"x": ["b"]}
    imputer = MPEImputer(ChowLiu()).fit(table, sample_weight=[9.0, 1.0, 1.0] * 20)
    assert imputer.transform(unknown) == {"x": ["a"]}


@every
def test_in_a_pipeline(make):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 4, 400)
    X = np.column_stack([group, group * 2.0 + 1, rng.normal(size=400)])
    y = group + 0.1 * rng.normal(size=400)
    X[rng.random(X.shape) < 0.3] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = make_pipeline(make(ChowLiu(encoder=SMALL), random_state=0), LinearRegression())
    assert cross_val_score(model, frame, y, cv=3).min() > 0.6
    step = type(model.steps[0][1]).__name__.lower()
    search = GridSearchCV(
        make_pipeline(make(ChowLiu(encoder=SMALL), random_state=0), Ridge()),
        {f"{step}__density__pseudo_count": [0.5, 1e5]},  # the latter forgets what goes together
        cv=3,
    ).fit(frame, y)
    assert search.best_params_ == {f"{step}__density__pseudo_count": 0.5}
    assert search.best_estimator_[0].density_.pseudo_count == 0.5
    assert search.best_score_ > search.cv_results_["mean_test_score"].min() + 0.02


@every
def test_pickles_and_clones(make):
    imputer = make(ChowLiu(pseudo_count=2, encoder=SMALL), random_state=4).fit(MIXED)
    again = pickle.loads(pickle.dumps(imputer))
    assert again.transform(MIXED) == imputer.transform(MIXED)
    fresh = clone(imputer)
    assert not hasattr(fresh, "density_")
    assert fresh.random_state == 4
    assert fresh.get_params()["density__pseudo_count"] == 2
    assert fresh.fit(MIXED).transform(MIXED) == imputer.transform(MIXED)


def test_from_a_file(tmp_path):
    density = ChowLiu(encoder=SMALL).fit(MIXED)
    density.save(tmp_path / "density")
    imputer = MPEImputer(Density.load(tmp_path / "density")).fit(MIXED)
    assert imputer.transform(MIXED) == MPEImputer(density).fit(MIXED).transform(MIXED)


def test_decimals_and_their_holes():
    table = {"d": [Decimal("1.5"), Decimal("NaN"), Decimal("2.5"), Decimal("1.5")] * 5}
    done = MPEImputer(Independent()).fit(table).transform(table)
    assert done["d"][:4] == [Decimal("1.5"), 1.5, Decimal("2.5"), Decimal("1.5")]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_all_columns_of_a_frame_are_filled_at_once(kind, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 8))
    X[rng.random(X.shape) < 0.3] = np.nan
    table = {f"c{i}": column.tolist() for i, column in enumerate(X.T)}
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[kind](table)
    imputer, calls, put = MPEImputer(Independent()).fit(frame), [], nw.DataFrame.with_columns
    monkeypatch.setattr(
        nw.DataFrame,
        "with_columns",
        lambda self, *given, **named: (calls.append(given), put(self, *given, **named))[1],
    )
    imputer.transform(frame)
    assert len(calls) == 1
