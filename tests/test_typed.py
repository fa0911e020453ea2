"""Type-check a user's script: the types of the package are found, and a wrong one is seen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = """\
from expecta import CircuitRegressor, Evidence, Pair, Vtree
from expecta.circuits import independent, linear

vtree: Vtree = Vtree.balanced(2)
pair = Pair(independent(vtree, [[0.5, 0.5]] * 2), linear(vtree, [[0.0, 1.0]] * 2))
mean: float = float(pair.expectation([[1, -1]])[0])
known: Evidence = Evidence.unknown([2, 2]).known(0, 1)
model = CircuitRegressor(random_state=0).fit({"age": [20, 30]}, [1.0, 2.0])
low = model.predict_interval({"age": None}, coverage=0.9)[0, 0]
"""
WRONG = 'wrong: int = Vtree.balanced(2)\npair.expectation([[1, 1]], impossible="nan")\n'


def check(command, tmp_path, text):
    script = tmp_path / "script.py"
    script.write_text(text, encoding="utf-8")
    words = [*command, str(script)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


def test_mypy_reads_the_types(tmp_path):
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml"]
    if not os.access(ROOT, os.W_OK):
        command.append(f"--cache-dir={tmp_path / 'cache'}")
    right = check(command, tmp_path, SCRIPT)
    assert right.returncode == 0, right.stdout
    wrong = check(command, tmp_path, SCRIPT + WRONG)
    assert wrong.stdout.count("error:") == 2, wrong.stdout


@pytest.mark.integration
def test_pyright_reads_the_types(tmp_path):
    pytest.importorskip("pyright")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable]
    right = check(command, tmp_path, SCRIPT)
    assert right.returncode == 0, right.stdout
    wrong = check(command, tmp_path, SCRIPT + WRONG)
    assert wrong.stdout.count("error:") == 2, wrong.stdout
