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

os.environ.setdefault("MPLBACKEND", "Agg")  # pictures without a screen, whoever draws first
sys.path.insert(0, str(Path(__file__).parent))  # for the helper modules beside the tests

# where it was when tests began: one of them may be at work without the variable
DATA = Path(os.environ.get("EXPECTA_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of data sets and reference figures; tests that need it are skipped without."""
    if not (DATA / "reference").is_dir():
        pytest.skip(f"no reference data at {DATA} (set EXPECTA_DATA)")
    return DATA.resolve()


@pytest.fixture(params=["host", pytest.param("card", marks=pytest.mark.gpu)])
def device(request, monkeypatch):
    """The host's emulation of a card, or a card."""
    from expecta.common.errors import DeviceError
    from expecta.engine.cuda import card_work
    from host_device import HostDevice, need_compiler

    if request.param == "card":
        try:
            card = card_work.cuda_device(os.getpid())
        except DeviceError as problem:
            pytest.skip(str(problem))
        monkeypatch.setattr(card, "memory", card.memory)  # tests may change it
        return card
    need_compiler()
    host = HostDevice()
    monkeypatch.setattr(card_work, "cuda_device", lambda process: host)
    return host
