"""What the two circuit formats share: named nodes at vtree nodes, and Boolean variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from expecta.circuits.builders import Draft, Parameter
from expecta.circuits.structure import Structure
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Ints
from expecta.common.errors import FormatError, StructureError
from expecta.files.text_lines import LineError, Text, natural

__all__ = ["Nodes", "refuse_categorical", "variable_of", "vtree_of"]

Made = TypeVar("Made")


class Nodes:
    """The nodes of a file, by the names they have there, in a draft of the circuit."""

    def __init__(self, vtree: Vtree, vtree_node: Mapping[int, int]) -> None:
        self.draft = Draft(vtree, np.full(vtree.n_variables, 2))
        self._vtree_node = vtree_node  # as the file names them -> as we do
        self._is_leaf: list[bool] = (vtree.variable >= 0).tolist()
        self._number: dict[int, int] = {}  # name in the file -> number in the draft
        self._root: int | None = None
        self._root_row = -1

    def place(self, name: str, vtree_name: str) -> tuple[int, int]:
        """Read the name of a new node and the vtree node it stands at."""
        number = natural(name)
        if number in self._number:
            raise LineError(f"node {number} appears twice")
        position = natural(vtree_name)
        if position not in self._vtree_node:
            raise LineError(f"the vtree given has no node {position}")
        return number, self._vtree_node[position]

    def require_inner(self, v: int) -> None:
        """Refuse an OR node over elements where the vtree has a leaf."""
        if self._is_leaf[v]:
            raise LineError("D stands at a leaf of the vtree, where there are no elements")

    def find(self, names: list[str]) -> list[int]:
        """Look children up; they must have appeared by now, so there can be no cycle."""
        try:
            return [self._number[natural(name)] for name in names]
        except KeyError as missing:
            raise LineError(f"node {missing} does not appear before its parent") from None

    def add(self, name: int, number: int, *, may_be_root: bool) -> None:
        """Remember a node; the last that may be the root is the root."""
        self._number[name] = number
        if may_be_root:
            self._root = number
            self._root_row = len(self._number)  # the header is row 0, and each node has a row

    def finish(self, text: Text, make: Callable[[Structure, list[Parameter | None]], Made]) -> Made:
        """Lay out what the root reaches, and make a circuit of it and its edges' parameters."""
        if self._root is None:
            raise FormatError(text.path, text.last_line, "there is no node to be the root")
        try:
            return make(*self.draft.finish(self._root))
        except StructureError as problem:
            line, _ = text.rows[self._root_row]
            raise FormatError(text.path, line, str(problem)) from None


def vtree_of(text: Text, vtree: Vtree | None, kind: str) -> Vtree:
    """Ask for the vtree, without which a text circuit means nothing."""
    if vtree is None:
        raise FormatError(
            text.path, None, f"{kind} does not hold its vtree: pass vtree=Vtree.load(...)"
        )
    return vtree


def variable_of(token: str) -> int:
    """Read a variable, which counts from 1 in files and from 0 in memory."""
    variable = natural(token)
    if variable == 0:
        raise LineError("variables count from 1")
    return variable - 1


def refuse_categorical(cardinalities: Ints, ending: str) -> None:
    """Refuse to write variables that do not have two values."""
    bad = np.flatnonzero(cardinalities != 2)
    if len(bad):
        raise StructureError(
            f"variable {bad[0]} has {cardinalities[bad[0]]} value(s), and a {ending} file knows "
            f"only Boolean variables: use the native format, under any other ending"
        )
