"""Tables as variables: every kind of column, every kind of table, there and back."""

from __future__ import annotations

import datetime as dt
import pickle
import warnings
from decimal import Decimal
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from expecta import DomainError, Evidence, config_context
from expecta.tables import BooleanEncoder, Encoder, encoder
from expecta.tables.encoder_files import ENCODER_FILE
from expecta.tables.table import read_table

# pandas 2 looks in `convert_dtypes` whether numbers are whole by a cast
CASTS_OF_PANDAS = pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning:pandas")
DAY = dt.date(2024, 2, 28)
NOON = dt.datetime(2024, 2, 28, 12, 30)
TABLE = {
    "text": ["b", None, "a", "b", "c"],
    "flag": [True, False, None, True, True],
    "whole": [3, 1, None, 3, 2**40],
    "real": [0.5, None, -1.25, 0.5, 7.0],
    "day": [DAY, None, DAY + dt.timedelta(1), DAY, DAY - dt.timedelta(400)],
    "time": [NOON, None, NOON + dt.timedelta(hours=1), NOON, NOON - dt.timedelta(400)],
    "span": [dt.timedelta(hours=i) for i in (5, 1, 5, 2)] + [None],
    "nothing": [None] * 5,
}


def frames(table=TABLE):
    """The same table, in everything that holds tables."""
    zipped = {name: np.array(values, object) for name, values in table.items()}
    return {
        "dict": table,
        "objects": zipped,
        "array": np.array(list(zip(*table.values(), strict=True)), object),
        "pandas": pd.DataFrame(table),
        "nullable": pd.DataFrame(table).convert_dtypes(),
        "arrow in pandas": pd.DataFrame(table).convert_dtypes(dtype_backend="pyarrow"),
        "polars": pl.DataFrame(table, strict=False),
        "pyarrow": pa.table(table),
    }


def saved(encoder):
    """The encoder after a visit to a file."""
    return ENCODER_FILE.from_bytes("f", ENCODER_FILE.to_bytes(encoder))


# -- tables of all kinds --------------------------------------------------------------------


def test_every_table_gives_the_same_codes():
    expected = Encoder().fit(TABLE)
    codes = expected.transform(TABLE)
    assert codes.dtype == np.int32
    assert codes[:, 0].tolist() == [1, -1, 0, 1, 2]
    assert codes[:, 1].tolist() == [1, 0, -1, 1, 1]
    assert codes[:, 2].tolist() == [1, 0, -1, 1, 2]
    assert codes[:, 7].tolist() == [-1] * 5
    assert expected.cardinalities_.tolist() == [3, 2, 3, 3, 3, 3, 3, 1]
    for kind, frame in frames().items():
        encoder = Encoder().fit(frame)
        assert np.array_equal(encoder.transform(frame), codes), kind
        assert np.array_equal(encoder.cardinalities_, expected.cardinalities_), kind
        assert np.array_equal(expected.transform(frame), codes), kind
        assert np.array_equal(saved(encoder).transform(frame), codes), kind
        for ours, theirs in zip(encoder.columns_, expected.columns_, strict=True):
            assert ours.labels == theirs.labels
            assert np.array_equal(ours.edges, theirs.edges)


@pytest.mark.parametrize("kind", ["pandas", "nullable", "arrow in pandas"])
def test_back_to_pandas(kind):
    frame = frames()[kind].drop(columns="nothing")
    encoder = Encoder().fit(frame)
    for model in (encoder, saved(encoder)):
        back = model.inverse_transform(model.transform(frame))
        pd.testing.assert_frame_equal(back, frame)


def test_back_to_polars_and_arrow():
    frame = frames()["polars"].drop("nothing")
    encoder = Encoder().fit(frame)
    assert encoder.inverse_transform(encoder.transform(frame)).equals(frame)
    assert encoder.inverse_transform(encoder.transform(frame)).schema == frame.schema
    arrow = frames()["pyarrow"].drop(["nothing"])
    encoder = Encoder().fit(arrow)
    assert encoder.inverse_transform(encoder.transform(arrow)).equals(arrow)


def test_back_to_arrays_and_dicts():
    encoder = Encoder().fit(TABLE)
    back = encoder.inverse_transform(encoder.transform(TABLE))
    assert back["text"].tolist() == TABLE["text"]
    assert back["day"].tolist() == TABLE["day"]
    assert back["time"].tolist() == TABLE["time"]
    assert back["span"].tolist() == TABLE["span"]
    assert back["flag"].tolist() == TABLE["flag"]
    full = {"n": [3, 1, 2]}
    encoder = Encoder().fit(full)
    assert encoder.inverse_transform(encoder.transform(full))["n"].dtype == np.int64
    array = np.array([[0.5, 1.0], [np.nan, 2.0]])
    encoder = Encoder().fit(array)
    np.testing.assert_array_equal(encoder.inverse_transform(encoder.transform(array)), array)
    mixed = frames()["array"]
    encoder = Encoder().fit(mixed)
    assert encoder.inverse_transform(encoder.transform(mixed)).tolist() == mixed.tolist()
    rows = [["a", 1, None], ["b", 2.5, True]]
    assert Encoder().fit(rows).transform(rows).tolist() == [[0, 0, -1], [1, 1, 1]]
    assert [c.kind for c in Encoder().fit(rows).columns_] == ["category", "number", "boolean"]


def test_declared_orders():
    order = ["low", "mid", "high", "never"]
    cells = ["high", "low", None, "mid"]
    pandas = pd.DataFrame({"c": pd.Categorical(cells, order, ordered=True)})
    polars = pl.DataFrame({"c": pl.Series(cells, dtype=pl.Enum(order))})
    for frame in (pandas, polars):
        encoder = Encoder().fit(frame)
        assert encoder.columns_[0].labels == tuple(order)
        assert encoder.transform(frame)[:, 0].tolist() == [2, 0, -1, 1]
        assert encoder.notes_ == ["column 'c' declares categories that do not occur in it: 1"]
        back = saved(encoder).inverse_transform(encoder.transform(frame))
        assert back.equals(frame)
    assert Encoder().fit(pandas).inverse_transform([[0]])["c"].cat.ordered
    plain = pl.DataFrame({"c": pl.Series(cells, dtype=pl.Categorical)})
    assert Encoder().fit(plain).columns_[0].labels == ("high", "low", "mid")
    numbers = pd.DataFrame({"c": pd.Categorical([3, 1, 3], categories=[3, 2, 1])})
    encoder = Encoder().fit(numbers)
    assert encoder.columns_[0].values == (3, 2, 1)
    assert encoder.transform({"c": [1, 2.0, 5]})[:, 0].tolist() == [2, 1, -1]
    assert encoder.inverse_transform([[0], [2], [-1]]).equals(
        pd.DataFrame({"c": pd.Categorical([3, 1, None], categories=[3, 2, 1])})
    )


def test_mixed_objects_stay_apart():
    cells = [1, "1", True, 1.0, "True", 2.5, DAY, None]
    encoder = Encoder().fit({"m": cells})
    codes = encoder.transform({"m": cells})[:, 0].tolist()
    assert codes[0] == codes[3]
    assert len(set(codes)) == 7
    assert len(set(encoder.columns_[0].labels)) == 6
    assert np.array_equal(saved(encoder).transform({"m": cells})[:, 0], codes)
    assert encoder.inverse_transform([[c] for c in codes])["m"].tolist() == cells


def test_time_zones():
    zone = pd.date_range("2024-03-30", periods=5, freq="12h", tz="Europe/Berlin")
    pandas = pd.DataFrame({"t": zone})
    polars = pl.from_pandas(pandas)
    aware = {"t": [stamp.to_pydatetime() for stamp in zone]}
    codes = [Encoder().fit(f).transform(f)[:, 0].tolist() for f in (pandas, polars, aware)]
    assert codes == [[0, 1, 2, 3, 4]] * 3
    for frame in (pandas, polars):
        encoder = Encoder().fit(frame)
        assert encoder.inverse_transform(encoder.transform(frame)).equals(frame)
        weights = encoder.where(t=dt.datetime(2024, 3, 31, 12)).weights(0)  # the column's zone
        assert weights.tolist() == [[0, 0, 0, 1, 0]]
        utc = dt.datetime(2024, 3, 30, 23, tzinfo=dt.UTC)
        assert encoder.where(t=utc).weights(0).tolist() == [[0, 0, 1, 0, 0]]
    with pytest.raises(DomainError, match="time zone"):
        encoder.transform({"t": [NOON]})
    with pytest.raises(DomainError, match="time zone"):
        Encoder().fit({"t": [NOON, NOON.replace(tzinfo=dt.UTC)]})
    with pytest.raises(DomainError, match="has a time zone and the column has none"):
        Encoder().fit({"t": [NOON]}).where(t=utc)
    fixed = pd.DataFrame({"t": zone.tz_convert("+01:00")})
    assert Encoder().fit(fixed).where(t=dt.datetime(2024, 3, 30)).weights(0).tolist()[0][0] == 1


def test_units_of_times_do_not_matter():
    stamps = pd.to_datetime(
        ["2024-01-01 00:00:00", "2024-01-02 03:04:05", None, "2030-05-05 00:00:00"]
    )
    codes = []
    for unit in ("s", "ms", "us", "ns"):
        frame = pd.DataFrame({"t": stamps.as_unit(unit), "d": (stamps - stamps[0]).as_unit(unit)})
        encoder = Encoder().fit(frame)
        codes.append(encoder.transform(frame).tolist())
        assert encoder.inverse_transform(codes[-1]).equals(frame)
    assert codes == [[[0, 0], [1, 1], [-1, -1], [2, 2]]] * 4
    days = {"t": np.array(["2024-01", "2024-03", "NaT"], "M8[M]")}
    assert Encoder().fit(days).transform(days)[:, 0].tolist() == [0, 1, -1]


def test_all_that_is_missing():
    cells = [1, None, np.nan, pd.NA, pd.NaT, np.datetime64("NaT"), Decimal("NaN"), np.ma.masked]
    assert Encoder().fit({"a": cells}).transform({"a": cells})[:, 0].tolist() == [0] + [-1] * 7
    masked = np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], [[False, True], [False, False]])
    assert Encoder().fit(masked).transform(masked).tolist() == [[0, -1], [1, 0]]
    masked = np.ma.masked_array([[1, 2], [3, 4]], [[False, True], [False, False]])
    assert Encoder().fit(masked).transform(masked).tolist() == [[1, -1], [3, 4]]


# -- numbers ----------------------------------------------------------------------------------


def test_whole_numbers_are_kept_as_they_are():
    ages = np.tile(np.arange(20, 50), 150)
    column = Encoder().fit({"age": ages}).columns_[0]
    assert column.cardinality == 30
    assert column.labels[:2] == ("20", "21")
    assert column.means.tolist() == list(range(20, 50))
    assert column.counts.tolist() == [150] * 30
    wide = Encoder(max_bins=32).fit({"age": np.arange(100)}).columns_[0]
    assert wide.cardinality == 32
    assert wide.labels[0] == "0 to 2"


def test_few_rows_have_few_bins():
    def bins(rows, **weights):
        x = np.arange(rows) / 7
        return Encoder().fit({"x": x}, **weights).columns_[0].cardinality

    assert [bins(rows) for rows in (5, 50, 400, 1000, 5000)] == [5, 8, 15, 20, 32]
    assert bins(400, sample_weight=np.full(400, 0.5)) == 12
    assert Encoder(max_bins=40).fit({"x": np.arange(50)}).columns_[0].cardinality == 40


def test_a_heavy_value_has_its_own_bin():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(5000) < 0.6, 0.0, rng.normal(size=5000))
    column = Encoder().fit({"x": x}).columns_[0]
    zero = column.code(0.0)
    assert column.lows[zero] == column.highs[zero] == 0.0
    assert column.counts[zero] == np.sum(x == 0)
    assert column.cardinality == 32
    assert np.min(np.delete(column.counts, zero)) > 40


def test_widths_edges_and_options():
    x = np.r_[np.linspace(0, 10, 101), 100.0]
    width = Encoder(bins="width", max_bins=5).fit({"x": x}).columns_[0]
    assert width.edges.tolist() == [20, 40, 60, 80]
    assert width.counts.tolist() == [101, 0, 0, 0, 1]
    given = Encoder(bins={"x": [0, 5, 50, 100]}).fit({"x": x, "y": x})
    assert given.columns_[0].edges.tolist() == [5, 50]
    assert given.columns_[1].cardinality == 10
    assert given.transform({"x": [-9, 5, 1e9, np.inf, -np.inf], "y": [None] * 5})[
        :, 0
    ].tolist() == [0, 1, 2, 2, 0]
    days = Encoder(bins={"d": [DAY, "2024-03-01", dt.date(2025, 1, 1)]}).fit({"d": [DAY]})
    assert days.cardinalities_.tolist() == [2]
    assert saved(days).get_params()["bins"]["d"][0] == DAY


def test_adaptive_bins_find_the_steps():
    rng = np.random.default_rng(1)
    x = np.r_[rng.uniform(0, 1, 4000), rng.uniform(1, 10, 1000)]
    column = Encoder(bins="adaptive").fit({"x": x}).columns_[0]
    assert column.cardinality in (2, 3)
    assert column.edges == pytest.approx(1.0, abs=0.06)
    flat = Encoder(bins="adaptive").fit({"x": rng.uniform(size=300)}).columns_[0]
    assert flat.cardinality == 10
    assert np.ptp(np.diff(flat.edges)) < 1e-9
    few = Encoder(bins="adaptive", max_bins=4).fit({"x": [0, 1]}).columns_[0]
    assert few.cardinality == 4
    most = Encoder(bins="adaptive", max_bins=3).fit({"x": rng.normal(size=5000)}).columns_[0]
    assert most.cardinality == 3


@pytest.mark.parametrize("method", ["quantile", "width", "adaptive"])
def test_thresholds_are_exact(method):
    rng = np.random.default_rng(2)
    table = {"x": rng.normal(size=500), "n": rng.integers(0, 9, 500)}
    cuts = {"x": rng.normal(size=6).tolist(), "n": [2.5, 4, 4.0]}
    encoder = Encoder(bins=method, thresholds=cuts, max_bins=8).fit(table)
    for name, places in cuts.items():
        column = encoder.column(name)
        for t in places:
            below, above = column.code(t), column.code(np.nextafter(t, np.inf))
            assert above == below + 1
    assert encoder.cardinalities_[1] >= (8 if method != "adaptive" else 3)
    only = Encoder(max_bins=1, thresholds=cuts).fit(table)
    assert only.cardinalities_.tolist() == [7, 3]
    assert np.array_equal(saved(only).transform(table), only.transform(table))


def test_thresholds_replace_equal_cuts():
    encoder = Encoder(thresholds={"n": [1.2, 1.7]}).fit({"n": [1, 2, 3]})
    column = encoder.columns_[0]
    assert column.cardinality == 4  # a bin between the two thresholds, which holds nothing
    assert column.counts.tolist() == [1, 0, 1, 1]
    assert 1.2 < column.means[1] <= 1.7
    assert encoder.transform({"n": [1, 1.5, 2, 3]})[:, 0].tolist() == [0, 1, 2, 3]


def test_statistics_and_values():
    x = np.random.default_rng(3).gamma(2, size=2000)
    encoder = Encoder(max_bins=8).fit({"x": x, "c": ["a", "b"] * 1000, "b": [True, False] * 1000})
    codes = encoder.transform({"x": x, "c": [None] * 2000, "b": [None] * 2000})[:, 0]
    column = encoder.column("x")
    for j in range(8):
        part = x[codes == j]
        assert column.means[j] == pytest.approx(part.mean())
        assert column.stds[j] == pytest.approx(part.std())
        assert (column.lows[j], column.highs[j]) == (part.min(), part.max())
        assert column.counts[j] == len(part)
    assert encoder.values("x") is column.means
    assert encoder.values("b").tolist() == [0, 1]
    with pytest.raises(DomainError, match="categories, not numbers"):
        encoder.values("c")


def test_random_draws_look_like_the_data():
    x = np.random.default_rng(4).gamma(2, size=5000)
    table = pd.DataFrame({"x": x, "n": np.random.default_rng(5).integers(0, 500, 5000)})
    encoder = Encoder(max_bins=8).fit(table)
    codes = encoder.transform(table)
    back = encoder.inverse_transform(codes, random_state=1)
    assert np.array_equal(encoder.transform(back), codes)
    assert back["n"].dtype == np.int64
    assert back["x"].mean() == pytest.approx(x.mean(), rel=0.01)
    assert back["x"].std() == pytest.approx(x.std(), rel=0.02)
    assert back.equals(encoder.inverse_transform(codes, random_state=1))
    assert not back.equals(encoder.inverse_transform(codes, random_state=2))


def test_weights_count_rows():
    table = {"x": [1.0, 2.0, 3.0], "c": ["a", "b", "c"]}
    weighted = Encoder().fit(table, sample_weight=[2, 0.5, 0])
    assert weighted.cardinalities_.tolist() == [2, 2]
    assert weighted.columns_[0].counts.tolist() == [2, 0.5]
    assert weighted.transform(table)[:, 1].tolist() == [0, 1, -1]
    codes = Encoder().fit(np.array([[0, 1], [2, -1]]), sample_weight=[1, 3])
    assert [c.counts.tolist() for c in codes.columns_] == [[1, 0, 3], [0, 1]]
    for bad in ([1, 2], [1, -1, 1], [np.nan, 1, 1], [0, 0, 0]):
        with pytest.raises(DomainError, match="weight"):
            Encoder().fit(table, sample_weight=bad)


# -- categories -------------------------------------------------------------------------------


def test_many_categories():
    cells = [f"c{i}" for i in range(100) for _ in range(100 - i)]
    encoder = Encoder(max_categories=10).fit({"c": cells})
    column = encoder.columns_[0]
    assert column.cardinality == 10
    assert column.labels == tuple([f"c{i}" for i in range(9)] + ["other"])
    assert column.counts.sum() == len(cells)
    assert encoder.transform({"c": ["c0", "c50", "new", None]})[:, 0].tolist() == [0, 9, 9, -1]
    assert encoder.inverse_transform([[9]])["c"].tolist() == ["other"]
    assert encoder.where(c="other").weights(0)[0, 9] == 1
    assert "100 categories; the 9 most frequent are kept" in encoder.notes_[0]
    named = Encoder(max_categories=3).fit({"c": ["other"] * 9 + ["a"] * 5 + list("bcde")})
    assert named.columns_[0].labels == ("a", "other", "other values")
    assert named.where(c="other").weights(0).tolist() == [[0, 1, 0]]
    assert np.array_equal(saved(named).transform({"c": ["z"]}), [[2]])


def test_unseen_categories():
    table = {"c": ["yes", "no"], "b": [True, False]}
    strange = {"c": ["maybe", None], "b": [True, None]}
    assert Encoder().fit(table).transform(strange).tolist() == [[-1, 1], [-1, -1]]
    strict = Encoder(unseen="error").fit(table)
    with pytest.raises(DomainError, match=r"'c' has the value 'maybe'.*unseen='unknown'"):
        strict.transform(strange)
    declared = pd.DataFrame({"c": pd.Categorical(["no"], ["no", "maybe"]), "b": [True]})
    assert strict.transform(declared).tolist() == [[0, 1]]
    assert strict.transform({"c": ["no"], "b": [0.0]}).tolist() == [[0, 0]]
    with pytest.raises(DomainError, match="but none in the training data"):
        Encoder(unseen="error").fit({"a": [None]}).transform({"a": [1]})


@pytest.mark.parametrize("codes", [[501, 10001, 7], ["501", "10001", "7"]])
def test_codes_are_the_same_as_numbers_and_as_texts(codes):
    encoder = Encoder(categorical=["zip"]).fit({"zip": codes * 4})
    wanted = encoder.codes({"zip": codes}).tolist()
    for same in ([501, 10001, 7], [501.0, 10001.0, 7.0], ["501", "10001", "7"]):
        assert encoder.codes({"zip": same}).tolist() == wanted
    assert encoder.codes({"zip": ["0501", "501.5", "x"]}).tolist() == [[-1]] * 3
    both = Encoder(categorical=["c"]).fit({"c": [1, "1", True] * 4})
    assert len(set(both.codes({"c": [1, "1", True]})[:, 0].tolist())) == 3


def test_kinds_override():
    table = {"zip": [94110, 10001, 94110], "n": ["1.5", "2", None], "d": ["2024-01-02", None, None]}
    encoder = Encoder(categorical=["zip"], numeric=["n"], dates=["d"]).fit(table)
    assert [c.kind for c in encoder.columns_] == ["category", "number", "date"]
    assert encoder.columns_[0].values == (10001, 94110)
    assert encoder.transform(table).tolist() == [[1, 0, 0], [0, 1, -1], [1, -1, -1]]
    assert encoder.transform(pd.DataFrame(table)).tolist() == encoder.transform(table).tolist()
    with pytest.raises(DomainError, match="column 'n' holds numbers: 'abc' is not a number"):
        encoder.transform({**table, "n": ["abc"] * 3})
    times = Encoder(categorical=["d", "t", "s"]).fit(
        {"d": [DAY, None], "t": [NOON, None], "s": [dt.timedelta(1), None]}
    )
    assert [c.values for c in times.columns_] == [(DAY,), (NOON,), (dt.timedelta(1),)]
    assert [c.values for c in saved(times).columns_] == [(DAY,), (NOON,), (dt.timedelta(1),)]
    frame = pl.DataFrame({"d": [DAY, None], "n": [3, None], "f": [0.5, None]})
    forced = Encoder(categorical=list("dnf")).fit(frame)
    assert forced.inverse_transform(forced.transform(frame)).equals(frame)
    with pytest.raises(DomainError, match="holds dates, not numbers"):
        Encoder(numeric=["d"]).fit({"d": [DAY]})
    array = Encoder(numeric=["x1"]).fit(np.array([[0, -50], [1, 70000]]))
    assert [c.kind for c in array.columns_] == ["code", "integer"]
    assert array.inverse_transform([[1, 0]]).tolist() == [[1, -50]]
    assert np.array_equal(saved(array).inverse_transform([[1, 0]]), [[1, -50]])


# -- integer arrays ---------------------------------------------------------------------------


def test_integer_arrays_are_codes():
    X = np.array([[0, 3], [-1, 1], [1, -1]])
    encoder = Encoder().fit(X)
    assert encoder.cardinalities_.tolist() == [2, 4]
    assert encoder.feature_names_in_.tolist() == ["x0", "x1"]
    assert np.array_equal(encoder.transform(X), X)
    assert np.array_equal(encoder.inverse_transform(X), X)
    holes = np.where(X < 0, np.nan, X)
    assert np.array_equal(encoder.transform(holes), X)
    assert np.array_equal(encoder.transform(np.where(X < 0, None, X)), X)
    assert encoder.transform([[7, 9]]).tolist() == [[-1, -1]]
    assert encoder.transform({"x1": [2], "x0": [None]}).tolist() == [[-1, 2]]
    assert encoder.where(x1=(1, 2)).weights(1).tolist() == [[0, 1, 1, 0]]
    assert encoder.where(x1=[0, 3]).weights(1).tolist() == [[1, 0, 0, 1]]
    assert encoder.where(x1=(None, 2)).weights(1).tolist() == [[1, 1, 1, 0]]
    assert encoder.values("x1").tolist() == [0, 1, 2, 3]
    for bits in (np.zeros((3, 2), int), np.zeros((3, 2), bool), [[True, False]]):
        assert Encoder().fit(bits).cardinalities_.tolist() == [2, 2]
    assert Encoder().fit(np.array([[-1]])).transform([[-1]]).tolist() == [[-1]]
    for problem, act in {
        "the integer -2": lambda: Encoder().fit([[-2]]),
        "up to 65535, not 70000": lambda: Encoder().fit([[70000]]),
        "takes the values 0 .. 3; use unseen": lambda: (
            Encoder(unseen="error").fit(X).transform([[0, 4]])
        ),
        "row 0 has 0.5 for variable 'x0'": lambda: encoder.transform([[0.5, 1.0]]),
        "use NaN for unknown": lambda: encoder.transform([[-1.0, 1.0]]),
        "takes the values 0 .. 3, not 'a'": lambda: encoder.where(x1="a"),
        "takes the values 0 .. 3, not 4": lambda: encoder.where(x1=4),
    }.items():
        with pytest.raises(DomainError, match=problem):
            act()


# -- evidence ---------------------------------------------------------------------------------


def test_evidence_from_rows():
    encoder = Encoder().fit(TABLE)
    evidence = encoder.evidence(TABLE)
    assert isinstance(evidence, Evidence)
    assert len(evidence) == 5
    assert evidence.weights(0)[:2].tolist() == [[0, 1, 0], [1, 1, 1]]


def test_facts():
    encoder = Encoder().fit({**TABLE, "age": [20, 30, 40, 50, 60]})

    def where(**facts):
        [(name, _)] = facts.items()
        return encoder.where(**facts).weights(encoder.variable(name))[0].tolist()

    assert where(text="a") == [1, 0, 0]
    assert where(text={"a", "c"}) == where(text=("a", "c")) == where(text=["c", "a"]) == [1, 0, 1]
    assert where(text=None) == where(text=pd.NA) == [1, 1, 1]
    assert where(flag=True) == where(flag=np.True_) == where(flag=1) == [0, 1]
    assert where(age=33) == [0, 1, 0, 0, 0]
    assert where(age=(30, 50)) == [0, 1, 1, 1, 0]
    assert where(age=(None, 29.9)) == [1, 0, 0, 0, 0]
    assert where(age=(45, None)) == [0, 0, 0, 1, 1]
    assert where(age=(41, 49)) == where(age=[]) == [0] * 5
    assert where(age=(41, 41)) == [0] * 5  # an interval holds what lies in it, and nothing does
    assert where(age=41) == where(age="41") == where(age=(40, 40)) == [0, 0, 1, 0, 0]
    assert where(age=[20, 50, 60]) == where(age=np.array([20, 50, 60])) == [1, 0, 0, 1, 1]
    assert where(day=DAY) == where(day="2024-02-28") == where(day=np.datetime64(DAY)) == [0, 1, 0]
    assert where(day=("2024-01-01", DAY)) == [0, 1, 0]
    assert where(time=(NOON, None)) == [0, 1, 1]
    assert where(span=(dt.timedelta(0), dt.timedelta(hours=2))) == [1, 1, 0]
    assert where(span=("0 s", "2 hours")) == where(span=(0, np.timedelta64(2, "h"))) == [1, 1, 0]
    assert where(span=("02:00:00", "02:00:00")) == where(span=["PT2H"]) == [0, 1, 0]
    assert encoder.where({"age": 20}, text="a").weights(0).tolist() == [[1, 0, 0]]
    age = encoder.column("age")
    assert age.between(30, 50, closed="left").tolist() == [0, 1, 1, 0, 0]
    assert age.between(30, 50, closed="right").tolist() == [0, 0, 1, 1, 0]
    assert age.between(30, 50, closed="neither").tolist() == [0, 0, 1, 0, 0]


def test_shares_of_bins():
    whole = Encoder(bins=[0, 5, 10]).fit({"n": list(range(10))})
    assert whole.where(n=(0, 2)).weights(0) == pytest.approx(np.array([[0.6, 0]]))
    assert whole.where(n=(3, 5)).weights(0) == pytest.approx(np.array([[0.4, 0.2]]))
    assert whole.columns_[0].between(3, 5, closed="left") == pytest.approx([0.4, 0])
    real = Encoder(bins=[0, 5, 10]).fit({"n": [0.5, 4.5, 6, 8]})  # two numbers, half at each
    assert real.where(n=(2.5, 7)).weights(0) == pytest.approx(np.array([[0.5, 0.5]]))
    assert real.where(n=(0.5, 4.5)).weights(0).tolist() == [[1, 0]]
    assert real.where(n=(9, 99)).weights(0).tolist() == [[0, 0]]


def test_mistaken_facts():
    encoder = Encoder().fit(TABLE)
    for problem, facts in {
        "no column 'txet'; there is 'text'.*did you mean 'text'": {"txet": 1},
        "has no value 'aa'; it takes 'a', 'b', 'c'": {"text": "aa"},
        "column 'real': 'x' is not a number": {"real": "x"},
        "has two ends": {"real": (1, 2, 3)},
        "has a missing value": {"real": [1, None]},
        "cannot be the end of an interval": {"real": (np.nan, 3)},
        "is not a date": {"day": "yesterday"},
        "has no known values in the training data": {"nothing": 1},
        "is not a duration; write it with its unit, such as '4 days'": {"span": DAY},
        "column 'span': 4 is not a duration": {"span": (4, None)},
        "4.5 is not a duration": {"span": 4.5},
        "'4' is not a duration": {"span": "4"},
        "'1 month' is not a duration": {"span": "1 month"},
        "'1e999 s' is not a duration": {"span": "1e999 s"},
        "'' is not a duration": {"span": ""},
        "2024 is not a date; write '2024-05-31'": {"day": 2024},
        "7 is not a datetime": {"time": 7},
    }.items():
        with pytest.raises(DomainError, match=problem):
            encoder.where(facts)
    with pytest.raises(DomainError, match="has no interval"):
        encoder.column("text").between("a", "b")
    with pytest.raises(ValueError, match="closed is"):
        encoder.column("real").between(0, 1, closed="all")


# -- edges of the domain ----------------------------------------------------------------------


def test_odd_columns_and_their_notes():
    rows = 200
    table = {
        "id": [f"row {i}" for i in range(rows)],
        "same": [7] * rows,
        "gone": [None] * rows,
        "word": ["x"] * rows,
        "inf": [np.inf] * rows,
    }
    encoder = Encoder().fit(table)
    assert encoder.cardinalities_.tolist() == [1, 1, 1, 1, 1]
    assert encoder.transform(table)[0].tolist() == [0, 0, -1, 0, -1]
    assert encoder.columns_[0].labels == ("other",)
    assert [note.split(";")[0] for note in encoder.notes_] == [
        "column 'id' has a distinct value in nearly every row, like an identifier",
        "columns 'same' and 'word' have the same value in every row",
        "columns 'gone' and 'inf' have no known value",
    ]
    assert encoder.inverse_transform([[0, 0, -1, 0, -1]])["same"].tolist() == [7]
    assert "note: column 'id'" in encoder.summary()
    one = Encoder().fit({"a": [1.5], "b": ["x"]})
    assert one.transform({"a": [9], "b": ["x"]}).tolist() == [[0, 0]]


def test_extreme_numbers():
    table = {
        "huge": [2**62, -(2**62), 0, 2**63 - 1],
        "zero": [0.0, -0.0, 1.0, -1.0],
        "tiny": [5e-324, 0.0, -5e-324, 1e-300],
        "wide": [1.7e308, -1.7e308, 0.0, 1e308],
        "single": np.array([0.1, 0.2, 0.3, 0.4], np.float32),
        "money": [Decimal("0.1"), Decimal("0.2"), Decimal("1e3"), Decimal("0.1")],
        "beyond": [10**400, 1, 2, 3],
    }
    for method in ("quantile", "width", "adaptive"):
        encoder = Encoder(bins=method).fit(table)
        codes = encoder.transform(table)
        assert np.all(codes >= 0)
        assert np.array_equal(saved(encoder).transform(table), codes)
    encoder = Encoder().fit(table)
    assert encoder.cardinalities_.tolist() == [4, 3, 4, 4, 4, 3, 3]
    assert encoder.transform(table)[:2, 1].tolist() == [1, 1]
    back = encoder.inverse_transform(encoder.transform(table))
    assert back["huge"].tolist()[:3] == table["huge"][:3]
    assert back["single"].astype(np.float32).tolist() == table["single"].tolist()
    assert encoder.where(wide=(0, 1.1e308)).weights(3).tolist() == [[0, 1, 1, 0]]
    single = Encoder().fit(pd.DataFrame({"x": table["single"]}))
    assert single.inverse_transform([[0]])["x"].dtype == np.float32
    small = Encoder(bins=[0, 2, 200]).fit(pd.DataFrame({"x": np.array([0, 1, 200], np.uint8)}))
    assert small.inverse_transform([[0], [1]])["x"].tolist() == [0, 200]
    assert small.inverse_transform([[0], [1]])["x"].dtype == np.uint8
    assert str(small.inverse_transform([[0], [-1]])["x"].dtype) == "UInt8"


@CASTS_OF_PANDAS
def test_the_largest_integers_come_back():
    frame = pl.DataFrame(
        {"i": [2**63 - 1, None, 5], "u": pl.Series([2**64 - 1, None, 5], dtype=pl.UInt64)}
    )
    for table in (frame, frame.to_arrow(), frame.to_pandas().convert_dtypes()):
        encoder = Encoder().fit(table)
        back = encoder.inverse_transform(encoder.transform(table))
        for name in ("i", "u"):
            largest, missing, small = pl.DataFrame(back)[name].to_list()
            assert largest == pytest.approx(frame[name][0], rel=1e-15)
            assert missing is None
            assert small == 5


def test_tables_that_are_none():
    encoder = Encoder().fit({"a": [1, 2], "b": ["x", "y"]})
    assert encoder.transform({"a": [], "b": []}).shape == (0, 2)
    assert encoder.transform(np.zeros((0, 2))).shape == (0, 2)
    assert len(encoder.inverse_transform(np.zeros((0, 2), int))["a"]) == 0
    assert encoder.transform({"b": ["y"], "z": [1], "a": [None]}).tolist() == [[-1, 1]]
    assert encoder.transform([[2, "x"]]).tolist() == [[1, 0]]
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    for problem, act in {
        "0 rows": lambda: Encoder().fit(pd.DataFrame({"a": []})),
        "0 feature": lambda: Encoder().fit(np.zeros((3, 0))),
        "two columns": lambda: Encoder().fit(twice),
        "two columns have the name '1'": lambda: Encoder().fit({1: [1], "1": [2]}),
        "different lengths": lambda: Encoder().fit({"a": [1], "b": [1, 2]}),
        "two dimensions, not 1. Reshape your data: for one row": lambda: Encoder().fit([1, 2]),
        "differ in length": lambda: Encoder().fit([[1], [1, 2]]),
        "must be a sequence to learn from": lambda: Encoder().fit({"a": 5}),
        "must be a sequence, not": lambda: Encoder().fit({"a": {5}}),
        "has 2 dimensions": lambda: Encoder().fit({"a": np.zeros((2, 2))}),
        "not int": lambda: Encoder().fit(5),
        "not LazyFrame; call .collect": lambda: Encoder().fit(pl.LazyFrame({"a": [1]})),
        "X has 3 features, but Encoder is expecting 2": lambda: encoder.transform(np.zeros((1, 3))),
        "not shape": lambda: encoder.inverse_transform([[0]]),
        "values are integers": lambda: encoder.inverse_transform([[0.0, 1.0]]),
        "out of range": lambda: encoder.inverse_transform([[0, 2]]),
        "column 'a' holds dates, not integers": lambda: encoder.transform({"a": [DAY], "b": ["x"]}),
    }.items():
        with pytest.raises(DomainError, match=problem):
            act()


@pytest.mark.parametrize(
    ("problem", "options"),
    {
        "max_bins": {"max_bins": 0},
        "max_categories": {"max_categories": 1.5},
        "bins is one of": {"bins": "equal"},
        "must be a sequence": {"bins": 7},
        "two or more, and increase": {"bins": [1, 0]},
        "must be finite": {"bins": [0, np.inf]},
        "bins names the column 'b'; the table has 'a'": {"bins": {"b": "width"}},
        "cannot be both": {"categorical": ["a"], "numeric": ["a"]},
        "categorical is a list": {"categorical": "a"},
        "thresholds names": {"thresholds": {"A": [1]}},
        "an edge or threshold for column 'a'": {"thresholds": {"a": ["x"]}},
        "unseen is": {"unseen": "ignore"},
    }.items(),
)
def test_options_that_make_no_sense(problem, options):
    with pytest.raises(ValueError, match=problem):
        Encoder(**options).fit({"a": [1.0, 2.0]})


def test_as_an_estimator():
    encoder = Encoder(max_bins=7, thresholds={"real": [0.1]})
    assert clone(encoder).get_params() == encoder.get_params()
    with pytest.raises(NotFittedError):
        encoder.transform(TABLE)
    with pytest.raises(NotFittedError):
        encoder.where(text="a")
    codes = encoder.fit_transform(pd.DataFrame(TABLE))
    assert encoder.get_feature_names_out().tolist() == list(TABLE)
    assert encoder.n_features_in_ == 8
    assert repr(encoder) == "Encoder(max_bins=7, thresholds={'real': [0.1]})"
    again = pickle.loads(pickle.dumps(encoder))
    assert np.array_equal(again.transform(TABLE), codes)
    frame = encoder.set_output(transform="pandas").transform(pd.DataFrame(TABLE))
    assert list(frame) == list(TABLE)
    assert encoder.summary().count("\n") == 8


@parametrize_with_checks([Encoder(), BooleanEncoder()])
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite fits things that numerical code warns about
        check(estimator)


def test_a_library_that_is_gone():
    encoder = Encoder().fit({"a": [1]})
    encoder.source_ = "polars"
    polars = saved(encoder)
    assert isinstance(polars.inverse_transform([[0]]), pl.DataFrame)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "polars", None)
        with pytest.raises(DomainError, match="install polars"):
            polars.inverse_transform([[0]])
        assert polars.transform({"a": [1]}).tolist() == [[0]]


# -- properties -------------------------------------------------------------------------------

cells = {
    "text": st.sampled_from(["", "a", "b", "other", "Ä", "nan", "None"]),
    "whole": st.integers(-(2**53), 2**53),
    "few": st.integers(0, 5),
    "real": st.floats(allow_nan=False),
    "flag": st.booleans(),
    "day": st.dates(dt.date(1700, 1, 1), dt.date(2200, 1, 1)),
    "time": st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)),
    "span": st.timedeltas(dt.timedelta(-9999), dt.timedelta(9999)),
}
rows = st.lists(
    st.fixed_dictionaries({name: st.none() | cell for name, cell in cells.items()}),
    min_size=1,
    max_size=60,
)
options = st.fixed_dictionaries(
    {
        "max_bins": st.integers(1, 12),
        "bins": st.sampled_from(["quantile", "width", "adaptive"]),
        "max_categories": st.integers(2, 8),
        "thresholds": st.fixed_dictionaries({"real": st.lists(st.floats(-9, 9), max_size=3)}),
    }
)
POLARS = {
    "text": pl.String,
    "whole": pl.Int64,
    "few": pl.Int8,
    "real": pl.Float64,
    "flag": pl.Boolean,
    "day": pl.Date,
    "time": pl.Datetime("us"),
    "span": pl.Duration("us"),
}


@CASTS_OF_PANDAS
@settings(max_examples=60)
@given(rows, options)
def test_any_table(records, params):
    table = {name: [record[name] for record in records] for name in cells}
    polars = pl.DataFrame(table, schema=POLARS)
    encoder = Encoder(**params).fit(table)
    codes = encoder.transform(table)
    for frame in (polars, pd.DataFrame(table), pd.DataFrame(table).convert_dtypes()):
        other = Encoder(**params).fit(frame)
        assert np.array_equal(other.cardinalities_, encoder.cardinalities_)
        assert np.array_equal(other.transform(frame), codes)
    again = saved(encoder)
    assert np.array_equal(again.transform(polars), codes)
    assert ENCODER_FILE.to_bytes(again) == ENCODER_FILE.to_bytes(encoder)
    known = np.array([[record[name] is not None for name in cells] for record in records])
    finite = [column.kind != "unknown" for column in encoder.columns_]
    assert np.array_equal(codes >= 0, known & np.array(finite))
    back = encoder.inverse_transform(codes, random_state=0)
    for variable, (name, column) in enumerate(zip(cells, encoder.columns_, strict=True)):
        code = codes[codes[:, variable] >= 0, variable]
        assert np.array_equal(np.bincount(code, minlength=column.cardinality), column.counts)
        if column.kind in ("category", "boolean") and not column.other:
            assert back[name].tolist() == table[name]
        if len(column.means):
            numbers = [column.to_number(cell) for cell in table[name] if cell is not None]
            edges = np.r_[-np.inf, column.edges, np.inf]
            assert np.all(
                (edges[code] <= numbers) & ((numbers < edges[code + 1]) | np.isinf(numbers))
            )
            assert np.all((column.lows <= column.means) & (column.means <= column.highs))
        assert len(column.labels) == column.cardinality


@settings(max_examples=60)
@given(
    st.lists(st.floats(-1e6, 1e6) | st.integers(-50, 50), min_size=1, max_size=50),
    st.lists(st.floats(-1e6, 1e6) | st.integers(-50, 50), max_size=5),
    st.integers(1, 10),
)
@example(numbers=[0.0, 1.0, 1.0, 2.0, 1.1125369292536007e-308, -1.0], cuts=[2.0], bins=4)
@example(numbers=[0.0, 1.0, 1.0, 2.0, 1.1125369292536007e-308, -1.0], cuts=[1e12], bins=4)
def test_shares_of_a_partition_add_up(numbers, cuts, bins):
    column = Encoder(max_bins=bins).fit({"x": [float(x) for x in numbers]}).columns_[0]
    ends = [None, *sorted(set(cuts)), None]
    parts = [column.between(low, high, closed="left") for low, high in pairwise(ends)]
    assert np.all([(part >= 0) & (part <= 1) for part in parts])
    assert np.sum(parts, axis=0) == pytest.approx(np.ones(column.cardinality), abs=1e-9)


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=300),
    st.integers(1, 12),
)
def test_quantile_bins_are_never_empty_and_never_too_many(numbers, most):
    column = Encoder(max_bins=most).fit({"x": numbers}).columns_[0]
    assert column.cardinality == min(most, len(set(numbers)))
    assert np.all(column.counts > 0)


@pytest.mark.parametrize("draw", ["exponential", "uniform", "poisson", "ends"])
def test_shares_of_a_bin_follow_its_numbers(draw):
    rng = np.random.default_rng(0)
    numbers = {
        "exponential": lambda: rng.exponential(1.0, 5_000),
        "uniform": lambda: rng.uniform(3.0, 9.0, 5_000),
        "poisson": lambda: rng.poisson(40.0, 5_000),
        "ends": lambda: rng.choice([1.5, 8.25], 5_000),
    }[draw]()
    column = Encoder(bins=[-1e3, 1e3]).fit({"x": numbers}).columns_[0]
    for level in (0.05, 0.3, 0.5, 0.8, 0.99):
        cut = float(np.quantile(numbers, level)) + 1e-9
        assert column.below(cut)[0] == pytest.approx(np.mean(numbers <= cut), abs=0.06)
    drawn = column.decode(np.zeros(20_000, np.int32), np.random.default_rng(1))
    assert np.mean(drawn) == pytest.approx(np.mean(numbers), rel=0.02)
    assert np.std(drawn) == pytest.approx(np.std(numbers), rel=0.02)
    for cut in np.quantile(numbers, [0.1, 0.5, 0.9]) + 1e-9:
        assert np.mean(drawn <= cut) == pytest.approx(column.below(float(cut))[0], abs=0.02)


def test_long_ends_are_cut_finer():
    rng = np.random.default_rng(0)
    numbers = rng.lognormal(0.0, 1.0, 8_000)
    plain, tails = (
        Encoder(bins=bins, max_bins=32).fit({"x": numbers}).columns_[0]
        for bins in ("quantile", "tails")
    )
    assert set(plain.edges) < set(tails.edges)
    assert tails.counts[-4:] == pytest.approx(np.array([125, 62, 31, 32]), abs=1)
    both = Encoder(bins="tails", max_bins=32).fit({"x": np.log(numbers)}).columns_[0]
    assert both.cardinality == 38
    for few in (rng.uniform(size=8_000), rng.normal(size=200), np.arange(5.0), np.zeros(3)):
        one, other = (
            Encoder(bins=bins, max_bins=16).fit({"x": few}).columns_[0]
            for bins in ("quantile", "tails")
        )
        np.testing.assert_array_equal(one.edges, other.edges)


@settings(max_examples=60)
@given(
    st.lists(st.floats(-1e300, 1e300) | st.integers(-9, 9), min_size=1, max_size=200),
    st.integers(1, 12),
)
def test_tails_keep_every_bin_filled(numbers, most):
    numbers = [float(x) for x in numbers] * 30
    column = Encoder(bins="tails", max_bins=most).fit({"x": numbers}).columns_[0]
    assert column.cardinality <= most + 6
    assert np.all(column.counts > 0)
    assert np.all(np.diff(column.edges) > 0)


def test_the_ends_of_a_bin_have_a_row_each():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=300)
    column = Encoder(max_bins=8).fit({"x": numbers}).columns_[0]
    for end in (numbers.min(), numbers.max()):
        at = column.between(end, end)
        assert np.count_nonzero(at) == 1
        assert at.max() == pytest.approx(1 / column.counts[np.argmax(at)])
    grid = np.sort(np.concatenate([numbers, rng.normal(size=300)]))
    shares = np.array([[column.below(x, inclusive=k) for k in (False, True)] for x in grid])
    assert np.all(np.diff(shares.reshape(len(grid) * 2, -1), axis=0) >= 0)
    total = column.counts / column.counts.sum()
    empirical = np.array([np.mean(numbers <= x) for x in grid])
    assert np.abs(shares[:, 1] @ total - empirical).max() < 0.03


@pytest.mark.parametrize("chunks", [[["b", "a", None], ["a", "é"]], [[None, None]], []])
@pytest.mark.parametrize("kind", ["string", "large_string"])
def test_texts_of_arrow_are_read_as_those_of_lists(chunks, kind):
    pa = pytest.importorskip("pyarrow")
    texts = pa.chunked_array(chunks, type=getattr(pa, kind)())
    found = read_table(pa.table({"x": texts})).columns[0]
    want = read_table({"x": texts.to_pylist()}).columns[0]
    assert (found.kind, found.levels, len(found)) == (want.kind, want.levels, len(want))
    if want.codes is not None:
        assert found.codes.tolist() == want.codes.tolist()


def test_threads_change_neither_codes_nor_what_is_refused(monkeypatch):
    monkeypatch.setattr(encoder, "MIN_THREADED_CELLS", 1)
    rng = np.random.default_rng(0)
    table = {f"c{k}": rng.choice(list("abc"), 2000) for k in range(6)}
    table |= {f"n{k}": rng.normal(size=2000) for k in range(6)}
    fitted = Encoder(unseen="error").fit(table)
    codes = {}
    for threads in (1, 3):
        with config_context(threads=threads):
            codes[threads] = fitted.transform(table)
            wrong = table | {
                f"c{k}": np.where(rng.random(2000) < 0.1, "new", "a") for k in range(6)
            }
            with pytest.raises(DomainError, match="'c0'"):
                fitted.transform(wrong)
    np.testing.assert_array_equal(codes[1], codes[3])
