"""Import what a package offers when it is asked for, and without looking for garbage meanwhile."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any


def imported_later(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a package's ``__getattr__``: each name is in a module, or is that module itself.

    Examples
    --------
    >>> later = imported_later("numbers", {"Fraction": "fractions"})
    >>> later("Fraction")(2, 4)
    Fraction(1, 2)
    """

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with without_collections():
            module = import_module(names[name])
        return module if names[name] == f"{package}.{name}" else getattr(module, name)

    return get


@contextmanager
def without_collections() -> Iterator[None]:
    """Look for no garbage: of what is imported or loaded all stays, and a fifth of the time.

    It is old at once: to grow old as objects usually do, all of it would be looked at twice.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            if not gc.get_freeze_count():  # nobody else keeps objects from being looked at
                gc.freeze()
                gc.unfreeze()  # to the oldest generation
            gc.enable()
