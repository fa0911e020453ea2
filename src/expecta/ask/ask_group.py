"""One group, and two groups compared."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from expecta.ask.group_answers import Comparison, Group
from expecta.ask.language.query import Query
from expecta.common.arrays import Floats
from expecta.expected.distributions import OutputDistribution
from expecta.expected.expected_output import ExpectedOutput

__all__ = ["FEW", "ask", "compare"]

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
FEW = 5.0  # expected training rows below which a group is rare
POINTS = 513  # of a grid on which two distributions are compared
NOTHING = 1e-9  # of the spread: a mean below this is zero


def ask(subject: ExpectedOutput, query: Any = None, facts: dict[str, Any] | None = None) -> Group:
    """Describe a model's output over a group; see :meth:`Asking.ask`."""
    asked = Query.of(query, subject.encoder)
    if facts:
        asked = asked & Query.of(facts, subject.encoder)
    return describe(subject, asked)


def describe(subject: ExpectedOutput, query: Query) -> Group:
    """Describe a model's output over those who meet a condition."""
    evidence = query.parts(subject.encoder)
    log_prob = subject.circuit.log_prob(evidence)
    most = float(log_prob.max())
    possible = most > -np.inf
    weight = np.exp(log_prob - most) if possible else np.zeros(len(log_prob))
    share = float(min(np.exp(most) * weight.sum(), 1.0))
    remarks = list(query.approximate)
    mean, error = subject.average(evidence, weight)
    variance = subject.spreads(evidence, weight[None])[0]

    @cache
    def law() -> OutputDistribution | None:
        return subject.law(evidence, weight) if possible else None

    quantiles, loose = _quantiles(law())
    rows, average = None, None
    if subject.seen is not None:
        inside = query.matches(subject.seen.to_table(subject.encoder)) & (subject.seen.weight > 0)
        rows = int(np.count_nonzero(inside))
        average = subject.seen.average(inside, subject.seen.outcome(subject.of_class))
        if 0 < share * len(subject.seen) < FEW:
            remarks.append(
                f"The group is rare: the density expects {share * len(subject.seen):.1f} such "
                f"training rows."
            )
    if not possible:
        remarks.append("The group has probability zero under the density: nothing can be said.")
    return Group(
        str(query),
        subject.name,
        mean,
        error,
        float(np.sqrt(variance[0])),
        dict(zip(LEVELS.tolist(), quantiles.tolist(), strict=True)),
        dict(zip(LEVELS.tolist(), loose.tolist(), strict=True)),
        share,
        rows,
        average,
        subject.exactness,
        tuple(remarks),
        law,
    )


def _quantiles(law: OutputDistribution | None) -> tuple[Floats, Floats]:
    if law is None:
        return np.full(len(LEVELS), np.nan), np.full(len(LEVELS), np.nan)
    return law.quantiles(LEVELS)


def compare(subject: ExpectedOutput, a: Any, b: Any) -> Comparison:
    """Compare a model's output over two groups; see :meth:`Asking.compare`."""
    first, second = ask(subject, a), ask(subject, b)
    difference = first.mean - second.mean
    error = np.hypot(first.error, second.error) if subject.sampled else first.error + second.error
    size = NOTHING * max(first.std, second.std, abs(first.mean))
    ratio = first.mean / second.mean if abs(second.mean) > size else np.nan
    above, loose = _superiority(first.law(), second.law())
    return Comparison(first, second, difference, float(error), ratio, above, loose)


def _superiority(a: OutputDistribution | None, b: OutputDistribution | None) -> tuple[float, float]:
    """P(A > B) + P(A = B) / 2 on a grid, and how far it may be off for the grid."""
    if a is None or b is None:
        return np.nan, np.nan
    ends = np.concatenate([law.curve(2)[0] for law in (a, b)])
    grid = np.linspace(ends.min(), ends.max(), POINTS)
    below = np.stack([np.concatenate([[0.0], law.cdf(grid), [1.0]]) for law in (a, b)])
    mass = np.diff(below, axis=1)
    middle = 0.5 * (below[1, 1:] + below[1, :-1])
    return float(mass[0] @ middle), float(0.5 * mass[0] @ mass[1])
