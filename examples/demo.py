"""Predict with unknown inputs, and ask a model about groups of people.

First what ``expecta demo`` does: learn what people cost an insurer, predict with missing values,
ask about groups, draw, report. Then how expected predictions compare with boosted trees that are
given missing values, and with means filled in, for patients of whom 0 to 90% of the measurements
are missing. The tables come with Expecta and scikit-learn. Nothing is downloaded.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from expecta import CircuitClassifier, CircuitRegressor, Encoder
from expecta.cli.demo import people, run

BUILD = Path("build/demo")
console = Console(width=100, highlight=False)


def output_folder() -> Path:
    """Return build/demo, or a temporary folder where the source tree cannot be written to."""
    try:
        BUILD.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=BUILD):
            return BUILD
    except OSError:
        return Path(tempfile.mkdtemp(prefix="expecta-demo-"))


def predict_charges(path: Path) -> None:
    """Predict the charges of held-out people, with more and more unknown columns."""
    console.rule("Insurance: people held out, 0 to 5 of 6 columns unknown")
    train, test = (table.to_pydict() for table in people())
    charges, y = (np.array(table.pop("charges")) for table in (train, test))
    model = CircuitRegressor.load(path)
    numbers = _numbers(train)
    boosted = HistGradientBoostingRegressor(random_state=0).fit(numbers, charges)
    report = Table(
        "unknown columns",
        "expected prediction",
        "boosted trees, given missing values",
        "90% interval covers",
        "its width",
        title=f"root mean squared error on {len(y)} people",
    )
    rng = np.random.default_rng(0)
    for unknown in range(6):
        missing = np.argsort(rng.random((len(y), 6)), axis=1) < unknown
        rows = {
            name: [None if hidden else cell for cell, hidden in zip(cells, gone, strict=True)]
            for (name, cells), gone in zip(test.items(), missing.T, strict=True)
        }
        ends = model.predict_interval(rows)
        inside = np.mean((ends[:, 0] <= y) & (y <= ends[:, 1]))
        ours = np.sqrt(np.mean((model.predict(rows) - y) ** 2))
        theirs = np.sqrt(np.mean((boosted.predict(_numbers(rows)) - y) ** 2))
        report.add_row(
            str(unknown),
            f"{ours:,.0f}",
            f"{theirs:,.0f}",
            f"{inside:.0%}",
            f"{np.mean(ends[:, 1] - ends[:, 0]):,.0f}",
        )
    console.print(report)


def _numbers(table: dict[str, list[Any]]) -> np.ndarray[Any, Any]:
    """Turn words into numbers, and what is unknown into NaN, for other people's models."""
    words = {"sex": ["female", "male"], "smoker": ["no", "yes"]}
    words["region"] = ["northeast", "northwest", "southeast", "southwest"]
    columns = [
        [np.nan if c is None else words[name].index(c) if name in words else c for c in cells]
        for name, cells in table.items()
    ]
    return np.array(columns, float).T


def classify_patients() -> None:
    """Hide the inputs of a classifier, and average it over what they could be."""
    console.rule("Breast cancer: 30 measurements, some of them missing")
    data = load_breast_cancer()
    X, X_test, y, y_test = train_test_split(data.data, data.target, random_state=0)
    model = CircuitClassifier(
        encoder=Encoder(max_bins=4), max_bins=32, max_splits=4, random_state=0
    ).fit(X, y)
    console.print(f"{model.n_splits_} splits, {model.circuit_}", markup=False)
    imputed = make_pipeline(
        SimpleImputer(), StandardScaler(), LogisticRegression(C=0.1, max_iter=1000)
    ).fit(X, y)
    report = Table(
        "missing",
        "expected probability",
        "means filled in, logistic regression",
        "milliseconds",
        title=f"log-loss (accuracy) on {len(y_test)} patients",
    )
    rng = np.random.default_rng(0)
    with console.status("compiling: half a minute the first time, then cached"):
        model.predict_proba(np.full((1, 30), np.nan))
    for share in (0.0, 0.25, 0.5, 0.75, 0.9):
        rows = np.where(rng.random(X_test.shape) < share, np.nan, X_test)
        start = time.perf_counter()
        ours, error = model.predict_proba(rows, return_error=True)
        spent = 1000 * (time.perf_counter() - start)
        assert np.all(error <= 1.01e-9)
        scores = [
            f"{log_loss(y_test, q):.3f} ({np.mean(q.argmax(axis=1) == y_test):.1%})"
            for q in (ours, imputed.predict_proba(rows))
        ]
        report.add_row(f"{share:.0%}", *scores, f"{spent:.0f}")
    console.print(report)


if __name__ == "__main__":
    started = time.perf_counter()
    console.rule("expecta demo")
    folder = output_folder()
    run(folder, lambda text: console.print(text, markup=False, soft_wrap=True))
    predict_charges(folder / "charges.expecta")
    classify_patients()
    console.print(f"All in {time.perf_counter() - started:.0f} seconds.")
    paths = Path(sys.executable).parent / "expecta", folder / "charges.expecta"
    command = " serve ".join(quote(str(path)) for path in paths)
    page = "http://127.0.0.1:8000"
    console.print(f"Ask the model on a page: {command}, then open {page}", soft_wrap=True)
