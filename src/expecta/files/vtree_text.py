"""Read and write ``.vtree`` files: ``L id variable`` and ``I id left right``, children first."""

from __future__ import annotations

import numpy as np

from expecta.circuits.vtree import Vtree
from expecta.common.errors import FormatError, StructureError
from expecta.files.text_lines import LineError, Text, natural, shown


def parse_vtree(text: Text, given: Vtree | None = None) -> Vtree:
    """Read a vtree; its ``ids`` are those of the file, whatever vtree is given."""
    text.counted_header("a vtree", "vtree")
    reader = VtreeReader(len(text.rows) // 2)
    for row in text.rows[1:]:
        text.parse(row, reader.take)
    try:
        return reader.finish()
    except (LineError, StructureError) as problem:
        raise FormatError(text.path, text.last_line, str(problem)) from None


def format_vtree(vtree: Vtree) -> str:
    """Write a vtree under its own ids; variables count from 1 in files."""
    if np.any(vtree.ids < 0):
        raise StructureError("the ids of a vtree must not be negative in a file")
    ids = vtree.ids.tolist()
    lines = [
        "c A vtree, written by Expecta. Children come before parents; variables count from 1.",
        "c L id variable",
        "c I id left right",
        f"vtree {len(vtree)}",
    ]
    nodes = zip(
        ids, vtree.left.tolist(), vtree.right.tolist(), vtree.variable.tolist(), strict=True
    )
    for name, left, right, variable in nodes:
        if variable >= 0:
            lines.append(f"L {name} {variable + 1}")
        else:
            lines.append(f"I {name} {ids[left]} {ids[right]}")
    return "\n".join(lines) + "\n"


class VtreeReader:
    """Reads the lines of a vtree one by one; nodes are numbered in the order of the file."""

    def __init__(self, n_variables: int) -> None:
        self._n_variables = n_variables
        self._number: dict[int, int] = {}  # id in the file -> number
        self._children: list[tuple[int, int] | None] = []
        self._variable: list[int] = []
        self._seen: set[int] = set()  # variables
        self._orphans: set[int] = set()  # ids of nodes that still wait for a parent

    def take(self, line: str) -> None:
        """Read an L or I line."""
        kind, *tokens = line.split()
        expected = {"L": 2, "I": 3}.get(kind)
        if expected is None:
            raise LineError(f"a vtree line starts with L or I, not {shown(kind)}")
        if len(tokens) != expected:
            raise LineError(f"{kind} takes {expected} numbers, not {len(tokens)}")
        name, *rest = map(natural, tokens)
        if name in self._number:
            raise LineError(f"node {name} appears twice")
        if kind == "L":
            self._children.append(None)
            self._variable.append(self._take_variable(rest[0]))
        else:
            left, right = (self._take_child(child) for child in rest)
            self._children.append((left, right))
            self._variable.append(-1)
        self._number[name] = len(self._variable) - 1
        self._orphans.add(name)

    def _take_variable(self, variable: int) -> int:
        if not 1 <= variable <= self._n_variables:
            raise LineError(
                f"variable {variable} is not among the 1 .. {self._n_variables} "
                f"of a vtree of this size"
            )
        if variable in self._seen:
            raise LineError(f"variable {variable} appears at a second leaf")
        self._seen.add(variable)
        return variable - 1

    def _take_child(self, name: int) -> int:
        if name not in self._number:
            raise LineError(f"child {name} does not appear before its parent")
        if name not in self._orphans:
            raise LineError(f"node {name} has a second parent")
        self._orphans.remove(name)
        return self._number[name]

    def finish(self) -> Vtree:
        """Return the vtree, its nodes in post-order."""
        if len(self._orphans) != 1:
            raise LineError(f"a vtree has one root, not {len(self._orphans)}")
        names = list(self._number)
        order: list[int] = []  # root, right, left: post-order from its end
        todo = [len(names) - 1]  # parents follow children, so the one root is last
        while todo:
            node = todo.pop()
            order.append(node)
            todo += self._children[node] or ()
        order.reverse()
        position = {node: i for i, node in enumerate(order)}
        below = [self._children[node] for node in order]
        return Vtree(
            left=np.array([position[pair[0]] if pair else -1 for pair in below]),
            right=np.array([position[pair[1]] if pair else -1 for pair in below]),
            variable=np.array([self._variable[node] for node in order]),
            ids=np.array([names[node] for node in order]),
        )
