"""Fail a test that leaves a trace for the next, and let one seed decide order and examples."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import hypothesis.core
import numpy as np
import pytest

from expecta.common import settings

ROOT = Path(__file__).parent
collect_ignore_glob = [] if find_spec("dask") else ["src/expecta/dask/*"]  # doctests import it
IGNORED = ("PYTEST_CURRENT_TEST", "KMP_")  # variables that pytest, and importing sklearn, set


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
        "the environment": {k: v for k, v in os.environ.items() if not k.startswith(IGNORED)},
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
        state["matplotlib's parameters"] = {k: v for k, v in parameters if "backend" not in k}
    return state


@pytest.fixture(autouse=True)
def leaves_no_trace() -> Iterator[None]:
    """Fail a test after which the process is not as it was before."""
    before = process_state()
    yield
    after = process_state()
    before.setdefault("open figures", [])  # where the test has imported matplotlib
    changed = [
        f"{name}: {difference(before[name], after[name])}"
        for name in sorted(before.keys() & after.keys())
        if before[name] != after[name]
    ]
    if changed:
        pytest.fail("the test leaves a trace in " + "; ".join(changed))


def difference(old: Any, new: Any) -> str:
    """Write what was and what is; of dicts only the entries that differ."""
    if isinstance(old, dict):
        keys = {k for k in old.keys() | new.keys() if old.get(k) != new.get(k)}
        old, new = ({k: one[k] for k in sorted(keys & one.keys())} for one in (old, new))
    return f"{old!r:.300} became {new!r:.300}"


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
