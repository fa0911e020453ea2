"""Run a service: one process or several that share a port, with logs as lines of JSON."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvicorn
from fastapi import FastAPI

from expecta.common.errors import DomainError
from expecta.common.settings import current
from expecta.serve.model_registry import read_model
from expecta.serve.request_guard import JsonLines
from expecta.serve.serve_options import ServeOptions
from expecta.serve.service_metrics import FOLDER
from expecta.serve.web_app import app

SETTINGS = "EXPECTA_SERVE"  # the variable that tells a process what to serve
SHUTDOWN_SECONDS = 30  # that requests have to end in, once the service is told to stop
HEALTHCHECK_SECONDS = 60  # without a sign of life after which a process is replaced


def run(
    models: Mapping[str, str | Path],
    options: ServeOptions | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
) -> None:
    """Serve models until the process is told to stop (SIGTERM, SIGINT).

    Requests that have begun are answered first. With several ``workers`` each is a process with
    its own models, on one port; one that dies is replaced. Kernels of each run on its share of
    the cores.

    Parameters
    ----------
    models
        Names, and the files.
    options
        Limits and permissions, of each process.
    host, port
        Where to listen; port 0 takes a free one, which the log tells.
    workers
        How many processes.
    """
    options = options or ServeOptions()
    if workers < 1:
        raise DomainError(f"workers is 1 or more, not {workers}")
    options = replace(options, own_process=True)
    if options.threads is None:
        options = replace(options, threads=max(1, current().n_threads() // workers))
    settings: dict[str, Any] = {
        "host": host,
        "port": port,
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": SHUTDOWN_SECONDS,
    }
    log_lines()
    if workers == 1:
        service = app(models, options)
        uvicorn.run(service, **settings)
        return
    paths = {name: str(Path(path).absolute()) for name, path in models.items()}
    with _folder() as metrics, _folder() as kept:
        os.environ.setdefault(FOLDER, metrics)
        options = replace(options, warm_first=True, kept_folder=kept)
        for name, path in paths.items():
            read_model(name, Path(path), options)  # complains here, and not in every process
        os.environ[SETTINGS] = json.dumps({"models": paths, "options": asdict(options)})
        uvicorn.run(
            "expecta.serve.server:worker_app",
            factory=True,
            workers=workers,
            timeout_worker_healthcheck=HEALTHCHECK_SECONDS,
            **settings,
        )


def _folder() -> TemporaryDirectory[str]:
    """Make a folder that the processes share, and nobody else can read."""
    return TemporaryDirectory(prefix="expecta-serve-")


def worker_app() -> FastAPI:
    """Return the service of one of several processes."""
    log_lines()
    settings = json.loads(os.environ[SETTINGS])
    origins = tuple(settings["options"].pop("origins"))
    return app(settings["models"], ServeOptions(**settings["options"], origins=origins))


def log_lines() -> None:
    """Write logs to standard error, a line of JSON each."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("expecta.serve", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
