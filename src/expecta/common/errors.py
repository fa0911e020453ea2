"""The exceptions and warnings of Expecta, in one place.

An option that does not exist (a link, a method, a tolerance) is a plain ``ValueError``.
"""

from __future__ import annotations

from pathlib import Path

__all__ = [
    "DomainError",
    "ExpectaError",
    "FormatError",
    "ImpossibleEvidenceError",
    "ImpossibleEvidenceWarning",
    "PropertyError",
    "QueryError",
    "StructureError",
    "VtreeMismatchError",
]


class ExpectaError(Exception):
    """Base of all errors about circuits, files, rows and evidence."""


class FormatError(ExpectaError, ValueError):
    """A file is damaged, hostile, or not of the expected format.

    Parameters
    ----------
    path
        The file that was read.
    line
        Line number, counted from 1, or ``None`` where a format has no lines.
    problem
        What is wrong, in one sentence.
    """

    def __init__(self, path: str | Path, line: int | None, problem: str) -> None:
        self.path = str(path)
        self.line = line
        self.problem = problem
        where = self.path if line is None else f"{self.path}, line {line}"
        super().__init__(f"{where}: {problem}")

    def __reduce__(self) -> tuple[type[FormatError], tuple[str, int | None, str]]:
        return type(self), (self.path, self.line, self.problem)


class StructureError(ExpectaError, ValueError):
    """A circuit or vtree does not fit together: dangling index, wrong scope, wrong shape."""


class PropertyError(ExpectaError, ValueError):
    """A query needs a property (deterministic, normalised, ...) that the circuit lacks."""


class VtreeMismatchError(PropertyError):
    """Two circuits do not share one vtree, so their pair has no polynomial algorithm."""


class DomainError(ExpectaError, ValueError):
    """Rows, evidence or a question have the wrong shape, or a value that makes no sense."""


class QueryError(DomainError):
    """A condition on rows cannot be read, or names what does not exist.

    Parameters
    ----------
    problem
        What is wrong and what to do, in one sentence.
    query
        The condition as it was written, or ``None`` where it was not a text.
    place
        Where in it the trouble is, counted from 0; its length is the end.
    """

    def __init__(self, problem: str, query: str | None = None, place: int = 0) -> None:
        self.problem, self.query, self.place = problem, query, place
        super().__init__(problem if query is None else f"{problem}\n{_pointed(query, place)}")

    def __reduce__(self) -> tuple[type[QueryError], tuple[str, str | None, int]]:
        return type(self), (self.problem, self.query, self.place)


def _pointed(query: str, place: int, before: int = 60, width: int = 100) -> str:
    """Return the part of a query around a place, and a caret under that place."""
    start = max(0, place - before)
    left, right = "..." * (start > 0), "..." * (len(query) > start + width)
    shown = "".join(c if c.isprintable() else " " for c in query[start : start + width])
    return f"  {left}{shown}{right}\n  {' ' * (len(left) + place - start)}^"


class ImpossibleEvidenceError(ExpectaError, ValueError):
    """Evidence has probability zero under the circuit, and the caller asked for an error."""


class ImpossibleEvidenceWarning(UserWarning):
    """Evidence has probability zero under the circuit; the answer for these rows is NaN."""
