"""Every kind of our own file: a damaged or hostile one gives one FormatError, or what works."""

from __future__ import annotations

import copy
import datetime as dt
import json
import pickle
import re
import time
import tracemalloc
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier

from expecta import (
    PSDD,
    ChowLiu,
    CircuitRegressor,
    Density,
    DomainError,
    Encoder,
    Evidence,
    ExpectedPredictor,
    FormatError,
    ImpossibleEvidenceWarning,
    Independent,
    LatentTree,
    NaiveBayes,
    Pair,
    ProbabilisticCircuit,
    RegressionCircuit,
    Vtree,
    random_probabilistic,
    random_regression,
)
from expecta.circuits import independent
from expecta.circuits.structure import Structure
from expecta.common import atomic_files
from expecta.estimators.classifier import CircuitClassifier
from expecta.estimators.expected_estimator import ExpectedEstimator
from expecta.files.circuit_files import PAIR
from expecta.files.container import VERSION, Container
from expecta.files.schema import LOADERS, Kind
from expecta.learn.regression.noise_variance import NoiseVariance
from expecta.tables.table import SOURCES

# -- one file of every kind -----------------------------------------------------------

N = 60
RNG = np.random.default_rng(4)
TABLE = {
    "text": RNG.choice(["red", "green", "blue"], N).tolist(),
    "flag": (RNG.random(N) < 0.5).tolist(),
    "real": RNG.normal(size=N).round(2).tolist(),
    "day": [dt.date(2024, 1, 1 + int(k)) for k in RNG.integers(5, size=N)],
}
Y = np.array(TABLE["real"]) + np.array(TABLE["flag"]) * 2 + RNG.normal(size=N)
CELLS = {
    "text": ["b", None, "a", "b"],
    "many": ["p", "q", "q", "r"],
    "flag": [True, False, None, True],
    "whole": [3, 1, None, 3],
    "real": [0.5, None, -1.25, 7.0],
    "time": [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None, None, dt.datetime.now(dt.UTC)],
    "day": [dt.date(2024, 1, 1), None, dt.date(2024, 1, 2), None],
    "mixed": [1, "1", dt.date(2024, 1, 1), dt.timedelta(1)],
    "nothing": [None] * 4,
}
FRAMES = {
    "dict": lambda: CELLS,
    "pandas": lambda: pd.DataFrame(CELLS),
    "polars": lambda: pl.DataFrame({**CELLS, "mixed": ["1", "2", "3", "4"]}),
}
TREE = Vtree.from_nested((0, (1, 2)))
CARDS = (2, 3, 2)
QUICK = {"max_bins": 8, "max_splits": 2, "penalties": (3.0,), "random_state": 3}
FOUR = Encoder(max_bins=4)


def encoder(frame):
    return Encoder(
        max_categories=5,
        bins={"real": [-2, 0, 9], "day": [dt.date(2023, 1, 1), "2024-01-02", "2026-01-01"]},
        thresholds={"whole": np.array([1.5])},
        categorical=["text"],
        missing_is_value=["many", "whole"],
    ).fit(FRAMES[frame]())


def classifier(y):
    return CircuitClassifier(**QUICK, density=ChowLiu(encoder=FOUR)).fit(TABLE, y)


def regressor(density, **more):
    return CircuitRegressor(**QUICK, density=density, calibration_rows=40, **more).fit(TABLE, Y)


P = random_probabilistic(TREE, CARDS, seed=0, units=2)
G = random_regression(TREE, CARDS, seed=0, units=2, outputs=2)
NUMBERS = np.stack([Y, RNG.normal(size=N)], axis=1).round(1)


def predictor(model, target):
    model = model.fit(NUMBERS, target)
    return ExpectedPredictor(model, ChowLiu(encoder=FOUR)).fit(NUMBERS, target)


def noisy(model):
    """Give a model noise that depends on its inputs, which these rows are too few to show."""
    cards = model.encoder_.cardinalities_.tolist()
    tables = tuple(np.linspace(0.0, 3.0, card) for card in cards)
    model.noise_variance_ = NoiseVariance(0.3, tables, model.noise_)
    return model


MAKERS = {
    "vtree": lambda: TREE,
    "p": lambda: P,
    "g": lambda: G,
    "pair": lambda: Pair(P, G),
    **{frame: partial(encoder, frame) for frame in FRAMES},
    "LatentTree": lambda: LatentTree(states=2, restarts=1, max_epochs=5, encoder=FOUR).fit(TABLE),
    "ChowLiu": lambda: ChowLiu(encoder=FOUR).fit(TABLE),
    "NaiveBayes": lambda: NaiveBayes("text", encoder=FOUR).fit(TABLE),
    "Independent": lambda: Independent(encoder=FOUR).fit(TABLE),
    "PSDD": lambda: PSDD(patience=2, max_parameters=300, encoder=FOUR).fit(TABLE),
    "Density": lambda: ChowLiu(encoder=FOUR).fit(TABLE).condition(flag=True, text=["red", "blue"]),
    "regressor": lambda: regressor(ChowLiu(encoder=FOUR)),
    "latent": lambda: noisy(
        regressor(LatentTree(states=2, restarts=1, max_epochs=3), encoder=FOUR)
    ),
    "two": lambda: classifier((Y > 1).astype(str)),
    "three": lambda: classifier(np.digitize(Y, [0.0, 2.0])),
    "trees": lambda: predictor(DecisionTreeClassifier(max_depth=3, random_state=0), Y > 1),
    "linear": lambda: noisy(predictor(LinearRegression(), Y).calibrate(NUMBERS, Y)),
    # without their rows
    "summed": lambda: regressor(ChowLiu(encoder=FOUR)),
    "counted": lambda: classifier(np.digitize(Y, [0.0, 2.0])),
    "nameless": lambda: predictor(LinearRegression(), Y).fit(NUMBERS),
}
CIRCUITS, ENCODERS = ["vtree", "p", "g", "pair"], list(FRAMES)
TREES = ["LatentTree", "ChowLiu", "NaiveBayes", "Independent"]
DENSITIES, ESTIMATORS = [*TREES, "PSDD", "Density"], ["regressor", "latent", "two", "three"]
PREDICTORS, SUMMED = ["trees", "linear"], ["summed", "counted", "nameless"]
KINDS = {
    **{"vtree": "vtree", "p": "probabilistic circuit", "g": "regression circuit", "pair": "pair"},
    **dict.fromkeys(ENCODERS, "encoder"),
    **dict.fromkeys(DENSITIES, "density"),
    **dict.fromkeys([*ESTIMATORS, *PREDICTORS, *SUMMED], "estimator"),
}
READERS = {
    "vtree": Vtree.load,
    "probabilistic circuit": ProbabilisticCircuit.load,
    "regression circuit": RegressionCircuit.load,
    "pair": Pair.load,
    "encoder": Encoder.load,
    "density": Density.load,
    "estimator": ExpectedEstimator.load,
}
VALUES, FILES = {}, {}  # by name
every = pytest.mark.parametrize("name", list(MAKERS))
of_a_kind = pytest.mark.parametrize("kind", list(READERS))


def save(name, value, path):
    """Save a value as its file was saved: estimators with their rows, but for some."""
    value.save(path, **({"rows": True} if name in [*ESTIMATORS, *PREDICTORS] else {}))


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """A folder for files; learning waits until tests run."""
    path = tmp_path_factory.mktemp("hostile")
    for name, make in MAKERS.items():
        VALUES[name] = make()
        save(name, VALUES[name], path / name)
        FILES[name] = (path / name).read_bytes()
    return path


# -- what becomes of a file -----------------------------------------------------------


def refusal(folder, kind, data):
    """The one sentence that a file is refused with, or None and what was read."""
    (folder / "file").write_bytes(data)
    try:
        return None, READERS[kind](folder / "file")
    except FormatError as error:
        refused = error
    assert refused.line is None or kind in list(READERS)[:4]
    assert 10 < len(refused.problem) < 500
    assert "\n" not in str(refused)
    return refused.problem, None


def attempt(folder, name, data):
    """Either a FormatError, or a value that works and survives another file."""
    problem, value = refusal(folder, KINDS[name], data)
    if problem is not None:
        return False
    with warnings.catch_warnings():  # a file may well say that training rows are impossible
        warnings.simplefilter("ignore", ImpossibleEvidenceWarning)
        use(value)
        value.save(folder / "file")
        first = (folder / "file").read_bytes()
        READERS[KINDS[name]](folder / "file").save(folder / "file")
    assert (folder / "file").read_bytes() == first
    return True


def use(value):
    """Ask a value all that it answers."""
    if isinstance(value, Encoder):
        use_encoder(value)
    elif isinstance(value, Density):
        cards = value.circuit.cardinalities
        nothing, first = np.full((1, len(cards)), -1), np.zeros((1, len(cards)), int)
        evidence = Evidence.rows(np.concatenate([nothing, first]), cards)
        log_prob = value.score_samples(evidence)
        assert abs(log_prob[0]) < 1e-5 > log_prob[1]  # nor NaN
        assert repr(value)
        assert value.sample(2)
    elif isinstance(value, ExpectedEstimator):
        use_estimator(value)


def use_encoder(value):
    table = {name: CELLS.get(name, [None] * 4) for name in value.feature_names_in_}
    try:
        codes = value.transform(table)
    except ValueError:  # a column of another kind may not like these cells; it says so
        codes = np.full((4, len(value.columns_)), -1)
    assert codes.shape == (4, len(value.columns_))
    assert np.all((codes >= -1) & (codes < value.cardinalities_))
    back = value.inverse_transform(codes, random_state=0)
    assert len(back[value.feature_names_in_[0]] if isinstance(back, dict) else back) == 4
    for column in value.columns_:
        assert len(column.labels) == column.cardinality
    assert value.summary()
    assert value.where().n_rows == 1


def use_estimator(value):
    rows = {name: [None, None] for name in value.density_.columns}
    if hasattr(value, "circuit_"):
        assert np.all(np.isfinite(value.circuit_(np.zeros((1, value.n_features_in_), int))))
    if not hasattr(value, "classes_"):
        mean, std = value.predict(rows, return_std=True)
        assert np.all(np.isfinite(mean))
        assert np.all(std >= 0)
        if hasattr(value, "calibration_"):
            try:
                ends = value.predict_interval(rows)
            except DomainError as error:  # noise that is lost in the rounding of huge outputs
                if "ranges so widely" not in str(error):
                    raise
            else:
                assert np.all(ends[:, 0] <= ends[:, 1])
    else:
        probability = value.predict_proba(rows)
        np.testing.assert_allclose(probability.sum(axis=1), 1.0)
        assert np.all((probability >= 0) & (probability <= 1))
        assert set(value.predict(rows)) <= set(value.classes_)
    assert repr(clone(value))


# -- changed files --------------------------------------------------------------------


def parts(name):
    """The header and the arrays of a file, to be changed."""
    container = Container.from_bytes("file", FILES[name])
    return copy.deepcopy(dict(container.header)), dict(container.arrays)


def packed(name, header, arrays, metadata=()):
    """A file of these parts; metadata that are None are left out."""
    header = header if isinstance(header, str) else json.dumps(header)
    metadata = {"expecta": str(VERSION), "kind": KINDS[name], "header": header, **dict(metadata)}
    return safetensors.numpy.save(
        {key: np.array(array, order="C") for key, array in arrays.items()},
        {key: text for key, text in metadata.items() if text is not None},
    )


def changed(name, *changes):
    header, arrays = parts(name)
    for change in changes:
        change(header, arrays)
    return packed(name, header, arrays)


def put(path, value):
    """Change a value of the header; `drop` takes it away."""

    def change(header, _):
        *above, last = path.split(".")
        for step in above:
            header = header[int(step) if isinstance(header, list) else step]
        last = int(last) if isinstance(header, list) else last
        if value is drop:
            del header[last]
        else:
            header[last] = value

    return change


def drop(path):
    return put(path, drop)


def array(key, value):
    """Change an array: to another, by a function, to one number, or away for None."""

    def change(_, arrays):
        if value is None:
            del arrays[key]
        elif callable(value):
            arrays[key] = value(arrays[key].copy())
        elif np.ndim(value):
            arrays[key] = np.asarray(value)
        else:
            arrays[key] = np.full_like(arrays[key], value)

    return change


def at(index, value):
    """Change one number of an array."""

    def change(values):
        values[index] = value
        return values

    return change


def shorter(values):
    return values[:-1]


def upright(values):
    return values[:, None]


def ints(*values):
    return np.array(values, np.int64)


def inside(prefix, data):
    """Put another file in the place of a record."""

    def change(header, arrays):
        container = Container.from_bytes("file", data)
        header[prefix] = dict(container.header)
        for key in [key for key in arrays if key.startswith(f"{prefix}.")]:
            del arrays[key]
        arrays |= {f"{prefix}.{key}": values for key, values in container.arrays.items()}

    return change


@every
def test_the_helpers_change_nothing_by_themselves(folder, name):
    problem, value = refusal(folder, KINDS[name], changed(name))
    assert problem is None
    save(name, value, folder / "file")
    assert (folder / "file").read_bytes() == FILES[name]
    assert attempt(folder, name, FILES[name])


# -- what every kind refuses ----------------------------------------------------------


@every
def test_entries_and_arrays_that_are_missing_or_more(folder, name):
    def entries(node, path=()):
        for key, inner in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(node, dict):
                yield ".".join([*path, key])
            if isinstance(inner, dict | list):
                yield from entries(inner, (*path, str(key)))

    header, arrays = parts(name)
    cases = [drop(entry) for entry in entries(header)]
    # rows without their y, a density that was told its prior
    optional = "training_rows.target", "tree.chosen_pseudo_count"
    cases += [array(key, None) for key in arrays if not key.endswith(optional)]
    for change in [*cases, put("more", 1)]:
        problem = refusal(folder, KINDS[name], changed(name, change))[0]
        assert problem is not None
        assert "damaged" in problem
    more = changed(name, array("more", np.zeros(3)))
    assert "unknown array 'more'" in refusal(folder, KINDS[name], more)[0]


@every
def test_arrays_of_another_type_or_shape(folder, name):
    for key, values in parts(name)[1].items():
        zeros = np.zeros_like(values)
        other = zeros.astype("f8" if values.dtype == "i8" else "i8")
        for wrong, word in (
            (other, "dimension"),
            (zeros[..., None], "dimension"),
            (zeros.astype("f4"), "type"),
            (zeros.astype("f2"), "type"),
        ):
            assert word in refusal(folder, KINDS[name], changed(name, array(key, wrong)))[0]


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({"expecta": None}, "did not write"),
        ({"expecta": str(VERSION + 1)}, "upgrade expecta"),
        ({"expecta": "999999999"}, "upgrade expecta"),
        ({"expecta": "1"}, "save it again"),
        ({"expecta": "9" * 5_000}, "version"),
        ({"expecta": "0"}, "version"),
        ({"expecta": "-1"}, "version"),
        ({"expecta": "٣"}, "version"),
        ({"expecta": ""}, "version"),
        ({"kind": None}, "kind"),
        ({"kind": "circus"}, "kind"),
        ({"more": "more"}, "metadata"),
        ({"header": None}, "header"),
        ({"header": "{"}, "JSON"),
        ({"header": "[]"}, "JSON"),
        ({"header": "[" * 100_000}, "JSON"),
        ({"header": '{"a": 1, "a": 1}'}, "JSON"),
        ({"header": '{"a": [[' + "[]," * 9 + "[]]]}"}, "unknown|missing"),
    ],
)
def test_bad_metadata_are_refused(folder, metadata, problem):
    for name in MAKERS:
        header, arrays = parts(name)
        found, _ = refusal(folder, KINDS[name], packed(name, header, arrays, metadata))
        assert any(word in found for word in problem.split("|"))


def with_header(text, data=b""):
    return len(text).to_bytes(8, "little") + text + data


META = b'{"__metadata__":{"expecta":"%d","kind":"pair","header":"{}"},' % VERSION


@of_a_kind
@pytest.mark.parametrize(
    "data",
    [
        (2**63).to_bytes(8, "little") + b"{}",
        (2**40).to_bytes(8, "little") + b"{}",
        (10**15).to_bytes(8, "little") + b"{" + b" " * 50,
        (3).to_bytes(8, "little") + b"{}",
        with_header(b"{}"),
        with_header(b"{" * 50_000),
        with_header(b'{"a":' * 50_000),
        with_header(b'{"__metadata__": 3}'),
        with_header(b'{"__metadata__": {"expecta": 1}}'),
        with_header(b'{"__metadata__": {"expecta": "1", "kind": {}}}'),
        with_header(META[:-1] + b"}", b"extra"),
        with_header(META + b'"a":1}'),
        with_header(
            META + b'"a":{"dtype":"F64","shape":[1000000000000],"data_offsets":[0,8000000000000]}}',
            b"12345678",
        ),
        with_header(
            META + b'"a":{"dtype":"F64","shape":[9223372036854775807,0],"data_offsets":[0,0]}}'
        ),
        with_header(
            META + b'"a":{"dtype":"F64","shape":[' + b"1," * 5_000 + b'1],"data_offsets":[0,8]}}',
            b"12345678",
        ),
        with_header(
            META + b'"a":{"dtype":"F64","shape":[0],"data_offsets":[0,0]},'
            b'"a":{"dtype":"F64","shape":[0],"data_offsets":[0,0]}}'
        ),
        with_header(b'{"\xff": 1}'),
        b"",
        b"psdd 7\n",
        b"hello",
        b"\0" * 100,
        pickle.dumps({"a": 1}),
    ],
    ids=range(22),
)
def test_what_is_no_file_of_ours_is_refused(folder, kind, data):
    problem, _ = refusal(folder, kind, data)
    assert problem
    if not Container.recognises(data) and kind in ("encoder", "density", "estimator"):
        assert "not a file of Expecta's own format" in problem


@every
def test_another_kind_names_its_reader(folder, name):
    for kind in READERS:
        if kind != KINDS[name]:
            problem, _ = refusal(folder, kind, FILES[name])
            assert f"holds a{'n' * (KINDS[name][0] == 'e')} {KINDS[name]}, not a" in problem
            assert problem.endswith(f"read it with {LOADERS[KINDS[name]]}")
    for reader in READERS.values():
        with pytest.raises(FileNotFoundError):
            reader(folder / "nowhere")


@every
def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch, name):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(*_):
        raise OSError(28, "no space left on device")

    for step in ("replace", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(atomic_files.os, step, full)
            with pytest.raises(OSError, match="no space"):
                VALUES[name].save(path)
        assert path.read_bytes() == b"old"
        assert [file.name for file in tmp_path.iterdir()] == ["file"]
    with pytest.raises(FileNotFoundError):
        VALUES[name].save(tmp_path / "nowhere" / "file")


@every
def test_huge_numbers_take_no_memory(folder, name):
    _, arrays = parts(name)
    whole = [key for key, values in arrays.items() if values.dtype.kind == "i" and values.size]
    sizes = [key for key in whole if key.rpartition(".")[2] in ("cardinalities", "states")]
    for keys in [*([key] for key in whole), sizes]:
        for huge in (60_000, 2**20, 2**31 - 1) if keys[:1] == sizes[:1] else (2**31 - 1,):
            data = changed(name, *(array(key, huge) for key in keys))
            tracemalloc.start()
            begun = time.perf_counter()
            try:
                refused = keys and refusal(folder, KINDS[name], data)[0]
                assert tracemalloc.get_traced_memory()[1] < 50_000_000
            finally:
                tracemalloc.stop()
            assert time.perf_counter() - begun < 5.0
            free = [key for key in keys if key.rpartition(".")[2] in ("ids", "row", "n_splits")]
            small = name in CIRCUITS and huge == 60_000  # values that nothing is made of
            assert refused or free or small or not keys


def test_large_circuits_take_no_memory(folder):
    """A file of some megabytes whose tables of pairs would take many gigabytes."""
    size = 30_000
    values = np.arange(size)
    density = Independent(encoder=Encoder(max_bins=size)).fit({"a": values, "b": values})
    p, vtree = density.circuit, density.circuit.vtree
    # g: a leaf node for every value of a, each with an element of its own
    starts = np.append(0, np.cumsum(np.where(np.arange(3) == vtree.left[vtree.root], size, 1)))
    first, second = starts[vtree.left[vtree.root]], starts[vtree.right[vtree.root]]
    structure = Structure(
        vtree,
        p.cardinalities,
        node_start=starts,
        element_start=np.append(0, np.cumsum(np.where(vtree.variable >= 0, 0, size))),
        left=first + values,
        right=np.full(size, second),
        edge_start=np.append(np.arange(size + 1), [2 * size, 3 * size]),
        target=np.concatenate([values, values, values]),
    )
    g = RegressionCircuit(structure, np.zeros((3 * size, 1)))
    density.save(folder / "density")
    density.encoder_.save(folder / "encoder")
    data = changed(
        "regressor",
        inside("pair", Kind("pair", PAIR).to_bytes((p, g))),
        inside("density", (folder / "density").read_bytes()),
        inside("encoder", (folder / "encoder").read_bytes()),
        *(array(f"calibration.{key}", shape) for key, shape in (("missing", 0), ("row", 0))),
    )
    assert "too large" in refusal(folder, "estimator", data)[0]


# -- what is said of one thing that is wrong ------------------------------------------


def drop_outcomes(_, arrays):
    """Take the target away from sums over training rows."""
    arrays["group_sums.center"] = arrays["group_sums.center"][:0]
    for key in ("sums", "squares"):
        arrays[f"group_sums.tables.{key}"] = arrays[f"group_sums.tables.{key}"][:, :0]


NOT_A_NUMBER, INFINITE = float("nan"), float("inf")
REFUSED = [
    # circuits
    ("pair", put("g.link", 3), "'g.link' is 3, not a text"),
    ("pair", put("g.link", "cubic"), "link is"),
    ("pair", array("p.log_weight", upright), "dimension"),
    ("pair", array("p.log_weight", shorter), "'p.log_weight' has a dimension"),
    ("pair", array("p.log_weight", np.nan), "not a number"),
    ("pair", array("p.log_weight", -np.inf), "zero weights"),
    ("pair", array("p.log_weight", 1.0), "normalised"),
    ("pair", array("p.log_weight", 710.0), "normalised"),
    ("pair", array("g.weight", lambda a: a[:, :0]), "'g.bias' has a dimension of 2"),
    ("pair", array("g.weight", np.inf), "'g.weight' holds a number that is not finite"),
    ("pair", array("g.bias", shorter), "'g.bias' has a dimension of 1, which must be 2"),
    ("pair", array("g.bias", lambda a: a[0]), "dimension"),
    ("vtree", array("left", shorter), "dimension"),
    ("pair", array("vtree.variable", np.int32([0, 1, 2, -1, -7])), "'vtree.variable' holds"),
    ("pair", array("vtree.variable", np.int32([0, 1, 3, -1, -1])), "variables"),
    ("pair", array("vtree.ids", 0), "different"),
    ("pair", array("p.cardinalities", np.int32([2, 0, 2])), "values"),
    ("pair", array("p.cardinalities", np.int32([2, 2**31 - 1, 2])), "values"),
    ("pair", array("p.cardinalities", np.int32([2, 4, 2])), "differ in how many values"),
    ("pair", array("p.node_start", 0), "node_start"),
    # steps that rise only because 64-bit differences wrap around
    ("pair", array("p.node_start", ints(0, 2**63 - 1, -2, 3, 4, 5)), "out of range"),
    ("pair", array("p.edge_start", ints(0, 2**62, 2**63 - 1, -(2**62), 9)), "out of range"),
    ("pair", array("p.target", lambda a: a + 100), "outside"),
    ("pair", array("p.left", lambda a: a - 1), "smooth"),
    ("pair", array("p.right", lambda a: a + 2**30), "smooth"),
    ("pair", array("p.edge_start", lambda a: a[:0]), "start"),
    # encoders
    ("dict", put("notes", "all well"), "'notes' is 'all well', not a list"),
    ("dict", put("source", "excel"), "'source' is 'excel', not one of pandas"),
    ("dict", put("source", "codes"), "an integer array has a column"),
    ("dict", put("options.eval", "1"), "'options.eval' is an unknown entry"),
    ("dict", put("options.unseen", "explode"), "unseen is"),
    ("dict", put("columns.0.kind", "secret"), r"'columns\[0\].kind' is 'secret', not one of"),
    ("dict", put("columns.0.name", "real"), "two columns have the same name"),
    ("dict", put("columns.0.name", "a" * 10**6), "too long"),
    ("dict", put("columns.5.zone", "../../etc/passwd\n"), "time zone"),
    ("dict", put("columns.4.zone", "UTC"), "time zone of no use"),
    ("dict", put("columns.3.step", -1), "step' is -1, not a number of at least 0"),
    ("dict", put("columns.0.values", ["a", "a"]), "two categories of column 'text' are"),
    ("dict", put("columns.0.values", ["a", None]), "a category of column 'text' is missing"),
    ("dict", put("columns.0.values", ["a", "b", "z"]), "has 2 values, 3 categories"),
    ("dict", put("columns.0.values", ["a", {"date": "tomorrow"}]), "not a value"),
    ("dict", put("columns.2.values", [0, 1]), "the Boolean column 'flag' has other values"),
    ("dict", put("columns.3.missing", -1.0), "at least 0"),
    ("dict", drop("columns.0"), "' has a dimension of 9, which must be 8"),
    ("ChowLiu", array("encoder.columns.edges", at(0, 1e300)), "numbers that do not increase"),
    ("dict", array("columns.highs", -1e9), "are not in order"),
    ("dict", array("columns.counts", -1.0), "counts' holds a number that is out of range"),
    # densities
    *((name, put("class", other), "'class' is .*, not one of Density, ChowLiu")
      for name in ("ChowLiu", "Density")
      for other in ("Learner", "TreeLearner", "os.system", "object", ["ChowLiu"], None)),
    ("ChowLiu", put("class", "PSDD"), "parameters"),
    ("LatentTree", put("parameters.states", ["many"]), "'states' is not a whole number"),
    ("LatentTree", put("parameters.patience", 2.5), "'parameters.patience' is 2.5, not a whole"),
    ("ChowLiu", put("parameters.encoder", None), "not true or false"),
    ("ChowLiu", put("parameters.random_state", "seed"), "not a whole number"),
    ("ChowLiu", put("learned.rows", True), "'learned.rows' is True, not a whole number"),
    ("ChowLiu", put("learned.score", NOT_A_NUMBER), "'learned.score' is nan"),
    ("ChowLiu", put("learned.score", INFINITE), "'learned.score' is inf"),
    ("ChowLiu", array("value_counts", -1.0), "'value_counts.*out of range"),
    ("ChowLiu", array("value_counts:sizes", lambda a: a[::-1]), "not those of its encoder"),
    ("ChowLiu", array("tree.parent", -1), "parent"),
    ("ChowLiu", array("tree.variable", 0), "one node for each"),
    ("ChowLiu", array("tree.states", 0), "'tree.states' holds a number that is out of range"),
    ("ChowLiu", array("tree.states", 7), "parameters"),
    ("ChowLiu", array("tree.theta", 0.5), "does not sum to one"),
    ("ChowLiu", array("tree.theta", np.nan), "not finite"),
    ("ChowLiu", array("tree.counts", -1.0), "out of range"),
    ("ChowLiu", array("tree.waiting", 1e300), "out of range"),
    ("ChowLiu", array("tree.seen", 0.5), "updates is not whole"),
    ("Density", array("circuit.p.log_weight", 1.0), "not a distribution"),
    ("PSDD", array("circuit.p.log_weight", lambda a: a - 1), "not a distribution"),
    # estimators
    *(("regressor", put("class", other), "'class' is .*, not one of CircuitRegressor")
      for other in ("Mine", "object", "os.system", ["CircuitRegressor"], None, 3)),
    ("two", put("class", "CircuitRegressor"), "unknown entry"),
    *(("regressor", put(f"parameters.{key}", value), why) for key, value, why in (
        ("max_bins", 1, "max_bins' is 1, not a whole number of at least 2"),
        ("max_bins", 2.5, "max_bins"),
        ("max_bins", NOT_A_NUMBER, "max_bins"),
        ("max_splits", -1, "max_splits"),
        ("completions", True, "completions"),
        ("penalties", [], "penalties"),
        ("penalties", [{"float": "nan"}], "penalties"),
        ("penalties", [NOT_A_NUMBER], "penalties"),
        ("penalties", [10**400], "penalties"),
        ("penalties", {"a": 1}, "penalties"),
        ("random_state", -1, "random_state"),
        ("random_state", "seed", "random_state"),
        ("calibration_rows", 0.5, "calibration_rows"),
        ("density", "ChowLiu", "density"),
        ("density", ["learned"], "density"),
        ("vtree", 1, "not true or false"),
        ("vtree", True, "takes no vtree"),
        ("encoder", None, "not true or false"),
        ("tol", 0.5, "'parameters.tol' is an unknown entry"),
    )),
    ("latent", put("parameters.density", "learned"), "those of the density"),
    *(("two", put("parameters.tol", tol), "tol") for tol in
      (0, 0.5, 1, -1e-9, NOT_A_NUMBER, "small", None, 10**400, [0.5])),
    *(("regressor", put(key, value), f"'{key}' is") for key in ("noise", "penalty")
      for value in (0.0, -1.0, NOT_A_NUMBER, INFINITE, 1e200, "1", None, True)),
    *(("two", put("n_splits", value), "'n_splits' is") for value in (-1, 2.5, None, True)),
    *(("two", put("named", value), "'named' is") for value in (None, 1, "yes")),
    *(("two", put("target", value), "'target' is") for value in (None, 1, ["y"])),
    *(("two", put(key, value), key) for key in ("density", "encoder", "parameters")
      for value in (None, [], 3, {})),
    ("two", put("pair.g.link", "identity"), "link"),
    ("regressor", put("pair.g.link", "logistic"), "link"),
    *(("regressor", array("calibration.missing", at(*change)), "missing")
      for change in ((0, -1), (-1, 5), (3, 2**62))),
    *(("regressor", array("calibration.score", at(2, value)), "'calibration.score' holds")
      for value in (np.nan, np.inf, -np.inf)),
    ("regressor", array("calibration.score", at(2, 1e9)), "are not sorted"),
    ("linear", array("calibration.score", at(-1, -1e9)), "are not sorted"),
    *(("regressor", array(f"calibration.{key}", at(2, value)), f"'calibration.{key}' holds")
      for key in ("centre", "width") for value in (np.nan, np.inf)),
    ("regressor", array("calibration.width", at(2, -1.0)), "out of range"),
    ("regressor", array("calibration.width", shorter), "'calibration.width' has a dimension"),
    ("regressor", array("calibration.score", shorter), "'calibration.score' has a dimension"),
    ("regressor", array("calibration.row", shorter), "'calibration.row' has a dimension"),
    *((name, array("noise_variance.added", at(1, value)), words) for name in ("latent", "linear")
      for value, words in ((-1e-9, "out of range"), (np.nan, "not finite"), (9e8, "too much"))),
    *((name, put("noise_variance.constant", value), "'noise_variance.constant' is")
      for name in ("latent", "linear") for value in (0.0, -1.0, NOT_A_NUMBER, INFINITE, None)),
    ("latent", put("noise_variance.unit", 1e100), "of two sizes"),
    ("latent", put("noise_variance.constant", 1e-9), "too much"),
    ("latent", array("noise_variance.added", shorter), "belongs to other columns"),
    ("linear", array("noise_variance.added", shorter), "belongs to other columns"),
    ("two", array("validation.penalty", at(0, -1.0)), "out of range"),
    ("two", array("validation.n_splits", at(0, -1)), "out of range"),
    ("two", array("validation.loss", at(0, np.nan)), "not finite"),
    ("two", array("validation.loss", shorter), "dimension"),
    *(("two", put("classes", classes), "classes") for classes in (
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
        {"dtype": "<f8", "values": [0.0, NOT_A_NUMBER]},
        {"dtype": "|O", "values": [None, "a"]},
        {"dtype": "|O", "values": [1, 2]},
        {"dtype": "|V8", "values": ["a", "b"]},
        {"dtype": "<M8[D]", "values": ["a", "b"]},
        {"dtype": "i4,i4", "values": [1, 2]},
        {"dtype": {"names": []}, "values": [1, 2]},
        {"dtype": "<U5", "values": ["a", "b"], "more": 1},
    )),
    ("two", put("classes", {"dtype": "<U5", "values": ["a", "b", "c"]}), "1 outputs, not .* 3"),
    ("three", put("classes", {"dtype": "<U5", "values": ["a", "b"]}), "3 outputs, not .* 1"),
    ("two", put("classes", {"dtype": "<U5", "values": ["a"]}), "targets of its training rows"),
    *((name, array(f"training_rows.{key}", change), "training_rows")
      for name in ESTIMATORS
      for key in ("weight", "target")
      for change in (lambda a: a[1:], np.nan, np.inf)),
    *((name, array("training_rows.weight", -1.0), "training_rows.weight") for name in ESTIMATORS),
    *((name, array(f"training_rows.{key}:sizes", change), "training_rows")
      for name in ESTIMATORS
      for key in ("codes", "numbers")
      for change in (shorter, at(0, 1), at(0, -1), lambda a: a - 1)),
    *((name, array("training_rows.codes", wrong), "training_rows.codes|no such value")
      for name in ESTIMATORS
      for wrong in (-2, 99)),
    ("two", put("training_rows.codes", [None]), "training_rows"),
    *((name, array(f"group_sums.{key}", change), why)
      for name in SUMMED
      for key, change, why in (
          ("center", lambda a: np.append(a, [0.0, 0.0]), "other outcomes"),
          ("missing", 2.0, "out of range"),
          ("missing", shorter, "other columns"),
          ("tables.groups", lambda a: a + 1, "not those of their groups"),
          ("tables.groups", -2, "out of range"),
          ("tables.groups", 2**30, "not those of their groups"),
          ("tables.groups", at(0, 2**31 - 1), "not those of their groups"),
          ("tables.variables", 10**6, "not those of their groups"),
          ("tables.variables", 0, "not those of their groups|twice"),
          ("tables.rows", -1.0, "out of range"),
          ("tables.weight", np.nan, "not finite"),
          ("tables.weight", 0.0, "rows without weight"),
          ("tables.weight_squares", 0.0, "rows without weight"),
          ("tables.squares", -1.0, "out of range"),
          ("tables.sums", lambda a: a[:, :0], "not those of their groups"),
          ("tables.output_sums", lambda a: a[:, :0], "not those of their groups"),
          ("tables.output_squares", -1.0, "out of range"),
          ("output_center", lambda a: np.append(a, [0.0, 0.0]), "other outputs"),
          ("credibility", 0.0, "off in a way"),
          ("credibility", lambda a: a[:, :2], "other outputs"),
      )
      if not (name == "nameless" and key in ("tables.squares", "tables.sums"))),
    *(("summed", put("group_sums.n_rows", n), "'group_sums.n_rows' is") for n in (0, 2**70)),
    ("summed", put("group_sums.tables", []), "group_sums"),
    *((name, drop_outcomes, "no target") for name in ("summed", "counted")),
    # an array whose size is one more than that of others
    ("trees", array("margin.start", lambda a: a[:0]), "dimension of 0, too small"),
    ("two", put("training_rows.name", 3), "'training_rows.name' is 3, not a text"),
    *(("three", array("training_rows.target", wrong), "targets") for wrong in (0.5, -1.0, 3.0)),
    ("regressor", array("training_rows.target", None), "no target"),
    ("regressor", array("pair.g.weight", np.nan), "not finite"),
    ("regressor", array("pair.g.weight", 1e200), "too large"),
    ("regressor", array("pair.g.weight", 1.7e308), "too large"),
    ("regressor", array("pair.g.bias", -1e200), "too large"),
    # nobody has such log-odds, and an integral would take for ever
    ("two", array("pair.g.weight", 1e9), "too large"),
    ("three", array("pair.g.bias", np.inf), "not finite"),
    ("regressor", array("pair.p.log_weight", np.nan), "not a number"),
    ("regressor", array("pair.p.log_weight", 1.0), "normalised"),
    ("regressor", array("pair.p.log_weight", 800.0), "normalised"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    REFUSED,
    ids=[f"{name}-{i}" for i, (name, _, _) in enumerate(REFUSED)],
)
def test_what_is_wrong_is_said(folder, name, change, problem):
    found, _ = refusal(folder, KINDS[name], changed(name, change))
    assert re.search(problem, found)


def without_rows(header, arrays):
    for entry in ("training_rows", "group_sums"):
        header[entry] = None
        for key in [key for key in arrays if key.startswith(entry)]:
            del arrays[key]


def test_changes_that_make_sense(folder):
    for name in [*ESTIMATORS, *SUMMED]:
        data = changed(name, without_rows)
        assert attempt(folder, name, data)
        assert refusal(folder, "estimator", data)[1].training_rows_ is None
    one = put("classes", {"dtype": "<U5", "values": ["a"]})
    assert attempt(folder, "two", changed("two", one, without_rows))
    parts = ("missing", "score", "row", "centre", "width")
    empty = [array(f"calibration.{key}", lambda a: a[:0]) for key in parts]
    assert attempt(folder, "regressor", changed("regressor", *empty))


def test_parts_of_estimators_that_do_not_fit(folder):
    def refused(problem, *changes, name="regressor"):
        assert problem in refusal(folder, "estimator", changed(name, *changes))[0]

    def pair(p, g):
        return inside("pair", Kind("pair", PAIR).to_bytes((p, g)))

    def uniform(vtree, cards):
        return independent(vtree, [np.full(c, 1 / c) for c in cards])

    p, g = VALUES["two"].pair_.p, VALUES["two"].pair_.g
    assert g.n_outputs == 1
    wide = random_regression(p.vtree, p.cardinalities, outputs=2, seed=0)
    wide = RegressionCircuit(wide.structure, wide.weight, link="logistic")
    refused("2 outputs, not logistic and 1", pair(p, wide), name="two")
    p = VALUES["regressor"].pair_.p
    other, more = Vtree.left_linear([2, 0, 1, 3]), p.cardinalities + 1
    moved = random_regression(other, p.cardinalities, seed=0)
    refused("another density", pair(uniform(other, p.cardinalities), moved))
    refused("different variables", pair(uniform(p.vtree, more), random_regression(p.vtree, more)))
    for table in (
        {**TABLE, "text": ["red", "pink"] * (N // 2)},  # other values
        {name: TABLE[name] for name in ("flag", "text", "real", "day")},  # another order
        {name: TABLE[name] for name in ("text", "flag", "real")},  # fewer columns
        {**TABLE, "real": [x + 1e-3 for x in TABLE["real"]]},  # other bins
    ):
        ChowLiu(encoder=FOUR).fit(table).save(folder / "density")
        refused("damaged", inside("density", (folder / "density").read_bytes()))
    density = VALUES["latent"].density_
    Density(density.circuit, density.encoder_).save(folder / "density")
    plain = inside("density", (folder / "density").read_bytes())
    refused("not learned as it says", plain, name="latent")
    learned = put("parameters.density", "learned"), put("parameters.encoder", False)
    assert attempt(folder, "latent", changed("latent", plain, *learned))


def test_deep_documents_do_not_recurse(folder):
    for depth in (6, 500, 100_000):
        deep = "[" * depth + "]" * depth
        header = json.dumps(parts("dict")[0])
        text = header.replace(json.dumps(parts("dict")[0]["options"]["bins"]), deep)
        assert text != header
        assert refusal(folder, "encoder", packed("dict", text, parts("dict")[1]))[0]


# -- made-up damage -------------------------------------------------------------------

names = st.sampled_from(list(MAKERS))
hostile = settings(max_examples=300)
junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(
        [
            *("PSDD", "Density", "LatentTree", "chow-liu", "learned", "ChowLiu", "<U1", "identity"),
            *("category", "number", "code", "unknown", "Int64", "category", "Enum", "Int8", "date"),
            *("string[pyarrow]", "datetime64[ns, UTC]", "Arrow string", *SOURCES, "UTC", "inf"),
            *("No/Where", "+25:99", 10**400, -1, 2**63, 0, 1e308),
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["date", "datetime", "duration", "float", "map", "x"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=6,
)


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
        position = where * (length if in_header else len(data))
        data[min(int(position), len(data) - 1)] ^= change
    attempt(folder, name, bytes(data))


@settings(hostile, max_examples=100)
@given(names, st.floats(0, 1, exclude_max=True), st.binary(max_size=9))
def test_cut_off_files(folder, name, where, more):
    data = FILES[name]
    assert not attempt(folder, name, data[: int(where * len(data))])
    assert not attempt(folder, name, data + b"x" + more)


def positions(node, path=()):
    """All positions in a JSON document but the top."""
    if isinstance(node, dict | list):
        for key, child in node.items() if isinstance(node, dict) else enumerate(node):
            yield (*path, key)
            yield from positions(child, (*path, key))


@settings(hostile, max_examples=1_200)
@given(names, st.data())
def test_headers_of_junk(folder, name, data):
    header, arrays = parts(name)
    everywhere = list(positions(header))
    if not everywhere:
        return
    if data.draw(st.booleans()):  # as often in the short parts as in the long ones
        depth = data.draw(st.integers(1, max(map(len, everywhere))))
        everywhere = [path for path in everywhere if len(path) <= depth]
    *path, last = data.draw(st.sampled_from(everywhere))
    node = header
    for step in path:
        node = node[step]
    how = data.draw(st.sampled_from(["junk", "gone", "swap", "more"]))
    if how == "junk":
        node[last] = data.draw(junk)
    elif how == "gone":
        del node[last]
    elif how == "swap":
        keys = list(node) if isinstance(node, dict) else range(len(node))
        other = data.draw(st.sampled_from(keys))
        node[last], node[other] = node[other], node[last]
    elif isinstance(node, dict):
        node[data.draw(st.text(max_size=3))] = data.draw(junk)
    else:
        node.append(node[last])
    attempt(folder, name, packed(name, header, arrays))


@settings(hostile, max_examples=1_200)
@given(names, st.data())
def test_arrays_of_junk(folder, name, data):
    header, arrays = parts(name)
    key = data.draw(st.sampled_from(sorted(arrays)))
    values = arrays[key].copy()
    how = data.draw(
        st.sampled_from(["value", "value", "swap", "shorter", "longer", "scale", "moved"])
    )
    if how == "value" and len(values):
        whole = values.dtype.kind == "i"
        number = st.integers(-5, 9) | st.just(2**31 - 1) if whole else st.floats()
        values[data.draw(st.integers(0, len(values) - 1))] = data.draw(number)
    elif how == "swap":
        values = np.random.default_rng(data.draw(st.integers(0, 99))).permutation(values)
    elif how == "shorter":
        values = values[:-1]
    elif how == "longer":
        values = np.concatenate([values, values[:1]])
    elif how == "scale" and values.dtype.kind == "f":
        values = values * data.draw(st.sampled_from([-1.0, 0.0, 0.5, 1.5, np.nan]))
    elif how == "moved":
        values = arrays[data.draw(st.sampled_from(sorted(arrays)))]
    arrays[key] = values
    attempt(folder, name, packed(name, header, arrays))


@pytest.mark.parametrize("key", ["weight", "target"])
def test_training_rows_whose_sums_overflow(folder, key):
    header, arrays = parts("regressor")
    arrays[f"training_rows.{key}"] = np.full_like(arrays[f"training_rows.{key}"], 1.4e154)
    assert not attempt(folder, "regressor", packed("regressor", header, arrays))


def test_a_tolerance_that_no_question_takes(folder):
    def loose(header, arrays):
        header["parameters"]["tol"] = 1e7

    assert not attempt(folder, "linear", changed("linear", loose))


def test_slopes_are_written_as_they_were_read(folder):
    header, arrays = parts("linear")
    arrays["margin.intercept"] = np.full_like(arrays["margin.intercept"], 1e-17)
    assert attempt(folder, "linear", packed("linear", header, arrays))
    written = Container.from_bytes("file", (folder / "file").read_bytes()).arrays
    np.testing.assert_array_equal(written["margin.intercept"], arrays["margin.intercept"])


@settings(hostile, max_examples=100)
@given(st.sampled_from([ENCODERS, DENSITIES, ESTIMATORS]), st.data())
def test_files_of_two_halves(folder, group, data):
    name, other = (data.draw(st.sampled_from(group)) for _ in range(2))
    (header, arrays), (second, more) = parts(name), parts(other)
    attempt(folder, name, packed(name, header, more))
    attempt(folder, name, packed(name, header, {**arrays, **more}))
    key = data.draw(st.sampled_from(sorted(set(header) & set(second))))
    attempt(folder, name, packed(name, {**second, key: header[key]}, more))
