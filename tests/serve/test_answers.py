"""Answers over HTTP are the library's to the last bit, for every endpoint and kind of model."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from expecta import ImpossibleEvidenceWarning
from expecta.ask.printed_answer import plain
from expecta.estimators.expected_estimator import ExpectedEstimator
from served import COLUMNS, EVIDENCE, FACTS, GROUP, HOSTILE, QUESTIONS, ROWS, people, table


@pytest.fixture(scope="module")
def loaded(model_files):
    """The models as the library reads them."""
    return {
        name: ExpectedEstimator.load(path) for name, path in model_files.items() if name != "people"
    }


def without(name, rows=ROWS):
    return [{key: value for key, value in row.items() if key != name} for row in rows]


def library(function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImpossibleEvidenceWarning)
        return function()


def test_predictions_of_numbers(client, loaded):
    asked = {"rows": ROWS, "std": True, "interval": 0.8, "quantiles": [0.1, 0.5]}
    answer = client.answer("/models/cost/predict", asked)
    model, rows = loaded["cost"], table(ROWS)
    mean, std, error = model.predict(rows, return_std=True, return_error=True)
    found = answer["predictions"]
    assert [row["prediction"] for row in found] == mean.tolist()
    assert [row["std"] for row in found] == std.tolist()
    assert [row["error"] for row in found] == error.tolist()
    assert [row["interval"] for row in found] == model.predict_interval(rows, 0.8).tolist()
    quantiles = model.predict_quantiles(rows, [0.1, 0.5]).tolist()
    assert [list(row["quantiles"].values()) for row in found] == quantiles
    assert answer["exact"] is True
    assert "Exact, given the learned density" in answer["exactness"]
    assert answer["remarks"] == []


@pytest.mark.parametrize("name", ["smoker", "region"])
def test_predictions_of_classes(client, loaded, name):
    rows = without(name)
    answer = client.answer(f"/models/{name}/predict", {"rows": rows, "proba": True, "error": True})
    model = loaded[name]
    shares, errors = model.predict_proba(table(rows, [name]), return_error=True)
    found = answer["predictions"]
    assert [list(row["proba"].values()) for row in found] == shares.tolist()
    assert [list(row["proba_error"].values()) for row in found] == errors.tolist()
    assert [row["prediction"] for row in found] == model.predict(table(rows, [name])).tolist()
    assert list(found[0]["proba"]) == model.classes_.tolist()
    assert answer["exact"] is bool(np.all(errors == 0))


def test_predictions_of_a_wrapped_model(client, loaded):
    rows = [{"age": 40}, {"age": 41.5, "vip": 1.0}, {}]
    found = client.answer("/models/linear/predict", {"rows": rows, "std": True})["predictions"]
    columns = {name: [row.get(name) for row in rows] for name in ("age", "vip")}
    mean, std = loaded["linear"].predict(columns, return_std=True)
    assert [row["prediction"] for row in found] == mean.tolist()
    assert [row["std"] for row in found] == std.tolist()


def test_what_is_unknown(client):
    everyone = client.answer("/models/cost/predict", {"rows": {}})["predictions"]
    for cell in ("null", '"NaN"', '"nan"', "NaN"):
        body = f'{{"rows": {{"age": {cell}, "smoker": {cell}, "since": {cell}}}}}'
        headers = {"Content-Type": "application/json"}
        answer = client.post("/models/cost/predict", content=body, headers=headers)
        assert answer.json()["predictions"] == everyone


def test_one_row_is_that_row_of_many(client):
    many = client.answer("/models/cost/predict", {"rows": ROWS, "std": True})["predictions"]
    for row, expected in zip(ROWS, many, strict=True):
        one = client.answer("/models/cost/predict", {"rows": row, "std": True})
        assert one["predictions"] == [expected]


def test_concurrent_rows_share_batches_and_keep_their_answers(client):
    import asyncio

    rng = np.random.default_rng(5)
    cells = people(60, seed=9)[0]
    rows = [
        {
            name: value
            for name, value in json.loads(cells.iloc[i].to_json(date_format="iso")).items()
            if rng.random() < 0.5 and name != "since"
        }
        for i in range(60)
    ]
    alone = client.answer("/models/cost/predict", {"rows": rows})["predictions"]

    async def ask(row, std):
        answer = await client.http.post("/models/cost/predict", json={"rows": row, "std": std})
        return answer.json()["predictions"][0]

    async def all_at_once():
        return await asyncio.gather(*(ask(row, i % 3 == 0) for i, row in enumerate(rows)))

    together = client.run(all_at_once())
    assert [row["prediction"] for row in together] == [row["prediction"] for row in alone]
    assert ["std" in row for row in together] == [i % 3 == 0 for i in range(60)]


def test_one_bad_row_does_not_spoil_the_batch_of_others(client):
    import asyncio

    async def ask(row):
        return await client.http.post("/models/cost/predict", json={"rows": row, "proba": False})

    rows = [{"age": 40}, {"age": "x"}, {"age": 41}]

    async def all_at_once():
        return await asyncio.gather(*map(ask, rows))

    assert [a.status_code for a in client.run(all_at_once())] == [200, 422, 200]


def test_sets_and_intervals_are_what_ask_says(client, loaded):
    answer = client.answer("/models/cost/predict", {"rows": [EVIDENCE, ROWS[0]], "std": True})
    group = loaded["cost"].ask(FACTS)
    first, second = answer["predictions"]
    assert (first["prediction"], first["std"], first["error"]) == (group.mean, group.std, 0.0)
    assert second["prediction"] == loaded["cost"].predict(table([ROWS[0]]))[0]


def test_sets_and_intervals_of_classes(client, loaded):
    row = {"age": {"between": [None, 45]}, "vip": {"in": [True]}}
    found = client.answer("/models/region/predict", {"rows": row, "proba": True})["predictions"][0]
    shares = [
        loaded["region"].ask({"age": (None, 45), "vip": [True]}, of=of).mean
        for of in ("east", "north", "south")
    ]
    assert list(found["proba"].values()) == shares
    assert found["prediction"] == ["east", "north", "south"][int(np.argmax(shares))]


def test_intervals_of_the_target_need_single_values(client):
    problem = client.problem("/models/cost/predict", {"rows": [{}, EVIDENCE], "interval": 0.9})
    assert problem["column"] == "age"
    assert problem["row"] == 1


@pytest.mark.parametrize(
    ("path", "request_", "ask"), QUESTIONS, ids=[f"{q[0]} {i}" for i, q in enumerate(QUESTIONS)]
)
def test_questions(client, loaded, path, request_, ask):
    answer = client.answer(f"/models/cost/{path}", request_)
    assert answer == json.loads(json.dumps(ask(loaded["cost"]).to_dict()))


def test_curves_of_groups(client, loaded):
    group = loaded["cost"].ask(GROUP)
    x, below = group.curve()
    answer = client.answer("/models/cost/ask", {"query": GROUP, "curve": True})
    assert answer.pop("curve") == {"x": x.tolist(), "cdf": below.tolist()}
    assert answer == json.loads(json.dumps(group.to_dict()))
    both = client.answer("/models/cost/compare", {"a": GROUP, "b": None, "curve": True})
    assert both["a"]["curve"] == {"x": x.tolist(), "cdf": below.tolist()}


def test_a_case_holds_what_the_verbs_answer(client, loaded):
    model, row = loaded["cost"], {"age": 40, "region": HOSTILE}
    case = client.answer("/models/cost/case", {"row": row, "threshold": 9000, "coverage": 0.8})
    assert case["prediction"] == model.predict(row)[0]
    low, high = model.predict_interval(row, 0.8)[0].tolist()
    assert (case["interval"]["low"], case["interval"]["high"]) == (low, high)
    assert case["next"] == json.loads(json.dumps(model.next_question(row).to_dict()))
    assert case["contributions"]["values"] == plain(model.shapley(row).values)
    stable = model.stability(row, 9000)
    assert case["threshold"]["probability"] == stable.probability[0]
    assert case["threshold"]["decision"] is bool(stable.decision[0])
    group = model.ask(row)
    assert case["distribution"]["curve"]["cdf"] == group.curve()[1].tolist()
    above = model.predict_distribution(row).above([9000.0])[0, 0]
    assert case["interval"]["above_threshold"] == above


def test_a_case_with_a_range(client, loaded):
    case = client.answer("/models/cost/case", {"row": EVIDENCE, "threshold": 9000})
    group = loaded["cost"].ask(FACTS)
    assert case["prediction"] == group.mean
    assert case["interval"] is None
    shared = case["contributions"]
    added = sum(value for value in shared["values"][0] if value is not None)
    assert shared["base"] + added == pytest.approx(group.mean, rel=1e-9)
    assert shared["known"][0][0] == "30 <= age <= 40"
    assert any("calibrated" in remark for remark in case["remarks"])
    below = group.distribution.cdf(np.array([8999.999]))[0]
    assert case["threshold"]["probability"] == pytest.approx(1 - below, abs=0.05)


def test_a_case_of_a_class(client, loaded):
    row = {"age": 40}
    case = client.answer("/models/region/case", {"row": row, "of": "east", "threshold": 0.3})
    assert list(case["proba"].values()) == loaded["region"].predict_proba(row)[0].tolist()
    assert case["is_probability"] is True
    problem = client.problem("/models/region/case", {"row": row})
    assert "choose one" in problem["detail"]


def test_a_density(client, models):
    rows = table(ROWS)
    scores = client.answer("/models/people/score", {"rows": ROWS})["log_prob"]
    assert scores == models["people"].score_samples(rows).tolist()
    found = client.answer("/models/people/outliers", {"rows": ROWS[:1]})
    assert found["log_prob"] == scores[:1]
    assert "density" in client.problem("/models/people/predict", {"rows": {}})["detail"]
    assert client.get("/models/people").json()["task"] == "density"


def test_the_card(client, loaded):
    card = client.get("/models/cost").json()
    assert card["target"] == "cost"
    assert [column["name"] for column in card["columns"]] == COLUMNS
    age, smoker, region, since, vip = card["columns"]
    assert age["range"] == [20.0, 59.0]
    assert sum(age["histogram"]["shares"]) == pytest.approx(1.0)
    assert len(age["histogram"]["edges"]) == len(age["histogram"]["shares"]) + 1
    assert [value["value"] for value in smoker["values"]] == ["no", "yes"]
    share = loaded["cost"].ask("smoker == 'yes'").share
    assert smoker["values"][1]["share"] == pytest.approx(share, rel=1e-12)
    assert HOSTILE in [value["value"] for value in region["values"]]
    assert since["range_text"][0].startswith("2020-01")
    assert [value["value"] for value in vip["values"]] == [False, True]
    everyone = loaded["cost"].ask()
    assert card["outputs"][0]["mean"] == everyone.mean
    assert "Exact, given the learned density" in card["exactness"]
    for value in (value for column in card["columns"] for value in column.get("values", [])):
        row = {"smoker" if value in smoker["values"] else "region": value["value"]}
        if value not in vip["values"]:
            assert client.answer("/models/cost/predict", {"rows": row})["remarks"] == []


def test_never_nan(client):
    """A row of probability zero has null, and says so; JSON has no NaN."""
    row = {"since": {"between": ["1800-01-01", "1800-02-01"]}}
    answer = client.post("/models/cost/predict", {"rows": row, "std": True})
    assert answer.status_code == 200
    assert b"NaN" not in answer.content
    found = answer.json()
    assert found["predictions"] == [{"prediction": None, "error": None, "std": None}]
    assert found["exact"] is False
    assert "probability zero" in found["remarks"][-1]
    case = client.answer("/models/cost/case", {"row": row, "threshold": 1})
    assert case["prediction"] is None


def test_a_case_between_the_training_values_has_a_distribution(client, loaded):
    """``predict`` counts a time as its nearest bin, where a group of such rows is empty."""
    row = {"since": "2021-06-07", "vip": True}
    model = loaded["cost"]
    assert np.isnan(model.ask(row).mean)
    answer = client.answer("/models/cost/case", {"row": row, "parts": ["distribution"]})
    mean, std = model.predict(table([row]), return_std=True)
    distribution = answer["distribution"]
    assert answer["prediction"] == mean[0] == pytest.approx(distribution["mean"])
    assert distribution["std"] == pytest.approx(std[0])
    assert distribution["curve"]["cdf"][-1] == 1.0
    assert len(distribution["quantiles"]) == 5
