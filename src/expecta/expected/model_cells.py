"""Columns cut so finely that no question of a model is rounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.densities.density import Density
from expecta.engine.boxes import Runs, runs
from expecta.readers import Unreadable, frames
from expecta.readers.features import Features
from expecta.readers.forms import Question
from expecta.readers.thresholds import cut_points, domain_ends
from expecta.tables.column import Column
from expecta.tables.number_column import NumberColumn

LARGE_NUMBERS = (
    1e300,
    1e100,
    1e30,
    1e15,
    1e9,
    1e6,
)  # not cut beyond
DOMAIN_STARTS = (-1.0 + 2**-53, 0.0, 5e-324)  # where functions like logarithms do
FAR = 1e6  # times the largest training number: domains are not looked for beyond
TIMES = ("date", "datetime", "duration")
MAX_DAYS = 200_000  # that a tree over whole days is asked for


@dataclass(frozen=True, eq=False)
class ModelCells:
    """A density whose values are fine enough for a model, and one raw value for each.

    Within a value of the density every question of the model has one answer, for numbers that
    no training row has too: where a transformer starts to be defined, there is a cut.
    """

    density: Density
    features: Features
    variable: Ints  # the density's variable of each raw column
    examples: tuple[Any, ...]  # of each raw column, a raw value for each value of the density
    _known: dict[int, Floats] = field(default_factory=dict)  # features of each value, by column

    @classmethod
    def of(
        cls,
        density: Density,
        features: Features,
        questions: Sequence[Question],
        X: Any,
        max_bins: int = 1,
        restored: Callable[[int, Floats], Any] = lambda _, numbers: numbers,
    ) -> ModelCells:
        """Cut the columns of a density.

        Parameters
        ----------
        density, features
            What is known of the columns, and what the model makes of them.
        questions
            What the model asks of features.
        X
            The table that the density learned from: it says how much of a bin lies on either
            side of a cut.
        max_bins
            Cut numbers into so many bins at least, if they have as many.
        restored
            Returns numbers of a column, by its position, as the model takes them: times.

        Raises
        ------
        Unreadable
            If a question cannot be asked of the raw column.
        """
        encoder = density.encoder_
        variable = np.array([encoder.variable(name) for name in features.columns], np.int64)
        thresholds = {}
        for place, name in enumerate(features.columns):
            column = encoder.columns_[variable[place]].plain
            if isinstance(column, NumberColumn):
                if column.kind in TIMES:
                    cuts = _time_cuts(features, place, column, questions, restored)
                else:
                    cuts = _cuts(features, place, column, questions)
                if len(cuts):
                    thresholds[name] = cuts
        fine = density.refined(X, max_bins=max_bins, thresholds=thresholds)
        found = [fine.encoder_.columns_[one] for one in variable.tolist()]
        examples = tuple(
            _with_missing(column, restored(place, _examples(column.plain)))
            if column.kind in TIMES
            else _with_missing(column, _examples(column.plain))
            for place, column in enumerate(found)
        )
        return cls(fine, features, variable, examples)

    def answers(self, questions: Sequence[Question]) -> list[tuple[int, Runs, Runs]]:
        """Return the variable that each question is about, and the values of yes and of no.

        A question about a feature that is the same for all rows has the variable -1, of one
        value.
        """
        constant = self.features(self.features.rows)[0]
        known = self._known
        scales: dict[int, _Scale] = {}
        out = []
        for question in questions:
            feature = question.feature
            place = int(self.features.source[feature])
            if feature not in scales:
                if place >= 0 and place not in known:
                    known[place] = self._values(place)
                own = int(np.searchsorted(self.features.of(place), feature))
                values = known[place][:, own] if place >= 0 else constant[[feature]]
                scales[feature] = _Scale.of(values)
            variable = int(self.variable[place]) if place >= 0 else -1
            out.append((variable, *scales[feature].ask(question)))
        return out

    def beyond(self) -> list[tuple[int, int]]:
        """Return columns and values whose numbers have features that are not numbers.

        Of the columns that :meth:`answers` was asked about.
        """
        return [
            (place, int(code))
            for place, values in self._known.items()
            if isinstance(self.density.encoder_.columns_[self.variable[place]], NumberColumn)
            for code in np.flatnonzero(~np.isfinite(values).all(axis=1))
        ]

    def _values(self, place: int) -> Floats:
        """Return the features of each value of a column, NaN where transformers refuse it."""
        examples = self.examples[place]
        try:
            return self.features.values(place, examples)
        except ValueError:
            if not isinstance(examples, np.ndarray):
                raise
            rows = [_features(self.features, place, float(one)) for one in examples]
            none = np.full(len(self.features.of(place)), np.nan)
            return np.stack([none if row is None else row for row in rows])


@dataclass(frozen=True, eq=False)
class _Scale:
    """A feature's number for each value of a column."""

    numbers: Floats
    rises: bool  # whether they never fall, a last NaN aside
    rounded: Floats  # to 32 bits

    @classmethod
    def of(cls, numbers: Floats) -> _Scale:
        with np.errstate(over="ignore"):
            rounded = numbers.astype(np.float32).astype(np.float64)
        whole = numbers[:-1] if np.isnan(numbers[-1]) else numbers
        return cls(numbers, bool(np.all(whole[1:] >= whole[:-1])), rounded)

    def ask(self, question: Question) -> tuple[Runs, Runs]:
        """Return the values of yes and of no; a threshold on a scale takes a search."""
        if question.among is not None or not self.rises:
            yes = question.ask(self.numbers)
            return runs(yes), runs(~yes)
        numbers = self.rounded if question.single else self.numbers
        n = len(numbers) - int(np.isnan(numbers[-1]))
        cut = int(np.searchsorted(numbers[:n], question.at_most, side="right"))
        below, above = ((0, cut) if cut else ()), ((cut, n) if cut < n else ())
        if n == len(numbers):
            return below, above
        if question.missing:
            return _with_last(below, n), above
        return below, _with_last(above, n)


def _with_last(one: Runs, n: int) -> Runs:
    """Add the value n to a set of smaller ones."""
    return (*one[:-1], n + 1) if one and one[-1] == n else (*one, n, n + 1)


def _cuts(features: Features, place: int, column: Column, questions: Sequence[Question]) -> Floats:
    """Find where the answers about a column of numbers change."""
    found: list[Floats] = [np.zeros(0)]
    domain: _Domain | None = None
    for feature in features.of(place).tolist():
        asked = [q for q in questions if q.feature == feature]
        if not asked:
            continue
        for question in asked:
            if question.among is not None:
                values = _numbers(features, column, question)
                found += [values, np.nextafter(values, -np.inf)]
        steps = [q for q in asked if q.among is None]
        if steps:
            if not features.monotone[feature]:
                raise Unreadable(
                    f"a tree splits on a feature of column {column.name!r} that need not rise "
                    f"or fall with it; sampling is used instead"
                )
            if domain is None:
                domain = _Domain(features, place, column)
                found.append(np.array(domain.ends))
            low, high = domain.range_of(feature)
            found.append(cut_points(features, place, feature, steps, low, high))
    return np.unique(np.concatenate(found))


def _time_cuts(
    features: Features,
    place: int,
    column: Column,
    questions: Sequence[Question],
    restored: Callable[[int, Floats], Any],
) -> Floats:
    """Find where the answers about a column of whole days change: every day is asked.

    Days are those from the first to the last training row, and as many before and after them.
    """
    asked = [q for q in questions if features.source[q.feature] == place]
    if not asked:
        return np.zeros(0)
    first, last, step = float(column.lows[0]), float(column.highs[-1]), column.step
    span = last - first + step
    if not step or 3 * span > MAX_DAYS * step:
        raise Unreadable(
            f"a tree asks about times of column {column.name!r}, which are not whole days, or of "
            f"more than {MAX_DAYS // 3:,} days; sampling is used instead"
        )
    days = np.arange(first - span, last + span, step)
    try:
        with frames.quietly():
            values = features.values(place, restored(place, days))
    except (ValueError, TypeError, OverflowError) as problem:
        raise Unreadable(
            f"the transformers of column {column.name!r} refuse days near those of the training "
            f"rows ({problem!s:.80}); sampling is used instead"
        ) from None
    own = {feature: i for i, feature in enumerate(features.of(place).tolist())}
    changes = np.zeros(len(days) - 1, np.bool_)
    for question in asked:
        yes = question.ask(values[:, own[question.feature]])
        changes |= yes[1:] != yes[:-1]
    return days[:-1][changes]


def _numbers(features: Features, column: Column, question: Question) -> Floats:
    """Return the raw numbers that a question takes for categories."""
    if features.steps:
        raise Unreadable(
            f"a tree takes numbers of column {column.name!r} for categories after a "
            f"transformer; sampling is used instead"
        )
    listed = features.categories.get(question.feature)  # then trees see positions in this list
    found = question.among if listed is None else listed
    return np.array(sorted(float(value) for value in found or ()))


class _Domain:
    """Where the features of a column of numbers are numbers, NaN, infinite, or refused."""

    def __init__(self, features: Features, place: int, column: Column) -> None:
        self._features, self._place = features, place
        self._kinds: dict[float, tuple[str, ...]] = {}
        self._first, self._last = float(column.lows[0]), float(column.highs[-1])
        far = FAR * (1.0 + max(abs(self._first), abs(self._last)))
        outside = [one for one in (-far, *DOMAIN_STARTS, far) if self._is_outside(one)]
        points = sorted([*outside, self._first, self._last])
        self.ends = domain_ends(self.kinds, points) if features.steps else []

    def _is_outside(self, x: float) -> bool:
        return not self._first <= x <= self._last

    def kinds(self, x: float) -> tuple[str, ...]:
        """Say of each feature what it is at a number."""
        if x not in self._kinds:
            values = _features(self._features, self._place, x)
            refused = ("refused",) * len(self._features.of(self._place))
            self._kinds[x] = refused if values is None else tuple(map(_kind, values.tolist()))
        return self._kinds[x]

    def range_of(self, feature: int) -> tuple[float, float]:
        """Return the ends of the numbers around the training rows where a feature is finite."""
        own = int(np.searchsorted(self._features.of(self._place), feature))
        after = [float(np.nextafter(end, np.inf)) for end in self.ends]
        lows = [
            x
            for end, x in zip(self.ends, after, strict=True)
            if x <= self._first and self.kinds(end)[own] != "finite"
        ]
        highs = [
            end
            for end, x in zip(self.ends, after, strict=True)
            if end >= self._last and self.kinds(x)[own] != "finite"
        ]
        large = [one for one in LARGE_NUMBERS if one > max(abs(self._first), abs(self._last))]
        low = next((-one for one in large if self.kinds(-one)[own] == "finite"), self._first)
        high = next((one for one in large if self.kinds(one)[own] == "finite"), self._last)
        return max(lows, default=low), min(highs, default=high)


def _features(features: Features, place: int, x: float) -> Floats | None:
    """Return the features of one number, or None where transformers refuse it."""
    try:
        return features.values(place, np.array([x]))[0]
    except (ValueError, ArithmeticError):  # too large, or outside of what a function takes
        return None


def _kind(x: float) -> str:
    return "finite" if np.isfinite(x) else str(x)


def _with_missing(column: Column, examples: Any) -> Any:
    """Add a missing one, where that is a value."""
    if column.plain is column:
        return examples
    if isinstance(examples, list) or examples.dtype == object:
        return [*examples, None]
    nothing = np.array("NaT", examples.dtype) if examples.dtype.kind in "mM" else np.nan
    return np.append(examples, nothing)


def _examples(column: Column) -> Any:
    """Return a raw value for each value of a column."""
    if isinstance(column, NumberColumn):
        if column.kind in TIMES and column.step:  # the last day of each bin
            ends = np.append(np.nextafter(column.edges, -np.inf), column.highs[-1])
            return np.floor(ends / column.step) * column.step
        if not len(column.edges):
            return column.means
        return np.append(np.nextafter(column.edges[0], -np.inf), column.edges)
    if column.other:
        raise Unreadable(
            f"the density takes rare categories of column {column.name!r} together; sampling is "
            f"used instead, unless its encoder keeps them apart: Encoder(max_categories=...)"
        )
    if column.kind == "code":
        return np.arange(column.cardinality)
    if column.kind == "unknown":
        raise Unreadable(f"column {column.name!r} has no known value; leave it out")
    return list(column.values)
