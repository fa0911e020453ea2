"""Learn what belongs together in a table, then ask a model with half of its inputs missing.

First the density of an insurance table that comes with Expecta: what is likely, given a
few facts. Then a classifier of breast cancer measurements, which come with scikit-learn,
with 0 to 90% of its inputs missing. Nothing is downloaded.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder

from expecta import Density, Encoder, LatentTree, Pair, linear
from expecta.datasets import load_insurance

OUT = Path("build/demo")
console = Console(width=100, highlight=False)


def ask_a_density() -> None:
    """Learn the joint distribution of a table and condition it on facts."""
    console.rule("Insurance: 1,338 people, 7 columns")
    table = load_insurance(as_frame="dict")
    with console.status("compiling: half a minute the first time, then cached"):
        LatentTree(states=2, max_epochs=1).fit(table)
    density = LatentTree(encoder=Encoder(max_bins=12)).fit(table)
    console.print(density, markup=False)
    for facts in ({}, {"smoker": "yes"}, {"smoker": "yes", "age": (18, 30), "bmi": (None, 30)}):
        known = density.condition(facts)
        charges = known.marginal("charges")
        share = np.exp(density.log_prob(density.encoder_.where(facts)))[0]
        said = (
            ", ".join(f"{name} = {fact}" for name, fact in facts.items()) or "nobody in particular"
        )
        console.print(
            f"\nGiven {said} ({share:.1%} of people): charges are {charges.mean:,.0f} on "
            f"average, with a standard deviation of {charges.std:,.0f}."
        )
    console.print("\nWho has charges above 40,000?")
    rich = density.condition(charges=(40_000, None))
    for column in ("smoker", "bmi"):
        console.print(rich.marginal(column), markup=False)

    OUT.mkdir(parents=True, exist_ok=True)
    density.save(OUT / "insurance.expecta")
    again = Density.load(OUT / "insurance.expecta")
    assert np.array_equal(again.log_prob(table), density.log_prob(table))
    console.print(f"\nSaved to {OUT}/insurance.expecta, read again, and it answers the same.")


def ask_a_classifier() -> None:
    """Hide the inputs of a logistic regression, and average it over what they could be."""
    console.rule("Breast cancer: 30 measurements, some of them missing")
    data = load_breast_cancer()
    raw, raw_test, y, y_test = train_test_split(data.data, data.target, random_state=0)
    density = LatentTree(encoder=Encoder(max_bins=4)).fit(raw)
    console.print(density, markup=False)
    encoder = density.encoder_
    X, X_test = encoder.transform(raw), encoder.transform(raw_test)
    one_hot = OneHotEncoder(categories=[range(c) for c in encoder.cardinalities_])
    model = LogisticRegression(C=0.1, max_iter=1000).fit(one_hot.fit_transform(X), y)
    weights = np.split(model.coef_[0], np.cumsum(encoder.cardinalities_)[:-1])
    g = linear(density.circuit.vtree, weights, bias=model.intercept_, link="logistic")
    pair = Pair(density.circuit, g)

    rng = np.random.default_rng(0)
    usual = np.array([np.bincount(column).argmax() for column in X.T])
    table = Table(
        "missing",
        "expected prediction",
        "most frequent value filled in",
        "mean spread",
        "milliseconds",
        title="log-loss (accuracy) on 143 patients",
    )
    with console.status("compiling: half a minute the first time, then cached"):
        half = np.where(np.arange(30) % 2, -1, X_test[:1])
        pair.expected(half), pair.std(half)
    for share in (0.0, 0.25, 0.5, 0.75, 0.9):
        holes = rng.random(X_test.shape) < share
        rows = np.where(holes, -1, X_test)
        start = time.perf_counter()
        ours = pair.expected(rows)
        spent = 1000 * (time.perf_counter() - start)
        theirs = pair.expected(np.where(holes, usual, X_test)).value
        scores = [
            f"{log_loss(y_test, q):.3f} ({np.mean((q > 0.5) == y_test):.1%})"
            for q in (ours.value, theirs)
        ]
        assert np.all(ours.error <= 1.01e-9)
        table.add_row(f"{share:.0%}", *scores, f"{pair.std(rows).mean():.2f}", f"{spent:.0f}")
    console.print(table)

    row = np.full((1, 30), np.nan)
    for name in ("mean radius", "mean texture", "worst concavity"):
        place = list(data.feature_names).index(name)
        row[0, place] = raw_test[0, place]
    known = encoder.evidence(row)
    answer = pair.distribution(known, noise=0.0)
    low, high = answer.interval(0.8)
    console.print(
        f"One patient, 3 of 30 measurements known: P(benign) = "
        f"{pair.expected(known).value[0]:.3f}; the score is {pair.expectation(known)[0]:.2f} ± "
        f"{pair.std(known)[0]:.2f}, 80% of it between {low[0]:.2f} and {high[0]:.2f}, "
        f"and P(score > 0) = {answer.above(0.0)[0]:.3f}."
    )


if __name__ == "__main__":
    ask_a_density()
    ask_a_classifier()
    console.print("Next: read README.md, or try LatentTree().fit(your_table).")
