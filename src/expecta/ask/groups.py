"""Describe a model's output over one group, and compare two groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri

from expecta.ask.language.query import Query, where
from expecta.ask.populations import Population
from expecta.ask.printed_answer import PrintedAnswer, first_sentence, plain
from expecta.ask.source_means import SourceMeans, check_population, source_means
from expecta.ask.training_averages import training_average
from expecta.common.arrays import Floats
from expecta.common.data_frames import as_frame
from expecta.common.errors import ImpossibleEvidenceError
from expecta.common.text import counted, number
from expecta.expected.distributions import OutputDistribution
from expecta.expected.expected_output import ExpectedOutput
from expecta.tables.training_rows import Average

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
RARE_ROWS = 5.0  # expected training rows below which a group is rare
GRID_POINTS = 513  # on which two distributions are compared
MAX_LOOSE = 0.02  # of a variance: bounds above this are said
ZERO = 1e-9  # of the spread: a mean below this is zero
CHANCE = 0.01  # probability of a gap between the sources, below which it is said
MIN_AVERAGED = 20  # training rows from which on a model is compared with their target
NORMAL_95 = 1.959963984540054  # standard errors on each side that cover 95%


@dataclass(frozen=True, eq=False)
class Group(PrintedAnswer):
    """What a model says about a group.

    Attributes
    ----------
    query
        The group, in words.
    name, is_probability
        What the model's output is called, and whether it is the probability of a class.
    population
        What the mean is over: the density, the training rows, or both.
    mean, standard_error
        Expectation of the model's output over the group, and how far it is typically from that
        over all such members: by chance in the training rows and by faults of the density. NaN
        where nothing is known of training rows.
    density_mean, density_error, numerical_error
        Expectation under the density, exact or up to ``numerical_error``: a bound where it is
        computed, a standard error where it is sampled, 0 where it is exact; and the standard
        error that is typical of this density, as learned from its training rows.
    rows_output, rows_error
        The mean of the model's output over the training rows in the group, and its standard error
        by the spread of those rows; NaN where they are not known. Rows with missing cells that
        may belong to the group count in the mean by the probability that they do.
    rows_weight
        The weight of ``rows_output`` in the mean, from 0 to 1.
    std
        Spread of the model's output over the group, under the density. Not the uncertainty of y.
    share
        Probability of the group under the density.
    rows
        How many training rows are in the group for certain; None if neither they nor sums over
        such groups were kept.
    rows_mean
        Plain average of the *target* over these, with a 95% interval; None for fewer than two.
    exactness, remarks
        What is exact; what to bear in mind about this answer.
    """

    query: str
    name: str
    is_probability: bool
    population: str
    mean: float
    standard_error: float
    density_mean: float
    density_error: float
    numerical_error: float
    rows_output: float
    rows_error: float
    rows_weight: float
    std: float
    share: float
    rows: int | None
    rows_mean: Average | None
    exactness: str
    remarks: tuple[str, ...]
    sources: SourceMeans = field(repr=False)
    _distribution: Callable[[], OutputDistribution | None] = field(repr=False)

    display = "GroupDisplay"

    @property
    def interval(self) -> tuple[float, float]:
        """An interval that holds the mean over all such members with probability 95%."""
        half = NORMAL_95 * self.standard_error
        low, high = self.mean - half, self.mean + half
        return (max(low, 0.0), min(high, 1.0)) if self.is_probability else (low, high)

    @cached_property
    def distribution(self) -> OutputDistribution | None:
        """Distribution of the model's output under the density; None for probability zero."""
        return self._distribution()

    @cached_property
    def _quantiles(self) -> tuple[Floats, Floats]:
        if self.distribution is None:
            return np.full(len(LEVELS), np.nan), np.full(len(LEVELS), np.nan)
        return self.distribution.quantiles(LEVELS)

    @property
    def quantiles(self) -> Mapping[float, float]:
        """Quantiles of the model's output over the group, under the density, by level."""
        return dict(zip(LEVELS.tolist(), self._quantiles[0].tolist(), strict=True))

    @property
    def quantile_errors(self) -> Mapping[float, float]:
        """How far the quantiles may be off, by level."""
        return dict(zip(LEVELS.tolist(), self._quantiles[1].tolist(), strict=True))

    def curve(self) -> tuple[Floats, Floats]:
        """Return a grid of outputs, and the share of the group at or below each."""
        if self.distribution is None:
            return np.zeros(0), np.zeros(0)
        return self.distribution.curve()

    @property
    def trust(self) -> str:
        """A sentence on how far the mean can be trusted; empty where nothing is known of it."""
        if not np.isfinite(self.standard_error):
            return ""
        low, high = map(number, self.interval)
        sentence = f"Mean {number(self.mean)}, probably between {low} and {high} (95%)"
        if self.population != "both":
            return f"{sentence}, by the {self.population} alone."
        if not np.isfinite(self.rows_output):
            return f"{sentence}: by the density alone, with its typical error."
        share = f"{self.rows_weight:.0%}"
        weight = f"training rows count {share} and the density the rest"
        if share in ("0%", "100%"):
            weight = f"by {'training rows' if share == '100%' else 'the density'}, almost alone"
        return f"{sentence}: {weight}."

    def head(self) -> list[str]:
        """Return the sentences before the table."""
        return [f"{self.name}{where(self.query)}", *filter(None, [self.trust])]

    def lines(self) -> Mapping[str, Sequence[Any]]:
        """Return a line for each number; of a group that is impossible there are few."""
        rows = {"mean": _with_error(self.mean, self.standard_error)}
        if np.isfinite(self.standard_error):
            rows["  by the density"] = _with_error(self.density_mean, self.density_error)
            rows["  by training rows"] = _with_error(self.rows_output, self.rows_error)
        if self.numerical_error > 0:
            rows["  numerical error"] = number(self.numerical_error)
        if self.share > 0:
            rows["standard deviation"] = number(self.std)
            rows |= {f"{level:.0%} quantile": number(x) for level, x in self.quantiles.items()}
        rows["share of the population"] = f"{self.share:.3%}"
        if self.rows is not None:
            rows["training rows"] = str(self.rows)
        if self.rows_mean is not None:
            rows["average of their target"] = str(self.rows_mean)
        return {"of the model's output": list(rows), "": list(rows.values())}

    def _last(self) -> list[str]:
        return super()._last() if self.share > 0 else self.notes()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as what JSON holds; NaN is None."""
        fields = super().to_dict()
        del fields["_distribution"], fields["sources"]
        average = None if self.rows_mean is None else vars(self.rows_mean)
        fields |= {"interval": plain(self.interval), "rows_mean": plain(average)}
        quantiles = {"quantiles": self.quantiles, "quantile_errors": self.quantile_errors}
        return fields | plain(quantiles)

    def to_frame(self) -> Any:
        """Return one line as a pandas or polars frame, or a dict where neither is installed."""
        average = self.rows_mean
        line = {
            "query": self.query,
            "mean": self.mean,
            "standard_error": self.standard_error,
            "density_mean": self.density_mean,
            "numerical_error": self.numerical_error,
            "rows_output": self.rows_output,
            "rows_error": self.rows_error,
            "std": self.std,
            **{f"q{100 * level:g}": x for level, x in self.quantiles.items()},
            "share": self.share,
            "rows": np.nan if self.rows is None else self.rows,
            "rows_mean": np.nan if average is None else average.mean,
            "rows_low": np.nan if average is None else average.low,
            "rows_high": np.nan if average is None else average.high,
        }
        return as_frame({name: np.array([value]) for name, value in line.items()}, None)


def _with_error(value: float, error: float) -> str:
    """Write a number with its standard error, if there is one."""
    if not np.isfinite(value):
        return "not known"
    return number(value) + (f" ± {number(error)}" if error > 0 else "")


@dataclass(frozen=True, eq=False)
class Comparison(PrintedAnswer):
    """What a model says about two groups.

    Attributes
    ----------
    a, b
        The groups.
    difference, standard_error
        Mean of a less that of b, and its standard error: what the density gets wrong in both
        groups alike cancels, and so does chance in rows of both. NaN where nothing is known of
        training rows.
    numerical_error
        How far the difference of the means under the density may be off.
    ratio
        Mean of a over that of b; NaN where the latter is nearly zero.
    """

    a: Group
    b: Group
    difference: float
    standard_error: float
    numerical_error: float
    ratio: float

    display = "ComparisonDisplay"

    @property
    def interval(self) -> tuple[float, float]:
        """An interval that holds the difference with probability 95%."""
        half = NORMAL_95 * self.standard_error
        low, high = self.difference - half, self.difference + half
        return (max(low, -1.0), min(high, 1.0)) if self.a.is_probability else (low, high)

    @cached_property
    def _superiority(self) -> tuple[float, float]:
        return _superiority(self.a.distribution, self.b.distribution)

    @property
    def superiority(self) -> float:
        """Probability that the output of a random member of a exceeds that of one of b.

        Under the density; ties count half.
        """
        return self._superiority[0]

    @property
    def superiority_error(self) -> float:
        """How far it may be off."""
        return self._superiority[1]

    def head(self) -> list[str]:
        """Return the sentences before the table."""
        both = f"{self.a.name}{where(self.a.query)}, and{where(self.b.query)}"
        empty = [group.query for group in (self.a, self.b) if not group.share > 0]
        if empty:
            return [f"{both}: not comparable, probability zero{' and'.join(map(where, empty))}"]
        ratio = "" if np.isnan(self.ratio) else f", the ratio {number(self.ratio)}"
        between = ""
        if np.isfinite(self.standard_error):
            low, high = map(number, self.interval)
            between = f", probably between {low} and {high} (95%)"
        return [
            f"{both}: the difference is {number(self.difference)}{between}{ratio}",
            "The model's output for a random member of the first group is above that for one of "
            f"the second with probability {self.superiority:.3f}.",
        ]

    def lines(self) -> Mapping[str, Sequence[Any]]:
        """Return both groups, a line each."""
        both = (self.a, self.b)
        columns: dict[str, Sequence[Any]] = {
            "group": [group.query for group in both],
            "mean": [group.mean for group in both],
            "standard_error": [group.standard_error for group in both],
            "density_mean": [group.density_mean for group in both],
            "rows_output": [group.rows_output for group in both],
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
        exact = first_sentence(self.a.exactness)
        return [*dict.fromkeys((*self.a.remarks, *self.b.remarks)), exact]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as what JSON holds; NaN is None."""
        more = {name: getattr(self, name) for name in ("superiority", "superiority_error")}
        return super().to_dict() | plain(more | {"interval": self.interval})


def ask(
    subject: ExpectedOutput,
    query: Any = None,
    facts: dict[str, Any] | None = None,
    population: str = "both",
) -> Group:
    """Describe a model's output over a group; see :meth:`Asking.ask`."""
    check_population(population, subject)
    condition = Query.read(query, subject.encoder)
    if facts:
        condition = condition & Query.read(facts, subject.encoder)
    remarks = list(condition.approximate)
    mean, error, variance, share = np.nan, np.nan, np.nan, 0.0
    group: Population | None = None
    try:
        group = Population.read(subject, condition)
    except ImpossibleEvidenceError:
        remarks = list(dict.fromkeys((*remarks, *condition.why_empty())))
        remarks.append(
            "The group has probability zero under the learned density, so there is no answer."
        )
    else:
        share = float(min(np.exp(group.scale) * group.weight.sum(), 1.0))
        summary = subject.describe_groups(group.evidence, group.weight[None])
        mean, error = float(summary.mean[0]), float(summary.error[0])
        variance, loose = float(summary.variance[0]), float(summary.variance_error[0])
        if not subject.samples_variance and loose > MAX_LOOSE * variance:
            ends = [number(float(np.sqrt(max(variance + by, 0.0)))) for by in (-loose, loose)]
            remarks.append(f"The standard deviation lies between {ends[0]} and {ends[1]}.")
    seen = training_average(subject, condition)
    remarks += seen.remarks
    of_density = np.array([mean]), np.array([error]), np.array([variance])
    means = source_means(subject, population, *of_density, seen.output, np.array([share]))
    numbers = {name: float(part[0]) for name, part in means._asdict().items() if name != "shared"}
    sources = number(numbers["density_mean"]), number(numbers["rows_output"])
    if numbers["p"] < CHANCE and sources[0] != sources[1]:
        remarks.append(_disagreement(*sources, numbers["weight"], population))
    if seen.mean is not None and (seen.rows or 0) >= MIN_AVERAGED:
        remarks += _model_is_off(numbers["rows_output"], seen.mean)
    if subject.training_rows is not None:
        expected_rows = share * len(subject.training_rows)
        if 0 < expected_rows < RARE_ROWS:
            remarks.append(
                f"The group is rare: the density expects {_few(expected_rows)} in training."
            )

    def distribution() -> OutputDistribution | None:
        return None if group is None else subject.distribution(group.evidence, group.weight)

    return Group(
        str(condition),
        subject.name,
        subject.is_probability,
        population,
        numbers["mean"],
        numbers["standard_error"],
        numbers["density_mean"],
        numbers["density_error"],
        error,
        numbers["rows_output"],
        numbers["rows_error"],
        numbers["weight"],
        float(np.sqrt(variance)),
        share,
        seen.rows,
        seen.mean,
        subject.exactness,
        tuple(remarks),
        means,
        distribution,
    )


def _disagreement(density: str, rows: str, weight: float, population: str) -> str:
    """Write that density and rows disagree beyond chance."""
    decides = f"; the rows count {weight:.0%}" if population == "both" else ""
    return (
        f"The density ({density}) and the training rows ({rows}) disagree beyond chance: the "
        f"density is wrong about this group{decides}."
    )


def _model_is_off(output: float, average: Average) -> list[str]:
    """Write that model and target differ over the same rows by more than chance, if they do."""
    wider = float(ndtri(1 - CHANCE / 2)) / NORMAL_95
    low, high = (average.mean + wider * (end - average.mean) for end in (average.low, average.high))
    if not low < high or not (output < low or output > high):
        return []
    return [
        f"Over the training rows in the group the model's mean is {number(output)} and the average "
        f"of their target {number(average.mean)}, apart beyond chance: the model is off there."
    ]


def compare(subject: ExpectedOutput, a: Any, b: Any, population: str = "both") -> Comparison:
    """Compare a model's output over two groups; see :meth:`Asking.compare`."""
    first, second = (ask(subject, group, None, population) for group in (a, b))
    numerical = first.numerical_error + second.numerical_error
    if subject.samples_mean:
        numerical = np.hypot(first.numerical_error, second.numerical_error)
    error = first.sources.difference_error(second.sources, _overlap(subject, a, b, first, second))
    smallest = ZERO * max(first.std, second.std, abs(first.mean))
    ratio = first.mean / second.mean if abs(second.mean) > smallest else np.nan
    difference = first.mean - second.mean
    return Comparison(first, second, difference, float(error[0]), float(numerical), ratio)


def _overlap(subject: ExpectedOutput, a: Any, b: Any, first: Group, second: Group) -> Floats:
    """Return the probability of both groups over the root of the product of each."""
    if not first.share * second.share:
        return np.zeros(1)
    both = Query.read(a, subject.encoder) & Query.read(b, subject.encoder)
    try:
        population = Population.read(subject, both)
    except ImpossibleEvidenceError:
        return np.zeros(1)
    share = np.exp(population.scale) * population.weight.sum()
    return np.minimum(np.array([share / np.sqrt(first.share * second.share)]), 1.0)


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


def _few(rows: float) -> str:
    """Write how few rows are expected."""
    return "less than one row" if rows < 1 else f"about {counted(round(rows), 'row')}"
