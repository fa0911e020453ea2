"""Kill processes while they save a model: the old file or the new one is there, and no other."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
from sklearn.base import clone

from expecta import ChowLiu, CircuitRegressor
from expecta.common.atomic_files import replace_file

from .mutations import tests_module

MAX_DELAY_SECONDS = {"models": 0.4, "bytes": 0.1}
SIZE = 10_000_000  # of the bytes: most of a save is then writing


def kill(count, seed):
    """Kill processes that save a model, and as many that save bytes; return what went wrong."""
    rng = np.random.default_rng(seed)
    table = {f"x{i}": rng.normal(size=2_000).tolist() for i in range(6)}
    learner = CircuitRegressor(density=ChowLiu(), max_splits=3, random_state=0)
    models = [clone(learner).fit(table, np.array(table["x0"]) + shift) for shift in (0.0, 1.0)]
    contents = [byte * SIZE for byte in (b"a", b"b")]
    saves = {
        "models": [model.save for model in models],
        "bytes": [lambda path, data=data: replace_file(str(path), data) for data in contents],
    }
    return sum(_kill(what, functions, count, rng) for what, functions in saves.items())


def _kill(what, saves, count, rng):
    folder = Path(tempfile.mkdtemp(prefix="expecta-kills-"))
    path, contents = folder / "file", []
    for save in saves:
        save(path)
        contents.append(path.read_bytes())
    delays = rng.uniform(0, MAX_DELAY_SECONDS[what], count)
    seen = tests_module("common/test_atomic_files.py").kill_while_saving(path, delays, saves)
    wrong = count - sum(seen[data] for data in contents)
    left = len(list(folder.iterdir())) - 1
    saves[0](path)
    stay = len(list(folder.iterdir())) - 1
    each = " and ".join(str(seen[data]) for data in contents)
    print(
        f"{count} processes killed while saving {what}: one file and the other were there {each} "
        f"times, neither {wrong} times; {left} temporary files were left, {stay} after another save"
    )
    shutil.rmtree(folder)
    return wrong + stay
