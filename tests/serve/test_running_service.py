"""A service in processes of its own, asked over the network by clients that others wrote."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pytest
from benchmarks.serve_faults import attack
from benchmarks.service_process import service

from expecta.estimators.expected_estimator import ExpectedEstimator
from served import COLUMNS, EVIDENCE, FACTS, QUESTIONS, ROWS, people, table

pytestmark = pytest.mark.integration
TOOLS = "make integration installs what it needs"


@pytest.fixture(scope="module")
def running(model_files, tmp_path_factory):
    """Two processes on one port."""
    folder = tmp_path_factory.mktemp("running")
    with service(folder, model_files, "--workers", 2, "--max-rows", 1000) as process:
        yield process


@pytest.fixture(scope="module")
def cost(model_files):
    return ExpectedEstimator.load(model_files["cost"])


@pytest.fixture
def http(running):
    with httpx.Client(base_url=running.url, timeout=60) as client:
        yield client


def answer(http, path, document):
    response = http.post(path, json=document)
    assert response.status_code == 200, response.text
    return response.json()


def test_predictions(http, cost):
    asked = {"rows": [*ROWS, EVIDENCE], "std": True}
    found = answer(http, "/models/cost/predict", asked)["predictions"]
    mean, std = cost.predict(table(ROWS), return_std=True)
    group = cost.ask(FACTS)
    assert [row["prediction"] for row in found] == [*mean.tolist(), group.mean]
    assert [row["std"] for row in found] == [*std.tolist(), group.std]
    ends = answer(http, "/models/cost/predict", {"rows": ROWS, "interval": 0.8})["predictions"]
    assert [row["interval"] for row in ends] == cost.predict_interval(table(ROWS), 0.8).tolist()


@pytest.mark.parametrize(
    ("path", "request_", "ask"), QUESTIONS, ids=[f"{q[0]} {i}" for i, q in enumerate(QUESTIONS)]
)
def test_questions(http, cost, path, request_, ask):
    found = answer(http, f"/models/cost/{path}", request_)
    assert found == json.loads(json.dumps(ask(cost).to_dict()))


def test_many_at_once(running, cost):
    """Whatever shares a batch or a process, each has its own answer."""
    frame = people(200, seed=7)[0].drop(columns="since")
    rng = np.random.default_rng(0)
    rows = [
        {name: value for name, value in row.items() if rng.random() < 0.6}
        for row in json.loads(frame.to_json(orient="records"))
    ]
    names = cost.encoder_.feature_names_in_.tolist()
    expected = cost.predict({name: [row.get(name) for row in rows] for name in names}).tolist()
    limits = httpx.Limits(max_connections=32)
    with httpx.Client(base_url=running.url, timeout=60, limits=limits) as client:

        def ask(row):
            return answer(client, "/models/cost/predict", {"rows": row})["predictions"][0]

        with ThreadPoolExecutor(32) as pool:
            found = list(pool.map(ask, rows))
    assert [row["prediction"] for row in found] == expected


def test_arrow(http, cost):
    frame = people(500, seed=4)[0]
    given = pa.Table.from_pandas(frame.mask(np.random.default_rng(4).random(frame.shape) < 0.5))
    out = io.BytesIO()
    with pa.ipc.new_stream(out, given.schema) as writer:
        writer.write_table(given, max_chunksize=100)
    kind = "application/vnd.apache.arrow.stream"
    response = http.post(
        "/models/cost/predict", content=out.getvalue(), headers={"Content-Type": kind}
    )
    found = pa.ipc.open_stream(response.content).read_all()
    assert found.column("cost_predicted").to_pylist() == cost.predict(given).tolist()


def test_documented_requests_are_answered(running, tmp_path):
    """Each curl of docs/service.md, with the names of the models here."""
    page = (Path(__file__).parents[2] / "docs" / "service.md").read_text(encoding="utf-8")
    lines = [line for line in page.splitlines() if line.startswith("curl ")]
    assert len(lines) >= 8
    for line in lines:
        line = line.replace("localhost:8000", running.url.removeprefix("http://"))
        for old, new in (("charges", "cost"), ('"sex"', '"smoker"'), ("female", "yes"),
                         ('"male"', '"no"'), ('"bmi"', '"vip"')):  # fmt: skip
            line = line.replace(old, new)
        shown = subprocess.run(
            ["bash", "-c", line.replace("curl -s", "curl -sS -w '\\n%{http_code}'")],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert shown.endswith("\n200"), (line, shown)


def test_a_process_that_is_killed_is_replaced(running, http):
    before = set(running.children())
    metrics = [text for text in http.get("/metrics").text.splitlines() if text.startswith("exp")]
    assert metrics
    workers = [
        process
        for process in before
        if b"spawn_main" in Path(f"/proc/{process}/cmdline").read_bytes()
    ]
    os.kill(workers[0], signal.SIGKILL)
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if set(running.children()) - before and workers[0] not in running.children():
            break
        time.sleep(0.2)
    else:
        raise AssertionError("no process took its place")
    for _ in range(20):
        with suppress(httpx.TransportError):  # the connection was that of the process
            assert http.get("/health/live").status_code == 200


def test_a_process_that_starts_beside_a_damaged_file_answers_as_the_others(model_files, tmp_path):
    path = tmp_path / "cost.expecta"
    good = Path(model_files["cost"]).read_bytes()
    path.write_bytes(good)
    with service(tmp_path, {"cost": path}, "--workers", 2) as process:
        row = {"rows": {"age": 40}}
        before = httpx.post(f"{process.url}/models/cost/predict", json=row, timeout=60).json()
        path.write_bytes(good[: len(good) // 2])
        dead = [p for p in process.children() if b"spawn_main" in
                Path(f"/proc/{p}/cmdline").read_bytes()]  # fmt: skip
        for worker in dead:
            os.kill(worker, signal.SIGKILL)
        end = time.monotonic() + 120
        while time.monotonic() < end:
            with suppress(httpx.TransportError):
                ready = httpx.get(f"{process.url}/health/ready", timeout=5)
                if ready.status_code == 200 and not set(dead) & set(process.children()):
                    break
            time.sleep(0.2)
        else:
            raise AssertionError("no process took their place")
        assert ready.json()["models"]["cost"]["problem"]
        after = httpx.post(f"{process.url}/models/cost/predict", json=row, timeout=60).json()
        assert after == before
    assert "Traceback" not in process.log.read_text()


def test_it_ends_when_told_to(model_files, tmp_path):
    """A request that has begun is answered first."""
    with service(tmp_path, {"cost": model_files["cost"]}) as process:
        with httpx.Client(base_url=process.url, timeout=60) as client:
            asked = {"columns": ["age", "region"], "bins": 6}
            with ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(client.post, "/models/cost/split", json=asked)
                time.sleep(0.05)
                code = process.stop()
                assert waiting.result().status_code == 200
        assert code in (0, -signal.SIGTERM)
    lines = [json.loads(line) for line in process.log.read_text().splitlines()]
    assert {"time", "level", "event"} <= set(lines[0])


def test_faults():
    """Mixed load, broken bodies, dropped connections, damaged files and a killed process."""
    record = attack(20.0)
    assert record.faults() == []
    assert record.checked > 50
    assert len(record.versions) == 2
    assert record.replaced
    assert record.damaged


# -- clients that others wrote ------------------------------------------------------------


def test_a_client_of_the_open_inference_protocol(running, cost):
    triton = pytest.importorskip("tritonclient.http", reason=TOOLS)
    client = triton.InferenceServerClient(running.url.removeprefix("http://"))
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("cost")
    metadata = client.get_model_metadata("cost")
    assert [one["name"] for one in metadata["inputs"]] == COLUMNS
    age = triton.InferInput("age", [3], "FP64")
    age.set_data_from_numpy(np.array([40.0, np.nan, 33.0]), binary_data=False)
    smoker = triton.InferInput("smoker", [3], "BYTES")
    smoker.set_data_from_numpy(np.array(["yes", "no", "yes"], object), binary_data=False)
    wanted = [triton.InferRequestedOutput(name, binary_data=False)
              for name in ("cost_predicted", "cost_std")]  # fmt: skip
    found = client.infer("cost", [age, smoker], outputs=wanted)
    rows = {name: [None] * 3 for name in COLUMNS}
    rows |= {"age": [40.0, None, 33.0], "smoker": ["yes", "no", "yes"]}
    mean, std = cost.predict(rows, return_std=True)
    assert found.as_numpy("cost_predicted").tolist() == mean.tolist()
    assert found.as_numpy("cost_std").tolist() == std.tolist()
    client.close()


def test_a_client_with_types(running, cost):
    open_inference = pytest.importorskip("pydantic_open_inference", reason=TOOLS)

    class Inputs(open_inference.InputsBaseModel):
        age: list[float]
        smoker: list[str]

    class Outputs(open_inference.OutputsBaseModel):
        cost_predicted: list[float]
        cost_error: list[float]

    model = open_inference.RemoteModel(
        model_name="cost", server_url=running.url, inputs_model=Inputs, outputs_model=Outputs
    )
    found = model.infer(Inputs(age=[40.0, 50.0], smoker=["yes", "no"]))
    rows = {name: [None] * 2 for name in COLUMNS}
    rows |= {"age": [40.0, 50.0], "smoker": ["yes", "no"]}
    assert found.cost_predicted == cost.predict(rows).tolist()
    assert found.cost_error == [0.0, 0.0]


CELL = {"anyOf": [
    {"enum": [40, 33.5, "yes", "no", "east", "other", True, "2021-03-04", None]},
    {"type": "object", "required": ["between"], "additionalProperties": False, "properties": {
        "between": {"type": "array", "items": {"type": ["number", "null"]},
                    "minItems": 2, "maxItems": 2}}},
    {"type": "object", "required": ["in"], "additionalProperties": False, "properties": {
        "in": {"type": "array", "items": {"enum": ["yes", "no", 40, "east"]}}}},
]}  # fmt: skip
GROUPS = ["smoker == 'yes'", "age < 40 or vip == True", "30 <= age < 40", "age <", "x == 1"]


def with_columns(schema):
    """Let rows have the models' columns, and groups be conditions, most of the time."""
    if isinstance(schema, list):
        return [with_columns(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "object" and schema.get("additionalProperties") is True:
        return {"type": "object", "properties": dict.fromkeys(COLUMNS, CELL)}
    changed = {name: with_columns(part) for name, part in schema.items()}
    for name in ("query", "given", "a", "b", "known"):
        for part in changed.get("properties", {}).get(name, {}).get("anyOf", []):
            if part.get("type") == "string":
                part["enum"] = GROUPS
    return changed


def test_schemathesis_finds_no_fault(running, http, tmp_path):
    """No 5xx, and no answer that the description does not have, for requests of all kinds."""
    pytest.importorskip("schemathesis", reason=TOOLS)
    description = with_columns(http.get("/openapi.json").json())
    for methods in description["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", []):
                if parameter["name"] == "name":
                    parameter["schema"]["enum"] = ["cost", "smoker", "people", "none"]
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(description))
    checks = (
        "not_a_server_error,status_code_conformance,content_type_conformance,"
        "response_schema_conformance,unsupported_method,allow_header_conformance"
    )
    words = [
        *(str(Path(sys.executable).parent / "schemathesis"), "run", str(path)),
        *("--url", running.url, "--checks", checks, "--max-examples", "15"),
        *("--phases", "examples,coverage,fuzzing", "--seed", "1", "--warnings", "off"),
        *("--exclude-path-regex", "/report$"),
    ]
    found = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, timeout=280)
    assert found.returncode == 0, found.stdout[-6000:] + found.stderr[-1000:]
    log = running.log.read_text()
    assert "unexpected error" not in log
