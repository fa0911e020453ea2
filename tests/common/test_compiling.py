"""Compiling beside other work, and what is left of older versions."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace

import pytest

from expecta import config_context
from expecta.common import compiling
from expecta.common.compiling import await_compiled, compile_beside
from expecta.common.kernels import STALE_SECONDS, _CacheFile


def kernel(folder, *, used=False, cached=False):
    """A kernel as far as the cache is concerned."""
    index = folder / "index"
    if cached:
        index.touch()
    cache = SimpleNamespace(_cache_file=SimpleNamespace(_index_path=str(index)))
    return SimpleNamespace(_cache=cache, signatures=[()] if used else [])


def writing(path):
    return f"open({str(path)!r}, 'w').write('done')"


def test_a_second_process_compiles_and_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.delenv(compiling.WITHIN, raising=False)
    with config_context(threads=2):
        compile_beside(kernel(tmp_path), "import time; time.sleep(0.3); " + writing(tmp_path / "a"))
    await_compiled()
    assert (tmp_path / "a").read_text() == "done"


@pytest.mark.parametrize("state", ["used", "cached", "one thread", "within", "no cache"])
def test_no_process_is_started_in_vain(tmp_path, monkeypatch, state):
    monkeypatch.delenv(compiling.WITHIN, raising=False)
    if state == "within":
        monkeypatch.setenv(compiling.WITHIN, "1")
    target = kernel(tmp_path, used=state == "used", cached=state == "cached")
    if state == "no cache":
        target._cache = object()
    with config_context(threads=1 if state == "one thread" else 2):
        compile_beside(target, writing(tmp_path / "a"))
    await_compiled()
    assert not (tmp_path / "a").exists()


def test_a_process_that_fails_or_hangs_is_no_error(tmp_path, monkeypatch):
    monkeypatch.delenv(compiling.WITHIN, raising=False)
    monkeypatch.setattr(compiling, "MAX_WAIT", 0.2)
    with config_context(threads=2):
        compile_beside(kernel(tmp_path), "raise SystemExit(3)")
        compile_beside(kernel(tmp_path), "import time; time.sleep(60)")
    begun = time.monotonic()
    await_compiled()
    assert time.monotonic() - begun < 30


def test_code_of_older_versions_is_removed(tmp_path):
    old, new, other = (
        tmp_path / name
        for name in ("walk.go-7.py311-aaaa.1.nbc", "walk.go-9.py311-bbbb.nbi", "walk.gone-7.x.nbi")
    )
    for path in (old, new, other):
        path.touch()
    for path in (old, other):
        os.utime(path, (time.time() - 2 * STALE_SECONDS,) * 2)
    file = _CacheFile(str(tmp_path), "walk.go-8.py311-cccc", "cccc")
    file.save("key", b"code")
    assert not old.exists()
    assert {new, other} < set(tmp_path.iterdir())
    assert {path.suffix for path in tmp_path.glob("*cccc*")} == {".nbi", ".nbc"}
