"""Show an answer as text, HTML, JSON, a frame or a plot."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from expecta.common.data_frames import as_frame
from expecta.common.errors import DomainError
from expecta.common.text import number

if TYPE_CHECKING:
    from expecta.ask.displays import Display

MAX_LINES = 30  # of a table that are shown
ERRORS = ("error", "numerical_error")  # columns that are not shown where all are zero
MAY_BE_UNKNOWN = ("standard_error", "rows_output")  # where nothing is known of training rows


class PrintedAnswer(ABC):
    """A frozen dataclass that shows itself: sentences, and a table of its lines.

    A subclass may have the fields ``remarks``, sentences on this very answer, and
    ``exactness``, sentences on what is exact, of which the first is printed after them. ``display``
    names the class of `expecta.ask.displays` that draws it.
    """

    display: ClassVar[str | None] = None

    @abstractmethod
    def lines(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns of the table."""

    @abstractmethod
    def head(self) -> list[str]:
        """Return the sentences before the table."""

    def notes(self) -> list[str]:
        """Return the sentences after it."""
        return list(getattr(self, "remarks", ()))

    def plot(self, ax: Any = None) -> Display[Any]:
        """Draw the answer, on the given axes or on new ones; needs matplotlib."""
        from expecta.ask import displays

        if self.display is None:
            raise DomainError(f"there is no plot of a {type(self).__name__}; print it")
        return getattr(displays, self.display)(self).plot(ax)

    def __str__(self) -> str:
        return "\n".join([*self.head(), *text_table(self._shown()), *self._last()])

    def _shown(self) -> dict[str, Sequence[Any]]:
        """Return the table without errors that are all zero, and without what is not known."""
        return {
            name: cells
            for name, cells in self.lines().items()
            if not (name in ERRORS and not np.any(cells))
            and not (name in MAY_BE_UNKNOWN and np.all(np.isnan(np.asarray(cells, np.float64))))
        }

    def _last(self) -> list[str]:
        """Return the notes, and in a sentence what is exact."""
        return [*self.notes(), *filter(None, [first_sentence(getattr(self, "exactness", ""))])]

    def _repr_html_(self) -> str:
        columns = self._shown()
        rows = _rows(columns)
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in rows[:MAX_LINES]
        )
        more = [f"... and {len(rows) - MAX_LINES} more"] if len(rows) > MAX_LINES else []
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return _paragraphs(self.head()) + table * bool(rows) + _paragraphs([*more, *self._last()])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as what JSON holds; NaN is None."""
        return {
            field.name: plain(getattr(self, field.name))
            for field in fields(self)  # type: ignore[arg-type]
        }

    def to_frame(self) -> Any:
        """Return the table as a pandas or polars frame, or a dict where neither is installed."""
        columns = {name: np.array(list(values)) for name, values in self.lines().items()}
        return as_frame(columns, None)


def first_sentence(text: str) -> str:
    """Return the first sentence of a text.

    >>> first_sentence("Exact, given the learned density: the mean. Quantiles: within 0.1.")
    'Exact, given the learned density: the mean.'
    """
    return re.split(r"(?<=\.)\s", text, maxsplit=1)[0]


def text_table(columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return a table as lines; numbers are set to the right, and no rows are no lines."""
    rows = _rows(columns)
    if not rows:
        return []
    shown = [list(columns), *rows[:MAX_LINES]]
    widths = [max(map(len, cells)) for cells in zip(*shown, strict=True)]
    right = [not any(isinstance(cell, str) for cell in cells) for cells in columns.values()]
    out = [
        "  ".join(
            cell.rjust(width) if numeric else cell.ljust(width)
            for cell, width, numeric in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in shown
    ]
    return out + [f"... and {len(rows) - MAX_LINES} more"] * (len(rows) > MAX_LINES)


def plain(value: Any) -> Any:
    """Return a value as what JSON holds."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, PrintedAnswer):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def _rows(columns: Mapping[str, Sequence[Any]]) -> list[list[str]]:
    return [[_cell(value) for value in row] for row in zip(*columns.values(), strict=True)]


def _cell(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return str(value)
    return number(float(value)) if isinstance(value, float | np.floating) else str(value)


def _paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
