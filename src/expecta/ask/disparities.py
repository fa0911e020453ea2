"""Where a sensitive attribute moves the prediction: groups, and demographic parity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from expecta.ask.column_parts import Part, parts_of
from expecta.ask.parity import Parity, parity_of_rows, parity_within
from expecta.ask.populations import Facts, Population, table_of
from expecta.ask.printed_answer import PrintedAnswer
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.common.text import number
from expecta.expected.expected_output import ExpectedOutput

if TYPE_CHECKING:
    from expecta.ask.displays import DisparitiesDisplay

__all__ = ["Disparities", "disparities"]

MOST = 50_000  # groups and disclosures that are asked
TOP = 20  # disparities that are reported where no delta is given
AT_ONCE = 4096  # groups in one batch


@dataclass(frozen=True, eq=False)
class Disparities(PrintedAnswer):
    """Groups in which disclosing a sensitive attribute moves the expected output most.

    The arrays have an entry per disparity, the largest first.

    Attributes
    ----------
    name, given
        What is predicted, and for whom.
    group, disclosed
        The group, and what is disclosed of it.
    without, value
        The expected output for the group, and for those of it with the attribute.
    gap, error
        ``value - without``, and its error.
    share
        Probability of the group with the attribute.
    delta
        The least gap that is reported, or None for the largest ones.
    tried, skipped
        How many groups with an attribute were compared, and how many were left out because
        their probability is below ``least``, those within them included.
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
    least: float
    tried: int
    skipped: int
    parity: tuple[Parity, ...]
    exactness: str

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

    def plot(self, ax: Any = None) -> DisparitiesDisplay:
        """Draw it, on axes of yours or on new ones; needs matplotlib."""
        from expecta.ask.displays import DisparitiesDisplay

        return DisparitiesDisplay(self).plot(ax)

    def head(self) -> list[str]:
        """Say what was looked for."""
        what = f"at least {number(self.delta)}" if self.delta is not None else "the largest"
        return [f"{self.name}, {self.given}: gaps between with and without, {what}"]

    def notes(self) -> list[str]:
        """Say what was compared, and how far the sensitive columns are from parity."""
        said = [f"{self.tried} groups with an attribute were compared."]
        if self.skipped:
            said.append(
                f"{self.skipped} more were left out, with those within them: their probability is "
                f"below {number(self.least)}."
            )
        return said + [line for parity in self.parity for line in parity.sentences()]


class _Case(NamedTuple):
    """A group with something disclosed."""

    group: tuple[Part, ...]
    disclosed: tuple[Part, ...]


def disparities(
    subject: ExpectedOutput,
    sensitive: str | Sequence[str],
    delta: float | None = None,
    size: int = 2,
    rows: Any = None,
    given: Any = None,
    least: float = 0.001,
) -> Disparities:
    """Find groups in which disclosing a sensitive attribute moves the expected output most.

    A group is a conjunction of up to ``size`` facts on other columns: a category, or one of
    four parts of about equal share that the bins of a number make. Disclosed is one value of
    a sensitive column, or one of each where several are named. The gap is
    E[f | group, attribute] - E[f | group], as exact as means are (``exactness``). Every
    group is compared: no bound is known that would spare some. Only those are left out
    whose probability with the attribute is below ``least``, and groups within such a group,
    which are smaller still.

    Parameters
    ----------
    subject
        What is predicted.
    sensitive
        One or several columns.
    delta
        Report gaps of at least this size; by default the 20 largest.
    size
        Facts that make a group.
    rows
        A table: parity is then also that of its rows' predictions. A row in which the
        sensitive column is unknown counts for each of its values with the exact posterior
        probability given the rest of the row.
    given
        A condition that holds for all groups.
    least
        Least probability of a group with the attribute, within ``given``.

    Returns
    -------
    Disparities
        Cost: two expectations for each group and attribute. More than 50,000 of them are an
        error.
    """
    population = Population.of(subject, given)
    names = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    hidden = [subject.encoder.variable(name) for name in names]
    if not hidden or len(set(hidden)) < len(hidden):
        raise DomainError("name one or several sensitive columns, each once")
    if size < 0 or not 0 <= least < 1 or (delta is not None and not delta >= 0):
        raise DomainError("size and delta are 0 or more, and least lies from 0 up to 1")
    parts = parts_of(subject, population)
    attributes: list[tuple[Part, ...]] = [
        (part,) for variable in hidden for part in parts[variable]
    ]
    if len(hidden) > 1:
        attributes += list(product(*(parts[variable] for variable in hidden)))
    others = [variable for variable in range(len(parts)) if variable not in hidden]
    _affordable([len(parts[variable]) for variable in others], size, len(attributes))
    kept, skipped = _cases(subject, population, parts, others, attributes, size, least)
    found = _gaps(subject, population, kept)
    order = np.argsort(-np.abs(found.gap), kind="stable")
    order = order[:TOP] if delta is None else order[np.abs(found.gap)[order] >= delta]
    parity = [
        parity_within(subject, population, hidden_, parts, others, least) for hidden_ in hidden
    ]
    if rows is not None:
        table = table_of(subject, rows)
        parity += [parity_of_rows(subject, table, hidden_, parts, others) for hidden_ in hidden]
    chosen = [kept[i] for i in order.tolist()]
    return Disparities(
        subject.name,
        population.written,
        tuple(_said(case.group) or "everyone" for case in chosen),
        tuple(_said(case.disclosed) for case in chosen),
        found.without[order],
        found.value[order],
        found.gap[order],
        found.error[order],
        found.share[order],
        delta,
        least,
        len(kept),
        skipped,
        tuple(parity),
        subject.exactness,
    )


def _said(parts: tuple[Part, ...]) -> str:
    return " and ".join(part.text for part in parts)


def _affordable(counts: list[int], size: int, attributes: int) -> None:
    """Refuse more groups than can be asked; counts products of up to so many columns' parts."""
    ways = np.zeros(size + 1)
    ways[0] = 1
    for count in counts:
        ways[1:] = ways[1:] + count * ways[:-1]
    total = ways.sum() * attributes
    if total > MOST:
        raise DomainError(
            f"there are {total:,.0f} groups with an attribute, and at most {MOST:,} are compared; "
            f"lower size, or name fewer sensitive columns"
        )


def _cases(
    subject: ExpectedOutput,
    population: Population,
    parts: list[list[Part]],
    others: list[int],
    attributes: list[tuple[Part, ...]],
    size: int,
    least: float,
) -> tuple[list[_Case], int]:
    """Return groups with an attribute that are large enough, level by level; and the rest's count.

    What is below the least probability is so with a further fact too.
    """
    kept: list[_Case] = []
    skipped = 0
    alive: set[tuple[tuple[Part, ...], tuple[Part, ...]]] = set()
    for level in range(min(size, len(others)) + 1):
        cases = [
            _Case(group, disclosed)
            for group in _groups(parts, others, level)
            for disclosed in attributes
            if all(((*group[:i], *group[i + 1 :]), disclosed) in alive for i in range(len(group)))
        ]
        shares = _in_batches(population, subject, cases)
        large = [
            case for case, share in zip(cases, shares, strict=True) if share > 0 and share >= least
        ]
        skipped += len(cases) - len(large)
        alive = set(large)
        kept += large
    return kept, skipped


def _groups(parts: list[list[Part]], others: list[int], size: int) -> Iterator[tuple[Part, ...]]:
    for columns in combinations(others, size):
        yield from product(*(parts[column] for column in columns))


def _facts(parts: tuple[Part, ...]) -> Facts:
    return tuple((part.variable, part.values) for part in parts)


def _in_batches(population: Population, subject: ExpectedOutput, cases: list[_Case]) -> Floats:
    facts = [_facts(case.group + case.disclosed) for case in cases]
    found = [
        population.shares(subject, facts[start : start + AT_ONCE])
        for start in range(0, len(facts), AT_ONCE)
    ]
    return np.concatenate([np.zeros(0), *found])


class _Found(NamedTuple):
    share: Floats
    without: Floats
    value: Floats
    gap: Floats
    error: Floats


def _gaps(subject: ExpectedOutput, population: Population, cases: list[_Case]) -> _Found:
    """Compute the gap of each case; a group is asked once, however much is disclosed."""
    place: dict[tuple[Part, ...], int] = {}
    which: Ints = np.array([place.setdefault(case.group, len(place)) for case in cases], np.int64)
    asked = [_facts(group) for group in place]
    asked += [_facts(case.group + case.disclosed) for case in cases]
    found = [
        population.means(subject, asked[start : start + AT_ONCE])
        for start in range(0, len(asked), AT_ONCE)
    ]
    share, value, error = (
        np.concatenate([np.zeros(0), *(getattr(one, name) for one in found)])
        for name in ("share", "value", "error")
    )
    n = len(place)
    without, with_, loose = value[:n][which], value[n:], error[:n][which]
    total = np.hypot(loose, error[n:]) if subject.sampled else loose + error[n:]
    return _Found(share[n:], without, with_, with_ - without, total)
