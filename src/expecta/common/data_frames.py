"""Return tables as the data frames that are installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeAlias

import numpy.typing as npt

Columns: TypeAlias = dict[str, npt.NDArray[Any]]


def installed(library: str) -> bool:
    """Whether a library can be imported."""
    try:
        import_module(library)
    except ImportError:
        return False
    return True


def as_frame(columns: Columns, kind: str | None) -> Any:
    """Return a table as a pandas or polars frame or a dict; None is the first there is."""
    if kind not in (None, "pandas", "polars", "dict"):
        raise ValueError(f"as_frame is 'pandas', 'polars' or 'dict', not {kind!r:.60}")
    if kind is None:
        kind = next((name for name in ("pandas", "polars") if installed(name)), "dict")
    if kind == "dict":
        return columns
    plain = {name: v.tolist() if v.dtype.kind == "O" else v for name, v in columns.items()}
    return import_module(kind).DataFrame(plain)
