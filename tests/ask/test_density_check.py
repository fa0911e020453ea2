"""A density is checked against rows: by enumeration, by simulation, and on odd tables."""

import datetime
import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from expecta import ChowLiu, Density, Encoder, Independent, LatentTree, random_probabilistic
from expecta.ask.checks.chance import beyond_chance
from expecta.ask.checks.checked_rows import CheckedRows, noise_ratio
from expecta.ask.checks.density_check import check_density
from expecta.ask.checks.group_check import check_groups
from expecta.ask.checks.missing_dependence import missing_by_columns
from expecta.ask.checks.pair_check import _joint_tables, check_pairs
from expecta.ask.checks.pair_scores import ScoredColumn, compare_tables
from expecta.circuits.vtree import Vtree
from expecta.tables.estimator_inputs import read_rows
from truth import complete_rows, probability

KINDS = "p", "q", "r", "s"


def small_density(seed):
    """A random circuit over a category, a number, a Boolean and a number; and its truth."""
    rng = np.random.default_rng(seed)
    cards = [3, 4, 2, 3]
    rows = complete_rows(cards)
    numbers = rng.normal(size=(2, 4)).cumsum(axis=1) + 10.0 * np.arange(4)
    density = Density(
        random_probabilistic(Vtree.random(4, seed=seed), cards, seed=seed),
        Encoder().fit(as_table(rows, numbers)),
    )
    p = np.array([probability(density.circuit, x) for x in rows])
    return density, rows, p / p.sum(), numbers


def as_table(codes, numbers):
    return {
        "kind": [KINDS[c] for c in codes[:, 0]],
        "size": numbers[0][codes[:, 1]],
        "wet": [bool(c) for c in codes[:, 2]],
        "age": numbers[1][codes[:, 3]],
    }


def with_unknown(table, rng, share=0.1):
    out = {}
    for name, cells in table.items():
        hidden = rng.random(len(cells)) < share
        out[name] = [None if h else c for c, h in zip(cells, hidden, strict=True)]
    return out


# -- by enumeration -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_tables_of_pairs_are_those_of_all_complete_rows(seed):
    density, rows, p, _ = small_density(seed)
    codes = rows.astype(np.int32)
    columns = density.encoder_.columns_
    many = np.full(len(codes), 100.0)  # no value is rare
    scored = {v: ScoredColumn.of(columns[v], codes[:, v], many) for v in range(4)}
    tables = _joint_tables(density, scored)
    assert len(tables) == 6
    for (v, w), table in tables.items():
        truth = np.zeros_like(table)
        np.add.at(truth, (scored[v].group[rows[:, v]], scored[w].group[rows[:, w]]), p)
        np.testing.assert_allclose(table, truth, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_means_of_groups_are_those_of_all_complete_rows_and_of_the_rows(seed):
    density, rows, p, numbers = small_density(seed)
    rng = np.random.default_rng(seed)
    codes = rows[rng.choice(len(rows), 700, p=p)]
    weight = rng.random(len(codes)) * 2
    table = with_unknown(as_table(codes, numbers), rng)
    check = density.check(table, sample_weight=weight).groups
    assert set(check.conditions.tolist()) == {0, 1, 2}
    known = density.encoder_.codes(table)
    seen = {(g, m): i for i, (g, m) in enumerate(zip(check.group, check.mean, strict=True))}
    assert len(seen) == len(check.size) > 100
    for (g, m), i in seen.items():
        mean = check.means[m]
        value = (
            numbers[{1: 0, 3: 1}[mean.variable]][: density.encoder_.cardinalities_[mean.variable]]
            if mean.value is None
            else np.isin(np.arange(density.encoder_.cardinalities_[mean.variable]), mean.members)
        )
        inside, among = np.ones(len(rows), bool), known[:, mean.variable] >= 0
        for condition in check.groups[g].split(" and ") if check.conditions[g] else []:
            v, allowed = meant(density.encoder_, condition)
            assert v != mean.variable
            inside &= np.isin(rows[:, v], allowed)
            among &= np.isin(known[:, v], allowed)
        of = value[rows[:, mean.variable]]
        assert check.density[i] == pytest.approx(p[inside] @ of[inside] / p[inside].sum())
        cells = value[known[among, mean.variable]].astype(float)
        average = np.average(cells, weights=weight[among])
        assert check.rows[i] == pytest.approx(average)
        size = weight[among].sum() * weight.sum() / (weight @ weight)
        assert check.count[i] == pytest.approx(size)
        spread = np.average((cells - average) ** 2, weights=weight[among]) * size / (size - 1)
        middle = p[inside] @ of[inside] / p[inside].sum()
        own = p[inside] @ (of[inside] - middle) ** 2 / p[inside].sum()
        assert check.error[i] == pytest.approx(np.sqrt(max(spread, own) / size))


def meant(encoder, condition):
    """The variable and the values of a condition on one column."""
    from expecta.ask.language.query import Query

    evidence = Query.read(condition, encoder).evidence(encoder)
    (v,) = (v for v in range(4) if not np.all(evidence.weights(v) == 1.0))
    return v, np.flatnonzero(evidence.weights(v)[0])


@pytest.mark.parametrize("seed", range(3))
def test_the_likelihood_is_that_of_enumeration_and_its_error_that_of_the_difference(seed):
    density, rows, p, numbers = small_density(seed)
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(rows), 200, p=p)
    weight = rng.random(200)
    check = density.check(as_table(rows[chosen], numbers), sample_weight=weight).likelihood
    assert check.names == ("the density", "independent columns", "Chow-Liu tree")
    assert check.score[0] == pytest.approx(np.average(np.log(p[chosen]), weights=weight))
    np.testing.assert_allclose(check.score[0] - check.score, check.gain, atol=1e-12)
    assert check.gain[0] == check.error[0] == 0.0
    assert np.all(check.error[1:] > 0)


def test_training_rows_teach_the_simple_densities_where_they_are_kept():
    rng = np.random.default_rng(0)
    x = rng.integers(3, size=(500, 2))
    table, new = {"a": x[:400, 0], "b": x[:400, 0]}, {"a": x[400:, 0], "b": x[400:, 0]}
    density = Independent(pseudo_count=0).fit(table)
    from expecta.tables.training_rows import TrainingRows

    encoder = density.encoder_
    training = TrainingRows.from_table(read_rows(table, encoder), encoder, None, np.ones(400), "")
    check = check_density(density, new, training=training)
    assert "training rows" in check.likelihood.how
    assert not check.in_sample
    share = (np.bincount(x[:400, 0]) + 1 / 3) / 401
    assert check.likelihood.score[1] == pytest.approx(np.mean(2 * np.log(share[x[400:, 0]])))
    assert check.likelihood.score[2] > check.likelihood.score[1] + 1.0
    assert "less likely" in " ".join(check.verdict)


@pytest.mark.parametrize("seed", range(5))
def test_two_numbers_have_the_correlation_of_their_scores(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(5, 40, size=(6, 4)).astype(float)
    joint = rng.dirichlet(np.ones(24)).reshape(6, 4)
    table = {"x": np.repeat(np.arange(6.0), 4), "y": np.tile(np.arange(4.0), 6)}
    columns = Encoder().fit(table).columns_
    x, y = np.divmod(np.arange(24), 4)
    a, b = (
        ScoredColumn.of(column, code.astype(np.int32), counts.ravel())
        for column, code in zip(columns, (x, y), strict=True)
    )
    found = compare_tables(counts, joint, a, b, 1.0)
    score_x, score_y = a.score[x], b.score[y]
    covariance = np.cov(score_x, score_y, fweights=counts.ravel().astype(int))
    assert found.rows == pytest.approx(covariance[0, 1] / np.sqrt(np.prod(np.diag(covariance))))
    # odds ratios of the density at the shares of the rows: the same density says the same
    same = compare_tables(counts, counts / counts.sum(), a, b, 1.0)
    assert same.difference == pytest.approx(0.0, abs=1e-9)
    assert same.p == pytest.approx(1.0)
    scaled = counts * rng.random((6, 1)) * rng.random(4)  # keeps odds ratios
    again = compare_tables(counts, scaled / scaled.sum(), a, b, 1.0)
    assert again.density == pytest.approx(found.rows, abs=1e-6)
    alone = compare_tables(counts, np.outer(joint.sum(1), joint.sum(0)), a, b, 1.0)
    assert alone.density == pytest.approx(0.0, abs=1e-9)
    assert alone.difference == pytest.approx(found.rows)


def test_two_categories_have_cramers_v():
    counts = np.array([[60.0, 20, 20], [10, 70, 30], [25, 25, 90], [40, 5, 15]])
    first, second = (ScoredColumn(np.arange(n), None, np.zeros(0, np.int64)) for n in counts.shape)
    n = counts.sum()
    expected = np.outer(counts.sum(1), counts.sum(0)) / n
    chi_squared = np.sum((counts - expected) ** 2 / expected)
    found = compare_tables(counts, expected / n, first, second, 1.0)
    assert found.rows == pytest.approx(np.sqrt((chi_squared - 6) / n / 2))  # corrected for chance
    assert found.density == pytest.approx(0.0, abs=1e-9)


# -- false discoveries and power ----------------------------------------------------------


def test_a_right_density_is_seldom_said_to_be_off():
    """Over 100 tables: any pair beyond chance in about 5 of them, as is any mean of groups."""
    density, rows, p, numbers = small_density(7)
    off = np.zeros((100, 4))
    for seed in range(100):
        rng = np.random.default_rng(seed)
        table = as_table(rows[rng.choice(len(rows), 300, p=p)], numbers)
        read = CheckedRows.read(table, density.encoder_, None)
        pairs = check_pairs(density, read, range(4), 1.0)
        groups = check_groups(density, read, range(4), 1.0)
        off[seed] = [pairs.beyond.sum(), *(groups.of_size(k).beyond.sum() for k in range(3))]
    assert np.all(np.mean(off > 0, axis=0) <= 0.1)
    assert off[:, 0].mean() / 6 <= 0.02  # of pairs, where 5% would be 0.05


def test_a_learned_tree_that_is_right_is_seldom_off_on_new_rows():
    """The chance in the rows learned from is not taken for a fault."""
    off = []
    for seed in range(40):
        tables = [tree_table(np.random.default_rng([seed, k]), 600) for k in (0, 1)]
        density = ChowLiu(pseudo_count=0.1).fit(tables[0])
        rows = CheckedRows.read(tables[1], density.encoder_, None)
        noise = noise_ratio(rows, density, in_sample=False)
        assert noise == 2.0
        off.append(check_pairs(density, rows, range(4), noise).beyond.sum())
    assert np.mean(np.array(off) > 0) <= 0.1


def tree_table(rng, n):
    """A tree a - b - c, and a column of its own."""
    a = rng.random(n) < 0.4
    b = np.where(rng.random(n) < 0.85, a, rng.random(n) < 0.5)
    c = np.where(rng.random(n) < 0.8, b, rng.random(n) < 0.5)
    return {"a": a, "b": b, "c": c, "d": [KINDS[k] for k in rng.integers(3, size=n)]}


def common_cause(rng, n):
    """Three columns with a hidden cause: a tree holds the dependence of two pairs only."""
    cause = rng.random(n) < 0.5
    a, b, c = np.where(rng.random((3, n)) < 0.7, cause, rng.random((3, n)) < 0.5)
    return {"a": a, "b": b, "c": c, "d": [KINDS[k] for k in rng.integers(3, size=n)]}


def test_a_planted_dependence_is_found_and_named_first():
    tables = [common_cause(np.random.default_rng([3, k]), 3000) for k in (0, 1)]
    density = ChowLiu().fit(tables[0])
    check = density.check(tables[1])
    omitted = {frozenset(pair) for pair in ("ab", "ac", "bc")}
    for child, parent in enumerate(density.tree_.parent.tolist()):
        names = [density.columns[density.tree_.variable[i]] for i in (child, parent)]
        omitted.discard(frozenset(names) if parent >= 0 else None)
    for by in ("size", "errors"):
        worst = check.pairs.sorted_by(by).to_frame().iloc[0]
        assert {worst["first"], worst["second"]} in omitted
        assert worst["rows"] == pytest.approx(0.49, abs=0.08)
        assert worst["density"] == pytest.approx(0.24, abs=0.08)
    assert check.pairs.large.tolist() == [True] + [False] * 5
    assert any(worst["first"] + " and " + worst["second"] in line for line in check.verdict)
    better = LatentTree(states=2, restarts=2).fit(tables[0]).check(tables[1])
    assert not np.any(better.pairs.large)
    assert "Can be trusted" in better.verdict[0]
    assert "pairs of columns" in better.verdict[0]


def test_a_planted_interaction_is_found_in_groups_by_two_columns():
    def table(rng, n=2000):
        a, b, e = rng.random((3, n)) < 0.5
        return {
            "a": a,
            "b": b,
            "c": np.where(rng.random(n) < 0.8, a ^ b, e),
            "x": rng.normal(size=n),
        }

    density = ChowLiu(encoder=Encoder(max_bins=4)).fit(table(np.random.default_rng(0)))
    check = density.check(table(np.random.default_rng(1)))
    assert not np.any(check.pairs.beyond)
    assert not np.any(check.groups.of_size(1).beyond)
    worst = check.groups.sentence(0)
    assert all(name in worst for name in "abc")
    assert "x" not in worst
    assert "groups by two columns" in " ".join(check.verdict)
    assert "pairs of columns" in check.verdict[0]  # which can be trusted
    assert "act together" in " ".join(check.verdict)


def test_the_highest_and_lowest_numbers_are_groups_by_themselves():
    def table(rng, n=2000):
        x = rng.normal(size=n)
        return {"x": x, "y": rng.normal(size=n) + 3.0 * (x > 1.9)}

    rng = np.random.default_rng(0)
    check = Independent(encoder=Encoder(max_bins=32)).fit(table(rng)).check(table(rng))
    top = check.groups.of_size(1)
    assert top.sentence(0).startswith("y where 1.")
    assert top.beyond[0]
    assert 20 <= top.count[0] <= 200
    assert top.rows[0] == pytest.approx(3.0, abs=0.6)
    assert top.density[0] == pytest.approx(0.08, abs=0.15)


def test_a_difference_is_in_the_users_units():
    rng = np.random.default_rng(0)
    region = rng.choice(["north", "south"], size=1000)
    table = {"region": region, "height": 170.0 + 10 * (region == "north") + rng.normal(size=1000)}
    check = Independent().fit(table).check(table)
    means = check.groups.of_size(1)
    (north,) = (
        text
        for text in map(means.sentence, range(len(means.size)))
        if text.startswith("height where region == 'north'")
    )
    density, rows, error = map(float, re.findall(r"[0-9.]+", north))
    assert density == pytest.approx(175, abs=0.5)
    assert rows == pytest.approx(180, abs=0.2)
    assert error == pytest.approx(5.1 / np.sqrt(500), rel=0.1)
    assert check.pairs.rows[0] == pytest.approx(-0.83, abs=0.05)


def test_discoveries_are_counted_by_benjamini_and_hochberg():
    p = np.array([0.01, 0.02, 0.03, 0.04, np.nan])
    assert beyond_chance(p).tolist() == [True] * 4 + [False]
    assert beyond_chance(np.array([0.02, 0.2, 0.3])).tolist() == [False] * 3
    assert beyond_chance(np.zeros(0)).tolist() == []


# -- what is checked ----------------------------------------------------------------------


def test_rows_learned_from_are_recognised_and_said_to_be_optimistic():
    rng = np.random.default_rng(0)
    table = tree_table(rng, 300)
    density = LatentTree(states=2, max_epochs=5, restarts=1).fit(table)
    check = density.check(table)
    assert check.in_sample
    assert "training rows" in check.remarks[0]
    assert not density.check(tree_table(rng, 300)).in_sample
    assert f"{density.learned_.score:.4f}" in " ".join(check.remarks)


def test_weights_count_in_proportion_and_rows_without_weight_not_at_all():
    rng = np.random.default_rng(0)
    table = tree_table(rng, 400)
    density = ChowLiu().fit(tree_table(rng, 400))
    weight = rng.integers(0, 3, 400).astype(float)
    once, thrice = (density.check(table, sample_weight=k * weight) for k in (1.0, 3.0))
    kept = {name: np.asarray(cells)[weight > 0] for name, cells in table.items()}
    left = density.check(kept, sample_weight=weight[weight > 0])
    for other in thrice, left:
        for part in "pairs", "groups", "likelihood":
            for name, cells in getattr(once, part).lines().items():
                if not isinstance(cells[0], str):
                    np.testing.assert_allclose(cells, getattr(other, part).lines()[name])
    with pytest.raises(ValueError, match="sample_weight"):
        density.check(table, sample_weight=[1.0])


def test_a_category_that_training_did_not_have_is_unknown():
    rng = np.random.default_rng(0)
    table = tree_table(rng, 300)
    density = ChowLiu().fit(table)
    unseen = {**table, "d": ["new"] * 5 + list(table["d"][5:])}
    missing = {**table, "d": [None] * 5 + list(table["d"][5:])}
    first, second = (density.check(t).groups for t in (unseen, missing))
    np.testing.assert_array_equal(first.rows, second.rows)
    np.testing.assert_array_equal(first.count, second.count)


@pytest.mark.parametrize("missing_is_value", [None, ["g"]])
def test_values_that_training_did_not_have_are_told_and_not_trusted(missing_is_value):
    rng = np.random.default_rng(0)
    x, g = rng.normal(size=(2, 400)), rng.choice(["a", "b"], (2, 400)).astype(object)
    g[:, ::4] = None
    density = Independent(encoder=Encoder(missing_is_value=missing_is_value)).fit(
        {"x": x[0], "g": g[0]}
    )
    like = density.check({"x": x[1], "g": g[1]})
    assert not like.unseen
    assert "not in the training data" not in str(like)
    assert "Can be trusted" in like.verdict[0]
    g[1][g[1] == "b"] = "c"
    share = np.sum(g[1] == "c") / 300
    check = density.check({"x": x[1], "g": g[1]})
    assert check.unseen == check.to_dict()["unseen"] == {"g": pytest.approx(share)}
    said = f"{share:.1%} of the known cells of g are not in the training data"
    assert said in str(check)
    assert said in " ".join(check.verdict)
    assert said in repr(density)
    assert "Can be trusted" not in str(check)
    all_new = density.check({"x": [None] * 30, "g": ["c"] * 30})
    assert "100% of the known cells of g" in " ".join(all_new.verdict)


def test_a_few_values_that_training_did_not_have_are_only_told():
    rng = np.random.default_rng(0)
    g = rng.choice(["a", "b"], 400).astype(object)
    density = Independent().fit({"g": g})
    g[:2] = "c"
    check = density.check({"g": g})
    assert "Can be trusted" in check.verdict[0]
    assert not check.doubts
    assert "0.50% of the known cells of g" in " ".join(check.remarks)


@pytest.mark.parametrize("how", ["wide", "two-peaked"])
def test_numbers_of_the_same_mean_and_another_distribution_are_off(how):
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 2000))
    y = np.where(rng.random(2000) < 0.1, np.nan, x)
    density = Independent(encoder=Encoder(missing_is_value=["y"])).fit({"x": x, "y": y})
    assert "Can be trusted" in density.check({"x": z, "y": y}).verdict[0]
    z = 3 * z if how == "wide" else np.where(z > 0, 1.5, -1.5)
    z -= z.mean()
    check = density.check({"x": z, "y": y})
    alone = check.groups.of_size(0)
    assert np.any(alone.large)
    assert all("x" in alone.name(i) for i in np.flatnonzero(alone.large))
    assert "Can be trusted" not in str(check)
    assert "answers about single columns" in check.verdict[0]


def odd_table(n):
    rng = np.random.default_rng(0)
    days = [
        datetime.date(2024, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(90, size=n)
    ]
    return {
        "constant": [5.0] * n,
        "nothing": [None] * n,
        "day": days,
        "kind": rng.choice(["a", "b", "c"], n).tolist(),
        "x": [None if rng.random() < 0.2 else float(v) for v in rng.normal(size=n)],
    }


@pytest.mark.parametrize("missing_is_value", [None, ["x", "kind"]])
@pytest.mark.parametrize("n", [0, 1, 5, 60])
def test_odd_tables_have_an_answer(n, missing_is_value):
    density = ChowLiu(encoder=Encoder(missing_is_value=missing_is_value)).fit(odd_table(200))
    check = density.check({name: cells[:n] for name, cells in odd_table(200).items()})
    assert check.n_rows == n
    assert str(check)
    assert check._repr_html_()
    assert check.to_dict()
    assert "constant" not in {c for c in check.groups.lines()["column"] if n < 20}
    for part in (check.pairs, check.groups, check.likelihood):
        assert str(part)
        assert part.to_frame() is not None
    if n < 20:
        assert "too few" in check.verdict[0]
        assert not len(check.groups.size)
    else:
        assert np.isfinite(check.likelihood.gain).all()
        assert not np.any(check.pairs.large)
        pair = {check.pairs.columns.index("constant")}
        compared = ~np.isnan(check.pairs.apart)
        assert not np.any(compared & (np.isin(check.pairs.first, list(pair))))


def test_rows_of_which_nothing_is_known_are_said_to_tell_nothing():
    density = ChowLiu().fit({"a": [1.0, 2.0] * 20, "b": ["x", "y"] * 20})
    check = density.check({"a": [None] * 40, "b": [None] * 40})
    assert "Nothing was compared" in check.verdict[0]
    assert check.pairs.count == 0
    assert check.likelihood.score.tolist() == pytest.approx([0.0] * 3)


def test_numbers_unlike_those_learned_from_are_off():
    density = Independent().fit({"x": [5.0] * 50, "y": ["a", "b"] * 25})
    check = density.check({"x": [7.0] * 50, "y": ["a"] * 50})
    alone = check.groups.of_size(0)
    assert np.all(alone.large)
    assert "learn from rows like these" in " ".join(check.verdict)
    assert "x: density 5, rows 7 ± 0" in map(alone.sentence, range(2))


def test_a_row_that_is_impossible_is_counted():
    density = ChowLiu(pseudo_count=0).fit({"a": [0, 0, 1, 1] * 10, "b": ["x", "x", "y", "y"] * 10})
    check = density.check({"a": [0, 0, 1, 1] * 10, "b": ["x", "y", "y", "x"] * 10})
    assert check.likelihood.impossible == 20
    assert "probability zero" in str(check.likelihood)
    assert check.pairs.beyond[0]
    assert np.isfinite(check.likelihood.score[0])
    assert "20 rows of probability zero" in check.head()[0]


def test_rows_that_a_condition_rules_out_are_counted_and_nothing_is_trusted():
    rng = np.random.default_rng(0)
    table = {"smoker": rng.choice(["yes", "no"], 300), "x": rng.normal(size=300)}
    density = Independent().fit(table).condition(smoker="yes")
    check = density.check(table)
    n = int(np.sum(table["smoker"] == "no"))
    assert f"{n} of 300 rows have probability zero" in " ".join(check.verdict)
    assert f"without {n} rows of probability zero" in check.head()[0]
    assert "Can be trusted" not in str(check)
    none = density.check({"smoker": ["no"] * 30, "x": np.zeros(30)})
    assert "30 rows of probability zero" in none.head()[0]


def test_many_columns_are_chosen_by_their_dependence():
    rng = np.random.default_rng(0)
    x = rng.integers(2, size=(200, 70))
    x[:, 7] = x[:, 61]
    check = Independent().fit(x).check(x)
    assert len(check.pairs.columns) == 64
    assert "64 with the strongest" in " ".join(check.remarks)
    assert check.pairs.sentence(0).startswith("x7 and x61: dependence 1.00 in the rows, 0.00 under")


def test_a_density_that_has_not_learned_cannot_be_checked():
    with pytest.raises(NotFittedError):
        ChowLiu().check({"a": [1]})


def test_pairs_and_groups_are_sorted_by_size_or_by_errors():
    tables = [tree_table(np.random.default_rng([3, k]), 500) for k in (0, 1)]
    check = Independent().fit(tables[0]).check(tables[1])
    for part, size in ((check.pairs, "difference"), (check.groups, "size")):
        by_errors = part.sorted_by("errors")
        assert np.all(np.diff(by_errors.apart) <= 0)
        sizes = np.abs(getattr(part, size))[part.beyond]
        assert np.all(np.diff(sizes) <= 0)
        assert np.all(part.beyond[: len(sizes)])
        with pytest.raises(ValueError, match="size"):
            part.sorted_by("name")
    lines = check.short()
    assert "pairs of columns differ" in lines[0]
    assert "answers about groups" in lines[1]


def test_the_summary_of_a_density_keeps_what_the_last_check_said():
    table = common_cause(np.random.default_rng(0), 1000)
    density = ChowLiu().fit(table)
    assert "checked" not in repr(density)
    check = density.check(table)
    for line in check.short():
        assert f"  checked   {line}" in repr(density)
    assert "under the density" in repr(density)
    density.partial_fit(table)
    assert "checked" not in repr(density)
    density.check(table)
    assert "checked" not in repr(density.fit(table))


def test_cells_missing_by_another_column_are_no_fault_of_the_density():
    rng = np.random.default_rng(5)
    b = rng.integers(2, size=3000)
    a = b + rng.normal(size=3000) * 0.3
    table = {"a": a[:1500], "b": b[:1500].astype(str)}
    density = ChowLiu().fit(table)
    hidden = rng.random(1500) < np.where(b[1500:] == 1, 0.8, 0.05)
    rows = {"a": np.where(hidden, np.nan, a[1500:]), "b": b[1500:].astype(str)}
    check = density.check(rows)
    told = "Cells are missing depending on other columns: a (by b)."
    assert np.any(check.groups.large)
    assert any(sentence.startswith(told) for sentence in check.verdict)
    by_chance = {"a": np.where(rng.random(1500) < 0.4, np.nan, a[1500:]), "b": rows["b"]}
    assert not missing_by_columns(
        density.encoder_, CheckedRows.read(by_chance, density.encoder_, None), [0, 1]
    )


def test_few_rows_do_not_flatter_a_density_against_independent_columns():
    rng = np.random.default_rng(6)
    table = {name: rng.integers(12, size=4000).astype(str) for name in "abc"}
    density = Independent().fit(table)
    rows = {name: rng.integers(12, size=60).astype(str) for name in "abc"}
    likelihood = density.check(rows).likelihood
    assert abs(likelihood.gain[1]) < 0.01
    assert "flatters the density" in likelihood.how
    assert "flatters" not in density.check(table).likelihood.how
