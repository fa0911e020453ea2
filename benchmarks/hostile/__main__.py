"""Try to break what reads files and conditions, and saving.

    python -m benchmarks.hostile files queries --count 1000000    goes on where it stopped
    python -m benchmarks.hostile files --processes 2 --seed 1
    python -m benchmarks.hostile kills --count 200

A case has a number; the seed and the number make it again. What counts as a failure: an exception
that is not the package's own, a process that dies, 5 seconds or 1 GB for one case. In build/hostile
are the counts and failures of each run, and the files that failed. The exit code is 1 if any did.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .watch import Run, work

BUILD = Path(__file__).parents[2] / "build" / "hostile"


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("benchmarks.hostile", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("attacks", nargs="+", choices=["files", "queries", "kills"])
    parser.add_argument("--count", type=int, default=1_000_000, help="cases of each attack")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--fresh", action="store_true", help="forget earlier cases")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.worker:
        work(given.attacks[0], given.seed, BUILD)
        return 0
    failed = 0
    for attack in given.attacks:
        if attack == "kills":
            from .kills import kill

            failed += kill(given.count, given.seed)
        else:
            run = Run(attack, given.seed, BUILD, fresh=given.fresh)
            failed += run.finish(given.count, given.processes)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
