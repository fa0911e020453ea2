"""How fast the engine is: every figure is printed only after its outputs were checked.

    python benchmarks/engine.py            all parts
    python benchmarks/engine.py marks      only the named parts

What is measured, and how, is evaluation/part_d.py; nothing is kept.
"""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

from evaluation import part_d
from evaluation.data import AbsentError
from expecta import using

console = Console(width=150)


def main(named):
    shown: dict[str, list] = {}
    for key, do in part_d.work(None, False, []):
        if not named or key.setting in named:
            shown.setdefault(key.setting, []).append((f"{key.set}, {key.method}", do))
    for setting, items in shown.items():
        lines = []
        for label, do in items:
            try:
                lines.append((label, do()))
            except AbsentError as why:
                console.print(f"skipped {setting}, {label}: {why}")
        if lines:
            names = list(dict.fromkeys(key for _, line in lines for key in line))
            table = Table(setting, *names)
            for label, line in lines:
                table.add_row(label, *(f"{line[n]:.4g}" if n in line else "" for n in names))
            console.print(table)
    if "marks" in shown:
        console.print("Juice, as published for the last task: 11.2 s on a CPU,")
        console.print("0.44 s cold and 0.039 s warm on a GPU.")


if __name__ == "__main__":
    with using(progress=False):
        main(sys.argv[1:])
