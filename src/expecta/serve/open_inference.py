"""Answer in the Open Inference Protocol (KServe v2, REST): one input tensor for each column."""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Any

import numpy as np
from fastapi import FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from expecta import __version__
from expecta.ask.printed_answer import plain
from expecta.estimators.row_predictions import RowPredictions, predict_rows
from expecta.serve.json_rows import no_column
from expecta.serve.model_registry import ModelEntry, ModelRegistry
from expecta.serve.prediction_requests import count_rows
from expecta.serve.problems import ProblemError
from expecta.serve.request_bodies import (
    RETRY,
    body_schema,
    check_rows,
    json_response,
    parse_request,
    read_body,
)
from expecta.serve.serve_options import ServeOptions
from expecta.serve.served_model import PredictOptions, ServedModel
from expecta.tables.category_column import CategoryColumn
from expecta.tables.column import Column
from expecta.tables.scalars import TIMES

FLOATS = {"FP16", "FP32", "FP64"}
INTEGERS = {f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)}
DATATYPES = {*FLOATS, *INTEGERS, "BOOL", "BYTES"}
TAGS: list[str | Enum] = ["open inference protocol"]
COVERAGE = 0.9  # of intervals, where the request does not say
INTERVAL_ENDS = ("low", "high")


class TensorPart(BaseModel):
    """What the protocol lets clients add to what is known here."""

    model_config = ConfigDict(extra="ignore")

    name: str
    parameters: dict[str, Any] | None = None


class InputTensor(TensorPart):
    """A column: the values of all rows. ``parameters.missing`` marks those that are unknown."""

    shape: list[int] = Field(min_length=1, max_length=2)
    datatype: str
    data: list[Any]


class InferRequest(BaseModel):
    """Columns, and which outputs are wanted."""

    model_config = ConfigDict(extra="ignore")

    id: str | None = None
    parameters: dict[str, Any] | None = None
    inputs: list[InputTensor]
    outputs: list[TensorPart] | None = None


def add_open_inference(service: FastAPI, registry: ModelRegistry, options: ServeOptions) -> None:
    """Add the protocol's routes."""

    async def server() -> Response:
        return json_response({"name": "expecta", "version": __version__, "extensions": []})

    async def live() -> Response:
        return json_response({"live": True})

    async def ready() -> Response:
        if not registry.is_ready:
            raise ProblemError(503, "not ready yet", RETRY)
        return json_response({"ready": True})

    for path, endpoint, summary in (
        ("/v2", server, "The server"),
        ("/v2/health/live", live, "Whether the process answers"),
        ("/v2/health/ready", ready, "Whether every model is warm"),
    ):
        service.add_api_route(path, endpoint, methods=["GET"], tags=TAGS, summary=summary)
    for versioned in ("", "/versions/{version}"):
        _add_model_routes(service, registry, options, f"/v2/models/{{name}}{versioned}")


def _add_model_routes(
    service: FastAPI, registry: ModelRegistry, options: ServeOptions, path: str
) -> None:
    def entry_of(name: str, version: str | None, request: Request) -> ModelEntry:
        entry = registry.get(name)
        request.state.facts = {"model": name}
        if version is not None and version != entry.served.version:
            here = entry.served.version
            raise ProblemError(404, f"model {name!r} has the version {here!r}, not {version!r:.80}")
        entry.served.check_predicts()
        return entry

    async def metadata(request: Request, name: str, version: str | None = None) -> Response:
        return json_response(model_metadata(entry_of(name, version, request).served))

    async def ready(request: Request, name: str, version: str | None = None) -> Response:
        if not entry_of(name, version, request).is_warm:
            raise ProblemError(503, f"model {name!r} is not ready yet", RETRY)
        return json_response({"name": name, "ready": True})

    async def infer(request: Request, name: str, version: str | None = None) -> Response:
        entry = entry_of(name, version, request)
        if "inference-header-content-length" in request.headers:
            raise ProblemError(415, "tensors are JSON here; send them with binary_data=False")
        given = parse_request(await read_body(request, options), InferRequest)
        answer = await registry.predictions.run(partial(_infer, entry.served, given, options))
        document, counts = answer
        count_rows(registry, name, *counts)
        request.state.facts["rows"] = counts[0]
        return json_response(document)

    # without `version` in the path it is not a parameter at all
    endpoints = [(metadata, "", "GET"), (ready, "/ready", "GET"), (infer, "/infer", "POST")]
    for endpoint, end, method in endpoints:
        service.add_api_route(
            path + end,
            endpoint if "{version}" in path else _unversioned(endpoint),
            methods=[method],
            tags=TAGS,
            summary={"": "A model", "/ready": "Whether a model is warm", "/infer": "Predict"}[end],
            openapi_extra=body_schema(InferRequest) if method == "POST" else None,
        )


def _unversioned(endpoint: Any) -> Any:
    async def answer(request: Request, name: str) -> Response:
        return await endpoint(request, name)

    return answer


def model_metadata(served: ServedModel) -> dict[str, Any]:
    """Describe a model: a tensor for each column, and one for each output."""
    outputs = [
        {"name": name, "datatype": _datatype_of(values), "shape": [-1]}
        for name, values in _all_outputs(served).items()
    ]
    return {
        "name": served.name,
        "versions": [served.version],
        "platform": "expecta",
        "inputs": [
            {"name": column.name, "datatype": column_datatype(column.plain), "shape": [-1]}
            for column in served.rows.columns
        ],
        "outputs": outputs,
    }


def _all_outputs(served: ServedModel) -> dict[str, Any]:
    """Return what may be asked for, for no rows."""
    numbers = served.classes is None
    calibrated = numbers and hasattr(served.model, "calibration_")
    options = PredictOptions(
        std=numbers, interval=COVERAGE if calibrated else None, proba=not numbers
    )
    empty = predict_rows(served.model, served.rows.table([]), **options.arguments())
    return empty.columns(error=True)


def column_datatype(column: Column) -> str:
    """Return the type of a column's tensor: texts are BYTES, and so are times."""
    if column.kind in TIMES:
        return "BYTES"
    if not isinstance(column, CategoryColumn):
        return "FP64"
    if column.values and all(isinstance(value, bool) for value in column.values):
        return "BOOL"
    whole = all(isinstance(v, int) and not isinstance(v, bool) for v in column.values)
    return "INT64" if column.values and whole else "BYTES"


def _datatype_of(values: Any) -> str:
    return "FP64" if values.dtype.kind == "f" else "BYTES"


def _infer(
    served: ServedModel, given: InferRequest, options: ServeOptions
) -> tuple[dict[str, Any], tuple[int, int, int]]:
    """Return the answer; and the numbers of rows, impossible ones, and unseen categories."""
    rows = _rows(served, given, options)
    wanted, names = _wanted(served, given)
    predicted = predict_rows(served.model, served.rows.table(rows), **wanted.arguments())
    columns = predicted.columns(error=True)
    impossible = np.flatnonzero(predicted.impossible).tolist()
    document: dict[str, Any] = {
        "model_name": served.name,
        "model_version": served.version,
        "outputs": [_output(name, columns[name], predicted) for name in names or columns],
        "parameters": {"exactness": served.exactness, "impossible_rows": impossible},
    }
    if given.id is not None:
        document["id"] = given.id
    unseen = sum(len(served.rows.unseen(row)) for row in rows)
    return document, (len(rows), len(impossible), unseen)


def _rows(served: ServedModel, given: InferRequest, options: ServeOptions) -> list[list[Any]]:
    """Return the rows that tensors are the columns of."""
    n_rows = given.inputs[0].shape[0] if given.inputs else 1
    check_rows(n_rows, options)
    columns: dict[str, list[Any]] = {}
    for tensor in given.inputs:
        if tensor.name not in served.rows.names:
            raise no_column(tensor.name, served.rows.names)
        if tensor.name in columns:
            raise ProblemError(422, f"there are two inputs {tensor.name!r}", column=tensor.name)
        columns[tensor.name] = _values(tensor, n_rows)
    names = list(columns)
    if not names:
        return [served.rows.row({})]
    cells = zip(*columns.values(), strict=True)
    return [
        served.rows.single_cells(dict(zip(names, row, strict=True)), i)
        for i, row in enumerate(cells)
    ]


def _values(tensor: InputTensor, n_rows: int) -> list[Any]:
    """Return the values of a tensor, None where they are marked as missing."""
    name = tensor.name
    if tensor.datatype not in DATATYPES:
        raise ProblemError(422, f"input {name!r} has the type {tensor.datatype!r:.40}", column=name)
    if tensor.shape not in ([n_rows], [n_rows, 1]):
        raise ProblemError(
            422,
            f"input {name!r} has the shape {tensor.shape}; it is [{n_rows}] or [{n_rows}, 1], as "
            f"that of the first input",
            column=name,
        )
    values = _flat(tensor.data)
    missing = (tensor.parameters or {}).get("missing")
    if missing is None:
        missing = [False] * len(values)
    if not isinstance(missing, list) or len(values) != n_rows or len(missing) != n_rows:
        raise ProblemError(
            422, f"input {name!r} has {len(values)} values for {n_rows} rows", column=name
        )
    if tensor.datatype == "BOOL":  # as JSON has them, or as 0 and 1
        values = [bool(value) if value in (0, 1) else value for value in values]
    return [None if gone else value for value, gone in zip(values, missing, strict=True)]


def _flat(data: list[Any]) -> list[Any]:
    """Return the values of a tensor of one or two dimensions."""
    if data and all(isinstance(part, list) for part in data):
        return [value for part in data for value in part]
    return data


def _wanted(served: ServedModel, given: InferRequest) -> tuple[PredictOptions, list[str]]:
    """Return what to predict, and the outputs that are named."""
    names = [output.name for output in given.outputs or ()]
    known = _all_outputs(served)
    for name in names:
        if name not in known:
            raise no_output(name, list(known))
    target, numbers = served.target, served.classes is None
    coverage = (given.parameters or {}).get("interval", COVERAGE)
    if not isinstance(coverage, float) or not 0 < coverage < 1:
        raise ProblemError(422, f"parameter interval lies between 0 and 1, not {coverage!r:.40}")
    ends = {f"{target}_{end}" for end in INTERVAL_ENDS}
    options = PredictOptions(
        std=numbers and any(name.startswith(f"{target}_std") for name in names),
        interval=coverage if numbers and ends & set(names) else None,
        proba=not numbers,
    )
    return options, names


def no_output(name: str, names: list[str]) -> ProblemError:
    """Return that there is no such output."""
    shown = ", ".join(names[:12])
    return ProblemError(422, f"there is no output {name!r:.80}; there is {shown}")


def _output(name: str, values: Any, predicted: RowPredictions) -> dict[str, Any]:
    datatype = _datatype_of(values)
    data = plain(values)
    if datatype == "BYTES":
        data = [None if value is None else str(value) for value in data]
    return {"name": name, "datatype": datatype, "shape": [len(data)], "data": data}
