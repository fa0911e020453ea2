"""Section 5.2 of the paper, in words, and what questions cost.

    python benchmarks/questions.py [paper] [speed]

paper: the authors' insurance circuits, checked against the figures of their code, beside a
model learned here from the same 936 rows and the plain averages of the rows that match.

speed: the insurance model of the README and a model of ten columns; every answer is computed
ten times after a first one, and the median is told.
"""

from __future__ import annotations

import csv
import sys
import time

import numpy as np

from evaluation.data import DATA, RESULTS
from evaluation.part_a import answers, queries
from expecta import ChowLiu, CircuitRegressor, using
from expecta.datasets import load_insurance

found: list[dict[str, object]] = []


def paper() -> None:
    if not DATA.exists():
        print(f"skipped: no data at {DATA}; set EXPECTA_DATA")
        return
    print("Section 5.2: charges. Authors' circuits | learned here | training rows that match")
    for line in queries():
        one, two = answers(line)
        average = "" if two.rows_mean is None else f"{two.rows_mean.mean:,.0f}"
        words = line["query"].replace(" ", ", ")
        print(
            f"  {words:52} {one.mean:>7,.0f} ± {one.std:>6,.0f} ({one.share:6.2%}) | "
            f"{two.mean:>7,.0f} ± {two.std:>6,.0f} ({two.share:6.2%}) | "
            f"{average:>7} of {two.rows}"
        )
        found.append(
            {
                "query": words,
                "authors_mean": one.mean,
                "authors_std": one.std,
                "authors_share": one.share,
                "mean": two.mean,
                "std": two.std,
                "share": two.share,
                "rows": two.rows,
                "rows_mean": None if two.rows_mean is None else two.rows_mean.mean,
            }
        )


def timed(what: str, ask: object) -> None:
    ask()
    seconds = []
    for _ in range(10):
        start = time.perf_counter()
        ask()
        seconds.append(time.perf_counter() - start)
    print(f"  {what:44} {1000 * np.median(seconds):8.1f} ms", flush=True)
    found.append({"query": what, "seconds": float(np.median(seconds))})


def speed() -> None:
    table = load_insurance(as_frame="dict")
    charges = table.pop("charges")
    model = CircuitRegressor(random_state=0).fit(table, charges)
    row = {name: values[0] for name, values in table.items()}
    part = {"age": 40, "smoker": "yes"}
    print("Median time of a question; insurance")
    timed("ask(smoker='yes')", lambda: model.ask(smoker="yes"))
    timed(
        "ask, a conjunction of three", lambda: model.ask("smoker == 'no' and age < 40 and bmi > 30")
    )
    timed("ask, two boxes", lambda: model.ask("smoker == 'yes' or age < 30"))
    timed("compare", lambda: model.compare("smoker == 'yes'", "smoker == 'no'"))
    by = model.split("age", "bmi", bins=10)
    assert len(by) == 100
    assert np.isclose(by.share.sum(), 1.0)
    timed("split, 100 groups", lambda: model.split("age", "bmi", bins=10))
    timed("dependence, 47 values", lambda: model.dependence("age"))
    timed("next_question", lambda: model.next_question(part))
    timed("stability", lambda: model.stability(part, 20_000))
    timed("sufficient", lambda: model.sufficient(row, 20_000))
    timed("disparities, pairs of facts", lambda: model.disparities(["sex"]))
    timed("shapley, one row, 6 columns", lambda: model.shapley(row))
    rng = np.random.default_rng(0)
    wide = {f"x{i}": rng.normal(size=2000) for i in range(10)}
    y = sum(wide.values()) + wide["x0"] * wide["x1"]
    tens = CircuitRegressor(density=ChowLiu(), calibration_rows=0, random_state=0).fit(wide, y)
    one = {name: values[0] for name, values in wide.items()}
    values = tens.shapley(one)
    assert np.isclose(
        values.base + values.values.sum(), tens.predict({k: [v] for k, v in one.items()})[0]
    )
    timed("shapley, one row, 10 columns", lambda: tens.shapley(one))


if __name__ == "__main__":
    parts = sys.argv[1:] or ["paper", "speed"]
    with using(progress=False):
        if "paper" in parts:
            paper()
        if "speed" in parts:
            speed()
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "questions.csv").open("w", newline="") as file:
        names = list(dict.fromkeys(key for line in found for key in line))
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(found)
