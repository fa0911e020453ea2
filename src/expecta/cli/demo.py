"""Run the demonstration: learn the insurance table, predict with missing values, ask, report."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from expecta.ask.groups import Comparison
from expecta.ask.printed_answer import text_table
from expecta.batches.predict_batches import with_columns
from expecta.cli import table_files
from expecta.cli.learning import Task, held_out, learn
from expecta.cli.output import draw_plot
from expecta.datasets import load_insurance
from expecta.estimators.circuit_estimator import CircuitEstimator
from expecta.estimators.row_predictions import predict_rows

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
MISSING_SHARE = 0.5  # of the cells, which are hidden
HELD_OUT = 200  # people whom the model is not trained on


def people() -> tuple[Any, Any]:
    """Return the insurance table as two Arrow tables: to learn from, and people held out."""
    import pyarrow as pa

    table = pa.table(load_insurance(as_frame="dict"))
    order = np.random.default_rng(1).permutation(table.num_rows)
    return table.take(order[HELD_OUT:]), table.take(order[:HELD_OUT])


def run(folder: Path, say: Say) -> dict[str, Any]:
    """Learn, predict, ask, draw and report into a folder; return all results."""
    started = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    known, held = people()
    model, learned = _learn(known, folder, say)
    results: dict[str, Any] = {
        "folder": str(folder),
        "learned": learned,
        "predicted": _predict(model, held, folder, say),
        "questions": _ask(model, say),
        "next_question": _next(model, say),
    }
    _draw(model, folder, say)
    results["files"] = sorted(path.name for path in folder.iterdir())
    results["seconds"] = time.perf_counter() - started
    path, rows = (quote(str(folder / name)) for name in ("charges.expecta", "incomplete.csv"))
    say(f"\nDone in {results['seconds']:.0f} seconds; {folder} has {', '.join(results['files'])}.")
    say("\nTry next:")
    for line in (
        f"ask {path} \"smoker == 'no' and age >= 50\"",
        f"split {path} region smoker",
        f"next {path} --row age=45,smoker=yes --cost bmi=20",
        f"explain {path} {rows} --row 3",
        f"audit {path} --sensitive sex",
        "fit your.csv --target column",
        f"serve {path}   # and open http://127.0.0.1:8000, a page to ask it on",
    ):
        say(f"  expecta {line}")
    return results


def _learn(table: Any, folder: Path, say: Say) -> tuple[CircuitEstimator, dict[str, Any]]:
    say("Insurance: six columns on people, and what each cost the insurer in a year.")
    say(f"Learning from {table.num_rows} of them, {HELD_OUT} are held out: some seconds;")
    say("the first time on a machine it compiles too, for a minute or two.")
    task = Task.from_table(table, "charges", (), None, False)
    model = learn(task, "tree", 256, 0)
    model.save(folder / "charges.expecta")
    learned = held_out(model)
    say(f"  {model.n_splits_} splits; {learned['summary']}.")
    return model, learned


def _predict(model: CircuitEstimator, held: Any, folder: Path, say: Say) -> dict[str, Any]:
    """Hide half of the cells of the people held out, and predict for them."""
    import pyarrow as pa

    rng = np.random.default_rng(1)
    charges = held.column("charges").to_numpy()
    hidden = {
        name: pa.array(held.column(name).to_pylist(), mask=rng.random(HELD_OUT) < MISSING_SHARE)
        for name in held.column_names
        if name != "charges"
    }
    table = pa.table(hidden)
    table_files.write(table, str(folder / "incomplete.csv"))
    added = predict_rows(model, table, std=True, interval=0.9).to_arrow()
    table = with_columns(table, added)
    table_files.write(table, str(folder / "predictions.csv"))
    low, high = (np.asarray(added.column(f"charges_{end}")) for end in ("low", "high"))
    inside = float(np.mean((low <= charges) & (charges <= high)))
    say(f"\nPredicting for the {HELD_OUT}, {MISSING_SHARE:.0%} of the cells unknown, for example:")
    shown = table.slice(0, 5).to_pydict()
    for line in text_table(
        {name: [_cell(cell) for cell in cells] for name, cells in shown.items()}
    ):
        say(f"  {line}")
    say(
        f"  predicted: the model averaged over the unknown cells, exact given the density;\n"
        f"  std: its spread over them; low to high: 90% intervals for the charges, which contain "
        f"{inside:.0%} of them."
    )
    return {"rows": HELD_OUT, "inside": inside}


def _cell(value: object) -> str:
    if value is None:
        return "?"
    return f"{value:,.1f}" if isinstance(value, float) else str(value)


def _ask(model: CircuitEstimator, say: Say) -> list[dict[str, Any]]:
    """Ask the paper's questions, in words."""
    say("\nAsking about groups:")
    answers = []
    for question, a, b in QUESTIONS:
        answer = model.compare(a, b)
        answers.append({"question": question, **answer.to_dict()})
        for line in _sentences(question, answer):
            say(line)
    return answers


def _sentences(question: str, answer: Comparison) -> list[str]:
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

    draw_plot(model.split("region", given="smoker == 'yes'"), folder / "smokers-by-region.svg")
    say("\nDrew what smokers cost by region: smokers-by-region.svg")
    write_report(model, folder / "report.html", title="What people cost an insurer")
    say("Wrote a report on the model: report.html")
