"""Calibrated quantiles, intervals and distributions: one thing, right in each tail."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from expecta import ChowLiu, CircuitRegressor, Encoder, ExpectedPredictor
from expecta.estimators.calibration import Calibration, Place
from expecta.expected.calibrated_distribution import (
    FAR,
    CalibratedDistribution,
    ScoreDistribution,
    scores,
)
from expecta.expected.row_distributions import NormalDistribution
from expecta.expected.target_values import TargetValues

LEVELS = np.array([0.05, 0.1, 0.5, 0.9, 0.95])


def draw(n, seed):
    """Residuals that are skewed, and columns that tell of one another."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[:, 1] += X[:, 0]
    return X, X[:, 0] + 2.0 * X[:, 2] + 2.0 * rng.exponential(size=n) ** 2, rng


def circuit():
    model = CircuitRegressor(
        density=ChowLiu(encoder=Encoder(max_bins=8)),
        max_bins=16,
        max_splits=4,
        penalties=(3.0,),
        calibration_rows=2400,
        random_state=0,
    )
    return model.fit(*draw(1200, 0)[:2])


def wrapped():
    X, y, _ = draw(1400, 0)
    linear = LinearRegression().fit(X[:200], y[:200])
    return ExpectedPredictor(linear, ChowLiu()).fit(X[:200]).calibrate(X[200:], y[200:])


MAKERS = {"circuit": circuit, "wrapped": wrapped}


@pytest.fixture(scope="module", params=MAKERS)
def model(request):
    return MAKERS[request.param]()


@pytest.fixture(scope="module")
def rows():
    X, _, rng = draw(60, 5)
    return np.where(np.argsort(rng.random(X.shape), axis=1) < np.arange(60)[:, None] % 4, np.nan, X)


def calibration_of(missing, score, row):
    """Scores of rows whose predicted distributions are all alike."""
    zero = np.zeros(len(score))
    return Calibration(missing, score, row, zero, zero)


def of_scores(calibration, number):
    alike = calibration.alike(number)
    return alike.of_scores(int(alike.cells(Place(np.zeros(1), np.zeros(1)))[0]))


# -- coverage -------------------------------------------------------------------------


@pytest.mark.parametrize("unknown", range(4))
def test_each_tail_has_its_share_where_residuals_are_skewed(model, unknown):
    X, y, rng = draw(2000, 1)
    X[np.argsort(rng.random(X.shape), axis=1) < unknown] = np.nan
    share = np.mean(y[:, None] <= model.predict_quantiles(X, LEVELS), axis=0)
    error = np.sqrt(LEVELS * (1 - LEVELS) * (1 / 2000 + 1 / 800))  # of rows here, and calibrated on
    assert np.all(np.abs(share - LEVELS) < 4 * error), share
    low, high = model.predict_interval(X, 0.9).T
    assert np.mean(y < low) == pytest.approx(0.05, abs=4 * error[0])
    assert np.mean(y > high) == pytest.approx(0.05, abs=4 * error[-1])


def test_levels_hold_in_finite_samples():
    """With n rows, y is below the quantile k/(n+1) with just that probability."""
    rng = np.random.default_rng(0)
    n, q = 19, np.array([0.05, 0.3, 0.5, 0.95])
    below = np.zeros(len(q))
    for _ in range(4000):
        score = np.sort(rng.exponential(size=n + 1))
        new = rng.integers(n + 1)
        rest = np.delete(score, new)
        missing = np.zeros(n, np.int64)
        scores = of_scores(calibration_of(missing, rest, np.arange(n)), 0)
        below += score[new] <= scores.quantile(q)
    np.testing.assert_allclose(below / 4000, q, atol=4 * 0.5 / np.sqrt(4000))


def widening(n, seed):
    """Noise that grows with a column, and a target that is never negative."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    mean = 6.0 + X[:, 0] + X[:, 1]
    return X, np.abs(mean + np.exp(0.8 * X[:, 2]) * rng.normal(size=n))


@pytest.fixture(scope="module", params=["circuit", "linear", "booster"])
def uneven(request):
    X, y = widening(1500, 0)
    if request.param == "circuit":
        return CircuitRegressor(density=ChowLiu(encoder=Encoder(max_bins=12)), max_splits=4).fit(
            X, y
        )
    model = LinearRegression()
    if request.param == "booster":
        model = HistGradientBoostingRegressor(max_iter=20, max_leaf_nodes=6, random_state=0)
    return (
        ExpectedPredictor(model.fit(X[:600], y[:600]), ChowLiu()).fit(X).calibrate(X[600:], y[600:])
    )


@pytest.mark.parametrize("unknown", [(), (2,), (0, 1)])
def test_intervals_hold_where_the_noise_is_narrow_and_where_it_is_wide(uneven, unknown):
    assert uneven.noise_variance_ is not None
    X, y = widening(4000, 1)
    H = X.copy()
    H[:, list(unknown)] = np.nan
    low, high = uneven.predict_interval(H, 0.9).T
    assert np.all(low >= 0)
    inside = (low <= y) & (y <= high)
    for part in np.array_split(np.argsort(X[:, 0] if 2 in unknown else X[:, 2]), 4):
        assert inside[part].mean() == pytest.approx(0.9, abs=0.1)  # noise of one size: 0.6 to 1
    noise = uneven.predict_noise(H)
    assert np.all(np.isfinite(noise) & (noise > 0))
    if 2 not in unknown:
        assert np.corrcoef(np.log(noise), X[:, 2])[0, 1] > 0.9
    elif not unknown:
        assert np.mean(noise**2) == pytest.approx(uneven.noise_**2, rel=0.15)


def test_noise_by_inputs_survives_a_file_and_a_second_calibration(uneven, tmp_path):
    X, y = widening(90, 2)
    X[::3, 2] = np.nan
    uneven.save(tmp_path / "model")
    again = type(uneven).load(tmp_path / "model")
    np.testing.assert_allclose(again.predict_interval(X), uneven.predict_interval(X), rtol=1e-9)
    np.testing.assert_allclose(again.predict_noise(X), uneven.predict_noise(X), rtol=1e-9)
    before = again.predict_noise(X)
    again.calibrate(X, 6.0 + 3.0 * (y - 6.0))  # few rows: the shape stays, the size does not
    ratio = again.predict_noise(X) / before
    assert np.ptp(ratio) < 1e-9
    assert 1.5 < ratio[0] < 10


def test_noise_of_one_size_where_rows_show_no_more(model):
    assert model.noise_variance_ is None
    X, _, _ = draw(5, 9)
    np.testing.assert_array_equal(model.predict_noise(X), np.full(5, model.noise_))


# -- one distribution -----------------------------------------------------------------


def test_quantiles_intervals_and_the_distribution_are_one(model, rows):
    q = np.array([0.01, 0.05, 0.3, 0.5, 0.7, 0.95, 0.99])
    quantiles = model.predict_quantiles(rows, q)
    assert quantiles.shape == (60, 7)
    assert np.all(np.diff(quantiles, axis=1) >= 0)
    interval = model.predict_interval(rows, 0.9)
    np.testing.assert_array_equal(interval, quantiles[:, [1, 5]])
    distribution = model.predict_distribution(rows)
    np.testing.assert_array_equal(distribution.quantile(q), quantiles)
    np.testing.assert_array_equal(distribution.quantile(0.5), quantiles[:, 3])
    # a score is taken for one that is 1e-9 larger: where two held-out scores are 7e-7 apart, as
    # some are here, that is 3e-6 of their levels; below the level a cdf never is
    reached = distribution.cdf(quantiles)
    np.testing.assert_allclose(reached, np.tile(q, (60, 1)), atol=1e-5)
    assert np.all(reached >= q - 1e-9)
    np.testing.assert_allclose(distribution.above(3.0), 1 - distribution.cdf(3.0))
    np.testing.assert_array_equal(distribution.interval(0.9), interval.T)
    # answers do not depend on what else is asked
    np.testing.assert_allclose(model.predict_quantiles(rows[:3], q), quantiles[:3], rtol=1e-9)


def test_densities_are_slopes_of_the_cdf(model, rows):
    distribution = model.predict_distribution(rows[:8])
    grid = np.linspace(-30.0, 250.0, 3_001)
    density = distribution.density(grid)
    assert np.all(density >= 0)
    np.testing.assert_allclose(trapezoid(density, grid, axis=1), 1.0, atol=0.005)
    mass = trapezoid(density[:, grid <= 10.0], grid[grid <= 10.0], axis=1)
    np.testing.assert_allclose(mass, distribution.cdf(10.0), atol=0.05)  # as wide as its window


def test_cdf_and_quantile_are_monotone_without_end(model, rows):
    distribution = model.predict_distribution(rows)
    levels = np.concatenate([[0.0], np.logspace(-12, -0.4, 60), np.linspace(0.4, 1, 60)])
    assert np.all(np.diff(distribution.quantile(levels), axis=1) >= 0)
    cdf = distribution.cdf(np.linspace(-300, 1000, 300))
    assert np.all(np.diff(cdf, axis=1) >= 0)
    np.testing.assert_allclose(cdf[:, [0, -1]], np.tile([0.0, 1.0], (60, 1)), atol=1e-4)


def test_far_scores_are_finite_and_come_back():
    base = NormalDistribution(np.array([0.0, 10.0]), np.array([1.0, 2.0]))
    y = np.array([[-1e6, -1.0, 50.0], [10.0, 16.5, 1e9]])
    z = (y - [[0.0], [10.0]]) / [[1.0], [2.0]]
    np.testing.assert_allclose(scores(base, y), z, rtol=1e-9)  # of a normal: its own units
    many = ScoreDistribution(np.linspace(-50.0, 50.0, 99), np.arange(1, 100) / 100.0, 99.0)
    calibrated = CalibratedDistribution(base, [many], np.zeros(2, np.int64))
    q = np.array([0.02, 0.5, 0.9])
    assert abs(many.quantile(q)[0]) > FAR
    quantiles = calibrated.quantile(q)
    np.testing.assert_allclose(calibrated.cdf(quantiles), [q, q], atol=1e-9)
    np.testing.assert_allclose(quantiles[0], many.quantile(q), atol=1e-9)


def test_scores_of_a_right_model_change_nothing():
    level = np.arange(1, 2000) / 2000
    right = ScoreDistribution(norm.ppf(level), level, 1999.0)
    q = np.array([1e-6, 1e-3, 0.2, 0.5, 0.99, 1 - 1e-6])
    np.testing.assert_allclose(right.quantile(q), norm.ppf(q), atol=1e-3)
    np.testing.assert_allclose(right.cdf(norm.ppf(q)), q, atol=1e-5)
    np.testing.assert_allclose(right.density(np.array([0.0])), norm.pdf(0.0), rtol=0.02)


# -- targets that are not every number ------------------------------------------------

DISCRETE = {
    "counts": lambda z, rng: rng.poisson(np.exp(0.8 * z + 1.0)).astype(float),
    "whole": lambda z, rng: np.rint(3.0 * z + 3.0 * rng.normal(size=len(z))),
    "few": lambda z, rng: np.clip(np.rint(2.0 * z + rng.normal(size=len(z))) / 2, -1.0, 2.0),
}


@pytest.mark.parametrize("kind", DISCRETE)
@pytest.mark.parametrize("own", [True, False])
def test_quantiles_of_a_discrete_target_are_values_of_it(kind, own, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2900, 3))
    X[:, 1] += X[:, 0]
    y = DISCRETE[kind](X[:, 0], rng)
    if own:
        density = ChowLiu(encoder=Encoder(max_bins=8))
        model = CircuitRegressor(
            density=density, max_bins=16, max_splits=4, penalties=(3.0,), calibration_rows=2400
        ).fit(X[:1400], y[:1400])
    else:
        linear = LinearRegression().fit(X[:200], y[:200])
        model = ExpectedPredictor(linear, ChowLiu()).fit(X[:200])
        model.calibrate(X[200:1400], y[200:1400])
    assert model.calibration_.values.kind == kind
    model.save(tmp_path / "model.expecta")
    X, y = X[1400:], y[1400:]
    for unknown in (0, 2, 3):
        rows = np.where(np.argsort(rng.random(X.shape), axis=1) < unknown, np.nan, X)
        quantiles = model.predict_quantiles(rows, LEVELS)
        assert np.all(np.isin(quantiles, y) | (np.rint(quantiles) == quantiles))
        assert kind != "few" or np.all(np.isin(quantiles, y))
        assert kind != "counts" or np.all(quantiles >= 0)
        # four standard errors of 1,200 rows to calibrate on and 1,500 to count
        loose = 4 * np.sqrt(LEVELS * (1 - LEVELS) * (1 / 1200 + 1 / 1500))
        assert np.all(np.mean(y[:, None] <= quantiles, axis=0) >= LEVELS - loose)
        assert np.all(np.mean(y[:, None] < quantiles, axis=0) <= LEVELS + loose)
        # the distribution is one of values: its cdf steps up at them
        distribution = model.predict_distribution(rows[:50])
        at = distribution.quantile(LEVELS)
        np.testing.assert_array_equal(at, quantiles[:50])
        assert np.all(distribution.cdf(at) >= LEVELS - 1e-6)
        assert np.all(distribution.cdf(np.nextafter(at, -np.inf)) <= LEVELS + 1e-6)
        np.testing.assert_array_equal(distribution.cdf(at), distribution.cdf(at + 0.3))
    loaded = type(model).load(tmp_path / "model.expecta")
    np.testing.assert_array_equal(loaded.predict_quantiles(rows, LEVELS), quantiles)


def test_what_a_target_is():
    rng = np.random.default_rng(0)
    counts = rng.poisson(30.0, 200).astype(float)
    kinds = {
        "numbers": [rng.normal(size=200), np.array([0.5, 1.5]), 0.5 * counts - 16.0],
        "positive": [0.5 * counts, rng.exponential(size=20)],
        "counts": [counts, np.array([1.0, 2.0])],
        "whole": [counts - 25.0],
        "few": [counts > 30.0, np.full(5, 0.1), np.minimum(np.abs(counts - 30.0), 3.0) / 7.0],
    }
    for kind, targets in kinds.items():
        assert [TargetValues.of(np.asarray(one, float)).kind for one in targets] == [kind] * len(
            targets
        )
    few = TargetValues("few", np.array([0.0, 1.0, 4.0]))
    y = np.array([-9.0, 0.5, 0.6, 2.5, 2.6, np.inf, np.nan])
    np.testing.assert_array_equal(few.nearest(y), [0.0, 0.0, 1.0, 1.0, 4.0, 4.0, np.nan])
    c = np.array([-0.1, 0.0, 0.9, 1.0, 4.0])
    np.testing.assert_array_equal(few.border(c), [-np.inf, 0.5, 0.5, 2.5, np.inf])


# -- which rows count -----------------------------------------------------------------


def test_a_number_of_unknown_columns_with_many_rows_does_not_drown_its_neighbours():
    missing = np.repeat([0, 1, 2], [5000, 100, 100])
    score = np.linspace(0, 1, len(missing)) * (missing > 0)  # complete rows are all at 0
    few = calibration_of(missing, score, np.arange(len(missing)))
    middle = [of_scores(few, number).quantile(np.array([0.5]))[0] for number in (0, 1)]
    assert middle[0] == 0.0
    assert middle[1] > 0.9


def test_a_row_with_columns_hidden_in_many_ways_is_one_row():
    row = np.repeat(np.arange(9), 50)
    copies = calibration_of(np.ones(len(row), np.int64), np.linspace(0.1, 0.9, 9)[row], row)
    scores = of_scores(copies, 1)
    assert scores.least == pytest.approx(0.1)  # ten rows, the new one among them
    np.testing.assert_allclose(scores.quantile(np.array([0.1, 0.5, 0.9])), [0.1, 0.5, 0.9])


def test_rows_that_count_less_can_tell_less():
    missing = np.repeat([0, 1], [100, 10])
    score = np.sort(np.random.default_rng(0).normal(size=110))
    calibration = calibration_of(missing, score, missing)
    assert of_scores(calibration, 1).least > 1 / 17


def test_where_nothing_is_known_its_own_rows_rule():
    missing, row = np.repeat([3, 4], 60), np.tile(np.arange(60), 2)
    calibration = calibration_of(missing, np.where(missing == 4, 0.9, 0.1), row)
    middle = [of_scores(calibration, number).quantile(np.array([0.5]))[0] for number in (3, 4)]
    assert middle == [0.1, 0.9]


# -- before calibration ---------------------------------------------------------------


@pytest.mark.parametrize("verb", ["predict_interval", "predict_quantiles", "predict_distribution"])
def test_what_to_do_before_calibration(verb):
    X, y, _ = draw(100, 0)
    expected = ExpectedPredictor(LinearRegression().fit(X, y), ChowLiu()).fit(X)
    with pytest.raises(NotFittedError, match=r"calibrate\(X, y\) first.*noise="):
        getattr(expected, verb)(X)
    assert expected.predict_distribution(X, noise=1.0).quantile(0.5).shape == (100,)


def test_the_explained_variance_is_that_of_the_rows_held_out(tmp_path):
    """Of many rows a fifth is held out: an outlier that is not in it must not seem explained."""
    rng = np.random.default_rng(0)
    X = {"a": rng.normal(size=5200)}
    y = rng.normal(size=5200)
    y[0] = 1000.0
    options = {"density": ChowLiu(), "max_splits": 0, "penalties": 3.0, "target_transform": None}
    model = CircuitRegressor(**options, calibration_rows=0, random_state=0).fit(X, y)
    assert model.noise_ < 2.0 < np.std(y)  # the outlier was learned from
    assert -0.2 < model.explained_variance_ < 0.02
    model.save(tmp_path / "m")
    loaded = CircuitRegressor.load(tmp_path / "m")
    assert loaded.explained_variance_ == model.explained_variance_
    rows = slice(1, 500)
    y = y[rows] + 3.0 * X["a"][rows]
    model.calibrate({"a": X["a"][rows]}, y)
    assert model.target_spread_ == pytest.approx(np.std(y))
