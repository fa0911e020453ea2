"""What every density promises, whatever it learns by."""

from __future__ import annotations

import datetime as dt
import itertools
import re
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from expecta import (
    PSDD,
    ChowLiu,
    Density,
    DomainError,
    Encoder,
    Evidence,
    ImpossibleEvidenceError,
    Independent,
    LatentTree,
    NaiveBayes,
    config_context,
)
from expecta.common import progress as progress_module
from expecta.learn.trees.tree import RootedTree
from strategies import vtrees
from truth import complete_rows

LEARNERS = {
    "LatentTree": lambda **k: LatentTree(**{"states": 3, "restarts": 1, "max_epochs": 9, **k}),
    "ChowLiu": ChowLiu,
    "NaiveBayes": NaiveBayes,
    "Independent": Independent,
    "PSDD": lambda **k: PSDD(**{"patience": 2, "max_parameters": 300, **k}),
}
every = pytest.mark.parametrize("name", sorted(LEARNERS))
counting = pytest.mark.parametrize("name", ["ChowLiu", "NaiveBayes", "Independent"])
trees = pytest.mark.parametrize("name", sorted({*LEARNERS} - {"PSDD"}))


def mixed_table(n=120, holes=0.15):
    """Columns of every kind that depend on a hidden group, with holes."""
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=n)
    table = {
        "text": [["red", "green", "blue"][k] for k in group],
        "flag": [bool(k == 1) for k in group],
        "whole": (group * 10 + rng.integers(4, size=n)).tolist(),
        "real": (group + rng.random(n)).tolist(),
        "day": [dt.date(2024, 1, 1) + dt.timedelta(int(k)) for k in group * 5],
    }
    for column in table.values():
        for row in np.flatnonzero(rng.random(n) < holes):
            column[row] = None
    return table


MIXED = mixed_table()
FRAMES = {
    "dict": MIXED,
    "polars": pl.DataFrame(MIXED),
    "pandas": pd.DataFrame(
        {
            "text": pd.Series(MIXED["text"], dtype=object),
            "flag": pd.Series(MIXED["flag"], dtype="boolean"),
            "whole": pd.Series(MIXED["whole"], dtype="Int64"),
            "real": pd.Series(MIXED["real"], dtype=float),
            "day": pd.to_datetime(pd.Series(MIXED["day"])),
        }
    ),
}
CARDS = (2, 3, 2, 2)
ALL = np.array(list(itertools.product(*map(range, CARDS))))  # every complete row


def codes_table(n=400, holes=0.0):
    """Rows of four columns, each much like the one before."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2, n)
    columns = [x]
    for card in CARDS[1:]:
        x = np.where(rng.random(n) < 0.25, rng.integers(0, card, n), columns[-1] % card)
        columns.append(x)
    codes = np.column_stack(columns)
    codes[rng.random(codes.shape) < holes] = -1
    return codes


CODES = codes_table()
SMALL = Encoder(max_bins=4)


@pytest.fixture(scope="module")
def mixed():
    """Each learner after a table of every kind."""
    return {name: make(encoder=SMALL).fit(MIXED) for name, make in LEARNERS.items()}


@pytest.fixture(scope="module")
def coded():
    """Each learner after an array of integers."""
    return {name: make().fit(CODES) for name, make in LEARNERS.items()}


def joint_of(density):
    return np.exp(density.score_samples(ALL))


def same_parameters(a, b, **tolerance):
    assert a.circuit.structure.same_as(b.circuit.structure)
    np.testing.assert_allclose(
        np.exp(a.circuit.log_weight), np.exp(b.circuit.log_weight), **tolerance
    )


# -- tables in, tables out ------------------------------------------------------------


@every
def test_the_same_columns_give_the_same_density(name, mixed):
    expected = mixed[name].score_samples(MIXED)
    assert np.all(np.isfinite(expected))
    for kind in ("pandas", "polars"):
        other = LEARNERS[name](encoder=SMALL).fit(FRAMES[kind])
        assert other.circuit == mixed[name].circuit
        assert other.columns == mixed[name].columns == list(MIXED)
        np.testing.assert_array_equal(other.score_samples(FRAMES[kind]), expected)


@every
@pytest.mark.parametrize("kind", list(FRAMES))
def test_samples_are_tables_like_the_one_learned_from(name, kind):
    density = LEARNERS[name](encoder=SMALL).fit(FRAMES[kind])
    drawn = density.sample(3000, random_state=5)
    assert type(drawn) is type(FRAMES[kind])
    assert list(drawn) == list(MIXED) if kind == "dict" else list(drawn.columns) == list(MIXED)
    columns = {column: np.asarray(drawn[column]) for column in MIXED}
    assert all(len(column) == 3000 for column in columns.values())
    marginal = density.marginal("text")
    counts = [np.sum(columns["text"] == label) for label in marginal.labels]
    assert chisquare(counts, 3000 * marginal.probabilities).pvalue > 1e-4
    real = columns["real"].astype(float)
    assert real.mean() == pytest.approx(
        density.marginal("real").mean, abs=5 * real.std() / 3000**0.5
    )
    assert np.all(np.isfinite(density.score_samples(drawn)))
    assert density.sample(0).shape[0] == 0 if kind != "dict" else len(density.sample(0)["day"]) == 0


@every
def test_samples_given_a_table(name, mixed):
    given = {**{column: [None, None] for column in MIXED}, "text": ["red", "blue"]}
    drawn = mixed[name].sample(5, given=given, random_state=0)
    assert list(drawn["text"]) == ["red"] * 5 + ["blue"] * 5
    same, other = (mixed[name].sample(5, given=given, random_state=k) for k in (0, 1))
    assert list(drawn["real"]) == list(same["real"]) != list(other["real"])


# -- probabilities --------------------------------------------------------------------


@every
def test_all_rows_together_have_probability_one(name, coded):
    assert joint_of(coded[name]).sum() == pytest.approx(1.0, rel=1e-12)
    assert coded[name].score(CODES) == pytest.approx(np.mean(coded[name].score_samples(CODES)))
    with_holes = np.array([[-1, 1, -1, 0], [-1] * 4, [1, 2, 1, -1]])
    joint = joint_of(coded[name])
    for row, found in zip(with_holes, coded[name].score_samples(with_holes), strict=True):
        fits = np.all((row == ALL) | (row < 0), axis=1)
        assert np.exp(found) == pytest.approx(joint[fits].sum(), rel=1e-11)


@every
def test_conditions_match_enumeration(name, coded):
    joint = joint_of(coded[name])
    fits = (ALL[:, 1] != 1) & (ALL[:, 3] == 1)
    expected = np.where(fits, joint, 0.0) / joint[fits].sum()
    by_name = coded[name].condition(x1=[0, 2], x3=1)
    by_mapping = coded[name].condition({"x1": [0, 2]}, x3=1)
    by_evidence = coded[name].condition(Evidence.unknown(CARDS).among(1, [0, 2]), x3=1)
    in_turn = coded[name].condition(x1=[0, 2]).condition([[-1, -1, -1, 1]])
    for found in (by_name, by_mapping, by_evidence, in_turn):
        assert type(found) is Density
        np.testing.assert_allclose(joint_of(found), expected, rtol=1e-10)
        assert found.marginal("x3").probabilities.tolist() == [0.0, 1.0]
    nothing = coded[name].condition(x0=None)
    np.testing.assert_allclose(joint_of(nothing), joint, rtol=1e-12)
    drawn = by_name.sample(4000, random_state=0)
    assert set(map(tuple, drawn)) <= set(map(tuple, ALL[fits]))
    share = np.mean(np.all(drawn == ALL[fits][0], axis=1))
    assert share == pytest.approx(expected[fits][0], abs=0.04)


@every
def test_knowing_everything_leaves_one_row(name, coded):
    for k in (0, 7, len(ALL) - 1):
        known = {f"x{i}": int(value) for i, value in enumerate(ALL[k])}
        for facts in (known, ALL[k : k + 1]):
            found = coded[name].condition(facts).score_samples(ALL)
            assert found[k] == pytest.approx(0.0, abs=1e-12)
            assert np.all(np.delete(found, k) == -np.inf)


@every
def test_impossible_and_unknown_facts(name, mixed, coded):
    for make in (
        lambda: mixed[name].condition(real=(1e6, 2e6)),
        lambda: mixed[name].condition(text=[]),
        lambda: coded[name].condition(x0=0).condition(x0=1),
    ):
        with pytest.raises(ImpossibleEvidenceError, match="probability zero"):
            make()
    with pytest.raises(DomainError, match=r"no column 'txt'.*did you mean 'text'"):
        mixed[name].condition(txt="red")
    with pytest.raises(DomainError, match="no column 'rael'"):
        mixed[name].marginal("rael")
    with pytest.raises(DomainError, match=r"'purple'.*'blue', 'green', 'red'"):
        mixed[name].condition(text="purple")
    with pytest.raises(DomainError, match="one row"):
        mixed[name].condition(FRAMES["polars"][:2])
    with config_context(columns="strict"), pytest.raises(DomainError, match="no column 'flag'"):
        mixed[name].score_samples({"text": ["red"]})


@every
def test_marginals_are_in_the_users_units(name, mixed):
    for column in MIXED:
        marginal = mixed[name].marginal(column)
        assert marginal.probabilities.sum() == pytest.approx(1.0, rel=1e-12)
        assert sum(marginal.to_dict().values()) == pytest.approx(1.0)
        assert column in repr(marginal)
    for column in ("whole", "real"):
        known = np.array([x for x in MIXED[column] if x is not None], float)
        marginal = mixed[name].marginal(column)
        assert marginal.mean == pytest.approx(known.mean(), abs=0.2 * known.std())
        assert marginal.std == pytest.approx(known.std(), rel=0.2)
    red = mixed[name].condition(text="red").marginal("real").mean
    known = [x for x, t in zip(MIXED["real"], MIXED["text"], strict=True) if x and t == "red"]
    if name != "Independent":
        assert red == pytest.approx(np.mean(known), abs=0.4)


@every
def test_completions(name, mixed, coded):
    rows = np.array([[1, -1, -1, 0], [-1, -1, -1, -1], [0, 2, -1, -1]])
    done = coded[name].mpe(rows)
    assert np.all((done == rows) | (rows < 0))
    joint = joint_of(coded[name])
    for row, found in zip(rows, done, strict=True):
        fits = np.all((row == ALL) | (row < 0), axis=1)
        if name != "LatentTree":  # which is approximate
            assert joint[np.all(found == ALL, axis=1)] == pytest.approx(joint[fits].max())
    filled = mixed[name].mpe(MIXED)
    assert not any(value is None or value != value for value in filled["text"])
    assert all(a == b for a, b in zip(MIXED["text"], filled["text"], strict=True) if a is not None)


# -- learning -------------------------------------------------------------------------


@every
def test_before_learning(name, tmp_path):
    new = LEARNERS[name]()
    asks = [(new.score_samples, CODES), (new.score, CODES), (new.sample, 3), (new.marginal, "x0")]
    asks += [(new.condition, {"x0": 1}), (new.mpe, CODES), (new.save, tmp_path / "file")]
    asks += [(partial(getattr, new), "circuit"), (partial(getattr, new), "columns")]
    for ask, about in asks:
        with pytest.raises(NotFittedError, match="fit"):
            ask(about)
    assert repr(new).startswith(f"{name}(")


@every
def test_parameters_as_scikit_learn_has_them(name):
    new = LEARNERS[name](pseudo_count=0.25, encoder=Encoder(max_bins=3), random_state=7)
    copied = clone(new.set_params(encoder__max_bins=5))
    assert copied.get_params()["pseudo_count"] == 0.25
    assert copied.get_params()["encoder__max_bins"] == 5
    assert copied.fit(MIXED) is copied
    assert not hasattr(copied.encoder, "columns_")  # what was given stays as it was
    assert copied.n_features_in_ == 5
    assert copied.feature_names_in_.tolist() == list(MIXED)


@every
def test_the_same_seed_gives_the_same_density(name):
    codes = codes_table(3000, holes=0.1)
    with config_context(threads=1):
        one = LEARNERS[name](random_state=3).fit(codes)
    with config_context(threads=2):
        two = LEARNERS[name](random_state=3).fit(codes)
    assert one.circuit == two.circuit
    assert one.learned_.score == two.learned_.score
    assert LEARNERS[name](random_state=4).fit(codes).learned_.score != one.learned_.score


@counting
@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_a_weight_is_a_repetition(name, holes):
    codes = codes_table(holes=holes)
    times = np.random.default_rng(2).integers(0, 4, len(codes))
    one = LEARNERS[name]().fit(codes, CODES, sample_weight=times)
    two = LEARNERS[name]().fit(np.repeat(codes, times, axis=0), CODES)
    same_parameters(one, two, rtol=1e-12, atol=1e-300)
    one = LEARNERS[name]().fit(codes, CODES, sample_weight=np.full(len(codes), 2.0))
    two = LEARNERS[name]().fit(np.concatenate([codes, codes]), CODES)
    same_parameters(one, two, rtol=1e-12, atol=1e-300)


@every
@pytest.mark.parametrize("given", [True, False])
def test_rows_without_weight_are_not_there(name, given):
    valid = CODES[:50] if given else None
    junk = np.random.default_rng(0).integers(0, CARDS, (100, 4))
    weight = np.append(np.zeros(100), np.ones(len(CODES)))
    one = LEARNERS[name]().fit(np.concatenate([junk, CODES]), valid, sample_weight=weight)
    two = LEARNERS[name]().fit(CODES, valid)
    assert one.circuit == two.circuit
    assert one.learned_.rows == two.learned_.rows == len(CODES) - (0 if given else 40)


@every
def test_samples_teach_what_they_came_from(name):
    source = {"NaiveBayes": NaiveBayes("x1"), "Independent": Independent()}.get(name, ChowLiu())
    truth = source.fit(CODES[:, [0, 2, 3, 1]][:, [0, 1, 2, 0]] % 2)
    rows = truth.sample(20_000, random_state=0)
    more = {"states": 4, "max_epochs": 100} if name == "LatentTree" else {}
    learner = NaiveBayes("x1") if name == "NaiveBayes" else LEARNERS[name](**more)
    complete = np.array(list(itertools.product(range(2), repeat=4)))
    p, q = (d.score_samples(complete) for d in (truth, learner.fit(rows)))
    assert 0 <= np.exp(p) @ (p - q) < 0.01


@every
def test_holes_cost_little(name):
    rng = np.random.default_rng(3)
    hidden = rng.integers(0, 2, 3000)
    codes = np.where(rng.random((3000, 6)) < 0.05, 1 - hidden[:, None], hidden[:, None])
    holed = np.where(rng.random(codes.shape) < 0.3, -1, codes)[:2000]
    full = LEARNERS[name](max_epochs=50) if name == "LatentTree" else LEARNERS[name]()
    part = clone(full).fit(holed)
    full.fit(codes[:2000])
    assert part.score(codes[2000:]) == pytest.approx(full.score(codes[2000:]), rel=0.04)


# -- odd tables -----------------------------------------------------------------------


@every
def test_odd_columns(name):
    table = {
        "gone": [None] * 90,
        "constant": ["a"] * 90,
        "id": [f"user {i}" for i in range(90)],
        "x": [0, 1, 1] * 30,
        "text": ["u", "v", "v"] * 30,
    }
    density = LEARNERS[name]().fit(table)
    for column in ("gone", "constant", "id"):
        assert re.search(f"note +column '{column}' ", repr(density))
        assert density.marginal(column).probabilities.sum() == pytest.approx(1.0)
    assert np.all(np.isfinite(density.score_samples(table)))
    assert list(density.sample(2, random_state=0)) == list(table)
    assert set(density.mpe(table)["constant"]) == {"a"}


@every
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (19, 2), (20, 2), (50, 1), (2, 3)])
def test_small_tables(name, shape):
    codes = CODES[: shape[0], : shape[1]]
    density = LEARNERS[name]().fit(codes)
    assert np.all(np.isfinite(density.score_samples(codes)))
    assert density.learned_.held_out_rows == (shape[0] // 10 if shape[0] >= 20 else 0)
    assert density.sample(3, random_state=0).shape == (3, shape[1])
    rows = np.array(list(itertools.product(*map(range, density.circuit.cardinalities))))
    assert np.exp(density.score_samples(rows)).sum() == pytest.approx(1.0)
    nothing = LEARNERS[name]().fit(np.full(shape, -1))
    assert np.all(nothing.score_samples(np.full(shape, -1)) == pytest.approx(0.0, abs=1e-12))


@trees
def test_wide_tables(name):
    codes = np.random.default_rng(0).integers(0, 20, (60, 300))
    density = LEARNERS[name]().fit(codes, codes)
    assert density.learned_.score == pytest.approx(density.score(codes), rel=1e-10)
    assert density.partial_fit(codes).score(codes) > -1200


@every
def test_what_cannot_be_learned_from(name):
    make = LEARNERS[name]
    for table in (CODES[:0], {"a": []}, pd.DataFrame({"a": []}), CODES[:, :0]):
        with pytest.raises(DomainError):
            make().fit(table)
    with pytest.raises(DomainError, match="valid has no rows"):
        make().fit(CODES, CODES[:0])
    for weight in (np.zeros(400), np.full(400, -1.0), np.full(400, np.nan), np.ones(3)):
        with pytest.raises(DomainError, match="weight"):
            make().fit(CODES, sample_weight=weight)
    with pytest.raises(ValueError, match="pseudo_count"):
        make(pseudo_count=-1.0).fit(CODES)


@pytest.mark.parametrize(
    ("learner", "says"),
    [
        (LatentTree(states=0), "from 1 to"),
        (LatentTree(states=[]), "from 1 to"),
        (LatentTree(tree="oak"), "'oak'"),
        (NaiveBayes("clas"), "no column 'clas'"),
        (PSDD(start="middle"), "'middle'"),
        (PSDD(start="independent", vtree="sideways"), "'sideways'"),
    ],
)
def test_options_that_do_not_exist(learner, says):
    with pytest.raises(ValueError, match=says):
        learner.fit(CODES)


@given(vtrees(12), st.integers(0, 2**31))
def test_a_tree_from_a_vtree(vtree, seed):
    """Each variable once, below the one that tells most of its part of the vtree."""
    n = vtree.n_variables
    information = np.random.default_rng(seed).random((n, n))
    information += information.T
    tree = RootedTree.promoted(vtree, information)
    parent = {}
    for x, above in zip(tree.variable, tree.parent, strict=True):
        parent[int(x)] = int(tree.variable[above]) if above >= 0 else None

    def expect(v, free, above):
        below = [x for x in vtree.variables_below(v) if x in free]
        if not below:
            return free
        best = max(below, key=lambda x: sum(information[x, other] for other in below))
        assert parent[best] == above
        free = free - {best}
        if vtree.variable[v] < 0:
            free = expect(vtree.right[v], expect(vtree.left[v], free, best), best)
        return free

    assert not expect(vtree.root, frozenset(range(n)), None)
    assert sorted(tree.variable) == list(range(n))


def test_a_balanced_latent_tree():
    """Less deep than the Chow-Liu tree of a chain, and a distribution all the same."""
    rng = np.random.default_rng(0)
    chain = np.cumsum(rng.random((500, 9)) < 0.2, axis=1) % 2
    density = LEARNERS["LatentTree"](tree="balanced").fit(chain)
    assert np.isclose(np.exp(density.score_samples(complete_rows([2] * 9))).sum(), 1.0)

    def depth(tree):
        steps = np.zeros(len(tree), int)
        for node in range(len(tree) - 2, -1, -1):
            steps[node] = 1 + steps[tree.parent[node]]
        return steps.max()

    assert depth(density.tree_) <= 4 == depth(LEARNERS["LatentTree"]().fit(chain).tree_)
    assert density.learned_.score > LEARNERS["Independent"]().fit(chain).learned_.score + 1.0


# -- the rest -------------------------------------------------------------------------


@every
def test_what_is_printed(name, mixed):
    text = repr(mixed[name])
    s, learned = mixed[name].circuit.structure, mixed[name].learned_
    assert text.startswith(f"{name} of 5 columns")
    assert f"{s.n_edges:,} parameters" in text
    assert f"{learned.score:.4f} nats a row on 12 held-out rows" in text
    assert f"{learned.independent:.4f} if the columns were independent" in text
    assert re.search(r"from 108 rows in \d+\.\d s", text)
    assert learned.score > learned.independent - 0.1
    assert "on the 15 training rows" in repr(LEARNERS[name]().fit(CODES[:15]))


def test_progress_is_shown_and_changes_nothing(monkeypatch, capsys):
    clock = itertools.count(step=10)
    slow = SimpleNamespace(monotonic=lambda: float(next(clock)))
    monkeypatch.setattr(progress_module, "time", slow)
    plain = LEARNERS["LatentTree"]().fit(CODES)
    with config_context(progress=True):
        shown = LEARNERS["LatentTree"]().fit(CODES)
    assert shown.circuit == plain.circuit
    assert capsys.readouterr().out == ""


def test_a_latent_tree_leaves_independent_columns_independent():
    alone = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.exponential(size=2000), rng.normal(size=2000)])
        density = LatentTree(random_state=seed).fit(X)
        alone += [density] if "independent columns (hidden states are" in repr(density) else []
    assert len(alone) >= 3  # held-out rows may gain a little by chance
    density = alone[0]
    few, many = density.score_samples([[0.1, -2.0], [0.1, 0.0]])
    few_alone, many_alone = density.score_samples([[np.nan, -2.0], [np.nan, 0.0]])
    assert few - few_alone == pytest.approx(many - many_alone, rel=1e-12)
    assert "1 states each" in repr(LatentTree(states=1).fit(X))  # that is what was asked for
