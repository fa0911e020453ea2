"""Count what a service does, for Prometheus; over all its processes where there are several."""

from __future__ import annotations

import os
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

LATENCY_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # the variable that names where processes share their counts


class ServiceMetrics:
    """What is counted; labels are routes and model names, never what requests hold."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        r = self.registry
        self.requests = Counter(
            "expecta_requests", "Requests answered.", ["route", "method", "status"], registry=r
        )
        self.seconds = Histogram(
            "expecta_request_seconds",
            "Time until a request was answered.",
            ["route"],
            buckets=LATENCY_BUCKETS,
            registry=r,
        )
        self.rows = Counter("expecta_rows", "Rows predicted.", ["model"], registry=r)
        self.impossible = Counter(
            "expecta_impossible_rows", "Rows of probability zero.", ["model"], registry=r
        )
        self.unseen = Counter(
            "expecta_unseen_categories",
            "Cells with a category or a far number that is not in the training data.",
            ["model"],
            registry=r,
        )
        self.reloads = Counter(
            "expecta_reloads", "Model files read anew.", ["model", "outcome"], registry=r
        )
        self.in_flight = Gauge(
            "expecta_requests_in_flight",
            "Requests that are worked on or wait.",
            multiprocess_mode="livesum",
            registry=r,
        )

    def text(self) -> bytes:
        """Return all counts in the text format of Prometheus."""
        if FOLDER not in os.environ:
            return generate_latest(self.registry)
        _forget_dead(os.environ[FOLDER])
        shared = CollectorRegistry()
        MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
        return generate_latest(shared)


def _forget_dead(folder: str) -> None:
    """Leave out what processes that are gone had in flight."""
    for path in Path(folder).glob("gauge_live*_*.db"):
        number = path.stem.rpartition("_")[2]
        if number.isdigit() and not _is_alive(int(number)):
            mark_process_dead(int(number), folder)  # type: ignore[no-untyped-call]


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
