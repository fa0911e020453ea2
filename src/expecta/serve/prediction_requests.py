"""Answer requests for predictions, together with others that wait."""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import Request
from pydantic import Field

from expecta.serve.asked_questions import StrictModel
from expecta.serve.json_rows import has_evidence
from expecta.serve.model_registry import ModelEntry, ModelRegistry
from expecta.serve.request_bodies import check_rows
from expecta.serve.serve_options import ServeOptions
from expecta.serve.served_model import PredictOptions

MAX_SHARED_ROWS = 256  # of a request that shares batches with others
MAX_REMARKS = 20  # of a request's categories that are not in the training data


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


async def answer_predictions(
    entry: ModelEntry,
    given: PredictRequest,
    request: Request,
    registry: ModelRegistry,
    options: ServeOptions,
) -> dict[str, Any]:
    """Answer a request for predictions, together with others that wait."""
    served, wanted = entry.served, given.options()
    served.check_predicts()
    one = isinstance(given.rows, dict)
    rows = [given.rows] if isinstance(given.rows, dict) else given.rows
    check_rows(len(rows), options)

    def read() -> tuple[list[list[Any]], list[str]]:
        cells, remarks = [], []
        for i, row in enumerate(rows):
            cells.append(served.rows.row(row, None if one else i))
            remarks += served.rows.unseen(cells[-1], None if one else i)
        return cells, remarks

    if len(rows) > MAX_SHARED_ROWS:  # not on the event loop, where others would wait
        cells, remarks = await registry.streams.run(read)
        predictions = await registry.streams.run(partial(served.predict_all, cells, wanted))
    else:
        cells, remarks = read()
        if any(map(has_evidence, cells)):
            predictions = await registry.questions.run(partial(served.predict_all, cells, wanted))
        elif wanted.is_shared:
            predictions = await entry.batches.answer(cells, wanted)
        else:
            predictions = await registry.predictions.run(partial(served.predict, cells, wanted))
    impossible = [i for i, row in enumerate(predictions) if row["error"] is None]
    count_rows(registry, served.name, len(rows), len(impossible), len(remarks))
    request.state.facts["rows"] = len(rows)
    if len(remarks) > MAX_REMARKS:
        remarks[MAX_REMARKS:] = [f"... and {len(remarks) - MAX_REMARKS} more values like these"]
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


def count_rows(registry: ModelRegistry, name: str, rows: int, impossible: int, unseen: int) -> None:
    """Count rows, those of probability zero, and categories that are not in the training data."""
    metrics = registry.metrics
    metrics.rows.labels(name).inc(rows)
    if impossible:
        metrics.impossible.labels(name).inc(impossible)
    if unseen:
        metrics.unseen.labels(name).inc(unseen)
