"""Read rows and groups as JSON has them: values, null, sets and intervals of columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

from expecta.common.errors import DomainError
from expecta.common.text import suggestion
from expecta.serve.problems import ProblemError
from expecta.tables import Encoder
from expecta.tables.category_column import CategoryColumn
from expecta.tables.column import Column
from expecta.tables.number_column import NumberColumn
from expecta.tables.scalars import TIMES
from expecta.tables.unfamiliar_cells import familiar_ranges, training_ranges

JsonRow: TypeAlias = Mapping[str, Any]
NUMBERS = ("number", "integer")  # kinds of columns whose values are as JSON has them
MAX_PLAIN = 2.0**53  # up to which an integer is a float
FORMS = '{"between": [low, high]} or {"in": [value, ...]}'


class JsonRows:
    """Reads rows for a model: what it knows of its columns, kept for speed.

    A cell is a value, or unknown: null, NaN as text, or an absent key. Evidence beside values
    is an interval of numbers or times, both ends included and null for an open one, or a set of
    values.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.columns = list(encoder.columns_)
        self.names = [column.name for column in self.columns]
        self._position = {name: i for i, name in enumerate(self.names)}
        self._categories = [
            (i, column.plain)
            for i, column in enumerate(self.columns)
            if isinstance(column.plain, CategoryColumn) and not column.plain.other
        ]
        self._numbers = [
            (i, column.plain, familiar_ranges(column.plain))
            for i, column in enumerate(self.columns)
            if isinstance(column.plain, NumberColumn)
        ]

    def row(self, given: JsonRow, row: int | None = None) -> list[Any]:
        """Return the cells of a row in the columns' order, None where unknown.

        Evidence is a tuple (an interval) or a list (a set), as `Asking.ask` takes it.
        """
        cells: list[Any] = [None] * len(self.names)
        for name, value in given.items():
            position = self._position.get(name)
            if position is None:
                raise no_column(name, self.names, row)
            if value is not None:
                cells[position] = _cell(self.columns[position], value, row)
        return cells

    def single_cells(self, given: JsonRow, row: int | None = None) -> list[Any]:
        """Return the cells of a row that has single values only."""
        cells = self.row(given, row)
        for name, cell in zip(self.names, cells, strict=True):
            if isinstance(cell, tuple | list):
                raise ProblemError(
                    422,
                    f"column {name!r} has a set or an interval; this question is about rows of "
                    f"single values and unknown cells",
                    column=name,
                    row=row,
                )
        return cells

    def single(self, given: JsonRow) -> dict[str, Any]:
        """Return one row of single values, with a value or None for every column."""
        return dict(zip(self.names, self.single_cells(given), strict=True))

    def facts(self, given: JsonRow) -> dict[str, Any]:
        """Return a group as a mapping from the columns that it names to facts."""
        cells = self.row(given)
        return {name: cells[self._position[name]] for name in given}

    def table(self, rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
        """Return rows of cells as columns, which every verb of an estimator takes."""
        if not rows:
            return {name: [] for name in self.names}
        columns = zip(*rows, strict=True)
        return dict(zip(self.names, map(list, columns), strict=True))

    def unseen(self, cells: Sequence[Any], row: int | None = None) -> list[str]:
        """Say which values of a row are unlike the training data, and what they count as."""
        remarks = []
        at = "" if row is None else f"row {row}: "
        for position, column in self._categories:
            value = cells[position]
            if value is None or isinstance(value, list) or column.has(value):
                continue
            remarks.append(
                f"{at}{value!r:.80} is not a value of column {column.name!r:.80} in the training "
                f"data and counts as unknown; {suggestion(value, column.labels, 'it has')}"
            )
        for position, number_column, ranges in self._numbers:
            value = cells[position]
            if value is None or isinstance(value, list | tuple):
                continue
            number = value if type(value) is float else number_column.to_number(value)
            if not any(low <= number <= high for low, high in ranges):
                remarks.append(
                    f"{at}{value!r:.80} is far from the training data of column "
                    f"{number_column.name!r:.80} ({training_ranges(number_column)}), "
                    f"and counts as its nearest bin"
                )
        return remarks


def has_evidence(cells: Sequence[Any]) -> bool:
    """Whether a row has a set or an interval beside single values."""
    return any(isinstance(cell, tuple | list) for cell in cells)


def no_column(name: str, names: Sequence[str], row: int | None = None) -> ProblemError:
    """Return that there is no such column, and which was probably meant."""
    near = get_close_matches(name, names, n=1) or get_close_matches(
        name.casefold(), [known.casefold() for known in names], n=1
    )
    meant = next(
        (known for known in names if near and known.casefold() == near[0].casefold()), None
    )
    detail = f"there is no column {name!r:.80}; {suggestion(meant or name, names)}"
    return ProblemError(422, detail, column=name[:200], row=row, did_you_mean=meant)


def _cell(column: Column, value: Any, row: int | None) -> Any:
    """Return a cell as the library takes it; an error names the column, the value and the row."""
    try:
        if isinstance(value, dict):
            return _evidence(column, value)
        return _value(column.plain, value)
    except DomainError as problem:
        shown = value if isinstance(value, int | float | str | bool) else repr(value)
        shown = shown[:200] if isinstance(shown, str) else shown
        finite = not isinstance(shown, float) or math.isfinite(shown)
        raise ProblemError(
            422, str(problem), column=column.name, value=shown if finite else str(shown), row=row
        ) from None


def _evidence(column: Column, given: dict[str, Any]) -> Any:
    if list(given) == ["in"] and isinstance(given["in"], list):
        values = [_value(column.plain, value) for value in given["in"]]
        fact: Any = [one for one in values if one is not None]
        if len(fact) < len(values):
            raise DomainError(f"column {column.name!r}: a missing value is none of a set")
        if isinstance(column.plain, CategoryColumn):
            for one in fact:
                column.code(one)  # complains where there is none
        return fact
    ends = given.get("between")
    if list(given) == ["between"] and isinstance(ends, list) and len(ends) == 2:
        if not column.ordered:
            raise DomainError(
                f"column {column.name!r} has categories, which have no order; "
                f'ask for a set of them: {{"in": [...]}}'
            )
        fact = tuple(None if end is None else _value(column.plain, end) for end in ends)
        column.parse_fact(fact)  # complains of what is not an end
        return fact
    raise DomainError(f"column {column.name!r}: an object is {FORMS}")


def _value(column: Column, value: Any) -> Any:
    """Return one value, None where it is NaN, as text or as some programs write JSON."""
    if value != value or (isinstance(value, str) and value.lower() == "nan"):
        return None
    if type(value) in (int, float) and column.kind in NUMBERS and abs(value) < MAX_PLAIN:
        return float(value)
    if isinstance(value, list | dict):
        raise DomainError(
            f"column {column.name!r}: a cell is a single value; sets and intervals are {FORMS}"
        )
    if isinstance(column, CategoryColumn):
        return value if value in column.values else _of_label(column, value)
    if isinstance(value, bool):
        raise DomainError(f"column {column.name!r} has {column.kind}s, not true and false")
    number = column.to_number(value)
    if not math.isfinite(number):
        raise DomainError(f"column {column.name!r}: {value!r:.40} is infinite; null is unknown")
    return value if column.kind in TIMES else number


def _of_label(column: CategoryColumn, value: Any) -> Any:
    """Return the category that a text is the label of, such as 1 for "1"; else the value."""
    if isinstance(value, str) and value in column.labels:
        code = column.labels.index(value)
        return column.values[code] if code < len(column.values) else value
    return value
