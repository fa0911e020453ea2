"""Compute expectations of boxes given sets and weights of values, not values alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from expecta.circuits.evidence import Evidence
from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.common.arrays import Bools, Floats, Ints
from expecta.engine.boxes import BoxExpectation

MAX_CIRCUITS = 256  # that are kept, given some evidence


class SoftBoxes:
    """Expectations of boxes for evidence of any kind. Exact.

    A cell that is a single value, or nothing, is a code that boxes take. Rows that agree in all
    other cells share a circuit, which is the density given these.

    Parameters
    ----------
    circuit
        The density.
    compiled
        The circuit that expectations were compiled for.
    """

    def __init__(self, circuit: ProbabilisticCircuit, compiled: ProbabilisticCircuit) -> None:
        self._circuit, self._compiled = circuit, compiled
        self._given: dict[bytes, ProbabilisticCircuit] = {}

    def __call__(self, expectation: BoxExpectation, evidence: Evidence) -> Floats:
        """Compute the expectation for possible rows of evidence.  # (rows, outputs)."""
        return self._ask(expectation, evidence, BoxExpectation.__call__)

    def variance(self, partition: BoxExpectation, evidence: Evidence) -> Floats:
        """Compute the variance of boxes of which no two overlap.  # (rows, outputs)."""
        return self._ask(partition, evidence, lambda boxes, codes: boxes.variance(codes))

    def _ask(
        self,
        expectation: BoxExpectation,
        evidence: Evidence,
        question: Callable[[BoxExpectation, Ints], Floats],
    ) -> Floats:
        codes, soft = split_codes(evidence)
        groups, which = np.unique(soft, axis=0, return_inverse=True)
        which = which.ravel()
        members = [np.flatnonzero(which == number) for number in range(len(groups))]
        parts = []
        for group, rows in zip(groups, members, strict=True):
            circuit = self._under(evidence, int(rows[0]), group >= 0)
            here = expectation if circuit is self._compiled else expectation.under(circuit)
            parts.append(question(here, codes[rows]))
        out = np.empty((len(codes), expectation.boxes.value.shape[1]))
        for rows, part in zip(members, parts, strict=True):
            out[rows] = part
        return out

    def _under(self, evidence: Evidence, row: int, soft: Bools) -> ProbabilisticCircuit:
        """Return the density given the cells of a row that are sets or weights."""
        if not np.any(soft):
            return self._circuit
        facts = Evidence.unknown(evidence.cardinalities)
        key = b""
        for variable in np.flatnonzero(soft).tolist():
            weights = evidence.states[variable][evidence.codes[variable][row]]
            facts = facts.likelihood(variable, weights)
            key += variable.to_bytes(4, "little") + weights.tobytes()
        if key not in self._given:
            if len(self._given) >= MAX_CIRCUITS:
                self._given.clear()
            self._given[key] = self._circuit.condition(facts)
        return self._given[key]


def split_codes(evidence: Evidence) -> tuple[Ints, Ints]:
    """Return the value of each cell, -1 where it is unknown or soft; and the state of soft ones.

    Both have shape (rows, variables); the state is -1 where a cell is not soft.
    """
    codes = np.full((len(evidence), len(evidence.states)), -1, np.int32)
    soft = codes.copy()
    for variable, (states, numbers) in enumerate(zip(evidence.states, evidence.codes, strict=True)):
        single = np.count_nonzero(states, axis=1) == 1
        unknown = np.all(states == states[:, :1], axis=1)
        value = np.where(single, np.argmax(states > 0, axis=1), -1)
        state = np.where(single | unknown, -1, np.arange(len(states)))
        codes[:, variable], soft[:, variable] = value[numbers], state[numbers]
    return codes, soft
