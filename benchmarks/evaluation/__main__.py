"""Compute what is not there yet, then write the pages.

    python -m benchmarks.evaluation A B C D page             all, for hours; go on where it stopped
    python -m benchmarks.evaluation A B C D page --quick     small settings, into build/
    python -m benchmarks.evaluation B --tables even --jobs 2 the even lines of the list of tables
    python -m benchmarks.evaluation B --tables Carseats --seeds 1    one table, and print its losses

Results are benchmarks/results/evaluation/PART.parquet, and PART.json says when, where and how they
were made; while a part runs, its cells are in build/. --fresh forgets the parts that are named.
Needs the paper's data in EXPECTA_DATA, by default ../shared/data; what is not there is skipped, and
listed on the page.
"""

from __future__ import annotations

import argparse
import os
from importlib import import_module

from rich.console import Console

from . import data
from .cells import Cells

PARTS = ("A", "B", "C", "D")


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("benchmarks.evaluation", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("parts", nargs="*", choices=[*PARTS, "page"], default=[*PARTS, "page"])
    parser.add_argument("--quick", action="store_true", help="small settings, into build/")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument(
        "--tables", "--sets", nargs="+", default=[], dest="sets", metavar="NAME",
        help="only these data sets; in part B also even, odd, nine",
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, help="of each table of part B, in place of 2 to 5")
    parser.add_argument("--jobs", type=int, default=1, help="processes, one for each core")
    given = parser.parse_args(words)
    build = data.ROOT / "build" / ("evaluation-quick" if given.quick else "evaluation")
    results = build if given.quick else data.RESULTS / "evaluation"
    console = Console(stderr=True)
    jobs = []
    known: set[str] = set()
    for part in [part for part in given.parts if part != "page"]:
        cells = Cells(results, part, build=build, fresh=given.fresh)
        module = import_module(f".part_{part.lower()}", __package__)
        options = {"seeds": given.seeds} if part == "B" else {}
        try:
            work = list(module.work(cells, given.quick, given.sets, **options))
        except data.AbsentError as why:
            parser.error(str(why))
        jobs.append((cells, work))
        known |= {key.set for key, _ in work} | ({"even", "odd", "nine"} if part == "B" else set())
    wrong = set(given.sets) - known
    if jobs and wrong:
        parser.error(f"no such set in the parts that are named: {', '.join(sorted(wrong))}")
    for cells, work in jobs:
        cells.run(work, console, given.jobs)
        if cells.part == "B" and given.sets:
            from .page_b import printed

            console.print(printed(cells.kept, {key.set for key, _ in work}), markup=False)
    if "page" in given.parts:
        from .page import write

        for part in PARTS:
            if (build / "cells" / f"{part}.csv").exists():  # a run that was killed kept nothing
                Cells(results, part, build=build).keep()
        page = write(results, build if given.quick else data.ROOT / "docs")
        console.print(f"wrote {page}")


if __name__ == "__main__":
    if data.DATA.is_dir():
        os.environ.setdefault("EXPECTA_DATA", str(data.DATA))
    main()
