"""Expected predictions of fitted models, against what else can be done about holes.

    python benchmarks/models.py [SETS] [quality] [speed] [models=ridge,forest,...] [draws=N]
        [masks=N] [density=tree,psdd]

quality: the paper's four tables, the authors' rows, raw columns. Models are fitted to complete
training rows; test rows have holes, at random (10 to 90% of the cells) or depending on what is
seen or on what is not (pyampute: half of the columns of 50% and 90% of the rows). Every method
but the last leaves the model as it is. The figures are root mean squared errors, every cell,
each over several masks: 5, 3, 2 and 1 for the four tables, or what ``masks`` says.

speed: XGBoost with 300 trees of depth 6 on elevators, 10,000 rows with half of the columns
unknown: the exact mean beside the mean of draws at a standard error of 1%; then what trees,
depth and rows cost.
"""

from __future__ import annotations

import csv
import sys

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evaluation.data import DATA, RESULTS, TARGETS, AbsentError, load
from evaluation.holes import depending, patterns_for
from evaluation.methods import Coded
from evaluation.metrics import rmse
from evaluation.part_d import BOOSTED, boosted
from expecta import PSDD, ExpectedPredictor, LatentTree, using

RATES = range(10, 100, 10)
MASKS = {"insurance": 5, "abalone": 3, "delta-ailerons": 2, "elevators": 1}
DENSITIES = {
    "tree": LatentTree(random_state=0),
    "psdd": PSDD(vtree="bottom-up", start="independent", random_state=0),
}
found: list[dict[str, object]] = []


def models() -> dict[str, object]:
    """All that are installed, with their defaults."""
    out = {
        "ridge": make_pipeline(StandardScaler(), Ridge()),
        "forest": RandomForestRegressor(min_samples_leaf=3, n_jobs=2, random_state=0),
        "boosting": GradientBoostingRegressor(random_state=0),
    }
    try:
        from xgboost import XGBRegressor

        out["xgboost"] = XGBRegressor(n_jobs=2)
    except ImportError:
        print("skipped: no xgboost")
    try:
        from lightgbm import LGBMRegressor

        out["lightgbm"] = LGBMRegressor(verbose=-1, n_jobs=2)
    except ImportError:
        print("skipped: no lightgbm")
    return out


def holes(X: pd.DataFrame, seed: int):
    """Yield names of mechanisms and masks."""
    rng = np.random.default_rng(seed)
    for rate in RATES:
        yield f"MCAR {rate}%", rng.random(X.shape) < rate / 100
    for mechanism in ("MAR", "MNAR"):
        for share in (50, 90):
            try:
                gone = depending(X, mechanism, share / 100, seed)
            except AbsentError as why:
                print(f"  skipped: {why}")
                return
            yield f"{mechanism} {share}% of rows", gone


def quality(name: str, wanted: dict[str, object], draws: int, masks: int, densities) -> None:
    X, y, test, y_test = load(name)
    X, test = X.reset_index(drop=True), test.reset_index(drop=True)
    coded = Coded(X)
    E = coded(X)
    imputers = {
        "mean": SimpleImputer().fit(E),
        "median": SimpleImputer(strategy="median").fit(E),
        "neighbours": KNNImputer().fit(E),
        "chained": IterativeImputer(random_state=0).fit(E),
    }
    multiple = IterativeImputer(random_state=0, sample_posterior=True).fit(E)
    fitted = {key: clone(model).fit(E, y) for key, model in wanted.items()}
    ours = {}
    for number, kind in enumerate(densities):
        density = clone(DENSITIES[kind]).fit(X)
        for key, model in fitted.items():
            whole = make_pipeline(coded.step, model)
            one = ExpectedPredictor(whole, density).fit(X)
            assert one.answers_.route is not None, one.answers_.why
            np.testing.assert_allclose(one.predict(test), model.predict(coded(test)), rtol=1e-9)
            ours[key, f"expected {kind}" if number else "expected"] = one
    squares: dict[tuple[str, str], dict[str, list[float]]] = {}
    for seed in range(masks):
        for what, gone in holes(test, seed):
            raw = test.astype(object).mask(gone)
            raw = raw.astype({c: float for c in test if c not in coded.words})
            F = coded(raw)
            filled = {key: imputer.transform(F) for key, imputer in imputers.items()}
            drawn = []
            for one in range(draws):
                multiple.random_state_ = np.random.RandomState(one)
                drawn.append(multiple.transform(F))
            masked = coded(X.astype(object).mask(patterns_for(gone, len(X))))
            for key, model in fitted.items():
                told = {how: one.predict(raw) for (whose, how), one in ours.items() if whose == key}
                told |= {one: model.predict(rows) for one, rows in filled.items()}
                told["multiple"] = np.mean([model.predict(rows) for rows in drawn], axis=0)
                if key in ("forest", "xgboost", "lightgbm"):
                    told["native"] = model.predict(F)
                    again = clone(model).fit(np.concatenate([E, masked]), np.append(y, y))
                    told["retrained"] = again.predict(F)
                line = squares.setdefault((what, key), {})
                for how, values in told.items():
                    line.setdefault(how, []).append(rmse(values, y_test) ** 2)
    print(f"\n{name}: RMSE, {masks} masks")
    for (what, key), line in squares.items():
        means = {how: float(np.sqrt(np.mean(values))) for how, values in line.items()}
        kept = {how: value for how, value in means.items() if how != "retrained"}
        best = min(kept, key=kept.get)
        words = "  ".join(f"{how} {value:.4g}" for how, value in means.items())
        print(f"  {what:18} {key:9} {words}   best: {best}", flush=True)
        found.append({"set": name, "holes": what, "model": key} | means | {"best": best})


def speed() -> None:
    print("\nXGBoost on elevators, half of the columns unknown")
    for trees, depth, n in BOOSTED:
        line = boosted(trees, depth, n)
        print(
            f"  {trees} trees of depth {depth}, {n} rows: {line['wall seconds']:.2f} s, written in "
            f"{line['written in']:.1f} s, {line['boxes']} boxes",
            flush=True,
        )
        new = {"set": "elevators", "trees": trees, "depth": depth, "rows": n}
        new["seconds"] = line["wall seconds"]
        for key in [key for key in line if key.startswith("sampling")]:
            print(f"    {key}: {line[key]:.1f} s, {line[key] / new['seconds']:.0f} times as long")
            new[key] = line[key]
        found.append(new)


def keep() -> None:
    """Write what was found; of tables that were not run again the file keeps what it has."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "models.csv"
    new = [{key: str(value) for key, value in line.items()} for line in found]
    ran = {(line["set"], "holes" in line) for line in new}
    old = list(csv.DictReader(path.open())) if path.exists() else []
    old = [{key: value for key, value in line.items() if value} for line in old]
    new = [line for line in old if (line["set"], "holes" in line) not in ran] + new
    with path.open("w", newline="") as file:
        names = list(dict.fromkeys(key for line in new for key in line))
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(new)


if __name__ == "__main__":
    words = sys.argv[1:]
    options = dict(word.split("=") for word in words if "=" in word)
    if not DATA.exists():
        print(f"skipped: no data at {DATA}; set EXPECTA_DATA")
        sys.exit()
    wanted = models()
    if "models" in options:
        wanted = {key: wanted[key] for key in options["models"].split(",")}
    parts = [word for word in words if word in ("quality", "speed")] or ["quality", "speed"]
    with using(progress=False):
        if "quality" in parts:
            for name in [word for word in words if word in TARGETS] or TARGETS:
                masks = int(options.get("masks", MASKS[name]))
                densities = options.get("density", "tree").split(",")
                quality(name, wanted, int(options.get("draws", 20)), masks, densities)
                keep()
        if "speed" in parts:
            speed()
            keep()
