"""Data sets: the shipped table, the paper's splits, and the folder and OpenML as sources."""

from __future__ import annotations

import csv
from importlib.resources import files
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pandas as pd
import polars as pl
import pytest

from expecta.datasets import (
    DENSITY_NAMES,
    PAPER_NAMES,
    load_density,
    load_insurance,
    load_paper,
    openml,
    paper_split,
)
from expecta.tables import BooleanEncoder

TABLES = [name for name in PAPER_NAMES if "mnist" not in name]


@pytest.fixture
def nowhere(monkeypatch):
    monkeypatch.delenv("EXPECTA_DATA", raising=False)


@pytest.fixture
def here(monkeypatch, data):
    monkeypatch.setenv("EXPECTA_DATA", str(data))
    return data


def test_insurance_comes_with_the_package(nowhere):
    frame = load_insurance()
    assert isinstance(frame, pd.DataFrame)
    assert frame.shape == (1338, 7)
    assert list(frame) == ["age", "sex", "bmi", "children", "smoker", "region", "charges"]
    assert frame["age"].dtype == np.int64
    assert frame["charges"].sum() == pytest.approx(17755824.990759, rel=1e-12)
    polars = load_insurance(as_frame="polars")
    assert isinstance(polars, pl.DataFrame)
    columns = load_insurance(as_frame="dict")
    for name, values in columns.items():
        assert frame[name].tolist() == polars[name].to_list() == values.tolist()
    with pytest.raises(ValueError, match="as_frame is"):
        load_insurance(as_frame="csv")


def test_insurance_is_that_of_the_paper(data):
    ours = files("expecta.datasets").joinpath("insurance.csv").read_text("utf-8")
    assert ours == (data / "tables" / "insurance.csv").read_text("utf-8")


def test_insurance_without_a_folder(nowhere):
    bits = load_paper("insurance")
    assert [len(x) for x in (bits.X_train, bits.X_valid, bits.X_test)] == [936, 187, 215]
    assert set(np.unique(bits.X_train)) == {0, 1}
    table = load_paper("insurance", encoded=False, as_frame="polars")
    assert isinstance(table.X_test, pl.DataFrame)
    assert "charges" not in table.X_test.columns
    assert table.feature_names == ("age", "sex", "bmi", "children", "smoker", "region")
    assert table.y_test.tolist() == bits.y_test.tolist()


@pytest.mark.parametrize("name", TABLES)
def test_the_rule_gives_the_authors_bits(here, name):
    stored = np.load(here / "splits" / f"{name}.npz")
    found = load_paper(name)
    for part in ("train", "valid", "test"):
        assert np.array_equal(getattr(found, f"X_{part}"), stored[f"x_{part}"])
        assert getattr(found, f"y_{part}") == pytest.approx(stored[f"y_{part}"], rel=1e-14)
        assert np.array_equal(getattr(found.rows, part), stored[f"row_{part}"])
    assert np.array_equal(found.groups, stored["feature_map"])
    with open(here / "tables" / f"{name}.features.csv") as file:
        assert list(found.feature_names) == [row["label"] for row in csv.DictReader(file)]


@pytest.mark.parametrize("name", ["mnist", "fmnist"])
def test_images_from_the_folder(here, name):
    found = load_paper(name)
    assert found.X_train.shape == (48000, 784)
    assert found.X_valid.shape == (12000, 784)
    assert found.y_test.shape == (10000,)
    assert len(found.feature_names) == 784


@pytest.mark.parametrize("name", DENSITY_NAMES)
def test_density_sets(here, name):
    found = load_density(name)
    widths = {x.shape[1] for x in (found.X_train, found.X_valid, found.X_test)}
    assert len(widths) == 1
    assert np.max(found.X_test) <= 1


def test_split_is_a_partition():
    for rows in (1, 2, 10, 1338):
        parts = paper_split(rows)
        assert sorted(np.concatenate(parts).tolist()) == list(range(rows))


def test_names_are_checked(nowhere):
    with pytest.raises(ValueError, match="there are insurance, abalone"):
        load_paper("iris")
    with pytest.raises(ValueError, match="there are nltcs"):
        load_density("iris")
    with pytest.raises(FileNotFoundError, match="set the environment variable EXPECTA_DATA"):
        load_density("nltcs")


def test_a_folder_that_lacks_the_file(monkeypatch, tmp_path):
    monkeypatch.setenv("EXPECTA_DATA", str(tmp_path))
    for load, name in ((load_paper, "abalone"), (load_paper, "mnist"), (load_density, "ad")):
        with pytest.raises(FileNotFoundError, match="that EXPECTA_DATA names"):
            load(name)


def test_offline(nowhere, monkeypatch):
    def refuse(**query):
        raise URLError("no route")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", refuse)
    for name in PAPER_NAMES[1:]:
        with pytest.raises(OSError, match=f"{name}.*no route.*set the environment variable"):
            load_paper(name)


def _abalone(rows=4177):
    rng = np.random.default_rng(0)
    names = openml._SOURCES["abalone"].names[:-1]
    return SimpleNamespace(
        data=np.column_stack([rng.integers(0, 3, rows), rng.random((rows, 7))]),
        feature_names=[name.replace(" ", "_") for name in names],
        categories={"Sex": ["M", "F", "I"]},
        target=rng.integers(1, 30, rows).astype(str),
    )


def test_a_table_from_openml(nowhere, monkeypatch):
    bunch = _abalone()
    asked = []
    monkeypatch.setattr(
        "sklearn.datasets.fetch_openml", lambda **query: asked.append(query) or bunch
    )
    found = load_paper("abalone", encoded=False, as_frame="dict")
    assert asked[0]["name"] == "abalone"
    assert list(found.X_train) == [
        "Sex",
        "Length",
        "Diameter",
        "Height",
        "Whole weight",
        "Shucked weight",
        "Viscera weight",
        "Shell weight",
    ]
    assert set(found.X_train["Sex"]) == {"M", "F", "I"}
    assert found.y_train.dtype == np.int64
    assert found.X_valid["Height"].tolist() == bunch.data[found.rows.valid, 3].tolist()


def test_openml_has_another_table_of_the_name(nowhere, monkeypatch):
    for change, problem in (
        ({"data": np.zeros((3, 8))}, "shape"),
        ({"feature_names": list("abcdefgh")}, "its columns are a, b"),
        ({"target": np.full(4177, "P")}, "its target is not a number"),
    ):
        bunch = SimpleNamespace(**{**vars(_abalone()), **change})
        monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda bunch=bunch, **query: bunch)
        with pytest.raises(OSError, match=problem):
            load_paper("abalone")


def test_images_from_openml(nowhere, monkeypatch, data):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (70_000, 784), dtype=np.uint8)
    bunch = SimpleNamespace(data=pixels, target=rng.integers(0, 10, 70_000).astype(str))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **query: bunch)
    found = load_paper("fmnist")
    stored = np.load(data / "splits" / "fmnist.npz")
    assert np.array_equal(found.rows.train, stored["row_train"])
    assert np.array_equal(found.rows.valid, stored["row_valid"])
    tested = pixels[60_000:, 5]
    assert np.array_equal(found.X_test[:, 5], tested > tested.mean() + 0.05 * tested.std())
    bunch.data = pixels[:10]
    with pytest.raises(OSError, match="not the paper's"):
        load_paper("fmnist")


def test_boolean_encoder_edges():
    table = {"a": [1.0, None, 3.0, np.inf], "b": [True, None, True, True], "c": [None] * 4}
    encoder = BooleanEncoder(n_bins=2).fit(table)
    assert encoder.get_feature_names_out().tolist() == ["b = True", "1 <= a < 2", "a >= 3"]
    assert encoder.groups_.tolist() == [0, 1, 1]
    assert encoder.cardinalities_.tolist() == [2, 2, 2]
    assert encoder.transform(table).tolist() == [[1, 1, 0], [-1, -1, -1], [1, 0, 1], [1, 0, 1]]
    below = {"c": [None], "b": [False], "a": [0]}
    assert encoder.transform(below).tolist() == [[0, 0, 0]]
    assert encoder.transform({**below, "a": [2.5]}).tolist() == [[0, 0, 0]]


def test_boolean_encoder_frames_and_mistakes():
    table = load_insurance(as_frame="dict")
    frames = [load_insurance(as_frame=kind) for kind in ("pandas", "polars", "dict")]
    bits = [BooleanEncoder().fit(frame).transform(frame) for frame in frames]
    assert np.array_equal(bits[0], bits[1])
    assert np.array_equal(bits[0], bits[2])
    array = np.column_stack([table["age"], table["bmi"]])
    encoder = BooleanEncoder().fit(array)
    assert np.all(encoder.transform(array).sum(axis=1) == 2)
    for problem, act in {
        "X has 1 features": lambda: encoder.transform(array[:, :1]),
        "none of the model's columns; they are 'x0', 'x1'": lambda: encoder.transform({"a": [1]}),
        "there is no column 'sax'": lambda: BooleanEncoder(discrete=["sax"]).fit(table),
        "n_bins": lambda: BooleanEncoder(n_bins=0).fit(table),
        "0 feature": lambda: BooleanEncoder().fit({}),
    }.items():
        with pytest.raises(ValueError, match=problem):
            act()
