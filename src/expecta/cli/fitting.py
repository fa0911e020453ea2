"""Define ``expecta fit``: learn a model from a table, and say what to try next."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expecta.cli.csv_options import csv_options
from expecta.cli.options import Json
from expecta.cli.output import document, note, refuse_overwriting, say, writable
from expecta.common.errors import DomainError
from expecta.common.text import counted

if TYPE_CHECKING:
    from expecta.cli.learning import Task
    from expecta.estimators.circuit_estimator import CircuitEstimator
    from expecta.tables.column import Column

TEXT_KINDS = ("category", "boolean")
MAX_EXAMPLE_VALUES = 20  # of a column that is asked about in an example, where there is one


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
            "--classify/--regress",
            help="Predict classes or numbers; by default decided by the target.",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COL", help="A column to ignore; repeatable.")
    ] = None,
    density: Annotated[
        DensityName, typer.Option(help="The kind of density of the inputs.")
    ] = DensityName.tree,
    categorical: Annotated[
        list[str] | None,
        typer.Option(metavar="COL", help="A column of categories, such as codes; repeatable."),
    ] = None,
    numeric: Annotated[
        list[str] | None,
        typer.Option(metavar="COL", help="A column of numbers, such as 1,234.5; repeatable."),
    ] = None,
    date: Annotated[
        list[str] | None,
        typer.Option(metavar="COL[=FORMAT]", help="A column of dates: sold=%d/%m/%Y; repeatable."),
    ] = None,
    missing_is_value: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL", help="A column whose missing cells carry information; repeatable."
        ),
    ] = None,
    max_categories: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Maximum number of categories per column; by default 64 to 256, by the rows.",
        ),
    ] = None,
    max_bins: Annotated[
        int, typer.Option(min=2, help="Maximum number of bins per column of numbers.")
    ] = 256,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same model.")] = 0,
    rows: Annotated[
        bool, typer.Option("--rows", help="Store the training rows in the file, not only sums.")
    ] = False,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Skip rows whose target is missing.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Overwrite an existing file.")
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
    dates = dict(_date(text) for text in date or [])
    texts, numbers = [*(categorical or []), *dates], numeric or []
    given = _without_index(table_files.read(table, texts, numbers), wanted, quiet)
    _check_columns(given, [wanted, *(drop or []), *texts, *numbers, *(missing_is_value or [])])
    options = {
        "categorical": categorical,
        "numeric": numeric,
        "dates": dates,
        "na": list(csv_options().na),
        "decimal": csv_options().decimal,
        "max_categories": max_categories,
        "missing_is_value": missing_is_value,
    }
    task = Task.from_table(given, wanted, drop or [], classify, skip_unknown)
    cells = _inputs_only(options, task.table.column_names, wanted)
    if path.is_file() and not force:
        raise DomainError(
            f"{path} already exists; overwrite it with --force, or choose another name"
        )
    with config_context(progress=False if quiet else None):
        model = learn(task, density.value, max_bins, seed, cells)
    model.save(path, rows=rows)
    if quiet and not json:
        return
    learned = _summary(model, task, path, rows)
    if json:
        document(learned)
    else:
        _tell(learned, table)


def _date(text: str) -> tuple[str, str | None]:
    """Read ``sold`` or ``sold=%d/%m/%Y``."""
    name, equals, form = text.partition("=%")
    return (name, f"%{form}") if equals else (text, None)


def _inputs_only(options: dict[str, Any], inputs: list[str], target: str) -> dict[str, Any]:
    """Return the options that were given, of columns that the model learns from."""
    cells: dict[str, Any] = {}
    for option, value in options.items():
        if option in ("categorical", "numeric", "dates", "missing_is_value") and value:
            if target in value:
                raise DomainError(f"{target!r} is the target; use --classify or --regress for it")
            value = (
                {n: value[n] for n in inputs if n in value}
                if option == "dates"
                else [n for n in inputs if n in value]
            )
        if value:
            cells[option] = value
    return cells


def _target(names: list[str], drop: list[str]) -> str:
    """Return the one column to predict."""
    if len(names) > 1:
        raise DomainError(
            f"a model has one target, not {', '.join(map(repr, names))}; fit one model for each"
        )
    if names[0] in drop:
        raise DomainError(f"the target {names[0]!r} cannot be dropped; remove it from --drop")
    return names[0]


def _output(output: Path | None, target: str, table: str) -> Path:
    """Return the model's file, which is not a table."""
    from expecta.cli.table_files import is_table

    plain = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in target)
    path = output if output is not None else Path(f"{plain}.expecta")
    example = f"-o {plain.strip('-._') or 'model'}.expecta"
    if str(path) == "-":
        raise DomainError("a model needs a file: -o model.expecta")
    refuse_overwriting(path, [table])
    if is_table(str(path)):
        raise DomainError(f"{path} has the ending of a table, not of a model; try {example}")
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
        note(f"column {first!r} only numbers the rows, so it is ignored")
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
        f"learned from {counted(learned['rows'], 'row')} and "
        f"{counted(len(learned['columns']), 'column')}: "
        f"{', '.join(learned['columns'])}"
    )
    say(f"density: {learned['density']}")
    for line in learned["density_check"]:
        say(f"  {line}")
    say(f"circuit: {counted(learned['splits'], 'split')}; {learned['summary']}")
    if learned["skipped_rows"]:
        note(f"{counted(learned['skipped_rows'], 'row')} without a target skipped")
    for text in learned["notes"]:
        note(text)
    kept = "the training rows" if learned["rows_in_file"] else "sums over groups of training rows"
    say(f"saved to {learned['model']}, with {kept}")
    say("\nNext:")
    for line in _next_commands(learned, table):
        say(f"  expecta {line}")


def _example(model: CircuitEstimator, table: Any) -> tuple[str, str] | None:
    """Return a column to ask about, categories of few values first, and a condition on it."""
    import pyarrow.compute as pc

    from expecta.ask.language.query import Query

    few = sorted(model.encoder_.columns_, key=lambda c: c.cardinality > MAX_EXAMPLE_VALUES)
    for column in sorted(few, key=lambda c: c.kind not in TEXT_KINDS):
        values = table.column(column.name).drop_null()
        if not len(values):
            continue
        value = values[len(values) // 2]
        if column.kind not in TEXT_KINDS:  # a median, below the largest: it divides the rows
            below = values.filter(pc.less(values, pc.max(values)))
            below = below if len(below) else values
            ordered = values.take(pc.sort_indices(values))
            middle = ordered[(len(values) - 1) // 2]
            value = middle if middle != pc.max(values) else pc.max(below)
        condition = _condition(column, value.as_py())
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
