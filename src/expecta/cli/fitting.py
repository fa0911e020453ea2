"""Define ``expecta fit``: learn a model from a table, and say what to try next."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expecta.cli.options import Json
from expecta.cli.output import document, note, refuse_overwriting, say, writable
from expecta.common.errors import DomainError

if TYPE_CHECKING:
    from expecta.cli.learning import Task
    from expecta.estimators.circuit_estimator import CircuitEstimator
    from expecta.tables.column import Column

TEXT_KINDS = ("category", "boolean")


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
        list[str], typer.Option("--target", "-t", metavar="COL", help="The column to predict.")
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
        DensityName, typer.Option(help="Which density of the inputs to learn.")
    ] = DensityName.tree,
    max_bins: Annotated[int, typer.Option(min=2, help="Most bins of a column of numbers.")] = 256,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same model.")] = 0,
    rows: Annotated[
        bool, typer.Option("--rows", help="Keep the training rows in the file, not only sums.")
    ] = False,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Leave out rows whose target is unknown.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Write over a file that is there already.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    json: Json = False,
) -> None:
    """Learn a model from a table, with or without missing values."""
    from expecta.cli import table_files
    from expecta.cli.learning import Task, learn
    from expecta.common.settings import config_context

    wanted = _target(target, drop or [])
    path = _output(output, wanted, table)
    given = _without_index(table_files.read(table), wanted, quiet)
    _check_columns(given, [wanted, *(drop or [])])
    task = Task.from_table(given, wanted, drop or [], classify, skip_unknown)
    if path.is_file() and not force:
        raise DomainError(f"{path} is there already; write over it with --force, or name another")
    with config_context(progress=False if quiet else None):
        model = learn(task, density.value, max_bins, seed)
    model.save(path, rows=rows)
    if quiet and not json:
        return
    learned = _summary(model, task, path, rows)
    if json:
        document(learned)
    else:
        _tell(learned, table)


def _target(names: list[str], drop: list[str]) -> str:
    """Return the one column to predict."""
    if len(names) > 1:
        raise DomainError(
            f"a model has one target, not {', '.join(map(repr, names))}; fit one model for each"
        )
    if names[0] in drop:
        raise DomainError(f"the target {names[0]!r} cannot be dropped too; leave --drop of it out")
    return names[0]


def _output(output: Path | None, target: str, table: str) -> Path:
    """Return the model's file, which is no table."""
    from expecta.cli.table_files import is_table

    plain = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in target)
    path = output if output is not None else Path(f"{plain}.expecta")
    example = f"-o {plain.strip('-._') or 'model'}.expecta"
    if str(path) == "-":
        raise DomainError("a model needs a file: -o model.expecta")
    refuse_overwriting(path, [table])
    if is_table(str(path)):
        raise DomainError(f"{path} is the name of a table, and a model is not one; try {example}")
    return writable(path)


def _without_index(table: Any, target: str, quiet: bool) -> Any:
    """Leave out a first column that had no name and numbers the rows, as pandas writes one."""
    first = table.column_names[0]
    if first != "column_1" or first == target:
        return table
    cells, n = table.column(0).to_pylist(), table.num_rows
    if cells not in (list(range(n)), list(range(1, n + 1))):
        return table
    if not quiet:
        note(f"{first} numbers the rows; it is left out")
    return table.drop_columns([first])


def _check_columns(table: Any, names: list[str]) -> None:
    from expecta.common.text import suggestion

    for name in names:
        if name not in table.column_names:
            hint = suggestion(name, table.column_names)
            raise DomainError(f"there is no column {name!r} in the table; {hint}")


def _summary(model: CircuitEstimator, task: Task, path: Path, rows: bool) -> dict[str, Any]:
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
        "density_check": model.check_density().short(),
        "splits": model.n_splits_,
        "penalty": model.penalty_,
        **held_out(model),
        "rows_in_file": rows,
        "notes": [*task.notes, *model.density_.encoder_.notes_, *model.subsampled_],
        "example": _example(model, task.table),
    }


def _tell(learned: dict[str, Any], table: str) -> None:
    """Print what was learned, and what to try next."""
    say(f"{learned['target']}: {learned['why']}")
    say(
        f"learned from {learned['rows']} rows and {len(learned['columns'])} columns: "
        f"{', '.join(learned['columns'])}"
    )
    say(f"density: {learned['density']}")
    for line in learned["density_check"]:
        say(f"  {line}")
    say(f"circuit: {learned['splits']} split(s); {learned['summary']}")
    if learned["skipped_rows"]:
        note(f"{learned['skipped_rows']} row(s) without a target were left out")
    for text in learned["notes"]:
        note(text)
    kept = "the training rows" if learned["rows_in_file"] else "sums over groups of training rows"
    say(f"saved to {learned['model']}, with {kept}")
    say("\nNext:")
    for line in _next_commands(learned, table):
        say(f"  expecta {line}")


def _example(model: CircuitEstimator, table: Any) -> tuple[str, str] | None:
    """Return a column to ask about, categories first, and a condition that can be asked."""
    from expecta.ask.language.query import Query

    for column in sorted(model.encoder_.columns_, key=lambda c: c.kind not in TEXT_KINDS):
        values = table.column(column.name).drop_null()
        if not len(values):
            continue
        condition = _condition(column, values[len(values) // 2].as_py())
        try:
            Query.read(condition, model.encoder_)
        except DomainError:
            continue  # such as a category that is rare, or a name that a query cannot have
        return column.name, condition
    return None


def _condition(column: Column, value: object) -> str:
    from expecta.ask.language.conditions import quoted

    sign = "==" if column.kind in TEXT_KINDS else "<="
    shown = str(value)
    if not isinstance(value, bool | int | float):
        # a shell's single quotes go about double quotes
        shown = repr(shown) if '"' in shown or "\\" in shown else f'"{shown}"'
    return f"{quoted(column.name)} {sign} {shown}"


def _next_commands(learned: dict[str, Any], table: str) -> list[str]:
    """Return commands to try; every name and condition is one word to a shell."""
    path, rows = quote(learned["model"]), "new.csv" if table == "-" else quote(table)
    classes = learned.get("classes")
    commands = [f"predict {path} {rows} {'--interval 0.9' if classes is None else '--proba'}"]
    if learned["example"] is not None and (classes is None or len(classes) > 1):
        column, condition = map(quote, learned["example"])
        of = f" --of {quote(str(classes[0]))}" if classes is not None and len(classes) > 2 else ""
        commands += [f"ask {path} {condition}{of}", f"split {path} {column}{of}"]
    return [*commands, f"report {path} -o report.html"]
