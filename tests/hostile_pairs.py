"""Random pairs and evidence that are built to break bounds, one for each seed.

Parameters that cancel, ranges of g from 0.001 to 10,000, probabilities down to 1e-300, evidence
that leaves a tiny part of the range, and any mixture of values, sets, weights and nothing.
"""

from __future__ import annotations

import numpy as np

from expecta import (
    Evidence,
    Pair,
    ProbabilisticCircuit,
    RegressionCircuit,
    Vtree,
    naive_bayes,
    random_probabilistic,
    random_regression,
)
from expecta.circuits import independent, linear

MAX_COMPLETIONS = [4, 12, 64]  # of a row, that the oracle sums over


def hostile_pair(seed):
    """A pair, rows of evidence with few completions, and a generator to go on with."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(["small", "small", "small", "long", "mixture"])
    most = int(rng.choice(MAX_COMPLETIONS))
    p, g = _small(rng, most) if kind == "small" else _long(rng, kind)
    p = _improbable(p, rng) if rng.random() < 0.4 else p
    g = _cancelling(g, rng) if rng.random() < 0.3 else g
    return Pair(p, g), _evidence(p, most, rng), rng


def _small(rng, most):
    n = int(rng.integers(1, 7))
    vtree = Vtree.random(n, seed=rng, balanced=bool(rng.random() < 0.5))
    cards = rng.integers(1, 5, n)
    while np.prod(cards) > most:
        cards[np.argmax(cards)] -= 1
    p = random_probabilistic(
        vtree,
        cards,
        units=int(rng.integers(1, 5)),
        deterministic=bool(rng.random() < 0.5),
        seed=rng,
    )
    g = random_regression(
        vtree,
        cards,
        units=int(rng.integers(1, 5)),
        outputs=int(rng.choice([1, 1, 2, 3])),
        coverage=float(rng.choice([1.0, 1.0, 0.7])),
        scale=10.0 ** rng.uniform(-3, 3.5),
        seed=rng,
    )
    return p, g


def _long(rng, kind):
    """Many variables: independent ones, or a mixture of few components."""
    n = int(rng.integers(20, 90))
    vtree = Vtree.random(n, seed=rng)
    lowest = 10.0 ** rng.uniform(-12, -0.5)
    if kind == "long":
        share = rng.uniform(lowest, 0.5, n)
        p = independent(vtree, np.stack([share, 1 - share], axis=1))
    else:
        units = int(rng.integers(2, 4))
        share = rng.uniform(lowest, 1 - lowest, (n - 1, units))
        tables = [np.stack([s, 1 - s], axis=1) for s in share]
        p = naive_bayes(vtree, n - 1, np.full(units, 1 / units), [*tables, None])
    scale = 10.0 ** rng.uniform(-2, 3) / np.sqrt(n)
    weight = rng.normal(scale=scale, size=n) if rng.random() < 0.5 else np.full(n, scale)
    weight[int(rng.integers(n))] *= 10.0 ** rng.uniform(0, 2)
    steps = [np.arange(card) * w for card, w in zip(p.cardinalities, weight, strict=True)]
    return p, linear(vtree, steps, bias=float(rng.normal(scale=scale)))


def _improbable(p, rng):
    """The same circuit with parameters down to 1e-300."""
    s = p.structure
    log = np.where(rng.random(s.n_edges) < 0.4, -690 * rng.random(s.n_edges), p.log_weight)
    log = np.where(p.log_weight == -np.inf, -np.inf, log)
    top = np.maximum.reduceat(log, s.edge_start[:-1])[s.node_of_edge]
    total = np.add.reduceat(np.exp(log - top), s.edge_start[:-1])[s.node_of_edge]
    return ProbabilisticCircuit(s, log - top - np.log(total))


def _cancelling(g, rng):
    """The same function from parameters that are large and cancel."""
    s, weight, bias = g.structure, g.weight.copy(), g.bias.copy()
    size = np.round(10.0 ** rng.uniform(1, 9))
    layers = s.layer_of_node[s.node_of_edge]
    one, other = rng.integers(len(g.vtree), size=2)
    weight[layers == one] += size
    if rng.random() < 0.5 and one != other:
        weight[layers == other] -= size
    else:
        bias -= size
    return RegressionCircuit(s, weight, bias)


def _evidence(p, most, rng):
    cards = p.cardinalities
    rows = int(rng.integers(1, 4))
    evidence = Evidence.unknown(cards, rows=rows)
    full = p.sample(rows, seed=rng)
    if rng.random() < 0.3:  # what p hardly ever says
        full = np.column_stack([rng.integers(card, size=rows) for card in cards])
    known = rng.choice([0.0, 0.3, 0.7, 1.0])
    left = np.full(rows, most)
    for variable in rng.permutation(len(cards)).tolist():
        card = int(cards[variable])
        is_known = (rng.random(rows) < known) | (left < card)
        likelihood = np.ones((rows, card))
        kind = rng.choice(["nothing", "nothing", "set", "soft"])
        if kind == "set":
            likelihood = (rng.random((rows, card)) < 0.6).astype(float)
        elif kind == "soft":
            likelihood = 10.0 ** rng.uniform(-float(rng.choice([1, 30, 300])), 0, (rows, card))
        likelihood[np.arange(rows), full[:, variable]] = 1.0
        likelihood[is_known] = 0.0
        likelihood[is_known, full[is_known, variable]] = 1.0
        left //= np.maximum(np.count_nonzero(likelihood, axis=1), 1)
        evidence = evidence.likelihood(variable, likelihood)
    return evidence
