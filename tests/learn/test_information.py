"""Mutual information against a double loop, and the trees and vtrees that it decides."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expecta import config_context
from expecta.common.errors import StructureError
from expecta.learn import information as module
from expecta.learn.information import (
    _by_counting,
    _by_product,
    edge_information,
    mutual_information,
)
from expecta.learn.trees.tree import RootedTree
from expecta.learn.vtrees import HOWS, balanced_by_information, learn_vtree

# -- the slow, obvious truth ----------------------------------------------------------


def pair_information(x, y, a, b, weight, pseudo_count):
    """Mutual information of two columns over the rows that know both."""
    joint = [[pseudo_count / (a * b)] * b for _ in range(a)]
    for u, v, w in zip(x, y, weight, strict=True):
        if u >= 0 and v >= 0:
            joint[u][v] += w
    total = math.fsum(map(math.fsum, joint))
    if total == 0:
        return 0.0
    first = [math.fsum(row) for row in joint]
    second = [math.fsum(row[v] for row in joint) for v in range(b)]
    return math.fsum(
        joint[u][v] / total * math.log(joint[u][v] * total / (first[u] * second[v]))
        for u in range(a)
        for v in range(b)
        if joint[u][v] > 0
    )


def slow_information(codes, cards, weight, pseudo_count):
    n = len(cards)
    weight = np.ones(len(codes)) if weight is None else weight
    out = np.zeros((n, n))
    for i, j in itertools.permutations(range(n), 2):
        columns = codes[:, i].tolist(), codes[:, j].tolist()
        out[i, j] = pair_information(*columns, cards[i], cards[j], weight, pseudo_count)
    return out


@st.composite
def tables(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    n, rows = draw(st.integers(1, 6)), draw(st.integers(0, 40))
    cards = rng.integers(1, draw(st.sampled_from([2, 4, 9])) + 1, n)
    codes = rng.integers(0, cards, (rows, n))
    if draw(st.booleans()):  # columns that depend on the first
        codes = np.where(rng.random(codes.shape) < 0.7, codes[:, :1] % cards, codes)
    codes[rng.random(codes.shape) < draw(st.sampled_from([0.0, 0.3, 0.9]))] = -1
    weight = None if draw(st.booleans()) else rng.choice([0.0, 0.5, 1.0, 3.25], rows)
    return codes, cards, weight, draw(st.sampled_from([0.0, 1.0, 0.3]))


# -- mutual information ---------------------------------------------------------------


@settings(max_examples=150)
@given(tables())
def test_information_matches_the_double_loop(table):
    truth = slow_information(*table)
    codes, cards, weight, pseudo_count = table
    found = mutual_information(codes, cards, weight, pseudo_count=pseudo_count)
    np.testing.assert_allclose(found, truth, atol=1e-12)
    for route in (_by_product, _by_counting):
        answer = route(codes, cards, weight, pseudo_count)
        np.fill_diagonal(answer, 0.0)  # the diagonal is nobody's business there
        np.testing.assert_allclose(answer, truth, atol=1e-12)
    np.testing.assert_allclose(found, found.T, atol=1e-14)  # but for the last bit
    assert np.all(np.diagonal(found) == 0)
    assert np.all(found >= 0)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_the_type_of_the_values_does_not_matter(dtype):
    rng = np.random.default_rng(0)
    cards = np.array([100, 120, 3])
    codes = rng.integers(0, cards, (300, 3))
    codes[:, 1] = codes[:, 0] + 1
    truth = slow_information(codes, cards, None, 1.0)
    for route in (_by_product, _by_counting):
        found = route(codes.astype(dtype), cards.astype(np.int32), None, 1.0)
        np.fill_diagonal(found, 0.0)
        np.testing.assert_allclose(found, truth, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_several_chunks_are_one_sum(monkeypatch, weighted):
    rng = np.random.default_rng(1)
    codes = rng.integers(-1, 3, (100, 5))
    weight = rng.random(100) if weighted else None
    cards = np.full(5, 3)
    before = _by_product(codes, cards, weight, 1.0)
    monkeypatch.setattr(module, "CHUNK_ROWS", 7)
    np.testing.assert_allclose(_by_product(codes, cards, weight, 1.0), before, atol=1e-13)


@pytest.mark.parametrize("route", [_by_product, _by_counting, mutual_information])
def test_threads_do_not_matter(route):
    rng = np.random.default_rng(2)
    cards = rng.integers(1, 30, 17)
    codes = rng.integers(-1, cards, (400, 17))
    more = () if route is mutual_information else (1.0,)
    for weight in (None, rng.random(400)):
        with config_context(threads=1):
            one = route(codes, cards, weight, *more)
        for threads in (2, 3, 8, 40):
            with config_context(threads=threads):
                np.testing.assert_array_equal(route(codes, cards, weight, *more), one)


def test_weights_are_repetitions():
    rng = np.random.default_rng(3)
    codes = rng.integers(-1, 3, (50, 4))
    times = rng.integers(0, 4, 50)
    cards = np.full(4, 3)
    np.testing.assert_allclose(
        mutual_information(codes, cards, times.astype(float)),
        mutual_information(np.repeat(codes, times, axis=0), cards),
        atol=1e-13,
    )


def test_many_rows_are_counted_exactly():
    # float32 has 24 bits: a sum over all rows in it would stop counting
    rows = 3 * module.CHUNK_ROWS + 11
    x = np.arange(rows) % 2
    found = _by_product(np.column_stack([x, x]), np.array([2, 2]), None, 0.0)
    share = x.mean()
    entropy = -share * np.log(share) - (1 - share) * np.log1p(-share)
    assert found[0, 1] == pytest.approx(entropy, abs=1e-13)


def test_rows_are_left_out_by_what_the_way_to_count_takes(monkeypatch):
    rng = np.random.default_rng(4)
    codes, cards = rng.integers(0, 2, (2000, 40)), np.full(40, 2)
    truth = _by_product(codes, cards, None, 1.0)
    np.fill_diagonal(truth, 0.0)
    steps = module.PRODUCT_COST * 80**2  # of a row, fewer than there are pairs
    monkeypatch.setattr(module, "MAX_STEPS", steps * 2000)
    np.testing.assert_array_equal(mutual_information(codes, cards), truth)
    np.testing.assert_array_equal(mutual_information(codes, cards, np.ones(2000)), truth)
    monkeypatch.setattr(module, "MAX_STEPS", steps * 1500)
    assert not np.allclose(mutual_information(codes, cards), truth)


def test_columns_never_seen_together_are_unrelated():
    codes = np.array([[0, -1], [1, -1], [-1, 0], [-1, 1]])
    assert np.all(mutual_information(codes, np.array([2, 2])) == 0)
    assert np.all(mutual_information(codes, np.array([2, 2]), pseudo_count=0) == 0)
    assert np.all(mutual_information(codes[:0], np.array([2, 2]), pseudo_count=0) == 0)


# -- the tree of greatest information -------------------------------------------------


def all_trees(n):
    """The edges of every tree over n labelled nodes, by Prüfer's sequences."""
    if n == 1:
        yield []
        return
    for sequence in itertools.product(range(n), repeat=n - 2):
        degree = [1 + sequence.count(x) for x in range(n)]
        edges = []
        for x in sequence:
            end = degree.index(1)
            edges.append((end, x))
            degree[end] -= 1
            degree[x] -= 1
        edges.append(tuple(x for x in range(n) if degree[x] == 1))
        yield edges


def edges_of(tree):
    pairs = zip(tree.variable[:-1], tree.variable[tree.parent[:-1]], strict=True)
    return [(int(a), int(b)) for a, b in pairs]


def height_from(edges, root):
    below = [
        height_from([e for e in edges if e != edge], sum(edge) - root)
        for edge in edges
        if root in edge
    ]
    return 1 + max(below) if below else 0


def test_edges_are_corrected_for_chance():
    """Independent columns of many values tell nothing, on average, and few values win."""
    cards, found, plain = np.array([2, 2, 24]), [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 2, 1000)
        y = np.where(rng.random(1000) < 0.45, 1 - x, x)  # tells 0.005 nats
        codes = np.column_stack([x, y, rng.integers(0, 24, 1000)])
        found.append(edge_information(codes, cards, np.ones(1000)))
        plain.append(mutual_information(codes, cards))
    mean, plain = np.mean(found, axis=0), np.mean(plain, axis=0)
    assert mean[0, 1] == pytest.approx(0.005, abs=0.002)
    assert abs(mean[0, 2]) < 0.001
    assert plain[0, 1] < plain[0, 2]  # what the correction is for


def test_edges_count_the_values_and_rows_that_occur():
    codes = np.array([[0, 0, -1], [1, 1, -1], [0, -1, -1], [1, 1, -1]])
    found = edge_information(codes, np.array([5, 5, 3]), np.ones(4))
    exact = mutual_information(codes[[0, 1, 3], :2], np.array([2, 2]), pseudo_count=0)[0, 1]
    assert found[0, 1] == found[1, 0] == pytest.approx(exact - 1 / 6)
    assert np.all(np.diag(found) == 0)
    assert np.all(found[2] == 0)


def random_information(rng, n, kind):
    table = rng.random((n, n)) if kind == "any" else rng.integers(0, 3, (n, n)) / 2.0
    table = np.triu(table, 1) * (rng.random((n, n)) < (0.6 if kind == "zeros" else 1.0))
    return table + table.T


@settings(max_examples=80)
@given(st.integers(1, 5), st.sampled_from(["any", "ties", "zeros"]), st.integers(0, 2**31))
def test_no_spanning_tree_has_more_information(n, kind, seed):
    information = random_information(np.random.default_rng(seed), n, kind)
    tree = RootedTree.greatest(information)
    edges = edges_of(tree)
    assert sorted(tree.variable.tolist()) == list(range(n))
    best = max(sum(information[e] for e in edges) for edges in all_trees(n))
    assert sum(information[e] for e in edges) == pytest.approx(best, abs=1e-12)
    root = int(tree.variable[-1])
    assert height_from(edges, root) == min(height_from(edges, x) for x in range(n))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 300])
def test_a_chain_is_rooted_in_its_middle(n):
    order = np.random.default_rng(n).permutation(n)
    information = np.zeros((n, n))
    information[order[:-1], order[1:]] = information[order[1:], order[:-1]] = 1.0
    tree = RootedTree.greatest(information)
    depth = np.zeros(n, int)
    for node in range(n - 2, -1, -1):
        depth[node] = depth[tree.parent[node]] + 1
    assert depth.max() == n // 2
    assert {frozenset(e) for e in edges_of(tree)} == {
        frozenset(e) for e in zip(order[:-1].tolist(), order[1:].tolist(), strict=True)
    }


@pytest.mark.parametrize(
    ("variable", "parent"),
    [
        ([], []),
        ([0, 0], [1, -1]),
        ([0, 1], [-1, -1]),
        ([0, 1, 2], [1, 0, -1]),
        ([0, 1], [5, -1]),
        ([0, 1], [0, -1]),
        ([1, 0], [-1]),
    ],
)
def test_what_is_no_tree_is_refused(variable, parent):
    with pytest.raises(StructureError):
        RootedTree(np.array(variable, int), np.array(parent, int))


def test_the_vtree_of_a_tree_has_a_place_for_every_subtree():
    tree = RootedTree(np.array([2, 0, 3, 1]), np.array([1, 3, 3, -1]))  # 1 -> (0 -> 2), 1 -> 3
    assert repr(tree.vtree) == "Vtree(((1, (0, 2)), 3))"
    assert repr(tree) == "RootedTree(0 -> 2, 1 -> 0, 1 -> 3)"
    assert repr(RootedTree.star(3, 1).vtree) == "Vtree(((1, 0), 2))"


# -- vtrees ---------------------------------------------------------------------------


def nested(vtree, v=None):
    """The vtree as pairs of pairs."""
    v = vtree.root if v is None else v
    if vtree.variable[v] >= 0:
        return int(vtree.variable[v])
    return nested(vtree, vtree.left[v]), nested(vtree, vtree.right[v])


def leaves(pair):
    return [pair] if isinstance(pair, int) else leaves(pair[0]) + leaves(pair[1])


def depth(pair):
    return 0 if isinstance(pair, int) else 1 + max(map(depth, pair))


def inner(pair):
    """All pairs in a vtree."""
    return [] if isinstance(pair, int) else [pair, *inner(pair[0]), *inner(pair[1])]


@pytest.mark.parametrize("how", HOWS)
@settings(max_examples=40)
@given(st.integers(1, 13), st.integers(1, 30), st.integers(0, 2**31))
def test_vtrees_have_every_variable_once(how, n, rows, seed):
    rng = np.random.default_rng(seed)
    found = nested(learn_vtree(rng.integers(-1, 3, (rows, n)), how))
    assert sorted(leaves(found)) == list(range(n))
    if how != "chow-liu":
        assert depth(found) == math.ceil(math.log2(n))


@pytest.mark.parametrize("n", [2, 4, 7, 16])
@pytest.mark.parametrize("how", ["bottom-up", "top-down"])
def test_columns_and_their_copies_stay_together(n, how):
    rng = np.random.default_rng(n)
    x = rng.integers(3, size=(400, n))
    order = rng.permutation(2 * n)
    found = nested(learn_vtree(np.column_stack([x, x])[:, order], how))
    pairs = {frozenset(leaves(pair)) for pair in inner(found)}
    place = np.argsort(order)
    siblings = [frozenset({int(place[i]), int(place[i + n])}) in pairs for i in range(n)]
    if how == "bottom-up" or n in (2, 4, 16):
        assert all(siblings)


def cut(information, one):
    one = np.asarray(one)
    return float(information[np.ix_(one, np.setdiff1d(np.arange(len(information)), one))].sum())


@settings(max_examples=60)
@given(st.integers(2, 8), st.sampled_from(["any", "ties", "zeros"]), st.integers(0, 2**31))
def test_no_exchange_makes_the_first_cut_better(n, kind, seed):
    information = random_information(np.random.default_rng(seed), n, kind)
    left, right = map(leaves, nested(balanced_by_information(information, "top-down")))
    assert abs(len(left) - len(right)) <= 1
    ours = cut(information, left)
    for a, b in itertools.product(left, right):
        assert ours <= cut(information, [x for x in left if x != a] + [b]) + 1e-9
    if n % 2 == 0:  # so it is never worse than halves chosen blindly
        halves = itertools.combinations(range(n), n // 2)
        assert ours <= np.mean([cut(information, one) for one in halves]) + 1e-9


def test_two_groups_are_parted():
    rng = np.random.default_rng(0)
    group = rng.permutation(np.repeat([0, 1], 6))
    information = np.where(group[:, None] == group, 0.5 + rng.random((12, 12)), 0.1)
    information = np.triu(information, 1) + np.triu(information, 1).T
    left, right = map(leaves, nested(balanced_by_information(information, "top-down")))
    assert len({group[x] for x in left}) == len({group[x] for x in right}) == 1


def test_the_first_to_be_joined_tell_most():
    rng = np.random.default_rng(4)
    information = random_information(rng, 9, "any")
    found = nested(balanced_by_information(information, "bottom-up"))
    best = np.unravel_index(np.argmax(information), information.shape)
    assert frozenset(map(int, best)) in {frozenset(leaves(pair)) for pair in inner(found)}


def test_vtrees_of_tables():
    table = {"a": ["x", "y"] * 20, "b": [1.5, 2.5, 3.5, None] * 10, "c": ["u", "v"] * 20}
    assert leaves(nested(learn_vtree(table)))[:2] == [0, 2]
    with pytest.raises(ValueError, match="bottom-up"):
        learn_vtree(table, "sideways")


def test_of_very_many_columns_the_strongest_pairs_are_counted_in_full(monkeypatch):
    rng = np.random.default_rng(0)
    cause = rng.normal(size=(300, 6))
    numbers = np.repeat(cause, 5, axis=1) + 0.3 * rng.normal(size=(300, 30))
    codes = np.clip(numbers * 3 + 6, 0, 11).astype(np.int32)
    codes[rng.random(codes.shape) < 0.1] = -1
    cards = np.full(30, 12)
    full = mutual_information(codes, cards)
    monkeypatch.setattr(module, "MAX_CELLS", 0)
    screened = mutual_information(codes, cards)
    same = np.repeat(np.arange(6), 5)[:, None] == np.repeat(np.arange(6), 5)
    assert np.array_equal(screened, screened.T)
    np.testing.assert_allclose(screened[same], full[same], rtol=1e-12)
    assert np.all(screened <= full + 1e-9)


def test_very_many_rows_are_sampled(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.integers(3, size=4000)
    codes = np.column_stack([x, x, rng.integers(3, size=4000)])
    cards = np.full(3, 3)
    full = mutual_information(codes, cards)
    monkeypatch.setattr(module, "MAX_STEPS", 1)
    np.testing.assert_allclose(mutual_information(codes, cards), full, atol=0.02)
