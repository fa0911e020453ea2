"""Define the exceptions and warnings of Expecta.

An option that does not exist (a link, a method, a tolerance) is a plain ``ValueError``.
"""

from __future__ import annotations

from pathlib import Path


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
    position
        The index in it of the character at fault; its length is the end.
    """

    def __init__(self, problem: str, query: str | None = None, position: int = 0) -> None:
        self.problem, self.query, self.position = problem, query, position
        super().__init__(problem if query is None else f"{problem}\n{_pointed(query, position)}")

    def __reduce__(self) -> tuple[type[QueryError], tuple[str, str | None, int]]:
        return type(self), (self.problem, self.query, self.position)


def _pointed(query: str, position: int, before: int = 60, width: int = 100) -> str:
    """Return the part of a query around a character, and a caret under that character."""
    start = max(0, position - before)
    left, right = "..." * (start > 0), "..." * (len(query) > start + width)
    shown = "".join(c if c.isprintable() else " " for c in query[start : start + width])
    return f"  {left}{shown}{right}\n  {' ' * (len(left) + position - start)}^"


class TooManyGroupsError(DomainError):
    """A question is about more groups than can be asked; ask for smaller ones."""


class ImpossibleEvidenceError(ExpectaError, ValueError):
    """Evidence has probability zero under the circuit, and the caller asked for an error."""


class ImpossibleEvidenceWarning(UserWarning):
    """Evidence has probability zero under the circuit; the answer for these rows is NaN."""


class MissingColumnsWarning(UserWarning):
    """A table lacks columns that a model knows; they are unknown in every row."""
