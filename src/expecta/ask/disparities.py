"""Search groups in which a sensitive attribute moves the prediction, with demographic parity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from expecta.ask.column_parts import ColumnPart, column_parts
from expecta.ask.parity import Parity, parity_of_rows, parity_within
from expecta.ask.populations import Facts, Population
from expecta.ask.printed_answer import PrintedAnswer
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError, TooManyGroupsError
from expecta.common.text import number
from expecta.expected.expected_output import ExpectedOutput

MAX_CASES = 50_000  # groups with an attribute that are compared
TOP = 20  # disparities that are reported where no delta is given
MAX_BATCH = 4096  # groups at a time


@dataclass(frozen=True, eq=False)
class Disparities(PrintedAnswer):
    """Groups in which disclosing a sensitive attribute moves the expected output most.

    The arrays have an entry per disparity, the largest first.

    Attributes
    ----------
    name, given
        What is predicted, and the population.
    group, disclosed
        The group, and what is disclosed of it.
    without, value
        The expected output for the group, and for its members with the attribute.
    gap, error
        ``value - without``, and its error.
    share
        Probability of the group with the attribute.
    delta
        The smallest gap that is reported, or None for the largest ones.
    min_share, tried, skipped
        How many groups with an attribute were compared, and how many were left out because
        their probability is below ``min_share``; groups within these are not counted.
    parity
        Demographic parity of each sensitive column, over all and within parts.
    """

    name: str
    given: str
    group: tuple[str, ...]
    disclosed: tuple[str, ...]
    without: Floats
    value: Floats
    gap: Floats
    error: Floats
    share: Floats
    delta: float | None
    min_share: float
    tried: int
    skipped: int
    parity: tuple[Parity, ...]
    exactness: str

    display = "DisparitiesDisplay"

    def lines(self) -> dict[str, Any]:
        """Return a line per disparity."""
        return {
            "group": list(self.group),
            "disclosed": list(self.disclosed),
            "without": self.without,
            "with": self.value,
            "gap": self.gap,
            "error": self.error,
            "share": self.share,
        }

    def head(self) -> list[str]:
        """Return the sentence before the table."""
        what = f"at least {number(self.delta)}" if self.delta is not None else "the largest"
        return [f"{self.name}, {self.given}: gaps between with and without, {what}"]

    def notes(self) -> list[str]:
        """Return what was compared, and how far the sensitive columns are from parity."""
        sentences = [f"{self.tried} groups with an attribute were compared."]
        if self.skipped:
            sentences.append(
                f"{self.skipped} more were left out, with the groups within them: their "
                f"probability is below {number(self.min_share)}."
            )
        return sentences + [line for parity in self.parity for line in parity.sentences()]


Parts: TypeAlias = tuple[ColumnPart, ...]


class _Case(NamedTuple):
    """A group with something disclosed."""

    group: Parts
    disclosed: Parts


def disparities(
    subject: ExpectedOutput,
    sensitive: str | Sequence[str],
    delta: float | None = None,
    size: int = 2,
    rows: Any = None,
    given: Any = None,
    min_share: float = 0.001,
) -> Disparities:
    """Search groups in which an attribute moves the output; see :meth:`Asking.disparities`.

    ``min_share`` is the smallest probability of a group with the attribute, within ``given``.
    """
    population = Population.read(subject, given)
    names = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    hidden = [subject.encoder.variable(name) for name in names]
    if not hidden or len(set(hidden)) < len(hidden):
        raise DomainError("name one or several sensitive columns, each once")
    if size < 0 or not 0 <= min_share < 1 or (delta is not None and not delta >= 0):
        raise DomainError("size and delta are 0 or more, and min_share lies from 0 up to 1")
    parts = column_parts(subject, population)
    attributes: list[Parts] = [(part,) for variable in hidden for part in parts[variable]]
    if len(hidden) > 1:
        attributes += list(product(*(parts[variable] for variable in hidden)))
    others = [variable for variable in range(len(parts)) if variable not in hidden]
    _check_cases([len(parts[variable]) for variable in others], size, len(attributes))
    cases, skipped = _large_cases(
        subject, population, [parts[v] for v in others], attributes, size, min_share
    )
    gaps = _gaps(subject, population, cases)
    order = np.argsort(-np.abs(gaps.gap), kind="stable")
    order = order[:TOP] if delta is None else order[np.abs(gaps.gap)[order] >= delta]
    parity = [
        parity_within(subject, population, variable, parts, others, min_share)
        for variable in hidden
    ]
    if rows is not None:
        table = subject.table(rows)
        parity += [parity_of_rows(subject, table, variable, parts, others) for variable in hidden]
    return Disparities(
        subject.name,
        population.written,
        tuple(_text(cases[i].group) or "everyone" for i in order.tolist()),
        tuple(_text(cases[i].disclosed) for i in order.tolist()),
        gaps.without[order],
        gaps.value[order],
        gaps.gap[order],
        gaps.error[order],
        gaps.share[order],
        delta,
        min_share,
        len(cases),
        skipped,
        tuple(parity),
        subject.exactness,
    )


def _text(parts: Parts) -> str:
    return " and ".join(part.text for part in parts)


def _facts(parts: Parts) -> Facts:
    return tuple((part.variable, part.values) for part in parts)


def _check_cases(counts: list[int], size: int, attributes: int) -> None:
    """Refuse more cases than can be asked; counts products of up to ``size`` columns' parts."""
    ways = np.zeros(size + 1)
    ways[0] = 1
    for count in counts:
        ways[1:] = ways[1:] + count * ways[:-1]
    total = ways.sum() * attributes
    if total > MAX_CASES:
        raise TooManyGroupsError(
            f"there are {total:,.0f} groups with an attribute, and at most {MAX_CASES:,} are "
            f"compared; lower size, or name fewer sensitive columns"
        )


def _large_cases(
    subject: ExpectedOutput,
    population: Population,
    columns: list[list[ColumnPart]],
    attributes: list[Parts],
    size: int,
    min_share: float,
) -> tuple[list[_Case], int]:
    """Return groups with an attribute that are large enough, and the number of the others.

    Groups have 0, 1, 2, ... facts: what is below the smallest probability is so with a further
    fact too.
    """
    kept: list[_Case] = []
    skipped = 0
    alive: set[tuple[Parts, Parts]] = set()
    for n_facts in range(min(size, len(columns)) + 1):
        cases = [
            _Case(group, disclosed)
            for chosen in combinations(columns, n_facts)
            for group in product(*chosen)
            for disclosed in attributes
            if all(((*group[:i], *group[i + 1 :]), disclosed) in alive for i in range(len(group)))
        ]
        facts = [_facts(case.group + case.disclosed) for case in cases]
        shares = [population.shares(subject, batch) for batch in _batches(facts)]
        share = np.concatenate([np.zeros(0), *shares])
        large = [cases[i] for i in np.flatnonzero((share > 0) & (share >= min_share)).tolist()]
        skipped += len(cases) - len(large)
        alive = set(large)
        kept += large
    return kept, skipped


def _batches(facts: list[Facts]) -> Iterator[list[Facts]]:
    for start in range(0, len(facts), MAX_BATCH):
        yield facts[start : start + MAX_BATCH]


class _Gaps(NamedTuple):
    without: Floats
    value: Floats
    gap: Floats
    error: Floats
    share: Floats


def _gaps(subject: ExpectedOutput, population: Population, cases: list[_Case]) -> _Gaps:
    """Compute the gap of each case; a group is asked once, however much is disclosed."""
    index: dict[Parts, int] = {}
    which: Ints = np.array([index.setdefault(case.group, len(index)) for case in cases], np.int64)
    facts = [_facts(group) for group in index]
    facts += [_facts(case.group + case.disclosed) for case in cases]
    batches = [population.means(subject, batch) for batch in _batches(facts)]
    share, value, error = (
        np.concatenate([np.zeros(0), *(batch[i] for batch in batches)]) for i in range(3)
    )
    n = len(index)
    without, loose = value[:n][which], error[:n][which]
    total = np.hypot(loose, error[n:]) if subject.samples_mean else loose + error[n:]
    return _Gaps(without, value[n:], value[n:] - without, total, share[n:])
