"""Decide whether an object runs a library's own code, without importing the library.

What is read of a model is what its library's methods compute. That is proved only where these
methods are the ones that run: the object is of a class of the library, or of one derived from
it that changes nothing of how it predicts, and none of its methods was replaced.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from expecta.readers import Unreadable

LIBRARIES = ("sklearn", "xgboost", "lightgbm", "catboost", "interpret")
# The newest major version of each whose layout the readers were tested with.
TESTED_VERSIONS = {"sklearn": 1, "xgboost": 3, "lightgbm": 4, "catboost": 1, "interpret": 0}
# Classes of these are nobody's own; functions of these wrap methods of libraries.
NEUTRAL = frozenset({*LIBRARIES, "_catboost", "builtins", "abc", "typing", "collections"})
WRAPPING = NEUTRAL | {"functools", "contextlib", "numpy", "scipy", "joblib", "warnings"}
# What a derived class may define of the names that its library has, beside "__names__": nothing
# of it predicts.
HARMLESS = frozenset(
    {"fit", "partial_fit", "fit_transform", "fit_predict", "score", "get_params", "set_params"}
    | {"get_metadata_routing", "_get_param_names", "_parameter_constraints", "_more_tags"}
    | {"_estimator_type", "_abc_impl", "_repr_mimebundle_", "_sklearn_auto_wrap_output_keys"}
)
# What changes predictions even where the library has no such name.
HARMFUL = frozenset(
    {"predict", "predict_proba", "decision_function", "transform", "inverse_transform"}
    | {"__getattr__", "__getattribute__", "__class__", "__call__", "__len__", "__iter__"}
    | {"__getitem__"}
)


def library_class(thing: Any, library: str = "sklearn") -> str | None:
    """Name the class of a library whose code an object runs, or None.

    None too for one that changes what it computes: see :func:`what_is_changed`.

    >>> from sklearn.preprocessing import StandardScaler
    >>> library_class(StandardScaler())
    'StandardScaler'
    >>> scaler = StandardScaler()
    >>> scaler.transform = lambda X: X
    >>> library_class(scaler) is None
    True
    """
    base = _base(thing)
    if base is None or _root(base) != library or what_is_changed(thing) is not None:
        return None
    return base.__name__


def what_is_changed(thing: Any) -> str | None:
    """Say which part of its library an object replaces by code of its own, or None.

    Looked at are the methods in the object itself, the names that derived classes define, and
    whether the library's methods still are the library's functions. None too for an object that
    is of no library that is known here.
    """
    base = _base(thing)
    if base is None:
        return None
    name = type(thing).__name__
    for attribute in getattr(thing, "__dict__", {}):
        if attribute in HARMFUL or callable(getattr(type(thing), attribute, None)):
            return f"this {name} has a {attribute} of its own"
    for kind in type(thing).__mro__:
        if _root(kind) in NEUTRAL:
            changed = next(_foreign(kind), None)
            if changed is not None:
                return f"{changed} of the class {kind.__name__} was replaced"
            continue
        for attribute in vars(kind):
            if attribute in HARMFUL or (hasattr(base, attribute) and not _is_harmless(attribute)):
                return f"{kind.__name__} defines {attribute} itself"
    return None


def require_own_code(*things: Any) -> None:
    """Raise Unreadable if an object that a model computes with replaces a part of its library."""
    for thing in things:
        changed = what_is_changed(thing)
        if changed is not None or _base(thing) is None:
            problem = changed or f"a {type(thing).__name__} is a part of the model"
            raise Unreadable(f"{problem}: what it does is not known; sampling is used instead")


def is_tested(library: str) -> bool:
    """Whether the readers know the layout of a library's models: its version is not too new."""
    version = str(getattr(sys.modules.get(library), "__version__", "0"))
    major = version.split(".")[0]
    return major.isdigit() and int(major) <= TESTED_VERSIONS[library]


def untested_version(thing: Any) -> str | None:
    """Name the library and version of an object, if that is newer than those tested; or None."""
    base = _base(thing)
    if base is None or is_tested(_root(base)):
        return None
    library = _root(base)
    return f"{library} {sys.modules[library].__version__}"


def _root(kind: type) -> str:
    return kind.__module__.split(".")[0]


def _is_harmless(attribute: str) -> bool:
    routing = attribute.startswith("set_") and attribute.endswith("_request")  # of metadata
    dunder = attribute.startswith("__") and attribute.endswith("__")
    return routing or dunder or attribute in HARMLESS


def _base(thing: Any) -> type | None:
    """Return the first class of a library among the classes of an object."""
    return next((kind for kind in type(thing).__mro__ if _root(kind) in LIBRARIES), None)


def _foreign(kind: type) -> Iterator[str]:
    """Name the functions of a library's class that come from elsewhere."""
    if _root(kind) not in LIBRARIES:
        return
    for name, value in vars(kind).items():
        function = getattr(value, "fget", None) or getattr(value, "__func__", None) or value
        scope = getattr(function, "__globals__", None)
        if scope is not None and str(scope.get("__name__", "")).split(".")[0] not in WRAPPING:
            yield name
