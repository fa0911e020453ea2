"""How tests run, and the reference data they may need."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import hypothesis
import pytest

# Circuits take a while to draw, and machines differ; under CI examples are the same each time.
hypothesis.settings.register_profile(
    "expecta",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("expecta")

sys.path.insert(0, str(Path(__file__).parent))  # for the helper modules beside the tests


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of data sets and reference figures; tests that need it are skipped without."""
    root = Path(
        os.environ.get("EXPECTA_DATA", Path(__file__).parents[1] / ".." / "shared" / "data")
    )
    if not (root / "reference").is_dir():
        pytest.skip(f"no reference data at {root} (set EXPECTA_DATA)")
    return root.resolve()
