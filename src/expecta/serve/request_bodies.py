"""Read the bodies of requests within limits, and write answers, as the API's description says."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from expecta.common.text import suggestion
from expecta.serve.problems import MEDIA_TYPE, ProblemError, to_json
from expecta.serve.serve_options import ServeOptions

JSON = "application/json"
RETRY = {"Retry-After": "1"}
STATUSES = {
    400: "The body cannot be read.",
    401: "A token is required.",
    404: "There is no such model or page.",
    405: "The address takes another method.",
    408: "The body did not arrive in time.",
    413: "The body, or its number of rows, is too large.",
    415: "The body is of a type that is not read here.",
    422: "The request cannot be answered; the problem names column, value and row.",
    429: "Too much is waiting; try again after the time in Retry-After.",
    503: "Not ready yet, or no answer within the time limit.",
}
_TRIED = re.compile(r"str|dict\[.*\]|list\[.*\]")  # what pydantic calls the choices of a union
PROBLEM_SCHEMA = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "column": {"type": "string"},
        "row": {"type": "integer"},
    },
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": {MEDIA_TYPE: {"schema": PROBLEM_SCHEMA}}}
    for status, text in STATUSES.items()
}


def json_response(document: Any, status: int = 200, **headers: str) -> Response:
    """Return a document as JSON: numbers to the last bit, NaN as null."""
    return Response(to_json(document), status, headers=headers or None, media_type=JSON)


async def read_body(request: Request, options: ServeOptions) -> bytes:
    """Read a body within the limits of size and time."""
    declared = header(request, b"content-length")
    if declared.isdigit() and int(declared) > options.max_bytes:
        raise _too_large(options)
    chunks, size, more = [], 0, True
    try:
        async with asyncio.timeout(options.timeout):
            while more:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                chunks.append(message.get("body", b""))
                size, more = size + len(chunks[-1]), message.get("more_body", False)
                if size > options.max_bytes:
                    raise _too_large(options)
    except TimeoutError:
        raise ProblemError(
            408,
            f"the body did not arrive within {options.timeout:g} seconds",
            {"Connection": "close"},
        ) from None
    return b"".join(chunks)


def _too_large(options: ServeOptions) -> ProblemError:
    return ProblemError(
        413,
        f"the body is larger than {options.max_bytes:,} bytes; send less, or a stream of rows",
        {"Connection": "close"},
    )


def check_rows(count: int, options: ServeOptions) -> None:
    """Refuse more rows than one request may have."""
    if count > options.max_rows:
        raise ProblemError(
            413,
            f"{count:,} rows are more than {options.max_rows:,}; send less, or a stream of rows",
        )


def content_type(request: Request) -> str:
    """Return the type of a body; JSON where none is said."""
    given = header(request, b"content-type")
    return JSON if given in ("", JSON) else given.partition(";")[0].strip().lower()


def header(request: Request, name: bytes) -> str:
    """Return a header, empty where it is not there."""
    return next((v.decode("latin-1") for k, v in request.scope["headers"] if k == name), "")


async def read_request(request: Request, model: type[BaseModel], options: ServeOptions) -> Any:
    """Read a body of JSON."""
    kind = content_type(request)
    if kind != JSON:
        raise ProblemError(415, f"this address takes {JSON}, not {kind:.80}")
    return parse_request(await read_body(request, options), model)


def parse_request(body: bytes, model: type[BaseModel]) -> Any:
    """Read a request; a problem says which field is wrong."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise _invalid(error, model) from None


def _invalid(error: ValidationError, model: type[BaseModel]) -> ProblemError:
    parts, status = [], 422
    for one in error.errors(include_url=False, include_context=False)[:10]:
        name = _field(one["loc"])
        if one["type"] == "json_invalid":
            status = 400
            parts.append(f"the body is not JSON: {one['msg'].removeprefix('Invalid JSON: ')}")
        elif one["type"] == "extra_forbidden":
            near = suggestion(name, model.model_fields)
            parts.append(f"there is no field {name!r}; {near}")
        else:
            what = one["msg"].replace("Input should", "must").replace("List should", "must")
            parts.append(f"{name or 'the body'}: {what.removesuffix(' after validation, not 0')}")
    return ProblemError(status, "; ".join(dict.fromkeys(parts)))


def _field(where: tuple[int | str, ...]) -> str:
    """Write which field is wrong, without the type of a choice that pydantic tried."""
    kept = [str(part) for i, part in enumerate(where) if i != 1 or not _TRIED.fullmatch(str(part))]
    return ".".join(kept)[:200]


def body_schema(model: type[BaseModel], *more: str) -> dict[str, Any]:
    """Return the part of an operation's description that says what its body is."""
    content: dict[str, Any] = {JSON: {"schema": model.model_json_schema()}}
    content |= {kind: {"schema": {"type": "string", "format": "binary"}} for kind in more}
    return {"requestBody": {"required": True, "content": content}}
