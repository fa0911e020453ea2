"""Other machines: processes that are spawned, other encodings, folders with spaces and letters."""

from __future__ import annotations

import operator
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from commands import good, parsed
from expecta import ChowLiu, CircuitRegressor

TEXT = "größe,ort,preis\n" + "".join(
    f"{i % 7},{['Köln', 'Łódź', '東京'][i % 3]},{i % 5}\n" for i in range(60)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ein Ordner") / "größe & 東京"
    folder.mkdir()
    (folder / "die Tabelle.csv").write_text(TEXT, encoding="utf-8")
    words = "--density", "chow-liu", "-o", folder / "das Modell.expecta"
    good("fit", folder / "die Tabelle.csv", "-t", "preis", *words)
    return folder


def test_folders_and_files_may_have_any_name(folder):
    model = folder / "das Modell.expecta"
    answer = parsed("ask", model, "ort == 'Łódź' and `größe` < 5")
    assert np.isfinite(answer["mean"])
    good("predict", model, folder / "die Tabelle.csv", "-o", folder / "neu, alt.csv")
    written = (folder / "neu, alt.csv").read_text(encoding="utf-8")
    assert "東京" in written
    good("report", model, "-o", folder / "die Seite.html")


@pytest.mark.parametrize("encoding", ["ascii"])
def test_any_encoding_of_the_terminal_will_do(folder, encoding):
    command = [sys.executable, "-m", "expecta", "split", folder / "das Modell.expecta", "ort"]
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr[-500:]
    assert b"K" in done.stdout


def test_a_model_answers_in_a_process_that_was_spawned():
    table = {"a": [1.0, 2.0, 3.0, 4.0] * 20, "b": ["x", "y"] * 40}
    model = CircuitRegressor(density=ChowLiu(), max_splits=0).fit(table, np.arange(80.0) % 4)
    rows = {"a": [2.0, None], "b": [None, "x"]}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        there = pool.submit(operator.methodcaller("predict", rows), model).result(timeout=300)
    assert np.array_equal(there, model.predict(rows))
