"""Learning from Dask frames: the model of `fit_batches`, whatever the partitions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

dask = pytest.importorskip("dask", reason="Dask is not installed: pip install 'expecta[dask]'")
dd = pytest.importorskip("dask.dataframe")

from expecta import (  # noqa: E402
    BatchError,
    ChowLiu,
    CircuitRegressor,
    DomainError,
    Encoder,
    LatentTree,
)
from expecta.dask import fit, frame_learning  # noqa: E402
from expecta.densities import row_chunks  # noqa: E402
from expecta.estimators.training import Seeds  # noqa: E402

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setattr(row_chunks, "SAMPLE_ROWS", 200)
    with dask.config.set(scheduler="synchronous"):
        yield


def table(n=600):
    rng = np.random.default_rng(0)
    z = rng.integers(0, 3, n)
    frame = pd.DataFrame({"a": rng.normal(z, 0.4), "b": z.astype(str), "c": rng.normal(-z, 1.0)})
    return frame.mask(rng.random(frame.shape) < 0.1)


@pytest.mark.parametrize("density", [ChowLiu(), LatentTree(states=3, restarts=1)])
@pytest.mark.parametrize("partitions", [1, 7])
def test_the_model_is_that_of_batches(density, partitions):
    frame = table()
    want = clone(density).fit_batches([frame])
    found = fit(clone(density), dd.from_pandas(frame, npartitions=partitions))
    assert found.learned_.rows == want.learned_.rows
    assert np.array_equal(found.encoder_.codes(frame), want.encoder_.codes(frame))
    assert np.allclose(found._theta, want._theta, rtol=0, atol=1e-9)


@pytest.mark.parametrize("partitions", [1, 7])
def test_a_circuit_learns_from_a_sample_over_the_density_of_all_rows(monkeypatch, partitions):
    monkeypatch.setattr(frame_learning, "MAX_ROWS", 150)
    rows = table(600)
    rows["y"] = rows["a"].fillna(0.0) + np.random.default_rng(1).normal(0, 0.1, 600)
    rows.loc[5:9, "y"] = np.nan  # rows whose target is not known teach the density
    model = CircuitRegressor(density=ChowLiu(), max_splits=2, random_state=3)
    found = fit(clone(model), dd.from_pandas(rows, npartitions=partitions), "y")
    assert found.get_params()["density"].__dict__ == model.density.__dict__  # as it was given
    assert found.subsampled_[-1] == "the circuit learned from 150 of 600 rows, drawn at random"

    density = ChowLiu().fit_batches([rows.drop(columns="y")])
    priority = row_chunks.row_priorities(0, 600, Seeds.of(3).folds).astype(float)
    priority[rows["y"].isna()] = np.inf
    sample = rows.iloc[np.sort(np.argsort(priority)[:150])]
    want = clone(model).set_params(density=density).fit(sample.drop(columns="y"), sample["y"])
    assert np.allclose(found.predict(rows), want.predict(rows), rtol=1e-9)
    assert found.target_name_ == "y"


def test_what_cannot_learn_from_frames():
    frame = dd.from_pandas(table(20), npartitions=2)
    with pytest.raises(DomainError, match="a density has no target"):
        fit(ChowLiu(), frame, "a")
    with pytest.raises(DomainError, match="target is a column of the frame, not 'aa'"):
        fit(CircuitRegressor(), frame, "aa")
    with pytest.raises(DomainError, match="not Encoder; give it a density that learned"):
        fit(Encoder(), frame, "a")


def frame_of(*parts):
    meta = parts[0].iloc[:0]
    return dd.from_delayed([dask.delayed(part) for part in parts], meta=meta, verify_meta=False)


def test_partitions_at_fault():
    good = table(20)
    with pytest.raises(BatchError, match="batch 1: it has no column 'a', which the frame has"):
        fit(ChowLiu(), frame_of(good, good.drop(columns="a")))
    texts = good.assign(a=["1"] * 5 + ["many"] * 15)
    with pytest.raises(BatchError, match="batch 1, row 5: column 'a'"):
        fit(ChowLiu(encoder=Encoder(numeric=["a"])), frame_of(good, texts))
    with pytest.raises(DomainError, match="column 'a' holds categories here and numbers"):
        fit(ChowLiu(), frame_of(good, texts))
    with pytest.raises(DomainError, match="no rows"):
        fit(ChowLiu(), frame_of(good.iloc[:0]))


def test_empty_partitions_and_categories_of_one():
    good = table(20)
    odd = good.assign(b="new")
    found = fit(ChowLiu(), frame_of(good, good.iloc[:0], odd))
    assert found.encoder_.columns_[1].labels == ("0", "1", "2", "new")
