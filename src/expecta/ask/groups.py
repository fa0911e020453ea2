"""Describe a model's output over one group, and compare two groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from expecta.ask.language.query import Query
from expecta.ask.populations import Population
from expecta.ask.printed_answer import PrintedAnswer, plain
from expecta.ask.training_averages import training_average
from expecta.common.arrays import Floats
from expecta.common.data_frames import as_frame
from expecta.common.errors import ImpossibleEvidenceError
from expecta.common.text import number
from expecta.expected.distributions import OutputDistribution
from expecta.expected.expected_output import ExpectedOutput
from expecta.tables.training_rows import Average

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
RARE_ROWS = 5.0  # expected training rows below which a group is rare
GRID_POINTS = 513  # on which two distributions are compared
MAX_LOOSE = 0.02  # of a variance: bounds above this are said
ZERO = 1e-9  # of the spread: a mean below this is zero


@dataclass(frozen=True, eq=False)
class Group(PrintedAnswer):
    """What a model says about a group.

    Attributes
    ----------
    query
        The group, in words.
    name, is_probability
        What the model's output is called, and whether it is the probability of a class.
    mean, error
        Expectation of the model's output over the group; its error: a bound where it is
        computed, a standard error where it is sampled, 0 where it is exact.
    std
        Spread of the model's output over the group. Not the uncertainty of y.
    quantiles, quantile_errors
        Quantiles of the model's output over the group, by level, and how far they may be off.
    share
        Probability of the group under the density.
    rows
        How many training rows are in the group for certain; None if neither they nor sums over
        such groups were kept.
    rows_mean
        Plain average of the target over these, with a 95% interval; None for fewer than two.
    exactness, remarks
        What is exact; what to bear in mind about this answer.
    distribution
        Distribution of the model's output over the group, None for probability zero.
    """

    query: str
    name: str
    is_probability: bool
    mean: float
    error: float
    std: float
    quantiles: Mapping[float, float]
    quantile_errors: Mapping[float, float]
    share: float
    rows: int | None
    rows_mean: Average | None
    exactness: str
    remarks: tuple[str, ...]
    distribution: OutputDistribution | None = field(repr=False)

    display = "GroupDisplay"

    def curve(self) -> tuple[Floats, Floats]:
        """Return a grid of outputs, and the share of the group at or below each."""
        if self.distribution is None:
            return np.zeros(0), np.zeros(0)
        return self.distribution.curve()

    def head(self) -> list[str]:
        """Return the sentence before the table."""
        return [f"{self.name} where {self.query}"]

    def lines(self) -> Mapping[str, Sequence[Any]]:
        """Return a line for each number."""
        rows = {
            "mean": number(self.mean) + (f" ± {number(self.error)}" if self.error > 0 else ""),
            "standard deviation": number(self.std),
            **{f"{level:.0%} quantile": number(x) for level, x in self.quantiles.items()},
            "share of the population": f"{self.share:.3%}",
        }
        if self.rows is not None:
            rows["training rows"] = str(self.rows)
        if self.rows_mean is not None:
            rows["their average"] = str(self.rows_mean)
        return {"of the model's output": list(rows), "": list(rows.values())}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as what JSON holds; NaN is None."""
        fields = super().to_dict()
        del fields["distribution"]
        average = None if self.rows_mean is None else vars(self.rows_mean)
        return fields | {"rows_mean": plain(average)}

    def to_frame(self) -> Any:
        """Return one line as a pandas or polars frame, or a dict where neither is installed."""
        average = self.rows_mean
        line = {
            "query": self.query,
            "mean": self.mean,
            "error": self.error,
            "std": self.std,
            **{f"q{100 * level:g}": x for level, x in self.quantiles.items()},
            "share": self.share,
            "rows": np.nan if self.rows is None else self.rows,
            "rows_mean": np.nan if average is None else average.mean,
            "rows_low": np.nan if average is None else average.low,
            "rows_high": np.nan if average is None else average.high,
        }
        return as_frame({name: np.array([value]) for name, value in line.items()}, None)


@dataclass(frozen=True, eq=False)
class Comparison(PrintedAnswer):
    """What a model says about two groups.

    Attributes
    ----------
    a, b
        The groups.
    difference, error
        Mean of a less that of b, and its error.
    ratio
        Mean of a over that of b; NaN where the latter is nearly zero.
    superiority, superiority_error
        Probability that the model's output for a random member of a exceeds that for one of
        b, ties counted half; how far it may be off.
    """

    a: Group
    b: Group
    difference: float
    error: float
    ratio: float
    superiority: float
    superiority_error: float

    display = "ComparisonDisplay"

    def head(self) -> list[str]:
        """Return the sentences before the table."""
        both = f"{self.a.name} where {self.a.query}, and where {self.b.query}"
        empty = [group.query for group in (self.a, self.b) if group.distribution is None]
        if empty:
            return [f"{both}: not comparable, probability zero where {' and where '.join(empty)}"]
        ratio = "" if np.isnan(self.ratio) else f", the ratio {number(self.ratio)}"
        return [
            f"{both}: the difference is {number(self.difference)}{ratio}",
            f"A random member of the first group is above one of the second with probability "
            f"{self.superiority:.3f}.",
        ]

    def lines(self) -> Mapping[str, Sequence[Any]]:
        """Return both groups, a line each."""
        both = (self.a, self.b)
        columns: dict[str, Sequence[Any]] = {
            "group": [group.query for group in both],
            "mean": [group.mean for group in both],
            "std": [group.std for group in both],
            "share": [group.share for group in both],
        }
        if self.a.rows is not None and self.b.rows is not None:
            averages = [group.rows_mean for group in both]
            columns["rows"] = [group.rows for group in both]
            columns["rows_mean"] = [np.nan if mean is None else mean.mean for mean in averages]
        return columns

    def notes(self) -> list[str]:
        """Return the sentences after it."""
        return [*dict.fromkeys((*self.a.remarks, *self.b.remarks)), self.a.exactness]


def ask(subject: ExpectedOutput, query: Any = None, facts: dict[str, Any] | None = None) -> Group:
    """Describe a model's output over a group; see :meth:`Asking.ask`."""
    condition = Query.read(query, subject.encoder)
    if facts:
        condition = condition & Query.read(facts, subject.encoder)
    remarks = list(condition.approximate)
    mean, error, std, share = np.nan, np.nan, np.nan, 0.0
    quantiles = quantile_errors = np.full(len(LEVELS), np.nan)
    distribution: OutputDistribution | None = None
    try:
        group = Population.read(subject, condition)
    except ImpossibleEvidenceError:
        remarks.append("The group has probability zero under the learned density: no answer.")
    else:
        share = float(min(np.exp(group.scale) * group.weight.sum(), 1.0))
        summary = subject.describe_groups(group.evidence, group.weight[None])
        mean, error = float(summary.mean[0]), float(summary.error[0])
        variance, loose = float(summary.variance[0]), float(summary.variance_error[0])
        std = float(np.sqrt(variance))
        if not subject.samples_variance and loose > MAX_LOOSE * variance:
            ends = [number(float(np.sqrt(max(variance + by, 0.0)))) for by in (-loose, loose)]
            remarks.append(f"The standard deviation lies between {ends[0]} and {ends[1]}.")
        distribution = subject.distribution(group.evidence, group.weight)
        quantiles, quantile_errors = distribution.quantiles(LEVELS)
    seen = training_average(subject, condition)
    remarks += seen.remarks
    if subject.training_rows is not None:
        expected_rows = share * len(subject.training_rows)
        if 0 < expected_rows < RARE_ROWS:
            remarks.append(
                f"The group is rare: the density expects {expected_rows:.1f} such training rows."
            )
    return Group(
        str(condition),
        subject.name,
        subject.is_probability,
        mean,
        error,
        std,
        dict(zip(LEVELS.tolist(), quantiles.tolist(), strict=True)),
        dict(zip(LEVELS.tolist(), quantile_errors.tolist(), strict=True)),
        share,
        seen.rows,
        seen.mean,
        subject.exactness,
        tuple(remarks),
        distribution,
    )


def compare(subject: ExpectedOutput, a: Any, b: Any) -> Comparison:
    """Compare a model's output over two groups; see :meth:`Asking.compare`."""
    first, second = ask(subject, a), ask(subject, b)
    difference = first.mean - second.mean
    error = first.error + second.error
    if subject.samples_mean:
        error = np.hypot(first.error, second.error)
    smallest = ZERO * max(first.std, second.std, abs(first.mean))
    ratio = first.mean / second.mean if abs(second.mean) > smallest else np.nan
    superiority = _superiority(first.distribution, second.distribution)
    return Comparison(first, second, difference, float(error), ratio, *superiority)


def _superiority(a: OutputDistribution | None, b: OutputDistribution | None) -> tuple[float, float]:
    """Return P(A > B) + P(A = B) / 2 on a grid, and the error that the grid may cause."""
    if a is None or b is None:
        return np.nan, np.nan
    ends = np.concatenate([both.curve(2)[0] for both in (a, b)])
    grid = np.linspace(ends.min(), ends.max(), GRID_POINTS)
    below = np.stack([np.concatenate([[0.0], both.cdf(grid), [1.0]]) for both in (a, b)])
    mass = np.diff(below, axis=1)
    middle = 0.5 * (below[1, 1:] + below[1, :-1])
    return float(mass[0] @ middle), float(0.5 * mass[0] @ mass[1])
