"""Define what every algebra must do, as the walk calls it.

The recursion of a pair needs six operations on the states of pairs, and an algebra's
``width``, ``scratch`` and ``constants``. A state is
``width`` numbers for each of ``lanes`` rows, at an offset of one long array z.
An algebra is a NamedTuple type; numba picks the implementation by that type, so the
pairs of a layer are compiled into one loop per algebra. The bodies here do the same
where kernels are plain Python.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from numba.extending import overload

from expecta.common.arrays import Floats
from expecta.common.kernels import PLAIN_OPTIONS

_modules: dict[type, tuple[ModuleType, ...]] = {}


def register(algebra: type, *modules: ModuleType) -> None:
    """Make functions of these modules, the first that has one, the operations of a type."""
    _modules[algebra] = modules


def _implementation(algebra: type, name: str) -> Any:
    return next(getattr(module, name) for module in _modules[algebra] if hasattr(module, name))


def width(algebra: Any) -> int:
    """Count the numbers that a pair holds per lane."""
    return int(_implementation(type(algebra), "width")(algebra))


def scratch(algebra: Any) -> int:
    """Count the numbers per lane that ``join`` and ``mix`` need beside."""
    return int(_implementation(type(algebra), "scratch")(algebra))


def constants(algebra: Any, *given: Any, **known: Any) -> Floats:
    """Turn g's parameters into the numbers that ``join`` and ``unit`` read.  # (edges, ...)."""
    return _implementation(type(algebra), "constants")(algebra, *given, **known)


def cuda_text(algebra: Any) -> str:
    """Return what the algebra does on a card: ``product`` and ``point``, and sums of its own."""
    return str(_implementation(type(algebra), "CUDA"))


def clear(algebra: Any, *rest: Any) -> None:
    """Set a state to the empty sum."""
    _implementation(type(algebra), "clear")(algebra, *rest)


def join(algebra: Any, *rest: Any) -> None:
    """Add the product of two states, shifted by g's edge: the AND step and the OR over g."""
    _implementation(type(algebra), "join")(algebra, *rest)


def mix(algebra: Any, *rest: Any) -> None:
    """Set states, one or a run, to θ-weighted sums of states: the OR over p."""
    _implementation(type(algebra), "mix")(algebra, *rest)


def mix_scaled(algebra: Any, *rest: Any) -> None:
    """Add one state with a weight per lane: the OR over p where exponents differ."""
    _implementation(type(algebra), "mix_scaled")(algebra, *rest)


def scale(algebra: Any, *rest: Any) -> None:
    """Multiply a state by θ: the OR over p where there is one edge."""
    _implementation(type(algebra), "scale")(algebra, *rest)


def unit(algebra: Any, *rest: Any) -> None:
    """Add one value of a leaf, with a weight per lane."""
    _implementation(type(algebra), "unit")(algebra, *rest)


def _dispatch(name: str) -> Any:
    def pick(algebra: Any, *rest: Any) -> Any:
        return _implementation(algebra.instance_class, name)

    return pick


for _operation in (width, clear, join, mix, mix_scaled, scale, unit):
    # literals first, so that a single lane is a constant
    _compiled = overload(_operation, jit_options=PLAIN_OPTIONS, strict=False, prefer_literal=True)
    _compiled(_dispatch(_operation.__name__))
