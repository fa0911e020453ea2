"""``expecta fit``: from a table to a model in a file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from expecta.cli.options import Json
from expecta.cli.output import document, note, say, writable
from expecta.errors import DomainError

__all__ = ["fit"]


class DensityName(StrEnum):
    """Densities that can be learned."""

    tree = "tree"
    psdd = "psdd"
    chow_liu = "chow-liu"


def fit(
    table: Annotated[
        str,
        typer.Argument(
            help="Rows to learn from: .csv, .tsv, .csv.gz, .parquet, .arrow, .feather, .jsonl; "
            "- is CSV from standard input.",
            show_default=False,
        ),
    ],
    target: Annotated[
        str, typer.Option("--target", "-t", metavar="COL", help="The column to predict.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The model's file; by default TARGET.expecta."),
    ] = None,
    classify: Annotated[
        bool | None,
        typer.Option(
            "--classify/--regress", help="Classes or numbers? By default the target decides."
        ),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COL", help="A column to leave out; repeatable.")
    ] = None,
    density: Annotated[
        DensityName, typer.Option(help="What learns how the inputs go together.")
    ] = DensityName.tree,
    max_bins: Annotated[int, typer.Option(min=2, help="Most bins of a number in the model.")] = 256,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same model.")] = 0,
    no_rows: Annotated[
        bool, typer.Option("--no-rows", help="Keep no training rows in the file.")
    ] = False,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Leave out rows whose target is unknown.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    json: Json = False,
) -> None:
    """Learn a model from a table, with or without holes in it."""
    from expecta.cli import tables
    from expecta.cli.learning import Task, learn
    from expecta.settings import using

    name = "".join(one if one.isalnum() or one in "-_." else "_" for one in target)
    path = writable(output if output is not None else f"{name}.expecta")
    given = tables.read(table)
    _check_columns(given, [target, *(drop or [])])
    task = Task.of(given, target, drop or [], classify, skip_unknown)
    with using(progress=False if quiet else None):
        model = learn(task, density.value, max_bins, seed)
    model.save(path, rows=not no_rows)
    learned = summary(model, task, path, no_rows)
    if json:
        document(learned)
    elif not quiet:
        _tell(learned, table)


def _check_columns(table: Any, names: list[str]) -> None:  # noqa: ANN401
    from expecta.encoding.columns import suggestion

    for name in names:
        if name not in table.column_names:
            hint = suggestion(name, table.column_names)
            raise DomainError(f"there is no column {name!r} in the table; {hint}")


def summary(model: Any, task: Any, path: Path, no_rows: bool) -> dict[str, Any]:  # noqa: ANN401
    """Return what was learned."""
    from expecta.cli.learning import held_out

    return {
        "model": str(path),
        "kind": type(model).__name__,
        "why": task.why,
        "target": task.target,
        "rows": task.table.num_rows,
        "skipped_rows": task.skipped,
        "columns": [column.name for column in model.encoder_.columns_],
        "density": repr(model.density_).splitlines()[0],
        "splits": model.n_splits_,
        "penalty": model.penalty_,
        **held_out(model),
        "rows_in_file": not no_rows,
        "notes": [*task.notes, *model.density_.encoder_.notes_],
        "example": task.example,
    }


def _tell(learned: dict[str, Any], table: str) -> None:
    """Say what was learned, and what to try next."""
    path = learned["model"]
    column, condition = learned["example"]
    say(f"{learned['target']}: {learned['why']}")
    say(
        f"learned from {learned['rows']} rows and {len(learned['columns'])} columns: "
        f"{', '.join(learned['columns'])}"
    )
    say(f"density: {learned['density']}")
    say(f"circuit: {learned['splits']} split(s); {learned['said']}")
    if learned["skipped_rows"]:
        note(f"{learned['skipped_rows']} row(s) without a target were left out")
    for one in learned["notes"]:
        note(one)
    rows = "without" if not learned["rows_in_file"] else "with"
    say(f"saved to {path}, {rows} the training rows")
    path, rest, column = quote(path), "new.csv" if table == "-" else quote(table), quote(column)
    say("\nNext:")
    classes = learned.get("classes", [])
    of = f" --of {quote(str(classes[0]))}" if len(classes) > 2 else ""
    say(f"  expecta predict {path} {rest} {'--proba' if classes else '--interval 0.9'}")
    say(f'  expecta ask {path} "{condition}"{of}')
    say(f"  expecta split {path} {column}{of}")
    say(f"  expecta report {path} -o report.html")
