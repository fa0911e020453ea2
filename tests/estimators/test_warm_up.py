"""Compiling everything before it is needed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from expecta.estimators.warm_up import JOBS, warm_up

COUNT = """
import sys, warnings
warnings.simplefilter("ignore")
from numba.core import event
from expecta import CircuitRegressor, datasets
table = datasets.load_insurance()
with event.install_recorder("numba:compile") as recorder:
    model = CircuitRegressor(random_state=0).fit(table.drop(columns="charges"), table.charges)
    row = {"age": [30], "smoker": ["yes"]}
    model.predict(row, return_std=True)
    model.predict_interval(row)
    model.compare("smoker == 'yes'", "smoker == 'no'")
names = {entry.data["dispatcher"].py_func.__qualname__ for _, entry in recorder.buffer}
print(*names)
"""


@pytest.mark.parametrize("job", JOBS)
def test_every_job_runs(job):
    JOBS[job]()


@pytest.mark.slow
def test_nothing_is_compiled_afterwards(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert warm_up() > 0
    done = subprocess.run(
        [sys.executable, "-c", COUNT], env=os.environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
