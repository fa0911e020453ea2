"""Define the exceptions and warnings of Expecta.

An option that does not exist (a link, a method, a tolerance) is a plain ``ValueError``.
"""

from __future__ import annotations

from pathlib import Path


class ExpectaError(Exception):
    """Base of all errors about circuits, files, rows and evidence.

    Examples
    --------
    >>> from expecta import ExpectaError, Vtree
    >>> from expecta.circuits import independent
    >>> try:
    ...     independent(Vtree.balanced(2), [[0.5, 0.5]])
    ... except ExpectaError as problem:
    ...     print(type(problem).__name__)
    StructureError
    """


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

    Examples
    --------
    >>> from expecta import FormatError
    >>> str(FormatError("small.psdd", 3, "a node is named that is not there"))
    'small.psdd, line 3: a node is named that is not there'
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
    """A circuit or vtree does not fit together: dangling index, wrong scope, wrong shape.

    Examples
    --------
    >>> from expecta import StructureError, Vtree
    >>> from expecta.circuits import independent
    >>> try:
    ...     independent(Vtree.balanced(2), [[0.5, 0.5]])
    ... except StructureError as problem:
    ...     print(problem)
    1 tables for a vtree of 2 variables
    """


class PropertyError(ExpectaError, ValueError):
    """A query needs a property (deterministic, normalised, ...) that the circuit lacks.

    Examples
    --------
    >>> from expecta import PropertyError, random_probabilistic, Vtree
    >>> try:
    ...     random_probabilistic(Vtree.balanced(4), seed=0).entropy()
    ... except PropertyError as problem:
    ...     print("deterministic" in str(problem))
    True
    """


class VtreeMismatchError(PropertyError):
    """Two circuits do not share one vtree, so their pair has no polynomial algorithm.

    Examples
    --------
    >>> from expecta import Pair, Vtree, VtreeMismatchError
    >>> from expecta.circuits import independent, linear
    >>> p = independent(Vtree.left_linear(3), [[0.5, 0.5]] * 3)
    >>> g = linear(Vtree.right_linear(3), [[0.0, 1.0]] * 3)
    >>> try:
    ...     Pair(p, g)
    ... except VtreeMismatchError:
    ...     print("write both over one vtree")
    write both over one vtree
    """


class DomainError(ExpectaError, ValueError):
    """Rows, evidence or a question have the wrong shape, or a value that makes no sense.

    Examples
    --------
    >>> from expecta import DomainError, Independent
    >>> density = Independent().fit({"age": [20, 30]})
    >>> try:
    ...     density.marginal("aeg")
    ... except DomainError as problem:
    ...     print(str(problem).split(";")[0])
    there is no column 'aeg'
    """


class BatchError(DomainError):
    """A batch of a stream of rows cannot be read.

    Parameters
    ----------
    batch
        Its number, counted from 0.
    row
        The first row at fault, counted from 0 in the batch; None where the batch as a whole is.
    before
        How many rows the batches before it have; None where nobody knows.
    problem
        What is wrong, in one sentence.

    Examples
    --------
    >>> from expecta import BatchError
    >>> problem = BatchError(2, 7, 2000, "'abc' is no number")
    >>> str(problem)
    "batch 2, row 7 (row 2,007 of all): 'abc' is no number"
    """

    def __init__(self, batch: int, row: int | None, before: int | None, problem: str) -> None:
        self.batch, self.row, self.before, self.problem = batch, row, before, problem
        where = "" if row is None else f", row {row}"
        if row is not None and before is not None:
            where += f" (row {before + row:,} of all)"
        super().__init__(f"batch {batch}{where}: {problem}")

    def __reduce__(self) -> tuple[type[BatchError], tuple[int, int | None, int | None, str]]:
        return type(self), (self.batch, self.row, self.before, self.problem)


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

    Examples
    --------
    >>> from expecta import QueryError
    >>> print(QueryError("a value is missing", "age >", 5))
    a value is missing
      age >
           ^
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


class DeviceError(ExpectaError, RuntimeError):
    """A card that was asked for is not there, or failed."""


class ImpossibleEvidenceError(ExpectaError, ValueError):
    """Evidence has probability zero under the circuit, and the caller asked for an error.

    Examples
    --------
    >>> from expecta import ImpossibleEvidenceError, Pair, Vtree
    >>> from expecta.circuits import independent, linear
    >>> vtree = Vtree.balanced(2)
    >>> pair = Pair(independent(vtree, [[1.0, 0.0]] * 2), linear(vtree, [[0.0, 1.0]] * 2))
    >>> try:
    ...     pair.expectation([[1, -1]], on_impossible="raise")
    ... except ImpossibleEvidenceError:
    ...     print("the first variable is never 1")
    the first variable is never 1
    """


class ImpossibleEvidenceWarning(UserWarning):
    """Evidence has probability zero under the circuit; the answer for these rows is NaN.

    Examples
    --------
    >>> import warnings
    >>> from expecta import ImpossibleEvidenceWarning, Pair, Vtree
    >>> from expecta.circuits import independent, linear
    >>> vtree = Vtree.balanced(2)
    >>> pair = Pair(independent(vtree, [[1.0, 0.0]] * 2), linear(vtree, [[0.0, 1.0]] * 2))
    >>> with warnings.catch_warnings(action="ignore", category=ImpossibleEvidenceWarning):
    ...     pair.expectation([[1, -1]])
    array([nan])
    """


class MissingColumnsWarning(UserWarning):
    """A table lacks columns that a model knows; they are unknown in every row.

    Examples
    --------
    >>> import warnings
    >>> from expecta import Independent, MissingColumnsWarning
    >>> density = Independent().fit({"age": [20, 30], "sex": ["f", "m"]})
    >>> with warnings.catch_warnings(action="ignore", category=MissingColumnsWarning):
    ...     density.score_samples({"age": [20]}).shape  # the sex is unknown
    (1,)
    """
