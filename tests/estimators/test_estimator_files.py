"""Estimators in files: there and back to the last bit."""

from __future__ import annotations

import copy
import datetime as dt
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from expecta import (
    PSDD,
    ChowLiu,
    CircuitClassifier,
    CircuitRegressor,
    DomainError,
    Encoder,
    FormatError,
    Independent,
    LatentTree,
    NaiveBayes,
    Pair,
    RegressionCircuit,
    Vtree,
)

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
FITTED = {}
every = pytest.mark.parametrize("name", sorted(MAKERS))


@pytest.fixture(scope="module", autouse=True)
def _fitted():
    """Learning waits until tests run."""
    FITTED.update({name: make() for name, make in MAKERS.items()})


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
    texts = [re.sub(r"in [0-9.]+ s", "", repr(m.density_)) for m in (again, model)]
    assert texts[0] == texts[1]  # but for the seconds it took


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
    refused(
        regressor(random_state=seed).fit(small, Y),
        "random_state' is a RandomState, not a whole number",
    )
    refused(
        copy.copy(FITTED["regressor"]).set_params(max_bins="many"),
        "max_bins' is 'many', not a whole number",
    )
    steep = copy.copy(FITTED["two"])
    g = steep.circuit_
    g = RegressionCircuit(g.structure, 1e9 * g.weight, g.bias, link=g.link)
    steep.pair_ = Pair(steep.pair_.p, g)
    refused(steep, "too large")
    with pytest.raises(NotFittedError):
        CircuitRegressor().save(tmp_path / "model")


def test_the_class_of_a_file_is_the_one_asked_for(tmp_path):
    for name, kind, other in (
        ("two", CircuitRegressor, "class CircuitClassifier, not CircuitRegressor"),
        ("regressor", CircuitClassifier, "class CircuitRegressor, not CircuitClassifier"),
    ):
        FITTED[name].save(tmp_path / "model")
        with pytest.raises(FormatError, match=other):
            kind.load(tmp_path / "model")
