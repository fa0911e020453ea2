"""Fixtures and the slow, obvious truth that fast answers are checked against."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

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
