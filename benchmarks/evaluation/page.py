"""Write docs/results.md and its pictures from the files of results, and from nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from . import claim_figures, page_a, page_b, page_c, page_claims, page_d, page_losses
from .cells import LAST, replace
from .tables import load, number

PARTS = {
    "A": ("The paper as published", page_a.part_a, page_a.in_short),
    "B": ("Tables with missing values", page_b.part_b, page_b.in_short),
    "C": ("Densities", page_c.part_c, page_c.in_short),
    "D": ("Speed", page_d.part_d, page_d.in_short),
}


def provenance(folder: Path, part: str, frame: pd.DataFrame) -> str:
    """When, where and how a part was made, and what was skipped."""
    runs = json.loads((folder / f"{part}.json").read_text("utf-8"))["runs"]
    used = sorted({int(run) for run in frame["run"]})
    seeds = sorted(set(frame["seed"]))
    cells = frame[frame["metric"] == LAST]
    text = (
        f"{len(cells)} cells, {number(cells['value'].sum() / 60, 3)} minutes; seeds "
        f"{', '.join(map(str, seeds))}.\n"
    )
    places: dict[str, str] = {}
    for run in [runs[k] for k in used if k < len(runs)]:
        versions = ", ".join(f"{name} {which}" for name, which in run["versions"].items())
        place = f"{run['machine']}; Python {run['python']}; {versions}"
        line = f"\n- `{run['command']}`, {run['since']} to {run.get('until', 'a stop')}"
        line += f", commit {run['commit']}" if "commit" in run else ""
        line += f" ({run['note']})" if "note" in run else ""
        places[place] = places.get(place, "") + line
    text += "".join(f"\n{place}:\n{lines}\n" for place, lines in places.items())
    skipped = {why: count for run in runs for why, count in run.get("skipped", {}).items()}
    if skipped:
        text += "\nSkipped (counted in the last run that tried):\n"
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
    short, rest = "", ""
    for part, (title, tell, in_short) in PARTS.items():
        frame = load(results, part)
        rest += f"\n## {part}. {title}\n\n"
        if not len(frame):
            rest += "Not run.\n"
            continue
        made = provenance(results, part, frame)
        if part == "B":
            rest += made + "\n" + tell(frame)
            write_claims(frame, results, docs)
        else:
            rest += made + "\n" + tell(frame, folder)
        short += "".join(f"- {part}. {line}\n" for line in in_short(frame))
    text += f"\n## In short\n\n{short}" if short else ""
    docs.mkdir(parents=True, exist_ok=True)
    page = docs / "results.md"
    page.write_text(text + rest, "utf-8")
    return page


def write_claims(frame: pd.DataFrame, results: Path, docs: Path) -> None:
    """Write docs/claims.md, docs/losses.md, what they link to, and their figures as Parquet."""
    figures, causes = claim_figures.statistics(frame), page_losses.causes(frame)
    for name, lines in (("claims", figures), ("lost", page_losses.lost(causes))):
        replace(results / f"{name}.parquet", lines.to_parquet(index=False, compression="zstd"))
    docs.mkdir(parents=True, exist_ok=True)
    seeds = frame.groupby("set")["seed"].nunique()
    (docs / "claims.md").write_text(page_claims.claims(figures, seeds, docs / "results"), "utf-8")
    (docs / "losses.md").write_text(page_losses.losses(causes), "utf-8")
    readme = docs.parent / "README.md"
    if readme.exists():
        readme.write_text(page_claims.in_readme(figures, readme.read_text("utf-8")), "utf-8")
    page_losses.write_comparisons(causes, docs / "results" / "comparisons.csv")
