"""Print what a check of a density finds of planted faults, and what it finds where there is none.

    python -m benchmarks.density_checks              20 seeds
    python -m benchmarks.density_checks --seeds 4    fewer

"right" is a Chow-Liu tree of a table whose columns are a tree, learned from ten rows for each that
is checked. The others have a dependence of ``benchmarks.planted_dependences`` and five columns
without any; the density is one of independent columns, learned from as many rows as are checked.
Printed is the share of tables in which anything is beyond chance, the share of all comparisons that
are, the share of tables in which the planted columns are among them, and the seconds of a check.
"""

from __future__ import annotations

import argparse
import re
import time

import numpy as np
import pandas as pd

from benchmarks.planted_dependences import TABLES
from expecta import ChowLiu, Independent

ROWS = (200, 700, 2500)


def tree(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Make columns of which each depends on the one before."""
    columns = {"x0": rng.integers(4, size=n)}
    for i in range(1, 8):
        noise = rng.integers(3 + i % 3, size=n)
        columns[f"x{i}"] = np.where(rng.random(n) < 0.5, columns[f"x{i - 1}"], noise)
    names = np.array(list("abcdefgh"))
    return pd.DataFrame({k: names[v] if int(k[1]) % 2 else v for k, v in columns.items()})


def planted(kind: str, n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, list[str]]:
    """Make a table with one dependence, and tell its columns."""
    columns, *_ = TABLES[kind](n, rng)
    others = {f"n{i}": rng.normal(size=n) for i in range(3)}
    others |= {f"c{i}": rng.choice(list("uvw"), n) for i in range(2)}
    return pd.DataFrame({**others, **columns}), list(columns)


def outcome(check, names: list[str]) -> tuple[bool, float, bool]:
    """Whether anything is beyond chance, the share that is, and whether the planted columns are."""
    parts = check.pairs, check.groups
    beyond = np.concatenate([part.beyond for part in parts])
    texts = [part.sentence(i) for part in parts for i in np.flatnonzero(part.beyond)]
    found = [sum(name in re.findall(r"\w+", text) for name in names) for text in texts]
    return bool(beyond.any()), float(beyond.mean()), max(found, default=0) == len(names)


def trial(kind: str, n: int, seed: int) -> tuple[bool, float, bool, float]:
    """Learn, check, and tell what was found in how many seconds."""
    rng = np.random.default_rng([seed, n])
    if kind == "right":
        density, names = ChowLiu(pseudo_count=0.1).fit(tree(10 * n, rng)), []
        rows = tree(n, rng)
    else:
        training, names = planted(kind, n, rng)
        density = Independent().fit(training)
        rows, _ = planted(kind, n, rng)
    begun = time.process_time()
    check = density.check(rows)
    return *outcome(check, names), time.process_time() - begun


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("benchmarks.density_checks", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    given = parser.parse_args(words)
    print(f"{'':12}{'rows':>7}{'any':>7}{'share':>9}{'found':>8}{'seconds':>9}")
    for kind in ("right", *TABLES):
        for n in given.rows:
            found = np.array([trial(kind, n, seed) for seed in range(given.seeds)])
            some, share, named, seconds = found.mean(axis=0)
            last = f"{named:8.0%}" if kind != "right" else f"{'':8}"
            print(f"{kind:12}{n:7,}{some:7.0%}{share:9.2%}{last}{seconds:9.2f}", flush=True)


if __name__ == "__main__":
    main()
