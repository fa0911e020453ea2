"""Read the lines, numbers and nodes of a text file strictly.

The three text formats share one shape: a header, then a line per node, children
before parents, and comment lines that start with ``c``. What this module lets
through is plain ASCII on numbered lines; all else is refused with the line it is on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from expecta.circuits.builders import Draft, Parameter
from expecta.circuits.structure import Structure
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Ints
from expecta.common.errors import FormatError, StructureError

MAX_NATURAL = 2**63 - 1  # ids are kept as 64-bit integers
MAX_DIGITS = 19  # digits of the above
MAX_CHARACTERS = 400  # the largest double, written without an exponent, has 309 digits

Result = TypeVar("Result")
Circuit = TypeVar("Circuit")

_KINDS = {
    "vtree": "a vtree",
    "psdd": "a PSDD",
    "Logistic": "a logistic circuit",
    "Logisitic": "a logistic circuit",
    "Regression": "a regression circuit",
}


class LineError(Exception):
    """What is wrong with the line being read; becomes a ``FormatError`` with its line number."""


@dataclass(frozen=True)
class Text:
    """The lines of a file that say something, each with its number in the file."""

    path: str
    rows: list[tuple[int, str]]

    @classmethod
    def of(cls, path: str, data: bytes) -> Text:
        """Split a file into lines; refuse what is not text or holds no line at all."""
        if b"\0" in data:
            line = data.count(b"\n", 0, data.index(b"\0")) + 1
            raise FormatError(path, line, "this is a binary file, and not one that Expecta wrote")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise FormatError(path, line, "this is not UTF-8 text") from None
        rows = []
        for number, whole in enumerate(text.split("\n"), 1):
            line_text = whole.strip()
            if not line_text or line_text[0] == "c":
                continue
            # Python reads 1_000 and the digits of every script as numbers. No tool that
            # writes these formats means that, so neither gets past this line.
            if "_" in line_text or not line_text.isascii():
                raise FormatError(path, number, f"unexpected character in {shown(line_text)}")
            rows.append((number, line_text))
        if not rows:
            raise FormatError(path, None, "the file is empty")
        return cls(path, rows)

    @property
    def last_line(self) -> int:
        """The number of the last line that says something."""
        return self.rows[-1][0]

    def header(self, expected: str, words: Sequence[str]) -> list[str]:
        """Return the words of the first line; refuse a file that is of another kind."""
        line, text = self.rows[0]
        given = text.split()
        if given[0] in words:
            return given
        if given[0] in _KINDS:
            raise FormatError(self.path, line, f"this is {_KINDS[given[0]]}, not {expected}")
        wanted = " or ".join(f'"{word} ..."' for word in words)
        raise FormatError(
            self.path, line, f"the header {wanted} of {expected} is missing; found {shown(text)}"
        )

    def counted_header(self, expected: str, word: str) -> None:
        """Check a header that says how many nodes follow, such as ``vtree 71``."""
        given = self.header(expected, [word])
        follow = len(self.rows) - 1

        def check(text: str) -> None:
            if len(given) != 2:
                raise LineError(f'the header is "{word}" and a number, not {shown(text)}')
            promised = natural(given[1])
            if promised != follow:
                raise LineError(
                    f"the header promises {promised} nodes and {follow} follow: "
                    f"the file may be cut off"
                )

        self.parse(self.rows[0], check)

    def parse(self, row: tuple[int, str], read: Callable[[str], Result]) -> Result:
        """Read one line, and say which line it is where it is wrong."""
        line, text = row
        try:
            return read(text)
        except (LineError, StructureError) as problem:
            raise FormatError(self.path, line, str(problem)) from None


def shown(text: str) -> str:
    """Quote a piece of the file for a message, cut to a readable length."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def natural(token: str) -> int:
    """Read a plain decimal number: no sign, no separators, no other base."""
    if token.isdigit() and len(token) <= MAX_DIGITS:
        value = int(token)
        if value <= MAX_NATURAL:
            return value
    raise LineError(f"expected a whole number, found {shown(token)}")


def numbers(tokens: Sequence[str]) -> list[float]:
    """Read floating-point numbers; infinities and NaN are the caller's to judge."""
    if max(map(len, tokens), default=0) > MAX_CHARACTERS:
        raise LineError(f"a number is longer than {MAX_CHARACTERS} characters")
    try:
        return list(map(float, tokens))
    except ValueError:
        for token in tokens:
            with suppress(ValueError):
                float(token)
                continue
            raise LineError(f"expected a number, found {shown(token)}") from None
        raise


# -- circuits: named nodes at vtree nodes, and Boolean variables ----------------------


class CircuitReader(ABC):
    """Reads the lines of a circuit one by one into a draft of it.

    Parameters
    ----------
    vtree
        The vtree of the circuit.
    vtree_node
        Our number of a vtree node by the one that the file uses.
    """

    def __init__(self, vtree: Vtree, vtree_node: Mapping[int, int]) -> None:
        self.draft = Draft(vtree, np.full(vtree.n_variables, 2))
        self._vtree_node = vtree_node
        self._one_variable = vtree.n_variables == 1  # then there is no D, and a leaf is the root
        self._is_leaf: list[bool] = (vtree.variable >= 0).tolist()
        self._number: dict[int, int] = {}  # name in the file -> number in the draft
        self._root: int | None = None
        self._root_row = -1

    @abstractmethod
    def take(self, line: str) -> None:
        """Read one line, or raise a LineError or StructureError."""

    def read(
        self,
        text: Text,
        rows: Sequence[tuple[int, str]],
        make: Callable[[Structure, list[Parameter | None]], Circuit],
    ) -> Circuit:
        """Read the lines of the nodes, and make a circuit of what the root reaches."""
        for row in rows:
            text.parse(row, self.take)
        if self._root is None:
            raise FormatError(text.path, text.last_line, "there is no node to be the root")
        try:
            return make(*self.draft.finish(self._root))
        except StructureError as problem:
            line, _ = text.rows[self._root_row]
            raise FormatError(text.path, line, str(problem)) from None

    def position_of(self, name: str, vtree_name: str) -> tuple[int, int]:
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
            f"only Boolean variables: use Expecta's own format, under any other ending"
        )
