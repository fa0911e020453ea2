"""Links and distributions against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, ndtr

import expecta.queries.output_distribution as module
from expecta import Evidence, Pair, RegressionCircuit, Vtree
from expecta.circuits import independent, leaf, linear, literal, node
from expecta.common.errors import DomainError, ImpossibleEvidenceWarning
from expecta.queries.distribution_parts import EnumeratedPart
from expecta.queries.exponentials import likely
from expecta.queries.links import LINKS, Link
from expecta.queries.moments import extremes_of
from strategies import circuit_pairs, evidences
from truth import Truth

many = settings(max_examples=150, deadline=None)
some = settings(max_examples=40, deadline=None)


@st.composite
def cases(draw, outputs=None, most=6):
    p, g = draw(circuit_pairs(most, outputs))
    # links are about numbers of ordinary size
    largest = np.abs(g.weight).max()
    g = type(g)(g.structure, g.weight * (2.0 / largest), g.bias / largest)
    return p, g, draw(evidences(p))


def squeeze(pair, values):
    return values[:, 0] if pair.g.n_outputs == 1 else values


FUNCTIONS = {"logistic": expit, "tanh": np.tanh, "probit": ndtr, "exp": np.exp}


@given(cases(), st.sampled_from([1e-5, 1e-9, 1e-12]))
@many
def test_spectral_expectation_is_within_its_bound(case, tol):
    p, g, evidence = case
    truth, pair = Truth(p, g), Pair(p, g)
    posterior = truth.posterior(evidence)
    for link, function in FUNCTIONS.items():
        true = squeeze(pair, posterior @ function(truth.g))
        found = pair.expected(evidence, link, tol=tol)
        assert np.all(np.abs(found.value - true) <= found.error + 1e-14)
        if link != "exp":
            assert np.all(found.error <= tol * 1.01 + 1e-12)


@given(cases(), st.integers(0, 6), st.sampled_from([None, 0.0, -0.5]))
@many
def test_taylor_is_the_formula_of_the_paper(case, order, alpha):
    p, g, evidence = case
    truth, pair = Truth(p, g), Pair(p, g)
    posterior = truth.posterior(evidence)
    mean = posterior @ truth.g
    at = mean if alpha is None else np.full_like(mean, alpha)
    factorial = np.cumprod([1, *range(1, order + 1)])
    deviation = truth.g[None] - at[:, None]
    for link, function in FUNCTIONS.items():
        slopes = LINKS[link].derivatives(at, order)
        true = sum(
            slopes[k] / factorial[k] * np.einsum("rc,rco->ro", posterior, deviation**k)
            for k in range(order + 1)
        )
        found = pair.expected(evidence, link, method="taylor", order=order, alpha=alpha)
        assert np.allclose(found.value, squeeze(pair, true), rtol=1e-9, atol=1e-9)
        if link != "exp":
            exact = squeeze(pair, posterior @ function(truth.g))
            assert np.all(np.abs(found.value - exact) <= found.error + 1e-9)


@given(cases(), st.floats(1.0, 1e4), st.sampled_from([1e-3, 1e-9]))
@many
def test_what_is_likely_holds_all_but_a_share(case, size, share):
    """Whatever the parameters are: sums that underflow are made up for."""
    p, g, evidence = case
    g = RegressionCircuit(g.structure, size * g.weight, size * g.bias, link=g.link)
    truth, pair = Truth(p, g), Pair(p, g)
    low, high, impossible = extremes_of(pair, evidence)
    rows = np.flatnonzero(~impossible)
    unit = np.ones(len(rows))
    ends = likely(pair, evidence[rows], low[rows], high[rows], unit, share)
    beyond = (truth.g < ends[0][:, None] - 1e-9 * size) | (truth.g > ends[1][:, None] + 1e-9 * size)
    mass = np.einsum("rc,rco->ro", truth.posterior(evidence)[rows], beyond.astype(float))
    assert np.all(mass <= share * (1 + 1e-9))


@pytest.mark.parametrize("sign", [1, -1])
def test_known_values_that_cancel(sign):
    """Known columns add up to little, one of them alone would underflow."""
    vtree = Vtree.from_nested((((0, 1), 2), 3))
    p = independent(vtree, [[0.5, 0.5]] * 4)

    def box(value, *tables):
        a, b, c = (leaf(x, [sign * t, 0.0]) for x, t in enumerate(tables))
        return 0.0, node((0.0, node((0.0, a, b)), c)), literal(3, value)

    g = RegressionCircuit.build(vtree, node(box(0, -190, 170, 60), box(1, 0, 0, 0)))
    found = Pair(p, g).expected([[0, 0, 0, -1]], "logistic")  # of 0 and of 40 or -40
    assert abs(found.value[0] - (0.5 + 0.25 * sign)) <= found.error[0] + 1e-15


@pytest.mark.parametrize("link", sorted(LINKS))
def test_derivatives_of_links(link):
    x = np.linspace(-3, 3, 41)
    h = 1e-5
    slopes = LINKS[link].derivatives(x, 6)
    assert np.allclose(slopes[0], FUNCTIONS[link](x))
    for k in range(6):
        above, below = (LINKS[link].derivatives(x + d, k)[k] for d in (h, -h))
        assert np.allclose(slopes[k + 1], (above - below) / (2 * h), rtol=1e-5, atol=1e-5)
        if LINKS[link].bound is not None:
            assert np.all(np.abs(slopes[k + 1]) <= LINKS[link].bound(k + 1) * (1 + 1e-9))


def test_a_link_of_ones_own():
    vtree = Vtree.balanced(2)
    pair = Pair(independent(vtree, [[0.5, 0.5]] * 2), linear(vtree, [[0, 1], [0, 2]]))
    square = Link(lambda x, order: np.stack([x**2, 2 * x, 2 + 0 * x][: order + 1]))
    found = pair.expected([[-1, -1]], square, method="taylor", order=2)
    assert found.value == pytest.approx(pair.moments([[-1, -1]], 2)[:, 2])
    assert np.isnan(found.error).all()
    with pytest.raises(ValueError, match="taylor"):
        pair.expected([[-1, -1]], square)
    with pytest.raises(ValueError, match="'sigmoid'"):
        pair.expected([[-1, -1]], "sigmoid")
    with pytest.raises(ValueError, match="'exact'"):
        pair.expected([[-1, -1]], method="exact")


@given(cases(), st.sampled_from([0.0, 0.3, 2.0]), st.booleans())
@many
def test_distribution(case, noise, enumerate_rows):
    p, g, evidence = case
    truth, pair = Truth(p, g), Pair(p, g)
    posterior = truth.posterior(evidence)
    limit = module.MAX_ATOMS
    module.MAX_ATOMS = 4**6 if enumerate_rows else 0  # as many as any case has
    try:
        found = pair.distribution(evidence, noise=noise)
    finally:
        module.MAX_ATOMS = limit
    middle = 0.5 * (truth.g.min() + truth.g.max())
    c = middle + (truth.g.max() - truth.g.min() + 1) * np.array([-9, -0.51, -0.23, 0.07, 0.4, 9])
    shape = (lambda a: a) if g.n_outputs > 1 else (lambda a: a[:, 0])
    slack = 1e-12 * (1 + np.abs(truth.g).max())
    move = found.resolution[..., None] + slack
    error = found.error[..., None] + 1e-11
    answer = found.cdf(c)
    grid = np.broadcast_to(c, answer.shape)
    low = np.empty(answer.shape)
    high = np.empty(answer.shape)
    for index in np.ndindex(answer.shape):
        r, o = index[0], index[1] if g.n_outputs > 1 else 0
        for target, sign in ((low, -1), (high, 1)):
            at = grid[index] + sign * move[index[:-1]][0]
            z = at - truth.g[:, o]
            below = ndtr(z / noise) if noise else z >= 0
            target[index] = posterior[r] @ below
    assert np.all(answer >= low - error)
    assert np.all(answer <= high + error)
    assert np.allclose(found.above(c), 1 - answer)
    if enumerate_rows:
        assert np.all(found.resolution == 0)
        assert np.all(found.error == 0)
    if noise:
        z = (c[:, None, None] - truth.g) / noise
        bell = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) / noise
        true = shape(np.einsum("rc,mco->rom", posterior, bell))
        assert np.allclose(found.density(c), true, rtol=0, atol=1e-7 / noise)


@given(cases(outputs=2), st.sampled_from([0.0, 0.01, 0.3]), st.floats(0.0, 9.0), st.booleans())
@many
def test_distribution_with_noise_that_depends_on_the_inputs(case, least, scale, enumerate_rows):
    p, g, evidence = case
    weight = np.stack([g.weight[:, 0], scale * np.abs(g.weight[:, 1])], axis=1)
    g = RegressionCircuit(g.structure, weight, [g.bias[0], least**2])
    truth, pair = Truth(p, g), Pair(p, g)
    posterior = truth.posterior(evidence)
    limit = module.MAX_ATOMS
    module.MAX_ATOMS = 4**6 if enumerate_rows else 0  # as many as any case has
    try:
        found = pair.noisy_distribution(evidence)
    finally:
        module.MAX_ATOMS = limit
    value, std = truth.g[:, 0], np.sqrt(np.maximum(truth.g[:, 1], 1e-300))
    reach = value.max() - value.min() + std.max() + 1e-6
    c = value.mean() + reach * np.array([-9, -0.51, -0.23, 0.07, 0.4, 9])
    move = (found.resolution + 1e-12 * (1 + np.abs(value).max()))[:, None, None]
    answer, error = found.cdf(c), found.error[:, None] + 1e-11
    for sign in (-1, 1):
        below = ndtr((c[:, None] + sign * move - value) / std)
        bound = np.einsum("rc,rmc->rm", posterior, below)
        assert np.all(sign * (bound - answer) >= -error)
    if enumerate_rows:
        assert np.all(found.error + found.resolution == 0)
    else:
        assert np.all(found.error <= 5e-9)
    exact = found.resolution == 0
    if least:
        bell = np.exp(-0.5 * ((c[:, None] - value) / std) ** 2) / np.sqrt(2 * np.pi) / std
        true = np.einsum("rc,mc->rm", posterior, bell)
        assert np.allclose(found.density(c)[exact], true[exact], rtol=0, atol=1e-7 / least)
    levels = np.array([0.05, 0.5, 0.92])
    quantile = found.quantile(levels)
    slack = (found.resolution + 1e-8 * (1 + np.abs(value).max()))[:, None, None]
    for sign in (-1, 1):
        below = ndtr((quantile[:, :, None] + sign * slack - value) / std)
        bound = np.einsum("rc,rmc->rm", posterior, below)
        assert np.all(sign * (bound - levels) >= -error - 1e-9)


def test_noise_that_depends_on_many_unknown_inputs():
    """A sum of 24 coins, each of which widens the noise: too many completions to enumerate."""
    from scipy.stats import binom

    n = 24
    vtree = Vtree.balanced(n)
    g = linear(vtree, [[[0.0, 0.0], [1.0, 0.5]]] * n, bias=[3.0, 0.04])
    pair = Pair(independent(vtree, [[0.5, 0.5]] * n), g)
    found = pair.noisy_distribution(np.full((1, n), -1), tol=1e-10)
    assert found.resolution[0] == 0
    heads = np.arange(n + 1)
    c = np.array([-2.0, 3.1, 9.0, 15.0, 16.3, 40.0])
    below = ndtr((c[:, None] - 3.0 - heads) / np.sqrt(0.04 + 0.5 * heads))
    assert found.cdf(c)[0] == pytest.approx(below @ binom.pmf(heads, n, 0.5), abs=1e-9)
    assert pair.expectation(np.full((1, n), -1))[0, 1] == pytest.approx(0.04 + 0.5 * n / 2)


def test_a_variance_is_not_negative():
    vtree = Vtree.balanced(2)
    p = independent(vtree, [[0.5, 0.5]] * 2)
    for g in (
        linear(vtree, [[[0, 1], [1, -1]], [[0, 0], [1, 0]]], bias=[0, 2]),
        linear(vtree, [[[0, 1], [1, 1]], [[0, 0], [1, 0]]], bias=[0, -1e-9]),
        linear(vtree, [[0, 1], [1, 1]]),
    ):
        with pytest.raises(DomainError, match="variance"):
            Pair(p, g).noisy_distribution([[-1, -1]])


@given(cases(), st.sampled_from([0.0, 0.3]), st.booleans())
@some
def test_quantiles(case, noise, enumerate_rows):
    p, g, evidence = case
    truth, pair = Truth(p, g), Pair(p, g)
    posterior = truth.posterior(evidence)
    limit = module.MAX_ATOMS
    module.MAX_ATOMS = 4**6 if enumerate_rows else 0  # as many as any case has
    try:
        found = pair.distribution(evidence, noise=noise)
    finally:
        module.MAX_ATOMS = limit
    levels = np.array([0.0, 0.05, 0.37, 0.5, 0.92, 1.0])
    answer = found.quantile(levels).reshape(len(evidence), g.n_outputs, len(levels))
    resolution = found.resolution.reshape(len(evidence), g.n_outputs)
    error = found.error.reshape(len(evidence), g.n_outputs) + 1e-9
    for r, o, k in np.ndindex(answer.shape):

        def cdf(c, r=r, o=o):
            z = c - truth.g[:, o]
            return posterior[r] @ (ndtr(z / noise) if noise else z >= 0)

        slack = resolution[r, o] + 1e-8 * (1 + np.abs(truth.g).max())
        assert cdf(answer[r, o, k] + slack) >= levels[k] - error[r, o]
        assert cdf(answer[r, o, k] - slack) <= levels[k] + error[r, o]
    low, high = found.interval(0.87)
    assert np.all(low <= high + 1e-9)


@pytest.mark.parametrize("noise", [1e-3, 0.1, 1.0, 100.0])
def test_quantiles_of_atoms_near_and_far(noise):
    rng = np.random.default_rng(0)
    value = np.sort(rng.normal(size=(20, 60)) * rng.choice([0.01, 1, 100], (20, 1)), axis=1)
    weight = rng.random((20, 60)) ** 6
    rows = np.arange(20)
    part = EnumeratedPart(rows, rows, value, weight / weight.sum(axis=1, keepdims=True), noise)
    levels = [1e-300, 1e-9, 0.01, 0.3, 0.5, 0.9, 0.999, 1 - 1e-6]
    entry, q = np.repeat(rows, len(levels)), np.tile(levels, 20)
    quantile = part.quantile(entry, q)
    low, high = part.support(entry)
    for _ in range(200):  # bisection, to the last bit
        middle = 0.5 * (low + high)
        reached = part.cdf(entry, middle) >= q
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    np.testing.assert_allclose(quantile, high, rtol=1e-10, atol=1e-10 * noise)


def test_distribution_of_many_unknown_inputs():
    """A sum of 24 fair coins: too many completions to enumerate, and known in closed form."""
    from scipy.stats import binom

    n = 24
    vtree = Vtree.balanced(n)
    pair = Pair(independent(vtree, [[0.5, 0.5]] * n), linear(vtree, [[0.0, 1.0]] * n))
    found = pair.distribution(np.full((1, n), -1))
    assert 0 < found.resolution[0] < 1
    between = np.arange(5, 20) + 0.5  # the middle of the gaps between atoms
    assert np.allclose(found.cdf(between)[0], binom.cdf(np.arange(5, 20), n, 0.5), atol=1e-8)
    assert found.quantile(0.5)[0] == pytest.approx(binom.ppf(0.5, n, 0.5), abs=found.resolution[0])
    noisy = pair.distribution(np.full((1, n), -1), noise=1.5)
    assert noisy.resolution[0] == 0
    true = ndtr((13.0 - np.arange(n + 1)) / 1.5) @ binom.pmf(np.arange(n + 1), n, 0.5)
    assert noisy.cdf(13.0)[0] == pytest.approx(true, abs=1e-9)


@pytest.mark.parametrize("tol", [1e-3, 1e-9])
def test_a_range_that_is_mostly_improbable(tol):
    """Frequencies pay for what is likely; what is left out counts among the error."""
    from scipy.stats import binom

    n, noise = 24, 0.1
    vtree = Vtree.balanced(n)
    pair = Pair(independent(vtree, [[0.98, 0.02]] * n), linear(vtree, [[0.0, 1.0]] * n, bias=-3))
    found = pair.distribution(np.full((1, n), -1), noise=noise, tol=tol)
    (part,) = found.parts
    low, high = part.support(part.local)
    assert low[0] < -3
    assert high[0] - low[0] < 0.6 * n
    assert found.error[0] < 3 * tol + 1e-12
    c = np.linspace(-4, n - 2, 301)
    atoms = np.arange(n + 1)
    true = ndtr((c[:, None] + 3 - atoms) / noise) @ binom.pmf(atoms, n, 0.02)
    assert np.all(np.abs(found.cdf(c)[0] - true) <= found.error[0])
    true = expit(10.0 * (atoms - 3.0)) @ binom.pmf(atoms, n, 0.02)
    steep = Pair(pair.p, linear(vtree, [[0.0, 10.0]] * n, bias=-30))
    answer = steep.expected(np.full((1, n), -1), tol=tol)
    assert abs(answer.value[0] - true) <= answer.error[0] <= tol + 1e-12


def test_rows_that_are_pinned():
    vtree = Vtree.balanced(12)
    pair = Pair(independent(vtree, [[0.5, 0.5]] * 12), linear(vtree, [[0.0, 1.0]] * 12))
    X = np.full((3, 12), -1)
    X[2, 3:] = 1
    found = pair.distribution(X, noise=1.0)
    pinned = found.pinned(np.array([False, True, False]), np.array([7.0]))
    cdf = pinned.cdf([6.0, 7.0])
    assert np.array_equal(cdf[[0, 2]], found.cdf([6.0, 7.0])[[0, 2]])
    assert cdf[1] == pytest.approx(ndtr([-1.0, 0.0]), abs=1e-15)
    assert pinned.error[1] == pinned.resolution[1] == 0


def test_questions_that_make_no_sense():
    vtree = Vtree.balanced(2)
    pair = Pair(independent(vtree, [[1.0, 0.0], [0.5, 0.5]]), linear(vtree, [[0, 1], [0, 2]]))
    found = pair.distribution([[-1, -1], [0, 1]])
    with pytest.raises(DomainError, match="noise"):
        found.density(0.0)
    with pytest.raises(DomainError, match="level"):
        found.quantile(1.5)
    with pytest.raises(DomainError, match="coverage"):
        found.interval(1.0)
    with pytest.raises(DomainError, match="shape"):
        found.cdf(np.zeros((3, 2)))
    with pytest.raises(DomainError, match="not a number"):
        found.cdf(np.nan)
    with pytest.raises(DomainError, match="standard deviation"):
        pair.distribution([[-1, -1]], noise=-1.0)
    assert found.cdf([[0.0], [1.0]]).tolist() == [[0.5], [0.0]]
    assert found.cdf([0.0, 2.0]).tolist() == [[0.5, 1.0], [0.0, 1.0]]
    with pytest.warns(ImpossibleEvidenceWarning, match="1 of 2"):
        gone = pair.distribution([[1, -1], [0, -1]])
    assert np.isnan(gone.cdf(0.0)).tolist() == [True, False]
    nothing = pair.distribution(np.empty((0, 2)))
    assert nothing.quantile([0.1, 0.9]).shape == (0, 2)
    assert pair.distribution(Evidence.unknown([2, 2])).cdf(0.0).tolist() == [0.5]


def test_the_first_and_last_quantile_are_the_ends():
    """However improbable; noise has none."""
    n = 14
    vtree = Vtree.balanced(n)
    p = independent(vtree, [[1e-30, 1 - 1e-30], *[[0.5, 0.5]] * (n - 1)])
    pair = Pair(p, linear(vtree, [[100.0, 0.0], *[[0.0, 1.0]] * (n - 1)]))
    for row in ([-1] * n, [-1] * 3 + [0] * (n - 3)):
        low, high = pair.range([row])
        assert high[0] >= 102
        ends = pair.distribution([row]).quantile([0, 1])[0]
        assert ends.tolist() == [low[0], high[0]]
        noisy = pair.distribution([row], noise=0.5).quantile([0, 1])[0]
        assert noisy.tolist() == [-np.inf, np.inf]
