"""Put the service together: an ASGI application over models."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from html import unescape
from importlib.resources import files
from inspect import signature
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    PlainTextResponse,
    Response,
)
from starlette.routing import request_response
from starlette.staticfiles import StaticFiles

from expecta import __version__
from expecta.serve.asked_questions import QUESTIONS, AskedQuestion, StrictModel
from expecta.serve.model_registry import ModelEntry, ModelRegistry
from expecta.serve.one_case import CaseRequest, answer_case
from expecta.serve.open_inference import add_open_inference
from expecta.serve.prediction_requests import PredictRequest, answer_predictions
from expecta.serve.problems import ProblemError
from expecta.serve.request_bodies import (
    RESPONSES,
    RETRY,
    body_schema,
    check_rows,
    content_type,
    json_response,
    read_request,
)
from expecta.serve.request_guard import RequestGuard
from expecta.serve.row_streams import ARROW, NDJSON, StreamAnswers
from expecta.serve.serve_options import ServeOptions
from expecta.serve.service_metrics import ServiceMetrics

log = logging.getLogger("expecta.serve")

REPORT_SECONDS = 300.0  # that a report may take; it is kept
ABOUT = (
    "What models predict, and how sure they are, when some of their inputs are unknown. Rows are "
    'objects from columns to values; a cell may be a value, `null` or `"NaN"` (unknown, as is an '
    'absent key), an interval `{"between": [30, 40]}` or a set `{"in": ["a", "b"]}`. Groups are '
    "such objects, or texts such as `smoker == 'yes' and age < 30`. Errors are problem details "
    "(RFC 9457). Numbers are those of the Python library, to the last bit."
)


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
        await registry.start()
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
    service.router.route_class = DirectRoute
    service.state.registry, service.state.metrics = registry, metrics
    _handle_errors(service)
    _add_models(service, registry, options)
    _add_health(service, registry, metrics)
    _add_pages(service, registry)
    add_open_inference(service, registry, options)
    service.add_middleware(RequestGuard, options=options, metrics=metrics)
    if options.origins:
        service.add_middleware(
            CORSMiddleware,
            allow_origins=list(options.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    return service


# -- routes -------------------------------------------------------------------------------


class DirectRoute(APIRoute):
    """A route that FastAPI describes, and whose endpoint is called as it is.

    Endpoints take the request and parts of the address, read bodies themselves and return
    responses, so that there is nothing to solve for each request.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **more: Any) -> None:
        super().__init__(path, endpoint, **more)
        names = set(signature(endpoint).parameters)

        async def answer(request: Request) -> Response:
            given: dict[str, Any] = {"request": request} if "request" in names else {}
            return await endpoint(**given, **request.path_params)

        self.app = request_response(answer)


def _handle_errors(service: FastAPI) -> None:
    async def on_problem(request: Request, error: Exception) -> Response:
        assert isinstance(error, ProblemError)
        if request.url.path.startswith("/v2/"):  # what the protocol calls it
            error.where["error"] = error.detail
        return error.response()

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = None if error.headers is None else dict(error.headers)
        detail, path = str(error.detail), request.url.path
        if error.status_code == 404:
            detail = f"there is no address {path!r:.200}; /docs lists all there are"
        elif error.status_code == 405:
            allowed = {k.lower(): v for k, v in (headers or {}).items()}.get("allow", "others")
            detail = f"this address takes {allowed}, not {request.method:.20}; see /docs"
        return ProblemError(error.status_code, detail, headers).response()

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

    @service.get(
        "/metrics",
        tags=["health"],
        summary="Counts, for Prometheus",
        response_class=PlainTextResponse,
    )
    async def counts() -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")


def _add_models(service: FastAPI, registry: ModelRegistry, options: ServeOptions) -> None:
    streams = StreamAnswers(registry, options)

    def entry_of(name: str, request: Request) -> ModelEntry:
        entry = registry.get(name)
        request.state.facts = {"model": name}
        if not entry.is_warm:
            raise ProblemError(503, f"model {name!r} is not ready yet", RETRY)
        return entry

    @service.post(
        "/models/{name}/predict",
        tags=["rows"],
        summary="Predict for rows with unknown cells",
        responses={200: {"content": {NDJSON: {}, ARROW: {}}}},
        openapi_extra=_stream_parameters() | body_schema(PredictRequest, NDJSON, ARROW),
    )
    async def predict(name: str, request: Request) -> Response:
        entry = entry_of(name, request)
        kind = content_type(request)
        if kind in (NDJSON, ARROW):
            return await streams(entry, request, kind)
        given = await read_request(request, PredictRequest, options)
        return json_response(await answer_predictions(entry, given, request, registry, options))

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


def _stream_parameters() -> dict[str, Any]:
    """Describe what streams of rows have in their address, and JSON in its body."""
    types = {"std": "boolean", "interval": "number", "quantiles": "string", "proba": "boolean"}
    return {
        "parameters": [
            {
                "name": name,
                "in": "query",
                "required": False,
                "description": "Of streams of rows; JSON has it in its body.",
                "schema": {"type": kind},
            }
            for name, kind in types.items()
        ]
    }


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


def _add_pages(service: FastAPI, registry: ModelRegistry) -> None:
    """Add the page, the API's page, and reports: files of the package, and nothing else."""
    folder = Path(str(files("expecta.serve")))
    service.mount("/page", StaticFiles(directory=folder / "page"), name="page")
    service.mount("/api-page", StaticFiles(directory=folder / "api_page"), name="api-page")

    @service.get("/", include_in_schema=False)
    async def index() -> Response:
        return FileResponse(folder / "page" / "index.html")

    @service.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return FileResponse(folder / "api_page" / "index.html")

    @service.get(
        "/models/{name}/report",
        tags=["models"],
        summary="A report on a model, as a page",
        response_class=HTMLResponse,
    )
    async def report(name: str, request: Request) -> Response:
        entry = registry.get(name)
        request.state.facts = {"model": name}
        served = entry.served
        served.check_predicts()
        page = await registry.questions.run(lambda: served.report, timeout=REPORT_SECONDS)
        policy = re.search(r'Security-Policy" content="([^"]*)"', page)
        headers = {} if policy is None else {"Content-Security-Policy": unescape(policy[1])}
        return HTMLResponse(page, headers=headers)
