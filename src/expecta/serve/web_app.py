"""Put the service together: an ASGI application over models."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from importlib.resources import files
from typing import Any

import orjson
from fastapi import FastAPI, Request
from pydantic import Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from expecta import __version__
from expecta.common.text import suggestion
from expecta.serve.asked_questions import QUESTIONS, AskedQuestion, StrictModel
from expecta.serve.json_rows import has_evidence
from expecta.serve.model_registry import ModelEntry, ModelRegistry
from expecta.serve.one_case import CaseRequest, answer_case
from expecta.serve.problems import MEDIA_TYPE, ProblemError
from expecta.serve.request_guard import RequestGuard
from expecta.serve.serve_options import ServeOptions
from expecta.serve.served_model import PredictOptions
from expecta.serve.service_metrics import ServiceMetrics

log = logging.getLogger("expecta.serve")

JSON = "application/json"
RETRY = {"Retry-After": "1"}
STATUSES = {
    400: "The body cannot be read.",
    401: "A token is asked for.",
    404: "There is no such model or page.",
    405: "The address takes another method.",
    408: "The body did not arrive in time.",
    413: "The body, or its number of rows, is too large.",
    415: "The body is of a type that is not read here.",
    422: "The request cannot be answered; the problem names column, value and row.",
    429: "Too much is waiting; try again after the time in Retry-After.",
    503: "Not ready yet, or no answer within the time limit.",
}
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
ABOUT = (
    "What models predict, and how sure they are, when some of their inputs are unknown. Rows are "
    'objects from columns to values; a cell may be a value, `null` or `"NaN"` (unknown, as is an '
    'absent key), an interval `{"between": [30, 40]}` or a set `{"in": ["a", "b"]}`. Groups are '
    "such objects, or texts such as `smoker == 'yes' and age < 30`. Errors are problem details "
    "(RFC 9457). Numbers are those of the Python library, to the last bit."
)


class PredictRequest(StrictModel):
    """Rows, and what to predict of them."""

    rows: dict[str, Any] | list[dict[str, Any]] = Field(description="One row, or several.")
    std: bool = Field(False, description="Add the spread of the model's output.")
    interval: float | None = Field(None, gt=0, lt=1, description="Add an interval of y.")
    quantiles: list[float] | None = Field(None, max_length=1000, description="Of y, by level.")
    proba: bool = Field(False, description="Add the probability of each class.")
    error: bool = Field(False, description="Add the error of each class's probability.")

    def options(self) -> PredictOptions:
        """Return what to add, as a key that requests share."""
        levels = None if self.quantiles is None else tuple(self.quantiles)
        return PredictOptions(self.std, self.interval, levels, self.proba, self.error)


class ScoreRequest(StrictModel):
    """Rows whose log-probability is asked for."""

    rows: dict[str, Any] | list[dict[str, Any]]


def app(models: Mapping[str, Any], options: ServeOptions | None = None) -> FastAPI:
    """Return a service over models, as an ASGI application.

    Parameters
    ----------
    models
        Names, and for each a file that an estimator or a density was saved in, or a fitted
        estimator or density itself. A file that is replaced is read anew.
    options
        Limits and permissions.

    Examples
    --------
    >>> from expecta import ChowLiu, CircuitRegressor
    >>> table = {"smoker": ["no", "yes"] * 20, "children": [0, 0, 1, 2] * 10}
    >>> model = CircuitRegressor(density=ChowLiu()).fit(table, [1.0, 9.0] * 20)
    >>> service = app({"cost": model})
    """
    options = options or ServeOptions()
    metrics = ServiceMetrics()
    registry = ModelRegistry(models, options, metrics)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        registry.start()
        yield
        await registry.stop()

    service = FastAPI(
        title="Expecta",
        version=__version__,
        description=ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses=RESPONSES,
    )
    service.state.registry, service.state.metrics = registry, metrics
    _handle_errors(service)
    _add_health(service, registry, metrics)
    _add_models(service, registry, options)
    _add_pages(service)
    service.add_middleware(RequestGuard, options=options, metrics=metrics)
    if options.origins:
        service.add_middleware(
            CORSMiddleware,
            allow_origins=list(options.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    return service


def json_response(document: Any, status: int = 200, **headers: str) -> Response:
    """Return a document as JSON: numbers to the last bit, NaN as null."""
    body = orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS)
    return Response(body, status, headers=headers or None, media_type=JSON)


# -- what requests hold -------------------------------------------------------------------


async def read_body(request: Request, options: ServeOptions) -> bytes:
    """Read a body within the limits of size and time."""
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > options.max_bytes:
        raise _too_large(options)
    chunks, size = [], 0
    try:
        async with asyncio.timeout(options.timeout):
            async for chunk in request.stream():
                size += len(chunk)
                if size > options.max_bytes:
                    raise _too_large(options)
                chunks.append(chunk)
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


async def read_request(request: Request, model: type[StrictModel], options: ServeOptions) -> Any:
    """Read a body of JSON."""
    kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if kind != JSON:
        raise ProblemError(415, f"this address takes {JSON}, not {kind:.80}")
    return parse_request(await read_body(request, options), model)


def parse_request(body: bytes, model: type[StrictModel]) -> Any:
    """Read a request; a problem says which field is wrong."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise _invalid(error, model) from None


def _invalid(error: ValidationError, model: type[StrictModel]) -> ProblemError:
    parts, status = [], 422
    for one in error.errors(include_url=False, include_context=False)[:10]:
        name = ".".join(str(part) for part in one["loc"])[:200]
        if one["type"] == "json_invalid":
            status = 400
            parts.append(f"the body is no JSON: {one['msg'].removeprefix('Invalid JSON: ')}")
        elif one["type"] == "extra_forbidden":
            near = suggestion(name, model.model_fields)
            parts.append(f"there is no field {name!r}; {near}")
        else:
            parts.append(f"{name or 'the body'}: {one['msg']}")
    return ProblemError(status, "; ".join(dict.fromkeys(parts)))


def body_schema(model: type[StrictModel], *more: str) -> dict[str, Any]:
    """Return the part of an operation's description that says what its body is."""
    content: dict[str, Any] = {JSON: {"schema": model.model_json_schema()}}
    content |= {kind: {"schema": {"type": "string", "format": "binary"}} for kind in more}
    return {"requestBody": {"required": True, "content": content}}


# -- routes -------------------------------------------------------------------------------


def _handle_errors(service: FastAPI) -> None:
    async def on_problem(_: Request, error: Exception) -> Response:
        assert isinstance(error, ProblemError)
        return error.response()

    async def on_http(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = None if error.headers is None else dict(error.headers)
        return ProblemError(error.status_code, str(error.detail), headers).response()

    async def on_error(_: Request, error: Exception) -> Response:
        log.error("unexpected error", exc_info=error)
        return ProblemError(
            500, "an error that should not happen; the service's log has it"
        ).response()

    service.add_exception_handler(ProblemError, on_problem)
    service.add_exception_handler(HTTPException, on_http)
    service.add_exception_handler(Exception, on_error)


def _add_health(service: FastAPI, registry: ModelRegistry, metrics: ServiceMetrics) -> None:
    @service.get("/health/live", tags=["health"], summary="Whether the process answers")
    async def live() -> Response:
        return json_response({"status": "live"})

    @service.get("/health/ready", tags=["health"], summary="Whether every model is warm")
    async def ready() -> Response:
        models = {
            name: {
                "ready": entry.is_warm,
                "version": entry.served.version,
                "problem": entry.problem,
            }
            for name, entry in registry.entries.items()
        }
        if not registry.is_ready:
            waiting = ", ".join(name for name, entry in models.items() if not entry["ready"])
            raise ProblemError(503, f"not ready yet: {waiting}", RETRY, models=models)
        return json_response({"status": "ready", "models": models})

    @service.get("/metrics", tags=["health"], summary="Counts, for Prometheus")
    async def counts() -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")


def _add_models(service: FastAPI, registry: ModelRegistry, options: ServeOptions) -> None:
    def entry_of(name: str, request: Request) -> ModelEntry:
        entry = registry.get(name)
        request.state.facts = {"model": name}
        if not entry.is_warm:
            raise ProblemError(503, f"model {name!r} is not ready yet", RETRY)
        return entry

    @service.get("/models", tags=["models"], summary="The models")
    async def models() -> Response:
        documents = [
            {
                "name": name,
                "version": entry.served.version,
                "target": entry.served.target,
                "classes": entry.served.classes,
                "columns": entry.served.rows.names,
                "ready": entry.is_warm,
                "problem": entry.problem,
            }
            for name, entry in registry.entries.items()
        ]
        return json_response({"models": documents, "expecta_version": __version__})

    @service.get("/models/{name}", tags=["models"], summary="What a model is: its card")
    async def card(name: str, request: Request) -> Response:
        entry = entry_of(name, request)
        document = await registry.questions.run(lambda: entry.served.card)
        return json_response(document | {"problem": entry.problem})

    @service.post(
        "/models/{name}/predict",
        tags=["rows"],
        summary="Predict for rows with unknown cells",
        openapi_extra=body_schema(PredictRequest),
    )
    async def predict(name: str, request: Request) -> Response:
        entry = entry_of(name, request)
        given = await read_request(request, PredictRequest, options)
        return json_response(await _predict(entry, given, request, registry, options))

    @service.post(
        "/models/{name}/score",
        tags=["rows"],
        summary="Log-probability of rows under the density",
        openapi_extra=body_schema(ScoreRequest),
    )
    async def score(name: str, request: Request) -> Response:
        served = entry_of(name, request).served
        given = await read_request(request, ScoreRequest, options)
        rows = [given.rows] if isinstance(given.rows, dict) else given.rows
        check_rows(len(rows), options)
        cells = [served.rows.single_cells(row, i) for i, row in enumerate(rows)]
        table = served.rows.table(cells)
        return json_response(await registry.questions.run(partial(served.score, table)))

    @service.post(
        "/models/{name}/case",
        tags=["rows"],
        summary="All that a decision on one case needs",
        openapi_extra=body_schema(CaseRequest),
    )
    async def case(name: str, request: Request) -> Response:
        served = entry_of(name, request).served
        given = await read_request(request, CaseRequest, options)
        return json_response(await registry.questions.run(partial(answer_case, served, given)))

    for question in QUESTIONS:
        _add_question(service, question, entry_of, registry, options)


def _add_question(
    service: FastAPI,
    question: AskedQuestion,
    entry_of: Callable[[str, Request], ModelEntry],
    registry: ModelRegistry,
    options: ServeOptions,
) -> None:
    async def answer(name: str, request: Request) -> Response:
        served = entry_of(name, request).served
        given = await read_request(request, question.request, options)
        rows = getattr(given, "rows", None)
        if isinstance(rows, list):
            check_rows(len(rows), options)
        return json_response(await registry.questions.run(partial(question.answer, served, given)))

    about = (question.method.__doc__ or "").strip().splitlines()
    endpoint: Callable[..., Awaitable[Response]] = answer
    service.add_api_route(
        f"/models/{{name}}/{question.path}",
        endpoint,
        methods=["POST"],
        name=question.path,
        tags=["questions"],
        summary=about[0].rstrip("."),
        description="\n".join(line.strip() for line in about[1:]).partition("\nParameters")[0],
        openapi_extra=body_schema(question.request),
    )


async def _predict(
    entry: ModelEntry,
    given: PredictRequest,
    request: Request,
    registry: ModelRegistry,
    options: ServeOptions,
) -> dict[str, Any]:
    """Answer a request for predictions, together with others that wait."""
    served = entry.served
    served.check_predicts()
    rows = [given.rows] if isinstance(given.rows, dict) else given.rows
    check_rows(len(rows), options)
    one = isinstance(given.rows, dict)
    cells = [served.rows.row(row, None if one else i) for i, row in enumerate(rows)]
    wanted = given.options()
    if any(map(has_evidence, cells)):
        predictions = await registry.questions.run(partial(served.predict_all, cells, wanted))
    else:
        predictions = await entry.batches.answer(cells, wanted)
    remarks = [
        remark
        for i, row in enumerate(cells)
        for remark in served.rows.unseen(row, None if one else i)
    ]
    impossible = [i for i, row in enumerate(predictions) if row["error"] is None]
    _count(registry, served.name, len(rows), len(impossible), len(remarks))
    request.state.facts["rows"] = len(rows)
    if impossible:
        remarks.append(
            f"{len(impossible)} of {len(rows)} rows have probability zero under the learned "
            f"density, the first is row {impossible[0]}: nothing is predicted of them."
        )
    exact = all(row["error"] == 0 for row in predictions)
    return {
        "model": served.name,
        "version": served.version,
        "target": served.target,
        "predictions": predictions,
        "exact": exact,
        "exactness": served.exactness,
        "remarks": remarks,
    }


def _count(registry: ModelRegistry, name: str, rows: int, impossible: int, unseen: int) -> None:
    metrics = registry.metrics
    metrics.rows.labels(name).inc(rows)
    if impossible:
        metrics.impossible.labels(name).inc(impossible)
    if unseen:
        metrics.unseen.labels(name).inc(unseen)


def _add_pages(service: FastAPI) -> None:
    folder = str(files("expecta.serve") / "page")
    service.mount("/page", StaticFiles(directory=folder), name="page")

    @service.get("/", include_in_schema=False)
    async def index() -> Response:
        return RedirectResponse("/docs")
