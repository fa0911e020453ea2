"""Write docs/results.md and its pictures from the files of results, and from nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from . import figures
from .cells import LAST
from .page_a import part_a
from .page_b import part_b
from .tables import load, number, table, wide


def part_c(frame: pd.DataFrame, folder: Path) -> str:
    from .part_c import SETS, TABLES

    text = ""
    grid = frame[frame["metric"] == "test"].pivot_table(
        index="set", columns="method", values="value", sort=False
    )
    spent = frame[frame["metric"] == "seconds"].pivot_table(
        index="set", columns="method", values="value", sort=False
    )
    for marks, heads in ((TABLES, ["mark", "authors"]), (SETS, ["Strudel", "4 hidden trees"])):
        lines = []
        for name in [name for name in marks if name in grid.index]:
            line = dict(zip(["set", *heads], [name, *marks[name]], strict=True))
            for method in grid.columns:
                score, seconds = grid.loc[name, method], spent.loc[name, method]
                line[method] = "" if np.isnan(score) else f"{score:.2f} ({seconds:.0f} s)"
            lines.append(line)
        if lines:
            text += table(pd.DataFrame(lines)) + "\n"
    return "Mean log-likelihood of test rows in nats, and seconds to learn.\n\n" + text


def part_d(frame: pd.DataFrame, folder: Path) -> str:
    text, panels = "", {}
    cells = wide(frame[frame["metric"] != LAST])
    for setting, here in cells.groupby("setting", sort=False):
        here = here.drop(columns="setting").dropna(axis=1, how="all")
        text += f"\n### {setting}\n\n" + table(here, 3)
        axes = {
            "rows": ("rows", "CPU seconds"),
            "sizes": ("joins", "CPU seconds"),
            "orders": ("order", "CPU seconds"),
        }.get(setting)
        if axes and set(axes) <= set(here.columns) and len(here) > 1:
            panels[f"cost against {axes[0]}"] = here[list(axes)]
    if panels:
        figures.scaling(panels, folder / "scaling.svg")
        text = f"![scaling]({folder.name}/scaling.svg)\n" + text
    return text


# -- the page -------------------------------------------------------------------------

PARTS = {
    "A": ("The paper as published", part_a),
    "B": ("Tables with holes", part_b),
    "C": ("Densities", part_c),
    "D": ("Speed", part_d),
}


def provenance(folder: Path, part: str, frame: pd.DataFrame) -> str:
    """When, where and how a part was made, and what was skipped in its last run."""
    runs = json.loads((folder / f"{part}.json").read_text("utf-8"))["runs"]
    used = sorted({int(run) for run in frame["run"]})
    seeds = sorted(set(frame["seed"]))
    cells = frame[frame["metric"] == LAST]
    text = (
        f"{len(cells)} cells, {number(cells['value'].sum() / 60, 3)} minutes; seeds "
        f"{', '.join(map(str, seeds))}.\n"
    )
    for run in [runs[k] for k in used if k < len(runs)]:
        versions = ", ".join(f"{name} {which}" for name, which in run["versions"].items())
        text += (
            f"\n- `{run['command']}`, {run['since']} to {run.get('until', 'a stop')}; "
            f"{run['machine']}; Python {run['python']}; {versions}."
        )
    skipped = runs[-1].get("skipped", {}) if runs else {}
    if skipped:
        text += "\n\nSkipped in the last run:\n"
        text += "".join(f"\n- {why} ({count} cells)" for why, count in skipped.items())
    return text + "\n"


def write(results: Path, docs: Path) -> Path:
    """Write docs/results.md and docs/results/*.svg; returns the page."""
    folder = docs / "results"
    text = (
        "# Results\n\nWritten by `python -m benchmarks.evaluation page` from the files in "
        "benchmarks/results/evaluation; not to be edited. `make paper` makes all of it anew or "
        "goes on where it stopped.\n"
    )
    for part, (title, tell) in PARTS.items():
        frame = load(results, part)
        text += f"\n## {part}. {title}\n\n"
        if not len(frame):
            text += "Not run.\n"
            continue
        text += provenance(results, part, frame) + "\n" + tell(frame, folder)
    docs.mkdir(parents=True, exist_ok=True)
    page = docs / "results.md"
    page.write_text(text, "utf-8")
    return page
