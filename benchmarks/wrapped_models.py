"""Compare random wrapped models with enumeration: no answer that is called exact may be wrong.

    python -m benchmarks.wrapped_models --count 1000            goes on where it stopped
    python -m benchmarks.wrapped_models --count 40 --first 500  the seeds 500 to 539

A seed makes a table, a model of scikit-learn, XGBoost, LightGBM, CatBoost or interpret, perhaps
in a pipeline, perhaps of a derived class or with a method replaced, and a density. Answers to rows
with hidden cells are compared with the sum over all that the cells could be, each given to the
model itself. What is called exact or checked differs by at most 1e-8 of the largest output (1e-6
where a model computes with 32 bits), what has a bound by that bound; what is sampled by four
standard errors, or else by four of another sample, ten times as large. Results are a line of JSON
for each seed in build/wrapped_models.jsonl.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import ensemble, linear_model, naive_bayes, neighbors, svm, tree
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

from expecta import ChowLiu, ExpectedPredictor, LatentTree, config_context
from expecta.common.trust import Trust
from expecta.tables.number_column import NumberColumn

BUILD = Path(__file__).resolve().parents[1] / "build"
MAX_COMPLETIONS = 40_000  # of a row that are enumerated; rows with more are left out
ROWS = 6  # with hidden cells, of each model
TOL, SINGLE_TOL = 1e-8, 1e-6
SAMPLES = 2_000  # per row, where a model is sampled
RARE = 1e-9  # share of completions that a model may refuse


# -- tables ---------------------------------------------------------------------------


def table(rng):
    """Few distinct values that depend on one another, so that they can be enumerated."""
    n = int(rng.integers(60, 160))
    base = rng.normal(size=n)
    columns = {}
    for name in "abcd"[: rng.integers(2, 5)]:
        values = np.round(np.sort(rng.gamma(2.0, size=rng.integers(2, 5))), 3) + 0.01
        noisy = base + rng.uniform(0.2, 2.0) * rng.normal(size=n)
        place = np.searchsorted(np.quantile(noisy, np.linspace(0, 1, len(values) + 1)[1:-1]), noisy)
        columns[name] = values[place]
    words = []
    for name, levels in [("colour", ["red", "green", "blue"]), ("size", ["large", "small"])]:
        if rng.random() < 0.4:
            noisy = base + rng.normal(size=n)
            columns[name] = np.array(levels)[np.digitize(noisy, [-0.5, 0.7][: len(levels) - 1])]
            words.append(name)
    frame = pd.DataFrame(columns)
    if rng.random() < 0.3:  # the first rows are unlike the last
        frame = frame.sort_values(list(frame.columns)).reset_index(drop=True)
    numbers = [name for name in frame.columns if name not in words]
    y = np.sum([np.sin(2 * frame[name]) * rng.normal() for name in numbers], axis=0)
    y = y + np.prod([frame[name] for name in numbers[:2]], axis=0)
    y = y + sum((frame[name] == frame[name][0]) * rng.normal() for name in words)
    return frame, numbers, words, np.asarray(y + 0.1 * rng.normal(size=n), float)


def pick(rng, choices):
    return choices[int(rng.integers(len(choices)))]


def squares(X):
    return np.asarray(X, float) ** 2


# -- models ---------------------------------------------------------------------------


def regressors(rng):
    n, seed = int(rng.integers(1, 12)), int(rng.integers(1000))
    depth = int(rng.integers(1, 5))
    grown = {"max_depth": depth, "random_state": seed}
    lin, ens = linear_model, ensemble
    return {
        "linear": [
            lambda: lin.LinearRegression(),
            lambda: lin.Ridge(alpha=float(rng.gamma(1.0))),
            lambda: lin.Lasso(alpha=0.01),
            lambda: lin.ElasticNet(alpha=0.01),
            lambda: lin.BayesianRidge(),
            lambda: lin.HuberRegressor(max_iter=500),
            lambda: lin.PoissonRegressor(alpha=0.1),
            lambda: lin.GammaRegressor(alpha=0.1),
            lambda: lin.TweedieRegressor(power=1.5, alpha=0.1),
            lambda: svm.SVR(kernel="linear"),
        ],
        "trees": [
            lambda: tree.DecisionTreeRegressor(**grown),
            lambda: tree.ExtraTreeRegressor(**grown),
            lambda: ens.RandomForestRegressor(n, **grown),
            lambda: ens.ExtraTreesRegressor(n, **grown),
            lambda: ens.GradientBoostingRegressor(
                n_estimators=n, loss=pick(rng, ["squared_error", "huber", "quantile"]), **grown
            ),
            lambda: ens.HistGradientBoostingRegressor(
                max_iter=n,
                max_depth=depth,
                min_samples_leaf=5,
                loss=pick(rng, ["squared_error", "absolute_error", "poisson", "gamma"]),
            ),
            lambda: ens.BaggingRegressor(tree.DecisionTreeRegressor(max_depth=depth), n),
        ],
        "other": [
            lambda: neighbors.KNeighborsRegressor(5),
            lambda: svm.SVR(),
            lambda: ens.VotingRegressor(
                [("a", lin.Ridge()), ("b", tree.DecisionTreeRegressor(max_depth=2))]
            ),
            lambda: ens.AdaBoostRegressor(n_estimators=3, random_state=seed),
        ],
        "xgboost": [lambda: xgboost(rng, "XGBRegressor", n, depth)],
        "lightgbm": [lambda: lightgbm(rng, "LGBMRegressor", n, depth)],
        "catboost": [lambda: catboost(rng, "CatBoostRegressor", n, depth)],
        "interpret": [lambda: interpret(rng, "ExplainableBoostingRegressor")],
    }


def classifiers(rng):
    n, seed = int(rng.integers(1, 8)), int(rng.integers(1000))
    depth = int(rng.integers(1, 4))
    grown = {"max_depth": depth, "random_state": seed}
    lin, ens = linear_model, ensemble
    return {
        "linear": [
            lambda: lin.LogisticRegression(C=float(rng.gamma(1.0)) + 0.1, max_iter=500),
            lambda: lin.SGDClassifier(loss="log_loss", random_state=seed),
            lambda: lin.RidgeClassifier(),
            lambda: svm.LinearSVC(),
            lambda: LinearDiscriminantAnalysis(),
        ],
        "trees": [
            lambda: tree.DecisionTreeClassifier(**grown),
            lambda: ens.RandomForestClassifier(n, **grown),
            lambda: ens.ExtraTreesClassifier(n, **grown),
            lambda: ens.GradientBoostingClassifier(n_estimators=n, **grown),
            lambda: ens.HistGradientBoostingClassifier(
                max_iter=n, max_depth=depth, min_samples_leaf=5
            ),
            lambda: ens.BaggingClassifier(tree.DecisionTreeClassifier(max_depth=depth), n),
            lambda: ens.AdaBoostClassifier(n_estimators=n, random_state=seed),
        ],
        "other": [
            lambda: neighbors.KNeighborsClassifier(5),
            lambda: naive_bayes.GaussianNB(),
            lambda: CalibratedClassifierCV(lin.LogisticRegression(), cv=2),
            lambda: ens.StackingClassifier([("a", naive_bayes.GaussianNB())], cv=2),
        ],
        "xgboost": [lambda: xgboost(rng, "XGBClassifier", n, depth)],
        "lightgbm": [lambda: lightgbm(rng, "LGBMClassifier", n, depth)],
        "catboost": [lambda: catboost(rng, "CatBoostClassifier", n, depth)],
        "interpret": [lambda: interpret(rng, "ExplainableBoostingClassifier")],
    }


def xgboost(rng, name, n, depth):
    options = {"n_estimators": n, "max_depth": depth, "n_jobs": 1, "enable_categorical": True}
    options["booster"] = pick(rng, ["gbtree", "gbtree", "dart", "gblinear"])
    if name == "XGBRegressor":
        options["objective"] = pick(
            rng, ["reg:squarederror", "count:poisson", "reg:gamma", "reg:absoluteerror"]
        )
    if options["booster"] == "gblinear":
        del options["max_depth"]
    if rng.random() < 0.2 and options["booster"] == "gbtree":
        name = name.replace("XGB", "XGBRF")
    return getattr(importlib.import_module("xgboost"), name)(**options)


def lightgbm(rng, name, n, depth):
    options = {"n_estimators": n, "max_depth": depth, "n_jobs": 1, "verbose": -1}
    if name == "LGBMRegressor":
        options["objective"] = pick(rng, ["regression", "poisson", "gamma", "huber", "quantile"])
    if rng.random() < 0.2:
        options |= {"boosting_type": "rf", "subsample": 0.7, "subsample_freq": 1}
    options["min_child_samples"] = 5
    return getattr(importlib.import_module("lightgbm"), name)(**options)


def catboost(rng, name, n, depth):
    options = {"iterations": n, "depth": depth, "verbose": 0, "thread_count": 1}
    if name == "CatBoostRegressor":
        options["loss_function"] = pick(rng, ["RMSE", "Poisson", "MAE"])
    grow = pick(rng, ["SymmetricTree", "Depthwise"])
    options |= {"allow_writing_files": False, "one_hot_max_size": 9, "grow_policy": grow}
    return getattr(importlib.import_module("catboost"), name)(**options)


def interpret(rng, name):
    module = importlib.import_module("interpret.glassbox")
    options = {"outer_bags": 1, "max_rounds": 20, "n_jobs": 1}
    return getattr(module, name)(interactions=int(rng.integers(2)), **options)


# -- pipelines and changes ------------------------------------------------------------


def prepared(rng, numbers, words):
    number = pick(
        rng,
        [
            *("passthrough", StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler()),
            *(
                QuantileTransformer(n_quantiles=20),
                PowerTransformer(),
                SplineTransformer(n_knots=3),
            ),
            PowerTransformer("box-cox"),
            KBinsDiscretizer(3, encode="ordinal", quantile_method="averaged_inverted_cdf"),
            *(FunctionTransformer(f) for f in (np.log, np.log1p, np.sqrt, np.exp, np.square)),
            *(FunctionTransformer(f) for f in (squares, mixed)),
        ],
    )
    word = pick(
        rng, [OneHotEncoder(handle_unknown="ignore"), OrdinalEncoder(), TargetEncoder(cv=2)]
    )
    parts = [("numbers", number, numbers)] + [("words", word, words)] * bool(words)
    steps = [ColumnTransformer(parts, sparse_threshold=0)]
    return steps + [pick(rng, [StandardScaler(), "passthrough"])] * (rng.random() < 0.3)


def mixed(X):
    """Mixes two columns, but only in some rows."""
    X = np.asarray(X, float).copy()
    X[:, 0] += np.where(X[:, 0] > np.float64(2.0), X[:, 1], 0.0)
    return X


def halved(method):
    def output(self, X, *rest, **options):
        values = getattr(super(type(self), self), method)(X, *rest, **options)
        if method == "predict_proba":
            return 0.5 * values + 0.5 / values.shape[1]
        return 0.5 * values

    return output


def main_method(model, classes):
    if not classes:
        return "predict"
    return "predict_proba" if hasattr(model, "predict_proba") else "decision_function"


def derived(model, change, method):
    """Make a model of a class of one's own: one that changes nothing, or how it predicts."""
    kind = type(model)
    defined = {"__module__": "mine", "colour": "red"}
    if change == "class":
        defined[method] = halved(method)
    deep = {} if kind.__module__.startswith("catboost") else {"deep": False}
    return type(kind.__name__, (kind,), defined)(**model.get_params(**deep))


def replaced(model, method):
    """Replace a method of the fitted object, or of a part of it."""
    parts = [model]
    if hasattr(model, "estimators_") and np.size(model.estimators_):
        parts.append(np.ravel(np.array(model.estimators_, dtype=object))[0])
    owner = parts[-1]
    method = method if hasattr(owner, method) else "predict"
    if not hasattr(owner, method):
        owner = model
    old = getattr(owner, method)
    owner.__dict__[method] = lambda X, *rest, **options: 0.5 * old(X, *rest, **options)
    return owner is model


def make(seed):
    """Return a fitted model, its table and what it was made of."""
    rng = np.random.default_rng([17, seed])
    frame, numbers, words, y = table(rng)
    classes = int(pick(rng, [0, 0, 0, 2, 2, 3]))
    makers = (classifiers if classes else regressors)(rng)
    library = pick(rng, ["linear", "trees", "trees", *makers])
    model = pick(rng, makers[library])()
    positive = any(word in repr(model) for word in ("oisson", "amma", "weedie"))
    if classes:
        y = np.digitize(y, np.quantile(y, [0.5, 0.8])[: classes - 1])
        y = y if library == "xgboost" else np.array(["low", "middle", "top"])[y]
    elif positive or rng.random() < 0.1:
        y = np.exp(0.3 * (y - y.mean()))
    method = main_method(model, classes)
    change = pick(rng, ["none"] * 6 + ["harmless", "class", "instance"])
    if change in ("harmless", "class"):
        model = derived(model, change, method)
    inner, pipeline = model, "none"
    raw_words = library in ("xgboost", "lightgbm", "catboost", "interpret") or "Hist" in repr(model)
    if not raw_words or rng.random() < 0.4:
        if raw_words or words or rng.random() < 0.7:
            steps = prepared(rng, numbers, words)
            pipeline = repr(steps[0].transformers[0][1]).replace("\n", "")
            model = make_pipeline(*steps, model)
    elif words:
        pipeline = "categories"
        if library == "catboost":
            model.set_params(cat_features=words)
        elif "gblinear" not in repr(model):
            frame = frame.astype(dict.fromkeys(words, "category"))
        else:
            frame = frame[numbers]
    if not (classes or positive) and pipeline != "categories" and rng.random() < 0.15:
        pipeline += " + target"
        if np.all(y > 0):
            model = TransformedTargetRegressor(model, func=np.log, inverse_func=np.exp)
        else:
            model = TransformedTargetRegressor(model, transformer=StandardScaler())
        inner = None
    elif rng.random() < 0.05 and library in ("linear", "trees"):
        pipeline += " + search"
        model, inner = GridSearchCV(model, {}, cv=2), None
    rows = frame
    if not len(frame.columns.intersection(words)) and pipeline == "none" and rng.random() < 0.5:
        rows = frame.to_numpy()
        rows = rows.astype(np.float32) if rng.random() < 0.2 else rows
    model.fit(rows, y)
    if change == "instance" and inner is None:
        change = "none"
    elif change == "instance":
        replaced(inner, method)
    if rng.random() < 0.05:
        model = FrozenEstimator(model)
    density = pick(rng, [ChowLiu(), LatentTree(states=2, random_state=seed)])
    made = {"seed": seed, "library": library, "model": type(inner or model).__name__}
    made |= {"pipeline": pipeline, "change": change, "classes": classes}
    return model, rows, density, made, rng


# -- answers --------------------------------------------------------------------------


def holes(rows, rng):
    """Rows with some cells hidden, and known numbers beyond those that were seen."""
    frame = pd.DataFrame(rows)
    some = frame.iloc[rng.integers(len(frame), size=ROWS)].reset_index(drop=True).astype(object)
    for name in frame.columns:
        if pd.api.types.is_numeric_dtype(frame[name]) and rng.random() < 0.4:
            value = float(pick(rng, [0.5 * frame[name].min(), 3 * frame[name].max(), -1.0]))
            some.loc[int(rng.integers(ROWS)), name] = value
    hide = rng.random(some.shape) < 0.5
    hide[0] = True
    hide[np.arange(1, ROWS), rng.integers(some.shape[1], size=ROWS - 1)] = True
    return some.mask(hide, None)


def as_given(frame, rows):
    """Rows of the type that the model was fitted to."""
    if isinstance(rows, np.ndarray):
        return frame.astype(np.float64).to_numpy().astype(rows.dtype)
    return frame.astype(rows.dtypes)


def completions(expected, row, rows):
    """All that the unknown cells of a row could be: rows for the model, and probabilities."""
    density = expected.wrapped_.density
    encoder = density.encoder_
    given = pd.DataFrame([row], columns=list(pd.DataFrame(rows).columns))
    codes = encoder.codes(as_query(given, rows))[0]
    ranges = [
        range(card) if code < 0 else [code]
        for code, card in zip(codes.tolist(), encoder.cardinalities_.tolist(), strict=True)
    ]
    if np.prod([float(len(one)) for one in ranges]) > MAX_COMPLETIONS:
        return None
    every = np.array(list(itertools.product(*ranges)), np.int32)
    log_p = density.circuit.log_prob(every)
    if not np.isfinite(log_p.max()):
        return None
    columns, taken = {}, np.ones(len(every), bool)
    for position, name in enumerate(given.columns):
        variable = position if isinstance(rows, np.ndarray) else encoder.variable(name)
        column = encoder.columns_[variable]
        if codes[variable] >= 0:
            columns[name] = [given[name][0]] * len(every)
        elif isinstance(column, NumberColumn):
            columns[name] = column.means[every[:, variable]]
        else:
            columns[name] = column.decode(every[:, variable], None)
    for variable, value in expected.wrapped_.route.refused if expected.wrapped_.route else ():
        taken &= every[:, variable] != value
    weight = np.exp(log_p - log_p.max())
    return as_given(pd.DataFrame(columns), rows), weight / weight.sum(), taken


def as_query(frame, rows):
    if isinstance(rows, np.ndarray):
        return frame.astype(np.float64).to_numpy()
    return frame


def truth(ask, filled, weight, taken):
    """The expectation by enumeration, and the largest output; None if the model refuses.

    A model may refuse numbers beyond all training rows: these have next to no weight.
    """
    try:
        outputs = ask(filled)
    except ValueError:
        if taken.all() or weight[~taken].sum() > RARE:
            return None
        filled, weight = filled[taken], weight[taken]
        try:
            outputs = ask(filled)
        except ValueError:
            return None
    outputs = np.asarray(outputs)
    tol = SINGLE_TOL if outputs.dtype == np.float32 else TOL
    outputs = np.asarray(outputs, float).reshape(len(outputs), -1)
    return weight @ outputs / weight.sum(), max(np.abs(outputs).max(), 1e-12), tol


def predictor(model, density, rows, seed, samples):
    return ExpectedPredictor(model, density, random_state=seed, max_samples=samples, rtol=0.01).fit(
        rows
    )


def answers(expected, query):
    """Expectations and errors, or None if they are refused.  # (rows, outputs)."""
    answer = expected.expected_model.answer(expected.expected_model.rows(query))
    return answer.mean, answer.error


def refuses(expected, query):
    """Whether an answer is refused, as the model refuses every completion."""
    try:
        answers(expected, query)
    except ValueError:
        return True
    return False


def compare(seed):
    """Return what was found for a seed, as what JSON holds."""
    model, rows, density, made, rng = make(seed)
    expected = predictor(model, density, rows, seed, SAMPLES)
    wrapped = expected.expected_model
    trust = wrapped.trust
    some = holes(rows, rng)
    classes = expected.classes_ if made["classes"] else [None]
    sampled = expected.expected_output(classes[-1]).samples_mean
    made |= {"trust": str(trust), "why": wrapped.why, "sampled": bool(sampled)}
    ask = expected._calls.ask
    largest = float(np.abs(np.asarray(ask(rows), float)).max())  # what 32 bits are relative to
    counts, wrong = Counter(), []
    for index in range(len(some)):
        row = some.iloc[index].tolist()
        complete = completions(expected, row, rows)
        found = None if complete is None else truth(ask, *complete)
        query = as_query(some.iloc[[index]], rows)
        if complete is None:
            counts["left out"] += 1
            continue
        if found is None:
            counts["refused" if refuses(expected, query) else "refused by the model only"] += 1
            continue
        obvious, scale, tol = found
        scale = max(scale, largest)
        mean, error = (part[0] for part in answers(expected, query))
        gap = np.abs(mean - obvious)
        if not sampled or not error.any():
            word = "bound" if error.any() else "exact"
            good = np.all(gap <= error + tol * scale)
            if sampled and not good:  # draws that were all alike
                word, good = "sampled", False
        else:
            word, good = "sampled", np.all(gap <= 4 * error + tol * scale)
        if word == "sampled" and not good:
            counts["sampled anew"] += 1
            again = predictor(model, expected.density_, rows, seed + 1, 10 * SAMPLES)
            mean, error = (part[0] for part in answers(again, query))
            gap = np.abs(mean - obvious)
            good = np.all(gap <= 4 * error + tol * scale)
        counts[word] += 1
        if not good:
            wrong.append({"row": [str(cell) for cell in row], "gap": float(gap.max() / scale)})
    called_exact = trust in (Trust.EXACT, Trust.CHECKED) and not sampled
    changed = made["change"] in ("class", "instance") and called_exact
    return made | {"counts": dict(counts), "wrong": wrong, "changed_called_exact": bool(changed)}


def run(first, count, path, say=print):
    """Compare the seeds that a file does not have yet; returns all results of these seeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    results = {one["seed"]: one for one in map(json.loads, lines)}
    wanted = range(first, first + count)
    with path.open("a", encoding="utf-8") as file:
        for seed in wanted:
            if seed in results:
                continue
            with config_context(progress=False), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    results[seed] = compare(seed)
                except Exception as problem:
                    wrong = [{"problem": f"{type(problem).__name__}: {problem}"}]
                    results[seed] = {"seed": seed, "counts": {}, "wrong": wrong}
            file.write(json.dumps(results[seed]) + "\n")
            file.flush()
            if results[seed]["wrong"]:
                say(f"seed {seed}: {json.dumps(results[seed])}")
    return [results[seed] for seed in wanted]


def summary(results):
    """What was compared, in a few lines."""
    counts = sum((Counter(one["counts"]) for one in results), Counter())
    wrong = [one["seed"] for one in results if one["wrong"]]
    by = {
        name: dict(Counter(one.get(name, "none") for one in results))
        for name in ("library", "change", "trust")
    }
    return {
        "models": len(results),
        "seeds": [results[0]["seed"], results[-1]["seed"]],
        "answers": dict(counts),
        "wrong": wrong,
        **by,
    }


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("benchmarks.wrapped_models", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--count", type=int, default=1000, help="how many models")
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--path", type=Path, default=BUILD / "wrapped_models.jsonl")
    given = parser.parse_args(words)
    found = summary(run(given.first, given.count, given.path))
    print(json.dumps(found, indent=2))
    return int(bool(found["wrong"]))


if __name__ == "__main__":
    raise SystemExit(main())
