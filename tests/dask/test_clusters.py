"""Clusters of real processes: the library's answers, with a worker killed half-way too."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

pytest.importorskip("dask", reason="Dask is not installed: pip install 'expecta[dask]'")
distributed = pytest.importorskip("distributed")

import dask.dataframe as dd  # noqa: E402

from expecta import LatentTree  # noqa: E402
from expecta.dask import ask, fit, predict, score_samples  # noqa: E402
from expecta.densities import row_chunks  # noqa: E402
from served import people  # noqa: E402

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore"),  # of sockets that Dask leaves to their end
]


@pytest.fixture(autouse=True)
def environment():
    """Undo what Dask sets for the processes that it starts."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@contextmanager
def cluster(workers, threads):
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=threads, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@contextmanager
def killing_one(client, done, after):
    """Kill a worker with -9 once so many files are in a folder."""
    victim = next(iter(client.run(os.getpid).values()))

    def kill():
        while len(os.listdir(done)) < after:
            time.sleep(0.01)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    yield
    killer.join(60)
    client.wait_for_workers(1, timeout=60)  # a worker that is lost is started again
    assert victim not in client.run(os.getpid).values()


def slowly(part, done):
    """Pass a partition on, and leave a file that says so."""
    time.sleep(0.1)
    if len(part):
        (done / f"{part.index[0]}-{os.getpid()}-{time.monotonic_ns()}").touch()
    return part


def incomplete(n, seed=1):
    table = people(n, seed)[0].astype({"age": "float64", "vip": "boolean"})
    return table.mask(np.random.default_rng(seed).random(table.shape) < 0.4)


@pytest.mark.parametrize(("workers", "threads"), [(2, 1), (1, 2)])
def test_answers_are_the_library_s(models, workers, threads):
    table = incomplete(200)
    frame = dd.from_pandas(table, npartitions=8)
    with cluster(workers, threads):
        found = predict(models["cost"], frame, std=True).compute()
        scores = score_samples(models["people"], frame).compute()
        group = ask(models["cost"], frame, "smoker == 'yes'").compute()
    mean, std = models["cost"].predict(table, return_std=True)
    assert np.array_equal(found["cost_predicted"], mean)
    assert np.array_equal(found["cost_std"], std)
    assert np.array_equal(scores, models["people"].score_samples(table))
    inside = (table["smoker"] == "yes").to_numpy()
    assert group.mean == pytest.approx(mean[inside].mean(), rel=1e-12)


@pytest.mark.parametrize(("workers", "threads"), [(2, 1), (1, 2)])
def test_a_worker_killed_half_way_through_scoring(models, tmp_path, workers, threads):
    table = incomplete(400)
    frame = dd.from_pandas(table, npartitions=24)
    with cluster(workers, threads) as client:
        slow = frame.map_partitions(slowly, tmp_path, meta=frame._meta)
        with killing_one(client, tmp_path, after=12):
            found = predict(models["cost"], slow).compute()
    assert found.index.equals(table.index)  # every row, and none twice
    assert np.array_equal(found["cost_predicted"], models["cost"].predict(table))


def learnable(n=900):
    rng = np.random.default_rng(3)
    z = rng.integers(0, 3, n)
    table = pd.DataFrame({"a": rng.normal(z, 0.4), "b": z.astype(str), "c": rng.normal(-z, 1.0)})
    return table.mask(rng.random(table.shape) < 0.1)


@pytest.fixture
def small_samples(monkeypatch):
    monkeypatch.setattr(row_chunks, "SAMPLE_ROWS", 300)


@pytest.mark.parametrize(("workers", "threads"), [(2, 1), (1, 2)])
def test_a_worker_killed_half_way_through_learning(tmp_path, small_samples, workers, threads):
    table, density = learnable(), LatentTree(states=3, restarts=1)
    want = clone(density).fit_batches([table])
    assert "over all rows" in want.learned_.how
    frame = dd.from_pandas(table, npartitions=24)
    with cluster(workers, threads) as client:
        slow = frame.map_partitions(slowly, tmp_path, meta=frame._meta)
        with killing_one(client, tmp_path, after=36):  # 24 of the sketch, and half of the codes
            found = fit(clone(density), slow)
    assert found.learned_.rows == want.learned_.rows
    assert np.allclose(found._theta, want._theta, rtol=0, atol=1e-9)
    assert np.allclose(found.score_samples(table), want.score_samples(table), rtol=1e-9)
