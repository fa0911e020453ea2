"""Tell whether decisions by a threshold stand, and which columns suffice for them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from numbers import Real
from typing import Any

import numpy as np

from expecta.ask.populations import read_one_row
from expecta.ask.printed_answer import PrintedAnswer
from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import DomainError, ImpossibleEvidenceError
from expecta.common.text import counted, number
from expecta.expected.expected_output import ExpectedOutput

ROUNDING = 1e-9  # a probability this close to the one asked for is that
MAX_COLUMNS = 12  # known columns up to which every set of them is tried


@dataclass(frozen=True, eq=False)
class Stability(PrintedAnswer):
    """Whether decisions would stand if every input were known.  # arrays (rows,).

    Attributes
    ----------
    name, threshold
        What is predicted; the decision is "yes" from the threshold on.
    value, decision
        The expected output given what is known, and the decision by it.
    probability, error
        Probability that the decision is the same once every input is known, and its error.
    """

    name: str
    threshold: float
    value: Floats
    decision: Bools
    probability: Floats
    error: Floats
    exactness: str

    display = "StabilityDisplay"

    def lines(self) -> dict[str, Any]:
        """Return a line per row."""
        return {
            "row": np.arange(len(self.value)),
            "expected": self.value,
            "decision": self.decision,
            "stays": self.probability,
            "error": self.error,
        }

    def head(self) -> list[str]:
        """Return the sentence before the table."""
        return [f"Decision: {self.name} >= {number(self.threshold)}"]

    def notes(self) -> list[str]:
        """Return the sentences after it."""
        off = "; error: how far it may be off" if np.any(self.error > 0) else ""
        return [f"stays: probability that the decision is the same once every input is known{off}."]


def stability(subject: ExpectedOutput, rows: Any, threshold: float) -> Stability:
    """Compute how likely each row's decision stands; see :meth:`Asking.stability`."""
    threshold = _finite(threshold)
    table = subject.table(rows)
    codes = subject.encoder.codes(table)
    value, _ = subject.mean_of_rows(table, np.arange(len(codes)), np.zeros(codes.shape, np.bool_))
    decision = value >= threshold
    probability, error = np.ones(len(codes)), np.zeros(len(codes))
    incomplete = np.any(codes < 0, axis=1)
    if np.any(incomplete):
        evidence = Evidence.rows(codes[incomplete], subject.encoder.cardinalities_)
        above, error[incomplete] = subject.above(evidence, threshold)
        probability[incomplete] = np.where(decision[incomplete], above, 1.0 - above)
    probability[np.isnan(value)] = np.nan
    return Stability(
        subject.name, threshold, value, decision, probability, error, subject.exactness
    )


def _finite(threshold: object) -> float:
    """Refuse a threshold that is not a finite number."""
    if isinstance(threshold, Real) and np.isfinite(float(threshold)):
        return float(threshold)
    raise DomainError(f"a threshold must be a finite number, not {threshold!r:.40}")


@dataclass(frozen=True, eq=False)
class Sufficient(PrintedAnswer):
    """A set of known columns that is sufficient for a decision.

    Attributes
    ----------
    name, threshold, wanted
        What is predicted and decided on, and the probability that was asked for.
    value, decision
        The expected output of the row, and the decision by it.
    columns, values
        The columns that are sufficient, and the row's values. Where no set is sufficient,
        those that come closest.
    probability, error
        Probability of the same decision given these columns alone, and its error.
    enough
        Whether it is as much as was asked for.
    proven
        Whether every smaller set was tried.
    """

    name: str
    threshold: float
    wanted: float
    value: float
    decision: bool
    columns: tuple[str, ...]
    values: tuple[str, ...]
    probability: float
    error: float
    enough: bool
    proven: bool
    exactness: str

    def lines(self) -> dict[str, Any]:
        """Return a line per column."""
        return {"column": list(self.columns), "value": list(self.values)}

    def head(self) -> list[str]:
        """Return the sentences before the table."""
        sign = ">=" if self.decision else "<"
        what = "Sufficient" if self.enough else "No set is sufficient; the closest"
        known = f"with only {counted(len(self.columns), 'column')} known"
        return [
            f"{self.name} {sign} {number(self.threshold)} (expected {number(self.value)})",
            f"{what}: {known if self.columns else 'even if nothing is known'}, the decision is the "
            f"same with probability {number(self.probability)} (required: {number(self.wanted)})",
        ]

    def notes(self) -> list[str]:
        """Return whether there may be a smaller set."""
        if not self.enough:
            return ["All sets were tried." if self.proven else "Not all sets were tried."]
        if self.proven:
            return ["No smaller set is sufficient: all were tried."] * bool(self.columns)
        return ["A smaller set may be sufficient: not all were tried."]


def sufficient(
    subject: ExpectedOutput, row: Any, threshold: float, probability: float = 0.95, width: int = 32
) -> Sufficient:
    """Find a smallest set of columns that keeps a decision; see :meth:`Asking.sufficient`.

    With more than 12 known columns, the sets of a size are the ``width`` most probable of the
    size before with a column more.
    """
    if not 0 < probability <= 1:
        raise DomainError(f"a probability must be between 0 and 1, not {probability!r:.40}")
    threshold = _finite(threshold)
    if width < 1:
        raise DomainError(f"width must be at least 1, not {width!r:.40}")
    table = read_one_row(subject, row)
    codes = subject.encoder.codes(table)[0]
    known = np.flatnonzero(codes >= 0)
    nothing = np.zeros((1, len(codes)), np.bool_)
    value = float(subject.mean_of_rows(table, np.zeros(1, np.int64), nothing)[0][0])
    if np.isnan(value):
        raise ImpossibleEvidenceError(
            "the row has probability zero under the learned density; leave some cells out"
        )
    search = _Search(subject, codes, threshold, value >= threshold)
    enough, best = search.run(known, probability, width)
    likely, error, chosen = enough if enough is not None else best
    return Sufficient(
        subject.name,
        threshold,
        probability,
        value,
        search.decision,
        tuple(subject.columns[variable] for variable in chosen),
        tuple(subject.encoder.columns_[v].labels[codes[v]] for v in chosen),
        likely,
        error,
        enough is not None,
        search.complete,
        subject.exactness,
    )


Candidate = tuple[float, float, tuple[int, ...]]  # probability, its error, columns


class _Search:
    """Look for a set of columns, smaller ones first."""

    def __init__(
        self, subject: ExpectedOutput, codes: Ints, threshold: float, decision: bool
    ) -> None:
        self.subject, self.codes, self.threshold = subject, codes, threshold
        self.decision = decision
        self.complete = True  # every set of the sizes before, and of this where none is enough

    def run(self, known: Ints, wanted: float, width: int) -> tuple[Candidate | None, Candidate]:
        """Return the most probable of the smallest sufficient sets, and of all sets."""
        variables = known.tolist()
        tried = [self.ask([()])[0]]
        best = tried[0]
        for size in range(1, len(variables) + 2):
            if tried[0][0] >= wanted - ROUNDING:
                return tried[0], best
            if size > len(variables):
                break
            if len(variables) <= MAX_COLUMNS:
                sets = list(combinations(variables, size))
            else:
                wider = {
                    tuple(sorted((*chosen, variable)))
                    for _, _, chosen in tried[:width]
                    for variable in variables
                    if variable not in chosen
                }
                sets = sorted(wider)
            whole = len(sets) == comb(len(variables), size)
            tried = self.ask(sets)
            best = max(best, tried[0])
            if tried[0][0] < wanted - ROUNDING:
                self.complete = self.complete and whole
        return None, best

    def ask(self, sets: list[tuple[int, ...]]) -> list[Candidate]:
        """Return the sets with their probabilities, the most probable first."""
        codes = np.full((len(sets), len(self.codes)), -1, np.int32)
        for row, chosen in enumerate(sets):
            codes[row, list(chosen)] = self.codes[list(chosen)]
        evidence = Evidence.rows(codes, self.subject.encoder.cardinalities_)
        above, error = self.subject.above(evidence, self.threshold)
        same = above if self.decision else 1.0 - above
        candidates = zip(same.tolist(), error.tolist(), sets, strict=True)
        return sorted(candidates, key=lambda c: (-np.nan_to_num(c[0], nan=-1.0), c[2]))
