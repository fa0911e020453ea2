"""Mixed load on a service while everything goes wrong: no wrong answer, no error that it hides.

Two processes answer for the insurance circuit. Clients predict, ask and stream, and check every
answer against the library's for the version that answered; others send malformed, huge and slow
bodies, and drop connections; the model's file is replaced and damaged all the while, and one
process is killed. Printed at the end: answers by status, wrong ones, lost connections, memory.

    python -m benchmarks.serve_faults --minutes 10
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import httpx
import numpy as np

from benchmarks.serve_load import incomplete, records
from benchmarks.service_process import service
from expecta import CircuitRegressor
from expecta.datasets import load_insurance

PREDICT = "/models/charges/predict"
MAX_BYTES = 300_000
TIMEOUT = 5.0
LOG_LINES = 40  # of the log, shown from an error on
GROUPS = ["smoker == 'yes'", "age < 30 and sex == 'female'", "region in ('southeast', 'northwest')"]
ALLOWED = {200, 400, 404, 405, 408, 413, 415, 422, 429, 503}


@dataclass
class Record:
    """What happened."""

    statuses: Counter = field(default_factory=Counter)
    wrong: list = field(default_factory=list)
    lost: Counter = field(default_factory=Counter)  # connections, by client
    checked: int = 0
    replaced: int = 0
    damaged: int = 0
    versions: set = field(default_factory=set)
    memory: list = field(default_factory=list)  # bytes by process, at times

    def faults(self):
        """What should not have happened."""
        odd = {code: n for code, n in self.statuses.items() if code not in ALLOWED}
        return [*self.wrong[:5], *([f"statuses {odd}"] if odd else [])]

    def sizes(self):
        """Resident MiB over time of the process that lived longest, without the first samples."""
        seen = Counter(process for sample in self.memory for process in sample)
        oldest = max(seen, key=lambda process: (seen[process], self.memory[-1].get(process, 0)))
        sizes = [sample[oldest] / 2**20 for sample in self.memory if oldest in sample]
        return sizes[len(sizes) // 5 :]

    def growth(self):
        """Memory in the last third of that time over the first."""
        sizes = self.sizes()
        part = max(1, len(sizes) // 3)
        return float(np.median(sizes[-part:]) / np.median(sizes[:part]))


class Truth:
    """What the library says of each version of the model."""

    def __init__(self, folder):
        table = load_insurance(as_frame="pandas")
        charges = table.pop("charges")
        self.rows = records(incomplete(80, 3))
        self.path = folder / "charges.expecta"
        self.files, self.predictions, self.means = [], {}, {}
        for number, factor in enumerate((1.0, 2.0)):
            path = folder / f"version-{number}"
            CircuitRegressor(random_state=0, max_splits=6).fit(table, factor * charges).save(path)
            model = CircuitRegressor.load(path)
            version = sha256(path.read_bytes()).hexdigest()[:16]
            names = table.columns
            cells = {name: [row.get(name) for row in self.rows] for name in names}
            self.predictions[version] = model.predict(cells).tolist()
            self.means[version] = [model.ask(group).mean for group in GROUPS]
            self.files.append(path)
        shutil.copy(self.files[0], self.path)


class Attack:
    """Clients of all kinds, until a time."""

    def __init__(self, process, truth, seconds, seed):
        self.process, self.truth, self.rng = process, truth, random.Random(seed)
        self.seed = seed
        self.end = time.monotonic() + seconds
        self.seconds = seconds
        self.record = Record()
        self.http = httpx.AsyncClient(base_url=process.url, timeout=60)

    def goes_on(self):
        return time.monotonic() < self.end

    async def run(self):
        clients = [
            *(self.predicts() for _ in range(8)),
            self.asks(), self.streams(), self.malformed(), self.huge(),
            self.slow(), self.slow(), self.drops(), self.drops(),
            self.replaces(), self.kills(), self.measures(),
        ]  # fmt: skip
        await asyncio.gather(*clients)
        await self.http.aclose()
        return self.record

    async def post(self, who, path, **more):
        try:
            answer = await self.http.post(path, **more)
        except httpx.TransportError as problem:
            self.record.lost[f"{who}: {type(problem).__name__}"] += 1
            await asyncio.sleep(0.05)
            return None
        self.record.statuses[answer.status_code] += 1
        if answer.status_code in (429, 503):
            await asyncio.sleep(0.2)
        return answer

    def compare(self, found, expected, what):
        self.record.checked += 1
        if found != expected:
            self.record.wrong.append(f"{what}: {found} is not {expected}")

    # -- clients that behave ----------------------------------------------------------

    async def predicts(self):
        while self.goes_on():
            first = self.rng.randrange(len(self.truth.rows))
            some = self.truth.rows[first : first + self.rng.choice([1, 1, 1, 5])]
            answer = await self.post("predicts", PREDICT, json={"rows": some})
            if answer is not None and answer.status_code == 200:
                document = answer.json()
                self.record.versions.add(document["version"])
                expected = self.truth.predictions[document["version"]][first : first + len(some)]
                found = [row["prediction"] for row in document["predictions"]]
                self.compare(found, expected, "predictions")

    async def asks(self):
        allowed = [list(means) for means in zip(*self.truth.means.values(), strict=True)]
        while self.goes_on():
            i = self.rng.randrange(len(GROUPS))
            answer = await self.post("asks", "/models/charges/ask", json={"query": GROUPS[i]})
            if answer is not None and answer.status_code == 200:
                mean = answer.json()["mean"]
                self.compare(mean in allowed[i], True, f"the mean {mean}")
            await asyncio.sleep(0.05)

    async def streams(self):
        lines = "".join(json.dumps(row) + "\n" for row in self.truth.rows) * 20
        headers = {"Content-Type": "application/x-ndjson"}
        allowed = [values * 20 for values in self.truth.predictions.values()]

        async def pieces():
            for at in range(0, len(lines), 5000):
                yield lines[at : at + 5000].encode()

        while self.goes_on():
            answer = await self.post("streams", PREDICT, content=pieces(), headers=headers)
            if answer is not None and answer.status_code == 200:
                found = [json.loads(line)["prediction"] for line in answer.text.splitlines()]
                self.compare(found in allowed, True, "a stream")
            await asyncio.sleep(0.3)

    # -- and those that do not --------------------------------------------------------

    async def malformed(self):
        good = json.dumps({"rows": self.truth.rows[:3]}).encode()
        while self.goes_on():
            body = bytearray(good)
            for _ in range(self.rng.randrange(1, 6)):
                body[self.rng.randrange(len(body))] = self.rng.randrange(256)
            body = bytes(body[: self.rng.randrange(len(body) + 1)])
            kind = self.rng.choice(
                ["application/json"] * 4
                + ["application/x-ndjson", "application/vnd.apache.arrow.stream", "text/plain"]
            )
            path = self.rng.choice(
                [PREDICT, "/models/charges/ask", "/models/charges/case", "/v2/models/charges/infer"]
            )
            await self.post("malformed", path, content=body, headers={"Content-Type": kind})
            await asyncio.sleep(0.01)

    async def huge(self):
        headers = {"Content-Type": "application/json"}

        async def endless():
            for _ in range(2000):
                yield b'{"rows": [' + b" " * 10_000

        while self.goes_on():
            body = b"[" * (2 * MAX_BYTES) if self.rng.random() < 0.5 else endless()
            answer = await self.post("huge", PREDICT, content=body, headers=headers)
            if answer is not None:
                self.compare(answer.status_code in (413, 429), True, "a huge body")
            await asyncio.sleep(0.3)

    async def connection(self):
        try:
            return await asyncio.open_connection("127.0.0.1", self.process.port)
        except OSError:
            await asyncio.sleep(0.2)
            return None, None

    async def slow(self):
        """Send a body byte by byte, or begin and never go on."""
        while self.goes_on():
            reader, writer = await self.connection()
            if writer is None:
                continue
            body = json.dumps({"rows": self.truth.rows[0]}).encode()
            head = f"POST {PREDICT} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            stalls = self.rng.random() < 0.3
            try:
                writer.write(head.encode())
                for at in range(0, len(body), 8):
                    writer.write(body[at : at + 8])
                    await writer.drain()
                    await asyncio.sleep(TIMEOUT + 3 if stalls and at == 16 else 0.02)
                line = await asyncio.wait_for(reader.readline(), 30)
                if line:
                    self.record.statuses[int(line.split()[1])] += 1
            except (OSError, TimeoutError):
                self.record.lost["slow"] += 1
            finally:
                writer.close()

    async def drops(self):
        """Close the connection within a request, or before its answer."""
        while self.goes_on():
            _, writer = await self.connection()
            if writer is None:
                continue
            body = json.dumps({"rows": self.truth.rows}).encode()
            head = f"POST {PREDICT} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            sent = head.encode() + body
            writer.write(sent[: self.rng.randrange(1, len(sent) + 1)])
            await asyncio.sleep(self.rng.random() * 0.02)
            writer.transport.abort()
            await asyncio.sleep(0.02)

    async def replaces(self):
        """Put another version in the file's place, or damage it where it is."""
        number, rng = 0, random.Random(self.seed)  # its own: the same order for any load
        while self.goes_on():
            await asyncio.sleep(2.5)
            fresh = self.truth.path.with_suffix(".fresh")
            if rng.random() < 0.4:
                data = bytearray(self.truth.files[number].read_bytes())
                for _ in range(20):
                    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
                self.truth.path.write_bytes(data[: rng.randrange(len(data))])
                self.record.damaged += 1
                continue
            number = 1 - number
            shutil.copy(self.truth.files[number], fresh)
            os.replace(fresh, self.truth.path)
            self.record.replaced += 1

    async def kills(self):
        await asyncio.sleep(0.4 * self.seconds)
        workers = [
            child
            for child in self.process.children()
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
        ]
        os.kill(workers[0], signal.SIGKILL)

    async def measures(self):
        while self.goes_on():
            self.record.memory.append(self.process.memory())
            await asyncio.sleep(min(2.0, self.seconds / 20))


def attack(seconds, seed=0):
    """Run the attack, and return what happened; the service must be well afterwards."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        truth = Truth(folder)
        options = ("--workers", 2, "--max-bytes", MAX_BYTES, "--timeout", TIMEOUT)
        with service(folder, {"charges": truth.path}, *options) as process:
            record = asyncio.run(_attack(process, truth, seconds, seed))
            log = process.log.read_text()
        lines = log.splitlines()
        for i, line in enumerate(lines):
            if "unexpected error" in line or "Traceback" in line:
                record.wrong.append("\n".join(lines[i : i + LOG_LINES])[:4000])
    return record


async def _attack(process, truth, seconds, seed):
    one = Attack(process, truth, seconds, seed)
    record = await one.run()
    shutil.copy(truth.files[0], truth.path.with_suffix(".fresh"))
    os.replace(truth.path.with_suffix(".fresh"), truth.path)
    expected = sha256(truth.files[0].read_bytes()).hexdigest()[:16]
    async with httpx.AsyncClient(base_url=process.url, timeout=60) as client:
        fresh = 0
        for _ in range(300):  # both processes
            answer = await client.get("/models", headers={"Connection": "close"})
            version = answer.json()["models"][0]["version"]
            fresh = fresh + 1 if version == expected else 0
            if fresh == 20:
                break
            await asyncio.sleep(0.2)
        else:
            record.wrong.append("the last file was never read")
        for row, value in zip(truth.rows, truth.predictions[expected], strict=True):
            answer = await client.post(PREDICT, json={"rows": row})
            if answer.json()["predictions"][0]["prediction"] != value:
                record.wrong.append("a wrong answer afterwards")
    return record


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    record = attack(60 * given.minutes, given.seed)
    print(f"answers by status: {dict(sorted(record.statuses.items()))}")
    print(f"answers compared with the library's: {record.checked}, wrong: {len(record.wrong)}")
    print(f"files replaced: {record.replaced}, damaged: {record.damaged}; one process killed")
    print(f"versions that answered: {len(record.versions)}")
    print(f"connections that clients lost: {dict(record.lost)}")
    sizes = record.sizes()
    print(
        f"memory of a process: {sizes[0]:.0f} to {sizes[-1]:.0f} MiB, {record.growth():.3f} times"
    )
    if record.faults():
        raise SystemExit("\n".join(map(str, record.faults())))


if __name__ == "__main__":
    main()
