"""Read and write the ``.glc`` (or ``.circuit``) format of logistic and regression circuits.

``T id vtree variable φ…`` is the literal variable = 1, ``F …`` the literal variable = 0,
``D id vtree k`` with k times ``(prime sub φ…)`` an OR node, and the last line ``B bias…``.
There is one parameter per output. Vtree nodes go by the ids of the ``.vtree`` file.
"""

from __future__ import annotations

import math

import numpy as np

from expecta.circuits.regression import RegressionCircuit
from expecta.circuits.vtree import Vtree
from expecta.common.errors import FormatError, StructureError
from expecta.files.text_lines import (
    CircuitReader,
    LineError,
    Text,
    natural,
    numbers,
    refuse_categorical,
    shown,
    variable_of,
    vtree_of,
)

_LINKS = {
    "Logistic": "logistic",
    "Logisitic": "logistic",  # so spelt by the learner that most of these files come from
    "Regression": "identity",
}


def parse_glc(text: Text, vtree: Vtree | None) -> RegressionCircuit:
    """Read a circuit over a vtree; nodes that the root does not reach are dropped."""
    header = text.header("a logistic or regression circuit", list(_LINKS))
    if header[1:] != ["Circuit"]:
        line, words = text.rows[0]
        raise FormatError(text.path, line, f'expected "{header[0]} Circuit", found {shown(words)}')
    vtree = vtree_of(text, vtree, "a logistic or regression circuit")
    bias = text.parse(text.rows[-1], _bias)
    link = _LINKS[header[0]]
    return GlcReader(vtree, len(bias)).read(
        text,
        text.rows[1:-1],
        lambda structure, weights: RegressionCircuit(structure, np.array(weights), bias, link=link),
    )


def format_glc(circuit: RegressionCircuit) -> str:
    """Write a circuit; reading it gives an equal one if this one came from such a file.

    The format has literals only. A leaf that allows both values becomes two literals, and
    an element over it two elements, so that what is read back is the same function on a
    larger structure.
    """
    s = circuit.structure
    refuse_categorical(s.cardinalities, ".glc")
    if np.any(s.vtree.ids < 0):
        raise StructureError("the ids of a vtree must not be negative in a file")
    weight = [" ".join(map(repr, row)) for row in circuit.weight.tolist()]
    target, start = s.target.tolist(), s.edge_start.tolist()
    left, right = s.left.tolist(), s.right.tolist()
    vtree_id = s.vtree.ids[s.layer_of_node].tolist()
    variable = s.vtree.variable[s.layer_of_node].tolist()
    lines = [
        "c A circuit, written by Expecta. Children come before parents, the root is the last D.",
        "c Vtree nodes go by the ids of the vtree file; variables count from 1.",
        "c T id vtree variable parameters: the literal that the variable is 1",
        "c F id vtree variable parameters: the literal that the variable is 0",
        "c D id vtree count, then for each element: (prime sub parameters)",
        "c B bias",
        "Logistic Circuit" if circuit.link == "logistic" else "Regression Circuit",
    ]
    names: list[list[int]] = []  # what each node is called in the file; two names if split
    used = 0
    for n in range(s.n_nodes):
        edges = range(start[n], start[n + 1])
        if variable[n] >= 0:
            for name, e in enumerate(edges, used):
                kind = "T" if target[e] == 1 else "F"
                lines.append(f"{kind} {name} {vtree_id[n]} {variable[n] + 1} {weight[e]}")
            names.append(list(range(used, used + len(edges))))
        else:
            elements = [
                f"({a} {b} {weight[e]})"
                for e in edges
                for a in names[left[target[e]]]
                for b in names[right[target[e]]]
            ]
            lines.append(f"D {used} {vtree_id[n]} {len(elements)} {' '.join(elements)}")
            names.append([used])
        used += len(names[-1])
    lines.append("B " + " ".join(map(repr, circuit.bias.tolist())))
    return "\n".join(lines) + "\n"


class GlcReader(CircuitReader):
    """Reads the node lines of a regression circuit one by one."""

    def __init__(self, vtree: Vtree, outputs: int) -> None:
        super().__init__(vtree, {name: v for v, name in enumerate(vtree.ids.tolist())})
        self._outputs = outputs
        # Over one variable there is no D to join the literals: each line is the union of
        # the literals so far, and the last one the root.
        self._union: list[tuple[int, list[float]]] = []

    def take(self, line: str) -> None:
        """Read a T, F or D line."""
        kind = line.split(maxsplit=1)[0]
        if kind == "D":
            self._take_decision(line)
        elif kind in ("T", "F"):
            self._take_literal(line)
        elif kind == "B":
            raise LineError("B, the bias, must be the last line")
        else:
            raise LineError(f"a circuit's line starts with T, F, D or B, not {shown(kind)}")

    def _take_literal(self, line: str) -> None:
        kind, *tokens = line.split()
        if len(tokens) != 3 + self._outputs:
            raise LineError(
                f"{kind} takes 3 numbers and one per output, of which B has {self._outputs}; "
                f"found {len(tokens)}"
            )
        name, v = self.position_of(tokens[0], tokens[1])
        variable = variable_of(tokens[2])
        values = [(int(kind == "T"), _finite(tokens[3:]))]
        if self._one_variable:
            if any(value == values[0][0] for value, _ in self._union):
                raise LineError("over a single variable each literal appears once")
            values = self._union = self._union + values
        number = self.draft.add_leaf(v, variable, values)
        self.add(name, number, may_be_root=self._one_variable)

    def _take_decision(self, line: str) -> None:
        head, *groups = line.split("(")
        tokens = head.split()
        if len(tokens) != 4:
            raise LineError(f"D takes 3 numbers before its elements, not {len(tokens) - 1}")
        name, v = self.position_of(tokens[1], tokens[2])
        count = natural(tokens[3])
        if count == 0 or count != len(groups):
            raise LineError(f"D announces {count} element(s), and {len(groups)} follow")
        self.require_inner(v)
        elements = []
        for group in groups:
            body, closed, rest = group.partition(")")
            if not closed or rest.strip():
                raise LineError(f"an element is (prime sub parameters), not {shown('(' + group)}")
            inside = body.split()
            if len(inside) != 2 + self._outputs:
                raise LineError(
                    f"an element has 2 numbers and one per output, of which B has "
                    f"{self._outputs}; found {len(inside)}"
                )
            left, right = self.find(inside[:2])
            elements.append((left, right, _finite(inside[2:])))
        self.add(name, self.draft.add_node(v, elements), may_be_root=True)


def _bias(line: str) -> list[float]:
    kind, *tokens = line.split()
    if kind != "B":
        raise LineError("the last line must be B, the bias; the file may be cut off")
    if not tokens:
        raise LineError("B needs at least one number")
    return _finite(tokens)


def _finite(tokens: list[str]) -> list[float]:
    values = numbers(tokens)
    if not all(map(math.isfinite, values)):
        bad = next(t for t, value in zip(tokens, values, strict=True) if not math.isfinite(value))
        raise LineError(f"a parameter is a finite number, not {shown(bad)}")
    return values
