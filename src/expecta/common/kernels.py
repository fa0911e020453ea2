"""Compile kernels: one decorator, and a cache that notices every change.

With ``NUMBA_DISABLE_JIT=1`` in the environment kernels are plain Python, slow and open to
a debugger.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numba
import numpy as np
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.runtime import rtsys
from numba.core.typed_passes import IRLegalization

if TYPE_CHECKING:

    def U(offset: int) -> int:  # noqa: N802
        """Return an unsigned offset: numba wraps signed ones, which stops vectorisation."""
        return offset
else:
    U = int if numba.config.DISABLE_JIT else np.uint64

F = TypeVar("F", bound=Callable[..., Any])
STALE_SECONDS = 24 * 3600.0  # that code of other versions is kept: one may switch between two
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def kernel(function: F) -> F:
    """Compile to machine code that runs without the GIL, cached on disk.

    Numba ties a cached function to the time stamp of its own file. Our kernels call one another
    across files, so the cache is named after the text of all files of its folder and of the
    engine, which it may call, and of numba: another version neither uses nor trips over it.
    """
    if numba.config.DISABLE_JIT:
        return np.errstate(all="ignore")(function)
    compiled = numba.njit(**OPTIONS)(function)
    with suppress(RuntimeError):  # no folder to write to: compile anew in every process
        compiled._cache = _KernelCache(function)
    return compiled


class _KernelCache(FunctionCache):  # type: ignore[misc]
    """Code of one kernel, loaded without what only a compiler needs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        own = function.__module__.split(".")[1]
        stamp = _fingerprint(("engine",) if own == "engine" else ("engine", own))
        self._cache_file = _CacheFile(
            cache_path=self._cache_path,
            filename_base=f"{self._impl.filename_base}-{stamp}",
            source_stamp=stamp,
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load code; numba would first learn all types and functions that can be compiled.

        That takes a quarter of a second, and is done by the compiler too. All that machine code
        calls are the functions that manage memory.
        """
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


class _CacheFile(IndexDataCacheFile):  # type: ignore[misc]
    """A cache that removes what other versions of its kernel left, a day after."""

    def save(self, key: Any, data: Any) -> None:
        """Save code, then look for stale files."""
        super().save(key, data)
        folder, stamp = Path(self._cache_path), self._source_stamp
        name = Path(self._index_path).name.rpartition(stamp)[0].rpartition("-")[0]
        kernel = name.rpartition("-")[0]  # what follows are a line and a version of Python
        for path in folder.glob(f"{kernel}-*.nb?"):
            with suppress(OSError):  # another process removes them too
                if stamp not in path.name and path.stat().st_mtime < time.time() - STALE_SECONDS:
                    path.unlink()


def is_cached(compiled: Any) -> bool | None:
    """Whether machine code of a kernel is at hand; None where it cannot be kept or is not used."""
    if numba.config.DISABLE_JIT:
        return None
    file = getattr(compiled._cache, "_cache_file", None)  # none without a folder to write to
    return None if file is None else bool(compiled.signatures) or os.path.exists(file._index_path)


def helper(function: F) -> F:
    """Compile what only kernels call: into them, and not by itself nor for Python."""
    if numba.config.DISABLE_JIT:
        return np.errstate(all="ignore")(function)
    return numba.njit(**HELPER_OPTIONS)(function)


def plain_helper(function: F) -> F:
    """Compile a helper that makes no array and returns none: its references are not counted.

    A count is an atomic operation whenever an array is taken out of a tuple, which costs more than
    what is done to a number of it. What calls a helper holds its arrays.
    """
    if numba.config.DISABLE_JIT:
        return np.errstate(all="ignore")(function)
    return numba.njit(**PLAIN_OPTIONS)(function)


class _LateLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that is optimised and made into machine code in its callers only."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return an address that is never called: there is no way in from Python."""
        self._ensure_finalized()
        return 1

    @property
    def codegen(self) -> _LateLibrary:
        """Itself, which the dispatcher asks to set an environment."""
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing: kernels have environments of their own."""


@register_pass(mutates_CFG=False, analysis_only=True)
class _LateCode(AnalysisPass):  # type: ignore[misc]
    _name = "expecta_late_code"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Put a helper's code into a library of its own kind."""
        state.library = _LateLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return False


class _HelperCompiler(CompilerBase):  # type: ignore[misc]
    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_LateCode, IRLegalization)
        passes.finalize()
        return [passes]


# Each kernel is optimised with its helpers inside it; by themselves they would be once more.
HELPER_OPTIONS: dict[str, Any] = OPTIONS | {
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": _HelperCompiler,
}
PLAIN_OPTIONS: dict[str, Any] = HELPER_OPTIONS | {"_nrt": False}


@lru_cache
def _fingerprint(folders: tuple[str, ...]) -> str:
    digest = hashlib.sha256(numba.__version__.encode())  # numba would drop another version's code
    package = Path(__file__).parent.parent
    for path in [
        Path(__file__),
        *(p for f in folders for p in sorted((package / f).rglob("*.py"))),
    ]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
