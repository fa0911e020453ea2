"""Dask frames: the library's answers, lazily, with the metadata that they have when computed."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

dask = pytest.importorskip("dask", reason="Dask is not installed: pip install 'expecta[dask]'")
dd = pytest.importorskip("dask.dataframe")

from expecta import BatchError, DomainError, MissingColumnsWarning, config_context  # noqa: E402
from expecta.batches import model_cache  # noqa: E402
from expecta.dask import (  # noqa: E402
    ask,
    predict,
    predict_interval,
    predict_proba,
    score_samples,
    shared_model,
)
from expecta.dask.shared_model import SharedModel  # noqa: E402
from served import people  # noqa: E402

pytestmark = pytest.mark.integration


def incomplete(n=30, seed=1):
    table = people(n, seed)[0].astype({"region": "category"})
    hidden = np.random.default_rng(seed).random(table.shape) < 0.4
    table = table.astype({"age": "float64", "vip": "boolean"}).mask(hidden)
    return table.set_index(np.arange(100, 100 + n))


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize("partitions", [1, 4])
def test_predictions_are_the_library_s(models, partitions):
    table = incomplete()
    frame = dd.from_pandas(table, npartitions=partitions)
    lazy = predict(models["cost"], frame, std=True, error=True)
    assert lazy.divisions == frame.divisions
    found = lazy.compute()
    pd.testing.assert_series_equal(lazy.dtypes, found.dtypes)
    pd.testing.assert_index_equal(found.index, table.index)
    mean, std = models["cost"].predict(table, return_std=True)
    assert np.array_equal(found["cost_predicted"], mean)
    assert np.array_equal(found["cost_std"], std)
    joined = frame.join(lazy).compute()
    assert np.array_equal(joined["cost_predicted"], mean)


def test_intervals(models):
    table = incomplete(5)
    found = predict_interval(models["cost"], dd.from_pandas(table, npartitions=2), 0.8)
    assert list(found.columns) == ["cost_low", "cost_high"]
    assert np.array_equal(found.compute(), models["cost"].predict_interval(table, 0.8))


def test_classes(models):
    table = incomplete().drop(columns="region")
    frame = dd.from_pandas(table, npartitions=3)
    lazy = predict(models["region"], frame)
    found = lazy.compute()
    pd.testing.assert_series_equal(lazy.dtypes, found.dtypes)
    assert found["region_predicted"].tolist() == models["region"].predict(table).tolist()
    shares = predict_proba(models["region"], frame)
    assert list(shares.columns) == [f"region_probability_{c}" for c in models["region"].classes_]
    assert np.array_equal(shares.compute(), models["region"].predict_proba(table))


@pytest.mark.parametrize("name", ["cost", "people"])
def test_scores(models, name):
    table = incomplete()
    lazy = score_samples(models[name], dd.from_pandas(table, npartitions=3))
    assert (lazy.name, lazy.dtype) == ("log_prob", np.float64)
    assert np.array_equal(lazy.compute(), models[name].score_samples(table))


def test_wrapped_models(models):
    table = incomplete()[["age", "vip"]].astype(float)
    found = predict(models["linear"], dd.from_pandas(table, npartitions=3)).compute()
    assert np.allclose(found.iloc[:, 0], models["linear"].predict(table), rtol=1e-12)


def test_group_averages(models):
    table = incomplete(60)
    inside = (table["smoker"] == "yes").to_numpy() & (table["age"] >= 30).fillna(False).to_numpy()
    means = models["cost"].predict(table)[inside]
    for partitions in (1, 7):
        frame = dd.from_pandas(table, npartitions=partitions)
        group = ask(models["cost"], frame, "smoker == 'yes'", age=(30, None)).compute()
        assert (group.rows, group.of_rows, group.impossible) == (inside.sum(), 60, 0)
        assert group.mean == pytest.approx(means.mean(), rel=1e-12)
        assert group.std == pytest.approx(means.std(ddof=1), rel=1e-12)
        assert "smoker == 'yes'" in str(group)
    everyone = ask(models["smoker"], dd.from_pandas(table, npartitions=2), of="yes").compute()
    shares = models["smoker"].predict_proba(table)[:, 1]
    assert everyone.mean == pytest.approx(shares.mean(), rel=1e-12)
    none = ask(models["cost"], dd.from_pandas(table, npartitions=2), "age > 59.5").compute()
    assert (none.rows, np.isnan(none.mean)) == (0, True)


def test_nothing_is_computed_before_it_is_asked_for(models):
    def fail(part):
        if len(part):
            raise AssertionError("computed")
        return part

    frame = dd.from_pandas(incomplete(), npartitions=2)
    lazy = frame.map_partitions(fail, meta=frame._meta)
    predict(models["cost"], lazy)
    score_samples(models["cost"], lazy)
    ask(models["cost"], lazy, "smoker == 'yes'")


# -- the model on its way -----------------------------------------------------------------


def test_a_model_is_one_node_and_is_loaded_once(models, monkeypatch):
    loads = []
    monkeypatch.setattr(model_cache, "_models", type(model_cache._models)())
    monkeypatch.setattr(shared_model, "loads", lambda data: loads.append(1) or pickle.loads(data))
    lazy = predict(models["cost"], dd.from_pandas(incomplete(), npartitions=5))
    graph = lazy.optimize().__dask_graph__()
    assert sum("expecta-model" in str(key) for key in graph) == 1
    lazy.compute()
    assert len(loads) == 1


@pytest.mark.parametrize("name", ["cost", "linear"])
def test_a_model_travels_without_training_rows(models, name):
    shared = SharedModel.of(models[name])
    assert shared.key == SharedModel.of(models[name]).key
    assert len(shared.data) < len(pickle.dumps(models[name]))
    assert shared.load().training_rows_ is None
    assert models[name].training_rows_ is not None


def test_a_model_from_a_file(models, tmp_path):
    models["cost"].save(tmp_path / "m.expecta")
    table = incomplete(5)
    found = predict(tmp_path / "m.expecta", dd.from_pandas(table, npartitions=2)).compute()
    assert np.allclose(found["cost_predicted"], models["cost"].predict(table), rtol=1e-12)
    assert len(pickle.dumps(SharedModel.of(tmp_path / "m.expecta"))) < 500


# -- partitions at fault ------------------------------------------------------------------


def frame_of(*parts):
    meta = parts[0].iloc[:0]
    return dd.from_delayed([dask.delayed(part) for part in parts], meta=meta, verify_meta=False)


def test_a_partition_without_a_column(models):
    good = incomplete(4)
    lazy = predict(models["cost"], frame_of(good, good, good.drop(columns="age")))
    with pytest.raises(BatchError, match="batch 2: it has no column 'age', which the frame has"):
        lazy.compute()


def test_a_frame_without_a_column(models):
    table = incomplete(6).drop(columns="age")
    with pytest.warns(MissingColumnsWarning, match="no column 'age'") as caught:
        found = predict(models["cost"], dd.from_pandas(table, npartitions=3)).compute()
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.array_equal(found["cost_predicted"], models["cost"].predict(table))
    with config_context(columns="strict"), pytest.raises(DomainError, match="'age'"):
        predict(models["cost"], dd.from_pandas(table, npartitions=3))
    with pytest.raises(DomainError, match="did you mean 'age'"):
        predict(models["cost"], dd.from_pandas(table.assign(Ages=1), npartitions=1))


def test_a_partition_of_another_type_is_read_by_its_values(models):
    good = incomplete(4).assign(age=[30.0, 40.0, 50.0, np.nan])
    texts = good.assign(age=["30", "40", "50", None])
    found = predict(models["cost"], frame_of(good, texts)).compute()["cost_predicted"].to_numpy()
    assert np.array_equal(found[:4], found[4:])
    bad = good.assign(age=["30", "40", "many", None])
    with pytest.raises(BatchError, match="batch 1, row 2: column 'age'"):
        predict(models["cost"], frame_of(good, bad)).compute()


def test_an_unseen_category_and_an_empty_partition(models):
    good = incomplete(4)
    odd = good.assign(smoker="perhaps")
    found = predict(models["cost"], frame_of(good, good.iloc[:0], odd)).compute()
    want = models["cost"].predict(pd.concat([good, good.assign(smoker=None)]))
    assert np.array_equal(found["cost_predicted"], want)
    empty = frame_of(good.iloc[:0], good.iloc[:0])
    assert len(predict(models["cost"], empty).compute()) == 0
    assert len(score_samples(models["cost"], empty).compute()) == 0
    assert ask(models["cost"], empty).compute().rows == 0


def test_predictions_beside_a_frame_whose_index_is_not_unique(models):
    table = incomplete().reset_index(drop=True)
    frame = frame_of(table, table)
    predicted = predict(models["cost"], frame)
    both = frame.assign(cost_predicted=predicted["cost_predicted"]).compute()
    mean = models["cost"].predict(table)
    assert np.array_equal(both["cost_predicted"], np.concatenate([mean, mean]))
