"""The search for splits: against dense sums, element by element."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expecta import Vtree, config_context
from expecta.learn.regression import LOSSES, Curve, splits
from expecta.learn.regression.cholesky import factor, invert_factored, invert_root
from expecta.learn.regression.contexts import Shrinkage
from expecta.learn.regression.growth import Growth
from expecta.learn.regression.row_features import FeatureTable
from expecta.learn.regression.split_kernels import promised_drop, rank_cuts
from expecta.learn.regression.split_sums import SplitSums
from expecta.learn.regression.splits import N_FINALISTS, GrowthOptions, SplitRequest

seeds = st.integers(0, 2**31)


@given(seeds, st.integers(1, 12))
@settings(max_examples=30)
def test_factors_and_inverses(seed, n):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n + 3))
    A = root @ root.T + np.eye(n)
    upper = factor(np.triu(A))
    assert np.allclose(upper, np.linalg.cholesky(A).T)
    assert np.allclose(invert_root(upper.copy()), np.linalg.inv(upper))
    assert np.allclose(invert_factored(upper.copy()), np.triu(np.linalg.inv(A)))


def test_what_is_not_positive_definite_is_refused():
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        factor(np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(TypeError, match="contiguous"):
        factor(np.asfortranarray([[2.0, 1.0], [0.0, 2.0]]))


@given(seeds, st.integers(1, 30), st.integers(1, 9), st.integers(1, 3), st.integers(0, 5))
@settings(max_examples=50)
def test_drops_of_both_sides_are_those_of_dense_systems(seed, n, least, k, left_out):
    """Of an element that sees the last n of some features, and of sums that begin before it."""
    rng = np.random.default_rng(seed)
    m, curvature = 1 + left_out + n, 0.7
    A = np.concatenate([np.ones((60, 1)), rng.normal(size=(60, m - 1))], axis=1)
    y, inside = rng.normal(size=(60, k)), np.arange(60) < least
    root = rng.normal(size=(1 + n, 1 + n))
    penalty = root @ root.T + np.eye(1 + n)
    sums = [(A[rows].T @ y[rows], np.triu(A[rows].T @ A[rows])) for rows in (slice(None), inside)]
    shorter = np.r_[0, 2 : len(A[0])] if left_out > 1 else np.arange(m)
    small = sums[1][0][shorter], np.ascontiguousarray(sums[1][1][np.ix_(shorter, shorter)])
    starts = 1 + left_out, len(shorter) - n
    roots = np.full((2, 1 + n, 1 + n), np.nan)
    drop = promised_drop(sums[0], starts[0], small, starts[1], penalty, curvature, roots)
    seen, wanted = np.r_[0, 1 + left_out : m], 0.0
    for rows, found in zip((inside, ~inside), roots, strict=True):
        own, values = A[rows][:, seen], y[rows]
        system = curvature * own.T @ own + penalty
        wanted += 0.5 * np.sum((own.T @ values) * np.linalg.solve(system, own.T @ values))
        assert np.allclose(found, np.linalg.cholesky(system).T, rtol=1e-9, atol=1e-11)
    assert np.isclose(drop, wanted, rtol=1e-9)


@given(seeds, st.integers(0, 12), st.integers(1, 5))
@settings(max_examples=50)
def test_cuts_are_ranked_as_by_sorting(seed, n, most):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-2, 3, (n + 3, 4)).astype(float)  # with ties
    weight = np.append(rng.integers(0, 9, n + 3), 10).astype(float)
    best = np.empty(most, np.int64)
    found = best[: rank_cuts(scores, weight, (2, 2 + n), (1, 3), 3.0, best)]
    able = [c for c in range(2, 2 + n) if 3 <= weight[c] <= 7]
    wanted = sorted(able, key=lambda c: -(scores[c, 0] + scores[c, 2:4].sum()))[:most]
    assert found.tolist() == wanted


# -- the search, written down plainly -------------------------------------------------------


def plain_systems(search, rows, first, last):
    """Slope, curvature and penalty of a constant and the tables of a range of variables."""
    table, target = search.table, search.target
    curves = table.curves[first:last]
    codes = table.codes[rows, first:last].T
    parts = [curve.basis[code] for curve, code in zip(curves, codes, strict=True)]
    A = np.hstack([np.ones((len(rows), 1)), *parts])
    H = target.curvature * A.T @ (target.weight[rows, None] * A)
    return A.T @ target.slope[rows], H, search.shrinkage.of(curves, search.shrinkage.size)


def plain_drop(slope, H, P):
    return 0.5 * np.sum(slope * np.linalg.solve(H + P, slope))


def plain_noise(search, slope, H, P):
    return 0.5 * search.target.dispersion * (len(H) - np.trace(np.linalg.solve(H + P, P)))


def plain_cuts(search, rows, first, last):
    """All cuts, best first: positions, values that are inside, scores."""
    table, target, found = search.table, search.target, []
    slope, weight = target.slope[rows], target.weight[rows]
    masks = [np.ones(len(rows), bool)]
    for x in range(first, last):
        curve = table.curves[x]
        group = curve.groups[table.codes[rows, x]]
        own = range(curve.n_groups) if curve.n_groups > 2 else range(1, curve.n_groups)
        masks += [group == g for g in own]

    def estimate(inside):
        total = 0.0
        for mask in masks:
            both = mask & inside
            H = target.curvature * weight[both].sum()
            drop = np.sum(slope[both].sum(axis=0) ** 2) - target.dispersion * H
            total += drop / (H + search.shrinkage.size)
        return total

    for x in range(first, last):
        curve = table.curves[x]
        n = curve.n_groups
        if n == 2:
            cuts = [curve.groups == 1]
        elif curve.ordered:
            cuts = [curve.groups <= g for g in range(n - 1)]
        else:
            cuts = [curve.groups == g for g in range(n)]
        for allowed in cuts:
            inside = allowed[table.codes[rows, x]]
            least = min(weight[inside].sum(), weight[~inside].sum())
            if n > 1 and least >= search.options.min_rows - 1e-6:
                found.append((estimate(inside) + estimate(~inside), x, allowed))
    return sorted(found, key=lambda cut: -cut[0])


def plain_proposal(search, rows, first, last):
    rows = rows[search.target.weight[rows] > 0]
    if len(rows) < 2 * search.options.min_rows:
        return None
    best = None
    for _, x, allowed in plain_cuts(search, rows, first, last)[:N_FINALISTS]:
        inside = allowed[table_codes(search, rows, x)]
        sides = [plain_systems(search, rows[part], first, last) for part in (inside, ~inside)]
        drop = sum(plain_drop(*side) for side in sides)
        if best is None or drop > best[0]:
            best = drop, x, allowed, sides
    if best is None:
        return None
    drop, x, allowed, sides = best
    net = drop - search.options.price * sum(plain_noise(search, *side) for side in sides)
    if net <= 0:
        return None
    start = 1 + search.table.fine.first[first : last + 1] - search.table.fine.first[first]
    kept = []
    for slope, H, P in sides:
        kept.append([])
        for k, (a, b) in enumerate(itertools.pairwise(start.tolist())):
            alone = slope[a:b], H[a:b, a:b], P[a:b, a:b]
            price = search.options.table_price
            if b > a and plain_drop(*alone) > price * plain_noise(search, *alone):
                kept[-1].append(first + k)
    return net, x, allowed, kept


def table_codes(search, rows, x):
    return search.table.codes[rows, x]


@st.composite
def searches(draw):
    """A search halfway through a growth, over columns of all kinds."""
    rng = np.random.default_rng(draw(seeds))
    n, k = draw(st.integers(10, 200)), draw(st.integers(1, 3))
    cards = rng.integers(1, [3, 20, 9, 4, 6, 40])
    codes = rng.integers(0, cards, (n, len(cards)))
    curves = []
    for card in cards.tolist():
        positions = np.arange(float(card)) if rng.random() < 0.5 else None
        curves.append(Curve.of(rng.random(card) + 0.1, positions))
    y = rng.normal(size=(n, k)) + (codes[:, [1]] % 3) * (codes[:, [3]] > 1)
    weight = rng.choice([0.0, 1.0, 2.0], n) if draw(st.booleans()) else np.ones(n)
    weight[0] = 1.0
    name = draw(st.sampled_from(["squared", "logistic"]))
    y = (y > 0.5).astype(float) if name == "logistic" else y
    table = FeatureTable(codes, Vtree.balanced(len(cards)), curves, y)
    options = GrowthOptions(min_rows=draw(st.sampled_from([1, 5])), price=0.1)
    growth = Growth(table, weight, LOSSES[name], 1.0, options)
    growth.fit()
    return growth, rng


@given(searches())
@settings(max_examples=40)
def test_proposals_are_those_of_dense_sums(made):
    """Elements of equal rows, of parts of them, and of other variables, asked for together."""
    growth, rng = made
    search = growth._search()
    spans = growth.table.spans
    everything = np.arange(len(growth.weight), dtype=np.int32)
    some = everything[rng.random(len(everything)) < 0.6]
    requests = [SplitRequest(rows, *span) for rows in (everything, some) for span in spans]
    order = rng.permutation(len(requests)).tolist()
    proposals = search.propose([requests[i] for i in order])
    for i, proposal in zip(order, proposals, strict=True):
        plain = plain_proposal(search, *requests[i])
        if proposal is None or plain is None:
            assert proposal is plain or abs((proposal or plain)[0]) < 1e-6
            continue
        net, position, allowed, kept = plain
        assert np.isclose(proposal.net, net, rtol=1e-8, atol=1e-8)
        if proposal.position == position and np.array_equal(proposal.sides[0].allowed, allowed):
            assert [side.positions.tolist() for side in proposal.sides] == kept


@given(searches())
@settings(max_examples=10)
def test_sums_that_are_not_kept_or_shared_say_the_same(made):
    growth, _ = made
    search, rows = growth._search(), np.arange(len(growth.weight), dtype=np.int32)
    requests = [SplitRequest(rows, *span) for span in growth.table.spans]
    alone = [search.propose([request])[0] for request in requests]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("expecta.learn.regression.split_sums.MAX_KEPT", 0)
        patch.setattr(splits, "MIN_THREADED_WORK", 0)
        with config_context(threads=3):
            together = search.propose(requests)
    for one, other in zip(alone, together, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert np.isclose(one.net, other.net, rtol=1e-9, atol=1e-9)
            assert one.position == other.position


def test_a_weight_that_is_enough_but_for_rounding_is_enough():
    """Completions of a row weigh one together: sums of them are whole numbers but for rounding."""
    codes = np.stack([np.arange(60) % 2, np.arange(60) < 20], axis=1)
    table = FeatureTable(codes, Vtree.balanced(2), [Curve.of(np.ones(2))] * 2, codes[:, :1] * 1.0)
    rows = np.arange(60, dtype=np.int32)
    for weight, wanted in ((1.0, [0, 1]), (1.0 - 1e-13, [0, 1]), (0.999, [0])):
        growth = Growth(table, np.full(60, weight), LOSSES["squared"], 1.0, GrowthOptions())
        growth.fit()
        sums = SplitSums(table, growth._search().target, rows, 0, 2)
        assert sorted(cut.position for cut in sums.best_cuts(0, 2, 20, 9)) == wanted


def test_penalties_of_tables_are_laid_out_in_blocks():
    curves = [Curve.of(np.ones(6), np.arange(6.0), knots=4), Curve.of(np.ones(5)), Curve.none(3)]
    P = Shrinkage(2.0, 5.0).of(curves, 0.5)
    assert P[0, 0] == 0.5
    first = 1
    for curve in curves:
        own = slice(first, first + curve.size)
        assert np.allclose(P[own, own], 2.0 * np.eye(curve.size) + 5.0 * curve.penalty)
        P[own, own] = 0.0
        first += curve.size
    P[0, 0] = 0.0
    assert not np.any(P)
