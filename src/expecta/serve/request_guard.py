"""Guard every request: who may ask, how much at a time, what browsers may do, what is logged."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import time
from itertools import count
from typing import Any, ClassVar

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from expecta.serve.problems import ProblemError, busy, to_json
from expecta.serve.serve_options import ServeOptions
from expecta.serve.service_metrics import ServiceMetrics

log = logging.getLogger("expecta.serve")

OPEN_PATHS = ("/health/", "/v2/health/", "/page/", "/api-page/")  # that need no token
OPEN_PAGES = {"/", "/docs", "/openapi.json", "/favicon.ico"}
ALWAYS = ("/health/", "/v2/health/", "/metrics")  # that are answered however much waits
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
METHODS = {"GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"}  # of which counts are kept
LOG_SECONDS, LOG_LINES = 0.1, 200  # that lines of the log gather, at most
GONE = 499  # the status of a request whose client went away, in logs and counts
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
}
RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


class RequestGuard:
    """What surrounds the service, as ASGI middleware.

    Parameters
    ----------
    app, options, metrics
        The service, and its settings and counts.
    """

    def __init__(self, app: ASGIApp, options: ServeOptions, metrics: ServiceMetrics) -> None:
        self.app, self.options, self.metrics = app, options, metrics
        self._token = None if options.token is None else options.token.encode()
        self._in_flight = 0
        self._prefix, self._numbers = os.urandom(6).hex(), count()  # of requests' names
        self._lines: list[bytes] = []  # of the log, that are not written yet
        self._counts: dict[tuple[str, str, int], Any] = {}  # by route, method and status

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            self.write_log()  # the last lines, when the service ends
            return
        start, path, status = time.perf_counter(), scope["path"], 500
        request_id = f"{self._prefix}{next(self._numbers):08x}"

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = list(message["headers"])
                given = {name for name, _ in headers}
                headers += [header for header in RAW_HEADERS if header[0] not in given]
                headers.append((b"x-request-id", request_id.encode()))
                message = {**message, "headers": headers}
            await send(message)

        self._in_flight += 1
        self.metrics.in_flight.inc()
        try:
            problem = self._refusal(scope, path)
            if problem is not None:
                await problem.response()(scope, receive, answer)
            else:
                await self.app(scope, receive, answer)
        except ClientDisconnect:
            status = GONE  # nobody is left to be told anything
        finally:
            self._in_flight -= 1
            self.metrics.in_flight.dec()
            self._record(scope, status, time.perf_counter() - start, request_id)

    def _refusal(self, scope: Scope, path: str) -> ProblemError | None:
        """Return why a request is not answered at all."""
        is_open = path.startswith(OPEN_PATHS) or path in OPEN_PAGES
        if self._token is not None and not is_open and not self._has_token(scope):
            return ProblemError(
                401,
                "this service requires a token: send the header Authorization: Bearer <token>",
                {"WWW-Authenticate": "Bearer"},
            )
        if self._in_flight > self.options.max_requests and not path.startswith(ALWAYS):
            return busy(f"{self.options.max_requests} requests are being worked on already")
        return None

    def _has_token(self, scope: Scope) -> bool:
        assert self._token is not None
        given = next((v for k, v in scope["headers"] if k == b"authorization"), b"")
        word, _, token = given.partition(b" ")
        same = hmac.compare_digest(token.strip(), self._token)  # in constant time
        return same and word.lower() == b"bearer"

    def _record(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        """Count and log a request: its route, never its address or what it holds."""
        route = getattr(scope.get("route"), "path", None) or "none"
        method = scope["method"] if scope["method"] in METHODS else "other"
        key = route, method, status
        counts = self._counts.get(key)
        if counts is None:
            counts = self.metrics.requests.labels(*key), self.metrics.seconds.labels(route)
            self._counts[key] = counts
        counts[0].inc()
        counts[1].observe(seconds)
        if log.isEnabledFor(logging.INFO):
            facts = {
                "time": _time(time.time()),
                "level": "info",
                "event": "request",
                "route": route,
                "method": method,
                "status": status,
                "milliseconds": round(1000 * seconds, 3),
                "request": request_id,
                **scope.get("state", {}).get("facts", {}),
            }
            self._lines.append(to_json(facts))
            if len(self._lines) == 1:
                asyncio.get_running_loop().call_later(LOG_SECONDS, self.write_log)
            elif len(self._lines) >= LOG_LINES:
                self.write_log()

    def write_log(self) -> None:
        """Write the lines that have gathered: one call for many requests."""
        lines, self._lines = self._lines, []
        if lines:
            log.info("requests", extra={"lines": b"\n".join(lines).decode()})


def _time(seconds: float) -> str:
    return (
        f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{int(seconds % 1 * 1000):03d}Z"
    )


class JsonLines(logging.Formatter):
    """Writes each record as one line of JSON."""

    KNOWN: ClassVar[set[str]] = {"message", "color_message", *vars(logging.makeLogRecord({}))}

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as JSON: time, level, event, and what came with it."""
        if hasattr(record, "lines"):  # of requests, which are JSON already
            return str(record.lines)
        line: dict[str, Any] = {
            "time": _time(record.created),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line |= {k: v for k, v in vars(record).items() if k not in self.KNOWN}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return to_json(line).decode("utf-8", "replace")
