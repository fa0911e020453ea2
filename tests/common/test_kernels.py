"""Cached code is loaded without the compiler, and that of another compiler is not."""

import json
import subprocess
import sys

import numba
import numpy as np

from expecta.common.kernels import _fingerprint
from expecta.learn.weighted_rows import WeightedRows

CODE = """
import json, sys
import numba, numpy as np
from expecta.learn.weighted_rows import WeightedRows
codes = np.random.default_rng(0).integers(-1, 3, (50, 4)).astype(np.int32)
information = WeightedRows(codes, np.ones(50)).mutual_information(np.full(4, 3))
loaded = "numba.np.arrayobj" in sys.modules
total = numba.njit(lambda x: np.sqrt(x).sum())(information.ravel())
print(json.dumps([loaded, information.tolist(), total]))
"""


def test_cached_code_is_loaded_without_the_compiler():
    codes = np.random.default_rng(0).integers(-1, 3, (50, 4)).astype(np.int32)
    here = WeightedRows(codes, np.ones(50)).mutual_information(np.full(4, 3))  # now it is cached
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    compiler_is_set_up, there, compiled_total = json.loads(done.stdout)
    assert not compiler_is_set_up
    np.testing.assert_array_equal(there, here)
    np.testing.assert_allclose(compiled_total, np.sqrt(here).sum(), rtol=1e-12)


def test_versions_of_numba_keep_code_of_their_own(monkeypatch):
    fingerprint = _fingerprint.__wrapped__  # the other remembers
    here = fingerprint(("engine",))
    assert fingerprint(("engine",)) == here
    monkeypatch.setattr(numba, "__version__", "0.0.0")
    assert fingerprint(("engine",)) != here
