"""Learning and predicting from files, beside the same through the library."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

from commands import bad, good, parsed, people, run
from expecta import ChowLiu, CircuitClassifier, CircuitRegressor, Encoder
from expecta.cli import table_files
from expecta.cli.fitting import _example

ROWS = {
    "age": [40, None, 33, 50],
    "smoker": [None, None, "yes", "no"],
    "region": ["east", None, "west", None],
}


# -- tables -------------------------------------------------------------------------------


def as_bytes(table):
    sink = io.BytesIO()
    csv.write_csv(table, sink)
    return sink.getvalue()


def test_every_format_reads_the_same(tmp_path, monkeypatch):
    import gzip

    table = people(20)
    text = as_bytes(table)
    (tmp_path / "a.csv").write_bytes(text)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text))
    (tmp_path / "a.tsv").write_bytes(text.replace(b",", b"\t"))
    (tmp_path / "semi.csv").write_bytes(text.replace(b",", b";"))
    parquet.write_table(table, tmp_path / "a.parquet")
    feather.write_feather(table, tmp_path / "a.feather")
    with pa.ipc.new_stream(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    table.to_pandas().to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    for path in sorted(tmp_path.iterdir()):
        found = table_files.read(str(path))
        assert found.column_names == table.column_names, path
        assert found.cast(table.schema).equals(table), path
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert table_files.read("-").equals(table)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".arrow", ".feather"])
def test_what_is_written_is_read_again(tmp_path, ending):
    table = people(20)
    table_files.write(table, str(tmp_path / f"a{ending}"))
    assert table_files.read(str(tmp_path / f"a{ending}")).equals(table)


def test_categories_of_arrow_are_written_as_texts(tmp_path):
    table = pa.table({"a": pa.array(["x", "y", None]).dictionary_encode()})
    table_files.write(table, str(tmp_path / "a.csv"))
    assert table_files.read(str(tmp_path / "a.csv")).to_pydict() == {"a": ["x", "y", None]}


# -- fit ----------------------------------------------------------------------------------


def test_fit_is_the_library_s_fit(place):
    table = csv.read_csv(place / "people.csv")
    X = table.drop_columns(["cost"])
    want = CircuitRegressor(density=ChowLiu(), max_bins=8, random_state=0)
    want.fit(X, table["cost"].to_numpy())
    found = CircuitRegressor.load(place / "cost.expecta")
    assert found.target_name_ == "cost"
    assert found.target_name_ == "cost"
    assert np.array_equal(found.predict(ROWS), want.predict(ROWS))
    assert isinstance(CircuitClassifier.load(place / "region.expecta"), CircuitClassifier)


def test_fit_tells_what_it_learned(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (place / "people.csv").read_text()
    options = ["--density", "chow-liu", "--max-bins", 4]
    found = run("fit", "-", "--target", "cost", "--drop", "region", *options, stdin=text)
    assert found.exit_code == 0
    assert "cost: a regressor, because it has numbers" in found.stdout
    assert "120 rows and 2 columns: age, smoker" in found.stdout
    assert "expecta ask cost.expecta 'smoker == \"" in found.stdout
    assert (tmp_path / "cost.expecta").exists()


def test_fit_as_json_and_without_rows(place, tmp_path):
    path = tmp_path / "m.expecta"
    options = ["--density", "chow-liu", "--max-bins", 4, "-o", path]
    found = parsed("fit", place / "people.csv", "-t", "smoker", "--drop", "cost", *options)
    assert found["kind"] == "CircuitClassifier"
    assert found["columns"] == ["age", "region"]
    assert found["classes"] == ["no", "yes"]
    assert 0 < found["held_out_loss"] < 2
    model = CircuitClassifier.load(path)
    assert model.training_rows_ is None
    assert model.target_name_ == "smoker"  # though no row is in the file
    inspected = parsed("inspect", path)
    assert (inspected["rows_in_file"], inspected["rows"]) == (False, 120)
    assert parsed("ask", path, "region == 'east'")["rows"] > 0
    found = run("fit", place / "people.csv", "-t", "smoker", "--rows", "--force", *options)
    assert "with the training rows" in found.stdout
    assert CircuitClassifier.load(path).training_rows_ is not None


def test_fit_with_holes_in_the_target(tmp_path):
    table = people(40)
    cost = table["cost"].to_numpy().copy()
    cost[[3, 5]] = np.nan
    table = table.set_column(3, "cost", pa.array(cost, from_pandas=True))
    table_files.write(table, str(tmp_path / "a.csv"))
    words = ["fit", tmp_path / "a.csv", "-t", "cost", "-o", tmp_path / "m", "--density", "chow-liu"]
    line = bad(*words)
    assert "unknown in 2 rows, the first of them row 3" in line
    assert "--skip-unknown" in line
    assert parsed(*words, "--skip-unknown")["rows"] == 38


def test_kind_of_target(place, tmp_path):
    from expecta.cli.learning import Task

    def kind(values, asked=None):
        table = pa.table({"x": list(range(len(values))), "y": values})
        return Task.from_table(table, "y", (), asked, False)

    assert kind(["a", "b", "a"]).classify
    assert kind([True, False, True]).classify
    assert kind(pa.array(["a", "b", "a"]).dictionary_encode()).classify
    assert not kind([1.5, 2.5, 3.5]).classify
    two = kind([0, 1, 0])
    assert not two.classify
    assert "--classify" in two.notes[0]
    assert kind([0, 1, 0], True).classify
    with pytest.raises(ValueError, match="300 different values"):
        kind([f"n{i}" for i in range(300)])


# -- predict ------------------------------------------------------------------------------


def test_predictions_are_the_library_s(place):
    model = CircuitRegressor.load(place / "cost.expecta")
    words = ["predict", place / "cost.expecta", place / "rows.csv", "--std", "--interval", 0.8]
    found = csv.read_csv(pa.py_buffer(good(*words).encode())).to_pydict()
    assert found["id"] == [7, 8, 9, 10]  # columns that the model does not know stay
    mean, std = model.predict(ROWS, return_std=True)
    ends = model.predict_interval(ROWS, 0.8)
    assert np.allclose(found["cost_predicted"], mean, rtol=1e-12)
    assert np.allclose(found["cost_std"], std, rtol=1e-9, atol=1e-9)
    assert np.allclose(np.stack([found["cost_low"], found["cost_high"]], 1), ends, rtol=1e-9)


def test_probabilities_are_the_library_s(place):
    model = CircuitClassifier.load(place / "region.expecta")
    rows = {"age": [40, None], "smoker": [None, "yes"], "cost": [5000, None]}
    text = "age,smoker,cost\n40,,5000\n,yes,\n"
    found = parsed("predict", place / "region.expecta", "-", "--proba", stdin=text)
    want = model.predict_proba(rows)
    for row, shares, label in zip(found["rows"], want, model.predict(rows), strict=True):
        assert row["region_predicted"] == label
        for share, one in zip(shares, model.classes_, strict=True):
            assert row[f"region_probability_{one}"] == pytest.approx(share, abs=1e-12)


def test_a_table_without_a_column_of_times(tmp_path):
    days = [f"2024-01-{1 + i % 28:02d}" for i in range(60)]
    table = {"day": days, "age": list(range(60)), "cost": [2.0 * i for i in range(60)]}
    path = tmp_path / "model.expecta"
    CircuitRegressor(density=ChowLiu(), encoder=Encoder(dates=["day"]), max_splits=1).fit(
        {name: table[name] for name in ("day", "age")}, table["cost"]
    ).save(path)
    found = parsed("predict", path, "-", stdin="age\n40\n")
    want = CircuitRegressor.load(path).predict({"day": [None], "age": [40]})
    assert list(found["rows"][0].values()) == pytest.approx(want, rel=1e-12)


def test_no_column_is_overwritten(place, tmp_path):
    out = tmp_path / "out.parquet"
    text = "age,cost_predicted,cost_predicted_2\n40,1,2\n"
    found = parsed("predict", place / "cost.expecta", "-", "-o", out, stdin=text)
    assert found["columns"] == ["cost_predicted_3"]
    table = parquet.read_table(out).to_pydict()
    assert (table["cost_predicted"], table["cost_predicted_2"]) == ([1], [2])


def test_what_the_model_does_not_know_is_noted(place):
    text = "age,smoker\n40,perhaps\n30,yes\n"
    found = run("predict", place / "cost.expecta", "-", stdin=text)
    assert "no column 'region'" in found.stderr
    assert "'smoker' has values that are not in the training data, in 1 row" in found.stderr
    first = csv.read_csv(pa.py_buffer(found.stdout.encode())).to_pydict()["cost_predicted"][0]
    model = CircuitRegressor.load(place / "cost.expecta")
    unknown = {"age": [40], "smoker": [None], "region": [None]}
    assert first == pytest.approx(model.predict(unknown)[0], rel=1e-12)


def test_texts_that_look_like_numbers_stay_texts(tmp_path):
    rows = "".join(f"{'A1' if i % 2 else '7'},{i % 2}\n" for i in range(40))
    (tmp_path / "a.csv").write_text("code,y\n" + rows)
    words = ["--density", "chow-liu", "-o", tmp_path / "m", "-t", "y", "--quiet"]
    good("fit", tmp_path / "a.csv", *words)
    found = parsed("predict", tmp_path / "m", "-", stdin="code\n7\n")
    assert found["rows"][0]["y_predicted"] == pytest.approx(0.0, abs=0.2)


def python(*words, stdin=b""):
    import expecta

    source = str(Path(expecta.__file__).parents[1])
    return subprocess.run(
        [sys.executable, *map(str, words)],
        input=stdin,
        env=os.environ | {"PYTHONPATH": source},
        capture_output=True,
        check=False,
    )


def test_pipes_carry_nothing_but_the_table(place):
    rows = (place / "rows.csv").read_bytes()
    done = python("-m", "expecta.cli", "predict", place / "cost.expecta", "-", stdin=rows)
    assert (done.returncode, done.stderr) == (0, b"")
    assert csv.read_csv(pa.py_buffer(done.stdout)).num_rows == 4
    assert b"\x1b" not in done.stdout


@pytest.mark.parametrize("library", ["typer", "pyarrow"])
def test_what_is_not_installed_is_named(library, place):
    code = (
        f"import sys; sys.modules[{library!r}] = None; from expecta.cli import main; "
        f"sys.argv[1:] = ['fit', {str(place / 'people.csv')!r}, '-t', 'cost', '-o', 'm']; main()"
    )
    done = python("-c", code)
    assert done.returncode == 1
    (line,) = done.stderr.decode().splitlines()
    assert "pip install 'expecta[cli" in line


def test_a_model_that_is_there_is_kept_unless_forced(tmp_path):
    (tmp_path / "a.csv").write_text("x,cost\n" + "1,2\n3,4\n" * 20)
    words = ["fit", tmp_path / "a.csv", "-t", "cost", "-o", tmp_path / "m.expecta"]
    words += ["--density", "chow-liu", "-q"]
    good(*words)
    first = (tmp_path / "m.expecta").read_bytes()
    assert "--force" in bad(*words)
    assert (tmp_path / "m.expecta").read_bytes() == first
    good(*words, "--force")


def test_one_loss_by_one_name(tmp_path):
    text = "a,b,y\n" + "".join(f"{i % 7},{i % 3},{'pq'[i * i % 5 < 2]}\n" for i in range(80))
    (tmp_path / "t.csv").write_text(text)
    file = tmp_path / "y.expecta"
    learned = parsed("fit", tmp_path / "t.csv", "-t", "y", "-o", file, "--density", "chow-liu")
    said = f"{learned['held_out_loss']:.3f} nats a row"
    assert f"held-out loss {said}" in learned["summary"]
    good("report", file, "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"Held-out loss: {said}" in page


def test_missing_cells_that_carry_information_can_be_asked_about(tmp_path):
    rows = "".join(f"{i % 9},{['low', '', 'high'][i % 3]},{i % 3}\n" for i in range(60))
    (tmp_path / "t.csv").write_text(f"a,dose,y\n{rows}")
    words = "fit", tmp_path / "t.csv", "-t", "y", "--regress", "--density", "chow-liu"
    good(*words, "-o", tmp_path / "plain.expecta")
    line = bad("ask", tmp_path / "plain.expecta", "dose is missing")
    assert "--missing-is-value dose" in line
    good(*words, "--missing-is-value", "dose", "-o", tmp_path / "m.expecta")
    answer = parsed("ask", tmp_path / "m.expecta", "dose is missing")
    assert answer["rows"] == 20
    assert abs(answer["mean"] - 1.0) < 0.1
    assert "no column 'dos'" in bad(*words, "--missing-is-value", "dos", "--force")


def test_the_condition_to_try_divides_the_rows():
    """Of numbers it is a median, below the largest: a condition that all rows meet says nothing."""
    rng = np.random.default_rng(0)
    for values in (np.array([1.0, 5.0, 5.0, 5.0]), np.array([1.0, 2.0, 3.0, 5.0])):
        x = rng.permutation(np.repeat(values, 20))
        table = pa.table({"x": np.append(x[:-1], 5.0)})
        y = rng.normal(size=80)
        model = CircuitRegressor(density=ChowLiu(), max_splits=0, calibration_rows=0)
        column, condition = _example(model.fit(table, y), table)
        assert column == "x"
        assert 0.2 < model.ask(condition).share < 0.8
