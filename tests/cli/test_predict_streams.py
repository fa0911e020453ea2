"""Tables larger than memory: blocks, parts and folders give what one reading of all gives."""

from __future__ import annotations

import csv as plain_csv
import io
import json
import os
import shutil

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import csv, ipc, parquet

from commands import bad, good, parsed, people, run
from expecta.cli import kept_parts, prediction_job, table_files, table_streams
from expecta.cli.table_streams import TableStream, csv_blocks

CELLS = st.text(st.sampled_from('ab1" ,;\n\r'), max_size=5)


def small_blocks(patch, size=30, rows=3):
    patch.setattr(table_streams, "BLOCK_BYTES", size)
    patch.setattr(table_streams, "BATCH_ROWS", rows)


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(st.tuples(CELLS, CELLS), max_size=8), size=st.integers(1, 40))
@example(rows=[("a\nb", '"'), ('""', "\r\n")], size=3)
def test_blocks_are_whole_lines(rows, size):
    text = io.StringIO(newline="")
    writer = plain_csv.writer(text, lineterminator="\n")
    writer.writerows([("x", 'y "z"'), *rows])
    data = text.getvalue().encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_streams, "BLOCK_BYTES", size)
        blocks = list(csv_blocks(io.BytesIO(data)))
    head = data[: data.index(b"\n") + 1]
    assert all(block.startswith(head) for block in blocks)
    assert head + b"".join(block[len(head) :] for block in blocks) == data
    read = [row for block in blocks for row in list(_lines(block))[1:]]
    assert list(filter(None, read)) == list(filter(None, _lines(data)))[1:]


def _lines(data):
    return plain_csv.reader(io.StringIO(data.decode(), newline=""))


@pytest.mark.parametrize("text", ["age\n40\n\n", "age\n\n40\n", "age\n40\n\n\n30"])
def test_a_blank_line_of_one_column_is_a_row(place, monkeypatch, text):
    whole = parsed("predict", place / "cost.expecta", "-", stdin=text)
    for size in range(1, 12):
        small_blocks(monkeypatch, size=size)
        assert parsed("predict", place / "cost.expecta", "-", stdin=text) == whole


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_lines_may_end_in_any_way(place, tmp_path, ends, monkeypatch):
    text = (place / "rows.csv").read_text()
    whole = good("predict", place / "cost.expecta", place / "rows.csv")
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", ends).encode())
    small_blocks(monkeypatch)
    assert good("predict", place / "cost.expecta", tmp_path / "a.csv") == whole


def rows_of(n, seed):
    """Rows with gaps, and further columns whose types blocks disagree on."""
    table = people(n, seed).drop_columns("cost")
    more = {
        "whole": [str(i) for i in range(n - 1)] + ["0.5"],
        "late": [""] * (n - 1) + ["2024-01-05"],
        "code": ["7"] * (n - 1) + ["007"],
        "mixed": ["1"] * (n - 1) + ["x"],
    }
    for name, cells in more.items():
        table = table.append_column(name, pa.array(cells))
    return table


@pytest.mark.parametrize("to", ["csv", "tsv", "parquet", "arrow"])
@pytest.mark.parametrize("of", ["csv", "csv.gz", "parquet", "arrow", "jsonl"])
def test_batches_give_what_the_whole_table_gives(place, tmp_path, monkeypatch, of, to):
    table, path = rows_of(20, 3), tmp_path / f"rows.{of}"
    if of == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    elif of == "csv.gz":
        with pa.output_stream(path, compression="gzip") as sink:
            csv.write_csv(table, sink)
    else:
        table_files.write(table, str(path))
    words = ["predict", place / "cost.expecta", path, "--std", "-o"]
    good(*words, tmp_path / f"whole.{to}")
    small_blocks(monkeypatch, size=200)
    good(*words, tmp_path / f"batches.{to}")
    whole, batches = (table_files.read(str(tmp_path / f"{n}.{to}")) for n in ("whole", "batches"))
    assert batches.schema.equals(whole.schema)
    assert batches.equals(whole)
    assert batches.num_rows == 20


def test_typed_columns_from_a_pipe(place, tmp_path, monkeypatch):
    table_files.write(rows_of(20, 3), str(tmp_path / "a.csv"))
    good("predict", place / "cost.expecta", tmp_path / "a.csv", "-o", tmp_path / "a.parquet")
    small_blocks(monkeypatch, size=200)
    text = (tmp_path / "a.csv").read_text()
    good("predict", place / "cost.expecta", "-", "-o", tmp_path / "b.parquet", stdin=text)
    assert parquet.read_table(tmp_path / "b.parquet").equals(
        parquet.read_table(tmp_path / "a.parquet")
    )


def test_what_is_noted_is_of_all_batches(place, monkeypatch):
    text = "age,smoker\n" + "40,perhaps\n30,yes\n" * 10
    small_blocks(monkeypatch)
    found = run("predict", place / "cost.expecta", "-", stdin=text)
    assert found.exit_code == 0
    assert found.stderr.count("no column 'region'") == 1
    assert "not in the training data, in 10 rows" in found.stderr


def test_a_row_at_fault_is_named_and_nothing_written(place, tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("age,smoker,region\n" + "40,,\n" * 30 + "many,,\n,,\n")
    small_blocks(monkeypatch)
    out = tmp_path / "out.csv"
    out.write_text("before")
    line = bad("predict", place / "cost.expecta", tmp_path / "a.csv", "-o", out)
    assert "a.csv, row 30: column 'age'" in line
    assert out.read_text() == "before"


# -- parts and folders --------------------------------------------------------------------


class Stopped(BaseException):
    """Stands for a process that is no more."""


def stop_after(patch, steps):
    """Stop at the given step of writing, before or after it has taken effect."""
    left = [steps]
    for module, name in (
        (kept_parts, "replacing_file"),
        (table_files, "replacing_file"),
        (prediction_job, "replace_file"),
        (kept_parts, "replace_file"),
    ):
        write = getattr(module, name)

        def stopping(*words, write=write, **more):
            left[0] -= 1
            if left[0] < 0:
                raise Stopped
            return write(*words, **more)

        patch.setattr(module, name, stopping)


def stopped_run(steps, *words):
    """Run a command that is stopped after some steps of writing; None if it was."""
    with pytest.MonkeyPatch.context() as patch:
        stop_after(patch, steps)
        try:
            return run(*words)
        except Stopped:
            return None


def contents(path):
    if path.is_file():
        return {path.name: path.read_bytes()}
    return {
        str(one.relative_to(path)): one.read_bytes()
        for one in path.rglob("*")
        if one.is_file() and one.name != kept_parts.RECORD
    }


@pytest.fixture
def tables(tmp_path):
    folder = tmp_path / "tables"
    (folder / "region=east").mkdir(parents=True)
    (folder / "_log").mkdir()
    (folder / "_log" / "a.csv").write_text("not,a\ntable")
    table = rows_of(20, 4).drop_columns("region")
    parquet.write_table(table, folder / "a.parquet")
    parquet.write_table(table.slice(0, 0), folder / "empty.parquet")
    parquet.write_table(table.slice(5), folder / "region=east" / "b.parquet")
    table_files.write(table, str(folder / "c.csv"))
    return folder


@pytest.mark.parametrize("which", ["a.parquet", "."])
def test_a_run_that_was_stopped_goes_on(place, tables, tmp_path, which):
    """Whatever step it was stopped at, and again, the output is that of an undisturbed run."""
    source = tables / which
    out = tmp_path / ("out" + source.suffix)
    words = ["predict", place / "cost.expecta", source, "--part-rows", 8]
    with pytest.MonkeyPatch.context() as patch:
        small_blocks(patch, size=200)
        good(*words, "-o", tmp_path / ("whole" + source.suffix))
        want = list(contents(tmp_path / ("whole" + source.suffix)).values())
        for steps in (1, 2, 3, 5, 8, 13, 21, 34):
            stops = 0
            while True:
                found = stopped_run(
                    steps + 2 * stops, *words, "-o", out, *["--resume"] * (stops > 0)
                )
                if found is not None:
                    break
                stops += 1
                assert stops < 100
            assert found.exit_code == 0, found.output
            assert list(contents(out).values()) == want
            assert not list(tmp_path.rglob(".*.parts"))
            shutil.rmtree(out) if out.is_dir() else out.unlink()
            if not stops:
                break
        assert steps > 3


def test_parts_are_not_made_twice(place, tables, tmp_path, monkeypatch):
    small_blocks(monkeypatch)
    words = ["predict", place / "cost.expecta", tables / "a.parquet", "--part-rows", 5]
    words += ["-o", tmp_path / "out.parquet"]
    assert stopped_run(4, *words) is None
    (folder,) = tmp_path.glob(".out.parquet.parts")
    kept = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.arrow")}
    assert len(kept) == 2
    assert stopped_run(1, *words, "--resume") is None
    after = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.arrow")}
    assert len(after) == 2
    assert kept == after
    os.utime(tables / "a.parquet", ns=(1, 1))  # another table: they are of no use
    assert stopped_run(0, *words, "--resume") is None
    assert not folder.exists()


def test_a_folder(place, tables, tmp_path):
    out = tmp_path / "out"
    words = ["predict", place / "cost.expecta", tables, "-o", out]
    found = run(*words)
    assert found.exit_code == 0, found.output
    assert "55 rows of 4 tables with cost_predicted" in found.stderr
    assert sorted(contents(out)) == ["a.parquet", "c.csv", "empty.parquet", "region=east/b.parquet"]
    empty = parquet.read_table(out / "empty.parquet")
    assert (empty.num_rows, empty.column_names[-1]) == (0, "cost_predicted")
    # the name of a folder tells the region
    table = parquet.read_table(tables / "region=east" / "b.parquet", partitioning=None)
    east = table.append_column("region", pa.array(["east"] * 15))
    table_files.write(east, str(tmp_path / "east.parquet"))
    want = parsed("predict", place / "cost.expecta", tmp_path / "east.parquet")["rows"]
    one = parquet.read_table(out / "region=east" / "b.parquet", partitioning=None)
    assert one["cost_predicted"].to_pylist() == [row["cost_predicted"] for row in want]
    assert "region" not in one.column_names

    assert "--resume" in bad(*words)
    assert "has its predictions" in run(*words, "--resume").stderr
    assert "other options" in bad(*words, "--resume", "--std")
    (out / "c.csv").unlink()
    os.utime(tables / "a.parquet", ns=(1, 1))
    found = run(*words, "--resume")
    assert "40 rows of 2 tables" in found.stderr


def test_folders_that_are_refused(place, tables, tmp_path):
    model = place / "cost.expecta"
    assert "-o FOLDER" in bad("predict", model, tables)
    assert "-o FOLDER" in bad("predict", model, tables, "-o", place / "rows.csv")
    assert "contain each other" in bad("predict", model, tables, "-o", tables / "out")
    assert "contain each other" in bad("predict", model, tables, "-o", tmp_path)
    (tmp_path / "empty").mkdir()
    assert "contains no tables" in bad("predict", model, tmp_path / "empty", "-o", tmp_path / "out")
    assert "--resume needs" in bad("predict", model, tables / "c.csv", "--resume")


def test_arrow_streams_and_files(place, tmp_path):
    table = people(20).drop_columns("cost")
    for name, opened in (("a.arrow", ipc.new_file), ("b.arrow", ipc.new_stream)):
        with opened(tmp_path / name, table.schema) as writer:
            writer.write_table(table, max_chunksize=6)
    first, second = (
        parsed("predict", place / "cost.expecta", tmp_path / name)
        for name in ("a.arrow", "b.arrow")
    )
    assert first == second
    assert len(first["rows"]) == 20
    assert np.all(np.isfinite([row["cost_predicted"] for row in first["rows"]]))


def test_rows_are_counted_before_they_are_read(tmp_path):
    table = people(20)
    table_files.write(table, str(tmp_path / "a.parquet"))
    table_files.write(table, str(tmp_path / "a.csv"))
    assert TableStream(str(tmp_path / "a.parquet")).n_rows == 20
    assert 20 <= TableStream(str(tmp_path / "a.csv")).n_rows <= 21


def test_the_decimal_sign_is_that_of_all_blocks(place, tmp_path, monkeypatch):
    lines = [f"{20 + i},5;no;{'x' * (i % 3)}" for i in range(12)]
    text = "\n".join(["age;smoker;note", "30;no;first", *lines, "31;yes;last"]) + "\n"
    (tmp_path / "a.csv").write_text(text)
    words = ["predict", place / "cost.expecta", tmp_path / "a.csv"]
    whole = parsed(*words)
    small_blocks(monkeypatch, size=40)
    found = run(*words, "--json")
    assert json.loads(found.stdout) == whole
    assert found.stderr.count("decimal commas") == 1


def test_two_tables_that_would_have_one_output_are_refused(place, tables, tmp_path):
    shutil.copy(tables / "c.csv", tables / "c.tsv.csv")
    (tables / "a.jsonl").write_text('{"age": 40}\n')
    out = tmp_path / "out"
    words = ["predict", place / "cost.expecta", tables, "-o", out]
    assert "would both be written to a.parquet" in bad(*words)
    assert not out.exists() or not list(out.iterdir())
    (tables / "a.jsonl").unlink()
    assert run(*words).exit_code == 0
    (out / "_expecta.json").write_text("{bad")
    assert "_expecta.json is damaged" in bad(*words, "--resume")
