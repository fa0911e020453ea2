"""Save and load vtrees, circuits and pairs: as text by the ending, or in Expecta's own format."""

from __future__ import annotations

import os
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.circuits.regression import RegressionCircuit
from expecta.circuits.structure import Structure
from expecta.circuits.vtree import Vtree
from expecta.common.atomic_files import replace_file
from expecta.common.errors import FormatError, StructureError, VtreeMismatchError
from expecta.common.file_input import read_bytes
from expecta.files.container import Container
from expecta.files.glc_text import format_glc, parse_glc
from expecta.files.psdd_text import format_psdd, parse_psdd
from expecta.files.schema import Array, Kind, Record, Scalar
from expecta.files.text_lines import Text
from expecta.files.vtree_text import format_vtree, parse_vtree

MAX_START = 2**40  # beyond any file, and far from where differences of integers overflow

_VTREE = Record(
    {
        "left": Array("int32", "nodes"),
        "right": Array("int32", "nodes"),
        "variable": Array("int32", "nodes", low=-1),
        "ids": Array("int64", "nodes"),
    },
    make=Vtree,
)
_STRUCTURE = {
    "cardinalities": Array("int32", None),
    "node_start": Array("int64", "layers", low=0, high=MAX_START),
    "element_start": Array("int64", "layers", low=0, high=MAX_START),
    "left": Array("int32", "elements"),
    "right": Array("int32", "elements"),
    "edge_start": Array("int64", None, low=0, high=MAX_START),
    "target": Array("int32", "edges"),
}


def _parts(circuit: ProbabilisticCircuit | RegressionCircuit) -> dict[str, Any]:
    fields = (_P if isinstance(circuit, ProbabilisticCircuit) else _G).fields
    return {
        name: getattr(circuit.structure if name in _STRUCTURE else circuit, name) for name in fields
    }


_P = Record({**_STRUCTURE, "log_weight": Array("float64", "edges", finite=False)}, parts=_parts)
_G = Record(
    {
        **_STRUCTURE,
        "weight": Array("float64", "edges", "outputs"),
        "bias": Array("float64", "outputs"),
        "link": Scalar(str),
    },
    parts=_parts,
)


def _distribution(vtree: Vtree, p: dict[str, Any]) -> ProbabilisticCircuit:
    log_weight = p.pop("log_weight")
    return ProbabilisticCircuit(Structure(vtree, **p), log_weight)


def _function(vtree: Vtree, g: dict[str, Any]) -> RegressionCircuit:
    own = {name: g.pop(name) for name in ("weight", "bias", "link")}
    return RegressionCircuit(Structure(vtree, **g), **own)


def _pair(
    vtree: Vtree, p: dict[str, Any], g: dict[str, Any]
) -> tuple[ProbabilisticCircuit, RegressionCircuit]:
    pair = _distribution(vtree, p), _function(vtree, g)
    _pair_parts(pair)
    return pair


def _pair_parts(pair: tuple[ProbabilisticCircuit, RegressionCircuit]) -> dict[str, Any]:
    p, g = pair
    if p.vtree != g.vtree:
        raise VtreeMismatchError("the two circuits of a pair share one vtree, and these do not")
    if not np.array_equal(p.cardinalities, g.cardinalities):
        raise StructureError("the two circuits differ in how many values a variable has")
    return {"vtree": p.vtree, "p": p, "g": g}


DISTRIBUTION = Record(
    {"vtree": _VTREE, "p": _P}, _distribution, parts=lambda p: {"vtree": p.vtree, "p": p}
)
PAIR = Record({"vtree": _VTREE, "p": _P, "g": _G}, _pair, _pair_parts)
_FUNCTION = Record(
    {"vtree": _VTREE, "g": _G}, _function, parts=lambda g: {"vtree": g.vtree, "g": g}
)


class _Form(NamedTuple):
    """How one kind of thing is kept in files."""

    words: str
    schema: Record
    endings: tuple[str, ...] = ()  # of its text format, if it has one
    format: Callable[[Any], str] | None = None
    parse: Callable[[Text, Vtree | None], Any] | None = None


_FORMS = {
    "vtree": _Form("a vtree", _VTREE, (".vtree",), format_vtree, parse_vtree),
    "probabilistic circuit": _Form(
        "a probabilistic circuit", DISTRIBUTION, (".psdd",), format_psdd, parse_psdd
    ),
    "regression circuit": _Form(
        "a regression circuit", _FUNCTION, (".glc", ".circuit"), format_glc, parse_glc
    ),
    "pair": _Form("a pair", PAIR),
}


def save(kind: str, value: Any, path: str | PathLike[str]) -> None:
    """Write text where the ending says so, else Expecta's own format. Atomic.

    Text holds Boolean variables only. A ``.psdd`` or ``.glc`` file does not hold its vtree:
    save that beside it. In ``.glc`` files leaves that allow both values are split in two, so
    that the file may hold a larger circuit of the same function.

    Parameters
    ----------
    kind
        "vtree", "probabilistic circuit", "regression circuit", or "pair".
    value
        What to write; a pair is a tuple of a distribution and a function over one vtree.
    path
        The file; one of an ending that promises something else is refused.
    """
    ending, form = Path(path).suffix.lower(), _FORMS[kind]
    for other in _FORMS.values():
        if ending in other.endings and other is not form:
            raise StructureError(
                f"a {ending} file holds {other.words}, and this is {form.words}: "
                f"choose another ending"
            )
    if form.format is not None and ending in form.endings:
        replace_file(os.fspath(path), form.format(value).encode())
    else:
        Kind(kind, form.schema).save(value, path)


def load(kind: str, path: str | PathLike[str], vtree: Vtree | None = None) -> Any:
    """Read what :func:`save` wrote, text or not by the content.

    A ``.psdd`` or ``.glc`` file needs its ``vtree``. A file in Expecta's own format holds it;
    one given as well must be equal. The ids of a ``.vtree`` file are kept in ``Vtree.ids``.
    """
    name, data, form = os.fspath(path), read_bytes(path), _FORMS[kind]
    if not Container.recognises(data):
        text = Text.of(name, data)
        if form.parse is None:
            problem = f"{form.words} is kept in Expecta's own format, and this is text"
            raise FormatError(name, None, problem)
        return form.parse(text, vtree)
    value = Kind(kind, form.schema).from_bytes(name, data)
    if vtree is None:
        return value
    if vtree != value.vtree:
        raise VtreeMismatchError(
            f"{name}: the circuit in this file is over another vtree than the one given; "
            f"it holds its own, so none needs to be given"
        )
    return (_distribution if kind == "probabilistic circuit" else _function)(vtree, _parts(value))
