"""Compile everything before it is needed: for images, servers and impatient people."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from expecta.common.compiling import start_process
from expecta.common.errors import ExpectaError
from expecta.common.progress import Progress
from expecta.common.settings import current
from expecta.densities import PSDD, ChowLiu, LatentTree
from expecta.engine.compile_walk import compile_walk
from expecta.estimators.classifier import CircuitClassifier
from expecta.estimators.expected_predictor import ExpectedPredictor
from expecta.estimators.imputers import ConditionalSampler, MPEImputer
from expecta.estimators.regressor import CircuitRegressor

ROWS = 80  # of the table that all is tried on


def _table() -> tuple[dict[str, list[Any]], np.ndarray[Any, Any]]:
    """Return a small table of numbers and categories with missing values, and a target."""
    rng = np.random.default_rng(0)
    number, kind = rng.normal(size=(ROWS, 2)), rng.integers(0, 3, ROWS)
    target = number[:, 0] + kind + 0.1 * rng.normal(size=ROWS)
    cells = [None if r % 9 == 0 else float(x) for r, x in enumerate(number[:, 0])]
    return {"a": cells, "b": number[:, 1].tolist(), "c": [f"k{k}" for k in kind]}, target


def _circuits() -> None:
    table, target = _table()
    regressor = CircuitRegressor(random_state=0).fit(table, target)
    regressor.predict(table, return_std=True)
    regressor.predict_interval(table)
    regressor.ask("a > 0")
    regressor.compare({"c": "k0"}, {"c": "k1"})
    regressor.split("c")
    row = {"b": 0.5}
    regressor.shapley(row)
    regressor.next_question(row)
    regressor.outliers(table)


def _classifiers() -> None:
    table, target = _table()
    CircuitClassifier(random_state=0).fit(table, target > 1).predict_proba(table)


def _trees() -> None:
    from sklearn.ensemble import HistGradientBoostingRegressor

    table, target = _table()
    rows = np.column_stack([np.array(table["a"], np.float64), table["b"]])
    booster = HistGradientBoostingRegressor(max_iter=5).fit(rows, target)
    predictor = ExpectedPredictor(booster).fit(rows, target)
    predictor.predict(rows, return_std=True)
    predictor.calibrate(rows, target).predict_interval(rows)


def _densities() -> None:
    table, _ = _table()
    for learner in (ChowLiu(), LatentTree(random_state=0)):
        density = learner.fit(table)
        density.sample(3, random_state=0)
        density.score_samples(table)
        density.marginal("a")
    for imputer in (MPEImputer(), ConditionalSampler(random_state=0)):
        imputer.fit(table).transform(table)


def _psdds() -> None:
    PSDD(random_state=0).fit(_table()[0])


# The first two have most to compile, and what the others need.
JOBS: dict[str, Callable[[], None]] = {
    "walk": compile_walk,
    "circuits": _circuits,
    "trees": _trees,
    "densities": _densities,
    "psdds": _psdds,
    "classifiers": _classifiers,
}


def warm_up() -> float:
    """Compile all kernels for this machine, on all cores, and keep them on disk.

    Afterwards no call compiles anything, in this and in later processes of the same user: of use
    in the build of an image, before a server answers, or before a demonstration. What is compiled
    already costs a few seconds. Returns the seconds it took.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    ExpectaError
        Where a part of the package does not run on this machine.

    Examples
    --------
    >>> warm_up() < 600  # doctest: +SKIP
    True
    """
    begun = time.perf_counter()
    waiting, running, failed = list(JOBS), dict[str, subprocess.Popen[bytes]](), []
    with Progress("compiling", len(JOBS)) as progress:
        while waiting or running:
            while waiting and len(running) < current().n_threads():
                job = waiting.pop(0)
                running[job] = start_process(_statement(job))
            time.sleep(0.05)
            for job, process in list(running.items()):
                if process.poll() is not None:
                    del running[job]
                    progress.advance()
                    failed += [job] if process.returncode else []
    if failed:
        raise ExpectaError(
            f'{", ".join(failed)}: did not run; to see why: python -c "{_statement(failed[0])}"'
        )
    return time.perf_counter() - begun


def _statement(job: str) -> str:
    return f"from expecta.estimators.warm_up import JOBS; JOBS['{job}']()"
