"""The Open Inference Protocol: tensors in and out, and the library's numbers."""

from __future__ import annotations

import numpy as np
import pytest

from expecta.estimators.expected_estimator import ExpectedEstimator

INFER = "/v2/models/cost/infer"


def tensor(name, data, datatype="FP64", **more):
    return {"name": name, "shape": [len(data)], "datatype": datatype, "data": data, **more}


@pytest.fixture(scope="module")
def cost(model_files):
    return ExpectedEstimator.load(model_files["cost"])


def outputs(answer):
    return {output["name"]: output["data"] for output in answer["outputs"]}


def test_health_and_metadata(client, cost):
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}
    assert client.get("/v2").json()["name"] == "expecta"
    model = client.get("/v2/models/cost").json()
    types = {one["name"]: one["datatype"] for one in model["inputs"]}
    assert types == {
        "age": "FP64",
        "smoker": "BYTES",
        "region": "BYTES",
        "since": "BYTES",
        "vip": "BOOL",
    }
    assert [one["name"] for one in model["outputs"]][:2] == ["cost_predicted", "cost_std"]
    (version,) = model["versions"]
    assert client.get(f"/v2/models/cost/versions/{version}").json() == model
    assert client.get(f"/v2/models/cost/versions/{version}/ready").json()["ready"] is True
    assert client.get("/v2/models/cost/versions/7").status_code == 404
    assert client.get("/v2/models/none").json()["error"].startswith("there is no model 'none'")


def test_inference(client, cost):
    inputs = [
        tensor("age", [40, 33, None, "NaN"], "FP64"),
        tensor(
            "smoker",
            ["yes", "", "no", "yes"],
            "BYTES",
            parameters={"missing": [False, True, False, False]},
        ),
        {"name": "vip", "shape": [4, 1], "datatype": "BOOL", "data": [[True], [0], [1], [False]]},
    ]
    wanted = [{"name": f"cost_{word}"} for word in ("predicted", "std", "low")]
    answer = client.answer(INFER, {"id": "7", "inputs": inputs, "outputs": wanted})
    rows = {
        "age": [40, 33, None, None],
        "smoker": ["yes", None, "no", "yes"],
        "region": [None] * 4,
        "since": [None] * 4,
        "vip": [True, False, True, False],
    }
    mean, std = cost.predict(rows, return_std=True)
    found = outputs(answer)
    assert answer["id"] == "7"
    assert answer["model_name"] == "cost"
    assert found["cost_predicted"] == mean.tolist()
    assert found["cost_std"] == std.tolist()
    assert found["cost_low"] == cost.predict_interval(rows, 0.9)[:, 0].tolist()
    short = outputs(client.answer(INFER, {"inputs": inputs}))
    assert list(short) == ["cost_predicted", "cost_error"]


def test_classes(client, model_files):
    model = ExpectedEstimator.load(model_files["region"])
    inputs = [tensor("age", [40.0, 50.0])]
    found = outputs(client.answer("/v2/models/region/infer", {"inputs": inputs}))
    rows = {name: [None] * 2 for name in model.encoder_.feature_names_in_.tolist()}
    shares = model.predict_proba(rows | {"age": [40.0, 50.0]})
    columns = [found[f"region_probability_{label}"] for label in model.classes_]
    assert np.array(columns).T.tolist() == shares.tolist()
    assert found["region_predicted"] == model.predict(rows | {"age": [40.0, 50.0]}).tolist()


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"inputs": [tensor("agee", [1.0])]}, "did you mean 'age'?"),
        ({"inputs": [tensor("age", [1.0]), tensor("smoker", ["a", "b"], "BYTES")]}, "shape"),
        ({"inputs": [tensor("age", [1.0]), tensor("age", [1.0])]}, "two inputs"),
        ({"inputs": [tensor("age", ["x"])]}, "is not a number"),
        ({"inputs": [tensor("age", [1.0], "FP8")]}, "FP8"),
        ({"inputs": [tensor("age", [1.0]) | {"data": [1, 2]}]}, "2 values for 1 rows"),
        ({"inputs": [], "outputs": [{"name": "x"}]}, "no output 'x'"),
        ({"inputs": [tensor("age", [{"in": [3]}])]}, "single values"),
        ({}, "inputs"),
    ],
)
def test_what_is_wrong(client, document, words):
    problem = client.problem(INFER, document)
    assert words in problem["detail"]
    assert problem["error"] == problem["detail"]  # where clients of the protocol look


def test_binary_tensors_are_refused(client):
    answer = client.post(INFER, {"inputs": []}, headers={"Inference-Header-Content-Length": "3"})
    assert answer.status_code == 415
