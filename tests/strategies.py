"""Random pairs and evidence for hypothesis."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from expecta import Evidence, Vtree, random_probabilistic, random_regression
from truth import draw as draw_rows


@st.composite
def vtrees(draw, most=6):
    n = draw(st.integers(1, most))
    seed = draw(st.integers(0, 2**31))
    kind = draw(st.sampled_from(["balanced", "anyhow", "right", "left"]))
    if kind == "right":
        return Vtree.right_linear(n)
    if kind == "left":
        return Vtree.left_linear(n)
    return Vtree.random(n, seed=seed, balanced=kind == "balanced")


@st.composite
def circuit_pairs(draw, most=6, outputs=None):
    vtree = draw(vtrees(most))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    cards = rng.integers(1, 5, vtree.n_variables)
    while np.prod(cards) > 1500:
        cards[np.argmax(cards)] -= 1
    p = random_probabilistic(
        vtree,
        cards,
        units=draw(st.integers(1, 6)),
        deterministic=draw(st.booleans()),
        seed=rng,
    )
    g = random_regression(
        vtree,
        cards,
        units=draw(st.integers(1, 5)),
        outputs=draw(st.integers(1, 3)) if outputs is None else outputs,
        coverage=draw(st.sampled_from([1.0, 1.0, 0.7])),
        scale=draw(st.sampled_from([1.0, 1.0, 1e-4, 3e3])),
        seed=rng,
    )
    return p, g


@st.composite
def evidences(draw, p, most=9):
    """Known and unknown values, sets, intervals and likelihoods, mixed."""
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    rows = draw(st.integers(1, most))
    missing = draw(st.sampled_from([0.0, 0.3, 0.6, 1.0]))
    full = draw_rows(p, rows, rng)
    X = np.where(rng.random(full.shape) < missing, -1, full)
    evidence = Evidence.rows(X, p.cardinalities)
    for variable in range(p.n_variables):
        kind = rng.choice(["plain", "plain", "set", "interval", "soft"])
        card = int(p.cardinalities[variable])
        values = full[:, variable]
        if kind == "set":  # keeps what every row says, so that rows stay possible
            evidence = evidence.among(variable, {*values.tolist(), int(rng.integers(card))})
        elif kind == "interval":
            evidence = evidence.between(variable, int(values.min()), int(values.max()))
        elif kind == "soft":
            scale = 10.0 ** rng.integers(-3, 4)
            evidence = evidence.likelihood(variable, scale * rng.random((rows, card)))
    return evidence
