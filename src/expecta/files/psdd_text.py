"""Read and write the ``.psdd`` format of probabilistic sentential decision diagrams.

``L id vtree literal`` is a point mass, ``T id vtree variable logp`` a Boolean leaf and
``D id vtree k`` with k times ``prime sub logθ`` an OR node. Vtree nodes go by their
in-order position, whatever ids the ``.vtree`` file gave them.
"""

from __future__ import annotations

import math

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.circuits.vtree import Vtree
from expecta.common.errors import StructureError
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

LARGEST_LOG = 1e-9  # read: a log-probability may exceed 0 by rounding, no more
TOLERANCE = 1e-8  # write: how far off one a probability may be and still be called one


def parse_psdd(text: Text, vtree: Vtree | None) -> ProbabilisticCircuit:
    """Read a PSDD over a vtree; nodes that the root does not reach are dropped."""
    text.counted_header("a PSDD", "psdd")
    return PsddReader(vtree_of(text, vtree, "a PSDD")).read(
        text,
        text.rows[1:],
        lambda structure, weights: ProbabilisticCircuit(structure, np.array(weights)),
    )


def format_psdd(circuit: ProbabilisticCircuit) -> str:
    """Write a PSDD; reading it gives an equal circuit if this one came from such a file.

    The format keeps one number of a Boolean leaf. Where the other does not follow from it
    to the last bit, the smaller probability is kept and the larger is off by rounding.
    """
    s = circuit.structure
    refuse_categorical(s.cardinalities, ".psdd")
    weight = circuit.log_weight.tolist()
    target, start = s.target.tolist(), s.edge_start.tolist()
    left, right = s.left.tolist(), s.right.tolist()
    position = s.vtree.inorder[s.layer_of_node].tolist()
    variable = s.vtree.variable[s.layer_of_node].tolist()
    lines = [
        "c A PSDD, written by Expecta. Children come before parents, the root is the last D.",
        "c Vtree nodes go by in-order position; variables count from 1.",
        "c L id vtree literal",
        "c T id vtree variable log(probability of 1)",
        "c D id vtree count, then for each element: prime sub log(probability)",
        f"psdd {s.n_nodes}",
    ]
    for n in range(s.n_nodes):
        edges = range(start[n], start[n + 1])
        name = f"{n} {position[n]}"
        if variable[n] < 0:
            if any(weight[e] > TOLERANCE for e in edges):
                raise _not_normalised(s.name_of(n))
            elements = (
                f"{left[target[e]]} {right[target[e]]} {_as_written(weight[e])}" for e in edges
            )
            lines.append(f"D {name} {len(edges)} {' '.join(elements)}")
            continue
        table = {target[e]: weight[e] for e in edges}
        total = sum(math.exp(min(w, 1.0)) for w in table.values())
        if abs(total - 1.0) > TOLERANCE:
            raise _not_normalised(s.name_of(n))
        if len(table) == 1:
            lines.append(f"L {name} {'' if 1 in table else '-'}{variable[n] + 1}")
        else:
            lines.append(
                f"T {name} {variable[n] + 1} {_as_written(_one_number(table[0], table[1]))}"
            )
    return "\n".join(lines) + "\n"


def log_complement(log_probability: float) -> float:
    """Return log(1 - p) from log p, accurate for small p and for p close to one.

    >>> log_complement(-1e-20) == math.log(1e-20), log_complement(0.0)
    (True, -inf)
    """
    if log_probability >= 0.0:
        return -math.inf
    if log_probability > -math.log(2.0):
        return math.log(-math.expm1(log_probability))
    return math.log1p(-math.exp(log_probability))


def _one_number(log_zero: float, log_one: float) -> float:
    """Choose the log-probability of 1 that says most about both values."""
    if log_complement(log_one) == log_zero or log_one <= log_zero:
        return log_one
    return log_complement(log_zero)


def _as_written(log_probability: float) -> str:
    # repr gives the shortest digits that read back as the same number.
    return repr(log_probability if log_probability <= LARGEST_LOG else 0.0)


def _not_normalised(name: str) -> StructureError:
    return StructureError(
        f"the weights of {name} are not probabilities, which a .psdd file asks for: "
        f"call .normalised() first, or use Expecta's own format, under any other ending"
    )


class PsddReader(CircuitReader):
    """Reads the lines of a PSDD one by one."""

    def __init__(self, vtree: Vtree) -> None:
        super().__init__(vtree, dict(enumerate(np.argsort(vtree.inorder).tolist())))

    def take(self, line: str) -> None:
        """Read an L, T or D line."""
        kind, *tokens = line.split()
        if len(tokens) < 3:
            raise LineError(f"a PSDD line has at least 4 words, and this one has {1 + len(tokens)}")
        name, v = self.position_of(tokens[0], tokens[1])
        if kind == "D":
            number = self._take_decision(v, tokens[2:])
        elif kind == "T":
            number = self._take_boolean(v, tokens[2:])
        elif kind == "L":
            number = self._take_literal(v, tokens[2:])
        else:
            raise LineError(f"a PSDD line starts with L, T or D, not {shown(kind)}")
        self.add(name, number, may_be_root=kind == "D" or self._one_variable)

    def _take_literal(self, v: int, tokens: list[str]) -> int:
        if len(tokens) != 1:
            raise LineError(f"L takes 3 numbers, not {2 + len(tokens)}")
        negative = tokens[0].startswith("-")
        variable = variable_of(tokens[0][1:] if negative else tokens[0])
        return self.draft.add_leaf(v, variable, [(0 if negative else 1, 0.0)])

    def _take_boolean(self, v: int, tokens: list[str]) -> int:
        if len(tokens) != 2:
            raise LineError(f"T takes 4 numbers, not {2 + len(tokens)}")
        variable = variable_of(tokens[0])
        (log_one,) = _log_probabilities(tokens[1:])
        values = [(0, log_complement(log_one)), (1, log_one)]
        return self.draft.add_leaf(v, variable, values)

    def _take_decision(self, v: int, tokens: list[str]) -> int:
        count = natural(tokens[0])
        if count == 0 or len(tokens) != 1 + 3 * count:
            raise LineError(
                f"D announces {count} element(s) of 3 numbers each, "
                f"and {len(tokens) - 1} numbers follow"
            )
        self.require_inner(v)
        primes = self.find(tokens[1::3])
        subs = self.find(tokens[2::3])
        weights = _log_probabilities(tokens[3::3])
        if max(weights) == -math.inf:
            raise LineError("all elements have probability zero")
        return self.draft.add_node(v, list(zip(primes, subs, weights, strict=True)))


def _log_probabilities(tokens: list[str]) -> list[float]:
    values = numbers(tokens)
    for value, token in zip(values, tokens, strict=True):
        if not value <= LARGEST_LOG:  # NaN as well
            raise LineError(f"{shown(token)} is not the logarithm of a probability")
    return values
