"""Search groups in which a sensitive attribute moves the prediction, with demographic parity.

Of all conjunctions of a few facts, those are reported in which the gap is most evident: largest
against its standard error. Many are compared, so that some gaps are beyond chance by chance: of
those said to be, at most 5% are expected to be so (Benjamini and Hochberg).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import ndtr

from expecta.ask.case_moments import case_moments, is_inside
from expecta.ask.checks.chance import beyond_chance
from expecta.ask.column_parts import ColumnPart, column_parts
from expecta.ask.language.query import Query, where
from expecta.ask.parity import Parity, parity_of_rows, parity_within
from expecta.ask.populations import Facts, Population
from expecta.ask.printed_answer import PrintedAnswer
from expecta.ask.source_means import check_population, source_means
from expecta.ask.training_outputs import density_draws
from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import DomainError
from expecta.common.text import number
from expecta.expected.expected_output import ExpectedOutput
from expecta.tables.group_sums import GroupSums
from expecta.tables.training_rows import TrainingRows

MAX_CASES = 20_000  # groups with an attribute that are compared
MAX_COMPARED = 2000  # of the most evident, among which near-duplicates are looked for
OVERLAP = 0.8  # members in common, of those in either, from which cases are near-duplicates
TOP = 20  # disparities that are reported where no delta is given
MAX_BATCH = 4096  # groups at a time


@dataclass(frozen=True, eq=False)
class Disparities(PrintedAnswer):
    """Groups in which disclosing a sensitive attribute moves the expected output most.

    The arrays have an entry per disparity, the most evident first.

    Attributes
    ----------
    name, given
        What is predicted, and the population.
    group, disclosed
        The group, and what is disclosed of it.
    without, value
        The expected output for the group, and for its members with the attribute.
    gap, standard_error, numerical_error
        ``value - without``, its standard error, NaN where nothing is known of training rows, and
        how far the density's part may be off.
    beyond_chance
        Whether the gap differs from zero beyond chance: of all that are said to, at most 5% are
        expected to do so by chance. All False where standard errors are not known.
    share, rows, rows_mean
        Probability of the group with the attribute; how many training rows have it, and the
        plain average of their target, NaN where they are not known.
    population
        What means are over: the density, the training rows, or both.
    delta
        The smallest gap that is reported, or None for the largest ones.
    min_share, tried, skipped, unseen, alike
        How many groups with an attribute were compared, how many were left out because their
        probability is below ``min_share`` (groups within these are not counted), how many because
        there are too many, and how many since they have nearly the members of a more evident one.
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
    standard_error: Floats
    numerical_error: Floats
    beyond_chance: Bools
    share: Floats
    rows: Floats
    rows_mean: Floats
    population: str
    delta: float | None
    min_share: float
    tried: int
    skipped: int
    unseen: int
    alike: int
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
            "standard_error": self.standard_error,
            "numerical_error": self.numerical_error,
            "beyond_chance": self.beyond_chance,
            "share": self.share,
            "rows": self.rows,
            "rows_mean": self.rows_mean,
        }

    def head(self) -> list[str]:
        """Return the sentence before the table."""
        what = f"gaps of at least {number(self.delta)}, " if self.delta is not None else ""
        change = "how much its mean changes when a sensitive value is known"
        return [f"{self.name}{where(self.given)}: {change}, {what}the most evident first"]

    def notes(self) -> list[str]:
        """Return what was compared, and how far the sensitive columns are from parity."""
        sentences = [] if len(self.gap) else ["No gap is that large."]
        sentences += [f"{self.tried:,} groups with a sensitive value were compared."]
        if self.skipped:
            sentences.append(
                f"{self.skipped:,} more were left out, with the groups within them: their "
                f"probability is below {number(self.min_share)}."
            )
        if self.unseen:
            sentences.append(
                f"{self.unseen:,} groups, the least probable ones, were not compared: at most "
                f"{MAX_CASES:,} are."
            )
        if self.alike:
            sentences.append(
                f"{self.alike:,} are not shown: groups with more evidence have nearly their rows."
            )
        if np.any(np.isfinite(self.standard_error)) and not np.any(self.beyond_chance):
            sentences.append("No gap is beyond chance.")
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
    population: str = "both",
    max_overlap: float = OVERLAP,
) -> Disparities:
    """Search groups in which an attribute moves the output; see :meth:`Asking.disparities`.

    ``min_share`` is the smallest probability of a group with the attribute, within ``given``;
    cases with more than ``max_overlap`` of their members in common are shown once.
    """
    check_population(population, subject)
    whole = Population.read(subject, given)
    names = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    hidden = [subject.encoder.variable(name) for name in names]
    if not hidden or len(set(hidden)) < len(hidden):
        raise DomainError("give one or more sensitive columns, each once")
    if size < 0 or not 0 <= min_share < 1 or (delta is not None and not delta >= 0):
        raise DomainError("size and delta must be at least 0, and min_share at least 0 and below 1")
    parts = column_parts(subject, whole)
    attributes: list[Parts] = [(part,) for variable in hidden for part in parts[variable]]
    if len(hidden) > 1:
        attributes += list(product(*(parts[variable] for variable in hidden)))
    others = [variable for variable in range(len(parts)) if variable not in hidden]
    found = _large_cases(subject, whole, [parts[v] for v in others], attributes, size, min_share)
    cases = found.cases
    gaps = _gaps(subject, whole, Query.read(given, subject.encoder), cases, population)
    known = np.isfinite(gaps.standard_error) & (gaps.standard_error > 0)
    size_of_gap = np.abs(gaps.gap)
    evidence = np.where(known, size_of_gap / np.where(known, gaps.standard_error, 1.0), 0.0)
    beyond = beyond_chance(np.where(known, 2.0 * ndtr(-evidence), np.nan))
    order: Ints = np.lexsort((-size_of_gap, -evidence if np.any(known) else 0.0 * size_of_gap))
    order = order if delta is None else order[size_of_gap[order] >= delta]
    wanted = TOP if delta is None else len(order)
    order, alike = _distinct(subject, cases, order, wanted, max_overlap)
    parity = [
        parity_within(subject, whole, variable, parts, others, min_share) for variable in hidden
    ]
    if rows is not None:
        table = subject.table(rows)
        parity += [parity_of_rows(subject, table, variable, parts, others) for variable in hidden]
    return Disparities(
        subject.name,
        whole.written,
        tuple(_text(cases[i].group) or "everyone" for i in order.tolist()),
        tuple(_text(cases[i].disclosed) for i in order.tolist()),
        gaps.without[order],
        gaps.value[order],
        gaps.gap[order],
        gaps.standard_error[order],
        gaps.numerical_error[order],
        beyond[order],
        gaps.share[order],
        gaps.rows[order],
        gaps.rows_mean[order],
        population,
        delta,
        min_share,
        len(cases),
        found.skipped,
        found.unseen,
        alike,
        tuple(parity),
        subject.exactness,
    )


def _distinct(
    subject: ExpectedOutput, cases: list[_Case], order: Ints, wanted: int, max_overlap: float
) -> tuple[Ints, int]:
    """Return the first cases of an order without near-duplicates, and how many these are.

    Members are compared over samples from the density, among the most evident 2,000 cases.
    """
    order, rest = order[:MAX_COMPARED], order[MAX_COMPARED:]
    codes = density_draws(subject).codes[:MAX_BATCH]
    kept: list[int] = []
    members: dict[Parts, list[Bools]] = {}
    alike = 0
    for i in order.tolist():
        if len(kept) >= wanted:
            break
        case = cases[i]
        inside = is_inside(codes, _facts(case.group + case.disclosed))
        before = members.setdefault(case.disclosed, [])
        if any(
            np.count_nonzero(inside & one) > max_overlap * np.count_nonzero(inside | one)
            for one in before
        ):
            alike += 1
            continue
        before.append(inside)
        kept.append(i)
    more = rest[: wanted - len(kept)]
    return np.concatenate([np.array(kept, np.int64), more]), alike


def _text(parts: Parts) -> str:
    return " and ".join(part.text for part in parts)


def _facts(parts: Parts) -> Facts:
    return tuple((part.variable, part.values) for part in parts)


class _Cases(NamedTuple):
    cases: list[_Case]
    skipped: int  # less probable than the smallest that is looked at
    unseen: int  # left out since there are too many


def _large_cases(
    subject: ExpectedOutput,
    population: Population,
    columns: list[list[ColumnPart]],
    attributes: list[Parts],
    size: int,
    min_share: float,
) -> _Cases:
    """Return groups with an attribute that are large enough, and how many are left out.

    Groups have 0, 1, 2, ... facts: what is below the smallest probability is so with a further
    fact too. Where there are too many, those are taken whose parts are most probable.
    """
    kept: list[_Case] = []
    skipped = unseen = 0
    alive: dict[tuple[Parts, Parts], float] = {}
    for n_facts in range(min(size, len(columns)) + 1):
        cases, bounds = [], []
        for chosen in combinations(columns, n_facts):
            for group in product(*chosen):
                for disclosed in attributes:
                    above = [
                        alive.get(((*group[:i], *group[i + 1 :]), disclosed))
                        for i in range(len(group))
                    ]
                    if None not in above:
                        cases.append(_Case(group, disclosed))
                        bounds.append(min((b for b in above if b is not None), default=1.0))
        room = MAX_CASES - len(kept)
        if len(cases) > room:
            first = np.sort(np.argsort(-np.array(bounds), kind="stable")[:room])
            unseen += len(cases) - len(first)
            cases = [cases[i] for i in first.tolist()]
        facts = [_facts(case.group + case.disclosed) for case in cases]
        shares = [population.shares(subject, batch) for batch in _batches(facts)]
        share = np.concatenate([np.zeros(0), *shares])
        large = np.flatnonzero((share > 0) & (share >= min_share)).tolist()
        skipped += len(cases) - len(large)
        alive = {cases[i]: float(share[i]) for i in large}
        kept += [cases[i] for i in large]
    return _Cases(kept, skipped, unseen)


def _batches(facts: list[Facts]) -> Iterator[list[Facts]]:
    for start in range(0, len(facts), MAX_BATCH):
        yield facts[start : start + MAX_BATCH]


class _Gaps(NamedTuple):
    without: Floats
    value: Floats
    gap: Floats
    standard_error: Floats
    numerical_error: Floats
    share: Floats
    rows: Floats
    rows_mean: Floats


def _gaps(
    subject: ExpectedOutput,
    whole: Population,
    condition: Query,
    cases: list[_Case],
    population: str,
) -> _Gaps:
    """Compute the gap of each case; a group is asked once, however much is disclosed."""
    index: dict[Parts, int] = {}
    which: Ints = np.array([index.setdefault(case.group, len(index)) for case in cases], np.int64)
    groups = [*index, *(case.group for case in cases)]
    disclosed: list[Parts] = [() for _ in index]
    disclosed += [case.disclosed for case in cases]
    facts = [_facts(a + b) for a, b in zip(groups, disclosed, strict=True)]
    batches = [whole.means(subject, batch) for batch in _batches(facts)]
    share, value, error = (
        np.concatenate([np.zeros(0), *(batch[i] for batch in batches)]) for i in range(3)
    )
    rows = subject.training_rows
    inside = condition.matches(rows) if isinstance(rows, TrainingRows) else None
    everyone = not condition.boxes or condition.boxes == ((),)
    if isinstance(rows, GroupSums) and not everyone:
        inside = np.zeros(0, np.bool_)  # sums do not say which rows are in a population
    moments = case_moments(
        subject, [_facts(group) for group in groups], [_facts(d) for d in disclosed], inside
    )
    of_all = share * np.exp(whole.scale) * whole.weight.sum()
    means = source_means(
        subject, population, value, error, moments.variance, moments.output, of_all
    )
    n = len(index)
    ends, starts = np.arange(n, len(value)), which
    overlap = np.sqrt(np.minimum(share[ends] / np.where(share[starts] > 0, share[starts], 1), 1))
    loose = error[starts], error[ends]
    return _Gaps(
        means.mean[starts],
        means.mean[ends],
        means.mean[ends] - means.mean[starts],
        means.at(ends).difference_error(means.at(starts), overlap),
        np.hypot(*loose) if subject.samples_mean else loose[0] + loose[1],
        share[ends],
        moments.rows[ends],
        moments.rows_mean[ends],
    )
