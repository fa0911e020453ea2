"""No reading goes on without end: devices are refused, and pipes have a limit."""

from __future__ import annotations

import gzip
import json
import os
import threading
from contextlib import contextmanager

import pytest

from commands import bad, people
from expecta import Density, Encoder, FormatError, Pair, ProbabilisticCircuit, Vtree
from expecta.cli import table_files
from expecta.common import file_input
from expecta.estimators.expected_estimator import ExpectedEstimator

CLASSES = [Density, Encoder, ExpectedEstimator, Pair, ProbabilisticCircuit, Vtree]
pytestmark = pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device here")


@contextmanager
def pipe(path, data):
    """A named pipe that gives some data, once."""
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(data,), daemon=True)
    writer.start()
    yield path
    writer.join(30)
    assert not writer.is_alive()


@pytest.fixture
def vtree(tmp_path):
    Vtree.balanced(3).save(tmp_path / "a.vtree")
    return tmp_path / "a.vtree"


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero"])
@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_devices_are_refused(kind, device, monkeypatch):
    monkeypatch.setattr(file_input, "MAX_STREAM_BYTES", 1 << 20)
    with pytest.raises(FormatError, match=f"{device}: this is a device"):
        kind.load(device)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "arrow", "jsonl"])
def test_a_table_that_is_a_device_is_refused(ending, tmp_path):
    path = tmp_path / f"zeros.{ending}"
    path.symlink_to("/dev/null")
    assert "this is a device" in bad("fit", path, "-t", "y")


def test_commands_refuse_devices():
    assert "this is a device" in bad("inspect", "/dev/null")
    assert "this is a device" in bad("ask", "/dev/null", "a = 1")


def test_pipes_are_read(vtree, tmp_path):
    with pipe(tmp_path / "pipe", vtree.read_bytes()) as path:
        assert Vtree.load(path) == Vtree.load(vtree)
    with pipe(tmp_path / "model", vtree.read_bytes()) as path:
        assert "cannot be read from" in bad("inspect", path)  # by its name alone
        path.read_bytes()


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "arrow", "jsonl"])
def test_tables_from_pipes(tmp_path, ending):
    table = people(20)
    plain = tmp_path / f"plain.{ending}"
    if ending == "csv.gz":
        table_files.write(table, str(tmp_path / "plain.csv"))
        plain.write_bytes(gzip.compress((tmp_path / "plain.csv").read_bytes()))
    elif ending == "jsonl":
        plain.write_text("\n".join(map(json.dumps, table.to_pylist())))
    else:
        table_files.write(table, str(plain))
    with pipe(tmp_path / f"pipe.{ending}", plain.read_bytes()) as path:
        assert table_files.read(str(path)).equals(table_files.read(str(plain)))


def test_a_stream_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(file_input, "MAX_STREAM_BYTES", 1 << 22)
    with open("/dev/zero", "rb") as zeros, pytest.raises(FormatError, match="zeros: more than"):
        file_input.read_stream(zeros, "zeros")


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="there is no such folder")
def test_files_that_do_not_say_their_size_are_read():
    assert b"Name:" in file_input.read_bytes("/proc/self/status")
