"""Compile kernels: one decorator, and a cache that notices every change.

With ``NUMBA_DISABLE_JIT=1`` in the environment kernels are plain Python, slow and open to
a debugger.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numba
import numpy as np
from numba.core.caching import IndexDataCacheFile

if TYPE_CHECKING:

    def U(offset: int) -> int:  # noqa: N802
        """Return an unsigned offset: numba wraps signed ones, which stops vectorisation."""
        return offset
else:
    U = int if numba.config.DISABLE_JIT else np.uint64

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile to machine code that runs without the GIL, cached on disk.

    Numba ties a cached function to the time stamp of its own file. Our kernels call
    one another across files, so the cache is named after the text of all of them:
    another version of this package neither uses nor trips over it.
    """
    if numba.config.DISABLE_JIT:
        return np.errstate(all="ignore")(function)
    compile_with = partial(numba.njit, nogil=True, error_model="numpy")
    try:
        compiled = compile_with(cache=True)(function)
    except RuntimeError:  # no folder to write to: compile anew in every process
        return compile_with()(function)
    cache = compiled._cache
    cache._cache_file = IndexDataCacheFile(
        cache_path=cache._cache_path,
        filename_base=f"{cache._impl.filename_base}-{_fingerprint()}",
        source_stamp=_fingerprint(),
    )
    return compiled


@lru_cache
def _fingerprint() -> str:
    digest = hashlib.sha256()
    package = Path(__file__).parent.parent
    for folder in ("engine", "learn"):
        for path in sorted((package / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
