"""Say what is wrong with a request: problem details (RFC 9457) in the caller's terms."""

from __future__ import annotations

import json
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from expecta.ask.printed_answer import plain
from expecta.common.errors import (
    DomainError,
    ImpossibleEvidenceError,
    QueryError,
    TooManyGroupsError,
)
from expecta.common.text import printable

try:
    import orjson
except ModuleNotFoundError:  # which has no wheel yet for the newest Python
    orjson = None  # type: ignore[assignment]

MEDIA_TYPE = "application/problem+json"
MAX_DETAIL = 2000  # characters


def to_json(document: Any) -> bytes:
    """Write a document as JSON: numbers to the last bit, NaN as null."""
    if orjson is not None:
        with suppress(TypeError):  # half a character, or an integer beyond 64 bits
            return orjson.dumps(document, str, orjson.OPT_NON_STR_KEYS)
    return json.dumps(plain(document), allow_nan=False, separators=(",", ":")).encode()


class ProblemError(Exception):
    """A request that is not answered, and why.

    Parameters
    ----------
    status
        The HTTP status.
    detail
        What was given, what was expected, what to do.
    headers
        Further headers of the answer.
    where
        Further members: ``column``, ``value``, ``row``, ``position``.
    """

    def __init__(
        self, status: int, detail: str, headers: dict[str, str] | None = None, **where: Any
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers, self.where = status, detail, headers, where

    def document(self) -> dict[str, Any]:
        """Return the members of the problem."""
        where = {name: value for name, value in self.where.items() if value is not None}
        return {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": printable(self.detail)[:MAX_DETAIL],
            **where,
        }

    def response(self) -> Response:
        """Return the answer."""
        return Response(
            to_json(self.document()),
            self.status,
            headers=self.headers,
            media_type=MEDIA_TYPE,
        )


def busy(what: str) -> ProblemError:
    """Return that too much waits already; the caller may try again."""
    return ProblemError(429, f"{what}; try again in a second", {"Retry-After": "1"})


def problem_of(error: Exception, row: int | None = None) -> ProblemError:
    """Return what the library's error is to a caller; another error is raised again."""
    if isinstance(error, ProblemError):
        if row is not None:
            error.where.setdefault("row", row)
        return error
    if isinstance(error, QueryError) and error.query is not None:
        return ProblemError(422, error.problem, query=error.query, position=error.position)
    if isinstance(error, TooManyGroupsError | ImpossibleEvidenceError | DomainError):
        return ProblemError(422, str(error), row=row)
    if isinstance(error, ValueError | TypeError):  # an option that is none, or does not apply
        return ProblemError(422, str(error), row=row)
    raise error
