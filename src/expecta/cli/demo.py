"""The demonstration: the insurance table, from rows with holes to questions and a report."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from expecta.ask.group_answers import Comparison
from expecta.ask.printed_answer import text_table
from expecta.cli import tables
from expecta.cli.learning import Task, held_out, learn
from expecta.cli.plots import draw
from expecta.cli.predicting import predictions
from expecta.datasets import load_insurance
from expecta.estimators.base import CircuitEstimator

__all__ = ["QUESTIONS", "people", "run"]

Say = Callable[[str], None]

_ONE_CHILD = "sex == 'female' and smoker == 'yes' and children == 1 and region == "

# What the paper asks of its circuits in Section 5.2, and one it does not.
QUESTIONS = (
    ("How different are the costs of smokers and of others?", "smoker == 'yes'", "smoker == 'no'"),
    ("Is the model biased by sex?", "sex == 'female'", "sex == 'male'"),
    (
        "And among smokers?",
        "smoker == 'yes' and sex == 'female'",
        "smoker == 'yes' and sex == 'male'",
    ),
    (
        "Does the region matter for women who smoke and have one child?",
        f"{_ONE_CHILD}'southeast'",
        f"{_ONE_CHILD}'southwest'",
    ),
)
HOLES = 0.5  # share of cells that are hidden
APART = 200  # people whom the model does not see


def people() -> tuple[Any, Any]:
    """Return the insurance table as two Arrow tables: to learn from, and people held out."""
    import pyarrow as pa

    table = pa.table(load_insurance(as_frame="dict"))
    order = np.random.default_rng(1).permutation(table.num_rows)
    return table.take(order[APART:]), table.take(order[:APART])


def run(folder: Path, say: Say) -> dict[str, Any]:
    """Learn, predict, ask, draw and report into a folder; returns what was found."""
    started = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    known, apart = people()
    model, learned = _learn(known, folder, say)
    found: dict[str, Any] = {
        "folder": str(folder),
        "learned": learned,
        "predicted": _predict(model, apart, folder, say),
        "questions": _ask(model, say),
        "next_question": _next(model, say),
    }
    _draw(model, folder, say)
    found["files"] = sorted(one.name for one in folder.iterdir())
    found["seconds"] = time.perf_counter() - started
    path, holes = (quote(str(folder / name)) for name in ("charges.expecta", "holes.csv"))
    say(f"\nDone in {found['seconds']:.0f} seconds; {folder} has {', '.join(found['files'])}.")
    say("\nTry next:")
    for line in (
        f"ask {path} \"smoker == 'no' and age >= 50\"",
        f"split {path} region smoker",
        f"next {path} --row age=45,smoker=yes --cost bmi=20",
        f"explain {path} {holes} --row 3",
        f"audit {path} --sensitive sex",
        "fit your.csv --target column",
    ):
        say(f"  expecta {line}")
    return found


def _learn(table: Any, folder: Path, say: Say) -> tuple[CircuitEstimator, dict[str, Any]]:
    say("Insurance: six columns on people, and what each cost the insurer in a year.")
    say(f"Learning from {table.num_rows} of them, {APART} are kept apart: some seconds;")
    say("the first time on a machine it compiles too, for a minute or two.")
    task = Task.of(table, "charges", (), None, False)
    model = learn(task, "tree", 256, 0)
    model.save(folder / "charges.expecta")
    learned = held_out(model)
    say(f"  {model.n_splits_} splits; {learned['said']}.")
    return model, learned


def _predict(model: CircuitEstimator, apart: Any, folder: Path, say: Say) -> dict[str, Any]:
    """Hide half of the cells of the people held out, and predict for them."""
    import pyarrow as pa

    rng = np.random.default_rng(1)
    charges = apart.column("charges").to_numpy()
    hidden = {
        name: pa.array(apart.column(name).to_pylist(), mask=rng.random(APART) < HOLES)
        for name in apart.column_names
        if name != "charges"
    }
    table = pa.table(hidden)
    tables.write(table, str(folder / "holes.csv"))
    added = predictions(model, table, std=True, interval=0.9)
    for name, values in added.items():
        table = table.append_column(name, [values])
    tables.write(table, str(folder / "predictions.csv"))
    low, high = (np.asarray(added[f"charges_{end}"]) for end in ("low", "high"))
    inside = float(np.mean((low <= charges) & (charges <= high)))
    say(f"\nPredicting for the {APART} with {HOLES:.0%} of the cells unknown, for example:")
    shown = table.slice(0, 5).to_pydict()
    for line in text_table({name: [_cell(one) for one in cells] for name, cells in shown.items()}):
        say(f"  {line}")
    say(
        f"  predicted: the model averaged over all that is unknown, exactly; std: its spread over "
        f"that;\n  low to high: 90% intervals for the charges, which {inside:.0%} of theirs "
        f"lie in."
    )
    return {"rows": APART, "inside": inside}


def _cell(value: object) -> str:
    if value is None:
        return "?"
    return f"{value:,.1f}" if isinstance(value, float) else str(value)


def _ask(model: CircuitEstimator, say: Say) -> list[dict[str, Any]]:
    """Ask the paper's questions, in words."""
    say("\nAsking about groups:")
    found = []
    for question, a, b in QUESTIONS:
        answer = model.compare(a, b)
        found.append({"question": question, **answer.to_dict()})
        for line in _told(question, answer):
            say(line)
    return found


def _told(question: str, answer: Comparison) -> list[str]:
    lines = [f"  {question}"]
    for group in (answer.a, answer.b):
        average = "" if group.rows_mean is None else f", on average {group.rows_mean.mean:,.0f}"
        lines.append(
            f"    {group.query}: {group.mean:,.0f} ± {group.std:,.0f} expected "
            f"({group.share:.1%} of people; {group.rows} training rows{average})"
        )
    return [*lines, f"    difference {answer.difference:,.0f}"]


def _next(model: CircuitEstimator, say: Say) -> dict[str, Any]:
    answer = model.next_question({"age": 45.0})
    say("\nSomeone is 45. What to ask next?")
    for column, share in zip(answer.columns[:3], answer.share[:3].tolist(), strict=True):
        say(f"    {column}: knowing it settles {share:.0%} of the variance")
    return answer.to_dict()


def _draw(model: CircuitEstimator, folder: Path, say: Say) -> None:
    """Draw a figure, and write the report."""
    from expecta.report import write_report

    draw(model.split("region", given="smoker == 'yes'"), folder / "smokers-by-region.svg")
    say("\nDrew what smokers cost by region: smokers-by-region.svg")
    write_report(model, folder / "report.html", title="What people cost an insurer")
    say("Wrote a report on the model: report.html")
