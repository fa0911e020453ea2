"""Compute what is not there yet, then write the page.

    python -m benchmarks.evaluation A B C D page             all, for hours; go on where it stopped
    python -m benchmarks.evaluation A B C D page --quick     small settings, into build/
    python -m benchmarks.evaluation B --sets insurance wine  only these data sets

Results are benchmarks/results/evaluation/PART.parquet, and PART.json says when, where and how they
were made; while a part runs, its cells are in build/. --fresh forgets the parts that are named.
Needs the paper's data in EXPECTA_DATA, by default ../shared/data; what is not there is skipped, and
listed on the page.
"""

from __future__ import annotations

import argparse
import os
import warnings

from rich.console import Console

from expecta import config_context

from . import data
from .cells import Cells

PARTS = ("A", "B", "C", "D")


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("benchmarks.evaluation", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("parts", nargs="*", choices=[*PARTS, "page"], default=[*PARTS, "page"])
    parser.add_argument("--quick", action="store_true", help="small settings, into build/")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--sets", nargs="+", default=[], metavar="SET")
    given = parser.parse_args(words)
    build = data.ROOT / "build" / ("evaluation-quick" if given.quick else "evaluation")
    results = build if given.quick else data.RESULTS / "evaluation"
    console = Console(stderr=True)
    jobs = []
    for part in [part for part in given.parts if part != "page"]:
        cells = Cells(results, part, build=build, fresh=given.fresh)
        jobs.append((cells, list(chosen(part).work(cells, given.quick, given.sets))))
    wrong = set(given.sets) - {key.set for _, work in jobs for key, _ in work}
    if wrong:
        parser.error(f"no such set in the parts that are named: {', '.join(sorted(wrong))}")
    for cells, work in jobs:
        with config_context(progress=False), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cells.run(work, console)
    if "page" in given.parts:
        from .page import write

        for part in PARTS:
            if (build / "cells" / f"{part}.csv").exists():  # a run that was killed kept nothing
                Cells(results, part, build=build).keep()
        page = write(results, build if given.quick else data.ROOT / "docs")
        console.print(f"wrote {page}")


def chosen(part: str):
    """The module of a part, which imports only what it needs."""
    if part == "A":
        from . import part_a as module
    elif part == "B":
        from . import part_b as module
    elif part == "C":
        from . import part_c as module
    else:
        from . import part_d as module
    return module


if __name__ == "__main__":
    if data.DATA.is_dir():
        os.environ.setdefault("EXPECTA_DATA", str(data.DATA))
    main()
