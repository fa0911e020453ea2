"""What is compared in part B: models, and ways to let them predict rows with missing values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
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

DRAWS = 10  # of test rows, by multiple imputation
COMPLETIONS = 5  # of training rows with missing values, of ours and of multiple imputation alike
SAMPLES = 1000  # at most, for each row of a model whose expectation is sampled
MODELS = ("boosting", "linear", "lightgbm", "random forest")
WAYS = ("expected", "native", "mean", "chained", "multiple", "neighbours", "forest")
TARGET, RETRAINED = "multiple, target", "retrained"


class Coded:
    """Columns as numbers, categories one-hot; a missing value is missing in all of its bits."""

    def __init__(self, X: pd.DataFrame) -> None:
        self.words = [name for name in X if X[name].dtype.kind not in "iufb"]
        self.levels = [sorted(X[name].dropna().unique(), key=str) for name in self.words]
        one_hot = OneHotEncoder(
            categories=self.levels, sparse_output=False, handle_unknown="ignore"
        )
        self.step = make_column_transformer((one_hot, self.words), remainder="passthrough").fit(X)

    def __call__(self, X: pd.DataFrame) -> np.ndarray:
        out = self.step.transform(X).astype(float)
        start = 0
        for word, levels in zip(self.words, self.levels, strict=True):
            out[X[word].isna(), start : start + len(levels)] = np.nan
            start += len(levels)
        return out


def model(name: str, kind: str) -> Any:
    """A model with its library's defaults, but for the forest: 50 trees, leaves of five rows."""
    regression = kind == "regression"
    if name == "linear":
        last = Ridge() if regression else LogisticRegression(max_iter=1000)
        return make_pipeline(StandardScaler(), last)
    if name == "boosting":
        kinds = HistGradientBoostingRegressor, HistGradientBoostingClassifier
        return kinds[not regression](random_state=0)
    if name == "random forest":
        forest = RandomForestRegressor if regression else RandomForestClassifier
        return forest(50, min_samples_leaf=5, random_state=0)
    try:
        from lightgbm import LGBMClassifier, LGBMRegressor
    except ImportError:
        raise AbsentError("no lightgbm") from None
    return (LGBMRegressor if regression else LGBMClassifier)(verbose=-1, n_jobs=1)


class Scaled:
    """An imputer that sees columns of unit variance; known cells stay as they are."""

    def __init__(self, imputer: Any) -> None:
        self.imputer, self.scale = imputer, StandardScaler()

    def fit(self, F: np.ndarray) -> Scaled:
        F = self.scale.fit_transform(F)
        if isinstance(self.imputer, IterativeImputer) and not np.isnan(F).any():
            # of complete rows every round learns the same: learn one, and go over it as often
            rounds = self.imputer.max_iter
            self.imputer.set_params(max_iter=1).fit(F)
            self.imputer.imputation_sequence_ *= rounds
            self.imputer.n_iter_ = rounds
        else:
            self.imputer.fit(F)
        return self

    def transform(self, F: np.ndarray) -> np.ndarray:
        filled = self.scale.inverse_transform(self.imputer.transform(self.scale.transform(F)))
        return np.where(np.isnan(F), filled, F)


def imputer(name: str) -> Scaled:
    trees = ExtraTreesRegressor(10, min_samples_leaf=3, n_jobs=1, random_state=0)
    chain = {"random_state": 0, "tol": 0.0, "keep_empty_features": True}
    return Scaled(
        {
            "mean": SimpleImputer(keep_empty_features=True),
            "neighbours": KNNImputer(keep_empty_features=True),
            "chained": IterativeImputer(**chain),
            "multiple": IterativeImputer(sample_posterior=True, **chain),
            "forest": IterativeImputer(trees, max_iter=3, **chain),
        }[name]
    )


class Setting:
    """One table with missing values: the parts that several methods share are made once."""

    def __init__(self, task: Task, train: str, test: str, seed: int, quick: bool) -> None:
        self.task, self.seed, self.quick, self.train = task, seed, quick, train
        self.coded = Coded(pd.concat([task.X, task.test]))  # the categories are known beforehand
        self.X = hide(task.X, masks(task.X, train, seed, patterns=seed))
        self.gone = masks(task.test, test, seed + 1000, patterns=seed)
        self.test = hide(task.test, self.gone)
        self.F, self.G = self.coded(self.X), self.coded(self.test)
        self.complete = not np.isnan(self.F).any()
        self.made: dict[Any, Any] = {}

    def piece(self, *key: Any, make: Callable[[], Any]) -> Any:
        """Something that takes time, once; what is fitted serves all tests of these rows."""
        made = self.task.learned[self.train] if key[0] == "fit" else self.made
        if key not in made:
            made[key] = make()
        return made[key]

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
        """Training rows, completed by draws given their known cells and their target."""
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

    def expected(self, name: str) -> list[Any]:
        """A predictor for each completion of the training rows."""
        tables, density = self.completions(), self.density()

        def make() -> list[Any]:
            options = {"max_samples": SAMPLES, "random_state": self.seed}
            fit = self._as_trained if self.complete else self._fit
            models = [fit(name, F) for F in tables]
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

    def predict(self, method: str) -> np.ndarray:
        """What a method says of the test rows."""
        return self.piece("told", method, make=lambda: self._predict(method))

    def _predict(self, method: str) -> np.ndarray:
        if method == "circuit":
            return self.outputs(self.circuit(), self.test)
        name, way = method.split(" + ")
        if way == "expected":
            return self.outputs(self.expected(name), self.test)
        if way in ("multiple", TARGET):
            return self._multiple(name, way)
        if way in ("native", RETRAINED):
            return self._refitted(name, way)
        fill = self.piece("fit", way, make=lambda: imputer(way).fit(self.F))
        F = self.piece("fit", way, "rows", make=lambda: fill.transform(self.F))
        used = (self._as_trained if self.complete else self._fit)(name, F)
        return self.outputs(
            used, self.piece("told", way, "rows", make=lambda: fill.transform(self.G))
        )

    def _fit(self, name: str, F: np.ndarray, y: np.ndarray | None = None) -> Any:
        return model(name, self.task.kind).fit(F, self.task.y if y is None else y)

    def _as_trained(self, name: str, F: np.ndarray) -> Any:
        """The model of complete rows, which all ways share."""
        return self.piece("fit", name, make=lambda: self._fit(name, F))

    def _refitted(self, name: str, way: str) -> np.ndarray:
        """Missing values given to the model, which was fitted to the training rows as they are;

        or to them and to a copy with missing values *as the test rows have them*, which the other
        ways do not know. Linear models get means and marks.
        """
        if way == "native":
            used = (self._as_trained if self.complete else self._fit)(name, self.F)
            return self.outputs(used, self.G)
        gone = patterns_for(self.gone, len(self.F), self.seed)
        F = np.concatenate([self.F, self.coded(hide(self.task.X, gone))])
        y = np.append(self.task.y, self.task.y)
        if name != "linear":
            return self.outputs(self._fit(name, F, y), self.G)
        fill = SimpleImputer(add_indicator=True, keep_empty_features=True).fit(F)
        return self.outputs(self._fit(name, fill.transform(F), y), fill.transform(self.G))

    def _multiple(self, name: str, way: str) -> np.ndarray:
        """The mean over draws of test rows; training rows with missing values are drawn as well,

        for a model each, without their target or with it.
        """
        F, y, kind, width = self.F, self.task.y, self.task.kind, self.F.shape[1]
        if way == TARGET:
            shown = y[:, None] if kind == "regression" else np.eye(y.max() + 1)[y]
            F = np.column_stack([F, shown])

        def drawn(fill: Scaled, rows: np.ndarray, draws: int) -> list[np.ndarray]:
            tables = []
            for k in range(draws):
                fill.imputer.random_state_ = np.random.RandomState(k)
                tables.append(fill.transform(rows)[:, :width])
            return tables

        plain = self.piece("fit", "multiple", make=lambda: imputer("multiple").fit(self.F))
        if self.complete:
            used = [self._as_trained(name, self.F)]
        else:
            fill = self.piece("fit", way, make=lambda: imputer("multiple").fit(F))
            key = ("fit", way, "rows")
            tables = self.piece(*key, make=lambda: drawn(fill, F, COMPLETIONS))
            used = [self._fit(name, one) for one in tables]
        draws = 3 if self.quick else DRAWS
        G = self.piece("told", "multiple", "rows", make=lambda: drawn(plain, self.G, draws))
        told = [self.outputs(used[k % len(used)], rows) for k, rows in enumerate(G)]
        return np.mean(told, axis=0)
