"""Predict the paper's four tables with unknown inputs, beside scikit-learn's models.

    python benchmarks/predictions.py [SETS] [complete] [missing] [coverage] [speed]
                                     [resplit] [vtrees]

Rows are those of the authors' splits (their training rows to learn from, their test rows to
judge by), columns those of the raw tables. Everything is measured in one run; a figure is
printed only after its output was checked.
"""

from __future__ import annotations

import csv
import sys
import time

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer

from evaluation.data import DATA, RESULTS, TARGETS, load
from evaluation.metrics import rmse
from expecta import PSDD, CircuitRegressor, LatentTree, Vtree, learn_vtree, using

AUTHORS = {
    "insurance": 4749.9,
    "abalone": 2.600,
    "delta-ailerons": 1.697e-4,
    "elevators": 3.760e-3,
}
found: list[dict[str, object]] = []


def numbers(table: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    """Categories as pandas has them: what boosted trees take best."""
    out = table.copy()
    for column in like:
        if like[column].dtype.kind not in "if":
            out[column] = pd.Categorical(out[column], sorted(like[column].unique()))
    return out


def coded(table: pd.DataFrame, like: pd.DataFrame) -> np.ndarray:
    """All as floats, for imputers."""
    out = numbers(table, like)
    for column in out:
        if out[column].dtype == "category":
            out[column] = out[column].cat.codes.replace(-1, np.nan)
    return out.to_numpy(float)


def hide(table: pd.DataFrame, gone: np.ndarray) -> pd.DataFrame:
    return table.mask(gone)


def check(model: CircuitRegressor, row: pd.DataFrame) -> None:
    """Compare an expectation with a sum over all values of the one column hidden."""
    for column in row:
        holes = row.copy()
        holes[column] = None
        place = model.encoder_.variable(column)
        codes = np.repeat(model.encoder_.codes(row), model.encoder_.cardinalities_[place], axis=0)
        codes[:, place] = np.arange(len(codes))
        log_p = model.refined_.circuit.log_prob(codes)
        weight = np.exp(log_p - log_p.max())
        obvious = weight @ model.circuit_(codes) / weight.sum()
        assert np.isclose(model.predict(holes)[0], obvious, rtol=1e-9)


def complete(name: str, model: CircuitRegressor, seconds: float) -> None:
    X, y, test, y_test = load(name)
    boosted = HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=0)
    theirs = rmse(boosted.fit(numbers(X, X), y).predict(numbers(test, X)), y_test)
    others = [CircuitRegressor(random_state=s, calibration_rows=0).fit(X, y) for s in (1, 2)]
    seeds = [rmse(other.predict(test), y_test) for other in others]
    ours = rmse(model.predict(test), y_test)
    print(
        f"complete rows: {ours:.5g} (other seeds {seeds[0]:.5g}, {seeds[1]:.5g}), boosted trees "
        f"{theirs:.5g}, ratio {ours / theirs:.3f}; authors' circuit {AUTHORS[name]:.5g}; "
        f"{model.n_splits_} splits, penalty {model.penalty_:g}, learned in {seconds:.0f} s, "
        f"{model.circuit_.structure.n_nodes} nodes"
    )
    found.append({"set": name, "what": "complete", "ours": ours, "boosted": theirs})


def missing(name: str, model: CircuitRegressor) -> None:
    X, y, test, y_test = load(name)
    boosted = HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=0)
    boosted.fit(numbers(X, X), y)
    plain = HistGradientBoostingRegressor(random_state=0).fit(coded(X, X), y)
    imputers = {
        "mean": SimpleImputer().fit(coded(X, X)),
        "chained": IterativeImputer(random_state=0).fit(coded(X, X)),
    }
    print("cells hidden: RMSE of expected prediction | boosted trees with NaN | mean | chained")
    rng = np.random.default_rng(0)
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        gone = rng.random(test.shape) < share
        holes = hide(test, gone)
        line = [rmse(model.predict(holes), y_test)]
        line.append(rmse(boosted.predict(numbers(holes, X)), y_test))
        for imputer in imputers.values():
            line.append(rmse(plain.predict(imputer.transform(coded(holes, X))), y_test))
        print(f"  {share:.0%}: " + " | ".join(f"{one:.5g}" for one in line))
        names = ("ours", "boosted", "mean", "chained")
        found.append(
            {"set": name, "what": f"missing {share:.0%}", **dict(zip(names, line, strict=True))}
        )


def covered(
    model: CircuitRegressor,
    test: pd.DataFrame,
    y_test: np.ndarray,
    k: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Coverage and mean width of 90% intervals, k columns hidden at random.

    Hidings are drawn anew until there are 2,000 intervals: few test rows are one thing, which
    of their columns happen to be hidden is another.
    """
    times = -(-2000 // len(test)) if 0 < k < test.shape[1] else 1
    rows = np.tile(np.arange(len(test)), times)
    gone = np.argsort(rng.random((len(rows), test.shape[1])), axis=1) < k
    ends = model.predict_interval(hide(test.iloc[rows], gone))
    y = y_test[rows]
    inside = float(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])))
    return inside, float(np.mean(ends[:, 1] - ends[:, 0]))


def coverage(name: str, model: CircuitRegressor) -> None:
    _, _, test, y_test = load(name)
    rng = np.random.default_rng(0)
    rows = min(len(test), 1000)
    noise = np.sqrt(0.09 / rows)  # of a share of 90%
    inside_band = 0
    print(
        f"90% intervals on {rows} test rows, hidings drawn until there are 2,000 intervals; rows "
        f"alone give a standard error of {noise:.1%}: columns hidden, coverage, mean width"
    )
    for k in range(test.shape[1] + 1):
        inside, width = covered(model, test.iloc[:rows], y_test[:rows], k, rng)
        inside_band += 0.87 <= inside <= 0.93
        print(f"  {k:2}: {inside:.1%}  {width:.4g}", flush=True)
        found.append({"set": name, "what": f"hidden {k}", "coverage": inside, "width": width})
    print(f"  within 87-93%: {inside_band} of {test.shape[1] + 1}")


def resplit(name: str, repeats: int = 5) -> None:
    """Coverage where training and test rows are dealt anew: what is left is not the split."""
    X, y, test, y_test = load(name)
    table, target = pd.concat([X, test]), np.concatenate([y, y_test])
    lines = []
    for seed in range(repeats):
        order = np.random.default_rng(seed).permutation(len(table))
        train, left = order[: len(X)], order[len(X) :][:1000]
        model = CircuitRegressor(random_state=seed).fit(table.iloc[train], target[train])
        rng = np.random.default_rng(seed)
        held = table.iloc[left], target[left]
        lines.append([covered(model, *held, k, rng)[0] for k in range(X.shape[1] + 1)])
    for what, shares in (
        ("mean", np.mean(lines, axis=0)),
        ("least", np.min(lines, axis=0)),
        ("most", np.max(lines, axis=0)),
    ):
        print(f"  {repeats} re-splits, {what}: " + " ".join(f"{share:.1%}" for share in shares))
    for k, share in enumerate(np.mean(lines, axis=0)):
        found.append({"set": name, "what": f"resplit hidden {k}", "coverage": float(share)})


def speed() -> None:
    X, y, test, _ = load("elevators")
    start = time.perf_counter()
    model = CircuitRegressor(random_state=0).fit(X, y)
    ours_fit = time.perf_counter() - start
    start = time.perf_counter()
    imputer = IterativeImputer(random_state=0).fit(X)
    boosted = HistGradientBoostingRegressor(random_state=0).fit(X, y)
    theirs_fit = time.perf_counter() - start
    rng = np.random.default_rng(0)
    many = pd.concat([X, test]).sample(100_000, replace=True, random_state=0)
    many = hide(many, rng.random(many.shape) < 0.5)
    check(model, test.iloc[:1])
    start = time.perf_counter()
    ours = model.predict(many)
    ours_predict = time.perf_counter() - start
    start = time.perf_counter()
    boosted.predict(imputer.transform(many))
    theirs_predict = time.perf_counter() - start
    assert np.all(np.isfinite(ours))
    print(
        f"\nelevators: fit {ours_fit:.1f} s (chained equations, boosted trees {theirs_fit:.1f} s), "
        f"predict 100,000 rows with half of the cells hidden {ours_predict:.2f} s "
        f"({theirs_predict:.2f} s)"
    )


def vtrees(name: str, model: CircuitRegressor) -> None:
    """Other vtrees and densities: what a shape costs g, what p, and what both together."""
    X, y, test, y_test = load(name)
    rng = np.random.default_rng(0)
    holes = hide(test, rng.random(test.shape) < 0.5)
    shapes = {
        "latent tree, Chow and Liu's": model,
        "latent tree, balanced": LatentTree(tree="balanced", random_state=0),
        "PSDD, Chow and Liu's": PSDD(random_state=0),
        "PSDD, bottom-up": learn_vtree(X),
        "PSDD, random": Vtree.random(X.shape[1], seed=0),
        "PSDD, right-linear": Vtree.right_linear(X.shape[1]),
    }
    print("vtrees: nats of a test row, RMSE of complete rows, and with half of the cells hidden")
    for shape, given in shapes.items():
        other = model
        if given is not model:
            key = "vtree" if isinstance(given, Vtree) else "density"
            other = CircuitRegressor(random_state=0, calibration_rows=0, **{key: given}).fit(X, y)
        figures = {
            "nats": float(other.density_.score(test)),
            "complete": rmse(other.predict(test), y_test),
            "half hidden": rmse(other.predict(holes), y_test),
        }
        words = "  ".join(f"{key} {value:.5g}" for key, value in figures.items())
        print(f"  {shape:28} {words}", flush=True)
        found.append({"set": name, "what": shape} | figures)


if __name__ == "__main__":
    words = sys.argv[1:]
    parts = [w for w in words if w not in TARGETS] or ["complete", "missing", "coverage", "speed"]
    if not DATA.exists():
        print(f"skipped: no data at {DATA}; set EXPECTA_DATA")
        sys.exit()
    with using(progress=False):
        for name in [w for w in words if w in TARGETS] or TARGETS:
            if parts == ["speed"]:
                break
            X, y, test, y_test = load(name)
            start = time.perf_counter()
            model = CircuitRegressor(random_state=0).fit(X, y)
            seconds = time.perf_counter() - start
            check(model, test.iloc[:1])
            print(f"\n{name}: {len(X)} rows, {X.shape[1]} columns, {len(test)} test rows")
            if "complete" in parts:
                complete(name, model, seconds)
            for part in (missing, coverage, vtrees):
                if part.__name__ in parts:
                    part(name, model)
            if "resplit" in parts:
                resplit(name)
            sys.stdout.flush()
        if "speed" in parts:
            speed()
    if found:
        RESULTS.mkdir(exist_ok=True)
        with (RESULTS / "predictions.csv").open("w", newline="") as file:
            names = list(dict.fromkeys(key for line in found for key in line))
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(found)
