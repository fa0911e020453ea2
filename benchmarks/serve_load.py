"""Requests and rows per second of a service, beside a bare FastAPI endpoint in the same run.

The insurance circuit, rows of which three of six cells are unknown. The load comes from wrk
(Debian: ``apt-get install wrk``) on the same machine; the endpoint that returns a constant is the
limit of what FastAPI and uvicorn can do there. Answers are compared with the library's before and
after. Where other programs run, the ratio of CPU times tells more than that of rates.

    python -m benchmarks.serve_load --seconds 10
"""

from __future__ import annotations

import argparse
import io
import json
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa

from benchmarks.service_process import bare_service, service
from expecta import CircuitRegressor
from expecta.datasets import load_insurance

ARROW = "application/vnd.apache.arrow.stream"
SCRIPT = """
local bodies = {}
for line in io.lines("%s") do bodies[#bodies + 1] = line end
local at = 0
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
request = function()
  at = at %% #bodies + 1
  return wrk.format(nil, nil, nil, bodies[at])
end
"""
UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}


def incomplete(n, seed=0):
    """People of whom three of six columns are unknown, as a frame."""
    table = load_insurance(as_frame="pandas").drop(columns="charges")
    rng = np.random.default_rng(seed)
    rows = table.sample(n, replace=True, random_state=seed).reset_index(drop=True)
    hidden = rng.random(rows.shape).argsort(axis=1) < 3
    return rows.mask(hidden)


def records(frame):
    return [
        {name: value for name, value in row.items() if value is not None}
        for row in json.loads(frame.to_json(orient="records"))
    ]


def load(process, path, connections, seconds, script):
    """Return requests per second, latencies in ms, and CPU time of the server for each, in µs."""
    words = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "--latency"]
    before = process.cpu_seconds()
    text = subprocess.run(
        [*words, "-s", script, process.url + path], capture_output=True, text=True, check=True
    ).stdout
    spent = process.cpu_seconds() - before
    if "Non-2xx" in text or "Socket errors" in text:
        raise RuntimeError(text)
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1])
    count = int(re.search(r"(\d+) requests in", text)[1])
    levels = dict(re.findall(r"(50|99)%\s+([\d.]+[a-z]+)", text))
    parts = (re.fullmatch(r"([\d.]+)([a-z]+)", levels[q]).groups() for q in ("50", "99"))
    return rate, *(float(number) * UNITS[unit] for number, unit in parts), 1e6 * spent / count


def check(url, model, frame):
    """Compare answers with the library's, to the last bit: alone, together, and in a batch."""
    expected = model.predict(frame).tolist()
    rows = records(frame)
    with httpx.Client(timeout=60) as client:
        together = client.post(f"{url}/models/charges/predict", json={"rows": rows}).json()
        assert [row["prediction"] for row in together["predictions"]] == expected
        for row, value in zip(rows[:50], expected, strict=False):
            answer = client.post(f"{url}/models/charges/predict", json={"rows": row}).json()
            assert answer["predictions"][0]["prediction"] == value


def batches(url, model, n_rows, repeats):
    """Return rows per second over HTTP in Arrow batches, and of the library in this process."""
    table = pa.Table.from_pandas(incomplete(n_rows, 1), preserve_index=False)
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=20_000)
    rates = {"service": [], "library": []}
    for _ in range(repeats):
        start = time.perf_counter()
        answer = httpx.post(
            f"{url}/models/charges/predict",
            content=out.getvalue(),
            headers={"Content-Type": ARROW},
            timeout=120,
        )
        rates["service"].append(n_rows / (time.perf_counter() - start))
        found = pa.ipc.open_stream(answer.content).read_all().column("charges_predicted")
        start = time.perf_counter()
        expected = np.concatenate([model.predict(batch) for batch in table.to_batches(20_000)])
        rates["library"].append(n_rows / (time.perf_counter() - start))
        assert np.array_equal(found.to_numpy(), expected)
    return {name: float(np.median(values)) for name, values in rates.items()}


def measure(seconds=10, rows=200_000, rounds=3, connections=(1, 16, 128), say=print):
    """Measure both servers, in turn; returns a record for each number of connections."""
    if shutil.which("wrk") is None:
        raise SystemExit("the load comes from wrk; install it: apt-get install wrk")
    table = load_insurance(as_frame="pandas")
    charges = table.pop("charges")
    found = {"connections": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "charges.expecta"
        CircuitRegressor(random_state=0).fit(table, charges).save(path)
        model = CircuitRegressor.load(path)
        frame = incomplete(500)
        bodies = folder / "bodies"
        bodies.write_text("".join(json.dumps({"rows": row}) + "\n" for row in records(frame)))
        script = folder / "post.lua"
        script.write_text(SCRIPT % bodies)
        with bare_service(folder) as bare, service(folder, {"charges": path}) as ours:
            check(ours.url, model, frame)
            say("connections      requests/s  p50 ms  p99 ms  CPU µs    ratio of rates, of CPU")
            for count in connections:
                pairs = []
                for _ in range(rounds):  # in turn, so that what else runs meets both
                    limit = load(bare, "/constant", count, seconds, str(script))
                    rate = load(ours, "/models/charges/predict", count, seconds, str(script))
                    pairs.append((limit, rate))
                limit, rate = np.median(pairs, axis=0).tolist()
                ratios = rate[0] / limit[0], limit[3] / rate[3]
                found["connections"].append(
                    {"connections": count, "bare": limit, "service": rate, "ratios": ratios}
                )
                say(f"{count:>11} bare  {' '.join(f'{number:>9.2f}' for number in limit)}")
                say(
                    f"{'':>11} ours  {' '.join(f'{number:>9.2f}' for number in rate)}"
                    f"   {ratios[0]:.2f}, {ratios[1]:.2f}"
                )
            check(ours.url, model, frame)
            if rows:
                speed = batches(ours.url, model, rows, 5)
                found["batches"] = speed
                share = speed["service"] / speed["library"]
                say(
                    f"Arrow batches: {speed['service']:,.0f} rows/s over HTTP, "
                    f"{speed['library']:,.0f} in the library: {share:.0%}"
                )
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    result = measure(given.seconds, given.rows, given.rounds)
    if given.json:
        given.json.write_text(json.dumps(result, indent=1))
