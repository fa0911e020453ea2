"""Densities over time: learned chunk by chunk, pickled, and kept in files, damaged ones too."""

from __future__ import annotations

import copy
import datetime as dt
import itertools
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expecta import (
    PSDD,
    ChowLiu,
    Density,
    Encoder,
    Evidence,
    FormatError,
    Independent,
    LatentTree,
    NaiveBayes,
    Pair,
    ProbabilisticCircuit,
    Vtree,
)
from expecta.common import atomic_files
from expecta.files.container import Container
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
FITTED, FILES = {}, {}  # by class: what learned from MIXED, and the bytes of its file


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """A place for files; learning waits until tests run."""
    path = tmp_path_factory.mktemp("hostile")
    for name, make in LEARNERS.items():
        FITTED[name] = make(encoder=Encoder(max_bins=4)).fit(MIXED)
    FITTED["Density"] = FITTED["LatentTree"].condition(flag=True, x1=["red", "green"])
    for name, density in FITTED.items():
        density.save(path / name)
        FILES[name] = (path / name).read_bytes()
    return path


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
    counts = expected_counts(layout, start._theta, table).counts + density._prior(layout)
    np.testing.assert_allclose(density._theta, layout.normalised(counts), rtol=1e-10)
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


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "density"
    FITTED["ChowLiu"].save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "no space left on device")

    for what in ("replace", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(atomic_files.os, what, full)
            with pytest.raises(OSError, match="no space"):
                FITTED["LatentTree"].save(path)
        assert path.read_bytes() == before
        assert [file.name for file in tmp_path.iterdir()] == ["density"]
    with pytest.raises(FileNotFoundError):
        FITTED["ChowLiu"].save(tmp_path / "nowhere" / "density")
    with pytest.raises(FileNotFoundError):
        Density.load(tmp_path / "nowhere")


def test_other_files_name_their_reader(tmp_path):
    density, circuit, text = (tmp_path / name for name in ("density", "circuit", "text"))
    FITTED["LatentTree"].save(density)
    FITTED["LatentTree"].circuit.save(circuit)
    with pytest.raises(FormatError, match=r"probabilistic circuit.*ProbabilisticCircuit\.load"):
        Density.load(circuit)
    for reader in (ProbabilisticCircuit, Vtree, Pair):
        with pytest.raises(FormatError, match=r"holds a density.*Density\.load"):
            reader.load(density)
    for data in (b"", b"psdd 7\n", b"\0" * 100, pickle.dumps({"a": 1})):
        text.write_bytes(data)
        with pytest.raises(FormatError, match="text"):
            Density.load(text)


# -- damaged and hostile --------------------------------------------------------------


def attempt(folder, data):
    """Either a FormatError, or a density that answers."""
    (folder / "file").write_bytes(data)
    try:
        density = Density.load(folder / "file")
    except FormatError:
        return False
    cards = density.circuit.cardinalities
    nothing, first = np.full((1, len(cards)), -1), np.zeros((1, len(cards)), int)
    found = density.score_samples(Evidence.rows(np.concatenate([nothing, first]), cards))
    assert abs(found[0]) < 1e-5 > found[1]  # nor NaN
    assert repr(density)
    density.circuit.sample(2, seed=0)
    density.save(folder / "file")
    return True


names = st.sampled_from(NAMES)
hostile = settings(max_examples=150)


@hostile
@given(
    names,
    st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), min_size=1, max_size=3),
    st.booleans(),
)
def test_flipped_bytes(folder, name, flips, in_header):
    data = bytearray(FILES[name])
    length = 8 + int.from_bytes(data[:8], "little")
    for where, change in flips:
        place = where * (length if in_header else len(data))
        data[min(int(place), len(data) - 1)] ^= change
    attempt(folder, bytes(data))


@settings(hostile, max_examples=50)
@given(names, st.floats(0, 1, exclude_max=True), st.binary(max_size=9))
def test_cut_off_files(folder, name, where, more):
    data = FILES[name]
    assert attempt(folder, data)
    cut = data[: int(where * len(data))]
    assert not attempt(folder, cut)
    assert not attempt(folder, data + b"x" + more)


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([10**400, -1, 2**63, "PSDD", "Density", "LatentTree", "chow-liu", 0, 1e308]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(node, path=()):
    """All places in a JSON document."""
    yield path
    if isinstance(node, dict | list):
        for name, child in node.items() if isinstance(node, dict) else enumerate(node):
            yield from places(child, (*path, name))


@settings(hostile, max_examples=400)
@given(names, st.data())
def test_headers_of_junk(folder, name, data):
    container = Container.from_bytes("file", FILES[name])
    header = copy.deepcopy(dict(container.header))
    every_place = list(places(header))[1:]
    if data.draw(st.booleans()):  # the encoder has tests of its own
        every_place = [place for place in every_place if place[0] != "encoder"]
    *path, last = data.draw(st.sampled_from(every_place))
    node = header
    for step in path:
        node = node[step]
    if data.draw(st.booleans()):
        node[last] = data.draw(junk)
    else:
        del node[last]
    attempt(folder, Container("density", header, container.arrays).to_bytes())


@settings(hostile, max_examples=400)
@given(names, st.data())
def test_arrays_of_junk(folder, name, data):
    container = Container.from_bytes("file", FILES[name])
    arrays = dict(container.arrays)
    which = data.draw(st.sampled_from(sorted(arrays)))
    array = arrays[which].copy()
    how = data.draw(
        st.sampled_from(["value", "value", "swap", "shorter", "longer", "gone", "scale"])
    )
    if how == "value" and len(array):
        value = st.floats() if array.dtype.kind == "f" else st.integers(-2, 9) | st.just(2**31 - 1)
        array[data.draw(st.integers(0, len(array) - 1))] = data.draw(value)
    elif how == "swap":
        array = array[list(data.draw(st.permutations(range(len(array)))))]
    elif how == "shorter":
        array = array[:-1]
    elif how == "longer":
        array = np.append(array, array[:1])
    elif how == "scale" and array.dtype.kind == "f":
        array = array * data.draw(st.sampled_from([-1.0, 0.0, 0.5, 1.5, np.nan]))
    arrays[which] = array
    if how == "gone":
        del arrays[which]
    attempt(folder, Container("density", container.header, arrays).to_bytes())


@settings(hostile, max_examples=60)
@given(names, names)
def test_files_of_two_halves(folder, name, other):
    one, two = (Container.from_bytes("file", FILES[n]) for n in (name, other))
    attempt(folder, Container("density", {**two.header, "class": name}, two.arrays).to_bytes())
    attempt(folder, Container("density", two.header, one.arrays).to_bytes())
    attempt(folder, Container("density", one.header, {**one.arrays, **two.arrays}).to_bytes())


@pytest.mark.parametrize("name", [*TREES, "Density"])
@pytest.mark.parametrize("huge", [2**31 - 1, 2**20, 60_000])
def test_huge_numbers_of_states_and_values_take_no_memory(folder, name, huge):
    container = Container.from_bytes("file", FILES[name])
    target = "p.cardinalities" if name == "Density" else "tree.states"
    for names in ([target], ["encoder.cardinalities"], [target, "encoder.cardinalities"]):
        arrays = dict(container.arrays)
        for one in names:
            arrays[one] = np.full_like(arrays[one], huge)
        data = Container("density", container.header, arrays).to_bytes()
        (folder / "file").write_bytes(data)
        tracemalloc.start()
        try:
            with pytest.raises(FormatError):
                Density.load(folder / "file")
            assert tracemalloc.get_traced_memory()[1] < 50_000_000
        finally:
            tracemalloc.stop()


def test_files_run_no_code(folder):
    container = Container.from_bytes("file", FILES["ChowLiu"])
    for name in ("Learner", "TreeLearner", "os.system", "object", ["ChowLiu"], None):
        header = {**container.header, "class": name}
        (folder / "file").write_bytes(Container("density", header, container.arrays).to_bytes())
        with pytest.raises(FormatError, match="its class is"):
            Density.load(folder / "file")
