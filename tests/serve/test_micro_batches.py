"""Rows of concurrent requests are computed together, and nobody waits for ever."""

from __future__ import annotations

import asyncio

import pytest

from expecta.serve.compute_lanes import ComputeLane, MicroBatches
from expecta.serve.problems import ProblemError


def run(requests, compute, max_rows=100):
    """Ask (seconds, rows, options) each; returns answers, and the sizes of batches."""
    sizes = []

    def counted(rows, options):
        sizes.append(len(rows))
        return compute(rows, options)

    async def main():
        lane = ComputeLane(100, 5.0, 1)
        batches = MicroBatches(counted, lane, max_rows)

        async def ask(seconds, rows, options):
            await asyncio.sleep(seconds)
            return await batches.answer(rows, options)

        try:
            asked = (ask(*one) for one in requests)
            return await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 20)
        finally:
            lane.close()

    return asyncio.run(main()), sizes


def double(rows, factor):
    return [factor * row[0] for row in rows]


@pytest.mark.parametrize("factors", [1, 3])
def test_each_has_its_own_answer(factors):
    requests = [(0.002 * (i // 20), [[i], [-i]], 1 + i % factors) for i in range(200)]
    answers, sizes = run(requests, double)
    assert answers == [[(1 + i % factors) * i, -(1 + i % factors) * i] for i in range(200)]
    assert sum(sizes) == 400
    assert len(sizes) < 150  # many share a batch
    assert max(sizes) <= 100


def test_one_after_the_other_and_then_many():
    requests = [(0.01 * i, [[i]], 1) for i in range(10)] + [(0.2, [[i]], 1) for i in range(50)]
    requests += [(0.3 + 0.01 * i, [[i]], 1) for i in range(5)]
    answers, sizes = run(requests, double)
    assert [one[0] for one in answers] == [*range(10), *range(50), *range(5)]
    assert max(sizes) > 10


def test_a_request_larger_than_a_batch():
    answers, sizes = run([(0, [[i] for i in range(500)], 2)], double)
    assert answers == [[2 * i for i in range(500)]]
    assert sizes == [500]


def test_who_is_at_fault_is_told():
    def compute(rows, _):
        if any(row[0] == 7 for row in rows):
            raise ValueError("seven")
        return [row[0] for row in rows]

    answers, _ = run([(0, [[i]], 1) for i in range(20)], compute)
    assert isinstance(answers[7], ProblemError)
    assert [one for one in answers if not isinstance(one, ProblemError)] == [
        [i] for i in range(20) if i != 7
    ]
