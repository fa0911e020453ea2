"""Models of each kind over one small table, and a client of a service that runs in this process."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager

import httpx
import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

from expecta import ChowLiu, CircuitClassifier, CircuitRegressor, ExpectedPredictor
from expecta.serve import app

HOSTILE = "<script>alert('x')</script> \" & \u202eright"


ROWS = [
    {"age": 40, "smoker": "yes"},
    {"age": 33.0, "region": HOSTILE, "vip": True, "since": "2021-03-04"},
    {"smoker": None, "vip": "NaN"},
    {},
    {"age": 51, "smoker": "no", "region": "east", "since": "2020-05-06", "vip": False},
]
COLUMNS = ["age", "smoker", "region", "since", "vip"]
EVIDENCE = {"age": {"between": [30, 40]}, "region": {"in": ["east", HOSTILE]}, "smoker": "yes"}
FACTS = {"age": (30, 40), "region": ["east", HOSTILE], "smoker": "yes"}


def people(n=160, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "smoker": np.where(rng.random(n) < 0.3, "yes", "no"),
            "region": rng.choice(["east", "north", HOSTILE], n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "vip": rng.random(n) < 0.2,
        }
    )
    cost = 100.0 * table["age"] + 9000.0 * (table["smoker"] == "yes")
    cost += 500.0 * rng.standard_normal(n)
    return table, cost.rename("cost")


def make_models():
    """A regressor, classifiers of two and three classes, a wrapped model, and a density."""
    X, cost = people()
    numbers = X[["age", "vip"]].astype(float)
    return {
        "cost": CircuitRegressor(density=ChowLiu(), max_splits=3, random_state=0).fit(X, cost),
        "smoker": CircuitClassifier(density=ChowLiu(), max_splits=2, random_state=0).fit(
            X.drop(columns="smoker"), X["smoker"]
        ),
        "region": CircuitClassifier(density=ChowLiu(), max_splits=2, random_state=0).fit(
            X.drop(columns="region"), X["region"].replace(HOSTILE, "south")
        ),
        "linear": ExpectedPredictor(LinearRegression().fit(numbers, cost), ChowLiu()).fit(
            numbers, cost
        ),
        "people": ChowLiu().fit(X),
    }


class Client:
    """Asks a service in this process, without a network."""

    def __init__(self, service, headers=None):
        self.service, self.headers = service, headers or {}
        self.loop = asyncio.new_event_loop()
        transport = httpx.ASGITransport(service, raise_app_exceptions=False)
        self.http = httpx.AsyncClient(
            transport=transport, base_url="http://test", headers=self.headers, timeout=60
        )
        self._lifespan = service.router.lifespan_context(service)

    def __enter__(self):
        self.run(self._lifespan.__aenter__())
        for _ in range(3000):
            if self.service.state.registry.is_ready:
                return self
            self.run(asyncio.sleep(0.01))
        raise AssertionError(self.get("/health/ready").text)

    def __exit__(self, *problem):
        self.run(self.http.aclose())
        self.run(self._lifespan.__aexit__(*problem))
        self.loop.close()

    def run(self, awaitable):
        return self.loop.run_until_complete(awaitable)

    def get(self, path, **more):
        return self.run(self.http.get(path, **more))

    def post(self, path, document=None, **more):
        if document is not None:
            more["json"] = document
        return self.run(self.http.post(path, **more))

    def answer(self, path, document):
        """Post a request that is to succeed, and return its document."""
        answer = self.post(path, document)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/json"
        return answer.json()

    def problem(self, path, document=None, status=422, **more):
        """Post a request that is to fail, and return its problem."""
        answer = self.post(path, document, **more)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert problem["status"] == status
        assert {"type", "title", "detail"} <= set(problem)
        return problem


@contextmanager
def serving(models, options=None, headers=None):
    with Client(app(models, options), headers) as client:
        yield client


def table(rows, drop=()):
    """Rows as the library takes them."""
    cells = {name: [row.get(name) for row in rows] for name in COLUMNS if name not in drop}
    return {
        name: [None if value == "NaN" else value for value in values]
        for name, values in cells.items()
    }


# requests, and what the library answers
GROUP = "smoker == 'yes' and age < 40"
QUESTIONS = [
    ("ask", {"query": GROUP}, lambda m: m.ask(GROUP)),
    ("ask", {"query": EVIDENCE}, lambda m: m.ask(FACTS)),
    ("ask", {}, lambda m: m.ask()),
    ("compare", {"a": GROUP, "b": {"smoker": "no"}}, lambda m: m.compare(GROUP, {"smoker": "no"})),
    (
        "split",
        {"columns": ["region", "age"], "bins": 3, "given": "vip == True"},
        lambda m: m.split("region", "age", bins=3, given="vip == True"),
    ),
    ("dependence", {"column": "age", "grid": 5}, lambda m: m.dependence("age", grid=5)),
    (
        "next-question",
        {"known": {"age": 40}, "cost": {"smoker": 2}},
        lambda m: m.next_question({"age": 40}, cost={"smoker": 2}),
    ),
    ("next-question", {"known": "age > 40"}, lambda m: m.next_question("age > 40")),
    (
        "stability",
        {"rows": ROWS, "threshold": 9000},
        lambda m: m.stability(table(ROWS), 9000),
    ),
    (
        "sufficient",
        {"row": ROWS[0], "threshold": 9000},
        lambda m: m.sufficient({"age": 40, "smoker": "yes"}, 9000),
    ),
    ("shapley", {"rows": ROWS[:2]}, lambda m: m.shapley(table(ROWS[:2]))),
    ("disparities", {"sensitive": "smoker", "size": 1}, lambda m: m.disparities("smoker", size=1)),
    ("outliers", {"rows": ROWS[:2]}, lambda m: m.outliers(table(ROWS[:2]))),
]
