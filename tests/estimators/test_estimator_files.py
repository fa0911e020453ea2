"""Estimators in files: there and back to the last bit, and damaged or hostile ones refused."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from expecta import (
    PSDD,
    ChowLiu,
    CircuitClassifier,
    CircuitRegressor,
    Density,
    DomainError,
    Encoder,
    FormatError,
    Independent,
    LatentTree,
    NaiveBayes,
    Pair,
    RegressionCircuit,
    Vtree,
    random_regression,
)
from expecta.common import atomic_files
from expecta.estimators.base import CircuitEstimator
from expecta.files.container import Container
from expecta.files.native import circuit_arrays

N = 90
RNG = np.random.default_rng(4)
TABLE = {
    "text": RNG.choice(["red", "green", "blue"], N).tolist(),
    "flag": (RNG.random(N) < 0.5).tolist(),
    "real": RNG.normal(size=N).round(2).tolist(),
    "day": [dt.date(2024, 1, 1 + int(k)) for k in RNG.integers(5, size=N)],
}
Y = np.array(TABLE["real"]) + np.array(TABLE["flag"]) * 2 + RNG.normal(size=N)
HOLED = {
    name: [value if RNG.random() < 0.5 else None for value in column[:25]]
    for name, column in TABLE.items()
}
QUICK = {"max_bins": 8, "max_splits": 2, "penalties": (3.0,), "random_state": 3}


def regressor(**changed):
    options = {"density": ChowLiu(encoder=Encoder(max_bins=4)), "calibration_rows": 40}
    return CircuitRegressor(**{**QUICK, **options, **changed})


def classifier(**changed):
    return CircuitClassifier(
        **{**QUICK, "density": ChowLiu(encoder=Encoder(max_bins=4)), **changed}
    )


def three(y=Y):
    return np.digitize(y, [0.0, 2.0])


MAKERS = {
    "regressor": lambda: regressor().fit(TABLE, Y),
    "two": lambda: classifier().fit(TABLE, (Y > 1).astype(str)),
    "three": lambda: classifier().fit(TABLE, three()),
    "latent": lambda: regressor(
        density=LatentTree(states=2, restarts=1, max_epochs=3), encoder=Encoder(max_bins=4)
    ).fit(TABLE, Y),
}
FITTED, FILES = {}, {}
NAMES = sorted(MAKERS)
every = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """A place for files; learning waits until tests run."""
    path = tmp_path_factory.mktemp("estimators")
    for name, make in MAKERS.items():
        FITTED[name] = make()
        FITTED[name].save(path / name)
        FILES[name] = (path / name).read_bytes()
    return path


def through_a_file(model, folder):
    model.save(folder / "model")
    return type(model).load(folder / "model")


def answers(model, rows=HOLED):
    """Everything that a model says of rows."""
    found = [model.score_samples(rows), model.predict_moments(rows, 3)]
    if isinstance(model, CircuitRegressor):
        found += [*model.predict(rows, return_std=True), model.predict_interval(rows)]
        found += [model.predict_distribution(rows).cdf([0.0, 1.0])]
    else:
        found += [*model.predict_proba(rows, return_error=True), model.predict(rows)]
        found += [model.predict_proba(rows, method="taylor")]
    return found


def assert_same(again, model, rows=HOLED):
    assert type(again) is type(model)
    for a, b in zip(answers(again, rows), answers(model, rows), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    assert again.n_features_in_ == model.n_features_in_
    assert hasattr(again, "feature_names_in_") == hasattr(model, "feature_names_in_")
    if hasattr(model, "feature_names_in_"):
        assert again.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    for name in ("penalty_", "n_splits_", "validation_"):
        assert getattr(again, name) == getattr(model, name)
    assert again.circuit_ == model.circuit_
    assert again.pair_.p == model.pair_.p
    assert type(again.density_) is type(model.density_)
    assert repr(again.density_) == repr(model.density_)


# -- there and back -------------------------------------------------------------------


@every
def test_what_is_read_is_what_was_saved(name, tmp_path):
    model = FITTED[name]
    again = through_a_file(model, tmp_path)
    assert_same(again, model)
    ours, theirs = (m.get_params(deep=False) for m in (again, model))
    assert repr(ours.pop("encoder")) == repr(theirs.pop("encoder"))
    if model.encoder is None:  # else the density comes back with the encoder that it was given
        assert repr(again) == repr(model)
    assert type(ours.pop("density")) is type(theirs.pop("density"))
    assert ours == theirs
    first = (tmp_path / "model").read_bytes()
    assert first == FILES[name]
    through_a_file(again, tmp_path)
    assert (tmp_path / "model").read_bytes() == first
    fresh = clone(again)
    with pytest.raises(NotFittedError):
        fresh.predict(HOLED)
    target = Y if isinstance(model, CircuitRegressor) else model.classes_[three() % 2]
    assert_same(fresh.fit(TABLE, target), clone(model).fit(TABLE, target))


def test_attributes_of_either(tmp_path):
    again = through_a_file(FITTED["regressor"], tmp_path)
    assert again.noise_ == FITTED["regressor"].noise_
    assert again.calibration_.missing.dtype == FITTED["regressor"].calibration_.missing.dtype
    again = through_a_file(FITTED["three"], tmp_path)
    assert again.probability_error_ == FITTED["three"].probability_error_ > again.tol
    assert again.classes_.dtype == FITTED["three"].classes_.dtype


def test_numpys_parameters_come_back_as_pythons(tmp_path):
    model = regressor(
        max_bins=np.int64(5),
        max_splits=np.int32(1),
        penalties=np.array([1.0, 2.0]),
        calibration_rows=None,
        completions=2,
        random_state=np.int64(7),
        density=None,
    ).fit({"real": TABLE["real"]}, Y)
    found = through_a_file(model, tmp_path).get_params()
    assert found["penalties"] == (1.0, 2.0)
    assert [found[name] for name in ("max_bins", "max_splits", "completions")] == [5, 1, 2]
    assert found["calibration_rows"] is None
    assert found["density"] is None
    assert found["random_state"] == 7
    assert all(not isinstance(value, np.generic) for value in found.values())
    model = classifier(tol=np.float32(2**-7), penalties=2).fit(TABLE, three())
    found = through_a_file(model, tmp_path).get_params()
    assert (found["tol"], found["penalties"]) == (2**-7, 2.0)


def test_a_density_to_learn_is_to_learn_again(tmp_path):
    again = through_a_file(FITTED["regressor"], tmp_path)
    assert isinstance(again.density, ChowLiu)
    assert not hasattr(again.density, "circuit_")
    assert again.density.encoder.max_bins == 4
    other = {name: column[::-1] for name, column in TABLE.items()}
    assert_same(again.fit(other, Y), regressor().fit(other, Y))


@pytest.mark.parametrize("learned", [ChowLiu, lambda: ChowLiu().fit(TABLE).condition(flag=True)])
def test_a_density_that_has_learned_stays(learned, tmp_path):
    density = learned()
    if not hasattr(density, "circuit_"):
        density.fit(TABLE)
    model = regressor(density=density).fit(TABLE, Y)
    again = through_a_file(model, tmp_path)
    assert again.density is again.density_
    known = {name: [None] * 3 for name in TABLE} | {"real": [0.0, 1.0, None]}
    assert_same(again, model, known)
    assert_same(copy.deepcopy(again).fit(TABLE, Y), model, known)


def test_a_given_vtree_and_encoder(tmp_path):
    vtree = Vtree.right_linear([3, 1, 0, 2])
    model = regressor(
        density=PSDD(max_parameters=300, patience=2), vtree=vtree, encoder=Encoder(max_bins=3)
    ).fit(TABLE, Y)
    again = through_a_file(model, tmp_path)
    assert_same(again, model)
    assert again.vtree == again.pair_.p.vtree == vtree
    assert again.encoder.get_params() == model.encoder.get_params()
    named = regressor(density=None, vtree="top-down").fit({"real": TABLE["real"]}, Y)
    assert through_a_file(named, tmp_path).vtree == "top-down"
    assert through_a_file(named, tmp_path).density is None


@pytest.mark.parametrize("density", [Independent(), NaiveBayes("text"), LatentTree(max_epochs=2)])
def test_other_densities(density, tmp_path):
    model = classifier(density=density).fit(TABLE, three())
    assert_same(through_a_file(model, tmp_path), model)


def test_names_and_arrays(tmp_path):
    array = np.array([TABLE["real"], TABLE["flag"]], float).T
    rows = [[None, 1.0], [0.0, None], [np.nan, np.nan]]
    for X in (array, (array > 0).astype(int), pd.DataFrame(array, columns=["a", "b"])):
        model = regressor().fit(X, Y)
        again = through_a_file(model, tmp_path)
        assert hasattr(again, "feature_names_in_") == isinstance(X, pd.DataFrame)
        assert_same(again, model, X[:5])
        assert_same(again, model, np.array(rows, float))


CLASSES = {
    "int64": np.array([-(2**62), 5, 2**62]),
    "int8": np.array([-3, 0, 7], np.int8),
    "big-endian": np.array([1, 2, 3], ">i4"),
    "uint64": np.array([0, 1, 2**64 - 1], np.uint64),
    "float64": np.array([0.0, 1.0, 2.0]),
    "float32": np.array([-1.0, 0.0, 4.0], np.float32),
    "bool": np.array([False, True]),
    "text": np.array(["a", "b", "äö\n\u2028"]),
    "wide text": np.array(["a", "b"], "U40"),
    "objects": np.array(["x", "y\0", "zz"], object),
    "one": np.array(["only"]),
    "many": np.arange(12),
}


@pytest.mark.parametrize("kind", list(CLASSES))
def test_classes_keep_their_type(kind, tmp_path):
    classes = CLASSES[kind]
    labels = classes[np.arange(N) % len(classes)]
    model = classifier(max_splits=0, density=Independent()).fit(TABLE, labels)
    again = through_a_file(model, tmp_path)
    assert again.classes_.dtype == classes.dtype
    assert again.classes_.tolist() == classes.tolist()
    assert all(type(a) is type(b) for a, b in zip(again.classes_, classes, strict=True))
    assert_same(again, model)


@pytest.mark.parametrize(
    "classes",
    [
        np.array([1, 2], object),
        np.array(["2024-01-01", "2024-01-02"], "M8[D]"),
        np.array([b"a", b"b"]),
        np.array([0.0, 1.0], np.longdouble),
        np.array(["a", "b"], f"U{2**24}"),
    ],
)
def test_other_classes_are_refused(classes, tmp_path):
    model = copy.copy(FITTED["two"])
    model.classes_ = classes
    with pytest.raises(DomainError, match="integers, floats, Booleans or texts"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_what_has_no_place_in_a_file(tmp_path):
    class Mine(CircuitRegressor):
        pass

    class MyDensity(Independent):
        pass

    def refused(model, why):
        with pytest.raises(DomainError, match=why):
            model.save(tmp_path / "model")
        assert not list(tmp_path.iterdir())

    small = {"real": TABLE["real"]}
    refused(Mine(**QUICK, density=Independent()).fit(small, Y), "Mine has no file format")
    refused(regressor(density=MyDensity()).fit(small, Y), "MyDensity has no file format")
    seed = np.random.RandomState(0)
    refused(regressor(random_state=seed).fit(small, Y), "random_state is a whole number")
    refused(copy.copy(FITTED["regressor"]).set_params(max_bins="many"), "max_bins is a whole")
    steep = copy.copy(FITTED["two"])
    g = steep.circuit_
    g = RegressionCircuit(g.structure, 1e9 * g.weight, g.bias, link=g.link)
    steep.pair_ = Pair(steep.pair_.p, g)
    refused(steep, "too large")
    with pytest.raises(NotFittedError):
        CircuitRegressor().save(tmp_path / "model")


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_bytes(FILES["two"])

    def full(*_):
        raise OSError(28, "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(atomic_files.os, "replace", full)
        with pytest.raises(OSError, match="no space"):
            FITTED["three"].save(path)
    assert path.read_bytes() == FILES["two"]
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
    with pytest.raises(FileNotFoundError):
        CircuitRegressor.load(tmp_path / "nowhere")


def test_other_files_say_what_they_are(folder, tmp_path):
    path = tmp_path / "file"
    with pytest.raises(DomainError, match="holds a CircuitClassifier, not a CircuitRegressor"):
        CircuitRegressor.load(folder / "two")
    with pytest.raises(DomainError, match="holds a CircuitRegressor, not a CircuitClassifier"):
        CircuitClassifier.load(folder / "regressor")
    for reader in (Density.load, Pair.load):
        with pytest.raises(FormatError, match=r"holds an estimator.*CircuitRegressor\.load"):
            reader(folder / "two")
    FITTED["regressor"].density_.save(path)
    with pytest.raises(FormatError, match=r"holds a density, not an estimator.*Density\.load"):
        CircuitRegressor.load(path)
    for data in (b"", b"psdd 7\n", b"\0" * 100, pickle.dumps(FITTED["regressor"])):
        path.write_bytes(data)
        with pytest.raises(FormatError, match="not a file that an estimator's save wrote"):
            CircuitRegressor.load(path)


# -- damaged and hostile --------------------------------------------------------------


def attempt(folder, data):
    """Either a FormatError, or a model that answers."""
    (folder / "file").write_bytes(data)
    try:
        model = CircuitEstimator.load(folder / "file")
    except FormatError:
        return None
    rows = {name: [None, None] for name in model.density_.columns}
    known = np.zeros((1, model.n_features_in_), int)
    assert np.all(np.isfinite(model.circuit_(known)))
    if isinstance(model, CircuitRegressor):
        mean, std = model.predict(rows, return_std=True)
        ends = model.predict_interval(rows)
        assert np.all(np.isfinite(mean))
        assert np.all(std >= 0)
        assert np.all(ends[:, 0] <= ends[:, 1])
    else:
        found = model.predict_proba(rows)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        assert np.all((found >= 0) & (found <= 1))
        assert set(model.predict(rows)) <= set(model.classes_)
    assert repr(clone(model))
    model.save(folder / "file")
    return model


names = st.sampled_from(NAMES)
hostile = settings(max_examples=100)


def rewritten(name, header=None, arrays=None, without=()):
    """The file of a model with some entries changed."""
    found = Container.from_bytes("file", FILES[name])
    kept = {key: array for key, array in found.arrays.items() if key not in without}
    new = {**found.header, **(header or {})}
    for key in without:
        new.pop(key, None)
    return Container("estimator", new, {**kept, **(arrays or {})}).to_bytes()


def refused(folder, data, why):
    (folder / "file").write_bytes(data)
    with pytest.raises(FormatError, match=why):
        CircuitEstimator.load(folder / "file")


def array(name, key):
    return Container.from_bytes("file", FILES[name]).arrays[key].copy()


def header(name, key):
    return copy.deepcopy(Container.from_bytes("file", FILES[name]).header[key])


def with_parameters(name, **changed):
    return rewritten(name, {"parameters": {**header(name, "parameters"), **changed}})


@every
def test_the_helpers_change_nothing_by_themselves(folder, name):
    assert rewritten(name) == FILES[name]
    assert_same(attempt(folder, rewritten(name)), FITTED[name])


@pytest.mark.parametrize("kind", ["Mine", "object", "os.system", ["CircuitRegressor"], None, 3])
def test_files_run_no_code(folder, kind):
    refused(folder, rewritten("regressor", {"class": kind}), "its class is")


def test_entries_that_are_missing_or_more(folder):
    for name in NAMES:
        for key in Container.from_bytes("file", FILES[name]).header:
            if key != "target":  # files of before have none
                refused(folder, rewritten(name, without=[key]), "entries|class")
        for key in Container.from_bytes("file", FILES[name]).arrays:
            refused(folder, rewritten(name, without=[key]), "missing|not those|not (int|float)64")
        refused(folder, rewritten(name, {"more": 1}), "entries")
        refused(folder, rewritten(name, arrays={"more": np.zeros(3)}), "unknown array 'more'")
    swapped = rewritten("two", {"class": "CircuitRegressor"})
    refused(folder, swapped, "other entries")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"max_bins": 1}, "max_bins"),
        ({"max_bins": 2.5}, "max_bins"),
        ({"max_bins": float("nan")}, "max_bins"),
        ({"max_splits": -1}, "max_splits"),
        ({"completions": True}, "completions"),
        ({"penalties": []}, "penalties"),
        ({"penalties": [float("nan")]}, "penalties"),
        ({"penalties": [10**400]}, "penalties"),
        ({"penalties": {"a": 1}}, "penalties"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": "seed"}, "random_state"),
        ({"calibration_rows": 0.5}, "calibration_rows"),
        ({"density": "ChowLiu"}, "density"),
        ({"density": ["learned"]}, "density"),
        ({"density": "learned", "encoder": True}, "those of the density"),
        ({"vtree": 1}, "given or not"),
        ({"vtree": True}, "takes no vtree"),
        ({"encoder": None}, "given or not"),
        ({"tol": 0.5}, "parameters are not those"),
    ],
)
def test_parameters_that_make_no_sense(folder, changed, why):
    refused(folder, with_parameters("regressor", **changed), why)


@pytest.mark.parametrize("tol", [0, 0.5, 1, -1e-9, float("nan"), "small", None, 10**400, [0.5]])
def test_tolerances_that_make_no_sense(folder, tol):
    refused(folder, with_parameters("two", tol=tol), "damaged")


@pytest.mark.parametrize("noise", [0.0, -1.0, float("nan"), float("inf"), 1e200, "1", None, True])
def test_noise_that_makes_no_sense(folder, noise):
    refused(folder, rewritten("regressor", {"noise": noise}), "noise")
    refused(folder, rewritten("regressor", {"penalty": noise}), "penalty")


def test_other_headers_that_make_no_sense(folder):
    for value in (-1, 2.5, None, True):
        refused(folder, rewritten("two", {"n_splits": value}), "n_splits")
    for value in (None, 1, "yes"):
        refused(folder, rewritten("two", {"named": value}), "columns")
    for key in ("density", "encoder", "parameters"):
        for value in (None, [], 3, {}):
            refused(folder, rewritten("two", {key: value}), "damaged")
    refused(folder, rewritten("two", {"link": "identity"}), "link")
    refused(folder, rewritten("regressor", {"link": "logistic"}), "link")


def test_calibrations_that_make_no_sense(folder):
    missing, distance = array("regressor", "missing"), array("regressor", "distance")
    for place, value in ((0, -1), (-1, 5), (3, 2**62)):
        changed = missing.copy()
        changed[place] = value
        refused(folder, rewritten("regressor", arrays={"missing": changed}), "make no sense")
    for value in (-0.1, 1.1, np.nan, np.inf):
        changed = distance.copy()
        changed[2] = value
        refused(folder, rewritten("regressor", arrays={"distance": changed}), "between 0 and 1")
    refused(folder, rewritten("regressor", arrays={"distance": distance[:-1]}), "make no sense")
    row = array("regressor", "row")
    refused(folder, rewritten("regressor", arrays={"row": row[:-1]}), "make no sense")
    refused(folder, rewritten("regressor", arrays={"row": distance}), "'row' is not int64")
    wrong = {"missing": missing.astype(np.int32)}
    refused(folder, rewritten("regressor", arrays=wrong), "'missing' is not int64")
    wrong = {"distance": distance[:, None]}
    refused(folder, rewritten("regressor", arrays=wrong), "of 1 dimension")
    empty = {"missing": missing[:0], "distance": distance[:0], "row": row[:0]}
    assert attempt(folder, rewritten("regressor", arrays=empty)) is not None


def test_losses_that_make_no_sense(folder):
    tried = array("two", "validation")
    for place, value in (((0, 0), -1.0), ((0, 1), 0.5), ((0, 1), np.inf), ((0, 2), np.nan)):
        changed = tried.copy()
        changed[place] = value
        refused(folder, rewritten("two", arrays={"validation": changed}), "losses")
    refused(folder, rewritten("two", arrays={"validation": tried[:, :2]}), "losses")


@pytest.mark.parametrize(
    "classes",
    [
        None,
        [],
        ["False", "True"],
        {"dtype": "<U5", "values": []},
        {"dtype": "<U5", "values": ["b", "a"]},
        {"dtype": "<U5", "values": ["a", "a"]},
        {"dtype": "<U5", "values": ["a", 1]},
        {"dtype": "<U1", "values": ["a", "bb"]},
        {"dtype": "<U99999999", "values": ["a", "b"]},
        {"dtype": "<i1", "values": [0, 300]},
        {"dtype": "<u8", "values": [-1, 0]},
        {"dtype": "<i8", "values": [0, 2**70]},
        {"dtype": "<i8", "values": [False, True]},
        {"dtype": "<i8", "values": [0.0, 1.0]},
        {"dtype": "<f2", "values": [0.0, 1e9]},
        {"dtype": "<f8", "values": [0.0, float("nan")]},
        {"dtype": "|O", "values": [None, "a"]},
        {"dtype": "|O", "values": [1, 2]},
        {"dtype": "|V8", "values": ["a", "b"]},
        {"dtype": "<M8[D]", "values": ["a", "b"]},
        {"dtype": "i4,i4", "values": [1, 2]},
        {"dtype": {"names": []}, "values": [1, 2]},
        {"dtype": "<U5", "values": ["a", "b"], "more": 1},
        {"dtype": "<U5", "values": ["a", "b", "c"]},  # three, and one output
    ],
)
def test_classes_that_make_no_sense(folder, classes):
    refused(folder, rewritten("two", {"classes": classes}), "damaged")


def rows(name):
    """The entries of a file that are about its training rows."""
    keys = Container.from_bytes("file", FILES[name]).arrays
    return ["seen", *(key for key in keys if key.startswith("seen."))]


@every
def test_files_of_before_have_no_rows(folder, name):
    model = attempt(folder, rewritten(name, without=[*rows(name), "target"]))
    assert model.training_rows_ is None
    assert_same(model, FITTED[name])


@every
def test_training_rows_make_sense(folder, name):
    for key in rows(name)[1:]:
        values = array(name, key)
        refused(folder, rewritten(name, arrays={key: values[1:]}), "training rows")
        refused(folder, rewritten(name, arrays={key: values[:, None]}), "training rows")
        other = np.int64 if values.dtype == np.float64 else np.float64
        changed = rewritten(name, arrays={key: np.zeros(len(values), other)})
        refused(folder, changed, "training rows")
        if values.dtype == np.int32:
            for wrong in (-2, 99):
                refused(folder, rewritten(name, arrays={key: 0 * values + wrong}), "training rows")
    numbers = np.zeros(len(array(name, "seen.weight")))
    refused(folder, rewritten(name, arrays={"seen.weight": numbers - 1}), "weights")
    refused(folder, rewritten(name, arrays={"seen.weight": numbers + np.inf}), "weights")
    refused(folder, rewritten(name, arrays={"seen.target": numbers + np.nan}), "targets")
    refused(folder, rewritten(name, arrays={"seen.99": numbers}), "not its density's")
    refused(folder, rewritten(name, {"seen": 3}), "name of the target")
    if name in ("two", "three"):
        for wrong in (0.5, -1.0, 3.0):
            refused(folder, rewritten(name, arrays={"seen.target": numbers + wrong}), "targets")


def test_outputs_fit_the_classes(folder):
    classes = {"dtype": "<U5", "values": ["a", "b"]}
    refused(folder, rewritten("three", {"classes": classes}), "outputs")
    one = {"dtype": "<U5", "values": ["a"]}
    refused(folder, rewritten("two", {"classes": one}), "targets of its training rows")
    assert attempt(folder, rewritten("two", {"classes": one}, without=rows("two"))) is not None
    p, g = FITTED["two"].pair_.p, FITTED["two"].pair_.g
    wide = random_regression(p.vtree, p.cardinalities, outputs=2, seed=0)
    parts = {name: a for name, a in circuit_arrays(p.vtree, p, wide).items() if name[0] == "g"}
    arrays = Container.from_bytes("file", FILES["two"]).arrays
    assert g.n_outputs == 1
    assert set(parts) <= set(arrays)
    refused(folder, rewritten("two", arrays=parts), "2 outputs, not 1")


def test_pairs_that_do_not_fit(folder):
    p = FITTED["regressor"].pair_.p
    other = Vtree.left_linear([2, 0, 1, 3])
    assert other != p.vtree
    moved = random_regression(other, p.cardinalities, seed=0)
    parts = {k: a for k, a in circuit_arrays(other, g=moved).items() if k[0] == "g"}
    refused(folder, rewritten("regressor", arrays=parts), "damaged")
    # a pair that is good, but over another vtree than the density
    whole = circuit_arrays(other, _uniform(other, p.cardinalities), moved)
    refused(folder, rewritten("regressor", arrays=whole), "another density")
    # and one over the vtree, of other cardinalities
    more = p.cardinalities + 1
    whole = circuit_arrays(p.vtree, _uniform(p.vtree, more), random_regression(p.vtree, more))
    refused(folder, rewritten("regressor", arrays=whole), "other variables")
    only = {k: a for k, a in whole.items() if k[0] == "g"}
    refused(folder, rewritten("regressor", arrays=only), "how many values")


def _uniform(vtree, cardinalities):
    from expecta.circuits import independent

    return independent(vtree, [np.full(c, 1 / c) for c in cardinalities])


def test_nested_densities_that_do_not_fit(folder):
    for table in (
        {**TABLE, "text": ["red", "pink"] * (N // 2)},  # other values
        {name: TABLE[name] for name in ("flag", "text", "real", "day")},  # another order
        {name: TABLE[name] for name in ("text", "flag", "real")},  # fewer columns
        {**TABLE, "real": [x + 1e-3 for x in TABLE["real"]]},  # other bins
    ):
        density = ChowLiu(encoder=Encoder(max_bins=4)).fit(table)
        density.save(folder / "density")
        inside = Container.from_bytes("file", (folder / "density").read_bytes())
        arrays = {f"density.{name}": a for name, a in inside.arrays.items()}
        data = rewritten("regressor", {"density": dict(inside.header)}, arrays)
        refused(folder, data, "damaged")
    plain = Density(FITTED["latent"].density_.circuit, FITTED["latent"].density_.encoder_)
    plain.save(folder / "density")
    inside = Container.from_bytes("file", (folder / "density").read_bytes())
    gone = [k for k in Container.from_bytes("file", FILES["latent"]).arrays if k[:8] == "density."]
    arrays = {f"density.{name}": a for name, a in inside.arrays.items()}
    data = rewritten("latent", arrays=arrays, without=gone)
    found = Container.from_bytes("file", data)
    head = {**found.header, "density": dict(inside.header)}
    data = Container("estimator", head, found.arrays).to_bytes()
    refused(folder, data, "not learned as it says")
    head["parameters"] = {**head["parameters"], "density": "learned", "encoder": False}
    data = Container("estimator", head, found.arrays).to_bytes()
    assert attempt(folder, data) is not None


def test_parameters_of_the_circuits(folder):
    for name, key, value in (
        ("regressor", "g.weight", np.nan),
        ("regressor", "g.weight", 1e200),
        ("regressor", "g.weight", 1.7e308),
        ("regressor", "g.bias", -1e200),
        ("two", "g.weight", 1e9),  # nobody has such log-odds, and an integral would take for ever
        ("three", "g.bias", np.inf),
        ("regressor", "p.log_weight", np.nan),
        ("regressor", "p.log_weight", 1.0),
        ("regressor", "p.log_weight", 800.0),
    ):
        changed = array(name, key)
        changed.flat[:] = value
        refused(folder, rewritten(name, arrays={key: changed}), "damaged")


@pytest.mark.parametrize("huge", [2**31 - 1, 2**20, 60_000])
@pytest.mark.parametrize("which", ["p.cardinalities", "g.cardinalities", "encoder.cardinalities"])
def test_huge_numbers_take_no_memory(folder, huge, which):
    for keys in ([which], ["p.cardinalities", "g.cardinalities", "encoder.cardinalities"]):
        arrays = {key: np.full_like(array("regressor", key), huge) for key in keys}
        (folder / "file").write_bytes(rewritten("regressor", arrays=arrays))
        tracemalloc.start()
        try:
            with pytest.raises(FormatError):
                CircuitRegressor.load(folder / "file")
            assert tracemalloc.get_traced_memory()[1] < 50_000_000
        finally:
            tracemalloc.stop()


def test_large_circuits_take_no_memory(folder):
    """A file of some megabytes whose tables of pairs would take many gigabytes."""
    size = 30_000
    values = np.arange(size)
    table = {"a": values.tolist(), "b": values.tolist()}
    encoder = Encoder(max_bins=size)
    density = Independent(encoder=encoder).fit(table)
    vtree = density.circuit.vtree
    p = density.circuit
    # g: a leaf node for every value of a, each with an element of its own
    leaf = [v for v in range(3) if vtree.variable[v] >= 0]
    nodes = np.zeros(3, np.int64)
    nodes[leaf] = [size, 1]
    nodes[vtree.root] = 1
    elements = np.zeros(3, np.int64)
    elements[vtree.root] = size
    starts = np.append(0, np.cumsum(nodes))
    first = starts[vtree.left[vtree.root]]
    second = starts[vtree.right[vtree.root]]
    arrays = circuit_arrays(vtree, p)
    arrays |= {
        "g.cardinalities": p.cardinalities,
        "g.node_start": starts,
        "g.element_start": np.append(0, np.cumsum(elements)),
        "g.left": (first + np.arange(size)).astype(np.int32),
        "g.right": np.full(size, second, np.int32),
        "g.edge_start": np.append(np.arange(size + 1), [2 * size, 3 * size]),
        "g.target": np.concatenate([values, values, values]).astype(np.int32),
        "g.weight": np.zeros((3 * size, 1)),
        "g.bias": np.zeros(1),
    }
    state, parts = density.encoder_.state()
    arrays |= {f"encoder.{name}": a for name, a in parts.items()}
    density.save(folder / "density")
    inside = Container.from_bytes("file", (folder / "density").read_bytes())
    arrays |= {f"density.{name}": a for name, a in inside.arrays.items()}
    old = Container.from_bytes("file", FILES["regressor"])
    arrays |= {name: old.arrays[name] for name in ("validation", "missing", "distance", "row")}
    arrays["missing"] = np.zeros_like(arrays["missing"])
    head = {**old.header, "density": dict(inside.header), "encoder": state}
    refused(folder, Container("estimator", head, arrays).to_bytes(), "too large")


@settings(hostile, max_examples=250)
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


@settings(hostile, max_examples=40)
@given(names, st.floats(0, 1, exclude_max=True), st.binary(max_size=9))
def test_cut_off_files(folder, name, where, more):
    data = FILES[name]
    assert attempt(folder, data[: int(where * len(data))]) is None
    assert attempt(folder, data + b"x" + more) is None


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([10**400, -1, 2**63, "learned", "ChowLiu", "<U1", "identity", 0, 1e308]),
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


@settings(hostile, max_examples=200)
@given(names, st.data())
def test_headers_of_junk(folder, name, data):
    container = Container.from_bytes("file", FILES[name])
    head = copy.deepcopy(dict(container.header))
    every_place = list(places(head))[1:]
    if data.draw(st.booleans()):  # encoders and densities have tests of their own
        every_place = [p for p in every_place if p[0] not in ("encoder", "density")]
    *path, last = data.draw(st.sampled_from(every_place))
    node = head
    for step in path:
        node = node[step]
    if data.draw(st.booleans()):
        node[last] = data.draw(junk)
    else:
        del node[last]
    attempt(folder, Container("estimator", head, container.arrays).to_bytes())


@settings(hostile, max_examples=200)
@given(names, st.data())
def test_arrays_of_junk(folder, name, data):
    container = Container.from_bytes("file", FILES[name])
    arrays = dict(container.arrays)
    which = data.draw(st.sampled_from(sorted(arrays)))
    changed = arrays[which].copy()
    how = data.draw(
        st.sampled_from(["value", "value", "swap", "shorter", "longer", "gone", "scale"])
    )
    if how == "value" and len(changed):
        real = changed.dtype.kind == "f"
        value = st.floats() if real else st.integers(-2, 9) | st.just(2**31 - 1)
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(value)
    elif how == "swap":
        rng = np.random.default_rng(data.draw(st.integers(0, 99)))
        changed = rng.permutation(changed)
    elif how == "shorter":
        changed = changed[:-1]
    elif how == "longer":
        changed = np.concatenate([changed, changed[:1]])
    elif how == "scale" and changed.dtype.kind == "f":
        changed = changed * data.draw(st.sampled_from([-1.0, 0.0, 0.5, 1.5, np.nan]))
    arrays[which] = changed
    if how == "gone":
        del arrays[which]
    attempt(folder, Container("estimator", container.header, arrays).to_bytes())


@settings(hostile, max_examples=40)
@given(names, names)
def test_files_of_two_halves(folder, name, other):
    one, two = (Container.from_bytes("file", FILES[n]) for n in (name, other))
    for head, arrays in ((one.header, two.arrays), (one.header, {**one.arrays, **two.arrays})):
        attempt(folder, Container("estimator", head, arrays).to_bytes())
    mixed = {**two.header, "density": one.header["density"]}
    attempt(folder, Container("estimator", mixed, two.arrays).to_bytes())
