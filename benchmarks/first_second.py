"""Measure what a person waits for: the first call, fits, single rows, sampled probabilities.

    python -m benchmarks.first_second                     every line, for many minutes
    python -m benchmarks.first_second proba row           lines whose names have one of these words
    python -m benchmarks.first_second --before ../other   and the same with another copy's package

A line has wall and CPU seconds here, what was measured when the goals were set, and the goal, both
in wall seconds on two idle cores. Every output is checked before its time is printed. First calls
run in processes of their own, with an empty cache of compiled code. Beside them the machine's rate
of NumPy's matrix products: divide by it to compare machines.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
ERROR = 0.002  # standard error of sampled probabilities
HIDDEN = 0.4
TRUTH = 20_000  # samples of a row whose mean checks the answer


# -- clocks ---------------------------------------------------------------------------


def timed(do, times: int = 1) -> tuple[float, float]:
    """Least wall and CPU seconds of a call, of five rounds where it is called often."""
    best = [np.inf, np.inf]
    for _ in range(5 if times > 1 else 1):
        start = time.perf_counter(), time.process_time()
        for _ in range(times):
            do()
        spent = time.perf_counter() - start[0], time.process_time() - start[1]
        best = [min(a, b / times) for a, b in zip(best, spent, strict=True)]
    return best[0], best[1]


def in_process(arguments: list[str], cache_folder: str, folder: str) -> tuple[float, float, str]:
    """Wall and CPU seconds of a process of its own, and what it printed.

    It may keep bytecode, as that of an installed package is kept.
    """
    environment = dict(os.environ, NUMBA_CACHE_DIR=cache_folder)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before, start = os.times(), time.perf_counter()
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=True
    )
    wall, after = time.perf_counter() - start, os.times()
    cpu = after.children_user + after.children_system
    return wall, cpu - before.children_user - before.children_system, done.stdout


def product_rate() -> float:
    """Billions of multiplications and additions a second in NumPy's matrix products."""
    a = np.random.default_rng(0).normal(size=(1500, 1500))
    return 2 * 1.5**3 / timed(lambda: a @ a, 3)[0]


# -- models ---------------------------------------------------------------------------


@cache
def insurance():
    from expecta import CircuitRegressor
    from expecta.datasets import load_insurance

    table = load_insurance()
    charges = table.pop("charges")
    return table, charges, CircuitRegressor(random_state=0).fit(table, charges)


@cache
def census(n_rows: int = 32_600, n_columns: int = 14):
    from .simulated_tables import simulate

    return simulate(n_rows, n_columns)


def booster(kind: str, n_columns: int, n_classes: int):
    """A boosted classifier behind an encoder, wrapped, and rows with 40% unknown."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    from expecta import ExpectedPredictor

    table, y, _ = census(12_600)
    table = table.iloc[:, :n_columns].dropna()
    y = y[table.index]
    label = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    words = [name for name in table if table[name].dtype.kind not in "fi"]
    model = HistGradientBoostingClassifier(random_state=0)
    if kind == "xgboost":
        from xgboost import XGBClassifier

        model = XGBClassifier(n_estimators=100, random_state=0, n_jobs=1)
    encoder = make_column_transformer((OrdinalEncoder(), words), remainder="passthrough")
    model = make_pipeline(encoder, model).fit(table, label)
    expected = ExpectedPredictor(model).fit(table)
    rng = np.random.default_rng(1)
    rows = table.sample(10_000, replace=True, random_state=0).reset_index(drop=True)
    return expected, rows.mask(rng.random(rows.shape) < HIDDEN)


def probabilities(kind: str, n_columns: int, n_classes: int, n_rows: int):
    """Measure predict_proba at a standard error of 0.002, against many samples of some rows."""
    expected, rows = booster(kind, n_columns, n_classes)
    rows = rows[:n_rows]
    model = expected.expected_model
    model._rtol = ERROR / float(model.scale.max())
    expected.predict_proba(rows[:5])
    answers = []
    seconds = timed(
        lambda: answers.append(expected.predict_proba(rows, return_error=True)),
    )
    proba, error = answers[0]
    some = np.flatnonzero(rows.isna().any(axis=1))[:20]
    codes = model.rows(rows.iloc[some]).codes
    drawn = model.density.circuit.sample(TRUTH, given=codes, seed=1)
    truth = model.sample_outputs(drawn.reshape(-1, codes.shape[1]), np.random.default_rng(2))
    truth = truth.reshape(len(some), TRUTH, -1)
    loose = np.hypot(error[some], truth.std(axis=1) / np.sqrt(TRUTH))
    assert np.all(np.abs(proba[some] - truth.mean(axis=1)) <= 5 * loose + 1e-9)
    assert np.median(error) <= ERROR
    return seconds


# -- lines ----------------------------------------------------------------------------


def readme(again: bool):
    """The README's first snippet in a new process, whose output is its model's file."""
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S).group(1)
    code += "\nprint(model.predict(someone)[0])"
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as kept:
        spent = in_process(["-c", code], kept, folder)
        spent = in_process(["-c", code], kept, folder) if again else spent
        assert 30_000 < float(spent[2].split()[-1]) < 50_000
    return spent[:2]


def fit(n_rows: int, n_columns: int):
    from expecta import CircuitRegressor

    insurance()  # so that nothing is compiled
    if n_rows == 1338:
        table, y, _ = insurance()
    else:
        table, y, _ = census(n_rows, n_columns)
    model = CircuitRegressor(random_state=0)
    seconds = timed(lambda: model.fit(table, y))
    assert np.mean((model.predict(table) - y) ** 2) < 0.6 * np.var(y)
    return seconds


def one_row(what: str):
    table, _, model = insurance()
    row = {"age": 45, "smoker": "yes", "bmi": 28.0}
    frame = table.iloc[[7]].copy()
    frame[["children", "region"]] = None
    ask = {
        "dict": lambda: model.predict(row),
        "frame": lambda: model.predict(frame),
        "std": lambda: model.predict(row, return_std=True),
        "interval": lambda: model.predict_interval(row),
    }[what]
    many = model.predict({name: [value] * 2 for name, value in row.items()})
    np.testing.assert_allclose(model.predict(row), many[:1], rtol=1e-10)
    ask()
    return timed(ask, 100)


def abalone():
    from .evaluation.data import authors_pair

    pair = authors_pair("abalone")
    row = np.full((1, pair.p.n_variables), -1)
    row[0, ::2] = pair.p.sample(1, seed=0)[0, ::2]
    np.testing.assert_allclose(pair.expectation(row)[0], pair.expectation(np.repeat(row, 3, 0))[2])
    return timed(lambda: pair.expectation(row), 100)


def booster_row():
    from sklearn.ensemble import HistGradientBoostingRegressor

    from expecta import ExpectedPredictor

    table, charges, _ = insurance()
    numbers = table[["age", "bmi", "children"]]
    model = HistGradientBoostingRegressor(max_iter=100, random_state=0).fit(numbers, charges)
    expected = ExpectedPredictor(model).fit(numbers)
    row = {"age": 45, "children": 2}
    unknown = {"age": [45] * 2, "children": [2] * 2}
    np.testing.assert_allclose(expected.predict(row), expected.predict(unknown)[:1])
    return timed(lambda: expected.predict(row), 100)


def shapley():
    from expecta import CircuitRegressor

    table, y, _ = census(2000)
    table = table.dropna()
    model = CircuitRegressor(random_state=0).fit(table, y[table.index])
    answers = []
    model.shapley(table.iloc[[0], :3])
    seconds = timed(lambda: answers.append(model.shapley(table.iloc[[5]])))
    (answer,) = answers
    assert answer.exact.all()
    np.testing.assert_allclose(answer.base + answer.values.sum(), answer.prediction[0])
    return seconds


def shell():
    with tempfile.TemporaryDirectory() as folder:
        insurance()[2].save(f"{folder}/charges.expecta")
        kept = os.environ.get("NUMBA_CACHE_DIR", "")
        question = ["-m", "expecta", "ask", "charges.expecta", "smoker == 'yes' and age < 30"]
        in_process(question, kept, folder)
        spent = in_process(question, kept, folder)
    assert "charges" in spent[2]
    return spent[:2]


def imports():
    kept = os.environ.get("NUMBA_CACHE_DIR", "")
    code = ["-c", "from expecta import CircuitRegressor; print(CircuitRegressor.__name__)"]
    spent = [in_process(code, kept, ".") for _ in range(3)]
    assert spent[0][2].strip() == "CircuitRegressor"
    return tuple(min(column) for column in list(zip(*spent, strict=True))[:2])


def report():
    from expecta import CircuitRegressor
    from expecta.report.write import write_report

    table, y, _ = census()
    model = CircuitRegressor(random_state=0).fit(table, y)
    with tempfile.TemporaryDirectory() as folder:
        seconds = timed(lambda: write_report(model, f"{folder}/page.html"))
        assert "</html>" in Path(folder, "page.html").read_text()
    return seconds


# name: (how it is measured, wall seconds when the goals were set, goal)
LINES = {
    "README, first time": (lambda: readme(False), 67.0, 25.0),
    "README, new process": (lambda: readme(True), 6.7, 2.5),
    "fit 1,338 x 6, warm": (lambda: fit(1338, 6), 6.0, 1.5),
    "fit 400 x 21": (lambda: fit(400, 21), 7.5, 2.0),
    "fit 32,600 x 14": (lambda: fit(32_600, 14), 55.0, 12.0),
    "one row, dict": (lambda: one_row("dict"), 0.0016, 0.0005),
    "one row, frame": (lambda: one_row("frame"), 0.007, 0.001),
    "one row, return_std": (lambda: one_row("std"), 0.013, 0.001),
    "one row, interval": (lambda: one_row("interval"), 0.030, 0.003),
    "one row, abalone pair": (abalone, 0.0031, 0.0003),
    "one row, 100 trees": (booster_row, 0.009, 0.002),
    "proba, HGB, 10,000 x 14": (lambda: probabilities("hgb", 14, 2, 10_000), 149.0, 12.0),
    "proba, XGBoost, 10,000 x 14": (lambda: probabilities("xgboost", 14, 2, 10_000), 137.0, 12.0),
    "proba, 4 classes, 1,000 x 7": (lambda: probabilities("hgb", 7, 4, 1000), 218.0, 5.0),
    "shapley, 14 columns": (shapley, 18.0, 1.0),
    "expecta ask, shell": (shell, 4.0, 1.0),
    "import": (imports, 1.85, 0.7),
    "report of 32,600 x 14": (report, 25.0, 5.0),
}


def measure(name: str) -> tuple[float, float] | str:
    """Wall and CPU seconds of a line, or why there are none."""
    from .evaluation.data import AbsentError

    try:
        return LINES[name][0]()
    except (AbsentError, ImportError) as absent:
        return str(absent)


def elsewhere(name: str, other: Path) -> tuple[float, float] | str:
    """Measure a line with the package of another copy, in a process of its own."""
    environment = dict(os.environ, PYTHONPATH=str(other.resolve() / "src"))
    command = [sys.executable, "-m", "benchmarks.first_second", "--json", name]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    lines = done.stdout.splitlines() or [""]
    return json.loads(lines[-1]) if not done.returncode else done.stderr.splitlines()[-1]


def main() -> None:
    """Print a line for each thing that is waited for."""
    warnings.simplefilter("ignore")  # of columns that a row leaves out
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--before", type=Path)
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    names = [n for n in LINES if not chosen.words or any(w in n for w in chosen.words)]
    if chosen.json:
        print(json.dumps(measure(names[0])))
        return
    load = os.getloadavg()[0]
    print(f"NumPy products {product_rate():.1f} Gflop/s, {os.cpu_count()} cores, load {load:.1f}")
    head = f"{'seconds':<28}{'wall':>10}{'CPU':>10}{'before':>10}{'goal':>10}"
    print(head + (f"{'other wall':>12}{'other CPU':>11}" if chosen.before else ""))
    for name in names:
        spent, (_, before, goal) = measure(name), LINES[name]
        figures = (
            f"{spent:>20}" if isinstance(spent, str) else "".join(f"{x:>10.4g}" for x in spent)
        )
        line = f"{name:<28}{figures}{before:>10.4g}{goal:>10.4g}"
        if chosen.before:
            other = elsewhere(name, chosen.before)
            line += (
                f"  {other}" if isinstance(other, str) else "".join(f"{x:>12.4g}" for x in other)
            )
        print(line, flush=True)


if __name__ == "__main__":
    main()
