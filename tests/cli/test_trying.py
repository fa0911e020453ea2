"""The demonstration and the measurements, with a smaller model."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from pyarrow import csv

from commands import good, parsed
from expecta import CircuitRegressor
from expecta.cli import demo, learning

KEPT: dict = {}


@pytest.fixture
def small(monkeypatch):
    def learn(task, density, max_bins, seed):
        if not KEPT:
            KEPT["model"] = learning.learn(task, "chow-liu", 8, seed)
        return KEPT["model"]

    monkeypatch.setattr(demo, "learn", learn)


@pytest.mark.usefixtures("small")
def test_demo(tmp_path):
    pytest.importorskip("matplotlib")
    found = parsed("demo", tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder"
    assert sorted(one.name for one in folder.iterdir()) == found["files"]
    assert {"charges.expecta", "report.html", "smokers-by-region.svg"} <= set(found["files"])
    model = CircuitRegressor.load(folder / "charges.expecta")
    smokers, _, among, region = found["questions"]
    assert smokers["difference"] == pytest.approx(
        model.ask("smoker == 'yes'").mean - model.ask("smoker == 'no'").mean
    )
    assert 20_000 < smokers["difference"] < 27_000  # 22,614 in the paper, of its circuits
    assert abs(among["difference"]) < 0.2 * smokers["difference"]
    assert region["a"]["rows"] is not None
    written = csv.read_csv(folder / "predictions.csv")
    holes = csv.read_csv(
        folder / "incomplete.csv", convert_options=csv.ConvertOptions(strings_can_be_null=True)
    )
    assert model.predict(holes) == pytest.approx(written["charges_predicted"].to_numpy())


@pytest.mark.usefixtures("small")
def test_demo_says_what_to_try(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "_draw", lambda model, folder, say: None)
    said = good("demo", tmp_path)
    assert "How different are the costs of smokers and of others?" in said
    assert f"expecta ask {tmp_path}/charges.expecta" in said


def test_bench():
    found = parsed("bench", "quick")
    assert all(one["agrees"] for one in found["measured"])
    assert all(one["seconds"] > 0 for one in found["measured"])


def test_the_demo_writes_elsewhere_where_its_folder_cannot_be_made(tmp_path, monkeypatch):
    pytest.importorskip("rich")
    path = Path(__file__).parents[2] / "examples" / "demo.py"
    spec = importlib.util.spec_from_file_location("example_demo", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.chdir(tmp_path)
    assert example.output_folder() == Path("build/demo")
    monkeypatch.setattr(example, "BUILD", tmp_path / "file" / "demo")
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(example.tempfile, "tempdir", str(tmp_path))
    assert example.output_folder().parent == tmp_path
