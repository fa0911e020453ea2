"""Circuits and vtrees in files.

The text formats of the field (``.vtree``, ``.psdd``, and ``.glc`` or ``.circuit``) hold
Boolean circuits, each beside the ``.vtree`` it belongs to. Expecta's own format holds any
circuit with its vtree in one file. What is written goes by the ending, what is read by
the content. A file that is damaged or hostile gives a
:class:`~expecta.common.errors.FormatError` that says where and why; saving is atomic.
"""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.circuits.regression import RegressionCircuit
from expecta.circuits.vtree import Vtree
from expecta.common.atomic_files import replace_file
from expecta.common.errors import FormatError, StructureError, VtreeMismatchError
from expecta.files.container import Container
from expecta.files.glc_text import format_glc, parse_glc
from expecta.files.native import NativeFile, encode
from expecta.files.psdd_text import format_psdd, parse_psdd
from expecta.files.text_lines import Text
from expecta.files.vtree_text import format_vtree, parse_vtree

__all__ = [
    "load_pair",
    "load_probabilistic",
    "load_regression",
    "load_vtree",
    "save_pair",
    "save_probabilistic",
    "save_regression",
    "save_vtree",
]

_TEXT_ENDINGS = {
    ".vtree": "a vtree",
    ".psdd": "a probabilistic circuit",
    ".glc": "a regression circuit",
    ".circuit": "a regression circuit",
}


def load_vtree(path: str | PathLike[str]) -> Vtree:
    """Read a vtree from a ``.vtree`` file or Expecta's own format.

    The ids of a ``.vtree`` file are kept in ``Vtree.ids``; a ``.glc`` file beside it
    refers to them.
    """
    name, data = _content(path)
    if Container.recognises(data):
        return NativeFile.read(name, data, "vtree").vtree()
    return parse_vtree(Text.of(name, data))


def load_probabilistic(
    path: str | PathLike[str], vtree: Vtree | None = None
) -> ProbabilisticCircuit:
    """Read a probabilistic circuit from a ``.psdd`` file or Expecta's own format.

    Parameters
    ----------
    path
        The file.
    vtree
        Needed for a ``.psdd`` file. A file in Expecta's own format holds its vtree; one
        given as well must be equal.
    """
    name, data = _content(path)
    if Container.recognises(data):
        file = NativeFile.read(name, data, "probabilistic circuit")
        return file.probabilistic(file.vtree(vtree))
    return parse_psdd(Text.of(name, data), vtree)


def load_regression(path: str | PathLike[str], vtree: Vtree | None = None) -> RegressionCircuit:
    """Read a regression or logistic circuit from a ``.glc`` file or Expecta's own format.

    Parameters
    ----------
    path
        The file.
    vtree
        Needed for a ``.glc`` file. A file in Expecta's own format holds its vtree; one
        given as well must be equal.
    """
    name, data = _content(path)
    if Container.recognises(data):
        file = NativeFile.read(name, data, "regression circuit")
        return file.regression(file.vtree(vtree))
    return parse_glc(Text.of(name, data), vtree)


def load_pair(path: str | PathLike[str]) -> tuple[ProbabilisticCircuit, RegressionCircuit]:
    """Read a distribution and a function over one vtree, as :func:`save_pair` wrote them."""
    name, data = _content(path)
    if not Container.recognises(data):
        Text.of(name, data)  # says so if the file is not even text
        raise FormatError(name, None, "a pair is kept in Expecta's own format, and this is text")
    return NativeFile.read(name, data, "pair").pair()


def save_vtree(vtree: Vtree, path: str | PathLike[str]) -> None:
    """Write a ``.vtree`` file (by that ending), else Expecta's own format. Atomic."""
    text = _is_text(path, "a vtree")
    replace_file(os.fspath(path), format_vtree(vtree).encode() if text else encode(vtree))


def save_probabilistic(circuit: ProbabilisticCircuit, path: str | PathLike[str]) -> None:
    """Write a ``.psdd`` file (by that ending), else Expecta's own format. Atomic.

    A ``.psdd`` file holds Boolean variables only, and says nothing of its vtree: write
    that beside it.
    """
    text = _is_text(path, "a probabilistic circuit")
    data = format_psdd(circuit).encode() if text else encode(circuit.vtree, p=circuit)
    replace_file(os.fspath(path), data)


def save_regression(circuit: RegressionCircuit, path: str | PathLike[str]) -> None:
    """Write ``.glc`` or ``.circuit`` (by that ending), else Expecta's own format. Atomic.

    A ``.glc`` file holds Boolean variables only, and refers to the ids of its vtree: write
    that beside it. Leaves that allow both values are split in two, so the file may hold a
    larger circuit of the same function.
    """
    text = _is_text(path, "a regression circuit")
    data = format_glc(circuit).encode() if text else encode(circuit.vtree, g=circuit)
    replace_file(os.fspath(path), data)


def save_pair(p: ProbabilisticCircuit, g: RegressionCircuit, path: str | PathLike[str]) -> None:
    """Write a distribution and a function over one vtree into one file. Atomic."""
    _is_text(path, "a pair")
    if p.vtree != g.vtree:
        raise VtreeMismatchError("the two circuits of a pair share one vtree, and these do not")
    if not np.array_equal(p.cardinalities, g.cardinalities):
        raise StructureError("the two circuits differ in how many values a variable has")
    replace_file(os.fspath(path), encode(p.vtree, p, g))


def _content(path: str | PathLike[str]) -> tuple[str, bytes]:
    return os.fspath(path), Path(path).read_bytes()


def _is_text(path: str | PathLike[str], kind: str) -> bool:
    """Whether the ending asks for text; refuse an ending that promises something else."""
    ending = Path(path).suffix.lower()
    if ending not in _TEXT_ENDINGS:
        return False
    if _TEXT_ENDINGS[ending] != kind:
        raise StructureError(
            f"a {ending} file holds {_TEXT_ENDINGS[ending]}, and this is {kind}: "
            f"choose another ending"
        )
    return True
