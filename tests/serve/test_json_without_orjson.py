"""Answers are the same JSON where orjson is not installed."""

from __future__ import annotations

import json
from datetime import date

import numpy as np

from expecta.serve import problems


def test_json_is_the_same_without_orjson(monkeypatch):
    document = {"mean": 0.1 + 0.2, "none": float("nan"), "x": [1, True, None, "größe"], 3: "three"}
    document |= {
        "day": date(2024, 5, 31),
        "tiny": 5e-324,
        "large": 2**63 - 1,
        "nested": ({"a": 1},),
    }
    with_it = problems.to_json(document)
    monkeypatch.setattr(problems, "orjson", None)
    without = problems.to_json(document)
    assert json.loads(without) == json.loads(with_it)
    assert json.loads(without)["mean"] == 0.1 + 0.2
    assert json.loads(problems.to_json({"half": "\ud800", "n": np.float64(0.5)}))["n"] == 0.5
