"""Name columns that look odd: one note for all columns alike, with the option that settles it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from shlex import quote

import numpy as np

from expecta.common.arrays import Floats
from expecta.tables.cell_options import number_pattern, read_date
from expecta.tables.cells import Cells

MAX_NAMES = 4  # columns that a note names
MAX_LEVELS = 500  # categories of a column that are looked at
MAX_ROWS = 20_000  # rows of numbers that are looked at
MIN_ROWS = 20  # rows below which a column of numbers is not judged
MARKER_SHARE = 0.01  # share of rows from which an outlying number may mean missing
MARKERS = frozenset(
    {"?", "-", "--", ".", "*", "na", "n/a", "#n/a", "<na>", "nan", "null", "nil", "none"}
    | {"unknown", "missing"}
)
MARKER_NUMBERS = frozenset((-1.0, *(s * (10.0**d - 1) for d in range(1, 10) for s in (1, -1))))
IDENTIFIER = re.compile(r"(?:^|[\s_.-])(?:id|uuid|guid|key|index|rownum)$|[a-z]I[dD]$")
CODE = re.compile(r"(?i)(?:^|[\s_.-])(?:plz|fips|zip|code)$|zip\W?code|post(?:al)?\W?code")
_DAYS = (
    *("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d"),
    *("%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y"),
)
DATE_FORMATS = (None, *(day + time for time in ("", " %H:%M", " %H:%M:%S") for day in _DAYS))


class _Columns(list[str]):
    """Names of columns, as a sentence about them has them."""

    def __str__(self) -> str:
        shown = [repr(name) for name in self[:MAX_NAMES]]
        if len(self) == 1:
            return f"column {shown[0]}"
        if len(self) > MAX_NAMES:
            return f"columns {', '.join(shown)} and {len(self) - MAX_NAMES} more"
        return f"columns {', '.join(shown[:-1])} and {shown[-1]}"

    def verb(self, one: str, several: str) -> str:
        """Return a word for one column or for several."""
        return one if len(self) == 1 else several

    def python(self, option: str, value: str = "") -> str:
        """Return an option of the encoder that names the columns."""
        items = [f"{name!r}: {value!r}" if value else repr(name) for name in self[:MAX_NAMES]]
        given = ", ".join(items) + (", ..." if len(self) > MAX_NAMES else "")
        return f"{option}={{{given}}}" if value else f"{option}=[{given}]"

    def flags(self, flag: str, value: str = "") -> str:
        """Return an option of the command line that names the columns."""
        end = f"={value}" if value else ""
        words = [f"{flag} {quote(name + end)}" for name in self[:MAX_NAMES]]
        return " ".join(words) + (" ..." if len(self) > MAX_NAMES else "")

    def option(self, name: str, flag: str, value: str = "") -> str:
        """Return an option that names the columns, in Python and on the command line."""
        return f"{self.python(name, value)}, or {self.flags(flag, value)}"


def _marker(detail: str) -> str:
    return f"na=[{detail}], or --na {quote(detail.strip(chr(39)))}"


def _identifiers(c: _Columns) -> str:
    return f"leave {c.verb('it', 'them')} out ({c.flags('--drop')})"


_SENTENCES: dict[str, Callable[[_Columns, str], str]] = {
    "constant": lambda c, _: f"{c} {c.verb('has', 'have')} the same value in every row",
    "empty": lambda c, _: (
        f"{c} {c.verb('has no known value; it carries', 'have no known value; they carry')} "
        f"no information"
    ),
    "identifier": lambda c, _: (
        f"{c} {c.verb('has', 'have')} a distinct value in nearly every row, like an identifier; "
        f"{c.verb('it carries', 'they carry')} no information, so {_identifiers(c)}"
    ),
    "row number": lambda c, _: (
        f"{c} {c.verb('looks like an identifier, and is', 'look like identifiers, and are')} read "
        f"as numbers; if so, {_identifiers(c)}"
    ),
    "rounded": lambda c, _: (
        f"{c} {c.verb('has', 'have')} integers beyond 2^53 that become the same float"
    ),
    "declared": lambda c, n: (
        f"{c} {c.verb('declares', 'declare')} categories that do not occur in "
        f"{c.verb('it', 'them')}: {n}"
    ),
    "many": lambda c, n: (
        f"{c} {c.verb('has', 'have')} {n.split(', ')[0]} categories; the {n.split(', ')[1]} most "
        f"frequent are kept and the rest are one value 'other'; to keep all: "
        f"max_categories={n.split(', ')[0]}, or --max-categories {n.split(', ')[0]}; "
        f"if they identify rows, {_identifiers(c)}"
    ),
    "marker": lambda c, what: f"{what} is a category of {c}; if it means missing: {_marker(what)}",
    "marked numbers": lambda c, what: (
        f"{c} {c.verb('holds', 'hold')} numbers and {what}, so {c.verb('it is', 'they are')} "
        f"read as categories; if {what} means missing: {_marker(what)} (in Python with "
        f"{c.python('numeric')})"
    ),
    "marked commas": lambda c, what: (
        f"{c} {c.verb('holds', 'hold')} numbers with decimal commas and {what}, so "
        f"{c.verb('it is', 'they are')} read as categories; if {what} means missing: "
        f"{_marker(what)} --decimal , (in Python with {c.python('numeric')}, decimal=',')"
    ),
    "marker number": lambda c, what: (
        f"{c} {c.verb('has', 'have')} the number {what} far from all others; if it means missing: "
        f"{_marker(what)}"
    ),
    "number texts": lambda c, _: (
        f"{c} {c.verb('holds', 'hold')} numbers written as texts, read as categories; to read "
        f"numbers: {c.option('numeric', '--numeric')}"
    ),
    "decimal commas": lambda c, _: (
        f"{c} {c.verb('holds', 'hold')} texts like 0,5, read as categories; if these are numbers "
        f"with decimal commas: decimal=',', or --decimal ,"
    ),
    "dates": lambda c, form: (
        f"{c} {c.verb('looks', 'look')} like dates, and {c.verb('is', 'are')} not read as such; "
        f"if so: {c.option('dates', '--date', form)}"
    ),
    "codes": lambda c, _: (
        f"{c} {c.verb('looks', 'look')} like codes, and {c.verb('is', 'are')} read as numbers; if "
        f"their order means nothing: {c.option('categorical', '--categorical')}"
    ),
    "zeros": lambda c, _: (
        f"{c} {c.verb('has', 'have')} leading zeros, so {c.verb('it is', 'they are')} text: "
        f"codes, not numbers; to read numbers: {c.option('numeric', '--numeric')}"
    ),
}


@dataclass
class ColumnNotes:
    """Notes about unusual columns, by topic and detail."""

    columns: dict[tuple[str, str], _Columns] = field(default_factory=dict)

    def add(self, topic: str, name: str, detail: str = "") -> None:
        """Add a note about a column."""
        self.columns.setdefault((topic, detail), _Columns()).append(name)

    def has(self, name: str) -> bool:
        """Whether there is a note about a column."""
        return any(name in names for names in self.columns.values())

    def sentences(self) -> list[str]:
        """Return one sentence for each topic."""
        return [_SENTENCES[topic](names, detail) for (topic, detail), names in self.columns.items()]

    def judge(self, cells: Cells) -> None:
        """Note where a column may be of another kind than it is read as.

        At most 500 categories and 20,000 rows of it are examined.
        """
        if cells.kind == "category" and not cells.declared:
            self._judge_texts(cells.name, [str(level) for level in cells.levels[:MAX_LEVELS]])
        elif cells.kind in ("integer", "number"):
            assert cells.numbers is not None
            rows = cells.numbers[:: max(1, len(cells) // MAX_ROWS)]
            self._judge_numbers(cells, rows[np.isfinite(rows)])

    def _judge_texts(self, name: str, levels: list[str]) -> None:
        texts = [level.strip() for level in levels]
        odd = [text for text in texts if not _NUMBER.fullmatch(text)]
        commas = [text for text in texts if not _COMMAS.fullmatch(text)]
        if len(commas) == 1 and len(odd) > 1:  # decimal commas, and one text
            odd = commas
        numbers = len(texts) - len(odd)
        markers = [text for text in texts if text.casefold() in MARKERS]
        if len(odd) == 1 and numbers >= 3:
            self.add("marked commas" if odd is commas else "marked numbers", name, repr(odd[0]))
        elif markers:
            for marker in markers:
                self.add("marker", name, repr(marker))
        elif (form := _date_format(texts)) is not _NO_FORMAT:
            self.add("dates", name, form or "")
        elif not odd and any(re.match(r"[-+]?0\d", text) for text in texts):
            self.add("zeros", name)
        elif not odd and numbers >= 3:
            self.add("number texts", name)
        elif numbers < len(texts) and len(texts) >= 3 and all(map(_COMMAS.fullmatch, texts)):
            self.add("decimal commas", name)

    def _judge_numbers(self, cells: Cells, numbers: Floats) -> None:
        if len(numbers) < MIN_ROWS:
            return
        name = cells.name
        values, times = np.unique(numbers, return_counts=True)
        n, distinct = len(numbers), len(values)
        for at, near in ((-1, -2), (0, 1)):
            if distinct > 2 and values[at] in MARKER_NUMBERS:
                others = values[1:] if at == 0 else values[:-1]
                gap, span = abs(values[at] - values[near]), others[-1] - others[0]
                signs = values[at] < 0 <= others[0]
                sure = values[at] <= -99  # the only negative number
                far = gap > 2 * span or (signs and values[at] != -1.0 and (sure or gap > span / 2))
                if far and times[at] >= max(2.0, MARKER_SHARE * n):
                    self.add("marker number", name, f"{values[at]:g}")
        if not np.all(values == np.floor(values)):
            return
        low, high = values[0], values[-1]
        counted = distinct == n == len(cells) and low in (0, 1) and high - low == n - 1
        if counted or (distinct > 0.9 * n and IDENTIFIER.search(name)):
            self.add("row number", name)
        elif _are_dates(values):
            self.add("dates", name)
        elif distinct > 2 and low >= 0 and (CODE.search(name) or _fixed_digits(values, n)):
            self.add("codes", name)


_NUMBER, _COMMAS, _NO_FORMAT = number_pattern("."), number_pattern(","), "none"


def is_code(name: str, low: float, high: float) -> bool:
    """Whether whole numbers are years or codes, which are written without a mark of thousands.

    >>> is_code("yr_built", 1900, 2015), is_code("zipcode", 98001, 98199), is_code("rows", 1, 9000)
    (True, True, False)
    """
    return bool(CODE.search(name) or IDENTIFIER.search(name)) or (low >= 1500 and high <= 2100)


def _date_format(texts: list[str]) -> str | None:
    """Return the format of dates: None for ISO's, and ``_NO_FORMAT`` where they are not dates."""
    if len(texts) < 2 or not all(6 <= len(text) <= 40 and text[-1:].isdigit() for text in texts):
        return _NO_FORMAT
    for form in DATE_FORMATS:
        try:
            for text in texts:
                read_date(text, form)
        except ValueError:
            continue
        return form
    return _NO_FORMAT


def _are_dates(values: Floats) -> bool:
    """Whether whole numbers are dates such as 20240531."""
    if not (values[0] >= 19000101 and values[-1] <= 21001231 and len(values) > 2):
        return False
    months, days = values // 100 % 100, values % 100
    return bool(np.all((months >= 1) & (months <= 12) & (days >= 1) & (days <= 31)))


def _fixed_digits(values: Floats, rows: int) -> bool:
    """Whether numbers have five digits or more, all as many, and each occurs often."""
    digits = int(np.log10(max(values[0], 1.0))) + 1
    return digits >= 5 and values[-1] < 10.0**digits and len(values) <= 0.05 * rows
