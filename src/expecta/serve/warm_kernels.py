"""Compile the kernels that a service needs, so that they are in the cache when it starts.

``python -m expecta.serve.warm_kernels`` learns two small models and answers for them; an image
with a read-only file system is built with it.
"""

from __future__ import annotations

from expecta.estimators import CircuitClassifier, CircuitRegressor
from expecta.serve.asked_questions import QUESTIONS
from expecta.serve.one_case import CaseRequest, answer_case
from expecta.serve.served_model import PredictOptions, ServedModel


def warm_kernels() -> None:
    """Ask a regressor and a classifier all that a service answers."""
    ages = [20 + i % 40 for i in range(120)]
    table = {"age": ages, "smoker": ["no", "yes", "no"] * 40, "children": [0, 1, 2, 3] * 30}
    cost = [100.0 * age + 9000.0 * (i % 3 == 1) for i, age in enumerate(ages)]
    classes = ["high" if value > 8000 else "low" for value in cost]
    questions = {question.path: question for question in QUESTIONS}
    for model, options in (
        (CircuitRegressor(max_splits=3).fit(table, cost), PredictOptions(std=True, interval=0.9)),
        (CircuitClassifier(max_splits=3).fit(table, classes), PredictOptions(proba=True)),
    ):
        served = ServedModel("warm", model, "1")
        served.warm()
        served.predict([[40, None, None], [None, "yes", 1], [30, "no", 2]], options)
        for age in (40, {"between": [30, 40]}):
            case = {"row": {"age": age}, "threshold": 0.5}
            answer_case(served, CaseRequest.model_validate(case))
        for path, body in (
            ("compare", {"a": "smoker == 'yes'", "b": None}),
            ("split", {"columns": ["smoker"]}),
            ("dependence", {"column": "age"}),
            ("sufficient", {"row": {"age": 40}, "threshold": 0.5}),
            ("disparities", {"sensitive": "smoker"}),
            ("outliers", {"rows": {"age": 40}}),
        ):
            question = questions[path]
            question.answer(served, question.request.model_validate(body))


if __name__ == "__main__":
    warm_kernels()
