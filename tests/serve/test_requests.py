"""Requests that are wrong, too many or not allowed: problems in the caller's terms."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import time

import pytest

from expecta.serve import ServeOptions
from expecta.serve.request_guard import JsonLines
from served import HOSTILE, Client, serving

PREDICT = "/models/cost/predict"


@pytest.mark.parametrize(
    ("row", "column", "words"),
    [
        ({"agee": 40}, "agee", "did you mean 'age'?"),
        ({"AGE": 40}, "AGE", "did you mean 'age'?"),
        ({"age": "forty"}, "age", "'forty' is not a number"),
        ({"age": [40]}, "age", "between"),
        ({"age": {"from": 3}}, "age", "between"),
        ({"age": {"between": [1]}}, "age", "between"),
        ({"age": {"between": [1, "x"]}}, "age", "is not a number"),
        ({"age": {"between": [1, 2], "in": [1]}}, "age", "between"),
        ({"age": True}, "age", "not true and false"),
        ({"age": 10**400}, "age", "infinite"),
        ({"smoker": {"between": ["a", "b"]}}, "smoker", "no order"),
        ({"smoker": {"in": ["yess"]}}, "smoker", "did you mean 'yes'?"),
        ({"since": 5}, "since", "2024-05-31"),
        ({"since": "soon"}, "since", "2024-05-31"),
        ({HOSTILE: 1}, HOSTILE, "there is no column"),
        ({"x" * 10_000: 1}, "x" * 200, "there is no column"),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, str) else "",
)
def test_a_wrong_cell_is_named(client, row, column, words):
    problem = client.problem(PREDICT, {"rows": [{}, row]})
    assert problem["column"] == column
    assert problem["row"] == 1
    assert words in problem["detail"]
    assert "\u202e" not in problem["detail"]
    one = client.problem(PREDICT, {"rows": row})
    assert "row" not in one


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b"\xff\xfe", 400, "not JSON"),
        (b"[" * 100_000, 400, "not JSON"),
        (b"[]", 422, "the body"),
        (b"{}", 422, "rows: Field required"),
        (b'{"rows": 3}', 422, "rows: must be a"),
        (b'{"rows": [3]}', 422, "rows.0: must be a"),
        (b'{"rows": {"age": "\\ud800"}}', 400, "not JSON"),
        (b'{"rows": {}, "stdd": true}', 422, "did you mean 'std'?"),
        (b'{"rows": {}, "interval": 1.5}', 422, "interval"),
        (b'{"rows": {}, "interval": NaN}', 422, "interval"),
        (b'{"rows": {}, "quantiles": [2]}', 422, "between 0 and 1"),
        (b'{"rows": {}, "proba": true}', 422, "predicts numbers"),
        (b'{"rows": {"age": {"between": [1, 2]}}, "proba": true}', 422, "predicts numbers"),
    ],
)
def test_a_wrong_body_is_described(client, body, status, words):
    headers = {"Content-Type": "application/json"}
    problem = client.problem(PREDICT, None, status, content=body, headers=headers)
    assert words in problem["detail"]
    assert not re.search(r"\[str|Input should|validation", problem["detail"])


def test_an_address_that_is_none_is_named(client):
    problem = client.problem("/models/cost/nope", {}, 404)
    assert "'/models/cost/nope'; /docs" in problem["detail"]
    answer = client.get(PREDICT)
    assert answer.status_code == 405
    assert "takes POST, not GET" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("ask", {"query": "smokr == 'yes'"}, "did you mean 'smoker'?"),
        ("ask", {"query": "age <"}, "value"),
        ("ask", {"query": {"smokr": "yes"}}, "did you mean 'smoker'?"),
        ("ask", {"query": "age > 3", "of": "yes"}, "a regressor has one output"),
        ("split", {"columns": ["agee"]}, "did you mean 'age'?"),
        ("split", {"columns": []}, "columns: must have at least 1 item"),
        ("split", {"columns": ["age"], "bins": 0}, "bins"),
        ("next-question", {"known": {"age": 4}, "cost": {"agee": 1}}, "did you mean 'age'?"),
        ("stability", {"rows": {}, "threshold": "x"}, "threshold"),
        ("stability", {"rows": {"age": {"in": [3]}}, "threshold": 1}, "single values"),
        ("sufficient", {"row": [{}, {}], "threshold": 1}, "one row"),
        ("shapley", {"rows": [{"smokr": "yes"}]}, "did you mean 'smoker'?"),
        ("case", {"row": {"agee": 1}}, "did you mean 'age'?"),
        ("case", {"row": {}, "coverage": 2}, "coverage"),
    ],
)
def test_a_wrong_question_is_described(client, path, body, words):
    assert words in client.problem(f"/models/cost/{path}", body)["detail"]


def test_where_in_a_condition(client):
    problem = client.problem("/models/cost/ask", {"query": "age > 3 and smokr == 'yes'"})
    assert (problem["position"], problem["query"]) == (12, "age > 3 and smokr == 'yes'")


def test_no_such_model_page_method_or_type(client):
    problem = client.problem("/models/cots/predict", {"rows": {}}, 404)
    assert "did you mean 'cost'?" in problem["detail"]
    for path in ("/nothing", "/page/../server.py", "/page/%2e%2e/server.py", "/models/..%2fcost"):
        assert client.get(path).status_code == 404
    answer = client.get(PREDICT)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.headers["content-type"] == "application/problem+json"
    problem = client.problem(PREDICT, None, 415, content=b"age=4", headers={"Content-Type": "a/b"})
    assert "application/json" in problem["detail"]


def test_unseen_categories_count_as_unknown_and_are_told(client):
    row = {"age": 40, "smoker": "yess"}
    answer = client.answer(PREDICT, {"rows": [{}, row]})
    assert (
        answer["predictions"][1] == client.answer(PREDICT, {"rows": {"age": 40}})["predictions"][0]
    )
    (remark,) = answer["remarks"]
    assert remark.startswith("row 1: 'yess' is not a value of column 'smoker'")
    assert "did you mean 'yes'?" in remark


def test_numbers_far_beyond_the_training_data_are_told(client):
    answer = client.answer(PREDICT, {"rows": [{"age": 40}, {"age": 4000}]})
    (remark,) = answer["remarks"]
    assert remark.startswith("row 1: 4000.0 is far from the training data of column 'age' (")


def test_a_long_list_of_rows(client):
    rows = [{"age": 20 + i % 40, "smoker": "x"} for i in range(600)]
    answer = client.answer(PREDICT, {"rows": rows})
    few = client.answer(PREDICT, {"rows": rows[:40]})
    assert answer["predictions"] == few["predictions"] * 15
    assert answer["remarks"][20:] == ["... and 580 more values like these"]
    assert client.problem(PREDICT, {"rows": [*rows, {"agee": 3}]})["row"] == 600


def test_metrics_count_what_happened(client):
    def value(line):
        text = client.get("/metrics").text
        return sum(float(one.split()[-1]) for one in text.splitlines() if one.startswith(line))

    names = [
        'expecta_rows_total{model="cost"}',
        'expecta_impossible_rows_total{model="cost"}',
        'expecta_unseen_categories_total{model="cost"}',
        'expecta_requests_total{method="POST",route="/models/{name}/predict",status="200"}',
        'expecta_request_seconds_count{route="/models/{name}/predict"}',
    ]
    before = [value(name) for name in names]
    never = {"since": {"between": ["1800-01-01", "1800-01-02"]}}
    client.answer(PREDICT, {"rows": [{"smoker": "x"}, never]})
    assert [value(name) - old for name, old in zip(names, before, strict=True)] == [2, 1, 1, 1, 1]


def test_logs_hold_no_contents(client):
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("expecta.serve")
    old = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        client.answer(PREDICT + "?age=4711", {"rows": {"age": 47.11, "smoker": "yes"}})
        client.problem("/models/4711/predict", {"rows": {}}, 404)
        client.run(asyncio.sleep(0.3))  # lines gather before they are written
    finally:
        logger.removeHandler(handler)
        logger.setLevel(old)
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert first["route"] == "/models/{name}/predict"
    assert (first["status"], first["rows"], first["model"]) == (200, 1, "cost")
    assert {"time", "level", "milliseconds", "request"} <= set(first)
    assert second["status"] == 404
    assert "4711" not in stream.getvalue()
    assert "47.11" not in stream.getvalue()


def test_pages_have_a_strict_policy(client):
    for path in ("/docs", "/health/live", "/openapi.json", "/api-page/api.js"):
        answer = client.get(path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in answer.headers
    page = client.get("/docs").text
    assert "http://" not in page
    assert "https://" not in page
    assert client.get("/").status_code == 200


def test_the_report_is_a_page_of_its_own(client):
    answer = client.get("/models/smoker/report")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert "sha256-" in answer.headers["content-security-policy"]
    assert "smoker" in answer.text


def test_a_token(models):
    with serving({"cost": models["cost"]}, ServeOptions(token="sécret")) as client:
        for headers in ({}, {"Authorization": "Bearer other"}, {"Authorization": "Basic sécret"}):
            headers = {key: value.encode() for key, value in headers.items()}
            answer = client.post(PREDICT, {"rows": {}}, headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert client.get("/metrics", headers=headers).status_code == 401
        good = {"Authorization": "Bearer sécret".encode()}
        assert client.post(PREDICT, {"rows": {}}, headers=good).status_code == 200
        for path in ("/health/live", "/health/ready", "/v2/health/live", "/docs", "/openapi.json"):
            assert client.get(path).status_code == 200


def test_other_pages_may_ask_only_where_they_are_named(models):
    headers = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    options = ServeOptions(origins=("https://a.example",))
    with serving({"cost": models["cost"]}, options) as client:
        answer = client.run(client.http.options(PREDICT, headers=headers))
        assert answer.headers["access-control-allow-origin"] == "https://a.example"
        other = headers | {"Origin": "https://b.example"}
        answer = client.run(client.http.options(PREDICT, headers=other))
        assert "access-control-allow-origin" not in answer.headers


def test_limits_of_size(models):
    options = ServeOptions(max_bytes=1000, max_rows=5)
    with serving({"cost": models["cost"]}, options) as client:
        assert "5" in client.problem(PREDICT, {"rows": [{}] * 6}, 413)["detail"]
        assert client.answer(PREDICT, {"rows": [{}] * 5})
        assert "1,000" in client.problem(PREDICT, {"rows": {"smoker": "x" * 2000}}, 413)["detail"]

        async def pieces():
            for _ in range(100):
                yield b" " * 100

        headers = {"Content-Type": "application/json"}
        client.problem(PREDICT, None, 413, content=pieces(), headers=headers)
        for path in ("shapley", "outliers", "score"):
            client.problem(f"/models/cost/{path}", {"rows": [{}] * 6}, 413)


def test_a_body_that_does_not_arrive(models):
    async def slow():
        yield b"{"
        await asyncio.sleep(60)

    with serving({"cost": models["cost"]}, ServeOptions(timeout=0.2)) as client:
        headers = {"Content-Type": "application/json"}
        client.problem(PREDICT, None, 408, content=slow(), headers=headers)
        headers = {"Content-Type": "application/x-ndjson"}
        client.problem(PREDICT, None, 408, content=slow(), headers=headers)


def test_more_than_can_wait_is_refused(models, monkeypatch):
    options = ServeOptions(max_questions=2, max_requests=4)
    with serving({"cost": models["cost"]}, options) as client:
        served = client.service.state.registry.entries["cost"].served
        slow = type(served.model).ask

        def ask(*words, **more):
            time.sleep(0.2)
            return slow(*words, **more)

        monkeypatch.setattr(type(served.model), "ask", ask)

        async def many(n):
            posts = (client.http.post("/models/cost/ask", json={}) for _ in range(n))
            return await asyncio.gather(*posts)

        answers = client.run(many(8))
        codes = sorted(answer.status_code for answer in answers)
        assert codes == [200, 200, 429, 429, 429, 429, 429, 429]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert all(answer.headers["retry-after"] == "1" for answer in refused)
        assert client.get("/health/live").status_code == 200


def test_no_answer_in_time(models, monkeypatch):
    with serving({"cost": models["cost"]}, ServeOptions(timeout=0.1)) as client:
        served = client.service.state.registry.entries["cost"].served
        monkeypatch.setattr(type(served.model), "ask", lambda *_, **__: time.sleep(0.5))
        problem = client.problem("/models/cost/ask", {}, 503)
        assert "0.1 seconds" in problem["detail"]


def test_an_error_of_ours_tells_nothing_of_the_inside(models, monkeypatch, caplog):
    with serving({"cost": models["cost"]}) as client:
        served = client.service.state.registry.entries["cost"].served

        def broken(*_, **__):
            raise RuntimeError("secret inside")

        monkeypatch.setattr(type(served.model), "ask", broken)
        answer = client.post("/models/cost/ask", {})
        assert answer.status_code == 500
        assert "secret" not in answer.text
        assert client.answer(PREDICT, {"rows": {}})


def test_one_of_several_processes_is_warm_before_it_answers(models):
    from expecta.serve import app

    service = app({"cost": models["cost"]}, ServeOptions(warm_first=True))
    client = Client(service)
    client.run(client._lifespan.__aenter__())
    assert client.get("/health/ready").status_code == 200
    client.__exit__(None, None, None)


def test_not_ready_before_it_is_warm(models):
    from expecta.serve import app

    service = app({"cost": models["cost"]})
    client = Client(service)  # without starting what warms it
    assert client.get("/health/live").status_code == 200
    for path in ("/health/ready", "/v2/health/ready", "/models/cost"):
        answer = client.get(path)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    client.problem(PREDICT, {"rows": {}}, 503)
    client.run(client.http.aclose())
    client.loop.close()
