"""Answers about one group, and about two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from expecta.ask.printed_answer import PrintedAnswer, plain
from expecta.common.arrays import Floats
from expecta.common.text import number
from expecta.expected.distributions import OutputDistribution
from expecta.tables.training_rows import Average

if TYPE_CHECKING:
    from expecta.ask.displays import ComparisonDisplay, GroupDisplay

__all__ = ["Comparison", "Group"]


@dataclass(frozen=True, eq=False)
class Group(PrintedAnswer):
    """What a model says about a group.

    Attributes
    ----------
    query
        The group, in words.
    name
        What the model's output is called.
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
        How many training rows are in the group for certain; None if they were not kept.
    rows_mean
        Plain average of the target over these, with a 95% interval; None for fewer than two.
    exactness, remarks
        What is exact; what to bear in mind about this answer.
    """

    query: str
    name: str
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
    law: Callable[[], OutputDistribution | None] = field(repr=False)

    def curve(self) -> tuple[Floats, Floats]:
        """Return a grid of outputs, and the share of the group at or below each."""
        law = self.law()
        return (np.zeros(0), np.zeros(0)) if law is None else law.curve()

    def plot(self, ax: Any = None) -> GroupDisplay:
        """Draw it, on axes of yours or on new ones; needs matplotlib."""
        from expecta.ask.displays import GroupDisplay

        return GroupDisplay(self).plot(ax)

    def head(self) -> list[str]:
        """Return the sentence before the table."""
        return [f"{self.name} where {self.query}"]

    def lines(self) -> Mapping[str, Sequence[Any]]:
        """Return what was found, a line each."""
        found = {
            "mean": number(self.mean) + _give_or_take(self.error),
            "standard deviation": number(self.std),
            **{f"{level:.0%} quantile": number(one) for level, one in self.quantiles.items()},
            "share of the population": f"{self.share:.3%}",
        }
        if self.rows is not None:
            found["training rows"] = str(self.rows)
        if self.rows_mean is not None:
            found["their average"] = str(self.rows_mean)
        return {"of the model's output": list(found), "": list(found.values())}

    def notes(self) -> list[str]:
        """Return the sentences after it."""
        return list(self.remarks)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as what JSON holds; NaN is None."""
        found = super().to_dict()
        del found["law"]
        return found | {"rows_mean": plain(None if (one := self.rows_mean) is None else vars(one))}

    def to_frame(self) -> Any:
        """Return one line as a pandas or polars frame, or a dict where neither is installed."""
        from expecta.common.data_frames import as_frame

        average = self.rows_mean
        line = {
            "query": self.query,
            "mean": self.mean,
            "error": self.error,
            "std": self.std,
            **{f"q{100 * level:g}": one for level, one in self.quantiles.items()},
            "share": self.share,
            "rows": np.nan if self.rows is None else self.rows,
            "rows_mean": np.nan if average is None else average.mean,
            "rows_low": np.nan if average is None else average.low,
            "rows_high": np.nan if average is None else average.high,
        }
        return as_frame({name: np.array([one]) for name, one in line.items()}, None)


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

    def plot(self, ax: Any = None) -> ComparisonDisplay:
        """Draw it, on axes of yours or on new ones; needs matplotlib."""
        from expecta.ask.displays import ComparisonDisplay

        return ComparisonDisplay(self).plot(ax)

    def head(self) -> list[str]:
        """Return the sentences before the table."""
        empty = [one.query for one in (self.a, self.b) if one.law() is None]
        if empty:
            return [
                f"{self.a.name} where {self.a.query}, and where {self.b.query}: there is nothing "
                f"to compare, since nobody is where {' nor where '.join(empty)}."
            ]
        times = "" if np.isnan(self.ratio) else f", {number(self.ratio)} times as much"
        return [
            f"{self.a.name}: {number(self.difference)} more where {self.a.query} than where "
            f"{self.b.query}{times}",
            f"A random member of the first is above one of the second with probability "
            f"{self.superiority:.3f}.",
        ]

    def lines(self) -> Mapping[str, Sequence[Any]]:
        """Return both groups, a line each."""
        both = (self.a, self.b)
        found: dict[str, Sequence[Any]] = {
            "group": [one.query for one in both],
            "mean": [one.mean for one in both],
            "std": [one.std for one in both],
            "share": [one.share for one in both],
        }
        if self.a.rows is not None and self.b.rows is not None:
            found["rows"] = [one.rows for one in both]
            averages = [one.rows_mean for one in both]
            found["rows_mean"] = [np.nan if one is None else one.mean for one in averages]
        return found

    def notes(self) -> list[str]:
        """Return the sentences after it."""
        return [*dict.fromkeys((*self.a.remarks, *self.b.remarks)), self.a.exactness]


def _give_or_take(error: float) -> str:
    return f" ± {number(error)}" if error > 0 else ""
