"""Decisions by a threshold: whether they stand, and what is enough for them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from expecta.ask.populations import one_row, table_of
from expecta.ask.printed_answer import PrintedAnswer
from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import DomainError, ImpossibleEvidenceError
from expecta.common.text import number
from expecta.expected.expected_output import ExpectedOutput

if TYPE_CHECKING:
    from expecta.ask.displays import StabilityDisplay

__all__ = ["Stability", "Sufficient", "stability", "sufficient"]

ROUNDING = 1e-9  # a probability this close to the one asked for is that
ALL = 12  # known columns up to which every set of them is tried


@dataclass(frozen=True, eq=False)
class Stability(PrintedAnswer):
    """Whether decisions would stand if everything were known.  # arrays (rows,).

    Attributes
    ----------
    name, threshold
        What is predicted; the decision is "yes" from the threshold on.
    value, decision
        The expected output given what is known, and the decision by it.
    probability, error
        Probability that the decision is the same once all is known, and its error.
    """

    name: str
    threshold: float
    value: Floats
    decision: Bools
    probability: Floats
    error: Floats
    exactness: str

    def lines(self) -> dict[str, Any]:
        """Return a line per row."""
        return {
            "row": np.arange(len(self.value)),
            "expected": self.value,
            "decision": self.decision,
            "stays": self.probability,
            "error": self.error,
        }

    def plot(self, ax: Any = None) -> StabilityDisplay:
        """Draw it, on axes of yours or on new ones; needs matplotlib."""
        from expecta.ask.displays import StabilityDisplay

        return StabilityDisplay(self).plot(ax)

    def head(self) -> list[str]:
        """Say what is decided."""
        return [f"Decision: {self.name} >= {number(self.threshold)}"]

    def notes(self) -> list[str]:
        """Say what the columns are."""
        return ["stays: probability that the decision is the same once all is known."]


def stability(subject: ExpectedOutput, rows: Any, threshold: float) -> Stability:
    """Compute the probability that each row's decision stands once everything is known.

    The decision is whether E[f | what is known] >= threshold, and it stands with
    P(f >= threshold | what is known) or the complement of it, up to ``error`` (a bound, or
    a standard error; see ``exactness``). A complete row's decision stands. ``rows`` is a
    table, or one row as a mapping. Cost: one distribution per distinct row.
    """
    threshold = _finite(threshold)
    table = table_of(subject, rows)
    codes = subject.encoder.codes(table)
    places = np.arange(len(codes))
    value, _ = subject.of_table(table, places, np.zeros(codes.shape, np.bool_))
    decision = value >= threshold
    probability, error = np.ones(len(codes)), np.zeros(len(codes))
    left = np.any(codes < 0, axis=1)
    if np.any(left):
        evidence = Evidence.rows(codes[left], subject.encoder.cardinalities_)
        above, error[left] = subject.above(evidence, threshold)
        probability[left] = np.where(decision[left], above, 1.0 - above)
    probability[np.isnan(value)] = np.nan
    return Stability(
        subject.name, threshold, value, decision, probability, error, subject.exactness
    )


def _finite(threshold: object) -> float:
    """Refuse a threshold that is no finite number."""
    if not isinstance(threshold, int | float | np.integer | np.floating) or not np.isfinite(
        threshold
    ):
        raise DomainError(f"a threshold is a finite number, not {threshold!r:.40}")
    return float(threshold)


@dataclass(frozen=True, eq=False)
class Sufficient(PrintedAnswer):
    """A set of known columns that is enough for a decision.

    Attributes
    ----------
    name, threshold, wanted
        What is predicted and decided on, and the probability that was asked for.
    value, decision
        The expected output of the row, and the decision by it.
    columns, values
        The columns that are enough, and what the row has there. Where no set is enough,
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
        """Say what is enough, and how surely."""
        sign = ">=" if self.decision else "<"
        what = "Enough" if self.enough else "Nothing is enough, closest"
        return [
            f"{self.name} {sign} {number(self.threshold)} (expected {number(self.value)})",
            f"{what}: {len(self.columns)} column(s), alone they give the same decision with "
            f"probability {number(self.probability)} (asked for {number(self.wanted)})",
        ]

    def notes(self) -> list[str]:
        """Say whether there may be a smaller set."""
        if not self.enough:
            return ["All sets were tried." if self.proven else "Not all sets were tried."]
        if self.proven:
            return ["No smaller set is enough: all were tried."]
        return ["A smaller set may be enough: not all were tried."]


def sufficient(
    subject: ExpectedOutput, row: Any, threshold: float, probability: float = 0.95, width: int = 32
) -> Sufficient:
    """Find a smallest set of known columns that keeps the row's decision by itself.

    A set is enough if P(f >= threshold | these columns), or the complement where the row's
    decision is "no", is at least ``probability``, with all other columns unknown. Sizes 0,
    1, 2, ... are tried in turn and, of the sets of one size that are enough, the surest is
    taken. With up to 12 known columns all sets are tried, and the answer is a smallest one;
    with more, sets of a size are the ``width`` surest of the size before with a column more,
    and ``proven`` says whether none was left out. Probabilities are those of
    :func:`stability`. Cost: a distribution for each set that is tried.
    """
    if not 0 < probability <= 1:
        raise DomainError(f"a probability lies between 0 and 1, not {probability!r:.40}")
    threshold = _finite(threshold)
    if width < 1:
        raise DomainError(f"width is 1 or more, not {width!r:.40}")
    table = one_row(subject, row)
    codes = subject.encoder.codes(table)[0]
    known = np.flatnonzero(codes >= 0)
    nothing = np.zeros((1, len(codes)), np.bool_)
    value = float(subject.of_table(table, np.zeros(1, np.int64), nothing)[0][0])
    if np.isnan(value):
        raise ImpossibleEvidenceError("the row has probability zero under the density")
    search = _Search(subject, codes, threshold, value >= threshold)
    found, best = search.run(known, probability, width)
    sure, error, chosen = found if found is not None else best
    labels = [subject.encoder.columns_[place].labels[codes[place]] for place in chosen]
    return Sufficient(
        subject.name,
        threshold,
        probability,
        value,
        search.decision,
        tuple(subject.columns[place] for place in chosen),
        tuple(labels),
        sure,
        error,
        found is not None,
        search.complete,
        subject.exactness,
    )


Candidate = tuple[float, float, tuple[int, ...]]  # probability, its error, columns


class _Search:
    """Looks for a set of columns, smaller ones first."""

    def __init__(
        self, subject: ExpectedOutput, codes: Ints, threshold: float, decision: bool
    ) -> None:
        self.subject, self.codes, self.threshold = subject, codes, threshold
        self.decision = decision
        self.complete = True  # every set of the sizes before, and of this where none is enough

    def run(self, known: Ints, wanted: float, width: int) -> tuple[Candidate | None, Candidate]:
        """Return the surest of the smallest sets that are enough, and the surest of all."""
        places = known.tolist()
        tried = [self.ask([()])[0]]
        best = tried[0]
        for size in range(1, len(places) + 2):
            if tried[0][0] >= wanted - ROUNDING:
                return tried[0], best
            if size > len(places):
                break
            if len(places) <= ALL:
                sets = list(combinations(places, size))
            else:
                wider = {
                    tuple(sorted((*one[2], place)))
                    for one in tried[:width]
                    for place in places
                    if place not in one[2]
                }
                sets = sorted(wider)
            whole = len(sets) == comb(len(places), size)
            tried = self.ask(sets)
            best = max(best, tried[0])
            if tried[0][0] < wanted - ROUNDING:
                self.complete = self.complete and whole
        return None, best

    def ask(self, sets: list[tuple[int, ...]]) -> list[Candidate]:
        """Return the sets with their probabilities, the surest first."""
        codes = np.full((len(sets), len(self.codes)), -1, np.int32)
        for row, one in enumerate(sets):
            codes[row, list(one)] = self.codes[list(one)]
        evidence = Evidence.rows(codes, self.subject.encoder.cardinalities_)
        above, error = self.subject.above(evidence, self.threshold)
        sure = above if self.decision else 1.0 - above
        found = zip(sure.tolist(), error.tolist(), sets, strict=True)
        return sorted(found, key=lambda one: (-np.nan_to_num(one[0], nan=-1.0), one[2]))
