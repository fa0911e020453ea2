"""Densities in files: what was learned and what its columns are, in one safe container."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Floats
from expecta.common.atomic_files import replace_file
from expecta.common.errors import DomainError, FormatError, StructureError
from expecta.densities.density import Density
from expecta.densities.learner import DensityLearner, LearningRecord
from expecta.densities.psdd_density import PSDD
from expecta.densities.tree_densities import ChowLiu, Independent, LatentTree, NaiveBayes
from expecta.densities.tree_learner import TreeLearner
from expecta.files.container import Container
from expecta.files.native import NativeFile, circuit_arrays, opened
from expecta.learn.trees.expectation import Counts
from expecta.learn.trees.layout import TreeLayout
from expecta.learn.trees.tree import RootedTree
from expecta.tables import Encoder

__all__ = ["from_parts", "load", "parts_of", "plain", "save"]

_CLASSES: dict[str, type[Density]] = {
    kind.__name__: kind for kind in (Density, LatentTree, ChowLiu, NaiveBayes, Independent, PSDD)
}
_TREE = {
    "variable": ("int32", 1),
    "parent": ("int32", 1),
    "states": ("int32", 1),
    "theta": ("float64", 1),
    "counts": ("float64", 1),
    "waiting": ("float64", 1),
    "seen": ("float64", 1),
}
LARGEST = 1e15  # number of rows, seconds, nats, that make sense
LARGEST_TREE = 1 << 28  # parameters: bounds what a hostile file can make us allocate


def save(density: Density, path: str | PathLike[str]) -> None:
    """Write a density and its encoding into one file. Atomic."""
    replace_file(os.fspath(path), Container("density", *parts_of(density)).to_bytes())


def parts_of(density: Density) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return what a file holds of a density: a header for JSON, and named arrays."""
    if type(density).__name__ not in _CLASSES:
        raise DomainError(f"a {type(density).__name__} has no file format; pickle it")
    encoder_header, arrays = density.encoder_.state()
    arrays = {f"encoder.{name}": array for name, array in arrays.items()}
    header: dict[str, Any] = {"class": type(density).__name__, "encoder": encoder_header}
    if isinstance(density, DensityLearner):
        header["learned"] = asdict(density.learned_)
        header["parameters"] = _parameters(density)
        arrays["value_counts"] = np.concatenate(density.value_counts_)
    if isinstance(density, TreeLearner):
        arrays |= {f"tree.{name}": array for name, array in density.state().items()}
    else:
        arrays |= circuit_arrays(density.circuit.vtree, density.circuit)
        if isinstance(density, PSDD) and isinstance(density.vtree, Vtree):
            header["parameters"]["vtree"] = None  # it is the circuit's
    return header, arrays


def _parameters(density: DensityLearner) -> dict[str, Any]:
    """Return what was asked for, as JSON; of an encoder only whether it was given."""
    given = density.get_params(deep=False)
    given["encoder"] = given["encoder"] is not None
    found = {name: plain(value) for name, value in given.items()}
    if not isinstance(found["random_state"], int | None):
        raise DomainError("a file holds a random_state that is a whole number or None")
    return found


def plain(value: Any) -> Any:
    """Return a parameter as JSON has it, NumPy's kinds of numbers and lists included."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [plain(one) for one in value] if isinstance(value, tuple | list | range) else value


def load(path: str | PathLike[str]) -> Density:
    """Read a density that :func:`save` wrote; anything else gives a FormatError."""
    name, data = os.fspath(path), Path(path).read_bytes()
    if not Container.recognises(data):
        raise FormatError(name, None, "this is not a file that Density.save wrote")
    container = opened(name, data, "density")
    return from_parts(name, container.header, container.arrays)


def from_parts(
    path: str, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> Density:
    """Return the density that :func:`parts_of` took apart; a FormatError if there is none."""
    return _Reader(path, header, arrays).density()


class _Reader:
    """Checks a file piece by piece; every complaint is a FormatError about it."""

    def __init__(
        self, path: str, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> None:
        self._path, self._header, self._arrays = path, header, dict(arrays)

    def density(self) -> Density:
        kind = self._header.get("class")
        if not isinstance(kind, str) or kind not in _CLASSES:
            self._fail(f"its class is {kind!r:.40}")
        encoder = self._encoder()
        if kind == "Density":
            made: Density = self._make(lambda: Density(self._circuit(), encoder))
            return made
        parameters = self._parameters(_CLASSES[kind], encoder)
        learned = self._learned()
        value_counts = self._value_counts(encoder)
        tree = {name: self._take(f"tree.{name}") for name in _TREE} if self._is_tree(kind) else {}
        found = _CLASSES[kind](**parameters)
        assert isinstance(found, DensityLearner)
        found.encoder_, found.learned_, found.value_counts_ = encoder, learned, value_counts
        found.n_features_in_ = encoder.n_features_in_
        found.feature_names_in_ = encoder.feature_names_in_
        if isinstance(found, TreeLearner):
            self._only(())
            self._restore(found, tree)
        else:
            found.circuit_ = self._circuit()
            if found.vtree is None:
                found.vtree = found.circuit_.vtree
        if not np.array_equal(found.circuit.cardinalities, encoder.cardinalities_):
            self._fail("its circuit and its encoder have other variables")
        return found

    # -- parts ------------------------------------------------------------------------

    def _is_tree(self, kind: str) -> bool:
        return issubclass(_CLASSES[kind], TreeLearner)

    def _encoder(self) -> Encoder:
        header = self._header.get("encoder")
        if not isinstance(header, Mapping):
            self._fail("it does not say what its columns are")
        names = [name for name in self._arrays if name.startswith("encoder.")]
        arrays = {name.removeprefix("encoder."): self._arrays.pop(name) for name in names}
        return Encoder.from_state(self._path, header, arrays)

    def _circuit(self) -> Any:
        container = Container("density", {}, self._arrays)
        file = NativeFile(self._path, container, ("vtree", "p"))
        circuit = file.probabilistic(file.vtree())
        with np.errstate(over="ignore"):
            if not circuit.properties.normalised.holds:
                self._fail("its circuit is not a distribution")
        return circuit

    def _value_counts(self, encoder: Encoder) -> list[Floats]:
        flat = self._take("value_counts", "float64")
        cuts = np.cumsum(encoder.cardinalities_)
        if len(flat) != cuts[-1] or not np.all((flat >= 0) & (flat < LARGEST)):
            self._fail("the counts of its columns' values make no sense")
        return list(np.split(flat, cuts[:-1]))

    def _parameters(self, kind: type, encoder: Encoder) -> dict[str, Any]:
        """Return the constructor's parameters: its names, each with a value of a known sort."""
        given = self._header.get("parameters")
        default = kind().get_params(deep=False)
        if not isinstance(given, dict) or set(given) != set(default):
            self._fail("its parameters are not those of its class")
        for name, value in given.items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            whole = isinstance(value, list) and all(type(k) is int for k in value)
            if name == "encoder":
                good = isinstance(value, bool)
            elif name == "random_state":
                good = value is None or type(value) is int
            elif isinstance(default[name], int | float):
                good = number
            elif name == "states":
                good = type(value) is int or whole
            elif isinstance(default[name], str):
                good = isinstance(value, str) or (name == "vtree" and value is None)
            else:
                good = value is None or number or isinstance(value, str)
            if not good:
                self._fail(f"its parameter {name!r} has no sensible value")
        return {**given, "encoder": encoder if given["encoder"] else None}

    def _learned(self) -> LearningRecord:
        given = self._header.get("learned")
        kinds = {"str": str, "int": int, "float": (int, float)}
        expected = {field.name: kinds[str(field.type)] for field in fields(LearningRecord)}
        if not isinstance(given, dict) or set(given) != set(expected):
            self._fail("it does not say how it was learned")
        for name, kind in expected.items():
            value = given[name]
            good = isinstance(value, kind) and not isinstance(value, bool)  # type: ignore[arg-type]
            if not good or not (isinstance(value, str) or abs(value) < LARGEST or value == -np.inf):
                self._fail(f"its {name!r} is not what it should be")
        return LearningRecord(**given)

    def _restore(self, found: TreeLearner, arrays: dict[str, npt.NDArray[Any]]) -> None:
        for name, (dtype, rank) in _TREE.items():
            if arrays[name].dtype != np.dtype(dtype) or arrays[name].ndim != rank:
                self._fail(f"the array 'tree.{name}' is not {dtype} of {rank} dimension(s)")
        tree = self._make(lambda: RootedTree(arrays["variable"], arrays["parent"]))
        states, theta, seen = arrays["states"], arrays["theta"], arrays["seen"]
        cards = found.encoder_.cardinalities_
        if len(tree) != len(cards) or len(states) != len(cards):
            self._fail("its tree and its encoder have other variables")
        if np.any(states < 1) or np.any(states > len(theta)):
            self._fail("a number of states makes no sense")
        layout = TreeLayout(tree, states, cards[tree.variable])
        counted = [arrays["counts"], arrays["waiting"]]
        if any(len(a) != layout.size for a in (theta, *counted)) or layout.size > LARGEST_TREE:
            self._fail("it has too few or too many parameters")
        if not np.allclose(np.add.reduceat(theta, layout.row_start), 1.0, rtol=1e-6, atol=0):
            self._fail("a distribution does not sum to one")
        if not np.all(theta >= 0) or not all(np.all((a >= 0) & (a < LARGEST)) for a in counted):
            self._fail("a parameter or count is not a number of at least zero")
        if len(seen) != 3 or not np.all((seen >= 0) & (seen < LARGEST)) or seen[2] % 1:
            self._fail("it does not say how many rows it has seen")
        known, waiting = (Counts(a, float(w)) for a, w in zip(counted, seen[:2], strict=True))
        self._make(lambda: found.restore(layout, theta, known, waiting, int(seen[2])))

    # -- checks -----------------------------------------------------------------------

    def _take(self, name: str, dtype: str | None = None) -> npt.NDArray[Any]:
        if name not in self._arrays:
            self._fail(f"the array {name!r} is missing")
        array = self._arrays.pop(name)
        if dtype is not None and (array.dtype != np.dtype(dtype) or array.ndim != 1):
            self._fail(f"the array {name!r} is not {dtype} of 1 dimension")
        return array

    def _only(self, names: tuple[str, ...]) -> None:
        if extra := set(self._arrays) - set(names):
            self._fail(f"it has an unknown array {min(extra)!r:.60}")

    def _make(self, build: Any) -> Any:
        try:
            return build()
        except (StructureError, DomainError) as problem:
            self._fail(str(problem))

    def _fail(self, problem: str) -> NoReturn:
        raise FormatError(self._path, None, f"the file is damaged: {problem}")
