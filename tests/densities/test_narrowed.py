"""Densities given intervals: draws, means and spreads are of the part of a bin that lies inside."""

from __future__ import annotations

import numpy as np
import pytest

from expecta import Encoder, Independent

RNG = np.random.default_rng(0)
TABLE = {"x": RNG.lognormal(0.0, 1.0, 3_000), "n": RNG.poisson(30.0, 3_000)}


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [
        ("x", 2.9, None),
        ("x", 0.4, 0.45),
        ("x", None, 1.0),
        ("n", 31, 31),
        ("n", 25, 41),
        ("n", 44, None),
    ],
)
@pytest.mark.parametrize("max_bins", [3, 32])
def test_draws_and_means_given_an_interval(column, low, high, max_bins):
    density = Independent(encoder=Encoder(max_bins=max_bins)).fit(TABLE)
    given = density.condition({column: (low, high)})
    drawn = np.asarray(given.sample(20_000, random_state=1)[column])
    least, most = -np.inf if low is None else low, np.inf if high is None else high
    assert np.all((least <= drawn) & (drawn <= most))
    marginal = given.marginal(column)
    assert drawn.mean() == pytest.approx(marginal.mean, abs=0.04 * marginal.std + 1e-9)
    assert drawn.std() == pytest.approx(marginal.std, rel=0.06, abs=1e-6)
    again = given.condition({column: (low, high)})  # what is said twice counts once
    assert again.marginal(column).mean == pytest.approx(marginal.mean, rel=1e-6)
    # all draws of the density that lie inside are the same distribution
    every = np.asarray(density.sample(200_000, random_state=2)[column])
    inside = every[(least <= every) & (every <= most)]
    assert drawn.mean() == pytest.approx(inside.mean(), abs=0.15 * inside.std() + 1e-9)


def test_a_number_that_is_given_is_what_draws_have():
    density = Independent(encoder=Encoder(max_bins=4)).fit(TABLE)
    assert set(density.condition(n=31).sample(50)["n"]) == {31}
    assert set(density.condition(x=99.5).sample(50)["x"]) == {99.5}
    for endless in (np.inf, (np.inf, np.inf)):  # stands for the last bin
        assert density.condition(x=endless).sample(50)["x"].max() <= TABLE["x"].max()
    assert density.condition(n=31).marginal("x").mean == density.marginal("x").mean


def test_a_column_in_which_missing_is_a_value():
    table = {"x": np.where(RNG.random(500) < 0.2, np.nan, RNG.normal(size=500))}
    encoder = Encoder(max_bins=4, missing_is_value=["x"])
    density = Independent(encoder=encoder).fit(table)
    assert np.all(np.isnan(density.condition(x="missing").sample(20)["x"]))
    drawn = np.asarray(density.condition(x=(0.1, 0.3)).sample(200)["x"])
    assert np.all((drawn >= 0.1) & (drawn <= 0.3))
    assert set(density.condition(x=0.25).sample(20)["x"]) == {0.25}
