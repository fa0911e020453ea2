"""Files from the command line: what is in them, pictures, formats, and what is wrong with them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import threading
from importlib.resources import files
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest

import expecta
from commands import bad, good, parsed, run
from expecta import Pair, Vtree, random_probabilistic, random_regression
from expecta.cli.app import INPUTS, OUTPUTS, PANELS
from expecta.files.container import VERSION, Container

ROOT = Path(__file__).parents[2]


@pytest.fixture
def circuits(tmp_path):
    """Two Boolean circuits over one vtree, in the text formats."""
    vtree = Vtree.balanced(4)
    p, g = random_probabilistic(vtree, seed=0), random_regression(vtree, seed=0)
    vtree.save(tmp_path / "a.vtree")
    p.save(tmp_path / "a.psdd")
    g.save(tmp_path / "a.glc")
    Pair(p, g).save(tmp_path / "a.pair")
    return tmp_path, p, g


def test_inspect(place, circuits):
    found = parsed("inspect", place / "cost.expecta")
    assert (found["kind"], found["model"]) == ("estimator", "CircuitRegressor")
    assert (found["target"], found["rows"], found["rows_in_file"]) == ("cost", 120, False)
    assert [one["name"] for one in found["columns"]] == ["age", "smoker", "region"]
    assert "target: cost" in good("inspect", place / "cost.expecta")
    assert parsed("inspect", place / "region.expecta")["classes"] == ["east", "north", "west"]
    folder, *_ = circuits
    for name, kind in [("a.vtree", "text vtree"), ("a.psdd", "text circuit"), ("a.pair", "pair")]:
        assert parsed("inspect", folder / name)["kind"] == kind


def test_inspect_a_density(place, tmp_path):
    model = expecta.CircuitRegressor.load(place / "cost.expecta")
    model.density_.save(tmp_path / "density")
    assert parsed("inspect", tmp_path / "density")["density"] == "ChowLiu"
    assert "density" in bad("ask", tmp_path / "density")


@pytest.mark.parametrize("options", [[], ["--vtree"], ["--part", "p"]])
def test_draw(place, tmp_path, options):
    path = tmp_path / "a.svg"
    assert parsed("draw", place / "cost.expecta", "-o", path, *options)["written"] == [str(path)]
    assert "smoker" in path.read_text(encoding="utf-8")
    assert "must end in .svg" in bad("draw", place / "cost.expecta", "-o", tmp_path / "a.bmp")


def test_convert_there_and_back(circuits):
    folder, p, g = circuits
    X = np.random.default_rng(0).integers(0, 2, (8, 4))
    good("convert", folder / "a.psdd", folder / "p.own")
    assert np.allclose(
        expecta.ProbabilisticCircuit.load(folder / "p.own").log_prob(X), p.log_prob(X)
    )
    written = parsed("convert", folder / "a.pair", folder / "b.glc")["written"]
    assert written == [str(folder / "b.glc"), str(folder / "b.vtree")]
    again = expecta.RegressionCircuit.load(folder / "b.glc", Vtree.load(folder / "b.vtree"))
    assert np.allclose(again(X), g(X))
    good("convert", folder / "a.glc", folder / "b.own", "--part", "vtree")
    assert Vtree.load(folder / "b.own") == p.vtree
    assert "has no distribution (p)" in bad("convert", folder / "a.glc", folder / "c.psdd")


def test_convert_keeps_the_vtree_of_others(circuits):
    folder, *_ = circuits
    Vtree.right_linear(4).save(folder / "b.vtree")
    assert "is not the vtree" in bad("convert", folder / "a.pair", folder / "b.glc")
    assert Vtree.load(folder / "b.vtree") == Vtree.right_linear(4)


def test_convert_a_model(place, tmp_path):
    good("convert", place / "cost.expecta", tmp_path / "pair")
    model = expecta.CircuitRegressor.load(place / "cost.expecta")
    unknown = np.full((1, 3), -1)
    found = Pair.load(tmp_path / "pair").expectation(unknown)
    assert found == pytest.approx(model.pair_.expectation(unknown))
    assert "only Boolean variables" in bad("convert", place / "cost.expecta", tmp_path / "a.psdd")


# -- what is wrong with files ---------------------------------------------------------------


@pytest.fixture
def wrong(place, tmp_path):
    """Files that something is wrong with."""
    data = (place / "cost.expecta").read_bytes()
    (tmp_path / "cut.expecta").write_bytes(data[: len(data) // 2])
    (tmp_path / "text.expecta").write_text("hello")
    found = Container.from_bytes("", data)
    newer = found.to_bytes().replace(b'"expecta":"%d"' % VERSION, b'"expecta":"9"', 1)
    assert newer != data
    (tmp_path / "newer.expecta").write_bytes(newer)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("age,cost\n")
    (tmp_path / "ragged.csv").write_text("age,cost\n1,2\n3\n")
    (tmp_path / "twice.csv").write_text("age,age\n1,2\n")
    (tmp_path / "one.csv").write_text("cost\n1\n2\n")
    (tmp_path / "holes.csv").write_text("age,cost\n1,\n2,\n")
    (tmp_path / "other.csv").write_text("height\n180\n")
    (tmp_path / "words.csv").write_text("age,smoker,region\nold,yes,east\n")
    (tmp_path / "latin.csv").write_bytes("age,cost\né,2\n".encode("latin-1"))
    (tmp_path / "fake.parquet").write_text("age,cost\n1,2\n")
    (tmp_path / "table.xyz").write_text("age,cost\n1,2\n")
    return tmp_path


WRONG = [
    (["ask", "cut.expecta"], "damaged"),
    (["ask", "text.expecta"], "not a file of Expecta's own format"),
    (["ask", "newer.expecta"], "upgrade expecta"),
    (["inspect", "newer.expecta"], "upgrade expecta"),
    (["ask", "none.expecta"], "there is no file"),
    (["ask", "."], "is a folder"),
    (["inspect", "text.expecta"], "make a model with: expecta fit"),
    (["fit", "none.csv", "-t", "cost"], "there is no file"),
    (["fit", ".", "-t", "cost"], "is a folder"),
    (["fit", "empty.csv", "-t", "cost"], "the table is empty"),
    (["fit", "header.csv", "-t", "cost"], "has no rows"),
    (["fit", "ragged.csv", "-t", "cost"], "Expected 2 columns, got 1"),
    (["fit", "latin.csv", "-t", "cost"], "iconv"),
    (["fit", "twice.csv", "-t", "age"], "several columns 'age'"),
    (["fit", "one.csv", "-t", "cost"], "no columns besides the target"),
    (["fit", "holes.csv", "-t", "cost", "--skip-unknown"], "missing in every row"),
    (["fit", "fake.parquet", "-t", "cost"], "cannot be read as parquet"),
    (["fit", "table.xyz", "-t", "cost"], "which may end in .csv"),
    (["fit", "people.csv", "-t", "costs"], "did you mean 'cost'"),
    (["fit", "people.csv", "-t", "cost", "--drop", "aeg"], "did you mean 'age'"),
    (["fit", "people.csv", "-t", "region", "--regress"], "leave --regress out"),
    (["fit", "people.csv", "-t", "cost", "--classify"], "leave --classify out"),
    (["fit", "people.csv", "-t", "cost", "-o", "no/where.expecta"], "mkdir -p"),
    (["predict", "cost.expecta", "other.csv"], "none of the model's columns"),
    (["predict", "cost.expecta", "words.csv"], "column 'age'"),
    (["predict", "cost.expecta", "rows.csv", "-o", "no/out.csv"], "mkdir -p"),
    (["predict", "cost.expecta", "rows.csv", "-o", "out.xyz"], "may end in .csv"),
    (["ask", "cost.expecta", "--plot", "no/a.png"], "mkdir -p"),
    (["report", "cost.expecta", "-o", "no/a.html"], "mkdir -p"),
    (["draw", "cost.expecta", "-o", "no/a.svg"], "mkdir -p"),
    (["convert", "cost.expecta", "no/a"], "mkdir -p"),
]


@pytest.mark.parametrize(("words", "remedy"), WRONG, ids=[" ".join(one) for one, _ in WRONG])
def test_wrong_files(words, remedy, place, wrong, monkeypatch):
    for name in ("people.csv", "rows.csv", "cost.expecta"):
        (wrong / name).write_bytes((place / name).read_bytes())
    monkeypatch.chdir(wrong)
    before = sorted(wrong.iterdir())
    assert remedy in bad(*words)
    assert sorted(wrong.iterdir()) == before  # nothing half-written


USAGE = [
    ["fit", "people.csv"],
    ["asks"],
    ["ask"],
    ["ask", "m", "--plot", "a.bmp"],
    ["fit", "a.csv", "-t", "y", "--density", "x"],
    ["split", "m"],
]


@pytest.mark.parametrize("words", USAGE, ids=[" ".join(one) for one in USAGE])
def test_wrong_usage(words):
    assert "Traceback" not in bad(*words, code=2)


def test_debug_shows_where(place):
    found = run("--debug", "ask", place / "none.expecta")
    assert isinstance(found.exception, FileNotFoundError)


def test_version():
    assert good("--version") == f"expecta {expecta.__version__}\n"


def test_report(place, tmp_path):
    path = tmp_path / "report.html"
    assert parsed("report", place / "cost.expecta", "-o", path)["written"] == [str(path)]
    assert "smoker" in path.read_text(encoding="utf-8")


def test_commands_all_speak_json():
    from expecta.cli.app import PANELS

    for commands in PANELS.values():
        for name in commands:
            if name != "serve":  # whose answers are those of its addresses
                assert "--json" in good(name, "--help"), name


def test_commands_are_documented():
    from expecta.cli.app import PANELS

    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `([\w-]+)[ `]", page, re.MULTILINE))
    assert named == {name for commands in PANELS.values() for name in commands}


def test_documented_commands_run(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    text = (files("expecta.datasets") / "insurance.csv").read_text().splitlines()
    (tmp_path / "people.csv").write_text("\n".join(text[:150]))
    (tmp_path / "new.csv").write_text("\n".join(text[:1] + text[200:210]))
    tried = set()
    for page in (ROOT / "README.md", ROOT / "docs" / "command-line.md"):
        for line in re.findall(r"^expecta (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE):
            words = shlex.split(line, comments=True)
            if words[0] == "serve":  # tests/serve runs it
                continue
            if words[0] == "fit":
                words += ["--density", "chow-liu", "--max-bins", "8", "--force"]
            good(*words)
            tried.add(words[0])
    assert {"fit", "predict", "ask", "compare", "split", "next", "explain", "report"} <= tried


def test_target_of_a_model(place, tmp_path):
    expecta.CircuitRegressor.load(place / "cost.expecta").save(tmp_path / "rowless")
    for path in (place / "cost.expecta", tmp_path / "rowless"):
        assert parsed("inspect", path)["target"] == "cost"
    found = Container.from_bytes("", (place / "cost.expecta").read_bytes())
    data = Container(found.kind, {**found.header, "target": 1}, found.arrays).to_bytes()
    (tmp_path / "nameless").write_bytes(data)
    assert "'target' is 1, not a text" in bad("inspect", tmp_path / "nameless")


# -- what is read is not written over ---------------------------------------------------


def test_every_path_of_a_command_is_read_or_written():
    """A new command whose paths have other names is not guarded until these are listed."""
    for commands in PANELS.values():
        for name, command in commands.items():
            paths = {
                key
                for key, hint in get_type_hints(command).items()
                if {Path, Path | None} & {hint} or key in ("table", "output")
            }
            assert paths <= {*INPUTS, *OUTPUTS, "folder"}, name


OVERWRITING = [
    ["report", "MODEL", "-o", "OUT"],
    ["draw", "MODEL", "-o", "OUT"],
    ["convert", "MODEL", "OUT"],
    ["predict", "MODEL", "rows.csv", "-o", "OUT"],
    ["ask", "MODEL", "--plot", "OUT"],
    ["split", "MODEL", "smoker", "--plot", "OUT"],
    ["outliers", "MODEL", "rows.csv", "--plot", "OUT"],
    ["check", "MODEL", "rows.csv", "--plot", "OUT"],
]


@pytest.mark.parametrize("how", ["itself", "link", "hard"])
@pytest.mark.parametrize("command", OVERWRITING, ids=lambda command: command[0])
def test_no_command_writes_over_its_input(place, tmp_path, monkeypatch, command, how):
    monkeypatch.chdir(tmp_path)
    ending = ".svg" if "--plot" in command or command[0] == "draw" else ".csv"
    data = (place / "cost.expecta").read_bytes()
    shutil.copy(place / "rows.csv", tmp_path)
    model = tmp_path / f"model{ending}"
    model.write_bytes(data)
    other = {"itself": f"./model{ending}", "link": f"link{ending}", "hard": f"hard{ending}"}[how]
    if how == "link":
        Path(other).symlink_to(model)
    elif how == "hard":
        os.link(model, other)
    words = [{"MODEL": model, "OUT": other}.get(word, word) for word in command]
    assert f"would overwrite {model}" in bad(*words)
    assert model.read_bytes() == data


def test_tables_and_vtrees_are_not_written_over(place, circuits, tmp_path):
    shutil.copy(place / "rows.csv", tmp_path)
    rows = (tmp_path / "rows.csv").read_bytes()
    os.link(tmp_path / "rows.csv", tmp_path / "hard.expecta")
    (tmp_path / "link.csv").symlink_to("rows.csv")
    model, table = place / "cost.expecta", tmp_path / "rows.csv"
    assert "overwrite" in bad("predict", model, table, "-o", tmp_path / "link.csv")
    assert "overwrite" in bad("fit", table, "-t", "age", "-o", tmp_path / "hard.expecta")
    assert table.read_bytes() == rows
    folder, *_ = circuits
    vtree = (folder / "a.vtree").read_bytes()
    (folder / "a.vtree").write_bytes(b"c mine\n" + vtree)
    assert "overwrite" in bad("convert", folder / "a.glc", folder / "a.vtree")
    good("convert", folder / "a.glc", folder / "a.circuit")
    other = ["--vtree-file", folder / "a.vtree"]
    assert "overwrite" in bad("draw", folder / "a.glc", "-o", folder / "a.vtree", *other)
    assert (folder / "a.vtree").read_bytes() == b"c mine\n" + vtree


def test_a_failed_conversion_writes_nothing(circuits):
    folder, *_ = circuits
    Vtree.balanced(3).save(folder / "b.vtree")
    assert "is not the vtree" in bad("convert", folder / "a.pair", folder / "b.psdd")
    assert not (folder / "b.psdd").exists()


def test_devices_stay(place, tmp_path):
    """As root ``-o /dev/null`` could replace the device."""
    os.mkfifo(tmp_path / "pipe.svg")
    received = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe.svg").read_text()))
    reader.start()
    good("ask", place / "cost.expecta", "--plot", tmp_path / "pipe.svg")
    reader.join(10)
    assert "</svg>" in received[0]
    assert (tmp_path / "pipe.svg").is_fifo()
    assert "is a folder" in bad("report", place / "cost.expecta", "-o", tmp_path)


def test_reports_look_into_sensitive_columns(place, tmp_path):
    path = tmp_path / "page.html"
    good("report", place / "cost.expecta", "-o", path, "--sensitive", "smoker")
    page = path.read_text(encoding="utf-8")
    assert '<a href="#sensitive-1">' in page
    assert '<h3 id="sensitive-1">' in page
    good("report", place / "cost.expecta", "-o", path)
    assert "sensitive-1" not in path.read_text(encoding="utf-8")
