"""Questions from the command line are those of the library."""

from __future__ import annotations

import json

import numpy as np
import pytest

from commands import bad, good, parsed, run
from expecta import CircuitClassifier, CircuitRegressor
from expecta.ask.printed_answer import plain

KNOWN = {"age": 40.0, "smoker": "yes"}
TABLE = {
    "age": [40, None, 33, 50],
    "smoker": [None, None, "yes", "no"],
    "region": ["east", None, "west", None],
}

CASES = {
    "ask": (["smoker == 'yes'"], lambda m: m.ask("smoker == 'yes'")),
    "compare": (
        ["smoker == 'yes'", "age < 30"],
        lambda m: m.compare("smoker == 'yes'", "age < 30"),
    ),
    "split": (
        ["region", "age", "--bins", 2, "--given", "smoker == 'no'"],
        lambda m: m.split("region", "age", bins=2, given="smoker == 'no'"),
    ),
    "dependence": (["age", "--grid", 3], lambda m: m.dependence("age", grid=3)),
    "next": (
        ["--row", "age=40,smoker=yes", "--cost", "region=4"],
        lambda m: m.next_question(KNOWN, cost={"region": 4.0}),
    ),
    "audit": (
        ["--sensitive", "region", "--size", 1],
        lambda m: m.disparities(["region"], size=1),
    ),
    "explain": (["--row", "age=40, smoker=YES"], lambda m: m.shapley(KNOWN)),
    "sufficient": (
        ["--row", "age=40,smoker=yes", "--threshold", 9000],
        lambda m: m.sufficient(KNOWN, 9000.0),
    ),
    "stability": (["ROWS", "--threshold", 9000], lambda m: m.stability(TABLE, 9000.0)),
    "outliers": (["ROWS"], lambda m: m.outliers(TABLE)),
    "check": (["ROWS"], lambda m: m.check_density(TABLE)),
}
PLOTS = [name for name in CASES if name != "sufficient"]


def words_of(name, place):
    words = [place / "rows.csv" if word == "ROWS" else word for word in CASES[name][0]]
    return [name, place / "cost.expecta", *words]


@pytest.mark.parametrize("name", CASES)
def test_answers_are_the_library_s(name, place):
    want = CASES[name][1](CircuitRegressor.load(place / "cost.expecta"))
    words = words_of(name, place)
    assert parsed(*words) == json.loads(json.dumps(plain(want)))
    assert good(*words) == f"{want}\n"


@pytest.mark.parametrize("name", PLOTS)
def test_plots(name, place, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "plot.svg"
    parsed(*words_of(name, place), "--plot", path)
    assert "<svg" in path.read_text(encoding="utf-8")


def test_a_part_of_a_check_and_a_check_without_rows(place):
    want = CircuitRegressor.load(place / "cost.expecta").check_density(TABLE)
    for part in ("pairs", "groups", "likelihood"):
        words = "check", place / "cost.expecta", place / "rows.csv", "--show", part
        assert good(*words) == f"{getattr(want, part)}\n"
        assert parsed(*words) == json.loads(json.dumps(plain(getattr(want, part))))
    assert "has no training rows" in bad("check", place / "cost.expecta")


def test_a_check_of_a_density_that_was_saved_by_itself(place, tmp_path):
    density = CircuitRegressor.load(place / "cost.expecta").density_
    density.save(tmp_path / "density.expecta")
    words = "check", tmp_path / "density.expecta"
    want = density.check(TABLE)
    assert good(*words, place / "rows.csv") == f"{want}\n"
    assert "has no training rows" in bad(*words)


def test_next_of_a_query(place):
    found = parsed("next", place / "cost.expecta", "smoker == 'yes'")
    want = CircuitRegressor.load(place / "cost.expecta").next_question("smoker == 'yes'")
    assert found["columns"] == list(want.columns)


def test_class_is_named(place):
    model = CircuitClassifier.load(place / "region.expecta")
    found = parsed("ask", place / "region.expecta", "age < 40", "--of", "west")
    assert found["mean"] == model.ask("age < 40", of="west").mean
    assert "name one: --of east" in bad("ask", place / "region.expecta")


def test_rows_by_number(place):
    words = ["explain", place / "cost.expecta", place / "rows.csv"]
    every, one = parsed(*words), parsed(*words, "--row", 2)
    assert np.allclose(one["values"][0], every["values"][2])
    assert "rows have the indices 0 to 3" in bad(*words, "--row", 4)


def test_a_row_unlike_the_training_data_is_remarked_on(place):
    told = run("explain", place / "cost.expecta", "--row", "age=4000,smoker=yes").stderr
    assert "column 'age' has values far from the training data" in told
    assert "nearest bin: 4000" in told
    assert "far from" not in run("explain", place / "cost.expecta", "--row", "age=40").stderr


WRONG = [
    (["ask", "M", "smokr == 'yes'"], "did you mean 'smoker'"),
    (["ask", "M", "smoker == 'maybe'"], "it takes 'no', 'yes'"),
    (["ask", "M", "smoker = 'yes'"], "compared with == (at character 8"),
    (["ask", "M", "", "--of", "x"], "leave --of x out"),
    (["split", "M", "sex"], "there is 'age', 'smoker', 'region'"),
    (["dependence", "M", "agee"], "did you mean 'age'"),
    (["next", "M", "--row", "age=old"], "column 'age': 'old' is not a number"),
    (["next", "M", "--row", "smoker=maybe"], "it takes 'no', 'yes'"),
    (["next", "M", "--row", "age"], "write a row as age=40,smoker=yes"),
    (["next", "M", "--row", "age=1,age=2"], "named twice"),
    (["next", "M", "age < 30", "--row", "age=40"], "give only one of them"),
    (["next", "M", "--cost", "age"], "write costs as age=1,bmi=20"),
    (["next", "M", "--cost", "age=0"], "a cost must be a finite number above zero"),
    (["explain", "M"], "or one row: --row age=40,smoker=yes"),
    (["explain", "M", "ROWS", "--row", "age=40"], "no table is needed"),
    (["audit", "M", "--sensitive", "sex"], "there is 'age', 'smoker', 'region'"),
    (["predict", "M", "ROWS", "--proba"], "this model predicts numbers"),
    (["predict", "M", "ROWS", "--interval", "2"], "coverage must be between 0 and 1"),
]


@pytest.mark.parametrize(("words", "remedy"), WRONG, ids=[" ".join(one) for one, _ in WRONG])
def test_wrong_questions(words, remedy, place):
    names = {"M": place / "cost.expecta", "ROWS": place / "rows.csv"}
    assert remedy in bad(*(names.get(word, word) for word in words))


def test_help_is_plain_where_nobody_looks(place, monkeypatch):
    for name in ("FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    for words in (["--help"], ["fit", "--help"], ["ask"]):
        found = run(*words)
        assert "\x1b" not in found.output


def test_rows_are_read_by_the_column_s_kind(tmp_path):
    from datetime import datetime

    from expecta.cli.models import load, row_of

    days = [f"2020-{1 + i % 9:02}-01,{'true' if i % 3 else 'false'},{i}" for i in range(30)]
    (tmp_path / "a.csv").write_text("when,flag,y\n" + "\n".join(days))
    good("fit", tmp_path / "a.csv", "-t", "y", "-o", tmp_path / "m", "--density", "chow-liu", "-q")
    model = load(tmp_path / "m")
    found = row_of(model, "when=2020-03-01,flag=TRUE")
    assert found == {"when": datetime(2020, 3, 1), "flag": True}
    assert row_of(model, "flag=?, when=") == {"flag": None, "when": None}
    want = model.predict({"when": [datetime(2020, 3, 1)], "flag": [True]})
    answer = parsed("explain", tmp_path / "m", "--row", "when=2020-03-01,flag=true")
    assert answer["prediction"][0] == pytest.approx(want[0])
    assert "is not a date" in bad("next", tmp_path / "m", "--row", "when=someday")
