"""What goes wrong at a shell: nothing is harmed, and one line says what to do."""

from __future__ import annotations

import csv as reader
import io
import re
import shlex
import subprocess

import pytest
from pyarrow import parquet

from commands import bad, good, parsed, run

QUICK = ["--density", "chow-liu", "--max-bins", 4]


def lines(header, n, row):
    return "\n".join([header, *(row(i) for i in range(n))]) + "\n"


def fitted(folder, text, *words, target="y"):
    (folder / "a.csv").write_text(text)
    words = (*QUICK, "--force", *words)
    return run("fit", folder / "a.csv", "-t", target, "-o", folder / "m.expecta", *words)


def hints(said):
    return [shlex.split(line) for line in said.split("Next:\n")[1].splitlines()]


# -- what to try next -----------------------------------------------------------------------

NAMES = ["$(touch x)", "`touch x`", "it's", 'a "q"', "body mass", "a;touch x"]


@pytest.mark.parametrize("name", NAMES)
def test_hints_run_nothing_else(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cell = name.replace('"', '""')
    found = fitted(tmp_path, lines(f'"{cell}",y', 20, lambda i: f"{i % 4},{i}"))
    assert found.exit_code == 0
    script = "expecta() { :; }\n" + found.stdout.split("Next:\n")[1]
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert not (tmp_path / "x").exists()
    for words in hints(found.stdout)[:-1]:
        good(*words[1:])


TABLES = {
    "empty first column": lines("a,b,y", 20, lambda i: f",{i % 3},{i}"),
    "dates": lines("a,y", 20, lambda i: f"2024-01-{1 + i % 9:02},{i}"),
    "Booleans": lines("a,y", 20, lambda i: f"{'true' if i % 3 else 'false'},{i}"),
    "single class": lines("a,y", 20, lambda i: f"{i},yes"),
    "many classes": lines("a,y", 21, lambda i: f"{i},{'uvw'[i % 3]}"),
    "texts with quotes": lines("a,y", 20, lambda i: f"{'it is' if i % 2 else chr(39)},{i}"),
}


@pytest.mark.parametrize("name", TABLES)
def test_hints_work(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = fitted(tmp_path, TABLES[name])
    assert found.exit_code == 0, found.stderr
    assert "None" not in found.stdout
    commands = hints(found.stdout)
    assert ("ask" in [words[1] for words in commands]) == (name != "single class")
    for words in commands[:-1]:
        good(*words[1:])


# -- nothing is overwritten, nothing is changed ---------------------------------------------

OUTPUTS = ["p.csv", "./p.csv", "q.csv", "q.tsv", "q.csv.gz", "q.parquet", "q.arrow", "q.jsonl"]


@pytest.mark.parametrize("output", OUTPUTS)
def test_no_table_becomes_a_model(output, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (place / "people.csv").read_bytes()
    (tmp_path / "p.csv").write_bytes(text)
    refused = bad("fit", "p.csv", "-t", "cost", "-o", output, *QUICK)
    assert "-o cost.expecta" in refused or "would overwrite p.csv" in refused
    assert [one.name for one in tmp_path.iterdir()] == ["p.csv"]
    assert (tmp_path / "p.csv").read_bytes() == text


def test_models_are_files(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (place / "people.csv").read_text()
    line = bad("fit", "-", "-t", "cost", "-o", "-", *QUICK, stdin=text)
    assert "a model needs a file: -o model.expecta" in line
    for words in (["ask", "-"], ["inspect", "-"], ["predict", "-", "-"], ["draw", "-", "-o", "a"]):
        assert "standard input" in bad(*words)
    for words in (["report", "-o"], ["draw", "-o"], ["convert"]):
        line = bad(words[0], place / "cost.expecta", *words[1:], "-")
        assert "name of a file" in line
    assert not list(tmp_path.iterdir())


WRITTEN = [
    ["id", "zip", "when", "age", "smoker", "flag", "note", "amount"],
    ["1", "00501", "2024-1-5", "40", "yes", "False", "a, b", "1.50"],
    ["2", "94110", "", "", "NA", "True", 'say "hi"', "1e3"],
    ["3", "01234", "2024-02-01", "33.0", "no", "", "two\nlines", "12345678901234567890"],
]


def test_what_was_written_comes_back(place, tmp_path):
    sink = io.StringIO()
    reader.writer(sink, lineterminator="\n").writerows(WRITTEN)
    found = good("predict", place / "cost.expecta", "-", stdin=sink.getvalue())
    rows = list(reader.reader(io.StringIO(found)))
    assert [row[:-1] for row in rows] == WRITTEN
    assert found.startswith("id,zip,when")  # no quotes that were not there
    (tmp_path / "a.csv").write_text(sink.getvalue())
    good("predict", place / "cost.expecta", tmp_path / "a.csv", "-o", tmp_path / "b.parquet")
    table = parquet.read_table(tmp_path / "b.parquet")
    assert table["zip"].to_pylist() == ["00501", "94110", "01234"]
    typed = [float(row[-1]) for row in rows[1:]]
    assert table["cost_predicted"].to_pylist() == typed  # types do not matter to the model


def test_codes_with_zeros_are_texts(tmp_path):
    found = fitted(tmp_path, lines("zip,y", 30, lambda i: f"{['00501', '94110'][i % 2]},{i % 2}"))
    assert "'zip' has leading zeros" in found.stderr
    model = tmp_path / "m.expecta"
    assert parsed("inspect", model)["columns"][0]["kind"] == "category"
    first, second = parsed("predict", model, "-", stdin="zip\n00501\n94110\n")["rows"]
    assert first["y_predicted"] < 0.5 < second["y_predicted"]


def test_numbers_stay_numbers_of_the_model(place):
    text = "age\n040\n033\n"
    found = parsed("predict", place / "cost.expecta", "-", stdin=text)
    want = parsed("predict", place / "cost.expecta", "-", stdin=text.replace("0", "", 1))
    assert found["rows"][1] == want["rows"][1]


def test_index_of_pandas(tmp_path):
    found = fitted(tmp_path, lines(",b,y", 20, lambda i: f"{i},{i % 3},{i}"))
    assert "only numbers the rows, so it is ignored" in found.stderr
    model = tmp_path / "m.expecta"
    assert [one["name"] for one in parsed("inspect", model)["columns"]] == ["b"]
    assert good("predict", model, tmp_path / "a.csv").startswith(",b,y,y_predicted\n")
    found = fitted(tmp_path, lines("b,,y", 20, lambda i: f"{i},{i % 3},{i}"))
    assert "column 2 of the table has no name; it is called column_2" in found.stderr
    assert parsed("ask", model, "column_2 == 1")["mean"] > 0


# -- one line each --------------------------------------------------------------------------

USAGE = [
    (["asks"], "did you mean 'ask'", "expecta --help"),
    (["--nothing"], "no such option", "expecta --help"),
    (["fit", "a.csv"], "--target", "expecta fit --help"),
    (["fit", "a.csv", "-t", "y", "--nothing"], "no such option", "expecta fit --help"),
    (["ask"], "model", "expecta ask --help"),
    (["ask", "m", "--plot", "x.foo"], ".png, .svg, .pdf, not x.foo", "expecta ask --help"),
    (["stability", "m", "t", "--threshold", "x"], "'--threshold'", "expecta stability --help"),
    (
        ["stability", "m", "t", "--threshold", "nan"],
        "nan is not a finite number",
        "stability --help",
    ),
    (
        ["stability", "m", "t", "--threshold=-inf"],
        "-inf is not a finite number",
        "stability --help",
    ),
]


@pytest.mark.parametrize(("words", "said", "remedy"), USAGE, ids=[" ".join(u[0]) for u in USAGE])
def test_wrong_usage_is_one_line(words, said, remedy):
    (line,) = bad(*words, code=2).splitlines()
    assert line.startswith("error: ")
    assert said in line.lower()
    assert line.endswith(f"{remedy}")


def test_no_command_is_help():
    found = run()
    assert "Usage" in found.output
    assert "error:" not in found.output


WRONG = [
    (["predict", "people.csv", "cost.expecta"], "give the model first"),
    (["ask", "people.csv"], "give the model first"),
    (["sufficient", "cost.expecta", "rows.csv", "--threshold", "1"], "the table has 4 rows"),
    (["explain", "cost.expecta", "rows.csv", "--row", "-1"], "rows have the indices 0 to 3"),
    (["predict", "cost.expecta", "rows.csv", "--interval", "90"], "as a share: 0.9"),
    (["predict", "cost.expecta", "rows.csv", "--interval", "nan"], "between 0 and 1"),
    (["predict", "cost.expecta", "rows.csv", "-o", "out.xlsx"], "may end in .csv"),
    (["predict", "cost.expecta", "rows.csv", "-o", "out.jsonl"], "may end in .csv"),
    (["ask", "region.expecta", "age < 40"], "name one: --of east"),
    (["ask", "region.expecta", "age < 40", "--of", "EAST"], "did you mean 'east'"),
    (["ask", "cost.expecta", "--of", "x"], "leave --of x out"),
    (["fit", "people.csv", "-t", "cost", "-t", "age"], "fit one model for each"),
    (["fit", "people.csv", "-t", "cost", "--drop", "cost"], "cannot be dropped"),
    (["fit", "unknown.csv", "-t", "y"], "choose another column"),
    (["fit", "commas.csv", "-t", "y"], "decimal commas?"),
    (["fit", "commas.csv", "-t", "y", "--regress"], "decimal commas?"),
    (["fit", "names.csv", "-t", "y"], "--classify"),
    (["fit", "sixty.csv", "-t", "y"], "--classify"),
    (["fit", "plain.csv.gz", "-t", "y"], "plain.csv.gz cannot be read as csv"),
    (["fit", "wide.csv", "-t", "y"], "iconv -f utf-16"),
    (["fit", "ragged.csv", "-t", "y"], "as many cells as the header"),
    (["fit", "fake.parquet", "-t", "y"], "fake.parquet cannot be read as parquet"),
    (["fit", "fake.arrow", "-t", "y"], "fake.arrow cannot be read as arrow"),
    (["fit", "fake.jsonl", "-t", "y"], "fake.jsonl cannot be read as json"),
]


@pytest.fixture(scope="module")
def wrong(place, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wrong")
    for one in place.iterdir():
        (folder / one.name).write_bytes(one.read_bytes())
    text = "a,y\n1,2\n3,4\n"
    for name in ("plain.csv.gz", "fake.parquet", "fake.arrow", "fake.jsonl"):
        (folder / name).write_text(text)
    (folder / "ragged.csv").write_text("a,y\n1,2\n3\n")
    (folder / "wide.csv").write_text(text, encoding="utf-16")
    (folder / "unknown.csv").write_text("a,y\n1,\n2,\n")
    (folder / "commas.csv").write_text(lines("a,y", 20, lambda i: f'{i},"{i},5"'))
    (folder / "names.csv").write_text(lines("a,y", 20, lambda i: f"{i},n{i}"))
    (folder / "sixty.csv").write_text(lines("a,y", 180, lambda i: f"{i},n{i % 60}"))
    return folder


@pytest.mark.parametrize(("words", "remedy"), WRONG, ids=[" ".join(one) for one, _ in WRONG])
def test_wrong_words(words, remedy, wrong, monkeypatch):
    monkeypatch.chdir(wrong)
    before = sorted(wrong.iterdir())
    line = bad(*words)
    assert remedy in line
    assert sorted(wrong.iterdir()) == before


def test_only_what_can_be_written_is_named(place):
    line = bad("predict", place / "cost.expecta", place / "rows.csv", "-o", "out.xlsx")
    assert ".parquet" in line
    assert "json" not in line


def test_decimal_commas_are_noted_or_read(tmp_path):
    quoted = lines("a,y", 20, lambda i: f'"{i % 4},5",{i}')
    found = fitted(tmp_path, quoted)
    assert "decimal=',', or --decimal ," in found.stderr
    model = tmp_path / "m.expecta"
    assert parsed("inspect", model)["columns"][0]["kind"] == "category"
    read = fitted(tmp_path, quoted, "--decimal", ",")
    assert "--decimal" not in read.stderr
    assert parsed("inspect", model)["columns"][0]["kind"] == "number"
    first = parsed("predict", model, "-", stdin='a\n"0,5"\n')["rows"]
    assert (
        first
        == parsed(
            "predict",
            model,
            "-",
            stdin="a\n0.5\n",
        )["rows"]
    )
    found = fitted(tmp_path, lines("a;y", 20, lambda i: f"{i % 4},5;{i}"))
    assert "numbers are read with decimal commas" in found.stderr
    assert parsed("inspect", model)["columns"][0]["kind"] == "number"
    assert parsed("predict", model, "-", stdin="a;b\n0,5;\n")["rows"] == first


def test_options_on_columns_settle_what_notes_tell(tmp_path):
    def row(i):
        hours = "?" if i % 9 == 0 else 20 + i % 7
        return f"{98001 + 3 * (i % 5)}|{hours}|{1 + i % 28:02d}/{1 + i % 12:02d}/2014|{i}"

    text, model = lines("zipcode|hours|sold|y", 60, row), tmp_path / "m.expecta"
    found = fitted(tmp_path, text)
    options = re.findall(r"(--(?:na|categorical|date)) (\S+)", found.stderr)
    assert {name for name, _ in options} == {"--na", "--categorical", "--date"}
    words = [word.strip("'") for option in options for word in option]
    assert "--" not in fitted(tmp_path, text, *words).stderr
    kinds = [column["kind"] for column in parsed("inspect", model)["columns"]]
    assert kinds == ["category", "integer", "date"]
    # what was said of the training rows holds for those to come
    new = "zipcode|hours|sold\n98001|?|31/01/2014\n98001||2014-01-31\n"
    rows = parsed("predict", model, "-", stdin=new.replace("2014-01-31", "31/01/2014"))["rows"]
    assert rows[0] == rows[1]
    assert "date of the format" in bad("predict", model, "-", stdin=new)
    assert "the target" in run("fit", tmp_path / "a.csv", "-t", "y", "--numeric", "y").stderr
    assert (
        "did you mean 'sold'" in run("fit", tmp_path / "a.csv", "-t", "y", "--date", "solt").stderr
    )


def test_times_without_dashes_are_times(tmp_path):
    text = lines("sold,y", 40, lambda i: f"2014{1 + i % 12:02d}{1 + i % 28:02d}T000000,{i}")
    assert "sold" not in fitted(tmp_path, text).stderr
    model = tmp_path / "m.expecta"
    assert parsed("inspect", model)["columns"][0]["kind"] == "datetime"
    both = "sold\n20140203T000000\n", "sold\n2014-02-03\n"
    first, second = (parsed("predict", model, "-", stdin=text)["rows"] for text in both)
    assert first == second


def test_separators_and_what_they_may_be(tmp_path):
    plain = lines("a,b,y", 20, lambda i: f"{i},{i % 3},{i}")
    for sign, words in (
        ("\t", ()),
        ("|", ()),
        ("\t", ("--separator", "tab")),
        (":", ("--separator", ":")),
    ):
        fitted(tmp_path, plain.replace(",", sign), *words)
        assert len(parsed("inspect", tmp_path / "m.expecta")["columns"]) == 2
    assert "one character" in bad("fit", tmp_path / "a.csv", "-t", "y", "--separator", "ab")
    assert ". or ," in bad("fit", tmp_path / "a.csv", "-t", "y", "--decimal", ";")


# -- what is true of few rows ---------------------------------------------------------------


def test_constant_targets_and_single_rows(tmp_path):
    found = fitted(tmp_path, lines("a,y", 12, lambda i: f"{i % 3},5"))
    assert "the target is the same in all rows" in found.stdout
    assert "nan" not in found.stdout
    found = fitted(tmp_path, "a,y\n1,5\n")
    assert "there is one row" in found.stdout
    assert "held-out" not in found.stdout
    assert "nan" not in found.stdout
    model = tmp_path / "m.expecta"
    found = run("predict", model, "-", "--interval", 0.9, stdin="a\n1\n")
    assert "too few training rows for 90% intervals" in found.stderr
    found = fitted(tmp_path, lines("a,y", 12, lambda i: f"{i % 3},yes"))
    assert "all rows have the same class" in found.stdout
