"""How fast what users call is; outputs are checked before a figure is kept.

Settings are models (the exact mean of boosted trees, beside draws), questions (milliseconds of
a question to a circuit on insurance), estimators (beside chained equations and boosted trees),
learning (a latent tree, beside NumPy's matrix products) and chunks (memory of learning by chunks).
"""

from __future__ import annotations

import time
from copy import copy
from functools import cache, partial

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from expecta import ChowLiu, CircuitRegressor, ExpectedPredictor, LatentTree
from expecta.datasets import load_insurance
from expecta.learn.information import mutual_information
from expecta.learn.trees.em import prototype_start
from expecta.learn.trees.expectation import TreeRows, expected_counts, log_likelihoods
from expecta.learn.trees.layout import TreeLayout
from expecta.learn.trees.tree import RootedTree

from . import data
from .clock import memory_peak, times
from .holes import at_random, hide
from .part_c import splits

BOOSTED = ((300, 6, 10_000), (300, 6, 1000), (100, 6, 10_000), (300, 3, 10_000), (300, 9, 10_000))

# -- fitted models --------------------------------------------------------------------


@cache
def elevators():
    """Training rows, a density of them, and rows with half of the columns unknown."""
    X, y, test, _ = data.load("elevators")
    some = test.sample(10_000, replace=True, random_state=0).reset_index(drop=True).astype(float)
    rng = np.random.default_rng(0)
    some = some.mask(np.argsort(rng.random(some.shape), axis=1) < some.shape[1] // 2)
    return X, y, LatentTree(random_state=0).fit(X), some


def sampling(expected, some, exact, rtol: float, most: int) -> tuple[float, float]:
    """Seconds that draws take, which must agree with the exact mean, and draws a row."""
    start = time.perf_counter()
    model = copy(expected.expected_model)
    model._rtol, model._max_samples = rtol, most
    found = model._sampled(model.rows(some), np.arange(len(some)), with_control=False)
    seconds = time.perf_counter() - start
    gap = np.abs(found.mean[:, 0] - exact) / found.error[:, 0]
    assert np.mean(gap < 4) > 0.98, "draws and the exact mean disagree"
    return seconds, float(found.samples.mean())


DRAWN = (  # rows asked, standard error relative to the prediction, most draws
    ("of the prediction", 1000, 0.01, 100_000),
    ("of the output's own spread", 200, 1e-9, 10_000),
)


def boosted(trees: int, depth: int, n: int) -> dict[str, float]:
    """XGBoost on elevators, half of the columns unknown."""
    try:
        from xgboost import XGBRegressor
    except ImportError:
        raise data.AbsentError("no xgboost") from None
    X, y, density, many = elevators()
    model, small = (
        XGBRegressor(n_estimators=n, max_depth=depth, n_jobs=2).fit(X, y) for n in (trees, 2)
    )
    ExpectedPredictor(small, density).fit(X).predict(many.iloc[:64])  # compiles
    start = time.perf_counter()
    expected = ExpectedPredictor(model, density, max_samples=100_000).fit(X)
    written = time.perf_counter() - start
    some = many.iloc[:n]
    expected.predict(some.iloc[:64])
    start = time.perf_counter()
    exact = expected.predict(some)
    found = {"wall seconds": time.perf_counter() - start, "written in": written}
    found |= {"boxes": expected.expected_model.route.margin.sum.n_boxes, "rows": n}
    if (trees, depth, n) == (300, 6, 1000):
        for whose, asked, rtol, most in DRAWN:
            slow, draws = sampling(expected, some.iloc[:asked], exact[:asked], rtol, most)
            found[f"sampling, 1% {whose}"] = slow * n / asked
            found[f"draws a row, 1% {whose}"] = draws
    return found


# -- questions ------------------------------------------------------------------------


@cache
def insurance() -> tuple[CircuitRegressor, dict[str, object]]:
    """A circuit, and one of its rows."""
    table = load_insurance(as_frame="dict")
    charges = table.pop("charges")
    model = CircuitRegressor(random_state=0).fit(table, charges)
    return model, {name: values[0] for name, values in table.items()}


@cache
def ten_columns() -> tuple[CircuitRegressor, dict[str, object]]:
    rng = np.random.default_rng(0)
    wide = {f"x{i}": rng.normal(size=2000) for i in range(10)}
    y = sum(wide.values()) + wide["x0"] * wide["x1"]
    model = CircuitRegressor(density=ChowLiu(), calibration_rows=0, random_state=0).fit(wide, y)
    one = {name: values[0] for name, values in wide.items()}
    values = model.shapley(one)
    told = model.predict({name: [value] for name, value in one.items()})[0]
    assert np.isclose(values.base + values.values.sum(), told)
    return model, one


PART = {"age": 40, "smoker": "yes"}
QUESTIONS = {
    "ask, one fact": lambda model, _: model.ask(smoker="yes"),
    "ask, three conditions": lambda m, _: m.ask("smoker == 'no' and age < 40 and bmi > 30"),
    "ask, two boxes": lambda model, _: model.ask("smoker == 'yes' or age < 30"),
    "compare": lambda model, _: model.compare("smoker == 'yes'", "smoker == 'no'"),
    "split, 100 groups": lambda model, _: model.split("age", "bmi", bins=10),
    "dependence": lambda model, _: model.dependence("age"),
    "next_question": lambda model, _: model.next_question(PART),
    "stability": lambda model, _: model.stability(PART, 20_000),
    "sufficient": lambda model, row: model.sufficient(row, 20_000),
    "disparities, pairs of facts": lambda model, _: model.disparities(["sex"]),
    "shapley, 6 columns": lambda model, row: model.shapley(row),
}


def question(what: str) -> dict[str, float]:
    """Median milliseconds of a question that was asked before."""
    if what == "shapley, 10 columns":
        ask = partial(QUESTIONS["shapley, 6 columns"], *ten_columns())
    else:
        ask = partial(QUESTIONS[what], *insurance())
    found = ask()
    if what == "split, 100 groups":
        assert len(found) == 100
        assert np.isclose(found.share.sum(), 1.0)
    return {"milliseconds": 1000 * float(np.median(times(ask, 10)))}


# -- estimators and densities ---------------------------------------------------------


def estimator(rows: int) -> dict[str, float]:
    """A circuit beside boosted trees after chained equations, elevators."""
    X, y, test, _ = data.load("elevators")
    many = pd.concat([X, test]).sample(rows, replace=True, random_state=0).reset_index(drop=True)
    many = hide(many, at_random(many, 0.5, np.random.default_rng(0)))
    CircuitRegressor(random_state=0, max_splits=2).fit(X[:500], y[:500])  # compiles
    made = []
    ours = times(lambda: made.append(CircuitRegressor(random_state=0).fit(X, y)), 1)
    theirs = times(
        lambda: made.extend(
            [
                IterativeImputer(random_state=0, tol=0.0).fit(X),  # all ten rounds
                HistGradientBoostingRegressor(random_state=0).fit(X, y),
            ]
        ),
        1,
    )
    circuit, imputer, boosted = made
    told = circuit.predict(many)
    assert np.allclose(told[:50], circuit.predict(many[:50]))
    return {
        "rows learned from": len(X),
        "rows predicted": rows,
        "fit seconds": ours[0],
        "predict seconds": times(lambda: circuit.predict(many), 1)[0],
        "their fit seconds": theirs[0],
        "their predict seconds": times(lambda: boosted.predict(imputer.transform(many)), 1)[0],
    }


def learning(name: str, states: int) -> dict[str, float]:
    """A step of EM over all rows, as a share of NumPy's time for its matrix products."""
    train, _, _ = splits(name)
    cards = np.full(train.shape[1], 2, np.int32)
    tree = RootedTree.greatest(mutual_information(train, cards))
    layout = TreeLayout(tree, np.full(len(cards), states, np.int32), cards)
    weight = np.ones(len(train))
    even = [np.full(2, 0.5)] * len(cards)
    shared = TreeRows(tree, cards, train, weight)
    alone = TreeRows(tree, cards, train, weight, limit=2)
    theta = prototype_start(layout, even, shared, np.random.default_rng(0))
    first, second = expected_counts(layout, theta, shared), expected_counts(layout, theta, alone)
    assert np.allclose(first.counts, second.counts, rtol=1e-8, atol=1e-8)
    likelihoods = log_likelihoods(layout, theta, shared)
    assert np.allclose(likelihoods, log_likelihoods(layout, theta, alone))
    rng = np.random.default_rng(0)
    rows, square = rng.random((len(train), states)), rng.random((states, states))
    into, small = np.empty_like(rows), np.empty_like(square)

    def products() -> None:
        for _ in range(len(cards)):
            np.matmul(rows, square, out=into)
            np.matmul(rows.T, into, out=small)
            np.matmul(rows, square, out=into)

    numpy = min(times(products, 5))
    step = min(times(lambda: expected_counts(layout, theta, shared), 5))
    plain = min(times(lambda: expected_counts(layout, theta, alone), 5))
    return {"seconds": step, "of NumPy's": step / numpy, "without sharing": plain / numpy}


def chunks() -> dict[str, float]:
    """By how many MB memory rises, at most, for chunks of 20,000 rows of 100 columns."""
    rng = np.random.default_rng(0)
    model, found, peak = LatentTree(states=16), {}, memory_peak()
    for n in range(1, 61):
        hidden = rng.integers(8, size=(20_000, 1))
        model.partial_fit(((hidden + rng.integers(3, size=(20_000, 100))) % 8 > 3).astype(np.int8))
        if n in (2, 20, 60):
            found[f"MB after {n * 20_000:,} rows"] = peak()
    return found


def items():
    """Yield set, method, setting and what computes it."""
    yield "random", "latent tree", "chunks", chunks
    for trees, depth, n in BOOSTED:
        do = partial(boosted, trees, depth, n)
        yield "elevators", f"{trees} trees of depth {depth}, {n} rows", "models", do
    for what in (*QUESTIONS, "shapley, 10 columns"):
        yield "insurance", what, "questions", partial(question, what)
    yield "elevators", "circuit", "estimators", partial(estimator, 100_000)
    for name, states in (("elevators", 16), ("elevators", 32), ("mnist", 16), ("mnist", 32)):
        yield name, f"latent tree, {states} states", "learning", partial(learning, name, states)
