"""Means of groups by density and rows together, against simulation and by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

import worlds
from expecta import ChowLiu, CircuitRegressor, DomainError, Encoder, ExpectedPredictor, Independent
from expecta.ask.credibility import (
    BIAS_ROWS,
    BORROWED_ROWS,
    Credibility,
    RowMoments,
    difference_errors,
)
from expecta.ask.source_means import SourceMeans
from expecta.ask.training_outputs import TrainingOutputs, credibility_of
from expecta.ask.typical_error import CodedOutputs, learn_credibility


@pytest.fixture(scope="module")
def model():
    return worlds.regressor()


def test_moments_of_sums():
    rng = np.random.default_rng(0)
    weight, y = rng.uniform(0.5, 2, 40), rng.normal(3, 2, 40)
    sums = [np.array([part.sum()]) for part in (weight, weight**2, weight * y, weight * y**2)]
    moments = RowMoments.from_sums(*sums)
    assert moments.mean[0] == pytest.approx(np.average(y, weights=weight))
    about = np.average((y - moments.mean[0]) ** 2, weights=weight)
    size = weight.sum() ** 2 / (weight @ weight)
    assert moments.variance[0] == pytest.approx(about * size / (size - 1))
    assert moments.error[0] == pytest.approx(np.sqrt(moments.variance[0] / size))
    none = RowMoments.from_sums(*np.zeros((4, 1)))
    assert none.size[0] == none.variance[0] == 0
    assert np.isnan([none.mean[0], none.error[0]]).all()


@pytest.mark.parametrize("n", [3.0, 30.0, 1000.0])
@pytest.mark.parametrize("bias", [0.1, 1.0])
def test_what_is_promised_holds_where_the_assumptions_do(n, bias):
    rng, m = np.random.default_rng(1), 100_000
    chance, learned = 1 / n, 1 / (n + BORROWED_ROWS)
    u = rng.normal(0, np.sqrt(learned), m)  # what the density learned of the rows' chance
    e = u + rng.normal(0, np.sqrt(chance - learned), m)
    b = np.sqrt(bias / (n + BIAS_ROWS)) * rng.standard_t(4, m)
    moments = RowMoments(np.full(m, n), e, np.ones(m))
    both = Credibility(bias, 1.0).combine(b + u, np.ones(m), moments)
    mse = np.mean(both.mean**2)
    assert mse <= 1.01 * min(np.mean((b + u) ** 2), np.mean(e**2))
    assert np.mean(both.error**2) == pytest.approx(mse, rel=0.1)
    assert np.mean(np.abs(both.mean) < 1.96 * both.error) == pytest.approx(0.95, abs=0.01)


def test_limits():
    one = np.ones(1)
    rows = RowMoments(20 * one, 3 * one, one)
    trusted, distrusted = (Credibility(bias, 1.0).combine(one, one, rows) for bias in (1e-9, 1e9))
    assert trusted.mean[0] == pytest.approx(1.0, abs=1e-6)
    assert distrusted.mean[0] == pytest.approx(3.0, abs=1e-6)
    assert distrusted.error[0] == pytest.approx(np.sqrt(1 / 20), rel=1e-3)
    nothing = RowMoments(0 * one, np.nan * one, 0 * one)
    alone = Credibility(0.5, 1.0).combine(one, one, nothing)
    assert (alone.mean[0], alone.weight[0]) == (1.0, 0.0)
    assert alone.error[0] == alone.density_error[0] > 0
    known = Credibility(0.5, 1.0).combine(one, 0 * one, RowMoments(9 * one, one, 0 * one))
    assert (known.mean[0], known.error[0]) == (1.0, 0.0)  # nothing varies


def test_errors_of_differences():
    one = np.ones(1)
    parts = 4 * one, one, 9 * one, 2 * one
    assert difference_errors(*parts, 0 * one, 0.0)[0] == pytest.approx(np.sqrt(13))
    assert difference_errors(*parts, 0 * one, 0.5)[0] < np.sqrt(13)
    assert difference_errors(4 * one, one, 4 * one, one, one, 0.2)[0] == 0  # the same group


def _planted(shift, seed=0):
    """Return rows and draws of three columns, where the output is off in one group of draws."""
    rng = np.random.default_rng(seed)
    tables = []
    for n, by in ((2000, 0.0), (20_000, shift)):
        codes = rng.integers(0, 6, (n, 3))
        output = codes[:, 0] + rng.normal(size=n) + by * (codes[:, 1] - 2.5)
        tables.append(CodedOutputs(codes, output, np.ones(n)))
    return learn_credibility(*tables, [True, False, True], 2000)


def test_a_density_that_is_off_is_learned_to_be():
    right, wrong = _planted(0.0), _planted(1.0)
    assert 2 * right.bias < wrong.bias > 1.0
    assert right.spread == pytest.approx(1.0, abs=0.1)
    assert abs(wrong.shared) <= 0.5


def test_means_of_both(model):
    subject = model.expected_output()
    inside = worlds.mixed()[0]["kind"] == "x"
    both, rows, density = (
        model.ask(kind="x", population=one) for one in ("both", "rows", "density")
    )
    outputs = TrainingOutputs.of(subject).outputs
    np.testing.assert_allclose(outputs, model.predict(worlds.mixed()[0]))
    assert rows.mean == both.rows_output == pytest.approx(outputs[inside].mean())
    assert rows.standard_error == pytest.approx(outputs[inside].std(ddof=1) / inside.sum() ** 0.5)
    assert density.mean == both.density_mean == density.density_mean
    assert density.standard_error == both.density_error > both.standard_error
    weight = both.rows_weight
    assert 0 < weight < 1
    assert both.mean == pytest.approx(density.mean + weight * (rows.mean - density.mean))
    assert both.interval == pytest.approx(
        (both.mean - 1.96 * both.standard_error, both.mean + 1.96 * both.standard_error), rel=1e-4
    )
    said = both.to_dict()
    assert json.loads(json.dumps(said))["standard_error"] == both.standard_error
    assert "probably between" in str(both)
    with pytest.raises(DomainError, match="did you mean 'rows'"):
        model.ask(population="row")


def test_a_group_without_rows(model):
    queries = [f"age == {age} and size > 3" for age in range(18, 65)]
    nobody = next(query for query in queries if model.ask(query).rows == 0)
    group = model.ask(nobody)
    assert group.rows == 0
    assert group.mean == group.density_mean
    assert group.standard_error == group.density_error > 0
    assert "by the density alone" in str(group)
    assert np.isnan(model.ask(nobody, population="rows").mean)


@pytest.mark.parametrize("given", [None, "size > 1"])
def test_parts_agree_with_the_whole(model, given):
    whole = model.ask(given).mean
    for answer in (
        model.split("kind", given=given),
        model.split("kind", "age", given=given, bins=3),
        model.dependence("age", given=given),
    ):
        assert answer.share @ answer.mean == pytest.approx(whole, rel=1e-9)
        assert np.all(answer.standard_error > 0)


def test_parts_that_agree_with_the_whole_are_shares():
    mean, error = np.array([0.02, 0.3, 0.99]), np.array([0.1, 0.02, 0.1])
    parts = SourceMeans(mean, error, *[np.zeros(3)] * 7, 0.0)
    share = np.array([0.3, 0.4, 0.3])
    for whole in (0.3, 0.42, 0.6):
        agreed = parts.agree_with_whole(share, whole, is_share=True).mean
        assert share @ agreed == pytest.approx(whole)
        assert np.all((agreed >= 0) & (agreed <= 1))
    free = parts.agree_with_whole(share, 0.3, is_share=False).mean
    assert share @ free == pytest.approx(0.3)
    assert free[0] < 0


def test_comparisons(model):
    found = model.compare("kind == 'x'", "kind == 'y'")
    assert found.difference == found.a.mean - found.b.mean
    apart = np.hypot(found.a.standard_error, found.b.standard_error)
    shared = credibility_of(model.expected_output()).shared
    assert found.standard_error == pytest.approx(apart, rel=0.6)
    assert (found.standard_error < apart) == (shared > 0)
    same = model.compare("kind == 'x'", "kind == 'x'")
    assert (same.difference, same.standard_error) == (0.0, pytest.approx(0.0, abs=1e-9))
    nested = model.compare("kind == 'x'", None)
    assert nested.standard_error < nested.a.standard_error
    rows = model.compare("kind == 'x'", "kind == 'y'", population="rows")
    assert rows.standard_error == pytest.approx(np.hypot(rows.a.rows_error, rows.b.rows_error))


def test_a_disagreement_is_said():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 2000))
    table = {"a": a, "b": b, "c": np.where(a == b, "same", "other")}
    # an independent density: E[output | c] is the same for both
    density = Independent(encoder=Encoder(max_bins=4))
    model = CircuitRegressor(density=density, calibration_rows=0, random_state=0)
    model.fit(table, 10.0 * (a == b) + rng.normal(size=2000))
    model_alone = model.ask("a == 1 and b == 1")
    assert any("disagree beyond chance" in remark for remark in model_alone.remarks)
    assert model_alone.rows_weight > 0.8
    assert model_alone.rows_mean.low < model_alone.mean < model_alone.rows_mean.high
    split = model.split("a", "b")
    assert any("disagree beyond chance in 4 of 4 groups" in remark for remark in split.remarks)


def test_files_without_rows_answer_alike(model, tmp_path):
    model.save(tmp_path / "model.expecta")
    bare = CircuitRegressor.load(tmp_path / "model.expecta")
    assert bare.training_rows_ is None
    for query in (None, "kind == 'x'"):
        ours, theirs = model.ask(query), bare.ask(query)
        for name in ("mean", "standard_error", "density_mean", "rows_output", "rows_error"):
            assert getattr(theirs, name) == pytest.approx(getattr(ours, name), rel=1e-9)
    three = bare.ask("kind == 'x' and age > 30 and size > 2")
    assert three.mean == three.density_mean
    assert three.standard_error == three.density_error > 0
    assert np.isnan(three.rows_output)


def test_outputs_of_rows_with_unknown_cells():
    table, target, encoder = worlds.mixed()
    table = {name: np.array(cells, object) for name, cells in table.items()}
    table["age"][::3] = None
    model = CircuitRegressor(density=ChowLiu(), encoder=encoder, max_bins=4, random_state=0)
    model.fit(table, target)
    outputs = TrainingOutputs.of(model.expected_output()).outputs
    np.testing.assert_allclose(outputs, model.predict(table), rtol=1e-9)


def test_models_that_are_sampled():
    X = np.random.default_rng(0).normal(size=(240, 3))
    X[::4, 1] = np.nan
    model = ExpectedPredictor(worlds.Wiggle(), ChowLiu(), max_samples=500).fit(X)
    group = model.ask("x0 > 0")
    assert group.rows == np.count_nonzero(X[:, 0] > 0)
    assert np.isfinite([group.mean, group.standard_error, group.rows_output]).all()
    assert group.standard_error < group.rows_error


def test_without_training_rows():
    from expecta import Pair, Vtree
    from expecta.ask.circuit_model import CircuitModel
    from expecta.circuits import independent, linear
    from expecta.tables import BooleanEncoder

    vtree = Vtree.balanced(2)
    p = independent(vtree, [[0.3, 0.7], [0.8, 0.2]])
    encoder = BooleanEncoder().fit({"smoker": ["no", "yes", "no"]})
    model = CircuitModel(Pair(p, linear(vtree, [[0.0, 1.0], [0.0, 10.0]])), encoder, "cost")
    group = model.ask(smoker="yes")
    assert group.mean == group.density_mean == 10.0
    assert np.isnan(group.standard_error)
    with pytest.raises(DomainError, match="has no training rows"):
        model.ask(smoker="yes", population="rows")
