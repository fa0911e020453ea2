"""Hold what the encoder learned of one column: its values, and what they are to the user."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.common.row_random import RowRandom
from expecta.tables.cells import Cells
from expecta.tables.scalars import Scalar, is_missing, number

LARGEST_CODE = 65_535
_NONE = np.zeros(0)


class Interval(NamedTuple):
    """The numbers from ``low`` to ``high``, both included; None is an open end."""

    low: float | None
    high: float | None


@dataclass(frozen=True, eq=False)
class Column:
    """One column of the table as a variable with the values 0 .. cardinality - 1.

    This class itself is a column of which training knew nothing: it has one value, which
    no cell has. The others derive from it.

    Attributes
    ----------
    name, kind, dtype
        The column's name, "category", "boolean", "integer", "number", "date", "datetime",
        "duration", "code" (an array's integers, as they are) or "unknown" (nothing was
        known of it), and the type that the table gave it.
    cardinality
        How many values the variable has.
    counts
        Training weight of each value.
    values, other, grouped
        The categories; whether a last value stands for all further ones; the most frequent of
        these.
    edges
        Inner edges of the bins: value j stands for ``edges[j-1] <= x < edges[j]``.
    means, stds, lows, highs
        Mean, spread, least and largest of the training numbers in each bin. Times are in
        microseconds, since 1970 where they are dates.
    step
        Numbers are multiples of this; 0 where they are not.
    zone
        The time zone of times that have one.

    Examples
    --------
    >>> from expecta import Encoder
    >>> column = Encoder().fit({"smoker": ["yes", "no", "no"]}).column("smoker")
    >>> column.labels, column.counts.tolist()
    (('no', 'yes'), [2.0, 1.0])
    """

    name: str
    kind: str
    dtype: str
    cardinality: int
    counts: Floats
    values: tuple[Scalar, ...] = ()
    other: bool = False
    grouped: tuple[Scalar, ...] = ()
    edges: Floats = field(default_factory=_NONE.copy)
    means: Floats = field(default_factory=_NONE.copy)
    stds: Floats = field(default_factory=_NONE.copy)
    lows: Floats = field(default_factory=_NONE.copy)
    highs: Floats = field(default_factory=_NONE.copy)
    step: float = 0.0
    zone: str | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """A readable text for every value."""
        return ("unknown",)

    @property
    def plain(self) -> Column:
        """The column itself; where "missing" is a value, the column of all others."""
        return self

    @property
    def ordered(self) -> bool:
        """Whether the values are numbers or times, of which there are intervals."""
        return False

    def encode(self, cells: Cells, *, unseen: str = "unknown") -> Ints:
        """Return the value of every cell, -1 where it is unknown.

        Parameters
        ----------
        cells
            Cells of this column.
        unseen
            ``"unknown"`` or ``"error"``, for values that training did not have.
        """
        if unseen == "error" and cells.kind != "unknown":
            raise DomainError(
                f"column {self.name!r} has a value, but none in the training data; "
                f"use unseen='unknown' to ignore it"
            )
        return np.full(len(cells), -1, np.int32)

    def decode(self, codes: Ints, rng: np.random.Generator | RowRandom | None) -> Any:
        """Return cells for values: floats with NaN, or objects with None.

        Parameters
        ----------
        codes
            Values, -1 for missing.
        rng
            Draws numbers within bins; None takes their means.
        """
        return np.full(len(codes), None, object)

    def numeric(self) -> Floats:
        """Return the number that each value stands for."""
        raise DomainError(f"the values of column {self.name!r} are categories, not numbers")

    def to_number(self, value: Any) -> float:
        """Return the number underneath a value that a user gives: text is read, times are µs.

        Parameters
        ----------
        value
            A number, a text or a time.
        """
        try:
            result = number(value, self.kind, self.zone)
        except DomainError as problem:
            raise DomainError(f"column {self.name!r}: {problem}") from None
        if np.isnan(result):
            raise DomainError(f"column {self.name!r}: a missing value is not a number")
        return result

    def parse_fact(self, fact: Any) -> list[Any] | Interval | None:
        """Read a fact about the column, the same for every question.

        A fact is a value; a list, set, range or array of values; for numbers and times an
        interval ``(low, high)``; for categories a tuple is a set of values too. Returns the
        values, the interval in numbers, or None where the fact is missing and says nothing.

        Parameters
        ----------
        fact
            What the user gives.

        Returns
        -------
        list, Interval or None
            What it says.
        """
        fact = as_fact(fact)
        if isinstance(fact, tuple) and self.ordered:
            if len(fact) != 2:
                raise DomainError(f"an interval of column {self.name!r} has two ends: {fact!r:.60}")
            if any(end is not None and is_missing(end) for end in fact):
                raise DomainError(
                    f"column {self.name!r}: a missing value cannot be the end of an interval; "
                    f"use None for an open end"
                )
            low, high = (None if end is None else self.to_number(end) for end in fact)
            if low is not None and high is not None and low > high:
                raise DomainError(
                    f"the interval {fact!r:.60} of column {self.name!r} is reversed; write "
                    f"({fact[1]!r:.30}, {fact[0]!r:.30})"
                )
            return Interval(low, high)
        if not isinstance(fact, list | set | frozenset | range | tuple):
            return None if is_missing(fact) else [fact]
        values = list(fact)
        if len(values) == 1 and is_missing(values[0]):
            return None  # the cell of a row
        if any(map(is_missing, values)):
            raise DomainError(
                f"a set of values of column {self.name!r} has a missing value; leave it out, or "
                f"give one row"
            )
        if self.ordered and any(isinstance(value, tuple) for value in values):
            raise DomainError(
                f"column {self.name!r} has a list of intervals; "
                f"ask for one interval at a time, or join conditions by 'or'"
            )
        return values

    def weights(self, fact: Any) -> Floats | None:
        """Return the weight of each value given a fact, None where it says nothing.

        See `parse_fact` for what a fact is, and `between` for what an interval weighs. A number
        stands for the whole bin that it falls in.

        Parameters
        ----------
        fact
            See `parse_fact`.
        """
        parsed = self.parse_fact(fact)
        if parsed is None:
            return None
        if isinstance(parsed, Interval):
            if self.step or parsed.low is None or parsed.low != parsed.high:
                return self.between(*parsed)
            parsed = [as_fact(fact)[0]]  # a point of numbers that are not whole is a value
        weights = np.zeros(self.cardinality)
        weights[[self.code(value) for value in parsed]] = 1.0
        return weights

    def code(self, value: Any) -> int:
        """Return the code of a value that the user gives.

        Parameters
        ----------
        value
            A value as the table has them.
        """
        raise DomainError(
            f"column {self.name!r} has no known values in the training data, so it cannot be "
            f"{value!r}"
        )

    def between(self, low: float | None, high: float | None, *, closed: str = "both") -> Floats:
        """Return the share of each value that lies between two ends; None is an open end.

        Ends are numbers underneath, as of `to_number`.
        ``closed`` says which ends belong to the interval: "both", "left", "right", "neither".

        Parameters
        ----------
        low
            Lower end, or None.
        high
            Upper end, or None.
        closed
            Which ends belong to it.
        """
        raise DomainError(
            f"column {self.name!r} has no numbers, so it has no interval {low!r} to {high!r}; "
            f"for a set of values use a list"
        )


@dataclass(frozen=True, eq=False)
class CodeColumn(Column):
    """A column of an integer array: the integers 0, 1, 2, ... are the values."""

    @property
    def labels(self) -> tuple[str, ...]:
        """A readable text for every value."""
        return tuple(map(str, range(self.cardinality)))

    @property
    def ordered(self) -> bool:
        """Integers have an order."""
        return True

    def encode(self, cells: Cells, *, unseen: str = "unknown") -> Ints:
        """Return the integers themselves."""
        return as_codes(
            cells.as_numbers("number")[:, None], np.array([self.cardinality]), [self.name], unseen
        )[:, 0]

    def decode(self, codes: Ints, rng: np.random.Generator | RowRandom | None) -> Any:
        """Return the integers as floats, NaN where unknown."""
        return np.where(codes < 0, np.nan, codes.astype(np.float64))

    def numeric(self) -> Floats:
        """Return the integers."""
        return np.arange(self.cardinality, dtype=np.float64)

    def code(self, value: Any) -> int:
        """Return the integer, if it is one of the values."""
        try:
            code = float(value)
        except (TypeError, ValueError):
            code = -1.0
        if code in range(self.cardinality):
            return int(code)
        raise DomainError(
            f"variable {self.name!r} takes the values 0 .. {self.cardinality - 1}, not {value!r}"
        )

    def between(self, low: float | None, high: float | None, *, closed: str = "both") -> Floats:
        """Return 1 for the integers between the ends."""
        start = -np.inf if low is None else low
        end = np.inf if high is None else high
        from_low, upto_high = closed_ends(closed)
        numbers = self.numeric()
        above = numbers >= start if from_low else numbers > start
        below = numbers <= end if upto_high else numbers < end
        return (above & below).astype(np.float64)


@dataclass(frozen=True, eq=False)
class MissingIsValueColumn(Column):
    """A column whose last value is that the cell is missing; the others are those of ``known``."""

    known: Column = None  # type: ignore[assignment]

    @classmethod
    def from_known(cls, known: Column, weight: float) -> MissingIsValueColumn:
        """Add "missing" to a column's values; ``weight`` is that of missing training cells."""
        attributes = {field.name: getattr(known, field.name) for field in fields(Column)}
        attributes["cardinality"] = known.cardinality + 1
        attributes["counts"] = np.append(known.counts, weight)
        return cls(**attributes, known=known)

    @property
    def missing(self) -> int:
        """The value of a missing cell."""
        return self.known.cardinality

    @property
    def plain(self) -> Column:
        """The column of what is not missing."""
        return self.known

    @property
    def ordered(self) -> bool:
        """Whether what is not missing has an order."""
        return self.known.ordered

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A readable text for every value; different from all others."""
        text, known = "missing", self.known.labels
        while text in known:
            text += " value"
        return (*known, text)

    def encode(self, cells: Cells, *, unseen: str = "unknown") -> Ints:
        """Return the value of every cell; only a category that training did not have is -1."""
        codes = self.known.encode(cells, unseen=unseen)
        codes[~cells.known] = self.missing
        return codes

    def decode(self, codes: Ints, rng: np.random.Generator | RowRandom | None) -> Any:
        """Return cells for values: NaN or None where it is missing or unknown."""
        return self.known.decode(np.where(codes == self.missing, -1, codes), rng)

    def numeric(self) -> Floats:
        """Refuse: what is missing is not a number."""
        raise DomainError(f"column {self.name!r} may be missing, which is not a number")

    def code(self, value: Any) -> int:
        """Return the code of a value that the user gives, such as "missing"."""
        if isinstance(value, str) and value == self.labels[-1]:
            return self.missing
        return self.known.code(value)

    def parse_fact(self, fact: Any) -> list[Any] | Interval | None:
        """Read a fact: a missing value is the value "missing", as it is in a row."""
        fact, missing = as_fact(fact), self.labels[-1]
        interval = isinstance(fact, tuple) and self.ordered
        if isinstance(fact, list | set | frozenset | tuple) and not interval:
            return super().parse_fact([missing if is_missing(v) else v for v in fact])
        return super().parse_fact(missing if is_missing(fact) else fact)

    def between(self, low: float | None, high: float | None, *, closed: str = "both") -> Floats:
        """Return the share of each value between two ends: none of the missing."""
        return np.append(self.known.between(low, high, closed=closed), 0.0)


def as_fact(fact: Any) -> Any:
    """Return an array or a column of a frame as a list, and all else as it is."""
    if isinstance(fact, np.ndarray) and fact.dtype.kind in "mM" and fact.ndim:
        return list(fact)  # as Python has them, times finer than microseconds are integers
    for method in ("to_pylist", "to_list", "tolist"):  # of Arrow, of frames, of NumPy
        if hasattr(fact, method) and not isinstance(fact, np.generic):
            return getattr(fact, method)()
    return fact


def closed_ends(closed: str) -> tuple[bool, bool]:
    """Return whether an interval's low end and its high end belong to it."""
    if closed not in ("both", "left", "right", "neither"):
        raise ValueError(f"closed is 'both', 'left', 'right' or 'neither', not {closed!r}")
    return closed in ("both", "left"), closed in ("both", "right")


def as_codes(array: Any, cards: Ints | None, names: Collection[str], unseen: str) -> Ints:
    """Check a whole array of values 0, 1, 2, ... at once.  # (rows, columns).

    -1 among integers and NaN among floats is unknown; with ``cards`` a larger value than
    there are is unknown too, or an error.
    """
    if array.dtype.kind == "f":
        array = _integers(array, names)
    if array.size and array.dtype.kind == "i" and (smallest := int(np.min(array))) < -1:
        raise DomainError(
            f"the array has the integer {smallest}; values are 0, 1, 2, ... and -1 is unknown"
        )
    top = np.max(array, axis=0, initial=0) if array.dtype.kind != "b" else np.zeros(1)
    if cards is None:
        if np.any(top > LARGEST_CODE):
            raise DomainError(
                f"an integer array holds values 0, 1, 2, ... up to {LARGEST_CODE}, not "
                f"{int(np.max(top))}; for numbers use a frame, a dict of columns or floats"
            )
    elif np.any(top >= cards):
        beyond = array >= cards
        if unseen == "error":
            row, column = (int(i[0]) for i in np.nonzero(beyond))
            raise DomainError(
                f"row {row} has {array[row, column]} for variable {list(names)[column]!r}, which "
                f"takes the values 0 .. {cards[column] - 1}; use unseen='unknown' to ignore it"
            )
        array = np.where(beyond, -1, array.astype(np.int64))
    return array.astype(np.int32)


def _integers(array: Floats, names: Collection[str]) -> Ints:
    """Return floats as integers, NaN as -1; in blocks of rows that stay in cache."""
    out = np.empty(array.shape, np.int32)
    block = max(1, 2**16 // max(array.shape[1], 1))
    for first in range(0, len(array), block):
        part = array[first : first + block]
        unknown = np.isnan(part)
        known = np.where(unknown, 0.0, part)
        bad = (known < 0) | (known != np.floor(known))
        if np.any(bad):
            row, column = (int(i[0]) for i in np.nonzero(bad))
            raise DomainError(
                f"row {first + row} has {part[row, column]} for variable {list(names)[column]!r}, "
                f"whose values are 0, 1, 2, ...; use NaN for unknown"
            )
        out[first : first + block] = np.minimum(known, LARGEST_CODE + 1.0)
        out[first : first + block][unknown] = -1
    return out
