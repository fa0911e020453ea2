"""Which scikit-learn class an object is, where that says what it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["library_class"]


def library_class(thing: Any, methods: Sequence[str]) -> str | None:
    """Name the scikit-learn class of an object, or None.

    A class that someone derived from it counts as it, unless it has one of the methods of
    its own: then nobody knows what these do.

    >>> from sklearn.preprocessing import StandardScaler
    >>> library_class(StandardScaler(), ["transform"])
    'StandardScaler'
    """
    if any(method in getattr(thing, "__dict__", {}) for method in methods):
        return None
    for base in type(thing).__mro__:
        if base.__module__.split(".")[0] == "sklearn":
            return base.__name__
        if any(method in vars(base) for method in methods):
            return None
    return None
