"""Measure answers about groups against held-out rows: by density, by training rows, by both.

Run ``python -m benchmarks.group_answers``. Each table is divided into two halves, a model is fitted
to one, and asked about 200 random groups of 5 to 5,000 training rows, as many of each size. The
truth is the mean of the same model over the members of the group in the other half, or, of
simulated tables, in 100,000 further rows. The errors of that truth are taken off errors and added
to intervals; with few members they are by the spread under the density too, which counts as four
rows. One split says little of intervals, as all its large groups are off together: what they cover
is printed with its range over splits. Also: the difference between men and women on the insurance
table, over 20 halves, and what 20 fits of the whole table with other seeds answer.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from expecta import CircuitRegressor, LatentTree, QueryError
from expecta.ask.credibility import SPREAD_ROWS
from expecta.ask.language.query import Query
from expecta.datasets import load_insurance
from expecta.datasets.paper import load_paper

SOURCES = ("density", "rows", "both")
N_GROUPS = 200
N_SIZES = 8  # classes of group sizes with as many groups each
MIN_ROWS, MAX_ROWS = 5, 5000
N_TRUTH = 100_000  # rows of a simulated truth


def simulate_houses(n_rows: int, seed: int):
    """Draw house prices like those of a county: skewed, by zip code, with rare waterfronts."""
    world, rng = np.random.default_rng(7), np.random.default_rng(seed)
    n_zips = 70
    frequency = np.arange(1, n_zips + 1) ** -0.6
    level = world.normal(0, 0.35, n_zips)
    age = world.normal(1970, 18, n_zips)
    size = 0.12 * world.normal(size=n_zips) + 0.25 * level
    by_water = np.where(world.random(n_zips) < 0.15, 0.05, 0.002)
    z = rng.choice(n_zips, n_rows, p=frequency / frequency.sum())
    grade = np.clip(np.round(7.5 + 2 * level[z] + rng.normal(0, 1.1, n_rows)), 4, 13)
    sqft = np.exp(7.5 + size[z] + 0.17 * (grade - 7.5) + rng.normal(0, 0.28, n_rows)).round(-1)
    year = np.clip(np.round(age[z] + 6 * (grade - 7.5) + rng.normal(0, 20, n_rows)), 1900, 2015)
    beds = np.clip(np.round(1.2 + 0.0009 * sqft + rng.normal(0, 0.7, n_rows)), 1, 8)
    baths = 0.6 + 0.0007 * sqft + 0.008 * (year - 1960) + rng.normal(0, 0.4, n_rows)
    baths = np.clip(np.round(4 * baths) / 4, 0.75, 6)
    water = rng.random(n_rows) < by_water[z]
    condition = np.clip(np.round(3.4 - 0.01 * (year - 1960) + rng.normal(0, 0.6, n_rows)), 1, 5)
    log_size = np.log(sqft) - 7.5
    log_price = 12.9 + level[z] + (0.72 + 0.25 * (level[z] > 0.4)) * log_size
    log_price += 0.09 * (grade - 7.5) + 0.55 * water * (1 + level[z]) + 0.04 * (condition - 3)
    log_price += 0.05 * (baths - 2) - 0.0008 * (year - 1970) + rng.normal(0, 0.17, n_rows)
    table = pd.DataFrame(
        {
            "zipcode": [f"98{code:03}" for code in z],
            "grade": grade,
            "sqft": sqft,
            "built": year,
            "bedrooms": beds,
            "bathrooms": baths,
            "waterfront": np.where(water, "yes", "no"),
            "condition": condition,
        }
    )
    return table, pd.Series(np.exp(log_price), name="price")


def load(name: str, seed: int):
    """Return a table to fit to with its target, and a table that the truth is taken from."""
    if name == "houses":
        table, target = simulate_houses(8000, seed)
        return table, target, simulate_houses(N_TRUTH, 10_000 + seed)[0]
    if name == "insurance":
        table = load_insurance()
        target = table.pop("charges")
    else:
        data = load_paper(name, encoded=False, as_frame="pandas")
        table = pd.concat([data.X_train, data.X_valid, data.X_test])
        target = pd.Series(np.concatenate([data.y_train, data.y_valid, data.y_test]), name="y")
    order = np.random.default_rng(seed).permutation(len(table))
    first, second = order[: len(order) // 2], order[len(order) // 2 :]
    return table.iloc[first], target.iloc[first], table.iloc[second]


def random_groups(table: pd.DataFrame, n: int, seed: int) -> list[dict]:
    """Return groups of one to three facts about a random row, as many of each size."""
    rng = np.random.default_rng(seed)
    edges = np.geomspace(MIN_ROWS, min(MAX_ROWS, len(table)), N_SIZES + 1)
    wanted, groups = np.full(N_SIZES, -(-n // N_SIZES)), []
    for tried in range(100 * n):
        if len(groups) == n:
            break
        facts, inside = {}, np.ones(len(table), bool)
        row = table.iloc[rng.integers(len(table))]
        for name in rng.choice(table.columns, rng.integers(1, 4), replace=False):
            cells, value = table[name], row[name]
            if pd.api.types.is_numeric_dtype(cells):
                other = cells.iloc[rng.integers(len(table))] if rng.random() < 0.7 else value
                low, high = sorted((float(value), float(other)))
                facts[name] = (low, high)
                inside &= ((cells >= low) & (cells <= high)).to_numpy()
            else:
                facts[name] = value
                inside &= (cells == value).to_numpy()
        size = int(inside.sum())
        if not MIN_ROWS <= size <= MAX_ROWS:
            continue
        bucket = min(int(np.searchsorted(edges, size, "right")) - 1, N_SIZES - 1)
        if wanted[bucket] > 0 or tried > 50 * n:
            wanted[bucket] -= 1
            groups.append(facts)
    return groups


def measure(name: str, seed: int, n_groups: int) -> pd.DataFrame:
    """Ask about random groups, and return a line for each with its truth."""
    table, target, held_out = load(name, seed)
    model = CircuitRegressor(calibration_rows=0, random_state=0).fit(table, target)
    outputs = model.predict(held_out)
    lines = []
    for facts in random_groups(table, n_groups, seed):
        try:
            query = Query.read(facts, model.encoder_)
        except QueryError:  # a category so rare that the density knows it as one of others
            continue
        truth, group = outputs[query.matches(held_out)], model.ask(query)
        if len(truth) < MIN_ROWS or not np.isfinite(group.mean):
            continue
        n, spread = len(truth), truth.var(ddof=1)
        pooled = (SPREAD_ROWS * group.std**2 + (n - 1) * spread) / (SPREAD_ROWS + n - 1)
        lines.append(
            {
                "seed": seed,
                "rows": group.rows,
                "density": group.density_mean,
                "rows_output": group.rows_output,
                "both": group.mean,
                "standard_error": group.standard_error,
                "truth": truth.mean(),
                "truth_error": np.sqrt(pooled / n),
            }
        )
    return pd.DataFrame(lines).rename(columns={"rows_output": "by_rows"})


def report(name: str, lines: pd.DataFrame) -> None:
    """Print errors in percent of the truth, less the truth's own, and the share covered."""
    relative = (lines.truth_error / lines.truth) ** 2
    parts = []
    for label, column in (("density", "density"), ("rows", "by_rows"), ("both", "both")):
        squares = (lines[column] / lines.truth - 1) ** 2 - relative
        parts.append(f"{label} {100 * np.sqrt(max(squares.mean(), 0)):5.2f}%")
    half = 1.96 * np.hypot(lines.standard_error, lines.truth_error)
    inside = (lines.both - lines.truth).abs() < half
    splits = inside.groupby(lines.seed).mean()
    print(
        f"{name:15} {len(lines):5} groups  {'  '.join(parts)}  95% covers {inside.mean():.1%}, "
        f"{splits.min():.0%} to {splits.max():.0%} over {len(splits)} splits",
        flush=True,
    )


def compare_sexes(n_seeds: int) -> None:
    """Print how often men are said to cost more than women, as in every held-out half."""
    right = dict.fromkeys(SOURCES, 0)
    covered = 0
    for seed in range(n_seeds):
        table, target, held_out = load("insurance", seed)
        model = CircuitRegressor(calibration_rows=0, random_state=0).fit(table, target)
        outputs, male = model.predict(held_out), held_out["sex"].to_numpy() == "male"
        truth = outputs[male].mean() - outputs[~male].mean()
        error = np.hypot(*(outputs[s].std() / np.sqrt(s.sum()) for s in (male, ~male)))
        for source in SOURCES:
            answer = model.compare("sex == 'male'", "sex == 'female'", population=source)
            right[source] += answer.difference > 0
        answer = model.compare("sex == 'male'", "sex == 'female'")
        half = 1.96 * np.hypot(answer.standard_error, error)
        covered += abs(answer.difference - truth) < half
    print(
        f"men above women on {right} of {n_seeds} halves; 95% of both covers {covered}", flush=True
    )


def refit_insurance(n_seeds: int) -> None:
    """Print what the whole insurance table's rows say, and how fits with other seeds answer.

    Smokers among men less those among women, body mass index in the southeast less that in the
    northwest (both by the density alone), and charges of women less those of men by `compare`.
    """
    table = load_insurance()
    target = table.pop("charges")
    answers = []
    for seed in range(n_seeds):
        density = LatentTree(random_state=seed).fit(table)
        smokers = [
            density.condition(sex=sex).marginal("smoker").to_dict()["yes"]
            for sex in ("male", "female")
        ]
        index = [
            density.condition(region=region).marginal("bmi").mean
            for region in ("southeast", "northwest")
        ]
        model = CircuitRegressor(random_state=seed).fit(table, target)
        charges = [
            model.compare("sex == 'female'", "sex == 'male'", population=source).difference
            for source in ("both", "density")
        ]
        answers.append([smokers[0] - smokers[1], index[0] - index[1], *charges])
    smoker, sex, region = table["smoker"] == "yes", table["sex"], table["region"]
    parts = (
        ("smokers, men less women", smoker, sex == "male", sex == "female"),
        (
            "bmi, southeast less northwest",
            table["bmi"],
            region == "southeast",
            region == "northwest",
        ),
        ("charges, women less men, both", target, sex == "female", sex == "male"),
        ("charges, women less men, density", target, sex == "female", sex == "male"),
    )
    for (name, cells, a, b), fits in zip(parts, np.array(answers).T, strict=True):
        truth = cells[a].mean() - cells[b].mean()
        error = np.hypot(*(cells[s].std() / np.sqrt(s.sum()) for s in (a, b)))
        print(
            f"{name:33} rows {truth:9.4g} ± {error:.3g}  fits {fits.mean():9.4g} ± "
            f"{fits.std(ddof=1):.3g}  within one error {np.sum(abs(fits - truth) < error)}, right "
            f"sign {np.sum(fits * truth > 0)} of {n_seeds}",
            flush=True,
        )


def main() -> None:
    """Print all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tables", nargs="*", default=["houses", "insurance", "abalone"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--groups", type=int, default=N_GROUPS)
    parser.add_argument("--halves", type=int, default=20)
    parser.add_argument("--fits", type=int, default=20, help="of the whole insurance table")
    given = parser.parse_args()
    for name in given.tables:
        lines = [measure(name, 100 + seed, given.groups) for seed in range(given.seeds)]
        report(name, pd.concat(lines))
    if given.halves:
        compare_sexes(given.halves)
    if given.fits:
        refit_insurance(given.fits)


if __name__ == "__main__":
    main()
