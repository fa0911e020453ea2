"""NUMBA_DISABLE_JIT=1: kernels as plain Python, to step through, with the same answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from expecta import Vtree, random_probabilistic, random_regression
from truth import complete_rows, probability

SCRIPT = """
import json, numba
from expecta import Pair, Vtree, random_probabilistic, random_regression
from expecta.engine.walk import walk

assert numba.config.DISABLE_JIT and not hasattr(walk, "signatures")
vtree = Vtree.random(4, seed=1)
p = random_probabilistic(vtree, [2, 3, 2, 2], units=5, seed=2)
pair = Pair(p, random_regression(vtree, [2, 3, 2, 2], seed=3))
X = [[-1, 2, -1, 0], [1, -1, -1, -1]]
answers = [pair.expectation(X), pair.moments(X, 3)[:, 3], p.marginals(X)[2][:, 1]]
answers.append(pair.expected(X, "exp").value)
print(json.dumps([answer.tolist() for answer in answers]))
"""


def test_kernels_run_as_plain_python():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    expectation, third, marginal, exponential = json.loads(done.stdout)
    vtree = Vtree.random(4, seed=1)
    p = random_probabilistic(vtree, [2, 3, 2, 2], units=5, seed=2)
    g = random_regression(vtree, [2, 3, 2, 2], seed=3)
    every = complete_rows(p.cardinalities)
    weight, value = np.array([probability(p, x) for x in every]), g(every)
    for k, row in enumerate(np.array([[-1, 2, -1, 0], [1, -1, -1, -1]])):
        posterior = weight * np.all((row < 0) | (every == row), axis=1)
        posterior /= posterior.sum()
        assert expectation[k] == pytest.approx(posterior @ value)
        assert third[k] == pytest.approx(posterior @ value**3)
        assert exponential[k] == pytest.approx(posterior @ np.exp(value))
        assert marginal[k] == pytest.approx(posterior @ (every[:, 2] == 1))
