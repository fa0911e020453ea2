"""Spark, Ray, DuckDB, Polars, Arrow data sets: `predict_batches` gives the library's answers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import expecta
from served import people

pytestmark = pytest.mark.integration

NEEDS = {"spark": "pyspark", "ray": "ray", "duckdb": "duckdb", "polars": "polars", "pyarrow": None}


@pytest.mark.parametrize("engine", list(NEEDS))
def test_an_engine_adds_the_predictions_of_the_library(models, cost_file, tmp_path, engine):
    library = NEEDS[engine]
    if library is not None and find_spec(library) is None:
        pytest.skip(f"{library} is not installed: pip install {library}")
    if engine == "spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java: apt-get install default-jre-headless")
    table = people(300, 5)[0].drop(columns="since")
    hidden = np.random.default_rng(5).random(table.shape) < 0.4
    table = pa.Table.from_pandas(table.mask(hidden), preserve_index=False)
    table = table.append_column("id", pa.array(range(300)))
    table = table.append_column("since", pa.nulls(300, pa.timestamp("us")))
    source, target = tmp_path / "rows.parquet", tmp_path / "predicted.parquet"
    parquet.write_table(table, source)

    script = Path(__file__).with_name("engines.py")
    words = [sys.executable, script, engine, cost_file, source, target]
    paths = [str(Path(expecta.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [str(word) for word in words],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = parquet.read_table(target).sort_by("id")
    assert found["id"].to_pylist() == list(range(300))
    assert np.array_equal(found["cost_predicted"], models["cost"].predict(table))
