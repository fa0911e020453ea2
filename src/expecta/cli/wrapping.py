"""Define ``expecta wrap``: learn a density for a model that was fitted elsewhere."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from expecta.cli.options import Json
from expecta.cli.output import document, note, refuse_overwriting, say, writable
from expecta.common.errors import DomainError


def wrap(
    model: Annotated[
        Path,
        typer.Argument(
            help="A fitted model: XGBoost .json or .ubj, LightGBM text, CatBoost .cbm or .json, "
            ".onnx, .skops; with --trust .joblib and .pkl.",
            show_default=False,
        ),
    ],
    table: Annotated[
        str,
        typer.Argument(help="Rows like those the model was fitted to.", show_default=False),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write: .expecta.")],
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            metavar="COL",
            help="The column that the model predicts, if the table has it.",
        ),
    ] = None,
    calibrate: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="Rows that the model was not fitted to, for intervals."),
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Read a pickle, which may run arbitrary code.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Overwrite an existing file.")
    ] = False,
    json: Json = False,
) -> None:
    """Learn what the inputs of a model from elsewhere could be, to answer with some unknown."""
    from expecta.estimators import ExpectedPredictor
    from expecta.readers.model_files import load_model

    path = writable(output)
    refuse_overwriting(path, [model, table, calibrate])
    if path.is_file() and not force:
        raise DomainError(
            f"{path} already exists; overwrite it with --force, or choose another name"
        )
    if calibrate is not None and target is None:
        raise DomainError("--calibrate needs the target's name: --target COL")
    fitted = load_model(model, trust=trust)
    rows, y = _rows(fitted, table, target)
    predictor = ExpectedPredictor(fitted).fit(rows, y)
    if predictor.expected_model.route is None:
        raise DomainError(
            f"this {type(fitted).__name__} can only be sampled, so no file can hold it: "
            f"{predictor.expected_model.why}"
        )
    if calibrate is not None:
        predictor.calibrate(*_rows(fitted, calibrate, target))
    predictor.save(path)
    lines = predictor.explain_exactness().splitlines()
    if json:
        document({"model": str(path), "columns": list(rows.columns), "exactness": lines})
        return
    say(f"{len(rows)} rows and {len(rows.columns)} columns: {', '.join(rows.columns)}")
    for line in lines:
        say(line)
    for text in predictor.density_.encoder_.notes_:
        note(text)
    say(f"saved to {path}\n\nNext:\n  expecta predict {quote(str(path))} {quote(table)}")


def _rows(model: Any, path: str, target: str | None) -> tuple[Any, Any]:
    """Return the columns that a model takes, as a frame, and the target."""
    from expecta.cli import table_files
    from expecta.common.text import suggestion

    if find_spec("pandas") is None:
        raise DomainError("models are given pandas frames: pip install pandas")
    given = table_files.read(path)
    if target is not None and target not in given.column_names:
        hint = suggestion(target, given.column_names)
        raise DomainError(f"there is no column {target!r} in {path}; {hint}")
    y = None if target is None else given.column(target).to_pandas().rename(target)
    frame = given.drop_columns([] if target is None else [target]).to_pandas()
    names = getattr(model, "feature_names_in_", None)
    if names is not None and set(names) <= set(frame.columns):
        return frame[list(names)], y
    wanted = getattr(model, "n_features_in_", len(frame.columns))
    if names is not None or wanted != len(frame.columns):
        missing = [name for name in (names if names is not None else ()) if name not in frame]
        told = (
            f"lacks {', '.join(map(repr, missing))}"
            if missing
            else (f"has {len(frame.columns)} columns, and the model takes {wanted}")
        )
        raise DomainError(f"{path} {told}; name the target by --target, or another table")
    _name_features(model, frame.columns.to_numpy(object))
    return frame, y


def _name_features(model: Any, names: Any) -> None:
    """Let a model that was fitted to arrays take a frame of as many columns."""
    for part in (model, *(step for _, step in getattr(model, "steps", ())[:1])):
        try:
            part.feature_names_in_ = names
        except AttributeError:  # of a pipeline, which asks its first step
            continue
        return
