"""Small models that can be enumerated: every cell, its probability, and what the model says."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.tree import DecisionTreeRegressor

from expecta import (
    ChowLiu,
    CircuitClassifier,
    CircuitRegressor,
    Encoder,
    ExpectedPredictor,
    LatentTree,
)
from expecta.ask.language.query import Query

ROWS = 240


def mixed(bins=4):
    """Return a table with numbers and categories, its target, and an encoder for it."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["x", "y", "z"], ROWS, p=[0.5, 0.3, 0.2])
    size = rng.gamma(2.0, 1.0, ROWS) + (kind == "z")
    age = np.floor(rng.uniform(18, 65, ROWS))
    target = size + 3 * (kind == "x") * (age > 40) + 0.05 * age + rng.normal(0, 0.3, ROWS)
    return {"kind": kind, "size": size, "age": age}, target, Encoder(max_bins=bins)


def numeric():
    """Return an array of numbers that depend on each other, and a target."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(ROWS, 3))
    X[:, 1] += X[:, 0]
    X = np.round(2 * X) / 2  # so few numbers that all cells can be listed
    return X, X[:, 0] * (X[:, 1] > 0) + X[:, 2] + rng.normal(0, 0.1, ROWS)


def regressor(bins=4, density=None):
    table, target, encoder = mixed(bins)
    model = CircuitRegressor(
        density=density or ChowLiu(),
        encoder=encoder,
        max_bins=bins,
        calibration_rows=0,
        random_state=0,
    )
    return model.fit(table, target)


def latent():
    return regressor(density=LatentTree(states=3, random_state=0))


def classifier(cuts):
    table, target, encoder = mixed()
    labels = np.array(["low", "middle", "high"])[np.digitize(target, cuts)]
    model = CircuitClassifier(density=ChowLiu(), encoder=encoder, max_bins=4, random_state=0)
    return model.fit(table, labels)


class Wiggle(RegressorMixin, BaseEstimator):
    """A function that nothing is known of."""

    def fit(self, X, y=None):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict(self, X):
        X = np.asarray(X, np.float64)
        return np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]


def predictor(model, **options):
    density = ChowLiu(encoder=Encoder(max_bins=4))
    return ExpectedPredictor(model, density, **options)


def others():
    """Return models of other libraries, with the exact answers of which something is known."""
    from xgboost import XGBClassifier, XGBRegressor

    X, y = numeric()
    models = {
        "ridge": Ridge(),
        "poisson": PoissonRegressor(alpha=0.1),
        "tree": DecisionTreeRegressor(max_depth=3, random_state=0),
        "xgboost": XGBRegressor(n_estimators=4, max_depth=2, random_state=0),
        "logistic": LogisticRegression(),
        "xgboost classifier": XGBClassifier(n_estimators=3, max_depth=2, random_state=0),
    }
    targets = {"poisson": np.abs(y), "logistic": y > 0, "xgboost classifier": (y > 0).astype(int)}
    out = {}
    for name, model in models.items():
        target = targets.get(name, y)
        out[name] = predictor(model.fit(X, target)).fit(X, target)
    return out


class World:
    """All cells of a subject's density, and the model's output for each."""

    def __init__(self, subject, output):
        self.subject = subject
        cards = subject.encoder.cardinalities_.tolist()
        self.cells = np.array(list(product(*map(range, cards))), np.int32)
        self.p = np.exp(subject.circuit.log_prob(self.cells))
        self.f = output(self.cells)

    def weight(self, query):
        """Return the probability of each cell together with a query."""
        evidence = Query.read(query, self.subject.encoder).evidence(self.subject.encoder)
        total = np.zeros(len(self.cells))
        for row in range(len(evidence)):
            inside = np.ones(len(self.cells))
            for v in range(self.cells.shape[1]):
                inside *= evidence.weights(v)[row][self.cells[:, v]]
            total += inside
        return self.p * total

    def mean(self, query):
        w = self.weight(query)
        return w @ self.f / w.sum()

    def std(self, query):
        w = self.weight(query)
        return np.sqrt(w @ (self.f - self.mean(query)) ** 2 / w.sum())

    def above(self, query, threshold):
        w = self.weight(query)
        return w @ (self.f >= threshold) / w.sum()

    def quantile(self, query, q):
        w = self.weight(query)
        order = np.argsort(self.f)
        below = np.cumsum(w[order]) / w.sum()
        return self.f[order][np.argmax(below >= q - 1e-12)]

    def partial(self, variable, value, query=None):
        """Average the model with one variable set, all others as they are given the query."""
        w = self.weight(query)
        changed = self.cells.copy()
        changed[:, variable] = value
        place = np.ravel_multi_index(changed.T, self.subject.encoder.cardinalities_)
        return w @ self.f[place] / w.sum()


def world_of(model, of=None):
    """Return the world of an estimator, its outputs by another way than the subject's."""
    subject = model.expected_output(of)
    if isinstance(model, CircuitRegressor):
        return World(subject, model.circuit_)
    if isinstance(model, CircuitClassifier):
        return World(subject, lambda cells: _probability(model, cells)[:, subject.of_class])
    # a tree says the same for all numbers of a cell, a linear model takes their mean
    means = [column.means for column in subject.encoder.columns_]
    if hasattr(model, "classes_"):
        ask = lambda X: model.model.predict_proba(X)[:, subject.of_class]  # noqa: E731
    else:
        ask = model.model.predict
    return World(
        subject,
        lambda cells: np.asarray(
            ask(np.column_stack([m[cells[:, v]] for v, m in enumerate(means)])), np.float64
        ),
    )


def _probability(model, cells):
    each = expit(model.circuit_(cells))
    if each.ndim == 1:
        return np.column_stack([1 - each, each])
    return each / each.sum(axis=1, keepdims=True)
