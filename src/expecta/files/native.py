"""Expecta's own format: every kind of circuit exactly, its vtree included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.circuits.regression import RegressionCircuit
from expecta.circuits.structure import Structure
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import within
from expecta.common.errors import FormatError, StructureError, VtreeMismatchError
from expecta.files.container import Container

__all__ = ["NativeFile", "circuit_arrays", "encode", "opened"]

Made = TypeVar("Made")

LARGEST_START = 2**40  # beyond any file, and far from where differences of integers overflow

# Array -> its type and number of dimensions.
_VTREE = {
    "left": ("int32", 1),
    "right": ("int32", 1),
    "variable": ("int32", 1),
    "ids": ("int64", 1),
}
_STRUCTURE = {
    "cardinalities": ("int32", 1),
    "node_start": ("int64", 1),
    "element_start": ("int64", 1),
    "left": ("int32", 1),
    "right": ("int32", 1),
    "edge_start": ("int64", 1),
    "target": ("int32", 1),
}
_PARTS = {
    "vtree": _VTREE,
    "p": {**_STRUCTURE, "log_weight": ("float64", 1)},
    "g": {**_STRUCTURE, "weight": ("float64", 2), "bias": ("float64", 1)},
}
_KINDS = {
    "vtree": ("vtree",),
    "probabilistic circuit": ("vtree", "p"),
    "regression circuit": ("vtree", "g"),
    "pair": ("vtree", "p", "g"),
}
_READERS = {
    "vtree": "Vtree.load",
    "probabilistic circuit": "ProbabilisticCircuit.load",
    "regression circuit": "RegressionCircuit.load",
    "pair": "Pair.load",
    "density": "Density.load",
    "estimator": "CircuitRegressor.load or CircuitClassifier.load",
}


def encode(
    vtree: Vtree, p: ProbabilisticCircuit | None = None, g: RegressionCircuit | None = None
) -> bytes:
    """Write a vtree, a circuit over it, or a pair of circuits that share it."""
    present = ("vtree", *(["p"] if p is not None else []), *(["g"] if g is not None else []))
    kind = next(kind for kind, parts in _KINDS.items() if parts == present)
    header = {} if g is None else {"link": g.link}
    return Container(kind, header, circuit_arrays(vtree, p, g)).to_bytes()


def circuit_arrays(
    vtree: Vtree, p: ProbabilisticCircuit | None = None, g: RegressionCircuit | None = None
) -> dict[str, npt.NDArray[Any]]:
    """Name the arrays that a vtree and circuits over it consist of."""
    arrays = _arrays("vtree", vtree)
    if p is not None:
        arrays |= _arrays("p", p.structure, log_weight=p.log_weight)
    if g is not None:
        arrays |= _arrays("g", g.structure, weight=g.weight, bias=g.bias)
    return arrays


def opened(path: str, data: bytes, kind: str) -> Container:
    """Take a file apart that is to hold a certain kind of thing."""
    container = Container.from_bytes(path, data)
    if container.kind not in _READERS:
        raise FormatError(path, None, f"the file is damaged: its kind is {container.kind!r:.40}")
    if container.kind != kind:
        raise FormatError(
            path,
            None,
            f"this file holds {_article(container.kind)}, not {_article(kind)}: "
            f"read it with {_READERS[container.kind]}",
        )
    return container


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _arrays(
    part: str, source: Vtree | Structure, **more: npt.NDArray[Any]
) -> dict[str, npt.NDArray[Any]]:
    return {
        f"{part}.{name}": more[name] if name in more else getattr(source, name)
        for name in _PARTS[part]
    }


class NativeFile:
    """A file whose arrays are all there; what they say is checked by what they become.

    Parameters
    ----------
    path
        Where the arrays came from, for messages.
    container
        What the file holds.
    parts
        What of "vtree", "p" and "g" the arrays are to be.
    """

    def __init__(self, path: str, container: Container, parts: tuple[str, ...]) -> None:
        self._path = path
        self._header = container.header
        self._arrays = container.arrays
        self._check_arrays({f"{a}.{b}": _PARTS[a][b] for a in parts for b in _PARTS[a]})

    @classmethod
    def read(cls, path: str, data: bytes, kind: str) -> NativeFile:
        """Open a file that is to hold a vtree, a circuit, or a pair."""
        return cls(path, opened(path, data, kind), _KINDS[kind])

    def vtree(self, given: Vtree | None = None) -> Vtree:
        """Build the vtree; if one is given it must be equal, and is used instead."""
        found = self._make(lambda: Vtree(**self._part("vtree")))
        if given is None:
            return found
        if given != found:
            raise VtreeMismatchError(
                f"{self._path}: the circuit in this file is over another vtree than the one given; "
                f"it holds its own, so none needs to be given"
            )
        return given

    def probabilistic(self, vtree: Vtree) -> ProbabilisticCircuit:
        """Build the probabilistic circuit."""
        part = self._part("p")
        log_weight = part.pop("log_weight")
        return self._make(lambda: ProbabilisticCircuit(Structure(vtree, **part), log_weight))

    def regression(self, vtree: Vtree) -> RegressionCircuit:
        """Build the regression circuit."""
        part = self._part("g")
        weight, bias = part.pop("weight"), part.pop("bias")
        link = self._header.get("link")
        if not isinstance(link, str):
            raise self._damaged("it does not name the circuit's link")
        return self._make(
            lambda: RegressionCircuit(Structure(vtree, **part), weight, bias, link=link)
        )

    def pair(self) -> tuple[ProbabilisticCircuit, RegressionCircuit]:
        """Build the two circuits over one vtree."""
        vtree = self.vtree()
        p, g = self.probabilistic(vtree), self.regression(vtree)
        if not np.array_equal(p.cardinalities, g.cardinalities):
            raise self._damaged("its two circuits differ in how many values a variable has")
        return p, g

    def _check_arrays(self, expected: dict[str, tuple[str, int]]) -> None:
        if extra := set(self._arrays) - set(expected):
            raise self._damaged(f"it has an unknown array {min(extra)!r:.60}")
        for name, (dtype, rank) in expected.items():
            if name not in self._arrays:
                raise self._damaged(f"the array {name!r} is missing")
            array = self._arrays[name]
            if array.dtype != np.dtype(dtype) or array.ndim != rank:
                raise self._damaged(
                    f"the array {name!r} must be {dtype} of {rank} dimension(s), "
                    f"not {array.dtype} of {array.ndim}"
                )
            if name.endswith("_start") and not within(array, 0, LARGEST_START):
                raise self._damaged(f"the array {name!r} holds a number that is out of range")
        if self._arrays["vtree.variable"].min(initial=-1) < -1:
            raise self._damaged("a vtree leaf has a negative variable")

    def _part(self, part: str) -> dict[str, Any]:
        return {name: self._arrays[f"{part}.{name}"] for name in _PARTS[part]}

    def _make(self, build: Callable[[], Made]) -> Made:
        try:
            return build()
        except StructureError as problem:
            raise self._damaged(str(problem)) from None

    def _damaged(self, problem: str) -> FormatError:
        return FormatError(self._path, None, f"the file is damaged: {problem}")
