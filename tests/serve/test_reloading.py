"""A model's file is replaced: the old one answers until the new has loaded, or for good."""

from __future__ import annotations

import os

import pytest

from expecta import DomainError, FormatError
from expecta.serve import ServeOptions, app
from served import people, serving

PREDICT = "/models/cost/predict"


@pytest.fixture
def place(models, tmp_path):
    path = tmp_path / "cost.expecta"
    models["cost"].save(path)
    return path


def reloaded(client):
    client.run(client.service.state.registry.reload("cost"))
    return client.answer(PREDICT, {"rows": {"age": 40}})


def test_a_new_file_takes_over(models, place):
    from expecta import ChowLiu, CircuitRegressor

    with serving({"cost": place}, ServeOptions(reload_seconds=0)) as client:
        before = reloaded(client)
        assert reloaded(client)["version"] == before["version"]
        X, cost = people(80, seed=3)
        other = CircuitRegressor(density=ChowLiu(), max_splits=1).fit(X, 2 * cost)
        other.save(place)
        after = reloaded(client)
        assert after["version"] != before["version"]
        assert after["predictions"][0]["prediction"] == other.predict({"age": 40})[0]


@pytest.mark.parametrize("damage", ["cut", "other", "gone", "folder"])
def test_a_damaged_file_keeps_the_old_model_and_says_so(models, place, damage):
    with serving({"cost": place}, ServeOptions(reload_seconds=0)) as client:
        before = reloaded(client)
        good = place.read_bytes()
        if damage == "cut":
            place.write_bytes(good[: len(good) // 2])
        elif damage == "other":
            place.write_text("no model at all")
        else:
            place.unlink()
            if damage == "folder":
                place.mkdir()
        for _ in range(2):
            assert reloaded(client) == before
        ready = client.get("/health/ready")
        assert ready.status_code == 200
        assert ready.json()["models"]["cost"]["problem"]
        assert client.get("/models/cost").json()["problem"]
        text = client.get("/metrics").text
        assert 'expecta_reloads_total{model="cost",outcome="failed"} 1.0' in text
        if damage == "folder":
            place.rmdir()
        other = place.with_suffix(".new")
        other.write_bytes(good)
        os.replace(other, place)
        assert reloaded(client) == before
        assert client.get("/health/ready").json()["models"]["cost"]["problem"] is None


def test_files_are_watched(models, place):
    import asyncio

    with serving({"cost": place}, ServeOptions(reload_seconds=0.05)) as client:
        before = client.answer(PREDICT, {"rows": {}})["version"]
        models["cost"].save(place, rows=True)
        for _ in range(400):
            client.run(asyncio.sleep(0.02))
            if client.answer(PREDICT, {"rows": {}})["version"] != before:
                break
        else:
            raise AssertionError("the new file was not read")


def test_training_rows_stay_where_they_are(models, place):
    """Averages of two or three rows would tell of single ones; with `rows` they are asked for."""
    models["cost"].save(place, rows=True)
    model = models["cost"]
    few = {"age": 40, "smoker": "yes", "region": "east"}
    exact = model.ask(few)
    with serving({"cost": place}) as client:
        served = client.service.state.registry.entries["cost"].served
        assert served.model.training_rows_ is None
        assert client.answer("/models/cost/ask", {"query": few})["rows"] is None
    with serving({"cost": place}, ServeOptions(rows=True)) as client:
        assert client.answer("/models/cost/ask", {"query": few})["rows"] == exact.rows


def test_what_cannot_be_served(tmp_path):
    path = tmp_path / "x.expecta"
    path.write_text("no model")
    with pytest.raises(FormatError):
        app({"x": path})
    with pytest.raises(DomainError, match="no model to serve"):
        app({})
    with pytest.raises(DomainError, match="estimators and densities, not int"):
        app({"x": 3})


def test_a_process_that_starts_beside_a_damaged_file_takes_the_last_readable_one(place, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    options = ServeOptions(reload_seconds=0, kept_folder=str(kept))
    with serving({"cost": place}, options) as client:
        before = client.answer(PREDICT, {"rows": {"age": 40}})
    good = place.read_bytes()
    for damage in (good[:-100], b"no model at all", None):
        if damage is None:
            place.unlink()
        else:
            place.write_bytes(damage)
        with serving({"cost": place}, options) as client:
            assert client.answer(PREDICT, {"rows": {"age": 40}}) == before
            assert client.get("/health/ready").json()["models"]["cost"]["problem"]
            assert reloaded(client) == before
    other = place.with_suffix(".new")
    other.write_bytes(good)
    with serving({"cost": place}, options) as client:
        os.replace(other, place)
        assert reloaded(client) == before
        assert client.get("/health/ready").json()["models"]["cost"]["problem"] is None
    for copy in kept.iterdir():
        copy.unlink()
    place.write_bytes(good[:-100])
    with pytest.raises(FormatError):
        app({"cost": place}, options)
