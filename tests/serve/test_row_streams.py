"""Streams of rows: the library's answers, in constant memory; hostile messages are refused."""

from __future__ import annotations

import asyncio
import io
import json
import struct
import threading
import time
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expecta.estimators.expected_estimator import ExpectedEstimator
from expecta.serve import row_streams
from expecta.serve.row_streams import ARROW, NDJSON
from served import people

PREDICT = "/models/cost/predict"


@pytest.fixture(scope="module")
def cost(model_files):
    return ExpectedEstimator.load(model_files["cost"])


def incomplete(n, seed=1):
    table = people(n, seed)[0]
    hidden = np.random.default_rng(seed).random(table.shape) < 0.5
    return pa.Table.from_pandas(table.mask(hidden), preserve_index=False)


def arrow_bytes(table, rows=37, **more):
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema, **more) as writer:
        writer.write_table(table, max_chunksize=rows)
    return out.getvalue()


def post(client, kind, content, query=""):
    return client.post(PREDICT + query, content=content, headers={"Content-Type": kind})


def pieces(content, size):
    async def parts():
        for first in range(0, len(content), size):
            yield content[first : first + size]

    return parts()


def test_values_unlike_the_training_data_are_told_in_a_header(client):
    rows = [{"age": 40, "smoker": "yes"}, {"age": 4000, "smoker": "yess"}]
    text = "".join(json.dumps(row) + "\n" for row in rows * 3).encode()
    told = post(client, NDJSON, text).headers["expecta-remarks"]
    assert told.startswith("row 1: 'yess' is not a value of column 'smoker'")
    assert "4000.0 is far from" in told
    assert told.endswith("... and 3 more values like these")
    told = post(client, ARROW, arrow_bytes(pa.Table.from_pylist(rows))).headers["expecta-remarks"]
    assert "'smoker' has values that are not in the training data, in 1 row" in told
    assert "'age' has values far from the training data" in told
    assert "expecta-remarks" not in post(client, NDJSON, b'{"age": 40}').headers


@pytest.mark.parametrize("size", [7, 1000, 10**9])
def test_arrow(client, cost, size):
    table = incomplete(100)
    answer = post(client, ARROW, pieces(arrow_bytes(table), size), "?std=true&interval=0.8")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == ARROW
    assert "Exact" in answer.headers["expecta-exactness"]
    out = pa.ipc.open_stream(answer.content).read_all()
    assert len(out.column(0).chunks) == 3  # one batch for each
    mean, std = cost.predict(table, return_std=True)
    assert out.column("cost_predicted").to_pylist() == mean.tolist()
    assert out.column("cost_std").to_pylist() == std.tolist()
    ends = cost.predict_interval(table, 0.8)
    assert out.column("cost_low").to_pylist() == ends[:, 0].tolist()
    assert out.column("cost_error").to_pylist() == [0.0] * 100


def test_arrow_with_dictionaries_absent_columns_and_classes(client, model_files):
    table = incomplete(20).select(["region", "age"])
    table = table.set_column(0, "region", table.column("region").dictionary_encode())
    answer = client.post(
        "/models/smoker/predict?proba=true",
        content=arrow_bytes(table, 6),
        headers={"Content-Type": ARROW},
    )
    assert answer.status_code == 200, answer.text
    out = pa.ipc.open_stream(answer.content).read_all()
    model = ExpectedEstimator.load(model_files["smoker"])
    cells = {"age": table.column("age"), "region": table.column("region").to_pylist()}
    cells |= {name: [None] * 20 for name in ("since", "vip")}
    shares = model.predict_proba(cells)
    assert out.column("smoker_probability_yes").to_pylist() == shares[:, 1].tolist()
    assert out.column("smoker_predicted").to_pylist() == model.predict(cells).tolist()


def test_arrow_without_rows(client):
    table = incomplete(5).slice(0, 0)
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema):
        pass
    answer = post(client, ARROW, out.getvalue())
    found = pa.ipc.open_stream(answer.content).read_all()
    assert (found.num_rows, found.schema.names) == (0, ["cost_predicted", "cost_error"])


@pytest.mark.parametrize("size", [3, 10**9])
def test_lines(client, cost, size):
    rows = json.loads(people(40)[0].drop(columns="since").to_json(orient="records"))
    rows = [row if i % 3 else {} for i, row in enumerate(rows)]
    text = "\n".join(map(json.dumps, rows)).encode() + b"\n\n"
    answer = post(client, NDJSON, pieces(text, size), "?quantiles=0.1,0.5")
    assert answer.headers["content-type"] == NDJSON
    found = [json.loads(line) for line in answer.text.splitlines()]
    names = cost.encoder_.feature_names_in_.tolist()
    table = {name: [row.get(name) for row in rows] for name in names}
    assert [row["prediction"] for row in found] == cost.predict(table).tolist()
    quantiles = cost.predict_quantiles(table, [0.1, 0.5])
    assert [list(row["quantiles"].values()) for row in found] == quantiles.tolist()


@pytest.mark.parametrize(
    ("kind", "content", "query", "status", "words"),
    [
        (NDJSON, b'{"age": 4}\n{"agee": 4}\n', "", 422, "did you mean 'age'?"),
        (NDJSON, b'{"age": 4}\n{\n', "", 400, "row 1 is not JSON"),
        (NDJSON, b'{"age": 4}\n3', "", 422, "row 1 is not an object"),
        (NDJSON, b"{}", "?stdd=true", 422, "did you mean 'std'?"),
        (NDJSON, b"{}", "?interval=3", 422, "interval"),
        (ARROW, b"", "", 400, "empty"),
        (ARROW, b"hello, this is no Arrow", "", 400, "FFFFFFFF"),
        (ARROW, b"\xff\xff\xff\xff\x10\x00\x00\x00" + b"\xff" * 16, "", 400, "cannot be read"),
        (ARROW, b"\xff\xff\xff\xff\xff\xff\xff\x7f", "", 413, "larger"),
    ],
)
def test_what_is_wrong_with_a_stream(client, kind, content, query, status, words):
    answer = post(client, kind, content, query)
    assert answer.status_code == status, answer.text
    assert words in answer.json()["detail"]


@pytest.mark.parametrize("later", [b"{\n", b'{"age": {"in": [41]}}\n', b""])
def test_the_first_row_at_fault_is_told_though_later_ones_are_read_meanwhile(
    client, monkeypatch, later
):
    monkeypatch.setattr(row_streams, "BLOCK_ROWS", 2)
    content = b'{}\n{"age": 40}\n{}\n{"age": {"in": [40]}}\n{}\n{}\n' + later
    answer = post(client, NDJSON, pieces(content, 1000), "?interval=0.9")
    assert answer.status_code == 422, answer.text
    assert answer.json()["row"] == 3


def test_a_row_at_fault_is_told_while_nothing_more_arrives(client, monkeypatch):
    monkeypatch.setattr(row_streams, "BLOCK_ROWS", 2)
    silent = threading.Event()

    async def parts():
        yield b'{}\n{"age": {"in": [40]}}\n'
        silent.set()
        await asyncio.sleep(60)

    began = time.monotonic()
    answer = post(client, NDJSON, parts(), "?interval=0.9")
    assert answer.status_code == 422, answer.text
    assert answer.json()["row"] == 1
    assert silent.is_set()
    assert time.monotonic() - began < 30


def test_what_is_wrong_with_a_table(client):
    for table, words in (
        (pa.table({"agee": [1.0]}), "did you mean 'age'?"),
        (pa.table({"other": [1.0]}), "none of the model's columns"),
        (pa.table({"age": ["x"]}), "'x' is not a number"),
    ):
        answer = post(client, ARROW, arrow_bytes(table))
        assert answer.status_code == 422
        assert words in answer.json()["detail"]
    table = incomplete(50)
    assert post(client, ARROW, arrow_bytes(table)[:-100]).status_code in (200, 400)
    assert post(client, ARROW, arrow_bytes(table)[:-500]).status_code == 400
    packed = arrow_bytes(table, options=pa.ipc.IpcWriteOptions(compression="zstd"))
    assert "compressed" in post(client, ARROW, packed).json()["detail"]


@settings(max_examples=60)
@given(data=st.data())
def test_a_damaged_stream_is_refused_or_read(client, data):
    """Whatever bytes are changed, the answer is a table or a problem of the caller."""
    content = bytearray(arrow_bytes(incomplete(6), 3))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 4))
        struct.pack_into("<I", content, at, data.draw(st.integers(0, 2**32 - 1)))
    answer = post(client, ARROW, bytes(content))
    assert answer.status_code in (200, 400, 413, 422), answer.text


def test_memory_does_not_grow_with_the_stream(client, monkeypatch):
    monkeypatch.setattr(row_streams, "BLOCK_ROWS", 100)
    monkeypatch.setattr(row_streams, "SPOOL_BYTES", 1000)
    line = b'{"age": 40, "smoker": "yes"}\n' * 100

    def peak(blocks):
        async def parts():
            for _ in range(blocks):
                yield line

        tracemalloc.start()
        try:
            answer = post(client, NDJSON, parts())
            assert answer.text.count("\n") == 100 * blocks
            return tracemalloc.get_traced_memory()[1] - 3 * len(answer.content)  # of this client
        finally:
            tracemalloc.stop()

    assert peak(40) < peak(5) + 300_000  # the rows alone are a megabyte as Python objects


def test_rows_of_probability_zero_and_repeated_parameters_are_told(client):
    text = b'{"age": {"in": [100000]}}\n{}\n'
    answer = post(client, NDJSON, text)
    assert [json.loads(line)["prediction"] is None for line in answer.text.splitlines()] == [
        True,
        False,
    ]
    assert "1 of 2 rows have probability zero" in answer.headers["expecta-remarks"]
    levels = [json.loads(post(client, NDJSON, b"{}\n", query).text)["quantiles"]
              for query in ("?quantiles=0.1,0.9", "?quantiles=0.1&quantiles=0.9")]  # fmt: skip
    assert levels[0] == levels[1]
    assert len(levels[0]) == 2
    assert post(client, NDJSON, b"{}\n", "?std=true&std=false").status_code == 422
