"""The paper's own numbers: Figure 1, the appendix, and the authors' circuits."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from expecta import (
    BooleanEncoder,
    CircuitModel,
    Pair,
    ProbabilisticCircuit,
    QueryError,
    RegressionCircuit,
    Vtree,
    naive_bayes,
)
from expecta.circuits import leaf, linear, literal, node
from expecta.datasets import load_insurance
from expecta.datasets.paper import paper_split
from truth import Truth, probability

# Figure 1, in ten lines (X1, X2, X3 are the variables 0, 1, 2)
vtree = Vtree.from_nested((0, (1, 2)))
(n1, x1), (n2, x2), (n3, x3) = ([literal(v, 0), literal(v, 1)] for v in range(3))
hot = node((0.6, x2, x3), (0.4, n2, n3))
cold = node((1.0, x2, leaf(2, [0.5, 0.5])))
p = ProbabilisticCircuit.build(vtree, node((0.2, x1, hot), (0.8, n1, cold)))
high = node((-5.3, x2, x3), (2.0, x2, n3), (6.1, n2, leaf(2, [0.5, -0.3])))
low = node((3.0, x2, leaf(2, [2.8, 1.7])), (-1.1, n2, x3), (-4.3, n2, n3))
g = RegressionCircuit.build(vtree, node((-1.6, x1, high), (2.1, n1, low)))

UNKNOWN = [[-1, -1, -1]]


def test_figure_1():
    pair = Pair(p, g)
    assert np.exp(p.log_prob([[1, 0, 0]]))[0] == pytest.approx(0.08, rel=1e-12)
    assert g([[1, 0, 0]])[0] == pytest.approx(5.0, rel=1e-12)
    moments = pair.moments(UNKNOWN, 5)[0]
    for k, true in {0: 1.0, 1: 5.452, 2: 51.1732, 3: 293.56732, 5: 16497.1222492}.items():
        assert moments[k] == pytest.approx(true, rel=1e-12)
    assert pair.expectation(UNKNOWN)[0] == pytest.approx(5.452, rel=1e-12)
    sigmoid = pair.expected(UNKNOWN, tol=1e-13)
    assert sigmoid.value[0] == pytest.approx(0.8789921275550728, abs=1e-13)


def test_appendix_taylor_of_order_five_at_zero():
    pair = Pair(p, g)
    m = pair.moments(UNKNOWN, 5)[0]
    formula = 1 / 2 + m[1] / 4 - m[3] / 48 + m[5] / 480
    found = pair.expected(UNKNOWN, method="taylor", order=5, alpha=0.0)
    assert found.value[0] == pytest.approx(formula, rel=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_appendix_constructions(seed):
    rng = np.random.default_rng(seed)
    n = 5
    vtree = Vtree.random(n, seed=seed, balanced=False)
    cards = rng.integers(2, 4, n)
    klass = int(rng.integers(n))
    prior = rng.dirichlet(np.ones(cards[klass]))
    tables = [
        None if v == klass else rng.dirichlet(np.ones(cards[v]), cards[klass]) for v in range(n)
    ]
    bayes = naive_bayes(vtree, klass, prior, tables)
    assert bayes.properties.deterministic
    assert bayes.properties.normalised
    weights = [rng.normal(size=c) for c in cards]
    logistic = linear(vtree, weights, bias=0.7, link="logistic")
    truth = Truth(bayes, logistic)
    for x, probability_of_x, prediction in zip(truth.rows, truth.p, truth.g[:, 0], strict=True):
        direct = prior[x[klass]] * np.prod(
            [tables[v][x[klass], x[v]] for v in range(n) if v != klass]
        )
        assert probability_of_x == pytest.approx(direct, rel=1e-12)
        assert prediction == pytest.approx(0.7 + sum(w[i] for w, i in zip(weights, x, strict=True)))
    found = Pair(bayes, logistic).expected(np.full((1, n), -1), tol=1e-12)
    assert found.value[0] == pytest.approx(truth.p @ (1 / (1 + np.exp(-truth.g[:, 0]))), abs=1e-12)


@pytest.fixture(scope="module")
def authors(data):
    def load(name):
        folder = data / "circuits" / name
        vtree = Vtree.load(folder / f"{name}.vtree")
        p = ProbabilisticCircuit.load(folder / f"{name}.psdd", vtree)
        return Pair(p, RegressionCircuit.load(folder / f"{name}.glc", vtree))

    return load


def test_section_5_2(data, authors):
    pair = authors("insurance")
    with open(data / "reference" / "insurance_queries.csv") as file:
        queries = list(csv.DictReader(file))
    X = np.full((len(queries), 36), -1)
    for row, query in zip(X, queries, strict=True):
        for fact in query["bits"].split():
            column, value = fact.split("=")
            row[int(column)] = int(value)
    for name, found in {
        "probability": np.exp(pair.log_prob(X)),
        "mean": pair.expectation(X),
        "std": pair.std(X),
    }.items():
        true = np.array([float(query[name]) for query in queries])
        assert found == pytest.approx(true, rel=1e-9), name
    assert queries[2]["query"] == "smoker=yes"
    assert round(pair.expectation(X)[2]) == 31355


def test_section_5_2_in_words(data, authors):
    """The same questions by column and value, as facts and as text."""
    columns = load_insurance(as_frame="dict")
    charges = columns.pop("charges")
    train = {name: values[paper_split(len(charges)).train] for name, values in columns.items()}
    encoder = BooleanEncoder(discrete=["children", "smoker", "region", "sex"]).fit(train)
    model = CircuitModel(authors("insurance"), encoder, "charges")
    with open(data / "reference" / "insurance_queries.csv") as file:
        for query in csv.DictReader(file):
            words = [] if query["query"] == "everyone" else query["query"].split()
            facts = dict(word.split("=") for word in words)
            if "children" in facts:
                facts["children"] = int(facts["children"])
            text = " and ".join(f"{name} == {value!r}" for name, value in facts.items())
            for found in (model.ask(**facts), model.ask(text or None)):
                for name in ("mean", "std"):
                    assert getattr(found, name) == pytest.approx(float(query[name]), rel=1e-9)
                assert found.share == pytest.approx(float(query["probability"]), rel=1e-9)
    either = model.ask("region in ('southeast', 'southwest')")
    one, two = (model.ask(region=name) for name in ("southeast", "southwest"))
    assert either.share == pytest.approx(one.share + two.share)
    assert either.mean * either.share == pytest.approx(
        one.mean * one.share + two.mean * two.share, rel=1e-9
    )
    with pytest.raises(QueryError, match="whole bins, and the condition cuts one"):
        model.ask(age=(30, 40))


@pytest.mark.parametrize("name", ["insurance", "abalone", "mnist"])
def test_reference_moments(data, authors, name):
    pair = authors(name)
    true = np.load(data / "reference" / f"{name}.npz")
    x = np.load(data / "splits" / f"{name}.npz")["x_test"][: len(true["missing"])].astype(int)
    X = np.where(true["missing"], -1, x)
    moments = pair.moments(X, 2)
    assert pair.expectation(X) == pytest.approx(true["first"], rel=1e-9)
    assert moments[..., 1] == pytest.approx(true["first"], rel=1e-9)
    assert moments[..., 2] == pytest.approx(true["second"], rel=1e-9)
    assert np.exp(pair.log_prob(X)) == pytest.approx(true["p_observed"], rel=1e-9)
    assert pair.g(x) == pytest.approx(true["complete_g"], rel=1e-9)
    if "T1" in true:
        taylor = pair.expected(X, method="taylor", order=1)
        assert taylor.value == pytest.approx(true["T1"], rel=1e-9)
    if "mpe_value" in true:
        found = pair.p.mpe(X)
        assert found.exact
        assert np.exp(found.log_prob) == pytest.approx(true["mpe_value"], rel=1e-9)
        same = np.all(found.x == true["mpe_x"], axis=1)
        for row in np.flatnonzero(~same):  # ties: another completion of the same probability
            theirs = probability(pair.p, true["mpe_x"][row])
            assert np.exp(found.log_prob[row]) == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "train", "valid"),
    [
        ("insurance", -9.711660, -10.528821),
        ("abalone", -9.085133, -9.560896),
        ("mnist", None, -133.600226),
    ],
)
def test_reference_likelihoods(data, authors, name, train, valid):
    p = authors(name).p
    split = np.load(data / "splits" / f"{name}.npz")
    if train is not None:
        assert p.log_prob(split["x_train"]).mean() == pytest.approx(train, abs=1e-6)
    assert p.log_prob(split["x_valid"]).mean() == pytest.approx(valid, abs=1e-6)
