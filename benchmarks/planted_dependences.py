"""Print how much of a planted dependence a density recovers, by the number of rows.

    python -m benchmarks.planted_dependences              20 seeds
    python -m benchmarks.planted_dependences --seeds 4    fewer

Each table has one dependence that is known, and six further columns that depend on each other:
"weak", two categories (6 points of a share); "strong", two numbers (correlation 0.8);
"interaction", a category that is whether two others differ, and depends on neither alone; "rare", a
number that is two deviations higher for one row in a hundred; "tail", a number that is two
deviations higher where another is among its largest 2%. Printed is the difference between two
groups over the true one: the mean over seeds, their spread, and the share of seeds with half to one
and a half of it; beside it the same of the rows themselves, which is what chance leaves to know.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from expecta import ChowLiu, LatentTree

ROWS = (200, 700, 2500, 10_000)
TAIL = 2.0537489  # the normal number above which 2% lie


def further(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    cause = rng.normal(size=n)
    columns = {f"n{i}": 0.7 * cause + 0.7 * rng.normal(size=n) for i in range(4)}
    for i in range(2):
        columns[f"c{i}"] = np.array(["a", "b", "c"])[np.searchsorted([-0.5, 0.7], cause * (i + 1))]
    return columns


def weak(n, rng):
    a = rng.random(n) < 0.5
    b = rng.random(n) < np.where(a, 0.236, 0.174)
    return {"a": a, "b": b}, 0.062, "b", {"a": True}, {"a": False}


def strong(n, rng):
    x = rng.normal(size=n)
    y = 0.8 * x + 0.6 * rng.normal(size=n)
    truth = 0.8 * 2 * 0.7978846  # of halves: E[x | x > 0] = sqrt(2 / pi)
    return {"x": x, "y": y}, truth, "y", {"x": (0.0, None)}, {"x": (None, 0.0)}


def interaction(n, rng):
    a, b = rng.random((2, n)) < 0.5
    z = (a != b) ^ (rng.random(n) < 0.1)
    return {"a": a, "b": b, "z": z}, 0.8, "z", {"a": True, "b": False}, {"a": True, "b": True}


def rare(n, rng):
    is_rare = rng.random(n) < 0.01
    is_rare[: 3 if not is_rare[3:].any() else 0] = True  # a category that never occurs is no group
    c = np.where(is_rare, "rare", rng.choice(["u", "v", "w"], n))
    return {"c": c, "y": rng.normal(size=n) + 2 * is_rare}, 2.0, "y", {"c": "rare"}, {"c": "u"}


def tail(n, rng):
    x = rng.normal(size=n)
    y = rng.normal(size=n) + 2.0 * (x > TAIL)
    return {"x": x, "y": y}, 2.0, "y", {"x": (TAIL, None)}, {"x": (None, TAIL)}


TABLES = {f.__name__: f for f in (weak, strong, interaction, rare, tail)}


def in_rows(table: pd.DataFrame, of: str, facts: dict) -> float:
    inside = np.ones(len(table), bool)
    for name, fact in facts.items():
        low, high = fact if isinstance(fact, tuple) else (fact, fact)
        inside &= True if low is None else (table[name] >= low).to_numpy()
        inside &= True if high is None else (table[name] <= high).to_numpy()
    return float(table[of][inside].mean()) if inside.any() else np.nan


def in_density(density, of: str, facts: dict) -> float:
    marginal = density.condition(**facts).marginal(of)
    return marginal.to_dict()["True"] if "True" in marginal.labels else marginal.mean


def recovered(kind: str, density, n: int, seed: int) -> tuple[float, float]:
    """The difference between two groups over the true one: of the density, and of the rows."""
    rng = np.random.default_rng([seed, n])
    planted, truth, of, first, second = TABLES[kind](n, rng)
    table = pd.DataFrame({**further(n, rng), **planted})
    table = table[rng.permutation(table.columns)]
    density = density.fit(table)
    return tuple(
        (value(where, of, first) - value(where, of, second)) / truth
        for value, where in ((in_density, density), (in_rows, table))
    )


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("benchmarks.planted_dependences", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    given = parser.parse_args(words)
    head = "mean   std  found"
    print(f"{'':12}{'rows':>7}   {'latent tree':^19}  {'Chow-Liu':^19}  {'the rows':^19}")
    print(f"{'':19}   {head:>19}  {head:>19}  {head:>19}")
    for kind in given.tables:
        for n in given.rows:
            trees = [recovered(kind, LatentTree(random_state=s), n, s) for s in range(given.seeds)]
            chow_liu = [recovered(kind, ChowLiu(), n, s)[0] for s in range(given.seeds)]
            shown = [[one[0] for one in trees], chow_liu, [one[1] for one in trees]]
            cells = [
                f"{np.nanmean(r):5.2f} {np.nanstd(r):5.2f} {np.mean((r > 0.5) & (r < 1.5)):6.0%}"
                for r in map(np.array, shown)
            ]
            print(f"{kind:12}{n:7,}   {'  '.join(f'{cell:>19}' for cell in cells)}", flush=True)


if __name__ == "__main__":
    main()
