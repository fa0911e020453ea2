"""Questions about groups, against sums over all cells."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

import worlds
from expecta import (
    ChowLiu,
    CircuitClassifier,
    CircuitRegressor,
    DomainError,
    Encoder,
    Evidence,
    ExpectedPredictor,
    QueryError,
)
from expecta.ask.language.query import Query
from expecta.ask.printed_answer import first_sentence

MIXED = [
    None,
    {"kind": "x"},
    {"kind": ["x", "z"], "age": (30, 50)},
    {"size": (0.7, 2.2)},
    "kind == 'x' or age > 45",
    "not (kind == 'y' and size < 2)",
]
NUMERIC = [None, {"x0": (-0.5, 0.7)}, "x0 > 0 or x2 < -0.3", {"x1": 0.5, "x2": (None, 1.0)}]


@pytest.fixture(scope="module")
def circuits():
    return {
        "regressor": (worlds.regressor(), None),
        "latent": (worlds.latent(), None),
        "two classes": (worlds.classifier([3.5, 1e9]), None),
        "first of two": (worlds.classifier([3.5, 1e9]), "low"),
    }


@pytest.fixture(scope="module")
def others():
    return worlds.others()


def agrees(model, world, query, of=None, atol=1e-8):
    """Check all of a group's numbers against the enumeration."""
    found = model.ask(query, of=of, population="density")
    scale = np.ptp(world.f)
    assert found.share == pytest.approx(world.weight(query).sum(), rel=1e-9)
    assert found.mean == pytest.approx(world.mean(query), abs=atol * scale + found.numerical_error)
    assert found.std == pytest.approx(world.std(query), abs=1e-5 * scale)
    evidence = Query.read(query, world.subject.encoder).evidence(world.subject.encoder)
    weight = world.subject.probability(evidence)
    threshold = float(np.median(world.f))
    above, loose = world.subject.above(evidence, threshold)
    mixed = weight @ np.nan_to_num(above) / weight.sum()
    assert mixed == pytest.approx(world.above(query, threshold), abs=1e-8 + np.nanmax(loose))
    for level, value in found.quantiles.items():
        wanted = world.quantile(query, level)
        assert value == pytest.approx(wanted, abs=1e-6 * scale + found.quantile_errors[level])


@pytest.mark.parametrize("query", MIXED, ids=str)
@pytest.mark.parametrize("name", ["regressor", "latent", "two classes", "first of two"])
def test_circuits(circuits, name, query):
    model, of = circuits[name]
    agrees(model, worlds.world_of(model, of), query, of)


@pytest.mark.parametrize("query", NUMERIC, ids=str)
@pytest.mark.parametrize(
    "name", ["ridge", "poisson", "tree", "xgboost", "logistic", "xgboost classifier"]
)
def test_models_of_others(others, name, query):
    # the libraries compute with 32 bits
    agrees(others[name], worlds.world_of(others[name]), query, atol=1e-6)


def test_quantiles_of_small_groups_are_exact(circuits, others):
    for model in (circuits["regressor"][0], others["tree"], others["xgboost"]):
        assert set(model.ask().quantile_errors.values()) == {0.0}


def test_large_groups_are_within_their_error():
    model = worlds.regressor(bins=24)
    world = worlds.world_of(model)
    found = model.ask("kind != 'y'")
    assert any(found.quantile_errors.values())
    w = world.weight("kind != 'y'")
    for level, value in found.quantiles.items():
        loose = found.quantile_errors[level]
        # some number within the error is a quantile of that level, give or take the blur's tails
        assert w @ (world.f <= value + loose) / w.sum() >= level - 1e-9
        assert w @ (world.f < value - loose) / w.sum() <= level + 1e-9
    evidence = model.encoder_.where(kind=["x", "z"])
    for threshold in np.quantile(world.f, [0.1, 0.5, 0.9]).tolist():
        above, loose = world.subject.above(evidence, threshold)
        assert above[0] == pytest.approx(world.above("kind != 'y'", threshold), abs=loose[0] + 1e-9)


FACTS = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.one_of(st.sampled_from("xyz"), st.lists(st.sampled_from("xyz"), min_size=1)),
        "size": st.tuples(st.floats(0, 3), st.floats(3, 8)),
        "age": st.tuples(st.integers(10, 40), st.integers(40, 70)),
    },
)


@given(facts=FACTS)
@settings(max_examples=30, deadline=None)
def test_any_facts(facts):
    model = _kept_regressor()
    world = worlds.world_of(model)
    if world.weight(facts).sum() < 1e-12:
        return
    found = model.ask(facts, population="density")
    assert found.mean == pytest.approx(world.mean(facts), rel=1e-9)
    assert found.std == pytest.approx(world.std(facts), abs=1e-7)
    assert model.ask(**facts, population="density").mean == found.mean


_KEPT = []


def _kept_regressor():
    if not _KEPT:
        _KEPT.append(worlds.regressor())
    return _KEPT[0]


# -- what is sampled ------------------------------------------------------------------


@pytest.mark.parametrize("query", MIXED[:5], ids=str)
def test_three_classes(query):
    model = worlds.classifier([3.0, 5.0])
    world = worlds.world_of(model, "middle")
    found = model.ask(query, of="middle", population="density")
    each = 1 / (1 + np.exp(-model.circuit_(world.cells)))
    w = world.weight(query)
    ratio = (w @ each)[world.subject.of_class] / (w @ each).sum()
    assert found.mean == pytest.approx(ratio, abs=1e-8)
    assert found.share == pytest.approx(w.sum(), rel=1e-9)
    assert found.std == pytest.approx(world.std(query), rel=0.1)
    evidence = Query.read(query, world.subject.encoder).evidence(world.subject.encoder)
    above, loose = world.subject.above(evidence[0], 0.3)
    truth = _given(world, evidence[0])
    assert above[0] == pytest.approx(truth @ (world.f >= 0.3), abs=5 * loose[0])
    with pytest.raises(DomainError, match="3 classes; choose one"):
        model.ask()
    with pytest.raises(DomainError, match=r"no class 'hihg'.*did you mean 'high'"):
        model.ask(of="hihg")


def _given(world, evidence):
    """Return the probability of each cell given one row of evidence."""
    w = world.p.copy()
    for v in range(world.cells.shape[1]):
        w *= evidence.weights(v)[0][world.cells[:, v]]
    return w / w.sum()


def test_predict_proba_is_what_a_group_of_one_row_says():
    model = worlds.classifier([3.0, 5.0])
    row = {"kind": ["x"], "size": [None], "age": [33.0]}
    says = model.predict_proba(row)[0]
    for place, name in enumerate(model.classes_):
        assert model.ask(
            {"kind": "x", "age": 33.0}, of=name, population="density"
        ).mean == pytest.approx(says[place])


def test_functions_are_sampled_within_their_errors():
    X = np.random.default_rng(0).normal(size=(240, 3))  # no number twice
    model = worlds.predictor(worlds.Wiggle(), rtol=0.005).fit(X)
    subject = model.expected_output()
    assert subject.samples_mean
    evidence = subject.encoder.where(x0=(-0.5, 1.0))
    draws = model.model.predict(
        subject.encoder.inverse_transform(
            subject.circuit.sample(400_000, given=evidence, seed=7)[0], random_state=8
        )
    )
    output = subject.distribution(evidence, np.ones(1))
    for (value, error), wanted in (
        (subject.mean(evidence), draws.mean()),
        (subject.variance(evidence), draws.var()),
        (subject.above(evidence, 0.3), np.mean(draws >= 0.3)),
        (output.quantiles(np.array([0.25])), np.quantile(draws, 0.25)),
    ):
        assert 0 < error[0] < 0.1
        assert value[0] == pytest.approx(wanted, abs=4.5 * error[0])
    found = model.ask("x0 > 0 or x1 > 0")
    assert found.numerical_error > 0
    assert found.mean == model.ask("x0 > 0 or x1 > 0").mean  # the same question, the same answer
    assert "sampled" in found.exactness


def test_large_ensembles_have_an_exact_mean_and_sampled_quantiles():
    from xgboost import XGBRegressor

    X, y = worlds.numeric()
    X = X + np.random.default_rng(0).uniform(-0.2, 0.2, X.shape)  # many numbers, many cuts
    model = worlds.predictor(XGBRegressor(n_estimators=40, max_depth=5).fit(X, y)).fit(X, y)
    group = {"x0": (-0.5, 0.5)}
    subject = model.expected_output()
    draws = subject.draws(subject.encoder.where(group), 100_000, np.random.default_rng(5))[0]
    found = model.ask(group, population="density")
    assert found.numerical_error == 0
    assert found.mean == pytest.approx(draws.mean(), abs=5 * draws.std() / np.sqrt(len(draws)))
    for level, value in found.quantiles.items():
        loose = found.quantile_errors[level]
        assert loose > 0
        assert value == pytest.approx(np.quantile(draws, level), abs=6 * loose + 0.01)


# -- impossible, odd and wrong --------------------------------------------------------


@pytest.mark.parametrize("query", [{"age": (200, 300)}, "age < 20 and age > 50", {"kind": []}])
def test_impossible_groups(circuits, query):
    for name in ("regressor", "two classes"):
        found = circuits[name][0].ask(query)
        assert found.share == 0
        assert found.rows == 0
        assert np.isnan(
            [found.mean, found.std, found.numerical_error, *found.quantiles.values()]
        ).all()
        assert any("probability zero" in remark for remark in found.remarks)
        assert json.dumps(found.to_dict())
        assert found.curve()[0].size == 0
        assert "probability zero" in str(found)


def test_impossible_evidence_beside_possible(circuits):
    subject = circuits["regressor"][0].expected_output()
    rows = Evidence.unknown(subject.encoder.cardinalities_, 2)
    zero = np.ones((2, 3))
    zero[0] = 0
    rows = rows.likelihood(0, zero)
    for value, error in (subject.mean(rows), subject.variance(rows), subject.above(rows, 3.0)):
        assert np.isnan(value[0])
        assert np.isnan(error[0])
        assert np.isfinite(value[1])
    assert np.isnan(subject.draws(rows, 3, np.random.default_rng(0))[0]).all()


def test_columns_named_like_parameters():
    table = {"of": [1.0, 2.0] * 30, "query": ["a", "b", "b"] * 20}
    table["self"] = [0.0, 5.0, 7.0, 9.0] * 15  # five more where of is 2, then two
    y = np.array(table["of"]) + np.array(table["self"])
    model = CircuitRegressor(density=ChowLiu(), calibration_rows=0, random_state=0).fit(table, y)
    assert model.ask({"of": 2.0}).mean - model.ask({"of": 1.0}).mean == pytest.approx(4.5, abs=0.3)
    assert model.ask(query="a").rows == 20
    assert model.ask({"self": 0.0}).rows == 15
    assert len(model.split("of", "query")) == 4


def test_errors_say_what_to_do(circuits):
    model = circuits["regressor"][0]
    with pytest.raises(DomainError, match="one output"):
        model.ask(of="kind")
    with pytest.raises(DomainError, match="did you mean 'kind'"):
        model.ask(kin="x")
    with pytest.raises(DomainError, match="give one or more columns"):
        model.split()
    with pytest.raises(DomainError, match="bins"):
        model.split("age", bins=0)
    with pytest.raises(DomainError, match="grid"):
        model.dependence("age", grid=0)
    with pytest.raises(DomainError, match="grid has no values"):
        model.dependence("age", grid=[])


def test_margins(others):
    X, y = worlds.numeric()
    model = worlds.predictor(LinearSVC(random_state=0).fit(X, y > 0)).fit(X, y > 0)
    nothing = np.full((1, 3), np.nan)
    assert model.ask(population="density").mean == pytest.approx(
        model.decision_function(nothing)[0]
    )
    with pytest.raises(DomainError, match="one margin"):
        model.ask(of=False)


def test_several_outputs():
    X, y = worlds.numeric()
    model = worlds.predictor(LinearRegression().fit(X, np.column_stack([y, -2 * y]))).fit(X)
    one, two = model.ask(of=0), model.ask({"x0": (0, 1)}, of=1)
    assert two.mean == pytest.approx(-2 * model.ask({"x0": (0, 1)}, of=0).mean)
    assert one.rows == len(X)
    assert one.rows_mean is None
    with pytest.raises(DomainError, match="of=0 to of=1"):
        model.ask()


# -- two groups, many groups, one column ----------------------------------------------


def test_compare(circuits):
    model = circuits["regressor"][0]
    world = worlds.world_of(model)
    found = model.compare("kind == 'x'", {"kind": ["y", "z"]}, population="density")
    a, b = world.mean("kind == 'x'"), world.mean({"kind": ["y", "z"]})
    assert found.difference == pytest.approx(a - b)
    assert found.ratio == pytest.approx(a / b)
    first, second = world.weight("kind == 'x'"), world.weight({"kind": ["y", "z"]})
    order = np.sign(world.f[:, None] - world.f)
    wanted = (first @ (0.5 + 0.5 * order) @ second) / first.sum() / second.sum()
    assert found.superiority == pytest.approx(wanted, abs=found.superiority_error + 1e-9)
    assert found.superiority_error < 0.02
    assert json.loads(json.dumps(found.to_dict()))["a"]["mean"] == found.a.mean
    assert list(found.to_frame()["std"]) == [found.a.std, found.b.std]
    same = model.compare(None, None)
    assert same.difference == 0
    assert same.superiority == pytest.approx(0.5, abs=1e-9)


def test_compare_without_a_ratio():
    X, y = worlds.numeric()
    model = LinearRegression().fit(X, 0 * y)
    found = worlds.predictor(model).fit(X).compare("x0 > 0", "x0 < 0")
    assert np.isnan(found.ratio)
    assert "ratio" not in str(found)


@pytest.mark.parametrize("query", [None, "kind == 'x' or age > 45"])
def test_split(circuits, query):
    for name in ("regressor", "two classes"):
        model = circuits[name][0]
        found = model.split("kind", "age", given=query, bins=2, population="density")
        world = worlds.world_of(model)
        assert found.share.sum() == pytest.approx(1.0)
        assert found.share @ found.mean == pytest.approx(world.mean(query), abs=1e-8)
        table = worlds.mixed()[0]
        matches = Query.read(query, world.subject.encoder).matches(table)
        for row in range(len(found)):
            kind = found.labels[0][row]
            low, high = map(float, found.labels[1][row].split(" to "))
            group = f"kind == '{kind}' and {low} <= age <= {high}"
            if query is not None:
                group += f" and ({query})"
            assert found.mean[row] == pytest.approx(world.mean(group), abs=1e-8)
            assert found.std[row] == pytest.approx(world.std(group), abs=1e-6)
            assert found.share[row] * world.weight(query).sum() == pytest.approx(
                world.weight(group).sum()
            )
            inside = matches & (table["kind"] == kind)
            inside &= (table["age"] >= low) & (table["age"] <= high)
            assert found.rows[row] == inside.sum()
            if inside.sum() > 1:
                outcome = model.training_rows_.outcome(world.subject.of_class)
                assert found.rows_mean[row] == pytest.approx(outcome[inside].mean())
        assert found.rare.tolist() == (found.share * world.weight(query).sum() * 240 < 5).tolist()


def test_splits_have_about_equal_shares(monkeypatch):
    model = worlds.regressor(bins=24)
    found = model.split("size", bins=6)
    assert len(found) == 6
    assert np.all(np.abs(found.share - 1 / 6) < 0.05)
    ends = [tuple(map(float, label.split(" to "))) for label in found.labels[0]]
    assert all(a[1] < b[0] for a, b in pairwise(ends))
    monkeypatch.setattr("expecta.ask.split.MAX_GROUPS", 5)
    with pytest.raises(DomainError, match="6 groups, more than 5"):
        model.split("size", bins=6)


def test_split_of_others(others):
    for model in others.values():
        found = model.split("x0", "x2", bins=3, population="density")
        whole = model.ask(population="density")
        assert found.share @ found.mean == pytest.approx(whole.mean, abs=1e-5)
        spread = found.share @ (found.std**2 + (found.mean - whole.mean) ** 2)
        assert np.sqrt(spread) == pytest.approx(whole.std, abs=1e-4)
        assert found.rows.sum() == worlds.ROWS


@pytest.mark.parametrize("query", [None, "age > 45 or kind == 'x'"])
@pytest.mark.parametrize("name", ["regressor", "latent", "two classes"])
def test_dependence(circuits, name, query):
    model = circuits[name][0]
    world = worlds.world_of(model)
    for column, variable in (("size", 1), ("kind", 0)):
        found = model.dependence(column, given=query, population="density")
        labels = world.subject.encoder.columns_[variable].labels
        assert found.labels == labels
        w = world.weight(query)
        for value in range(len(labels)):
            inside = world.cells[:, variable] == value
            here = w * inside
            mean = here @ world.f / here.sum()
            assert found.share[value] == pytest.approx(here.sum() / w.sum())
            assert found.mean[value] == pytest.approx(mean, abs=1e-8)
            std = np.sqrt(here @ (world.f - mean) ** 2 / here.sum())
            assert found.std[value] == pytest.approx(std, abs=1e-6)
            wanted = world.partial(variable, value, query)
            assert found.partial[value] == pytest.approx(wanted, abs=1e-8)
    assert model.dependence("kind").at is None


ITSELF = [
    "size > 1.3",
    "kind == 'x' and age > 30",
    "size < 1 or age > 45",
    "kind != 'y' or size > 2",
]


@pytest.mark.parametrize("query", ITSELF)
@pytest.mark.parametrize("name", ["regressor", "latent", "first of two"])
def test_dependence_where_the_population_is_said_by_the_column(circuits, name, query):
    model, of = circuits[name]
    world = worlds.world_of(model, of)
    for column, variable in (("size", 1), ("kind", 0), ("age", 2)):
        labels = world.subject.encoder.columns_[variable].labels
        w = world.weight(query)
        found = model.dependence(column, given=query, of=of, population="density")
        for place, label in enumerate(found.labels):
            value = labels.index(label)
            wanted = world.partial(variable, value, query)
            assert found.partial[place] == pytest.approx(wanted, abs=1e-8)
            here = w @ (world.cells[:, variable] == value)
            assert found.share[place] == pytest.approx(here / w.sum())


def test_partial_dependence_on_a_value_that_the_population_does_not_have(circuits):
    model = circuits["latent"][0]
    world = worlds.world_of(model)
    found = model.dependence(
        "kind", given="kind == 'x' and size < 2", grid=["x", "z"], population="density"
    )
    assert found.share.tolist() == pytest.approx([1.0, 0.0])
    assert np.isnan(found.mean[1])
    for place, value in enumerate((0, 2)):
        wanted = world.partial(0, value, "kind == 'x' and size < 2")
        assert found.partial[place] == pytest.approx(wanted, abs=1e-8)


def test_partial_dependence_of_three_classes():
    model = worlds.classifier([3.0, 5.0])
    query = "kind == 'x' or size > 2"
    parts = model.dependence("kind", given=query, of="middle").partial
    subject = model.expected_output("middle")
    for value in range(3):
        each = []
        for one in range(3):
            world = worlds.World(subject, lambda cells, k=one: expit(model.circuit_(cells))[:, k])
            each.append(world.partial(0, value, query))
        assert parts[value] == pytest.approx(each[subject.of_class] / np.sum(each), abs=1e-6)


def test_dependence_on_merged_cells(circuits):
    model = circuits["regressor"][0]
    world = worlds.world_of(model)
    found = model.dependence("size", grid=2, population="density")
    w, groups = world.p, [(0, 1), (2, 3)]
    for place, cells in enumerate(groups):
        shares = np.array([w[world.cells[:, 1] == cell].sum() for cell in cells])
        partial = [world.partial(1, cell) for cell in cells]
        assert found.share[place] == pytest.approx(shares.sum())
        assert found.partial[place] == pytest.approx(shares @ partial / shares.sum())
    single = model.dependence("size", grid=[1.0, 4.0], population="density")
    assert len(single.labels) == 2
    assert single.mean[0] == pytest.approx(world.mean({"size": 1.0}))


def test_dependence_of_others(others):
    for name in ("ridge", "tree", "xgboost", "xgboost classifier"):
        model, world = others[name], worlds.world_of(others[name])
        value = 2
        cell = world.subject.encoder.columns_[1].means[value]
        found = model.dependence("x1", grid=[cell], population="density")
        assert found.partial[0] == pytest.approx(world.partial(1, value), abs=1e-6)
        inside = world.p * (world.cells[:, 1] == value)
        assert found.mean[0] == pytest.approx(inside @ world.f / inside.sum(), abs=1e-6)
        assert found.at[0] == pytest.approx(cell)
        query = "x1 > 0.4 or x0 < 0"
        found = model.dependence("x1", given=query, population="density")
        wanted = [world.partial(1, one, query) for one in range(len(found.labels))]
        assert found.partial.tolist() == pytest.approx(wanted, abs=1e-6)


def test_the_sentence_on_dependence():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 400)
    copied = {"a": np.array(["no", "yes"])[a], "b": a + 0.0}
    model = CircuitRegressor(density=ChowLiu(), calibration_rows=0, random_state=0)
    together = model.fit(copied, 10.0 * a).dependence("a")
    assert "other columns vary with a" in together.difference
    apart = {"a": np.array(["no", "yes"])[a], "b": rng.integers(0, 2, 400) + 0.0}
    model = clone(model).fit(apart, 10.0 * a + 1)
    assert "matter little" in model.dependence("a").difference


# -- training rows, copies, files -----------------------------------------------------


def test_averages_of_training_rows():
    table, target, _ = worlds.mixed()
    weight = np.random.default_rng(3).integers(0, 3, len(target)).astype(float)
    model = CircuitRegressor(density=ChowLiu(), calibration_rows=0, random_state=0)
    model.fit(table, target, sample_weight=weight)
    inside = (table["kind"] == "y") & (table["age"] < 30)
    found = model.ask("kind == 'y' and age < 30")
    assert found.rows == np.count_nonzero(inside & (weight > 0))
    assert found.rows_mean.mean == pytest.approx(np.average(target[inside], weights=weight[inside]))
    model.fit(table, target)
    found = model.ask("kind == 'y' and age < 30").rows_mean
    low, high = stats.t.interval(
        0.95, inside.sum() - 1, target[inside].mean(), stats.sem(target[inside])
    )
    assert (found.low, found.high) == pytest.approx((low, high))
    assert model.ask({"age": (1000, None)}).rows_mean is None


def test_the_target_has_its_name():
    import pandas as pd

    table, target, _ = worlds.mixed()
    model = CircuitRegressor(density=ChowLiu(), calibration_rows=0, random_state=0)
    assert model.fit(pd.DataFrame(table), pd.Series(target, name="cost")).ask().name == "cost"
    assert worlds.classifier([3.5, 1e9]).ask().name == "P(middle)"


def test_predictors_may_be_without_a_target(others):
    X, y = worlds.numeric()
    model = worlds.predictor(LinearRegression().fit(X, y)).fit(X)
    assert model.ask("x0 > 0").rows == np.count_nonzero(X[:, 0] > 0)
    assert model.ask().rows_mean is None
    inside = others["logistic"].ask("x0 > 0").rows_mean
    assert inside.mean == pytest.approx(np.mean((y > 0)[X[:, 0] > 0]))
    with pytest.raises(DomainError, match="rows and y"):
        worlds.predictor(LinearRegression().fit(X, y)).fit(X, y[:5])


def test_copies_and_pickles(circuits, others):
    for model in (circuits["regressor"][0], circuits["two classes"][0], others["xgboost"]):
        whole = model.ask()
        for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert other.ask().mean == whole.mean
        assert not hasattr(clone(model), "training_rows_")


def test_learning_anew_answers_anew():
    table, target, _ = worlds.mixed()
    model = CircuitRegressor(density=ChowLiu(), calibration_rows=0, random_state=0)
    before = model.fit(table, target).ask().mean
    assert model.fit(table, target + 100).ask().mean == pytest.approx(before + 100)


def test_files_keep_rows_only_if_asked_to(circuits, tmp_path):
    for name in ("regressor", "two classes"):
        model = circuits[name][0]
        model.save(tmp_path / "with", rows=True)
        model.save(tmp_path / "without")
        kept = type(model).load(tmp_path / "with")
        for query in MIXED:
            assert str(kept.ask(query)) == str(model.ask(query))
        assert kept.training_rows_.name == model.training_rows_.name
        bare = type(model).load(tmp_path / "without")
        assert bare.training_rows_ is None
        for query in (None, "kind == 'x'", "kind != 'x'", {"age": (0, None)}):
            answer, expected = bare.ask(query), model.ask(query)
            assert answer.density_mean == expected.density_mean
            assert answer.mean == pytest.approx(expected.mean, rel=1e-12)
            assert answer.rows == expected.rows
            assert vars(answer.rows_mean) == pytest.approx(vars(expected.rows_mean))
            assert answer.remarks == expected.remarks
        answer, expected = bare.split("kind"), model.split("kind")
        assert answer.rows.tolist() == expected.rows.tolist()
        assert answer.rows_mean == pytest.approx(expected.rows_mean, nan_ok=True)
        with pytest.raises(DomainError, match="without training rows"):
            bare.save(tmp_path / "more", rows=True)
        bare.save(tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == (tmp_path / "without").read_bytes()


def test_sums_in_place_of_rows(tmp_path):
    """Groups of one and two columns have averages, by their share where they divide cells."""
    rng = np.random.default_rng(0)
    n = 800
    table = {
        "age": rng.integers(20, 60, n),
        "kind": rng.choice(list("xyz"), n),
        "size": rng.normal(size=n),
        "side": rng.choice(["left", "right"], n),
    }
    target = table["age"] + 9.0 * (table["kind"] == "x") + rng.normal(size=n)
    model = CircuitRegressor(density=ChowLiu(), calibration_rows=0, random_state=0)
    model.fit(table, target).save(tmp_path / "model")
    bare = CircuitRegressor.load(tmp_path / "model")
    for query in ("kind == 'x' and side == 'left'", "kind != 'x' or side == 'left'"):
        answer, expected = bare.ask(query), model.ask(query)
        assert answer.rows == expected.rows
        assert vars(answer.rows_mean) == pytest.approx(vars(expected.rows_mean))
        assert answer.remarks == expected.remarks
    both = bare.compare("kind == 'x'", "kind == 'y'"), model.compare("kind == 'x'", "kind == 'y'")
    assert both[0].b.rows_mean.mean == pytest.approx(both[1].b.rows_mean.mean)
    split, expected = (m.split("kind", given="side == 'left'") for m in (bare, model))
    assert split.rows.tolist() == expected.rows.tolist()
    assert split.rows_mean == pytest.approx(expected.rows_mean)
    assert split.remarks == expected.remarks
    divided = 0
    for query in ("size < 0.1234", "size < 0.1234 and age <= 33", "age <= 33 and kind == 'y'"):
        answer, expected = bare.ask(query), model.ask(query)
        by_share = any("approximate" in remark for remark in answer.remarks)
        assert answer.rows == pytest.approx(expected.rows, abs=10 * by_share)
        assert answer.rows_mean.mean == pytest.approx(
            expected.rows_mean.mean, abs=2.0 if by_share else 1e-9
        )
        divided += by_share
    assert divided
    answer = bare.split("age", "size")
    assert answer.rows.sum() == pytest.approx(n, abs=10)
    assert any("approximate" in remark for remark in answer.remarks)
    three = bare.ask("kind == 'x' and side == 'left' and age < 40")
    assert (three.rows, three.rows_mean) == (None, None)
    assert any("save(path, rows=True)" in remark for remark in three.remarks)
    three = bare.split("kind", "side", given="age < 40")
    assert three.rows is None
    assert three.rare is not None
    assert any("expecta fit --rows" in remark for remark in three.remarks)
    assert str(three)


# -- how answers show themselves ------------------------------------------------------


def test_answers_show_themselves(circuits):
    model = circuits["regressor"][0]
    answers = [
        model.ask(kind="x"),
        model.compare("kind == 'x'", "kind == 'y'"),
        model.split("kind", "age"),
        model.dependence("age"),
    ]
    for answer in answers:
        assert answer.exactness if hasattr(answer, "exactness") else answer.a.exactness
        assert "<table>" in answer._repr_html_()
        assert len(str(answer).splitlines()) > 3
        json.dumps(answer.to_dict(), allow_nan=False)
        assert len(answer.to_frame())
    grid, below = answers[0].curve()
    world = worlds.world_of(model)
    w = world.weight({"kind": "x"})
    assert below == pytest.approx([w @ (world.f <= at) / w.sum() for at in grid], abs=1e-9)


def test_rare_groups_and_cut_bins_are_remarked(circuits):
    model = circuits["regressor"][0]
    found = model.ask("kind == 'z' and age == 64 and size > 3.9")
    assert any("rare" in remark for remark in found.remarks)
    assert len(model.ask({"size": (1.0, 1.5)}).remarks) == 1


def test_encoders_with_codes():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (200, 3))
    density = ChowLiu().fit(X)  # whose variables are the integers themselves
    model = CircuitRegressor(density=density, calibration_rows=0, random_state=0)
    model.fit(X, X[:, 0] + 2.0 * X[:, 1])
    assert model.encoder_.source_ == "codes"
    assert model.ask({"x0": 1}).rows == np.count_nonzero(X[:, 0] == 1)
    assert model.split("x0", "x1").rows.sum() == 200


# -- numbers that nobody has, heavy bins, and holes that are values ------------------------


def gaps():
    """A model of whole numbers with gaps between them, two of them heavy, each in its bin."""
    rng = np.random.default_rng(0)
    k = rng.choice([0, 1, 2, 3, 5, 7, 8, 9, 12], 300, p=[0.3, 0.36, 0.1, 0.1, *[0.028] * 5])
    table = {"k": k, "flag": rng.random(300) < 0.3 + 0.05 * k, "same": np.full(300, 7)}
    model = CircuitRegressor(density=ChowLiu(), calibration_rows=0, random_state=0)
    return model.fit(table, 1.0 * k + 3 * table["flag"]), table


@pytest.fixture(scope="module")
def gapped():
    return gaps()


@pytest.mark.parametrize("number", [4, 5, 500, 2.5])
def test_groups_of_a_number_that_nobody_has(gapped, number):
    model, table = gapped
    world = worlds.world_of(model)
    column = world.subject.encoder.column("k")
    here = (column.means == number)[world.cells[:, 0]]
    one, others = model.ask(f"k == {number}"), model.ask(f"k != {number}")
    assert one.share == pytest.approx(world.p @ here)
    assert others.share == pytest.approx(world.p @ ~here)
    wanted = world.p[~here] @ world.f[~here] / others.share
    assert others.density_mean == pytest.approx(wanted, abs=1e-8)
    assert one.rows == np.sum(table["k"] == number)
    absent = f"no such value in the training data: k = {number}"
    assert (absent in one.remarks) == (absent in others.remarks) == (not np.any(here))
    assert model.ask("same != 8").share == pytest.approx(1.0)
    assert model.ask("same == 8").share == 0


def test_dependence_on_a_number_that_nobody_has(gapped):
    model, _ = gapped
    found = model.dependence("k", grid=[1, 4, 5])
    world = worlds.world_of(model)
    assert found.labels == ("1", "4", "5")
    assert found.at.tolist() == pytest.approx([1, 4, 5])
    assert found.share[1] == 0
    assert np.isnan(found.mean[1])
    assert np.isnan(found.partial[1])
    for place, value in ((0, 1), (2, 4)):
        assert found.partial[place] == pytest.approx(world.partial(0, value), abs=1e-8)
    assert "no such value in the training data: k = 4" in found.remarks


@pytest.mark.parametrize("bins", range(1, 10))
@pytest.mark.parametrize("query", ["k >= 1", "k <= 1", "k != 2 and k != 3", "k != 1 and k < 9"])
def test_groups_beside_bins_that_a_condition_empties(gapped, query, bins):
    model, table = gapped
    world = worlds.world_of(model)
    means = world.subject.encoder.column("k").means[world.cells[:, 0]]
    found = model.split("k", given=query, bins=bins, population="density")
    w = world.weight(query)
    rows = Query.read(query, world.subject.encoder).matches(table)
    assert found.share.sum() == pytest.approx(1)
    assert found.rows.sum() == rows.sum()
    for place, label in enumerate(found.labels[0]):
        low, high = float(label.split(" to ")[0]), float(label.split(" to ")[-1])
        here = w * ((means >= low) & (means <= high))
        assert found.share[place] == pytest.approx(here.sum() / w.sum())
        assert found.mean[place] == pytest.approx(here @ world.f / here.sum(), abs=1e-8)
        assert found.rows[place] == np.sum(rows & (table["k"] >= low) & (table["k"] <= high))
    assert model.dependence("k", given=query, grid=bins).labels == found.labels[0]


@pytest.mark.parametrize("query", [None, "i == 'missing'", "i != 'missing'", "b == 'u' or i >= 4"])
def test_holes_that_are_values_are_a_group(query):
    rng = np.random.default_rng(0)
    b = rng.choice(["u", "v"], 300)
    i = np.where(rng.random(300) < np.where(b == "u", 0.4, 0.1), np.nan, rng.integers(0, 8, 300))
    encoder = Encoder(max_bins=4, missing_is_value=["i"])
    model = CircuitRegressor(
        density=ChowLiu(), encoder=encoder, max_bins=4, calibration_rows=0, random_state=0
    ).fit({"i": i, "b": b}, np.nan_to_num(i, nan=9.0) + (b == "u"))
    world = worlds.world_of(model)
    column = world.subject.encoder.column("i")
    lows, highs = (np.append(ends, np.nan) for ends in (column.lows, column.highs))
    rows = Query.read(query, world.subject.encoder).matches({"i": i, "b": b})
    w = world.weight(query)
    for bins in (2, 10):
        found = model.split("i", given=query, bins=bins, population="density")
        assert found.share.sum() == pytest.approx(1)
        for place, label in enumerate(found.labels[0]):
            inside, values = np.isnan(i), np.isnan(lows)
            if label != "missing":
                low, high = float(label.split(" to ")[0]), float(label.split(" to ")[-1])
                inside = (i >= low) & (i <= high)
                values = (lows >= low) & (highs <= high)
            here = w * values[world.cells[:, 0]]
            assert found.rows[place] == np.sum(rows & inside)
            assert found.share[place] == pytest.approx(here.sum() / w.sum())
            assert found.mean[place] == pytest.approx(here @ world.f / here.sum(), abs=1e-8)
    wide = float(column.lows[np.argmax(column.highs > column.lows)])
    for text in (f"i == {wide}", f"i != {wide}", f"i in ({wide}, 'missing')"):
        with pytest.raises(QueryError, match="must be whole bins"):
            model.ask(text)
    for facts in ({"i": (0, 3)}, {"i": "missing"}, {"i": 99}, {"i": (2, 5), "b": "u"}):
        asked = model.ask(facts)
        assert model.ask(asked.query).share == pytest.approx(asked.share)
    for group in model.disparities("b", size=1).group:
        assert group == "everyone" or model.ask(group).rows > 0
    assert model.ask("i == 99").share == 0
    assert "no such value in the training data: i = 99" in model.ask("i in (99, 'missing')").remarks
    assert model.ask("i != 99").rows == 300


@pytest.mark.parametrize("threshold", ["3", np.nan, np.inf, None])
def test_thresholds_are_finite_numbers(gapped, threshold):
    model, _ = gapped
    with pytest.raises(DomainError, match="finite number"):
        model.sufficient({"k": 1}, threshold)
    with pytest.raises(DomainError, match="finite number"):
        model.stability({"k": 1}, threshold)


def test_a_comparison_with_nobody_says_so(gapped):
    model, _ = gapped
    said = str(model.compare("k < 1 and k > 2", "k == 1"))
    assert "probability zero where k < 1 and k > 2" in said
    assert "probability nan" not in said
    assert "the difference is" not in said


def test_an_impossible_group_has_no_empty_lines():
    x = np.arange(40.0)
    model = CircuitRegressor(density=ChowLiu(), max_splits=0, calibration_rows=0).fit({"x": x}, x)
    text = str(model.ask("x > 100"))
    assert "quantile" not in text
    assert "Exact" not in text
    assert "no such value in the training data" in text
    assert not [line for line in text.splitlines() if line.endswith("deviation")]


def test_a_remark_says_where_the_model_is_off():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 400))
    y = np.where((a == 1) & (b == 1), -3.0, 3.0 * (a + b)) + rng.normal(size=400)
    additive = CircuitRegressor(density=ChowLiu(), max_splits=0, calibration_rows=0)
    model = additive.fit({"a": a, "b": b}, y)
    off = model.ask(a=1, b=1)
    rows = (a == 1) & (b == 1)
    said = [remark for remark in off.remarks if remark.endswith("the model is off there.")]
    assert f"{y[rows].mean():.5g}" in said[0]
    assert not model.ask().remarks
    right = CircuitRegressor(density=ChowLiu(), calibration_rows=0).fit({"a": a, "b": b}, y)
    assert not right.ask(a=1, b=1).remarks


def test_the_first_sentence_on_exactness_is_about_the_mean_that_is_printed():
    rng = np.random.default_rng(0)
    X = {name: rng.normal(size=300) for name in "abcdef"}
    frame = pd.DataFrame(X)
    y = frame.sum(axis=1) + rng.normal(size=300) > 0
    many = GradientBoostingClassifier(n_estimators=60, max_depth=4, random_state=0).fit(frame, y)
    expected = ExpectedPredictor(many, ChowLiu(), rtol=0.05).fit(frame)
    group = expected.ask("a > 0")
    assert group.numerical_error > 0
    assert first_sentence(group.exactness).startswith("Sampled")
    linear = LogisticRegression().fit(frame, y)
    group = ExpectedPredictor(linear, ChowLiu()).fit(frame).ask("a > 0")
    assert first_sentence(group.exactness).startswith("Within a bound")


def test_the_interval_of_a_difference_of_probabilities_stays_within_one():
    x = np.repeat([0, 1], 12)
    options = {"density": ChowLiu(), "max_splits": 0, "random_state": 0}
    model = CircuitClassifier(**options).fit({"x": x, "z": np.arange(24) % 5}, x == 1)
    both = model.compare("x == 1", "x == 0")
    wide = replace(both, standard_error=1.0)
    assert wide.interval[1] == 1.0
    assert replace(both, difference=-0.9, standard_error=1.0).interval[0] == -1.0
