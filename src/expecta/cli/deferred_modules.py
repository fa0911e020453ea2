"""Let a command start without modules that scikit-learn imports and few commands use."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from threading import RLock
from types import ModuleType
from typing import Any


def defer(*names: str) -> None:
    """Put modules where imports look for them; each is loaded when something of it is used.

    Modules that are loaded already, or are not installed, are left alone.
    `importlib.util.LazyLoader` is of no use here: a second import of what it made loads it.
    """
    for name in names:
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None and spec.loader is not None:
            module = DeferredModule(name)
            module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
            module.__package__ = spec.parent
            sys.modules[name] = module


class DeferredModule(ModuleType):
    """A module that has not run yet; it has no ``__path__``, so that its submodules wait too."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._lock, self._runs = RLock(), False

    def __getattr__(self, name: str) -> Any:
        """Run the module's code, in the first thread that needs it; others wait."""
        with self._lock:
            if type(self) is DeferredModule:
                if self._runs:  # its own code asks
                    raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
                self._runs = True
                try:
                    self._run()
                finally:
                    self._runs = False
        return getattr(self, name)

    def _run(self) -> None:
        spec = self.__spec__
        assert spec is not None
        assert spec.loader is not None
        if spec.submodule_search_locations is not None:
            self.__path__ = spec.submodule_search_locations
        spec.loader.exec_module(self)
        self.__class__ = ModuleType  # type: ignore[assignment]
