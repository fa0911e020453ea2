"""What is compared in part B: models, and ways to let them predict rows with holes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from expecta import (
    CircuitClassifier,
    CircuitRegressor,
    ConditionalSampler,
    ExpectedPredictor,
    LatentTree,
)

from .data import AbsentError, Task
from .holes import hide, masks, patterns_for
from .metrics import LEVELS

DRAWS = 20  # of multiple imputation
COMPLETIONS = 5  # of training rows with holes, for the models that expected predictions are of
BATCH = 10  # draws that Monte Carlo predicts together
ENUMERATED, COMPLETE = 10, 20_000  # rows whose completions are all tried, and how many at most
SAMPLES = 1000  # at most, for each row of a model whose expectation is sampled
WAYS = (
    "expected",
    "monte carlo",
    "native",
    "mean",
    "median",
    "indicator",
    "neighbours",
    "chained",
    "multiple",
    "multiple, target",
    "forest",
)
WITH_INTERVALS = ("expected", "native", "mean", "chained")  # of boosting, where asked for
NEAREST = 100  # rows that were held out, by their number of holes, for an interval of rivals


class Coded:
    """Columns as numbers, categories one-hot; what is unknown stays unknown in all of its bits."""

    def __init__(self, X: pd.DataFrame) -> None:
        self.words = [name for name in X if X[name].dtype.kind not in "iuf"]
        self.one_hot = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
        self.step = make_column_transformer(
            (self.one_hot, self.words), remainder="passthrough", verbose_feature_names_out=False
        ).fit(X)

    def __call__(self, X: pd.DataFrame) -> np.ndarray:
        out = self.step.transform(X)
        names = self.step.get_feature_names_out()
        for word in self.words:
            bits = [i for i, name in enumerate(names) if name.startswith(f"{word}_")]
            out[np.ix_(np.flatnonzero(X[word].isna()), bits)] = np.nan
        return out.astype(float)


def model(name: str, kind: str) -> Any:
    """A model with its library's defaults."""
    regression = kind == "regression"
    if name == "linear":
        last = Ridge() if regression else LogisticRegression(max_iter=1000)
        return make_pipeline(StandardScaler(), last)
    if name == "boosting":
        kinds = HistGradientBoostingRegressor, HistGradientBoostingClassifier
        return kinds[not regression](random_state=0)
    try:
        if name == "xgboost":
            from xgboost import XGBClassifier, XGBRegressor

            return (XGBRegressor if regression else XGBClassifier)(n_jobs=1)
        from lightgbm import LGBMClassifier, LGBMRegressor

        return (LGBMRegressor if regression else LGBMClassifier)(verbose=-1, n_jobs=1)
    except ImportError:
        raise AbsentError(f"no {name}") from None


MODELS = ("boosting", "xgboost", "lightgbm", "linear")


class Scaled:
    """An imputer that sees columns of unit variance; known cells stay as they are."""

    def __init__(self, imputer: Any) -> None:
        self.imputer, self.scale = imputer, StandardScaler()

    def fit(self, F: np.ndarray) -> Scaled:
        self.imputer.fit(self.scale.fit_transform(F))
        return self

    def transform(self, F: np.ndarray) -> np.ndarray:
        filled = self.scale.inverse_transform(self.imputer.transform(self.scale.transform(F)))
        return np.where(np.isnan(F), filled, F)


def imputer(name: str) -> Scaled:
    trees = ExtraTreesRegressor(20, min_samples_leaf=3, n_jobs=1, random_state=0)
    # without tolerance: of complete rows, where nothing changes, only a first round would be kept
    chain = {"random_state": 0, "tol": 0.0, "keep_empty_features": True}
    return Scaled(
        {
            "mean": SimpleImputer(keep_empty_features=True),
            "median": SimpleImputer(strategy="median", keep_empty_features=True),
            "neighbours": KNNImputer(keep_empty_features=True),
            "chained": IterativeImputer(**chain),
            "multiple": IterativeImputer(sample_posterior=True, **chain),
            "forest": IterativeImputer(trees, max_iter=5, **chain),
        }[name]
    )


class Setting:
    """One table with holes: the parts that several methods share are made once, and timed."""

    def __init__(self, task: Task, train: str, test: str, seed: int, quick: bool) -> None:
        self.task, self.seed, self.quick, self.holes = task, seed, quick, (train, test)
        self.coded = Coded(task.X)  # which categories there are is known beforehand
        self.X = hide(task.X, masks(task.X, train, seed, patterns=seed))
        self.gone = masks(task.test, test, seed + 1000, patterns=seed)
        self.test = hide(task.test, self.gone)
        self.F, self.G = self.coded(self.X), self.coded(self.test)
        self.complete = train == "none"
        self.made: dict[Any, tuple[Any, float]] = {}

    def piece(self, *key: Any, make: Callable[[], Any]) -> Any:
        """Something that takes time, once; what is fitted serves all tests of these rows."""
        made = self._place(key)
        if key not in made:
            start = time.perf_counter()
            value = make()
            made[key] = value, time.perf_counter() - start
        return made[key][0]

    def spent(self, *keys: Any) -> float:
        return sum(self._place(key)[key][1] for key in keys if key in self._place(key))

    def _place(self, key: Any) -> dict[Any, tuple[Any, float]]:
        return self.task.learned[self.holes[0]] if key[0] == "fit" else self.made

    # -- our parts --------------------------------------------------------------------

    def circuit(self) -> Any:
        kind = CircuitRegressor if self.task.kind == "regression" else CircuitClassifier
        small = {"max_splits": 4, "penalties": [3.0]} if self.quick else {}
        tol = {} if self.task.kind == "regression" else {"tol": 1e-6}
        made = kind(random_state=self.seed, **small, **tol)
        return self.piece("fit", "circuit", make=lambda: made.fit(self.X, self.task.y))

    def density(self) -> Any:
        learner = LatentTree(random_state=self.seed)
        return self.piece("fit", "density", make=lambda: learner.fit(self.X))

    def completions(self) -> list[np.ndarray]:
        """Training rows, completed by draws given what is known of them, the target included."""
        y = self.task.y
        if self.complete:
            return [self.F]
        shown = y.astype(float) if self.task.kind == "regression" else y.astype(str).astype(object)
        joint = self.X.assign(**{"the target": shown})
        sampler = ConditionalSampler(LatentTree(random_state=self.seed), random_state=self.seed)

        def make() -> list[np.ndarray]:
            drawn = sampler.fit(joint).draws(joint, COMPLETIONS)
            return [self.coded(one[list(self.X)]) for one in drawn]

        return self.piece("fit", "completions", make=make)

    def fitted(self, name: str) -> list[Any]:
        """The models that expectations are of: one for each completion."""
        tables, y, kind = self.completions(), self.task.y, self.task.kind
        return self.piece(
            *("fit", name, "expected"), make=lambda: [model(name, kind).fit(F, y) for F in tables]
        )

    def expected(self, name: str) -> list[Any]:
        """A predictor for each model."""
        models, density = self.fitted(name), self.density()

        def make() -> list[Any]:
            options = {"max_samples": SAMPLES, "random_state": self.seed}
            pipes = [make_pipeline(self.coded.step, one) for one in models]
            return [ExpectedPredictor(pipe, density, **options).fit(self.X) for pipe in pipes]

        return self.piece("fit", name, "predictor", make=make)

    # -- predictions ------------------------------------------------------------------

    def outputs(self, models: Any, rows: Any) -> np.ndarray:
        """Predictions, or probabilities of classes; the mean of those of several models."""
        if isinstance(models, list):
            return np.mean([self.outputs(one, rows) for one in models], axis=0)
        if self.task.kind == "regression":
            return models.predict(rows)
        return models.predict_proba(rows)

    def predict(self, method: str) -> tuple[np.ndarray, dict[str, float]]:
        """What a method says of the test rows, and its seconds of fitting and for each row."""
        if method == "circuit":
            used = self.circuit()
            told = self.piece("told", method, make=lambda: self.outputs(used, self.test))
            fit = self.spent(("fit", "circuit"))
            return told, self._times(fit, self.spent(("told", method)))
        name, way = method.split(" + ")
        special = {"expected": self._expected, "monte carlo": self._monte_carlo}
        special |= {"native": self._native, "indicator": self._indicator}
        special["multiple"] = self._multiple
        special["multiple, target"] = lambda name: self._multiple(name, target=True)
        return special[way](name) if way in special else self._imputed(name, way)

    def _times(self, fit: float, predict: float) -> dict[str, float]:
        each = 1000 * predict / len(self.test)
        return {"fit seconds": fit, "milliseconds per row": each}

    def _expected(self, name: str) -> tuple[np.ndarray, dict[str, float]]:
        used = self.expected(name)
        told = self.piece("told", name, make=lambda: self.outputs(used, self.test))
        parts = [("fit", "density"), ("fit", "completions")]
        parts += [("fit", name, "expected"), ("fit", name, "predictor")]
        times = self._times(self.spent(*parts), self.spent(("told", name)))
        return told, times | self._errors(name, told)

    def _monte_carlo(self, name: str) -> tuple[np.ndarray, dict[str, float]]:
        """As many draws of all rows as fit in the time of the expectation, at least BATCH."""
        _, times = self._expected(name)
        used, total, draws = self.fitted(name), 0.0, 0
        start = time.perf_counter()
        limit = self.spent(("told", name))
        while not draws or time.perf_counter() - start < limit:
            sampler = ConditionalSampler(self.density(), random_state=draws).fit(self.X)
            rows = [self.coded(one) for one in sampler.draws(self.test, BATCH)]
            each = self.outputs(used, np.concatenate(rows))
            total = total + each.reshape(BATCH, len(self.test), *each.shape[1:]).sum(axis=0)
            draws += BATCH
        took = time.perf_counter() - start
        times = self._times(times["fit seconds"], took) | {"draws": draws}
        return total / draws, times | self._errors(name, total / draws)

    def _errors(self, name: str, told: np.ndarray) -> dict[str, float]:
        """Greatest difference from sums over all completions, in spreads of the outputs."""
        rows, sums = self.piece("enumerated", name, make=lambda: self._enumerated(name))
        if not len(rows):
            return {}
        far = np.abs(told.reshape(len(told), -1)[rows] - sums).max()
        return {"error against enumeration": far / told.std(), "rows enumerated": len(rows)}

    def _enumerated(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The obvious expectation of some rows: every completion through the model."""
        (used, *others), rows, sums = self.expected(name), [], []
        if others:  # each has bins of its own
            return np.zeros(0, int), np.zeros(0)
        density = used.expected_model.density
        encoder = density.encoder_
        codes = encoder.codes(self.test)
        count = np.prod(np.where(codes < 0, encoder.cardinalities_, 1.0), axis=1)
        for row in np.flatnonzero((count > 1) & (count <= COMPLETE))[:ENUMERATED]:
            known = codes[row]
            cards = encoder.cardinalities_
            values = [np.arange(c) if k < 0 else [k] for k, c in zip(known, cards, strict=True)]
            every = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, len(known))
            log_p = density.circuit.log_prob(every.astype(np.int32))
            weight = np.exp(log_p - log_p.max())
            table = encoder.inverse_transform(every)[list(self.test)]
            for k, column in enumerate(encoder.columns_):
                if known[k] >= 0:
                    table[column.name] = self.test[column.name].iloc[row]
                elif column.kind in ("integer", "number"):  # not rounded
                    table[column.name] = column.means[every[:, k]]
            each = self.outputs(used.model, table)
            rows.append(row)
            sums.append(weight @ each.reshape(len(every), -1) / weight.sum())
        return np.array(rows, int), np.array(sums)

    def _native(self, name: str) -> tuple[np.ndarray, dict[str, float]]:
        if name == "linear":
            raise AbsentError("linear models take no NaN")
        return self._plain(name, self.F, self.task.y, self.G)

    def _indicator(self, name: str) -> tuple[np.ndarray, dict[str, float]]:
        """Fitted anew with means and marks for holes; complete rows get holes as the test has."""
        F, y = self.F, self.task.y
        if self.complete:
            gone = patterns_for(self.gone, len(F), self.seed)
            F, y = np.concatenate([F, self.coded(hide(self.task.X, gone))]), np.append(y, y)
        fill = SimpleImputer(add_indicator=True, keep_empty_features=True)
        return self._plain(name, F, y, self.G, fill)

    def _imputed(self, name: str, way: str) -> tuple[np.ndarray, dict[str, float]]:
        fill = self.piece("fit", way, make=lambda: imputer(way).fit(self.F))
        F = self.piece("fit", way, "rows", make=lambda: fill.transform(self.F))
        G = self.piece("told", way, "rows", make=lambda: fill.transform(self.G))
        told, times = self._plain(name, F, self.task.y, G)
        more = self._times(
            self.spent(("fit", way), ("fit", way, "rows")), self.spent(("told", way, "rows"))
        )
        return told, {key: times[key] + more[key] for key in times}

    def _plain(
        self, name: str, F: np.ndarray, y: np.ndarray, G: np.ndarray, fill: Any = "passthrough"
    ) -> tuple[np.ndarray, dict[str, float]]:
        """One model, after what fills holes."""
        start = time.perf_counter()
        used = make_pipeline(fill, model(name, self.task.kind)).fit(F, y)
        fitted = time.perf_counter()
        told = self.outputs(used, G)
        return told, self._times(fitted - start, time.perf_counter() - fitted)

    def _multiple(self, name: str, target: bool = False) -> tuple[np.ndarray, dict[str, float]]:
        """The mean of models, each fitted to a draw of its own if training rows have holes.

        Training rows are drawn without their target, or with it.
        """
        draws = 3 if self.quick else DRAWS
        F, y, kind, width = self.F, self.task.y, self.task.kind, self.F.shape[1]
        if target:
            shown = y[:, None] if kind == "regression" else np.eye(y.max() + 1)[y]
            F = np.column_stack([F, shown])
        way = "multiple, target" if target else "multiple"
        fill = self.piece("fit", way, make=lambda: imputer("multiple").fit(F))
        plain = self.piece("fit", "multiple", make=lambda: imputer("multiple").fit(self.F))

        def drawn(fill: Scaled, rows: np.ndarray) -> list[np.ndarray]:
            found = []
            for k in range(draws):
                fill.imputer.random_state_ = np.random.RandomState(k)
                found.append(fill.transform(rows)[:, :width])
            return found

        def learn() -> list[Any]:
            return [model(name, kind).fit(one, y) for one in tables]

        tables = [F]
        if not self.complete:
            tables = self.piece("fit", way, "rows", make=lambda: drawn(fill, F))
        used = self.piece("fit", way, name, make=learn)
        G = self.piece("told", "multiple", "rows", make=lambda: drawn(plain, self.G))
        start = time.perf_counter()
        told = [self.outputs(used[k % len(used)], rows) for k, rows in enumerate(G)]
        again = self.spent(("told", "multiple", "rows")) + time.perf_counter() - start
        parts = {("fit", "multiple"), ("fit", way), ("fit", way, "rows"), ("fit", way, name)}
        return np.mean(told, axis=0), self._times(self.spent(*parts), again)

    # -- intervals --------------------------------------------------------------------

    def inner(self) -> Setting:
        """Four fifths to learn from and a fifth to calibrate on, with holes as the test's."""

        def make() -> Setting:
            order = np.random.default_rng(self.seed).permutation(len(self.task.X))
            cut = len(order) * 4 // 5
            fit, left = order[:cut], order[cut:][:1000]
            X, y = self.task.X, self.task.y
            parts = [X.iloc[fit].reset_index(drop=True), X.iloc[left].reset_index(drop=True)]
            task = Task(self.task.name, self.task.kind, parts[0], y[fit], parts[1], y[left])
            return Setting(task, *self.holes, self.seed, self.quick)

        return self.piece("inner", make=make)

    def quantiles(self, method: str, told: np.ndarray) -> np.ndarray | None:
        """Quantiles of y at LEVELS; None where the method is not asked for them."""
        if method == "circuit":
            return self.circuit().predict_quantiles(self.test, LEVELS)
        name, way = method.split(" + ")
        if name != "boosting" or way not in WITH_INTERVALS:
            return None
        inner = self.inner()
        if way == "expected":
            return self._calibrated(inner)
        residual = inner.task.y_test - inner.predict(method)[0]
        return told[:, None] + self._spread(residual, np.count_nonzero(inner.gone, axis=1))

    def _spread(self, residual: np.ndarray, holes: np.ndarray) -> np.ndarray:
        """Quantiles of residuals for each test row, from rows with about as many holes."""
        asked, which = np.unique(np.count_nonzero(self.gone, axis=1), return_inverse=True)
        found = []
        for number in asked:
            apart = np.abs(holes - number)
            near = apart <= np.sort(apart)[min(NEAREST, len(apart)) - 1]
            found.append(np.quantile(residual[near], LEVELS))
        return np.array(found)[which]

    def _calibrated(self, inner: Setting) -> np.ndarray:
        """Of the predictor of fewer rows, calibrated on the rows that it has not seen."""
        used = inner.expected("boosting")[0].calibrate(inner.test, inner.task.y_test)
        return used.predict_quantiles(self.test, LEVELS)
