"""Lines and numbers of a text file, read strictly.

The three text formats share one shape: a header, then a line per node, children
before parents, and comment lines that start with ``c``. What this module lets
through is plain ASCII on numbered lines; all else is refused with the line it is on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from expecta.common.errors import FormatError, StructureError

__all__ = ["LineError", "Text", "natural", "numbers", "shown"]

LARGEST_NATURAL = 2**63 - 1  # ids are kept as 64-bit integers
LONGEST_NATURAL = 19  # digits of the above
LONGEST_NUMBER = 400  # the largest double, written without an exponent, has 309 digits

Result = TypeVar("Result")

_KINDS = {
    "vtree": "a vtree",
    "psdd": "a PSDD",
    "Logistic": "a logistic circuit",
    "Logisitic": "a logistic circuit",
    "Regression": "a regression circuit",
}


class LineError(Exception):
    """What is wrong with the line being read; becomes a ``FormatError`` with its place."""


@dataclass(frozen=True)
class Text:
    """The lines of a file that say something, each with its number in the file."""

    path: str
    rows: list[tuple[int, str]]

    @classmethod
    def of(cls, path: str, data: bytes) -> Text:
        """Split a file into lines; refuse what is not text or holds no line at all."""
        if b"\0" in data:
            line = data.count(b"\n", 0, data.index(b"\0")) + 1
            raise FormatError(path, line, "this is a binary file, and not one that Expecta wrote")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise FormatError(path, line, "this is not UTF-8 text") from None
        rows = []
        for number, whole in enumerate(text.split("\n"), 1):
            line_text = whole.strip()
            if not line_text or line_text[0] == "c":
                continue
            # Python reads 1_000 and the digits of every script as numbers. No tool that
            # writes these formats means that, so neither gets past this line.
            if "_" in line_text or not line_text.isascii():
                raise FormatError(path, number, f"unexpected character in {shown(line_text)}")
            rows.append((number, line_text))
        if not rows:
            raise FormatError(path, None, "the file is empty")
        return cls(path, rows)

    @property
    def last_line(self) -> int:
        """The number of the last line that says something."""
        return self.rows[-1][0]

    def header(self, expected: str, words: Sequence[str]) -> list[str]:
        """Return the words of the first line; refuse a file that is of another kind."""
        line, text = self.rows[0]
        found = text.split()
        if found[0] in words:
            return found
        if found[0] in _KINDS:
            raise FormatError(self.path, line, f"this is {_KINDS[found[0]]}, not {expected}")
        wanted = " or ".join(f'"{word} ..."' for word in words)
        raise FormatError(
            self.path, line, f"the header {wanted} of {expected} is missing; found {shown(text)}"
        )

    def counted_header(self, expected: str, word: str) -> None:
        """Check a header that says how many nodes follow, such as ``vtree 71``."""
        found = self.header(expected, [word])
        follow = len(self.rows) - 1

        def check(text: str) -> None:
            if len(found) != 2:
                raise LineError(f'the header is "{word}" and a number, not {shown(text)}')
            promised = natural(found[1])
            if promised != follow:
                raise LineError(
                    f"the header promises {promised} nodes and {follow} follow: "
                    f"the file may be cut off"
                )

        self.parse(self.rows[0], check)

    def parse(self, row: tuple[int, str], read: Callable[[str], Result]) -> Result:
        """Read one line, and give whatever is wrong with it a place in the file."""
        line, text = row
        try:
            return read(text)
        except (LineError, StructureError) as problem:
            raise FormatError(self.path, line, str(problem)) from None


def shown(text: str) -> str:
    """Quote a piece of the file for a message, cut to a readable length."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def natural(token: str) -> int:
    """Read a plain decimal number: no sign, no separators, no other base."""
    if token.isdigit() and len(token) <= LONGEST_NATURAL:
        value = int(token)
        if value <= LARGEST_NATURAL:
            return value
    raise LineError(f"expected a whole number, found {shown(token)}")


def numbers(tokens: Sequence[str]) -> list[float]:
    """Read floating-point numbers; infinities and NaN are the caller's to judge."""
    if max(map(len, tokens), default=0) > LONGEST_NUMBER:
        raise LineError(f"a number is longer than {LONGEST_NUMBER} characters")
    try:
        return list(map(float, tokens))
    except ValueError:
        bad = next(token for token in tokens if not _is_number(token))
        raise LineError(f"expected a number, found {shown(bad)}") from None


def _is_number(token: str) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True
