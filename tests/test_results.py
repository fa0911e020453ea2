"""What is said to be measured is in the files of results, and the page is made of them."""

from __future__ import annotations

import json
import os
import re
import shutil
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

# A measured passage begins with <!-- measured: FILE column=value ... --> and ends with
# <!-- end -->. Every number in it must be in this file of benchmarks/results, in a line whose
# columns have these values, rounded to the digits that are shown (a percentage is a share).
# Words in `code` and the first column of a table are not numbers that were measured. With
# methods="a; b" a table has a set in each line, and these methods in its columns.
PASSAGE = re.compile(r"<!-- measured: (\S+\.parquet)(.*?) -->\n(.*?)<!-- end -->", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?%?")
# Outside of such passages the README has no number with a unit that only measuring gives.
CLAIM = re.compile(
    r"(?<![\w.])\d[\d,.]*\s*(?:%|ms\b|s\b|seconds?\b|minutes?\b|hours?\b|[MG]B\b|nats\b|"
    r"times (?:as|faster|slower|less|more)|x (?:as|faster|slower))"
)


def quoted(text):
    """Numbers of a passage as they are written."""
    text = re.sub(r"`[^`]*`", "", text)
    lines = [re.sub(r"^\|[^|]*\|", "|", line) for line in text.splitlines()]
    return [one for line in lines for one in NUMBER.findall(line)]


def measured(name, asked):
    """Means over seeds in a file, of the lines whose columns have the values asked for."""
    keys = ["set", "method", "setting", "metric"]
    frame = pd.read_parquet(RESULTS / name).groupby(keys, sort=False)["value"].mean().reset_index()
    for key, value in asked.items():
        frame = frame[frame[key] == value]
    return frame["value"].tolist()


def claims(name, words, passage):
    """Numbers of a passage, each with the values that it may have."""
    asked = {key: value.strip('"') for key, value in re.findall(r"(\w+)=(\"[^\"]*\"|\S+)", words)}
    methods = asked.pop("methods", None)
    if methods is None:
        values = measured(name, asked)
        return [(one, values) for one in quoted(passage)]
    found = []
    for line in passage.splitlines()[2:]:
        first, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        for method, cell in zip(methods.split("; "), cells, strict=True):
            values = measured(name, asked | {"set": first, "method": method})
            if cell or values:  # what was not measured is left empty
                found.append((cell or "nothing", values))
    return found


def said(one, value):
    """Whether a number as written is this value, to the digits that it has."""
    if one == "nothing":
        return False
    plain = one.replace(",", "")
    if plain.endswith("%"):
        plain, value = plain[:-1], 100 * value
    mantissa, _, exponent = plain.partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return abs(float(plain) - value) <= 0.5000001 * unit


def unfounded(text):
    """Numbers of the measured passages of a page that are in no result."""
    found = [one for passage in PASSAGE.findall(text) for one in claims(*passage)]
    return [one for one, values in found if not any(said(one, value) for value in values)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_numbers_are_in_the_results(page):
    text = page.read_text(encoding="utf-8")
    assert text.count("<!-- measured:") == len(PASSAGE.findall(text)), "a passage has no end"
    assert unfounded(text) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_measure_only_what_they_mark(page):
    text = PASSAGE.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    found = CLAIM.findall(text) if page.name != "results.md" else []  # which is all measured
    if page.name != "README.md":  # elsewhere shares are also what is set or asked for
        found = [one for one in found if not one.endswith("%")]
    assert found == []


def test_something_is_marked():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert sum(len(claims(*passage)) for passage in PASSAGE.findall(text)) >= 20


def test_a_wrong_number_is_found():
    frame = pd.read_parquet(RESULTS / "evaluation" / "C.parquet").query("metric == 'test'")
    value = frame.set_index(["set", "method"])["value"]
    right = f"{value['nltcs', 'psdd']:.2f}"
    wrong = f"{value['nltcs', 'psdd'] - 0.01:.2f}"
    mark = "<!-- measured: evaluation/C.parquet metric=test {} -->\n{}\n<!-- end -->"
    page = mark.format("set=nltcs method=psdd", "| a 7 | {} |")
    assert unfounded(page.format(right)) == []
    assert unfounded(page.format(wrong)) == [wrong]
    two = f"{value['nltcs', 'chow-liu']:.2f}"
    page = mark.format(
        'methods="psdd; chow-liu"', "| set | a | b |\n|---|---|---|\n| nltcs | {} | {} |"
    )
    assert unfounded(page.format(right, two)) == []
    assert unfounded(page.format(two, right)) == [two, right]  # each in its place
    assert CLAIM.search("It is 30 times as fast.")
    assert CLAIM.search("in 12.5 s")
    assert not CLAIM.search("Python 3.11 to 3.13, 12 columns")


# -- the evaluation -------------------------------------------------------------------


@pytest.fixture
def evaluation(monkeypatch):
    """Import modules of the evaluation by name; they draw no windows."""
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: import_module(f"benchmarks.evaluation.{name}")


def filled(evaluation, folder):
    """A folder of made-up results of every part."""
    cells = evaluation("cells")
    for part, lines in {
        "A": [
            *(
                ("insurance", method, f"figure2/{whose}/{percent}", seed, {"RMSE": 1.0 + percent})
                for method in ("expected", "mean")
                for whose in ("authors", "learned")
                for percent in (0, 50)
                for seed in (0, 1)
            ),
            ("mnist", "taylor1", "figure3/learned/50", 0, {"accuracy": 0.75, "images": 10_000}),
            (
                "insurance",
                "data",
                "table1",
                0,
                {"train": 936, "valid": 187, "test": 215, "features": 36},
            ),
            ("insurance", "prediction", "table2/learned", 0, {"seconds": 0.125}),
            (
                "mnist",
                "learning",
                "table2/learned",
                0,
                {"seconds": 60.0, "recipe: copies": 1.0, "recipe: penalty": 3.0}
                | {"recipe: splits": 250.0, "recipe: loss": 0.25},
            ),
            ("insurance", "everyone", "section5.2/authors", 0, {"mean": 13_856.0}),
            (
                "insurance",
                "theirs",
                "refit",
                0,
                {"train": 4759.0, "valid": 4435.0, "test": 4749.9, "seconds": 0.0},
            ),
        ],
        "B": [
            *(
                (
                    name,
                    method,
                    setting,
                    10,
                    {key: loss, **more}
                    | (
                        {"Brier": 0.5, "AUC": 0.75, "calibration error": 0.05}
                        if name == "wine"
                        else {}
                    ),
                )
                for name, key in (("insurance", "RMSE"), ("wine", "log-loss"))
                for setting in ("i/MCAR 50%", "ii/MCAR 30%")
                for method, loss, more in (
                    ("circuit", 3.0 if name == "wine" else 1.0, {}),
                    ("boosting + expected", 2.5, {}),
                    ("boosting + mean", 2.0, {"more than expected": -0.25, "its error": 0.0625}),
                    ("boosting + native", 5.0, {"more than expected": 1.0, "its error": 0.125}),
                )
            ),
            *(
                (
                    "insurance",
                    source,
                    "groups",
                    10,
                    {"groups": 40, "median error": error, "beyond three": 0.05},
                )
                for source, error in zip(
                    ("both", "rows", "density", "averages"), (0.75, 1.0, 1.25, 0.875), strict=True
                )
            ),
            *(
                (
                    name,
                    "density",
                    "density",
                    10,
                    {"rows": 100, "pairs compared": 21, "pairs beyond chance": 3}
                    | {"groups compared": 50, "groups beyond chance": 0},
                )
                for name in ("insurance", "wine")
            ),
            *(
                (
                    "insurance",
                    method,
                    "uncertainty/none",
                    10,
                    {"CRPS": crps, "log score": 2.0, "coverage": 0.875, "below": 0.0625}
                    | {"above": 0.0625, "least coverage of a decile": 0.75},
                )
                for method, crps in (("circuit", 1.0), ("conformal", 1.25))
            ),
        ],
        "C": [("nltcs", "psdd", "bits", 0, {"test": -6.03, "seconds": 2.0})],
        "D": [
            ("abalone", f"{n} rows", "rows", 0, {"rows": n, "CPU seconds": 0.001 * n})
            for n in (1, 10, 100)
        ],
    }.items():
        store = cells.Cells(folder, part, build=folder / "build")
        store.runs.append(cells.stamp() | {"skipped": {"adult: not here": 3}})
        for name, method, setting, seed, values in lines:
            store.add(cells.Key(part, name, method, setting, seed), values, 0.5)
        store._keep({"adult: not here": 3})
        store.keep()


def test_the_page_is_made_of_results(evaluation, tmp_path):
    filled(evaluation, tmp_path / "cells")
    page = evaluation("page").write(tmp_path / "cells", tmp_path / "docs")
    text = page.read_text(encoding="utf-8")
    for picture in re.findall(r"\((results/\w+\.svg)\)", text):
        assert (page.parent / picture).read_text(encoding="utf-8").startswith("<?xml")
    assert len(re.findall(r"\(results/\w+\.svg\)", text)) == 3
    for words in (
        "| insurance, authors | 50 | 51 | 51 |",
        "| insurance | 936 / 187 / 215 / 36 | 936 / 187 / 215 / 36 | same |",
        "0.125 (13)",
        "-6.03 (2 s)",
        "adult: not here (3 cells)",
        "2 tables: the expectation has mean rank 2.00 of 3 ways; mean 1.00, with -20.0% loss.",
        "| insurance | theirs | 4759 | 4435 | 4749.9 | 0 |",
        "Of 1 comparisons with a baseline",
        "| insurance | 50 | mean | 0.00% |  | 2 |",
        "| set | copies | loss on validation images | penalty | splits |",
        "| mnist | yes | 0.25 | 3 | 250 |",
    ):
        assert words in text, words
    assert "Not run" not in text
    claims, lost = (
        (page.parent / f"{name}.md").read_text("utf-8") for name in ("claims", "losses")
    )
    for words in (
        "`expected` against `mean`, the best of the others: -1.00 ranks ahead",
        "| `native` | 3.00 | 3.00 to 3.00 | 100.0% | 100.0% to 100.0% | 2 / 0 / 0 |",
        "| under 1,000 training rows, the nine | 2 | 2.00 | `mean` 1.00 |",
        "| `ask`, the nine | 1 | 40 | 0.75 | 5.0% |  |",
        "| none, the nine | 1 | -20.0% | -20.0% to -20.0% | 1 | 87.5% / 87.5% |",
        "| i/MCAR 50%, boosting + expected | -30.7% (-60.0% to 20.0%), 2 tables |",
    ):
        assert words in claims, words
    for words in (
        "of 4 comparisons of a table, setting, model and other way, `expected` wins 2 beyond",
        "| insurance (the nine), i/MCAR 50%, boosting, `mean` | -25.0% | 6.2% "
        "| `the model: circuit has -50.0%` |",
        "| wine (the nine), ii/MCAR 30%, boosting, `mean` | -25.0% | 6.2% "
        "| `the density: 3 of 21 pairs, 0 of 50 groups are off` |",
    ):
        assert words in lost, words
    assert unfounded(claims.replace("evaluation/", f"{tmp_path}/cells/")) == []
    assert unfounded(lost.replace("evaluation/", f"{tmp_path}/cells/")) == []
    assert unfounded(claims.replace("evaluation/", f"{tmp_path}/cells/").replace("3.00", "3.01"))
    assert len((page.parent / "results" / "comparisons.csv").read_text().splitlines()) == 9


def test_the_page_in_the_docs_is_of_the_results(evaluation, tmp_path):
    if not evaluation("data").DATA.exists():
        pytest.skip("the published curves are not here; set EXPECTA_DATA")
    results = tmp_path / "results of today"
    shutil.copytree(RESULTS / "evaluation", results)
    evaluation("page").write(results, tmp_path)
    for page in ("results.md", "claims.md", "losses.md", "results/comparisons.csv"):
        assert (tmp_path / page).read_text("utf-8") == (ROOT / "docs" / page).read_text("utf-8")


def test_an_empty_folder_is_a_page_too(evaluation, tmp_path):
    page = evaluation("page").write(tmp_path / "none", tmp_path / "docs")
    assert page.read_text(encoding="utf-8").count("Not run.") == 4


def test_a_torn_cell_is_computed_again(evaluation, tmp_path):
    cells = evaluation("cells")
    store = cells.Cells(tmp_path, "A", build=tmp_path)
    store.runs.append(cells.stamp())
    one, two, three = (cells.Key("A", "s", "m", "t", seed) for seed in range(3))
    for key in (one, two):
        store.add(key, {"RMSE": 1.25, "other": 2.0}, 0.1)
    text = store.path.read_text(encoding="utf-8")
    for cut in range(1, 60):  # a stop may come anywhere in the last write
        store.path.write_text(text[:-cut], encoding="utf-8")
        again = cells.Cells(tmp_path, "A", build=tmp_path)
        assert again.done == {one}
        assert len(again.lines()) == 3
    asked = []

    def work():
        for key in (one, two, three):
            yield key, lambda key=key: asked.append(key) or {"RMSE": 2.5}

    again.run(work(), cells.Console(quiet=True))
    assert asked == [two, three]
    assert len(cells.read(again.path)) == 3 + 2 + 2
    again.path.unlink()  # what is kept is enough to go on
    last = cells.Cells(tmp_path, "A", build=tmp_path)
    assert last.done == {one, two, three}
    last.run(work(), cells.Console(quiet=True))
    assert asked == [two, three]
    values = pd.read_parquet(last.kept).query("metric == 'RMSE'")["value"].tolist()
    assert values == [1.25, 2.5, 2.5]


def test_several_processes_compute_the_same_cells(evaluation, tmp_path):
    cells = evaluation("cells")
    keys = [cells.Key("A", f"set {k % 2}", "m", "t", k) for k in range(4)]
    work = [(key, partial(dict, RMSE=float(key.seed))) for key in keys]
    work[3] = (keys[3], partial(int, "no number"))
    for jobs in (1, 2):
        store = cells.Cells(tmp_path / str(jobs), "A", build=tmp_path / str(jobs))
        store.run(work, cells.Console(quiet=True), jobs)
        assert store.done == set(keys[:3])
        values = pd.read_parquet(store.kept).query("metric == 'RMSE'")
        assert dict(zip(values["seed"], values["value"], strict=True)) == {0: 0.0, 1: 1.0, 2: 2.0}
        (why,) = store.runs[-1]["skipped"]
        assert "failed: ValueError" in why


def test_what_fails_or_is_absent_is_told_and_gone_by(evaluation, tmp_path):
    cells = evaluation("cells")
    absent = evaluation("data").AbsentError
    store = cells.Cells(tmp_path, "A", build=tmp_path)
    keys = [cells.Key("A", "s", "m", "t", seed) for seed in range(3)]

    def fail(error):
        raise error

    work = [
        (keys[0], lambda: fail(absent("no such table"))),
        (keys[1], lambda: fail(ZeroDivisionError("by zero"))),
        (keys[2], lambda: {"RMSE": 1.0}),
    ]
    store.run(work, cells.Console(quiet=True))
    assert store.done == {keys[2]}
    (run,) = json.loads((tmp_path / "A.json").read_text(encoding="utf-8"))["runs"]
    assert run["skipped"] == {
        "s: no such table": 1,
        "s, m: failed: ZeroDivisionError: by zero": 1,
    }


@pytest.mark.filterwarnings("ignore:.*Early stopping criterion")  # there is none
def test_rivals_have_all_rounds_and_scaled_columns(evaluation):
    imputer = evaluation("methods").imputer
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1))
    F = np.column_stack([x, 1e6 * x, 1e-6 * rng.normal(size=(60, 1))])
    G = F[:5].copy()
    G[:, 1] = np.nan
    for name in ("chained", "multiple", "forest"):
        fitted = imputer(name).fit(F)
        assert fitted.imputer.n_iter_ == (3 if name == "forest" else 10)
        steps = len(fitted.imputer.imputation_sequence_)
        assert steps == 3 * fitted.imputer.n_iter_
    for name in ("mean", "neighbours", "chained", "multiple", "forest"):
        filled = imputer(name).fit(F).transform(G)
        np.testing.assert_array_equal(filled[:, [0, 2]], G[:, [0, 2]])
    np.testing.assert_allclose(imputer("chained").fit(F).transform(G), F[:5], rtol=1e-3)


def test_rows_to_learn_from_and_to_test_on_share_patterns_of_holes(evaluation):
    pytest.importorskip("pyampute")
    masks = evaluation("holes").masks
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 8)))
    one, two, other = (
        {tuple(row) for row in masks(X.iloc[:n], "MNAR 50%", seed, patterns) if row.any()}
        for n, seed, patterns in ((300, 0, 0), (120, 1000, 0), (120, 1000, 1))
    )
    assert one == two
    assert len(one) == 4
    assert one != other


def test_ranks_and_scores(evaluation):
    metrics = evaluation("metrics")
    table = pd.DataFrame({"a": [1.0, 1.0, 3.0], "b": [2.0, 2.0, 2.0], "c": [3.0, 3.0, 3.5]})
    ranked = metrics.bootstrap(table.rank(axis=1))
    assert ranked["middle"].to_dict() == pytest.approx({"a": 4 / 3, "b": 5 / 3, "c": 3.0})
    assert ranked.loc["c", ["low", "high"]].tolist() == [3.0, 3.0]
    assert (ranked.loc["a", "low"], ranked.loc["a", "high"]) == (1.0, 2.0)
    p = np.array([[0.75, 0.25], [0.5, 0.5]])
    found = metrics.classification(p, np.array([0, 1]))
    assert found["log-loss"] == pytest.approx(-np.log([0.75, 0.5]).mean())
    assert found["Brier"] == pytest.approx((2 * 0.25**2 + 0.5) / 2)
    assert found["AUC"] == 1.0
    y = np.random.default_rng(0).normal(size=4000)
    true = np.tile(np.quantile(y, metrics.LEVELS), (len(y), 1))
    assert metrics.crps(true, y) < metrics.crps(true + 0.3, y)
    edges = np.quantile(y, np.arange(1, 10) / 10)
    assert metrics.log_score(true, y, edges) == pytest.approx(np.log(10), rel=0.01)
    assert metrics.log_score(true + 0.3, y, edges) > np.log(10) + 0.03
    p = np.column_stack([1 - np.arange(100) / 100, np.arange(100) / 100])
    assert metrics.calibration_error(p, (np.arange(100) >= 50).astype(int)) == pytest.approx(0.25)
    # the normal's CRPS of itself is 1 / sqrt(pi); nineteen levels lack the tails
    assert metrics.crps(true, y) == pytest.approx(np.pi**-0.5, rel=0.06)


def test_a_set_that_is_not_there_is_told(evaluation, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(evaluation("data"), "ROOT", tmp_path)
    monkeypatch.setattr(evaluation("data"), "DATA", tmp_path)
    monkeypatch.delenv("EXPECTA_DATA", raising=False)
    with pytest.raises(SystemExit):
        evaluation("__main__").main(["C", "--quick", "--sets", "nltcs", "insurence"])
    assert "no such set in the parts that are named: insurence" in capsys.readouterr().err
    assert "EXPECTA_DATA" not in os.environ  # a function leaves its caller's process as it was


@pytest.mark.slow
def test_quick_runs_end_to_end(evaluation, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation("data"), "ROOT", tmp_path)
    part_b = evaluation("part_b")
    chosen = {key: part_b.SETTINGS[key] for key in ("ii/MCAR 30%", "groups", "density")}
    evaluation("page")  # before, so that its modules keep all settings
    monkeypatch.setattr(part_b, "SETTINGS", chosen)
    main = evaluation("__main__").main
    main(["B", "D", "page", "--quick", "--sets", "wine", "random"])
    lines = evaluation("cells").read(tmp_path / "build" / "evaluation-quick" / "cells" / "B.csv")
    losses = {line["method"]: float(line["value"]) for line in lines if line["metric"] == "Brier"}
    assert len(losses) == 16
    assert all(0 < loss < 2 for loss in losses.values())
    page = (tmp_path / "build" / "evaluation-quick" / "results.md").read_text(encoding="utf-8")
    assert "[losses](losses.md)" in page
    assert "failed" not in page
    assert "cost against joins" in (
        tmp_path / "build" / "evaluation-quick" / "results" / "scaling.svg"
    ).read_text(encoding="utf-8")
    before = len(lines)
    main(["B", "--quick", "--sets", "wine"])  # nothing is left to do
    folder = tmp_path / "build" / "evaluation-quick" / "cells"
    assert len(evaluation("cells").read(folder / "B.csv")) == before
