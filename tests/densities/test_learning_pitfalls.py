"""Mistakes that a density must not make again."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from expecta import (
    PSDD,
    ChowLiu,
    Density,
    DomainError,
    Encoder,
    Independent,
    LatentTree,
    NaiveBayes,
    learn_vtree,
)


@pytest.mark.parametrize("seed", [0, 1, 8, 10])
def test_a_lucky_start_does_not_pass_for_a_model(seed):
    rng = np.random.default_rng(seed)
    table = {"a": rng.integers(0, 3, 400).astype(str), "e": rng.integers(0, 200, 400)}
    density = LatentTree(encoder=Encoder(max_bins=4)).fit(table)
    for column in density.encoder_.columns_:
        share = column.counts / column.counts.sum()
        np.testing.assert_allclose(density.marginal(column.name).probabilities, share, atol=2e-3)


@pytest.mark.parametrize("seed", range(4))
def test_counting_counts_every_row(seed):
    table = {"a": ["common"] * 99 + ["rare"], "b": list("xy") * 50}
    for learner in (Independent, ChowLiu, NaiveBayes):
        density = learner(pseudo_count=0, random_state=seed).fit(table)
        assert density.marginal("a").to_dict()["rare"] == pytest.approx(0.01)
        assert density.learned_.rows == 90
        assert density.learned_.held_out_rows == 10


def test_the_last_step_counts_held_out_rows_and_given_ones_never():
    table = {"a": list("xxxy") * 25}
    given = Independent(pseudo_count=0).fit(table, {"a": list("yyyy")})
    assert given.marginal("a").to_dict()["y"] == pytest.approx(0.25)


def test_a_failed_fit_leaves_nothing_half_learned():
    density = ChowLiu().fit({"a": list("xyz") * 10, "b": list("uv") * 15})
    with pytest.raises(ValueError, match="pseudo_count"):
        density.set_params(pseudo_count=-1).fit({"p": list("klm") * 10, "q": list("de") * 15})
    with pytest.raises(NotFittedError):
        density.marginal("p")


def test_labels_of_times_are_those_of_the_clock():
    times = pd.DataFrame({"t": pd.date_range("2020-01-01", periods=6, freq="h", tz="Asia/Tokyo")})
    encoder = Encoder().fit(times)
    labels = encoder.columns_[0].labels
    assert labels[0] == "2020-01-01 00:00"
    for value, label in enumerate(labels):
        assert encoder.where(t=label).weights(0)[0].tolist() == np.eye(6)[value].tolist()


def test_thresholds_of_times_are_in_their_zone():
    times = pd.date_range("2020-01-01", periods=24, freq="h", tz="Europe/Berlin")
    table = pd.DataFrame({"t": times})
    for threshold in ("2020-01-01 12:00", times[12]):
        encoder = Encoder(max_bins=1, thresholds={"t": [threshold]}).fit(table)
        assert encoder.transform(table)[:, 0].tolist() == [0] * 13 + [1] * 11
        assert encoder.where(t=(None, threshold)).weights(0).tolist() == [[1.0, 0.0]]


def test_intervals_grow_with_their_ends():
    encoder = Encoder(max_bins=4).fit({"age": list(range(100))})
    shares = [encoder.where(age=(3, end)).weights(0)[0, 0] for end in (3, 4, 5)]
    assert np.all(np.diff(shares) > 0)
    assert not np.any(encoder.where(age=(1000, 1000)).weights(0))
    with pytest.raises(DomainError, match="one interval at a time"):
        encoder.where(age=[(0, 10), (5, 15)])


def test_columns_of_very_many_values():
    many = np.arange(60_000)[:, None] % 50_000
    for learner in (ChowLiu(), NaiveBayes(), PSDD()):
        with pytest.raises(DomainError, match="fewer values"):
            learner.fit(many)
    both = np.column_stack([many, many])
    assert LatentTree(states=2, restarts=1, max_epochs=1).fit(both).circuit.properties


@pytest.mark.parametrize(
    "wrong",
    [
        {"restarts": 0},
        {"states": 10**9},
        {"states": 2.5},
        {"states": []},
        {"pseudo_count": "a"},
        {"pseudo_count": np.inf},
        {"max_epochs": 1.5},
        {"batch_size": -3},
        {"patience": None},
        {"tolerance": np.nan},
    ],
)
def test_parameters_that_make_no_sense(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        LatentTree(**wrong).fit({"a": list("xy") * 10})


def test_samples_are_a_whole_number():
    density = Independent().fit({"a": list("xy") * 10})
    for n in (True, 1.5, "a", -1):
        with pytest.raises(ValueError, match="n is a whole number"):
            density.sample(n)


def test_what_cannot_be_saved_says_so(tmp_path):
    class Mine(ChowLiu):
        pass

    table = {"a": list("xy") * 10}
    with pytest.raises(DomainError, match="Mine"):
        Mine().fit(table).save(tmp_path / "mine")
    with pytest.raises(DomainError, match="random_state"):
        ChowLiu(random_state=np.random.default_rng(0)).fit(table).save(tmp_path / "seeded")
    assert not list(tmp_path.iterdir())


def test_names_of_columns_that_are_no_text(tmp_path):
    density = ChowLiu().fit(pd.DataFrame({0: list("xy") * 10, 1: list("uv") * 10}))
    known = density.condition({0: "x"})
    assert known.marginal(1).to_dict()["u"] == pytest.approx(1, abs=0.1)
    known.save(tmp_path / "known")
    assert Density.load(tmp_path / "known").columns == ["0", "1"]


def test_a_category_among_the_others_stands_for_them():
    density = ChowLiu(encoder=Encoder(max_categories=3)).fit(
        {"c": ["a"] * 5 + ["b"] * 4 + ["d", "e"]}
    )
    log_prob = [density.circuit.log_prob(density.encoder_.where(c=c)) for c in ("e", "d", "other")]
    assert log_prob[0] == log_prob[1] == log_prob[2]
    with pytest.raises(DomainError, match="no value 'z'"):
        density.encoder_.where(c="z")


def test_vtrees_of_tables():
    table = pd.DataFrame({"a": list("xy") * 10, "b": [0, 0, 1, 1] * 5, "c": list("xy") * 10})
    assert learn_vtree(table).nested() in (((0, 2), 1), (1, (0, 2)))
    with pytest.raises(ValueError, match="how is one of"):
        learn_vtree(table, how="magic")
