"""Tell by its class which library an object is of, without importing the library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def is_from(model: Any, library: str, *names: str) -> bool:
    """Whether a model is of one of a library's classes, or of a class derived from one."""
    return any(
        kind.__module__.split(".")[0] == library and kind.__name__ in names
        for kind in type(model).__mro__
    )


def library_class(thing: Any, methods: Sequence[str]) -> str | None:
    """Name the scikit-learn class of an object, or None.

    A derived class counts as the scikit-learn class, unless it defines one of the methods
    itself: then it is not known what these do.

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
