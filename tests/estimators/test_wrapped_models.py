"""Random wrapped models against enumeration; `python -m benchmarks.wrapped_models` makes more."""

from __future__ import annotations

import json

import pytest

wrapped_models = pytest.importorskip("benchmarks.wrapped_models")
for library in ("xgboost", "lightgbm", "catboost", "interpret"):
    pytest.importorskip(library)

PARTS, SIZE = 4, 6


@pytest.mark.parametrize("part", range(PARTS))
def test_random_models_agree_with_enumeration(part, tmp_path):
    path = tmp_path / "results.jsonl"
    results = wrapped_models.run(part * SIZE, SIZE, path)
    assert [one["seed"] for one in results] == list(range(part * SIZE, (part + 1) * SIZE))
    assert [one for one in results if one["wrong"]] == []
    assert [one for one in results if one["changed_called_exact"]] == []
    assert [json.loads(line) for line in path.read_text().splitlines()] == results
    assert wrapped_models.run(part * SIZE, SIZE, path) == results  # goes on where it stopped


def test_a_wrong_answer_is_found(tmp_path, monkeypatch):
    asked = wrapped_models.answers

    def wrong(expected, query):
        mean, error = asked(expected, query)
        return mean * (1 + 1e-6), error

    monkeypatch.setattr(wrapped_models, "answers", wrong)
    (result,) = wrapped_models.run(0, 1, tmp_path / "results.jsonl", say=lambda text: None)
    assert result["trust"] == "exact"
    assert result["wrong"]
    assert wrapped_models.summary([result])["wrong"] == [0]
