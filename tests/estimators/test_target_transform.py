"""A target on a logarithmic scale: means, spreads and distributions against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from expecta import ChowLiu, CircuitRegressor, DomainError, Encoder

N = 700
RNG = np.random.default_rng(5)
X = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.choice(list("xyz"), N)})
X["c"] = 0.8 * X["a"] + RNG.normal(size=N)
MIDDLE = 0.7 * X["a"] + (X["b"] == "x") - 0.3 * X["c"]
SIZE = np.where(X["b"] == "y", 0.7, 0.25)
Y = np.exp(MIDDLE + SIZE * RNG.normal(size=N))
HIDDEN = X.iloc[:12].mask(np.random.default_rng(1).random((12, 3)) < 0.5)
SMALL = {
    "density": ChowLiu(encoder=Encoder(max_bins=4)),
    "max_bins": 5,
    "max_splits": 3,
    "penalties": (3.0,),
}


@pytest.fixture(scope="module")
def model():
    return CircuitRegressor(**SMALL, target_transform="log").fit(X, Y)


@pytest.fixture(scope="module")
def shifted():
    """A target that may be negative, and skewed."""
    y = MIDDLE + 2.0 * np.random.default_rng(6).exponential(size=N) ** 2
    return CircuitRegressor(**SMALL, target_transform="auto").fit(X, y), y.to_numpy()


class Cases:
    """All complete rows that go with what is known of one row, and their probabilities."""

    def __init__(self, model, known):
        codes = np.array(list(product(*map(range, model.encoder_.cardinalities_))), np.int32)
        codes = codes[np.all((known < 0) | (known == codes), axis=1)]
        weight = np.exp(model.refined_.circuit.log_prob(codes))
        self.weight = weight / weight.sum()
        g = model.circuit_(codes)
        self.output = model.target_scale_.origin + np.exp(g)
        self.variance = np.full(len(g), model.log_noise_**2)
        if model.noise_variance_ is not None:
            self.variance = model.noise_variance_.std(codes) ** 2
        excess = model.mean_excess_
        self.middle = g - excess.unit**2 * excess(codes)
        self.noise = (np.exp(g) ** 2) * np.expm1(self.variance)

    def mean(self, values):
        return float(self.weight @ values)


def enumerated(model, rows):
    return [Cases(model, known) for known in model.encoder_.codes(model.encoder_.read(rows))]


def test_predictions_agree_with_enumeration(model, shifted):
    for one in (model, shifted[0]):
        cases = enumerated(one, HIDDEN)
        mean, std = one.predict(HIDDEN, return_std=True)
        truth = np.array([case.mean(case.output) for case in cases])
        np.testing.assert_allclose(mean, truth, rtol=1e-9)
        spread = [case.mean((case.output - m) ** 2) for case, m in zip(cases, truth, strict=True)]
        np.testing.assert_allclose(std, np.sqrt(spread), rtol=1e-9, atol=1e-9)
        noise = np.sqrt([case.mean(case.noise) for case in cases])
        np.testing.assert_allclose(one.predict_noise(HIDDEN), noise, rtol=1e-9)
        np.testing.assert_array_equal(one.predict(HIDDEN), mean)
        for i in range(len(HIDDEN)):
            alone = one.predict(HIDDEN[i : i + 1], return_std=True)
            np.testing.assert_array_equal(alone[0], mean[i : i + 1])
            np.testing.assert_allclose(alone[1], std[i : i + 1], rtol=1e-10)
        assert one.predict(HIDDEN, return_error=True)[1].max() == 0.0


def test_the_distribution_agrees_with_enumeration(model, shifted):
    """Without calibration: log-normal given all inputs, mixed over what is unknown."""
    for one in (model, shifted[0]):
        bare = CircuitRegressor(**SMALL, calibration_rows=0, target_transform="auto")
        bare.fit(X, Y if one is model else shifted[1])
        assert bare.target_scale_.origin is not None
        distribution = bare.predict_distribution(HIDDEN)
        at = bare.target_scale_.origin + np.array([0.01, 0.3, 1.0, 2.0, 7.0])
        truth = np.array(
            [
                [case.mean(norm.cdf((bare.target_scale_.margin(c) - case.middle) / sd)) for c in at]
                for case in enumerated(bare, HIDDEN)
                for sd in [np.sqrt(case.variance)]
            ]
        )
        np.testing.assert_allclose(distribution.cdf(at), truth, atol=1e-9)
        below = distribution.cdf(bare.target_scale_.origin - np.array([0.0, 1.0, np.inf]))
        assert np.all(below == 0.0)
        levels = np.array([0.05, 0.5, 0.95])
        quantile = distribution.quantile(levels)
        np.testing.assert_allclose(distribution.cdf(quantile), np.tile(levels, (12, 1)), atol=1e-9)
        step = 1e-4 * quantile[:, 1]
        sides = distribution.cdf(quantile[:, [1]] + step[:, None] * np.array([-1.0, 1.0]))
        slope = (sides[:, 1] - sides[:, 0]) / (2 * step)
        np.testing.assert_allclose(distribution.density(quantile[:, [1]])[:, 0], slope, rtol=1e-4)


def test_groups_agree_with_enumeration(model, shifted):
    for one in (model, shifted[0]):
        cases = Cases(one, np.array([-1, one.encoder_.columns_[1].code("x"), -1]))
        group = one.ask("b == 'x'", population="density")
        mean = cases.mean(cases.output)
        assert group.mean == pytest.approx(mean, rel=1e-9)
        assert group.std == pytest.approx(np.sqrt(cases.mean((cases.output - mean) ** 2)), rel=1e-9)
        for level, value in group.quantiles.items():
            loose = 1e-9 + group.quantile_errors[level]
            assert cases.mean(cases.output <= value + loose) >= level - 1e-9
            assert cases.mean(cases.output < value - loose) <= level + 1e-9
        other = one.ask("b != 'x'", population="density")
        answer = one.compare("b == 'x'", "b != 'x'", population="density")
        assert answer.difference == pytest.approx(group.mean - other.mean, rel=1e-9)
        parts = one.split("b", population="density").to_frame()
        whole = one.ask(population="density")
        total = np.sum(parts["share"].to_numpy() * parts["mean"].to_numpy())
        assert total == pytest.approx(whole.mean, rel=1e-9)


def test_mean_and_median_are_those_of_y():
    """Of a log-normal y: g learned on log y alone would be off by half the variance."""
    rng = np.random.default_rng(2)
    n = 4000
    rows = pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(["low", "high"], n)})
    size = np.where(rows["b"] == "high", 0.9, 0.3)
    y = np.exp(0.5 * rows["a"] + size * rng.normal(size=n))
    model = CircuitRegressor(density=ChowLiu(), max_splits=2, penalties=(3.0,)).fit(rows, y)
    assert model.target_scale_.origin == 0.0
    new = pd.DataFrame({"a": [0.0, 0.0, np.nan, np.nan], "b": ["low", "high"] * 2})
    variance = np.array([0.3, 0.9, 0.3, 0.9]) ** 2 + np.array([0, 0, 0.25, 0.25])
    np.testing.assert_allclose(model.predict(new), np.exp(variance / 2), rtol=0.08)
    grid = pd.DataFrame({"a": np.linspace(-1, 1, 40), "b": ["high"] * 40})
    for truth, predicted in (
        (np.exp(0.405), model.predict(grid)),
        (1.0, model.predict_quantiles(grid, [0.5])[:, 0]),
    ):
        ratio = predicted / np.exp(0.5 * grid["a"]) / truth
        assert np.exp(np.log(ratio).mean()) == pytest.approx(1.0, abs=0.06)
    ends = model.predict_interval(new)
    truth = np.exp(np.outer(np.sqrt(variance), norm.ppf([0.05, 0.95])))
    np.testing.assert_allclose(ends, truth, rtol=0.3)
    assert model.noise_ == pytest.approx(np.std(y - model.predict(rows)), rel=0.1)


def test_the_scale_is_chosen_by_held_out_rows(shifted):
    rng = np.random.default_rng(3)
    normal = MIDDLE + 8.0 + 0.3 * rng.normal(size=N)
    assert CircuitRegressor(**SMALL).fit(X, normal).target_scale_.origin is None
    # skewed by its inputs alone: the noise is no share of y
    added = 9.0 + 25.0 * (X["b"] == "x") * (X["c"] > 1.0) + rng.normal(size=N)
    assert CircuitRegressor(**SMALL).fit(X, added).target_scale_.origin is None
    assert CircuitRegressor(**SMALL).fit(X, Y).target_scale_.origin == 0.0
    assert CircuitRegressor(**SMALL, target_transform=None).fit(X, Y).target_scale_.origin is None
    model, y = shifted
    assert model.target_scale_.origin < y.min()
    ends = model.predict_interval(HIDDEN, 0.999)
    assert np.all(ends[:, 0] >= model.target_scale_.origin)
    assert np.mean(model.predict(X)) == pytest.approx(y.mean(), rel=0.05)


def test_zeros_are_no_end_of_a_logarithmic_scale():
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    y = np.where(rng.random(600) < 0.2, 0.0, np.exp(x + 0.5 * rng.normal(size=600)))
    model = CircuitRegressor(density=ChowLiu(), random_state=0).fit({"x": x}, y)
    assert model.target_scale_.origin is None
    residual = y - model.predict({"x": x})
    assert np.sqrt(np.mean(model.predict_noise({"x": x}) ** 2)) < 1.5 * np.std(residual)


def test_what_a_logarithm_does_not_take():
    with pytest.raises(DomainError, match="has no logarithm"):
        CircuitRegressor(target_transform="log").fit(X, Y - 1.0)
    with pytest.raises(DomainError, match="target_transform is"):
        CircuitRegressor(target_transform="root").fit(X, Y)


def test_calibration_files_and_errors_of_the_fit(model, tmp_path):
    model.save(tmp_path / "model.expecta")
    loaded = CircuitRegressor.load(tmp_path / "model.expecta")
    for verb in ("predict", "predict_noise", "predict_interval", "predict_quantiles"):
        np.testing.assert_array_equal(getattr(loaded, verb)(HIDDEN), getattr(model, verb)(HIDDEN))
    assert loaded.get_params()["target_transform"] == "log"
    before = loaded.predict(HIDDEN)
    y = Y.copy()
    y[0] = -1.0  # below what the scale reaches: the least
    loaded.calibrate(X, y)
    np.testing.assert_array_equal(loaded.predict(HIDDEN), before)
    ends = loaded.predict_interval(X)
    assert 0.85 < np.mean((ends[:, 0] <= Y) & (ends[:, 1] >= Y)) < 0.95
    assert np.all(ends >= 0.0)
    with pytest.raises(DomainError, match="no y is above"):
        loaded.calibrate(X, -Y)
    _, error = model.predict(HIDDEN, return_error="fit")
    relative = error / model.predict(HIDDEN)
    assert np.all((relative > 0.001) & (relative < 0.5))
    output = model.predict_distribution(HIDDEN, noise=0)
    cases = enumerated(model, HIDDEN)
    truth = [case.mean(case.output <= 1.0) for case in cases]
    np.testing.assert_allclose(output.cdf(1.0), truth, atol=1e-9)


# -- values that have neighbours --------------------------------------------------------


@pytest.mark.parametrize("few", [True, False])
def test_probabilities_of_single_values_are_calibrated(few):
    """Half of all y are 0, whatever the inputs: normal noise alone would say a third."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(2000, 2))
    y = np.where(rng.random(2000) < 0.5, 0.0, 1.0 + rng.poisson(1.0 if few else 20.0, 2000))
    y = np.minimum(y, 5.0) if few else y
    density = ChowLiu(encoder=Encoder(max_bins=6))
    model = CircuitRegressor(density=density, max_bins=8, max_splits=0, penalties=(3.0,))
    model.fit(rows, y)
    for unknown in (0, 1, 2):
        asked = np.where(np.arange(2)[None] < unknown, np.nan, rng.normal(size=(300, 2)))
        distribution = model.predict_distribution(asked)
        for value in (0.0, float(np.quantile(y, 0.75))):
            truth = np.mean(y <= value)
            assert distribution.cdf(value).mean() == pytest.approx(truth, abs=0.05)


def test_intervals_of_whole_numbers_hold_what_they_promise():
    """Their ends belong to them: with quantiles for ends they would hold 96%."""
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(4000, 2))
    y = np.rint(6.0 + 1.0 * rows[:, 0] + 1.0 * rng.normal(size=4000))
    density = ChowLiu(encoder=Encoder(max_bins=8))
    model = CircuitRegressor(density=density, max_bins=32, max_splits=0, penalties=(3.0,))
    model.fit(rows[:2000], y[:2000])
    new, truth = rows[2000:], y[2000:]
    for unknown in (0, 1):
        asked = np.where(np.arange(2)[None] < unknown, np.nan, new)
        low, high = model.predict_interval(asked).T
        assert np.all((low <= high) & (low == np.rint(low)) & (high == np.rint(high)))
        held = np.mean((low <= truth) & (truth <= high))
        assert 0.88 < held < 0.94
        ends = model.predict_quantiles(asked, [0.05, 0.95])
        assert np.all((ends[:, 0] <= low) & (high <= ends[:, 1]))
        assert np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])) > held + 0.01
