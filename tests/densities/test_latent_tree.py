"""The default density: smooth leaves, clamped states, and how many states there are."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from expecta import Density, Encoder, Independent, LatentTree, config_context
from expecta.datasets import load_insurance
from expecta.densities import latent_tree

BINS = Encoder(max_bins=9)


def mixed_rows(n=300, seed=0, missing=0.0):
    """A number of nine bins, a category of three values and a Boolean, all dependent."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    table = pd.DataFrame(
        {
            "real": group + rng.normal(size=n),
            "kind": np.array(["a", "b", "c"], object)[group],
            "flag": (group == 1) ^ (rng.random(n) < 0.1),
        }
    ).astype({"flag": "boolean"})
    return table.mask(rng.random(table.shape) < missing)


def every_row(density):
    return np.array(list(itertools.product(*map(range, density.circuit.cardinalities))))


def joint_of(density):
    return np.exp(density.circuit.log_prob(every_row(density)))


@pytest.fixture(scope="module")
def clamped():
    return LatentTree(states=3, encoder=BINS).fit(mixed_rows(missing=0.1))


def test_columns_of_few_values_have_states_of_one_value(clamped):
    layout, states = clamped._layout_, {}
    for node, variable in enumerate(layout.tree.variable.tolist()):
        states[clamped.columns[variable]] = layout.values(clamped._theta, node)
    assert {name: len(table) for name, table in states.items()} == {"real": 3, "kind": 6, "flag": 5}
    for name in ("kind", "flag"):
        assert set(states[name].ravel()) == {0.0, 1.0}
    assert np.all(states["real"] > 0)
    assert "3 states each" in repr(clamped)


def test_answers_match_enumeration(clamped):
    joint, rows = joint_of(clamped), every_row(clamped)
    assert joint.sum() == pytest.approx(1.0, rel=1e-12)
    known = np.array([[-1, 1, -1], [4, -1, 0], [-1, -1, 1]])
    for row, found in zip(known, clamped.circuit.log_prob(known), strict=True):
        fits = np.all((row == rows) | (row < 0), axis=1)
        assert np.exp(found) == pytest.approx(joint[fits].sum(), rel=1e-11)
    of_b = clamped.condition(kind="b").marginal("flag").to_dict()["True"]
    fits = rows[:, 1] == 1
    assert of_b == pytest.approx(joint[fits & (rows[:, 2] == 1)].sum() / joint[fits].sum())
    fine = clamped.refined(mixed_rows(missing=0.1), max_bins=20)
    again = fine.condition(kind="b").marginal("flag").to_dict()["True"]
    assert again == pytest.approx(of_b, rel=1e-12)


def test_files_and_chunks(clamped, tmp_path):
    clamped.save(tmp_path / "density")
    loaded = Density.load(tmp_path / "density")
    assert loaded.circuit == clamped.circuit
    assert loaded.get_params()["smoothing"] == 100.0
    assert loaded.get_params()["pseudo_count"] is None
    more = mixed_rows(200, seed=1)
    np.testing.assert_allclose(
        joint_of(loaded.partial_fit(more)),
        joint_of(LatentTree(states=3, encoder=BINS).fit(mixed_rows(missing=0.1)).partial_fit(more)),
    )
    begun = LatentTree(states=3, encoder=BINS)
    for seed in range(4):
        begun.partial_fit(mixed_rows(seed=seed))
    assert joint_of(begun).sum() == pytest.approx(1.0)
    alone = Independent(encoder=BINS).fit(mixed_rows())
    assert begun.score(mixed_rows(seed=9)) > alone.score(mixed_rows(seed=9)) + 0.3


def test_a_weight_is_a_repetition_and_threads_change_nothing():
    table, valid = mixed_rows(200), mixed_rows(100, seed=1)
    weight = np.random.default_rng(0).integers(0, 3, len(table))
    make = LatentTree(states=2, encoder=BINS, restarts=1, max_epochs=60)
    one = make.fit(table, valid, sample_weight=weight)
    repeated = table.iloc[np.repeat(np.arange(len(table)), weight)]
    assert one.score(valid) == pytest.approx(make.fit(repeated, valid).score(valid), abs=0.05)
    with config_context(threads=1):
        first = LatentTree(encoder=BINS).fit(table)
    with config_context(threads=2):
        assert LatentTree(encoder=BINS).fit(table).circuit == first.circuit


def test_small_tables_hold_every_row_out_in_turn():
    density = LatentTree(encoder=BINS).fit(mixed_rows(120))
    assert density.learned_.rows == density.learned_.held_out_rows == 120
    assert "chosen by 5-fold cross-validation" in density.learned_.how
    assert "nats a row on 120 rows, each held out in turn" in repr(density)
    assert density.learned_.score > density.learned_.independent + 0.3
    assert density.learned_.score < density.score(mixed_rows(120))  # training rows do better
    new = mixed_rows(5000, seed=7)
    assert density.learned_.score == pytest.approx(density.score(new), abs=0.25)


def test_large_tables_choose_with_a_sample(monkeypatch):
    monkeypatch.setattr(latent_tree, "MAX_FOLD_ROWS", 100)
    monkeypatch.setattr(latent_tree, "MAX_CHOICE_ROWS", 400)
    table, new = mixed_rows(3000), mixed_rows(3000, seed=1)
    density = LatentTree(encoder=BINS).fit(table)
    assert density.get_params()["states"] is None
    assert density.learned_.rows == 2700
    assert density.learned_.held_out_rows == 300
    whole = LatentTree(states=8, encoder=BINS).fit(table)
    assert density.score(new) == pytest.approx(whole.score(new), abs=0.02)
    for name in table:
        np.testing.assert_allclose(
            density.marginal(name).probabilities,
            whole.marginal(name).probabilities,
            atol=0.01,
        )


def test_the_default_sizes():
    few, many, large = np.zeros((1999, 9)), np.zeros((2000, 9)), np.zeros((2000, 201))
    assert LatentTree()._sizes() == LatentTree()._sizes(few) == [4, 8, 16, 32]
    assert LatentTree()._sizes(many) == [4, 8, 16, 32, 64]
    assert LatentTree()._sizes(large) == [4, 8, 16, 32]
    assert LatentTree(states=[8, 3, 8])._sizes(many) == [3, 8]


def test_a_default_choice_of_sizes_goes_through_a_file(tmp_path):
    density = LatentTree(encoder=BINS).fit(mixed_rows(60))
    density.save(tmp_path / "density")
    assert Density.load(tmp_path / "density").get_params()["states"] is None


def test_the_prior_of_categories_is_as_strong_as_rows_held_out_like_it(tmp_path):
    def bits(n, seed):
        rng = np.random.default_rng(seed)
        patterns = np.random.default_rng(5).random((6, 14)) < 0.5
        return (patterns[rng.integers(0, 6, n)] ^ (rng.random((n, 14)) < 0.15)).astype(int)

    few, many, new = bits(150, 0), bits(6000, 0), bits(5000, 1)
    density = LatentTree().fit(few)
    assert "pseudo_count=2" in density.learned_.how
    weak = LatentTree(pseudo_count=0.1).fit(few)
    assert density.score(new) > weak.score(new) + 0.2
    assert "pseudo_count=0.1" in LatentTree().fit(many).learned_.how
    assert "pseudo_count" not in weak.learned_.how
    assert "pseudo_count=0.1" in LatentTree(states=2).fit(few).learned_.how  # nothing is chosen

    density.save(tmp_path / "density")
    loaded = Density.load(tmp_path / "density")
    assert loaded.get_params()["pseudo_count"] is None
    first, second = density.partial_fit(many[:200]), loaded.partial_fit(many[:200])
    assert first.circuit == second.circuit
    assert "pseudo_count=0.1" in loaded.fit(many).learned_.how  # chosen anew


def test_missing_as_a_value_beside_bins_keeps_its_share():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 400)
    number = np.where(rng.random(400) < np.where(kind, 0.5, 0.1), np.nan, rng.normal(size=400))
    table = pd.DataFrame({"number": number, "kind": np.array(["a", "b"], object)[kind]})
    encoder = Encoder(max_bins=16, missing_is_value=["number"])
    density = LatentTree(states=4, encoder=encoder).fit(table)
    for value, share in (("a", 0.1), ("b", 0.5)):
        found = density.condition(kind=value).marginal("number").to_dict()["missing"]
        assert found == pytest.approx(share, abs=0.08)


def test_smooth_leaves_generalise_where_rows_are_few():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2100, 1))
    table = x + 0.7 * rng.normal(size=(2100, 5))
    train, test = table[:100], table[100:]
    smooth, rough = LatentTree().fit(train), LatentTree(smoothing=0.0).fit(train)
    assert smooth.score(test) > rough.score(test) + 0.5
    assert smooth.score(test) > Independent(encoder=Encoder(max_bins=32)).fit(train).score(test) + 1


@pytest.mark.parametrize("seed", [0, 7])
def test_a_weak_dependence_of_few_values_is_kept(seed):
    """Sex and smoking: p = 0.005 in the rows, and lost in hidden states without clamping."""
    table = load_insurance().drop(columns="charges")
    density = LatentTree(random_state=seed).fit(table)
    groups = [density.condition(sex=sex).marginal("smoker") for sex in ("male", "female")]
    found = groups[0].to_dict()["yes"] - groups[1].to_dict()["yes"]
    shares = [np.mean(table.smoker[table.sex == sex] == "yes") for sex in ("male", "female")]
    error = np.sqrt(sum(p * (1 - p) / 669 for p in shares))
    assert abs(found - (shares[0] - shares[1])) < error
    means = table.groupby("region").bmi.mean()
    south, north = (
        density.condition(region=name).marginal("bmi").mean for name in ("southeast", "northwest")
    )
    assert south - north > 0.6 * (means["southeast"] - means["northwest"])


def test_what_a_column_is_is_asked_as_often_of_many_columns(monkeypatch):
    asked = []

    class Counted(LatentTree):
        @property
        def _ordered(self):
            asked.append(self)
            return super()._ordered

    def times(columns):
        table = np.random.default_rng(0).normal(size=(60, columns))
        asked.clear()
        Counted(states=1, random_state=0).fit(table)
        return len(asked)

    assert times(12) == times(3)
