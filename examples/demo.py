"""See what a classifier predicts when half of its inputs are missing.

Two circuits over one vtree: p, a naive Bayes model of the measurements, and g, a
logistic regression on them. Data: breast cancer measurements that come with
scikit-learn. Nothing is downloaded.
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
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder

from expecta import (
    Pair,
    ProbabilisticCircuit,
    RegressionCircuit,
    Vtree,
    leaf,
    linear,
    literal,
    naive_bayes,
    node,
)

BINS = 4
OUT = Path("build/demo")
console = Console(width=100)


def figure_1() -> Pair:
    """Build the pair of Figure 1 of the paper."""
    vtree = Vtree.from_nested((0, (1, 2)))
    (n1, x1), (n2, x2), (n3, x3) = ([literal(v, 0), literal(v, 1)] for v in range(3))
    hot = node((0.6, x2, x3), (0.4, n2, n3))
    cold = node((1.0, x2, leaf(2, [0.5, 0.5])))
    p = ProbabilisticCircuit.build(vtree, node((0.2, x1, hot), (0.8, n1, cold)))
    high = node((-5.3, x2, x3), (2.0, x2, n3), (6.1, n2, leaf(2, [0.5, -0.3])))
    low = node((3.0, x2, leaf(2, [2.8, 1.7])), (-1.1, n2, x3), (-4.3, n2, n3))
    return Pair(p, RegressionCircuit.build(vtree, node((-1.6, x1, high), (2.1, n1, low))))


def learn(X: np.ndarray, y: np.ndarray) -> Pair:
    """Count a naive Bayes model and fit a logistic regression, both as circuits.

    Variable 30 is the diagnosis: part of p, never known, and without effect on g.
    """
    n = X.shape[1]
    vtree = Vtree.balanced(n + 1)
    counts = np.stack(
        [[np.bincount(X[y == k, v], minlength=BINS) for v in range(n)] for k in (0, 1)]
    )
    tables = (counts + 1.0) / (counts + 1.0).sum(axis=2, keepdims=True)
    p = naive_bayes(vtree, n, np.bincount(y) / len(y), [*tables.transpose(1, 0, 2), None])
    one_hot = OneHotEncoder(categories=[range(BINS)] * n, sparse_output=False)
    model = LogisticRegression(C=0.1, max_iter=1000).fit(one_hot.fit_transform(X), y)
    weights = [*model.coef_[0].reshape(n, BINS), np.zeros(2)]
    return Pair(p, linear(vtree, weights, bias=model.intercept_, link="logistic"))


def main() -> None:
    """Run the demonstration and say what it did."""
    console.rule("Figure 1 of the paper")
    pair = figure_1()
    unknown = [[-1, -1, -1]]
    with console.status("compiling the engine: half a minute the first time, then cached"):
        pair.expected(unknown), pair.std(unknown), pair.expectation(unknown)
    console.print(
        f"mean {pair.expectation(unknown)[0]:.3f}, spread {pair.std(unknown)[0]:.3f}, "
        f"E[σ(g)] = {pair.expected(unknown, tol=1e-12).value[0]:.12f}"
    )
    OUT.mkdir(parents=True, exist_ok=True)
    pair.p.draw(["X1", "X2", "X3"]).save(OUT / "figure1-p.svg")
    pair.g.draw(["X1", "X2", "X3"]).save(OUT / "figure1-g.svg")

    console.rule("Breast cancer: 30 measurements, half of them missing")
    data = load_breast_cancer()
    raw, raw_test, y, y_test = train_test_split(data.data, data.target, random_state=0)
    bins = KBinsDiscretizer(BINS, encode="ordinal", quantile_method="averaged_inverted_cdf")
    X = bins.fit_transform(raw).astype(int)
    X_test = bins.transform(raw_test).astype(int)
    pair = learn(X, y)
    console.print(pair)

    rng = np.random.default_rng(0)
    unknown_class = np.full((len(X_test), 1), -1)
    usual = np.array([np.bincount(column).argmax() for column in X.T])
    table = Table(
        "missing",
        "expected prediction",
        "most frequent value filled in",
        "mean spread",
        "milliseconds",
        title="log-loss (accuracy) on 143 patients",
    )
    for share in (0.0, 0.25, 0.5, 0.75, 0.9):
        holes = rng.random(X_test.shape) < share
        rows = np.hstack([np.where(holes, -1, X_test), unknown_class])
        pair.expected(rows[:1])  # compile, or load what was compiled before
        start = time.perf_counter()
        ours = pair.expected(rows)
        spent = 1000 * (time.perf_counter() - start)
        filled = np.hstack([np.where(holes, usual, X_test), unknown_class])
        theirs = pair.expected(filled).value
        scores = [
            f"{log_loss(y_test, q):.3f} ({np.mean((q > 0.5) == y_test):.1%})"
            for q in (ours.value, theirs)
        ]
        assert np.all(ours.error <= 1.01e-9)
        table.add_row(f"{share:.0%}", *scores, f"{pair.std(rows).mean():.2f}", f"{spent:.0f}")
    console.print(table)

    names = list(data.feature_names)
    row = np.full((1, 31), -1)
    for name in ("mean radius", "mean texture", "worst concavity"):
        row[0, names.index(name)] = X_test[0, names.index(name)]
    answer = pair.distribution(row, noise=0.0)
    low, high = answer.interval(0.8)
    console.print(
        f"One patient, 3 of 30 measurements known: P(benign) = "
        f"{pair.expected(row).value[0]:.3f}; the score is {pair.expectation(row)[0]:.2f} ± "
        f"{pair.std(row)[0]:.2f}, 80% of it between {low[0]:.2f} and {high[0]:.2f}, "
        f"and P(score > 0) = {answer.above(0.0)[0]:.3f}."
    )
    console.print(f"Drawings of the two circuits of Figure 1 are in {OUT}/.")
    console.print("Next: read README.md, or try your own circuits with Pair(p, g).")


if __name__ == "__main__":
    main()
