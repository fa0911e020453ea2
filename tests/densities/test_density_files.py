"""Densities over time: learned chunk by chunk, pickled, and kept in files."""

from __future__ import annotations

import copy
import datetime as dt
import itertools
import pickle

import numpy as np
import pytest

from expecta import (
    PSDD,
    ChowLiu,
    Density,
    Encoder,
    Independent,
    LatentTree,
    NaiveBayes,
    Vtree,
)
from expecta.learn.trees.expectation import TreeRows, expected_counts

LEARNERS = {
    "LatentTree": lambda **k: LatentTree(**{"states": 2, "restarts": 1, "max_epochs": 5, **k}),
    "ChowLiu": ChowLiu,
    "NaiveBayes": lambda **k: NaiveBayes("x1", **k),
    "Independent": Independent,
    "PSDD": lambda **k: PSDD(**{"patience": 2, "max_parameters": 300, **k}),
}
TREES = ["LatentTree", "ChowLiu", "NaiveBayes", "Independent"]
every = pytest.mark.parametrize("name", sorted(LEARNERS))
NAMES = sorted([*LEARNERS, "Density"])
counting = pytest.mark.parametrize("name", TREES[1:])
trees = pytest.mark.parametrize("name", TREES)

CARDS = (2, 3, 2, 2)
ALL = np.array(list(itertools.product(*map(range, CARDS))))  # every complete row


def codes_table(n=400, holes=0.0):
    """Rows of four columns, each much like the one before."""
    rng = np.random.default_rng(1)
    columns = [rng.integers(0, 2, n)]
    for card in CARDS[1:]:
        like = columns[-1] % card
        columns.append(np.where(rng.random(n) < 0.25, rng.integers(0, card, n), like))
    codes = np.column_stack(columns)
    codes[rng.random(codes.shape) < holes] = -1
    return codes


CODES = codes_table()
MIXED = {
    "x1": ["red", "blue", None, "red", "green"] * 8,
    "flag": [True, None, False, True, False] * 8,
    "real": [None if i % 7 == 0 else (i % 5) + i / 100 for i in range(40)],
    "day": [None if i % 9 == 0 else dt.date(2024, 1, 1 + i % 5) for i in range(40)],
}
FITTED = {}  # by class: what learned from MIXED


@pytest.fixture(scope="module", autouse=True)
def _fitted():
    """Learning waits until tests run."""
    for name, make in LEARNERS.items():
        FITTED[name] = make(encoder=Encoder(max_bins=4)).fit(MIXED)
    FITTED["Density"] = FITTED["LatentTree"].condition(flag=True, x1=["red", "green"])


def same_parameters(a, b):
    assert a.circuit.structure.same_as(b.circuit.structure)
    np.testing.assert_allclose(
        np.exp(a.circuit.log_weight), np.exp(b.circuit.log_weight), rtol=1e-12, atol=1e-12
    )


def through_a_file(density, folder):
    density.save(folder / "density")
    return Density.load(folder / "density")


# -- chunks ---------------------------------------------------------------------------


@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_chunks_without_steps_and_a_last_step_are_one_step_of_em(holes):
    codes, weight = codes_table(holes=holes), np.random.default_rng(0).random(400)
    density = LatentTree(states=3).partial_fit(codes[:100], sample_weight=weight[:100], step=0)
    start = copy.deepcopy(density)
    for a in (100, 200):
        density.partial_fit(codes[a : a + 100], sample_weight=weight[a : a + 100], step=0)
    assert density.circuit == start.circuit
    density.partial_fit(codes[300:], sample_weight=weight[300:], step=1)
    layout = start._layout_
    table = TreeRows(start.tree_, np.array(CARDS, np.int32), codes, weight)
    counts = expected_counts(layout, start._theta, table).counts
    theta = density._prior(layout).maximise(counts, start._theta)
    np.testing.assert_allclose(density._theta, theta, rtol=1e-10)
    assert density.circuit != start.circuit


@counting
@pytest.mark.parametrize("pseudo_count", [0.0, 1e-13, 1.0])
def test_chunks_that_are_counted_are_all_rows_at_once(name, pseudo_count):
    make = LEARNERS[name]
    chunked, begun = make(pseudo_count=pseudo_count), make(pseudo_count=pseudo_count)
    for part in np.split(CODES, 4):
        chunked.partial_fit(part)
    begun.fit(CODES[:100], CODES).partial_fit(CODES[100:])
    whole = make(pseudo_count=pseudo_count).fit(CODES, CODES)
    assert chunked.tree_.variable.tolist() == whole.tree_.variable.tolist()
    same_parameters(chunked, whole)
    same_parameters(begun, whole)


@trees
def test_chunks_of_every_step(name):
    first = LEARNERS[name]().partial_fit(CODES[:200], step=0.5)
    assert np.all(np.isfinite(first.score_samples(CODES)))
    for step in (None, 0.3, 0, 1):
        first.partial_fit(CODES[200:], step=step)
        assert np.exp(first.score_samples(ALL)).sum() == pytest.approx(1.0)
    assert "by chunks" in repr(first)
    before = first.circuit
    first.partial_fit(CODES, sample_weight=np.zeros(len(CODES)))
    assert first.circuit == before
    for step in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="between 0 and 1"):
            first.partial_fit(CODES, step=step)


@trees
def test_learning_anew_forgets_chunks_that_wait(name):
    waiting = LEARNERS[name]().partial_fit(CODES[:200], step=0).fit(CODES[200:])
    plain = LEARNERS[name]().fit(CODES[200:])
    assert waiting.circuit == plain.circuit
    assert waiting.partial_fit(CODES[:50]).circuit == plain.partial_fit(CODES[:50]).circuit


# -- there and back -------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_what_is_read_is_what_was_saved(name, tmp_path):
    density = FITTED[name]
    again = through_a_file(density, tmp_path)
    assert type(again) is type(density)
    assert repr(again) == repr(density)
    assert again.columns == density.columns
    assert again.circuit == density.circuit
    np.testing.assert_array_equal(again.score_samples(MIXED), density.score_samples(MIXED))
    for column in MIXED:
        assert again.marginal(column).to_dict() == density.marginal(column).to_dict()
    drawn, expected = again.sample(9, random_state=1), density.sample(9, random_state=1)
    assert all(list(drawn[column]) == list(expected[column]) for column in MIXED)
    first = (tmp_path / "density").read_bytes()
    through_a_file(again, tmp_path)
    assert (tmp_path / "density").read_bytes() == first
    further = again.condition(x1="red")
    np.testing.assert_array_equal(
        through_a_file(further, tmp_path).score_samples(MIXED), further.score_samples(MIXED)
    )


@every
def test_parameters_come_back(name, tmp_path):
    for encoder in (None, Encoder(max_bins=4, unseen="error")):
        density = LEARNERS[name](pseudo_count=0.25, random_state=None, encoder=encoder)
        again = through_a_file(density.fit(CODES), tmp_path)
        ours, theirs = again.get_params(deep=False), density.get_params(deep=False)
        assert (ours.pop("encoder") is None) == (theirs.pop("encoder") is None)
        states = [list(np.atleast_1d(p.pop("states", ()))) for p in (ours, theirs)]
        assert ours == theirs
        assert states[0] == states[1]
        if encoder is not None:
            assert again.encoder.get_params() == encoder.get_params()
        assert again.learned_ == density.learned_


@pytest.mark.parametrize(
    "make",
    [
        lambda: ChowLiu(random_state=np.int64(3)),
        lambda: LatentTree(states=np.int64(2), restarts=1, max_epochs=2),
        lambda: LatentTree(states=np.arange(1, 3), restarts=1, max_epochs=2),
        lambda: LatentTree(states=range(1, 3), restarts=1, max_epochs=2),
        lambda: LatentTree(states=(1, 2), restarts=1, max_epochs=np.int32(2), batch_size=50),
        lambda: Independent(pseudo_count=np.float32(0.5)),
    ],
)
def test_parameters_may_be_numpys(make, tmp_path):
    density = make().fit(CODES)
    again = through_a_file(density, tmp_path)
    np.testing.assert_array_equal(again.score_samples(ALL), density.score_samples(ALL))


def test_a_psdd_over_a_given_vtree(tmp_path):
    vtree = Vtree.right_linear([2, 0, 3, 1])
    density = LEARNERS["PSDD"](start="independent", vtree=vtree).fit(CODES)
    again = through_a_file(density, tmp_path)
    assert again.circuit.vtree == again.vtree == vtree
    np.testing.assert_array_equal(again.score_samples(ALL), density.score_samples(ALL))


@trees
@pytest.mark.parametrize("step", [None, 0.4, 1])
def test_learning_goes_on_after_a_file(name, step, tmp_path):
    density = LEARNERS[name]().fit(CODES[:200])
    again = through_a_file(density, tmp_path)
    for part in (CODES[200:300], codes_table(holes=0.3)[300:]):
        density.partial_fit(part, step=step)
        again.partial_fit(part, step=step)
        assert again.circuit == density.circuit
    assert repr(again) == repr(density)


@trees
@pytest.mark.parametrize("begun", [False, True])
def test_chunks_that_wait_are_kept_in_files(name, begun, tmp_path):
    density = LEARNERS[name]()
    if begun:
        density.fit(CODES[:100])
    density.partial_fit(CODES[:300], step=0)
    again = through_a_file(density, tmp_path)
    assert again.circuit == density.circuit
    density.partial_fit(CODES[300:], step=1)
    again.partial_fit(CODES[300:], step=1)
    assert again.circuit == density.circuit


def test_scores_that_are_not_finite_come_back(tmp_path):
    rows = np.array([[0, 0], [1, 1]] * 10)
    density = ChowLiu(pseudo_count=0).fit(rows, [[0, 1]])
    assert density.learned_.score == -np.inf
    assert through_a_file(density, tmp_path).learned_.score == -np.inf


@pytest.mark.parametrize("name", NAMES)
def test_pickles(name):
    again = pickle.loads(pickle.dumps(FITTED[name]))
    np.testing.assert_array_equal(again.score_samples(MIXED), FITTED[name].score_samples(MIXED))
    assert repr(again) == repr(FITTED[name])
    assert list(again.sample(3, random_state=1)["real"]) == list(
        FITTED[name].sample(3, random_state=1)["real"]
    )
