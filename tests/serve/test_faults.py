"""A few seconds of faults: whatever else is asked, dropped or replaced, answers stay right."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from hashlib import sha256

from expecta import ChowLiu, CircuitRegressor
from expecta.serve import ServeOptions
from served import people, serving

PREDICT = "/models/cost/predict"
ROUNDS = 20


def test_answers_stay_right(tmp_path):
    X, cost = people(120, seed=2)
    rows = [{"age": age, "smoker": smoker} for age in (25, 40, 55) for smoker in ("yes", None)]
    names = list(X.columns)
    table = {name: [row.get(name) for row in rows] for name in names}
    files, expected = [], {}
    for factor in (1.0, 3.0):
        path = tmp_path / f"{factor}.expecta"
        model = CircuitRegressor(density=ChowLiu(), max_splits=2).fit(X, factor * cost)
        model.save(path)
        files.append(path.read_bytes())
        version = sha256(files[-1]).hexdigest()[:16]
        expected[version] = CircuitRegressor.load(path).predict(table).tolist()
    place = tmp_path / "cost.expecta"
    place.write_bytes(files[0])
    rng = random.Random(0)
    options = ServeOptions(max_bytes=5000, reload_seconds=0.02, timeout=5)
    with serving({"cost": place}, options) as client:
        versions, statuses = set(), set()

        async def predicts():
            for i in range(ROUNDS):
                first = i % len(rows)
                answer = await client.http.post(PREDICT, json={"rows": rows[first:]})
                document = answer.json()
                found = [row["prediction"] for row in document["predictions"]]
                assert found == expected[document["version"]][first:]
                versions.add(document["version"])

        async def breaks():
            good = b'{"rows": [{"age": 40, "smoker": "yes"}], "std": true}'
            for i in range(ROUNDS):
                body = bytearray(good * (1 + 200 * (i % 10 == 0)))
                body[rng.randrange(len(good))] = rng.randrange(256)
                content = bytes(body[: rng.randrange(1, len(body) + 1)])
                path = rng.choice([PREDICT, "/models/cost/ask", "/v2/models/cost/infer"])
                kind = rng.choice(["application/json", "application/x-ndjson"])
                answer = await client.http.post(
                    path, content=content, headers={"Content-Type": kind}
                )
                statuses.add(answer.status_code)

        async def drops():
            for _ in range(ROUNDS):
                asked = client.http.post("/models/cost/ask", json={"query": "age < 40"})
                task = asyncio.create_task(asked)
                await asyncio.sleep(rng.random() * 0.01)
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

        async def replaces():
            for i in range(6):
                await asyncio.sleep(0.1)
                data = files[i % 2]
                place.write_bytes(data[: len(data) // 2] if i % 3 == 1 else data)

        async def everything():
            await asyncio.gather(predicts(), predicts(), breaks(), drops(), replaces())
            for _ in range(500):
                if client.service.state.registry.entries["cost"].problem is None:
                    break
                await asyncio.sleep(0.01)
            await predicts()

        client.run(everything())
        assert statuses <= {200, 400, 413, 415, 422, 429}
        assert {400, 413} <= statuses
        assert client.service.state.registry.questions.waiting == 0
