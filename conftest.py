"""Fail a test that leaves a trace for the next, and let one seed decide order and examples."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.core
import numpy as np
import pytest

from expecta.common import settings

ROOT = Path(__file__).parent


@pytest.hookimpl(trylast=True)  # after pytest-randomly has drawn its seed
def pytest_configure(config: pytest.Config) -> None:
    """Draw hypothesis' examples from the seed of the order, so that one number repeats a run."""
    seed = config.getoption("randomly_seed", None)
    if isinstance(seed, int) and config.getoption("hypothesis_seed", None) is None:
        hypothesis.core.global_force_seed = seed


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Tell the seed at the end; the header that has it is not shown by ``-q``."""
    seed = config.getoption("randomly_seed", None)
    if isinstance(seed, int):
        terminalreporter.write_line(f"to repeat order and examples: --randomly-seed={seed}")


def process_state() -> dict[str, Any]:
    """Return what the tests of a process share; pytest-randomly seeds global random states."""
    state: dict[str, Any] = {
        "the environment": {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"},
        "the current folder": os.getcwd(),
        "sys.path": list(sys.path),
        "expecta's settings": settings.current(),
        "NumPy's error handling": np.geterr(),
        "NumPy's print options": np.get_printoptions(),
    }
    if sklearn := sys.modules.get("sklearn"):
        state["scikit-learn's settings"] = sklearn.get_config()
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        state["open figures"] = pyplot.get_fignums()
        parameters = dict.items(pyplot.rcParams)
        state["matplotlib's parameters"] = {k: v for k, v in parameters if k != "backend"}
    return state


@pytest.fixture(autouse=True)
def leaves_no_trace() -> Iterator[None]:
    """Fail a test after which the process is not as it was before."""
    before = process_state()
    yield
    after = process_state()
    before.setdefault("open figures", [])  # where the test has imported matplotlib
    changed = sorted(k for k in before.keys() & after.keys() if before[k] != after[k])
    if changed:
        pairs = (f"{k}: {before[k]!r:.1000}, then {after[k]!r:.1000}" for k in changed)
        pytest.fail("the test leaves a trace in " + "; ".join(pairs))


@pytest.fixture(autouse=True, scope="session")
def leaves_no_files() -> Iterator[None]:
    """Fail where tests have written files into the source tree."""
    before = untracked_files()
    yield
    new = untracked_files() - before
    if new:
        pytest.fail(f"tests have left files in the source tree: {', '.join(sorted(new))}")


def untracked_files() -> set[str]:
    """Return the files that git neither has nor ignores; none where there is no git."""
    command = ["git", "ls-files", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return set()
    return set(listed.stdout.splitlines())
